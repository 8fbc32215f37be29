//! Every filter in both forms: the string, and the protobuf that HBase's Java client sends. The
//! details of each one are tested in the engine.

use basalt_engine::filter::{
    BitOperator, Comparator, CompareOp, Comparison, FilterSpec, FuzzyKey, ListOperator, MaskForm, RowRange,
};
use basalt_idl::thrift2::{self, args as two};
use bytes::Bytes;

use crate::client::{Wire, bytes, key, shown};

const R1: &str = "r1 f:a=1 f:b=2";
const R2: &str = "r2 f:a=3 g:c=4";
const S: &str = "s f:b=5";

/// A table with rows R1 at time 1, R2 at 2 and S at 3.
fn prepared(table: &str) -> Wire {
    let mut wire = Wire::connect();
    wire.create(table, &[]);
    for (stamp, row) in (1..).zip([R1, R2, S]) {
        let (row, cells) = row.split_once(' ').expect("a row has cells");
        for cell in cells.split(' ') {
            let (column, value) = cell.split_once('=').expect("a cell has a value");
            wire.put(table, row, column, value, Some(stamp));
        }
    }
    wire
}

/// The rows that a scan finds, without times.
fn scan(wire: &mut Wire, table: &str, tscan: thrift2::TScan) -> Vec<String> {
    let results = wire.ok(&two::GetScannerResults {
        table: bytes(table),
        tscan,
        num_rows: 9,
    });
    let cell = |cell: &String| {
        let (column, rest) = cell.split_once('@').expect("a time");
        let (_, value) = rest.split_once('=').expect("a value");
        format!(" {column}={value}")
    };
    results
        .iter()
        .map(|result| key(result) + &shown(result).iter().map(cell).collect::<String>())
        .collect()
}

fn by_bytes(filter: Vec<u8>) -> thrift2::TScan {
    thrift2::TScan {
        filter_bytes: Some(filter.into()),
        ..Default::default()
    }
}

#[test]
fn every_filter_of_the_string_language() {
    let mut wire = prepared("strings");
    for (filter, found) in [
        ("KeyOnlyFilter()", &["r1 f:a= f:b=", "r2 f:a= g:c=", "s f:b="][..]),
        ("FirstKeyOnlyFilter()", &["r1 f:a=1", "r2 f:a=3", S]),
        ("PrefixFilter('r')", &[R1, R2]),
        ("ColumnPrefixFilter('b')", &["r1 f:b=2", S]),
        (
            "MultipleColumnPrefixFilter('b', 'c')",
            &["r1 f:b=2", "r2 g:c=4", S],
        ),
        ("PageFilter(2)", &[R1, R2]),
        ("ColumnPaginationFilter(1, 1)", &["r1 f:b=2", "r2 g:c=4"]),
        ("InclusiveStopFilter('r2')", &[R1, R2]),
        ("TimestampsFilter(1, 3)", &[R1, S]),
        ("RowFilter(=, 'binary:r2')", &[R2]),
        ("FamilyFilter(=, 'binary:g')", &["r2 g:c=4"]),
        ("QualifierFilter(!=, 'substring:A')", &["r1 f:b=2", "r2 g:c=4", S]),
        ("ValueFilter(=, 'regexstring:[35]')", &["r2 f:a=3", S]),
        ("ValueFilter(>, 'binaryprefix:3')", &["r2 g:c=4", S]),
        ("ColumnRangeFilter('b', true, 'c', false)", &["r1 f:b=2", S]),
        (
            "SingleColumnValueFilter('f', 'a', =, 'binary:1', true, true)",
            &[R1],
        ),
        (
            "SingleColumnValueExcludeFilter('f', 'a', =, 'binary:1', true, true)",
            &["r1 f:b=2"],
        ),
        ("DependentColumnFilter('f', 'b')", &[R1, S]),
        ("ColumnValueFilter('f', 'a', =, 'binary:3')", &["r2 f:a=3"]),
        ("SKIP ValueFilter(!=, 'binary:2')", &[R2, S]),
        ("WHILE ValueFilter(!=, 'binary:4')", &[R1, "r2 f:a=3"]),
        (
            "PrefixFilter('r') AND TimestampsFilter(2) OR PrefixFilter('s')",
            &[R2, S],
        ),
    ] {
        let as_string = thrift2::TScan {
            filter_string: Some(bytes(filter)),
            ..Default::default()
        };
        assert_eq!(scan(&mut wire, "strings", as_string), found, "{filter}");
        let spec = FilterSpec::parse(filter.as_bytes()).expect("a filter string");
        assert_eq!(
            scan(&mut wire, "strings", by_bytes(spec.encode())),
            found,
            "{filter} as bytes"
        );
    }
    // Meant for gets: it ends a scan.
    let one_column = FilterSpec::parse(b"ColumnCountGetFilter(1)").expect("a filter string");
    let get = |filter_string, filter_bytes| two::Get {
        table: bytes("strings"),
        tget: thrift2::TGet {
            row: bytes("r1"),
            filter_string,
            filter_bytes,
            ..Default::default()
        },
    };
    for tget in [
        get(Some(bytes("ColumnCountGetFilter(1)")), None),
        get(None, Some(one_column.encode().into())),
    ] {
        assert_eq!(shown(&wire.ok(&tget)), ["f:a@1=1"]);
    }
}

