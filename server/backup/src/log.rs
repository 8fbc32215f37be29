//! The log as it grows: pieces of its segments, shipped by a running server, and restores to a position
//! between two backups.
//!
//! A piece is an object `log/RUN/SEGMENT-FROM-TO-TURNS-TIME-POSITION`, all but the run in hexadecimal digits
//! of fixed length, so that names sort in the log's order:
//!
//! ```text
//! RUN       the server's run: its start, in milliseconds since 1970
//! SEGMENT   number of the segment of the log
//! FROM, TO  the bytes of the segment that the piece has
//! TURNS     number of changes of the schema and the like, in the run, up to its end
//! TIME      milliseconds since 1970: everything that was written before is in this piece or an earlier one
//! POSITION  sequence id of the last edit that is complete with it
//! ```
//!
//! Its payload is a line of JSON ([`Head`]) and the bytes. The line repeats the name, which is not
//! encrypted.
//!
//! A restore to a position takes a backup of before and the pieces that follow it without a gap, up to the
//! first that reaches the position, and the turns of before (`turns`). The state of the backup and the log go
//! together as long as all turns between them are known. Where one cannot be followed, the server makes a
//! backup after it, and positions from the turn to that backup cannot be restored.
//!
//! Time: the log itself says when its edits were written, so a restore to a time takes the pieces up to the
//! first with a later time, and cuts the log at the time. While the log does not grow, the object
//! `log/RUN/seen` says now and then up to when ([`Seen`]).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogue, LogPlace};
use crate::error::{Error, Result};
use crate::fetch::Plan;
use crate::object::Kind;
use crate::turns::{FOLDER, Numbers, Turn, reach};
use crate::vault::Vault;

/// Name of the object that says when a log was looked at.
const SEEN: &str = "seen";

/// Most bytes of a piece.
pub const PIECE_BYTES: u64 = 8 << 20;

/// Attempts to read a piece that is not there, while listings do not show what it was merged into.
const MERGED_ATTEMPTS: u32 = 5;

/// Pause between two attempts.
const MERGED_PAUSE: Duration = Duration::from_secs(1);

/// The format of pieces.
const FORMAT: u32 = 1;

/// A time, and the last position that the log had then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Sequence id of the last edit.
    pub position: u64,
}

/// A piece of the log, as its name says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// The server's run.
    pub run: String,
    /// Number of the segment.
    pub segment: u64,
    /// First byte.
    pub from: u64,
    /// One past the last byte.
    pub to: u64,
    /// Turns up to its end.
    pub turns: u64,
    /// Everything that was written before is in this piece or an earlier one.
    pub time_ms: u64,
    /// The last edit that is complete with it.
    pub position: u64,
}

/// The line before the bytes of a piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    format: u32,
    /// The name.
    name: String,
    /// Path of the segment below the data directory.
    path: String,
    /// Length that the file must have at least: zeros follow.
    length: u64,
}

/// When a log that did not grow was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    format: u32,
    /// The place.
    segment: u64,
    to: u64,
    pub(crate) turns: u64,
    /// The log ended there at this time.
    pub(crate) time_ms: u64,
}

/// Log of one run in the store.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) seen: Option<Seen>,
    /// In order.
    pub(crate) turns: Vec<Numbers>,
}

impl Run {
    /// Notes an object of the run by its name. Returns whether that is [`SEEN`].
    pub(crate) fn note(&mut self, run: &str, name: &str) -> bool {
        if let Some(piece) = Piece::parse(run, name) {
            self.pieces.push(piece);
        } else if let Some(numbers) = Numbers::parse(name) {
            self.turns.push(numbers);
        }
        name == SEEN
    }

    /// Puts everything in the log's order.
    pub(crate) fn sort(&mut self) {
        // The longest of the pieces with one beginning comes first.
        self.pieces
            .sort_by_key(|piece| (piece.segment, piece.from, std::cmp::Reverse(piece.to)));
        self.turns.sort();
    }
}

impl Piece {
    fn name(&self) -> String {
        format!(
            "{:016x}-{:016x}-{:016x}-{:016x}-{:016x}-{:016x}",
            self.segment, self.from, self.to, self.turns, self.time_ms, self.position
        )
    }

    fn object(&self) -> String {
        format!("{FOLDER}/{}/{}", self.run, self.name())
    }

