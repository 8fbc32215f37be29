//! Regions with little data in memory are flushed together, so that they share syncs.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::fs::sim::{Errno, FaultId, OpKind, SimFs, SimOptions, Times};
use basalt_engine::op::Write;
use basalt_engine::options::Background;
use basalt_engine::schema::TableName;

use crate::rig::{F, Rig, apply, descriptor, mutation, name, rows, value};

/// Regions of the table.
const REGIONS: usize = 2_000;

/// Regions of one flush batch, which share a sync of their directory and one of the manifest.
const TOGETHER: usize = 64;

fn key(number: usize) -> Vec<u8> {
    format!("r{number:05}").into_bytes()
}

/// Creates table `t` with that many regions and one row in the memstore of each.
fn dirty(engine: &Engine, regions: usize) -> TableName {
    let splits = (1..regions).map(key).collect();
    engine.create_table(descriptor("t", &["f"]), splits).unwrap();
    write_all(engine, regions);
    name("t")
}

fn write_all(engine: &Engine, regions: usize) {
    let keys: Vec<_> = (0..regions).map(key).collect();
    for keys in keys.chunks(500) {
        let rows: Vec<_> = keys
            .iter()
            .map(|key| mutation(key, &[value(b"q", b"v")]))
            .collect();
        apply(engine, &name("t"), &rows).unwrap();
    }
}

/// Counts calls of one kind whose path contains a pattern.
struct Count<'d>(&'d SimFs, FaultId);

impl<'d> Count<'d> {
    fn of(disk: &'d SimFs, op: OpKind, pattern: &str) -> Self {
        Self(disk, disk.fail(op, pattern, Errno::IO, Times::Nth(u64::MAX)))
    }

    /// The number of calls since the last `take`.
    fn take(&mut self, op: OpKind, pattern: &str) -> u64 {
        let count = self.0.matched(self.1);
        self.0.heal(self.1);
        *self = Self::of(self.0, op, pattern);
        count
    }
}

/// Goal: a flush, a disable and a stop sync each store file once. Syncs of directories and of the
/// manifest are per batch of regions. With and without threads.
#[test]
fn flushes_of_many_regions_share_syncs() {
    for background in [Background::Manual, Background::Threads] {
        let disk = SimFs::new(5, SimOptions::default());
        let mut rig = Rig::simulated(&disk);
        rig.options.background = background;
        // Each memstore takes some tens of kilobytes, even with one row in it.
        rig.options.memstore_total_bytes = 1 << 30;
        let engine = rig.open();
        let table = dirty(&engine, REGIONS);
        let mut files = Count::of(&disk, OpKind::Sync, "/tables/");
        let mut dirs = Count::of(&disk, OpKind::SyncDir, "/tables/");
        let mut edits = Count::of(&disk, OpKind::Sync, "MANIFEST");
        let batches = REGIONS.div_ceil(TOGETHER) as u64;
        let mut look = |what: &str| {
            let found = (
                files.take(OpKind::Sync, "/tables/"),
                dirs.take(OpKind::SyncDir, "/tables/"),
                edits.take(OpKind::Sync, "MANIFEST"),
            );
            assert_eq!(found.0, REGIONS as u64, "{what}: syncs of files");
            assert!(found.1 <= batches, "{what}: {} syncs of directories", found.1);
            // Rolls of the manifest, timestamp marks and log segments add a few syncs.
            assert!(
                found.2 <= batches + 16,
                "{what}: {} syncs of the manifest",
                found.2
            );
        };
        engine.flush(&table).unwrap();
        look("flush");
        assert_eq!(engine.memstore_bytes(), 0);
        write_all(&engine, REGIONS);
        engine.disable_table(&table).unwrap();
        look("disable");
        engine.enable_table(&table).unwrap();
        write_all(&engine, REGIONS);
        engine.close().unwrap();
        look("stop");
        drop(engine);
        let engine = rig.open();
        assert_eq!(
            (engine.memstore_bytes(), rows(&engine, &table).len()),
            (0, REGIONS)
        );
    }
}

fn small(disk: &SimFs, regions: usize) -> (Rig, Arc<Engine>) {
    let rig = Rig::simulated(disk);
    let engine = rig.open();
    dirty(&engine, regions);
    (rig, engine)
}

