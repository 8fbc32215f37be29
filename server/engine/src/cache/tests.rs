//! Tests of the cache's guarantees: bounds, shares, resistance to scans, removal, and threads.

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;

use super::*;

#[derive(Debug)]
struct Block {
    bytes: usize,
    /// Distinguishes two blocks of one key.
    label: u64,
}

impl Weighted for Block {
    fn weight(&self) -> usize {
        self.bytes
    }
}

/// Blocks of tests are this large unless a test says otherwise; with the overhead, 1024.
const BLOCK_BYTES: usize = 1024 - ENTRY_OVERHEAD_BYTES as usize;

fn block(bytes: usize) -> Arc<Block> {
    Arc::new(Block { bytes, label: 0 })
}

fn key(file: u64, offset: u64) -> BlockKey {
    BlockKey {
        file: FileId(file),
        offset,
    }
}

/// Reads as a store file does: from the cache, or else from "disk" and into the cache. Returns whether it was
/// a hit.
fn read(cache: &BlockCache<Block>, key: BlockKey, priority: Priority) -> bool {
    if cache.get(key).is_some() {
        return true;
    }
    cache.insert(key, block(BLOCK_BYTES), priority);
    false
}

fn check(cache: &BlockCache<Block>) {
    for shard in &cache.shards {
        shard.check();
    }
    let usage = cache.usage();
    assert!(usage.bytes.iter().sum::<u64>() + usage.pinned_bytes <= usage.capacity_bytes);
    let gone = usage.evictions.iter().sum::<u64>() + usage.removals;
    assert_eq!(
        usage.insertions,
        usage.blocks.iter().sum::<u64>() + gone,
        "{usage:?}"
    );
}

/// A cache of `blocks` blocks in one shard, so that shares are exact.
fn cache_of(blocks: u64) -> BlockCache<Block> {
    BlockCache::with_shards(blocks * 1024, 1)
}

#[test]
fn shards_hold_the_largest_blocks() {
    for (capacity_mib, shards) in [
        (0, 1),
        (1, 1),
        (31, 1),
        (32, 2),
        (100, 4),
        (256, 16),
        (65_536, 64),
    ] {
        let cache = BlockCache::<Block>::new(capacity_mib << 20);
        assert_eq!(cache.shards.len(), shards, "{capacity_mib} MiB");
    }
}

#[test]
fn a_cached_block_is_found_and_counted() {
    let cache = cache_of(4);
    assert!(cache.get(key(1, 0)).is_none());
    let cached = cache.insert(key(1, 0), block(BLOCK_BYTES), Priority::Single);
    assert!(Arc::ptr_eq(&cached, &cache.get(key(1, 0)).unwrap()));
    assert!(cache.get(key(1, 1)).is_none());
    assert!(cache.get(key(2, 0)).is_none());
    cache.insert(key(2, 0), block(0), Priority::InMemory);
    assert!(cache.get(key(2, 0)).is_some());
    let expected = CacheUsage {
        capacity_bytes: 4096,
        bytes: [1024, 0, ENTRY_OVERHEAD_BYTES],
        blocks: [1, 0, 1],
        pinned_bytes: 0,
        hits: [1, 0, 1],
        evictions: [0; 3],
        misses: 3,
        removals: 0,
        insertions: 2,
        rejections: 0,
    };
    assert_eq!(cache.usage(), expected);
    check(&cache);
}

#[test]
fn the_first_block_of_a_key_wins() {
    let cache = cache_of(4);
    let first = cache.insert(
        key(1, 0),
        Arc::new(Block { bytes: 1, label: 1 }),
        Priority::Single,
    );
    let second = cache.insert(
        key(1, 0),
        Arc::new(Block { bytes: 9, label: 2 }),
        Priority::Single,
    );
    assert_eq!((first.label, second.label), (1, 1));
    assert_eq!((cache.usage().insertions, cache.usage().blocks[0]), (1, 1));
}

