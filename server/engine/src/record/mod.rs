//! Framing of WAL and manifest, and the rows inside a WAL frame.
//!
//! A frame is the unit that is written, checked and accepted as a whole. All integers are
//! little-endian:
//!
//! ```text
//!  0         4              12              20            24           28
//! +---------+--------------+---------------+-------------+------------+---------------------+
//! | payload | first        | durable       | payload     | header     | payload             |
//! | bytes   | sequence id  | up to         | CRC-32C     | CRC-32C    |                     |
//! |  u32    |  u64         |  u64          |  u32        |  u32       | `payload bytes` long |
//! +---------+--------------+---------------+-------------+------------+---------------------+
//! ```
//!
//! *Durable up to* is an offset in the same file: everything before it had been synced when the
//! frame was built. It is never greater than the frame's own offset. So a frame that is found
//! intact behind a broken one can prove that the broken one was durable, hence perhaps
//! acknowledged: that is damage, while a broken frame that is not proved durable is the torn tail
//! of a write in flight.
//!
//! Both checksums start from a *place*: CRC-32C of the file's uuid (16 bytes) and the frame's
//! offset (u64). The header's covers the first 24 bytes, payload checksum included. So a frame of
//! another file, of a previous life of the file's blocks, or of another offset is never accepted.
//!
//! Unwritten space is zeros. A frame's header never is: its checksum of 24 zero bytes at its place is zero
//! only by a chance of one in 2^32, and `durable_upto` is positive in files that begin with a header of their
//! own.
//!
//! The meaning of a payload is defined by the file's owner; the rows of an edit are encoded by
//! [`edit`]. Everything here is pure: bytes in, bytes out, no panic on any input.

pub(crate) mod edit;

use crate::checksum::{crc32c, crc32c_append};
use crate::id::Uuid;

pub use edit::{EditBuilder, Entries, put_entry};
pub(crate) use edit::{EditReader, Entry, LoggedOrigin, Mark, NO_REGION, NONCE_BYTES_MAX};

/// Bytes of a frame before its payload.
pub const FRAME_HEADER_BYTES: usize = 28;

/// Bytes of the header that its own checksum covers.
const CHECKED_BYTES: usize = 24;

/// Longest payload. A declared length above it is rejected, so no reader allocates more.
pub(crate) const FRAME_PAYLOAD_BYTES_MAX: usize = 256 << 20;

/// Header of a frame: facts about the frame and its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub payload_len: u32,
    /// Sequence id of the first row in the payload; in the manifest, the number of the edit.
    pub first_seq: u64,
    /// Everything before this offset of the file was synced when the frame was built.
    pub durable_upto: u64,
}

/// Result of reading a frame at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRead<'a> {
    /// An intact frame.
    Frame {
        /// Header of the frame.
        header: FrameHeader,
        /// Payload of the frame.
        payload: &'a [u8],
        /// Offset of the byte after the frame.
        next: usize,
    },
    /// The end of the bytes, or space that was never written (a header's length of zeros). Where it
    /// matters, the caller must check that the rest is zeros too ([`is_unwritten`]).
    End,
    /// Neither.
    Invalid {
        /// Description of the damage, for people.
        what: &'static str,
    },
}

/// Appends a frame to `out` that will be written at `offset` of the file `uuid`.
/// REQUIRES: `payload` is at most [`FRAME_PAYLOAD_BYTES_MAX`] long, `durable_upto <= offset`.
pub(crate) fn put_frame(
    out: &mut Vec<u8>,
    uuid: &Uuid,
    offset: u64,
    first_seq: u64,
    durable_upto: u64,
    payload: &[u8],
) {
    let at = out.len();
    reserve_header(out);
    out.extend_from_slice(payload);
    fill_header(&mut out[at..], uuid, offset, first_seq, durable_upto);
}

/// Appends room for a header; the payload is appended behind it by the caller, then [`fill_header`] makes it
/// a frame. Saves copying a payload that is collected piece by piece.
pub fn reserve_header(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
}

