//! Streams of changes: their number, their readers, their figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_engine::{Engine, Error};
use metrics::{Counter, Gauge, counter, gauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::observe::metrics::names;

/// Begins the names of the log's readers that consumers have named.
pub(crate) const NAMED: &str = "changes ";
/// Begins the names of the log's readers that streams have for themselves.
pub(crate) const OWN: &str = "stream ";

/// The streams of changes of a server.
#[derive(Debug)]
pub(crate) struct Changes {
    places: Arc<Semaphore>,
    max: usize,
    /// Number of the next reader that a stream has for itself.
    next: AtomicU64,
    streams: Gauge,
    records: Counter,
    kept_bytes: Gauge,
    dropped: Counter,
}

impl Changes {
    /// Removes the readers that streams have left behind, which a crash does.
    pub(super) fn load(engine: &Engine, max: usize) -> Result<Self, Error> {
        for reader in engine.log_readers() {
            if reader.name.starts_with(OWN) {
                engine.remove_log_reader(&reader.name)?;
            }
        }
        Ok(Self {
            places: Arc::new(Semaphore::new(max)),
            max,
            next: AtomicU64::new(1),
            records: counter!(names::CHANGE_RECORDS),
            dropped: counter!(names::CHANGE_READERS_DROPPED),
            kept_bytes: gauge!(names::CHANGE_KEPT_BYTES),
            streams: gauge!(names::CHANGE_STREAMS),
        })
    }

    /// A place for a stream; fails with their number if all are taken.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, usize> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| self.max)
    }

    /// A name for the reader that a stream has for itself.
    pub(crate) fn own_name(&self) -> String {
        format!("{OWN}{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts records that were made.
    pub(crate) fn note_records(&self, records: u64) {
        self.records.increment(records);
    }

    /// Records how much of the log is kept for the reader that is furthest behind.
    pub(crate) fn set_kept_bytes(&self, bytes: u64) {
        self.kept_bytes.set(bytes as f64);
    }

    /// Counts a reader that was removed at the limit of the log.
    pub(crate) fn note_dropped(&self) {
        self.dropped.increment(1);
    }

    /// Writes the gauges for the scrape.
    pub(super) fn publish(&self) {
        let open = self.max.saturating_sub(self.places.available_permits());
        self.streams.set(open as f64);
    }
}
