//! Boundaries between cells, which searches look for.

use super::abbreviation::Abbreviation;
use crate::cell::{Key, compare_keys, leading16};
use crate::id::SeqId;

/// A boundary between cells: some cells are before it, and all that follow those are not.
#[derive(Clone, Copy)]
pub(in crate::memstore) struct Bound<'a> {
    kind: Kind<'a>,
    /// [`leading16`] of its row.
    row_prefix: u128,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    /// Before the first cell that is not before this key and sequence id.
    Cell(Key<'a>, SeqId),
    /// Before the first cell of this row or a later one.
    Row(&'a [u8]),
    /// After all cells.
    End,
}

impl<'a> Bound<'a> {
    /// After all cells.
    pub(in crate::memstore) const END: Self = Self {
        kind: Kind::End,
        row_prefix: u128::MAX,
    };

    /// Before all versions of `key`, whatever their sequence ids.
    #[inline]
    pub(in crate::memstore) fn key(key: Key<'a>) -> Self {
        Self::cell(key, SeqId::MAX)
    }

    /// Before the cell with this key and sequence id.
    #[inline]
    pub(super) fn cell(key: Key<'a>, seq: SeqId) -> Self {
        Self {
            kind: Kind::Cell(key, seq),
            row_prefix: leading16(key.row()),
        }
    }

    /// Before the first cell of `row`.
    #[inline]
    pub(in crate::memstore) fn row(row: &'a [u8]) -> Self {
        Self {
            kind: Kind::Row(row),
            row_prefix: leading16(row),
        }
    }

    /// Whether the cell with this key and sequence id is before the bound.
    #[inline]
    pub(super) fn is_after(&self, key: Key<'_>, seq: SeqId) -> bool {
        match self.kind {
            Kind::Cell(other, other_seq) => {
                let order = compare_keys(key, other);
                order.then_with(|| other_seq.cmp(&seq)).is_lt()
            }
            Kind::Row(row) => key.row() < row,
            Kind::End => true,
        }
    }

    /// First sixteen bytes of the row, zero-padded. Rows whose prefixes differ compare like the
    /// prefixes.
    #[inline]
    pub(super) fn row_prefix(&self) -> u128 {
        self.row_prefix
    }

    /// Not less than the abbreviated key of any cell before this bound, not greater than that of
    /// any other cell, if bound and cells are between the two cells that `how` was made for.
    #[inline]
    pub(super) fn abbreviated(&self, how: Abbreviation) -> u32 {
        match self.kind {
            Kind::Cell(key, seq) => how.of(key, seq),
            Kind::Row(row) => how.of_row(row),
            Kind::End => u32::MAX,
        }
    }
}
