//! Protobuf messages, as far as HBase's filters need them: written by hand from HBase's `.proto` files and
//! not with the server's own types, so that an error there cannot hide.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// How a field's value is written.
const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    /// An empty message.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The message in bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A field of an integer type or an enum.
    pub(super) fn int(mut self, number: u64, value: i64) -> Self {
        self.varint(number << 3 | VARINT);
        self.varint(value.cast_unsigned());
        self
    }

    /// A `bool`.
    pub(super) fn bool(self, number: u64, value: bool) -> Self {
        self.int(number, value.into())
    }

    /// `bytes` or `string`.
    pub(super) fn bytes(mut self, number: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.varint(number << 3 | LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A message inside this one.
    pub(super) fn message(self, number: u64, value: &Message) -> Self {
        self.bytes(number, &value.0)
    }

    /// A packed list of integers.
    pub(super) fn packed(self, number: u64, values: &[i64]) -> Self {
        let mut list = Message::new();
        for value in values {
            list.varint(value.cast_unsigned());
        }
        self.message(number, &list)
    }

    /// With another field, if there is a value for it.
    pub(super) fn maybe<T>(self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => add(self, value),
            None => self,
        }
    }
}
