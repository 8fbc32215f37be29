//! Tables, families and namespaces: their operations, and refused ones.

use basalt_engine::Error;
use basalt_engine::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};
use basalt_engine::op::{Scan, Write};
use basalt_engine::schema::{FamilyDescriptor, NamespaceDescriptor, TableState};

use crate::rig::{Rig, apply, create, descriptor, get, mutation, name, put, row, rows, scan, value};

fn namespace(name: &str) -> NamespaceDescriptor {
    NamespaceDescriptor {
        name: name.into(),
        ..NamespaceDescriptor::default()
    }
}

#[test]
fn namespaces_come_and_go_under_hbases_rules() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    let names = |engine: &basalt_engine::Engine| {
        engine
            .namespaces()
            .into_iter()
            .map(|namespace| namespace.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&engine), ["default", "hbase"]);
    let missing = engine
        .create_table(descriptor("n:t", &["f"]), Vec::new())
        .unwrap_err();
    assert!(matches!(missing, Error::NoSuchNamespace(_)));
    assert_eq!(
        missing.to_string(),
        "Unknown namespace n! The namespaces are default, hbase; create_namespace 'n' makes it."
    );
    engine.create_namespace(namespace("n")).unwrap();
    assert!(matches!(
        engine.create_namespace(namespace("n")),
        Err(Error::NamespaceExists(_))
    ));
    assert!(engine.create_namespace(namespace("no-good")).is_err());
    assert!(matches!(
        engine.alter_namespace(namespace("m")),
        Err(Error::NoSuchNamespace(_))
    ));
    let mut changed = namespace("n");
    changed.configuration.insert("owner".into(), "me".into());
    engine.alter_namespace(changed.clone()).unwrap();
    engine
        .create_table(descriptor("n:t", &["f"]), Vec::new())
        .unwrap();
    assert_eq!(
        engine.drop_namespace("n").unwrap_err().to_string(),
        "Only empty namespaces can be removed. Namespace n has 1 tables"
    );
    assert_eq!(
        engine.drop_namespace("hbase").unwrap_err().to_string(),
        "Reserved namespace hbase cannot be removed."
    );
    assert!(matches!(
        engine.drop_namespace("m"),
        Err(Error::NoSuchNamespace(_))
    ));
    drop(engine);
    let engine = rig.open();
    assert!(engine.namespaces().contains(&changed));
    engine.disable_table(&name("n:t")).unwrap();
    engine.drop_table(&name("n:t")).unwrap();
    engine.drop_namespace("n").unwrap();
    assert_eq!(names(&engine), ["default", "hbase"]);
}

#[test]
fn a_table_is_created_with_the_regions_asked_for() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    let splits = |keys: &[&str]| keys.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>();
    for bad in [&["a", "a"][..], &["", "a"]] {
        assert!(engine.create_table(descriptor("t", &["f"]), splits(bad)).is_err());
    }
    assert!(engine.create_table(descriptor("t", &[]), Vec::new()).is_err());
    engine
        .create_table(descriptor("t", &["f"]), splits(&["m", "c"]))
        .unwrap();
    let exists = engine
        .create_table(descriptor("t", &["f"]), Vec::new())
        .unwrap_err();
    assert!(matches!(exists, Error::TableExists(table) if table == name("t")));
    let bounds = |engine: &basalt_engine::Engine| {
        let regions = engine.regions(&name("t")).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        regions
            .into_iter()
            .map(|region| (text(region.start), text(region.end)))
            .collect::<Vec<_>>()
    };
    let expected = [("", "c"), ("c", "m"), ("m", "")].map(|(start, end)| (start.to_owned(), end.to_owned()));
    assert_eq!(bounds(&engine), expected);
    assert_eq!(engine.region_of(&name("t"), b"c").unwrap().start, b"c");
    assert_eq!(engine.region_of(&name("t"), b"bzz").unwrap().start, b"");
    drop(engine);
    assert_eq!(bounds(&rig.open()), expected);
}

#[test]
fn a_disabled_table_takes_no_data_calls_and_only_it_can_be_dropped() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    let table = create(&engine);
    put(&engine, &table, b"a", b"v");
    assert!(matches!(
        engine.drop_table(&table),
        Err(Error::TableNotDisabled(_))
    ));
    assert!(matches!(
        engine.truncate_table(&table, true),
        Err(Error::TableNotDisabled(_))
    ));
    assert!(matches!(
        engine.enable_table(&table),
        Err(Error::TableNotDisabled(_))
    ));
    engine.disable_table(&table).unwrap();
    assert_eq!(engine.describe_table(&table).unwrap().1, TableState::Disabled);
    let refused = apply(&engine, &table, &[mutation(b"a", &[value(b"q", b"w")])]).unwrap_err();
    assert_eq!(refused.to_string(), "t state is DISABLED");
    assert!(matches!(
        engine.scan(&table, Scan::default()),
        Err(Error::TableNotEnabled { .. })
    ));
    assert!(matches!(
        engine.disable_table(&table),
        Err(Error::TableNotEnabled { .. })
    ));
    drop(engine);
    let engine = rig.open();
    assert_eq!(engine.describe_table(&table).unwrap().1, TableState::Disabled);
    engine.enable_table(&table).unwrap();
    assert_eq!(get(&engine, &table, b"a"), Some(b"v".to_vec()));
    engine.disable_table(&table).unwrap();
    engine.drop_table(&table).unwrap();
    for missing in [
        engine.drop_table(&table),
        engine.enable_table(&table),
        engine.disable_table(&table),
    ] {
        assert!(matches!(missing, Err(Error::NoSuchTable(_))));
    }
    // The name can be used again, and nothing of the old table is seen, also not after a restart.
    create(&engine);
    assert_eq!(rows(&engine, &table), []);
    drop(engine);
    assert_eq!(rows(&rig.open(), &table), []);
}

