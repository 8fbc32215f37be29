//! When regions split by themselves, and where: the policies of HBase, as a table's options choose them.

use std::sync::Arc;

use basalt_engine::clock::ManualClock;
use basalt_engine::op::Write;
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
use basalt_engine::{Engine, Error};

use crate::rig::{Rig, apply, create, descriptor, mutation, name, put, row, rows, value};

/// The flush size of these tests, in bytes.
const FLUSH_BYTES: u64 = 40_000;

fn small_rig() -> Rig {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = FLUSH_BYTES;
    rig
}

/// Table `t` with these options; sizes may be as small as tests want them, and all regions split at the same
/// size.
fn create_with(engine: &Engine, options: &[(&str, &str)]) -> TableName {
    engine.create_table(with(options), Vec::new()).unwrap();
    name("t")
}

fn with(options: &[(&str, &str)]) -> TableDescriptor {
    let mut table = descriptor("t", &["f"]);
    let unchecked = [
        ("hbase.table.sanity.checks", "false"),
        ("hbase.hregion.max.filesize.jitter", "0"),
    ];
    for (option, value) in options.iter().chain(&unchecked) {
        table.attributes.insert((*option).into(), (*value).into());
    }
    table
}

/// Writes rows of a thousand bytes, with all the background work that follows.
fn fill(engine: &Engine, table: &TableName, keys: impl Iterator<Item = Vec<u8>>) {
    for key in keys {
        put(engine, table, &key, &[key.len() as u8; 1_000]);
        engine.run_pending().unwrap();
    }
    engine.flush(table).unwrap();
    engine.run_pending().unwrap();
}

fn region_count(engine: &Engine, table: &TableName) -> usize {
    engine.regions(table).unwrap().len()
}

/// The rows between regions.
fn boundaries(engine: &Engine, table: &TableName) -> Vec<String> {
    let regions = engine.regions(table).unwrap();
    let text = |row: &Vec<u8>| String::from_utf8(row.clone()).unwrap();
    regions[1..].iter().map(|region| text(&region.start)).collect()
}

/// The default: the only region at twice the flush size, however small MAX_FILESIZE is; the others at
/// MAX_FILESIZE.
#[test]
fn stepping_takes_the_first_step_early() {
    for (options, expected) in [
        (&[("MAX_FILESIZE", "60000")][..], 4..9),
        (&[("hbase.hregion.max.filesize", "60000")], 4..9),
        (&[("MAX_FILESIZE", "10000000")], 2..3),
        (&[], 2..3),
        (&[("SPLIT_POLICY", "ConstantSizeRegionSplitPolicy")], 1..2),
        (&[("SPLIT_ENABLED", "false"), ("MAX_FILESIZE", "60000")], 1..2),
        (
            &[
                ("SPLIT_POLICY", "DisabledRegionSplitPolicy"),
                ("MAX_FILESIZE", "60000"),
            ],
            1..2,
        ),
        (
            &[
                (
                    "SPLIT_POLICY",
                    "org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy",
                ),
                ("MAX_FILESIZE", "60000"),
            ],
            4..9,
        ),
        // Eight times the initial size with two regions, 27 times with three.
        (
            &[
                (
                    "hbase.regionserver.region.split.policy",
                    "IncreasingToUpperBoundRegionSplitPolicy",
                ),
                ("hbase.increasing.policy.initial.size", "30000"),
            ],
            2..4,
        ),
    ] {
        let engine = small_rig().open();
        let table = create_with(&engine, options);
        fill(&engine, &table, (0..300).map(row));
        let regions = region_count(&engine, &table);
        assert!(expected.contains(&regions), "{regions} regions with {options:?}");
        assert_eq!(rows(&engine, &table).len(), 300);
    }
}

/// By default a region splits when one of its stores is too large; with `hbase.hregion.split.overallfiles`,
/// when all together are.
#[test]
fn all_stores_together_may_count() {
    for (together, regions) in [("false", 1), ("true", 2)] {
        let engine = small_rig().open();
        let mut table = with(&[
            ("SPLIT_POLICY", "ConstantSizeRegionSplitPolicy"),
            ("MAX_FILESIZE", "150000"),
            ("hbase.hregion.split.overallfiles", together),
        ]);
        table.families.push(FamilyDescriptor::new(b"g"));
        engine.create_table(table, Vec::new()).unwrap();
        // 100 kB in each of two stores.
        for number in 0..100 {
            let write = |family| Write::Put {
                family,
                qualifier: b"q",
                timestamp: None,
                value: &[7; 1_000],
                ttl_ms: None,
            };
            apply(
                &engine,
                &name("t"),
                &[mutation(&row(number), &[write(b"f"), write(b"g")])],
            )
            .unwrap();
            engine.run_pending().unwrap();
        }
        engine.flush(&name("t")).unwrap();
        engine.run_pending().unwrap();
        assert_eq!(region_count(&engine, &name("t")), regions, "together: {together}");
    }
}

