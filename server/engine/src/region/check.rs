//! The condition of a check-and-mutate, as a pure function.

use std::cmp::Ordering;

use crate::error::Result;
use crate::op::{CompareOp, Expected};

/// Whether `expected OP stored` holds; `stored` is the newest version's value, `None` when there is no
/// cell. An expected value without bytes asks for absence, whatever the comparator (HBase:
/// `valueIsNull`).
pub(crate) fn holds(op: CompareOp, expected: Expected<'_>, stored: Option<&[u8]>) -> Result<bool> {
    match expected {
        Expected::Bytes(given) => Ok(passes(op, Some(given), stored)),
        Expected::Comparator(comparator) if comparator.is_empty() => Ok(passes(op, None, stored)),
        Expected::Comparator(comparator) => {
            let Some(stored) = stored else { return Ok(false) };
            Ok(is_ordered(op, comparator.compare(stored)?))
        }
    }
}

/// Whether the check passes: `given OP stored`, with `given` empty or `None` for "must not exist" and
/// `stored` the newest version's value, `None` when there is no cell.
///
/// HBase's table: an empty given value passes on an absent or zero-length cell (the other way round for
/// `NotEqual`); a value never passes on an absent cell, not even with `NotEqual`.
fn passes(op: CompareOp, given: Option<&[u8]>, stored: Option<&[u8]>) -> bool {
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        let missing = stored.is_none_or(<[u8]>::is_empty);
        return missing != (op == CompareOp::NotEqual);
    };
    let Some(stored) = stored else {
        return false;
    };
    is_ordered(op, given.cmp(stored))
}

/// Whether two sides that compare so are in the relation that the operator asks for.
fn is_ordered(op: CompareOp, order: Ordering) -> bool {
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

    /// The comparator decides on equality; the operator is applied to its result, given first.
    #[test]
    fn every_comparator_is_asked_with_every_operator() {
        use crate::filter::{BitOperator, Comparator};
        let all = |comparator: &Comparator, stored: &[u8]| {
            OPS.map(|op| holds(op, Expected::Comparator(comparator), Some(stored)).unwrap())
        };
        let (less, equal, greater) = (
            [true, true, false, true, false, false, false],
            [false, true, true, false, true, false, false],
            [false, false, false, true, true, true, false],
        );
        let prefix = Comparator::BinaryPrefix(b"ab".to_vec());
        assert_eq!(all(&prefix, b"abc"), equal);
        assert_eq!(all(&prefix, b"b"), less);
        assert_eq!(all(&Comparator::Long(5), &4_i64.to_be_bytes()), greater);
        assert_eq!(all(&Comparator::regex("^b.$").unwrap(), b"bc"), equal);
        // HBase's comparators that only distinguish equal and unequal return 1 for unequal.
        assert_eq!(all(&Comparator::substring("x"), b"bc"), greater);
        let bits = Comparator::Bit {
            value: vec![1],
            operator: BitOperator::And,
        };
        assert_eq!(all(&bits, &[3]), equal);
        let wrong = holds(Equal, Expected::Comparator(&Comparator::Long(5)), Some(b"abc"));
        assert!(wrong.unwrap_err().to_string().contains("Wrong length: 3"));
    }

    #[test]
    fn an_empty_comparator_asks_for_absence() {
        use crate::filter::Comparator;
        for comparator in [
            Comparator::Null,
            Comparator::substring(""),
            Comparator::Binary(vec![]),
        ] {
            let given = Expected::Comparator(&comparator);
            assert!(holds(Equal, given, None).unwrap());
            assert!(!holds(Equal, given, Some(b"v")).unwrap());
            assert!(holds(NotEqual, given, Some(b"v")).unwrap());
        }
        let substring = Comparator::substring("x");
        assert!(!holds(NotEqual, Expected::Comparator(&substring), None).unwrap());
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
