//! Folders in `target` that are made once, of sources and fetched packages, and kept for later test runs.
//!
//! The file `built-from` holds all that a folder was made of and is written last: a folder whose making was
//! cut short is made again. A lock file keeps test processes from making one folder together. A machine may
//! lack a tool or the network: that is an `Err` with one line that says why, and the test is not run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::workspace;

/// A folder in `target` which no other test process touches until this is dropped.
#[derive(Debug)]
pub(crate) struct MadeFolder {
    path: PathBuf,
    _lock: fs::File,
}

impl MadeFolder {
    /// Waits until no other test process is at work in the folder of that name, relative to `target`.
    pub(crate) fn lock(name: &str) -> Result<Self, String> {
        let path = workspace().join("target").join(name);
        fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        let lock = fs::File::create(path.join("lock")).map_err(|error| error.to_string())?;
        lock.lock().map_err(|error| error.to_string())?;
        Ok(Self { path, _lock: lock })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn stamp(&self) -> PathBuf {
        self.path.join("built-from")
    }

    /// Whether it was made of this.
    pub(crate) fn is_made_of(&self, contents: &[u8]) -> bool {
        fs::read(self.stamp()).is_ok_and(|built_from| built_from == contents)
    }

    /// It is made, of this.
    pub(crate) fn done(&self, contents: &[u8]) {
        fs::write(self.stamp(), contents).expect("target can be written");
    }

    /// Removes all but the lock, which is held.
    pub(crate) fn clear(&self) {
        for entry in fs::read_dir(&self.path).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else if path.ends_with("lock") {
                Ok(())
            } else {
                fs::remove_file(&path)
            };
            removed.expect("target can be written");
        }
    }
}

/// Appends files of the repository, each behind its name.
pub(crate) fn append_files<'a>(contents: &mut Vec<u8>, files: impl IntoIterator<Item = &'a PathBuf>) {
    for file in files {
        contents.extend_from_slice(format!("{}\n", file.display()).as_bytes());
        contents.extend(fs::read(file).expect("a file of the repository"));
    }
}

/// Runs a command that needs resources that the machine may lack, as the network. The error is one
/// line of its output: the first that speaks of an error, or else the last.
pub(crate) fn fetch(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let error = printed.lines().find(|line| line.to_lowercase().contains("error"));
    let why = error.or_else(|| printed.lines().last());
    Err(why.unwrap_or("it failed and said nothing").to_owned())
}
