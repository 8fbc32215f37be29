//! Filters as protobuf: there and back, bytes as HBase writes them, and what is refused.

use proptest::prelude::*;

use super::*;
use crate::filter::decimal::BigDecimal;
use crate::filter::java_regex::JavaRegex;
use crate::filter::parse::tests::any_filter;
use crate::filter::{
    BitOperator, Comparator, CompareOp, Comparison, DEPTH_MAX, FilterSender, FuzzyKey, ListOperator,
    MaskForm, RowRange,
};

fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![tag << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// `hbase.pb.Filter` by hand.
fn message(class: &str, body: &[u8]) -> Vec<u8> {
    let name = format!("org.apache.hadoop.hbase.filter.{class}");
    [field(1, name.as_bytes()), field(2, body)].concat()
}

#[test]
fn bytes_as_hbase_writes_them() {
    let comparator = [
        field(1, b"org.apache.hadoop.hbase.filter.BinaryComparator"),
        field(2, &field(1, &field(1, b"v"))),
    ]
    .concat();
    let compare = [vec![0x08, 2], field(2, &comparator)].concat();
    let cases = [
        (message("PrefixFilter", &field(1, b"row")), "PrefixFilter('row')"),
        (message("KeyOnlyFilter", &[0x08, 1]), "KeyOnlyFilter(true)"),
        (message("FirstKeyOnlyFilter", &[]), "FirstKeyOnlyFilter()"),
        (
            field(1, b"org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter"),
            "FirstKeyOnlyFilter()",
        ),
        (message("PageFilter", &[0x08, 25]), "PageFilter(25)"),
        (
            message("ColumnPaginationFilter", &[0x08, 3, 0x10, 4]),
            "ColumnPaginationFilter(3, 4)",
        ),
        (
            message(
                "ColumnPaginationFilter",
                &[vec![0x08, 3, 0x10, 4], field(3, b"q")].concat(),
            ),
            "ColumnPaginationFilter(3, 'q')",
        ),
        (
            message("TimestampsFilter", &field(1, &[5, 1])),
            "TimestampsFilter(1, 5)",
        ),
        (
            message("TimestampsFilter", &[0x08, 5, 0x08, 1, 0x10, 1]),
            "TimestampsFilter(1, 5, can_hint)",
        ),
        (
            message("ValueFilter", &field(1, &compare)),
            "ValueFilter(=, 'binary:v')",
        ),
        (
            message(
                "SingleColumnValueFilter",
                &[
                    field(1, b"f"),
                    field(2, b"q"),
                    vec![0x18, 2],
                    field(4, &comparator),
                ]
                .concat(),
            ),
            "SingleColumnValueFilter('f', 'q', =, 'binary:v', false, false)",
        ),
        (
            message(
                "DependentColumnFilter",
                &[field(1, &[0x08, 6]), field(2, b"f"), field(3, b"q")].concat(),
            ),
            "DependentColumnFilter('f', 'q', false)",
        ),
        (
            message(
                "FilterList",
                &[
                    vec![0x08, 2],
                    field(2, &message("PrefixFilter", &field(1, b"a"))),
                    field(2, &message("FilterAllFilter", &[])),
                ]
                .concat(),
            ),
            "PrefixFilter('a') OR FilterAllFilter()",
        ),
        (
            message("SkipFilter", &field(1, &message("PageFilter", &[0x08, 1]))),
            "SKIP PageFilter(1)",
        ),
        (
            message(
                "FuzzyRowFilter",
                &field(1, &[field(1, b"a?"), field(2, &[0xff, 2])].concat()),
            ),
            "FuzzyRowFilter('a\0', '\\x00\\x01')",
        ),
        (
            message(
                "MultiRowRangeFilter",
                &field(1, &[field(1, b"a"), vec![0x10, 1], field(3, b"b")].concat()),
            ),
            "MultiRowRangeFilter('a', true, 'b', false)",
        ),
    ];
    for (bytes, expected) in cases {
        let filter = FilterSpec::decode(&bytes, 0).unwrap_or_else(|error| panic!("{expected}: {error}"));
        assert_eq!(filter.to_string(), expected);
    }
}

/// Filters that only protobuf can express.
#[test]
fn protobuf_only_filters_round_trip() {
    let with = |comparator| FilterSpec::value(Comparison::new(CompareOp::NoOp, comparator));
    let range = |start: &str, stop: &str| RowRange {
        start: start.into(),
        start_inclusive: true,
        stop: stop.into(),
        stop_inclusive: false,
    };
    let filters = [
        FilterSpec::filter_all(),
        FilterSpec::first_key_value_matching_qualifiers(vec![b"b".to_vec(), b"a".to_vec()]),
        FilterSpec::column_pagination_from(3, b"q".to_vec()).unwrap(),
        FilterSpec::timestamps(vec![3, 1], true).unwrap(),
        FilterSpec::fuzzy_row(vec![FuzzyKey::new(b"abc", &[0, 1, 0], MaskForm::Two).unwrap()]),
        FilterSpec::multi_row_range(vec![range("c", "d"), range("a", "b")]).unwrap(),
        FilterSpec::random_row(0.5, 8),
        FilterSpec::list(ListOperator::MustPassAll, vec![]).unwrap(),
        FilterSpec::list(ListOperator::MustPassOne, vec![FilterSpec::filter_all()]).unwrap(),
        with(Comparator::Long(-7)),
        with(Comparator::Null),
        with(Comparator::BigDecimal(
            BigDecimal::decode(&[0, 0, 0, 2, 5]).unwrap(),
        )),
        with(Comparator::Bit {
            value: vec![1, 2],
            operator: BitOperator::Xor,
        }),
        with(Comparator::BinaryComponent {
            value: vec![1],
            offset: 9,
        }),
        with(Comparator::Regex(
            JavaRegex::with_flags("a", 2, "ISO-8859-1").unwrap(),
        )),
    ];
    for filter in filters {
        assert_eq!(FilterSpec::decode(&filter.encode(), 7).unwrap(), filter);
    }
}

#[test]
fn random_filters_of_one_tree_draw_apart() {
    let half = || FilterSpec::random_row(0.5, 0);
    let list = FilterSpec::list(ListOperator::MustPassAll, vec![half(), half()]).unwrap();
    let decoded = FilterSpec::decode(&list.encode(), 1).unwrap();
    let apart = vec![FilterSpec::random_row(0.5, 2), FilterSpec::random_row(0.5, 3)];
    assert_eq!(
        decoded,
        FilterSpec::list(ListOperator::MustPassAll, apart).unwrap()
    );
}

#[test]
fn refused_filters_are_named() {
    let comparator = |class: &str| field(1, format!("org.apache.hadoop.hbase.filter.{class}").as_bytes());
    let value = |comparator: &[u8]| {
        message(
            "ValueFilter",
            &field(1, &[vec![0x08, 2], field(2, comparator)].concat()),
        )
    };
    let cases = [
        (
            message("NoSuchFilter", &[]),
            "Filter class org.apache.hadoop.hbase.filter.NoSuchFilter is not supported",
        ),
        (
            field(1, b"com.example.PrefixFilter"),
            "Filter class com.example.PrefixFilter is not supported",
        ),
        (vec![], "required field name is missing"),
        (vec![0xff], "malformed hbase.pb.Filter"),
        (
            message("PageFilter", &[]),
            "malformed PageFilter: required field page_size is missing",
        ),
        (message("PageFilter", &[0x08]), "malformed PageFilter"),
        (
            message("PageFilter", &[&[0x08][..], &[0xff; 9], &[1]].concat()),
            "page size must be positive -1",
        ),
        (
            message("SkipFilter", &[]),
            "malformed SkipFilter: required field filter is missing",
        ),
        (message("FilterList", &[0x08, 3]), "unknown operator 3"),
        (message("MultiRowRangeFilter", &[]), "No ranges found."),
        (
            message(
                "FuzzyRowFilter",
                &field(1, &[field(1, b"a"), field(2, b"")].concat()),
            ),
            "they must be of one length",
        ),
        (
            value(&comparator("NoSuch")),
            "Comparator class org.apache.hadoop.hbase.filter.NoSuch is not supported",
        ),
        (
            value(&comparator("LongComparator")),
            "required field comparable is missing",
        ),
        (
            message("ValueFilter", &field(1, &[0x08, 9])),
            "unknown compare_op 9",
        ),
    ];
    for (bytes, expected) in cases {
        match FilterSpec::decode(&bytes, 0) {
            Err(error @ (Error::DoNotRetry(_) | Error::UnknownClass { .. })) => {
                let text = error.to_string();
                assert!(text.contains(expected), "{text}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

/// A tree with an unknown class, at the top or anywhere below, is kept byte by byte, and fails where it is
/// applied. Other trees are decoded as always, and their errors stay.
#[test]
fn classes_of_users_are_kept_for_a_host() {
    let own = field(1, b"com.example.Own");
    let sender = FilterSender {
        user: Some("ada".into()),
        may_load: true,
    };
    let decode = |bytes: &[u8]| FilterSpec::decode_with_user_code(bytes, 0, &sender);
    let list = message(
        "FilterList",
        &[
            vec![0x08, 1],
            field(2, &message("FirstKeyOnlyFilter", &[])),
            field(2, &own),
        ]
        .concat(),
    );
    let comparing = message(
        "ValueFilter",
        &field(
            1,
            &[vec![0x08, 2], field(2, &field(1, b"com.example.Own"))].concat(),
        ),
    );
    for bytes in [&own, &list, &comparing, &message("SkipFilter", &field(1, &list))] {
        let kept = decode(bytes).unwrap();
        let user = kept.user_code().expect("it is kept");
        assert_eq!((&*user.class, &user.message[..]), ("com.example.Own", &bytes[..]));
        assert_eq!(user.sender, sender);
        assert_eq!(kept.encode(), *bytes);
        assert!(kept.memory_bytes() >= bytes.len());
        let refused = kept.create().filter_row_key(b"row").unwrap_err();
        assert!(refused.to_string().contains("com.example.Own"), "{refused}");
    }
    assert!(
        decode(&message("FirstKeyOnlyFilter", &[]))
            .unwrap()
            .user_code()
            .is_none()
    );
    let refused = decode(&message("PageFilter", &[])).unwrap_err();
    assert!(refused.to_string().contains("page_size is missing"), "{refused}");
}

#[test]
fn size_and_depth_are_bounded() {
    let nested = |levels| {
        (0..levels).fold(message("FirstKeyOnlyFilter", &[]), |inner, _| {
            message("WhileMatchFilter", &field(1, &inner))
        })
    };
    assert!(FilterSpec::decode(&nested(DEPTH_MAX - 1), 0).is_ok());
    for levels in [DEPTH_MAX, 2_000] {
        let text = FilterSpec::decode(&nested(levels), 0).unwrap_err().to_string();
        assert!(text.contains("nested deeper than 64"), "{text}");
    }
    let regex = || FilterSpec::row(Comparison::new(CompareOp::Equal, Comparator::regex("a").unwrap()));
    let list = |count| FilterSpec::list(ListOperator::MustPassOne, vec![regex(); count]).unwrap();
    assert!(FilterSpec::decode(&list(64).encode(), 0).is_ok());
    let text = FilterSpec::decode(&list(65).encode(), 0).unwrap_err().to_string();
    assert!(text.contains("more than 64 regular expressions"), "{text}");
    let text = FilterSpec::decode(&vec![0; FILTER_BYTES_MAX + 1], 0)
        .unwrap_err()
        .to_string();
    assert!(text.contains("more than 1048576"), "{text}");
}

proptest! {
    #[test]
    fn filters_round_trip(filter in any_filter()) {
        prop_assert_eq!(FilterSpec::decode(&filter.encode(), 0).unwrap(), filter);
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = FilterSpec::decode(&bytes, 0);
        for class in ["FilterList", "RowFilter", "FuzzyRowFilter", "MultiRowRangeFilter", "SingleColumnValueFilter"] {
            let _ = FilterSpec::decode(&message(class, &bytes), 0);
        }
    }

    /// A sound message with a few bytes changed gets much further than random bytes.
    #[test]
    fn damaged_messages_never_panic(filter in any_filter(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = filter.encode();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(filter) = FilterSpec::decode(&bytes, 0) {
            let _ = filter.create();
        }
    }
}
