//! A database that follows another one while both run: a standby.
//!
//! The leader ([`Feed`]) reads its log from a position on, with the turns at their places, and encodes both
//! as a *piece*. The follower ([`Engine::apply_piece`]) writes the rows as it writes those of a replication
//! source, with their timestamps, types, tags, clusters and nonces, and makes the turns itself: a table is
//! created, altered, split there at the same place of the log as here.
//!
//! ```text
//! piece = version u8 (2), assigned time in ms u64 le, item*, end, CRC-32C of all before u32 le
//! item  = 1, namespace bytes, qualifier bytes, cluster count v, uuid*, first sequence id v, edit bytes
//!       | 2, position v, turn v, edit bytes
//! end   = 0, position v, turn v
//! ```
//!
//! Numbers `v` are LEB128 varints, `bytes` a varint length and the bytes. An edit of an item 1 is that of the
//! log (`record::edit`), that of an item 2 the manifest's.
//!
//! Sequence ids of the follower are its own. Its *place* is a position in the leader's log, and the last turn
//! that it has made.
//!
//! - Its owner stores the place now and then, and before and after each turn. A turn that is made again finds
//!   that it is made.
//! - The follower's log has the position, too, as a mark in the edit of the rows before it (`nonces`): what
//!   is durable is known, and no row is applied twice. Applied again, a row that was overwritten or deleted
//!   later would be seen until that comes again; never, if the leader is lost meanwhile.
//! - Rows of different regions are not written together, so the follower has whole edits of the leader in
//!   their order, whenever it dies.
//!
//! Assigned time of the follower is never before the leader's: it is noted, and marked on disk where recovery
//! needs that, before the rows are written. A follower that becomes a leader passes it, so that its first
//! write of a row is newer than all that the row has, whatever the two clocks show.
//!
//! A turn whose files only the leader has (a bulk load, a clone or restore of a snapshot) cannot be made: the
//! follower needs a new copy ([`Unfollowed`]). Splits and merges are made where regions fit, and left out
//! where not: rows go to the region that has them.

use crate::catalog::{LogTail, TailedEdit, Turn};
use crate::checksum::crc32c;
use crate::clock::Timestamps;
use crate::codec::{Cursor, put_prefixed, put_varint};
use crate::error::{Error, Result};
use crate::id::{Nonce, Origin, RegionId, SeqId, Uuid};
use crate::manifest::{ManifestEdit, RegionMeta, decode_edit};
use crate::op::{ReplicatedCell, ReplicatedRow};
use crate::record::{EditReader, Mark};
use crate::schema::{TableDescriptor, TableName, TableState};
use crate::seeded;
use crate::wal::Commit;

use smallvec::SmallVec;

use super::Engine;
use super::replicate::{self, Source};

/// Version of a piece.
const PIECE_VERSION: u8 = 2;

/// Kinds of items.
const END: u8 = 0;
const EDIT: u8 = 1;
const TURN: u8 = 2;

/// Bytes of rows that are written together.
const BATCH_BYTES: usize = 1 << 20;

/// How far a follower has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The leader's next row.
    pub position: SeqId,
    /// The last turn that was made.
    pub turn: u64,
}

/// A leader's log and turns, from a place on.
#[derive(Debug)]
pub struct Feed {
    tail: LogTail,
    turn: u64,
}

/// Outcome of [`Engine::read_feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// A piece that ends there; whether that was all there is.
    Piece(Place, bool),
    /// The turns behind the place are not kept: the follower needs a new copy.
    TurnsGone,
}

/// A turn that a follower cannot make, or rows that it cannot place: it needs a new copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfollowed(pub String);

/// Outcome of [`Engine::apply_piece`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Rows that were written.
    pub rows: u64,
    /// Cells that were left out, because their table or family is gone at that place: a turn of the leader
    /// has removed them.
    pub gone: u64,
    /// Turns that were made.
    pub turns: u64,
    /// Set when the rest needs a new copy.
    pub unfollowed: Option<Unfollowed>,
}

