//! Goal: the codecs at their edges. Method: bytes by hand in, values or errors out, in both protocols.
//! Whole interfaces are tested in `tests/`.

mod detection;
mod hostile;
mod openings;
mod scanner;

use bytes::Bytes;

use super::varint::{self, Varint};
use super::*;
use crate::schema::{Decode, Encode};
use crate::{thrift1, thrift2};

const PROTOCOLS: [Protocol; 3] = [Protocol::BinaryStrict, Protocol::BinaryOld, Protocol::Compact];

/// Runs the body with a writer of either protocol and returns the bytes of each.
macro_rules! written {
    (|$writer:ident| $body:expr) => {{
        let (mut binary, mut compact) = (Vec::new(), Vec::new());
        {
            let $writer = &mut BinaryWriter::new(&mut binary);
            $body;
        }
        {
            let $writer = &mut CompactWriter::new(&mut compact);
            $body;
        }
        (binary, compact)
    }};
}

/// Runs the body with a reader over each of the two encodings; both must give the same, which is the value.
macro_rules! read {
    ($written:expr, |$reader:ident| $body:expr) => {{
        let (binary, compact) = $written;
        let from_binary = {
            let $reader = &mut BinaryReader::new(Bytes::from(binary));
            $body
        };
        let from_compact = {
            let $reader = &mut CompactReader::new(Bytes::from(compact));
            $body
        };
        assert_eq!(from_binary, from_compact);
        from_binary
    }};
}

fn skip(protocol: Protocol, wire_type: WireType, bytes: Vec<u8>) -> Result<usize, WireError> {
    let bytes = Bytes::from(bytes);
    if protocol == Protocol::Compact {
        let mut reader = CompactReader::new(bytes);
        reader.skip(wire_type).map(|()| reader.position())
    } else {
        let mut reader = BinaryReader::new(bytes);
        reader.skip(wire_type).map(|()| reader.position())
    }
}

#[test]
fn varints_keep_to_their_width() {
    for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
        let mut bytes = Vec::new();
        varint::write(&mut bytes, value);
        assert_eq!(varint::parse::<64>(&bytes), Varint::Value(value, bytes.len()));
        let fits = u32::try_from(value).is_ok();
        assert_eq!(varint::parse::<32>(&bytes) == Varint::TooLong, !fits, "{value}");
        for cut in 0..bytes.len() {
            assert_eq!(varint::parse::<64>(&bytes[..cut]), Varint::Incomplete);
        }
    }
    assert_eq!(varint::parse::<64>(&[0x80; 10]), Varint::TooLong);
    assert_eq!(varint::parse::<64>(&[0x80; 9]), Varint::Incomplete);
    assert_eq!(varint::parse::<32>(&[0x80; 5]), Varint::TooLong);
    for value in [0, -1, 1, i64::MIN, i64::MAX] {
        assert_eq!(varint::unzigzag(varint::zigzag(value)), value);
    }
}

