//! Goal: detection never takes one protocol for another. Method: openings of every protocol with all
//! that may vary in them, of which every prefix must give the protocol or ask for more; and all prefixes
//! up to eight bytes, on which no further byte may change a decision.

use proptest::prelude::*;

use super::*;
use crate::zookeeper::CONNECT_BYTES;

/// Lengths of frames that are recognised: less than 352 MiB, and none that begins as an empty line of
/// text.
fn frame_length() -> impl Strategy<Value = u32> {
    let is_text = |length: &u32| matches!(length >> 16, 0x0a0a | 0x0d0a);
    prop_oneof![0_u32..1 << 20, 0_u32..0x1600_0000, Just(44_u32), Just(45_u32)]
        .prop_filter("an empty line", move |length| !is_text(length))
}

/// The first bytes of a message, as each protocol begins it.
fn message() -> impl Strategy<Value = (Protocol, Vec<u8>)> {
    let strict = any::<[u8; 2]>().prop_map(|rest| {
        let bytes = [&[0x80, 0x01][..], &rest].concat();
        (Protocol::BinaryStrict, bytes)
    });
    // Any of eight message types; version 1.
    let compact =
        (0_u8..8, any::<u8>()).prop_map(|(kind, rest)| (Protocol::Compact, vec![0x82, kind << 5 | 1, rest]));
    let old = (1..=METHOD_NAME_BYTES_MAX as u32, "[a-zA-Z]").prop_map(|(length, letter)| {
        let bytes = [&length.to_be_bytes()[..], letter.as_bytes()].concat();
        (Protocol::BinaryOld, bytes)
    });
    prop_oneof![strict, compact, old]
}

fn thrift() -> impl Strategy<Value = (Vec<u8>, Detected)> {
    let framed = prop_oneof![Just(None), frame_length().prop_map(Some)];
    (message(), framed).prop_map(|((protocol, message), length)| {
        let framed = length.is_some();
        let length = length.map_or(Vec::new(), |length| length.to_be_bytes().to_vec());
        let detected = Detected::Thrift { protocol, framed };
        ([length, message].concat(), detected)
    })
}

fn hbase() -> impl Strategy<Value = (Vec<u8>, Detected)> {
    let rpc = any::<[u8; 2]>().prop_map(|rest| [&b"HBas"[..], &rest].concat());
    prop_oneof![rpc, Just(b"Regist".to_vec()), Just(b"Securi".to_vec())]
        .prop_map(|bytes| (bytes, Detected::HBaseRpc))
}

fn zookeeper() -> impl Strategy<Value = (Vec<u8>, Detected)> {
    let session = (proptest::sample::select(&CONNECT_BYTES), any::<[u8; 8]>()).prop_map(|(length, zxid)| {
        let bytes = [&length.to_be_bytes()[..], &[0; 4], &zxid].concat();
        (bytes, Detected::ZooKeeper)
    });
    let words = [
        "ruok", "srvr", "stat", "mntr", "conf", "isro", "envi", "cons", "dump",
    ];
    let word = (proptest::sample::select(words.to_vec()), "\n?")
        .prop_map(|(word, end)| (format!("{word}{end}").into_bytes(), Detected::ZooKeeperWord));
    prop_oneof![session, word]
}

fn others() -> impl Strategy<Value = (Vec<u8>, Detected)> {
    let methods = [
        "GET", "POST", "OPTIONS", "HEAD", "PUT", "DELETE", "TRACE", "CONNECT", "PATCH",
    ];
    let http = proptest::sample::select(methods.to_vec())
        .prop_map(|method| (format!("{method} / HTTP/1.1").into_bytes(), Detected::Http));
    let tls = (0_u8..5, any::<[u8; 2]>())
        .prop_map(|(minor, length)| ([&[0x16, 3, minor][..], &length, &[1]].concat(), Detected::Tls));
    let sasl = "[A-Z0-9_-]{1,20}".prop_map(|name| {
        let length = (name.len() as u32).to_be_bytes();
        ([&[1][..], &length, name.as_bytes()].concat(), Detected::Sasl)
    });
    prop_oneof![http, tls, sasl]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn every_prefix_of_an_opening_is_of_its_protocol_or_undecided(
        (opening, expected) in prop_oneof![4 => thrift(), 1 => hbase(), 1 => zookeeper(), 1 => others()],
        rest in proptest::collection::vec(any::<u8>(), 0..12),
    ) {
        let sent = [&opening[..], &rest].concat();
        for end in 0..=sent.len() {
            let found = detect(&sent[..end]);
            prop_assert!(
                found == expected || (found == Detected::NeedMore && end < opening.len().min(8)),
                "{found:?} instead of {expected:?} from {:x?}", &sent[..end]
            );
        }
    }
}

/// Adds every byte to an undecided prefix. Decided ones keep their decision with any byte behind them.
fn extend(prefix: &[u8], until: usize, decided: &mut u64) {
    for byte in 0..=u8::MAX {
        let next = [prefix, &[byte]].concat();
        let found = detect(&next);
        if found == Detected::NeedMore {
            assert!(next.len() < 8, "eight bytes do not decide: {next:x?}");
            if next.len() < until {
                extend(&next, until, decided);
            }
            continue;
        }
        *decided += 1;
        for behind in [0, 1, b'a', 0x80, 0x82, 0xff] {
            let longer = [&next[..], &[behind; 6]].concat();
            for end in next.len()..=longer.len() {
                assert_eq!(detect(&longer[..end]), found, "{:x?}", &longer[..end]);
            }
        }
    }
}

/// All prefixes of one and two bytes; behind lengths at the edges, all prefixes up to eight bytes.
#[test]
fn no_further_byte_changes_a_decision() {
    let mut decided = 0;
    extend(b"", 2, &mut decided);
    let edges = [
        0,
        1,
        2,
        43,
        44,
        45,
        46,
        255,
        256,
        0x0100_0000,
        0x0100_0001,
        0x15ff_ffff,
    ];
    let names = [METHOD_NAME_BYTES_MAX as u32, METHOD_NAME_BYTES_MAX as u32 + 1];
    for length in edges.into_iter().chain(names) {
        extend(&length.to_be_bytes(), 8, &mut decided);
    }
    for word in [&b"HB"[..], b"Re", b"Se", b"GE", b"PO", b"ru", b"st", b"co"] {
        extend(word, 8, &mut decided);
    }
    assert!(decided > 10_000, "{decided}");
}
