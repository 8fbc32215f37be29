//! The write path, as the module comment of `region` describes it: check, lock rows, plan, lock regions, log,
//! apply. Batches of plain mutations here; writes that read first in `atomic_group`.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::catalog::{Catalog, Table, Tables};
use crate::cell::{BATCH_FREE_BYTES, CellBatch};
use crate::clock::Timestamps;
use crate::error::{Error, Result};
use crate::id::{Nonce, RegionId, Uuid};
use crate::op::{ReadTier, RowMutation, Write};
use crate::record::NONCE_BYTES_MAX;
use crate::region::{
    LockMode, Made, Region, RowPlan, Shared, Times, check, check_edit, family_index, logging_of,
    newest_timestamps, pause, pause_of_row, stronger, write_rows,
};
use crate::schema::TableName;
use crate::seeded;
use crate::store::Reach;
use crate::sync::{Loaded, RwLockReadGuard};
use crate::wal::{Commit, Logging, origin_bytes};

/// The result of a write, with the regions that should be flushed now.
pub(super) struct WriteOutcome<T> {
    pub(super) result: T,
    pub(super) flush: SmallVec<[RegionId; 1]>,
}

/// The rows of one region in a batch.
pub(super) struct Group<'t> {
    pub(super) region: &'t Arc<Region>,
    /// Positions in the batch, ascending.
    pub(super) rows: SmallVec<[usize; 1]>,
}

