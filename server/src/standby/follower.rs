//! A standby: requests the log from its [`Source`], applies it, and becomes the primary on request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::engine::{Applied, Place};
use basalt_engine::{Error, id::SeqId};
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Problem};
use super::direct::Direct;
use super::leader;
use super::remote::{Failed, Remote};
use super::source::Source;
use super::stored::StoredLog;
use super::wire::{self, Fence, Fenced, HEARTBEAT};
use crate::config::StandbyReads;
use crate::server::Server;
use crate::server::copies::following::{Became, Promotion};
use crate::server::copies::standing::{Leader, Role};
use crate::service::Failure;

/// Longest wait for the answer to a fence.
const FENCE: Duration = Duration::from_secs(5);

/// Longest time for what is left of the log of a fenced primary, or in the store.
const CATCH_UP: Duration = Duration::from_secs(30);

/// Pauses after failures.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Least time between two log lines about a primary that is away.
const COMPLAINT: Duration = Duration::from_mins(1);

/// Time between two saved places.
const SAVE: Duration = Duration::from_secs(1);

/// A primary that does not answer for this long is away: a restart takes less.
const AWAY: Duration = Duration::from_secs(1);

/// Time between two attempts to fence a primary that is away.
const FENCING: Duration = Duration::from_secs(1);

struct Follower {
    server: Arc<Server>,
    source: Source,
    place: Place,
    /// The last place that was stored, and when.
    saved: (Place, Instant),
}

/// Follows the primary until the server stops, or is the primary. Cancels `restart` when the server has to
/// start again with a new copy. A primary fences the one before.
pub(crate) async fn run(server: Arc<Server>, stop: CancellationToken, restart: CancellationToken) {
    if server.copies().standing.role() == Role::Standby {
        let followed = tokio::select! {
            () = stop.cancelled() => return,
            followed = follow(&server) => followed,
        };
        if let Err(why) = followed {
            tracing::error!("this standby starts again with a new copy of the primary: {why}");
            restart.cancel();
            return;
        }
    }
    tokio::select! {
        () = stop.cancelled() => {}
        () = fence_until_done(&server) => {}
    }
}

