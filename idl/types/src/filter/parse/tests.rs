//! The filter language: what parses to what, what is refused and where, and that printing and parsing are
//! inverse.

use proptest::prelude::*;

use super::*;
use crate::filter::{ColumnRange, Comparator, CompareOp, Comparison, SingleColumnValue};

fn parsed(text: &str) -> FilterSpec {
    FilterSpec::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The printed form has parentheses where the tree has lists in lists, so it shows the tree.
#[test]
fn precedence_and_flattening() {
    let cases = [
        ("KeyOnlyFilter()", "KeyOnlyFilter()"),
        ("(((KeyOnlyFilter())))", "KeyOnlyFilter()"),
        ("A AND A AND A", "A AND A AND A"),
        ("A OR A OR A", "A OR A OR A"),
        ("A AND A OR A", "(A AND A) OR A"),
        ("A OR A AND A", "A OR (A AND A)"),
        ("A OR A AND A AND A OR A", "A OR (A AND A AND A) OR A"),
        ("A AND (A OR A) AND A", "A AND (A OR A) AND A"),
        ("A AND (A AND A)", "A AND (A AND A)"),
        ("SKIP A AND A", "SKIP A AND A"),
        ("SKIP (A AND A)", "SKIP (A AND A)"),
        ("SKIP WHILE A", "SKIP WHILE A"),
        ("WHILE SKIP A OR A", "WHILE SKIP A OR A"),
        ("A AND SKIP A", "A AND SKIP A"),
        ("(A AND A", "A AND A"),
        ("A AND (A OR (A", "A AND (A OR A)"),
        ("  \tA \t AND\tA", ""),
        ("A AND \t A", "A AND A"),
        // Without the spaces that other places need.
        ("(A)AND (A)", "A AND A"),
        ("A OR(A)", "A OR A"),
        ("SKIP(A)", "SKIP A"),
        ("(SKIP A)OR A", "SKIP A OR A"),
        // Texts that HBase refuses with "Mismatched parenthesis".
        ("(A OR A AND A)", "A OR (A AND A)"),
        ("(A AND SKIP A)", "A AND SKIP A"),
        ("(WHILE SKIP A)", "WHILE SKIP A"),
    ];
    for (text, expected) in cases {
        let spell_out = |text: &str| {
            text.replace("AND", "&")
                .replace('A', "PageFilter(1)")
                .replace('&', "AND")
        };
        match FilterSpec::parse(spell_out(text).as_bytes()) {
            Ok(spec) => assert_eq!(spec.to_string(), spell_out(expected), "{text}"),
            Err(error) => assert_eq!(expected, "", "{text}: {error}"),
        }
    }
}

#[test]
fn lists_are_flat() {
    let first = || FilterSpec::first_key_only();
    let list = FilterSpec::list(ListOperator::MustPassOne, vec![first(), first(), first()]).unwrap();
    assert_eq!(
        parsed("FirstKeyOnlyFilter() OR FirstKeyOnlyFilter()OR FirstKeyOnlyFilter()"),
        list
    );
}

#[test]
fn arguments() {
    let prefix = |bytes: &[u8]| FilterSpec::prefix(bytes.to_vec());
    let cases: &[(&[u8], FilterSpec)] = &[
        (b"PrefixFilter('row')", prefix(b"row")),
        (b"PrefixFilter ( 'row' , )", prefix(b"row")),
        (b"PrefixFilter('row''3')", prefix(b"row'3")),
        (b"PrefixFilter('row''3''')", prefix(b"row'3'")),
        (b"PrefixFilter('''')", prefix(b"'")),
        (b"PrefixFilter('')", prefix(b"")),
        (b"PrefixFilter('a)(b,c d')", prefix(b"a)(b,c d")),
        (b"PrefixFilter('\x00\xff\n')", prefix(b"\0\xff\n")),
        (b"KeyOnlyFilter(TRUE)", FilterSpec::key_only(true)),
        (
            b"PageFilter(9223372036854775807)",
            FilterSpec::page(i64::MAX).unwrap(),
        ),
        (
            b"ColumnPaginationFilter(3,,4)",
            FilterSpec::column_pagination(3, 4).unwrap(),
        ),
        (
            b"ColumnPaginationFilter(3 4)",
            FilterSpec::column_pagination(3, 4).unwrap(),
        ),
        (
            b"ColumnCountGetFilter(2147483647)",
            FilterSpec::column_count_get(i32::MAX).unwrap(),
        ),
        (
            b"TimestampsFilter()",
            FilterSpec::timestamps(vec![], false).unwrap(),
        ),
        (
            b"TimestampsFilter(5, 1,5)",
            FilterSpec::timestamps(vec![1, 5], false).unwrap(),
        ),
        (
            b"MultipleColumnPrefixFilter()",
            FilterSpec::multiple_column_prefix(vec![]).unwrap(),
        ),
        (
            b"ColumnRangeFilter('', false, 'z', True)",
            FilterSpec::column_range(ColumnRange {
                min: None,
                min_inclusive: false,
                max: Some(b"z".to_vec()),
                max_inclusive: true,
            }),
        ),
        (
            b"RowFilter ('>=' 'x')",
            FilterSpec::first_key_only(), // refused, see below
        ),
        (
            b"RowFilter(>= 'binary:a:b')",
            FilterSpec::row(Comparison::new(
                CompareOp::GreaterOrEqual,
                Comparator::Binary(b"a:b".to_vec()),
            )),
        ),
        (
            b"SingleColumnValueFilter('f','q',!=,'substring:AbC')",
            FilterSpec::single_column_value(
                SingleColumnValue {
                    family: b"f".to_vec(),
                    qualifier: b"q".to_vec(),
                    comparison: Comparison::new(CompareOp::NotEqual, Comparator::substring("abc")),
                    filter_if_missing: false,
                    latest_version_only: true,
                },
                false,
            ),
        ),
        (
            b"DependentColumnFilter('f','q',true,<,'regexstring:a.*')",
            FilterSpec::dependent_column(
                b"f".to_vec(),
                b"q".to_vec(),
                true,
                Some(Comparison::new(
                    CompareOp::Less,
                    Comparator::regex("a.*").unwrap(),
                )),
            ),
        ),
    ];
    for (text, expected) in cases {
        let shown = text.escape_ascii();
        match FilterSpec::parse(text) {
            Ok(spec) => assert_eq!(spec, *expected, "{shown}"),
            Err(error) => assert!(
                shown.to_string().starts_with("RowFilter (\\'>"),
                "{shown}: {error}"
            ),
        }
    }
}

#[test]
fn errors_name_the_place() {
    let cases = [
        ("", 0, "Incorrect Filter String"),
        ("   ", 3, "Incorrect Filter String"),
        ("()", 1, "Incorrect Filter String"),
        ("((", 2, "Incorrect Filter String"),
        ("PrefixFilter", 0, "Incorrect Filter String"),
        ("PrefixFilter('a'", 0, "Incorrect Filter String"),
        ("PrefixFilter('a)", 0, "Incorrect Filter String"),
        ("PrefixFilter('a') PageFilter(1)", 18, "Incorrect Filter String"),
        ("PrefixFilter('a'))", 17, "Mismatched parenthesis"),
        (
            "PrefixFilter('a')\tAND\tPageFilter(1)",
            18,
            "Incorrect Filter String",
        ),
        ("PageFilter(1)\tAND PageFilter(1)", 18, "Incorrect argument list"),
        ("PageFilter(1) AND\tPageFilter(1)", 14, "Incorrect Filter String"),
        ("\nPageFilter(1)", 0, "Filter Name \\nPageFilter not supported"),
        ("prefixFilter('a')", 0, "Filter Name prefixFilter not supported"),
        (
            "FuzzyRowFilter('a')",
            0,
            "Filter Name FuzzyRowFilter not supported",
        ),
        ("'a'('b')", 0, "Incorrect Filter Name"),
        ("PrefixFilter x('a')", 13, "Incorrect argument list"),
        ("PrefixFilter('a'b)", 16, "Incorrect argument list"),
        ("PageFilter(1) AND ", 14, "an AND needs two filters"),
        ("PageFilter(1) OR (", 18, "Incorrect Filter String"),
        ("(PageFilter(1) OR )", 15, "an OR needs two filters"),
        (" OR PageFilter(1)", 1, "an OR needs two filters"),
        (
            "PageFilter(1) AND OR PageFilter(1)",
            14,
            "an AND needs two filters",
        ),
        ("SKIP ", 0, "a SKIP wraps a filter"),
        (
            "PageFilter(1) OR WHILE AND PageFilter(1)",
            17,
            "a WHILE wraps a filter",
        ),
        ("PageFilter(1) SKIP PageFilter(1)", 14, "Incorrect Filter String"),
        ("PrefixFilter()", 0, "PrefixFilter takes 1 arguments, not 0"),
        ("PrefixFilter(a)", 13, "needs a quoted byte array"),
        ("FirstKeyOnlyFilter('')", 0, "Incorrect argument list"),
        ("KeyOnlyFilter('')", 14, "Incorrect Boolean Expression"),
        ("KeyOnlyFilter('true')", 14, "Incorrect Boolean Expression"),
        ("PageFilter('3')", 11, "Byte Array should only contain digits"),
        ("PageFilter(-)", 11, "Byte Array should only contain digits"),
        ("PageFilter(3\t)", 11, "Byte Array should only contain digits"),
        ("PageFilter(-3)", 0, "page size must be positive -3"),
        ("PageFilter(9223372036854775808)", 11, "Long Argument too large"),
        (
            "TimestampsFilter(1, -9223372036854775808)",
            20,
            "Long Argument too large",
        ),
        (
            "ColumnCountGetFilter(2147483648)",
            21,
            "Integer Argument too large",
        ),
        (
            "ColumnCountGetFilter(-2147483649)",
            21,
            "Integer Argument too small",
        ),
        ("ColumnPaginationFilter(1,-1)", 0, "offset must be positive -1"),
        (
            "MultipleColumnPrefixFilter('a','b','a')",
            0,
            "prefixes must be distinct: a",
        ),
        ("RowFilter('>=', 'binary:a')", 10, "Invalid compare operator"),
        ("RowFilter(==, 'binary:a')", 10, "Invalid compare operator"),
        ("RowFilter(=, 'binary')", 13, "Incorrect comparator"),
        ("RowFilter(=, 'long:1')", 13, "Incorrect comparatorType"),
        ("RowFilter(=, 'Binary:1')", 13, "Incorrect comparatorType"),
        ("RowFilter(=, binary:a)", 13, "needs a quoted byte array"),
        ("RowFilter(=, 'regexstring:(?=a)')", 13, "lookahead"),
        ("RowFilter(<, 'regexstring:a')", 10, "EQUAL and NOT_EQUAL"),
        (
            "ColumnValueFilter('f','q',>=,'substring:a')",
            26,
            "EQUAL and NOT_EQUAL",
        ),
        (
            "SingleColumnValueFilter('f','q',=,'binary:a',true)",
            0,
            "takes 4 or 6 arguments, not 5",
        ),
        (
            "DependentColumnFilter('f','q',true,=)",
            0,
            "takes 2 or 3 or 5 arguments, not 4",
        ),
    ];
    for (text, position, message) in cases {
        let error = FilterSpec::parse(text.as_bytes()).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error}");
        assert_eq!(error.position, position, "{text}: {error}");
    }
    let error = FilterSpec::parse(b"PageFilter(1) AND X()").unwrap_err();
    let expected = "Incorrect filter string at position 18: Filter Name X not supported";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(Error::from(error), Error::InvalidArgument(text) if text == expected));
}

