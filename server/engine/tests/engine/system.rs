//! The system tables `hbase:meta` and `hbase:namespace`. Expected results are HBase 2.6's answers
//! to the same calls, but for times, ids and the server.

use basalt_engine::cell::{CellBatch, RowOrder};
use basalt_engine::engine::{RegionDirectory, RegionLocation, ServerName};
use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{Columns, FamilySelection, Get, ReadSpec, Scan, TimeRange};
use basalt_engine::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState};
use basalt_engine::{Engine, Error, RegionId};
use std::sync::Arc;

use crate::rig::{Rig, Shown, apply, descriptor, drain, mutation, name, scan, shown, value};

fn meta() -> TableName {
    name("hbase:meta")
}

fn namespaces() -> TableName {
    name("hbase:namespace")
}

/// One server that has all regions.
#[derive(Debug)]
struct OneServer;

impl RegionDirectory for OneServer {
    fn location(&self, _: RegionId) -> RegionLocation {
        RegionLocation {
            server: ServerName {
                host: "localhost".into(),
                port: 9090,
                start_code: 1_700_000_000_123,
            },
            is_open: true,
        }
    }
}

/// Tables `t` with four regions, `ns1:u` that is replicated, and `off`, which is disabled.
fn with_tables() -> Arc<Engine> {
    let engine = Rig::in_memory().open();
    engine.set_directory(Arc::new(OneServer));
    let splits = [&b"\x01"[..], b" a,b", b"m"].map(<[u8]>::to_vec).to_vec();
    engine.create_table(descriptor("t", &["f"]), splits).unwrap();
    engine
        .create_namespace(NamespaceDescriptor {
            name: "ns1".into(),
            configuration: [("b".into(), "2".into()), ("a".into(), "1".into())].into(),
        })
        .unwrap();
    let replicated = FamilyDescriptor::new(b"f").with("REPLICATION_SCOPE", 1).unwrap();
    let table = TableDescriptor::new(name("ns1:u"), vec![replicated]);
    engine.create_table(table, Vec::new()).unwrap();
    engine
        .create_table(descriptor("off", &["f"]), Vec::new())
        .unwrap();
    engine.disable_table(&name("off")).unwrap();
    engine
}

/// The names of all rows of `hbase:meta`, in HBase's order.
fn meta_rows(engine: &Engine) -> Vec<Vec<u8>> {
    let regions = |table: &str| {
        let regions = engine.regions(&name(table)).unwrap();
        regions.into_iter().map(|region| region.name())
    };
    let mut rows = vec![b"hbase:namespace".to_vec()];
    rows.extend(regions("hbase:namespace"));
    for table in ["ns1:u", "off", "t"] {
        rows.push(table.into());
        rows.extend(regions(table));
    }
    rows
}

fn rows_of(cells: &[Shown]) -> Vec<String> {
    let mut rows: Vec<_> = cells.iter().map(|cell| cell.row.clone()).collect();
    rows.dedup();
    rows
}

fn columns(families: &[(&str, &[&str])]) -> ReadSpec {
    ReadSpec {
        families: families
            .iter()
            .map(|(family, qualifiers)| FamilySelection {
                family: family.as_bytes().to_vec(),
                columns: match qualifiers {
                    [] => Columns::All,
                    _ => Columns::Only(
                        qualifiers
                            .iter()
                            .map(|qualifier| qualifier.as_bytes().to_vec())
                            .collect(),
                    ),
                },
            })
            .collect(),
        ..ReadSpec::default()
    }
}

