//! Basalt's own interface: `basalt.thrift`.
//!
//! Calls that HBase's two Thrift services leave to the Java client and the shell: flush, compact,
//! split, merge, where regions are, quotas, snapshots of tables, the state of the server, and calls
//! for tests. Method names start with `basalt`, so they never collide with HBase's.

mod service;

pub use service::{AdminHandlers, BasaltException, Method, ReadHandlers, SERVICE, WriteHandlers, args};

#[allow(
    unused_imports,
    clippy::wildcard_imports,
    reason = "the names of Thrift's types"
)]
use crate::schema::names::*;
use crate::schema::{EnumDescriptor, StructDescriptor};

thrift_enum! {
    /// Kinds of background work that can be paused.
    pub enum TBackgroundWork {
        FLUSHES = 1,
        COMPACTIONS = 2,
    }

    /// Kind of a background job.
    pub enum TJobKind {
        FLUSH = 1,
        MINOR_COMPACTION = 2,
        MAJOR_COMPACTION = 3,
    }

    /// Unit of a quota. Names and values are HBase's (ThrottleType).
    pub enum TThrottleType {
        REQUEST_NUMBER = 1,
        REQUEST_SIZE = 2,
        WRITE_NUMBER = 3,
        WRITE_SIZE = 4,
        READ_NUMBER = 5,
        READ_SIZE = 6,
    }

    /// Time unit of a quota. Names and values are HBase's (TimeUnit).
    pub enum TTimeUnit {
        SECONDS = 4,
        MINUTES = 5,
        HOURS = 6,
        DAYS = 7,
    }

    /// Scope of a quota. Names and values are HBase's (QuotaScope). One server is both.
    pub enum TQuotaScope {
        CLUSTER = 1,
        MACHINE = 2,
    }
}

