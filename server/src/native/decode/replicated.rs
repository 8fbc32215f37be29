//! The messages of a replication source. Entries are decoded one by one, and without what a sink does not
//! need: the source's regions, sequence numbers, scopes and nonces.

use basalt_engine::Result;
use basalt_engine::id::Uuid;
use basalt_engine::schema::TableName;
use basalt_idl::native::messages;
use bytes::Bytes;
use prost::Message;

use super::request::do_not_retry;

/// Cells from which on a piece of a batch takes no further row.
pub const PIECE_CELLS: usize = 16 << 10;

/// Bytes from which on a piece takes no further row.
pub const PIECE_BYTES: usize = 4 << 20;

/// A ReplicateWALEntryRequest whose entries are not decoded.
#[derive(Clone, PartialEq, Message)]
pub struct SourceBatch {
    /// The entries.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub entry: Vec<Bytes>,
    /// The directory of the source's tables.
    #[prost(string, optional, tag = "3")]
    pub source_base_namespace_dir_path: Option<String>,
    /// The directory of files that the source has replaced.
    #[prost(string, optional, tag = "4")]
    pub source_h_file_archive_dir_path: Option<String>,
}

/// A WALEntry.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    /// Its key.
    #[prost(message, required, tag = "1")]
    pub key: EntryKey,
    /// Cells of clients without a codec.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub inline_cells: Vec<Bytes>,
    /// Number of its cells in the cell block.
    #[prost(int32, optional, tag = "3")]
    pub associated_cell_count: Option<i32>,
}

impl Entry {
    /// Number of its cells in the cell block.
    pub fn cells(&self) -> Result<u32> {
        if !self.inline_cells.is_empty() {
            return Err(do_not_retry(
                "a replicated edit has cells in its message: they belong into the cell block \
                 (hbase.replication.rpc.codec of the source)",
            ));
        }
        let count = self.associated_cell_count.unwrap_or_default();
        u32::try_from(count).map_err(|_| do_not_retry(format!("a replicated edit with {count} cells")))
    }
}

/// A WALKey.
#[derive(Clone, PartialEq, Message)]
pub struct EntryKey {
    /// Name of the table, with its namespace unless that is the default.
    #[prost(bytes = "bytes", required, tag = "2")]
    pub table_name: Bytes,
    /// When the edit was written, in milliseconds since 1970.
    #[prost(uint64, required, tag = "4")]
    pub write_time: u64,
    /// The one cluster that the edit has passed, of sources before HBase 0.98.
    #[prost(message, optional, tag = "5")]
    pub cluster: Option<messages::Uuid>,
    /// The clusters that the edit has passed.
    #[prost(message, repeated, tag = "8")]
    pub clusters: Vec<messages::Uuid>,
}

impl EntryKey {
    /// The clusters that the edit has passed.
    pub fn clusters(&self) -> Vec<Uuid> {
        let all = self.cluster.iter().chain(&self.clusters);
        all.map(uuid).collect()
    }
}

fn uuid(uuid: &messages::Uuid) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&uuid.most_sig_bits.to_be_bytes());
    bytes[8..].copy_from_slice(&uuid.least_sig_bits.to_be_bytes());
    Uuid(bytes)
}

/// A BulkLoadDescriptor.
#[derive(Clone, PartialEq, Message)]
pub struct BulkLoad {
    /// The source's region.
    #[prost(bytes = "bytes", required, tag = "2")]
    pub region: Bytes,
    /// The files, by family.
    #[prost(message, repeated, tag = "3")]
    pub stores: Vec<LoadedStore>,
}

/// A StoreDescriptor.
#[derive(Clone, PartialEq, Message)]
pub struct LoadedStore {
    /// The family.
    #[prost(bytes = "bytes", required, tag = "1")]
    pub family: Bytes,
    /// Names of the files.
    #[prost(string, repeated, tag = "3")]
    pub files: Vec<String>,
}

/// A file of a bulk load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedFile {
    /// Its family.
    pub family: Vec<u8>,
    /// Where it may be.
    pub places: Vec<String>,
}

impl BulkLoad {
    /// The files of a bulk load into a table of the source.
    pub fn files(&self, batch: &SourceBatch, table: &TableName) -> Vec<LoadedFile> {
        let dirs = [
            &batch.source_base_namespace_dir_path,
            &batch.source_h_file_archive_dir_path,
        ];
        let of_store = |store: &LoadedStore| {
            let family = String::from_utf8_lossy(&store.family).into_owned();
            let region = String::from_utf8_lossy(&self.region).into_owned();
            store
                .files
                .iter()
                .map(move |file| LoadedFile {
                    family: family.clone().into_bytes(),
                    places: dirs
                        .iter()
                        .filter_map(|dir| dir.as_deref())
                        .map(|dir| {
                            let (namespace, name) = (table.namespace(), table.qualifier());
                            format!("{dir}/{namespace}/{name}/{region}/{family}/{file}")
                        })
                        .collect(),
                })
                .collect::<Vec<_>>()
        };
        self.stores.iter().flat_map(of_store).collect()
    }
}
