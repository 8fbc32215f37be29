//! Checkers of the observations of clients.
//!
//! Clients of a server record every call twice, when they make it and when it has ended, and the
//! test records every crash. From these [`Event`]s comes a [`History`], and the checkers decide
//! whether a server that keeps its promises can have answered so. They know the promises and
//! nothing of any server: no code of one is in here.
//!
//! | module | property |
//! | --- | --- |
//! | [`linear`] | every row behaves as if its calls happened one after the other, each between its invocation and its return |
//! | [`durability`] | after a crash, acknowledged writes are there or superseded, and earlier reads
//! are still explained |
//! | [`counter`] | a counter has all acknowledged increments, no increment that was not sent, and
//! never goes back |
//! | [`refused`] | refused writes never appear |
//! | [`scan`] | a scan is sorted, complete, and shows all rows at one moment |
//! | [`bank`] | the columns of a row always have the same sum |
//! | [`linked`] | linked lists have lost no node |
//! | [`loads`] | a bulk load is there whole or not at all, and stays once it was acknowledged |
//! | [`once`] | an operation that is repeated with its nonce is applied once |
//!
//! The end of a call decides on its possible effects:
//!
//! - *done*: it took effect, between invocation and return;
//! - *refused*: it never takes effect;
//! - *unknown* (connection lost, time limit): it takes effect at most once, at any time from its invocation
//!   up to the next crash.
//!
//! Call `a` happened before call `b` if `a` returned at an earlier time than `b` was invoked; with
//! equal times they count as concurrent. Every checker accepts too much rather than too little when
//! times are coarse: every reported violation is real.
//!
//! [`notation`] writes histories as text and reads them, for tests and for reports.

use bytes::Bytes;

pub mod bank;
pub mod counter;
pub mod durability;
mod history;
pub mod linear;
pub mod linked;
pub mod loads;
pub mod notation;
pub mod once;
pub mod refused;
pub mod scan;

pub use history::{
    Call, Change, ClientId, Columns, Event, History, HistoryError, Op, Outcome, Reply, Rows, Time,
};

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{checker}: row {}: {what}", notation::token(.row))]
pub struct Violation {
    /// The module of the checker.
    pub checker: &'static str,
    /// The row, empty if it is not about one.
    pub row: Bytes,
    /// The violation, in one sentence.
    pub what: String,
    /// The calls that cannot be explained, in [`notation`]; empty if `what` says it all.
    pub calls: String,
}

impl Violation {
    pub(crate) fn new(checker: &'static str, row: &Bytes, what: impl Into<String>) -> Self {
        Self {
            checker,
            row: row.clone(),
            what: what.into(),
            calls: String::new(),
        }
    }
}
