//! HBase's native RPC: the protocol of its Java client, the HBase shell, MapReduce, gohbase and asynchbase.
//!
//! | module | contents |
//! | --- | --- |
//! | [`preamble`] | the first bytes of a connection |
//! | [`frame`] | a request or response: length, header, message, cell block |
//! | [`cells`] | cells of a cell block: KeyValueCodec with and without tags |
//! | [`znode`] | the payload of the ZooKeeper nodes in which clients look for a server |
//! | [`exception`] | class names of HBase's exceptions, as they travel in a response header |
//! | [`messages`] | protobuf messages and the methods of each service, generated from `native/hbase.proto` |
//!
//! Nothing here does I/O. Decoders take bytes that have arrived, never allocate more than a small factor of their length, and
//! return an error that names the field for anything malformed. `spec` sections in comments are those of HBase's own protocol
//! as observed on HBase 2.6.1; integers outside protobuf messages are big-endian.

pub mod cells;
pub mod exception;
pub mod frame;
#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated; the messages are HBase's")]
pub mod messages;
pub mod preamble;
pub mod znode;

#[cfg(test)]
mod tests;