/// A protobuf field of the wire type "length and bytes".
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    assert!(length < 0x80, "one byte of varint");
    [&[number << 3 | 2, length], content].concat()
}

#[test]
fn every_filter_that_only_protobuf_has() {
    let mut wire = prepared("protobuf");
    let value_is = |value: &[u8]| {
        FilterSpec::value(Comparison::new(
            CompareOp::Equal,
            Comparator::Binary(value.to_vec()),
        ))
    };
    let good = "these are good arguments";
    let range = RowRange {
        start: b"r2".to_vec(),
        start_inclusive: true,
        stop: b"s".to_vec(),
        stop_inclusive: false,
    };
    let wrapper = [
        field(1, b"org.apache.hadoop.hbase.filter.FilterWrapper"),
        field(2, &field(1, &value_is(b"1").encode()[..])),
    ]
    .concat();
    for (what, filter, found) in [
        (
            "FilterList",
            FilterSpec::list(ListOperator::MustPassOne, vec![value_is(b"1"), value_is(b"4")])
                .expect(good)
                .encode(),
            &["r1 f:a=1", "r2 g:c=4"][..],
        ),
        (
            "SkipFilter",
            FilterSpec::skip(FilterSpec::timestamps(vec![2], true).expect(good))
                .expect(good)
                .encode(),
            &[R2],
        ),
        (
            "WhileMatchFilter",
            FilterSpec::while_match(FilterSpec::prefix(b"r1".to_vec()))
                .expect(good)
                .encode(),
            &[R1],
        ),
        ("FilterWrapper", wrapper, &["r1 f:a=1"]),
        (
            "FuzzyRowFilter",
            FilterSpec::fuzzy_row(vec![FuzzyKey::new(b"r?", &[0, 1], MaskForm::Two).expect(good)]).encode(),
            &[R1, R2],
        ),
        (
            "MultiRowRangeFilter",
            FilterSpec::multi_row_range(vec![range]).expect(good).encode(),
            &[R2],
        ),
        (
            "RandomRowFilter",
            FilterSpec::random_row(1.1, 0).encode(),
            &[R1, R2, S],
        ),
        (
            "FirstKeyValueMatchingQualifiersFilter",
            FilterSpec::first_key_value_matching_qualifiers(vec![b"a".to_vec()]).encode(),
            &["r1 f:a=1", "r2 f:a=3", S],
        ),
        ("FilterAllFilter", FilterSpec::filter_all().encode(), &[]),
        (
            "ColumnPaginationFilter",
            FilterSpec::column_pagination_from(1, b"b".to_vec())
                .expect(good)
                .encode(),
            &["r1 f:b=2", "r2 g:c=4", S],
        ),
    ] {
        assert_eq!(scan(&mut wire, "protobuf", by_bytes(filter)), found, "{what}");
    }
    let unknown = two::OpenScanner {
        table: bytes("protobuf"),
        tscan: by_bytes(field(1, b"org.apache.hadoop.hbase.filter.NoSuchFilter")),
    };
    wire.refused(&unknown, &["Io(", "NoSuchFilter", "can_retry: Some(false)"]);
}

#[test]
fn every_comparator_that_only_protobuf_has() {
    let mut wire = Wire::connect();
    wire.create("comparators", &[]);
    let mut put = |row: &'static str, value: &[u8]| {
        let mut tput = crate::client::put(row, "f:q", "", None);
        tput.column_values[0].value = Bytes::copy_from_slice(value);
        wire.ok(&two::Put {
            table: bytes("comparators"),
            tput,
        });
    };
    put("five", &5_i64.to_be_bytes());
    put("minus", &(-5_i64).to_be_bytes());
    let value = |op, comparator| FilterSpec::value(Comparison::new(op, comparator));
    for (filter, found) in [
        (value(CompareOp::Less, Comparator::Long(0)), "minus"),
        (
            value(
                CompareOp::Equal,
                Comparator::Bit {
                    value: 4_i64.to_be_bytes().to_vec(),
                    operator: BitOperator::And,
                },
            ),
            "five",
        ),
        (
            value(
                CompareOp::Equal,
                Comparator::BinaryComponent {
                    value: vec![5],
                    offset: 7,
                },
            ),
            "five",
        ),
    ] {
        let tscan = by_bytes(filter.encode());
        assert_eq!(wire.scan("comparators", tscan), [found], "{filter}");
    }
    // Greater than whatever it is compared with.
    let mut against_null = |op| wire.scan("comparators", by_bytes(value(op, Comparator::Null).encode()));
    assert_eq!(against_null(CompareOp::Equal), [] as [String; 0]);
    assert_eq!(against_null(CompareOp::NotEqual), ["five", "minus"]);
}
