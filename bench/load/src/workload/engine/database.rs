//! The database under test and its directory: opening, emptying, closing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::standing::{Standing, bytes_below, bytes_written};
use super::store::Store;
use crate::error::{Error, Result};

/// An open database, and where it is.
#[derive(Debug)]
pub(super) struct Database<S> {
    pub(super) store: S,
    dir: PathBuf,
    /// How long it took to open.
    open_time: Duration,
    /// Bytes that this process had written before.
    written_before: Option<u64>,
}

/// A file by which a directory is known that this tool made, and so may empty.
const MARK: &str = "BASALT-BENCH";

impl<S: Store> Database<S> {
    /// Opens a database in a subdirectory of `dir`.
    pub(super) fn open(dir: &Path, open: &impl Fn(&Path) -> Result<S>) -> Result<Database<S>> {
        let dir = dir.to_owned();
        let file = |source| Error::File {
            path: dir.clone(),
            source,
        };
        fs::create_dir_all(&dir).map_err(file)?;
        if is_empty(&dir).map_err(file)? {
            fs::write(dir.join(MARK), "Benchmarks empty this directory.\n").map_err(file)?;
        } else if !dir.join(MARK).exists() {
            return Err(Error::Usage(format!(
                "{} is neither empty nor made by this tool: give another directory",
                dir.display()
            )));
        }
        let written_before = bytes_written();
        let began = Instant::now();
        let store = open(&dir.join("data"))?;
        Ok(Database {
            store,
            dir,
            open_time: began.elapsed(),
            written_before,
        })
    }

    /// An empty database with the same options.
    pub(super) fn emptied(self, open: &impl Fn(&Path) -> Result<S>) -> Result<Database<S>> {
        let dir = self.dir.clone();
        self.close()?;
        let data = dir.join("data");
        fs::remove_dir_all(&data).map_err(|source| Error::File { path: data, source })?;
        Database::open(&dir, open)
    }

    /// Figures of the database, its directory and its process.
    pub(super) fn standing(&self) -> Result<Standing> {
        let written = bytes_written().zip(self.written_before);
        Ok(Standing {
            open_seconds: self.open_time.as_secs_f64(),
            disk_bytes: bytes_below(&self.dir).map_err(|source| Error::File {
                path: self.dir.clone(),
                source,
            })?,
            written_bytes: written.map(|(now, before)| now - before),
            ..self.store.standing()?
        })
    }

    pub(super) fn close(self) -> Result<()> {
        self.store.close()
    }
}

fn is_empty(dir: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(dir)?.next().is_none())
}
