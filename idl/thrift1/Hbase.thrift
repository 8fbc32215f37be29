// HBase's Thrift 1 interface: names, numbers and types are those of Apache HBase, the comments describe what
// servers really do.

namespace java org.apache.hadoop.hbase.thrift.generated
namespace cpp apache.hadoop.hbase.thrift
namespace rb Apache.Hadoop.Hbase.Thrift
namespace py hbase
namespace perl Hbase
namespace php Hbase

typedef binary Text
typedef binary Bytes
typedef i32 ScannerID

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

/** One version of a cell. */
struct TCell {
  1: Bytes value,
  /** Milliseconds. */
  2: i64 timestamp
}

/**
 * A column family. Tables made with the defaults here keep three versions, without bloom filter and block
 * cache.
 */
struct ColumnDescriptor {
  /** With or without a trailing colon on input; with the colon on output. */
  1: Text name,
  2: i32 maxVersions = 3,
  /** NONE, GZ, LZO, SNAPPY, LZ4, BZIP2 or ZSTD, in any case. */
  3: string compression = "NONE",
  4: bool inMemory = false,
  /** NONE, ROW or ROWCOL. */
  5: string bloomFilterType = "NONE",
  /** Ignored, reported as 0. */
  6: i32 bloomFilterVectorSize = 0,
  /** Ignored, reported as 0. */
  7: i32 bloomFilterNbHashes = 0,
  8: bool blockCacheEnabled = false,
  /** Seconds; zero, negative and 2147483647 all mean forever. */
  9: i32 timeToLive = 2147483647
}

/** A region and the server it is on. */
struct TRegionInfo {
  /** Empty at the start of the table. */
  1: Text startKey,
  /** Empty at the end of the table. */
  2: Text endKey,
  /** Creation time of the region in milliseconds. */
  3: i64 id,
  4: Text name,
  /** Always 1. */
  5: byte version,
  6: Text serverName,
  7: i32 port
}

/** A put or a delete of one column. */
struct Mutation {
  1: bool isDelete = false,
  /** family:qualifier. A delete without colon deletes the family, a put without colon is skipped. */
  2: Text column,
  /** Absent means empty. */
  3: Text value,
  /** The last put and the last delete of a call decide for all of their kind. */
  4: bool writeToWAL = true
}

/** The mutations of one row. */
struct BatchMutation {
  1: Text row,
  2: list<Mutation> mutations
}

/** An increment of one column. */
struct TIncrement {
  1: Text table,
  2: Text row,
  3: Text column,
  /** The spelling is part of the interface. */
  4: i64 ammount
}

/** A cell with its column name. */
struct TColumn {
  1: Text columnName,
  2: TCell cell
}

/** A row. Either columns or sortedColumns is set. */
struct TRowResult {
  1: Text row,
  /** One cell for each column, by family:qualifier. */
  2: optional map<Text,TCell> columns,
  /** In cell order; only from scanners opened with sortColumns. */
  3: optional list<TColumn> sortedColumns
}

/** What a scanner reads. One version of each column. */
struct TScan {
  1: optional Text startRow,
  2: optional Text stopRow,
  /** Only cells strictly older than this. */
  3: optional i64 timestamp,
  4: optional list<Text> columns,
  /** Rows fetched ahead: a hint. */
  5: optional i32 caching,
  6: optional Text filterString,
  /** Most cells in one result; longer rows come in several. */
  7: optional i32 batchSize,
  8: optional bool sortColumns,
  /** startRow is then the high end. */
  9: optional bool reversed,
  /** A hint. */
  10: optional bool cacheBlocks
}

/** An append to columns of one row. */
struct TAppend {
  1: Text table,
  2: Text row,
  3: list<Text> columns,
  /** As many as columns. */
  4: list<Text> values
}

/** A permission of one user. */
struct TAccessControlEntity {
  1: required string username,
  2: required TPermissionScope scope,
  /** Letters: R, W, X, C, A. */
  4: required string actions,
  5: optional Bytes tableName,
  6: optional string nsName
}

/** An operation failed. The message begins with the Java class of HBase's exception. */
exception IOError {
  1: string message,
  /** False if trying again cannot help. */
  2: bool canRetry
}

/** An argument is wrong, or a scanner id is not known. */
exception IllegalArgument {
  1: string message
}

/** The table exists. */
exception AlreadyExists {
  1: string message
}

