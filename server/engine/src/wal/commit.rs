//! The states of an edit: appended, applied, published.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::Result;
use crate::id::SeqId;

use super::Wal;
use super::group::Place;

/// An edit that has its place in the log and is not in the memstores yet. Dropping it without
/// [`Self::applied`] poisons the log, since publication could never continue.
///
/// While a thread holds one it must not wait for the log: its group is not published before it is applied.
#[derive(Debug)]
pub struct Appended {
    /// Taken by `applied`.
    wal: Option<Arc<Wal>>,
    place: Place,
    sync: bool,
}

impl Appended {
    /// It has joined a group; `sync`: and asked it for a sync.
    pub(super) fn new(wal: Arc<Wal>, place: Place, sync: bool) -> Self {
        Self {
            wal: Some(wal),
            place,
            sync,
        }
    }

    /// The sequence id of its first row.
    pub fn first_seq(&self) -> SeqId {
        self.place.first
    }

    /// The cells are in the memstores.
    pub fn applied(mut self) -> Commit {
        let wal = self.wal.take().expect("only this takes it, and consumes");
        wal.shared.queue.applied(self.place.group);
        Commit {
            wal,
            group: self.place.group,
            seq: self.place.last,
            registered: None,
            sync: self.sync,
            pause: Duration::ZERO,
        }
    }
}

impl Drop for Appended {
    fn drop(&mut self) {
        if let Some(wal) = self.wal.take() {
            wal.shared
                .queue
                .poison("an edit in the log was not applied to memory");
        }
    }
}

/// An edit that is not published yet: wait for it on this thread, or await it (it is a `Future` of
/// `Result<()>`).
///
/// A poll never blocks for a disk: if the group needs a sync (or a new segment) the commit thread does it. If
/// it needs only a write to the page cache, the poll does it itself, since that takes less time than waking
/// another thread. Without a commit thread (`WalOptions::commit_thread`) the poll does everything.
///
/// Dropping it is fine: the edit is written with the next group, or by the next tick.
#[derive(Debug)]
#[must_use = "the edit is neither durable nor visible before this returns"]
pub struct Commit {
    wal: Arc<Wal>,
    group: u64,
    seq: SeqId,
    /// Where its waker stands among its group's.
    registered: Option<usize>,
    sync: bool,
    pause: Duration,
}

impl Commit {
    /// Pause for the writer between publication and its answer. Zero unless memory fills faster
    /// than it is flushed.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// A copy with a pause of at least `pause`.
    pub(crate) fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = self.pause.max(pause);
        self
    }

    /// Whether the edit asked for a sync. If not, a poll writes its group unless another thread
    /// does, so that the longer the first poll is put off, the more edits share that write.
    #[cfg(feature = "server")]
    pub fn is_synced(&self) -> bool {
        self.sync
    }

    /// The sequence id of its last row: published once this is.
    pub(crate) fn last_seq(&self) -> SeqId {
        self.seq
    }

    /// The sequence id of its last row.
    #[cfg(feature = "server")]
    pub fn seq(&self) -> SeqId {
        self.seq
    }

    /// Blocks until it is published; this thread may do the group's write and sync.
    /// REQUIRES: this thread holds no `Appended`.
    pub fn wait(self) -> Result<()> {
        self.wal.shared.queue.wait(self.group, self.seq)
    }
}

impl Future for Commit {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        this.wal
            .shared
            .queue
            .poll(this.group, this.seq, context.waker(), &mut this.registered)
    }
}
