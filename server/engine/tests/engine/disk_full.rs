//! A simulated disk that fills up, by the data or by others, again and again: writes are refused and nothing
//! else happens, and they come back when space does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use basalt_engine::clock::ManualClock;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::metrics::EventListener;
use basalt_engine::schema::TableName;
use basalt_engine::{Engine, Error, Result};

use crate::no_space::TICKS;
use crate::rig::{Rig, apply, create, descriptor, get, mutation, name, put, row, rows, value};

/// Counts the events about the disk.
#[derive(Debug, Default)]
struct Heard {
    suspended: AtomicUsize,
    resumed: AtomicUsize,
}

impl Heard {
    fn counts(&self) -> (usize, usize) {
        (
            self.suspended.load(Ordering::Relaxed),
            self.resumed.load(Ordering::Relaxed),
        )
    }
}

impl EventListener for Heard {
    fn writes_suspended(&self, why: &str) {
        assert!(why.starts_with("writes suspended: "), "{why}");
        self.suspended.fetch_add(1, Ordering::Relaxed);
    }
    fn writes_resumed(&self, _after: Duration) {
        self.resumed.fetch_add(1, Ordering::Relaxed);
    }
}

const KIB: u64 = 1 << 10;

/// A database on a disk of 4 MiB, of which writes leave 512 KiB free; log segments of 64 KiB.
fn small_disk() -> (SimFs, Rig, Arc<Heard>) {
    let options = SimOptions {
        capacity_bytes: Some(4 << 20),
        ..SimOptions::default()
    };
    let disk = SimFs::new(1, options);
    let heard = Arc::new(Heard::default());
    let mut rig = Rig::simulated(&disk);
    rig.listener = heard.clone();
    rig.options.disk_reserve_bytes = 512 * KIB;
    rig.options.wal_segment_bytes = 64 * KIB;
    (disk, rig, heard)
}

/// A value of 4 KiB that identifies its write; it is nearly incompressible.
fn bytes_of(number: usize) -> Vec<u8> {
    let mut dice = basalt_engine::fs::sim::SplitMix64::new(number as u64);
    let mut bytes = vec![0; 4096];
    dice.fill(&mut bytes);
    bytes
}

fn try_put(engine: &Engine, table: &TableName, number: usize) -> Result<()> {
    let (key, bytes) = (row(number), bytes_of(number));
    apply(engine, table, &[mutation(&key, &[value(b"q", &bytes)])])
}

/// Writes rows from `first` on until one is refused, with background work in between; returns how many went
/// through.
fn fill(engine: &Engine, table: &TableName, first: usize) -> usize {
    for number in first..first + 10_000 {
        match try_put(engine, table, number) {
            Ok(()) => {}
            Err(Error::DiskSpace(_)) => return number - first,
            Err(error) => panic!("row {number}: {error}"),
        }
        engine.run_pending().unwrap();
    }
    panic!("the disk never fills up");
}

fn assert_rows(engine: &Engine, table: &TableName, count: usize) {
    for number in 0..count {
        assert_eq!(
            get(engine, table, &row(number)),
            Some(bytes_of(number)),
            "row {number}"
        );
    }
}

/// Goal: a disk that is filled by the data itself refuses writes while there is space for
/// everything that is in memory; all of it is flushed, reads go on, and one line is logged. With
/// more space all goes on; 50 times.
#[test]
fn a_disk_filled_by_the_data_refuses_writes_and_goes_on() {
    let (disk, rig, heard) = small_disk();
    let engine = rig.open();
    let table = create(&engine);
    let mut count = 0;
    let mut capacity = 4 << 20;
    for cycle in 1..=50 {
        count += fill(&engine, &table, count);
        assert!(engine.counters().suspended_writes.get() as usize >= cycle);
        assert!(
            disk.used_bytes() + 512 * KIB - 64 * KIB <= capacity,
            "the reserve is there"
        );
        assert_eq!(
            heard.counts(),
            (cycle, cycle - 1),
            "said once, however many writes are refused"
        );
        let why = engine.disk().suspended.expect("writes are suspended");
        assert!(why.contains("disk.reserve_bytes = 524288"), "{why}");
        engine.flush(&table).unwrap();
        capacity += 256 * KIB;
        disk.set_capacity(Some(capacity));
        engine.run_pending().unwrap();
        assert_eq!(heard.counts(), (cycle, cycle));
    }
    assert!(count > 2_000, "{count} rows");
    assert_rows(&engine, &table, count);
    drop(engine);
    disk.set_capacity(None);
    let engine = Rig::simulated(&disk.crash(1)).open();
    assert_rows(&engine, &table, count);
}

