//! The stream of changes, read as its consumers read it: lines over HTTP.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use basalt_client::native::{Cluster, ClusterOptions, Registry, Table};
use basalt_client::{Delete, FamilySchema, Put, TableSchema};
use basalt_test_support::{Server, until};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

mod consumers;
mod limits;
mod records;

/// Memstores and segments so small that files and segments come and go during a test.
const SMALL: [&str; 2] = ["memstore.flush_bytes=1048576", "wal.segment_bytes=1048576"];

/// A server that can be killed and started again at its addresses, with a client.
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
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let server = Server::start_as_set(&dir.path().join("data"), settings);
        let (main, http) = (server.thrift, server.http);
        let runtime = Runtime::new().expect("a runtime");
        let registry = Registry::bootstrap(&main.to_string()).expect("an address");
        let cluster = runtime.block_on(async { Cluster::new(ClusterOptions::new(registry)) });
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

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn kill_and_restart(&mut self) {
        self.server.take().expect("it runs").kill();
        self.restart();
    }

    fn restart(&mut self) {
        let listen = format!("server.listen=\"{}\"", self.main);
        let http = format!("http.listen=\"{}\"", self.http);
        let mut settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        settings.extend([listen.as_str(), http.as_str()]);
        self.server = Some(Server::start_as_set(&self.data(), &settings));
    }

    /// Waits for a call that must succeed.
    fn run<T>(&self, call: impl Future<Output = basalt_client::Result<T>>) -> T {
        self.runtime.block_on(call).expect("the call succeeds")
    }

    fn create(&self, name: &str) -> Table {
        let schema = TableSchema::new(name)
            .expect("a name")
            .family(FamilySchema::new("f").versions(3));
        self.run(self.cluster.create_table(schema));
        self.cluster.table(name).expect("a name")
    }

    fn put(&self, table: &Table, row: &str, value: &str) {
        self.run(table.put(Put::new(row).cell("f", "q", value)));
    }

    fn get(&self, path: &str) -> Stream {
        Stream::open(self.http, path, "")
    }

    /// The lines of a stream from which this many records are wanted.
    fn records(&self, path: &str, wanted: usize) -> Vec<Value> {
        let mut stream = self.get(path);
        assert_eq!(stream.status, 200, "{path}");
        stream.records(wanted)
    }
}

/// An answer that is read line by line.
struct Stream {
    status: u16,
    lines: BufReader<TcpStream>,
}

impl Stream {
    /// Sends a request without a body. HTTP 1.0 has no chunks.
    fn send(address: SocketAddr, method: &str, path: &str, headers: &str) -> Self {
        let mut socket = TcpStream::connect(address).expect("the port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a time");
        let request = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\n{headers}\r\n");
        socket.write_all(request.as_bytes()).expect("it is sent");
        let mut lines = BufReader::new(socket);
        let mut line = String::new();
        lines.read_line(&mut line).expect("a status");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        while !line.trim_end().is_empty() {
            line.clear();
            lines.read_line(&mut line).expect("a header");
        }
        Self {
            status: status.expect("a status"),
            lines,
        }
    }

    fn open(address: SocketAddr, path: &str, headers: &str) -> Self {
        Self::send(address, "GET", path, headers)
    }

    /// The next line; `None` at the end, however it came.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(1..) if line.ends_with('\n') => Some(line),
            _ => None,
        }
    }

    /// The rest as a text.
    fn rest(&mut self) -> String {
        std::iter::from_fn(|| self.line()).collect()
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.line()?;
        Some(serde_json::from_str(&line).unwrap_or(Value::String(line)))
    }

    /// The next records, without other objects.
    fn records(&mut self, wanted: usize) -> Vec<Value> {
        let mut records = Vec::new();
        while records.len() < wanted {
            let object = self.next().expect("the stream goes on");
            assert!(object.get("error").is_none(), "{object}");
            if object.get("row").is_some() {
                records.push(object);
            }
        }
        records
    }
}

fn row(record: &Value) -> &str {
    record["row"].as_str().expect("a row")
}

fn position(record: &Value) -> u64 {
    record["position"].as_u64().expect("a position")
}
