//! The messages in the files of a snapshot: HBase's Snapshot.proto and FS.proto.

use basalt_idl::native::messages::{RegionInfo, TableSchema};
use bytes::Bytes;
use prost::Message;

/// The layout with one manifest; 0 had a folder for each region.
pub(super) const LAYOUT_VERSION: i32 = 2;

/// A SnapshotDescription: `.snapshotinfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SnapshotInfo {
    #[prost(string, required, tag = "1")]
    pub(super) name: String,
    /// The table, with its namespace unless that is the default.
    #[prost(string, optional, tag = "2")]
    pub(super) table: Option<String>,
    /// Milliseconds since 1970.
    #[prost(int64, optional, tag = "3")]
    pub(super) creation_time: Option<i64>,
    /// 1: taken with a flush of an enabled table.
    #[prost(int32, optional, tag = "4")]
    pub(super) kind: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) version: Option<i32>,
    /// Time to live in seconds; 0: for ever.
    #[prost(int64, optional, tag = "8")]
    pub(super) ttl: Option<i64>,
}

/// A SnapshotDataManifest: `data.manifest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DataManifest {
    #[prost(message, required, tag = "1")]
    pub(super) table_schema: TableSchema,
    #[prost(message, repeated, tag = "2")]
    pub(super) regions: Vec<RegionManifest>,
}

/// A SnapshotRegionManifest.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RegionManifest {
    #[prost(int32, optional, tag = "1")]
    pub(super) version: Option<i32>,
    #[prost(message, required, tag = "2")]
    pub(super) region_info: RegionInfo,
    #[prost(message, repeated, tag = "3")]
    pub(super) families: Vec<FamilyFiles>,
}

/// The store files of a family.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FamilyFiles {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(super) family: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(super) files: Vec<File>,
}

/// A store file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct File {
    #[prost(string, required, tag = "1")]
    pub(super) name: String,
    /// The half that a daughter of an unfinished split has.
    #[prost(message, optional, tag = "2")]
    pub(super) reference: Option<Reference>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) bytes: Option<u64>,
}

/// Half of a file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Reference {
    /// The flat key at which it is cut.
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(super) split_key: Bytes,
    /// 0: from there on; 1: before it.
    #[prost(int32, required, tag = "2")]
    pub(super) range: i32,
}
