//! Descriptors of tables, families and namespaces, both ways, and what both services do with them.

use std::collections::BTreeMap;

use basalt_engine::schema::{
    Attributes, BloomType, Compression, DataBlockEncoding, Durability, FOREVER_SECONDS, FamilyDescriptor,
    KeepDeletedCells, NamespaceDescriptor, TableDescriptor, TableName, TableState,
};
use basalt_idl::{thrift1, thrift2};
use bytes::Bytes;

use super::Failure;
use super::from_thrift::split_column;

/// A table's name as Thrift 2 gives it.
pub(super) fn table_name(name: &thrift2::TTableName) -> Result<TableName, Failure> {
    let text = |part: &Bytes| {
        String::from_utf8(part.to_vec()).map_err(|_| {
            Failure::illegal_argument(format!("Illegal table name, not ASCII: {}", escaped(part)))
        })
    };
    let namespace = name.ns.as_ref().map(text).transpose()?.unwrap_or_default();
    Ok(TableName::new(&namespace, &text(&name.qualifier)?)?)
}

fn escaped(bytes: &[u8]) -> String {
    basalt_engine::schema::escape(bytes)
}

/// A table's name for Thrift 2: the namespace is always spelled out.
pub(super) fn to_table_name(name: &TableName) -> thrift2::TTableName {
    thrift2::TTableName {
        ns: Some(Bytes::copy_from_slice(name.namespace().as_bytes())),
        qualifier: Bytes::copy_from_slice(name.qualifier().as_bytes()),
    }
}

/// A table from its Thrift 2 descriptor.
pub(super) fn table(descriptor: &thrift2::TTableDescriptor) -> Result<TableDescriptor, Failure> {
    let families = descriptor
        .columns
        .iter()
        .flatten()
        .map(family)
        .collect::<Result<Vec<_>, _>>()?;
    let mut table = TableDescriptor::new(table_name(&descriptor.table_name)?, families);
    table.attributes = raw(descriptor.attributes.as_ref());
    if let Some(durability) = descriptor.durability {
        let durability = super::from_thrift::durability(Some(durability));
        table
            .attributes
            .insert(b"DURABILITY".to_vec(), durability.as_str().into());
    }
    Ok(table)
}

fn raw(attributes: Option<&BTreeMap<Bytes, Bytes>>) -> Attributes {
    attributes
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

/// A family from its Thrift 2 descriptor: raw attributes first, then each typed field that is set. Unknown codes fall back as
/// in HBase: bloom ROW, everything else NONE or FALSE.
pub(super) fn family(descriptor: &thrift2::TColumnFamilyDescriptor) -> Result<FamilyDescriptor, Failure> {
    let mut attributes = raw(descriptor.attributes.as_ref());
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            attributes.insert(name.into(), value.into_bytes());
        }
    };
    set("BLOCKSIZE", descriptor.block_size.map(|size| size.to_string()));
    set(
        "BLOOMFILTER",
        descriptor
            .bloomn_filter_type
            .map(|code| named(code.name(), "ROW")),
    );
    set(
        "COMPRESSION",
        descriptor.compression_type.map(|code| named(code.name(), "NONE")),
    );
    set(
        "DFS_REPLICATION",
        descriptor.dfs_replication.map(|count| count.to_string()),
    );
    set(
        "DATA_BLOCK_ENCODING",
        descriptor
            .data_block_encoding
            .map(|code| named(code.name(), "NONE")),
    );
    set(
        "KEEP_DELETED_CELLS",
        descriptor
            .keep_deleted_cells
            .map(|code| named(code.name(), "FALSE")),
    );
    set("VERSIONS", descriptor.max_versions.map(|count| count.to_string()));
    set(
        "MIN_VERSIONS",
        descriptor.min_versions.map(|count| count.to_string()),
    );
    set(
        "REPLICATION_SCOPE",
        descriptor.scope.map(|scope| scope.to_string()),
    );
    set("TTL", descriptor.time_to_live.map(|seconds| seconds.to_string()));
    for (name, value) in [
        ("BLOCKCACHE", descriptor.block_cache_enabled),
        ("CACHE_BLOOMS_ON_WRITE", descriptor.cache_blooms_on_write),
        ("CACHE_DATA_ON_WRITE", descriptor.cache_data_on_write),
        ("CACHE_INDEX_ON_WRITE", descriptor.cache_indexes_on_write),
        ("COMPRESS_TAGS", descriptor.compress_tags),
        ("EVICT_BLOCKS_ON_CLOSE", descriptor.evict_blocks_on_close),
        ("IN_MEMORY", descriptor.in_memory),
    ] {
        set(name, value.map(|value| value.to_string()));
    }
    let mut family = FamilyDescriptor::from_attributes(&descriptor.name, attributes)?;
    family.configuration = descriptor
        .configuration
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone().into(), value.clone().into()))
        .collect();
    Ok(family)
}

