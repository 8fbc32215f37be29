//! The leader's work on a group: one write, perhaps one sync, now and then the next segment (`roll`).
//!
//! Everything that a group needs is preallocated (`room` explains why that holds before the group
//! is closed), so only a broken disk fails a write here, and that is final. In contrast,
//! [`Writer::ask_for_spare`] and [`Writer::make_room`] ask the disk for space and may fail any
//! number of times. A [`Watch`] shows other threads how long the leader has been waiting for the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::clock::Clock;
use crate::fs::Vfs;
use crate::id::SeqId;
use crate::metrics::{Counters, EventListener};
use crate::options::WalSync;
use crate::seeded;
use crate::{Error, Result};

use super::LogEnd;
use super::batch::Batch;
use super::group::Lead;
use super::layout::remove_if_there;
use super::layout::{MARKER_BYTES, bytes_for};
use super::old::OldSegments;
use super::roll::{Pending, Roll};
use super::room::Room;
use super::segment::{Sealed, SegmentWriter};
use super::spare::Spare;

/// Ticks between two attempts to get a spare from a disk that has refused one: about a second.
const SPARE_PAUSE_TICKS: u32 = 10;

/// The open segment and the state for beginning the next one.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    pub(super) segment_bytes: u64,
    pub(super) sync: WalSync,
    pub(super) segment: SegmentWriter,
    pub(super) old: OldSegments,
    /// Number of the newest segment that has its name, for others.
    pub(super) newest: Arc<AtomicU64>,
    pub(super) counters: Arc<Counters>,
    pub(super) listener: Arc<dyn EventListener>,
    /// Says when a group is written.
    pub(super) clock: Arc<dyn Clock>,
    /// Whether a group was written since the last tick.
    pub(super) busy: bool,
    /// The file that will be the next segment. `None` during a roll, and while the disk refuses it.
    pub(super) spare: Option<Spare>,
    /// The roll to the open segment, until it is complete.
    pub(super) pending: Option<Pending>,
    /// Why a roll could not be completed. Final.
    pub(super) failed: Option<Error>,
    /// Whether rolls are completed by threads.
    pub(super) threads: bool,
    /// Ticks to go before the disk is asked for it again.
    pub(super) spare_pause_ticks: u32,
    /// Told of every change of the rest of the segment and of the spare.
    pub(super) room: Arc<Room>,
    /// Told of everything that asks the disk for something.
    pub(super) watch: Arc<Watch>,
}

impl Lead for Writer {
    fn write(&mut self, batch: &mut Batch) -> Result<()> {
        let watch = Arc::clone(&self.watch);
        let _working = watch.begin();
        self.take_roll()?;
        if batch.len() > 0 {
            self.busy = true;
            if self.must_roll(batch) {
                self.roll(batch)?;
            }
            batch.state_time(self.clock.wall_ms());
            let before = self.capacity();
            let segment = &mut self.segment;
            let mut ahead = 0;
            batch.for_each_frame(|frame, first_seq| {
                segment.fill_header(frame, ahead, first_seq);
                ahead += frame.len();
            });
            segment.write(batch.bytes())?;
            self.counters.wal_groups.increment();
            self.counters.wal_bytes.add(batch.len() as u64);
            self.room.changed(before, self.capacity(), batch.reserved());
            if self.spare.is_none() && self.pending.is_none() && self.spare_pause_ticks == 0 {
                self.ask_for_spare();
            }
        }
        let mut synced = None;
        // Also without bytes of its own: a tick that found the log busy asks the open group for the
        // sync, whatever its content.
        let wants_sync = batch.wants_sync() && !(seeded::is_on("ack-before-sync") && batch.len() > 0);
        if wants_sync && self.is_dirty() {
            synced = Some(self.sync()?);
        }
        if batch.len() > 0 {
            self.listener.wal_group(batch.edits(), batch.len(), synced);
        }
        Ok(())
    }

    fn blocks(&self, batch: &Batch) -> bool {
        batch.wants_sync() || self.must_roll(batch)
    }
}

impl Writer {
    /// Whether the group goes to the next segment.
    fn must_roll(&self, batch: &Batch) -> bool {
        batch.len() as u64 > self.segment.room() && !self.segment.is_empty()
    }

    /// Maximum size of a group now: in the rest of the segment, or in the spare.
    fn capacity(&self) -> u64 {
        self.segment
            .room()
            .max(self.spare.as_ref().map_or(0, Spare::room))
    }

