//! Snapshots of tables: their content, their life, tables made of them, and refused operations.

use std::path::PathBuf;
use std::sync::Arc;

use basalt_engine::clock::ManualClock;
use basalt_engine::fs::Vfs;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::op::Scan;
use basalt_engine::schema::{FamilyDescriptor, NamespaceDescriptor, TableName, TableState};
use basalt_engine::{Engine, Error};

use crate::rig::{Rig, create, descriptor, get, name, put, row, rows, scan};

/// Rows `from..to`, each with this value.
fn fill(engine: &Engine, table: &TableName, numbers: std::ops::Range<usize>, value: &str) {
    for number in numbers {
        put(engine, table, &row(number), value.as_bytes());
    }
}

/// Files whose path begins with `below`.
fn files(disk: &SimFs, below: &str) -> Vec<PathBuf> {
    let mut files = disk.files();
    files.retain(|path| path.starts_with(below));
    files
}

fn names(engine: &Engine) -> Vec<String> {
    let snapshots = engine.snapshots();
    snapshots.iter().map(|snapshot| snapshot.name.clone()).collect()
}

/// Goal: everything acknowledged before the call is in a snapshot, and nothing later: writes,
/// compactions, a drop of the table; also after a restart.
#[test]
fn a_snapshot_is_of_its_moment() {
    let (disk, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, &table, 0..10, "first");
    engine.flush(&table).unwrap();
    fill(&engine, &table, 5..15, "second");
    engine.snapshot(&table, "s", true, 0).unwrap();
    let expected = rows(&engine, &table);
    assert_eq!(expected.len(), 15);
    fill(&engine, &table, 0..20, "later");
    engine.flush(&table).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    assert_eq!(files(&disk, "/data/snapshots/s/default/t/f").len(), 2);
    engine.disable_table(&table).unwrap();
    engine.drop_table(&table).unwrap();
    assert_eq!(files(&disk, "/data/tables").len(), 0);
    engine.clone_snapshot("s", &name("c")).unwrap();
    assert_eq!(rows(&engine, &name("c")), expected);
    drop(engine);
    let engine = rig.open();
    assert_eq!(names(&engine), ["s"]);
    assert_eq!(rows(&engine, &name("c")), expected);
    engine.clone_snapshot("s", &name("d")).unwrap();
    assert_eq!(rows(&engine, &name("d")), expected);
    assert_eq!(rig_of_copy(&disk).problems(), Vec::<String>::new());
}

/// The disk after a kill, opened by no process.
fn rig_of_copy(disk: &SimFs) -> Rig {
    Rig::simulated(&disk.crash_keep_all())
}

/// Goal: without a flush a snapshot has the cells of store files only.
#[test]
fn a_flush_can_be_left_out() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    fill(&engine, &table, 0..3, "flushed");
    engine.flush(&table).unwrap();
    fill(&engine, &table, 3..6, "in memory");
    engine.snapshot(&table, "s", false, 0).unwrap();
    engine.clone_snapshot("s", &name("c")).unwrap();
    assert_eq!(rows(&engine, &name("c")).len(), 3);
    assert_eq!(rows(&engine, &table).len(), 6);
}

/// Goal: table, snapshot and clones are independent: writes, deletes and compactions of one are not
/// seen in another, and a clone of a snapshot of a clone equals the first table.
#[test]
fn a_clone_is_a_table_of_its_own() {
    let (disk, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, &table, 0..10, "first");
    engine.snapshot(&table, "s", true, 0).unwrap();
    let (one, two) = (name("one"), name("two"));
    engine.clone_snapshot("s", &one).unwrap();
    let expected = rows(&engine, &one);
    fill(&engine, &one, 0..5, "of the clone");
    assert_eq!(get(&engine, &one, &row(1)), Some(b"of the clone".to_vec()));
    assert_eq!(get(&engine, &table, &row(1)), Some(b"first".to_vec()));
    engine.snapshot(&one, "of-one", true, 0).unwrap();
    engine.compact(&one, None, true, true).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    let of_clone = rows(&engine, &one);
    engine.clone_snapshot("of-one", &two).unwrap();
    assert_eq!(rows(&engine, &two), of_clone);
    for snapshot in ["s", "of-one"] {
        engine.delete_snapshot(snapshot).unwrap();
    }
    assert_eq!(files(&disk, "/data/snapshots"), Vec::<PathBuf>::new());
    assert!(!disk.exists("/data/snapshots/s".as_ref()).unwrap());
    assert_eq!(rows(&engine, &table), expected);
    drop(engine);
    let engine = rig.open();
    assert_eq!(rows(&engine, &two), of_clone);
    assert_eq!(rows(&engine, &table), expected);
    // Later writes to a clone win over its original cells.
    fill(&engine, &two, 0..1, "newest");
    assert_eq!(get(&engine, &two, &row(0)), Some(b"newest".to_vec()));
    assert_eq!(files(&disk, "/data/orphans"), Vec::<PathBuf>::new());
}

