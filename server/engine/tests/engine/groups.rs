//! Atomic groups and nonces.

use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use basalt_engine::clock::ManualClock;
use basalt_engine::engine::GroupOutcome;
use basalt_engine::filter::FilterSpec;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::id::Nonce;
use basalt_engine::op::{
    AtomicGroup, ColumnIncrement, CompareOp, Expected, GroupStep, GroupUpdate, GroupWrite, Judged, ReadSpec,
    ReadTier, RowCondition, RowUpdate, Test, TimeRange, Write,
};
use basalt_engine::schema::{Durability, TableName};
use basalt_engine::{Engine, Error, Result};

use super::rig::*;

fn add(qualifier: &[u8], amount: i64) -> RowUpdate<'_> {
    RowUpdate::Increment(vec![ColumnIncrement {
        family: F,
        qualifier,
        amount,
        timestamp: None,
    }])
}

fn update<'a>(row: &'a [u8], change: &'a RowUpdate<'a>) -> GroupStep<'a> {
    GroupStep::Update(GroupUpdate::new(row, change, None, Durability::UseDefault))
}

fn write<'a>(row: &'a [u8], writes: &'a [Write<'a>]) -> GroupStep<'a> {
    GroupStep::Write(GroupWrite {
        row,
        writes,
        durability: Durability::UseDefault,
    })
}

#[expect(clippy::unnecessary_wraps, reason = "groups take an optional nonce")]
fn nonce(number: u64) -> Option<Nonce> {
    Some(Nonce { group: 1, number })
}

/// Applies a group and waits for it. Returns whether it was processed, whether it wrote, and the
/// counters that it returned.
fn run(engine: &Engine, table: &TableName, group: &AtomicGroup<'_>) -> Result<(bool, bool, Vec<i64>)> {
    let mut out = CellBatch::new();
    let GroupOutcome { processed, commit } = engine.apply_group(table, group, ReadTier::All, &mut out)?;
    let wrote = commit.is_some();
    commit.map_or(Ok(()), basalt_engine::Commit::wait)?;
    let counters = (0..out.cell_count()).map(|index| {
        let value = out.cell(index).value;
        i64::from_be_bytes(value.try_into().expect("a counter"))
    });
    Ok((processed, wrote, counters.collect()))
}

fn steps<'a>(steps: &'a [GroupStep<'a>]) -> AtomicGroup<'a> {
    AtomicGroup {
        steps,
        ..AtomicGroup::default()
    }
}

fn counter(engine: &Engine, table: &TableName, row: &[u8]) -> Option<i64> {
    get(engine, table, row).map(|value| i64::from_be_bytes(value.try_into().expect("a counter")))
}

#[test]
fn rows_of_a_group_change_together_or_not_at_all() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    put(&engine, &table, b"text", b"no counter");
    let (one, two) = (add(b"q", 1), add(b"q", 2));
    let writes = [value(b"q", b"v")];
    let all = [
        update(b"c", &one),
        write(b"b", &writes),
        update(b"a", &two),
        update(b"c", &two),
    ];
    let done = run(&engine, &table, &steps(&all)).unwrap();
    // In the order of the steps; the second update of "c" sees the row as it was before the group.
    assert_eq!(done, (true, true, vec![1, 2, 2]));
    assert_eq!(counter(&engine, &table, b"c"), Some(2), "the later step stays");
    assert_eq!(get(&engine, &table, b"b"), Some(b"v".to_vec()));

    let other = [value(b"q", b"w")];
    let refused = [write(b"b", &other), update(b"text", &one)];
    let error = run(&engine, &table, &steps(&refused)).unwrap_err();
    assert!(matches!(error, Error::DoNotRetry(_)), "{error}");
    assert_eq!(get(&engine, &table, b"b"), Some(b"v".to_vec()));
    assert!(run(&engine, &table, &steps(&[])).is_err(), "a group of nothing");
}

/// If a group has a put and an increment of one column, the later one stays, as in HBase.
#[test]
fn the_later_of_two_writes_to_a_column_stays() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let (five, seven) = (add(b"q", 5), 7_i64.to_be_bytes());
    let writes = [value(b"q", &seven)];
    run(
        &engine,
        &table,
        &steps(&[update(b"a", &five), write(b"a", &writes)]),
    )
    .unwrap();
    assert_eq!(counter(&engine, &table, b"a"), Some(7));
    let done = run(
        &engine,
        &table,
        &steps(&[write(b"b", &writes), update(b"b", &five)]),
    )
    .unwrap();
    assert_eq!((done.2, counter(&engine, &table, b"b")), (vec![5], Some(5)));
}

#[test]
fn rows_of_two_regions_are_no_group() {
    let engine = Rig::in_memory().open();
    let table = name("split");
    engine
        .create_table(descriptor("split", &["f"]), vec![b"m".to_vec()])
        .unwrap();
    let writes = [value(b"q", b"v")];
    let error = run(
        &engine,
        &table,
        &steps(&[write(b"a", &writes), write(b"z", &writes)]),
    )
    .unwrap_err();
    assert!(matches!(error, Error::NotServingRegion(_)), "{error}");
    assert_eq!(get(&engine, &table, b"a"), None);
}

