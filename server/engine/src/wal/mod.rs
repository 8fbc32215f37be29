//! The write-ahead log with group commit. Its published point is the read point of the whole server.
//!
//! A write goes through it in five steps, from any thread:
//!
//! 1. [`Wal::reserve`] reserves its space; only here a full disk can refuse it;
//! 2. [`Wal::append`] gives the edit's rows sequence ids and copies the edit into the open group;
//! 3. the caller inserts the cells into the memstores, while earlier groups are being written;
//! 4. [`Appended::applied`] says so;
//! 5. [`Commit::wait`] (or awaiting it) returns when the group is written, as durable as asked, and
//!    visible: the read point has passed it. One waiter does the work for all (`group` has the
//!    protocol).
//!
//! Invariants: sequence ids, file order and publication order are one order. The read point passes
//! an edit only when it and every edit before it are in the memstores, and every one that asked for
//! a sync is synced. After a write or sync failed nothing is written, synced or published any more:
//! every caller gets [`Error::Poisoned`], and the process should end, since only a restart can read
//! what the disk has.
//!
//! The log is a chain of segment files (`segment` draws the bytes). At a start, in this order:
//!
//! 1. [`recover`] reads and judges all segments, hands out their edits for the memstores, and
//!    rewrites and seals the last one (see `recover`); edits stay in the segments they are in, with
//!    their sequence ids;
//! 2. [`Wal::create`] begins the next segment behind them;
//! 3. after flushes, [`Wal::remove_before`] removes old segments, oldest first.
//!
//! The manifest knows which segments must exist: [`require_segments`] finds missing ones at either
//! end.
//!
//! `reader` has the rule that distinguishes a torn tail from damage. Parts: `batch` (a group's bytes), `cut`
//! (a log that ends earlier), `group` (who leads, who waits), `hold` (segments that are kept for other
//! readers), `kept` (readers that outlive a start), `old` (sealed segments), `roll` (from one file to the
//! next), `room` (space that may be reserved), `segment` (one file), `spare` (the next one), `tail` (reading
//! the log while it grows), `writer` (the leader's work), `reader`, `recover`, `dump`.
//!
//! Lock order: `group`'s state, then the list of old segments. No I/O under either.

mod batch;
mod cut;
mod dump;
mod group;
mod hold;
mod kept;
mod layout;
mod old;
mod reader;
mod recover;
mod roll;
mod room;
mod segment;
mod spare;
// Shipped logs are followed by servers only.
#[cfg_attr(not(feature = "server"), allow(dead_code))]
mod tail;
mod writer;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::cell::Account;
use crate::clock::Clock;
use crate::fs::{Open, Vfs};
use crate::id::{RegionId, SeqId, Uuid};
use crate::metrics::{Counters, EventListener};
use crate::options::WalSync;
use crate::record::EditReader;
use crate::schema::TableName;
use crate::{Error, Result};

use self::group::{Place, Queue};
use self::hold::Holds;
use self::kept::Kept;
use self::layout::segment_path;
use self::old::{OldSegments, list_old};
use self::reader::{read_header, read_sealed};
use self::room::{OVERHEAD_BYTES, Room, cost_of};
use self::segment::Sealed;
use self::spare::Spare;
use self::writer::{Watch, Writer, begin_segment};

pub(crate) use self::batch::EDIT_BYTES_MAX;
pub(crate) use self::cut::{cut, position_at};
pub use self::dump::dump;
pub use self::hold::LogHold;
pub use self::kept::LogReader;
pub use self::reader::{LogSummary, LoggedEdit, read_segments};
pub(crate) use self::reader::{refuse_newer, require_segments};
pub use self::recover::recover;
pub(crate) use self::room::Reserved;
pub(crate) use self::segment::MAGIC;
#[cfg(feature = "server")]
pub(crate) use self::tail::Shipped;
pub(crate) use self::tail::Tail;
pub(crate) use crate::record::edit::origin_bytes;

