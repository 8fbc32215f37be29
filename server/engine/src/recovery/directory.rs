//! The data directory: checks that it is one, and locks it for one process.
//!
//! 1. [`claim`] looks at the names in the directory. One that holds anything other than a Basalt
//!    database is refused before a byte is written: a typing error in `--data-dir` must not fill
//!    `/etc`.
//! 2. It creates the directory if it is missing, and takes the lock.
//! 3. If the open fails before there is a manifest, [`Claim::undo`] removes what step 2 created.
//!
//! A directory is
//!
//! - *new*, when it is missing, or holds at most [`LEFT_OVER`]: entries of the file system itself,
//!   and remains of an interrupted creation;
//! - *ours*, when it holds `LOCK`, `CURRENT` or a manifest, and only names of ours; or when it
//!   holds other names too, but `CURRENT` or a manifest begins as ours do (RocksDB has a `CURRENT`,
//!   a `LOCK` and manifests, too). Whether the database is sound is checked with the manifest;
//! - a *stranger* in every other case.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::LOCK_FILE;
use crate::error::{Error, Result};
use crate::fs::{DirLock, Open, Vfs};
use crate::manifest;

/// Names that a directory without a database may have.
const LEFT_OVER: [&str; 4] = [LOCK_FILE, "CURRENT.tmp", "lost+found", "security"];

/// Names in the directory of a database, besides those of manifests and of [`LEFT_OVER`].
const OURS: [&str; 7] = [
    manifest::CURRENT,
    "key-visualizer",
    "orphans",
    "snapshots",
    "staging",
    "tables",
    "wal",
];

/// Maximum number of names that a refusal lists.
const LISTED: usize = 3;

/// The kind of a directory.
#[derive(Debug, PartialEq, Eq)]
enum Nature {
    Missing,
    New,
    Ours,
}

/// A directory with its lock.
#[derive(Debug)]
pub(super) struct Claim {
    /// Keeps other processes out.
    pub(super) lock: Box<dyn DirLock>,
    /// The directories that were created, the innermost last.
    made_dirs: Vec<PathBuf>,
    /// The lock file, if it was created.
    made_file: Option<PathBuf>,
}

/// Checks that `dir` is a data directory or can become one, creates it if it is missing, and locks
/// it.
pub(super) fn claim(vfs: &dyn Vfs, dir: &Path) -> Result<Claim> {
    let nature = nature(vfs, dir)?;
    let made_dirs = create(vfs, dir)?;
    let lock_file = dir.join(LOCK_FILE);
    let made_file = (nature != Nature::Ours && !exists(vfs, &lock_file)?).then_some(lock_file);
    match lock(vfs, dir) {
        Ok(lock) => Ok(Claim {
            lock,
            made_dirs,
            made_file,
        }),
        Err(error) => {
            remove(vfs, &made_dirs, None);
            Err(error)
        }
    }
}

impl Claim {
    /// Removes the files and directories that the claim created, except a directory that is not
    /// empty by now.
    pub(super) fn undo(self, vfs: &dyn Vfs) {
        remove(vfs, &self.made_dirs, self.made_file.as_deref());
    }
}

/// Removes a file, and directories from the innermost on. Failures are ignored: leftovers do no
/// harm.
fn remove(vfs: &dyn Vfs, dirs: &[PathBuf], file: Option<&Path>) {
    if let Some(file) = file {
        let _ = vfs.remove_file(file);
    }
    for dir in dirs.iter().rev() {
        let _ = vfs.remove_dir(dir);
    }
}

/// Refuses a directory that holds no Basalt database. Writes nothing.
pub(super) fn require_ours(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    match nature(vfs, dir)? {
        Nature::Ours => Ok(()),
        Nature::Missing | Nature::New => {
            let source = std::io::Error::new(ErrorKind::NotFound, "the directory holds no database");
            Err(Error::io("checking", dir, source))
        }
    }
}

