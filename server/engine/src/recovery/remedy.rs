//! Advice for an operator about a finding of `basalt check`.

use std::fmt;

use crate::error::DAMAGE_REMEDY;

/// The advice that follows a finding, one for each kind of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The manifest is damaged.
    Manifest,
    /// The live manifest was cut short, or a file beside it is damaged.
    ManifestLeftover,
    /// A log segment is missing or damaged.
    Log,
    /// The last write of a process that died.
    TornLog,
    /// An edit in the log belongs to no region.
    StrangeEdit,
    /// Regions leave a gap, or overlap.
    Boundaries,
    /// A store file of a table is missing or damaged.
    StoreFile,
    /// A store file of a snapshot is missing or damaged.
    SnapshotFile,
    /// A file that nothing refers to.
    Orphan,
    /// A directory cannot be looked through.
    Unreadable,
}

impl Remedy {
    /// Whether a copy of the directory of a running server can have this finding.
    pub(super) fn is_of_a_copy(self) -> bool {
        match self {
            Self::Manifest | Self::Log | Self::StrangeEdit | Self::StoreFile | Self::SnapshotFile => true,
            Self::ManifestLeftover | Self::TornLog | Self::Boundaries | Self::Orphan | Self::Unreadable => {
                false
            }
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manifest => {
                "restore the whole data directory from a copy: without its manifest nothing in it can be served"
            }
            Self::ManifestLeftover => "nothing: the next start sets it right",
            Self::Log => {
                "restore the whole data directory from a copy: acknowledged writes are in the log, and no start goes on without them"
            }
            Self::TornLog => "nothing: it was never acknowledged, and the next start cuts it off",
            Self::StrangeEdit => {
                "restore the whole data directory from a copy, and report this: manifest and log are not of one database, or Basalt has a bug"
            }
            Self::Boundaries => "restore the whole data directory from a copy, and report this: no call can cause it",
            Self::StoreFile => DAMAGE_REMEDY,
            Self::SnapshotFile => {
                "delete the snapshot, or put back this one file from a copy that has it; the table itself is checked on its own"
            }
            Self::Orphan => "nothing: the next start moves it to orphans/; remove it there when nothing is missed",
            Self::Unreadable => "give this user the right to read the directory, and check again",
        })
    }
}
