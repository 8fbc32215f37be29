//! Connections: calls of every method and their answers, in every protocol and transport, and bytes
//! that are no call.

use basalt_idl::call::MethodDescriptor;
use basalt_idl::schema::{Requiredness, StructDescriptor, StructKind, TypeDescriptor};
use basalt_idl::wire::{BinaryWriter, CompactWriter, MessageKind, Protocol, Writer};
use basalt_idl::{admin, thrift1, thrift2};

use super::seed;
use crate::corpus::Input;

const PROTOCOLS: [Protocol; 3] = [Protocol::BinaryStrict, Protocol::BinaryOld, Protocol::Compact];

/// A connection is not made longer by another message from here on.
const CONNECTION_BYTES: usize = 1200;

pub(super) fn seeds() -> Vec<Input> {
    let mut seeds = Vec::new();
    for (name, kind, whole) in [
        ("calls", MessageKind::Call, true),
        ("short-calls", MessageKind::Call, false),
        ("answers", MessageKind::Reply, true),
    ] {
        let connections = connections(kind, whole);
        let named = |(index, bytes)| seed(format!("{name}-{index:02}"), bytes);
        seeds.extend(connections.into_iter().enumerate().map(named));
    }
    seeds.extend(foreign_protocols());
    seeds.extend(attacks());
    seeds
}

/// Every method of the three services, several to a connection; connections take turns in protocol and
/// transport.
fn connections(kind: MessageKind, whole: bool) -> Vec<Vec<u8>> {
    let services = [thrift1::SERVICE, thrift2::SERVICE, admin::SERVICE];
    let methods = services.iter().flat_map(|service| service.methods.iter());
    let mut connections = Vec::new();
    let mut open = Vec::new();
    for method in methods {
        let (protocol, framed) = (PROTOCOLS[connections.len() % 3], connections.len() % 2 == 0);
        if open.is_empty() {
            open.push(connections.len() as u8 & 0x0f);
        }
        let message = message(protocol, method, kind, whole);
        if framed {
            open.extend_from_slice(&(message.len() as u32).to_be_bytes());
        }
        open.extend_from_slice(&message);
        if open.len() > CONNECTION_BYTES {
            connections.push(std::mem::take(&mut open));
        }
    }
    connections.push(open);
    connections
}

fn message(protocol: Protocol, method: &MethodDescriptor, kind: MessageKind, whole: bool) -> Vec<u8> {
    let mut out = Vec::new();
    match protocol {
        Protocol::Compact => {
            let mut writer = CompactWriter::new(&mut out);
            writer.message_begin(method.name, kind, 7);
            body(&mut writer, method, kind, whole);
        }
        Protocol::BinaryStrict => {
            let mut writer = BinaryWriter::new(&mut out);
            writer.message_begin(method.name, kind, 7);
            body(&mut writer, method, kind, whole);
        }
        Protocol::BinaryOld => {
            out.extend_from_slice(&(method.name.len() as u32).to_be_bytes());
            out.extend_from_slice(method.name.as_bytes());
            out.extend_from_slice(&[kind as u8, 0, 0, 0, 7]);
            body(&mut BinaryWriter::new(&mut out), method, kind, whole);
        }
    }
    out
}

fn body<W: Writer>(writer: &mut W, method: &MethodDescriptor, kind: MessageKind, whole: bool) {
    if kind == MessageKind::Call {
        return structure(writer, method.args, whole);
    }
    writer.struct_begin();
    match (method.throws.first(), method.returns) {
        // Every fourth answer is an exception.
        (Some(thrown), _) if method.name.len().is_multiple_of(4) => {
            writer.field_begin(thrown.id, basalt_idl::wire::WireType::Struct);
            structure(writer, thrown.exception, whole);
        }
        (_, TypeDescriptor::Void) => {}
        (_, returns) => {
            writer.field_begin(0, returns.wire_type());
            value(writer, &returns, whole);
        }
    }
    writer.struct_end();
}

fn structure<W: Writer>(writer: &mut W, of: &StructDescriptor, whole: bool) {
    writer.struct_begin();
    let fields = of
        .fields
        .iter()
        .filter(|field| whole || field.requiredness == Requiredness::Required);
    let count = if of.kind == StructKind::Union {
        1
    } else {
        usize::MAX
    };
    for field in fields.take(count) {
        writer.field_begin(field.id, field.ty.wire_type());
        value(writer, &field.ty, whole);
    }
    writer.struct_end();
}

