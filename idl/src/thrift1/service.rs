//! The methods of HBase's Thrift 1 service.

#[allow(
    clippy::wildcard_imports,
    reason = "the names of Thrift's types and the structs declared next door"
)]
use super::*;
#[allow(
    unused_imports,
    clippy::wildcard_imports,
    reason = "the names of Thrift's types"
)]
use crate::schema::names::*;

thrift_service! {
    /// HBase's first Thrift service.
    pub service Hbase {
        /// Brings a disabled table back. Returns when it serves.
        void enableTable as EnableTable(1: Bytes tableName as table_name)
            throws (1: IOError io) [class = admin];

        /// Takes a table out of service. Returns when it is.
        void disableTable as DisableTable(1: Bytes tableName as table_name)
            throws (1: IOError io) [class = admin];

        /// Whether the table serves.
        bool isTableEnabled as IsTableEnabled(1: Bytes tableName as table_name)
            throws (1: IOError io) [class = read, idempotent];

        /// Requests a compaction of a region or a table; does not wait.
        void compact as Compact(
            1: Bytes tableNameOrRegionName as table_name_or_region_name
        ) throws (1: IOError io) [class = admin];

        /// Requests a major compaction of a region or a table; does not wait. HBase's gateway runs
        /// a minor one.
        void majorCompact as MajorCompact(
            1: Bytes tableNameOrRegionName as table_name_or_region_name
        ) throws (1: IOError io) [class = admin];

        /// The user tables of all namespaces.
        list<Text> getTableNames as GetTableNames() throws (1: IOError io) [class = read, idempotent];

        /// The user tables of all namespaces, and whether they serve.
        map<Text, bool> getTableNamesWithIsTableEnabled as GetTableNamesWithIsTableEnabled()
            throws (1: IOError io) [class = read, idempotent];

        /// The families of a table by name, with a trailing colon.
        map<Text, ColumnDescriptor> getColumnDescriptors as GetColumnDescriptors(
            1: Text tableName as table_name
        ) throws (1: IOError io) [class = read, idempotent];

        /// The regions in key order; empty for a table that does not exist.
        list<TRegionInfo> getTableRegions as GetTableRegions(
            1: Text tableName as table_name
        ) throws (1: IOError io) [class = read, idempotent];

        /// Creates a table of one region.
        void createTable as CreateTable(
            1: Text tableName as table_name, 2: list<ColumnDescriptor> columnFamilies as column_families
        ) throws (1: IOError io, 2: IllegalArgument ia, 3: AlreadyExists exist) [class = admin];

        /// Deletes a disabled table.
        void deleteTable as DeleteTable(1: Text tableName as table_name)
            throws (1: IOError io) [class = admin];

        /// The newest version of a column; of all columns of a family if there is no colon. Empty if there
        /// is none.
        list<TCell> get as Get(
            1: Text tableName as table_name, 2: Text row, 3: Text column, 4: map<Text, Text> attributes
        ) throws (1: IOError io) [class = read, idempotent];

        /// The newest versions of a column, newest first.
        list<TCell> getVer as GetVer(
            1: Text tableName as table_name,
            2: Text row,
            3: Text column,
            4: i32 numVersions as num_versions,
            5: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read, idempotent];

        /// The newest versions strictly older than the timestamp.
        list<TCell> getVerTs as GetVerTs(
            1: Text tableName as table_name,
            2: Text row,
            3: Text column,
            4: i64 timestamp,
            5: i32 numVersions as num_versions,
            6: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read, idempotent];

        /// A row: a list of one, or empty.
        list<TRowResult> getRow as GetRow(
            1: Text tableName as table_name, 2: Text row, 3: map<Text, Text> attributes
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// Columns of a row; no columns, or an empty list, means all.
        list<TRowResult> getRowWithColumns as GetRowWithColumns(
            1: Text tableName as table_name,
            2: Text row,
            3: list<Text> columns,
            4: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// A row as it was before the timestamp.
        list<TRowResult> getRowTs as GetRowTs(
            1: Text tableName as table_name, 2: Text row, 3: i64 timestamp, 4: map<Text, Text> attributes
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// Columns of a row as they were before the timestamp.
        list<TRowResult> getRowWithColumnsTs as GetRowWithColumnsTs(
            1: Text tableName as table_name,
            2: Text row,
            3: list<Text> columns,
            4: i64 timestamp,
            5: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// Rows in the order asked for, without those that are absent.
        list<TRowResult> getRows as GetRows(
            1: Text tableName as table_name, 2: list<Text> rows, 3: map<Text, Text> attributes
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// Columns of rows.
        list<TRowResult> getRowsWithColumns as GetRowsWithColumns(
            1: Text tableName as table_name,
            2: list<Text> rows,
            3: list<Text> columns,
            4: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// Rows as they were before the timestamp.
        list<TRowResult> getRowsTs as GetRowsTs(
            1: Text tableName as table_name,
            2: list<Text> rows,
            3: i64 timestamp,
            4: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// Columns of rows as they were before the timestamp.
        list<TRowResult> getRowsWithColumnsTs as GetRowsWithColumnsTs(
            1: Text tableName as table_name,
            2: list<Text> rows,
            3: list<Text> columns,
            4: i64 timestamp,
            5: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read, idempotent, inline];

        /// Deletes, then puts, each atomic on the row but not the two together.
        void mutateRow as MutateRow(
            1: Text tableName as table_name,
            2: Text row,
            3: list<Mutation> mutations,
            4: map<Text, Text> attributes,
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = write, inline];

        /// As mutateRow, with a timestamp for all cells.
        void mutateRowTs as MutateRowTs(
            1: Text tableName as table_name,
            2: Text row,
            3: list<Mutation> mutations,
            4: i64 timestamp,
            5: map<Text, Text> attributes,
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = write];

        /// All puts, then all deletes, as two batches. Not atomic over rows.
        void mutateRows as MutateRows(
            1: Text tableName as table_name,
            2: list<BatchMutation> rowBatches as row_batches,
            3: map<Text, Text> attributes,
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = write, inline];

        /// As mutateRows, with a timestamp for all cells.
        void mutateRowsTs as MutateRowsTs(
            1: Text tableName as table_name,
            2: list<BatchMutation> rowBatches as row_batches,
            3: i64 timestamp,
            4: map<Text, Text> attributes,
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = write];

        /// Adds to a column and returns the sum.
        i64 atomicIncrement as AtomicIncrement(
            1: Text tableName as table_name, 2: Text row, 3: Text column, 4: i64 value
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = write, inline];

        /// Deletes all versions of a column, or of a family if there is no colon.
        void deleteAll as DeleteAll(
            1: Text tableName as table_name, 2: Text row, 3: Text column, 4: map<Text, Text> attributes
        ) throws (1: IOError io) [class = write];

        /// Deletes all versions up to and including the timestamp.
        void deleteAllTs as DeleteAllTs(
            1: Text tableName as table_name,
            2: Text row,
            3: Text column,
            4: i64 timestamp,
            5: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = write];

        /// Deletes a row.
        void deleteAllRow as DeleteAllRow(
            1: Text tableName as table_name, 2: Text row, 3: map<Text, Text> attributes
        ) throws (1: IOError io) [class = write];

        /// Adds to a column.
        void increment as Increment(1: TIncrement increment) throws (1: IOError io) [class = write];

        /// Increments in order; stops at the first that fails.
        void incrementRows as IncrementRows(1: list<TIncrement> increments)
            throws (1: IOError io) [class = write];

        /// Deletes the cells of a row up to and including the timestamp.
        void deleteAllRowTs as DeleteAllRowTs(
            1: Text tableName as table_name, 2: Text row, 3: i64 timestamp, 4: map<Text, Text> attributes
        ) throws (1: IOError io) [class = write];

        /// Opens a scanner. A missing table shows at the first fetch.
        ScannerID scannerOpenWithScan as ScannerOpenWithScan(
            1: Text tableName as table_name, 2: TScan scan, 3: map<Text, Text> attributes
        ) throws (1: IOError io) [class = read];

        /// Opens a scanner from a row to the end.
        ScannerID scannerOpen as ScannerOpen(
            1: Text tableName as table_name,
            2: Text startRow as start_row,
            3: list<Text> columns,
            4: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read];

        /// Opens a scanner from a row, inclusive, to another, exclusive.
        ScannerID scannerOpenWithStop as ScannerOpenWithStop(
            1: Text tableName as table_name,
            2: Text startRow as start_row,
            3: Text stopRow as stop_row,
            4: list<Text> columns,
            5: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read];

        /// Opens a scanner over the rows with a prefix.
        ScannerID scannerOpenWithPrefix as ScannerOpenWithPrefix(
            1: Text tableName as table_name,
            2: Text startAndPrefix as start_and_prefix,
            3: list<Text> columns,
            4: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read];

        /// Opens a scanner over cells strictly older than the timestamp.
        ScannerID scannerOpenTs as ScannerOpenTs(
            1: Text tableName as table_name,
            2: Text startRow as start_row,
            3: list<Text> columns,
            4: i64 timestamp,
            5: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read];

        /// Opens a scanner over a range of rows and cells strictly older than the timestamp.
        ScannerID scannerOpenWithStopTs as ScannerOpenWithStopTs(
            1: Text tableName as table_name,
            2: Text startRow as start_row,
            3: Text stopRow as stop_row,
            4: list<Text> columns,
            5: i64 timestamp,
            6: map<Text, Text> attributes,
        ) throws (1: IOError io) [class = read];

        /// The next row: a list of one, or empty at the end.
        list<TRowResult> scannerGet as ScannerGet(
            1: ScannerID id
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = read];

        /// The next rows; empty at the end.
        list<TRowResult> scannerGetList as ScannerGetList(
            1: ScannerID id, 2: i32 nbRows as nb_rows
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = read, inline];

        /// Closes a scanner. An unknown id is an IllegalArgument.
        void scannerClose as ScannerClose(1: ScannerID id)
            throws (1: IOError io, 2: IllegalArgument ia) [class = read];

        /// The region whose key in hbase:meta is the last one up to this.
        TRegionInfo getRegionInfo as GetRegionInfo(1: Text row)
            throws (1: IOError io) [class = read, idempotent];

        /// Appends and returns the new values in column order.
        list<TCell> append as Append(1: TAppend append) throws (1: IOError io) [class = write];

        /// Puts if the column has the value, or is absent when no value is given. There is no argument 4.
        bool checkAndPut as CheckAndPut(
            1: Text tableName as table_name,
            2: Text row,
            3: Text column,
            5: Text value,
            6: Mutation mput,
            7: map<Text, Text> attributes,
        ) throws (1: IOError io, 2: IllegalArgument ia) [class = write];

        /// ONE here, TWO in the other service.
        TThriftServerType getThriftServerType as GetThriftServerType() [class = read, idempotent];

        /// The id of the cluster.
        string getClusterId as GetClusterId() [class = read, idempotent];

        /// Grants a permission.
        bool grant as Grant(1: required TAccessControlEntity info) throws (1: IOError io) [class = admin];

        /// Takes a permission back.
        bool revoke as Revoke(1: required TAccessControlEntity info) throws (1: IOError io) [class = admin];

        /// The cells of a family in a row, or in the row before it if there is none. Left HBase with 2.0.
        list<TCell> getRowOrBefore as GetRowOrBefore(
            1: Text tableName as table_name, 2: Text row, 3: Text family
        ) throws (1: IOError io) [class = read, idempotent, legacy];
    }
    /// The exceptions of the methods of `Hbase`.
    exceptions HbaseException {
        1: IOError as Io,
        2: IllegalArgument as IllegalArgument,
        3: AlreadyExists as AlreadyExists,
    }
}
