//! Cells of a store that has neither memstores nor files: those of the system tables, which the catalog lists
//! for a read.
//!
//! They must be given in store order, never change, and belong to every read point.

use std::cmp::Ordering;
use std::sync::Arc;

use super::merge::compare_in_row;
use crate::Result;
use crate::cell::{Cell, CellBatch, CellCursor, Key, RowOrder};

/// Sorted cells of one family, in memory. Immutable.
#[derive(Debug)]
pub struct SortedCells {
    cells: CellBatch,
    order: RowOrder,
}

impl SortedCells {
    /// Takes cells whose rows are ordered as `order` says.
    /// REQUIRES: they are in store order, each key once.
    pub fn new(cells: CellBatch, order: RowOrder) -> Self {
        let sorted = Self { cells, order };
        let count = sorted.cells.cell_count();
        debug_assert!((1..count).all(|at| sorted.compare(at - 1, sorted.cells.cell(at).key).is_lt()));
        sorted
    }

    /// The order of the rows.
    pub fn order(&self) -> RowOrder {
        self.order
    }

    /// A cursor over all of them.
    pub(super) fn cursor(self: &Arc<Self>) -> SortedCellsCursor {
        SortedCellsCursor {
            cells: Arc::clone(self),
            at: None,
        }
    }

    fn row(&self, at: usize) -> &[u8] {
        self.cells.cell(at).key.row()
    }

    fn compare(&self, at: usize, key: Key<'_>) -> Ordering {
        let own = self.cells.cell(at).key;
        self.order
            .compare(own.row(), key.row())
            .then_with(|| compare_in_row(own, key))
    }

    /// Partition point of `before` over the cells.
    fn count_while(&self, before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.cells.cell_count());
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The first cell of the row that the last of the first `count` cells belongs to.
    fn row_start(&self, count: usize) -> Option<usize> {
        let row = self.row(count.checked_sub(1)?);
        Some(self.count_while(|at| self.order.compare(self.row(at), row).is_lt()))
    }
}

/// Walks over [`SortedCells`].
#[derive(Debug)]
pub(super) struct SortedCellsCursor {
    cells: Arc<SortedCells>,
    /// `None`: nowhere.
    at: Option<usize>,
}

impl SortedCellsCursor {
    fn go(&mut self, at: usize) {
        self.at = (at < self.cells.cells.cell_count()).then_some(at);
    }
}

impl CellCursor for SortedCellsCursor {
    fn cell(&self) -> Option<Cell<'_>> {
        self.at.map(|at| self.cells.cells.cell(at))
    }

    fn advance(&mut self) -> Result<()> {
        if let Some(at) = self.at {
            self.go(at + 1);
        }
        Ok(())
    }

    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        self.go(self
            .cells
            .count_while(|at| self.cells.compare(at, target).is_lt()));
        Ok(())
    }

    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        match self.at {
            Some(at) if self.cells.compare(at, target).is_ge() => Ok(()),
            _ => self.seek(target),
        }
    }

    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        let before = |at| self.cells.order.compare(self.cells.row(at), row).is_lt();
        self.at = self.cells.row_start(self.cells.count_while(before));
        Ok(())
    }

    fn seek_last_row(&mut self) -> Result<()> {
        self.at = self.cells.row_start(self.cells.cells.cell_count());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CellType, KeyBuf};
    use crate::id::SeqId;

    /// Two cells a row: `q` and `r`.
    fn cells(rows: &[&str], order: RowOrder) -> SortedCellsCursor {
        let mut batch = CellBatch::new();
        for row in rows {
            for qualifier in [b"q", b"r"] {
                let key = KeyBuf::new(row.as_bytes(), b"f", qualifier, 1, CellType::Put);
                batch.push(Cell {
                    key: key.as_key(),
                    value: b"",
                    tags: b"",
                    seq: SeqId::ZERO,
                });
            }
            batch.end_row(false);
        }
        Arc::new(SortedCells::new(batch, order)).cursor()
    }

    fn place(cursor: &SortedCellsCursor) -> Option<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let key = cursor.cell()?.key;
        Some((text(key.row()), text(key.qualifier())))
    }

    /// Every movement of a cursor, in both orders; in HBase's the rows are not sorted as bytes.
    #[test]
    fn a_cursor_moves_in_the_order_of_its_rows() {
        for (rows, order) in [
            (["t", "t,,1", "t, ,1"], RowOrder::Meta),
            (["a", "b", "c"], RowOrder::Bytes),
        ] {
            let at = |row: usize, qualifier: &str| Some((rows[row].to_owned(), qualifier.to_owned()));
            let mut cursor = cells(&rows, order);
            assert_eq!(place(&cursor), None);
            let first_on = |row: usize| KeyBuf::first_on_row(rows[row].as_bytes(), b"f");
            cursor.seek(first_on(1).as_key()).unwrap();
            assert_eq!(place(&cursor), at(1, "q"));
            cursor.seek_forward(first_on(0).as_key()).unwrap();
            assert_eq!(place(&cursor), at(1, "q"), "never back");
            cursor
                .seek_forward(KeyBuf::last_on_column(rows[1].as_bytes(), b"f", b"q").as_key())
                .unwrap();
            assert_eq!(place(&cursor), at(1, "r"));
            cursor.advance().unwrap();
            assert_eq!(place(&cursor), at(2, "q"));
            cursor.seek_row_before(rows[2].as_bytes()).unwrap();
            assert_eq!(place(&cursor), at(1, "q"));
            cursor.seek_row_before(rows[0].as_bytes()).unwrap();
            assert_eq!(place(&cursor), None);
            cursor.seek_last_row().unwrap();
            assert_eq!(place(&cursor), at(2, "q"));
            cursor.advance().unwrap();
            cursor.advance().unwrap();
            cursor.advance().unwrap();
            assert_eq!(place(&cursor), None);
        }
        let mut empty = cells(&[], RowOrder::Bytes);
        empty.seek_last_row().unwrap();
        assert_eq!(place(&empty), None);
    }
}
