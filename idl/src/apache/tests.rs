//! Cases that the property test `idl/tests/interop.rs` does not reach: types by name, calls, and
//! values that are rejected.

use std::collections::BTreeMap;

use bytes::Bytes;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TFieldIdentifier, TListIdentifier, TOutputProtocol,
    TSerializable, TStructIdentifier, TType,
};

use super::call;
use crate::call::{
    TApplicationException, TApplicationExceptionType, write_application_exception, write_reply,
};
use crate::thrift2::{TColumnValue, TDurability, THBaseException, TIOError, TMutation, TPut, TResult, args};
use crate::wire::{BinaryReader, BinaryWriter, Reader};

fn written(value: &impl TSerializable) -> Vec<u8> {
    let mut bytes = Vec::new();
    value
        .write_to_out_protocol(&mut TBinaryOutputProtocol::new(&mut bytes, true))
        .unwrap();
    bytes
}

fn read<T: TSerializable>(mut bytes: &[u8]) -> thrift::Result<T> {
    T::read_from_in_protocol(&mut TBinaryInputProtocol::new(&mut bytes, true))
}

/// The reason, which the crate's own text of an error leaves out.
fn reason(error: thrift::Error) -> String {
    match error {
        thrift::Error::Protocol(error) => error.message,
        thrift::Error::Application(error) => error.message,
        other => panic!("{other}"),
    }
}

fn put() -> TPut {
    TPut {
        row: Bytes::from_static(b"ada"),
        column_values: vec![TColumnValue {
            family: Bytes::from_static(b"f"),
            qualifier: Bytes::from_static(b"born"),
            value: Bytes::from_static(b"1815"),
            ..TColumnValue::default()
        }],
        durability: Some(TDurability::SKIP_WAL),
        attributes: Some(BTreeMap::from([(Bytes::from_static(b"a"), Bytes::new())])),
        ..TPut::default()
    }
}

#[test]
fn structs_unions_enums_and_arguments_are_read_as_they_were_written() {
    let put = put();
    assert_eq!(read::<TPut>(&written(&put)).unwrap(), put);
    let union = TMutation::Put(put.clone());
    assert_eq!(read::<TMutation>(&written(&union)).unwrap(), union);
    assert_eq!(
        read::<TDurability>(&written(&TDurability(77))).unwrap(),
        TDurability(77)
    );
    let arguments = args::Put {
        table: Bytes::from_static(b"people"),
        tput: put,
    };
    assert_eq!(read::<args::Put>(&written(&arguments)).unwrap(), arguments);
}

/// Writes a struct with one field by hand.
fn with_field(ty: TType, id: i16, value: impl FnOnce(&mut dyn TOutputProtocol)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = TBinaryOutputProtocol::new(&mut bytes, true);
    out.write_struct_begin(&TStructIdentifier::new("any")).unwrap();
    out.write_field_begin(&TFieldIdentifier::new("any", ty, id))
        .unwrap();
    value(&mut out);
    out.write_field_stop().unwrap();
    bytes
}

#[test]
fn fields_of_unknown_numbers_or_other_types_are_skipped() {
    for (ty, id) in [(TType::I64, 99), (TType::I64, 1)] {
        let bytes = with_field(ty, id, |out| out.write_i64(7).unwrap());
        assert_eq!(read::<TIOError>(&bytes).unwrap(), TIOError::default());
    }
}

#[test]
fn values_that_the_interface_does_not_allow_are_rejected_with_the_reason() {
    let rejected = |bytes: &[u8]| reason(read::<TResult>(bytes).unwrap_err());
    let missing = rejected(&[0]);
    assert!(missing.contains("Required field 'columnValues'"), "{missing}");
    let list = |element, size| {
        with_field(TType::List, 2, move |out| {
            out.write_list_begin(&TListIdentifier::new(element, size))
                .unwrap();
            out.write_i64(0).unwrap();
        })
    };
    let wrong = rejected(&list(TType::I64, 1));
    assert!(
        wrong.contains("I64") && wrong.contains("instead of TColumnValue"),
        "{wrong}"
    );
    let negative = rejected(&list(TType::Struct, -1));
    assert!(negative.contains("egative"), "{negative}");
    let none = reason(read::<TMutation>(&[0]).unwrap_err());
    assert!(none.contains("union TMutation needs exactly one"), "{none}");
}

/// Calls `put` on a server that answers with these bytes, and checks the call that it received.
fn answered(reply: &[u8]) -> thrift::Result<Result<(), THBaseException>> {
    let arguments = args::Put {
        table: Bytes::from_static(b"people"),
        tput: put(),
    };
    let (mut sent, mut reply) = (Vec::new(), reply);
    let result = call(
        &arguments,
        5,
        &mut TBinaryInputProtocol::new(&mut reply, true),
        &mut TBinaryOutputProtocol::new(&mut sent, true),
    );
    let mut reader = BinaryReader::new(sent.into());
    let header = reader.message_begin().unwrap();
    assert_eq!((header.name(), header.seqid), ("put", 5));
    assert_eq!(
        <args::Put as crate::Decode>::decode(&mut reader).unwrap(),
        arguments
    );
    result
}

#[test]
fn calls_return_results_declared_exceptions_and_failures() {
    let mut reply = Vec::new();
    write_reply::<args::Put, _>(&mut BinaryWriter::new(&mut reply), 5, &Ok(()));
    assert_eq!(answered(&reply).unwrap(), Ok(()));

    let thrown = THBaseException::Io(TIOError {
        message: Some("no".to_owned()),
        can_retry: Some(true),
    });
    reply.clear();
    write_reply::<args::Put, _>(&mut BinaryWriter::new(&mut reply), 5, &Err(thrown.clone()));
    assert_eq!(answered(&reply).unwrap(), Err(thrown));

    reply.clear();
    let failure = TApplicationException::new(TApplicationExceptionType::INTERNAL_ERROR, "broken");
    write_application_exception(&mut BinaryWriter::new(&mut reply), "put", 5, &failure);
    let error = reason(answered(&reply).unwrap_err());
    assert!(error.contains("broken"), "{error}");

    reply.clear();
    write_reply::<args::Put, _>(&mut BinaryWriter::new(&mut reply), 6, &Ok(()));
    let error = reason(answered(&reply).unwrap_err());
    assert!(error.contains("expected 5 got 6"), "{error}");
}
