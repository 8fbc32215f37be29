//! Thrift calls that meet faults which a test has armed, and faults as the interface has them.
//!
//! A region that is split or moved between two results of a scan makes a native client locate it
//! again. A Thrift client does not see it, as with HBase's gateway, whose own client does that: there
//! the scan goes on.

use std::sync::Arc;

use basalt_engine::schema::TableName;
use basalt_idl::admin::TFault;
use basalt_idl::schema::{FieldDescriptor, StructDescriptor, TypeDescriptor};
use basalt_idl::wire::{Reader, WireError, WireType};
use bytes::Bytes;

use super::Called;
use crate::ephemeral::faults::{Call, Fault, Faults, Given, Kind, is_data, is_fetch};
use crate::security::Caller;
use crate::server::Server;
use crate::service::faults::{Consequence, carry_out};

/// Applies an armed fault to a Thrift call. `reader` is at its arguments. Arguments that cannot be
/// read meet none: the call itself reports the error.
pub(crate) async fn meet<R: Reader>(
    server: &Arc<Server>,
    faults: &Faults,
    caller: &Caller,
    called: Called,
    reader: R,
) -> Option<Consequence> {
    let call = describe(server, caller, called, reader)?;
    match carry_out(server, faults, call).await? {
        Consequence::RegionChanged(_) => None,
        consequence => Some(consequence),
    }
}

fn describe<R: Reader>(server: &Server, caller: &Caller, called: Called, mut reader: R) -> Option<Call> {
    let ((api, _), method) = (called.number(), called.descriptor());
    if !is_data(api, method.name) {
        return None;
    }
    let (table, scan) = if is_fetch(method.name) {
        let id = scanner_id(&mut reader).ok()??;
        server.scan_position(id, caller.owner())?
    } else {
        (table(&mut reader, method.args)?, None)
    };
    Some(Call {
        api,
        method: method.name,
        table,
        scan,
    })
}

/// The table that a data call's arguments name: in both services a string of its own, or a field of
/// the first struct.
fn table<R: Reader>(reader: &mut R, args: &StructDescriptor) -> Option<TableName> {
    reader.struct_begin().ok()?;
    while let Some(header) = reader.field_begin().ok()? {
        let known =
            |field: &&FieldDescriptor| (field.id, field.ty.wire_type()) == (header.id, header.wire_type);
        let field = args.fields.iter().find(known);
        match field.map(|field| (field.name, &field.ty)) {
            Some((
                "table" | "tableName" | "tableOrRegion",
                TypeDescriptor::Binary | TypeDescriptor::String,
            )) => {
                return TableName::parse(&reader.binary().ok()?).ok();
            }
            Some((_, TypeDescriptor::Struct(within))) => {
                if let Some(table) = table(reader, within) {
                    return Some(table);
                }
            }
            _ => reader.skip(header.wire_type).ok()?,
        }
    }
    reader.struct_end();
    None
}

/// The first argument of a call that fetches.
fn scanner_id<R: Reader>(reader: &mut R) -> Result<Option<i32>, WireError> {
    reader.struct_begin()?;
    while let Some(field) = reader.field_begin()? {
        if (field.id, field.wire_type) == (1, WireType::I32) {
            return Ok(Some(reader.i32()?));
        }
        reader.skip(field.wire_type)?;
    }
    Ok(None)
}

pub(super) fn from_thrift(fault: TFault) -> Result<Given, String> {
    let text = |bytes: Bytes| String::from_utf8(bytes.into()).map_err(|_| "table is not UTF-8".to_owned());
    Ok(Given {
        method: fault.method,
        fault: fault.fault,
        calls: fault.calls.into(),
        table: fault.table.map(text).transpose()?,
        delay_ms: fault.delay_ms.map(i64::from),
        split_row: fault.split_row.map(Vec::from),
    })
}

pub(super) fn to_thrift(fault: &Fault) -> TFault {
    TFault {
        method: fault.methods.name().to_owned(),
        fault: fault.kind.name().to_owned(),
        calls: i32::try_from(fault.calls).unwrap_or(i32::MAX),
        table: fault.table.as_ref().map(|table| Bytes::from(table.to_string())),
        delay_ms: match fault.kind {
            Kind::Delay(delay) => i32::try_from(delay.as_millis()).ok(),
            _ => None,
        },
        split_row: match &fault.kind {
            Kind::Split(row) => row.clone().map(Bytes::from),
            _ => None,
        },
    }
}
