//! Reading a region row by row: the families' scanners side by side, and the row-level half of a filter's
//! life.
//!
//! For each row, in HBase's order:
//!
//! 1. The next row is the first one that the scanner of any essential family stands at. Past the stop row, or
//!    when the filter says that nothing more can match: the end.
//! 2. `filter_row_key`: when it leaves the row out, the row is passed over without a look at its cells,
//!    unless one of them may end the scan ([`Filter::may_end_in_left_out_rows`]).
//! 3. Each essential family appends its cells. The filter sees every cell there (`store`). A batch limit may
//!    cut the row here, or the bytes that the fetch has left ([`LongRow::Cut`]); the piece is returned, and
//!    steps 1 to 3 go on with the same row, without `reset`.
//! 4. `filter_row_cells` and `filter_row` judge the row as a whole; the latter is not asked about rows
//!    without cells. A row without cells before this step goes no further.
//! 5. The other families append their cells, past the filter too, and the row is put in order again.
//! 6. `reset`. A row without cells is no result.
//!
//! A filter may say that it can judge rows by some families only (`Filter::is_family_essential`). HBase then
//! reads the others on demand, for rows that passed (`RegionScannerImpl.joinedHeap`): blocks of the others
//! are not touched for rows that did not, and rows that exist only in the others are not seen. HBase refuses
//! this in a reversed scan; here all families are essential then.
//!
//! A scanner belongs to one read view, one region version at a time and one caller at a time. It takes no
//! lock.
//! Between two rows it can be paused and go on in a later version of the region, or with another reach. A row
//! that cannot be finished, because it is not in memory or calls have no memory for it, is left as if it had
//! not been begun: the scanner is paused before it. With a filter or a batch limit that cannot be done, so a
//! read of memory only has neither.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::cell::{CellBatch, RowOrder};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::hfile::RunLimits;
use crate::op::{Columns, FetchLimits, ReadSpec};
use crate::region::{RegionVersion, ScanRange, family_index};
use crate::schema::{Cut, TableDescriptor};
use crate::seeded;
use crate::store::{Reach, ReadRows, ReadView, RowLimit, RowProgress, Sources, StoreScanner};

/// Bytes of a row that is left out that are in memory at once while its filter sees them.
const SHOWN_BYTES: usize = 64 << 10;

/// Outcome of [`RegionScanner::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Appended a whole row, or the last piece of one.
    Row,
    /// Appended a piece of a row with as many cells as the batch limit allows; more of it follows.
    Piece,
    /// Appended a piece of a row that was cut for its bytes; more of it follows.
    Cut,
    /// Passed over a row that is no result.
    Nothing,
    /// Passed over a row in front of the range.
    Outside,
    /// There are no more rows.
    End,
}

/// The treatment of a row that has more bytes than a fetch has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongRow {
    /// It is appended whole.
    Whole,
    /// It is cut into pieces. The cell that reaches this many bytes, or the maximum of a row, is the
    /// last one of a piece.
    Cut(usize),
    /// It is left as if it had not been begun, and the step fails with [`Error::NotInMemory`]. For a
    /// read of memory only, which cannot go on in the middle of a row.
    Leave(usize),
}

/// Checks what can be said of a read without reading: families, versions, time ranges. HBase's `StoreScanner`
/// refuses columns of a raw read, since it could not tell which of the family's tombstones belong to them.
pub(crate) fn check_read(table: &TableDescriptor, spec: &ReadSpec) -> Result<()> {
    if spec.max_versions <= 0 {
        return Err(Error::InvalidArgument("maxVersions must be positive".into()));
    }
    for range in spec.family_time_ranges.values().chain([&spec.time_range]) {
        if range.min < 0 || range.max < 0 {
            return Err(Error::InvalidArgument(format!(
                "Timestamp cannot be negative. minStamp:{}, maxStamp:{}",
                range.min, range.max
            )));
        }
        if range.max < range.min {
            return Err(Error::InvalidArgument("maxStamp is smaller than minStamp".into()));
        }
    }
    for selection in &spec.families {
        family_index(table, &selection.family)?;
        if spec.raw && selection.columns != Columns::All {
            return Err(Error::DoNotRetry(
                "Cannot specify any column for a raw scan".into(),
            ));
        }
    }
    Ok(())
}

/// One family of a scan.
#[derive(Debug)]
struct Part {
    /// Its place among the families asked for.
    place: usize,
    store: StoreScanner,
    /// Whether rows are found and judged by it.
    essential: bool,
}

