//! A value in a file that the command line changes while the server runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use basalt_security::Result;
use basalt_security::file::{Data, DataFile, FileVersion};
use parking_lot::Mutex;

/// The value of a file, and the version of the file that it was read from. Readers get the whole value
/// and take no lock.
#[derive(Debug)]
pub(super) struct Live<T> {
    file: DataFile<T>,
    current: ArcSwap<T>,
    /// Held during a change or reload, so that an older version never replaces a newer one.
    version: Mutex<FileVersion>,
    /// Number of values before the present one. Grows after `current` has changed.
    changes: AtomicU64,
}

/// A change that was made.
pub(super) struct Updated<R, T> {
    /// The result of the change.
    pub(super) result: R,
    pub(super) before: Arc<T>,
    pub(super) after: Arc<T>,
}

impl<T: Data> Live<T> {
    /// Reads the file of this directory; without a file it is the default.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let file = DataFile::in_dir(directory);
        let (value, version) = file.load()?;
        Ok(Self {
            file,
            current: ArcSwap::from_pointee(value),
            version: Mutex::new(version),
            changes: AtomicU64::new(0),
        })
    }

    pub(super) fn get(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// How often the value has changed. A reader that asks for this number first, and for the value then, has
    /// a value that is at least as new.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Reads the file again if it has changed; returns the values before and after. After a failure the
    /// value stays as it is.
    pub(super) fn reload(&self) -> Result<Option<(Arc<T>, Arc<T>)>> {
        let mut version = self.version.lock();
        if !self.file.changed(*version) {
            return Ok(None);
        }
        let (value, loaded) = self.file.load()?;
        let value = Arc::new(value);
        let before = self.current.swap(Arc::clone(&value));
        *version = loaded;
        self.changes.fetch_add(1, Ordering::Release);
        Ok(Some((before, value)))
    }

    /// Changes the file, and the value with it. Returns the values before and after, too: the change is made
    /// to what the file has, which may be newer than the value.
    pub(super) fn update<R>(&self, change: impl FnOnce(&mut T) -> Result<R>) -> Result<Updated<R, T>> {
        let mut version = self.version.lock();
        let (result, value, stored) = self.file.update(change)?;
        let after = Arc::new(value);
        let before = self.current.swap(Arc::clone(&after));
        *version = stored;
        self.changes.fetch_add(1, Ordering::Release);
        Ok(Updated {
            result,
            before,
            after,
        })
    }
}
