//! What goes over the Thrift port, and over HTTP where both are alike: speech, patience, and input that no
//! client of good will sends.

#[path = "../../../idl/tests/bad_messages/mod.rs"]
mod bad_messages;
mod crowd;
mod hostile;
mod patience;
mod pinned;
#[path = "../http/rows.rs"]
mod rows;
mod scanners;
mod speech;
