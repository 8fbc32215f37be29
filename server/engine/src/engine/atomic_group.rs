//! Atomic groups: writes that depend on stored cells, or that must be applied together.
//!
//! 1. Check the request: families, sizes, one region for all rows.
//! 2. Lock all rows: exclusively if anything is read, so that the read is still true when the group
//!    is applied.
//! 3. Answer a group whose nonce is known with the values that its increments and appends would
//!    return now (`nonces` has the reasons). Conditions are not checked: they held when it was
//!    applied.
//! 4. Look at the conditions.
//! 5. Plan all rows. Reads see the rows as they were before the group.
//! 6. Log all rows as one edit, with the nonce, and apply it: readers see all of it or none.
//!
//! An answer without a write of its own waits until the cells that it rests on are durable
//! ([`confirm`]).
//!
//! With [`ReadTier::Memory`] a group waits for nothing: it fails with [`Error::NotInMemory`] where it
//! would, and has changed nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::write::{AssignedTime, WriteOutcome, check_room, plan_mutation, scratch, settle, writable_table};
use crate::catalog::{Catalog, Table, WriteOptions};
use crate::cell::{Account, BATCH_FREE_BYTES, Cell, CellBatch, KeyBuf, TTL_TAG_BYTES, ttl_ms};
use crate::error::{Error, Result};
use crate::id::SeqId;
use crate::op::{
    AtomicGroup, Columns, FamilySelection, GroupStep, GroupUpdate, Judged, ReadSpec, ReadTier, RowCondition,
    RowMutation, Test, Write, Writes,
};
use crate::record::NONCE_BYTES_MAX;
use crate::region::{
    LockMode, Made, PlannedCell, Region, RegionVersion, RowGuards, RowPlan, Shared, Stored, Times,
    check_edit, check_row, check_update, check_writes, family_index, holds, logging_of, newest_cell,
    pause_of_row, plan_update, read_row, stronger, unpublished, write_rows,
};
use crate::schema::{CellLimit, Cut, TableDescriptor, TableName};
use crate::store::Reach;
use crate::wal::{Commit, Logging, origin_bytes};

/// Copies of a stored value that an update makes besides the one in its result: the new value, with
/// room to grow, and the log's.
const VALUE_COPIES: usize = 3;

/// The outcome of an atomic group.
#[derive(Debug)]
pub struct GroupOutcome {
    /// Whether the conditions held, now or when the group was applied before.
    pub processed: bool,
    /// The commit to wait for; `None` if nothing was written. Then everything that the outcome rests on
    /// is durable already.
    pub commit: Option<Commit>,
}

/// Applies a group. Appends one row to `out` for each update whose cells are wanted, in the order of
/// the steps; after an error `out` is as before.
pub(super) fn apply(
    catalog: &Catalog,
    name: &TableName,
    group: &AtomicGroup<'_>,
    tier: ReadTier,
    out: &mut CellBatch,
) -> Result<WriteOutcome<GroupOutcome>> {
    let before = out.row_count();
    loop {
        let tried = attempt(catalog, name, group, tier, out);
        if let Ok(Some(written)) = tried {
            return Ok(written);
        }
        while out.row_count() > before {
            out.drop_last_row();
        }
        tried?;
    }
}

