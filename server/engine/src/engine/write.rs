//! The write path, as the module comment of `region` describes it: check, lock rows, plan, lock regions, log, apply.

use std::cell::Cell as Slot;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use smallvec::SmallVec;

use crate::catalog::{Catalog, SystemTable, Table, Tables};
use crate::cell::{BATCH_FREE_BYTES, Cell, CellBatch, KeyBuf, OnShortage, ttl_ms, ttl_tag};
use crate::clock::Timestamps;
use crate::error::{Error, Result};
use crate::id::{RegionId, SeqId};
use crate::op::{Check, ReadTier, RowMutation, RowUpdate, Write};
use crate::region::{
    LockMode, PlannedCell, Region, RowGuards, RowPlan, Shared, Stored, Times, check, check_edit,
    check_update, family_index, logging_of, newest_cell, newest_timestamps, passes, pause, pause_of_row,
    plan_update, stronger, write_rows,
};
use crate::schema::{Durability, TableName};
use crate::sync::{Loaded, RwLockReadGuard};
use crate::wal::{Commit, Logging};

/// What a write returns, with the regions that should be flushed now.
pub(super) struct Written<T> {
    pub(super) result: T,
    pub(super) flush: SmallVec<[RegionId; 1]>,
}

/// The rows of one region in a batch.
struct Group<'t> {
    region: &'t Arc<Region>,
    /// Positions in the batch, ascending.
    rows: SmallVec<[usize; 1]>,
}

/// Applies a batch of mutations. With `only`, all rows must be in that region, so that the batch is
/// one edit.
pub(super) fn mutate(
    catalog: &Catalog,
    name: &TableName,
    mutations: &[RowMutation<'_>],
    only: Option<RegionId>,
) -> Result<Written<Commit>> {
    if mutations.is_empty() {
        return Err(Error::InvalidArgument(
            "A batch needs at least one mutation".into(),
        ));
    }
    let shared = catalog.shared();
    let time = AssignedTime(catalog);
    loop {
        let tables = catalog.tables();
        let table = writable_table(&tables, name)?;
        let modes: SmallVec<[LockMode; 4]> = all(mutations, |mutation| {
            check(&table.descriptor, mutation, shared.options.cell_max_bytes)
        })?;
        let groups = group(table, mutations.iter().map(|mutation| mutation.row));
        if let Some(only) = only
            && groups.iter().any(|group| group.region.id() != only)
        {
            return Err(Error::NotServingRegion(format!(
                "not all rows are in region {only}, which may have been split or merged"
            )));
        }
        for group in &groups {
            check_room(shared, table, group.region)?;
        }
        let rows = groups.iter().flat_map(|group| {
            let (mutations, modes) = (mutations, &modes);
            group
                .rows
                .iter()
                .map(move |index| (group.region.id(), mutations[*index].row, modes[*index]))
        });
        let rows = shared.row_locks.lock(rows, shared.options.row_lock_wait)?;
        let Some(now) = time.now() else {
            drop(rows);
            time.mark()?;
            continue;
        };
        let mut plans = Vec::with_capacity(groups.len());
        let (position, ahead_ms) = (Slot::new(0), Slot::new(0));
        for group in &groups {
            let of_region: SmallVec<[RowPlan<'_>; 1]> = all(&group.rows, |index| {
                let times = Times {
                    now,
                    put_floor: 0,
                    row: rows.times(position.replace(position.get() + 1)),
                };
                let plan = plan_mutation(shared, table, group.region, &mutations[*index], times)?;
                ahead_ms.set(plan.ahead_ms.max(ahead_ms.get()));
                Ok(plan)
            })?;
            plans.push(of_region);
        }
        time.note_rows(now, ahead_ms.get());
        let mut bytes = 0;
        for plans in &plans {
            bytes += check_edit(&table.descriptor, plans)?;
        }
        // For all regions at once: when the disk refuses one, nothing of the batch has been written.
        let mut reserved = shared.wal.reserve(plans.len(), bytes)?;
        let Some(guards) = lock_regions(catalog, &tables, table, &groups) else {
            continue;
        };
        let mut last = None;
        for ((group, plans), guard) in groups.iter().zip(&plans).zip(&guards) {
            // Most rows of a batch ask for the same: what that means is looked up once.
            let asked = group
                .rows
                .chunk_by(|one, next| mutations[*one].durability == mutations[*next].durability);
            let logging = asked
                .map(|rows| logging_of(mutations[rows[0]].durability, &table.descriptor))
                .fold(Logging::Skip, stronger);
            // Commits are published in order, so the last one stands for all.
            last = Some(write_rows(
                shared,
                group.region,
                plans,
                logging,
                &mut reserved,
                guard,
            )?);
        }
        drop(guards);
        let flush = groups
            .iter()
            .filter_map(|group| flush_wanted(shared, table, group.region))
            .collect();
        let commit = last.expect("a batch has at least one mutation, so at least one group");
        return Ok(Written {
            flush,
            result: paced(shared, table, groups.iter().map(|group| &**group.region), commit)
                .with_pause(pause_of_row(ahead_ms.get())),
        });
    }
}

