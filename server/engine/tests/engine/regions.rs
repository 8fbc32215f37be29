//! Split, merge, and snapshots over them.

use basalt_engine::Error;
use basalt_engine::op::Scan;

use crate::rig::{Rig, create, descriptor, drain, get, name, put, row, rows, scan};

#[test]
fn a_region_splits_where_told_and_serves_the_same_rows() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..20 {
        put(&engine, &table, &row(number), format!("{number}").as_bytes());
        if number == 10 {
            engine.flush(&table).unwrap();
        }
    }
    let before = rows(&engine, &table);
    let parent = engine.regions(&table).unwrap().remove(0);
    let (left, right) = engine.split_region(parent.id, Some(&row(8))).unwrap();
    assert_eq!(
        (left.start.as_slice(), left.end.as_slice()),
        (&b""[..], &row(8)[..])
    );
    assert_eq!(
        (right.start.as_slice(), right.end.as_slice()),
        (&row(8)[..], &b""[..])
    );
    assert!(left.created_ms > parent.created_ms && right.created_ms > parent.created_ms);
    assert!(matches!(
        engine.split_region(parent.id, None),
        Err(Error::NoSuchRegion(_))
    ));
    assert_eq!(rows(&engine, &table), before);
    put(&engine, &table, &row(3), b"new");
    put(&engine, &table, &row(13), b"new");
    // Compaction ends the sharing of files.
    assert!(engine.run_pending().unwrap() >= 2);
    for _ in 0..2 {
        let now = rows(&engine, &table);
        assert_eq!(now.len(), 20);
        assert_eq!(
            (now[3].1.as_str(), now[13].1.as_str(), now[14].1.as_str()),
            ("new", "new", "14")
        );
        let reversed = Scan {
            reversed: true,
            ..Scan::default()
        };
        assert_eq!(scan(&engine, &table, reversed).len(), 20);
        engine.flush(&table).unwrap();
    }
    drop(engine);
    let engine = rig.open();
    assert_eq!(engine.regions(&table).unwrap(), [left, right]);
    assert_eq!(rows(&engine, &table).len(), 20);
}

#[test]
fn a_split_without_a_row_finds_the_middle() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let region = engine.regions(&table).unwrap().remove(0);
    let empty = engine.split_region(region.id, None).unwrap_err();
    assert!(
        matches!(&empty, Error::DoNotRetry(text) if text.contains("bestSplitPoint = null")),
        "{empty}"
    );
    for number in 0..300 {
        put(&engine, &table, &row(number), &[b'v'; 2_000]);
    }
    let (left, _) = engine.split_region(region.id, None).unwrap();
    assert!((row(50)..row(250)).contains(&left.end), "{:?}", left.end);
    assert!(engine.split_region(left.id, Some(b"")).is_err());
    assert!(engine.split_region(left.id, Some(&left.end)).is_err());
    let (_, second) = engine.split_region(left.id, Some(&row(20))).unwrap();
    assert!(
        engine.split_region(second.id, Some(&row(20))).is_err(),
        "the start row is no split row"
    );
    assert_eq!(rows(&engine, &table).len(), 300);
}

/// The only region of a table splits at twice the flush size (HBase: `SteppingSplitPolicy`).
#[test]
fn a_region_that_has_grown_splits_by_itself() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 40_000;
    let engine = rig.open();
    let table = create(&engine);
    for number in 0..120 {
        put(&engine, &table, &row(number), &[number as u8; 1_000]);
        engine.run_pending().unwrap();
    }
    engine.flush(&table).unwrap();
    engine.run_pending().unwrap();
    assert_eq!(engine.regions(&table).unwrap().len(), 2);
    assert_eq!(engine.counters().splits.get(), 1);
    assert_eq!(rows(&engine, &table).len(), 120);
}

#[test]
fn neighbours_merge_and_others_do_not() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    engine
        .create_table(descriptor("t", &["f"]), vec![row(5), row(10), row(15)])
        .unwrap();
    engine.create_table(descriptor("u", &["f"]), Vec::new()).unwrap();
    let table = name("t");
    for number in 0..20 {
        put(&engine, &table, &row(number), b"v");
    }
    let regions = engine.regions(&table).unwrap();
    let id = |index: usize| regions[index].id;
    let other = engine.regions(&name("u")).unwrap()[0].id;
    for bad in [&[id(0)][..], &[id(0), id(0)], &[id(0), id(2)], &[id(0), other]] {
        assert!(matches!(
            engine.merge_regions(bad),
            Err(Error::InvalidArgument(_))
        ));
    }
    let merged = engine.merge_regions(&[id(2), id(1), id(3)]).unwrap();
    assert_eq!((merged.start.clone(), merged.end.clone()), (row(5), Vec::new()));
    assert!(regions.iter().all(|region| region.created_ms < merged.created_ms));
    assert_eq!(rows(&engine, &table).len(), 20);
    put(&engine, &table, &row(12), b"new");
    drop(engine);
    let engine = rig.open();
    assert_eq!(engine.regions(&table).unwrap().len(), 2);
    assert_eq!(get(&engine, &table, &row(12)), Some(b"new".to_vec()));
    assert_eq!(rows(&engine, &table).len(), 20);
}

