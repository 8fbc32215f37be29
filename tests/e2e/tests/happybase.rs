//! HappyBase, unmodified from PyPI, in all transports and protocols it has, and across a kill -9.

use basalt_test_support::{Server, administer, happybase};

const TOUR: &str = include_str!("../python/tour.py");

/// Goal: HappyBase code can be pointed at Basalt. The tour creates, writes, reads, scans with
/// filters, counts, deletes, and meets the errors.
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

/// Every put that HappyBase saw succeed is there after kill -9, twice in a row, and the server takes writes
/// again.
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

const FAULTS: &str = r#"
import json, sys, urllib.request, happybase
from Hbase_thrift import IOError as HBaseError
from thriftpy2.transport import TTransportException

host, port, http = sys.argv[1], int(sys.argv[2]), sys.argv[3]
connection = happybase.Connection(host, port)
connection.create_table("t", {"f": dict()})
table = connection.table("t")
for number in range(10):
    table.put(b"row-%d" % number, {b"f:q": b"%d" % number})
rows = [(b"row-%d" % number, {b"f:q": b"%d" % number}) for number in range(10)]

def arm(*faults):
    body = json.dumps({"faults": faults}).encode()
    return json.load(urllib.request.urlopen("http://%s/test/faults" % http, body))["faults"]

def armed():
    return json.load(urllib.request.urlopen("http://%s/test/faults" % http))["faults"]

def fails(call, *kinds):
    try:
        call()
    except kinds as error:
        return error
    raise AssertionError("it did not fail")

def text(error):
    # Some versions of thriftpy2 leave text as bytes.
    return error.message if isinstance(error.message, str) else error.message.decode()

# A busy or moved region: an application that tries again succeeds.
for fault, name in [("region_too_busy", "RegionTooBusyException"), ("not_serving_region", "NotServingRegionException")]:
    # A put of HappyBase is a call of mutateRows.
    arm({"method": "Multi", "fault": fault, "calls": 2, "table": "t"}, {"method": "scannerGetList", "fault": fault, "calls": 1})
    for _ in range(2):
        error = fails(lambda: table.put(b"new", {b"f:q": b"1"}), HBaseError)
        assert text(error).startswith("org.apache.hadoop.hbase." + name), error
    assert table.row(b"new") == {}
    assert name in text(fails(lambda: list(table.scan()), HBaseError))
    assert list(table.scan()) == rows
    assert armed() == []

# A connection that is lost, with and without the call's effect.
for fault, row in [("drop_connection", {}), ("drop_reply", {b"f:q": b"1"})]:
    arm({"method": "mutateRows", "fault": fault, "calls": 1})
    fails(lambda: table.put(b"new", {b"f:q": b"1"}), TTransportException, OSError)
    connection = happybase.Connection(host, port)
    table = connection.table("t")
    assert table.row(b"new") == row, (fault, table.row(b"new"))
table.delete(b"new")

# Splits and a move in the middle of a scan.
arm({"method": "Scan", "fault": "split", "calls": 2}, {"method": "Scan", "fault": "move", "calls": 1})
assert list(table.scan(batch_size=2)) == rows
assert armed() == []
assert len(table.regions()) == 3, table.regions()
assert list(table.scan(batch_size=2)) == rows
"#;

/// Goal: an application on HappyBase can be tested with a busy region, a lost connection, and a
/// region that is split under its scan.
#[test]
fn happybase_meets_faults_on_demand() {
    let Some(python) = happybase() else { return };
    let below = tempfile::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &[]);
    let (host, port) = (server.thrift.ip().to_string(), server.thrift.port().to_string());
    python
        .run(FAULTS, &[&host, &port, &server.http.to_string()])
        .unwrap_or_else(|error| panic!("{error}"));
    server.stop();
}

const LOGIN: &str = r#"
import base64, ssl, sys, urllib.error, urllib.request
from functools import partial
import happybase, happybase.connection
from thriftpy2.transport import TSSLSocket

host, port, http, ca, certificate = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
plain = happybase.connection.TSocket
happybase.connection.TSocket = partial(TSSLSocket, cafile=ca, certfile=certificate)
connection = happybase.Connection(host, port)
connection.create_table("t", {"f": dict()})
connection.table("t").put(b"r", {b"f:q": b"v"})
assert connection.table("t").row(b"r") == {b"f:q": b"v"}
happybase.connection.TSocket = plain
try:
    happybase.Connection(host, port).table("t").row(b"r")
    raise SystemExit("read without a login")
except Exception as refused:
    assert "Authentication is required" in str(refused), refused

def status(user, password):
    request = urllib.request.Request(f"https://{http}/metrics")
    request.add_header("Authorization", b"Basic " + base64.b64encode(f"{user}:{password}".encode()))
    try:
        return urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca)).status
    except urllib.error.HTTPError as refused:
        return refused.code

assert status("ada", "open sesame") == 200
assert status("ada", "open barley") == 401
assert status("nobody", "open sesame") == 401
print("logged in")
"#;

/// HappyBase logs in with a client certificate by one line, and is refused without it; HTTP asks for a
/// password.
#[test]
fn happybase_logs_in_with_a_certificate() {
    let Some(python) = happybase() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (data, to) = (dir.path().join("data"), dir.path().display().to_string());
    let names = ["certificate", "create", "--name", "localhost,127.0.0.1"];
    administer(&data, &names, "");
    administer(&data, &["user", "create", "ada", "--superuser"], "open sesame\n");
    administer(&data, &["certificate", "client", "ada", "--to", &to], "");
    let server = Server::start(&data, &[]);
    let (port, http) = (server.thrift.port().to_string(), server.http.to_string());
    let ca = data.join("security/ca.crt").display().to_string();
    let own = dir.path().join("client-ada.pem").display().to_string();
    let output = python.run(LOGIN, &["127.0.0.1", &port, &http, &ca, &own]);
    assert!(
        output.as_ref().is_ok_and(|text| text.trim() == "logged in"),
        "{}",
        output.unwrap_or_else(|error| error)
    );
    server.stop();
}
