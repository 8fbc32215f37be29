//! Tables, families, namespaces, regions, logs and permissions.

use super::TDurability;
#[allow(
    unused_imports,
    clippy::wildcard_imports,
    reason = "the names of Thrift's types"
)]
use crate::schema::names::*;

thrift_enum! {
    /// Kind of key in the bloom filters of a family.
    pub enum TBloomFilterType {
        NONE = 0,
        ROW = 1,
        ROWCOL = 2,
        ROWPREFIX_FIXED_LENGTH = 3,
    }

    /// How blocks of a family are compressed.
    pub enum TCompressionAlgorithm {
        LZO = 0,
        GZ = 1,
        NONE = 2,
        SNAPPY = 3,
        LZ4 = 4,
        BZIP2 = 5,
        ZSTD = 6,
    }

    /// How cells are laid out in blocks of a family.
    pub enum TDataBlockEncoding {
        NONE = 0,
        PREFIX = 2,
        DIFF = 3,
        FAST_DIFF = 4,
        ROW_INDEX_V1 = 7,
    }

    /// Whether deleted cells stay readable in the past.
    pub enum TKeepDeletedCells {
        FALSE = 0,
        TRUE = 1,
        TTL = 2,
    }

    /// Kind of slow log.
    pub enum TLogType {
        SLOW_LOG = 1,
        LARGE_LOG = 2,
    }

    /// How the conditions of a TLogQueryFilter combine.
    pub enum TFilterByOperator {
        AND = 0,
        OR = 1,
    }

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
    /// A region.
    pub struct THRegionInfo {
        /// 0 from HBase's gateway.
        1: required i64 regionId as region_id,
        2: required binary tableName as table_name,
        3: optional binary startKey as start_key,
        4: optional binary endKey as end_key,
        5: optional bool offline,
        6: optional bool split,
        7: optional i32 replicaId as replica_id,
    }

    /// A server.
    pub struct TServerName {
        1: required string hostName as host_name,
        2: optional i32 port,
        /// Start time of the server in milliseconds.
        3: optional i64 startCode as start_code,
    }

    /// A region and the server it is on.
    pub struct THRegionLocation {
        1: required TServerName serverName as server_name,
        2: required THRegionInfo regionInfo as region_info,
    }

    /// A table name.
    pub struct TTableName {
        /// Absent or empty means default. Always set in results.
        1: optional binary ns,
        2: required binary qualifier,
    }

    /// A column family. Applied in the order attributes, configuration, then the typed fields that are set.
    pub struct TColumnFamilyDescriptor {
        1: required binary name,
        2: optional map<binary, binary> attributes,
        3: optional map<string, string> configuration,
        4: optional i32 blockSize as block_size,
        /// The spelling is part of the interface.
        5: optional TBloomFilterType bloomnFilterType as bloomn_filter_type,
        6: optional TCompressionAlgorithm compressionType as compression_type,
        7: optional i16 dfsReplication as dfs_replication,
        8: optional TDataBlockEncoding dataBlockEncoding as data_block_encoding,
        9: optional TKeepDeletedCells keepDeletedCells as keep_deleted_cells,
        10: optional i32 maxVersions as max_versions,
        11: optional i32 minVersions as min_versions,
        12: optional i32 scope,
        /// Seconds.
        13: optional i32 timeToLive as time_to_live,
        14: optional bool blockCacheEnabled as block_cache_enabled,
        15: optional bool cacheBloomsOnWrite as cache_blooms_on_write,
        16: optional bool cacheDataOnWrite as cache_data_on_write,
        17: optional bool cacheIndexesOnWrite as cache_indexes_on_write,
        18: optional bool compressTags as compress_tags,
        19: optional bool evictBlocksOnClose as evict_blocks_on_close,
        20: optional bool inMemory as in_memory,
    }

    /// A table.
    pub struct TTableDescriptor {
        1: required TTableName tableName as table_name,
        2: optional list<TColumnFamilyDescriptor> columns,
        3: optional map<binary, binary> attributes,
        4: optional TDurability durability,
    }

    /// A namespace.
    pub struct TNamespaceDescriptor {
        1: required string name,
        2: optional map<string, string> configuration,
    }

    /// Conditions and limit for records of a slow log.
    pub struct TLogQueryFilter {
        1: optional string regionName as region_name,
        2: optional string clientAddress as client_address,
        3: optional string tableName as table_name,
        4: optional string userName as user_name,
        5: optional i32 limit = 10,
        6: optional TLogType logType as log_type = TLogType::SLOW_LOG,
        7: optional TFilterByOperator filterByOperator as filter_by_operator = TFilterByOperator::OR,
    }

    /// A slow or large request.
    pub struct TOnlineLogRecord {
        1: required i64 startTime as start_time,
        2: required i32 processingTime as processing_time,
        3: required i32 queueTime as queue_time,
        4: required i64 responseSize as response_size,
        5: required string clientAddress as client_address,
        6: required string serverClass as server_class,
        7: required string methodName as method_name,
        8: required string callDetails as call_details,
        9: required string param,
        10: required string userName as user_name,
        11: required i32 multiGetsCount as multi_gets_count,
        12: required i32 multiMutationsCount as multi_mutations_count,
        13: required i32 multiServiceCalls as multi_service_calls,
        14: optional string regionName as region_name,
        15: optional i64 blockBytesScanned as block_bytes_scanned,
        16: optional i64 fsReadTime as fs_read_time,
    }

    /// A permission of one user.
    pub struct TAccessControlEntity {
        1: required string username,
        2: required TPermissionScope scope,
        /// Letters: R, W, X, C, A.
        4: required string actions,
        5: optional string tableName as table_name,
        6: optional string nsName as ns_name,
    }
}
