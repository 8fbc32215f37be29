//! The binary protocol: fixed-width big-endian numbers.
//!
//! ```text
//! field:  type u8 | id i16 | value        struct:  fields | 00
//! list:   type u8 | count i32 | elements  map:     key type u8 | value type u8 | count i32 | pairs
//! binary: length i32 | bytes              bool:    one byte, zero is false
//! ```

use bytes::Bytes;

use super::input::{Input, Skip};
use super::{
    FieldHeader, ListHeader, MapHeader, MessageHeader, MessageKind, OpenList, Reader, WireError, WireType,
    Writer,
};

/// The first two bytes of a strict header.
const VERSION: u32 = 0x8001_0000;

/// Reads messages of the binary protocol, with strict or old headers. Cloning is cheap and gives a
/// second, independent position.
#[derive(Clone, Debug)]
pub struct BinaryReader {
    input: Input,
}

impl BinaryReader {
    /// A reader over one complete message.
    pub fn new(message: Bytes) -> Self {
        BinaryReader {
            input: Input::new(message),
        }
    }

    #[inline]
    fn size(&mut self, what: &'static str) -> Result<usize, WireError> {
        let offset = self.input.pos();
        let size = i32::from_be_bytes(self.input.array(what)?);
        usize::try_from(size).map_err(|_| WireError::NegativeSize { what, offset, size })
    }

    #[inline]
    fn type_code(&mut self) -> Result<WireType, WireError> {
        let offset = self.input.pos();
        let code = self.input.byte("type code")?;
        WireType::from_binary_code(code).ok_or(WireError::UnknownType { offset, code })
    }

    fn kind(code: u8) -> Result<MessageKind, WireError> {
        MessageKind::from_code(code).ok_or(WireError::UnknownKind { code })
    }
}

impl Reader for BinaryReader {
    fn message_begin(&mut self) -> Result<MessageHeader, WireError> {
        let header = u32::from_be_bytes(self.input.array("message header")?);
        if header & 0xffff_0000 == VERSION {
            let kind = Self::kind(header as u8)?;
            let len = self.size("method name")?;
            let name_bytes = self.input.method_name(len)?;
            return Ok(MessageHeader {
                name_bytes,
                kind,
                seqid: self.i32()?,
            });
        }
        if header > i32::MAX as u32 {
            return Err(WireError::UnknownVersion { header });
        }
        // The old form has no version: the first four bytes are the length of the name.
        let name_bytes = self.input.method_name(header as usize)?;
        let kind = Self::kind(self.input.byte("message kind")?)?;
        Ok(MessageHeader {
            name_bytes,
            kind,
            seqid: self.i32()?,
        })
    }

    #[inline]
    fn struct_begin(&mut self) -> Result<(), WireError> {
        self.input.enter()
    }

    #[inline]
    fn struct_end(&mut self) {
        self.input.leave();
    }

    #[inline]
    fn field_begin(&mut self) -> Result<Option<FieldHeader>, WireError> {
        let offset = self.input.pos();
        let code = self.input.byte("field type")?;
        if code == 0 {
            return Ok(None);
        }
        let wire_type = WireType::from_binary_code(code).ok_or(WireError::UnknownType { offset, code })?;
        Ok(Some(FieldHeader {
            id: i16::from_be_bytes(self.input.array("field id")?),
            wire_type,
        }))
    }

    #[inline]
    fn list_begin(&mut self) -> Result<ListHeader, WireError> {
        let element = self.type_code()?;
        let len = self.size("list")?;
        self.input.enter_container(len, element.smallest_binary())?;
        Ok(ListHeader { element, len })
    }

    #[inline]
    fn map_begin(&mut self) -> Result<MapHeader, WireError> {
        let offset = self.input.pos();
        let [key, value] = self.input.array("map header")?;
        let len = self.size("map")?;
        if len == 0 {
            // Some writers leave the types of an empty map at zero.
            self.input.enter()?;
            return Ok(MapHeader { types: None, len });
        }
        let key = WireType::from_binary_code(key).ok_or(WireError::UnknownType { offset, code: key })?;
        let value = WireType::from_binary_code(value).ok_or(WireError::UnknownType {
            offset: offset + 1,
            code: value,
        })?;
        self.input
            .enter_container(len, key.smallest_binary() + value.smallest_binary())?;
        Ok(MapHeader {
            types: Some((key, value)),
            len,
        })
    }

    #[inline]
    fn container_end(&mut self) {
        self.input.leave();
    }

    #[inline]
    fn bool(&mut self) -> Result<bool, WireError> {
        Ok(self.input.byte("bool")? != 0)
    }

    #[inline]
    fn i8(&mut self) -> Result<i8, WireError> {
        Ok(i8::from_be_bytes(self.input.array("byte")?))
    }

    #[inline]
    fn i16(&mut self) -> Result<i16, WireError> {
        Ok(i16::from_be_bytes(self.input.array("i16")?))
    }

    #[inline]
    fn i32(&mut self) -> Result<i32, WireError> {
        Ok(i32::from_be_bytes(self.input.array("i32")?))
    }

    #[inline]
    fn i64(&mut self) -> Result<i64, WireError> {
        Ok(i64::from_be_bytes(self.input.array("i64")?))
    }

    #[inline]
    fn double(&mut self) -> Result<f64, WireError> {
        Ok(f64::from_be_bytes(self.input.array("double")?))
    }

    #[inline]
    fn binary(&mut self) -> Result<Bytes, WireError> {
        let len = self.size("binary")?;
        self.input.shared("binary", len)
    }

