//! One segment file: its bytes, and writing it.
//!
//! ```text
//! offset 0: header block, 4096 bytes
//!    0  magic "basaltwl"
//!    8  format version, u32: 3
//!   12  segment number, u64; also the file's name, 16 hex digits and ".wal"
//!   20  uuid, 16 bytes: mixed into every checksum of the file's frames
//!   36  first sequence id, u64: every row in this and later segments has this one or a greater one
//!   44  predecessor's uuid, 16 bytes     \
//!   60  predecessor's sealed bytes, u64   > zeros if there is none
//!   68  predecessor's chain, u32         /
//!   72  bytes that were preallocated for it, u64; 0: not known
//!   80  zeros
//! 4092  CRC-32C of the 4092 bytes before
//! offset 4096: frames (see `record`), then zeros to the end of the preallocated file
//! ```
//!
//! Edits of version 1 have no nonces (see `record::edit`). Versions 1 and 2 have no frames of kind 4.
//!
//! All integers are little-endian. A frame's payload begins with its kind, and a kind that is not known makes
//! the reader refuse the segment (it was written by a newer program):
//!
//! ```text
//! 1 edits   entries without clusters (see `record::edit`); written until version 2
//! 2 marker  nothing: the frame is there for its `durable_upto`
//! 3 seal    chain before this frame, u32: nothing follows
//! 4 edits   when the frame was written, u64 of milliseconds since 1970; entries that may have clusters
//! ```
//!
//! The *chain* is the CRC-32C of the header block's checksum and the header checksums of all frames so far,
//! four bytes each: it stands for every byte of the segment. The successor repeats it.
//!
//! A segment gets its name when its header and its size are durable. So whatever a crash does, a
//! segment has an intact header, and without a seal it is not shorter than its preallocated size.
//! It may get frames before it gets its name (see `roll`), but none whose sync was promised.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checksum::{crc32c, crc32c_append};
use crate::codec::Cursor;
use crate::fs::{Advice, File, Open, Vfs};
use crate::id::{SeqId, Uuid};
use crate::record::{FRAME_HEADER_BYTES, fill_header, reserve_header};
use crate::seeded;
use crate::{Error, Result};

use super::layout::{HEADER_BLOCK_BYTES, MARKER_BYTES, RESERVED_BYTES, SEAL_BYTES, segment_path};
use super::spare::Spare;

/// Where the header block's checksum stands.
const HEADER_CRC_AT: usize = HEADER_BLOCK_BYTES - 4;

pub(crate) const MAGIC: [u8; 8] = *b"basaltwl";

const FORMAT_VERSION: u32 = 3;

/// The oldest version that is read.
const OLDEST_VERSION: u32 = 1;

/// The first version whose edits have nonces.
pub(super) const NONCES_SINCE: u32 = 2;

/// The first version whose frames of edits say when they were written, and which clusters each has passed.
pub(super) const ORIGINS_SINCE: u32 = 3;

/// Kinds of payloads. On disk: never renumber.
pub(super) const KIND_OLD_EDITS: u8 = 1;
pub(super) const KIND_MARKER: u8 = 2;
pub(super) const KIND_SEAL: u8 = 3;
pub(super) const KIND_EDITS: u8 = 4;

/// Bytes of a payload of edits before the first entry: the kind and when it was written.
pub(super) const EDITS_HEAD_BYTES: usize = 1 + size_of::<u64>();

/// Unsynced bytes after which the system is advised to begin to write them. Otherwise the sync that
/// ends a segment would have a whole segment to write (with `wal.sync = "os"`), and all other syncs
/// would wait behind it.
const WRITE_BACK_BYTES: u64 = 2 << 20;

/// The end of a segment, as its successor records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sealed {
    pub(super) uuid: Uuid,
    /// Bytes up to the end of the seal frame.
    pub(super) bytes: u64,
    pub(super) chain: u32,
}

