//! A reset removes tables, snapshots and namespaces, whatever their state, and can be repeated.

use basalt_engine::engine::Removed;
use basalt_engine::fs::UnsyncedFs;
use basalt_engine::schema::NamespaceDescriptor;
use basalt_engine::{Engine, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::rig::{Rig, apply, create, descriptor, get, mutation, name, put, value};

/// Two tables (one disabled), a third in a namespace of its own, a snapshot.
fn fill(engine: &Engine) {
    let table = create(engine);
    put(engine, &table, b"row", b"flushed");
    engine.flush(&table).unwrap();
    engine.snapshot(&table, "s", true, 0).unwrap();
    put(engine, &table, b"row", b"in memory");
    engine
        .create_table(descriptor("disabled", &["f"]), Vec::new())
        .unwrap();
    engine.disable_table(&name("disabled")).unwrap();
    engine
        .create_namespace(NamespaceDescriptor {
            name: "n".into(),
            ..NamespaceDescriptor::default()
        })
        .unwrap();
    engine
        .create_table(descriptor("n:t", &["f"]), vec![b"m".to_vec()])
        .unwrap();
    put(engine, &name("n:t"), b"z", b"v");
}

fn assert_empty(engine: &Engine) {
    let user = engine.tables();
    assert!(user.iter().all(|(table, _)| table.name.is_system()), "{user:?}");
    let namespaces: Vec<_> = engine.namespaces().into_iter().map(|it| it.name).collect();
    assert_eq!(namespaces, ["default", "hbase"]);
    assert!(engine.snapshots().is_empty() && engine.region_stats().is_empty());
    assert_eq!(engine.memstore_bytes(), 0);
}

#[test]
fn a_reset_leaves_an_empty_database() {
    let (_disk, rig, engine) = Rig::open_simulated();
    let all = Removed {
        tables: 3,
        namespaces: 1,
        snapshots: 1,
    };
    for _ in 0..2 {
        fill(&engine);
        assert_eq!(engine.reset().unwrap(), all);
        assert_empty(&engine);
    }
    assert_eq!(engine.reset().unwrap(), Removed::default());

    // A table of the same name has nothing of the old one, also after a crash.
    let table = create(&engine);
    assert_eq!(get(&engine, &table, b"row"), None);
    put(&engine, &table, b"row", b"new");
    drop(engine);
    let engine = rig.open();
    assert_eq!(get(&engine, &table, b"row"), Some(b"new".to_vec()));
    engine.close().unwrap();
    assert_eq!(rig.problems(), Vec::<String>::new());
}

/// Goal: writers that run during resets get an answer, and nothing of them stays. Method: threads
/// that write to a table which another thread resets and creates, on files without syncs.
#[test]
fn writers_and_resets_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig {
        vfs: Arc::new(UnsyncedFs::default()),
        ..Rig::on_disk(&dir)
    };
    let engine = rig.open();
    let table = create(&engine);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..2_u8 {
            let (engine, table, stop) = (&engine, &table, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    let bytes = [number; 100];
                    let written = apply(engine, table, &[mutation(b"row", &[value(b"q", &bytes)])]);
                    assert!(
                        matches!(written, Ok(()) | Err(Error::NoSuchTable(_))),
                        "{written:?}"
                    );
                }
            });
        }
        for _ in 0..50 {
            assert_eq!(engine.reset().unwrap().tables, 1);
            create(&engine);
        }
        stop.store(true, Ordering::Release);
    });
    engine.reset().unwrap();
    assert_empty(&engine);
    engine.close_unflushed().unwrap();
    engine.close().unwrap();
    assert!(matches!(engine.reset(), Err(Error::ShuttingDown)));
    assert_empty(&rig.open());
}