    /// Begins the next segment in the spare, and starts to seal the full one (`roll`). For a group that
    /// wants a sync, it also completes the roll.
    fn roll(&mut self, batch: &mut Batch) -> Result<()> {
        self.complete_roll()?;
        let before = self.capacity();
        let mut next_seq = None;
        batch.for_each_frame(|_, first_seq| {
            next_seq.get_or_insert(first_seq);
        });
        let next_seq = SeqId(next_seq.expect("a group that rolls has a frame"));
        let seal = self.segment.plan_seal(next_seq);
        let number = self.segment.number() + 1;
        let spare = match self.spare.take() {
            Some(spare) => spare,
            // Not reached: a group that does not fit into the rest was promised the spare.
            None => Spare::create(&*self.vfs, &self.dir, self.segment_bytes)?,
        };
        let successor = SegmentWriter::begin(&*self.vfs, spare, number, next_seq, &seal.sealed)?;
        let roll = Roll {
            vfs: Arc::clone(&self.vfs),
            dir: self.dir.clone(),
            segment_bytes: self.segment_bytes,
            successor: successor.unnamed(),
            full: std::mem::replace(&mut self.segment, successor),
            seal,
            last_seq: SeqId(next_seq.0 - 1),
            old: Arc::clone(&self.old),
            newest: Arc::clone(&self.newest),
            counters: Arc::clone(&self.counters),
        };
        let waits = batch.wants_sync();
        // A thread would not be faster for a group that waits.
        self.pending = Some(Pending::start(roll, self.threads && !waits));
        self.room.changed(before, self.capacity(), 0);
        if waits { self.complete_roll() } else { Ok(()) }
    }

    /// Takes over the result of a roll that a thread has done; without threads, does it.
    fn take_roll(&mut self) -> Result<()> {
        match &self.pending {
            Some(roll) if !roll.is_done() && !roll.is_due() => Ok(()),
            _ => self.complete_roll(),
        }
    }

    /// Completes the roll to the open segment, if that is pending.
    fn complete_roll(&mut self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(roll) = self.pending.take() else {
            return Ok(());
        };
        let next = roll
            .complete()
            .inspect_err(|error| self.failed = Some(error.clone()))?;
        self.segment.note_name(&self.dir);
        let before = self.capacity();
        self.take_spare(before, next);
        Ok(())
    }

    /// Whether something was written and not synced.
    fn is_dirty(&self) -> bool {
        self.segment.is_dirty() || self.pending.is_some()
    }

    /// Asks the disk for a spare. Without one the log goes on for as long as there is room.
    pub(super) fn ask_for_spare(&mut self) {
        let before = self.capacity();
        let created = Spare::create(&*self.vfs, &self.dir, self.segment_bytes);
        self.take_spare(before, created);
    }

    /// Takes over a spare, or the reason why there is none.
    fn take_spare(&mut self, before: u64, created: Result<Spare>) {
        match created {
            Ok(spare) => {
                self.spare = Some(spare);
                self.room.set_lacks(None);
                self.room.changed(before, self.capacity(), 0);
            }
            Err(error) => {
                self.room.set_lacks(Some(error));
                self.spare_pause_ticks = SPARE_PAUSE_TICKS;
            }
        }
    }

    /// Tries to make this many bytes available for promises. Without effect when the disk refuses
    /// them.
    pub(super) fn make_room(&mut self, bytes: u64) -> Result<()> {
        if self.room.shortfall(bytes) == 0 {
            return Ok(());
        }
        let watch = Arc::clone(&self.watch);
        let _working = watch.begin();
        // Its next spare may be all that is needed.
        self.complete_roll()?;
        let shortfall = self.room.shortfall(bytes);
        if shortfall == 0 {
            return Ok(());
        }
        let before = self.capacity();
        let room = before.saturating_add(shortfall);
        match &mut self.spare {
            _ if self.segment.is_empty() => self.segment.grow(room)?,
            Some(spare) => spare.grow(bytes_for(room))?,
            none => {
                let spare_bytes = self.segment_bytes.max(bytes_for(room));
                *none = Some(Spare::create(&*self.vfs, &self.dir, spare_bytes)?);
                self.room.set_lacks(None);
            }
        }
        self.room.changed(before, self.capacity(), 0);
        Ok(())
    }

    /// Seals the log for good, and gives the spare's space back.
    pub(super) fn close(&mut self, next_seq: SeqId) -> Result<()> {
        self.complete_roll()?;
        self.seal(next_seq)?;
        let Some(spare) = self.spare.take() else {
            return Ok(());
        };
        drop(spare.file);
        remove_if_there(&*self.vfs, &spare.path)
    }