#[test]
fn size_and_depth_are_bounded() {
    let nested = |levels: usize| format!("{}PageFilter(1)", "SKIP ".repeat(levels));
    assert!(FilterSpec::parse(nested(DEPTH_MAX - 1).as_bytes()).is_ok());
    for text in [nested(DEPTH_MAX), nested(10_000), "(".repeat(10_000)] {
        let error = FilterSpec::parse(text.as_bytes()).unwrap_err();
        assert!(error.message.contains("nested deeper than 64"), "{error}");
    }
    // Side by side, not nested.
    let skips = vec!["SKIP PageFilter(1)"; DEPTH_MAX + 1].join(" AND ");
    assert!(FilterSpec::parse(skips.as_bytes()).is_ok());
    let deep_lists = format!(
        "{}PageFilter(1)",
        "PageFilter(1) OR PageFilter(1) AND (".repeat(40)
    );
    let error = FilterSpec::parse(deep_lists.as_bytes()).unwrap_err();
    assert!(error.message.contains("nested deeper than 64"), "{error}");
    let regexes = |count| vec!["RowFilter(=,'regexstring:a')"; count].join(" OR ");
    assert!(FilterSpec::parse(regexes(64).as_bytes()).is_ok());
    let error = FilterSpec::parse(regexes(65).as_bytes()).unwrap_err();
    assert!(
        error.message.contains("more than 64 regular expressions"),
        "{error}"
    );
    let large = |count| vec![r"RowFilter(=,'regexstring:\p{L}{10}')"; count].join(" AND ");
    assert!(FilterSpec::parse(large(2).as_bytes()).is_ok());
    let error = FilterSpec::parse(large(10).as_bytes()).unwrap_err();
    assert!(
        error.message.contains("more than 2097152 bytes compiled"),
        "{error}"
    );
    let error = FilterSpec::parse(&vec![b' '; FILTER_STRING_MAX_BYTES + 1]).unwrap_err();
    assert!(
        error.message.contains("65537 bytes are more than 65536"),
        "{error}"
    );
    assert!(error.to_string().len() < 200);
    let error = FilterSpec::parse(&[b"A".repeat(10_000), b"()".to_vec()].concat()).unwrap_err();
    assert!(error.message.len() < 200, "{error}");
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\''), Just(b')')], 0..6)
}

