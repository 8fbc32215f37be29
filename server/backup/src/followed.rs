//! The log of a run, for a standby that follows it in the store.
//!
//! 1. [`Vault::newest`] is the backup that a standby starts from.
//! 2. [`Vault::base`] is a backup from which the log can be read on to a place: the segment in which it ends
//!    begins in its files, and the regions of all rows behind it are in its manifest or the turns.
//! 3. [`Vault::log_after`] lists the pieces and turns behind a place that follow it without a gap. The caller
//!    fetches pieces with [`Vault::fetch_piece`], and asks again, from behind the last one.
//!
//! A piece that was merged with others between the listing and the fetch is not there: the next listing has
//! the merged one.

use crate::catalogue::{Class, FOLDER as CATALOGUES, LogPlace, Primary};
use crate::error::{Error, Result};
use crate::fetch::Plan;
use crate::log::{Piece, Run, follow, seen_at_end};
use crate::turns::{FOLDER, Turn, reach};
use crate::vault::Vault;

/// The log of a run behind a place.
#[derive(Clone, Debug)]
pub struct LogAhead {
    /// Pieces that follow it without a gap.
    pub pieces: Vec<Piece>,
    /// Turns that follow it without a gap.
    pub turns: Vec<Turn>,
    /// Where all that ends: place of the last piece, and number of the last turn.
    pub reach: LogPlace,
    /// True if the log continues behind a gap.
    pub is_cut: bool,
    /// Milliseconds since 1970 up to which the log is there; 0: not known.
    pub covered_ms: u64,
    /// All rows before this turn are in the pieces, if they reach the end.
    pub known_turn: u64,
}

impl Plan {
    /// Where the log goes on from it.
    pub fn log_place(&self) -> LogPlace {
        self.catalogue.log_place()
    }

    /// Milliseconds since 1970 of its point.
    pub fn time_ms(&self) -> u64 {
        self.catalogue.time_ms
    }

    /// The server, if it ran, and its release says so.
    pub fn primary(&self) -> Option<&Primary> {
        self.catalogue.primary.as_ref()
    }

    /// Leaves out everything but the segment of the log in which it ends.
    pub fn keep_last_segment(&mut self) {
        let last = self
            .catalogue
            .files
            .iter()
            .filter(|entry| entry.class == Class::Log);
        // Names of segments sort in the log's order.
        let last = last.map(|entry| entry.path.clone()).max();
        self.catalogue
            .files
            .retain(|entry| Some(&entry.path) == last.as_ref());
    }

    /// Leaves out everything but users, rights and certificates.
    pub fn keep_server_files(&mut self) {
        self.catalogue.files.retain(|entry| entry.class == Class::Server);
    }

    /// True if no file is left.
    pub fn is_empty(&self) -> bool {
        self.catalogue.files.is_empty()
    }
}

impl Vault {
    /// Id of the newest backup; `None` if there is none.
    pub async fn newest_id(&self) -> Result<Option<String>> {
        Ok(self.store.names(CATALOGUES).await?.pop())
    }

    /// The newest backup.
    pub async fn newest(&self) -> Result<Plan> {
        self.plan(None).await
    }

    /// The newest backup of a run that is not behind a place: its position is at most that one, and its last
    /// turn, too. `None` if there is none any more.
    pub async fn base(&self, run: &str, position: u64, turns: u64) -> Result<Option<Plan>> {
        for id in self.ids().await?.iter().rev() {
            let catalogue = match self.catalogue(id).await {
                Err(error) if error.is_damage() || matches!(error, Error::Refused(_)) => continue,
                catalogue => catalogue?,
            };
            if catalogue.run == run && catalogue.position <= position && catalogue.turns <= turns {
                return Ok(Some(self.plan_of(catalogue).await?));
            }
        }
        Ok(None)
    }

    /// The log behind a place.
    pub async fn log_after(&self, from: &LogPlace) -> Result<LogAhead> {
        let mut run = Run::default();
        if !from.run.is_empty() {
            let folder = format!("{FOLDER}/{}", from.run);
            let mut has_seen = false;
            // Objects of turns, and the one that says when the log was looked at, have names behind all
            // pieces.
            let visit = |name: &str, _, _| has_seen |= run.note(&from.run, name);
            let after = format!("{:016x}", from.segment);
            self.store.list_after(&folder, &after, visit).await?;
            run.sort();
            if has_seen {
                run.seen = self.seen(&from.run).await;
            }
        }
        let follows = follow(from, Some(&run));
        let seen = seen_at_end(from, &follows, Some(&run));
        let covered_ms = follows.last().map_or(0, |last| last.time_ms);
        let end = follows
            .last()
            .map_or((from.segment, from.bytes), |last| (last.segment, last.to));
        let is_behind = |piece: &Piece| (piece.segment, piece.to) > end;
        Ok(LogAhead {
            turns: self.turns_after(from, Some(&run)).await?,
            reach: LogPlace {
                run: from.run.clone(),
                turns: reach(&run.turns, from.turns),
                segment: end.0,
                bytes: end.1,
            },
            is_cut: run.pieces.iter().any(is_behind),
            covered_ms: covered_ms.max(seen.map_or(0, |seen| seen.time_ms)),
            known_turn: seen.map_or(0, |seen| seen.turns),
            pieces: follows.into_iter().cloned().collect(),
        })
    }
}
