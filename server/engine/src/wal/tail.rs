//! Reading the log while it grows, from a position on: every edit that is durable and visible, in the order
//! of the sequence ids.
//!
//! A position is the sequence id of the next row. A tail that has read everything is behind the last row that
//! was written, rows without a place in the log included, and waits for the read point to pass it.
//!
//! 1. [`Tail::read`] syncs the log, unless nothing is new, and notes where it ends: rows before that are
//!    published, since groups are written and published in one order.
//! 2. The segment of the position is found by the segments' headers, in the log or among those that were set
//!    aside (`kept`).
//! 3. Frames are read piece by piece up to the end, or to a limit of bytes. A frame is never divided.
//!
//! Segments that leave the log meanwhile stay readable: the file is open, or is found where it was set aside.
//!
//! The log may also be another database's, whose segments were copied into a directory and grow there
//! ([`Shipped`]): it ends where its owner says, and a frame that is not whole there ends it, too.

use std::path::PathBuf;
use std::sync::Arc;

use crate::fs::{File, Open, Vfs};
use crate::id::SeqId;
use crate::record::{FRAME_HEADER_BYTES, FrameRead, read_frame_of};
use crate::{Error, Result};

use super::layout::{HEADER_BLOCK_BYTES, remove_if_there, segment_path};
use super::reader::{LoggedEdit, Payload, header_of, list_segments, payload_of};
use super::segment::SegmentHeader;
use super::{LogEnd, Wal};

/// Bytes that are read from a segment at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Segments of another database's log, in a directory.
#[derive(Debug)]
pub(crate) struct Shipped {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    /// The last byte that is there, and the last row that is whole.
    pub(crate) end: LogEnd,
}

/// The log that a tail reads.
#[derive(Debug)]
enum Log {
    Own(Arc<Wal>),
    Shipped(Shipped),
}

/// A place in the log from which it is read.
#[derive(Debug)]
pub(crate) struct Tail {
    log: Log,
    next: SeqId,
    /// The segment that is read; `None` until the position was looked up.
    reading: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    number: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    header: SegmentHeader,
    /// Where the next frame begins.
    at: u64,
    /// Whether the segment's seal was read.
    sealed: bool,
    /// Bytes from `at` on.
    buffer: Vec<u8>,
}

impl Tail {
    /// A tail whose next row is that one.
    pub(crate) fn new(wal: &Arc<Wal>, next: SeqId) -> Self {
        Self {
            log: Log::Own(Arc::clone(wal)),
            next,
            reading: None,
        }
    }

    /// A tail of another database's log, whose next row is that one.
    pub(crate) fn of_shipped(shipped: Shipped, next: SeqId) -> Self {
        Self {
            log: Log::Shipped(shipped),
            next,
            reading: None,
        }
    }

    /// Moves the end of a shipped log.
    pub(crate) fn set_end(&mut self, end: LogEnd) {
        if let Log::Shipped(shipped) = &mut self.log {
            shipped.end = end;
        }
    }

    /// Moves to another row.
    pub(crate) fn seek(&mut self, next: SeqId) {
        (self.next, self.reading) = (next, None);
    }

    /// Removes the segments of a shipped log before the one that is read.
    pub(crate) fn remove_read(&self) -> Result<()> {
        let (Log::Shipped(shipped), Some(reading)) = (&self.log, &self.reading) else {
            return Ok(());
        };
        for number in list_segments(&*shipped.vfs, &shipped.dir)? {
            if number < reading.number {
                remove_if_there(&*shipped.vfs, &segment_path(&shipped.dir, number))?;
            }
        }
        Ok(())
    }

    /// The sequence id of the next row.
    pub(crate) fn position(&self) -> SeqId {
        self.next
    }

    /// Whether rows from the position on are visible. A shipped log may always have some.
    pub(crate) fn has_news(&self) -> bool {
        match &self.log {
            Log::Own(wal) => wal.read_point() >= self.next,
            Log::Shipped(_) => true,
        }
    }

