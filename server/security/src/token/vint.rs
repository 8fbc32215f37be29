//! Hadoop's variable-length integers (`WritableUtils.writeVLong`).
//!
//! -112 to 127 take one byte. Others take a first byte that says sign and length, -113 to -120 for
//! positive and -121 to -128 for negative ones, and then 1 to 8 bytes, most significant first.

/// Appends an integer.
pub(super) fn write(value: i64, to: &mut Vec<u8>) {
    if (-112..=127).contains(&value) {
        to.push(value as u8);
        return;
    }
    let (magnitude, first) = if value < 0 { (!value, -120) } else { (value, -112) };
    let len = 8 - magnitude.leading_zeros() as usize / 8;
    to.push((first - len as i64) as u8);
    to.extend_from_slice(&magnitude.to_be_bytes()[8 - len..]);
}

/// Takes an integer off the front; `None` if the bytes end before.
pub(super) fn read(from: &mut &[u8]) -> Option<i64> {
    let (&first, rest) = from.split_first()?;
    let first = i64::from(first as i8);
    let (is_negative, len) = match first {
        -112.. => {
            *from = rest;
            return Some(first);
        }
        -120..=-113 => (false, (-112 - first) as usize),
        _ => (true, (-120 - first) as usize),
    };
    let (bytes, rest) = rest.split_at_checked(len)?;
    *from = rest;
    let magnitude = bytes
        .iter()
        .fold(0_i64, |value, byte| value << 8 | i64::from(*byte));
    Some(if is_negative { !magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(value, &mut bytes);
        bytes
    }

    /// The bytes that Hadoop's `WritableUtils.writeVLong` (hbase-shaded-client 2.6.4) writes.
    #[test]
    fn bytes_are_hadoops() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (127, &[0x7f]),
            (-112, &[0x90]),
            (128, &[0x8f, 0x80]),
            (-113, &[0x87, 0x70]),
            (255, &[0x8f, 0xff]),
            (256, &[0x8e, 0x01, 0x00]),
            (-257, &[0x86, 0x01, 0x00]),
            (i64::MAX, &[0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (i64::MIN, &[0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ] {
            assert_eq!(written(value), bytes, "{value}");
        }
    }

    proptest! {
        #[test]
        fn written_numbers_are_read(value in any::<i64>(), shift in 0..64_u32) {
            let value = value >> shift;
            let bytes = written(value);
            let mut rest = &bytes[..];
            prop_assert_eq!(read(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
            for end in 0..bytes.len() {
                prop_assert_eq!(read(&mut &bytes[..end]), None);
            }
        }
    }
}
