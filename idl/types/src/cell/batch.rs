//! Results: a packed run of cells, grouped in rows, that the caller reuses from call to call.
//!
//! Cells are copied once, out of memstore or block, into chunks of bytes; the server encodes its
//! reply from here. A small result has one chunk, which grows by doubling up to [`CHUNK_BYTES`];
//! after the first few calls nothing is allocated any more. A larger one continues in further
//! chunks, so that it wastes at most one chunk, and nothing is copied again.
//!
//! A cell in a chunk has the form of HBase's KeyValueCodec, which is that of a data block with the
//! length in front (big-endian; tags are there only if the cell has some):
//!
//! ```text
//! u32 n | u32 key length | u32 value length | key | value | tags
//! ```
//!
//! `n` is 8 + key length + value length. So a scan copies a stored cell in one piece, and the cells of
//! a batch without tags are a cell block of native RPC ([`CellBatch::cell_block`]), which can be taken out
//! without a copy while it is one chunk ([`CellBatch::take_cell_block`]).
//!
//! A batch may have a budget ([`CellBatch::charged_to`]). Then every buffer is reserved before it
//! grows, and a cell that would exceed the budget is not appended. The reply that will be encoded
//! from the batch is reserved with it, so that a complete result never waits for memory; the
//! encoder takes over that part ([`CellBatch::give`]).
//!
//! Invariant: apart from memory that was handed out, the account has the size of the buffers plus
//! that of a reply with the same cells.

use std::ops::Range;
use std::sync::Arc;

use super::budget::{Account, Budget, OnShortage};
use super::{Cell, Key};
use crate::error::Result;
use crate::id::SeqId;
use crate::seeded;

/// A chunk of this size or more does not grow: the next cell that does not fit begins a new one.
const CHUNK_BYTES: usize = 256 << 10;
/// Maximum size of a chunk of a large result, except for cells that are larger.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Minimum number of cells that room is made for.
const CELLS_MIN: usize = 8;
/// Minimum number of bytes that room is made for.
const BYTES_MIN: usize = 256;
/// Bytes charged for each cell slot: its span, the end of a row (each cell may end one), and the
/// framing of a cell in a reply.
const CELL_BYTES: usize = size_of::<Span>() + size_of::<RowEnd>() + 64;
/// Factor by which the bytes of keys and values are charged: here and in the reply.
const COPIES: usize = 2;
/// Results up to this many bytes are not reserved, nor are their replies: most are smaller.
pub const BATCH_FREE_BYTES: usize = 16 << 10;

/// Bytes in front of a key in a data block: the lengths of key and value.
const STORED_LENGTHS_BYTES: usize = 8;
/// Bytes in front of a key here: the length of the cell, too.
const LENGTHS_BYTES: usize = 4 + STORED_LENGTHS_BYTES;

#[derive(Clone, Copy, Debug)]
struct Span {
    /// Where the key starts in its chunk; value and tags follow it.
    start: usize,
    /// Number of the chunk. The last chunk has the number of chunks before it.
    chunk: u32,
    key_len: u32,
    value_len: u32,
    tags_len: u32,
    seq: SeqId,
}

