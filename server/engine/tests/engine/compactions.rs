//! Compactions that run at the same time: long ones beside short ones, two in one store, and one of all files
//! that waits for another.

use std::sync::Arc;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use basalt_engine::Engine;
use basalt_engine::clock::ManualClock;
use basalt_engine::engine::{QueueStats, RegionStats};
use basalt_engine::fs::sim::{OpKind, SimFs, SimOptions};
use basalt_engine::op::Write;
use basalt_engine::options::Background;
use basalt_engine::schema::TableName;

use crate::rig::{F, Rig, apply, create, descriptor, get, mutation, name, put, row, rows};

/// Longer than any awaited event can take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A disk, an engine without threads on it, its clock, and a table with two files, whose compaction hangs
/// until the disk goes on.
struct Hanging {
    disk: SimFs,
    clock: Arc<ManualClock>,
    rig: Rig,
    engine: Arc<Engine>,
    table: TableName,
}

impl Hanging {
    fn new() -> Self {
        let disk = SimFs::new(1, SimOptions::default());
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let mut rig = Rig::simulated(&disk);
        rig.clock = clock.clone();
        let engine = rig.open();
        let table = create(&engine);
        fill(&engine, &table);
        // Nothing of the files is in memory.
        drop(engine);
        let engine = rig.open();
        hang_at(&disk, "t");
        Self {
            disk,
            clock,
            rig,
            engine,
            table,
        }
    }

    /// Begins a compaction of all files on a thread of its own, does `meanwhile`, and lets it end.
    fn while_it_hangs(&self, meanwhile: impl FnOnce(&Engine)) {
        std::thread::scope(|scope| {
            let compacts = scope.spawn(|| self.engine.compact(&self.table, None, true, true));
            // Also when something fails in here, so that it is seen.
            let resumed = Resumed(&self.disk);
            while self.engine.jobs().running().is_empty() {
                yield_now();
            }
            meanwhile(&self.engine);
            drop(resumed);
            compacts.join().unwrap().unwrap();
        });
    }

    /// Flushes three more files. The first hides the cells of row 0 in the older ones.
    fn flush_three(&self) {
        let delete = Write::DeleteColumn {
            family: F,
            qualifier: b"q",
            timestamp: None,
        };
        apply(&self.engine, &self.table, &[mutation(&row(0), &[delete])]).unwrap();
        for number in 11..14 {
            put(&self.engine, &self.table, &row(number), b"new");
            self.engine.flush(&self.table).unwrap();
        }
    }

    /// Minor and major compactions that are done, and the table's files.
    fn done(&self) -> (u64, u64, u64) {
        let counters = self.engine.counters();
        let files = self.engine.region_stats()[0].store_files;
        (
            counters.minor_compactions.get(),
            counters.major_compactions.get(),
            files,
        )
    }

    /// Everything is as it was written, now and after a start.
    fn check(self) {
        let Self {
            rig, engine, table, ..
        } = self;
        let check = |engine: &Engine| {
            assert_eq!(get(engine, &table, &row(0)), None, "deleted in a newer file");
            assert_eq!(get(engine, &table, &row(1)).as_deref(), Some(&b"two"[..]));
            assert_eq!(get(engine, &table, &row(13)).as_deref(), Some(&b"new"[..]));
            assert_eq!(rows(engine, &table).len(), 12);
        };
        check(&engine);
        engine.close().unwrap();
        drop(engine);
        check(&rig.open());
    }
}

/// Resumes hanging calls when it is dropped.
struct Resumed<'a>(&'a SimFs);

impl Drop for Resumed<'_> {
    fn drop(&mut self) {
        self.0.resume();
    }
}

/// Two files with the same ten rows.
fn fill(engine: &Engine, table: &TableName) {
    for value in [b"one", b"two"] {
        for number in 0..10 {
            put(engine, table, &row(number), value);
        }
        engine.flush(table).unwrap();
    }
}

/// Blocks every read of cells from the first store file of a table.
fn hang_at(disk: &SimFs, table: &str) {
    let dir = format!("/data/tables/default/{table}/");
    let file = disk.files().into_iter().find(|path| path.starts_with(&dir));
    disk.hang(OpKind::Read, file.unwrap().to_str().unwrap());
}

/// Files that were flushed while others are compacted are compacted beside that, and each output is in the
/// place of its inputs.
#[test]
fn newer_files_are_compacted_beside_older_ones() {
    let hanging = Hanging::new();
    hanging.while_it_hangs(|engine| {
        hanging.flush_three();
        engine.run_pending().unwrap();
        assert_eq!(hanging.done(), (1, 0, 3));
    });
    assert_eq!(hanging.done(), (1, 1, 2));
    hanging.check();
}

