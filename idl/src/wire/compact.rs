//! The compact protocol: varints, and field headers that hold the step from the field before.
//!
//! ```text
//! field:  step << 4 | type           step 1..=15 from the field before
//!         0 << 4 | type | id varint  any other id, zigzag
//! bool:   in a field, the type is the value (1 true, 2 false); in a container one byte (1 true, 2 or 0 false)
//! list:   count << 4 | type          count below 15
//!         15 << 4 | type | count varint
//! map:    00                         empty
//!         count varint | key type << 4 | value type
//! binary: length varint | bytes      i16, i32, i64: zigzag varint      double: little-endian
//! ```

use bytes::Bytes;

use super::input::{Input, Skip};
use super::varint::{self, Varint, unzigzag, zigzag};
use super::{
    FieldHeader, ListHeader, MAX_DEPTH, MapHeader, MessageHeader, MessageKind, OpenList, Reader, WireError,
    WireType, Writer,
};

/// The first byte of a message.
const PROTOCOL_ID: u8 = 0x82;
/// The low five bits of the second byte.
const VERSION: u8 = 1;
const VERSION_MASK: u8 = 0x1f;
/// Bytes of a count that is filled in later: the longest varint of 32 bits.
const OPEN_COUNT_BYTES: usize = 5;

/// Reads messages of the compact protocol. Cloning is cheap and gives a second, independent position.
#[derive(Clone, Debug)]
pub struct CompactReader {
    input: Input,
    /// The id of the field before in the innermost struct.
    last_id: i16,
    /// `last_id` of the structs around, by depth. An array, so that entering a struct allocates nothing.
    outer_ids: [i16; MAX_DEPTH],
    /// The value of a boolean field, which came with its header.
    pending_bool: Option<bool>,
}

impl CompactReader {
    /// A reader over one complete message.
    pub fn new(message: Bytes) -> Self {
        CompactReader {
            input: Input::new(message),
            last_id: 0,
            outer_ids: [0; MAX_DEPTH],
            pending_bool: None,
        }
    }

    #[inline]
    fn varint<const BITS: u32>(&mut self) -> Result<u64, WireError> {
        match varint::parse::<BITS>(self.input.rest()) {
            Varint::Value(value, len) => {
                self.input.advance("varint", len)?;
                Ok(value)
            }
            Varint::Incomplete => {
                let (offset, left) = (self.input.pos(), self.input.left());
                Err(WireError::Truncated {
                    what: "varint",
                    offset,
                    needed: left + 1,
                    left,
                })
            }
            Varint::TooLong => Err(WireError::VarintTooLong {
                offset: self.input.pos(),
                bits: BITS as u8,
            }),
        }
    }

    /// Sizes are unsigned on the wire, but signed in every other implementation.
    #[inline]
    fn size(&mut self, what: &'static str) -> Result<usize, WireError> {
        let offset = self.input.pos();
        let size = self.varint::<32>()? as u32 as i32;
        usize::try_from(size).map_err(|_| WireError::NegativeSize { what, offset, size })
    }

    #[inline]
    fn type_code(&self, code: u8) -> Result<WireType, WireError> {
        let offset = self.input.pos().saturating_sub(1);
        WireType::from_compact_code(code).ok_or(WireError::UnknownType { offset, code })
    }
}

impl Reader for CompactReader {
    fn message_begin(&mut self) -> Result<MessageHeader, WireError> {
        let [id, second] = self.input.array("message header")?;
        if id != PROTOCOL_ID || second & VERSION_MASK != VERSION {
            return Err(WireError::UnknownVersion {
                header: u32::from_be_bytes([0, 0, id, second]),
            });
        }
        let code = second >> 5;
        let kind = MessageKind::from_code(code).ok_or(WireError::UnknownKind { code })?;
        let seqid = self.varint::<32>()? as u32 as i32;
        let len = self.size("method name")?;
        Ok(MessageHeader {
            name_bytes: self.input.method_name(len)?,
            kind,
            seqid,
        })
    }

