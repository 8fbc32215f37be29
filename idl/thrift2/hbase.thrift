// HBase's Thrift 2 interface: names, numbers and types are those of Apache HBase, the comments describe what
// servers really do.

namespace java org.apache.hadoop.hbase.thrift2.generated
namespace cpp apache.hadoop.hbase.thrift2
namespace rb Apache.Hadoop.Hbase.Thrift2
namespace py hbase
namespace perl Hbase

/** What a TDelete deletes of each column it names. */
enum TDeleteType {
  DELETE_COLUMN = 0,
  DELETE_COLUMNS = 1,
  DELETE_FAMILY = 2,
  DELETE_FAMILY_VERSION = 3
}

/** When a write is acknowledged. */
enum TDurability {
  USE_DEFAULT = 0,
  SKIP_WAL = 1,
  ASYNC_WAL = 2,
  SYNC_WAL = 3,
  FSYNC_WAL = 4
}

/** From which replica a read may be answered. */
enum TConsistency {
  STRONG = 1,
  TIMELINE = 2
}

/** How a scan should read its files: a hint. */
enum TReadType {
  DEFAULT = 1,
  STREAM = 2,
  PREAD = 3
}

/** How checkAndMutate compares. HBase 2 calls it TCompareOp, with the same values. */
enum TCompareOperator {
  LESS = 0,
  LESS_OR_EQUAL = 1,
  EQUAL = 2,
  NOT_EQUAL = 3,
  GREATER_OR_EQUAL = 4,
  GREATER = 5,
  NO_OP = 6
}

/** What the bloom filters of a family contain. */
enum TBloomFilterType {
  NONE = 0,
  ROW = 1,
  ROWCOL = 2,
  ROWPREFIX_FIXED_LENGTH = 3
}

/** How blocks of a family are compressed. */
enum TCompressionAlgorithm {
  LZO = 0,
  GZ = 1,
  NONE = 2,
  SNAPPY = 3,
  LZ4 = 4,
  BZIP2 = 5,
  ZSTD = 6
}

/** How cells are laid out in blocks of a family. */
enum TDataBlockEncoding {
  NONE = 0,
  PREFIX = 2,
  DIFF = 3,
  FAST_DIFF = 4,
  ROW_INDEX_V1 = 7
}

/** Whether deleted cells stay readable in the past. */
enum TKeepDeletedCells {
  FALSE = 0,
  TRUE = 1,
  TTL = 2
}

/** Which of the slow logs. */
enum TLogType {
  SLOW_LOG = 1,
  LARGE_LOG = 2
}

/** How the conditions of a TLogQueryFilter combine. */
enum TFilterByOperator {
  AND = 0,
  OR = 1
}

/** Which of the two HBase services a server speaks. */
enum TThriftServerType {
  ONE = 1,
  TWO = 2
}

/** What a permission is granted on. */
enum TPermissionScope {
  TABLE = 0,
  NAMESPACE = 1
}

/** Timestamps in milliseconds: minStamp inclusive, maxStamp exclusive. */
struct TTimeRange {
  1: required i64 minStamp,
  2: required i64 maxStamp
}

/** A column, or a family if there is no qualifier. An empty qualifier is a column. */
struct TColumn {
  1: required binary family,
  2: optional binary qualifier,
  /** Used in deletes only. */
  3: optional i64 timestamp
}

/** A cell. */
struct TColumnValue {
  1: required binary family,
  2: required binary qualifier,
  3: required binary value,
  4: optional i64 timestamp,
  /** Ignored in puts. */
  5: optional binary tags,
  /**
   * Cell type: 4 put, 8 delete, 10 delete family version, 12 delete column, 14 delete family. Always set
   * in results, ignored in puts.
   */
  6: optional byte type
}

/** An increment of one column. */
struct TColumnIncrement {
  1: required binary family,
  2: required binary qualifier,
  3: optional i64 amount = 1
}