    /// Hands out edits from the position on, and moves it behind them. Stops at the end of the log, or when
    /// frames of `bytes_max` bytes were read. Returns whether it has come to the end.
    ///
    /// Fails without effect when the log from the position on is not kept any more. After an error of `visit`
    /// the position is that before the frame.
    /// REQUIRES: this thread holds no `Appended`.
    pub(crate) fn read(
        &mut self,
        bytes_max: u64,
        visit: &mut dyn FnMut(LoggedEdit<'_>) -> Result<()>,
    ) -> Result<bool> {
        if !self.has_news() {
            return Ok(true);
        }
        let (end, grows) = match &self.log {
            Log::Own(wal) => (wal.synced_end()?, false),
            Log::Shipped(shipped) => (shipped.end, true),
        };
        let mut bytes = 0;
        while bytes < bytes_max {
            let reading = match self.reading.take() {
                Some(reading) => reading,
                None => self.look_up(&end)?,
            };
            let reading = self.reading.insert(reading);
            if reading.sealed && !(grows && reading.number >= end.segment) {
                let number = reading.number + 1;
                self.reading = Some(self.segment(number)?);
                continue;
            }
            let is_behind = reading.sealed || reading.at >= end.bytes;
            if reading.number > end.segment || reading.number == end.segment && is_behind {
                self.next = self.next.max(end.last_seq.next());
                return Ok(true);
            }
            let limit = if reading.number == end.segment {
                end.bytes
            } else {
                let length = reading.file.len();
                length.map_err(|e| Error::io("reading the length of", &reading.path, e))?
            };
            if grows && !reading.has_frame(limit)? {
                self.next = self.next.max(end.last_seq.next());
                return Ok(true);
            }
            let (length, next) = reading.frame(limit, self.next, visit)?;
            self.next = self.next.max(next);
            reading.pass(length);
            bytes += length as u64;
        }
        Ok(false)
    }

    /// The segment that has the position, read from its beginning.
    fn look_up(&self, end: &LogEnd) -> Result<Reading> {
        let oldest = match &self.log {
            Log::Own(wal) => {
                let first = wal.segments().0;
                wal.shared.kept.first_segment().unwrap_or(first).min(first)
            }
            Log::Shipped(shipped) => {
                let there = list_segments(&*shipped.vfs, &shipped.dir)?;
                there.first().copied().unwrap_or(end.segment)
            }
        };
        let mut begin = None;
        for number in (oldest..=end.segment).rev() {
            let reading = self.segment(number)?;
            begin = Some(reading.header.first_seq);
            if reading.header.first_seq <= self.next {
                return Ok(reading);
            }
        }
        let begin = begin.unwrap_or(end.last_seq);
        Err(not_kept(begin, self.next))
    }

    fn segment(&self, number: u64) -> Result<Reading> {
        let (vfs, found) = match &self.log {
            Log::Own(wal) => (&wal.shared.vfs, wal.shared.kept.find(number)?),
            Log::Shipped(shipped) => {
                let path = segment_path(&shipped.dir, number);
                let is_there = shipped.vfs.exists(&path);
                let is_there = is_there.map_err(|e| Error::io("looking for", &path, e))?;
                (&shipped.vfs, is_there.then_some(path))
            }
        };
        let Some(path) = found else {
            return Err(Error::InvalidArgument(format!(
                "segment {number} of the log, with position {}, is not kept any more",
                self.next
            )));
        };
        let header = header_of(&**vfs, &path)?.map_err(|bad| bad.into_error(&path))?;
        let file = vfs
            .open(&path, Open::Read)
            .map_err(|e| Error::io("opening", &path, e))?;
        Ok(Reading {
            number,
            path,
            file,
            header,
            at: HEADER_BLOCK_BYTES as u64,
            sealed: false,
            buffer: Vec::new(),
        })
    }
}

/// The refusal of a position before the log that is kept.
pub(super) fn not_kept(begin: SeqId, position: SeqId) -> Error {
    Error::InvalidArgument(format!(
        "the log is kept from position {begin} on, and position {position} is before that"
    ))
}

impl Reading {
    /// Makes the buffer hold this many bytes from the next frame on, which end before `limit`.
    fn fill(&mut self, bytes: usize, limit: u64) -> Result<()> {
        let have = self.buffer.len();
        if have >= bytes {
            return Ok(());
        }
        let left = limit.saturating_sub(self.at + have as u64);
        let wanted = (bytes - have) as u64;
        if left < wanted {
            return Err(Error::corrupt(&self.path, self.at, "the log ends inside a frame"));
        }
        let more = usize::try_from(wanted.max(left.min(PIECE_BYTES as u64))).unwrap_or(usize::MAX);
        self.buffer.resize(have + more, 0);
        let read = self
            .file
            .read_exact_at(&mut self.buffer[have..], self.at + have as u64);
        read.map_err(|e| Error::io("reading", &self.path, e))
    }

    /// Whether the next frame ends before `limit`.
    fn has_frame(&mut self, limit: u64) -> Result<bool> {
        let left = limit.saturating_sub(self.at);
        if left < FRAME_HEADER_BYTES as u64 {
            return Ok(false);
        }
        self.fill(FRAME_HEADER_BYTES, limit)?;
        Ok(left >= (FRAME_HEADER_BYTES + self.payload_bytes()) as u64)
    }

    /// Bytes of the next frame's payload.
    /// REQUIRES: its header is in the buffer.
    fn payload_bytes(&self) -> usize {
        let bytes = self.buffer.first_chunk::<4>();
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
    }

    /// Hands out the edits of the next frame that have rows from `from` on. Returns the frame's length, and
    /// the sequence id behind its rows.
    fn frame(
        &mut self,
        limit: u64,
        from: SeqId,
        visit: &mut dyn FnMut(LoggedEdit<'_>) -> Result<()>,
    ) -> Result<(usize, SeqId)> {
        self.fill(FRAME_HEADER_BYTES, limit)?;
        self.fill(FRAME_HEADER_BYTES + self.payload_bytes(), limit)?;
        let corrupt = |what: &str| Error::corrupt(&self.path, self.at, what);
        let (header, payload) = match read_frame_of(&self.buffer, self.at, &self.header.uuid) {
            FrameRead::Frame { header, payload, .. } => (header, payload),
            FrameRead::End => return Err(corrupt("nothing is written here, and the log goes on")),
            FrameRead::Invalid { what } => return Err(corrupt(what)),
        };
        let length = FRAME_HEADER_BYTES + payload.len();
        let mut next = SeqId(header.first_seq);
        match payload_of(payload, self.header.version, next).map_err(corrupt)? {
            Some(Payload::Edits(edits)) => {
                let write_time_ms = edits.write_time_ms;
                let mut entries = edits.entries;
                while let Some(entry) = entries.next() {
                    let edit = LoggedEdit::read(entry.map_err(corrupt)?, write_time_ms).map_err(corrupt)?;
                    if entries.next_seq() > from {
                        visit(edit)?;
                    }
                }
                next = entries.next_seq();
            }
            Some(Payload::Seal) => self.sealed = true,
            Some(Payload::Marker) | None => {}
        }
        Ok((length, next))
    }

    /// Goes on behind a frame of that length.
    fn pass(&mut self, length: usize) {
        self.at += length as u64;
        self.buffer.drain(..length);
    }
}
