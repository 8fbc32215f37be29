//! The job queue: jobs that wait, run, or will be retried later.
//!
//! A job is in the queue at most once: queueing it again while it waits changes nothing. A running
//! job is not handed to a second thread; if it is queued meanwhile, it runs once more afterwards.
//! The queue is bounded by that rule: one flush, one split and one compaction per store and kind
//! for every region there is, and one run of the normalizer for every table.
//!
//! Three lanes with threads of their own, so that a compaction never delays the flush that frees
//! memory, nor a long compaction the short ones that keep the number of files low in other stores
//! (HBase: its pools for short and long compactions).
//!
//! Flushes and compactions can be paused: jobs of that kind are still queued, and none is handed
//! out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::id::RegionId;
use crate::name::TableName;

/// First pause after a failure; it doubles with every further failure of the same job.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);

/// Longest pause after a failure.
const BACKOFF_MAX: Duration = Duration::from_mins(1);

/// One piece of background work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Bring a region's memstores to disk.
    Flush(RegionId),
    /// Compact one store: the files that the policy picks, or all of them.
    Compact {
        /// The region.
        region: RegionId,
        /// The family.
        family: Vec<u8>,
        /// All files, on request or because of their age.
        major: bool,
        /// Found to be long (`Options::compaction_long_bytes`).
        long: bool,
    },
    /// Split a region if it is (still) too large.
    Split(RegionId),
    /// Split and merge regions of a table to similar sizes.
    Normalize(TableName),
}

/// Work that can be paused. Splits cannot: they are short, and the compactions of their daughters
/// wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Memstores to store files.
    Flushes,
    /// Store files to fewer.
    Compactions,
}

/// The threads that take a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Flushes.
    Flush,
    /// Short compactions, splits, the normalizer.
    Compact,
    /// Long compactions.
    LongCompact,
}

impl Job {
    /// The threads that take the job.
    pub(crate) fn lane(&self) -> Lane {
        match self {
            Self::Flush(_) => Lane::Flush,
            Self::Compact { long: true, .. } => Lane::LongCompact,
            Self::Compact { .. } | Self::Split(_) | Self::Normalize(_) => Lane::Compact,
        }
    }

    /// The kind of work whose pause holds it back.
    fn work(&self) -> Option<Work> {
        match self {
            Self::Flush(_) => Some(Work::Flushes),
            Self::Compact { .. } => Some(Work::Compactions),
            Self::Split(_) | Self::Normalize(_) => None,
        }
    }
}

/// Lengths of the background queues, for metrics and pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Flushes waiting or running.
    pub flushes: usize,
    /// Compactions waiting or running, long ones too.
    pub compactions: usize,
    /// Long ones of them.
    pub long_compactions: usize,
    /// Splits waiting or running, and runs of the normalizer over a table.
    pub splits: usize,
}

/// Kinds of compaction of one region that wait or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacting {
    /// A minor compaction: some files.
    pub minor: bool,
    /// A major compaction: all files.
    pub major: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Jobs that may run, in order, by lane.
    ready: [VecDeque<Job>; 3],
    /// Jobs that wait for a time (of the monotonic clock).
    delayed: Vec<(Duration, Job)>,
    /// Everything in `ready` and `delayed`.
    waiting: HashSet<Job>,
    /// Jobs that a thread has taken and not finished.
    running: HashSet<Job>,
    /// Failures in a row by job.
    failures: HashMap<Job, u32>,
    /// No job of this work is handed out for now, by [`Work`].
    paused: [bool; 2],
    /// Nothing is handed out any more.
    stopped: bool,
}