/// Content of a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Version of the format.
    pub(super) version: u32,
    pub(super) number: u64,
    pub(super) uuid: Uuid,
    pub(super) first_seq: SeqId,
    /// All zeros if there is none.
    pub(super) predecessor: Sealed,
    /// Bytes that were preallocated: without a seal the file has no fewer. 0: not known.
    pub(super) allocated: u64,
    /// The checksum of the block, which the chain begins with.
    pub(super) checksum: u32,
}

/// Why a header block is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    /// Too short or a wrong checksum: torn or damaged.
    Torn(&'static str),
    /// Intact and not for us.
    Unknown(String),
    /// Intact and of this format version, which only newer releases read.
    Newer(u32),
}

impl BadHeader {
    /// The error for the file, where the header is not a crash's leftover.
    pub(super) fn into_error(self, path: &Path) -> Error {
        match self {
            Self::Torn(what) => Error::corrupt(path, 0, what),
            Self::Unknown(what) => Error::corrupt(path, 0, what),
            Self::Newer(version) => {
                let text = format!(
                    "WAL format version {version}, this release reads versions {OLDEST_VERSION} to {FORMAT_VERSION}; it was written \
                     by a newer release: start that one, nothing has been changed"
                );
                Error::io("opening", path, io::Error::new(io::ErrorKind::Unsupported, text))
            }
        }
    }
}

impl SegmentHeader {
    /// The header block of a segment; its checksum is the last four bytes.
    fn encode(
        number: u64,
        uuid: Uuid,
        first_seq: SeqId,
        predecessor: &Sealed,
        allocated: u64,
    ) -> [u8; HEADER_BLOCK_BYTES] {
        let mut block = [0; HEADER_BLOCK_BYTES];
        block[0..8].copy_from_slice(&MAGIC);
        block[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        block[12..20].copy_from_slice(&number.to_le_bytes());
        block[20..36].copy_from_slice(&uuid.0);
        block[36..44].copy_from_slice(&first_seq.0.to_le_bytes());
        block[44..60].copy_from_slice(&predecessor.uuid.0);
        block[60..68].copy_from_slice(&predecessor.bytes.to_le_bytes());
        block[68..72].copy_from_slice(&predecessor.chain.to_le_bytes());
        block[72..80].copy_from_slice(&allocated.to_le_bytes());
        let checksum = crc32c(&block[..HEADER_CRC_AT]);
        block[HEADER_CRC_AT..].copy_from_slice(&checksum.to_le_bytes());
        block
    }

    /// Reads the header block at the front of a segment.
    pub(super) fn decode(bytes: &[u8]) -> std::result::Result<Self, BadHeader> {
        let Some(block) = bytes.first_chunk::<HEADER_BLOCK_BYTES>() else {
            return Err(BadHeader::Torn("the file ends inside the segment header"));
        };
        let checksum = crc32c(&block[..HEADER_CRC_AT]);
        if block[HEADER_CRC_AT..] != checksum.to_le_bytes() {
            return Err(BadHeader::Torn("segment header checksum mismatch"));
        }
        if block[..8] != MAGIC {
            return Err(BadHeader::Unknown("not a WAL segment".to_string()));
        }
        let mut fields = Cursor::new(&block[8..]);
        let mut read = || {
            Some(Self {
                version: fields.u32_le()?,
                number: fields.u64_le()?,
                uuid: Uuid(fields.array()?),
                first_seq: SeqId(fields.u64_le()?),
                predecessor: Sealed {
                    uuid: Uuid(fields.array()?),
                    bytes: fields.u64_le()?,
                    chain: fields.u32_le()?,
                },
                allocated: fields.u64_le()?,
                checksum,
            })
        };
        let header = read().ok_or(BadHeader::Torn("the segment header is too short"))?;
        match header.version {
            OLDEST_VERSION..=FORMAT_VERSION => Ok(header),
            0 => Err(BadHeader::Unknown("WAL format version 0".to_string())),
            newer => Err(BadHeader::Newer(newer)),
        }
    }

    /// Where the chain of the segment's frames begins.
    pub(super) fn chain(&self) -> u32 {
        crc32c(&self.checksum.to_le_bytes())
    }
}

/// The chain after a frame with that header checksum.
pub(super) fn chain_after(chain: u32, frame_checksum: u32) -> u32 {
    crc32c_append(chain, &frame_checksum.to_le_bytes())
}

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct SegmentWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    number: u64,
    uuid: Uuid,
    /// Bytes that are preallocated.
    allocated: u64,
    /// Where the next frame goes.
    end: u64,
    /// Everything before this offset is synced.
    durable: u64,
    /// The system was advised to write everything before this offset.
    writeback_started: u64,
    /// The system was advised to drop everything before this offset when it had most of it on disk.
    dropped: u64,
    /// The greatest `durable_upto` in a frame.
    stated: u64,
    chain: u32,
}