/// Applies a batch of mutations that have passed the clusters `origin`.
pub(super) fn mutate(
    catalog: &Catalog,
    name: &TableName,
    mutations: &[RowMutation<'_>],
    origin: &[Uuid],
) -> Result<WriteOutcome<Commit>> {
    if mutations.is_empty() {
        return Err(Error::InvalidArgument(
            "A batch needs at least one mutation".into(),
        ));
    }
    let shared = catalog.shared();
    let time = AssignedTime(catalog);
    loop {
        let tables = catalog.tables();
        let table = writable_table(catalog, &tables, name)?;
        let cell_max_bytes = table.write_options.cell_limit(&shared.options);
        let mut modes: SmallVec<[LockMode; 4]> = SmallVec::with_capacity(mutations.len());
        let mut made = Made::new(shared, &table.descriptor);
        for mutation in mutations {
            modes.push(check(&table.descriptor, mutation, cell_max_bytes)?);
            made.add_writes(mutation.row, &mutation.writes)?;
        }
        // This may be a network thread, which does not wait for memory.
        let made = made.reserve(shared, Reach::DiskAtOnce.on_shortage())?;
        let groups = group(table, mutations.iter().map(|mutation| mutation.row));
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
        let (mut position, mut ahead_ms, mut delay_ms) = (0, 0, 0);
        for group in &groups {
            let mut of_region: SmallVec<[RowPlan<'_>; 1]> = SmallVec::with_capacity(group.rows.len());
            for index in &group.rows {
                let mutation = &mutations[*index];
                let times = Times {
                    now,
                    put_floor: 0,
                    row: rows.times(position),
                };
                position += 1;
                of_region.push(RowPlan::new(mutation.row));
                let plan = of_region.last_mut().expect("a plan was pushed just now");
                plan_mutation(shared, table, group.region, mutation, times, plan)?;
                ahead_ms = ahead_ms.max(plan.ahead_ms);
                delay_ms = delay_ms.max(plan.delay_ms);
            }
            plans.push(of_region);
        }
        time.note_rows(now, ahead_ms);
        let logging = |group: &Group<'_>| {
            // Most rows of a batch have the same options, which are therefore looked up once.
            let asked = group
                .rows
                .chunk_by(|one, next| mutations[*one].durability == mutations[*next].durability);
            asked
                .map(|rows| logging_of(mutations[rows[0]].durability, table.write_options.durability))
                .fold(Logging::Skip, stronger)
        };
        let Some(commit) = write_groups(catalog, (&tables, table), &groups, &plans, (origin, &[]), logging)?
        else {
            continue;
        };
        let commit = commit.with_pause(pause_of_row(delay_ms)).holding(made);
        let regions = groups.iter().map(|group| &**group.region);
        return Ok(settle(shared, table, regions, commit));
    }
}

/// Writes the planned rows of each group, with the logging that the group wants. `None`, with nothing
/// written, if the table has changed since the write was checked. The nonces stand in the last edit.
/// REQUIRES: there is a group, and a plan for each.
pub(super) fn write_groups<'t>(
    catalog: &Catalog,
    (tables, table): (&Loaded<Tables>, &Arc<Table>),
    groups: &[Group<'t>],
    plans: &[SmallVec<[RowPlan<'_>; 1]>],
    (origin, nonces): (&[Uuid], &[Nonce]),
    logging: impl Fn(&Group<'t>) -> Logging,
) -> Result<Option<Commit>> {
    let shared = catalog.shared();
    let mut bytes = (nonces.len() * NONCE_BYTES_MAX) as u64;
    for plans in plans {
        bytes += check_edit(&table.descriptor, plans)? + origin_bytes(origin.len()) as u64;
    }
    // For all regions at once: when the disk refuses one, nothing of the batch has been written.
    let mut reserved = shared.wal.reserve(plans.len(), bytes)?;
    let Some(guards) = lock_regions(catalog, tables, table, groups) else {
        return Ok(None);
    };
    let mut last = None;
    for (number, ((group, plans), guard)) in groups.iter().zip(plans).zip(&guards).enumerate() {
        let nonces = if number + 1 == groups.len() { nonces } else { &[] };
        // Commits are published in order, so the last one stands for all.
        last = Some(write_rows(
            shared,
            group.region,
            plans,
            nonces,
            origin,
            logging(group),
            &mut reserved,
            guard,
        )?);
    }
    Ok(last)
}

/// The buffer for a stored cell that a write reads.
pub(super) fn scratch(shared: &Shared, tier: ReadTier) -> CellBatch {
    let calls = &shared.store.reader.calls;
    CellBatch::charged_in(calls.account(BATCH_FREE_BYTES, Reach::under_lock(tier).on_shortage()))
}

/// Assigned time for one write.
pub(super) struct AssignedTime<'c>(pub(super) &'c Catalog);

impl AssignedTime<'_> {
    /// Assigned time; `None` if it is so far beyond the mark on disk that recovery would treat it
    /// as a client's. Then the caller releases its row locks, updates the mark ([`Self::mark`]) and
    /// starts again.
    pub(super) fn now(&self) -> Option<i64> {
        let shared = self.0.shared();
        let now = shared.timestamps.issue(&*shared.clock);
        let is_marked = !shared.timestamps.is_beyond_mark(now) || seeded::is_on("times-noted-after-the-log");
        is_marked.then_some(now)
    }

    /// Updates the mark on disk.
    #[cold]
    pub(super) fn mark(&self) -> Result<()> {
        self.0.keep_high_water(Timestamps::lags_mark)
    }

    /// Records how far rows went ahead. Must be called before they are logged.
    pub(super) fn note_rows(&self, now: i64, ahead_ms: i64) {
        if ahead_ms > 0 {
            self.0.shared().timestamps.note_row(now + ahead_ms);
        }
    }
}

pub(super) fn writable_table<'t>(
    catalog: &Catalog,
    tables: &'t Tables,
    name: &TableName,
) -> Result<&'t Arc<Table>> {
    catalog.system().check_writable(name)?;
    let table = tables.enabled_table(name)?;
    if table.write_options.is_read_only {
        return Err(Error::DoNotRetry(format!("table {name} is read only")));
    }
    Ok(table)
}

