//! Filters: HBase's, with HBase's evaluation order.
//!
//! 1. A request carries a filter as a string ([`FilterSpec::parse`]) or as protobuf ([`FilterSpec::decode`]).
//!    Both give the same immutable, validated tree.
//! 2. For each region a scan visits, [`FilterSpec::create`] makes a fresh [`Filter`], which keeps the state
//!    of that one scan.
//! 3. The region calls it, row by row: [`Filter::reset`], [`Filter::filter_all_remaining`],
//!    [`Filter::filter_row_key`]; for each cell [`Filter::filter_cell`] and, when the cell stays,
//!    [`Filter::transform_value`]; at the end of the row [`Filter::filter_row_cells`] and
//!    [`Filter::filter_row`].
//!
//! Invariants: a filter does no I/O and never panics on what a client sent. A tree is at most [`DEPTH_MAX`]
//! deep, however it came in, so walking it recursively is safe. A `FilterSpec` is shared between threads; a
//! `Filter` belongs to one scanner.
//!
//! Where HBase's filters have quirks, ours have them too; the quirk is then told where it is coded.

mod column;
mod comparator;
mod decimal;
mod dependent;
mod fuzzy;
mod java_regex;
mod key_only;
mod list;
mod multi_range;
mod parse;
mod print;
mod proto;
mod row;
mod single_column;
mod spec;
mod user_code;
mod value;
mod wrap;

pub use column::ColumnRange;
pub use comparator::{BitOperator, Comparator, CompareOp, Comparison};
pub use decimal::BigDecimal;
pub use fuzzy::{FuzzyKey, MaskForm};
pub use java_regex::JavaRegex;
pub use multi_range::RowRange;
pub use parse::{FILTER_STRING_MAX_BYTES, ParseError};
pub use proto::FILTER_BYTES_MAX;
pub use single_column::SingleColumnValue;
pub use spec::{FilterSender, FilterSpec, ListOperator, UserFilter};

use std::fmt::Debug;

use crate::Result;
use crate::cell::{Cell, CellBatch, KeyBuf};

/// Most levels of a filter tree: lists, SKIP and WHILE above a plain filter, and that filter.
pub const DEPTH_MAX: usize = 64;

/// Verdict of a filter on a cell. The order of the variants means nothing here; see HBase's
/// `Filter.ReturnCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnCode {
    /// Keep it.
    Include,
    /// Keep it, skip older versions of its column.
    IncludeAndNextCol,
    /// Keep it, done with this row in this family.
    IncludeAndSeekNextRow,
    /// Drop it.
    Skip,
    /// Drop it and the rest of its column.
    NextCol,
    /// Drop it and the rest of the row in this family.
    NextRow,
    /// Drop it and go to the cell that `next_cell_hint` names.
    SeekNextUsingHint,
}

impl ReturnCode {
    /// Whether the cell stays.
    pub fn includes(self) -> bool {
        matches!(
            self,
            Self::Include | Self::IncludeAndNextCol | Self::IncludeAndSeekNextRow
        )
    }
}

/// A filter in use: one instance for one region and one scan, called in the order told in the module comment.
///
/// The region calls `filter_row` for rows without cells only when `has_filter_row` is false.
pub trait Filter: Send + Debug {
    /// Told once, before anything else.
    fn set_reversed(&mut self, reversed: bool) {
        let _ = reversed;
    }
    /// A new row begins.
    fn reset(&mut self) {}
    /// Nothing more can match.
    fn filter_all_remaining(&self) -> bool {
        false
    }
    /// Leave this row out?
    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        let _ = row;
        Ok(self.filter_all_remaining())
    }
    /// Verdict on this cell.
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode>;
    /// Whether included cells go through [`Self::transform_value`]. Such cells lose their tags.
    fn transforms(&self) -> bool {
        false
    }
    /// The value to return instead of the cell's own. `scratch` may hold it.
    fn transform_value<'a>(&self, cell: Cell<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let _ = scratch;
        cell.value
    }
    /// Looks at the whole row (the open row of `batch`) and may drop cells from it.
    fn filter_row_cells(&mut self, batch: &mut CellBatch) {
        let _ = batch;
    }
    /// Whether the row can only be judged as a whole.
    fn has_filter_row(&self) -> bool {
        false
    }
    /// Leave the whole row out?
    fn filter_row(&mut self) -> bool {
        false
    }
    /// Where to go after [`ReturnCode::SeekNextUsingHint`], asked with the cell that got this answer. `None`,
    /// or a place that is not ahead of the cell, means the next cell. In a reversed scan a hint in another
    /// row means: that row, or the greatest row before it.
    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        let _ = cell;
        None
    }
    /// Whether it combines filters, one of which may count the cells that the hint of another one jumps over.
    fn is_list(&self) -> bool {
        false
    }
    /// Whether it is one of those that an AND asks for a hint even about a cell that a child before it has
    /// dropped (HBase's `HintingFilter`).
    fn gives_hints(&self) -> bool {
        false
    }
    /// True if a cell of a row that is left out by its key may end the scan. Such filters see these cells, as
    /// HBase's do while the row is passed over.
    fn may_end_in_left_out_rows(&self) -> bool {
        false
    }
    /// Whether the family must be read to judge the row.
    fn is_family_essential(&self, family: &[u8]) -> bool {
        let _ = family;
        true
    }
}

#[cfg(test)]
mod tests;
