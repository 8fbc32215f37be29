//! The text of a logical key: 22 digits that sort by time. The calendar is the toolkit's; its digits are put
//! into the order that sorts.

use std::ops::Range;

use basalt_client::keys::{KeyDesign, KeyError, MinuteFirst, MinuteKey};

/// Where the parts of a time are in the toolkit's `mmHHddMMyyyy`: minute, hour, day, month, year.
const PARTS: [Range<usize>; 5] = [0..2, 2..4, 4..6, 6..8, 8..12];
/// Where they are in `yyyyMMddHHmm`.
const SORTED_PARTS: [Range<usize>; 5] = [10..12, 8..10, 6..8, 4..6, 0..4];
/// Digits of the time in front.
pub const TIME_DIGITS: usize = 12;
const KEY_DIGITS: usize = 22;

/// The lowest key of a minute.
pub fn start_of(minute: u32) -> MinuteKey {
    MinuteKey { minute, sequence: 0 }
}

/// `yyyyMMddHHmm`, then the sequence number.
pub fn time_first(key: MinuteKey) -> Result<Vec<u8>, KeyError> {
    Ok(moved(&MinuteFirst.encode(&key)?, &PARTS, &SORTED_PARTS))
}

/// The other way round. A row of another length is handed on as it is, for the toolkit to refuse.
pub fn from_time_first(row: &[u8]) -> Result<MinuteKey, KeyError> {
    if row.len() == KEY_DIGITS {
        MinuteFirst.decode(&moved(row, &SORTED_PARTS, &PARTS))
    } else {
        MinuteFirst.decode(row)
    }
}

/// REQUIRES: a row of `KEY_DIGITS` bytes.
fn moved(row: &[u8], from: &[Range<usize>; 5], to: &[Range<usize>; 5]) -> Vec<u8> {
    let mut out = row.to_vec();
    for (from, to) in from.iter().zip(to) {
        out[to.clone()].copy_from_slice(&row[from.clone()]);
    }
    out
}

/// Minutes since 1970 as `yyyy-MM-ddTHH:mm`.
pub fn minute_text(minute: u32) -> Result<String, KeyError> {
    let digits = time_first(start_of(minute))?;
    let digits = String::from_utf8_lossy(&digits[..TIME_DIGITS]).into_owned();
    let (year, rest) = digits.split_at(4);
    let (month, rest) = rest.split_at(2);
    let (day, rest) = rest.split_at(2);
    let (hour, minute) = rest.split_at(2);
    Ok(format!("{year}-{month}-{day}T{hour}:{minute}"))
}
