//! The system tables through every read call of both services. Expected answers are those of HBase
//! 2.6, but for times, ids, ports and the rows of other tables.

use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, key, name, put, shown, some, start, text, values};

const META: &str = "hbase:meta";

/// A server of its own with the table `t` of two regions, and the names of those.
fn serve() -> (Wire, [String; 2]) {
    let mut wire = Wire::to(start(&[]));
    wire.create("t", &["m"]);
    let regions = wire.ok(&one::GetTableRegions {
        table_name: some("t"),
    });
    let names: Vec<_> = regions
        .iter()
        .map(|region| text(region.name.as_deref().unwrap_or_default()))
        .collect();
    (wire, names.try_into().expect("two regions"))
}

fn meta_scan(prefix: &str) -> thrift2::TScan {
    thrift2::TScan {
        start_row: some(prefix),
        stop_row: some("u"),
        columns: Some(vec![thrift2::TColumn {
            family: bytes("info"),
            qualifier: some("state"),
            timestamp: None,
        }]),
        ..Default::default()
    }
}

#[test]
fn system_tables_are_read_by_thrift_2() {
    let (mut wire, regions) = serve();
    assert_eq!(wire.scan(META, meta_scan("t")), regions);
    let reversed = thrift2::TScan {
        start_row: some("u"),
        stop_row: some("t"),
        reversed: Some(true),
        limit: Some(1),
        ..meta_scan("t")
    };
    assert_eq!(wire.scan(META, reversed), regions[1..]);
    let rows = wire.scan(META, thrift2::TScan::default());
    assert_eq!(rows[0], "hbase:namespace", "no row for hbase:meta itself");
    assert!(rows[1].starts_with("hbase:namespace,,1."), "{rows:?}");
    assert_eq!(rows[2..], ["t", &regions[0], &regions[1]]);
    let filtered = thrift2::TScan {
        filter_string: some(
            "SingleColumnValueFilter('info','state',=,'binary:OPEN') AND PrefixFilter('t,m')",
        ),
        ..meta_scan("")
    };
    assert_eq!(wire.scan(META, filtered), regions[1..]);

    let scanner_id = wire.ok(&two::OpenScanner {
        table: bytes(META),
        tscan: meta_scan("t"),
    });
    for expected in &regions {
        let num_rows = 1;
        let page = wire.ok(&two::GetScannerRows { scanner_id, num_rows });
        assert_eq!(page.iter().map(key).collect::<Vec<_>>(), [expected.as_str()]);
    }

    let address = wire.shared.server.tables();
    let row = wire.row(META, &regions[1]);
    let value = |column: &str| {
        let cell = row.iter().find(|cell| cell.starts_with(column));
        cell.and_then(|cell| cell.split_once('=')).expect("a cell").1
    };
    assert_eq!(value("info:server@"), address.to_string());
    assert!(value("info:sn@").starts_with(&format!("{},{},", address.ip(), address.port())));
    assert_eq!(value("info:seqnumDuringOpen@"), "\0\0\0\0\0\0\0\x02");
    assert_eq!(value("info:state@"), "OPEN");
    assert!(value("info:regioninfo@").ends_with("\x12\x01t\x1a\x01m\"\x00(\x000\x008\x00"));
    let get = |row: &str| thrift2::TGet {
        row: bytes(row),
        ..Default::default()
    };
    let there = wire.ok(&two::ExistsAll {
        table: bytes(META),
        tgets: vec![get("t"), get("u"), get(&regions[0])],
    });
    assert_eq!(there, [true, false, true]);
    let namespaces = wire.ok(&two::GetMultiple {
        table: bytes("hbase:namespace"),
        tgets: vec![get("default"), get("nothing"), get("hbase")],
    });
    let cells: Vec<_> = namespaces.iter().flat_map(shown).collect();
    assert!(
        cells[0].ends_with("=\n\x07default") && cells[1].ends_with("=\n\x05hbase"),
        "{cells:?}"
    );
}