impl SegmentWriter {
    /// Creates the file `path` as segment `number`, preallocated, and makes header and size durable. Its name
    /// is durable only after a sync of the directory.
    pub(super) fn create(
        vfs: &dyn Vfs,
        path: PathBuf,
        number: u64,
        first_seq: SeqId,
        predecessor: &Sealed,
        allocate_bytes: u64,
    ) -> Result<Self> {
        let bytes = allocate_bytes.max(HEADER_BLOCK_BYTES as u64);
        let file = vfs
            .open(&path, Open::CreateNew)
            .map_err(|e| Error::io("creating", &path, e))?;
        file.allocate(bytes)
            .map_err(|e| Error::io("preallocating", &path, e))?;
        let segment = Self::begin(vfs, Spare { file, path, bytes }, number, first_seq, predecessor)?;
        segment
            .file
            .sync_all()
            .map_err(|e| Error::io("syncing", &segment.path, e))?;
        Ok(segment)
    }

    /// Makes a file of zeros segment `number`: writes its header, without a sync. [`Unnamed::name`] makes it
    /// durable.
    pub(super) fn begin(
        vfs: &dyn Vfs,
        spare: Spare,
        number: u64,
        first_seq: SeqId,
        predecessor: &Sealed,
    ) -> Result<Self> {
        let Spare { file, path, bytes } = spare;
        let uuid = Uuid(
            vfs.draw_uuid()
                .map_err(|e| Error::io("drawing a uuid for", &path, e))?,
        );
        let block = SegmentHeader::encode(number, uuid, first_seq, predecessor, bytes);
        let header = SegmentHeader::decode(&block).expect("a header that was just encoded is intact");
        assert_eq!(
            (header.number, header.first_seq, header.predecessor),
            (number, first_seq, *predecessor)
        );
        file.write_at(&block, 0)
            .map_err(|e| Error::io("writing", &path, e))?;
        Ok(Self {
            file,
            path,
            number,
            uuid,
            allocated: bytes,
            end: HEADER_BLOCK_BYTES as u64,
            durable: HEADER_BLOCK_BYTES as u64,
            writeback_started: HEADER_BLOCK_BYTES as u64,
            dropped: 0,
            stated: 0,
            chain: header.chain(),
        })
    }

    /// The file as long as it has another name than a segment's.
    pub(super) fn unnamed(&self) -> Unnamed {
        Unnamed {
            file: Arc::clone(&self.file),
            path: self.path.clone(),
            number: self.number,
        }
    }

    /// Notes that [`Unnamed::name`] has given the file its name.
    pub(super) fn note_name(&mut self, dir: &Path) {
        self.path = segment_path(dir, self.number);
    }

    /// Bytes of frames that it can still take without new space.
    pub(super) fn room(&self) -> u64 {
        self.allocated.saturating_sub(self.end + RESERVED_BYTES)
    }

    /// Preallocates more, so that it has at least that room. Without effect when that fails.
    pub(super) fn grow(&mut self, room: u64) -> Result<()> {
        let bytes = self.end + RESERVED_BYTES + room;
        self.file
            .allocate(bytes)
            .map_err(|e| Error::io("preallocating", &self.path, e))?;
        self.allocated = bytes;
        Ok(())
    }

