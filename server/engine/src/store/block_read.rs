//! Reading blocks into the cache ahead of the gets that need them.

use std::sync::Arc;

use super::StoreFile;
use crate::hfile::{MissingBlock, ReadOptions};
use crate::id::FileId;

/// One block to be read into the cache, by any thread. Keeps the file.
#[derive(Debug)]
pub(crate) struct BlockRead {
    file: Arc<StoreFile>,
    block: MissingBlock,
    options: ReadOptions,
}

impl BlockRead {
    pub(super) fn new(file: Arc<StoreFile>, block: MissingBlock, options: ReadOptions) -> Self {
        Self { file, block, options }
    }

    /// Identity of the block; its order is that of the disk within a file.
    pub(crate) fn place(&self) -> (FileId, u64) {
        (self.file.id(), self.block.offset())
    }

    /// Size on disk.
    pub(crate) fn bytes(&self) -> usize {
        self.block.bytes()
    }

    /// Reads the block and returns whether it is cached now. An error is left to the get that needs
    /// the block.
    pub(crate) fn run(&self) -> bool {
        self.file.reader().read_missing(&self.block, self.options)
    }
}
