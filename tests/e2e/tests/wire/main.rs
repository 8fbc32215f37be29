//! The wire of the main port, and of HTTP where both are alike: protocols, timeouts, and input
//! that no well-behaved client sends.

#[path = "../../../../idl/tests/bad_messages/mod.rs"]
mod bad_messages;
mod crowd;
mod half_open;
mod hostile;
mod patience;
mod pinned;
#[path = "../http/rows.rs"]
mod rows;
mod scanners;
mod speech;
