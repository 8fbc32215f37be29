//! Filters that judge a cell by its family and qualifier, or a column by its number.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Comparison, Filter, ReturnCode};
use crate::Result;
use crate::cell::{Cell, KeyBuf};

/// The first possible cell of a column in the row and family of `cell`. Column hints are the same in reversed
/// scans, in which only rows run backward.
fn column_hint(cell: Cell<'_>, qualifier: &[u8]) -> KeyBuf {
    KeyBuf::first_on_column(cell.key.row(), cell.key.family(), qualifier)
}

/// Families whose name compares.
#[derive(Debug)]
pub(super) struct FamilyFilter(pub(super) Comparison);

impl Filter for FamilyFilter {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let family = cell.key.family();
        Ok(if !family.is_empty() && self.0.rejects(family)? {
            ReturnCode::NextRow
        } else {
            ReturnCode::Include
        })
    }
}

/// Columns whose qualifier compares.
#[derive(Debug)]
pub(super) struct QualifierFilter(pub(super) Comparison);

impl Filter for QualifierFilter {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        Ok(if self.0.rejects(cell.key.qualifier())? {
            ReturnCode::Skip
        } else {
            ReturnCode::Include
        })
    }
}

/// Columns that begin with a prefix.
#[derive(Debug)]
pub(super) struct ColumnPrefixFilter(pub(super) Vec<u8>);

impl Filter for ColumnPrefixFilter {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let qualifier = cell.key.qualifier();
        let order = qualifier[..qualifier.len().min(self.0.len())].cmp(self.0.as_slice());
        Ok(match order {
            Ordering::Less => ReturnCode::SeekNextUsingHint,
            Ordering::Equal => ReturnCode::Include,
            Ordering::Greater => ReturnCode::NextRow,
        })
    }

    fn gives_hints(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        Some(column_hint(cell, &self.0))
    }
}

/// Columns that begin with one of several prefixes.
///
/// As in HBase only the greatest prefix that is not above the qualifier is looked at: with `a` and `ab` the
/// column `ac` is lost, because it is compared with `ab`.
#[derive(Debug)]
pub(super) struct MultipleColumnPrefixFilter {
    /// Sorted, each once.
    prefixes: Arc<[Vec<u8>]>,
    /// The prefix to go to, after a hint.
    next: usize,
}

impl MultipleColumnPrefixFilter {
    pub(super) fn new(prefixes: Arc<[Vec<u8>]>) -> Self {
        Self { prefixes, next: 0 }
    }
}

impl Filter for MultipleColumnPrefixFilter {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let qualifier = cell.key.qualifier();
        if self.prefixes.is_empty() {
            return Ok(ReturnCode::Include);
        }
        self.next = self
            .prefixes
            .partition_point(|prefix| prefix.as_slice() <= qualifier);
        let greatest = self.next.checked_sub(1).map(|index| &self.prefixes[index]);
        Ok(if greatest.is_some_and(|prefix| qualifier.starts_with(prefix)) {
            ReturnCode::Include
        } else if self.next == self.prefixes.len() {
            ReturnCode::NextRow
        } else {
            ReturnCode::SeekNextUsingHint
        })
    }

    fn gives_hints(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        self.prefixes
            .get(self.next)
            .map(|prefix| column_hint(cell, prefix))
    }
}

/// Arguments of `ColumnRangeFilter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRange {
    /// First column; `None`: no bound.
    pub min: Option<Vec<u8>>,
    /// Whether the first column belongs to it.
    pub min_inclusive: bool,
    /// Last column; `None`: no bound.
    pub max: Option<Vec<u8>>,
    /// Whether the last column belongs to it.
    pub max_inclusive: bool,
}

/// Columns of a range.
#[derive(Debug)]
pub(super) struct ColumnRangeFilter(pub(super) ColumnRange);

impl Filter for ColumnRangeFilter {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let qualifier = cell.key.qualifier();
        let range = &self.0;
        if let Some(min) = &range.min {
            match qualifier.cmp(min.as_slice()) {
                Ordering::Less => return Ok(ReturnCode::SeekNextUsingHint),
                Ordering::Equal if !range.min_inclusive => return Ok(ReturnCode::NextCol),
                _ => {}
            }
        }
        let inside = range.max.as_ref().is_none_or(|max| {
            let order = qualifier.cmp(max.as_slice());
            order.is_lt() || (range.max_inclusive && order.is_eq())
        });
        Ok(if inside {
            ReturnCode::Include
        } else {
            ReturnCode::NextRow
        })
    }

    fn gives_hints(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        self.0.min.as_ref().map(|min| column_hint(cell, min))
    }
}

/// The first columns of a row, and the end of the scan at the first row that has more: meant for Get.
#[derive(Debug)]
pub(super) struct ColumnCountGetFilter {
    limit: i64,
    count: i64,
}

impl ColumnCountGetFilter {
    pub(super) fn new(limit: i32) -> Self {
        Self {
            limit: limit.into(),
            count: 0,
        }
    }
}

impl Filter for ColumnCountGetFilter {
    fn reset(&mut self) {
        self.count = 0;
    }

    fn filter_all_remaining(&self) -> bool {
        self.count > self.limit
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        self.count += 1;
        Ok(if self.filter_all_remaining() {
            ReturnCode::NextCol
        } else {
            ReturnCode::IncludeAndNextCol
        })
    }
}

/// Where a page of columns begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PageStart {
    /// After so many columns.
    Offset(i32),
    /// At the first column not below this one, in the first family that has one.
    Column(Vec<u8>),
}

/// A page of the columns of each row, counted over all families, newest version of each.
#[derive(Debug)]
pub(super) struct ColumnPaginationFilter {
    limit: i64,
    start: PageStart,
    count: i64,
}

impl ColumnPaginationFilter {
    pub(super) fn new(limit: i32, start: PageStart) -> Self {
        Self {
            limit: limit.into(),
            start,
            count: 0,
        }
    }
}

impl Filter for ColumnPaginationFilter {
    fn reset(&mut self) {
        self.count = 0;
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let skipped = match &self.start {
            PageStart::Offset(offset) => i64::from(*offset),
            PageStart::Column(_) => 0,
        };
        if self.count >= skipped + self.limit {
            return Ok(ReturnCode::NextRow);
        }
        // The start column is looked for only until one column was counted.
        if let PageStart::Column(column) = &self.start
            && self.count == 0
            && cell.key.qualifier() < column.as_slice()
        {
            return Ok(ReturnCode::SeekNextUsingHint);
        }
        self.count += 1;
        Ok(if self.count <= skipped {
            ReturnCode::NextCol
        } else {
            ReturnCode::IncludeAndNextCol
        })
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        match &self.start {
            PageStart::Offset(_) => None,
            PageStart::Column(column) => Some(column_hint(cell, column)),
        }
    }
}
