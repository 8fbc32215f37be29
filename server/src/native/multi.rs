//! ClientService.Multi: actions of several regions in one call.
//!
//! The groups of a call are independent and are executed in order. Within a group, each action
//! succeeds or fails alone, unless the group is atomic. Puts and deletes are applied together, at the
//! end of the group or before the next increment or append; if that fails, they are applied one by
//! one, so that each has its own result. As in HBase, a get does not see the puts before it in its
//! group.
//!
//! A group of plain puts and deletes is applied together without being decoded
//! (`decode::plain_writes`). If that is not possible, it is decoded and treated like any other.

use std::sync::Arc;

use basalt_engine::Commit;
use basalt_engine::engine::RegionInfo;
use basalt_engine::seeded;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    self, Action, CoprocessorServiceCall, CoprocessorServiceResult, MultiRegionLoadStats, MutationProto,
    RegionAction, RegionActionResult, ResultOrException, mutation_proto::MutationType,
};
use bytes::Bytes;
use prost::Message;

use super::decode::plain_writes::{MultiGroups, MultiResults, PlainWrites};
use super::group::{self, Group};
use super::reply::{CellBlock, Reply, exception_pair};
use super::single::LaterGets;
use super::state::Connection;
use super::{coprocessor, region, request, single};
use crate::service::arguments::check_cell_rights;
use crate::service::{Call, Failure, writes};

/// A group of a call.
enum Form {
    /// Puts and deletes that are not decoded.
    Plain(PlainWrites),
    Decoded(Box<RegionAction>),
}

/// Answers a Multi.
pub(super) async fn call(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    message: MultiGroups,
    cells: Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let mut block = connection.cell_block(connection.peer.codec);
    let mut answer = MultiResults {
        region_statistics: Some(MultiRegionLoadStats::default()),
        ..MultiResults::default()
    };
    let mut sent = Cells::new(&cells);
    let has_old_condition = message.condition.is_some();
    // A malformed group fails the call before anything is applied.
    let groups = message.region_action.into_iter().map(|group| {
        Ok(match PlainWrites::parse(&group) {
            Some(writes) if !has_old_condition => Form::Plain(writes),
            _ => Form::Decoded(Box::new(request::decode(group)?)),
        })
    });
    for group in groups.collect::<Result<Vec<_>, Failure>>()? {
        let before = sent.clone();
        let mut group = match group {
            Form::Decoded(group) => *group,
            Form::Plain(writes) => {
                writes.skip_cells(&mut sent)?;
                let own = cells.slice(before.offset()..sent.offset());
                let whole = writes.message().clone();
                if let Some(result) = apply_plain(connection, call, writes, own).await {
                    answer.region_action_result.push(result);
                    continue;
                }
                sent = before;
                request::decode(whole)?
            }
        };
        let is_conditional = group.condition.is_some();
        if group.condition.is_none() {
            group.condition.clone_from(&message.condition);
        }
        let own = cells_of(&group, &cells, &mut sent)?;
        let actions = region_action(connection, call, group, message.nonce_group, own, &mut block);
        let mut result = match Box::pin(actions).await {
            Ok(result) => result,
            Err(failure) => RegionActionResult {
                exception: Some(exception_pair(&failure)),
                ..RegionActionResult::default()
            },
        };
        // As in HBase: clients before 2.4 read `processed` of the response. It has the outcome of
        // their condition, and of groups without one.
        if !is_conditional && result.processed.is_some() {
            answer.processed = result.processed;
        }
        if has_old_condition {
            result.processed = None;
        }
        // Those clients do not look for results of increments and appends.
        if has_old_condition && !is_conditional {
            for done in &mut result.result_or_exception {
                done.result = None;
            }
        }
        answer.region_action_result.push(result.encode_to_vec().into());
    }
    reply.with_cells(&answer, block);
    Ok(())
}