/// Goal: if the file of one region cannot be synced, that region keeps its rows in memory, and the
/// other regions of the batch are flushed.
#[test]
fn one_region_that_fails_does_not_keep_the_others() {
    let disk = SimFs::new(5, SimOptions::default());
    let (_rig, engine) = small(&disk, 10);
    let fault = disk.fail(OpKind::Sync, "/tables/", Errno::IO, Times::Nth(3));
    let error = engine.flush(&name("t")).expect_err("a file cannot be synced");
    assert!(error.to_string().contains("/tables/"), "{error}");
    let dirty = |engine: &Engine| {
        let stats = engine.table_region_stats(&name("t")).unwrap();
        stats.iter().filter(|region| region.memstore_bytes > 0).count()
    };
    assert_eq!(dirty(&engine), 1);
    assert_eq!(engine.counters().flush_failures.get(), 1);
    disk.heal(fault);
    engine.flush(&name("t")).unwrap();
    assert_eq!(dirty(&engine), 0);
    assert_eq!(rows(&engine, &name("t")).len(), 10);
}

/// Goal: if the sync of the directory fails, no region counts as flushed and no store file is left.
/// The log still has every row.
#[test]
fn without_its_directory_a_batch_is_not_flushed() {
    let disk = SimFs::new(5, SimOptions::default());
    let (rig, engine) = small(&disk, 10);
    let fault = disk.fail(OpKind::SyncDir, "/tables/", Errno::IO, Times::Once);
    engine
        .flush(&name("t"))
        .expect_err("the directory cannot be synced");
    assert_eq!(engine.counters().flushes.get(), 0);
    let files = disk.files();
    assert!(
        files.iter().all(|path| !path.starts_with("/data/tables")),
        "{files:?}"
    );
    disk.heal(fault);
    drop(engine);
    let engine = rig.open();
    assert_eq!(rows(&engine, &name("t")).len(), 10);
}

/// Goal: if the disk has space for only some manifest edits, the regions of those edits are
/// flushed, and the others keep their rows in memory.
#[test]
fn a_manifest_without_space_refuses_a_batch_without_effect() {
    let disk = SimFs::new(5, SimOptions::default());
    let (rig, engine) = small(&disk, 100);
    // The space that is allocated already is enough for some edits.
    disk.fail(OpKind::Allocate, "MANIFEST", Errno::NOSPC, Times::Always);
    let flushed = engine.flush(&name("t"));
    let stats = engine.table_region_stats(&name("t")).unwrap();
    let done = stats.iter().filter(|region| region.store_files == 1).count();
    let kept = stats.iter().filter(|region| region.memstore_bytes > 0).count();
    assert_eq!(done + kept, 100);
    assert_eq!(flushed.is_err(), kept > 0);
    assert!(kept > 0 && done > 0, "{done} flushed, {kept} not");
    assert_eq!(rows(&engine, &name("t")).len(), 100);
    disk.heal_all();
    drop(engine);
    let engine = rig.open();
    assert_eq!(rows(&engine, &name("t")).len(), 100);
}

/// Goal: a stop flushes regions of different tables and families, and writes no file for a family
/// without data.
#[test]
fn a_stop_flushes_what_there_is() {
    let disk = SimFs::new(5, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let engine = rig.open();
    for table in ["a", "b"] {
        let splits = vec![b"h".to_vec(), b"p".to_vec()];
        engine
            .create_table(descriptor(table, &["f", "g"]), splits)
            .unwrap();
    }
    let put = |family, qualifier| Write::Put {
        family,
        qualifier,
        timestamp: None,
        value: b"v",
        ttl_ms: None,
    };
    let both = [put(F, b"q"), put(b"g", b"q")];
    apply(
        &engine,
        &name("a"),
        &[mutation(b"a", &both), mutation(b"i", &both[..1])],
    )
    .unwrap();
    apply(&engine, &name("b"), &[mutation(b"z", &both[1..])]).unwrap();
    engine.close().unwrap();
    drop(engine);
    let files = disk.files();
    let store_files = files.iter().filter(|path| path.starts_with("/data/tables"));
    assert_eq!(store_files.count(), 4);
    let engine = rig.open();
    assert_eq!(engine.memstore_bytes(), 0);
    assert_eq!(
        (rows(&engine, &name("a")).len(), rows(&engine, &name("b")).len()),
        (3, 1)
    );
}
