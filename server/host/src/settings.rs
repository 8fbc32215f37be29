//! Settings of a host.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a host.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program `java`.
    pub command: String,
    /// The jar of the host.
    pub program: PathBuf,
    /// HBase's jars, separated by colons; `lib/*` stands for the jars of a folder.
    pub class_path: String,
    /// Folders with the jars of users.
    pub directories: Vec<PathBuf>,
    /// The largest heap.
    pub heap_bytes: u64,
    /// Longest time of a call.
    pub deadline: Duration,
    /// Longest time of a start.
    pub start_max: Duration,
    /// Most calls at a time.
    pub sockets: usize,
}
