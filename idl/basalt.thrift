// Basalt's own calls. They are answered on the same port as HBase's; no method name is in two services.

namespace java basalt
namespace cpp basalt
namespace py basalt
namespace rb Basalt
namespace perl Basalt
namespace php Basalt
namespace go basalt
namespace js basalt

/** One region: its place, its load, what it stores. */
struct TRegionMetrics {
  /** The full name, without default:. */
  1: required binary tableName,
  /** As in hbase:meta. */
  2: required binary regionName,
  /** 32 hex digits. */
  3: required string encodedName,
  /** Empty at the start of the table. */
  4: required binary startKey,
  /** Empty at the end of the table. */
  5: required binary endKey,
  /** Since the server started. */
  6: required i64 readRequests,
  /** Since the server started. */
  7: required i64 writeRequests,
  8: required i64 memstoreBytes,
  9: required i32 storeFiles,
  10: required i64 storeFileBytes,
  /** Since the server started. */
  11: required i64 flushes,
  /** Since the server started. */
  12: required i64 compactions,
  /** Writes refused because the region's memstore was full, since the server started. */
  13: required i64 blockedWrites
}

/** The memstores of one region. */
struct TRegionMemstore {
  1: required binary tableName,
  2: required binary regionName,
  /** Bytes of frozen memstores included. */
  3: required i64 bytes
}

/** The memory that writes take until they are flushed. */
struct TMemstoreState {
  1: required i64 usedBytes,
  /** Beyond it, writes are refused. */
  2: required i64 limitBytes,
  /** A region is flushed at this size. */
  3: required i64 flushBytes,
  /** Flushes waiting or running. */
  4: required i32 flushQueue,
  /** Since the server started. */
  5: required i64 blockedWrites,
  /** Largest first; empty ones are left out. */
  6: required list<TRegionMemstore> regions
}

/** The block cache. */
struct TCacheState {
  1: required i64 capacityBytes,
  2: required i64 usedBytes,
  3: required i64 blocks,
  4: required i64 singleAccessBytes,
  5: required i64 multiAccessBytes,
  6: required i64 inMemoryBytes,
  /** Since the server started. */
  7: required i64 hits,
  /** Since the server started. */
  8: required i64 misses,
  /** Since the server started. */
  9: required i64 evictions
}

/** The server at a glance. */
struct TServerStatus {
  1: required string version,
  2: required string clusterId,
  /** Milliseconds since 1970. */
  3: required i64 startedMs,
  4: required i64 uptimeMs,
  5: required string dataDir,
  6: optional string thriftAddress,
  7: required i32 namespaces,
  /** User tables. */
  8: required i32 tables,
  9: required i32 regions,
  10: required i64 storeFiles,
  11: required i64 storeFileBytes,
  12: required i64 memstoreBytes,
  13: required i32 openScanners,
  /** Since the server started. */
  14: required i64 flushes,
  /** Since the server started. */
  15: required i64 compactions,
  /** Flushes, compactions and splits waiting or running. */
  16: required i32 backgroundJobs,
  /** The virtual servers of a rehearsal, each as host,port,startcode. Unset where there is no rehearsal. */
  17: optional list<string> rehearsalServers
}

/** A row that many requests go to. */
struct THotRow {
  /** Its first 128 bytes: longer keys with the same ones are counted together. */
  1: required binary row,
  /** Not less than the true number of requests, apart from sampling. */
  2: required i64 requests,
  /** By how much requests may be too high. */
  3: required i64 maxError,
  /** Since when the row is counted, in milliseconds since 1970. */
  4: required i64 sinceMs
}

/** The rows of a table that most requests of one kind go to. */
struct THotRows {
  /** Requests of the table. */
  1: required i64 requests,
  /** Number of samples that the figures are made of: as requests, if each row was counted. */
  2: required i64 samples,
  /** The hottest first, by requests without maxError. */
  3: required list<THotRow> rows
}

/** The hot rows of a table over the last five to ten minutes. */
struct THotRowsOfTable {
  /** Begin of the time that is counted, in milliseconds since 1970. */
  1: required i64 fromMs,
  2: required i64 toMs,
  /** Rows that were asked for, and rows that scans returned. */
  3: required THotRows reads,
  /** Row mutations. */
  4: required THotRows writes
}