impl Part {
    /// Whether it stands at `row`.
    fn stands_at(&self, row: &[u8]) -> bool {
        self.store.row() == Some(row)
    }
}

/// Reads a region.
#[derive(Debug)]
pub(crate) struct RegionScanner {
    /// The families asked for, in the table's order.
    parts: Vec<Part>,
    /// While it is paused: of each family that was not at its end, its place and the row to go on with.
    paused: Option<Vec<(usize, Vec<u8>)>>,
    order: RowOrder,
    /// `None`: the one row that the stores were opened for.
    range: Option<ScanRange>,
    filter: Option<Box<dyn Filter>>,
    /// Most cells of a result.
    batch: Option<usize>,
    /// Maximum bytes of a row or of a piece of one.
    row_max_bytes: usize,
    /// The row in hand; kept between calls for its memory, and for its content while `in_row`.
    row: SmallVec<[u8; 64]>,
    /// The last result was a piece: the row goes on.
    in_row: bool,
    /// A row of the range has been found: those that follow cannot be before it.
    begun: bool,
    /// The treatment of a long row in the current step.
    long_row: LongRow,
}

impl RegionScanner {
    /// A scanner over the rows of `range`.
    /// REQUIRES: [`check_read`] passed for the version's table.
    pub(crate) fn open(
        version: &RegionVersion,
        spec: &ReadSpec,
        range: ScanRange,
        batch: Option<usize>,
        read_view: (Reach, ReadView),
        row_max_bytes: usize,
    ) -> Result<Self> {
        let rows = ReadRows::Range {
            low: &range.low.row,
            high: &range.high.row,
            reversed: range.reversed,
        };
        let mut filter = spec.filter.as_ref().map(|factory| factory.create());
        if let Some(filter) = &mut filter {
            filter.set_reversed(range.reversed);
            if batch.is_some() && filter.has_filter_row() {
                return Err(Error::DoNotRetry(
                    "Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow"
                        .into(),
                ));
            }
        }
        let judge = filter.as_deref().filter(|_| !range.reversed);
        Ok(Self {
            parts: open_parts(version, spec, judge, read_view, rows)?,
            paused: None,
            order: version.row_order(),
            range: Some(range),
            filter,
            batch,
            row_max_bytes,
            row: SmallVec::new(),
            in_row: false,
            begun: false,
            long_row: LongRow::Whole,
        })
    }

