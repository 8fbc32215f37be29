//! The part of reading that both protocols share: a bounded walk over one message.

use bytes::Bytes;

use super::{
    DECODED_BYTES_BASE, DECODED_BYTES_PER_MESSAGE_BYTE, MAX_DEPTH, METHOD_NAME_BYTES_MAX, WireError,
};

/// Families, and often columns, have names of one letter in HBase. A slice of the message costs two atomic
/// operations, one of this costs none.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
static EVERY_BYTE: [u8; 256] = {
    let mut every = [0; 256];
    let mut byte = 0;
    while byte < every.len() {
        every[byte] = byte as u8;
        byte += 1;
    }
    every
};

/// A position in a message, with the depth and the memory budget. Invariant: `pos <= buf.len()`.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// The whole message.
    buf: Bytes,
    /// The next byte to read.
    pos: usize,
    /// Structs and containers around the position.
    depth: usize,
    /// Memory that decoded containers may still take, in bytes.
    memory_left: usize,
}

impl Input {
    pub(super) fn new(buf: Bytes) -> Self {
        let memory = buf
            .len()
            .saturating_mul(DECODED_BYTES_PER_MESSAGE_BYTE)
            .saturating_add(DECODED_BYTES_BASE);
        Input {
            buf,
            pos: 0,
            depth: 0,
            memory_left: memory,
        }
    }

    pub(super) fn message(&self) -> Bytes {
        self.buf.clone()
    }

    #[inline]
    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    pub(super) fn left(&self) -> usize {
        self.buf.len() - self.pos
    }

    /// Everything not read yet.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        self.buf.get(self.pos..).unwrap_or_default()
    }

    #[cold]
    fn truncated(&self, what: &'static str, needed: usize) -> WireError {
        WireError::Truncated {
            what,
            offset: self.pos,
            needed,
            left: self.left(),
        }
    }

    /// Passes over `len` bytes.
    #[inline]
    pub(super) fn advance(&mut self, what: &'static str, len: usize) -> Result<(), WireError> {
        if len > self.left() {
            return Err(self.truncated(what, len));
        }
        self.pos += len;
        Ok(())
    }

    /// Reads `N` bytes by value.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        match self.rest().first_chunk::<N>() {
            Some(chunk) => {
                let chunk = *chunk;
                self.pos += N;
                Ok(chunk)
            }
            None => Err(self.truncated(what, N)),
        }
    }

    #[inline]
    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// Reads `len` bytes as a slice of the message's memory, or of [`EVERY_BYTE`] if it is a single one.
    #[inline]
    pub(super) fn shared(&mut self, what: &'static str, len: usize) -> Result<Bytes, WireError> {
        if len == 1 {
            let at = usize::from(self.byte(what)?);
            return Ok(Bytes::from_static(EVERY_BYTE.get(at..=at).unwrap_or_default()));
        }
        let from = self.pos;
        self.advance(what, len)?;
        Ok(self.buf.slice(from..self.pos))
    }

    /// Reads `len` bytes, borrowed.
    #[inline]
    pub(super) fn borrowed(&mut self, what: &'static str, len: usize) -> Result<&[u8], WireError> {
        let from = self.pos;
        self.advance(what, len)?;
        Ok(self.buf.get(from..self.pos).unwrap_or_default())
    }

    /// Reads `len` bytes as text.
    #[inline]
    pub(super) fn text(&mut self, len: usize) -> Result<String, WireError> {
        let text = std::str::from_utf8(self.borrowed("string", len)?).map(str::to_owned);
        text.map_err(|_| WireError::NotUtf8 { offset: self.pos })
    }

    /// Reads a method name of `len` bytes.
    pub(super) fn method_name(&mut self, len: usize) -> Result<Bytes, WireError> {
        if len > METHOD_NAME_BYTES_MAX {
            return Err(WireError::NameTooLong { len });
        }
        let name = self.shared("method name", len)?;
        match std::str::from_utf8(&name) {
            Ok(_) => Ok(name),
            Err(_) => Err(WireError::NotUtf8 { offset: self.pos }),
        }
    }

    /// Enters a struct or container.
    #[inline]
    pub(super) fn enter(&mut self) -> Result<(), WireError> {
        if self.depth >= MAX_DEPTH {
            return Err(WireError::TooDeep { offset: self.pos });
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves a struct or container.
    #[inline]
    pub(super) fn leave(&mut self) {
        debug_assert!(
            self.depth > 0,
            "left more structs and containers than were entered"
        );
        self.depth = self.depth.saturating_sub(1);
    }

    /// Enters a container of `len` elements that take at least `smallest` bytes each.
    #[inline]
    pub(super) fn enter_container(&mut self, len: usize, smallest: usize) -> Result<(), WireError> {
        self.enter()?;
        if len.saturating_mul(smallest) > self.left() {
            return Err(WireError::TooManyElements {
                offset: self.pos,
                count: len,
                left: self.left(),
            });
        }
        Ok(())
    }

    #[inline]
    pub(super) fn memory_left(&self) -> usize {
        self.memory_left
    }

    #[inline]
    pub(super) fn limit_memory(&mut self, bytes: usize) {
        self.memory_left = self.memory_left.min(bytes);
    }

    #[inline]
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        match self.memory_left.checked_sub(bytes) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => Err(WireError::TooMuchMemory {
                offset: self.pos,
                needed: bytes,
                left: self.memory_left,
            }),
        }
    }
}

/// Skips one value with any reader; `scalar` skips a value without anything inside.
///
/// Recursion is bounded: each level passes `enter`, which refuses at [`MAX_DEPTH`]. `fixed` is the size of
/// an element if all have the same, so that long lists of numbers are passed over in one step.
pub(super) trait Skip: super::Reader {
    /// Bytes of a container element of this type, if all have the same size.
    fn fixed(wire_type: super::WireType) -> Option<usize>;

    /// Passes over bytes.
    fn pass(&mut self, len: usize) -> Result<(), WireError>;

    /// Skips a value that holds no other value, in a field.
    fn skip_scalar(&mut self, wire_type: super::WireType) -> Result<(), WireError>;

    /// Skips `len` container elements.
    fn skip_elements(&mut self, wire_type: super::WireType, len: usize) -> Result<(), WireError> {
        if let Some(size) = Self::fixed(wire_type) {
            return self.pass(len.saturating_mul(size));
        }
        for _ in 0..len {
            self.skip_value(wire_type)?;
        }
        Ok(())
    }

    /// Skips one value.
    fn skip_value(&mut self, wire_type: super::WireType) -> Result<(), WireError> {
        match wire_type {
            super::WireType::Struct => {
                self.struct_begin()?;
                while let Some(field) = self.field_begin()? {
                    self.skip_value(field.wire_type)?;
                }
                self.struct_end();
            }
            super::WireType::List | super::WireType::Set => {
                let list = self.list_begin()?;
                self.skip_elements(list.element, list.len)?;
                self.container_end();
            }
            super::WireType::Map => {
                let map = self.map_begin()?;
                if let Some((key, value)) = map.types {
                    for _ in 0..map.len {
                        self.skip_elements(key, 1)?;
                        self.skip_elements(value, 1)?;
                    }
                }
                self.container_end();
            }
            scalar => self.skip_scalar(scalar)?,
        }
        Ok(())
    }
}