/** Kinds of background work that can be paused. */
enum TBackgroundWork {
  FLUSHES = 1,
  COMPACTIONS = 2
}

/** Kind of a background job. */
enum TJobKind {
  FLUSH = 1,
  MINOR_COMPACTION = 2,
  MAJOR_COMPACTION = 3
}

/** A flush or compaction that runs. */
struct TRunningJob {
  1: required TJobKind kind,
  2: required binary tableName,
  /** 32 hex digits. Unset when the region is gone. */
  3: optional string encodedName,
  /** Of a compaction; a flush is of all families. */
  4: optional string family,
  /** Of the memstores or store files that it reads. */
  5: required i64 inputBytes,
  /** How much of that is still to be read. */
  6: required i64 leftBytes,
  7: required i64 tookMs
}

/** Background work. */
struct TBackgroundState {
  /** The longest first. */
  1: required list<TRunningJob> running,
  /** Waiting or running, as the next two. */
  2: required i32 flushes,
  3: required i32 compactions,
  4: required i32 splits,
  5: required bool flushesPaused,
  6: required bool compactionsPaused
}

/** Unit of a quota. Names and values are HBase's (ThrottleType). */
enum TThrottleType {
  REQUEST_NUMBER = 1,
  REQUEST_SIZE = 2,
  WRITE_NUMBER = 3,
  WRITE_SIZE = 4,
  READ_NUMBER = 5,
  READ_SIZE = 6
}

/** Time unit of a quota. Names and values are HBase's (TimeUnit). */
enum TTimeUnit {
  SECONDS = 4,
  MINUTES = 5,
  HOURS = 6,
  DAYS = 7
}

/** Scope of a quota. Names and values are HBase's (QuotaScope). One server is both. */
enum TQuotaScope {
  CLUSTER = 1,
  MACHINE = 2
}

/** A quota: of a table, of a namespace, of a user, or of a user in a table or namespace. */
struct TThrottle {
  1: optional string userName,
  2: optional binary tableName,
  3: optional string nsName,
  4: optional TThrottleType type,
  /** Requests, or bytes. */
  5: optional i64 softLimit,
  6: optional TTimeUnit timeUnit,
  7: optional TQuotaScope scope
}

/** A snapshot of a table. */
struct TSnapshot {
  1: required string name,
  /** The full name, without default:. */
  2: required binary tableName,
  /** Milliseconds since 1970. */
  3: required i64 createdMs,
  /** Seconds until it is removed. 0: never. */
  4: required i64 ttlSeconds,
  5: required i32 regions,
  6: required i32 files,
  /** Size of the files. The table, its clones and other snapshots may have the same ones: they take disk space once. */
  7: required i64 bytes
}

/** A fault for the next calls of a data method. docs/test-servers.md has the methods and faults. */
struct TFault {
  /** A native method's name for all protocols, a Thrift method's name, or *. */
  1: required string method,
  /** region_too_busy, not_serving_region, delay, drop_connection, drop_reply, split, or move. */
  2: required string fault,
  /** The number of calls that it still applies to. */
  3: required i32 calls,
  /** The full name of the calls' table. Unset: any user table. */
  4: optional binary table,
  /** The length of a delay. */
  5: optional i32 delayMs,
  /** The row at which a split is made. Unset: behind the last row that the scan has reached. */
  6: optional binary splitRow
}

/** An operation failed. Its fields are those in HBase's THBaseService. */
exception TIOError {
  1: optional string message,
  /** False if trying again cannot help. */
  2: optional bool canRetry
}

