//! The block cache: bounded in bytes, three priorities, scan-resistant.
//!
//! Priorities and shares are those of HBase's `LruBlockCache`: blocks read once 25 %, blocks read
//! again 50 %, blocks of IN_MEMORY families 25 %. An unused share is lent; when room is needed, the
//! priority that exceeds its share the most is evicted from (see [`shard`]). So a scan, whose
//! blocks are read once, displaces other blocks that were read once, and not the hot set.
//!
//! The cache is cut into shards by a hash of the block key. [`BlockCache::get`] takes one shard's
//! lock shared, and a hit sets a bit and bumps a counter: no queue is touched, so readers do not
//! wait for each other. The bit is evaluated only when room is needed (CLOCK). Any thread may call
//! anything at any time; no lock is held while a block is built, read or freed.
//!
//! A reader may *pin* a few blocks that nearly every read needs: it owns them and reads them
//! without a lookup. Their bytes count as the cache's, and are at most a quarter of it.
//!
//! Invariant: the sum of the weights of all blocks, pinned ones included, plus [`ENTRY_OVERHEAD_BYTES`] for
//! each, never exceeds the capacity.

#[cfg(all(test, loom))]
mod model;
mod shard;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use xxhash_rust::xxh3::xxh3_64;

use self::shard::{Class, Shard};
use crate::id::FileId;
use crate::metrics::Counter;

/// Memory of an entry besides its block: slot, links, hash table, reference counts, and slack of
/// the growing arrays.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 = 128;

/// Minimum size of a shard: the block of a largest allowed cell (10 MiB) must fit into one.
const SHARD_MIN_BYTES: u64 = 16 << 20;

/// More shards than this do not make locking any cheaper.
const SHARDS_MAX: u64 = 64;

/// Identity of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// The store file.
    pub file: FileId,
    /// Where its header starts.
    pub offset: u64,
}

impl BlockKey {
    fn hash(self) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.file.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        xxh3_64(&bytes)
    }
}

/// How a block enters the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// First access: 25 % of the cache. A second access makes it multi access (50 %).
    Single,
    /// Block of an IN_MEMORY family: 25 %.
    InMemory,
}

impl Priority {
    fn class(self) -> Class {
        match self {
            Self::Single => Class::Single,
            Self::InMemory => Class::InMemory,
        }
    }
}

/// A value that knows its weight.
pub trait Weighted: Send + Sync + 'static {
    /// Bytes it holds in memory. Asked once, when the value is put in.
    fn weight(&self) -> usize;
}

/// Counters and gauges of one priority.
#[derive(Debug, Default)]
pub(crate) struct PriorityStats {
    /// Reads answered.
    pub hits: Counter,
    /// Blocks pushed out.
    pub evictions: Counter,
}

/// Contents of the cache, for metrics and pages. Arrays are in the order single access, multi
/// access, in-memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Limit.
    pub capacity_bytes: u64,
    /// Bytes of single-access, multi-access and in-memory blocks, [`ENTRY_OVERHEAD_BYTES`] of each included.
    pub bytes: [u64; 3],
    /// Blocks of each.
    pub blocks: [u64; 3],
    /// Bytes of pinned blocks, [`ENTRY_OVERHEAD_BYTES`] of each included. Reads of them are not counted
    /// anywhere.
    pub pinned_bytes: u64,
    /// Reads answered by each.
    pub hits: [u64; 3],
    /// Blocks evicted from each.
    pub evictions: [u64; 3],
    /// Reads not answered, each of which went to the disk.
    pub misses: u64,
    /// Blocks put in. Each of them is still cached, or was evicted or removed.
    pub insertions: u64,
    /// Blocks removed with their file, or by a reader that pins them.
    pub removals: u64,
    /// Blocks not put in because they are larger than a shard allows.
    pub rejections: u64,
}

/// The cache. `V` is the store file's block type; the cache does not read its content.
pub struct BlockCache<V> {
    /// A power of two of them.
    shards: Box<[CachePadded<Shard<V>>]>,
    capacity_bytes: u64,
}

