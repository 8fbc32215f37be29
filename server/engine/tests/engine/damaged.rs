//! Store files that are missing or damaged at a start. Requests to the regions that need them are
//! refused, everything else is served, and each remedy that the error names works.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::check;
use basalt_engine::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::op::{Check, ColumnIncrement, CompareOp, Get, ReadSpec, RowUpdate, Scan};
use basalt_engine::schema::{Durability, FamilyDescriptor, TableName};
use basalt_engine::{Engine, Error, Result};

use crate::rig::{F, Rig, apply, create, descriptor, get, mutation, name, put, row, rows, scan, value};

/// Creates table `t` with the regions r000 to r009, r010 to r019 and r020 to r029, ten rows and one
/// file in each, and table `other` with one row in a file. Returns the three files of `t` in the
/// order of regions.
fn database(rig: &Rig, disk: &SimFs) -> Vec<PathBuf> {
    let engine = rig.open();
    engine
        .create_table(descriptor("t", &["f", "g"]), vec![row(10), row(20)])
        .unwrap();
    engine
        .create_table(descriptor("other", &["f"]), Vec::new())
        .unwrap();
    for number in 0..30 {
        put(&engine, &name("t"), &row(number), b"v");
    }
    put(&engine, &name("other"), b"o", b"v");
    engine.close().unwrap();
    let files = disk.files();
    let of_t = |path: &&PathBuf| path.starts_with("/data/tables/default/t/f");
    let of_t: Vec<_> = files.iter().filter(of_t).cloned().collect();
    assert_eq!(of_t.len(), 3);
    of_t
}

fn of_range(engine: &Engine, from: usize, to: usize) -> Result<usize> {
    let scan = Scan {
        start_row: row(from),
        stop_row: row(to),
        ..Scan::default()
    };
    let limits = basalt_engine::op::FetchLimits {
        results: 1_000,
        bytes: 1 << 20,
        time: std::time::Duration::from_secs(10),
    };
    let mut out = CellBatch::new();
    engine.scan(&name("t"), scan)?.fetch(&limits, &mut out)?;
    Ok(out.row_count())
}

/// Asserts that every read and change of the middle region is refused with an error that names
/// `file`, and that the rest of the table is served.
fn assert_refused(engine: &Engine, file: &Path) {
    let table = name("t");
    let refused = |result: Result<()>, what: &str| match result {
        Err(error @ Error::RegionDamaged { .. }) => {
            let text = error.to_string();
            for part in [
                file.to_str().unwrap(),
                "table t",
                "'r010' to 'r020'",
                "restore a snapshot",
            ] {
                assert!(text.contains(part), "{what}: {text:?} does not say {part}");
            }
        }
        other => panic!("{what}: {other:?}"),
    };
    let regions = engine.regions(&table).unwrap();
    let damaged = &regions[1];
    let row_12 = row(12);
    let one = Get {
        row: &row_12,
        spec: ReadSpec::default(),
    };
    refused(engine.get(&table, &one, &mut CellBatch::new()), "get");
    refused(of_range(engine, 0, 30).map(drop), "a scan of everything");
    refused(of_range(engine, 15, 16).map(drop), "a scan inside");
    let write = [value(b"q", b"w")];
    refused(apply(engine, &table, &[mutation(&row_12, &write)]), "put");
    let batch = [mutation(b"r001", &write), mutation(&row_12, &write)];
    refused(apply(engine, &table, &batch), "a batch with a row of it");
    let absent = Check {
        family: F,
        qualifier: b"q",
        op: CompareOp::Equal,
        value: None,
    };
    let checked = engine.check_and_mutate(&table, &absent, &mutation(&row_12, &write));
    refused(checked.map(drop), "check and put");
    let more = RowUpdate::Increment(vec![ColumnIncrement {
        family: F,
        qualifier: b"n",
        amount: 1,
        timestamp: None,
    }]);
    let added = engine.update(
        &table,
        &row_12,
        &more,
        None,
        Durability::UseDefault,
        &mut CellBatch::new(),
    );
    refused(added.map(drop), "increment");
    refused(engine.compact_region(damaged.id, None, true, true), "compaction");
    refused(
        engine.compact(&table, None, true, true),
        "compaction of the table",
    );
    refused(
        engine.compact(&table, None, true, false),
        "compaction without a waiting caller",
    );
    refused(engine.split_region(damaged.id, Some(&row(15))).map(drop), "split");
    refused(
        engine.merge_regions(&[regions[0].id, damaged.id]).map(drop),
        "merge",
    );
    refused(engine.snapshot(&table, "s", true, 0), "snapshot");

    assert_eq!(of_range(engine, 0, 10).unwrap(), 10);
    assert_eq!(of_range(engine, 20, 30).unwrap(), 10);
    assert_eq!(get(engine, &table, b"r005").as_deref(), Some(&b"v"[..]));
    put(engine, &table, b"r005", b"v");
    assert_eq!(get(engine, &name("other"), b"o").as_deref(), Some(&b"v"[..]));
    put(engine, &name("other"), b"o", b"v");
    engine.flush(&table).unwrap();
    engine.snapshot(&name("other"), "of-other", true, 0).unwrap();
    engine.delete_snapshot("of-other").unwrap();

    let all = engine.damaged_regions();
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0].region, all[0].files[0].path.as_path()), (damaged, file));
    let stats = engine.table_region_stats(&table).unwrap();
    let counts: Vec<_> = stats.iter().map(|region| region.damaged_files).collect();
    assert_eq!(counts, [0, 1, 0]);
}

