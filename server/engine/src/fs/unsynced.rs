//! A file system without durability: [`Vfs`] over the operating system's, with syncs that do
//! nothing.
//!
//! It is for databases that end with their process, such as those of tests. All bytes are written,
//! so that a full disk, a removed directory and an unreadable file fail as they do on [`RealFs`]; a
//! power cut loses any of them. Reserved space is a hole in the file: a temporary directory in
//! memory would otherwise hold 64 MiB of zeros for each segment of the log. Writes into a hole may
//! find the disk full.
//!
//! Everything may be called from every thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Advice, DirLock, File, Open, RealFs, Space, Vfs};

/// The operating system's file system, with syncs that do nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnsyncedFs {
    real: RealFs,
}

/// An open file whose syncs do nothing.
#[derive(Debug)]
struct UnsyncedFile(Arc<dyn File>);

impl File for UnsyncedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if self.0.len()? < len {
            self.0.set_len(len)?;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.0.advise(offset, len, advice);
    }
}

impl Vfs for UnsyncedFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(UnsyncedFile(self.real.open(path, how)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.real.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.real.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.real.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.real.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.real.remove_dir(path)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        self.real.lock(path)
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        self.real.lock_to_read(path)
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        self.real.space(dir)
    }

    fn draw_uuid(&self) -> io::Result<[u8; 16]> {
        self.real.draw_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: reserved space reads as zeros, is in the file's length and takes no space.
    #[test]
    fn reserved_space_is_a_hole() {
        use std::os::unix::fs::MetadataExt as _;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        let file = UnsyncedFs::default().open(&path, Open::CreateNew).unwrap();
        file.write_at(b"keep", 0).unwrap();
        file.allocate(2).unwrap();
        assert_eq!(file.len().unwrap(), 4);
        file.allocate(64 << 20).unwrap();
        let mut buffer = [9; 6];
        file.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!((file.len().unwrap(), &buffer), (64 << 20, b"keep\0\0"));
        let blocks = std::fs::metadata(&path).unwrap().blocks();
        assert!(blocks * 512 < 1 << 20, "{blocks} blocks of 512 bytes");
    }

    /// Goal: a sync costs nothing. Method: syncs that the real file system refuses, of a directory
    /// that does not exist.
    #[test]
    fn syncs_do_nothing() {
        let missing = Path::new("/nowhere/at/all");
        RealFs.sync_dir(missing).unwrap_err();
        UnsyncedFs::default().sync_dir(missing).unwrap();
    }
}
