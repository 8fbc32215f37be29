//! Native calls, from received bytes to the engine's requests.
//!
//! 1. [`peer`] reads the connection header.
//! 2. [`arguments`] bounds the memory of a call's arguments, which the connection reserves.
//! 3. [`request`] and [`condition`] decode and convert the call, [`plain_writes`] most batches of writes.
//!
//! [`administration`] has the shapes of messages of administration for the second; [`wire`] reads
//! fields of messages for the second and the last.
//!
//! Nothing here does I/O or waits. Every error is a text for the client.

mod administration;
pub mod arguments;
pub mod condition;
pub mod peer;
pub mod plain_writes;
pub mod replicated;
pub mod request;
mod shape;
mod wire;
