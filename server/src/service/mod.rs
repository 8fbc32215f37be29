//! The calls themselves, independent of any protocol.
//!
//! Functions of the server, neutral arguments and the caller; failures are [`Failure`]s with
//! HBase's exception classes, which each protocol renders in one place. Where work runs: plain
//! writes, and gets, fetches of scans, increments, appends and checks whose data is in memory run
//! on the network thread. Work that may wait for the disk or for a row's lock, or takes long, goes
//! to tokio's blocking pool ([`pool`]); a wait for a commit is a future and takes no thread. Before
//! any of it begins, `limits::admission` may refuse the call, and [`charge`] may delay it.

pub(crate) mod arguments;
mod caller;
mod charge;
mod failure;
pub(crate) mod faults;
mod gather;
pub(crate) mod group;
mod pool;
pub(crate) mod quotas;
pub(crate) mod reads;
mod record;
pub(crate) mod scans;
pub(crate) mod schema;
mod sizes;
pub(crate) mod testing;
pub(crate) mod writes;

pub(crate) use caller::Caller;
pub(crate) use failure::{Failure, Kind};
