//! Many actions as few calls.
//!
//! A batch runs in rounds:
//!
//! 1. Each pending action is located. A look-up that fails for the time being ends this step: the actions
//!    located so far are sent, the others stay pending.
//! 2. The actions of one server are cut into calls of at most [`ClusterOptions::batch_actions`] actions and
//!    about [`ClusterOptions::batch_bytes`] bytes. In a call, the actions of one region are one group; an
//!    atomic group is one of its own.
//! 3. The calls run side by side. Each action gets its result or failure; a failure of a region is that of
//!    all its actions, a failure of the call that of all of them.
//! 4. Actions that failed for the time being are pending in the next round, after a pause.
//!
//! Increments and appends keep their nonce through all rounds.

use std::collections::HashMap;
use std::sync::Arc;

use basalt_idl::native::messages::{
    self, Action as ProtoAction, MultiRequest, MultiResponse, MutationProto, RegionAction, RegionActionResult,
};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::advice::advice;
use super::atomic::{atomic, inline};
use super::cluster::Inner;
use super::connection::Service;
use super::connection::{Call, Connection, Reply};
use super::decode::Block;
use super::encode::{self, Mutation};
use super::meta::priority;
use super::options::ClusterOptions;
use super::regions::Region;
use super::retry::{Attempts, nonce};
use crate::error::{Error, Result, copy};
use crate::name::TableName;
use crate::remote::{Advice, RemoteException};
use crate::request::{Append, Delete, Get, Increment, Put, RowMutations};
use crate::row::Row;

/// The method of all calls here.
const METHOD: &str = "Multi";

/// The row of a message without one, which the server refuses.
static NO_ROW: Bytes = Bytes::new();

/// One action of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A row.
    Get(Get),
    /// Whether a get would find anything: a row without cells, or `None`.
    Exists(Get),
    /// Cells to write.
    Put(Put),
    /// Cells to delete.
    Delete(Delete),
    /// Additions to counters.
    Increment(Increment),
    /// Bytes behind values.
    Append(Append),
    /// Puts and deletes of one row, applied in one atomic step.
    RowMutations(RowMutations),
}

/// The outcome of one action.
type Outcome = Result<Option<Row>>;

/// An action as it is sent.
#[derive(Debug)]
pub(super) enum Prepared {
    Get(messages::Get),
    Mutation(Mutation),
    /// With its cells inside.
    Inline(MutationProto),
    Atomic(Bytes, Vec<MutationProto>),
}

/// Actions of one region: indices into the batch.
#[derive(Clone, Debug)]
struct Group {
    region: Arc<Region>,
    actions: Vec<usize>,
    is_atomic: bool,
}

/// The outcomes if all are successes.
pub(super) fn all(outcomes: Vec<Outcome>) -> Result<Vec<Option<Row>>> {
    let of = outcomes.len();
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let first = outcomes.into_iter().collect::<Result<Vec<_>>>();
    first.map_err(|first| match of {
        1 => first,
        _ => Error::Batch {
            failed,
            of,
            first: Box::new(first),
        },
    })
}

/// Runs a batch.
pub(super) async fn run(inner: &Arc<Inner>, table: &TableName, actions: Vec<Action>) -> Result<Vec<Outcome>> {
    let prepared = actions.into_iter().map(prepare);
    run_prepared(inner, table, prepared.collect::<Result<_>>()?).await
}

pub(super) async fn run_prepared(
    inner: &Arc<Inner>,
    table: &TableName,
    prepared: Vec<Prepared>,
) -> Result<Vec<Outcome>> {
    let prepared = Arc::new(prepared);
    let mut outcomes: Vec<Option<Outcome>> = prepared.iter().map(|_| None).collect();
    let mut attempts = Attempts::begin(&inner.options);
    let mut pending: Vec<usize> = (0..prepared.len()).collect();
    let mut is_sent = false;
    while !pending.is_empty() {
        let deadline = attempts.call_deadline();
        let (groups, mut failures) = match locate(inner, table, &prepared, &pending, deadline).await {
            Ok(located) => located,
            // Earlier rounds have carried out other actions, whose outcomes stay.
            Err(error) if is_sent => {
                for index in &pending {
                    outcomes[*index] = Some(Err(copy(&error)));
                }
                break;
            }
            Err(error) => return Err(error),
        };
        is_sent |= !groups.is_empty();
        for (index, outcome) in send_all(inner, &prepared, &groups, deadline).await {
            match outcome {
                Err(error) if advice(&error) != Advice::Final => failures.push((index, error)),
                outcome => outcomes[index] = Some(outcome),
            }
        }
        pending = failures.iter().map(|(index, _)| *index).collect();
        pending.sort_unstable();
        let Some(longest) = failures.iter().map(|(_, error)| advice(error)).max_by_key(weight) else {
            break;
        };
        let Some(pause) = attempts.next(Instant::now(), &longest) else {
            for (index, error) in failures {
                let what = format!("action {index} of a batch on table {table}");
                outcomes[index] = Some(Err(attempts.exhausted(error, what)));
            }
            break;
        };
        sleep(pause).await;
    }
    Ok(outcomes.into_iter().flatten().collect())
}

