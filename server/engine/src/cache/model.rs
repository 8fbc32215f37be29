//! One shard of the block cache under loom: hits under the shared lock beside insertions, evictions and
//! removals.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::sync::check;

/// A block that names its key.
#[derive(Debug, PartialEq, Eq)]
struct Block(BlockKey);

impl Weighted for Block {
    fn weight(&self) -> usize {
        1024 - ENTRY_OVERHEAD_BYTES as usize
    }
}

fn key(file: u64, offset: u64) -> BlockKey {
    BlockKey {
        file: FileId(file),
        offset,
    }
}

/// A shard for that many blocks.
fn shard_of(blocks: u64) -> Arc<Shard<Block>> {
    Arc::new(Shard::new(blocks * 1024))
}

fn get(shard: &Shard<Block>, key: BlockKey) -> Option<Arc<Block>> {
    let found = shard.get(key.hash(), key);
    assert!(found.as_ref().is_none_or(|block| block.0 == key), "another block");
    found
}

fn insert(shard: &Shard<Block>, key: BlockKey) -> Arc<Block> {
    let cached = shard.insert(key.hash(), key, Arc::new(Block(key)), Class::Single);
    assert_eq!(cached.0, key, "another block");
    cached
}

fn usage(shard: &Shard<Block>) -> CacheUsage {
    let mut usage = CacheUsage::default();
    shard.add_usage(&mut usage);
    usage
}

fn spawn<T: 'static>(
    shard: &Arc<Shard<Block>>,
    run: impl FnOnce(&Shard<Block>) -> T + 'static,
) -> thread::JoinHandle<T> {
    let shard = Arc::clone(shard);
    thread::spawn(move || run(&shard))
}

/// Two readers that miss the same block end with the same one, which is counted once.
#[test]
fn loom_a_block_is_cached_once() {
    check(3, || {
        let shard = shard_of(4);
        let readers = [(); 2].map(|()| {
            spawn(&shard, |shard| {
                get(shard, key(1, 0)).unwrap_or_else(|| insert(shard, key(1, 0)))
            })
        });
        let [left, right] = readers.map(|reader| reader.join().unwrap());
        assert!(Arc::ptr_eq(&left, &right));
        assert_eq!((usage(&shard).insertions, usage(&shard).blocks), (1, [1, 0, 0]));
        shard.check();
    });
}

/// A full shard, a hit, and insertions that need room: the cache never exceeds its capacity, a
/// reader keeps the block it received, and a hit before the insertions saves its block once.
#[test]
fn loom_a_hit_beside_an_eviction() {
    check(3, || {
        let shard = shard_of(2);
        insert(&shard, key(1, 0));
        insert(&shard, key(1, 1));
        let reader = spawn(&shard, |shard| get(shard, key(1, 0)));
        let other = spawn(&shard, |shard| {
            insert(shard, key(2, 0));
            shard.check();
        });
        insert(&shard, key(2, 1));
        other.join().unwrap();
        // A returned block is whole, cached or not.
        if let Some(block) = reader.join().unwrap() {
            assert_eq!(block.0, key(1, 0));
        }
        shard.check();
        let usage = usage(&shard);
        assert_eq!(
            (
                usage.blocks.iter().sum::<u64>(),
                usage.evictions.iter().sum::<u64>()
            ),
            (2, 2)
        );
        assert_eq!(usage.hits.iter().sum::<u64>() + usage.misses, 1);
    });
}

/// A hit that ends before room is made gives its block another round: the bit is seen, although it
/// is set under the shared lock only.
#[test]
fn loom_a_hit_is_not_forgotten() {
    check(3, || {
        let shard = shard_of(2);
        insert(&shard, key(1, 0));
        insert(&shard, key(1, 1));
        let reader = spawn(&shard, |shard| get(shard, key(1, 0)).is_some());
        let beside = get(&shard, key(1, 0)).is_some();
        assert!(reader.join().unwrap() && beside);
        insert(&shard, key(2, 0));
        assert!(
            get(&shard, key(1, 0)).is_some(),
            "the block without a hit goes first"
        );
        shard.check();
    });
}

/// A file is removed while one of its blocks is inserted: the lists stay consistent, and blocks of
/// other files stay.
#[test]
fn loom_a_file_goes_while_its_block_comes() {
    check(3, || {
        let shard = shard_of(4);
        insert(&shard, key(1, 0));
        insert(&shard, key(2, 0));
        let comes = spawn(&shard, |shard| drop(insert(shard, key(1, 1))));
        let reads = spawn(&shard, |shard| drop(get(shard, key(1, 0))));
        shard.remove_file(FileId(1));
        assert!(get(&shard, key(1, 0)).is_none());
        comes.join().unwrap();
        reads.join().unwrap();
        shard.check();
        assert!(get(&shard, key(2, 0)).is_some());
        shard.remove_file(FileId(1));
        assert_eq!(usage(&shard).blocks, [1, 0, 0]);
    });
}