/// Follows until it is the primary. Fails when a new copy is needed.
async fn follow(server: &Arc<Server>) -> Result<(), String> {
    let following = &server.copies().following;
    let Some(mut asked) = following.take_asked() else {
        return Ok(());
    };
    let stored = server.copies().standing.stored();
    let source = match server.config().followed_store() {
        Some(url) => Source::Store(Box::new(StoredLog::new(server, url))),
        None => Source::Primary(Box::new(Direct::new(server)?)),
    };
    let mut follower = Follower {
        server: Arc::clone(server),
        source,
        place: stored.place(),
        saved: (stored.place(), Instant::now()),
    };
    tracing::info!(
        "this server follows {} from position {}",
        follower.source.url(),
        follower.place.position
    );
    let (mut pause, mut complained) = (PAUSE_MIN, None::<Instant>);
    let mut failing = None::<Instant>;
    loop {
        let answer = tokio::select! {
            biased;
            Some(promotion) = asked.recv() => {
                if follower.answer(promotion).await {
                    return Ok(());
                }
                continue;
            }
            answer = follower.source.ask(follower.place) => answer,
        };
        // Never cancelled: the place must be that of the applied rows.
        let step = match answer {
            Ok(answer) => follower.apply(answer).await,
            Err(problem) => Err(problem),
        };
        match step {
            Ok(_) => {
                failing = None;
                follower.stand_in(false).await;
                if complained.take().is_some() {
                    tracing::info!("this server follows {} again", follower.source.url());
                }
                pause = PAUSE_MIN;
            }
            Err(Problem::Copy(why)) => {
                follower.begin_copy().map_err(|error| error.to_string())?;
                return Err(why);
            }
            Err(Problem::Passing(why)) => {
                following.note_problem(&why);
                let since = *failing.get_or_insert_with(Instant::now);
                follower.stand_in(since.elapsed() >= AWAY).await;
                follower.source.look_elsewhere().await;
                if complained.is_none_or(|last| last.elapsed() >= COMPLAINT) {
                    complained = Some(Instant::now());
                    tracing::warn!("this standby does not follow: {why}");
                }
                tokio::select! {
                    biased;
                    Some(promotion) = asked.recv() => {
                        if follower.answer(promotion).await {
                            return Ok(());
                        }
                    }
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

impl Follower {
    /// Answers the question for a promotion. Returns whether this server is the primary now.
    async fn answer(&mut self, promotion: Promotion) -> bool {
        let promoted = self.promote().await;
        let done = promoted.is_ok();
        // Fails when the request has ended.
        let _ = promotion.send(promoted);
        done
    }

    /// Applies an answer. Returns whether it had all that there is.
    async fn apply(&mut self, answer: Answer) -> Result<bool, Problem> {
        let Answer {
            leader,
            security,
            piece,
            ..
        } = answer;
        let place = self.place;
        let (place, applied) = self
            .server
            .on_pool(move |server| {
                if let Some(files) = security {
                    leader::take_security(&server.config().data.dir, &files)
                        .map_err(|error| Failure::plain_io(format!("the directory security: {error}")))?;
                    server.security().reload();
                }
                Ok(apply(server, place, leader, &piece))
            })
            .await?;
        self.place = place;
        let applied = applied?;
        if let Some(unfollowed) = applied.unfollowed {
            return Err(Problem::Copy(unfollowed.0));
        }
        let is_all = answer.is_end && place.position >= answer.end.position && place.turn >= answer.end.turn;
        let current = answer.current.filter(|_| is_all);
        let following = &self.server.copies().following;
        following.note(place, applied.rows, current, &answer.problem);
        if applied.gone > 0 {
            tracing::debug!(
                "{} cells of tables or families that are gone were left out",
                applied.gone
            );
        }
        if self.saved.0 != place && self.saved.1.elapsed() >= SAVE {
            self.save().await?;
        }
        Ok(is_all)
    }

    async fn save(&mut self) -> Result<(), Failure> {
        let place = self.place;
        self.server
            .on_pool(move |server| {
                let stored = server.copies().standing.store_place(place);
                stored.map_err(|error| Failure::plain_io(format!("storing the standing: {error}")))
            })
            .await?;
        self.saved = (place, Instant::now());
        Ok(())
    }

    fn begin_copy(&self) -> std::io::Result<()> {
        let standing = &self.server.copies().standing;
        standing.change(|stored| {
            stored.role = Role::Copying;
            if let Some(leader) = self.source.leader() {
                stored.leader = Some(leader.clone());
            }
        })
    }

    /// Becomes the primary: fences the one before, if that answers, and takes what is left of its log.
    async fn promote(&mut self) -> Result<Became, String> {
        let server = Arc::clone(&self.server);
        let standing = &server.copies().standing;
        let term = standing.term() + 1;
        let before = self.before()?;
        let fenced = match &before {
            Some(before) => self.fence(before, term).await?,
            None => None,
        };
        let mut problem = String::new();
        match &fenced {
            Some(fenced) => self.catch_up(fenced).await?,
            None if self.follows_store() => problem = self.read_to_end().await?,
            None => {}
        }
        let is_fenced = fenced.is_some();
        let to_fence = standing.leader().map(|leader| leader.http);
        let to_fence = to_fence.or_else(|| before.map(|before| before.url().to_owned()));
        self.stand_in(false).await;
        let promoted = server.on_pool(move |server| {
            let engine = server.engine();
            engine.keep_turns()?;
            engine.set_follows(None)?;
            let stored = server.copies().standing.change(|stored| {
                stored.role = Role::Primary;
                stored.term = term;
                stored.leader = None;
                stored.to_fence = to_fence.filter(|_| !is_fenced);
                stored.origin = None;
            });
            stored.map_err(|error| Failure::plain_io(format!("storing the standing: {error}")))
        });
        promoted.await.map_err(|failure| failure.message().to_owned())?;
        self.source.end();
        tracing::info!("this server is the primary of term {term}");
        Ok(Became {
            term,
            position: self.place.position.0,
            fenced: is_fenced,
            lag: self.follows_store().then(|| server.copies().following.lag()),
            problem,
        })
    }

    /// Has `hbase:meta` in place of the primary, while that is away: a client whose get with
    /// `Consistency.TIMELINE` fails at the primary reads there. The regions stay the primary's, and the
    /// replicas are here.
    async fn stand_in(&self, is_away: bool) {
        let server = &self.server;
        let reads = server.config().standby.reads == StandbyReads::Stale && !self.follows_store();
        let primary = server.copies().standing.leader().filter(|_| is_away && reads);
        if primary.is_some() == server.placement().stands_in() {
            return;
        }
        let primary = primary.as_ref().map(leader::server_name);
        let changed = server
            .on_pool(move |server| Ok(server.placement().set_absent(server.engine(), primary)?))
            .await;
        if let Err(failure) = changed {
            tracing::warn!("the places of regions: {}", failure.message());
        }
    }

    fn follows_store(&self) -> bool {
        matches!(self.source, Source::Store(_))
    }

    /// The primary, as far as its HTTP port is known.
    fn before(&self) -> Result<Option<Remote>, String> {
        if let Some(remote) = self.source.remote() {
            return Ok(Some(remote.clone()));
        }
        let Some(leader) = self.server.copies().standing.leader() else {
            return Ok(None);
        };
        let remote = Remote::new(self.server.config(), &leader.http);
        remote.map(Some).map_err(|failed| failed.to_string())
    }

    /// Fences the primary. Returns the end of its log; `None` if it does not answer.
    async fn fence(&self, before: &Remote, term: u64) -> Result<Option<Fenced>, String> {
        let fence = fence(&self.server, term);
        match before.ask::<Fenced>(wire::FENCE, &fence, FENCE).await {
            Ok(fenced) => Ok(Some(fenced)),
            Err(Failed::Away { why, .. }) => {
                tracing::warn!("the primary does not answer, and is fenced when it does: {why}");
                Ok(None)
            }
            // A standby of its backups may have no right there.
            Err(Failed::Refused { status, text, .. }) if self.follows_store() && status != 409 => {
                tracing::warn!("the primary refuses to be fenced by this server: {text}");
                Ok(None)
            }
            Err(failed) => Err(failed.to_string()),
        }
    }

    /// One step of the log.
    async fn step(&mut self) -> Result<bool, Problem> {
        let answer = self.source.ask(self.place).await?;
        self.apply(answer).await
    }

    /// Takes the log of a fenced primary up to its end.
    async fn catch_up(&mut self, end: &Fenced) -> Result<(), String> {
        let mut until = Instant::now() + CATCH_UP;
        self.source.refresh();
        while self.place.position.0 < end.position || self.place.turn < end.turn {
            let before = self.place;
            let away = match self.step().await {
                Ok(_) => "it is not shipped yet".to_owned(),
                Err(Problem::Copy(why)) => {
                    return Err(format!(
                        "the primary is fenced, and its last changes cannot be followed: {why}"
                    ));
                }
                Err(Problem::Passing(why)) => {
                    tokio::time::sleep(PAUSE_MIN).await;
                    why
                }
            };
            if self.place != before {
                until = Instant::now() + CATCH_UP;
            }
            if Instant::now() >= until {
                return Err(format!(
                    "the primary is fenced, and the end of its log was not received, and nothing of it within {CATCH_UP:?}: {away}; this server is at position {} of {}. Repeat the command; with the primary stopped it goes on without the rest",
                    self.place.position, end.position
                ));
            }
        }
        Ok(())
    }

    /// Takes what the store has of the log. Returns why not all of it; empty if it is all. Fails when a newer
    /// backup has more.
    async fn read_to_end(&mut self) -> Result<String, String> {
        let mut until = Instant::now() + CATCH_UP;
        self.source.refresh();
        loop {
            match self.step().await {
                Ok(true) => return Ok(String::new()),
                Ok(false) => until = Instant::now() + CATCH_UP,
                Err(Problem::Copy(why)) => {
                    return Err(format!(
                        "this standby gets a new copy first: {why}. Repeat the command when it is a standby again"
                    ));
                }
                Err(Problem::Passing(why)) if Instant::now() >= until => {
                    tracing::warn!("the end of the shipped log was not read: {why}");
                    return Ok(why);
                }
                Err(Problem::Passing(_)) => {
                    self.source.look_elsewhere().await;
                    tokio::time::sleep(PAUSE_MIN).await;
                }
            }
        }
    }
}

/// Applies a piece. Returns the place, also of a piece that failed.
fn apply(
    server: &Server,
    mut place: Place,
    leader: Option<Leader>,
    piece: &[u8],
) -> (Place, Result<Applied, Failure>) {
    let standing = &server.copies().standing;
    let learned = standing.change(|stored| stored.leader = leader.or(stored.leader.take()));
    if let Err(error) = learned {
        return (
            place,
            Err(Failure::plain_io(format!("storing the standing: {error}"))),
        );
    }
    let mut store = |place| {
        let dir = &server.config().data.dir;
        let stored = standing.store_place(place);
        stored.map_err(|source| Error::io("storing the standing in", dir, source))
    };
    let applied = server
        .engine()
        .apply_piece(piece, &mut place, &mut store)
        .map_err(Failure::from);
    (place, applied)
}

fn fence(server: &Server, term: u64) -> Fence {
    Fence {
        cluster_id: server.engine().cluster_id().to_string(),
        term,
        leader: leader::own(server),
    }
}

/// Repeats the fence of the primary before until that has confirmed it.
async fn fence_until_done(server: &Arc<Server>) {
    let standing = &server.copies().standing;
    while let Some(url) = standing.stored().to_fence.filter(|_| standing.is_primary()) {
        let fence = fence(server, standing.term());
        let fenced = match Remote::new(server.config(), &url) {
            Ok(remote) => remote.ask::<Fenced>(wire::FENCE, &fence, FENCE).await,
            Err(failed) => Err(failed),
        };
        match fenced {
            Ok(fenced) => {
                tracing::info!(
                    "the primary before, {url}, is fenced; its log ends at position {}",
                    SeqId(fenced.position)
                );
                let stored = server
                    .on_pool(|server| {
                        let stored = server.copies().standing.change(|stored| stored.to_fence = None);
                        stored.map_err(|error| Failure::plain_io(error.to_string()))
                    })
                    .await;
                if let Err(failure) = stored {
                    tracing::warn!("storing the standing: {}", failure.message());
                }
            }
            Err(failed) => tracing::debug!("the primary before is not fenced yet: {failed}"),
        }
        tokio::time::sleep(FENCING.max(HEARTBEAT)).await;
    }
}
