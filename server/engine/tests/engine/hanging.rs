//! A disk that hangs: whoever waits for it waits, new writes are refused at once, reads go on, and when the disk is back so are
//! writes, without a restart.

use std::time::Duration;

use basalt_engine::Error;
use basalt_engine::fs::sim::{OpKind, SimFs, SimOptions};

use crate::rig::{Rig, apply, create, get, mutation, put, value};

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
