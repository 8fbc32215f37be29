//! The steps: one job each, and its follow-up work.

use std::time::Duration;

use super::{Job, Work, Workers};
use crate::catalog::{CompactionMode, CompactionOutcome};
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::region::Region;

/// Longest time a flush waits for a store with too many files to be compacted (HBase:
/// `hbase.hstore.blockingWaitTime`).
const BLOCKING_WAIT: Duration = Duration::from_secs(90);

/// How often a waiting flush looks again, and a compaction that waits for others.
const LOOK: Duration = Duration::from_millis(100);

impl Workers {
    pub(super) fn step(&self, job: &Job) -> Result<()> {
        match job {
            Job::Flush(region) => self.flush(*region),
            Job::Compact {
                region,
                family,
                major,
                long,
            } => self.compact(*region, family, *major, *long),
            Job::Split(region) => self.split(*region),
            Job::Normalize(table) => {
                let regions = self.catalog.normalize(table)?;
                self.after_replacement(&regions);
                Ok(())
            }
        }
    }

    fn flush(&self, id: RegionId) -> Result<()> {
        let Ok((_, region)) = self.catalog.region(id) else {
            // It was split or dropped: if it was chosen to relieve memory, another one must be.
            self.relief_done();
            return Ok(());
        };
        if self.must_wait(&region) {
            self.after_change(&region);
            let now = self.catalog.shared().clock.mono();
            self.queue.request_at(Job::Flush(id), now + LOOK);
            return Ok(());
        }
        let result = self.catalog.flush_region(&region);
        self.relief_done();
        result?;
        self.after_change(&region);
        Ok(())
    }

    /// Whether a flush should wait for compaction because a store has too many files of the same rows: reads
    /// get slower with each of them. The wait is bounded, and there is none when memory or the disk is short
    /// (compactions may then have to wait for space), when compactions are paused, or when the region is
    /// damaged and therefore not compacted.
    fn must_wait(&self, region: &Region) -> bool {
        let shared = self.catalog.shared();
        let version = region.version();
        let crowded = region.check_undamaged().is_ok()
            && shared.options.compaction_enabled
            && !self.is_paused(Work::Compactions)
            && version.table.compaction_enabled()
            && version
                .stores
                .iter()
                .any(|store| self.catalog.is_crowded(&version, store));
        let mut waits = self.flush_waits.lock();
        if !crowded || self.memory_is_short() || shared.disk.is_short() {
            waits.remove(&region.id());
            return false;
        }
        let now = shared.clock.mono();
        let since = *waits.entry(region.id()).or_insert(now);
        let waited_out = now.saturating_sub(since) >= BLOCKING_WAIT;
        if waited_out {
            waits.remove(&region.id());
        }
        !waited_out
    }

    fn compact(&self, id: RegionId, family: &[u8], major: bool, long: bool) -> Result<()> {
        let Ok((_, region)) = self.catalog.region(id) else {
            return Ok(());
        };
        let mode = if long {
            CompactionMode::Idle
        } else {
            CompactionMode::Short
        };
        let again = |long| Job::Compact {
            region: id,
            family: family.to_vec(),
            major,
            long,
        };
        match self.catalog.compact_store(&region, family, major, mode)? {
            CompactionOutcome::Done => self.after_change(&region),
            CompactionOutcome::Long => self.queue.request(again(true)),
            CompactionOutcome::Busy => {
                let now = self.catalog.shared().clock.mono();
                self.queue.request_at(again(long), now + LOOK);
            }
            CompactionOutcome::Nothing | CompactionOutcome::Cancelled => {}
        }
        Ok(())
    }

    fn split(&self, id: RegionId) -> Result<()> {
        let Ok((_, region)) = self.catalog.region(id) else {
            return Ok(());
        };
        if !self.catalog.should_split(&region) {
            return Ok(());
        }
        match self.catalog.split_region(id, None) {
            Ok((left, right)) => {
                self.catalog.shared().listener.notice(&format!(
                    "region {} of table {} was split into {} and {}",
                    region.info().encoded_name,
                    left.table,
                    left.encoded_name,
                    right.encoded_name
                ));
                self.after_replacement(&[left.id, right.id]);
                Ok(())
            }
            // One row fills the region: trying again changes nothing until there are other rows.
            Err(Error::DoNotRetry(why)) => {
                self.catalog.shared().listener.notice(&why);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Queues the compactions that end the sharing of files in new regions.
    pub(crate) fn after_replacement(&self, regions: &[RegionId]) {
        for id in regions {
            if let Ok((_, region)) = self.catalog.region(*id) {
                self.after_change(&region);
            }
        }
    }

    /// Queues the work that a region needs after a change of its files.
    pub(crate) fn after_change(&self, region: &Region) {
        for (family, major) in self.catalog.wanted_compactions(region) {
            self.queue.request(Job::Compact {
                region: region.id(),
                family,
                major,
                long: false,
            });
        }
        if self.catalog.should_split(region) {
            self.queue.request(Job::Split(region.id()));
        }
    }
}
