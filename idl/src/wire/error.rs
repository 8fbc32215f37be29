//! Why bytes are not a message. Each text names the error, its place, and the limit.

use super::{MAX_DEPTH, METHOD_NAME_BYTES_MAX};

/// Why bytes could not be decoded. Offsets count from the first byte of the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message ends inside a value.
    #[error("{what} at byte {offset} needs {needed} bytes but the message has {left} left")]
    Truncated {
        /// The value being read.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// Structs and containers are nested too deep.
    #[error("nesting at byte {offset} is deeper than the limit of {MAX_DEPTH}")]
    TooDeep {
        /// Where the innermost value starts.
        offset: usize,
    },
    /// A length or count is negative.
    #[error("{what} at byte {offset} has the negative size {size}")]
    NegativeSize {
        /// The value with the size.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// The size announced.
        size: i32,
    },
    /// A container announces more elements than the bytes left can hold.
    #[error("container at byte {offset} announces {count} elements but only {left} bytes are left")]
    TooManyElements {
        /// Where the elements start.
        offset: usize,
        /// Elements announced.
        count: usize,
        /// Bytes left in the message or under its limit.
        left: usize,
    },
    /// The decoded values would take too much memory.
    #[error("elements at byte {offset} would take {needed} bytes of memory but the limit leaves {left}")]
    TooMuchMemory {
        /// Where the elements start.
        offset: usize,
        /// Memory they need.
        needed: usize,
        /// Memory the limit leaves.
        left: usize,
    },
    /// The message is longer than allowed.
    #[error("message is longer than the limit of {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The method name is longer than any method's.
    #[error("method name has {len} bytes, more than the limit of {METHOD_NAME_BYTES_MAX}")]
    NameTooLong {
        /// Bytes announced.
        len: usize,
    },
    /// A type code that the protocol does not have.
    #[error("unknown type code {code} at byte {offset}")]
    UnknownType {
        /// Where it stands.
        offset: usize,
        /// The code.
        code: u8,
    },
    /// A container holds something else than its field in the interface.
    #[error("container before byte {offset} has elements of type {found:?} instead of {expected:?}")]
    WrongElementType {
        /// Where the elements start.
        offset: usize,
        /// The interface's type.
        expected: super::WireType,
        /// The header's type.
        found: super::WireType,
    },
    /// The first bytes are not a message header of this protocol.
    #[error("message header {header:#010x} has an unknown version")]
    UnknownVersion {
        /// The first bytes, as a number.
        header: u32,
    },
    /// The kind of message is none of call, reply, exception, oneway.
    #[error("unknown message kind {code}")]
    UnknownKind {
        /// The code.
        code: u8,
    },
    /// A varint has too many bytes or too large a value.
    #[error("varint at byte {offset} does not fit in {bits} bits")]
    VarintTooLong {
        /// Where it starts.
        offset: usize,
        /// The width of the integer it stands for.
        bits: u8,
    },
    /// A compact field number runs over 32767.
    #[error("field number at byte {offset} is out of range")]
    FieldIdOutOfRange {
        /// Where the field header ends.
        offset: usize,
    },
    /// A compact boolean is neither true nor false.
    #[error("boolean at byte {offset} has the value {value}")]
    NotABool {
        /// Where it stands.
        offset: usize,
        /// The byte.
        value: u8,
    },
    /// A string is not UTF-8.
    #[error("string that ends at byte {offset} is not UTF-8")]
    NotUtf8 {
        /// Where it ends.
        offset: usize,
    },
    /// A required field did not arrive. The text begins as libthrift's does, which clients have seen.
    #[error("Required field '{field}' was not present! Struct: {in_struct}")]
    MissingField {
        /// The struct, by its name in the IDL.
        in_struct: &'static str,
        /// The field, by its name in the IDL.
        field: &'static str,
    },
    /// A union has no member that is known here, or more than one.
    #[error("union {union} needs exactly one known member but has {found}")]
    NotOneMember {
        /// The union, by its name in the IDL.
        union: &'static str,
        /// Known members that arrived.
        found: usize,
    },
    /// A reply carries neither a result nor a declared exception.
    #[error("{method} failed: unknown result")]
    MissingResult {
        /// The method.
        method: &'static str,
    },
}
