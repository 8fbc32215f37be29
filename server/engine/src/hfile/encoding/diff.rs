//! DIFF: differences of all key parts.
//!
//! ```text
//! first cell of a block: family length u8, family
//! each cell:   flags u8  [key length]  [value length]  common   (compressed ints; the bracketed ones by flag)
//!              rest of row length and row, whole qualifier      (when the row differs)   or  rest of the qualifier
//!              timestamp or its difference from the cell before, 1 to 8 bytes, little-endian, without sign
//!              [type u8]  value
//! ```
//!
//! `common` counts bytes of the flat key, so when the row is common it includes the family, which is never
//! repeated.

use super::{common_key_bytes, size};
use crate::cell::{Cell, Key};
use crate::codec::{Cursor, put_varint};
use crate::hfile::cell_layout::CellOffsets;

const SAME_KEY_LENGTH: u8 = 1;
const SAME_VALUE_LENGTH: u8 = 1 << 1;
const SAME_TYPE: u8 = 1 << 2;
const TIMESTAMP_IS_DIFFERENCE: u8 = 1 << 3;
const TIMESTAMP_LENGTH_SHIFT: u8 = 4;
const TIMESTAMP_LENGTH_MASK: u8 = 7;
const TIMESTAMP_IS_NEGATIVE: u8 = 1 << 7;

/// Bytes that a number takes without its leading zeros; at least one.
fn significant_bytes(value: i64) -> usize {
    // Only the smallest number stays negative when it is negated; it takes all eight bytes.
    (8 - (value.leading_zeros() / 8) as usize).max(1)
}

/// Decodes one cell up to the end of its value. `key` and `offsets` are those of the cell before,
/// and become this one's. The family is written once in a block, in front of the first cell.
pub(super) fn decode(
    input: &mut Cursor<'_>,
    payload: &[u8],
    key: &mut Vec<u8>,
    offsets: &mut CellOffsets,
) -> Option<()> {
    let mut start = Cursor::new(payload.get(super::CELLS_AT..)?);
    let family_bytes = usize::from(start.u8()?);
    start.bytes(family_bytes)?;
    let family = &payload[super::CELLS_AT..=super::CELLS_AT + family_bytes];
    let (mut previous_time, mut previous_type) = (0, None);
    if key.is_empty() {
        input.bytes(family.len())?;
    } else {
        let previous = Key::trusted(key);
        (previous_time, previous_type) = (previous.timestamp(), Some(previous.type_code()));
    }
    let flags = input.u8()?;
    let key_bytes = if flags & SAME_KEY_LENGTH != 0 {
        key.len()
    } else {
        size(input)?
    };
    let value_bytes = if flags & SAME_VALUE_LENGTH != 0 {
        offsets.value_bytes as usize
    } else {
        size(input)?
    };
    let common = size(input)?;
    replace_row_and_qualifier(input, key, key_bytes, common, family)?;

    let time_bytes = usize::from(flags >> TIMESTAMP_LENGTH_SHIFT & TIMESTAMP_LENGTH_MASK) + 1;
    let mut raw = [0; 8];
    raw[..time_bytes].copy_from_slice(input.bytes(time_bytes)?);
    let mut time = i64::from_le_bytes(raw);
    if flags & TIMESTAMP_IS_NEGATIVE != 0 {
        time = time.wrapping_neg();
    }
    if flags & TIMESTAMP_IS_DIFFERENCE != 0 {
        time = previous_time.wrapping_sub(time);
    }
    key.extend_from_slice(&time.to_be_bytes());
    key.push(if flags & SAME_TYPE != 0 {
        previous_type?
    } else {
        input.u8()?
    });
    offsets.take_value(input, value_bytes)
}

/// Turns the key before (nothing before the first cell) into the part of this one before its
/// timestamp: `common` bytes stay, and if the row is another one, it is followed by the family,
/// which has its length in front. FAST_DIFF does the same.
pub(super) fn replace_row_and_qualifier(
    input: &mut Cursor<'_>,
    key: &mut Vec<u8>,
    key_bytes: usize,
    common: usize,
    family: &[u8],
) -> Option<()> {
    if common > key.len() || common > key_bytes {
        return None;
    }
    let row_end = key
        .first_chunk::<2>()
        .map_or(2, |length| 2 + usize::from(u16::from_be_bytes(*length)));
    key.truncate(common);
    if common < row_end {
        key.extend_from_slice(input.bytes(2_usize.saturating_sub(common))?);
        let row_end = 2 + usize::from(u16::from_be_bytes(*key.first_chunk::<2>()?));
        key.extend_from_slice(input.bytes(row_end.checked_sub(key.len())?)?);
        key.extend_from_slice(family);
    }
    let time_at = key_bytes.checked_sub(9)?;
    key.extend_from_slice(input.bytes(time_at.checked_sub(key.len())?)?);
    Some(())
}

/// Encodes one cell without its tags and sequence id.
pub(super) fn encode(out: &mut Vec<u8>, cell: Cell<'_>, before: Option<(Key<'_>, &[u8])>) {
    let key = cell.key;
    let (mut flags, mut common) = (0, 0);
    let mut time = key.timestamp();
    let mut time_flags = 0;
    if time < 0 {
        time = time.wrapping_neg();
        time_flags = TIMESTAMP_IS_NEGATIVE;
    }
    let mut time_bytes = significant_bytes(time);
    if let Some((before, before_value)) = before {
        common = common_key_bytes(before, key, false);
        if before.bytes().len() == key.bytes().len() {
            flags |= SAME_KEY_LENGTH;
        }
        if before_value.len() == cell.value.len() {
            flags |= SAME_VALUE_LENGTH;
        }
        if before.type_code() == key.type_code() {
            flags |= SAME_TYPE;
        }
        let mut difference = before.timestamp().wrapping_sub(key.timestamp());
        let mut difference_flags = TIMESTAMP_IS_DIFFERENCE;
        if difference < 0 {
            difference = difference.wrapping_neg();
            difference_flags |= TIMESTAMP_IS_NEGATIVE;
        }
        if significant_bytes(difference) < time_bytes {
            (time, time_flags, time_bytes) = (difference, difference_flags, significant_bytes(difference));
        }
    } else {
        out.push(key.family().len() as u8);
        out.extend_from_slice(key.family());
    }
    flags |= time_flags | ((time_bytes - 1) as u8) << TIMESTAMP_LENGTH_SHIFT;
    out.push(flags);
    if flags & SAME_KEY_LENGTH == 0 {
        put_varint(out, key.bytes().len() as u64);
    }
    if flags & SAME_VALUE_LENGTH == 0 {
        put_varint(out, cell.value.len() as u64);
    }
    put_varint(out, common as u64);
    put_row_and_qualifier(out, key, common);
    out.extend_from_slice(&time.to_le_bytes()[..time_bytes]);
    if flags & SAME_TYPE == 0 {
        out.push(key.type_code());
    }
    out.extend_from_slice(cell.value);
}

/// The parts of the key between `common` and the timestamp, the family left out. FAST_DIFF does the same.
pub(super) fn put_row_and_qualifier(out: &mut Vec<u8>, key: Key<'_>, common: usize) {
    let row_end = 2 + key.row().len();
    if common < row_end {
        out.extend_from_slice(&key.bytes()[common..row_end]);
        out.extend_from_slice(key.qualifier());
    } else {
        out.extend_from_slice(&key.column_bytes()[common..]);
    }
}