/// Applies a mutation if the check on its row passes. With [`ReadTier::Memory`] it waits for nothing: see [`lock_row`] and [`confirm`].
pub(super) fn check_and_mutate(
    catalog: &Catalog,
    name: &TableName,
    condition: &Check<'_>,
    mutation: &RowMutation<'_>,
    tier: ReadTier,
) -> Result<Written<Option<Commit>>> {
    let shared = catalog.shared();
    let time = AssignedTime(catalog);
    loop {
        let tables = catalog.tables();
        let table = writable_table(&tables, name)?;
        // HBase looks for the families of the mutation when the check has passed, so a check that fails is no error.
        let unknown_family = match check(&table.descriptor, mutation, shared.options.cell_max_bytes) {
            Err(error @ Error::NoSuchFamily { .. }) => Some(error),
            checked => checked.map(|_| None)?,
        };
        let family = family_index(&table.descriptor, condition.family)?;
        let groups = group(table, std::iter::once(mutation.row));
        let region = groups[0].region;
        check_room(shared, table, region)?;
        let row_lock = lock_row(shared, region, mutation.row, tier)?;
        let Some(now) = time.now() else {
            drop(row_lock);
            time.mark()?;
            continue;
        };
        let version = region.version();
        if !Arc::ptr_eq(&version.table, &table.descriptor) {
            continue;
        }
        let stored = newest_cell(
            &version,
            mutation.row,
            family,
            condition.qualifier,
            shared.moment(),
            tier,
            &mut scratch(shared, tier),
            |cell| {
                (
                    cell.key.timestamp(),
                    passes(condition.op, condition.value, Some(cell.value)),
                )
            },
        )?;
        let (put_floor, passed) = stored.unwrap_or((0, passes(condition.op, condition.value, None)));
        if !passed {
            if !catalog.is_still_current(&tables, table) {
                continue;
            }
            // The answer rests on what was read, which may not be durable yet.
            drop(row_lock);
            confirm(shared, tier)?;
            return Ok(Written {
                result: None,
                flush: SmallVec::new(),
            });
        }
        if let Some(error) = unknown_family {
            return Err(error);
        }
        let times = Times {
            now,
            put_floor,
            row: row_lock.times(0),
        };
        let plan = plan_mutation(shared, table, region, mutation, times)?;
        let ahead_ms = plan.ahead_ms;
        time.note_rows(now, ahead_ms);
        let plans = [plan];
        let bytes = check_edit(&table.descriptor, &plans)?;
        let mut reserved = shared.wal.reserve(plans.len(), bytes)?;
        let Some(guards) = lock_regions(catalog, &tables, table, &groups) else {
            continue;
        };
        let logging = logging_of(mutation.durability, &table.descriptor);
        let commit = write_rows(shared, region, &plans, logging, &mut reserved, &guards[0])?;
        drop(guards);
        return Ok(Written {
            flush: flush_wanted(shared, table, region).into_iter().collect(),
            result: Some(paced(shared, table, [&**region], commit).with_pause(pause_of_row(ahead_ms))),
        });
    }
}

/// An increment or append of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update<'a> {
    row: &'a [u8],
    change: &'a RowUpdate<'a>,
    ttl_ms: Option<i64>,
    durability: Durability,
}

impl<'a> Update<'a> {
    pub(super) fn new(
        row: &'a [u8],
        change: &'a RowUpdate<'a>,
        ttl_ms: Option<i64>,
        durability: Durability,
    ) -> Self {
        Self {
            row,
            change,
            ttl_ms,
            durability,
        }
    }
}

