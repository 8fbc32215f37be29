//! Continuous backup: ships the log once a second, and makes a backup now and then.
//!
//! Each second ([`Shipper::step`]):
//! 1. sync the log and note where it ends;
//! 2. ship the turns since (changes that the log does not show), and then what was added to the log, in
//!    pieces ([`basalt_backup::Piece`]); many small pieces become one;
//! 3. begin a backup if one is due, in a task of its own: the first one of the run, `backup.interval_ms`
//!    after the last, after a turn that a restore cannot follow, and after as much log as a start can replay.
//!
//! The lag is the time since the last end of the log that can be restored: it is shipped, and a backup of
//! this run goes with it. Segments are held until they are shipped. When the store is away and they have
//! reached `backup.max_log_bytes`, they are dropped, and a new backup begins, or writes are refused, as
//! `backup.when_log_full` says.
//!
//! One task, from the start of the server to its stop, at which it ships once more.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_backup::{CopyOptions, Made, PIECE_BYTES, Piece, Progress, Vault};
use basalt_engine::engine::{LogHold, LogPoint};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::job::{self, Refusal};
use crate::config::LogFull;
use crate::server::Server;

/// Time between two looks at the log: what can be lost with the machine, about.
const PERIOD: Duration = Duration::from_secs(1);

/// Least time between two backups: turns that cannot be followed can come quickly after each other.
const BACKUP_PAUSE: Duration = Duration::from_secs(5);

/// Pause after a backup that failed.
const FAILED_PAUSE: Duration = Duration::from_secs(30);

/// Least time between two log lines about a store that is away.
const COMPLAINT_PERIOD: Duration = Duration::from_mins(1);

/// Pieces that become one.
const MERGED_PIECES: usize = 120;

/// Time between two notes that the log has not grown.
const SEEN_PERIOD: Duration = Duration::from_secs(10);

/// Time for the last pieces at a stop.
const LAST_STEP: Duration = Duration::from_secs(10);

/// Ships until the server stops. Returns at once if no URL is set.
pub(crate) async fn run(server: Arc<Server>, stop: CancellationToken) {
    if server.config().backup.url.is_empty() {
        return;
    }
    server.copies().backups.begin_continuous();
    let mut shipper = Shipper::new(server);
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => shipper.tick().await,
        }
    }
    shipper.backup = None;
    if tokio::time::timeout(LAST_STEP, shipper.tick()).await.is_err() {
        tracing::warn!("backup: the end of the log was not shipped within {LAST_STEP:?}");
    }
}

/// Most turns that wait for a store that is away.
const TURNS_MAX: usize = 4096;

/// A backup that is being made, with the turns that it covers.
struct Running {
    turns: u64,
    made: AbortOnDropHandle<Result<Made, Refusal>>,
}

/// Up to where the log is shipped.
#[derive(Clone, Copy, Debug)]
struct Shipped {
    segment: u64,
    to: u64,
    position: u64,
    /// Everything that was written before is shipped.
    covered_ms: u64,
}

struct Shipper {
    server: Arc<Server>,
    /// Names the log of this run.
    run: String,
    vault: Option<Arc<Vault>>,
    /// Keeps the log that is not shipped.
    hold: Option<LogHold>,
    /// `None` until a backup has begun.
    shipped: Option<Shipped>,
    /// Pieces that are to become one, of one segment.
    recent: Vec<Piece>,
    /// When the store was last told where the log ends.
    seen: Instant,
    backup: Option<Running>,
    /// Turns up to the last backup that was made.
    covered: Option<u64>,
    /// The last turn that was taken from the engine.
    taken: u64,
    /// Turns that are not shipped.
    turns: Vec<basalt_backup::Turn>,
    /// The last turn that a restore cannot follow.
    gap: u64,
    /// When the next backup may begin, and when it is due.
    not_before: Instant,
    due: Instant,
    /// Bytes shipped since the last backup began.
    shipped_since: u64,
    complained: Option<Instant>,
    /// Whether writes are refused for the store.
    refusing: bool,
}

