//! Goal: idle connections cost little, and slow clients do not slow others down. Method: thousands
//! of connections, each served once, against the server's memory; a client that reads no answers
//! and clients that stop in the middle of a frame, beside one that works.

use std::time::{Duration, Instant};

use basalt_idl::native::messages::{
    GetResponse, IsMasterRunningRequest, IsMasterRunningResponse, RegionSpecifier,
};
use basalt_test_support::{Server, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::client::{Client, exception, start_with_table};
use super::requests::{get, write};

const CONNECTIONS: usize = 5_000;
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

/// The median latency of a Get of a row that does not exist.
fn latency(client: &mut Client, region: &RegionSpecifier) -> Duration {
    let mut took: Vec<Duration> = (0..501)
        .map(|_| {
            let began = Instant::now();
            client.ask::<GetResponse>("Get", &get(region, "none"));
            began.elapsed()
        })
        .collect();
    took.sort();
    took[took.len() / 2]
}

#[test]
fn idle_native_connections_cost_little() {
    if !may_open(CONNECTIONS as u64 + 500) {
        println!("not run: this machine allows fewer than {CONNECTIONS} open files");
        return;
    }
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let served = |_| {
        let mut client = Client::connect(&server, "MasterService");
        client.ask::<IsMasterRunningResponse>("IsMasterRunning", &IsMasterRunningRequest {});
        client
    };
    let working = served(0);
    let memory = server.resident_bytes();
    let idle: Vec<Client> = (0..CONNECTIONS).map(served).collect();
    let each = server.resident_bytes().saturating_sub(memory) / CONNECTIONS as u64;
    println!("{each} bytes each");
    assert!(each < BYTES_MAX, "{each} bytes for each connection");
    drop((working, idle));
    until("the server has seen the ends", || {
        server.metric("basalt_connections ") == 0
    });
    server.stop();
}

const BUDGET_BYTES: u64 = 128 << 20;
/// For the program with its threads, memory that the allocator retains, and calls that were begun
/// when the limits were reached.
const ALLOWANCE_BYTES: u64 = 64 << 20;
const IN_FLIGHT: u32 = 1_000;
const LARGE_BYTES: usize = 1 << 20;
/// Connections that stop in the middle of a frame of [`HALF_FRAME_BYTES`].
const HALVES: usize = 8;
const HALF_FRAME_BYTES: u32 = 4 << 20;

/// Half of a frame.
fn half(server: &Server) -> Client {
    let mut client = Client::connect(server, "ClientService");
    let mut frame = HALF_FRAME_BYTES.to_be_bytes().to_vec();
    frame.resize(HALF_FRAME_BYTES as usize / 2, 0);
    client.send(&frame);
    client
}

/// A client has 1,000 calls in flight on one connection, whose answers have a gigabyte together,
/// and reads none; others have sent half of a frame. Memory stays within its budget, and small
/// calls of other clients are served as before. The slow reader gets an answer to every call in the
/// end, or its connection was closed, perhaps within an answer, to free memory for others.
#[test]
fn slow_native_clients_slow_nobody_down() {
    let (_dir, server, region, mut client) =
        start_with_table(&[&format!("memory.total_bytes={BUDGET_BYTES}"), "wal.sync=os"]);
    write(&mut client, &region, "large", &[("q", &vec![b'v'; LARGE_BYTES])]);
    let before = latency(&mut client, &region);
    let mut reader = Client::connect(&server, "ClientService");
    for id in 0..IN_FLIGHT {
        reader.call(id, "Get", &get(&region, "large"), b"");
    }
    let halves: Vec<Client> = (0..HALVES).map(|_| half(&server)).collect();
    let limit = server.metric("basalt_request_memory_limit_bytes");
    until("the slow clients hold memory", || {
        server.metric("basalt_request_memory_bytes") > limit / 4
    });
    for round in 0..20 {
        write(&mut client, &region, "small", &[("q", &round.to_string())]);
    }
    let during = latency(&mut client, &region);
    println!("a call takes {before:?} before and {during:?} during");
    assert!(
        during < 10 * before + Duration::from_millis(20),
        "{before:?} before, {during:?} during"
    );
    drop(halves);
    let (mut answered, mut refused) = (0, 0);
    while let Some(response) = reader.response_until_cut() {
        if response.header.exception.is_some() {
            let (class, text) = exception(&response);
            assert!(text.contains("requests.memory_bytes"), "{class}: {text}");
            refused += 1;
        } else {
            answered += 1;
        }
        if answered + refused == IN_FLIGHT {
            break;
        }
    }
    println!("{answered} answered, {refused} refused of {IN_FLIGHT}");
    // The end of a connection may discard answers that have arrived.
    let dropped = server.metric("basalt_refused_calls_total{reason=\"slow\"}");
    assert!(
        answered + refused == IN_FLIGHT || dropped > 0,
        "cut for another reason"
    );
    let peak = server.peak_resident_bytes();
    assert!(
        peak <= BUDGET_BYTES + ALLOWANCE_BYTES,
        "{peak} bytes of a budget of {BUDGET_BYTES}"
    );
    drop((reader, client));
    until("no call holds memory", || {
        server.metric("basalt_request_memory_bytes") == 0
    });
    server.stop();
}
