//! The row-key designs that `hotspot` compares, for rows that are events in time.
//!
//! The logical key of a row is its minute and a sequence number that distinguishes events of one
//! minute, so every row has a key of its own. Its text is 22 digits that sort by time:
//!
//! ```text
//! key = yyyyMMddHHmm | sequence, 10 digits       2001-01-01 00:01, row 7: 2001010100010000000007
//!
//! sequential           key
//! salted               bucket, 1 byte: the first 4 bytes of MD5(key), big-endian, modulo the buckets | key
//! hashed               the first n bytes of MD5(key) | key
//! reversed             minutes since 1970, 9 digits, and sequence, 10 digits; the last digit first
//! reversed-timestamp   i64::MAX - milliseconds since 1970, 8 bytes | u32::MAX - sequence, 4 bytes
//! random               8 bytes without any order
//! partitioned-id       partition 6 bits | seconds since 1970 32 | worker 9 | sequence 16
//! minute               mmHHddMMyyyy | sequence, 10 digits
//! ```
//!
//! Most are designs of the client's toolkit; `tests/e2e/python/flights_verify.py` computes the same bytes for
//! the four that flights are verified with most.
//!
//! Two of them cannot answer a query for a time: the rows of an hour are spread over the table and
//! their keys cannot be derived from the time. Such a query reads the whole table.
//!
//! Tables are split for the design. For `sequential` and `reversed-timestamp` future keys are
//! unknown: their tables are split into equal spans of past time that end where the rows begin. A table
//! with growing keys looks like this after a while, so one region takes every write.

mod numbers;

use std::ops::{Bound, Range};

use basalt_client::keys::{
    HashPrefix, IdParts, KeyDesign, KeyError, MinuteFirst, MinuteKey, PartitionedId, ReverseDigits, RowRange,
    Salt, presplit::SplitAlgorithm,
};
use basalt_load::error::{Error, Result};
use basalt_load::time_text::{TIME_DIGITS, from_time_first, start_of, time_first};
use clap::ValueEnum;

pub(crate) use numbers::mix;

/// The designs by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DesignName {
    /// Time order.
    Sequential,
    /// A bucket byte in front.
    Salted,
    /// Bytes of MD5 in front.
    Hashed,
    /// The last digit first.
    Reversed,
    /// The newest row first.
    ReversedTimestamp,
    /// No order at all.
    Random,
    /// Ids of 64 bits with a partition in front.
    PartitionedId,
    /// The minute's fastest digits in front, numbered by the server's counter.
    Minute,
}

impl DesignName {
    /// The name as on the command line and in table names.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            DesignName::Sequential => "sequential",
            DesignName::Salted => "salted",
            DesignName::Hashed => "hashed",
            DesignName::Reversed => "reversed",
            DesignName::ReversedTimestamp => "reversed-timestamp",
            DesignName::Random => "random",
            DesignName::PartitionedId => "partitioned-id",
            DesignName::Minute => "minute",
        }
    }

    /// The design that a table name ends with, as those of `hotspot` do.
    pub(crate) fn of_table(table: &str) -> Option<DesignName> {
        let ending = |name: &&DesignName| table.ends_with(name.as_str());
        DesignName::value_variants().iter().find(ending).copied()
    }

    /// Whether the server's counter numbers the rows, and not their place.
    pub(crate) fn is_numbered_by_counter(self) -> bool {
        self == DesignName::Minute
    }
}

/// Parameters that the designs leave open. Part of the data: rows written with another choice are
/// not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub(crate) struct DesignOptions {
    /// Buckets of the salted design.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) buckets: u16,
    /// Bytes of MD5 in front of a hashed key: an hour takes 256 scans with 1, 65536 with 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) hash_bytes: u8,
}

/// A design, ready to make keys.
#[derive(Clone, Debug)]
pub(crate) enum Design {
    Sequential,
    Salted(Salt),
    Hashed(HashPrefix),
    Reversed(ReverseDigits),
    ReversedTimestamp,
    Random,
    PartitionedId,
    Minute,
}

impl Design {
    pub(crate) fn new(name: DesignName, options: DesignOptions) -> Result<Design> {
        Ok(match name {
            DesignName::Sequential => Design::Sequential,
            DesignName::Salted => Design::Salted(Salt::new(options.buckets)?),
            DesignName::Hashed => Design::Hashed(HashPrefix::new(options.hash_bytes.into())?),
            DesignName::Reversed => Design::Reversed(numbers::reversed_digits()?),
            DesignName::ReversedTimestamp => Design::ReversedTimestamp,
            DesignName::Random => Design::Random,
            DesignName::PartitionedId => Design::PartitionedId,
            DesignName::Minute => Design::Minute,
        })
    }

    /// How the row key is made up, for the report.
    pub(crate) fn layout(&self, options: DesignOptions) -> String {
        let key = "yyyyMMddHHmm + sequence(10)";
        match self {
            Design::Sequential => key.to_owned(),
            Design::Salted(_) => format!("bucket(1 byte, MD5 mod {}) + {key}", options.buckets),
            Design::Hashed(_) => format!("MD5({} byte) + {key}", options.hash_bytes),
            Design::Reversed(_) => "minutes(9) + sequence(10), last digit first".to_owned(),
            Design::ReversedTimestamp => "MAX - milliseconds(8 bytes) + MAX - sequence(4 bytes)".to_owned(),
            Design::Random => "8 random bytes".to_owned(),
            Design::PartitionedId => "partition(6 bits) + seconds(32) + worker(9) + sequence(16)".to_owned(),
            Design::Minute => "mmHHddMMyyyy + sequence(10)".to_owned(),
        }
    }

