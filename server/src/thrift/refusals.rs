//! Goal: every method of every Thrift service asks whether its caller may call it, and says nothing
//! else when it may not. Method: a server on which nobody may do anything, and a well-formed call of
//! each method, made from the interface's own declarations.

use std::sync::Arc;

use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
use basalt_idl::schema::{FieldDescriptor, Requiredness, StructDescriptor, StructKind, TypeDescriptor};
use basalt_idl::wire::{BinaryWriter, Writer};

use super::*;
use crate::config::Config;
use crate::security::{Access, Caller, Owner};

/// Methods that name a scanner: there is none, since nobody may open one.
const OF_SCANNERS: [&str; 5] = [
    "scannerGet",
    "scannerGetList",
    "scannerClose",
    "getScannerRows",
    "closeScanner",
];
/// A word that only the table of the test has.
const SECRET: &str = "secret";

/// Writes a value that a call of the method may have. Fields that may be left out are, except those
/// without which a call means nothing.
fn put_value(writer: &mut impl Writer, name: &str, of: &TypeDescriptor) {
    match of {
        TypeDescriptor::Void => {}
        TypeDescriptor::Bool => writer.bool(false),
        TypeDescriptor::I8 => writer.i8(1),
        TypeDescriptor::I16 => writer.i16(1),
        TypeDescriptor::I32 => writer.i32(1),
        TypeDescriptor::I64 => writer.i64(1),
        TypeDescriptor::Enum(of) => writer.i32(of.values[0].1),
        TypeDescriptor::Binary | TypeDescriptor::String => writer.string(match name {
            "column" | "columns" => "f:q",
            "actions" => "R",
            "fault" => "too_busy",
            "family" => "f",
            _ => SECRET,
        }),
        TypeDescriptor::List(of) => {
            writer.list_begin(of.wire_type(), 1);
            put_value(writer, name, of);
        }
        TypeDescriptor::Set(of) => {
            writer.set_begin(of.wire_type(), 1);
            put_value(writer, name, of);
        }
        TypeDescriptor::Map(key, value) => writer.map_begin(key.wire_type(), value.wire_type(), 0),
        TypeDescriptor::Struct(of) => put_struct(writer, of),
    }
}

fn put_struct(writer: &mut impl Writer, of: &StructDescriptor) {
    writer.struct_begin();
    for FieldDescriptor {
        id,
        name,
        ty,
        requiredness,
        ..
    } in of.fields
    {
        if of.kind == StructKind::Union && *id != of.fields[0].id {
            continue;
        }
        let is_needed = matches!(*name, "columns" | "tableName" | "nsName") && of.name != "TScan";
        if (*requiredness == Requiredness::Optional && !is_needed && of.kind != StructKind::Union)
            || *name == "attributes"
        {
            continue;
        }
        writer.field_begin(*id, ty.wire_type());
        put_value(writer, name, ty);
    }
    writer.struct_end();
}

/// A server with the table `secret`, on which nobody may do anything.
fn closed() -> Arc<Server> {
    let config = Config::default();
    let disk = basalt_engine::fs::sim::SimFs::new(1, basalt_engine::fs::sim::SimOptions::default());
    let engine = crate::rig::engine_on(&disk, &config);
    let table = TableName::parse(SECRET.as_bytes()).unwrap();
    let descriptor = TableDescriptor::new(table, vec![FamilyDescriptor::new(b"f")]);
    engine.create_table(descriptor, Vec::new()).unwrap();
    Arc::new(crate::rig::server_of(engine, config, 4).with_access(Access::Nobody))
}

#[tokio::test]
async fn every_method_asks_before_anything_else() {
    let server = closed();
    let engine = Arc::clone(crate::rig::engine(&server));
    let state = || format!("{:?} {:?}", engine.tables(), engine.region_requests());
    let before = state();
    let services = [
        (Service::Thrift1, thrift1::SERVICE.methods),
        (Service::Thrift2, thrift2::SERVICE.methods),
        (Service::Admin, admin::SERVICE.methods),
    ];
    let mut wrong = Vec::new();
    for (service, methods) in services {
        for method in methods {
            let caller = Caller::anonymous(Owner::Connection(1), None);
            let mut client = Client::of(service, Sender::new(caller, server.admission().memory()));
            let (mut message, mut answer) = (Vec::new(), Vec::new());
            let mut writer = BinaryWriter::new(&mut message);
            writer.message_begin(method.name, MessageKind::Call, 1);
            put_struct(&mut writer, method.args);
            server
                .call(&mut client, Protocol::BinaryStrict, message.into(), &mut answer)
                .await;
            let answer = String::from_utf8_lossy(&answer);
            let is_scanner = OF_SCANNERS.contains(&method.name);
            let is_refused = answer.contains("Insufficient permissions")
                || (is_scanner && answer.contains("scanner"))
                // An unknown scanner is closed without an error.
                || method.name == "closeScanner";
            if !is_refused {
                wrong.push(format!("{} {}: {answer}", method.service, method.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(state(), before, "nothing is changed");
}

/// Goal: a refusal of an existing table and of a missing one are the same, but for the name.
#[tokio::test]
async fn a_refusal_does_not_tell_whether_the_table_exists() {
    let server = closed();
    let refusal = async |name: &'static str| {
        let caller = Caller::anonymous(Owner::Connection(1), None);
        let mut client = Client::of_both(Sender::new(caller, server.admission().memory()));
        let (mut message, mut answer) = (Vec::new(), Vec::new());
        let get = thrift2::args::Get {
            table: Bytes::from_static(name.as_bytes()),
            tget: thrift2::TGet {
                row: Bytes::from_static(b"r"),
                ..thrift2::TGet::default()
            },
        };
        basalt_idl::call::write_call(&mut BinaryWriter::new(&mut message), 1, &get);
        server
            .call(&mut client, Protocol::BinaryStrict, message.into(), &mut answer)
            .await;
        String::from_utf8_lossy(&answer).replace(name, "NAME")
    };
    let existing = refusal("secret").await;
    assert_eq!(existing, refusal("absent").await);
    assert!(existing.contains("Insufficient permissions for user 'anonymous' (table=NAME, action=READ)"));
}
