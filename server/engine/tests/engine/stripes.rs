//! Stores that are cut into stripes: flushes, compactions, splits and merges on a whole engine.

use std::collections::BTreeMap;

use basalt_engine::Engine;
use basalt_engine::op::Write;
use basalt_engine::options::Options;
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};

use crate::rig::{F, Rig, apply, create, descriptor, get, mutation, name, put, row, rows};

/// A database whose stores have stripes of about 8 KB from 16 KB on.
fn rig() -> Rig {
    let mut rig = Rig::in_memory();
    rig.options = Options {
        compaction_stripe_bytes: 8 << 10,
        compaction_stripes_max: 16,
        compaction_min_bytes: 0,
        ..rig.options
    };
    rig
}

fn files(engine: &Engine) -> Vec<u64> {
    let regions = engine.region_stats();
    regions.iter().map(|region| region.store_files).collect()
}

/// A hundred rows of about a kilobyte, flushed and compacted.
fn fill(engine: &Engine, table: &TableName) {
    for number in 0..100 {
        put(engine, table, &row(number), "v".repeat(1_000).as_bytes());
    }
    engine.flush(table).unwrap();
    engine.compact(table, None, true, true).unwrap();
}

fn delete(engine: &Engine, table: &TableName, number: usize) {
    let delete = Write::DeleteColumn {
        family: F,
        qualifier: b"q",
        timestamp: None,
    };
    apply(engine, table, &[mutation(&row(number), &[delete])]).unwrap();
}

#[test]
fn a_large_store_is_cut_and_stays_so() {
    let rig = rig();
    let engine = rig.open();
    let table = create(&engine);
    fill(&engine, &table);
    let count = files(&engine)[0];
    assert!((4..=16).contains(&count), "{count} stripes");
    // A file in the first stripe and one in the last.
    delete(&engine, &table, 0);
    put(&engine, &table, &row(99), b"new");
    engine.flush(&table).unwrap();
    assert_eq!(files(&engine), [count + 2]);
    let check = |engine: &Engine| {
        assert_eq!(get(engine, &table, &row(0)), None);
        assert_eq!(get(engine, &table, &row(99)).as_deref(), Some(&b"new"[..]));
        assert_eq!(rows(engine, &table).len(), 99);
    };
    check(&engine);
    engine.close().unwrap();
    drop(engine);
    assert_eq!(rig.problems(), [""; 0]);
    let engine = rig.open();
    check(&engine);
    let before = engine.counters().major_compactions.get();
    engine.compact(&table, None, true, true).unwrap();
    let majors = engine.counters().major_compactions.get() - before;
    assert!(majors >= 4, "one compaction for each stripe: {majors}");
    assert_eq!(files(&engine)[0], majors);
    check(&engine);
    engine.close().unwrap();
    drop(engine);
    check(&rig.open());
}

/// Minor compactions take the files of one stripe; those of others stay.
#[test]
fn stripes_are_compacted_one_by_one() {
    let mut rig = rig();
    rig.options.compaction_max_files = 3;
    let engine = rig.open();
    let table = create(&engine);
    fill(&engine, &table);
    let count = files(&engine)[0];
    let before = engine.counters().compaction_read_bytes.get();
    for value in ["one", "two", "three"] {
        put(&engine, &table, &row(1), value.as_bytes());
        engine.flush(&table).unwrap();
    }
    engine.run_pending().unwrap();
    let left = files(&engine)[0];
    assert!(left <= count + 1, "{left} files from {}", count + 3);
    let read = engine.counters().compaction_read_bytes.get() - before;
    assert!(read < 60_000, "{read} bytes of one stripe");
    assert_eq!(get(&engine, &table, &row(1)).as_deref(), Some(&b"three"[..]));
    assert_eq!(rows(&engine, &table).len(), 100);
}

#[test]
fn regions_with_stripes_split_and_merge() {
    let rig = rig();
    let engine = rig.open();
    let table = create(&engine);
    fill(&engine, &table);
    for number in (0..100).step_by(3) {
        delete(&engine, &table, number);
    }
    let before = rows(&engine, &table);
    let region = engine.regions(&table).unwrap()[0].id;
    engine.split_region(region, None).unwrap();
    assert_eq!(rows(&engine, &table), before);
    let halves = engine.regions(&table).unwrap();
    let middle = String::from_utf8(halves[0].end.clone()).unwrap();
    let at: usize = middle
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .unwrap();
    assert!(
        (35..=65).contains(&at),
        "the split row {middle} is near the middle"
    );
    engine.run_pending().unwrap();
    assert_eq!(rows(&engine, &table), before);
    let ids: Vec<_> = engine
        .regions(&table)
        .unwrap()
        .iter()
        .map(|half| half.id)
        .collect();
    engine.merge_regions(&ids).unwrap();
    engine.run_pending().unwrap();
    assert_eq!(rows(&engine, &table), before);
    engine.compact(&table, None, true, true).unwrap();
    assert_eq!(rows(&engine, &table), before);
    engine.close().unwrap();
    drop(engine);
    assert_eq!(rows(&rig.open(), &table), before);
}

/// A table that names HBase's default store engine has no stripes.
#[test]
fn a_table_may_have_no_stripes() {
    let rig = rig();
    let engine = rig.open();
    let mut plain: TableDescriptor = descriptor("plain", &["f"]);
    plain.attributes.insert(
        b"hbase.hstore.engine.class".to_vec(),
        b"org.apache.hadoop.hbase.regionserver.DefaultStoreEngine".to_vec(),
    );
    engine.create_table(plain, Vec::new()).unwrap();
    let table = name("plain");
    fill(&engine, &table);
    assert_eq!(files(&engine), [1]);
}

/// Goal: rows that are written again and again take no more space than the setting says, although the files
/// that overwrite them are too few and too small for HBase's policy; not in a table that keeps the versions,
/// nor in one that names that policy.
#[test]
fn a_stripe_is_merged_for_its_overwritten_versions() {
    let rig = rig();
    let engine = rig.open();
    let policy = b"hbase.hstore.defaultengine.compactionpolicy.class".to_vec();
    let exploring = b"org.apache.hadoop.hbase.regionserver.compactions.ExploringCompactionPolicy".to_vec();
    let cases = [
        ("overwritten", 1, BTreeMap::new(), 0),
        ("kept", 3, BTreeMap::new(), 2),
        ("exploring", 1, BTreeMap::from([(policy, exploring)]), 2),
    ];
    for (table, versions, attributes, expected) in cases {
        let mut descriptor = descriptor(table, &["f"]);
        descriptor.families = vec![FamilyDescriptor::new(b"f").with("VERSIONS", versions).unwrap()];
        descriptor.attributes.extend(attributes);
        engine.create_table(descriptor, Vec::new()).unwrap();
        let table = name(table);
        fill(&engine, &table);
        let count = || engine.table_region_stats(&table).unwrap()[0].store_files;
        let before = count();
        // Rows of the first stripe, which has a dozen.
        for value in ["one", "two"] {
            for number in 0..3 {
                put(&engine, &table, &row(number), value.as_bytes());
            }
            engine.flush(&table).unwrap();
        }
        engine.run_pending().unwrap();
        assert_eq!(count() - before, expected, "{table}");
        assert_eq!(get(&engine, &table, &row(2)).as_deref(), Some(&b"two"[..]));
        assert_eq!(rows(&engine, &table).len(), 100);
    }
}
