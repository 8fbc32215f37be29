//! The messages of HBase's `Filter.proto` and `Comparator.proto`. Field numbers are the wire's: never change
//! them.
//!
//! Required fields are optional here, because prost would fill in a missing one in silence.

use prost::Message;
use prost::bytes::Bytes;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Filter {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) serialized_filter: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Comparator {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) serialized_comparator: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnCountGetFilter {
    #[prost(int32, optional, tag = "1")]
    pub(super) limit: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnPaginationFilter {
    #[prost(int32, optional, tag = "1")]
    pub(super) limit: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) offset: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) column_offset: Option<Bytes>,
}

/// `PrefixFilter`, `ColumnPrefixFilter` and `InclusiveStopFilter`: all have one field of bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OneValue {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) value: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnRangeFilter {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) min_column: Option<Bytes>,
    #[prost(bool, optional, tag = "2")]
    pub(super) min_column_inclusive: Option<bool>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) max_column: Option<Bytes>,
    #[prost(bool, optional, tag = "4")]
    pub(super) max_column_inclusive: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CompareFilter {
    #[prost(int32, optional, tag = "1")]
    pub(super) compare_op: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(super) comparator: Option<Comparator>,
}

/// `RowFilter`, `FamilyFilter`, `QualifierFilter` and `ValueFilter`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PartFilter {
    #[prost(message, optional, tag = "1")]
    pub(super) compare_filter: Option<CompareFilter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DependentColumnFilter {
    #[prost(message, optional, tag = "1")]
    pub(super) compare_filter: Option<CompareFilter>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) column_family: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) column_qualifier: Option<Bytes>,
    #[prost(bool, optional, tag = "4")]
    pub(super) drop_dependent_column: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FilterList {
    #[prost(int32, optional, tag = "1")]
    pub(super) operator: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) filters: Vec<Filter>,
}

/// `FilterWrapper`, `SkipFilter` and `WhileMatchFilter`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Wrapper {
    #[prost(message, optional, tag = "1")]
    pub(super) filter: Option<Filter>,
}

/// `FirstKeyValueMatchingQualifiersFilter` and `MultipleColumnPrefixFilter`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ManyValues {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) values: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BytesBytesPair {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) first: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) second: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FuzzyRowFilter {
    #[prost(message, repeated, tag = "1")]
    pub(super) fuzzy_keys: Vec<BytesBytesPair>,
    #[prost(bool, optional, tag = "2")]
    pub(super) is_mask_v2: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyOnlyFilter {
    #[prost(bool, optional, tag = "1")]
    pub(super) len_as_val: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PageFilter {
    #[prost(int64, optional, tag = "1")]
    pub(super) page_size: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RandomRowFilter {
    #[prost(float, optional, tag = "1")]
    pub(super) chance: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SingleColumnValueFilter {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) column_family: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) column_qualifier: Option<Bytes>,
    #[prost(int32, optional, tag = "3")]
    pub(super) compare_op: Option<i32>,
    #[prost(message, optional, tag = "4")]
    pub(super) comparator: Option<Comparator>,
    #[prost(bool, optional, tag = "5")]
    pub(super) filter_if_missing: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    pub(super) latest_version_only: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SingleColumnValueExcludeFilter {
    #[prost(message, optional, tag = "1")]
    pub(super) single_column_value_filter: Option<SingleColumnValueFilter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TimestampsFilter {
    #[prost(int64, repeated, tag = "1")]
    pub(super) timestamps: Vec<i64>,
    #[prost(bool, optional, tag = "2")]
    pub(super) can_hint: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RowRange {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) start_row: Option<Bytes>,
    #[prost(bool, optional, tag = "2")]
    pub(super) start_row_inclusive: Option<bool>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) stop_row: Option<Bytes>,
    #[prost(bool, optional, tag = "4")]
    pub(super) stop_row_inclusive: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MultiRowRangeFilter {
    #[prost(message, repeated, tag = "1")]
    pub(super) row_range_list: Vec<RowRange>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnValueFilter {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) family: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) qualifier: Option<Bytes>,
    #[prost(int32, optional, tag = "3")]
    pub(super) compare_op: Option<i32>,
    #[prost(message, optional, tag = "4")]
    pub(super) comparator: Option<Comparator>,
}

/// `ByteArrayComparable` is itself a message of one field of bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Comparable {
    #[prost(message, optional, tag = "1")]
    pub(super) comparable: Option<OneValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BitComparator {
    #[prost(message, optional, tag = "1")]
    pub(super) comparable: Option<OneValue>,
    #[prost(int32, optional, tag = "2")]
    pub(super) bitwise_op: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RegexStringComparator {
    #[prost(string, optional, tag = "1")]
    pub(super) pattern: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pattern_flags: Option<i32>,
    #[prost(string, optional, tag = "3")]
    pub(super) charset: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) engine: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SubstringComparator {
    #[prost(string, optional, tag = "1")]
    pub(super) substr: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BinaryComponentComparator {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) value: Option<Bytes>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) offset: Option<u32>,
}
