//! Histories of one row that can and cannot have happened.

mod judge;

use basalt_histcheck::{Rows, linear, notation};

/// Histories that a right server can produce, each with its difficulty.
const GOOD: &[(&str, &str)] = &[
    ("nothing was ever written", "0-1 get"),
    ("a read during a write sees it", "0-9 write x=1; 1-2 get x=1"),
    (
        "a read during a write does not see it yet",
        "0-9 write x=1; 1-2 get",
    ),
    (
        "two reads during a write, old before new",
        "0-9 write x=1; 1-2 get; 3-4 get x=1",
    ),
    (
        "concurrent reads may disagree while the write is under way",
        "0-9 write x=1; 1-5 get x=1; 2-6 get",
    ),
    (
        "concurrent writes take effect in either order",
        "0-9 write x=1; 1-8 write x=2; 10-11 get x=1",
    ),
    ("equal times count as concurrent", "0-5 write x=1; 5-9 get"),
    (
        "an unknown write takes effect late, just before the crash",
        "0-? write x=1; 5-6 get; 7-8 get; crash 9; 10-11 get x=1",
    ),
    (
        "an unknown write never takes effect",
        "0-? write x=1; 5-6 get; crash 9; 10-11 get",
    ),
    (
        "an unknown write is seen before the crash and stays",
        "0-? write x=1; 5-6 get x=1; crash 9; 10-11 get x=1",
    ),
    (
        "without a crash an unknown write may come at any time",
        "0-? write x=1; 5-6 write x=2; 10-11 get x=2; 20-21 get x=1",
    ),
    (
        "a refused write is not there",
        "0-1 write x=1; 2-3! write x=2; 4-5 get x=1",
    ),
    (
        "two columns of one write, seen together",
        "0-1 write x=1 y=1; 2-9 write x=2 y=2; 3-4 get x=1 y=1; 5-6 get x=2 y=2",
    ),
    (
        "a write of one column leaves the other",
        "0-1 write x=1 y=1; 2-3 write y=2; 4-5 get x=1 y=2",
    ),
    (
        "a removed row is empty",
        "0-1 write x=1 y=1; 2-3 write -*; 4-5 get",
    ),
    (
        "the same value written again",
        "0-1 write x=1; 2-3 write x=2; 4-5 write x=1; 6-7 get x=1",
    ),
    (
        "two increments at once, in one of the two orders",
        "0-9 inc n+1 =2; 0-9 inc n+1 =1; 10-11 get n=#2",
    ),
    (
        "an unknown increment shows in the next sum",
        "0-? inc n+5; 2-3 inc n+1 =6; crash 9; 10-11 get n=#6",
    ),
    (
        "two appends at once",
        "0-9 app x+a =ba; 0-9 app x+b =b; 10-11 get x=ba",
    ),
    (
        "one of two checks for the same value passes",
        "0-1 write x=1; 2-9 if x=1 then x=2 no; 2-9 if x=1 then x=3 yes; 10-11 get x=3",
    ),
    (
        "a check that does not pass reads",
        "0-1 write x=1; 2-9 write x=2; 3-4 if x=1 then x=3 no; 5-6 get x=2",
    ),
    (
        "a check for absence passes after the removal",
        "0-1 write x=1; 2-9 write -x; 3-4 if -x then x=2 yes; 10-11 get x=2",
    ),
    (
        "an unknown check whose change is overwritten",
        "0-1 write x=1; 2-? if x=1 then x=2; 3-4 if x=2 then x=3 yes; crash 5; 6-7 get x=3",
    ),
    (
        "an unknown check that cannot have passed any more",
        "0-1 write x=1; 2-3 write x=4; 4-? if x=1 then x=2; crash 5; 6-7 get x=4",
    ),
    (
        "reads of an order that only one placement of three writes gives",
        "0-9 write x=1; 0-9 write x=2; 0-9 write x=3; 10-11 get x=2; 1-4 get x=1; 5-8 get x=3",
    ),
    (
        "two crashes, each with a write that may or may not be there",
        "0-? write x=1; crash 2; 3-? write x=2; crash 5; 6-7 get x=1",
    ),
];

