//! Reads of bulk loads that must be accepted and rejected.

use std::collections::BTreeMap;

use basalt_histcheck::Violation;
use basalt_histcheck::loads::{Found, Loads, check};
use bytes::Bytes;

/// Rows of loads: `1: a b, 2: b c`.
fn loads(text: &str) -> Loads {
    let load = |part: &str| {
        let (number, rows) = part.split_once(':').expect("number: rows");
        let rows = rows
            .split_whitespace()
            .map(|row| Bytes::copy_from_slice(row.as_bytes()));
        (number.trim().parse().expect("a number"), rows.collect())
    };
    text.split(',').map(load).collect()
}

/// Two columns of each row: `a=1/1 b=2/2`.
fn found(text: &str) -> Found {
    let row = |part: &str| {
        let (row, numbers) = part.split_once('=').expect("row=numbers");
        let numbers = numbers.split('/').map(|number| number.parse().expect("a number"));
        (Bytes::copy_from_slice(row.as_bytes()), numbers.collect())
    };
    text.split_whitespace().map(row).collect()
}

fn judged(offered: &str, acknowledged: &str, read: &str) -> Result<(), Violation> {
    let least: BTreeMap<Bytes, u64> = found(acknowledged)
        .into_iter()
        .map(|(row, numbers)| (row, numbers[0]))
        .collect();
    check(&found(read), 2, &loads(offered), &least)
}

#[test]
fn reads_between_whole_loads_are_accepted() {
    for (offered, acknowledged, read) in [
        ("1: a b", "", ""),
        ("1: a b", "", "a=1/1 b=1/1"),
        ("1: a b", "a=1 b=1", "a=1/1 b=1/1"),
        ("1: a b, 2: b c", "a=1 b=1", "a=1/1 b=1/1"),
        ("1: a b, 2: b c", "a=1 b=1", "a=1/1 b=2/2 c=2/2"),
        ("1: a b, 2: b c", "a=1 b=2 c=2", "a=1/1 b=2/2 c=2/2"),
        ("1: a b c, 2: a, 3: b", "a=1 b=1 c=1", "a=2/2 b=1/1 c=1/1"),
        ("1: a b c, 2: a, 3: b", "a=2 b=1 c=1", "a=2/2 b=3/3 c=1/1"),
        // A load that was refused leaves nothing, and its number is not used again.
        ("1: a b, 3: a b", "a=1 b=1", "a=3/3 b=3/3"),
        ("1: a, 2: a, 3: a", "a=2", "a=3/3"),
    ] {
        let verdict = judged(offered, acknowledged, read);
        assert_eq!(verdict, Ok(()), "{offered} | {acknowledged} | {read}");
    }
}

#[test]
fn reads_of_parts_are_rejected() {
    for (offered, acknowledged, read, why) in [
        ("1: a b", "", "a=1/1", "this one None"),
        ("1: a b", "", "b=1/1", "this one None"),
        ("1: a b, 2: a b", "", "a=2/2 b=1/1", "this one Some(1)"),
        ("1: a b, 2: b c", "", "a=1/1 b=2/2", "this one None"),
        ("1: a b", "", "a=1 b=1/1", "instead of one number in 2 columns"),
        (
            "1: a b, 2: a b",
            "",
            "a=1/2 b=2/2",
            "instead of one number in 2 columns",
        ),
        ("1: a b", "a=1 b=1", "", "was acknowledged"),
        ("1: a b, 2: a b", "a=2 b=2", "a=1/1 b=1/1", "was acknowledged"),
        ("1: a b, 2: c", "a=1 b=1 c=2", "a=1/1 b=1/1", "was acknowledged"),
        ("1: a b", "", "a=1/1 b=1/1 c=1/1", "was not offered"),
        ("1: a b", "", "a=7/7 b=7/7", "was not offered"),
        ("1: a b, 2: a", "", "a=2/2 b=2/2", "was not offered"),
    ] {
        let violation = judged(offered, acknowledged, read).expect_err(read);
        assert!(violation.what.contains(why), "{read}: {violation}");
    }
}