impl Feed {
    /// Whether there is something behind the place. Takes no lock but that of the turns.
    pub fn has_news(&self, engine: &Engine) -> bool {
        self.tail.has_news() || engine.catalog.noted_turns() > self.turn
    }
}

impl Engine {
    /// Keeps turns for followers from now on.
    #[doc(hidden)]
    pub fn keep_turns(&self) -> Result<()> {
        self.open_catalog()?.keep_turns();
        Ok(())
    }

    /// Where this database is: behind its last visible row and its last noted turn. Takes no lock.
    #[doc(hidden)]
    pub fn place(&self) -> Place {
        Place {
            position: self.log_position(),
            turn: self.catalog.noted_turns(),
        }
    }

    /// Number of turns of this database.
    #[doc(hidden)]
    pub fn turns(&self) -> Result<u64> {
        Ok(self.open_catalog()?.turn_count())
    }

    /// This database's log and turns from a place on.
    #[doc(hidden)]
    pub fn feed(&self, from: Place) -> Result<Feed> {
        Ok(Feed {
            tail: self.read_log(from.position)?,
            turn: from.turn,
        })
    }

    /// Begins to be a copy, at this position of the leader's log: marks that came with the files say nothing
    /// of it. Durable. Must be called once, before the first piece is applied.
    #[doc(hidden)]
    pub fn begin_copy(&self, copy: u16, next: SeqId) -> Result<()> {
        self.open_catalog()?.log_mark(Mark { copy, next })
    }

    /// Makes the database follow another one, as the copy of this number, or no more: meanwhile it splits,
    /// merges and removes expired snapshots only as the other one does. Returns the position that the copy
    /// has reached, 0 if the log does not say.
    #[doc(hidden)]
    pub fn set_follows(&self, copy: Option<u16>) -> Result<SeqId> {
        let catalog = self.open_catalog()?;
        let shared = catalog.shared();
        let mark = shared.nonces.mark().filter(|mark| Some(mark.copy) == copy);
        if mark.is_none() || seeded::is_on("standby-forgets-its-mark") {
            shared.nonces.forget_mark();
        }
        if copy.is_none() && !seeded::is_on("standby-times-go-back") {
            // No row lock has recorded the times of the rows that were followed.
            shared.timestamps.pass_rows();
        }
        catalog.set_follows(copy);
        Ok(shared.nonces.mark().map_or(SeqId::ZERO, |mark| mark.next))
    }

    /// Appends the next piece of a feed to `out`: edits of about `bytes_max` bytes of the log, and the turns
    /// among them. All of it is durable here.
    #[doc(hidden)]
    pub fn read_feed(&self, feed: &mut Feed, bytes_max: u64, out: &mut Vec<u8>) -> Result<Fed> {
        let mut items = Items::default();
        let is_end = feed.tail.read(bytes_max, &mut |edit| {
            items.add(&edit);
            Ok(())
        })?;
        let next = feed.tail.position();
        // Read after the log: a turn is noted before rows that need it are written.
        let Some(turns) = self.open_catalog()?.turns_after(feed.turn) else {
            return Ok(Fed::TurnsGone);
        };
        // Read after the log, too: not before the timestamp of any row in the piece.
        let assigned_ms = self.catalog.shared().timestamps.greatest();
        let due = turns.iter().take_while(|turn| turn.position < next);
        let end = Place {
            position: next,
            turn: feed.turn,
        };
        let place = items.put_piece(assigned_ms, due, end, out);
        feed.turn = place.turn;
        Ok(Fed::Piece(place, is_end))
    }