    fn parse(run: &str, name: &str) -> Option<Self> {
        let mut fields = name.split('-').map(|field| u64::from_str_radix(field, 16).ok());
        let mut next = || fields.next().flatten();
        let piece = Self {
            run: run.to_owned(),
            segment: next()?,
            from: next()?,
            to: next()?,
            turns: next()?,
            time_ms: next()?,
            position: next()?,
        };
        (piece.name() == name).then_some(piece)
    }
}

/// Positions that can be restored: those of a backup and of the log that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Id of the backup.
    pub id: String,
    /// The backup's own point.
    pub from: Sample,
    /// The last point that the log reaches.
    pub to: Sample,
}

/// The point that a restore is to end at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The last edit with this sequence id or a smaller one.
    Position(u64),
    /// The last edit that was written up to this time, in milliseconds since 1970.
    Time(u64),
    /// The last edit that there is after the newest backup.
    Latest,
}

/// Pieces of the log that follow a backup's files.
#[derive(Clone, Debug)]
pub struct Tail {
    /// Segment in which the backup ends, and bytes of it.
    from: (u64, u64),
    pub(crate) pieces: Vec<Piece>,
    /// The turns up to the target.
    pub turns: Vec<Turn>,
    /// Where the log is to end: the pieces may go on.
    pub until: Until,
}

/// Outcome of [`Vault::fetch_piece`].
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// Bytes of the segment that are there.
    pub to: u64,
    /// The segment ends there.
    pub ends_segment: bool,
}

/// Where a restored log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// With the last edit up to this sequence id.
    Position(u64),
    /// With the last edit that was written up to this time, in milliseconds since 1970.
    Time(u64),
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => write!(f, "position {position}"),
            Self::Time(time_ms) => write!(f, "time {time_ms}"),
        }
    }
}

impl Vault {
    /// Writes a piece. `path` is the segment's below the data directory, `length` the least length of its
    /// file. Returns the bytes written.
    pub async fn put_piece(&self, piece: &Piece, path: &Path, length: u64, bytes: &[u8]) -> Result<u64> {
        let head = Head {
            format: FORMAT,
            name: piece.name(),
            path: crate::catalogue::encode_path(path),
            length,
        };
        self.put_headed(Kind::Log, &piece.object(), &head, bytes).await
    }

    /// Records that the log of a run ended at the end of `place` at its time.
    pub async fn put_seen(&self, place: &Piece) -> Result<()> {
        let seen = Seen {
            format: FORMAT,
            segment: place.segment,
            to: place.to,
            turns: place.turns,
            time_ms: place.time_ms,
        };
        let payload = serde_json::to_vec(&seen).map_err(|error| Error::Refused(error.to_string()))?;
        self.put_object(Kind::Log, &seen_object(&place.run), &payload)
            .await?;
        Ok(())
    }

    /// Removes a piece that is part of a larger one.
    pub async fn delete_piece(&self, piece: &Piece) -> Result<()> {
        self.store.delete(&piece.object()).await
    }

    /// The logs of all runs, pieces in the log's order.
    async fn runs(&self) -> Result<BTreeMap<String, Run>> {
        let mut runs: BTreeMap<String, Run> = BTreeMap::new();
        let mut with_seen = Vec::new();
        let visit = |name: &str, _, _| {
            let Some((run, name)) = name.split_once('/') else {
                return;
            };
            if runs.entry(run.to_owned()).or_default().note(run, name) {
                with_seen.push(run.to_owned());
            }
        };
        self.store.list(FOLDER, visit).await?;
        for run in with_seen {
            let seen = self.seen(&run).await;
            runs.entry(run).or_default().seen = seen;
        }
        runs.values_mut().for_each(Run::sort);
        Ok(runs)
    }

    /// The last look at the log of a run. A damaged one only says nothing: the pieces have their own times.
    pub(crate) async fn seen(&self, run: &str) -> Option<Seen> {
        let (payload, _) = self.open_object(Kind::Log, &seen_object(run)).await.ok()?;
        let seen = serde_json::from_slice::<Seen>(&payload).ok()?;
        (seen.format == FORMAT).then_some(seen)
    }

    /// Reads a piece: its head and bytes.
    async fn piece(&self, piece: &Piece) -> Result<(Head, bytes::Bytes)> {
        let name = piece.object();
        let (head, bytes): (Head, bytes::Bytes) = self.open_headed(Kind::Log, &name).await?;
        let damaged = |what: &str| self.damaged(&name, what.to_owned());
        if head.format != FORMAT || head.name != piece.name() {
            return Err(damaged("it is another piece, or one of another format"));
        }
        if bytes.len() as u64 != piece.to - piece.from {
            return Err(damaged("it has another number of bytes than its name says"));
        }
        Ok((head, bytes))
    }

