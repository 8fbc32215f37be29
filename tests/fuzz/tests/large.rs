//! Goal: memory stays bounded for inputs as large as they may be, which fuzzers do not try, since
//! they prefer short ones. Method: parts of filters repeated up to the limits, accepted or with
//! something wrong at the end. One test, since memory is counted for the whole process.

use basalt_engine::filter::{
    FILTER_BYTES_MAX, FILTER_STRING_MAX_BYTES as STRING_BYTES, FilterSpec, ListOperator, RowRange,
};
use basalt_fuzz::memory;
use basalt_fuzz::target::REGEX_BYTES;

/// Memory of filters for each byte of them: lists of short things, kept one by one.
const PER_FILTER_BYTE: usize = 32;

/// Longest regular expression, in bytes.
const PATTERN_BYTES: usize = 8 << 10;

/// Parts of patterns, with the text in front of all of them.
const PATTERNS: &[(&str, &str)] = &[
    ("", "a"),
    ("(?i)", "s"),
    ("", "."),
    ("", "$"),
    ("", r"\pL"),
    ("(?i)", r"\pL"),
    ("(?i)", r"\W"),
    ("", r"\R"),
    ("", "[^a]"),
    ("(?i)", r"[\x00-\x{10ffff}]"),
    ("(?i)", "[iIkKsS]"),
    ("", "[[a]]"),
    ("", "[a&&b]"),
    ("", "()"),
    ("", "a?"),
    ("", "(a)?"),
    ("", "a{1,9}"),
    ("", "(a|b)*"),
    ("", "a|"),
    ("(?i)", "abc|"),
    (r"\Q", "|"),
    ("", "(?i)(?-i)"),
];

/// Filters without a regular expression, and the text between two.
const FILTERS: &[(&str, &str)] = &[
    ("PageFilter(1)", " OR "),
    ("KeyOnlyFilter()", " AND "),
    ("(", ""),
    ("SKIP ", ""),
    ("RowFilter(=,'binary:a')", " AND "),
    ("'", ""),
    ("TimestampsFilter(1,2,3,4,5,6,7,8,9)", " OR "),
    ("MultipleColumnPrefixFilter('a','b','c','d')", " AND "),
];

/// Parses a filter string, and again with a parenthesis too many at its end: the part before it has
/// been parsed into memory.
fn parse(filters: &str) {
    for end in ["", ")"] {
        let input = format!("{filters}{end}");
        let parsed = memory::bounded(input.len(), input.len() * PER_FILTER_BYTE + REGEX_BYTES, || {
            FilterSpec::parse(input.as_bytes())
        });
        assert!(
            end.is_empty() || parsed.is_err(),
            "{} is accepted",
            &input[input.len() - 80..]
        );
    }
}

/// Decodes a filter, and again in front of one of a class that does not exist.
fn decode(filter: FilterSpec) {
    let encoded = filter.encode();
    assert!(
        (FILTER_BYTES_MAX / 4..FILTER_BYTES_MAX).contains(&encoded.len()),
        "{} bytes",
        encoded.len()
    );
    let two = FilterSpec::list(
        ListOperator::MustPassOne,
        vec![filter, FilterSpec::first_key_only()],
    );
    let mut refused = two.expect("one level more").encode();
    let last = refused
        .windows(8)
        .rposition(|name| name == b"FirstKey")
        .expect("its name");
    refused[last] = b'X';
    for (input, good) in [(encoded, true), (refused, false)] {
        let decoded = memory::bounded(input.len(), input.len() * PER_FILTER_BYTE, || {
            FilterSpec::decode(&input, 1)
        });
        assert_eq!(decoded.is_ok(), good);
    }
}

#[test]
fn filters_as_large_as_they_may_be_stay_within_their_memory() {
    for (start, part) in PATTERNS {
        for bytes in [
            PATTERN_BYTES / 4,
            PATTERN_BYTES / 2,
            PATTERN_BYTES,
            7 * PATTERN_BYTES,
        ] {
            let pattern = format!("{start}{}", part.repeat((bytes - start.len()) / part.len()));
            let filter = format!("RowFilter(=,'regexstring:{pattern}')");
            parse(&filter);
            parse(&vec![filter.as_str(); STRING_BYTES / (filter.len() + 4)].join(" OR "));
        }
    }
    for (filter, between) in FILTERS {
        let count = (STRING_BYTES - 1) / (filter.len() + between.len());
        parse(&vec![*filter; count].join(between));
    }
    parse(&format!("TimestampsFilter({}1)", "1,".repeat(30_000)));
    parse(&format!("MultipleColumnPrefixFilter({}'')", "'',".repeat(20_000)));

    let numbers = |count: u32| (0..count).map(|number| number.to_be_bytes()[1..].to_vec());
    let list = |filter: FilterSpec| {
        FilterSpec::list(ListOperator::MustPassOne, vec![filter; 15_000]).expect("one level")
    };
    decode(FilterSpec::multiple_column_prefix(numbers(200_000).collect()).expect("different prefixes"));
    decode(FilterSpec::first_key_value_matching_qualifiers(
        numbers(200_000).collect(),
    ));
    decode(FilterSpec::timestamps((0..100_000).collect(), false).expect("no negative one"));
    decode(list(FilterSpec::key_only(false)));
    decode(list(FilterSpec::page(5).expect("a positive size")));
    decode(list(FilterSpec::prefix(b"a".to_vec())));
    let ranges = numbers(50_000).map(|row| RowRange {
        start: row.clone(),
        start_inclusive: true,
        stop: row,
        stop_inclusive: true,
    });
    decode(FilterSpec::multi_row_range(ranges.collect()).expect("ranges in order"));
}