/// Split halves share files until they are compacted; a merge at once must not bring back cells
/// that one half has deleted.
#[test]
fn halves_merge_back_without_old_rows() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    for number in 0..10 {
        put(&engine, &table, &row(number), b"v");
    }
    let parent = engine.regions(&table).unwrap()[0].id;
    let (left, right) = engine.split_region(parent, Some(&row(5))).unwrap();
    let delete = basalt_engine::op::Write::DeleteRow { timestamp: None };
    crate::rig::apply(&engine, &table, &[crate::rig::mutation(&row(7), &[delete])]).unwrap();
    engine.flush(&table).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    engine.merge_regions(&[left.id, right.id]).unwrap();
    assert_eq!(engine.regions(&table).unwrap().len(), 1);
    assert_eq!(rows(&engine, &table).len(), 9);
    let parent = engine.regions(&table).unwrap()[0].id;
    let (left, right) = engine.split_region(parent, Some(&row(5))).unwrap();
    engine.merge_regions(&[left.id, right.id]).unwrap();
    assert_eq!(rows(&engine, &table).len(), 9);
}

/// A scanner's view is fixed when it is opened, whatever happens to the table afterwards.
#[test]
fn an_open_scanner_sees_its_moment() {
    let mut rig = Rig::in_memory();
    rig.options.compaction_min_files = 2;
    let engine = rig.open();
    engine
        .create_table(descriptor("t", &["f"]), vec![row(10)])
        .unwrap();
    let table = name("t");
    for number in 0..20 {
        put(&engine, &table, &row(number), b"before");
        if number % 7 == 3 {
            engine.flush(&table).unwrap();
        }
    }
    let expected = scan(&engine, &table, Scan::default());
    let open = |reversed| {
        let request = Scan {
            reversed,
            ..Scan::default()
        };
        engine.scan(&table, request).unwrap()
    };
    let scanners = [open(false), open(true)];
    for number in 0..40 {
        put(&engine, &table, &row(number), b"after");
    }
    engine.flush(&table).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    let first = engine.regions(&table).unwrap()[0].id;
    engine.split_region(first, Some(&row(5))).unwrap();
    engine.run_pending().unwrap();
    let ids: Vec<_> = engine
        .regions(&table)
        .unwrap()
        .into_iter()
        .map(|region| region.id)
        .collect();
    engine.merge_regions(&ids).unwrap();
    engine.disable_table(&table).unwrap();
    engine.drop_table(&table).unwrap();
    for (index, mut scanner) in scanners.into_iter().enumerate() {
        let mut seen = drain(&mut scanner);
        if index == 1 {
            seen.reverse();
        }
        assert_eq!(seen, expected);
    }
}

/// Files of a dropped table are removed from the disk once no scanner reads them any more.
#[test]
fn dropped_files_go_when_their_last_reader_does() {
    let disk = basalt_engine::fs::sim::SimFs::new(5, basalt_engine::fs::sim::SimOptions::default());
    let engine = Rig::simulated(&disk).open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"v");
    engine.flush(&table).unwrap();
    let store_files = || {
        disk.files()
            .iter()
            .filter(|path| path.starts_with("/data/tables"))
            .count()
    };
    assert_eq!(store_files(), 1);
    let mut scanner = engine.scan(&table, Scan::default()).unwrap();
    engine.disable_table(&table).unwrap();
    engine.drop_table(&table).unwrap();
    assert_eq!(store_files(), 1);
    assert_eq!(drain(&mut scanner).len(), 1);
    drop(scanner);
    assert_eq!(store_files(), 0);
}

/// The parent's file goes when both halves have compacted it.
#[test]
fn a_split_parents_files_go_when_both_halves_have_their_own() {
    let disk = basalt_engine::fs::sim::SimFs::new(6, basalt_engine::fs::sim::SimOptions::default());
    let engine = Rig::simulated(&disk).open();
    let table = create(&engine);
    for number in 0..10 {
        put(&engine, &table, &row(number), b"v");
    }
    engine.flush(&table).unwrap();
    let store_files = || {
        let files = disk.files().into_iter();
        files
            .filter(|path| path.starts_with("/data/tables"))
            .collect::<Vec<_>>()
    };
    let parents = store_files();
    let parent = engine.regions(&table).unwrap()[0].id;
    engine.split_region(parent, Some(&row(5))).unwrap();
    assert_eq!(store_files(), parents);
    engine.run_pending().unwrap();
    let halves = store_files();
    assert_eq!(halves.len(), 2);
    assert!(!halves.contains(&parents[0]));
    assert_eq!(rows(&engine, &table).len(), 10);
}

/// MAX_FILESIZE: a table may want smaller regions than the server's. It has two, as the only region of a
/// table splits by the flush size.
#[test]
fn a_table_may_have_a_split_size_of_its_own() {
    let engine = Rig::in_memory().open();
    let mut small = descriptor("small", &["f"]);
    for (option, value) in [("MAX_FILESIZE", "100000"), ("hbase.table.sanity.checks", "false")] {
        small.attributes.insert(option.into(), value.into());
    }
    for table in [small, descriptor("usual", &["f"])] {
        engine.create_table(table.clone(), vec![row(15)]).unwrap();
        for number in 0..20 {
            put(&engine, &table.name, &row(number), &[number as u8; 10_000]);
        }
        engine.flush(&table.name).unwrap();
        engine.run_pending().unwrap();
    }
    assert!(engine.regions(&name("small")).unwrap().len() > 2);
    assert_eq!(engine.regions(&name("usual")).unwrap().len(), 2);
}
