//! The store: one family in one region. Versions, flush, merge, visibility, compaction.
//!
//! ```text
//! StoreVersion   a snapshot of the store: one active memstore, frozen ones, store files. Immutable.
//! StoreScanner   reads a version: sources -> MergeCursor -> ReadMatcher -> CellBatch
//! stripes        which files overlap: where flushes cut, and what is compacted together (pure)
//! flush          frozen memstores -> MergeCursor -> RetainMatcher -> a store file for each stripe
//! overwritten    how much a merge would drop (pure)
//! load           an HFile from elsewhere -> one store file
//! compact        choose: which files (pure); run: files of a stripe -> MergeCursor -> RetainMatcher -> store files
//! ```
//!
//! Nothing in here holds a lock, publishes a version or writes the manifest: the region does. The
//! region must ensure:
//!
//! - A reader takes the versions of all stores of the region and *then* the read point, and checks
//!   that the versions are still current. So every cell of the files is at or below the read point,
//!   but for the files of a bulk load that is being published; memstores may hold newer cells. The
//!   scanner leaves newer cells out.
//! - Before a flush, everything in the frozen memstores is published.
//! - A reader may continue in a later version than its first one, at its original read point. Flush
//!   and compaction keep all cells that are visible at the earliest read point in use or later, and
//!   sequence ids above it, so that files can be read at that point too. Versions beyond VERSIONS
//!   are not part of this guarantee: whether a delete brings one back depends on whether it was
//!   dropped before, as in HBase.
//! - A version is published only after the manifest edit that makes it true is durable; then the files it
//!   dropped are marked obsolete ([`StoreFile::mark_obsolete`]) and go away with their last reader, by way of
//!   [`Removals`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cell::OnShortage;
use crate::clock::{Ahead, Clock};
use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::hfile::ReaderContext;
use crate::id::{FileId, SeqId};
use crate::memstore::ChunkPool;
use crate::metrics::EventListener;
use crate::op::ReadTier;
use crate::schema::TableName;
use crate::seeded;

mod block_read;
pub(crate) mod compact;
mod extract;
mod flush;
mod load;
mod matcher;
mod merge;
mod opening;
mod output;
mod overwritten;
mod removals;
mod scanner;
mod sorted_cells;
mod source;
mod stripes;
mod version;

pub(crate) use block_read::BlockRead;
pub(crate) use extract::{ForeignFile, extract};
pub(crate) use flush::{FlushTarget, Flushed, flush};
pub use load::{CopyJob, copy_file};
pub(crate) use merge::MergeCursor;
pub(crate) use opening::{ReadRows, missing_blocks};
pub(crate) use output::sync_names;
pub use output::{NewFile, WrittenFile};
pub(crate) use overwritten::overwritten;
pub(crate) use removals::Removals;
pub(crate) use scanner::{RowLimit, RowProgress, Sources, StoreScanner};
pub(crate) use sorted_cells::SortedCells;
pub(crate) use stripes::{Stripe, Stripes};
pub use version::Clip;
pub use version::StoreFile;
pub(crate) use version::{DamagedFile, StoreVersion};

/// A read point with its time: decides which cells a scan sees, and how far back flush and
/// compaction must keep them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadView {
    /// Edits up to here belong to it.
    pub read_point: SeqId,
    /// The time at which cells expire, in milliseconds.
    pub now_ms: i64,
    /// Decides on expiry for timestamps in the wall clock's future. Used by reads only: flushes and
    /// compactions keep such cells until the clock has reached them, since an older version would
    /// become visible if one were dropped.
    pub ahead: Ahead,
}

/// Where a read may look, and what it does where there is no memory for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In memory only. A block that is not there fails the read with [`Error::NotInMemory`](crate::Error).
    Memory,
    /// Anywhere. It waits for memory.
    Disk,
    /// Anywhere. Without memory it fails at once, since others wait for the caller: it holds the lock of a
    /// row, or reads ahead.
    DiskAtOnce,
}

