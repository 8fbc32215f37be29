//! Memory for the cells of one memstore: taken in chunks, handed out by bumping an offset, given back all at
//! once.
//!
//! ```text
//! current --> chunk: [ cell | cell | cell | ....free.... ]     64 KiB first, each next one twice as large, up to 2 MiB
//!             chunk: [ cell | cell | cell | cell | unused ]
//!             chunk: [ one large cell ]                        more than a quarter of the next chunk: a chunk of its own
//! ```
//!
//! A caller with several things to allocate takes [`Room`] for all of them at once: threads that insert side
//! by side then meet at the offset less often.
//!
//! Any thread may allocate at any time. Two threads never get overlapping memory, since each owns what its
//! `fetch_add` on the chunk's offset covers. A lock is taken only to add a chunk. Chunks of 2 MiB come from a
//! [`ChunkPool`] and go back there.
//!
//! Invariant: memory that was handed out stays where it is and is not freed before the arena is dropped.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::memory::{ALIGN, CHUNK_MAX_BYTES, Memory};
use super::pool::ChunkPool;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Small, because a server has many stores and most of them receive few writes.
pub(super) const FIRST_CHUNK_BYTES: usize = if cfg!(any(miri, loom)) { 1 << 10 } else { 64 << 10 };

/// Room is taken in pieces of at most this size, which even the first chunk has place for.
const ROOM_BYTES: usize = FIRST_CHUNK_BYTES / 4;

/// More than this is allocated by itself, so that little is left over of a piece that the next allocation
/// does not fit into.
const IN_ROOM_MAX_BYTES: usize = ROOM_BYTES / if cfg!(any(miri, loom)) { 2 } else { 32 };

struct Chunk {
    memory: Memory,
    /// Where free memory starts. Goes past the end when an allocation does not fit any more.
    used: AtomicUsize,
}

/// Bytes that a chunk takes besides those for cells.
const CHUNK_OVERHEAD_BYTES: usize = size_of::<Chunk>() + size_of::<NonNull<Chunk>>();

impl Chunk {
    /// Leaked from a box: both `current` and the list point to it. The first `used` bytes are taken.
    fn new(memory: Memory, used: usize) -> NonNull<Self> {
        let used = AtomicUsize::new(used);
        NonNull::from(Box::leak(Box::new(Self { memory, used })))
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        // Relaxed: only the exclusive range matters. What is written there is published by whoever links it.
        let start = self.used.fetch_add(bytes, Ordering::Relaxed);
        let end = start.checked_add(bytes)?;
        // SAFETY: start is inside the chunk's memory, since end is not past it.
        (end <= self.memory.len()).then(|| unsafe { self.memory.start().add(start) })
    }
}

struct Chunks {
    all: Vec<NonNull<Chunk>>,
    /// Size of the next regular chunk.
    next_bytes: usize,
    /// Whether the pool counts the chunks as pinned.
    is_pinned: bool,
}

/// Chunks and the bump pointer.
pub(super) struct Arena {
    /// The chunk to allocate from; null before the first allocation. Points to one of `chunks`.
    current: AtomicPtr<Chunk>,
    chunks: Mutex<Chunks>,
    /// Where chunks of the full size come from, and go.
    pool: Arc<ChunkPool>,
    /// Bytes of all chunks, overhead included.
    bytes: AtomicU64,
}

// SAFETY: the arena owns its chunks; the pointers in it are not tied to a thread.
unsafe impl Send for Arena {}
// SAFETY: shared access goes through atomics and the lock; chunks are freed only in `drop`, which has
// exclusive access.
unsafe impl Sync for Arena {}

impl Arena {
    /// Takes no memory before the first allocation.
    pub(super) fn new(pool: Arc<ChunkPool>) -> Self {
        Self {
            pool,
            current: AtomicPtr::new(ptr::null_mut()),
            chunks: Mutex::new(Chunks {
                all: Vec::new(),
                next_bytes: FIRST_CHUNK_BYTES,
                is_pinned: false,
            }),
            bytes: AtomicU64::new(0),
        }
    }

    /// Where its large chunks come from.
    pub(super) fn pool(&self) -> &Arc<ChunkPool> {
        &self.pool
    }

