//! The benchmarks' interface to a storage engine: Basalt's is here, others are in `bench/rivals`.

use super::keys::Key;
use super::standing::Standing;
use crate::error::Result;

/// An open database of a storage engine: keys of 16 bytes with one value each.
pub trait Store: Sized + Sync {
    /// The calls of one thread.
    type Session<'a>: Session + Send
    where
        Self: 'a;

    /// A session for one thread.
    fn session(&self) -> Self::Session<'_>;

    /// Writes what is in memory to files, and merges all files.
    fn compact(&self) -> Result<()>;

    /// Figures of the database and of its work since it was opened. Those of the directory and of
    /// the process are left at their defaults: the caller adds them.
    fn standing(&self) -> Result<Standing>;

    /// Closes it.
    fn close(self) -> Result<()>;
}

/// One thread's calls, with the buffers that they share.
pub trait Session {
    /// Writes values together, with a sync of the log or without; returns how often the engine
    /// refused the write before it took it.
    fn put(&mut self, puts: &[(Key, &[u8])], sync: bool) -> Result<u64>;

    /// Deletes a key; otherwise like `put`.
    fn delete(&mut self, key: &Key, sync: bool) -> Result<u64>;

    /// Reads a key: the bytes of its value, or `None` if it is not there. A key may be longer than
    /// 16 bytes, and is not there then.
    fn get(&mut self, key: &[u8]) -> Result<Option<usize>>;

    /// Reads keys together.
    fn get_all(&mut self, keys: &[Key]) -> Result<Rows>;

    /// Reads up to `rows` rows from the first key not below `from` on, or backward from the last key;
    /// calls `fetched` with every few rows. Returns whether the first row has the key `from`.
    fn scan(&mut self, from: From<'_>, rows: u64, fetched: impl FnMut(Rows)) -> Result<bool>;
}

/// Where a scan begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From<'a> {
    /// At the first key.
    First,
    /// At a key, or behind it.
    Key(&'a Key),
    /// At the last key, backward.
    Last,
}

impl<'a> From<'a> {
    /// The key to begin at, if it is given.
    pub fn key(self) -> Option<&'a Key> {
        match self {
            From::Key(key) => Some(key),
            From::First | From::Last => None,
        }
    }
}

/// Rows that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Their number.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

impl Rows {
    /// Adds one row.
    pub fn add(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes as u64;
    }
}
