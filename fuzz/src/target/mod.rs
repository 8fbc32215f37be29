//! The targets, one module each, and what several of them share.

use std::hash::{DefaultHasher, Hash, Hasher as _};

pub(crate) mod config;
pub(crate) mod filter_bytes;
pub(crate) mod filter_string;
mod filters;
pub(crate) mod hfile;
pub(crate) mod manifest;
pub(crate) mod shell;
pub(crate) mod wal;
pub(crate) mod wire;

/// A hash, to compare what is read twice without keeping it.
fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