thrift_struct! {
    /// One region: its place, its load, its data.
    pub struct TRegionMetrics {
        /// The full name, without default:.
        1: required binary tableName as table_name,
        /// As in hbase:meta.
        2: required binary regionName as region_name,
        /// 32 hex digits.
        3: required string encodedName as encoded_name,
        /// Empty at the start of the table.
        4: required binary startKey as start_key,
        /// Empty at the end of the table.
        5: required binary endKey as end_key,
        /// Since the server started.
        6: required i64 readRequests as read_requests,
        /// Since the server started.
        7: required i64 writeRequests as write_requests,
        8: required i64 memstoreBytes as memstore_bytes,
        9: required i32 storeFiles as store_files,
        10: required i64 storeFileBytes as store_file_bytes,
        /// Since the server started.
        11: required i64 flushes,
        /// Since the server started.
        12: required i64 compactions,
        /// Writes refused because the region's memstore was full, since the server started.
        13: required i64 blockedWrites as blocked_writes,
    }

    /// A row that many requests go to.
    pub struct THotRow {
        /// Its first 128 bytes: longer keys with the same ones are counted together.
        1: required binary row,
        /// Not less than the true number of requests, apart from sampling.
        2: required i64 requests,
        /// By how much requests may be too high.
        3: required i64 maxError as max_error,
        /// Since when the row is counted, in milliseconds since 1970.
        4: required i64 sinceMs as since_ms,
    }

    /// The rows of a table that most requests of one kind go to.
    pub struct THotRows {
        /// Requests of the table.
        1: required i64 requests,
        /// Number of samples that the figures are made of: as requests, if each row was counted.
        2: required i64 samples,
        /// The hottest first, by requests without maxError.
        3: required list<THotRow> rows,
    }

    /// The hot rows of a table over the last five to ten minutes.
    pub struct THotRowsOfTable {
        /// Begin of the time that is counted, in milliseconds since 1970.
        1: required i64 fromMs as from_ms,
        2: required i64 toMs as to_ms,
        /// Rows that were asked for, and rows that scans returned.
        3: required THotRows reads,
        /// Row mutations.
        4: required THotRows writes,
    }

    /// The memstores of one region.
    pub struct TRegionMemstore {
        1: required binary tableName as table_name,
        2: required binary regionName as region_name,
        /// Bytes of frozen memstores included.
        3: required i64 bytes,
    }

    /// The memory that writes take until they are flushed.
    pub struct TMemstoreState {
        1: required i64 usedBytes as used_bytes,
        /// Beyond it, writes are refused.
        2: required i64 limitBytes as limit_bytes,
        /// A region is flushed at this size.
        3: required i64 flushBytes as flush_bytes,
        /// Flushes waiting or running.
        4: required i32 flushQueue as flush_queue,
        /// Since the server started.
        5: required i64 blockedWrites as blocked_writes,
        /// Largest first; empty ones are left out.
        6: required list<TRegionMemstore> regions,
    }

    /// The block cache.
    pub struct TCacheState {
        1: required i64 capacityBytes as capacity_bytes,
        2: required i64 usedBytes as used_bytes,
        3: required i64 blocks,
        4: required i64 singleAccessBytes as single_access_bytes,
        5: required i64 multiAccessBytes as multi_access_bytes,
        6: required i64 inMemoryBytes as in_memory_bytes,
        /// Since the server started.
        7: required i64 hits,
        /// Since the server started.
        8: required i64 misses,
        /// Since the server started.
        9: required i64 evictions,
    }

    /// The server at a glance.
    pub struct TServerStatus {
        1: required string version,
        2: required string clusterId as cluster_id,
        /// Milliseconds since 1970.
        3: required i64 startedMs as started_ms,
        4: required i64 uptimeMs as uptime_ms,
        5: required string dataDir as data_dir,
        6: optional string thriftAddress as thrift_address,
        7: required i32 namespaces,
        /// User tables.
        8: required i32 tables,
        9: required i32 regions,
        10: required i64 storeFiles as store_files,
        11: required i64 storeFileBytes as store_file_bytes,
        12: required i64 memstoreBytes as memstore_bytes,
        13: required i32 openScanners as open_scanners,
        /// Since the server started.
        14: required i64 flushes,
        /// Since the server started.
        15: required i64 compactions,
        /// Flushes, compactions and splits waiting or running.
        16: required i32 backgroundJobs as background_jobs,
        /// The virtual servers of a rehearsal, each as host,port,startcode. Unset where there is no
        /// rehearsal.
        17: optional list<string> rehearsalServers as rehearsal_servers,
    }

    /// A flush or compaction that runs.
    pub struct TRunningJob {
        1: required TJobKind kind,
        2: required binary tableName as table_name,
        /// 32 hex digits. Unset when the region is gone.
        3: optional string encodedName as encoded_name,
        /// Family of a compaction; a flush is of all families.
        4: optional string family,
        /// Bytes of the memstores or store files that it reads.
        5: required i64 inputBytes as input_bytes,
        /// How much of that is still to be read.
        6: required i64 leftBytes as left_bytes,
        7: required i64 tookMs as took_ms,
    }

    /// Background work.
    pub struct TBackgroundState {
        /// The longest first.
        1: required list<TRunningJob> running,
        /// Waiting or running, as the next two.
        2: required i32 flushes,
        3: required i32 compactions,
        4: required i32 splits,
        5: required bool flushesPaused as flushes_paused,
        6: required bool compactionsPaused as compactions_paused,
    }

    /// A quota: of a table, of a namespace, of a user, or of a user in a table or namespace.
    pub struct TThrottle {
        1: optional string userName as user_name,
        2: optional binary tableName as table_name,
        3: optional string nsName as ns_name,
        4: optional TThrottleType type as throttle_type,
        /// Requests, or bytes.
        5: optional i64 softLimit as soft_limit,
        6: optional TTimeUnit timeUnit as time_unit,
        7: optional TQuotaScope scope,
    }

    /// A fault for the next calls of a data method. docs/test-servers.md has the methods and faults.
    pub struct TFault {
        /// A native method's name for all protocols, a Thrift method's name, or *.
        1: required string method,
        /// region_too_busy, not_serving_region, delay, drop_connection, drop_reply, split, or move.
        2: required string fault,
        /// The number of calls that it still applies to.
        3: required i32 calls,
        /// The full name of the calls' table. Unset: any user table.
        4: optional binary table,
        /// The length of a delay.
        5: optional i32 delayMs as delay_ms,
        /// The row at which a split is made. Unset: behind the last row that the scan has reached.
        6: optional binary splitRow as split_row,
    }

    /// A snapshot of a table.
    pub struct TSnapshot {
        1: required string name,
        /// The full name, without default:.
        2: required binary tableName as table_name,
        /// Milliseconds since 1970.
        3: required i64 createdMs as created_ms,
        /// Seconds until it is removed. 0: never.
        4: required i64 ttlSeconds as ttl_seconds,
        5: required i32 regions,
        6: required i32 files,
        /// Size of the files. The table, its clones and other snapshots may have the same ones: they take
        /// disk space once.
        7: required i64 bytes,
    }

    /// An operation failed. Its fields are those in HBase's THBaseService.
    pub exception TIOError {
        1: optional string message,
        /// False if trying again cannot help.
        2: optional bool canRetry as can_retry,
    }
}

/// Every struct, union and exception of the interface.
pub const STRUCTS: &[&StructDescriptor] = &[
    &TRegionMetrics::DESCRIPTOR,
    &THotRow::DESCRIPTOR,
    &THotRows::DESCRIPTOR,
    &THotRowsOfTable::DESCRIPTOR,
    &TRegionMemstore::DESCRIPTOR,
    &TMemstoreState::DESCRIPTOR,
    &TCacheState::DESCRIPTOR,
    &TServerStatus::DESCRIPTOR,
    &TRunningJob::DESCRIPTOR,
    &TBackgroundState::DESCRIPTOR,
    &TThrottle::DESCRIPTOR,
    &TSnapshot::DESCRIPTOR,
    &TFault::DESCRIPTOR,
    &TIOError::DESCRIPTOR,
];

/// Every enum of the interface.
pub const ENUMS: &[&EnumDescriptor] = &[
    &TBackgroundWork::DESCRIPTOR,
    &TJobKind::DESCRIPTOR,
    &TThrottleType::DESCRIPTOR,
    &TTimeUnit::DESCRIPTOR,
    &TQuotaScope::DESCRIPTOR,
];
