//! The handle cache: bounds how many store files are open at a time.
//!
//! A database may have more store files than the process may have descriptors. A reader therefore
//! holds a [`CachedFile`], which is a path and, until the cache evicts it, an open handle. A handle
//! takes one descriptor.
//!
//! A read:
//! 1. takes the file's handle (one uncontended lock; reads served by the block cache never get
//!    here);
//! 2. on a miss reserves a descriptor, opens the file and enters it in the queue;
//! 3. reads, and returns its share of the handle.
//!
//! A reservation when `limit` descriptors are taken closes the coldest handle that no read uses.
//! The queue is in the order of opening, and a handle that was used since it was last examined
//! moves to its end once (second chance).
//!
//! Files being written ([`HandleCache::create`]) take a descriptor of the same limit until they are
//! dropped. They are never evicted.
//!
//! Invariants:
//! - `open` counts exactly the descriptors that are open, being opened or being closed: a
//!   [`Permit`] lives as long as its descriptor.
//! - `open` is at most `limit`, or the number of descriptors in use by threads at this moment if
//!   that is larger. A thread uses at most one to read and one to write. So no read waits for
//!   another one, and none fails for lack of a handle.
//! - A handle in use is never closed: shares are handed out under the lock of the file's slot, and
//!   under that lock an eviction closes only a handle without any.
//! - A file with a handle is in the queue exactly once, except between opening and entering it,
//!   when it is in use.
//!
//! REQUIRES: the file of a path does not change, and keeps its name until its last [`CachedFile`]
//! has done its last read (`store::removals`).
//!
//! Lock order: the queue, then a slot. No lock is held while a file is opened or read, or an
//! evicted handle closed.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use rustix::io::Errno;

use super::{Advice, File, Open, Vfs};
use crate::seeded;
use crate::sync::Mutex;
use crate::sync::atomic::AtomicUsize;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

/// Queue entries of dropped files are tolerated up to this many, plus one per open handle.
const STALE_ENTRIES: usize = 64;

/// Figures of a [`HandleCache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandleUsage {
    /// Descriptors in use by store files.
    pub open: usize,
    /// Maximum number of descriptors, exceeded only while threads use all of them.
    pub limit: usize,
    /// Files opened for reading so far.
    pub opens: u64,
    /// Handles closed to make room so far.
    pub evictions: u64,
}

/// Opens store files and bounds the number of open ones. Shared by all threads.
#[derive(Debug)]
pub struct HandleCache {
    vfs: Arc<dyn Vfs>,
    limit: usize,
    open: AtomicUsize,
    /// Files with a handle, coldest first.
    queue: Mutex<VecDeque<Weak<CachedFile>>>,
    opens: AtomicU64,
    evictions: AtomicU64,
}

