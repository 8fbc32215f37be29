//! Goal: no bytes make a decoder, the scanner or the detector panic, run away, or take memory out of
//! proportion.
//! Method: random bytes, and valid messages with random damage, through every entry point; a counting
//! allocator watches the peak of the thread under test.

mod counting;

use basalt_idl::call::MethodDescriptor;
use basalt_idl::schema::{self, Decode, Encode};
use basalt_idl::wire::{
    BinaryReader, BinaryWriter, CompactReader, CompactWriter, DECODED_BYTES_BASE,
    DECODED_BYTES_PER_MESSAGE_BYTE, Detected, MessageKind, MessageScanner, Protocol, RESERVE_BYTES_MAX,
    Reader, Scan, WireError, WireType, Writer, detect,
};
use basalt_idl::{admin, dispatch, thrift1, thrift2};
use bytes::Bytes;
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const PROTOCOLS: [Protocol; 3] = [Protocol::BinaryStrict, Protocol::BinaryOld, Protocol::Compact];

fn methods() -> impl Iterator<Item = &'static MethodDescriptor> {
    [thrift1::SERVICE, thrift2::SERVICE, admin::SERVICE]
        .into_iter()
        .flat_map(|service| service.methods.iter().copied())
}

/// Decodes the bytes as the arguments and as the result of every method. Decoded values must
/// encode, and the encoding must decode. The check without decoding agrees with decoding.
fn decode_as_everything(bytes: &[u8]) {
    for protocol in [Protocol::BinaryStrict, Protocol::Compact] {
        for method in methods() {
            let message = Bytes::copy_from_slice(bytes);
            let checked = match protocol {
                Protocol::Compact => schema::check(&mut CompactReader::new(message.clone()), method.args),
                _ => schema::check(&mut BinaryReader::new(message.clone()), method.args),
            };
            let decoded = (method.args.recode)(protocol, message).map(drop);
            assert_eq!(checked, decoded, "{}", method.name);
            for recode in [method.args.recode, method.recode_result] {
                if let Ok(encoded) = recode(protocol, Bytes::copy_from_slice(bytes)) {
                    let again = recode(protocol, Bytes::from(encoded.clone()));
                    assert_eq!(again, Ok(encoded), "{} does not read what it wrote", method.name);
                }
            }
        }
    }
}

/// Header and skipped body: where a reader says that the message ends.
fn walk<R: Reader>(mut reader: R) -> Result<usize, WireError> {
    reader.message_begin()?;
    reader.skip(WireType::Struct)?;
    Ok(reader.position())
}

/// The scanner finds the end that the reader finds; it never reports one past the bytes, and bytes that come
/// one by one change nothing.
fn scan_like_a_reader(protocol: Protocol, bytes: &[u8]) {
    let message = Bytes::copy_from_slice(bytes);
    let walked = match protocol {
        Protocol::Compact => walk(CompactReader::new(message)),
        _ => walk(BinaryReader::new(message)),
    };
    let limit = bytes.len() + 1;
    let scanned = MessageScanner::new(protocol, limit).feed(bytes);
    match (&walked, &scanned) {
        (Ok(end), Ok(Scan::Complete { len })) => assert_eq!(end, len),
        // The scanner refuses field ids only by their size and does not check that a name is UTF-8.
        (Err(WireError::FieldIdOutOfRange { .. } | WireError::NotUtf8 { .. }), Ok(_)) => {}
        // The reader may have read the header in the other of the two binary forms.
        (Ok(_), Err(WireError::UnknownVersion { .. })) => assert_eq!(protocol, Protocol::BinaryStrict),
        (Ok(_), Err(WireError::NegativeSize { .. } | WireError::NameTooLong { .. })) => {
            assert_eq!(protocol, Protocol::BinaryOld);
        }
        (Ok(end), other) => panic!("{protocol:?}: the reader ends at {end}, the scanner says {other:?}"),
        (Err(_), Ok(Scan::Complete { len })) => {
            panic!("{protocol:?}: {walked:?}, but the scanner ends at {len}")
        }
        (Err(_), _) => {}
    }
    let mut scanner = MessageScanner::new(protocol, limit);
    let by_bytes = (0..=bytes.len())
        .map(|len| scanner.feed(&bytes[..len]))
        .find(|scan| scan != &Ok(Scan::NeedMore));
    let complete = |scan: &Result<Scan, WireError>| matches!(scan, Ok(Scan::Complete { .. }));
    match by_bytes {
        Some(scan) if complete(&scan) || complete(&scanned) => assert_eq!(scan, scanned, "{protocol:?}"),
        Some(_) => assert!(scanned.is_err(), "{protocol:?}: {scanned:?}"),
        None => assert_eq!(scanned, Ok(Scan::NeedMore), "{protocol:?}"),
    }
}

/// A call with much inside, to be damaged.
fn template(protocol: Protocol) -> Vec<u8> {
    fn fill(writer: &mut impl Writer) {
        let cell = thrift2::TColumnValue {
            family: Bytes::from("f"),
            qualifier: Bytes::from("q"),
            value: Bytes::from(vec![9; 20]),
            timestamp: Some(1_700_000_000_000),
            ..Default::default()
        };
        let put = thrift2::TPut {
            row: Bytes::from("row"),
            column_values: vec![cell; 3],
            attributes: Some([(Bytes::from("a"), Bytes::from("b"))].into()),
            cell_visibility: Some(thrift2::TCellVisibility {
                expression: Some("a&b".to_owned()),
            }),
            ..Default::default()
        };
        let mutations = vec![
            thrift2::TMutation::Put(put),
            thrift2::TMutation::DeleteSingle(thrift2::TDelete::default()),
        ];
        let args = thrift2::args::CheckAndMutate {
            row_mutations: thrift2::TRowMutations {
                row: Bytes::from("row"),
                mutations,
            },
            ..Default::default()
        };
        writer.message_begin("checkAndMutate", MessageKind::Call, 5);
        args.encode(writer);
    }
    let mut out = Vec::new();
    match protocol {
        Protocol::Compact => fill(&mut CompactWriter::new(&mut out)),
        _ => fill(&mut BinaryWriter::new(&mut out)),
    }
    out
}