    #[inline]
    fn binary_slice(&mut self) -> Result<&[u8], WireError> {
        let len = self.size("binary")?;
        self.input.borrowed("binary", len)
    }

    #[inline]
    fn string(&mut self) -> Result<String, WireError> {
        let len = self.size("string")?;
        self.input.text(len)
    }

    fn skip(&mut self, wire_type: WireType) -> Result<(), WireError> {
        self.skip_value(wire_type)
    }

    #[inline]
    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.input.charge(bytes)
    }

    #[inline]
    fn memory_left(&self) -> usize {
        self.input.memory_left()
    }

    #[inline]
    fn limit_memory(&mut self, bytes: usize) {
        self.input.limit_memory(bytes);
    }

    fn message(&self) -> Bytes {
        self.input.message()
    }

    #[inline]
    fn position(&self) -> usize {
        self.input.pos()
    }

    #[inline]
    fn remaining(&self) -> usize {
        self.input.left()
    }
}

impl Skip for BinaryReader {
    fn fixed(wire_type: WireType) -> Option<usize> {
        wire_type.fixed_binary()
    }

    fn pass(&mut self, len: usize) -> Result<(), WireError> {
        self.input.advance("skipped value", len)
    }

    fn skip_scalar(&mut self, wire_type: WireType) -> Result<(), WireError> {
        let len = match wire_type.fixed_binary() {
            Some(size) => size,
            None => self.size("binary")?,
        };
        self.pass(len)
    }
}

/// Writes messages of the binary protocol, always with strict headers.
#[derive(Debug)]
pub struct BinaryWriter<'a> {
    buf: &'a mut Vec<u8>,
}

impl<'a> BinaryWriter<'a> {
    /// A writer that appends to `buf`.
    pub fn new(buf: &'a mut Vec<u8>) -> Self {
        BinaryWriter { buf }
    }
}

/// A field header as one array, so that it is one store.
#[inline]
const fn field(id: i16, wire_type: WireType) -> [u8; 3] {
    let [high, low] = id.to_be_bytes();
    [wire_type as u8, high, low]
}

/// Two arrays as one of `C = A + B` bytes. The compiler turns it into stores to known places.
#[inline]
fn joined<const A: usize, const B: usize, const C: usize>(first: [u8; A], second: [u8; B]) -> [u8; C] {
    const { assert!(A + B == C) };
    let mut out = [0; C];
    for (place, byte) in out.iter_mut().zip(first.into_iter().chain(second)) {
        *place = byte;
    }
    out
}

impl Writer for BinaryWriter<'_> {
    fn message_begin(&mut self, name: &str, kind: MessageKind, seqid: i32) {
        self.buf.extend_from_slice(&(VERSION | kind as u32).to_be_bytes());
        self.string(name);
        self.i32(seqid);
    }

    #[inline]
    fn struct_begin(&mut self) {}

    #[inline]
    fn struct_end(&mut self) {
        self.buf.push(0);
    }

    #[inline]
    fn field_begin(&mut self, id: i16, wire_type: WireType) {
        self.buf.extend_from_slice(&field(id, wire_type));
    }

    #[inline]
    fn list_begin(&mut self, element: WireType, len: usize) {
        let [a, b, c, d] = (len as u32).to_be_bytes();
        self.buf.extend_from_slice(&[element as u8, a, b, c, d]);
    }

    #[inline]
    fn list_open(&mut self, element: WireType) -> OpenList {
        let at = self.buf.len() + 1;
        self.list_begin(element, 0);
        OpenList { at }
    }

    #[inline]
    fn list_close(&mut self, list: OpenList, len: usize) {
        if let Some(place) = self.buf.get_mut(list.at..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *place = (len as u32).to_be_bytes();
        }
    }

    #[inline]
    fn map_begin(&mut self, key: WireType, value: WireType, len: usize) {
        let [a, b, c, d] = (len as u32).to_be_bytes();
        self.buf.extend_from_slice(&[key as u8, value as u8, a, b, c, d]);
    }

    #[inline]
    fn bool(&mut self, value: bool) {
        self.buf.push(u8::from(value));
    }

    #[inline]
    fn i8(&mut self, value: i8) {
        self.buf.push(value as u8);
    }

    #[inline]
    fn i16(&mut self, value: i16) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn i32(&mut self, value: i32) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn i64(&mut self, value: i64) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn binary(&mut self, value: &[u8]) {
        self.i32(value.len() as i32);
        self.buf.extend_from_slice(value);
    }

    #[inline]
    fn binary_field(&mut self, id: i16, value: &[u8]) {
        let header = joined::<3, 4, 7>(field(id, WireType::Binary), (value.len() as u32).to_be_bytes());
        self.buf.extend_from_slice(&header);
        self.buf.extend_from_slice(value);
    }

    #[inline]
    fn i64_field(&mut self, id: i16, value: i64) {
        self.buf
            .extend_from_slice(&joined::<3, 8, 11>(field(id, WireType::I64), value.to_be_bytes()));
    }

    #[inline]
    fn i8_field(&mut self, id: i16, value: i8) {
        let [t, h, l] = field(id, WireType::I8);
        self.buf.extend_from_slice(&[t, h, l, value as u8]);
    }

    #[inline]
    fn bool_field(&mut self, id: i16, value: bool) {
        let [t, h, l] = field(id, WireType::Bool);
        self.buf.extend_from_slice(&[t, h, l, u8::from(value)]);
    }

    #[inline]
    fn reserve(&mut self, bytes: usize) {
        self.buf.reserve(bytes);
    }

    #[inline]
    fn buffer_len(&self) -> usize {
        self.buf.len()
    }
}
