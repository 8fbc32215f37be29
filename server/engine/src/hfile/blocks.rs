//! Blocks in memory.

use super::block::BlockKind;
use super::bloom::{self, Bloom};
use super::data_block::DataBlock;
use super::index::IndexBlock;
use crate::cache::Weighted;

/// A block in memory, as the cache holds it: unpacked, its checksum verified.
#[derive(Debug)]
pub struct Block {
    /// Size on disk; an index entry must agree with it.
    pub(super) disk_bytes: u32,
    /// Offset of the block before it of the same kind.
    pub(super) previous: Option<u64>,
    pub(super) content: Content,
    /// The block's weight if it is more than [`LARGE_BLOCK_BYTES`]; else 0.
    pub(super) large_bytes: usize,
}

/// Block size from which memory is reserved from the budget of calls. Most blocks have 64 KiB;
/// those of large cells may have many MiB.
pub(super) const LARGE_BLOCK_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) enum Content {
    Data(DataBlock),
    Leaf(IndexBlock),
    Intermediate(IndexBlock),
    Bloom(Vec<u8>),
}

impl Weighted for Block {
    fn weight(&self) -> usize {
        size_of::<Self>()
            + match &self.content {
                Content::Data(data) => data.weight(),
                Content::Leaf(index) | Content::Intermediate(index) => index.weight(),
                Content::Bloom(bits) => bits.len(),
            }
    }
}

impl Block {
    /// The cells.
    /// REQUIRES: loaded as [`Want::Data`].
    #[inline]
    pub(super) fn data(&self) -> &DataBlock {
        match &self.content {
            Content::Data(data) => data,
            _ => unreachable!("the kind was checked when the block was loaded"),
        }
    }

    /// The index entries.
    /// REQUIRES: loaded as [`Want::Leaf`] or [`Want::Intermediate`].
    pub(super) fn index(&self) -> &IndexBlock {
        match &self.content {
            Content::Leaf(index) | Content::Intermediate(index) => index,
            _ => unreachable!("the kind was checked when the block was loaded"),
        }
    }

    /// Whether the key may have been added to the chunk of a filter.
    /// REQUIRES: loaded as [`Want::Bloom`].
    pub(super) fn may_contain(&self, key: &[u8], bloom: &Bloom) -> bool {
        match &self.content {
            Content::Bloom(bits) => bloom::chunk_may_contain(bits, key, bloom.hashes()),
            _ => unreachable!("the kind was checked when the block was loaded"),
        }
    }

    /// The block's weight if it is a large one, else 0.
    #[inline]
    pub(super) fn large_bytes(&self) -> usize {
        self.large_bytes
    }

    /// Whether it is of that kind.
    #[inline]
    pub(super) fn is(&self, want: Want) -> bool {
        matches!(
            (&self.content, want),
            (Content::Data(_), Want::Data)
                | (Content::Leaf(_), Want::Leaf)
                | (Content::Intermediate(_), Want::Intermediate)
                | (Content::Bloom(_), Want::Bloom)
        )
    }
}

/// Kind of block that is expected at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Cells, plain or encoded.
    Data,
    /// Index of data blocks.
    Leaf,
    /// Index of index blocks.
    Intermediate,
    /// Chunk of a bloom filter.
    Bloom,
}

impl Want {
    pub(super) fn accepts(self, kind: BlockKind) -> bool {
        match self {
            Self::Data => kind.is_data(),
            Self::Leaf => kind == BlockKind::LeafIndex,
            Self::Intermediate => kind == BlockKind::IntermediateIndex,
            Self::Bloom => kind == BlockKind::BloomChunk,
        }
    }
}