/// Goal: a disk that another program fills to the last byte, between two polls, refuses nothing
/// that the log has promised and loses nothing; a flush that finds no space is tried again by
/// itself. 50 times.
#[test]
fn a_disk_filled_by_others_loses_nothing() {
    let (disk, mut rig, heard) = small_disk();
    disk.set_capacity(None);
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    rig.clock = clock.clone();
    let engine = rig.open();
    let table = create(&engine);
    let mut count = 0;
    for cycle in 1..=50 {
        disk.set_capacity(Some(disk.used_bytes()));
        // No poll has seen it: the log goes on for as long as it has room.
        let mut taken = 0;
        let refused = loop {
            match try_put(&engine, &table, count) {
                Ok(()) => (count, taken) = (count + 1, taken + 1),
                Err(error) => break error.to_string(),
            }
        };
        assert!(
            (1..40).contains(&taken),
            "{taken} rows of 4 KiB in up to two segments of 64 KiB"
        );
        assert!(
            refused.starts_with("disk space: the log cannot take"),
            "{refused}"
        );
        assert!(
            matches!(engine.flush(&table), Err(Error::Io { .. })),
            "nothing can be written"
        );
        engine.run_pending().unwrap();
        assert_eq!(heard.counts(), (cycle, cycle - 1));
        let refused = try_put(&engine, &table, count).unwrap_err().to_string();
        assert!(refused.starts_with("disk space: writes suspended"), "{refused}");
        assert_eq!(get(&engine, &table, &row(count - 1)), Some(bytes_of(count - 1)));
        let flushes = engine.counters().flushes.get();
        disk.set_capacity(None);
        for _ in 0..TICKS {
            clock.advance_ms(100);
            engine.run_pending().unwrap();
        }
        assert_eq!(heard.counts(), (cycle, cycle));
        assert!(
            engine.counters().flushes.get() > flushes,
            "the flush was made up for"
        );
        try_put(&engine, &table, count).unwrap();
        count += 1;
    }
    assert_rows(&engine, &table, count);
    drop(engine);
    let engine = Rig::simulated(&disk.crash(1)).open();
    assert_rows(&engine, &table, count);
}

/// Goal: a batch over two regions that the log has room for only in part is refused as a whole.
#[test]
fn a_batch_is_refused_as_a_whole() {
    let (disk, rig, _) = small_disk();
    let engine = rig.open();
    let table = name("t");
    engine
        .create_table(descriptor("t", &["f"]), vec![b"m".to_vec()])
        .unwrap();
    disk.set_capacity(Some(disk.used_bytes()));
    let large = vec![7; 48 << 10];
    let cell = [value(b"q", &large)];
    let batch = [mutation(b"a", &cell), mutation(b"z", &cell)];
    let error = apply(&engine, &table, &batch).unwrap_err();
    assert!(matches!(error, Error::DiskSpace(_)), "{error}");
    assert_eq!(rows(&engine, &table), []);
    // One of them alone fits.
    apply(&engine, &table, &batch[..1]).unwrap();
    disk.set_capacity(None);
    apply(&engine, &table, &batch).unwrap();
    assert_eq!(rows(&engine, &table).len(), 2);
}

/// Goal: a compaction that would bring the disk below the mark waits, keeps its inputs, and runs when there
/// is space.
#[test]
fn a_compaction_waits_for_space() {
    let (disk, rig, _) = small_disk();
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..3 {
        for cell in 0..40 {
            try_put(&engine, &table, number * 40 + cell).unwrap();
        }
        engine.flush(&table).unwrap();
    }
    let files = || engine.region_stats()[0].store_files;
    assert_eq!(files(), 3);
    disk.set_capacity(Some(disk.used_bytes() + 512 * KIB + 256 * KIB));
    let error = engine.compact(&table, None, true, true).unwrap_err();
    assert!(error.to_string().contains("the compaction waits"), "{error}");
    assert_eq!((files(), engine.counters().compaction_failures.get()), (3, 1));
    disk.set_capacity(Some(disk.used_bytes() + 2 * 512 * KIB));
    engine.compact(&table, None, true, true).unwrap();
    assert_eq!(files(), 1);
    assert_rows(&engine, &table, 120);
}

/// Goal: a start on a disk with too little space serves reads and refuses writes; a table dropped then gives
/// the space that they need.
#[test]
fn a_start_with_little_space_serves_reads_and_a_drop_brings_writes_back() {
    let (disk, rig, heard) = small_disk();
    let engine = rig.open();
    let table = create(&engine);
    engine
        .create_table(descriptor("large", &["f"]), Vec::new())
        .unwrap();
    put(&engine, &table, b"r", b"v");
    fill(&engine, &name("large"), 0);
    engine.close().unwrap();
    drop(engine);
    disk.set_capacity(Some(disk.used_bytes() + 400 * KIB));

    let engine = rig.open();
    let (suspended, resumed) = heard.counts();
    assert_eq!(
        (suspended, resumed),
        (2, 0),
        "once when it filled up, once at this start"
    );
    assert_eq!(get(&engine, &table, b"r"), Some(b"v".to_vec()));
    let error = apply(&engine, &table, &[mutation(b"r", &[value(b"q", b"w")])]).unwrap_err();
    assert!(matches!(error, Error::DiskSpace(_)), "{error}");
    let files = |disk: &SimFs| {
        let of_table = |path: &&PathBuf| path.starts_with(Path::new("/data/tables/default/large"));
        disk.files().iter().filter(of_table).count()
    };
    assert!(files(&disk) > 0);
    engine.disable_table(&name("large")).unwrap();
    engine.drop_table(&name("large")).unwrap();
    assert_eq!(files(&disk), 0);
    engine.run_pending().unwrap();
    assert_eq!(heard.counts(), (2, 1));
    put(&engine, &table, b"r", b"w");
}
