//! Every method about tables and namespaces, once, as it is meant to be used.

use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, name, some, text};

#[test]
fn tables_through_thrift_1() {
    let mut wire = Wire::connect();
    let table_name = || some("tables1");
    let family = thrift1::ColumnDescriptor {
        name: some("f:"),
        max_versions: 7,
        compression: "gz".into(),
        in_memory: true,
        bloom_filter_type: "ROWCOL".into(),
        block_cache_enabled: true,
        time_to_live: 60,
        bloom_filter_vector_size: 5,
        bloom_filter_nb_hashes: 5,
    };
    wire.ok(&one::CreateTable {
        table_name: table_name(),
        column_families: Some(vec![family.clone()]),
    });
    assert!(wire.ok(&one::GetTableNames {}).contains(&bytes("tables1")));
    let described = wire.ok(&one::GetColumnDescriptors {
        table_name: table_name(),
    });
    let shown = thrift1::ColumnDescriptor {
        compression: "GZ".into(),
        bloom_filter_vector_size: 0,
        bloom_filter_nb_hashes: 0,
        ..family
    };
    assert_eq!(described, [(bytes("f:"), shown)].into());
    let regions = wire.ok(&one::GetTableRegions {
        table_name: table_name(),
    });
    let region = &regions[0];
    let id = region.id.expect("always set");
    let full = text(region.name.as_deref().unwrap_or_default());
    assert!(
        full.starts_with(&format!("tables1,,{id}.")) && full.ends_with('.'),
        "{full}"
    );
    assert_eq!(
        (&region.start_key, &region.end_key, region.version, region.port),
        (
            &some(""),
            &some(""),
            Some(1),
            Some(i32::from(wire.shared.server.tables().port()))
        )
    );
    assert_eq!(region.server_name, some("127.0.0.1"));
    let info = wire.ok(&one::GetRegionInfo {
        row: some("tables1,,99999999999999"),
    });
    assert_eq!(&info, region);

    wire.ok(&one::DisableTable {
        table_name: table_name(),
    });
    let states = wire.ok(&one::GetTableNamesWithIsTableEnabled {});
    assert_eq!(states.get(&b"tables1"[..]), Some(&false));
    wire.ok(&one::EnableTable {
        table_name: table_name(),
    });
    assert!(wire.ok(&one::IsTableEnabled {
        table_name: table_name()
    }));
    wire.ok(&one::DisableTable {
        table_name: table_name(),
    });
    wire.ok(&one::DeleteTable {
        table_name: table_name(),
    });
    assert!(!wire.ok(&one::GetTableNames {}).contains(&bytes("tables1")));
}

