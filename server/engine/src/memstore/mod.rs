//! The memstore: one family's newest cells of one region, sorted, in memory.
//!
//! 1. Commits insert cells, from many threads at once; scans and gets read them through cursors at the same
//!    time.
//! 2. A flush freezes the memstore (the store puts an empty one in its place) and writes its cells to a store
//!    file in order.
//! 3. The last cursor that stands in it drops it, and all its memory goes at once. Until then its memory is
//!    counted as pinned ([`Memstore::pin`]).
//!
//! The cells lie in order in an [`index`], on chunks of memory ([`arena`], [`memory`]). Chunks of memstores
//! that are gone are used again ([`pool`]). All `unsafe` is in the index, the arena, the memory and
//! [`prefetch`](mod@prefetch).
//!
//! Invariants: cells are never changed, moved or removed. A cell is visible to every cursor as soon as
//! `insert` has returned; which cells a reader may see is decided above, by sequence id. No lock is held
//! while a cursor moves or reads.

mod arena;
mod index;
mod memory;
#[cfg(all(test, loom))]
mod model;
mod pool;
mod prefetch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use self::index::{Bound, Iter, NodeRef, SkipList};
pub(crate) use self::pool::ChunkPool;
pub(crate) use self::prefetch::prefetch;
use crate::Result;
use crate::cell::{Cell, CellCursor, Key};
use crate::id::SeqId;
use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// How many cells `seek_forward` steps over before it searches from the top. A search in a large memstore
/// costs about as much as this many steps.
const STEPS_MAX: usize = 5;

/// Figures about all cells together.
#[derive(Debug)]
struct Totals {
    cells: AtomicU64,
    data_bytes: AtomicU64,
    min_seq: AtomicU64,
    max_seq: AtomicU64,
    min_timestamp: AtomicI64,
    max_timestamp: AtomicI64,
}

/// A sorted, concurrent buffer of cells that only grows.
///
/// Any number of threads insert and read at once; a cell, once inserted, stays at its address until the
/// memstore is dropped as a whole. Two cells may have equal keys as long as their sequence ids differ.
#[derive(Debug)]
pub struct Memstore {
    /// Shared with cursors.
    list: Arc<SkipList>,
    totals: CachePadded<Totals>,
    /// Monotonic milliseconds at which the first cell was seen, plus one; 0: none yet.
    dirty_since_ms: AtomicU64,
}