    /// The row key.
    pub(crate) fn encode(&self, key: MinuteKey) -> Result<Vec<u8>, KeyError> {
        match self {
            Design::Sequential => time_first(key),
            Design::Salted(salt) => salt.encode(&time_first(key)?),
            Design::Hashed(hash) => hash.encode(&time_first(key)?),
            Design::Reversed(digits) => digits.encode(&numbers::number_of(key)?),
            Design::ReversedTimestamp => numbers::newest_first(key),
            Design::Random => Ok(numbers::random(key)),
            Design::PartitionedId => PartitionedId.encode(&numbers::id_of(key)?),
            Design::Minute => MinuteFirst.encode(&key),
        }
    }

    /// The key of a row.
    pub(crate) fn decode(&self, row: &[u8]) -> Result<MinuteKey, KeyError> {
        match self {
            Design::Sequential => from_time_first(row),
            Design::Salted(salt) => from_time_first(&salt.decode(row)?),
            Design::Hashed(hash) => from_time_first(&hash.decode(row)?),
            Design::Reversed(digits) => numbers::from_number(digits.decode(row)?, row),
            Design::ReversedTimestamp => numbers::from_newest_first(row),
            Design::Random => numbers::from_random(row),
            Design::PartitionedId => numbers::from_id(PartitionedId.decode(row)?, row),
            Design::Minute => MinuteFirst.decode(row),
        }
    }

    /// Keys that split the design's table. `minutes` are those of the rows to come; see the module
    /// comment for their use by designs that follow time.
    pub(crate) fn split_points(&self, regions: usize, minutes: &Range<u32>) -> Result<Vec<Vec<u8>>> {
        match self {
            Design::Sequential => {
                let past = past_minutes(regions, minutes)?.into_iter();
                past.map(|minute| Ok(time_first(start_of(minute))?[..TIME_DIGITS].to_vec()))
                    .collect()
            }
            Design::ReversedTimestamp => {
                // Newest first, so the border that ends where the rows begin is the lowest key and must lie
                // behind them.
                let past = past_minutes(regions, minutes)?.into_iter().rev();
                past.map(|minute| Ok(numbers::newest_time(minute.saturating_sub(1))?))
                    .collect()
            }
            Design::Salted(salt) => Ok(salt.split_points(regions)?),
            Design::Hashed(hash) => Ok(hash.split_points(regions)?),
            Design::Reversed(digits) => Ok(digits.split_points(regions)?),
            Design::Random => Ok(SplitAlgorithm::Uniform.split_keys(regions)?),
            Design::PartitionedId => Ok(PartitionedId.split_points(regions)?),
            Design::Minute => Ok(MinuteFirst.split_points(regions)?),
        }
    }

    /// The scans that together read these minutes, and nothing else unless [`Self::can_scan_a_time`] says so.
    pub(crate) fn scan_ranges(&self, minutes: Range<u32>) -> Result<Vec<RowRange>, KeyError> {
        let (first, end) = (start_of(minutes.start), start_of(minutes.end));
        match self {
            Design::Sequential => Ok(vec![RowRange {
                start: time_first(first)?,
                stop: time_first(end)?,
            }]),
            Design::Salted(salt) => salt.scan_ranges(time_first(first)?..time_first(end)?),
            Design::Hashed(hash) => hash.scan_ranges(time_first(first)?..time_first(end)?),
            Design::Reversed(_) | Design::Random => Ok(vec![RowRange::all()]),
            Design::ReversedTimestamp => Ok(vec![RowRange {
                start: numbers::newest_time(minutes.end.saturating_sub(1))?,
                // Nothing is older than 1970, so there is no border behind its first minute.
                stop: match minutes.start.checked_sub(1) {
                    Some(before) => numbers::newest_time(before)?,
                    None => Vec::new(),
                },
            }]),
            Design::PartitionedId => PartitionedId.scan_ranges((
                Bound::Included(first_id(minutes.start)?),
                Bound::Excluded(first_id(minutes.end)?),
            )),
            Design::Minute => {
                // An end at the first key of the next minute would cost a scan of that minute, for nothing.
                let last = MinuteKey {
                    minute: minutes.end.saturating_sub(1),
                    sequence: u32::MAX,
                };
                MinuteFirst.scan_ranges(first..=last)
            }
        }
    }

    /// Whether the scans of a time read nothing else. If not, they read the whole table.
    pub(crate) fn can_scan_a_time(&self) -> bool {
        !matches!(self, Design::Reversed(_) | Design::Random)
    }

    /// Whether rows within one scan come in the order of time.
    pub(crate) fn scans_in_order(&self) -> bool {
        self.can_scan_a_time() && !matches!(self, Design::ReversedTimestamp)
    }
}

/// The id of the lowest partition in the first second of a minute.
fn first_id(minute: u32) -> Result<IdParts, KeyError> {
    let id = numbers::id_of(start_of(minute))?;
    Ok(IdParts { partition: 0, ..id })
}

/// Borders of equal spans of time, as long as the rows' own, that end with their first minute. Ascending.
fn past_minutes(regions: usize, minutes: &Range<u32>) -> Result<Vec<u32>> {
    let borders = u32::try_from(regions.saturating_sub(1)).unwrap_or(u32::MAX);
    if borders == 0 {
        return Ok(Vec::new());
    }
    let span = (minutes.end - minutes.start).max(borders).min(minutes.start);
    if span < borders {
        return Err(Error::Usage(format!(
            "{regions} regions were asked for, but only {span} minutes lie between 1970 and the first row"
        )));
    }
    let border = |index: u32| {
        let past = u64::from(span) * u64::from(borders - index) / u64::from(borders);
        minutes.start - u32::try_from(past).expect("a part of a span of u32")
    };
    Ok((1..=borders).map(border).collect())
}

#[cfg(test)]
mod tests;
