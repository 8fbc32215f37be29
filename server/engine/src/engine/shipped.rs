//! The log of another database as files: for a standby that follows what a primary ships to a store, without
//! the primary.
//!
//! The owner copies segments into a directory, in their order, and hands over the turns.
//! [`ShippedFeed::read`] makes pieces of both, as a primary does ([`follow`](super::follow)), and
//! [`Engine::apply_piece`](super::Engine) applies them.
//!
//! 1. [`ShippedFeed::open`] takes the state of a backup whose position is not behind the place: its regions
//!    and the turns name the tables of all rows from the place on.
//! 2. [`ShippedFeed::extend`] says how far the files reach, after they were written.
//! 3. [`ShippedFeed::read`] makes the next piece. A piece that was not applied is read again after
//!    [`ShippedFeed::seek`].
//!
//! Assigned time is not shipped. As at a start, timestamps up to a margin behind the time of the write are
//! taken to be assigned, and later ones to be those of clients.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::{TailedEdit, Turn};
use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::id::{RegionId, SeqId};
use crate::manifest::{ManifestEdit, decode_edit};
use crate::record::NO_REGION;
use crate::recovery::{Restore, STAMP_SLACK_MS};
use crate::schema::TableName;
use crate::wal::{LogEnd, LoggedEdit, Shipped, Tail};

use super::follow::{Items, Place};

/// Another database's log and turns, from a place on.
#[derive(Debug)]
pub struct ShippedFeed {
    tail: Tail,
    /// The last turn that was read.
    turn: u64,
    /// Tables of all regions, those that are gone among them: ids are never given out again.
    regions: HashMap<RegionId, Arc<TableName>>,
    /// Turns behind the applied place, oldest first.
    turns: Vec<Turn>,
    /// All rows before this turn are in the files.
    known_turn: u64,
    /// Timestamps of before were assigned.
    marked_ms: u64,
}

impl ShippedFeed {
    /// The log whose segments are in `dir`, from `place` on. `base` is the state of a backup that has no row
    /// behind the place. The files reach up to `end`.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, base: &Restore, place: Place, end: LogEnd) -> Self {
        let shipped = Shipped {
            vfs,
            dir: dir.join("wal"),
            end,
        };
        let regions = base.regions();
        Self {
            tail: Tail::of_shipped(shipped, place.position),
            turn: place.turn,
            regions: regions.map(|(id, table)| (id, Arc::new(table.clone()))).collect(),
            turns: Vec::new(),
            known_turn: 0,
            marked_ms: base.timestamp_ms(),
        }
    }

    /// The place up to which pieces were read.
    pub fn place(&self) -> Place {
        Place {
            position: self.tail.position(),
            turn: self.turn,
        }
    }

    /// Reads on from another place, and forgets what is needed before it only.
    pub fn seek(&mut self, place: Place) -> Result<()> {
        self.turns.retain(|turn| turn.number > place.turn);
        if self.place() != place {
            self.turn = place.turn;
            self.tail.seek(place.position);
        }
        self.tail.remove_read()
    }

    /// Takes over turns, whose numbers follow those of before.
    pub fn add_turns(&mut self, turns: Vec<Turn>) -> Result<()> {
        for turn in &turns {
            let at = Path::new("a turn of the log");
            let edit = turn.edit.as_deref().unwrap_or_default();
            let edit = decode_edit(edit).map_err(|what| Error::corrupt(at, 0, what))?;
            self.note_regions(&edit);
        }
        self.turns.extend(turns);
        Ok(())
    }

    /// Moves the end of what is there. The rows before the turn `known_turn` are there.
    /// REQUIRES: the bytes up to the end are written.
    pub fn extend(&mut self, end: LogEnd, known_turn: u64) {
        self.tail.set_end(end);
        self.known_turn = known_turn;
    }

    fn note_regions(&mut self, edit: &ManifestEdit) {
        let added = match edit {
            ManifestEdit::CreateTable { regions, .. } | ManifestEdit::TruncateTable(_, regions) => {
                &regions[..]
            }
            ManifestEdit::ReplaceRegions { added, .. } => &added[..],
            ManifestEdit::TruncateRegion { added, .. } => std::slice::from_ref(added),
            _ => return,
        };
        for region in added {
            self.regions.insert(region.id, Arc::new(region.table.clone()));
        }
    }

    /// Appends the next piece to `out`: edits of about `bytes_max` bytes of the log, and the turns among
    /// them. Returns its end, and whether that is the end of what is there.
    pub fn read(&mut self, bytes_max: u64, out: &mut Vec<u8>) -> Result<(Place, bool)> {
        let mut items = Items::default();
        let (regions, mut assigned_ms) = (&self.regions, self.marked_ms);
        let is_end = self.tail.read(bytes_max.max(1), &mut |edit| {
            if edit.region() != NO_REGION {
                assigned_ms = assigned_ms.max(assigned(&edit, self.marked_ms));
                let table = regions.get(&edit.region()).cloned();
                items.add(&TailedEdit { table, edit });
            }
            Ok(())
        })?;
        let end = self.place();
        let known = if is_end { self.known_turn } else { 0 };
        let due = self.turns.iter().skip_while(|turn| turn.number <= end.turn);
        let due = due.take_while(|turn| is_due(turn, end.position, known));
        let place = items.put_piece(assigned_ms, due, end, out);
        self.turn = place.turn;
        Ok((place, is_end))
    }
}

/// True if a turn precedes the row `next`.
fn is_due(turn: &Turn, next: SeqId, known: u64) -> bool {
    turn.position < next || turn.number <= known
}

/// The greatest timestamp of an edit that its server assigned, and not a client; 0 without one.
fn assigned(edit: &LoggedEdit<'_>, marked_ms: u64) -> u64 {
    let written_ms = edit.write_time_ms().unwrap_or_default();
    let limit = written_ms.max(marked_ms).saturating_add(STAMP_SLACK_MS);
    let times = edit
        .cells()
        .filter_map(|(_, cell)| u64::try_from(cell.key.timestamp()).ok());
    times.filter(|time| *time <= limit).max().unwrap_or_default()
}
