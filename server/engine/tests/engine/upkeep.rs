//! Background work when something is in its way: regions that go away, a full disk, a log that grows.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::clock::ManualClock;
use basalt_engine::engine::Work;
use basalt_engine::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};
use basalt_engine::jobs::{JobEnd, JobKind};
use basalt_engine::op::{FetchLimits, Scan};

use crate::rig::{Rig, apply, create, descriptor, get, mutation, name, put, row, rows, value};

/// Memory is short, the largest region is asked to flush, and goes away before it does. The next one is asked
/// then.
#[test]
fn memory_is_relieved_after_the_region_that_was_asked_is_gone() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_total_bytes = 1 << 20;
    let engine = rig.open();
    for table in ["first", "second"] {
        engine
            .create_table(descriptor(table, &["f"]), Vec::new())
            .unwrap();
        for number in 0..1000 {
            let fill = [value(b"q", &[b'v'; 10_000])];
            if apply(&engine, &name(table), &[mutation(&row(number), &fill)]).is_err() {
                break;
            }
        }
        assert!(engine.memstore_bytes() > 1 << 19);
        if table == "first" {
            engine.disable_table(&name(table)).unwrap();
            engine.drop_table(&name(table)).unwrap();
        }
        engine.run_pending().unwrap();
        engine.run_pending().unwrap();
        assert_eq!(engine.memstore_bytes(), 0, "after {table}");
    }
}

/// Memory is short and the largest region cannot be flushed. The next largest is asked then, so that writes
/// go on.
#[test]
fn memory_is_relieved_although_the_largest_region_cannot_be_flushed() {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = Rig::simulated(&disk);
    rig.options.memstore_total_bytes = 8 << 20;
    let engine = rig.open();
    for (table, rows) in [("stuck", 480), ("other", 200)] {
        engine
            .create_table(descriptor(table, &["f"]), Vec::new())
            .unwrap();
        for number in 0..rows {
            put(&engine, &name(table), &row(number), &[b'v'; 10_000]);
        }
    }
    let fault = disk.fail(OpKind::Create, "/stuck/", Errno::IO, Times::Always);
    let full = engine.memstore_bytes();
    engine.run_pending().unwrap();
    assert_eq!(engine.memstore_bytes(), full);
    engine.run_pending().unwrap();
    assert!(engine.memstore_bytes() < full * 4 / 5);
    assert!(!disk.struck(fault).is_empty());
    for number in 0..30 {
        put(&engine, &name("other"), &row(number), &[b'w'; 10_000]);
    }
}

/// A region that receives next to nothing does not keep the whole log: its edits are flushed when they hold
/// back too many segments (HBase: `hbase.regionserver.maxlogs`).
#[test]
fn a_quiet_region_does_not_keep_the_log() {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = Rig::simulated(&disk);
    rig.options.memstore_total_bytes = 1 << 20;
    let engine = rig.open();
    for table in ["quiet", "busy"] {
        engine
            .create_table(descriptor(table, &["f"]), Vec::new())
            .unwrap();
    }
    put(&engine, &name("quiet"), b"a", b"v");
    for number in 0..400 {
        put(&engine, &name("busy"), &row(number), &[b'v'; 10_000]);
        if number % 20 == 19 {
            engine.flush(&name("busy")).unwrap();
        }
        engine.run_pending().unwrap();
    }
    let segments = disk
        .files()
        .iter()
        .filter(|path| path.starts_with("/data/wal"))
        .count();
    assert!(segments < 40, "{segments} segments are kept");
    assert_eq!(rows(&engine, &name("quiet")).len(), 1);
}

/// Paused work waits, however often it is requested; synchronous requests are refused; the end of
/// the pause makes up for it.
#[test]
fn flushes_and_compactions_wait_while_they_are_paused() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 1 << 20;
    let engine = rig.open();
    let table = create(&engine);
    assert!(!engine.is_paused(Work::Flushes));
    assert!(!engine.pause(Work::Flushes, true));
    assert!(engine.is_paused(Work::Flushes));
    for number in 0..150 {
        put(&engine, &table, &row(number), &[b'v'; 10_000]);
    }
    engine.run_pending().unwrap();
    assert_eq!((engine.counters().flushes.get(), engine.queues().flushes), (0, 1));
    let refused = engine.flush(&table).unwrap_err().to_string();
    assert!(refused.contains("flushes are paused"), "{refused}");
    assert!(engine.pause(Work::Flushes, false));
    engine.run_pending().unwrap();
    assert_eq!((engine.counters().flushes.get(), engine.queues().flushes), (1, 0));

    assert!(!engine.pause(Work::Compactions, true));
    for number in 0..4 {
        put(&engine, &table, &row(number), b"v");
        engine.flush(&table).unwrap();
    }
    engine.compact(&table, None, true, false).unwrap();
    engine.run_pending().unwrap();
    let compactions = || {
        let counters = engine.counters();
        counters.minor_compactions.get() + counters.major_compactions.get()
    };
    assert_eq!((compactions(), engine.region_stats()[0].store_files), (0, 5));
    let refused = engine.compact(&table, None, true, true).unwrap_err().to_string();
    assert!(refused.contains("compactions are paused"), "{refused}");
    assert!(engine.pause(Work::Compactions, false));
    engine.run_pending().unwrap();
    assert!(compactions() > 0);
    assert_eq!(engine.region_stats()[0].store_files, 1);
    assert_eq!(rows(&engine, &table).len(), 150);
}

