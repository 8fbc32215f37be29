//! Tables in their states, and namespaces.

use basalt_idl::admin::args as own;
use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, killed, name, some, start};

/// Section 11.1 of HBase's rules: calls that are allowed in each state of a table.
#[test]
fn table_states() {
    let mut wire = Wire::connect();
    wire.create("st", &["m"]);
    let table_name = || name("st");
    let no = &["can_retry: Some(false)"][..];
    wire.refused(
        &two::EnableTable {
            table_name: table_name(),
        },
        &[no, &["st state is ENABLED"]].concat(),
    );
    wire.refused(
        &two::DeleteTable {
            table_name: table_name(),
        },
        no,
    );
    wire.refused(
        &two::TruncateTable {
            table_name: table_name(),
            preserve_splits: true,
        },
        no,
    );
    wire.refused(
        &one::DeleteTable {
            table_name: some("st"),
        },
        &["hbase.TableNotDisabledException: st"],
    );
    wire.refused(
        &one::EnableTable {
            table_name: some("st"),
        },
        &["TableNotDisabledException: st state is ENABLED"],
    );
    let descriptor = thrift1::ColumnDescriptor {
        name: some("f:"),
        ..Default::default()
    };
    let create = |name: &str, family| one::CreateTable {
        table_name: some(name),
        column_families: Some(vec![family]),
    };
    wire.refused(
        &create("st", descriptor.clone()),
        &["AlreadyExists(", "table name already in use"],
    );
    wire.refused(&create("a/b", descriptor.clone()), &["IllegalArgument("]);
    wire.refused(
        &create("new", thrift1::ColumnDescriptor::default()),
        &["IllegalArgument(", "column name is empty"],
    );

    wire.put("st", "r", "f:q", "v", None);
    wire.ok(&two::DisableTable {
        table_name: table_name(),
    });
    wire.refused(
        &two::DisableTable {
            table_name: table_name(),
        },
        &[no, &["st state is DISABLED"]].concat(),
    );
    wire.refused(
        &one::GetRow {
            table_name: some("st"),
            row: some("r"),
            ..Default::default()
        },
        &["hbase.TableNotEnabledException", "can_retry: Some(false)"],
    );
    assert!(!wire.ok(&two::IsTableAvailable {
        table_name: table_name()
    }));
    assert!(wire.ok(&two::IsTableDisabled {
        table_name: table_name()
    }));
    wire.ok(&two::TruncateTable {
        table_name: table_name(),
        preserve_splits: true,
    });
    assert!(wire.row("st", "r").is_empty(), "empty, and enabled");
    assert_eq!(
        wire.ok(&two::GetAllRegionLocations { table: bytes("st") }).len(),
        2
    );

    let missing = || name("missing");
    wire.refused(
        &two::EnableTable {
            table_name: missing(),
        },
        &[no, &["missing"]].concat(),
    );
    wire.refused(
        &two::DisableTable {
            table_name: missing(),
        },
        no,
    );
    wire.refused(
        &two::DeleteTable {
            table_name: missing(),
        },
        no,
    );
    wire.refused(
        &two::IsTableEnabled {
            table_name: missing(),
        },
        no,
    );
    wire.refused(
        &one::DeleteTable {
            table_name: some("missing"),
        },
        &["table does not exist", "can_retry: Some(true)"],
    );
    wire.refused(
        &one::IsTableEnabled {
            table_name: some("missing"),
        },
        &["TableNotFoundException"],
    );
    assert!(!wire.ok(&two::IsTableAvailable {
        table_name: missing()
    }));
    assert!(!wire.ok(&two::TableExists {
        table_name: Some(missing())
    }));
    assert!(
        wire.ok(&one::GetTableRegions {
            table_name: some("missing")
        })
        .is_empty()
    );
    assert_eq!(
        wire.ok(&two::GetTableDescriptors {
            tables: vec![missing(), table_name()]
        })
        .len(),
        1,
        "missing ones are left out"
    );
    wire.refused(
        &two::GetTableDescriptors {
            tables: vec![name("a/b")],
        },
        &["Io("],
    );
    wire.refused(
        &two::DeleteColumnFamily {
            table_name: table_name(),
            column: bytes("no"),
        },
        no,
    );
    wire.ok(&two::DeleteColumnFamily {
        table_name: table_name(),
        column: bytes("g"),
    });
    wire.refused(
        &two::DeleteColumnFamily {
            table_name: table_name(),
            column: bytes("f"),
        },
        &[no, &["only column family"]].concat(),
    );
}

