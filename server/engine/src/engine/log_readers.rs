//! Readers of the log that outlive a start: the log is kept for the slowest of them.

use super::Engine;
use crate::catalog::LogTail;
use crate::error::Result;
use crate::id::SeqId;
use crate::wal::LogReader;

impl Engine {
    /// The readers of the log, by name.
    pub fn log_readers(&self) -> Vec<LogReader> {
        self.catalog.shared().wal.readers()
    }

    /// Adds a reader of the log whose position is the present end, durably, and returns the position. Fails
    /// if there is one of that name. From now on the log is kept from the lowest position of all readers on;
    /// segments that a start does not need are set aside, so that a start takes no longer.
    pub fn add_log_reader(&self, name: &str, note: &[u8]) -> Result<SeqId> {
        self.open_catalog()?.shared().wal.add_reader(name, note)
    }

    /// As [`Self::add_log_reader`], at a position that the log still has ([`Self::first_log_position`]).
    pub fn add_log_reader_at(&self, name: &str, note: &[u8], position: SeqId) -> Result<()> {
        let wal = &self.open_catalog()?.shared().wal;
        wal.add_reader_at(name, note, position)
    }

    /// The first position from which the log can be read now.
    pub fn first_log_position(&self) -> Result<SeqId> {
        self.open_catalog()?.shared().wal.first_position()
    }

    /// Replaces the note of a reader, durably.
    pub fn set_log_reader_note(&self, name: &str, note: &[u8]) -> Result<()> {
        self.open_catalog()?.shared().wal.set_reader_note(name, note)
    }

    /// Moves a reader forward, durably; a position that is not greater has no effect. Releases the log that
    /// no reader needs any more.
    pub fn advance_log_reader(&self, name: &str, position: SeqId) -> Result<()> {
        self.open_catalog()?.shared().wal.advance_reader(name, position)
    }

    /// Removes a reader; returns whether there was one of that name.
    pub fn remove_log_reader(&self, name: &str) -> Result<bool> {
        self.open_catalog()?.shared().wal.remove_reader(name)
    }

    /// Bytes of the log in whole segments that have rows from `position` on.
    pub fn log_bytes_from(&self, position: SeqId) -> Result<u64> {
        self.open_catalog()?.shared().wal.bytes_from(position)
    }

    /// A place in the log from which it is read while it grows. Reading fails when the log from there on is
    /// not kept any more.
    pub fn read_log(&self, position: SeqId) -> Result<LogTail> {
        self.check_open()?;
        Ok(LogTail::new(&self.catalog, position))
    }

    /// The position behind the last row that readers see.
    pub fn log_position(&self) -> SeqId {
        self.catalog.shared().wal.read_point().next()
    }
}