    /// Applies a piece of a leader, and moves `place` behind all that is durable here, also when it fails;
    /// the rest is then to be asked for again. `store` is called with the place before and after each turn,
    /// and must make it durable.
    #[doc(hidden)]
    pub fn apply_piece(
        &self,
        piece: &[u8],
        place: &mut Place,
        store: &mut dyn FnMut(Place) -> Result<()>,
    ) -> Result<Applied> {
        let malformed = |what: &str| Error::corrupt("a piece of the leader's log", 0, what);
        let (content, checksum) = piece
            .split_last_chunk::<4>()
            .ok_or_else(|| malformed("it is too short"))?;
        if crc32c(content) != u32::from_le_bytes(*checksum) {
            return Err(malformed("its checksum is wrong"));
        }
        let mut cursor = Cursor::new(content);
        match cursor.array::<1>() {
            Some([PIECE_VERSION]) => {}
            _ => return Err(malformed("it is of another release")),
        }
        let assigned_ms = cursor.array().map(u64::from_le_bytes);
        self.note_time(assigned_ms.ok_or_else(|| malformed("it ends early"))?)?;
        let mut applied = Applied::default();
        let mut writing = Writing {
            copy: self.catalog.follows().unwrap_or_default(),
            ..Writing::default()
        };
        loop {
            match item(&mut cursor).ok_or_else(|| malformed("an item is malformed"))? {
                Item::Edit {
                    table,
                    origin,
                    first,
                    edit,
                } => {
                    let read = EditReader::new(edit, SeqId(first)).map_err(malformed)?;
                    let next = read.next_seq();
                    if next <= place.position {
                        continue;
                    }
                    writing.add(self, table, origin, read, &mut applied)?;
                }
                Item::Turn { turn, edit } => {
                    writing.flush(self, &mut applied, place)?;
                    if turn <= place.turn {
                        continue;
                    }
                    store(*place)?;
                    if edit.is_empty() {
                        applied.unfollowed = Some(Unfollowed("a change is too large to be sent".into()));
                        return Ok(applied);
                    }
                    let edit = decode_edit(edit).map_err(|what| malformed(&what))?;
                    if let Some(unfollowed) = self.make(&edit)? {
                        applied.unfollowed = Some(unfollowed);
                        return Ok(applied);
                    }
                    place.turn = turn;
                    applied.turns += 1;
                    store(*place)?;
                }
                Item::End { position } => {
                    writing.flush(self, &mut applied, place)?;
                    place.position = place.position.max(SeqId(position));
                    return Ok(applied);
                }
            }
        }
    }

    /// Records the leader's assigned time. Recovery would take timestamps far beyond the mark on disk for
    /// those of clients.
    fn note_time(&self, assigned_ms: u64) -> Result<()> {
        let assigned_ms = i64::try_from(assigned_ms).unwrap_or(i64::MAX);
        let timestamps = &self.catalog.shared().timestamps;
        timestamps.note_row(assigned_ms);
        if timestamps.is_beyond_mark(assigned_ms) {
            self.open_catalog()?.keep_high_water(Timestamps::lags_mark)?;
        }
        Ok(())
    }

    /// Makes a turn, unless it is made. Returns why it cannot be made.
    fn make(&self, edit: &ManifestEdit) -> Result<Option<Unfollowed>> {
        let is_there = |table: &TableName| self.describe_table(table).is_ok();
        match edit {
            ManifestEdit::PutNamespace(namespace) => {
                if !self.namespaces().contains(namespace) {
                    self.open_catalog()?.follow_namespace(namespace.clone())?;
                }
            }
            ManifestEdit::DropNamespace(name) => {
                if self.namespaces().iter().any(|known| known.name == *name) {
                    self.drop_namespace(name)?;
                }
            }
            ManifestEdit::CreateTable { descriptor, regions } => {
                if !is_there(&descriptor.name) {
                    self.create_table(descriptor.clone(), splits_of(regions))?;
                }
            }
            ManifestEdit::AlterTable(descriptor) => self.alter_if_other(descriptor)?,
            ManifestEdit::SetTableState(table, state) => self.set_state(table, *state)?,
            ManifestEdit::DropTable(table) => {
                if is_there(table) {
                    self.set_state(table, TableState::Disabled)?;
                    self.drop_table(table)?;
                }
            }
            ManifestEdit::TruncateTable(table, regions) => {
                self.set_state(table, TableState::Disabled)?;
                self.truncate_table(table, regions.len() > 1)?;
            }
            ManifestEdit::ReplaceRegions { removed, added } => self.replace(removed.len(), added),
            ManifestEdit::TruncateRegion { added, .. } => {
                let regions = self.regions(&added.table)?;
                let same = regions
                    .iter()
                    .find(|region| region.start == added.start && region.end == added.end);
                let Some(region) = same else {
                    let what = format!(
                        "a region of {} was truncated that has other bounds here",
                        added.table
                    );
                    return Ok(Some(Unfollowed(what)));
                };
                self.truncate_region(region.id)?;
            }
            ManifestEdit::CreateSnapshot(snapshot) => {
                let known = self.snapshots();
                if !known.iter().any(|known| known.name == snapshot.name) {
                    let table = &snapshot.descriptor.name;
                    self.snapshot(table, &snapshot.name, true, snapshot.ttl_seconds)?;
                }
            }
            ManifestEdit::DropSnapshot(name) => {
                if self.snapshots().iter().any(|known| known.name == *name) {
                    self.delete_snapshot(name)?;
                }
            }
            ManifestEdit::Flush { .. } => {
                return Ok(Some(Unfollowed("store files were loaded".into())));
            }
            ManifestEdit::CloneTable { descriptor, .. } => {
                let what = format!("{} was made of a snapshot", descriptor.name);
                return Ok(Some(Unfollowed(what)));
            }
            ManifestEdit::RestoreTable { descriptor, .. } => {
                let what = format!("{} became a snapshot again", descriptor.name);
                return Ok(Some(Unfollowed(what)));
            }
            ManifestEdit::Compact { .. } | ManifestEdit::HighWater { .. } | ManifestEdit::Log { .. } => {}
        }
        Ok(None)
    }