#[test]
fn meta_tells_of_tables_and_regions() {
    let engine = with_tables();
    let cells = scan(&engine, &meta(), Scan::default());
    let rows = meta_rows(&engine);
    assert_eq!(
        rows_of(&cells),
        rows.iter()
            .map(|row| String::from_utf8(row.clone()).unwrap())
            .collect::<Vec<_>>()
    );
    let of = |row: &[u8]| -> Vec<(&str, &str)> {
        let row = std::str::from_utf8(row).unwrap();
        let cells = cells.iter().filter(|cell| cell.row == row);
        cells
            .map(|cell| (cell.column.as_str(), cell.value.as_str()))
            .collect()
    };
    assert_eq!(of(b"t"), [("table:state", "\x08\x00")]);
    assert_eq!(of(b"off"), [("table:state", "\x08\x01")]);
    let third = of(&rows[9]);
    let regioninfo = third[0].1.as_bytes();
    assert!(regioninfo.starts_with(b"PBUF\x08"), "{regioninfo:?}");
    assert!(regioninfo.ends_with(b"\x12\x0c\n\x07default\x12\x01t\x1a\x04 a,b\"\x01m(\x000\x008\x00"));
    assert_eq!(
        third[1..],
        [
            ("info:seqnumDuringOpen", "\0\0\0\0\0\0\0\x02"),
            ("info:server", "localhost:9090"),
            (
                "info:serverstartcode",
                &String::from_utf8_lossy(&1_700_000_000_123_u64.to_be_bytes())
            ),
            ("info:sn", "localhost,9090,1700000000123"),
            ("info:state", "OPEN"),
        ]
    );
    assert_eq!(of(&rows[5]).last(), Some(&("info:state", "CLOSED")));
    let replicated = of(&rows[3]);
    assert_eq!(
        replicated.last(),
        Some(&("rep_barrier:seqnumDuringOpen", "\0\0\0\0\0\0\0\x02"))
    );
    assert!(cells.iter().all(|cell| cell.timestamp >= 1_700_000_000_123));
}

#[test]
fn namespaces_are_rows() {
    let engine = with_tables();
    let cells = scan(&engine, &namespaces(), Scan::default());
    let cells: Vec<_> = cells
        .iter()
        .map(|cell| (cell.row.as_str(), cell.column.as_str(), cell.value.as_str()))
        .collect();
    assert_eq!(
        cells,
        [
            ("default", "info:d", "\n\x07default"),
            ("hbase", "info:d", "\n\x05hbase"),
            (
                "ns1",
                "info:d",
                "\n\x03ns1\x12\x06\n\x01a\x12\x011\x12\x06\n\x01b\x12\x012"
            ),
        ]
    );
}

/// Every pair of bounds, both ways: the rows between them in HBase's order of `hbase:meta`.
#[test]
fn scans_of_meta_keep_its_order() {
    let engine = with_tables();
    let rows = meta_rows(&engine);
    let mut bounds = rows.clone();
    bounds.extend(
        [
            &b""[..],
            b"t,",
            b"t,,",
            b"t,m",
            b"t,m,",
            b"t,\x01,99999999999999",
            b"u",
            b"a,",
            b"\x01",
        ]
        .map(<[u8]>::to_vec),
    );
    let order = RowOrder::Meta;
    for start in &bounds {
        for stop in &bounds {
            for reversed in [false, true] {
                for (include_start, include_stop) in [(true, false), (false, true)] {
                    let request = Scan {
                        start_row: start.clone(),
                        stop_row: stop.clone(),
                        reversed,
                        include_start,
                        include_stop,
                        spec: ReadSpec {
                            filter: Some(Arc::new(FilterSpec::parse(b"KeyOnlyFilter()").unwrap())),
                            ..ReadSpec::default()
                        },
                        ..Scan::default()
                    };
                    let inside = |row: &&Vec<u8>| {
                        let side = |bound: &[u8]| {
                            let place = order.compare(row, bound);
                            if reversed { place.reverse() } else { place }
                        };
                        let (from, to) = (side(start), side(stop));
                        (start.is_empty() || from.is_gt() || (from.is_eq() && include_start))
                            && (stop.is_empty() || to.is_lt() || (to.is_eq() && include_stop))
                    };
                    let mut expected: Vec<_> = rows.iter().filter(inside).cloned().collect();
                    if reversed {
                        expected.reverse();
                    }
                    let found = rows_of(&scan(&engine, &meta(), request.clone()));
                    let found: Vec<_> = found.into_iter().map(String::into_bytes).collect();
                    assert_eq!(found, expected, "{request:?}");
                }
            }
        }
    }
}