impl<V: Weighted> BlockCache<V> {
    /// A cache of at most `capacity_bytes`. With 0 it holds nothing and rejects every block.
    pub fn new(capacity_bytes: u64) -> Self {
        let wanted = (capacity_bytes / SHARD_MIN_BYTES).clamp(1, SHARDS_MAX);
        Self::with_shards(capacity_bytes, 1 << wanted.ilog2())
    }

    /// REQUIRES: `shards` is a power of two.
    fn with_shards(capacity_bytes: u64, shards: u64) -> Self {
        assert!(shards.is_power_of_two());
        let shard = || CachePadded::new(Shard::new(capacity_bytes / shards));
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
            capacity_bytes,
        }
    }

    /// The block, if it is here. A hit marks the entry and nothing else.
    pub fn get(&self, key: BlockKey) -> Option<Arc<V>> {
        let hash = key.hash();
        self.shard(hash).get(hash, key)
    }

    /// The block, if it is cached. Unlike [`BlockCache::get`] this counts no miss: a memory-only
    /// read is retried where it may read from disk, which counts the miss.
    pub(crate) fn get_if_cached(&self, key: BlockKey) -> Option<Arc<V>> {
        let hash = key.hash();
        self.shard(hash).find(hash, key)
    }

    /// Inserts a block and returns the one that is cached now (another thread may have been first).
    /// A block larger than a shard is counted, returned and not kept.
    pub fn insert(&self, key: BlockKey, block: Arc<V>, priority: Priority) -> Arc<V> {
        let hash = key.hash();
        self.shard(hash).insert(hash, key, block, priority.class())
    }

    /// The block, if it is cached, for a search that is no read: nothing is counted or marked.
    pub(crate) fn peek(&self, key: BlockKey) -> Option<Arc<V>> {
        let hash = key.hash();
        self.shard(hash).peek(hash, key)
    }

    /// Inserts a block that was read from the disk before the read that needs it, and counts the miss.
    /// That read finds the block and counts nothing: it is the block's first access, not its second.
    /// Returns whether the block is cached now.
    pub(crate) fn insert_ahead(&self, key: BlockKey, block: Arc<V>, priority: Priority) -> bool {
        let hash = key.hash();
        self.shard(hash).insert_ahead(hash, key, block, priority.class())
    }

    /// Accounts for a block that the caller keeps for itself, with [`ENTRY_OVERHEAD_BYTES`], and
    /// takes it out of the cache. `false`, without effect, when pinned blocks have used up their
    /// share (25 %).
    ///
    /// After `true` the caller must call [`Self::unpin`] exactly once, when it drops the block.
    pub fn pin(&self, key: BlockKey, block: &V) -> bool {
        let hash = key.hash();
        self.shard(hash).pin(hash, key, block)
    }

    /// The end of a pin.
    pub(crate) fn unpin(&self, key: BlockKey, block: &V) {
        self.shard(key.hash()).unpin(block);
    }

    /// Removes all blocks of a file, which is gone or is to be read again, and returns their
    /// number. The cost is proportional to that number. A reader that still holds the file may
    /// insert a block afterwards; since file ids are never reused, that block is never hit and ages
    /// out.
    pub fn remove_file(&self, file: FileId) -> u64 {
        self.shards.iter().map(|shard| shard.remove_file(file)).sum()
    }

    /// Current usage. Each shard's part is exact; shards are read one after the other.
    pub fn usage(&self) -> CacheUsage {
        let mut usage = CacheUsage {
            capacity_bytes: self.capacity_bytes,
            ..CacheUsage::default()
        };
        for shard in &self.shards {
            shard.add_usage(&mut usage);
        }
        usage
    }

    /// The shard of a hash, by its upper half, since the hash tables inside the shards use its
    /// lower bits.
    fn shard(&self, hash: u64) -> &Shard<V> {
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }
}

impl<V: Weighted> fmt::Debug for BlockCache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("shards", &self.shards.len())
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}
