//! HBase's native protocol on the main port, with a client that can send malformed input.
//!
//! `client_native` tests the protocol with HBase's own clients. The cases here are those that the
//! Java client does not send: bad input of each kind, and the requests of old or minimal clients.

mod admin;
mod client;
mod closing;
mod compressed;
mod crowd;
mod cut_rows;
mod endpoints;
mod faults;
mod gohbase;
mod groups;
mod hostile;
mod limits;
mod loads;
mod markers;
mod methods;
mod places;
mod quotas;
mod replication;
mod requests;
mod rows;
mod scans;
mod slow_log;
mod status;
mod trackers;
mod upkeep;
mod zookeeper;
