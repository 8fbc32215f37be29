//! Writes, and waiting until they are durable. Plain writes join the log on the network thread, and so
//! do checks, increments, appends and atomic groups whose reads are in memory and whose rows are
//! unlocked. A write that would have to wait or read from disk runs on the pool, and so does a delete
//! of "the newest version".

use std::pin::pin;
use std::sync::Arc;

use basalt_engine::Commit;
use basalt_engine::Error;
use basalt_engine::cell::{CellBatch, OnShortage};
use basalt_engine::engine::GroupOutcome;
use basalt_engine::op::{AtomicGroup, GroupStep, ReadTier, RowMutation, Writes};
use basalt_engine::schema::{Durability, TableName};
use smallvec::SmallVec;
use tokio::time::Instant;

use super::charge::hold_back;
use super::group::{Group, GroupDone, INLINE_CELLS, Step, reads};
use super::{Failure, gather};
use crate::limits::admission::Class;
use crate::server::Server;

/// A row's worth of nothing yet.
pub(crate) fn mutation(row: &[u8], durability: Durability) -> RowMutation<'_> {
    RowMutation {
        row,
        writes: Writes::new(),
        durability,
    }
}

/// Refuses a call with more cells than a call may have.
pub(crate) fn check_cells(server: &Server, cells: usize) -> Result<(), Failure> {
    let limit = server.config().thrift.max_cells_per_call;
    if cells > limit {
        return Err(Failure::illegal_argument(format!(
            "the call has {cells} cells; thrift.max_cells_per_call is {limit}: send them in several calls (HappyBase: \
             batch(batch_size=...)), or raise it"
        )));
    }
    Ok(())
}

