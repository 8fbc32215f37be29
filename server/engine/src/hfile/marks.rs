//! Marks in a block of plain cells: where to begin a search.
//!
//! A mark is where a cell starts. Beside it stands the beginning of the cell's row as a number (`heads`).
//!
//! Marks are sampled: every cell of 80 bytes and more, every second of 40 and more, else every
//! fourth, so that marks add at most about 10 %. Where every row of a ROW_INDEX_V1 block has one
//! cell, the block's own row offsets say where cells start, and the marks keep no starts of their
//! own, which halves their memory. The numbers are made by the first search in the block: a scan or
//! a compaction that only walks over the block does not need them.

use std::sync::OnceLock;

use super::heads::Heads;
use super::row_offsets::RowOffsets;
use crate::cell::Key;

/// Cell size in bytes from which every cell has a mark.
const LARGE_CELL_BYTES: usize = 80;

/// Cell size in bytes from which every second cell has a mark; of smaller ones every fourth has.
const MIDDLE_CELL_BYTES: usize = 40;

/// Marks of a block, in order; never empty. Lookups take the block's bytes as an argument.
#[derive(Debug)]
pub(super) struct Marks {
    starts: Starts,
    /// Number of marks.
    count: usize,
    /// Whether every cell has one.
    complete: bool,
    heads: OnceLock<Heads>,
}

/// The start of the cell of each mark.
#[derive(Debug)]
enum Starts {
    Own(Box<[u32]>),
    /// Each row is one cell: the starts of every row, every second or every fourth.
    Rows {
        offsets: RowOffsets,
        every: usize,
    },
}

/// Makes the marks of a block from where its cells start.
#[derive(Debug)]
pub(super) struct Builder {
    /// While every row had one cell: the block's row offsets.
    rows: Option<RowOffsets>,
    /// Starts of all cells, unless there are `rows`.
    starts: Vec<u32>,
    cells: usize,
    cells_bytes: usize,
}

impl Builder {
    /// A builder for a block whose cells have `cells_bytes` bytes together, perhaps with row
    /// offsets.
    pub(super) fn new(rows: Option<RowOffsets>, cells_bytes: usize) -> Self {
        let likely = if rows.is_some() { 0 } else { cells_bytes / 128 + 1 };
        Self {
            rows,
            starts: Vec::with_capacity(likely),
            cells: 0,
            cells_bytes,
        }
    }

    /// Number of cells so far.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Adds the next cell.
    /// REQUIRES: with row offsets, `bytes` are the payload that they are of, and the offsets of all rows up
    /// to the cell's are right.
    #[inline]
    pub(super) fn add(&mut self, start: u32, is_first_of_row: bool, bytes: &[u8]) {
        match self.rows {
            Some(_) if is_first_of_row => {}
            Some(rows) => {
                // All cells before were rows.
                self.starts = (0..self.cells).map(|row| rows.start(bytes, row)).collect();
                self.starts.push(start);
                self.rows = None;
            }
            None => self.starts.push(start),
        }
        self.cells += 1;
    }

    /// The marks; `None` if there were no cells.
    pub(super) fn finish(self) -> Option<Marks> {
        let every = match self.cells_bytes.checked_div(self.cells)? {
            LARGE_CELL_BYTES.. => 1,
            MIDDLE_CELL_BYTES.. => 2,
            _ => 4,
        };
        let starts = match self.rows {
            Some(offsets) => Starts::Rows { offsets, every },
            None if every == 1 => Starts::Own(self.starts.into_boxed_slice()),
            None => Starts::Own(self.starts.into_iter().step_by(every).collect()),
        };
        Some(Marks {
            starts,
            count: self.cells.div_ceil(every),
            complete: every == 1,
            heads: OnceLock::new(),
        })
    }
}

impl Marks {
    /// Bytes in memory, the numbers included.
    pub(super) fn weight(&self) -> usize {
        let starts = match &self.starts {
            Starts::Own(starts) => size_of_val(&**starts),
            Starts::Rows { .. } => 0,
        };
        starts + self.count * Heads::NUMBER_BYTES
    }

    /// Number of marks.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether every cell has a mark.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Where the cell of a mark starts; `None` behind the last mark.
    #[inline]
    pub(super) fn start(&self, mark: usize, bytes: &[u8]) -> Option<u32> {
        (mark < self.count).then(|| self.start_of(mark, bytes))
    }

    /// Start of the cell of a mark.
    /// REQUIRES: `mark` exists.
    #[inline]
    fn start_of(&self, mark: usize, bytes: &[u8]) -> u32 {
        match &self.starts {
            Starts::Own(starts) => starts[mark],
            Starts::Rows { offsets, every } => offsets.start(bytes, mark * every),
        }
    }