/// How an edit goes through the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logging {
    /// Written, and as durable as [`WalSync`] says before it is published.
    Sync,
    /// Written, and fdatasynced before it is published, whatever the setting (FSYNC_WAL).
    Fsync,
    /// Written in the next group, published without waiting for a sync (ASYNC_WAL).
    Async,
    /// Not written (SKIP_WAL); still gets a sequence id and is published in order.
    Skip,
}

/// An end of the log that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// Number of the segment.
    pub segment: u64,
    /// Bytes of the segment up to there.
    pub bytes: u64,
    /// The sequence id of the last row before it. All rows up to it are published.
    pub last_seq: SeqId,
}

/// Settings of the log.
#[derive(Clone, Debug)]
pub struct WalOptions {
    /// Directory of the segments.
    pub dir: PathBuf,
    /// A segment is sealed and the next one begun at this size.
    pub segment_bytes: u64,
    /// The meaning of `Logging::Sync`.
    pub sync: WalSync,
    /// Says when groups are written.
    pub clock: Arc<dyn Clock>,
    /// Start a thread that commits groups for callers that do not block (`Commit` as a future), and one for
    /// each roll. Off in simulation.
    pub commit_thread: bool,
}

/// The log, open for appending.
#[derive(Debug)]
pub struct Wal {
    /// Shared with the commit thread only.
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue<Writer>,
    sync: WalSync,
    counters: Arc<Counters>,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    old: OldSegments,
    /// Number of the newest segment that has its name.
    newest: Arc<AtomicU64>,
    room: Arc<Room>,
    watch: Arc<Watch>,
    /// Held by the one call of `remove_before` that runs.
    removing: Mutex<()>,
    /// Segments that readers outside of the engine need.
    holds: Arc<Holds>,
    /// The log that is kept for readers that outlive a start.
    kept: Kept,
}

impl Wal {
    /// Opens a new segment after `last_segment` (0: none) and publishes `last_seq`.
    /// Everything in earlier segments must be sealed: [`recover`] has run and returned `last_segment`.
    pub fn create(
        vfs: Arc<dyn Vfs>,
        options: WalOptions,
        last_segment: u64,
        last_seq: SeqId,
        counters: Arc<Counters>,
        listener: Arc<dyn EventListener>,
    ) -> Result<Arc<Self>> {
        let dir = options.dir;
        let mut predecessor = Sealed::default();
        if last_segment > 0 {
            let walked = read_sealed(&*vfs, &dir, last_segment)?;
            if last_seq.next() < walked.next_seq {
                return Err(Error::InvalidArgument(format!(
                    "the log cannot go on after sequence id {last_seq}: segment {last_segment} reaches further"
                )));
            }
            predecessor = walked.as_sealed();
        }
        let old = list_old(&*vfs, &dir, last_segment, last_seq)?;
        let old = Arc::new(Mutex::new(old));
        let kept = Kept::open(Arc::clone(&vfs), &dir)?;
        let next_seq = last_seq.next();
        let number = last_segment + 1;
        let spare = Spare::create(&*vfs, &dir, options.segment_bytes)?;
        let segment = begin_segment(&*vfs, &dir, spare, number, next_seq, &predecessor)?;
        let room = Arc::new(Room::default());
        let watch = Arc::new(Watch::new());
        let newest = Arc::new(AtomicU64::new(number));
        let mut writer = Writer {
            vfs: Arc::clone(&vfs),
            dir: dir.clone(),
            segment_bytes: options.segment_bytes,
            sync: options.sync,
            segment,
            old: Arc::clone(&old),
            newest: Arc::clone(&newest),
            counters: Arc::clone(&counters),
            listener,
            clock: options.clock,
            busy: false,
            spare: None,
            pending: None,
            failed: None,
            threads: options.commit_thread,
            spare_pause_ticks: 0,
            room: Arc::clone(&room),
            watch: Arc::clone(&watch),
        };
        room.changed(0, writer.segment.room(), 0);
        writer.ask_for_spare();
        let shared = Arc::new(Shared {
            queue: Queue::new(writer, last_seq, options.commit_thread),
            sync: options.sync,
            counters,
            vfs,
            dir,
            old,
            newest,
            room,
            watch,
            removing: Mutex::new(()),
            holds: Arc::default(),
            kept,
        });
        let thread = if options.commit_thread {
            Some(start_thread(&shared)?)
        } else {
            None
        };
        Ok(Arc::new(Self {
            shared,
            thread: Mutex::new(thread),
        }))
    }

