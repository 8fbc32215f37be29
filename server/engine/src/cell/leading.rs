//! The first bytes of a part of a key as a number that sorts as they do, with zeros where there are none.
//!
//! Made in registers: bytes that are copied to memory by ones and twos and loaded together stall
//! the processor until the copies have left its store buffer
//! (docs/decisions/0005-arena-skiplist.md).

/// The first four.
#[inline]
pub(crate) fn leading4(bytes: &[u8]) -> u32 {
    match *bytes {
        [a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]),
        [a, b, c] => u32::from_be_bytes([a, b, c, 0]),
        [a, b] => u32::from_be_bytes([a, b, 0, 0]),
        [a] => u32::from_be_bytes([a, 0, 0, 0]),
        [] => 0,
    }
}

/// The first eight.
#[inline]
fn leading8(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let first = u64::from(leading4(bytes)) << 32;
    // For four to seven bytes: the first four and the last four. Where they overlap they are the
    // same.
    bytes.last_chunk::<4>().map_or(first, |last| {
        first | u64::from(u32::from_be_bytes(*last)) << (8 * (8 - bytes.len()))
    })
}

/// The first sixteen.
#[inline]
pub(crate) fn leading16(bytes: &[u8]) -> u128 {
    if let Some(first) = bytes.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    let first = u128::from(leading8(bytes)) << 64;
    // As in `leading8`.
    bytes.last_chunk::<8>().map_or(first, |last| {
        first | u128::from(u64::from_be_bytes(*last)) << (8 * (16 - bytes.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the numbers equal those of the bytes padded with zeros. Method: all lengths around the
    /// limits.
    #[test]
    fn what_is_missing_is_zero() {
        for len in 0..20 {
            let bytes: Vec<u8> = (0..len).map(|at| 0xf0 ^ (at * 7)).collect();
            let mut padded = bytes.clone();
            padded.resize(20, 0);
            assert_eq!(leading4(&bytes).to_be_bytes(), padded[..4], "{len}");
            assert_eq!(leading8(&bytes).to_be_bytes(), padded[..8], "{len}");
            assert_eq!(leading16(&bytes).to_be_bytes(), padded[..16], "{len}");
        }
    }
}
