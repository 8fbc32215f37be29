//! Rows, cells and operations on them.

#[allow(
    unused_imports,
    clippy::wildcard_imports,
    reason = "the names of Thrift's types"
)]
use crate::schema::names::*;

thrift_enum! {
    /// Versions that a TDelete deletes of each column it names.
    pub enum TDeleteType {
        DELETE_COLUMN = 0,
        DELETE_COLUMNS = 1,
        DELETE_FAMILY = 2,
        DELETE_FAMILY_VERSION = 3,
    }

    /// When a write is acknowledged.
    pub enum TDurability {
        USE_DEFAULT = 0,
        SKIP_WAL = 1,
        ASYNC_WAL = 2,
        SYNC_WAL = 3,
        FSYNC_WAL = 4,
    }

    /// From which replica a read may be answered.
    pub enum TConsistency {
        STRONG = 1,
        TIMELINE = 2,
    }

    /// How a scan should read its files: a hint.
    pub enum TReadType {
        DEFAULT = 1,
        STREAM = 2,
        PREAD = 3,
    }

    /// How checkAndMutate compares. HBase 2 calls it TCompareOp, with the same values.
    pub enum TCompareOperator {
        LESS = 0,
        LESS_OR_EQUAL = 1,
        EQUAL = 2,
        NOT_EQUAL = 3,
        GREATER_OR_EQUAL = 4,
        GREATER = 5,
        NO_OP = 6,
    }
}

thrift_struct! {
    /// Timestamps in milliseconds: minStamp inclusive, maxStamp exclusive.
    pub struct TTimeRange {
        1: required i64 minStamp as min_stamp,
        2: required i64 maxStamp as max_stamp,
    }

    /// A column, or a family if there is no qualifier. An empty qualifier is a column.
    pub struct TColumn {
        1: required binary family,
        2: optional binary qualifier,
        /// Used in deletes only.
        3: optional i64 timestamp,
    }

    /// A cell.
    pub struct TColumnValue {
        1: required binary family,
        2: required binary qualifier,
        3: required binary value,
        4: optional i64 timestamp,
        /// Ignored in puts.
        5: optional binary tags,
        /// Cell type: 4 put, 8 delete, 10 delete family version, 12 delete column, 14 delete family. Always
        /// set in results, ignored in puts.
        6: optional byte type as cell_type,
    }

    /// An increment of one column.
    pub struct TColumnIncrement {
        1: required binary family,
        2: required binary qualifier,
        3: optional i64 amount = 1,
    }

    /// A row. If it was not found, row is absent and columnValues empty.
    pub struct TResult {
        1: optional binary row,
        2: required list<TColumnValue> columnValues as column_values,
        3: optional bool stale = false,
        /// The row continues in the next result.
        4: optional bool partial = false,
    }

    /// Visibility labels a read asks for.
    pub struct TAuthorization {
        1: optional list<string> labels,
    }

    /// A visibility expression.
    pub struct TCellVisibility {
        1: optional string expression,
    }

    /// A read of one row.
    pub struct TGet {
        1: required binary row,
        /// Absent or empty means all.
        2: optional list<TColumn> columns,
        /// Exactly this timestamp; timeRange is then ignored.
        3: optional i64 timestamp,
        4: optional TTimeRange timeRange as time_range,
        /// Absent means 1.
        5: optional i32 maxVersions as max_versions,
        6: optional binary filterString as filter_string,
        7: optional map<binary, binary> attributes,
        8: optional TAuthorization authorizations,
        9: optional TConsistency consistency,
        10: optional i32 targetReplicaId as target_replica_id,
        11: optional bool cacheBlocks as cache_blocks,
        /// Most cells of each family; -1 is no limit.
        12: optional i32 storeLimit as store_limit,
        /// Cells of each family to pass over first.
        13: optional i32 storeOffset as store_offset,
        14: optional bool existence_only,
        /// Wins over filterString.
        15: optional binary filterBytes as filter_bytes,
    }

    /// Cells to write to one row.
    pub struct TPut {
        1: required binary row,
        2: required list<TColumnValue> columnValues as column_values,
        /// For cells without their own; absent means now.
        3: optional i64 timestamp,
        5: optional map<binary, binary> attributes,
        6: optional TDurability durability,
        7: optional TCellVisibility cellVisibility as cell_visibility,
    }

    /// A delete of one row. Without columns the whole row.
    pub struct TDelete {
        1: required binary row,
        2: optional list<TColumn> columns,
        /// Ignored when columns are set.
        3: optional i64 timestamp,
        4: optional TDeleteType deleteType as delete_type = TDeleteType::DELETE_COLUMNS,
        6: optional map<binary, binary> attributes,
        7: optional TDurability durability,
        8: optional TCellVisibility cellVisibility as cell_visibility,
    }

    /// Increments of columns of one row.
    pub struct TIncrement {
        1: required binary row,
        2: required list<TColumnIncrement> columns,
        4: optional map<binary, binary> attributes,
        5: optional TDurability durability,
        6: optional TCellVisibility cellVisibility as cell_visibility,
        /// Absent means true.
        7: optional bool returnResults as return_results,
    }

    /// Appends to columns of one row.
    pub struct TAppend {
        1: required binary row,
        2: required list<TColumnValue> columns,
        3: optional map<binary, binary> attributes,
        4: optional TDurability durability,
        5: optional TCellVisibility cellVisibility as cell_visibility,
        /// Absent means true.
        6: optional bool returnResults as return_results,
    }

    /// Parameters of a scanner.
    pub struct TScan {
        1: optional binary startRow as start_row,
        2: optional binary stopRow as stop_row,
        3: optional list<TColumn> columns,
        4: optional i32 caching,
        5: optional i32 maxVersions as max_versions = 1,
        6: optional TTimeRange timeRange as time_range,
        7: optional binary filterString as filter_string,
        /// Most cells in one result; zero and below is no limit.
        8: optional i32 batchSize as batch_size,
        9: optional map<binary, binary> attributes,
        10: optional TAuthorization authorizations,
        /// startRow is then the high end.
        11: optional bool reversed,
        12: optional bool cacheBlocks as cache_blocks,
        /// Replaces timeRange for these families.
        13: optional map<binary, TTimeRange> colFamTimeRangeMap as col_fam_time_range_map,
        14: optional TReadType readType as read_type,
        /// Most rows of the whole scan; zero and below is no limit.
        15: optional i32 limit,
        16: optional TConsistency consistency,
        17: optional i32 targetReplicaId as target_replica_id,
        /// Wins over filterString.
        18: optional binary filterBytes as filter_bytes,
    }

    /// Puts and deletes of one row, applied in one atomic step.
    pub struct TRowMutations {
        1: required binary row,
        2: required list<TMutation> mutations,
    }

    /// An operation failed. The message is without the Java class of HBase's exception.
    pub exception TIOError {
        1: optional string message,
        /// False if trying again cannot help.
        2: optional bool canRetry as can_retry,
    }

    /// A scanner id is not known.
    pub exception TIllegalArgument {
        1: optional string message,
    }
}

thrift_union! {
    /// A put or a delete.
    pub union TMutation {
        /// See [`TPut`].
        1: TPut put as Put,
        /// See [`TDelete`].
        2: TDelete deleteSingle as DeleteSingle,
    }
}