/// Goal: files that two regions share since a split are linked once, are clipped in clones as they are in the
/// table, and a clone's regions are compacted and can be merged then.
#[test]
fn clones_of_a_split_table_see_their_halves() {
    let (disk, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, &table, 0..20, "first");
    let region = engine.regions(&table).unwrap()[0].id;
    engine.split_region(region, Some(&row(10))).unwrap();
    fill(&engine, &table, 8..12, "second");
    engine.snapshot(&table, "s", true, 0).unwrap();
    let expected = rows(&engine, &table);
    let snapshot = engine.snapshots().remove(0);
    // One file of before the split, one of each half.
    assert_eq!((snapshot.regions.len(), snapshot.files().len()), (2, 3));
    assert_eq!(files(&disk, "/data/snapshots").len(), 3);
    let clone = name("c");
    engine.clone_snapshot("s", &clone).unwrap();
    assert_eq!(rows(&engine, &clone), expected);
    assert_eq!(files(&disk, "/data/tables/default/c").len(), 3);
    drop(engine);
    assert_eq!(rig_of_copy(&disk).problems(), Vec::<String>::new());
    let engine = rig.open();
    assert_eq!(rows(&engine, &clone), expected);
    engine.run_pending().unwrap();
    engine.compact(&clone, None, true, true).unwrap();
    assert_eq!(rows(&engine, &clone), expected);
    let ids: Vec<_> = engine.regions(&clone).unwrap().iter().map(|it| it.id).collect();
    engine.merge_regions(&ids).unwrap();
    assert_eq!(rows(&engine, &clone), expected);
    assert_eq!(rows(&engine, &table), expected);
}

/// Goal: a restore brings back rows, families, options and regions; the table stays disabled; later
/// writes are gone, in memory, in the log and on disk.
#[test]
fn a_restore_brings_everything_back() {
    let (disk, rig, engine) = Rig::open_simulated();
    let mut first = descriptor("t", &["f", "g"]);
    first.attributes.insert(b"owner".to_vec(), b"me".to_vec());
    engine.create_table(first, vec![row(5)]).unwrap();
    let table = name("t");
    fill(&engine, &table, 0..10, "first");
    engine.snapshot(&table, "s", true, 0).unwrap();
    let (before, expected) = (engine.describe_table(&table).unwrap().0, rows(&engine, &table));
    fill(&engine, &table, 0..20, "later");
    engine.drop_family(&table, b"g").unwrap();
    engine.add_family(&table, FamilyDescriptor::new(b"h")).unwrap();
    let regions: Vec<_> = engine.regions(&table).unwrap();
    engine.merge_regions(&[regions[0].id, regions[1].id]).unwrap();
    fill(&engine, &table, 0..5, "in memory");
    let refused = engine.restore_snapshot("s").unwrap_err();
    assert!(matches!(refused, Error::TableNotDisabled(_)), "{refused}");
    engine.disable_table(&table).unwrap();
    let newest = engine.regions(&table).unwrap()[0].created_ms;
    engine.restore_snapshot("s").unwrap();
    let (after, state) = engine.describe_table(&table).unwrap();
    assert_eq!((after, state), (before, TableState::Disabled));
    drop(engine);
    let engine = rig.open();
    engine.enable_table(&table).unwrap();
    assert_eq!(rows(&engine, &table), expected);
    let regions = engine.regions(&table).unwrap();
    assert_eq!(regions.len(), 2);
    assert!(regions.iter().all(|region| region.created_ms > newest));
    assert_eq!(files(&disk, "/data/tables").len(), 2);
    // Again, and of a table that is gone.
    engine.disable_table(&table).unwrap();
    engine.restore_snapshot("s").unwrap();
    engine.drop_table(&table).unwrap();
    engine.restore_snapshot("s").unwrap();
    assert_eq!(engine.describe_table(&table).unwrap().1, TableState::Enabled);
    assert_eq!(rows(&engine, &table), expected);
    drop(engine);
    assert_eq!(rig_of_copy(&disk).problems(), Vec::<String>::new());
}