    /// A scanner over one row; `None` if no family asked for has anything of it.
    /// REQUIRES: as [`Self::open`].
    pub(crate) fn open_row(
        version: &RegionVersion,
        spec: &ReadSpec,
        row: &[u8],
        read_view: (Reach, ReadView),
        row_max_bytes: usize,
    ) -> Result<Option<Self>> {
        let filter = spec.filter.as_ref().map(|factory| factory.create());
        let parts = open_parts(version, spec, filter.as_deref(), read_view, ReadRows::One(row))?;
        if parts.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            parts,
            paused: None,
            order: version.row_order(),
            range: None,
            filter,
            batch: None,
            row_max_bytes,
            row: SmallVec::new(),
            in_row: false,
            begun: false,
            long_row: LongRow::Whole,
        }))
    }

    /// Lets go of the version it reads, unless it is in the middle of a row. Keeps its place and its filter:
    /// given a version again ([`Self::resume`]) it goes on as if nothing had been. Says whether it did.
    pub(crate) fn pause(&mut self) -> bool {
        if self.in_row {
            return false;
        }
        if self.paused.is_none() {
            let places = self
                .parts
                .drain(..)
                .filter_map(|part| Some((part.place, part.store.row()?.to_vec())));
            self.paused = Some(places.collect());
        }
        true
    }

    /// Passes over the rows before `row`, without reading them. In the middle of a row it does nothing.
    pub(crate) fn jump_to(&mut self, row: &[u8]) {
        if !self.pause() {
            return;
        }
        let (order, reversed) = (self.order, self.is_reversed());
        for (_, place) in self.paused.iter_mut().flatten() {
            let position = order.compare(place, row);
            let is_before = if reversed {
                position.is_gt()
            } else {
                position.is_lt()
            };
            if is_before {
                row.clone_into(place);
            }
        }
    }

    /// Whether a row that has been begun can be begun again: not if a filter or batch limit has
    /// advanced meanwhile or a piece of it was returned, and only in a range.
    pub(crate) fn can_leave_row(&self) -> bool {
        self.filter.is_none() && self.batch.is_none() && self.range.is_some() && !self.in_row
    }

    /// Pauses in front of the row in hand, whatever has been read of it.
    /// REQUIRES: [`Self::can_leave_row`].
    fn leave_row(&mut self) {
        debug_assert!(self.can_leave_row());
        let places = self.parts.drain(..).map(|part| (part.place, self.row.to_vec()));
        self.paused = Some(places.collect());
    }

    /// Goes on in `version`, if it was paused. After an error it is paused still.
    /// REQUIRES: the version has what was visible at `read_view` in the one before; `spec` is the scan's.
    pub(crate) fn resume(
        &mut self,
        version: &RegionVersion,
        spec: &ReadSpec,
        read_view: (Reach, ReadView),
    ) -> Result<()> {
        let Some(paused) = &self.paused else {
            return Ok(());
        };
        let judge = self.filter.as_deref().filter(|_| !self.is_reversed());
        let mut parts = Vec::with_capacity(paused.len());
        for (place, row) in paused {
            let rows = match &self.range {
                None => ReadRows::One(row),
                Some(range) => {
                    let (low, high) = if range.reversed {
                        (&range.low.row, row)
                    } else {
                        (row, &range.high.row)
                    };
                    ReadRows::Range {
                        low,
                        high,
                        reversed: range.reversed,
                    }
                }
            };
            open_part(version, spec, judge, *place, read_view, rows, &mut parts)?;
        }
        self.parts = parts;
        self.paused = None;
        Ok(())
    }

    /// Appends plain rows (`hfile::plain_rows`) as long as the next ones are, each as a result, and returns
    /// their number: at most `limits.results`. The run ends with the row that reaches `limits.bytes`, and
    /// before a long row, which [`Self::step_with`] treats as `long_row` says.
    ///
    /// Only a scan over the one family that was asked for, without filter and batch limit, has such rows, and
    /// only behind its first row.
    pub(crate) fn append_plain_rows(
        &mut self,
        limits: &FetchLimits,
        long_row: LongRow,
        out: &mut CellBatch,
    ) -> usize {
        let (Some(range), [part], true) = (&self.range, &mut self.parts[..], self.begun) else {
            return 0;
        };
        let returns_rows_whole = self.filter.is_none() && self.batch.is_none() && !self.in_row;
        if !returns_rows_whole || self.paused.is_some() {
            return 0;
        }
        let end = if range.reversed { &range.low } else { &range.high };
        let cut_at = match long_row {
            LongRow::Whole => usize::MAX,
            LongRow::Cut(bytes) | LongRow::Leave(bytes) => bytes,
        };
        let limits = RunLimits {
            rows: limits.results,
            bytes: limits.bytes,
            cut_at,
            row_bytes: self.row_max_bytes,
            end: &end.row,
        };
        let rows = part.store.append_plain_rows(limits, out);
        if let Some(last) = out.rows().last().filter(|_| rows > 0) {
            self.row.clear();
            self.row.extend_from_slice(last.key());
        }
        rows
    }

    /// Works on one row: appends one result to `out` and closes it, or finds that there is none. After an
    /// error the scanner is of no more use, unless the error is [`Error::NotInMemory`] or
    /// [`Error::CallMemory`] and it [can leave rows](Self::can_leave_row): then it is paused before the row.
    pub(crate) fn step(&mut self, out: &mut CellBatch) -> Result<Step> {
        self.step_with(out, LongRow::Whole)
    }

    /// Does what [`Self::step`] does, and treats a long row as `long_row` says. A filter that judges
    /// whole rows, or reads families on demand, gets whole rows.
    pub(crate) fn step_with(&mut self, out: &mut CellBatch, long_row: LongRow) -> Result<Step> {
        self.long_row = match long_row {
            LongRow::Whole => LongRow::Whole,
            cut if self.can_cut_rows() => cut,
            _ => LongRow::Whole,
        };
        let result = self.try_step(out);
        if let Err(error) = &result {
            out.abandon_row();
            let is_left = matches!(error, Error::NotInMemory | Error::CallMemory(_)) && self.can_leave_row();
            if is_left && !seeded::is_on("unfinished-row-not-left") {
                self.leave_row();
            }
        }
        result
    }

    fn try_step(&mut self, out: &mut CellBatch) -> Result<Step> {
        if !self.in_row {
            if self.filter_is_done() || !self.find_row() {
                return Ok(Step::End);
            }
            let place = match &self.range {
                None => Ordering::Equal,
                Some(range) if self.begun => range.position_after_begin(&self.row, self.order),
                Some(range) => range.position(&self.row, self.order),
            };
            match place {
                Ordering::Less => {
                    self.skip_row()?;
                    return Ok(Step::Outside);
                }
                Ordering::Greater => return Ok(Step::End),
                Ordering::Equal => self.begun = true,
            }
            if let Some(filter) = &mut self.filter
                && filter.filter_row_key(&self.row)?
            {
                if filter.filter_all_remaining() {
                    return Ok(Step::End);
                }
                let shows_cells = filter.may_end_in_left_out_rows();
                if shows_cells {
                    self.show_row(out)?;
                }
                self.skip_row()?;
                return Ok(Step::Nothing);
            }
        }
        let mut limit = self.row_limit();
        if self.read_cells(true, &mut limit, out)? == RowProgress::LimitReached {
            if matches!(self.long_row, LongRow::Leave(_)) {
                return Err(Error::NotInMemory);
            }
            self.in_row = true;
            out.end_row(true);
            return Ok(if limit.bytes == 0 { Step::Cut } else { Step::Piece });
        }
        let passed = self.judge_row(out);
        if passed && self.parts.iter().any(|part| !part.essential) {
            self.join(&mut limit, out)?;
        }
        self.in_row = false;
        if let Some(filter) = &mut self.filter {
            filter.reset();
        }
        if out.open_cells().is_empty() {
            return Ok(Step::Nothing);
        }
        out.end_row(false);
        Ok(Step::Row)
    }

    /// Whether rows may be returned in pieces.
    fn can_cut_rows(&self) -> bool {
        let judges_rows = self.filter.as_ref().is_some_and(|filter| filter.has_filter_row());
        !judges_rows && self.parts.iter().all(|part| part.essential)
    }

    /// Whether a piece of a row was returned that is not the last one.
    pub(crate) fn is_in_row(&self) -> bool {
        self.in_row
    }

    /// The row that was looked at last, or is the next one; empty before the first.
    pub(crate) fn row(&self) -> &[u8] {
        &self.row
    }

    /// Whether there are no more rows, as far as that shows without reading. Between two rows only.
    pub(crate) fn is_at_end(&mut self) -> bool {
        if self.in_row {
            return false;
        }
        if self.filter_is_done() {
            return true;
        }
        if let Some(paused) = &self.paused {
            return paused.is_empty();
        }
        let order = self.order;
        !self.find_row()
            || self
                .range
                .as_ref()
                .is_some_and(|range| range.position(&self.row, order).is_gt())
    }

    /// Whether the filter wants no more rows of the region.
    pub(crate) fn filter_is_done(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| filter.filter_all_remaining())
    }

    fn is_reversed(&self) -> bool {
        self.range.as_ref().is_some_and(|range| range.reversed)
    }

    /// Puts the next row into `self.row`; false when there is none.
    fn find_row(&mut self) -> bool {
        let essential = self.parts.iter().filter(|part| part.essential);
        let rows = essential.filter_map(|part| part.store.row());
        let order = self.order;
        let next = if self.is_reversed() {
            rows.max_by(|left, right| order.compare(left, right))
        } else {
            rows.min_by(|left, right| order.compare(left, right))
        };
        let Some(next) = next else {
            return false;
        };
        self.row.clear();
        self.row.extend_from_slice(next);
        true
    }

    /// Passes over the row in hand.
    fn skip_row(&mut self) -> Result<()> {
        for part in &mut self.parts {
            if part.essential && part.stands_at(&self.row) {
                part.store.skip_row(&self.row)?;
            }
        }
        if let Some(filter) = &mut self.filter {
            filter.reset();
        }
        Ok(())
    }

    /// Shows the filter the cells of the row in hand, and returns none of them.
    fn show_row(&mut self, out: &mut CellBatch) -> Result<()> {
        self.long_row = LongRow::Cut(SHOWN_BYTES);
        loop {
            let mut limit = self.row_limit();
            let progress = self.read_cells(true, &mut limit, out)?;
            out.abandon_row();
            if progress != RowProgress::LimitReached {
                return Ok(());
            }
        }
    }

    /// Bounds of the current row, or of its next piece.
    fn row_limit(&self) -> RowLimit {
        let bytes = match self.long_row {
            LongRow::Cut(bytes) | LongRow::Leave(bytes) => bytes.clamp(1, self.row_max_bytes.max(1)),
            // One byte more than it may have: when nothing is left, the row is too big.
            LongRow::Whole => self.row_max_bytes.saturating_add(1),
        };
        RowLimit {
            cells: self.batch.unwrap_or(usize::MAX),
            bytes,
        }
    }

    /// Appends the cells of the families that are essential, or of those that are not.
    fn read_cells(
        &mut self,
        essential: bool,
        limit: &mut RowLimit,
        out: &mut CellBatch,
    ) -> Result<RowProgress> {
        let mut progress = RowProgress::Done;
        for part in self.parts.iter_mut().filter(|part| part.essential == essential) {
            // A filter that is done ends each family's part by itself; the row so far is still judged.
            let filter = self.filter.as_deref_mut().map(|filter| filter as &mut dyn Filter);
            let read = part.store.read_row(&self.row, filter, limit, out);
            if limit.bytes == 0 && self.long_row == LongRow::Whole {
                // The row is too big, whether or not there was memory for the next cell.
                return Err(self.row_too_big());
            }
            progress = read?;
            if progress == RowProgress::LimitReached {
                break;
            }
        }
        Ok(progress)
    }

    fn row_too_big(&self) -> Error {
        Error::RowTooBig(format!(
            "Max row size allowed: {}, but the row is bigger than that. Row: {}. Ask for fewer columns, scan with a smaller batch, \
             or raise row.max_bytes",
            self.row_max_bytes,
            Cut(&self.row)
        ))
    }

    /// Appends what the families that are not essential have of the row, which has passed.
    fn join(&mut self, limit: &mut RowLimit, out: &mut CellBatch) -> Result<()> {
        for part in self.parts.iter_mut().filter(|part| !part.essential) {
            let behind = |at| self.order.compare(at, &self.row).is_lt();
            if part.store.row().is_some_and(behind) {
                part.store.seek_row(&self.row)?;
            }
        }
        // No batch limit is reached here: filters that judge whole rows allow none, and the only other filter
        // that does without a family, `ColumnValueFilter`, takes no cell of it.
        let progress = self.read_cells(false, limit, out)?;
        debug_assert_ne!(progress, RowProgress::LimitReached, "a piece of a joined row");
        out.sort_open_by_family();
        Ok(())
    }

    /// Asks the filter about the row as a whole. Whether the row passed: it had cells, and the filter did not
    /// leave it out.
    fn judge_row(&mut self, out: &mut CellBatch) -> bool {
        let had_cells = !out.open_cells().is_empty();
        let Some(filter) = &mut self.filter else {
            return had_cells;
        };
        if filter.has_filter_row() {
            filter.filter_row_cells(out);
        }
        if !out.open_cells().is_empty() && filter.filter_row() {
            out.abandon_row();
            return false;
        }
        had_cells
    }
}

