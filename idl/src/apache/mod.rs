//! The interfaces over Apache's crate `thrift`: every struct, union, exception and enum is a
//! [`TSerializable`], so a program on that crate's transports and protocols can use them.
//!
//! A value passes through the binary form of [`crate::wire`]:
//!
//! - Writing encodes the value, then walks the bytes along the type's descriptor and hands each part to the
//!   protocol.
//! - Reading walks the protocol along the descriptor, collects the parts as bytes, then decodes the value
//!   from them.
//!
//! The rules for absent fields, defaults and unions are those of [`crate::schema`], in one place. The
//! price is one copy of each value; the codecs of [`crate::wire`] have none.
//!
//! Bounds on received bytes are the protocol's (`TConfiguration` of the crate: size of a message, a
//! string, a container, depth), then those of decoding. Recursion follows the descriptors, which
//! are not recursive.

use thrift::protocol::{
    TFieldIdentifier, TInputProtocol, TListIdentifier, TMapIdentifier, TMessageIdentifier, TMessageType,
    TOutputProtocol, TSerializable, TSetIdentifier, TStructIdentifier, TType, verify_expected_message_type,
    verify_expected_sequence_number, verify_expected_service_call,
};
use thrift::{ProtocolError, ProtocolErrorKind, Result};

use crate::call::{Call, decode_result};
use crate::schema::{Decode, Encode, StructDescriptor, TypeDescriptor};
use crate::wire::{BinaryReader, BinaryWriter, Reader, WireError, Writer};

/// Makes a call and waits for its reply.
///
/// The outer error is the transport's, the protocol's, or the server's application exception; the inner one
/// is an exception that the method declares.
pub fn call<C: Call + TSerializable>(
    arguments: &C,
    sequence_number: i32,
    input: &mut dyn TInputProtocol,
    output: &mut dyn TOutputProtocol,
) -> Result<std::result::Result<C::Success, C::Exception>> {
    let name = C::METHOD.name;
    output.write_message_begin(&TMessageIdentifier::new(
        name,
        TMessageType::Call,
        sequence_number,
    ))?;
    arguments.write_to_out_protocol(output)?;
    output.write_message_end()?;
    output.flush()?;

    let header = input.read_message_begin()?;
    verify_expected_sequence_number(sequence_number, header.sequence_number)?;
    verify_expected_service_call(name, &header.name)?;
    if header.message_type == TMessageType::Exception {
        let failure = thrift::Error::read_application_error_from_in_protocol(input)?;
        input.read_message_end()?;
        return Err(thrift::Error::Application(failure));
    }
    verify_expected_message_type(TMessageType::Reply, header.message_type)?;
    let result = read_result::<C>(input)?;
    input.read_message_end()?;
    Ok(result)
}

/// Reads a struct, decodes and encodes its Rust type, and writes it: [`TSerializable`] in both directions,
/// for tests and tools that know a type only by its descriptor.
#[cfg(feature = "recode")]
pub fn recode(
    of: &StructDescriptor,
    input: &mut dyn TInputProtocol,
    output: &mut dyn TOutputProtocol,
) -> Result<()> {
    let mut received = Vec::new();
    read_struct(
        input,
        &|id| type_of_field(of, id),
        &mut BinaryWriter::new(&mut received),
    )?;
    let encoded = (of.recode)(crate::wire::Protocol::BinaryStrict, received.into()).map_err(refused)?;
    write_struct(&mut BinaryReader::new(encoded.into()), of, output)
}

/// Reads a value of a type that the macros declare, with its descriptor.
pub(crate) fn read<T: Decode>(of: &StructDescriptor, input: &mut dyn TInputProtocol) -> Result<T> {
    let mut bytes = Vec::new();
    read_struct(
        input,
        &|id| type_of_field(of, id),
        &mut BinaryWriter::new(&mut bytes),
    )?;
    T::decode(&mut BinaryReader::new(bytes.into())).map_err(refused)
}

/// Writes a value of a type that the macros declare, with its descriptor.
pub(crate) fn write<T: Encode>(
    value: &T,
    of: &StructDescriptor,
    output: &mut dyn TOutputProtocol,
) -> Result<()> {
    let mut bytes = Vec::new();
    value.encode(&mut BinaryWriter::new(&mut bytes));
    write_struct(&mut BinaryReader::new(bytes.into()), of, output)
}