/// Increments or appends. With [`ReadTier::Memory`] it waits for nothing: see [`lock_row`] and [`confirm`].
pub(super) fn update(
    catalog: &Catalog,
    name: &TableName,
    update: Update<'_>,
    tier: ReadTier,
    out: &mut CellBatch,
) -> Result<Written<Commit>> {
    let row = update.row;
    let shared = catalog.shared();
    let cell_max_bytes = shared.options.cell_max_bytes;
    let time = AssignedTime(catalog);
    loop {
        let tables = catalog.tables();
        let table = writable_table(&tables, name)?;
        check_update(&table.descriptor, row, update.change, cell_max_bytes)?;
        let groups = group(table, std::iter::once(row));
        let region = groups[0].region;
        check_room(shared, table, region)?;
        let row_lock = lock_row(shared, region, row, tier)?;
        let Some(now) = time.now() else {
            drop(row_lock);
            time.mark()?;
            continue;
        };
        let version = region.version();
        if !Arc::ptr_eq(&version.table, &table.descriptor) {
            continue;
        }
        let mut copies = shared
            .store
            .reader
            .calls
            .account(BATCH_FREE_BYTES, under_lock(tier));
        let newest = |family: usize, qualifier: &[u8]| {
            let stored = |cell: Cell<'_>| {
                copies.add(VALUE_COPIES * cell.value.len())?;
                Ok(Stored {
                    timestamp: cell.key.timestamp(),
                    value: cell.value.to_vec(),
                    ttl_ms: ttl_ms(cell.tags),
                })
            };
            newest_cell(
                &version,
                row,
                family,
                qualifier,
                shared.moment(),
                tier,
                out,
                stored,
            )?
            .transpose()
        };
        let put_time = row_lock.times(0).put(row, now)?;
        time.note_rows(now, put_time - now);
        let plan = plan_update(
            &table.descriptor,
            row,
            update.change,
            update.ttl_ms,
            put_time,
            cell_max_bytes,
            newest,
        );
        let plan = match plan {
            Ok(plan) => plan,
            // A refusal because of a stored value is an answer like any other: it must not rest on what may be lost.
            Err(error @ Error::DoNotRetry(_)) => {
                drop(row_lock);
                confirm(shared, tier)?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        // Before anything is written: from there on the call must not fail.
        out.reserve(plan.cells.len(), result_bytes(table, &plan))?;
        let plans = [plan];
        let bytes = check_edit(&table.descriptor, &plans)?;
        let mut reserved = shared.wal.reserve(plans.len(), bytes)?;
        let Some(guards) = lock_regions(catalog, &tables, table, &groups) else {
            continue;
        };
        let logging = logging_of(update.durability, &table.descriptor);
        let commit = write_rows(shared, region, &plans, logging, &mut reserved, &guards[0])?;
        drop(guards);
        push_result(table, &plans[0], commit.seq(), out);
        return Ok(Written {
            flush: flush_wanted(shared, table, region).into_iter().collect(),
            result: paced(shared, table, [&**region], commit).with_pause(pause_of_row(put_time - now)),
        });
    }
}

/// Copies of a stored value that an update makes besides the one in its result: the new value, with
/// room to grow, and the log's.
const VALUE_COPIES: usize = 3;

/// The behaviour of a write that holds a row's lock when there is no memory for what it reads. It
/// does not wait, because a network thread may be waiting for the lock.
fn under_lock(tier: ReadTier) -> OnShortage {
    match tier {
        ReadTier::Memory => OnShortage::Leave,
        ReadTier::All => OnShortage::Refuse,
    }
}

/// The buffer for a stored cell that a write reads.
fn scratch(shared: &Shared, tier: ReadTier) -> CellBatch {
    let calls = &shared.store.reader.calls;
    CellBatch::charged_in(calls.account(BATCH_FREE_BYTES, under_lock(tier)))
}

/// Upper bound of the bytes that the written cells take in a batch.
fn result_bytes(table: &Table, plan: &RowPlan<'_>) -> usize {
    /// Bytes of a key besides its parts, and of a tag.
    const CELL_BYTES: usize = 64;
    let bytes = |cell: &PlannedCell<'_>| {
        let family = &table.descriptor.families[cell.family].name;
        plan.row.len() + family.len() + cell.qualifier.len() + cell.value.len() + CELL_BYTES
    };
    plan.cells.iter().map(bytes).sum()
}

