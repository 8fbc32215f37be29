//! The search index of a data block in memory: the cells at which a search can begin.
//!
//! An entry of the index is a cell of the block. Entries are sampled by size, so that the index
//! stays small beside the block. A search takes two steps:
//!
//! 1. [`SearchIndex::count_before`] searches the entries by their prefixes, which are numbers that
//!    lie side by side. It compares keys, each of which is a cache miss, only where prefixes are
//!    equal (long rows, rows of many cells).
//! 2. The data block moves to the entry before the target and from there forward, cell by cell.
//!
//! The check of a block that enters memory fills the index, in one of two ways:
//!
//! - *Plain* blocks hold whole cells. An entry is the start of its cell ([`PlainBuilder`]).
//! - In a PREFIX, DIFF or FAST_DIFF block a cell can only be decoded after the one before it. An
//!   entry holds the state of the decoder: the key and the position of the value ([`EncodedBuilder`]).
//!   HBase's format has no restart points, and HBase decodes from the block's start.
//!
//! The first search makes the prefixes: a scan or a compaction that only walks over the block does
//! not need them.
//!
//! Invariants:
//! - The first and the last cell are entries. So a target behind all cells is recognized without
//!   decoding, and step 2 ends in front of the block's end.
//! - Entries take at most a tenth of the bytes of plain cells and a twentieth of encoded ones,
//!   beside the first and the last entry.
//! - The weight never changes, because the cache charges a block once: it includes the prefixes
//!   before they are made.
//!
//! Only `data_block` uses it.

use std::cmp::Ordering;
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::cell_layout::{CellLayout, CellOffsets, CurrentCell, LENGTHS_BYTES};
use super::encoding;
use crate::cell::{Key, compare_keys, leading4};

/// Minimum bytes of plain cells from one entry to the next.
const PLAIN_STRIDE: u32 = 80;

/// Minimum ratio of the bytes of encoded cells to those of their entry.
const ENCODED_SHARE: usize = 20;

/// Bytes of an entry's prefix.
const PREFIX_BYTES: usize = size_of::<u32>();

/// Entries of a block, in order.
#[derive(Debug)]
pub(super) struct SearchIndex {
    starts: Starts,
    /// Whether every cell is an entry.
    is_complete: bool,
    prefixes: OnceLock<Prefixes>,
}

/// Where the cell of each entry starts.
#[derive(Debug)]
enum Starts {
    Plain(Box<[u32]>),
    Encoded {
        /// The keys, one behind the other.
        keys: Box<[u8]>,
        cells: Box<[EncodedStart]>,
    },
}

/// The decoder's state at a cell, besides its key.
#[derive(Clone, Copy, Debug)]
struct EncodedStart {
    /// End of its key in the keys of all entries; it starts where the one before ends.
    key_end: u32,
    value_at: u32,
    value_bytes: u32,
    /// Where its value part ends. Tags, sequence id and the next cell follow.
    after_value: u32,
}

/// Bytes of an encoded entry besides its key.
pub(super) const ENCODED_ENTRY_BYTES: usize = size_of::<EncodedStart>() + PREFIX_BYTES;

/// Builds the search index of a plain block from the starts of its cells in order.
#[derive(Debug)]
pub(super) struct PlainBuilder {
    starts: Vec<u32>,
    cells: usize,
    last: u32,
}

impl PlainBuilder {
    /// A builder for a block whose cells have `cells_bytes` bytes together.
    pub(super) fn new(cells_bytes: usize) -> Self {
        Self {
            starts: Vec::with_capacity(cells_bytes / 128 + 1),
            cells: 0,
            last: 0,
        }
    }

    /// Number of cells so far.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Adds a cell.
    #[inline]
    pub(super) fn add(&mut self, start: u32) {
        let entry = self.starts.last();
        if entry.is_none_or(|entry| start - entry >= PLAIN_STRIDE) {
            self.starts.push(start);
        }
        self.last = start;
        self.cells += 1;
    }

    /// The index; `None` if there were no cells.
    pub(super) fn finish(mut self) -> Option<SearchIndex> {
        if *self.starts.last()? != self.last {
            self.starts.push(self.last);
        }
        let is_complete = self.starts.len() == self.cells;
        let starts = Starts::Plain(self.starts.into_boxed_slice());
        Some(SearchIndex::new(starts, is_complete))
    }
}

