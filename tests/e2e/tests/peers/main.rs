//! Replication from one Basalt to another: peers, what arrives, kills and restarts of both, the log that is
//! kept, and the move of a table.
//!
//! Both sides are compared by scans of all cells: rows, columns, times, kinds and values. Scans are raw, with
//! tombstones and deleted cells, where no side has flushed, which drops deleted cells.

use std::net::SocketAddr;
use std::path::PathBuf;

use basalt_client::native::{Cluster, ClusterOptions, Registry, Table};
use basalt_client::{Delete, FamilySchema, Increment, Put, Row, Scan, TableSchema};
use basalt_idl::native::messages::MasterServiceMethod as Method;
use basalt_idl::native::messages::{self as pb, replication_state::State};
use basalt_test_support::{Server, until};
use bytes::Bytes;
use tempfile::TempDir;
use tokio::runtime::Runtime;

mod checker;
mod commands;
mod kept;
mod moving;
mod shipping;

/// Memstores and segments so small that files and segments come and go during a test.
const SMALL: [&str; 2] = ["memstore.flush_bytes=1048576", "wal.segment_bytes=1048576"];

/// A server that can be killed and started again at its address.
struct Node {
    dir: TempDir,
    settings: Vec<String>,
    server: Option<Server>,
    address: SocketAddr,
    runtime: Runtime,
    cluster: Cluster,
}

