//! Memory of all memstores of an engine: how much is in use, and what is kept of memstores that are
//! gone for those that come.
//!
//! Every flush replaces a memstore. Were its memory given back and taken anew, the operating system would
//! have to fill every page with zeros first, which nobody needs: a fifth of the server's time under batches
//! of puts (docs/decisions/0005-arena-skiplist.md). So chunks of the full size go into this pool, and arenas
//! that grow look here first. (HBase has such a pool, too: `ChunkCreator`.)
//!
//! 1. An arena that is dropped gives its chunks ([`ChunkPool::give`]); an arena that grows takes one
//!    ([`ChunkPool::take`]).
//! 2. Once a minute the ticker gives back to the system what nobody has needed for that long
//!    ([`ChunkPool::trim`]), and at once everything when memory is short ([`ChunkPool::clear`]).
//!
//! Arenas charge each chunk as they take it, overhead included: to the bytes in use, or to the pinned bytes
//! once the memstore has left its region. An arena's charge is released when it is dropped.
//!
//! Invariant: at most so many chunks are kept as the pool was made for. They count as nobody's memstore.

use super::memory::{CHUNK_MAX_BYTES, Memory};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Chunks of the full size that are not in use, and the bytes of those that are. Shared by all memstores of
/// an engine. The default one keeps nothing.
#[derive(Default)]
pub struct ChunkPool {
    most: usize,
    kept: Mutex<Kept>,
    /// Bytes of the memstores of regions.
    used_bytes: AtomicU64,
    /// Bytes of memstores that have left their region and are still read.
    pinned_bytes: AtomicU64,
}

#[derive(Default)]
struct Kept {
    chunks: Vec<Memory>,
    /// The fewest that there were since the last trim: so many nobody needed.
    least: usize,
}

