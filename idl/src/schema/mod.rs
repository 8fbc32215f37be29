//! Types on the wire, as traits for the codecs and as data for tests and tools.
//!
//! [`Encode`] and [`Decode`] are implemented here for Thrift's own types and by the macros for everything
//! the interfaces declare. The descriptors repeat the same declaration as constants, so that a test can
//! compare it with the `.thrift` files and drive another implementation of Thrift with it.
//!
//! Absent, empty and default are three things in HBase's interfaces, so they stay apart: a field that may be
//! absent is an `Option`, unless the IDL gives a default, which then stands for absence.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

#[cfg(feature = "recode")]
use crate::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter, Protocol};
use crate::wire::{RESERVE_BYTES_MAX, Reader, WireError, WireType, Writer};

mod check;

pub use check::check;

/// Thrift's names for its types, so that declarations read like the IDL.
#[allow(non_camel_case_types, missing_docs)]
pub(crate) mod names {
    pub(crate) type binary = bytes::Bytes;
    pub(crate) type byte = i8;
    pub(crate) type string = String;
    pub(crate) type void = ();
    pub(crate) type list<T> = Vec<T>;
    pub(crate) type set<T> = std::collections::BTreeSet<T>;
    pub(crate) type map<K, V> = std::collections::BTreeMap<K, V>;
}

/// A type that has a place on the wire.
pub trait WireTyped {
    /// The tag written before a value.
    const WIRE_TYPE: WireType;
    /// The type as data.
    const TYPE: TypeDescriptor;
}

/// A value that can be written.
pub trait Encode: WireTyped {
    /// Writes the value.
    fn encode<W: Writer>(&self, writer: &mut W);

    /// Writes the value as a field, header first.
    #[inline]
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, Self::WIRE_TYPE);
        self.encode(writer);
    }
}

/// A value that can be read.
pub trait Decode: WireTyped + Sized {
    /// Reads a value whose header said [`WireTyped::WIRE_TYPE`].
    fn decode<R: Reader>(reader: &mut R) -> Result<Self, WireError>;

    /// The value that a result has when nothing was sent: none, except for `void`.
    fn if_absent() -> Option<Self> {
        None
    }
}

/// A type, as data.
#[derive(Clone, Copy, Debug)]
pub enum TypeDescriptor {
    /// Nothing: the result of a method that only succeeds or fails.
    Void,
    /// `bool`
    Bool,
    /// `byte` or `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `binary`
    Binary,
    /// `string`
    String,
    /// `list<element>`
    List(&'static TypeDescriptor),
    /// `set<element>`
    Set(&'static TypeDescriptor),
    /// `map<key, value>`
    Map(&'static TypeDescriptor, &'static TypeDescriptor),
    /// A struct, union or exception.
    Struct(&'static StructDescriptor),
    /// An enum.
    Enum(&'static EnumDescriptor),
}

impl TypeDescriptor {
    /// The tag written before a value of this type.
    pub const fn wire_type(&self) -> WireType {
        match self {
            TypeDescriptor::Void => WireType::Void,
            TypeDescriptor::Bool => WireType::Bool,
            TypeDescriptor::I8 => WireType::I8,
            TypeDescriptor::I16 => WireType::I16,
            TypeDescriptor::I32 | TypeDescriptor::Enum(_) => WireType::I32,
            TypeDescriptor::I64 => WireType::I64,
            TypeDescriptor::Binary | TypeDescriptor::String => WireType::Binary,
            TypeDescriptor::List(_) => WireType::List,
            TypeDescriptor::Set(_) => WireType::Set,
            TypeDescriptor::Map(..) => WireType::Map,
            TypeDescriptor::Struct(_) => WireType::Struct,
        }
    }

    /// Bytes that a value of this type takes in memory, without its heap memory.
    pub const fn memory(&self) -> usize {
        match self {
            TypeDescriptor::Void => 0,
            TypeDescriptor::Bool | TypeDescriptor::I8 => 1,
            TypeDescriptor::I16 => 2,
            TypeDescriptor::I32 | TypeDescriptor::Enum(_) => 4,
            TypeDescriptor::I64 => 8,
            TypeDescriptor::Binary => size_of::<Bytes>(),
            TypeDescriptor::String => size_of::<String>(),
            TypeDescriptor::List(_) => size_of::<Vec<u8>>(),
            TypeDescriptor::Set(_) => size_of::<BTreeSet<u8>>(),
            TypeDescriptor::Map(..) => size_of::<BTreeMap<u8, u8>>(),
            TypeDescriptor::Struct(of) => of.memory,
        }
    }
}

/// The type as the IDL writes it, for example `map<binary,TTimeRange>`.
impl std::fmt::Display for TypeDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TypeDescriptor::Void => f.write_str("void"),
            TypeDescriptor::Bool => f.write_str("bool"),
            TypeDescriptor::I8 => f.write_str("byte"),
            TypeDescriptor::I16 => f.write_str("i16"),
            TypeDescriptor::I32 => f.write_str("i32"),
            TypeDescriptor::I64 => f.write_str("i64"),
            TypeDescriptor::Binary => f.write_str("binary"),
            TypeDescriptor::String => f.write_str("string"),
            TypeDescriptor::List(element) => write!(f, "list<{element}>"),
            TypeDescriptor::Set(element) => write!(f, "set<{element}>"),
            TypeDescriptor::Map(key, value) => write!(f, "map<{key},{value}>"),
            TypeDescriptor::Struct(of) => f.write_str(of.name),
            TypeDescriptor::Enum(of) => f.write_str(of.name),
        }
    }
}

/// Whether a field has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requiredness {
    /// A message without it is refused.
    Required,
    /// May be absent.
    Optional,
    /// No keyword in the IDL: writers that know a value write it, readers tolerate its absence.
    Default,
}

