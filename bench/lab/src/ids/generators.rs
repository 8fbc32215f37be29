//! The ids.
//!
//! ```text
//! uuid4            16 bytes: 122 random bits, and version and variant (RFC 9562)
//! uuid7            16 bytes: milliseconds 48, version 4, random 12, variant 2, random 62 (RFC 9562)
//! snowflake         8 bytes: 0, milliseconds since 2010-11-04 41, machine 10, sequence 12
//! objectid         12 bytes: seconds 32, random of the process 40, counter 24
//! partitioned-id    8 bytes: 0, partition 6, seconds 32, machine 9, sequence 16
//! minute           22 digits: mmHHddMMyyyy, sequence 10
//! ```
//!
//! Bits are big-endian, the first the highest, so row keys sort as the bits do. Id `index` is made at
//! millisecond `index / ids_per_ms` of the run's clock by machine `index % machines`, in its own sequence.

use basalt_client::keys::presplit::SplitAlgorithm;
use basalt_client::keys::{IdParts, KeyDesign, MinuteFirst, MinuteKey, PartitionedId};
use basalt_load::error::{Error, Result};
use clap::ValueEnum;

use crate::designs::mix;

/// 2026-01-01 00:00 UTC, in milliseconds since 1970.
const START_MS: u64 = 1_767_225_600_000;
/// The epoch of Snowflake: 2010-11-04 01:42:54.657 UTC.
const SNOWFLAKE_EPOCH_MS: u64 = 1_288_834_974_657;
const MS_PER_MINUTE: u64 = 60_000;

/// A generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum IdKind {
    /// Random.
    Uuid4,
    /// Milliseconds, then random.
    Uuid7,
    /// Milliseconds, machine, sequence.
    Snowflake,
    /// Seconds, process, counter.
    #[value(name = "objectid")]
    ObjectId,
    /// A partition in front of seconds.
    PartitionedId,
    /// The minute's fastest digits in front.
    Minute,
}

/// Times and makers of ids.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Clock {
    /// Ids that are made in a millisecond of the run's own time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(super) ids_per_ms: u64,
    /// Machines that make ids in turn.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=512))]
    pub(super) machines: u64,
}

impl Clock {
    /// Fails if a machine would have to make more ids than some generator has numbers for.
    pub(super) fn check(self, rows: u64) -> Result<()> {
        let of_second = (self.ids_per_ms * 1_000).div_ceil(self.machines);
        if of_second > 1 << 16 {
            return Err(Error::Usage(format!(
                "each of {} machines would make {of_second} ids a second, and a partitioned id numbers 65536: give more \
                 --machines or fewer --ids-per-ms",
                self.machines
            )));
        }
        if rows.div_ceil(self.machines) > 1 << 24 {
            return Err(Error::Usage(format!(
                "{rows} rows are more than the counters of {} machines' object ids have numbers for",
                self.machines
            )));
        }
        Ok(())
    }

    fn ms(self, index: u64) -> u64 {
        START_MS + index / self.ids_per_ms
    }

    /// The place of an id among those that its machine made since this id's time began, `first` being the
    /// first of them.
    fn sequence(self, index: u64, first: u64) -> u64 {
        (index - first) / self.machines
    }
}

impl IdKind {
    /// The name as on the command line and in table names.
    pub(super) fn name(self) -> &'static str {
        match self {
            IdKind::Uuid4 => "uuid4",
            IdKind::Uuid7 => "uuid7",
            IdKind::Snowflake => "snowflake",
            IdKind::ObjectId => "objectid",
            IdKind::PartitionedId => "partitioned-id",
            IdKind::Minute => "minute",
        }
    }

    /// Id `index` as a row key.
    pub(super) fn row_key(self, clock: Clock, seed: u64, index: u64) -> Result<Vec<u8>> {
        let ms = clock.ms(index);
        let machine = index % clock.machines;
        // Two independent numbers of 64 bits for each index.
        let random = |which: u64| mix(mix(seed.wrapping_mul(2).wrapping_add(which)) ^ index);
        Ok(match self {
            IdKind::Uuid4 => uuid(random(0), random(1), 4),
            IdKind::Uuid7 => uuid((ms << 16) | (random(0) & 0xfff), random(1), 7),
            IdKind::Snowflake => {
                let first = (ms - START_MS) * clock.ids_per_ms;
                let sequence = clock.sequence(index, first);
                let id = ((ms - SNOWFLAKE_EPOCH_MS) << 22) | (machine << 12) | sequence;
                id.to_be_bytes().to_vec()
            }
            IdKind::ObjectId => {
                let process = mix(seed ^ (machine << 32));
                let seconds = u32::try_from(ms / 1_000)
                    .map_err(|_| Error::Usage(format!("{ms} ms are beyond the seconds of an object id")))?;
                let counter = clock.sequence(index, 0) as u32;
                let mut id = seconds.to_be_bytes().to_vec();
                id.extend(&process.to_be_bytes()[..5]);
                id.extend(&counter.to_be_bytes()[1..]);
                id
            }
            IdKind::PartitionedId => {
                let second = (ms - START_MS) / 1_000;
                let first = second * 1_000 * clock.ids_per_ms;
                let parts = IdParts {
                    partition: (random(0) % 64) as u8,
                    seconds: u32::try_from(ms / 1_000)
                        .map_err(|_| Error::Usage(format!("{ms} ms are beyond the seconds of an id")))?,
                    worker: machine as u16,
                    sequence: clock.sequence(index, first) as u16,
                };
                PartitionedId.encode(&parts)?
            }
            IdKind::Minute => MinuteFirst.encode(&MinuteKey {
                minute: (ms / MS_PER_MINUTE) as u32,
                sequence: u32::try_from(index)
                    .map_err(|_| Error::Usage(format!("row {index} is beyond the sequence of 32 bits")))?,
            })?,
        })
    }

    /// Keys that split a table for these ids. For ids that follow time they lie in the past, in equal steps
    /// that end where the rows begin.
    pub(super) fn split_points(self, clock: Clock, regions: u32, rows: u64) -> Result<Vec<Vec<u8>>> {
        let count = regions as usize;
        let span_s = rows / clock.ids_per_ms / 1_000;
        let span_s = span_s.max(u64::from(regions));
        let past = |at: fn(u64) -> Vec<u8>| -> Vec<Vec<u8>> {
            let borders = u64::from(regions) - 1;
            (1..=borders)
                .map(|border| at(START_MS - span_s * 1_000 * (borders - border) / borders))
                .collect()
        };
        Ok(match self {
            IdKind::Uuid4 => SplitAlgorithm::Uniform.split_keys(count)?,
            IdKind::Uuid7 => past(|ms| (ms << 16).to_be_bytes().to_vec()),
            IdKind::Snowflake => past(|ms| ((ms - SNOWFLAKE_EPOCH_MS) << 22).to_be_bytes().to_vec()),
            IdKind::ObjectId => past(|ms| ((ms / 1_000) as u32).to_be_bytes().to_vec()),
            IdKind::PartitionedId => PartitionedId.split_points(count)?,
            IdKind::Minute => MinuteFirst.split_points(count)?,
        })
    }
}

