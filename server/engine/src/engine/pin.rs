//! Pins, for backups, and the end of the log, for copies that follow it.

use std::path::PathBuf;

use super::Engine;
use crate::catalog::{Pin, Turn};
use crate::error::{Error, Result};
use crate::wal::{LogEnd, LogHold};

/// A durable end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPoint {
    /// Where it ends.
    pub end: LogEnd,
    /// See [`Pin::turns`].
    pub turns: u64,
    /// The wall clock's milliseconds.
    pub wall_ms: u64,
}

impl Engine {
    /// Pins one read point over all tables, snapshots and namespaces, with the files that make it; they stay
    /// on the disk until the pin is dropped. A directory with copies of them, in which `Restore` writes the
    /// manifest, is a database with exactly the rows up to `Pin::position`.
    ///
    /// Everything acknowledged before the call is in it. Writers wait for one sync of the log; the call
    /// takes as long, and a copy of the manifest. Dropping a pin may remove files.
    ///
    /// Refused while a region lacks a store file.
    pub fn pin(&self) -> Result<Pin> {
        self.check_open()?;
        self.catalog.pin()
    }

    /// Syncs the log and returns where it ends.
    #[doc(hidden)]
    pub fn log_point(&self) -> Result<LogPoint> {
        let catalog = self.open_catalog()?;
        let wall_ms = catalog.shared().clock.wall_ms();
        let (end, turns) = catalog.log_end()?;
        Ok(LogPoint { end, turns, wall_ms })
    }

    /// Path of a segment of the log below the data directory, the length that was preallocated for it, and
    /// its present length, which is its content once a later segment exists.
    #[doc(hidden)]
    pub fn segment_file(&self, number: u64) -> Result<(PathBuf, u64, u64)> {
        self.open_catalog()?.shared().wal.segment_file(number)
    }

    /// Suspends writes for a reason outside of the engine, as a full disk does, until it is called with
    /// `None`.
    #[doc(hidden)]
    pub fn suspend_writes(&self, why: Option<String>) {
        self.suspend_writes_of("backup", why);
    }

    /// Suspends writes for a reason that `who` has, until it is called with `None` by the same.
    #[doc(hidden)]
    pub fn suspend_writes_of(&self, who: &'static str, why: Option<String>) {
        let shared = self.catalog.shared();
        shared.disk.set_outside_problem(who, why.map(Error::DiskSpace));
        self.workers.poll_disk(None);
    }

    /// The turns behind that one, oldest first. `None` if they are not kept: there were many, or they were
    /// made before the first [`Self::hold_log`] of this start. Turns that a [`LogPoint`] of before counts are
    /// among them.
    #[doc(hidden)]
    pub fn turns_after(&self, number: u64) -> Result<Option<Vec<Turn>>> {
        Ok(self.open_catalog()?.turns_after(number))
    }

    /// Keeps all segments of the log that there must be, and later ones, until the hold is advanced or
    /// dropped; and the last turns, from now on.
    #[doc(hidden)]
    pub fn hold_log(&self) -> Result<LogHold> {
        Ok(self.open_catalog()?.hold_log())
    }
}
