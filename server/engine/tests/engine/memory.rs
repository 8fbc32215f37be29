//! Open scans and memory: what a scan pins, when it releases it, and that its view never changes.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::clock::{Clock, ManualClock};
use basalt_engine::engine::{Fetched, Scanner};
use basalt_engine::filter::FilterSpec;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::op::{Columns, FamilySelection, FetchLimits, ReadSpec, Scan};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};

use crate::rig::{F, Rig, Shown, apply, create, descriptor, mutation, name, put, row, scan, shown, value};

/// One fetch of up to `results` results.
fn fetch(scanner: &mut Scanner, results: usize) -> (Vec<Shown>, Fetched) {
    let limits = FetchLimits {
        results,
        bytes: usize::MAX,
        time: Duration::from_mins(1),
    };
    let mut out = CellBatch::new();
    let fetched = scanner.fetch(&limits, &mut out).unwrap();
    (shown(&out), fetched)
}

/// The rest of a scan.
fn rest(scanner: &mut Scanner) -> Vec<Shown> {
    let mut all = Vec::new();
    loop {
        let (cells, fetched) = fetch(scanner, 7);
        all.extend(cells);
        if fetched == Fetched::End {
            return all;
        }
    }
}

fn reversed() -> Scan {
    Scan {
        reversed: true,
        ..Scan::default()
    }
}

/// Table `t` with three regions and sixty rows in memory; one version of a column is kept.
fn filled() -> (Arc<Engine>, TableName) {
    let engine = Rig::in_memory().open();
    let family = FamilyDescriptor::new(F).with("VERSIONS", 1).unwrap();
    let table = TableDescriptor::new(name("t"), vec![family]);
    engine.create_table(table, vec![row(20), row(40)]).unwrap();
    write_all(&engine, &name("t"), b"before");
    (engine, name("t"))
}

fn write_all(engine: &Engine, table: &TableName, text: &[u8]) {
    for number in 0..60 {
        put(engine, table, &row(number), text);
    }
}

/// Scans in three states (not begun, in the first region, in the second), both ways. After a flush
/// they alone pin the old memstores; one fetch later they pin nothing, and in the end they have
/// returned the rows that were there when they were opened.
#[test]
fn a_flushed_memstore_is_released_by_the_next_fetch() {
    for begun in [0, 5, 25] {
        for request in [Scan::default(), reversed()] {
            let (engine, table) = filled();
            let expected = scan(&engine, &table, request.clone());
            let mut scanner = engine.scan(&table, request).unwrap();
            let mut seen = if begun > 0 {
                fetch(&mut scanner, begun).0
            } else {
                Vec::new()
            };
            assert_eq!(engine.pinned_memstore_bytes(), 0, "the regions have them, too");
            for round in 0..3 {
                write_all(&engine, &table, format!("after {round}").as_bytes());
                engine.flush(&table).unwrap();
                assert!(engine.pinned_memstore_bytes() > 0);
                seen.extend(fetch(&mut scanner, 2).0);
                assert_eq!(engine.pinned_memstore_bytes(), 0, "round {round}");
                engine.compact(&table, None, true, true).unwrap();
            }
            seen.extend(rest(&mut scanner));
            assert_eq!(seen, expected, "begun {begun}");
        }
    }
}

/// A scan that is idle between fetches can release memory without a fetch, and without reading the
/// disk.
#[test]
fn an_idle_scan_lets_go_when_it_is_told() {
    let (engine, table) = filled();
    let expected = scan(&engine, &table, Scan::default());
    let mut scanner = engine.scan(&table, Scan::default()).unwrap();
    let mut seen = fetch(&mut scanner, 30).0;
    write_all(&engine, &table, b"after");
    engine.flush(&table).unwrap();
    assert!(engine.pinned_memstore_bytes() > 0);
    scanner.release();
    assert_eq!(engine.pinned_memstore_bytes(), 0);
    engine.compact(&table, None, true, true).unwrap();
    scanner.release();
    scanner.release();
    seen.extend(rest(&mut scanner));
    assert_eq!(seen, expected);
}

/// In the middle of a row a scan keeps its memory until the row's end.
#[test]
fn a_wide_row_is_read_to_its_end_first() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    for number in 0..3 {
        let names: Vec<_> = (0..10).map(|column| format!("c{column}")).collect();
        let writes: Vec<_> = names
            .iter()
            .map(|column| value(column.as_bytes(), b"v"))
            .collect();
        apply(&engine, &table, &[mutation(&row(number), &writes)]).unwrap();
    }
    let pieces = Scan {
        batch: Some(2),
        ..Scan::default()
    };
    let mut scanner = engine.scan(&table, pieces.clone()).unwrap();
    let mut seen = fetch(&mut scanner, 2).0;
    engine.flush(&table).unwrap();
    seen.extend(fetch(&mut scanner, 1).0);
    assert!(
        engine.pinned_memstore_bytes() > 0,
        "six of ten cells have been read"
    );
    seen.extend(fetch(&mut scanner, 3).0);
    assert_eq!(engine.pinned_memstore_bytes(), 0, "the first row has ended");
    seen.extend(rest(&mut scanner));
    assert_eq!(seen, scan(&engine, &table, pieces));
}