fn named(name: Option<&'static str>, fallback: &str) -> String {
    name.unwrap_or(fallback).to_owned()
}

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

/// The raw values that are set, and the defaults of those that are not.
fn with_defaults(
    defaults: &[(&'static str, &'static str)],
    set: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> BTreeMap<Bytes, Bytes> {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    let defaults = defaults.iter().map(|(name, value)| (bytes(name), bytes(value)));
    let set = set
        .iter()
        .map(|(name, value)| (name.clone().into(), value.clone().into()));
    defaults.chain(set).collect()
}

/// A family for Thrift 2: every typed field set, all raw values, the configuration only if there is any.
pub(super) fn to_family(family: &FamilyDescriptor) -> thrift2::TColumnFamilyDescriptor {
    let text = |name: &str| {
        family
            .attributes
            .get(name.as_bytes())
            .and_then(|value| std::str::from_utf8(value).ok())
    };
    let flag = |name: &str, default: bool| {
        Some(text(name).map_or(default, |value| value.eq_ignore_ascii_case("true")))
    };
    let configuration: BTreeMap<String, String> = family
        .configuration
        .iter()
        .map(|(key, value)| {
            (
                String::from_utf8_lossy(key).into_owned(),
                String::from_utf8_lossy(value).into_owned(),
            )
        })
        .collect();
    thrift2::TColumnFamilyDescriptor {
        name: family.name.clone().into(),
        attributes: Some(with_defaults(FAMILY_DEFAULTS, &family.attributes)),
        configuration: (!configuration.is_empty()).then_some(configuration),
        block_size: Some(family.block_bytes),
        bloomn_filter_type: Some(match family.bloom {
            BloomType::None => thrift2::TBloomFilterType::NONE,
            BloomType::Row => thrift2::TBloomFilterType::ROW,
            BloomType::RowCol => thrift2::TBloomFilterType::ROWCOL,
        }),
        compression_type: Some(match family.compression {
            Compression::None => thrift2::TCompressionAlgorithm::NONE,
            Compression::Snappy => thrift2::TCompressionAlgorithm::SNAPPY,
            Compression::Lz4 => thrift2::TCompressionAlgorithm::LZ4,
            Compression::Zstd => thrift2::TCompressionAlgorithm::ZSTD,
            Compression::Gz => thrift2::TCompressionAlgorithm::GZ,
        }),
        dfs_replication: Some(
            text("DFS_REPLICATION")
                .and_then(|value| value.parse().ok())
                .unwrap_or(0),
        ),
        data_block_encoding: Some(match text("DATA_BLOCK_ENCODING").map(|_| family.encoding) {
            Some(DataBlockEncoding::Prefix) => thrift2::TDataBlockEncoding::PREFIX,
            Some(DataBlockEncoding::Diff) => thrift2::TDataBlockEncoding::DIFF,
            Some(DataBlockEncoding::FastDiff) => thrift2::TDataBlockEncoding::FAST_DIFF,
            Some(DataBlockEncoding::RowIndexV1) => thrift2::TDataBlockEncoding::ROW_INDEX_V1,
            Some(DataBlockEncoding::None) | None => thrift2::TDataBlockEncoding::NONE,
        }),
        keep_deleted_cells: Some(match family.keep_deleted_cells {
            KeepDeletedCells::False => thrift2::TKeepDeletedCells::FALSE,
            KeepDeletedCells::True => thrift2::TKeepDeletedCells::TRUE,
            KeepDeletedCells::Ttl => thrift2::TKeepDeletedCells::TTL,
        }),
        max_versions: Some(family.max_versions),
        min_versions: Some(family.min_versions),
        scope: Some(
            text("REPLICATION_SCOPE")
                .and_then(|value| value.parse().ok())
                .unwrap_or(0),
        ),
        time_to_live: Some(family.ttl_seconds),
        block_cache_enabled: Some(family.block_cache),
        cache_blooms_on_write: flag("CACHE_BLOOMS_ON_WRITE", false),
        cache_data_on_write: flag("CACHE_DATA_ON_WRITE", false),
        cache_indexes_on_write: flag("CACHE_INDEX_ON_WRITE", false),
        compress_tags: flag("COMPRESS_TAGS", true),
        evict_blocks_on_close: flag("EVICT_BLOCKS_ON_CLOSE", false),
        in_memory: Some(family.in_memory),
    }
}

/// HBase's raw values of a table that set nothing, which its gateway gives back with every descriptor.
const TABLE_DEFAULTS: &[(&str, &str)] = &[("IS_META", "false")];

/// The table with what HBase's master writes into a descriptor when it creates a table.
pub(super) fn for_creation(mut table: TableDescriptor) -> TableDescriptor {
    let tracker = b"hbase.store.file-tracker.impl".to_vec();
    table
        .attributes
        .entry(tracker)
        .or_insert_with(|| b"DEFAULT".to_vec());
    table
}

/// A table for Thrift 2.
pub(super) fn to_table(table: &TableDescriptor) -> thrift2::TTableDescriptor {
    thrift2::TTableDescriptor {
        table_name: to_table_name(&table.name),
        columns: Some(table.families.iter().map(to_family).collect()),
        attributes: Some(with_defaults(TABLE_DEFAULTS, &table.attributes)),
        durability: Some(match table.durability() {
            Durability::UseDefault => thrift2::TDurability::USE_DEFAULT,
            Durability::SkipWal => thrift2::TDurability::SKIP_WAL,
            Durability::AsyncWal => thrift2::TDurability::ASYNC_WAL,
            Durability::SyncWal => thrift2::TDurability::SYNC_WAL,
            Durability::FsyncWal => thrift2::TDurability::FSYNC_WAL,
        }),
    }
}

/// A family from its Thrift 1 descriptor, whose defaults are not the schema's: 3 versions, no bloom filter, no block cache.
pub(super) fn family1(descriptor: &thrift1::ColumnDescriptor) -> Result<FamilyDescriptor, Failure> {
    let name = descriptor.name.clone().unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::illegal_argument("column name is empty"));
    }
    let (name, _) = split_column(&name);
    let ttl = if descriptor.time_to_live <= 0 {
        FOREVER_SECONDS
    } else {
        descriptor.time_to_live
    };
    let attributes = [
        ("VERSIONS", descriptor.max_versions.to_string()),
        ("COMPRESSION", descriptor.compression.to_ascii_uppercase()),
        ("IN_MEMORY", descriptor.in_memory.to_string()),
        ("BLOOMFILTER", descriptor.bloom_filter_type.clone()),
        ("BLOCKCACHE", descriptor.block_cache_enabled.to_string()),
        ("TTL", ttl.to_string()),
    ];
    let attributes = attributes
        .into_iter()
        .map(|(key, value)| (key.into(), value.into_bytes()))
        .collect();
    FamilyDescriptor::from_attributes(&name, attributes)
        .map_err(|error| Failure::illegal_argument(error.to_string()))
}

