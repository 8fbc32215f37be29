//! The plain layout of cells in a file, and which parts a file's cells have.

use crate::cell::Cell;
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
            crate::codec::put_vlong(out, seq.0 as i64);
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
    LENGTHS_BYTES + cell.data_bytes() + tags_bytes + crate::codec::vlong_len(cell.seq.0 as i64)
}
