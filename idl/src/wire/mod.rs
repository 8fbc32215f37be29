//! Thrift messages as bytes, without I/O.
//!
//! ```text
//! binary, strict:  80 01 00 kind | name length i32 | name | sequence id i32 | struct
//! binary, old:     name length i32 | name | kind i8 | sequence id i32 | struct
//! compact:         82 | kind << 5 | 1 | sequence id varint | name length varint | name | struct
//! framed:          length i32, then one of the three
//! ```
//!
//! 1. [`detect`] looks at the first bytes of a connection and names the protocol and the framing.
//! 2. Framed input announces its length. For unframed input [`MessageScanner`] finds the end while the
//!    bytes arrive.
//! 3. A [`Reader`] walks one complete message. [`Bytes`] that it returns are slices of the message,
//!    so a kept slice keeps the whole message alive: copy bytes that outlive the call.
//! 4. A [`Writer`] appends to a buffer and cannot fail.
//!
//! Limits that hold for everything that comes in: nesting [`MAX_DEPTH`], counted over structs and
//! containers, known or skipped; a container's count times its smallest element fits in the bytes left;
//! at most [`RESERVE_BYTES_MAX`] of elements are reserved ahead; a string fits in the bytes left; a varint
//! has at most ten bytes; decoded containers stay within a memory budget (see [`Reader::charge`]).

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod binary;
mod compact;
mod detect;
mod error;
mod frame;
mod input;
mod scanner;
mod varint;

use bytes::Bytes;

pub use binary::{BinaryReader, BinaryWriter};
pub use compact::{CompactReader, CompactWriter};
pub use detect::{Detected, Protocol, detect};
pub use error::WireError;
pub use frame::{FrameError, begin_frame, end_frame};
pub use scanner::{MessageScanner, Scan};

/// Deepest nesting of structs and containers, the arguments struct included. Apache Thrift's
/// libraries have this limit, too.
pub const MAX_DEPTH: usize = 64;

/// Most memory that is reserved on the word of a container header, in bytes. Longer containers grow as their
/// elements are really there.
pub const RESERVE_BYTES_MAX: usize = 16 << 10;

/// Longest method name in bytes. HBase's longest has 31.
pub const METHOD_NAME_BYTES_MAX: usize = 256;

/// Memory that decoded containers may take whatever the size of the message, in bytes.
pub const DECODED_BYTES_BASE: usize = 64 << 20;

/// Memory that decoded containers may take on top for each byte of the message, in bytes.
pub const DECODED_BYTES_PER_MESSAGE_BYTE: usize = 2;

/// The type tag of a value. The codes are those of the binary protocol; compact has codes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WireType {
    /// No value: the type of a method that returns nothing. Never on the wire.
    Void = 1,
    /// A boolean.
    Bool = 2,
    /// A signed byte.
    I8 = 3,
    /// An IEEE 754 double.
    Double = 4,
    /// A signed 16-bit integer.
    I16 = 6,
    /// A signed 32-bit integer, also every enum.
    I32 = 8,
    /// A signed 64-bit integer.
    I64 = 10,
    /// Length and bytes; UTF-8 where the IDL says `string`.
    Binary = 11,
    /// A struct, union or exception.
    Struct = 12,
    /// Pairs of key and value.
    Map = 13,
    /// A set, written like a list.
    Set = 14,
    /// A list.
    List = 15,
    /// Sixteen bytes. No interface here uses it; it is known so that it can be skipped.
    Uuid = 16,
}

impl WireType {
    /// The type with this code in the binary protocol, unless there is none.
    #[inline]
    pub const fn from_binary_code(code: u8) -> Option<WireType> {
        Some(match code {
            2 => WireType::Bool,
            3 => WireType::I8,
            4 => WireType::Double,
            6 => WireType::I16,
            8 => WireType::I32,
            10 => WireType::I64,
            11 => WireType::Binary,
            12 => WireType::Struct,
            13 => WireType::Map,
            14 => WireType::Set,
            15 => WireType::List,
            16 => WireType::Uuid,
            _ => return None,
        })
    }

    /// The type with this code in a compact field or container header. Booleans have two codes: in a
    /// field they are the values true (1) and false (2), in a container either may appear.
    #[inline]
    pub const fn from_compact_code(code: u8) -> Option<WireType> {
        Some(match code {
            1 | 2 => WireType::Bool,
            3 => WireType::I8,
            4 => WireType::I16,
            5 => WireType::I32,
            6 => WireType::I64,
            7 => WireType::Double,
            8 => WireType::Binary,
            9 => WireType::List,
            10 => WireType::Set,
            11 => WireType::Map,
            12 => WireType::Struct,
            13 => WireType::Uuid,
            _ => return None,
        })
    }

    /// The code of this type in a compact header. For a boolean that is the code that containers use.
    #[inline]
    pub const fn compact_code(self) -> u8 {
        match self {
            WireType::Void => 0,
            WireType::Bool => 1,
            WireType::I8 => 3,
            WireType::I16 => 4,
            WireType::I32 => 5,
            WireType::I64 => 6,
            WireType::Double => 7,
            WireType::Binary => 8,
            WireType::List => 9,
            WireType::Set => 10,
            WireType::Map => 11,
            WireType::Struct => 12,
            WireType::Uuid => 13,
        }
    }