/// The rows of a group are in one region, whether the region split by itself or was asked to.
#[test]
fn prefix_policies_keep_groups_together() {
    let key = |number: usize| format!("u{:02}_{:03}", number / 30, number % 30).into_bytes();
    let prefix = [
        ("SPLIT_POLICY", "KeyPrefixRegionSplitPolicy"),
        ("KeyPrefixRegionSplitPolicy.prefix_length", "3"),
    ];
    let delimiter = [
        ("SPLIT_POLICY", "DelimitedKeyPrefixRegionSplitPolicy"),
        ("DelimitedKeyPrefixRegionSplitPolicy.delimiter", "_"),
    ];
    let restriction = [
        (
            "hbase.regionserver.region.split_restriction.type",
            "DelimitedKeyPrefix",
        ),
        ("hbase.regionserver.region.split_restriction.delimiter", "_"),
    ];
    for options in [prefix, delimiter, restriction] {
        let engine = small_rig().open();
        let table = create_with(&engine, &options);
        fill(&engine, &table, (0..300).map(key));
        let automatic = boundaries(&engine, &table);
        assert!(!automatic.is_empty(), "{options:?}");
        engine.compact(&table, None, true, true).unwrap();
        // All rows that came in after the first split are in here.
        let last = engine.regions(&table).unwrap().pop().unwrap();
        engine.split_region(last.id, None).unwrap();
        let all = boundaries(&engine, &table);
        assert!(all.len() > automatic.len());
        assert!(all.iter().all(|row| row.len() == 3), "{all:?}");
        assert_eq!(rows(&engine, &table).len(), 300);
        let last = engine.regions(&table).unwrap().pop().unwrap();
        let (_, right) = engine.split_region(last.id, Some(b"u09_020")).unwrap();
        // A policy says where a region is split by default; a restriction says where it may be
        // split at all.
        let expected: &[u8] = if options == restriction {
            b"u09"
        } else {
            b"u09_020"
        };
        assert_eq!(right.start, expected);
    }
}

/// One group, or one row, fills the region: there is no row to split at. It is not tried again and
/// again, and a request for it gets an error.
#[test]
fn a_region_without_a_middle_is_not_split() {
    let engine = small_rig().open();
    let table = create_with(
        &engine,
        &[
            ("SPLIT_POLICY", "KeyPrefixRegionSplitPolicy"),
            ("KeyPrefixRegionSplitPolicy.prefix_length", "1"),
            ("MAX_FILESIZE", "60000"),
        ],
    );
    fill(&engine, &table, (0..200).map(row));
    assert_eq!(boundaries(&engine, &table), ["r"], "below and from the group on");
    let region = engine.regions(&table).unwrap().remove(1);
    let (splits, flushes) = (engine.counters().splits.get(), engine.counters().flushes.get());
    engine.run_pending().unwrap();
    assert_eq!(
        (engine.counters().splits.get(), engine.counters().flushes.get()),
        (splits, flushes)
    );
    let refused = engine.split_region(region.id, None).unwrap_err().to_string();
    assert_eq!(refused, "Split row is equal to startkey: r");

    let engine = small_rig().open();
    let one_row = create_with(&engine, &[("MAX_FILESIZE", "60000")]);
    for number in 0..200 {
        let key = format!("{number:03}");
        let write = value(key.as_bytes(), &[7; 1_000]);
        apply(&engine, &one_row, &[mutation(b"row", &[write])]).unwrap();
        engine.run_pending().unwrap();
    }
    engine.flush(&one_row).unwrap();
    let flushes = engine.counters().flushes.get();
    engine.run_pending().unwrap();
    assert_eq!(
        (region_count(&engine, &one_row), engine.counters().flushes.get()),
        (1, flushes)
    );
    let region = engine.regions(&one_row).unwrap().remove(0);
    let refused = engine.split_region(region.id, None).unwrap_err().to_string();
    assert!(refused.contains("bestSplitPoint = null"), "{refused}");
}

/// The largest store has one row only. The middle of the other one is taken.
#[test]
fn the_middle_is_that_of_the_largest_store_that_has_one() {
    let engine = Rig::in_memory().open();
    engine
        .create_table(descriptor("t", &["f", "g"]), Vec::new())
        .unwrap();
    let table = name("t");
    let in_g = |value| Write::Put {
        family: b"g",
        qualifier: b"q",
        timestamp: None,
        value,
        ttl_ms: None,
    };
    let large = vec![7; 600_000];
    apply(&engine, &table, &[mutation(&row(0), &[in_g(&large)])]).unwrap();
    for number in 0..300 {
        put(&engine, &table, &row(number), &[7; 1_000]);
    }
    let region = engine.regions(&table).unwrap().remove(0);
    let (left, _) = engine.split_region(region.id, None).unwrap();
    assert!((row(100)..row(200)).contains(&left.end), "{:?}", left.end);
}