impl Node {
    fn start(settings: &[&str]) -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let server = Server::start_as_set(&dir.path().join("data"), settings);
        let address = server.thrift;
        let runtime = Runtime::new().expect("a runtime");
        let registry = Registry::bootstrap(&address.to_string()).expect("an address");
        let cluster = runtime.block_on(async { Cluster::new(ClusterOptions::new(registry)) });
        Self {
            dir,
            settings: settings.iter().map(ToString::to_string).collect(),
            server: Some(server),
            address,
            runtime,
            cluster,
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The key by which it is a peer.
    fn key(&self) -> String {
        format!("127.0.0.1:{}:/hbase", self.address.port())
    }

    fn kill(&mut self) {
        self.server.take().expect("it runs").kill();
    }

    fn stop(&mut self) {
        self.server.take().expect("it runs").stop();
    }

    fn restart(&mut self) {
        let listen = format!("server.listen=\"{}\"", self.address);
        let mut settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        settings.push(&listen);
        self.server = Some(Server::start_as_set(&self.data(), &settings));
    }

    /// Creates a table whose family `f` is replicated and whose family `g` is not.
    fn create(&self, table: &str) -> Table {
        let schema = TableSchema::new(table)
            .expect("a name")
            .family(
                FamilySchema::new("f")
                    .versions(5)
                    .attribute("REPLICATION_SCOPE", "1"),
            )
            .family(FamilySchema::new("g"));
        self.run(self.cluster.create_table(schema));
        self.table(table)
    }

    fn table(&self, table: &str) -> Table {
        self.cluster.table(table).expect("a name")
    }

    /// Waits for a call that must succeed.
    fn run<T>(&self, call: impl Future<Output = basalt_client::Result<T>>) -> T {
        self.runtime.block_on(call).expect("the call succeeds")
    }

    fn ask<M: prost::Message + Default>(
        &self,
        method: Method,
        request: &impl prost::Message,
    ) -> basalt_client::Result<M> {
        self.runtime
            .block_on(self.cluster.ask_by_message(method, request))
    }

    fn add_peer(&self, id: &str, config: pb::ReplicationPeer, state: State) -> basalt_client::Result<()> {
        let request = pb::AddReplicationPeerRequest {
            peer_id: id.to_owned(),
            peer_config: config,
            peer_state: pb::ReplicationState { state: state.into() },
        };
        let answer = self.ask::<pb::AddReplicationPeerResponse>(Method::AddReplicationPeer, &request);
        answer.map(drop)
    }

    /// Adds a peer that gets all tables at once.
    fn replicate_to(&self, peer: &Node) {
        let added = self.add_peer("p", config_of(&peer.key()), State::Enabled);
        added.expect("a peer");
    }

    fn set_enabled(&self, id: &str, enabled: bool) -> basalt_client::Result<()> {
        let peer_id = id.to_owned();
        if enabled {
            let request = pb::EnableReplicationPeerRequest { peer_id };
            self.ask::<pb::EnableReplicationPeerResponse>(Method::EnableReplicationPeer, &request)
                .map(drop)
        } else {
            let request = pb::DisableReplicationPeerRequest { peer_id };
            self.ask::<pb::DisableReplicationPeerResponse>(Method::DisableReplicationPeer, &request)
                .map(drop)
        }
    }

    fn peers(&self) -> Vec<pb::ReplicationPeerDescription> {
        let request = pb::ListReplicationPeersRequest::default();
        self.ask::<pb::ListReplicationPeersResponse>(Method::ListReplicationPeers, &request)
            .expect("a list")
            .peer_desc
    }

    /// The source's part of `status 'replication'`.
    fn source(&self) -> pb::ReplicationLoadSource {
        let request = pb::GetClusterStatusRequest::default();
        let status: pb::GetClusterStatusResponse =
            self.ask(Method::GetClusterStatus, &request).expect("a status");
        let load = &status.cluster_status.live_servers[0].server_load;
        load.repl_load_source.first().cloned().expect("there is a peer")
    }

    /// Writes numbered rows of both families, and deletes every tenth.
    fn fill(&self, table: &str, numbers: std::ops::Range<u32>) {
        let of = self.table(table);
        let key = |number: u32| format!("row-{number:06}");
        let value = "v".repeat(200);
        let puts = numbers.clone().map(|number| {
            Put::new(key(number).as_str())
                .cell("f", "q", format!("{number}{value}"))
                .cell("g", "q", "not replicated")
        });
        self.run(of.put_multiple(puts));
        let deletes = numbers
            .step_by(10)
            .map(|number| Delete::row(key(number).as_str()));
        self.run(of.delete_multiple(deletes));
    }

    /// All cells of the family `f`; raw: deleted ones and tombstones, too.
    fn cells(&self, table: &str, raw: bool) -> Vec<String> {
        let scan = Scan::new().family("f").raw(raw).versions(i32::MAX);
        let table = self.table(table);
        self.run(async {
            let mut rows = table.scan(scan)?;
            let mut cells = Vec::new();
            while let Some(row) = rows.next().await? {
                cells.extend(shown(&row));
            }
            Ok(cells)
        })
    }

    fn metric(&self, name: &str) -> u64 {
        self.server().metric(name)
    }
}

fn shown(row: &Row) -> Vec<String> {
    let cells = row.cells.iter().map(|cell| {
        format!(
            "{} {}:{} {} {:?} {}",
            row.key.escape_ascii(),
            cell.family.escape_ascii(),
            cell.qualifier.escape_ascii(),
            cell.timestamp,
            cell.kind,
            cell.value.escape_ascii()
        )
    });
    cells.collect()
}

/// A configuration by which all tables go to a cluster, with short pauses.
fn config_of(key: &str) -> pb::ReplicationPeer {
    pb::ReplicationPeer {
        clusterkey: Some(key.to_owned()),
        configuration: vec![pb::NameStringPair {
            name: "replication.source.sleepforretries".to_owned(),
            value: "20".to_owned(),
        }],
        ..pb::ReplicationPeer::default()
    }
}

/// Waits until a table has the same cells on both sides, of which none has flushed; returns them.
fn await_equal(left: &Node, right: &Node, table: &str) -> Vec<String> {
    await_cells(left, right, table, true)
}

/// Waits until clients see the same cells of a table on both sides.
fn await_same(left: &Node, right: &Node, table: &str) -> Vec<String> {
    await_cells(left, right, table, false)
}

fn await_cells(left: &Node, right: &Node, table: &str, raw: bool) -> Vec<String> {
    let mut cells = Vec::new();
    until(&format!("{table} is equal on both sides"), || {
        cells = left.cells(table, raw);
        cells == right.cells(table, raw)
    });
    assert!(!cells.is_empty());
    cells
}

/// The class and text of a refusal.
fn refusal<T: std::fmt::Debug>(outcome: basalt_client::Result<T>) -> String {
    let error = outcome.expect_err("it is refused");
    let exception = error.remote().expect("an exception");
    format!("{}: {}", exception.class_name(), exception.message)
}

fn table_families(table: &str, families: &[&str]) -> pb::TableCf {
    pb::TableCf {
        table_name: Some(pb::TableName {
            namespace: Bytes::from_static(b"default"),
            qualifier: Bytes::copy_from_slice(table.as_bytes()),
        }),
        families: families
            .iter()
            .map(|family| Bytes::copy_from_slice(family.as_bytes()))
            .collect(),
    }
}
