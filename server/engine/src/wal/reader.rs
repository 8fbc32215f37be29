//! Reading segments back: which frames are accepted, and whether a broken one is a torn tail or
//! damage.
//!
//! A crash can leave only the last segment with a broken frame, and only behind everything that was synced.
//! Therefore, at the first frame that is not intact, at offset *o* of segment *s*, it is *damage*, and the
//! log is refused with file and offset, if
//!
//! * a segment *s + 1* exists: *s* was sealed and synced before that was created; or
//! * an intact frame header lies behind *o* and states that more than *o* was durable (a seal is such a
//!   frame); or
//! * the caller knows of a durable sequence id that the frames before *o* do not reach.
//!
//! Otherwise it is a *torn tail*: no caller received an acknowledgement of it, so it is cut. (A
//! damaged bit in the last group before its marker is written, at most an idle time later, cannot
//! be distinguished from a torn write.)
//!
//! The chain of segments must be whole: numbers without a hole, each one's predecessor the one that
//! is there. Oldest segments may be gone, since they are removed when the store files hold their
//! edits; the manifest knows which ones ([`require_segments`]). A segment without an intact header
//! is damage: it has its name only since its header is durable. So is one that has no seal and is
//! shorter than it was preallocated.
//!
//! A frame that is intact and does not make sense (malformed rows, sequence ids that go back, an
//! unknown kind) was written that way: always refused.

use std::io;
use std::path::{Path, PathBuf};

use crate::cell::Cell;
use crate::codec::Cursor;
use crate::fs::{Advice, Open, Vfs};
use crate::id::{Nonce, RegionId, SeqId};
use crate::metrics::EventListener;
use crate::record::{
    EditReader, Entries, Entry, FrameHeader, FrameRead, LoggedOrigin, find_header, is_unwritten, read_frame,
};
use crate::seeded;
use crate::{Error, Result};

use super::layout::{HEADER_BLOCK_BYTES, segment_number, segment_path};

use super::segment::{
    BadHeader, KIND_EDITS, KIND_MARKER, KIND_OLD_EDITS, KIND_SEAL, NONCES_SINCE, ORIGINS_SINCE, Sealed,
    SegmentHeader, chain_after,
};

/// One edit read back; everything in it has been checked.
#[derive(Clone, Debug)]
pub struct LoggedEdit<'a> {
    edit: EditReader<'a>,
    bytes: &'a [u8],
    /// The reader at the end of the edit.
    read: EditReader<'a>,
    origin: LoggedOrigin<'a>,
    write_time_ms: Option<u64>,
}

impl<'a> LoggedEdit<'a> {
    /// Checks an entry to its end.
    pub(super) fn read(
        entry: Entry<'a>,
        write_time_ms: Option<u64>,
    ) -> std::result::Result<Self, &'static str> {
        let Entry { edit, bytes, origin } = entry;
        let mut read = edit.clone();
        for cell in read.by_ref() {
            cell?;
        }
        Ok(Self {
            edit,
            bytes,
            read,
            origin,
            write_time_ms,
        })
    }

    /// The region it belongs to.
    pub fn region(&self) -> RegionId {
        self.edit.region()
    }

    /// Its bytes in the log.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.edit.rows()
    }

    /// The sequence id of its first row; each later row has the next one.
    pub fn first_seq(&self) -> SeqId {
        self.edit.first_seq()
    }

    /// Each cell with its row's number in the edit. The cell carries its row's sequence id.
    pub fn cells(&self) -> impl Iterator<Item = (u32, Cell<'a>)> + use<'a> {
        self.edit
            .clone()
            .map(|cell| cell.expect("the edit was read to its end before it was handed out"))
    }

    /// The nonces of its operations, each with the wall-clock time at which it was applied.
    pub fn nonces(&self) -> impl Iterator<Item = (Nonce, u64)> + use<'a> {
        self.read.nonces()
    }

    /// The clusters that it has passed. None: it was made here.
    pub fn origin(&self) -> LoggedOrigin<'a> {
        self.origin
    }

    /// When it was written to the log, in milliseconds since 1970. `None` in logs before version 3.
    pub fn write_time_ms(&self) -> Option<u64> {
        self.write_time_ms
    }
}

/// A torn tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment's file.
    pub file: PathBuf,
    /// Everything from here on is not believed.
    pub offset: u64,
    /// Description of the damage.
    pub what: &'static str,
}

