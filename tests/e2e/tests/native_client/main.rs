//! The native client of our library against the real server.
//!
//! The unit tests of `basalt_client::native` have fake servers for events that a healthy server does not
//! have: moved regions, partial answers, lost replies. The cases here are the calls, and the behaviour of a
//! client while regions split and servers restart.

mod admin;
mod changes;
mod filters;
mod hbase;
mod rows;
mod scans;

use std::path::PathBuf;

use basalt_client::native::{Cluster, ClusterOptions, Registry, Table};
use basalt_client::{FamilySchema, Put, Row, TableSchema};
use basalt_test_support::Server;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A server, a cluster of it, and a runtime for the calls.
struct Rig {
    dir: TempDir,
    server: Server,
    runtime: Runtime,
    cluster: Cluster,
}

impl Rig {
    fn start() -> Self {
        Self::start_with(|_| {})
    }

    fn start_with(change: impl FnOnce(&mut ClusterOptions)) -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let server = Server::start(&data(&dir), &[]);
        let runtime = Runtime::new().expect("a runtime");
        let mut options = options(&server);
        change(&mut options);
        let cluster = runtime.block_on(Cluster::connect(options)).expect("a cluster");
        Self {
            dir,
            server,
            runtime,
            cluster,
        }
    }

    /// Creates the table `t` with the family `f` and regions that start at these rows.
    fn table(&self, splits: &[&str]) -> Table {
        self.runtime.block_on(create(&self.cluster, "t", splits));
        self.cluster.table("t").expect("a name")
    }
}

fn data(dir: &TempDir) -> PathBuf {
    dir.path().join("data")
}

/// Options that find the server through its ZooKeeper nodes.
fn options(server: &Server) -> ClusterOptions {
    let registry = Registry::zookeeper("127.0.0.1", server.thrift.port(), "/hbase").expect("an address");
    ClusterOptions::new(registry)
}

async fn create(cluster: &Cluster, table: &str, splits: &[&str]) {
    let schema = TableSchema::new(table)
        .expect("a name")
        .family(FamilySchema::new("f").versions(3));
    let splits = splits.iter().map(|row| row.as_bytes().to_vec()).collect();
    cluster.create_table_split(schema, splits).await.expect("a table");
}

/// Puts one cell into each row: the row's own key.
async fn fill(table: &Table, rows: impl IntoIterator<Item = String>) {
    let puts = rows.into_iter().map(|row| Put::new(&row).cell("f", "q", &row));
    table.put_multiple(puts).await.expect("written");
}

fn keys(rows: &[Row]) -> Vec<String> {
    let key = |row: &Row| String::from_utf8_lossy(&row.key).into_owned();
    rows.iter().map(key).collect()
}
