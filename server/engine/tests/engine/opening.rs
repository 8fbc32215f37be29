//! Opening, closing, and finding out that something is wrong with the directory.

use std::path::Path;
use std::sync::{Arc, Mutex};

use basalt_engine::Error;
use basalt_engine::clock::ManualClock;
use basalt_engine::engine::check;
use basalt_engine::fs::Vfs;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::metrics::EventListener;

use crate::rig::{Rig, apply, create, get, mutation, name, put, row, rows, value};

#[test]
fn a_second_open_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    assert!(matches!(rig.try_open(), Err(Error::Locked(path)) if path == dir.path()));
    engine.close().unwrap();
    drop(rig.open());
    drop(rig.open());
}

#[test]
fn a_closed_engine_refuses_calls_and_opens_again() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    let id = engine.cluster_id();
    let table = create(&engine);
    put(&engine, &table, b"a", b"v");
    engine.close().unwrap();
    engine.close().unwrap();
    let refused = apply(&engine, &table, &[mutation(b"a", &[value(b"q", b"w")])]).unwrap_err();
    assert!(matches!(refused, Error::ShuttingDown));
    let engine = rig.open();
    assert_eq!(engine.cluster_id(), id);
    assert_eq!(get(&engine, &table, b"a"), Some(b"v".to_vec()));
    assert_eq!(
        engine.memstore_bytes(),
        0,
        "a clean close leaves nothing to replay"
    );
}

/// Records notices.
#[derive(Debug, Default)]
struct Notices(Mutex<Vec<String>>);

impl EventListener for Notices {
    fn notice(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// Goal: the notice of a start has the number of replayed rows, which is 0 after a clean stop. Rows
/// that are in the log and also in store files do not count.
#[test]
fn a_start_says_how_many_rows_it_replayed() {
    let notices = Arc::new(Notices::default());
    let mut rig = Rig::in_memory();
    rig.listener = notices.clone();
    let said = |rows: usize| {
        let notices = std::mem::take(&mut *notices.0.lock().unwrap());
        let opened = notices.iter().find(|notice| notice.starts_with("opened"));
        let opened = opened.expect("a start says so").clone();
        assert!(
            opened.contains(&format!(" {rows} rows replayed from ")),
            "{opened}"
        );
    };
    let engine = rig.open();
    said(0);
    let table = create(&engine);
    let writes: Vec<_> = (0..3).map(row).collect();
    let writes: Vec<_> = writes
        .iter()
        .map(|row| mutation(row, &[value(b"q", b"v"), value(b"r", b"v")]))
        .collect();
    apply(&engine, &table, &writes).unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = rig.open();
    said(0);
    apply(&engine, &table, &writes).unwrap();
    drop(engine);
    let engine = rig.open();
    said(3);
    engine.flush(&table).unwrap();
    put(&engine, &table, b"one more", b"v");
    drop(engine);
    drop(rig.open());
    said(1);
}

/// Everything written is there after a restart without a close, and the log that flushed data no longer needs
/// is removed.
#[test]
fn a_restart_replays_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..200 {
        put(&engine, &table, &row(number), &[b'v'; 1_000]);
    }
    let segments = || std::fs::read_dir(dir.path().join("wal")).unwrap().count();
    assert!(segments() > 2);
    drop(engine);
    let engine = rig.open();
    assert_eq!(rows(&engine, &table).len(), 200);
    engine.flush(&table).unwrap();
    assert!(segments() <= 2, "{} segments left", segments());
    drop(engine);
    assert_eq!(rows(&rig.open(), &table).len(), 200);
}

#[test]
fn files_nobody_refers_to_are_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    create(&engine);
    engine.close().unwrap();
    drop(engine);
    let stray = dir.path().join("tables/default/t/f/ffff");
    std::fs::write(&stray, b"whatever").unwrap();
    std::fs::write(dir.path().join("tables/note"), b"whatever").unwrap();
    let engine = rig.open();
    assert!(!stray.exists());
    assert_eq!(
        std::fs::read(dir.path().join("orphans/default.t.f.ffff")).unwrap(),
        b"whatever"
    );
    assert!(dir.path().join("orphans/note").exists());
    engine.close().unwrap();
}

