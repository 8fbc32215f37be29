//! Reads and writes of one thread, from memory and from files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use basalt_engine::Error;
use basalt_engine::cell::{CellBatch, LATEST};
use basalt_engine::clock::{Clock, SystemClock};
use basalt_engine::engine::Fetched;
use basalt_engine::op::{
    Check, ColumnAppend, ColumnIncrement, CompareOp, FetchLimits, Get, ReadSpec, RowUpdate, Scan, Write,
};
use basalt_engine::options::Options;
use basalt_engine::schema::{Durability, FamilyDescriptor, TableDescriptor};

use crate::rig::{
    F, Rig, apply, create, descriptor, get, mutation, name, put, put_at, row, rows, scan, shown, value,
};

/// Runs the same test on data in memory, and on data that has been flushed before it is read.
fn in_memory_and_flushed(test: impl Fn(&dyn Fn(&basalt_engine::Engine))) {
    test(&|_| ());
    test(&|engine| engine.flush(&name("t")).unwrap());
}

#[test]
fn cells_are_read_until_they_are_deleted() {
    in_memory_and_flushed(|settle| {
        let engine = Rig::in_memory().open();
        let table = create(&engine);
        assert_eq!(get(&engine, &table, b"a"), None);
        put_at(&engine, &table, b"a", Some(10), b"one");
        put_at(&engine, &table, b"a", Some(20), b"two");
        put_at(&engine, &table, b"b", Some(10), b"other");
        settle(&engine);
        assert_eq!(get(&engine, &table, b"a"), Some(b"two".to_vec()));
        let delete = |write| apply(&engine, &table, &[mutation(b"a", &[write])]).unwrap();
        delete(Write::DeleteVersion {
            family: F,
            qualifier: b"q",
            timestamp: None,
        });
        assert_eq!(get(&engine, &table, b"a"), Some(b"one".to_vec()));
        settle(&engine);
        delete(Write::DeleteRow { timestamp: None });
        settle(&engine);
        assert_eq!(get(&engine, &table, b"a"), None);
        assert_eq!(rows(&engine, &table), [("b".into(), "other".into())]);
    });
}

#[test]
fn several_deletes_without_time_take_several_versions() {
    in_memory_and_flushed(|settle| {
        let engine = Rig::in_memory().open();
        let table = create(&engine);
        for timestamp in [10, 20, 30] {
            put_at(
                &engine,
                &table,
                b"a",
                Some(timestamp),
                timestamp.to_string().as_bytes(),
            );
        }
        settle(&engine);
        let delete = Write::DeleteVersion {
            family: F,
            qualifier: b"q",
            timestamp: Some(LATEST),
        };
        apply(&engine, &table, &[mutation(b"a", &[delete, delete])]).unwrap();
        settle(&engine);
        assert_eq!(get(&engine, &table, b"a"), Some(b"10".to_vec()));
    });
}

/// All writes of a row get one time, so a delete and a put of the same column leave the put masked (as in
/// HBase).
#[test]
fn a_row_mutation_has_one_time() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let delete = Write::DeleteColumn {
        family: F,
        qualifier: b"q",
        timestamp: None,
    };
    apply(
        &engine,
        &table,
        &[mutation(b"a", &[delete, value(b"q", b"v"), value(b"p", b"v")])],
    )
    .unwrap();
    let cells = scan(&engine, &table, Scan::default());
    assert_eq!(cells.len(), 1);
    assert_eq!(
        (cells[0].column.as_str(), cells[0].timestamp),
        ("f:p", 1_700_000_000_000)
    );
}

/// Equal keys in one mutation, and in several mutations of one batch: the last one given wins.
#[test]
fn the_last_of_equal_puts_wins() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let twice = [value(b"q", b"first"), value(b"q", b"second")];
    apply(&engine, &table, &[mutation(b"a", &twice)]).unwrap();
    assert_eq!(get(&engine, &table, b"a"), Some(b"second".to_vec()));
    let batch = [
        mutation(b"a", &[value(b"q", b"third")]),
        mutation(b"b", &[value(b"q", b"b")]),
        mutation(b"a", &[value(b"q", b"fourth")]),
    ];
    apply(&engine, &table, &batch).unwrap();
    assert_eq!(get(&engine, &table, b"a"), Some(b"fourth".to_vec()));
    engine.flush(&table).unwrap();
    assert_eq!(get(&engine, &table, b"a"), Some(b"fourth".to_vec()));
}

