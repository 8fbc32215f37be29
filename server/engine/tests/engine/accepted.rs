//! Settings that clients make hold: switches, quotas of namespaces, options of tables, coprocessors.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::clock::ManualClock;
use basalt_engine::metrics::EventListener;
use basalt_engine::op::{ColumnAppend, ReadTier, RowUpdate};
use basalt_engine::options::UnknownUserCode;
use basalt_engine::schema::{NamespaceDescriptor, Switch, TableDescriptor, TableName};
use basalt_engine::{Engine, Error};

use crate::rig::{F, Rig, apply, create, descriptor, mutation, name, put, rows, update_in, value};

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

fn with(table: &str, options: &[(&str, &str)]) -> TableDescriptor {
    let mut table = descriptor(table, &["f"]);
    for (option, value) in options {
        table.attributes.insert((*option).into(), (*value).into());
    }
    table
}

fn fill(engine: &Engine, table: &TableName, rows: std::ops::Range<u32>, bytes: usize) {
    for row in rows {
        put(engine, table, format!("{row:06}").as_bytes(), &vec![b'v'; bytes]);
        // Before the memstore is full.
        if row % 20 == 0 {
            engine.run_pending().unwrap();
        }
    }
    engine.flush(table).unwrap();
}

fn region_names(engine: &Engine, table: &TableName) -> Vec<String> {
    let regions = engine.regions(table).unwrap().into_iter();
    regions
        .map(|region| String::from_utf8_lossy(&region.name()).into_owned())
        .collect()
}

#[test]
fn split_and_merge_switches_hold_until_they_are_turned_on() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 40_000;
    let engine = rig.open();
    let table = create(&engine);
    assert!(engine.turn(Switch::Splits, false).unwrap());
    assert!(!engine.turn(Switch::Splits, false).unwrap());
    let region = engine.regions(&table).unwrap()[0].clone();
    assert_eq!(
        refusal(engine.split_region(region.id, Some(b"m"))),
        format!(
            "Split region {} failed due to split switch off",
            region_names(&engine, &table)[0]
        )
    );
    // By default the only region of a table splits at twice the flush size.
    fill(&engine, &table, 0..200, 1_000);
    engine.run_pending().unwrap();
    assert_eq!(engine.regions(&table).unwrap().len(), 1, "the policy, too");
    drop(engine);

    let engine = rig.open();
    assert!(!engine.is_on(Switch::Splits), "after a restart");
    assert!(engine.is_on(Switch::Merges));
    assert!(!engine.turn(Switch::Splits, true).unwrap());
    engine.split_region(region.id, None).unwrap();
    engine.turn(Switch::Merges, false).unwrap();
    let ids: Vec<_> = engine
        .regions(&table)
        .unwrap()
        .iter()
        .map(|region| region.id)
        .collect();
    assert_eq!(
        refusal(engine.merge_regions(&ids)),
        format!(
            "Merge of {} failed because merge switch is off",
            region_names(&engine, &table).join(", ")
        )
    );
    engine.turn(Switch::Merges, true).unwrap();
    engine.merge_regions(&ids).unwrap();
    let system = engine
        .namespaces()
        .into_iter()
        .find(|namespace| namespace.name == "hbase");
    assert!(
        system.unwrap().configuration.is_empty(),
        "a switch that is on leaves nothing"
    );
}

#[test]
fn a_reset_turns_all_switches_on() {
    let engine = Rig::in_memory().open();
    for switch in Switch::ALL {
        engine.turn(switch, false).unwrap();
        assert!(!engine.is_on(switch), "{switch:?}");
    }
    engine.reset().unwrap();
    assert!(Switch::ALL.into_iter().all(|switch| engine.is_on(switch)));
}

#[test]
fn expired_snapshots_stay_while_their_cleanup_is_off() {
    let mut rig = Rig::in_memory();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    rig.clock = clock.clone();
    let engine = rig.open();
    let table = create(&engine);
    engine.snapshot(&table, "short", true, 10).unwrap();
    engine.turn(Switch::SnapshotCleanup, false).unwrap();
    clock.advance_ms(120_000);
    engine.run_pending().unwrap();
    assert_eq!(engine.snapshots().len(), 1);
    assert!(matches!(
        engine.clone_snapshot("short", &name("other")),
        Err(Error::SnapshotExpired(_))
    ));
    engine.turn(Switch::SnapshotCleanup, true).unwrap();
    clock.advance_ms(120_000);
    engine.run_pending().unwrap();
    assert_eq!(engine.snapshots().len(), 0);
}