impl Shipper {
    fn new(server: Arc<Server>) -> Self {
        let now = Instant::now();
        Self {
            run: server.instance().start_code().to_string(),
            server,
            vault: None,
            hold: None,
            shipped: None,
            recent: Vec::new(),
            seen: now,
            backup: None,
            covered: None,
            taken: 0,
            turns: Vec::new(),
            gap: 0,
            not_before: now,
            due: now,
            shipped_since: 0,
            complained: None,
            refusing: false,
        }
    }

    /// One step; a failure is logged and counted, and the next tick tries again.
    async fn tick(&mut self) {
        match self.step().await {
            Ok(()) => {
                self.complained = None;
                if std::mem::take(&mut self.refusing) {
                    self.suspend(None).await;
                }
            }
            Err(error) => {
                self.server.copies().backups.note_log_failure();
                if self
                    .complained
                    .is_none_or(|last| last.elapsed() >= COMPLAINT_PERIOD)
                {
                    self.complained = Some(Instant::now());
                    tracing::warn!("backup: the log is not shipped: {error}");
                }
                // Opened again: the owner mark may be another one, or the key.
                self.vault = None;
                self.bound_log().await;
            }
        }
    }

    async fn step(&mut self) -> Result<(), Refusal> {
        self.end_backup().await;
        let vault = self.vault().await?;
        let point = self
            .server
            .on_pool(|server| Ok(server.engine().log_point()?))
            .await?;
        if self.shipped.is_none() {
            if Instant::now() >= self.not_before {
                self.begin_backup(&vault).await?;
            }
            return Ok(());
        }
        self.ship_turns(&vault).await?;
        self.ship(&vault, &point).await?;
        self.note_seen(&vault, &point).await?;
        if self.is_covered() {
            self.server.copies().backups.note_covered(point.wall_ms);
        }
        if self.is_due() {
            self.begin_backup(&vault).await?;
        }
        Ok(())
    }

    async fn vault(&mut self) -> Result<Arc<Vault>, Refusal> {
        if let Some(vault) = &self.vault {
            return Ok(Arc::clone(vault));
        }
        let settings = &self.server.config().backup;
        let vault = Arc::new(job::open(&self.server, &settings.url, &settings.key_file).await?);
        self.vault = Some(Arc::clone(&vault));
        Ok(vault)
    }

    /// Whether a restore can reach the shipped end of the log.
    fn is_covered(&self) -> bool {
        self.covered.is_some_and(|covered| covered >= self.gap)
    }

    fn is_due(&self) -> bool {
        let now = Instant::now();
        if self.backup.is_some() || now < self.not_before {
            return false;
        }
        let much = self.server.config().memstore.total_bytes / 2;
        now >= self.due || !self.is_covered() || self.shipped_since > much
    }

    /// Pins everything, and copies it in a task.
    async fn begin_backup(&mut self, vault: &Arc<Vault>) -> Result<(), Refusal> {
        let interval = Duration::from_millis(self.server.config().backup.interval_ms);
        let now = Instant::now();
        self.not_before = now + BACKUP_PAUSE;
        if self.hold.is_none() {
            self.hold = Some(
                self.server
                    .on_pool(|server| Ok(server.engine().hold_log()?))
                    .await?,
            );
        }
        let (covered_ms, pin) = self
            .server
            .on_pool(|server| {
                let covered_ms = server.engine().log_point()?.wall_ms;
                Ok((covered_ms, server.engine().pin()?))
            })
            .await?;
        let end = pin.log_end();
        let turns = pin.turns();
        if self.shipped.is_none() {
            self.taken = turns;
            self.shipped = Some(Shipped {
                segment: end.segment,
                to: end.bytes,
                position: end.last_seq.0,
                covered_ms,
            });
        }
        self.shipped_since = 0;
        self.due = now + interval;
        let (server, vault) = (Arc::clone(&self.server), Arc::clone(vault));
        let options = CopyOptions {
            max_rate: self.server.config().backup.max_bytes_per_second,
            ..CopyOptions::default()
        };
        let work = job::copy_pin(
            server,
            vault,
            pin,
            self.run.clone(),
            options,
            Arc::new(Progress::default()),
        );
        self.backup = Some(Running {
            turns,
            made: AbortOnDropHandle::new(tokio::spawn(work)),
        });
        Ok(())
    }

