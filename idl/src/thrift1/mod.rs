//! HBase's Thrift 1 interface: `thrift1/Hbase.thrift`.
//!
//! Columns are named `family:qualifier` in one binary and split at the first colon. Almost nothing is
//! required, so almost everything is an `Option`: HBase tells absent from empty (an absent value in
//! `checkAndPut` means that the column must not exist).

mod service;

pub use service::{AdminHandlers, HbaseException, Method, ReadHandlers, SERVICE, WriteHandlers, args};

#[allow(
    unused_imports,
    clippy::wildcard_imports,
    reason = "the names of Thrift's types"
)]
use crate::schema::names::*;
use crate::schema::{EnumDescriptor, StructDescriptor};

/// A column or row name, or a value. Bytes without an encoding, whatever the name suggests.
pub type Text = bytes::Bytes;

/// Bytes.
pub type Bytes = bytes::Bytes;

/// The id of an open scanner.
pub type ScannerID = i32;

thrift_enum! {
    /// The HBase service that a server speaks.
    pub enum TThriftServerType {
        ONE = 1,
        TWO = 2,
    }

    /// Object of a permission.
    pub enum TPermissionScope {
        TABLE = 0,
        NAMESPACE = 1,
    }
}

thrift_struct! {
    /// One version of a cell.
    pub struct TCell {
        1: Bytes value,
        /// Milliseconds.
        2: i64 timestamp,
    }

    /// A column family. Tables made with the defaults here keep three versions, without bloom filter and
    /// block cache.
    pub struct ColumnDescriptor {
        /// With or without a trailing colon on input; with the colon on output.
        1: Text name,
        2: i32 maxVersions as max_versions = 3,
        /// NONE, GZ, LZO, SNAPPY, LZ4, BZIP2 or ZSTD, in any case.
        3: string compression = "NONE",
        4: bool inMemory as in_memory = false,
        /// NONE, ROW or ROWCOL.
        5: string bloomFilterType as bloom_filter_type = "NONE",
        /// Ignored, reported as 0.
        6: i32 bloomFilterVectorSize as bloom_filter_vector_size = 0,
        /// Ignored, reported as 0.
        7: i32 bloomFilterNbHashes as bloom_filter_nb_hashes = 0,
        8: bool blockCacheEnabled as block_cache_enabled = false,
        /// Seconds; zero, negative and 2147483647 all mean forever.
        9: i32 timeToLive as time_to_live = 2_147_483_647,
    }

    /// A region and the server it is on.
    pub struct TRegionInfo {
        /// Empty at the start of the table.
        1: Text startKey as start_key,
        /// Empty at the end of the table.
        2: Text endKey as end_key,
        /// Creation time of the region in milliseconds.
        3: i64 id,
        4: Text name,
        /// Always 1.
        5: byte version,
        6: Text serverName as server_name,
        7: i32 port,
    }

    /// A put or a delete of one column.
    pub struct Mutation {
        1: bool isDelete as is_delete = false,
        /// family:qualifier. A delete without colon deletes the family, a put without colon is skipped.
        2: Text column,
        /// Absent means empty.
        3: Text value,
        /// The last put and the last delete of a call decide for all of their kind.
        4: bool writeToWAL as write_to_wal = true,
    }

    /// The mutations of one row.
    pub struct BatchMutation {
        1: Text row,
        2: list<Mutation> mutations,
    }

    /// An increment of one column.
    pub struct TIncrement {
        1: Text table,
        2: Text row,
        3: Text column,
        /// The spelling is part of the interface.
        4: i64 ammount,
    }

    /// A cell with its column name.
    pub struct TColumn {
        1: Text columnName as column_name,
        2: TCell cell,
    }

    /// A row. Either columns or sortedColumns is set.
    pub struct TRowResult {
        1: Text row,
        /// One cell for each column, by family:qualifier.
        2: optional map<Text, TCell> columns,
        /// In cell order; only from scanners opened with sortColumns.
        3: optional list<TColumn> sortedColumns as sorted_columns,
    }

    /// Parameters of a scanner. One version of each column.
    pub struct TScan {
        1: optional Text startRow as start_row,
        2: optional Text stopRow as stop_row,
        /// Only cells strictly older than this.
        3: optional i64 timestamp,
        4: optional list<Text> columns,
        /// Rows fetched ahead: a hint.
        5: optional i32 caching,
        6: optional Text filterString as filter_string,
        /// Most cells in one result; longer rows come in several.
        7: optional i32 batchSize as batch_size,
        8: optional bool sortColumns as sort_columns,
        /// startRow is then the high end.
        9: optional bool reversed,
        /// A hint.
        10: optional bool cacheBlocks as cache_blocks,
    }

    /// An append to columns of one row.
    pub struct TAppend {
        1: Text table,
        2: Text row,
        3: list<Text> columns,
        /// One value for each column.
        4: list<Text> values,
    }

    /// A permission of one user.
    pub struct TAccessControlEntity {
        1: required string username,
        2: required TPermissionScope scope,
        /// Letters: R, W, X, C, A.
        4: required string actions,
        5: optional Bytes tableName as table_name,
        6: optional string nsName as ns_name,
    }

    /// An operation failed. The message begins with the Java class of HBase's exception.
    pub exception IOError {
        1: string message,
        /// False if trying again cannot help.
        2: bool canRetry as can_retry,
    }

    /// An argument is wrong, or a scanner id is not known.
    pub exception IllegalArgument {
        1: string message,
    }

    /// The table exists.
    pub exception AlreadyExists {
        1: string message,
    }
}

/// Every struct, union and exception of the interface.
pub const STRUCTS: &[&StructDescriptor] = &[
    &TCell::DESCRIPTOR,
    &ColumnDescriptor::DESCRIPTOR,
    &TRegionInfo::DESCRIPTOR,
    &Mutation::DESCRIPTOR,
    &BatchMutation::DESCRIPTOR,
    &TIncrement::DESCRIPTOR,
    &TColumn::DESCRIPTOR,
    &TRowResult::DESCRIPTOR,
    &TScan::DESCRIPTOR,
    &TAppend::DESCRIPTOR,
    &TAccessControlEntity::DESCRIPTOR,
    &IOError::DESCRIPTOR,
    &IllegalArgument::DESCRIPTOR,
    &AlreadyExists::DESCRIPTOR,
];

/// Every enum of the interface.
pub const ENUMS: &[&EnumDescriptor] = &[&TThriftServerType::DESCRIPTOR, &TPermissionScope::DESCRIPTOR];
