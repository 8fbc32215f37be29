//! Fetching a backup's files into a directory.
//!
//! 1. [`Vault::plan`] reads a catalogue and its manifest.
//! 2. [`Plan::keep`] leaves files out.
//! 3. [`Plan::fetch`] writes the files below a directory, several chunks at a time, each checked; a file is
//!    synced when it is complete, and then noted in [`DONE`]. So a fetch that was cut short is taken up where
//!    it ended.
//!
//! The directory is no database until the caller makes it one.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;

use crate::catalogue::{Catalogue, Class, MANIFEST, decode_path};
use crate::copy::PARALLEL_MAX;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::limit::Limit;
use crate::pool::on_pool;
use crate::progress::Progress;
use crate::store::create_dirs;
use crate::vault::Vault;

/// File in a directory that is being restored: what is restored, then the paths of complete files.
pub const DONE: &str = "RESTORE";

/// Files to be fetched.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) catalogue: Catalogue,
    /// State of the manifest, for the engine.
    pub manifest: Vec<u8>,
}

/// A file that could not be fetched, and why.
#[derive(Debug)]
pub struct Lost {
    /// Path below the data directory.
    pub path: PathBuf,
    /// The damaged or missing object.
    pub error: Error,
}

impl Vault {
    /// Reads a backup: the newest without an id.
    pub async fn plan(&self, id: Option<&str>) -> Result<Plan> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => self
                .ids()
                .await?
                .pop()
                .ok_or_else(|| Error::Refused(format!("{} has no complete backup", self.url())))?,
        };
        self.plan_of(self.catalogue(&id).await?).await
    }

    pub(crate) async fn plan_of(&self, catalogue: Catalogue) -> Result<Plan> {
        let mut manifest = Vec::new();
        let mut left = catalogue.manifest_bytes;
        for chunk in &catalogue.manifest {
            let bytes = left.min(catalogue.chunk_bytes);
            left -= bytes;
            manifest.extend_from_slice(&self.chunk(chunk, bytes).await?);
        }
        Ok(Plan { catalogue, manifest })
    }
}

/// A chunk to be fetched.
struct Piece {
    entry: usize,
    target: Arc<Target>,
    chunk: Digest,
    offset: u64,
    bytes: u64,
}

/// A file that is being written.
struct Target {
    /// Path below the directory.
    path: PathBuf,
    /// Path of the file.
    to: PathBuf,
    length: u64,
    /// Chunks that are missing. The file is complete at 0.
    left: Mutex<usize>,
}

impl Plan {
    /// The backup's id.
    pub fn id(&self) -> String {
        self.catalogue.id()
    }

    /// Sequence id of the last edit.
    pub fn position(&self) -> u64 {
        self.catalogue.position
    }

    /// The identity of the database.
    pub fn cluster_id(&self) -> &str {
        &self.catalogue.cluster_id
    }

    /// Files with secrets that the backup does not have.
    pub fn left_out(&self) -> &[String] {
        &self.catalogue.left_out
    }

    /// Leaves out files that `is_needed` does not want.
    pub fn keep(&mut self, is_needed: impl Fn(Class, &Path) -> bool) {
        self.catalogue.files.retain(|entry| {
            // Paths were checked when the catalogue was read.
            decode_path(&entry.path).is_some_and(|path| is_needed(entry.class, &path))
        });
    }

