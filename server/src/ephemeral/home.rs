//! The directory of an ephemeral server, below the system's directory for temporary files
//! (`TMPDIR`, else `/tmp`):
//!
//! ```text
//! basalt-ephemeral-<process id>-<number>/   locked while its server runs
//!   OWNER                                    the lock file
//!   data/                                    the data directory
//! ```
//!
//! 1. [`Home::create`] removes directories of this kind that no process holds: their servers were
//!    killed, or lost power. Only directories of the same user are considered.
//! 2. It makes a directory under a name that does not exist, and locks it. Another server may have
//!    locked and removed it between these two calls. Then the lock fails, or the locked directory
//!    has no name any more, and the next name is tried.
//! 3. Dropping the home removes the directory, then releases the lock.
//!
//! Invariant: a directory is removed only by a process that holds its lock.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use basalt_engine::fs::{DirLock, RealFs, Vfs as _};

/// Prefix of the names of these directories.
const PREFIX: &str = "basalt-ephemeral-";
const LOCK_FILE: &str = "OWNER";
/// Names that are tried. One more than once is rare.
const ATTEMPTS: u32 = 100;
/// Attempts to remove a directory in which an ending thread may still create files.
const REMOVALS: u32 = 10;

/// Why there is no directory for an ephemeral server.
#[derive(Debug, thiserror::Error)]
#[error("--ephemeral: no directory for the data can be made below {}: {source}. TMPDIR names another place", below.display())]
pub(crate) struct NoHome {
    below: PathBuf,
    source: io::Error,
}

/// A directory that is locked, and removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    dir: PathBuf,
    data_dir: PathBuf,
    _lock: Box<dyn DirLock>,
}

impl Home {
    /// Makes a directory below the system's directory for temporary files.
    pub(crate) fn create() -> Result<Self, NoHome> {
        Self::create_below(&std::env::temp_dir())
    }

    fn create_below(below: &Path) -> Result<Self, NoHome> {
        let refuse = |source| NoHome {
            below: below.to_path_buf(),
            source,
        };
        if below.to_str().is_none() {
            let source = io::Error::new(ErrorKind::InvalidInput, "the path is not UTF-8");
            return Err(refuse(source));
        }
        for attempt in 0..ATTEMPTS {
            let dir = below.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
            if let Some(home) = Self::claim(dir).map_err(refuse)? {
                home.sweep(below);
                return Ok(home);
            }
        }
        let source = io::Error::new(ErrorKind::AlreadyExists, "all names are taken");
        Err(refuse(source))
    }

    /// Makes and locks a directory; `None` if it exists, or another process has removed it.
    fn claim(dir: PathBuf) -> io::Result<Option<Self>> {
        match fs::DirBuilder::new().mode(0o700).create(&dir) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            made => made?,
        }
        let lock = match RealFs.lock(&dir.join(LOCK_FILE)) {
            Ok(Some(lock)) if lock.is_in_place()? => lock,
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let data_dir = dir.join("data");
        Ok(Some(Self {
            dir,
            data_dir,
            _lock: lock,
        }))
    }

    /// The data directory, which the engine creates.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Removes the directories of servers that were killed. A directory that cannot be read or
    /// removed stays.
    fn sweep(&self, below: &Path) {
        let Ok(own) = fs::symlink_metadata(&self.dir) else {
            return;
        };
        for entry in fs::read_dir(below).into_iter().flatten().flatten() {
            let is_named = entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(PREFIX.as_bytes());
            let path = entry.path();
            let is_ours = is_named
                && path != self.dir
                && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir() && found.uid() == own.uid());
            if !is_ours {
                continue;
            }
            match remove_abandoned(&path) {
                Ok(true) => tracing::info!("removed {}, whose server was killed", path.display()),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "{} could not be removed", path.display()),
            }
        }
    }
}

/// Removes a directory that no process holds; `false` if one does, or it is gone.
fn remove_abandoned(dir: &Path) -> io::Result<bool> {
    match RealFs.lock(&dir.join(LOCK_FILE)) {
        Ok(Some(_lock)) => remove(dir).map(|()| true),
        Ok(None) => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a directory and everything in it.
fn remove(dir: &Path) -> io::Result<()> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && attempts < REMOVALS => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            removed => return removed,
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.dir) {
            tracing::warn!(%error, "{} could not be removed; the next ephemeral server retries", self.dir.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(below: &Path) -> Vec<PathBuf> {
        RealFs.list(below).unwrap()
    }

    /// Goal: a home is removed with its data, and others are not.
    #[test]
    fn a_home_is_removed_when_it_is_dropped() {
        let below = tempfile::tempdir().unwrap();
        let (one, two) = (
            Home::create_below(below.path()).unwrap(),
            Home::create_below(below.path()).unwrap(),
        );
        assert_ne!(one.data_dir(), two.data_dir());
        fs::create_dir(one.data_dir()).unwrap();
        fs::write(one.data_dir().join("file"), "bytes").unwrap();
        drop(one);
        assert_eq!(names(below.path()), [PathBuf::from(two.dir.file_name().unwrap())]);
        drop(two);
        assert_eq!(names(below.path()), [] as [PathBuf; 0]);
    }

    /// Goal: the next start removes the remains of a killed server, and nothing else.
    #[test]
    fn the_directory_of_a_killed_server_is_removed() {
        let below = tempfile::tempdir().unwrap();
        let left = below.path().join(format!("{PREFIX}1-0"));
        fs::create_dir_all(left.join("data/wal")).unwrap();
        fs::write(left.join("data/CURRENT"), "bytes").unwrap();
        let held = below.path().join(format!("{PREFIX}1-1"));
        fs::create_dir(&held).unwrap();
        let lock = RealFs.lock(&held.join(LOCK_FILE)).unwrap().unwrap();
        fs::create_dir(below.path().join("other")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let link = below.path().join(format!("{PREFIX}1-2"));
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();

        let home = Home::create_below(below.path()).unwrap();
        assert!(!left.exists() && held.exists() && link.exists() && elsewhere.path().exists());
        assert!(below.path().join("other").exists() && home.dir.exists());
        drop(lock);
        let next = Home::create_below(below.path()).unwrap();
        assert!(!held.exists() && home.dir.exists() && next.dir.exists());
    }

    #[test]
    fn a_place_that_is_missing_is_named() {
        let error = Home::create_below(Path::new("/nowhere/at/all")).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("/nowhere/at/all") && text.contains("TMPDIR"),
            "{text}"
        );
    }
}
