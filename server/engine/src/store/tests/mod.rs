//! Tests of the store as a whole, and helpers shared with the tests of its parts: cells as text, a
//! cursor over a list, chance.

mod backward;
mod files;
mod harness;
mod merge;
mod model;
mod options;
mod plain_rows;
mod read_views;
mod reference;
mod scanner;
mod stripes;
mod vec_cursor;

pub(in crate::store) use vec_cursor::{TextCell, parse_cells, sort};

/// A generator that gives the same numbers for the same seed (splitmix64).
pub(in crate::store) struct Random(u64);

impl Random {
    pub(in crate::store) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(in crate::store) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(in crate::store) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(in crate::store) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}
