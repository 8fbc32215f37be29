//! The operating system's file system: [`Vfs`] over `std::fs`, and `rustix` for the calls `std` does not
//! have.
//!
//! Directories are made with mode 0700 and files with 0600: the database is private to its owner.
//! Descriptors are close-on-exec. A call that a signal interrupted is made again, here or by `std`.
//!
//! Only this module and `clock` may use `std::fs` and `SystemTime`. Everything may be called from every
//! thread.

use std::fs;
use std::io::{self, Read as _};
use std::num::NonZeroU64;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use rustix::io::Errno;

use super::{Advice, DirLock, File, Open, Space, Vfs, direct};

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// The source of uuids.
const RANDOM: &str = "/dev/urandom";
/// The source of uuids, open since the first one was drawn. Its descriptor is the reserve of
/// [`sync_in_reserve`]: a log whose directory cannot be synced after a rename is final, so neither may need a
/// new descriptor.
static RESERVE: Mutex<Option<fs::File>> = Mutex::new(None);
/// Attempts to open a directory in the reserve's place, which another thread may take first.
const RESERVE_ATTEMPTS: u32 = 200;
/// Pause between two such attempts.
const RESERVE_PAUSE: Duration = Duration::from_millis(10);

/// Zeros are written in pieces of this size where the file system cannot reserve space.
const ZEROS_BYTES: usize = 64 << 10;

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

/// An open file of the operating system.
#[derive(Debug)]
struct RealFile {
    file: fs::File,
    /// Open with `O_DIRECT`, for reads of this alignment.
    direct: Option<direct::Alignment>,
}

/// A lock of a directory and of a file in it, which lives as long as the open file descriptions. A
/// directory that holds a database cannot be deleted, so its lock cannot be lost. The file's lock
/// excludes processes that lock only the file, and works where directories cannot be locked.
#[derive(Debug)]
struct RealLock {
    dir: fs::File,
    dir_path: PathBuf,
    _file: Option<fs::File>,
}

impl DirLock for RealLock {
    fn is_in_place(&self) -> io::Result<bool> {
        names(&self.dir_path, &self.dir)
    }
}

/// Attempts to lock a path whose file or directory is being replaced.
const LOCK_ATTEMPTS: u32 = 10;

/// How a directory is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// Exclusive: for one process, which may write.
    Alone,
    /// Shared: for any number of processes that only read.
    Reading,
}

/// Whether the path leads to the open file, not to another file of that name.
fn names(path: &Path, open: &fs::File) -> io::Result<bool> {
    let opened = open.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Locks an open file; `false`: another holder has the lock. It belongs to the open file
/// description, so a second engine in this process is refused as well.
fn flock(file: &fs::File, share: Share) -> io::Result<bool> {
    let operation = match share {
        Share::Alone => FlockOperation::NonBlockingLockExclusive,
        Share::Reading => FlockOperation::NonBlockingLockShared,
    };
    match uninterrupted(|| Ok(rustix::fs::flock(file, operation)?)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Locks an open directory. NFS and some other file systems cannot do that; there the file's lock
/// has to suffice.
fn flock_dir(dir: &fs::File, share: Share) -> io::Result<bool> {
    match flock(dir, share) {
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::BADF | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK)
            ) =>
        {
            Ok(true)
        }
        locked => locked,
    }
}

/// Locks the directory of `path`, and the file. `None`: another holder has one of them.
fn lock(path: &Path, share: Share) -> io::Result<Option<RealLock>> {
    let dir_path = path
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    for _ in 0..LOCK_ATTEMPTS {
        let dir = open_dir(dir_path)?;
        if !flock_dir(&dir, share)? {
            return Ok(None);
        }
        let file = match open_lock_file(path, share) {
            Ok(file) => Some(file),
            Err(error) if share == Share::Reading && error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(file) = &file
            && !flock(file, share)?
        {
            return Ok(None);
        }
        // A lock on something that was replaced meanwhile excludes no process.
        let is_file_in_place = file.as_ref().map_or(Ok(true), |file| names(path, file))?;
        if is_file_in_place && names(dir_path, &dir)? {
            return Ok(Some(RealLock {
                dir,
                dir_path: dir_path.to_path_buf(),
                _file: file,
            }));
        }
    }
    Err(io::Error::other(format!(
        "the file or its directory was replaced {LOCK_ATTEMPTS} times while it was being locked"
    )))
}

fn open_lock_file(path: &Path, share: Share) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    if share == Share::Alone {
        options.write(true).create(true).truncate(false).mode(FILE_MODE);
    }
    options.open(path)
}

fn open_dir(dir: &Path) -> io::Result<fs::File> {
    let flags = OFlags::DIRECTORY.bits().cast_signed();
    fs::OpenOptions::new().read(true).custom_flags(flags).open(dir)
}

/// Repeats a call for as long as signals interrupt it.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(alignment) = self.direct {
            return direct::read_at(self.file.as_fd(), alignment, buffer, offset);
        }
        // The system may return less than asked for without being at the end; the trait promises that we do
        // not.
        let mut done = 0;
        while done < buffer.len() {
            match uninterrupted(|| self.file.read_at(&mut buffer[done..], offset + done as u64))? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match uninterrupted(|| {
            Ok(rustix::fs::fallocate(
                &self.file,
                FallocateFlags::empty(),
                0,
                len,
            )?)
        }) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => self.write_zeros_to(len),
            result => result,
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        let advice = match advice {
            Advice::Sequential => rustix::fs::Advice::Sequential,
            Advice::Random => rustix::fs::Advice::Random,
            Advice::WillNeed => rustix::fs::Advice::WillNeed,
            Advice::DontNeed => rustix::fs::Advice::DontNeed,
        };
        // Advice that the file system does not take changes speed only.
        let _ = rustix::fs::fadvise(&self.file, offset, NonZeroU64::new(len), advice);
    }
}

