//! Filters made of filters: AND, OR, SKIP, WHILE.

use super::*;

#[test]
fn and_stops_at_the_first_that_drops() {
    check(
        "QualifierFilter(=,'binary:b') AND ValueFilter(=,'binary:x')",
        "r2/f:b@5=x r2/g:b@5=x",
    );
    // The page counts only what the qualifier filter has let through, or everything: the order decides.
    check(
        "QualifierFilter(=,'binary:b') AND ColumnPaginationFilter(1,0)",
        "r1/f:b@2=y r2/f:b@5=x",
    );
    check(
        "ColumnPaginationFilter(1,0) AND QualifierFilter(=,'binary:b')",
        "r2/f:b@5=x",
    );
}

#[test]
fn and_with_hints() {
    let read = Read::new("r f:a@1=x r f:b@1=x r f:bb@1=y r f:c@1=x s f:bb@1=x");
    check_spec(
        &parse("ColumnPrefixFilter('b') AND ColumnPrefixFilter('bb')"),
        &read,
        "r/f:bb@1=y s/f:bb@1=x",
    );
    check_spec(
        &parse("PrefixFilter('s') AND ColumnPrefixFilter('b')"),
        &read,
        "s/f:bb@1=x",
    );
    check("PrefixFilter('r2') AND FirstKeyOnlyFilter()", "r2/f:b@5=x");
}

/// A child that gives hints is asked although a child before it has dropped the cell. So the page, which
/// counts what it is asked about, is not asked about the columns that the hint jumps over.
#[test]
fn and_jumps_as_far_as_any_hint() {
    let read = Read::new("r f:a@1=x r f:b@1=x r f:c@1=y r f:cc@1=z");
    check_spec(
        &parse("ColumnPaginationFilter(1,1) AND ColumnPrefixFilter('c')"),
        &read,
        "r/f:c@1=y",
    );
    // Without a hint the page counts all columns.
    check_spec(
        &parse("ColumnPaginationFilter(1,1) AND QualifierFilter(=,'binaryprefix:c')"),
        &read,
        "",
    );
    // The farthest hint counts, wherever it comes from.
    check_spec(
        &parse(
            "ColumnPaginationFilter(1,1) AND ColumnPrefixFilter('c') AND ColumnRangeFilter('cc',true,'d',false)",
        ),
        &read,
        "r/f:cc@1=z",
    );
}

#[test]
fn or_keeps_what_any_child_keeps() {
    check(
        "ValueFilter(=,'binary:w') OR FamilyFilter(=,'binary:g')",
        "r1/g:a@2=z r2/f:c@4=w r2/g:b@5=x s3/g:c@1=q",
    );
    let read = Read::new("r f:a@1=x r f:b@1=x r f:d@1=x r f:e@1=x r f:f@1=x");
    check_spec(
        &parse("ColumnPrefixFilter('e') OR ColumnPrefixFilter('b')"),
        &read,
        "r/f:b@1=x r/f:e@1=x",
    );
    check_spec(
        &parse("PrefixFilter('s') OR ColumnPrefixFilter('e')"),
        &read,
        "r/f:e@1=x",
    );
}

/// A list jumps only as far as none of its filters misses a cell.
#[test]
fn or_jumps_to_the_nearest_hint() {
    let read = Read::new("r f:a@1=x");
    check_hint(
        "ColumnPrefixFilter('c') OR ColumnPrefixFilter('d')",
        &read,
        "r f:c",
    );
    check_hint(
        "ColumnPrefixFilter('d') OR ColumnPrefixFilter('c')",
        &read,
        "r f:c",
    );
}

/// A child is not asked again about the cells that it has jumped over for itself.
#[test]
fn or_remembers_what_a_child_has_said() {
    // The page has counted column a once, though its older versions are offered for the sake of the value
    // filter.
    check(
        "ColumnPaginationFilter(2,0) OR ValueFilter(=,'binary:nothing')",
        "r1/f:a@3=x r1/f:b@2=y r2/f:b@5=x r2/f:c@4=w s3/f:a@1=y s3/g:c@1=q",
    );
    // FirstKeyOnly's "next row" holds for one family; in the other it says so again.
    check(
        "FirstKeyOnlyFilter() OR ValueFilter(=,'binary:q')",
        "r1/f:a@3=x r2/f:b@5=x s3/f:a@1=y s3/g:c@1=q",
    );
}

/// In a reversed scan a child that has named a place inside the row is asked again from that place of another
/// family on: HBase takes the hint from the last cell, and compares it in the order of the scan.
#[test]
fn hints_of_reversed_or_lists_are_taken_from_each_cell() {
    let cells = "b f:c@1=w b g:a@1=x b g:b@1=y d g:z@1=z";
    let either = parse("PageFilter(1) OR MultipleColumnPrefixFilter('n','a','b')");
    check_spec(&either, &Read::reversed(cells), "d/g:z@1=z b/g:b@1=y");
}

