//! HBase's native protocol on the Thrift port, with a client that can send malformed input.
//!
//! `client_native.rs` tests the protocol with HBase's own client. The cases here are those that the
//! Java client does not send: bad input of each kind, and the requests of old or minimal clients.

mod client;
mod groups;
mod hostile;
mod limits;
mod rows;
mod zookeeper;