/// Applies a group. Returns `None`, without effect, if the table was changed meanwhile.
fn attempt(
    catalog: &Catalog,
    name: &TableName,
    group: &AtomicGroup<'_>,
    tier: ReadTier,
    out: &mut CellBatch,
) -> Result<Option<WriteOutcome<GroupOutcome>>> {
    let shared = catalog.shared();
    let tables = catalog.tables();
    let table = writable_table(catalog, &tables, name)?;
    let request = Request::check(
        &table.descriptor,
        group,
        table.write_options.cell_limit(&shared.options),
    )?;
    let region = request.region(table)?;
    check_room(shared, table, region)?;
    let made =
        made(shared, &table.descriptor, group)?.reserve(shared, Reach::under_lock(tier).on_shortage())?;
    let locks = request.lock(shared, region, tier)?;
    let time = AssignedTime(catalog);
    let Some(now) = time.now() else {
        drop(locks);
        time.mark()?;
        return Ok(None);
    };
    let version = region.version();
    if !Arc::ptr_eq(&version.table, &table.descriptor) {
        return Ok(None);
    }
    let planner = Planner {
        reader: Reader {
            shared,
            version: &version,
            tier,
        },
        table,
        region,
        group,
        locks: &locks,
        now,
    };
    let plans = match planner.decide(&request, out) {
        Ok(Decision::Write(plans)) => plans,
        Err(error) if !matches!(error, Error::DoNotRetry(_)) => return Err(error),
        // An answer without a write, and a refusal because of a stored value, rest on cells that
        // were read: these may not be durable yet.
        answer => {
            if !catalog.is_still_current(&tables, table) {
                return Ok(None);
            }
            drop(locks);
            confirm(shared, tier)?;
            let processed = matches!(answer?, Decision::Answer { processed: true });
            return Ok(Some(nothing_written(processed)));
        }
    };
    time.note_rows(now, plans.ahead_ms);
    let nonce_bytes = group.nonce.map_or(0, |_| NONCE_BYTES_MAX as u64);
    let own_bytes = nonce_bytes + origin_bytes(group.origin.len()) as u64;
    let bytes = check_edit(&table.descriptor, &plans.rows)? + own_bytes;
    let mut reserved = shared.wal.reserve(1, bytes)?;
    let guard = region.updates.read();
    if !catalog.is_still_current(&tables, table) {
        return Ok(None);
    }
    let logging = logging(&table.write_options, group);
    let commit = write_rows(
        shared,
        region,
        &plans.rows,
        group.nonce.as_slice(),
        group.origin,
        logging,
        &mut reserved,
        &guard,
    )?;
    drop(guard);
    let commit = commit.with_pause(pause_of_row(plans.delay_ms)).holding(made);
    let settled = settle(shared, table, [&**region], commit);
    Ok(Some(WriteOutcome {
        flush: settled.flush,
        result: GroupOutcome {
            processed: true,
            commit: Some(settled.result),
        },
    }))
}

/// Sizes of the steps' arguments as log and memstore hold them.
fn made<'t>(shared: &Shared, table: &'t TableDescriptor, group: &AtomicGroup<'_>) -> Result<Made<'t>> {
    let mut made = Made::new(shared, table);
    let mut row = None;
    for step in group.steps {
        match step {
            GroupStep::Write(write) if row == Some(write.row) => {
                made.add_more_writes(write.row, write.writes)?;
            }
            GroupStep::Write(write) => made.add_writes(write.row, write.writes)?,
            GroupStep::Update(update) => made.add_columns(update.row, update.change.columns()),
        }
        row = Some(step.row());
    }
    Ok(made)
}

fn nothing_written(processed: bool) -> WriteOutcome<GroupOutcome> {
    WriteOutcome {
        flush: SmallVec::new(),
        result: GroupOutcome {
            processed,
            commit: None,
        },
    }
}

/// The properties of a group that are known without stored data.
struct Request<'g> {
    /// All rows that it reads or writes, sorted, each once.
    rows: SmallVec<[&'g [u8]; 1]>,
    /// The mode in which they are locked.
    mode: LockMode,
    /// The error for an unknown family in the mutations. As in HBase it is returned only after the
    /// conditions have passed.
    unknown_family: Option<Error>,
}

impl<'g> Request<'g> {
    fn check(table: &TableDescriptor, group: &AtomicGroup<'g>, cell_max_bytes: CellLimit) -> Result<Self> {
        let is_conditional = !group.conditions.is_empty();
        let mut request = Self {
            rows: SmallVec::new(),
            mode: LockMode::Shared,
            unknown_family: None,
        };
        if is_conditional || group.nonce.is_some() {
            request.mode = LockMode::Exclusive;
        }
        for step in group.steps {
            match check_step(table, step, cell_max_bytes) {
                Ok(mode) => request.mode = request.mode.max(mode),
                Err(error @ Error::NoSuchFamily { .. }) if is_conditional => {
                    request.unknown_family.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
            request.rows.push(step.row());
        }
        for condition in group.conditions {
            check_row(condition.row)?;
            if let Test::Column { family, .. } = condition.test {
                family_index(table, family)?;
            }
            request.rows.push(condition.row);
        }
        request.rows.sort_unstable();
        request.rows.dedup();
        Ok(request)
    }

    /// The region that has all rows.
    fn region<'t>(&self, table: &'t Table) -> Result<&'t Arc<Region>> {
        let Some(first) = self.rows.first() else {
            return Err(Error::InvalidArgument(
                "An atomic group needs a mutation or a condition".into(),
            ));
        };
        let region = table.region_of(first);
        match self.rows.iter().find(|row| !region.info().contains(row)) {
            None => Ok(region),
            Some(row) => Err(Error::NotServingRegion(format!(
                "row {} is not in region {}, which has another row of the same atomic group",
                Cut(row),
                region.info().encoded_name
            ))),
        }
    }

