//! Since when the log waits for the disk.
//!
//! A failing disk returns an error, and the process ends. A hanging one returns nothing: the leader
//! waits, and so does every group behind. The leader records when it began, so that new writes can
//! be refused instead of waiting with the rest.
//!
//! One number, written by the holder of the log's leader token, read by any thread without
//! a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

/// The watch of one log.
#[derive(Debug)]
pub(super) struct Watch {
    /// The origin of the times.
    origin: Instant,
    /// Start of the running operation, in nanoseconds from `origin`, at least 1; 0: there is none.
    since: CachePadded<AtomicU64>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            origin: Instant::now(),
            since: CachePadded::default(),
        }
    }

    /// Records the beginning of an operation that may wait for the disk; the guard records its end.
    pub(super) fn begin(&self) -> Working<'_> {
        self.since.store(self.now().max(1), Ordering::Relaxed);
        Working(self)
    }

    /// Duration of the running operation so far; `None` when there is none.
    pub(super) fn waiting(&self) -> Option<Duration> {
        match self.since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Duration::from_nanos(self.now().saturating_sub(since))),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Work that is going on.
#[derive(Debug)]
pub(super) struct Working<'a>(&'a Watch);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Relaxed);
    }
}
