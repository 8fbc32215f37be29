//! Row-key designs: conversions from the application's keys to the row keys by which a table is
//! sorted.
//!
//! A region serves a range of row keys, so keys that grow with time send all writes to one region. The
//! designs here spread them, each at a price for range queries, which [`KeyDesign::scan_ranges`] makes
//! explicit:
//!
//! | design | row key | scans for a range | order within a scan |
//! | --- | --- | --- | --- |
//! | [`Salt`] | bucket byte, key | one a bucket | key |
//! | [`HashPrefix`] | n bytes of MD5, key | 256^n | key, within equal hashes |
//! | [`ReverseDigits`] | decimal digits, last one first | one a number | single rows |
//! | [`NewestFirst`] | entity, `i64::MAX` - time | 1 | entity, newest first |
//! | [`PartitionedId`] | partition 6, seconds 32, worker 9, sequence 16 bits | one a partition | time |
//! | [`MinuteFirst`] | `mmHHddMMyyyy`, sequence | one a minute | time, within the minute |
//!
//! Four things hold for every design, and tests check them with random keys:
//!
//! 1. `decode(encode(key)) == key`.
//! 2. The scan ranges of a key range do not overlap; the row of every key inside lies in exactly one of them,
//!    the row of every key outside in none.
//! 3. Within one scan range, rows come in the order of their keys, so [`merge`] gives the keys of all ranges
//!    in order.
//! 4. Split points are strictly ascending and not empty.

mod bytes_keys;
mod ids;
pub mod merge;
mod minute;
mod newest_first;
pub mod presplit;

use std::ops::{Bound, RangeBounds};

pub use bytes_keys::{HashPrefix, Salt};
pub use ids::{IdParts, PartitionedId, ReverseDigits};
pub use minute::{MinuteFirst, MinuteKey};
pub use newest_first::{EntityTime, NewestFirst};

use crate::request::{Scan, after_prefix};

/// Most scan ranges that a query may need. Beyond it the design does not fit the query.
pub const SCAN_RANGES_MAX: usize = 65_536;

/// Why a key, row or range does not fit a design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key has a part that the row key has no room for.
    #[error("{part} is {value}, outside of {range}")]
    OutOfRange {
        /// The part of the key.
        part: &'static str,
        /// The rejected value.
        value: i128,
        /// The allowed range.
        range: String,
    },
    /// The row key is not one of this design.
    #[error("row key {row} is not of this design: {reason}")]
    NotOfDesign {
        /// The row key, escaped.
        row: String,
        /// Description of the error.
        reason: &'static str,
    },
    /// The range needs too many scans.
    #[error("range needs {needed} scans, more than the limit of {SCAN_RANGES_MAX}")]
    TooManyScans {
        /// Scans it needs.
        needed: u128,
    },
    /// The table cannot be split into this number of regions.
    #[error("{regions} regions were asked for, at least 1 and at most {most} are possible")]
    BadRegionCount {
        /// Regions asked for.
        regions: usize,
        /// Most that are possible.
        most: u128,
    },
}

/// A range of row keys as a scan takes it: an empty start is the start of the table, an empty stop its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The first row.
    pub start: Vec<u8>,
    /// The first row behind it.
    pub stop: Vec<u8>,
}

impl RowRange {
    /// The whole table.
    pub fn all() -> RowRange {
        RowRange {
            start: Vec::new(),
            stop: Vec::new(),
        }
    }

    /// All rows that start with `prefix`.
    pub fn prefix(prefix: Vec<u8>) -> RowRange {
        let stop = after_prefix(&prefix);
        RowRange { start: prefix, stop }
    }

    /// One row.
    pub fn single(row: Vec<u8>) -> RowRange {
        let stop = after_row(row.clone());
        RowRange { start: row, stop }
    }

    /// Whether the row is inside.
    pub fn contains(&self, row: &[u8]) -> bool {
        row >= self.start.as_slice() && (self.stop.is_empty() || row < self.stop.as_slice())
    }

    /// Whether no row can be inside.
    pub fn is_empty(&self) -> bool {
        !self.stop.is_empty() && self.start >= self.stop
    }

