//! One test for each filter by itself.

use super::*;
use crate::filter::{Comparator, CompareOp, Comparison, FuzzyKey, MaskForm, RowRange};

const R1: &str = "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r1/g:a@2=z";
const R2: &str = "r2/f:b@5=x r2/f:c@4=w r2/g:b@5=x";
const S3: &str = "s3/f:a@1=y s3/g:c@1=q";

#[track_caller]
fn check_rows(filter: &str, rows: &[&str]) {
    check(filter, &rows.join(" "));
}

#[track_caller]
fn check_reversed(filter: &str, rows: &[&str]) {
    check_spec(&parse(filter), &Read::reversed(CELLS), &rows.join(" "));
}

#[test]
fn key_only() {
    let read = Read::new("r f:a@1=xyz r f:b@1=");
    check_spec(&parse("KeyOnlyFilter()"), &read, "r/f:a@1= r/f:b@1=");
    check_spec(
        &parse("KeyOnlyFilter(true)"),
        &read,
        r"r/f:a@1=\x00\x00\x00\x03 r/f:b@1=\x00\x00\x00\x00",
    );
}

#[test]
fn first_key_only_is_one_cell_a_row() {
    check("FirstKeyOnlyFilter()", "r1/f:a@3=x r2/f:b@5=x s3/f:a@1=y");
}

#[test]
fn first_key_value_matching_qualifiers_shows_what_comes_before() {
    let filter = FilterSpec::first_key_value_matching_qualifiers(vec![b"b".to_vec(), b"z".to_vec()]);
    let expected = "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r2/f:b@5=x s3/f:a@1=y s3/g:c@1=q";
    check_spec(&filter, &Read::new(CELLS), expected);
}

#[test]
fn prefix() {
    check_rows("PrefixFilter('r')", &[R1, R2]);
    check_rows("PrefixFilter('r2')", &[R2]);
    check_rows("PrefixFilter('')", &[R1, R2, S3]);
    check_rows("PrefixFilter('r22')", &[]);
    check_reversed("PrefixFilter('r')", &[R2, R1]);
    check_reversed("PrefixFilter('r1')", &[R1]);
    check_reversed("PrefixFilter('t')", &[]);
    check_hint("PrefixFilter('s')", &Read::new("r f:a@1=x"), "s f:");
    check_hint("PrefixFilter('s')", &Read::reversed("u f:a@1=x"), "t f:");
}

#[test]
fn inclusive_stop() {
    check_rows("InclusiveStopFilter('r2')", &[R1, R2]);
    check_rows("InclusiveStopFilter('r')", &[]);
    check_reversed("InclusiveStopFilter('r2')", &[S3, R2]);
}

#[test]
fn row() {
    check_rows("RowFilter(=, 'substring:2')", &[R2]);
    check_rows("RowFilter(!=, 'regexstring:^r2$')", &[R1, S3]);
    check_rows("RowFilter(>=, 'binary:r2')", &[R2, S3]);
    check_reversed("RowFilter(<, 'binary:s')", &[R2, R1]);
}

#[test]
fn page() {
    check_rows("PageFilter(2)", &[R1, R2]);
    check_rows("PageFilter(0)", &[]);
    check_reversed("PageFilter(1)", &[S3]);
}

#[test]
fn random_row() {
    let cells: Vec<_> = (0..1000).map(|row| format!("{row} f:a@1=x")).collect();
    let cells = cells.join(" ");
    let kept = |chance: f32, seed: u64| {
        let kept = run(&FilterSpec::random_row(chance, seed), &Read::new(&cells)).unwrap();
        kept.split_whitespace().count()
    };
    assert_eq!(kept(-0.1, 1), 0);
    assert_eq!(kept(0.0, 1), 0);
    assert_eq!(kept(f32::NAN, 1), 0);
    assert_eq!(kept(1.1, 1), 1000);
    // Five standard deviations around 300.
    assert!((228..=372).contains(&kept(0.3, 1)), "{}", kept(0.3, 1));
    let rows = |seed| run(&FilterSpec::random_row(0.3, seed), &Read::new(&cells)).unwrap();
    assert_eq!(rows(1), rows(1));
    assert_ne!(rows(1), rows(2));
}

