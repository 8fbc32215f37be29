//! The bytes of a group while it is filled: frames that lack only their headers.
//!
//! Edits are copied in behind room for a frame header, so that the leader fills in headers and
//! writes the buffer as it is: one copy per edit. The buffer is reused for the group after the
//! next; at steady state nothing is allocated.

use crate::id::{SeqId, Uuid};
use crate::record::edit::{ENTRY_OVERHEAD_BYTES, ORIGIN_BYTES_MAX, origin_bytes};
use crate::record::{FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, put_entry, reserve_header};

use super::room::cost_of;
use super::segment::{EDITS_HEAD_BYTES, KIND_EDITS};

/// Longest edit: a frame holds at least one.
pub(crate) const EDIT_BYTES_MAX: usize =
    FRAME_PAYLOAD_BYTES_MAX - EDITS_HEAD_BYTES - ENTRY_OVERHEAD_BYTES - ORIGIN_BYTES_MAX;

/// Size up to which a buffer is kept after use; one that grew beyond it for a large group is freed.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// One group's edits.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each frame begins in `bytes`, and its first sequence id. Nearly always one: a second begins only
    /// when the first has reached the longest payload.
    frames: Vec<(usize, u64)>,
    /// The sequence id that the next entry of the last frame has if its gap is zero.
    next_entry_seq: u64,
    /// Edits in it, those that are not logged included.
    edits: usize,
    /// Upper bound of the bytes that its edits take in the log, as reserved.
    reserved: u64,
    /// Whether a member must not be published before a sync.
    sync: bool,
}

impl Batch {
    /// Adds an edit that is logged, and that has passed the clusters `origin`.
    /// REQUIRES: at most [`EDIT_BYTES_MAX`] long; sequence ids grow from call to call.
    pub(super) fn push(&mut self, first_seq: SeqId, rows: u32, origin: &[Uuid], edit: &[u8], sync: bool) {
        debug_assert!(edit.len() <= EDIT_BYTES_MAX, "checked where the edit entered");
        let has_room = self.frames.last().is_some_and(|(at, _)| {
            let payload = self.bytes.len() - at - FRAME_HEADER_BYTES;
            payload + ENTRY_OVERHEAD_BYTES + origin_bytes(origin.len()) + edit.len()
                <= FRAME_PAYLOAD_BYTES_MAX
        });
        if !has_room {
            self.frames.push((self.bytes.len(), first_seq.0));
            self.next_entry_seq = first_seq.0;
            reserve_header(&mut self.bytes);
            self.bytes.push(KIND_EDITS);
            // Room for the time, which [`Self::state_time`] fills in.
            self.bytes.extend_from_slice(&[0; size_of::<u64>()]);
        }
        put_entry(&mut self.bytes, first_seq.0 - self.next_entry_seq, origin, edit);
        self.next_entry_seq = first_seq.0 + u64::from(rows);
        self.edits += 1;
        self.reserved += cost_of(origin, edit);
        self.sync |= sync;
    }

    /// Counts an edit that is not logged.
    pub(super) fn push_unlogged(&mut self) {
        self.edits += 1;
    }

    /// Requests a sync before the group is published.
    pub(super) fn want_sync(&mut self) {
        self.sync = true;
    }

    /// Whether a sync was asked for.
    pub(super) fn wants_sync(&self) -> bool {
        self.sync
    }

    /// Edits in it.
    pub(super) fn edits(&self) -> usize {
        self.edits
    }

    /// Bytes reserved for it: at least [`Self::len`].
    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Bytes to write.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes to write, once the headers are filled in.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes into each frame that it is written now, at `time_ms` milliseconds since 1970.
    pub(super) fn state_time(&mut self, time_ms: u64) {
        for (start, _) in &self.frames {
            let at = start + FRAME_HEADER_BYTES + 1;
            self.bytes[at..at + size_of::<u64>()].copy_from_slice(&time_ms.to_le_bytes());
        }
    }

    /// Calls `fill` for each frame (room for the header, payload) with its first sequence id, to
    /// fill in the header.
    pub(super) fn for_each_frame(&mut self, mut fill: impl FnMut(&mut [u8], u64)) {
        for (index, (start, first_seq)) in self.frames.iter().enumerate() {
            let end = self.frames.get(index + 1).map_or(self.bytes.len(), |(at, _)| *at);
            fill(&mut self.bytes[*start..end], *first_seq);
        }
    }

    /// Empties it for the next group.
    pub(super) fn clear(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.frames.clear();
        self.edits = 0;
        self.reserved = 0;
        self.sync = false;
    }
}