    #[inline]
    fn struct_begin(&mut self) -> Result<(), WireError> {
        let depth = self.input.depth();
        self.input.enter()?;
        if let Some(outer) = self.outer_ids.get_mut(depth) {
            *outer = self.last_id;
        }
        self.last_id = 0;
        Ok(())
    }

    #[inline]
    fn struct_end(&mut self) {
        self.input.leave();
        self.last_id = self
            .outer_ids
            .get(self.input.depth())
            .copied()
            .unwrap_or_default();
    }

    #[inline]
    fn field_begin(&mut self) -> Result<Option<FieldHeader>, WireError> {
        let header = self.input.byte("field header")?;
        if header == 0 {
            return Ok(None);
        }
        let code = header & 0x0f;
        let wire_type = self.type_code(code)?;
        let step = i16::from(header >> 4);
        let id = if step == 0 {
            self.i16()?
        } else {
            let next = self.last_id.checked_add(step);
            next.ok_or(WireError::FieldIdOutOfRange {
                offset: self.input.pos(),
            })?
        };
        self.last_id = id;
        self.pending_bool = (wire_type == WireType::Bool).then_some(code == 1);
        Ok(Some(FieldHeader { id, wire_type }))
    }

    #[inline]
    fn list_begin(&mut self) -> Result<ListHeader, WireError> {
        let header = self.input.byte("list header")?;
        let element = self.type_code(header & 0x0f)?;
        let len = match header >> 4 {
            15 => self.size("list")?,
            short => usize::from(short),
        };
        self.input.enter_container(len, element.smallest_compact())?;
        Ok(ListHeader { element, len })
    }

    #[inline]
    fn map_begin(&mut self) -> Result<MapHeader, WireError> {
        let len = self.size("map")?;
        if len == 0 {
            self.input.enter()?;
            return Ok(MapHeader { types: None, len });
        }
        let header = self.input.byte("map header")?;
        let (key, value) = (self.type_code(header >> 4)?, self.type_code(header & 0x0f)?);
        self.input
            .enter_container(len, key.smallest_compact() + value.smallest_compact())?;
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
        if let Some(value) = self.pending_bool.take() {
            return Ok(value);
        }
        let offset = self.input.pos();
        match self.input.byte("bool")? {
            1 => Ok(true),
            // The specification says two, and some implementations write zero.
            0 | 2 => Ok(false),
            value => Err(WireError::NotABool { offset, value }),
        }
    }

    #[inline]
    fn i8(&mut self) -> Result<i8, WireError> {
        Ok(i8::from_be_bytes(self.input.array("byte")?))
    }

    #[inline]
    fn i16(&mut self) -> Result<i16, WireError> {
        let offset = self.input.pos();
        let value = unzigzag(self.varint::<32>()?);
        i16::try_from(value).map_err(|_| WireError::VarintTooLong { offset, bits: 16 })
    }

    #[inline]
    fn i32(&mut self) -> Result<i32, WireError> {
        // 32 bits in, so the result always fits.
        Ok(unzigzag(self.varint::<32>()?) as i32)
    }

    #[inline]
    fn i64(&mut self) -> Result<i64, WireError> {
        Ok(unzigzag(self.varint::<64>()?))
    }

    #[inline]
    fn double(&mut self) -> Result<f64, WireError> {
        Ok(f64::from_le_bytes(self.input.array("double")?))
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

impl Skip for CompactReader {
    fn fixed(wire_type: WireType) -> Option<usize> {
        wire_type.fixed_compact()
    }

    fn pass(&mut self, len: usize) -> Result<(), WireError> {
        self.input.advance("skipped value", len)
    }

    fn skip_scalar(&mut self, wire_type: WireType) -> Result<(), WireError> {
        match wire_type {
            WireType::Bool if self.pending_bool.take().is_some() => Ok(()),
            WireType::I16 | WireType::I32 => self.varint::<32>().map(drop),
            WireType::I64 => self.varint::<64>().map(drop),
            WireType::Binary => {
                let len = self.size("binary")?;
                self.pass(len)
            }
            other => self.pass(other.smallest_compact()),
        }
    }
}

/// Writes messages of the compact protocol.
#[derive(Debug)]
pub struct CompactWriter<'a> {
    buf: &'a mut Vec<u8>,
    /// The id of the field before in the innermost struct.
    last_id: i16,
    /// `last_id` of the structs around.
    outer_ids: Vec<i16>,
    /// The id of a boolean field whose header waits for the value.
    pending_bool: Option<i16>,
}

impl<'a> CompactWriter<'a> {
    /// A writer that appends to `buf`.
    pub fn new(buf: &'a mut Vec<u8>) -> Self {
        CompactWriter {
            buf,
            last_id: 0,
            outer_ids: Vec::new(),
            pending_bool: None,
        }
    }