fn nature(vfs: &dyn Vfs, dir: &Path) -> Result<Nature> {
    let names = match vfs.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Nature::Missing),
        Err(source) => return Err(Error::io("listing the data directory", dir, source)),
    };
    let is = |name: &PathBuf, words: &[&str]| words.iter().any(|word| name == Path::new(word));
    let is_manifest = |name: &PathBuf| manifest::is_file_name(name);
    if names.iter().all(|name| is(name, &LEFT_OVER)) {
        return Ok(Nature::New);
    }
    let unknown_names: Vec<_> = names
        .iter()
        .filter(|name| !is(name, &LEFT_OVER) && !is(name, &OURS) && !is_manifest(name))
        .collect();
    let has_database = names
        .iter()
        .any(|name| is(name, &[LOCK_FILE, manifest::CURRENT]) || is_manifest(name));
    if has_database && unknown_names.is_empty() {
        return Ok(Nature::Ours);
    }
    for name in &names {
        let begin = match name.to_str() {
            Some(manifest::CURRENT) => manifest::CURRENT_BEGIN.as_bytes(),
            _ if is_manifest(name) => &manifest::MAGIC[..],
            _ => continue,
        };
        if begins_with(vfs, &dir.join(name), begin)? {
            return Ok(Nature::Ours);
        }
    }
    let shown = if unknown_names.is_empty() {
        names.iter().collect()
    } else {
        unknown_names
    };
    Err(Error::ForeignDirectory {
        dir: dir.to_path_buf(),
        holds: listed(&shown),
    })
}

fn begins_with(vfs: &dyn Vfs, path: &Path, begin: &[u8]) -> Result<bool> {
    let mut found = vec![0; begin.len()];
    let read = vfs
        .open(path, Open::Read)
        .and_then(|file| file.read_at(&mut found, 0))
        .map_err(|source| Error::io("reading", path, source))?;
    Ok(read == begin.len() && found == begin)
}

