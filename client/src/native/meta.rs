//! The name and priority of `hbase:meta`.

use crate::name::TableName;

/// The name of `hbase:meta`.
pub(super) fn meta_table() -> TableName {
    "hbase:meta".parse().expect("a valid name")
}

/// Whether it is `hbase:meta`.
pub(super) fn is_meta(table: &TableName) -> bool {
    table.namespace() == "hbase" && table.qualifier() == "meta"
}

/// HBase's priority of calls on a table.
pub(super) fn priority(table: &TableName) -> u32 {
    if table.namespace() == "hbase" { 200 } else { 0 }
}
