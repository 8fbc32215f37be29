//! The state of the database at the end of a benchmark, and its work since it was opened.

use std::path::Path;

use serde::Serialize;

/// Figures of the database. Those of its work count from its opening; a fill opens it anew. `None`: the
/// engine does not count it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Standing {
    /// How long it took to open, log and all.
    pub open_seconds: f64,
    /// Bytes of all its files.
    pub disk_bytes: u64,
    /// Number of store files.
    pub store_files: u64,
    /// Bytes of the store files.
    pub store_bytes: u64,
    /// Memory of block index and bloom filters that stays: the permanent part, and the blocks that
    /// reads have pinned.
    pub index_bytes: u64,
    /// Memory of what is not in a store file yet.
    pub memstore_bytes: u64,
    /// Bytes that the process handed to the system to write, as Linux counts them: a figure that does
    /// not depend on what an engine counts.
    pub written_bytes: Option<u64>,
    /// Bytes written to the log.
    pub wal_bytes: Option<u64>,
    /// Bytes written by flushes.
    pub flush_bytes: Option<u64>,
    /// Bytes written by compactions.
    pub compaction_bytes: Option<u64>,
    /// Compactions of some files.
    pub minor_compactions: Option<u64>,
    /// Compactions of all files.
    pub major_compactions: Option<u64>,
    /// Reads of blocks that the cache answered. Pinned blocks are not among them.
    pub cache_hits: Option<u64>,
    /// Reads of blocks that the cache did not answer.
    pub cache_misses: Option<u64>,
}

/// Bytes that this process has handed to the system to write, where the system counts them.
pub(super) fn bytes_written() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/self/io").ok()?;
    let count = counts.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    count.parse().ok()
}

/// Bytes of all files in a directory and below. A file that goes away meanwhile counts as none.
pub(super) fn bytes_below(dir: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += bytes_below(&entry.path())?,
            Ok(metadata) => bytes += metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
