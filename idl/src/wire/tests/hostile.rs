//! Goal: depth, counts, lengths and memory are bounded. Method: messages that lie about each of them.

use super::*;

/// Values nested to `depth`, each kind of container in turn or one kind only.
fn nested(protocol: Protocol, kind: WireType, depth: usize) -> Vec<u8> {
    let compact = protocol == Protocol::Compact;
    let level: &[u8] = match (kind, compact) {
        (WireType::Struct, true) => &[0x1c],
        (WireType::Struct, false) => &[12, 0, 1],
        (WireType::List, true) => &[0x19],
        (WireType::List, false) => &[15, 0, 0, 0, 1],
        (WireType::Set, true) => &[0x1a],
        (WireType::Set, false) => &[14, 0, 0, 0, 1],
        (WireType::Map, true) => &[1, 0x3b, 0],
        (WireType::Map, false) => &[3, 13, 0, 0, 0, 1, 0],
        other => panic!("{other:?} holds nothing"),
    };
    let innermost: &[u8] = match (kind, compact) {
        (WireType::Struct, _) | (WireType::Map, true) => &[0],
        (WireType::Map, false) => &[3, 3, 0, 0, 0, 0],
        (_, true) => &[0x03],
        (_, false) => &[3, 0, 0, 0, 0],
    };
    let mut out = level.repeat(depth - 1);
    out.extend_from_slice(innermost);
    if kind == WireType::Struct {
        out.extend(std::iter::repeat_n(0, depth - 1));
    }
    out
}

/// Runs on a small stack, so that recursion without a bound would crash the test.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn depth_is_bounded_in_every_container() {
    on_small_stack(|| {
        for protocol in PROTOCOLS {
            for kind in [WireType::Struct, WireType::List, WireType::Set, WireType::Map] {
                let deepest = nested(protocol, kind, MAX_DEPTH);
                let len = deepest.len();
                assert_eq!(skip(protocol, kind, deepest), Ok(len), "{protocol:?} {kind:?}");
                for depth in [MAX_DEPTH + 1, 1_000_000] {
                    let error = skip(protocol, kind, nested(protocol, kind, depth)).unwrap_err();
                    assert!(
                        matches!(error, WireError::TooDeep { .. }),
                        "{protocol:?} {kind:?}: {error}"
                    );
                }
            }
        }
    });
}

/// Depth is bounded inside a message, too: in an unknown field of the arguments, in a known field
/// of the wrong shape, and in the scanner, which sees no difference.
#[test]
fn depth_is_bounded_in_messages() {
    on_small_stack(|| {
        for (protocol, id) in PROTOCOLS
            .into_iter()
            .flat_map(|protocol| [(protocol, 2_u8), (protocol, 9)])
        {
            let mut args = match protocol {
                Protocol::Compact => vec![id << 4 | 0x0c],
                _ => vec![12, 0, id],
            };
            args.extend(nested(protocol, WireType::Struct, 1_000_000));
            args.push(0);
            let mut message = call(protocol, "get", 1);
            message.pop();
            message.extend_from_slice(&args);
            let mut scanner = MessageScanner::new(protocol, 16 << 20);
            assert!(matches!(scanner.feed(&message), Err(WireError::TooDeep { .. })));
            let error = if protocol == Protocol::Compact {
                thrift2::args::Get::decode(&mut CompactReader::new(Bytes::from(args))).unwrap_err()
            } else {
                thrift2::args::Get::decode(&mut BinaryReader::new(Bytes::from(args))).unwrap_err()
            };
            assert!(matches!(error, WireError::TooDeep { .. }), "{error}");
        }
    });
}

#[test]
fn counts_and_lengths_are_checked_against_the_bytes_left() {
    let binary =
        |wire_type, bytes: &[u8]| skip(Protocol::BinaryStrict, wire_type, bytes.to_vec()).unwrap_err();
    let compact = |wire_type, bytes: &[u8]| skip(Protocol::Compact, wire_type, bytes.to_vec()).unwrap_err();
    let most = [0x7f, 0xff, 0xff, 0xff];
    for code in [2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15] {
        let list = [&[code], &most[..], &[0; 100]].concat();
        assert!(matches!(
            binary(WireType::List, &list),
            WireError::TooManyElements { left: 100, .. }
        ));
        let map = [&[code, code], &most[..], &[0; 100]].concat();
        assert!(matches!(
            binary(WireType::Map, &map),
            WireError::TooManyElements { left: 100, .. }
        ));
    }
    for code in 1..=12 {
        let list = [&[0xf0 | code, 0xff, 0xff, 0xff, 0xff, 7], &[0; 100][..]].concat();
        assert!(matches!(
            compact(WireType::List, &list),
            WireError::TooManyElements { left: 100, .. }
        ));
        let map = [&[0xff, 0xff, 0xff, 0xff, 7, code << 4 | code], &[0; 100][..]].concat();
        assert!(matches!(
            compact(WireType::Map, &map),
            WireError::TooManyElements { left: 100, .. }
        ));
    }
    // One element more than fits, and as many as fit.
    assert!(matches!(
        binary(WireType::List, &[10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]),
        WireError::TooManyElements { .. }
    ));
    assert_eq!(
        skip(
            Protocol::BinaryStrict,
            WireType::List,
            vec![10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
        ),
        Ok(13)
    );
    let negative = [0xff; 4];
    assert!(matches!(
        binary(WireType::Binary, &negative),
        WireError::NegativeSize { size: -1, .. }
    ));
    assert!(matches!(
        binary(WireType::List, &[&[11], &negative[..]].concat()),
        WireError::NegativeSize { .. }
    ));
    assert!(matches!(
        binary(WireType::Map, &[&[11, 11], &negative[..]].concat()),
        WireError::NegativeSize { .. }
    ));
    let negative = [0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(matches!(
        compact(WireType::Binary, &negative),
        WireError::NegativeSize { size: -1, .. }
    ));
    assert!(matches!(
        compact(WireType::List, &[&[0xf8], &negative[..]].concat()),
        WireError::NegativeSize { .. }
    ));
    assert!(matches!(
        compact(WireType::Map, &negative),
        WireError::NegativeSize { .. }
    ));
    assert!(matches!(
        binary(WireType::Binary, &[0, 0, 0, 9, 1]),
        WireError::Truncated {
            needed: 9,
            left: 1,
            ..
        }
    ));
    assert!(matches!(
        compact(WireType::Binary, &[9, 1]),
        WireError::Truncated {
            needed: 9,
            left: 1,
            ..
        }
    ));
}

#[test]
fn unknown_types_are_refused() {
    for code in [1, 5, 7, 9, 17, 255] {
        let error = skip(Protocol::BinaryStrict, WireType::Struct, vec![code, 0, 1, 0]);
        assert_eq!(error, Err(WireError::UnknownType { offset: 0, code }));
    }
    for code in [14, 15] {
        let error = skip(Protocol::Compact, WireType::Struct, vec![0x10 | code, 0]);
        assert_eq!(error, Err(WireError::UnknownType { offset: 0, code }));
    }
}

/// An empty struct is one byte on the wire; its Rust type is much more.
#[test]
fn decoded_memory_has_a_budget() {
    let count = 8_u32 << 20;
    let mut bytes = [&[12][..], &count.to_be_bytes()].concat();
    bytes.resize(5 + count as usize, 0);
    let error = Vec::<thrift1::Mutation>::decode(&mut BinaryReader::new(Bytes::from(bytes))).unwrap_err();
    assert!(matches!(error, WireError::TooMuchMemory { .. }), "{error}");
}
