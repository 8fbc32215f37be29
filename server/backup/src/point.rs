//! Contents of a backup: one consistent point of a database, as names, lengths and places of files.
//!
//! The owner of the files keeps them in place, unchanged, for as long as the backup runs; the open segment of
//! the log may grow behind the bytes that the point has.

use std::path::PathBuf;

use crate::catalogue::{Class, LogPlace, Primary};

/// A file of a point.
#[derive(Clone, Debug)]
pub struct PointFile {
    /// Path below the data directory.
    pub path: PathBuf,
    /// Where the file is now.
    pub source: PathBuf,
    /// Kind of the file.
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
