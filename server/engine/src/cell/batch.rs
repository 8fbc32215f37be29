//! Results: a packed run of cells, grouped in rows, that the caller reuses from call to call.
//!
//! Cells are copied once, out of memstore or block, into one growing buffer; the server encodes its answer from here. After
//! the first few calls nothing is allocated any more.

use std::ops::Range;

use super::{Cell, Key};
use crate::id::SeqId;

#[derive(Clone, Copy, Debug)]
struct Span {
    /// Where the key starts; value and tags follow it.
    start: usize,
    key_len: u32,
    value_len: u32,
    tags_len: u32,
    seq: SeqId,
}

impl Span {
    /// The cell that lies here in the batch's bytes.
    fn cell(self, bytes: &[u8]) -> Cell<'_> {
        let value_at = self.start + self.key_len as usize;
        let tags_at = value_at + self.value_len as usize;
        Cell {
            key: Key::trusted(&bytes[self.start..value_at]),
            value: &bytes[value_at..tags_at],
            tags: &bytes[tags_at..tags_at + self.tags_len as usize],
            seq: self.seq,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct RowEnd {
    /// One past its last cell.
    cells: usize,
    /// More cells of the row follow in the next result (batch limit).
    partial: bool,
}

/// Rows of cells, packed.
#[derive(Clone, Debug, Default)]
pub struct CellBatch {
    bytes: Vec<u8>,
    cells: Vec<Span>,
    rows: Vec<RowEnd>,
}

impl CellBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties it and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
        self.rows.clear();
    }

    /// Appends a cell to the open row.
    pub fn push(&mut self, cell: Cell<'_>) {
        self.push_with_value(cell, cell.value);
    }

    /// Appends a cell with another value (`KeyOnlyFilter`).
    pub fn push_with_value(&mut self, cell: Cell<'_>, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(cell.key.bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(cell.tags);
        self.cells.push(Span {
            start,
            key_len: cell.key.bytes().len() as u32,
            value_len: value.len() as u32,
            tags_len: cell.tags.len() as u32,
            seq: cell.seq,
        });
    }

    /// Cells of the open row so far.
    pub fn open_cells(&self) -> Range<usize> {
        self.rows.last().map_or(0, |row| row.cells)..self.cells.len()
    }

    /// Closes the open row. An open row without cells stays out of the batch.
    pub fn end_row(&mut self, partial: bool) {
        if !self.open_cells().is_empty() {
            self.rows.push(RowEnd {
                cells: self.cells.len(),
                partial,
            });
        }
    }

    /// Drops the cells of the open row.
    pub fn abandon_row(&mut self) {
        let first = self.open_cells().start;
        if let Some(span) = self.cells.get(first) {
            self.bytes.truncate(span.start);
        }
        self.cells.truncate(first);
    }

    /// Drops the last closed row.
    /// REQUIRES: there is one, and no row is open.
    pub fn drop_last_row(&mut self) {
        debug_assert!(self.open_cells().is_empty(), "a row is open");
        self.rows.pop();
        self.abandon_row();
    }

    /// Drops those cells of the open row for which `keep` says no. Their bytes stay until the batch is cleared.
    pub fn retain_open(&mut self, mut keep: impl FnMut(Cell<'_>) -> bool) {
        let open = self.open_cells();
        let mut write = open.start;
        for read in open {
            if keep(self.cell(read)) {
                self.cells.swap(write, read);
                write += 1;
            }
        }
        self.cells.truncate(write);
    }

    /// Puts the cells of the open row in the order of their families; within a family they keep theirs.
    pub fn sort_open_by_family(&mut self) {
        let open = self.open_cells();
        let Self { bytes, cells, .. } = self;
        let family = |span: &Span| span.cell(bytes).key.family();
        cells[open].sort_by(|left, right| family(left).cmp(family(right)));
    }

    /// Cell number `index` of the batch.
    /// REQUIRES: `index < cell_count()`.
    pub fn cell(&self, index: usize) -> Cell<'_> {
        self.cells[index].cell(&self.bytes)
    }

    /// Cells in all, those of the open row included.
    pub fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// Closed rows.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no closed row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of keys, values and tags.
    pub fn data_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Memory that it has, used or not.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.cells.capacity() * size_of::<Span>()
            + self.rows.capacity() * size_of::<RowEnd>()
    }

    /// Closed row number `index`.
    /// REQUIRES: `index < row_count()`.
    pub fn row(&self, index: usize) -> RowView<'_> {
        let first = if index == 0 { 0 } else { self.rows[index - 1].cells };
        RowView {
            batch: self,
            cells: first..self.rows[index].cells,
            partial: self.rows[index].partial,
        }
    }

    /// The closed rows, first to last.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = RowView<'_>> {
        (0..self.rows.len()).map(|index| self.row(index))
    }
}

/// One row of a [`CellBatch`]; never empty.
#[derive(Clone, Debug)]
pub struct RowView<'a> {
    batch: &'a CellBatch,
    cells: Range<usize>,
    /// More cells of the row follow in the next result (batch limit).
    pub partial: bool,
}

impl<'a> RowView<'a> {
    /// The row key.
    pub fn key(&self) -> &'a [u8] {
        self.batch.cell(self.cells.start).key.row()
    }

    /// Number of cells.
    #[expect(clippy::len_without_is_empty, reason = "a row in a batch is never empty")]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// The cells in order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell<'a>> + use<'a> {
        let batch = self.batch;
        self.cells.clone().map(move |index| batch.cell(index))
    }
}