/// Applies a group of puts and deletes together, and returns its RegionActionResult. `None` if that is
/// not possible; then nothing has been applied. `cells` are those of the group.
async fn apply_plain(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    writes: PlainWrites,
    cells: Bytes,
) -> Option<Bytes> {
    let region = region::serving(connection, writes.region(), None).ok()?;
    if !writes.rows().all(|row| region.contains(row)) {
        return None;
    }
    let done = writes.done();
    let begun = writes::begin(
        &connection.server,
        call,
        region.table.clone(),
        (writes, cells),
        |(writes, cells)| Ok(writes.mutations(cells)?),
    );
    let commit = begun.await.ok()?;
    match writes::end(&connection.server, Ok(commit)).await {
        Ok(()) => Some(done),
        Err(failure) => Some(failed(&done, &failure)),
    }
}

/// The result of a group all of whose writes have failed. `done` is the one if none had.
fn failed(done: &Bytes, failure: &Failure) -> Bytes {
    let mut result = RegionActionResult::decode(&done[..]).unwrap_or_default();
    for write in &mut result.result_or_exception {
        *write = outcome(write.index, Err(failure.clone()));
    }
    result.encode_to_vec().into()
}

/// Takes the cells of one group off the block, so that the next group begins at its own cells.
fn cells_of(group: &RegionAction, block: &Bytes, sent: &mut Cells<'_>) -> Result<Bytes, Failure> {
    let actions = group.action.iter();
    take_cells(
        actions.filter_map(|action| action.mutation.as_deref()),
        block,
        sent,
    )
}

/// Takes the cells of these mutations off the block.
fn take_cells<'a>(
    mutations: impl IntoIterator<Item = &'a MutationProto>,
    block: &Bytes,
    sent: &mut Cells<'_>,
) -> Result<Bytes, Failure> {
    let begin = sent.offset();
    for mutation in mutations {
        request::skip_cells(mutation, sent)?;
    }
    Ok(block.slice(begin..sent.offset()))
}

async fn region_action(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    group: RegionAction,
    nonce_group: Option<u64>,
    cells: Bytes,
    block: &mut CellBlock,
) -> Result<RegionActionResult, Failure> {
    let region = region::serving(connection, &group.region, None)?;
    if group.condition.is_some() || group.atomic == Some(true) {
        check_size(connection, block)?;
        let mutations = mutations(group.action)?;
        if let Some(condition) = &group.condition {
            group::check_same_row(condition, &mutations)?;
        }
        let group = Group {
            region,
            conditions: group.condition.into_iter().collect(),
            mutations,
            cells,
            nonce_group,
        };
        return atomic(connection, call, group, block).await;
    }
    let mut results = Vec::with_capacity(group.action.len());
    // At the first cell of the writes that wait.
    let mut sent = Cells::new(&cells);
    let mut waiting = Waiting::with_capacity(group.action.len());
    let mut actions = group.action.into_iter();
    let mut ahead = 0;
    while let Some(action) = actions.next() {
        let Action {
            index,
            mutation,
            get,
            service_call,
        } = action;
        let update = match mutation {
            Some(mutation) if is_write(&mutation) => {
                waiting.push(index, mutation);
                continue;
            }
            other => other,
        };
        let mut own = Bytes::new();
        if let Some(update) = &update {
            let written = std::mem::take(&mut waiting);
            let cells_written = take_cells(written.mutations(), &cells, &mut sent)?;
            write_all(connection, call, &region, written, cells_written, &mut results).await;
            own = take_cells([&**update], &cells, &mut sent)?;
        }
        if let (None, None, Some(service)) = (&update, &get, service_call) {
            results.push(endpoint(connection, call, &region, index, *service, block).await);
            continue;
        }
        let result = match (update, get) {
            _ if let Err(failure) = check_size(connection, block) => Err(failure),
            (None, None) => Err(Failure::do_not_retry(
                "the action has neither mutation, get nor service call",
            )),
            (Some(mutation), _) => {
                apply_update(connection, call, &region, *mutation, nonce_group, own, block).await
            }
            (None, Some(get)) if region.contains(&get.row) => {
                let later = LaterGets {
                    actions: actions.as_slice(),
                    ahead: &mut ahead,
                };
                single::get_one(connection, call, region.table.clone(), &get, Some(later), block).await
            }
            (None, Some(_)) => Err(Failure::wrong_region("the row of a get is not in its region")),
        };
        results.push(outcome(index, result));
    }
    let rest = cells.slice(sent.offset()..);
    write_all(connection, call, &region, waiting, rest, &mut results).await;
    Ok(RegionActionResult {
        result_or_exception: results,
        ..RegionActionResult::default()
    })
}