    /// Writes the files below `dir`. Damaged and missing objects leave out the files that need them, which
    /// are returned. `what` is a line that says what is restored: an unfinished restore of something else is
    /// refused.
    pub async fn fetch(
        &self,
        vault: &Vault,
        dir: &Path,
        what: &str,
        parallel: usize,
        max_rate: u64,
        progress: &Progress,
    ) -> Result<Vec<Lost>> {
        create_dirs(dir)?;
        let (done, complete) = DoneFile::open(dir, what)?;
        progress.expect(self.catalogue.files.len() as u64, self.catalogue.bytes());
        let mut pieces = Vec::new();
        for (index, entry) in self.catalogue.files.iter().enumerate() {
            let Some(path) = decode_path(&entry.path) else {
                return Err(vault.damaged(MANIFEST, format!("the path {}", entry.path)));
            };
            if complete.contains(&entry.path) && is_whole(&dir.join(&path), entry.length) {
                progress.done(entry.bytes);
                continue;
            }
            let target = Arc::new(Target {
                to: dir.join(&path),
                path,
                length: entry.length,
                left: Mutex::new(entry.chunks.len()),
            });
            begin(&target)?;
            if entry.chunks.is_empty() {
                done.note(&entry.path)?;
            }
            let mut left = entry.bytes;
            for (at, chunk) in (0..).zip(&entry.chunks) {
                let bytes = left.min(self.catalogue.chunk_bytes);
                left -= bytes;
                pieces.push(Piece {
                    entry: index,
                    target: Arc::clone(&target),
                    chunk: *chunk,
                    offset: at * self.catalogue.chunk_bytes,
                    bytes,
                });
            }
        }
        let lost = Mutex::new(Vec::<Lost>::new());
        let limit = Limit::new(max_rate);
        stream::iter(pieces)
            .map(|piece| {
                let (lost, limit, done) = (&lost, &limit, &done);
                async move {
                    limit.pass(piece.bytes).await;
                    match vault.chunk(&piece.chunk, piece.bytes).await {
                        Ok(content) => {
                            progress.moved(piece.bytes);
                            progress.done(piece.bytes);
                            let is_complete = write(&piece, content).await?;
                            if is_complete {
                                done.note(&self.catalogue.files[piece.entry].path)?;
                            }
                            Ok(())
                        }
                        Err(error) if error.is_damage() => {
                            let mut lost = lost.lock();
                            if !lost.iter().any(|file| file.path == piece.target.path) {
                                let path = piece.target.path.clone();
                                lost.push(Lost { path, error });
                            }
                            Ok(())
                        }
                        Err(error) => Err(error),
                    }
                }
            })
            .buffer_unordered(parallel.clamp(1, PARALLEL_MAX))
            .try_collect::<Vec<()>>()
            .await?;
        let mut lost = lost.into_inner();
        lost.sort_by(|left, right| left.path.cmp(&right.path));
        for file in &lost {
            let path = dir.join(&file.path);
            std::fs::remove_file(&path).map_err(|error| Error::io("removing", &path, error))?;
        }
        Ok(lost)
    }
}

fn is_whole(path: &Path, length: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == length)
}

/// Creates the file of a target, empty, with its length.
fn begin(target: &Target) -> Result<()> {
    if let Some(parent) = target.to.parent() {
        create_dirs(parent)?;
    }
    let create = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&target.to)?;
        file.set_len(target.length)?;
        if target.length == 0 {
            file.sync_all()
        } else {
            Ok(())
        }
    };
    create().map_err(|error| Error::io("creating", &target.to, error))
}

/// Writes a chunk; syncs the file when it is the last one. Returns whether the file is complete.
async fn write(piece: &Piece, content: bytes::Bytes) -> Result<bool> {
    let (target, offset) = (Arc::clone(&piece.target), piece.offset);
    let write = move || {
        let file = OpenOptions::new().write(true).open(&target.to)?;
        file.write_all_at(&content, offset)?;
        let is_complete = {
            let mut left = target.left.lock();
            *left -= 1;
            *left == 0
        };
        if is_complete {
            file.sync_all()?;
        }
        Ok(is_complete)
    };
    let written: std::io::Result<bool> = on_pool(write).await?;
    written.map_err(|error| Error::io("writing", &piece.target.to, error))
}

/// The file that lists complete files.
struct DoneFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl DoneFile {
    /// Opens the file, and reads it if it is of the same restore.
    fn open(dir: &Path, id: &str) -> Result<(Self, HashSet<String>)> {
        let path = dir.join(DONE);
        let is_empty = std::fs::read_dir(dir).map(|mut entries| entries.next().is_none());
        if !is_empty.map_err(|error| Error::io("listing", dir, error))? && !path.exists() {
            return Err(Error::Refused(format!(
                "{} has files, and none of an unfinished restore: remove the directory",
                dir.display()
            )));
        }
        let mut complete = HashSet::new();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::io("reading", &path, error)),
        };
        // A line that was cut short is no path of a file, or that of a file that is not noted.
        let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
        let mut lines = whole.lines();
        match lines.next() {
            Some(first) if first == id => complete.extend(lines.map(str::to_owned)),
            Some(other) => {
                return Err(Error::Refused(format!(
                    "{} has an unfinished restore of {other}, not of {id}: remove the directory",
                    dir.display()
                )));
            }
            None => {}
        }
        let begin = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&path)?;
            writeln!(file, "{id}")?;
            for line in &complete {
                writeln!(file, "{line}")?;
            }
            file.sync_all()?;
            Ok(file)
        };
        let file = begin().map_err(|error| Error::io("writing", &path, error))?;
        let file = Mutex::new(file);
        Ok((Self { path, file }, complete))
    }

    fn note(&self, path: &str) -> Result<()> {
        // Not synced: a line that a power cut takes costs one more fetch.
        let noted = writeln!(self.file.lock(), "{path}");
        noted.map_err(|error| Error::io("writing", &self.path, error))
    }
}
