//! Thrift 2: the fields of gets and scans.

use basalt_engine::filter::FilterSpec;
use basalt_idl::thrift2::{self, args as two};
use bytes::Bytes;

use crate::client::{Wire, bytes, raw, restarted, shown, some, start};

fn time_range(min_stamp: i64, max_stamp: i64) -> thrift2::TTimeRange {
    thrift2::TTimeRange { min_stamp, max_stamp }
}

fn column(family: &str, qualifier: Option<&str>) -> thrift2::TColumn {
    thrift2::TColumn {
        family: bytes(family),
        qualifier: qualifier.map(bytes),
        timestamp: Some(1),
    }
}

/// Row `r` with versions 1 to 3 of `f:a`, and version 2 of `f:b`, `f:` and `g:a`.
fn prepared(table: &str) -> Wire {
    let mut wire = Wire::connect();
    wire.create(table, &[]);
    for stamp in 1..=3 {
        wire.put(table, "r", "f:a", &format!("a{stamp}"), Some(stamp));
    }
    for (column, value) in [("f:b", "b"), ("f:", "e"), ("g:a", "g")] {
        wire.put(table, "r", column, value, Some(2));
    }
    wire
}

#[test]
fn every_field_of_a_get() {
    let mut wire = prepared("get2");
    let get = || thrift2::TGet {
        row: bytes("r"),
        ..Default::default()
    };
    let prefix = Bytes::from(FilterSpec::column_prefix(b"b".to_vec()).encode());
    for (tget, found) in [
        (get(), "e a3 b g"),
        (
            thrift2::TGet {
                columns: Some(vec![column("f", Some("a")), column("g", None)]),
                ..get()
            },
            "a3 g",
        ),
        (
            thrift2::TGet {
                columns: Some(vec![column("f", Some(""))]),
                ..get()
            },
            "e",
        ),
        (
            thrift2::TGet {
                columns: Some(Vec::new()),
                max_versions: Some(2),
                ..get()
            },
            "e a3 a2 b g",
        ),
        (
            thrift2::TGet {
                timestamp: Some(1),
                time_range: Some(time_range(2, 3)),
                ..get()
            },
            "a1",
        ),
        (
            thrift2::TGet {
                time_range: Some(time_range(2, 3)),
                ..get()
            },
            "e a2 b g",
        ),
        (
            thrift2::TGet {
                filter_string: some("QualifierFilter(=, 'binary:a')"),
                ..get()
            },
            "a3 g",
        ),
        (
            thrift2::TGet {
                filter_string: some("QualifierFilter(=, 'binary:a')"),
                filter_bytes: Some(prefix),
                ..get()
            },
            "b",
        ),
        (
            thrift2::TGet {
                store_limit: Some(1),
                store_offset: Some(1),
                ..get()
            },
            "a3",
        ),
        // Java's client sends all of these for a plain get.
        (
            thrift2::TGet {
                time_range: Some(time_range(0, i64::MAX)),
                max_versions: Some(1),
                store_limit: Some(-1),
                store_offset: Some(0),
                cache_blocks: Some(true),
                consistency: Some(thrift2::TConsistency::STRONG),
                target_replica_id: Some(-1),
                existence_only: Some(false),
                ..get()
            },
            "e a3 b g",
        ),
        // Hints, and labels that nothing here carries, change nothing.
        (
            thrift2::TGet {
                cache_blocks: Some(false),
                consistency: Some(thrift2::TConsistency::TIMELINE),
                target_replica_id: Some(0),
                authorizations: Some(thrift2::TAuthorization {
                    labels: Some(vec!["secret".into()]),
                }),
                attributes: Some([(bytes("unknown"), bytes("x"))].into()),
                ..get()
            },
            "e a3 b g",
        ),
    ] {
        let asked = format!("{tget:?}");
        let result = wire.ok(&two::Get {
            table: bytes("get2"),
            tget,
        });
        let values: Vec<String> = shown(&result)
            .iter()
            .filter_map(|cell| cell.split_once('='))
            .map(|(_, value)| value.to_owned())
            .collect();
        assert_eq!(values.join(" "), found, "{asked}");
    }
    let bad_filter = thrift2::TGet {
        filter_string: some(""),
        ..get()
    };
    let get_with = |tget| two::Get {
        table: bytes("get2"),
        tget,
    };
    wire.refused(&get_with(bad_filter), &["Io(", "Incorrect Filter String"]);
}