#[test]
fn a_bad_mutation_keeps_the_whole_batch_out() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let stranger = Write::Put {
        family: b"x",
        qualifier: b"q",
        timestamp: None,
        value: b"v",
        ttl_ms: None,
    };
    let batch = [mutation(b"a", &[value(b"q", b"v")]), mutation(b"b", &[stranger])];
    let error = apply(&engine, &table, &batch).unwrap_err();
    assert!(matches!(error, Error::NoSuchFamily { .. }), "{error}");
    assert_eq!(rows(&engine, &table), []);
    assert!(matches!(
        apply(&engine, &name("u"), &batch),
        Err(Error::NoSuchTable(_))
    ));
    assert!(apply(&engine, &table, &[]).is_err());
}

#[test]
fn scans_go_both_ways_and_stop_where_told() {
    in_memory_and_flushed(|settle| {
        let engine = Rig::in_memory().open();
        let splits = vec![row(3), row(6)];
        engine.create_table(descriptor("t", &["f"]), splits).unwrap();
        let table = name("t");
        for number in 0..9 {
            put(&engine, &table, &row(number), b"v");
        }
        settle(&engine);
        let found = |start: usize, include_start, stop: usize, include_stop, reversed| -> Vec<usize> {
            let request = Scan {
                start_row: row(start),
                include_start,
                stop_row: row(stop),
                include_stop,
                reversed,
                ..Scan::default()
            };
            let cells = scan(&engine, &table, request);
            cells.iter().map(|cell| cell.row[1..].parse().unwrap()).collect()
        };
        assert_eq!(found(2, true, 6, false, false), [2, 3, 4, 5]);
        assert_eq!(found(2, false, 6, true, false), [3, 4, 5, 6]);
        assert_eq!(found(6, true, 2, false, true), [6, 5, 4, 3]);
        assert_eq!(found(6, false, 2, true, true), [5, 4, 3, 2]);
        assert_eq!(found(4, true, 4, true, false), [4]);
        assert_eq!(found(6, true, 2, true, false), [] as [usize; 0]);
        let whole = |reversed| {
            let request = Scan {
                reversed,
                limit: Some(7),
                ..Scan::default()
            };
            scan(&engine, &table, request)
                .iter()
                .map(|cell| cell.row[1..].parse().unwrap())
                .collect::<Vec<usize>>()
        };
        assert_eq!(whole(false), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(whole(true), [8, 7, 6, 5, 4, 3, 2]);
    });
}

/// A scan that jumps passes over the rows before its target, in its direction; a jump back does nothing.
#[test]
fn scans_jump_over_rows() {
    in_memory_and_flushed(|settle| {
        let engine = Rig::in_memory().open();
        let table = create(&engine);
        for number in 0..9 {
            put(&engine, &table, &row(number), b"v");
        }
        settle(&engine);
        for (reversed, jumps, expected) in [
            (false, [(0, 5), (5, 2)], [0, 5, 6]),
            (true, [(8, 3), (3, 7)], [8, 3, 2]),
        ] {
            let request = Scan {
                reversed,
                ..Scan::default()
            };
            let mut scanner = engine.scan(&table, request).unwrap();
            let limits = FetchLimits {
                results: 1,
                bytes: usize::MAX,
                time: Duration::MAX,
            };
            for (fetch, number) in expected.into_iter().enumerate() {
                let mut out = CellBatch::new();
                assert_eq!(scanner.fetch(&limits, &mut out).unwrap(), Fetched::More);
                assert_eq!(shown(&out)[0].row.as_bytes(), row(number), "reversed: {reversed}");
                if let Some((from, to)) = jumps.get(fetch) {
                    assert_eq!(*from, number);
                    scanner.jump_to(&row(*to));
                }
            }
        }
    });
}

/// A batch limit cuts rows into pieces, all of whose cells arrive, in order and over families.
#[test]
fn a_batch_limit_cuts_rows_into_pieces() {
    let engine = Rig::in_memory().open();
    engine
        .create_table(descriptor("t", &["f", "g"]), Vec::new())
        .unwrap();
    let table = name("t");
    let cells: Vec<(&[u8], Vec<u8>)> = [F, b"g"]
        .into_iter()
        .flat_map(|family| (0..3_u8).map(move |number| (family, vec![b'0' + number])))
        .collect();
    let writes: Vec<Write<'_>> = cells
        .iter()
        .map(|(family, qualifier)| Write::Put {
            family,
            qualifier,
            timestamp: None,
            value: b"v",
            ttl_ms: None,
        })
        .collect();
    for key in [&b"a"[..], b"b"] {
        apply(&engine, &table, &[mutation(key, &writes)]).unwrap();
    }
    let mut scanner = engine
        .scan(
            &table,
            Scan {
                batch: Some(4),
                ..Scan::default()
            },
        )
        .unwrap();
    let mut out = CellBatch::new();
    let limits = basalt_engine::op::FetchLimits {
        results: 100,
        bytes: 1 << 20,
        time: std::time::Duration::from_secs(10),
    };
    scanner.fetch(&limits, &mut out).unwrap();
    let pieces: Vec<_> = out
        .rows()
        .map(|row| (row.key().to_vec(), row.len(), row.partial))
        .collect();
    let expected = [("a", 4, true), ("a", 2, false), ("b", 4, true), ("b", 2, false)];
    assert_eq!(
        pieces,
        expected.map(|(row, len, partial)| (row.as_bytes().to_vec(), len, partial))
    );
}

#[test]
fn a_row_larger_than_the_limit_is_refused_by_name() {
    let mut rig = Rig::in_memory();
    rig.options = Options {
        row_max_bytes: 1_000,
        ..rig.options
    };
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"large", &[7; 600]);
    apply(&engine, &table, &[mutation(b"large", &[value(b"p", &[7; 600])])]).unwrap();
    let read = Get {
        row: b"large",
        spec: ReadSpec::default(),
    };
    let mut out = CellBatch::new();
    let error = engine.get(&table, &read, &mut out).unwrap_err();
    assert!(
        matches!(&error, Error::RowTooBig(text) if text.contains("large")),
        "{error}"
    );
    assert_eq!(out.cell_count(), 0, "nothing of the row is left in the result");
}

