//! The row-key designs that `hotspot` compares, for rows that are events in time.
//!
//! The logical key of a row is its minute and a sequence number that tells events of one minute apart, so every
//! row has a key of its own. Its text is 22 digits that sort by time:
//!
//! ```text
//! key = yyyyMMddHHmm | sequence, 10 digits       2001-01-01 00:01, row 7: 2001010100010000000007
//!
//! sequential   key
//! salted       bucket, 1 byte: the first 4 bytes of MD5(key), big-endian, modulo the buckets | key
//! hashed       the first n bytes of MD5(key) | key
//! reversed     mmHHddMMyyyy | sequence, 10 digits
//! ```
//!
//! The last three are designs of the client's toolkit; `tests/python/flights_verify.py` computes the same bytes.
//!
//! Tables are split for the design. For `sequential` nobody can split the future: its table is split as its past
//! would have split it, into equal spans of time that end where the rows begin. That is what a table with keys that
//! grow looks like after a while, and why its last region takes every write.

use std::ops::Range;

use basalt_client::keys::{HashPrefix, KeyDesign, KeyError, MinuteFirst, MinuteKey, RowRange, Salt};
use clap::ValueEnum;

use crate::error::{Error, Result};

/// The designs by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DesignName {
    /// Time order.
    Sequential,
    /// A bucket byte in front.
    Salted,
    /// Bytes of MD5 in front.
    Hashed,
    /// The minute's fastest digits in front.
    Reversed,
}

impl DesignName {
    /// The name as on the command line and in table names.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            DesignName::Sequential => "sequential",
            DesignName::Salted => "salted",
            DesignName::Hashed => "hashed",
            DesignName::Reversed => "reversed",
        }
    }

    /// The design that a table name ends with, as those of `hotspot` do.
    pub(crate) fn of_table(table: &str) -> Option<DesignName> {
        let ending = |name: &&DesignName| table.ends_with(name.as_str());
        DesignName::value_variants().iter().find(ending).copied()
    }
}

/// What the designs leave open. Part of the data: rows written with another choice are not found.
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
    Reversed,
}

impl Design {
    pub(crate) fn new(name: DesignName, options: DesignOptions) -> Result<Design> {
        Ok(match name {
            DesignName::Sequential => Design::Sequential,
            DesignName::Salted => Design::Salted(Salt::new(options.buckets)?),
            DesignName::Hashed => Design::Hashed(HashPrefix::new(options.hash_bytes.into())?),
            DesignName::Reversed => Design::Reversed,
        })
    }

    /// How the row key is made up, for the report.
    pub(crate) fn layout(&self, options: DesignOptions) -> String {
        let key = "yyyyMMddHHmm + sequence(10)";
        match self {
            Design::Sequential => key.to_owned(),
            Design::Salted(_) => format!("bucket(1 byte, MD5 mod {}) + {key}", options.buckets),
            Design::Hashed(_) => format!("MD5({} byte) + {key}", options.hash_bytes),
            Design::Reversed => "mmHHddMMyyyy + sequence(10)".to_owned(),
        }
    }

    /// The row key.
    pub(crate) fn encode(&self, key: MinuteKey) -> Result<Vec<u8>, KeyError> {
        match self {
            Design::Sequential => time_first(key),
            Design::Salted(salt) => salt.encode(&time_first(key)?),
            Design::Hashed(hash) => hash.encode(&time_first(key)?),
            Design::Reversed => MinuteFirst.encode(&key),
        }
    }

    /// The key of a row.
    pub(crate) fn decode(&self, row: &[u8]) -> Result<MinuteKey, KeyError> {
        match self {
            Design::Sequential => from_time_first(row),
            Design::Salted(salt) => from_time_first(&salt.decode(row)?),
            Design::Hashed(hash) => from_time_first(&hash.decode(row)?),
            Design::Reversed => MinuteFirst.decode(row),
        }
    }

    /// Keys that split the design's table. `minutes` are those of the rows to come; see the module comment for what
    /// the sequential design does with them.
    pub(crate) fn split_points(&self, regions: usize, minutes: &Range<u32>) -> Result<Vec<Vec<u8>>> {
        match self {
            Design::Sequential => past_splits(regions, minutes),
            Design::Salted(salt) => Ok(salt.split_points(regions)?),
            Design::Hashed(hash) => Ok(hash.split_points(regions)?),
            Design::Reversed => Ok(MinuteFirst.split_points(regions)?),
        }
    }

    /// The scans that together read these minutes and nothing else.
    pub(crate) fn scan_ranges(&self, minutes: Range<u32>) -> Result<Vec<RowRange>, KeyError> {
        let (first, end) = (start_of(minutes.start), start_of(minutes.end));
        match self {
            Design::Sequential => Ok(vec![RowRange {
                start: time_first(first)?,
                stop: time_first(end)?,
            }]),
            Design::Salted(salt) => salt.scan_ranges(time_first(first)?..time_first(end)?),
            Design::Hashed(hash) => hash.scan_ranges(time_first(first)?..time_first(end)?),
            Design::Reversed => {
                // An end at the first key of the next minute would cost a scan of that minute, for nothing.
                let last = MinuteKey {
                    minute: minutes.end.saturating_sub(1),
                    sequence: u32::MAX,
                };
                MinuteFirst.scan_ranges(first..=last)
            }
        }
    }
}

/// The lowest key of a minute.
fn start_of(minute: u32) -> MinuteKey {
    MinuteKey { minute, sequence: 0 }
}

