//! Checks bytes against the interface without building values of them.
//!
//! Decoding builds as it reads: a message of many small elements whose last byte is wrong has taken many
//! times its own size before it is refused. [`check`] walks the message along the descriptors instead, and
//! holds one string at a time at most.
//!
//! Invariant: it refuses exactly the bytes that `decode` refuses, with the same error
//! (`idl/tests/hostile.rs` compares the two). Recursion is bounded: types are not recursive, and
//! unknown fields are skipped by the reader, which counts depth.

use super::{Requiredness, StructDescriptor, StructKind, TREE_OVERHEAD, TypeDescriptor, check_element};
use crate::wire::{Reader, WireError};

/// Reads a struct and refuses it where it is not `of` this type.
pub fn check<R: Reader>(reader: &mut R, of: &StructDescriptor) -> Result<(), WireError> {
    let mut seen = Seen::default();
    reader.struct_begin()?;
    while let Some(header) = reader.field_begin()? {
        let mut fields = of.fields.iter().enumerate();
        let known =
            fields.find(|(_, field)| field.id == header.id && field.ty.wire_type() == header.wire_type);
        match known {
            Some((index, field)) => {
                seen.add(index);
                value(reader, &field.ty)?;
            }
            None => reader.skip(header.wire_type)?,
        }
    }
    reader.struct_end();
    if of.kind == StructKind::Union {
        return match seen.times {
            1 => Ok(()),
            found => Err(WireError::NotOneMember {
                union: of.name,
                found,
            }),
        };
    }
    let missing = of.fields.iter().enumerate().find(|(index, field)| {
        field.requiredness == Requiredness::Required && field.default.is_none() && !seen.has(*index)
    });
    match missing {
        Some((_, field)) => Err(WireError::MissingField {
            in_struct: of.name,
            field: field.name,
        }),
        None => Ok(()),
    }
}

/// The fields of a struct that have arrived.
#[derive(Default)]
struct Seen {
    /// One bit for each field. No struct of the three interfaces has more than 64.
    fields: u64,
    /// A field that comes twice counts twice.
    times: usize,
}

impl Seen {
    fn bit(index: usize) -> u64 {
        u32::try_from(index)
            .ok()
            .and_then(|index| 1_u64.checked_shl(index))
            .unwrap_or_default()
    }

    fn add(&mut self, index: usize) {
        self.fields |= Self::bit(index);
        self.times += 1;
    }

    fn has(&self, index: usize) -> bool {
        self.fields & Self::bit(index) != 0
    }
}

fn value<R: Reader>(reader: &mut R, ty: &TypeDescriptor) -> Result<(), WireError> {
    match ty {
        TypeDescriptor::Void => Ok(()),
        TypeDescriptor::Bool => reader.bool().map(drop),
        TypeDescriptor::I8 => reader.i8().map(drop),
        TypeDescriptor::I16 => reader.i16().map(drop),
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => reader.i32().map(drop),
        TypeDescriptor::I64 => reader.i64().map(drop),
        TypeDescriptor::Binary => reader.binary_slice().map(drop),
        TypeDescriptor::String => reader.string().map(drop),
        TypeDescriptor::List(element) => {
            let list = reader.list_begin()?;
            elements(reader, element, list.element, list.len, 1)
        }
        TypeDescriptor::Set(element) => {
            let set = reader.set_begin()?;
            elements(reader, element, set.element, set.len, TREE_OVERHEAD)
        }
        TypeDescriptor::Map(key, of) => {
            let map = reader.map_begin()?;
            if let Some((key_found, value_found)) = map.types {
                check_element(reader, key.wire_type(), key_found)?;
                check_element(reader, of.wire_type(), value_found)?;
                let pair = key.memory() + of.memory();
                reader.charge(map.len.saturating_mul(pair * TREE_OVERHEAD))?;
                for _ in 0..map.len {
                    value(reader, key)?;
                    value(reader, of)?;
                }
            }
            reader.container_end();
            Ok(())
        }
        TypeDescriptor::Struct(of) => check(reader, of),
    }
}

/// The elements of a list or set behind its header.
fn elements<R: Reader>(
    reader: &mut R,
    element: &TypeDescriptor,
    found: crate::wire::WireType,
    len: usize,
    overhead: usize,
) -> Result<(), WireError> {
    if len > 0 {
        check_element(reader, element.wire_type(), found)?;
        reader.charge(len.saturating_mul(element.memory() * overhead))?;
        for _ in 0..len {
            value(reader, element)?;
        }
    }
    reader.container_end();
    Ok(())
}
