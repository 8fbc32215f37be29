//! Variable-length integers of the compact protocol: seven bits a byte, lowest first, high bit = more.

/// Result of parsing a prefix of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Varint {
    /// A whole number and the bytes it took.
    Value(u64, usize),
    /// The bytes end before the number does.
    Incomplete,
    /// More bytes than the width allows, or bits beyond it.
    TooLong,
}

/// Parses a varint of at most `BITS` bits (32: five bytes; 64: ten bytes) at the start of `bytes`.
#[inline]
pub(super) fn parse<const BITS: u32>(bytes: &[u8]) -> Varint {
    let mut value = 0_u64;
    let mut shift = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        let bits = u64::from(byte & 0x7f);
        if shift + 7 > BITS && (bits >> (BITS - shift)) != 0 {
            return Varint::TooLong;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Varint::Value(value, index + 1);
        }
        shift += 7;
        if shift >= BITS {
            return Varint::TooLong;
        }
    }
    Varint::Incomplete
}

/// Appends a varint.
#[inline]
pub(super) fn write(buf: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buf.push(value as u8 | 0x80);
        value >>= 7;
    }
    buf.push(value as u8);
}

/// Folds the sign into the lowest bit, so that small negative numbers are short.
#[inline]
pub(super) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