/// A template with some bytes overwritten, and cut.
fn damaged() -> impl Strategy<Value = (Protocol, Vec<u8>)> {
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (any::<bool>(), edits, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(compact, edits, cut, whole)| {
            let protocol = if compact {
                Protocol::Compact
            } else {
                Protocol::BinaryStrict
            };
            let mut bytes = template(protocol);
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if !whole {
                bytes.truncate(cut.index(bytes.len()));
            }
            (protocol, bytes)
        },
    )
}

/// Random bytes do not get far, so most of these are small codes and counts.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => 0..16_u8, 1 => any::<u8>()];
    proptest::collection::vec(byte, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise_in_scanner_reader_and_detector(bytes in noise()) {
        for protocol in PROTOCOLS {
            scan_like_a_reader(protocol, &bytes);
            let mut header = template(protocol);
            let body = 4 + 4 + "checkAndMutate".len() + 4;
            header.truncate(if protocol == Protocol::Compact { 4 + "checkAndMutate".len() } else { body });
            header.extend_from_slice(&bytes);
            scan_like_a_reader(protocol, &header);
        }
        let whole = detect(&bytes);
        prop_assert!(bytes.len() < 8 || whole != Detected::NeedMore);
        prop_assert_eq!(detect(&bytes[..bytes.len().min(8)]), whole);
    }

    #[test]
    fn damage_in_scanner_and_reader((protocol, bytes) in damaged()) {
        scan_like_a_reader(protocol, &bytes);
        scan_like_a_reader(Protocol::BinaryOld, &bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise_in_every_type(bytes in noise()) {
        decode_as_everything(&bytes);
        for method in methods() {
            let _ = dispatch::which_service(method.name, &BinaryReader::new(Bytes::copy_from_slice(&bytes)));
            let _ = dispatch::which_service(method.name, &CompactReader::new(Bytes::copy_from_slice(&bytes)));
        }
    }

    #[test]
    fn damage_in_every_type((protocol, bytes) in damaged()) {
        let header = if protocol == Protocol::Compact { 4 } else { 12 } + "checkAndMutate".len();
        decode_as_everything(bytes.get(header..).unwrap_or_default());
    }
}

/// A count without elements behind it must cost nothing.
#[test]
fn a_count_alone_takes_no_memory() {
    let list: &[u8] = &[12, 0x7f, 0xff, 0xff, 0xff];
    let (result, peak) =
        counting::peak_of(|| Vec::<thrift2::TGet>::decode(&mut BinaryReader::new(Bytes::from_static(list))));
    assert!(matches!(result, Err(WireError::TooManyElements { .. })));
    assert!(peak < 64 << 10, "{peak} bytes");
}

/// Elements that are there but small: little is reserved ahead, so a bad first one costs little.
#[test]
fn a_list_reserves_little_ahead() {
    let count = 100_000_u32;
    let mut bytes = [&[12][..], &count.to_be_bytes()].concat();
    bytes.resize(5 + count as usize, 0);
    let bytes = Bytes::from(bytes);
    let (result, peak) = counting::peak_of(|| Vec::<thrift2::TGet>::decode(&mut BinaryReader::new(bytes)));
    assert!(matches!(
        result,
        Err(WireError::MissingField { field: "row", .. })
    ));
    assert!(peak <= RESERVE_BYTES_MAX + (4 << 10), "{peak} bytes");
}

/// The densest message: every byte an element. Growing a vector may hold the old and the new one.
#[test]
fn the_densest_message_stays_within_the_budget() {
    for count in [500_000_u32, 4_u32 << 20] {
        let mut bytes = [&[12][..], &count.to_be_bytes()].concat();
        bytes.resize(5 + count as usize, 0);
        let len = bytes.len();
        let bytes = Bytes::from(bytes);
        let (result, peak) = counting::peak_of(|| {
            Vec::<thrift1::Mutation>::decode(&mut BinaryReader::new(bytes)).map(|list| list.len())
        });
        let budget = DECODED_BYTES_BASE + len * DECODED_BYTES_PER_MESSAGE_BYTE;
        assert!(
            peak <= 3 * budget,
            "{peak} bytes for a message of {len}: {result:?}"
        );
        assert_eq!(
            result.is_ok(),
            count as usize * size_of::<thrift1::Mutation>() <= budget,
            "{result:?}"
        );
    }
}

/// The scanner's own memory is its stack.
#[test]
fn the_scanner_takes_no_memory_for_long_messages() {
    let mut message = template(Protocol::BinaryStrict);
    message.truncate(12 + "checkAndMutate".len());
    message.extend_from_slice(&[15, 0, 9, 12]);
    message.extend_from_slice(&1_000_000_u32.to_be_bytes());
    message.resize(message.len() + 1_000_001, 0);
    let (scan, peak) =
        counting::peak_of(|| MessageScanner::new(Protocol::BinaryStrict, 16 << 20).feed(&message));
    assert_eq!(scan, Ok(Scan::Complete { len: message.len() }));
    assert!(peak < 8 << 10, "{peak} bytes");
}
