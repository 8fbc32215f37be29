//! The calls themselves, independent of any protocol.
//!
//! Functions of the server, the call and neutral arguments; failures are [`Failure`]s with HBase's
//! exception classes, which each protocol renders in one place. All of them take the one path of
//! [`pipeline`]. Where work runs: plain writes, and gets, fetches of scans, increments, appends and
//! checks whose data is in memory run on the network thread. Work that may wait for the disk or for a
//! row's lock, or takes long, goes to tokio's blocking pool ([`pool`]); a wait for a commit is a
//! future and takes no thread.

pub(crate) mod admin;
pub(crate) mod arguments;
mod backend;
mod call;
pub(crate) mod cell_counts;
pub(crate) mod changes;
mod charge;
mod confirm;
mod describe;
mod failure;
pub(crate) mod faults;
pub(crate) mod group;
pub(crate) mod listing;
pub(crate) mod pipeline;
mod pool;
pub(crate) mod quotas;
pub(crate) mod reads;
mod record;
pub(crate) mod regions;
pub(crate) mod remote;
pub(crate) mod scans;
pub(crate) mod schema;
pub(crate) mod sink;
mod sizes;
pub(crate) mod testing;
pub(crate) mod user_code;
pub(crate) mod writes;

pub(crate) use admin::AdminCall;
pub(crate) use backend::Backend;
pub(crate) use call::{Call, Kept, Sender, Told};
pub(crate) use failure::{Failure, Kind};
