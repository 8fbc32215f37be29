//! Calls and observations of clients.
//!
//! 1. Clients and the harness write [`Event`]s.
//! 2. [`History::from_events`] pairs invocations with returns into [`Call`]s, and closes unknown calls at the
//!    next crash.
//!
//! A client makes one call at a time; several threads are several clients.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

/// Nanoseconds of one monotonic clock. Initial values count as written before all calls.
pub type Time = u64;

/// Client of a call.
pub type ClientId = u32;

/// The columns of a row, `family:qualifier`, each with its newest value. Empty for a row that is not there.
pub type Columns = BTreeMap<Bytes, Bytes>;

/// Rows by key. A row that is not in it is not there.
pub type Rows = BTreeMap<Bytes, Columns>;

/// A change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a column.
    Put(Bytes, Bytes),
    /// Removes a column.
    Delete(Bytes),
    /// Removes all columns.
    DeleteRow,
}

/// The requested operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads all columns of the row.
    Get,
    /// Makes all changes, in order, as one.
    Write(Vec<Change>),
    /// Makes the changes if the column has the value, or is absent if that is `None`.
    Check {
        /// The column that is looked at.
        column: Bytes,
        /// The expected value.
        expected: Option<Bytes>,
        /// The changes if the check passes.
        changes: Vec<Change>,
    },
    /// Adds to a column of eight bytes, big-endian; an absent one counts as 0.
    Increment {
        /// The counter.
        column: Bytes,
        /// The increment.
        amount: i64,
    },
    /// Appends to a column; an absent one counts as empty.
    Append {
        /// The column.
        column: Bytes,
        /// The appended bytes.
        suffix: Bytes,
    },
}

/// Result of a call that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: a write.
    Nothing,
    /// The row: a get.
    Row(Columns),
    /// Whether the check passed.
    Passed(bool),
    /// The new value: an increment or an append.
    Value(Bytes),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect.
    Done(Reply),
    /// It did not and will not take effect.
    Refused,
    /// The outcome is unknown.
    Unknown,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client makes a call.
    Invoke {
        /// When, before the first byte was sent.
        time: Time,
        /// The client.
        client: ClientId,
        /// The row.
        row: Bytes,
        /// The operation.
        op: Op,
    },
    /// The client's call has ended.
    Return {
        /// When, after the last byte was received.
        time: Time,
        /// The client.
        client: ClientId,
        /// How.
        outcome: Outcome,
    },
    /// The server is certainly gone, and the next one was not started yet.
    Crash {
        /// When.
        time: Time,
    },
}

impl Event {
    /// When it happened.
    pub fn time(&self) -> Time {
        match self {
            Event::Invoke { time, .. } | Event::Return { time, .. } | Event::Crash { time } => *time,
        }
    }
}

/// A call from beginning to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The client of the call.
    pub client: ClientId,
    /// The row.
    pub row: Bytes,
    /// The requested operation.
    pub op: Op,
    /// When it was made.
    pub invoked: Time,
    /// When it ended. For an unknown one: the next crash, or [`Time::MAX`], since it may take effect until
    /// then.
    pub returned: Time,
    /// How it ended.
    pub outcome: Outcome,
}

impl Call {
    /// Whether it ended before the other began.
    pub fn is_before(&self, other: &Call) -> bool {
        self.returned < other.invoked
    }

    /// The columns that a get found.
    pub fn row_read(&self) -> Option<&Columns> {
        match (&self.op, &self.outcome) {
            (Op::Get, Outcome::Done(Reply::Row(columns))) => Some(columns),
            _ => None,
        }
    }

    /// Changes that it made or may have made: none for reads, refused calls, and checks that did
    /// not pass.
    pub fn changes(&self) -> &[Change] {
        match (&self.op, &self.outcome) {
            (_, Outcome::Refused | Outcome::Done(Reply::Passed(false))) => &[],
            (Op::Write(changes) | Op::Check { changes, .. }, _) => changes,
            _ => &[],
        }
    }

    /// Whether it certainly took effect.
    pub fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done(_))
    }
}

/// Events that do not fit together: an error of the recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// An event that is older than the one before it.
    #[error("an event at {time} comes after one at {after}")]
    Backwards {
        /// The time of the event.
        time: Time,
        /// The time of the one before it.
        after: Time,
    },
    /// A return without an invocation.
    #[error("client {client} returns at {time} from no call")]
    NoCall {
        /// The client.
        client: ClientId,
        /// When.
        time: Time,
    },
    /// An invocation while another call is under way.
    #[error("client {client} makes a call at {time} before its last one ended")]
    TwoCalls {
        /// The client.
        client: ClientId,
        /// When.
        time: Time,
    },
}

/// All calls and crashes of a run, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// By time of invocation.
    pub calls: Vec<Call>,
    /// Ascending.
    pub crashes: Vec<Time>,
}

impl History {
    /// Pairs events, which are in order of time. A call without a return is unknown.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> Result<Self, HistoryError> {
        let mut history = History::default();
        let mut open: HashMap<ClientId, usize> = HashMap::new();
        let mut after = 0;
        for event in events {
            let time = event.time();
            if time < after {
                return Err(HistoryError::Backwards { time, after });
            }
            after = time;
            match event {
                Event::Invoke { client, row, op, .. } => {
                    if open.insert(client, history.calls.len()).is_some() {
                        return Err(HistoryError::TwoCalls { client, time });
                    }
                    history.calls.push(Call {
                        client,
                        row,
                        op,
                        invoked: time,
                        returned: time,
                        outcome: Outcome::Unknown,
                    });
                }
                Event::Return { client, outcome, .. } => {
                    let index = open
                        .remove(&client)
                        .ok_or(HistoryError::NoCall { client, time })?;
                    history.calls[index].returned = time;
                    history.calls[index].outcome = outcome;
                }
                Event::Crash { time } => history.crashes.push(time),
            }
        }
        history.close_unknown();
        Ok(history)
    }

    /// Lets unknown calls end at the next crash.
    pub(crate) fn close_unknown(&mut self) {
        for call in &mut self.calls {
            if call.outcome == Outcome::Unknown {
                let next = self.crashes.partition_point(|crash| *crash < call.invoked);
                call.returned = self.crashes.get(next).copied().unwrap_or(Time::MAX);
            }
        }
    }

    /// The calls of each row, by time of invocation.
    pub fn by_row(&self) -> BTreeMap<&Bytes, Vec<&Call>> {
        let mut rows: BTreeMap<&Bytes, Vec<&Call>> = BTreeMap::new();
        for call in &self.calls {
            rows.entry(&call.row).or_default().push(call);
        }
        rows
    }
}
