//! The log that a standby follows: that of the primary itself, or the one in the store of its backups.

use basalt_engine::engine::Place;

use super::answer::{Answer, Problem};
use super::direct::Direct;
use super::remote::Remote;
use super::stored::StoredLog;
use crate::server::copies::standing::Leader;

/// The log that a standby follows.
pub(super) enum Source {
    Primary(Box<Direct>),
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
