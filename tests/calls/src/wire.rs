//! Values in bytes, as their descriptors say.

use basalt_idl::schema::{StructDescriptor, TypeDescriptor};
use basalt_idl::wire::{Reader, WireError, WireType, Writer};

use super::Value;

/// Why a value cannot be written: the fault of a script, not of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is no {ty}")]
pub struct WrongType {
    value: String,
    ty: String,
}

/// Writes a value of this type.
pub fn encode(writer: &mut impl Writer, ty: &TypeDescriptor, value: &Value) -> Result<(), WrongType> {
    let wrong = || WrongType {
        value: value.to_string(),
        ty: ty.to_string(),
    };
    match (ty, value) {
        (TypeDescriptor::Void, Value::Void) => {}
        (TypeDescriptor::Bool, Value::Bool(value)) => writer.bool(*value),
        (TypeDescriptor::I8, Value::Int(value)) => writer.i8(i8::try_from(*value).map_err(|_| wrong())?),
        (TypeDescriptor::I16, Value::Int(value)) => writer.i16(i16::try_from(*value).map_err(|_| wrong())?),
        (TypeDescriptor::I32 | TypeDescriptor::Enum(_), Value::Int(value)) => {
            writer.i32(i32::try_from(*value).map_err(|_| wrong())?);
        }
        (TypeDescriptor::I64, Value::Int(value)) => writer.i64(*value),
        (TypeDescriptor::Binary | TypeDescriptor::String, Value::Bytes(bytes)) => writer.binary(bytes),
        (TypeDescriptor::List(element) | TypeDescriptor::Set(element), Value::List(values)) => {
            writer.list_begin(element.wire_type(), values.len());
            for value in values {
                encode(writer, element, value)?;
            }
        }
        (TypeDescriptor::Map(key_type, value_type), Value::Map(pairs)) => {
            writer.map_begin(key_type.wire_type(), value_type.wire_type(), pairs.len());
            for (key, value) in pairs {
                encode(writer, key_type, key)?;
                encode(writer, value_type, value)?;
            }
        }
        (TypeDescriptor::Struct(of), Value::Struct(fields)) => encode_struct(writer, of, fields)?,
        _ => return Err(wrong()),
    }
    Ok(())
}

/// Writes the fields that are there, in the order of the IDL.
pub fn encode_struct(
    writer: &mut impl Writer,
    of: &StructDescriptor,
    fields: &[(&'static str, Value)],
) -> Result<(), WrongType> {
    writer.struct_begin();
    for field in of.fields {
        if let Some((_, value)) = fields.iter().find(|(name, _)| *name == field.name) {
            writer.field_begin(field.id, field.ty.wire_type());
            encode(writer, &field.ty, value)?;
        }
    }
    writer.struct_end();
    Ok(())
}

/// Reads a value of this type.
pub fn decode(reader: &mut impl Reader, ty: &TypeDescriptor) -> Result<Value, WireError> {
    Ok(match ty {
        TypeDescriptor::Void => Value::Void,
        TypeDescriptor::Bool => Value::Bool(reader.bool()?),
        TypeDescriptor::I8 => Value::Int(reader.i8()?.into()),
        TypeDescriptor::I16 => Value::Int(reader.i16()?.into()),
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => Value::Int(reader.i32()?.into()),
        TypeDescriptor::I64 => Value::Int(reader.i64()?),
        TypeDescriptor::Binary | TypeDescriptor::String => Value::Bytes(reader.binary()?.to_vec()),
        TypeDescriptor::List(element) => Value::List(decode_list(reader, element)?),
        TypeDescriptor::Set(element) => {
            let mut values = decode_list(reader, element)?;
            values.sort();
            Value::List(values)
        }
        TypeDescriptor::Map(key_type, value_type) => {
            let header = reader.map_begin()?;
            let mut pairs = Vec::new();
            for _ in 0..header.len {
                let key = decode(reader, key_type)?;
                pairs.push((key, decode(reader, value_type)?));
            }
            reader.container_end();
            pairs.sort();
            Value::Map(pairs)
        }
        TypeDescriptor::Struct(of) => Value::Struct(decode_struct(reader, of)?),
    })
}

fn decode_list(reader: &mut impl Reader, element: &TypeDescriptor) -> Result<Vec<Value>, WireError> {
    let header = reader.list_begin()?;
    let mut values = Vec::new();
    for _ in 0..header.len {
        values.push(decode(reader, element)?);
    }
    reader.container_end();
    Ok(values)
}

/// Reads the fields that are there, into the order of the IDL. Fields that the descriptor does not know are
/// passed over.
pub fn decode_struct(
    reader: &mut impl Reader,
    of: &StructDescriptor,
) -> Result<Vec<(&'static str, Value)>, WireError> {
    let mut found = vec![None; of.fields.len()];
    reader.struct_begin()?;
    while let Some(header) = reader.field_begin()? {
        let index = of
            .fields
            .iter()
            .position(|field| field.id == header.id && same_type(header.wire_type, &field.ty));
        match index {
            Some(index) => found[index] = Some(decode(reader, &of.fields[index].ty)?),
            None => reader.skip(header.wire_type)?,
        }
    }
    reader.struct_end();
    let named = of.fields.iter().zip(found);
    Ok(named
        .filter_map(|(field, value)| Some((field.name, value?)))
        .collect())
}

fn same_type(arrived: WireType, declared: &TypeDescriptor) -> bool {
    arrived == declared.wire_type()
}
