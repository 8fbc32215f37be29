//! A standby: a copy, the log, restarts and kills of both sides, promotion, fences, and what clients see of
//! it.
//!
//! `STANDBY_KILLS=50` sets how often the primary of the histories is killed (2 without it).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use basalt_client::native::{Cluster, ClusterOptions, Registry, Table};
use basalt_client::{FamilySchema, Increment, Put, Row, Scan, TableSchema};
use basalt_test_support::{Server, free_address, until};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

mod following;
mod histories;
mod refusals;
mod secure;
mod stores;

/// Memstores and segments so small that files and segments come and go during a test.
const SMALL: [&str; 2] = ["memstore.flush_bytes=1048576", "wal.segment_bytes=1048576"];

/// A server that can be killed and started again at its addresses.
struct Node {
    dir: TempDir,
    settings: Vec<String>,
    server: Option<Server>,
    main: SocketAddr,
    http: SocketAddr,
    runtime: Runtime,
    cluster: Cluster,
}

impl Node {
    fn start(settings: &[&str]) -> Self {
        Self::start_in(
            basalt_test_support::tempdir().expect("a temporary folder"),
            settings,
        )
    }

    fn start_in(dir: TempDir, settings: &[&str]) -> Self {
        let server = Server::start_as_set(&dir.path().join("data"), settings);
        let (main, http) = (server.thrift, server.http);
        let runtime = Runtime::new().expect("a runtime");
        let cluster = cluster_at(&runtime, &[main]);
        Self {
            dir,
            settings: settings.iter().map(ToString::to_string).collect(),
            server: Some(server),
            main,
            http,
            runtime,
            cluster,
        }
    }

    /// A standby of another server.
    fn follow(leader: &Node, settings: &[&str]) -> Self {
        Self::follow_as(leader, &format!("of-{}", leader.http.port()), "http", settings)
    }

    /// A standby with that name, which reaches the other server by that scheme.
    fn follow_as(leader: &Node, name: &str, scheme: &str, settings: &[&str]) -> Self {
        let follow = format!("standby.follow=\"{scheme}://{}\"", leader.http);
        let name = format!("standby.name=\"{name}\"");
        // It may start again by itself, and is looked for where it was.
        let (listen, http) = (free_address(), free_address());
        let listen = format!("server.listen=\"{listen}\"");
        let http = format!("http.listen=\"{http}\"");
        let own = [follow.as_str(), name.as_str(), listen.as_str(), http.as_str()];
        let settings: Vec<&str> = own.into_iter().chain(settings.iter().copied()).collect();
        Self::start(&settings)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn kill(&mut self) {
        self.server.take().expect("it runs").kill();
    }

    fn stop(&mut self) {
        self.server.take().expect("it runs").stop();
    }

    fn restart(&mut self) {
        let listen = format!("server.listen=\"{}\"", self.main);
        let http = format!("http.listen=\"{}\"", self.http);
        let settings: Vec<&str> = [listen.as_str(), http.as_str()]
            .into_iter()
            .chain(self.settings.iter().map(String::as_str))
            .collect();
        self.server = Some(Server::start_as_set(&self.data(), &settings));
    }

    /// Waits for a call that must succeed.
    fn run<T>(&self, call: impl Future<Output = basalt_client::Result<T>>) -> T {
        self.runtime.block_on(call).expect("the call succeeds")
    }

    fn table(&self, table: &str) -> Table {
        self.cluster.table(table).expect("a name")
    }

    /// Creates a table with the family `f`.
    fn create(&self, table: &str) {
        let schema = TableSchema::new(table)
            .expect("a name")
            .family(FamilySchema::new("f").versions(3));
        self.run(self.cluster.create_table(schema));
    }

    /// Writes numbered rows.
    fn fill(&self, table: &str, numbers: std::ops::Range<u32>, value: &str) {
        let puts = numbers.map(|number| {
            Put::new(format!("row-{number:06}").as_str()).cell("f", "q", format!("{number} {value}"))
        });
        self.run(self.table(table).put_multiple(puts));
    }

    fn add(&self, table: &str, row: &str, amount: i64) {
        let increment = Increment::new(row).column("f", "n", amount);
        self.run(self.table(table).increment(increment));
    }

    /// All cells of a table.
    fn cells(&self, table: &str) -> Vec<String> {
        self.try_cells(table).expect("a scan")
    }

    fn try_cells(&self, table: &str) -> basalt_client::Result<Vec<String>> {
        let table = self.table(table);
        self.runtime.block_on(async {
            let mut rows = table.scan(Scan::new().versions(i32::MAX))?;
            let mut cells = Vec::new();
            while let Some(row) = rows.next().await? {
                cells.extend(shown(&row));
            }
            Ok(cells)
        })
    }

    fn status(&self) -> Value {
        self.try_status().expect("a status")
    }

    /// `None` while it starts again.
    fn try_status(&self) -> Option<Value> {
        let mut socket = TcpStream::connect(self.http).ok()?;
        write!(socket, "GET /standby/status HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Becomes the primary.
    fn promote(&self) -> Value {
        let (status, text) = self.server().http_post("/standby/promote", "{}");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("an answer")
    }
}

fn cluster_at(runtime: &Runtime, addresses: &[SocketAddr]) -> Cluster {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let registry = Registry::bootstrap(&addresses.join(",")).expect("addresses");
    runtime.block_on(async { Cluster::new(ClusterOptions::new(registry)) })
}

fn shown(row: &Row) -> Vec<String> {
    let cells = row.cells.iter().map(|cell| {
        format!(
            "{} {}:{} {} {}",
            row.key.escape_ascii(),
            cell.family.escape_ascii(),
            cell.qualifier.escape_ascii(),
            cell.timestamp,
            cell.value.escape_ascii()
        )
    });
    cells.collect()
}

/// Waits until the standby has everything that was written.
fn await_standby(leader: &Node, standby: &Node) {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let (theirs, own) = (leader.status(), standby.try_status());
        let is_equal = |own: &Value| {
            own["role"] == json!("standby")
                && own["position"] == theirs["position"]
                && own["turn"] == theirs["turn"]
        };
        if own.as_ref().is_some_and(is_equal) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the standby has not everything within a minute: primary {theirs}, standby {own:?}"
        );
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// How often primaries are killed.
fn kills() -> u32 {
    std::env::var("STANDBY_KILLS").map_or(2, |kills| kills.parse().expect("a number"))
}
