//! A disk that hangs: calls that need it wait, new writes are refused at once, reads go on, and
//! when the disk is back so are writes, without a restart.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::fs::sim::{OpKind, SimFs, SimOptions};
use basalt_engine::op::{Check, ColumnIncrement, CompareOp, RowUpdate, Write};
use basalt_engine::schema::{Durability, TableName};
use basalt_engine::{Engine, Error, Result};

use crate::rig::{F, Rig, apply, create, get, mutation, put, value};

#[test]
fn writes_are_refused_while_the_disk_hangs() {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = Rig::simulated(&disk);
    rig.options.wal_stall = Duration::ZERO;
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"before", b"1");
    assert_eq!(engine.stalled(), None);

    disk.hang(OpKind::Sync, "wal");
    let refused = std::thread::scope(|scope| {
        let waits = scope.spawn(|| apply(&engine, &table, &[mutation(b"waits", &[value(b"q", b"2")])]));
        while engine.stalled().is_none() {
            std::thread::yield_now();
        }
        let refused = engine.mutate(&table, &[mutation(b"later", &[value(b"q", b"3")])]);
        let refused = refused.expect_err("the log waits for its sync");
        assert!(engine.stalled().is_some());
        assert_eq!(get(&engine, &table, b"before").as_deref(), Some(&b"1"[..]));
        assert_eq!(get(&engine, &table, b"waits"), None, "not durable yet");
        disk.resume();
        waits.join().unwrap().unwrap();
        refused
    });
    let Error::RegionTooBusy(why) = refused else {
        panic!("{refused}");
    };
    for word in ["waiting for the disk", "wal.stall_ms = 0"] {
        assert!(why.contains(word), "{why:?} does not say {word}");
    }
    assert_eq!(engine.counters().stalled_writes.get(), 1);
    assert_eq!(get(&engine, &table, b"waits").as_deref(), Some(&b"2"[..]));
    put(&engine, &table, b"after", b"4");
    assert_eq!(engine.stalled(), None);
    engine.close().unwrap();
}

/// A table with one row, `a`, in a file of which nothing is in memory.
fn on_disk(disk: &SimFs, rig: &Rig) -> (Arc<Engine>, TableName, PathBuf) {
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"a", &1_u64.to_be_bytes());
    engine.flush(&table).unwrap();
    drop(engine);
    let file = disk
        .files()
        .into_iter()
        .find(|path| path.starts_with("/data/tables"))
        .unwrap();
    (rig.open(), table, file)
}

/// Runs `write`, which reads the file, and `meanwhile` while that read waits.
fn while_it_reads<M>(
    (disk, engine, file): (&SimFs, &Engine, &PathBuf),
    write: impl FnOnce() -> Result<()> + Send,
    meanwhile: impl FnOnce() -> M,
) -> (Result<()>, M) {
    disk.hang(OpKind::Read, file.to_str().unwrap());
    let before = engine.cache_usage().misses;
    std::thread::scope(|scope| {
        let writes = scope.spawn(write);
        // A block that is not in the cache is read next.
        while engine.cache_usage().misses == before {
            std::thread::yield_now();
        }
        let done = meanwhile();
        disk.resume();
        (writes.join().unwrap(), done)
    })
}

/// The newest value of row `a` goes from 1 to 2.
fn one_more(engine: &Engine, table: &TableName, by_check: bool) -> Result<()> {
    let (one, two) = (1_u64.to_be_bytes(), 2_u64.to_be_bytes());
    if by_check {
        let check = Check {
            family: F,
            qualifier: b"q",
            op: CompareOp::Equal,
            value: Some(&one),
        };
        let commit = engine.check_and_mutate(table, &check, &mutation(b"a", &[value(b"q", &two)]))?;
        return commit.expect("the check passes").wait();
    }
    let update = RowUpdate::Increment(vec![ColumnIncrement {
        family: F,
        qualifier: b"q",
        amount: 1,
        timestamp: None,
    }]);
    let durability = Durability::UseDefault;
    let commit = engine.update(table, b"a", &update, None, durability, &mut CellBatch::new())?;
    commit.wait()
}

/// A write that depends on a read holds the row's lock from before the read: no other write changes
/// the cells in between.
#[test]
fn a_row_is_locked_while_a_write_looks_at_it() {
    for by_check in [true, false] {
        let disk = SimFs::new(1, SimOptions::default());
        let mut rig = Rig::simulated(&disk);
        rig.options.row_lock_wait = Duration::ZERO;
        let (engine, table, file) = on_disk(&disk, &rig);
        let other = [value(b"q", b"other")];
        let (written, refused) = while_it_reads(
            (&disk, &engine, &file),
            || one_more(&engine, &table, by_check),
            || apply(&engine, &table, &[mutation(b"a", &other)]),
        );
        written.unwrap();
        assert!(
            matches!(refused, Err(Error::RowLockTimeout(_))),
            "by check {by_check}: {refused:?}"
        );
        assert_eq!(get(&engine, &table, b"a"), Some(2_u64.to_be_bytes().to_vec()));
    }
}

/// While a write reads stored cells, the region's memstore is switched and flushed. All of the
/// write goes into the new memstore, and none of it into the old one.
#[test]
fn a_memstore_is_switched_while_a_write_looks() {
    for kind in ["mutation", "check", "increment"] {
        let disk = SimFs::new(1, SimOptions::default());
        let (engine, table, file) = on_disk(&disk, &Rig::simulated(&disk));
        put(&engine, &table, b"b", b"in memory");
        let write = || {
            if kind != "mutation" {
                return one_more(&engine, &table, kind == "check");
            }
            // Which version it deletes, it has to look up.
            let delete = Write::DeleteVersion {
                family: F,
                qualifier: b"q",
                timestamp: None,
            };
            apply(&engine, &table, &[mutation(b"a", &[delete, value(b"r", b"new")])])
        };
        let (written, flushed) = while_it_reads((&disk, &engine, &file), write, || engine.flush(&table));
        flushed.unwrap();
        written.unwrap();
        let expected = (kind != "mutation").then(|| 2_u64.to_be_bytes().to_vec());
        assert_eq!(get(&engine, &table, b"a"), expected, "{kind}");
        assert_eq!(get(&engine, &table, b"b"), Some(b"in memory".to_vec()), "{kind}");
    }
}