    fn alter_if_other(&self, descriptor: &TableDescriptor) -> Result<()> {
        let (known, _) = self.describe_table(&descriptor.name)?;
        if *known == *descriptor {
            return Ok(());
        }
        self.alter_table(descriptor.clone())
    }

    fn set_state(&self, table: &TableName, state: TableState) -> Result<()> {
        let (_, known) = self.describe_table(table)?;
        match (known, state) {
            (TableState::Enabled, TableState::Disabled) => self.disable_table(table),
            (TableState::Disabled, TableState::Enabled) => self.enable_table(table),
            _ => Ok(()),
        }
    }

    /// Splits or merges regions as the leader has, where they fit. The rows do not depend on it.
    fn replace(&self, removed: usize, added: &[RegionMeta]) {
        let Some(table) = added.first().map(|region| &region.table) else {
            return;
        };
        let Ok(regions) = self.regions(table) else {
            return;
        };
        let done = if let ([_, right], 1) = (added, removed) {
            let whole = regions.iter().find(|region| region.contains(&right.start));
            match whole {
                Some(whole) if whole.start != right.start => {
                    self.split_region(whole.id, Some(&right.start)).map(drop)
                }
                _ => Ok(()),
            }
        } else if let [merged] = added {
            let within = |region: &&crate::region::RegionInfo| {
                region.start >= merged.start
                    && (merged.end.is_empty() || !region.end.is_empty() && region.end <= merged.end)
            };
            let ids: Vec<_> = regions.iter().filter(within).map(|region| region.id).collect();
            match ids.len() {
                0 | 1 => Ok(()),
                _ => self.merge_regions(&ids).map(drop),
            }
        } else {
            Ok(())
        };
        if let Err(error) = done {
            let what = format!("a change of regions of {table} was not followed: {error}");
            self.catalog.shared().listener.notice(&what);
        }
    }
}

