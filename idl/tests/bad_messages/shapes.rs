//! Messages whose parts are well-formed and whose whole is not.

use basalt_idl::thrift2::{self, args};
use basalt_idl::wire::{Protocol, WireType};
use bytes::Bytes;

use super::build::Build;
use super::{Bad, bad, get, odd, whole_get, written};

/// Enough of anything to hurt.
const MANY: i64 = 200_000;
/// Structs that do not match the interface.
pub(super) fn structures(protocol: Protocol) -> Vec<Bad> {
    let call = |method| Build::call(protocol, method);
    let mut all = vec![
        bad("no arguments", call("get").stop()),
        bad("no get", get(protocol).stop()),
        bad(
            "a get without a row",
            get(protocol).field(WireType::Struct, 2).stop().stop(),
        ),
        bad("nothing behind the header", call("get")),
        odd("the same field twice", get(protocol).text_field(1, "u").stop()),
        odd(
            "bytes behind the message",
            whole_get(protocol).stop().raw(b"\xde\xad\xbe\xef and more"),
        ),
    ];
    for id in [0, -1, i16::MIN, i16::MAX] {
        let message = whole_get(protocol)
            .field(WireType::I32, id)
            .smallest(WireType::I32, true);
        all.push(odd(format!("field {id}"), message.stop()));
    }
    let mutations = |message: Build| {
        call("checkAndMutate")
            .text_field(1, "t")
            .text_field(2, "r")
            .text_field(3, "f")
            .text_field(4, "q")
            .field(WireType::I32, 5)
            .smallest(WireType::I32, true)
            .field(WireType::Struct, 7)
            .text_field(1, "r")
            .field(WireType::List, 2)
            .list(WireType::Struct, 1)
            .raw(&message.done())
            .stop()
            .stop()
            .stop()
    };
    let new = || Build::new(protocol);
    let put = || new().field(WireType::Struct, 1).text_field(1, "r");
    let put = || put().field(WireType::List, 2).list(WireType::Struct, 0).stop();
    let delete = || new().field(WireType::Struct, 2).text_field(1, "r").stop();
    all.push(bad("a union without a member", mutations(new())));
    all.push(bad(
        "a union with an unknown member",
        mutations(new().text_field(9, "x")),
    ));
    let both = put().raw(&delete().done());
    all.push(bad("a union with two members", mutations(both)));
    let not_text = get(protocol).field(WireType::Struct, 2).text_field(1, "r");
    // 6: filterString is binary; TAuthorization's labels are strings.
    let not_text = not_text.field(WireType::Struct, 8).field(WireType::List, 1);
    let not_text = not_text
        .list(WireType::Binary, 1)
        .text(b"\xff\xfe")
        .stop()
        .stop()
        .stop();
    all.push(bad("a label that is no text", not_text));
    all
}

/// Elements that are really there, each as small as it can be, with a bad one at the end.
pub(super) fn crowds(protocol: Protocol) -> Vec<Bad> {
    let call = |method| Build::call(protocol, method).text_field(1, "t");
    let many = usize::try_from(MANY).expect("it is positive");
    let mutations = call("mutateRow").text_field(2, "r").field(WireType::List, 3);
    let mutations = mutations.list(WireType::Struct, MANY).raw(&vec![0; many]);
    let batches = call("mutateRows")
        .field(WireType::List, 2)
        .list(WireType::Struct, MANY);
    let batches = batches.raw(&vec![0; many]);
    let mut rows = call("getRows")
        .field(WireType::List, 2)
        .list(WireType::Binary, MANY);
    for _ in 0..MANY {
        rows = rows.text(b"");
    }
    let mut attributes = call("getRow").text_field(2, "r").field(WireType::Map, 3);
    attributes = attributes.map(WireType::Binary, WireType::Binary, MANY);
    for index in 0..MANY {
        attributes = attributes.text(&(index as u32).to_be_bytes()).text(b"");
    }
    let mut nested = call("mutateRows").field(WireType::List, 2);
    nested = nested.list(WireType::Struct, MANY / 10);
    for _ in 0..MANY / 10 {
        nested = nested
            .field(WireType::List, 2)
            .list(WireType::Struct, 3)
            .raw(&[0; 3])
            .stop();
    }
    let mut all = Vec::new();
    for (what, message) in [
        ("mutations", mutations),
        ("batches", batches),
        ("rows", rows),
        ("attributes", attributes),
        ("mutations in batches", nested),
    ] {
        all.push(bad(format!("a crowd of {what} without an end"), message.clone()));
        let unknown = message.field_code(if protocol == Protocol::Compact { 15 } else { 255 }, 9);
        all.push(bad(
            format!("a crowd of {what} and a type that is none"),
            unknown.stop(),
        ));
    }
    for method in ["putMultiple", "getMultiple", "deleteMultiple"] {
        let message = call(method).field(WireType::List, 2).list(WireType::Struct, MANY);
        all.push(bad(
            format!("a crowd for {method}"),
            message.raw(&vec![0; many]).stop(),
        ));
    }
    all
}

/// Valid calls, cut at every byte.
pub(super) fn truncations(protocol: Protocol) -> Vec<Bad> {
    let value = thrift2::TColumnValue {
        family: Bytes::from("f"),
        qualifier: Bytes::from("q"),
        value: Bytes::from("value"),
        timestamp: Some(1_700_000_000_000),
        ..Default::default()
    };
    let put = args::Put {
        table: Bytes::from("t"),
        tput: thrift2::TPut {
            row: Bytes::from("row"),
            column_values: vec![value],
            attributes: Some([(Bytes::from("a"), Bytes::from("b"))].into()),
            cell_visibility: Some(thrift2::TCellVisibility {
                expression: Some("a&b".to_owned()),
            }),
            ..Default::default()
        },
    };
    let scan = args::OpenScanner {
        table: Bytes::from("t"),
        tscan: thrift2::TScan {
            start_row: Some(Bytes::from("a")),
            columns: Some(vec![thrift2::TColumn::default()]),
            filter_string: Some(Bytes::from("PageFilter(5)")),
            ..Default::default()
        },
    };
    let mut all = Vec::new();
    for (what, message) in [
        ("put", written(protocol, 5, &put)),
        ("openScanner", written(protocol, 5, &scan)),
    ] {
        for len in 1..message.len() {
            let cut = Build::new(protocol).raw(&message[..len]);
            all.push(bad(format!("the first {len} bytes of {what}"), cut));
        }
    }
    all
}
