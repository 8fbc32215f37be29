//! Reads past the page cache (`O_DIRECT`).
//!
//! The disk takes whole sectors at whole sectors, to and from memory that begins at one. Callers ask for any
//! bytes:
//!
//! 1. The range is widened to multiples of the file's [`Alignment`].
//! 2. It is read into a buffer of the thread that begins at a page.
//! 3. The requested bytes are copied from there.
//!
//! A file system without direct reads refuses the open ([`can_not`]) or the first read: then the
//! file is read through the page cache from there on. Bytes that were written through the page
//! cache and are not on disk yet are found: the system writes them first.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;

/// The page: at least the sector of every common disk.
const PAGE_BYTES: usize = 4096;

/// A thread keeps a buffer of at most this size for its next read.
const KEEP_BYTES: usize = 256 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Alignment of offsets and lengths of a file's direct reads: a power of two, at most a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alignment(usize);

impl Alignment {
    /// The alignment that suits every common file.
    const PAGE: Self = Self(PAGE_BYTES);

    /// The alignment that the file system reports for this file (Linux 6.1 and later), usually the
    /// disk's sector. The smaller it is, the less is read around a block. [`Self::PAGE`] if none is
    /// reported.
    pub(super) fn of(file: BorrowedFd<'_>) -> Self {
        // Without an answer the page size is used: the alignment only affects speed.
        let Ok(found) = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
            return Self::PAGE;
        };
        let offers = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN);
        let bytes = found.stx_dio_offset_align as usize;
        if offers && bytes.is_power_of_two() && bytes <= PAGE_BYTES {
            Self(bytes)
        } else {
            Self::PAGE
        }
    }

    /// The smallest aligned range around `len` bytes at `offset`: where it begins, how many bytes of it come
    /// before `offset`, and how long it is.
    fn around(self, offset: u64, len: usize) -> (u64, usize, usize) {
        let before = offset % self.0 as u64;
        let whole = (before as usize + len).next_multiple_of(self.0);
        (offset - before, before as usize, whole)
    }
}

/// Whether a call failed because the file system has no such reads.
pub(super) fn can_not(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INVAL)
}

/// Reads at most `wanted.len()` bytes of a file that is open with `O_DIRECT`; fewer only at its end.
pub(super) fn read_at(
    file: BorrowedFd<'_>,
    alignment: Alignment,
    wanted: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    if wanted.is_empty() {
        return Ok(0);
    }
    BUFFER.with_borrow_mut(|buffer| {
        let result = read_through(file, alignment, buffer, wanted, offset);
        if buffer.capacity() > KEEP_BYTES {
            *buffer = Vec::new();
        }
        result
    })
}

/// [`read_at`] by way of `buffer`, which grows as needed.
fn read_through(
    file: BorrowedFd<'_>,
    alignment: Alignment,
    buffer: &mut Vec<u8>,
    wanted: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let (from, before, whole) = alignment.around(offset, wanted.len());
    if buffer.len() < whole + PAGE_BYTES {
        buffer.resize(whole + PAGE_BYTES, 0);
    }
    let skip = buffer.as_ptr().align_offset(PAGE_BYTES);
    let aligned = &mut buffer[skip..skip + whole];
    let count = read_sectors(file, alignment, aligned, from)?;
    let count = count.saturating_sub(before).min(wanted.len());
    wanted[..count].copy_from_slice(&aligned[before..before + count]);
    Ok(count)
}

/// Reads whole sectors; fewer bytes only at the end of the file.
/// REQUIRES: length and offset are multiples of the alignment, and the address of a page.
fn read_sectors(
    file: BorrowedFd<'_>,
    alignment: Alignment,
    sectors: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let mut done = 0;
    // A partial sector is the end of the file. Reading on would ask for an unaligned offset.
    while done < sectors.len() && done.is_multiple_of(alignment.0) {
        match read_once(file, &mut sectors[done..], offset + done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// One read. If the file system turns out to have no direct reads, the read is retried without.
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

    /// A file of this many bytes that follow no pattern, and these bytes.
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
        /// Goal: readers do not notice direct reads. Method: any range of files whose sizes are no
        /// multiples of anything, against the bytes that were written, which may not be on disk
        /// yet; by pages, and by the file system's alignment.
        #[test]
        fn any_range_is_read(
            len in 0_usize..40_000, offset in 0_usize..45_000, count in 0_usize..30_000, by_pages: bool,
        ) {
            let (_root, path, bytes) = file(len);
            let direct = open_direct(&path);
            let alignment = if by_pages { Alignment::PAGE } else { Alignment::of(direct.as_fd()) };
            let mut wanted = vec![9; count];
            let found = read_at(direct.as_fd(), alignment, &mut wanted, offset as u64).unwrap();
            let expected = bytes.get(offset..).unwrap_or_default();
            let expected = &expected[..expected.len().min(count)];
            prop_assert_eq!(&wanted[..found], expected);
            prop_assert!(wanted[found..].iter().all(|byte| *byte == 9));
            prop_assert!(is_direct(&direct), "the page cache was not needed");
        }
    }

    proptest! {
        /// Goal: a read covers the requested range and less than a sector on each side. Method: any
        /// range, any alignment.
        #[test]
        fn as_little_as_can_be_is_read(offset in 0_u64..1 << 40, len in 1_usize..100_000, power in 9_u32..=12) {
            let sector = 1 << power;
            let (from, before, whole) = Alignment(sector).around(offset, len);
            prop_assert_eq!(from + before as u64, offset);
            prop_assert!(from.is_multiple_of(sector as u64) && whole.is_multiple_of(sector));
            prop_assert!(before < sector && whole >= before + len && whole < before + len + sector);
        }
    }

    /// Goal: a file without information about direct reads is no error. Method: a pseudo file of
    /// the system.
    #[test]
    fn pages_are_the_default_alignment() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(Alignment::of(file.as_fd()), Alignment::PAGE);
    }

    /// Goal: a file system without direct reads is read all the same. Method: memory at an odd
    /// address, which the system refuses with the same error.
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
        assert_eq!(
            read_at(direct.as_fd(), Alignment::PAGE, &mut found, 5_000).unwrap(),
            100
        );
        assert_eq!(found, bytes[5_000..5_100]);
    }
}