    /// Number of the segment.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes so far.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether it holds nothing but its header.
    pub(super) fn is_empty(&self) -> bool {
        self.end == HEADER_BLOCK_BYTES as u64
    }

    /// Whether something was written and not synced.
    pub(super) fn is_dirty(&self) -> bool {
        self.durable < self.end
    }

    /// Whether everything that is durable but markers is stated so in a frame.
    pub(super) fn is_stated(&self) -> bool {
        // A marker is the last frame and states everything before itself.
        self.stated + MARKER_BYTES as u64 >= self.end || self.is_empty()
    }

    /// Fills in the header of a frame that will be written `ahead` bytes behind the end.
    pub(super) fn fill_header(&mut self, frame: &mut [u8], ahead: usize, first_seq: u64) {
        let checksum = fill_header(
            frame,
            &self.uuid,
            self.end + ahead as u64,
            first_seq,
            if seeded::is_on("no-durable-upto") {
                0
            } else {
                self.durable
            },
        );
        self.chain = chain_after(self.chain, checksum);
        self.stated = self.durable;
    }

    /// Writes frames whose headers are filled in.
    pub(super) fn write(&mut self, frames: &[u8]) -> Result<()> {
        match self.file.write_at(frames, self.end) {
            Err(_) if seeded::is_on("failed-write-acknowledged") => {}
            Err(e) if crate::fs::is_disk_full(&e) && seeded::is_on("no-space-acknowledged") => {}
            written => written.map_err(|e| Error::io("writing", &self.path, e))?,
        }
        self.end += frames.len() as u64;
        self.start_writeback();
        Ok(())
    }

    /// Starts writeback of the bytes written since the last call, and advises the system to drop
    /// the pages whose writeback was started then. The last page is left out: the next frame begins
    /// in it.
    fn start_writeback(&mut self) {
        let from = self.writeback_started.max(self.durable);
        let to = self.end - self.end % HEADER_BLOCK_BYTES as u64;
        if to >= from + WRITE_BACK_BYTES {
            self.file
                .advise(self.dropped, to - self.dropped, Advice::DontNeed);
            (self.dropped, self.writeback_started) = (from, to);
        }
    }

    /// Writes one frame.
    pub(super) fn write_frame(&mut self, first_seq: SeqId, payload: &[u8]) -> Result<()> {
        let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + payload.len());
        reserve_header(&mut frame);
        frame.extend_from_slice(payload);
        self.fill_header(&mut frame, 0, first_seq.0);
        self.write(&frame)
    }

    /// Writes an empty frame that states the durable sequence ids.
    pub(super) fn write_marker(&mut self, next_seq: SeqId) -> Result<()> {
        self.write_frame(next_seq, &[KIND_MARKER])
    }

    /// Makes everything written durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        let synced = match self.file.sync_data() {
            Err(_) if seeded::is_on("sync-again-after-failed-sync") => self.file.sync_data(),
            synced => synced,
        };
        synced.map_err(|e| Error::io("syncing", &self.path, e))?;
        self.durable = self.end;
        Ok(())
    }

    /// The seal that ends the segment here, before which [`Self::seal`] makes everything durable.
    pub(super) fn plan_seal(&self, next_seq: SeqId) -> Seal {
        Seal::plan(&self.uuid, self.end, self.chain, next_seq)
    }

    /// Ends the segment: makes its frames durable, then writes the seal that states so, and frees
    /// unused space.
    /// REQUIRES: the seal was planned after the last frame.
    pub(super) fn seal(&mut self, seal: &Seal) -> Result<()> {
        if self.is_dirty() {
            self.sync()?;
        }
        self.write(&seal.frame)?;
        assert_eq!(self.end, seal.sealed.bytes, "the seal is the segment's end");
        if !seeded::is_on("seal-not-synced") {
            self.file
                .sync_all()
                .map_err(|e| Error::io("syncing", &self.path, e))?;
        }
        self.durable = self.end;
        // Only now: a file without a seal that is shorter than it was preallocated is taken for
        // damaged. The space behind a seal that survives a crash is zeros.
        self.file
            .set_len(self.end)
            .map_err(|e| Error::io("truncating", &self.path, e))?;
        self.file
            .advise(self.dropped, self.end - self.dropped, Advice::DontNeed);
        Ok(())
    }
}

