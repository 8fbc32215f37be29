//! Status of the server's backups: whether one runs, and how the last ones ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use basalt_backup::Made;
use tokio::sync::Semaphore;

/// Backups of this server.
#[derive(Debug)]
pub(crate) struct Backups {
    /// One backup at a time: it has the memory for its transfers.
    running: Arc<Semaphore>,
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// Bytes that were written to stores.
    bytes: AtomicU64,
    /// Milliseconds since 1970 of the last success; 0: none since the start.
    last_success_ms: AtomicU64,
    /// The last end of the log that can be restored, in milliseconds since 1970; the start of the shipping
    /// before there is one; 0: the log is not shipped.
    covered_ms: AtomicU64,
    /// Steps of the shipping that failed.
    log_failures: AtomicU64,
}

impl Backups {
    pub(super) fn new() -> Self {
        Self {
            running: Arc::new(Semaphore::new(1)),
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            last_success_ms: AtomicU64::new(0),
            covered_ms: AtomicU64::new(0),
            log_failures: AtomicU64::new(0),
        }
    }

    /// Records that the log is shipped from now on.
    pub(crate) fn begin_continuous(&self) {
        self.covered_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Records that the log up to this time can be restored.
    pub(crate) fn note_covered(&self, time_ms: u64) {
        self.covered_ms.fetch_max(time_ms, Ordering::Relaxed);
    }

    /// Counts a step of the shipping that failed.
    pub(crate) fn note_log_failure(&self) {
        self.log_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes of the log that were written to the store.
    pub(crate) fn note_log_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The place of the backup that runs.
    pub(crate) fn running(&self) -> &Arc<Semaphore> {
        &self.running
    }

    /// Records how a backup ended.
    pub(crate) fn note<E: std::fmt::Display>(&self, made: &Result<Made, E>) {
        match made {
            Ok(made) => {
                self.succeeded.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(made.written, Ordering::Relaxed);
                self.last_success_ms.store(now_ms(), Ordering::Relaxed);
                tracing::info!(
                    id = made.id,
                    files = made.files,
                    bytes = made.bytes,
                    written = made.written,
                    "backup made"
                );
            }
            Err(error) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("backup failed: {error}");
            }
        }
    }

    /// Writes the figures for the scrape.
    pub(super) fn publish(&self) {
        use crate::observe::metrics::names;
        let load = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        metrics::counter!(names::BACKUPS, "result" => "made").absolute(load(&self.succeeded));
        metrics::counter!(names::BACKUPS, "result" => "failed").absolute(load(&self.failed));
        metrics::counter!(names::BACKUP_BYTES).absolute(load(&self.bytes));
        metrics::gauge!(names::BACKUP_LAST_SUCCESS).set(load(&self.last_success_ms) as f64 / 1e3);
        metrics::counter!(names::BACKUP_LOG_FAILURES).absolute(load(&self.log_failures));
        let covered_ms = load(&self.covered_ms);
        if covered_ms > 0 {
            let lag_ms = now_ms().saturating_sub(covered_ms);
            metrics::gauge!(names::BACKUP_LAG).set(lag_ms as f64 / 1e3);
        }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
