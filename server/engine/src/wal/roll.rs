//! The roll: how the log goes from a full segment to the next one without a writer waiting for the
//! disk.
//!
//! A segment's name says that its predecessor is sealed, and the seal that everything before it is
//! durable. So a roll takes three syncs and a rename in this order, which a busy disk may take
//! hundreds of milliseconds for:
//!
//! 1. sync the full segment, write its seal, sync again;
//! 2. sync the successor's header;
//! 3. rename the successor from [`spare::NAME`](super::spare::NAME), sync the directory.
//!
//! Only a group that wants a sync has to wait for them. Therefore the leader only plans the seal,
//! writes the successor's header, which repeats the planned seal's checksums, and puts the following
//! groups into the successor, which is still called the spare. A thread does the rest, and then
//! preallocates the next spare. Without threads (in simulation) the leader does it at its next step.
//!
//! The leader completes the roll ([`Pending::complete`]) before it syncs a group, begins another
//! roll or needs the spare. So frames in a file without a segment's name were never promised to be
//! durable, and a power cut may take them. They were promised to survive the end of the process: a
//! start finds them in the page cache and completes the roll (see `recover`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::fs::Vfs;
use crate::id::SeqId;
use crate::metrics::Counters;
use crate::{Error, Result};

use super::old::{OldSegment, OldSegments};
use super::segment::{Seal, SegmentWriter, Unnamed};
use super::spare::Spare;

/// The rest of a roll.
#[derive(Debug)]
pub(super) struct Roll {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    /// Size of the next spare.
    pub(super) segment_bytes: u64,
    /// The full segment.
    pub(super) full: SegmentWriter,
    pub(super) seal: Seal,
    /// No row of the full segment has a greater sequence id.
    pub(super) last_seq: SeqId,
    pub(super) successor: Unnamed,
    pub(super) old: OldSegments,
    /// Number of the newest segment that has its name.
    pub(super) newest: Arc<AtomicU64>,
    pub(super) counters: Arc<Counters>,
}

impl Roll {
    /// Seals the full segment and names its successor. The seal is durable before the successor has
    /// its name: recovery relies on it. Returns the next spare. Only the outer error is final.
    fn run(mut self) -> Result<Result<Spare>> {
        self.full.seal(&self.seal)?;
        self.counters.wal_syncs.increment();
        self.counters.wal_bytes.add(self.seal.frame.len() as u64);
        self.successor.name(&*self.vfs, &self.dir)?;
        // Only now may the full segment be removed: a successor whose naming was cut short is known
        // by the segment before it.
        self.old.lock().push(OldSegment {
            number: self.full.number(),
            last_seq: self.last_seq,
        });
        self.newest.store(self.successor.number, Ordering::Release);
        self.counters.wal_syncs.increment();
        Ok(Spare::create(&*self.vfs, &self.dir, self.segment_bytes))
    }
}

/// A roll that the leader has not completed.
#[derive(Debug)]
pub(super) struct Pending(Rest);

#[derive(Debug)]
enum Rest {
    /// The leader will do it.
    Due(Box<Roll>),
    /// A thread does it.
    Running(JoinHandle<Result<Result<Spare>>>),
    /// It was completed.
    Nothing,
}

impl Pending {
    /// Starts a thread for the roll, if there are threads. One that cannot be started leaves the
    /// work to the leader.
    pub(super) fn start(roll: Roll, threads: bool) -> Self {
        if !threads {
            return Self(Rest::Due(Box::new(roll)));
        }
        let ours = Arc::new(Mutex::new(Some(Box::new(roll))));
        let take = |roll: &Mutex<Option<Box<Roll>>>| roll.lock().take().expect("it is taken once");
        let theirs = Arc::clone(&ours);
        let thread = std::thread::Builder::new()
            .name("basalt-roll".to_string())
            .spawn(move || take(&theirs).run());
        Self(match thread {
            Ok(thread) => Rest::Running(thread),
            Err(_) => Rest::Due(take(&ours)),
        })
    }

    /// Whether a thread has done it, so that [`Self::complete`] takes no time.
    pub(super) fn is_done(&self) -> bool {
        matches!(&self.0, Rest::Running(thread) if thread.is_finished())
    }

    /// Whether no thread does it.
    pub(super) fn is_due(&self) -> bool {
        matches!(&self.0, Rest::Due(_))
    }

    /// Does what is left to be done, or waits until it is done. Returns the next spare. Only the
    /// outer error is final.
    pub(super) fn complete(mut self) -> Result<Result<Spare>> {
        match std::mem::replace(&mut self.0, Rest::Nothing) {
            Rest::Due(roll) => roll.run(),
            Rest::Running(thread) => thread.join().unwrap_or_else(|_| {
                let what = "the thread that completes a roll of the log panicked";
                Err(Error::Poisoned(what.into()))
            }),
            Rest::Nothing => unreachable!("this consumes it"),
        }
    }
}

/// The thread ends before the log does: nothing writes to the directory afterwards.
impl Drop for Pending {
    fn drop(&mut self) {
        if let Rest::Running(thread) = std::mem::replace(&mut self.0, Rest::Nothing) {
            // Its result, or a panic that it has printed, has no receiver any more.
            let _ = thread.join();
        }
    }
}
