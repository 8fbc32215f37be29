//! Reads rows of one store.
//!
//! 1. Opening picks the sources that can matter (`opening`).
//! 2. The region asks each of its stores for `row()`, takes the first in the scan's direction, and calls
//!    `read_row` or `skip_row` on the stores.
//! 3. Within a row the matcher judges each cell and the scanner moves as it says: one step, to the next
//!    column, past the row.
//!
//! A scanner belongs to one thread at a time, holds no lock, and keeps the files and memstores it reads
//! alive.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::Result;
use crate::cell::{Cell, CellBatch, CellCursor, CellType, Key, KeyBuf, RowOrder};
use crate::filter::Filter;
use crate::hfile::RunLimits;
use crate::op::{FamilySelection, ReadSpec};
use crate::schema::FamilyDescriptor;

use super::matcher::{Decision, ReadMatcher};
use super::merge::MergeCursor;
use super::opening::{Opening, ReadRows};
use super::source::Source;
use super::{Reach, ReadView, StoreVersion};

/// Limit of the cells still wanted of a row; counted down by [`StoreScanner::read_row`], over all
/// families of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowLimit {
    /// Cells.
    pub cells: usize,
    /// Bytes of keys and values. The cell that crosses it is still delivered.
    pub bytes: usize,
}

impl RowLimit {
    /// No limit.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self {
        cells: usize::MAX,
        bytes: usize::MAX,
    };

    fn is_reached(&self) -> bool {
        self.cells == 0 || self.bytes == 0
    }

    /// Counts a cell as it is returned: what a filter removed from it counts nowhere.
    fn take(&mut self, cell: Cell<'_>) {
        self.cells -= 1;
        self.bytes = self.bytes.saturating_sub(cell.data_bytes());
    }
}

/// How [`StoreScanner::read_row`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowProgress {
    /// The family has no more cells for this row; the scanner stands at its next row.
    Done,
    /// The limit is used up and the family has at least one more cell for this row: call again with the same
    /// row.
    LimitReached,
    /// The filter wants nothing more of the whole scan.
    ScanDone,
}

/// How a scanner goes from row to row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    /// Not at all: only one row will ever be read, so the scanner never moves beyond it.
    Single,
    Forward,
    Reversed,
}

/// The inputs of a scanner: the sources of a store that can matter.
#[derive(Debug)]
pub(crate) struct Sources(Vec<Source>);