/// Fails when the response is full: the client repeats this action in another call, as with HBase.
fn check_size(connection: &Connection, block: &CellBlock) -> Result<(), Failure> {
    let limit = connection.server.config().server.max_response_bytes;
    if block.response_bytes() < limit {
        return Ok(());
    }
    Err(Failure::multi_too_large(limit))
}

fn is_write(mutation: &MutationProto) -> bool {
    matches!(mutation.mutate_type(), MutationType::Put | MutationType::Delete)
}

/// Puts and deletes that are not applied yet.
#[expect(
    clippy::vec_box,
    reason = "they are decoded into boxes, and not moved out of them"
)]
#[derive(Default)]
struct Waiting {
    indices: Vec<Option<u32>>,
    mutations: Vec<Box<MutationProto>>,
}

impl Waiting {
    fn with_capacity(count: usize) -> Self {
        Self {
            indices: Vec::with_capacity(count),
            mutations: Vec::with_capacity(count),
        }
    }

    fn push(&mut self, index: Option<u32>, mutation: Box<MutationProto>) {
        self.indices.push(index);
        self.mutations.push(mutation);
    }

    fn mutations(&self) -> impl Iterator<Item = &MutationProto> {
        self.mutations.iter().map(|mutation| &**mutation)
    }
}

/// Applies puts and deletes together, or one by one if that fails. `cells` are theirs.
async fn write_all(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    region: &Arc<RegionInfo>,
    waiting: Waiting,
    cells: Bytes,
    results: &mut Vec<ResultOrException>,
) {
    let misplaced =
        |mutation: &MutationProto| !mutation.row.as_deref().is_some_and(|row| region.contains(row));
    let Waiting { indices, mutations } = waiting;
    if mutations.is_empty() {
        return;
    }
    // Shared: they are needed again if they cannot be applied together.
    let mutations = Arc::new(mutations);
    let has_one_origin = mutations
        .windows(2)
        .all(|pair| request::origin_bytes(&pair[0]) == request::origin_bytes(&pair[1]));
    if has_one_origin && !mutations.iter().any(|mutation| misplaced(mutation)) {
        let begun = begin(connection, call, region, Arc::clone(&mutations), cells.clone()).await;
        if begun.is_ok() || indices.len() == 1 {
            drop(mutations);
            let applied = writes::end(&connection.server, begun).await;
            let done = |index| match &applied {
                Ok(()) => ResultOrException {
                    index,
                    result: Some(messages::Result::default()),
                    ..ResultOrException::default()
                },
                Err(failure) => outcome(index, Err(failure.clone())),
            };
            results.extend(indices.into_iter().map(done));
            return;
        }
    }
    let mut sent = Cells::new(&cells);
    for (index, mutation) in indices.into_iter().zip(Arc::unwrap_or_clone(mutations)) {
        let applied = match take_cells([&*mutation], &cells, &mut sent) {
            Ok(_) if misplaced(&mutation) => Err(Failure::wrong_region(
                "the row of a mutation is not in its region",
            )),
            Ok(own) => {
                let begun = begin(connection, call, region, Arc::new(vec![mutation]), own).await;
                writes::end(&connection.server, begun).await
            }
            Err(failure) => Err(failure),
        };
        results.push(outcome(index, applied.map(|()| messages::Result::default())));
    }
}