impl Reach {
    /// The reach of a caller that holds no lock.
    pub(crate) fn of(tier: ReadTier) -> Self {
        match tier {
            ReadTier::All => Self::Disk,
            ReadTier::Memory => Self::Memory,
        }
    }

    /// The reach of a caller that holds the lock of the row. It does not wait for memory, because a network
    /// thread may be waiting for the lock.
    pub(crate) fn under_lock(tier: ReadTier) -> Self {
        match tier {
            ReadTier::All => Self::DiskAtOnce,
            ReadTier::Memory => Self::Memory,
        }
    }

    /// The treatment of a shortage of memory.
    pub(crate) fn on_shortage(self) -> OnShortage {
        match self {
            Self::Memory => OnShortage::Leave,
            Self::Disk => OnShortage::Wait,
            Self::DiskAtOnce => OnShortage::Refuse,
        }
    }
}

/// State shared by every store of the server.
#[derive(Clone, Debug)]
pub struct StoreContext {
    /// Where the files are.
    pub vfs: Arc<dyn Vfs>,
    /// Time, for the dates in file infos and for compaction's rate limit.
    pub clock: Arc<dyn Clock>,
    /// Block cache and counters.
    pub reader: ReaderContext,
    /// Memory of memstores that are gone.
    pub chunks: Arc<ChunkPool>,
    /// Obsolete files that are to be removed.
    pub removals: Arc<Removals>,
    /// Receives errors that no caller can receive, as when an obsolete file cannot be removed.
    pub listener: Arc<dyn EventListener>,
}

/// The directory of a table's store files of one family: `tables/<namespace>/<table>/<family>` below `root`.
pub(crate) fn store_dir(root: &Path, table: &TableName, family: &[u8]) -> PathBuf {
    table_dir(root, table).join(OsStr::from_bytes(family))
}

/// The directory of all of a table's files.
pub(crate) fn table_dir(root: &Path, table: &TableName) -> PathBuf {
    root.join("tables")
        .join(table.namespace())
        .join(table.qualifier())
}

/// The directory of a snapshot's links: `snapshots/<name>` below `root`.
pub(crate) fn snapshot_dir(root: &Path, snapshot: &str) -> PathBuf {
    root.join("snapshots").join(snapshot)
}

/// The directory of a snapshot's links to store files of one family:
/// `snapshots/<name>/<namespace>/<table>/<family>` below `root`.
pub(crate) fn snapshot_store_dir(root: &Path, snapshot: &str, table: &TableName, family: &[u8]) -> PathBuf {
    snapshot_dir(root, snapshot)
        .join(table.namespace())
        .join(table.qualifier())
        .join(OsStr::from_bytes(family))
}

/// The path of a store file in its directory.
pub(crate) fn file_path(dir: &Path, id: FileId) -> PathBuf {
    dir.join(id.to_string())
}

/// Makes sure that the directory of a family exists durably: creates missing levels and syncs each
/// level's parent.
pub(crate) fn create_store_dir(
    vfs: &dyn Vfs,
    root: &Path,
    table: &TableName,
    family: &[u8],
) -> Result<PathBuf> {
    create_dir(vfs, root, store_dir(root, table, family))
}

/// Makes sure that a directory somewhere below `root` is there for good.
pub(crate) fn create_dir(vfs: &dyn Vfs, root: &Path, dir: PathBuf) -> Result<PathBuf> {
    vfs.create_dir_all(&dir)
        .map_err(|source| Error::io("creating", &dir, source))?;
    for level in dir.ancestors().skip(1) {
        if !seeded::is_on("no-dir-sync-of-table") {
            vfs.sync_dir(level)
                .map_err(|source| Error::io("syncing", level, source))?;
        }
        if level == root {
            break;
        }
    }
    Ok(dir)
}

#[cfg(test)]
mod tests;
