//! The log of the primary, from the store of its backups: the primary ships it there and is never asked.
//!
//! 1. [`StoredLog::begin`] chooses a backup of the run that is not behind the standby's place, and fetches
//!    the segment in which it ends into `DIR/shipped`. Nothing else is kept over a start.
//! 2. [`StoredLog::look`] lists, once a second, the pieces and turns behind what was fetched, and now and
//!    then the newest backup.
//! 3. [`StoredLog::ask`] fetches one piece after the other into the segments, and reads what the standby
//!    applies from them.
//!
//! A new copy is needed when the newest backup is of a later run of the primary, or the log has had a gap
//! before that backup for some looks: listings and the merging of pieces are not atomic.
//!
//! One task. All steps may be given up: state changes after the last wait.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use basalt_backup::{Fetched, LogAhead, LogPlace, Piece, Plan, Vault};
use basalt_engine::engine::{LogEnd, Place, Restore, ShippedFeed, Turn};
use basalt_engine::fs::RealFs;
use basalt_engine::id::SeqId;
use bytes::Bytes;
use parking_lot::Mutex;

use super::answer::{Answer, Problem};
use super::leader;
use super::store::{check_cluster, fetch, leader_of, open};
use super::wire::{PIECE_BYTES, SecurityFiles};
use crate::config::security_dir;
use crate::server::Server;
use crate::server::copies::standing::Leader;
use crate::service::Failure;

/// Directory of the segments that are read, below the data directory.
const SHIPPED: &str = "shipped";

/// Directory for the files of users of a backup, in [`SHIPPED`].
const SERVER_FILES: &str = "backup";

/// Time between two listings of the log.
const POLL: Duration = Duration::from_secs(1);

/// Time between two looks for a newer backup.
const NEWEST: Duration = Duration::from_secs(5);

/// Listings in a row that show a gap, before a new copy is made.
const GAP_LOOKS: u32 = 5;

/// The newest backup in the store.
struct Newest {
    id: String,
    place: LogPlace,
    position: u64,
    term: u64,
}

/// A log in a store.
pub(super) struct StoredLog {
    server: Arc<Server>,
    url: String,
    vault: Option<Arc<Vault>>,
    /// Reads the fetched segments; `None` before [`Self::begin`].
    feed: Option<Arc<Mutex<ShippedFeed>>>,
    /// Behind the last piece that was fetched and the last turn that was read; names the run.
    reach: LogPlace,
    /// The last row that is whole in it.
    position: u64,
    /// The segment ends there.
    is_segment_end: bool,
    /// Pieces that follow, as they were listed.
    pieces: VecDeque<Piece>,
    /// All rows before this turn are in the listed pieces.
    known_turn: u64,
    /// Milliseconds since 1970 up to which the listed pieces have everything; 0: not known.
    covered_ms: u64,
    listed: Option<Instant>,
    /// The last listing has not been answered yet.
    is_fresh: bool,
    newest: Option<Newest>,
    newest_looked: Option<Instant>,
    /// Listings in a row that show a gap.
    gaps: u32,
    problem: String,
    leader: Option<Leader>,
    security: Option<SecurityFiles>,
}