/// Applies puts and deletes of one region that have passed the same clusters, each row atomically; the caller
/// waits for the commit.
async fn begin(
    connection: &Connection,
    call: &mut Call<'_>,
    region: &RegionInfo,
    mutations: Arc<Vec<Box<MutationProto>>>,
    cells: Bytes,
) -> Result<Option<Commit>, Failure> {
    for mutation in mutations.iter() {
        check_cell_rights(connection.server.security(), request::attribute_names(mutation))?;
    }
    let origin = mutations
        .first()
        .map(|mutation| request::origin(mutation))
        .transpose()?;
    let arguments = (mutations, cells);
    writes::begin_from(
        &connection.server,
        call,
        region.table.clone(),
        origin.unwrap_or_default(),
        arguments,
        |(mutations, cells)| Ok(request::rows(mutations, cells)?),
    )
    .await
}

async fn apply_update(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    region: &Arc<RegionInfo>,
    mutation: MutationProto,
    nonce_group: Option<u64>,
    cells: Bytes,
    block: &mut CellBlock,
) -> Result<messages::Result, Failure> {
    let group = Group {
        region: region.clone(),
        conditions: Vec::new(),
        mutations: vec![MutationProto {
            nonce: mutation.nonce.filter(|_| !seeded::is_on("batch-forgets-nonces")),
            ..mutation
        }],
        cells,
        nonce_group,
    };
    let mut done = group::apply(connection, call, group).await?;
    block.first(&mut done.cells).await
}

/// Runs an action that calls an endpoint.
async fn endpoint(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    region: &Arc<RegionInfo>,
    index: Option<u32>,
    service: CoprocessorServiceCall,
    block: &mut CellBlock,
) -> ResultOrException {
    let answered = async {
        check_size(connection, block)?;
        let value = coprocessor::in_batch(connection, call, region, service).await?;
        block.add_message(value.encoded_len()).await?;
        Ok(value)
    };
    match answered.await {
        Ok(value) => ResultOrException {
            index,
            service_result: Some(Box::new(CoprocessorServiceResult { value: Some(value) })),
            ..ResultOrException::default()
        },
        Err(failure) => outcome(index, Err(failure)),
    }
}

fn outcome(index: Option<u32>, result: Result<messages::Result, Failure>) -> ResultOrException {
    let mut outcome = ResultOrException {
        index,
        ..ResultOrException::default()
    };
    match result {
        Ok(result) => outcome.result = Some(result),
        Err(failure) => outcome.exception = Some(Box::new(exception_pair(&failure))),
    }
    outcome
}

/// The mutations of an atomic or conditional group, which may have no other actions. The text is
/// HBase's.
fn mutations(actions: Vec<Action>) -> Result<Vec<MutationProto>, Failure> {
    let mut mutations = Vec::with_capacity(actions.len());
    for action in actions {
        match action.mutation {
            Some(mutation) if action.get.is_none() => mutations.push(*mutation),
            _ => return Err(Failure::do_not_retry("Atomic put and/or delete only, not a Get")),
        }
    }
    Ok(mutations)
}

/// Runs an atomic or conditional group. Clients send no index in such a group and expect the position
/// instead; the cells of all increments and appends are in the first result, not in the block.
async fn atomic(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    mut group: Group,
    block: &mut CellBlock,
) -> Result<RegionActionResult, Failure> {
    let count = group.mutations.len() as u32;
    let is_conditional = !group.conditions.is_empty();
    // As in HBase, a condition without mutations is not tested.
    if group.mutations.is_empty() {
        group.conditions.clear();
    }
    let has_updates = group.mutations.iter().any(request::is_update);
    let mut done = group::apply(connection, call, group).await?;
    let merged = if has_updates && done.processed {
        Some(block.merged(&mut done.cells).await?)
    } else {
        None
    };
    // Without a condition, each position has a result.
    let plain = (!is_conditional).then(messages::Result::default);
    let result_or_exception = (0..count)
        .map(|index| ResultOrException {
            index: Some(index),
            result: match &merged {
                Some(merged) if index == 0 => Some(merged.clone()),
                _ => plain.clone(),
            },
            ..ResultOrException::default()
        })
        .collect();
    Ok(RegionActionResult {
        result_or_exception,
        processed: Some(done.processed),
        ..RegionActionResult::default()
    })
}
