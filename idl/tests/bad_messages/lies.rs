//! Lengths and counts that are not there, and values that are nested too deep.

use basalt_idl::wire::{Protocol, WireType};

use super::build::{Build, TYPES};
use super::{Bad, LIES, bad, get, odd, whole_get};

/// How deep values are nested; the limit is 64 with the arguments.
const DEPTHS: [usize; 6] = [65, 66, 100, 10_000, 100_000, 1_000_000];

/// Lengths of strings.
pub(super) fn sizes(protocol: Protocol) -> Vec<Bad> {
    let mut all = Vec::new();
    for claimed in LIES {
        let lie = |message: Build| message.size(claimed).raw(b"some bytes").stop().stop();
        let places = [
            ("a table", Build::call(protocol, "get").field(WireType::Binary, 1)),
            (
                "a row",
                get(protocol)
                    .field(WireType::Struct, 2)
                    .field(WireType::Binary, 1),
            ),
            (
                "an unknown field",
                whole_get(protocol).field(WireType::Binary, 99),
            ),
            (
                "a list's element",
                whole_get(protocol)
                    .field(WireType::List, 99)
                    .list(WireType::Binary, 1),
            ),
            (
                "a map's key",
                whole_get(protocol)
                    .field(WireType::Map, 99)
                    .map(WireType::Binary, WireType::Binary, 1),
            ),
        ];
        for (place, message) in places {
            all.push(bad(format!("{place} of {claimed} bytes"), lie(message)));
        }
    }
    if protocol == Protocol::Compact {
        for (of, id) in [(WireType::I32, 99), (WireType::I64, 99), (WireType::Binary, 1)] {
            let message = whole_get(protocol).field(of, id).raw(&[0xff; 11]).stop();
            all.push(bad(format!("a {of:?} whose varint does not end"), message));
        }
    }
    all
}

/// Counts of containers.
pub(super) fn counts(protocol: Protocol) -> Vec<Bad> {
    let mut all = Vec::new();
    for claimed in LIES {
        for of in TYPES {
            let message = whole_get(protocol).field(WireType::List, 99).list(of, claimed);
            let what = format!("an unknown list of {claimed} {of:?}");
            all.push(bad(what, message.raw(&[0; 20]).stop()));
            let message = whole_get(protocol).field(WireType::Map, 99).map(of, of, claimed);
            let what = format!("an unknown map of {claimed} {of:?}");
            all.push(bad(what, message.raw(&[0; 20]).stop()));
        }
        let set = whole_get(protocol)
            .field(WireType::Set, 99)
            .list(WireType::I32, claimed);
        all.push(bad(
            format!("an unknown set of {claimed}"),
            set.raw(&[0; 20]).stop(),
        ));
        for (method, id, of) in [
            ("putMultiple", 2, WireType::Struct),
            ("getMultiple", 2, WireType::Struct),
            ("mutateRows", 2, WireType::Struct),
            ("getRows", 2, WireType::Binary),
        ] {
            let message = Build::call(protocol, method).text_field(1, "t");
            let message = message.field(WireType::List, id).list(of, claimed);
            all.push(bad(
                format!("{method} of {claimed}"),
                message.raw(&[0; 20]).stop(),
            ));
        }
        let message = Build::call(protocol, "getRow")
            .text_field(1, "t")
            .text_field(2, "r");
        let message = message
            .field(WireType::Map, 3)
            .map(WireType::Binary, WireType::Binary, claimed);
        all.push(bad(format!("{claimed} attributes"), message.raw(&[0; 20]).stop()));
    }
    all
}

/// Nesting, in fields that are known and in those that are not.
pub(super) fn depths(protocol: Protocol) -> Vec<Bad> {
    let containers = [
        (WireType::Struct, false),
        (WireType::List, false),
        (WireType::Set, false),
        (WireType::Map, false),
        (WireType::Map, true),
    ];
    let mut all = Vec::new();
    for (of, in_key) in containers {
        for depth in DEPTHS {
            let what = format!("{of:?} nested {depth} deep, in keys: {in_key}");
            let message = whole_get(protocol).nested(of, in_key, 99, depth).stop();
            all.push(bad(format!("{what}, unknown"), message));
            let message = get(protocol).nested(of, in_key, 2, depth).stop();
            all.push(bad(format!("{what}, known"), message));
        }
        for depth in [2, 62] {
            let what = format!("{of:?} nested {depth} deep, in keys: {in_key}, unknown");
            all.push(odd(
                what,
                whole_get(protocol).nested(of, in_key, 99, depth).stop(),
            ));
        }
    }
    all
}
