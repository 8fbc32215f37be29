//! An acknowledged write without a timestamp is visible to the next read of its row, whatever the
//! machine's clock shows.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::clock::{Clock, ManualClock};
use basalt_engine::fs::sim::{SimFs, SimOptions, SplitMix64};
use basalt_engine::metrics::EventListener;
use basalt_engine::op::{Check, ColumnAppend, ColumnIncrement, CompareOp, ReadSpec, RowUpdate, Scan, Write};
use basalt_engine::schema::{Durability, TableName};
use basalt_engine::{Engine, Kind};
use parking_lot::Mutex;

use crate::rig::{
    F, Rig, apply, create, descriptor, get, mutation, name, put, put_at, row, rows, scan, value,
};

const BEGIN_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;
const YEAR_MS: u64 = 365 * 24 * HOUR_MS;

fn rig_at(ms: u64) -> (Rig, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(ms));
    let mut rig = Rig::in_memory();
    rig.clock = clock.clone();
    (rig, clock)
}

/// Each kind of tombstone, with a timestamp that the server assigns.
const TOMBSTONES: [Write<'static>; 5] = [
    Write::DeleteRow { timestamp: None },
    Write::DeleteFamily {
        family: F,
        timestamp: None,
    },
    Write::DeleteFamilyVersion {
        family: F,
        timestamp: i64::MAX,
    },
    Write::DeleteColumn {
        family: F,
        qualifier: b"q",
        timestamp: None,
    },
    Write::DeleteVersion {
        family: F,
        qualifier: b"q",
        timestamp: None,
    },
];

fn delete(engine: &Engine, table: &TableName, row: &[u8]) {
    apply(engine, table, &[mutation(row, &TOMBSTONES[..1])]).unwrap();
}

/// Writes the text, the last argument, into the empty column `f:q` of a row.
type PutText = fn(&Engine, &TableName, &[u8], &[u8]);

/// The calls that can write it: a put, an append, a check-and-put of an absent cell.
const PUTS: [PutText; 3] = [
    put,
    |engine, table, row, text| {
        let update = RowUpdate::Append(vec![ColumnAppend {
            family: F,
            qualifier: b"q",
            value: text,
            timestamp: None,
        }]);
        let mut out = CellBatch::new();
        let commit = engine.update(table, row, &update, None, Durability::UseDefault, &mut out);
        commit.unwrap().wait().unwrap();
    },
    |engine, table, row, text| {
        let absent = Check {
            family: F,
            qualifier: b"q",
            op: CompareOp::Equal,
            value: None,
        };
        let commit = engine.check_and_mutate(table, &absent, &mutation(row, &[value(b"q", text)]));
        commit.unwrap().expect("the column is empty").wait().unwrap();
    },
];

/// Repeats writes and deletes within one millisecond, in memory and from files.
#[test]
fn a_write_behind_a_delete_of_the_same_millisecond_is_visible() {
    let (rig, _) = rig_at(BEGIN_MS);
    let engine = rig.open();
    let table = create(&engine);
    for turn in 0..20 {
        for (number, tombstone) in TOMBSTONES.iter().enumerate() {
            for (way, write) in PUTS.iter().enumerate() {
                let row = row(10 * number + way);
                let text = format!("{turn}");
                write(&engine, &table, &row, text.as_bytes());
                let what = format!("{tombstone:?}, way {way}, turn {turn}");
                assert_eq!(get(&engine, &table, &row), Some(text.into_bytes()), "{what}");
                apply(&engine, &table, &[mutation(&row, &[*tombstone])]).unwrap();
                assert_eq!(get(&engine, &table, &row), None, "{what}");
            }
        }
        if turn % 7 == 6 {
            engine.flush(&table).unwrap();
            engine.compact(&table, None, turn == 13, true).unwrap();
        }
    }
}

