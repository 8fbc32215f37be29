//! Fuzz targets: one for each decoder and parser that takes bytes from outside.
//!
//! A target is a function of bytes that panics when something does not hold: a property of the
//! decoder (a decoded value encodes to the same bytes, bytes that come in pieces change nothing, a
//! file reads the same twice), or the limit of memory ([`memory`]). The functions know nothing of a
//! fuzzer: `tests/corpus.rs` runs them over the corpus and over mutations of it from a fixed seed,
//! `libfuzzer/` hands them to libFuzzer, which finds new inputs.
//!
//! Files on disk carry checksums that a mutation breaks at once, so that only the checksum would be tested.
//! The targets for them take a compact form and make the file of it with right checksums ([`disk`]).
//!
//! Inputs lie in `corpus/<target>/`. The binary `make-corpus` writes the seeds; `docs/testing.md` has
//! the commands.

pub mod corpus;
mod disk;
pub mod memory;
pub mod mutate;
pub mod seeds;
pub mod target;

use std::path::PathBuf;

/// One decoder or parser under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target: of its directory in the corpus, and of its libFuzzer binary.
    pub name: &'static str,
    /// Feeds it one input. Panics when something does not hold.
    pub run: fn(&[u8]),
    /// Longest input that is worth trying, in bytes. Longer ones only take longer.
    pub longest_input: usize,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "wire",
        run: target::wire::run,
        longest_input: 4096,
    },
    Target {
        name: "filter_string",
        run: target::filter_string::run,
        longest_input: 512,
    },
    Target {
        name: "filter_bytes",
        run: target::filter_bytes::run,
        longest_input: 4096,
    },
    Target {
        name: "config",
        run: target::config::run,
        longest_input: 2048,
    },
    Target {
        name: "hfile",
        run: target::hfile::run,
        longest_input: 5120,
    },
    Target {
        name: "wal",
        run: target::wal::run,
        longest_input: 2048,
    },
    Target {
        name: "manifest",
        run: target::manifest::run,
        longest_input: 2048,
    },
    Target {
        name: "shell",
        run: target::shell::run,
        longest_input: 1024,
    },
    Target {
        name: "rpc_frames",
        run: target::rpc_frames::run,
        longest_input: 4096,
    },
    Target {
        name: "rpc_messages",
        run: target::rpc_messages::run,
        longest_input: 4096,
    },
    Target {
        name: "cell_blocks",
        run: target::cell_blocks::run,
        longest_input: 4096,
    },
    Target {
        name: "rpc_calls",
        run: target::rpc_calls::run,
        longest_input: 4096,
    },
    Target {
        name: "bulk_load",
        run: target::bulk_load::run,
        longest_input: 5120,
    },
    Target {
        name: "zookeeper",
        run: target::zookeeper::run,
        longest_input: 1024,
    },
    Target {
        name: "host_frames",
        run: target::host_frames::run,
        longest_input: 2048,
    },
    Target {
        name: "logins",
        run: target::logins::run,
        longest_input: 2048,
    },
];

/// The directory of the crate, with `corpus` and `libfuzzer` in it.
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
