//! Opening an engine: settings and components, each with a default.

use std::path::Path;
use std::sync::Arc;

use super::Engine;
use crate::clock::{Clock, SystemClock};
use crate::error::Result;
use crate::fs::{RealFs, Vfs};
use crate::metrics::{EventListener, NoListener};
use crate::options::Options;

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
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            options: Options::default(),
            vfs: Arc::new(RealFs),
            clock: Arc::new(SystemClock::new()),
            listener: Arc::new(NoListener),
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

    /// Opens the database in `dir`, or creates one: locks the directory, reads the manifest, replays
    /// the WAL, and starts the background threads.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<Arc<Engine>> {
        Engine::open_with(dir.as_ref(), self)
    }

    /// The options, and the components in the order in which recovery takes them.
    #[expect(clippy::type_complexity, reason = "the parts have no name of their own")]
    pub(super) fn into_parts(self) -> (Options, Arc<dyn Vfs>, Arc<dyn Clock>, Arc<dyn EventListener>) {
        (self.options, self.vfs, self.clock, self.listener)
    }
}
