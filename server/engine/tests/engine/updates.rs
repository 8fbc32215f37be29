//! The timestamps of increments and appends: each adds a version to its column, however many come in
//! one millisecond, and the rules of assigned time hold all the same: a later put is visible, a later
//! delete hides them.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::cell::{CellBatch, LATEST};
use basalt_engine::clock::{Clock, ManualClock};
use basalt_engine::fs::sim::{SimFs, SimOptions, SplitMix64};
use basalt_engine::op::{
    AtomicGroup, ColumnAppend, ColumnIncrement, GroupStep, GroupUpdate, GroupWrite, ReadSpec, ReadTier,
    RowUpdate, Scan, Write,
};
use basalt_engine::schema::{Durability, TableName};

use crate::rig::{F, Rig, apply, create, get, mutation, put, put_at, row, scan, value};

const NOW: i64 = 1_700_000_000_000;
/// Milliseconds that updates may go ahead of the clock.
const AHEAD_MAX: i64 = 1_000;
const DELETE_ROW: Write<'static> = Write::DeleteRow { timestamp: None };

fn increment(qualifier: &'static [u8], amount: i64, timestamp: Option<i64>) -> RowUpdate<'static> {
    RowUpdate::Increment(vec![ColumnIncrement {
        family: F,
        qualifier,
        amount,
        timestamp,
    }])
}

fn append(value: &[u8], timestamp: Option<i64>) -> RowUpdate<'_> {
    RowUpdate::Append(vec![ColumnAppend {
        family: F,
        qualifier: b"q",
        value,
        timestamp,
    }])
}

/// Applies an update; the timestamp and value of its new cell.
fn update(engine: &Engine, table: &TableName, row: &[u8], change: &RowUpdate<'_>) -> (i64, Vec<u8>) {
    let mut out = CellBatch::new();
    let commit = engine.update(table, row, change, None, Durability::UseDefault, &mut out);
    commit.unwrap().wait().unwrap();
    let cell = out.cell(0);
    (cell.key.timestamp(), cell.value.to_vec())
}

