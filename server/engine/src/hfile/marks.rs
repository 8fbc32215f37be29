//! Marks in a data block: where to begin a search.
//!
//! Every fourth cell is marked. Beside a mark stands the beginning of its row as a number, so that a search compares numbers that
//! lie side by side, and not keys that are each a miss in the processor's caches. All rows of a block lie between the first and
//! the last one, so they begin with what these two share; the number is made of the eight bytes behind that. Where it does not
//! decide (long rows, rows of many cells), keys are compared.

use std::cmp::Ordering;

use crate::cell::{Key, compare_keys};

/// Cells between two marks.
pub(super) const MARK_EVERY: usize = 4;

/// Marks of a block, in order; never empty.
#[derive(Debug)]
pub(super) struct Marks {
    /// So many bytes are the same in all rows of the block.
    shared: usize,
    /// Of each mark: the eight bytes of its row behind the shared ones, zeros where there are none.
    heads: Box<[u64]>,
    /// Of each mark: where its cell starts.
    starts: Box<[u32]>,
}

/// Eight bytes of a row as a number, in the order of rows.
fn head(row: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = row.len().min(bytes.len());
    bytes[..length].copy_from_slice(&row[..length]);
    u64::from_be_bytes(bytes)
}

impl Marks {
    /// Marks of cells that start there, the block's first among them. `last_row`: of the block's last cell.
    pub(super) fn new<'a>(starts: Vec<u32>, last_row: &[u8], key_at: impl Fn(u32) -> Key<'a>) -> Self {
        let first_row = key_at(starts[0]).row();
        let pairs = first_row.iter().zip(last_row);
        let shared = pairs.take_while(|(first, last)| first == last).count();
        // The order of a file's cells is not checked here: in a file that breaks it a row may be too short.
        let behind = |start| key_at(start).row().get(shared..).unwrap_or_default();
        let heads = starts.iter().map(|start| head(behind(*start)));
        Self {
            shared,
            heads: heads.collect(),
            starts: starts.into_boxed_slice(),
        }
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        size_of_val(&*self.heads) + size_of_val(&*self.starts)
    }

    /// The last mark.
    pub(super) fn last(&self) -> u32 {
        self.starts[self.starts.len() - 1]
    }

    /// The last mark whose key is before `target`, else the first mark.
    pub(super) fn last_before<'a>(&self, target: Key<'_>, key_at: impl Fn(u32) -> Key<'a>) -> u32 {
        let row = target.row();
        let first = self.starts[0];
        let shared = &key_at(first).row()[..self.shared];
        let Some(rest) = row.strip_prefix(shared) else {
            // Before all rows of the block, or behind them.
            return if row < shared { first } else { self.last() };
        };
        let wanted = head(rest);
        let from = self.heads.partition_point(|head| *head < wanted);
        let same = self.heads[from..].partition_point(|head| *head == wanted);
        let before = from
            + self.starts[from..from + same]
                .partition_point(|start| compare_keys(key_at(*start), target) == Ordering::Less);
        self.starts[before.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cell::{CellType, KeyBuf};

    fn key(row: &[u8], qualifier: u8) -> KeyBuf {
        KeyBuf::new(row, b"f", &[qualifier], 1, CellType::Put)
    }

    fn row() -> impl Strategy<Value = Vec<u8>> {
        // Few letters, so that rows share beginnings; the lengths are around those at which the number ends.
        prop::collection::vec(prop::sample::select(vec![0_u8, 1, b'a', 255]), 1..14)
    }

    proptest! {
        /// Wherever the target lies, the mark is the one that comparing all keys gives.
        #[test]
        fn the_mark_is_the_last_one_before_the_target(
            common in prop::collection::vec(any::<u8>(), 0..4),
            rows in prop::collection::btree_set((row(), 0_u8..3), 1..40),
            (target, qualifier) in (row(), 0_u8..3),
            is_inside in any::<bool>(),
        ) {
            let with_common = |row: &[u8]| [&common, row].concat();
            let keys: Vec<KeyBuf> = rows.iter().map(|(row, qualifier)| key(&with_common(row), *qualifier)).collect();
            let target = key(&if is_inside { with_common(&target) } else { target }, qualifier);
            // As starts serve places in the list.
            let key_at = |start: u32| keys[start as usize].as_key();
            let starts: Vec<u32> = (0..keys.len() as u32).collect();
            let marks = Marks::new(starts, keys[keys.len() - 1].as_key().row(), key_at);
            let before = keys.partition_point(|key| compare_keys(key.as_key(), target.as_key()).is_lt());
            prop_assert_eq!(
                marks.last_before(target.as_key(), key_at),
                before.saturating_sub(1) as u32
            );
            prop_assert_eq!(marks.last() as usize, keys.len() - 1);
        }
    }
}
