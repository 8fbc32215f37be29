//! HBase's native RPC: the protocol of its Java client, the HBase shell, MapReduce, gohbase and
//! asynchbase.
//!
//! | module | contents |
//! | --- | --- |
//! | [`preamble`] | the first bytes of a connection |
//! | [`frame`] | a request or response: length, header, message, cell block |
//! | [`cells`] | cells of a cell block: KeyValueCodec with and without tags |
//! | [`compress`] | compression of cell blocks, as Hadoop's codecs do it |
//! | [`forms`] | cells of CellCodec, CellCodecWithTags and MessageCodec |
//! | [`znode`] | the payload of the ZooKeeper nodes in which clients look up a server |
//! | [`exception`] | class names of HBase's exceptions, as response headers carry them |
//! | [`messages`] | protobuf messages and methods, generated from `native/hbase.proto` |
//!
//! Nothing here does I/O. The decoders of frames and cells return slices of their input, and an
//! error that names the malformed part. A decoded protobuf message may need some hundred times the
//! memory of its encoding: an empty element of a repeated field has two bytes. Formats are as
//! observed on HBase 2.6.1. Integers outside protobuf messages are big-endian.

pub mod cells;
pub mod compress;
pub mod exception;
pub mod forms;
pub mod frame;
#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated; the messages are HBase's")]
pub mod messages;
pub mod preamble;
pub mod znode;

/// Where the response of a call goes, for the generated dispatch in [`messages`].
pub trait Reply {
    /// Takes the response. Called once, unless the call fails.
    fn message(&mut self, response: &impl prost::Message);
}

#[cfg(test)]
mod tests;