#[test]
fn or_of_row_filters() {
    check(
        "PrefixFilter('s') OR PrefixFilter('r2') AND QualifierFilter(=,'binary:c')",
        "r2/f:c@4=w s3/f:a@1=y s3/g:c@1=q",
    );
    let both = parse("PrefixFilter('s') OR PrefixFilter('r1')");
    let (r1, s3) = (
        "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r1/g:a@2=z",
        "s3/f:a@1=y s3/g:c@1=q",
    );
    check_spec(&both, &Read::new(CELLS), &format!("{r1} {s3}"));
    check_spec(&both, &Read::reversed(CELLS), &format!("{s3} {r1}"));
    let value = |column: &str, value: &str| {
        format!("SingleColumnValueFilter('f','{column}',=,'binary:{value}',true,true)")
    };
    let expected = "r2/f:b@5=x r2/f:c@4=w r2/g:b@5=x s3/f:a@1=y s3/g:c@1=q";
    check(&format!("{} OR {}", value("a", "y"), value("c", "w")), expected);
}

/// An OR transforms a cell only by the children that included it, an AND by all.
#[test]
fn transforms_of_lists() {
    let read = Read::new("r f:a@1=xyz r f:b@1=xyz");
    check_spec(
        &parse("KeyOnlyFilter() AND KeyOnlyFilter(true)"),
        &read,
        r"r/f:a@1=\x00\x00\x00\x00 r/f:b@1=\x00\x00\x00\x00",
    );
    check_spec(
        &parse("KeyOnlyFilter(true) AND KeyOnlyFilter(true)"),
        &read,
        r"r/f:a@1=\x00\x00\x00\x04 r/f:b@1=\x00\x00\x00\x04",
    );
    let first = "(FirstKeyOnlyFilter() AND KeyOnlyFilter()) OR ValueFilter(=,'binary:xyz')";
    check_spec(&parse(first), &read, "r/f:a@1= r/f:b@1=xyz");
    check_spec(
        &parse("ValueFilter(=,'binary:xyz') AND KeyOnlyFilter()"),
        &read,
        "r/f:a@1= r/f:b@1=",
    );
}

#[test]
fn pages_in_lists() {
    // Rows without cells never come to the page.
    check(
        "ValueFilter(=,'binary:y') AND PageFilter(2)",
        "r1/f:a@2=y r1/f:b@2=y s3/f:a@1=y",
    );
    // Put first, the page counts the row that the test behind it drops.
    let test = "SingleColumnValueFilter('f','c',=,'binary:w',true,true)";
    check(
        &format!("{test} AND PageFilter(1)"),
        "r2/f:b@5=x r2/f:c@4=w r2/g:b@5=x",
    );
    check(&format!("PageFilter(1) AND {test}"), "");
}

#[test]
fn empty_lists_let_everything_pass() {
    use crate::filter::ListOperator;
    let all = "r/f:a@1=x s/g:a@1=y";
    for operator in [ListOperator::MustPassAll, ListOperator::MustPassOne] {
        let filter = FilterSpec::list(operator, vec![]).unwrap();
        check_spec(&filter, &Read::new("r f:a@1=x s g:a@1=y"), all);
    }
}

#[test]
fn skip_drops_whole_rows() {
    check(
        "SKIP ValueFilter(!=,'binary:w')",
        "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r1/g:a@2=z s3/f:a@1=y s3/g:c@1=q",
    );
    // HBase never shows the row key to the filter inside.
    check(
        "SKIP RowFilter(=,'binary:r2')",
        "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r1/g:a@2=z r2/f:b@5=x r2/f:c@4=w r2/g:b@5=x s3/f:a@1=y s3/g:c@1=q",
    );
    check("SKIP PrefixFilter('r')", "");
    // "Include and next column" is not "include".
    check("SKIP ColumnPaginationFilter(9,0)", "");
}

#[test]
fn while_ends_the_scan() {
    check(
        "WHILE RowFilter(!=,'binary:r2')",
        "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r1/g:a@2=z",
    );
    // Cells that were included before the mismatch in the same row stay.
    check(
        "WHILE ValueFilter(!=,'binary:w')",
        "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r1/g:a@2=z r2/f:b@5=x",
    );
    check("WHILE SKIP ValueFilter(!=,'binary:z')", "");
    check(
        "WHILE PrefixFilter('r')",
        "r1/f:a@3=x r1/f:a@2=y r1/f:a@1=x r1/f:b@2=y r1/g:a@2=z r2/f:b@5=x r2/f:c@4=w r2/g:b@5=x",
    );
    check("WHILE PrefixFilter('s')", "");
    // It sees the cells of rows that another filter leaves out by their keys.
    check("WHILE ValueFilter(=,'binary:w') AND RowFilter(=,'binary:r2')", "");
    check(
        "RowFilter(=,'binary:r2') AND WHILE ValueFilter(=,'binary:x')",
        "r2/f:b@5=x",
    );
}
