//! The plain layout of cells in a file, which parts a file's cells have, and where they are: the cell of a
//! data block that a cursor is at.

use super::block::Check;
use crate::cell::Cell;
use crate::codec::{Cursor, put_vlong, vlong_len};
use crate::id::SeqId;
use crate::schema::DataBlockEncoding;

/// Bytes of the two lengths that a cell begins with.
pub(super) const LENGTHS_BYTES: usize = 8;

/// The parts of a file's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellLayout {
    /// Tags length and tags.
    pub(super) tags: bool,
    /// Sequence id.
    pub(super) seq: bool,
}

/// How a file's data blocks are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataLayout {
    /// The encoding.
    pub(super) encoding: DataBlockEncoding,
    /// Parts of a cell.
    pub(super) cell: CellLayout,
    /// Whether encoded blocks hold their tags compressed with a dictionary.
    pub(super) tags_compressed: bool,
}

/// The parts of a cell, with those that a file's cells have.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellParts<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) tags: Option<&'a [u8]>,
    pub(super) seq: Option<SeqId>,
}

impl CellParts<'_> {
    /// Appends the cell in the plain layout.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.key.len() as u32).to_be_bytes());
        out.extend_from_slice(&(self.value.len() as u32).to_be_bytes());
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
        if let Some(tags) = self.tags {
            out.extend_from_slice(&(tags.len() as u16).to_be_bytes());
            out.extend_from_slice(tags);
        }
        if let Some(seq) = self.seq {
            put_vlong(out, seq.0 as i64);
        }
    }
}

/// Appends a cell in the plain layout, with its sequence id, and with its tags if the file's cells have them.
pub(super) fn put_cell(out: &mut Vec<u8>, cell: Cell<'_>, tags: bool) {
    let parts = CellParts {
        key: cell.key.bytes(),
        value: cell.value,
        tags: tags.then_some(cell.tags),
        seq: Some(cell.seq),
    };
    parts.put(out);
}

/// Bytes that [`put_cell`] appends.
pub(super) fn cell_bytes(cell: Cell<'_>, tags: bool) -> usize {
    let tags_bytes = if tags { 2 + cell.tags.len() } else { 0 };
    LENGTHS_BYTES + cell.data_bytes() + tags_bytes + vlong_len(cell.seq.0 as i64)
}

/// Where the parts of one cell are in a block's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CellOffsets {
    pub(super) key_bytes: u32,
    pub(super) value_at: u32,
    pub(super) value_bytes: u32,
    pub(super) tags_at: u32,
    pub(super) tags_bytes: u32,
    /// Where the next cell starts.
    pub(super) next: u32,
    pub(super) seq: SeqId,
}

impl CellOffsets {
    /// The offsets of the plain cell that starts at `start`.
    /// REQUIRES: a cell starts there that has been checked.
    #[inline]
    pub(super) fn plain(bytes: &[u8], start: u32, layout: CellLayout) -> Self {
        let at = start as usize;
        let lengths = u64::from_be_bytes(
            bytes[at..at + LENGTHS_BYTES]
                .try_into()
                .expect("the slice has eight bytes"),
        );
        let (key_bytes, value_bytes) = ((lengths >> 32) as u32, lengths as u32);
        let value_at = at + LENGTHS_BYTES + key_bytes as usize;
        let mut end = value_at + value_bytes as usize;
        let (mut tags_at, mut tags_bytes) = (0, 0);
        if layout.tags {
            tags_bytes = u32::from(u16::from_be_bytes([bytes[end], bytes[end + 1]]));
            tags_at = (end + 2) as u32;
            end += 2 + tags_bytes as usize;
        }
        let mut seq = SeqId::ZERO;
        if layout.seq {
            let first = bytes[end];
            if first < 0x80 {
                // Cells of compacted files mostly have the sequence id zero: one byte.
                seq = SeqId(u64::from(first));
                end += 1;
            } else {
                let mut cursor = Cursor::new(&bytes[end..]);
                seq = SeqId(cursor.vlong().unwrap_or(0) as u64);
                end += cursor.position();
            }
        }
        Self {
            key_bytes,
            value_at: value_at as u32,
            value_bytes,
            tags_at,
            tags_bytes,
            next: end as u32,
            seq,
        }
    }

    /// Takes the value, which `input` is in front of.
    pub(super) fn take_value(&mut self, input: &mut Cursor<'_>, value_bytes: usize) -> Option<()> {
        self.value_at = offset(input.position()).ok()?;
        self.value_bytes = offset(value_bytes).ok()?;
        input.bytes(value_bytes)?;
        Some(())
    }
}

/// A cell of a block. An encoded block does not hold whole keys, so the decoded key is here.
///
/// Belongs to one cursor, which uses it for one block after the other, so that the key's memory is
/// allocated once.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentCell {
    pub(super) offsets: CellOffsets,
    /// The flat key of a cell of a PREFIX, DIFF or FAST_DIFF block; meaningless for other blocks.
    pub(super) key: Vec<u8>,
}

/// An offset in a block, or a length.
pub(super) fn offset(bytes: usize) -> Check<u32> {
    u32::try_from(bytes).map_err(|_| "data block of more than 4 GiB".to_owned())
}
