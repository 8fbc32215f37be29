//! Filters: every one of the filter language, every one of protobuf, and strings at the limits.

use basalt_engine::filter::{
    BigDecimal, BitOperator, Comparator, CompareOp, Comparison, FilterSpec, FuzzyKey, ListOperator, MaskForm,
    RowRange,
};

use super::{numbered, seed};
use crate::corpus::Input;

/// Strings that are filters.
const GOOD: &[&str] = &[
    "KeyOnlyFilter()",
    "KeyOnlyFilter(true)",
    "FirstKeyOnlyFilter()",
    "PrefixFilter('row')",
    "ColumnPrefixFilter('q')",
    "MultipleColumnPrefixFilter('a','na')",
    "ColumnCountGetFilter(2)",
    "PageFilter(3)",
    "ColumnPaginationFilter(2,1)",
    "InclusiveStopFilter('row-1')",
    "TimestampsFilter(9, 10)",
    "RowFilter(>=,'binary:row-1')",
    "FamilyFilter(!=,'binaryprefix:f')",
    "QualifierFilter(=,'regexstring:^n.*e$')",
    "ValueFilter(=,'substring:VALUE')",
    "ColumnRangeFilter('a',true,'n',false)",
    "SingleColumnValueFilter('f','name',=,'binary:value-1')",
    "SingleColumnValueFilter('f','name',<,'binary:value-1',true,false)",
    "SingleColumnValueExcludeFilter('f','name',!=,'regexstring:[0-9]+')",
    "DependentColumnFilter('f','name')",
    "DependentColumnFilter('f','name',true,>=,'binary:v')",
    "ColumnValueFilter('f','name',<=,'binary:value-1')",
    "PrefixFilter('it''s') AND (PageFilter(2) OR SKIP ValueFilter(=,'binary:'))",
    "WHILE RowFilter(<,'binary:z') AND SKIP WHILE KeyOnlyFilter()",
    "((PageFilter(1)) OR FirstKeyOnlyFilter() OR PrefixFilter('\0\u{e9}'))",
    "RowFilter(=,'regexstring:(?i)\\bA\\d{1,3}(\\Qx.y\\E|[\\p{Alpha}&&[^b]]|\\x41)$')",
];

/// Strings that are none, or are at a limit.
const BAD: &[&str] = &[
    "",
    "(",
    ")",
    "PageFilter(",
    "PageFilter(1",
    "PageFilter(99999999999999999999)",
    "PageFilter(-1)",
    "PrefixFilter('",
    "PrefixFilter('a'b)",
    "RowFilter(=,'binary:a'",
    "RowFilter(==,'binary')",
    "RowFilter(=,'regexstring:(?<=a)b')",
    "RowFilter(=,'regexstring:(a{1000}){1000}')",
    "RowFilter(=,'regexstring:\\p{IsLatin}{500}')",
    "PageFilter(1) AND",
    "OR PageFilter(1)",
    "PageFilter(1) PageFilter(2)",
    "NoSuchFilter('a')",
];

pub(super) fn strings() -> Vec<Input> {
    let mut seeds = numbered("filter", GOOD.iter().map(|text| text.as_bytes()));
    seeds.extend(numbered("refused", BAD.iter().map(|text| text.as_bytes())));
    for levels in [64, 65] {
        let nested = format!("{}PageFilter(1)", "(".repeat(levels));
        seeds.push(seed(format!("parentheses-{levels}-deep"), nested));
    }
    seeds
}

pub(super) fn bytes() -> Vec<Input> {
    let spoken = GOOD
        .iter()
        .map(|text| FilterSpec::parse(text.as_bytes()).expect("the list of good ones"));
    let mut seeds = numbered("filter", spoken.map(|spec| spec.encode()));
    seeds.extend(numbered("unspoken", unspoken().iter().map(FilterSpec::encode)));
    for levels in [63, 64] {
        let skip = |inner: Vec<u8>, _| wrapped("SkipFilter", &inner);
        let nested = (0..levels).fold(FilterSpec::filter_all().encode(), skip);
        seeds.push(seed(format!("skip-{levels}-deep"), nested));
    }
    seeds.push(seed("a-length-of-two-gigabytes", *b"\x0a\xff\xff\xff\xff\x07"));
    seeds.push(seed("an-unknown-class", *b"\x0a\x05Xxxxx\x12\x00"));
    seeds
}

/// Filters that the filter language cannot say.
fn unspoken() -> Vec<FilterSpec> {
    let equal = |comparator| Comparison::new(CompareOp::Equal, comparator);
    let range = |start: &[u8], stop: &[u8]| RowRange {
        start: start.to_vec(),
        start_inclusive: true,
        stop: stop.to_vec(),
        stop_inclusive: false,
    };
    let made = || -> basalt_engine::Result<Vec<FilterSpec>> {
        Ok(vec![
            FilterSpec::filter_all(),
            FilterSpec::first_key_value_matching_qualifiers(vec![b"b".to_vec(), b"a".to_vec()]),
            FilterSpec::random_row(0.5, 7),
            FilterSpec::timestamps(vec![1, 9, 10], true)?,
            FilterSpec::column_pagination_from(2, b"name".to_vec())?,
            FilterSpec::fuzzy_row(vec![
                FuzzyKey::new(b"row-?", &[0, 0, 0, 0, 1], MaskForm::Two)?,
                FuzzyKey::new(b"r\xffw", &[0, 1, 0], MaskForm::Two)?,
            ]),
            FilterSpec::multi_row_range(vec![range(b"a", b"b"), range(b"row-1", b"")])?,
            FilterSpec::value(equal(Comparator::Null)),
            FilterSpec::value(equal(Comparator::Long(42))),
            FilterSpec::value(equal(Comparator::BigDecimal(BigDecimal::decode(
                b"\x00\x00\x00\x02\x04\xd2",
            )?))),
            FilterSpec::value(equal(Comparator::Bit {
                value: b"value-1".to_vec(),
                operator: BitOperator::Xor,
            })),
            FilterSpec::row(equal(Comparator::BinaryComponent {
                value: b"w-".to_vec(),
                offset: 2,
            })),
            FilterSpec::list(ListOperator::MustPassOne, Vec::new())?,
            FilterSpec::list(
                ListOperator::MustPassAll,
                vec![
                    FilterSpec::page(1)?,
                    FilterSpec::skip(FilterSpec::key_only(false))?,
                ],
            )?,
        ])
    };
    made().expect("arguments within the limits")
}

/// A filter in a filter, written by hand since the constructors count levels.
fn wrapped(class: &str, inner: &[u8]) -> Vec<u8> {
    let field = |tag: u8, bytes: &[u8]| {
        let mut out = vec![tag];
        let mut length = bytes.len();
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(bytes);
        out
    };
    let name = format!("org.apache.hadoop.hbase.filter.{class}");
    [field(0x0a, name.as_bytes()), field(0x12, &field(0x0a, inner))].concat()
}
