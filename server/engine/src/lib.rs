//! Basalt's storage engine: an LSM tree with HBase's data model.
//!
//! A library with no socket, no async runtime, no Thrift and no Prometheus text in it. It is synchronous; files go through
//! [`fs::Vfs`], time through [`clock::Clock`], background work through [`workers`], so that the same code runs on a simulated
//! disk, single-threaded, from a seed.
//!
//! The modules stand in rows; a module uses only rows below it, and in the rows of words (0 and 1) also its own row. Kept by
//! `tests/rows.rs`, which reads this table:
//!
//! ```text
//! row 0  codec checksum id clock options fs sync name text      words that know nothing; fs = the Vfs trait: real and simulated
//! row 0  seeded                                                 known bugs that tests switch on
//! row 1  error metrics jobs cell schema record                  the data model and how it fails; framing for WAL and manifest
//! row 2  memstore wal manifest cache filter disk nonces         single mechanisms that do not know each other
//! row 3  op hfile                                               Get, Scan, Put, ...; the store-file format
//! row 4  store                                                  one family in one region
//! row 5  region                                                 row atomicity, commit, snapshots, scans
//! row 6  catalog                                                tables and boundaries; flush, compaction, split, merge as manifest edits
//! row 7  workers recovery                                       when background work happens; how a database is opened
//! row 8  engine                                                 the front door
//! ```

pub mod checksum;
pub mod clock;
pub mod codec;
pub mod error;
pub mod fs;
pub mod id;
pub mod jobs;
pub mod metrics;
pub(crate) mod name;
pub mod options;
pub mod seeded;
pub mod sync;
pub(crate) mod text;

pub mod cell;
pub mod record;
pub mod schema;

pub mod cache;
pub mod disk;
pub mod filter;
pub mod manifest;
pub mod memstore;
pub mod nonces;
pub mod wal;

pub mod hfile;
pub mod op;

pub mod store;

pub mod catalog;
pub mod region;

pub mod recovery;
pub mod workers;

pub mod engine;

pub use engine::Engine;
pub use error::{Error, Kind, Result};