impl Span {
    /// The cell that this span describes in its chunk.
    fn cell(self, chunk: &[u8]) -> Cell<'_> {
        let value_at = self.start + self.key_len as usize;
        let tags_at = value_at + self.value_len as usize;
        Cell {
            key: Key::trusted(&chunk[self.start..value_at]),
            value: &chunk[value_at..tags_at],
            tags: &chunk[tags_at..tags_at + self.tags_len as usize],
            seq: self.seq,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct RowEnd {
    /// One past its last cell.
    cells: usize,
    /// Cells whose bytes are in the chunks, up to here: those of dropped cells may be there still.
    appended: usize,
    /// More cells of the row follow in the next result (batch limit).
    partial: bool,
}

/// The chunks of a batch.
#[derive(Clone, Debug, Default)]
struct Chunks {
    /// The chunks before the last one, if any. Boxed: batches are moved, and most are small.
    #[expect(clippy::box_collection, reason = "three words less in every batch")]
    full: Option<Box<Vec<Vec<u8>>>>,
    /// The chunk that cells are appended to.
    last: Vec<u8>,
}

impl Chunks {
    /// The chunk with this number.
    #[inline]
    fn get(&self, number: u32) -> &[u8] {
        match self.full().get(number as usize) {
            None => &self.last,
            Some(chunk) => chunk,
        }
    }

    #[inline]
    fn full(&self) -> &[Vec<u8>] {
        match &self.full {
            None => &[],
            Some(full) => full,
        }
    }

    #[inline]
    fn number_of_last(&self) -> u32 {
        self.full().len() as u32
    }

    /// Bytes in all chunks.
    #[inline]
    fn bytes(&self) -> usize {
        self.last.len() + self.full().iter().map(Vec::len).sum::<usize>()
    }

    /// Allocated bytes of all chunks.
    fn capacity(&self) -> usize {
        self.last.capacity() + self.full().iter().map(Vec::capacity).sum::<usize>()
    }

    /// Begins a chunk with this capacity.
    fn begin(&mut self, bytes: usize) {
        let full = std::mem::replace(&mut self.last, Vec::with_capacity(bytes));
        if !full.is_empty() {
            self.full.get_or_insert_default().push(full);
        }
    }

    /// Drops all bytes from this position on. The chunk of the position becomes the last one.
    fn truncate(&mut self, chunk: u32, start: usize) {
        while chunk < self.number_of_last() {
            let Some(last) = self.full.as_mut().and_then(|full| full.pop()) else {
                break;
            };
            self.last = last;
        }
        self.last.truncate(start);
    }
}

/// Rows of cells, packed.
#[derive(Clone, Debug, Default)]
pub struct CellBatch {
    chunks: Chunks,
    cells: Vec<Span>,
    rows: Vec<RowEnd>,
    /// Cells whose bytes are in the chunks.
    appended: usize,
    /// The chunks are not a cell block: there are tags, bytes of dropped cells, or cells in another
    /// order. May stay set until the batch is cleared.
    is_irregular: bool,
    account: Account,
}

impl CellBatch {
    /// An empty batch without a budget.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch that reserves its memory from `budget`, except for the first
    /// [`BATCH_FREE_BYTES`].
    #[inline]
    pub fn charged_to(budget: Arc<dyn Budget>) -> Self {
        Self {
            account: Account::new(budget, COPIES * BATCH_FREE_BYTES, OnShortage::Leave),
            ..Self::default()
        }
    }

    /// An empty batch that reserves its memory in `account`.
    #[inline]
    pub fn charged_in(account: Account) -> Self {
        Self {
            account,
            ..Self::default()
        }
    }

    /// Sets the behaviour when memory for further cells cannot be reserved at once.
    #[inline]
    pub fn set_on_shortage(&mut self, on_shortage: OnShortage) {
        self.account.set_on_shortage(on_shortage);
    }

    /// Empties the batch and keeps the memory of one chunk.
    pub fn clear(&mut self) {
        self.chunks.full = None;
        self.chunks.last.clear();
        self.cells.clear();
        self.rows.clear();
        self.appended = 0;
        self.is_irregular = false;
        self.settle();
    }

    /// Appends a cell to the open row. REQUIRES: the batch has no budget; with one, use
    /// [`Self::add`].
    #[inline]
    pub fn push(&mut self, cell: Cell<'_>) {
        self.push_with_value(cell, cell.value);
    }

    /// Appends a cell with another value. REQUIRES: the batch has no budget.
    #[inline]
    pub fn push_with_value(&mut self, cell: Cell<'_>, value: &[u8]) {
        self.add_with_value(cell, value)
            .expect("a batch without a budget refuses nothing");
    }

    /// Appends a cell to the open row if memory for it can be reserved. After an error the batch
    /// has the same cells as before.
    #[inline]
    pub fn add(&mut self, cell: Cell<'_>) -> Result<()> {
        self.add_with_value(cell, cell.value)
    }

    /// Appends a cell with another value.
    #[inline]
    fn add_with_value(&mut self, cell: Cell<'_>, value: &[u8]) -> Result<()> {
        let key = cell.key.bytes();
        self.ensure_room(LENGTHS_BYTES + key.len() + value.len() + cell.tags.len())?;
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        let mut lengths = [0; LENGTHS_BYTES];
        lengths[..4].copy_from_slice(&(8 + key_len + value_len).to_be_bytes());
        lengths[4..8].copy_from_slice(&key_len.to_be_bytes());
        lengths[8..].copy_from_slice(&value_len.to_be_bytes());
        let last = &mut self.chunks.last;
        last.extend_from_slice(&lengths);
        let start = last.len();
        last.extend_from_slice(key);
        last.extend_from_slice(value);
        last.extend_from_slice(cell.tags);
        self.is_irregular |= !cell.tags.is_empty();
        self.push_span(Span {
            start,
            chunk: self.chunks.number_of_last(),
            key_len,
            value_len,
            tags_len: cell.tags.len() as u32,
            seq: cell.seq,
        });
        Ok(())
    }

    /// Appends a cell without tags in its stored form: its two lengths, key and value, as in a data
    /// block. After an error the batch has the same cells as before.
    /// REQUIRES: `key_len` is the first of the lengths, and `stored` ends with the value.
    #[inline]
    pub fn add_stored(&mut self, stored: &[u8], key_len: u32, seq: SeqId) -> Result<()> {
        const PREFIX_BYTES: usize = LENGTHS_BYTES - STORED_LENGTHS_BYTES;
        self.ensure_room(PREFIX_BYTES + stored.len())?;
        let last = &mut self.chunks.last;
        last.extend_from_slice(&(stored.len() as u32).to_be_bytes());
        let start = last.len() + STORED_LENGTHS_BYTES;
        last.extend_from_slice(stored);
        self.push_span(Span {
            start,
            chunk: self.chunks.number_of_last(),
            key_len,
            value_len: (stored.len() - STORED_LENGTHS_BYTES) as u32 - key_len,
            tags_len: 0,
            seq,
        });
        Ok(())
    }

    #[inline]
    fn push_span(&mut self, span: Span) {
        self.cells.push(span);
        self.appended += 1;
    }

    /// Makes room for `cells` cells whose keys, values and tags have `bytes` bytes together. Adding
    /// them then cannot fail.
    #[inline]
    pub fn reserve(&mut self, cells: usize, bytes: usize) -> Result<()> {
        self.make_room(cells, bytes + cells * LENGTHS_BYTES)
    }

    /// Makes room for one cell of `bytes` bytes, lengths included.
    #[inline]
    fn ensure_room(&mut self, bytes: usize) -> Result<()> {
        let room = self.chunks.last.capacity() - self.chunks.last.len();
        if room < bytes || self.cells.len() == self.cells.capacity() {
            self.make_room(1, bytes)?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, cells: usize, bytes: usize) -> Result<()> {
        let places = self.cells.capacity();
        let least = self.cells.len() + cells;
        if least > places {
            let wanted = least.max(places * 2).max(CELLS_MIN);
            self.account.add(wanted * CELL_BYTES)?;
            self.cells.reserve_exact(wanted - self.cells.len());
            self.account.remove(places * CELL_BYTES);
        }
        let last = &mut self.chunks.last;
        if last.capacity() - last.len() >= bytes {
            return Ok(());
        }
        let before = last.capacity();
        if before < CHUNK_BYTES {
            let wanted = (last.len() + bytes).max(before * 2).max(BYTES_MIN);
            self.account.add(COPIES * wanted)?;
            last.reserve_exact(wanted - last.len());
            self.account.remove(COPIES * before);
            return Ok(());
        }
        if last.is_empty() {
            // Dropped rows left this chunk empty: the new one replaces it.
            *last = Vec::new();
            self.account.remove(COPIES * before);
        }
        let wanted = bytes.max((before * 2).min(CHUNK_BYTES_MAX));
        if !seeded::is_on("result-collected-before-reserved") {
            self.account.add(COPIES * wanted)?;
        }
        self.chunks.begin(wanted);
        Ok(())
    }

    /// Bytes that the buffers are charged with.
    fn accounted(&self) -> usize {
        COPIES * self.chunks.capacity() + self.cells.capacity() * CELL_BYTES
    }

    /// Releases the charge for memory that the buffers no longer have.
    fn settle(&mut self) {
        let bytes = self.accounted();
        self.account.lower_to(bytes);
    }

    /// Gives away the reservation of up to `bytes` bytes, and returns its size.
    #[inline]
    pub fn give(&mut self, bytes: usize) -> usize {
        self.account.give(bytes)
    }

    /// Charges the account with the buffers, and returns whether their memory is reserved.
    #[inline]
    pub fn is_reserved(&mut self) -> bool {
        let bytes = self.accounted();
        self.account.set(bytes).is_ok()
    }

    /// Cells of the open row so far.
    #[inline]
    pub fn open_cells(&self) -> Range<usize> {
        self.rows.last().map_or(0, |row| row.cells)..self.cells.len()
    }

    /// Closes the open row. An open row without cells stays out of the batch.
    pub fn end_row(&mut self, partial: bool) {
        if !self.open_cells().is_empty() {
            self.rows.push(RowEnd {
                cells: self.cells.len(),
                appended: self.appended,
                partial,
            });
        }
    }

    /// Drops the cells of the open row.
    #[inline]
    pub fn abandon_row(&mut self) {
        let first = self.open_cells().start;
        if let Some(span) = self.cells.get(first).copied() {
            self.cells.truncate(first);
            self.truncate_to(span);
        }
    }

    /// Drops all bytes from the start of this cell on, the first one of the open row.
    fn truncate_to(&mut self, span: Span) {
        let was_large = self.chunks.full.is_some();
        self.chunks.truncate(span.chunk, span.start - LENGTHS_BYTES);
        self.appended = self.rows.last().map_or(0, |row| row.appended);
        if was_large {
            self.settle();
        }
    }

    /// Drops the last closed row.
    /// REQUIRES: there is one, and no row is open.
    #[inline]
    pub fn drop_last_row(&mut self) {
        debug_assert!(self.open_cells().is_empty(), "a row is open");
        self.rows.pop();
        self.abandon_row();
    }

    /// Drops the cells of the open row for which `keep` returns false. If none is left, their bytes
    /// are dropped too; otherwise the bytes stay until the batch is cleared.
    pub fn retain_open(&mut self, mut keep: impl FnMut(Cell<'_>) -> bool) {
        let open = self.open_cells();
        let Some(first) = self.cells.get(open.start).copied() else {
            return;
        };
        let mut write = open.start;
        for read in open.clone() {
            if keep(self.cell(read)) {
                self.cells.swap(write, read);
                write += 1;
            }
        }
        self.cells.truncate(write);
        if write == open.start {
            self.truncate_to(first);
        } else {
            self.is_irregular |= write < open.end;
        }
    }

    /// Sorts the cells of the open row by family; within a family the order stays.
    #[inline]
    pub fn sort_open_by_family(&mut self) {
        let open = self.open_cells();
        self.is_irregular = true;
        let Self { chunks, cells, .. } = self;
        let family = |span: &Span| span.cell(chunks.get(span.chunk)).key.family();
        cells[open].sort_by(|left, right| family(left).cmp(family(right)));
    }

    /// Cell number `index` of the batch.
    /// REQUIRES: `index < cell_count()`.
    #[inline]
    pub fn cell(&self, index: usize) -> Cell<'_> {
        let span = self.cells[index];
        span.cell(self.chunks.get(span.chunk))
    }

    /// Cells in all, those of the open row included.
    #[inline]
    pub fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// Closed rows.
    #[inline]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no closed row.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of keys, values and tags.
    #[inline]
    pub fn data_bytes(&self) -> usize {
        self.chunks.bytes() - self.appended * LENGTHS_BYTES
    }

    /// The cells of all rows as a cell block of HBase's KeyValueCodec, in pieces. `None` if the bytes
    /// in memory are not one: a cell has tags, or was dropped, or rows of several families were sorted.
    /// REQUIRES: no row is open.
    #[inline]
    pub fn cell_block(&self) -> Option<impl Iterator<Item = &[u8]>> {
        debug_assert!(self.open_cells().is_empty(), "a row is open");
        let chunks = self.chunks.full().iter().chain([&self.chunks.last]);
        (!self.is_irregular).then(|| chunks.map(Vec::as_slice))
    }

    /// Takes the cell block out, if it is one piece. The batch is empty then; its reservation stays as it is,
    /// for [`Self::give`].
    /// REQUIRES: no row is open.
    pub fn take_cell_block(&mut self) -> Option<Vec<u8>> {
        debug_assert!(self.open_cells().is_empty(), "a row is open");
        if self.is_irregular || self.chunks.full.is_some() {
            return None;
        }
        self.cells.clear();
        self.rows.clear();
        self.appended = 0;
        Some(std::mem::take(&mut self.chunks.last))
    }

    /// Memory that it has, used or not.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.chunks.capacity()
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
    #[inline]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = RowView<'_>> {
        (0..self.rows.len()).map(|index| self.row(index))
    }
}

impl AsMut<Self> for CellBatch {
    fn as_mut(&mut self) -> &mut Self {
        self
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
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.batch.cell(self.cells.start).key.row()
    }

    /// Number of cells.
    #[expect(clippy::len_without_is_empty, reason = "a row in a batch is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// The cells in order.
    #[inline]
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell<'a>> + use<'a> {
        let batch = self.batch;
        self.cells.clone().map(move |index| batch.cell(index))
    }
}