fn value<W: Writer>(writer: &mut W, ty: &TypeDescriptor, whole: bool) {
    match ty {
        TypeDescriptor::Void => {}
        TypeDescriptor::Bool => writer.bool(true),
        TypeDescriptor::I8 => writer.i8(1),
        TypeDescriptor::I16 => writer.i16(-2),
        TypeDescriptor::I32 => writer.i32(300),
        TypeDescriptor::I64 => writer.i64(1_700_000_000_000),
        TypeDescriptor::Binary => writer.binary(b"b\xff"),
        TypeDescriptor::String => writer.string("f:é"),
        TypeDescriptor::Enum(of) => writer.i32(of.values.first().map_or(0, |(_, code)| *code)),
        TypeDescriptor::Struct(of) => structure(writer, of, whole),
        TypeDescriptor::List(element) | TypeDescriptor::Set(element) => {
            writer.list_begin(element.wire_type(), usize::from(whole));
            if whole {
                value(writer, element, whole);
            }
        }
        TypeDescriptor::Map(key, of) => {
            writer.map_begin(key.wire_type(), of.wire_type(), usize::from(whole));
            if whole {
                value(writer, key, whole);
                value(writer, of, whole);
            }
        }
    }
}

/// First bytes of other protocols.
fn foreign_protocols() -> Vec<Input> {
    vec![
        seed("http", *b"\x05GET /metrics HTTP/1.1\r\n\r\n"),
        seed("tls", *b"\x05\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        seed("sasl", *b"\x05\x01\x00\x00\x00\x06GSSAPI"),
        seed("storm", *b"\x01Hello\n"),
    ]
}

/// Sizes, counts and depths that lie.
fn attacks() -> Vec<Input> {
    let call = |fields: &[u8]| [b"\x03\x80\x01\x00\x01\x00\x00\x00\x03get\x00\x00\x00\x01", fields].concat();
    let compact = |fields: &[u8]| [b"\x03\x82\x21\x01\x03get", fields].concat();
    let deep = |open: &[u8], times: usize| open.repeat(times);
    vec![
        seed("a-frame-of-two-gigabytes", *b"\x03\x7f\xff\xff\xff\x80\x01\x00\x01\x00\x00\x00\x03get\x00\x00\x00\x01"),
        seed("a-frame-above-the-small-limit", [b"\x83\x00\x00\x04\x01\x80\x01\x00\x01\x00\x00\x00\x03get\x00\x00\x00\x01".as_slice(), &[0; 1014]].concat()),
        seed("a-long-unframed-message", [b"\x83".as_slice(), &call(b"\x0b\x00\x63\x00\x00\x08\x00")[1..], &[b'x'; 2048], b"\0"].concat()),
        seed("a-negative-size", call(b"\x0b\x00\x01\xff\xff\xff\xff")),
        seed("a-list-of-two-billion", call(b"\x0f\x00\x63\x0c\x7f\xff\xff\xff")),
        seed("a-map-of-two-billion", call(b"\x0d\x00\x63\x0b\x0f\x7f\xff\xff\xff")),
        seed("a-compact-list-of-two-billion", compact(b"\x19\xfc\xff\xff\xff\xff\x07")),
        seed("a-compact-map-of-two-billion", compact(b"\x1b\xff\xff\xff\xff\x07\x8c")),
        seed("an-endless-varint", compact(b"\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
        seed("a-field-id-beyond-16-bits", compact(b"\x05\xff\xff\xff\xff\x0f\x00")),
        seed("structs-63-deep", call(&[deep(b"\x0c\x00\x63", 63), vec![0; 64]].concat())),
        seed("structs-65-deep", call(&[deep(b"\x0c\x00\x63", 65), vec![0; 66]].concat())),
        seed("lists-65-deep", call(&[b"\x0f\x00\x63".to_vec(), deep(b"\x0f\x00\x00\x00\x01", 65), vec![0; 8]].concat())),
        seed("compact-lists-400-deep", compact(&[b"\x19".to_vec(), deep(b"\x19", 400), vec![0; 8]].concat())),
        seed("many-empty-structs", call(&[b"\x0f\x00\x63\x0c\x00\x00\x08\x00".to_vec(), vec![0; 2049]].concat())),
        seed("an-exception", *b"\x03\x80\x01\x00\x03\x00\x00\x00\x03get\x00\x00\x00\x01\x0b\x00\x01\x00\x00\x00\x01x\x08\x00\x02\x00\x00\x00\x01\x00"),
        seed("a-name-of-no-letters", *b"\x03\x80\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00"),
        seed("a-kind-of-nine", *b"\x03\x80\x01\x00\x09\x00\x00\x00\x03get\x00\x00\x00\x01\x00"),
    ]
}
