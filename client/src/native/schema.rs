//! Tables, families and namespaces as HBase's protocol has them, from and to those of the Thrift interface.
//!
//! The protocol has options as attributes: bytes by name, such as `VERSIONS` with the text `3`. An option
//! that has a field in [`TColumnFamilyDescriptor`] is converted; the others stay attributes.

use std::collections::BTreeMap;

use basalt_idl::native::messages::{self, BytesBytesPair, ColumnFamilySchema, NameStringPair};
use basalt_idl::thrift2::{
    TBloomFilterType, TColumnFamilyDescriptor, TCompressionAlgorithm, TDataBlockEncoding, TDurability,
    TKeepDeletedCells, TTableDescriptor, TTableName,
};
use bytes::Bytes;

use crate::name::TableName;
use crate::schema::TableSchema;
use crate::tables::Namespace;

/// HBase's name for a table's durability.
const DURABILITY: &str = "DURABILITY";

type Attributes = BTreeMap<Bytes, Bytes>;

pub(super) fn name_to(name: &TableName) -> messages::TableName {
    messages::TableName {
        namespace: Bytes::copy_from_slice(name.namespace().as_bytes()),
        qualifier: Bytes::copy_from_slice(name.qualifier().as_bytes()),
    }
}

pub(super) fn name_of(name: &messages::TableName) -> TableName {
    (&TTableName {
        ns: Some(name.namespace.clone()),
        qualifier: name.qualifier.clone(),
    })
        .into()
}

/// A table for the server.
pub(super) fn to_table(schema: TableSchema) -> messages::TableSchema {
    let name = schema.name();
    let TTableDescriptor {
        columns,
        attributes,
        durability,
        ..
    } = schema.descriptor;
    let mut attributes = attributes.unwrap_or_default();
    set(
        &mut attributes,
        DURABILITY,
        durability.map(|durability| durability.to_string()),
    );
    messages::TableSchema {
        table_name: Some(name_to(&name)),
        attributes: pairs(attributes),
        column_families: columns.into_iter().flatten().map(to_family).collect(),
        configuration: Vec::new(),
    }
}

/// A table from the server.
pub(super) fn of_table(schema: messages::TableSchema) -> TableSchema {
    let name = schema.table_name.unwrap_or_default();
    let mut attributes = attributes(schema.attributes);
    let durability = text(&mut attributes, DURABILITY).and_then(|name| TDurability::from_name(&name));
    for pair in schema.configuration {
        attributes.insert(pair.name.into(), pair.value.into());
    }
    TableSchema {
        descriptor: TTableDescriptor {
            table_name: (&name_of(&name)).into(),
            columns: Some(schema.column_families.into_iter().map(of_family).collect()),
            attributes: Some(attributes),
            durability,
        },
    }
}

/// A family for the server.
pub(super) fn to_family(family: TColumnFamilyDescriptor) -> ColumnFamilySchema {
    let mut attributes = family.attributes.unwrap_or_default();
    let number = |value: Option<i32>| value.map(|value| value.to_string());
    let flag = |value: Option<bool>| value.map(|value| value.to_string());
    let options = [
        ("VERSIONS", number(family.max_versions)),
        ("MIN_VERSIONS", number(family.min_versions)),
        ("TTL", number(family.time_to_live)),
        ("BLOCKSIZE", number(family.block_size)),
        ("REPLICATION_SCOPE", number(family.scope)),
        (
            "DFS_REPLICATION",
            family.dfs_replication.map(|count| count.to_string()),
        ),
        (
            "BLOOMFILTER",
            family.bloomn_filter_type.map(|kind| kind.to_string()),
        ),
        (
            "COMPRESSION",
            family.compression_type.map(|kind| kind.to_string()),
        ),
        (
            "DATA_BLOCK_ENCODING",
            family.data_block_encoding.map(|kind| kind.to_string()),
        ),
        (
            "KEEP_DELETED_CELLS",
            family.keep_deleted_cells.map(|kind| kind.to_string()),
        ),
        ("BLOCKCACHE", flag(family.block_cache_enabled)),
        ("IN_MEMORY", flag(family.in_memory)),
        ("CACHE_BLOOMS_ON_WRITE", flag(family.cache_blooms_on_write)),
        ("CACHE_DATA_ON_WRITE", flag(family.cache_data_on_write)),
        ("CACHE_INDEX_ON_WRITE", flag(family.cache_indexes_on_write)),
        ("COMPRESS_TAGS", flag(family.compress_tags)),
        ("EVICT_BLOCKS_ON_CLOSE", flag(family.evict_blocks_on_close)),
    ];
    for (name, value) in options {
        set(&mut attributes, name, value);
    }
    ColumnFamilySchema {
        name: family.name,
        attributes: pairs(attributes),
        configuration: string_pairs(family.configuration.unwrap_or_default()),
    }
}

