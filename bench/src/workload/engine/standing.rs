//! The state of the database at the end of a benchmark, and its work since it was opened.

use std::path::Path;

use serde::Serialize;

use super::database::{Database, during};
use crate::error::{Error, Result};

/// Figures of the database. Those of its work count from its opening; a fill opens it anew.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Standing {
    /// How long it took to open, log and all.
    pub(super) open_seconds: f64,
    /// Bytes of all its files.
    pub(super) disk_bytes: u64,
    /// Store files, and their bytes.
    pub(super) store_files: u64,
    pub(super) store_bytes: u64,
    /// Memory of block index and bloom filters that stays: the permanent part, and the blocks that
    /// reads have pinned.
    pub(super) index_bytes: u64,
    pub(super) memstore_bytes: u64,
    /// Bytes written, by what wrote them.
    pub(super) wal_bytes: u64,
    pub(super) flush_bytes: u64,
    pub(super) compaction_bytes: u64,
    pub(super) minor_compactions: u64,
    pub(super) major_compactions: u64,
    /// Reads of blocks that the cache answered and that it did not. Pinned blocks are in neither.
    pub(super) cache_hits: u64,
    pub(super) cache_misses: u64,
}

impl Standing {
    pub(super) fn of(database: &Database) -> Result<Standing> {
        let engine = &database.engine;
        let counters = engine.counters();
        let cache = engine.cache_usage();
        let mut standing = Standing {
            open_seconds: database.open_time.as_secs_f64(),
            disk_bytes: bytes_below(&database.dir).map_err(|source| Error::File {
                path: database.dir.clone(),
                source,
            })?,
            store_files: 0,
            store_bytes: 0,
            index_bytes: cache.pinned_bytes,
            memstore_bytes: 0,
            wal_bytes: counters.wal_bytes.get(),
            flush_bytes: counters.flush_bytes.get(),
            compaction_bytes: counters.compaction_written_bytes.get(),
            minor_compactions: counters.minor_compactions.get(),
            major_compactions: counters.major_compactions.get(),
            cache_hits: cache.hits.iter().sum(),
            cache_misses: cache.misses,
        };
        for region in during(
            "figures of the regions",
            engine.table_region_stats(&database.table),
        )? {
            standing.store_files += region.store_files;
            standing.store_bytes += region.store_file_bytes;
            standing.memstore_bytes += region.memstore_bytes;
            if let Some((_, version)) = engine.region_view(&region.region.encoded_name) {
                let files = version.stores.iter().flat_map(|store| &store.files);
                standing.index_bytes += files.map(|file| file.reader().resident_bytes()).sum::<u64>();
            }
        }
        Ok(standing)
    }
}

/// Bytes of all files in a directory and below. A file that goes away meanwhile counts as none.
fn bytes_below(dir: &Path) -> std::io::Result<u64> {
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