/// A group is refused whole once a split has separated its rows: it would be two edits.
#[test]
fn a_split_ends_groups_of_both_halves() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let (old, new) = ([value(b"q", b"1")], [value(b"q", b"2")]);
    let apply = |writes: &[Write<'static>]| {
        let both = [write(b"a", writes), write(b"z", writes)];
        run(&engine, &table, &steps(&both))
    };
    assert!(apply(&old).unwrap().0);
    let region = engine.regions(&table).unwrap()[0].id;
    engine.split_region(region, Some(b"m")).unwrap();
    let error = apply(&new).unwrap_err();
    assert!(matches!(error, Error::NotServingRegion(_)), "{error}");
    for row in [b"a", b"z"] {
        assert_eq!(get(&engine, &table, row), Some(b"1".to_vec()));
    }
}

#[test]
fn all_conditions_of_a_group_must_hold() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"1");
    put(&engine, &table, b"b", b"2");
    let filter = Arc::new(FilterSpec::parse(b"ValueFilter(=, 'binary:2')").unwrap());
    let writes = [value(b"q", b"new")];
    let processed = |expected: &[u8], filtered: &[u8]| {
        let column = RowCondition {
            row: b"a",
            test: Test::Column {
                family: F,
                qualifier: b"q",
                op: CompareOp::Equal,
                expected: Expected::Bytes(expected),
            },
            time_range: TimeRange::ALL,
        };
        let by_filter = RowCondition {
            row: filtered,
            test: Test::Filter(&filter),
            time_range: TimeRange::ALL,
        };
        let group = AtomicGroup {
            conditions: &[column, by_filter],
            steps: &[write(b"c", &writes)],
            nonce: None,
            origin: &[],
        };
        // A network thread runs no filters.
        let mut out = CellBatch::new();
        let at_once = engine.apply_group(&table, &group, ReadTier::Memory, &mut out);
        assert!(expected != b"1" || matches!(at_once, Err(Error::NotInMemory)));
        run(&engine, &table, &group).unwrap().0
    };
    assert!(!processed(b"wrong", b"b"));
    assert!(!processed(b"1", b"a"));
    assert!(!processed(b"1", b"missing"));
    assert_eq!(get(&engine, &table, b"c"), None);
    assert!(processed(b"1", b"b"));
    assert_eq!(get(&engine, &table, b"c"), Some(b"new".to_vec()));
}

/// A judgement on a row holds while the row has the cells that were judged, and no longer.
#[test]
fn a_judged_row_must_not_have_changed() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"1");
    let spec = ReadSpec {
        max_versions: i32::MAX,
        ..ReadSpec::default()
    };
    let seen = |row: &[u8]| {
        let mut cells = CellBatch::new();
        engine
            .get_within(&table, row, &spec, ReadTier::All, &mut cells)
            .unwrap();
        cells
    };
    let writes = [value(b"q", b"new")];
    let processed = |row: &'static [u8], judged: Judged<'_>| {
        let condition = RowCondition {
            row,
            test: Test::Judged(judged),
            time_range: TimeRange::ALL,
        };
        let group = AtomicGroup {
            conditions: &[condition],
            steps: &[write(row, &writes)],
            nonce: None,
            origin: &[],
        };
        run(&engine, &table, &group).unwrap().0
    };
    let passed = |cells| Judged::Passed {
        spec: &spec,
        cells,
        timestamp: 0,
    };
    assert!(!processed(b"a", Judged::Refused));
    assert_eq!(get(&engine, &table, b"a"), Some(b"1".to_vec()));

    let (first, missing) = (seen(b"a"), seen(b"b"));
    assert!(processed(b"a", passed(&first)));
    assert_eq!(get(&engine, &table, b"a"), Some(b"new".to_vec()));
    assert!(!processed(b"a", passed(&first)), "there is another version");
    assert!(!processed(b"a", passed(&missing)), "it is there");
    assert!(processed(b"b", passed(&missing)));
    assert!(!processed(b"b", passed(&missing)));
    put(&engine, &table, b"c", b"1");
    assert!(!processed(b"c", passed(&first)), "cells of another row");
}

/// A simulated machine with small log segments.
fn machine() -> (SimFs, Rig) {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = Rig::simulated(&disk);
    rig.options.wal_segment_bytes = 16 << 10;
    (disk, rig)
}

pub(crate) fn add_once(engine: &Engine, table: &TableName, row: &[u8], number: u64) -> (bool, i64) {
    let one = add(b"q", 1);
    let step = update(row, &one);
    let group = AtomicGroup {
        nonce: nonce(number),
        ..steps(std::slice::from_ref(&step))
    };
    let (_, wrote, counters) = run(engine, table, &group).unwrap();
    (wrote, counters[0])
}

