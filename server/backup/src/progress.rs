//! Figures of work that goes on, for those who look at it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a backup, a restore or a verification. Any thread may read them.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of all content.
    pub(crate) bytes_total: AtomicU64,
    /// Bytes that are done, however.
    pub(crate) bytes_done: AtomicU64,
    /// Bytes that went to the store, or came from it.
    pub(crate) bytes_moved: AtomicU64,
    /// Files of all content.
    pub(crate) files_total: AtomicU64,
}

/// The figures at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Files of the content.
    pub files: u64,
    /// Bytes of the content.
    pub bytes_total: u64,
    /// Bytes that are done.
    pub bytes_done: u64,
    /// Bytes that went to the store, or came from it.
    pub bytes_moved: u64,
}

impl Progress {
    /// The figures now.
    pub fn figures(&self) -> Figures {
        Figures {
            files: self.files_total.load(Ordering::Relaxed),
            bytes_total: self.bytes_total.load(Ordering::Relaxed),
            bytes_done: self.bytes_done.load(Ordering::Relaxed),
            bytes_moved: self.bytes_moved.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn expect(&self, files: u64, bytes: u64) {
        self.files_total.store(files, Ordering::Relaxed);
        self.bytes_total.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        self.bytes_moved.fetch_add(bytes, Ordering::Relaxed);
    }
}
