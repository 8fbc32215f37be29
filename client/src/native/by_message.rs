//! Calls by message, for programs that have requests in the form of the protocol, as a gateway has.
//! They are located, repeated and spread over servers as the calls of [`Table`] and [`Cluster`] are.
//!
//! A mutation has its cells inside the message. Increments and appends get their nonces here.

use std::sync::Arc;

use basalt_idl::native::messages::mutation_proto::MutationType;
use basalt_idl::native::messages::table_state::State;
use basalt_idl::native::messages::{
    self, Condition, MasterServiceMethod, MultiRequest, MutateRequest, MutationProto, RegionAction,
};
use bytes::Bytes;
use prost::Message;

use super::atomic::atomic;
use super::batch::{self, Prepared};
use super::cluster::{Cluster, Repeat};
use super::decode::Block;
use super::regions::Region;
use super::retry::nonce;
use super::scanner::Scanner;
use super::table::Table;
use crate::error::Result;
use crate::name::TableName;
use crate::row::Row;

/// One action of [`Table::batch_by_message`].
#[derive(Clone, Debug)]
pub enum MessageAction {
    /// A row.
    Get(messages::Get),
    /// A put, delete, increment or append.
    Mutation(MutationProto),
    /// Puts and deletes of one row, applied in one atomic step.
    RowMutations(Bytes, Vec<MutationProto>),
}

impl Table {
    /// A row, `None` if nothing of it was found.
    pub async fn get_by_message(&self, get: messages::Get) -> Result<Option<Row>> {
        let reply = self.get_reply(get).await?;
        let result = reply.message.result.clone().unwrap_or_default();
        let row = Block::new(&reply.cells).row(result);
        row.map_err(|what| reply.malformed("Get", what))
    }

    /// Actions as [`Table::batch`] takes them.
    pub async fn batch_by_message(&self, actions: Vec<MessageAction>) -> Result<Vec<Result<Option<Row>>>> {
        let prepared = actions.into_iter().map(|action| match action {
            MessageAction::Get(get) => Prepared::Get(get),
            MessageAction::Mutation(mutation) => Prepared::Inline(with_nonce(mutation)),
            MessageAction::RowMutations(row, mutations) => Prepared::Atomic(row, mutations),
        });
        batch::run_prepared(&self.inner, self.name(), prepared.collect()).await
    }

    /// A mutation of one row, if its condition holds: whether it did, and the new cells of an increment or
    /// append. A mutation with a condition is sent once, since a repetition could report the opposite.
    pub async fn mutate_by_message(
        &self,
        mutation: MutationProto,
        condition: Option<Condition>,
    ) -> Result<(bool, Option<Row>)> {
        let row = mutation.row.clone().unwrap_or_default();
        let is_conditional = condition.is_some();
        let request = MutateRequest {
            mutation: with_nonce(mutation),
            condition,
            nonce_group: Some(self.inner.nonce_group),
            ..MutateRequest::default()
        };
        let reply = self
            .inner
            .on_region(self.name(), &row, request, repeat(is_conditional))
            .await?;
        let result = reply.message.result.clone().unwrap_or_default();
        let cells = Block::new(&reply.cells).row(result);
        let cells = cells.map_err(|what| reply.malformed("Mutate", what))?;
        Ok((!is_conditional || reply.message.processed == Some(true), cells))
    }

    /// Puts and deletes of one row in one atomic step, if the condition holds; returns whether it did.
    pub async fn mutate_row_by_message(
        &self,
        row: &Bytes,
        mutations: Vec<MutationProto>,
        condition: Option<Condition>,
    ) -> Result<bool> {
        let is_conditional = condition.is_some();
        let request = MultiRequest {
            region_action: vec![RegionAction {
                condition,
                ..atomic(mutations)
            }],
            nonce_group: Some(self.inner.nonce_group),
            ..MultiRequest::default()
        };
        let reply = self
            .inner
            .on_region(self.name(), row, request, repeat(is_conditional))
            .await?;
        match reply.message.region_action_result.first() {
            Some(result) => {
                let processed = result.processed.or(reply.message.processed);
                Ok(!is_conditional || processed == Some(true))
            }
            None => Err(reply.malformed("Multi", "there is no result".to_owned())),
        }
    }

    /// The region that has a row, if its location is known without a call.
    pub fn region_at_hand(&self, row: &[u8]) -> Option<Arc<Region>> {
        self.inner.regions.find(self.name(), row)
    }

    /// A scan of that range, of at most `limit` rows. Sends nothing to a server yet.
    pub fn scanner_by_message(&self, scan: messages::Scan, limit: Option<u32>) -> Scanner {
        Scanner::of_message(&self.inner, self.name().clone(), scan, limit)
    }
}

impl Cluster {
    /// Calls the master.
    pub async fn ask_by_message<M: Message + Default>(
        &self,
        method: MasterServiceMethod,
        request: &impl Message,
    ) -> Result<M> {
        self.ask(method, request).await
    }

    /// Makes a change and waits for its procedure. Forgets where the table's regions are.
    pub async fn change_by_message(
        &self,
        table: Option<&TableName>,
        method: MasterServiceMethod,
        request: &impl Message,
    ) -> Result<()> {
        match table {
            Some(table) => self.change_regions(table, method, request).await,
            None => self.change(method, request).await,
        }
    }

    /// Whether the table is enabled; `None` if it does not exist.
    pub async fn find_table(&self, table: &TableName) -> Result<Option<bool>> {
        let state = self.state(table).await?;
        Ok(state.map(|state| state == State::Enabled))
    }

    /// Group and nonce for a change of the master, by which it recognises a repetition.
    pub fn next_nonce(&self) -> (u64, u64) {
        (self.inner.nonce_group, nonce())
    }
}

fn repeat(is_conditional: bool) -> Repeat {
    if is_conditional {
        Repeat::Never
    } else {
        Repeat::Always
    }
}

/// An increment or append with a nonce; other mutations need none.
fn with_nonce(mut mutation: MutationProto) -> MutationProto {
    let is_update = matches!(
        mutation.mutate_type(),
        MutationType::Increment | MutationType::Append
    );
    if is_update {
        mutation.nonce = Some(nonce());
    }
    mutation
}
