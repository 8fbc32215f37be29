//! Periodic checks: the log's idle marker, the disk, memory in use and kept, age of memstores and
//! files, expired snapshots, the time's high-water mark.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Job, Workers};
use crate::clock::Timestamps;
use crate::disk::Change;
use crate::error::{Error, Kind, Result};
use crate::region::Shared;

/// Period of the survey: finds compactions that have become due, and frees memory unused since the
/// last one.
const SURVEY_PERIOD: Duration = Duration::from_mins(1);

/// Pause between two runs of the normalizer (HBase: `hbase.normalizer.period`).
const NORMALIZER_PERIOD: Duration = Duration::from_mins(5);

/// Minimum of the limit of sealed log segments that a region may keep alive. The limit is higher if
/// twice the memstores' limit takes more segments (both as HBase: `hbase.regionserver.maxlogs`).
const WAL_SEGMENTS_MIN: usize = 32;

impl Workers {
    pub(super) fn tick(&self) -> Result<()> {
        let shared = self.catalog.shared();
        shared.wal.tick()?;
        self.poll_clock();
        let kept = self
            .catalog
            .note_new_segments()
            .and_then(|()| self.catalog.keep_high_water(Timestamps::lags_mark));
        let problem = match kept {
            Err(error) if error.kind() == Kind::Fatal => return Err(error),
            kept => shared.wal.lacks().or(kept.err()),
        };
        self.poll_disk(problem);
        if self.memory_is_short() {
            self.relieve_memory();
            shared.store.chunks.clear();
        }
        let now = shared.clock.mono();
        let old = now.saturating_sub(Shared::PERIODIC_FLUSH).as_millis() as u64;
        for region in self.catalog.tables().regions() {
            if now >= Shared::PERIODIC_FLUSH && region.dirty_since_ms().is_some_and(|since| since <= old) {
                self.queue.request(Job::Flush(region.id()));
            }
        }
        let options = &shared.options;
        let needed = options.memstore_total_bytes.saturating_mul(2) / options.wal_segment_bytes.max(1);
        let kept = usize::try_from(needed)
            .unwrap_or(usize::MAX)
            .max(WAL_SEGMENTS_MIN);
        self.bound_log(kept);
        let survey_due = {
            let mut last = self.last_survey.lock();
            let due = now.saturating_sub(*last) >= SURVEY_PERIOD;
            if due {
                *last = now;
            }
            due
        };
        if survey_due {
            self.request_normalizing(now);
            shared.store.chunks.trim();
            for region in self.catalog.tables().regions() {
                self.after_change(region);
            }
            match self.catalog.remove_expired_snapshots() {
                Err(error) if error.kind() == Kind::Fatal => return Err(error),
                Err(error) => shared
                    .listener
                    .background_error("removing expired snapshots", &error),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Queues a run of the normalizer over each table that asks for it, at most once in its period.
    fn request_normalizing(&self, now: Duration) {
        let mut last = self.last_normalized.lock();
        if now.saturating_sub(*last) < NORMALIZER_PERIOD {
            return;
        }
        *last = now;
        for table in self.catalog.tables().sorted() {
            if self.catalog.is_normalized(&table) {
                self.queue.request(Job::Normalize(table.name().clone()));
            }
        }
    }

    /// Polls the disk and acts on the result (`disk` has the rules). `problem`: a request that has
    /// just been refused for want of space.
    pub(crate) fn poll_disk(&self, problem: Option<Error>) {
        let shared = self.catalog.shared();
        let memstore_bytes = shared.memstore_bytes();
        let mut problem = problem;
        if shared.disk.is_suspended()
            && let Err(error) = self.catalog.remove_obsolete_wal()
        {
            problem = Some(error);
        }
        match shared.disk.poll(memstore_bytes, problem, shared.clock.mono()) {
            Ok(Change::Nothing) => {}
            Ok(Change::MoreSpace) => self.queue.hurry(),
            Ok(Change::Suspended(why)) => shared.listener.writes_suspended(&why),
            Ok(Change::Resumed(after)) => {
                shared.listener.writes_resumed(after);
                self.queue.hurry();
            }
            Err(error) => shared.listener.background_error("looking at the disk", &error),
        }
        if shared.disk.is_short() {
            self.bound_log(0);
        }
    }

    /// Queues flushes of the regions whose edits keep old log segments alive, when there are more
    /// than `kept` sealed ones: a region with few writes would otherwise keep every segment since
    /// its oldest edit, which takes disk space and has to be read by the next start.
    fn bound_log(&self, kept: usize) {
        let shared = self.catalog.shared();
        let Some(beyond) = shared.wal.last_seq_beyond(kept) else {
            return;
        };
        for region in self.catalog.tables().regions() {
            let keeps = region
                .version()
                .oldest_unflushed()
                .is_some_and(|oldest| oldest <= beyond);
            // A running flush includes these edits; a second one would write a tiny file.
            if keeps && !region.flushing.is_locked() {
                self.queue.request(Job::Flush(region.id()));
            }
        }
    }

    /// Whether all memstores together hold four fifths of their limit: early enough that a flush
    /// frees memory before writes are slowed (`region::pause`). HBase's lower limit of 95 % leaves
    /// a flush too little time if many regions are small.
    pub(crate) fn memory_is_short(&self) -> bool {
        let shared = self.catalog.shared();
        let limit = shared.options.memstore_total_bytes;
        shared.memstore_bytes() >= limit - limit / 5
    }

    /// Queues a flush of the region with the most memory, once until a flush has ended. A region
    /// whose last flush failed waits for its retry, so it is skipped in favour of those that can
    /// free memory now.
    pub(crate) fn relieve_memory(&self) {
        if self.relief_requested.swap(true, Ordering::AcqRel) {
            return;
        }
        let tables = self.catalog.tables();
        let dirty = tables.regions().filter(|region| region.memstore_bytes() > 0);
        let largest = dirty.max_by_key(|region| {
            let fails = self.queue.is_failing(&Job::Flush(region.id()));
            (!fails, region.memstore_bytes())
        });
        match largest {
            Some(region) => self.queue.request(Job::Flush(region.id())),
            None => self.relief_done(),
        }
    }
}
