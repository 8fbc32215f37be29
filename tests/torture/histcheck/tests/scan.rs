//! Results that scans may and may not show.

use basalt_histcheck::scan::{Moments, Scan};
use basalt_histcheck::{Rows, Violation, notation};

/// Writes, and a scan: `opened-fetched`, then `<` for one in reverse, `..` for one that was interrupted,
/// `[a,c)` for a range, and rows as `a:1`, where the only column of row `a` holds 1.
type Case = (&'static str, &'static str, &'static str);

const GOOD: &[Case] = &[
    ("an empty table", "", "0-1"),
    ("all rows", "%a 0-1 write x=1; %b 0-1 write x=2", "5-6 a:1 b:2"),
    (
        "a write during the opening, not yet",
        "%a 0-1 write x=1; %b 5-6 write x=2",
        "4-7 a:1",
    ),
    (
        "a write during the opening, already",
        "%a 0-1 write x=1; %b 5-6 write x=2",
        "4-7 a:1 b:2",
    ),
    (
        "a write behind the opening is not there",
        "%a 0-1 write x=1; %a 8-9 write x=2",
        "4-5 a:1",
    ),
    (
        "a write that begins before the opening and ends behind it",
        "%a 0-9 write x=1",
        "4-5 a:1",
    ),
    ("the same, not yet", "%a 0-9 write x=1", "4-5"),
    (
        "the first of two writes at once is there, the other not",
        "%a 0-9 write x=1; %b 0-9 write x=2",
        "4-5 b:2",
    ),
    ("a removed row", "%a 0-1 write x=1; %a 2-3 write -*", "4-5"),
    (
        "a row that is removed meanwhile, still",
        "%a 0-1 write x=1; %a 4-9 write -*",
        "5-6 a:1",
    ),
    (
        "removed and written again",
        "%a 0-1 write x=1; %a 2-3 write -*; %a 4-5 write x=2",
        "6-7 a:2",
    ),
    (
        "a range",
        "%a 0-1 write x=1; %b 0-1 write x=2; %c 0-1 write x=3",
        "5-6 [b,c) b:2",
    ),
    (
        "an open range",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 [b,) b:2",
    ),
    (
        "in reverse",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 < b:2 a:1",
    ),
    (
        "interrupted",
        "%a 0-1 write x=1; %b 0-1 write x=2; %c 0-1 write x=3",
        "5-6 .. a:1 b:2",
    ),
    ("interrupted at once", "%a 0-1 write x=1", "5-6 .."),
    (
        "interrupted in reverse",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 <.. b:2",
    ),
    (
        "an unknown write is there",
        "%a 0-? write x=1; crash 9",
        "5-6 a:1",
    ),
    (
        "an unknown write is not there",
        "%a 0-? write x=1; crash 9",
        "5-6",
    ),
    (
        "an unknown write comes with the crash",
        "%a 0-? write x=1; crash 4",
        "5-6 a:1",
    ),
    ("a refused write is not there", "%a 0-1! write x=1", "5-6"),
    (
        "one client's writes up to a moment",
        "%a 10-11 write x=1; %b 12-13 write x=1; %c 14-15 write x=1",
        "5-30 a:1 b:1",
    ),
    (
        "either of two writes at once",
        "%a 0-3 write x=1; %a 1-4 write x=2",
        "5-6 a:1",
    ),
    (
        "a moment in the middle of the opening, and its rows",
        "%a 0-1 write x=1; %b 0-1 write x=1; %a 5-6 write x=2; %b 7-8 write x=2",
        "4-9 a:2 b:1",
    ),
];

const BAD: &[Case] = &[
    (
        "a row is missing",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 a:1",
    ),
    (
        "the first row is missing",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 b:2",
    ),
    ("nothing at all", "%a 0-1 write x=1", "5-6"),
    ("an older value", "%a 0-1 write x=1; %a 2-3 write x=2", "5-6 a:1"),
    ("a value of the future", "%a 8-9 write x=1", "5-6 a:1"),
    ("a row that no call wrote", "%a 0-1 write x=1", "5-6 a:1 b:2"),
    ("a value that no call wrote", "%a 0-1 write x=1", "5-6 a:2"),
    (
        "not in order",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 b:2 a:1",
    ),
    ("a row twice", "%a 0-1 write x=1", "5-6 a:1 a:1"),
    (
        "a row again behind another",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 a:1 b:2 a:1",
    ),
    (
        "in reverse and not in order",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 < a:1 b:2",
    ),
    (
        "below the range",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 [b,) a:1 b:2",
    ),
    (
        "at the end of the range, which is not in it",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 [a,b) a:1 b:2",
    ),
    ("a removed row", "%a 0-1 write x=1; %a 2-3 write -*", "5-6 a:1"),
    (
        "a removed row that was written again",
        "%a 0-1 write x=1; %a 2-3 write -*; %a 4-5 write x=2",
        "6-7",
    ),
    ("a refused write", "%a 0-1! write x=1", "5-6 a:1"),
    (
        "two rows of two moments: the second write without the first",
        "%a 10-11 write x=1; %b 12-13 write x=1",
        "5-30 b:1",
    ),
    (
        "two rows of two moments: old here, new there",
        "%a 0-1 write x=1; %b 0-1 write x=1; %a 5-6 write x=2; %b 7-8 write x=2",
        "4-9 a:1 b:2",
    ),
    (
        "three rows, the middle one of another moment",
        "%a 10-11 write x=1; %b 12-13 write x=1; %c 14-15 write x=1",
        "5-30 a:1 c:1",
    ),
    (
        "a hole before the last row of an interrupted scan",
        "%a 0-1 write x=1; %b 0-1 write x=2",
        "5-6 .. b:2",
    ),
    (
        "a hole in an interrupted scan in reverse",
        "%a 0-1 write x=1; %b 0-1 write x=2; %c 0-1 write x=3",
        "5-6 <.. c:3 a:1",
    ),
    ("acknowledged before the opening", "%a 0-4 write x=1", "5-9"),
    ("half of a row", "%a 0-1 write x=1 y=1", "5-6 a:1"),
    ("a row without columns", "%a 0-1 write x=1", "5-6 a"),
    (
        "an older row behind a crash",
        "%a 0-1 write x=1; %a 2-3 write x=2; crash 4",
        "5-6 a:1",
    ),
];

fn scan(text: &str) -> Scan {
    let mut words = text.split_whitespace();
    let (opened, fetched) = words.next().and_then(|word| word.split_once('-')).expect("times");
    let mut scan = Scan {
        opened: opened.parse().expect("a time"),
        fetched: fetched.parse().expect("a time"),
        complete: true,
        ..Scan::default()
    };
    for word in words {
        if let "<" | ".." | "<.." = word {
            scan.reversed = word.starts_with('<');
            scan.complete = !word.ends_with("..");
        } else if let Some(range) = word.strip_prefix('[') {
            let (start, stop) = range.trim_end_matches(')').split_once(',').expect("a range");
            (scan.start, scan.stop) = (start.to_owned().into(), stop.to_owned().into());
        } else {
            let (row, value) = word.split_once(':').unwrap_or((word, ""));
            let columns = match value {
                "" => String::new(),
                value => format!("x={value}"),
            };
            let columns = notation::parse_columns(&columns).expect("columns");
            scan.rows.push((row.to_owned().into(), columns));
        }
    }
    scan
}

fn check(writes: &str, scanned: &str) -> Result<(), Violation> {
    let history = notation::parse(writes).expect("a history");
    Moments::new(&history, &Rows::new())?.check(&scan(scanned))
}

#[test]
fn good_scans_are_accepted() {
    for (why, writes, scan) in GOOD {
        check(writes, scan).unwrap_or_else(|violation| panic!("{why}: {writes} | {scan}\n{violation}"));
    }
    assert!(GOOD.len() >= 20);
}

#[test]
fn bad_scans_are_rejected() {
    for (why, writes, scan) in BAD {
        assert!(check(writes, scan).is_err(), "{why}: {writes} | {scan}");
    }
    assert!(BAD.len() >= 20);
}

#[test]
fn rows_may_be_there_before() {
    let initial = Rows::from([("a".into(), notation::parse_columns("x=1").expect("columns"))]);
    let history = notation::parse("%a 5-6 write x=2").expect("a history");
    let moments = Moments::new(&history, &initial).expect("registers");
    moments.check(&scan("1-2 a:1")).expect("not written yet");
    moments.check(&scan("7-8 a:1")).expect_err("written before");
    moments.check(&scan("7-8")).expect_err("gone");
}

#[test]
fn a_row_that_is_no_register_is_told() {
    let history = notation::parse("%a 5-6 write x=2 -y").expect("a history");
    assert!(Moments::new(&history, &Rows::new()).is_err());
}