/// A UUID of RFC 9562: version and variant overwrite six of the bits.
fn uuid(high: u64, low: u64, version: u64) -> Vec<u8> {
    let high = (high & !0xf000) | (version << 12);
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    [high.to_be_bytes(), low.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const CLOCK: Clock = Clock {
        ids_per_ms: 10,
        machines: 8,
    };

    fn keys(kind: IdKind, rows: u64) -> Vec<Vec<u8>> {
        (0..rows)
            .map(|index| kind.row_key(CLOCK, 1, index).unwrap())
            .collect()
    }

    #[test]
    fn ids_are_unique_and_of_their_length() {
        for (kind, bytes) in [
            (IdKind::Uuid4, 16),
            (IdKind::Uuid7, 16),
            (IdKind::Snowflake, 8),
            (IdKind::ObjectId, 12),
            (IdKind::PartitionedId, 8),
            (IdKind::Minute, 22),
        ] {
            let keys = keys(kind, 50_000);
            assert!(keys.iter().all(|key| key.len() == bytes), "{kind:?}");
            assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{kind:?}");
        }
    }

    /// The fields of the first ids, at 2026-01-01 00:00 UTC.
    #[test]
    fn the_fields_are_where_they_should_be() {
        let uuid = &keys(IdKind::Uuid4, 1)[0];
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 0b10));
        let uuid = &keys(IdKind::Uuid7, 1)[0];
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (7, 0b10));
        assert_eq!(uuid[..6], START_MS.to_be_bytes()[2..]);
        let ids = keys(IdKind::Snowflake, 20);
        let fields = |id: &[u8]| {
            let id = u64::from_be_bytes(id.try_into().unwrap());
            (
                (id >> 22) + SNOWFLAKE_EPOCH_MS - START_MS,
                (id >> 12) & 0x3ff,
                id & 0xfff,
            )
        };
        assert_eq!(
            [0, 8, 9, 10].map(|index| fields(&ids[index])),
            [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 2, 0)]
        );
        let ids = keys(IdKind::ObjectId, 9);
        assert_eq!(ids[0][..4], 1_767_225_600u32.to_be_bytes());
        assert_eq!(ids[0][4..9], ids[8][4..9], "the same process");
        assert_eq!((&ids[0][9..], &ids[8][9..]), (&[0, 0, 0][..], &[0, 0, 1][..]));
        assert_eq!(keys(IdKind::Minute, 2)[1], b"0000010120260000000001");
    }

    /// Ids that follow time all go to the last region; the others to all alike.
    #[test]
    fn tables_are_split_where_a_running_table_would_be() {
        for (kind, hot) in [
            (IdKind::Uuid4, false),
            (IdKind::Uuid7, true),
            (IdKind::Snowflake, true),
            (IdKind::ObjectId, true),
            (IdKind::PartitionedId, false),
        ] {
            let points = kind.split_points(CLOCK, 4, 50_000).unwrap();
            assert_eq!(points.len(), 3);
            assert!(points.is_sorted_by(|a, b| a < b), "{kind:?} {points:?}");
            let mut counts = [0; 4];
            for key in keys(kind, 10_000) {
                counts[points.partition_point(|point| *point <= key)] += 1;
            }
            if hot {
                assert_eq!(counts, [0, 0, 0, 10_000], "{kind:?}");
            } else {
                assert!(
                    counts.iter().all(|count| (2_200..2_800).contains(count)),
                    "{kind:?} {counts:?}"
                );
            }
        }
    }

    #[test]
    fn a_clock_that_is_too_fast_is_refused() {
        let fast = Clock {
            ids_per_ms: 1_000,
            machines: 1,
        };
        assert!(fast.check(10).unwrap_err().to_string().contains("--machines"));
        assert!(
            CLOCK
                .check(1 << 28)
                .unwrap_err()
                .to_string()
                .contains("object ids")
        );
        assert!(CLOCK.check(1 << 20).is_ok());
    }
}