/// Struct, union or exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructKind {
    /// Fields.
    Struct,
    /// Exactly one of the fields.
    Union,
    /// A struct that methods may throw.
    Exception,
}

/// One field of a struct, or one argument of a method.
#[derive(Clone, Copy, Debug)]
pub struct FieldDescriptor {
    /// The number on the wire.
    pub id: i16,
    /// The name in the IDL.
    pub name: &'static str,
    /// The type.
    pub ty: TypeDescriptor,
    /// Whether it has to be there.
    pub requiredness: Requiredness,
    /// The default in the IDL, as source text.
    pub default: Option<&'static str>,
}

/// Decodes a value in one protocol and encodes it again: for tests and for tools that know a type only
/// by its descriptor.
#[cfg(feature = "recode")]
pub type Recode = fn(Protocol, Bytes) -> Result<Vec<u8>, WireError>;

/// A struct, union or exception, or the arguments of a method.
#[derive(Clone, Copy, Debug)]
pub struct StructDescriptor {
    /// The name in the IDL; for arguments the Rust name.
    pub name: &'static str,
    /// Kind of the struct.
    pub kind: StructKind,
    /// In the order of the IDL.
    pub fields: &'static [FieldDescriptor],
    /// Bytes that the Rust type takes in memory, without its heap memory.
    pub memory: usize,
    /// Decodes and encodes the Rust type. With the feature `recode` only: a server has no use for it, and it
    /// doubles the code of each type.
    #[cfg(feature = "recode")]
    pub recode: Recode,
}

/// An enum. Codes that it does not list can arrive and are kept.
#[derive(Clone, Copy, Debug)]
pub struct EnumDescriptor {
    /// The name in the IDL.
    pub name: &'static str,
    /// Names and codes in the order of the IDL.
    pub values: &'static [(&'static str, i32)],
}

/// See [`Recode`].
#[cfg(feature = "recode")]
pub(crate) fn recode<T: Encode + Decode>(protocol: Protocol, bytes: Bytes) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::new();
    if protocol == Protocol::Compact {
        T::decode(&mut CompactReader::new(bytes))?.encode(&mut CompactWriter::new(&mut out));
    } else {
        T::decode(&mut BinaryReader::new(bytes))?.encode(&mut BinaryWriter::new(&mut out));
    }
    Ok(out)
}

macro_rules! scalar {
    ($($ty:ty: $descriptor:ident, $wire:ident, $method:ident $(, $field:ident)?;)+) => { $(
        impl WireTyped for $ty {
            const WIRE_TYPE: WireType = WireType::$wire;
            const TYPE: TypeDescriptor = TypeDescriptor::$descriptor;
        }

        impl Encode for $ty {
            #[inline]
            fn encode<W: Writer>(&self, writer: &mut W) {
                writer.$method(*self);
            }

            $(#[inline]
            fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
                writer.$field(id, *self);
            })?
        }

        impl Decode for $ty {
            #[inline]
            fn decode<R: Reader>(reader: &mut R) -> Result<Self, WireError> {
                reader.$method()
            }
        }
    )+ };
}

scalar! {
    bool: Bool, Bool, bool, bool_field;
    i8: I8, I8, i8, i8_field;
    i16: I16, I16, i16;
    i32: I32, I32, i32, i32_field;
    i64: I64, I64, i64, i64_field;
}

impl WireTyped for () {
    const WIRE_TYPE: WireType = WireType::Void;
    const TYPE: TypeDescriptor = TypeDescriptor::Void;
}

/// A method that returns nothing writes no field for it.
impl Encode for () {
    fn encode<W: Writer>(&self, _writer: &mut W) {}
    fn encode_field<W: Writer>(&self, _id: i16, _writer: &mut W) {}
}

impl Decode for () {
    fn decode<R: Reader>(_reader: &mut R) -> Result<Self, WireError> {
        Ok(())
    }

    fn if_absent() -> Option<Self> {
        Some(())
    }
}

impl WireTyped for Bytes {
    const WIRE_TYPE: WireType = WireType::Binary;
    const TYPE: TypeDescriptor = TypeDescriptor::Binary;
}