/// Applies mutations in the engine, and records them for the key visualiser.
fn write(server: &Server, table: &TableName, mutations: &[RowMutation<'_>]) -> Result<Commit, Failure> {
    let commit = server.engine().mutate(table, mutations)?;
    server.record_writes(table, mutations);
    Ok(commit)
}

/// Applies the writes that `build` makes of `arguments`, each row atomically, and waits until they
/// are durable and visible. `arguments` is owned because the work may move to the pool.
pub(crate) async fn apply<A, B>(
    server: &Arc<Server>,
    table: TableName,
    arguments: A,
    build: B,
) -> Result<(), Failure>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<RowMutation<'a>>, Failure> + Send + 'static,
{
    let begun = pin!(begin(server, table, arguments, build)).await;
    pin!(end(begun)).await
}

/// Waits for writes that were begun ([`begin`]).
pub(crate) async fn end(begun: Result<Option<Commit>, Failure>) -> Result<(), Failure> {
    match begun? {
        Some(commit) => pin!(committed(commit)).await,
        None => Ok(()),
    }
}

/// Applies writes as [`apply`] does; the caller waits for the commit ([`end`]). `None` if there
/// are none. `arguments` is dropped: while many batches wait for the log, their arguments would push
/// each other out of the processor's cache.
pub(crate) async fn begin<A, B>(
    server: &Arc<Server>,
    table: TableName,
    arguments: A,
    build: B,
) -> Result<Option<Commit>, Failure>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<RowMutation<'a>>, Failure> + Send + 'static,
{
    server.admission().admit()?;
    let tried = try_write(server, &table, &build(&arguments)?)?;
    match tried {
        Tried::Written(commit) => Ok(commit),
        // Boxed: most writes need not wait.
        Tried::MustWait { until, on_pool } => {
            Box::pin(async move {
                hold_back(until).await;
                if !on_pool {
                    return Ok(Some(write(server, &table, &build(&arguments)?)?));
                }
                server.admission().admit_to_queue()?;
                let work = move |server: &Server| write(server, &table, &build(&arguments)?);
                Ok(Some(server.run_queued(Class::User, work).await?))
            })
            .await
        }
    }
}

/// Outcome of [`try_write`].
enum Tried {
    /// `None` if there was nothing to write.
    Written(Option<Commit>),
    MustWait {
        /// Until then, because the user has used up what a quota allows.
        until: Option<Instant>,
        /// Whether the writes are to run on the pool.
        on_pool: bool,
    },
}

/// Charges writes, and applies them if they need not wait.
fn try_write(server: &Server, table: &TableName, mutations: &[RowMutation<'_>]) -> Result<Tried, Failure> {
    let cells: usize = mutations.iter().map(|mutation| mutation.writes.len()).sum();
    check_cells(server, cells)?;
    if mutations.iter().all(|mutation| mutation.writes.is_empty()) {
        return Ok(Tried::Written(None));
    }
    let until = server.charge_writes(table, mutations)?.until();
    let on_pool = cells > INLINE_CELLS || mutations.iter().any(reads);
    if on_pool || until.is_some() {
        return Ok(Tried::MustWait { until, on_pool });
    }
    Ok(Tried::Written(Some(write(server, table, mutations)?)))
}

/// Waits for a commit, and as long as the engine wants its writer slowed down.
pub(super) async fn committed(commit: Commit) -> Result<(), Failure> {
    let pause = commit.pause();
    if !commit.is_synced() {
        gather::others().await;
    }
    commit.await?;
    if !pause.is_zero() {
        Box::pin(tokio::time::sleep(pause)).await;
    }
    Ok(())
}

/// Applies a group under the locks of its rows, and waits until it is durable. Runs on the network
/// thread if its reads are in memory and its rows are unlocked, on the pool otherwise.
pub(crate) async fn group<A, B>(
    server: &Arc<Server>,
    mut cells: CellBatch,
    arguments: A,
    build: B,
) -> Result<GroupDone, Failure>
where
    A: Send + 'static,
    B: for<'a> Fn(&'a A) -> Result<Group<'a>, Failure> + Send + 'static,
{
    server.admission().admit()?;
    let until = server.charge_group(|| build(&arguments))?.until();
    hold_back(until).await;
    let tried = try_group(server, &build(&arguments)?, ReadTier::Memory, &mut cells)?;
    let outcome = if let Some(outcome) = tried {
        outcome
    } else {
        server.admission().admit_to_queue()?;
        // Refuse instead of waiting: rows' locks are held, and a network thread may wait for them.
        cells.set_on_shortage(OnShortage::Refuse);
        let work = move |server: &Server| {
            let outcome = try_group(server, &build(&arguments)?, ReadTier::All, &mut cells)?;
            Ok((outcome, cells))
        };
        let outcome;
        (outcome, cells) = Box::pin(server.run_queued(Class::User, work)).await?;
        outcome.expect("only a call that may not wait can be without an answer")
    };
    if let Some(commit) = outcome.commit {
        pin!(committed(commit)).await?;
    }
    Ok(GroupDone {
        processed: outcome.processed,
        cells,
    })
}

/// Applies a group in the engine, and records it for the key visualiser. `None` if that would have to
/// wait or to read from disk.
fn try_group(
    server: &Server,
    group: &Group<'_>,
    tier: ReadTier,
    cells: &mut CellBatch,
) -> Result<Option<GroupOutcome>, Failure> {
    check_cells(server, group.cells())?;
    if tier == ReadTier::Memory && group.is_long() {
        return Ok(None);
    }
    let steps: SmallVec<[GroupStep<'_>; 1]> = group.steps.iter().map(Step::for_engine).collect();
    let wanted = AtomicGroup {
        conditions: &group.conditions,
        steps: &steps,
        nonce: group.nonce,
    };
    let outcome = match server.engine().apply_group(&group.table, &wanted, tier, cells) {
        Err(Error::NotInMemory) => return Ok(None),
        outcome => outcome?,
    };
    server.record_group(group, outcome.commit.is_some(), cells);
    Ok(Some(outcome))
}
