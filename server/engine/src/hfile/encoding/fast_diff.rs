//! FAST_DIFF: as DIFF, but the timestamp keeps its own prefix and an equal value is left out.
//!
//! ```text
//! first cell:  flags 0  key length  value length  0  flat key  value
//! each other:  flags u8  [key length]  [value length]  common   (compressed ints; the bracketed ones by flag)
//!              rest of row length and row, whole qualifier      (when the row differs)   or  rest of the qualifier
//!              timestamp without the leading bytes it shares with the cell before (0 to 7, in the flags), big-endian
//!              [type u8]  [value]
//! ```

use smallvec::SmallVec;

use super::diff::{put_row_and_qualifier, replace_row_and_qualifier};
use super::{common_bytes, common_key_bytes, size};
use crate::cell::{Cell, Key};
use crate::codec::{Cursor, put_varint};
use crate::hfile::cell_layout::CellOffsets;

const TIMESTAMP_COMMON_MASK: u8 = 7;
const SAME_KEY_LENGTH: u8 = 1 << 3;
const SAME_VALUE_LENGTH: u8 = 1 << 4;
const SAME_TYPE: u8 = 1 << 5;
const SAME_VALUE: u8 = 1 << 6;

/// Decodes one cell up to the end of its value. `key` and `offsets` are those of the cell before,
/// and become this one's.
pub(super) fn decode(input: &mut Cursor<'_>, key: &mut Vec<u8>, offsets: &mut CellOffsets) -> Option<()> {
    let flags = input.u8()?;
    let key_bytes = if flags & SAME_KEY_LENGTH != 0 {
        key.len()
    } else {
        size(input)?
    };
    let previous_value_bytes = offsets.value_bytes as usize;
    let value_bytes = if flags & SAME_VALUE_LENGTH != 0 {
        previous_value_bytes
    } else {
        size(input)?
    };
    let common = size(input)?;
    if key.is_empty() {
        key.extend_from_slice(input.bytes(key_bytes)?);
        return offsets.take_value(input, value_bytes);
    }
    let previous = Key::trusted(key);
    let (mut time, type_code) = (previous.timestamp().to_be_bytes(), previous.type_code());
    let row_end = 2 + previous.row().len();
    let family: SmallVec<[u8; 32]> = if common < row_end {
        SmallVec::from_slice(&previous.bytes()[row_end..row_end + 1 + previous.family().len()])
    } else {
        SmallVec::new()
    };
    replace_row_and_qualifier(input, key, key_bytes, common, &family)?;
    let time_common = usize::from(flags & TIMESTAMP_COMMON_MASK);
    time[time_common..].copy_from_slice(input.bytes(8 - time_common)?);
    key.extend_from_slice(&time);
    key.push(if flags & SAME_TYPE != 0 {
        type_code
    } else {
        input.u8()?
    });
    if flags & SAME_VALUE == 0 {
        return offsets.take_value(input, value_bytes);
    }
    // The value stays where it is.
    (value_bytes == previous_value_bytes).then_some(())
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
