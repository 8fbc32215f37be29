//! Files that are replaced whole, under a lock: JSON documents with a version.
//!
//! [`DataFile`] is such a file with a value that readers hold as a whole.
//!
//! A change: lock `NAME.lock`, read, write `NAME.new`, sync it, rename it over `NAME`, sync the
//! directory. A reader takes no lock and sees the old document or the new one.
//!
//! Invariants: a directory is created with mode 0700, a file with 0600, and a file that others can
//! read is refused. All functions block on the disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::marker::PhantomData;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{Error, Result};

/// Maximum size of a document: about 100,000 users.
const BYTES_MAX: u64 = 64 << 20;

/// Bits of a mode that give access to group and others.
const OTHERS: u32 = 0o077;

/// Identity of a version of a file. Two versions differ in it, since each is a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

/// The stamp of the file that is there; `None` if there is none, or it cannot be seen.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().as_ref().map(Stamp::of)
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// A value that lives in a file of its own.
pub trait Data: Default + Serialize + DeserializeOwned {
    /// Name of the file.
    const FILE: &str;
    /// Version of the file's format: the field `version`.
    const VERSION: u32;
    /// Checks what the format does not. The error contains nothing secret.
    fn check(&self) -> std::result::Result<(), String>;
}

/// A version of a file, as [`DataFile::load`] has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion(Option<Stamp>);

/// A file with a value. Server and command line change it alike, under its lock. A server asks
/// [`Self::changed`] at SIGHUP and now and then, loads the file, and keeps the value that it has
/// when that fails. All functions but [`Self::path`] block on the disk.
#[derive(Debug)]
pub struct DataFile<T> {
    document: Document,
    value: PhantomData<fn() -> T>,
}

impl<T: Data> DataFile<T> {
    /// The file in this directory. Both are created with the first change.
    pub fn in_dir(directory: &Path) -> Self {
        Self {
            document: Document::new(directory.join(T::FILE), T::VERSION),
            value: PhantomData,
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.document.path()
    }

    /// The value, and the version of the file that holds it. Without a file it is the default.
    pub fn load(&self) -> Result<(T, FileVersion)> {
        let Some((value, stamp)) = self.document.read::<T>()? else {
            return Ok((T::default(), FileVersion(None)));
        };
        self.check(&value)?;
        Ok((value, FileVersion(Some(stamp))))
    }

    /// Whether the file is another one than the version that was loaded.
    pub fn changed(&self, since: FileVersion) -> bool {
        stamp(self.path()) != since.0
    }

    /// Changes the value and replaces the file. A change that fails leaves the file as it is.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> Result<R>) -> Result<(R, T, FileVersion)> {
        let lock = self.document.lock()?;
        let (mut value, _) = self.load()?;
        let result = change(&mut value)?;
        self.check(&value)?;
        let stamp = self.document.replace(&lock, &value)?;
        Ok((result, value, FileVersion(Some(stamp))))
    }

    fn check(&self, value: &T) -> Result<()> {
        let check = value.check();
        check.map_err(|problem| self.document.fault((0, problem)))
    }
}

/// A document in a file, with the version of its format in the field `version`.
#[derive(Debug)]
struct Document {
    path: PathBuf,
    version: u32,
}