    /// Reserves space for `edits` edits with `bytes` bytes together, those of the clusters that they have
    /// passed included ([`origin_bytes`]); edits that are not logged need none. A request of several edits
    /// reserves for all of them before the first, so that no later one is refused.
    ///
    /// Takes no lock as long as there is room, which is nearly always. Otherwise this thread writes
    /// the open group, or preallocates more space. Fails with [`Error::DiskSpace`], without effect,
    /// if the disk has none; the log continues.
    /// REQUIRES: this thread holds no [`Appended`].
    pub fn reserve(&self, edits: usize, bytes: u64) -> Result<Reserved<'_>> {
        let bytes = (edits as u64)
            .saturating_mul(OVERHEAD_BYTES)
            .saturating_add(bytes);
        loop {
            if let Some(reserved) = Reserved::take(&self.shared.room, bytes) {
                return Ok(reserved);
            }
            self.shared.queue.lead_or(|writer| {
                writer.make_room(bytes).map_err(|error| {
                    let why = error.for_clients();
                    Error::DiskSpace(format!("the log cannot take {bytes} bytes more: {why}"))
                })
            })?;
        }
    }

    /// How long the disk has kept the log waiting, if an operation is running. Every group waits
    /// behind that.
    pub fn waiting(&self) -> Option<Duration> {
        self.shared.watch.waiting()
    }

    /// The reason why the log has no space for a next segment, as long as it has none.
    pub fn lacks(&self) -> Option<Error> {
        self.shared.room.lacks()
    }

    /// Joins the open group: gives each of the edit's `rows` rows a sequence id of its own, consecutive ones,
    /// and copies `payload`, an encoded `record::Edit` that has passed the clusters `origin`, into the group.
    /// Its space is taken from `reserved`.
    /// The caller then inserts the cells into the memstores with those sequence ids and calls
    /// [`Appended::applied`]. Fails without effect when the log is poisoned or closed, or when the edit is
    /// longer than [`EDIT_BYTES_MAX`].
    /// REQUIRES: an edit of this length is among those that `reserved` was made for.
    pub fn append(
        self: &Arc<Self>,
        reserved: &mut Reserved<'_>,
        payload: &[u8],
        rows: u32,
        origin: &[Uuid],
        logging: Logging,
    ) -> Result<Appended> {
        if rows == 0 {
            return Err(Error::InvalidArgument(
                "an edit needs at least one row".to_string(),
            ));
        }
        if payload.len() > EDIT_BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "an edit of {} bytes is longer than the log takes at once ({EDIT_BYTES_MAX} bytes)",
                payload.len()
            )));
        }
        let sync = match logging {
            Logging::Sync => self.shared.sync == WalSync::Fsync,
            Logging::Fsync => true,
            Logging::Async | Logging::Skip => false,
        };
        // Recovery gives rows their sequence ids by counting: a wrong count here would shift those of every
        // later row.
        assert!(
            logging == Logging::Skip
                || EditReader::new(payload, SeqId::ZERO).is_ok_and(|edit| edit.rows() == rows),
            "the payload is an edit of that many rows"
        );
        let place = self.shared.queue.join(rows, |batch, first| {
            if logging == Logging::Skip {
                batch.push_unlogged();
            } else {
                reserved.spend(cost_of(origin, payload));
                batch.push(first, rows, origin, payload, sync);
            }
        })?;
        if logging != Logging::Skip {
            self.shared.counters.wal_appends.increment();
        }
        Ok(Appended {
            wal: Some(Arc::clone(self)),
            place,
            sync,
        })
    }

    /// Every edit up to here is in the memstores and visible to readers, and durable if it asked to be.
    pub fn read_point(&self) -> SeqId {
        self.shared.queue.read_point()
    }

    /// The last sequence id given out.
    pub fn last_assigned(&self) -> SeqId {
        self.shared.queue.last_assigned()
    }

    /// Waits until everything up to `seq` is published; this thread may do the write and sync. An
    /// unassigned sequence id is an error.
    /// REQUIRES: this thread holds no [`Appended`].
    pub(crate) fn wait_published(&self, seq: SeqId) -> Result<()> {
        self.shared.queue.wait_published(seq)
    }

    /// Writes a group without waiters, syncs edits of ASYNC_WAL and, if nothing was written since
    /// the previous call, writes the marker that states everything durable. So the longest time
    /// until then (the option `wal_idle_marker`) is twice the time between calls.
    /// REQUIRES: this thread holds no [`Appended`].
    pub fn tick(&self) -> Result<()> {
        let sync_all = self.shared.sync == WalSync::Fsync;
        self.shared.queue.try_work(
            // Under constant writes a tick would never get to sync for ASYNC_WAL: the open group's
            // leader shall.
            |open| {
                if sync_all {
                    open.want_sync();
                }
            },
            Writer::tick,
        )
    }

    /// Syncs everything that is written, and returns where that ends. All groups wait meanwhile, as for the
    /// sync of a group.
    /// REQUIRES: this thread holds no [`Appended`].
    pub fn synced_end(&self) -> Result<LogEnd> {
        self.shared.queue.work_between(Writer::synced_end)
    }

    /// Path of a segment below the data directory, the length that was preallocated for it, and its present
    /// length, which is its content once it is sealed.
    pub(crate) fn segment_file(&self, number: u64) -> Result<(PathBuf, u64, u64)> {
        let path = segment_path(&self.shared.dir, number);
        let header = read_header(&*self.shared.vfs, &self.shared.dir, number)?;
        let file = self.shared.vfs.open(&path, Open::Read);
        let length = file.and_then(|file| file.len());
        let length = length.map_err(|source| Error::io("reading the length of", &path, source))?;
        let below = segment_path(Path::new("wal"), number);
        Ok((below, header.allocated, length))
    }

    /// Keeps a segment and all later ones from removal until the hold is dropped.
    /// REQUIRES: the segment cannot be removed during the call: the manifest names it, and is locked.
    pub(crate) fn hold(&self, segment: u64) -> LogHold {
        LogHold::new(&self.shared.holds, segment)
    }

    /// The readers of the log, by name.
    pub(crate) fn readers(&self) -> Vec<LogReader> {
        self.shared.kept.readers()
    }

    /// Adds a reader at the present end of the log, durably, and returns its position.
    /// REQUIRES: this thread holds no [`Appended`].
    pub(crate) fn add_reader(&self, name: &str, note: &[u8]) -> Result<SeqId> {
        let end = |_| Ok(self.synced_end()?.last_seq.next());
        self.shared.kept.add(name, note, end)
    }

    /// Adds a reader at a position that the log still has, durably. Fails if the log from there on is not
    /// kept, or ends before it. REQUIRES: this thread holds no [`Appended`].
    pub(crate) fn add_reader_at(&self, name: &str, note: &[u8], position: SeqId) -> Result<()> {
        let checked = |oldest| {
            let end = self.synced_end()?.last_seq.next();
            if position > end {
                return Err(Error::InvalidArgument(format!(
                    "the log ends before position {end}, and position {position} is behind that"
                )));
            }
            let begin = self.begin(oldest)?;
            if position < begin {
                return Err(tail::not_kept(begin, position));
            }
            Ok(position)
        };
        self.shared.kept.add(name, note, checked).map(drop)
    }

    /// The sequence id of the first row that can be read.
    pub(crate) fn first_position(&self) -> Result<SeqId> {
        self.begin(self.shared.kept.first_segment())
    }

    /// The sequence id of the first row of the oldest segment; `aside` is the oldest that was set aside.
    fn begin(&self, aside: Option<u64>) -> Result<SeqId> {
        let first = self.segments().0;
        let oldest = aside.unwrap_or(first).min(first);
        let Some(path) = self.shared.kept.find(oldest)? else {
            return Err(Error::InvalidArgument(format!(
                "segment {oldest} of the log is not kept any more"
            )));
        };
        let header = reader::header_of(&*self.shared.vfs, &path)?.map_err(|bad| bad.into_error(&path))?;
        Ok(header.first_seq)
    }

    /// Replaces the note of a reader, durably.
    pub(crate) fn set_reader_note(&self, name: &str, note: &[u8]) -> Result<()> {
        self.shared.kept.set_note(name, note)
    }

    /// Moves a reader forward, durably, and removes what no reader needs any more.
    pub(crate) fn advance_reader(&self, name: &str, position: SeqId) -> Result<()> {
        self.shared.kept.advance(name, position)
    }

    /// Removes a reader; `false` if there is none of that name.
    pub(crate) fn remove_reader(&self, name: &str) -> Result<bool> {
        self.shared.kept.remove(name)
    }

    /// Notes the tables of regions that are about to be gone, for the readers.
    pub(crate) fn note_gone_regions(&self, regions: &[(RegionId, TableName)]) -> Result<()> {
        self.shared.kept.note_gone(regions, self.last_assigned())
    }

    /// The table of a region that is gone.
    pub(crate) fn gone_region(&self, region: RegionId) -> Option<TableName> {
        self.shared.kept.gone(region)
    }

    /// Accepts nothing more, waits for edits that are being applied to the memstores, writes and
    /// publishes the last group, seals the log. A second call does nothing.
    /// REQUIRES: this thread holds no [`Appended`].
    pub fn close(&self) -> Result<()> {
        self.shared.queue.close(Writer::close)
    }
}

