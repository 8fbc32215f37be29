//! Read-ahead: a window of blocks next to the one that a cursor needs.
//!
//! A cursor that goes forward reads a window that begins with the block, one that goes backward a
//! window that ends with it. Windows double while the cursor continues in the same direction, so a
//! short scan reads little too much. From the second window on, the system is advised of the window
//! to come, so that the disk works while this one is used.
//!
//! A call that cannot reserve a window reads block by block.
//!
//! Belongs to one cursor. Holds one window: at most [`WINDOW_BYTES_MAX`] bytes, or one larger
//! block.

use super::ReadOptions;
use super::index::Handle;
use super::reader::Reader;
use crate::cell::{Account, OnShortage};
use crate::error::Result;

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
        reader: &Reader,
        handle: Handle,
        options: ReadOptions,
        toward: Toward,
    ) -> Result<&[u8]> {
        let wanted = handle.bytes as usize;
        let skip = match self.skip_to(handle) {
            Some(skip) => skip,
            None => self.fill(reader, handle, options, toward)?,
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
        reader: &Reader,
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
                (handle.offset, end.min(reader.trailer.load_on_open_offset))
            }
            Toward::Start => (block_end.saturating_sub(window_bytes), block_end),
        };
        if !self.make_room(reader, (end - start) as usize, handle.bytes as usize, options) {
            start = handle.offset;
        }
        self.offset = start;
        if let Err(error) = reader.read_exact(&mut self.bytes, start) {
            self.bytes.clear();
            return Err(error);
        }
        if goes_on {
            self.begin_next(reader, toward);
        }
        Ok((handle.offset - start) as usize)
    }

    /// Resizes the buffer to `bytes`; to `least`, with `false`, if a call cannot reserve `bytes`.
    fn make_room(&mut self, reader: &Reader, bytes: usize, least: usize, options: ReadOptions) -> bool {
        if bytes <= self.bytes.capacity() {
            self.bytes.resize(bytes, 0);
            return true;
        }
        // Frees the old buffer first, so that the two never exist at the same time.
        self.bytes = Vec::new();
        self.account.lower_to(0);
        if options.charge.is_some() && !self.account.has_budget() {
            self.account = reader.calls().account(0, OnShortage::Refuse);
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
    fn begin_next(&self, reader: &Reader, toward: Toward) {
        let bytes = self.next_window_bytes() as u64;
        let next = match toward {
            Toward::End => {
                let start = self.offset + self.bytes.len() as u64;
                start..(start + bytes).min(reader.trailer.load_on_open_offset)
            }
            Toward::Start => self.offset.saturating_sub(bytes)..self.offset,
        };
        reader.will_need(next);
    }
}