    /// Number of marks with a key before `target`.
    pub(super) fn count_before<'a>(
        &self,
        target: Key<'_>,
        bytes: &[u8],
        key_at: impl Fn(u32) -> Key<'a>,
    ) -> usize {
        let key = |mark: usize| key_at(self.start_of(mark, bytes));
        let heads = self.heads.get_or_init(|| Heads::new(self.count, key));
        heads.count_before(target, key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cell::{CellType, KeyBuf, compare_keys};
    use crate::hfile::row_offsets::payload;

    fn key(row: &[u8], qualifier: u8) -> KeyBuf {
        KeyBuf::new(row, b"f", &[qualifier], 1, CellType::Put)
    }

    fn row() -> impl Strategy<Value = Vec<u8>> {
        // Few letters, so that rows share beginnings; the lengths are around those at which the number ends.
        prop::collection::vec(prop::sample::select(vec![0_u8, 1, b'a', 255]), 1..14)
    }

    /// Marks of cells that start at 2, 3, ..., each a row or not, with row offsets or without.
    fn marks(are_rows: &[bool], cell_bytes: usize, with_offsets: bool) -> (Vec<u8>, Marks) {
        let firsts = (0..are_rows.len()).filter(|cell| are_rows[*cell]);
        let offsets: Vec<u32> = firsts.map(|cell| cell as u32).collect();
        // The bytes of the cells do not matter to marks.
        let payload = payload(b"", offsets.len() as u32, &offsets, 0);
        let rows = RowOffsets::parse(&payload).unwrap();
        let mut builder = Builder::new(with_offsets.then_some(rows), are_rows.len() * cell_bytes);
        for (cell, is_row) in are_rows.iter().enumerate() {
            builder.add(2 + cell as u32, with_offsets && *is_row, &payload);
        }
        assert_eq!(builder.cells(), are_rows.len());
        (payload, builder.finish().unwrap())
    }

    #[test]
    fn small_cells_have_fewer_marks() {
        for with_offsets in [false, true] {
            for (cell_bytes, count) in [(200, 100), (80, 100), (79, 50), (40, 50), (39, 25), (1, 25)] {
                let (payload, found) = marks(&[true; 100], cell_bytes, with_offsets);
                assert_eq!(
                    (found.len(), found.is_complete()),
                    (count, count == 100),
                    "{cell_bytes}"
                );
                assert_eq!(
                    found.start(count - 1, &payload),
                    Some(2 + 100 - 100 / count as u32)
                );
                assert_eq!(found.start(count, &payload), None);
                let part = if with_offsets { 20 } else { 10 };
                assert!(found.weight() <= 100 * cell_bytes.max(20) / part, "{cell_bytes}");
            }
        }
        assert!(Builder::new(None, 100).finish().is_none());
    }

    /// Where the first row of several cells comes, the marks go on by themselves.
    #[test]
    fn rows_of_several_cells_have_starts_of_their_own() {
        for second_cell in 1..9 {
            let mut are_rows = [true; 9];
            are_rows[second_cell] = false;
            let (payload, found) = marks(&are_rows, 100, true);
            let starts: Vec<_> = (0..10).map_while(|mark| found.start(mark, &payload)).collect();
            assert_eq!(starts, (2..11).collect::<Vec<u32>>(), "{second_cell}");
            assert_eq!(found.weight(), 9 * 8);
        }
    }

    proptest! {
        /// Wherever the target lies, the count is the one that comparing all keys gives.
        #[test]
        fn the_count_is_that_of_all_keys(
            common in prop::collection::vec(any::<u8>(), 0..4),
            rows in prop::collection::btree_set((row(), 0_u8..3), 1..40),
            (target, qualifier) in (row(), 0_u8..3),
            is_inside in any::<bool>(),
            every in prop::sample::select(vec![1_usize, 2, 4]),
            with_offsets in any::<bool>(),
            all_rows in any::<bool>(),
        ) {
            let with_common = |row: &[u8]| [&common, row].concat();
            let keys: Vec<KeyBuf> = rows.iter().map(|(row, qualifier)| key(&with_common(row), *qualifier)).collect();
            let target = key(&if is_inside { with_common(&target) } else { target }, qualifier);
            // As starts serve places in the list, two more.
            let key_at = |start: u32| keys[start as usize - 2].as_key();
            let are_rows: Vec<bool> = (0..keys.len()).map(|cell| all_rows || cell % 3 != 1).collect();
            let (payload, marks) = marks(&are_rows, LARGE_CELL_BYTES / every, with_offsets);
            let marked: Vec<_> = keys.iter().step_by(every).collect();
            let before = marked.partition_point(|key| compare_keys(key.as_key(), target.as_key()).is_lt());
            prop_assert_eq!(marks.count_before(target.as_key(), &payload, key_at), before);
            prop_assert_eq!(marks.start(before, &payload), (before < marked.len()).then_some((2 + before * every) as u32));
            prop_assert_eq!(marks.len(), marked.len());
        }
    }
}