/// Columns, versions, time ranges, limits, batches and filters are those of any table.
#[test]
fn reads_of_meta_take_every_option() {
    let engine = with_tables();
    let rows = meta_rows(&engine);
    let states = Scan {
        reversed: true,
        limit: Some(2),
        spec: columns(&[("info", &["state"])]),
        ..Scan::default()
    };
    let cells = scan(&engine, &meta(), states);
    let found: Vec<_> = cells
        .iter()
        .map(|cell| (cell.row.as_bytes(), cell.value.as_str()))
        .collect();
    assert_eq!(found, [(&rows[10][..], "OPEN"), (&rows[9][..], "OPEN")]);
    let filtered = |filter: &[u8]| {
        let spec = ReadSpec {
            filter: Some(Arc::new(FilterSpec::parse(filter).unwrap())),
            max_versions: 10,
            ..columns(&[("info", &[])])
        };
        rows_of(&scan(
            &engine,
            &meta(),
            Scan {
                spec,
                ..Scan::default()
            },
        ))
        .len()
    };
    assert_eq!(filtered(b"PrefixFilter('t,')"), 4);
    assert_eq!(filtered(b"PrefixFilter('t,m')"), 1);
    assert_eq!(filtered(b"InclusiveStopFilter('off')"), 2);
    assert_eq!(filtered(b"RowFilter(>=,'binary:t,')"), 4);
    assert_eq!(
        filtered(b"SingleColumnValueFilter('info','state',=,'binary:CLOSED')"),
        1
    );
    assert_eq!(filtered(b"PageFilter(3)"), 3);
    let pieces = Scan {
        batch: Some(4),
        spec: columns(&[("info", &[])]),
        start_row: rows[8].clone(),
        limit: Some(1),
        ..Scan::default()
    };
    let mut scanner = engine.scan(&meta(), pieces).unwrap();
    assert_eq!(drain(&mut scanner).len(), 6);

    let get = |row: &[u8], spec: ReadSpec| {
        let mut out = CellBatch::new();
        engine.get(&meta(), &Get { row, spec }, &mut out).unwrap();
        shown(&out)
    };
    assert_eq!(get(&rows[8], ReadSpec::default()).len(), 6);
    assert_eq!(
        get(&rows[8], columns(&[("info", &["nothing", "sn"]), ("table", &[])])).len(),
        1
    );
    assert_eq!(get(b"t", columns(&[("info", &[])])), []);
    assert_eq!(get(b"t,\x01", ReadSpec::default()), []);
    let past = ReadSpec {
        time_range: TimeRange { min: 0, max: 5 },
        ..ReadSpec::default()
    };
    assert_eq!(get(&rows[8], past), []);
    let mut out = CellBatch::new();
    let unknown = Get {
        row: b"t",
        spec: columns(&[("nope", &[])]),
    };
    assert!(matches!(
        engine.get(&meta(), &unknown, &mut out),
        Err(Error::NoSuchFamily { .. })
    ));
}

/// A scan shows the state when it began; the next one shows later changes.
#[test]
fn a_scan_of_meta_sees_one_moment() {
    let engine = with_tables();
    let before = meta_rows(&engine);
    let mut scanner = engine.scan(&meta(), Scan::default()).unwrap();
    engine.create_table(descriptor("a", &["f"]), Vec::new()).unwrap();
    let last = engine.regions(&name("t")).unwrap().remove(3);
    engine.split_region(last.id, Some(b"z")).unwrap();
    engine.enable_table(&name("off")).unwrap();
    engine.drop_namespace("ns1").unwrap_err();
    assert_eq!(rows_of(&drain(&mut scanner)).len(), before.len());
    let now = scan(&engine, &meta(), Scan::default());
    assert_eq!(rows_of(&now).len(), before.len() + 3);
    assert!(now.iter().all(|cell| cell.value != "CLOSED"));
}

/// The region that HBase's Thrift 1 gateway found for these keys.
#[test]
fn a_key_into_meta_finds_the_region_before_it() {
    let engine = with_tables();
    let found = |key: &[u8]| {
        let region = engine.region_before(key).unwrap();
        region.map(|region| (region.table.to_string(), region.start))
    };
    let region = |table: &str, start: &[u8]| Some((table.to_owned(), start.to_vec()));
    for (key, expected) in [
        (&b"t,,99999999999999"[..], region("t", b"")),
        (b"t,zzz,99999999999999", region("t", b"m")),
        (b"t,\x01,99999999999999", region("t", b"\x01")),
        (b"nosuch,,999", region("hbase:namespace", b"")),
        (b"", region("t", b"m")),
        (b"a", None),
        (b"hbase:namespace,,99999999999999", region("hbase:namespace", b"")),
        (b"hbase:meta,,1", None),
        (b"t", region("off", b"")),
        (b"t,m", region("t", b"m")),
        (b"zzz,,9", region("t", b"m")),
    ] {
        assert_eq!(found(key), expected, "{}", String::from_utf8_lossy(key));
    }
}

