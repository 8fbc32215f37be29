//! The daemon `basalt`: a single-node wide-column server for HBase's clients on Basalt's own storage engine.
//!
//! The library has the whole program, so that fuzzers reach [`config`], [`thrift::messages`] and
//! [`native::decode`]; its public face is those three and [`run`].
//!
//! The modules stand in rows. A module uses rows below its own, and modules of its own row as long as
//! no circle arises. `tests/e2e/tests/layout/` reads this table and checks the imports:
//!
//! ```text
//! row 9  commands                                      the command line, and the commands that need no server
//! row 8  serve                                         start and stop, in order; SIGHUP; messages to systemd
//! row 7  net                                           listeners, detection of protocols, which connection loop serves a connection
//! row 6  thrift native zookeeper rest http console     one folder for each protocol: connections, conversions, exceptions; pages for people
//! row 6  snapshot_files                                snapshots as files in HBase's layout
//! row 5  service backup replication standby            the calls themselves, independent of any protocol; backups; edits for other clusters; a second server with the same data
//! row 4  server                                        the state that all connections share, with scanner sessions
//! row 3  ephemeral                                     servers that tests own, and faults that tests arm
//! row 2  limits cluster security                       admission, memory, throttling, quotas; names of servers and regions; who calls, and who may do what
//! row 1  observe                                       metrics, logs, slow log, key visualizer
//! row 0  config socket                                 settings; connections in clear or under TLS
//! ```
//!
//! Below all rows is the engine, which is synchronous: tokio ends at `service`.

// Without Thrift, some of the words that all protocols share have no speaker left.
#![cfg_attr(not(feature = "thrift"), allow(dead_code, unused_imports, unused_mut))]

mod backup;
mod cluster;
mod commands;
pub mod config;
mod console;
mod ephemeral;
mod http;
mod limits;
pub mod native;
mod net;
mod observe;
mod replication;
mod rest;
#[cfg(test)]
mod rig;
mod security;
mod serve;
mod server;
mod service;
mod snapshot_files;
mod socket;
mod standby;
#[cfg(feature = "thrift")]
pub mod thrift;
mod zookeeper;

pub use commands::run;

/// The commit that was built, in hexadecimal digits, or `unknown`.
pub const COMMIT: &str = env!("BASALT_COMMIT");

/// Version and commit, as `--version` prints them.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BASALT_COMMIT"), ")");
