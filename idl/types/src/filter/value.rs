//! Filters that judge a cell by its value or timestamp.

use std::sync::Arc;

use super::{Comparison, Filter, ReturnCode};
use crate::Result;
use crate::cell::{Cell, CellType, KeyBuf};

/// Cells whose value compares, each version by itself.
#[derive(Debug)]
pub(super) struct ValueFilter(pub(super) Comparison);

impl Filter for ValueFilter {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        Ok(if self.0.rejects(cell.value)? {
            ReturnCode::Skip
        } else {
            ReturnCode::Include
        })
    }
}

/// Cells of one column whose value compares, and of no other column.
#[derive(Debug)]
pub(super) struct ColumnValueFilter {
    family: Vec<u8>,
    qualifier: Vec<u8>,
    comparison: Comparison,
    found: bool,
}

impl ColumnValueFilter {
    pub(super) fn new(family: Vec<u8>, qualifier: Vec<u8>, comparison: Comparison) -> Self {
        Self {
            family,
            qualifier,
            comparison,
            found: false,
        }
    }
}

impl Filter for ColumnValueFilter {
    fn reset(&mut self) {
        self.found = false;
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        if cell.key.family() != self.family || cell.key.qualifier() != self.qualifier {
            return Ok(if self.found {
                ReturnCode::NextRow
            } else {
                ReturnCode::NextCol
            });
        }
        self.found = true;
        Ok(if self.comparison.rejects(cell.value)? {
            ReturnCode::Skip
        } else {
            ReturnCode::Include
        })
    }

    fn is_family_essential(&self, family: &[u8]) -> bool {
        family == self.family
    }
}

/// Cells with certain timestamps.
#[derive(Debug)]
pub(super) struct TimestampsFilter {
    /// Sorted, each once.
    timestamps: Arc<[i64]>,
    /// Seek from wanted timestamp to wanted timestamp. This may jump over a tombstone and so show what it
    /// deletes.
    can_hint: bool,
}

impl TimestampsFilter {
    pub(super) fn new(timestamps: Arc<[i64]>, can_hint: bool) -> Self {
        Self { timestamps, can_hint }
    }
}

impl Filter for TimestampsFilter {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let timestamp = cell.key.timestamp();
        let oldest = self.timestamps.first().copied().unwrap_or(i64::MAX);
        Ok(if self.timestamps.binary_search(&timestamp).is_ok() {
            ReturnCode::Include
        } else if timestamp < oldest {
            ReturnCode::NextCol
        } else if self.can_hint {
            ReturnCode::SeekNextUsingHint
        } else {
            ReturnCode::Skip
        })
    }

    fn gives_hints(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        if !self.can_hint {
            return None;
        }
        let (row, family, qualifier) = (cell.key.row(), cell.key.family(), cell.key.qualifier());
        let older = self
            .timestamps
            .partition_point(|wanted| *wanted < cell.key.timestamp());
        Some(match older.checked_sub(1) {
            Some(index) => KeyBuf::new(row, family, qualifier, self.timestamps[index], CellType::Maximum),
            None => KeyBuf::last_on_column(row, family, qualifier),
        })
    }
}
