//! Linearizable rows.
//!
//! Rows are independent of each other, so each is judged alone:
//!
//! 1. Its calls are cut where the state of the row is known: behind a get that overlaps no other call. A
//!    piece begins with the columns that this get found.
//! 2. A piece in which every write writes the same columns, each time with other values, is a register:
//!    [`register`] decides about it in `n log n` steps.
//! 3. For others [`search`] looks for an order, with a memory of where it has been.
//!
//! Calls without an effect whose reply is unknown (unknown gets), and refused ones, need no place
//! in the order. A refused write that is seen anyway shows here as well: no order explains the
//! read.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::history::{Call, Columns, History, Op, Outcome, Rows, Time};
use crate::notation;
use crate::{Change, Violation};

mod model;
mod register;
mod search;
#[cfg(test)]
mod tests;

pub(crate) const NAME: &str = "linear";

/// Counts of the checked things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Calls that needed a place.
    pub calls: usize,
    /// Pieces between known states.
    pub pieces: usize,
    /// Calls of the longest piece.
    pub longest: usize,
    /// Pieces given up after [`STEPS_MAX`] steps: neither right nor wrong.
    pub undecided: usize,
}

impl Checked {
    /// Adds the counts of another check.
    pub fn add(&mut self, other: Checked) {
        self.calls += other.calls;
        self.pieces += other.pieces;
        self.longest = self.longest.max(other.longest);
        self.undecided += other.undecided;
    }
}

/// Steps of a search after which it gives up.
pub const STEPS_MAX: usize = 20_000_000;

/// How a piece was judged.
enum Verdict {
    Right,
    Wrong(String),
    Undecided,
}

/// Checks all rows of a history that began with these rows.
pub fn check(history: &History, initial: &Rows) -> Result<Checked, Violation> {
    let mut checked = Checked::default();
    for (row, calls) in history.by_row() {
        let columns = initial.get(row).cloned().unwrap_or_default();
        checked.add(check_row(row, &calls, columns)?);
    }
    Ok(checked)
}

/// Checks the calls of one row, which are in order of invocation and begin with these columns.
pub fn check_row(row: &Bytes, calls: &[&Call], initial: Columns) -> Result<Checked, Violation> {
    let calls: Vec<&Call> = calls.iter().copied().filter(|call| needs_place(call)).collect();
    let mut checked = Checked::default();
    let mut state = initial;
    for piece in cut(&calls) {
        checked.add(Checked {
            calls: piece.len(),
            pieces: 1,
            longest: piece.len(),
            undecided: 0,
        });
        let verdict =
            register::decide(piece, &state).unwrap_or_else(|| search::decide(piece, &state, STEPS_MAX));
        match verdict {
            Verdict::Right => {}
            Verdict::Undecided => checked.undecided += 1,
            Verdict::Wrong(what) => {
                let begin = notation::print_columns(&state);
                return Err(Violation {
                    calls: format!("begins with: {begin}\n{}", notation::print(piece.iter().copied())),
                    ..Violation::new(NAME, row, what)
                });
            }
        }
        if let Some(found) = piece.last().and_then(|call| call.row_read()) {
            state = found.clone();
        }
    }
    Ok(checked)
}

/// Refused calls and gets without an answer say nothing.
fn needs_place(call: &Call) -> bool {
    match call.outcome {
        Outcome::Done(_) => true,
        Outcome::Refused => false,
        Outcome::Unknown => call.op != Op::Get,
    }
}

/// The pieces: each but the last ends with a get that overlaps nothing.
fn cut<'a, 'c>(calls: &'a [&'c Call]) -> Vec<&'a [&'c Call]> {
    let mut pieces = Vec::new();
    let (mut begin, mut latest): (usize, Option<Time>) = (0, None);
    for (index, call) in calls.iter().enumerate() {
        let alone = latest.is_none_or(|latest| latest < call.invoked)
            && calls.get(index + 1).is_none_or(|next| call.is_before(next));
        if alone && call.row_read().is_some() {
            pieces.push(&calls[begin..=index]);
            begin = index + 1;
        }
        latest = Some(latest.map_or(call.returned, |latest| latest.max(call.returned)));
    }
    if begin < calls.len() {
        pieces.push(&calls[begin..]);
    }
    pieces
}

/// The columns after the changes.
fn apply_changes(columns: &Columns, changes: &[Change]) -> Columns {
    let mut after = columns.clone();
    for change in changes {
        match change {
            Change::Put(column, value) => {
                after.insert(column.clone(), value.clone());
            }
            Change::Delete(column) => {
                after.remove(column);
            }
            Change::DeleteRow => after = BTreeMap::new(),
        }
    }
    after
}