#[test]
fn a_namespace_has_quotas_for_tables_and_regions() {
    let mut rig = Rig::in_memory();
    rig.options.memstore_flush_bytes = 40_000;
    rig.options.region_max_bytes = 100_000;
    let engine = rig.open();
    let namespace = |tables: &str, regions: &str| NamespaceDescriptor {
        name: "ns".to_owned(),
        configuration: [
            ("hbase.namespace.quota.maxtables".to_owned(), tables.to_owned()),
            ("hbase.namespace.quota.maxregions".to_owned(), regions.to_owned()),
        ]
        .into(),
    };
    assert!(matches!(
        engine.create_namespace(namespace("many", "5")),
        Err(Error::DoNotRetry(_))
    ));
    assert!(matches!(
        engine.create_namespace(namespace("2", "0")),
        Err(Error::Constraint(_))
    ));
    engine.create_namespace(namespace("2", "5")).unwrap();
    let keys = |keys: &[&str]| keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    engine
        .create_table(descriptor("ns:a", &["f"]), keys(&["m"]))
        .unwrap();
    let text = refusal(engine.create_table(descriptor("ns:b", &["f"]), keys(&["b", "c", "d"])));
    assert_eq!(
        text,
        "The table ns:b is not allowed to have 4 regions. The total number of regions permitted is only 5, while current \
         region count is 2. This may be transient, please retry later if there are any ongoing split operations in the \
         namespace."
    );
    engine
        .create_table(descriptor("ns:b", &["f"]), keys(&["b", "c"]))
        .unwrap();
    let over = engine.create_table(descriptor("ns:c", &["f"]), Vec::new());
    assert!(matches!(over, Err(Error::QuotaExceeded(_))));
    assert_eq!(
        refusal(over),
        "The table ns:c cannot be created as it would exceed maximum number of tables allowed  in the namespace.  The total \
         number of tables permitted is 2"
    );
    // Other namespaces have no quota.
    engine.create_table(descriptor("c", &["f"]), Vec::new()).unwrap();

    let region = engine.regions(&name("ns:a")).unwrap()[0].clone();
    assert_eq!(
        refusal(engine.split_region(region.id, Some(b"b"))),
        format!(
            "Region split not possible for :{} as quota limits are exceeded ",
            region.encoded_name
        )
    );
    fill(&engine, &name("ns:a"), 0..400, 1_000);
    engine.run_pending().unwrap();
    assert_eq!(engine.regions(&name("ns:a")).unwrap().len(), 2, "the policy, too");

    engine.snapshot(&name("c"), "of_c", true, 0).unwrap();
    let cloned = engine.clone_snapshot("of_c", &name("ns:d"));
    assert!(
        matches!(cloned, Err(Error::QuotaExceeded(_))),
        "a clone is a table"
    );
    engine.snapshot(&name("ns:a"), "of_a", true, 0).unwrap();
    let ids: Vec<_> = engine
        .regions(&name("ns:a"))
        .unwrap()
        .iter()
        .map(|region| region.id)
        .collect();
    engine.merge_regions(&ids).unwrap();
    engine.alter_namespace(namespace("2", "4")).unwrap();
    engine.disable_table(&name("ns:a")).unwrap();
    let restored = refusal(engine.restore_snapshot("of_a"));
    assert!(
        restored.starts_with("The table ns:a region count cannot be updated"),
        "{restored}"
    );
    engine.alter_namespace(namespace("2", "5")).unwrap();
    engine.restore_snapshot("of_a").unwrap();
    assert_eq!(engine.regions(&name("ns:a")).unwrap().len(), 2);
}

#[test]
fn a_table_has_a_largest_cell_of_its_own() {
    let mut rig = Rig::in_memory();
    rig.options.cell_max_bytes = 1_000;
    let engine = rig.open();
    let limit = "hbase.server.keyvalue.maxsize";
    engine
        .create_table(with("small", &[(limit, "100")]), Vec::new())
        .unwrap();
    engine
        .create_table(with("free", &[(limit, "0")]), Vec::new())
        .unwrap();
    engine.create_table(with("plain", &[]), Vec::new()).unwrap();
    let write = |table: &str, bytes: usize| {
        let cell = vec![b'v'; bytes];
        apply(&engine, &name(table), &[mutation(b"r", &[value(b"q", &cell)])])
    };
    // Row, family and qualifier have three bytes, and a cell has 24 besides.
    write("small", 100 - 24 - 3).unwrap();
    assert_eq!(
        refusal(write("small", 100 - 24 - 2)),
        "Cell with size 101 exceeds limit of 100 bytes"
    );
    write("free", 5_000).unwrap();
    write("plain", 1_000 - 3).unwrap();
    assert_eq!(
        refusal(write("plain", 1_000 - 2)),
        "Cell with size 1001 exceeds limit of 1000 bytes"
    );
    let append = RowUpdate::Append(vec![ColumnAppend {
        family: F,
        qualifier: b"q",
        value: b"two",
        timestamp: None,
    }]);
    let appended = update_in(
        &engine,
        ReadTier::All,
        &name("small"),
        b"r",
        &append,
        &mut CellBatch::new(),
    );
    assert!(
        refusal(appended).contains("exceeds limit of 100 bytes"),
        "what an append makes"
    );
    let before = rows(&engine, &name("small"));
    let batch = [
        mutation(b"a", &[value(b"q", b"good")]),
        mutation(b"b", &[value(b"q", &[b'v'; 200])]),
    ];
    assert!(apply(&engine, &name("small"), &batch).is_err());
    assert_eq!(
        rows(&engine, &name("small")),
        before,
        "nothing of a batch with one such cell"
    );
    engine.alter_table(with("small", &[(limit, "1000")])).unwrap();
    write("small", 500).unwrap();
}

