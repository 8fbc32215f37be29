//! Writes, and waiting until they are durable. Plain ones join the log on the network thread, and so do checks, increments and appends
//! that find what they read in memory and their row unlocked. What would have to wait or read from disk runs on the pool, and so does a
//! delete of "the newest version".

use std::pin::pin;
use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::cell::{CellBatch, OnShortage};
use basalt_engine::id::RegionId;
use basalt_engine::op::{Check, ReadTier, RowMutation, RowUpdate, Write};
use basalt_engine::schema::{Durability, TableName};
use basalt_engine::wal::Commit;
use bytes::Bytes;
use smallvec::SmallVec;

use super::charge::{hold_back, mutation_bytes, update_bytes};
use super::{Caller, Failure, Server, from_thrift, gather};

/// A write of more cells than this runs on the pool.
const INLINE_CELLS: usize = 100_000;
/// An increment of more columns than this does not hold the network thread.
const INLINE_COLUMNS: usize = 64;

/// A row's worth of nothing yet.
pub(crate) fn mutation(row: &[u8], durability: Durability) -> RowMutation<'_> {
    RowMutation {
        row,
        writes: SmallVec::new(),
        durability,
    }
}

/// Whether applying the mutation reads first: a delete of "the newest version" looks for it.
fn reads(mutation: &RowMutation<'_>) -> bool {
    mutation
        .writes
        .iter()
        .any(|write| matches!(write, Write::DeleteVersion { timestamp: None, .. }))
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

/// Gives mutations to the engine, and tells the key visualiser. With `region`, all of them are one
/// edit of that region.
fn write(
    server: &Server,
    table: &TableName,
    region: Option<RegionId>,
    mutations: &[RowMutation<'_>],
) -> Result<Commit, Failure> {
    let commit = match region {
        None => server.engine().mutate(table, mutations)?,
        Some(region) => server.engine().mutate_region(table, region, mutations)?,
    };
    server.wrote(table, mutations);
    Ok(commit)
}

/// Applies what `build` makes of `arguments`, each row atomically, and waits until it is durable and visible. `arguments` is
/// owned because the work may move to the pool.
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
    apply_in(server, table, None, arguments, build).await
}

/// Applies mutations as [`apply`] does. With `region`, all of them atomically; then all rows must be
/// in that region.
pub(crate) async fn apply_in<A, B>(
    server: &Arc<Server>,
    table: TableName,
    region: Option<RegionId>,
    arguments: A,
    build: B,
) -> Result<(), Failure>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<RowMutation<'a>>, Failure> + Send + 'static,
{
    server.admission().admit()?;
    let (until, on_pool, commit) = {
        let mutations = build(&arguments)?;
        let cells: usize = mutations.iter().map(|mutation| mutation.writes.len()).sum();
        check_cells(server, cells)?;
        if mutations.iter().all(|mutation| mutation.writes.is_empty()) {
            return Ok(());
        }
        let until = server.charge_writes(&table, &mutations)?.until();
        let on_pool = cells > INLINE_CELLS || mutations.iter().any(reads);
        if on_pool || until.is_some() {
            (until, on_pool, None)
        } else {
            (None, false, Some(write(server, &table, region, &mutations)?))
        }
    };
    hold_back(until).await;
    let commit = match commit {
        Some(commit) => commit,
        None if on_pool => {
            server.admission().admit_to_line()?;
            Box::pin(server.in_line(move |server| write(server, &table, region, &build(&arguments)?))).await?
        }
        None => write(server, &table, region, &build(&arguments)?)?,
    };
    pin!(committed(commit)).await
}

/// Waits for a commit, and as long as the engine wants its writer slowed down.
pub(crate) async fn committed(commit: Commit) -> Result<(), Failure> {
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

/// The parts of a check-and-mutate, borrowed from its arguments: table, row, check, what to write.
pub(crate) type CheckParts<'a> = (&'a Bytes, &'a Bytes, Check<'a>, RowMutation<'a>);

/// Runs a check and its mutation under the row's lock: on the network thread if memory has what the check reads and nobody else
/// has the row, on the pool otherwise.
pub(crate) async fn check<A, B>(server: &Arc<Server>, arguments: A, parts: B) -> Result<bool, Failure>
where
    A: Send + 'static,
    B: for<'a> Fn(&'a A) -> Result<CheckParts<'a>, Failure> + Send + 'static,
{
    server.admission().admit()?;
    let charged = server.charge_update(|| {
        let (table, row, _, mutation) = parts(&arguments)?;
        let bytes = mutation_bytes(&mutation);
        Ok((from_thrift::table(Some(table))?, &row[..], bytes))
    })?;
    hold_back(charged.until()).await;
    let attempt = |server: &Server, arguments: &A, parts: &B, tier: ReadTier| {
        let (table, row, check, mutation) = parts(arguments)?;
        if mutation.row != &from_thrift::row(Some(row))?[..] {
            return Err(Failure::do_not_retry("Action's getRow must match"));
        }
        check_cells(server, mutation.writes.len())?;
        let table = from_thrift::table(Some(table))?;
        let done = match tier {
            ReadTier::Memory => server.engine().try_check_and_mutate(&table, &check, &mutation),
            ReadTier::All => server.engine().check_and_mutate(&table, &check, &mutation),
        };
        let Some(commit) = in_memory(done)? else {
            return Ok(None);
        };
        server.checked(&table, &mutation, commit.is_some());
        Ok(Some(commit))
    };
    let commit = if let Some(commit) = attempt(server, &arguments, &parts, ReadTier::Memory)? {
        commit
    } else {
        server.admission().admit_to_line()?;
        let on_pool = server.in_line(move |server| attempt(server, &arguments, &parts, ReadTier::All));
        let done = Box::pin(on_pool).await?;
        done.expect("only a call that may not wait can be without an answer")
    };
    match commit {
        None => Ok(false),
        Some(commit) => committed(commit).await.map(|()| true),
    }
}

/// What a call that may not wait came to; `None` when it would have had to.
fn in_memory<T>(done: basalt_engine::Result<T>) -> Result<Option<T>, Failure> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Error::NotInMemory) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A read-modify-write of one row, borrowed from its arguments.
pub(crate) struct Update<'a> {
    pub(crate) table: Option<&'a Bytes>,
    pub(crate) row: Option<&'a Bytes>,
    pub(crate) change: RowUpdate<'a>,
    pub(crate) ttl_ms: Option<i64>,
    pub(crate) durability: Durability,
}

