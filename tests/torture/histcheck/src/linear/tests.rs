//! The two ways to decide, and plain enumeration, agree.

use super::{Verdict, model, needs_place, register, search};
use crate::history::{Call, Change, Columns, History, Op, Outcome, Reply};

/// A generator of its own: a linear congruence, its upper half.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Some calls at random times on one row. Reads show any value that is written somewhere, or nothing.
fn history(dice: &mut Dice, register_only: bool) -> History {
    let writes = 1 + dice.roll(4);
    let mut history = History::default();
    if dice.roll(2) == 0 {
        history.crashes.push(dice.roll(20));
    }
    for number in 0..(3 + dice.roll(5)) {
        let invoked = dice.roll(18);
        let mut outcome = if dice.roll(4) == 0 {
            Outcome::Unknown
        } else {
            Outcome::Done(Reply::Nothing)
        };
        let value = |number: u64| vec![b'a' + number as u8].into();
        let op = if number < writes {
            if register_only || dice.roll(2) == 0 {
                Op::Write(vec![Change::Put("x".into(), value(number))])
            } else {
                outcome = Outcome::Done(Reply::Passed(dice.roll(2) == 0));
                Op::Check {
                    column: "x".into(),
                    expected: Some(value(dice.roll(writes))),
                    changes: vec![Change::Put("x".into(), value(number))],
                }
            }
        } else {
            let seen = dice.roll(writes + 1);
            let found = (seen < writes).then(|| ("x".into(), value(seen)));
            outcome = Outcome::Done(Reply::Row(found.into_iter().collect()));
            Op::Get
        };
        history.calls.push(Call {
            client: number as u32,
            row: "r".into(),
            op,
            invoked,
            returned: invoked + dice.roll(8),
            outcome,
        });
    }
    history.calls.sort_by_key(|call| call.invoked);
    history.close_unknown();
    history
}

/// Tries every order of every subset that has all calls of known outcome.
fn enumerate(calls: &[&Call], columns: &Columns) -> bool {
    if calls.iter().all(|call| call.outcome == Outcome::Unknown) {
        return true;
    }
    (0..calls.len()).any(|next| {
        let call = calls[next];
        let others: Vec<&Call> = calls
            .iter()
            .copied()
            .filter(|other| !std::ptr::eq(*other, call))
            .collect();
        // An unknown call that another one of known outcome comes before may still be left out, but not
        // placed later.
        let left: Vec<&Call> = others
            .iter()
            .copied()
            .filter(|other| !other.is_before(call))
            .collect();
        if others
            .iter()
            .any(|other| other.is_before(call) && other.outcome != Outcome::Unknown)
        {
            return false;
        }
        match model::apply(columns, call) {
            model::Effect::Impossible => false,
            model::Effect::Same => enumerate(&left, columns),
            model::Effect::Changed(after) => enumerate(&left, &after),
        }
    })
}

#[test]
fn all_ways_agree() {
    let mut dice = Dice(1);
    let mut right = 0;
    for round in 0..30_000 {
        let register_only = round % 2 == 0;
        let history = history(&mut dice, register_only);
        let calls: Vec<&Call> = history.calls.iter().filter(|call| needs_place(call)).collect();
        let columns = Columns::new();
        let expected = enumerate(&calls, &columns);
        let shown = || {
            format!(
                "{:?}\n{}",
                history.crashes,
                crate::notation::print(&history.calls)
            )
        };
        let searched = matches!(search::decide(&calls, &columns, super::STEPS_MAX), Verdict::Right);
        assert_eq!(searched, expected, "search: {}", shown());
        if let Some(verdict) = register::decide(&calls, &columns) {
            assert_eq!(
                matches!(verdict, Verdict::Right),
                expected,
                "register: {}",
                shown()
            );
        } else {
            assert!(!register_only, "{}", shown());
        }
        right += usize::from(expected);
    }
    assert!((3_000..27_000).contains(&right), "{right} of 30000 are right");
}

#[test]
fn a_search_ends_when_told() {
    let history = crate::notation::parse("0-9 inc n+1 =1; 0-9 inc n+1 =2").expect("calls");
    let calls: Vec<&Call> = history.calls.iter().collect();
    assert!(matches!(
        search::decide(&calls, &Columns::new(), 1),
        Verdict::Undecided
    ));
}
