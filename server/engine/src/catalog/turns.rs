//! Turns: changes of what the database consists of that the log does not show (schema, splits, merges,
//! snapshots, loaded files). They are counted, durably, and on request kept for copies that follow the log.
//!
//! A copy that is a set of files, a backup, has the files of a pin, the log and the turns since: it becomes
//! the database of any later position. [`Restore::follow`](crate::engine::Restore::follow) applies the turns
//! to the pin's state, and the log goes to the regions that the copy has. Flushes and compactions are no
//! turns: the copy has the pin's files and the log's rows. A turn that brings files of its own (a bulk load,
//! a clone or restore of a snapshot), or by which rows of the log are gone that a later one could bring back
//! (a family is dropped, one region is truncated), ends such a copy: a new pin is needed.
//!
//! A copy that is a running database, a standby, makes most turns by itself, each at its place in the log
//! ([`follow`](crate::engine)).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::id::SeqId;
use crate::manifest::{ManifestEdit, ManifestState, encode_edit};

/// Most bytes of edits that are kept.
const KEPT_BYTES: usize = 16 << 20;

/// Most turns that are kept.
const KEPT_TURNS: usize = 4096;

/// A change that the log does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number since the database was created, from 1.
    pub number: u64,
    /// The last sequence id that was given out before it: it lies between this row and the next.
    pub position: SeqId,
    /// The wall clock's milliseconds.
    pub wall_ms: u64,
    /// The manifest's edit, encoded; `None` if it was too large to be kept.
    pub edit: Option<Vec<u8>>,
    /// Whether a copy that is a set of files can follow it.
    pub files_follow: bool,
}

/// Turns of this database.
#[derive(Debug)]
pub(super) struct Turns {
    count: AtomicU64,
    kept: Mutex<Kept>,
}

/// The last turns.
#[derive(Debug, Default)]
struct Kept {
    /// Whether turns are kept ([`Turns::keep`]).
    wanted: bool,
    turns: VecDeque<Turn>,
    /// Bytes of their edits.
    bytes: usize,
}

impl Turns {
    /// Those of a database that has had `count`.
    pub(super) fn new(count: u64) -> Self {
        Self {
            count: AtomicU64::new(count),
            kept: Mutex::default(),
        }
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Keeps turns from now on.
    pub(super) fn keep(&self) {
        self.kept.lock().wanted = true;
    }

    /// The turns behind that one, oldest first; `None` if they are not kept.
    pub(super) fn after(&self, number: u64) -> Option<Vec<Turn>> {
        let kept = self.kept.lock();
        let count = self.count();
        let wanted = usize::try_from(count.checked_sub(number)?).ok()?;
        let from = kept.turns.len().checked_sub(wanted)?;
        Some(kept.turns.range(from..).cloned().collect())
    }

    /// Notes a durable edit, if it is a turn. `files_follow` is the answer of [`files_follow`] before it was
    /// applied.
    /// REQUIRES: the manifest's lock is held, so that turns have the order of edits.
    pub(super) fn note(&self, edit: &ManifestEdit, files_follow: bool, position: SeqId, wall_ms: u64) {
        if !edit.is_turn() {
            return;
        }
        let mut kept = self.kept.lock();
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if !kept.wanted {
            return;
        }
        let edit = Some(encode_edit(edit)).filter(|edit| edit.len() <= KEPT_BYTES);
        kept.bytes += edit.as_ref().map_or(0, Vec::len);
        kept.turns.push_back(Turn {
            number,
            position,
            wall_ms,
            edit,
            files_follow,
        });
        while kept.bytes > KEPT_BYTES || kept.turns.len() > KEPT_TURNS {
            let Some(oldest) = kept.turns.pop_front() else {
                break;
            };
            kept.bytes -= oldest.edit.map_or(0, |edit| edit.len());
        }
    }
}

/// Whether files of `state` and all rows of the log can be brought over the edit by the edit alone.
pub(super) fn files_follow(state: &ManifestState, edit: &ManifestEdit) -> bool {
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
