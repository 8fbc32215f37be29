//! One shard of the block cache: a hash table over slots, and a CLOCK queue for each priority.
//!
//! ```text
//! table: hash -> slot          slots: [ key | block | bytes | class | access | links ]
//! queue of each class:         oldest <-> ... <-> newest        (links between slots)
//! list of each file:           any order, for remove_file       (links between slots)
//! ```
//!
//! Making room, until the new block fits:
//!
//! 1. Among the classes that hold blocks, take the one whose bytes exceed its share the most (the
//!    new block counted in its class).
//! 2. Look at its oldest block. Hit bit clear: evict it. Hit bit set: clear it and give the block another
//!    round, at the end of its own queue, or, if it was a single-access block, at the end of the multi-access
//!    queue. Then go to 1.
//!
//! Each step evicts a block or clears a bit that a hit has set, so the work is bounded by the
//! number of insertions and hits. Moving a block from single to multi here, rather than at its
//! second access, lets a hit do nothing but set a bit.
//!
//! A block that was read ahead of the read that needs it ([`Shard::insert_ahead`]) waits for that read,
//! which is its first access: it sets no bit and is no hit.
//!
//! Pinned blocks are not in the table: their users own them, and only their bytes are accounted
//! here. These bytes are subtracted from the room of the queues.
//!
//! Invariants: the bytes of the queues and of pinned blocks sum up to at most the capacity; every slot in use
//! is in the table, in its class's queue and in its file's list.

use std::sync::Arc;

use hashbrown::{HashMap, HashTable};
use smallvec::SmallVec;

use super::{BlockKey, CacheUsage, ENTRY_OVERHEAD_BYTES, PriorityStats, Weighted};
use crate::id::FileId;
use crate::metrics::Counter;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Not hit since it was inserted, or since its last round.
const UNUSED: u8 = 0;

/// Hit.
const HIT: u8 = 1;

/// Inserted ahead of the read that needs it, which has not come yet.
const AHEAD: u8 = 2;

/// The end of a chain of slots.
const NONE: u32 = u32::MAX;

/// Queue of a block. The numbers are the indexes of the arrays in [`CacheUsage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Single = 0,
    Multi = 1,
    InMemory = 2,
}

/// In this order, so that single-access blocks are evicted first when two classes exceed their
/// shares equally.
const CLASSES: [Class; 3] = [Class::Single, Class::Multi, Class::InMemory];

/// Shares in percent, HBase's `hfile.block.cache.*.percentage`.
const SHARE_PERCENT: [u64; 3] = [25, 50, 25];

/// Most of a shard that pinned blocks may take, in percent.
const PINNED_PERCENT: u64 = 25;

/// Neighbours in a chain.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

struct Entry<V> {
    key: BlockKey,
    block: Arc<V>,
    /// Memory charged for the entry, overhead included.
    bytes: u64,
    class: Class,
    /// One of [`UNUSED`], [`HIT`] and [`AHEAD`]. Set to `HIT` by a hit under the shared lock, cleared
    /// when making room.
    access: AtomicU8,
    in_class: Links,
    in_file: Links,
}