    /// Takes over a backup that has ended.
    async fn end_backup(&mut self) {
        let Some(running) = self.backup.take_if(|running| running.made.is_finished()) else {
            return;
        };
        // A task that was cancelled belongs to a server that stops.
        let Ok(made) = running.made.await else { return };
        self.server.copies().backups.note(&made);
        if made.is_ok() {
            self.covered = Some(running.turns);
        } else {
            self.not_before = Instant::now() + FAILED_PAUSE;
            self.due = self.not_before;
        }
    }

    /// Ships the turns of before the log's end.
    async fn ship_turns(&mut self, vault: &Vault) -> Result<(), Refusal> {
        let taken = self.taken;
        let made = self
            .server
            .on_pool(move |server| {
                let engine = server.engine();
                Ok((engine.turns_after(taken)?, engine.turns()?))
            })
            .await?;
        let made = match made {
            (Some(turns), _) => turns,
            (None, count) => {
                (self.gap, self.taken) = (count, count);
                Vec::new()
            }
        };
        for turn in made {
            self.taken = turn.number;
            match turn.edit.filter(|_| turn.files_follow) {
                Some(edit) if self.turns.len() < TURNS_MAX => self.turns.push(basalt_backup::Turn {
                    number: turn.number,
                    position: turn.position.0,
                    time_ms: turn.wall_ms,
                    edit,
                }),
                _ => self.gap = turn.number,
            }
        }
        while let Some(first) = self.turns.first().map(|turn| turn.number) {
            let together = (first..)
                .zip(&self.turns)
                .take_while(|(number, turn)| *number == turn.number);
            let count = together.count();
            let written = vault.put_turns(&self.run, &self.turns[..count]).await?;
            self.server.copies().backups.note_log_bytes(written);
            self.turns.drain(..count);
        }
        Ok(())
    }

    /// Ships the log up to a point.
    async fn ship(&mut self, vault: &Vault, point: &LogPoint) -> Result<(), Refusal> {
        let end = point.end;
        while let Some(shipped) = self.shipped
            && (shipped.segment, shipped.to) < (end.segment, end.bytes)
        {
            let number = shipped.segment;
            let (path, allocated, present) = self
                .server
                .on_pool(move |server| Ok(server.engine().segment_file(number)?))
                .await?;
            let is_open = number == end.segment;
            let to = if is_open { end.bytes } else { present };
            if shipped.to >= to {
                self.merge(vault).await?;
                self.shipped = Some(Shipped {
                    segment: number + 1,
                    to: 0,
                    ..shipped
                });
                continue;
            }
            let piece_to = to.min(shipped.to + PIECE_BYTES);
            let is_last = is_open && piece_to == to;
            // Only the last piece of a point has everything that was written before its time: this server may
            // die before it ships that one.
            let (position, covered_ms) = if is_last {
                (end.last_seq.0, point.wall_ms)
            } else {
                (shipped.position, shipped.covered_ms)
            };
            // A file that ends with its content was sealed: a follower goes on to the next segment then.
            let is_sealed = !is_open || present == to;
            let length = if is_sealed { present } else { allocated.max(to) };
            let piece = Piece {
                run: self.run.clone(),
                segment: number,
                from: shipped.to,
                to: piece_to,
                turns: point.turns,
                time_ms: covered_ms,
                position,
            };
            self.put(vault, &piece, &path, length).await?;
            self.shipped = Some(Shipped {
                segment: number,
                to: piece_to,
                position,
                covered_ms,
            });
            self.shipped_since += piece_to - shipped.to;
            self.seen = Instant::now();
            self.note_recent(vault, piece).await?;
        }
        if let (Some(hold), Some(shipped)) = (&mut self.hold, self.shipped) {
            hold.advance(shipped.segment);
        }
        Ok(())
    }

    /// Reads bytes of a segment and writes them as a piece.
    async fn put(
        &self,
        vault: &Vault,
        piece: &Piece,
        path: &std::path::Path,
        length: u64,
    ) -> Result<(), Refusal> {
        let file = self.server.config().data.dir.join(path);
        let (from, to) = (piece.from, piece.to);
        let bytes = self
            .server
            .on_pool(move |_| Ok(read(&file, from, to)))
            .await?
            .map_err(|(path, source)| {
                Refusal::Backup(basalt_backup::Error::Io {
                    during: "reading",
                    path,
                    source,
                })
            })?;
        let written = vault.put_piece(piece, path, length, &bytes).await?;
        self.server.copies().backups.note_log_bytes(written);
        Ok(())
    }

