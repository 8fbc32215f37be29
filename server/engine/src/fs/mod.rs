//! The file system as the engine sees it.
//!
//! All file access goes through [`Vfs`] and [`File`]: `real` is the operating system's, `sim`
//! forgets unsynced bytes, tears sectors, reorders directory operations, fails and fills up. The
//! traits are used as objects: a virtual call is cheap compared with the system call behind it
//! (docs/decisions has the measurement).
//!
//! Rules for callers: no mmap; a file created, renamed or removed is durable only after [`Vfs::sync_dir`] of
//! its directory; after a failed sync the file's unsynced bytes are unknown and the file must not be synced
//! again.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(test)]
pub(crate) mod advised;
mod direct;
mod handles;
mod open_files;
mod real;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod unsynced;

pub use handles::{HandleCache, HandleUsage};
pub use open_files::raise_open_files;
pub use real::RealFs;
pub use unsynced::UnsyncedFs;

/// How [`Vfs::open`] opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading past the page cache where the file system can do that, and like `Read`
    /// elsewhere.
    Direct,
    /// An existing file, for reading and writing.
    Write,
    /// A new file, for reading and writing; it is an error if the name exists.
    CreateNew,
}

/// A promise to the page cache about how a range will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Will be read front to back.
    Sequential,
    /// Will be read in no order: the system reads the requested range and nothing more.
    Random,
    /// Will be read soon: the system begins to read it in the background.
    WillNeed,
    /// Will not be read soon. The system begins to write dirty pages in the background.
    DontNeed,
}

/// Space of the file system that holds a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes this process may still use.
    pub available_bytes: u64,
}

/// Whether a call was refused for want of space: the disk is full, or a quota is used up.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// An open file. Closing is dropping. All methods may be called from many threads.
#[expect(
    clippy::len_without_is_empty,
    reason = "the size is a system call that can fail; no caller asks for emptiness"
)]
pub trait File: Send + Sync + Debug {
    /// Reads at most `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads exactly `buffer.len()` bytes at `offset`; a shorter file is `UnexpectedEof`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_at(&mut buffer[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`, extending the file when needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the bytes (and the size needed to read them) durable: fdatasync.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes bytes and metadata durable: fsync.
    fn sync_all(&self) -> io::Result<()>;

    /// Reserves disk space for `[0, len)` and extends the file to `len` with zeros if it is shorter.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Cuts or extends (with zeros) to `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The file's size.
    fn len(&self) -> io::Result<u64>;

    /// Advises the page cache. Best effort, never an error.
    fn advise(&self, offset: u64, len: u64, advice: Advice);
}

/// Held while a directory is in use; released when dropped or when the process ends.
pub trait DirLock: Send + Sync + Debug {
    /// Whether the directory's path still leads to the directory that was locked. If not, another
    /// process may have locked the directory that is there now.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// A file system. Paths are absolute or relative to the process's directory; the engine only joins names to
/// its data directory.
pub trait Vfs: Send + Sync + Debug + 'static {
    /// Opens or creates a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;
    /// Creates a directory and those above it that are missing.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory (not paths), sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether a file or directory of that name is there.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Renames a file, replacing the target atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Creates a hard link to a file.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the directory's names durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Locks the directory of `path`, a file in it (created if missing), for this process; `None`
    /// if there is another holder. Removing the file does not release the lock.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>>;
    /// Excludes holders of [`Vfs::lock`] from the directory of `path`, and creates nothing; `None`
    /// if there is one. Several locks of this kind may be held at a time.
    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>>;
    /// Space of the file system that holds `dir`.
    fn space(&self, dir: &Path) -> io::Result<Space>;
    /// 16 bytes that are never drawn again: from the system's generator, or from the simulator's
    /// seed.
    fn draw_uuid(&self) -> io::Result<[u8; 16]>;
}
