//! One row, one call at a time: the effect of a call on the columns, and whether its reply fits.

use bytes::Bytes;

use super::apply_changes;
use crate::history::{Call, Columns, Op, Outcome, Reply};

/// Effect of a call at a place in the order.
pub(super) enum Effect {
    /// It cannot stand here: the reply would have been another, or it would have been refused.
    Impossible,
    /// It can, and changes nothing.
    Same,
    /// It can, and leaves these columns.
    Changed(Columns),
}

/// Applies `call` to a row with these columns. A call of unknown outcome is taken as carried out.
pub(super) fn apply(columns: &Columns, call: &Call) -> Effect {
    let reply = match &call.outcome {
        Outcome::Done(reply) => Some(reply),
        Outcome::Refused => return Effect::Impossible,
        Outcome::Unknown => None,
    };
    match &call.op {
        Op::Get => fits(reply.is_none_or(|reply| matches!(reply, Reply::Row(found) if found == columns))),
        Op::Write(changes) => Effect::Changed(apply_changes(columns, changes)),
        Op::Check {
            column,
            expected,
            changes,
        } => {
            let passes = columns.get(column) == expected.as_ref();
            if reply.is_some_and(|reply| *reply != Reply::Passed(passes)) {
                return Effect::Impossible;
            }
            if passes {
                Effect::Changed(apply_changes(columns, changes))
            } else {
                Effect::Same
            }
        }
        Op::Increment { column, amount } => {
            let before = match columns.get(column) {
                None => 0,
                Some(value) => match <[u8; 8]>::try_from(&value[..]) {
                    Ok(bytes) => i64::from_be_bytes(bytes),
                    Err(_) => return Effect::Impossible,
                },
            };
            let after = Bytes::copy_from_slice(&before.wrapping_add(*amount).to_be_bytes());
            replace(columns, column, after, reply)
        }
        Op::Append { column, suffix } => {
            let mut after = columns.get(column).map_or_else(Vec::new, |value| value.to_vec());
            after.extend_from_slice(suffix);
            replace(columns, column, after.into(), reply)
        }
    }
}

fn fits(fits: bool) -> Effect {
    if fits { Effect::Same } else { Effect::Impossible }
}

fn replace(columns: &Columns, column: &Bytes, after: Bytes, reply: Option<&Reply>) -> Effect {
    if reply.is_some_and(|reply| *reply != Reply::Value(after.clone())) {
        return Effect::Impossible;
    }
    let mut columns = columns.clone();
    columns.insert(column.clone(), after);
    Effect::Changed(columns)
}
