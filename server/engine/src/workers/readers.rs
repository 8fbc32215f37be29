//! Threads that read blocks for batches of gets, several at a time.
//!
//! 1. A caller puts its batch of reads into the queue, wakes threads, and reads, too.
//! 2. The caller and the threads each take the next read of the batch until none is left.
//! 3. The caller waits for the reads that others have taken.
//!
//! A caller never waits for a thread to be free: without any it reads all blocks itself, in order, as
//! in simulation. The threads are started by the first batches and live until the engine stops.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::store::BlockRead;

/// Reads of one caller.
#[derive(Debug)]
struct Batch {
    reads: Vec<BlockRead>,
    /// Index of the next read to be taken.
    next: AtomicUsize,
    /// Reads that are not done.
    left: Mutex<usize>,
    done: Condvar,
    /// Whether a read has failed.
    failed: AtomicBool,
}

impl Batch {
    fn new(reads: Vec<BlockRead>) -> Self {
        Self {
            next: AtomicUsize::new(0),
            left: Mutex::new(reads.len()),
            done: Condvar::new(),
            failed: AtomicBool::new(false),
            reads,
        }
    }

    fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.reads.len()
    }

    /// Takes and does reads until none is left.
    fn work(&self) {
        while let Some(read) = self.reads.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let taken = Taken(self);
            if !read.run() {
                self.failed.store(true, Ordering::Relaxed);
            }
            drop(taken);
        }
    }

    /// Waits for the reads that others have taken; returns whether all succeeded.
    fn wait(&self) -> bool {
        let mut left = self.left.lock();
        self.done.wait_while(&mut left, |left| *left > 0);
        !self.failed.load(Ordering::Relaxed)
    }
}

/// A read that was taken. Dropping it makes the read done, also if the read panics: the caller waits
/// for all reads.
struct Taken<'a>(&'a Batch);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // The lock also makes the result of the read visible to the caller.
        let mut left = self.0.left.lock();
        *left -= 1;
        if *left == 0 {
            self.0.done.notify_all();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Batches whose callers have not taken them out, the oldest first.
    batches: VecDeque<Arc<Batch>>,
    threads: Vec<JoinHandle<()>>,
    stopped: bool,
}

/// Does batches of reads. All methods may be called from any thread.
#[derive(Debug)]
pub(crate) struct BlockReaders {
    /// Maximum number of threads.
    threads_max: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl BlockReaders {
    /// No threads yet.
    pub(super) fn new(threads_max: usize) -> Arc<Self> {
        Arc::new(Self {
            threads_max,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Does these reads and returns whether all blocks are cached now.
    pub(crate) fn run(self: &Arc<Self>, reads: Vec<BlockRead>) -> bool {
        let wanted = self.threads_max.min(reads.len().saturating_sub(1));
        let batch = Arc::new(Batch::new(reads));
        let helpers = self.offer(&batch, wanted);
        for _ in 0..helpers {
            self.changed.notify_one();
        }
        batch.work();
        if helpers > 0 {
            self.state
                .lock()
                .batches
                .retain(|other| !Arc::ptr_eq(other, &batch));
        }
        batch.wait()
    }

    /// Queues a batch for this many threads, which are started if they are not there; returns how
    /// many there are.
    fn offer(self: &Arc<Self>, batch: &Arc<Batch>, wanted: usize) -> usize {
        if wanted == 0 {
            return 0;
        }
        let mut state = self.state.lock();
        if state.stopped {
            return 0;
        }
        while state.threads.len() < wanted {
            let readers = Arc::clone(self);
            let started = std::thread::Builder::new()
                .name("basalt-read".into())
                .spawn(move || readers.serve());
            match started {
                Ok(thread) => state.threads.push(thread),
                // The caller reads, and the threads that there are.
                Err(_) => break,
            }
        }
        let helpers = wanted.min(state.threads.len());
        if helpers > 0 {
            state.batches.push_back(Arc::clone(batch));
        }
        helpers
    }

    fn serve(&self) {
        while let Some(batch) = self.next_batch() {
            batch.work();
        }
    }

    /// Waits for a batch with reads that are not taken; `None` when the engine stops.
    fn next_batch(&self) -> Option<Arc<Batch>> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            let batch = state.batches.iter().find(|batch| batch.has_more());
            if let Some(batch) = batch {
                return Some(Arc::clone(batch));
            }
            self.changed.wait(&mut state);
        }
    }

    /// Ends the threads and waits for them. Later batches are read by their callers.
    pub(super) fn stop(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.stopped = true;
            std::mem::take(&mut state.threads)
        };
        self.changed.notify_all();
        for thread in threads {
            // A panic of the thread has been printed, and its read counts as done.
            let _ = thread.join();
        }
    }
}