#[test]
fn a_counter_behind_a_delete_of_the_same_millisecond_starts_anew() {
    let (rig, _) = rig_at(BEGIN_MS);
    let engine = rig.open();
    let table = create(&engine);
    let add = RowUpdate::Increment(vec![ColumnIncrement {
        family: F,
        qualifier: b"q",
        amount: 1,
        timestamp: None,
    }]);
    for tombstone in TOMBSTONES {
        for expected in [1_i64, 2] {
            let mut out = CellBatch::new();
            let commit = engine.update(&table, b"n", &add, None, Durability::UseDefault, &mut out);
            commit.unwrap().wait().unwrap();
            let found = get(&engine, &table, b"n");
            assert_eq!(found, Some(expected.to_be_bytes().to_vec()), "{tombstone:?}");
        }
        // A tombstone of one version uncovers an older version, so the row is deleted too.
        apply(&engine, &table, &[mutation(b"n", &[tombstone, TOMBSTONES[0]])]).unwrap();
        assert_eq!(get(&engine, &table, b"n"), None, "{tombstone:?}");
    }
}

/// Several mutations of a row in one call take effect in their order. All writes of one mutation
/// have one timestamp, and its tombstone hides its puts, as in HBase; a put of the next mutation is
/// visible.
#[test]
fn within_a_call_the_last_mutation_counts() {
    let (rig, _) = rig_at(BEGIN_MS);
    let engine = rig.open();
    let table = create(&engine);
    let (put, all) = (value(b"q", b"v"), TOMBSTONES[0]);
    for (number, writes) in [[all, put], [put, all]].iter().enumerate() {
        let visible = (number == 0).then(|| b"v".to_vec());
        for turn in 0..3 {
            apply(&engine, &table, &[mutation(b"one", writes)]).unwrap();
            assert_eq!(get(&engine, &table, b"one"), None, "turn {turn}");
            apply(&engine, &table, &[mutation(b"one", &[put])]).unwrap();
            assert_eq!(get(&engine, &table, b"one"), Some(b"v".to_vec()), "turn {turn}");
            let each = [mutation(b"two", &writes[..1]), mutation(b"two", &writes[1..])];
            apply(&engine, &table, &each).unwrap();
            assert_eq!(get(&engine, &table, b"two"), visible, "turn {turn}");
        }
    }
}

/// A call that would move a row too far ahead of the clock is refused as a whole. Smaller calls
/// succeed.
#[test]
fn a_row_does_not_run_away_from_the_clock() {
    let (rig, clock) = rig_at(BEGIN_MS);
    let engine = rig.open();
    let table = create(&engine);
    let (put, all) = ([value(b"q", b"v")], [TOMBSTONES[0]]);
    let pairs = [mutation(b"r", &all), mutation(b"r", &put)];
    let many: Vec<_> = pairs.iter().cycle().take(2 * 1_001).cloned().collect();
    let refused = engine.mutate(&table, &many).unwrap_err();
    assert_eq!(refused.kind(), Kind::Retry, "{refused}");
    assert_eq!(get(&engine, &table, b"r"), None);
    clock.advance_ms(2_000);
    let commit = engine.mutate(&table, &many[..2 * 150]).unwrap();
    assert_eq!(
        commit.pause(),
        Duration::from_millis(50),
        "the answer is held back"
    );
    commit.wait().unwrap();
    assert_eq!(get(&engine, &table, b"r"), Some(b"v".to_vec()));
    assert_eq!(
        engine.assigned_ms(),
        clock.wall_ms() as i64,
        "other rows do not follow"
    );
}

/// Writes to a table before a start.
type Writes<'a> = &'a dyn Fn(&Engine, &TableName);