impl<V> Entry<V> {
    /// Ends the wait for the first access; `false` if another reader has ended it.
    fn end_wait(&self) -> bool {
        self.access
            .compare_exchange(AHEAD, UNUSED, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// A queue of one class.
#[derive(Clone, Copy, Debug)]
struct Queue {
    oldest: u32,
    newest: u32,
    bytes: u64,
    blocks: u64,
}

struct State<V> {
    /// Slot numbers by key.
    table: HashTable<u32>,
    slots: Vec<Option<Entry<V>>>,
    /// Slots that are `None`.
    free: Vec<u32>,
    /// One of the slots of each file; the others hang on it.
    files: HashMap<FileId, u32>,
    queues: [Queue; 3],
}

/// Blocks taken out under the lock, to be freed after it: freeing 64 KiB is slow enough to delay
/// other threads.
type Removed<V> = SmallVec<[Arc<V>; 8]>;

/// A part of the cache with a lock of its own.
pub(super) struct Shard<V> {
    state: RwLock<State<V>>,
    capacity_bytes: u64,
    /// Bytes of pinned blocks, overhead included. Changed only under the lock, so that the total
    /// never exceeds the capacity.
    pinned_bytes: AtomicU64,
    stats: [PriorityStats; 3],
    misses: Counter,
    insertions: Counter,
    removals: Counter,
    rejections: Counter,
}

/// Memory charged for a block.
fn entry_bytes(block: &impl Weighted) -> u64 {
    (block.weight() as u64).saturating_add(ENTRY_OVERHEAD_BYTES)
}

impl<V: Weighted> Shard<V> {
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Self {
            state: RwLock::new(State::new()),
            capacity_bytes,
            pinned_bytes: AtomicU64::new(0),
            stats: Default::default(),
            misses: Counter::default(),
            insertions: Counter::default(),
            removals: Counter::default(),
            rejections: Counter::default(),
        }
    }

    pub(super) fn get(&self, hash: u64, key: BlockKey) -> Option<Arc<V>> {
        let found = self.find(hash, key);
        if found.is_none() {
            self.misses.increment();
        }
        found
    }

    /// Looks a block up. Counts a hit, but not a miss.
    pub(super) fn find(&self, hash: u64, key: BlockKey) -> Option<Arc<V>> {
        let state = self.state.read();
        let slot = state.find(hash, key)?;
        let entry = state.entry(slot);
        // Hot blocks have their bit set already; reading it first keeps their cache line shared between
        // cores.
        match entry.access.load(Ordering::Relaxed) {
            HIT => {}
            AHEAD if entry.end_wait() => return Some(Arc::clone(&entry.block)),
            _ => entry.access.store(HIT, Ordering::Relaxed),
        }
        self.stats[entry.class as usize].hits.increment();
        Some(Arc::clone(&entry.block))
    }

    /// Looks a block up without counting or marking anything.
    pub(super) fn peek(&self, hash: u64, key: BlockKey) -> Option<Arc<V>> {
        let state = self.state.read();
        let slot = state.find(hash, key)?;
        Some(Arc::clone(&state.entry(slot).block))
    }

    /// Inserts a block that waits for its first access, and counts the miss. Returns whether the block
    /// is cached now.
    pub(super) fn insert_ahead(&self, hash: u64, key: BlockKey, block: Arc<V>, class: Class) -> bool {
        self.misses.increment();
        self.insert_with(hash, key, block, class, AHEAD).1
    }

    pub(super) fn insert(&self, hash: u64, key: BlockKey, block: Arc<V>, class: Class) -> Arc<V> {
        self.insert_with(hash, key, block, class, UNUSED).0
    }

    /// Inserts a block unless one is cached. Returns the cached one, or this one and `false` if it is
    /// too large.
    fn insert_with(
        &self,
        hash: u64,
        key: BlockKey,
        block: Arc<V>,
        class: Class,
        access: u8,
    ) -> (Arc<V>, bool) {
        let bytes = entry_bytes(&*block);
        let mut removed = Removed::new();
        let mut state = self.state.write();
        if bytes > self.evictable_bytes() {
            drop(state);
            self.rejections.increment();
            return (block, false);
        }
        if let Some(slot) = state.find(hash, key) {
            return (Arc::clone(&state.entry(slot).block), true);
        }
        self.make_room(&mut state, class, bytes, &mut removed);
        state.add(hash, key, Arc::clone(&block), class, bytes, access);
        drop(state);
        self.insertions.increment();
        (block, true)
    }

    /// Subtracts a block's bytes from the evictable bytes and removes the block from the table.
    /// `false`: pinned blocks have used up their share.
    pub(super) fn pin(&self, hash: u64, key: BlockKey, block: &V) -> bool {
        let bytes = entry_bytes(block);
        let may_pin = || {
            let pinned = self.pinned_bytes.load(Ordering::Relaxed);
            pinned.saturating_add(bytes) <= self.capacity_bytes * PINNED_PERCENT / 100
        };
        // Checked without the lock first: once the share is used up, every read of a block that is
        // not pinned gets here.
        if !may_pin() {
            return false;
        }
        let mut removed = Removed::new();
        let mut state = self.state.write();
        if !may_pin() {
            return false;
        }
        if let Some(slot) = state.find(hash, key) {
            removed.push(state.remove(slot));
            self.removals.increment();
        }
        self.make_room(&mut state, Class::InMemory, bytes, &mut removed);
        self.pinned_bytes.fetch_add(bytes, Ordering::Relaxed);
        drop(state);
        true
    }

    /// Releases the bytes that [`Shard::pin`] reserved.
    pub(super) fn unpin(&self, block: &V) {
        let _state = self.state.write();
        self.pinned_bytes.fetch_sub(entry_bytes(block), Ordering::Relaxed);
    }

    /// Maximum bytes of all queues.
    fn evictable_bytes(&self) -> u64 {
        self.capacity_bytes - self.pinned_bytes.load(Ordering::Relaxed)
    }

    /// Evicts until `bytes` more in `class` fit.
    /// REQUIRES: `bytes` is at most [`Shard::evictable_bytes`].
    fn make_room(&self, state: &mut State<V>, class: Class, bytes: u64, removed: &mut Removed<V>) {
        let capacity_bytes = self.evictable_bytes();
        while state.bytes() + bytes > capacity_bytes {
            let victim = self.victim_class(state, class, bytes);
            let slot = state.queues[victim as usize].oldest;
            // Relaxed: the lock is held alone.
            if state.entry(slot).access.load(Ordering::Relaxed) == HIT {
                state.entry(slot).access.store(UNUSED, Ordering::Relaxed);
                let next = if victim == Class::Single {
                    Class::Multi
                } else {
                    victim
                };
                state.unlink_class(slot);
                state.entry_mut(slot).class = next;
                state.link_class(slot);
            } else {
                removed.push(state.remove(slot));
                self.stats[victim as usize].evictions.increment();
            }
        }
    }

    /// The class that exceeds its share the most, among those that have a block to evict.
    fn victim_class(&self, state: &State<V>, class: Class, bytes: u64) -> Class {
        let excess = |candidate: Class| {
            let held = state.queues[candidate as usize].bytes + if candidate == class { bytes } else { 0 };
            held as i64 - (self.capacity_bytes * SHARE_PERCENT[candidate as usize] / 100) as i64
        };
        let mut victim: Option<Class> = None;
        for candidate in CLASSES {
            let holds_blocks = state.queues[candidate as usize].blocks > 0;
            if holds_blocks && victim.is_none_or(|best| excess(candidate) > excess(best)) {
                victim = Some(candidate);
            }
        }
        victim.expect("a block that fits an empty shard lacks room only when the shard is not empty")
    }

    pub(super) fn remove_file(&self, file: FileId) -> u64 {
        let mut removed = Removed::new();
        let mut state = self.state.write();
        while let Some(&slot) = state.files.get(&file) {
            removed.push(state.remove(slot));
        }
        drop(state);
        self.removals.add(removed.len() as u64);
        removed.len() as u64
    }

    pub(super) fn add_usage(&self, usage: &mut CacheUsage) {
        let (queues, pinned_bytes) = {
            let state = self.state.read();
            (state.queues, self.pinned_bytes.load(Ordering::Relaxed))
        };
        usage.pinned_bytes += pinned_bytes;
        for (index, (queue, stats)) in queues.iter().zip(&self.stats).enumerate() {
            usage.bytes[index] += queue.bytes;
            usage.blocks[index] += queue.blocks;
            usage.hits[index] += stats.hits.get();
            usage.evictions[index] += stats.evictions.get();
        }
        usage.misses += self.misses.get();
        usage.insertions += self.insertions.get();
        usage.removals += self.removals.get();
        usage.rejections += self.rejections.get();
    }

    /// Checks the shard's invariants; for tests.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let state = self.state.read();
        let used = state.slots.iter().flatten().count();
        assert!(state.bytes() <= self.evictable_bytes());
        assert_eq!(state.table.len(), used);
        assert_eq!(state.free.len(), state.slots.len() - used);
        let mut queued = 0;
        for class in CLASSES {
            let queue = state.queues[class as usize];
            let (mut slot, mut before, mut bytes, mut blocks) = (queue.oldest, NONE, 0, 0);
            while slot != NONE {
                let entry = state.entry(slot);
                assert_eq!((entry.class, entry.in_class.before), (class, before));
                assert_eq!(state.find(entry.key.hash(), entry.key), Some(slot));
                bytes += entry.bytes;
                blocks += 1;
                (before, slot) = (slot, entry.in_class.after);
            }
            assert_eq!((queue.newest, queue.bytes, queue.blocks), (before, bytes, blocks));
            queued += blocks;
        }
        assert_eq!(queued as usize, used);
        let mut in_files = 0;
        for (file, first) in &state.files {
            let (mut slot, mut before) = (*first, NONE);
            while slot != NONE {
                let entry = state.entry(slot);
                assert_eq!((entry.key.file, entry.in_file.before), (*file, before));
                in_files += 1;
                (before, slot) = (slot, entry.in_file.after);
            }
        }
        assert_eq!(in_files, used);
    }
}

impl<V> State<V> {
    fn new() -> Self {
        let empty = Queue {
            oldest: NONE,
            newest: NONE,
            bytes: 0,
            blocks: 0,
        };
        Self {
            table: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            files: HashMap::new(),
            queues: [empty; 3],
        }
    }