/// Goal: a scan that was open before a restore reads on in its captured versions.
#[test]
fn open_scans_survive_a_restore() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    fill(&engine, &table, 0..3, "first");
    engine.snapshot(&table, "s", true, 0).unwrap();
    fill(&engine, &table, 0..9, "later");
    let mut open = engine.scan(&table, Scan::default()).unwrap();
    engine.disable_table(&table).unwrap();
    engine.restore_snapshot("s").unwrap();
    engine.enable_table(&table).unwrap();
    assert_eq!(crate::rig::drain(&mut open).len(), 9);
    assert_eq!(scan(&engine, &table, Scan::default()).len(), 3);
}

/// Goal: the survey removes expired snapshots, and until then they cannot be used.
#[test]
fn snapshots_expire() {
    let disk = SimFs::new(1, SimOptions::default());
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let rig = Rig {
        clock: clock.clone(),
        ..Rig::simulated(&disk)
    };
    let engine = rig.open();
    let table = create(&engine);
    fill(&engine, &table, 0..3, "v");
    engine.snapshot(&table, "long", true, 3_600).unwrap();
    engine.snapshot(&table, "short", true, 30).unwrap();
    engine.snapshot(&table, "for-ever", true, 0).unwrap();
    clock.advance_ms(30_000);
    engine.run_pending().unwrap();
    engine.clone_snapshot("short", &name("c")).unwrap();
    clock.advance_ms(1);
    for refused in [
        engine.clone_snapshot("short", &name("d")),
        engine.restore_snapshot("short"),
    ] {
        let text = refused.unwrap_err().to_string();
        assert_eq!(text, "TTL for snapshot 'short' has already expired.");
    }
    clock.advance_ms(61_000);
    engine.run_pending().unwrap();
    assert_eq!(names(&engine), ["for-ever", "long"]);
    assert_eq!(files(&disk, "/data/snapshots/short"), Vec::<PathBuf>::new());
    assert_eq!(rows(&engine, &name("c")).len(), 3);
    clock.advance_ms(3_600_000);
    engine.run_pending().unwrap();
    assert_eq!(names(&engine), ["for-ever"]);
}

/// Goal: every refusal, in HBase's words, and none leaves anything behind.
#[test]
fn refusals_are_hbases() {
    let (disk, _, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, &table, 0..3, "v");
    engine.snapshot(&table, "s", true, 0).unwrap();
    let before = disk.files();
    let clone = |snapshot: &str, table: &str| engine.clone_snapshot(snapshot, &name(table));
    for (refused, words) in [
        (
            engine.snapshot(&table, "s", true, 0),
            "Snapshot 's' already stored on the filesystem.",
        ),
        (
            engine.snapshot(&name("x"), "new", true, 0),
            "Table 'x' doesn't exist, can't take snapshot.",
        ),
        (
            engine.snapshot(&name("hbase:meta"), "new", true, 0),
            "System table snapshots are not allowed",
        ),
        (
            engine.snapshot(&table, "../../up", true, 0),
            "Illegal first character <.> at 0. Snapshot qualifiers",
        ),
        (
            engine.snapshot(&table, "a/b", true, 0),
            "Illegal character code:47, </> at 1. Snapshot qualifiers",
        ),
        (engine.delete_snapshot("a/b"), "Illegal character code:47"),
        (
            engine.delete_snapshot("x"),
            "Snapshot 'x' doesn't exist on the filesystem",
        ),
        (
            engine.restore_snapshot("x"),
            "Snapshot 'x' doesn't exist on the filesystem",
        ),
        (clone("x", "c"), "Snapshot 'x' doesn't exist on the filesystem"),
        (clone("s", "t"), "t"),
        (clone("s", "hbase:meta"), "hbase:meta"),
        (
            clone("s", "n:c"),
            "Unknown namespace n! The namespaces are default, hbase",
        ),
        (
            engine.restore_snapshot("s"),
            "table t must be disabled before it is restored from snapshot s",
        ),
    ] {
        let text = refused.unwrap_err().to_string();
        assert!(text.starts_with(words), "{text}");
    }
    assert!(matches!(clone("s", "t"), Err(Error::TableExists(_))));
    assert!(matches!(clone("s", "n:c"), Err(Error::NoSuchNamespace(_))));
    assert_eq!(disk.files(), before);
    engine
        .create_namespace(NamespaceDescriptor {
            name: "n".into(),
            ..NamespaceDescriptor::default()
        })
        .unwrap();
    clone("s", "n:c").unwrap();
    assert_eq!(rows(&engine, &name("n:c")).len(), 3);
}

