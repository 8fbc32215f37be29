//! The targets, one module each, and helpers shared by several of them.

use std::hash::{DefaultHasher, Hash, Hasher as _};

pub mod bulk_load;
pub mod cell_blocks;
pub mod config;
pub mod filter_bytes;
pub mod filter_string;
mod filters;
pub mod hfile;
pub mod host_frames;
pub mod logins;
pub mod manifest;
pub mod rpc_calls;
pub mod rpc_frames;
pub mod rpc_messages;
pub mod shell;
pub mod wal;
pub mod wire;
pub mod zookeeper;

pub use filters::REGEX_BYTES;

/// A hash, to compare two reads without keeping their results.
fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