/// The offline check accepts a sound database and names a damaged store file.
#[test]
fn the_offline_check_finds_a_flipped_bit() {
    let disk = SimFs::new(3, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..50 {
        put(&engine, &table, &row(number), b"some value");
    }
    engine.flush(&table).unwrap();
    let (left, _) = engine
        .split_region(engine.regions(&table).unwrap()[0].id, Some(&row(20)))
        .unwrap();
    put(&engine, &table, &row(1), b"in the log");
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let mut lines = Vec::new();
    assert!(matches!(
        check(&vfs, &rig.dir, &mut |_| ()),
        Err(Error::Locked(_))
    ));
    drop(engine);
    let summary = check(&vfs, &rig.dir, &mut |line| lines.push(line)).unwrap();
    assert_eq!(summary.problems, 0, "{lines:?}");
    assert_eq!((summary.tables, summary.regions, summary.store_files), (1, 2, 1));
    assert!(summary.wal_rows >= 1);
    let file = disk
        .files()
        .into_iter()
        .find(|path| path.starts_with("/data/tables"))
        .unwrap();
    disk.flip_bit(&file, 8 * 40).unwrap();
    let summary = check(&vfs, &rig.dir, &mut |line| lines.push(line)).unwrap();
    assert!(summary.problems > 0);
    assert!(
        lines.iter().any(|line| line.contains(file.to_str().unwrap())),
        "{lines:?}"
    );
    assert_eq!(left.table, name("t"));
    let missing = check(&vfs, Path::new("/nowhere"), &mut |_| ());
    assert!(missing.is_err());
}

/// Files of more than a mebibyte together are checked side by side, and so are blocks and cells of a larger
/// one: each that is damaged is named, the rest is not, every time in one order.
#[test]
fn the_offline_check_names_each_of_many_damaged_files() {
    let disk = SimFs::new(3, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..6 {
        put(
            &engine,
            &table,
            &row(number),
            &vec![b'v'; if number == 0 { 1_200_000 } else { 300_000 }],
        );
        engine.flush(&table).unwrap();
    }
    drop(engine);
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let problems = || {
        let mut lines = Vec::new();
        let summary = check(&vfs, &rig.dir, &mut |line| lines.push(line)).unwrap();
        // Advice about a copied directory is no problem of its own.
        let problems = lines.iter().filter(|line| !line.starts_with("note: ")).count();
        assert_eq!(
            (summary.store_files, summary.problems),
            (6, problems as u64),
            "{lines:?}"
        );
        lines
    };
    assert!(problems().is_empty());
    let files: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|path| path.starts_with("/data/tables"))
        .collect();
    for damaged in &files[..5] {
        disk.flip_bit(damaged, 8 * 1_000).unwrap();
    }
    let found = problems();
    for (number, file) in files.iter().enumerate() {
        let named = found.iter().filter(|line| line.contains(file.to_str().unwrap()));
        assert_eq!(named.count(), usize::from(number < 5), "{found:?}");
    }
    for _ in 0..5 {
        assert_eq!(problems(), found);
    }
}

/// The server rests for an hour, takes a write, and dies before its next tick; the machine comes up
/// with its clock set back. Later writes must not be ordered before acknowledged ones.
#[test]
fn times_do_not_go_back_after_a_rest_and_a_crash() {
    const BEGIN_MS: u64 = 1_700_000_000_000;
    let disk = SimFs::new(1, SimOptions::default());
    let clock = Arc::new(ManualClock::at(BEGIN_MS));
    let mut rig = Rig::simulated(&disk);
    rig.clock = clock.clone();
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"first");
    engine.run_pending().unwrap();
    clock.advance_ms(3_600_000);
    put(&engine, &table, b"a", b"second");
    drop(engine);
    clock.set_wall_ms(BEGIN_MS + 1_000);
    let mut rig = Rig::simulated(&disk.crash_keep_all());
    rig.clock = clock;
    let engine = rig.open();
    put(&engine, &table, b"a", b"third");
    assert_eq!(get(&engine, &table, b"a"), Some(b"third".to_vec()));
}
