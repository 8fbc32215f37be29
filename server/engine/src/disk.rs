//! Disk space: when writes are suspended, and when they are accepted again.
//!
//! Resources that an accepted write still needs are reserved: its place in the log, and the space
//! to flush it, since old log segments become obsolete only by flushes. The log preallocates (`wal`
//! refuses an edit that it has no room for). The rest is guarded by a low-water mark:
//!
//! ```text
//! low water = disk.reserve_bytes + bytes of all memstores
//! ```
//!
//! The memstores count because all of them can then be flushed, whatever else is on the disk. The
//! reserve covers everything else: the next log segment, manifests, a running compaction, and
//! writes of other programs between two polls.
//!
//! The ticker looks ten times a second:
//!
//! 1. Less is free than twice the memstores and the reserve: the disk is *short*. Regions that keep sealed
//!    log segments alive are flushed, since that may be all that is needed.
//! 2. Less is free than the low-water mark, or the log or the manifest was refused space: writes are
//!    *suspended*. Each is refused at once with [`Error::DiskSpace`]. Reads, flushes and schema changes go
//!    on.
//! 3. An eighth of the reserve more is free than the mark, and nothing was refused: writes are accepted
//!    again. Jobs that failed are tried again at once, then and whenever space has returned while writes are
//!    suspended.
//!
//! A compaction begins only if the low-water mark also holds after an output as large as its
//! inputs: a compaction must not suspend writes.
//!
//! All methods may be called from any thread. Nothing is asked of the disk while a write is checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::fs::{Space, Vfs};
use crate::seeded;

/// Writes are accepted again when this share of the reserve is free beyond the mark, so that they are not
/// suspended at once.
const RESUME_SHARE: u64 = 8;

/// Increase of the free space since the last attempt, as a share of the reserve, that is a reason
/// for another one.
const RETRY_SHARE: u64 = 16;

/// But no less than that.
const RETRY_BYTES_MIN: u64 = 1 << 20;

/// The space of a data directory's file system.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    reserve_bytes: u64,
    /// Copy of the state in `seen`, readable without the lock.
    suspended: AtomicBool,
    short: AtomicBool,
    /// The most that running compactions may write.
    compacting_bytes: AtomicU64,
    seen: Mutex<Seen>,
    /// Reasons outside of the engine to suspend writes, by who has them.
    outside_problems: Mutex<BTreeMap<&'static str, Error>>,
}

/// Result of the last poll.
#[derive(Debug, Default)]
struct Seen {
    space: Option<Space>,
    memstore_bytes: u64,
    /// The request that was refused for want of space.
    problem: Option<Error>,
    /// Since when writes are suspended (monotonic).
    suspended_since: Option<Duration>,
    /// Minimum of the free bytes since jobs were last notified to retry.
    least_bytes: u64,
    /// The last poll failed.
    blind: bool,
}

/// Change of state by a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    Nothing,
    /// Writes are suspended from now on, and why.
    Suspended(String),
    /// They are suspended as before, but jobs that failed may work now.
    MoreSpace,
    /// Writes are accepted from now on, after that time.
    Resumed(Duration),
}

/// Figures for metrics and pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Bytes of the file system.
    pub total_bytes: u64,
    /// Bytes that are free for this process.
    pub available_bytes: u64,
    /// Writes are suspended when less is free.
    pub low_water_bytes: u64,
    /// Why writes are suspended, if they are.
    pub suspended: Option<String>,
}

/// Space that a running compaction may fill.
#[derive(Debug)]
pub(crate) struct CompactionSpace<'a> {
    disk: &'a DiskSpace,
    bytes: u64,
}