/// A flush waits for a store with too many files to be compacted, but not for compactions that are paused.
#[test]
fn a_flush_does_not_wait_for_compactions_that_are_paused() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 1 << 20;
    rig.options.compaction_blocking_files = 2;
    let engine = rig.open();
    let table = create(&engine);
    engine.pause(Work::Compactions, true);
    for number in 0..3 {
        put(&engine, &table, &row(number), b"v");
        engine.flush(&table).unwrap();
    }
    for number in 0..150 {
        put(&engine, &table, &row(number), &[b'v'; 10_000]);
    }
    engine.run_pending().unwrap();
    assert_eq!(engine.counters().flushes.get(), 4);
}

/// Only the blocks of the table that is named go.
#[test]
fn the_blocks_of_one_table_leave_the_cache() {
    let engine = Rig::in_memory().open();
    for table in ["a", "b"] {
        engine
            .create_table(descriptor(table, &["f"]), Vec::new())
            .unwrap();
        put(&engine, &name(table), b"row", b"v");
        engine.flush(&name(table)).unwrap();
        assert_eq!(get(&engine, &name(table), b"row"), Some(b"v".to_vec()));
    }
    let blocks = || engine.cache_usage().blocks.iter().sum::<u64>();
    let both = blocks();
    let removed = engine.clear_block_cache(Some(&name("a"))).unwrap();
    assert!(removed > 0);
    assert_eq!(blocks(), both - removed);
    assert!(engine.clear_block_cache(None).unwrap() > 0);
    assert_eq!(blocks(), 0);
    engine.clear_block_cache(Some(&name("none"))).unwrap_err();
    assert_eq!(get(&engine, &name("a"), b"row"), Some(b"v".to_vec()));
}

/// A flush or compaction whose manifest edit finds no disk space has had no effect: its output must not stay
/// and make the disk fuller with every try.
#[test]
fn outputs_that_found_no_place_in_the_manifest_are_removed() {
    let disk = SimFs::new(1, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let engine = rig.open();
    let table = create(&engine);
    let files = || {
        disk.files()
            .iter()
            .filter(|path| path.starts_with("/data/tables"))
            .count()
    };
    let mut failures = [0, 0];
    for number in 0..60 {
        put(&engine, &table, &row(number), b"v");
        if number == 30 {
            // The manifest asks for space at intervals of edits: one more, and it is the other kind
            // that asks.
            engine.flush(&table).unwrap();
            put(&engine, &table, &row(number), b"v");
        }
        let before = files();
        let fault = disk.fail(OpKind::Allocate, "MANIFEST", Errno::NOSPC, Times::Always);
        if engine.flush(&table).is_err() {
            failures[0] += 1;
            assert_eq!(files(), before, "after flush {number}");
        }
        disk.heal(fault);
        engine.flush(&table).unwrap();
        let before = files();
        let fault = disk.fail(OpKind::Allocate, "MANIFEST", Errno::NOSPC, Times::Always);
        if engine.compact(&table, None, true, true).is_err() {
            failures[1] += 1;
            assert_eq!(files(), before, "after compaction {number}");
        }
        disk.heal(fault);
    }
    assert!(failures.iter().all(|count| *count > 0), "{failures:?}");
    drop(engine);
    let engine = Rig::simulated(&disk.crash_keep_all()).open();
    assert_eq!(rows(&engine, &table).len(), 60);
}

/// One row fills the region, which is far over its size: there is nowhere to split it, so nothing is flushed
/// or cancelled in trying.
#[test]
fn a_region_of_one_row_is_left_alone() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 200_000;
    rig.options.region_max_bytes = 100_000;
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..100 {
        let column = row(number);
        let bytes = [number as u8; 10_000];
        let fill = [value(&column, &bytes)];
        apply(&engine, &table, &[mutation(b"one", &fill)]).unwrap();
        engine.run_pending().unwrap();
    }
    engine.flush(&table).unwrap();
    engine.run_pending().unwrap();
    assert_eq!(engine.regions(&table).unwrap().len(), 1);
    let flushes = engine.counters().flushes.get();
    put(&engine, &table, b"one", b"v");
    engine.compact(&table, None, true, true).unwrap();
    engine.run_pending().unwrap();
    assert_eq!(engine.counters().flushes.get(), flushes);
}