/// The region of all rows; `None` if there are several, or no row.
fn region_of(engine: &Engine, table: &TableName, rows: &[ReplicatedRow<'_>]) -> Result<Option<RegionId>> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let (region, _) = engine.locate(table, first.row)?;
    let is_one = rows.iter().all(|row| region.contains(row.row));
    Ok(is_one.then_some(region.id))
}

/// The rows of regions begin there, but the first.
fn splits_of(regions: &[RegionMeta]) -> Vec<Vec<u8>> {
    let starts = regions.iter().map(|region| region.start.clone());
    starts.filter(|start| !start.is_empty()).collect()
}

/// Encoded items of edits, with their places.
#[derive(Debug, Default)]
pub(super) struct Items {
    bytes: Vec<u8>,
    /// First sequence id and end of each.
    ends: Vec<(SeqId, usize)>,
    /// Items and bytes that were put out.
    out: (usize, usize),
}

impl Items {
    pub(super) fn add(&mut self, tailed: &TailedEdit<'_>) {
        // Rows of a table that is not known any more are gone with it.
        let Some(table) = &tailed.table else { return };
        let bytes = &mut self.bytes;
        bytes.push(EDIT);
        put_prefixed(bytes, table.namespace().as_bytes());
        put_prefixed(bytes, table.qualifier().as_bytes());
        let origin = tailed.edit.origin();
        let clusters = origin.clusters();
        put_varint(bytes, clusters.len() as u64);
        for cluster in clusters {
            bytes.extend_from_slice(&cluster.0);
        }
        put_varint(bytes, tailed.edit.first_seq().0);
        put_prefixed(bytes, tailed.edit.bytes());
        self.ends.push((tailed.edit.first_seq(), self.bytes.len()));
    }

    /// Puts out the items up to a position.
    fn put_until(&mut self, position: SeqId, out: &mut Vec<u8>) {
        let (items, begin) = self.out;
        let before = self.ends[items..].partition_point(|(first, _)| *first <= position);
        let items = items + before;
        let end = match items.checked_sub(1) {
            Some(last) => self.ends[last].1,
            None => 0,
        };
        out.extend_from_slice(&self.bytes[begin..end]);
        self.out = (items, end);
    }

    /// Appends a piece of the items, with the turns at their places, that ends at `end`. Returns the end,
    /// behind the turns.
    pub(super) fn put_piece<'a>(
        mut self,
        assigned_ms: u64,
        turns: impl Iterator<Item = &'a Turn>,
        mut end: Place,
        out: &mut Vec<u8>,
    ) -> Place {
        let begin = out.len();
        out.push(PIECE_VERSION);
        out.extend_from_slice(&assigned_ms.to_le_bytes());
        for turn in turns {
            if !seeded::is_on("standby-turns-before-rows") {
                self.put_until(turn.position, out);
            }
            end.turn = turn.number;
            put_turn(turn, out);
        }
        self.put_rest(out);
        out.push(END);
        put_varint(out, end.position.0);
        put_varint(out, end.turn);
        let checksum = crc32c(&out[begin..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        end
    }

    fn put_rest(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[self.out.1..]);
        self.out = (self.ends.len(), self.bytes.len());
    }
}

/// A turn whose edit was too large to be kept has an empty edit.
fn put_turn(turn: &Turn, out: &mut Vec<u8>) {
    out.push(TURN);
    put_varint(out, turn.position.0);
    put_varint(out, turn.number);
    put_prefixed(out, turn.edit.as_deref().unwrap_or_default());
}

/// An item, read back.
enum Item<'a> {
    Edit {
        table: TableName,
        origin: Vec<Uuid>,
        first: u64,
        edit: &'a [u8],
    },
    Turn {
        turn: u64,
        edit: &'a [u8],
    },
    End {
        position: u64,
    },
}

fn item<'a>(cursor: &mut Cursor<'a>) -> Option<Item<'a>> {
    Some(match cursor.array::<1>()? {
        [EDIT] => {
            let (namespace, qualifier) = (cursor.prefixed()?, cursor.prefixed()?);
            let table = TableName::new(
                std::str::from_utf8(namespace).ok()?,
                std::str::from_utf8(qualifier).ok()?,
            )
            .ok()?;
            let clusters = usize::try_from(cursor.varint()?).ok()?;
            let origin = (0..clusters).map(|_| cursor.array().map(Uuid));
            Item::Edit {
                table,
                origin: origin.collect::<Option<_>>()?,
                first: cursor.varint()?,
                edit: cursor.prefixed()?,
            }
        }
        [TURN] => {
            cursor.varint()?;
            Item::Turn {
                turn: cursor.varint()?,
                edit: cursor.prefixed()?,
            }
        }
        [END] => {
            let position = cursor.varint()?;
            cursor.varint()?;
            cursor.is_empty().then_some(Item::End { position })?
        }
        _ => return None,
    })
}