/// Content of the segments of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSummary {
    /// Segments with an intact header.
    pub segments: u64,
    /// The newest one's number; 0 if there is none.
    pub last_segment: u64,
    /// No row in the log has a smaller sequence id.
    pub first_seq: SeqId,
    /// Every sequence id ever given out that a frame knows of is at most this.
    pub last_seq: SeqId,
    /// Edits.
    pub edits: u64,
    /// Rows in them.
    pub rows: u64,
    /// Cells in them.
    pub cells: u64,
    /// Bytes of frames.
    pub bytes: u64,
    /// The torn tail of the last segment.
    pub torn: Option<Cut>,
    /// Whether the newest segment ends with a seal.
    pub sealed: bool,
}

/// A segment's bytes and how far they are believed.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) header: SegmentHeader,
    /// Behind the last intact frame.
    pub(super) end: usize,
    pub(super) chain: u32,
    /// Greater than every sequence id in it.
    pub(super) next_seq: SeqId,
    pub(super) sealed: bool,
    /// Description of the bytes at `end`, if they are neither a frame nor unwritten space up to the
    /// end of the file.
    pub(super) broken: Option<&'static str>,
}

impl Walked {
    pub(super) fn as_sealed(&self) -> Sealed {
        Sealed {
            uuid: self.header.uuid,
            bytes: self.end as u64,
            chain: self.chain,
        }
    }
}

/// A payload of edits.
#[derive(Clone, Debug)]
pub(super) struct Edits<'a> {
    /// When it was written, in milliseconds since 1970.
    pub(super) write_time_ms: Option<u64>,
    /// The entries as they stand in the log.
    pub(super) bytes: &'a [u8],
    pub(super) entries: Entries<'a>,
}

impl<'a> Edits<'a> {
    /// The payload behind its kind, of a frame whose `first_seq` is that.
    fn new(payload: &'a [u8], first_seq: SeqId) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        let write_time_ms = Some(cursor.u64_le()?);
        let bytes = cursor.rest();
        Some(Self {
            write_time_ms,
            bytes,
            entries: Entries::new(bytes, first_seq, true),
        })
    }

    /// As [`Self::new`], of a payload as it was before version 3.
    fn old(payload: &'a [u8], first_seq: SeqId) -> Self {
        Self {
            write_time_ms: None,
            bytes: payload,
            entries: Entries::new(payload, first_seq, false),
        }
    }
}

/// Content of a frame's payload.
#[derive(Clone, Debug)]
pub(super) enum Payload<'a> {
    Edits(Edits<'a>),
    Marker,
    Seal,
}

/// The payload of an intact frame of a segment of that format version, whose first sequence id is that.
/// `None` for other kinds of frames, which have no edits: a start has judged the segment.
pub(super) fn payload_of(
    payload: &[u8],
    version: u32,
    first_seq: SeqId,
) -> std::result::Result<Option<Payload<'_>>, &'static str> {
    Ok(match payload.split_first() {
        Some((&KIND_OLD_EDITS, entries)) => Some(Payload::Edits(Edits::old(entries, first_seq))),
        Some((&KIND_EDITS, rest)) if version >= ORIGINS_SINCE => {
            let edits = Edits::new(rest, first_seq);
            let edits = edits.ok_or("a frame ends inside the time at which it was written")?;
            Some(Payload::Edits(edits))
        }
        Some((&KIND_MARKER, [])) => Some(Payload::Marker),
        Some((&KIND_SEAL, _)) => Some(Payload::Seal),
        _ => None,
    })
}

/// Reads a whole file.
pub(super) fn read_file(vfs: &dyn Vfs, path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let file = vfs.open(path, Open::Read)?;
        let len = file.len()?;
        file.advise(0, len, Advice::Sequential);
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| std::io::ErrorKind::FileTooLarge)?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|e| Error::io("reading", path, e))
}

