//! States that a crash may and may not leave.

mod judge;

use basalt_histcheck::{Rows, Violation, durability, notation};

const GOOD: &[(&str, &str)] = &[
    (
        "an acknowledged write is there",
        "0-1 write x=1; crash 5; 6-7 get x=1",
    ),
    (
        "the newer of two",
        "0-1 write x=1; 2-3 write x=2; crash 5; 6-7 get x=2",
    ),
    (
        "either of two at once",
        "0-3 write x=1; 1-4 write x=2; crash 5; 6-7 get x=1",
    ),
    (
        "an unknown write is there",
        "0-1 write x=1; 2-? write x=2; crash 5; 6-7 get x=2",
    ),
    (
        "an unknown write is not there",
        "0-1 write x=1; 2-? write x=2; crash 5; 6-7 get x=1",
    ),
    (
        "an unknown write on an empty row is not there",
        "0-? write x=1; crash 5; 6-7 get",
    ),
    (
        "an unknown write supersedes an acknowledged one that began later",
        "0-? write x=1; 2-3 write x=2; crash 5; 6-7 get x=1",
    ),
    (
        "what was read of an unknown write is there",
        "0-? write x=1; 2-3 get x=1; crash 5; 6-7 get x=1",
    ),
    (
        "what was read was superseded by an unknown write",
        "0-1 write x=1; 2-3 get x=1; 2-? write x=2; crash 5; 6-7 get x=2",
    ),
    (
        "a refused write is not there",
        "0-1 write x=1; 2-3! write x=2; crash 5; 6-7 get x=1",
    ),
    (
        "a removed column stays away",
        "0-1 write x=1; 2-3 write -x; crash 5; 6-7 get",
    ),
    (
        "a removed row stays away",
        "0-1 write x=1; 2-3 write -*; crash 5; 6-7 get",
    ),
    (
        "an unknown removal is not there",
        "0-1 write x=1; 2-? write -x; crash 5; 6-7 get x=1",
    ),
    (
        "an unknown removal is there",
        "0-1 write x=1; 2-? write -*; crash 5; 6-7 get",
    ),
    (
        "a check that passed is there",
        "0-1 write x=1; 2-3 if x=1 then x=2 yes; crash 5; 6-7 get x=2",
    ),
    (
        "a check that did not pass changes nothing",
        "0-1 write x=1; 2-3 if x=9 then x=2 no; crash 5; 6-7 get x=1",
    ),
    (
        "an unknown check is there",
        "0-1 write x=1; 2-? if x=1 then x=2; crash 5; 6-7 get x=2",
    ),
    (
        "written again behind the crash",
        "0-1 write x=1; crash 5; 6-7 write x=2; 8-9 get x=2",
    ),
    (
        "a look that a write disturbs says nothing",
        "0-1 write x=1; crash 5; 6-9 write x=2; 7-8 get x=2",
    ),
    (
        "two crashes, an unknown write before each",
        "0-? write x=1; crash 2; 3-? write x=2; crash 5; 6-7 get x=2",
    ),
    (
        "an unknown write before the first of two crashes comes back with the second look only if it was seen",
        "0-1 write x=1; crash 2; 3-4 get x=1; crash 5; 6-7 get x=1",
    ),
    (
        "two columns, one of them removed",
        "0-1 write x=1 y=1; 2-3 write -x; crash 5; 6-7 get y=1",
    ),
    ("counters are left to others", "0-1 inc n+1 =1; crash 5; 6-7 get"),
    ("no crash, no question", "0-1 write x=1; 2-3 get"),
    ("no read", "0-1 write x=1; crash 5"),
];

const BAD: &[(&str, &str)] = &[
    ("an acknowledged write is lost", "0-1 write x=1; crash 5; 6-7 get"),
    (
        "the newer of two is lost",
        "0-1 write x=1; 2-3 write x=2; crash 5; 6-7 get x=1",
    ),
    (
        "the newest of three is lost",
        "0-1 write x=1; 2-3 write x=2; 4-5 write x=3; crash 6; 7-8 get x=2",
    ),
    (
        "one of two columns is lost",
        "0-1 write x=1 y=1; crash 5; 6-7 get x=1",
    ),
    (
        "one of two columns is the older one",
        "0-1 write x=1 y=1; 2-3 write x=2 y=2; crash 5; 6-7 get x=2 y=1",
    ),
    ("a value from nowhere", "0-1 write x=1; crash 5; 6-7 get x=7"),
    (
        "a refused write is there",
        "0-1 write x=1; 2-3! write x=2; crash 5; 6-7 get x=2",
    ),
    (
        "a refused write on an empty row is there",
        "0-1! write x=1; crash 5; 6-7 get x=1",
    ),
    (
        "a removed column comes back",
        "0-1 write x=1; 2-3 write -x; crash 5; 6-7 get x=1",
    ),
    (
        "a removed row comes back",
        "0-1 write x=1; 2-3 write -*; crash 5; 6-7 get x=1",
    ),
    (
        "written after the removal and lost",
        "0-1 write x=1; 2-3 write -*; 4-5 write x=2; crash 6; 7-8 get",
    ),
    (
        "seen before the crash, gone behind it",
        "0-? write x=1; 2-3 get x=1; crash 5; 6-7 get",
    ),
    (
        "seen before the crash, an older one behind it",
        "0-1 write x=1; 2-? write x=2; 3-4 get x=2; crash 5; 6-7 get x=1",
    ),
    (
        "a removal was seen, and the value comes back",
        "0-1 write x=1; 2-? write -x; 3-4 get; crash 5; 6-7 get x=1",
    ),
    (
        "a check that passed is lost",
        "0-1 write x=1; 2-3 if x=1 then x=2 yes; crash 5; 6-7 get x=1",
    ),
    (
        "a check that did not pass changes something",
        "0-1 write x=1; 2-3 if x=9 then x=2 no; crash 5; 6-7 get x=2",
    ),
    (
        "a check that removed is lost",
        "0-1 write x=1; 2-3 if x=1 then -x yes; crash 5; 6-7 get x=1",
    ),
    (
        "lost in the second of two crashes",
        "0-1 write x=1; crash 2; 3-4 write x=2; crash 5; 6-7 get x=1",
    ),
    (
        "lost in the first of two crashes, found by the look behind the second",
        "0-1 write x=1; crash 2; crash 5; 6-7 get",
    ),
    (
        "there behind the first crash, lost in the second",
        "0-? write x=1; crash 2; 3-4 get x=1; crash 5; 6-7 get",
    ),
    (
        "superseded by an acknowledged write, back through the crash",
        "0-1 write x=1; 2-3 write x=2; 4-5 get x=2; crash 6; 7-8 get x=1",
    ),
    (
        "in another row",
        "%a 0-1 write x=1; %b 0-1 write x=2; crash 5; %a 6-7 get x=1; %b 6-7 get x=1",
    ),
];

fn check(text: &str) -> Result<usize, Violation> {
    durability::check(&notation::parse(text).expect("a history"), &Rows::new())
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
fn earlier_values_may_stay_and_may_not_be_lost() {
    let initial = Rows::from([("r".into(), notation::parse_columns("x=1").expect("columns"))]);
    let check = |text| durability::check(&notation::parse(text).expect("a history"), &initial);
    assert_eq!(check("crash 5; 6-7 get x=1"), Ok(1));
    check("crash 5; 6-7 get").expect_err("lost");
    check("0-1 write x=2; crash 5; 6-7 get x=1").expect_err("the newer one is lost");
    check("0-? write x=2; crash 5; 6-7 get x=1").expect("it may not have taken effect");
}