/// Damages a store file on a disk.
type Damage = Box<dyn Fn(&SimFs)>;

/// Goal: damage to one store file makes only its region unavailable, and the region is complete
/// again when the file is restored.
#[test]
fn a_damaged_file_costs_its_region_only() {
    let disk = SimFs::new(7, SimOptions::default());
    let files = database(&Rig::simulated(&disk), &disk);
    let whole = disk.contents(&files[1]).unwrap();
    let end = whole.len() as u64;
    let (file, other) = (files[1].clone(), files[2].clone());
    let cut = |len: u64| -> Damage {
        let file = file.clone();
        Box::new(move |disk: &SimFs| disk.open(&file, Open::Write).unwrap().set_len(len).unwrap())
    };
    let flip = |byte: u64| -> Damage {
        let file = file.clone();
        Box::new(move |disk: &SimFs| disk.flip_bit(&file, byte * 8).unwrap())
    };
    let missing = file.clone();
    let foreign = (file.clone(), other);
    let unreadable = file.clone();
    let kinds: Vec<(&str, Damage)> = vec![
        (
            "missing",
            Box::new(move |disk: &SimFs| disk.remove_file(&missing).unwrap()),
        ),
        ("empty", cut(0)),
        ("cut", cut(end / 2)),
        ("a bit of the trailer", flip(end - 20)),
        ("a bit of the file info", flip(end - 4096 - 100)),
        (
            "another file",
            Box::new(move |disk: &SimFs| {
                disk.remove_file(&foreign.0).unwrap();
                disk.link(&foreign.1, &foreign.0).unwrap();
            }),
        ),
        (
            "unreadable",
            Box::new(move |disk: &SimFs| disk.make_unreadable(&unreadable, 0..end).unwrap()),
        ),
    ];
    for (kind, damage) in kinds {
        let disk = disk.crash_keep_all();
        damage(&disk);
        let rig = Rig::simulated(&disk);
        let engine = rig.open();
        assert_refused(&engine, &file);
        if kind == "another file" {
            let error = of_range(&engine, 15, 16).unwrap_err().to_string();
            assert!(error.contains("uuid"), "{error}");
        }
        engine.close().unwrap();
        drop(engine);

        let mut lines = Vec::new();
        let summary = check(&rig.vfs, &rig.dir, &mut |line| lines.push(line)).unwrap();
        assert!(summary.problems > 0, "{kind}");
        let line = lines.iter().find(|line| line.contains(file.to_str().unwrap()));
        let line = line.unwrap_or_else(|| panic!("{kind}: {lines:?}"));
        let reason = if kind == "another file" { "uuid" } else { "" };
        for part in ["table t", "'r010' to 'r020'", "Put the file back", reason] {
            assert!(line.contains(part), "{kind}: {line:?} does not say {part}");
        }

        let disk = disk.crash_keep_all();
        if disk.exists(&file).unwrap() {
            disk.remove_file(&file).unwrap();
        }
        let back = disk.open(&file, Open::CreateNew).unwrap();
        back.write_at(&whole, 0).unwrap();
        back.sync_all().unwrap();
        let engine = Rig::simulated(&disk).open();
        assert!(engine.damaged_regions().is_empty(), "{kind}");
        assert_eq!(rows(&engine, &name("t")).len(), 30, "{kind}");
    }
}

