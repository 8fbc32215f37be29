//! Bulk loads: when they become visible, which are refused, and the state after a refusal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use basalt_engine::cell::{Cell, CellBatch, CellType, KeyBuf};
use basalt_engine::engine::LoadFile;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::internals::hfile::{Writer, WriterOptions};
use basalt_engine::op::{Check, CompareOp, FetchLimits, Scan, Write};
use basalt_engine::schema::{FamilyDescriptor, TableName};
use basalt_engine::{Engine, Error, Result};

use crate::rig::{F, Rig, create, descriptor, drain, get, mutation, name, put, put_at, row, rows, shown};

/// An engine on a simulated disk, with table `t`.
fn on_a_disk() -> (SimFs, Rig, Arc<Engine>, TableName) {
    let (disk, rig, engine) = Rig::open_simulated();
    let table = create(&engine);
    (disk, rig, engine, table)
}

/// Writes an HFile of one column of a family: rows with timestamps and values.
fn hfile(disk: &SimFs, file: &str, family: &[u8], cells: &[(&[u8], i64, &str)]) -> LoadFile {
    let path = Path::new("/hfiles").join(file);
    disk.create_dir_all(Path::new("/hfiles")).unwrap();
    let open = disk.open(&path, Open::CreateNew).unwrap();
    let descriptor = FamilyDescriptor::new(family);
    let options = WriterOptions::of_family(&descriptor, Uuid([9; 16]), 1, SeqId::ZERO);
    let mut writer = Writer::create(open, &path, options).unwrap();
    for (row, timestamp, value) in cells {
        let key = KeyBuf::new(row, family, b"q", *timestamp, CellType::Put);
        let cell = Cell {
            key: key.as_key(),
            value: value.as_bytes(),
            tags: b"",
            seq: SeqId::ZERO,
        };
        writer.append(cell).unwrap();
    }
    writer.finish().unwrap();
    LoadFile {
        family: family.to_vec(),
        path,
    }
}

fn load(engine: &Engine, table: &TableName, files: &[LoadFile]) -> Result<u64> {
    let region = engine.regions(table).unwrap().remove(0);
    engine.bulk_load(region.id, files, &AtomicBool::new(false))
}

fn text(value: Option<Vec<u8>>) -> String {
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

/// Goal: a load is newer than all earlier writes, in memory or in files, also with equal timestamps,
/// and older than later writes. Flushes, compactions and restarts keep that order.
#[test]
fn a_load_is_as_new_as_its_call() {
    let (disk, rig, mut engine, table) = on_a_disk();
    let at = Some(100);
    for number in 0..3 {
        put_at(&engine, &table, &row(number), at, b"old");
    }
    engine.flush(&table).unwrap();
    put_at(&engine, &table, &row(1), at, b"in memory");
    let keys = [row(0), row(1), row(2), row(3)];
    let cells: Vec<(&[u8], i64, &str)> = keys.iter().map(|key| (&key[..], 100, "loaded")).collect();
    let file = hfile(&disk, "one", F, &cells);
    assert_eq!(load(&engine, &table, std::slice::from_ref(&file)).unwrap(), 4);
    put_at(&engine, &table, &row(2), at, b"later");
    let expected = ["loaded", "loaded", "later", "loaded"];
    let seen = |engine: &Engine| -> Vec<String> {
        (0..4)
            .map(|number| text(get(engine, &table, &row(number))))
            .collect()
    };
    assert_eq!(seen(&engine), expected);
    engine.flush(&table).unwrap();
    assert_eq!(seen(&engine), expected);
    drop(engine);
    engine = rig.open();
    assert_eq!(seen(&engine), expected, "after a kill");
    // The source was not moved, and the engine does not need it any more.
    disk.remove_file(&file.path).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    assert_eq!(seen(&engine), expected, "after a compaction");
    engine.close().unwrap();
    assert_eq!(rig.problems(), Vec::<String>::new());
    engine = rig.open();
    assert_eq!(seen(&engine), expected, "after a restart");
}

/// Goal: a compaction that leaves an older file out keeps a load newer than that file.
#[test]
fn a_load_stays_newer_than_files_that_a_compaction_leaves_out() {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = Rig::simulated(&disk);
    // The policy goes by sizes alone, so that it leaves the large file out.
    rig.options.compaction_min_bytes = 0;
    let engine = rig.open();
    let table = create(&engine);
    let mut noise = 1_u32;
    let large: Vec<u8> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    })
    .take(200_000)
    .collect();
    put_at(&engine, &table, &row(0), Some(100), &large);
    engine.flush(&table).unwrap();
    for number in 0..3 {
        let key = row(number);
        let file = hfile(&disk, &format!("f{number}"), F, &[(&key, 100, "loaded")]);
        load(&engine, &table, &[file]).unwrap();
    }
    let files = |engine: &Engine| {
        engine
            .region_stats()
            .iter()
            .map(|region| region.store_files)
            .sum::<u64>()
    };
    let before = files(&engine);
    engine.compact(&table, None, false, true).unwrap();
    assert!((2..before).contains(&files(&engine)), "a minor compaction ran");
    assert_eq!(text(get(&engine, &table, &row(0))), "loaded");
    drop(engine);
    assert_eq!(text(get(&rig.open(), &table, &row(0))), "loaded");
}