    /// Seals the open segment for good: it gets no successor.
    fn seal(&mut self, next_seq: SeqId) -> Result<()> {
        let seal = self.segment.plan_seal(next_seq);
        self.segment.seal(&seal)?;
        self.counters.wal_syncs.increment();
        self.counters.wal_bytes.add(seal.frame.len() as u64);
        Ok(())
    }

    /// Syncs edits of groups without a sync; when nothing was written since the last call, writes
    /// the marker that states everything durable. Asks for a spare, if there is none.
    ///
    /// With [`WalSync::Os`] only an idle tick syncs: no caller was promised a sync, but syncing an
    /// idle log costs nothing more. No caller waits for a marker, so the marker itself is left to
    /// the next sync.
    pub(super) fn tick(&mut self, next_seq: SeqId) -> Result<()> {
        let watch = Arc::clone(&self.watch);
        let _working = watch.begin();
        let idle = !std::mem::take(&mut self.busy);
        self.take_roll()?;
        if self.is_dirty() && (self.sync == WalSync::Fsync || idle) && !self.segment.is_stated() {
            self.sync()?;
        }
        // A marker needs room as well, or a group that was promised it would not fit. Without room a later
        // tick writes it.
        if idle && !self.segment.is_stated() && self.room.take(MARKER_BYTES as u64) {
            let before = self.capacity();
            self.segment.write_marker(next_seq)?;
            self.counters.wal_bytes.add(MARKER_BYTES as u64);
            self.room.changed(before, self.capacity(), MARKER_BYTES as u64);
        }
        if self.spare.is_none() && self.pending.is_none() {
            self.spare_pause_ticks = self.spare_pause_ticks.saturating_sub(1);
            if self.spare_pause_ticks == 0 {
                self.ask_for_spare();
            }
        }
        Ok(())
    }

    /// Makes everything written durable and returns where it ends. `next_seq` is the first sequence id that
    /// is not written.
    pub(super) fn synced_end(&mut self, next_seq: SeqId) -> Result<LogEnd> {
        let watch = Arc::clone(&self.watch);
        let _working = watch.begin();
        self.complete_roll()?;
        if self.is_dirty() {
            self.sync()?;
        }
        Ok(LogEnd {
            segment: self.segment.number(),
            bytes: self.segment.end(),
            last_seq: SeqId(next_seq.0 - 1),
        })
    }

    fn sync(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        self.complete_roll()?;
        if !(seeded::is_on("some-groups-not-synced") && self.segment.end().is_multiple_of(5)) {
            self.segment.sync()?;
        }
        self.counters.wal_syncs.increment();
        Ok(begun.elapsed())
    }
}

/// Makes the spare segment `number`, durable with its name.
pub(super) fn begin_segment(
    vfs: &dyn Vfs,
    dir: &Path,
    spare: Spare,
    number: u64,
    first_seq: SeqId,
    predecessor: &Sealed,
) -> Result<SegmentWriter> {
    let mut segment = SegmentWriter::begin(vfs, spare, number, first_seq, predecessor)?;
    segment.unnamed().name(vfs, dir)?;
    segment.note_name(dir);
    Ok(segment)
}

/// Since when the log waits for the disk.
///
/// A failing disk returns an error, and the process ends. A hanging one returns nothing: the leader
/// waits, and so does every group behind. The leader records when it began, so that new writes can
/// be refused instead of waiting with the rest.
///
/// One number, written by the holder of the log's leader token, read by any thread without a lock.
#[derive(Debug)]
pub(super) struct Watch {
    /// The origin of the times.
    origin: Instant,
    /// Start of the running operation, in nanoseconds from `origin`, at least 1; 0: there is none.
    since: CachePadded<AtomicU64>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            origin: Instant::now(),
            since: CachePadded::default(),
        }
    }

    /// Records the beginning of an operation that may wait for the disk; the guard records its end.
    pub(super) fn begin(&self) -> Working<'_> {
        self.since.store(self.now().max(1), Ordering::Relaxed);
        Working(self)
    }

    /// Duration of the running operation so far; `None` when there is none.
    pub(super) fn waiting(&self) -> Option<Duration> {
        match self.since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Duration::from_nanos(self.now().saturating_sub(since))),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Work that is going on.
#[derive(Debug)]
pub(super) struct Working<'a>(&'a Watch);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Relaxed);
    }
}