/// Both halves share the parent's files. The middle of a half is found all the same.
#[test]
fn a_half_can_be_split_at_once() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    for number in 0..400 {
        put(&engine, &table, &row(number), &[7; 1_000]);
    }
    let region = engine.regions(&table).unwrap().remove(0);
    let (left, right) = engine.split_region(region.id, None).unwrap();
    for half in [left, right] {
        let (first, second) = engine.split_region(half.id, None).unwrap();
        assert!(half.start < first.end && first.end == second.start);
    }
    assert_eq!(region_count(&engine, &table), 4);
    assert_eq!(rows(&engine, &table).len(), 400);
}

#[test]
fn policies_can_be_changed_and_unknown_ones_are_refused() {
    let engine = small_rig().open();
    let unknown = |option: &str| {
        let mut table = descriptor("t", &["f"]);
        table
            .attributes
            .insert(option.into(), b"org.example.NoSuch".to_vec());
        table
    };
    let expected = "Unable to load configured region split policy 'org.example.NoSuch' for table 't' Set";
    for option in ["SPLIT_POLICY", "hbase.regionserver.region.split.policy"] {
        let refused = engine.create_table(unknown(option), Vec::new()).unwrap_err();
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }
    let table = create_with(&engine, &[("SPLIT_POLICY", "DisabledRegionSplitPolicy")]);
    let refused = engine.alter_table(unknown("SPLIT_POLICY")).unwrap_err();
    assert!(refused.to_string().starts_with(expected), "{refused}");
    fill(&engine, &table, (0..300).map(row));
    assert_eq!(region_count(&engine, &table), 1);
    let region = engine.regions(&table).unwrap().remove(0);
    assert_eq!(
        engine.encoded_name(region.id).as_ref(),
        Some(&region.encoded_name)
    );
    let refused = engine.split_region(region.id, Some(&row(5))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("{} NOT splittable", region.encoded_name)
    );
    engine.alter_table(with(&[("SPLIT_ENABLED", "false")])).unwrap();
    let refused = engine.split_region(region.id, Some(&row(5))).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("region split is disabled for the table"),
        "{refused}"
    );
    engine.alter_table(with(&[("MERGE_ENABLED", "false")])).unwrap();
    let (left, right) = engine.split_region(region.id, Some(&row(5))).unwrap();
    let refused = engine.merge_regions(&[left.id, right.id]).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("region merge is disabled for the table"),
        "{refused}"
    );
    // A table that was made without checks, with an unknown policy: it splits by the default one.
    let mut unchecked = with(&[("SPLIT_POLICY", "org.example.NoSuch")]);
    unchecked.name = name("u");
    engine.create_table(unchecked, Vec::new()).unwrap();
    fill(&engine, &name("u"), (0..300).map(row));
    assert_eq!(region_count(&engine, &name("u")), 2);
}

/// A region that has to refuse many writes splits although it is small.
#[test]
fn a_busy_region_splits() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let mut rig = Rig {
        clock: Arc::clone(&clock) as _,
        ..Rig::in_memory()
    };
    rig.options.memstore_flush_bytes = 1 << 20;
    rig.options.memstore_block_multiplier = 1;
    let engine = rig.open();
    let policy = ("SPLIT_POLICY", "BusyRegionSplitPolicy");
    let table = create_with(&engine, &[policy, ("MAX_FILESIZE", "1000000000")]);
    let refuse_some = || {
        let mut refused = 0;
        for number in 0..2_000 {
            let writes = [value(b"q", &[7; 1_000])];
            match apply(&engine, &table, &[mutation(&row(number % 1000), &writes)]) {
                Ok(()) => {}
                Err(Error::RegionTooBusy(_)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused > 500, "{refused} writes were refused");
        engine.flush(&table).unwrap();
        engine.run_pending().unwrap();
    };
    engine.flush(&table).unwrap();
    refuse_some();
    assert_eq!(region_count(&engine, &table), 1, "too young");
    clock.advance_ms(11 * 60_000);
    refuse_some();
    assert_eq!(region_count(&engine, &table), 2);
    assert_eq!(engine.counters().splits.get(), 1);
}

/// Table options that HBase has no split for do not disturb: a family's, a number in words.
#[test]
fn unreadable_sizes_are_refused() {
    let engine = Rig::in_memory().open();
    for option in ["MAX_FILESIZE", "hbase.increasing.policy.initial.size"] {
        let mut table = TableDescriptor::new(name("t"), vec![FamilyDescriptor::new(b"f")]);
        table.attributes.insert(option.into(), b"zz".to_vec());
        let refused = engine.create_table(table, Vec::new()).unwrap_err().to_string();
        assert!(refused.contains(option) && refused.contains("zz"), "{refused}");
    }
}
