//! HBase's native protocol: the way of its Java client to a cluster, with ZooKeeper or the RPC registry,
//! `hbase:meta`, and a connection to each server.
//!
//! ```no_run
//! # async fn example() -> basalt_client::Result<()> {
//! use basalt_client::native::{Cluster, ClusterOptions, Registry};
//! use basalt_client::{FamilySchema, Get, Increment, Put, Scan, TableSchema};
//!
//! let registry = Registry::zookeeper("127.0.0.1", 9090, "/hbase")?;
//! let cluster = Cluster::connect(ClusterOptions::new(registry)).await?;
//! cluster.create_table(TableSchema::new("people")?.family(FamilySchema::new("f"))).await?;
//!
//! let people = cluster.table("people")?;
//! people.put(Put::new("ada").cell("f", "born", "1815")).await?;
//! people.increment(Increment::new("ada").column("f", "visits", 1)).await?;
//! let mut rows = people.scan(Scan::new().prefix("a"))?;
//! while let Some(row) = rows.next().await? {
//!     println!("{:?} has {} cells", row.key, row.cells.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The calls, requests and rows are those of the Thrift client: [`Cluster`] has the methods of
//! [`Client`](crate::Client), [`Table`] those of [`crate::Table`]. Beyond these, [`Table::batch`] reports
//! each action by itself, and [`Table::scanner`] is a scan that the caller drives.
//!
//! | module | contents |
//! | --- | --- |
//! | `options` | where to find the cluster, limits |
//! | `zookeeper`, `directory` | the server of `hbase:meta` and the master |
//! | `connection`, `calls`, `connections` | a socket with many calls in flight; one for each server and service |
//! | `regions`, `locate`, `look_ups` | the cache of region locations; look-ups in `hbase:meta`, one at a time |
//! | `exception`, `retry` | the meaning of failures; pauses, deadlines, attempts |
//! | `encode`, `decode`, `filter` | requests to messages, messages to rows; the filter language |
//! | `cluster`, `table`, `batch`, `admin`, `schema` | the calls |
//! | `observer`, `probe` | figures for programs; whether servers answer |
//! | `by_message` | the calls for programs that have messages |
//! | `replicate` | edits that a replication source sends |
//! | `scanner`, `stitch` | a scan over region boundaries; rows from the parts that servers send |
//!
//! # Retries
//!
//! An operation is repeated as HBase's client repeats it, with growing pauses, until it succeeds, a final
//! exception arrives, [`ClusterOptions::retries`] are used up, or [`ClusterOptions::operation_timeout`] is
//! over. The error then is [`Error::Exhausted`](crate::Error::Exhausted) with the last failure. A region that
//! moved or split is looked up again.
//!
//! After a lost connection it is unknown whether the call was carried out. Reads, puts and deletes are
//! repeated: a put with a server's timestamp may then leave two equal versions, as with HBase's client.
//! Increments and appends carry a nonce, by which the server recognises a repetition. Conditional mutations
//! are not repeated, since the second one could report the opposite; the error's kind is
//! [`ErrorKind::Unknown`](crate::ErrorKind::Unknown).
//!
//! # Bounds
//!
//! [`ClusterOptions`] bounds the calls in flight of a connection and the size of a reply. Buffers grow with
//! the bytes that arrive. A dropped future leaves its call to run; the answer is discarded.
//!
//! Connections are tasks of the runtime in which they were opened, so use a cluster in one runtime.
//!
//! Nothing here is specific to Basalt: a cluster of HBase 2.5 to 3.0 answers the same calls.
//! [`crate::security`] has TLS, and the logins by certificate and by token; there is no Kerberos.

mod admin;
mod advice;
mod atomic;
mod batch;
mod by_message;
mod calls;
mod cluster;
mod connection;
mod connections;
mod decode;
mod directory;
mod encode;
mod filter;
mod locate;
mod look_ups;
mod meta;
mod observer;
mod options;
mod probe;
mod regions;
mod replicate;
mod retry;
mod scanner;
mod schema;
mod stitch;
mod table;
mod zookeeper;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;

pub use crate::remote::{Origin, RemoteException};
pub use crate::server_name::ServerName;
pub use batch::Action;
pub use by_message::MessageAction;
pub use cluster::Cluster;
pub use filter::filter_message;
pub use observer::Observer;
pub use options::{BASE_ZNODE, ClusterOptions, Registry, ZOOKEEPER_PORT};
pub use regions::Region;
pub use replicate::{Shipment, ShippedEdit, put_cell};
pub use scanner::{Renewal, Scanner};
pub use table::Table;