#[test]
fn updates_of_a_table_return_the_new_value() {
    let engine = Rig::in_memory().open();
    create(&engine);
    let table = engine.table("t").unwrap();
    assert_eq!(table.append(b"r", F, b"text", b"ab").unwrap(), b"ab");
    assert_eq!(table.append(b"r", F, b"text", b"c").unwrap(), b"abc");
    assert_eq!(table.increment(b"r", F, b"count", 2).unwrap(), 2);
    assert_eq!(table.increment(b"r", F, b"count", 3).unwrap(), 5);
}

#[test]
fn increments_and_appends_return_what_they_wrote() {
    in_memory_and_flushed(|settle| {
        let engine = Rig::in_memory().open();
        let table = create(&engine);
        let increment = |qualifier, amount| ColumnIncrement {
            family: F,
            qualifier,
            amount,
            timestamp: None,
        };
        let mut out = CellBatch::new();
        let mut update = |update: RowUpdate<'_>| {
            settle(&engine);
            out.clear();
            let commit = engine.update(&table, b"a", &update, None, Durability::UseDefault, &mut out)?;
            commit.wait()?;
            let row = out.row(0);
            Ok::<_, Error>(row.cells().map(|cell| cell.value.to_vec()).collect::<Vec<_>>())
        };
        let counter = |number: i64| number.to_be_bytes().to_vec();
        let both = || RowUpdate::Increment(vec![increment(b"z", 5), increment(b"q", 1)]);
        assert_eq!(update(both()).unwrap(), [counter(1), counter(5)]);
        assert_eq!(update(both()).unwrap(), [counter(2), counter(10)]);
        let append = RowUpdate::Append(vec![ColumnAppend {
            family: F,
            qualifier: b"q",
            value: b"!",
            timestamp: None,
        }]);
        assert_eq!(update(append).unwrap(), [[counter(2), b"!".to_vec()].concat()]);
        let error = update(both()).unwrap_err();
        assert_eq!(error.to_string(), "Field is not a long, it's 9 bytes wide");
        settle(&engine);
        assert_eq!(
            get(&engine, &table, b"a"),
            Some([counter(2), b"!".to_vec()].concat())
        );
    });
}