#[test]
fn numbers_are_where_the_protocols_say() {
    let (binary, compact) = written!(|writer| {
        writer.i16(-2);
        writer.i32(300);
        writer.double(1.0);
    });
    assert_eq!(binary, [0xff, 0xfe, 0, 0, 1, 44, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(compact, [3, 0xd8, 4, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    let back = read!((binary, compact), |reader| (
        reader.i16(),
        reader.i32(),
        reader.double()
    ));
    assert_eq!(back, (Ok(-2), Ok(300), Ok(1.0)));
}

#[test]
fn compact_booleans_are_in_the_header_of_a_field_and_in_the_byte_of_an_element() {
    let (binary, compact) = written!(|writer| {
        writer.struct_begin();
        writer.bool_field(1, true);
        writer.bool_field(2, false);
        writer.field_begin(3, WireType::List);
        vec![true, false].encode(writer);
        writer.struct_end();
    });
    assert_eq!(compact, [0x11, 0x12, 0x19, 0x21, 1, 2, 0]);
    for protocol in PROTOCOLS {
        let bytes = if protocol == Protocol::Compact {
            compact.clone()
        } else {
            binary.clone()
        };
        let len = bytes.len();
        assert_eq!(skip(protocol, WireType::Struct, bytes), Ok(len));
    }
    let mut reader = CompactReader::new(Bytes::from_static(&[0x32, 0, 1, 2]));
    assert_eq!(Vec::<bool>::decode(&mut reader), Ok(vec![false, true, false]));
    let mut reader = CompactReader::new(Bytes::from_static(&[0x11, 3]));
    assert_eq!(
        Vec::<bool>::decode(&mut reader),
        Err(WireError::NotABool { offset: 1, value: 3 })
    );
}

#[test]
fn field_ids_of_any_order_and_distance_survive() {
    let ids = [1, 2, 17, 16, 32767, -1, -32768, 0];
    let encoded = written!(|writer| {
        writer.struct_begin();
        for id in ids {
            writer.i8_field(id, 7);
            writer.field_begin(id, WireType::Struct);
            writer.struct_begin();
            writer.i8_field(5, 7);
            writer.struct_end();
        }
        writer.struct_end();
    });
    let back = read!(encoded, |reader| {
        let mut ids = Vec::new();
        reader.struct_begin().unwrap();
        while let Some(field) = reader.field_begin().unwrap() {
            if field.wire_type == WireType::I8 {
                ids.push(field.id);
            }
            reader.skip(field.wire_type).unwrap();
        }
        ids
    });
    assert_eq!(back, ids);
    // From 32767 one step up there is no id.
    let over = [0x03, 0xfe, 0xff, 0x03, 7, 0x13];
    let error = skip(Protocol::Compact, WireType::Struct, over.to_vec());
    assert_eq!(error, Err(WireError::FieldIdOutOfRange { offset: 6 }));
}

#[test]
fn empty_containers_may_announce_anything() {
    for (protocol, bytes) in [
        (Protocol::BinaryStrict, vec![0, 0, 0, 0, 0, 0]),
        (Protocol::BinaryStrict, vec![12, 8, 0, 0, 0, 0]),
        (Protocol::Compact, vec![0]),
    ] {
        let map = std::collections::BTreeMap::<Bytes, Bytes>::new();
        let decoded = if protocol == Protocol::Compact {
            Decode::decode(&mut CompactReader::new(Bytes::from(bytes)))
        } else {
            Decode::decode(&mut BinaryReader::new(Bytes::from(bytes)))
        };
        assert_eq!(decoded, Ok(map));
    }
    let ints_for_bytes = BinaryReader::new(Bytes::from_static(&[8, 0, 0, 0, 1, 0, 0, 0, 0]));
    let error = Vec::<Bytes>::decode(&mut ints_for_bytes.clone()).unwrap_err();
    assert!(matches!(
        error,
        WireError::WrongElementType {
            found: WireType::I32,
            ..
        }
    ));
    let no_ints = BinaryReader::new(Bytes::from_static(&[8, 0, 0, 0, 0]));
    assert_eq!(Vec::<Bytes>::decode(&mut no_ints.clone()), Ok(Vec::new()));
}

#[test]
fn a_list_may_get_its_count_last() {
    for count in [0, 1, 14, 15, 200, 70_000] {
        let encoded = written!(|writer| {
            let list = writer.list_open(WireType::I8);
            for _ in 0..count {
                writer.i8(3);
            }
            writer.list_close(list, count);
        });
        let back = read!(encoded, |reader| Vec::<i8>::decode(reader).unwrap());
        assert_eq!(back, vec![3; count]);
    }
}

#[test]
fn frames_announce_what_follows_them() {
    let mut buf = b"before".to_vec();
    let at = begin_frame(&mut buf);
    buf.extend_from_slice(b"body");
    end_frame(&mut buf, at).unwrap();
    assert_eq!(buf, b"before\0\0\0\x04body");
}

#[test]
fn required_fields_are_missed_by_name_and_others_are_not() {
    let error = read!(
        written!(|writer| thrift1::TScan::default().encode(writer)),
        |reader| thrift2::TGet::decode(reader).unwrap_err()
    );
    assert_eq!(
        error.to_string(),
        "Required field 'row' was not present! Struct: TGet"
    );
    assert_eq!(
        thrift2::TDelete::default().delete_type,
        thrift2::TDeleteType::DELETE_COLUMNS
    );
    let family = read!(
        written!(|writer| thrift1::TScan::default().encode(writer)),
        |reader| thrift1::ColumnDescriptor::decode(reader).unwrap()
    );
    assert_eq!((family.max_versions, family.compression.as_str()), (3, "NONE"));
}

/// As in libthrift: a field of a type other than declared is skipped, not misread.
#[test]
fn fields_of_another_type_are_skipped() {
    let row = read!(
        written!(|writer| {
            writer.struct_begin();
            writer.i64_field(1, 5);
            writer.binary_field(2, b"x");
            writer.binary_field(3, b"y");
            writer.struct_end();
        }),
        |reader| thrift1::Mutation::decode(reader).unwrap()
    );
    assert_eq!(
        (row.is_delete, row.column, row.value),
        (false, Some(Bytes::from("x")), Some(Bytes::from("y")))
    );
}

#[test]
fn a_union_needs_exactly_one_known_member() {
    for (members, found) in [(vec![], 0), (vec![9], 0), (vec![1, 2], 2), (vec![1, 1], 2)] {
        let error = read!(
            written!(|writer| {
                writer.struct_begin();
                for id in &members {
                    writer.field_begin(*id, WireType::Struct);
                    thrift2::TPut::default().encode(writer);
                }
                writer.struct_end();
            }),
            |reader| thrift2::TMutation::decode(reader).unwrap_err()
        );
        assert_eq!(
            error,
            WireError::NotOneMember {
                union: "TMutation",
                found
            }
        );
    }
}

#[test]
fn strings_are_utf8_and_binaries_need_not_be() {
    let encoded = written!(|writer| writer.binary(&[0xc3, 0x28]));
    let (binary, compact) = encoded.clone();
    assert_eq!(
        BinaryReader::new(Bytes::from(binary)).string(),
        Err(WireError::NotUtf8 { offset: 6 })
    );
    assert_eq!(
        CompactReader::new(Bytes::from(compact)).string(),
        Err(WireError::NotUtf8 { offset: 3 })
    );
    assert_eq!(
        read!(encoded, |reader| reader.binary().unwrap()),
        Bytes::from_static(&[0xc3, 0x28])
    );
}

fn header_of(protocol: Protocol, bytes: &[u8]) -> Result<MessageHeader, WireError> {
    let bytes = Bytes::copy_from_slice(bytes);
    if protocol == Protocol::Compact {
        CompactReader::new(bytes).message_begin()
    } else {
        BinaryReader::new(bytes).message_begin()
    }
}

/// A whole call without arguments, as clients write it.
fn call(protocol: Protocol, name: &str, seqid: i32) -> Vec<u8> {
    let mut out = Vec::new();
    match protocol {
        Protocol::BinaryStrict => BinaryWriter::new(&mut out).message_begin(name, MessageKind::Call, seqid),
        Protocol::Compact => CompactWriter::new(&mut out).message_begin(name, MessageKind::Call, seqid),
        Protocol::BinaryOld => {
            let writer = &mut BinaryWriter::new(&mut out);
            writer.string(name);
            writer.i8(MessageKind::Call as i8);
            writer.i32(seqid);
        }
    }
    out.push(0);
    out
}

#[test]
fn message_headers_of_all_protocols() {
    for protocol in PROTOCOLS {
        for seqid in [0, 1, -1, i32::MIN, i32::MAX] {
            let header = header_of(protocol, &call(protocol, "getRow", seqid)).unwrap();
            assert_eq!(
                (header.name(), header.kind, header.seqid),
                ("getRow", MessageKind::Call, seqid)
            );
        }
        let long = "x".repeat(METHOD_NAME_BYTES_MAX + 1);
        let error = header_of(protocol, &call(protocol, &long, 1)).unwrap_err();
        assert_eq!(error, WireError::NameTooLong { len: 257 });
    }
    let strict = |bytes: &[u8]| header_of(Protocol::BinaryStrict, bytes).unwrap_err();
    assert_eq!(
        strict(&[0x80, 2, 0, 1]),
        WireError::UnknownVersion { header: 0x8002_0001 }
    );
    assert_eq!(strict(&[0x80, 1, 0, 9]), WireError::UnknownKind { code: 9 });
    assert!(matches!(
        strict(&[0x80, 1, 0, 1, 0xff, 0xff, 0xff, 0xff]),
        WireError::NegativeSize { size: -1, .. }
    ));
    let compact = |bytes: &[u8]| header_of(Protocol::Compact, bytes).unwrap_err();
    assert_eq!(
        compact(&[0x82, 0x22]),
        WireError::UnknownVersion { header: 0x8222 }
    );
    assert_eq!(compact(&[0x82, 0xe1]), WireError::UnknownKind { code: 7 });
}