/** A row. If it was not found, row is absent and columnValues empty. */
struct TResult {
  1: optional binary row,
  2: required list<TColumnValue> columnValues,
  3: optional bool stale = false,
  /** The row continues in the next result. */
  4: optional bool partial = false
}

/** Visibility labels a read asks for. */
struct TAuthorization {
  1: optional list<string> labels
}

/** A visibility expression. */
struct TCellVisibility {
  1: optional string expression
}

/** What to read of one row. */
struct TGet {
  1: required binary row,
  /** Absent or empty means all. */
  2: optional list<TColumn> columns,
  /** Exactly this timestamp; timeRange is then ignored. */
  3: optional i64 timestamp,
  4: optional TTimeRange timeRange,
  /** Absent means 1. */
  5: optional i32 maxVersions,
  6: optional binary filterString,
  7: optional map<binary,binary> attributes,
  8: optional TAuthorization authorizations,
  9: optional TConsistency consistency,
  10: optional i32 targetReplicaId,
  11: optional bool cacheBlocks,
  /** Most cells of each family; -1 is no limit. */
  12: optional i32 storeLimit,
  /** Cells of each family to pass over first. */
  13: optional i32 storeOffset,
  14: optional bool existence_only,
  /** Wins over filterString. */
  15: optional binary filterBytes
}

/** Cells to write to one row. */
struct TPut {
  1: required binary row,
  2: required list<TColumnValue> columnValues,
  /** For cells without their own; absent means now. */
  3: optional i64 timestamp,
  5: optional map<binary,binary> attributes,
  6: optional TDurability durability,
  7: optional TCellVisibility cellVisibility
}

/** What to delete of one row. Without columns the whole row. */
struct TDelete {
  1: required binary row,
  2: optional list<TColumn> columns,
  /** Ignored when columns are set. */
  3: optional i64 timestamp,
  4: optional TDeleteType deleteType = TDeleteType.DELETE_COLUMNS,
  6: optional map<binary,binary> attributes,
  7: optional TDurability durability,
  8: optional TCellVisibility cellVisibility
}

/** Increments of columns of one row. */
struct TIncrement {
  1: required binary row,
  2: required list<TColumnIncrement> columns,
  4: optional map<binary,binary> attributes,
  5: optional TDurability durability,
  6: optional TCellVisibility cellVisibility,
  /** Absent means true. */
  7: optional bool returnResults
}

/** Appends to columns of one row. */
struct TAppend {
  1: required binary row,
  2: required list<TColumnValue> columns,
  3: optional map<binary,binary> attributes,
  4: optional TDurability durability,
  5: optional TCellVisibility cellVisibility,
  /** Absent means true. */
  6: optional bool returnResults
}

/** What a scanner reads. */
struct TScan {
  1: optional binary startRow,
  2: optional binary stopRow,
  3: optional list<TColumn> columns,
  4: optional i32 caching,
  5: optional i32 maxVersions = 1,
  6: optional TTimeRange timeRange,
  7: optional binary filterString,
  /** Most cells in one result; zero and below is no limit. */
  8: optional i32 batchSize,
  9: optional map<binary,binary> attributes,
  10: optional TAuthorization authorizations,
  /** startRow is then the high end. */
  11: optional bool reversed,
  12: optional bool cacheBlocks,
  /** Replaces timeRange for these families. */
  13: optional map<binary,TTimeRange> colFamTimeRangeMap,
  14: optional TReadType readType,
  /** Most rows of the whole scan; zero and below is no limit. */
  15: optional i32 limit,
  16: optional TConsistency consistency,
  17: optional i32 targetReplicaId,
  /** Wins over filterString. */
  18: optional binary filterBytes
}

/** A put or a delete. */
union TMutation {
  1: TPut put,
  2: TDelete deleteSingle
}

/** Puts and deletes of one row, applied as one. */
struct TRowMutations {
  1: required binary row,
  2: required list<TMutation> mutations
}

