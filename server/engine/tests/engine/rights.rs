//! The system table `hbase:acl`: it lists the grants of a source outside the engine, and there is none
//! without a source.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_engine::Error;
use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Grant, GrantSource};
use basalt_engine::op::{Get, ReadSpec, Scan};
use basalt_engine::schema::TableName;
use parking_lot::Mutex;

use crate::rig::{Rig, apply, descriptor, drain, mutation, name, scan, shown, value};

/// Grants that a test changes.
#[derive(Debug, Default)]
struct Grants {
    version: AtomicU64,
    cells: Mutex<Vec<Grant>>,
}

impl Grants {
    fn set(&self, cells: &[[&str; 3]]) {
        let grant = |[row, qualifier, value]: &[&str; 3]| Grant {
            row: row.as_bytes().to_vec(),
            qualifier: qualifier.as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
        };
        *self.cells.lock() = cells.iter().map(grant).collect();
        self.version.fetch_add(1, Ordering::Release);
    }
}

impl GrantSource for Grants {
    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn grants(&self) -> Vec<Grant> {
        self.cells.lock().clone()
    }
}

fn acl() -> TableName {
    name("hbase:acl")
}

/// Goal: gets and scans show the grants of now, a scan that runs shows those of its start, and nothing
/// else changes the table.
#[test]
fn grants_are_rows() {
    let engine = Rig::in_memory().open();
    let grants = Arc::new(Grants::default());
    engine.set_grants(Arc::clone(&grants) as Arc<dyn GrantSource>);
    let listed = || {
        scan(&engine, &acl(), Scan::default())
            .into_iter()
            .map(|cell| [cell.row, cell.column, cell.value])
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(), Vec::<[String; 3]>::new());
    let cells = [
        ["@ns", "@readers", "R"],
        ["hbase:acl", "ada", "RWXCA"],
        ["t", "bob", "R"],
        ["t", "bob,f", "W"],
        ["t", "bob,f,q", "RW"],
    ];
    grants.set(&cells);
    let expected = cells.map(|[row, column, letters]| [row.into(), format!("l:{column}"), letters.into()]);
    assert_eq!(listed(), expected);

    let mut before = engine.scan(&acl(), Scan::default()).unwrap();
    grants.set(&cells[..1]);
    assert_eq!(drain(&mut before).len(), 5);
    assert_eq!(listed(), expected[..1]);
    let mut out = CellBatch::new();
    let get = Get {
        row: b"@ns",
        spec: ReadSpec::default(),
    };
    engine.get(&acl(), &get, &mut out).unwrap();
    assert_eq!(shown(&out).len(), 1);

    let (table, _) = engine.describe_table(&acl()).unwrap();
    assert_eq!(table.families[0].name, b"l");
    assert_eq!(table.families[0].max_versions, 1);
    let refused = apply(&engine, &acl(), &[mutation(b"t", &[value(b"bob", b"A")])]).unwrap_err();
    assert!(refused.to_string().contains("grant and revoke"), "{refused}");
    for changed in [engine.drop_table(&acl()), engine.disable_table(&acl())] {
        changed.unwrap_err();
    }
    assert_eq!(listed(), expected[..1]);
    let rows = scan(&engine, &name("hbase:meta"), Scan::default());
    let regions = engine.regions(&acl()).unwrap();
    let is_of_region = |row: &str| row.as_bytes() == regions[0].name();
    assert!(rows.iter().any(|cell| is_of_region(&cell.row)));
    assert!(engine.tables().iter().any(|(table, _)| table.name == acl()));
}

#[test]
fn without_grants_there_is_no_such_table() {
    let engine = Rig::in_memory().open();
    let missing = |error: Error| assert!(matches!(error, Error::NoSuchTable(_)), "{error}");
    missing(engine.describe_table(&acl()).unwrap_err());
    missing(engine.regions(&acl()).unwrap_err());
    missing(apply(&engine, &acl(), &[mutation(b"t", &[value(b"bob", b"A")])]).unwrap_err());
    missing(engine.drop_table(&acl()).unwrap_err());
    assert_eq!(engine.tables().len(), 2);
    // The name is free, as in HBase.
    engine
        .create_table(descriptor("hbase:acl", &["l"]), Vec::new())
        .unwrap();
}
