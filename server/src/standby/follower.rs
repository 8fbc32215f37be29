//! A standby: requests the log, applies it, and becomes the primary on request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::engine::{Applied, Place};
use basalt_engine::{Error, id::SeqId};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::leader;
use super::remote::{Failed, Remote};
use super::wire::{self, Fence, Fenced, HEARTBEAT, LogHead, Status, WantedLog};
use crate::server::Server;
use crate::server::copies::following::Promotion;
use crate::server::copies::standing::{Leader, Role};
use crate::service::Failure;

/// Longest wait for an answer, which comes at the latest after a heartbeat.
const ANSWER: Duration = Duration::from_secs(20);

/// Longest wait for the answer of a server that may not be the primary any more.
const LOOK_ELSEWHERE: Duration = Duration::from_secs(2);

/// Longest wait for the answer to a fence.
const FENCE: Duration = Duration::from_secs(5);

/// Longest time for what is left of the log of a fenced primary.
const CATCH_UP: Duration = Duration::from_secs(30);

/// Pauses after failures.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Least time between two log lines about a primary that is away.
const COMPLAINT: Duration = Duration::from_mins(1);

/// Time between two saved places, and between two looks at the files of users.
const SAVE: Duration = Duration::from_secs(1);

/// Time between two attempts to fence a primary that is away.
const FENCING: Duration = Duration::from_secs(1);

/// Why a step failed.
enum Problem {
    /// It is to be tried again.
    Passing(String),
    /// A new copy is needed.
    Copy(String),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Passing(failure.message().to_owned())
    }
}

impl From<Failed> for Problem {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused {
                status: 410, text, ..
            } => Self::Copy(text),
            failed => Self::Passing(failed.to_string()),
        }
    }
}

struct Follower {
    server: Arc<Server>,
    /// The server that is asked, and those that may be the primary if that one is not.
    remote: Remote,
    others: VecDeque<Remote>,
    name: String,
    place: Place,
    /// The last place that was stored, and when.
    saved: (Place, Instant),
    /// Digest of the files of users, and when it was made.
    security: (String, Option<Instant>),
    /// The server that has taken the place of the primary.
    leader: Option<Leader>,
}

