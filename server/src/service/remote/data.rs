//! Gets, writes, atomic groups and fetches on the tables of another cluster.

use std::collections::VecDeque;
use std::time::Instant;

use basalt_client::Row;
use basalt_client::native::{Cluster, MessageAction};
use basalt_engine::cell::CellBatch;
use basalt_engine::id::Origin;
use basalt_engine::op::{ReadSpec, RowMutation, Scan};
use basalt_engine::schema::TableName;
use basalt_idl::native::messages::{Condition, MutationProto};
use bytes::Bytes;

use super::{cells, encode, failure, table, write_failure};
use crate::limits::admission::MemoryPermit;
use crate::server::Server;
use crate::server::sessions::RemoteScan;
use crate::service::Failure;
use crate::service::group::{Group, Step};

/// Reads rows, in the order of the gets. Fails with the first get that fails.
pub(in crate::service) async fn get(
    cluster: &Cluster,
    name: &TableName,
    wanted: &[(Bytes, ReadSpec)],
) -> Result<Vec<Option<Row>>, Failure> {
    let table = table(cluster, name)?;
    if let [(row, spec)] = wanted {
        let found = table.get_by_message(encode::get(row, spec)?).await;
        return Ok(vec![found.map_err(|error| failure(&error))?]);
    }
    let gets = wanted
        .iter()
        .map(|(row, spec)| Ok(MessageAction::Get(encode::get(row, spec)?)));
    let gets = gets.collect::<Result<Vec<_>, Failure>>()?;
    let outcomes = table.batch_by_message(gets).await;
    let outcomes = outcomes.map_err(|error| failure(&error))?;
    let rows = outcomes.into_iter().collect::<Result<_, _>>();
    rows.map_err(|error| failure(&error))
}

/// Copies of the cells of a write while it is sent: in messages, and in the frame that waits for its
/// connection.
const COPIES: usize = 2;
/// Writes up to this size are not reserved: most are smaller.
const FREE_BYTES: usize = 16 << 10;

/// Reserves the copies of cells of this many bytes, which exist beside the arguments of the call until the
/// cluster has answered. Refuses if there is no memory for them.
pub(in crate::service) fn reserve(server: &Server, bytes: usize) -> Result<Option<MemoryPermit>, Failure> {
    if bytes <= FREE_BYTES {
        return Ok(None);
    }
    let admission = server.admission();
    let mut permit = MemoryPermit::empty(admission.memory());
    permit
        .try_add((COPIES * bytes) as u64)
        .inspect_err(|busy| admission.count(*busy))?;
    Ok(Some(permit))
}

/// The writes of a row as an action.
pub(in crate::service) fn action(mutation: &RowMutation<'_>) -> Option<MessageAction> {
    let mut messages = encode::mutations(mutation);
    match messages.len() {
        0 => None,
        1 => messages.pop().map(MessageAction::Mutation),
        _ => Some(MessageAction::RowMutations(
            Bytes::copy_from_slice(mutation.row),
            messages,
        )),
    }
}

/// Writes rows that have passed the clusters `origin`. Fails with the first row that fails; the others are
/// written.
pub(in crate::service) async fn write(
    cluster: &Cluster,
    name: &TableName,
    mut actions: Vec<MessageAction>,
    origin: &Origin,
) -> Result<(), Failure> {
    for action in &mut actions {
        match action {
            MessageAction::Mutation(mutation) => encode::add_origin(mutation, origin),
            MessageAction::RowMutations(_, mutations) => mutations
                .iter_mut()
                .for_each(|mutation| encode::add_origin(mutation, origin)),
            MessageAction::Get(_) => {}
        }
    }
    let table = table(cluster, name)?;
    if let [MessageAction::Mutation(_)] = actions[..]
        && let Some(MessageAction::Mutation(mutation)) = actions.pop()
    {
        let written = table.mutate_by_message(mutation, None).await;
        return written.map(drop).map_err(|error| write_failure(&error, true));
    }
    let outcomes = table.batch_by_message(actions).await;
    let outcomes = outcomes.map_err(|error| write_failure(&error, true))?;
    let first = outcomes.into_iter().find_map(Result::err);
    first.map_or(Ok(()), |error| Err(write_failure(&error, true)))
}

