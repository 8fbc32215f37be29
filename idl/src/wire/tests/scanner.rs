//! Goal: the scanner finds the end of a message however it arrives. Method: the same messages in pieces.

use super::*;

/// Calls of both services with all kinds of fields, and the sizes that have forms of their own.
fn messages() -> Vec<(Protocol, Vec<u8>)> {
    let column = thrift2::TColumnValue {
        cell_type: Some(4),
        timestamp: Some(-1),
        ..Default::default()
    };
    let put = thrift2::TPut {
        row: Bytes::from(vec![7; 300]),
        column_values: vec![column; 20],
        attributes: Some([(Bytes::from("a"), Bytes::new()), (Bytes::new(), Bytes::from("b"))].into()),
        ..Default::default()
    };
    let scan = thrift2::TScan {
        col_fam_time_range_map: Some(
            [(
                Bytes::from("f"),
                thrift2::TTimeRange {
                    min_stamp: 1,
                    max_stamp: 2,
                },
            )]
            .into(),
        ),
        reversed: Some(true),
        attributes: Some([].into()),
        ..Default::default()
    };
    let put = thrift2::args::Put {
        table: Bytes::from("t"),
        tput: put,
    };
    let scan = thrift2::args::OpenScanner {
        table: Bytes::new(),
        tscan: scan,
    };
    let none = thrift1::args::GetTableNames {};
    let mut out = Vec::new();
    for protocol in PROTOCOLS {
        let mut begun = call(protocol, "someMethod", 1_000_000);
        begun.pop();
        let (mut with_put, mut with_scan, mut with_none) = (begun.clone(), begun.clone(), begun);
        encode(protocol, &put, &mut with_put);
        encode(protocol, &scan, &mut with_scan);
        encode(protocol, &none, &mut with_none);
        out.extend([with_put, with_scan, with_none].map(|message| (protocol, message)));
        // Runs of fixed-size elements.
        let mut message = call(protocol, "x", 0);
        message.pop();
        encode_runs(protocol, &mut message);
        out.push((protocol, message));
    }
    out
}

fn encode(protocol: Protocol, args: &impl Encode, out: &mut Vec<u8>) {
    if protocol == Protocol::Compact {
        args.encode(&mut CompactWriter::new(out));
    } else {
        args.encode(&mut BinaryWriter::new(out));
    }
}

fn encode_runs(protocol: Protocol, out: &mut Vec<u8>) {
    fn runs(writer: &mut impl Writer) {
        writer.struct_begin();
        writer.field_begin(1, WireType::List);
        vec![1_i64; 40].encode(writer);
        writer.field_begin(2, WireType::List);
        vec![true; 40].encode(writer);
        writer.field_begin(3, WireType::Double);
        writer.double(0.5);
        writer.field_begin(4, WireType::Map);
        std::collections::BTreeMap::from([(1_i16, true), (2, false)]).encode(writer);
        writer.field_begin(5, WireType::List);
        vec![vec![3_i8; 3], vec![], vec![4]].encode(writer);
        writer.struct_end();
    }
    if protocol == Protocol::Compact {
        runs(&mut CompactWriter::new(out));
    } else {
        runs(&mut BinaryWriter::new(out));
    }
}

#[test]
fn pieces_of_any_size_give_the_same_end() {
    for (protocol, message) in messages() {
        let len = message.len();
        let mut buffered = message.clone();
        buffered.extend_from_slice(&[0x80, 1, 2, 3]);
        assert_eq!(
            MessageScanner::new(protocol, len).feed(&message),
            Ok(Scan::Complete { len })
        );
        for piece in [1, 2, 3, 7, 64] {
            let mut scanner = MessageScanner::new(protocol, len);
            let mut end = 0;
            let found = loop {
                end = (end + piece).min(buffered.len());
                match scanner.feed(&buffered[..end]).unwrap() {
                    Scan::NeedMore => {
                        assert!(end < len, "{protocol:?}: not seen complete at {end} of {len}");
                    }
                    Scan::Complete { len } => break len,
                }
            };
            assert_eq!(found, len, "{protocol:?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_message_over_the_limit_is_refused_as_early_as_it_shows() {
    for (protocol, message) in messages() {
        let limit = message.len() - 1;
        let error = MessageScanner::new(protocol, limit).feed(&message).unwrap_err();
        let expected = matches!(
            error,
            WireError::TooLong { .. } | WireError::TooManyElements { .. }
        );
        assert!(expected, "{protocol:?}: {error}");
        // Cut at the limit it cannot become complete either.
        assert!(
            MessageScanner::new(protocol, limit)
                .feed(&message[..limit])
                .is_err()
        );
    }
    // A length is refused on sight, before its bytes arrive.
    let mut message = call(Protocol::BinaryStrict, "x", 0);
    message.pop();
    message.extend_from_slice(&[11, 0, 1, 0x7f, 0xff, 0xff, 0xff]);
    let error = MessageScanner::new(Protocol::BinaryStrict, 1 << 20).feed(&message);
    assert_eq!(error, Err(WireError::TooLong { limit: 1 << 20 }));
    let at = message.len() - 7;
    message.truncate(at);
    message.extend_from_slice(&[15, 0, 1, 12, 0x7f, 0xff, 0xff, 0xff]);
    let error = MessageScanner::new(Protocol::BinaryStrict, 1 << 20).feed(&message);
    assert!(matches!(error, Err(WireError::TooManyElements { .. })));
}

#[test]
fn headers_are_checked_while_they_arrive() {
    let feed = |protocol, bytes: &[u8]| MessageScanner::new(protocol, 1000).feed(bytes);
    assert!(matches!(
        feed(Protocol::BinaryStrict, &[0x80, 2, 0, 1]),
        Err(WireError::UnknownVersion { .. })
    ));
    assert!(matches!(
        feed(Protocol::Compact, &[0x82, 2]),
        Err(WireError::UnknownVersion { .. })
    ));
    assert!(matches!(
        feed(Protocol::BinaryOld, &[0, 0, 9, 9]),
        Err(WireError::NameTooLong { .. })
    ));
    assert!(matches!(
        feed(Protocol::BinaryOld, &[0, 0, 0, 1, b'x', 9]),
        Err(WireError::UnknownKind { code: 9 })
    ));
    assert_eq!(
        feed(Protocol::BinaryOld, &[0, 0, 0, 1, b'x', 1, 0]),
        Ok(Scan::NeedMore)
    );
}