/// Scanners of the families that `spec` asks for, in the table's order, as `rows` opens them. `judge`: the
/// filter that says which of them are essential; without one all are.
fn open_parts(
    version: &RegionVersion,
    spec: &ReadSpec,
    judge: Option<&dyn Filter>,
    read_view: (Reach, ReadView),
    rows: ReadRows<'_>,
) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for place in 0..family_count(version, spec) {
        open_part(version, spec, judge, place, read_view, rows, &mut parts)?;
    }
    Ok(parts)
}

/// How many families `spec` asks for.
fn family_count(version: &RegionVersion, spec: &ReadSpec) -> usize {
    match spec.families.len() {
        0 => version.stores.len(),
        asked => asked,
    }
}

/// Adds the scanner of one family to `parts`, unless a single row is asked for, of which the family has
/// nothing.
fn open_part(
    version: &RegionVersion,
    spec: &ReadSpec,
    judge: Option<&dyn Filter>,
    place: usize,
    read_view: (Reach, ReadView),
    rows: ReadRows<'_>,
    parts: &mut Vec<Part>,
) -> Result<()> {
    let selection = spec.families.get(place);
    let index = match selection {
        None => place,
        Some(selection) => family_index(&version.table, &selection.family)?,
    };
    let store = &version.stores[index];
    let sources = Sources::of(store, selection, spec, read_view, rows)?;
    if sources.is_empty() && matches!(rows, ReadRows::One(_)) {
        return Ok(());
    }
    if parts.is_empty() {
        // Growing by itself it would make room for four at once.
        parts.reserve_exact(family_count(version, spec) - place);
    }
    parts.push(Part {
        place,
        essential: judge.is_none_or(|filter| filter.is_family_essential(&store.family.name)),
        store: StoreScanner::over(sources, store, selection, spec, read_view.1, rows),
    });
    parts
        .last_mut()
        .map_or(Ok(()), |part| part.store.go_to_begin(rows))
}