    #[inline]
    fn field_header(&mut self, id: i16, code: u8) {
        if let Some(step @ 1..=15) = id.checked_sub(self.last_id) {
            self.buf.push((step as u8) << 4 | code);
        } else {
            self.buf.push(code);
            self.i16(id);
        }
        self.last_id = id;
    }
}

impl Writer for CompactWriter<'_> {
    fn message_begin(&mut self, name: &str, kind: MessageKind, seqid: i32) {
        self.buf
            .extend_from_slice(&[PROTOCOL_ID, (kind as u8) << 5 | VERSION]);
        varint::write(self.buf, u64::from(seqid as u32));
        self.string(name);
    }

    #[inline]
    fn struct_begin(&mut self) {
        self.outer_ids.push(self.last_id);
        self.last_id = 0;
    }

    #[inline]
    fn struct_end(&mut self) {
        self.buf.push(0);
        self.last_id = self.outer_ids.pop().unwrap_or_default();
    }

    #[inline]
    fn field_begin(&mut self, id: i16, wire_type: WireType) {
        if wire_type == WireType::Bool {
            self.pending_bool = Some(id);
        } else {
            self.field_header(id, wire_type.compact_code());
        }
    }

    #[inline]
    fn list_begin(&mut self, element: WireType, len: usize) {
        if len < 15 {
            self.buf.push((len as u8) << 4 | element.compact_code());
        } else {
            self.buf.push(0xf0 | element.compact_code());
            varint::write(self.buf, len as u64);
        }
    }

    #[inline]
    fn list_open(&mut self, element: WireType) -> OpenList {
        self.buf.push(0xf0 | element.compact_code());
        let at = self.buf.len();
        self.buf.extend_from_slice(&[0; OPEN_COUNT_BYTES]);
        OpenList { at }
    }

    /// The count is written in five bytes whatever its value; every reader accepts that.
    #[inline]
    fn list_close(&mut self, list: OpenList, len: usize) {
        if let Some(place) = self
            .buf
            .get_mut(list.at..)
            .and_then(<[u8]>::first_chunk_mut::<OPEN_COUNT_BYTES>)
        {
            let group = |shift: u32| (len >> shift) as u8 | 0x80;
            *place = [group(0), group(7), group(14), group(21), (len >> 28) as u8 & 0x0f];
        }
    }

    #[inline]
    fn map_begin(&mut self, key: WireType, value: WireType, len: usize) {
        if len == 0 {
            self.buf.push(0);
        } else {
            varint::write(self.buf, len as u64);
            self.buf.push(key.compact_code() << 4 | value.compact_code());
        }
    }

    #[inline]
    fn bool(&mut self, value: bool) {
        let code = if value { 1 } else { 2 };
        match self.pending_bool.take() {
            Some(id) => self.field_header(id, code),
            None => self.buf.push(code),
        }
    }

    #[inline]
    fn i8(&mut self, value: i8) {
        self.buf.push(value as u8);
    }

    #[inline]
    fn i16(&mut self, value: i16) {
        varint::write(self.buf, zigzag(i64::from(value)));
    }

    #[inline]
    fn i32(&mut self, value: i32) {
        varint::write(self.buf, zigzag(i64::from(value)));
    }

    #[inline]
    fn i64(&mut self, value: i64) {
        varint::write(self.buf, zigzag(value));
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.buf.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn binary(&mut self, value: &[u8]) {
        varint::write(self.buf, value.len() as u64);
        self.buf.extend_from_slice(value);
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