#[test]
fn system_tables_are_read_by_thrift_1() {
    let (mut wire, regions) = serve();
    let state = wire.ok(&one::Get {
        table_name: some(META),
        row: some("t"),
        column: some("table:state"),
        attributes: None,
    });
    assert_eq!(values(&state), ["\x08\0"]);
    let rows = wire.ok(&one::GetRows {
        table_name: some("hbase:namespace"),
        rows: Some(vec![bytes("hbase"), bytes("none")]),
        attributes: None,
    });
    assert_eq!(rows.len(), 1);
    let id = wire.ok(&one::ScannerOpenWithPrefix {
        table_name: some(META),
        start_and_prefix: some("t,"),
        columns: Some(vec![bytes("info")]),
        attributes: None,
    });
    // HBase's order puts the row `t,` behind the first region of `t`, so the scan begins with the second.
    let found = wire.ok(&one::ScannerGetList {
        id: Some(id),
        nb_rows: Some(10),
    });
    let found: Vec<_> = found
        .iter()
        .map(|row| text(row.row.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(found, regions[1..]);

    let region = |wire: &mut Wire, key: &str| {
        let info = wire.ok(&one::GetRegionInfo { row: some(key) });
        assert_eq!(info.port, Some(i32::from(wire.shared.server.tables().port())));
        text(&info.name.unwrap_or_default())
    };
    assert_eq!(region(&mut wire, "t,,99999999999999"), regions[0]);
    assert_eq!(region(&mut wire, "t,zzz,99999999999999"), regions[1]);
    assert_eq!(region(&mut wire, "zzz,,9"), regions[1], "of whatever table");
    wire.refused(
        &one::GetRegionInfo { row: some("a") },
        &["java.io.IOException: Cannot find row in hbase:meta, row=a"],
    );
}

#[test]
fn system_tables_are_listed_where_hbase_lists_them() {
    let (mut wire, _) = serve();
    let names = |wire: &mut Wire, regex: Option<&str>, include_sys_tables| {
        let regex = regex.map(str::to_owned);
        let names = wire.ok(&two::GetTableNamesByPattern {
            regex,
            include_sys_tables,
        });
        names.iter().map(|name| text(&name.qualifier)).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut wire, None, true), ["t", "meta", "namespace"]);
    assert_eq!(names(&mut wire, None, false), ["t"]);
    assert_eq!(names(&mut wire, Some("hbase:.*"), true), ["meta", "namespace"]);
    assert_eq!(names(&mut wire, Some("hbase:.*"), false), [""; 0]);
    let of_namespace = wire.ok(&two::GetTableDescriptorsByNamespace { name: "hbase".into() });
    assert_eq!(of_namespace.len(), 2);
    assert_eq!(wire.ok(&one::GetTableNames {}), ["t"]);
    assert_eq!(wire.ok(&one::GetTableNamesWithIsTableEnabled {}).len(), 1);

    for table in [META, "hbase:namespace"] {
        assert!(wire.ok(&two::TableExists {
            table_name: Some(name(table))
        }));
        assert!(wire.ok(&two::IsTableAvailable {
            table_name: name(table)
        }));
        assert!(wire.ok(&one::IsTableEnabled {
            table_name: some(table)
        }));
        let locations = wire.ok(&two::GetAllRegionLocations { table: bytes(table) });
        assert_eq!(locations.len(), 1);
        assert_eq!(text(&locations[0].region_info.table_name), table);
        assert_eq!(
            wire.ok(&two::GetRegionLocation {
                table: bytes(table),
                row: bytes("x"),
                reload: Some(false)
            }),
            locations[0]
        );
    }
    let region = wire.ok(&one::GetTableRegions {
        table_name: some(META),
    });
    assert_eq!(
        (region[0].id, region[0].name.as_deref()),
        (Some(1), Some(&b"hbase:meta,,1"[..]))
    );
    let families = wire.ok(&one::GetColumnDescriptors {
        table_name: some(META),
    });
    let families: Vec<_> = families
        .values()
        .map(|family| {
            (
                text(family.name.as_deref().unwrap_or_default()),
                family.max_versions,
            )
        })
        .collect();
    let expected = [("info:", 3), ("rep_barrier:", i32::MAX), ("table:", 3)];
    assert_eq!(
        families,
        expected.map(|(name, versions)| (name.to_owned(), versions))
    );

    let meta = wire.ok(&two::GetTableDescriptor { table: name(META) });
    let attributes = meta.attributes.unwrap_or_default();
    assert_eq!(attributes[&b"IS_META"[..]], "true");
    assert_eq!(
        attributes[&b"coprocessor$1"[..]],
        "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|"
    );
    let info = &meta.columns.unwrap_or_default()[0];
    assert_eq!(
        (
            info.block_size,
            info.bloomn_filter_type,
            info.data_block_encoding,
            info.in_memory
        ),
        (
            Some(8192),
            Some(thrift2::TBloomFilterType::ROWCOL),
            Some(thrift2::TDataBlockEncoding::ROW_INDEX_V1),
            Some(true)
        )
    );
    let mut options: Vec<_> = info
        .attributes
        .iter()
        .flatten()
        .map(|(name, value)| format!("{}={}", text(name), text(value)))
        .collect();
    options.sort();
    assert_eq!(
        options,
        [
            "BLOCKCACHE=true",
            "BLOCKSIZE=8192",
            "BLOOMFILTER=ROWCOL",
            "COMPRESSION=NONE",
            "DATA_BLOCK_ENCODING=ROW_INDEX_V1",
            "INDEX_BLOCK_ENCODING=NONE",
            "IN_MEMORY=true",
            "KEEP_DELETED_CELLS=FALSE",
            "MIN_VERSIONS=0",
            "REPLICATION_SCOPE=0",
            "TTL=2147483647",
            "VERSIONS=3",
        ]
    );
}

/// HBase lets clients write to its system tables, and change them until nothing works any more.
/// Here that is refused.
#[test]
fn system_tables_take_no_changes() {
    let (mut wire, _) = serve();
    let no = "can_retry: Some(false)";
    for table in [META, "hbase:namespace"] {
        let table_name = || name(table);
        wire.refused(
            &two::Put {
                table: bytes(table),
                tput: put("r", "info:q", "v", None),
            },
            &[table, "system table", no],
        );
        wire.refused(
            &one::MutateRow {
                table_name: some(table),
                row: some("r"),
                mutations: Some(vec![thrift1::Mutation {
                    column: some("info:q"),
                    value: some("v"),
                    ..Default::default()
                }]),
                attributes: None,
            },
            &[
                "org.apache.hadoop.hbase.DoNotRetryIOException",
                "system table",
                no,
            ],
        );
        wire.refused(
            &two::DisableTable {
                table_name: table_name(),
            },
            &[&format!("Cannot disable {table}"), no],
        );
        wire.refused(
            &two::DeleteTable {
                table_name: table_name(),
            },
            &["Can't modify catalog tables", no],
        );
        wire.refused(
            &two::TruncateTable {
                table_name: table_name(),
                preserve_splits: true,
            },
            &[table, no],
        );
        wire.refused(
            &two::DeleteColumnFamily {
                table_name: table_name(),
                column: bytes("info"),
            },
            &["Can't modify catalog tables", no],
        );
        wire.refused(
            &one::CreateTable {
                table_name: some(table),
                column_families: Some(vec![thrift1::ColumnDescriptor {
                    name: some("f:"),
                    ..Default::default()
                }]),
            },
            &["AlreadyExists("],
        );
        wire.ok(&one::Compact {
            table_name_or_region_name: some(table),
        });
    }
}
