//! The state after a crash.
//!
//! For each row, each crash, and the first get after it that no write can have disturbed:
//!
//! - *Nothing acknowledged is lost.* After a write that returned before the crash, the get shows
//!   that write or something that may have come after it.
//! - *Nothing seen is lost.* A value that a get showed before the crash is there, or something that
//!   may have come after. This finds reads of values that were not durable yet.
//!
//! "May have come after": the write of the shown value had not returned when the other call was
//! invoked. This checks two calls at a time and one column at a time; [`crate::linear`] detects
//! more, while this describes the error plainly. Columns that are incremented or appended to are
//! left to other checkers.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::Violation;
use crate::history::{Call, Change, Columns, History, Op, Rows, Time};
use crate::notation;

const NAME: &str = "durability";

/// Checks the gets after crashes. Returns the number of checked columns.
pub fn check(history: &History, initial: &Rows) -> Result<usize, Violation> {
    let mut looked_at = 0;
    for (row, calls) in history.by_row() {
        let columns: BTreeSet<&Bytes> = calls
            .iter()
            .flat_map(|call| call.changes())
            .filter_map(|change| match change {
                Change::Put(column, _) | Change::Delete(column) => Some(column),
                Change::DeleteRow => None,
            })
            .chain(initial.get(row).into_iter().flat_map(Columns::keys))
            .chain(
                calls
                    .iter()
                    .filter_map(|call| call.row_read())
                    .flat_map(Columns::keys),
            )
            .collect();
        for crash in &history.crashes {
            let Some(after) = first_look(&calls, *crash) else {
                continue;
            };
            for column in columns.iter().filter(|column| !is_computed(&calls, column)) {
                let first = initial.get(row).and_then(|columns| columns.get(*column));
                check_column(&calls, column, first, *crash, after)
                    .map_err(|what| Violation::new(NAME, row, what))?;
                looked_at += 1;
            }
        }
    }
    Ok(looked_at)
}

fn is_computed(calls: &[&Call], column: &Bytes) -> bool {
    calls.iter().any(|call| {
        matches!(&call.op, Op::Increment { column: other, .. } | Op::Append { column: other, .. } if other == column)
    })
}

/// The first get that began after the crash and ended before anything was written again.
fn first_look<'c>(calls: &[&'c Call], crash: Time) -> Option<&'c Call> {
    let begun = calls.partition_point(|call| call.invoked <= crash);
    let look = calls[begun..].iter().find(|call| call.row_read().is_some())?;
    let disturbed = calls[begun..]
        .iter()
        .any(|call| call.invoked <= look.returned && !call.changes().is_empty());
    (!disturbed).then_some(*look)
}

/// Value of a column, or nothing.
type Held<'c> = Option<&'c Bytes>;

/// The value that the call left in the column, if it changed it.
fn change_of<'c>(call: &'c Call, column: &Bytes) -> Option<Held<'c>> {
    call.changes().iter().rev().find_map(|change| match change {
        Change::Put(other, value) if other == column => Some(Some(value)),
        Change::Delete(other) if other == column => Some(None),
        Change::DeleteRow => Some(None),
        _ => None,
    })
}

fn check_column(
    calls: &[&Call],
    column: &Bytes,
    first: Option<&Bytes>,
    crash: Time,
    after: &Call,
) -> Result<(), String> {
    let before = &calls[..calls.partition_point(|call| call.invoked <= crash)];
    let found = after.row_read().and_then(|columns| columns.get(column));
    let show = |value: Option<&Bytes>| value.map_or("nothing".to_owned(), |value| notation::token(value));
    // When the last call that may have written the value had ended; `Some(None)` if it was there
    // before all calls.
    let written = before
        .iter()
        .filter(|call| change_of(call, column) == Some(found))
        .map(|call| Some(call.returned))
        .chain((first == found).then_some(None))
        .max();
    let name = notation::token(column);
    let Some(written) = written else {
        return Err(format!(
            "{name} holds {} after the crash at {crash}, which no call wrote",
            show(found)
        ));
    };
    let later = |call: &&&Call| call.is_done() && written.is_none_or(|written| call.invoked > written);
    for call in before.iter().filter(later) {
        let seen = match call.row_read() {
            Some(columns) => columns.get(column),
            None => match change_of(call, column) {
                Some(value) => value,
                None => continue,
            },
        };
        if seen != found {
            return Err(format!(
                "after the crash at {crash} {name} holds {}, which was superseded before: {}",
                show(found),
                notation::print([*call]).trim_end()
            ));
        }
    }
    Ok(())
}