#[test]
fn filter_all() {
    check_spec(&FilterSpec::filter_all(), &Read::new(CELLS), "");
}

#[test]
fn family_is_left_by_itself() {
    check("FamilyFilter(=, 'binary:g')", "r1/g:a@2=z r2/g:b@5=x s3/g:c@1=q");
    check(
        "FamilyFilter(<, 'binary:g')",
        "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r2/f:b@5=x r2/f:c@4=w s3/f:a@1=y",
    );
}

#[test]
fn qualifier_judges_empty_ones_too() {
    check(
        "QualifierFilter(=, 'binary:b')",
        "r1/f:b@2=y r2/f:b@5=x r2/g:b@5=x",
    );
    check_spec(
        &parse("QualifierFilter(=, 'binary:b')"),
        &Read::new("r f:@1=x r f:a@1=x r f:b@1=x"),
        "r/f:b@1=x",
    );
}

#[test]
fn column_prefix() {
    let read = Read::new("r f:a@1=x r f:b@1=x r f:ba@2=x r f:ba@1=x r f:c@1=x r g:ba@1=x");
    check_spec(
        &parse("ColumnPrefixFilter('b')"),
        &read,
        "r/f:b@1=x r/f:ba@2=x r/f:ba@1=x r/g:ba@1=x",
    );
    check_spec(
        &parse("ColumnPrefixFilter('ba')"),
        &read,
        "r/f:ba@2=x r/f:ba@1=x r/g:ba@1=x",
    );
}

/// With overlapping prefixes only the greatest one not above the qualifier counts: `ac` is lost.
#[test]
fn multiple_column_prefix() {
    let read =
        Read::new("r f:a@1=x r f:ab@1=x r f:abz@1=x r f:ac@1=x r f:b@1=x r f:d@1=x r f:e@1=x r g:d@1=x");
    check_spec(
        &parse("MultipleColumnPrefixFilter('d','a','ab')"),
        &read,
        "r/f:a@1=x r/f:ab@1=x r/f:abz@1=x r/f:d@1=x r/g:d@1=x",
    );
    check_spec(&parse("MultipleColumnPrefixFilter('b')"), &read, "r/f:b@1=x");
    check_rows("MultipleColumnPrefixFilter()", &[R1, R2, S3]);
}

#[test]
fn column_range() {
    let read = Read::new("r f:a@1=x r f:b@2=x r f:b@1=x r f:c@1=x r f:d@1=x r g:b@1=x");
    let cases = [
        ("'b', true, 'd', false", "r/f:b@2=x r/f:b@1=x r/f:c@1=x r/g:b@1=x"),
        ("'b', false, 'd', true", "r/f:c@1=x r/f:d@1=x"),
        ("'', false, 'a', true", "r/f:a@1=x"),
        ("'c', true, '', false", "r/f:c@1=x r/f:d@1=x"),
        ("'bb', true, 'bc', true", ""),
    ];
    for (arguments, expected) in cases {
        check_spec(
            &parse(&format!("ColumnRangeFilter({arguments})")),
            &read,
            expected,
        );
    }
}

/// Meant for Get: the scan ends at the first row with more columns.
#[test]
fn column_count_get() {
    check(
        "ColumnCountGetFilter(3)",
        "r1/f:a@3=x r1/f:b@2=y r1/g:a@2=z r2/f:b@5=x r2/f:c@4=w r2/g:b@5=x s3/f:a@1=y s3/g:c@1=q",
    );
    let read = Read::new("r f:a@1=x r f:b@1=x r f:c@1=x");
    check_spec(&parse("ColumnCountGetFilter(2)"), &read, "r/f:a@1=x r/f:b@1=x");
    check_spec(&parse("ColumnCountGetFilter(0)"), &read, "");
}