/** Calls for the operator of a single Basalt server that HBase's Thrift services do not have. */
service BasaltAdmin {
  /** Writes the memstores of a table, or of the region of that name, to store files. Returns when they are durable. */
  void basaltFlush(1: required binary table) throws (1: TIOError io),

  /** Compacts a table, or the region of that name, or one family of it. With wait, returns when done, else when queued. */
  void basaltCompact(
    1: required binary table,
    2: optional binary family,
    3: bool major = false,
    4: bool wait = false) throws (1: TIOError io),

  /** Pauses flushes or compactions, or lets them go on. Returns whether they were paused before. A restart ends a pause. */
  bool basaltPause(1: required TBackgroundWork work, 2: required bool paused) throws (1: TIOError io),

  /** Running and queued background work, and the kinds that are paused. */
  TBackgroundState basaltBackgroundState() throws (1: TIOError io),

  /** Takes the blocks of a table, or of all, out of the block cache. Returns how many. */
  i64 basaltClearBlockCache(1: optional binary table) throws (1: TIOError io),

  /** Splits a region, or every region of a table, at the key or in the middle. */
  void basaltSplit(1: required binary tableOrRegion, 2: optional binary splitKey) throws (1: TIOError io),

  /** Merges adjacent regions of one table into one. Returns its name. */
  binary basaltMerge(1: required list<binary> regionNames) throws (1: TIOError io),

  /** The regions of a table, or of all, in key order. */
  list<TRegionMetrics> basaltRegionMetrics(1: optional binary table) throws (1: TIOError io),

  /** The rows of a table that most requests go to, at most limit of each kind. Needs the right to read the table. */
  THotRowsOfTable basaltHotRows(1: required binary table, 2: i32 limit = 10) throws (1: TIOError io),

  /** The state of the memstores. */
  TMemstoreState basaltMemstoreState() throws (1: TIOError io),

  /** The state of the block cache. */
  TCacheState basaltCacheState() throws (1: TIOError io),

  /** The state of the server. */
  TServerStatus basaltServerStatus() throws (1: TIOError io),

  /** Moves a region to the virtual server of that name, or to the one with the fewest regions. Needs a rehearsal. */
  void basaltMove(1: required binary regionName, 2: optional string serverName) throws (1: TIOError io),

  /** Assigns a region that is not assigned to a virtual server. Needs a rehearsal. */
  void basaltAssign(1: required binary regionName) throws (1: TIOError io),

  /** Takes a region from its virtual server: it takes no data calls until it is assigned. Needs a rehearsal. */
  void basaltUnassign(1: required binary regionName) throws (1: TIOError io),

  /** Evens out the regions over the virtual servers. Returns how many were moved. Needs a rehearsal. */
  i32 basaltBalance() throws (1: TIOError io),

  /** Sets a quota. Without a limit, takes it away; without a type too, takes away all of that owner. Durable when it returns. */
  void basaltSetQuota(1: required TThrottle quota) throws (1: TIOError io),

  /** Quotas whose owner matches the regular expressions, all of them without. A user's quotas in tables and namespaces match by the user
      alone, too. */
  list<TThrottle> basaltListQuotas(1: optional string userName, 2: optional string tableName, 3: optional string nsName)
      throws (1: TIOError io),

  /** Takes a snapshot of a table: of everything acknowledged before, or without flush of the store files only. It is removed after
      ttlSeconds; 0: never. */
  void basaltSnapshot(
    1: required string name,
    2: required binary table,
    3: bool flush = true,
    4: i64 ttlSeconds = 0) throws (1: TIOError io),

  /** Snapshots whose name and table match the regular expressions, all of them without; by name. */
  list<TSnapshot> basaltListSnapshots(1: optional string name, 2: optional string tableName) throws (1: TIOError io),

  /** Removes a snapshot. */
  void basaltDeleteSnapshot(1: required string name) throws (1: TIOError io),

  /** Creates a table, enabled, from a snapshot. */
  void basaltCloneSnapshot(1: required string name, 2: required binary table) throws (1: TIOError io),

  /** Restores a snapshot's table to the snapshot's state. It must be disabled, and stays so; a dropped one is created, enabled. */
  void basaltRestoreSnapshot(1: required string name) throws (1: TIOError io),

  /** Removes all user tables, snapshots, quotas and namespaces that are not reserved, closes scanners, and ends pauses. A clock
      that was moved shows the machine's time again, unless keepClock. Only a server that was started with --ephemeral does
      that. */
  void basaltReset(1: bool keepClock = false) throws (1: TIOError io),

  /** Moves the server's wall clock forward, so that cells expire and age without waiting. Returns the new time, in milliseconds
      since 1970. Only a server that was started with --ephemeral does that. */
  i64 basaltAdvanceClock(1: required i64 ms) throws (1: TIOError io),

  /** Arms faults instead of the present ones; an empty list clears them. Returns the armed faults. Only a server that was started
      with --ephemeral does that. */
  list<TFault> basaltSetFaults(1: required list<TFault> faults) throws (1: TIOError io),

  /** The faults that are armed, each with the calls that are left. Only a server that was started with --ephemeral has any. */
  list<TFault> basaltFaults() throws (1: TIOError io)
}
