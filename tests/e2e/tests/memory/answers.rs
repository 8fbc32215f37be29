//! Goal: answers about tables and regions are in the memory for calls, whatever the protocol and service,
//! and a client that does not read them loses its connection and takes nothing from others. Method: many
//! calls on connections that read nothing, on a server with a small budget and tables with long options.

use std::net::{SocketAddr, TcpStream};
use std::sync::PoisonError;

use basalt_client::{Client, ErrorKind, FamilySchema, Get, TableSchema};
use basalt_idl::native::messages::{
    GetClusterStatusRequest, GetOnlineRegionRequest, GetRegionLoadRequest, GetTableDescriptorsRequest,
};
use basalt_test_support::{Server, until};

use crate::raw::{flood, native_calls, thrift_call, zookeeper_children, zookeeper_session};
use crate::{ALLOWANCE_BYTES, ALONE, BUDGET_BYTES};

const TABLES: usize = 60;
const OPTION_BYTES: usize = 40 << 10;
/// Calls on a native connection: as many as may be in flight.
const IN_FLIGHT: u32 = 1_000;
/// Small calls of a client that reads its answers, during each flood.
const SMALL_CALLS: usize = 50;

/// Bytes that one connection sends.
type Flood = (&'static str, Vec<u8>, usize);

fn floods() -> Vec<Flood> {
    let tables = GetTableDescriptorsRequest::default();
    let master = |method, parameter: &_| native_calls("MasterService", method, parameter, IN_FLIGHT);
    let status = GetClusterStatusRequest::default();
    let admin = "AdminService";
    // A list of all tables, and no system tables.
    let pattern = thrift_call("getTableDescriptorsByPattern", b"\x02\0\x02\0");
    let names = thrift_call("getTableNamesWithIsTableEnabled", b"");
    let children = [zookeeper_session(), zookeeper_children("/hbase/table")].concat();
    let page = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes();
    vec![
        ("descriptors", master("GetTableDescriptors", &tables), 4),
        (
            "status",
            native_calls("MasterService", "GetClusterStatus", &status, IN_FLIGHT),
            2,
        ),
        (
            "regions",
            native_calls(
                admin,
                "GetOnlineRegion",
                &GetOnlineRegionRequest::default(),
                IN_FLIGHT,
            ),
            2,
        ),
        (
            "loads",
            native_calls(
                admin,
                "GetRegionLoad",
                &GetRegionLoadRequest::default(),
                IN_FLIGHT,
            ),
            2,
        ),
        ("Thrift descriptors", pattern, 150),
        ("Thrift names", names, 150),
        ("children", children, 150),
        ("metrics", page("/metrics"), 150),
        ("tables", page("/tables"), 150),
    ]
}

async fn server_with_tables(dir: &std::path::Path) -> (Server, Client) {
    let budget = format!("memory.total_bytes={BUDGET_BYTES}");
    let server = Server::start(&dir.join("data"), &[&budget, "wal.sync=os"]);
    let client = Client::connect(&server.thrift.to_string())
        .await
        .expect("the server is there");
    for table in 0..TABLES {
        let schema = TableSchema::new(&format!("t{table}"))
            .expect("a name")
            .attribute("k", "v".repeat(OPTION_BYTES))
            .family(FamilySchema::new("f"));
        client.create_table(schema).await.expect("created");
    }
    (server, client)
}

/// The port that a flood goes to.
fn port(server: &Server, message: &[u8]) -> SocketAddr {
    if message.starts_with(b"GET ") {
        server.http
    } else {
        server.thrift
    }
}

#[test]
fn unread_answers_about_tables_stay_within_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    let (server, client) = runtime.block_on(server_with_tables(dir.path()));
    let table = client.table("t0").expect("a name");
    for (what, message, connections) in floods() {
        let address = port(&server, &message);
        let sockets: Vec<TcpStream> = (0..connections).map(|_| flood(address, &message)).collect();
        runtime.block_on(async {
            for _ in 0..SMALL_CALLS {
                // A machine that is busy with other tests is late, and calls are refused for that.
                while let Err(error) = table.get(Get::new("r")).await {
                    assert_eq!(error.kind(), ErrorKind::Retry, "{what}: {error}");
                }
            }
        });
        if what == "descriptors" {
            until("clients that read nothing are dropped", || {
                server.metric("basalt_refused_calls_total{reason=\"slow\"}") > 0
            });
        }
        let peak = server.peak_resident_bytes();
        println!("{what}: peak {} MiB", peak >> 20);
        assert!(
            peak <= BUDGET_BYTES + ALLOWANCE_BYTES,
            "{what}: {peak} bytes of a budget of {BUDGET_BYTES}"
        );
        drop(sockets);
    }
    server.stop();
}
