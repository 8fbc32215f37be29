//! Reads past the page cache (`O_DIRECT`).
//!
//! The disk takes whole sectors at whole sectors, to and from memory that begins at one. Callers ask for any bytes:
//!
//! 1. The range is widened to multiples of [`ALIGN_BYTES`].
//! 2. It is read into a buffer of the thread, at such a multiple.
//! 3. What was asked for is copied from there.
//!
//! A file system that cannot do it says so when the file is opened ([`can_not`]), or with the first read: then the file is read through
//! the page cache from there on. What was written through the page cache and is not on disk yet is found: the system writes it first.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::real::RealFile;
use super::{Advice, File};

/// What offsets, lengths and addresses are multiples of: the page, which is at least the sector of every common disk.
const ALIGN_BYTES: usize = 4096;

/// A thread keeps a buffer of at most this size for its next read.
const KEEP_BYTES: usize = 256 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether opening failed because the file system has no such reads.
pub(super) fn can_not(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INVAL)
}

/// A file that is open with `O_DIRECT`, for reading.
#[derive(Debug)]
pub(super) struct DirectFile {
    inner: RealFile,
}

impl DirectFile {
    pub(super) fn new(inner: RealFile) -> Self {
        Self { inner }
    }

    /// Reads into `buffer`, which is aligned like `offset`; fewer bytes only at the end of the file.
    fn read_aligned(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.inner.read_at(buffer, offset) {
            Err(error) if can_not(&error) => {
                let flags = rustix::fs::fcntl_getfl(self.inner.descriptor())?;
                rustix::fs::fcntl_setfl(self.inner.descriptor(), flags - OFlags::DIRECT)?;
                self.inner.read_at(buffer, offset)
            }
            result => result,
        }
    }

    /// Reads what `wanted` asks for by way of `buffer`.
    fn read_through(&self, buffer: &mut Vec<u8>, wanted: &mut [u8], offset: u64) -> io::Result<usize> {
        let before = (offset % ALIGN_BYTES as u64) as usize;
        let whole = (before + wanted.len()).next_multiple_of(ALIGN_BYTES);
        buffer.resize(whole + ALIGN_BYTES, 0);
        let skip = buffer.as_ptr().align_offset(ALIGN_BYTES);
        let aligned = &mut buffer[skip..skip + whole];
        let count = self.read_aligned(aligned, offset - before as u64)?;
        let count = count.saturating_sub(before).min(wanted.len());
        wanted[..count].copy_from_slice(&aligned[before..before + count]);
        Ok(count)
    }
}

impl File for DirectFile {
    fn read_at(&self, wanted: &mut [u8], offset: u64) -> io::Result<usize> {
        if wanted.is_empty() {
            return Ok(0);
        }
        BUFFER.with_borrow_mut(|buffer| {
            let result = self.read_through(buffer, wanted, offset);
            if buffer.capacity() > KEEP_BYTES {
                *buffer = Vec::new();
            }
            result
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.inner.sync_all()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.inner.allocate(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.inner.advise(offset, len, advice);
    }
}

/// A file that [`super::Open::Direct`] opens: `open` is given flags for the system.
pub(super) fn open(open: impl Fn(OFlags) -> io::Result<RealFile>) -> io::Result<Arc<dyn File>> {
    match open(OFlags::DIRECT) {
        Ok(file) => Ok(Arc::new(DirectFile::new(file))),
        Err(error) if can_not(&error) => Ok(Arc::new(open(OFlags::empty())?)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Open, RealFs, Vfs};
    use super::*;

    /// A file of so many bytes that follow no pattern, and these bytes.
    fn file(len: usize) -> (tempfile::TempDir, Arc<dyn File>, Vec<u8>) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        let bytes: Vec<u8> = (0..len).map(|at| (at * at / 7 + at) as u8).collect();
        let written = RealFs.open(&path, Open::CreateNew).unwrap();
        written.write_at(&bytes, 0).unwrap();
        let direct = RealFs.open(&path, Open::Direct).unwrap();
        (root, direct, bytes)
    }

    proptest! {
        /// Goal: whoever reads does not notice. Method: any range of files whose sizes are no multiples of anything, against the bytes
        /// that were written, which may not be on disk yet.
        #[test]
        fn any_range_is_read(len in 0_usize..40_000, offset in 0_usize..45_000, count in 0_usize..30_000) {
            let (_root, direct, bytes) = file(len);
            let mut wanted = vec![9; count];
            let found = direct.read_at(&mut wanted, offset as u64).unwrap();
            let expected = bytes.get(offset..).unwrap_or_default();
            let expected = &expected[..expected.len().min(count)];
            prop_assert_eq!(&wanted[..found], expected);
            prop_assert!(wanted[found..].iter().all(|byte| *byte == 9));
        }
    }

    /// Goal: a file system that takes no such reads is read all the same. Method: a file whose mark is gone, and another whose reads fail.
    #[test]
    fn without_direct_reads_the_page_cache_serves() {
        let (root, _, bytes) = file(10_000);
        let refused = |flags: OFlags| {
            if flags.contains(OFlags::DIRECT) {
                return Err(Errno::INVAL.into());
            }
            RealFile::open_with(&root.path().join("f"), Open::Read, flags)
        };
        let mut found = vec![0; 100];
        open(refused).unwrap().read_exact_at(&mut found, 5_000).unwrap();
        assert_eq!(found, bytes[5_000..5_100]);

        // Memory at an odd address is what the system refuses with the same error as a file system without direct reads.
        let direct =
            DirectFile::new(RealFile::open_with(&root.path().join("f"), Open::Read, OFlags::DIRECT).unwrap());
        let mut odd = vec![0; 8192];
        let skip = odd.as_ptr().align_offset(2) + 1;
        let count = direct.read_aligned(&mut odd[skip..skip + 4096], 1).unwrap();
        assert_eq!(odd[skip..skip + count], bytes[1..=count]);
        assert_eq!(count, 4096);
    }

    #[test]
    fn errors_other_than_that_are_told() {
        let root = tempfile::tempdir().unwrap();
        let missing = RealFs.open(&root.path().join("f"), Open::Direct).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
