//! Descriptors of tables and families, as builders over the Thrift descriptors.
//!
//! Unset options are left to the server, whose defaults are HBase's: one version, a bloom filter of
//! rows, no compression, blocks of 64 KiB.

use bytes::Bytes;

use crate::error::Result;
use crate::name::TableName;
use crate::options::{
    BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, KeepDeletedCells,
    TableDescriptor,
};
use crate::request::IntoBytes;

/// A column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilySchema {
    /// The family as the interface has it. Public for settings without a method here.
    pub descriptor: ColumnFamilyDescriptor,
}

impl FamilySchema {
    /// A family with the server's defaults.
    pub fn new(name: impl IntoBytes) -> FamilySchema {
        FamilySchema {
            descriptor: ColumnFamilyDescriptor {
                name: name.into_bytes(),
                ..ColumnFamilyDescriptor::default()
            },
        }
    }

    /// Number of versions of each column that are kept.
    #[must_use]
    pub fn versions(mut self, versions: i32) -> FamilySchema {
        self.descriptor.max_versions = Some(versions);
        self
    }

    /// Number of versions that are kept although their time to live is over.
    #[must_use]
    pub fn min_versions(mut self, versions: i32) -> FamilySchema {
        self.descriptor.min_versions = Some(versions);
        self
    }

    /// How long cells live, in seconds.
    #[must_use]
    pub fn ttl_seconds(mut self, seconds: i32) -> FamilySchema {
        self.descriptor.time_to_live = Some(seconds);
        self
    }

    /// Kind of key in the bloom filters.
    #[must_use]
    pub fn bloom_filter(mut self, kind: BloomType) -> FamilySchema {
        self.descriptor.bloomn_filter_type = Some(kind);
        self
    }

    /// How blocks are compressed.
    #[must_use]
    pub fn compression(mut self, algorithm: Compression) -> FamilySchema {
        self.descriptor.compression_type = Some(algorithm);
        self
    }

    /// How cells are laid out in blocks.
    #[must_use]
    pub fn data_block_encoding(mut self, encoding: DataBlockEncoding) -> FamilySchema {
        self.descriptor.data_block_encoding = Some(encoding);
        self
    }

    /// Whether deleted cells stay readable in the past.
    #[must_use]
    pub fn keep_deleted_cells(mut self, keep: KeepDeletedCells) -> FamilySchema {
        self.descriptor.keep_deleted_cells = Some(keep);
        self
    }

    /// The size of blocks before compression, in bytes.
    #[must_use]
    pub fn block_bytes(mut self, bytes: i32) -> FamilySchema {
        self.descriptor.block_size = Some(bytes);
        self
    }

    /// Whether blocks are kept in the share of the cache that is for such families.
    #[must_use]
    pub fn in_memory(mut self, in_memory: bool) -> FamilySchema {
        self.descriptor.in_memory = Some(in_memory);
        self
    }

    /// Whether blocks that are read enter the cache.
    #[must_use]
    pub fn block_cache(mut self, enabled: bool) -> FamilySchema {
        self.descriptor.block_cache_enabled = Some(enabled);
        self
    }

    /// A setting by HBase's name for it.
    #[must_use]
    pub fn attribute(mut self, name: impl IntoBytes, value: impl IntoBytes) -> FamilySchema {
        let attributes = self.descriptor.attributes.get_or_insert_default();
        attributes.insert(name.into_bytes(), value.into_bytes());
        self
    }

    /// The name.
    pub fn name(&self) -> &Bytes {
        &self.descriptor.name
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// The table as the interface has it. Public for settings without a method here.
    pub descriptor: TableDescriptor,
}

impl TableSchema {
    /// A table without families yet.
    pub fn new(name: &str) -> Result<TableSchema> {
        let name: TableName = name.parse()?;
        Ok(TableSchema {
            descriptor: TableDescriptor {
                table_name: (&name).into(),
                columns: Some(Vec::new()),
                attributes: None,
                durability: None,
            },
        })
    }

    /// Adds a family.
    #[must_use]
    pub fn family(mut self, family: FamilySchema) -> TableSchema {
        let families = self.descriptor.columns.get_or_insert_default();
        families.push(family.descriptor);
        self
    }

    /// When writes are acknowledged unless they say otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> TableSchema {
        self.descriptor.durability = Some(durability);
        self
    }

    /// A setting by HBase's name for it.
    #[must_use]
    pub fn attribute(mut self, name: impl IntoBytes, value: impl IntoBytes) -> TableSchema {
        let attributes = self.descriptor.attributes.get_or_insert_default();
        attributes.insert(name.into_bytes(), value.into_bytes());
        self
    }

    /// The name.
    pub fn name(&self) -> TableName {
        (&self.descriptor.table_name).into()
    }

    /// The families.
    pub fn families(&self) -> &[ColumnFamilyDescriptor] {
        self.descriptor.columns.as_deref().unwrap_or_default()
    }
}
