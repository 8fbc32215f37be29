//! Goal: idle connections stay, and dead ones are found. Method: inspect the kernel's state of the
//! server's sockets, and wait for ends instead of sleeping. That an idle connection lives for ever
//! is tested with a clock of its own in the server.

use basalt_idl::thrift1::args::GetTableNames;
use basalt_idl::wire::Protocol;
use basalt_test_support::{Server, until};

use super::speech::{Answer, Client, SOCKETS, Transport};

/// The timer that the kernel runs for the server's end of a connection: column `tr` of `/proc/net/tcp`.
fn timer(client: &Client) -> String {
    let port = |address: std::net::SocketAddr| format!(":{:04X}", address.port());
    let ours = port(client.socket.local_addr().expect("it is connected"));
    let theirs = port(client.socket.peer_addr().expect("it is connected"));
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut found = rows.filter(|columns| columns[1].ends_with(&theirs) && columns[2].ends_with(&ours));
    let columns = found.next().expect("the server's end is open");
    columns[5].split(':').next().expect("a timer").to_owned()
}

/// Silence is watched by the kernel, on both ports: timer 2 is keepalive's.
#[test]
fn idle_connections_are_kept_alive() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let thrift = [Transport::Framed, Transport::Unframed].map(|transport| {
        let mut client = Client::connect(&server, Protocol::BinaryStrict, transport);
        client.call(&GetTableNames {}).expect("served");
        client
    });
    let mut http = Client::connect(&server, Protocol::BinaryStrict, Transport::Http);
    http.call(&basalt_idl::thrift2::args::GetClusterId {})
        .expect("served");
    for client in thrift.iter().chain([&http]) {
        // Until the client has confirmed the answer, another timer runs; it does so at once, or after 40 ms.
        until("keepalive's timer runs", || timer(client) == "02");
    }
    server.stop();
}

/// With `server.idle_timeout_ms` a connection ends that long after its last call.
#[test]
fn idle_connections_end_when_configured() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["server.idle_timeout_ms=300"]);
    for transport in SOCKETS {
        let mut client = Client::connect(&server, Protocol::Compact, transport);
        client.call(&GetTableNames {}).expect("served");
        let called = std::time::Instant::now();
        assert_eq!(client.answer(), Answer::End);
        assert!(called.elapsed().as_millis() >= 250, "{:?}", called.elapsed());
    }
    server.stop();
}