    /// Locks all rows. With [`ReadTier::Memory`], fails with [`Error::NotInMemory`] if another write
    /// holds one of them.
    fn lock<'s>(&self, shared: &'s Shared, region: &Region, tier: ReadTier) -> Result<RowGuards<'s>> {
        let wanted = self.rows.iter().map(|row| (region.id(), *row, self.mode));
        match tier {
            ReadTier::All => shared.row_locks.lock(wanted, shared.options.row_lock_wait),
            ReadTier::Memory => shared
                .row_locks
                .lock(wanted, Duration::ZERO)
                .map_err(|_| Error::NotInMemory),
        }
    }

    /// A draft for each row.
    fn drafts(&self) -> SmallVec<[Draft<'g>; 1]> {
        self.rows.iter().map(|row| Draft::new(row)).collect()
    }
}

/// The durability of the group: that of its most durable step. A group with a nonce is always
/// logged, so that its data and its nonce are lost together or not at all.
fn logging(table: &WriteOptions, group: &AtomicGroup<'_>) -> Logging {
    let asked = group
        .steps
        .iter()
        .map(|step| logging_of(step.durability(), table.durability));
    let least = group.nonce.map_or(Logging::Skip, |_| Logging::Async);
    asked.fold(least, stronger)
}

fn check_step(table: &TableDescriptor, step: &GroupStep<'_>, cell_max_bytes: CellLimit) -> Result<LockMode> {
    match step {
        GroupStep::Write(write) => check_writes(table, write.row, write.writes, cell_max_bytes),
        GroupStep::Update(update) => {
            check_update(table, update.row, update.change, cell_max_bytes)?;
            Ok(LockMode::Exclusive)
        }
    }
}

/// The planned writes of a row.
struct Draft<'g> {
    row: &'g [u8],
    /// The time of the latest cell that a condition looked at: puts without a time get at least this.
    put_floor: i64,
    /// The puts and deletes of all steps: together they get one time, as in HBase.
    writes: Option<RowMutation<'g>>,
    cells: SmallVec<[PlannedCell<'g>; 1]>,
}

impl<'g> Draft<'g> {
    fn new(row: &'g [u8]) -> Self {
        Self {
            row,
            put_floor: 0,
            writes: None,
            cells: SmallVec::new(),
        }
    }

    fn add(&mut self, step: &GroupStep<'g>) {
        let GroupStep::Write(write) = step else { return };
        let writes = self.writes.get_or_insert_with(|| RowMutation {
            row: write.row,
            writes: Writes::new(),
            durability: write.durability,
        });
        writes.writes.extend(write.writes.iter().copied());
    }

    fn into_plan(self) -> Option<RowPlan<'g>> {
        if self.cells.is_empty() {
            return None;
        }
        Some(RowPlan::of_cells(self.row, self.cells))
    }
}

/// Whether two batches have the same cells.
fn is_same(left: &CellBatch, right: &CellBatch) -> bool {
    let is_equal = |index| {
        let (left, right) = (left.cell(index), right.cell(index));
        left.key.bytes() == right.key.bytes() && left.value == right.value
    };
    left.cell_count() == right.cell_count() && (0..left.cell_count()).all(is_equal)
}

/// The place of a row among the drafts.
/// REQUIRES: the row is one of a condition or step of the drafts' group.
fn place_of(drafts: &[Draft<'_>], row: &[u8]) -> usize {
    let place = drafts.binary_search_by(|draft| draft.row.cmp(row));
    place.expect("a group has a draft for each of its rows")
}

/// The draft of a row.
/// REQUIRES: as [`place_of`].
fn draft_of<'d, 'g>(drafts: &'d mut [Draft<'g>], row: &[u8]) -> &'d mut Draft<'g> {
    &mut drafts[place_of(drafts, row)]
}

