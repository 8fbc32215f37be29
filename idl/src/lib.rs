//! Basalt's interfaces and their codecs: Thrift, HBase's native protocol, and ZooKeeper's.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`wire`] | bytes: binary and compact readers and writers, detection, the end of an unframed message |
//! | [`schema`] | types on the wire: [`Encode`], [`Decode`], descriptors |
//! | [`call`] | methods on the wire: arguments, result, message around them |
//! | [`serve`] | the server's side: handlers of methods, and the dispatch of calls to them |
//! | [`thrift1`] | HBase's `Hbase` service, `thrift1/Hbase.thrift` |
//! | [`thrift2`] | HBase's `THBaseService`, `thrift2/hbase.thrift` |
//! | [`admin`] | `BasaltAdmin`, the calls that HBase's two services lack, `basalt.thrift` |
//! | [`describe`] | descriptors as text, as `describe` in HBase's shell prints them |
//! | [`dispatch`] | which of the three Thrift services a message on the shared port means |
//! | [`native`] | HBase's native RPC: frames, cells, protobuf messages, `native/hbase.proto` |
//! | [`zookeeper`] | the packets by which native clients look up a server |
//! | `apache` | the types of all three Thrift services over Apache's crate `thrift`; feature `thrift` |
//!
//! Nothing here does I/O: readers take a whole message, writers append to a `Vec<u8>`, and the
//! scanner and the detector work on bytes that the caller received. All types may be used from any
//! thread.
//!
//! The types are declared by macros whose input reads like the IDL. The `.thrift` files next to `src`
//! are for people and for code generators of other languages; a test compares the two and fails on any
//! field, default or method that only one of them has.
//!
//! Invariant: bytes from the network never cause a panic, a stack overflow, or memory out of proportion
//! to the bytes received. `wire` states the limits.

#[macro_use]
mod macros;

pub mod admin;
#[cfg(feature = "thrift")]
pub mod apache;
pub mod call;
pub mod describe;
pub mod dispatch;
pub mod native;
pub mod schema;
pub mod serve;
pub mod thrift1;
pub mod thrift2;
pub mod wire;
pub mod zookeeper;

pub use call::{Call, CallError, TApplicationException, TApplicationExceptionType};
pub use schema::{Decode, Encode};
