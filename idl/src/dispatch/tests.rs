//! Goal: the service of each shared method name is recognised by its arguments, in both protocols.
//! Method: encode real arguments of either service, and the sparse and odd ones that clients can
//! send.

use bytes::Bytes;

use super::{Service, peek_fields, service_at, which_service};
use crate::schema::Encode;
use crate::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter, WireError, WireType, Writer};
use crate::{Call, admin, thrift1, thrift2};

/// The result of `which_service` for these argument bytes in both protocols.
fn service_of(method: &str, binary: Vec<u8>, compact: Vec<u8>) -> Service {
    let from_binary = which_service(method, &BinaryReader::new(Bytes::from(binary))).unwrap();
    let from_compact = which_service(method, &CompactReader::new(Bytes::from(compact))).unwrap();
    assert_eq!(from_binary, from_compact, "{method}");
    from_binary
}

fn bytes_of(args: &impl Encode) -> (Vec<u8>, Vec<u8>) {
    let (mut binary, mut compact) = (Vec::new(), Vec::new());
    args.encode(&mut BinaryWriter::new(&mut binary));
    args.encode(&mut CompactWriter::new(&mut compact));
    (binary, compact)
}

/// Checks that a call with these arguments goes where it should.
fn check<C: Call>(expected: Service, args: &C) {
    let (binary, compact) = bytes_of(args);
    assert_eq!(
        service_of(C::METHOD.name, binary, compact),
        expected,
        "{}",
        C::METHOD.name
    );
}