/// Goal: damage to a file that two regions share after a split makes both unavailable.
#[test]
fn a_shared_file_costs_both_regions() {
    let disk = SimFs::new(7, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..20 {
        put(&engine, &table, &row(number), b"v");
    }
    engine
        .split_region(engine.regions(&table).unwrap()[0].id, Some(&row(10)))
        .unwrap();
    drop(engine);
    let file = disk
        .files()
        .into_iter()
        .find(|path| path.starts_with("/data/tables"))
        .unwrap();
    disk.remove_file(&file).unwrap();
    let engine = rig.open();
    assert_eq!(engine.damaged_regions().len(), 2);
    engine.disable_table(&table).unwrap();
    engine.truncate_table(&table, false).unwrap();
    assert!(rows(&engine, &table).is_empty());
}

/// Goal: rows of a damaged region that are only in the log are flushed, so that log segments can be
/// removed. The rows can be read when the file is restored.
#[test]
fn rows_in_the_log_of_a_damaged_region_are_kept() {
    let disk = SimFs::new(7, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let files = database(&rig, &disk);
    let engine = rig.open();
    for number in 10..15 {
        put(&engine, &name("t"), &row(number), b"newer");
    }
    drop(engine);
    let aside = PathBuf::from("/data/aside");
    disk.rename(&files[1], &aside).unwrap();
    let engine = rig.open();
    assert_eq!(engine.damaged_regions().len(), 1);
    assert!(engine.memstore_bytes() > 0);
    engine.flush(&name("t")).unwrap();
    assert_eq!((engine.memstore_bytes(), engine.oldest_unflushed()), (0, None));
    assert_refused(&engine, &files[1]);
    engine.close().unwrap();
    drop(engine);
    disk.rename(&aside, &files[1]).unwrap();
    let engine = rig.open();
    let found = rows(&engine, &name("t"));
    let newer = found.iter().filter(|(_, value)| value == "newer");
    assert_eq!((found.len(), newer.count()), (30, 5));
    engine.compact(&name("t"), None, true, true).unwrap();
    assert_eq!(rows(&engine, &name("t")), found);
}

/// An engine whose middle region lacks its file, with a snapshot from before the loss.
fn damaged() -> (SimFs, Rig, Arc<Engine>) {
    let disk = SimFs::new(7, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let files = database(&rig, &disk);
    let engine = rig.open();
    engine.snapshot(&name("t"), "before", true, 0).unwrap();
    drop(engine);
    disk.remove_file(&files[1]).unwrap();
    let engine = rig.open();
    assert_eq!(engine.damaged_regions().len(), 1);
    (disk, rig, engine)
}

/// Asserts that the table has `count` rows and accepts a write, and that the write is there after
/// another start.
fn assert_whole(rig: &Rig, engine: Arc<Engine>, table: &TableName, count: usize) {
    let whole = |engine: &Engine| {
        assert!(engine.damaged_regions().is_empty());
        assert_eq!(rows(engine, table).len(), count);
        put(engine, table, b"r012", b"again");
    };
    whole(&engine);
    engine.close().unwrap();
    drop(engine);
    let engine = rig.open();
    assert!(engine.damaged_regions().is_empty());
    assert_eq!(get(&engine, table, b"r012").as_deref(), Some(&b"again"[..]));
}

/// Goal: every remedy that the error names works on a running engine.
#[test]
fn each_remedy_works() {
    let table = name("t");
    let (_, rig, engine) = damaged();
    engine.disable_table(&table).unwrap();
    engine.restore_snapshot("before").unwrap();
    engine.enable_table(&table).unwrap();
    assert_whole(&rig, engine, &table, 30);

    let (_, rig, engine) = damaged();
    engine.disable_table(&table).unwrap();
    engine.truncate_table(&table, true).unwrap();
    assert_whole(&rig, engine, &table, 0);

    let (_, rig, engine) = damaged();
    engine.disable_table(&table).unwrap();
    engine.drop_table(&table).unwrap();
    engine.create_table(descriptor("t", &["f"]), Vec::new()).unwrap();
    assert_whole(&rig, engine, &table, 0);

    let (_, rig, engine) = damaged();
    engine.drop_family(&table, F).unwrap();
    engine.add_family(&table, FamilyDescriptor::new(F)).unwrap();
    assert_whole(&rig, engine, &table, 0);
}

/// Goal: an error that may be temporary is not treated as damage. The start fails, and the next one
/// finds all rows.
#[test]
fn a_shortage_is_no_damage() {
    for errno in [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::ACCESS,
        Errno::INTR,
    ] {
        let disk = SimFs::new(7, SimOptions::default());
        let rig = Rig::simulated(&disk);
        let files = database(&rig, &disk);
        let fault = disk.fail(OpKind::Open, files[1].to_str().unwrap(), errno, Times::Always);
        let error = rig.try_open().expect_err("the file cannot be opened");
        assert!(error.to_string().contains(files[1].to_str().unwrap()), "{error}");
        assert!(!matches!(error, Error::RegionDamaged { .. }), "{error}");
        disk.heal(fault);
        let engine = rig.open();
        assert!(engine.damaged_regions().is_empty());
        assert_eq!(scan(&engine, &name("t"), Scan::default()).len(), 30);
    }
}

/// Goal: a missing directory of all tables, as of a file system that is not mounted, fails the
/// start and is not treated as damage.
#[test]
fn missing_tables_refuse_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"v");
    engine.close().unwrap();
    drop(engine);
    let (tables, aside) = (dir.path().join("tables"), dir.path().join("aside"));
    std::fs::rename(&tables, &aside).unwrap();
    let error = rig.try_open().expect_err("no store file is there");
    assert!(error.to_string().contains("mounted"), "{error}");
    std::fs::rename(&aside, &tables).unwrap();
    assert_eq!(rows(&rig.open(), &table).len(), 1);
}

/// Goal: a damaged data block, which a start does not read, fails the reads that need it and is
/// counted. Its region is served.
#[test]
fn a_damaged_block_is_counted() {
    let disk = SimFs::new(7, SimOptions::default());
    let rig = Rig::simulated(&disk);
    let files = database(&rig, &disk);
    disk.flip_bit(&files[1], 40 * 8).unwrap();
    let engine = rig.open();
    assert!(engine.damaged_regions().is_empty());
    assert_eq!(engine.counters().damaged_reads.get(), 0);
    let row_12 = row(12);
    let one = Get {
        row: &row_12,
        spec: ReadSpec::default(),
    };
    let error = engine.get(&name("t"), &one, &mut CellBatch::new());
    assert!(
        matches!(&error, Err(Error::Corrupt { file, .. }) if *file == files[1]),
        "{error:?}"
    );
    assert!(engine.counters().damaged_reads.get() > 0);
    put(&engine, &name("t"), &row(12), b"newer");
    assert_eq!(of_range(&engine, 20, 30).unwrap(), 10);

    let mut lines = Vec::new();
    drop(engine);
    check(&rig.vfs, &rig.dir, &mut |line| lines.push(line)).unwrap();
    let line = lines
        .iter()
        .find(|line| line.contains(files[1].to_str().unwrap()));
    assert!(
        line.is_some_and(|line| line.contains("refuses reads of region")),
        "{lines:?}"
    );
}