/// The cells written, as one row of `out`.
/// REQUIRES: `out` has room for them ([`CellBatch::reserve`]).
fn push_result(table: &Table, plan: &RowPlan<'_>, seq: SeqId, out: &mut CellBatch) {
    for cell in &plan.cells {
        let family = &table.descriptor.families[cell.family].name;
        let key = KeyBuf::new(plan.row, family, cell.qualifier, cell.timestamp, cell.cell_type);
        let tags = cell.ttl_ms.map(ttl_tag);
        out.push(Cell {
            key: key.as_key(),
            value: &cell.value,
            tags: tags.as_ref().map_or(&[], |tags| tags.as_slice()),
            seq,
        });
    }
    out.end_row(false);
}

/// Assigned time for one write.
struct AssignedTime<'c>(&'c Catalog);

impl AssignedTime<'_> {
    /// Assigned time; `None` if it is so far beyond the mark on disk that recovery would take it
    /// for a client's. Then the caller releases its row locks, updates the mark ([`Self::mark`])
    /// and starts again.
    fn now(&self) -> Option<i64> {
        let shared = self.0.shared();
        let now = shared.timestamps.issue(&*shared.clock);
        (!shared.timestamps.is_beyond_mark(now)).then_some(now)
    }

    /// Updates the mark on disk.
    #[cold]
    fn mark(&self) -> Result<()> {
        self.0.keep_high_water(Timestamps::lags_mark)
    }

    /// Records how far rows went ahead. Must be called before they are logged.
    fn note_rows(&self, now: i64, ahead_ms: i64) {
        if ahead_ms > 0 {
            self.0.shared().timestamps.note_row(now + ahead_ms);
        }
    }
}

/// Locks a row for a write that depends on what it reads. With [`ReadTier::Memory`] a row that somebody else has is
/// [`Error::NotInMemory`].
fn lock_row<'s>(shared: &'s Shared, region: &Region, row: &[u8], tier: ReadTier) -> Result<RowGuards<'s>> {
    let wanted = std::iter::once((region.id(), row, LockMode::Exclusive));
    match tier {
        ReadTier::All => shared.row_locks.lock(wanted, shared.options.row_lock_wait),
        ReadTier::Memory => shared
            .row_locks
            .lock(wanted, Duration::ZERO)
            .map_err(|_| Error::NotInMemory),
    }
}

/// Makes sure that an answer without a write of its own does not rest on what may be lost: all that was read is durable. With
/// [`ReadTier::Memory`] it is [`Error::NotInMemory`] when that would have to be waited for.
fn confirm(shared: &Shared, tier: ReadTier) -> Result<()> {
    let read = shared.wal.last_assigned();
    match tier {
        ReadTier::All => shared.wal.wait_published(read),
        ReadTier::Memory if shared.wal.read_point() >= read => Ok(()),
        ReadTier::Memory => Err(Error::NotInMemory),
    }
}

/// What `of` makes of each item. Collecting results would not say how many there are, so that room grows piece by piece.
fn all<'i, I, T, const N: usize>(items: &'i [I], of: impl Fn(&'i I) -> Result<T>) -> Result<SmallVec<[T; N]>>
where
    [T; N]: smallvec::Array<Item = T>,
{
    let mut made = SmallVec::with_capacity(items.len());
    for item in items {
        made.push(of(item)?);
    }
    Ok(made)
}

fn writable_table<'t>(tables: &'t Tables, name: &TableName) -> Result<&'t Arc<Table>> {
    if SystemTable::named(name).is_some() {
        return Err(Error::DoNotRetry(format!(
            "{name} is a system table: the server alone writes to it"
        )));
    }
    let table = tables.enabled_table(name)?;
    if table.descriptor.read_only() {
        return Err(Error::DoNotRetry(format!("table {name} is read only")));
    }
    Ok(table)
}