/// Follows the primary until the server stops, or is the primary. Cancels `restart` when the server has to start
/// again with a new copy. A primary fences the one before.
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
    let urls = super::seed::primaries(server.config(), stored.leader.as_ref());
    let mut remotes = VecDeque::new();
    for url in &urls {
        let remote = Remote::new(server.config(), url);
        remotes.push_back(remote.map_err(|failed| failed.to_string())?);
    }
    let remote = remotes
        .pop_front()
        .ok_or("this standby does not know its primary: set standby.follow")?;
    let mut follower = Follower {
        server: Arc::clone(server),
        remote,
        others: remotes,
        name: super::seed::name(server.config()),
        place: stored.place(),
        saved: (stored.place(), Instant::now()),
        security: (String::new(), None),
        leader: None,
    };
    tracing::info!(
        "this server follows {} from position {}",
        follower.remote.url(),
        follower.place.position
    );
    let (mut pause, mut complained) = (PAUSE_MIN, None::<Instant>);
    loop {
        let answer = tokio::select! {
            biased;
            Some(promotion) = asked.recv() => {
                if follower.answer(promotion).await {
                    return Ok(());
                }
                continue;
            }
            answer = follower.ask() => answer,
        };
        // Never cancelled: the place must be that of the applied rows.
        let step = match answer {
            Ok(answer) => follower.apply(answer).await,
            Err(problem) => Err(problem),
        };
        match step {
            Ok(_) => {
                if complained.take().is_some() {
                    tracing::info!("this server follows {} again", follower.remote.url());
                }
                pause = PAUSE_MIN;
            }
            Err(Problem::Copy(why)) => {
                follower.begin_copy().map_err(|error| error.to_string())?;
                return Err(why);
            }
            Err(Problem::Passing(why)) => {
                following.note_problem(&why);
                follower.look_elsewhere().await;
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
    /// Asks for the log. May be given up.
    async fn ask(&mut self) -> Result<Bytes, Problem> {
        self.look_at_security().await?;
        let wanted = self.wanted();
        let answer = self.remote.post(wire::LOG, &wanted, Some(ANSWER)).await?;
        Ok(answer.bytes().await.map_err(|error| self.remote.away(&error))?)
    }

    /// Answers the question for a promotion. Returns whether this server is the primary now.
    async fn answer(&mut self, promotion: Promotion) -> bool {
        let promoted = self.promote().await;
        let done = promoted.is_ok();
        // Fails when the request has ended.
        let _ = promotion.send(promoted);
        done
    }

    /// Selects another server that may be the primary: the one in place of a fenced primary, or the next in the list.
    async fn look_elsewhere(&mut self) {
        let status: Result<Status, _> = self.remote.get(wire::STATUS, LOOK_ELSEWHERE).await;
        if let Ok(status) = status
            && status.role == Role::Fenced
            && let Some(leader) = status.leader
            && let Ok(remote) = Remote::new(self.server.config(), &leader.http)
        {
            tracing::info!(
                "the primary {} was replaced by {}",
                self.remote.url(),
                remote.url()
            );
            self.remote = remote;
            self.leader = Some(leader);
            return;
        }
        if let Some(other) = self.others.pop_front() {
            let before = std::mem::replace(&mut self.remote, other);
            self.others.push_back(before);
        }
    }

    fn wanted(&self) -> WantedLog {
        WantedLog {
            name: self.name.clone(),
            url: leader::url(&self.server),
            cluster_id: self.server.engine().cluster_id().to_string(),
            term: self.server.copies().standing.term(),
            position: self.place.position.0,
            turn: self.place.turn,
            security: self.security.0.clone(),
        }
    }

    /// Applies an answer. Returns whether it had all that there is.
    async fn apply(&mut self, answer: Bytes) -> Result<bool, Problem> {
        let unread =
            |what: String| Problem::Passing(format!("an answer of the primary cannot be read: {what}"));
        let end = answer
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(|| unread("it has no line".into()))?;
        let head: LogHead =
            serde_json::from_slice(&answer[..end]).map_err(|error| unread(error.to_string()))?;
        let piece = answer.slice(end + 1..);
        let (place, leader, security) = (self.place, head.leader, head.security);
        let (place, applied) = self
            .server
            .on_pool(move |server| {
                if let Some(files) = security {
                    leader::take_security(&server.config().data.dir, &files)
                        .map_err(|error| Failure::plain_io(format!("the directory security: {error}")))?;
                    server.security().reload();
                }
                Ok(apply(server, place, &leader, &piece))
            })
            .await?;
        self.place = place;
        let applied = applied?;
        if let Some(unfollowed) = applied.unfollowed {
            return Err(Problem::Copy(unfollowed.0));
        }
        let is_all = head.is_end && place.position.0 >= head.end && place.turn >= head.turns;
        self.server.copies().following.note(place, applied.rows, is_all);
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

    /// Makes the digest of the files of users again, now and then.
    async fn look_at_security(&mut self) -> Result<(), Failure> {
        if self.security.1.is_some_and(|last| last.elapsed() < SAVE) {
            return Ok(());
        }
        let digest = self
            .server
            .on_pool(|server| {
                leader::security_digest(&server.config().data.dir)
                    .map_err(|error| Failure::plain_io(format!("the directory security: {error}")))
            })
            .await?;
        self.security = (digest, Some(Instant::now()));
        Ok(())
    }

    fn begin_copy(&self) -> std::io::Result<()> {
        let standing = &self.server.copies().standing;
        standing.change(|stored| {
            stored.role = Role::Copying;
            if let Some(leader) = &self.leader {
                stored.leader = Some(leader.clone());
            }
        })
    }

    /// Becomes the primary: fences the one before, if that answers, and takes what is left of its log. Returns term,
    /// position, and whether the one before is fenced.
    async fn promote(&mut self) -> Result<(u64, u64, bool), String> {
        let server = Arc::clone(&self.server);
        let standing = &server.copies().standing;
        let term = standing.term() + 1;
        let fence = fence(&server, term);
        let fenced = match self.remote.ask::<Fenced>(wire::FENCE, &fence, FENCE).await {
            Ok(fenced) => {
                self.catch_up(&fenced).await?;
                true
            }
            Err(Failed::Away { why, .. }) => {
                tracing::warn!("the primary does not answer, and is fenced when it does: {why}");
                false
            }
            Err(failed) => return Err(failed.to_string()),
        };
        let before = standing.leader();
        let place = self.place;
        let url = self.remote.url().to_owned();
        let promoted = server.on_pool(move |server| {
            let engine = server.engine();
            engine.keep_turns()?;
            engine.set_follows(None)?;
            let stored = server.copies().standing.change(|stored| {
                stored.role = Role::Primary;
                stored.term = term;
                stored.leader = None;
                stored.to_fence = (!fenced).then(|| before.map_or(url, |leader| leader.http));
            });
            stored.map_err(|error| Failure::plain_io(format!("storing the standing: {error}")))
        });
        promoted.await.map_err(|failure| failure.message().to_owned())?;
        tracing::info!("this server is the primary of term {term}");
        Ok((term, place.position.0, fenced))
    }

    /// Takes the log of a fenced primary up to its end.
    async fn catch_up(&mut self, end: &Fenced) -> Result<(), String> {
        let until = Instant::now() + CATCH_UP;
        while self.place.position.0 < end.position || self.place.turn < end.turn {
            let answer = self.ask().await;
            let step = match answer {
                Ok(answer) => self.apply(answer).await,
                Err(problem) => Err(problem),
            };
            match step {
                Ok(_) => {}
                Err(Problem::Copy(why)) => {
                    return Err(format!(
                        "the primary is fenced, and its last changes cannot be followed: {why}"
                    ));
                }
                Err(Problem::Passing(why)) if Instant::now() >= until => {
                    return Err(format!(
                        "the primary is fenced, and the end of its log was not received within {CATCH_UP:?}: {why}; this server is at position {} of {}. Repeat the command; with the primary stopped it goes on without the rest",
                        self.place.position, end.position
                    ));
                }
                Err(Problem::Passing(_)) => tokio::time::sleep(PAUSE_MIN).await,
            }
        }
        Ok(())
    }
}

/// Applies a piece. Returns the place, also of a piece that failed.
fn apply(
    server: &Server,
    mut place: Place,
    leader: &Leader,
    piece: &[u8],
) -> (Place, Result<Applied, Failure>) {
    let standing = &server.copies().standing;
    let learned = standing.change(|stored| stored.leader = Some(leader.clone()));
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
