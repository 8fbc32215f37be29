//! Tables and rows to test with.

use basalt_idl::thrift2;
use bytes::Bytes;

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The arguments that make a table with the family `f`.
pub(crate) fn create(table: &str) -> thrift2::args::CreateTable {
    let family = thrift2::TColumnFamilyDescriptor {
        name: bytes("f"),
        ..Default::default()
    };
    thrift2::args::CreateTable {
        desc: thrift2::TTableDescriptor {
            table_name: thrift2::TTableName {
                ns: None,
                qualifier: bytes(table),
            },
            columns: Some(vec![family]),
            ..Default::default()
        },
        split_keys: None,
    }
}

/// The arguments that put the value `v` into `f:q` of some rows.
pub(crate) fn put_rows(table: &str, rows: std::ops::Range<usize>) -> thrift2::args::PutMultiple {
    let value = || thrift2::TColumnValue {
        family: bytes("f"),
        qualifier: bytes("q"),
        value: bytes("v"),
        ..Default::default()
    };
    let put = |row| thrift2::TPut {
        row: bytes(&format!("row-{row:06}")),
        column_values: vec![value()],
        ..Default::default()
    };
    thrift2::args::PutMultiple {
        table: bytes(table),
        tputs: rows.map(put).collect(),
    }
}
