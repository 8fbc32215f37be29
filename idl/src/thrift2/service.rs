//! The methods of HBase's Thrift 2 service.

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
    /// HBase's second Thrift service.
    pub service THBaseService {
        /// Whether the get would find anything.
        bool exists as Exists(1: required binary table, 2: required TGet tget)
            throws (1: TIOError io) [class = read, idempotent];

        /// Whether each get would find anything, in order.
        list<bool> existsAll as ExistsAll(
            1: required binary table, 2: required list<TGet> tgets
        ) throws (1: TIOError io) [class = read, idempotent];

        /// A row.
        TResult get as Get(1: required binary table, 2: required TGet tget)
            throws (1: TIOError io) [class = read, idempotent, inline];

        /// Rows in order; an empty TResult for one that is absent.
        list<TResult> getMultiple as GetMultiple(
            1: required binary table, 2: required list<TGet> tgets
        ) throws (1: TIOError io) [class = read, idempotent, inline];

        /// Writes cells of one row, atomically.
        void put as Put(1: required binary table, 2: required TPut tput)
            throws (1: TIOError io) [class = write, inline];

        /// Puts if the column has the value, or is absent when no value is given.
        bool checkAndPut as CheckAndPut(
            1: required binary table,
            2: required binary row,
            3: required binary family,
            4: required binary qualifier,
            5: binary value,
            6: required TPut tput,
        ) throws (1: TIOError io) [class = write];

        /// Puts in order. Not atomic over rows.
        void putMultiple as PutMultiple(
            1: required binary table, 2: required list<TPut> tputs
        ) throws (1: TIOError io) [class = write, inline];

        /// Deletes from one row, atomically.
        void deleteSingle as DeleteSingle(
            1: required binary table, 2: required TDelete tdelete
        ) throws (1: TIOError io) [class = write];

        /// Deletes in order. Not atomic over rows. Always returns an empty list.
        list<TDelete> deleteMultiple as DeleteMultiple(
            1: required binary table, 2: required list<TDelete> tdeletes
        ) throws (1: TIOError io) [class = write];

        /// Deletes if the column has the value, or is absent when no value is given.
        bool checkAndDelete as CheckAndDelete(
            1: required binary table,
            2: required binary row,
            3: required binary family,
            4: required binary qualifier,
            5: binary value,
            6: required TDelete tdelete,
        ) throws (1: TIOError io) [class = write];

        /// Adds to columns of a row and returns the sums.
        TResult increment as Increment(
            1: required binary table, 2: required TIncrement tincrement
        ) throws (1: TIOError io) [class = write, inline];

        /// Appends to columns of a row and returns the new values.
        TResult append as Append(1: required binary table, 2: required TAppend tappend)
            throws (1: TIOError io) [class = write];

        /// Opens a scanner. A missing table shows at the first fetch.
        i32 openScanner as OpenScanner(
            1: required binary table, 2: required TScan tscan
        ) throws (1: TIOError io) [class = read];

        /// The next results; empty at the end.
        list<TResult> getScannerRows as GetScannerRows(
            1: required i32 scannerId as scanner_id, 2: i32 numRows as num_rows = 1
        ) throws (1: TIOError io, 2: TIllegalArgument ia) [class = read, inline];

        /// Closes a scanner. An unknown id is no error.
        void closeScanner as CloseScanner(
            1: required i32 scannerId as scanner_id
        ) throws (1: TIOError io, 2: TIllegalArgument ia) [class = read];

        /// Applies puts and deletes to one row, atomically.
        void mutateRow as MutateRow(
            1: required binary table, 2: required TRowMutations trowMutations as trow_mutations
        ) throws (1: TIOError io) [class = write];

        /// Opens a scanner, takes its first results and closes it.
        list<TResult> getScannerResults as GetScannerResults(
            1: required binary table, 2: required TScan tscan, 3: i32 numRows as num_rows = 1
        ) throws (1: TIOError io) [class = read, idempotent];

        /// The region that holds a row.
        THRegionLocation getRegionLocation as GetRegionLocation(
            1: required binary table, 2: required binary row, 3: bool reload
        ) throws (1: TIOError io) [class = read, idempotent];

        /// The regions of a table in key order.
        list<THRegionLocation> getAllRegionLocations as GetAllRegionLocations(
            1: required binary table
        ) throws (1: TIOError io) [class = read, idempotent];

        /// Applies the mutations if the column compares as asked.
        bool checkAndMutate as CheckAndMutate(
            1: required binary table,
            2: required binary row,
            3: required binary family,
            4: required binary qualifier,
            5: required TCompareOperator compareOperator as compare_operator,
            6: binary value,
            7: required TRowMutations rowMutations as row_mutations,
        ) throws (1: TIOError io) [class = write];

        /// The descriptor of a table.
        TTableDescriptor getTableDescriptor as GetTableDescriptor(
            1: required TTableName table
        ) throws (1: TIOError io) [class = read, idempotent];

        /// The descriptors of the tables that exist.
        list<TTableDescriptor> getTableDescriptors as GetTableDescriptors(
            1: required list<TTableName> tables
        ) throws (1: TIOError io) [class = read, idempotent];

        /// Whether the table exists.
        bool tableExists as TableExists(1: TTableName tableName as table_name)
            throws (1: TIOError io) [class = read, idempotent];

        /// The tables whose whole name matches a Java regular expression.
        list<TTableDescriptor> getTableDescriptorsByPattern as GetTableDescriptorsByPattern(
            1: optional string regex, 2: required bool includeSysTables as include_sys_tables
        ) throws (1: TIOError io) [class = read, idempotent];

        /// The tables of a namespace.
        list<TTableDescriptor> getTableDescriptorsByNamespace as GetTableDescriptorsByNamespace(
            1: required string name
        ) throws (1: TIOError io) [class = read, idempotent];

        /// The names of tables whose whole name matches a Java regular expression.
        list<TTableName> getTableNamesByPattern as GetTableNamesByPattern(
            1: optional string regex, 2: required bool includeSysTables as include_sys_tables
        ) throws (1: TIOError io) [class = read, idempotent];

        /// The names of the tables of a namespace.
        list<TTableName> getTableNamesByNamespace as GetTableNamesByNamespace(
            1: required string name
        ) throws (1: TIOError io) [class = read, idempotent];

        /// Creates a table, with one region more than split keys.
        void createTable as CreateTable(
            1: required TTableDescriptor desc, 2: optional list<binary> splitKeys as split_keys
        ) throws (1: TIOError io) [class = admin];

        /// Deletes a disabled table.
        void deleteTable as DeleteTable(1: required TTableName tableName as table_name)
            throws (1: TIOError io) [class = admin];

        /// Empties a disabled table and enables it.
        void truncateTable as TruncateTable(
            1: required TTableName tableName as table_name,
            2: required bool preserveSplits as preserve_splits,
        ) throws (1: TIOError io) [class = admin];

        /// Brings a disabled table back.
        void enableTable as EnableTable(1: required TTableName tableName as table_name)
            throws (1: TIOError io) [class = admin];

        /// Takes a table out of service.
        void disableTable as DisableTable(
            1: required TTableName tableName as table_name
        ) throws (1: TIOError io) [class = admin];

        /// Whether the table serves.
        bool isTableEnabled as IsTableEnabled(
            1: required TTableName tableName as table_name
        ) throws (1: TIOError io) [class = read, idempotent];

        /// Whether the table is out of service.
        bool isTableDisabled as IsTableDisabled(
            1: required TTableName tableName as table_name
        ) throws (1: TIOError io) [class = read, idempotent];

        /// Whether all regions serve; false if the table does not exist.
        bool isTableAvailable as IsTableAvailable(
            1: required TTableName tableName as table_name
        ) throws (1: TIOError io) [class = read, idempotent];

        /// Adds a family.
        void addColumnFamily as AddColumnFamily(
            1: required TTableName tableName as table_name, 2: required TColumnFamilyDescriptor column
        ) throws (1: TIOError io) [class = admin];

        /// Deletes a family and its data.
        void deleteColumnFamily as DeleteColumnFamily(
            1: required TTableName tableName as table_name, 2: required binary column
        ) throws (1: TIOError io) [class = admin];

        /// Replaces the descriptor of a family.
        void modifyColumnFamily as ModifyColumnFamily(
            1: required TTableName tableName as table_name, 2: required TColumnFamilyDescriptor column
        ) throws (1: TIOError io) [class = admin];

        /// Replaces the descriptor of a table. Families left out are deleted.
        void modifyTable as ModifyTable(1: required TTableDescriptor desc)
            throws (1: TIOError io) [class = admin];

        /// Creates a namespace.
        void createNamespace as CreateNamespace(
            1: required TNamespaceDescriptor namespaceDesc as namespace_desc
        ) throws (1: TIOError io) [class = admin];

        /// Replaces the configuration of a namespace.
        void modifyNamespace as ModifyNamespace(
            1: required TNamespaceDescriptor namespaceDesc as namespace_desc
        ) throws (1: TIOError io) [class = admin];

        /// Deletes an empty namespace.
        void deleteNamespace as DeleteNamespace(1: required string name)
            throws (1: TIOError io) [class = admin];

        /// The descriptor of a namespace.
        TNamespaceDescriptor getNamespaceDescriptor as GetNamespaceDescriptor(
            1: required string name
        ) throws (1: TIOError io) [class = read, idempotent];

        /// All namespaces, default and hbase included.
        list<TNamespaceDescriptor> listNamespaceDescriptors as ListNamespaceDescriptors()
            throws (1: TIOError io) [class = read, idempotent];

        /// The names of all namespaces, default and hbase included.
        list<string> listNamespaces as ListNamespaces() throws (1: TIOError io) [class = read, idempotent];

        /// TWO here, ONE in the other service.
        TThriftServerType getThriftServerType as GetThriftServerType() [class = read, idempotent];

        /// The id of the cluster.
        string getClusterId as GetClusterId() [class = read, idempotent];

        /// Records of a slow log.
        list<TOnlineLogRecord> getSlowLogResponses as GetSlowLogResponses(
            1: set<TServerName> serverNames as server_names,
            2: TLogQueryFilter logQueryFilter as log_query_filter,
        ) throws (1: TIOError io) [class = read, idempotent];

        /// Empties the slow logs; one answer for each server.
        list<bool> clearSlowLogResponses as ClearSlowLogResponses(
            1: set<TServerName> serverNames as server_names
        ) throws (1: TIOError io) [class = admin];

        /// Grants a permission.
        bool grant as Grant(1: required TAccessControlEntity info) throws (1: TIOError io) [class = admin];

        /// Takes a permission back.
        bool revoke as Revoke(1: required TAccessControlEntity info) throws (1: TIOError io) [class = admin];

        /// Whether all regions serve and their boundaries are these split keys. Left HBase with 3.0.
        bool isTableAvailableWithSplit as IsTableAvailableWithSplit(
            1: required TTableName tableName as table_name,
            2: optional list<binary> splitKeys as split_keys,
        ) throws (1: TIOError io) [class = read, idempotent, legacy];
    }
    /// The exceptions of the methods of `THBaseService`.
    exceptions THBaseException {
        1: TIOError as Io,
        2: TIllegalArgument as IllegalArgument,
    }
}