/// Builds the search index of an encoded block from its cells in order.
#[derive(Debug, Default)]
pub(super) struct EncodedBuilder {
    keys: Vec<u8>,
    cells: Vec<EncodedStart>,
    /// Where the next cell starts.
    next: usize,
    /// Start of the last entry that was due.
    due_at: usize,
    /// Whether the last entry was not due: it is one only while it is the last cell.
    is_provisional: bool,
    /// Whether an entry was removed, so that not every cell is one.
    is_sampled: bool,
}

impl EncodedBuilder {
    /// Adds a cell, whose value part ends at `after_value`.
    pub(super) fn add(&mut self, cell: &CurrentCell, after_value: usize) {
        if self.is_provisional {
            self.cells.pop();
            self.keys
                .truncate(self.cells.last().map_or(0, |last| last.key_end as usize));
            self.is_sampled = true;
        }
        let entry_bytes = ENCODED_ENTRY_BYTES + cell.key.len();
        self.is_provisional = !self.cells.is_empty() && self.next - self.due_at < ENCODED_SHARE * entry_bytes;
        if !self.is_provisional {
            self.due_at = self.next;
        }
        self.next = cell.offsets.next as usize;
        self.keys.extend_from_slice(&cell.key);
        self.cells.push(EncodedStart {
            key_end: self.keys.len() as u32,
            value_at: cell.offsets.value_at,
            value_bytes: cell.offsets.value_bytes,
            after_value: after_value as u32,
        });
    }

    /// REQUIRES: a cell was added.
    pub(super) fn finish(self) -> SearchIndex {
        let starts = Starts::Encoded {
            keys: self.keys.into_boxed_slice(),
            cells: self.cells.into_boxed_slice(),
        };
        SearchIndex::new(starts, !self.is_sampled)
    }
}

impl SearchIndex {
    fn new(starts: Starts, is_complete: bool) -> Self {
        Self {
            starts,
            is_complete,
            prefixes: OnceLock::new(),
        }
    }

    /// Bytes in memory, the prefixes included.
    pub(super) fn weight(&self) -> usize {
        match &self.starts {
            Starts::Plain(starts) => size_of_val(&**starts) + starts.len() * PREFIX_BYTES,
            Starts::Encoded { keys, cells } => keys.len() + cells.len() * ENCODED_ENTRY_BYTES,
        }
    }

    /// Number of entries; at least one.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.starts {
            Starts::Plain(starts) => starts.len(),
            Starts::Encoded { cells, .. } => cells.len(),
        }
    }

    /// Whether every cell is an entry.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the cells of the block are whole.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.starts, Starts::Plain(_))
    }

    /// The key of an entry of the block with these bytes.
    #[inline]
    pub(super) fn key<'a>(&'a self, entry: usize, bytes: &'a [u8]) -> Key<'a> {
        match &self.starts {
            Starts::Plain(starts) => key_at(bytes, starts[entry]),
            Starts::Encoded { keys, cells } => {
                let from = entry.checked_sub(1).map_or(0, |before| cells[before].key_end);
                Key::trusted(&keys[from as usize..cells[entry].key_end as usize])
            }
        }
    }

    /// An offset in the block: every cell that ends at or before it is before the entry, or is its cell.
    #[inline]
    pub(super) fn passed(&self, entry: usize) -> u32 {
        match &self.starts {
            Starts::Plain(starts) => starts[entry],
            Starts::Encoded { cells, .. } => cells[entry].value_at,
        }
    }

    /// Moves a cursor to the cell of an entry of the block with these bytes.
    #[inline]
    pub(super) fn move_to(&self, entry: usize, bytes: &[u8], layout: CellLayout, current: &mut CurrentCell) {
        match &self.starts {
            Starts::Plain(starts) => current.offsets = CellOffsets::plain(bytes, starts[entry], layout),
            Starts::Encoded { cells, .. } => {
                let (key, cell) = (self.key(entry, bytes).bytes(), cells[entry]);
                current.key.clear();
                current.key.extend_from_slice(key);
                current.offsets = CellOffsets {
                    key_bytes: key.len() as u32,
                    value_at: cell.value_at,
                    value_bytes: cell.value_bytes,
                    ..CellOffsets::default()
                };
                encoding::after_value(bytes, layout, cell.after_value as usize, &mut current.offsets)
                    .expect("what follows the value was read when the block was checked");
            }
        }
    }

    /// Number of entries before `target` in the block with these bytes.
    pub(super) fn count_before(&self, target: Key<'_>, bytes: &[u8]) -> usize {
        let prefixes = self.prefixes.get_or_init(|| Prefixes::new(self, bytes));
        let row = target.row();
        let Some(rest) = row.strip_prefix(&*prefixes.shared) else {
            // Before all rows of the block, or behind them.
            return if row < &*prefixes.shared { 0 } else { self.len() };
        };
        let wanted = leading4(rest);
        partition_point(self.len(), |entry| match prefixes.numbers[entry].cmp(&wanted) {
            Ordering::Equal => compare_keys(self.key(entry, bytes), target).is_lt(),
            order => order.is_lt(),
        })
    }
}

