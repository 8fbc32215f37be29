//! Fields of a protobuf message. The messages of filters have only bytes, texts, numbers and flags.

use prost::encoding::{WireType, encode_key, encode_varint};

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn new() -> Fields {
        Fields::default()
    }

    /// Bytes, a text, or a message.
    pub(super) fn bytes(mut self, tag: u32, value: &[u8]) -> Fields {
        encode_key(tag, WireType::LengthDelimited, &mut self.0);
        encode_varint(value.len() as u64, &mut self.0);
        self.0.extend_from_slice(value);
        self
    }

    /// An int32, an int64 or an enum.
    pub(super) fn number(mut self, tag: u32, value: i64) -> Fields {
        encode_key(tag, WireType::Varint, &mut self.0);
        encode_varint(value as u64, &mut self.0);
        self
    }

    pub(super) fn flag(self, tag: u32, value: bool) -> Fields {
        self.number(tag, value.into())
    }

    pub(super) fn encoded(self) -> Vec<u8> {
        self.0
    }
}
