//! Operations with nonces: a row that one client changes by increments and appends, each of which it
//! may send several times with the same nonce. Each is applied once.

use bytes::Bytes;

use crate::Violation;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds to the counter.
    Add(i64),
    /// Appends to the text.
    Append(Bytes),
}

/// A counter and a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The counter.
    pub sum: i64,
    /// The text.
    pub text: Bytes,
}

impl State {
    /// The state after an operation.
    #[must_use]
    pub fn after(&self, operation: &Operation) -> Self {
        match operation {
            Operation::Add(amount) => Self {
                sum: self.sum.wrapping_add(*amount),
                text: self.text.clone(),
            },
            Operation::Append(piece) => Self {
                sum: self.sum,
                text: [&self.text[..], piece].concat().into(),
            },
        }
    }
}

/// Checks the result of a read. `known`: after all acknowledged operations. `pending`: an operation
/// that was sent and not acknowledged. Returns whether it has been applied.
pub fn check(
    row: &Bytes,
    known: &State,
    pending: Option<&Operation>,
    found: &State,
) -> Result<bool, Violation> {
    let after = pending.map(|operation| known.after(operation));
    if after.as_ref() == Some(found) {
        return Ok(true);
    }
    if found == known {
        return Ok(false);
    }
    let twice = pending
        .zip(after)
        .map(|(operation, after)| after.after(operation));
    let what = if twice.as_ref() == Some(found) {
        format!("{pending:?} was applied twice: {found:?}")
    } else {
        format!("{found:?} instead of {known:?}, with {pending:?} under way")
    };
    Err(Violation::new("once", row, what))
}