/// Row locks are new after a start, a split, a merge and a clone, and have no record of tombstones.
/// Puts must be visible all the same: after a start in the millisecond of the last tombstone, too.
#[test]
fn new_regions_and_new_processes_do_not_forget_tombstones() {
    let (rig, _) = rig_at(BEGIN_MS);
    let engine = rig.open();
    let table = create(&engine);
    let ahead = |engine: &Engine, table: &TableName| {
        for _ in 0..30 {
            for number in 0..8 {
                put(engine, table, &row(number), b"old");
                delete(engine, table, &row(number));
            }
        }
    };
    let all_visible = |engine: &Engine, table: &TableName, what: &str| {
        // The row that was deleted last comes first: nothing else has advanced assigned time since.
        for number in (0..8).rev() {
            put(engine, table, &row(number), what.as_bytes());
            let found = get(engine, table, &row(number));
            assert_eq!(found, Some(what.as_bytes().to_vec()), "row {number}");
            delete(engine, table, &row(number));
            assert_eq!(get(engine, table, &row(number)), None, "row {number}, {what}");
        }
    };
    ahead(&engine, &table);
    let region = engine.regions(&table).unwrap()[0].id;
    let (left, right) = engine.split_region(region, Some(&row(4))).unwrap();
    all_visible(&engine, &table, "after a split");
    ahead(&engine, &table);
    engine.merge_regions(&[left.id, right.id]).unwrap();
    all_visible(&engine, &table, "after a merge");
    ahead(&engine, &table);
    engine.snapshot(&table, "s", true, 0).unwrap();
    engine.clone_snapshot("s", &name("c")).unwrap();
    all_visible(&engine, &name("c"), "in a clone");
    let once = |engine: &Engine, table: &TableName| delete(engine, table, &row(7));
    let before: [Writes<'_>; 2] = [&ahead, &once];
    let ends = [(true, false), (false, false), (true, true)];
    for (before, (flushed, closed)) in before.iter().flat_map(|before| ends.map(|end| (before, end))) {
        let (rig, _) = rig_at(BEGIN_MS);
        let engine = rig.open();
        let table = create(&engine);
        before(&engine, &table);
        if flushed {
            engine.flush(&table).unwrap();
        }
        if closed {
            engine.close().unwrap();
        }
        drop(engine);
        all_visible(&rig.open(), &table, "after a start");
    }
}

/// After the clock is set back, by a millisecond or by decades, writes 50 ms apart keep different
/// timestamps, and no delete hides a later put.
#[test]
fn a_clock_that_steps_back_loses_no_write() {
    for step_ms in [1, 5_000, HOUR_MS, YEAR_MS, BEGIN_MS] {
        let (rig, clock) = rig_at(BEGIN_MS);
        let engine = rig.open();
        let table = create(&engine);
        put(&engine, &table, b"before", b"0");
        clock.set_wall_ms(BEGIN_MS - step_ms);
        for number in 0..20 {
            delete(&engine, &table, &row(number));
            clock.advance_ms(50);
            put(&engine, &table, &row(number), b"x");
            assert_eq!(get(&engine, &table, &row(number)), Some(b"x".to_vec()));
        }
        for text in [b"1", b"2", b"3"] {
            put(&engine, &table, b"before", text);
            clock.advance_ms(50);
        }
        let all = Scan {
            start_row: b"before".to_vec(),
            stop_row: b"beforf".to_vec(),
            spec: ReadSpec {
                max_versions: 5,
                ..ReadSpec::default()
            },
            ..Scan::default()
        };
        let found = scan(&engine, &table, all);
        let values: Vec<&str> = found.iter().map(|cell| cell.value.as_str()).collect();
        assert_eq!(values, ["3", "2", "1", "0"], "step {step_ms}");
    }
}

/// While the clock is an hour behind, a cell written then expires by assigned time. Neither the
/// version that it replaced nor a deleted cell shows again, also after flushes and compactions. A
/// cell from before the step stays until its TTL has passed by the wall clock.
#[test]
fn a_clock_that_is_behind_does_not_lengthen_lives() {
    let (rig, clock) = rig_at(BEGIN_MS);
    let engine = rig.open();
    let mut wanted = descriptor("t", &["f"]);
    wanted.families[0] = wanted.families[0].clone().with("TTL", 600).unwrap();
    engine.create_table(wanted, Vec::new()).unwrap();
    let table = name("t");
    for row in [&b"replaced"[..], b"deleted", b"kept"] {
        put(&engine, &table, row, b"old");
    }
    clock.set_wall_ms(BEGIN_MS - HOUR_MS);
    clock.advance_ms(1_000);
    put(&engine, &table, b"replaced", b"new");
    delete(&engine, &table, b"deleted");
    let own_ttl = Write::Put {
        family: F,
        qualifier: b"q",
        timestamp: None,
        value: b"short",
        ttl_ms: Some(2_000),
    };
    apply(&engine, &table, &[mutation(b"short", &[own_ttl])]).unwrap();
    let shown = || {
        rows(&engine, &table)
            .into_iter()
            .map(|(row, _)| row)
            .collect::<Vec<_>>()
    };
    engine.run_pending().unwrap();
    assert_eq!(shown(), ["kept", "replaced", "short"]);
    clock.advance_ms(3_000);
    engine.run_pending().unwrap();
    assert_eq!(shown(), ["kept", "replaced"]);
    clock.advance_ms(800_000);
    for _ in 0..2 {
        engine.run_pending().unwrap();
        assert_eq!(
            shown(),
            ["kept"],
            "600 s have passed, at three quarters of the speed"
        );
        assert_eq!(get(&engine, &table, b"replaced"), None);
        engine.flush(&table).unwrap();
        engine.compact(&table, None, true, true).unwrap();
    }
    clock.advance_ms(2 * HOUR_MS);
    engine.run_pending().unwrap();
    assert_eq!(shown(), [""; 0]);
}

/// Timestamps chosen by clients keep HBase's rule: a tombstone hides every put up to its time.
#[test]
fn a_timestamp_that_a_client_chose_keeps_its_rule() {
    let (rig, clock) = rig_at(BEGIN_MS);
    let engine = rig.open();
    let table = create(&engine);
    let now = BEGIN_MS as i64;
    delete(&engine, &table, b"r");
    put_at(&engine, &table, b"r", Some(now), b"hidden");
    assert_eq!(get(&engine, &table, b"r"), None, "as old as the tombstone");
    let in_an_hour = Write::DeleteColumn {
        family: F,
        qualifier: b"q",
        timestamp: Some(now + HOUR_MS as i64),
    };
    apply(&engine, &table, &[mutation(b"r", &[in_an_hour])]).unwrap();
    put(&engine, &table, b"r", b"hidden");
    assert_eq!(
        get(&engine, &table, b"r"),
        None,
        "the client's tombstone is from the future"
    );
    clock.advance_ms(HOUR_MS + 1);
    put(&engine, &table, b"r", b"later");
    assert_eq!(get(&engine, &table, b"r"), Some(b"later".to_vec()));
    put_at(&engine, &table, b"r", Some(i64::MAX - 1), b"last");
    delete(&engine, &table, b"r");
    assert_eq!(get(&engine, &table, b"r"), Some(b"last".to_vec()));
}

/// Jumps between any two extreme values of the clock cause no panic and hide no write.
#[test]
fn every_value_of_the_clock_is_survived() {
    let values = [
        0,
        1,
        BEGIN_MS,
        BEGIN_MS + 400 * YEAR_MS,
        253_402_300_799_999,
        i64::MAX as u64 - 1,
        i64::MAX as u64,
        u64::MAX - 1,
        u64::MAX,
    ];
    for begin in values {
        let (rig, clock) = rig_at(begin);
        let mut engine = rig.open();
        let mut wanted = descriptor("t", &["f"]);
        wanted.families[0] = wanted.families[0].clone().with("MIN_VERSIONS", 1).unwrap();
        wanted.families[0] = wanted.families[0].clone().with("TTL", i32::MAX - 1).unwrap();
        engine.create_table(wanted, vec![row(5)]).unwrap();
        let table = name("t");
        for (turn, next) in values.into_iter().enumerate() {
            clock.set_wall_ms(next);
            for number in 0..2 {
                delete(&engine, &table, &row(number));
                put(&engine, &table, &row(number), b"v");
                let what = format!("{begin} to {next}");
                assert_eq!(get(&engine, &table, &row(number)), Some(b"v".to_vec()), "{what}");
                clock.advance_ms(61_000);
                engine.run_pending().unwrap();
            }
            engine.flush(&table).unwrap();
            engine.compact(&table, None, true, true).unwrap();
            engine
                .snapshot(&table, &format!("s{turn}"), true, i64::MAX as u64 / 1_000)
                .unwrap();
            if turn == 0 {
                let region = engine.regions(&table).unwrap()[0].id;
                engine.split_region(region, Some(&row(1))).unwrap();
            }
            if turn % 3 == 2 {
                engine.close().unwrap();
                drop(engine);
                engine = rig.open();
            }
            assert_eq!(rows(&engine, &table).len(), 2, "{begin} to {next}");
        }
    }
}

/// Random clock steps and stops, restarts and crashes, with writes at every turn. Seeds 0 to 59.
#[test]
fn no_walk_of_the_clock_hides_an_acknowledged_write() {
    for seed in 0..60 {
        walk(seed);
    }
}

fn walk(seed: u64) {
    let mut dice = SplitMix64::new(seed);
    let mut disk = SimFs::new(seed, SimOptions::default());
    let clock = Arc::new(ManualClock::at(BEGIN_MS));
    let rig_on = |disk: &SimFs| {
        let mut rig = Rig::simulated(disk);
        rig.clock = clock.clone();
        rig
    };
    let mut engine = rig_on(&disk).open();
    let table = create(&engine);
    for turn in 0..120 {
        let step_ms = [3, 5_000, HOUR_MS, YEAR_MS][dice.below(4) as usize];
        match dice.below(12) {
            0 => clock.set_wall_ms(clock.wall_ms().saturating_sub(step_ms)),
            1 => clock.set_wall_ms(clock.wall_ms() + step_ms),
            2 => clock.advance_mono_ms(dice.below(500)),
            3 => drop(engine.run_pending().unwrap()),
            4 => engine.flush(&table).unwrap(),
            5 if dice.below(3) == 0 => {
                if dice.coin() {
                    engine.close().unwrap();
                }
                drop(engine);
                disk = disk.crash_keep_all();
                if dice.coin() {
                    clock.set_wall_ms(BEGIN_MS - dice.below(YEAR_MS));
                }
                engine = rig_on(&disk).open();
            }
            _ => clock.advance_ms(dice.below(4)),
        }
        let row = row(dice.below(3) as usize);
        let what = format!("seed {seed}, turn {turn}");
        let (tombstone, text) = (
            TOMBSTONES[dice.below(TOMBSTONES.len() as u64) as usize],
            turn.to_string(),
        );
        match dice.below(3) {
            0 => {
                apply(&engine, &table, &[mutation(&row, &[TOMBSTONES[0], tombstone])]).unwrap();
                assert_eq!(get(&engine, &table, &row), None, "{what}");
            }
            1 => {
                let put = value(b"q", text.as_bytes());
                let both = [mutation(&row, &[tombstone]), mutation(&row, &[put])];
                apply(&engine, &table, &both).unwrap();
                assert_eq!(
                    get(&engine, &table, &row).as_deref(),
                    Some(text.as_bytes()),
                    "{what}"
                );
            }
            _ => {
                put(&engine, &table, &row, text.as_bytes());
                assert_eq!(get(&engine, &table, &row), Some(text.into_bytes()), "{what}");
            }
        }
    }
}

/// One edit of the log has an assigned timestamp and a client's timestamp far in the future. After
/// a crash, with the clock set back, recovery finds the assigned one.
#[test]
fn a_clients_timestamp_does_not_hide_assigned_ones_from_recovery() {
    let disk = SimFs::new(1, SimOptions::default());
    let clock = Arc::new(ManualClock::at(BEGIN_MS));
    let mut rig = Rig::simulated(&disk);
    rig.clock = clock.clone();
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"first");
    clock.advance_ms(50_000);
    let far = Write::Put {
        family: F,
        qualifier: b"q",
        timestamp: Some(i64::MAX - 1),
        value: b"far",
        ttl_ms: None,
    };
    let all = [TOMBSTONES[0]];
    apply(&engine, &table, &[mutation(b"a", &all), mutation(b"b", &[far])]).unwrap();
    drop(engine);
    clock.set_wall_ms(BEGIN_MS);
    let mut rig = Rig::simulated(&disk.crash_keep_all());
    rig.clock = clock;
    let engine = rig.open();
    put(&engine, &table, b"a", b"second");
    assert_eq!(get(&engine, &table, b"a"), Some(b"second".to_vec()));
}