#[test]
fn namespaces() {
    let mut wire = Wire::connect();
    let namespace = |name: &str| thrift2::TNamespaceDescriptor {
        name: name.to_owned(),
        configuration: None,
    };
    wire.ok(&two::CreateNamespace {
        namespace_desc: namespace("ns"),
    });
    wire.refused(
        &two::CreateNamespace {
            namespace_desc: namespace("ns"),
        },
        &["ns", "can_retry: Some(false)"],
    );
    wire.refused(
        &two::CreateNamespace {
            namespace_desc: namespace("n-s"),
        },
        &["Illegal character"],
    );
    wire.refused(
        &two::ModifyNamespace {
            namespace_desc: namespace("missing"),
        },
        &["Unknown namespace missing! The namespaces are default, hbase, ns"],
    );
    wire.refused(
        &two::GetNamespaceDescriptor {
            name: "missing".into(),
        },
        &["Unknown namespace missing! The namespaces are default, hbase, ns"],
    );
    wire.refused(
        &two::GetTableNamesByNamespace {
            name: "missing".into(),
        },
        &["missing"],
    );
    wire.refused(
        &two::DeleteNamespace {
            name: "missing".into(),
        },
        &["missing"],
    );
    wire.refused(
        &two::DeleteNamespace {
            name: "default".into(),
        },
        &["Reserved namespace default cannot be removed."],
    );
    wire.create("ns:t", &[]);
    wire.refused(
        &two::DeleteNamespace { name: "ns".into() },
        &["Namespace ns has 1 tables"],
    );
    let names = wire.ok(&two::GetTableNamesByPattern {
        regex: Some("ns:.*".into()),
        include_sys_tables: false,
    });
    assert_eq!(names, [name("ns:t")]);
    assert!(
        wire.ok(&two::GetTableNamesByPattern {
            regex: Some("ns".into()),
            include_sys_tables: false
        })
        .is_empty(),
        "the whole name"
    );
    assert!(
        wire.ok(&two::GetNamespaceDescriptor { name: "ns".into() })
            .configuration
            .is_none()
    );
    let all = wire.ok(&two::ListNamespaces {});
    assert!(
        ["default", "hbase", "ns"]
            .iter()
            .all(|name| all.iter().any(|listed| listed == name)),
        "{all:?}"
    );
}

fn snapshot(table: &str, name: &str) -> own::BasaltSnapshot {
    own::BasaltSnapshot {
        name: name.into(),
        table: bytes(table),
        flush: true,
        ttl_seconds: 0,
    }
}

/// Goal: a name that is too long is refused with an error that names the limit: names of tables,
/// families, namespaces and snapshots, and split keys. A table name at the limit survives a
/// kill.
#[test]
fn long_names_are_refused() {
    let mut wire = Wire::to(start(&[]));
    wire.create("short", &[]);
    let long = |bytes: usize| "n".repeat(bytes);
    let create = |table: &str, family: &str| one::CreateTable {
        table_name: some(table),
        column_families: Some(vec![thrift1::ColumnDescriptor {
            name: some(family),
            ..Default::default()
        }]),
    };
    let qualifier = "has 256 bytes; the limit 'table qualifier' is 255 bytes";
    wire.refused(&create(&long(256), "f:"), &["IllegalArgument(", qualifier]);
    wire.refused(
        &create("t", &format!("{}:", long(128))),
        &["IllegalArgument(", "the limit 'family name' is 127 bytes"],
    );
    wire.refused(
        &two::GetTableDescriptor {
            table: name(&long(256)),
        },
        &[qualifier, "can_retry: Some(false)"],
    );
    wire.refused(
        &two::CreateNamespace {
            namespace_desc: thrift2::TNamespaceDescriptor {
                name: long(70_000),
                configuration: None,
            },
        },
        &["has 70000 bytes; the limit 'namespace name' is 255 bytes"],
    );
    wire.refused(
        &snapshot("short", &long(256)),
        &["has 256 bytes; the limit 'snapshot name' is 255 bytes"],
    );
    wire.refused(
        &own::BasaltSplit {
            table_or_region: bytes("short"),
            split_key: some(&long(32_201)),
        },
        &["has 32201 bytes; the limit 'split key' is 32200 bytes"],
    );
    wire.ok(&create(&long(255), "f:"));
    let Wire { shared, .. } = wire;
    let mut wire = Wire::to(killed(shared));
    wire.put(&long(255), "r", "f:q", "1", None);
    assert_eq!(wire.rows("hbase:namespace").len(), 2);
}

