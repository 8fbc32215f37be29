//! Rows of accounts: three of them, 30 together.

use basalt_histcheck::{bank, notation};

const GOOD: &[&str] = &[
    "a=#10 b=#10 c=#10",
    "a=#30 b=#0 c=#0",
    "a=#0 b=#30 c=#0",
    "a=#0 b=#0 c=#30",
    "a=#-10 b=#20 c=#20",
    "a=#31 b=#-1 c=#0",
    "a=#1000000000000 b=#-1000000000000 c=#30",
    "a=#9223372036854775807 b=#-9223372036854775777 c=#0",
    "a=#9223372036854775807 b=#1 c=#-9223372036854775778",
    "a=#1 b=#2 c=#27",
    "a=#2 b=#1 c=#27",
    "a=#27 b=#1 c=#2",
    "a=#15 b=#15 c=#0",
    "a=#-15 b=#15 c=#30",
    "a=#-30 b=#30 c=#30",
    "a=#29 b=#2 c=#-1",
    "x=#10 y=#10 z=#10",
    "x=#30 y=#0 z=#0",
    "a=#7 b=#11 c=#12",
    "a=\\00\\00\\00\\00\\00\\00\\00\\0a b=#10 c=#10",
];

const BAD: &[&str] = &[
    "",
    "a=#30",
    "a=#15 b=#15",
    "a=#10 b=#10 c=#10 d=#0",
    "a=#10 b=#10 c=#10 d=#10",
    "a=#10 b=#10 c=#9",
    "a=#10 b=#10 c=#11",
    "a=#11 b=#10 c=#10",
    "a=#0 b=#0 c=#0",
    "a=#-10 b=#-10 c=#-10",
    "a=#5 b=#10 c=#10",
    "a=#10 b=#15 c=#10",
    "a=#30 b=#30 c=#30",
    "a=10 b=#10 c=#10",
    "a=#10 b=#10 c=",
    "a=#20 b=#10 c=x",
    "a=#10 b=#10 c=123456789",
    "a=#9223372036854775807 b=#1 c=#30",
    "a=#31 b=#0 c=#0",
    "a=#29 b=#0 c=#0",
    "a=\\00\\00\\00\\00\\00\\00\\0a b=#10 c=#10",
];

fn check(text: &str) -> bool {
    bank::check(
        &"r".into(),
        &notation::parse_columns(text).expect("columns"),
        3,
        30,
    )
    .is_ok()
}

#[test]
fn rows_with_the_sum_are_accepted() {
    for text in GOOD {
        assert!(check(text), "{text}");
    }
    assert!(GOOD.len() >= 20);
}

#[test]
fn other_rows_are_rejected() {
    for text in BAD {
        assert!(!check(text), "{text}");
    }
    assert!(BAD.len() >= 20);
}
