//! Names and sizes of the log's files.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::record::FRAME_HEADER_BYTES;

/// Bytes before the first frame: the unit of disk writes.
pub(super) const HEADER_BLOCK_BYTES: usize = 4096;

/// Bytes of the seal frame.
pub(super) const SEAL_BYTES: usize = FRAME_HEADER_BYTES + 1 + 4;

/// Bytes of a marker frame.
pub(super) const MARKER_BYTES: usize = FRAME_HEADER_BYTES + 1;

/// Room that a segment keeps for a marker and its seal, so that neither needs new space.
pub(super) const RESERVED_BYTES: u64 = (MARKER_BYTES + SEAL_BYTES) as u64;

/// Bytes of frames that a new segment of that size can take.
pub(super) fn room_of(bytes: u64) -> u64 {
    bytes.saturating_sub(HEADER_BLOCK_BYTES as u64 + RESERVED_BYTES)
}

/// The size of a segment with that much room.
pub(super) fn bytes_for(room: u64) -> u64 {
    room.saturating_add(HEADER_BLOCK_BYTES as u64 + RESERVED_BYTES)
}

/// The name of a segment.
pub(super) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:016x}.wal"))
}

/// The number of the segment of that name; `None` if it is not a segment's name.
pub(super) fn segment_number(name: &Path) -> Option<u64> {
    let digits = name.to_str()?.strip_suffix(".wal")?;
    let canonical = digits.len() == 16
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    canonical.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Removes a file if there is one.
pub(super) fn remove_if_there(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    match vfs.remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("removing", path, source))
        }
        _ => Ok(()),
    }
}