/// Keeps the notices.
#[derive(Debug, Default)]
struct Notices(Mutex<Vec<String>>);

impl EventListener for Notices {
    fn notice(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }
}

#[test]
fn a_coprocessor_that_cannot_run_is_refused() {
    let mut rig = Rig::in_memory();
    let notices = Arc::new(Notices::default());
    rig.listener = notices.clone();
    let observer = ("coprocessor$1", "|org.example.Observer|1001|");
    let told = || std::mem::take(&mut *notices.0.lock().unwrap());
    let engine = rig.open();
    let opened = told();
    assert!(
        matches!(&opened[..], [one] if one.starts_with("opened ")),
        "{opened:?}"
    );
    let made = engine.create_table(with("t", &[observer]), Vec::new());
    assert!(matches!(&made, Err(Error::DoNotRetry(_))), "{made:?}");
    let table = create(&engine);
    let altered = refusal(engine.alter_table(with("t", &[observer])));
    assert!(
        altered.starts_with("Class org.example.Observer cannot be loaded Set "),
        "{altered}"
    );
    let known = "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1|";
    engine
        .alter_table(with("t", &[("coprocessor$1", known)]))
        .unwrap();
    assert_eq!(told(), [""; 0]);
    let bypassed = with("t", &[observer, ("hbase.table.sanity.checks", "false")]);
    engine.alter_table(bypassed).unwrap();
    let text = "table t names the coprocessor org.example.Observer, which this server does not run";
    assert_eq!(told(), [text]);
    drop(engine);

    rig.options.unknown_user_code = UnknownUserCode::Ignore;
    let engine = rig.open();
    told();
    engine.alter_table(with("t", &[observer])).unwrap();
    assert_eq!(told(), [text]);
    let (described, _) = engine.describe_table(&table).unwrap();
    assert!(described.attributes.contains_key(b"coprocessor$1".as_slice()));
}

#[test]
fn the_normalizer_splits_and_merges() {
    let mut rig = Rig::in_memory();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    rig.clock = clock.clone();
    let engine = rig.open();
    let options = [
        ("NORMALIZATION_ENABLED", "true"),
        ("NORMALIZER_TARGET_REGION_SIZE_MB", "2"),
        ("SPLIT_POLICY", "ConstantSizeRegionSplitPolicy"),
    ];
    let keys = ["100000", "100001", "100002"].map(|key| key.as_bytes().to_vec());
    engine.create_table(with("t", &options), keys.to_vec()).unwrap();
    engine
        .create_table(with("other", &options[1..]), keys.to_vec())
        .unwrap();
    let table = name("t");
    for table in [&table, &name("other")] {
        fill(&engine, table, 0..6_000, 1_000);
    }
    let starts = |table: &str| -> Vec<String> {
        let regions = engine.regions(&name(table)).unwrap().into_iter();
        regions
            .map(|region| String::from_utf8(region.start).unwrap())
            .collect()
    };
    let before = starts("t");
    // The first run is due, and merges want regions of three days.
    engine.turn(Switch::Normalizer, false).unwrap();
    let all = || [table.clone(), name("other")];
    assert!(!engine.normalize(all()), "switched off");
    clock.advance_ms(600_000);
    engine.run_pending().unwrap();
    assert_eq!(starts("t"), before);
    engine.turn(Switch::Normalizer, true).unwrap();
    assert!(engine.normalize(all()));
    engine.run_pending().unwrap();
    let split = starts("t");
    assert_eq!((split.len(), &split[2..]), (5, &before[1..]), "{split:?}");
    assert!(
        split[1].as_str() > "001000" && split[1].as_str() < "005000",
        "{split:?}"
    );
    // Now by the clock.
    clock.advance_ms(4 * 86_400_000);
    for _ in 0..3 {
        clock.advance_ms(Duration::from_mins(6).as_millis() as u64);
        engine.run_pending().unwrap();
    }
    let merged = starts("t");
    assert!(
        !merged.contains(&"100001".to_owned()),
        "empty neighbours are merged: {merged:?}"
    );
    assert_eq!(rows(&engine, &table).len(), 6_000);
    assert_eq!(starts("other"), before, "a table that does not ask for it");
}