/// An argument that is there; most of Thrift 1's may be absent.
#[expect(clippy::unnecessary_wraps, reason = "the arguments are options")]
fn some(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

#[test]
fn table_calls_differ_in_the_type_of_the_first_argument() {
    use Service::{Thrift1, Thrift2};
    use thrift2::TTableName;
    let name = || TTableName {
        ns: None,
        qualifier: Bytes::from_static(b"t"),
    };
    check(
        Thrift1,
        &thrift1::args::EnableTable {
            table_name: some("t"),
        },
    );
    check(Thrift2, &thrift2::args::EnableTable { table_name: name() });
    check(
        Thrift1,
        &thrift1::args::DisableTable {
            table_name: some("t"),
        },
    );
    check(Thrift2, &thrift2::args::DisableTable { table_name: name() });
    check(
        Thrift1,
        &thrift1::args::IsTableEnabled {
            table_name: some("t"),
        },
    );
    check(Thrift2, &thrift2::args::IsTableEnabled { table_name: name() });
    check(
        Thrift1,
        &thrift1::args::DeleteTable {
            table_name: some("t"),
        },
    );
    check(Thrift2, &thrift2::args::DeleteTable { table_name: name() });
    check(
        Thrift1,
        &thrift1::args::CreateTable {
            table_name: some("t"),
            column_families: Some(Vec::new()),
        },
    );
    check(Thrift2, &thrift2::args::CreateTable::default());
}

#[test]
fn get_and_mutate_row_differ_in_the_type_of_the_second_argument() {
    let one = thrift1::args::Get {
        table_name: some("t"),
        row: some("r"),
        column: some("f:q"),
        attributes: None,
    };
    check(Service::Thrift1, &one);
    check(Service::Thrift2, &thrift2::args::Get::default());
    let one = thrift1::args::MutateRow {
        table_name: some("t"),
        row: some("r"),
        ..Default::default()
    };
    check(Service::Thrift1, &one);
    check(Service::Thrift2, &thrift2::args::MutateRow::default());
}

#[test]
fn increment_and_append_differ_in_the_type_of_the_first_argument() {
    check(
        Service::Thrift1,
        &thrift1::args::Increment {
            increment: Some(thrift1::TIncrement::default()),
        },
    );
    check(Service::Thrift2, &thrift2::args::Increment::default());
    check(
        Service::Thrift1,
        &thrift1::args::Append {
            append: Some(thrift1::TAppend::default()),
        },
    );
    check(Service::Thrift2, &thrift2::args::Append::default());
}

#[test]
fn check_and_put_has_a_fourth_argument_in_thrift2_only() {
    let mut one = thrift1::args::CheckAndPut {
        table_name: some("t"),
        row: some("r"),
        column: some("f:q"),
        value: some("v"),
        mput: Some(thrift1::Mutation::default()),
        attributes: None,
    };
    check(Service::Thrift1, &one);
    one.mput = None;
    check(Service::Thrift1, &one);
    let mut two = thrift2::args::CheckAndPut {
        value: some("v"),
        ..Default::default()
    };
    check(Service::Thrift2, &two);
    two.value = None;
    check(Service::Thrift2, &two);
}

/// Without field 4, and with the fields in another order, the content of field 6 still decides.
#[test]
fn check_and_put_looks_inside_the_put() {
    fn args(writer: &mut impl Writer) {
        writer.struct_begin();
        writer.field_begin(6, WireType::Struct);
        thrift2::TPut::default().encode(writer);
        writer.binary_field(1, b"t");
        writer.struct_end();
    }
    let (mut binary, mut compact) = (Vec::new(), Vec::new());
    args(&mut BinaryWriter::new(&mut binary));
    args(&mut CompactWriter::new(&mut compact));
    assert_eq!(service_of("checkAndPut", binary, compact), Service::Thrift2);
}

#[test]
fn some_calls_cannot_be_told_apart() {
    let entity = thrift2::TAccessControlEntity::default;
    check(Service::Either, &thrift2::args::Grant { info: entity() });
    check(Service::Either, &thrift2::args::Revoke { info: entity() });
    check(Service::Either, &thrift1::args::GetClusterId {});
    check(Service::Either, &thrift1::args::GetThriftServerType {});
}

/// A call without the deciding argument is invalid in both services; neither may be guessed.
#[test]
fn a_missing_argument_decides_nothing() {
    check(Service::Either, &thrift1::args::Get::default());
    check(Service::Either, &thrift1::args::EnableTable::default());
    check(Service::Either, &thrift1::args::Append::default());
}

#[test]
fn all_other_names_are_in_one_service() {
    let mut shared = Vec::new();
    let nothing = BinaryReader::new(Bytes::new());
    for method in thrift1::Method::ALL {
        if thrift2::Method::from_name(method.name()).is_some() {
            shared.push(method.name());
        } else {
            assert_eq!(which_service(method.name(), &nothing), Ok(Service::Thrift1));
        }
    }
    assert_eq!(shared.len(), 14, "{shared:?}");
    for method in thrift2::Method::ALL
        .iter()
        .filter(|method| !shared.contains(&method.name()))
    {
        assert_eq!(which_service(method.name(), &nothing), Ok(Service::Thrift2));
    }
    for method in admin::Method::ALL {
        assert_eq!(which_service(method.name(), &nothing), Ok(Service::Admin));
    }
    assert_eq!(which_service("getNothing", &nothing), Ok(Service::Unknown));
}

#[test]
fn malformed_arguments_are_an_error() {
    let cut = BinaryReader::new(Bytes::from_static(&[11, 0]));
    assert!(matches!(
        which_service("get", &cut),
        Err(WireError::Truncated { .. })
    ));
}

#[test]
fn peeking_lists_fields_and_does_not_move_the_reader() {
    let (binary, _) = bytes_of(&thrift1::args::Get {
        table_name: some("t"),
        row: some("r"),
        column: some("f:q"),
        attributes: Some(std::collections::BTreeMap::new()),
    });
    let reader = BinaryReader::new(Bytes::from(binary));
    let fields = [1, 2, 3].map(|id| (id, WireType::Binary));
    assert_eq!(peek_fields(&reader, 3).unwrap(), fields);
    assert_eq!(
        peek_fields(&reader, 100).unwrap().last(),
        Some(&(4, WireType::Map))
    );
}

/// At a place of one service its own methods and ours answer, whatever the arguments look like.
#[test]
fn a_place_of_one_service_answers_its_names_and_ours() {
    for (service, method) in [
        (Service::Thrift1, "getThriftServerType"),
        (Service::Thrift2, "getThriftServerType"),
        (Service::Thrift1, "mutateRow"),
        (Service::Thrift2, "mutateRow"),
        (Service::Thrift1, "scannerOpen"),
        (Service::Thrift2, "openScanner"),
    ] {
        assert_eq!(service_at(service, method), service, "{method}");
    }
    for service in [Service::Thrift1, Service::Thrift2] {
        assert_eq!(service_at(service, "basaltFlush"), Service::Admin);
        assert_eq!(service_at(service, "noSuchMethod"), Service::Unknown);
    }
    assert_eq!(service_at(Service::Thrift1, "openScanner"), Service::Unknown);
    assert_eq!(service_at(Service::Thrift2, "scannerOpen"), Service::Unknown);
}
