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
use std::os::fd::BorrowedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// What offsets, lengths and addresses are multiples of: the page, which is at least the sector of every common disk.
const ALIGN_BYTES: usize = 4096;

/// A thread keeps a buffer of at most this size for its next read.
const KEEP_BYTES: usize = 256 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether a call failed because the file system has no such reads.
pub(super) fn can_not(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INVAL)
}

/// Reads at most `wanted.len()` bytes of a file that is open with `O_DIRECT`; fewer only at its end.
pub(super) fn read_at(file: BorrowedFd<'_>, wanted: &mut [u8], offset: u64) -> io::Result<usize> {
    if wanted.is_empty() {
        return Ok(0);
    }
    BUFFER.with_borrow_mut(|buffer| {
        let result = read_through(file, buffer, wanted, offset);
        if buffer.capacity() > KEEP_BYTES {
            *buffer = Vec::new();
        }
        result
    })
}

/// [`read_at`] by way of `buffer`, which grows as needed.
fn read_through(
    file: BorrowedFd<'_>,
    buffer: &mut Vec<u8>,
    wanted: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let before = (offset % ALIGN_BYTES as u64) as usize;
    let whole = (before + wanted.len()).next_multiple_of(ALIGN_BYTES);
    if buffer.len() < whole + ALIGN_BYTES {
        buffer.resize(whole + ALIGN_BYTES, 0);
    }
    let skip = buffer.as_ptr().align_offset(ALIGN_BYTES);
    let aligned = &mut buffer[skip..skip + whole];
    let count = read_pages(file, aligned, offset - before as u64)?;
    let count = count.saturating_sub(before).min(wanted.len());
    wanted[..count].copy_from_slice(&aligned[before..before + count]);
    Ok(count)
}

/// Reads whole pages; fewer bytes only at the end of the file.
/// REQUIRES: address, length and offset are multiples of [`ALIGN_BYTES`].
fn read_pages(file: BorrowedFd<'_>, pages: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    // After a part of a page comes the end. To go on from there would ask for what is no page.
    while done < pages.len() && done.is_multiple_of(ALIGN_BYTES) {
        match read_once(file, &mut pages[done..], offset + done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// One read. A file system that turns out to have no direct reads is asked again without.
fn read_once(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = || rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *buffer, offset));
    match read() {
        Err(Errno::INVAL) => {
            let flags = rustix::fs::fcntl_getfl(file)?;
            rustix::fs::fcntl_setfl(file, flags - OFlags::DIRECT)?;
            Ok(read()?)
        }
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::os::fd::{AsFd as _, OwnedFd};
    use std::path::{Path, PathBuf};

    use rustix::fs::Mode;

    use super::super::{Open, RealFs, Vfs};
    use super::*;

    /// A file of so many bytes that follow no pattern, and these bytes.
    fn file(len: usize) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        let bytes: Vec<u8> = (0..len).map(|at| (at * at / 7 + at) as u8).collect();
        let written = RealFs.open(&path, Open::CreateNew).unwrap();
        written.write_at(&bytes, 0).unwrap();
        (root, path, bytes)
    }

    fn open_direct(path: &Path) -> OwnedFd {
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECT, Mode::empty());
        file.expect("the tests' folder is on a file system with direct reads")
    }

    fn is_direct(file: &OwnedFd) -> bool {
        rustix::fs::fcntl_getfl(file).unwrap().contains(OFlags::DIRECT)
    }

    proptest! {
        /// Goal: whoever reads does not notice. Method: any range of files whose sizes are no multiples of anything, against the bytes
        /// that were written, which may not be on disk yet.
        #[test]
        fn any_range_is_read(len in 0_usize..40_000, offset in 0_usize..45_000, count in 0_usize..30_000) {
            let (_root, path, bytes) = file(len);
            let direct = open_direct(&path);
            let mut wanted = vec![9; count];
            let found = read_at(direct.as_fd(), &mut wanted, offset as u64).unwrap();
            let expected = bytes.get(offset..).unwrap_or_default();
            let expected = &expected[..expected.len().min(count)];
            prop_assert_eq!(&wanted[..found], expected);
            prop_assert!(wanted[found..].iter().all(|byte| *byte == 9));
            prop_assert!(is_direct(&direct), "the page cache was not needed");
        }
    }

    /// Goal: a file system that takes no such reads is read all the same. Method: memory at an odd address, which the system refuses with
    /// the same error.
    #[test]
    fn without_direct_reads_the_page_cache_serves() {
        let (_root, path, bytes) = file(10_000);
        let direct = open_direct(&path);
        let mut odd = vec![0; 8192];
        let skip = odd.as_ptr().align_offset(2) + 1;
        let count = read_once(direct.as_fd(), &mut odd[skip..skip + 4096], 1).unwrap();
        assert_eq!(odd[skip..skip + count], bytes[1..=count]);
        assert_eq!(count, 4096);
        assert!(!is_direct(&direct));
        let mut found = [0; 100];
        assert_eq!(read_at(direct.as_fd(), &mut found, 5_000).unwrap(), 100);
        assert_eq!(found, bytes[5_000..5_100]);
    }
}