#[test]
fn tables_through_thrift_2() {
    let mut wire = Wire::connect();
    wire.ok(&two::CreateNamespace {
        namespace_desc: thrift2::TNamespaceDescriptor {
            name: "two".into(),
            configuration: Some([("k".into(), "v".into())].into()),
        },
    });
    wire.create("two:tables", &["c", "e"]);
    let table_name = || name("two:tables");
    let family = |family: &str, max_versions| thrift2::TColumnFamilyDescriptor {
        name: bytes(family),
        max_versions: Some(max_versions),
        ..Default::default()
    };
    wire.ok(&two::AddColumnFamily {
        table_name: table_name(),
        column: family("h", 2),
    });
    wire.ok(&two::ModifyColumnFamily {
        table_name: table_name(),
        column: family("h", 4),
    });
    wire.ok(&two::DeleteColumnFamily {
        table_name: table_name(),
        column: bytes("g"),
    });
    let described = wire.ok(&two::GetTableDescriptor { table: table_name() });
    let versions: Vec<_> = described
        .columns
        .iter()
        .flatten()
        .map(|family| (text(&family.name), family.max_versions))
        .collect();
    assert_eq!(versions, [("f".into(), Some(5)), ("h".into(), Some(4))]);
    assert_eq!(
        (&described.table_name, described.durability),
        (&table_name(), Some(thrift2::TDurability::USE_DEFAULT))
    );
    let desc = thrift2::TTableDescriptor {
        columns: Some(vec![family("h", 6)]),
        durability: Some(thrift2::TDurability::ASYNC_WAL),
        attributes: Some([(bytes("K"), bytes("V"))].into()),
        ..described
    };
    wire.ok(&two::ModifyTable { desc });
    let modified = wire.ok(&two::GetTableDescriptors {
        tables: vec![table_name()],
    });
    assert_eq!(modified[0].durability, Some(thrift2::TDurability::ASYNC_WAL));
    assert_eq!(
        modified[0].attributes.as_ref().and_then(|all| all.get(&b"K"[..])),
        some("V").as_ref()
    );
    assert_eq!(
        modified[0].columns.as_ref().map(Vec::len),
        Some(1),
        "f was left out"
    );

    // Java's regular expressions, on the whole name.
    for (pattern, found) in [
        (r"two:\p{Lower}+", true),
        ("tables", false),
        (r"\Qtwo:\E.*", true),
    ] {
        let names = wire.ok(&two::GetTableNamesByPattern {
            regex: Some(pattern.into()),
            include_sys_tables: false,
        });
        assert_eq!(names == [table_name()], found, "{pattern}");
    }
    let by_pattern = wire.ok(&two::GetTableDescriptorsByPattern {
        regex: Some("two:.*".into()),
        include_sys_tables: true,
    });
    assert_eq!(by_pattern, modified);
    let bad = two::GetTableNamesByPattern {
        regex: Some("(".into()),
        include_sys_tables: false,
    };
    wire.refused(&bad, &["Io(", "regular expression"]);
    let in_namespace = wire.ok(&two::GetTableDescriptorsByNamespace { name: "two".into() });
    assert_eq!(in_namespace, modified);
    let names = wire.ok(&two::GetTableNamesByNamespace { name: "two".into() });
    assert_eq!(names, [table_name()]);

    let split = |keys: &[&str]| two::IsTableAvailableWithSplit {
        table_name: table_name(),
        split_keys: Some(keys.iter().map(|key| bytes(key)).collect()),
    };
    // There may be more regions than those.
    assert!(wire.ok(&split(&["e", "c"])) && wire.ok(&split(&["c"])));
    assert!(!wire.ok(&split(&["c", "d"])));
    assert!(wire.ok(&two::TableExists {
        table_name: Some(table_name())
    }));
    wire.ok(&two::DisableTable {
        table_name: table_name(),
    });
    assert!(wire.ok(&two::IsTableDisabled {
        table_name: table_name()
    }));
    wire.ok(&two::TruncateTable {
        table_name: table_name(),
        preserve_splits: false,
    });
    assert!(wire.ok(&split(&[])) && !wire.ok(&split(&["c", "e"])));
    wire.ok(&two::DisableTable {
        table_name: table_name(),
    });
    wire.ok(&two::EnableTable {
        table_name: table_name(),
    });
    assert!(wire.ok(&two::IsTableEnabled {
        table_name: table_name()
    }));
    assert!(wire.ok(&two::IsTableAvailable {
        table_name: table_name()
    }));
    wire.ok(&two::DisableTable {
        table_name: table_name(),
    });
    wire.ok(&two::DeleteTable {
        table_name: table_name(),
    });

    let changed = thrift2::TNamespaceDescriptor {
        name: "two".into(),
        configuration: Some([("other".into(), "v".into())].into()),
    };
    wire.ok(&two::ModifyNamespace {
        namespace_desc: changed.clone(),
    });
    assert_eq!(
        wire.ok(&two::GetNamespaceDescriptor { name: "two".into() }),
        changed
    );
    assert!(wire.ok(&two::ListNamespaceDescriptors {}).contains(&changed));
    wire.ok(&two::DeleteNamespace { name: "two".into() });
    assert!(!wire.ok(&two::ListNamespaces {}).contains(&"two".to_owned()));
}