    /// Bytes of the smallest value of this type in the binary protocol.
    #[inline]
    pub const fn smallest_binary(self) -> usize {
        match self {
            WireType::Void | WireType::Bool | WireType::I8 | WireType::Struct => 1,
            WireType::I16 => 2,
            WireType::I32 | WireType::Binary => 4,
            WireType::List | WireType::Set => 5,
            WireType::Map => 6,
            WireType::Double | WireType::I64 => 8,
            WireType::Uuid => 16,
        }
    }

    /// Bytes of the smallest value of this type in the compact protocol.
    #[inline]
    pub const fn smallest_compact(self) -> usize {
        match self {
            WireType::Double => 8,
            WireType::Uuid => 16,
            _ => 1,
        }
    }

    /// Bytes of every value of this type in the binary protocol, if they all have the same size.
    #[inline]
    pub const fn fixed_binary(self) -> Option<usize> {
        match self {
            WireType::Void
            | WireType::Binary
            | WireType::Struct
            | WireType::Map
            | WireType::Set
            | WireType::List => None,
            fixed => Some(fixed.smallest_binary()),
        }
    }

    /// Bytes of every value of this type in the compact protocol, if they all have the same size. For a
    /// boolean that is the size in a container: in a field its header is the value.
    #[inline]
    pub const fn fixed_compact(self) -> Option<usize> {
        match self {
            WireType::Bool | WireType::I8 => Some(1),
            WireType::Double => Some(8),
            WireType::Uuid => Some(16),
            _ => None,
        }
    }
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// A request that wants a reply.
    Call = 1,
    /// A result, with success or a declared exception.
    Reply = 2,
    /// A failure outside the interface: the body is a `TApplicationException`.
    Exception = 3,
    /// A request without a reply. No method here is one.
    Oneway = 4,
}

impl MessageKind {
    /// The kind with this code, unless there is none.
    #[inline]
    pub const fn from_code(code: u8) -> Option<MessageKind> {
        Some(match code {
            1 => MessageKind::Call,
            2 => MessageKind::Reply,
            3 => MessageKind::Exception,
            4 => MessageKind::Oneway,
            _ => return None,
        })
    }
}

/// The header of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// The method name as received. [`MessageHeader::name`] has it as text.
    pub name_bytes: Bytes,
    /// Kind of the message.
    pub kind: MessageKind,
    /// Chosen by the caller, sent back in the reply.
    pub seqid: i32,
}

impl MessageHeader {
    /// The method name. Readers have checked that it is UTF-8.
    #[inline]
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.name_bytes).unwrap_or_default()
    }
}

/// The header of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldHeader {
    /// The field's number in its struct.
    pub id: i16,
    /// The type of the value that follows.
    pub wire_type: WireType,
}

/// The header of a list or set. An empty one may announce any element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListHeader {
    /// The type of every element.
    pub element: WireType,
    /// The number of elements that follow.
    pub len: usize,
}

/// The header of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapHeader {
    /// The types of every key and every value. An empty compact map does not say.
    pub types: Option<(WireType, WireType)>,
    /// The number of pairs that follow.
    pub len: usize,
}

/// Walks one complete message. After an error the position is undefined: drop the reader.
///
/// The caller pairs `struct_begin` with `struct_end` and each container's begin with
/// [`Reader::container_end`], so that depth is counted right, and reads or skips every value that a header
/// announces.
pub trait Reader {
    /// Reads the message header.
    fn message_begin(&mut self) -> Result<MessageHeader, WireError>;

    /// Enters a struct.
    fn struct_begin(&mut self) -> Result<(), WireError>;

    /// Leaves a struct, after [`Reader::field_begin`] returned `None`.
    fn struct_end(&mut self);

    /// Reads the next field header; `None` is the end of the struct.
    fn field_begin(&mut self) -> Result<Option<FieldHeader>, WireError>;

    /// Enters a list.
    fn list_begin(&mut self) -> Result<ListHeader, WireError>;

    /// Enters a set. Sets are written like lists.
    #[inline]
    fn set_begin(&mut self) -> Result<ListHeader, WireError> {
        self.list_begin()
    }

    /// Enters a map.
    fn map_begin(&mut self) -> Result<MapHeader, WireError>;

    /// Leaves a list, set or map.
    fn container_end(&mut self);

    /// Reads a boolean.
    fn bool(&mut self) -> Result<bool, WireError>;

    /// Reads a signed byte.
    fn i8(&mut self) -> Result<i8, WireError>;

    /// Reads a 16-bit integer.
    fn i16(&mut self) -> Result<i16, WireError>;

    /// Reads a 32-bit integer.
    fn i32(&mut self) -> Result<i32, WireError>;

    /// Reads a 64-bit integer.
    fn i64(&mut self) -> Result<i64, WireError>;

