//! Which service a message on the shared port means.
//!
//! Both HBase services and ours answer on one port. Most method names belong to one service. Fourteen are
//! in both of HBase's; there the wire types of the arguments decide:
//!
//! | method | Thrift 1 | Thrift 2 | decided by |
//! | --- | --- | --- | --- |
//! | enableTable, disableTable, isTableEnabled, deleteTable, createTable | 1: string | 1: struct | type of 1 |
//! | get, mutateRow | 2: string | 2: struct | type of 2 |
//! | increment, append | 1: struct | 1: string | type of 1 |
//! | checkAndPut | 1 2 3 5 6 7 | 1 2 3 4 5 6 | field 4 is Thrift 2's; then field 1 inside 6: bool or string |
//! | grant, revoke, getClusterId | | | same arguments, same reply: either |
//! | getThriftServerType | | | same arguments, different reply: either, the caller has to know more |
//!
//! A call that leaves the deciding argument out is ambiguous and invalid in both services: either.
//!
//! Where the place that a call came to says which of HBase's services is meant (a path of the HTTP port),
//! names suffice: [`service_at`].

use crate::wire::{Reader, WireError, WireType};
use crate::{admin, thrift1, thrift2};

/// The service that a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// `Hbase`.
    Thrift1,
    /// `THBaseService`.
    Thrift2,
    /// `BasaltAdmin`.
    Admin,
    /// `Hbase` or `THBaseService`: decide by earlier calls of the connection, or by a setting.
    Either,
    /// No service has the method.
    Unknown,
}

/// Determines the service of a call from its method and, for the shared names only, its arguments.
/// `args` stands before the arguments struct and is not moved. Fails if it needs the arguments and
/// they are malformed.
pub fn which_service<R: Reader + Clone>(method: &str, args: &R) -> Result<Service, WireError> {
    let in_one = thrift1::Method::from_name(method).is_some();
    let in_two = thrift2::Method::from_name(method).is_some();
    Ok(match (in_one, in_two) {
        (true, false) => Service::Thrift1,
        (false, true) => Service::Thrift2,
        (true, true) => shared_name(method, args.clone())?,
        (false, false) if admin::Method::from_name(method).is_some() => Service::Admin,
        (false, false) => Service::Unknown,
    })
}

/// Determines the service of a call on an endpoint for one of HBase's two, `service`, and Basalt's
/// own.
pub fn service_at(service: Service, method: &str) -> Service {
    let known = match service {
        Service::Thrift1 => thrift1::Method::from_name(method).is_some(),
        Service::Thrift2 => thrift2::Method::from_name(method).is_some(),
        Service::Admin | Service::Either | Service::Unknown => false,
    };
    if known {
        service
    } else if admin::Method::from_name(method).is_some() {
        Service::Admin
    } else {
        Service::Unknown
    }
}

fn shared_name<R: Reader>(method: &str, args: R) -> Result<Service, WireError> {
    match method {
        "enableTable" | "disableTable" | "isTableEnabled" | "deleteTable" | "createTable" => {
            by_type(args, 1, WireType::Binary, WireType::Struct)
        }
        "get" | "mutateRow" => by_type(args, 2, WireType::Binary, WireType::Struct),
        "increment" | "append" => by_type(args, 1, WireType::Struct, WireType::Binary),
        "checkAndPut" => check_and_put(args),
        _ => Ok(Service::Either),
    }
}

/// Decides by the wire type of one argument.
fn by_type<R: Reader>(mut args: R, id: i16, one: WireType, two: WireType) -> Result<Service, WireError> {
    Ok(match peek_type(&mut args, id)? {
        Some(found) if found == one => Service::Thrift1,
        Some(found) if found == two => Service::Thrift2,
        _ => Service::Either,
    })
}

fn check_and_put<R: Reader + Sized>(mut args: R) -> Result<Service, WireError> {
    // Field 4 usually comes before 6, but nothing says that fields come in order.
    let mut service = Service::Either;
    args.struct_begin()?;
    while let Some(field) = args.field_begin()? {
        match (field.id, field.wire_type) {
            (4, WireType::Binary) => return Ok(Service::Thrift2),
            (6, WireType::Struct) if service == Service::Either => {
                service = first_field_of_mutation(&mut args)?;
            }
            (_, other) => args.skip(other)?,
        }
    }
    Ok(if service == Service::Thrift2 {
        Service::Thrift2
    } else {
        Service::Thrift1
    })
}

/// Field 1 is a boolean in a Thrift 1 `Mutation` and the row in a `TPut`. Reads the whole struct.
fn first_field_of_mutation<R: Reader>(args: &mut R) -> Result<Service, WireError> {
    let mut service = Service::Either;
    args.struct_begin()?;
    while let Some(field) = args.field_begin()? {
        match (field.id, field.wire_type) {
            (1, WireType::Bool) => service = Service::Thrift1,
            (1, WireType::Binary) => service = Service::Thrift2,
            _ => {}
        }
        args.skip(field.wire_type)?;
    }
    args.struct_end();
    Ok(service)
}

/// The wire type of one field of the next struct, if it is there. Skips the fields before it.
fn peek_type<R: Reader>(args: &mut R, id: i16) -> Result<Option<WireType>, WireError> {
    args.struct_begin()?;
    while let Some(field) = args.field_begin()? {
        if field.id == id {
            return Ok(Some(field.wire_type));
        }
        args.skip(field.wire_type)?;
    }
    args.struct_end();
    Ok(None)
}

/// Ids and wire types of the first `limit` fields of the next struct, for messages about calls that no
/// service understands. Does not move `reader`.
pub fn peek_fields<R: Reader + Clone>(reader: &R, limit: usize) -> Result<Vec<(i16, WireType)>, WireError> {
    let mut reader = reader.clone();
    let mut fields = Vec::new();
    reader.struct_begin()?;
    while fields.len() < limit {
        let Some(field) = reader.field_begin()? else { break };
        fields.push((field.id, field.wire_type));
        reader.skip(field.wire_type)?;
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;
