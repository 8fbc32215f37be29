//! The log of the primary, requested from its HTTP port.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::engine::Place;
use basalt_engine::id::SeqId;

use super::answer::{Answer, Problem};
use super::leader;
use super::remote::Remote;
use super::wire::{self, LogHead, Status, WantedLog};
use crate::config::StandbyReads;
use crate::server::Server;
use crate::server::copies::standing::{Leader, Role};
use crate::service::Failure;

/// Longest wait for an answer, which comes at the latest after a heartbeat.
const ANSWER: Duration = Duration::from_secs(20);

/// Longest wait for the answer of a server that may not be the primary any more.
const LOOK_ELSEWHERE: Duration = Duration::from_secs(2);

/// Time between two looks at the files of users.
const SECURITY: Duration = Duration::from_secs(1);

/// A primary that is asked.
pub(super) struct Direct {
    server: Arc<Server>,
    /// The server that is asked, and those that may be the primary if that one is not.
    remote: Remote,
    others: VecDeque<Remote>,
    name: String,
    /// Digest of the files of users, and when it was made.
    security: (String, Option<Instant>),
    /// The server that has taken the place of the primary.
    leader: Option<Leader>,
}

impl Direct {
    /// The primary at one of the URLs that the settings and the last primary give.
    pub(super) fn new(server: &Arc<Server>) -> Result<Self, String> {
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
        Ok(Self {
            server: Arc::clone(server),
            remote,
            others: remotes,
            name: super::seed::name(server.config()),
            security: (String::new(), None),
            leader: None,
        })
    }

    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(super) fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref()
    }

    /// Asks for the log. May be given up.
    pub(super) async fn ask(&mut self, place: Place) -> Result<Answer, Problem> {
        self.look_at_security().await?;
        let wanted = self.wanted(place);
        let answer = self.remote.post(wire::LOG, &wanted, Some(ANSWER)).await?;
        let answer = answer.bytes().await.map_err(|error| self.remote.away(&error))?;
        let unread =
            |what: String| Problem::Passing(format!("an answer of the primary cannot be read: {what}"));
        let end = answer
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(|| unread("it has no line".into()))?;
        let head: LogHead =
            serde_json::from_slice(&answer[..end]).map_err(|error| unread(error.to_string()))?;
        Ok(Answer {
            leader: Some(head.leader),
            security: head.security,
            piece: answer.slice(end + 1..),
            is_end: head.is_end,
            end: Place {
                position: SeqId(head.end),
                turn: head.turns,
            },
            current: Some(Instant::now()),
            problem: String::new(),
        })
    }

    fn wanted(&self, place: Place) -> WantedLog {
        WantedLog {
            name: self.name.clone(),
            url: leader::url(&self.server),
            cluster_id: self.server.engine().cluster_id().to_string(),
            term: self.server.copies().standing.term(),
            position: place.position.0,
            turn: place.turn,
            security: self.security.0.clone(),
            reads: (self.server.config().standby.reads == StandbyReads::Stale)
                .then(|| leader::own(&self.server)),
        }
    }

    /// Selects another server that may be the primary: the successor that a fenced primary names, or else
    /// the next one of the list.
    pub(super) async fn look_elsewhere(&mut self) {
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

    /// Makes the digest of the files of users again, now and then.
    async fn look_at_security(&mut self) -> Result<(), Failure> {
        if self.security.1.is_some_and(|last| last.elapsed() < SECURITY) {
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
}
