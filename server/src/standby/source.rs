//! The log that a standby follows: that of the primary itself, or the one in the store of its backups.

use std::time::Instant;

use basalt_engine::engine::Place;
use bytes::Bytes;

use super::direct::Direct;
use super::remote::{Failed, Remote};
use super::stored::StoredLog;
use super::wire::SecurityFiles;
use crate::server::copies::standing::Leader;
use crate::service::Failure;

/// Why a step failed.
pub(super) enum Problem {
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

impl From<basalt_backup::Error> for Problem {
    fn from(error: basalt_backup::Error) -> Self {
        Self::Passing(error.to_string())
    }
}

/// The next part of the log.
pub(super) struct Answer {
    /// The primary, if the source knows it.
    pub(super) leader: Option<Leader>,
    /// The files of users, rights and certificates, if there may be others than before.
    pub(super) security: Option<SecurityFiles>,
    pub(super) piece: Bytes,
    /// Whether the source has no more.
    pub(super) is_end: bool,
    /// With `is_end`, a place that has everything.
    pub(super) end: Place,
    /// When the source had no more than that; `None` if it does not know.
    pub(super) current: Option<Instant>,
    /// Why the source has no more for now, if that is a problem; else empty.
    pub(super) problem: String,
}

/// What a standby follows.
pub(super) enum Source {
    Primary(Direct),
    Store(Box<StoredLog>),
}

impl Source {
    /// Requests the log from a place on, which acknowledges everything before it. May be given up.
    pub(super) async fn ask(&mut self, place: Place) -> Result<Answer, Problem> {
        match self {
            Self::Primary(direct) => direct.ask(place).await,
            Self::Store(stored) => stored.ask(place).await,
        }
    }

    /// Prepares for the next attempt after one that has failed.
    pub(super) async fn look_elsewhere(&mut self) {
        match self {
            Self::Primary(direct) => direct.look_elsewhere().await,
            Self::Store(stored) => stored.forget_vault(),
        }
    }

    /// The URL.
    pub(super) fn url(&self) -> &str {
        match self {
            Self::Primary(direct) => direct.remote().url(),
            Self::Store(stored) => stored.url(),
        }
    }

    /// The server that is asked; `None` if none is.
    pub(super) fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Primary(direct) => Some(direct.remote()),
            Self::Store(_) => None,
        }
    }

    /// A server that has taken the place of the primary.
    pub(super) fn leader(&self) -> Option<&Leader> {
        match self {
            Self::Primary(direct) => direct.leader(),
            Self::Store(_) => None,
        }
    }

    /// Removes files that only a standby needs.
    pub(super) fn end(&self) {
        if let Self::Store(stored) = self {
            stored.end();
        }
    }

    /// Reads the log up to its present end with the next requests.
    pub(super) fn refresh(&mut self) {
        if let Self::Store(stored) = self {
            stored.refresh();
        }
    }
}