/// Goal: a scan that was opened before a load does not see it, although it continues in versions of
/// the region that have it; a scan opened afterwards does.
#[test]
fn an_open_scan_does_not_see_a_load() {
    let (disk, _rig, engine, table) = on_a_disk();
    for number in 0..8 {
        put(&engine, &table, &row(number), b"old");
    }
    engine.flush(&table).unwrap();
    let before = rows(&engine, &table);
    let mut open = engine.scan(&table, Scan::default()).unwrap();
    let mut out = CellBatch::new();
    let one = FetchLimits {
        results: 1,
        bytes: 1 << 20,
        time: std::time::Duration::from_secs(10),
    };
    open.fetch(&one, &mut out).unwrap();
    let keys: Vec<Vec<u8>> = (0..8).map(row).collect();
    let far = i64::MAX - 1;
    let cells: Vec<(&[u8], i64, &str)> = keys.iter().map(|key| (&key[..], far, "loaded")).collect();
    load(&engine, &table, &[hfile(&disk, "one", F, &cells)]).unwrap();
    // A flush makes open scans go on in the region's new version, which has the loaded file itself; after
    // the compaction its cells are in an ordinary file.
    put(&engine, &table, &row(7), b"newer");
    engine.flush(&table).unwrap();
    open.fetch(&one, &mut out).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    let mut seen = shown(&out);
    seen.extend(drain(&mut open));
    let seen: Vec<(String, String)> = seen.into_iter().map(|cell| (cell.row, cell.value)).collect();
    assert_eq!(seen, before);
    assert!(rows(&engine, &table).iter().all(|(_, value)| value == "loaded"));
}

/// Goal: a check-and-mutate after a load sees it, before any flush.
#[test]
fn a_check_sees_a_load() {
    let (disk, _rig, engine, table) = on_a_disk();
    let key = row(0);
    load(
        &engine,
        &table,
        &[hfile(&disk, "one", F, &[(&key, 100, "loaded")])],
    )
    .unwrap();
    let condition = Check {
        family: F,
        qualifier: b"q",
        op: CompareOp::Equal,
        value: Some(b"loaded"),
    };
    let write = Write::Put {
        family: F,
        qualifier: b"q",
        timestamp: None,
        value: b"checked",
        ttl_ms: None,
    };
    let passed = engine
        .check_and_mutate(&table, &condition, &mutation(&key, &[write]))
        .unwrap();
    passed.expect("the check passes").wait().unwrap();
    assert_eq!(text(get(&engine, &table, &key)), "checked");
}

/// Whether an error is the expected one.
type IsRefusal = fn(&Error) -> bool;

