//! Marks in a block of plain cells: where to begin a search.
//!
//! A mark is where a cell starts. Beside it stands the beginning of the cell's row as a number (`heads`).
//!
//! Every cell has a mark if cells are large. Of small ones every second or fourth has, so that marks take at most about a tenth of what
//! they mark. The numbers are made when the block is searched for the first time: a scan or a compaction that only walks over
//! the block does without.

use std::sync::OnceLock;

use super::heads::Heads;
use crate::cell::Key;

/// Where cells take so many bytes or more, each has a mark.
const LARGE_CELL_BYTES: usize = 80;

/// Where they take so many, every second has; smaller ones have one mark for four.
const MIDDLE_CELL_BYTES: usize = 40;

/// Marks of a block, in order; never empty.
#[derive(Debug)]
pub(super) struct Marks {
    /// Of each mark: where its cell starts.
    starts: Box<[u32]>,
    /// Whether every cell has one.
    complete: bool,
    /// Where the last cell starts.
    last: u32,
    heads: OnceLock<Heads>,
}

impl Marks {
    /// Marks for the cells that start there, all cells of a block. Together they take so many bytes.
    pub(super) fn new(mut starts: Vec<u32>, cells_bytes: usize) -> Self {
        let last = starts[starts.len() - 1];
        let every = match cells_bytes / starts.len() {
            LARGE_CELL_BYTES.. => 1,
            MIDDLE_CELL_BYTES.. => 2,
            _ => 4,
        };
        if every > 1 {
            starts = starts.into_iter().step_by(every).collect();
        }
        Self {
            starts: starts.into_boxed_slice(),
            complete: every == 1,
            last,
            heads: OnceLock::new(),
        }
    }

    /// Bytes in memory, the numbers included.
    pub(super) fn weight(&self) -> usize {
        2 * size_of_val(&*self.starts)
    }

    /// Whether every cell has a mark.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Where the cell of a mark starts; `None` behind the last mark.
    #[inline]
    pub(super) fn start(&self, mark: usize) -> Option<u32> {
        self.starts.get(mark).copied()
    }

    /// Where the last cell of the block starts.
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// How many marks have a key before `target`.
    pub(super) fn count_before<'a>(&self, target: Key<'_>, key_at: impl Fn(u32) -> Key<'a>) -> usize {
        let key = |mark: usize| key_at(self.starts[mark]);
        let heads = self.heads.get_or_init(|| Heads::new(self.starts.len(), key));
        heads.count_before(target, key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cell::{CellType, KeyBuf, compare_keys};

    fn key(row: &[u8], qualifier: u8) -> KeyBuf {
        KeyBuf::new(row, b"f", &[qualifier], 1, CellType::Put)
    }

    fn row() -> impl Strategy<Value = Vec<u8>> {
        // Few letters, so that rows share beginnings; the lengths are around those at which the number ends.
        prop::collection::vec(prop::sample::select(vec![0_u8, 1, b'a', 255]), 1..14)
    }

    #[test]
    fn small_cells_have_fewer_marks() {
        let starts = || (0..100).collect::<Vec<u32>>();
        for (cell_bytes, marks) in [(200, 100), (80, 100), (79, 50), (40, 50), (39, 25), (1, 25)] {
            let found = Marks::new(starts(), 100 * cell_bytes);
            assert_eq!(
                (found.starts.len(), found.is_complete()),
                (marks, marks == 100),
                "{cell_bytes}"
            );
            assert_eq!(found.last(), 99);
            assert!(found.weight() <= 100 * cell_bytes.max(20) / 10, "{cell_bytes}");
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
        ) {
            let with_common = |row: &[u8]| [&common, row].concat();
            let keys: Vec<KeyBuf> = rows.iter().map(|(row, qualifier)| key(&with_common(row), *qualifier)).collect();
            let target = key(&if is_inside { with_common(&target) } else { target }, qualifier);
            // As starts serve places in the list.
            let key_at = |start: u32| keys[start as usize].as_key();
            let starts: Vec<u32> = (0..keys.len() as u32).collect();
            let marks = Marks::new(starts, keys.len() * LARGE_CELL_BYTES / every);
            let marked: Vec<_> = keys.iter().step_by(every).collect();
            let before = marked.partition_point(|key| compare_keys(key.as_key(), target.as_key()).is_lt());
            prop_assert_eq!(marks.count_before(target.as_key(), key_at), before);
            prop_assert_eq!(marks.start(before), (before < marked.len()).then_some((before * every) as u32));
            prop_assert_eq!(marks.last() as usize, keys.len() - 1);
        }
    }
}
