//! A table of messages that no well-behaved client sends, in each protocol.
//!
//! Two tests go through it: here, the cost of decoding one (`idl/tests/refused.rs`); and with a
//! running server over every transport (`tests/e2e/tests/wire/hostile.rs`).

use basalt_idl::call::write_call;
use basalt_idl::wire::{BinaryWriter, CompactWriter, Protocol, WireType};

mod build;
mod lies;
mod shapes;

use build::{Build, TYPES};

/// Sizes and counts that lie.
const LIES: [i64; 6] = [-1, i32::MIN as i64, i32::MAX as i64, 1 << 30, 1 << 20, 70_000];
/// One message.
#[derive(Debug)]
pub(crate) struct Bad {
    /// Description of the flaw.
    pub(crate) what: String,
    /// Without framing.
    pub(crate) message: Vec<u8>,
    /// Whether it may be understood all the same: unknown fields are skipped, and names of methods may be
    /// anything.
    pub(crate) may_pass: bool,
}

fn bad(what: impl Into<String>, message: Build) -> Bad {
    Bad {
        what: what.into(),
        message: message.done(),
        may_pass: false,
    }
}

fn odd(what: impl Into<String>, message: Build) -> Bad {
    Bad {
        may_pass: true,
        ..bad(what, message)
    }
}

/// All of them.
pub(crate) fn table(protocol: Protocol) -> Vec<Bad> {
    [
        headers(protocol),
        types(protocol),
        lies::sizes(protocol),
        lies::counts(protocol),
        lies::depths(protocol),
        shapes::structures(protocol),
        shapes::crowds(protocol),
        shapes::truncations(protocol),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `get` with its table, and the row that comes; the arguments are open.
fn get(protocol: Protocol) -> Build {
    Build::call(protocol, "get").text_field(1, "t")
}

/// A whole `get` but for the end of its arguments.
fn whole_get(protocol: Protocol) -> Build {
    get(protocol).field(WireType::Struct, 2).text_field(1, "r").stop()
}

fn headers(protocol: Protocol) -> Vec<Bad> {
    let new = || Build::new(protocol);
    let kinds: &[u8] = match protocol {
        Protocol::Compact => &[0, 2, 3, 5, 6, 7],
        _ => &[0, 2, 3, 5, 6, 7, 17, 128, 255],
    };
    let mut all: Vec<Bad> = kinds
        .iter()
        .map(|kind| bad(format!("kind {kind}"), new().header(*kind, 3, b"get").stop()))
        .collect();
    for claimed in LIES.into_iter().chain([257]) {
        let what = format!("a name of {claimed} bytes");
        all.push(bad(what, new().header(1, claimed, b"get").stop()));
    }
    let longest = "x".repeat(256);
    for name in ["noSuchMethod", "GET", "get ", "", "g\u{e9}t", "get\0", &longest] {
        let unknown = Build::call(protocol, name).stop();
        all.push(bad(format!("the method {name:?}"), unknown));
    }
    all.push(bad(
        "a name that is no text",
        new().header(1, 3, b"g\xfft").stop(),
    ));
    let versions: &[&[u8]] = match protocol {
        Protocol::Compact => &[&[0x82, 0x22], &[0x82, 0x20], &[0x81, 0x21], &[0x83, 0x21]],
        _ => &[
            &[0x80, 2, 0, 1],
            &[0x80, 0, 0, 1],
            &[0x81, 1, 0, 1],
            &[0xff, 0xff, 0xff, 0xff],
        ],
    };
    for version in versions {
        let rest = &whole_get(protocol).stop().done()[version.len()..];
        all.push(bad(
            format!("version {version:02x?}"),
            new().raw(version).raw(rest),
        ));
    }
    all
}

/// Fields of the wrong type, and types that there are not.
fn types(protocol: Protocol) -> Vec<Bad> {
    let mut all = Vec::new();
    for of in TYPES {
        if of != WireType::Binary {
            let message = Build::call(protocol, "get").field(of, 1).smallest(of, true);
            let message = message
                .field(WireType::Struct, 2)
                .text_field(1, "r")
                .stop()
                .stop();
            all.push(bad(format!("a table that is a {of:?}"), message));
        }
        // With a string it is Thrift 1's `get`.
        if ![WireType::Struct, WireType::Binary].contains(&of) {
            let message = get(protocol).field(of, 2).smallest(of, true).stop();
            all.push(bad(format!("a get that is a {of:?}"), message));
        }
        if of != WireType::Struct {
            let puts = Build::call(protocol, "putMultiple").text_field(1, "t");
            let message = puts
                .field(WireType::List, 2)
                .list(of, 1)
                .smallest(of, false)
                .stop();
            all.push(bad(format!("a list of puts that holds a {of:?}"), message));
        }
        let message = whole_get(protocol).field(of, 99).smallest(of, true).stop();
        all.push(odd(format!("an unknown field that is a {of:?}"), message));
    }
    let codes: &[u8] = match protocol {
        Protocol::Compact => &[14, 15],
        _ => &[1, 5, 7, 9, 17, 18, 127, 128, 255],
    };
    for code in codes {
        let message = whole_get(protocol).field_code(*code, 99).raw(&[0; 8]).stop();
        all.push(bad(format!("a field of type {code}"), message));
        let message = whole_get(protocol).field(WireType::List, 99).list_code(*code, 3);
        all.push(bad(format!("a list of type {code}"), message.raw(&[0; 8]).stop()));
    }
    let message = whole_get(protocol)
        .field(WireType::List, 99)
        .list(WireType::Bool, 1);
    // Binary takes every byte for a boolean.
    all.push(odd("a boolean of 7", message.raw(&[7]).stop()));
    all
}

/// A call as a writer writes it.
pub(crate) fn written<C: basalt_idl::Call>(protocol: Protocol, seqid: i32, args: &C) -> Vec<u8> {
    let mut message = Vec::new();
    match protocol {
        Protocol::Compact => write_call(&mut CompactWriter::new(&mut message), seqid, args),
        _ => write_call(&mut BinaryWriter::new(&mut message), seqid, args),
    }
    if protocol == Protocol::BinaryOld {
        // The old header has no version in front, and the kind behind the name.
        let kind = message[3];
        message.drain(..4);
        message.insert(4 + C::METHOD.name.len(), kind);
    }
    message
}
