//! Refused writes never appear.
//!
//! A value counts here if only refused calls wrote it, or a suffix if only refused calls appended it and it
//! does not occur in anything else that was written. No get and no result of an append may show it.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::Violation;
use crate::history::{Call, Change, Columns, History, Op, Outcome, Reply, Rows};
use crate::notation;

const NAME: &str = "refused";

/// Checks all reads. Returns how many calls were refused.
pub fn check(history: &History, initial: &Rows) -> Result<usize, Violation> {
    let mut refused = 0;
    for (row, calls) in history.by_row() {
        let count = calls
            .iter()
            .filter(|call| call.outcome == Outcome::Refused)
            .count();
        if count == 0 {
            continue;
        }
        refused += count;
        let stored: BTreeSet<&Bytes> = calls
            .iter()
            .filter(|call| call.outcome != Outcome::Refused)
            .flat_map(|call| written(call))
            .chain(initial.get(row).into_iter().flat_map(Columns::values))
            .collect();
        for call in calls.iter().filter(|call| call.outcome == Outcome::Refused) {
            let is_append = matches!(call.op, Op::Append { .. });
            let shows = |value: &Bytes, refused: &Bytes| {
                if is_append {
                    !refused.is_empty() && value.windows(refused.len()).any(|part| part == refused)
                } else {
                    value == refused
                }
            };
            for value in written(call) {
                if stored.iter().any(|stored| shows(stored, value)) {
                    continue;
                }
                if let Some(reader) = calls
                    .iter()
                    .find(|reader| results(reader).any(|seen| shows(seen, value)))
                {
                    let what = format!(
                        "[{}] was refused, and seen by: {}",
                        notation::print([*call]).trim_end(),
                        notation::print([*reader]).trim_end()
                    );
                    return Err(Violation::new(NAME, row, what));
                }
            }
        }
    }
    Ok(refused)
}

/// The values that a call would write, also a check that does not pass.
fn written(call: &Call) -> Vec<&Bytes> {
    match &call.op {
        Op::Get | Op::Increment { .. } => Vec::new(),
        Op::Append { suffix, .. } => vec![suffix],
        Op::Write(changes) | Op::Check { changes, .. } => changes
            .iter()
            .filter_map(|change| match change {
                Change::Put(_, value) => Some(value),
                _ => None,
            })
            .collect(),
    }
}

/// The values that a call showed.
fn results(call: &Call) -> impl Iterator<Item = &Bytes> {
    let value = match &call.outcome {
        Outcome::Done(Reply::Value(value)) => Some(value),
        _ => None,
    };
    call.row_read().into_iter().flat_map(Columns::values).chain(value)
}
