//! Rows that `hotspot` writes: in the order of time, the same for every design.
//!
//! Row `index` is a function of the index and the seed alone, so workers need to share no more than
//! a counter, and written rows can be computed again to check reads.

use std::ops::Range;

use basalt_client::keys::MinuteKey;
use basalt_load::flights::Flights;
use basalt_load::values::Values;
use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Rows made here, or flights of a file.
#[derive(Debug)]
pub(crate) enum Rows {
    Synthetic(Synthetic),
    Flights(Flights),
}

/// Events of random bytes, some every minute.
#[derive(Debug)]
pub(crate) struct Synthetic {
    /// `None`: as many as are asked for.
    rows: Option<u64>,
    rows_per_minute: u32,
    value_bytes: usize,
    seed: u64,
    values: Values,
}

/// 2026-01-01 00:00 UTC, in minutes since 1970.
const SYNTHETIC_START: u32 = 29_453_760;

impl Synthetic {
    pub(crate) fn new(rows: Option<u64>, rows_per_minute: u32, value_bytes: usize, seed: u64) -> Synthetic {
        Synthetic {
            rows,
            rows_per_minute,
            value_bytes,
            seed,
            values: Values::new(seed, value_bytes),
        }
    }

    fn key(&self, index: u64) -> MinuteKey {
        let minute = index / u64::from(self.rows_per_minute);
        MinuteKey {
            minute: SYNTHETIC_START.saturating_add(u32::try_from(minute).unwrap_or(u32::MAX)),
            sequence: index as u32,
        }
    }

    fn value(&self, index: u64) -> Bytes {
        let mut random = SmallRng::seed_from_u64(self.seed ^ index);
        self.values.next(&mut random, self.value_bytes)
    }
}

impl Rows {
    /// Number of rows; `None` when there is always another one.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Rows::Synthetic(synthetic) => synthetic.rows,
            Rows::Flights(flights) => Some(flights.len()),
        }
    }

    /// The key of row `index`. Keys ascend with the index.
    /// REQUIRES: `index < len()`.
    pub(crate) fn key(&self, index: u64) -> MinuteKey {
        match self {
            Rows::Synthetic(synthetic) => synthetic.key(index),
            Rows::Flights(flights) => flights.key(index),
        }
    }

    /// Qualifiers and values of row `index`, in the order in which they are written.
    pub(crate) fn cells(&self, index: u64) -> Vec<(&'static str, Bytes)> {
        match self {
            Rows::Synthetic(synthetic) => vec![("v", synthetic.value(index))],
            Rows::Flights(flights) => flights.cells(index),
        }
    }

    /// The minutes of the first `rows` rows.
    pub(crate) fn minutes(&self, rows: u64) -> Range<u32> {
        match rows.checked_sub(1) {
            Some(last) => self.key(0).minute..self.key(last).minute + 1,
            None => SYNTHETIC_START..SYNTHETIC_START,
        }
    }

    /// The first of `rows` rows that is not before this minute.
    pub(crate) fn index_of_minute(&self, minute: u32, rows: u64) -> u64 {
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle).minute < minute {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_same_every_time_and_ascend() {
        let rows = |seed| Rows::Synthetic(Synthetic::new(Some(1_000), 7, 20, seed));
        let (one, same, other) = (rows(1), rows(1), rows(2));
        assert!((0..1_000).is_sorted_by(|a, b| one.key(*a) < one.key(*b)));
        for index in [0, 1, 999] {
            assert_eq!(one.cells(index), same.cells(index));
            assert_ne!(one.cells(index), other.cells(index));
            assert_eq!(one.cells(index)[0].1.len(), 20);
        }
        assert_ne!(one.cells(0), one.cells(1));
    }

    #[test]
    fn minutes_are_found_again() {
        let rows = Rows::Synthetic(Synthetic::new(Some(1_000), 7, 20, 1));
        assert_eq!(rows.minutes(1_000), SYNTHETIC_START..SYNTHETIC_START + 143);
        for (minute, index) in [(0, 0), (1, 7), (142, 994), (143, 1_000), (9_999, 1_000)] {
            assert_eq!(rows.index_of_minute(SYNTHETIC_START + minute, 1_000), index);
        }
    }
}