#[test]
fn a_checked_mutation_is_applied_only_if_the_check_passes() {
    in_memory_and_flushed(|settle| {
        let engine = Rig::in_memory().open();
        let table = create(&engine);
        // From the future, so that the write has to rise above it to be seen.
        put_at(&engine, &table, b"a", Some(1_900_000_000_000), b"old");
        settle(&engine);
        let check = |expected| Check {
            family: F,
            qualifier: b"q",
            op: CompareOp::Equal,
            value: expected,
        };
        let new = mutation(b"a", &[value(b"q", b"new")]);
        assert!(
            engine
                .check_and_mutate(&table, &check(Some(b"wrong")), &new)
                .unwrap()
                .is_none()
        );
        assert!(
            engine
                .check_and_mutate(&table, &check(None), &new)
                .unwrap()
                .is_none()
        );
        assert_eq!(get(&engine, &table, b"a"), Some(b"old".to_vec()));
        let commit = engine
            .check_and_mutate(&table, &check(Some(b"old")), &new)
            .unwrap();
        commit.expect("the check passes").wait().unwrap();
        assert_eq!(get(&engine, &table, b"a"), Some(b"new".to_vec()));
        let stranger = Check {
            family: b"x",
            ..check(None)
        };
        let refused = engine.check_and_mutate(&table, &stranger, &new).unwrap_err();
        assert!(
            matches!(refused, Error::NoSuchFamily { .. }),
            "a missing family is an error, not a failed check"
        );
    });
}

/// Memory limits refuse writes with HBase's text, count the refusals, and are lifted by a flush.
#[test]
fn a_full_memstore_refuses_writes_until_it_is_flushed() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 64 << 10;
    rig.options.memstore_block_multiplier = 2;
    let engine = rig.open();
    let table = create(&engine);
    let refused = (0..10_000).find_map(|number| {
        let key = format!("row{number}");
        apply(
            &engine,
            &table,
            &[mutation(key.as_bytes(), &[value(b"q", &[0; 1_000])])],
        )
        .err()
    });
    let error = refused.expect("some write is refused");
    assert!(
        matches!(&error, Error::RegionTooBusy(text) if text.starts_with("Over memstore limit=131072, regionName="))
    );
    assert_eq!(engine.counters().blocked_writes.get(), 1);
    assert_eq!(engine.region_stats()[0].blocked_writes, 1);
    let before = engine.memstore_bytes();
    assert!(engine.run_pending().unwrap() > 0, "the flush was asked for");
    assert!(engine.memstore_bytes() < before);
    put(&engine, &table, b"later", b"v");
    assert_eq!(get(&engine, &table, b"later"), Some(b"v".to_vec()));
}

/// Forty regions take memory one after the other, up to the limit of all memstores. Near the limit each write
/// asks for a longer pause than the one before; flushes, which are asked for earlier, end that.
#[test]
fn writers_are_slowed_before_they_are_refused() {
    const REGIONS: usize = 40;
    let mut rig = Rig::in_memory();
    // A region takes 64 KiB with its first cell.
    rig.options.memstore_total_bytes = (REGIONS as u64) * (65 << 10);
    let engine = rig.open();
    let splits = (1..REGIONS).map(row).collect();
    engine.create_table(descriptor("t", &["f"]), splits).unwrap();
    let table = name("t");
    let write = |number: usize| {
        let commit = engine
            .mutate(&table, &[mutation(&row(number), &[value(b"q", b"v")])])
            .unwrap();
        let pause = commit.pause();
        commit.wait().unwrap();
        pause
    };
    let pauses: Vec<_> = (0..REGIONS).map(write).collect();
    let calm = pauses.iter().take_while(|pause| pause.is_zero()).count();
    assert!(
        (REGIONS * 85 / 100..REGIONS * 95 / 100).contains(&calm),
        "{calm}: {pauses:?}"
    );
    assert!(pauses[calm..].is_sorted(), "{pauses:?}");
    assert!(pauses[REGIONS - 1] > pauses[calm] && pauses[REGIONS - 1] <= Duration::from_millis(250));
    assert_eq!(
        engine.counters().delayed_writes.get(),
        (REGIONS - calm) as u64,
        "{pauses:?}"
    );
    assert!(
        engine.queues().flushes > 0,
        "memory was short before writes were slowed"
    );
    engine.flush(&table).unwrap();
    assert!(write(0).is_zero());
}

/// Server times never go back: not when the clock does, and not over a restart.
#[test]
fn server_times_survive_a_clock_that_steps_back() {
    for crash in [false, true] {
        let mut rig = Rig::in_memory();
        let clock = std::sync::Arc::new(basalt_engine::clock::ManualClock::at(1_700_000_000_000));
        rig.clock = clock.clone();
        let engine = rig.open();
        let table = create(&engine);
        clock.advance_ms(60_000);
        engine.run_pending().unwrap();
        put(&engine, &table, b"a", b"first");
        engine.run_pending().unwrap();
        if !crash {
            engine.close().unwrap();
        }
        drop(engine);
        clock.set_wall_ms(1_600_000_000_000);
        let engine = rig.open();
        put(&engine, &table, b"a", b"second");
        assert_eq!(
            get(&engine, &table, b"a"),
            Some(b"second".to_vec()),
            "crash: {crash}"
        );
    }
}