/// Numbers of the segments in a directory, ascending. No directory: none.
pub(super) fn list_segments(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<u64>> {
    let list = || {
        if vfs.exists(dir)? {
            vfs.list(dir)
        } else {
            Ok(Vec::new())
        }
    };
    let names = list().map_err(|e| Error::io("listing", dir, e))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Walks the frames of a segment and stops at the first that is not intact, at the end, or behind a
/// seal. `visit` gets each frame's offset, header and payload. An error is damage that no crash
/// causes.
pub(super) fn walk<'a>(
    bytes: &'a [u8],
    header: SegmentHeader,
    path: &Path,
    visit: &mut dyn FnMut(usize, &FrameHeader, Payload<'a>) -> Result<()>,
) -> Result<Walked> {
    let mut walked = Walked {
        header,
        end: HEADER_BLOCK_BYTES,
        chain: header.chain(),
        next_seq: header.first_seq,
        sealed: false,
        broken: None,
    };
    while !walked.sealed {
        let at = walked.end;
        let (frame, payload, next) = match read_frame(bytes, at, &header.uuid) {
            FrameRead::Frame {
                header,
                payload,
                next,
            } => (header, payload, next),
            FrameRead::End if is_unwritten(&bytes[at..]) => break,
            FrameRead::End => {
                walked.broken = Some("unwritten space with something behind it");
                break;
            }
            FrameRead::Invalid { what } => {
                walked.broken = Some(what);
                break;
            }
        };
        let corrupt = |what: &str| Error::corrupt(path, at as u64, what);
        if frame.first_seq < walked.next_seq.0 {
            return Err(corrupt("a frame's sequence ids go back"));
        }
        walked.next_seq = SeqId(frame.first_seq);
        let payload = match payload.split_first() {
            Some((&KIND_OLD_EDITS, entries)) => Payload::Edits(
                checked(Edits::old(entries, walked.next_seq), &mut walked.next_seq).map_err(corrupt)?,
            ),
            Some((&KIND_EDITS, rest)) if header.version >= ORIGINS_SINCE => {
                let edits = Edits::new(rest, walked.next_seq)
                    .ok_or_else(|| corrupt("a frame ends inside the time at which it was written"))?;
                Payload::Edits(checked(edits, &mut walked.next_seq).map_err(corrupt)?)
            }
            Some((&KIND_MARKER, [])) => Payload::Marker,
            Some((&KIND_SEAL, chain)) => {
                if Cursor::new(chain).u32_le() != Some(walked.chain) || chain.len() != 4 {
                    return Err(corrupt("the seal does not fit the frames before it"));
                }
                walked.sealed = true;
                Payload::Seal
            }
            _ => return Err(corrupt("a frame of a kind that this program does not know")),
        };
        visit(at, &frame, payload)?;
        // The frame was read, so its header's checksum is there: its last four bytes before the payload.
        let checksum = Cursor::new(&bytes[at + crate::record::FRAME_HEADER_BYTES - 4..])
            .u32_le()
            .ok_or_else(|| corrupt("the file ends inside a frame header"))?;
        walked.chain = chain_after(walked.chain, checksum);
        walked.end = next;
    }
    Ok(walked)
}

/// Checks the heads of all entries, and moves `next_seq` behind the last one.
fn checked<'a>(edits: Edits<'a>, next_seq: &mut SeqId) -> std::result::Result<Edits<'a>, &'static str> {
    let mut entries = edits.entries.clone();
    for entry in entries.by_ref() {
        entry?;
    }
    *next_seq = entries.next_seq();
    Ok(edits)
}

/// Reads all segments of `dir` in order and hands out every edit. Changes nothing.
///
/// `durable`: every logged edit up to here is known, from outside of the log, to have been synced in the log;
/// `SeqId::ZERO` if nothing is known. (Edits with `Logging::Async` or `Skip`, or with `WalSync::Os`, are
/// not.)
pub fn read_segments(
    vfs: &dyn Vfs,
    dir: &Path,
    durable: SeqId,
    listener: &dyn EventListener,
    visit: &mut dyn FnMut(LoggedEdit<'_>) -> Result<()>,
) -> Result<LogSummary> {
    let numbers = list_segments(vfs, dir)?;
    let checks_links = !seeded::is_on("missing-segment-believed");
    if checks_links {
        refuse_holes(dir, &numbers)?;
    }
    let mut summary = LogSummary::default();
    let mut previous: Option<Walked> = None;
    for (index, &number) in numbers.iter().enumerate() {
        let path = segment_path(dir, number);
        let bytes = read_file(vfs, &path)?;
        let is_last = index + 1 == numbers.len();
        let header = SegmentHeader::decode(&bytes).map_err(|bad| bad.into_error(&path))?;
        if checks_links {
            check_link(&path, number, &header, previous.as_ref())?;
        }
        let walked = read_segment(&bytes, header, &path, &mut summary, visit)?;
        if !walked.sealed {
            judge(&bytes, &walked, &path, is_last, durable)?;
        }
        if let Some(what) = walked.broken {
            summary.torn = Some(torn_tail(&bytes, &walked, path, what, listener));
        }
        if summary.segments == 0 {
            summary.first_seq = header.first_seq;
        }
        summary.segments += 1;
        summary.last_segment = number;
        summary.last_seq = SeqId(walked.next_seq.0.saturating_sub(1));
        summary.sealed = walked.sealed;
        previous = Some(walked);
    }
    if summary.last_seq < durable {
        let what = format!(
            "the log ends with sequence id {}, but {durable} is known to have been durable",
            summary.last_seq
        );
        let file = segment_path(dir, summary.last_segment);
        return Err(Error::corrupt(
            file,
            previous.map_or(0, |walked| walked.end as u64),
            what,
        ));
    }
    Ok(summary)
}

/// Refuses a directory without one of the segments `first` to `last`, which the manifest lists.
pub(crate) fn require_segments(vfs: &dyn Vfs, dir: &Path, first: u64, last: u64) -> Result<()> {
    let there = list_segments(vfs, dir)?;
    let is_end = |number: &u64| [first, last].contains(number);
    let missing = (first..=last)
        .filter(|number| there.binary_search(number).is_err())
        .filter(|number| is_end(number) || !seeded::is_on("missing-segment-believed"));
    refuse_missing(dir, missing)
}

fn refuse_holes(dir: &Path, numbers: &[u64]) -> Result<()> {
    refuse_missing(dir, numbers.windows(2).flat_map(|pair| pair[0] + 1..pair[1]))
}

fn refuse_missing(dir: &Path, missing: impl Iterator<Item = u64>) -> Result<()> {
    let missing: Vec<String> = missing
        // The list is for people; a number far off must not make it endless.
        .take(100)
        .map(|number| segment_path(Path::new(""), number).display().to_string())
        .collect();
    match missing.as_slice() {
        [] => Ok(()),
        missing => Err(Error::corrupt(
            dir,
            0,
            format!("missing WAL segments: {}", missing.join(", ")),
        )),
    }
}

/// Refuses a segment that is not the one its name or its predecessor says.
fn check_link(path: &Path, number: u64, header: &SegmentHeader, previous: Option<&Walked>) -> Result<()> {
    if header.number != number {
        return Err(Error::corrupt(
            path,
            0,
            format!("this is segment {} under another's name", header.number),
        ));
    }
    let Some(previous) = previous else { return Ok(()) };
    let expected = previous.as_sealed();
    if header.predecessor != expected {
        return Err(Error::corrupt(
            path,
            0,
            format!(
                "its predecessor was {} with {} bytes and chain {:08x}, but segment {} is {} with {} bytes and chain {:08x}",
                header.predecessor.uuid,
                header.predecessor.bytes,
                header.predecessor.chain,
                previous.header.number,
                expected.uuid,
                expected.bytes,
                expected.chain
            ),
        ));
    }
    if header.first_seq < previous.next_seq {
        return Err(Error::corrupt(
            path,
            0,
            "its sequence ids begin before its predecessor's end",
        ));
    }
    Ok(())
}

fn read_segment(
    bytes: &[u8],
    header: SegmentHeader,
    path: &Path,
    summary: &mut LogSummary,
    visit: &mut dyn FnMut(LoggedEdit<'_>) -> Result<()>,
) -> Result<Walked> {
    let walked = walk(bytes, header, path, &mut |at, _, payload| {
        let Payload::Edits(Edits {
            write_time_ms,
            entries,
            ..
        }) = payload
        else {
            return Ok(());
        };
        for entry in entries {
            let corrupt = |what: &str| Error::corrupt(path, at as u64, what);
            let Entry { edit, bytes, origin } = entry.map_err(corrupt)?;
            let (mut cells, mut read) = (0, edit.clone());
            for cell in read.by_ref() {
                cell.map_err(corrupt)?;
                cells += 1;
            }
            if header.version < NONCES_SINCE && !read.has_no_nonces() {
                return Err(corrupt("an edit has bytes behind its last row"));
            }
            summary.edits += 1;
            summary.rows += u64::from(edit.rows());
            summary.cells += cells;
            visit(LoggedEdit {
                edit,
                bytes,
                read,
                origin,
                write_time_ms,
            })?;
        }
        Ok(())
    })?;
    summary.bytes += (walked.end - HEADER_BLOCK_BYTES) as u64;
    Ok(walked)
}

/// Refuses a segment without a seal if something proves that it had more than its intact frames.
fn judge(bytes: &[u8], walked: &Walked, path: &Path, is_last: bool, durable: SeqId) -> Result<()> {
    let at = walked.end;
    let what = walked.broken.unwrap_or("nothing is written here");
    let corrupt = |proof: String| Error::corrupt(path, at as u64, format!("{what}, but {proof}"));
    if !is_last {
        return Err(corrupt("the segment was sealed: it has a successor".to_string()));
    }
    if (bytes.len() as u64) < walked.header.allocated && !seeded::is_on("truncated-segment-believed") {
        let what = format!(
            "the file ends here, and {} bytes were preallocated for it",
            walked.header.allocated
        );
        return Err(Error::corrupt(path, bytes.len() as u64, what));
    }
    if walked.broken.is_some() && seeded::is_on("torn-tail-is-damage") {
        return Err(corrupt("it is torn".to_string()));
    }
    let mut from = at + 1;
    while let Some((found, header)) = find_header(bytes, from, &walked.header.uuid) {
        if header.durable_upto > at as u64 && !seeded::is_on("mid-log-damage-is-a-torn-tail") {
            return Err(corrupt(format!(
                "the frame at {found} states that everything before {} was durable",
                header.durable_upto
            )));
        }
        from = found + 1;
    }
    if walked.next_seq <= durable {
        return Err(corrupt(format!(
            "sequence id {durable} is known to have been durable"
        )));
    }
    Ok(())
}

fn torn_tail(
    bytes: &[u8],
    walked: &Walked,
    file: PathBuf,
    what: &'static str,
    listener: &dyn EventListener,
) -> Cut {
    let rest = bytes.get(walked.end..).unwrap_or_default();
    let junk = rest
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    listener.notice(&format!(
        "torn tail of WAL segment {} cut at byte {}: {what}; {junk} bytes that were never durable",
        file.display(),
        walked.end
    ));
    Cut {
        file,
        offset: walked.end as u64,
        what,
    }
}

/// Reads the sealed segment `number`; refuses it if it is not sealed.
pub(super) fn read_sealed(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<Walked> {
    let path = segment_path(dir, number);
    let bytes = read_file(vfs, &path)?;
    let header = SegmentHeader::decode(&bytes).map_err(|bad| bad.into_error(&path))?;
    let walked = walk(&bytes, header, &path, &mut |_, _, _| Ok(()))?;
    if !walked.sealed {
        return Err(Error::corrupt(
            &path,
            walked.end as u64,
            "the segment is not sealed; it has to be recovered before a successor is created",
        ));
    }
    Ok(walked)
}

/// Reads only a segment's header.
pub(super) fn read_header(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<SegmentHeader> {
    let path = segment_path(dir, number);
    header_of(vfs, &path)?.map_err(|bad| bad.into_error(&path))
}

/// The header of a segment file, or the reason to reject it.
pub(super) fn header_of(vfs: &dyn Vfs, path: &Path) -> Result<std::result::Result<SegmentHeader, BadHeader>> {
    let mut block = vec![0; HEADER_BLOCK_BYTES];
    let read = vfs
        .open(path, Open::Read)
        .and_then(|file| file.read_exact_at(&mut block, 0));
    match read {
        Ok(()) => Ok(SegmentHeader::decode(&block)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(SegmentHeader::decode(&[])),
        Err(error) => Err(Error::io("reading", path, error)),
    }
}

/// Refuses a log that a newer release has written to. Its segments come last, so the last header
/// that is intact decides. Recovery reports all other damage.
pub(crate) fn refuse_newer(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    for number in list_segments(vfs, dir)?.into_iter().rev() {
        let path = segment_path(dir, number);
        match header_of(vfs, &path)? {
            Err(bad @ BadHeader::Newer(_)) => return Err(bad.into_error(&path)),
            Err(BadHeader::Torn(_)) => {}
            Ok(_) | Err(BadHeader::Unknown(_)) => break,
        }
    }
    Ok(())
}