    /// Reads a double.
    fn double(&mut self) -> Result<f64, WireError>;

    /// Reads a binary as a slice that shares the message's memory.
    fn binary(&mut self) -> Result<Bytes, WireError>;

    /// Reads a binary as a borrowed slice, for callers that copy or compare at once. Saves the reference
    /// count of [`Reader::binary`].
    fn binary_slice(&mut self) -> Result<&[u8], WireError>;

    /// Reads a string and checks that it is UTF-8.
    fn string(&mut self) -> Result<String, WireError>;

    /// Skips one value of the given type, whatever is inside.
    fn skip(&mut self, wire_type: WireType) -> Result<(), WireError>;

    /// Takes `bytes` from the memory that this message may decode to. Containers call it before they grow:
    /// an element of one byte on the wire can be a struct of some hundred bytes in memory.
    fn charge(&mut self, bytes: usize) -> Result<(), WireError>;

    /// Bytes of memory that decoding the rest of this message may take. A walk through the message
    /// lowers it by the memory that decoding the message would take.
    fn memory_left(&self) -> usize;

    /// Lowers [`Reader::memory_left`] to at most `bytes`.
    fn limit_memory(&mut self, bytes: usize);

    /// The whole message, of which [`Reader::position`] is an offset.
    fn message(&self) -> Bytes;

    /// Bytes read so far.
    fn position(&self) -> usize;

    /// Bytes not yet read.
    fn remaining(&self) -> usize;
}

/// Appends a message to a buffer. Writing cannot fail; sizes beyond `i32` cannot be expressed in Thrift,
/// and the server's response limits are far below.
///
/// The primitives are public because the server writes results straight from its cells: the caller
/// must announce exactly the values that it writes.
pub trait Writer {
    /// Writes a message header; binary writes the strict form.
    fn message_begin(&mut self, name: &str, kind: MessageKind, seqid: i32);

    /// Enters a struct.
    fn struct_begin(&mut self);

    /// Writes the stop byte and leaves the struct.
    fn struct_end(&mut self);

    /// Writes a field header. The value follows.
    fn field_begin(&mut self, id: i16, wire_type: WireType);

    /// Writes a list header. `len` elements follow.
    fn list_begin(&mut self, element: WireType, len: usize);

    /// Writes a set header. Sets are written like lists.
    #[inline]
    fn set_begin(&mut self, element: WireType, len: usize) {
        self.list_begin(element, len);
    }

    /// Writes a list header whose count is not known yet. [`Writer::list_close`] fills it in.
    fn list_open(&mut self, element: WireType) -> OpenList;

    /// Fills in the count of a list that [`Writer::list_open`] began.
    fn list_close(&mut self, list: OpenList, len: usize);

    /// Writes a map header. `len` pairs follow.
    fn map_begin(&mut self, key: WireType, value: WireType, len: usize);

    /// Writes a boolean.
    fn bool(&mut self, value: bool);

    /// Writes a signed byte.
    fn i8(&mut self, value: i8);

    /// Writes a 16-bit integer.
    fn i16(&mut self, value: i16);

    /// Writes a 32-bit integer.
    fn i32(&mut self, value: i32);

    /// Writes a 64-bit integer.
    fn i64(&mut self, value: i64);

    /// Writes a double.
    fn double(&mut self, value: f64);

    /// Writes a binary.
    fn binary(&mut self, value: &[u8]);

    /// Writes a string.
    #[inline]
    fn string(&mut self, value: &str) {
        self.binary(value.as_bytes());
    }

    /// Writes a whole binary field. One call, so that the header can be one store.
    #[inline]
    fn binary_field(&mut self, id: i16, value: &[u8]) {
        self.field_begin(id, WireType::Binary);
        self.binary(value);
    }

    /// Writes a whole 64-bit field.
    #[inline]
    fn i64_field(&mut self, id: i16, value: i64) {
        self.field_begin(id, WireType::I64);
        self.i64(value);
    }

    /// Writes a whole 32-bit field.
    #[inline]
    fn i32_field(&mut self, id: i16, value: i32) {
        self.field_begin(id, WireType::I32);
        self.i32(value);
    }

    /// Writes a whole byte field.
    #[inline]
    fn i8_field(&mut self, id: i16, value: i8) {
        self.field_begin(id, WireType::I8);
        self.i8(value);
    }

    /// Writes a whole boolean field.
    #[inline]
    fn bool_field(&mut self, id: i16, value: bool) {
        self.field_begin(id, WireType::Bool);
        self.bool(value);
    }

    /// Makes room for `bytes` more, so that many small writes do not grow the buffer step by step.
    fn reserve(&mut self, bytes: usize);

    /// Length of the buffer, including earlier content. For limits on response sizes.
    fn buffer_len(&self) -> usize;
}

/// A list whose count is still open. Must be handed to [`Writer::list_close`].
#[derive(Debug)]
#[must_use = "a list that is never closed has a wrong count"]
pub struct OpenList {
    /// Where the count stands in the buffer.
    at: usize,
}

#[cfg(test)]
mod tests;