/// The clock is an hour fast for a while, and set right. Cells written in between are newer than the time,
/// and those from before are not old: no flush or compaction takes them for expired. When their time has
/// come, they go.
#[test]
fn nothing_expires_early_when_the_clock_steps_back() {
    const BEGIN_MS: u64 = 1_700_000_000_000;
    const HOUR_MS: u64 = 3_600_000;
    let mut rig = Rig::in_memory();
    let clock = std::sync::Arc::new(basalt_engine::clock::ManualClock::at(BEGIN_MS));
    rig.clock = clock.clone();
    let engine = rig.open();
    let mut descriptor = crate::rig::descriptor("t", &["f"]);
    descriptor.families[0] = descriptor.families[0].clone().with("TTL", 600).unwrap();
    engine.create_table(descriptor, Vec::new()).unwrap();
    let table = name("t");
    let rows_left = || rows(&engine, &table).into_iter().map(|(row, _)| row);
    put(&engine, &table, b"before", b"v");
    clock.set_wall_ms(BEGIN_MS + HOUR_MS);
    put(&engine, &table, b"fast", b"v");
    clock.set_wall_ms(BEGIN_MS + 1_000);
    put(&engine, &table, b"right", b"v");
    for _ in 0..2 {
        assert!(rows_left().eq(["before", "fast", "right"]));
        engine.flush(&table).unwrap();
        engine.compact(&table, None, true, true).unwrap();
    }
    assert!(rows_left().eq(["before", "fast", "right"]));
    clock.set_wall_ms(BEGIN_MS + HOUR_MS);
    assert!(rows_left().eq(["fast", "right"]), "server times do not go back");
    clock.advance_ms(HOUR_MS);
    assert_eq!(rows_left().count(), 0);
}

/// A filter that ends a scan in the middle of a row and starts afresh with the next one (HBase's
/// `ColumnCountGetFilter`): each row is returned once at most.
#[test]
fn a_filter_that_ends_the_scan_within_a_row_ends_it() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    for number in 0..3 {
        let columns = [
            value(b"a", b"1"),
            value(b"b", b"2"),
            value(b"c", b"3"),
            value(b"d", b"4"),
        ];
        apply(&engine, &table, &[mutation(&row(number), &columns)]).unwrap();
    }
    let filter = basalt_engine::filter::FilterSpec::parse(b"ColumnCountGetFilter(1)").unwrap();
    for reversed in [false, true] {
        let first = if reversed { row(2) } else { row(0) };
        let found = scan(
            &engine,
            &table,
            Scan {
                spec: ReadSpec {
                    filter: Some(std::sync::Arc::new(filter.clone())),
                    ..ReadSpec::default()
                },
                reversed,
                ..Scan::default()
            },
        );
        let columns: Vec<_> = found
            .iter()
            .map(|cell| (cell.row.as_bytes(), &*cell.column))
            .collect();
        assert_eq!(columns, [(&*first, "f:a")]);
    }
}

/// A row that a filter leaves out by its key still ends the scan, if a WHILE in the list misses one of its
/// cells, as in HBase.
#[test]
fn cells_of_left_out_rows_may_end_the_scan() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    for (number, text) in [(0, b"v"), (1, b"w"), (2, b"v")] {
        put(&engine, &table, &row(number), text);
    }
    let (value, key) = ("WHILE ValueFilter(=,'binary:v')", "RowFilter(!=,'substring:1')");
    for (filter, rows) in [
        (format!("{value} AND {key}"), vec![row(0)]),
        // Here the cell is not shown to the second.
        (format!("{key} AND {value}"), vec![row(0), row(2)]),
    ] {
        let parsed = basalt_engine::filter::FilterSpec::parse(filter.as_bytes()).unwrap();
        let found = scan(
            &engine,
            &table,
            Scan {
                spec: ReadSpec {
                    filter: Some(Arc::new(parsed)),
                    ..ReadSpec::default()
                },
                ..Scan::default()
            },
        );
        let found: Vec<_> = found.iter().map(|cell| cell.row.as_bytes().to_vec()).collect();
        assert_eq!(found, rows, "{filter}");
    }
}

