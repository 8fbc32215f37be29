//! Each filter in the hands of a region: cells in, kept cells out.
//!
//! [`region`] is a small region that calls filters in HBase's order. A case is text: the filter (in the
//! filter language or as a `FilterSpec`), the cells, and what comes back.

mod filters;
mod lists;
mod region;

use self::region::{Read, hint, run};
use super::FilterSpec;

/// Two families, three rows, three versions in one column.
const CELLS: &str = "
    r1 f:a@3=x  r1 f:a@2=y  r1 f:a@1=x  r1 f:b@2=y  r1 g:a@2=z
    r2 f:b@5=x  r2 f:c@4=w  r2 g:b@5=x
    s3 f:a@1=y  s3 g:c@1=q";

fn parse(text: &str) -> FilterSpec {
    FilterSpec::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Over [`CELLS`], all versions, forward.
#[track_caller]
fn check(filter: &str, expected: &str) {
    check_spec(&parse(filter), &Read::new(CELLS), expected);
}

#[track_caller]
fn check_spec(filter: &FilterSpec, read: &Read<'_>, expected: &str) {
    let kept = run(filter, read).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(kept, expected, "{filter}");
}

/// The hint of a filter for the one cell of `read`. Without hints, scans are right and slow.
#[track_caller]
fn check_hint(filter: &str, read: &Read<'_>, expected: &str) {
    let hint = hint(&parse(filter), read).unwrap_or_else(|error| panic!("{filter}: {error}"));
    assert_eq!(hint.as_deref(), Some(expected), "{filter}");
}

/// A description is shared by regions on different threads; an instance moves with its scanner.
#[test]
fn descriptions_are_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn moved<T: Send>(_: T) {}
    let filter = parse("PageFilter(1) OR RowFilter(=,'regexstring:a')");
    shared(&filter);
    moved(filter.create());
}