/// Goal: calls that print or parse a name accept tables and namespaces in other scripts.
#[test]
fn names_in_other_scripts() {
    let mut wire = Wire::to(start(&[]));
    let (space, table) = ("\u{43f}\u{440}\u{43e}", "\u{8868}_\u{e9}");
    let full = format!("{space}:{table}");
    wire.ok(&two::CreateNamespace {
        namespace_desc: thrift2::TNamespaceDescriptor {
            name: space.into(),
            configuration: None,
        },
    });
    wire.create(&full, &["m"]);
    wire.ok(&one::CreateTable {
        table_name: some("\u{442}\u{430}\u{431}\u{43b}"),
        column_families: Some(vec![thrift1::ColumnDescriptor {
            name: some("f:"),
            ..Default::default()
        }]),
    });
    wire.put(&full, "r", "f:q", "1", None);
    assert_eq!(wire.row(&full, "r").len(), 1);
    let listed = wire.ok(&one::GetTableNames {});
    assert!(listed.contains(&bytes(&full)) && listed.contains(&bytes("\u{442}\u{430}\u{431}\u{43b}")));
    let by_pattern = wire.ok(&two::GetTableNamesByPattern {
        regex: Some(format!("{space}:\u{8868}.*")),
        include_sys_tables: false,
    });
    assert_eq!(by_pattern.len(), 1);
    assert_eq!(by_pattern[0].qualifier, bytes(table));
    let regions = wire.ok(&one::GetTableRegions {
        table_name: some(&full),
    });
    let region = regions[1].name.clone().expect("a name");
    let printed = basalt_engine::schema::escape(&region);
    assert!(printed.contains("\\xE8\\xA1\\xA8"), "{printed}");
    let before = wire.ok(&one::GetRegionInfo {
        row: Some(region.clone()),
    });
    assert_eq!(before.name, Some(region.clone()));
    for name in [region, bytes(&printed), bytes(&full)] {
        wire.ok(&own::BasaltFlush { table: name });
    }
    assert!(wire.rows("hbase:meta").iter().any(|row| row.contains(&full)));
    let quota = basalt_idl::admin::TThrottle {
        table_name: Some(bytes(&full)),
        throttle_type: Some(basalt_idl::admin::TThrottleType::REQUEST_NUMBER),
        soft_limit: Some(1_000_000),
        ..Default::default()
    };
    wire.ok(&own::BasaltSetQuota { quota });
    let quotas = wire.ok(&own::BasaltListQuotas {
        user_name: None,
        table_name: Some(format!("{space}:\u{8868}.*")),
        ns_name: None,
    });
    assert_eq!(quotas[0].table_name, Some(bytes(&full)));
    wire.ok(&snapshot(&full, "s_\u{8868}"));
    wire.ok(&own::BasaltCloneSnapshot {
        name: "s_\u{8868}".into(),
        table: bytes("\u{6f1}"),
    });
    let Wire { shared, .. } = wire;
    let mut wire = Wire::to(killed(shared));
    assert_eq!(wire.row(&full, "r").len(), 1);
    assert_eq!(wire.row("\u{6f1}", "r").len(), 1);
    wire.refused(
        &one::CreateTable {
            table_name: some("t\u{20ac}"),
            column_families: Some(Vec::new()),
        },
        &["IllegalArgument(", "Illegal character code:8364, <\u{20ac}> at 1"],
    );
}
