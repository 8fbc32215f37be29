//! PREFIX: `key length - common, value length, common` as compressed ints, then the rest of the key, then the
//! value.

use super::{common_key_bytes, size};
use crate::cell::{Cell, Key};
use crate::codec::{Cursor, put_varint};
use crate::hfile::cell_layout::CellOffsets;

/// Decodes one cell up to the end of its value. `key` and `offsets` are those of the cell before,
/// and become this one's.
pub(super) fn decode(input: &mut Cursor<'_>, key: &mut Vec<u8>, offsets: &mut CellOffsets) -> Option<()> {
    let rest = size(input)?;
    let value_bytes = size(input)?;
    let common = size(input)?;
    if common > key.len() {
        return None;
    }
    key.truncate(common);
    key.extend_from_slice(input.bytes(rest)?);
    offsets.take_value(input, value_bytes)
}

/// Encodes one cell without its tags and sequence id.
pub(super) fn encode(out: &mut Vec<u8>, cell: Cell<'_>, before: Option<(Key<'_>, &[u8])>) {
    let key = cell.key.bytes();
    let common = before.map_or(0, |(before, _)| common_key_bytes(before, cell.key, true));
    put_varint(out, (key.len() - common) as u64);
    put_varint(out, cell.value.len() as u64);
    put_varint(out, common as u64);
    out.extend_from_slice(&key[common..]);
    out.extend_from_slice(cell.value);
}
