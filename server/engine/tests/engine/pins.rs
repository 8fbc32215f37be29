//! Pins: what a copy of one holds after whatever was done since, which files it keeps, and where its log can
//! be cut.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::engine::{Pin, Restore};
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::id::SeqId;

use crate::rig::{Rig, create, descriptor, name, put, row, rows};

fn read(vfs: &dyn Vfs, path: &Path, bytes: u64) -> Vec<u8> {
    let file = vfs.open(path, Open::Read).unwrap();
    let mut content = vec![0; usize::try_from(bytes).unwrap()];
    file.read_exact_at(&mut content, 0).unwrap();
    content
}

fn write(vfs: &dyn Vfs, path: &Path, content: &[u8], length: u64) {
    vfs.create_dir_all(path.parent().unwrap()).unwrap();
    let file = vfs.open(path, Open::CreateNew).unwrap();
    file.write_at(content, 0).unwrap();
    file.set_len(length).unwrap();
    file.sync_all().unwrap();
}

/// Copies a pin's files to another disk, as a backup and a restore do.
pub(crate) fn copied(from: &Rig, pin: &Pin, change: impl FnOnce(&mut Restore), upto: Option<SeqId>) -> Rig {
    let disk = SimFs::new(2, SimOptions::default());
    disk.create_dir_all(Path::new("/data")).unwrap();
    let to = Rig::simulated(&disk);
    let mut restore = Restore::decode(&pin.manifest(), Path::new("a backup")).unwrap();
    change(&mut restore);
    for file in restore.files() {
        let content = read(&*from.vfs, &from.dir.join(&file.path), file.bytes);
        write(&*to.vfs, &to.dir.join(&file.path), &content, file.bytes);
    }
    for segment in pin.segments().unwrap() {
        let content = read(&*from.vfs, &from.dir.join(&segment.path), segment.bytes);
        write(&*to.vfs, &to.dir.join(&segment.path), &content, segment.length);
    }
    if let Some(upto) = upto {
        restore.cut_log(&*to.vfs, &to.dir, upto).unwrap();
    }
    restore.install(&*to.vfs, &to.dir).unwrap();
    assert_eq!(to.problems(), Vec::<String>::new());
    to
}

fn fill(engine: &Engine, numbers: std::ops::Range<usize>, value: &str) {
    for number in numbers {
        put(engine, &name("t"), &row(number), value.as_bytes());
    }
}

fn files(disk: &SimFs, below: &str) -> Vec<PathBuf> {
    let mut files = disk.files();
    files.retain(|path| path.starts_with(below));
    files
}

/// Goal: a copy of a pin has everything acknowledged before it, and nothing later, whatever was done
/// between pin and copy: writes, flushes, compactions, a drop of the table, and of a snapshot.
#[test]
fn a_copy_of_a_pin_is_of_its_moment() {
    let (disk, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, 0..10, "first");
    engine.flush(&table).unwrap();
    engine.snapshot(&table, "s", true, 0).unwrap();
    fill(&engine, 5..15, "second");
    engine.flush(&table).unwrap();
    fill(&engine, 15..20, "in memory");
    let expected = rows(&engine, &table);

    let pin = engine.pin().unwrap();
    fill(&engine, 0..600, "later");
    engine.flush(&table).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    engine.delete_snapshot("s").unwrap();
    engine.disable_table(&table).unwrap();
    engine.drop_table(&table).unwrap();
    engine.create_table(descriptor("u", &["f"]), Vec::new()).unwrap();

    let copy = copied(&rig, &pin, |_| (), None);
    let restored = copy.open();
    assert_eq!(rows(&restored, &table), expected);
    restored.clone_snapshot("s", &name("c")).unwrap();
    assert_eq!(rows(&restored, &name("c")).len(), 10);
    assert_eq!(restored.cluster_id(), engine.cluster_id());
    put(&restored, &table, b"new", b"writes go on");
    restored.close().unwrap();
    assert_eq!(rows(&copy.open(), &table).len(), 21);

    let before = (
        files(&disk, "/data/tables").len(),
        files(&disk, "/data/snapshots").len(),
    );
    assert!(before.0 >= 2 && before.1 >= 1, "{before:?}");
    drop(pin);
    engine.run_pending().unwrap();
    assert_eq!(files(&disk, "/data/tables"), Vec::<PathBuf>::new());
    assert_eq!(files(&disk, "/data/snapshots"), Vec::<PathBuf>::new());
}

