//! Filters that judge a row by its key, or by its number.

use std::cmp::Ordering;

use super::{Comparison, Filter, ReturnCode};
use crate::Result;
use crate::cell::{Cell, KeyBuf};

/// Where a row lies, in the direction of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// No row key was shown yet. SKIP never shows one, which is why SKIP around a PrefixFilter drops every
    /// row.
    Unknown,
    Before,
    Inside,
    Behind,
}

/// Rows that begin with a prefix. Cells of rows before it answer with a hint.
#[derive(Debug)]
pub(super) struct PrefixFilter {
    prefix: Vec<u8>,
    reversed: bool,
    /// Place of the current row.
    place: Place,
    /// Some row lay behind the prefix: nothing more can match.
    passed: bool,
}

impl PrefixFilter {
    pub(super) fn new(prefix: Vec<u8>) -> Self {
        Self {
            prefix,
            reversed: false,
            place: Place::Unknown,
            passed: false,
        }
    }
}

impl Filter for PrefixFilter {
    fn set_reversed(&mut self, reversed: bool) {
        self.reversed = reversed;
    }

    fn reset(&mut self) {
        self.place = Place::Unknown;
    }

    fn filter_all_remaining(&self) -> bool {
        self.passed
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        if self.passed {
            return Ok(true);
        }
        let order = row[..row.len().min(self.prefix.len())].cmp(self.prefix.as_slice());
        self.place = match if self.reversed { order.reverse() } else { order } {
            Ordering::Less => Place::Before,
            Ordering::Equal => Place::Inside,
            Ordering::Greater => Place::Behind,
        };
        self.passed = self.place == Place::Behind;
        // A row before the prefix is not left out here, so that its first cell can answer with the hint.
        Ok(self.passed)
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(match self.place {
            Place::Before => ReturnCode::SeekNextUsingHint,
            Place::Inside => ReturnCode::Include,
            Place::Unknown | Place::Behind => ReturnCode::NextRow,
        })
    }

    fn filter_row(&mut self) -> bool {
        self.place != Place::Inside
    }

    fn gives_hints(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        let family = cell.key.family();
        if self.reversed {
            Some(KeyBuf::first_on_row(&first_row_behind(&self.prefix)?, family))
        } else {
            Some(KeyBuf::first_on_row(&self.prefix, family))
        }
    }
}

/// The smallest row that is greater than every row that begins with `prefix`; `None` when there is none.
pub(super) fn first_row_behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut row = prefix[..=last].to_vec();
    row[last] += 1;
    Some(row)
}

/// Rows up to a stop row, which is included.
#[derive(Debug)]
pub(super) struct InclusiveStopFilter {
    stop_row: Vec<u8>,
    reversed: bool,
    done: bool,
}

impl InclusiveStopFilter {
    pub(super) fn new(stop_row: Vec<u8>) -> Self {
        Self {
            stop_row,
            reversed: false,
            done: false,
        }
    }
}

impl Filter for InclusiveStopFilter {
    fn set_reversed(&mut self, reversed: bool) {
        self.reversed = reversed;
    }

    fn filter_all_remaining(&self) -> bool {
        self.done
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        let order = row.cmp(self.stop_row.as_slice());
        self.done |= if self.reversed {
            order.is_lt()
        } else {
            order.is_gt()
        };
        Ok(self.done)
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(if self.done {
            ReturnCode::NextRow
        } else {
            ReturnCode::Include
        })
    }
}

/// Rows whose key compares.
#[derive(Debug)]
pub(super) struct RowFilter {
    comparison: Comparison,
    filter_row: bool,
}

impl RowFilter {
    pub(super) fn new(comparison: Comparison) -> Self {
        Self {
            comparison,
            filter_row: false,
        }
    }
}

impl Filter for RowFilter {
    fn reset(&mut self) {
        self.filter_row = false;
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        self.filter_row = self.comparison.rejects(row)?;
        Ok(self.filter_row)
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(if self.filter_row {
            ReturnCode::NextRow
        } else {
            ReturnCode::Include
        })
    }

    fn filter_row(&mut self) -> bool {
        self.filter_row
    }
}

/// The first rows of the region.
#[derive(Debug)]
pub(super) struct PageFilter {
    rows_max: i64,
    /// Rows that came as far as `filter_row`, those beyond the page too.
    rows: i64,
}

impl PageFilter {
    pub(super) fn new(rows_max: i64) -> Self {
        Self { rows_max, rows: 0 }
    }
}

impl Filter for PageFilter {
    fn filter_all_remaining(&self) -> bool {
        self.rows >= self.rows_max
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(ReturnCode::Include)
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        self.rows = self.rows.saturating_add(1);
        self.rows > self.rows_max
    }
}

/// A share of the rows, taken by chance.
///
/// Chance is a hash of the row key under a seed: rows of different regions are drawn independently of each
/// other and of how often they are looked at, and the same seed draws the same rows.
#[derive(Debug)]
pub(super) struct RandomRowFilter {
    chance: f32,
    seed: u64,
    filter_row: bool,
}

impl RandomRowFilter {
    pub(super) fn new(chance: f32, seed: u64) -> Self {
        Self {
            chance,
            seed,
            filter_row: false,
        }
    }
}

impl Filter for RandomRowFilter {
    fn reset(&mut self) {
        self.filter_row = false;
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(row, self.seed);
        // 24 bits are what a float of 32 bits holds: in [0, 1), as Java's nextFloat.
        let drawn = (hash >> 40) as f32 / (1u32 << 24) as f32;
        // A chance that is no number draws nothing.
        let kept = self.chance > 1.0 || drawn < self.chance;
        self.filter_row = !kept;
        Ok(self.filter_row)
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(if self.filter_row {
            ReturnCode::NextRow
        } else {
            ReturnCode::Include
        })
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        self.filter_row
    }
}

/// Nothing at all.
#[derive(Debug)]
pub(super) struct FilterAllFilter;

impl Filter for FilterAllFilter {
    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(ReturnCode::Skip)
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        true
    }
}