/// Counted over the families of a row, newest versions only.
#[test]
fn column_pagination() {
    check("ColumnPaginationFilter(1, 0)", "r1/f:a@3=x r2/f:b@5=x s3/f:a@1=y");
    check(
        "ColumnPaginationFilter(2, 1)",
        "r1/f:b@2=y r1/g:a@2=z r2/f:c@4=w r2/g:b@5=x s3/g:c@1=q",
    );
    check("ColumnPaginationFilter(2147483647, 2147483647)", "");
    let from = FilterSpec::column_pagination_from(2, b"b".to_vec()).unwrap();
    check_spec(
        &from,
        &Read::new(CELLS),
        "r1/f:b@2=y r1/g:a@2=z r2/f:b@5=x r2/f:c@4=w s3/g:c@1=q",
    );
}

#[test]
fn timestamps() {
    let expected = "r1/f:a@3=x r1/f:a@1=x r2/f:b@5=x r2/g:b@5=x s3/f:a@1=y s3/g:c@1=q";
    check("TimestampsFilter(5, 1, 3)", expected);
    check("TimestampsFilter()", "");
    let hinting = FilterSpec::timestamps(vec![1, 3, 5], true).unwrap();
    check_spec(&hinting, &Read::new(CELLS), expected);
}

/// Each version by itself, and the client's versions are counted behind the filter: an older one that matches
/// comes back.
#[test]
fn value() {
    check("ValueFilter(=, 'binary:y')", "r1/f:a@2=y r1/f:b@2=y s3/f:a@1=y");
    let newest = Read {
        max_versions: 1,
        ..Read::new(CELLS)
    };
    check_spec(
        &parse("ValueFilter(=, 'binary:y')"),
        &newest,
        "r1/f:a@2=y r1/f:b@2=y s3/f:a@1=y",
    );
    check_spec(
        &parse("ValueFilter(=, 'binary:x')"),
        &newest,
        "r1/f:a@3=x r2/f:b@5=x r2/g:b@5=x",
    );
    let no_op = FilterSpec::value(Comparison::new(CompareOp::NoOp, Comparator::Binary(vec![])));
    check_spec(&no_op, &Read::new(CELLS), "");
}

#[test]
fn incomparable_values_fail_the_read() {
    let filter = FilterSpec::value(Comparison::new(CompareOp::Equal, Comparator::Long(1)));
    assert!(run(&filter, &Read::new(CELLS)).is_err(), "{filter}");
}

#[test]
fn single_column_value() {
    let filter = |arguments: &str| format!("SingleColumnValueFilter('f','a',=,'binary:{arguments})");
    check_rows(&filter("x'"), &[R1, R2]);
    check_rows(&filter("x', true, true"), &[R1]);
    check_rows(&filter("y'"), &[R2, S3]);
    // An older version of r1 has the value.
    check_rows(&filter("y', true, false"), &[R1, S3]);
    check_rows("SingleColumnValueFilter('g','a',=,'binary:z',true,true)", &[R1]);
    check_rows("SingleColumnValueFilter('g','a',=,'binary:q',true,true)", &[]);
}

#[test]
fn single_column_value_exclude() {
    check(
        "SingleColumnValueExcludeFilter('f','a',=,'binary:x',true,true)",
        "r1/f:b@2=y r1/g:a@2=z",
    );
    let read = Read::new("r f:a@1=x s f:a@1=x s f:b@1=x");
    check_spec(
        &parse("SingleColumnValueExcludeFilter('f','a',=,'binary:x')"),
        &read,
        "s/f:b@1=x",
    );
}

#[test]
fn essential_families() {
    let essential = |filter: &str, family: &[u8]| parse(filter).create().is_family_essential(family);
    let missing_passes = "SingleColumnValueFilter('f','a',=,'binary:x')";
    let missing_fails = "SingleColumnValueFilter('f','a',=,'binary:x',true,true)";
    assert!(essential(missing_passes, b"g"));
    assert!(!essential(missing_fails, b"g"));
    assert!(essential(missing_fails, b"f"));
    assert!(!essential(&format!("SKIP WHILE {missing_fails}"), b"g"));
    assert!(essential(&format!("PageFilter(1) OR {missing_fails}"), b"g"));
    assert!(!essential(&format!("{missing_fails} AND {missing_fails}"), b"g"));
    assert!(!essential("ColumnValueFilter('f','a',=,'binary:x')", b"g"));
}