    fn bytes(&self) -> u64 {
        self.queues.iter().map(|queue| queue.bytes).sum()
    }

    fn find(&self, hash: u64, key: BlockKey) -> Option<u32> {
        self.table
            .find(hash, |&slot| self.entry(slot).key == key)
            .copied()
    }

    fn entry(&self, slot: u32) -> &Entry<V> {
        self.slots[slot as usize]
            .as_ref()
            .expect("table, queues and links name slots in use only")
    }

    fn entry_mut(&mut self, slot: u32) -> &mut Entry<V> {
        self.slots[slot as usize]
            .as_mut()
            .expect("table, queues and links name slots in use only")
    }

    /// REQUIRES: the key is not here.
    fn add(&mut self, hash: u64, key: BlockKey, block: Arc<V>, class: Class, bytes: u64, access: u8) {
        let alone = Links {
            before: NONE,
            after: NONE,
        };
        let entry = Entry {
            key,
            block,
            bytes,
            class,
            access: AtomicU8::new(access),
            in_class: alone,
            in_file: alone,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1)
                .expect("2^32 entries of 128 bytes or more exceed any shard's capacity")
        });
        self.slots[slot as usize] = Some(entry);
        self.link_class(slot);
        self.link_file(slot);
        let slots = &self.slots;
        self.table.insert_unique(hash, slot, |&other| {
            slots[other as usize].as_ref().map_or(0, |entry| entry.key.hash())
        });
    }

    fn remove(&mut self, slot: u32) -> Arc<V> {
        self.unlink_class(slot);
        self.unlink_file(slot);
        let hash = self.entry(slot).key.hash();
        self.table
            .find_entry(hash, |&other| other == slot)
            .expect("every slot in use is in the table")
            .remove();
        self.free.push(slot);
        self.slots[slot as usize]
            .take()
            .expect("it was in use a moment ago")
            .block
    }

    /// Puts a slot at the newest end of its class's queue.
    fn link_class(&mut self, slot: u32) {
        let (class, bytes) = (self.entry(slot).class, self.entry(slot).bytes);
        let queue = &mut self.queues[class as usize];
        let before = std::mem::replace(&mut queue.newest, slot);
        queue.bytes += bytes;
        queue.blocks += 1;
        if before == NONE {
            queue.oldest = slot;
        } else {
            self.entry_mut(before).in_class.after = slot;
        }
        self.entry_mut(slot).in_class = Links { before, after: NONE };
    }

    fn unlink_class(&mut self, slot: u32) {
        let entry = self.entry(slot);
        let (class, bytes, links) = (entry.class, entry.bytes, entry.in_class);
        let queue = &mut self.queues[class as usize];
        queue.bytes -= bytes;
        queue.blocks -= 1;
        if links.before == NONE {
            queue.oldest = links.after;
        }
        if links.after == NONE {
            queue.newest = links.before;
        }
        if links.before != NONE {
            self.entry_mut(links.before).in_class.after = links.after;
        }
        if links.after != NONE {
            self.entry_mut(links.after).in_class.before = links.before;
        }
    }

    /// Puts a slot at the front of its file's list.
    fn link_file(&mut self, slot: u32) {
        let file = self.entry(slot).key.file;
        let after = self.files.insert(file, slot).unwrap_or(NONE);
        if after != NONE {
            self.entry_mut(after).in_file.before = slot;
        }
        self.entry_mut(slot).in_file = Links { before: NONE, after };
    }

    fn unlink_file(&mut self, slot: u32) {
        let (file, links) = (self.entry(slot).key.file, self.entry(slot).in_file);
        if links.after != NONE {
            self.entry_mut(links.after).in_file.before = links.before;
        }
        if links.before != NONE {
            self.entry_mut(links.before).in_file.after = links.after;
        } else if links.after != NONE {
            self.files.insert(file, links.after);
        } else {
            self.files.remove(&file);
        }
    }
}