/// Makes `frame`, room for a header and the payload behind it, a frame. Returns the header's checksum, which
/// stands for all of the frame's bytes (it covers the payload's checksum).
/// REQUIRES: as [`put_frame`].
pub fn fill_header(frame: &mut [u8], uuid: &Uuid, offset: u64, first_seq: u64, durable_upto: u64) -> u32 {
    let (header, payload) = frame.split_at_mut(FRAME_HEADER_BYTES);
    assert!(
        payload.len() <= FRAME_PAYLOAD_BYTES_MAX,
        "a payload is bounded by its collector"
    );
    assert!(
        durable_upto <= offset,
        "nothing at or behind a frame is durable before it is written"
    );
    let place = place(uuid, offset);
    header[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4..12].copy_from_slice(&first_seq.to_le_bytes());
    header[12..20].copy_from_slice(&durable_upto.to_le_bytes());
    header[20..24].copy_from_slice(&crc32c_append(place, payload).to_le_bytes());
    let checksum = crc32c_append(place, &header[..CHECKED_BYTES]);
    header[24..28].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Reads the frame at `at` of `bytes`, the content of the file `uuid` from its first byte on.
pub fn read_frame<'a>(bytes: &'a [u8], at: usize, uuid: &Uuid) -> FrameRead<'a> {
    read_frame_of(bytes.get(at..).unwrap_or_default(), at as u64, uuid)
}

/// Reads the frame at the front of `rest`, which stands at offset `at` of the file `uuid`.
pub(crate) fn read_frame_of<'a>(rest: &'a [u8], at: u64, uuid: &Uuid) -> FrameRead<'a> {
    let Some((header, rest)) = rest.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        return if is_unwritten(rest) {
            FrameRead::End
        } else {
            FrameRead::Invalid {
                what: "the file ends inside a frame header",
            }
        };
    };
    if is_unwritten(header) {
        return FrameRead::End;
    }
    let Some((header, payload_crc)) = check_header(header, at, uuid) else {
        return FrameRead::Invalid {
            what: "frame header checksum mismatch",
        };
    };
    let Some(payload) = rest.get(..header.payload_len as usize) else {
        return FrameRead::Invalid {
            what: "the file ends inside a frame",
        };
    };
    if crc32c_append(place(uuid, at), payload) != payload_crc {
        return FrameRead::Invalid {
            what: "frame payload checksum mismatch",
        };
    }
    FrameRead::Frame {
        header,
        payload,
        next: at as usize + FRAME_HEADER_BYTES + payload.len(),
    }
}

/// The first intact frame *header* at or after `from`, wherever it begins, and its offset. Its
/// payload may be broken: the header's `durable_upto` is valid all the same.
pub(crate) fn find_header(bytes: &[u8], mut from: usize, uuid: &Uuid) -> Option<(usize, FrameHeader)> {
    loop {
        let rest = bytes.get(from..)?;
        // Most of the searched bytes are unwritten space. No header has this many zeros in a row,
        // so the next one can begin only a few bytes before the next byte that is not zero.
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        if zeros >= FRAME_HEADER_BYTES {
            from += zeros - (FRAME_HEADER_BYTES - 1);
        }
        let header = bytes.get(from..)?.first_chunk::<FRAME_HEADER_BYTES>()?;
        if let Some((header, _)) = check_header(header, from as u64, uuid) {
            return Some((from, header));
        }
        from += 1;
    }
}

/// Whether `bytes` are zeros, as space is that was allocated and not written.
pub(crate) fn is_unwritten(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Takes a header apart if its checksum fits the place; also returns the payload's checksum.
fn check_header(header: &[u8; FRAME_HEADER_BYTES], at: u64, uuid: &Uuid) -> Option<(FrameHeader, u32)> {
    let mut fields = crate::codec::Cursor::new(header);
    let read = FrameHeader {
        payload_len: fields.u32_le()?,
        first_seq: fields.u64_le()?,
        durable_upto: fields.u64_le()?,
    };
    let payload_crc = fields.u32_le()?;
    let header_crc = fields.u32_le()?;
    // The cheap conditions first: a search through garbage rarely comes to the checksum.
    let plausible = read.payload_len as usize <= FRAME_PAYLOAD_BYTES_MAX && read.durable_upto <= at;
    let believed = plausible && crc32c_append(place(uuid, at), &header[..CHECKED_BYTES]) == header_crc;
    believed.then_some((read, payload_crc))
}

/// Start value of both checksums of a frame.
fn place(uuid: &Uuid, offset: u64) -> u32 {
    let mut place = [0; 24];
    place[..16].copy_from_slice(&uuid.0);
    place[16..].copy_from_slice(&offset.to_le_bytes());
    crc32c(&place)
}

#[cfg(test)]
mod tests;
