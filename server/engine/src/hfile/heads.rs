//! The beginnings of rows as numbers, for searches among keys of a block.
//!
//! A search compares numbers that lie side by side, and not keys, each of which is a cache miss.
//! All rows lie between the first and the last one, so they begin with the shared prefix of these
//! two; a number is made of the four bytes behind it. Where numbers are equal (long rows, rows of
//! many cells), keys are compared.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::cell::{Key, compare_keys, leading4};

/// The numbers of a block's keys that searches begin at.
#[derive(Debug)]
pub(super) struct Heads {
    /// All rows begin with it.
    shared: SmallVec<[u8; 24]>,
    /// For each key: the four bytes of its row behind the shared prefix, padded with zeros.
    numbers: Box<[u32]>,
}

impl Heads {
    /// Bytes that each key's number takes.
    pub(super) const NUMBER_BYTES: usize = size_of::<u32>();

    /// The numbers of `count` keys in order, at least one.
    pub(super) fn new<'a>(count: usize, key: impl Fn(usize) -> Key<'a>) -> Self {
        let first_row = key(0).row();
        let pairs = first_row.iter().zip(key(count - 1).row());
        let shared = pairs.take_while(|(first, last)| first == last).count();
        // The order of a file's cells is not checked here: in a file that breaks it a row may be too short.
        let behind = |number| key(number).row().get(shared..).unwrap_or_default();
        Self {
            shared: SmallVec::from_slice(&first_row[..shared]),
            numbers: (0..count).map(|number| leading4(behind(number))).collect(),
        }
    }

    /// Number of keys before `target`.
    pub(super) fn count_before<'a>(&self, target: Key<'_>, key: impl Fn(usize) -> Key<'a>) -> usize {
        let row = target.row();
        let Some(rest) = row.strip_prefix(&*self.shared) else {
            // Before all rows of the block, or behind them.
            return if row < &*self.shared {
                0
            } else {
                self.numbers.len()
            };
        };
        let wanted = leading4(rest);
        let from = self.numbers.partition_point(|head| *head < wanted);
        let to = match &self.numbers[from..] {
            [first, second, ..] if *first == wanted && *second == wanted => {
                from + self.numbers[from..].partition_point(|head| *head == wanted)
            }
            [first, ..] => from + usize::from(*first == wanted),
            [] => from,
        };
        first_not_before(from, to, |number| {
            compare_keys(key(number), target) == Ordering::Less
        })
    }
}

/// Partition point of `is_before` in the range.
fn first_not_before(mut from: usize, mut to: usize, is_before: impl Fn(usize) -> bool) -> usize {
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
