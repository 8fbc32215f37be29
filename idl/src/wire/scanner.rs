//! Finds the end of an unframed message while its bytes arrive.
//!
//! Unframed Thrift has no length, so the only way to know that a message is complete is to walk it. Doing
//! that from the start after each received piece would be quadratic, and a reader that waits for bytes in
//! the middle would need a thread. The scanner walks with an explicit stack, stops where the bytes stop, and
//! goes on from there.
//!
//! 1. The header: a fixed part, the name, and in binary the kind and sequence id.
//! 2. The arguments struct: the innermost struct, list or map is on top of the stack, and each step
//!    handles one header or one scalar of it.
//! 3. The stack is empty: complete.
//!
//! Invariants: `pos` never moves back; a step that lacks bytes passes no more than the whole fields
//! in front of them and is tried again, which costs at most ten bytes of work; strings and runs of
//! fixed-size elements are passed over as a count. So the total work is linear in the bytes. A
//! reader can walk or refuse accepted bytes, but never run past their end.

use super::varint::{self, Varint, unzigzag};
use super::{MAX_DEPTH, METHOD_NAME_BYTES_MAX, MessageKind, Protocol, WireError, WireType};

/// Type and id of a field, in the binary protocol.
const FIELD_HEADER_BYTES: usize = 3;

/// Result of [`MessageScanner::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// The message is not complete.
    NeedMore,
    /// The message is complete.
    Complete {
        /// Length of the message. Bytes behind it belong to the next message.
        len: usize,
    },
}

/// A value that the scanner is inside of.
#[derive(Clone, Copy, Debug)]
enum Open {
    /// A struct: a field header or the stop byte comes next.
    Struct,
    /// A list or set with `left` elements to come.
    List { element: WireType, left: usize },
    /// A map with `left` keys and values to come; an even number means that a key is next.
    Map {
        key: WireType,
        value: WireType,
        left: usize,
    },
}

/// Finds the end of one unframed message. Make a new one for each message, or restart it.
#[derive(Debug)]
pub struct MessageScanner {
    protocol: Protocol,
    max_message_bytes: usize,
    /// Bytes scanned. May be ahead of the received bytes while a string is being passed over.
    pos: usize,
    header_done: bool,
    open: Vec<Open>,
}

/// A step's outcome: `None` when bytes are missing.
type Step<T> = Result<Option<T>, WireError>;

