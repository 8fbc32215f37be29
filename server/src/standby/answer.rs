//! The next part of the log that a standby follows, or why there is none.

use std::time::Instant;

use basalt_engine::engine::Place;
use bytes::Bytes;

use super::remote::Failed;
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
    /// The source has no more.
    pub(super) is_end: bool,
    /// With `is_end`, a place that has everything.
    pub(super) end: Place,
    /// When the source had no more than that; `None` if it does not know.
    pub(super) current: Option<Instant>,
    /// Why the source has no more for now, if that is a problem; else empty.
    pub(super) problem: String,
}