/// The right to replace a document. Held for one change.
struct Lock(#[expect(dead_code, reason = "it is locked as long as it is open")] File);

/// The field that every version of a document has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Document {
    fn new(path: PathBuf, version: u32) -> Self {
        Self { path, version }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for other changes to end, also those of other processes.
    fn lock(&self) -> Result<Lock> {
        let remedy = "check that the directory exists and belongs to the user that runs this program";
        self.open_lock()
            .map(Lock)
            .map_err(|error| self.io("it cannot be locked", &error, remedy))
    }

    fn open_lock(&self) -> io::Result<File> {
        create_dir(self.directory())?;
        let file = options()
            .create(true)
            .truncate(false)
            .open(self.beside(".lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// The document, with the stamp of its file; `None` if there is no file.
    fn read<T: DeserializeOwned>(&self) -> Result<Option<(T, Stamp)>> {
        let remedy = "check that it belongs to the user that runs this program";
        let text = read_private(&self.path).map_err(|error| self.io("it cannot be read", &error, remedy))?;
        let Some((text, stamp)) = text else {
            return Ok(None);
        };
        Ok(Some((self.parse(&text)?, stamp)))
    }

    fn parse<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T> {
        let Version { version } = parse(text).map_err(|fault| self.fault(fault))?;
        if version != self.version {
            let problem = format!(
                "its version is {version}, and this program knows version {}",
                self.version
            );
            return Err(self.whole(problem, "use the program that wrote it, or a newer one"));
        }
        parse(text).map_err(|fault| self.fault(fault))
    }

    /// Replaces the document. On failure the old one stays.
    fn replace<T: Serialize>(&self, _lock: &Lock, document: &T) -> Result<Stamp> {
        let mut text = Zeroizing::new(serde_json::to_vec_pretty(document).expect("maps have text keys"));
        text.push(b'\n');
        if text.len() as u64 > BYTES_MAX {
            let problem = format!(
                "it would have {} bytes, and the maximum is {BYTES_MAX}",
                text.len()
            );
            return Err(self.whole(problem, "remove entries that are not needed"));
        }
        let remedy = "the old file is unchanged; check space and permissions of the directory";
        replace(&self.path, &text).map_err(|error| self.io("it cannot be replaced", &error, remedy))
    }

    /// A fault of the document as a whole.
    fn whole(&self, problem: String, remedy: &'static str) -> Error {
        self.at(0, problem, remedy)
    }

    fn fault(&self, (line, problem): (usize, String)) -> Error {
        self.at(line, problem, "correct it, or restore the file from a copy")
    }

    fn io(&self, what: &str, error: &io::Error, remedy: &'static str) -> Error {
        self.whole(format!("{what}: {error}"), remedy)
    }

    fn at(&self, line: usize, problem: String, remedy: &'static str) -> Error {
        let path = self.path.clone();
        Error::File {
            path,
            line,
            problem,
            remedy,
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        beside(&self.path, suffix)
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Parses JSON. A failure has its line and a text without values of the document.
fn parse<T: DeserializeOwned>(text: &[u8]) -> std::result::Result<T, (usize, String)> {
    serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        let has_value = message.starts_with("invalid type") || message.starts_with("invalid value");
        let message = if has_value {
            format!("a value has the wrong type in column {}", error.column())
        } else {
            message
                .rsplit_once(" at line ")
                .map_or(message.clone(), |(text, _)| text.to_owned())
        };
        (error.line(), message)
    })
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Makes the directory with mode 0700, unless it exists.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Contents of a file that only its owner can read; `None` if it does not exist.
pub(crate) fn read_private(path: &Path) -> io::Result<Option<(Zeroizing<Vec<u8>>, Stamp)>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        result => result?,
    };
    let metadata = file.metadata()?;
    if metadata.mode() & OTHERS != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(io::Error::other(format!(
            "its mode is {mode:o} and must be 600 (chmod 600)"
        )));
    }
    let mut contents = Zeroizing::new(Vec::with_capacity(metadata.len().min(BYTES_MAX) as usize));
    file.take(BYTES_MAX + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than {BYTES_MAX} bytes")));
    }
    Ok(Some((contents, Stamp::of(&metadata))))
}

/// Replaces a file, whole or not at all, by one that only its owner can read (mode 0600). It is on the
/// disk when this returns. Callers exclude each other.
///
/// # Errors
///
/// The system's.
pub fn write_private(path: &Path, contents: &[u8]) -> io::Result<()> {
    replace(path, contents).map(drop)
}

fn replace(path: &Path, contents: &[u8]) -> io::Result<Stamp> {
    let temporary = beside(path, ".new");
    // One that an interrupted change has left.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = options().create_new(true).open(&temporary)?;
    file.write_all(contents)?;
    file.sync_all()?;
    let stamp = Stamp::of(&file.metadata()?);
    fs::rename(&temporary, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(stamp)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Count {
        version: u32,
        count: u32,
    }

    fn document(dir: &Path) -> Document {
        Document::new(dir.join("security").join("count.json"), 1)
    }

    fn store(document: &Document, count: u32) -> Stamp {
        let lock = document.lock().unwrap();
        document.replace(&lock, &Count { version: 1, count }).unwrap()
    }

    /// Writes a document by hand and returns the error of reading it.
    fn error_of(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let document = document(dir.path());
        store(&document, 1);
        fs::write(document.path(), text).unwrap();
        let error = document.read::<Count>().unwrap_err().to_string();
        let name = document.path().display().to_string();
        error.strip_prefix(&name).unwrap().to_owned()
    }

    #[test]
    fn a_document_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let document = document(dir.path());
        assert!(document.read::<Count>().unwrap().is_none());
        let first = store(&document, 1);
        assert_eq!(stamp(document.path()), Some(first));
        // The leftover of an interrupted change does no harm.
        fs::write(document.beside(".new"), "{").unwrap();
        let second = store(&document, 2);
        assert_ne!(first, second);
        let (read, stamp) = document.read::<Count>().unwrap().unwrap();
        assert_eq!((read.count, stamp), (2, second));
        assert!(!document.beside(".new").exists());
    }

    #[test]
    fn only_the_owner_has_access() {
        let dir = tempfile::tempdir().unwrap();
        let document = document(dir.path());
        store(&document, 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(document.directory()), 0o700);
        assert_eq!(mode(document.path()), 0o600);
        fs::set_permissions(document.path(), fs::Permissions::from_mode(0o640)).unwrap();
        let error = document.read::<Count>().unwrap_err().to_string();
        assert!(
            error.contains("its mode is 640 and must be 600 (chmod 600)"),
            "{error}"
        );
    }

    #[test]
    fn faults_name_line_and_remedy_and_no_values() {
        let mend = "correct it, or restore the file from a copy";
        for (text, expected) in [
            ("{\n\"version\": 1,\n\"count\": 1,}", format!(", line 3: trailing comma; {mend}")),
            ("{\"version\": 1,\n\"count\": \"hunter2\"}", format!(", line 2: a value has the wrong type in column 18; {mend}")),
            ("{\"version\": 1}", format!(", line 1: missing field `count`; {mend}")),
            ("{\"version\": 1, \"count\": 1, \"more\": 2}", format!(", line 1: unknown field `more`, expected `version` or `count`; {mend}")),
            (
                "{\"version\": 2, \"more\": 2}",
                ": its version is 2, and this program knows version 1; use the program that wrote it, or a newer one".into(),
            ),
        ] {
            assert_eq!(error_of(text), expected);
        }
        assert!(error_of("").contains("EOF while parsing"));
    }

    /// Goal: changes of several threads exclude each other.
    #[test]
    fn no_change_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let document = document(dir.path());
        store(&document, 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let lock = document.lock().unwrap();
                        let (mut read, _) = document.read::<Count>().unwrap().unwrap();
                        read.count += 1;
                        document.replace(&lock, &read).unwrap();
                    }
                });
            }
        });
        assert_eq!(document.read::<Count>().unwrap().unwrap().0.count, 40);
    }
}
