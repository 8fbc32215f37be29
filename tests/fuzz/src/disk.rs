//! Files for the targets of storage formats: on a simulated disk, with right checksums.

use std::path::Path;

use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::fs::{Open, Vfs as _};
use basalt_engine::internals::{crc32, crc32c, crc32c_append};

/// A disk with these files. Their directories are made.
pub(crate) fn with_files(files: &[(&Path, &[u8])]) -> SimFs {
    let disk = SimFs::new(1, SimOptions::default());
    for (path, bytes) in files {
        let put = || {
            if let Some(parent) = path.parent() {
                disk.create_dir_all(parent)?;
            }
            disk.open(path, Open::CreateNew)?.write_at(bytes, 0)
        };
        put().expect("a simulated disk without faults takes every file");
    }
    disk
}

/// Bytes of an HFile block's header.
const BLOCK_HEADER_BYTES: usize = 33;
/// Inputs never grow a manifest to this: opening rolls it.
pub(crate) const MANIFEST_ROLL_BYTES: u64 = 1 << 20;

/// Bytes of an HFile's trailer.
pub(crate) const TRAILER_BYTES: usize = 4096;
/// Where the mark that the trailer has a checksum stands; the checksum and the version follow.
pub(crate) const TRAILER_MARK_AT: usize = TRAILER_BYTES - 16;
const TRAILER_SUM_AT: usize = TRAILER_BYTES - 8;
const TRAILER_VERSION_AT: usize = TRAILER_BYTES - 4;

/// An HFile of its blocks and the beginning of its trailer; with the mark and checksum of ours if it is
/// `marked`.
pub(crate) fn hfile(blocks: &[u8], trailer: &[u8], marked: bool) -> Vec<u8> {
    let mut file = blocks.to_vec();
    let mut tail = trailer.to_vec();
    tail.resize(TRAILER_BYTES, 0);
    tail[TRAILER_MARK_AT..].fill(0);
    tail[TRAILER_VERSION_AT..].copy_from_slice(&[3, 0, 0, 3]);
    if marked {
        tail[TRAILER_MARK_AT..TRAILER_SUM_AT].copy_from_slice(b"BASALT1:");
        let sum = crc32c_append(crc32c(&tail[..TRAILER_SUM_AT]), &tail[TRAILER_VERSION_AT..]);
        tail[TRAILER_SUM_AT..TRAILER_VERSION_AT].copy_from_slice(&sum.to_be_bytes());
    }
    file.extend_from_slice(&tail);
    file
}

/// Gives every recognisable block the checksums of its content.
pub(crate) fn repair_blocks(mut bytes: &mut [u8]) {
    let number = |bytes: &[u8], at: usize| -> Option<usize> {
        let field = bytes.get(at..)?.first_chunk::<4>()?;
        usize::try_from(i32::from_be_bytes(*field)).ok()
    };
    while let (Some(packed), Some(per_sum), Some(covered)) =
        (number(bytes, 8), number(bytes, 25), number(bytes, 29))
    {
        let whole = packed + BLOCK_HEADER_BYTES;
        if whole > bytes.len() || covered < BLOCK_HEADER_BYTES || covered > whole || per_sum == 0 {
            return;
        }
        let (block, rest) = bytes.split_at_mut(whole);
        let kind = block[24];
        let (payload, sums) = block.split_at_mut(covered);
        for (chunk, sum) in payload.chunks(per_sum).zip(sums.chunks_exact_mut(4)) {
            let value = match kind {
                1 => crc32(chunk),
                2 => crc32c(chunk),
                _ => 0,
            };
            sum.copy_from_slice(&value.to_be_bytes());
        }
        bytes = rest;
    }
}

/// A frame of the compact form of a log.
///
/// ```text
/// length u16 LE | how u8 | payload
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Variation of the input; each target defines its meaning.
    pub(crate) how: u8,
    /// Payload of the frame; shorter than its length at the end of the input.
    pub(crate) payload: &'a [u8],
}

/// The frames of a compact log.
pub(crate) fn frames(mut input: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        let ([low, high, how], rest) = input.split_first_chunk::<3>()?;
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (payload, rest) = rest.split_at(length);
        input = rest;
        Some(Frame { how: *how, payload })
    })
}

/// Appends a frame to the compact form of a log.
pub(crate) fn put_frame(out: &mut Vec<u8>, how: u8, payload: &[u8]) {
    let length = u16::try_from(payload.len()).expect("seeds are small");
    out.extend_from_slice(&length.to_le_bytes());
    out.push(how);
    out.extend_from_slice(payload);
}