/// The rows by region, in the order of region ids: the order in which several regions are locked.
fn group<'t, 'r>(table: &'t Table, rows: impl Iterator<Item = &'r [u8]>) -> SmallVec<[Group<'t>; 1]> {
    let mut groups: SmallVec<[Group<'t>; 1]> = SmallVec::new();
    // Made with the second region: a batch of one region needs no map.
    let mut positions: HashMap<RegionId, usize> = HashMap::new();
    for (index, row) in rows.enumerate() {
        let region = table.region_of(row);
        let new = groups.len();
        let at = match groups.first() {
            None => new,
            Some(first) if Arc::ptr_eq(first.region, region) => 0,
            Some(_) => *positions.entry(region.id()).or_insert(new),
        };
        if at == new {
            groups.push(Group {
                region,
                rows: SmallVec::new(),
            });
        }
        groups[at].rows.push(index);
    }
    groups.sort_by_key(|group| group.region.id());
    groups
}

/// Keeps the regions from being frozen, split or dropped, if the table is still what it was when the write was checked.
fn lock_regions<'t>(
    catalog: &Catalog,
    tables: &Loaded<Tables>,
    table: &Arc<Table>,
    groups: &[Group<'t>],
) -> Option<SmallVec<[RwLockReadGuard<'t, ()>; 1]>> {
    let guards = groups.iter().map(|group| group.region.updates.read()).collect();
    catalog.is_still_current(tables, table).then_some(guards)
}

fn plan_mutation<'a>(
    shared: &Shared,
    table: &Table,
    region: &Region,
    mutation: &RowMutation<'a>,
    times: Times<'_>,
) -> Result<RowPlan<'a>> {
    let deletes = mutation
        .writes
        .iter()
        .filter(|write| matches!(write, Write::DeleteVersion { .. }))
        .count();
    RowPlan::of_mutation(&table.descriptor, mutation, times, |family, qualifier| {
        // A table that was altered meanwhile is noticed before anything is written.
        let name = &table.descriptor.families[family].name;
        let version = region.version();
        let family = family_index(&version.table, name)?;
        newest_timestamps(
            &version,
            mutation.row,
            family,
            qualifier,
            deletes,
            shared.moment(),
            scratch(shared, ReadTier::All),
        )
    })
}

/// Refuses a write to a region that is not served or is damaged, when the disk has too little
/// space, or when the region's memstores or all of them together are too full; the texts about
/// memory are HBase's.
fn check_room(shared: &Shared, table: &Table, region: &Region) -> Result<()> {
    shared.servers.check_assigned(region)?;
    region.check_undamaged()?;
    shared.disk.check()?;
    check_log(shared)?;
    let limit = shared.blocking_bytes(&table.descriptor);
    let total_limit = shared.options.memstore_total_bytes;
    let exceeded = if region.accounted_bytes() > limit {
        limit
    } else if shared.memstore_total_bytes.load(Ordering::Acquire) > total_limit {
        total_limit
    } else {
        return Ok(());
    };
    region.blocked_writes.increment();
    shared.counters.blocked_writes.increment();
    Err(Error::RegionTooBusy(format!(
        "Over memstore limit={exceeded}, regionName={}, server=basalt",
        region.info().encoded_name
    )))
}

/// Refuses a write while the disk hangs: it would wait, and hold what it has, for as long as the disk likes.
fn check_log(shared: &Shared) -> Result<()> {
    let limit = shared.options.wal_stall;
    match shared.wal.waiting() {
        Some(waited) if waited > limit => {
            shared.counters.stalled_writes.increment();
            Err(Error::RegionTooBusy(format!(
                "The log has been waiting for the disk for {} ms, longer than wal.stall_ms = {}",
                waited.as_millis(),
                limit.as_millis()
            )))
        }
        _ => Ok(()),
    }
}

/// The commit with the pause that what is held in memory asks for, now that the write is accounted for.
fn paced<'r>(
    shared: &Shared,
    table: &Table,
    regions: impl IntoIterator<Item = &'r Region>,
    commit: Commit,
) -> Commit {
    let limit = shared.blocking_bytes(&table.descriptor);
    let total = shared.memstore_total_bytes.load(Ordering::Acquire);
    let of_all = pause(total, shared.options.memstore_total_bytes);
    let of_regions = regions
        .into_iter()
        .map(|region| pause(region.accounted_bytes(), limit));
    let longest = of_regions.fold(of_all, Duration::max);
    if !longest.is_zero() {
        shared.counters.delayed_writes.increment();
    }
    commit.with_pause(longest)
}

/// Brings the sum of memstore bytes up to date; names the region if it should be flushed.
fn flush_wanted(shared: &Shared, table: &Table, region: &Region) -> Option<RegionId> {
    let bytes = region.account(&shared.memstore_total_bytes);
    let limit = shared.flush_bytes(&table.descriptor);
    // What is frozen is being flushed already: counted in, every write during a flush would ask for one more.
    (bytes > limit && region.version().active_bytes() > limit).then(|| region.id())
}