impl StoredLog {
    /// The log behind this server's copy.
    pub(super) fn new(server: &Arc<Server>, url: &str) -> Self {
        let stored = server.copies().standing.stored();
        let run = stored.origin.map_or_else(String::new, |origin| origin.run);
        Self {
            server: Arc::clone(server),
            url: url.to_owned(),
            vault: None,
            feed: None,
            reach: LogPlace {
                run,
                ..LogPlace::default()
            },
            position: 0,
            is_segment_end: false,
            pieces: VecDeque::new(),
            known_turn: 0,
            covered_ms: 0,
            listed: None,
            is_fresh: false,
            newest: None,
            newest_looked: None,
            gaps: 0,
            problem: String::new(),
            leader: stored.leader,
            security: None,
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Opens the vault again with the next request: the owner mark may be another one, or the key.
    pub(super) fn forget_vault(&mut self) {
        self.vault = None;
    }

    /// Lists with the next request.
    pub(super) fn refresh(&mut self) {
        (self.listed, self.newest_looked, self.is_fresh) = (None, None, false);
    }

    /// Removes the segments. What is left in them is left out by a start, too.
    pub(super) fn end(&self) {
        if let Err(error) = std::fs::remove_dir_all(self.dir()) {
            tracing::warn!("removing {}: {error}", self.dir().display());
        }
    }

    /// The next part of the log behind `place`.
    pub(super) async fn ask(&mut self, place: Place) -> Result<Answer, Problem> {
        let vault = self.vault().await?;
        loop {
            let feed = match &self.feed {
                Some(feed) => Arc::clone(feed),
                None => self.begin(&vault, place).await?,
            };
            let (piece, end, is_end) = match self.read(&feed, place).await {
                Ok(read) => read,
                Err(problem) => {
                    // The segments are fetched anew.
                    self.feed = None;
                    return Err(problem);
                }
            };
            let is_end = is_end && self.pieces.is_empty();
            if end != place || is_end && self.is_fresh {
                self.is_fresh &= !is_end;
                return Ok(self.answer(piece, end, is_end));
            }
            if let Some(piece) = self.pieces.front().cloned() {
                if piece.segment == self.reach.segment || self.is_segment_end {
                    let fetched = self.fetch(&vault, &piece).await?;
                    self.take(&piece, fetched, &feed);
                    continue;
                }
                // The listing has the beginning of a segment, and not the end of the one before.
                self.pieces.clear();
            }
            if let Some(listed) = self.listed {
                tokio::time::sleep_until((listed + POLL).into()).await;
            }
            self.look(&vault, &feed, place).await?;
        }
    }

    fn answer(&mut self, piece: Bytes, end: Place, is_end: bool) -> Answer {
        Answer {
            leader: self.leader.clone(),
            security: self.security.take(),
            piece,
            is_end,
            end,
            current: instant_of(self.covered_ms),
            problem: self.problem.clone(),
        }
    }

    fn dir(&self) -> PathBuf {
        self.server.config().data.dir.join(SHIPPED)
    }

    async fn vault(&mut self) -> Result<Arc<Vault>, Problem> {
        if let Some(vault) = &self.vault {
            return Ok(Arc::clone(vault));
        }
        let vault = Arc::new(open(self.server.config()).await?);
        let stored = self.server.copies().standing.stored();
        check_cluster(&vault, Some(&stored)).map_err(Problem::Passing)?;
        self.vault = Some(Arc::clone(&vault));
        Ok(vault)
    }

    /// Fetches the beginning of the segment that has the place.
    async fn begin(&mut self, vault: &Vault, place: Place) -> Result<Arc<Mutex<ShippedFeed>>, Problem> {
        let applied = place.position.0.saturating_sub(1);
        let run = self.reach.run.clone();
        let base = match run.as_str() {
            "" => None,
            run => vault.base(run, applied, place.turn).await?,
        };
        let Some(mut base) = base else {
            let newest = vault.newest_id().await?;
            return Err(match newest {
                None => Problem::Passing(format!("{} has no backup any more", self.url)),
                Some(_) if run.is_empty() => {
                    Problem::Copy("this standby did not follow backups before".to_owned())
                }
                Some(id) => Problem::Copy(format!(
                    "{} has no backup from which the log goes on to position {}; the newest is {id}",
                    self.url, place.position
                )),
            });
        };
        base.keep_last_segment();
        let dir = self.dir();
        let emptied = dir.clone();
        self.server
            .on_pool(move |_| {
                let emptied = empty(&emptied);
                emptied.map_err(|error| Failure::plain_io(format!("the directory {SHIPPED}: {error}")))
            })
            .await?;
        fetch(vault, &base, &dir).await?;
        let decoded = Restore::decode(&base.manifest, Path::new("the manifest of a backup"));
        let decoded = decoded.map_err(|error| Problem::Passing(error.to_string()))?;
        let from = base.log_place();
        let end = LogEnd {
            segment: from.segment,
            bytes: from.bytes,
            last_seq: SeqId(base.position()),
        };
        let feed = ShippedFeed::open(Arc::new(RealFs), &dir, &decoded, place, end);
        let feed = Arc::new(Mutex::new(feed));
        tracing::info!(
            "the log at {} is read from backup {} on, behind position {}",
            self.url,
            base.id(),
            base.position()
        );
        (self.reach, self.position) = (from, base.position());
        self.covered_ms = self.covered_ms.max(base.time_ms());
        self.pieces.clear();
        self.is_segment_end = false;
        self.feed = Some(Arc::clone(&feed));
        Ok(feed)
    }

    /// Makes a piece of what was fetched behind the place.
    async fn read(
        &self,
        feed: &Arc<Mutex<ShippedFeed>>,
        place: Place,
    ) -> Result<(Bytes, Place, bool), Problem> {
        let feed = Arc::clone(feed);
        let read = self.server.on_pool(move |_| {
            let (mut feed, mut piece) = (feed.lock(), Vec::new());
            feed.seek(place)?;
            let (end, is_end) = feed.read(PIECE_BYTES, &mut piece)?;
            Ok((Bytes::from(piece), end, is_end))
        });
        Ok(read.await?)
    }

    /// Writes a piece into the segments. The next listing may have others if that fails.
    async fn fetch(&mut self, vault: &Vault, piece: &Piece) -> Result<Fetched, Problem> {
        let fetched = vault.fetch_piece(piece, &self.dir()).await;
        if fetched.is_err() {
            self.pieces.clear();
        }
        Ok(fetched?)
    }

    /// Takes over a piece that was written into the segments.
    fn take(&mut self, piece: &Piece, fetched: Fetched, feed: &Mutex<ShippedFeed>) {
        self.pieces.pop_front();
        // The piece that it was merged into is taken when a listing shows it.
        self.is_segment_end = fetched.ends_segment && fetched.to == piece.to;
        (self.reach.segment, self.reach.bytes) = (piece.segment, piece.to);
        self.position = self.position.max(piece.position);
        self.extend(feed);
    }

    /// Tells the feed how far the segments go.
    fn extend(&self, feed: &Mutex<ShippedFeed>) {
        let known_turn = if self.pieces.is_empty() {
            self.known_turn
        } else {
            0
        };
        let end = LogEnd {
            segment: self.reach.segment,
            bytes: self.reach.bytes,
            last_seq: SeqId(self.position),
        };
        feed.lock().extend(end, known_turn);
    }

    /// Lists what is behind the fetched pieces.
    async fn look(&mut self, vault: &Vault, feed: &Mutex<ShippedFeed>, place: Place) -> Result<(), Problem> {
        self.look_for_newest(vault).await?;
        let ahead = vault.log_after(&self.reach).await?;
        self.listed = Some(Instant::now());
        self.judge(&ahead, place)?;
        let turns = ahead.turns.into_iter().map(|turn| Turn {
            number: turn.number,
            position: SeqId(turn.position),
            wall_ms: turn.time_ms,
            edit: Some(turn.edit),
            files_follow: true,
        });
        let added = feed.lock().add_turns(turns.collect());
        added.map_err(|error| Problem::Passing(error.to_string()))?;
        self.reach.turns = ahead.reach.turns;
        self.pieces = ahead.pieces.into();
        self.known_turn = ahead.known_turn;
        self.covered_ms = self.covered_ms.max(ahead.covered_ms);
        self.is_fresh = true;
        self.extend(feed);
        Ok(())
    }

    /// Looks now and then for a newer backup, and takes the users of one.
    async fn look_for_newest(&mut self, vault: &Vault) -> Result<(), Problem> {
        if self.newest_looked.is_some_and(|last| last.elapsed() < NEWEST) {
            return Ok(());
        }
        let id = vault.newest_id().await?;
        let known = self.newest.as_ref().map(|newest| &newest.id);
        if let Some(id) = id.filter(|id| Some(id) != known) {
            let plan = vault.plan(Some(&id)).await?;
            let newest = Newest {
                id,
                place: plan.log_place(),
                position: plan.position(),
                term: plan.primary().map_or(0, |primary| primary.term),
            };
            if newest.place.run == self.reach.run {
                let security = self.server_files(vault, &plan).await?;
                self.leader = leader_of(&plan).or(self.leader.take());
                self.security = security.or(self.security.take());
            }
            self.newest = Some(newest);
        }
        self.newest_looked = Some(Instant::now());
        Ok(())
    }

    /// The files of users, rights and certificates of a backup; `None` if it has none.
    async fn server_files(&self, vault: &Vault, plan: &Plan) -> Result<Option<SecurityFiles>, Problem> {
        let mut plan = plan.clone();
        plan.keep_server_files();
        if plan.is_empty() {
            return Ok(None);
        }
        let dir = self.dir().join(SERVER_FILES);
        let emptied = dir.clone();
        let failed = |error: std::io::Error| Failure::plain_io(format!("the files of users: {error}"));
        self.server
            .on_pool(move |_| empty(&emptied).map_err(failed))
            .await?;
        fetch(vault, &plan, &dir).await?;
        let read = self.server.on_pool(move |_| {
            let files = leader::read_security(&security_dir(&dir)).map_err(failed)?;
            std::fs::remove_dir_all(&dir).map_err(failed)?;
            Ok(files)
        });
        Ok(Some(read.await?))
    }

    /// Fails when the log cannot be followed from here, and a newer backup can.
    fn judge(&mut self, ahead: &LogAhead, place: Place) -> Result<(), Problem> {
        self.problem.clear();
        if ahead.is_cut {
            self.problem = format!(
                "the log at {} has a gap behind position {}: the next backup there is waited for",
                self.url, place.position
            );
        }
        let Some(newest) = &self.newest else {
            return Ok(());
        };
        if newest.place.run != self.reach.run {
            if self.is_later(newest, place) {
                return Err(Problem::Copy(format!(
                    "the primary has started again, and its log goes on from backup {}",
                    newest.id
                )));
            }
            return Ok(());
        }
        let reach = &ahead.reach;
        let is_ahead = newest.place.turns > reach.turns
            || (newest.place.segment, newest.place.bytes) > (reach.segment, reach.bytes);
        self.gaps = if is_ahead { self.gaps + 1 } else { 0 };
        if self.gaps >= GAP_LOOKS {
            return Err(Problem::Copy(format!(
                "the log at {} has a gap behind position {}, before backup {}",
                self.url, place.position, newest.id
            )));
        }
        Ok(())
    }

    /// True if a backup belongs to a later run. A backup of a stopped server belongs to none.
    fn is_later(&self, newest: &Newest, place: Place) -> bool {
        if newest.term < self.server.copies().standing.term() {
            return false;
        }
        match (newest.place.run.parse::<u64>(), self.reach.run.parse::<u64>()) {
            (Ok(theirs), Ok(own)) => theirs > own,
            _ => newest.position >= place.position.0,
        }
    }
}

/// When it was that many milliseconds since 1970; `None` if that is not known.
fn instant_of(time_ms: u64) -> Option<Instant> {
    if time_ms == 0 {
        return None;
    }
    let now = Instant::now();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = since.saturating_sub(Duration::from_millis(time_ms));
    Some(now.checked_sub(age).unwrap_or(now))
}

/// Makes a directory that has nothing in it.
fn empty(dir: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir_all(dir),
    }
}