/// Runs an increment or append under the row's lock, as [`check`] does, and waits until it is durable. Returns the new cells as one
/// row.
pub(crate) async fn update<A, B>(
    server: &Arc<Server>,
    caller: &mut Caller,
    arguments: A,
    build: B,
) -> Result<CellBatch, Failure>
where
    A: Send + 'static,
    B: for<'a> Fn(&'a A) -> Result<Update<'a>, Failure> + Send + 'static,
{
    server.admission().admit()?;
    let charged = server.charge_update(|| {
        let update = build(&arguments)?;
        let row = from_thrift::row(update.row)?;
        let bytes = update_bytes(row, &update.change);
        Ok((from_thrift::table(update.table)?, row, bytes))
    })?;
    hold_back(charged.until()).await;
    let attempt = |server: &Server, arguments: &A, build: &B, tier: ReadTier, batch: &mut CellBatch| {
        let update = build(arguments)?;
        let columns = match &update.change {
            RowUpdate::Increment(columns) => columns.len(),
            RowUpdate::Append(columns) => columns.len(),
        };
        check_cells(server, columns)?;
        if tier == ReadTier::Memory && columns > INLINE_COLUMNS {
            return Ok(None);
        }
        let table = from_thrift::table(update.table)?;
        let row = from_thrift::row(update.row)?;
        let (change, ttl_ms, durability) = (&update.change, update.ttl_ms, update.durability);
        let done = match tier {
            ReadTier::Memory => server
                .engine()
                .try_update(&table, row, change, ttl_ms, durability, batch),
            ReadTier::All => server
                .engine()
                .update(&table, row, change, ttl_ms, durability, batch),
        };
        let commit = in_memory(done)?;
        if commit.is_some() {
            server.updated(&table, row, batch);
        }
        Ok::<_, Failure>(commit)
    };
    let mut batch = caller.take_batch();
    let now = attempt(server, &arguments, &build, ReadTier::Memory, &mut batch)?;
    let (commit, batch) = if let Some(commit) = now {
        (commit, batch)
    } else {
        server.admission().admit_to_line()?;
        // Refuse instead of waiting: the row's lock is held, and a network thread may wait for it.
        batch.set_on_shortage(OnShortage::Refuse);
        let work = move |server: &Server| {
            let commit = attempt(server, &arguments, &build, ReadTier::All, &mut batch)?;
            Ok((commit, batch))
        };
        let (commit, batch) = Box::pin(server.in_line(work)).await?;
        let commit = commit.expect("only a call that may not wait can be without an answer");
        (commit, batch)
    };
    pin!(committed(commit)).await?;
    Ok(batch)
}