    /// Bytes of all chunks, overhead included.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Charges all chunks as pinned from now on.
    pub(super) fn pin(&self) {
        let mut chunks = self.chunks.lock();
        if !std::mem::replace(&mut chunks.is_pinned, true) {
            self.pool.charged(true).fetch_add(self.bytes(), Ordering::Relaxed);
            self.pool
                .charged(false)
                .fetch_sub(self.bytes(), Ordering::Relaxed);
        }
    }

    /// Uninitialised memory of `bytes` bytes (rounded up to [`ALIGN`]) that belongs to the caller alone until
    /// the arena is dropped.
    /// REQUIRES: `bytes` is not 0.
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        loop {
            // Acquire pairs with the Release in `grow`: the chunk's fields are visible.
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: `current` is null or points to a chunk in the list, and chunks live as long as the
            // arena.
            if let Some(chunk) = unsafe { current.as_ref() }
                && bytes <= chunk.memory.len() / 4
                && let Some(memory) = chunk.allocate(bytes)
            {
                return memory;
            }
            if let Some(memory) = self.grow(current, bytes) {
                return memory;
            }
        }
    }

    /// Gives a large allocation a chunk of its own, or else replaces the full chunk `full`, unless another
    /// thread has done that.
    fn grow(&self, full: *mut Chunk, bytes: usize) -> Option<NonNull<u8>> {
        let mut chunks = self.chunks.lock();
        if bytes > chunks.next_bytes / 4 {
            let chunk = Chunk::new(self.memory(bytes), bytes);
            self.add(&mut chunks, chunk, bytes);
            // SAFETY: the chunk was made above and lives as long as the arena. All of it goes to the caller.
            return Some(unsafe { chunk.as_ref() }.memory.start());
        }
        if self.current.load(Ordering::Relaxed) == full {
            let size = chunks.next_bytes;
            chunks.next_bytes = (size * 2).min(CHUNK_MAX_BYTES);
            let chunk = Chunk::new(self.memory(size), 0);
            self.add(&mut chunks, chunk, size);
            self.current.store(chunk.as_ptr(), Ordering::Release);
        }
        None
    }

    /// Memory for a chunk.
    fn memory(&self, bytes: usize) -> Memory {
        let kept = (bytes == CHUNK_MAX_BYTES).then(|| self.pool.take());
        kept.flatten().unwrap_or_else(|| Memory::allocate(bytes))
    }

    fn add(&self, chunks: &mut Chunks, chunk: NonNull<Chunk>, bytes: usize) {
        chunks.all.push(chunk);
        let bytes = (bytes + CHUNK_OVERHEAD_BYTES) as u64;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.pool
            .charged(chunks.is_pinned)
            .fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Memory for several allocations of one caller, taken in few pieces.
pub(super) struct Room<'a> {
    arena: &'a Arena,
    /// The `left` bytes from here on are ours alone.
    start: NonNull<u8>,
    left: usize,
    /// Bytes that the caller is yet to allocate, as far as it has said.
    wanted: usize,
}

impl<'a> Room<'a> {
    /// For allocations that take `wanted` bytes together, each rounded up to [`ALIGN`]. Nothing is taken yet.
    /// For more than that there is room as well, only not at once.
    pub(super) fn new(arena: &'a Arena, wanted: usize) -> Self {
        Self {
            arena,
            start: NonNull::dangling(),
            left: 0,
            wanted,
        }
    }