/// The decision about a group.
enum Decision<'g> {
    Write(Plans<'g>),
    /// No effect: the group was applied before, a condition does not hold, or there is nothing to
    /// write.
    Answer {
        processed: bool,
    },
}

/// The rows to write.
struct Plans<'g> {
    rows: SmallVec<[RowPlan<'g>; 1]>,
    /// Lead of their times over assigned time.
    ahead_ms: i64,
    /// The part of the lead that is due to tombstones.
    delay_ms: i64,
}

/// The verdict of the nonce and the conditions on a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It was applied before.
    Repeated,
    /// A condition does not hold.
    Refused,
    /// Apply it.
    Apply,
}

/// Reads rows whose locks are held: with writes that are applied and not yet published.
struct Reader<'r> {
    shared: &'r Shared,
    version: &'r RegionVersion,
    tier: ReadTier,
}

impl Reader<'_> {
    /// Decides the outcome of a group, and notes in the drafts the times that its conditions rest
    /// on.
    fn judge(&self, group: &AtomicGroup<'_>, drafts: &mut [Draft<'_>]) -> Result<Verdict> {
        let (nonces, now) = (&self.shared.nonces, self.shared.clock.mono());
        if group.nonce.is_some_and(|nonce| nonces.is_known(nonce, now)) {
            return Ok(Verdict::Repeated);
        }
        for condition in group.conditions {
            let Some(timestamp) = self.look(condition)? else {
                return Ok(Verdict::Refused);
            };
            let draft = draft_of(drafts, condition.row);
            draft.put_floor = draft.put_floor.max(timestamp);
        }
        Ok(Verdict::Apply)
    }

    /// Evaluates a condition. If it holds, returns the timestamp of the cell that it rests on, 0
    /// without one.
    fn look(&self, condition: &RowCondition<'_>) -> Result<Option<i64>> {
        match condition.test {
            Test::Column {
                family,
                qualifier,
                op,
                expected,
            } => {
                let family = family_index(&self.version.table, family)?;
                let found = newest_cell(
                    self.version,
                    condition.row,
                    family,
                    qualifier,
                    condition.time_range,
                    self.shared.read_view(),
                    Reach::under_lock(self.tier),
                    &mut scratch(self.shared, self.tier),
                    |cell| (cell.key.timestamp(), holds(op, expected, Some(cell.value))),
                )?;
                let (timestamp, holds) = found.unwrap_or_else(|| (0, holds(op, expected, None)));
                Ok(holds?.then_some(timestamp))
            }
            // A filter may take long, so it does not run on a network thread.
            Test::Filter(_) if self.tier == ReadTier::Memory => Err(Error::NotInMemory),
            Test::Filter(filter) => {
                let spec = ReadSpec {
                    filter: Some(Arc::clone(filter)),
                    time_range: condition.time_range,
                    ..ReadSpec::default()
                };
                let mut found = scratch(self.shared, self.tier);
                self.row(&spec, condition.row, &mut found)?;
                let is_there = !found.is_empty();
                Ok(is_there.then(|| found.cell(0).key.timestamp()))
            }
            // It did not pass when it was read: nothing needs to be verified.
            Test::Judged(Judged::Refused) => Ok(None),
            Test::Judged(_) if self.tier == ReadTier::Memory => Err(Error::NotInMemory),
            Test::Judged(Judged::Passed {
                spec,
                cells,
                timestamp,
            }) => {
                let mut found = scratch(self.shared, self.tier);
                self.row(spec, condition.row, &mut found)?;
                Ok(is_same(cells, &found).then_some(timestamp))
            }
        }
    }

    /// Appends the results of the updates of a repeated group: the present versions of their columns.
    /// HBase does so with a get.
    fn present(&self, group: &AtomicGroup<'_>, out: &mut CellBatch) -> Result<()> {
        for step in group.steps {
            let GroupStep::Update(update) = step else { continue };
            if !update.returns {
                continue;
            }
            let mut families: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
            for (family, qualifier) in update.change.columns() {
                families
                    .entry(family.to_vec())
                    .or_default()
                    .insert(qualifier.to_vec());
            }
            let selection = |(family, qualifiers): (Vec<u8>, BTreeSet<Vec<u8>>)| FamilySelection {
                family,
                columns: Columns::Only(qualifiers.into_iter().collect()),
            };
            let spec = ReadSpec {
                families: families.into_iter().map(selection).collect(),
                time_range: update.time_range,
                ..ReadSpec::default()
            };
            self.row(&spec, update.row, out)?;
        }
        Ok(())
    }

    fn row(&self, spec: &ReadSpec, row: &[u8], out: &mut CellBatch) -> Result<bool> {
        let row_max_bytes = self.shared.options.row_max_bytes;
        let reach = Reach::under_lock(self.tier);
        let read_view = (reach, unpublished(self.shared.read_view()));
        read_row(self.version, spec, row, read_view, row_max_bytes, out)
    }
}