/// A delete is written while the clock is a year ahead, and the process dies before or right after
/// its commit ends. After a start with the right clock, a put must be visible.
#[test]
fn a_write_that_nobody_was_told_of_does_not_hide_later_ones() {
    let disk = SimFs::new(1, SimOptions::default());
    let clock = Arc::new(ManualClock::at(BEGIN_MS));
    let mut rig = Rig::simulated(&disk);
    rig.clock = clock.clone();
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"first");
    clock.set_wall_ms(BEGIN_MS + YEAR_MS);
    let at_the_write = Arc::new(Mutex::new(None));
    let mutated = engine
        .mutate(&table, &[mutation(b"a", &[TOMBSTONES[0]])])
        .unwrap();
    *at_the_write.lock() = Some(disk.crash_keep_all());
    mutated.wait().unwrap();
    let after = disk.crash_keep_all();
    drop(engine);
    clock.set_wall_ms(BEGIN_MS);
    for disk in [at_the_write.lock().take().unwrap(), after] {
        let mut rig = Rig::simulated(&disk);
        rig.clock = clock.clone();
        let engine = rig.open();
        put(&engine, &table, b"a", b"second");
        assert_eq!(get(&engine, &table, b"a"), Some(b"second".to_vec()));
    }
}

/// Records the events of a clock that is behind.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<String>>);

