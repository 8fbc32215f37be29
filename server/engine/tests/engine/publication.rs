//! When writes become visible and durable: writes without waiters, durability, and background work
//! by itself.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::check;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::metrics::{EventListener, FlushEvent};
use basalt_engine::op::{Check, ColumnIncrement, CompareOp, ReadTier, RowMutation, RowUpdate};
use basalt_engine::schema::Durability;
use basalt_engine::{Engine, Error};

use crate::rig::{F, Rig, check_in, create, descriptor, get, mutation, put, row, rows, update_in, value};

fn add_one() -> RowUpdate<'static> {
    RowUpdate::Increment(vec![ColumnIncrement {
        family: F,
        qualifier: b"q",
        amount: 1,
        timestamp: None,
    }])
}

/// Passes while the row has no value.
const ABSENT: Check<'static> = Check {
    family: F,
    qualifier: b"q",
    op: CompareOp::Equal,
    value: None,
};

/// Readers see a write when it is durable. A read-modify-write sees it before, so that nothing is counted
/// twice or lost.
#[test]
fn an_increment_sees_what_readers_do_not_see_yet() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let mut out = CellBatch::new();
    let add = |out: &mut CellBatch| {
        engine
            .update(&table, b"a", &add_one(), None, Durability::UseDefault, out)
            .unwrap()
    };
    let first = add(&mut out);
    assert_eq!(get(&engine, &table, b"a"), None, "not durable, so not visible");
    let second = add(&mut out);
    assert_eq!(out.row(1).cells().next().unwrap().value, 2_u64.to_be_bytes());
    second.wait().unwrap();
    assert_eq!(get(&engine, &table, b"a"), Some(2_u64.to_be_bytes().to_vec()));
    first.wait().unwrap();
}

/// A flush never writes unpublished cells to a file: a reader that captures the file would see them
/// too early.
#[test]
fn a_flush_waits_for_publication() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let commit = engine
        .mutate(&table, &[mutation(b"a", &[value(b"q", b"v")])])
        .unwrap();
    assert!(engine.read_point().0 < commit.seq());
    engine.flush(&table).unwrap();
    assert!(engine.read_point().0 >= commit.seq());
    assert_eq!(get(&engine, &table, b"a"), Some(b"v".to_vec()));
}

/// "The check failed" rests on a cell that was read, so that must be durable before the answer is
/// sent.
#[test]
fn a_failed_check_waits_for_what_it_saw() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let commit = engine
        .mutate(&table, &[mutation(b"a", &[value(b"q", b"v")])])
        .unwrap();
    let other = mutation(b"a", &[value(b"q", b"w")]);
    assert!(
        engine
            .check_and_mutate(&table, &ABSENT, &other)
            .unwrap()
            .is_none()
    );
    assert!(engine.read_point().0 >= commit.seq());
    let commit = engine
        .mutate(&table, &[mutation(b"a", &[value(b"q", b"no counter")])])
        .unwrap();
    let refused = engine.update(
        &table,
        b"a",
        &add_one(),
        None,
        Durability::UseDefault,
        &mut CellBatch::new(),
    );
    assert!(matches!(refused, Err(Error::DoNotRetry(_))));
    assert!(engine.read_point().0 >= commit.seq());
}

/// A call on a network thread gets an answer at once or none, and then nothing has happened.
#[test]
fn a_write_that_may_not_wait_does_not() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    let table = create(&engine);
    let mut out = CellBatch::new();
    let add = |engine: &Engine, out: &mut CellBatch| {
        update_in(engine, ReadTier::Memory, &table, b"a", &add_one(), out)
    };
    let other = mutation(b"a", &[value(b"q", b"w")]);
    let check = |engine: &Engine| check_in(engine, ReadTier::Memory, &table, &ABSENT, &other);

    // Memory has the row, and the answer is a write that is waited for later.
    let commit = add(&engine, &mut out).unwrap();
    // This one has no write of its own, and the cell that it rests on is not durable.
    assert!(matches!(check(&engine), Err(Error::NotInMemory)));
    assert!(engine.read_point().0 < commit.seq());
    commit.wait().unwrap();
    assert!(check(&engine).unwrap().is_none());

    // On the disk, and not read yet.
    engine.flush(&table).unwrap();
    drop(engine);
    let engine = rig.open();
    assert!(matches!(add(&engine, &mut out), Err(Error::NotInMemory)));
    assert!(matches!(check(&engine), Err(Error::NotInMemory)));
    assert_eq!(get(&engine, &table, b"a"), Some(1_u64.to_be_bytes().to_vec()));
    out.clear();
    add(&engine, &mut out).unwrap().wait().unwrap();
    assert_eq!(out.row(0).cells().next().unwrap().value, 2_u64.to_be_bytes());
    assert_eq!(get(&engine, &table, b"a"), Some(2_u64.to_be_bytes().to_vec()));
}