    /// Collects small pieces, and makes one of them when they are many.
    async fn note_recent(&mut self, vault: &Vault, piece: Piece) -> Result<(), Refusal> {
        let fits = self.recent.first().is_none_or(|first| {
            first.segment == piece.segment
                && first.turns == piece.turns
                && piece.to - first.from <= PIECE_BYTES
        });
        if !fits {
            self.merge(vault).await?;
        }
        self.recent.push(piece);
        if self.recent.len() >= MERGED_PIECES {
            self.merge(vault).await?;
        }
        Ok(())
    }

    /// Writes the collected pieces as one, then removes them.
    async fn merge(&mut self, vault: &Vault) -> Result<(), Refusal> {
        let recent = std::mem::take(&mut self.recent);
        let ([first, ..], [.., last]) = (recent.as_slice(), recent.as_slice()) else {
            return Ok(());
        };
        if recent.len() < 2 {
            return Ok(());
        }
        let whole = Piece {
            from: first.from,
            ..last.clone()
        };
        let number = whole.segment;
        let (path, allocated, present) = self
            .server
            .on_pool(move |server| Ok(server.engine().segment_file(number)?))
            .await?;
        // The segment may be sealed by now, and shorter than it was preallocated.
        let length = allocated.min(present).max(whole.to);
        self.put(vault, &whole, &path, length).await?;
        for piece in &recent {
            vault.delete_piece(piece).await?;
        }
        Ok(())
    }

    /// Records now and then that the log has not grown.
    async fn note_seen(&mut self, vault: &Vault, point: &LogPoint) -> Result<(), Refusal> {
        let Some(shipped) = self.shipped else {
            return Ok(());
        };
        if self.seen.elapsed() >= SEEN_PERIOD {
            let place = Piece {
                run: self.run.clone(),
                segment: shipped.segment,
                from: 0,
                to: shipped.to,
                turns: point.turns,
                time_ms: point.wall_ms,
                position: shipped.position,
            };
            vault.put_seen(&place).await?;
            self.seen = Instant::now();
        }
        Ok(())
    }

    /// Acts when the log that is kept has reached its limit.
    async fn bound_log(&mut self) {
        let Some(first) = self.hold.as_ref().map(LogHold::segment) else {
            return;
        };
        let kept = self.server.on_pool(move |server| {
            let last = server.engine().wal_segments().1;
            let lengths =
                (first..=last).map(|number| server.engine().segment_file(number).map(|file| file.2));
            Ok(lengths.sum::<basalt_engine::Result<u64>>()?)
        });
        let Ok(kept) = kept.await else { return };
        let settings = &self.server.config().backup;
        if kept <= settings.max_log_bytes {
            return;
        }
        match settings.when_log_full {
            LogFull::Drop => {
                tracing::error!(
                    "backup: {kept} bytes of the log wait for {}, more than backup.max_log_bytes: they are dropped, and no point in time from here to the next backup can be restored",
                    settings.url
                );
                (self.hold, self.shipped, self.covered) = (None, None, None);
                self.recent.clear();
                self.backup = None;
            }
            LogFull::Refuse if !self.refusing => {
                self.refusing = true;
                let why = format!(
                    "{kept} bytes of the log wait for the store of backups, which is away: backup.max_log_bytes, and backup.when_log_full = \"refuse\""
                );
                self.suspend(Some(why)).await;
            }
            LogFull::Refuse => {}
        }
    }

    async fn suspend(&self, why: Option<String>) {
        let suspended = self.server.on_pool(move |server| {
            server.engine().suspend_writes(why);
            Ok(())
        });
        if let Err(failure) = suspended.await {
            tracing::warn!("backup: {}", failure.message());
        }
    }
}

fn read(path: &std::path::Path, from: u64, to: u64) -> Result<Vec<u8>, (PathBuf, std::io::Error)> {
    use std::os::unix::fs::FileExt as _;
    let read = || {
        let length = usize::try_from(to - from).map_err(std::io::Error::other)?;
        let mut bytes = vec![0; length];
        std::fs::File::open(path)?.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    };
    read().map_err(|error| (path.to_owned(), error))
}
