//! Counters that only grow.
//!
//! A column counts here if it is incremented by positive amounts and changed by nothing else. Every value
//! that a get or an increment returned must hold
//!
//! - all increments that were acknowledged before the call was invoked, and its own;
//! - nothing but increments that were invoked before the call returned, and were not refused.
//!
//! And no value is smaller than one that was returned before the call was invoked, to whichever client and
//! before whichever crash; an increment's is larger.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::Violation;
use crate::history::{Call, Change, Columns, History, Op, Outcome, Reply, Rows};
use crate::notation;

const NAME: &str = "counter";

/// A value that a call returned.
struct Seen<'c> {
    call: &'c Call,
    value: i64,
    /// The call's own increment.
    own: i64,
}

/// Checks all counters. Returns how many values were looked at.
pub fn check(history: &History, initial: &Rows) -> Result<usize, Violation> {
    let mut looked_at = 0;
    for (row, calls) in history.by_row() {
        for (column, amounts) in counters(&calls) {
            let first = initial.get(row).and_then(|columns| columns.get(column));
            let wrong = |what: String| Violation::new(NAME, row, what);
            let first = match first {
                Some(bytes) => number(bytes).map_err(wrong)?,
                None => 0,
            };
            let seen = values(&calls, column).map_err(wrong)?;
            looked_at += seen.len();
            check_bounds(&amounts, &seen, column, first).map_err(wrong)?;
            check_order(seen, column).map_err(wrong)?;
        }
    }
    Ok(looked_at)
}

/// The counters among the columns, each with its increments.
fn counters<'c>(calls: &[&'c Call]) -> BTreeMap<&'c Bytes, Vec<(&'c Call, i64)>> {
    let mut counters: BTreeMap<&Bytes, Vec<(&Call, i64)>> = BTreeMap::new();
    let mut others = Vec::new();
    for call in calls {
        match &call.op {
            Op::Increment { column, amount } => {
                if *amount <= 0 {
                    others.push(column);
                }
                counters.entry(column).or_default().push((call, *amount));
            }
            Op::Append { column, .. } => others.push(column),
            _ => {}
        }
        for change in call.changes() {
            match change {
                Change::Put(column, _) | Change::Delete(column) => others.push(column),
                Change::DeleteRow => return BTreeMap::new(),
            }
        }
    }
    counters.retain(|column, _| !others.contains(column));
    counters
}

fn number(bytes: &Bytes) -> Result<i64, String> {
    let bytes = <[u8; 8]>::try_from(&bytes[..])
        .map_err(|_| format!("a counter holds {}, which is no number", notation::token(bytes)))?;
    Ok(i64::from_be_bytes(bytes))
}

/// The observed values of a counter, by time of invocation.
fn values<'c>(calls: &[&'c Call], column: &Bytes) -> Result<Vec<Seen<'c>>, String> {
    let mut seen = Vec::new();
    for call in calls {
        let (value, own) = match (&call.op, &call.outcome) {
            (Op::Get, Outcome::Done(Reply::Row(columns))) => (value_in(columns, column)?, 0),
            (
                Op::Increment {
                    column: other,
                    amount,
                },
                Outcome::Done(Reply::Value(value)),
            ) if other == column => (number(value)?, *amount),
            _ => continue,
        };
        seen.push(Seen { call, value, own });
    }
    Ok(seen)
}

fn value_in(columns: &Columns, column: &Bytes) -> Result<i64, String> {
    columns.get(column).map_or(Ok(0), number)
}

fn check_bounds(
    amounts: &[(&Call, i64)],
    seen: &[Seen<'_>],
    column: &Bytes,
    first: i64,
) -> Result<(), String> {
    // Sums of acknowledged increments, by time of return, and of sent ones, by time of invocation.
    let sums = |mut steps: Vec<(u64, i64)>| {
        steps.sort_unstable();
        let mut sum = first;
        for step in &mut steps {
            sum += step.1;
            step.1 = sum;
        }
        steps
    };
    let acknowledged = amounts.iter().filter(|(call, _)| call.is_done());
    let acknowledged = sums(
        acknowledged
            .map(|(call, amount)| (call.returned, *amount))
            .collect(),
    );
    let sent = amounts
        .iter()
        .filter(|(call, _)| call.outcome != Outcome::Refused);
    let sent = sums(sent.map(|(call, amount)| (call.invoked, *amount)).collect());
    let sum_until = |steps: &[(u64, i64)], end: usize| end.checked_sub(1).map_or(first, |last| steps[last].1);
    for Seen { call, value, own } in seen {
        let least = sum_until(
            &acknowledged,
            acknowledged.partition_point(|step| step.0 < call.invoked),
        ) + own;
        let most = sum_until(&sent, sent.partition_point(|step| step.0 <= call.returned));
        if !(least..=most).contains(value) {
            return Err(format!(
                "counter {} must be between {least} (acknowledged before) and {most} (sent so far) in: {}",
                notation::token(column),
                notation::print([*call]).trim_end()
            ));
        }
    }
    Ok(())
}

fn check_order(seen: Vec<Seen<'_>>, column: &Bytes) -> Result<(), String> {
    let mut by_return: Vec<_> = seen.iter().map(|seen| (seen.call.returned, seen.value)).collect();
    by_return.sort_unstable();
    let mut returned = by_return.into_iter().peekable();
    let mut largest = None;
    let mut results = BTreeSet::new();
    for Seen { call, value, own } in seen {
        while let Some((_, value)) = returned.next_if(|(time, _)| *time < call.invoked) {
            largest = largest.max(Some(value));
        }
        let shown = || notation::print([call]).trim_end().to_owned();
        let column = || notation::token(column);
        if largest.is_some_and(|largest| value < largest + own) {
            return Err(format!(
                "counter {} was {} before, and goes back in: {}",
                column(),
                largest.unwrap_or_default(),
                shown()
            ));
        }
        if own > 0 && !results.insert(value) {
            return Err(format!(
                "two increments of counter {} returned {value}, the second: {}",
                column(),
                shown()
            ));
        }
    }
    Ok(())
}