#[test]
fn a_block_larger_than_a_shard_is_rejected() {
    let cache = BlockCache::with_shards(8192, 2);
    let fits = 4096 - ENTRY_OVERHEAD_BYTES as usize;
    cache.insert(key(1, 0), block(fits), Priority::Single);
    let returned = cache.insert(key(1, 1), block(fits + 1), Priority::Single);
    assert_eq!(returned.bytes, fits + 1);
    assert!(cache.get(key(1, 0)).is_some());
    assert!(cache.get(key(1, 1)).is_none());
    assert_eq!((cache.usage().rejections, cache.usage().insertions), (1, 1));

    let nothing = BlockCache::new(0);
    nothing.insert(key(1, 0), block(0), Priority::Single);
    assert_eq!((nothing.usage().rejections, nothing.usage().blocks), (1, [0; 3]));
}

#[test]
fn pinned_blocks_take_a_quarter_at_most_and_give_it_back() {
    let cache = cache_of(8);
    for offset in 0..8 {
        read(&cache, key(1, offset), Priority::Single);
    }
    let held = cache.get(key(1, 7)).unwrap();
    assert!(cache.pin(key(1, 7), &held));
    assert!(
        cache.get(key(1, 7)).is_none(),
        "who pins a block finds it without the cache"
    );
    assert_eq!(
        (cache.usage().pinned_bytes, cache.usage().blocks),
        (1024, [7, 0, 0])
    );
    check(&cache);

    let other = block(BLOCK_BYTES);
    assert!(cache.pin(key(2, 0), &other));
    assert_eq!(
        (cache.usage().blocks, cache.usage().evictions),
        ([6, 0, 0], [1, 0, 0])
    );
    assert!(!cache.pin(key(2, 1), &other), "two of eight blocks are a quarter");
    cache.insert(
        key(3, 0),
        block(6 * 1024 - ENTRY_OVERHEAD_BYTES as usize),
        Priority::Single,
    );
    assert_eq!(
        cache.usage().blocks,
        [1, 0, 0],
        "what is pinned leaves six blocks to the others"
    );
    cache.insert(key(3, 1), block(6 * 1024), Priority::Single);
    assert_eq!(cache.usage().rejections, 1);
    check(&cache);

    cache.unpin(key(1, 7), &held);
    cache.unpin(key(2, 0), &other);
    assert_eq!(cache.usage().pinned_bytes, 0);
    for offset in 0..8 {
        read(&cache, key(4, offset), Priority::Single);
    }
    assert_eq!(cache.usage().blocks, [8, 0, 0]);
    check(&cache);
}

#[test]
fn unused_shares_are_lent() {
    for priority in [Priority::Single, Priority::InMemory] {
        let cache = cache_of(100);
        for offset in 0..100 {
            read(&cache, key(1, offset), priority);
        }
        assert_eq!(cache.usage().evictions, [0; 3], "{priority:?}");
        assert!((0..100).all(|offset| read(&cache, key(1, offset), priority)));
    }
}

#[test]
fn borrowed_shares_are_given_back() {
    let cache = cache_of(100);
    for offset in 0..100 {
        read(&cache, key(1, offset), Priority::InMemory);
    }
    for offset in 0..75 {
        read(&cache, key(2, offset), Priority::Single);
    }
    // Single-access blocks get back their share, and half of the unused share of multi-access blocks.
    assert_eq!(cache.usage().blocks, [50, 0, 50]);
    check(&cache);
}

#[test]
fn classes_that_exceed_their_shares_pay_equally() {
    let cache = cache_of(100);
    for offset in (0..100).chain(0..100) {
        read(&cache, key(1, offset), Priority::Single);
    }
    for offset in 0..1000 {
        read(&cache, key(2, offset), Priority::Single);
    }
    // The unused 25 % of in-memory blocks are lent to both: 12 to single access, 13 to multi access.
    assert_eq!(cache.usage().blocks, [37, 63, 0]);
    check(&cache);
}

#[test]
fn in_memory_blocks_survive_a_scan() {
    let cache = cache_of(100);
    for offset in 0..25 {
        read(&cache, key(1, offset), Priority::InMemory);
    }
    for offset in 0..10_000 {
        read(&cache, key(2, offset), Priority::Single);
    }
    assert!((0..25).all(|offset| cache.get(key(1, offset)).is_some()));
    assert_eq!(cache.usage().evictions[2], 0);
    check(&cache);
}

