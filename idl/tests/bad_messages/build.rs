//! Hand-made messages that no writer produces, in each protocol.

use basalt_idl::wire::{Protocol, WireType};

/// All types that a header can announce.
pub(crate) const TYPES: [WireType; 12] = [
    WireType::Bool,
    WireType::I8,
    WireType::Double,
    WireType::I16,
    WireType::I32,
    WireType::I64,
    WireType::Binary,
    WireType::Struct,
    WireType::Map,
    WireType::Set,
    WireType::List,
    WireType::Uuid,
];

/// A message in the making.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    protocol: Protocol,
    out: Vec<u8>,
}

impl Build {
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            out: Vec::new(),
        }
    }

    /// The header of a call. The arguments' fields follow.
    pub(crate) fn call(protocol: Protocol, method: &str) -> Self {
        Self::new(protocol).header(1, method.len() as i64, method.as_bytes())
    }

    pub(crate) fn is_compact(&self) -> bool {
        self.protocol == Protocol::Compact
    }

    /// A header with this kind, length of the name, and name.
    pub(crate) fn header(mut self, kind: u8, name_len: i64, name: &[u8]) -> Self {
        const SEQID: u8 = 5;
        match self.protocol {
            Protocol::BinaryStrict => {
                self.out.extend_from_slice(&[0x80, 1, 0, kind]);
                self = self.int32(name_len).raw(name).raw(&[0, 0, 0, SEQID]);
            }
            Protocol::BinaryOld => self = self.int32(name_len).raw(name).raw(&[kind, 0, 0, 0, SEQID]),
            Protocol::Compact => {
                self.out.extend_from_slice(&[0x82, kind << 5 | 1, SEQID]);
                self = self.varint(name_len as u32 as u64).raw(name);
            }
        }
        self
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.out.extend_from_slice(bytes);
        self
    }

    fn int32(self, value: i64) -> Self {
        self.raw(&(value as i32).to_be_bytes())
    }

    pub(crate) fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
        self
    }

    /// A size or count, as it is claimed.
    pub(crate) fn size(self, claimed: i64) -> Self {
        if self.is_compact() {
            self.varint(u64::from(claimed as u32))
        } else {
            self.int32(claimed)
        }
    }

    /// The code of a type in a header.
    fn code(&self, of: WireType) -> u8 {
        if self.is_compact() {
            of.compact_code()
        } else {
            of as u8
        }
    }

    /// The header of a field with this type code.
    pub(crate) fn field_code(self, code: u8, id: i16) -> Self {
        if self.is_compact() {
            // The long form, which has the id itself and not its distance from the last.
            let zigzag = ((id << 1) ^ (id >> 15)) as u16;
            self.raw(&[code]).varint(u64::from(zigzag))
        } else {
            self.raw(&[code]).raw(&id.to_be_bytes())
        }
    }

    pub(crate) fn field(self, of: WireType, id: i16) -> Self {
        let code = self.code(of);
        self.field_code(code, id)
    }

    pub(crate) fn stop(self) -> Self {
        self.raw(&[0])
    }

    pub(crate) fn text(self, text: &[u8]) -> Self {
        self.size(text.len() as i64).raw(text)
    }

    pub(crate) fn text_field(self, id: i16, text: &str) -> Self {
        self.field(WireType::Binary, id).text(text.as_bytes())
    }

    /// The header of a list or set with this element code.
    pub(crate) fn list_code(self, code: u8, count: i64) -> Self {
        if !self.is_compact() {
            return self.raw(&[code]).int32(count);
        }
        match u8::try_from(count) {
            Ok(short) if short < 15 => self.raw(&[short << 4 | code]),
            _ => self.raw(&[0xf0 | code]).size(count),
        }
    }

    pub(crate) fn list(self, element: WireType, count: i64) -> Self {
        let code = self.code(element);
        self.list_code(code, count)
    }

    /// The header of a map.
    pub(crate) fn map(self, key: WireType, value: WireType, count: i64) -> Self {
        let (key, value) = (self.code(key), self.code(value));
        if self.is_compact() {
            self.size(count).raw(&[key << 4 | value])
        } else {
            self.raw(&[key, value]).int32(count)
        }
    }

    /// The smallest value of a type, as it stands in a container or behind a field header.
    pub(crate) fn smallest(self, of: WireType, in_field: bool) -> Self {
        let len = match (of, self.is_compact()) {
            // The header of a compact field is the value.
            (WireType::Bool, true) if in_field => 0,
            (_, true) => of.smallest_compact(),
            (_, false) => of.smallest_binary(),
        };
        match of {
            WireType::List | WireType::Set => self.list(WireType::I8, 0),
            WireType::Bool if len == 1 => self.raw(&[1]),
            _ => self.raw(&vec![0; len]),
        }
    }

    /// A field whose value nests to `depth`, with the field itself as the first level.
    pub(crate) fn nested(mut self, of: WireType, in_key: bool, id: i16, depth: usize) -> Self {
        self = self.field(of, id);
        let empty = Self::new(self.protocol);
        let (open, innermost, close): (Vec<u8>, Vec<u8>, Vec<u8>) = match of {
            WireType::Struct => (empty.clone().field(of, 1).out, vec![0], vec![0]),
            WireType::Map if in_key => (
                empty.clone().map(of, WireType::I8, 1).out,
                empty.clone().map(WireType::I8, WireType::I8, 0).out,
                vec![0],
            ),
            WireType::Map => (
                empty.clone().map(WireType::I8, of, 1).raw(&[0]).out,
                empty.clone().map(WireType::I8, WireType::I8, 0).out,
                Vec::new(),
            ),
            _ => (
                empty.clone().list(of, 1).out,
                empty.clone().list(WireType::I8, 0).out,
                Vec::new(),
            ),
        };
        // An empty compact map is one byte.
        let innermost = match (of, self.is_compact()) {
            (WireType::Map, true) => vec![0],
            _ => innermost,
        };
        self.out.extend(open.repeat(depth - 1));
        self.out.extend(innermost);
        self.out.extend(close.repeat(depth - 1));
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.out
    }
}
