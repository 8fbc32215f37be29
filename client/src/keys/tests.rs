//! Properties of every design, with random keys: inverse, ranges, order, split points.

use std::ops::Bound;

use proptest::prelude::*;

use super::merge::merge_iterators;
use super::*;

/// Checks a range over some keys against the meaning of the range itself.
fn check<D: KeyDesign>(design: &D, keys: &[D::Key], range: (Bound<D::Key>, Bound<D::Key>)) {
    let mut rows: Vec<(Vec<u8>, &D::Key)> = Vec::new();
    for key in keys {
        let row = design.encode(key).unwrap();
        assert_eq!(
            &design.decode(&row).unwrap(),
            key,
            "decode is the inverse of encode"
        );
        rows.push((row, key));
    }
    rows.sort();
    rows.dedup();
    let ranges = design.scan_ranges(range.clone()).unwrap();
    for (row, key) in &rows {
        let inside = ranges.iter().filter(|scan| scan.contains(row)).count();
        let expected = usize::from(range.contains(*key));
        assert_eq!(inside, expected, "{key:?} in scans of {range:?}");
    }
    // The table's results for each scan, merged, equal a sorted list's keys in the range.
    let scans = ranges.iter().map(|scan| {
        let found = rows.iter().filter(|(row, _)| scan.contains(row));
        found
            .map(|(row, _)| design.decode(row).unwrap())
            .collect::<Vec<_>>()
    });
    let merged: Vec<D::Key> = merge_iterators(scans.map(Vec::into_iter), Clone::clone).collect();
    let mut expected: Vec<D::Key> = keys.iter().filter(|key| range.contains(*key)).cloned().collect();
    expected.sort();
    expected.dedup();
    assert_eq!(merged, expected);
}

/// Ranges with ends of all kinds, crossed ones included. Ends are often keys that exist.
fn range<K: Clone + std::fmt::Debug + 'static>(
    keys: impl Strategy<Value = Vec<K>>,
    narrow: bool,
) -> impl Strategy<Value = (Vec<K>, (Bound<K>, Bound<K>))> {
    let kinds = if narrow { 2u8 } else { 3 };
    (keys, any::<[prop::sample::Index; 2]>(), 0..kinds, 0..kinds).prop_map(|(keys, ends, from, to)| {
        let bound = |kind, at: &prop::sample::Index| match kind {
            0 => Bound::Included(at.get(&keys).clone()),
            1 => Bound::Excluded(at.get(&keys).clone()),
            _ => Bound::Unbounded,
        };
        let range = (bound(from, &ends[0]), bound(to, &ends[1]));
        (keys, range)
    })
}

fn byte_keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    // Few different bytes, so that keys share prefixes, and the two that are borders.
    let byte = prop::sample::select(vec![0u8, 1, b'a', 0xfe, 0xff]);
    prop::collection::vec(prop::collection::vec(byte, 0..4), 1..20)
}

fn id_parts() -> impl Strategy<Value = IdParts> {
    (0..64u8, 0..3u32, 0..512u16, any::<u16>(), any::<bool>()).prop_map(
        |(partition, seconds, worker, sequence, last)| IdParts {
            partition,
            seconds: if last { u32::MAX - seconds } else { seconds },
            worker,
            sequence,
        },
    )
}

fn entity_times() -> impl Strategy<Value = Vec<EntityTime>> {
    let entity = prop::collection::vec(prop::sample::select(vec![0u8, b'a', 0xff]), 2);
    let time = prop_oneof![0..3i64, Just(i64::MAX)];
    let key = (entity, time).prop_map(|(entity, timestamp_ms)| EntityTime { entity, timestamp_ms });
    prop::collection::vec(key, 1..20)
}