impl Default for Memstore {
    /// With a pool of its own that keeps nothing.
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl Memstore {
    /// An empty memstore. It takes memory for cells when the first one comes, from that pool if it has some.
    pub fn new(pool: Arc<ChunkPool>) -> Self {
        Self {
            list: Arc::new(SkipList::new(pool)),
            totals: CachePadded::new(Totals {
                cells: AtomicU64::new(0),
                data_bytes: AtomicU64::new(0),
                min_seq: AtomicU64::new(u64::MAX),
                max_seq: AtomicU64::new(0),
                min_timestamp: AtomicI64::new(i64::MAX),
                max_timestamp: AtomicI64::new(i64::MIN),
            }),
            dirty_since_ms: AtomicU64::new(0),
        }
    }

    /// Adds a cell (key, value and tags are copied into the arena).
    /// REQUIRES: (key, sequence id) was not inserted before. If it was, both are kept and the later one comes
    /// first.
    pub fn insert(&self, cell: Cell<'_>) {
        self.insert_all(&[cell]);
    }

    /// Adds cells. Faster than single inserts if they are near each other, and most so in order.
    /// REQUIRES: what [`Self::insert`] does, for each of them.
    pub fn insert_all(&self, cells: &[Cell<'_>]) {
        // Before the cells can be found, so that a reader that skips this memstore by its time range cannot
        // miss one.
        self.totals.add(cells);
        self.list.insert_all(cells);
    }

    /// An empty memstore that shares the pool.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self::new(Arc::clone(self.list.pool()))
    }

    /// Notes that its region no longer has it: from now on its memory counts as pinned by readers.
    pub(crate) fn pin(&self) {
        self.list.pin();
    }

    /// Notes the time at which it began to hold cells, if that is now; `now_ms` is monotonic.
    pub(crate) fn note_dirty(&self, now_ms: impl Fn() -> u64) {
        if self.dirty_since_ms.load(Ordering::Relaxed) == 0 && self.cell_count() > 0 {
            // If another thread was first, its time is as good.
            let _ =
                self.dirty_since_ms
                    .compare_exchange(0, now_ms() + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The time that [`Self::note_dirty`] noted.
    pub(crate) fn dirty_since_ms(&self) -> Option<u64> {
        self.dirty_since_ms.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Bytes held: arena chunks, whole from the moment they are taken, overhead included. 0 when nothing was
    /// inserted.
    pub fn bytes(&self) -> u64 {
        self.list.bytes()
    }

    /// Bytes of keys, values and tags.
    pub fn data_bytes(&self) -> u64 {
        self.totals.data_bytes.load(Ordering::Relaxed)
    }

    /// Number of cells.
    pub fn cell_count(&self) -> u64 {
        self.totals.cells.load(Ordering::Acquire)
    }

    /// Smallest sequence id inserted.
    pub(crate) fn min_seq(&self) -> Option<SeqId> {
        (self.cell_count() > 0).then(|| SeqId(self.totals.min_seq.load(Ordering::Relaxed)))
    }

    /// Greatest sequence id inserted.
    pub fn max_seq(&self) -> Option<SeqId> {
        (self.cell_count() > 0).then(|| SeqId(self.totals.max_seq.load(Ordering::Relaxed)))
    }

    /// Smallest and greatest timestamp inserted.
    pub fn time_range(&self) -> Option<(i64, i64)> {
        let range = || {
            let min = self.totals.min_timestamp.load(Ordering::Relaxed);
            (min, self.totals.max_timestamp.load(Ordering::Relaxed))
        };
        (self.cell_count() > 0).then(range)
    }

    /// A cursor over all cells, also those inserted after this call; it keeps the cells alive.
    pub fn cursor(self: &Arc<Self>) -> MemstoreCursor {
        MemstoreCursor {
            iter: Iter::new(Arc::clone(&self.list)),
            sought: false,
        }
    }
}

impl Totals {
    fn add(&self, cells: &[Cell<'_>]) {
        if cells.is_empty() {
            return;
        }
        let mut bytes = 0;
        let (mut min_seq, mut max_seq) = (u64::MAX, 0);
        let (mut min_timestamp, mut max_timestamp) = (i64::MAX, i64::MIN);
        for cell in cells {
            bytes += cell.key.bytes().len() + cell.value.len() + cell.tags.len();
            min_seq = min_seq.min(cell.seq.0);
            max_seq = max_seq.max(cell.seq.0);
            min_timestamp = min_timestamp.min(cell.key.timestamp());
            max_timestamp = max_timestamp.max(cell.key.timestamp());
        }
        self.data_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        // Extremes rarely change, and looking is cheaper than an atomic update.
        if min_seq < self.min_seq.load(Ordering::Relaxed) {
            self.min_seq.fetch_min(min_seq, Ordering::Relaxed);
        }
        if max_seq > self.max_seq.load(Ordering::Relaxed) {
            self.max_seq.fetch_max(max_seq, Ordering::Relaxed);
        }
        if min_timestamp < self.min_timestamp.load(Ordering::Relaxed) {
            self.min_timestamp.fetch_min(min_timestamp, Ordering::Relaxed);
        }
        if max_timestamp > self.max_timestamp.load(Ordering::Relaxed) {
            self.max_timestamp.fetch_max(max_timestamp, Ordering::Relaxed);
        }
        // Last, and Release: who reads a count above 0 reads extremes that are set.
        self.cells.fetch_add(cells.len() as u64, Ordering::Release);
    }
}

/// Walks a memstore. Cells that are inserted ahead of it while it walks are met.
pub struct MemstoreCursor {
    iter: Iter,
    /// Whether it has been placed at all: standing nowhere is different from standing past the end.
    sought: bool,
}

impl CellCursor for MemstoreCursor {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        self.iter.node().map(NodeRef::cell)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.iter.step();
        Ok(())
    }

    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        self.sought = true;
        self.iter.seek(&Bound::key(target));
        Ok(())
    }

    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        if !self.sought {
            return self.seek(target);
        }
        let bound = Bound::key(target);
        for _ in 0..STEPS_MAX {
            if self.iter.node().is_none_or(|node| !node.is_before(&bound)) {
                return Ok(());
            }
            self.iter.step();
        }
        self.iter.seek(&bound);
        Ok(())
    }

    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        self.sought = true;
        self.iter.seek_row_before(&Bound::row(row));
        Ok(())
    }

    fn seek_last_row(&mut self) -> Result<()> {
        self.sought = true;
        self.iter.seek_row_before(&Bound::END);
        Ok(())
    }
}

impl fmt::Debug for MemstoreCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemstoreCursor")
            .field("cell", &self.cell())
            .finish_non_exhaustive()
    }
}