/// A family for Thrift 1: its name with a colon.
pub(super) fn to_family1(family: &FamilyDescriptor) -> thrift1::ColumnDescriptor {
    thrift1::ColumnDescriptor {
        name: Some(family_key(family)),
        max_versions: family.max_versions,
        compression: family.compression.to_string(),
        in_memory: family.in_memory,
        bloom_filter_type: family.bloom.to_string(),
        bloom_filter_vector_size: 0,
        bloom_filter_nb_hashes: 0,
        block_cache_enabled: family.block_cache,
        time_to_live: family.ttl_seconds,
    }
}

/// `family:`
pub(super) fn family_key(family: &FamilyDescriptor) -> Bytes {
    [&family.name[..], b":"].concat().into()
}

/// A namespace from Thrift 2.
pub(super) fn namespace(descriptor: &thrift2::TNamespaceDescriptor) -> NamespaceDescriptor {
    NamespaceDescriptor {
        name: descriptor.name.clone(),
        configuration: descriptor.configuration.clone().unwrap_or_default(),
    }
}

/// A namespace for Thrift 2; the configuration only if there is any.
pub(super) fn to_namespace(namespace: &NamespaceDescriptor) -> thrift2::TNamespaceDescriptor {
    thrift2::TNamespaceDescriptor {
        name: namespace.name.clone(),
        configuration: (!namespace.configuration.is_empty()).then(|| namespace.configuration.clone()),
    }
}