fn prepare(action: Action) -> Result<Prepared> {
    Ok(match action {
        Action::Get(get) => Prepared::Get(encode::get(get.into_thrift()?, false)?),
        Action::Exists(get) => Prepared::Get(encode::get(get.into_thrift()?, true)?),
        Action::Put(put) => Prepared::Mutation(Mutation::put(put.into_thrift()?)?),
        Action::Delete(delete) => Prepared::Mutation(Mutation::delete(delete.into_thrift()?)?),
        Action::Increment(increment) => {
            let mutation = Mutation::increment(increment.into_thrift()?)?;
            Prepared::Mutation(mutation.with_nonce(nonce()))
        }
        Action::Append(append) => {
            let mutation = Mutation::append(append.into_thrift()?)?;
            Prepared::Mutation(mutation.with_nonce(nonce()))
        }
        Action::RowMutations(mutations) => {
            let mutations = mutations.into_thrift()?;
            Prepared::Atomic(mutations.row.clone(), inline(mutations)?)
        }
    })
}

impl Prepared {
    fn row(&self) -> &Bytes {
        match self {
            Prepared::Get(get) => &get.row,
            Prepared::Mutation(mutation) => mutation.row(),
            Prepared::Inline(mutation) => mutation.row.as_ref().unwrap_or(&NO_ROW),
            Prepared::Atomic(row, _) => row,
        }
    }

    fn is_atomic(&self) -> bool {
        matches!(self, Prepared::Atomic(..))
    }

    /// About its size in a call.
    fn bytes(&self) -> usize {
        match self {
            Prepared::Get(get) => 64 + get.row.len(),
            Prepared::Mutation(mutation) => mutation.bytes(),
            Prepared::Inline(mutation) => prost::Message::encoded_len(mutation),
            Prepared::Atomic(_, mutations) => mutations.iter().map(prost::Message::encoded_len).sum(),
        }
    }
}

/// The order of pieces of advice by the length of their pauses.
fn weight(advice: &Advice) -> u8 {
    match advice {
        Advice::WaitOverloaded => 4,
        Advice::WaitFor(_) => 3,
        Advice::Wait | Advice::Relocate | Advice::ServerGone => 2,
        Advice::Moved(_) | Advice::Now => 1,
        Advice::Final => 0,
    }
}

/// Groups the pending actions by region, those of one server next to each other. Also returns the actions
/// that could not be located, each with the failure. Fails if the failure is final.
async fn locate(
    inner: &Inner,
    table: &TableName,
    prepared: &[Prepared],
    pending: &[usize],
    deadline: Instant,
) -> Result<(Vec<Vec<Group>>, Vec<(usize, Error)>)> {
    let mut servers = Servers::default();
    for (at, index) in pending.iter().enumerate() {
        match inner
            .region_in_time(table, prepared[*index].row(), deadline)
            .await
        {
            Ok(region) => servers.add(region, *index, prepared[*index].is_atomic()),
            Err(error) if advice(&error) == Advice::Final => return Err(error),
            Err(error) => {
                let failed = pending[at..].iter().map(|index| (*index, copy(&error)));
                return Ok((servers.groups, failed.collect()));
            }
        }
    }
    Ok((servers.groups, Vec::new()))
}

/// Groups by server.
#[derive(Debug, Default)]
struct Servers {
    groups: Vec<Vec<Group>>,
    by_address: HashMap<Arc<str>, usize>,
    /// The group of a region's actions that are not atomic: server and place there.
    by_region: HashMap<Bytes, (usize, usize)>,
}