#[test]
fn system_tables_are_listed_and_cannot_be_changed() {
    let engine = with_tables();
    let listed: Vec<_> = engine
        .tables()
        .iter()
        .map(|(table, _)| table.name.to_string())
        .collect();
    assert_eq!(listed, ["off", "t", "hbase:meta", "hbase:namespace", "ns1:u"]);
    assert_eq!(engine.regions(&meta()).unwrap()[0].name(), b"hbase:meta,,1");
    assert_eq!(engine.regions(&meta()).unwrap()[0].encoded_name, "1588230740");
    assert!(
        engine
            .region_stats()
            .iter()
            .all(|stats| !stats.region.table.is_system())
    );
    for table in [meta(), namespaces()] {
        let (descriptor, state) = engine.describe_table(&table).unwrap();
        assert_eq!(state, TableState::Enabled);
        let put = engine.mutate(&table, &[mutation(b"r", &[value(b"q", b"v")])]);
        assert!(matches!(put, Err(Error::DoNotRetry(_))));
        assert!(matches!(
            engine.create_table(TableDescriptor::clone(&descriptor), Vec::new()),
            Err(Error::TableExists(_))
        ));
        assert!(matches!(
            engine.enable_table(&table),
            Err(Error::TableNotDisabled(_))
        ));
        let disabled = engine.disable_table(&table);
        assert!(
            matches!(&disabled, Err(Error::CatalogTable(why)) if *why == format!("Cannot disable {table}")),
            "{disabled:?}"
        );
        assert!(matches!(
            engine.truncate_table(&table, true),
            Err(Error::TableNotDisabled(_))
        ));
        let region = engine.regions(&table).unwrap().remove(0);
        let refused = [
            engine.drop_table(&table),
            engine.alter_table(TableDescriptor::clone(&descriptor)),
            engine.add_family(&table, FamilyDescriptor::new(b"new")),
            engine.alter_family(&table, FamilyDescriptor::new(b"info")),
            engine.drop_family(&table, b"info"),
            engine.split_region(region.id, Some(b"m")).map(|_| ()),
            engine
                .merge_regions(&[region.id, engine.regions(&name("off")).unwrap()[0].id])
                .map(|_| ()),
        ];
        for result in refused {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, Error::DoNotRetry(text) if text.contains(&table.to_string())),
                "{error}"
            );
        }
        // There is nothing in memory and nothing in files.
        engine.flush(&table).unwrap();
        engine.compact(&table, None, true, true).unwrap();
        engine.compact(&table, Some(b"info"), true, false).unwrap();
    }
    engine.run_pending().unwrap();
    assert_eq!(engine.counters().flushes.get(), 0);
    apply(&engine, &name("t"), &[mutation(b"r", &[value(b"q", b"v")])]).unwrap();
}

/// Readers and schema changes at once: every scan of `hbase:meta` has each table's row once, before its
/// regions.
#[test]
fn meta_is_whole_while_tables_come_and_go() {
    let engine = with_tables();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..60 {
                let table = format!("x{}", round % 7);
                if engine
                    .create_table(descriptor(&table, &["f"]), vec![b"m".to_vec()])
                    .is_err()
                {
                    engine.disable_table(&name(&table)).unwrap();
                    engine.drop_table(&name(&table)).unwrap();
                }
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            let rows = rows_of(&scan(&engine, &meta(), Scan::default()));
            for table in rows
                .iter()
                .filter(|row| row.starts_with('x') && !row.contains(','))
            {
                let regions = rows
                    .iter()
                    .filter(|row| row.starts_with(&format!("{table},")))
                    .count();
                assert_eq!(regions, 2, "{rows:?}");
            }
            let tables = rows.iter().filter(|row| !row.contains(',')).count();
            let regions: usize = rows.len() - tables;
            assert_eq!(regions, 7 + 2 * (tables - 4), "{rows:?}");
        }
    });
}