/// The queue. All methods may be called from any thread.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Queues a job. No effect if it is queued already, delayed or not, or if the queue is stopped.
    pub(crate) fn request(&self, job: Job) {
        let mut state = self.state.lock();
        if !state.stopped && state.waiting.insert(job.clone()) {
            state.ready[job.lane() as usize].push_back(job);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Queues a job to run at `at`.
    pub(crate) fn request_at(&self, job: Job, at: Duration) {
        let mut state = self.state.lock();
        if !state.stopped && state.waiting.insert(job.clone()) {
            state.delayed.push((at, job));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Takes the next job of a lane that may run at `now`, if there is one.
    pub(crate) fn take(&self, lane: Lane, now: Duration) -> Option<Job> {
        let mut state = self.state.lock();
        state.take(lane, now)
    }

    /// Takes the next job of a lane, waiting for one; `None` once the queue is stopped. `now` reads the
    /// monotonic clock.
    pub(crate) fn wait(&self, lane: Lane, now: impl Fn() -> Duration) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(job) = state.take(lane, now()) {
                return Some(job);
            }
            match state.delayed.iter().map(|(at, _)| *at).min() {
                // At least a millisecond, so that a clock that moves in milliseconds does not make this loop
                // spin.
                Some(at) => {
                    let pause = at.saturating_sub(now()).max(Duration::from_millis(1));
                    self.changed.wait_for(&mut state, pause);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Marks a running job as done.
    pub(crate) fn succeeded(&self, job: &Job) {
        let mut state = self.state.lock();
        state.running.remove(job);
        state.failures.remove(job);
        drop(state);
        self.changed.notify_all();
    }

    /// Returns a failed job to the queue; it is retried after a pause. Returns the pause.
    pub(crate) fn failed(&self, job: Job, now: Duration) -> Duration {
        let mut state = self.state.lock();
        state.running.remove(&job);
        let failures = state.failures.entry(job.clone()).or_default();
        let pause = BACKOFF_FIRST
            .saturating_mul(1 << (*failures).min(16))
            .min(BACKOFF_MAX);
        *failures += 1;
        if !state.stopped && state.waiting.insert(job.clone()) {
            state.delayed.push((now + pause, job));
        }
        drop(state);
        self.changed.notify_all();
        pause
    }

    /// Makes all delayed jobs due now and clears their failures: the cause may be gone.
    pub(crate) fn hurry(&self) {
        let mut state = self.state.lock();
        for (_, job) in std::mem::take(&mut state.delayed) {
            state.ready[job.lane() as usize].push_back(job);
        }
        state.failures.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Whether the last try of a job failed.
    pub(crate) fn is_failing(&self, job: &Job) -> bool {
        self.state.lock().failures.contains_key(job)
    }

    /// Holds back the jobs of a kind of work, or resumes them. Returns whether they were held back
    /// before. Running jobs are not affected.
    pub(crate) fn pause(&self, work: Work, paused: bool) -> bool {
        let before = std::mem::replace(&mut self.state.lock().paused[work as usize], paused);
        self.changed.notify_all();
        before
    }

    /// Whether the jobs of a work are held back.
    pub(crate) fn is_paused(&self, work: Work) -> bool {
        self.state.lock().paused[work as usize]
    }

    /// Drops queued jobs and hands out nothing more. Running jobs go on.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.ready = Default::default();
        state.delayed.clear();
        state.waiting.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Numbers of queued and running jobs.
    pub(crate) fn stats(&self) -> QueueStats {
        let state = self.state.lock();
        let mut stats = QueueStats::default();
        for job in state.jobs() {
            match job {
                Job::Flush(_) => stats.flushes += 1,
                Job::Compact { long, .. } => {
                    stats.compactions += 1;
                    stats.long_compactions += usize::from(*long);
                }
                Job::Split(_) | Job::Normalize(_) => stats.splits += 1,
            }
        }
        stats
    }

    /// The compactions of a region that wait or run.
    pub(crate) fn compactions_of(&self, wanted: RegionId) -> Compacting {
        self.compactions().remove(&wanted).unwrap_or_default()
    }

    /// The compactions of all regions that have any.
    pub(crate) fn compactions(&self) -> HashMap<RegionId, Compacting> {
        let state = self.state.lock();
        let mut found: HashMap<RegionId, Compacting> = HashMap::new();
        for job in state.jobs() {
            if let Job::Compact { region, major, .. } = job {
                let of_region = found.entry(*region).or_default();
                of_region.major |= major;
                of_region.minor |= !major;
            }
        }
        found
    }
}

impl State {
    /// Jobs that wait or run.
    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.waiting.union(&self.running)
    }

    fn take(&mut self, lane: Lane, now: Duration) -> Option<Job> {
        let due = self.delayed.extract_if(.., |(at, _)| *at <= now);
        for (_, job) in due {
            self.ready[job.lane() as usize].push_back(job);
        }
        let ready = &mut self.ready[lane as usize];
        let is_paused = |job: &Job| job.work().is_some_and(|work| self.paused[work as usize]);
        let position = ready
            .iter()
            .position(|job| !self.running.contains(job) && !is_paused(job))?;
        let job = ready.remove(position)?;
        self.waiting.remove(&job);
        self.running.insert(job.clone());
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    #[test]
    fn a_job_waits_once_and_never_runs_twice_at_a_time() {
        let queue = Queue::new();
        let job = Job::Flush(RegionId(1));
        queue.request(job.clone());
        queue.request(job.clone());
        queue.request(Job::Split(RegionId(1)));
        assert_eq!((queue.stats().flushes, queue.stats().splits), (1, 1));
        assert_eq!(queue.take(Lane::Flush, NOW), Some(job.clone()));
        assert_eq!(queue.take(Lane::Flush, NOW), None);
        // Asked for while it runs: once more, but only afterwards.
        queue.request(job.clone());
        assert_eq!(queue.take(Lane::Flush, NOW), None);
        queue.succeeded(&job);
        assert_eq!(queue.take(Lane::Flush, NOW), Some(job));
        assert_eq!(queue.take(Lane::Compact, NOW), Some(Job::Split(RegionId(1))));
    }

    #[test]
    fn compactions_of_a_region_are_known_until_they_are_done() {
        let queue = Queue::new();
        let compact = |region, major| Job::Compact {
            region: RegionId(region),
            family: b"f".to_vec(),
            major,
            long: false,
        };
        let known = |minor, major| Compacting { minor, major };
        queue.request(compact(2, false));
        assert_eq!(queue.compactions_of(RegionId(1)), known(false, false));
        queue.request(compact(1, true));
        queue.request(compact(1, false));
        queue.request(Job::Flush(RegionId(1)));
        assert_eq!(queue.compactions_of(RegionId(1)), known(true, true));
        assert_eq!(queue.take(Lane::Compact, NOW), Some(compact(2, false)));
        assert_eq!(queue.take(Lane::Compact, NOW), Some(compact(1, true)));
        assert_eq!(queue.compactions_of(RegionId(2)), known(true, false));
        queue.succeeded(&compact(1, true));
        assert_eq!(queue.compactions_of(RegionId(1)), known(true, false));
    }

    #[test]
    fn failures_are_tried_again_with_growing_pauses() {
        let queue = Queue::new();
        let job = Job::Flush(RegionId(1));
        queue.request(job.clone());
        let mut now = NOW;
        for expected in [100, 200, 400] {
            assert_eq!(queue.take(Lane::Flush, now), Some(job.clone()));
            let pause = queue.failed(job.clone(), now);
            assert_eq!(pause, Duration::from_millis(expected));
            assert_eq!(queue.take(Lane::Flush, now), None);
            now += pause;
        }
        assert_eq!(queue.take(Lane::Flush, now), Some(job.clone()));
        queue.succeeded(&job);
        assert_eq!(queue.stats(), QueueStats::default());
    }

    #[test]
    fn failed_jobs_are_tried_again_at_once_when_there_is_hope() {
        let queue = Queue::new();
        let job = Job::Flush(RegionId(1));
        queue.request(job.clone());
        for _ in 0..5 {
            assert_eq!(queue.take(Lane::Flush, NOW), Some(job.clone()));
            queue.failed(job.clone(), NOW);
            assert_eq!(queue.take(Lane::Flush, NOW), None);
            queue.hurry();
        }
        assert_eq!(queue.take(Lane::Flush, NOW), Some(job.clone()));
        assert_eq!(queue.failed(job, NOW), BACKOFF_FIRST);
    }

    /// A pause holds back its own kind of work only, earlier requests included, and waiting threads
    /// get it when the pause ends.
    #[test]
    fn paused_jobs_are_not_handed_out() {
        let queue = Queue::new();
        let compact = Job::Compact {
            region: RegionId(1),
            family: b"f".to_vec(),
            major: false,
            long: false,
        };
        queue.request(compact.clone());
        queue.request(Job::Split(RegionId(1)));
        queue.request(Job::Flush(RegionId(1)));
        assert!(!queue.pause(Work::Compactions, true));
        assert!(queue.pause(Work::Compactions, true) && queue.is_paused(Work::Compactions));
        assert_eq!(queue.take(Lane::Compact, NOW), Some(Job::Split(RegionId(1))));
        assert_eq!(queue.take(Lane::Compact, NOW), None);
        assert_eq!(queue.take(Lane::Flush, NOW), Some(Job::Flush(RegionId(1))));
        assert_eq!(queue.stats().compactions, 1);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(Lane::Compact, || NOW));
            queue.pause(Work::Compactions, false);
            assert_eq!(waiter.join().unwrap(), Some(compact));
        });
    }

    /// Long compactions wait for each other, and short ones of the same store do not wait for them.
    #[test]
    fn long_compactions_have_a_lane_of_their_own() {
        let queue = Queue::new();
        let job = |long| Job::Compact {
            region: RegionId(1),
            family: b"f".to_vec(),
            major: false,
            long,
        };
        queue.request(job(true));
        queue.request(job(false));
        let stats = queue.stats();
        assert_eq!((stats.compactions, stats.long_compactions), (2, 1));
        assert_eq!(queue.take(Lane::LongCompact, NOW), Some(job(true)));
        assert_eq!(queue.take(Lane::LongCompact, NOW), None);
        assert_eq!(queue.take(Lane::Compact, NOW), Some(job(false)));
    }

    #[test]
    fn stopping_wakes_those_who_wait() {
        let queue = Queue::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(Lane::Compact, || NOW));
            queue.stop();
            assert_eq!(waiter.join().unwrap(), None);
        });
        queue.request(Job::Flush(RegionId(1)));
        assert_eq!(queue.take(Lane::Flush, NOW), None);
    }
}
