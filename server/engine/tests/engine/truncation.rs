//! Truncation of single regions, and when regions were last compacted as a whole.

use std::sync::Arc;

use basalt_engine::clock::ManualClock;
use basalt_engine::engine::RegionInfo;
use basalt_engine::fs::sim::{CrashWhen, SimFs, SimOptions};
use basalt_engine::op::{Scan, Write};
use basalt_engine::schema::TableName;
use basalt_engine::{Engine, Error};

use crate::rig::{F, Rig, apply, create, descriptor, drain, get, mutation, name, put, row, rows, scan};

/// A table of two regions, `r000` to `r003` and from `r004` on, with a value in `r000` to `r007`.
fn two_regions(engine: &Engine) -> (TableName, Vec<RegionInfo>) {
    engine
        .create_table(descriptor("t", &["f", "g"]), vec![row(4)])
        .unwrap();
    let table = name("t");
    for number in 0..8 {
        put_both(engine, &table, &row(number)).unwrap();
    }
    let regions = engine.regions(&table).unwrap();
    (table, regions)
}

fn put_both(engine: &Engine, table: &TableName, row: &[u8]) -> basalt_engine::Result<()> {
    let put = |family| Write::Put {
        family,
        qualifier: b"q",
        timestamp: None,
        value: b"v",
        ttl_ms: None,
    };
    apply(engine, table, &[mutation(row, &[put(F), put(b"g")])])
}

/// Cells of both families.
fn cells(engine: &Engine, table: &TableName) -> usize {
    scan(engine, table, Scan::default()).len()
}

#[test]
fn a_region_is_emptied_and_keeps_its_name_and_its_neighbour() {
    for is_flushed in [true, false] {
        let (_, rig, engine) = Rig::open_simulated();
        let (table, before) = two_regions(&engine);
        if is_flushed {
            engine.flush(&table).unwrap();
        }
        let emptied = engine.truncate_region(before[0].id).unwrap();
        assert_eq!(cells(&engine, &table), 8);
        assert_eq!(emptied.name(), before[0].name());
        assert_ne!(emptied.id, before[0].id, "ids are not reused");
        assert_eq!(engine.regions(&table).unwrap(), [emptied, before[1].clone()]);
        assert!(matches!(
            engine.truncate_region(before[0].id),
            Err(Error::NoSuchRegion(_))
        ));
        put(&engine, &table, &row(1), b"later");
        // The log still has the old region's rows. They must not come back.
        drop(engine);
        let engine = rig.open();
        assert_eq!(cells(&engine, &table), 9);
        assert_eq!(get(&engine, &table, &row(1)).unwrap(), b"later");
        assert_eq!(get(&engine, &table, &row(0)), None);
        engine.close().unwrap();
        assert_eq!(rig.problems(), [""; 0]);
    }
}

/// Files shared since a split stay for the other half.
#[test]
fn a_half_of_a_split_is_emptied_and_the_other_one_is_not() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    for number in 0..8 {
        put(&engine, &table, &row(number), b"v");
    }
    let whole = engine.regions(&table).unwrap().remove(0);
    let (left, _) = engine.split_region(whole.id, Some(&row(4))).unwrap();
    engine.truncate_region(left.id).unwrap();
    assert_eq!(rows(&engine, &table).len(), 4);
    engine.run_pending().unwrap();
    assert_eq!(rows(&engine, &table).len(), 4);
}

/// A scan that has begun reads what was there, like one over a table that is truncated.
#[test]
fn a_running_scan_goes_on_with_its_snapshot() {
    let engine = Rig::in_memory().open();
    let (table, regions) = two_regions(&engine);
    let mut scanner = engine.scan(&table, Scan::default()).unwrap();
    engine.truncate_region(regions[0].id).unwrap();
    engine.run_pending().unwrap();
    assert_eq!(drain(&mut scanner).len(), 16);
    assert_eq!(cells(&engine, &table), 8);
}

#[test]
fn system_regions_and_disabled_tables_are_refused() {
    let engine = Rig::in_memory().open();
    let (table, regions) = two_regions(&engine);
    let refused = |region| engine.truncate_region(region).unwrap_err().to_string();
    let meta = engine.regions(&name("hbase:meta")).unwrap().remove(0);
    assert_eq!(refused(meta.id), "Can't truncate region in catalog tables");
    engine.disable_table(&table).unwrap();
    assert!(refused(regions[1].id).ends_with("is not OPEN; state=CLOSED"));
    engine.enable_table(&table).unwrap();
    assert_eq!(cells(&engine, &table), 16);
}

/// At whatever call of the file system the process dies: the region is whole or empty, and the other one
/// whole.
#[test]
fn a_crash_leaves_the_region_whole_or_empty() {
    let work = |rig: &Rig| -> basalt_engine::Result<()> {
        let engine = rig.try_open()?;
        engine.create_table(descriptor("t", &["f", "g"]), vec![row(4)])?;
        let table = name("t");
        for number in 0..8 {
            put_both(&engine, &table, &row(number))?;
            if number % 3 == 2 {
                engine.flush(&table)?;
            }
        }
        let region = engine.regions(&table)?[0].id;
        engine.truncate_region(region)?;
        engine.close()
    };
    let disk = SimFs::new(1, SimOptions::default());
    work(&Rig::simulated(&disk)).unwrap();
    let calls = disk.op_count();
    let mut found = std::collections::BTreeSet::new();
    for at in 0..calls {
        let disk = SimFs::new(1, SimOptions::default());
        disk.crash_at_op(at, CrashWhen::Before);
        let _died = work(&Rig::simulated(&disk));
        let rig = Rig::simulated(&disk.crash_keep_all());
        let engine = rig.try_open().unwrap();
        let table = name("t");
        if engine.describe_table(&table).is_err() {
            continue;
        }
        let shown = scan(&engine, &table, Scan::default());
        let (first, second): (Vec<_>, Vec<_>) =
            shown.into_iter().partition(|cell| cell.row.as_str() < "r004");
        // While the rows are written there are fewer of them.
        if second.len() == 8 {
            found.insert(first.len());
        }
        drop(engine);
        assert_eq!(rig.problems(), [""; 0], "call {at}");
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [0, 8]);
}

#[test]
fn the_last_major_compaction_is_that_of_the_oldest_file_of_one() {
    let mut rig = Rig::in_memory();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    rig.clock = Arc::clone(&clock) as _;
    let engine = rig.open();
    let (table, regions) = two_regions(&engine);
    let last = |engine: &Engine| -> Vec<u64> {
        let stats = engine.table_region_stats(&table).unwrap();
        stats
            .iter()
            .map(|region| region.last_major_compaction_ms)
            .collect()
    };
    engine.flush(&table).unwrap();
    assert_eq!(last(&engine), [0, 0], "a flush is none");
    clock.advance_ms(5_000);
    engine.compact_region(regions[0].id, None, true, true).unwrap();
    assert_eq!(last(&engine), [1_700_000_005_000, 0]);
    clock.advance_ms(5_000);
    // One family only: the other one's file is older.
    engine.compact_region(regions[0].id, Some(F), true, true).unwrap();
    assert_eq!(last(&engine), [1_700_000_005_000, 0]);
    engine
        .compact_region(regions[0].id, Some(b"g"), true, true)
        .unwrap();
    put(&engine, &table, &row(1), b"later");
    engine.flush(&table).unwrap();
    assert_eq!(last(&engine), [1_700_000_010_000, 0]);
    drop(engine);
    assert_eq!(last(&rig.open()), [1_700_000_010_000, 0]);
}
