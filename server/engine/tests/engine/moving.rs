//! Long scans and busy writers while regions are split, merged, flushed and compacted under them.
//!
//! Two writers go over their rows again and again, in key order, and write the number of the round. So at any
//! moment the rounds of a writer's rows, read in key order, fall by one at one place or nowhere: a scan that
//! mixed two moments, lost a row or saw one twice shows it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::engine::Fetched;
use basalt_engine::op::{FetchLimits, Scan};
use basalt_engine::schema::TableName;

use crate::rig::{Rig, Shown, apply, create, mutation, row, scan, shown, value};

const ROWS: usize = 90;
/// Every scan continues over at least this many changes of regions.
const CHANGES_SEEN: u64 = 6;

/// Counts changes of regions and wakes waiting threads.
#[derive(Default)]
struct Changes {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Changes {
    fn note(&self) {
        *self.count.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    fn now(&self) -> u64 {
        *self.count.lock().unwrap()
    }

    fn wait_beyond(&self, count: u64) {
        let waited = self
            .changed
            .wait_timeout_while(self.count.lock().unwrap(), Duration::from_mins(1), |now| {
                *now <= count
            })
            .unwrap();
        assert!(!waited.1.timed_out(), "regions go on changing");
    }
}

/// A scan that fails leaves, too, so that the others do not wait for it.
struct Leaves<'a>(&'a AtomicU64);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Stops the writers, also when something has failed.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Writes one row with the number of the round, in two columns.
fn write(engine: &Engine, table: &TableName, number: usize, round: u64) {
    let round = round.to_string();
    let writes = [value(b"p", round.as_bytes()), value(b"q", round.as_bytes())];
    apply(engine, table, &[mutation(&row(number), &writes)]).unwrap();
}

/// Everything a scan sees, fetched by one to three rows, with a wait for the next change now and then.
fn slow_scan(engine: &Engine, table: &TableName, reversed: bool, changes: &Changes) -> Vec<Shown> {
    let request = Scan {
        reversed,
        ..Scan::default()
    };
    let mut scanner = engine.scan(table, request).unwrap();
    let mut seen = Vec::new();
    let mut out = CellBatch::new();
    let first_change = changes.now();
    for fetch in 0.. {
        out.clear();
        let limits = FetchLimits {
            results: 1 + fetch % 3,
            bytes: usize::MAX,
            time: Duration::from_mins(1),
        };
        let fetched = scanner.fetch(&limits, &mut out).unwrap();
        seen.extend(shown(&out));
        if fetched == Fetched::End {
            break;
        }
        if fetch % 6 == 5 {
            changes.wait_beyond(changes.now());
        }
    }
    assert!(changes.now() >= first_change + CHANGES_SEEN);
    if reversed {
        // Rows backward, cells of a row forward.
        seen.sort();
    }
    seen
}

/// Every row once, whole, in order, and all of them of one moment that is not before `rounds`.
fn check(seen: &[Shown], rounds: [u64; 2]) {
    let expected: Vec<_> = (0..ROWS)
        .flat_map(|number| {
            let row = String::from_utf8(row(number)).unwrap();
            ["f:p", "f:q"].map(|column| (row.clone(), column.to_owned()))
        })
        .collect();
    let found: Vec<_> = seen
        .iter()
        .map(|cell| (cell.row.clone(), cell.column.clone()))
        .collect();
    assert_eq!(found, expected);
    let round_of = |number: usize| {
        let (p, q) = (&seen[2 * number], &seen[2 * number + 1]);
        assert_eq!(p.value, q.value, "row {} is torn", p.row);
        p.value.parse::<u64>().unwrap()
    };
    for (writer, least) in rounds.into_iter().enumerate() {
        let rounds: Vec<u64> = (writer..ROWS).step_by(2).map(round_of).collect();
        assert!(rounds.is_sorted_by(|left, right| left >= right), "{rounds:?}");
        assert!(rounds[0] - rounds[rounds.len() - 1] <= 1, "{rounds:?}");
        assert!(
            rounds[rounds.len() - 1] >= least,
            "{rounds:?} are from before {least}"
        );
    }
}

/// One change after the other: splits at many rows, merges of neighbours and of everything, flushes,
/// compactions.
fn change(engine: &Engine, table: &TableName, round: usize) {
    let ids = |engine: &Engine| -> Vec<_> {
        let regions = engine.regions(table).unwrap();
        regions.into_iter().map(|region| region.id).collect()
    };
    match round % 5 {
        0 | 2 => {
            let at = row(round * 31 % ROWS);
            let region = engine.region_of(table, &at).unwrap();
            if region.start != at {
                engine.split_region(region.id, Some(&at)).unwrap();
            }
        }
        1 => engine.flush(table).unwrap(),
        3 => engine.compact(table, None, true, true).unwrap(),
        _ => {
            let ids = ids(engine);
            let merged = if round.is_multiple_of(2) {
                &ids[..]
            } else {
                &ids[ids.len().saturating_sub(2)..]
            };
            if merged.len() > 1 {
                engine.merge_regions(merged).unwrap();
            }
        }
    }
}

#[test]
fn scans_keep_their_moment_while_regions_change() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::on_disk(&dir);
    rig.options.compaction_min_files = 2;
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..ROWS {
        write(&engine, &table, number, 0);
    }
    let changes = Changes::default();
    let scanning = AtomicU64::new(4);
    let stop = AtomicBool::new(false);
    // For each writer the last round that it has acknowledged in full.
    let rounds = [AtomicU64::new(0), AtomicU64::new(0)];
    std::thread::scope(|scope| {
        let (engine, table, changes, scanning, stop, rounds) =
            (&engine, &table, &changes, &scanning, &stop, &rounds);
        for (writer, whole) in rounds.iter().enumerate() {
            scope.spawn(move || {
                for round in 1.. {
                    for number in (writer..ROWS).step_by(2) {
                        if stop.load(Ordering::SeqCst) {
                            return;
                        }
                        write(engine, table, number, round);
                    }
                    whole.store(round, Ordering::SeqCst);
                }
            });
        }
        for reversed in [false, true, false, true] {
            scope.spawn(move || {
                let _leaves = Leaves(scanning);
                for _ in 0..4 {
                    let before = [0, 1].map(|writer| rounds[writer].load(Ordering::SeqCst));
                    check(&slow_scan(engine, table, reversed, changes), before);
                }
            });
        }
        let _stops = Stops(stop);
        let mut round = 0;
        while scanning.load(Ordering::SeqCst) > 0 {
            change(engine, table, round);
            changes.note();
            round += 1;
        }
    });
    assert!(engine.counters().splits.get() > 3 && engine.counters().merges.get() > 3);
    check(&scan(&engine, &table, Scan::default()), [0, 0]);
}
