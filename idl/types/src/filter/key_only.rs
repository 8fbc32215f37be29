//! Filters for those who want keys, not values: counting rows, listing columns.

use std::sync::Arc;

use super::{Filter, ReturnCode};
use crate::Result;
use crate::cell::Cell;

/// Every cell, with an empty value or with the length of its value (4 bytes, big-endian).
#[derive(Debug)]
pub(super) struct KeyOnlyFilter {
    pub(super) len_as_value: bool,
}

impl Filter for KeyOnlyFilter {
    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(ReturnCode::Include)
    }

    fn transforms(&self) -> bool {
        true
    }

    fn transform_value<'a>(&self, cell: Cell<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if !self.len_as_value {
            return b"";
        }
        scratch.clear();
        scratch.extend_from_slice(&(cell.value.len() as u32).to_be_bytes());
        scratch
    }
}

/// The first cell of each row. The flag lives through all families of the row, so the first family wins.
#[derive(Debug, Default)]
pub(super) struct FirstKeyOnlyFilter {
    found: bool,
}

impl Filter for FirstKeyOnlyFilter {
    fn reset(&mut self) {
        self.found = false;
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(if std::mem::replace(&mut self.found, true) {
            ReturnCode::NextRow
        } else {
            ReturnCode::Include
        })
    }
}

/// The cells of each row up to the first whose qualifier is wanted, that one included.
#[derive(Debug)]
pub(super) struct FirstKeyValueMatchingQualifiersFilter {
    /// Sorted.
    qualifiers: Arc<[Vec<u8>]>,
    found: bool,
}

impl FirstKeyValueMatchingQualifiersFilter {
    pub(super) fn new(qualifiers: Arc<[Vec<u8>]>) -> Self {
        Self {
            qualifiers,
            found: false,
        }
    }
}

impl Filter for FirstKeyValueMatchingQualifiersFilter {
    fn reset(&mut self) {
        self.found = false;
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        if self.found {
            return Ok(ReturnCode::NextRow);
        }
        let qualifier = cell.key.qualifier();
        self.found = self
            .qualifiers
            .binary_search_by(|wanted| wanted.as_slice().cmp(qualifier))
            .is_ok();
        Ok(ReturnCode::Include)
    }
}
