//! The filter that keeps what was written together with a reference column.

use std::collections::HashSet;

use super::{Comparison, Filter, ReturnCode};
use crate::Result;
use crate::cell::{Cell, CellBatch};

/// Cells of a row that have the timestamp of one of the reference column's versions, in whatever family and
/// order.
#[derive(Debug)]
pub(super) struct DependentColumnFilter {
    family: Vec<u8>,
    qualifier: Vec<u8>,
    /// Leave the reference column itself out.
    drop_dependent: bool,
    /// Which values of the reference column count; `None`: all.
    comparison: Option<Comparison>,
    /// Timestamps of the row's reference cells.
    timestamps: HashSet<i64>,
}

impl DependentColumnFilter {
    pub(super) fn new(
        family: Vec<u8>,
        qualifier: Vec<u8>,
        drop_dependent: bool,
        comparison: Option<Comparison>,
    ) -> Self {
        Self {
            family,
            qualifier,
            drop_dependent,
            comparison,
            timestamps: HashSet::new(),
        }
    }
}

impl Filter for DependentColumnFilter {
    fn reset(&mut self) {
        self.timestamps.clear();
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        if cell.key.family() != self.family || cell.key.qualifier() != self.qualifier {
            return Ok(ReturnCode::Include);
        }
        if let Some(comparison) = &self.comparison
            && comparison.rejects(cell.value)?
        {
            return Ok(ReturnCode::Skip);
        }
        self.timestamps.insert(cell.key.timestamp());
        Ok(if self.drop_dependent {
            ReturnCode::Skip
        } else {
            ReturnCode::Include
        })
    }

    fn filter_row_cells(&mut self, batch: &mut CellBatch) {
        batch.retain_open(|cell| self.timestamps.contains(&cell.key.timestamp()));
    }

    fn has_filter_row(&self) -> bool {
        true
    }
}
