//! What the leader of a group does: one write, perhaps one sync, now and then the next segment.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::fs::Vfs;
use crate::id::SeqId;
use crate::metrics::{Counters, EventListener};
use crate::options::WalSync;
use crate::{Error, Result};

use super::batch::Batch;
use super::group::Lead;
use super::segment::{MARKER_BYTES, SEAL_BYTES, Sealed, SegmentWriter, segment_path};

/// Room that a segment keeps for a marker and its seal, so that neither needs new space.
const RESERVED_BYTES: u64 = (MARKER_BYTES + SEAL_BYTES) as u64;

/// A sealed segment that is still there, and whose successor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OldSegment {
    pub(super) number: u64,
    /// No row in it has a greater sequence id.
    pub(super) last_seq: SeqId,
}

/// Sealed segments, oldest first. Grows by the leader, shrinks by `remove_obsolete`.
pub(super) type OldSegments = Arc<Mutex<Vec<OldSegment>>>;

/// The open segment and what it takes to begin the next one.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    pub(super) segment_bytes: u64,
    pub(super) sync: WalSync,
    pub(super) segment: SegmentWriter,
    pub(super) old: OldSegments,
    pub(super) counters: Arc<Counters>,
    pub(super) listener: Arc<dyn EventListener>,
    /// Whether a group was written since the last tick.
    pub(super) busy: bool,
}

impl Lead for Writer {
    fn write(&mut self, batch: &mut Batch) -> Result<()> {
        if batch.len() > 0 {
            self.busy = true;
            if self.must_roll(batch) {
                self.roll(batch)?;
            }
            let segment = &mut self.segment;
            let mut ahead = 0;
            batch.for_each_frame(|frame, first_seq| {
                segment.fill_header(frame, ahead, first_seq);
                ahead += frame.len();
            });
            segment.write(batch.bytes())?;
            self.counters.wal_groups.increment();
            self.counters.wal_bytes.add(batch.len() as u64);
        }
        let mut synced = None;
        // Also without bytes of its own: a tick that found the log busy asks the open group for the sync, whatever is in it.
        if batch.wants_sync() && self.segment.is_dirty() {
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
    /// Whether the group goes to the next segment. A group larger than a segment gets one of its own, which grows.
    fn must_roll(&self, batch: &Batch) -> bool {
        let end = self.segment.end() + batch.len() as u64 + RESERVED_BYTES;
        batch.len() > 0 && end > self.segment_bytes && !self.segment.is_empty()
    }

    /// Seals the segment and begins the next one. The seal is durable before the successor exists, and the successor, header
    /// and name, before anything is written to it: recovery relies on both.
    fn roll(&mut self, batch: &mut Batch) -> Result<()> {
        let mut next_seq = None;
        batch.for_each_frame(|_, first_seq| {
            next_seq.get_or_insert(first_seq);
        });
        let next_seq = SeqId(next_seq.expect("a group that rolls has a frame"));
        let sealed = self.seal(next_seq)?;
        let number = self.segment.number() + 1;
        let successor = create_segment(
            &*self.vfs,
            &self.dir,
            number,
            next_seq,
            &sealed,
            self.segment_bytes,
        )?;
        let sealed = std::mem::replace(&mut self.segment, successor);
        // Only now may it be removed: a successor whose creation was cut short is known by the segment before it.
        self.old.lock().push(OldSegment {
            number: sealed.number(),
            last_seq: SeqId(next_seq.0 - 1),
        });
        self.counters.wal_syncs.increment();
        Ok(())
    }

    /// Seals the open segment. It does not count among the old ones before it has a successor.
    pub(super) fn seal(&mut self, next_seq: SeqId) -> Result<Sealed> {
        let before = self.segment.end();
        let sealed = self.segment.seal(next_seq)?;
        self.counters.wal_syncs.increment();
        self.counters.wal_bytes.add(self.segment.end() - before);
        Ok(sealed)
    }

    /// Syncs what groups without a sync have left; when nothing was written since the last call, states everything durable.
    ///
    /// With [`WalSync::Os`] only the second makes a sync: nobody was promised one, but a log at rest costs nothing more to sync.
    /// Nobody waits for a marker, so the marker itself is left to the next sync.
    pub(super) fn tick(&mut self, next_seq: SeqId) -> Result<()> {
        let idle = !std::mem::take(&mut self.busy);
        if self.segment.is_dirty() && (self.sync == WalSync::Fsync || idle) && !self.segment.is_stated() {
            self.sync()?;
        }
        if idle && !self.segment.is_stated() {
            self.segment.write_marker(next_seq)?;
            self.counters.wal_bytes.add(MARKER_BYTES as u64);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        self.segment.sync()?;
        self.counters.wal_syncs.increment();
        Ok(begun.elapsed())
    }
}

/// Creates a segment, durable with its name.
pub(super) fn create_segment(
    vfs: &dyn Vfs,
    dir: &std::path::Path,
    number: u64,
    first_seq: SeqId,
    predecessor: &Sealed,
    allocate_bytes: u64,
) -> Result<SegmentWriter> {
    let path = segment_path(dir, number);
    let segment = SegmentWriter::create(vfs, path, number, first_seq, predecessor, allocate_bytes)?;
    vfs.sync_dir(dir).map_err(|e| Error::io("syncing", dir, e))?;
    Ok(segment)
}