proptest! {
    #[test]
    fn salt((keys, range) in range(byte_keys(), false), buckets in 1..=256u16) {
        check(&Salt::new(buckets).unwrap(), &keys, range);
    }

    #[test]
    fn hash_prefix((keys, range) in range(byte_keys(), false)) {
        check(&HashPrefix::new(1).unwrap(), &keys, range);
    }

    #[test]
    fn reverse_digits((keys, range) in range(prop::collection::vec(0..10_000u64, 1..20), false)) {
        check(&ReverseDigits::new(4).unwrap(), &keys, range);
    }

    #[test]
    fn newest_first((keys, range) in range(entity_times(), false)) {
        check(&NewestFirst::new(2), &keys, range);
    }

    #[test]
    fn partitioned_id((keys, range) in range(prop::collection::vec(id_parts(), 1..20), false)) {
        check(&PartitionedId, &keys, range);
    }

    #[test]
    fn minute_first(
        (keys, range) in range(
            // Around the turn of a year, where all five parts of the time change.
            prop::collection::vec((29_979_300..29_979_500u32, 0..3u32), 1..20)
                .prop_map(|keys| keys.into_iter().map(|(minute, sequence)| MinuteKey { minute, sequence }).collect()),
            true,
        )
    ) {
        check(&MinuteFirst, &keys, range);
    }

    #[test]
    fn ids_of_sixty_three_bits(id in 0..=i64::MAX) {
        prop_assert_eq!(IdParts::from_id(id).unwrap().to_id().unwrap(), id);
    }

    /// A row of no design is refused, and a row that is accepted is the one its key has.
    #[test]
    fn any_bytes_can_be_decoded(row in prop::collection::vec(any::<u8>(), 0..24)) {
        fn check<D: KeyDesign>(design: &D, row: &[u8]) {
            if let Ok(key) = design.decode(row) {
                assert_eq!(design.encode(&key).unwrap(), row);
            }
        }
        check(&Salt::new(4).unwrap(), &row);
        check(&HashPrefix::new(1).unwrap(), &row);
        check(&ReverseDigits::new(4).unwrap(), &row);
        check(&NewestFirst::new(2), &row);
        check(&PartitionedId, &row);
        check(&MinuteFirst, &row);
    }
}

/// Asks each design for every number of regions up to its limit or 300.
#[test]
fn split_points_ascend() {
    fn check<D: KeyDesign>(design: &D, most: usize) {
        assert!(design.split_points(0).is_err());
        for regions in 1..=most {
            let points = design.split_points(regions).unwrap();
            assert_eq!(points.len(), regions - 1);
            assert!(points.is_sorted_by(|a, b| a < b), "{points:?}");
            assert!(points.iter().all(|point| !point.is_empty()));
        }
    }
    check(&Salt::new(16).unwrap(), 300);
    check(&Salt::new(256).unwrap(), 300);
    check(&HashPrefix::new(1).unwrap(), 256);
    check(&HashPrefix::new(16).unwrap(), 300);
    check(&ReverseDigits::new(3).unwrap(), 300);
    check(&NewestFirst::new(2), 300);
    check(&NewestFirst::new(0), 1);
    check(&PartitionedId, 300);
    check(&MinuteFirst, 60);
    assert!(MinuteFirst.split_points(61).is_err());
    assert!(HashPrefix::new(1).unwrap().split_points(257).is_err());
    assert!(NewestFirst::new(0).split_points(2).is_err());
}

/// The rows that the documentation of the designs shows.
#[test]
fn row_keys_have_the_documented_form() {
    let row = ReverseDigits::new(6).unwrap().encode(&1234).unwrap();
    assert_eq!(row, b"432100");
    let id = IdParts {
        partition: 63,
        seconds: 1,
        worker: 1,
        sequence: 2,
    };
    assert_eq!(
        PartitionedId.encode(&id).unwrap(),
        [0x7e, 0, 0, 0, 0x02, 0x01, 0, 0x02]
    );
    // The MD5 of "hello" begins 5d 41 40 2a.
    let row = HashPrefix::new(2).unwrap().encode(&b"hello".to_vec()).unwrap();
    assert_eq!(row, b"\x5d\x41hello");
    let row = Salt::new(16).unwrap().encode(&b"hello".to_vec()).unwrap();
    assert_eq!(row, b"\x0ahello");
}

#[test]
fn fields_that_do_not_fit_are_refused() {
    assert!(Salt::new(0).is_err());
    assert!(Salt::new(257).is_err());
    assert!(HashPrefix::new(17).is_err());
    assert!(ReverseDigits::new(20).is_err());
    assert!(ReverseDigits::new(3).unwrap().encode(&1000).is_err());
    let id = IdParts {
        partition: 64,
        seconds: 0,
        worker: 0,
        sequence: 0,
    };
    assert!(PartitionedId.encode(&id).is_err());
    assert!(PartitionedId.scan_ranges(id..).is_err());
    let many = HashPrefix::new(3).unwrap().scan_ranges(..);
    assert_eq!(many, Err(KeyError::TooManyScans { needed: 1 << 24 }));
    let wide = ReverseDigits::new(19).unwrap().scan_ranges(0..=65_536);
    assert_eq!(wide, Err(KeyError::TooManyScans { needed: 65_537 }));
}

/// A range of time is exclusive at its end although the scan begins there.
#[test]
fn a_time_range_is_half_open() {
    let design = NewestFirst::new(1);
    let scans = design.between(b"e", 10..20).unwrap();
    let inside = |timestamp_ms| {
        let key = EntityTime {
            entity: b"e".to_vec(),
            timestamp_ms,
        };
        scans[0].contains(&design.encode(&key).unwrap())
    };
    assert_eq!([9, 10, 19, 20].map(inside), [false, true, true, false]);
    assert!(design.between(b"e", 20..20).unwrap().is_empty());
}
