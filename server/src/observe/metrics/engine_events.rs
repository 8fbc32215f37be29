//! The engine's events, as histograms and log lines.

use std::time::Duration;

use basalt_engine::metrics::{CompactionEvent, EventListener, FlushEvent};
use metrics::{Histogram, histogram};

use super::names;

/// Listens to the engine. Handles are resolved at creation.
#[derive(Debug)]
pub(crate) struct EngineEvents {
    wal_sync: Histogram,
    wal_group: Histogram,
    flush: Histogram,
    compaction: Histogram,
}

impl EngineEvents {
    /// REQUIRES: the recorder is installed.
    pub(crate) fn new() -> Self {
        Self {
            wal_sync: histogram!(names::WAL_SYNC_SECONDS),
            wal_group: histogram!(names::WAL_GROUP_EDITS),
            flush: histogram!(names::FLUSH_SECONDS),
            compaction: histogram!(names::COMPACTION_SECONDS),
        }
    }
}

impl EventListener for EngineEvents {
    fn wal_group(&self, edits: usize, _bytes: usize, synced: Option<Duration>) {
        self.wal_group.record(edits as f64);
        if let Some(took) = synced {
            self.wal_sync.record(took);
        }
    }

    fn flushed(&self, event: &FlushEvent) {
        self.flush.record(event.took);
        tracing::info!(
            table = %event.table, region = %event.region, cells = event.cells, bytes = event.written_bytes,
            took = ?event.took, "flushed"
        );
    }

    fn compacted(&self, event: &CompactionEvent) {
        self.compaction.record(event.took);
        tracing::info!(
            table = %event.table, region = %event.region, family = event.family, major = event.major,
            files = event.files, read_bytes = event.read_bytes, written_bytes = event.written_bytes,
            took = ?event.took, "compacted"
        );
    }

    fn background_error(&self, during: &'static str, error: &basalt_engine::Error) {
        tracing::error!(%error, "{during} failed");
        if error.kind() == basalt_engine::Kind::Fatal {
            // The log's tail is unknown: restarting and recovering is the only state that can be trusted
            // (D4).
            tracing::error!("ending the process: {error}");
            crate::observe::log_queue::exit(crate::observe::log_queue::EXIT_LOG_FAILED);
        }
    }

    fn writes_suspended(&self, why: &str) {
        tracing::warn!("disk space: {why}");
    }

    fn writes_resumed(&self, after: Duration) {
        tracing::info!(?after, "disk space: writes are accepted again");
    }

    fn clock_behind(&self, what: &str) {
        tracing::warn!("{what}");
    }

    fn clock_caught_up(&self) {
        tracing::info!("clock: it has caught up with the timestamps that were assigned");
    }

    fn notice(&self, message: &str) {
        tracing::info!("{message}");
    }
}