/// Rows of one region and one origin that are about to be written together.
#[derive(Debug, Default)]
struct Writing<'a> {
    /// Number of the copy.
    copy: u16,
    table: Option<TableName>,
    /// `None` for rows of several regions, which are those of one edit of the leader.
    region: Option<RegionId>,
    origin: Vec<Uuid>,
    rows: Vec<ReplicatedRow<'a>>,
    bytes: usize,
    /// The leader's next row behind these.
    next: SeqId,
    /// The last batch that was written. Batches become durable in their order.
    last: Option<(Commit, SeqId)>,
}

impl<'a> Writing<'a> {
    /// Adds the rows of an edit; writes those before it if they do not go together.
    fn add(
        &mut self,
        engine: &Engine,
        table: TableName,
        origin: Vec<Uuid>,
        mut edit: EditReader<'a>,
        applied: &mut Applied,
    ) -> Result<()> {
        let next = edit.next_seq();
        let known = engine.describe_table(&table).ok();
        let mut rows: Vec<ReplicatedRow<'a>> = Vec::new();
        let mut begun = None;
        let mut bytes = 0;
        for cell in edit.by_ref() {
            let (number, cell) =
                cell.map_err(|what| Error::corrupt("a piece of the leader's log", 0, what))?;
            let family = cell.key.family();
            let is_there = known
                .as_ref()
                .is_some_and(|(descriptor, _)| descriptor.family(family).is_some());
            if !is_there {
                applied.gone += 1;
                continue;
            }
            if begun != Some(number) {
                begun = Some(number);
                rows.push(ReplicatedRow {
                    row: cell.key.row(),
                    cells: Vec::new(),
                });
            }
            bytes += cell.key.bytes().len() + cell.value.len() + cell.tags.len();
            let cells = &mut rows.last_mut().expect("a row was begun").cells;
            cells.push(ReplicatedCell {
                family,
                qualifier: cell.key.qualifier(),
                timestamp: cell.key.timestamp(),
                cell_type: cell.key.cell_type(),
                value: cell.value,
                tags: cell.tags,
            });
        }
        let mut nonces = edit.nonces().map(|(nonce, _)| nonce);
        let nonce =
            nonces.find(|nonce| Mark::of(*nonce).is_none() && !seeded::is_on("standby-forgets-nonces"));
        let region = region_of(engine, &table, &rows)?;
        let goes_along = self.table.as_ref() == Some(&table)
            && (region.is_some() || rows.is_empty())
            && (self.region == region || rows.is_empty())
            && self.origin == origin
            && nonce.is_none()
            && self.bytes + bytes <= BATCH_BYTES;
        if !goes_along {
            self.write(engine, None, applied)?;
            (self.table, self.origin, self.region) = (Some(table), origin, region);
        }
        self.rows.append(&mut rows);
        self.bytes += bytes;
        self.next = next;
        if nonce.is_some() {
            self.write(engine, nonce, applied)?;
        }
        Ok(())
    }

    /// Writes the rows.
    fn write(&mut self, engine: &Engine, nonce: Option<Nonce>, applied: &mut Applied) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let Some(table) = self.table.as_ref().filter(|_| !rows.is_empty()) else {
            return Ok(());
        };
        let origin = Origin::new(self.origin.clone()).unwrap_or_default();
        let mark = Mark {
            copy: self.copy,
            next: self.next,
        };
        let nonces: SmallVec<[Nonce; 2]> = nonce.into_iter().chain([mark.to_nonce()]).collect();
        let commit = engine.write(|catalog| {
            replicate::replicate(catalog, table, &rows, origin.clusters(), Source::Leader(&nonces))
        })?;
        applied.rows += rows.len() as u64;
        self.last = Some((commit, self.next));
        Ok(())
    }

    /// Writes the rows, and waits until everything is durable.
    fn flush(&mut self, engine: &Engine, applied: &mut Applied, place: &mut Place) -> Result<()> {
        self.write(engine, None, applied)?;
        if let Some((commit, next)) = self.last.take() {
            if !seeded::is_on("standby-place-before-rows") {
                commit.wait()?;
            }
            place.position = place.position.max(next);
        }
        Ok(())
    }
}
