//! Tables in their states, and namespaces.

use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, name, some};

/// Section 11.1 of HBase's rules: who may be called in which state.
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
        &["missing"],
    );
    wire.refused(
        &two::GetNamespaceDescriptor {
            name: "missing".into(),
        },
        &["missing"],
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
