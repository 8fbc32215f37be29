//! Runs of plain rows: rows that a scan returns as they are in a data block.
//!
//! Most rows of most scans have no tombstones, no older versions and no tags, and are in one file only.
//! The result of such a row is the row itself, so the decisions of `store::matcher` are not needed:
//!
//! 1. The scan says in a [`PlainRows`] how much it wants, and how it recognizes a plain row.
//! 2. [`FileCursor::append_plain_rows`](super::FileCursor) copies row after row out of the block of plain
//!    cells that it stands in, each cell in one piece. A reversed scan goes down the list of row starts
//!    (`row_starts`).
//! 3. It stops before the first row that is not plain, or that may go on in the next block; backward also
//!    before the first row of the list. The scan reads that row cell by cell (`store::scanner`).
//!
//! Invariants:
//! - A row that is copied here has the same result when it is read cell by cell.
//! - After a run the cursor is at the first cell of the row that follows the run. That row is before
//!   [`RunLimits::end`], backward behind it, so a merge need not look at its other sources.
//!
//! `store::scanner` is the only caller.

use std::ops::RangeInclusive;

use super::cell_layout::{CellOffsets, CurrentCell};
use super::data_block::DataBlock;
use super::row_starts::RowStarts;
use crate::cell::{CellBatch, CellType, is_equal, is_from};

/// Unwanted cells in a row up to which stepping over them costs less than a search.
const UNWANTED_MAX: usize = 8;

/// Where a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits<'a> {
    /// Number of rows at most.
    pub(crate) rows: usize,
    /// The run ends with the row that reaches this many bytes of keys and values.
    pub(crate) bytes: usize,
    /// The run ends before a row with which it would reach this many bytes.
    pub(crate) cut_at: usize,
    /// A row of this many bytes is not plain.
    pub(crate) row_bytes: usize,
    /// The row that follows the run is before this one, in a reversed scan behind it; empty: no such row.
    pub(crate) end: &'a [u8],
}

/// The rows that a scan wants in a run.
#[derive(Clone, Debug)]
pub(crate) struct PlainRows<'a> {
    /// Where the run ends.
    pub(crate) limits: RunLimits<'a>,
    /// A wanted cell with another timestamp is not plain.
    pub(crate) timestamps: RangeInclusive<i64>,
    /// Qualifiers of the wanted columns, in order; `None`: all columns. A row without any of them is not
    /// plain.
    pub(crate) columns: Option<&'a [Vec<u8>]>,
}

impl DataBlock {
    /// Appends the rows of a run, the first of which begins at `current`, and moves `current` behind them.
    /// Returns the number of rows.
    pub(super) fn append_plain_rows(
        &self,
        wanted: &PlainRows<'_>,
        current: &mut CurrentCell,
        out: &mut CellBatch,
    ) -> usize {
        if !self.is_plain() {
            return 0;
        }
        self.append_run(wanted, wanted.limits, current, out).0
    }

    /// Appends the rows of a run backward, from the last row of `starts` on, which begins at `current`. Moves
    /// `current` to the row before them, which is the last one of `starts` then.
    pub(super) fn append_plain_rows_back(
        &self,
        wanted: &PlainRows<'_>,
        starts: &mut RowStarts,
        current: &mut CurrentCell,
        out: &mut CellBatch,
    ) -> usize {
        if !self.is_plain() {
            return 0;
        }
        let (mut rows, mut bytes) = (0, 0);
        let limits = wanted.limits;
        while rows < limits.rows && bytes < limits.bytes {
            let Some(before) = starts.before_last(&current.offsets) else {
                break;
            };
            if !limits.end.is_empty() && self.plain_key(&before).row() <= limits.end {
                break;
            }
            let one = RunLimits {
                rows: 1,
                cut_at: limits.cut_at.saturating_sub(bytes),
                end: b"",
                ..limits
            };
            let (taken, taken_bytes) = self.append_run(wanted, one, current, out);
            if taken == 0 {
                break;
            }
            starts.remove_last();
            current.offsets = before;
            bytes += taken_bytes;
            rows += 1;
        }
        rows
    }

    /// Appends rows within `limits`, the first of which begins at `current`, and moves `current` behind them.
    /// Returns the number of rows, and of their bytes of keys and values.
    fn append_run(
        &self,
        wanted: &PlainRows<'_>,
        limits: RunLimits<'_>,
        current: &mut CurrentCell,
        out: &mut CellBatch,
    ) -> (usize, usize) {
        let (mut rows, mut bytes) = (0, 0);
        while rows < limits.rows && bytes < limits.bytes {
            let limit = limits.row_bytes.min(limits.cut_at.saturating_sub(bytes));
            let Some(row) = self.append_plain_row(wanted, limits.end, current.offsets, limit, out) else {
                out.abandon_row();
                break;
            };
            out.end_row(false);
            current.offsets = row.next;
            bytes += row.bytes;
            rows += 1;
        }
        (rows, bytes)
    }

    /// Appends the cells of the row that begins at `cell`. `None`, and maybe some of its cells in the open
    /// row of `out`, if it is not plain or the next row is not before `end`.
    #[inline]
    fn append_plain_row(
        &self,
        wanted: &PlainRows<'_>,
        end: &[u8],
        mut cell: CellOffsets,
        limit: usize,
        out: &mut CellBatch,
    ) -> Option<Row> {
        let mut key = self.plain_key(&cell);
        let row = key.row();
        let mut columns = wanted.columns;
        let (mut bytes, mut unwanted) = (0, 0);
        loop {
            if key.type_code() != CellType::Put as u8 || cell.tags_bytes != 0 {
                return None;
            }
            if is_wanted(&mut columns, key.qualifier()) {
                bytes += (cell.key_bytes + cell.value_bytes) as usize;
                if bytes >= limit || !wanted.timestamps.contains(&key.timestamp()) {
                    return None;
                }
                // Where memory is short, reading cell by cell finds that, too, and reports it.
                out.add_stored(self.stored(&cell), cell.key_bytes, cell.seq)
                    .ok()?;
            } else {
                unwanted += 1;
                if unwanted > UNWANTED_MAX {
                    return None;
                }
            }
            let next = self.plain_after(&cell)?;
            let next_key = self.plain_key(&next);
            if !next_key.is_of_row(row) {
                if !end.is_empty() && is_from(next_key.row(), end) {
                    return None;
                }
                return (bytes > 0).then_some(Row { next, bytes });
            }
            if next_key.qualifier() == key.qualifier() {
                return None;
            }
            (cell, key) = (next, next_key);
        }
    }
}

/// Whether that column is one of `columns`. Drops those before it from `columns`.
/// REQUIRES: columns are asked for in order.
#[inline]
fn is_wanted(columns: &mut Option<&[Vec<u8>]>, qualifier: &[u8]) -> bool {
    let Some(columns) = columns else {
        return true;
    };
    while let [first, rest @ ..] = *columns {
        if is_equal(first, qualifier) {
            return true;
        }
        if first.as_slice() > qualifier {
            return false;
        }
        *columns = rest;
    }
    false
}

/// A row that was appended.
struct Row {
    /// The first cell behind it.
    next: CellOffsets,
    /// Bytes of its keys and values.
    bytes: usize,
}
