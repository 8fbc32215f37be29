//! SKIP and WHILE: filters around a filter.
//!
//! Both look only at whether the inner filter said plain [`ReturnCode::Include`]; "include, and go to the
//! next column" counts as a miss, as in HBase. Neither passes on the inner filter's hints or its
//! `filter_row_cells`, nor tells it that the scan is reversed (HBase's two classes do not override
//! `setReversed`).

use super::{Filter, ReturnCode};
use crate::Result;
use crate::cell::Cell;

/// Drops the whole row when the inner filter does not include each of its cells.
///
/// The inner filter is asked about cells only, never about the row key: `SKIP RowFilter(...)` therefore
/// filters nothing and `SKIP PrefixFilter(...)` everything.
#[derive(Debug)]
pub(super) struct SkipFilter {
    inner: Box<dyn Filter>,
    filter_row: bool,
}

impl SkipFilter {
    pub(super) fn new(inner: Box<dyn Filter>) -> Self {
        Self {
            inner,
            filter_row: false,
        }
    }
}

impl Filter for SkipFilter {
    fn reset(&mut self) {
        self.inner.reset();
        self.filter_row = false;
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let code = self.inner.filter_cell(cell)?;
        self.filter_row |= code != ReturnCode::Include;
        Ok(code)
    }

    fn transforms(&self) -> bool {
        self.inner.transforms()
    }

    fn transform_value<'a>(&self, cell: Cell<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.inner.transform_value(cell, scratch)
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        self.filter_row
    }

    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.inner.is_family_essential(family)
    }
}

/// Ends the scan (of this region) as soon as the inner filter leaves anything out.
#[derive(Debug)]
pub(super) struct WhileMatchFilter {
    inner: Box<dyn Filter>,
    done: bool,
}

impl WhileMatchFilter {
    pub(super) fn new(inner: Box<dyn Filter>) -> Self {
        Self { inner, done: false }
    }
}

impl Filter for WhileMatchFilter {
    fn reset(&mut self) {
        self.inner.reset();
    }

    fn filter_all_remaining(&self) -> bool {
        self.done || self.inner.filter_all_remaining()
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        if self.filter_all_remaining() {
            return Ok(true);
        }
        let filtered = self.inner.filter_row_key(row)?;
        self.done |= filtered;
        Ok(filtered)
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let code = self.inner.filter_cell(cell)?;
        self.done |= code != ReturnCode::Include;
        Ok(code)
    }

    fn transforms(&self) -> bool {
        self.inner.transforms()
    }

    fn transform_value<'a>(&self, cell: Cell<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.inner.transform_value(cell, scratch)
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        let filtered = self.inner.filter_row();
        self.done |= filtered;
        filtered
    }

    fn may_end_in_left_out_rows(&self) -> bool {
        true
    }

    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.inner.is_family_essential(family)
    }
}