/// Plans the rows of a group whose locks are held.
struct Planner<'p, 's, 'g> {
    reader: Reader<'p>,
    table: &'p Table,
    region: &'p Region,
    group: &'p AtomicGroup<'g>,
    locks: &'p RowGuards<'s>,
    now: i64,
}

impl<'g> Planner<'_, '_, 'g> {
    fn decide(&self, request: &Request<'g>, out: &mut CellBatch) -> Result<Decision<'g>> {
        let mut drafts = request.drafts();
        match self.reader.judge(self.group, &mut drafts)? {
            Verdict::Apply => {}
            Verdict::Refused => return Ok(Decision::Answer { processed: false }),
            Verdict::Repeated => {
                self.reader.present(self.group, out)?;
                return Ok(Decision::Answer { processed: true });
            }
        }
        if let Some(error) = &request.unknown_family {
            return Err(error.clone());
        }
        let plans = self.plan(drafts, out)?;
        if plans.rows.is_empty() {
            return Ok(Decision::Answer { processed: true });
        }
        Ok(Decision::Write(plans))
    }

    /// Plans all rows. Appends the new cells of updates to `out`, so that nothing can fail once the
    /// group is logged.
    fn plan(&self, mut drafts: SmallVec<[Draft<'g>; 1]>, out: &mut CellBatch) -> Result<Plans<'g>> {
        for step in self.group.steps {
            draft_of(&mut drafts, step.row()).add(step);
        }
        let calls = &self.reader.shared.store.reader.calls;
        let mut copies = calls.account(
            BATCH_FREE_BYTES,
            Reach::under_lock(self.reader.tier).on_shortage(),
        );
        // Before the tombstones of the group get a time: they cover its updates, as in HBase.
        let mut updates: SmallVec<[(usize, RowPlan<'g>); 1]> = SmallVec::new();
        let (mut ahead_ms, mut delay_ms) = (0, 0);
        for (at, step) in self.group.steps.iter().enumerate() {
            if let GroupStep::Update(update) = step {
                let plan = self.update(update, place_of(&drafts, update.row), &mut copies, out)?;
                ahead_ms = ahead_ms.max(plan.ahead_ms);
                delay_ms = delay_ms.max(plan.delay_ms);
                updates.push((at, plan));
            }
        }
        for (place, draft) in drafts.iter_mut().enumerate() {
            let Some(writes) = &draft.writes else { continue };
            let plan = self.write(place, draft.put_floor, writes)?;
            ahead_ms = ahead_ms.max(plan.ahead_ms);
            delay_ms = delay_ms.max(plan.delay_ms);
            draft.cells = plan.cells;
        }
        for (at, plan) in updates {
            let draft = draft_of(&mut drafts, plan.row);
            self.join(at, plan, draft);
        }
        Ok(Plans {
            rows: drafts.into_iter().filter_map(Draft::into_plan).collect(),
            ahead_ms,
            delay_ms,
        })
    }

    /// The times of the row at this place among the group's rows.
    fn times(&self, place: usize, put_floor: i64) -> Times<'_> {
        Times {
            now: self.now,
            put_floor,
            row: self.locks.times(place),
        }
    }

    /// Plans the puts and deletes of a row.
    fn write(&self, place: usize, put_floor: i64, writes: &RowMutation<'g>) -> Result<RowPlan<'g>> {
        let (shared, mut plan) = (self.reader.shared, RowPlan::new(writes.row));
        let times = self.times(place, put_floor);
        plan_mutation(shared, self.table, self.region, writes, times, &mut plan)?;
        Ok(plan)
    }

    /// Plans an update of a row. Adds the new cells to `out`, if they are wanted.
    fn update(
        &self,
        update: &GroupUpdate<'g>,
        place: usize,
        copies: &mut Account,
        out: &mut CellBatch,
    ) -> Result<RowPlan<'g>> {
        let shared = self.reader.shared;
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
                self.reader.version,
                update.row,
                family,
                qualifier,
                update.time_range,
                shared.read_view(),
                Reach::under_lock(self.reader.tier),
                out,
                stored,
            )?
            .transpose()
        };
        let plan = plan_update(
            &self.table.descriptor,
            update.row,
            update.change,
            update.ttl_ms,
            self.times(place, 0),
            self.table.write_options.cell_limit(&shared.options),
            newest,
        )?;
        if update.returns {
            out.reserve(plan.cells.len(), result_bytes(self.table, &plan))?;
            push_result(self.table, &plan, out);
        }
        Ok(plan)
    }

    /// Adds the planned cells of the update in step `at` to those of its row.
    fn join(&self, at: usize, plan: RowPlan<'g>, draft: &mut Draft<'g>) {
        if draft.cells.is_empty() {
            draft.cells = plan.cells;
            return;
        }
        let stay = |cell: &PlannedCell<'g>| !self.is_overwritten(at, plan.row, cell, &draft.cells);
        let cells: SmallVec<[PlannedCell<'g>; 1]> = plan.cells.into_iter().filter(stay).collect();
        draft.cells.extend(cells);
    }

    /// Whether a put of a step after `at` writes the same cell. `written`: the cells of the row so far.
    fn is_overwritten(
        &self,
        at: usize,
        row: &[u8],
        cell: &PlannedCell<'_>,
        written: &[PlannedCell<'_>],
    ) -> bool {
        let key = |cell: &PlannedCell<'_>| (cell.family, cell.timestamp, cell.cell_type);
        let is_same = |other: &PlannedCell<'_>| key(other) == key(cell) && other.qualifier == cell.qualifier;
        if !written.iter().any(is_same) {
            return false;
        }
        let name = &self.table.descriptor.families[cell.family].name[..];
        let is_put = |write: &Write<'_>| {
            matches!(write, Write::Put { family, qualifier, .. }
                if *family == name && *qualifier == cell.qualifier)
        };
        let overwrites = |step: &GroupStep<'_>| matches!(step, GroupStep::Write(write) if write.row == row && write.writes.iter().any(is_put));
        self.group.steps[at + 1..].iter().any(overwrites)
    }
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

/// The cells that an update writes, as one row of `out`. They have no sequence id yet.
/// REQUIRES: `out` has room for them ([`CellBatch::reserve`]).
fn push_result(table: &Table, plan: &RowPlan<'_>, out: &mut CellBatch) {
    for cell in &plan.cells {
        let family = &table.descriptor.families[cell.family].name;
        let key = KeyBuf::new(plan.row, family, cell.qualifier, cell.timestamp, cell.cell_type);
        let mut own_tags = [0; TTL_TAG_BYTES];
        out.push(Cell {
            key: key.as_key(),
            value: &cell.value,
            tags: cell.tags.encode(&mut own_tags),
            seq: SeqId::ZERO,
        });
    }
    out.end_row(false);
}

/// Waits until everything that was read is durable, so that an answer without a write of its own does
/// not rest on writes that may be lost. With [`ReadTier::Memory`], fails with [`Error::NotInMemory`]
/// instead of waiting.
fn confirm(shared: &Shared, tier: ReadTier) -> Result<()> {
    let read = shared.wal.last_assigned();
    match tier {
        ReadTier::All => shared.wal.wait_published(read),
        ReadTier::Memory if shared.wal.read_point() >= read => Ok(()),
        ReadTier::Memory => Err(Error::NotInMemory),
    }
}
