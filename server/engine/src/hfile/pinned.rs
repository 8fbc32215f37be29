//! Blocks that an open file keeps in memory because nearly every read of it needs one: chunks of its bloom
//! filter, and the index blocks right under the root.
//!
//! A slot is filled by the first read that wants its block, if the block cache allows it
//! ([`BlockCache::pin`]: a quarter of the cache), and stays filled until the file is closed.
//! Finding a pinned block costs one load: no hash, no lock, no reference count. A block that does
//! not fit is looked up in the cache as any other.

use std::sync::{Arc, OnceLock};

use super::blocks::Block;
use super::index::Handle;
use crate::cache::{BlockCache, BlockKey};
use crate::id::FileId;

/// One slot for each entry of an index.
#[derive(Debug)]
pub(super) struct PinnedBlocks(Box<[OnceLock<Arc<Block>>]>);

impl PinnedBlocks {
    /// Empty slots for this many entries.
    pub(super) fn new(entries: usize) -> Self {
        Self((0..entries).map(|_| OnceLock::new()).collect())
    }

    /// The block of an entry, if it is pinned.
    #[inline]
    pub(super) fn get(&self, entry: usize) -> Option<&Arc<Block>> {
        self.0.get(entry)?.get()
    }

    /// Pins the block of an entry, if there is a slot for it and room in the cache.
    pub(super) fn pin(&self, entry: usize, block: &Arc<Block>, cache: &BlockCache<Block>, key: BlockKey) {
        let Some(slot) = self.0.get(entry) else {
            return;
        };
        if slot.get().is_none() && cache.pin(key, block) && slot.set(Arc::clone(block)).is_err() {
            // Another thread was first.
            cache.unpin(key, block);
        }
    }

    /// Unpins all blocks.
    pub(super) fn unpin(
        &mut self,
        cache: &BlockCache<Block>,
        file: FileId,
        handle: impl Fn(usize) -> Handle,
    ) {
        for (entry, slot) in self.0.iter_mut().enumerate() {
            if let Some(block) = slot.take() {
                let offset = handle(entry).offset;
                cache.unpin(BlockKey { file, offset }, &block);
            }
        }
    }

    /// Bytes of the slots in memory.
    pub(super) fn weight(&self) -> usize {
        size_of_val(&*self.0)
    }
}
