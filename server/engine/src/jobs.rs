//! Background work: running flushes and compactions, with their progress, and the last ones that
//! ended.
//!
//! The thread of a flush or compaction enters the job with [`JobLog::begin`] when it has chosen the
//! work, updates its progress from time to time, and records its outcome. For pages and people
//! only: no decision depends on it.
//!
//! Invariant: at most [`ENDED_MAX`] ended jobs are kept; there is at most one running job for each
//! thread that runs jobs. The lock is held while an entry is put in, taken out or copied, never
//! during the work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::error::Error;
use crate::id::RegionId;
use crate::schema::TableName;

/// Ended jobs that are kept; the oldest makes room.
pub const ENDED_MAX: usize = 100;

/// Kind of work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Memstores of a region to store files.
    Flush,
    /// Some files of a store to one.
    MinorCompaction,
    /// All files of a store to one.
    MajorCompaction,
}

impl JobKind {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::MinorCompaction => "minor compaction",
            Self::MajorCompaction => "major compaction",
        }
    }
}

/// A job, as it is known when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// Kind of work.
    pub kind: JobKind,
    /// The table.
    pub table: TableName,
    /// The region.
    pub region: RegionId,
    /// The family of a compaction, escaped; a flush is of all families.
    pub family: Option<String>,
    /// Memstores or store files that it reads.
    pub inputs: usize,
    /// Bytes of these.
    pub input_bytes: u64,
    /// Cells of these; those of a file shared by two regions since a split count in full.
    pub input_cells: u64,
}

/// Progress of a running job. Any thread may read it.
#[derive(Debug, Default)]
pub struct JobProgress {
    cells: AtomicU64,
}

impl JobProgress {
    /// Adds to the number of cells read. To be called every few thousand cells.
    pub fn add(&self, cells: u64) {
        self.cells.fetch_add(cells, Ordering::Relaxed);
    }
}

/// A running job, as a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningJob {
    /// The job.
    pub info: JobInfo,
    /// Wall-clock milliseconds at which it began.
    pub began_ms: u64,
    /// Since then.
    pub took: Duration,
    /// Cells read so far.
    pub cells: u64,
}

impl RunningJob {
    /// Bytes of the inputs still to be read, estimated by the share of their cells.
    pub fn bytes_left(&self) -> u64 {
        let (cells, all) = (self.cells.min(self.info.input_cells), self.info.input_cells);
        if all == 0 {
            return 0;
        }
        let left = u128::from(self.info.input_bytes) * u128::from(all - cells) / u128::from(all);
        u64::try_from(left).unwrap_or(u64::MAX)
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// Finished, with store files of this many bytes; 0 when no cell survived.
    Done {
        /// Bytes of the written store files.
        written_bytes: u64,
    },
    /// Cancelled on request, or because its region is gone.
    Cancelled,
    /// It will be tried again.
    Failed(String),
}

/// A job that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedJob {
    /// The job.
    pub info: JobInfo,
    /// Wall-clock milliseconds at which it began.
    pub began_ms: u64,
    /// From then to its end.
    pub took: Duration,
    /// How it ended.
    pub end: JobEnd,
}

/// A running job as the log holds it.
#[derive(Debug)]
struct Entry {
    info: JobInfo,
    began_ms: u64,
    /// Monotonic.
    began: Duration,
    progress: JobProgress,
}

#[derive(Debug, Default)]
struct Jobs {
    running: Vec<Arc<Entry>>,
    /// Oldest first.
    ended: VecDeque<EndedJob>,
}

/// The jobs of one engine. Shared by all threads.
#[derive(Debug)]
pub struct JobLog {
    clock: Arc<dyn Clock>,
    jobs: Mutex<Jobs>,
}