/// COMPACTION_ENABLED and SPLIT_ENABLED stop automatic work, until they are taken back.
#[test]
fn a_table_may_refuse_compactions_and_splits() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 20_000;
    let engine = rig.open();
    let mut table = descriptor("t", &["f"]);
    for option in ["COMPACTION_ENABLED", "SPLIT_ENABLED"] {
        table.attributes.insert(option.into(), b"false".to_vec());
    }
    engine.create_table(table.clone(), Vec::new()).unwrap();
    for number in 0..20 {
        put(&engine, &table.name, &row(number), &[b'v'; 10_000]);
        engine.flush(&table.name).unwrap();
        engine.run_pending().unwrap();
    }
    let files = || {
        let stats = engine.region_stats();
        (
            stats.len(),
            stats.iter().map(|region| region.store_files).sum::<u64>(),
        )
    };
    assert_eq!(files(), (1, 20));
    table.attributes.remove(&b"COMPACTION_ENABLED"[..]);
    engine.alter_table(table.clone()).unwrap();
    engine.flush(&table.name).unwrap();
    engine.run_pending().unwrap();
    assert!(files().0 == 1 && files().1 < 20, "{:?}", files());
    table.attributes.remove(&b"SPLIT_ENABLED"[..]);
    engine.alter_table(table.clone()).unwrap();
    engine.flush(&table.name).unwrap();
    engine.run_pending().unwrap();
    assert!(files().0 > 1);
    assert_eq!(rows(&engine, &table.name).len(), 20);
}

/// A region can be flushed and compacted by itself; one that is gone is named.
#[test]
fn upkeep_of_one_region_touches_no_other() {
    let mut rig = Rig::in_memory();
    // No automatic compactions.
    rig.options.compaction_min_files = 9;
    let engine = rig.open();
    engine
        .create_table(descriptor("t", &["f", "g"]), vec![row(5)])
        .unwrap();
    let table = name("t");
    let regions = engine.regions(&table).unwrap();
    let files = || -> Vec<u64> {
        engine
            .region_stats()
            .iter()
            .map(|region| region.store_files)
            .collect()
    };
    for _ in 0..2 {
        put(&engine, &table, &row(1), b"v");
        put(&engine, &table, &row(9), b"v");
        engine.flush(&table).unwrap();
    }
    put(&engine, &table, &row(1), b"v");
    put(&engine, &table, &row(9), b"v");
    engine.flush_region(regions[1].id).unwrap();
    assert_eq!(files(), [2, 3]);
    engine.compact_region(regions[0].id, None, true, true).unwrap();
    assert_eq!(files(), [1, 3]);
    engine
        .compact_region(regions[1].id, Some(b"g"), true, false)
        .unwrap();
    engine.run_pending().unwrap();
    assert_eq!(files(), [1, 3], "the other family has no files");
    engine
        .compact_region(regions[1].id, Some(b"f"), true, false)
        .unwrap();
    engine.run_pending().unwrap();
    assert_eq!(files(), [1, 1]);
    engine.merge_regions(&[regions[0].id, regions[1].id]).unwrap();
    let gone = engine.flush_region(regions[0].id).unwrap_err();
    assert!(matches!(gone, basalt_engine::Error::NoSuchRegion(_)), "{gone}");
}