impl Servers {
    fn add(&mut self, region: Arc<Region>, action: usize, is_atomic: bool) {
        if !is_atomic && let Some((server, place)) = self.by_region.get(&region.name) {
            return self.groups[*server][*place].actions.push(action);
        }
        let server = *self
            .by_address
            .entry(Arc::clone(&region.address))
            .or_insert_with(|| {
                self.groups.push(Vec::new());
                self.groups.len() - 1
            });
        if !is_atomic {
            let place = self.groups[server].len();
            self.by_region.insert(region.name.clone(), (server, place));
        }
        self.groups[server].push(Group {
            region,
            actions: vec![action],
            is_atomic,
        });
    }
}

/// Cuts the groups of one server into calls.
fn cut(groups: &[Group], prepared: &[Prepared], options: &ClusterOptions) -> Vec<Vec<Group>> {
    let mut calls: Vec<Vec<Group>> = Vec::new();
    let (mut actions, mut bytes) = (0, 0);
    for group in groups {
        for index in &group.actions {
            let is_full = actions >= options.batch_actions.max(1) || bytes >= options.batch_bytes;
            if calls.is_empty() || is_full {
                calls.push(Vec::new());
                (actions, bytes) = (0, 0);
            }
            let call = calls.last_mut().expect("one was pushed");
            match call.last_mut() {
                Some(last) if last.continues_with(group) => last.actions.push(*index),
                _ => call.push(Group {
                    region: Arc::clone(&group.region),
                    actions: vec![*index],
                    is_atomic: group.is_atomic,
                }),
            }
            actions += 1;
            bytes += prepared[*index].bytes();
        }
    }
    calls
}

impl Group {
    /// Whether both can be one group of a call.
    fn continues_with(&self, other: &Group) -> bool {
        !self.is_atomic && !other.is_atomic && Arc::ptr_eq(&self.region, &other.region)
    }
}

/// Makes all calls side by side.
async fn send_all(
    inner: &Arc<Inner>,
    prepared: &Arc<Vec<Prepared>>,
    servers: &[Vec<Group>],
    deadline: Instant,
) -> Vec<(usize, Outcome)> {
    let calls = servers
        .iter()
        .flat_map(|groups| cut(groups, prepared, &inner.options));
    let mut calls: Vec<Vec<Group>> = calls.collect();
    if calls.len() <= 1 {
        return match calls.pop() {
            Some(groups) => send(inner, prepared, &groups, deadline).await,
            None => Vec::new(),
        };
    }
    let mut running = JoinSet::new();
    for groups in calls {
        let (inner, prepared) = (Arc::clone(inner), Arc::clone(prepared));
        running.spawn(async move { send(&inner, &prepared, &groups, deadline).await });
    }
    running.join_all().await.into_iter().flatten().collect()
}