impl Drop for CompactionSpace<'_> {
    fn drop(&mut self) {
        self.disk.compacting_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl DiskSpace {
    /// The space of the file system that holds `dir`. Nothing has been looked at yet.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: PathBuf, reserve_bytes: u64) -> Self {
        Self {
            vfs,
            dir,
            reserve_bytes,
            suspended: AtomicBool::new(false),
            short: AtomicBool::new(false),
            compacting_bytes: AtomicU64::new(0),
            seen: Mutex::default(),
            outside_problems: Mutex::default(),
        }
    }

    /// Sets or ends the reason that `who`, outside of the engine, has to suspend writes; the next poll acts
    /// on it.
    pub(crate) fn set_outside_problem(&self, who: &'static str, problem: Option<Error>) {
        let mut problems = self.outside_problems.lock();
        match problem {
            Some(problem) => problems.insert(who, problem),
            None => problems.remove(who),
        };
    }

    /// Refuses a write while writes are suspended.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_suspended() {
            let seen = self.seen.lock();
            return Err(Error::DiskSpace(match &seen.problem {
                // Clients do not learn where the files are.
                Some(problem) => format!("writes suspended: {}", problem.for_clients()),
                None => self.reason(&seen),
            }));
        }
        Ok(())
    }

    /// Whether writes are suspended.
    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Acquire)
    }

    /// Whether space is so short that a flush is worthwhile merely because it shortens the log.
    pub(crate) fn is_short(&self) -> bool {
        self.short.load(Ordering::Acquire)
    }

    /// Polls the disk. `problem`: a request that was refused for want of space since the last poll
    /// and would be again. A failure to poll is reported once, and changes nothing.
    pub(crate) fn poll(&self, memstore_bytes: u64, problem: Option<Error>, now: Duration) -> Result<Change> {
        let problem = problem.or_else(|| self.outside_problems.lock().values().next().cloned());
        let space = self.ask();
        let mut seen = self.seen.lock();
        let space = match space {
            Ok(space) => space,
            Err(error) => {
                let known = std::mem::replace(&mut seen.blind, true);
                return if known { Ok(Change::Nothing) } else { Err(error) };
            }
        };
        let was_refused = seen.problem.is_some();
        seen.blind = false;
        seen.space = Some(space);
        seen.memstore_bytes = memstore_bytes;
        seen.problem = problem;
        let free_bytes = space.available_bytes;
        let short = free_bytes < self.low_water(memstore_bytes.saturating_mul(2));
        self.short
            .store(short || seen.problem.is_some(), Ordering::Release);
        Ok(match seen.suspended_since {
            None if seen.problem.is_some() || free_bytes < self.low_water(memstore_bytes) => {
                seen.suspended_since = Some(now);
                seen.least_bytes = free_bytes;
                self.suspended.store(true, Ordering::Release);
                Change::Suspended(self.reason(&seen))
            }
            None => Change::Nothing,
            Some(_) if seeded::is_on("stuck-after-no-space") => Change::Nothing,
            Some(since) if seen.problem.is_none() && free_bytes >= self.resume_at(memstore_bytes) => {
                seen.suspended_since = None;
                self.suspended.store(false, Ordering::Release);
                Change::Resumed(now.saturating_sub(since))
            }
            Some(_) => {
                let step = (self.reserve_bytes / RETRY_SHARE).max(RETRY_BYTES_MIN);
                let more = free_bytes >= seen.least_bytes.saturating_add(step);
                let granted = was_refused && seen.problem.is_none();
                if more || granted {
                    seen.least_bytes = free_bytes;
                    Change::MoreSpace
                } else {
                    seen.least_bytes = seen.least_bytes.min(free_bytes);
                    Change::Nothing
                }
            }
        })
    }

    /// Space for a compaction that may write `bytes`, for as long as the result is kept; an error
    /// if that would bring the free space below the low-water mark.
    pub(crate) fn for_compaction(&self, bytes: u64, memstore_bytes: u64) -> Result<CompactionSpace<'_>> {
        self.for_files("the compaction waits", bytes, memstore_bytes)
    }

    /// Space for a bulk load that may write `bytes`, as for a compaction.
    pub(crate) fn for_load(&self, bytes: u64, memstore_bytes: u64) -> Result<CompactionSpace<'_>> {
        self.for_files("the bulk load is refused", bytes, memstore_bytes)
    }

    fn for_files(&self, refusal: &str, bytes: u64, memstore_bytes: u64) -> Result<CompactionSpace<'_>> {
        let others = self.compacting_bytes.fetch_add(bytes, Ordering::AcqRel);
        let granted = CompactionSpace { disk: self, bytes };
        if self.reserve_bytes == 0 {
            return Ok(granted);
        }
        let kept = self.low_water(memstore_bytes).saturating_add(others);
        let free_bytes = self.ask()?.available_bytes;
        if free_bytes < kept.saturating_add(bytes) {
            return Err(Error::DiskSpace(format!(
                "{refusal}: it may write {bytes} bytes, and the data directory's file system has {free_bytes} bytes free, of \
                 which {kept} are kept for flushes, other compactions and disk.reserve_bytes = {}",
                self.reserve_bytes
            )));
        }
        Ok(granted)
    }

    /// Figures as of the last poll.
    pub(crate) fn stats(&self) -> DiskStats {
        let seen = self.seen.lock();
        let space = seen.space.unwrap_or(Space {
            total_bytes: 0,
            available_bytes: 0,
        });
        DiskStats {
            total_bytes: space.total_bytes,
            available_bytes: space.available_bytes,
            low_water_bytes: self.low_water(seen.memstore_bytes),
            suspended: seen.suspended_since.map(|_| self.reason(&seen)),
        }
    }

    fn ask(&self) -> Result<Space> {
        self.vfs
            .space(&self.dir)
            .map_err(|source| Error::io("asking for the free space of", &self.dir, source))
    }

    fn low_water(&self, memstore_bytes: u64) -> u64 {
        match self.reserve_bytes {
            0 => 0,
            reserve => reserve.saturating_add(memstore_bytes),
        }
    }

    fn resume_at(&self, memstore_bytes: u64) -> u64 {
        self.low_water(memstore_bytes)
            .saturating_add(self.reserve_bytes / RESUME_SHARE)
    }

    /// Why writes are suspended, with the figures as they are now.
    fn reason(&self, seen: &Seen) -> String {
        if let Some(problem) = &seen.problem {
            return format!("writes suspended: {problem}");
        }
        format!(
            "writes suspended: the data directory's file system has {} bytes free; writes need {}: disk.reserve_bytes = {} and \
             an eighth of it, and {} to flush the memstores",
            seen.space.map_or(0, |space| space.available_bytes),
            self.resume_at(seen.memstore_bytes),
            self.reserve_bytes,
            seen.memstore_bytes,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fs::Open;
    use crate::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};

    const SECOND: Duration = Duration::from_secs(1);

    /// A disk of 100 MiB with a file of that many MiB on it, polled with a reserve of 16 MiB.
    struct Bench {
        fs: SimFs,
        space: DiskSpace,
        filler: Arc<dyn crate::fs::File>,
    }

    const MIB: u64 = 1 << 20;

    impl Bench {
        fn new(reserve_bytes: u64) -> Self {
            let fs = SimFs::new(
                1,
                SimOptions {
                    capacity_bytes: Some(100 * MIB),
                    ..SimOptions::default()
                },
            );
            let filler = fs.open(Path::new("/filler"), Open::CreateNew).unwrap();
            let space = DiskSpace::new(Arc::new(fs.clone()), "/".into(), reserve_bytes);
            Self { fs, space, filler }
        }

        /// Polls with this many MiB free and in the memstores.
        fn poll(&self, free: u64, memstores: u64) -> Change {
            self.poll_with(free, memstores, None)
        }

        fn poll_with(&self, free: u64, memstores: u64, problem: Option<Error>) -> Change {
            self.filler.set_len((100 - free) * MIB).unwrap();
            self.space.poll(memstores * MIB, problem, SECOND).unwrap()
        }
    }

    /// Goal: the mark moves with the memstores, and writes come back a little above it.
    #[test]
    fn writes_stop_at_the_mark_and_come_back_above_it() {
        let bench = Bench::new(16 * MIB);
        assert_eq!(bench.poll(26, 10), Change::Nothing);
        assert!(bench.space.check().is_ok() && bench.space.is_short());
        let Change::Suspended(why) = bench.poll(25, 10) else {
            panic!("less than the reserve and the memstores is free");
        };
        for word in ["26214400", "16777216", "10485760", "disk.reserve_bytes"] {
            assert!(why.contains(word), "{why:?} does not say {word}");
        }
        let refused = bench.space.check().unwrap_err();
        assert_eq!(refused.to_string(), format!("disk space: {why}"));
        assert_eq!(refused.kind(), crate::Kind::Retry);
        assert_eq!(bench.poll(27, 10), Change::MoreSpace);
        assert_eq!(bench.poll(27, 10), Change::Nothing);
        // The memstores were flushed: 18 MiB are needed.
        assert_eq!(bench.poll(17, 0), Change::Nothing);
        assert_eq!(bench.poll(18, 0), Change::Resumed(Duration::ZERO));
        assert!(bench.space.check().is_ok() && !bench.space.is_short());
        assert_eq!(bench.space.stats().suspended, None);
        assert_eq!(bench.space.stats().low_water_bytes, 16 * MIB);
    }

    /// Goal: a refused request suspends writes although the disk reports space (a quota), and its
    /// success resumes them.
    #[test]
    fn a_refusal_suspends_writes_whatever_the_disk_says() {
        for reserve in [0, 16 * MIB] {
            let bench = Bench::new(reserve);
            let problem = || Some(Error::DiskSpace("over quota".into()));
            let Change::Suspended(why) = bench.poll_with(90, 1, problem()) else {
                panic!("something was refused");
            };
            assert!(why.contains("over quota"), "{why}");
            assert_eq!(bench.poll_with(90, 1, problem()), Change::Nothing);
            assert_eq!(bench.poll(90, 1), Change::Resumed(Duration::ZERO));
        }
    }

    /// Goal: without a reserve there is no mark.
    #[test]
    fn no_reserve_no_mark() {
        let bench = Bench::new(0);
        assert_eq!(bench.poll(0, 50), Change::Nothing);
        assert!(bench.space.for_compaction(50 * MIB, 50 * MIB).is_ok());
    }

    /// Goal: a failure to poll is reported once, and writes go on as before.
    #[test]
    fn a_blind_look_changes_nothing() {
        let bench = Bench::new(16 * MIB);
        let fault = bench.fs.fail(OpKind::Space, "/", Errno::IO, Times::Always);
        assert!(bench.space.poll(0, None, SECOND).is_err());
        assert_eq!(bench.space.poll(0, None, SECOND).unwrap(), Change::Nothing);
        bench.fs.heal(fault);
        assert!(matches!(bench.poll(3, 0), Change::Suspended(_)));
    }

    /// Goal: compactions together leave the mark alone.
    #[test]
    fn a_compaction_leaves_the_mark_alone() {
        let bench = Bench::new(16 * MIB);
        bench.poll(50, 4);
        let first = bench.space.for_compaction(20 * MIB, 4 * MIB).unwrap();
        let refused = bench.space.for_compaction(11 * MIB, 4 * MIB).unwrap_err();
        for word in ["11534336", "52428800", "41943040", "disk.reserve_bytes"] {
            assert!(
                refused.to_string().contains(word),
                "{refused} does not say {word}"
            );
        }
        assert!(bench.space.for_compaction(10 * MIB, 4 * MIB).is_ok());
        drop(first);
        assert!(bench.space.for_compaction(11 * MIB, 4 * MIB).is_ok());
    }
}