/// Filters keep what they have counted, hints go on leading, families keep their order: with a
/// flush and a compaction before every fetch a scan returns the same results as without.
#[test]
fn a_scan_that_is_moved_all_the_time_returns_the_same() {
    let columns = |names: &[&str]| FamilySelection {
        family: b"g".to_vec(),
        columns: Columns::Only(names.iter().map(|name| name.as_bytes().to_vec()).collect()),
    };
    let filtered = |filter: &str| ReadSpec {
        filter: Some(Arc::new(FilterSpec::parse(filter.as_bytes()).unwrap())),
        max_versions: 3,
        ..ReadSpec::default()
    };
    let mut requests: Vec<Scan> = [
        "PageFilter(17)",
        "PrefixFilter('r01')",
        "ColumnPaginationFilter(2,1)",
        "ColumnPrefixFilter('c3')",
        "FirstKeyOnlyFilter() AND KeyOnlyFilter()",
        "SingleColumnValueFilter('f','c1',=,'substring:7')",
        "SKIP ValueFilter(!=,'substring:13')",
        "WHILE RowFilter(!=,'binary:r023')",
        "TimestampsFilter(1700000000000)",
    ]
    .into_iter()
    .map(|filter| Scan {
        spec: filtered(filter),
        ..Scan::default()
    })
    .collect();
    requests.push(Scan {
        spec: ReadSpec {
            families: vec![columns(&["c1", "c3"])],
            ..ReadSpec::default()
        },
        limit: Some(23),
        start_row: row(3),
        ..Scan::default()
    });
    requests.push(Scan {
        batch: Some(3),
        stop_row: row(25),
        include_stop: true,
        include_start: false,
        start_row: row(2),
        ..Scan::default()
    });
    let mut compared = 0;
    for request in requests {
        for reversed in [false, true] {
            let mut request = request.clone();
            request.reversed = reversed;
            if reversed {
                std::mem::swap(&mut request.start_row, &mut request.stop_row);
            }
            let mut rig = Rig::in_memory();
            rig.options.compaction_min_files = 2;
            let engine = rig.open();
            engine
                .create_table(descriptor("t", &["f", "g"]), vec![row(12)])
                .unwrap();
            let table = name("t");
            write_wide(&engine, &table, "old");
            engine.flush(&table).unwrap();
            write_wide(&engine, &table, "new");
            let expected = scan(&engine, &table, request.clone());
            compared += expected.len();
            let mut scanner = engine.scan(&table, request.clone()).unwrap();
            let mut seen = Vec::new();
            for round in 0.. {
                let (cells, fetched) = fetch(&mut scanner, 1 + round % 3);
                seen.extend(cells);
                if fetched == Fetched::End {
                    break;
                }
                write_wide(&engine, &table, "later");
                engine.flush(&table).unwrap();
                if round % 2 == 1 {
                    engine.compact(&table, None, round % 4 == 1, true).unwrap();
                }
            }
            assert_eq!(seen, expected, "{request:?}");
        }
    }
    assert!(compared > 500, "{compared} cells were compared");
}

/// Thirty rows of four columns in each of two families.
fn write_wide(engine: &Engine, table: &TableName, text: &str) {
    for number in 0..30 {
        let texts: Vec<_> = (0..4)
            .map(|column| (format!("c{column}"), format!("{text}{number}")))
            .collect();
        let writes = texts.iter().flat_map(|(column, text)| {
            [F, b"g"].map(|family| basalt_engine::op::Write::Put {
                family,
                qualifier: column.as_bytes(),
                timestamp: None,
                value: text.as_bytes(),
                ttl_ms: None,
            })
        });
        let writes: Vec<_> = writes.collect();
        apply(engine, table, &[mutation(&row(number), &writes)]).unwrap();
    }
}