/// A compaction that waits for its rate limit is listed with its remaining work, and afterwards
/// with its outcome. The clock stands still, so it waits until it is cancelled.
#[test]
fn a_running_compaction_is_seen() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let mut rig = Rig::in_memory();
    rig.clock = clock.clone();
    rig.options.memstore_flush_bytes = 64 << 20;
    rig.options.compaction_max_bytes_per_second = 8_000_000;
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..8_000 {
        put(&engine, &table, &row(number), &[b'v'; 100]);
    }
    engine.flush(&table).unwrap();
    let flush = engine.jobs().ended().remove(0);
    assert_eq!((flush.info.kind, flush.info.input_cells), (JobKind::Flush, 8_000));
    assert!(
        matches!(flush.end, JobEnd::Done { written_bytes: 1.. }),
        "{flush:?}"
    );

    // A tenth of a second's bytes may be written at once.
    clock.advance_ms(1_000);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| engine.compact(&table, None, true, true));
        let running = loop {
            match engine.jobs().running().pop() {
                Some(job) if job.cells > 0 => break job,
                _ => std::thread::yield_now(),
            }
        };
        assert_eq!(
            (running.info.kind, running.info.inputs),
            (JobKind::MajorCompaction, 1)
        );
        assert_eq!(running.info.family.as_deref(), Some("f"));
        let left = running.bytes_left() as f64 / running.info.input_bytes as f64;
        assert!((0.4..0.6).contains(&left), "{left} of {running:?}");
        engine.close().unwrap();
        compacting.join().unwrap().unwrap();
    });
    assert!(engine.jobs().running().is_empty());
    assert_eq!(engine.jobs().ended()[0].end, JobEnd::Cancelled);
}

/// Cells that have been in memory for an hour are flushed, however the wall clock is set meanwhile.
#[test]
fn old_edits_are_flushed_whatever_the_wall_clock_says() {
    const BEGIN_MS: u64 = 1_700_000_000_000;
    const MINUTE_MS: u64 = 60_000;
    for set_to in [BEGIN_MS - 1_440 * MINUTE_MS, BEGIN_MS + 1_440 * MINUTE_MS] {
        let clock = Arc::new(ManualClock::at(BEGIN_MS));
        let mut rig = Rig::in_memory();
        rig.clock = clock.clone();
        let engine = rig.open();
        clock.advance_ms(90 * MINUTE_MS);
        let table = create(&engine);
        put(&engine, &table, b"a", b"v");
        clock.set_wall_ms(set_to);
        clock.advance_ms(59 * MINUTE_MS);
        engine.run_pending().unwrap();
        assert_eq!(engine.counters().flushes.get(), 0);
        clock.advance_ms(2 * MINUTE_MS);
        engine.run_pending().unwrap();
        assert_eq!(engine.counters().flushes.get(), 1);
    }
}

/// A compaction meets a block in the middle of an input that cannot be read, or not be believed. It fails and
/// its inputs stay; reads and the next try name the file; when that can be read again, everything is there.
#[test]
fn a_compaction_of_what_cannot_be_read_fails() {
    // In the middle of the large file.
    const AT: u64 = 1 << 20;
    for unreadable in [true, false] {
        let disk = SimFs::new(1, SimOptions::default());
        let rig = Rig::simulated(&disk);
        let engine = rig.open();
        let table = create(&engine);
        put(&engine, &table, &row(999), b"v");
        engine.flush(&table).unwrap();
        for number in 0..200 {
            put(&engine, &table, &row(number), &[b'v'; 10_000]);
        }
        engine.flush(&table).unwrap();
        drop(engine);
        let files = || {
            let mut files = disk.files();
            files.retain(|path| path.starts_with("/data/tables"));
            files
        };
        let before = files();
        let large = before
            .iter()
            .max_by_key(|path| disk.contents(path).unwrap().len())
            .unwrap();
        let named = large.to_str().unwrap();
        let engine = rig.open();
        let fault = if unreadable {
            // A compaction reads ahead; this is its third piece of the file.
            Some(disk.fail(OpKind::Read, named, Errno::IO, Times::From(2)))
        } else {
            disk.flip_bit(large, AT * 8).unwrap();
            None
        };
        for _ in 0..2 {
            let error = engine.compact(&table, None, true, true).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
            assert_eq!(files(), before, "{error}");
        }
        assert_eq!(engine.counters().compaction_failures.get(), 2);
        assert_eq!(engine.region_stats()[0].store_files, 2);
        let all = FetchLimits {
            results: usize::MAX,
            bytes: usize::MAX,
            time: Duration::from_mins(1),
        };
        let mut scanner = engine.scan(&table, Scan::default()).unwrap();
        let error = scanner
            .fetch(&all, &mut CellBatch::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains(named), "{error}");
        match fault {
            Some(fault) => disk.heal(fault),
            None => disk.flip_bit(large, AT * 8).unwrap(),
        }
        assert_eq!(rows(&engine, &table).len(), 201);
        engine.compact(&table, None, true, true).unwrap();
        assert_eq!(engine.region_stats()[0].store_files, 1);
        assert_eq!(rows(&engine, &table).len(), 201);
    }
}