/// Makes one call, to the server of its groups.
async fn send(
    inner: &Inner,
    prepared: &[Prepared],
    groups: &[Group],
    deadline: Instant,
) -> Vec<(usize, Outcome)> {
    let failure = match call(inner, prepared, groups, deadline).await {
        Ok((connection, reply)) => {
            match outcomes(inner, &connection, prepared, groups, reply, deadline).await {
                Ok(outcomes) => return outcomes,
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    for group in groups {
        inner.note_failure(&group.region, &failure);
    }
    let actions = groups.iter().flat_map(|group| &group.actions);
    actions.map(|index| (*index, Err(copy(&failure)))).collect()
}

async fn call(
    inner: &Inner,
    prepared: &[Prepared],
    groups: &[Group],
    deadline: Instant,
) -> Result<(Connection, Reply<MultiResponse>)> {
    let region = &groups[0].region;
    let connection = inner
        .connections
        .get(&region.address, Service::Client, deadline)
        .await?;
    let mut block = Vec::new();
    let actions = groups
        .iter()
        .map(|group| region_action(prepared, group, &mut block));
    let request = MultiRequest {
        region_action: actions.collect(),
        nonce_group: Some(inner.nonce_group),
        ..MultiRequest::default()
    };
    let reply = connection
        .call(&about(region, deadline), &request, &block)
        .await?;
    Ok((connection, reply))
}

fn about(region: &Region, deadline: Instant) -> Call<'_> {
    Call {
        method: METHOD,
        region: Some(&region.name),
        priority: priority(&region.table),
        deadline,
        opens_scanner: false,
    }
}

/// A group as a message. The index of an action is its place in the group.
fn region_action(prepared: &[Prepared], group: &Group, block: &mut Vec<u8>) -> RegionAction {
    if let (true, Prepared::Atomic(_, mutations)) = (group.is_atomic, &prepared[group.actions[0]]) {
        return RegionAction {
            region: group.region.specifier(),
            ..atomic(mutations.clone())
        };
    }
    let action = |(place, index): (usize, &usize)| {
        let mut action = ProtoAction {
            index: Some(place as u32),
            ..ProtoAction::default()
        };
        match &prepared[*index] {
            Prepared::Get(get) => action.get = Some(Box::new(get.clone())),
            Prepared::Mutation(mutation) => action.mutation = Some(Box::new(mutation.with_block(block))),
            Prepared::Inline(mutation) => action.mutation = Some(Box::new(mutation.clone())),
            // Such an action has a group of its own.
            Prepared::Atomic(..) => {}
        }
        action
    };
    RegionAction {
        region: group.region.specifier(),
        action: group.actions.iter().enumerate().map(action).collect(),
        ..RegionAction::default()
    }
}

/// The outcomes in a reply. Cells are taken in the order of the results.
async fn outcomes(
    inner: &Inner,
    connection: &Connection,
    prepared: &[Prepared],
    groups: &[Group],
    mut reply: Reply<MultiResponse>,
    deadline: Instant,
) -> Result<Vec<(usize, Outcome)>> {
    let results = std::mem::take(&mut reply.message.region_action_result);
    if results.len() != groups.len() {
        let what = format!("{} results for {} groups", results.len(), groups.len());
        return Err(reply.malformed(METHOD, what));
    }
    let mut block = Block::new(&reply.cells);
    let mut outcomes = Vec::new();
    for (group, result) in groups.iter().zip(results) {
        let mut of_group = Outcomes::of(group, prepared);
        let read = of_group.read(result, &mut block, || {
            connection.origin(&about(&group.region, deadline))
        });
        read.map_err(|what| reply.malformed(METHOD, what))?;
        let mut of_group = of_group.finish();
        if let Some(error) = of_group.iter().find_map(|(_, outcome)| outcome.as_ref().err())
            && let Err(instead) = inner.after_failure(&group.region, error, deadline).await
        {
            for (_, outcome) in of_group.iter_mut().filter(|(_, outcome)| outcome.is_err()) {
                *outcome = Err(copy(&instead));
            }
        }
        outcomes.extend(of_group);
    }
    Ok(outcomes)
}

/// The outcomes of a group.
struct Outcomes<'a> {
    group: &'a Group,
    prepared: &'a [Prepared],
    found: Vec<Option<Outcome>>,
}

impl<'a> Outcomes<'a> {
    fn of(group: &'a Group, prepared: &'a [Prepared]) -> Outcomes<'a> {
        Outcomes {
            group,
            prepared,
            found: group.actions.iter().map(|_| None).collect(),
        }
    }

    fn read(
        &mut self,
        result: RegionActionResult,
        block: &mut Block<'_>,
        origin: impl Fn() -> crate::remote::Origin,
    ) -> std::result::Result<(), String> {
        let failed = |pair| Error::Remote(Box::new(RemoteException::of_pair(pair, origin())));
        if let Some(pair) = result.exception {
            let error = failed(pair);
            self.found.fill_with(|| Some(Err(copy(&error))));
            return Ok(());
        }
        for action in result.result_or_exception {
            // The results of an atomic group are those of one action.
            let place = if self.group.is_atomic {
                0
            } else {
                action.index.unwrap_or_default() as usize
            };
            let exists = action.result.as_ref().and_then(|result| result.exists) == Some(true);
            let row = block.row(action.result.unwrap_or_default())?;
            let outcome = match action.exception {
                Some(pair) => Err(failed(*pair)),
                None if exists && row.is_none() => Ok(Some(self.without_cells(place)?)),
                None => Ok(row),
            };
            match self.found.get_mut(place) {
                Some(known) => *known = Some(outcome),
                None => return Err(format!("result {place} for {} actions", self.group.actions.len())),
            }
        }
        if self.group.is_atomic {
            self.found[0].get_or_insert(Ok(None));
        }
        match self.found.iter().position(Option::is_none) {
            Some(missing) => Err(format!("action {missing} has no result")),
            None => Ok(()),
        }
    }

    fn without_cells(&self, place: usize) -> std::result::Result<Row, String> {
        let index = self.group.actions.get(place).ok_or("a result without action")?;
        Ok(Row {
            key: self.prepared[*index].row().clone(),
            cells: Vec::new(),
            partial: false,
        })
    }

    fn finish(self) -> Vec<(usize, Outcome)> {
        let outcomes = self.group.actions.iter().zip(self.found);
        outcomes
            .filter_map(|(index, outcome)| Some((*index, outcome?)))
            .collect()
    }
}
