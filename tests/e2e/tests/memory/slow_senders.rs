//! Goal: a message has one deadline from its first byte on, in every protocol. Method: clients that send a
//! byte of a message now and then, for longer than the deadline; the server closes each of them, and
//! a large half of a message is in the memory for calls.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use basalt_test_support::{Server, until};

use crate::ALONE;
use crate::raw::{connect, framed, is_closed, native_calls, zookeeper_session};

const LIMIT: Duration = Duration::from_millis(1_500);
/// Pause between two bytes: shorter than the deadline.
const PAUSE: Duration = Duration::from_millis(200);

struct Sender {
    what: &'static str,
    socket: TcpStream,
    began: Instant,
    closed: Option<Duration>,
}

impl Sender {
    fn new(what: &'static str, address: SocketAddr, first: &[u8]) -> Self {
        let mut socket = connect(address);
        socket.write_all(first).expect("the server reads");
        Self {
            what,
            socket,
            began: Instant::now(),
            closed: None,
        }
    }

    /// Sends one byte more, unless the server has closed the connection.
    fn go_on(&mut self) {
        if self.closed.is_none() && (is_closed(&mut self.socket) || self.socket.write_all(b"x").is_err()) {
            self.closed = Some(self.began.elapsed());
        }
    }
}

fn senders(server: &Server) -> Vec<Sender> {
    let long = 60_000_u32.to_be_bytes();
    let thrift = [&long[..], &[0x80, 1, 0, 1, 0, 0, 0, 3, b'g']].concat();
    let opened = native_calls("ClientService", "Get", &(), 0);
    let in_session = [&zookeeper_session()[..], &long].concat();
    let post = "POST /thrift2 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\n";
    [
        ("a Thrift message", server.thrift, thrift),
        ("a native preamble", server.thrift, b"HBa".to_vec()),
        (
            "a native header",
            server.thrift,
            [b"HBas\0\x50", &long[..]].concat(),
        ),
        ("a native frame", server.thrift, [&opened[..], &long].concat()),
        (
            "a native frame's length",
            server.thrift,
            [&opened[..], &long[..1]].concat(),
        ),
        (
            "a ZooKeeper session",
            server.thrift,
            zookeeper_session()[..20].to_vec(),
        ),
        ("a ZooKeeper packet", server.thrift, in_session),
        ("an HTTP head", server.http, b"GET / HTTP/1.1\r\nX: ".to_vec()),
        ("an HTTP body", server.http, post.as_bytes().to_vec()),
    ]
    .map(|(what, address, first)| Sender::new(what, address, &first))
    .into()
}

#[test]
fn a_message_has_one_deadline_in_every_protocol() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let limit = format!("server.message_timeout_ms={}", LIMIT.as_millis());
    let server = Server::start(&dir.path().join("data"), &[&limit]);
    let mut senders = senders(&server);
    let until = Instant::now() + 8 * LIMIT;
    while senders.iter().any(|sender| sender.closed.is_none()) && Instant::now() < until {
        std::thread::park_timeout(PAUSE);
        senders.iter_mut().for_each(Sender::go_on);
    }
    for Sender { what, closed, .. } in &senders {
        let closed = closed.unwrap_or_else(|| panic!("{what} is awaited for ever"));
        // A byte that no protocol has ends a connection sooner.
        assert!(closed < 3 * LIMIT, "{what} ended after {closed:?}");
    }
    server.stop();
}

/// Bytes of each half message, and the connections that send one.
const HALF: usize = 60 << 10;
const CONNECTIONS: usize = 100;

/// Packets of ZooKeeper and heads of HTTP requests, each nearly complete.
#[test]
fn halves_of_messages_are_in_the_memory_for_calls() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["memory.total_bytes=128MiB"]);
    let packet = [&zookeeper_session()[..], &framed(&vec![0; HALF])[..HALF]].concat();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {}",
        "x".repeat(HALF - 100)
    );
    for (address, message) in [(server.thrift, packet), (server.http, head.into_bytes())] {
        let sockets: Vec<TcpStream> = (0..CONNECTIONS)
            .map(|_| {
                let mut socket = connect(address);
                socket.write_all(&message).expect("the server reads");
                socket
            })
            .collect();
        // All but the free bytes of each.
        let least = (CONNECTIONS * (HALF - (20 << 10))) as u64;
        until("the halves are counted", || {
            server.metric("basalt_request_memory_bytes") >= least
        });
        drop(sockets);
        until("they are released", || {
            server.metric("basalt_request_memory_bytes") < least / 4
        });
    }
    server.stop();
}