impl JobLog {
    /// Nothing has happened yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            jobs: Mutex::default(),
        }
    }

    /// A job begins. It counts as running until the guard is dropped.
    pub fn begin(&self, info: JobInfo) -> JobGuard<'_> {
        let entry = Arc::new(Entry {
            info,
            began_ms: self.clock.wall_ms(),
            began: self.clock.mono(),
            progress: JobProgress::default(),
        });
        self.jobs.lock().running.push(Arc::clone(&entry));
        JobGuard { log: self, entry }
    }

    /// The jobs that run, the longest first.
    pub fn running(&self) -> Vec<RunningJob> {
        let now = self.clock.mono();
        let jobs = self.jobs.lock();
        let look = |entry: &Arc<Entry>| RunningJob {
            info: entry.info.clone(),
            began_ms: entry.began_ms,
            took: now.saturating_sub(entry.began),
            cells: entry.progress.cells.load(Ordering::Relaxed),
        };
        jobs.running.iter().map(look).collect()
    }

    /// The last jobs that ended, the newest first.
    pub fn ended(&self) -> Vec<EndedJob> {
        self.jobs.lock().ended.iter().rev().cloned().collect()
    }
}

/// A running job's place in the log.
#[derive(Debug)]
pub struct JobGuard<'a> {
    log: &'a JobLog,
    entry: Arc<Entry>,
}

impl JobGuard<'_> {
    /// Where the job notes how far it has come.
    pub fn progress(&self) -> &JobProgress {
        &self.entry.progress
    }

    /// The job has ended. `None` as a result: it was cancelled.
    pub fn end<T>(self, result: &Result<Option<T>, Error>, written_bytes: impl FnOnce(&T) -> u64) {
        let end = match result {
            Ok(Some(done)) => JobEnd::Done {
                written_bytes: written_bytes(done),
            },
            Ok(None) => JobEnd::Cancelled,
            Err(error) => JobEnd::Failed(error.to_string()),
        };
        let ended = EndedJob {
            info: self.entry.info.clone(),
            began_ms: self.entry.began_ms,
            took: self.log.clock.mono().saturating_sub(self.entry.began),
            end,
        };
        let mut jobs = self.log.jobs.lock();
        while jobs.ended.len() >= ENDED_MAX {
            jobs.ended.pop_front();
        }
        jobs.ended.push_back(ended);
    }
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        self.log
            .jobs
            .lock()
            .running
            .retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn info(region: u64) -> JobInfo {
        JobInfo {
            kind: JobKind::MinorCompaction,
            table: TableName::parse(b"t").unwrap(),
            region: RegionId(region),
            family: Some("f".into()),
            inputs: 3,
            input_bytes: 1_000,
            input_cells: 200,
        }
    }

    #[test]
    fn a_running_job_shows_what_is_left() {
        let clock = Arc::new(ManualClock::at(5_000));
        let log = JobLog::new(clock.clone());
        let guard = log.begin(info(1));
        clock.advance_ms(30);
        guard.progress().add(50);
        let running = log.running();
        assert_eq!(
            (
                running[0].began_ms,
                running[0].took.as_millis(),
                running[0].bytes_left()
            ),
            (5_000, 30, 750)
        );
        // A clipped file has fewer cells than its info says, another one more than the manifest:
        // neither is an error here.
        guard.progress().add(1_000);
        assert_eq!(log.running()[0].bytes_left(), 0);
        drop(guard);
        assert!(log.running().is_empty() && log.ended().is_empty());
    }

    #[test]
    fn the_last_ends_are_kept_newest_first() {
        let clock = Arc::new(ManualClock::at(0));
        let log = JobLog::new(clock.clone());
        for region in 0..ENDED_MAX as u64 + 2 {
            let result = match region % 3 {
                0 => Ok(Some(7)),
                1 => Ok(None),
                _ => Err(Error::ShuttingDown),
            };
            log.begin(info(region)).end(&result, |written| *written);
        }
        let ended = log.ended();
        assert_eq!(ended.len(), ENDED_MAX);
        assert_eq!(ended[0].info.region, RegionId(ENDED_MAX as u64 + 1));
        assert_eq!(ended[ENDED_MAX - 1].info.region, RegionId(2));
        assert!(matches!(&ended[ENDED_MAX - 1].end, JobEnd::Failed(why) if why.contains("shut")));
        assert_eq!(ended[ENDED_MAX - 2].end, JobEnd::Done { written_bytes: 7 });
        assert!(log.running().is_empty());
    }
}