/// Histories that no right server can produce, each with its error.
const BAD: &[(&str, &str)] = &[
    ("an acknowledged write is not there", "0-1 write x=1; 2-3 get"),
    ("a value from nowhere", "0-1 get x=1"),
    ("read before it was written", "0-1 get x=1; 2-3 write x=1"),
    ("old after new", "0-1 write x=1; 2-3 write x=2; 4-5 get x=1"),
    (
        "back to old while the write is under way",
        "0-9 write x=1; 1-2 get x=1; 3-4 get",
    ),
    (
        "two writes at once are seen in both orders",
        "0-9 write x=1; 0-9 write x=2; 1-2 get x=1; 3-4 get x=2; 5-6 get x=1",
    ),
    (
        "two readers see two orders",
        "0-9 write x=1; 0-9 write x=2; 1-2 get x=1; 3-4 get x=2; 10-11 get x=1",
    ),
    ("a lost write behind a crash", "0-1 write x=1; crash 5; 6-7 get"),
    (
        "an older value behind a crash",
        "0-1 write x=1; 2-3 write x=2; crash 5; 6-7 get x=1",
    ),
    (
        "seen before the crash, gone behind it",
        "0-? write x=1; 2-3 get x=1; crash 5; 6-7 get",
    ),
    (
        "an unknown write takes effect only after the crash",
        "0-? write x=1; crash 5; 6-7 get; 8-9 get x=1",
    ),
    (
        "a refused write is there",
        "0-1 write x=1; 2-3! write x=2; 4-5 get x=2",
    ),
    (
        "half of a write",
        "0-1 write x=1 y=1; 2-9 write x=2 y=2; 3-4 get x=2 y=1",
    ),
    (
        "half of a write behind a crash",
        "0-1 write x=1 y=1; 2-? write x=2 y=2; crash 5; 6-7 get x=1 y=2",
    ),
    (
        "a removed row comes back",
        "0-1 write x=1; 2-3 write -*; 4-5 get; 6-7 get x=1",
    ),
    (
        "a removed column comes back behind a crash",
        "0-1 write x=1 y=1; 2-3 write -x; crash 5; 6-7 get x=1 y=1",
    ),
    (
        "one of two increments is lost",
        "0-1 inc n+1 =1; 2-3 inc n+1 =2; 4-5 get n=#1",
    ),
    (
        "two increments return the same",
        "0-9 inc n+1 =1; 0-9 inc n+1 =1; 10-11 get n=#2",
    ),
    (
        "an unknown increment counts twice",
        "0-? inc n+5; 2-3 get n=#5; crash 5; 6-7 get n=#10",
    ),
    ("an append is lost", "0-1 app x+a =a; 2-3 app x+b =b; 4-5 get x=b"),
    (
        "appends return an order that the value does not have",
        "0-9 app x+a =ba; 0-9 app x+b =b; 10-11 get x=ab",
    ),
    (
        "two checks for the same value pass",
        "0-1 write x=1; 2-9 if x=1 then x=2 yes; 2-9 if x=1 then x=3 yes",
    ),
    (
        "a check passes on an old value",
        "0-1 write x=1; 2-3 write x=2; 4-5 if x=1 then x=3 yes",
    ),
    (
        "a check that must pass does not",
        "0-1 write x=1; 2-3 if x=1 then x=3 no",
    ),
    (
        "a check passes and changes nothing",
        "0-1 write x=1; 2-3 if x=1 then x=3 yes; 4-5 get x=1",
    ),
    (
        "a check for absence passes on a value",
        "0-1 write x=1; 2-3 if -x then x=3 yes; 4-5 get x=3",
    ),
    (
        "a write between two reads of the same value",
        "0-1 write x=1; 2-3 get x=1; 4-5 write x=2; 6-7 get x=1",
    ),
    (
        "the wrong one of several rows",
        "%a 0-1 write x=1; %b 2-3 get x=1",
    ),
];

fn check(text: &str) -> Result<linear::Checked, basalt_histcheck::Violation> {
    linear::check(&notation::parse(text).expect("a history"), &Rows::new())
}

#[test]
fn good_histories_are_accepted() {
    judge::accepts(GOOD, |text| {
        let checked = check(text)?;
        assert_eq!(checked.undecided, 0, "{text}");
        Ok(checked)
    });
}

#[test]
fn bad_histories_are_rejected() {
    judge::rejects(BAD, check);
}

#[test]
fn a_violation_shows_the_calls_since_the_last_known_state() {
    let violation = check("0-1 write x=1; 2-3 get x=1; 4-5 write y=2; 6-7 get x=1").expect_err("y is lost");
    assert_eq!(violation.row, "r");
    assert_eq!(
        violation.calls,
        "begins with: x=1\n@2 %r 4-5 write y=2\n@3 %r 6-7 get x=1\n"
    );
}

#[test]
fn rows_may_begin_with_something() {
    let initial = Rows::from([("r".into(), notation::parse_columns("x=1").expect("columns"))]);
    let history = notation::parse("0-1 get x=1; 2-3 write x=2; 4-5 get x=2").expect("a history");
    let checked = linear::check(&history, &initial).expect("right");
    assert_eq!((checked.calls, checked.pieces, checked.longest), (3, 2, 2));
    linear::check(&history, &Rows::new()).expect_err("the first read is of nothing");
}

#[test]
fn long_pieces_are_decided() {
    // 16 clients at once on one row, for 30 rounds: incremented, never quiet.
    let call = |number: u64| {
        let (round, client) = (number / 16, number % 16);
        let (begin, sum) = (round * 100 + client, number + 1);
        format!("@{client} {begin}-{} inc n+1 ={sum}\n", begin + 90)
    };
    let text: String = (0..480).map(call).collect();
    let checked = check(&text).expect("one order is right");
    assert_eq!((checked.calls, checked.longest), (480, 480));
    let wrong = text.replace("=480", "=481");
    check(&wrong).expect_err("one too many");
}