/// An atomic group of one row as it is sent.
pub(in crate::service) struct SentGroup {
    table: TableName,
    row: Bytes,
    condition: Option<Condition>,
    mutations: Vec<MutationProto>,
    /// Whether it is one increment or append whose cells are wanted.
    returns: bool,
    /// Whether the caller may repeat it after an unknown outcome: puts and deletes without a condition.
    may_be_repeated: bool,
}

impl SentGroup {
    /// Fails for groups of several rows, conditions or updates: only native clients send them.
    pub(in crate::service) fn of(group: &Group<'_>) -> Result<Self, Failure> {
        let rows = group.steps.iter().map(Step::row);
        let mut rows = rows.chain(group.conditions.iter().map(|condition| condition.row));
        let row = rows.next().unwrap_or_default();
        let updates = group
            .steps
            .iter()
            .filter(|step| matches!(step, Step::Update { .. }));
        let has_updates = updates.count() > 0;
        if rows.any(|other| other != row)
            || group.conditions.len() > 1
            || (has_updates && group.steps.len() > 1)
        {
            return Err(Failure::unsupported(
                "a group of several rows, conditions or updates on another cluster",
            ));
        }
        let condition = group.conditions.first().map(encode::condition).transpose()?;
        let mut mutations: Vec<_> = group.steps.iter().flat_map(encode::step).collect();
        for mutation in &mut mutations {
            encode::add_origin(mutation, &group.origin);
        }
        Ok(Self {
            table: group.table.clone(),
            row: Bytes::copy_from_slice(row),
            may_be_repeated: condition.is_none() && !has_updates,
            condition,
            mutations,
            returns: matches!(group.steps[..], [Step::Update { returns: true, .. }]),
        })
    }

    /// Sends it. Returns whether its condition held; appends the new cells to `batch`.
    pub(in crate::service) async fn send(
        self,
        cluster: &Cluster,
        batch: &mut CellBatch,
    ) -> Result<bool, Failure> {
        let Self {
            table: name,
            row,
            condition,
            mut mutations,
            returns,
            may_be_repeated,
        } = self;
        let table = table(cluster, &name)?;
        let only = (mutations.len() == 1).then(|| mutations.pop()).flatten();
        let Some(mutation) = only else {
            let sent = table.mutate_row_by_message(&row, mutations, condition).await;
            return sent.map_err(|error| write_failure(&error, may_be_repeated));
        };
        let sent = table.mutate_by_message(mutation, condition).await;
        let (processed, found) = sent.map_err(|error| write_failure(&error, may_be_repeated))?;
        if let Some(found) = found.filter(|_| returns) {
            cells::add(batch, &found)?;
        }
        Ok(processed)
    }
}

/// Opens a scan. Sends nothing yet.
pub(in crate::service) fn open(
    cluster: &Cluster,
    name: &TableName,
    scan: &Scan,
) -> Result<RemoteScan, Failure> {
    let limit = scan.limit.map(|rows| u32::try_from(rows).unwrap_or(u32::MAX));
    Ok(RemoteScan {
        scanner: table(cluster, name)?.scanner_by_message(encode::scan(scan)?, limit),
        received: VecDeque::new(),
        renewed: Instant::now(),
    })
}

/// Appends the next result of a scan; `false` at its end. Fetches up to `wanted` rows when none is left.
pub(in crate::service) async fn next(
    scan: &mut RemoteScan,
    wanted: usize,
    batch: &mut CellBatch,
) -> Result<bool, Failure> {
    if scan.received.is_empty() {
        scan.renewed = Instant::now();
        let rows = u32::try_from(wanted).unwrap_or(u32::MAX);
        scan.scanner.set_rows_per_fetch(rows.max(1));
        let fetched = scan.scanner.next_batch().await;
        let fetched = fetched.map_err(|error| failure(&error))?;
        scan.received = fetched.unwrap_or_default().into();
    }
    match scan.received.front() {
        None => Ok(false),
        Some(row) => {
            cells::add(batch, row)?;
            scan.received.pop_front();
            Ok(true)
        }
    }
}

/// Appends a row that was read.
pub(in crate::service) fn add(batch: &mut CellBatch, row: &Row) -> Result<(), Failure> {
    cells::add(batch, row)
}
