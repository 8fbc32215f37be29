//! HappyBase, unmodified from PyPI, in all transports and protocols it has, and across a kill -9.

use basalt_tests::{Server, happybase};

const TOUR: &str = include_str!("../python/tour.py");

/// Goal: whoever has HappyBase code can point it at Basalt. The tour creates, writes, reads, scans with filters, counts,
/// deletes, and meets the errors.
#[test]
fn happybase_works_in_every_transport_and_protocol() {
    let Some(python) = happybase() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let (host, port) = (server.thrift.ip().to_string(), server.thrift.port().to_string());
    for (transport, protocol) in [
        ("buffered", "binary"),
        ("framed", "binary"),
        ("buffered", "compact"),
        ("framed", "compact"),
    ] {
        let output = python.run(TOUR, &[&host, &port, transport, protocol]);
        assert!(
            output.as_ref().is_ok_and(|text| text.trim() == "tour done"),
            "{transport} {protocol}: {}",
            output.unwrap_or_else(|error| error)
        );
    }
    server.stop();
}

const WRITE: &str = r#"
import sys, happybase
connection = happybase.Connection(sys.argv[1], int(sys.argv[2]))
connection.create_table("kept", {"f": dict()})
table = connection.table("kept")
for number in range(500):
    table.put(b"row-%03d" % number, {b"f:q": b"%d" % number})
    print(number, flush=True)
"#;

const READ: &str = r#"
import sys, happybase
table = happybase.Connection(sys.argv[1], int(sys.argv[2])).table("kept")
rows = list(table.scan())
assert rows == [(b"row-%03d" % number, {b"f:q": b"%d" % number}) for number in range(500)], len(rows)
assert table.counter_inc(b"counter", b"f:c") == 1
"#;

/// Every put that HappyBase saw succeed is there after kill -9, twice in a row, and the server takes writes again.
#[test]
fn acknowledged_writes_survive_kill_9() {
    let Some(python) = happybase() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let run = |program: &str, server: &Server| {
        let (host, port) = (server.thrift.ip().to_string(), server.thrift.port().to_string());
        python
            .run(program, &[&host, &port])
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let server = Server::start(&data, &[]);
    assert_eq!(run(WRITE, &server).lines().count(), 500);
    server.kill();
    let server = Server::start(&data, &[]);
    server.kill();
    let server = Server::start(&data, &[]);
    run(READ, &server);
    server.stop();
}
