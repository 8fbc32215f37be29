//! HBase's Thrift 2 interface: `thrift2/hbase.thrift`.
//!
//! The data model of the Java client: gets, puts, deletes and scans as structs ([`data`]), tables, namespaces
//! and regions as descriptors ([`tables`]), and as the text that HBase's shell has for them ([`describe`]).

pub mod data;
pub mod describe;
mod service;
pub mod tables;

pub use data::*;
pub use service::{AdminHandlers, Method, ReadHandlers, SERVICE, THBaseException, WriteHandlers, args};
pub use tables::*;

use crate::schema::{EnumDescriptor, StructDescriptor};

/// Every struct, union and exception of the interface.
pub const STRUCTS: &[&StructDescriptor] = &[
    &TTimeRange::DESCRIPTOR,
    &TColumn::DESCRIPTOR,
    &TColumnValue::DESCRIPTOR,
    &TColumnIncrement::DESCRIPTOR,
    &TResult::DESCRIPTOR,
    &TAuthorization::DESCRIPTOR,
    &TCellVisibility::DESCRIPTOR,
    &TGet::DESCRIPTOR,
    &TPut::DESCRIPTOR,
    &TDelete::DESCRIPTOR,
    &TIncrement::DESCRIPTOR,
    &TAppend::DESCRIPTOR,
    &TScan::DESCRIPTOR,
    &TRowMutations::DESCRIPTOR,
    &THRegionInfo::DESCRIPTOR,
    &TServerName::DESCRIPTOR,
    &THRegionLocation::DESCRIPTOR,
    &TTableName::DESCRIPTOR,
    &TColumnFamilyDescriptor::DESCRIPTOR,
    &TTableDescriptor::DESCRIPTOR,
    &TNamespaceDescriptor::DESCRIPTOR,
    &TLogQueryFilter::DESCRIPTOR,
    &TOnlineLogRecord::DESCRIPTOR,
    &TAccessControlEntity::DESCRIPTOR,
    &TMutation::DESCRIPTOR,
    &TIOError::DESCRIPTOR,
    &TIllegalArgument::DESCRIPTOR,
];

/// Every enum of the interface.
pub const ENUMS: &[&EnumDescriptor] = &[
    &TDeleteType::DESCRIPTOR,
    &TDurability::DESCRIPTOR,
    &TConsistency::DESCRIPTOR,
    &TReadType::DESCRIPTOR,
    &TCompareOperator::DESCRIPTOR,
    &TBloomFilterType::DESCRIPTOR,
    &TCompressionAlgorithm::DESCRIPTOR,
    &TDataBlockEncoding::DESCRIPTOR,
    &TKeepDeletedCells::DESCRIPTOR,
    &TLogType::DESCRIPTOR,
    &TFilterByOperator::DESCRIPTOR,
    &TThriftServerType::DESCRIPTOR,
    &TPermissionScope::DESCRIPTOR,
];