impl Sources {
    /// Picks and opens the sources. For a single row they are positioned, and there are none if the
    /// store has no cells of the row.
    pub(crate) fn of(
        version: &StoreVersion,
        selection: Option<&FamilySelection>,
        spec: &ReadSpec,
        (reach, read_view): (Reach, ReadView),
        rows: ReadRows<'_>,
    ) -> Result<Self> {
        Opening::new(version, selection, spec, reach, read_view.now_ms, rows)
            .sources(version, read_view.read_point)
            .map(Self)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads one version of one store at one read point, row by row.
///
/// After an error, drop the open row of the batch and call [`Self::seek_row`] before reading on.
#[derive(Debug)]
pub(crate) struct StoreScanner {
    cursor: MergeCursor<Source>,
    matcher: ReadMatcher,
    family: Arc<FamilyDescriptor>,
    order: RowOrder,
    walk: Walk,
    /// The single row has been read, or the filter has ended the scan.
    finished: bool,
    family_offset: usize,
    family_limit: usize,
    /// The row being read.
    row: SmallVec<[u8; 64]>,
    in_row: bool,
    /// The decision on the cell under the cursor, which the limit kept from being delivered.
    pending: Option<Decision>,
    /// Cells of the row so far, those left out by the offset included.
    count: usize,
    /// Seek target.
    target: Vec<u8>,
    /// Where a filter puts a changed value.
    scratch: Vec<u8>,
}

impl StoreScanner {
    /// A scanner over these sources, which were opened with the same arguments; not positioned yet.
    /// Built where the caller keeps it: it is large. `selection`: the columns to read of this
    /// family; `None`: all.
    #[inline]
    pub(crate) fn over(
        sources: Sources,
        version: &StoreVersion,
        selection: Option<&FamilySelection>,
        spec: &ReadSpec,
        read_view: ReadView,
        rows: ReadRows<'_>,
    ) -> Self {
        let walk = match rows {
            ReadRows::One(_) => Walk::Single,
            ReadRows::Range { reversed: false, .. } => Walk::Forward,
            ReadRows::Range { reversed: true, .. } => Walk::Reversed,
        };
        Self {
            cursor: MergeCursor::new(sources.0),
            matcher: ReadMatcher::new(&version.family, selection, spec, read_view),
            family: Arc::clone(&version.family),
            order: version.row_order(),
            walk,
            finished: false,
            family_offset: spec.family_offset,
            family_limit: spec.family_limit.unwrap_or(usize::MAX),
            row: SmallVec::new(),
            in_row: false,
            pending: None,
            count: 0,
            target: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Positions a new scanner: `One` at that row, `Range` at `low` (reversed: at `high`).
    pub(crate) fn go_to_begin(&mut self, rows: ReadRows<'_>) -> Result<()> {
        match rows {
            // Opening has sought the row in each source.
            ReadRows::One(_) => {
                self.cursor.take_positions();
                Ok(())
            }
            ReadRows::Range {
                high: [],
                reversed: true,
                ..
            } => self.cursor.seek_last_row(),
            ReadRows::Range {
                high: row,
                reversed: true,
                ..
            }
            | ReadRows::Range {
                low: row,
                reversed: false,
                ..
            } => self.seek_row(row),
        }
    }

    /// The row of the next visible raw cell: the row may turn out to have no result. `None` at the end.
    pub(crate) fn row(&self) -> Option<&[u8]> {
        if self.finished {
            return None;
        }
        self.cursor.cell().map(|cell| cell.key.row())
    }

    /// Where the scanner stands in relation to `row`; `None` at its end.
    fn stands(&self, row: &[u8]) -> Option<Ordering> {
        self.cursor
            .cell()
            .map(|cell| self.order.compare(cell.key.row(), row))
    }

    /// Moves to the first row at or after `row`; reversed: to the greatest row at or before it.
    pub(crate) fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        self.leave_row();
        self.finished = false;
        if self.walk == Walk::Reversed {
            return self.cursor.seek_row_before(&self.order.successor(row));
        }
        self.target.clear();
        KeyBuf::append(
            &mut self.target,
            row,
            &self.family.name,
            b"",
            i64::MAX,
            CellType::Maximum,
        );
        let target = Key::trusted(&self.target);
        if self.stands(row).is_some_and(Ordering::is_lt) {
            self.cursor.seek_forward(target)
        } else {
            self.cursor.seek(target)
        }
    }

    /// Moves past `row` in the direction of the scan.
    pub(crate) fn skip_row(&mut self, row: &[u8]) -> Result<()> {
        self.leave_row();
        match self.walk {
            Walk::Single => self.finished |= self.cursor.cell().is_some_and(|cell| cell.key.row() == row),
            Walk::Forward => self.seek_past(row)?,
            Walk::Reversed => {
                if self.stands(row).is_some_and(Ordering::is_ge) {
                    self.cursor.seek_row_before(row)?;
                }
            }
        }
        Ok(())
    }

    /// Appends the visible cells of `row` to the open row of `out`, or continues to do so after
    /// `LimitReached`. `Done` at once when the scanner does not stand at `row`.
    /// REQUIRES: `filter` is an instance of `ReadSpec::filter`, the same one for the whole scan, if and only
    /// if the read has one.
    pub(crate) fn read_row(
        &mut self,
        row: &[u8],
        mut filter: Option<&mut (dyn Filter + '_)>,
        limit: &mut RowLimit,
        out: &mut CellBatch,
    ) -> Result<RowProgress> {
        let goes_on = self.in_row && self.row[..] == *row;
        if !goes_on && !self.begin_row(row) {
            return Ok(RowProgress::Done);
        }
        loop {
            let Some(cell) = self.cursor.cell().filter(|cell| cell.key.row() == row) else {
                return self.end_row_and_maybe_scan(row, filter.as_deref());
            };
            let decision = match self.pending.take() {
                Some(decided) => decided,
                None => self.matcher.decide(cell, filter.as_deref_mut())?,
            };
            if matches!(
                decision,
                Decision::Include | Decision::IncludeAndNextColumn | Decision::IncludeAndNextRow
            ) {
                if self.count >= self.family_offset {
                    if limit.is_reached() {
                        self.pending = Some(decision);
                        return Ok(RowProgress::LimitReached);
                    }
                    match &filter {
                        Some(filter) if filter.transforms() => {
                            self.scratch.clear();
                            // Tags describe the value they came with (HBase's transformCell drops
                            // them too).
                            let transformed = Cell {
                                value: filter.transform_value(cell, &mut self.scratch),
                                tags: &[],
                                ..cell
                            };
                            limit.take(transformed);
                            out.add(transformed)?;
                        }
                        _ => {
                            limit.take(cell);
                            out.add(cell)?;
                        }
                    }
                }
                self.count += 1;
                // As in HBase the cell that reaches the limit is the last one that the filter sees,
                // and a limit of 0 lets one through (`StoreScanner.next`).
                let behind_offset = self.count > self.family_offset;
                if behind_offset && self.count >= self.family_limit.saturating_add(self.family_offset) {
                    return self.end_row(row);
                }
            }
            match decision {
                Decision::Include | Decision::Skip => self.cursor.advance()?,
                Decision::IncludeAndNextColumn | Decision::NextColumn => {
                    self.matcher.next_column(cell.key, &mut self.target);
                    self.cursor.seek_forward(Key::trusted(&self.target))?;
                }
                Decision::IncludeAndNextRow | Decision::NextRow => {
                    return self.end_row_and_maybe_scan(row, filter.as_deref());
                }
                Decision::ScanDone => {
                    self.leave_row();
                    // For good (HBase closes the store's scanner): the next row's `reset` may make the filter
                    // want more again, and then the rest of this row would come as a row of its own.
                    self.finished = true;
                    return Ok(RowProgress::ScanDone);
                }
                Decision::Hint => {
                    let hint = filter.as_mut().and_then(|filter| filter.next_cell_hint(cell));
                    let is_list = filter.as_ref().is_some_and(|filter| filter.is_list());
                    if !self.follow_hint(hint, is_list)? {
                        self.finished |= filter.is_some_and(|filter| filter.filter_all_remaining());
                        return Ok(RowProgress::Done);
                    }
                }
            }
        }
    }

    /// Moves to the filter's hint, if that is ahead. Returns whether the row goes on.
    fn follow_hint(&mut self, hint: Option<KeyBuf>, is_list: bool) -> Result<bool> {
        let (Some(hint), Some(cell)) = (hint, self.cursor.cell()) else {
            self.cursor.advance()?;
            return Ok(true);
        };
        let (hint, key) = (hint.as_key(), cell.key);
        if hint.row() != key.row() {
            let ahead = (hint.row() < key.row()) == (self.walk == Walk::Reversed);
            // Filters assume the order of bytes. Where rows have another order, stepping finds the
            // target.
            if !ahead || self.order != RowOrder::Bytes {
                self.cursor.advance()?;
                return Ok(true);
            }
            self.leave_row();
            match self.walk {
                Walk::Single => self.finished = true,
                Walk::Forward | Walk::Reversed => self.seek_row(hint.row())?,
            }
            return Ok(false);
        }
        // In a reversed scan HBase follows no hint inside the row. The cells that it would jump over make
        // no difference to the filter that gives the hint, but another one in a list may count them.
        if is_list && self.walk == Walk::Reversed {
            self.cursor.advance()?;
            return Ok(true);
        }
        // Inside the row cells come in the same order in both directions. A hint for another family
        // means that nothing more is wanted here, or that the place is not known yet.
        if hint.family() > key.family() {
            let row = key.row().to_vec();
            self.end_row(&row)?;
            return Ok(false);
        }
        let ahead = hint.family() == key.family() && hint.qualifier() > key.qualifier();
        if !ahead || self.matcher.must_step(key) {
            // A jump inside the column, or over the empty one, could miss tombstones; stepping finds the same
            // cells.
            self.cursor.advance()?;
            return Ok(true);
        }
        let target = KeyBuf::first_on_column(hint.row(), hint.family(), hint.qualifier());
        self.cursor.seek_forward(target.as_key())?;
        Ok(true)
    }

    /// Appends plain rows (`hfile::plain_rows`) as long as the next ones are, each as a closed row, and moves
    /// behind them. Returns the number of rows; 0 also in the middle of a row.
    /// REQUIRES: the read has no filter, and is not of a single row.
    #[inline]
    pub(crate) fn append_plain_rows(&mut self, limits: RunLimits<'_>, out: &mut CellBatch) -> usize {
        let takes_rows_whole = self.walk != Walk::Single
            && self.order == RowOrder::Bytes
            && (self.family_offset, self.family_limit) == (0, usize::MAX);
        if !takes_rows_whole || self.finished || self.in_row {
            return 0;
        }
        let Some(wanted) = self.matcher.plain_rows(limits) else {
            return 0;
        };
        self.cursor.take_from_current(|source, other_row| {
            let mut wanted = wanted;
            let end = wanted.limits.end;
            let other_is_nearer = match self.walk {
                Walk::Reversed => other_row > end,
                _ => end.is_empty() || (!other_row.is_empty() && other_row < end),
            };
            if other_is_nearer {
                wanted.limits.end = other_row;
            }
            source.append_plain_rows(&wanted, out)
        })
    }

    /// Starts with a row if the scanner stands there.
    fn begin_row(&mut self, row: &[u8]) -> bool {
        if self.row() != Some(row) {
            return false;
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.in_row = true;
        self.pending = None;
        self.count = 0;
        self.matcher.begin_row();
        true
    }

    fn leave_row(&mut self) {
        self.in_row = false;
        self.pending = None;
    }

    /// As [`Self::end_row`]. If the filter is done here, the scanner is done for good: HBase shows
    /// the next row's first cell to its matcher before it gives the row back, and the matcher asks
    /// the filter first (`UserScanQueryMatcher`).
    fn end_row_and_maybe_scan(
        &mut self,
        row: &[u8],
        filter: Option<&(dyn Filter + '_)>,
    ) -> Result<RowProgress> {
        let progress = self.end_row(row)?;
        self.finished |= filter.is_some_and(Filter::filter_all_remaining);
        Ok(progress)
    }

    /// Nothing more is wanted of the row: goes to the next one.
    fn end_row(&mut self, row: &[u8]) -> Result<RowProgress> {
        self.leave_row();
        match self.walk {
            Walk::Single => self.finished = true,
            Walk::Forward => self.seek_past(row)?,
            Walk::Reversed => self.cursor.seek_row_before(row)?,
        }
        Ok(RowProgress::Done)
    }

    #[inline]
    fn seek_past(&mut self, row: &[u8]) -> Result<()> {
        match self.stands(row) {
            Some(Ordering::Less | Ordering::Equal) => self.step_past(row),
            Some(Ordering::Greater) | None => Ok(()),
        }
    }

    /// The rest of [`Self::seek_past`], a function of its own, so that the common case, a row that
    /// ended with its last column, is quick.
    #[inline(never)]
    fn step_past(&mut self, row: &[u8]) -> Result<()> {
        if self.stands(row) == Some(Ordering::Equal) {
            // Mostly this was the row's last cell.
            self.cursor.advance()?;
            if self.stands(row) != Some(Ordering::Equal) {
                return Ok(());
            }
        }
        self.target.clear();
        let family = &self.family.name;
        KeyBuf::append(
            &mut self.target,
            &self.order.successor(row),
            family,
            b"",
            i64::MAX,
            CellType::Maximum,
        );
        self.cursor.seek_forward(Key::trusted(&self.target))
    }
}
