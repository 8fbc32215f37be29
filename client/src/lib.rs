//! Async client for Basalt and for HBase: over Thrift 2, and over HBase's native protocol ([`native`]).
//!
//! ```no_run
//! # async fn example() -> basalt_client::Result<()> {
//! use basalt_client::{Client, FamilySchema, Get, Put, Scan, TableSchema};
//!
//! let client = Client::connect("127.0.0.1:9090").await?;
//! client.create_table(TableSchema::new("people")?.family(FamilySchema::new("f").versions(3))).await?;
//!
//! let people = client.table("people")?;
//! people.put(Put::new("ada").cell("f", "born", "1815")).await?;
//! let ada = people.get(Get::new("ada").column("f", "born")).await?.expect("just written");
//! assert_eq!(ada.value("f", "born").expect("just written"), "1815");
//!
//! let mut rows = people.scan(Scan::new().prefix("a"))?;
//! while let Some(row) = rows.next().await? {
//!     println!("{:?} has {} cells", row.key, row.cells.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module or type | purpose |
//! | --- | --- |
//! | [`Client`], [`Table`] | calls about tables, calls about rows; both share a [`Pool`] of [`Connection`]s |
//! | [`Get`], [`Put`], [`Scan`], ... | requests; checked before they are sent |
//! | [`RowStream`] | the rows of a scan; its scanner is closed however the stream ends |
//! | [`Error`] | why a call had no result, and by [`Error::kind`] the remedy |
//! | [`native`] | the same calls over HBase's native protocol, to Basalt or to a cluster of HBase |
//! | [`security`] | TLS, and the login by certificate, password or token |
//! | [`admin`] | calls that only Basalt has |
//! | [`Durability`], [`Compression`], ... | options of requests and schemas |
//! | [`keys`] | row-key designs, their scan ranges, and pre-splits |
//!
//! `client/examples/` has programs that each show one idea: versions, prefix scans, counters, salted keys,
//! conditions, native RPC.
//!
//! [`Client`] makes only calls of HBase's `THBaseService`, [`admin`] apart. Calls that only read
//! are retried once if their connection is lost, all others never: [`client`] has the rule.
//! [`native`] repeats calls as HBase's own client does.
//!
//! A call that is cancelled by dropping its future closes its connection, and may have been carried
//! out.

pub mod admin;
pub mod client;
mod connection;
mod error;
pub mod keys;
mod name;
pub mod native;
mod options;
mod pool;
mod remote;
mod request;
mod row;
mod sasl;
mod scan;
mod schema;
pub mod security;
mod server_name;
mod stream;
mod table;
mod tables;

pub use client::Client;
pub use connection::{Codec, Connection, ConnectionOptions};
pub use error::{Error, ErrorKind, Result, Thrown};
pub use name::{DEFAULT_NAMESPACE, TableName};
pub use options::{
    BloomType, ColumnFamilyDescriptor, CompareOperator, Compression, Consistency, DataBlockEncoding,
    Durability, FailureKind, KeepDeletedCells, ReadType, ServerType, TableDescriptor,
};
pub use pool::{Pool, PoolOptions, Pooled};
pub use request::{
    Append, Check, Delete, Get, Increment, IntoBytes, Put, ROW_BYTES_MAX, RowMutations, Scan, after_prefix,
};
pub use row::{Cell, CellKind, Row, counter_from_value};
pub use scan::RowStream;
pub use schema::{FamilySchema, TableSchema};
pub use security::Security;
pub use table::{RegionLocation, Table};
pub use tables::Namespace;