fn of_family(schema: ColumnFamilySchema) -> TColumnFamilyDescriptor {
    let mut attributes = attributes(schema.attributes);
    let mut take = |name: &str| text(&mut attributes, name);
    let number = |value: Option<String>| value.and_then(|value| value.parse().ok());
    let flag = |value: Option<String>| value.map(|value| value.eq_ignore_ascii_case("true"));
    let mut family = TColumnFamilyDescriptor {
        name: schema.name,
        max_versions: number(take("VERSIONS")),
        min_versions: number(take("MIN_VERSIONS")),
        time_to_live: take("TTL").map(|ttl| ttl.parse().unwrap_or(i32::MAX)),
        block_size: number(take("BLOCKSIZE")),
        scope: number(take("REPLICATION_SCOPE")),
        dfs_replication: take("DFS_REPLICATION").and_then(|count| count.parse().ok()),
        bloomn_filter_type: take("BLOOMFILTER").and_then(|kind| TBloomFilterType::from_name(&kind)),
        compression_type: take("COMPRESSION").and_then(|kind| TCompressionAlgorithm::from_name(&kind)),
        data_block_encoding: take("DATA_BLOCK_ENCODING")
            .and_then(|kind| TDataBlockEncoding::from_name(&kind)),
        keep_deleted_cells: take("KEEP_DELETED_CELLS").and_then(|kind| TKeepDeletedCells::from_name(&kind)),
        block_cache_enabled: flag(take("BLOCKCACHE")),
        in_memory: flag(take("IN_MEMORY")),
        cache_blooms_on_write: flag(take("CACHE_BLOOMS_ON_WRITE")),
        cache_data_on_write: flag(take("CACHE_DATA_ON_WRITE")),
        cache_indexes_on_write: flag(take("CACHE_INDEX_ON_WRITE")),
        compress_tags: flag(take("COMPRESS_TAGS")),
        evict_blocks_on_close: flag(take("EVICT_BLOCKS_ON_CLOSE")),
        ..TColumnFamilyDescriptor::default()
    };
    let configuration = schema.configuration.into_iter();
    family.configuration = Some(configuration.map(|pair| (pair.name, pair.value)).collect());
    family.attributes = Some(attributes);
    family
}

/// A namespace for the server.
pub(super) fn to_namespace(namespace: Namespace) -> messages::NamespaceDescriptor {
    messages::NamespaceDescriptor {
        name: namespace.name.into(),
        configuration: string_pairs(namespace.configuration),
    }
}

/// A namespace from the server.
pub(super) fn of_namespace(descriptor: messages::NamespaceDescriptor) -> Namespace {
    let configuration = descriptor.configuration.into_iter();
    Namespace {
        name: String::from_utf8_lossy(&descriptor.name).into_owned(),
        configuration: configuration.map(|pair| (pair.name, pair.value)).collect(),
    }
}

fn set(attributes: &mut Attributes, name: &'static str, value: Option<String>) {
    if let Some(value) = value {
        attributes.insert(Bytes::from_static(name.as_bytes()), value.into());
    }
}

/// The text of an attribute. It stays an attribute too, so that nothing is lost in a schema that is sent
/// back.
fn text(attributes: &mut Attributes, name: &str) -> Option<String> {
    let value = attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn attributes(pairs: Vec<BytesBytesPair>) -> Attributes {
    pairs.into_iter().map(|pair| (pair.first, pair.second)).collect()
}

fn pairs(attributes: Attributes) -> Vec<BytesBytesPair> {
    let pair = |(first, second)| BytesBytesPair { first, second };
    attributes.into_iter().map(pair).collect()
}

fn string_pairs(settings: BTreeMap<String, String>) -> Vec<NameStringPair> {
    let pair = |(name, value)| NameStringPair { name, value };
    settings.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::FamilySchema;

    #[test]
    fn a_schema_survives_both_conversions() {
        let family = FamilySchema::new("f")
            .versions(3)
            .ttl_seconds(60)
            .bloom_filter(TBloomFilterType::ROWCOL)
            .compression(TCompressionAlgorithm::SNAPPY)
            .in_memory(true)
            .attribute("MY_OPTION", "x");
        let schema = TableSchema::new("ns:t").unwrap().family(family);
        let sent = to_table(schema.durability(TDurability::ASYNC_WAL));
        let attributes = &sent.column_families[0].attributes;
        let value = |name: &str| {
            let pair = attributes.iter().find(|pair| pair.first == name);
            pair.map(|pair| pair.second.clone())
        };
        assert_eq!(value("VERSIONS"), Some(Bytes::from("3")));
        assert_eq!(value("BLOOMFILTER"), Some(Bytes::from("ROWCOL")));
        assert_eq!(value("MY_OPTION"), Some(Bytes::from("x")));
        assert_eq!(value("BLOCKSIZE"), None);
        let received = of_table(sent.clone());
        assert_eq!(received.name().to_string(), "ns:t");
        assert_eq!(received.descriptor.durability, Some(TDurability::ASYNC_WAL));
        let family = &received.families()[0];
        assert_eq!((family.max_versions, family.time_to_live), (Some(3), Some(60)));
        assert_eq!(family.compression_type, Some(TCompressionAlgorithm::SNAPPY));
        assert_eq!((family.in_memory, family.block_size), (Some(true), None));
        assert_eq!(to_table(received), sent);
    }
}