    /// As [`Arena::allocate`].
    pub(super) fn allocate(&mut self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        let wanted = self.wanted;
        self.wanted = wanted.saturating_sub(bytes);
        if bytes > IN_ROOM_MAX_BYTES {
            return self.arena.allocate(bytes);
        }
        if bytes > self.left {
            let piece = wanted.clamp(bytes, ROOM_BYTES);
            self.start = self.arena.allocate(piece);
            self.left = piece;
        }
        self.left -= bytes;
        let memory = self.start;
        // SAFETY: `left` bytes from `start` on were ours, and `bytes` is not more; so this stays within them,
        // or comes to their end.
        self.start = unsafe { memory.add(bytes) };
        memory
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let bytes = self.bytes();
        let chunks = self.chunks.get_mut();
        self.pool
            .charged(chunks.is_pinned)
            .fetch_sub(bytes, Ordering::Relaxed);
        for chunk in chunks.all.drain(..) {
            // SAFETY: `Chunk::new` leaked it from a Box; each is in the list once, and nobody else has access
            // any more.
            let chunk = unsafe { Box::from_raw(chunk.as_ptr()) };
            self.pool.give(chunk.memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn chunks_grow_and_large_allocations_stand_alone() {
        let arena = Arena::new(Arc::default());
        assert_eq!(arena.bytes(), 0);
        arena.allocate(1);
        let first = (FIRST_CHUNK_BYTES + CHUNK_OVERHEAD_BYTES) as u64;
        assert_eq!(arena.bytes(), first);
        // Exactly fills the first chunk, in pieces small enough to share one.
        for _ in 0..FIRST_CHUNK_BYTES / ALIGN - 1 {
            arena.allocate(ALIGN);
        }
        assert_eq!(arena.bytes(), first);
        arena.allocate(ALIGN);
        let second = first + (2 * FIRST_CHUNK_BYTES + CHUNK_OVERHEAD_BYTES) as u64;
        assert_eq!(arena.bytes(), second);
        arena.allocate(CHUNK_MAX_BYTES + 1);
        let large = CHUNK_MAX_BYTES + ALIGN + CHUNK_OVERHEAD_BYTES;
        assert_eq!(arena.bytes(), second + large as u64);
        arena.allocate(ALIGN);
        assert_eq!(
            arena.bytes(),
            second + large as u64,
            "the chunk before the large one is still in use"
        );
    }

    /// Goal: room for what was said is taken at once, as long as it is little, and more than was said is no
    /// harm. Method: where things lie.
    #[test]
    fn neighbours_in_time_are_neighbours_in_memory() {
        let arena = Arena::new(Arc::default());
        let mut room = Room::new(&arena, 5 * ALIGN);
        let first = room.allocate(3);
        let of_another = arena.allocate(ALIGN).addr().get();
        let at = |memory: NonNull<u8>| memory.addr().get() - first.addr().get();
        assert_eq!(of_another, first.addr().get() + 5 * ALIGN, "all five were taken");
        assert_eq!(at(room.allocate(2 * ALIGN)), ALIGN);
        assert_eq!(at(room.allocate(2 * ALIGN)), 3 * ALIGN);
        assert_eq!(at(room.allocate(ALIGN)), 6 * ALIGN, "of which nothing was said");
        let mut room = Room::new(&arena, ROOM_BYTES + 3 * ALIGN);
        room.allocate(2 * ALIGN);
        assert_eq!(room.left, ROOM_BYTES - 2 * ALIGN);
        room.allocate(IN_ROOM_MAX_BYTES + 1);
        assert_eq!(
            room.left,
            ROOM_BYTES - 2 * ALIGN,
            "what is large has not been taken from it"
        );
        assert_eq!(room.wanted, ROOM_BYTES + ALIGN - (IN_ROOM_MAX_BYTES + ALIGN));
    }

    /// Goal: threads never share memory. Method: each fills what it gets with its own number and looks again
    /// at the end. Some of it is taken as room for several.
    #[test]
    fn threads_get_memory_of_their_own() {
        let arena = Arena::new(Arc::default());
        let rounds = if cfg!(miri) { 10 } else { 5_000 };
        thread::scope(|scope| {
            for number in 1..=4_u8 {
                let arena = &arena;
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    let mut room = Room::new(arena, 0);
                    for round in 0..rounds {
                        let bytes = 1 + (round * 37 + usize::from(number)) % 300;
                        if round % 7 == 0 {
                            room = Room::new(arena, 2 * ROOM_BYTES);
                        }
                        let memory = if number % 2 == 0 {
                            room.allocate(bytes)
                        } else {
                            arena.allocate(bytes)
                        };
                        assert_eq!(memory.addr().get() % ALIGN, 0);
                        // SAFETY: `bytes` bytes at `memory` are ours.
                        unsafe { memory.write_bytes(number, bytes) };
                        mine.push((memory, bytes));
                    }
                    for (memory, bytes) in mine {
                        // SAFETY: written above, and the arena is alive.
                        let written = unsafe { std::slice::from_raw_parts(memory.as_ptr(), bytes) };
                        assert!(written.iter().all(|byte| *byte == number));
                    }
                });
            }
        });
    }
}
