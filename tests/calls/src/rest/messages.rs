//! Messages of the interface's protobuf.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct CellSet {
    #[prost(message, repeated, tag = "1")]
    pub(super) rows: Vec<Row>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Row {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) key: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    pub(super) values: Vec<Cell>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Cell {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) column: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "3")]
    pub(super) timestamp: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(super) data: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Scanner {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) start_row: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) end_row: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(super) columns: Vec<Vec<u8>>,
    #[prost(int32, optional, tag = "4")]
    pub(super) batch: Option<i32>,
    #[prost(int64, optional, tag = "5")]
    pub(super) start_time: Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub(super) end_time: Option<i64>,
    #[prost(int32, optional, tag = "7")]
    pub(super) max_versions: Option<i32>,
    #[prost(string, optional, tag = "8")]
    pub(super) filter: Option<String>,
    #[prost(int32, optional, tag = "9")]
    pub(super) caching: Option<i32>,
    #[prost(bool, optional, tag = "11")]
    pub(super) cache_blocks: Option<bool>,
}

/// Names of tables or of namespaces.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Names {
    #[prost(string, repeated, tag = "1")]
    pub(super) names: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TableSchema {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) attrs: Vec<Attribute>,
    #[prost(message, repeated, tag = "3")]
    pub(super) columns: Vec<ColumnSchema>,
    #[prost(bool, optional, tag = "5")]
    pub(super) read_only: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnSchema {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) attrs: Vec<Attribute>,
    #[prost(int32, optional, tag = "3")]
    pub(super) ttl: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) max_versions: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(super) compression: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TableInfo {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) regions: Vec<Region>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Region {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) start_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) end_key: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "4")]
    pub(super) id: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(super) location: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamespaceProperties {
    #[prost(message, repeated, tag = "1")]
    pub(super) props: Vec<Attribute>,
}