/// The last frame of a segment, and what a successor states of the segment then.
#[derive(Clone, Debug)]
pub(super) struct Seal {
    pub(super) frame: Vec<u8>,
    pub(super) sealed: Sealed,
}

impl Seal {
    /// The seal of segment `uuid` behind `end` bytes with this chain.
    pub(super) fn plan(uuid: &Uuid, end: u64, chain: u32, next_seq: SeqId) -> Self {
        let mut frame = Vec::with_capacity(SEAL_BYTES);
        reserve_header(&mut frame);
        frame.push(KIND_SEAL);
        frame.extend_from_slice(&chain.to_le_bytes());
        let durable = if seeded::is_on("no-durable-upto") { 0 } else { end };
        let checksum = fill_header(&mut frame, uuid, end, next_seq.0, durable);
        Self {
            sealed: Sealed {
                uuid: *uuid,
                bytes: end + frame.len() as u64,
                chain: chain_after(chain, checksum),
            },
            frame,
        }
    }
}

/// A segment's file that does not have its name yet.
#[derive(Debug)]
pub(super) struct Unnamed {
    file: Arc<dyn File>,
    path: PathBuf,
    pub(super) number: u64,
}

impl Unnamed {
    /// Makes header and size durable, then renames the file to its segment's name, durably.
    pub(super) fn name(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|e| Error::io("syncing", &self.path, e))?;
        vfs.rename(&self.path, &segment_path(dir, self.number))
            .map_err(|e| Error::io("renaming", &self.path, e))?;
        if seeded::is_on("no-dir-sync-after-segment-rename") {
            return Ok(());
        }
        vfs.sync_dir(dir).map_err(|e| Error::io("syncing", dir, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::advised::Advised;
    use crate::fs::sim::{SimFs, SimOptions};

    /// Unsynced bytes are handed to the system in steps: each range ends with a whole page and
    /// begins where the last but one ended, so that everything is advised twice: to be written, and
    /// to be dropped. Synced bytes are not handed over.
    #[test]
    fn unsynced_bytes_are_handed_over_bit_by_bit() {
        let disk = SimFs::new(1, SimOptions::default());
        disk.create_dir_all(Path::new("/wal")).unwrap();
        let path = segment_path(Path::new("/wal"), 1);
        let mut segment =
            SegmentWriter::create(&disk, path, 1, SeqId(1), &Sealed::default(), 4 * WRITE_BACK_BYTES)
                .unwrap();
        let advised = Advised::new(Arc::clone(&segment.file));
        let ranges = || advised.ranges(Advice::DontNeed);
        segment.file = Arc::clone(&advised) as Arc<dyn File>;
        let frames = vec![7; 100_000];

        while segment.end() < WRITE_BACK_BYTES * 2 {
            segment.write(&frames).unwrap();
            segment.sync().unwrap();
        }
        assert_eq!(ranges(), [], "all of it is synced");

        let synced = segment.end();
        while segment.end() < synced + 3 * WRITE_BACK_BYTES + WRITE_BACK_BYTES / 2 {
            segment.write(&frames).unwrap();
        }
        let writeback_started = ranges();
        let [first, second, third] = writeback_started[..] else {
            panic!("{writeback_started:?}");
        };
        assert_eq!((first.0, second.0, third.0), (0, synced, first.1));
        for (before, (_, to)) in [synced, first.1, second.1].into_iter().zip(writeback_started) {
            assert!(to.is_multiple_of(4096) && to - before >= WRITE_BACK_BYTES);
            assert!(to - before < WRITE_BACK_BYTES + 2 * frames.len() as u64);
        }
        segment.seal(&segment.plan_seal(SeqId(9))).unwrap();
        assert_eq!(ranges().last(), Some(&(second.1, segment.end())));
    }
}
