//! Read-ahead: a window of blocks next to the one that a cursor needs.
//!
//! A cursor that goes forward reads a window that begins with the block, one that goes backward a
//! window that ends with it. Windows double while the cursor continues in the same direction, so a
//! short scan reads little too much. From the second window on, the system is advised to read the
//! next window, so that the disk works while this one is used.
//!
//! A call that cannot reserve a window reads block by block.
//!
//! Belongs to one cursor. Holds one window: at most [`WINDOW_BYTES_MAX`] bytes, or one larger
//! block.

use std::ops::Range;
use std::path::Path;

use super::ReadOptions;
use super::index::Handle;
use crate::cell::{Account, CallMemory, OnShortage};
use crate::error::{Error, Result};
use crate::fs::{Advice, File};

/// The bytes of a file, and the memory for windows of them.
#[derive(Debug)]
pub(super) struct FileBytes<'a> {
    pub(super) file: &'a dyn File,
    pub(super) path: &'a Path,
    /// The end of the blocks that can be in a window.
    pub(super) end: u64,
    pub(super) calls: &'a CallMemory,
}

impl FileBytes<'_> {
    /// Advises the system that a part of the file will be read soon. Does nothing for an empty
    /// part.
    pub(super) fn will_need(&self, part: Range<u64>) {
        let bytes = part.end.saturating_sub(part.start);
        // Length 0 would mean the rest of the file.
        if bytes > 0 {
            self.file.advise(part.start, bytes, Advice::WillNeed);
        }
    }

    /// Reads bytes of the file.
    pub(super) fn read_exact(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|source| Error::io("reading", self.path, source))
    }
}

/// Where a cursor that needs a block will go next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Toward {
    /// To the block after it.
    #[default]
    End,
    /// To the block before it.
    Start,
}

/// A window of the file in memory.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    offset: u64,
    bytes: Vec<u8>,
    window_bytes: usize,
    account: Account,
}

const WINDOW_BYTES_MIN: usize = 128 << 10;
pub(super) const WINDOW_BYTES_MAX: usize = 1 << 20;

impl ReadAhead {
    /// The bytes of a block, read now together with the blocks next to it if the window does not
    /// have them.
    /// REQUIRES: it ends before the load-on-open section.
    pub(super) fn read(
        &mut self,
        file: &FileBytes<'_>,
        handle: Handle,
        options: ReadOptions,
        toward: Toward,
    ) -> Result<&[u8]> {
        let wanted = handle.bytes as usize;
        let skip = match self.skip_to(handle) {
            Some(skip) => skip,
            None => self.fill(file, handle, options, toward)?,
        };
        Ok(&self.bytes[skip..skip + wanted])
    }

    /// The offset of the block in the window, if the window has all of it.
    fn skip_to(&self, handle: Handle) -> Option<usize> {
        let skip = usize::try_from(handle.offset.checked_sub(self.offset)?).ok()?;
        (skip + handle.bytes as usize <= self.bytes.len()).then_some(skip)
    }

    /// Reads the window of a block; returns the block's offset in it.
    fn fill(
        &mut self,
        file: &FileBytes<'_>,
        handle: Handle,
        options: ReadOptions,
        toward: Toward,
    ) -> Result<usize> {
        let goes_on = self.goes_on(handle, toward);
        self.window_bytes = if goes_on {
            self.next_window_bytes()
        } else {
            WINDOW_BYTES_MIN
        };
        let block_end = handle.offset + u64::from(handle.bytes);
        let window_bytes = self.window_bytes.max(handle.bytes as usize) as u64;
        let (mut start, end) = match toward {
            Toward::End => {
                let end = handle.offset.saturating_add(window_bytes);
                (handle.offset, end.min(file.end))
            }
            Toward::Start => (block_end.saturating_sub(window_bytes), block_end),
        };
        if !self.make_room(file, (end - start) as usize, handle.bytes as usize, options) {
            start = handle.offset;
        }
        self.offset = start;
        if let Err(error) = file.read_exact(&mut self.bytes, start) {
            self.bytes.clear();
            return Err(error);
        }
        if goes_on {
            self.begin_next(file, toward);
        }
        Ok((handle.offset - start) as usize)
    }

    /// Resizes the buffer to `bytes`; to `least`, with `false`, if a call cannot reserve `bytes`.
    fn make_room(&mut self, file: &FileBytes<'_>, bytes: usize, least: usize, options: ReadOptions) -> bool {
        if bytes <= self.bytes.capacity() {
            self.bytes.resize(bytes, 0);
            return true;
        }
        // Frees the old buffer first, so that the two never exist at the same time.
        self.bytes = Vec::new();
        self.account.lower_to(0);
        if options.charge.is_some() && !self.account.has_budget() {
            self.account = file.calls.account(0, OnShortage::Refuse);
        }
        let granted = self.account.set(bytes).is_ok();
        self.bytes = vec![0; if granted { bytes } else { least }];
        granted
    }

    fn next_window_bytes(&self) -> usize {
        (self.window_bytes * 2).min(WINDOW_BYTES_MAX)
    }

    /// Whether a block that is not whole in the window is the next one in this direction.
    fn goes_on(&self, handle: Handle, toward: Toward) -> bool {
        if self.bytes.is_empty() {
            return false;
        }
        let window_end = self.offset + self.bytes.len() as u64;
        let block_end = handle.offset + u64::from(handle.bytes);
        match toward {
            Toward::End => (self.offset..=window_end).contains(&handle.offset),
            // Between two data blocks there may be a block of the index or of a bloom filter, which
            // is read separately.
            Toward::Start => {
                handle.offset < self.offset && block_end + WINDOW_BYTES_MIN as u64 >= self.offset
            }
        }
    }

    /// Advises the system to read the window that comes next.
    fn begin_next(&self, file: &FileBytes<'_>, toward: Toward) {
        let bytes = self.next_window_bytes() as u64;
        let next = match toward {
            Toward::End => {
                let start = self.offset + self.bytes.len() as u64;
                start..(start + bytes).min(file.end)
            }
            Toward::Start => self.offset.saturating_sub(bytes)..self.offset,
        };
        file.will_need(next);
    }
}
