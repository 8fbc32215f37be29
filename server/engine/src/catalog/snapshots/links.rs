//! Hard links as they are made: all of them or, when something fails, none.
//!
//! A link is durable when its directory is synced. Links that no manifest edit names, left by a
//! crash, go to `orphans/` at the next start.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::metrics::EventListener;
use crate::region::Shared;
use crate::store::create_dir;

/// Links that no manifest edit names yet.
pub(super) struct Links<'a> {
    shared: &'a Shared,
    /// Directories with new links.
    dirs: BTreeSet<PathBuf>,
    made: Vec<PathBuf>,
}

impl<'a> Links<'a> {
    /// None yet.
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            dirs: BTreeSet::new(),
            made: Vec::new(),
        }
    }

    /// Links a file under a second name in `dir`, which is created.
    pub(super) fn add(&mut self, from: &Path, dir: PathBuf, to: PathBuf) -> Result<()> {
        let vfs = &*self.shared.store.vfs;
        if !self.dirs.contains(&dir) {
            self.dirs.insert(create_dir(vfs, &self.shared.dir, dir)?);
        }
        let linked = match vfs.link(from, &to) {
            // Left by a failed attempt whose links could not be removed either.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                vfs.remove_file(&to).and_then(|()| vfs.link(from, &to))
            }
            linked => linked,
        };
        linked.map_err(|source| Error::io("linking", from, source))?;
        self.made.push(to);
        Ok(())
    }

    /// Makes all of them durable.
    pub(super) fn sync(&self) -> Result<()> {
        for dir in &self.dirs {
            self.shared
                .store
                .vfs
                .sync_dir(dir)
                .map_err(|source| Error::io("syncing", dir, source))?;
        }
        Ok(())
    }

    /// Removes the links again. One that cannot be removed now does no harm, and goes to `orphans/`
    /// at the next start.
    pub(super) fn remove(self) {
        remove_files(&*self.shared.store.vfs, &*self.shared.listener, &self.made);
    }
}

/// Removes files of a snapshot; tells the listener of those that cannot be removed.
pub(super) fn remove_files(vfs: &dyn Vfs, listener: &dyn EventListener, paths: &[PathBuf]) {
    for path in paths {
        if let Err(source) = vfs.remove_file(path) {
            let error = Error::io("removing", path, source);
            listener.background_error("removing links of a snapshot", &error);
        }
    }
}

/// Removes the directories below `root` that are empty, those that `dirs` names, and the levels above each,
/// `root` included.
pub(super) fn remove_empty_dirs(vfs: &dyn Vfs, root: &Path, dirs: &BTreeSet<PathBuf>) {
    for dir in dirs {
        let levels = dir.ancestors().take_while(|level| level.starts_with(root));
        for level in levels {
            // A directory that is not empty, which the next start examines, ends the way up.
            if vfs.remove_dir(level).is_err() {
                break;
            }
        }
    }
}