/// The rows by region, in the order of region ids, in which several regions are locked.
pub(super) fn group<'t, 'r>(
    table: &'t Table,
    rows: impl ExactSizeIterator<Item = &'r [u8]>,
) -> SmallVec<[Group<'t>; 1]> {
    let mut groups: SmallVec<[Group<'t>; 1]> = SmallVec::new();
    // Made with the second region: a batch of one region needs no map.
    let mut positions: HashMap<RegionId, usize> = HashMap::new();
    let count = rows.len();
    for (index, row) in rows.enumerate() {
        let region = table.region_of(row);
        let new = groups.len();
        let at = match groups.first() {
            None => new,
            Some(first) if Arc::ptr_eq(first.region, region) => 0,
            Some(_) => *positions.entry(region.id()).or_insert(new),
        };
        if at == new {
            // The first region is mostly the only one.
            let rows = if new == 0 { count } else { 1 };
            groups.push(Group {
                region,
                rows: SmallVec::with_capacity(rows),
            });
        }
        groups[at].rows.push(index);
    }
    groups.sort_by_key(|group| group.region.id());
    groups
}

/// Locks the regions against freezes, splits and drops. `None` if the table has changed since the
/// write was checked.
fn lock_regions<'t>(
    catalog: &Catalog,
    tables: &Loaded<Tables>,
    table: &Arc<Table>,
    groups: &[Group<'t>],
) -> Option<SmallVec<[RwLockReadGuard<'t, ()>; 1]>> {
    let guards = groups.iter().map(|group| group.region.updates.read()).collect();
    catalog.is_still_current(tables, table).then_some(guards)
}

#[inline]
pub(super) fn plan_mutation<'a>(
    shared: &Shared,
    table: &Table,
    region: &Region,
    mutation: &RowMutation<'a>,
    times: Times<'_>,
    plan: &mut RowPlan<'a>,
) -> Result<()> {
    let deletes = mutation
        .writes
        .iter()
        .filter(|write| matches!(write, Write::DeleteVersion { .. }))
        .count();
    plan.add_mutation(&table.descriptor, mutation, times, |family, qualifier| {
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
            shared.read_view(),
            scratch(shared, ReadTier::All),
        )
    })
}

/// Refuses a write to a region that is not served or is damaged, when the disk has too little
/// space, or when the region's memstores or all of them together are too full; the texts about
/// memory are HBase's.
pub(super) fn check_room(shared: &Shared, table: &Table, region: &Region) -> Result<()> {
    shared.check_gate(region)?;
    region.check_undamaged()?;
    shared.disk.check()?;
    check_log(shared)?;
    let limit = table.write_options.blocking_bytes(&shared.options);
    let total_limit = shared.options.memstore_total_bytes;
    let exceeded = if region.memstore_bytes() > limit {
        limit
    } else if shared.memstore_bytes() > total_limit {
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

/// Refuses a write while the disk hangs: it would wait, and keep its memory, without limit.
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

/// Ends a write: adds the pause to the commit that the memstores' fill asks for, and names the
/// regions that should be flushed.
pub(super) fn settle<'r>(
    shared: &Shared,
    table: &Table,
    regions: impl IntoIterator<Item = &'r Region>,
    commit: Commit,
) -> WriteOutcome<Commit> {
    let blocking_bytes = table.write_options.blocking_bytes(&shared.options);
    let flush_bytes = table.write_options.flush_bytes(&shared.options);
    let mut longest = pause(shared.memstore_bytes(), shared.options.memstore_total_bytes);
    let mut flush = SmallVec::new();
    for region in regions {
        let version = region.version();
        longest = longest.max(pause(version.memstore_bytes(), blocking_bytes));
        // Frozen memstores are being flushed already; if they counted, every write during a flush
        // would ask for another.
        if version.active_bytes() > flush_bytes {
            flush.push(region.id());
        }
    }
    if !longest.is_zero() {
        shared.counters.delayed_writes.increment();
    }
    WriteOutcome {
        flush,
        result: commit.with_pause(longest),
    }
}