/// User tables (and system tables where asked) whose whole full name matches the pattern. Tables of `default` are also tried
/// with their namespace spelled out.
pub(super) fn matching<'a, T>(
    tables: impl IntoIterator<Item = &'a (T, TableState)>,
    pattern: Option<&str>,
    with_system: bool,
) -> Result<Vec<&'a T>, Failure>
where
    T: std::ops::Deref<Target = TableDescriptor> + 'a,
{
    let pattern = pattern
        .map(|pattern| {
            regex::Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
                Failure::illegal_argument(format!(
                    "the pattern {pattern:?} is no regular expression: {error}"
                ))
            })
        })
        .transpose()?;
    let matches = |name: &TableName| {
        pattern.as_ref().is_none_or(|pattern| {
            pattern.is_match(&name.to_string())
                || pattern.is_match(&format!("{}:{}", name.namespace(), name.qualifier()))
        })
    };
    Ok(tables
        .into_iter()
        .map(|(table, _)| table)
        .filter(|table| (with_system || !table.name.is_system()) && matches(&table.name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_survives_the_round_trip() {
        let given = thrift2::TColumnFamilyDescriptor {
            max_versions: Some(5),
            compression_type: Some(thrift2::TCompressionAlgorithm::ZSTD),
            bloomn_filter_type: Some(thrift2::TBloomFilterType::ROWCOL),
            in_memory: Some(true),
            time_to_live: Some(60),
            ..to_family(&FamilyDescriptor::new(b"f"))
        };
        let family = family(&given).unwrap();
        assert_eq!(
            (family.max_versions, family.compression, family.bloom),
            (5, Compression::Zstd, BloomType::RowCol)
        );
        let back = to_family(&family);
        assert_eq!(
            (back.max_versions, back.compression_type, back.in_memory),
            (given.max_versions, given.compression_type, given.in_memory)
        );
        assert_eq!(back.attributes.unwrap()[&b"TTL"[..]], Bytes::from_static(b"60"));
    }

    /// A codec that Basalt does not have is refused, by name, when the table is made: not silently left out.
    #[test]
    fn an_unknown_compression_is_refused() {
        let given = thrift2::TColumnFamilyDescriptor {
            compression_type: Some(thrift2::TCompressionAlgorithm::LZO),
            ..to_family(&FamilyDescriptor::new(b"f"))
        };
        assert!(family(&given).unwrap_err().message().contains("LZO"));
    }

    #[test]
    fn thrift_1_defaults_differ_from_the_schemas() {
        let descriptor = thrift1::ColumnDescriptor {
            name: Some(Bytes::from_static(b"f:")),
            ..Default::default()
        };
        let family = family1(&descriptor).unwrap();
        assert_eq!(
            (&family.name[..], family.max_versions, family.bloom),
            (&b"f"[..], 3, BloomType::None)
        );
        assert!(!family.block_cache);
        assert_eq!(to_family1(&family).name.as_deref(), Some(&b"f:"[..]));
    }
}
