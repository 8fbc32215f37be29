//! Descriptors as raw values, and as the text of `describe` ([`crate::describe`]).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    TBloomFilterType, TColumnFamilyDescriptor, TCompressionAlgorithm, TDataBlockEncoding, TKeepDeletedCells,
    TTableDescriptor,
};
use crate::describe::{self, Values};

impl TColumnFamilyDescriptor {
    /// The family's raw values by HBase's names: its attributes, and over them each typed field that is
    /// set. A typed field with a code that the interface does not have counts as not set, as Java reads it.
    pub fn raw_values(&self) -> Values {
        let mut values = self.attributes.clone().unwrap_or_default();
        let numbers = [
            ("BLOCKSIZE", self.block_size),
            ("DFS_REPLICATION", self.dfs_replication.map(i32::from)),
            ("VERSIONS", self.max_versions),
            ("MIN_VERSIONS", self.min_versions),
            ("REPLICATION_SCOPE", self.scope),
            ("TTL", self.time_to_live),
        ];
        let flags = [
            ("BLOCKCACHE", self.block_cache_enabled),
            ("CACHE_BLOOMS_ON_WRITE", self.cache_blooms_on_write),
            ("CACHE_DATA_ON_WRITE", self.cache_data_on_write),
            ("CACHE_INDEX_ON_WRITE", self.cache_indexes_on_write),
            ("COMPRESS_TAGS", self.compress_tags),
            ("EVICT_BLOCKS_ON_CLOSE", self.evict_blocks_on_close),
            ("IN_MEMORY", self.in_memory),
        ];
        let codes = [
            (
                "BLOOMFILTER",
                self.bloomn_filter_type.and_then(TBloomFilterType::name),
            ),
            (
                "COMPRESSION",
                self.compression_type.and_then(TCompressionAlgorithm::name),
            ),
            (
                "DATA_BLOCK_ENCODING",
                self.data_block_encoding.and_then(TDataBlockEncoding::name),
            ),
            (
                "KEEP_DELETED_CELLS",
                self.keep_deleted_cells.and_then(TKeepDeletedCells::name),
            ),
        ];
        let numbers = numbers.map(|(name, number)| (name, number.map(|number| number.to_string())));
        let flags = flags.map(|(name, flag)| (name, flag.map(|flag| flag.to_string())));
        let codes = codes.map(|(name, code)| (name, code.map(str::to_owned)));
        for (name, value) in numbers.into_iter().chain(flags).chain(codes) {
            if let Some(value) = value {
                values.insert(Bytes::from_static(name.as_bytes()), value.into());
            }
        }
        values
    }
}

/// A family in the form and order of `describe` in HBase 2.6.
pub fn describe_family(family: &TColumnFamilyDescriptor) -> String {
    let none = BTreeMap::new();
    let configuration = family.configuration.as_ref().unwrap_or(&none);
    describe::family(&family.name, &family.raw_values(), configuration)
}

/// The settings of the table of that name, as the part of `describe` in front of the families.
pub fn describe_table(name: &str, table: &TTableDescriptor) -> String {
    let mut values = table.attributes.clone().unwrap_or_default();
    if let Some(durability) = table.durability {
        values.insert(Bytes::from_static(b"DURABILITY"), durability.to_string().into());
    }
    describe::table(name, &values)
}
