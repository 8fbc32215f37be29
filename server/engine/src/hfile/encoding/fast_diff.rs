//! FAST_DIFF: as DIFF, but the timestamp keeps its own prefix and an equal value is left out.
//!
//! ```text
//! first cell:  flags 0  key length  value length  0  flat key  value
//! each other:  flags u8  [key length]  [value length]  common   (compressed ints; the bracketed ones by flag)
//!              rest of row length and row, whole qualifier      (when the row differs)   or  rest of the qualifier
//!              timestamp without the leading bytes it shares with the cell before (0 to 7, in the flags), big-endian
//!              [type u8]  [value]
//! ```

use super::diff::put_row_and_qualifier;
use super::{Plain, common_bytes, common_key_bytes, size};
use crate::cell::{Cell, Key};
use crate::codec::{Cursor, put_varint};

const TIMESTAMP_COMMON_MASK: u8 = 7;
const SAME_KEY_LENGTH: u8 = 1 << 3;
const SAME_VALUE_LENGTH: u8 = 1 << 4;
const SAME_TYPE: u8 = 1 << 5;
const SAME_VALUE: u8 = 1 << 6;

/// Decodes one cell without what follows its value.
pub(super) fn decode(input: &mut Cursor<'_>, plain: &mut Plain) -> Option<()> {
    let flags = input.u8()?;
    let previous = plain.previous.unwrap_or_default();
    let key_bytes = if flags & SAME_KEY_LENGTH != 0 {
        previous.key_bytes
    } else {
        size(input)?
    };
    let value_bytes = if flags & SAME_VALUE_LENGTH != 0 {
        previous.value_bytes
    } else {
        size(input)?
    };
    let common = size(input)?;
    if plain.previous.is_none() {
        let current = plain.begin(key_bytes, value_bytes);
        plain.copy(input, key_bytes)?;
        plain.copy(input, value_bytes)?;
        plain.previous = Some(current);
        return Some(());
    }
    let (row_bytes, family_bytes) = plain
        .previous_key()
        .map(|key| (key.row().len(), key.family().len()))?;
    if common > previous.key_bytes || common > key_bytes {
        return None;
    }
    let current = plain.begin(key_bytes, value_bytes);
    plain.repeat(previous.key_at, common)?;
    if common < row_bytes + 2 {
        plain.copy(input, 2_usize.saturating_sub(common))?;
        let len = Cursor::new(plain.bytes.get(current.key_at..)?).u16_be()?;
        let row_end = current.key_at + 2 + usize::from(len);
        plain.copy(input, row_end.checked_sub(plain.bytes.len())?)?;
        plain.repeat(previous.key_at + 2 + row_bytes, 1 + family_bytes)?;
    }
    let time_at = (current.key_at + key_bytes).checked_sub(9)?;
    plain.copy(input, time_at.checked_sub(plain.bytes.len())?)?;

    let previous_time_at = previous.key_at + previous.key_bytes - 9;
    let time_common = usize::from(flags & TIMESTAMP_COMMON_MASK);
    plain.repeat(previous_time_at, time_common)?;
    plain.copy(input, 8 - time_common)?;
    if flags & SAME_TYPE != 0 {
        plain.repeat(previous_time_at + 8, 1)?;
    } else {
        plain.copy(input, 1)?;
    }
    if flags & SAME_VALUE == 0 {
        plain.copy(input, value_bytes)?;
    } else if value_bytes == previous.value_bytes {
        plain.repeat(previous.key_at + previous.key_bytes, value_bytes)?;
    } else {
        return None;
    }
    plain.previous = Some(current);
    Some(())
}

/// Encodes one cell without its tags and sequence id.
pub(super) fn encode(out: &mut Vec<u8>, cell: Cell<'_>, before: Option<(Key<'_>, &[u8])>) {
    let key = cell.key;
    let Some((before, before_value)) = before else {
        out.push(0);
        put_varint(out, key.bytes().len() as u64);
        put_varint(out, cell.value.len() as u64);
        put_varint(out, 0);
        out.extend_from_slice(key.bytes());
        out.extend_from_slice(cell.value);
        return;
    };
    let common = common_key_bytes(before, key, false);
    let time = key.timestamp().to_be_bytes();
    let time_common = common_bytes(&time[..7], &before.timestamp().to_be_bytes());
    let mut flags = time_common as u8;
    if before.bytes().len() == key.bytes().len() {
        flags |= SAME_KEY_LENGTH;
    }
    if before_value.len() == cell.value.len() {
        flags |= SAME_VALUE_LENGTH;
    }
    if before.type_code() == key.type_code() {
        flags |= SAME_TYPE;
    }
    if before_value == cell.value {
        flags |= SAME_VALUE;
    }
    out.push(flags);
    if flags & SAME_KEY_LENGTH == 0 {
        put_varint(out, key.bytes().len() as u64);
    }
    if flags & SAME_VALUE_LENGTH == 0 {
        put_varint(out, cell.value.len() as u64);
    }
    put_varint(out, common as u64);
    put_row_and_qualifier(out, key, common);
    out.extend_from_slice(&time[time_common..]);
    if flags & SAME_TYPE == 0 {
        out.push(key.type_code());
    }
    if flags & SAME_VALUE == 0 {
        out.extend_from_slice(cell.value);
    }
}
