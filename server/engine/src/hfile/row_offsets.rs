//! The tail of a ROW_INDEX_V1 block: where each row's first cell starts, for readers that search by rows.
//!
//! ```text
//! | cells | row count i32 | offset of each row's first cell i32 | bytes of cells i32 |
//! ```
//!
//! Offsets count from the first cell, which lies behind the two bytes of the encoding id.

use super::block::Check;
use crate::codec::Cursor;

/// Bytes of the encoding id in front of the cells.
const ID_BYTES: u32 = 2;

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

/// Where a payload has its row offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowOffsets {
    /// Where the cells end.
    cells_to: u32,
    rows: u32,
}

impl RowOffsets {
    /// Finds the offsets in a payload. The offsets themselves are not checked.
    /// REQUIRES: a payload of at most `PLAIN_BYTES_MAX` bytes.
    pub(super) fn parse(payload: &[u8]) -> Check<Self> {
        let tail = || {
            let end = payload.len().checked_sub(4)?;
            let cells_bytes = Cursor::new(payload.get(end..)?).u32_be()?;
            let cells_to = cells_bytes.checked_add(ID_BYTES)?;
            let rows = Cursor::new(payload.get(cells_to as usize..end)?).u32_be()?;
            let offsets_bytes = (rows as usize).checked_mul(OFFSET_BYTES)?;
            (offsets_bytes == end - (cells_to as usize + 4)).then_some(Self { cells_to, rows })
        };
        tail().ok_or_else(|| "row offsets of a data block are malformed".into())
    }

    /// Where the cells of the payload begin and end.
    pub(super) fn cells(self) -> (u32, u32) {
        (ID_BYTES, self.cells_to)
    }

    /// Number of rows.
    pub(super) fn len(self) -> usize {
        self.rows as usize
    }

    /// Offset in the payload of a row's first cell, read from the tail.
    /// REQUIRES: the payload that was parsed, and a row of it.
    #[inline]
    pub(super) fn start(self, payload: &[u8], row: usize) -> u32 {
        let at = self.cells_to as usize + 4 + row * OFFSET_BYTES;
        let offset = &payload[at..at + OFFSET_BYTES];
        // Before they are checked, offsets may be anything.
        u32::from_be_bytes([offset[0], offset[1], offset[2], offset[3]]).saturating_add(ID_BYTES)
    }
}

/// A payload with such cells and such a tail, right or not.
#[cfg(test)]
pub(super) fn payload(cells: &[u8], rows: u32, offsets: &[u32], cells_bytes: u32) -> Vec<u8> {
    let mut payload = vec![0, 7];
    payload.extend_from_slice(cells);
    for number in [&[rows], offsets, &[cells_bytes]].concat() {
        payload.extend_from_slice(&number.to_be_bytes());
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_from_the_first_cell() {
        let payload = payload(b"abcdef", 2, &[0, 4], 6);
        let rows = RowOffsets::parse(&payload).unwrap();
        assert_eq!((rows.len(), rows.cells()), (2, (2, 8)));
        assert_eq!(payload[rows.start(&payload, 0) as usize], b'a');
        assert_eq!(payload[rows.start(&payload, 1) as usize], b'e');
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
            let error = RowOffsets::parse(&payload).unwrap_err();
            assert_eq!(error, "row offsets of a data block are malformed");
        }
        assert!(RowOffsets::parse(&[0, 7, 1]).is_err());
        assert!(RowOffsets::parse(&[]).is_err());
    }
}
