//! Properties of every design: keys come back, scans cover exactly their rows, tables are split
//! where rows go.

use basalt_load::time_text::minute_text;

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
    // 016305121 and 0000000007 from the last digit to the first.
    assert_eq!(rows[3], b"7000000000121503610");
    // 2^63 - 1 - 978307260000 ms, and 2^32 - 1 - 7.
    assert_eq!(rows[4], b"\x7f\xff\xff\x1c\x38\x57\xe1\x9f\xff\xff\xff\xf8");
    assert_eq!((rows[5].len(), rows[6].len()), (8, 8));
    let id = IdParts::from_id(i64::from_be_bytes(rows[6].clone().try_into().unwrap())).unwrap();
    assert_eq!((id.seconds, id.worker, id.sequence), (978_307_260, 0, 7));
    assert_eq!(rows[7], b"0100010120010000000007");
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
            let expected = hour.contains(&minute) || !design.can_scan_a_time();
            assert_eq!(inside, usize::from(expected), "{design:?} {minute}");
        }
    }
}

#[test]
fn the_ends_of_sequence_numbers_come_back() {
    for design in designs() {
        for sequence in [0, 1, 65_535, 65_536, (1 << 25) - 1, 1 << 25, (60 << 25) - 1] {
            let key = MinuteKey {
                minute: START,
                sequence,
            };
            let row = design.encode(key).unwrap();
            assert_eq!(design.decode(&row).unwrap(), key, "{design:?}");
        }
    }
    let beyond = MinuteKey {
        minute: START,
        sequence: 60 << 25,
    };
    let id = Design::new(DesignName::PartitionedId, OPTIONS).unwrap();
    assert!(id.encode(beyond).unwrap_err().to_string().contains("sequence"));
}

#[test]
fn an_hour_costs_the_scans_that_the_design_is_known_for() {
    let scans = |design: &Design| design.scan_ranges(START..START + 60).unwrap().len();
    let counts: Vec<usize> = designs().iter().map(scans).collect();
    assert_eq!(counts, [1, 16, 256, 1, 1, 1, 64, 60]);
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

/// Designs in order of time have all their rows in the region at one end, whatever rows come.
#[test]
fn splits_ascend_and_the_past_ends_where_the_rows_begin() {
    for design in designs() {
        for regions in [1, 2, 16] {
            let points = design.split_points(regions, &(START..START + 1440)).unwrap();
            assert_eq!(points.len(), regions - 1);
            assert!(points.is_sorted_by(|a, b| a < b), "{design:?} {points:?}");
            for key in [(START, 0), (START, u32::MAX >> 2), (START + 1439, 9)] {
                let row = design
                    .encode(MinuteKey {
                        minute: key.0,
                        sequence: key.1,
                    })
                    .unwrap();
                let region = points.partition_point(|point| *point <= row);
                match design {
                    Design::Sequential => assert_eq!(region, regions - 1),
                    Design::ReversedTimestamp => assert_eq!(region, 0),
                    _ => assert!(region < regions),
                }
            }
        }
    }
    assert_eq!(
        past_minutes(4, &(START..START + 3)).unwrap(),
        [START - 2, START - 1, START]
    );
    assert!(past_minutes(4, &(2..100)).is_err());
}

#[test]
fn table_names_say_the_design() {
    assert_eq!(DesignName::of_table("bench_salted"), Some(DesignName::Salted));
    let reversed = DesignName::of_table("bench_reversed-timestamp");
    assert_eq!(reversed, Some(DesignName::ReversedTimestamp));
    assert_eq!(DesignName::of_table("salted_bench"), None);
}