/// The timestamps and values of a row's versions, newest first.
fn versions(engine: &Engine, table: &TableName, row: &[u8]) -> Vec<(i64, String)> {
    let all = Scan {
        start_row: row.to_vec(),
        stop_row: row.to_vec(),
        include_stop: true,
        spec: ReadSpec {
            max_versions: i32::MAX,
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    let cells = scan(engine, table, all).into_iter();
    cells.map(|cell| (cell.timestamp, cell.value)).collect()
}

/// The clock stands still.
#[test]
fn every_update_of_a_millisecond_adds_a_version() {
    let (_disk, _rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    for (step, piece) in ["a", "b", "c"].into_iter().enumerate() {
        let (timestamp, _) = update(&engine, &table, b"r", &append(piece.as_bytes(), None));
        assert_eq!(timestamp, NOW + step as i64);
    }
    let shown: Vec<_> = ["abc", "ab", "a"]
        .iter()
        .zip([2, 1, 0])
        .map(|(text, ahead)| (NOW + ahead, (*text).to_owned()))
        .collect();
    assert_eq!(versions(&engine, &table, b"r"), shown);
    let counter = increment(b"n", 5, None);
    for turn in 0..3 {
        let (timestamp, value) = update(&engine, &table, b"n", &counter);
        assert_eq!(
            (timestamp, value),
            (NOW + turn, (5 * (turn + 1)).to_be_bytes().to_vec())
        );
        engine.flush(&table).unwrap();
    }
}

/// HBase's rule (`HRegion.reckonDelta`): later than the cell, whatever time the client gives; without a
/// cell the client's time.
#[test]
fn updates_follow_cells_from_the_future_and_clients_times() {
    let (_disk, _rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    let in_a_year = NOW + 365 * 86_400_000;
    put_at(&engine, &table, b"future", Some(in_a_year), b"x");
    for turn in 1..=3 {
        let given = [None, Some(7), Some(in_a_year + 100)][turn as usize - 1];
        let (timestamp, _) = update(&engine, &table, b"future", &append(b"y", given));
        assert_eq!(timestamp, in_a_year + turn);
    }
    assert_eq!(get(&engine, &table, b"future"), Some(b"xyyy".to_vec()));
    // The client's time moves no writes of the server's.
    apply(&engine, &table, &[mutation(b"future", &[DELETE_ROW])]).unwrap();
    assert_eq!(get(&engine, &table, b"future"), Some(b"xyyy".to_vec()));
    put(&engine, &table, b"other", b"1");
    assert_eq!(versions(&engine, &table, b"other"), [(NOW, "1".to_owned())]);

    let (first, _) = update(&engine, &table, b"past", &append(b"x", Some(999)));
    assert_eq!(first, 999);
    let (second, value) = update(&engine, &table, b"past", &append(b"y", Some(5)));
    assert_eq!(
        (second, &value[..]),
        (NOW, &b"xy"[..]),
        "an old cell: the server's time"
    );
    let (latest, _) = update(&engine, &table, b"latest", &append(b"x", Some(LATEST)));
    assert_eq!(latest, NOW);
    put_at(&engine, &table, b"last", Some(LATEST - 1), b"x");
    assert_eq!(
        update(&engine, &table, b"last", &append(b"y", None)).0,
        LATEST - 1
    );
    assert_eq!(get(&engine, &table, b"last"), Some(b"xy".to_vec()));
}

/// A range of times leaves out the newest cell: the update follows the one that it reads.
#[test]
fn an_update_follows_the_cell_that_its_time_range_shows() {
    let (_disk, _rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    put_at(&engine, &table, b"r", Some(NOW + 50), b"x");
    put_at(&engine, &table, b"r", Some(NOW + 90), b"z");
    let change = append(b"y", None);
    let mut ranged = GroupUpdate::new(b"r", &change, None, Durability::UseDefault);
    (ranged.time_range.min, ranged.time_range.max) = (0, NOW + 60);
    let group = AtomicGroup {
        steps: &[GroupStep::Update(ranged)],
        ..AtomicGroup::default()
    };
    let outcome = engine
        .apply_group(&table, &group, ReadTier::All, &mut CellBatch::new())
        .unwrap();
    outcome.commit.unwrap().wait().unwrap();
    let shown = [(90, "z"), (51, "xy"), (50, "x")].map(|(ahead, text)| (NOW + ahead, text.to_owned()));
    assert_eq!(versions(&engine, &table, b"r"), shown);
}

/// A busy counter goes ahead of the clock by a second at most. Then it replaces its newest version.
/// Neither it nor the writes beside it are delayed or refused, and a put or delete takes effect.
#[test]
fn a_busy_counter_does_not_run_away_from_the_clock() {
    let clock = Arc::new(ManualClock::at(NOW as u64));
    let mut rig = Rig::in_memory();
    rig.clock = clock.clone();
    let engine = rig.open();
    let table = create(&engine);
    let one = increment(b"q", 1, None);
    for turn in 0..AHEAD_MAX + 200 {
        let mut out = CellBatch::new();
        let commit = engine.update(&table, b"n", &one, None, Durability::UseDefault, &mut out);
        let commit = commit.unwrap();
        assert!(commit.pause().is_zero());
        commit.wait().unwrap();
        assert_eq!(out.cell(0).key.timestamp(), NOW + turn.min(AHEAD_MAX));
    }
    assert_eq!(
        get(&engine, &table, b"n"),
        Some((AHEAD_MAX + 200).to_be_bytes().to_vec())
    );
    assert_eq!(engine.assigned_ms(), NOW, "other rows do not follow");
    let commit = engine
        .mutate(&table, &[mutation(b"n", &[value(b"q", b"reset")])])
        .unwrap();
    assert!(commit.pause().is_zero(), "a put beside a busy counter");
    commit.wait().unwrap();
    assert_eq!(get(&engine, &table, b"n"), Some(b"reset".to_vec()));
    apply(&engine, &table, &[mutation(b"n", &[DELETE_ROW])]).unwrap();
    assert_eq!(get(&engine, &table, b"n"), None);
    assert_eq!(update(&engine, &table, b"n", &one).1, 1_i64.to_be_bytes());
    clock.advance_ms(2 * AHEAD_MAX as u64);
    assert_eq!(
        update(&engine, &table, b"n", &one).0,
        NOW + 2 * AHEAD_MAX,
        "time has caught up"
    );
}

/// The writes of a group take effect in their order also where its update is ahead of the clock, and
/// its tombstones hide its updates.
#[test]
fn in_a_group_the_last_write_of_a_column_counts() {
    let (_disk, _rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    let (change, puts) = (append(b"+", None), [value(b"q", b"put")]);
    let (put, all) = (mutation(b"r", &puts), mutation(b"r", &[DELETE_ROW]));
    let update_step = || GroupStep::Update(GroupUpdate::new(b"r", &change, None, Durability::UseDefault));
    let (put_step, delete_step) = (
        || GroupStep::Write(GroupWrite::of(&put)),
        || GroupStep::Write(GroupWrite::of(&all)),
    );
    for (steps, expected) in [
        ([update_step(), put_step()], Some("put")),
        ([put_step(), update_step()], Some("ab+")),
        ([update_step(), delete_step()], None),
        ([delete_step(), update_step()], None),
    ] {
        apply(&engine, &table, std::slice::from_ref(&all)).unwrap();
        for piece in [b"a", b"b"] {
            update(&engine, &table, b"r", &append(piece, None));
        }
        let group = AtomicGroup {
            steps: &steps,
            ..AtomicGroup::default()
        };
        let outcome = engine
            .apply_group(&table, &group, ReadTier::All, &mut CellBatch::new())
            .unwrap();
        outcome.commit.unwrap().wait().unwrap();
        let found = get(&engine, &table, b"r");
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{steps:?}");
    }
}

/// Random updates, puts and deletes of few rows, with a clock that stands, steps and goes back,
/// flushes, splits, merges, restarts and crashes. Each write is seen by the next read.
#[test]
fn no_walk_of_the_clock_hides_an_update_or_what_follows_it() {
    for seed in 0..40 {
        walk(seed);
    }
}

fn walk(seed: u64) {
    let mut dice = SplitMix64::new(seed);
    let mut disk = SimFs::new(seed, SimOptions::default());
    let clock = Arc::new(ManualClock::at(NOW as u64));
    let rig_on = |disk: &SimFs| {
        let mut rig = Rig::simulated(disk);
        rig.clock = clock.clone();
        rig
    };
    let mut engine = rig_on(&disk).open();
    let table = create(&engine);
    let mut expected: [Option<Vec<u8>>; 3] = Default::default();
    for turn in 0..150 {
        match dice.below(14) {
            0 => clock.set_wall_ms(clock.wall_ms() - dice.below(5_000)),
            1 => clock.set_wall_ms(clock.wall_ms() + dice.below(5_000)),
            2 => engine.flush(&table).unwrap(),
            3 => {
                let regions = engine.regions(&table).unwrap();
                if let [left, right] = &regions[..] {
                    engine.merge_regions(&[left.id, right.id]).unwrap();
                } else {
                    engine.split_region(regions[0].id, Some(&row(1))).unwrap();
                }
            }
            4 if dice.below(3) == 0 => {
                drop(engine);
                disk = disk.crash_keep_all();
                engine = rig_on(&disk).open();
            }
            5 | 6 => clock.advance_ms(dice.below(4)),
            _ => {}
        }
        let number = dice.below(3) as usize;
        let (row, cell) = (row(number), &mut expected[number]);
        match dice.below(8) {
            0 => {
                apply(&engine, &table, &[mutation(&row, &[DELETE_ROW])]).unwrap();
                *cell = None;
            }
            1 => {
                let text = turn.to_string().into_bytes();
                put(&engine, &table, &row, &text);
                *cell = Some(text);
            }
            _ => {
                for piece in 0..=dice.below(30) as u8 {
                    let (_, now) = update(&engine, &table, &row, &append(&[piece], None));
                    cell.get_or_insert_default().push(piece);
                    assert_eq!(Some(&now), cell.as_ref(), "seed {seed}, turn {turn}");
                }
            }
        }
        assert_eq!(&get(&engine, &table, &row), cell, "seed {seed}, turn {turn}");
    }
}