fn any_comparison() -> impl Strategy<Value = Comparison> {
    let ops = [
        CompareOp::Less,
        CompareOp::LessOrEqual,
        CompareOp::Equal,
        CompareOp::NotEqual,
        CompareOp::GreaterOrEqual,
        CompareOp::Greater,
    ];
    let ordered =
        (prop::sample::select(ops.to_vec()), any_bytes(), any::<bool>()).prop_map(|(op, bytes, whole)| {
            Comparison::new(
                op,
                if whole {
                    Comparator::Binary(bytes)
                } else {
                    Comparator::BinaryPrefix(bytes)
                },
            )
        });
    let searching = ("[a-zA-Z' é:]{0,5}", any::<bool>(), any::<bool>()).prop_map(|(text, equal, regex)| {
        let op = if equal {
            CompareOp::Equal
        } else {
            CompareOp::NotEqual
        };
        let comparator = if regex {
            Comparator::regex(&text).unwrap()
        } else {
            Comparator::substring(&text)
        };
        Comparison::new(op, comparator)
    });
    prop_oneof![ordered, searching]
}

fn any_bound() -> impl Strategy<Value = Option<Vec<u8>>> {
    any_bytes().prop_map(|bytes| (!bytes.is_empty()).then_some(bytes))
}

fn any_single_column_value() -> impl Strategy<Value = SingleColumnValue> {
    (
        any_bytes(),
        any_bytes(),
        any_comparison(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(family, qualifier, comparison, filter_if_missing, latest_version_only)| SingleColumnValue {
                family,
                qualifier,
                comparison,
                filter_if_missing,
                latest_version_only,
            },
        )
}

/// Every filter that the language can say.
pub(in crate::filter) fn any_filter() -> impl Strategy<Value = FilterSpec> {
    let plain = prop_oneof![
        any::<bool>().prop_map(FilterSpec::key_only),
        Just(FilterSpec::first_key_only()),
        any_bytes().prop_map(FilterSpec::prefix),
        any_bytes().prop_map(FilterSpec::column_prefix),
        any_bytes().prop_map(FilterSpec::inclusive_stop),
        prop::collection::btree_set(any_bytes(), 0..4)
            .prop_map(|set| FilterSpec::multiple_column_prefix(set.into_iter().collect()).unwrap()),
        (0..=i32::MAX).prop_map(|limit| FilterSpec::column_count_get(limit).unwrap()),
        (0..=i64::MAX).prop_map(|rows| FilterSpec::page(rows).unwrap()),
        (0..=i32::MAX, 0..=i32::MAX)
            .prop_map(|(limit, offset)| FilterSpec::column_pagination(limit, offset).unwrap()),
        prop::collection::vec(0..=i64::MAX, 0..4)
            .prop_map(|list| FilterSpec::timestamps(list, false).unwrap()),
    ];
    let comparing = prop_oneof![
        any_comparison().prop_map(FilterSpec::row),
        any_comparison().prop_map(FilterSpec::family),
        any_comparison().prop_map(FilterSpec::qualifier),
        any_comparison().prop_map(FilterSpec::value),
        (any_bound(), any::<bool>(), any_bound(), any::<bool>()).prop_map(
            |(min, min_inclusive, max, max_inclusive)| {
                FilterSpec::column_range(ColumnRange {
                    min,
                    min_inclusive,
                    max,
                    max_inclusive,
                })
            }
        ),
        (any_single_column_value(), any::<bool>())
            .prop_map(|(test, exclude)| FilterSpec::single_column_value(test, exclude)),
        (
            any_bytes(),
            any_bytes(),
            any::<bool>(),
            prop::option::of(any_comparison())
        )
            .prop_map(|(family, qualifier, drop, test)| FilterSpec::dependent_column(
                family, qualifier, drop, test
            )),
        (any_bytes(), any_bytes(), any_comparison())
            .prop_map(|(family, qualifier, test)| FilterSpec::column_value(family, qualifier, test)),
    ];
    prop_oneof![plain, comparing].prop_recursive(6, 32, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|filter| FilterSpec::skip(filter).unwrap()),
            inner
                .clone()
                .prop_map(|filter| FilterSpec::while_match(filter).unwrap()),
            (any::<bool>(), prop::collection::vec(inner, 2..4)).prop_map(|(all, filters)| {
                let operator = if all {
                    ListOperator::MustPassAll
                } else {
                    ListOperator::MustPassOne
                };
                FilterSpec::list(operator, filters).unwrap()
            }),
        ]
    })
}