/// A scan goes over a table that is written anew many times over, far more than all memstores may
/// hold. Its pinned memory never grows, and the old versions that it keeps alive go with it.
#[test]
fn a_long_scan_takes_no_more_memory_than_the_limit() {
    const LIMIT: u64 = 4 << 20;
    let mut rig = Rig::in_memory();
    rig.options.memstore_total_bytes = LIMIT;
    rig.options.memstore_flush_bytes = 1 << 20;
    let engine = rig.open();
    let family = FamilyDescriptor::new(F).with("VERSIONS", 1).unwrap();
    engine
        .create_table(TableDescriptor::new(name("t"), vec![family]), Vec::new())
        .unwrap();
    let table = name("t");
    let write = |text: u8| {
        for number in 0..100 {
            put(&engine, &table, &row(number), &[text; 10_000]);
        }
        engine.run_pending().unwrap();
    };
    write(b'a');
    let expected = scan(&engine, &table, Scan::default());
    let mut scanner = engine.scan(&table, Scan::default()).unwrap();
    let mut seen = Vec::new();
    for round in 0..30 {
        write(b'b' + round % 20);
        let pinned = engine.pinned_memstore_bytes();
        assert!(pinned <= LIMIT, "{pinned} bytes are pinned before fetch {round}");
        seen.extend(fetch(&mut scanner, 3).0);
        assert_eq!(engine.pinned_memstore_bytes(), 0, "after fetch {round}");
    }
    assert!(engine.counters().flushes.get() > 10);
    seen.extend(rest(&mut scanner));
    assert_eq!(seen, expected);
    let bytes = || {
        engine.flush(&table).unwrap();
        engine.compact(&table, None, true, true).unwrap();
        engine.region_stats()[0].store_file_bytes
    };
    let held = bytes();
    drop(scanner);
    write(b'z');
    assert!(bytes() < held * 2 / 3, "old versions went with the scan");
}

/// Files that were compacted away are removed when the scan has moved on, not when it ends.
#[test]
fn compacted_files_are_released_too() {
    let disk = SimFs::new(5, SimOptions::default());
    let engine = Rig::simulated(&disk).open();
    let table = create(&engine);
    for number in 0..40 {
        put(&engine, &table, &row(number), b"v");
        if number % 10 == 9 {
            engine.flush(&table).unwrap();
        }
    }
    let files = || {
        let files = disk.files();
        files
            .iter()
            .filter(|path| path.starts_with("/data/tables"))
            .count()
    };
    let mut scanner = engine.scan(&table, Scan::default()).unwrap();
    fetch(&mut scanner, 5);
    engine.compact(&table, None, true, true).unwrap();
    assert_eq!(files(), 5, "four that are read and the one that is left");
    fetch(&mut scanner, 1);
    assert_eq!(files(), 1);
    assert_eq!(rest(&mut scanner).len(), 34);
}

/// After a change of the table's descriptor a scan keeps its original version: the table may keep
/// less than the scan shows.
#[test]
fn a_scan_over_an_altered_table_keeps_what_it_has() {
    let (engine, table) = filled();
    let expected = scan(&engine, &table, Scan::default());
    let mut scanner = engine.scan(&table, Scan::default()).unwrap();
    let mut seen = fetch(&mut scanner, 3).0;
    engine.add_family(&table, FamilyDescriptor::new(b"g")).unwrap();
    write_all(&engine, &table, b"after");
    engine.drop_family(&table, F).unwrap();
    engine.flush(&table).unwrap();
    seen.extend(fetch(&mut scanner, 3).0);
    assert!(engine.pinned_memstore_bytes() > 0);
    seen.extend(rest(&mut scanner));
    assert_eq!(seen, expected);
    assert_eq!(
        engine.pinned_memstore_bytes(),
        0,
        "a scan that has ended holds nothing"
    );
}

/// Memory freed by a flush is kept for the next memstore: a quarter of the limit at most, nothing
/// while memory is short, and memory unused for a minute is freed.
#[test]
fn memory_of_flushed_memstores_is_kept_for_the_next() {
    const LIMIT: u64 = 64 << 20;
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let mut rig = Rig::in_memory();
    rig.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    rig.options.memstore_total_bytes = LIMIT;
    rig.options.memstore_flush_bytes = 2 * LIMIT;
    let engine = rig.open();
    let table = create(&engine);
    let fill = |megabytes: u64| {
        while engine.memstore_bytes() < megabytes << 20 {
            put(&engine, &table, b"r", &[b'v'; 10_000]);
        }
    };
    let minute = || {
        clock.advance_ms(60_001);
        engine.run_pending().unwrap();
        engine.kept_memstore_bytes()
    };
    fill(40);
    assert_eq!(engine.kept_memstore_bytes(), 0);
    engine.flush(&table).unwrap();
    assert_eq!(engine.kept_memstore_bytes(), LIMIT / 4);
    // Chunks of 64 KiB to 1 MiB come first.
    fill(8);
    assert_eq!(engine.kept_memstore_bytes(), LIMIT / 4 - (8 << 20));
    assert_eq!(minute(), LIMIT / 4 - (8 << 20), "a minute ago others were there");
    assert_eq!(minute(), 0);

    engine.flush(&table).unwrap();
    let kept = engine.kept_memstore_bytes();
    assert!(kept > 0);
    let other = name("other");
    engine
        .create_table(descriptor("other", &["f"]), Vec::new())
        .unwrap();
    let large = vec![b'v'; 700_000];
    while engine.memstore_bytes() < LIMIT - LIMIT / 5 {
        put(&engine, &other, b"r", &large);
    }
    assert_eq!(
        engine.kept_memstore_bytes(),
        kept,
        "those were chunks of their own"
    );
    engine.run_pending().unwrap();
    assert_eq!(engine.kept_memstore_bytes(), 0);
}