    /// A scan of this range.
    pub fn scan(&self) -> Scan {
        Scan::new().start_row(&self.start).stop_row(&self.stop)
    }
}

/// How an application's keys become row keys.
pub trait KeyDesign {
    /// The application's key. Its order is the order of range queries and of [`merge`].
    type Key: Ord + Clone + std::fmt::Debug;

    /// The row key.
    fn encode(&self, key: &Self::Key) -> Result<Vec<u8>, KeyError>;

    /// The key of a row.
    fn decode(&self, row: &[u8]) -> Result<Self::Key, KeyError>;

    /// Keys that split a table into `regions` regions of equal load: one fewer than regions.
    fn split_points(&self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError>;

    /// The scans that together read the keys of a range and nothing else.
    fn scan_ranges(&self, keys: impl RangeBounds<Self::Key>) -> Result<Vec<RowRange>, KeyError>;
}

/// The first row key behind `row`.
pub fn after_row(mut row: Vec<u8>) -> Vec<u8> {
    row.push(0);
    row
}

/// Whether a range holds no key for certain, because its ends have met or crossed.
/// [`std::collections::BTreeMap`] panics there; an empty query has no scans.
fn is_crossed<K: Ord>(keys: &impl RangeBounds<K>) -> bool {
    match (keys.start_bound(), keys.end_bound()) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to) | Bound::Included(to)) => {
            from >= to
        }
        _ => false,
    }
}

/// The key, if the range holds exactly this one.
fn single_key<K: Ord>(keys: &impl RangeBounds<K>) -> Option<&K> {
    match (keys.start_bound(), keys.end_bound()) {
        (Bound::Included(from), Bound::Included(to)) if from == to => Some(from),
        _ => None,
    }
}

/// A range of whole numbers with both ends inclusive, `None` if it is empty.
fn inclusive_numbers(keys: &impl RangeBounds<u64>, max: u64) -> Option<(u64, u64)> {
    let first = match keys.start_bound() {
        Bound::Included(from) => *from,
        Bound::Excluded(from) => from.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let last = match keys.end_bound() {
        Bound::Included(to) => *to,
        Bound::Excluded(to) => to.checked_sub(1)?,
        Bound::Unbounded => max,
    };
    let last = last.min(max);
    (first <= last).then_some((first, last))
}

/// The row range of a key range, for a design whose encoded keys `encode` all start with `prefix` and sort as
/// the keys do.
fn sorted_range<K>(
    prefix: &[u8],
    keys: &impl RangeBounds<K>,
    encode: impl Fn(&K) -> Result<Vec<u8>, KeyError>,
) -> Result<RowRange, KeyError> {
    let start = match keys.start_bound() {
        Bound::Included(from) => encode(from)?,
        Bound::Excluded(from) => after_row(encode(from)?),
        Bound::Unbounded => prefix.to_vec(),
    };
    let stop = match keys.end_bound() {
        Bound::Included(to) => after_row(encode(to)?),
        Bound::Excluded(to) => encode(to)?,
        Bound::Unbounded => after_prefix(prefix),
    };
    Ok(RowRange { start, stop })
}

/// Fails unless a table can have `regions` regions.
fn check_regions(regions: usize, most: u128) -> Result<(), KeyError> {
    if regions == 0 || regions as u128 > most {
        return Err(KeyError::BadRegionCount { regions, most });
    }
    Ok(())
}

fn check_scans(needed: u128) -> Result<(), KeyError> {
    if needed > SCAN_RANGES_MAX as u128 {
        return Err(KeyError::TooManyScans { needed });
    }
    Ok(())
}

fn not_of_design(row: &[u8], reason: &'static str) -> KeyError {
    KeyError::NotOfDesign {
        row: row.escape_ascii().to_string(),
        reason,
    }
}

/// The key behind the first `bytes` bytes.
fn split_prefix(row: &[u8], bytes: usize) -> Result<(&[u8], &[u8]), KeyError> {
    row.split_at_checked(bytes)
        .ok_or_else(|| not_of_design(row, "it is shorter than the prefix"))
}

#[cfg(test)]
mod tests;
