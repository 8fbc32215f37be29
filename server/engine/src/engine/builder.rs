//! Opening an engine: settings and components, each with a default.

use std::path::Path;
use std::sync::Arc;

use super::Engine;
use crate::clock::{Clock, SystemClock};
use crate::error::Result;
use crate::fs::{RealFs, Vfs};
use crate::metrics::{EventListener, NoListener};
use crate::options::{Background, Options};
use crate::recovery::{Moved, Restore};

/// Settings and components of an engine that is about to be opened. Made by [`Engine::builder`].
///
/// ```
/// use basalt_engine::Engine;
/// use basalt_engine::options::{Options, WalSync};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let options = Options {
///     wal_sync: WalSync::Os,
///     ..Options::default()
/// };
/// let engine = Engine::builder().options(options).open(dir.path())?;
/// engine.close()?;
/// # Ok::<(), basalt_engine::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing before `open`"]
pub struct Builder {
    options: Options,
    vfs: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    listener: Arc<dyn EventListener>,
    moved: Moved,
}

/// The options, and the components of recovery.
pub(super) struct Parts {
    pub(super) options: Options,
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) listener: Arc<dyn EventListener>,
    pub(super) moved: Moved,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            options: Options::default(),
            vfs: Arc::new(RealFs),
            clock: Arc::new(SystemClock::new()),
            listener: Arc::new(NoListener),
            moved: Moved::default(),
        }
    }

    /// Replaces the settings.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sends events to `listener`: flushes, compactions, failures of background work.
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.listener = listener;
        self
    }

    /// Keeps the files in another file system than the operating system's.
    #[cfg(feature = "server")]
    pub fn file_system(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Takes the time from another clock than the machine's.
    #[cfg(feature = "server")]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Ends a restore whose log has rows of regions that splits and merges have made since the pin: they go
    /// to the regions of the pin that have their keys, and into store files; or that has cells of families
    /// that were left out. Afterwards the directory is like any other. Without such rows nothing is done.
    ///
    /// REQUIRES: the restore has been installed in `dir`, which was not opened since.
    pub fn settle(mut self, restore: &Restore, dir: &Path) -> Result<()> {
        if !restore.must_settle() {
            return Ok(());
        }
        self.moved = restore.moved().clone();
        self.options.background = Background::Manual;
        let engine = Engine::open_with(dir, self)?;
        let regions: Vec<_> = engine.catalog.tables().regions().cloned().collect();
        let failed = engine.catalog.flush_regions(&regions).into_iter().next();
        let closed = engine.close();
        failed.map_or(closed, Err)
    }

    /// Opens the database in `dir`, or creates one: locks the directory, reads the manifest, replays
    /// the WAL, and starts the background threads.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<Arc<Engine>> {
        Engine::open_with(dir.as_ref(), self)
    }

    pub(super) fn into_parts(self) -> Parts {
        Parts {
            options: self.options,
            vfs: self.vfs,
            clock: self.clock,
            listener: self.listener,
            moved: self.moved,
        }
    }
}
