//! Blocks that a point read needs and that are not in memory.
//!
//! A batch of gets looks for the missing blocks of all its rows, reads them in parallel into the
//! cache, and then runs the gets. The search reads and marks nothing. It reports no damage: the get
//! that reads the same block does.

use std::sync::Arc;

use super::ReadOptions;
use super::blocks::{Block, LARGE_BLOCK_BYTES, Want};
use super::bloom::Bloom;
use super::index::{Handle, IndexBlock};
use super::reader::Reader;
use crate::cell::{Key, compare_keys};

/// A block that is not in memory, and how it was found.
#[derive(Debug)]
pub(crate) struct MissingBlock {
    want: Want,
    handle: Handle,
    /// For a data block, the index block that leads to it, unless that is the root.
    leaf: Option<Arc<Block>>,
    /// Entry in that index block.
    entry: usize,
}

impl MissingBlock {
    /// Where it begins in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.handle.offset
    }

    /// Size on disk.
    pub(crate) fn bytes(&self) -> usize {
        self.handle.bytes as usize
    }
}

/// A bloom filter's answer, as far as it is in memory.
#[derive(Debug)]
pub(crate) enum BloomAnswer {
    /// The file may have the key, or no filter can tell.
    Maybe,
    /// The file does not have the key.
    No,
    /// The filter's chunk is not in memory.
    Missing(MissingBlock),
}

/// Content of the cache at the place of a block.
enum Peeked {
    Block(Arc<Block>),
    Missing,
    /// A block of another kind or size: the file is damaged.
    Other,
}

impl Reader {
    fn peek(&self, want: Want, handle: Handle) -> Peeked {
        match self.cache().peek(self.cache_key(handle)) {
            Some(block) if Self::is_block(&block, want, handle) => Peeked::Block(block),
            Some(_) => Peeked::Other,
            None => Peeked::Missing,
        }
    }

    /// The bloom filter's answer for a row, or for one of its columns, as far as memory has it.
    pub(crate) fn peek_bloom(&self, row: &[u8], qualifier: Option<&[u8]>) -> BloomAnswer {
        let mut missing = None;
        let ask = |bloom: &Bloom, key: &[u8]| {
            let Some(chunk) = bloom.chunk(key) else {
                return Ok(false);
            };
            if let Some(block) = self.pinned_bloom(chunk) {
                return Ok(block.may_contain(key, bloom));
            }
            let handle = bloom.handle(chunk);
            Ok(match self.peek(Want::Bloom, handle) {
                Peeked::Block(block) => block.may_contain(key, bloom),
                Peeked::Other => true,
                Peeked::Missing => {
                    missing.get_or_insert(MissingBlock {
                        want: Want::Bloom,
                        handle,
                        leaf: None,
                        entry: chunk,
                    });
                    true
                }
            })
        };
        let answer = self.ask_bloom(row, qualifier, ask);
        match (answer, missing) {
            (_, Some(missing)) => BloomAnswer::Missing(missing),
            (Ok(Some(false)), None) => BloomAnswer::No,
            (_, None) => BloomAnswer::Maybe,
        }
    }

    /// The first block on the way to `target`, from the root of the index to the data block, that is
    /// not in memory and would be kept there.
    pub(crate) fn missing_block(&self, target: Key<'_>, options: ReadOptions) -> Option<MissingBlock> {
        let find = |index: &IndexBlock| index.find(target).unwrap_or(0);
        if self.root.len() == 0 {
            return None;
        }
        let mut leaf: Option<Arc<Block>> = None;
        let mut entry = find(&self.root);
        let levels = self.trailer.levels as usize;
        for level in 1..=levels {
            let want = match levels - level {
                0 => Want::Data,
                1 => Want::Leaf,
                _ => Want::Intermediate,
            };
            let index = leaf.as_ref().map_or(&self.root, |block| block.index());
            let handle = index.handle(entry);
            let pinned = if want != Want::Data && level == 1 {
                self.pinned_index(entry)
            } else {
                None
            };
            let found = pinned.map_or_else(
                || self.peek(want, handle),
                |block| Peeked::Block(Arc::clone(block)),
            );
            match found {
                Peeked::Block(_) if want == Want::Data => return None,
                Peeked::Block(block) => {
                    entry = find(block.index());
                    leaf = Some(block);
                }
                Peeked::Other => return None,
                Peeked::Missing => {
                    return (options.cache_blocks || want != Want::Data).then_some(MissingBlock {
                        want,
                        handle,
                        leaf,
                        entry,
                    });
                }
            }
        }
        None
    }

    /// Reads a missing block into the cache and returns whether it is there now. Leaves out large
    /// blocks, and drops errors: the get that needs the block reads it itself and reports them.
    pub(crate) fn read_missing(&self, missing: &MissingBlock, options: ReadOptions) -> bool {
        let bytes = missing.bytes();
        if bytes > LARGE_BLOCK_BYTES || !self.is_inside(missing.handle) {
            return false;
        }
        let mut own = vec![0; bytes];
        if self
            .point_file()
            .read_exact_at(&mut own, missing.offset())
            .is_err()
        {
            return false;
        }
        let Ok(_unpacked) = self.account_unpacked(&own, options) else {
            return false;
        };
        let Ok(block) = self.parse_block(missing.want, own.into()) else {
            return false;
        };
        let index = missing.leaf.as_ref().map_or(&self.root, |block| block.index());
        let is_misplaced = missing.want == Want::Data
            && compare_keys(block.data().first_key(), index.key(missing.entry)).is_lt();
        if is_misplaced {
            return false;
        }
        self.count_read_ahead();
        self.cache()
            .insert_ahead(self.cache_key(missing.handle), Arc::new(block), options.priority)
    }
}