/// The beginnings of the entries' rows as numbers.
#[derive(Debug)]
struct Prefixes {
    /// The shared prefix of the first and the last row, with which all rows between begin.
    shared: SmallVec<[u8; 24]>,
    /// For each entry: the four bytes of its row behind the shared prefix, padded with zeros.
    numbers: Box<[u32]>,
}

impl Prefixes {
    fn new(index: &SearchIndex, bytes: &[u8]) -> Self {
        let row = |entry| index.key(entry, bytes).row();
        let (first, last) = (row(0), row(index.len() - 1));
        let shared = encoding::common_bytes(first, last);
        // The order of a file's cells is not checked here, so a row may be too short.
        let prefix = |entry| leading4(row(entry).get(shared..).unwrap_or_default());
        Self {
            shared: SmallVec::from_slice(&first[..shared]),
            numbers: (0..index.len()).map(prefix).collect(),
        }
    }
}

/// The key of the plain cell that starts at `start`. Does not read the tail behind the value: in a
/// search nearly every cell is a cache miss, and the tail would be a second one.
/// REQUIRES: a cell starts there that has been checked.
#[inline]
fn key_at(bytes: &[u8], start: u32) -> Key<'_> {
    let at = start as usize;
    let length = &bytes[at..at + 4];
    let key_bytes = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    Key::trusted(&bytes[at + LENGTHS_BYTES..at + LENGTHS_BYTES + key_bytes])
}

