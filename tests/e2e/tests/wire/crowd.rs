//! Goal: connections that do nothing cost little. Method: thousands of them, each of which has been served
//! once, against the server's memory. The latency of one that works beside them is printed.

use std::time::{Duration, Instant};

use basalt_idl::thrift2::args::GetClusterId;
use basalt_idl::wire::Protocol;
use basalt_test_support::{Server, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::speech::{Client, PROTOCOLS, Transport};

const CONNECTIONS: usize = 5_000;
/// Connections to the HTTP port, whose share is a sixteenth of the limit of open files.
const HTTP_CONNECTIONS: usize = 1_000;
const BYTES_MAX: u64 = 16 << 10;

/// Whether this process, and so the server it starts, may have this many files open. Raises the
/// limit as far as it may be raised.
fn may_open(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If the limit cannot be raised it stays.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile)
        .current
        .is_none_or(|limit| limit >= files)
}

/// The median latency of a call.
fn latency(client: &mut Client) -> Duration {
    let mut took: Vec<Duration> = (0..501)
        .map(|_| {
            let began = Instant::now();
            client.call(&GetClusterId {}).expect("served");
            began.elapsed()
        })
        .collect();
    took.sort();
    took[took.len() / 2]
}

fn idle_connections_cost_little(transport: Transport, connections: usize, metric: &str) {
    let files = match transport {
        Transport::Http => 16 * (connections as u64 + 10),
        _ => connections as u64 + 500,
    };
    if !may_open(files) {
        println!("not run: this machine allows fewer than {files} open files");
        return;
    }
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut working = Client::connect(&server, Protocol::BinaryStrict, transport);
    let before = latency(&mut working);
    let memory = server.resident_bytes();
    let idle: Vec<Client> = (0..connections)
        .map(|index| {
            let mut client = Client::connect(&server, PROTOCOLS[index % PROTOCOLS.len()], transport);
            client.call(&GetClusterId {}).expect("served");
            client
        })
        .collect();
    let each = server.resident_bytes().saturating_sub(memory) / connections as u64;
    let during = latency(&mut working);
    drop(idle);
    // The working one, and the one that asks.
    until("the server has seen the ends", || server.metric(metric) <= 2);
    let after = latency(&mut working);
    println!(
        "{transport:?}: {each} bytes each; a call takes {before:?} before, {during:?} during, {after:?} after"
    );
    assert!(each < BYTES_MAX, "{each} bytes for each connection");
    server.stop();
}

#[test]
fn idle_connections_to_the_thrift_port_cost_little() {
    idle_connections_cost_little(Transport::Framed, CONNECTIONS, "basalt_connections ");
}

#[test]
fn idle_connections_to_the_http_port_cost_little() {
    idle_connections_cost_little(Transport::Http, HTTP_CONNECTIONS, "basalt_http_connections ");
}