/// A TResult has no place for the answer, so it is empty; `exists` has one.
#[test]
fn a_get_of_existence_carries_no_cells() {
    let mut wire = prepared("existence");
    let get = |row: &str, existence_only| thrift2::TGet {
        row: bytes(row),
        existence_only: Some(existence_only),
        ..Default::default()
    };
    let table = || bytes("existence");
    let one = wire.ok(&two::Get {
        table: table(),
        tget: get("r", true),
    });
    assert!(one.row.is_none() && one.column_values.is_empty());
    let many = wire.ok(&two::GetMultiple {
        table: table(),
        tgets: vec![get("r", true), get("r", false), get("no", true)],
    });
    let there: Vec<bool> = many.iter().map(|result| result.row.is_some()).collect();
    assert_eq!(there, [false, true, false]);
    let exists = |row: &str| two::Exists {
        table: table(),
        tget: get(row, true),
    };
    assert!(wire.ok(&exists("r")) && !wire.ok(&exists("no")));
    let missing = two::Get {
        table: bytes("nowhere"),
        tget: get("r", true),
    };
    wire.refused(&missing, &["nowhere", "can_retry: Some(false)"]);
}

#[test]
fn every_field_of_a_scan() {
    let mut wire = prepared("scan2");
    wire.put("scan2", "s", "f:a", "s", Some(2));
    wire.put("scan2", "t", "g:a", "t", Some(2));
    let scan = || thrift2::TScan::default();
    let filter = Bytes::from(FilterSpec::inclusive_stop(b"r".to_vec()).encode());
    for (tscan, found) in [
        (scan(), "e a3 b g | s | t"),
        (
            thrift2::TScan {
                start_row: some("s"),
                stop_row: some("t"),
                ..scan()
            },
            "s",
        ),
        (
            thrift2::TScan {
                columns: Some(vec![column("f", Some("b")), column("g", None)]),
                ..scan()
            },
            "b g | t",
        ),
        (
            thrift2::TScan {
                max_versions: 2,
                time_range: Some(time_range(1, 3)),
                limit: Some(1),
                ..scan()
            },
            "e a2 a1 b g",
        ),
        (
            thrift2::TScan {
                filter_string: some("PrefixFilter('s')"),
                ..scan()
            },
            "s",
        ),
        (
            thrift2::TScan {
                filter_string: some("PrefixFilter('s')"),
                filter_bytes: Some(filter),
                ..scan()
            },
            "e a3 b g",
        ),
        (
            thrift2::TScan {
                start_row: some("s"),
                reversed: Some(true),
                ..scan()
            },
            "s | e a3 b g",
        ),
        (
            thrift2::TScan {
                batch_size: Some(3),
                ..scan()
            },
            "e a3 b | g | s | t",
        ),
        // A family without a range of its own has the scan's; one that is not there has no effect.
        (
            thrift2::TScan {
                time_range: Some(time_range(3, 4)),
                col_fam_time_range_map: Some(
                    [(bytes("g"), time_range(2, 3)), (bytes("none"), time_range(0, 9))].into(),
                ),
                ..scan()
            },
            "a3 g | t",
        ),
        (
            thrift2::TScan {
                columns: Some(vec![column("f", Some("a"))]),
                col_fam_time_range_map: Some([(bytes("f"), time_range(0, 2))].into()),
                ..scan()
            },
            "a1",
        ),
        // Hints, and labels that nothing here carries, change nothing.
        (
            thrift2::TScan {
                caching: Some(1),
                cache_blocks: Some(false),
                read_type: Some(thrift2::TReadType::PREAD),
                consistency: Some(thrift2::TConsistency::TIMELINE),
                target_replica_id: Some(0),
                authorizations: Some(thrift2::TAuthorization { labels: None }),
                attributes: Some([(bytes("_isolationlevel_"), bytes("\u{2}"))].into()),
                ..scan()
            },
            "e a3 b g | s | t",
        ),
    ] {
        let asked = format!("{tscan:?}");
        let scan = two::GetScannerResults {
            table: bytes("scan2"),
            tscan,
            num_rows: 9,
        };
        let results = wire.ok(&scan);
        let rows: Vec<String> = results
            .iter()
            .map(|result| {
                let values = shown(result)
                    .iter()
                    .filter_map(|cell| cell.split_once('='))
                    .map(|(_, value)| value.to_owned())
                    .collect::<Vec<_>>();
                values.join(" ")
            })
            .collect();
        assert_eq!(rows.join(" | "), found, "{asked}");
        assert!(results.iter().all(|result| !result.stale));
    }
}