    /// Reads a piece, or the larger one that it has become part of since it was listed: a running server
    /// merges pieces.
    async fn piece_or_merged(&self, piece: &Piece) -> Result<(Piece, Head, bytes::Bytes)> {
        let mut attempts = 1;
        loop {
            let missing = match self.piece(piece).await {
                Err(error) if error.is_not_found() => error,
                read => return read.map(|(head, bytes)| (piece.clone(), head, bytes)),
            };
            if let Some(merged) = self.merged(piece).await? {
                let (head, bytes) = self.piece(&merged).await?;
                return Ok((merged, head, bytes));
            }
            if attempts == MERGED_ATTEMPTS {
                return Err(missing);
            }
            attempts += 1;
            tokio::time::sleep(MERGED_PAUSE).await;
        }
    }

    /// The piece that has all bytes of another one.
    async fn merged(&self, part: &Piece) -> Result<Option<Piece>> {
        let pieces = self.pieces_from(&part.run, part.segment).await?;
        let has_all = |piece: &Piece| {
            piece.segment == part.segment && piece.from <= part.from && piece.to >= part.to && piece != part
        };
        Ok(pieces.into_iter().find(has_all))
    }

    /// Writes a piece into the log of a directory, and what it was merged with, if it was.
    pub async fn fetch_piece(&self, piece: &Piece, dir: &Path) -> Result<Fetched> {
        let (piece, head, bytes) = self.piece_or_merged(piece).await?;
        let fetched = Fetched {
            to: piece.to,
            ends_segment: head.length == piece.to,
        };
        let Some(path) = crate::catalogue::decode_path(&head.path) else {
            return Err(self.damaged(&piece.object(), format!("the path {}", head.path)));
        };
        let (to, from) = (dir.join(path), piece.from);
        crate::pool::on_pool(move || write(&to, from, &bytes, head.length)).await??;
        Ok(fetched)
    }

