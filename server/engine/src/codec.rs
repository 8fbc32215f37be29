//! Numbers to bytes and back, for every on-disk format.
//!
//! Two families: LEB128 varints and little-endian integers in our own formats (WAL, manifest), and Hadoop's
//! big-endian integers and `WritableUtils` variable-length longs inside HFiles. Reading never panics:
//! [`Cursor`] returns `None` past the end, and the caller names file and offset.

/// Result of a decoding step; the error describes the malformed bytes in words.
pub(crate) type Check<T> = std::result::Result<T, String>;

/// Reads numbers and slices off the front of a byte slice.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            len: bytes.len(),
        }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// The bytes that have not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(count)?;
        self.rest = tail;
        Some(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>()?;
        self.rest = tail;
        Some(*head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Big-endian unsigned 16 bits.
    pub(crate) fn u16_be(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Big-endian unsigned 32 bits.
    pub(crate) fn u32_be(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Big-endian signed 32 bits.
    pub(crate) fn i32_be(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Big-endian signed 64 bits.
    pub(crate) fn i64_be(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Big-endian unsigned 64 bits.
    pub(crate) fn u64_be(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Little-endian unsigned 32 bits.
    pub(crate) fn u32_le(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Little-endian unsigned 64 bits.
    pub(crate) fn u64_le(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// LEB128 of at most 10 bytes; longer or overflowing is `None`.
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A varint length, then that many bytes.
    pub fn prefixed(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.varint()?).ok()?;
        self.bytes(count)
    }

    /// Hadoop's `WritableUtils.readVLong`: one byte for -112..=127, else a length byte and 1 to 8 big-endian
    /// bytes.
    pub(crate) fn vlong(&mut self) -> Option<i64> {
        let first = self.u8()? as i8;
        if first >= -112 {
            return Some(i64::from(first));
        }
        let (count, negative) = if first < -120 {
            (-120 - i32::from(first), true)
        } else {
            (-112 - i32::from(first), false)
        };
        let mut value = 0_i64;
        for byte in self.bytes(count as usize)? {
            value = (value << 8) | i64::from(*byte);
        }
        Some(if negative { !value } else { value })
    }
}

/// Appends an LEB128 varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint length and the bytes.
pub(crate) fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends Hadoop's `WritableUtils.writeVLong`.
pub(crate) fn put_vlong(out: &mut Vec<u8>, value: i64) {
    if (-112..=127).contains(&value) {
        out.push(value as i8 as u8);
        return;
    }
    let (magnitude, base) = if value < 0 {
        (!value, -120_i32)
    } else {
        (value, -112_i32)
    };
    let count = 8 - (magnitude.leading_zeros() / 8) as usize;
    out.push((base - count as i32) as i8 as u8);
    out.extend_from_slice(&magnitude.to_be_bytes()[8 - count..]);
}

/// Bytes that [`put_vlong`] appends.
pub(crate) fn vlong_len(value: i64) -> usize {
    if (-112..=127).contains(&value) {
        return 1;
    }
    let magnitude = if value < 0 { !value } else { value };
    1 + 8 - (magnitude.leading_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varint_round_trip(value: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut cursor = Cursor::new(&out);
            prop_assert_eq!(cursor.varint(), Some(value));
            prop_assert!(cursor.is_empty());
        }

        #[test]
        fn vlong_round_trip(value: i64) {
            let mut out = Vec::new();
            put_vlong(&mut out, value);
            prop_assert_eq!(out.len(), vlong_len(value));
            prop_assert_eq!(Cursor::new(&out).vlong(), Some(value));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let mut cursor = Cursor::new(&bytes);
            while cursor.varint().is_some() {}
            let mut cursor = Cursor::new(&bytes);
            while cursor.vlong().is_some() {}
            let mut cursor = Cursor::new(&bytes);
            while cursor.prefixed().is_some() {}
        }
    }

    /// Encodings fixed by Hadoop; a change here makes HBase unable to read our files.
    #[test]
    fn vlong_bytes_are_hadoops() {
        for (value, bytes) in [
            (0, vec![0]),
            (127, vec![127]),
            (-112, vec![0x90]),
            (128, vec![0x8f, 0x80]),
            (255, vec![0x8f, 0xff]),
            (256, vec![0x8e, 1, 0]),
            (-113, vec![0x87, 0x70]),
        ] {
            let mut out = Vec::new();
            put_vlong(&mut out, value);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn overlong_varint_is_refused() {
        assert_eq!(Cursor::new(&[0x80; 11]).varint(), None);
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(),
            None
        );
    }
}
