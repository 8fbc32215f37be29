//! Basalt's storage engine: an LSM tree with HBase's data model, as a library.
//!
//! Tables have families of columns; a row is a sorted set of cells, each with a family, a qualifier,
//! a timestamp and a value. Writes to one row are atomic and survive a crash once they are
//! acknowledged; a scan reads one snapshot. Many tables share one log, one manifest and one cache.
//!
//! ```
//! use basalt_engine::schema::{FamilyDescriptor, TableDescriptor};
//! use basalt_engine::{Engine, Get, Put, Scan};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let dir = dir.path();
//! let engine = Engine::open(dir)?;
//! let family = FamilyDescriptor::new(b"info");
//! engine.create_table(TableDescriptor::new("users".parse()?, vec![family]), Vec::new())?;
//!
//! let users = engine.table("users")?;
//! users.put(Put::new("ada").cell("info", "born", "1815"))?;
//! users.put(Put::new("alan").cell("info", "born", "1912"))?;
//!
//! let ada = users.get(&Get::new("ada"))?.expect("the put was acknowledged");
//! assert_eq!(ada.value("info", "born"), Some(&b"1815"[..]));
//!
//! for row in users.scan(Scan::new().prefix("a").limit(10)) {
//!     let row = row?;
//!     println!("{:?} has {} cells", row.key(), row.cells().len());
//! }
//! engine.close()?;
//! # Ok::<(), basalt_engine::Error>(())
//! ```
//!
//! The examples `address_book` and `page_views` show more: filters, conditional puts, counters from
//! several threads, and a restart without a close.
//!
//! The engine has no socket, no async runtime, no Thrift and no Prometheus text. It is synchronous:
//! calls come from any thread, and background work has threads of its own. A [`Commit`] is also a
//! [`Future`], for programs that write from async tasks. All failures are one type, [`Error`],
//! whose [`kind`](Error::kind) is the caller's remedy.
//!
//! # The life of a write
//!
//! 1. [`Table::put`] makes a mutation of one row, which borrows its bytes from the caller.
//! 2. `engine/write.rs` looks the table up, checks the request against the schema and the limits, and
//!    rejects it if memory or disk is full.
//! 3. `region/locks.rs`: the row is locked. `clock/timestamps/` assigns the time, and
//!    `region/plan.rs` turns the mutation into cells in their stored form.
//! 4. `wal/room.rs` reserves the space that the cells take in the log, so that from here on only a
//!    broken disk can stop the write.
//! 5. `region/batch.rs` encodes the row as one edit. `wal/group.rs` gives it a sequence id and copies
//!    it into the open group; `memstore/` inserts the same bytes into its skiplist. The locks are
//!    released, and the caller gets a [`Commit`].
//! 6. The first waiter for a commit of the group leads it: one write, and one sync if the table
//!    asks for it, for all of its edits. When they are durable and in memory the read point moves past
//!    them. Now the put is acknowledged, and reads see it.
//! 7. `workers/` flushes a full memstore: `store/flush.rs` writes it as a store file (`hfile/`), one
//!    edit of the `manifest/` names the file, and a version of the region with it is published. Log
//!    segments that no memstore needs are removed.
//! 8. `store/compact/` merges store files, and drops cells that are deleted, expired or superseded and
//!    that no open scan can see.
//!
//! After a crash, `recovery/` opens the files that the manifest names and puts the edits of the log
//! that are in none of them back into memstores.
//!
//! # Features
//!
//! Without features the crate has everything that a program that embeds the engine needs. Basalt's
//! own programs enable more, without a promise of stability:
//!
//! - `server`: calls for a server around the engine: results in reused batches, reads from memory
//!   only, atomic groups with nonces, memory budgets, region locations, statistics, other clocks and
//!   file systems.
//! - `internals`: single mechanisms (log, manifest, store files, memstore) for fuzzing, benchmarks and
//!   tests of formats.
//! - `sim`: the simulated disk, which loses, tears, fails and fills up as a seed says.
//!
//! # Modules
//!
//! Files go through the trait `fs::Vfs`, time through `clock::Clock`, background work through
//! `workers`, so that the same code runs on a simulated disk, single-threaded, from a seed.
//!
//! The modules form layers (rows); a module uses only rows below it, and in the rows of words (0
//! and 1) also its own row. Kept by `tests/rows.rs`, which reads this table:
//!
//! ```text
//! row 0  error name id cell schema filter op seeded              the data model and how it fails: the crate basalt-types
//! row 0  codec checksum clock options fs sync                   words that know nothing; fs = the Vfs trait: real and simulated
//! row 1  metrics jobs record own_options                        events and jobs; framing for WAL and manifest; settings of a table
//! row 2  memstore wal manifest cache disk nonces                single mechanisms that do not know each other
//! row 3  hfile                                                  the store-file format
//! row 4  store                                                  one family in one region
//! row 5  region                                                 row atomicity, commit, snapshots, scans
//! row 6  catalog                                                tables and boundaries; flush, compaction, split, merge as manifest edits
//! row 7  workers recovery                                       when background work happens; how a database is opened
//! row 8  engine                                                 the front door
//! row 9  internals                                              single mechanisms for fuzzing, benchmarks and tests
//! ```

// Checked only in the build with all features, in which everything has a caller: narrower ones
// compile the same code.
#![cfg_attr(
    not(all(feature = "internals", feature = "sim")),
    allow(dead_code, unreachable_pub, unused_imports)
)]

mod cache;
mod catalog;
mod checksum;
mod codec;
mod disk;
mod hfile;
mod manifest;
mod memstore;
mod nonces;
mod own_options;
mod record;
mod recovery;
mod region;
mod store;
mod sync;
mod wal;
mod workers;

pub mod options;

#[cfg(not(feature = "server"))]
mod clock;
#[cfg(feature = "server")]
pub mod clock;
#[cfg(not(feature = "server"))]
mod engine;
#[cfg(feature = "server")]
pub mod engine;
#[cfg(not(feature = "server"))]
mod fs;
#[cfg(feature = "server")]
pub mod fs;
#[cfg(not(feature = "server"))]
mod jobs;
#[cfg(feature = "server")]
pub mod jobs;
#[cfg(not(feature = "server"))]
mod metrics;
#[cfg(feature = "server")]
pub mod metrics;

#[cfg(feature = "internals")]
pub mod internals;

pub use basalt_types::schema;
#[cfg(feature = "server")]
pub use basalt_types::{cell, filter, id, op, seeded};
#[cfg(not(feature = "server"))]
use basalt_types::{cell, filter, id, op, seeded};
use basalt_types::{error, name};

pub use cell::{Cell, CellType, Key};
pub use engine::{Builder, Engine, Row, Rows, Table};
pub use error::{COPIED_REMEDY, Error, Kind, Result};
pub use id::RegionId;
pub use manifest::SnapshotMeta;
pub use metrics::{CompactionEvent, EventListener, FlushEvent};
pub use op::{Check, CompareOp, Delete, Get, Put, RowMutation, Scan, TimeRange, Write, Writes};
pub use region::RegionInfo;
pub use wal::Commit;
