//! Values that counters may and may not show.

mod judge;

use basalt_histcheck::{Rows, Violation, counter, notation};

const GOOD: &[(&str, &str)] = &[
    (
        "one after the other",
        "0-1 inc n+1 =1; 2-3 inc n+2 =3; 4-5 get n=#3",
    ),
    ("never incremented", "0-1 get; 2-3 inc n+1 =1"),
    ("a read during an increment, before", "0-9 inc n+1 =1; 1-2 get"),
    (
        "a read during an increment, after",
        "0-9 inc n+1 =1; 1-2 get n=#1",
    ),
    ("two at once, the later first", "0-9 inc n+1 =2; 1-8 inc n+1 =1"),
    ("an unknown one counts", "0-? inc n+5; 2-3 get n=#5"),
    ("an unknown one does not count", "0-? inc n+5; 2-3 get"),
    ("an unknown one counts late", "0-? inc n+5; 2-3 get; 4-5 get n=#5"),
    (
        "an unknown one counts behind the crash",
        "0-? inc n+5; 2-3 get; crash 4; 5-6 get n=#5",
    ),
    (
        "some of the unknown ones count",
        "0-? inc n+5; 0-? inc n+3; crash 4; 5-6 get n=#3",
    ),
    (
        "all of the unknown ones count",
        "0-? inc n+5; 0-? inc n+3; crash 4; 5-6 get n=#8",
    ),
    (
        "none of the unknown ones counts",
        "0-? inc n+5; 0-? inc n+3; crash 4; 5-6 get",
    ),
    (
        "the sum stays over a crash",
        "0-1 inc n+1 =1; crash 2; 3-4 get n=#1; 5-6 inc n+1 =2",
    ),
    (
        "a refused one does not count",
        "0-1 inc n+1 =1; 2-3! inc n+1; 4-5 get n=#1",
    ),
    (
        "two counters of one row",
        "0-1 inc n+1 =1; 0-1 inc m+7 =7; 2-3 get m=#7 n=#1",
    ),
    ("counters of two rows", "%a 0-1 inc n+1 =1; %b 2-3 inc n+1 =1"),
    (
        "reads that overlap may disagree",
        "0-9 inc n+1 =1; 1-5 get n=#1; 2-6 get",
    ),
    (
        "the same value read often",
        "0-1 inc n+1 =1; 2-3 get n=#1; 2-3 get n=#1; 4-5 get n=#1",
    ),
    (
        "a column that is also written is none",
        "0-1 inc n+1 =1; 2-3 write n=#0; 4-5 get n=#0",
    ),
    (
        "a row that is removed has none",
        "0-1 inc n+1 =1; 2-3 write -*; 4-5 get",
    ),
    (
        "one that also sinks is none",
        "0-1 inc n+5 =5; 2-3 inc n+-5 =0; 4-5 get n=#0",
    ),
    (
        "an observer over a crash",
        "@a 0-1 inc n+1 =1; crash 2; @a 3-4 get n=#1; @a 5-6 inc n+1 =2",
    ),
    (
        "an unknown one shows in a sum behind the crash",
        "0-1 inc n+1 =1; 2-? inc n+1; crash 4; 5-6 inc n+1 =3",
    ),
];

const BAD: &[(&str, &str)] = &[
    ("lost at once", "0-1 inc n+1 =1; 2-3 get"),
    ("lost in a crash", "0-1 inc n+1 =1; crash 2; 3-4 get"),
    (
        "one of two lost in a crash",
        "0-1 inc n+1 =1; 2-3 inc n+1 =2; crash 4; 5-6 get n=#1",
    ),
    (
        "lost, seen by the next sum",
        "0-1 inc n+1 =1; crash 2; 3-4 inc n+1 =1",
    ),
    ("goes back for a reader", "0-9 inc n+1 =1; 1-2 get n=#1; 3-4 get"),
    (
        "goes back for another reader",
        "0-? inc n+1; @a 1-2 get n=#1; @b 3-4 get",
    ),
    (
        "goes back over a crash",
        "0-? inc n+1; 1-2 get n=#1; crash 3; 4-5 get",
    ),
    ("more than was sent", "0-1 inc n+1 =1; 2-3 get n=#2"),
    ("from nowhere", "0-1 get n=#1; 2-3 inc n+1 =1"),
    (
        "more than acknowledged and unknown",
        "0-1 inc n+1 =1; 2-? inc n+1; crash 4; 5-6 get n=#3",
    ),
    (
        "an unknown one counts twice",
        "0-? inc n+5; crash 4; 5-6 get n=#10",
    ),
    (
        "a refused one counts",
        "0-1 inc n+1 =1; 2-3! inc n+1; 4-5 get n=#2",
    ),
    ("seen before it was sent", "0-1 inc n+1 =2; 2-3 inc n+1 =2"),
    (
        "two return the same",
        "0-9 inc n+1 =1; 1-8 inc n+1 =1; 10-11 get n=#2",
    ),
    ("a sum without its own", "0-1 inc n+1 =0"),
    (
        "a sum smaller than one before",
        "0-? inc n+5; 1-2 get n=#5; 3-4 inc n+1 =1",
    ),
    (
        "a sum equal to a read before",
        "0-? inc n+1; 1-2 get n=#1; 3-4 inc n+1 =1",
    ),
    (
        "lost in the second of two crashes",
        "0-1 inc n+1 =1; crash 2; 3-4 inc n+1 =2; crash 5; 6-7 get n=#1",
    ),
    ("no number", "0-1 inc n+1 =1; 2-3 get n=1"),
    (
        "the counter of the other row",
        "%a 0-1 inc n+1 =1; %b 0-1 inc n+2 =2; %a 2-3 get n=#2",
    ),
    (
        "one of two columns is lost",
        "0-1 inc n+1 =1; 0-1 inc m+7 =7; crash 2; 3-4 get n=#1",
    ),
    (
        "an observer sees less over a crash",
        "@b 0-? inc n+1; @a 1-2 get n=#1; crash 3; @a 4-5 get",
    ),
];

fn check(text: &str) -> Result<usize, Violation> {
    counter::check(&notation::parse(text).expect("a history"), &Rows::new())
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
fn a_counter_may_begin_with_something() {
    let initial = Rows::from([("r".into(), notation::parse_columns("n=#10").expect("columns"))]);
    let check = |text| counter::check(&notation::parse(text).expect("a history"), &initial);
    assert_eq!(check("0-1 get n=#10; 2-3 inc n+1 =11"), Ok(2));
    check("0-1 inc n+1 =1").expect_err("the 10 are lost");
}
