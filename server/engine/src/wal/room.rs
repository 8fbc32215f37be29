//! The space in which edits may still be logged before the disk has to be asked for more.
//!
//! An edit that has joined a group cannot be refused any more: its cells are being applied to the
//! memstores. So its space is reserved before it joins. It is preallocated in two places: the
//! *rest* of the open segment, and the *spare*, a file that will be the next segment (`spare`). The
//! promised bytes, those that are reserved or in the open group, never exceed the larger of the
//! two.
//!
//! That suffices however the promised edits are grouped. If they all fit into the rest, they go
//! there. Otherwise they all fit into the spare: groups go into the rest until one does not fit,
//! and that one and all later ones find room in the spare, which is then the open segment.
//!
//! Writers take from the room, without a lock; the leader, which alone changes rest and spare,
//! returns the unused part of a group's reservation and adds the space of a new spare. An edit is
//! counted with its maximum size in the log.

use crossbeam_utils::CachePadded;

use crate::Error;
use crate::id::Uuid;
use crate::record::FRAME_HEADER_BYTES;
use crate::record::edit::{ENTRY_OVERHEAD_BYTES, origin_bytes};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicI64, Ordering};

use super::segment::EDITS_HEAD_BYTES;

/// Maximum bytes of an edit in the log besides its own: its entry's head, and a frame with the
/// frame's kind and time.
pub(super) const OVERHEAD_BYTES: u64 = (ENTRY_OVERHEAD_BYTES + FRAME_HEADER_BYTES + EDITS_HEAD_BYTES) as u64;

/// The most that an edit of that length, which has passed these clusters, takes in the log.
pub(super) fn cost_of(origin: &[Uuid], edit: &[u8]) -> u64 {
    (origin_bytes(origin.len()) + edit.len()) as u64 + OVERHEAD_BYTES
}

/// The room of one log. All methods may be called from any thread.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The larger of rest and spare, less the promised bytes.
    free_bytes: CachePadded<AtomicI64>,
    /// Why there is no spare, as long as there is none.
    lacks: Mutex<Option<Error>>,
}

impl Room {
    /// Promises this many bytes; false if they are not free.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let bytes = as_change(bytes);
        let take = |free: i64| free.checked_sub(bytes).filter(|left| *left >= 0);
        self.free_bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
    }

    /// Bytes that are lacking for [`Self::take`].
    pub(super) fn shortfall(&self, bytes: u64) -> u64 {
        let free = self.free_bytes.load(Ordering::Acquire);
        u64::try_from(as_change(bytes).saturating_sub(free)).unwrap_or(0)
    }

    /// Takes back a promise, or its part that was not needed.
    pub(super) fn give_back(&self, bytes: u64) {
        self.free_bytes.fetch_add(as_change(bytes), Ordering::AcqRel);
    }

    /// Adjusts the free bytes: the larger of rest and spare was `before` and is `after`, and `kept`
    /// bytes of promises were used in between.
    pub(super) fn changed(&self, before: u64, after: u64, kept: u64) {
        let change = as_change(after)
            .saturating_sub(as_change(before))
            .saturating_add(as_change(kept));
        self.free_bytes.fetch_add(change, Ordering::AcqRel);
    }

    /// Sets the reason why there is no spare; `None`: there is one.
    pub(super) fn set_lacks(&self, why: Option<Error>) {
        *self.lacks.lock() = why;
    }

    /// Why there is no spare, if there is none.
    pub(super) fn lacks(&self) -> Option<Error> {
        self.lacks.lock().clone()
    }
}

/// Bytes as a change of the counter. No disk is larger than that.
fn as_change(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Room for edits to come. The unused part is returned when this is dropped.
#[derive(Debug)]
#[must_use = "the room is given back when this is dropped"]
pub struct Reserved<'a> {
    room: &'a Room,
    bytes: u64,
}

impl<'a> Reserved<'a> {
    /// Takes `bytes` from the room, if they are there.
    pub(super) fn take(room: &'a Room, bytes: u64) -> Option<Self> {
        room.take(bytes).then(|| Self { room, bytes })
    }

    /// Hands over the room for an edit that joins a group.
    /// REQUIRES: there is enough left.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .expect("a reservation counts every edit with its maximum size");
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.room.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: promises never exceed the room, and unused promises can be made again.
    #[test]
    fn promises_are_never_more_than_there_is() {
        let room = Room::default();
        room.changed(0, 100, 0);
        let mut first = Reserved::take(&room, 60).unwrap();
        assert!(Reserved::take(&room, 41).is_none());
        assert_eq!((room.shortfall(41), room.shortfall(40)), (1, 0));
        let second = Reserved::take(&room, 40).unwrap();
        drop(second);
        // An edit of at most 50 bytes joins a group and takes 45 of them in the open segment.
        first.spend(50);
        drop(first);
        assert_eq!(room.shortfall(50), 0);
        assert_eq!(room.shortfall(51), 1);
        room.changed(100, 55, 50);
        assert_eq!(room.shortfall(56), 1);
        assert_eq!(room.shortfall(55), 0);
        assert!(!room.take(u64::MAX));
    }
}
