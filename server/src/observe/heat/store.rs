//! The history as a file, so that the map has a past after a restart.
//!
//! Little-endian: the magic `BASALTKV`, the version (u32, 1), the CRC-32C of what follows (u32). Then, for
//! each ring from the finest on: number of columns (u32), and for each the start (u64, milliseconds since
//! 1970) and the number of tables (u32); for each table its name and its keys (each a length, u32, and
//! bytes), the number of entries (u32), and for each where its key ends (u32), reads, writes and bytes (f32
//! each).
//!
//! The file is written beside its place and renamed, without a sync: after a power cut the map may have lost
//! its past, which is what a file with a wrong checksum means.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::bytes::Bytes;
use super::history::History;

const MAGIC: &[u8; 8] = b"BASALTKV";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;

/// The content of the file.
pub(super) fn encode(history: &History) -> Vec<u8> {
    let mut out = Vec::with_capacity(history.used_bytes() + HEADER_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    history.encode(&mut out);
    let checksum = crc32c::crc32c(&out[HEADER_BYTES..]);
    out[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// Replaces a history by that of a file; `None`, and nothing is changed, if it is damaged or of another
/// version.
pub(super) fn decode(file: &[u8], history: &mut History) -> Option<()> {
    let mut bytes = Bytes::new(file);
    let is_ours = bytes.take(MAGIC.len())? == MAGIC && bytes.u32()? == VERSION as usize;
    let checksum = u32::from_le_bytes(bytes.array()?);
    if !is_ours || crc32c::crc32c(bytes.rest()) != checksum {
        return None;
    }
    history.decode(&mut bytes)
}

/// The file; `None` if there is none or it cannot be read, which the log says.
pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    match fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!("{} cannot be read: {error}", path.display());
            None
        }
    }
}

/// Replaces the file.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("tmp");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(bytes)?;
    fs::rename(&beside, path)
}