/// Time ranges of families belong to the scan, not to the table's state when its scanner was
/// opened.
#[test]
fn ranges_of_families_wait_for_their_table() {
    let mut wire = Wire::connect();
    let tscan = thrift2::TScan {
        col_fam_time_range_map: Some([(bytes("f"), time_range(0, 5))].into()),
        ..Default::default()
    };
    let scanner_id = wire.ok(&two::OpenScanner {
        table: bytes("ranges"),
        tscan,
    });
    wire.create("ranges", &[]);
    wire.put("ranges", "r", "f:a", "new", Some(7));
    wire.put("ranges", "r", "f:a", "old", Some(3));
    let found = wire.ok(&two::GetScannerRows {
        scanner_id,
        num_rows: 9,
    });
    assert_eq!(shown(&found[0]), ["f:a@3=old"]);
    wire.ok(&two::CloseScanner { scanner_id });
}

#[test]
fn raw_reads_of_thrift_2() {
    let mut wire = prepared("raw2");
    let tdelete = thrift2::TDelete {
        row: bytes("r"),
        timestamp: Some(2),
        ..Default::default()
    };
    wire.ok(&two::DeleteSingle {
        table: bytes("raw2"),
        tdelete,
    });
    let types = |results: &[thrift2::TResult]| -> Vec<(String, Option<i8>)> {
        results
            .iter()
            .flat_map(|result| &result.column_values)
            .map(|value| {
                let family = String::from_utf8_lossy(&value.family);
                let qualifier = String::from_utf8_lossy(&value.qualifier);
                (format!("{family}:{qualifier}"), value.cell_type)
            })
            .collect()
    };
    let scan = |attributes| two::GetScannerResults {
        table: bytes("raw2"),
        tscan: thrift2::TScan {
            columns: Some(vec![column("g", None)]),
            attributes,
            ..Default::default()
        },
        num_rows: 9,
    };
    assert!(wire.ok(&scan(None)).is_empty());
    let all = wire.ok(&scan(raw(b"\x01")));
    assert_eq!(types(&all), [("g:".into(), Some(14)), ("g:a".into(), Some(4))]);
    let get = two::Get {
        table: bytes("raw2"),
        tget: thrift2::TGet {
            row: bytes("r"),
            columns: Some(vec![column("g", None)]),
            attributes: raw(b"\x01"),
            ..Default::default()
        },
    };
    assert_eq!(types(&[wire.ok(&get)]), types(&all));
}

/// Goal: rows of a getMultiple that are not in memory are read together, and are those of single
/// gets. Method: more and fewer rows than a network thread reads from memory, after a restart, in two
/// regions and two families, some of them not there; then from memory.
#[test]
fn a_batch_of_gets_reads_its_blocks_together() {
    let mut shared = start(&[]);
    let mut wire = Wire::to(shared);
    let row = |number: usize| format!("row-{number:04}");
    wire.create("batch", &["row-0300"]);
    for number in 0..600 {
        for column in ["f:q", "g:q"] {
            wire.put(
                "batch",
                &row(number),
                column,
                &number.to_string().repeat(700),
                Some(1),
            );
        }
    }
    for count in [40, 130] {
        shared = restarted(wire.shared, &[]);
        wire = Wire::to(shared);
        let numbers: Vec<usize> = (0..count).map(|index| index * 97 % 700).collect();
        let tgets: Vec<_> = numbers
            .iter()
            .map(|number| thrift2::TGet {
                row: bytes(&row(*number)),
                ..Default::default()
            })
            .collect();
        for round in 0..2 {
            let found = wire.ok(&two::GetMultiple {
                table: bytes("batch"),
                tgets: tgets.clone(),
            });
            for (number, result) in numbers.iter().zip(found) {
                let values: Vec<_> = result
                    .column_values
                    .iter()
                    .map(|cell| cell.value.clone())
                    .collect();
                let expected = Bytes::from(number.to_string().repeat(700));
                let expected = if *number < 600 {
                    vec![expected; 2]
                } else {
                    Vec::new()
                };
                assert_eq!(values, expected, "{number} in round {round}");
            }
        }
        let read = wire.shared.server.metric("basalt_blocks_read_ahead_total");
        let misses = wire.shared.server.metric("basalt_block_cache_misses_total");
        assert!(read > 10 && misses < read + 10, "{read} of {misses}");
    }
}
