//! Options of requests and schemas, under the names that they have in HBase's Java client, and the kinds of
//! failure that no interface declares.
//!
//! Options and kinds are open sets of codes: one that a newer server sends is kept, although it has no name
//! here.

#[doc(inline)]
pub use basalt_idl::call::TApplicationExceptionType as FailureKind;
#[doc(inline)]
pub use basalt_idl::thrift2::{
    TBloomFilterType as BloomType, TColumnFamilyDescriptor as ColumnFamilyDescriptor,
    TCompareOperator as CompareOperator, TCompressionAlgorithm as Compression, TConsistency as Consistency,
    TDataBlockEncoding as DataBlockEncoding, TDurability as Durability,
    TKeepDeletedCells as KeepDeletedCells, TReadType as ReadType, TTableDescriptor as TableDescriptor,
    TThriftServerType as ServerType,
};