/// Pieces of the language in any order: far more of them get far into the parser than random bytes.
fn any_pieces() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "(",
        ")",
        "'",
        ",",
        " ",
        "\t",
        "AND",
        "OR",
        "SKIP",
        "WHILE",
        " AND ",
        " OR ",
        "PageFilter(1)",
        "PrefixFilter(",
        "RowFilter(=,",
        "'binary:a'",
        "'regexstring:[",
        "-",
        "1",
        "true",
        "<=",
        ":",
        "\u{e9}",
        "TimestampsFilter",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..20)
        .prop_map(|list| list.concat().into_bytes())
}

proptest! {
    #[test]
    fn printed_filters_parse_to_themselves(filter in any_filter()) {
        let text = filter.to_filter_string();
        let again = FilterSpec::parse(&text);
        prop_assert_eq!(again.as_ref(), Ok(&filter), "{}", text.escape_ascii());
    }

    #[test]
    fn hostile_strings_never_panic(text in prop_oneof![prop::collection::vec(any::<u8>(), 0..64), any_pieces()]) {
        match FilterSpec::parse(&text) {
            Ok(filter) => prop_assert_eq!(FilterSpec::parse(&filter.to_filter_string()), Ok(filter)),
            Err(error) => prop_assert!(error.position <= text.len()),
        }
    }
}
