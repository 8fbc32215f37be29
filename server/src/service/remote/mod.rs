//! Calls on tables of another cluster, through the client of the native protocol.
//!
//! ```text
//! pipeline -> Request::forward -> encode (neutral request -> message) -> client -> cells (rows -> batch)
//! admin    -> one function here for each neutral call -> message of the master -> client
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `encode` | reads, writes and conditions as messages |
//! | `cells` | rows of the client as the batch of an answer |
//! | `data` | gets, writes, atomic groups, fetches |
//! | `admin` | tables, namespaces and regions |
//! | `peer` | clusters that get the edits of this one |
//! | `messages` | descriptors from and to messages, also for the adapter of the native protocol |
//!
//! Repetitions are the client's: reads and plain writes are repeated, increments and appends carry a
//! nonce, conditional writes are sent once. The cluster's exceptions keep class and text.
//!
//! Calls on jobs, store files, snapshots and quotas need an engine and are refused
//! ([`super::backend::Backend::engine`]).

use std::time::Duration;

use basalt_client::native::{Cluster, ClusterOptions, Registry};
use basalt_client::{Error, ErrorKind};
use basalt_engine::schema::TableName;
use basalt_idl::native::exception::ExceptionClass;

use super::Failure;

pub(super) mod admin;
mod cells;
pub(super) mod data;
mod encode;
pub(crate) mod messages;
mod peer;

pub(crate) use peer::{peer, peer_id};

/// Longest time of an operation with all its repetitions.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// User of the calls, until calls carry the users of the clients.
const USER: &str = "basalt";

/// A client of the cluster whose registry is at these addresses, `host:port` separated by commas.
/// Connects when first used.
pub(crate) fn cluster(addresses: &str) -> Result<Cluster, Error> {
    Ok(Cluster::new(ClusterOptions {
        user: USER.to_owned(),
        operation_timeout: OPERATION_TIMEOUT,
        call_timeout: CALL_TIMEOUT,
        ..ClusterOptions::new(Registry::bootstrap(addresses)?)
    }))
}

/// The handle of a table.
fn table(cluster: &Cluster, name: &TableName) -> Result<basalt_client::native::Table, Failure> {
    cluster.table(&name.to_string()).map_err(|error| failure(&error))
}

/// Waits for an answer of the cluster. Callers are on the pool, or on a network thread whose other work
/// moves to another thread meanwhile.
fn wait<T>(answer: impl Future<Output = basalt_client::Result<T>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Handle::current();
    let answer = tokio::task::block_in_place(|| runtime.block_on(answer));
    answer.map_err(|error| failure(&error))
}

/// A failure of the cluster, or on the way to it.
fn failure(error: &Error) -> Failure {
    if let Some(exception) = error.remote() {
        // The client's own text about a missing table, in HBase's words.
        let message = &exception.message;
        let table = message
            .strip_prefix("table ")
            .and_then(|rest| rest.strip_suffix(" does not exist"));
        let message = table.unwrap_or(message);
        let class = ExceptionClass::named(&exception.class).map(ExceptionClass::name);
        return Failure::of_exception(class, message, !exception.do_not_retry);
    }
    match error {
        Error::InvalidRequest(message) => Failure::illegal_argument(message),
        _ if error.kind() == ErrorKind::Request => Failure::do_not_retry(error.to_string()),
        _ => Failure::plain_io(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_the_way_can_be_retried_and_names_the_server() {
        let refused = Error::Connect {
            target: "db:16020".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        let failure = failure(&refused);
        assert!(failure.can_retry());
        assert!(failure.message().contains("db:16020"), "{}", failure.message());
    }

    #[test]
    fn addresses_must_be_host_and_port() {
        assert!(cluster("db").unwrap_err().to_string().contains("host:port"));
        assert!(cluster("a:1,b:2").is_ok());
    }
}