impl Encode for Bytes {
    #[inline]
    fn encode<W: Writer>(&self, writer: &mut W) {
        writer.binary(self);
    }

    #[inline]
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.binary_field(id, self);
    }
}

impl Decode for Bytes {
    #[inline]
    fn decode<R: Reader>(reader: &mut R) -> Result<Self, WireError> {
        reader.binary()
    }
}

impl WireTyped for String {
    const WIRE_TYPE: WireType = WireType::Binary;
    const TYPE: TypeDescriptor = TypeDescriptor::String;
}

impl Encode for String {
    #[inline]
    fn encode<W: Writer>(&self, writer: &mut W) {
        writer.string(self);
    }
}

impl Decode for String {
    #[inline]
    fn decode<R: Reader>(reader: &mut R) -> Result<Self, WireError> {
        reader.string()
    }
}

impl<T: WireTyped> WireTyped for Vec<T> {
    const WIRE_TYPE: WireType = WireType::List;
    const TYPE: TypeDescriptor = TypeDescriptor::List(&T::TYPE);
}

impl<T: Encode> Encode for Vec<T> {
    #[inline]
    fn encode<W: Writer>(&self, writer: &mut W) {
        writer.list_begin(T::WIRE_TYPE, self.len());
        for element in self {
            element.encode(writer);
        }
    }
}

/// An empty container may announce any element type: some writers have none to announce.
fn check_element<R: Reader>(reader: &R, expected: WireType, found: WireType) -> Result<(), WireError> {
    if found == expected {
        return Ok(());
    }
    Err(WireError::WrongElementType {
        offset: reader.position(),
        expected,
        found,
    })
}

impl<T: Decode> Decode for Vec<T> {
    #[inline]
    fn decode<R: Reader>(reader: &mut R) -> Result<Self, WireError> {
        let list = reader.list_begin()?;
        let mut elements = Vec::new();
        if list.len > 0 {
            check_element(reader, T::WIRE_TYPE, list.element)?;
            reader.charge(list.len.saturating_mul(size_of::<T>()))?;
            elements.reserve_exact(list.len.min(RESERVE_BYTES_MAX / size_of::<T>().max(1)));
            for _ in 0..list.len {
                elements.push(T::decode(reader)?);
            }
        }
        reader.container_end();
        Ok(elements)
    }
}

/// Approximate memory of a tree for each element, as a multiple of the element: nodes are half full
/// at worst.
const TREE_OVERHEAD: usize = 2;

impl<T: WireTyped> WireTyped for BTreeSet<T> {
    const WIRE_TYPE: WireType = WireType::Set;
    const TYPE: TypeDescriptor = TypeDescriptor::Set(&T::TYPE);
}

impl<T: Encode + Ord> Encode for BTreeSet<T> {
    fn encode<W: Writer>(&self, writer: &mut W) {
        writer.set_begin(T::WIRE_TYPE, self.len());
        for element in self {
            element.encode(writer);
        }
    }
}

impl<T: Decode + Ord> Decode for BTreeSet<T> {
    fn decode<R: Reader>(reader: &mut R) -> Result<Self, WireError> {
        let set = reader.set_begin()?;
        let mut elements = BTreeSet::new();
        if set.len > 0 {
            check_element(reader, T::WIRE_TYPE, set.element)?;
            reader.charge(set.len.saturating_mul(size_of::<T>() * TREE_OVERHEAD))?;
            for _ in 0..set.len {
                elements.insert(T::decode(reader)?);
            }
        }
        reader.container_end();
        Ok(elements)
    }
}

impl<K: WireTyped, V: WireTyped> WireTyped for BTreeMap<K, V> {
    const WIRE_TYPE: WireType = WireType::Map;
    const TYPE: TypeDescriptor = TypeDescriptor::Map(&K::TYPE, &V::TYPE);
}

impl<K: Encode + Ord, V: Encode> Encode for BTreeMap<K, V> {
    fn encode<W: Writer>(&self, writer: &mut W) {
        writer.map_begin(K::WIRE_TYPE, V::WIRE_TYPE, self.len());
        for (key, value) in self {
            key.encode(writer);
            value.encode(writer);
        }
    }
}

/// A key that comes twice has its last value, as in every Thrift library.
impl<K: Decode + Ord, V: Decode> Decode for BTreeMap<K, V> {
    fn decode<R: Reader>(reader: &mut R) -> Result<Self, WireError> {
        let map = reader.map_begin()?;
        let mut pairs = BTreeMap::new();
        if let Some((key, value)) = map.types {
            check_element(reader, K::WIRE_TYPE, key)?;
            check_element(reader, V::WIRE_TYPE, value)?;
            let pair = size_of::<K>() + size_of::<V>();
            reader.charge(map.len.saturating_mul(pair * TREE_OVERHEAD))?;
            for _ in 0..map.len {
                let key = K::decode(reader)?;
                pairs.insert(key, V::decode(reader)?);
            }
        }
        reader.container_end();
        Ok(pairs)
    }
}