fn read_result<C: Call>(
    input: &mut dyn TInputProtocol,
) -> Result<std::result::Result<C::Success, C::Exception>> {
    let type_of = |id| match id {
        0 => Some(C::METHOD.returns),
        id => {
            let throws = C::METHOD.throws.iter().find(|throws| throws.id == id)?;
            Some(TypeDescriptor::Struct(throws.exception))
        }
    };
    let mut bytes = Vec::new();
    read_struct(input, &type_of, &mut BinaryWriter::new(&mut bytes))?;
    decode_result::<C, _>(&mut BinaryReader::new(bytes.into())).map_err(refused)
}

fn type_of_field(of: &StructDescriptor, id: i16) -> Option<TypeDescriptor> {
    let field = of.fields.iter().find(|field| field.id == id)?;
    Some(field.ty)
}

/// Copies a struct from a protocol. Fields of which `type_of` does not know the number, or that have another
/// type, are skipped.
fn read_struct(
    input: &mut dyn TInputProtocol,
    type_of: &dyn Fn(i16) -> Option<TypeDescriptor>,
    to: &mut BinaryWriter<'_>,
) -> Result<()> {
    input.read_struct_begin()?;
    to.struct_begin();
    loop {
        let header = input.read_field_begin()?;
        if header.field_type == TType::Stop {
            break;
        }
        let known = header.id.and_then(|id| Some((id, type_of(id)?)));
        match known.filter(|(_, ty)| ttype(ty) == header.field_type) {
            Some((id, ty)) => {
                to.field_begin(id, ty.wire_type());
                read_value(input, &ty, to)?;
            }
            None => input.skip(header.field_type)?,
        }
        input.read_field_end()?;
    }
    to.struct_end();
    input.read_struct_end()
}

fn read_value(input: &mut dyn TInputProtocol, ty: &TypeDescriptor, to: &mut BinaryWriter<'_>) -> Result<()> {
    match ty {
        TypeDescriptor::Void => {}
        TypeDescriptor::Bool => to.bool(input.read_bool()?),
        TypeDescriptor::I8 => to.i8(input.read_i8()?),
        TypeDescriptor::I16 => to.i16(input.read_i16()?),
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => to.i32(input.read_i32()?),
        TypeDescriptor::I64 => to.i64(input.read_i64()?),
        TypeDescriptor::Binary => to.binary(&input.read_bytes()?),
        TypeDescriptor::String => to.string(&input.read_string()?),
        TypeDescriptor::Struct(of) => read_struct(input, &|id| type_of_field(of, id), to)?,
        TypeDescriptor::List(element) => {
            let header = input.read_list_begin()?;
            let len = elements(header.size, &[(element, Some(header.element_type))])?;
            to.list_begin(element.wire_type(), len);
            for _ in 0..len {
                read_value(input, element, to)?;
            }
            input.read_list_end()?;
        }
        TypeDescriptor::Set(element) => {
            let header = input.read_set_begin()?;
            let len = elements(header.size, &[(element, Some(header.element_type))])?;
            to.set_begin(element.wire_type(), len);
            for _ in 0..len {
                read_value(input, element, to)?;
            }
            input.read_set_end()?;
        }
        TypeDescriptor::Map(key, value) => {
            let header = input.read_map_begin()?;
            let len = elements(header.size, &[(key, header.key_type), (value, header.value_type)])?;
            to.map_begin(key.wire_type(), value.wire_type(), len);
            for _ in 0..len {
                read_value(input, key, to)?;
                read_value(input, value, to)?;
            }
            input.read_map_end()?;
        }
    }
    Ok(())
}

/// The number of elements that a container announces. Refuses elements of other types than declared; an empty
/// container may announce any.
fn elements(size: i32, types: &[(&TypeDescriptor, Option<TType>)]) -> Result<usize> {
    let Ok(len) = usize::try_from(size) else {
        return Err(invalid(format!("container has the negative size {size}")));
    };
    let wrong = types
        .iter()
        .find(|(declared, found)| Some(ttype(declared)) != *found);
    match wrong {
        Some((declared, found)) if len > 0 => Err(invalid(format!(
            "container has elements of type {found:?} instead of {declared}"
        ))),
        _ => Ok(len),
    }
}

