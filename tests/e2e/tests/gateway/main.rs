//! `basalt gateway` in front of another Basalt: refusals at its start, what it refuses and shows, and the
//! cluster away, silent, restarted, and with cut connections. The tests of `api` run on a gateway, too
//! (`api/cluster.rs`), and `tests/conformance/tests/growing_out/gateway.rs` has a real HBase.

mod away;
mod cut;
mod limits;
mod pages;
mod proxy;
mod refusals;
mod scanners;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;

use basalt_client::native::{Cluster, ClusterOptions, Registry};
use basalt_client::{Client, Error, FamilySchema, PoolOptions, Put, TableSchema};
use basalt_test_support::{Server, signal, until};

/// A cluster, and a gateway to it.
struct Pair {
    gateway: Server,
    cluster: Server,
    dir: tempfile::TempDir,
}

impl Pair {
    /// Starts both with these settings. The cluster has a table `t` with family `f`.
    fn start(of_gateway: &[&str], of_cluster: &[&str]) -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let cluster = Server::start(&dir.path().join("cluster"), of_cluster);
        create_table(cluster.thrift);
        let gateway = gateway(dir.path(), cluster.thrift, of_gateway);
        Self {
            gateway,
            cluster,
            dir,
        }
    }

    /// The cluster's metric as a number.
    fn of_cluster(&self, series: &str) -> u64 {
        self.cluster.metric(series)
    }
}

/// A gateway to the Basalt at this address.
fn gateway(dir: &Path, cluster: SocketAddr, settings: &[&str]) -> Server {
    Server::start_gateway(&dir.join("gateway"), &format!("hbase+rpc://{cluster}"), settings)
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(work)
}

/// Stops a process, and returns when none of its threads runs any more.
fn halt(server: &Server) {
    signal(server.pid(), "STOP");
    until("all threads are stopped", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("the process");
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat"));
            stat.is_ok_and(|stat| stat.contains(") T "))
        })
    });
}

/// Creates the table `t` with family `f` at a Basalt.
fn create_table(at: SocketAddr) {
    let registry = Registry::bootstrap(&at.to_string()).expect("an address");
    let created = wait(async {
        let cluster = Cluster::new(ClusterOptions::new(registry));
        let schema = TableSchema::new("t")?.family(FamilySchema::new("f"));
        cluster.create_table(schema).await
    });
    created.expect("a table");
}

/// A Thrift 2 client.
fn client(at: SocketAddr) -> Client {
    Client::new(at.to_string(), PoolOptions::default()).expect("an address")
}

fn put(row: &str, value: &str) -> Put {
    Put::new(row.to_owned()).cell("f", "q", value.to_owned())
}

/// The text of an exception, and whether the call may be repeated.
fn exception(error: Error) -> (String, bool) {
    match error {
        Error::Server {
            message, can_retry, ..
        } => (message, can_retry),
        other => panic!("no exception: {other}"),
    }
}