/** A region. */
struct THRegionInfo {
  /** 0 from HBase's gateway. */
  1: required i64 regionId,
  2: required binary tableName,
  3: optional binary startKey,
  4: optional binary endKey,
  5: optional bool offline,
  6: optional bool split,
  7: optional i32 replicaId
}

/** A server. */
struct TServerName {
  1: required string hostName,
  2: optional i32 port,
  /** Start time of the server in milliseconds. */
  3: optional i64 startCode
}

/** A region and the server it is on. */
struct THRegionLocation {
  1: required TServerName serverName,
  2: required THRegionInfo regionInfo
}

/** A table name. */
struct TTableName {
  /** Absent or empty means default. Always set in results. */
  1: optional binary ns,
  2: required binary qualifier
}

/** A column family. Applied in the order attributes, configuration, then the typed fields that are set. */
struct TColumnFamilyDescriptor {
  1: required binary name,
  2: optional map<binary,binary> attributes,
  3: optional map<string,string> configuration,
  4: optional i32 blockSize,
  /** The spelling is part of the interface. */
  5: optional TBloomFilterType bloomnFilterType,
  6: optional TCompressionAlgorithm compressionType,
  7: optional i16 dfsReplication,
  8: optional TDataBlockEncoding dataBlockEncoding,
  9: optional TKeepDeletedCells keepDeletedCells,
  10: optional i32 maxVersions,
  11: optional i32 minVersions,
  12: optional i32 scope,
  /** Seconds. */
  13: optional i32 timeToLive,
  14: optional bool blockCacheEnabled,
  15: optional bool cacheBloomsOnWrite,
  16: optional bool cacheDataOnWrite,
  17: optional bool cacheIndexesOnWrite,
  18: optional bool compressTags,
  19: optional bool evictBlocksOnClose,
  20: optional bool inMemory
}

/** A table. */
struct TTableDescriptor {
  1: required TTableName tableName,
  2: optional list<TColumnFamilyDescriptor> columns,
  3: optional map<binary,binary> attributes,
  4: optional TDurability durability
}

/** A namespace. */
struct TNamespaceDescriptor {
  1: required string name,
  2: optional map<string,string> configuration
}

/** Which records of a slow log to return. */
struct TLogQueryFilter {
  1: optional string regionName,
  2: optional string clientAddress,
  3: optional string tableName,
  4: optional string userName,
  5: optional i32 limit = 10,
  6: optional TLogType logType = TLogType.SLOW_LOG,
  7: optional TFilterByOperator filterByOperator = TFilterByOperator.OR
}

/** A slow or large request. */
struct TOnlineLogRecord {
  1: required i64 startTime,
  2: required i32 processingTime,
  3: required i32 queueTime,
  4: required i64 responseSize,
  5: required string clientAddress,
  6: required string serverClass,
  7: required string methodName,
  8: required string callDetails,
  9: required string param,
  10: required string userName,
  11: required i32 multiGetsCount,
  12: required i32 multiMutationsCount,
  13: required i32 multiServiceCalls,
  14: optional string regionName,
  15: optional i64 blockBytesScanned,
  16: optional i64 fsReadTime
}

/** A permission of one user. */
struct TAccessControlEntity {
  1: required string username,
  2: required TPermissionScope scope,
  /** Letters: R, W, X, C, A. */
  4: required string actions,
  5: optional string tableName,
  6: optional string nsName
}

/** An operation failed. The message is without the Java class of HBase's exception. */
exception TIOError {
  1: optional string message,
  /** False if trying again cannot help. */
  2: optional bool canRetry
}

/** A scanner id is not known. */
exception TIllegalArgument {
  1: optional string message
}

