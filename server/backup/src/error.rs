//! Failures of backups. The texts are for operators: they name the object, the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a backup, a restore or a check of one failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused or failed, after retries.
    #[error("{during} {object}: {source}")]
    Store {
        /// The operation that failed.
        during: &'static str,
        /// The object, with the store's URL.
        object: String,
        /// The store's error.
        source: Box<object_store::Error>,
    },
    /// The content of an object differs from what was written.
    #[error("the object {object} is damaged: {what}")]
    Damaged {
        /// The object, with the store's URL.
        object: String,
        /// Description of the damage.
        what: String,
    },
    /// A file of this machine could not be read or written.
    #[error("{during} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        during: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The request does not fit what is there: another owner, a missing key, no such backup.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    pub(crate) fn io(during: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            during,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the object is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Store { source, .. } if matches!(**source, object_store::Error::NotFound { .. }))
    }

    /// Whether an object is missing or damaged, so that retries do not help.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. }) || self.is_not_found()
    }
}
