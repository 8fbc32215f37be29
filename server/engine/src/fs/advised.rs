//! For tests: a file that records its page-cache advice and the number of its reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{Advice, File};

/// Another file, and every range of it that the system was advised about.
#[derive(Debug)]
pub(crate) struct Advised {
    file: Arc<dyn File>,
    ranges: Mutex<Vec<(u64, u64, Advice)>>,
    reads: AtomicUsize,
}

impl Advised {
    pub(crate) fn new(file: Arc<dyn File>) -> Arc<Self> {
        Arc::new(Self {
            file,
            ranges: Mutex::default(),
            reads: AtomicUsize::new(0),
        })
    }

    /// Reads since the last call.
    pub(crate) fn take_reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }

    /// First byte and the one after the last of each advice, in the order of the calls. Fails if
    /// other advice than this was given.
    pub(crate) fn ranges(&self, expected: Advice) -> Vec<(u64, u64)> {
        let ranges = self.ranges.lock();
        let of_one = |(from, to, advice): &(u64, u64, Advice)| {
            assert_eq!(*advice, expected);
            (*from, *to)
        };
        ranges.iter().map(of_one).collect()
    }

    /// Takes the advice given since the last call.
    pub(crate) fn take(&self) -> Vec<(u64, u64, Advice)> {
        std::mem::take(&mut self.ranges.lock())
    }
}

impl File for Advised {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.ranges.lock().push((offset, offset + len, advice));
    }
}
