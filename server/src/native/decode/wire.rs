//! Reads the fields of a protobuf message where they are.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The content of a field, as far as its head says it.
pub(super) enum Content {
    Number(u64),
    /// This many bytes follow. They may be more than the message has.
    Bytes(u64),
    /// Neither: its wire type has a fixed size or is a group. It has been skipped.
    Other,
}

/// Reads the tag of the next field, and its content but for bytes. `None` if it is malformed: decoding
/// the message fails here, too.
#[inline]
pub(super) fn next_field(rest: &mut &[u8]) -> Option<(u32, Content)> {
    // Most tags, numbers and lengths are small.
    if let [key @ 0x08..0x80, number @ 0..0x80, ..] = **rest {
        let (tag, number) = (u32::from(key >> 3), u64::from(number));
        match key & 7 {
            0 => {
                *rest = &rest[2..];
                return Some((tag, Content::Number(number)));
            }
            2 => {
                *rest = &rest[2..];
                return Some((tag, Content::Bytes(number)));
            }
            _ => {}
        }
    }
    next_long_field(rest)
}

/// As [`next_field`], for any field.
#[inline(never)]
fn next_long_field(rest: &mut &[u8]) -> Option<(u32, Content)> {
    let (tag, wire_type) = decode_key(rest).ok()?;
    let content = match wire_type {
        WireType::Varint => Content::Number(decode_varint(rest).ok()?),
        WireType::LengthDelimited => Content::Bytes(decode_varint(rest).ok()?),
        _ => {
            skip_field(wire_type, tag, rest, DecodeContext::default()).ok()?;
            Content::Other
        }
    };
    Some((tag, content))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The next field by prost's functions alone: its tag, its number or length, and what is left.
    fn expected(mut rest: &[u8]) -> Option<(u32, Option<u64>, &[u8])> {
        let (tag, wire_type) = decode_key(&mut rest).ok()?;
        let content = match wire_type {
            WireType::Varint | WireType::LengthDelimited => Some(decode_varint(&mut rest).ok()?),
            _ => {
                skip_field(wire_type, tag, &mut rest, DecodeContext::default()).ok()?;
                None
            }
        };
        Some((tag, content, rest))
    }

    fn found(mut rest: &[u8]) -> Option<(u32, Option<u64>, &[u8])> {
        let (tag, content) = next_field(&mut rest)?;
        let number = match content {
            Content::Number(number) | Content::Bytes(number) => Some(number),
            Content::Other => None,
        };
        Some((tag, number, rest))
    }

    #[test]
    fn numbers_and_lengths_are_told_apart() {
        let is = |message: &[u8], is: fn(&Content) -> bool| {
            is(&next_field(&mut &message[..]).expect("it is a field").1)
        };
        assert!(is(&[0x08, 5], |content| matches!(content, Content::Number(5))));
        assert!(is(&[0x0a, 5], |content| matches!(content, Content::Bytes(5))));
        assert!(is(&[0x88, 0x01, 5], |content| matches!(
            content,
            Content::Number(5)
        )));
        assert!(is(&[0x0a, 0x80, 0x01], |content| matches!(
            content,
            Content::Bytes(128)
        )));
        assert!(is(&[0x0d, 1, 2, 3, 4], |content| matches!(
            content,
            Content::Other
        )));
    }

    proptest! {
        /// The short way reads what the decoder of prost reads, also of what is malformed.
        #[test]
        fn fields_are_read_as_prost_reads_them(message in proptest::collection::vec(
            prop_oneof![0..0x20_u8, any::<u8>()], 0..12,
        )) {
            prop_assert_eq!(found(&message), expected(&message));
        }
    }
}
