//! HappyBase, unmodified from PyPI, in all transports and protocols it has, across a kill -9, and with
//! certificates and passwords.

use std::net::{IpAddr, UdpSocket};

use basalt_test_support::{Server, administer, happybase};

const TOUR: &str = include_str!("../python/tour.py");

/// Goal: HappyBase code can be pointed at Basalt. The tour creates, writes, reads, scans with
/// filters, counts, deletes, and meets the errors.
#[test]
fn happybase_works_in_every_transport_and_protocol() {
    let Some(python) = happybase() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
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
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
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
    let below = basalt_test_support::tempdir().expect("a temporary folder");
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
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
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

const PASSWORD: &str = r#"
import sys
from functools import partial
import happybase, happybase.connection
from thriftpy2.transport import TSaslClientTransport, TSocket, TSSLSocket

class Plain:
    """What TSaslClientTransport wants of a SASL library."""
    def __init__(self, user, password):
        self.message = f"\0{user}\0{password}".encode()
    def start(self, mechanism):
        return True, mechanism, self.message
    def step(self, challenge):
        return True, b""
    def encode(self, data):
        return True, data
    def decode(self, data):
        return True, data
    def getError(self):
        return b"no error"

def connect(host, port, user, password, socket):
    happybase.connection.TSocket = socket
    happybase.connection.THRIFT_TRANSPORTS["sasl"] = partial(wrap, user, password)
    return happybase.Connection(host, port, transport="sasl")

def wrap(user, password, socket):
    return TSaslClientTransport(partial(Plain, user, password), "PLAIN", socket)

def refused(text, *arguments):
    try:
        connect(*arguments).tables()
    except Exception as error:
        assert text in str(error), error
        return
    raise SystemExit("logged in")

loopback, port, address, ca = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
encrypted = partial(TSSLSocket, cafile=ca)
for host in [loopback, address]:
    connection = connect(host, port, "ada", "open sesame", encrypted)
    connection.create_table("t" + host, {"f": dict()})
    connection.table("t" + host).put(b"r", {b"f:q": b"v"})
    assert connection.table("t" + host).row(b"r") == {b"f:q": b"v"}
    refused("authentication failed", host, port, "ada", "open barley", encrypted)
    refused("authentication failed", host, port, "nobody", "open sesame", encrypted)
# In clear, from another address than this machine's own loopback.
refused("accepted inside TLS only", address, port, "ada", "open sesame", TSocket)
print("logged in")
"#;

/// The address of this machine that a packet to elsewhere would have; nothing is sent. `None` on a machine
/// that has no other than loopback.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Goal: HappyBase logs in with a password inside TLS, and is refused in clear from another address (check
/// 31). Method: a server that listens on all addresses, and one of them that is not loopback.
#[test]
fn happybase_logs_in_with_a_password() {
    let Some(python) = happybase() else { return };
    let Some(address) = own_address() else {
        println!("not run: this machine has no address but loopback");
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let names = format!("localhost,127.0.0.1,{address}");
    administer(&data, &["certificate", "create", "--name", &names], "");
    administer(&data, &["user", "create", "ada", "--superuser"], "open sesame\n");
    let settings = ["server.listen=\"0.0.0.0:0\"", "server.plaintext=\"allow\""];
    let server = Server::start_as_set(&data, &settings);
    let ca = data.join("security/ca.crt").display().to_string();
    let port = server.thrift.port().to_string();
    let output = python.run(PASSWORD, &["127.0.0.1", &port, &address.to_string(), &ca]);
    assert!(
        output.as_ref().is_ok_and(|text| text.trim() == "logged in"),
        "{}",
        output.unwrap_or_else(|error| error)
    );
    server.stop();
    let log = std::fs::read_to_string(data.join("security/audit.log")).expect("it is there");
    assert!(log.contains(r#""authentication":"password""#), "{log}");
    assert!(!log.contains("sesame") && !log.contains("barley"), "{log}");
}

const GUESSES: &str = r#"
import base64, ssl, sys, time
from thriftpy2.http import THttpClient

port, ca = sys.argv[1], sys.argv[2]

def status(user, password):
    """The status of a request of thriftpy2's HTTP client, and the seconds until it was there."""
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    client = THttpClient(f"https://127.0.0.1:{port}/thrift1", ssl_context_factory=lambda: ssl.create_default_context(cafile=ca))
    client.setCustomHeaders({"Authorization": "Basic " + login})
    client.open()
    client.write(b"\x80\x01\x00\x01\x00\x00\x00\rgetTableNames\x00\x00\x00\x01\x00")
    began = time.monotonic()
    client.flush()
    return client.code, time.monotonic() - began

code, _ = status("ada", "open sesame")
assert code == 200, code
took = []
for guess in range(8):
    code, seconds = status("ada", f"guess {guess}")
    assert code == 401, code
    took.append(seconds)
# Three are free, then the delay doubles from a tenth of a second.
for guess, least in [(4, 0.2), (5, 0.4), (6, 0.8), (7, 1.6)]:
    assert took[guess] >= least, took
# Other users of this address are not delayed.
code, seconds = status("bob", "guess")
assert code == 401 and seconds < took[7], (code, seconds)
code, _ = status("ada", "open sesame")
assert code == 200, code
print("guessed")
"#;

/// Goal: each wrong password over HTTP is refused later than the one before (check 32; the delays of twenty
/// are in the tests of `Security`, with a clock that does not run).
#[test]
fn guessed_passwords_are_refused_later_and_later() {
    let Some(python) = happybase() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let names = ["certificate", "create", "--name", "localhost,127.0.0.1"];
    administer(&data, &names, "");
    administer(&data, &["user", "create", "ada", "--superuser"], "open sesame\n");
    administer(&data, &["user", "create", "bob"], "swordfish\n");
    let server = Server::start(&data, &[]);
    let ca = data.join("security/ca.crt").display().to_string();
    let output = python.run(GUESSES, &[&server.http.port().to_string(), &ca]);
    assert!(
        output.as_ref().is_ok_and(|text| text.trim() == "guessed"),
        "{}",
        output.unwrap_or_else(|error| error)
    );
    server.stop();
}
