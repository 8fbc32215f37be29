//! Events of a cluster's client, for programs that count them.

use std::fmt::Debug;
use std::time::Duration;

/// Receives the events of a cluster's client ([`ClusterOptions::observer`](super::ClusterOptions::observer)).
/// Its methods run on the client's tasks, so they must be short.
pub trait Observer: Debug + Send + Sync {
    /// An RPC has ended, with the Java class of its exception, or with `None` if there was no answer; `Ok` if
    /// it succeeded. `took` is the time from its registration to its answer.
    fn called(&self, _method: &'static str, _took: Duration, _outcome: Result<(), Option<&str>>) {}

    /// A connection to a server was opened, or could not be.
    fn connected(&self, _is_open: bool) {}

    /// A connection has ended other than by [`idle_timeout`](super::ClusterOptions::idle_timeout).
    fn lost(&self) {}

    /// A region was looked up in `hbase:meta`, or `hbase:meta` in the registry.
    fn looked_up(&self) {}

    /// An operation begins a further attempt.
    fn repeated(&self) {}
}