/// Goal: damage to a snapshot keeps nothing but the snapshot from being used, and a check finds it: a bit, a
/// missing file, another file.
#[test]
fn damage_is_found() {
    let (disk, _, engine) = Rig::open_simulated();
    let table = create(&engine);
    fill(&engine, &table, 0..50, "some value");
    engine.snapshot(&table, "s", true, 0).unwrap();
    // Only the snapshot has these bytes then.
    fill(&engine, &table, 0..50, "another value");
    engine.compact(&table, None, true, true).unwrap();
    engine.close().unwrap();
    drop(engine);
    let file = files(&disk, "/data/snapshots").remove(0);
    let whole = disk.contents(&file).unwrap();
    let found = |harm: &dyn Fn(&SimFs)| {
        let disk = disk.crash_keep_all();
        harm(&disk);
        let rig = Rig::simulated(&disk);
        let engine = rig.open();
        assert_eq!(rows(&engine, &table).len(), 50);
        let cloned = engine.clone_snapshot("s", &name("c"));
        engine.close().unwrap();
        drop(engine);
        let left = files(&disk, "/data/tables/default/c").len();
        assert!(cloned.is_ok() || left == 0, "{left} files are left");
        (rig.problems(), cloned.is_ok())
    };
    assert_eq!(found(&|_| {}), (Vec::new(), true));
    let (lines, _) = found(&|disk| {
        disk.overwrite(&file, 100, &[whole[100] ^ 4]).unwrap();
    });
    // The clone has the same bytes.
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].starts_with(&format!("snapshot s: corrupt file {}", file.display())));
    let (lines, cloned) = found(&|disk| disk.remove_file(&file).unwrap());
    assert!(
        !cloned && lines.len() == 1 && lines[0].contains(file.to_str().unwrap()),
        "{lines:?}"
    );
    let live = files(&disk, "/data/tables").remove(0);
    let (lines, cloned) = found(&|disk| {
        disk.remove_file(&file).unwrap();
        disk.link(&live, &file).unwrap();
    });
    assert!(
        !cloned && lines.len() == 1 && lines[0].contains("uuid"),
        "{lines:?}"
    );
}

/// Goal: unreferenced files below `snapshots/` are moved aside, and their directories go.
#[test]
fn strangers_are_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    let table = create(&engine);
    fill(&engine, &table, 0..3, "v");
    engine.snapshot(&table, "s", true, 0).unwrap();
    engine.close().unwrap();
    drop(engine);
    let family = dir.path().join("snapshots/s/default/t/f");
    let file = std::fs::read_dir(&family)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let half = dir.path().join("snapshots/half/default/t/f");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::hard_link(&file, half.join("0000000000000001")).unwrap();
    std::fs::write(family.join("stray"), b"whatever").unwrap();
    let engine = rig.open();
    assert!(file.exists() && !family.join("stray").exists());
    assert!(!dir.path().join("snapshots/half").exists());
    for orphan in [
        "snapshots.half.default.t.f.0000000000000001",
        "snapshots.s.default.t.f.stray",
    ] {
        assert!(dir.path().join("orphans").join(orphan).exists(), "{orphan}");
    }
    engine.clone_snapshot("s", &name("c")).unwrap();
    assert_eq!(rows(&engine, &name("c")).len(), 3);
}

/// Goal: while snapshots are taken and removed, cloned and restored, writes, flushes and compactions of the
/// same table go on, and each snapshot has every write that was acknowledged before.
#[test]
fn snapshots_beside_writers() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    let table = create(&engine);
    let acknowledged = std::sync::atomic::AtomicUsize::new(0);
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        use std::sync::atomic::Ordering;
        scope.spawn(|| {
            let mut number = 0;
            while !over.load(Ordering::Acquire) {
                put(&engine, &table, &row(number), b"v");
                number += 1;
                acknowledged.store(number, Ordering::Release);
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                engine.flush(&table).unwrap();
                engine.compact(&table, None, true, true).unwrap();
            }
        });
        for round in 0..12 {
            let before = acknowledged.load(Ordering::Acquire);
            let (snapshot, clone) = (format!("s{round}"), name(&format!("c{round}")));
            engine.snapshot(&table, &snapshot, true, 0).unwrap();
            engine.clone_snapshot(&snapshot, &clone).unwrap();
            let found = rows(&engine, &clone).len();
            assert!(
                found >= before,
                "{found} of {before} rows are in snapshot {round}"
            );
            engine.delete_snapshot(&snapshot).unwrap();
        }
        over.store(true, Ordering::Release);
    });
    drop(engine);
    assert_eq!(rig.problems(), Vec::<String>::new());
}
