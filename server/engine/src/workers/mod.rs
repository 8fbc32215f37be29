//! Background work: which threads flush, compact and split regions, and when.
//!
//! Choosing is cheap and happens after a change (a write, a flush, a compaction) or on the ticker;
//! it only queues jobs. Each kind of job has a step function that does it. With
//! `Background::Threads` the threads here call the steps; with `Background::Manual`
//! [`Workers::run_pending`] calls the same ones, one after the other.
//!
//! A failed job is reported, and retried after a pause that grows. A clean stop lets flushes
//! finish, cancels compactions and joins all threads.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::options::Background;
use crate::store::BlockRead;

mod clock;
mod queue;
mod readers;
mod steps;
mod tick;

use clock::ClockTold;
use readers::BlockReaders;

pub use queue::{Compacting, QueueStats, Work};
pub(crate) use queue::{Job, Lane, Queue};

/// Background work of one engine. Shared by all threads.
#[derive(Debug)]
pub(crate) struct Workers {
    catalog: Arc<Catalog>,
    queue: Queue,
    /// Reads blocks for batches of gets.
    readers: Arc<BlockReaders>,
    /// Since when flushes wait for compaction, by region.
    flush_waits: Mutex<HashMap<RegionId, Duration>>,
    /// Whether the largest region was queued for a flush because of the sum of all memstores, and
    /// no flush has ended since.
    relief_requested: AtomicBool,
    /// When tables were last looked through for compactions that are due (monotonic).
    last_survey: Mutex<Duration>,
    /// Time of the normalizer's last run, of the monotonic clock.
    last_normalized: Mutex<Duration>,
    /// The notifications of the listener about a clock that is behind.
    clock_told: Mutex<ClockTold>,
    /// Set once: the ticker ends.
    stopped: Mutex<bool>,
    stop_signal: Condvar,
}

impl Workers {
    /// No threads yet.
    pub(crate) fn new(catalog: Arc<Catalog>) -> Arc<Self> {
        let options = &catalog.shared().options;
        let read_threads = match options.background {
            Background::Threads => options.read_threads,
            Background::Manual => 0,
        };
        Arc::new(Self {
            catalog,
            queue: Queue::new(),
            readers: BlockReaders::new(read_threads),
            clock_told: Mutex::default(),
            flush_waits: Mutex::default(),
            relief_requested: AtomicBool::new(false),
            last_survey: Mutex::default(),
            last_normalized: Mutex::default(),
            stopped: Mutex::new(false),
            stop_signal: Condvar::new(),
        })
    }

    /// Starts the threads. They end after [`Self::stop`].
    pub(crate) fn start(self: &Arc<Self>) -> Result<Vec<JoinHandle<()>>> {
        let options = &self.catalog.shared().options;
        let mut threads = Vec::new();
        for (lane, name, count) in [
            (Lane::Flush, "basalt-flush", options.flush_threads),
            (Lane::Compact, "basalt-compact", options.compaction_threads),
            (Lane::LongCompact, "basalt-long", options.compaction_long_threads),
        ] {
            for _ in 0..count.max(1) {
                let workers = Arc::clone(self);
                threads.push(self.spawn(name, move || workers.serve(lane))?);
            }
        }
        let workers = Arc::clone(self);
        threads.push(self.spawn("basalt-tick", move || workers.keep_ticking())?);
        let store = self.catalog.shared().store.clone();
        threads.push(self.spawn("basalt-remove", move || store.removals.serve(&store))?);
        Ok(threads)
    }

    fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
        std::thread::Builder::new()
            .name(name.into())
            .spawn(body)
            .map_err(|source| {
                self.stop();
                Error::io("starting a thread for", &self.catalog.shared().dir, source)
            })
    }

    /// Reads blocks into the cache; returns whether all of them are there now.
    pub(crate) fn read_blocks(&self, reads: Vec<BlockRead>) -> bool {
        self.readers.run(reads)
    }

    /// Queues a job.
    pub(crate) fn request(&self, job: Job) {
        self.queue.request(job);
    }

    /// Numbers of queued and running jobs.
    pub(crate) fn stats(&self) -> QueueStats {
        self.queue.stats()
    }

    /// The compactions of a region that wait or run.
    pub(crate) fn compactions_of(&self, region: RegionId) -> Compacting {
        self.queue.compactions_of(region)
    }

    /// The compactions of all regions that have any.
    #[cfg(feature = "server")]
    pub(crate) fn compactions(&self) -> HashMap<RegionId, Compacting> {
        self.queue.compactions()
    }

    /// Holds back flushes or compactions, or resumes them; returns whether they were held back
    /// before. A running flush finishes; a running compaction stands still.
    pub(crate) fn pause(&self, work: Work, paused: bool) -> bool {
        if work == Work::Compactions {
            self.catalog.pause_compactions(paused);
        }
        self.queue.pause(work, paused)
    }

    /// Whether they are held back.
    pub(crate) fn is_paused(&self, work: Work) -> bool {
        self.queue.is_paused(work)
    }

    /// Hands out nothing more, cancels running compactions, and lets the thread for removals end
    /// once its queue is empty.
    pub(crate) fn stop(&self) {
        *self.stopped.lock() = true;
        self.stop_signal.notify_all();
        self.queue.stop();
        self.catalog.cancel_compactions();
        self.readers.stop();
        self.catalog.shared().store.removals.stop();
    }

    /// Runs queued jobs, and the jobs that these queue, until none may run now; returns their
    /// number. Failed jobs wait for their next attempt.
    pub(crate) fn run_pending(&self) -> Result<usize> {
        self.tick()?;
        let now = || self.catalog.shared().clock.mono();
        let mut done = 0;
        let lanes = [Lane::Flush, Lane::Compact, Lane::LongCompact];
        while let Some(job) = lanes.iter().find_map(|lane| self.queue.take(*lane, now())) {
            self.run(job);
            done += 1;
        }
        Ok(done)
    }

    fn serve(&self, lane: Lane) {
        while let Some(job) = self.queue.wait(lane, || self.catalog.shared().clock.mono()) {
            self.run(job);
        }
    }

    /// Runs one job and gives it back to the queue.
    fn run(&self, job: Job) {
        match self.step(&job) {
            Ok(()) => self.queue.succeeded(&job),
            Err(error) => {
                let during = match job {
                    Job::Flush(_) => "flush",
                    Job::Compact { .. } => "compaction",
                    Job::Split(_) => "split",
                    Job::Normalize(_) => "normalizer",
                };
                self.catalog.shared().listener.background_error(during, &error);
                self.queue.failed(job, self.catalog.shared().clock.mono());
            }
        }
    }

    fn keep_ticking(&self) {
        let period = self.catalog.shared().options.wal_idle_marker;
        let mut stopped = self.stopped.lock();
        while !*stopped {
            self.stop_signal.wait_for(&mut stopped, period);
            if *stopped {
                return;
            }
            let unlocked = parking_lot::MutexGuard::unlocked(&mut stopped, || self.tick());
            if let Err(error) = unlocked {
                self.catalog.shared().listener.background_error("tick", &error);
            }
        }
    }

    /// A flush has ended: memory may be asked for again.
    fn relief_done(&self) {
        self.relief_requested.store(false, Ordering::Release);
    }
}
