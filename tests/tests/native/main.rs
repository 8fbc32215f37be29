//! HBase's native protocol on the one port, with a client that sends what it is told, however wrong.
//!
//! Clients that we did not write are in `client_native.rs`; here are the cases that they do not send: bad input of each kind, which
//! must be answered with HBase's exception class and leave the server alive, and what an old or sparing client sends.

mod client;
mod hostile;
mod rows;
mod zookeeper;