impl ChunkPool {
    /// An empty pool that will keep so many bytes.
    pub fn new(most_bytes: u64) -> Self {
        Self {
            most: usize::try_from(most_bytes / CHUNK_MAX_BYTES as u64).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// Bytes of the memstores of regions.
    pub fn used_bytes(&self) -> u64 {
        self.charged(false).load(Ordering::Relaxed)
    }

    /// Bytes of memstores that have left their region and that open scans still hold: no limit counts them.
    pub fn pinned_bytes(&self) -> u64 {
        self.charged(true).load(Ordering::Relaxed)
    }

    /// The bytes that pinned arenas are charged to, or those of regions.
    pub(super) fn charged(&self, is_pinned: bool) -> &AtomicU64 {
        if is_pinned {
            &self.pinned_bytes
        } else {
            &self.used_bytes
        }
    }

    /// A chunk of [`CHUNK_MAX_BYTES`], if there is one. What is in it is not initialised.
    pub(super) fn take(&self) -> Option<Memory> {
        let mut kept = self.kept.lock();
        let mut chunk = kept.chunks.pop()?;
        kept.least = kept.least.min(kept.chunks.len());
        drop(kept);
        chunk.mark_uninitialized();
        Some(chunk)
    }

    /// Keeps a chunk for others, if it is of the right size and there is room.
    pub(super) fn give(&self, chunk: Memory) {
        if chunk.len() != CHUNK_MAX_BYTES {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.chunks.len() < self.most {
            kept.chunks.push(chunk);
        }
    }

    /// Bytes kept.
    pub fn bytes(&self) -> u64 {
        (self.kept.lock().chunks.len() * CHUNK_MAX_BYTES) as u64
    }

    /// Gives back what nobody has needed since the last call.
    pub fn trim(&self) {
        let mut kept = self.kept.lock();
        let needed = kept.chunks.len() - kept.least;
        let unneeded = kept.chunks.split_off(needed);
        kept.least = needed;
        drop(kept);
        drop(unneeded);
    }

    /// Gives back everything.
    pub fn clear(&self) {
        let mut kept = self.kept.lock();
        let all = std::mem::take(&mut kept.chunks);
        kept.least = 0;
        drop(kept);
        drop(all);
    }
}

impl std::fmt::Debug for ChunkPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkPool")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cell::{Cell, CellCursor, CellType, KeyBuf};
    use crate::id::SeqId;
    use crate::memstore::Memstore;
    use crate::memstore::arena::{Arena, FIRST_CHUNK_BYTES};

    const CHUNK: u64 = CHUNK_MAX_BYTES as u64;

    /// An arena with so many chunks of the full size, and the smaller ones that come first.
    fn arena(pool: &Arc<ChunkPool>, chunks: u64) -> Arena {
        let arena = Arena::new(Arc::clone(pool));
        // The smaller ones together lack the first of them to be as large as one.
        while arena.bytes() < (chunks + 1) * CHUNK - FIRST_CHUNK_BYTES as u64 {
            arena.allocate(FIRST_CHUNK_BYTES / 4);
        }
        arena
    }

    #[test]
    fn full_chunks_come_back_up_to_a_limit() {
        let pool = Arc::new(ChunkPool::new(4 * CHUNK + 1));
        drop(arena(&pool, 2));
        assert_eq!(pool.bytes(), 2 * CHUNK);
        let (first, second) = (arena(&pool, 1), arena(&pool, 3));
        assert_eq!(pool.bytes(), 0);
        drop((first, second));
        assert_eq!(pool.bytes(), 4 * CHUNK);
        drop(arena(&pool, 6));
        assert_eq!(pool.bytes(), 4 * CHUNK);
        pool.clear();
        assert_eq!(pool.bytes(), 0);
        drop(arena(&Arc::default(), 3));
    }

    /// A chunk from the pool is used whole, and the others are where they were.
    #[test]
    fn a_chunk_is_used_again() {
        let pool = Arc::new(ChunkPool::new(CHUNK));
        pool.give(Memory::allocate(CHUNK_MAX_BYTES));
        pool.give(Memory::allocate(CHUNK_MAX_BYTES / 2));
        assert_eq!(pool.bytes(), CHUNK);
        let memory = pool.take().expect("one was given");
        let start = memory.start();
        assert_eq!((memory.len(), pool.bytes()), (CHUNK_MAX_BYTES, 0));
        pool.give(memory);
        assert_eq!(pool.take().expect("it is there again").start(), start);
        assert!(pool.take().is_none());
    }

    #[test]
    fn chunks_that_no_trim_needed_are_freed() {
        let pool = Arc::new(ChunkPool::new(8 * CHUNK));
        drop(arena(&pool, 5));
        pool.trim();
        assert_eq!(pool.bytes(), 5 * CHUNK, "they have just come");
        // Three at a time are in use, and come back.
        for _ in 0..2 {
            drop(arena(&pool, 3));
        }
        pool.trim();
        assert_eq!(pool.bytes(), 3 * CHUNK);
        pool.trim();
        assert_eq!(pool.bytes(), 0, "nobody came");
        pool.trim();
    }

    /// Nothing of the memstore before shows.
    #[test]
    fn a_memstore_on_used_memory_has_its_own_cells_only() {
        let pool = Arc::new(ChunkPool::new(2 * CHUNK));
        for round in [b'a', b'b'] {
            let memstore = Arc::new(Memstore::new(Arc::clone(&pool)));
            let mut written = Vec::new();
            for number in (0_u32..).step_by(7) {
                if memstore.bytes() > 3 * CHUNK {
                    break;
                }
                let row = [&[round][..], &number.reverse_bits().to_be_bytes()].concat();
                memstore.insert(Cell {
                    key: KeyBuf::new(&row, b"f", b"q", 1, CellType::Put).as_key(),
                    value: &[round; 100],
                    tags: b"",
                    seq: SeqId(1),
                });
                written.push(row);
            }
            written.sort_unstable();
            let mut cursor = memstore.cursor();
            cursor.seek(KeyBuf::first_on_row(b"", b"f").as_key()).unwrap();
            for row in written {
                let cell = cursor.cell().expect("as many as were written");
                assert_eq!((cell.key.row(), cell.value), (&row[..], &[round; 100][..]));
                cursor.advance().unwrap();
            }
            assert!(cursor.cell().is_none());
        }
        assert_eq!(pool.bytes(), 2 * CHUNK);
    }
}
