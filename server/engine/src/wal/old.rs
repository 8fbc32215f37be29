//! The sealed segments that still exist, and which of them may be removed.
//!
//! A roll adds one, [`Wal::remove_before`] removes them, oldest first: the chain of segments never has a
//! hole. Those that a reader of the log needs are set aside first (`kept`). The list's lock comes after that
//! of `group`'s state, and is held for no I/O.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::fs::{Open, Vfs};
use crate::id::SeqId;
use crate::{Error, Result};

use super::layout::segment_path;
use super::reader::{list_segments, read_header};
use super::{Wal, recover};

/// A sealed segment that still exists, as does its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OldSegment {
    pub(super) number: u64,
    /// No row in it has a greater sequence id.
    pub(super) last_seq: SeqId,
}

/// Sealed segments, oldest first. Grows by rolls, shrinks by `Wal::remove_before`.
pub(super) type OldSegments = Arc<Mutex<Vec<OldSegment>>>;

/// The segments up to `last_segment` and their content, according to their successors' headers.
pub(super) fn list_old(
    vfs: &dyn Vfs,
    dir: &Path,
    last_segment: u64,
    last_seq: SeqId,
) -> Result<Vec<OldSegment>> {
    let numbers = list_segments(vfs, dir)?;
    let mut old = Vec::new();
    for number in numbers.into_iter().filter(|number| *number <= last_segment) {
        let last_seq = if number == last_segment {
            last_seq
        } else {
            SeqId(read_header(vfs, dir, number + 1)?.first_seq.0.saturating_sub(1))
        };
        old.push(OldSegment { number, last_seq });
    }
    Ok(old)
}

impl Wal {
    /// Numbers of the first and the last segment there is.
    pub fn segments(&self) -> (u64, u64) {
        // The newest first: a roll in between makes it one of the old.
        let newest = self.shared.newest.load(Ordering::Acquire);
        let oldest = self.shared.old.lock().first().map(|oldest| oldest.number);
        (oldest.unwrap_or(newest).min(newest), newest)
    }

    /// The first segment that is kept when all segments are removed whose edits are all at or below
    /// `flushed`, up to the oldest held one; `None` when none is removed.
    pub(crate) fn first_kept(&self, flushed: SeqId) -> Option<u64> {
        let held = self.shared.holds.oldest();
        let old = self.shared.old.lock();
        let gone = old
            .iter()
            .take_while(|segment| segment.last_seq <= flushed && segment.number < held)
            .last()?;
        Some(gone.number + 1)
    }

    /// The last sequence id in segments before `first`; `None` without such segments.
    pub(crate) fn last_seq_before(&self, first: u64) -> Option<SeqId> {
        let old = self.shared.old.lock();
        let gone = old.iter().take_while(|segment| segment.number < first).last()?;
        Some(gone.last_seq)
    }

    /// Removes the segments before `first`, oldest first, each durably before the next: the chain must have
    /// no hole after a crash. Returns how many.
    /// REQUIRES: it is a number that [`Self::first_kept`] has returned, for edits that are in store files.
    pub(crate) fn remove_before(&self, first: u64) -> Result<usize> {
        let _one_at_a_time = self.shared.removing.lock();
        let mut removed = 0;
        loop {
            let first = first.min(self.shared.holds.oldest());
            let oldest = self.shared.old.lock().first().copied();
            let Some(oldest) = oldest.filter(|oldest| oldest.number < first) else {
                return Ok(removed);
            };
            if self.shared.kept.wants(oldest.last_seq) {
                self.shared.kept.set_aside(oldest)?;
            }
            let path = segment_path(&self.shared.dir, oldest.number);
            recover::remove(&*self.shared.vfs, &self.shared.dir, &path)?;
            self.shared.old.lock().remove(0);
            removed += 1;
        }
    }

    /// Bytes of the sealed segments that have rows from `position` on, those that were set aside included.
    pub(crate) fn bytes_from(&self, position: SeqId) -> Result<u64> {
        let has_rows = |segment: &&OldSegment| segment.last_seq >= position;
        let old = self.shared.old.lock();
        let mut numbers: Vec<u64> = old
            .iter()
            .filter(has_rows)
            .map(|segment| segment.number)
            .collect();
        drop(old);
        numbers.extend(self.shared.kept.segments_from(position));
        numbers.sort_unstable();
        numbers.dedup();
        let mut bytes = 0;
        for number in numbers {
            // One that was removed meanwhile is not kept.
            if let Some(path) = self.shared.kept.find(number)? {
                let file = self.shared.vfs.open(&path, Open::Read);
                match file.and_then(|file| file.len()) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    length => {
                        bytes += length.map_err(|e| Error::io("reading the length of", &path, e))?;
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// The last sequence id in the oldest segments beyond the newest `kept` sealed ones, if there
    /// are more.
    pub(crate) fn last_seq_beyond(&self, kept: usize) -> Option<SeqId> {
        let old = self.shared.old.lock();
        let beyond = old.len().checked_sub(kept + 1)?;
        Some(old[beyond].last_seq)
    }
}
