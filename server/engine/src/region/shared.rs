//! State shared by all regions of a server.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::clock::{Clock, Timestamps};
use crate::disk::DiskSpace;
use crate::error::Result;
use crate::id::FileId;
use crate::jobs::JobLog;
use crate::metrics::{Counters, EventListener};
use crate::nonces::Nonces;
use crate::options::Options;
use crate::region::{ReadPoints, Region, RegionDirectory, RegionGate, RowLocks};
use crate::schema::{Durability, TableName};
use crate::store::{ReadView, StoreContext};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wal::{Logging, Wal};

/// The server around the regions: log, clocks, locks, limits. One for each open engine.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The data directory.
    pub dir: PathBuf,
    /// Settings.
    pub options: Options,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Issues cell timestamps.
    pub timestamps: Timestamps,
    /// The log: sequence ids and the read point.
    pub wal: Arc<Wal>,
    /// The context for opening and writing store files.
    pub store: StoreContext,
    /// Engine-wide counters.
    pub counters: Arc<Counters>,
    /// Told of events.
    pub listener: Arc<dyn EventListener>,
    /// Flushes and compactions, for people to look at.
    pub jobs: JobLog,
    /// Space on the disk, and whether writes are suspended for want of it.
    pub disk: DiskSpace,
    /// All row locks.
    pub row_locks: RowLocks,
    /// Operations that must not be applied again.
    pub nonces: Nonces,
    /// Read views of open scans.
    pub read_points: Arc<ReadPoints>,
    /// Grows whenever a region has released memstores or files that readers may still pin.
    pub releases: AtomicU64,
    /// Locates regions for `hbase:meta`.
    pub directory: OnceLock<Arc<dyn RegionDirectory>>,
    /// Refuses data calls on some regions.
    pub gate: OnceLock<Arc<dyn RegionGate>>,
    /// The next store file's identity.
    next_file: AtomicU64,
}

impl Shared {
    /// Everything together; `next_file` comes from the manifest.
    #[expect(
        clippy::too_many_arguments,
        reason = "called in one place, which makes all of these"
    )]
    pub(crate) fn new(
        dir: PathBuf,
        options: Options,
        clock: Arc<dyn Clock>,
        timestamps: Timestamps,
        wal: Arc<Wal>,
        store: StoreContext,
        counters: Arc<Counters>,
        listener: Arc<dyn EventListener>,
        nonces: Nonces,
        next_file: u64,
    ) -> Self {
        Self {
            disk: DiskSpace::new(Arc::clone(&store.vfs), dir.clone(), options.disk_reserve_bytes),
            dir,
            options,
            jobs: JobLog::new(Arc::clone(&clock)),
            clock,
            timestamps,
            wal,
            store,
            counters,
            listener,
            row_locks: RowLocks::default(),
            nonces,
            read_points: Arc::default(),
            releases: AtomicU64::new(0),
            directory: OnceLock::new(),
            gate: OnceLock::new(),
            next_file: AtomicU64::new(next_file),
        }
    }

    /// Refuses a data call on a region that the gate keeps closed.
    pub(crate) fn check_gate(&self, region: &Region) -> Result<()> {
        match self.gate.get() {
            None => Ok(()),
            Some(gate) => gate.check(region.info()),
        }
    }

    /// Bytes of the memstores of all regions.
    pub(crate) fn memstore_bytes(&self) -> u64 {
        self.store.chunks.used_bytes()
    }

    /// An identity for a new store file.
    pub(crate) fn next_file(&self) -> FileId {
        FileId(self.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// Wall-clock milliseconds as cells have them.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.wall_ms() as i64
    }

    /// The present time for a get, up to 10 ms late.
    pub(crate) fn coarse_now_ms(&self) -> i64 {
        self.clock.coarse_wall_ms() as i64
    }

    /// The read view of now.
    pub(crate) fn read_view(&self) -> ReadView {
        ReadView {
            read_point: self.wal.read_point(),
            now_ms: self.now_ms(),
            ahead: self.timestamps.ahead(),
        }
    }

    /// The earliest read point that a flush or compaction of the table must preserve.
    pub(crate) fn horizon(&self, table: &TableName) -> ReadView {
        self.read_points.horizon(table, || self.read_view())
    }

    /// Monotonic milliseconds.
    pub(crate) fn mono_ms(&self) -> u64 {
        self.clock.mono().as_millis() as u64
    }

    /// Longest time an edit stays in memory only (HBase: `hbase.regionserver.optionalcacheflushinterval`).
    pub(crate) const PERIODIC_FLUSH: Duration = Duration::from_hours(1);
}

/// How an edit of this durability goes through the log: its own, else its table's, else synced.
pub(crate) fn logging_of(durability: Durability, of_table: Durability) -> Logging {
    let effective = match durability {
        Durability::UseDefault => of_table,
        own => own,
    };
    match effective {
        Durability::SkipWal => Logging::Skip,
        Durability::AsyncWal => Logging::Async,
        Durability::FsyncWal => Logging::Fsync,
        Durability::UseDefault | Durability::SyncWal => Logging::Sync,
    }
}

/// The stronger of two: a batch is one edit, written with the strongest durability that one of its rows asks
/// for.
pub(crate) fn stronger(left: Logging, right: Logging) -> Logging {
    let strength = |logging| match logging {
        Logging::Skip => 0,
        Logging::Async => 1,
        Logging::Sync => 2,
        Logging::Fsync => 3,
    };
    if strength(left) >= strength(right) {
        left
    } else {
        right
    }
}