/// Goal: segments of the log stay while a pin needs them, and go afterwards.
#[test]
fn the_log_of_a_pin_is_kept() {
    let (disk, _, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, 0..10, "first");
    let pin = engine.pin().unwrap();
    let oldest = pin.segments().unwrap()[0].path.clone();
    for round in 0..5 {
        fill(&engine, 0..999, &format!("{round}"));
        engine.flush(&table).unwrap();
    }
    let oldest = Path::new("/data").join(oldest);
    assert!(files(&disk, "/data/wal").contains(&oldest));
    assert!(files(&disk, "/data/wal").len() > 4);
    drop(pin);
    fill(&engine, 0..10, "last");
    engine.flush(&table).unwrap();
    assert!(!files(&disk, "/data/wal").contains(&oldest));
    assert!(
        files(&disk, "/data/wal").len() <= 3,
        "{:?}",
        files(&disk, "/data/wal")
    );
}

/// Goal: a snapshot that is taken again under a removed one's name keeps its files when the pin ends.
#[test]
fn a_pin_does_not_take_the_files_of_a_new_snapshot() {
    let (_, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, 0..10, "first");
    engine.snapshot(&table, "s", true, 0).unwrap();
    let pin = engine.pin().unwrap();
    engine.delete_snapshot("s").unwrap();
    engine.snapshot(&table, "s", true, 0).unwrap();
    drop(pin);
    drop(engine);
    let engine = rig.open();
    engine.clone_snapshot("s", &name("c")).unwrap();
    assert_eq!(rows(&engine, &name("c")).len(), 10);
}

/// Goal: a cut at any row leaves exactly the rows before it, at the ends of segments too.
#[test]
fn a_log_can_be_cut_at_every_row() {
    let (_, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, 0..3, "flushed");
    engine.flush(&table).unwrap();
    let base = engine.pin().unwrap().position();
    // A few segments' worth, so that cuts remove some.
    let value = "v".repeat(3000);
    for number in 3..60 {
        put(&engine, &table, &row(number), value.as_bytes());
    }
    let pin = engine.pin().unwrap();
    assert_eq!(pin.position().0, base.0 + 57);
    assert!(pin.segments().unwrap().len() >= 3);
    for upto in base.0..=pin.position().0 {
        let copy = copied(&rig, &pin, |_| (), Some(SeqId(upto)));
        let expected = 3 + usize::try_from(upto - base.0).unwrap();
        let found = rows(&copy.open(), &table);
        assert_eq!(found.len(), expected, "cut at {upto}");
        assert_eq!(found.last().unwrap().0.as_bytes(), row(expected - 1));
    }
}

/// Goal: tables that are left out are gone, with their edits in the log; a new identity is one.
#[test]
fn tables_can_be_left_out() {
    let (_, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    engine
        .create_table(descriptor("other", &["f"]), Vec::new())
        .unwrap();
    fill(&engine, 0..10, "first");
    put(&engine, &name("other"), b"x", b"y");
    engine.snapshot(&name("other"), "s", true, 0).unwrap();
    let pin = engine.pin().unwrap();
    let vfs = Arc::clone(&rig.vfs);
    let copy = copied(
        &rig,
        &pin,
        |restore| {
            assert_eq!(restore.tables().len(), 2);
            restore.keep_tables(&[name("absent")]).unwrap_err();
            restore.keep_tables(std::slice::from_ref(&table)).unwrap();
            restore.draw_cluster_id(&*vfs).unwrap();
        },
        None,
    );
    let restored = copy.open();
    assert_eq!(rows(&restored, &table).len(), 10);
    assert!(restored.describe_table(&name("other")).is_err());
    assert!(restored.snapshots().is_empty());
    assert_ne!(restored.cluster_id(), engine.cluster_id());
}

/// Goal: a crash with a pin loses nothing and leaves nothing that a start does not sort out.
#[test]
fn a_crash_ends_a_pin() {
    let (disk, _, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, 0..10, "first");
    engine.snapshot(&table, "s", true, 0).unwrap();
    let pin = engine.pin().unwrap();
    engine.delete_snapshot("s").unwrap();
    fill(&engine, 10..20, "second");
    engine.flush(&table).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    let after = Rig::simulated(&disk.crash(7));
    drop(pin);
    let engine = after.open();
    assert_eq!(rows(&engine, &table).len(), 20);
    drop(engine);
    assert_eq!(after.problems(), Vec::<String>::new());
}