#[test]
fn a_second_access_makes_a_block_multi_access() {
    let cache = cache_of(4);
    for offset in 0..4 {
        read(&cache, key(1, offset), Priority::Single);
    }
    assert!(read(&cache, key(1, 0), Priority::Single));
    assert_eq!(cache.usage().blocks, [4, 0, 0]);
    read(&cache, key(1, 4), Priority::Single);
    assert_eq!(cache.usage().blocks, [3, 1, 0]);
    assert_eq!(cache.usage().evictions, [1, 0, 0]);
    assert!(cache.get(key(1, 0)).is_some());
    assert!(
        cache.get(key(1, 1)).is_none(),
        "the oldest block that was read once has gone"
    );
    assert_eq!(cache.usage().hits, [1, 1, 0]);
}

/// The cache we do not want: plain LRU, which a scan empties.
struct PlainLru {
    order: VecDeque<BlockKey>,
    blocks: usize,
}

impl PlainLru {
    fn read(&mut self, key: BlockKey) -> bool {
        let place = self.order.iter().position(|other| *other == key);
        if let Some(place) = place {
            self.order.remove(place);
        } else if self.order.len() == self.blocks {
            self.order.pop_front();
        }
        self.order.push_back(key);
        place.is_some()
    }
}

/// Goal: a scan over ten times the cache leaves hot blocks cached. Method: while the scan runs, a
/// hot set of 45 % of the cache and one of an IN_MEMORY family of 20 % are read now and then, each
/// block so rarely that plain LRU loses it before its next read. Hits are counted in both caches.
#[test]
fn a_scan_does_not_push_out_what_is_hot() {
    let blocks = 400;
    let sets = [(1, 180, Priority::Single), (2, 80, Priority::InMemory)];
    let cache = cache_of(blocks);
    let mut plain = PlainLru {
        order: VecDeque::new(),
        blocks: blocks as usize,
    };
    for (file, hot, priority) in sets {
        for offset in (0..hot).chain(0..hot) {
            read(&cache, key(file, offset), priority);
            plain.read(key(file, offset));
        }
    }
    let (mut reads, mut hits, mut plain_hits) = ([0_u64; 2], [0_u64; 2], [0_u64; 2]);
    for scanned in 0..10 * blocks {
        read(&cache, key(3, scanned), Priority::Single);
        plain.read(key(3, scanned));
        for (which, (file, hot, priority)) in sets.into_iter().enumerate() {
            // Every block of the first set comes once in 540 blocks of the scan, of the second once in 560.
            if scanned % [3, 7][which] == 0 {
                let offset = reads[which] % hot;
                reads[which] += 1;
                hits[which] += u64::from(read(&cache, key(file, offset), priority));
                plain_hits[which] += u64::from(plain.read(key(file, offset)));
            }
        }
    }
    println!(
        "of {reads:?} reads (of a hot set, of an IN_MEMORY set) {hits:?} are hits, in plain LRU {plain_hits:?}"
    );
    assert!(hits[0] * 100 > reads[0] * 90);
    assert!(hits[1] * 100 > reads[1] * 99);
    for (plain_hits, reads) in plain_hits.into_iter().zip(reads) {
        assert!(
            plain_hits * 100 < reads * 50,
            "the test is too easy for plain LRU"
        );
    }
    check(&cache);
}

#[test]
fn a_removed_file_leaves_nothing_behind() {
    let cache = BlockCache::with_shards(1 << 20, 4);
    for offset in 0..100 {
        for file in 1..=3 {
            read(&cache, key(file, offset), Priority::Single);
        }
    }
    let watched = cache.get(key(2, 7)).unwrap();
    assert_eq!(Arc::strong_count(&watched), 2);
    cache.remove_file(FileId(2));
    assert_eq!(Arc::strong_count(&watched), 1);
    cache.remove_file(FileId(9));
    for offset in 0..100 {
        assert!(cache.get(key(1, offset)).is_some());
        assert!(cache.get(key(2, offset)).is_none());
        assert!(cache.get(key(3, offset)).is_some());
    }
    let usage = cache.usage();
    assert_eq!((usage.blocks, usage.bytes), ([200, 0, 0], [200 * 1024, 0, 0]));
    assert_eq!(usage.evictions, [0; 3]);
    check(&cache);
}

