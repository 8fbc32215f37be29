//! Designs for numbers: reversed digits, and ids with a partition in front.

use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds};

use super::{
    KeyDesign, KeyError, RowRange, check_regions, check_scans, inclusive_numbers, is_crossed, not_of_design,
};

/// A number as decimal digits of fixed width, the last digit first: 1234 of width 6 is `432100`.
/// Consecutive numbers go to ten regions in turn. Adjacent numbers are far apart in the table, so a
/// range query reads them one by one: fit for gets, unfit for ranges beyond
/// [`SCAN_RANGES_MAX`](super::SCAN_RANGES_MAX).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseDigits {
    digits: u32,
}

impl ReverseDigits {
    /// A design for numbers of 1 to 19 digits.
    pub fn new(digits: u32) -> Result<ReverseDigits, KeyError> {
        if !(1..=19).contains(&digits) {
            return Err(KeyError::OutOfRange {
                part: "number of digits",
                value: digits.into(),
                range: "1..=19".to_owned(),
            });
        }
        Ok(ReverseDigits { digits })
    }

    fn max(&self) -> u64 {
        10u64.pow(self.digits) - 1
    }
}

impl KeyDesign for ReverseDigits {
    type Key = u64;

    fn encode(&self, key: &u64) -> Result<Vec<u8>, KeyError> {
        if *key > self.max() {
            return Err(KeyError::OutOfRange {
                part: "number",
                value: (*key).into(),
                range: format!("0..={}", self.max()),
            });
        }
        let mut left = *key;
        let mut next_digit = || {
            let digit = u8::try_from(left % 10).expect("a digit");
            left /= 10;
            b'0' + digit
        };
        Ok((0..self.digits).map(|_| next_digit()).collect())
    }

    fn decode(&self, row: &[u8]) -> Result<u64, KeyError> {
        if row.len() != self.digits as usize || !row.iter().all(u8::is_ascii_digit) {
            return Err(not_of_design(row, "it is not digits of the right number"));
        }
        Ok(row
            .iter()
            .rev()
            .fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }

    fn split_points(&self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
        let numbers = u128::from(self.max()) + 1;
        check_regions(regions, numbers)?;
        let width = self.digits as usize;
        Ok((1..regions as u128)
            .map(|index| format!("{:0width$}", index * numbers / regions as u128).into_bytes())
            .collect())
    }

    fn scan_ranges(&self, keys: impl RangeBounds<u64>) -> Result<Vec<RowRange>, KeyError> {
        let Some((first, last)) = inclusive_numbers(&keys, self.max()) else {
            return Ok(Vec::new());
        };
        // Rows that share their first digits share the last digits of their numbers, so no run of rows is a
        // run of numbers, and even the whole table would not come in the order of the numbers.
        check_scans(u128::from(last - first) + 1)?;
        (first..=last)
            .map(|key| Ok(RowRange::single(self.encode(&key)?)))
            .collect()
    }
}

/// The parts of an id of 63 bits, so that it is positive as a signed number.
///
/// The order is that of creation: seconds, worker, sequence; the partition decides last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdParts {
    /// 6 bits: where the row goes, chosen by the writer at random or by a hash.
    pub partition: u8,
    /// 32 bits: seconds since a date the application chose, 1970 or later.
    pub seconds: u32,
    /// 9 bits: which process made the id.
    pub worker: u16,
    /// 16 bits: counts up within a second of a worker.
    pub sequence: u16,
}

/// Bits behind the partition.
const LOW_BITS: u32 = 32 + 9 + 16;
/// Number of partitions.
const PARTITIONS: u8 = 1 << 6;

impl IdParts {
    /// The id as a number: partition, seconds, worker, sequence from the high bits to the low ones.
    pub fn to_id(self) -> Result<i64, KeyError> {
        in_range("partition", self.partition.into(), u64::from(PARTITIONS) - 1)?;
        in_range("worker", self.worker.into(), (1 << 9) - 1)?;
        let id = (u64::from(self.partition) << LOW_BITS) | self.low();
        Ok(i64::try_from(id).expect("63 bits"))
    }

    /// The parts of an id.
    pub fn from_id(id: i64) -> Result<IdParts, KeyError> {
        let Ok(bits) = u64::try_from(id) else {
            return Err(KeyError::OutOfRange {
                part: "id",
                value: id.into(),
                range: "63 bits, so not negative".to_owned(),
            });
        };
        Ok(IdParts {
            partition: (bits >> LOW_BITS) as u8,
            seconds: (bits >> 25) as u32,
            worker: (bits >> 16) as u16 & 0x1ff,
            sequence: bits as u16,
        })
    }

    /// All but the partition: the order of creation.
    fn low(self) -> u64 {
        (u64::from(self.seconds) << 25) | (u64::from(self.worker) << 16) | u64::from(self.sequence)
    }
}

impl Ord for IdParts {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |parts: &IdParts| (parts.seconds, parts.worker, parts.sequence, parts.partition);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for IdParts {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Ids of eight bytes, big-endian, with a partition in front: as dense as a number, in order of time within
/// each of 64 partitions. A query for a time scans all 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionedId;

impl KeyDesign for PartitionedId {
    type Key = IdParts;

    fn encode(&self, key: &IdParts) -> Result<Vec<u8>, KeyError> {
        Ok(key.to_id()?.to_be_bytes().to_vec())
    }

    fn decode(&self, row: &[u8]) -> Result<IdParts, KeyError> {
        let bytes = row
            .try_into()
            .map_err(|_| not_of_design(row, "it does not have 8 bytes"))?;
        IdParts::from_id(i64::from_be_bytes(bytes)).map_err(|_| not_of_design(row, "its first bit is set"))
    }

    /// Borders of partitions, as long as there are enough.
    fn split_points(&self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
        check_regions(regions, 1 << 32)?;
        let partitions = u128::from(PARTITIONS);
        Ok((1..regions as u128)
            .map(|index| {
                let point = if regions as u128 <= partitions {
                    (index * partitions / regions as u128) << LOW_BITS
                } else {
                    (index << 63) / regions as u128
                };
                (point as u64).to_be_bytes().to_vec()
            })
            .collect())
    }

    fn scan_ranges(&self, keys: impl RangeBounds<IdParts>) -> Result<Vec<RowRange>, KeyError> {
        if is_crossed(&keys) {
            return Ok(Vec::new());
        }
        for bound in [keys.start_bound(), keys.end_bound()] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                key.to_id()?;
            }
        }
        let ranges = (0..PARTITIONS).filter_map(|partition| {
            // The partition decides between keys that are equal otherwise, so it moves the ends by one.
            let first = match keys.start_bound() {
                Bound::Included(from) => from.low() + u64::from(partition < from.partition),
                Bound::Excluded(from) => from.low() + u64::from(partition <= from.partition),
                Bound::Unbounded => 0,
            };
            let stop = match keys.end_bound() {
                Bound::Included(to) => to.low() + u64::from(partition <= to.partition),
                Bound::Excluded(to) => to.low() + u64::from(partition < to.partition),
                Bound::Unbounded => 1 << LOW_BITS,
            };
            let base = u64::from(partition) << LOW_BITS;
            (first < stop).then(|| RowRange {
                start: (base + first).to_be_bytes().to_vec(),
                stop: (base + stop).to_be_bytes().to_vec(),
            })
        });
        Ok(ranges.collect())
    }
}

fn in_range(part: &'static str, value: u64, max: u64) -> Result<(), KeyError> {
    if value > max {
        return Err(KeyError::OutOfRange {
            part,
            value: value.into(),
            range: format!("0..={max}"),
        });
    }
    Ok(())
}