#[test]
fn column_value() {
    check("ColumnValueFilter('f','a',=,'binary:x')", "r1/f:a@3=x r1/f:a@1=x");
    check("ColumnValueFilter('g','b',!=,'binary:z')", "r2/g:b@5=x");
}

#[test]
fn dependent_column() {
    check(
        "DependentColumnFilter('f','b')",
        "r1/f:a@2=y r1/f:b@2=y r1/g:a@2=z r2/f:b@5=x r2/g:b@5=x",
    );
    check(
        "DependentColumnFilter('f','b',true)",
        "r1/f:a@2=y r1/g:a@2=z r2/g:b@5=x",
    );
    check("DependentColumnFilter('f','b',true,=,'binary:x')", "r2/g:b@5=x");
    check(
        "DependentColumnFilter('g','a',false,=,'binary:z')",
        "r1/f:a@2=y r1/f:b@2=y r1/g:a@2=z",
    );
}

#[test]
fn fuzzy_row() {
    let cells = "a1x f:q@1=v a1xy f:q@1=v a2 f:q@1=v a2y f:q@1=v b1x f:q@1=v b2x g:q@1=v c9z f:q@1=v";
    let fuzzy = |keys: &[(&str, &[u8])]| {
        let key = |(key, mask): &(&str, &[u8])| FuzzyKey::new(key.as_bytes(), mask, MaskForm::Two).unwrap();
        FilterSpec::fuzzy_row(keys.iter().map(key).collect())
    };
    let any_x = fuzzy(&[("??x", &[1, 1, 0])]);
    check_spec(
        &any_x,
        &Read::new(cells),
        "a1x/f:q@1=v a1xy/f:q@1=v a2/f:q@1=v b1x/f:q@1=v b2x/g:q@1=v",
    );
    check_spec(
        &any_x,
        &Read::reversed(cells),
        "b2x/g:q@1=v b1x/f:q@1=v a2/f:q@1=v a1xy/f:q@1=v a1x/f:q@1=v",
    );
    let two = fuzzy(&[("a2y", &[0, 0, 0]), ("c??", &[0, 1, 1])]);
    check_spec(&two, &Read::new(cells), "a2/f:q@1=v a2y/f:q@1=v c9z/f:q@1=v");
    check_spec(&two, &Read::reversed(cells), "c9z/f:q@1=v a2y/f:q@1=v a2/f:q@1=v");
    check_spec(&fuzzy(&[]), &Read::new(cells), "");
}

#[test]
fn multi_row_range() {
    let range = |start: &str, start_inclusive, stop: &str, stop_inclusive| RowRange {
        start: start.into(),
        start_inclusive,
        stop: stop.into(),
        stop_inclusive,
    };
    let filter = |ranges: &[RowRange]| FilterSpec::multi_row_range(ranges.to_vec()).unwrap();
    let cells = "a f:q@1=v b f:q@1=v c g:q@1=v d f:q@1=v e f:q@1=v f f:q@1=v g g:q@1=v";
    let rows = |rows: &str| {
        let family = |row: char| if matches!(row, 'c' | 'g') { 'g' } else { 'f' };
        let cells = rows.chars().map(|row| format!("{row}/{}:q@1=v", family(row)));
        cells.collect::<Vec<_>>().join(" ")
    };
    let cases = [
        (
            vec![range("b", true, "c", true), range("e", true, "f", false)],
            "bce",
        ),
        (
            vec![range("b", false, "d", false), range("f", true, "", false)],
            "cfg",
        ),
        (
            vec![range("", true, "b", false), range("f", false, "g", true)],
            "ag",
        ),
        (vec![range("bb", true, "cc", true)], "c"),
        (vec![range("x", true, "z", true)], ""),
        (vec![range("", true, "", true)], "abcdefg"),
    ];
    for (ranges, expected) in cases {
        check_spec(&filter(&ranges), &Read::new(cells), &rows(expected));
        let backward: String = expected.chars().rev().collect();
        check_spec(&filter(&ranges), &Read::reversed(cells), &rows(&backward));
    }
}