impl RealFile {
    /// Extends the file to `len` with written zeros: the fallback for file systems without
    /// reservation.
    fn write_zeros_to(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0; ZEROS_BYTES];
        let mut at = self.len()?;
        while at < len {
            let count = (len - at).min(ZEROS_BYTES as u64);
            self.file.write_all_at(&zeros[..count as usize], at)?;
            at += count;
        }
        Ok(())
    }
}

/// Whether the process or the system has no descriptor left.
fn descriptors_are_used_up(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

/// Syncs a directory with the descriptor of the reserve, for which it waits if another thread takes it.
/// The error is `used_up` if there is none after two seconds.
fn sync_in_reserve(dir: &Path, used_up: io::Error) -> io::Result<()> {
    let mut reserve = RESERVE.lock();
    for _ in 0..RESERVE_ATTEMPTS {
        drop(reserve.take());
        match open_dir(dir) {
            Err(error) if descriptors_are_used_up(&error) => std::thread::sleep(RESERVE_PAUSE),
            opened => {
                let synced = opened?.sync_all();
                // Without it the next uuid opens the source again.
                *reserve = fs::File::open(RANDOM).ok();
                return synced;
            }
        }
    }
    Err(used_up)
}

impl Vfs for RealFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(FILE_MODE);
        match how {
            Open::Read => {}
            Open::Direct => {
                options.custom_flags(OFlags::DIRECT.bits().cast_signed());
            }
            Open::Write => {
                options.write(true);
            }
            Open::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        let is_direct = how == Open::Direct;
        match options.open(path) {
            Err(error) if is_direct && direct::can_not(&error) => self.open(path, Open::Read),
            opened => {
                let file = opened?;
                let direct = is_direct.then(|| direct::Alignment::of(file.as_fd()));
                Ok(Arc::new(RealFile { file, direct }))
            }
        }
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = fs::read_dir(dir)?
            .map(|entry| Ok(PathBuf::from(entry?.file_name())))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        uninterrupted(|| fs::rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        uninterrupted(|| fs::hard_link(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        uninterrupted(|| fs::remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        uninterrupted(|| fs::remove_dir(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match open_dir(dir) {
            Err(error) if descriptors_are_used_up(&error) => sync_in_reserve(dir, error),
            opened => opened?.sync_all(),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        Ok(lock(path, Share::Alone)?.map(|lock| Box::new(lock) as Box<dyn DirLock>))
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        Ok(lock(path, Share::Reading)?.map(|lock| Box::new(lock) as Box<dyn DirLock>))
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(dir)?;
        Ok(Space {
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }

    fn draw_uuid(&self) -> io::Result<[u8; 16]> {
        let mut uuid = [0; 16];
        let mut reserve = RESERVE.lock();
        let source = match &mut *reserve {
            Some(source) => source,
            none => none.insert(fs::File::open(RANDOM)?),
        };
        source.read_exact(&mut uuid)?;
        drop(reserve);
        // Version 4, variant 1 (RFC 9562), so that tools that print uuids recognise it.
        uuid[6] = uuid[6] & 0x0f | 0x40;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        Ok(uuid)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Goal: only the owner can read the database. Method: the modes of a new directory and a new
    /// file.
    #[test]
    fn new_files_and_directories_are_the_owners_alone() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/b");
        RealFs.create_dir_all(&dir).unwrap();
        RealFs.open(&dir.join("f"), Open::CreateNew).unwrap();
        RealFs.lock(&dir.join("LOCK")).unwrap().unwrap();
        for (name, mode) in [
            ("a", 0o700),
            ("a/b", 0o700),
            ("a/b/f", 0o600),
            ("a/b/LOCK", 0o600),
        ] {
            let found = fs::metadata(root.path().join(name)).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{name}");
        }
    }

    /// Goal: two engines never share a directory, in one process or two, and the lock ends with its holder.
    #[test]
    fn a_lock_has_one_holder() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("LOCK");
        let held = RealFs.lock(&path).unwrap();
        assert!(held.is_some());
        assert!(RealFs.lock(&path).unwrap().is_none());
        drop(held);
        assert!(RealFs.lock(&path).unwrap().is_some());
    }

    /// Goal: a lock is lost neither with its file nor with the directory's name; a holder can
    /// detect a renamed directory.
    #[test]
    fn a_deleted_lock_file_and_a_moved_directory_let_nobody_in() {
        let root = tempfile::tempdir().unwrap();
        let (dir, aside) = (root.path().join("data"), root.path().join("aside"));
        fs::create_dir(&dir).unwrap();
        let path = dir.join("LOCK");
        let held = RealFs.lock(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(RealFs.lock(&path).unwrap().is_none());
        assert!(RealFs.lock_to_read(&path).unwrap().is_none());
        assert!(held.is_in_place().unwrap());
        fs::rename(&dir, &aside).unwrap();
        assert!(!held.is_in_place().unwrap());
        assert!(RealFs.lock(&aside.join("LOCK")).unwrap().is_none());
        fs::create_dir(&dir).unwrap();
        assert!(!held.is_in_place().unwrap());
    }

    /// Goal: readers exclude a writer, but not each other; they leave no file.
    #[test]
    fn readers_share_a_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("LOCK");
        let readers = [
            RealFs.lock_to_read(&path).unwrap(),
            RealFs.lock_to_read(&path).unwrap(),
        ];
        assert!(readers.iter().all(Option::is_some) && !path.exists());
        assert!(RealFs.lock(&path).unwrap().is_none());
        drop(readers);
        let held = RealFs.lock(&path).unwrap();
        assert!(held.is_some() && RealFs.lock_to_read(&path).unwrap().is_none());
    }

    /// Goal: bytes come back, reads stop at the end, preallocated space reads as zeros.
    #[test]
    fn reads_writes_and_sizes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        let file = RealFs.open(&path, Open::CreateNew).unwrap();
        assert_eq!(
            RealFs.open(&path, Open::CreateNew).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        file.write_at(b"hello", 3).unwrap();
        file.allocate(0).unwrap();
        file.allocate(4).unwrap();
        assert_eq!(file.len().unwrap(), 8);
        file.allocate(12).unwrap();
        file.sync_data().unwrap();
        file.advise(0, 0, Advice::DontNeed);
        let mut buffer = [9; 16];
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 12);
        assert_eq!(&buffer, b"\0\0\0hello\0\0\0\0\x09\x09\x09\x09");
        assert_eq!(
            file.read_exact_at(&mut buffer, 0).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        file.set_len(4).unwrap();
        file.sync_all().unwrap();
        RealFs.sync_dir(root.path()).unwrap();
        assert_eq!(file.len().unwrap(), 4);
    }

    /// Goal: opening for direct reads works where the file system has none, and other errors are
    /// reported. Method: a file of procfs, which refuses direct reads, and a missing one.
    #[cfg(target_os = "linux")]
    #[test]
    fn files_without_direct_reads_are_opened_without() {
        let path = Path::new("/proc/self/status");
        let flags = OFlags::DIRECT.bits().cast_signed();
        let refused = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
        assert!(direct::can_not(&refused.unwrap_err()));
        let file = RealFs.open(path, Open::Direct).unwrap();
        let mut begin = [0; 5];
        file.read_exact_at(&mut begin, 0).unwrap();
        assert_eq!(&begin, b"Name:");
        let missing = RealFs.open(Path::new("/proc/self/missing"), Open::Direct);
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Goal: a file system without fallocate gets its space by writing. Method: the fallback, called
    /// directly.
    #[test]
    fn zeros_stand_in_for_fallocate() {
        let root = tempfile::tempdir().unwrap();
        let file = RealFile {
            file: fs::OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(root.path().join("f"))
                .unwrap(),
            direct: None,
        };
        file.write_at(b"keep", 0).unwrap();
        let len = ZEROS_BYTES as u64 + 5;
        file.write_zeros_to(len).unwrap();
        assert_eq!(file.len().unwrap(), len);
        let mut buffer = [9; 6];
        file.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!(&buffer, b"keep\0\0");
    }

    #[test]
    fn names_come_sorted_and_uuids_differ() {
        let root = tempfile::tempdir().unwrap();
        for name in ["b", "a", "c"] {
            RealFs.open(&root.path().join(name), Open::CreateNew).unwrap();
        }
        let path = |name: &str| root.path().join(name);
        RealFs.rename(&path("a"), &path("c")).unwrap();
        RealFs.link(&path("c"), &path("a")).unwrap();
        RealFs.remove_file(&path("b")).unwrap();
        RealFs.create_dir_all(&path("d")).unwrap();
        RealFs.remove_dir(&path("d")).unwrap();
        assert_eq!(
            RealFs.list(root.path()).unwrap(),
            [PathBuf::from("a"), PathBuf::from("c")]
        );
        assert!(RealFs.exists(&path("a")).unwrap());
        assert!(!RealFs.exists(&path("b")).unwrap());
        assert!(RealFs.space(root.path()).unwrap().total_bytes > 0);
        assert_ne!(RealFs.draw_uuid().unwrap(), RealFs.draw_uuid().unwrap());
    }
}
