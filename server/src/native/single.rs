//! Get and Mutate of ClientService, and the same operations as actions of Multi.

use std::pin::pin;

use basalt_engine::op::ReadSpec;
use basalt_idl::native::Reply as _;
use basalt_idl::native::messages::{self, Action, GetRequest, GetResponse, MutateRequest, MutateResponse};
use bytes::Bytes;

use super::arrived::Arrived;
use super::decode::plain_writes::PlainMutate;
use super::group::{self, Group};
use super::peer::Codec;
use super::reply::{CellBlock, Reply, empty};
use super::state::Connection;
use super::{region, request};
use crate::service::arguments::check_cell_rights;
use crate::service::reads::{self, FilterMemory};
use crate::service::{Call, Failure, writes};

/// Answers a Get.
pub(super) async fn get(
    connection: &Connection,
    call: &mut Call<'_>,
    request: GetRequest,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let codec = if connection.peer.inline_gets {
        Codec::Inline
    } else {
        connection.peer.codec
    };
    let mut block = connection.cell_block(codec);
    let region = region::serving(connection, &request.region, Some(&request.get.row))?;
    connection.lend(call);
    let mut result = get_one(
        connection,
        call,
        region.table.clone(),
        &request.get,
        None,
        &mut block,
    )
    .await?;
    if connection.server.copies().standing.is_standby() {
        result.stale = Some(true);
    }
    reply.with_cells(&GetResponse { result: Some(result) }, block);
    Ok(())
}

/// Gets of a Multi that follow the current one.
pub(super) struct LaterGets<'a> {
    /// The actions that follow.
    pub(super) actions: &'a [Action],
    /// Number of gets among them whose blocks were read ahead.
    pub(super) ahead: &'a mut usize,
}

impl LaterGets<'_> {
    /// The gets whose blocks are to be read ahead: none while there are others that were. Filters do
    /// not matter for that.
    fn wanted(&self) -> Vec<(Bytes, ReadSpec)> {
        if *self.ahead > 0 {
            return Vec::new();
        }
        let gets = self.actions.iter().filter_map(|action| action.get.as_ref());
        gets.take(reads::AHEAD_MAX)
            .map_while(|get| Some((get.row.clone(), request::get(get, None).ok()?)))
            .collect()
    }
}

/// Runs one get and appends its cells to `block`. If it has to read from disk, blocks of `later`
/// gets are read together with its own.
pub(super) async fn get_one(
    connection: &Connection,
    call: &mut Call<'_>,
    table: basalt_engine::schema::TableName,
    get: &messages::Get,
    later: Option<LaterGets<'_>>,
    block: &mut CellBlock,
) -> Result<messages::Result, Failure> {
    let filter = request::filter(&connection.server, call.caller(), &table, get.filter.as_ref()).await?;
    let spec = request::get(get, filter)?;
    let mut filters = FilterMemory::default();
    filters.add_of(&connection.server, &spec)?;
    let wanted = vec![(get.row.clone(), spec)];
    let next = || later.as_ref().map(LaterGets::wanted).unwrap_or_default();
    let found = reads::get_before(&connection.server, call, table, wanted, next).await?;
    if let Some(later) = later {
        *later.ahead = found.ahead.max(later.ahead.saturating_sub(1));
    }
    let mut batch = found.batch;
    if get.existence_only == Some(true) {
        return Ok(messages::Result {
            exists: Some(!batch.is_empty()),
            ..empty()
        });
    }
    let result = block.first(&mut batch).await;
    connection.keep(call, batch);
    result
}

/// Answers a Mutate.
pub(super) async fn mutate(
    connection: &Connection,
    call: &mut Call<'_>,
    arrived: &Arrived,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let cells = arrived.cells.clone();
    let Some((region, write)) = PlainMutate::parse(&arrived.parameter) else {
        // Boxed: most calls are plain writes.
        return Box::pin(mutate_decoded(connection, call, arrived.decode()?, cells, reply)).await;
    };
    let region = region::serving(connection, &region, Some(write.row()))?;
    let table = region.table.clone();
    pin!(writes::apply(
        &connection.server,
        call,
        table,
        (write, cells),
        |(write, cells)| { Ok(vec![write.mutation(cells)?]) }
    ))
    .await?;
    reply.message(&written());
    Ok(())
}

/// The answer to a put or delete without a condition.
fn written() -> MutateResponse {
    MutateResponse {
        processed: Some(true),
        result: None,
    }
}

/// Answers a Mutate of any kind.
async fn mutate_decoded(
    connection: &Connection,
    call: &mut Call<'_>,
    message: MutateRequest,
    cells: Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    check_cell_rights(
        connection.server.security(),
        request::attribute_names(&message.mutation),
    )?;
    let row = request::row(&message.mutation)?.clone();
    let region = region::serving(connection, &message.region, Some(&row))?;
    let mut block = connection.cell_block(connection.peer.codec);
    let is_update = request::is_update(&message.mutation);
    let is_conditional = message.condition.is_some();
    if !is_update && !is_conditional {
        let table = region.table.clone();
        let arguments = (message.mutation, cells);
        let origin = request::origin(&arguments.0)?;
        let server = &connection.server;
        let begun = writes::begin_from(server, call, table, origin, arguments, |(mutation, cells)| {
            Ok(request::rows(std::slice::from_ref(mutation), cells)?)
        });
        writes::end(server, begun.await).await?;
        reply.message(&written());
        return Ok(());
    }
    if let Some(condition) = &message.condition {
        group::check_same_row(condition, std::slice::from_ref(&message.mutation))?;
    }
    let group = Group {
        region,
        conditions: message.condition.into_iter().collect(),
        mutations: vec![message.mutation],
        cells,
        nonce_group: message.nonce_group,
    };
    let mut done = group::apply(connection, call, group).await?;
    let result = if is_update && done.processed {
        Some(block.first(&mut done.cells).await?)
    } else {
        None
    };
    let answer = MutateResponse {
        processed: is_conditional.then_some(done.processed),
        result,
    };
    reply.with_cells(&answer, block);
    Ok(())
}