    /// Fetches the piece of a segment that goes on behind `to`, which a listing did not show.
    async fn fetch_next(&self, run: &str, segment: u64, to: u64, dir: &Path) -> Result<Fetched> {
        for attempt in 0..MERGED_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(MERGED_PAUSE).await;
            }
            let pieces = self.pieces_from(run, segment).await?;
            let goes_on = |piece: &&Piece| piece.segment == segment && piece.from <= to && piece.to > to;
            if let Some(next) = pieces.iter().find(goes_on) {
                return self.fetch_piece(next, dir).await;
            }
        }
        let object = format!("{FOLDER}/{run}/{segment:016x}-{to:016x}");
        Err(self.damaged(&object, "the log goes on, and this piece is missing".to_owned()))
    }

    /// The pieces of a run from a segment on, as they are listed.
    async fn pieces_from(&self, run: &str, segment: u64) -> Result<Vec<Piece>> {
        let mut found = Run::default();
        let visit = |name: &str, _, _| {
            found.note(run, name);
        };
        let (folder, after) = (format!("{FOLDER}/{run}"), format!("{segment:016x}"));
        self.store.list_after(&folder, &after, visit).await?;
        Ok(found.pieces)
    }

    /// Points that can be restored, oldest first.
    pub async fn spans(&self) -> Result<Vec<Span>> {
        let runs = self.runs().await?;
        let mut spans = Vec::new();
        for id in self.ids().await? {
            let catalogue = match self.catalogue(&id).await {
                Err(error) if error.is_damage() => continue,
                catalogue => catalogue?,
            };
            let from = Sample {
                time_ms: catalogue.time_ms,
                position: catalogue.position,
            };
            let place = catalogue.log_place();
            let follows = follow(&place, runs.get(&place.run));
            let mut to = follows.last().map_or(from, |piece| Sample {
                time_ms: piece.time_ms,
                position: piece.position,
            });
            to.time_ms = to.time_ms.max(seen_ms(&place, &follows, runs.get(&place.run)));
            spans.push(Span { id, from, to });
        }
        Ok(spans)
    }

    /// Plans a restore to a point: the latest backup of before, and the pieces of the log that are needed.
    pub async fn plan_at(&self, target: Target) -> Result<(Plan, Tail)> {
        let runs = self.runs().await?;
        let is_before = |catalogue: &Catalogue| match target {
            Target::Position(position) => catalogue.position <= position,
            Target::Time(time_ms) => catalogue.time_ms <= time_ms,
            Target::Latest => true,
        };
        for id in self.ids().await?.iter().rev() {
            let catalogue = match self.catalogue(id).await {
                // An older backup and a longer piece of the log may do.
                Err(error) if error.is_damage() && target != Target::Latest => continue,
                catalogue => catalogue?,
            };
            if !is_before(&catalogue) {
                continue;
            }
            let place = catalogue.log_place();
            let run = runs.get(&place.run);
            let follows = follow(&place, run);
            let seen_ms = seen_ms(&place, &follows, run);
            let Some((pieces, until)) = Self::up_to(&catalogue, &follows, seen_ms, target) else {
                continue;
            };
            let mut turns = self.turns_after(&place, run).await?;
            turns.retain(|turn| match target {
                // The position is that of the last edit before the turn.
                Target::Position(position) => turn.position < position,
                Target::Time(time_ms) => turn.time_ms <= time_ms,
                Target::Latest => true,
            });
            let tail = Tail {
                from: (place.segment, place.bytes),
                pieces,
                turns,
                until,
            };
            return Ok((self.plan_of(catalogue).await?, tail));
        }
        if target == Target::Latest {
            return Err(Error::Refused(format!("{} has no complete backup", self.url())));
        }
        Err(Error::Refused(format!(
            "that point cannot be restored from {}: basalt restore --list shows what can",
            self.url()
        )))
    }

    /// The turns of the run that follow a place without a gap.
    pub(crate) async fn turns_after(&self, from: &LogPlace, run: Option<&Run>) -> Result<Vec<Turn>> {
        let Some(run) = run else { return Ok(Vec::new()) };
        let last = reach(&run.turns, from.turns);
        let mut turns: Vec<Turn> = Vec::new();
        for numbers in &run.turns {
            let next = turns.last().map_or(from.turns, |turn| turn.number) + 1;
            if numbers.to >= next && numbers.from <= next && next <= last {
                let read = self.turns(&from.run, *numbers).await?;
                turns.extend(read.into_iter().filter(|turn| turn.number >= next));
            }
        }
        Ok(turns)
    }

    /// The pieces that lead to the target, and where it is; `None` if they do not reach it.
    fn up_to(
        catalogue: &Catalogue,
        follows: &[&Piece],
        seen_ms: u64,
        target: Target,
    ) -> Option<(Vec<Piece>, Until)> {
        let copy = |pieces: &[&Piece]| pieces.iter().map(|piece| (*piece).clone()).collect::<Vec<_>>();
        let end = follows.last().map_or(catalogue.position, |last| last.position);
        match target {
            Target::Latest => Some((copy(follows), Until::Position(end))),
            Target::Position(position) if position == catalogue.position => {
                Some((Vec::new(), Until::Position(position)))
            }
            Target::Position(position) => {
                let last = follows.iter().position(|piece| piece.position >= position)?;
                Some((copy(&follows[..=last]), Until::Position(position)))
            }
            // After the last piece, while the log did not grow, or at the backup.
            Target::Time(time_ms) if follows.last().is_none_or(|last| last.time_ms < time_ms) => {
                let is_known = time_ms <= seen_ms || time_ms == catalogue.time_ms;
                is_known.then(|| (copy(follows), Until::Time(time_ms)))
            }
            Target::Time(time_ms) => {
                let later = follows.iter().position(|piece| piece.time_ms > time_ms);
                let mut count = later.map_or(follows.len(), |last| last + 1);
                // A piece that ends a segment was shipped together with the beginning of the next one.
                while let Some(next) = follows.get(count)
                    && next.segment > follows[count - 1].segment
                {
                    count += 1;
                }
                Some((copy(&follows[..count]), Until::Time(time_ms)))
            }
        }
    }

    /// Reads the pieces of the log that kept backups need; a line for each that is damaged.
    pub(crate) async fn verify_log(&self, catalogues: &[Catalogue]) -> Result<(u64, Vec<String>)> {
        let runs = self.runs().await?;
        let mut needed = std::collections::BTreeSet::new();
        let mut problems = Vec::new();
        for catalogue in catalogues {
            let place = catalogue.log_place();
            let run = runs.get(&place.run);
            needed.extend(follow(&place, run));
            match self.turns_after(&place, run).await {
                Ok(_) => {}
                Err(error) if error.is_damage() => problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        for piece in &needed {
            match self.piece_or_merged(piece).await {
                Ok(_) => {}
                Err(error) if error.is_damage() => problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((needed.len() as u64, problems))
    }

    /// Removes the pieces that no kept backup is followed by. Returns their number.
    pub(crate) async fn prune_log(&self, kept: &[Catalogue]) -> Result<u64> {
        // Place and turns of the oldest backup of each run.
        let mut oldest: HashMap<&str, ((u64, u64), u64)> = HashMap::new();
        for catalogue in kept {
            let place = ((catalogue.segment, catalogue.segment_bytes), catalogue.turns);
            let of_run = oldest.entry(&catalogue.run).or_insert(place);
            *of_run = place.min(*of_run);
        }
        let mut removed = 0;
        for (run, Run { pieces, seen, turns }) in self.runs().await? {
            let oldest = oldest.get(run.as_str());
            for numbers in turns {
                if oldest.is_none_or(|(_, turns)| numbers.to <= *turns) {
                    self.store.delete(&numbers.object(&run)).await?;
                }
            }
            let from = oldest.map(|(place, _)| place);
            for piece in pieces {
                if from.is_none_or(|from| (piece.segment, piece.to) <= *from) {
                    self.delete_piece(&piece).await?;
                    removed += 1;
                }
            }
            if from.is_none() && seen.is_some() {
                self.store.delete(&seen_object(&run)).await?;
            }
        }
        Ok(removed)
    }
}

/// The pieces that follow a place without a gap, and with all turns between.
pub(crate) fn follow<'a>(from: &LogPlace, run: Option<&'a Run>) -> Vec<&'a Piece> {
    let last_turn = run.map_or(0, |run| reach(&run.turns, from.turns));
    let (mut segment, mut end) = (from.segment, from.bytes);
    let mut found = Vec::new();
    for piece in run.into_iter().flat_map(|run| &run.pieces) {
        if piece.segment < segment || (piece.segment == segment && piece.to <= end) {
            continue;
        }
        let goes_on = if piece.segment == segment {
            piece.from <= end
        } else {
            piece.segment == segment + 1 && piece.from == 0
        };
        if !goes_on || piece.turns > last_turn {
            break;
        }
        (segment, end) = (piece.segment, piece.to);
        found.push(piece);
    }
    found
}

/// The look at the log that found its end where the pieces that follow a place end.
pub(crate) fn seen_at_end<'a>(from: &LogPlace, follows: &[&Piece], run: Option<&'a Run>) -> Option<&'a Seen> {
    let last = follows.last();
    let end = last.map_or((from.segment, from.bytes), |last| (last.segment, last.to));
    let run = run?;
    let last_turn = reach(&run.turns, from.turns);
    let seen = run.seen.as_ref();
    seen.filter(|seen| (seen.segment, seen.to) == end && seen.turns <= last_turn)
}

