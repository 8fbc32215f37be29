//! Turns: changes of what the database consists of that the log does not show (schema, splits, merges,
//! snapshots, loaded files). They are counted, and on request kept for a copy that follows the log.
//!
//! A copy of a pin that has the log and the turns since becomes the database of any later position:
//! [`Restore::follow`](crate::engine::Restore::follow) applies the turns to the pin's state, and the log goes to the
//! regions that the copy has. Flushes and compactions are no turns: the copy has the pin's files and the log's rows.
//!
//! A turn that brings files of its own (a bulk load, a clone or restore of a snapshot), or by which rows of the
//! log are gone that a later one could bring back (a family is dropped, one region is truncated), cannot be followed.
//! It is kept without its edit: the copy ends there, and a new pin is needed.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::id::SeqId;
use crate::manifest::{ManifestEdit, ManifestState, encode_edit};

/// Most bytes of edits that are kept; from there on turns are kept without their edits.
const KEPT_BYTES: usize = 16 << 20;

/// A change that the log does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number since the start, from 1.
    pub number: u64,
    /// The last sequence id that was given out before it: it lies between this row and the next.
    pub position: SeqId,
    /// The wall clock's milliseconds.
    pub wall_ms: u64,
    /// The manifest's edit, encoded; `None` if a copy cannot follow it.
    pub edit: Option<Vec<u8>>,
}

/// Turns since the start.
#[derive(Debug, Default)]
pub(super) struct Turns {
    count: AtomicU64,
    /// Those that nobody has taken; `None` until somebody asks for them.
    kept: Mutex<Option<Vec<Turn>>>,
}

impl Turns {
    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Keeps turns from now on. Those that are kept already stay.
    pub(super) fn keep(&self) {
        self.kept.lock().get_or_insert_default();
    }

    /// Takes the kept turns, oldest first.
    pub(super) fn take(&self) -> Vec<Turn> {
        self.kept.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes a durable edit, if it is a turn. `can_follow` is the answer of [`can_follow`] before it was applied.
    /// REQUIRES: the manifest's lock is held, so that turns have the order of edits.
    pub(super) fn note(&self, edit: &ManifestEdit, can_follow: bool, position: SeqId, wall_ms: u64) {
        if !edit.is_turn() {
            return;
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut kept = self.kept.lock();
        let Some(kept) = kept.as_mut() else { return };
        let bytes: usize = kept
            .iter()
            .filter_map(|turn| turn.edit.as_ref())
            .map(Vec::len)
            .sum();
        let edit = Some(edit)
            .filter(|_| can_follow)
            .map(encode_edit)
            .filter(|edit| bytes + edit.len() <= KEPT_BYTES);
        kept.push(Turn {
            number,
            position,
            wall_ms,
            edit,
        });
    }
}

/// Whether a copy of `state` that has all rows of the log can be brought over the edit by the edit alone.
pub(super) fn can_follow(state: &ManifestState, edit: &ManifestEdit) -> bool {
    match edit {
        ManifestEdit::Flush { .. }
        | ManifestEdit::CloneTable { .. }
        | ManifestEdit::RestoreTable { .. }
        | ManifestEdit::TruncateRegion { .. } => false,
        ManifestEdit::AlterTable(changed) => state.tables.get(&changed.name).is_some_and(|table| {
            let families = &table.descriptor.families;
            families
                .iter()
                .all(|family| changed.family(&family.name).is_some())
        }),
        _ => true,
    }
}