/** HBase's first Thrift service. Columns are named family:qualifier, split at the first colon. */
service Hbase {
  /** Brings a disabled table back. Returns when it serves. */
  void enableTable(1: Bytes tableName) throws (1: IOError io),

  /** Takes a table out of service. Returns when it is. */
  void disableTable(1: Bytes tableName) throws (1: IOError io),

  /** Whether the table serves. */
  bool isTableEnabled(1: Bytes tableName) throws (1: IOError io),

  /** Asks for a compaction of a region or a table; does not wait. */
  void compact(1: Bytes tableNameOrRegionName) throws (1: IOError io),

  /** Asks for a major compaction of a region or a table; does not wait. HBase's gateway runs a minor one. */
  void majorCompact(1: Bytes tableNameOrRegionName) throws (1: IOError io),

  /** The user tables of all namespaces. */
  list<Text> getTableNames() throws (1: IOError io),

  /** The user tables of all namespaces, and whether they serve. */
  map<Text,bool> getTableNamesWithIsTableEnabled() throws (1: IOError io),

  /** The families of a table by name, with a trailing colon. */
  map<Text,ColumnDescriptor> getColumnDescriptors(1: Text tableName) throws (1: IOError io),

  /** The regions in key order; empty for a table that does not exist. */
  list<TRegionInfo> getTableRegions(1: Text tableName) throws (1: IOError io),

  /** Creates a table of one region. */
  void createTable(1: Text tableName, 2: list<ColumnDescriptor> columnFamilies) throws (1: IOError io, 2: IllegalArgument ia, 3: AlreadyExists exist),

  /** Deletes a disabled table. */
  void deleteTable(1: Text tableName) throws (1: IOError io),

  /**
   * The newest version of a column; of all columns of a family if there is no colon. Empty if there is
   * none.
   */
  list<TCell> get(1: Text tableName, 2: Text row, 3: Text column, 4: map<Text,Text> attributes) throws (1: IOError io),

  /** The newest versions of a column, newest first. */
  list<TCell> getVer(
    1: Text tableName,
    2: Text row,
    3: Text column,
    4: i32 numVersions,
    5: map<Text,Text> attributes) throws (1: IOError io),

  /** The newest versions strictly older than the timestamp. */
  list<TCell> getVerTs(
    1: Text tableName,
    2: Text row,
    3: Text column,
    4: i64 timestamp,
    5: i32 numVersions,
    6: map<Text,Text> attributes) throws (1: IOError io),

  /** A row: a list of one, or empty. */
  list<TRowResult> getRow(1: Text tableName, 2: Text row, 3: map<Text,Text> attributes) throws (1: IOError io),

  /** Columns of a row; no columns, or an empty list, means all. */
  list<TRowResult> getRowWithColumns(
    1: Text tableName,
    2: Text row,
    3: list<Text> columns,
    4: map<Text,Text> attributes) throws (1: IOError io),

  /** A row as it was before the timestamp. */
  list<TRowResult> getRowTs(
    1: Text tableName,
    2: Text row,
    3: i64 timestamp,
    4: map<Text,Text> attributes) throws (1: IOError io),

  /** Columns of a row as they were before the timestamp. */
  list<TRowResult> getRowWithColumnsTs(
    1: Text tableName,
    2: Text row,
    3: list<Text> columns,
    4: i64 timestamp,
    5: map<Text,Text> attributes) throws (1: IOError io),

  /** Rows in the order asked for, without those that are absent. */
  list<TRowResult> getRows(1: Text tableName, 2: list<Text> rows, 3: map<Text,Text> attributes) throws (1: IOError io),

  /** Columns of rows. */
  list<TRowResult> getRowsWithColumns(
    1: Text tableName,
    2: list<Text> rows,
    3: list<Text> columns,
    4: map<Text,Text> attributes) throws (1: IOError io),

  /** Rows as they were before the timestamp. */
  list<TRowResult> getRowsTs(
    1: Text tableName,
    2: list<Text> rows,
    3: i64 timestamp,
    4: map<Text,Text> attributes) throws (1: IOError io),

  /** Columns of rows as they were before the timestamp. */
  list<TRowResult> getRowsWithColumnsTs(
    1: Text tableName,
    2: list<Text> rows,
    3: list<Text> columns,
    4: i64 timestamp,
    5: map<Text,Text> attributes) throws (1: IOError io),

  /** Deletes, then puts, each atomic on the row but not the two together. */
  void mutateRow(
    1: Text tableName,
    2: Text row,
    3: list<Mutation> mutations,
    4: map<Text,Text> attributes) throws (1: IOError io, 2: IllegalArgument ia),

  /** As mutateRow, with a timestamp for all cells. */
  void mutateRowTs(
    1: Text tableName,
    2: Text row,
    3: list<Mutation> mutations,
    4: i64 timestamp,
    5: map<Text,Text> attributes) throws (1: IOError io, 2: IllegalArgument ia),

  /** All puts, then all deletes, as two batches. Not atomic over rows. */
  void mutateRows(1: Text tableName, 2: list<BatchMutation> rowBatches, 3: map<Text,Text> attributes) throws (1: IOError io, 2: IllegalArgument ia),

  /** As mutateRows, with a timestamp for all cells. */
  void mutateRowsTs(
    1: Text tableName,
    2: list<BatchMutation> rowBatches,
    3: i64 timestamp,
    4: map<Text,Text> attributes) throws (1: IOError io, 2: IllegalArgument ia),

  /** Adds to a column and returns the sum. */
  i64 atomicIncrement(1: Text tableName, 2: Text row, 3: Text column, 4: i64 value) throws (1: IOError io, 2: IllegalArgument ia),

  /** Deletes all versions of a column, or of a family if there is no colon. */
  void deleteAll(1: Text tableName, 2: Text row, 3: Text column, 4: map<Text,Text> attributes) throws (1: IOError io),

  /** Deletes all versions up to and including the timestamp. */
  void deleteAllTs(
    1: Text tableName,
    2: Text row,
    3: Text column,
    4: i64 timestamp,
    5: map<Text,Text> attributes) throws (1: IOError io),

  /** Deletes a row. */
  void deleteAllRow(1: Text tableName, 2: Text row, 3: map<Text,Text> attributes) throws (1: IOError io),

  /** Adds to a column. */
  void increment(1: TIncrement increment) throws (1: IOError io),

  /** Increments in order; stops at the first that fails. */
  void incrementRows(1: list<TIncrement> increments) throws (1: IOError io),

  /** Deletes the cells of a row up to and including the timestamp. */
  void deleteAllRowTs(1: Text tableName, 2: Text row, 3: i64 timestamp, 4: map<Text,Text> attributes) throws (1: IOError io),

  /** Opens a scanner. A missing table shows at the first fetch. */
  ScannerID scannerOpenWithScan(1: Text tableName, 2: TScan scan, 3: map<Text,Text> attributes) throws (1: IOError io),

  /** Opens a scanner from a row to the end. */
  ScannerID scannerOpen(
    1: Text tableName,
    2: Text startRow,
    3: list<Text> columns,
    4: map<Text,Text> attributes) throws (1: IOError io),

  /** Opens a scanner from a row, inclusive, to another, exclusive. */
  ScannerID scannerOpenWithStop(
    1: Text tableName,
    2: Text startRow,
    3: Text stopRow,
    4: list<Text> columns,
    5: map<Text,Text> attributes) throws (1: IOError io),

  /** Opens a scanner over the rows with a prefix. */
  ScannerID scannerOpenWithPrefix(
    1: Text tableName,
    2: Text startAndPrefix,
    3: list<Text> columns,
    4: map<Text,Text> attributes) throws (1: IOError io),

  /** Opens a scanner over cells strictly older than the timestamp. */
  ScannerID scannerOpenTs(
    1: Text tableName,
    2: Text startRow,
    3: list<Text> columns,
    4: i64 timestamp,
    5: map<Text,Text> attributes) throws (1: IOError io),

  /** Opens a scanner over a range of rows and cells strictly older than the timestamp. */
  ScannerID scannerOpenWithStopTs(
    1: Text tableName,
    2: Text startRow,
    3: Text stopRow,
    4: list<Text> columns,
    5: i64 timestamp,
    6: map<Text,Text> attributes) throws (1: IOError io),

  /** The next row: a list of one, or empty at the end. */
  list<TRowResult> scannerGet(1: ScannerID id) throws (1: IOError io, 2: IllegalArgument ia),

  /** The next rows; empty at the end. */
  list<TRowResult> scannerGetList(1: ScannerID id, 2: i32 nbRows) throws (1: IOError io, 2: IllegalArgument ia),

  /** Closes a scanner. An unknown id is an IllegalArgument. */
  void scannerClose(1: ScannerID id) throws (1: IOError io, 2: IllegalArgument ia),

  /** The region whose key in hbase:meta is the last one up to this. */
  TRegionInfo getRegionInfo(1: Text row) throws (1: IOError io),

  /** Appends and returns the new values in column order. */
  list<TCell> append(1: TAppend append) throws (1: IOError io),

  /** Puts if the column has the value, or is absent when no value is given. There is no argument 4. */
  bool checkAndPut(
    1: Text tableName,
    2: Text row,
    3: Text column,
    5: Text value,
    6: Mutation mput,
    7: map<Text,Text> attributes) throws (1: IOError io, 2: IllegalArgument ia),

  /** ONE here, TWO in the other service. */
  TThriftServerType getThriftServerType(),

  /** The id of the cluster. */
  string getClusterId(),

  /** Grants a permission. */
  bool grant(1: required TAccessControlEntity info) throws (1: IOError io),

  /** Takes a permission back. */
  bool revoke(1: required TAccessControlEntity info) throws (1: IOError io)
}
