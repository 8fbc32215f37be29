//! What is to be backed up: one consistent point of a database, as names, lengths and places of files.
//!
//! The owner of the files keeps them in place, unchanged, for as long as the backup runs; the open segment of
//! the log may grow behind the bytes that the point has.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::catalogue::Class;

/// A file of a point.
#[derive(Clone, Debug)]
pub struct PointFile {
    /// Path below the data directory.
    pub path: PathBuf,
    /// Where the file is now.
    pub source: PathBuf,
    /// What it is.
    pub class: Class,
    /// For a store file, text that stands for its content: a file with the same one was backed up before.
    pub identity: String,
    /// CRC-32C of the content, if it is known: a file that has another one is refused.
    pub checksum: Option<u32>,
    /// Bytes to copy.
    pub bytes: u64,
    /// Length that the restored file must have: zeros follow the content.
    pub length: u64,
}

/// Where a log goes on from a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// The server's run: positions of different runs are not compared.
    pub run: String,
    /// Number of changes of the schema and the like before it.
    pub turns: u64,
    /// Segment of the log.
    pub segment: u64,
    /// Bytes of the segment.
    pub bytes: u64,
}

/// The server that a point is of, for standbys that follow its backups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Primary {
    /// How often the primary has changed.
    pub term: u64,
    /// Host and port for clients.
    pub host: String,
    /// See `host`.
    pub port: u16,
    /// When it started, in milliseconds since 1970.
    pub start_code: u64,
    /// URL of its HTTP port.
    pub http: String,
}

/// One consistent point.
#[derive(Clone, Debug)]
pub struct Point {
    /// The database's identity.
    pub cluster_id: String,
    /// Version of the server.
    pub server: String,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Sequence id of the last edit.
    pub position: u64,
    /// Where the log goes on.
    pub log: LogPlace,
    /// The server, if it runs.
    pub primary: Option<Primary>,
    /// Names of the tables, for people.
    pub tables: Vec<String>,
    /// State of the manifest, for the engine.
    pub manifest: Vec<u8>,
    /// All files.
    pub files: Vec<PointFile>,
    /// Paths of files that hold secrets, and are left out unless objects are encrypted or the options allow
    /// it. They are among `files`.
    pub secrets: Vec<PathBuf>,
}