/// Partition point of `is_before` in `0..to`.
#[inline]
pub(super) fn partition_point(mut to: usize, mut is_before: impl FnMut(usize) -> bool) -> usize {
    let mut from = 0;
    while from < to {
        let middle = from.midpoint(to);
        if is_before(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cell::{CellType, KeyBuf};
    use crate::hfile::cell_layout::CellParts;

    const LAYOUT: CellLayout = CellLayout {
        tags: false,
        seq: false,
    };

    /// A block of plain cells, and its index.
    fn plain(keys: &[KeyBuf], value: &[u8]) -> (Vec<u8>, SearchIndex) {
        let (mut bytes, mut index) = (Vec::new(), PlainBuilder::new(0));
        for key in keys {
            index.add(bytes.len() as u32);
            let cell = CellParts {
                key: key.as_key().bytes(),
                value,
                tags: None,
                seq: None,
            };
            cell.put(&mut bytes);
        }
        (bytes, index.finish().unwrap())
    }

    /// The index of an encoded block whose cells have `cell_bytes` bytes each.
    fn encoded(keys: &[KeyBuf], cell_bytes: u32) -> SearchIndex {
        let mut index = EncodedBuilder::default();
        for (number, key) in (1_u32..).zip(keys) {
            let cell = CurrentCell {
                offsets: CellOffsets {
                    next: number * cell_bytes,
                    ..CellOffsets::default()
                },
                key: key.as_key().bytes().to_vec(),
            };
            index.add(&cell, (number * cell_bytes) as usize);
        }
        index.finish()
    }

    /// Numbers of the cells that are entries.
    fn entries(index: &SearchIndex, bytes: &[u8], keys: &[KeyBuf]) -> Vec<usize> {
        let number = |entry| {
            let key = index.key(entry, bytes);
            keys.iter().position(|other| other.as_key() == key).unwrap()
        };
        (0..index.len()).map(number).collect()
    }

    fn key(row: &[u8], qualifier: u8) -> KeyBuf {
        KeyBuf::new(row, b"f", &[qualifier], 1, CellType::Put)
    }

    /// Goal: the index takes a bounded share of the block, and has the first and the last cell.
    /// Method: a hundred cells of each of several sizes.
    #[test]
    fn small_cells_have_fewer_entries() {
        let keys: Vec<KeyBuf> = (0..100).map(|number| key(&[number], 0)).collect();
        let fixed_bytes = LENGTHS_BYTES + keys[0].as_key().bytes().len();
        for (cell_bytes, count) in [(200, 100), (80, 100), (79, 51), (40, 51), (39, 34), (24, 26)] {
            let (bytes, index) = plain(&keys, &vec![0; cell_bytes - fixed_bytes]);
            let numbers = entries(&index, &bytes, &keys);
            assert_eq!(numbers.len(), count, "{cell_bytes}");
            assert_eq!((numbers[0], numbers[count - 1]), (0, 99), "{cell_bytes}");
            assert_eq!(index.is_complete(), count == 100, "{cell_bytes}");
            assert!(index.weight() <= bytes.len() / 10 + 8, "{cell_bytes}");
        }
        let entry_bytes = ENCODED_ENTRY_BYTES + keys[0].as_key().bytes().len();
        for (cell_bytes, count) in [(1_000, 100), (600, 51), (100, 16), (1, 2)] {
            let index = encoded(&keys, cell_bytes);
            let numbers = entries(&index, &[], &keys);
            assert_eq!(numbers.len(), count, "{cell_bytes}");
            assert_eq!((numbers[0], numbers[count - 1]), (0, 99), "{cell_bytes}");
            assert_eq!(index.is_complete(), count == 100, "{cell_bytes}");
            assert_eq!(index.weight(), count * entry_bytes);
            assert!(index.weight() <= cell_bytes as usize * 100 / 20 + 2 * entry_bytes);
        }
        assert!(PlainBuilder::new(0).finish().is_none());
    }

    #[test]
    fn an_index_moves_to_the_cell_of_an_entry() {
        let keys: Vec<KeyBuf> = (0..100).map(|number| key(&[number], 0)).collect();
        let (bytes, index) = plain(&keys, b"value");
        let mut current = CurrentCell::default();
        for entry in 0..index.len() {
            index.move_to(entry, &bytes, LAYOUT, &mut current);
            let value_at = current.offsets.value_at as usize;
            let key_at = value_at - current.offsets.key_bytes as usize;
            assert_eq!(&bytes[key_at..value_at], index.key(entry, &bytes).bytes());
            assert_eq!(&bytes[value_at..current.offsets.next as usize], b"value");
        }
    }

    fn row() -> impl Strategy<Value = Vec<u8>> {
        // Few letters, so that rows share beginnings; the lengths are around those at which a prefix ends.
        prop::collection::vec(prop::sample::select(vec![0_u8, 1, b'a', 255]), 1..14)
    }

    proptest! {
        /// Wherever the target lies, the count is the one that comparing all keys gives.
        #[test]
        fn the_count_is_that_of_all_keys(
            common in prop::collection::vec(any::<u8>(), 0..4),
            rows in prop::collection::btree_set((row(), 0_u8..3), 1..40),
            (target, qualifier) in (row(), 0_u8..3),
            is_inside in any::<bool>(),
            value_bytes in prop::sample::select(vec![0_usize, 30, 80]),
            is_plain in any::<bool>(),
        ) {
            let with_common = |row: &[u8]| [&common, row].concat();
            let keys: Vec<KeyBuf> = rows.iter().map(|(row, qualifier)| key(&with_common(row), *qualifier)).collect();
            let target = key(&if is_inside { with_common(&target) } else { target }, qualifier);
            let (bytes, index) = if is_plain {
                plain(&keys, &vec![0; value_bytes])
            } else {
                (Vec::new(), encoded(&keys, 10 * value_bytes as u32 + 1))
            };
            let entries = entries(&index, &bytes, &keys);
            prop_assert!(entries.is_sorted());
            let is_before = |number: &usize| compare_keys(keys[*number].as_key(), target.as_key()).is_lt();
            prop_assert_eq!(index.count_before(target.as_key(), &bytes), entries.partition_point(is_before));
        }
    }
}
