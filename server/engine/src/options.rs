//! Settings of the engine: plain data, units in the names. Components (file system, clock) are arguments, not
//! settings.

pub use crate::schema::limits::Totals;
use std::time::Duration;

/// When an acknowledged write is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalSync {
    /// fdatasync before the answer: survives power loss. The default.
    Fsync,
    /// Handed to the operating system before the answer: survives kill -9, as HBase's hflush does.
    Os,
}

/// Where flushes, compactions and splits run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the engine.
    Threads,
    /// Nowhere until `Engine::run_pending` is called: simulation and deterministic tests.
    Manual,
}

/// How a table is treated whose options name code of users that this server does not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub enum UnknownUserCode {
    /// Refused, unless its `hbase.table.sanity.checks` is false.
    #[default]
    Refuse,
    /// Accepted, with a notice to the listener; the code does not run.
    Ignore,
}

/// All settings. `Default` has the values that `basalt serve` runs with.
#[derive(Clone, Debug)]
pub struct Options {
    /// When an acknowledged write is on disk.
    pub wal_sync: WalSync,
    /// A WAL segment is sealed and the next one begun at this size.
    pub wal_segment_bytes: u64,
    /// Longest time between the last group and the empty frame that states it durable.
    pub wal_idle_marker: Duration,
    /// While the disk keeps the log waiting for longer than this, new writes are refused.
    pub wal_stall: Duration,
    /// Size of a manifest's edits from which it is rewritten: this, or four times the size that it
    /// began with, whichever is larger.
    pub manifest_roll_bytes: u64,
    /// Limits of all tables, namespaces and snapshots together.
    pub totals: Totals,
    /// A region whose memstores hold more is flushed (HBase: `hbase.hregion.memstore.flush.size`).
    pub memstore_flush_bytes: u64,
    /// A region whose memstores hold this many times the flush size refuses writes (HBase:
    /// `memstore.block.multiplier`).
    pub memstore_block_multiplier: u64,
    /// All memstores together: above it writes are refused, from 80 % of it the largest region is flushed,
    /// from 90 % of it writes are slowed.
    pub memstore_total_bytes: u64,
    /// Block cache capacity.
    pub block_cache_bytes: u64,
    /// Whether point reads go past the system's page cache (RocksDB: `use_direct_reads`). Scans and
    /// compactions go through it.
    pub direct_reads: bool,
    /// Maximum number of store files that have a descriptor at a time, including those being
    /// written (RocksDB: `max_open_files`); with `direct_reads` a file counts twice. `usize::MAX`
    /// is no bound.
    pub max_open_files: usize,
    /// A store with a file set larger than this makes its region split (HBase: `hbase.hregion.max.filesize`).
    pub region_max_bytes: u64,
    /// Whether stores are compacted without being asked to (HBase: `hbase.regionserver.compaction.enabled`).
    pub compaction_enabled: bool,
    /// Fewest files of a minor compaction.
    pub compaction_min_files: usize,
    /// Most files of one compaction.
    pub compaction_max_files: usize,
    /// From this share of overwritten versions on, all files of a store, or of a stripe, are merged. 0: never
    /// for that reason.
    pub compaction_overwritten: f64,
    /// Exploring policy: a file may be at most this times the sum of the others.
    pub compaction_ratio: f64,
    /// Files that are smaller than this together are always eligible. HBase uses the flush size.
    pub compaction_min_bytes: u64,
    /// From this many files of the same rows in a store on, flushes wait for compaction (HBase:
    /// `hbase.hstore.blockingStoreFiles`).
    pub compaction_blocking_files: usize,
    /// Smallest size of a stripe: a store of twice that size is cut by rows into stripes, each compacted
    /// by itself (HBase: `StripeStoreEngine`). 0: no store is.
    pub compaction_stripe_bytes: u64,
    /// Maximum number of stripes of a store, at least 2: a large one has larger stripes.
    pub compaction_stripes_max: u64,
    /// Bytes that all compactions together write in a second; 0 is unlimited.
    pub compaction_max_bytes_per_second: u64,
    /// Age from which a store is compacted into one file; zero turns time-based major compaction off.
    pub compaction_major_period: Duration,
    /// Threads for flushes.
    pub flush_threads: usize,
    /// Threads for short compactions and splits.
    pub compaction_threads: usize,
    /// Threads for long compactions.
    pub compaction_long_threads: usize,
    /// Maximum number of threads that read blocks for batches of gets, all batches together. They are
    /// started when they are needed. 0: each batch reads its blocks one after the other.
    pub read_threads: usize,
    /// A compaction that reads this many bytes is long (HBase:
    /// `hbase.regionserver.thread.compaction.throttle`, with the same default: twice the flush size
    /// for each of the most files).
    pub compaction_long_bytes: u64,
    /// Bytes of the file system to be kept free, besides those that flushing the memstores needs:
    /// with less, writes are refused. 0: writes are refused only when the log gets no space.
    pub disk_reserve_bytes: u64,
    /// Longest wait for a row's lock.
    pub row_lock_wait: Duration,
    /// Largest cell: row, family, qualifier and value together (HBase: `hbase.server.keyvalue.maxsize`). 0 is
    /// unlimited.
    pub cell_max_bytes: usize,
    /// Largest row that one read may collect (HBase: `hbase.table.max.rowsize`).
    pub row_max_bytes: usize,
    /// Maximum number of nonces that are kept; beyond it the oldest are dropped before they expire. Each
    /// takes up to `engine::NONCE_BYTES`.
    pub nonces_max: usize,
    /// How tables are treated that name code of users which this server does not run.
    #[doc(hidden)]
    pub unknown_user_code: UnknownUserCode,
    /// Where background work runs.
    pub background: Background,
}

impl Default for Options {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            wal_sync: WalSync::Fsync,
            wal_segment_bytes: 32 * MIB,
            wal_idle_marker: Duration::from_millis(100),
            wal_stall: Duration::from_secs(5),
            manifest_roll_bytes: MIB,
            totals: Totals::DEFAULT,
            memstore_flush_bytes: 128 * MIB,
            memstore_block_multiplier: 4,
            memstore_total_bytes: 1024 * MIB,
            block_cache_bytes: 1024 * MIB,
            direct_reads: false,
            max_open_files: usize::MAX,
            region_max_bytes: 10 * 1024 * MIB,
            compaction_enabled: true,
            compaction_min_files: 3,
            compaction_max_files: 10,
            compaction_overwritten: 0.2,
            compaction_ratio: 1.2,
            compaction_min_bytes: 128 * MIB,
            compaction_blocking_files: 16,
            compaction_stripe_bytes: 64 * MIB,
            compaction_stripes_max: 32,
            compaction_max_bytes_per_second: 0,
            compaction_major_period: Duration::from_hours(7 * 24),
            flush_threads: 1,
            compaction_threads: 1,
            compaction_long_threads: 1,
            read_threads: 16,
            compaction_long_bytes: 2 * 10 * 128 * MIB,
            disk_reserve_bytes: 256 * MIB,
            row_lock_wait: Duration::from_secs(30),
            cell_max_bytes: 10 << 20,
            row_max_bytes: 1 << 30,
            nonces_max: 1 << 20,
            unknown_user_code: UnknownUserCode::Refuse,
            background: Background::Threads,
        }
    }
}
