//! Descriptors of tables as all protocols show them, and tables by pattern.

use std::collections::BTreeMap;

use basalt_engine::filter::JavaRegex;
use basalt_engine::schema::{Attributes, FamilyDescriptor, TableDescriptor, TableName, TableState};
use bytes::Bytes;

use super::Failure;

/// HBase's raw values of a table that set nothing, which its gateway gives back with every descriptor.
const TABLE_DEFAULTS: &[(&str, &str)] = &[("IS_META", "false")];

/// HBase's raw values of a family that set nothing, which it gives back with every descriptor.
const FAMILY_DEFAULTS: &[(&str, &str)] = &[
    ("BLOOMFILTER", "ROW"),
    ("REPLICATION_SCOPE", "0"),
    ("VERSIONS", "1"),
    ("MIN_VERSIONS", "0"),
    ("COMPRESSION", "NONE"),
    ("TTL", "2147483647"),
    ("BLOCKSIZE", "65536"),
    ("IN_MEMORY", "false"),
    ("BLOCKCACHE", "true"),
    ("KEEP_DELETED_CELLS", "FALSE"),
    ("DATA_BLOCK_ENCODING", "NONE"),
    ("INDEX_BLOCK_ENCODING", "NONE"),
];

/// The raw values of a table, and HBase's defaults of those that are not set.
pub(crate) fn table_attributes(table: &TableDescriptor) -> BTreeMap<Bytes, Bytes> {
    with_defaults(TABLE_DEFAULTS, &table.attributes)
}

/// The raw values of a family, and HBase's defaults of those that are not set.
pub(crate) fn family_attributes(family: &FamilyDescriptor) -> BTreeMap<Bytes, Bytes> {
    with_defaults(FAMILY_DEFAULTS, &family.attributes)
}

pub(crate) fn family_configuration(family: &FamilyDescriptor) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    family
        .configuration
        .iter()
        .map(|(key, value)| (text(key), text(value)))
        .collect()
}

fn with_defaults(defaults: &[(&'static str, &'static str)], set: &Attributes) -> BTreeMap<Bytes, Bytes> {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    let defaults = defaults.iter().map(|(name, value)| (bytes(name), bytes(value)));
    let set = set
        .iter()
        .map(|(name, value)| (name.clone().into(), value.clone().into()));
    defaults.chain(set).collect()
}

/// The table with the entries that HBase's master adds to a descriptor when it creates a table.
pub(crate) fn for_creation(mut table: TableDescriptor) -> TableDescriptor {
    let tracker = b"hbase.store.file-tracker.impl".to_vec();
    table
        .attributes
        .entry(tracker)
        .or_insert_with(|| b"DEFAULT".to_vec());
    table
}

/// User tables (and system tables where asked) whose whole full name matches the pattern. Tables of `default`
/// are also tried with their namespace spelled out.
pub(crate) fn matching<'a, T>(
    tables: impl IntoIterator<Item = &'a (T, TableState)>,
    pattern: Option<&str>,
    with_system: bool,
) -> Result<Vec<&'a T>, Failure>
where
    T: std::ops::Deref<Target = TableDescriptor> + 'a,
{
    let pattern = pattern.map(JavaRegex::whole).transpose()?;
    let matches = |name: &TableName| {
        pattern.as_ref().is_none_or(|pattern| {
            pattern.is_found_in(name.to_string().as_bytes())
                || pattern.is_found_in(format!("{}:{}", name.namespace(), name.qualifier()).as_bytes())
        })
    };
    Ok(tables
        .into_iter()
        .map(|(table, _)| table)
        .filter(|table| (with_system || !table.name.is_system()) && matches(&table.name))
        .collect())
}
