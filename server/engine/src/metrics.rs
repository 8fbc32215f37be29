//! The engine's counters, and the events that it reports to an observer.
//!
//! Two interfaces, neither with a metrics library: [`Counters`] are plain atomics that the server
//! reads when it is scraped, and [`EventListener`] is called once per event that has a duration or
//! a size (as RocksDB's `EventListener`).

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::id::{RegionId, SeqId};
use crate::schema::TableName;

thread_local! {
    /// Bytes of blocks that this thread has read because they were not in the block cache.
    static DISK_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Adds bytes of blocks to the sum of this thread.
pub(crate) fn add_disk_bytes(bytes: u64) {
    DISK_BYTES.set(DISK_BYTES.get().wrapping_add(bytes));
}

/// Bytes of blocks that calls on this thread have read because they were not in the block cache, since
/// the thread began. The difference around a call is what it has read.
pub fn disk_bytes_of_thread() -> u64 {
    DISK_BYTES.get()
}

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The sum so far.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A [`Counter`] for frequent use by several threads: each adds to a part that few others share.
/// Takes 64 or 128 bytes for each part, so it is for counts of every read or write.
#[derive(Debug, Default)]
pub struct BusyCounter([CachePadded<AtomicU64>; COUNTER_PARTS]);

/// Parts of a [`BusyCounter`].
const COUNTER_PARTS: usize = 8;

thread_local! {
    /// The part that this thread adds to.
    static COUNTER_PART: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % COUNTER_PARTS
    };
}

impl BusyCounter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    #[inline]
    pub fn add(&self, count: u64) {
        // An ending thread may have no number any more.
        let part = COUNTER_PART.try_with(|part| *part).unwrap_or_default();
        self.0[part].fetch_add(count, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.iter().map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

/// Engine-wide counters. Those of a region or of the cache live with the region and the cache.
#[derive(Debug, Default)]
pub struct Counters {
    /// Edits appended to the WAL.
    pub wal_appends: BusyCounter,
    /// Bytes written to the WAL, framing included.
    pub wal_bytes: Counter,
    /// Groups written to the WAL.
    pub wal_groups: Counter,
    /// fdatasync calls on the WAL.
    pub wal_syncs: Counter,
    /// Bloom filters asked.
    pub bloom_checks: BusyCounter,
    /// Files left out of a read because their bloom filter said no.
    pub bloom_skips: BusyCounter,
    /// Files read although they did not hold the row: the bloom filter was wrong.
    pub bloom_false_positives: Counter,
    /// Blocks read for batches of gets, ahead of the gets that need them.
    pub blocks_read_ahead: Counter,
    /// Number of times that damage was found in an open store file.
    pub damaged_reads: Counter,
    /// Flushes that wrote a file.
    pub flushes: Counter,
    /// Flushes that failed and will be tried again.
    pub flush_failures: Counter,
    /// Bytes of store files written by flushes.
    pub flush_bytes: Counter,
    /// Minor compactions done.
    pub minor_compactions: Counter,
    /// Major compactions done.
    pub major_compactions: Counter,
    /// Compactions that failed and will be tried again.
    pub compaction_failures: Counter,
    /// Bytes of store files read by compactions.
    pub compaction_read_bytes: Counter,
    /// Bytes of store files written by compactions.
    pub compaction_written_bytes: Counter,
    /// Region splits done.
    pub splits: Counter,
    /// Region merges done.
    pub merges: Counter,
    /// Writes that were delayed because memstores were close to a limit.
    pub delayed_writes: Counter,
    /// Writes refused because a memstore limit was reached.
    pub blocked_writes: Counter,
    /// Writes refused because the disk had too little space.
    pub suspended_writes: Counter,
    /// Writes refused because the disk keeps the log waiting.
    pub stalled_writes: Counter,
    /// Edits appended to the manifest.
    pub manifest_appends: Counter,
}

/// Figures of a finished flush.
#[derive(Clone, Debug)]
pub struct FlushEvent {
    /// The table.
    pub table: TableName,
    /// The region.
    pub region: RegionId,
    /// Cells written to store files, over all families.
    pub cells: u64,
    /// Bytes of the store files.
    pub written_bytes: u64,
    /// Every edit of the region up to here is in store files now.
    pub flushed: SeqId,
    /// From freezing the memstores to the published version.
    pub took: Duration,
}

/// Figures of a finished compaction.
#[derive(Clone, Debug)]
pub struct CompactionEvent {
    /// The table.
    pub table: TableName,
    /// The region.
    pub region: RegionId,
    /// The family.
    pub family: String,
    /// Whether all files took part.
    pub major: bool,
    /// Input files.
    pub files: usize,
    /// Bytes of the input files.
    pub read_bytes: u64,
    /// Bytes of the output file; 0 when nothing survived.
    pub written_bytes: u64,
    /// From choosing to the published version.
    pub took: Duration,
}

/// Receives events as they happen, on the thread that did the work: implementations return quickly
/// and never call back.
pub trait EventListener: Send + Sync + Debug + 'static {
    /// A WAL group of `edits` edits and `bytes` bytes was written; `synced` is the duration of its
    /// fdatasync, if there was one.
    fn wal_group(&self, edits: usize, bytes: usize, synced: Option<Duration>) {
        let _ = (edits, bytes, synced);
    }
    /// A flush succeeded.
    fn flushed(&self, event: &FlushEvent) {
        let _ = event;
    }
    /// A compaction succeeded.
    fn compacted(&self, event: &CompactionEvent) {
        let _ = event;
    }
    /// A background job failed; it will be tried again.
    fn background_error(&self, during: &'static str, error: &crate::Error) {
        let _ = (during, error);
    }
    /// The disk has too little space: from now on writes are refused.
    fn writes_suspended(&self, why: &str) {
        let _ = why;
    }
    /// Writes are accepted again, after that time.
    fn writes_resumed(&self, after: Duration) {
        let _ = after;
    }
    /// The wall clock is behind assigned time by more than a second. Called at most once in ten
    /// minutes.
    fn clock_behind(&self, what: &str) {
        let _ = what;
    }
    /// The wall clock has caught up with assigned time.
    fn clock_caught_up(&self) {}
    /// An event for the operator that no metric shows, such as "torn tail of segment 3 cut at byte
    /// 4096".
    fn notice(&self, message: &str) {
        let _ = message;
    }
}

/// Listens to nothing.
#[derive(Debug)]
pub struct NoListener;

impl EventListener for NoListener {}

#[cfg(test)]
mod tests {
    use super::*;

    /// More threads than parts, so that some share one.
    #[test]
    fn a_busy_counter_has_what_all_threads_added() {
        const THREADS: usize = 2 * COUNTER_PARTS + 1;
        let counter = BusyCounter::default();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..1_000).for_each(|_| counter.increment()));
            }
        });
        counter.add(5);
        assert_eq!(counter.get(), THREADS as u64 * 1_000 + 5);
    }
}
