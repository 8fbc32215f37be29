//! Memstores that were flushed and are read all the same: memory that no limit of memstores counts any more.

use std::sync::Weak;

use parking_lot::Mutex;

use super::Memstore;
use super::index::SkipList;

/// Keeps an eye on flushed memstores without keeping them. Shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct FlushedMemstores {
    flushed: Mutex<Vec<(Weak<SkipList>, u64)>>,
}

impl FlushedMemstores {
    /// Notes a memstore whose cells are in a store file now.
    pub(crate) fn note(&self, memstore: &Memstore) {
        let mut flushed = self.flushed.lock();
        flushed.retain(|(cells, _)| cells.strong_count() > 0);
        flushed.push((std::sync::Arc::downgrade(&memstore.list), memstore.bytes()));
    }

    /// Bytes of those that somebody still reads, or could: an open scan that has not fetched since the flush.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        let flushed = self.flushed.lock();
        let held = flushed.iter().filter(|(cells, _)| cells.strong_count() > 0);
        held.map(|(_, bytes)| bytes).sum()
    }
}