impl EventListener for Listener {
    fn clock_behind(&self, what: &str) {
        self.0.lock().push(what.to_owned());
    }
    fn clock_caught_up(&self) {
        self.0.lock().push("caught up".to_owned());
    }
}

#[test]
fn a_clock_that_is_behind_is_told_of_once_until_it_has_caught_up() {
    let (mut rig, clock) = rig_at(BEGIN_MS);
    let listener = Arc::new(Listener::default());
    rig.listener = listener.clone();
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"r", b"v");
    engine.run_pending().unwrap();
    clock.set_wall_ms(BEGIN_MS - 900);
    engine.run_pending().unwrap();
    assert!(listener.0.lock().is_empty(), "less than a second");
    clock.set_wall_ms(BEGIN_MS - 60_000);
    for _ in 0..10 {
        clock.advance_ms(100);
        engine.run_pending().unwrap();
    }
    assert_eq!(engine.ahead_of_clock().as_secs(), 59);
    let told = std::mem::take(&mut *listener.0.lock());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("59 s ahead") && told[0].contains("set it"),
        "{told:?}"
    );
    clock.advance_ms(240_000);
    engine.run_pending().unwrap();
    assert_eq!(engine.ahead_of_clock(), Duration::ZERO);
    assert_eq!(*listener.0.lock(), ["caught up"]);
}