/// Until when the log is known to end where the pieces that follow a place end; 0: not known.
fn seen_ms(from: &LogPlace, follows: &[&Piece], run: Option<&Run>) -> u64 {
    seen_at_end(from, follows, run).map_or(0, |seen| seen.time_ms)
}

fn seen_object(run: &str) -> String {
    format!("{FOLDER}/{run}/{SEEN}")
}

impl Tail {
    /// Whether the backup alone reaches the target.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.turns.is_empty()
    }

    /// Writes the pieces into the log of a restored directory. A listing that is not of one moment may have
    /// the beginning of a segment, and not the end of the one before: that is looked for.
    pub async fn fetch(&self, vault: &Vault, dir: &Path) -> Result<()> {
        let (mut segment, to) = self.from;
        let mut last = Fetched {
            to,
            ends_segment: false,
        };
        for piece in &self.pieces {
            while piece.segment > segment && !last.ends_segment {
                last = vault.fetch_next(&piece.run, segment, last.to, dir).await?;
            }
            last = vault.fetch_piece(piece, dir).await?;
            segment = piece.segment;
        }
        Ok(())
    }
}

fn write(to: &Path, from: u64, bytes: &[u8], length: u64) -> Result<()> {
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(to)?;
        file.write_all_at(bytes, from)?;
        let least = length.max(from + bytes.len() as u64);
        if file.metadata()?.len() < least {
            file.set_len(least)?;
        }
        file.sync_all()
    };
    write().map_err(|error| Error::io("writing", to, error))
}