/// The value of a step that needs bytes, or leave it to be tried again.
macro_rules! arrived {
    ($step:expr) => {
        match $step {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}

impl MessageScanner {
    /// A scanner for one message of this protocol that may have at most `max_message_bytes`.
    pub fn new(protocol: Protocol, max_message_bytes: usize) -> Self {
        MessageScanner {
            protocol,
            max_message_bytes,
            pos: 0,
            header_done: false,
            open: Vec::new(),
        }
    }

    /// Begins with another message.
    pub fn restart(&mut self) {
        self.pos = 0;
        self.header_done = false;
        self.open.clear();
    }

    /// Continues scanning. `buffered` has all bytes received from the start of the message on:
    /// those of the last call and further ones. After an error the scanner is unusable.
    pub fn feed(&mut self, buffered: &[u8]) -> Result<Scan, WireError> {
        if !self.header_done {
            if self.header(buffered)?.is_none() {
                return self.need_more(buffered);
            }
            self.header_done = true;
            self.push(Open::Struct)?;
        }
        while let Some(top) = self.open.last().copied() {
            let went_on = self.pos <= buffered.len() && self.step(top, buffered)?.is_some();
            self.check_len(self.pos)?;
            if !went_on {
                return self.need_more(buffered);
            }
        }
        if self.pos > buffered.len() {
            return self.need_more(buffered);
        }
        Ok(Scan::Complete { len: self.pos })
    }

    fn need_more(&self, buffered: &[u8]) -> Result<Scan, WireError> {
        // One byte more is needed at least, so a full buffer is already too long.
        self.check_len(buffered.len() + 1)?;
        Ok(Scan::NeedMore)
    }

    fn check_len(&self, len: usize) -> Result<(), WireError> {
        if len > self.max_message_bytes {
            return Err(WireError::TooLong {
                limit: self.max_message_bytes,
            });
        }
        Ok(())
    }

    /// Bytes that the limit leaves behind `at`.
    fn room(&self, at: usize) -> usize {
        self.max_message_bytes.saturating_sub(at)
    }

    fn push(&mut self, open: Open) -> Result<(), WireError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(WireError::TooDeep { offset: self.pos });
        }
        self.open.push(open);
        Ok(())
    }

    /// The message header. Reads it whole, so it is parsed again until it has arrived; it is bounded by
    /// the length of a name.
    fn header(&mut self, bytes: &[u8]) -> Step<()> {
        let mut at = 0;
        let (code, name_len) = match self.protocol {
            Protocol::BinaryStrict => {
                let header = u32::from_be_bytes(arrived!(array(bytes, 0)));
                if header & 0xffff_0000 != 0x8001_0000 {
                    return Err(WireError::UnknownVersion { header });
                }
                at += 4;
                (
                    Some(header as u8),
                    arrived!(binary_size(bytes, &mut at, "method name")?),
                )
            }
            Protocol::BinaryOld => (None, arrived!(binary_size(bytes, &mut at, "method name")?)),
            Protocol::Compact => {
                let [id, second] = arrived!(array(bytes, 0));
                if id != 0x82 || second & 0x1f != 1 {
                    return Err(WireError::UnknownVersion {
                        header: u32::from_be_bytes([0, 0, id, second]),
                    });
                }
                at += 2;
                arrived!(compact_varint::<32>(bytes, &mut at)?);
                (
                    Some(second >> 5),
                    arrived!(compact_size(bytes, &mut at, "method name")?),
                )
            }
        };
        if name_len > METHOD_NAME_BYTES_MAX {
            return Err(WireError::NameTooLong { len: name_len });
        }
        at += name_len;
        let code = if let Some(code) = code {
            code
        } else {
            let [code] = arrived!(array(bytes, at));
            at += 1;
            code
        };
        if MessageKind::from_code(code).is_none() {
            return Err(WireError::UnknownKind { code });
        }
        if self.protocol != Protocol::Compact {
            at += 4;
        }
        self.pos = at;
        Ok(Some(()))
    }

    /// One step inside the innermost open value.
    fn step(&mut self, top: Open, bytes: &[u8]) -> Step<()> {
        match top {
            Open::Struct => self.field(bytes),
            Open::List { left: 0, .. } | Open::Map { left: 0, .. } => {
                self.open.pop();
                Ok(Some(()))
            }
            Open::List { element, left } => {
                // All at once if the elements have one size, else one.
                let (passed, size) = match self.fixed(element) {
                    Some(size) => (left, Some(left.saturating_mul(size))),
                    None => (1, None),
                };
                self.element(
                    bytes,
                    element,
                    size,
                    Open::List {
                        element,
                        left: left - passed,
                    },
                )
            }
            Open::Map { key, value, left } => {
                let next = if left % 2 == 0 { key } else { value };
                self.element(
                    bytes,
                    next,
                    self.fixed(next),
                    Open::Map {
                        key,
                        value,
                        left: left - 1,
                    },
                )
            }
        }
    }

    fn fixed(&self, wire_type: WireType) -> Option<usize> {
        match self.protocol {
            Protocol::Compact => wire_type.fixed_compact(),
            _ => wire_type.fixed_binary(),
        }
    }

    /// An element of the container on top, which becomes `rest`. Order matters: the value may push its own
    /// entry, and nothing may change when its bytes are missing.
    fn element(&mut self, bytes: &[u8], wire_type: WireType, size: Option<usize>, rest: Open) -> Step<()> {
        let index = self.open.len();
        match size {
            Some(size) => self.pass(size)?,
            None => arrived!(self.value(bytes, self.pos, wire_type)?),
        }
        if let Some(container) = index.checked_sub(1).and_then(|index| self.open.get_mut(index)) {
            *container = rest;
        }
        Ok(Some(()))
    }

    fn pass(&mut self, len: usize) -> Result<(), WireError> {
        self.pos = self.pos.saturating_add(len);
        self.check_len(self.pos)
    }

    /// The end of the fields from here on that have arrived whole and hold no other values, in the
    /// binary protocol and within the limit: most of most messages. [`Self::field`] handles the
    /// rest.
    fn plain_fields(&self, bytes: &[u8]) -> usize {
        let end = bytes.len().min(self.max_message_bytes);
        let mut at = self.pos;
        while let Some(code) = bytes.get(at) {
            let value = at + FIELD_HEADER_BYTES;
            let next = match WireType::from_binary_code(*code) {
                Some(WireType::Binary) => match array(bytes, value).map(i32::from_be_bytes) {
                    Some(size @ 0..) => value + 4 + size as usize,
                    _ => break,
                },
                Some(other) => match other.fixed_binary() {
                    Some(size) => value + size,
                    None => break,
                },
                None => break,
            };
            if next > end {
                break;
            }
            at = next;
        }
        at
    }

    /// A field header with the value behind it, or the stop byte.
    fn field(&mut self, bytes: &[u8]) -> Step<()> {
        if self.protocol != Protocol::Compact {
            self.pos = self.plain_fields(bytes);
        }
        let [header] = arrived!(array(bytes, self.pos));
        let mut at = self.pos + 1;
        if header == 0 {
            self.pos = at;
            self.open.pop();
            return Ok(Some(()));
        }
        let unknown = |code| WireError::UnknownType { offset: at - 1, code };
        if self.protocol == Protocol::Compact {
            let wire_type =
                WireType::from_compact_code(header & 0x0f).ok_or_else(|| unknown(header & 0x0f))?;
            if header >> 4 == 0 {
                let id = arrived!(compact_varint::<32>(bytes, &mut at)?);
                if i16::try_from(unzigzag(id)).is_err() {
                    return Err(WireError::VarintTooLong {
                        offset: self.pos + 1,
                        bits: 16,
                    });
                }
            }
            if wire_type == WireType::Bool {
                self.pos = at;
                return Ok(Some(()));
            }
            return self.value(bytes, at, wire_type);
        }
        let wire_type = WireType::from_binary_code(header).ok_or_else(|| unknown(header))?;
        self.value(bytes, self.pos + FIELD_HEADER_BYTES, wire_type)
    }

    /// A value that starts at `at`: passes over it, or over its header when there are values inside.
    fn value(&mut self, bytes: &[u8], mut at: usize, wire_type: WireType) -> Step<()> {
        let compact = self.protocol == Protocol::Compact;
        let inside = match wire_type {
            WireType::Struct => Some(Open::Struct),
            WireType::List | WireType::Set => {
                let (element, len) = arrived!(self.list_header(bytes, &mut at)?);
                Some(Open::List { element, left: len })
            }
            WireType::Map => {
                let (types, len) = arrived!(self.map_header(bytes, &mut at)?);
                let (key, value) = types.unwrap_or((WireType::Bool, WireType::Bool));
                Some(Open::Map {
                    key,
                    value,
                    left: len.saturating_mul(2),
                })
            }
            WireType::Binary => {
                let len = if compact {
                    arrived!(compact_size(bytes, &mut at, "binary")?)
                } else {
                    arrived!(binary_size(bytes, &mut at, "binary")?)
                };
                at = at.saturating_add(len);
                None
            }
            WireType::I16 | WireType::I32 if compact => {
                arrived!(compact_varint::<32>(bytes, &mut at)?);
                None
            }
            WireType::I64 if compact => {
                arrived!(compact_varint::<64>(bytes, &mut at)?);
                None
            }
            fixed => {
                at += self.fixed(fixed).unwrap_or_default();
                None
            }
        };
        self.check_len(at)?;
        if let Some(open) = inside {
            self.push(open)?;
        }
        self.pos = at;
        Ok(Some(()))
    }

    fn list_header(&self, bytes: &[u8], at: &mut usize) -> Step<(WireType, usize)> {
        let [header] = arrived!(array(bytes, *at));
        let offset = *at;
        *at += 1;
        let (element, len, smallest) = if self.protocol == Protocol::Compact {
            let code = header & 0x0f;
            let element = WireType::from_compact_code(code).ok_or(WireError::UnknownType { offset, code })?;
            let len = match header >> 4 {
                15 => arrived!(compact_size(bytes, at, "list")?),
                short => usize::from(short),
            };
            (element, len, element.smallest_compact())
        } else {
            let element =
                WireType::from_binary_code(header).ok_or(WireError::UnknownType { offset, code: header })?;
            (
                element,
                arrived!(binary_size(bytes, at, "list")?),
                element.smallest_binary(),
            )
        };
        self.check_count(*at, len, smallest)?;
        Ok(Some((element, len)))
    }

    fn map_header(&self, bytes: &[u8], at: &mut usize) -> Step<(Option<(WireType, WireType)>, usize)> {
        let offset = *at;
        let unknown = |code| WireError::UnknownType { offset, code };
        let (key, value, len);
        if self.protocol == Protocol::Compact {
            len = arrived!(compact_size(bytes, at, "map")?);
            if len == 0 {
                return Ok(Some((None, 0)));
            }
            let [header] = arrived!(array(bytes, *at));
            *at += 1;
            key = WireType::from_compact_code(header >> 4).ok_or_else(|| unknown(header >> 4))?;
            value = WireType::from_compact_code(header & 0x0f).ok_or_else(|| unknown(header & 0x0f))?;
            self.check_count(*at, len, key.smallest_compact() + value.smallest_compact())?;
        } else {
            let [key_code, value_code] = arrived!(array(bytes, *at));
            *at += 2;
            len = arrived!(binary_size(bytes, at, "map")?);
            if len == 0 {
                return Ok(Some((None, 0)));
            }
            key = WireType::from_binary_code(key_code).ok_or_else(|| unknown(key_code))?;
            value = WireType::from_binary_code(value_code).ok_or_else(|| unknown(value_code))?;
            self.check_count(*at, len, key.smallest_binary() + value.smallest_binary())?;
        }
        Ok(Some((Some((key, value)), len)))
    }

    fn check_count(&self, at: usize, count: usize, smallest: usize) -> Result<(), WireError> {
        let left = self.room(at);
        if count.saturating_mul(smallest) > left {
            return Err(WireError::TooManyElements {
                offset: at,
                count,
                left,
            });
        }
        Ok(())
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..).and_then(<[u8]>::first_chunk::<N>).copied()
}

fn binary_size(bytes: &[u8], at: &mut usize, what: &'static str) -> Step<usize> {
    let offset = *at;
    let size = i32::from_be_bytes(arrived!(array(bytes, offset)));
    *at += 4;
    usize::try_from(size)
        .map(Some)
        .map_err(|_| WireError::NegativeSize { what, offset, size })
}

fn compact_varint<const BITS: u32>(bytes: &[u8], at: &mut usize) -> Step<u64> {
    match varint::parse::<BITS>(bytes.get(*at..).unwrap_or_default()) {
        Varint::Value(value, len) => {
            *at += len;
            Ok(Some(value))
        }
        Varint::Incomplete => Ok(None),
        Varint::TooLong => Err(WireError::VarintTooLong {
            offset: *at,
            bits: BITS as u8,
        }),
    }
}

fn compact_size(bytes: &[u8], at: &mut usize, what: &'static str) -> Step<usize> {
    let offset = *at;
    let size = arrived!(compact_varint::<32>(bytes, at)?) as u32 as i32;
    usize::try_from(size)
        .map(Some)
        .map_err(|_| WireError::NegativeSize { what, offset, size })
}