/// An edit that has its place in the log and is not in the memstores yet. Dropping it without
/// [`Self::applied`] poisons the log, since publication could never continue.
///
/// While a thread holds one it must not wait for the log: its group is not published before it is applied.
#[derive(Debug)]
pub struct Appended {
    /// Taken by `applied`.
    wal: Option<Arc<Wal>>,
    place: Place,
    /// Whether it has asked its group for a sync.
    sync: bool,
}

impl Appended {
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
            made: None,
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
    /// Memory of what the write has made: released when the wait for it ends.
    made: Option<Box<Account>>,
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

    /// Keeps the memory of what the write has made until the wait for it ends.
    pub(crate) fn holding(mut self, made: Option<Box<Account>>) -> Self {
        self.made = made;
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

/// The commit thread ends with the log.
impl Drop for Wal {
    fn drop(&mut self) {
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        // No `Commit` or `Appended` exists any more, since they hold the log: no caller is refused
        // by this.
        self.shared.queue.end_thread();
        // The commit thread itself may drop the last handle, in a waker. It cannot join itself.
        if thread.thread().id() != std::thread::current().id() {
            // A panic in it has been printed by it, and no caller is left to receive it.
            let _ = thread.join();
        }
    }
}

fn start_thread(shared: &Arc<Shared>) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let dir = shared.dir.clone();
    std::thread::Builder::new()
        .name("basalt-wal".to_string())
        .spawn(move || shared.queue.run_thread())
        .map_err(|e| Error::io("starting the commit thread of", dir, e))
}

#[cfg(all(test, loom))]
mod model;
#[cfg(test)]
mod tests;