/// The first names, and the number of further ones.
fn listed(names: &[&PathBuf]) -> String {
    let first: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("{:?}", name.display().to_string()))
        .collect();
    match names.len().saturating_sub(LISTED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Creates the directory and those above it that are missing, durably: a name is durable once the
/// directory that holds it is synced. Returns those that were missing, the innermost last.
fn create(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut levels = vec![dir];
    for level in dir.ancestors().skip(1) {
        if level.as_os_str().is_empty() || exists(vfs, level)? {
            break;
        }
        levels.push(level);
    }
    let made: Vec<PathBuf> = if exists(vfs, dir)? {
        Vec::new()
    } else {
        levels.iter().rev().map(PathBuf::from).collect()
    };
    let synced = vfs
        .create_dir_all(dir)
        .map_err(|source| Error::io("creating", dir, source))
        .and_then(|()| levels.iter().try_for_each(|level| sync_parent(vfs, level)));
    match synced {
        Ok(()) => Ok(made),
        Err(error) => {
            remove(vfs, &made, None);
            Err(error)
        }
    }
}

fn sync_parent(vfs: &dyn Vfs, level: &Path) -> Result<()> {
    let parent = level
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    match vfs.sync_dir(parent) {
        // A directory that was created in advance may lie in one without read permission; the
        // durability of its name is then its creator's task.
        Err(source) if source.kind() != ErrorKind::PermissionDenied => {
            Err(Error::io("syncing", parent, source))
        }
        _ => Ok(()),
    }
}

fn exists(vfs: &dyn Vfs, path: &Path) -> Result<bool> {
    vfs.exists(path)
        .map_err(|source| Error::io("looking for", path, source))
}

fn lock(vfs: &dyn Vfs, dir: &Path) -> Result<Box<dyn DirLock>> {
    let path = dir.join(LOCK_FILE);
    vfs.lock(&path)
        .map_err(|source| Error::io("locking", &path, source))?
        .ok_or_else(|| Error::Locked(dir.to_path_buf()))
}

/// Locks a directory for reading: writes nothing, and allows other readers.
pub(super) fn lock_to_read(vfs: &dyn Vfs, dir: &Path) -> Result<Box<dyn DirLock>> {
    let path = dir.join(LOCK_FILE);
    vfs.lock_to_read(&path)
        .map_err(|source| Error::io("locking", &path, source))?
        .ok_or_else(|| Error::Locked(dir.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};

    const DIR: &str = "/a/b/data";

    fn disk(files: &[(&str, &[u8])]) -> SimFs {
        let disk = SimFs::new(1, SimOptions::default());
        disk.create_dir_all(Path::new(DIR)).unwrap();
        for (name, bytes) in files {
            let path = Path::new(DIR).join(name);
            if name.ends_with('/') {
                disk.create_dir_all(&path).unwrap();
            } else {
                disk.open(&path, Open::CreateNew)
                    .unwrap()
                    .write_at(bytes, 0)
                    .unwrap();
            }
        }
        disk
    }

    fn found(files: &[(&str, &[u8])]) -> Result<Nature> {
        nature(&disk(files), Path::new(DIR))
    }

    const MANIFEST: &str = "MANIFEST-0000000000000001";

    #[test]
    fn new_and_own_directories_are_accepted() {
        let empty = SimFs::new(1, SimOptions::default());
        assert_eq!(nature(&empty, Path::new(DIR)).unwrap(), Nature::Missing);
        for new in [
            &[][..],
            &["lost+found/"],
            &["LOCK"],
            &["LOCK", "CURRENT.tmp", "lost+found/"],
        ] {
            let files: Vec<_> = new.iter().map(|name| (*name, &b""[..])).collect();
            assert_eq!(found(&files).unwrap(), Nature::New, "{new:?}");
        }
        // Damage is found with the manifest.
        for ours in [
            &["CURRENT"][..],
            &[MANIFEST],
            &[
                "LOCK",
                "CURRENT",
                MANIFEST,
                "wal/",
                "tables/",
                "orphans/",
                "snapshots/",
                "lost+found/",
            ],
            &["LOCK", "wal/"],
        ] {
            let files: Vec<_> = ours.iter().map(|name| (*name, &b"damaged"[..])).collect();
            assert_eq!(found(&files).unwrap(), Nature::Ours, "{ours:?}");
        }
        let beside = |name, bytes| found(&[(name, bytes), ("basalt.toml", b"[wal]")]);
        assert_eq!(
            beside("CURRENT", b"basalt-current 1 and more").unwrap(),
            Nature::Ours
        );
        assert_eq!(beside(MANIFEST, b"BSLTMNFT and more").unwrap(), Nature::Ours);
    }

    #[test]
    fn foreign_directories_are_refused_by_name() {
        let refused = |files: &[(&str, &[u8])]| match found(files).unwrap_err() {
            Error::ForeignDirectory { holds, .. } => holds,
            other => panic!("{other}"),
        };
        assert_eq!(refused(&[("passwd", b"")]), "\"passwd\"");
        let many = ["a", "b", "c", "d", "e"].map(|name| (name, &b""[..]));
        assert_eq!(refused(&many), "\"a\", \"b\", \"c\" and 2 more");
        assert_eq!(refused(&[(".hidden", b""), ("LOCK", b"")]), "\".hidden\"");
        assert_eq!(refused(&[("tables/", b"")]), "\"tables\"");
        let rocksdb: [(&str, &[u8]); 4] = [
            ("CURRENT", b"MANIFEST-000005\n"),
            ("LOCK", b""),
            ("MANIFEST-000005", b"x"),
            ("000004.log", b"x"),
        ];
        assert!(refused(&rocksdb).contains("MANIFEST-000005"));
        let impostor: [(&str, &[u8]); 2] = [(MANIFEST, b"no magic"), ("notes", b"")];
        assert_eq!(refused(&impostor), "\"notes\"");
    }

    /// Undoing a claim leaves the directory exactly as it was before.
    #[test]
    fn an_undone_claim_leaves_nothing() {
        let dir = Path::new(DIR);
        let empty = SimFs::new(1, SimOptions::default());
        empty.create_dir_all(Path::new("/a")).unwrap();
        claim(&empty, dir).unwrap().undo(&empty);
        assert_eq!(empty.list(Path::new("/a")).unwrap(), Vec::<PathBuf>::new());
        let there = disk(&[("lost+found/", b"")]);
        claim(&there, dir).unwrap().undo(&there);
        assert_eq!(there.list(dir).unwrap(), [PathBuf::from("lost+found")]);
        let failing = SimFs::new(1, SimOptions::default());
        failing.create_dir_all(Path::new("/a")).unwrap();
        failing.fail(OpKind::Lock, "", Errno::IO, Times::Always);
        claim(&failing, dir).unwrap_err();
        assert_eq!(failing.list(Path::new("/a")).unwrap(), Vec::<PathBuf>::new());
    }
}
