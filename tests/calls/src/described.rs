//! Descriptors of services that are not Thrift's, in the form of those that are.
//!
//! With them scripts print, read, compare and shrink calls of any protocol in the same way. These structs are
//! never on the wire in one of Thrift's protocols.

use basalt_idl::wire::{Protocol, WireError};
use bytes::Bytes;

/// Declares a field as required or optional.
macro_rules! requiredness {
    () => {
        basalt_idl::schema::Requiredness::Optional
    };
    (required) => {
        basalt_idl::schema::Requiredness::Required
    };
}

/// Declares a struct with its fields.
macro_rules! message {
    ($(#[$doc:meta])* $constant:ident $name:literal $kind:ident {
        $($field:literal: $ty:expr $(, $required:ident)?;)*
    }) => {
        $(#[$doc])*
        const $constant: basalt_idl::schema::StructDescriptor = basalt_idl::schema::StructDescriptor {
            name: $name,
            kind: basalt_idl::schema::StructKind::$kind,
            fields: &[$(basalt_idl::schema::FieldDescriptor {
                id: 0,
                name: $field,
                ty: $ty,
                requiredness: $crate::described::requiredness!($($required)?),
                default: None,
            },)*],
            memory: 0,
            recode: $crate::described::unchanged,
        };
    };
}

/// Declares a method of a service, which throws one exception.
macro_rules! method {
    ($service:literal $constant:ident $class:ident $name:literal($args:ident) -> $returns:expr,
        $throws:literal $exception:ident) => {
        const $constant: basalt_idl::call::MethodDescriptor = basalt_idl::call::MethodDescriptor {
            service: $service,
            name: $name,
            args: &$args,
            returns: $returns,
            throws: &[basalt_idl::call::ThrowsDescriptor {
                id: 1,
                name: $throws,
                exception: &$exception,
            }],
            class: basalt_idl::call::MethodClass::$class,
            idempotent: false,
            inline: false,
            legacy: false,
            recode_result: $crate::described::unchanged,
        };
    };
}

pub(crate) use {message, method, requiredness};

#[expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "descriptors want functions of this type"
)]
pub(crate) fn unchanged(_: Protocol, bytes: Bytes) -> Result<Vec<u8>, WireError> {
    Ok(bytes.to_vec())
}