/// Goal: a load of several families that is refused because of its last file leaves nothing: no row,
/// no file; and the source is as it was.
#[test]
fn a_refused_load_leaves_nothing() {
    let (disk, _rig, engine, _) = on_a_disk();
    engine
        .create_table(descriptor("two", &["f", "g"]), vec![row(5)])
        .unwrap();
    let table = name("two");
    let (low, high) = (row(1), row(7));
    let good = || {
        let file = format!("good{}", disk.op_count());
        hfile(&disk, &file, F, &[(&low, 100, "loaded")])
    };
    let write = |file: &str, bytes: &[u8]| {
        let path = PathBuf::from("/hfiles").join(file);
        disk.open(&path, Open::CreateNew)
            .unwrap()
            .write_at(bytes, 0)
            .unwrap();
        LoadFile {
            family: b"g".to_vec(),
            path,
        }
    };
    let sound = hfile(&disk, "sound", b"g", &[(&low, 100, "loaded")]);
    let mut bytes = disk.contents(&sound.path).unwrap();
    bytes[40] ^= 1;
    let missing = LoadFile {
        family: b"g".to_vec(),
        path: "/hfiles/none".into(),
    };
    let mut other_family = hfile(&disk, "other", F, &[(&low, 100, "loaded")]);
    other_family.family = b"g".to_vec();
    let mut no_family = good();
    no_family.family = b"none".to_vec();
    let beyond = hfile(
        &disk,
        "beyond",
        b"g",
        &[(&low, 100, "loaded"), (&high, 100, "loaded")],
    );
    let cases: [(LoadFile, IsRefusal, &str); 7] = [
        (
            write("text", b"no HFile"),
            |e| matches!(e, Error::Corrupt { .. }),
            "shorter than an HFile",
        ),
        (
            write("long", &[b'x'; 9_000]),
            |e| matches!(e, Error::Corrupt { .. }),
            "trailer",
        ),
        (
            write("damaged", &bytes),
            |e| matches!(e, Error::Corrupt { .. }),
            "/hfiles/damaged",
        ),
        (missing, |e| matches!(e, Error::Io { .. }), "/hfiles/none"),
        (
            other_family,
            |e| matches!(e, Error::DoNotRetry(_)),
            "has cells of family f",
        ),
        (no_family, |e| matches!(e, Error::NoSuchFamily { .. }), "none"),
        (
            beyond,
            |e| matches!(e, Error::WrongRegion(_)),
            "does not fit inside region",
        ),
    ];
    for (bad, is_expected, words) in cases {
        let good = good();
        let before = disk.contents(&good.path).unwrap();
        let error = load(&engine, &table, &[good.clone(), bad]).unwrap_err();
        assert!(is_expected(&error), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(disk.contents(&good.path).unwrap(), before);
        engine.run_pending().unwrap();
        assert!(rows(&engine, &table).is_empty(), "{words}");
        let mut files = disk.files();
        files.retain(|path| path.starts_with("/data/tables"));
        assert_eq!(files, Vec::<PathBuf>::new(), "{words}");
    }
    assert_eq!(load(&engine, &table, &[good()]).unwrap(), 1);
    put(&engine, &table, &high, b"written");
    assert_eq!(rows(&engine, &table).len(), 2);
}

/// Goal: a disabled table takes no load, and a load that is cancelled leaves nothing.
#[test]
fn a_load_needs_an_enabled_table_and_can_be_cancelled() {
    let (disk, _rig, engine, table) = on_a_disk();
    let key = row(0);
    let file = hfile(&disk, "one", F, &[(&key, 100, "loaded")]);
    let region = engine.regions(&table).unwrap().remove(0).id;
    let cancelled = engine.bulk_load(region, std::slice::from_ref(&file), &AtomicBool::new(true));
    assert!(cancelled.unwrap_err().to_string().contains("cancelled"));
    assert!(rows(&engine, &table).is_empty());
    engine.disable_table(&table).unwrap();
    let error = load(&engine, &table, &[file]).unwrap_err();
    assert!(matches!(error, Error::TableNotEnabled { .. }), "{error}");
}