/// Where the parts of a time are in the toolkit's `mmHHddMMyyyy`: minute, hour, day, month, year.
const PARTS: [Range<usize>; 5] = [0..2, 2..4, 4..6, 6..8, 8..12];
/// Where they are in `yyyyMMddHHmm`.
const SORTED_PARTS: [Range<usize>; 5] = [10..12, 8..10, 6..8, 4..6, 0..4];
const TIME_DIGITS: usize = 12;
const KEY_DIGITS: usize = 22;

/// The text of a logical key. The calendar is the toolkit's: its digits are put into the order that sorts.
fn time_first(key: MinuteKey) -> Result<Vec<u8>, KeyError> {
    Ok(moved(&MinuteFirst.encode(&key)?, &PARTS, &SORTED_PARTS))
}

/// The other way round. A row of another length is handed on as it is, for the toolkit to refuse.
fn from_time_first(row: &[u8]) -> Result<MinuteKey, KeyError> {
    if row.len() == KEY_DIGITS {
        MinuteFirst.decode(&moved(row, &SORTED_PARTS, &PARTS))
    } else {
        MinuteFirst.decode(row)
    }
}

/// REQUIRES: a row of `KEY_DIGITS` bytes.
fn moved(row: &[u8], from: &[Range<usize>; 5], to: &[Range<usize>; 5]) -> Vec<u8> {
    let mut out = row.to_vec();
    for (from, to) in from.iter().zip(to) {
        out[to.clone()].copy_from_slice(&row[from.clone()]);
    }
    out
}

/// Minutes since 1970 as `yyyy-MM-ddTHH:mm`.
pub(crate) fn minute_text(minute: u32) -> Result<String, KeyError> {
    let digits = time_first(start_of(minute))?;
    let digits = String::from_utf8_lossy(&digits[..TIME_DIGITS]).into_owned();
    let (year, rest) = digits.split_at(4);
    let (month, rest) = rest.split_at(2);
    let (day, rest) = rest.split_at(2);
    let (hour, minute) = rest.split_at(2);
    Ok(format!("{year}-{month}-{day}T{hour}:{minute}"))
}

/// Borders of equal spans of time, as long as the rows' own, that end with their first minute.
fn past_splits(regions: usize, minutes: &Range<u32>) -> Result<Vec<Vec<u8>>> {
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
    (1..=borders)
        .map(|index| {
            let past = u64::from(span) * u64::from(borders - index) / u64::from(borders);
            let minute = minutes.start - u32::try_from(past).expect("a part of a span of u32");
            Ok(time_first(start_of(minute))?[..TIME_DIGITS].to_vec())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: DesignOptions = DesignOptions {
        buckets: 16,
        hash_bytes: 1,
    };

    fn designs() -> Vec<Design> {
        let names = DesignName::value_variants().iter();
        names.map(|name| Design::new(*name, OPTIONS).unwrap()).collect()
    }

    /// 2001-01-01 00:00.
    const START: u32 = 16_305_120;

    #[test]
    fn the_key_is_the_time_and_the_sequence() {
        let key = MinuteKey {
            minute: START + 1,
            sequence: 7,
        };
        let rows: Vec<Vec<u8>> = designs()
            .iter()
            .map(|design| design.encode(key).unwrap())
            .collect();
        assert_eq!(rows[0], b"2001010100010000000007");
        // MD5 of that text begins f6 cb 50 88, as `md5sum` says; 0xf6cb5088 modulo 16 is 8.
        assert_eq!(rows[1], b"\x082001010100010000000007");
        assert_eq!(rows[2], b"\xf62001010100010000000007");
        assert_eq!(rows[3], b"0100010120010000000007");
        assert_eq!(minute_text(key.minute).unwrap(), "2001-01-01T00:01");
    }

    #[test]
    fn every_key_comes_back_and_lies_in_one_scan_of_its_hour() {
        for design in designs() {
            let hour = START + 60..START + 120;
            let scans = design.scan_ranges(hour.clone()).unwrap();
            for minute in START..START + 180 {
                let key = MinuteKey {
                    minute,
                    sequence: minute * 7,
                };
                let row = design.encode(key).unwrap();
                assert_eq!(design.decode(&row).unwrap(), key);
                let inside = scans.iter().filter(|scan| scan.contains(&row)).count();
                assert_eq!(inside, usize::from(hour.contains(&minute)), "{design:?} {minute}");
            }
        }
    }

    #[test]
    fn an_hour_costs_the_scans_that_the_design_is_known_for() {
        let scans = |design: &Design| design.scan_ranges(START..START + 60).unwrap().len();
        assert_eq!(designs().iter().map(scans).collect::<Vec<_>>(), [1, 16, 256, 60]);
    }

    #[test]
    fn foreign_rows_are_refused() {
        for design in designs() {
            for row in [
                &b""[..],
                b"2001",
                b"2001130100010000000007",
                b"x001010100010000000007",
            ] {
                assert!(design.decode(row).is_err(), "{design:?} {row:?}");
            }
        }
    }

    #[test]
    fn splits_ascend_and_the_past_ends_where_the_rows_begin() {
        for design in designs() {
            for regions in [1, 2, 16] {
                let points = design.split_points(regions, &(START..START + 1440)).unwrap();
                assert_eq!(points.len(), regions - 1);
                assert!(points.is_sorted_by(|a, b| a < b), "{design:?} {points:?}");
            }
        }
        let points = past_splits(4, &(START..START + 3)).unwrap();
        assert_eq!(points.last().unwrap(), b"200101010000");
        assert_eq!(points.first().unwrap(), b"200012312358");
        assert!(past_splits(4, &(2..100)).is_err());
    }

    #[test]
    fn table_names_say_the_design() {
        assert_eq!(DesignName::of_table("bench_salted"), Some(DesignName::Salted));
        assert_eq!(DesignName::of_table("salted_bench"), None);
    }
}