#[test]
fn a_nonce_is_applied_once_also_after_a_crash() {
    let (_disk, rig) = machine();
    let engine = rig.open();
    let table = create(&engine);
    assert_eq!(add_once(&engine, &table, b"a", 1), (true, 1));
    assert_eq!(add_once(&engine, &table, b"a", 1), (false, 1));
    assert_eq!(add_once(&engine, &table, b"a", 2), (true, 2));
    assert_eq!(
        add_once(&engine, &table, b"a", 1),
        (false, 2),
        "the present value"
    );
    drop(engine);
    let engine = rig.open();
    assert_eq!(add_once(&engine, &table, b"a", 2), (false, 2));
    assert_eq!(add_once(&engine, &table, b"a", 3), (true, 3));
}

/// Log segments that have the nonces are removed, once or several times, and the nonces stay.
#[test]
fn nonces_outlive_their_log_segments() {
    let (disk, rig) = machine();
    let mut engine = rig.open();
    let table = create(&engine);
    for number in 1..=50 {
        add_once(&engine, &table, b"a", number);
    }
    let segments = || {
        let files = disk.files().into_iter();
        let is_segment = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "wal");
        files.filter(is_segment).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        let before = segments();
        for _ in 0..40 {
            put(&engine, &table, b"filler", &[b'x'; 1000]);
        }
        engine.flush(&table).unwrap();
        assert!(
            segments().iter().all(|path| !before.contains(path)),
            "all were removed"
        );
        drop(engine);
        engine = rig.open();
    }
    for number in 1..=50 {
        assert_eq!(add_once(&engine, &table, b"a", number), (false, 50));
    }
    assert_eq!(add_once(&engine, &table, b"a", 51), (true, 51));
}

#[test]
fn a_nonce_is_forgotten_after_its_time() {
    let (_disk, mut rig) = machine();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    rig.clock = Arc::clone(&clock) as _;
    let engine = rig.open();
    let table = create(&engine);
    add_once(&engine, &table, b"a", 1);
    clock.advance_ms(10 * 60 * 1000);
    // The log shows that the server has lived for so long.
    add_once(&engine, &table, b"b", 2);
    drop(engine);
    let engine = rig.open();
    clock.advance_ms(10 * 60 * 1000 - 1);
    assert_eq!(add_once(&engine, &table, b"a", 1), (false, 1));
    clock.advance_ms(1);
    assert_eq!(add_once(&engine, &table, b"a", 1), (true, 2));
}

/// A wall clock that is set while the server runs, or while it is down, makes no nonce expire.
#[test]
fn a_clock_that_is_set_makes_no_nonce_expire() {
    let (_disk, mut rig) = machine();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    rig.clock = Arc::clone(&clock) as _;
    let mut engine = rig.open();
    let table = create(&engine);
    add_once(&engine, &table, b"a", 1);
    for (number, wall_ms) in [
        (2, 1_700_001_200_000),
        (3, 1_900_000_000_000),
        (4, 1_000_000_000_000),
        (5, 1_900_000_000_000),
    ] {
        clock.set_wall_ms(wall_ms);
        assert_eq!(add_once(&engine, &table, b"b", number), (true, number as i64 - 1));
        engine.flush(&table).unwrap();
        // A day forward while the server is down.
        clock.set_wall_ms(wall_ms + 24 * 60 * 60 * 1000);
        drop(engine);
        engine = rig.open();
        assert_eq!(add_once(&engine, &table, b"a", 1), (false, 1));
        assert!(!add_once(&engine, &table, b"b", number).0);
    }
}

/// An operation that is not to be logged is logged for its nonce: both are there after a crash, or none.
#[test]
fn an_operation_with_a_nonce_is_always_logged() {
    let (_disk, rig) = machine();
    let engine = rig.open();
    let table = create(&engine);
    let one = add(b"q", 1);
    let step = GroupStep::Update(GroupUpdate::new(b"a", &one, None, Durability::SkipWal));
    let group = AtomicGroup {
        nonce: nonce(1),
        ..steps(std::slice::from_ref(&step))
    };
    run(&engine, &table, &group).unwrap();
    drop(engine);
    let engine = rig.open();
    assert_eq!(counter(&engine, &table, b"a"), Some(1));
    assert_eq!(run(&engine, &table, &group).unwrap(), (true, false, vec![1]));
}

/// A refused operation leaves no nonce behind.
#[test]
fn a_refused_operation_can_be_sent_again() {
    let (_disk, rig) = machine();
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"text");
    let one = add(b"q", 1);
    let step = update(b"a", &one);
    let group = AtomicGroup {
        nonce: nonce(1),
        ..steps(std::slice::from_ref(&step))
    };
    assert!(run(&engine, &table, &group).is_err());
    put(&engine, &table, b"a", &1_i64.to_be_bytes());
    assert_eq!(run(&engine, &table, &group).unwrap(), (true, true, vec![2]));
}