#[test]
fn truncate_empties_a_table_and_keeps_its_regions_if_asked() {
    for keep in [true, false] {
        let rig = Rig::in_memory();
        let engine = rig.open();
        engine
            .create_table(descriptor("t", &["f"]), vec![row(5)])
            .unwrap();
        let table = name("t");
        put(&engine, &table, &row(1), b"v");
        engine.flush(&table).unwrap();
        put(&engine, &table, &row(7), b"v");
        let before = engine.regions(&table).unwrap();
        engine.disable_table(&table).unwrap();
        engine.truncate_table(&table, keep).unwrap();
        assert_eq!(engine.describe_table(&table).unwrap().1, TableState::Enabled);
        let after = engine.regions(&table).unwrap();
        assert_eq!(after.len(), if keep { 2 } else { 1 });
        assert!(
            after
                .iter()
                .all(|new| before.iter().all(|old| old.encoded_name != new.encoded_name))
        );
        assert_eq!(rows(&engine, &table), []);
        drop(engine);
        assert_eq!(rows(&rig.open(), &table), []);
    }
}

/// A family that is dropped and created again is empty, also when the log still holds cells of the old one.
#[test]
fn a_dropped_family_takes_its_data_along() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    engine
        .create_table(descriptor("t", &["f", "g"]), Vec::new())
        .unwrap();
    let table = name("t");
    let in_g = Write::Put {
        family: b"g",
        qualifier: b"q",
        timestamp: None,
        value: b"old",
        ttl_ms: None,
    };
    apply(&engine, &table, &[mutation(b"a", &[in_g, value(b"q", b"kept")])]).unwrap();
    engine.drop_family(&table, b"g").unwrap();
    assert!(matches!(
        engine.drop_family(&table, b"g"),
        Err(Error::InvalidFamilyOperation(_))
    ));
    assert!(matches!(
        engine.drop_family(&table, b"f"),
        Err(Error::InvalidFamilyOperation(_))
    ));
    let refused = apply(&engine, &table, &[mutation(b"a", &[in_g])]).unwrap_err();
    assert!(matches!(refused, Error::NoSuchFamily { .. }));
    engine.add_family(&table, FamilyDescriptor::new(b"g")).unwrap();
    let again = engine
        .add_family(&table, FamilyDescriptor::new(b"g"))
        .unwrap_err();
    assert!(matches!(again, Error::InvalidFamilyOperation(_)));
    assert_eq!(scan(&engine, &table, Scan::default()).len(), 1);
    drop(engine);
    let engine = rig.open();
    let cells = scan(&engine, &table, Scan::default());
    assert_eq!(cells.len(), 1);
    assert_eq!(cells[0].value, "kept");
    apply(&engine, &table, &[mutation(b"a", &[in_g])]).unwrap();
    assert_eq!(scan(&engine, &table, Scan::default()).len(), 2);
}

#[test]
fn altering_a_table_changes_what_reads_return() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    for timestamp in [1, 2, 3] {
        crate::rig::put_at(&engine, &table, b"a", Some(timestamp), b"v");
    }
    let all_versions = || {
        let mut request = Scan::default();
        request.spec.max_versions = i32::MAX;
        scan(&engine, &table, request).len()
    };
    assert_eq!(all_versions(), 3);
    let one_version = FamilyDescriptor::new(b"f").with("VERSIONS", 1).unwrap();
    engine.alter_family(&table, one_version).unwrap();
    assert_eq!(all_versions(), 1);
    let stranger = FamilyDescriptor::new(b"x");
    assert!(matches!(
        engine.alter_family(&table, stranger),
        Err(Error::InvalidFamilyOperation(_))
    ));
    let mut read_only = descriptor("t", &["f"]);
    read_only
        .attributes
        .insert(b"READONLY".to_vec(), b"true".to_vec());
    engine.alter_table(read_only).unwrap();
    assert!(apply(&engine, &table, &[mutation(b"a", &[value(b"q", b"v")])]).is_err());
    assert!(engine.alter_table(descriptor("t", &[])).is_err());
    assert!(matches!(
        engine.alter_table(descriptor("u", &["f"])),
        Err(Error::NoSuchTable(_))
    ));
}

/// Disk space may end when a table is truncated. Wherever the truncation stops, memory and disk
/// agree on the table's regions: later writes are there after a restart.
#[test]
fn a_truncation_without_space_loses_no_later_write() {
    let mut failed = 0;
    for nth in 0..40 {
        let disk = SimFs::new(1, SimOptions::default());
        let rig = Rig::simulated(&disk);
        let engine = rig.open();
        let table = create(&engine);
        put(&engine, &table, b"old", b"v");
        engine.disable_table(&table).unwrap();
        // The manifest has space reserved ahead: the truncation comes to a different place of it in each
        // round.
        let fault = disk.fail(OpKind::Allocate, "MANIFEST", Errno::NOSPC, Times::Always);
        for edit in 0..nth {
            let namespace = NamespaceDescriptor {
                name: format!("n{edit}"),
                ..NamespaceDescriptor::default()
            };
            let _ = engine.create_namespace(namespace);
        }
        failed += usize::from(engine.truncate_table(&table, true).is_err());
        disk.heal(fault);
        let _ = engine.enable_table(&table);
        put(&engine, &table, b"new", b"v");
        let before = rows(&engine, &table);
        drop(engine);
        let engine = Rig::simulated(&disk.crash_keep_all()).open();
        assert_eq!(rows(&engine, &table), before, "round {nth}");
    }
    assert!(failed > 0, "no round ran out of space");
}
