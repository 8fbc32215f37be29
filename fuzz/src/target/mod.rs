//! The targets, one module each, and what several of them share.

use std::hash::{DefaultHasher, Hash, Hasher as _};

pub mod bulk_load;
pub mod cell_blocks;
pub mod config;
pub mod filter_bytes;
pub mod filter_string;
mod filters;
pub mod hfile;
pub mod manifest;
pub mod rpc_calls;
pub mod rpc_frames;
pub mod rpc_messages;
pub mod shell;
pub mod wal;
pub mod wire;
pub mod zookeeper;

pub use filters::REGEX_BYTES;

/// A hash, to compare what is read twice without keeping it.
fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
