//! Faults of a live simulated disk: which call fails, how, and how often.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::SplitMix64;

/// A call of [`Vfs`](crate::fs::Vfs) or [`File`](crate::fs::File), as faults name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Opening a file that is there.
    Open,
    /// Creating a file.
    Create,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// fdatasync and fsync of a file.
    Sync,
    /// Reserving space.
    Allocate,
    /// Cutting or extending.
    SetLen,
    /// Asking for a file's size.
    Len,
    /// Creating directories.
    CreateDir,
    /// Listing a directory.
    List,
    /// Asking whether a name is there.
    Exists,
    /// Renaming. Its path is the target.
    Rename,
    /// Linking. Its path is the new name.
    Link,
    /// Removing a file.
    RemoveFile,
    /// Removing a directory.
    RemoveDir,
    /// Syncing a directory.
    SyncDir,
    /// Locking.
    Lock,
    /// Asking for free space.
    Space,
    /// Drawing a uuid. Its path is empty.
    DrawUuid,
}

impl OpKind {
    /// Whether a full disk may fail the call: it writes to the disk, or makes a change durable.
    pub fn changes(self) -> bool {
        match self {
            Self::Create
            | Self::Write
            | Self::Sync
            | Self::Allocate
            | Self::SetLen
            | Self::CreateDir
            | Self::Rename
            | Self::Link
            | Self::RemoveFile
            | Self::RemoveDir
            | Self::SyncDir => true,
            Self::Open
            | Self::Read
            | Self::Len
            | Self::List
            | Self::Exists
            | Self::Lock
            | Self::Space
            | Self::DrawUuid => false,
        }
    }
}

/// Kinds of calls that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ops {
    /// All.
    All,
    /// The kinds for which [`OpKind::changes`] holds.
    Changes,
    /// One.
    One(OpKind),
}

impl Ops {
    pub(super) fn has(self, op: OpKind) -> bool {
        match self {
            Self::All => true,
            Self::Changes => op.changes(),
            Self::One(wanted) => wanted == op,
        }
    }
}

impl From<OpKind> for Ops {
    fn from(op: OpKind) -> Self {
        Self::One(op)
    }
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Fails with this error. A write may have written a first part, as a real one may. A file's sync has
    /// ext4's semantics: the unsynced bytes count as clean from then on, a later sync succeeds, reads still
    /// see them, and a power cut loses them. A directory's sync leaves its changes pending.
    Error(Errno),
    /// A read returns half of the requested bytes, as at the end of a file that is too short. Other
    /// calls are not affected.
    ShortRead,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::Error(errno)
    }
}

/// How often a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The next matching call only.
    Once,
    /// Every matching call until the fault is healed.
    Always,
    /// The matching call of that number only; 0 is the next one.
    Nth(u64),
    /// The matching call of that number and every later one; 0 is the next one.
    From(u64),
    /// Each matching call with this many chances in a thousand.
    Chance(u64),
}

/// Names a fault, to heal it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(u64);

#[derive(Debug)]
struct Fault {
    id: FaultId,
    ops: Ops,
    /// A part of the path; empty: every path.
    pattern: String,
    failure: Failure,
    times: Times,
    /// Matching calls so far.
    seen: u64,
    /// The calls it has failed.
    struck: Vec<(OpKind, PathBuf)>,
}

/// The faults that wait for their call.
#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Fault>,
    next_id: u64,
}

impl Faults {
    pub(super) fn add(&mut self, ops: Ops, pattern: &str, failure: Failure, times: Times) -> FaultId {
        let id = FaultId(self.next_id);
        self.next_id += 1;
        self.list.push(Fault {
            id,
            ops,
            pattern: pattern.to_owned(),
            failure,
            times,
            seen: 0,
            struck: Vec::new(),
        });
        id
    }

    pub(super) fn heal(&mut self, id: FaultId) {
        self.list.retain(|fault| fault.id != id);
    }

    pub(super) fn heal_all(&mut self) {
        self.list.clear();
    }

    /// The calls that a fault has failed so far; none once it is healed.
    pub(super) fn struck(&self, id: FaultId) -> Vec<(OpKind, PathBuf)> {
        let fault = self.list.iter().find(|fault| fault.id == id);
        fault.map(|fault| fault.struck.clone()).unwrap_or_default()
    }

    /// Number of calls so far that the fault could strike.
    pub(super) fn matched(&self, id: FaultId) -> u64 {
        let fault = self.list.iter().find(|fault| fault.id == id);
        fault.map_or(0, |fault| fault.seen)
    }

    /// The failure of this call, if any. The oldest fault that strikes wins; every matching fault
    /// counts the call.
    pub(super) fn strike(&mut self, op: OpKind, path: &Path, dice: &mut SplitMix64) -> Option<Failure> {
        if self.list.is_empty() {
            return None;
        }
        let text = path.to_string_lossy();
        let mut struck = None;
        for fault in &mut self.list {
            let matches = fault.ops.has(op)
                && text.contains(&fault.pattern)
                && (fault.failure != Failure::ShortRead || op == OpKind::Read);
            if !matches {
                continue;
            }
            let number = fault.seen;
            fault.seen += 1;
            let strikes = match fault.times {
                Times::Once => number == 0,
                Times::Always => true,
                Times::Nth(wanted) => number == wanted,
                Times::From(first) => number >= first,
                Times::Chance(per_mille) => dice.below(1_000) < per_mille,
            };
            if strikes && struck.is_none() {
                struck = Some(fault.failure);
                fault.struck.push((op, path.to_owned()));
            }
        }
        struck
    }
}

/// Whether the process dies just before or just after doing a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashWhen {
    /// The call leaves no trace.
    Before,
    /// The call is done in full, but its result never reaches the process.
    After,
}

/// The error of every call after a simulated crash: the process no longer exists.
#[derive(Clone, Copy, Debug)]
struct Crashed;

impl fmt::Display for Crashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated crash: this process is dead")
    }
}

impl std::error::Error for Crashed {}

/// The error that a dead process's calls end with.
pub(super) fn crashed() -> io::Error {
    io::Error::other(Crashed)
}

/// Whether an error means that a simulated process died, and not that its disk failed.
pub fn is_crash(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<Crashed>())
}