/** HBase's second Thrift service: the data model of the Java client. */
service THBaseService {
  /** Whether the get would find anything. */
  bool exists(1: required binary table, 2: required TGet tget) throws (1: TIOError io),

  /** Whether each get would find anything, in order. */
  list<bool> existsAll(1: required binary table, 2: required list<TGet> tgets) throws (1: TIOError io),

  /** A row. */
  TResult get(1: required binary table, 2: required TGet tget) throws (1: TIOError io),

  /** Rows in order; an empty TResult for one that is absent. */
  list<TResult> getMultiple(1: required binary table, 2: required list<TGet> tgets) throws (1: TIOError io),

  /** Writes cells of one row, atomically. */
  void put(1: required binary table, 2: required TPut tput) throws (1: TIOError io),

  /** Puts if the column has the value, or is absent when no value is given. */
  bool checkAndPut(
    1: required binary table,
    2: required binary row,
    3: required binary family,
    4: required binary qualifier,
    5: binary value,
    6: required TPut tput) throws (1: TIOError io),

  /** Puts in order. Not atomic over rows. */
  void putMultiple(1: required binary table, 2: required list<TPut> tputs) throws (1: TIOError io),

  /** Deletes from one row, atomically. */
  void deleteSingle(1: required binary table, 2: required TDelete tdelete) throws (1: TIOError io),

  /** Deletes in order. Not atomic over rows. Always returns an empty list. */
  list<TDelete> deleteMultiple(1: required binary table, 2: required list<TDelete> tdeletes) throws (1: TIOError io),

  /** Deletes if the column has the value, or is absent when no value is given. */
  bool checkAndDelete(
    1: required binary table,
    2: required binary row,
    3: required binary family,
    4: required binary qualifier,
    5: binary value,
    6: required TDelete tdelete) throws (1: TIOError io),

  /** Adds to columns of a row and returns the sums. */
  TResult increment(1: required binary table, 2: required TIncrement tincrement) throws (1: TIOError io),

  /** Appends to columns of a row and returns the new values. */
  TResult append(1: required binary table, 2: required TAppend tappend) throws (1: TIOError io),

  /** Opens a scanner. A missing table shows at the first fetch. */
  i32 openScanner(1: required binary table, 2: required TScan tscan) throws (1: TIOError io),

  /** The next results; empty at the end. */
  list<TResult> getScannerRows(1: required i32 scannerId, 2: i32 numRows = 1) throws (1: TIOError io, 2: TIllegalArgument ia),

  /** Closes a scanner. An unknown id is no error. */
  void closeScanner(1: required i32 scannerId) throws (1: TIOError io, 2: TIllegalArgument ia),

  /** Applies puts and deletes to one row, atomically. */
  void mutateRow(1: required binary table, 2: required TRowMutations trowMutations) throws (1: TIOError io),

  /** Opens a scanner, takes its first results and closes it. */
  list<TResult> getScannerResults(1: required binary table, 2: required TScan tscan, 3: i32 numRows = 1) throws (1: TIOError io),

  /** The region that holds a row. */
  THRegionLocation getRegionLocation(1: required binary table, 2: required binary row, 3: bool reload) throws (1: TIOError io),

  /** The regions of a table in key order. */
  list<THRegionLocation> getAllRegionLocations(1: required binary table) throws (1: TIOError io),

  /** Applies the mutations if the column compares as asked. */
  bool checkAndMutate(
    1: required binary table,
    2: required binary row,
    3: required binary family,
    4: required binary qualifier,
    5: required TCompareOperator compareOperator,
    6: binary value,
    7: required TRowMutations rowMutations) throws (1: TIOError io),

  /** The descriptor of a table. */
  TTableDescriptor getTableDescriptor(1: required TTableName table) throws (1: TIOError io),

  /** The descriptors of the tables that exist. */
  list<TTableDescriptor> getTableDescriptors(1: required list<TTableName> tables) throws (1: TIOError io),

  /** Whether the table exists. */
  bool tableExists(1: TTableName tableName) throws (1: TIOError io),

  /** The tables whose whole name matches a Java regular expression. */
  list<TTableDescriptor> getTableDescriptorsByPattern(
    1: optional string regex,
    2: required bool includeSysTables) throws (1: TIOError io),

  /** The tables of a namespace. */
  list<TTableDescriptor> getTableDescriptorsByNamespace(1: required string name) throws (1: TIOError io),

  /** The names of tables whose whole name matches a Java regular expression. */
  list<TTableName> getTableNamesByPattern(1: optional string regex, 2: required bool includeSysTables) throws (1: TIOError io),

  /** The names of the tables of a namespace. */
  list<TTableName> getTableNamesByNamespace(1: required string name) throws (1: TIOError io),

  /** Creates a table, with one region more than split keys. */
  void createTable(1: required TTableDescriptor desc, 2: optional list<binary> splitKeys) throws (1: TIOError io),

  /** Deletes a disabled table. */
  void deleteTable(1: required TTableName tableName) throws (1: TIOError io),

  /** Empties a disabled table and enables it. */
  void truncateTable(1: required TTableName tableName, 2: required bool preserveSplits) throws (1: TIOError io),

  /** Brings a disabled table back. */
  void enableTable(1: required TTableName tableName) throws (1: TIOError io),

  /** Takes a table out of service. */
  void disableTable(1: required TTableName tableName) throws (1: TIOError io),

  /** Whether the table serves. */
  bool isTableEnabled(1: required TTableName tableName) throws (1: TIOError io),

  /** Whether the table is out of service. */
  bool isTableDisabled(1: required TTableName tableName) throws (1: TIOError io),

  /** Whether all regions serve; false if the table does not exist. */
  bool isTableAvailable(1: required TTableName tableName) throws (1: TIOError io),

  /** Adds a family. */
  void addColumnFamily(1: required TTableName tableName, 2: required TColumnFamilyDescriptor column) throws (1: TIOError io),

  /** Deletes a family and its data. */
  void deleteColumnFamily(1: required TTableName tableName, 2: required binary column) throws (1: TIOError io),

  /** Replaces the descriptor of a family. */
  void modifyColumnFamily(1: required TTableName tableName, 2: required TColumnFamilyDescriptor column) throws (1: TIOError io),

  /** Replaces the descriptor of a table. Families left out are deleted. */
  void modifyTable(1: required TTableDescriptor desc) throws (1: TIOError io),

  /** Creates a namespace. */
  void createNamespace(1: required TNamespaceDescriptor namespaceDesc) throws (1: TIOError io),

  /** Replaces the configuration of a namespace. */
  void modifyNamespace(1: required TNamespaceDescriptor namespaceDesc) throws (1: TIOError io),

  /** Deletes an empty namespace. */
  void deleteNamespace(1: required string name) throws (1: TIOError io),

  /** The descriptor of a namespace. */
  TNamespaceDescriptor getNamespaceDescriptor(1: required string name) throws (1: TIOError io),

  /** All namespaces, default and hbase included. */
  list<TNamespaceDescriptor> listNamespaceDescriptors() throws (1: TIOError io),

  /** The names of all namespaces, default and hbase included. */
  list<string> listNamespaces() throws (1: TIOError io),

  /** TWO here, ONE in the other service. */
  TThriftServerType getThriftServerType(),

  /** The id of the cluster. */
  string getClusterId(),

  /** Records of a slow log. */
  list<TOnlineLogRecord> getSlowLogResponses(
    1: set<TServerName> serverNames,
    2: TLogQueryFilter logQueryFilter) throws (1: TIOError io),

  /** Empties the slow logs; one answer for each server. */
  list<bool> clearSlowLogResponses(1: set<TServerName> serverNames) throws (1: TIOError io),

  /** Grants a permission. */
  bool grant(1: required TAccessControlEntity info) throws (1: TIOError io),

  /** Takes a permission back. */
  bool revoke(1: required TAccessControlEntity info) throws (1: TIOError io)
}