/// DURABILITY: a table's default for writes that set none, and for no others.
#[test]
fn a_table_says_how_durable_its_writes_are() {
    let disk = SimFs::new(3, SimOptions::default());
    let engine = Rig::simulated(&disk).open();
    let mut table = descriptor("t", &["f"]);
    table
        .attributes
        .insert(b"DURABILITY".to_vec(), b"SKIP_WAL".to_vec());
    let table_name = table.name.clone();
    engine.create_table(table, Vec::new()).unwrap();
    for (key, durability) in [(row(0), Durability::UseDefault), (row(1), Durability::SyncWal)] {
        let writes = [value(b"q", b"v")];
        let asked = RowMutation {
            durability,
            ..mutation(&key, &writes)
        };
        engine.mutate(&table_name, &[asked]).unwrap().wait().unwrap();
    }
    drop(engine);
    let engine = Rig::simulated(&disk.crash(1)).open();
    let left: Vec<String> = rows(&engine, &table_name)
        .into_iter()
        .map(|(row, _)| row)
        .collect();
    assert_eq!(left, ["r001"]);
}

/// SKIP_WAL rows are lost in a crash unless they were flushed; everything else stays, whatever it shared the
/// log with.
#[test]
fn durability_is_what_was_asked_for() {
    let disk = SimFs::new(2, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let engine = rig.open();
    let table = create(&engine);
    let write = |number: usize, durability| {
        let key = row(number);
        let writes = [value(b"q", b"v")];
        let asked = RowMutation {
            durability,
            ..mutation(&key, &writes)
        };
        engine.mutate(&table, &[asked]).unwrap().wait().unwrap();
        assert_eq!(get(&engine, &table, &key), Some(b"v".to_vec()), "{durability:?}");
    };
    write(0, Durability::SkipWal);
    engine.flush(&table).unwrap();
    write(1, Durability::SkipWal);
    write(2, Durability::FsyncWal);
    write(3, Durability::SkipWal);
    write(4, Durability::SyncWal);
    drop(engine);
    let survivor = Rig::simulated(&disk.crash(1));
    let engine = survivor.open();
    let left: Vec<String> = rows(&engine, &table).into_iter().map(|(row, _)| row).collect();
    assert_eq!(left, ["r000", "r002", "r004"]);
    // Sequence ids of lost rows are not given out again for anything that is on disk.
    write_more(&engine, &table);
    drop(engine);
    assert_eq!(
        check(&survivor.vfs, &survivor.dir, &mut |_| ()).unwrap().problems,
        0
    );
}

fn write_more(engine: &Engine, table: &basalt_engine::schema::TableName) {
    put(engine, table, &row(2), b"newer");
    engine.flush(table).unwrap();
    assert_eq!(get(engine, table, &row(2)), Some(b"newer".to_vec()));
}

#[derive(Debug)]
struct Flushes(Sender<FlushEvent>);

impl EventListener for Flushes {
    fn flushed(&self, event: &FlushEvent) {
        // The receiver is gone at the end of the test.
        let _ = self.0.send(event.clone());
    }
}

/// With threads of its own the engine flushes a full memstore without being asked.
#[test]
fn threads_flush_a_full_memstore() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::on_disk(&dir);
    rig.options.memstore_flush_bytes = 256 << 10;
    let (sender, flushes) = channel();
    rig.listener = Arc::new(Flushes(sender));
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..400 {
        put(&engine, &table, &row(number), &[7; 1_000]);
    }
    let event = flushes
        .recv_timeout(Duration::from_secs(30))
        .expect("a flush happens by itself");
    assert_eq!(event.table, table);
    assert!(event.cells > 0 && event.written_bytes > 0);
    assert_eq!(rows(&engine, &table).len(), 400);
    engine.close().unwrap();
}
