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
//! | `health` | looks at the cluster, for `/readyz` and pages |
//! | `observer` | figures of the calls |
//! | `peer` | clusters that get the edits of this one |
//! | `messages` | descriptors from and to messages, also for the adapter of the native protocol |
//!
//! Repetitions are the client's: reads and plain writes are repeated, increments and appends carry a nonce,
//! conditional writes are sent once. The cluster's exceptions keep class and text. While the cluster is away,
//! calls fail after one round of attempts to reach it. Calls on data are futures; those of `admin` block a
//! thread, and [`WAITING_MAX`] bounds how many.
//!
//! Calls on jobs, store files, snapshots and quotas need an engine and are refused
//! ([`super::backend::Backend::engine`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use basalt_client::native::{Cluster, ClusterOptions, Registry};
use basalt_client::{Error, ErrorKind};
use basalt_engine::schema::TableName;
use basalt_idl::native::exception::ExceptionClass;

use super::Failure;
use crate::config::Config;
use crate::observe::metrics::ClusterCalls;
use crate::server::gateway::Gateway;

pub(super) mod admin;
mod cells;
pub(super) mod data;
mod encode;
pub(crate) mod health;
pub(crate) mod messages;
mod observer;
mod peer;

pub(crate) use peer::{peer, peer_id};

/// Longest time to connect to a server of the cluster.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time of one call. A server that hangs is given up then, within the time of the operation.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest pause between two attempts: a region that has moved is back within that.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Most threads that wait for answers to calls on tables, namespaces and regions. The pool of a server has
/// [`crate::serve::BLOCKING_THREADS`], and a network thread that waits takes one of them, too.
const WAITING_MAX: usize = 24;

/// Threads that wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The gateway that the settings describe. Connects when first used.
/// REQUIRES: the metrics recorder is installed.
pub(crate) fn gateway(config: &Config) -> Result<Gateway, Error> {
    let settings = &config.gateway;
    let calls = ClusterCalls::new();
    let deadline = Duration::from_millis(settings.deadline_ms);
    let cluster = Cluster::new(ClusterOptions {
        user: settings.user.clone(),
        operation_timeout: deadline,
        call_timeout: CALL_TIMEOUT.min(deadline),
        connect_timeout: CONNECT_TIMEOUT.min(deadline),
        // Time ends an operation, not the number of its attempts.
        retries: u32::MAX,
        pause_max: PAUSE_MAX,
        // Another server's scanners may end with the connection.
        idle_timeout: Duration::MAX,
        reply_bytes_max: config.server.max_message_bytes,
        fails_when_away: true,
        observer: Some(Arc::clone(&calls) as _),
        ..ClusterOptions::new(registry(&settings.cluster)?)
    });
    Ok(Gateway::new(
        cluster,
        &settings.cluster,
        settings.read_only,
        calls,
    ))
}

/// The registry of a cluster, by the key in the settings.
pub(crate) fn registry(key: &str) -> Result<Registry, Error> {
    Registry::of_cluster_key(key)
}

/// The handle of a table.
fn table(cluster: &Cluster, name: &TableName) -> Result<basalt_client::native::Table, Failure> {
    cluster.table(&name.to_string()).map_err(|error| failure(&error))
}

/// Waits for an answer of the cluster. Callers are on the pool, or on a network thread whose other work
/// moves to another thread meanwhile. Refuses when too many wait.
fn wait<T>(answer: impl Future<Output = basalt_client::Result<T>>) -> Result<T, Failure> {
    let _waiting = Waiting::begin()?;
    let runtime = tokio::runtime::Handle::current();
    let answer = tokio::task::block_in_place(|| runtime.block_on(answer));
    answer.map_err(|error| failure(&error))
}

/// A thread that waits.
struct Waiting;

impl Waiting {
    fn begin() -> Result<Self, Failure> {
        if WAITING.fetch_add(1, Ordering::Relaxed) < WAITING_MAX {
            return Ok(Self);
        }
        WAITING.fetch_sub(1, Ordering::Relaxed);
        Err(Failure::busy(format!(
            "{WAITING_MAX} calls on tables and regions wait for the cluster already; try again"
        )))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The failure of a write: one whose outcome is unknown says so, and whether it may be repeated.
fn write_failure(error: &Error, may_be_repeated: bool) -> Failure {
    if error.kind() == ErrorKind::Unknown {
        let text = format!("the outcome is unknown, and the write may have been made: {error}");
        return Failure::unknown_outcome(text, may_be_repeated);
    }
    failure(error)
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
        let error = registry("hbase+rpc://db").unwrap_err().to_string();
        assert!(error.contains("host:port"), "{error}");
        assert!(registry("hbase+rpc://a:1,b:2").is_ok());
    }

    /// Goal: a client that repeats what may be repeated does not repeat a write that may have been made.
    #[test]
    fn an_unknown_outcome_is_named() {
        let lost = Error::Io {
            target: "db:16020".to_owned(),
            method: "Mutate",
            source: std::io::ErrorKind::UnexpectedEof.into(),
        };
        let written = write_failure(&lost, false);
        assert!(!written.can_retry());
        assert!(written.message().contains("unknown"), "{}", written.message());
        assert!(failure(&lost).can_retry(), "a read");
        let away = Error::Away { last: Box::new(lost) };
        assert!(write_failure(&away, false).can_retry(), "nothing was sent");
    }

    /// Goal: threads that wait for the cluster are bounded.
    #[test]
    fn few_threads_wait() {
        let waiting: Vec<_> = std::iter::from_fn(|| Waiting::begin().ok())
            .take(WAITING_MAX + 1)
            .collect();
        assert!(waiting.len() <= WAITING_MAX);
        assert!(Waiting::begin().is_err_and(|refused| refused.is_busy()));
        drop(waiting);
        assert!(Waiting::begin().is_ok());
    }
}
