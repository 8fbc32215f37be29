//! The tail of a ROW_INDEX_V1 block: where each row's first cell starts, for HBase's readers.
//!
//! ```text
//! | cells | row count i32 | offset of each row's first cell i32 | bytes of cells i32 |
//! ```
//!
//! Offsets count from the first cell, which lies behind the two bytes of the encoding id.

use crate::codec::{Check, Cursor};

/// Bytes of the encoding id in front of the cells.
pub(in crate::hfile) const ID_BYTES: u32 = 2;

/// Bytes of an offset.
const OFFSET_BYTES: usize = 4;

/// Size of the tail of a block with this many rows.
pub(super) fn tail_bytes(rows: usize) -> usize {
    4 + rows * OFFSET_BYTES + 4
}

/// Completes a payload of an encoding id and cells with the offsets of each row's first cell.
pub(super) fn put_tail(payload: &mut Vec<u8>, starts: &[u32]) {
    let cells_bytes = payload.len() as u32 - ID_BYTES;
    payload.extend_from_slice(&(starts.len() as u32).to_be_bytes());
    for start in starts {
        payload.extend_from_slice(&start.to_be_bytes());
    }
    payload.extend_from_slice(&cells_bytes.to_be_bytes());
}

/// Reads the tail of a payload: where its cells end, and where the rows start in the payload. The
/// starts themselves are not checked.
/// REQUIRES: a payload of at most `PLAIN_BYTES_MAX` bytes.
pub(in crate::hfile) fn parse(payload: &[u8]) -> Check<(usize, impl Iterator<Item = u32>)> {
    let tail = || {
        let (rest, cells_bytes) = payload.split_last_chunk()?;
        let cells_to = u32::from_be_bytes(*cells_bytes).checked_add(ID_BYTES)? as usize;
        let mut tail = Cursor::new(rest.get(cells_to..)?);
        let rows = tail.u32_be()? as usize;
        let (offsets, rest) = rest[cells_to + tail.position()..].as_chunks::<OFFSET_BYTES>();
        (offsets.len() == rows && rest.is_empty()).then_some((cells_to, offsets))
    };
    let (cells_to, offsets) = tail().ok_or("row offsets of a data block are malformed")?;
    let starts = offsets
        .iter()
        .map(|offset| u32::from_be_bytes(*offset).saturating_add(ID_BYTES));
    Ok((cells_to, starts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload with such cells and such a tail, right or not.
    fn payload(cells: &[u8], rows: u32, offsets: &[u32], cells_bytes: u32) -> Vec<u8> {
        let mut payload = vec![0, 7];
        payload.extend_from_slice(cells);
        for number in [&[rows], offsets, &[cells_bytes]].concat() {
            payload.extend_from_slice(&number.to_be_bytes());
        }
        payload
    }

    #[test]
    fn offsets_count_from_the_first_cell() {
        let payload = payload(b"abcdef", 2, &[0, 4], 6);
        let (cells_to, starts) = parse(&payload).unwrap();
        let firsts: Vec<u8> = starts.map(|start| payload[start as usize]).collect();
        assert_eq!((cells_to, &*firsts), (8, &b"ae"[..]));
    }

    #[test]
    fn a_tail_that_does_not_fit_is_malformed() {
        for (rows, cells_bytes) in [
            (1, 6),
            (3, 6),
            (u32::MAX, 6),
            (2, 5),
            (2, 7),
            (2, 100),
            (2, u32::MAX),
        ] {
            let payload = payload(b"abcdef", rows, &[0, 4], cells_bytes);
            let error = parse(&payload).err().unwrap();
            assert_eq!(error, "row offsets of a data block are malformed");
        }
        assert!(parse(&[0, 7, 1]).is_err());
        assert!(parse(&[]).is_err());
    }
}
