//! Families, in the descriptors of both services.

use basalt_engine::schema::{FOREVER_SECONDS, FamilyDescriptor};
use basalt_idl::thrift2::{TBloomFilterType, TCompressionAlgorithm, TDataBlockEncoding, TKeepDeletedCells};
use basalt_idl::{thrift1, thrift2};
use bytes::Bytes;

use super::raw;
use crate::service::Failure;
use crate::service::schema::{family_attributes, family_configuration};
use crate::thrift::from_thrift::split_column;

/// A family from its Thrift 2 descriptor: raw attributes first, then each typed field that is set. A typed
/// field with a code that the interface does not have counts as not set, as Java reads it.
///
/// DATA_BLOCK_ENCODING NONE is treated as unset: it is HBase's default, which HBase spells out in
/// every descriptor, and which clients send back, and with every table that they create, without
/// having chosen it. So it is not kept, and files get the engine's own default.
pub(in crate::thrift) fn family(
    descriptor: &thrift2::TColumnFamilyDescriptor,
) -> Result<FamilyDescriptor, Failure> {
    let mut attributes = raw(Some(&descriptor.raw_values()));
    let encoding = attributes.get(&b"DATA_BLOCK_ENCODING"[..]);
    if encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case(b"NONE")) {
        attributes.remove(&b"DATA_BLOCK_ENCODING"[..]);
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

/// A family for Thrift 2: every typed field set, all raw values, the configuration only if there is any.
pub(in crate::thrift) fn to_family(family: &FamilyDescriptor) -> thrift2::TColumnFamilyDescriptor {
    let text = |name: &str| {
        family
            .attributes
            .get(name.as_bytes())
            .and_then(|value| std::str::from_utf8(value).ok())
    };
    let flag = |name: &str, default: bool| {
        Some(text(name).map_or(default, |value| value.eq_ignore_ascii_case("true")))
    };
    let encoding = text("DATA_BLOCK_ENCODING").map_or("NONE", |_| family.encoding.as_str());
    let configuration = family_configuration(family);
    thrift2::TColumnFamilyDescriptor {
        name: family.name.clone().into(),
        attributes: Some(family_attributes(family)),
        configuration: (!configuration.is_empty()).then_some(configuration),
        block_size: Some(family.block_bytes),
        // The interface has a name for each of the engine's values.
        bloomn_filter_type: TBloomFilterType::from_name(family.bloom.as_str()),
        compression_type: TCompressionAlgorithm::from_name(family.compression.as_str()),
        dfs_replication: Some(
            text("DFS_REPLICATION")
                .and_then(|value| value.parse().ok())
                .unwrap_or(0),
        ),
        data_block_encoding: TDataBlockEncoding::from_name(encoding),
        keep_deleted_cells: TKeepDeletedCells::from_name(family.keep_deleted_cells.as_str()),
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

/// A family from its Thrift 1 descriptor, whose defaults are not the schema's: 3 versions, no bloom filter,
/// no block cache.
pub(in crate::thrift) fn family1(
    descriptor: &thrift1::ColumnDescriptor,
) -> Result<FamilyDescriptor, Failure> {
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
pub(in crate::thrift) fn to_family1(family: &FamilyDescriptor) -> thrift1::ColumnDescriptor {
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
pub(in crate::thrift) fn family_key(family: &FamilyDescriptor) -> Bytes {
    [&family.name[..], b":"].concat().into()
}

#[cfg(test)]
mod tests {
    use basalt_engine::schema::{Attributes, BloomType, Compression, DataBlockEncoding, KeepDeletedCells};

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

    /// A descriptor that was read and sent back changes nothing: neither the engine's behaviour nor
    /// the next reader's result.
    #[test]
    fn a_descriptor_that_is_sent_back_changes_nothing() {
        for set in [
            &[][..],
            &[("DATA_BLOCK_ENCODING", "FAST_DIFF"), ("VERSIONS", "7")],
            &[
                ("DATA_BLOCK_ENCODING", "ROW_INDEX_V1"),
                ("BLOOMFILTER", "NONE"),
                ("TTL", "60"),
                ("KEEP_DELETED_CELLS", "TTL"),
                ("X", "y"),
            ],
        ] {
            let attributes = set
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect();
            let before = FamilyDescriptor::from_attributes(b"f", attributes).unwrap();
            let shown = to_family(&before);
            let after = family(&shown).unwrap();
            let acted_on = |family: &FamilyDescriptor| FamilyDescriptor {
                attributes: Attributes::new(),
                ..family.clone()
            };
            assert_eq!(acted_on(&after), acted_on(&before), "{set:?}");
            let without_attributes =
                |shown: thrift2::TColumnFamilyDescriptor| thrift2::TColumnFamilyDescriptor {
                    attributes: None,
                    ..shown
                };
            assert_eq!(
                without_attributes(to_family(&after)),
                without_attributes(shown),
                "{set:?}"
            );
        }
    }

    #[test]
    fn each_value_of_the_engine_has_a_name_in_the_interface() {
        let is_named = |value: &str, is_there: bool| assert!(is_there, "{value}");
        for value in BloomType::ALL.iter().map(|value| value.as_str()) {
            is_named(value, TBloomFilterType::from_name(value).is_some());
        }
        for value in Compression::ALL.iter().map(|value| value.as_str()) {
            is_named(value, TCompressionAlgorithm::from_name(value).is_some());
        }
        for value in DataBlockEncoding::ALL.iter().map(|value| value.as_str()) {
            is_named(value, TDataBlockEncoding::from_name(value).is_some());
        }
        for value in KeepDeletedCells::ALL.iter().map(|value| value.as_str()) {
            is_named(value, TKeepDeletedCells::from_name(value).is_some());
        }
    }

    #[test]
    fn an_encoding_of_none_is_no_choice() {
        for (given, encoding) in [
            (thrift2::TDataBlockEncoding::NONE, DataBlockEncoding::RowIndexV1),
            (
                thrift2::TDataBlockEncoding::FAST_DIFF,
                DataBlockEncoding::FastDiff,
            ),
        ] {
            let given = thrift2::TColumnFamilyDescriptor {
                name: Bytes::from_static(b"f"),
                data_block_encoding: Some(given),
                ..Default::default()
            };
            assert_eq!(family(&given).unwrap().encoding, encoding);
        }
    }

    /// A codec that Basalt does not have is refused, by name, when the table is created, not
    /// silently ignored.
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
