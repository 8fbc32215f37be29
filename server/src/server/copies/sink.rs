//! Figures of the replication sink: what sources of other clusters have sent.
//!
//! Counters are independent of each other and read without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Gauge, counter, gauge};

use crate::observe::metrics::names;

/// Counts of the edits of a batch that were applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Edits of the source's log.
    pub(crate) edits: u64,
    /// Loaded files.
    pub(crate) files: u64,
    /// When the last edit was written at the source, in milliseconds since 1970.
    pub(crate) written_ms: u64,
}

/// Why an edit of a source was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// A note of the source's log.
    Marker,
    /// A row of a system table.
    SystemTable,
}

/// The figures.
#[derive(Debug)]
pub(crate) struct Sink {
    /// When the last edit was written at its source; the start of this server until there is one. HBase's
    /// shell shows that a sink waits for edits as long as this is its start.
    written_ms: AtomicU64,
    /// Time between then and its end here.
    age_ms: AtomicU64,
    edits: AtomicU64,
    files: AtomicU64,
    batches: Counter,
    failed: Counter,
    markers: Counter,
    of_system_tables: Counter,
    all_edits: Counter,
    all_files: Counter,
    age: Gauge,
    written: Gauge,
}

/// The figures for `status 'replication'`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SinkLoad {
    pub(crate) written_ms: u64,
    pub(crate) age_ms: u64,
    /// Edits and loaded files.
    pub(crate) operations: u64,
}

impl Sink {
    /// A sink without edits, of a server that started then.
    /// REQUIRES: the recorder is installed.
    pub(crate) fn new(started_ms: u64) -> Self {
        Self {
            written_ms: AtomicU64::new(started_ms),
            age_ms: AtomicU64::new(0),
            edits: AtomicU64::new(0),
            files: AtomicU64::new(0),
            batches: counter!(names::SINK_BATCHES),
            failed: counter!(names::SINK_FAILED_BATCHES),
            markers: counter!(names::SINK_DROPPED, "kind" => "marker"),
            of_system_tables: counter!(names::SINK_DROPPED, "kind" => "system_table"),
            all_edits: counter!(names::SINK_EDITS),
            all_files: counter!(names::SINK_FILES),
            age: gauge!(names::SINK_AGE_SECONDS),
            written: gauge!(names::SINK_WRITTEN_SECONDS),
        }
    }

    /// Records a batch that is durable now.
    pub(crate) fn applied(&self, applied: Applied, now_ms: u64) {
        self.batches.increment(1);
        self.all_edits.increment(applied.edits);
        self.all_files.increment(applied.files);
        self.edits.fetch_add(applied.edits, Ordering::Relaxed);
        self.files.fetch_add(applied.files, Ordering::Relaxed);
        if applied.edits > 0 {
            let age_ms = now_ms.saturating_sub(applied.written_ms);
            self.written_ms.store(applied.written_ms, Ordering::Relaxed);
            self.age_ms.store(age_ms, Ordering::Relaxed);
            self.age.set(age_ms as f64 / 1e3);
            self.written.set(applied.written_ms as f64 / 1e3);
        }
    }

    /// Records a batch that was refused.
    pub(crate) fn failed(&self) {
        self.failed.increment(1);
    }

    /// Records an edit that was dropped.
    pub(crate) fn dropped(&self, why: Dropped) {
        let counter = match why {
            Dropped::Marker => &self.markers,
            Dropped::SystemTable => &self.of_system_tables,
        };
        counter.increment(1);
    }

    /// The figures for `status 'replication'`.
    pub(crate) fn load(&self) -> SinkLoad {
        SinkLoad {
            written_ms: self.written_ms.load(Ordering::Relaxed),
            age_ms: self.age_ms.load(Ordering::Relaxed),
            operations: self.edits.load(Ordering::Relaxed) + self.files.load(Ordering::Relaxed),
        }
    }
}