impl HandleCache {
    /// A cache of at most `limit` descriptors; `usize::MAX` is no bound.
    pub fn new(vfs: Arc<dyn Vfs>, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            vfs,
            limit,
            open: AtomicUsize::new(0),
            queue: Mutex::default(),
            opens: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        })
    }

    /// Opens an existing file for reading. If its handle is evicted, the next read opens the file
    /// again; if that fails, the read fails.
    pub fn open(self: &Arc<Self>, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        debug_assert!(matches!(how, Open::Read | Open::Direct), "{how:?}");
        let file = Arc::new_cyclic(|me| CachedFile {
            me: Weak::clone(me),
            cache: Arc::clone(self),
            path: path.to_owned(),
            how,
            slot: Mutex::default(),
        });
        file.reopen()?;
        Ok(file)
    }

    /// Creates a file for writing. It keeps its descriptor until it is dropped.
    pub fn create(self: &Arc<Self>, path: &Path) -> io::Result<Arc<dyn File>> {
        let permit = self.reserve();
        let file = self.vfs.open(path, Open::CreateNew)?;
        Ok(Arc::new(Handle {
            file,
            _permit: permit,
        }))
    }

    /// Figures for metrics and pages.
    pub fn usage(&self) -> HandleUsage {
        HandleUsage {
            open: self.open.load(Ordering::Relaxed),
            limit: self.limit,
            opens: self.opens.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    /// Takes a descriptor, after closing another one if there is no room. If all are in use, the
    /// new one exceeds the limit.
    fn reserve(self: &Arc<Self>) -> Permit {
        loop {
            let is_free = |open| open < self.limit || seeded::is_on("store-files-without-bound");
            let take = |open| is_free(open).then_some(open + 1);
            let taken = self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
            if taken.is_ok() {
                break;
            }
            if !self.evict() {
                self.open.fetch_add(1, Ordering::AcqRel);
                break;
            }
        }
        Permit(Arc::clone(self))
    }

    /// Closes the coldest handle that is not in use; returns whether there was one.
    fn evict(&self) -> bool {
        let Some(handle) = self.coldest() else {
            return false;
        };
        self.evictions.fetch_add(1, Ordering::Relaxed);
        drop(handle);
        true
    }

    fn coldest(&self) -> Option<Arc<Handle>> {
        let mut queue = self.queue.lock();
        // The first visit to a handle clears its used flag, the second one evicts it.
        for _ in 0..2 * queue.len() {
            let entry = queue.pop_front()?;
            let Some(file) = entry.upgrade() else { continue };
            let taken = file.slot.lock().take_if_cold();
            if taken.is_some() {
                return taken;
            }
            queue.push_back(entry);
        }
        None
    }

    /// Enters a file that has got a handle.
    fn enter(&self, file: Weak<CachedFile>) {
        let mut queue = self.queue.lock();
        queue.push_back(file);
        // At least half of the queue is stale entries then, so this costs a constant time per
        // entry.
        if queue.len() > 2 * self.open.load(Ordering::Relaxed) + STALE_ENTRIES {
            queue.retain(|entry| entry.strong_count() > 0);
        }
    }
}

/// A descriptor that counts against the limit.
#[derive(Debug)]
struct Permit(Arc<HandleCache>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An open file and its descriptor's permit. Fields are dropped in this order: a descriptor is
/// closed before its permit is released.
#[derive(Debug)]
struct Handle {
    file: Arc<dyn File>,
    _permit: Permit,
}

/// The open handle of a file, if any, and its state.
#[derive(Debug, Default)]
struct Slot {
    handle: Option<Arc<Handle>>,
    /// Whether a read has used the handle since an eviction looked at it last.
    used: bool,
    /// Advice for the whole file, applied to every handle.
    advice: Option<Advice>,
}

impl Slot {
    /// A share of the handle, if there is one.
    fn share(&mut self) -> Option<Arc<Handle>> {
        let handle = self.handle.as_ref()?;
        self.used = true;
        Some(Arc::clone(handle))
    }

    /// The handle, if it is not in use and was not used since the last call.
    fn take_if_cold(&mut self) -> Option<Arc<Handle>> {
        // Shares are made only from the slot, which is locked, so the count cannot rise.
        let is_idle = self
            .handle
            .as_ref()
            .is_some_and(|handle| Arc::strong_count(handle) == 1);
        let was_used = std::mem::take(&mut self.used);
        if is_idle && !was_used {
            return self.handle.take();
        }
        None
    }
}

/// A file for reading whose handle may be closed between reads.
#[derive(Debug)]
struct CachedFile {
    me: Weak<Self>,
    cache: Arc<HandleCache>,
    path: PathBuf,
    how: Open,
    slot: Mutex<Slot>,
}

impl CachedFile {
    /// The handle, for one read.
    fn handle(&self) -> io::Result<Arc<Handle>> {
        let open = self.slot.lock().share();
        open.map_or_else(|| self.reopen(), Ok)
    }

    /// Opens the file. If several threads do so at once, all end with the handle of the first.
    fn reopen(&self) -> io::Result<Arc<Handle>> {
        let permit = self.cache.reserve();
        let file = self.cache.vfs.open(&self.path, self.how)?;
        self.cache.opens.fetch_add(1, Ordering::Relaxed);
        let opened = Arc::new(Handle {
            file,
            _permit: permit,
        });
        let mut slot = self.slot.lock();
        if let Some(first) = slot.share() {
            return Ok(first);
        }
        if let Some(advice) = slot.advice {
            opened.file.advise(0, 0, advice);
        }
        slot.handle = Some(Arc::clone(&opened));
        drop(slot);
        self.cache.enter(Weak::clone(&self.me));
        Ok(opened)
    }
}

/// The error of writing to a descriptor that is open for reading.
fn read_only<T>() -> io::Result<T> {
    Err(Errno::BADF.into())
}

impl File for CachedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.handle()?.file.read_at(buffer, offset)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.handle()?.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        read_only()
    }

    fn sync_data(&self) -> io::Result<()> {
        read_only()
    }

    fn sync_all(&self) -> io::Result<()> {
        read_only()
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        read_only()
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        read_only()
    }

    fn len(&self) -> io::Result<u64> {
        self.handle()?.file.len()
    }

    /// Advice for the whole file (no offset, no length) holds for every handle the file will have;
    /// other advice goes to the present handle, if there is one.
    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        let handle = {
            let mut slot = self.slot.lock();
            if (offset, len) == (0, 0) {
                slot.advice = Some(advice);
            }
            slot.share()
        };
        if let Some(handle) = handle {
            handle.file.advise(offset, len, advice);
        }
    }
}

impl File for Handle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
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
        self.file.advise(offset, len, advice);
    }
}