/// Copies a struct, which this crate has encoded, to a protocol.
fn write_struct(
    from: &mut BinaryReader,
    of: &StructDescriptor,
    output: &mut dyn TOutputProtocol,
) -> Result<()> {
    from.struct_begin().map_err(refused)?;
    output.write_struct_begin(&TStructIdentifier::new(of.name))?;
    while let Some(header) = from.field_begin().map_err(refused)? {
        let Some(field) = of.fields.iter().find(|field| field.id == header.id) else {
            return Err(invalid(format!("{} has no field {}", of.name, header.id)));
        };
        output.write_field_begin(&TFieldIdentifier::new(field.name, ttype(&field.ty), field.id))?;
        write_value(from, &field.ty, output)?;
        output.write_field_end()?;
    }
    from.struct_end();
    output.write_field_stop()?;
    output.write_struct_end()
}

fn write_value(from: &mut BinaryReader, ty: &TypeDescriptor, output: &mut dyn TOutputProtocol) -> Result<()> {
    match ty {
        TypeDescriptor::Void => Ok(()),
        TypeDescriptor::Bool => output.write_bool(from.bool().map_err(refused)?),
        TypeDescriptor::I8 => output.write_i8(from.i8().map_err(refused)?),
        TypeDescriptor::I16 => output.write_i16(from.i16().map_err(refused)?),
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => output.write_i32(from.i32().map_err(refused)?),
        TypeDescriptor::I64 => output.write_i64(from.i64().map_err(refused)?),
        TypeDescriptor::Binary => output.write_bytes(from.binary_slice().map_err(refused)?),
        TypeDescriptor::String => output.write_string(&from.string().map_err(refused)?),
        TypeDescriptor::Struct(of) => write_struct(from, of, output),
        TypeDescriptor::List(element) => {
            let len = from.list_begin().map_err(refused)?.len;
            output.write_list_begin(&TListIdentifier::new(ttype(element), size(len)?))?;
            for _ in 0..len {
                write_value(from, element, output)?;
            }
            from.container_end();
            output.write_list_end()
        }
        TypeDescriptor::Set(element) => {
            let len = from.set_begin().map_err(refused)?.len;
            output.write_set_begin(&TSetIdentifier::new(ttype(element), size(len)?))?;
            for _ in 0..len {
                write_value(from, element, output)?;
            }
            from.container_end();
            output.write_set_end()
        }
        TypeDescriptor::Map(key, value) => {
            let len = from.map_begin().map_err(refused)?.len;
            output.write_map_begin(&TMapIdentifier::new(ttype(key), ttype(value), size(len)?))?;
            for _ in 0..len {
                write_value(from, key, output)?;
                write_value(from, value, output)?;
            }
            from.container_end();
            output.write_map_end()
        }
    }
}

fn size(len: usize) -> Result<i32> {
    i32::try_from(len).map_err(|_| invalid(format!("{len} elements are more than a container can announce")))
}

fn ttype(ty: &TypeDescriptor) -> TType {
    match ty {
        TypeDescriptor::Void => TType::Void,
        TypeDescriptor::Bool => TType::Bool,
        TypeDescriptor::I8 => TType::I08,
        TypeDescriptor::I16 => TType::I16,
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => TType::I32,
        TypeDescriptor::I64 => TType::I64,
        TypeDescriptor::Binary | TypeDescriptor::String => TType::String,
        TypeDescriptor::List(_) => TType::List,
        TypeDescriptor::Set(_) => TType::Set,
        TypeDescriptor::Map(..) => TType::Map,
        TypeDescriptor::Struct(_) => TType::Struct,
    }
}

fn invalid(message: String) -> thrift::Error {
    thrift::Error::Protocol(ProtocolError::new(ProtocolErrorKind::InvalidData, message))
}

/// A rejected value as the crate's error.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: WireError) -> thrift::Error {
    let kind = match error {
        WireError::TooDeep { .. } => ProtocolErrorKind::DepthLimit,
        WireError::NegativeSize { .. } => ProtocolErrorKind::NegativeSize,
        WireError::TooMuchMemory { .. } | WireError::TooLong { .. } => ProtocolErrorKind::SizeLimit,
        _ => ProtocolErrorKind::InvalidData,
    };
    thrift::Error::Protocol(ProtocolError::new(kind, error.to_string()))
}

#[cfg(test)]
mod tests;
