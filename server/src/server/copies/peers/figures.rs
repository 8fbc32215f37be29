//! Figures of the source of one peer, for `status 'replication'` and for metrics.
//!
//! Written by the source's task; read by any thread. The figures are independent of each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;

use crate::observe::metrics::names;

/// A batch that the peer has made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shipped {
    pub(crate) edits: u64,
    pub(crate) cells: u64,
    pub(crate) bytes: u64,
    /// When its last edit was written here, in milliseconds since 1970.
    pub(crate) written_ms: u64,
}

/// Why an edit was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// It is not for this peer: its table or families, or it has come from there.
    Filtered,
    /// Its table is gone here.
    Dropped,
    /// An operator has given it up.
    GivenUp,
}

impl Unsent {
    /// The reason in metrics.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Filtered => "filtered",
            Self::Dropped => "dropped_table",
            Self::GivenUp => "given_up",
        }
    }
}

/// The figures of a source.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Whether its task reads and ships.
    running: AtomicBool,
    read: AtomicU64,
    shipped: AtomicU64,
    /// When the last edit that was shipped was written, in milliseconds since 1970; 0: none since the start.
    shipped_written_ms: AtomicU64,
    /// Time between its write and the peer's answer.
    age_ms: AtomicU64,
    /// When the first edit that is not shipped was written; 0: none is known.
    next_written_ms: AtomicU64,
    kept_bytes: AtomicU64,
    /// Edits below this sequence id are durable at the peer, or not for it.
    position: AtomicU64,
    /// Why the last attempt failed; empty after a success.
    problem: Mutex<String>,
    batches: Counter,
    edits: Counter,
    cells: Counter,
    bytes: Counter,
    failures: Counter,
    filtered: Counter,
    dropped: Counter,
    given_up: Counter,
    lag: Gauge,
    kept: Gauge,
}

/// Figures of a source, for `status 'replication'`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLoad {
    pub(crate) running: bool,
    pub(crate) read: u64,
    pub(crate) shipped: u64,
    pub(crate) shipped_written_ms: u64,
    pub(crate) age_ms: u64,
    pub(crate) next_written_ms: u64,
    pub(crate) lag_ms: u64,
    pub(crate) kept_bytes: u64,
    pub(crate) position: u64,
    pub(crate) problem: String,
}

impl Figures {
    /// The figures of a peer that has just been added, or of a server that has just started.
    /// REQUIRES: the recorder is installed.
    pub(super) fn new(peer: &str) -> Self {
        let of_peer = |name| counter!(name, "peer" => peer.to_owned());
        let unsent =
            |why: Unsent| counter!(names::SOURCE_UNSENT, "peer" => peer.to_owned(), "reason" => why.text());
        Self {
            running: AtomicBool::new(false),
            read: AtomicU64::new(0),
            shipped: AtomicU64::new(0),
            shipped_written_ms: AtomicU64::new(0),
            age_ms: AtomicU64::new(0),
            next_written_ms: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            position: AtomicU64::new(0),
            problem: Mutex::default(),
            batches: of_peer(names::SOURCE_BATCHES),
            edits: of_peer(names::SOURCE_EDITS),
            cells: of_peer(names::SOURCE_CELLS),
            bytes: of_peer(names::SOURCE_BYTES),
            failures: of_peer(names::SOURCE_FAILURES),
            filtered: unsent(Unsent::Filtered),
            dropped: unsent(Unsent::Dropped),
            given_up: unsent(Unsent::GivenUp),
            lag: gauge!(names::SOURCE_LAG_SECONDS, "peer" => peer.to_owned()),
            kept: gauge!(names::SOURCE_KEPT_BYTES, "peer" => peer.to_owned()),
        }
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// Records edits that were read from the log.
    pub(crate) fn note_read(&self, edits: u64) {
        self.read.fetch_add(edits, Ordering::Relaxed);
    }

    /// Records when the first edit that is not shipped was written; 0: everything is shipped.
    pub(crate) fn set_next(&self, written_ms: u64) {
        self.next_written_ms.store(written_ms, Ordering::Relaxed);
    }

    pub(crate) fn set_kept_bytes(&self, bytes: u64) {
        self.kept_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Records the sequence id below which edits are durable at the peer, or not for it.
    pub(crate) fn set_position(&self, position: u64) {
        self.position.store(position, Ordering::Relaxed);
    }

    /// Records a batch that is durable at the peer.
    pub(crate) fn note_shipped(&self, shipped: Shipped, now_ms: u64) {
        self.shipped.fetch_add(shipped.edits, Ordering::Relaxed);
        self.shipped_written_ms
            .store(shipped.written_ms, Ordering::Relaxed);
        let age_ms = now_ms.saturating_sub(shipped.written_ms);
        self.age_ms.store(age_ms, Ordering::Relaxed);
        self.problem.lock().clear();
        self.batches.increment(1);
        self.edits.increment(shipped.edits);
        self.cells.increment(shipped.cells);
        self.bytes.increment(shipped.bytes);
    }

    /// Records edits that were not sent.
    pub(crate) fn note_unsent(&self, why: Unsent, edits: u64) {
        let counter = match why {
            Unsent::Filtered => &self.filtered,
            Unsent::Dropped => &self.dropped,
            Unsent::GivenUp => &self.given_up,
        };
        counter.increment(edits);
    }

    /// Records an attempt that failed.
    pub(crate) fn note_failed(&self, problem: &str) {
        problem.clone_into(&mut self.problem.lock());
        self.failures.increment(1);
    }

    /// The figures at this time.
    pub(crate) fn load(&self, now_ms: u64) -> SourceLoad {
        let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let next_written_ms = get(&self.next_written_ms);
        SourceLoad {
            running: self.running.load(Ordering::Relaxed),
            read: get(&self.read),
            shipped: get(&self.shipped),
            shipped_written_ms: get(&self.shipped_written_ms),
            age_ms: get(&self.age_ms),
            next_written_ms,
            lag_ms: match next_written_ms {
                0 => 0,
                written_ms => now_ms.saturating_sub(written_ms),
            },
            kept_bytes: get(&self.kept_bytes),
            position: get(&self.position),
            problem: self.problem.lock().clone(),
        }
    }

    /// Ends the gauges of a peer that was removed.
    pub(crate) fn retire(&self) {
        self.set_next(0);
        self.set_kept_bytes(0);
        self.publish(0);
    }

    /// Writes the gauges for the scrape.
    pub(super) fn publish(&self, now_ms: u64) {
        let load = self.load(now_ms);
        self.lag.set(load.lag_ms as f64 / 1e3);
        self.kept.set(load.kept_bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_that_of_the_first_edit_that_waits() {
        let figures = Figures::new("p");
        assert_eq!(figures.load(5_000).lag_ms, 0);
        figures.set_next(2_000);
        assert_eq!(figures.load(5_000).lag_ms, 3_000);
        figures.note_failed("away");
        let shipped = Shipped {
            edits: 2,
            written_ms: 2_500,
            ..Shipped::default()
        };
        assert_eq!(figures.load(5_000).problem, "away");
        figures.note_shipped(shipped, 6_000);
        figures.set_next(0);
        let load = figures.load(9_000);
        assert_eq!((load.lag_ms, load.age_ms, load.shipped), (0, 3_500, 2));
        assert_eq!(load.problem, "");
    }
}