/// A job for all files does not hold up its thread while some of them are compacted: it comes again, and
/// until it is done no other compaction begins in the store.
#[test]
fn all_files_wait_for_those_that_are_compacted() {
    let hanging = Hanging::new();
    hanging.while_it_hangs(|engine| {
        engine.compact(&hanging.table, None, true, false).unwrap();
        engine.run_pending().unwrap();
        hanging.flush_three();
        engine.run_pending().unwrap();
        assert_eq!(hanging.done(), (0, 0, 5));
        assert_eq!(engine.queues().compactions, 1);
    });
    assert_eq!(hanging.done(), (0, 1, 4));
    hanging.clock.advance_ms(100);
    hanging.engine.run_pending().unwrap();
    assert_eq!(hanging.done(), (0, 2, 1));
    hanging.check();
}

/// A compaction keeps no version, which would pin the memstores of its start: memstores flushed
/// meanwhile are freed.
#[test]
fn memory_is_given_back_while_files_are_compacted() {
    let hanging = Hanging::new();
    put(&hanging.engine, &hanging.table, &row(20), b"v");
    hanging.while_it_hangs(|engine| {
        engine.flush(&hanging.table).unwrap();
        assert_eq!(engine.pinned_memstore_bytes(), 0);
    });
}

/// A synchronous request for all files waits for running compactions, and then gets all files.
#[test]
fn a_caller_that_waits_gets_all_files() {
    let hanging = Hanging::new();
    std::thread::scope(|scope| {
        hanging.while_it_hangs(|_| {
            let second = scope.spawn(|| hanging.engine.compact(&hanging.table, None, true, true));
            hanging.flush_three();
            assert!(!second.is_finished());
        });
    });
    assert_eq!(hanging.done(), (0, 2, 1));
    hanging.check();
}

/// While a thread is busy with a long compaction, the short ones of another table are done, by a thread that
/// has handed it over.
#[test]
fn short_compactions_do_not_wait_for_long_ones() {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = Rig::simulated(&disk);
    let engine = rig.open();
    for table in ["long", "short"] {
        engine
            .create_table(descriptor(table, &["f"]), Vec::new())
            .unwrap();
    }
    put(&engine, &name("long"), &row(10), &vec![b'v'; 100_000]);
    fill(&engine, &name("long"));
    let bytes = engine
        .region_stats()
        .iter()
        .map(|region| region.store_file_bytes)
        .sum();
    drop(engine);
    rig.options.background = Background::Threads;
    rig.options.compaction_long_bytes = bytes;
    let engine = rig.open();
    hang_at(&disk, "long");
    let files = |table: &str| {
        let of_table = |region: &&RegionStats| region.region.table == name(table);
        engine.region_stats().iter().find(of_table).unwrap().store_files
    };
    engine.compact(&name("long"), None, true, false).unwrap();
    wait_until(|| !engine.jobs().running().is_empty());
    for number in 0..3 {
        put(&engine, &name("short"), &row(number), b"v");
        engine.flush(&name("short")).unwrap();
    }
    let long_only = |queues: QueueStats| (queues.compactions, queues.long_compactions) == (1, 1);
    let is_done = wait_until(|| files("short") == 1 && long_only(engine.queues()));
    let long = files("long");
    // First of all, so that nothing hangs if this fails.
    disk.resume();
    assert!(is_done, "the short compaction waits");
    assert_eq!(long, 2);
    assert!(wait_until(|| files("long") == 1));
    engine.close().unwrap();
}

/// Whether that came to be.
fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        yield_now();
    }
    true
}

/// A store that is one file since a compaction of all is left alone by the next that is due, unless something
/// in it has expired.
#[test]
fn compacted_files_are_not_compacted_for_their_age() {
    const PERIOD_MS: u64 = 7 * 24 * 3_600_000;
    for (ttl_s, expected) in [(None, 1), (Some(15 * 24 * 3_600), 2)] {
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let mut rig = Rig::in_memory();
        rig.clock = clock.clone();
        let engine = rig.open();
        let mut table = descriptor("t", &["f"]);
        if let Some(seconds) = ttl_s {
            table.families[0] = table.families[0].clone().with("TTL", seconds).unwrap();
        }
        engine.create_table(table, Vec::new()).unwrap();
        fill(&engine, &name("t"));
        for _ in 0..2 {
            // Half a period more or less, so once for certain.
            clock.advance_ms(PERIOD_MS * 3 / 2);
            engine.run_pending().unwrap();
        }
        let done = engine.counters().major_compactions.get();
        assert_eq!(done, expected, "TTL {ttl_s:?}");
    }
}
