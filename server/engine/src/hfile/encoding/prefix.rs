//! PREFIX: `key length - common, value length, common` as compressed ints, then the rest of the key, then the value.

use super::{Plain, common_key_bytes, size};
use crate::cell::{Cell, Key};
use crate::codec::{Cursor, put_varint};

/// Decodes one cell without what follows its value.
pub(super) fn decode(input: &mut Cursor<'_>, plain: &mut Plain) -> Option<()> {
    let rest = size(input)?;
    let value_bytes = size(input)?;
    let common = size(input)?;
    let previous = plain.previous.unwrap_or_default();
    if common > previous.key_bytes {
        return None;
    }
    let current = plain.begin(common + rest, value_bytes);
    plain.repeat(previous.key_at, common)?;
    plain.copy(input, rest)?;
    plain.copy(input, value_bytes)?;
    plain.previous = Some(current);
    Some(())
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
