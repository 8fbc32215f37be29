//! Refused writes must not be seen.

mod judge;

use basalt_histcheck::{Rows, Violation, notation, refused};

const GOOD: &[(&str, &str)] = &[
    ("nothing was refused", "0-1 write x=1; 2-3 get x=1"),
    ("refused and not there", "0-1! write x=1; 2-3 get"),
    ("refused, then done", "0-1! write x=1; 2-3 write x=1; 4-5 get x=1"),
    ("done, then refused", "0-1 write x=1; 2-3! write x=1; 4-5 get x=1"),
    (
        "refused, then unknown",
        "0-1! write x=1; 2-? write x=1; 4-5 get x=1",
    ),
    (
        "refused in one row, done in another",
        "%a 0-1! write x=1; %b 0-1 write x=1; %b 2-3 get x=1",
    ),
    ("another column", "0-1! write x=1; 2-3 write y=2; 4-5 get y=2"),
    (
        "one of two columns was written by another",
        "0-1! write x=1 y=1; 2-3 write x=1 y=1; 4-5 get x=1 y=1",
    ),
    ("a refused removal", "0-1 write x=1; 2-3! write -x; 4-5 get x=1"),
    (
        "a refused removal of the row",
        "0-1 write x=1; 2-3! write -*; 4-5 get x=1",
    ),
    (
        "a refused append is not in the value",
        "0-1 app x+a =a; 2-3! app x+b; 4-5 get x=a",
    ),
    (
        "a refused append, then done",
        "0-1! app x+b; 2-3 app x+b =b; 4-5 get x=b",
    ),
    (
        "a refused append that was also written",
        "0-1! app x+b; 2-3 write x=abc; 4-5 get x=abc",
    ),
    (
        "a refused append that is empty",
        "0-1! app x+; 2-3 write x=a; 4-5 get x=a",
    ),
    (
        "a refused check",
        "0-1 write x=1; 2-3! if x=1 then x=2; 4-5 get x=1",
    ),
    (
        "a refused check whose value another call wrote",
        "0-1! if -x then x=2; 2-3 write x=2; 4-5 get x=2",
    ),
    (
        "a check that did not pass would have written the same",
        "0-1! write x=2; 2-3 if x=1 then x=2 no; 4-5 get",
    ),
    (
        "refused increments are left to others",
        "0-1! inc n+1; 2-3 get n=#1",
    ),
    ("a refused get", "0-1! get; 2-3 write x=1; 4-5 get x=1"),
    ("no read", "0-1! write x=1"),
    ("a longer value", "0-1! write x=1; 2-3 write x=11; 4-5 get x=11"),
];

const BAD: &[(&str, &str)] = &[
    ("there at once", "0-1! write x=1; 2-3 get x=1"),
    ("there while it is refused", "0-9! write x=1; 2-3 get x=1"),
    ("there behind a crash", "0-1! write x=1; crash 5; 6-7 get x=1"),
    (
        "there for a while",
        "0-1! write x=1; 2-3 get x=1; 4-5 write x=2; 6-7 get x=2",
    ),
    ("there late", "0-1! write x=1; 2-3 get; 4-5 get x=1"),
    (
        "instead of what was there",
        "0-1 write x=1; 2-3! write x=2; 4-5 get x=2",
    ),
    ("one of its columns", "0-1! write x=1 y=2; 2-3 get y=2"),
    (
        "one column of two, the other is another call's",
        "0-1! write x=1 y=2; 2-3 write x=1; 4-5 get x=1 y=2",
    ),
    (
        "a refused check",
        "0-1 write x=1; 2-3! if x=1 then x=2; 4-5 get x=2",
    ),
    ("a refused check for absence", "0-1! if -x then x=2; 4-5 get x=2"),
    (
        "a refused check behind a crash",
        "0-1 write x=1; 2-3! if x=1 then x=2; crash 4; 5-6 get x=2",
    ),
    ("a refused append", "0-1 app x+a =a; 2-3! app x+b; 4-5 get x=ab"),
    ("a refused append at the beginning", "0-1! app x+b; 2-3 get x=b"),
    ("a refused append in a later sum", "0-1! app x+b; 2-3 app x+a =ba"),
    (
        "a refused append in the middle",
        "0-1 app x+a =a; 2-3! app x+b; 4-5 app x+c =abc",
    ),
    (
        "a refused append behind a crash",
        "0-1 app x+a =a; 2-3! app x+b; crash 4; 5-6 get x=ab",
    ),
    ("in another column", "0-1! write x=1; 2-3 get y=1"),
    ("refused twice", "0-1! write x=1; 2-3! write x=1; 4-5 get x=1"),
    (
        "in one of two rows",
        "%a 0-1! write x=1; %a 2-3 get x=1; %b 0-1 write x=1; %b 2-3 get x=1",
    ),
    (
        "one of several refused",
        "0-1! write x=1; 2-3! write x=2; 4-5 get x=2",
    ),
    (
        "a refused mutation with a removal",
        "0-1 write y=1; 2-3! write x=2 -y; 4-5 get x=2",
    ),
];

fn check(text: &str) -> Result<usize, Violation> {
    refused::check(&notation::parse(text).expect("a history"), &Rows::new())
}

#[test]
fn good_histories_are_accepted() {
    judge::accepts(GOOD, check);
}

#[test]
fn bad_histories_are_rejected() {
    judge::rejects(BAD, check);
}

#[test]
fn earlier_values_are_no_violation() {
    let initial = Rows::from([("r".into(), notation::parse_columns("x=1").expect("columns"))]);
    let history = notation::parse("0-1! write x=1; 2-3 get x=1").expect("a history");
    assert_eq!(refused::check(&history, &initial), Ok(1));
    assert_eq!(check("0-1 write x=1; 2-3 get x=1"), Ok(0));
}
