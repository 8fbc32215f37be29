//! Filters that keep or drop a whole row for the value of one of its columns.

use super::{Comparison, Filter, ReturnCode};
use crate::Result;
use crate::cell::{Cell, CellBatch};

/// Arguments of `SingleColumnValueFilter` and `SingleColumnValueExcludeFilter`.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleColumnValue {
    /// Family of the tested column.
    pub family: Vec<u8>,
    /// Qualifier of the tested column.
    pub qualifier: Vec<u8>,
    /// Condition on its value.
    pub comparison: Comparison,
    /// Drop rows without the column.
    pub filter_if_missing: bool,
    /// Look at the newest version only.
    pub latest_version_only: bool,
}

/// Rows in which one column's value compares.
///
/// The column must be among those the scan reads, or it counts as missing. Cells of other columns pass for
/// the time being; the row is judged at its end.
#[derive(Debug)]
pub(super) struct SingleColumnValueFilter {
    test: SingleColumnValue,
    /// Drop the tested column from the result (`SingleColumnValueExcludeFilter`).
    exclude: bool,
    found: bool,
    matched: bool,
}

impl SingleColumnValueFilter {
    pub(super) fn new(test: SingleColumnValue, exclude: bool) -> Self {
        Self {
            test,
            exclude,
            found: false,
            matched: false,
        }
    }
}

fn is_tested(test: &SingleColumnValue, cell: Cell<'_>) -> bool {
    cell.key.family() == test.family && cell.key.qualifier() == test.qualifier
}

impl Filter for SingleColumnValueFilter {
    fn reset(&mut self) {
        self.found = false;
        self.matched = false;
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        if self.matched {
            return Ok(ReturnCode::Include);
        }
        if self.test.latest_version_only && self.found {
            return Ok(ReturnCode::NextRow);
        }
        if !is_tested(&self.test, cell) {
            return Ok(ReturnCode::Include);
        }
        self.found = true;
        self.matched = !self.test.comparison.rejects(cell.value)?;
        // An older version may still match, unless only the newest counts.
        Ok(if self.matched || !self.test.latest_version_only {
            ReturnCode::Include
        } else {
            ReturnCode::NextRow
        })
    }

    fn filter_row_cells(&mut self, batch: &mut CellBatch) {
        if self.exclude {
            batch.retain_open(|cell| !is_tested(&self.test, cell));
        }
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        if self.found {
            !self.matched
        } else {
            self.test.filter_if_missing
        }
    }

    fn is_family_essential(&self, family: &[u8]) -> bool {
        !self.test.filter_if_missing || family == self.test.family
    }
}