/// Goal: nothing is lost or counted twice when threads read, insert and remove at once. Method:
/// every read is counted; at the end the counts must add up, and a block that was read always has
/// the label of its key.
#[test]
fn threads_share_the_cache() {
    let cache = BlockCache::with_shards(64 * 1024, 4);
    let (threads, rounds) = (4_u64, 20_000_u64);
    thread::scope(|scope| {
        for thread in 0..threads {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = thread + 1;
                for round in 0..rounds {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let place = key(random >> 62, (random >> 33) % 64);
                    let label = place.file.0 * 64 + place.offset;
                    let found = cache.get(place).unwrap_or_else(|| {
                        let block = Block {
                            bytes: BLOCK_BYTES,
                            label,
                        };
                        cache.insert(place, Arc::new(block), Priority::Single)
                    });
                    assert_eq!(found.label, label);
                    if round % 1000 == 999 {
                        cache.remove_file(FileId(round / 1000 % 4));
                    }
                }
            });
        }
    });
    let usage = cache.usage();
    assert_eq!(usage.hits.iter().sum::<u64>() + usage.misses, threads * rounds);
    assert!(usage.insertions <= usage.misses);
    assert!(usage.evictions.iter().sum::<u64>() > 0);
    check(&cache);
}

#[derive(Clone, Debug)]
enum Step {
    Get(u64, u64),
    Insert(u64, u64, usize, bool),
    Remove(u64),
    Pin(u64, u64, usize),
    Unpin,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u64, 0..40_u64).prop_map(|(file, offset)| Step::Get(file, offset)),
        6 => (0..4_u64, 0..40_u64, 0..3000_usize, any::<bool>())
            .prop_map(|(file, offset, bytes, in_memory)| Step::Insert(file, offset, bytes, in_memory)),
        1 => (0..4_u64).prop_map(Step::Remove),
        2 => (0..4_u64, 0..40_u64, 0..900_usize).prop_map(|(file, offset, bytes)| Step::Pin(file, offset, bytes)),
        1 => Just(Step::Unpin),
    ]
}

proptest! {
    #[test]
    fn bounds_and_links_hold_after_every_step(steps in proptest::collection::vec(step(), 1..300),
                                              capacity in 0..20_000_u64, shards in 0..3_u32) {
        let cache: BlockCache<Block> = BlockCache::with_shards(capacity, 1 << shards);
        let mut pinned = Vec::new();
        for step in steps {
            match step {
                Step::Pin(file, offset, bytes) => {
                    let held = block(bytes);
                    if cache.pin(key(file, offset), &held) {
                        pinned.push((key(file, offset), held));
                    }
                }
                Step::Unpin => {
                    if let Some((key, held)) = pinned.pop() {
                        cache.unpin(key, &held);
                    }
                }
                Step::Get(file, offset) => {
                    if let Some(found) = cache.get(key(file, offset)) {
                        prop_assert_eq!(found.label, file * 64 + offset);
                    }
                }
                Step::Insert(file, offset, bytes, in_memory) => {
                    let priority = if in_memory { Priority::InMemory } else { Priority::Single };
                    let rejected = cache.usage().rejections;
                    let cached = cache.insert(
                        key(file, offset),
                        Arc::new(Block { bytes, label: file * 64 + offset }),
                        priority,
                    );
                    let kept = cache.usage().rejections == rejected;
                    let found = cache.get(key(file, offset));
                    if kept {
                        prop_assert!(found.is_some_and(|found| Arc::ptr_eq(&found, &cached)));
                    } else {
                        // Pinned blocks have at most a quarter.
                        let always_fits = (capacity >> shards) - (capacity >> shards) / 4;
                        prop_assert!(bytes as u64 + ENTRY_OVERHEAD_BYTES > always_fits);
                    }
                }
                Step::Remove(file) => {
                    cache.remove_file(FileId(file));
                    for offset in 0..40 {
                        prop_assert!(cache.get(key(file, offset)).is_none());
                    }
                }
            }
            check(&cache);
            let held: u64 = pinned.iter().map(|(_, held)| held.bytes as u64 + ENTRY_OVERHEAD_BYTES).sum();
            prop_assert_eq!(cache.usage().pinned_bytes, held);
        }
    }
}