/// Goal: a fetch that passes over deleted rows ends at its time limit, and the next one continues
/// there, in both directions. Method: a fetch with a time limit of zero ends after one row, so
/// about as many fetches as rows pass over all of them, with a flush in between.
#[test]
fn a_fetch_over_deleted_rows_ends_in_time_and_the_next_one_goes_on() {
    let rows = 300;
    for reversed in [false, true] {
        let mut rig = Rig::in_memory();
        rig.clock = Arc::new(SystemClock::new());
        let engine = rig.open();
        let table = create(&engine);
        (0..rows).for_each(|number| put(&engine, &table, &row(number), b"v"));
        put(&engine, &table, b"a", b"first");
        engine.flush(&table).unwrap();
        for number in 0..rows {
            let delete = Write::DeleteRow { timestamp: None };
            apply(&engine, &table, &[mutation(&row(number), &[delete])]).unwrap();
        }
        put(&engine, &table, b"z", b"last");
        let scan = Scan {
            reversed,
            limit: Some(2),
            ..Scan::default()
        };
        let no_time = FetchLimits {
            results: 100,
            bytes: 1 << 20,
            time: Duration::ZERO,
        };
        let mut scanner = engine.scan(&table, scan).unwrap();
        let (mut out, mut fetches) = (CellBatch::new(), 0);
        while scanner.fetch(&no_time, &mut out).unwrap() == Fetched::More {
            fetches += 1;
            assert!(fetches <= rows + 3, "a fetch begins with a row that was passed");
            if fetches == rows / 2 {
                engine.flush(&table).unwrap();
            }
        }
        assert!(fetches >= rows, "{fetches} fetches: one looked at many rows");
        let mut values: Vec<_> = shown(&out).into_iter().map(|cell| cell.value).collect();
        if reversed {
            values.reverse();
        }
        assert_eq!(values, ["first", "last"]);
    }
}

/// A clock whose monotonic time is the number of looks at it, in milliseconds.
#[derive(Debug, Default)]
struct LookedAtClock(AtomicU64);

impl Clock for LookedAtClock {
    fn wall_ms(&self) -> u64 {
        1_700_000_000_000
    }

    fn mono(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// Goal: a fetch looks at its time limit again and again, whether it reads rows from memory, cell by cell, or
/// copies runs of them from blocks, in both directions. Method: a clock that moves with each look, and a
/// limit of ten looks.
#[test]
fn a_fetch_looks_at_its_time_limit_all_the_time() {
    for reversed in [false, true] {
        in_memory_and_flushed(|settle| {
            let mut rig = Rig::in_memory();
            rig.clock = Arc::new(LookedAtClock::default());
            let engine = rig.open();
            let family = FamilyDescriptor::new(F).with("BLOCKSIZE", 1_024).unwrap();
            let table = name("t");
            let descriptor = TableDescriptor::new(table.clone(), vec![family]);
            engine.create_table(descriptor, Vec::new()).unwrap();
            (0..2_000).for_each(|number| put(&engine, &table, &row(number), b"v"));
            settle(&engine);
            let scan = Scan {
                reversed,
                ..Scan::default()
            };
            let ten_looks = FetchLimits {
                results: usize::MAX,
                bytes: usize::MAX,
                time: Duration::from_millis(10),
            };
            let mut out = CellBatch::new();
            let mut scanner = engine.scan(&table, scan).unwrap();
            assert_eq!(scanner.fetch(&ten_looks, &mut out).unwrap(), Fetched::More);
            assert!((16..800).contains(&out.row_count()), "{} rows", out.row_count());
        });
    }
}

/// Each cell repeats its row's key, so a small request can stand for a very large edit. It is refused as a
/// whole, before any region's share of the batch is written.
#[test]
fn a_batch_too_long_for_the_log_is_refused_as_a_whole() {
    let engine = Rig::in_memory().open();
    engine
        .create_table(descriptor("t", &["f"]), vec![b"m".to_vec()])
        .unwrap();
    let table = name("t");
    let long = vec![b'x'; 32_767];
    let qualifiers: Vec<[u8; 2]> = (0..8_200_u16).map(u16::to_be_bytes).collect();
    let columns: Vec<Write<'_>> = qualifiers.iter().map(|qualifier| value(qualifier, b"")).collect();
    let batch = [mutation(b"a", &[value(b"q", b"v")]), mutation(&long, &columns)];
    let refused = apply(&engine, &table, &batch).unwrap_err();
    assert!(
        matches!(&refused, Error::InvalidArgument(text) if text.contains("268433")),
        "{refused}"
    );
    // Publishes whatever was written before it.
    put(&engine, &table, b"b", b"v");
    assert_eq!(get(&engine, &table, b"a"), None);
}
