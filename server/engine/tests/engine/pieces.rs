//! Scans that cut rows where a fetch has no bytes left.
//!
//! The table: rows `a` and `b`, each with ten columns of 100 bytes in the families `f` and `g`.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Fetched, RowsSeen, Scanner};
use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{FetchLimits, ReadSpec, ReadTier, Scan, Write};
use basalt_engine::{Engine, Error, Result};

use crate::rig::{Rig, Shown, apply, descriptor, mutation, name, put, scan, shown};

const COLUMNS: usize = 10;

fn write_row(engine: &Engine, row: &[u8], value: u8) {
    let columns: Vec<String> = (0..COLUMNS).map(|column| format!("c{column}")).collect();
    let value = [value; 100];
    let writes: Vec<Write<'_>> = [b"f", b"g"]
        .into_iter()
        .flat_map(|family| columns.iter().map(move |column| (family, column)))
        .map(|(family, column)| Write::Put {
            family,
            qualifier: column.as_bytes(),
            timestamp: Some(5),
            value: &value,
            ttl_ms: None,
        })
        .collect();
    apply(engine, &name("t"), &[mutation(row, &writes)]).unwrap();
}

fn engine() -> (Rig, Arc<Engine>) {
    let (_disk, rig, engine) = Rig::open_simulated();
    engine
        .create_table(descriptor("t", &["f", "g"]), Vec::new())
        .unwrap();
    for row in [b"a", b"b"] {
        write_row(&engine, row, b'v');
    }
    (rig, engine)
}

/// One fetch of about `bytes` bytes: its cells, how many of its results are pieces, and its end.
fn fetch(scanner: &mut Scanner, bytes: usize) -> (Vec<Shown>, Vec<bool>, Result<Fetched>) {
    let limits = FetchLimits {
        results: usize::MAX,
        bytes,
        time: Duration::MAX,
    };
    let mut out = CellBatch::new();
    let fetched = scanner.fetch_in_pieces(&limits, Some(bytes), &mut out);
    let partial = out.rows().map(|row| row.partial).collect();
    (shown(&out), partial, fetched)
}

fn scan_of(reversed: bool, tier: ReadTier) -> Scan {
    Scan {
        reversed,
        tier,
        ..Scan::default()
    }
}

/// The pieces of a row together are the row, over both families, whatever is written, flushed and
/// compacted between two fetches.
#[test]
fn pieces_of_rows_are_the_rows() {
    for reversed in [false, true] {
        for bytes in [1, 200, 1_000, 1_500, 10_000] {
            let (_rig, engine) = engine();
            let expected = scan(&engine, &name("t"), scan_of(reversed, ReadTier::All));
            let mut scanner = engine.scan(&name("t"), scan_of(reversed, ReadTier::All)).unwrap();
            let (mut seen, mut pieces, mut fetches) = (Vec::new(), Vec::new(), 0);
            while !scanner.is_at_end() {
                let (cells, partial, fetched) = fetch(&mut scanner, bytes);
                fetched.unwrap();
                assert!(cells.len() <= bytes / 100 + 1, "{} cells", cells.len());
                seen.extend(cells);
                pieces.extend(partial);
                fetches += 1;
                write_row(&engine, b"a", b'w');
                if fetches % 2 == 0 {
                    engine.flush(&name("t")).unwrap();
                    engine.compact(&name("t"), None, true, true).unwrap();
                }
            }
            assert!(seen == expected, "{bytes} bytes, reversed: {reversed}");
            assert_eq!(pieces.iter().filter(|partial| !**partial).count(), 2, "two rows");
            assert_eq!(pieces.len() > 2, bytes < 5_000, "{bytes} bytes: {pieces:?}");
        }
    }
}

/// A scan of memory only does not begin a row that it would have to cut. It continues with that row
/// once it may read from disk.
#[test]
fn a_scan_of_memory_only_leaves_a_row_that_is_too_long() {
    let (_rig, engine) = engine();
    let mut scanner = engine.scan(&name("t"), scan_of(false, ReadTier::Memory)).unwrap();
    let (cells, _, fetched) = fetch(&mut scanner, 3_000);
    assert_eq!(cells.len(), 2 * COLUMNS, "the first row fits");
    assert!(matches!(fetched, Err(Error::NotInMemory)), "{fetched:?}");
    scanner.read_from_disk();
    let (cells, partial, fetched) = fetch(&mut scanner, 1_000);
    assert_eq!(
        (cells[0].row.as_str(), &partial[..], fetched.unwrap()),
        ("b", &[true][..], Fetched::More)
    );
    assert!(!scanner.is_at_end(), "in the middle of a row");
    let (rest, partial, _) = fetch(&mut scanner, 3_000);
    assert_eq!(
        (cells.len() + rest.len(), &partial[..]),
        (2 * COLUMNS, &[false][..])
    );
    assert!(scanner.is_at_end());
}

