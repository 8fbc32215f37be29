//! The condition of a check-and-mutate, as a pure function.

use std::cmp::Ordering;

use crate::op::CompareOp;

/// Whether the check passes: `given OP stored`, with `given` empty or `None` for "must not exist" and `stored` the newest
/// version's value, `None` when there is no cell.
///
/// HBase's table: an empty given value passes on an absent or zero-length cell (the other way round for `NotEqual`); a value
/// never passes on an absent cell, not even with `NotEqual`.
pub fn passes(op: CompareOp, given: Option<&[u8]>, stored: Option<&[u8]>) -> bool {
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        let missing = stored.is_none_or(<[u8]>::is_empty);
        return missing != (op == CompareOp::NotEqual);
    };
    let Some(stored) = stored else {
        return false;
    };
    let order = given.cmp(stored);
    match op {
        CompareOp::Less => order == Ordering::Less,
        CompareOp::LessOrEqual => order != Ordering::Greater,
        CompareOp::Equal => order == Ordering::Equal,
        CompareOp::NotEqual => order != Ordering::Equal,
        CompareOp::GreaterOrEqual => order != Ordering::Less,
        CompareOp::Greater => order == Ordering::Greater,
        CompareOp::NoOp => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CompareOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NoOp, NotEqual};

    const OPS: [CompareOp; 7] = [Less, LessOrEqual, Equal, NotEqual, GreaterOrEqual, Greater, NoOp];

    #[test]
    fn an_empty_value_asks_for_absence() {
        for op in OPS {
            for given in [None, Some(&b""[..])] {
                assert_eq!(passes(op, given, None), op != NotEqual, "{op:?}");
                assert_eq!(passes(op, given, Some(b"")), op != NotEqual, "{op:?}");
                assert_eq!(passes(op, given, Some(b"v")), op == NotEqual, "{op:?}");
            }
        }
    }

    #[test]
    fn a_value_is_compared_given_first_and_never_passes_on_nothing() {
        for op in OPS {
            assert!(!passes(op, Some(b"v"), None), "{op:?}");
        }
        let passing = |given: &[u8]| OPS.map(|op| passes(op, Some(given), Some(b"m")));
        assert_eq!(passing(b"a"), [true, true, false, true, false, false, false]);
        assert_eq!(passing(b"m"), [false, true, true, false, true, false, false]);
        assert_eq!(passing(b"z"), [false, false, false, true, true, true, false]);
    }
}