/// A filter that judges whole rows gets whole rows; any other sees each cell once.
#[test]
fn filters_that_judge_rows_get_whole_rows() {
    for (filter, is_cut) in [
        ("SingleColumnValueFilter('f', 'c9', =, 'binary:no')", false),
        ("ColumnCountGetFilter(9)", true),
    ] {
        let (_rig, engine) = engine();
        let filtered = || Scan {
            spec: ReadSpec {
                filter: Some(Arc::new(FilterSpec::parse(filter.as_bytes()).unwrap())),
                ..ReadSpec::default()
            },
            ..Scan::default()
        };
        let expected = scan(&engine, &name("t"), filtered());
        let mut scanner = engine.scan(&name("t"), filtered()).unwrap();
        let (mut seen, mut pieces) = (Vec::new(), 0);
        while !scanner.is_at_end() {
            let (cells, partial, fetched) = fetch(&mut scanner, 500);
            fetched.unwrap();
            seen.extend(cells);
            pieces += partial.iter().filter(|partial| **partial).count();
        }
        assert!(
            seen == expected,
            "{filter}: {} of {} cells",
            seen.len(),
            expected.len()
        );
        assert_eq!(pieces > 0, is_cut, "{filter}");
    }
}

/// The end shows with the last row, the limit counts rows, and the rows that were looked at are
/// counted with those that were left out.
#[test]
fn a_scan_knows_how_far_it_has_come() {
    let (_rig, engine) = engine();
    put(&engine, &name("t"), b"c", b"x");
    let one = FetchLimits {
        results: 1,
        bytes: usize::MAX,
        time: Duration::MAX,
    };
    let mut scanner = engine.scan(&name("t"), Scan::default()).unwrap();
    let mut out = CellBatch::new();
    for row in [&b"a"[..], b"b", b"c"] {
        assert!(!scanner.is_at_end());
        assert_eq!(scanner.fetch(&one, &mut out).unwrap(), Fetched::More);
        assert_eq!(out.row(out.row_count() - 1).key(), row);
    }
    assert!(scanner.is_at_end() && !scanner.is_ended_by_filter());
    assert_eq!(
        scanner.take_rows_seen(),
        RowsSeen {
            looked_at: 3,
            passed_over: 0
        }
    );

    let filter = FilterSpec::parse(b"PrefixFilter('a')").unwrap();
    let filtered = Scan {
        spec: ReadSpec {
            filter: Some(Arc::new(filter)),
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    let mut scanner = engine.scan(&name("t"), filtered).unwrap();
    let (cells, _, fetched) = fetch(&mut scanner, usize::MAX);
    assert_eq!((cells.len(), fetched.unwrap()), (2 * COLUMNS, Fetched::End));
    assert!(scanner.is_ended_by_filter());

    let mut scanner = engine.scan(&name("t"), Scan::default()).unwrap();
    scanner.limit_rows(1);
    let (cells, partial, _) = fetch(&mut scanner, 500);
    assert_eq!(partial, [true], "a piece is not a row");
    assert!(!scanner.is_ended_before_end());
    let (rest, partial, fetched) = fetch(&mut scanner, usize::MAX);
    assert_eq!(
        (cells.len() + rest.len(), &partial[..]),
        (2 * COLUMNS, &[false][..])
    );
    assert_eq!(fetched.unwrap(), Fetched::End);
    assert!(scanner.is_ended_before_end(), "b and c follow");

    let mut scanner = engine.scan(&name("t"), Scan::default()).unwrap();
    scanner.limit_rows(3);
    let (_, _, fetched) = fetch(&mut scanner, usize::MAX);
    assert_eq!(fetched.unwrap(), Fetched::End);
    assert!(!scanner.is_ended_before_end(), "c was the last row");
}

/// A row in front of the range is not a row of the scan.
#[test]
fn an_excluded_start_row_is_not_counted() {
    let (_rig, engine) = engine();
    let behind_a = Scan {
        start_row: b"a".to_vec(),
        include_start: false,
        ..Scan::default()
    };
    let mut scanner = engine.scan(&name("t"), behind_a).unwrap();
    let (_, _, fetched) = fetch(&mut scanner, usize::MAX);
    assert_eq!(fetched.unwrap(), Fetched::End);
    let seen = scanner.take_rows_seen();
    assert_eq!((seen.looked_at, seen.passed_over), (1, 0));
}
