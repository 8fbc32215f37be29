//! Goal: connections that never finish their handshake take little, and harm no other client. Method: every
//! step of every handshake is cut; an address opens as many as it may, and one more.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_test_support::{Server, administer};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use socket2::{Domain, Socket, Type};

/// Connections of an address that have not logged in.
const MAX: usize = 300;
/// Memory of such a connection.
const BYTES_MAX: u64 = if cfg!(debug_assertions) {
    // Tasks of a program without optimisation are larger.
    12 << 10
} else {
    8 << 10
};
/// Room for memory that is not the connections': threads, and what the allocator keeps at hand.
const BESIDE: u64 = 1 << 20;

/// A server whose users must log in, with a certificate.
fn secured(settings: &[&str]) -> (Server, tempfile::TempDir) {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    administer(
        &data,
        &["certificate", "create", "--name", "localhost,127.0.0.1"],
        "",
    );
    administer(&data, &["user", "create", "ada", "--superuser"], "open sesame\n");
    (Server::start(&data, settings), dir)
}

/// A connection from this address of loopback.
fn connect_from(from: &str, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from: SocketAddr = format!("{from}:0").parse().expect("an address");
    socket
        .bind(&from.into())
        .expect("loopback has all of 127.0.0.0/8");
    socket.connect(&to.into()).expect("the port is open");
    let stream = TcpStream::from(socket);
    stream
        .set_read_timeout(Some(Duration::from_mins(1)))
        .expect("a time");
    stream
}

/// The bytes of a message behind its length.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    [&length[..], message].concat()
}

/// A frame of Thrift's SASL.
fn sasl(status: u8, message: &[u8]) -> Vec<u8> {
    [&[status][..], &framed(message)].concat()
}

/// The first message of a TLS client that offers what any has.
fn client_hello() -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    // TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, and no compression.
    body.extend([0, 2, 0xc0, 0x2b, 1, 0]);
    // Groups: secp256r1; point formats: uncompressed; signatures: ECDSA with SHA-256.
    let extensions = [
        &[0, 10, 0, 4, 0, 2, 0, 23][..],
        &[0, 11, 0, 2, 1, 0],
        &[0, 13, 0, 4, 0, 2, 4, 3],
    ]
    .concat();
    body.extend([0, extensions.len() as u8]);
    body.extend(extensions);
    let mut handshake = vec![1, 0, 0, body.len() as u8];
    handshake.extend(body);
    let mut record = vec![22, 3, 1, 0, handshake.len() as u8];
    record.extend(handshake);
    record
}

/// Beginnings of handshakes that are never finished: nothing, one byte, and as much as a step may have but
/// for its last byte.
fn beginnings() -> Vec<Vec<u8>> {
    let long = vec![b'x'; 4096];
    let all_but_one = |bytes: Vec<u8>| bytes[..bytes.len() - 1].to_vec();
    let digest = [&b"HBas\0\x52"[..], &framed(b"")].concat();
    vec![
        Vec::new(),
        b"H".to_vec(),
        all_but_one(client_hello()),
        // The server has answered, and waits for the client's key.
        client_hello(),
        all_but_one([&digest[..], &framed(&long)].concat()),
        all_but_one([&b"HBas\0\x0f"[..], &framed(&long)].concat()),
        all_but_one([&b"HBas\0\x50"[..], &framed(&long)].concat()),
        all_but_one([sasl(1, b"PLAIN"), sasl(2, &long)].concat()),
    ]
}

/// A request for the metrics with a password; the text of the answer.
fn metrics(server: &Server) -> String {
    let mut stream = connect_from("127.0.0.9", server.http);
    let login = BASE64_STANDARD.encode("ada:open sesame");
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {login}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

#[test]
fn an_address_has_so_many_and_they_take_little() {
    let limit = format!("security.unauthenticated_per_address={MAX}");
    let (server, _dir) = secured(&[&limit]);
    let beginnings = beginnings();
    // Threads, and memory that is made with the first use.
    for beginning in &beginnings {
        let mut stream = connect_from("127.0.0.9", server.thrift);
        stream.write_all(beginning).expect("sent");
    }
    metrics(&server);
    let before = server.resident_bytes();
    let mut open = Vec::new();
    for number in 0..MAX {
        let mut stream = connect_from("127.0.0.1", server.thrift);
        stream
            .write_all(&beginnings[number % beginnings.len()])
            .expect("sent");
        open.push(stream);
    }
    // One more is closed at once, and one from another address is served.
    let mut refused = connect_from("127.0.0.1", server.thrift);
    assert_eq!(refused.read(&mut [0]).expect("it ends in order"), 0);
    let text = metrics(&server);
    assert!(
        text.contains("\nbasalt_unauthenticated_rejected_total 1\n"),
        "{text}"
    );
    let grown = server.resident_bytes().saturating_sub(before);
    let most = MAX as u64 * BYTES_MAX + BESIDE;
    assert!(
        grown <= most,
        "{MAX} connections took {grown} bytes; {most} are allowed"
    );
    // A place is free again when one has ended.
    drop(open.pop());
    let has_place = || {
        let mut stream = connect_from("127.0.0.1", server.thrift);
        stream.write_all(b"HBas\0\x50").expect("sent");
        stream.write_all(&framed(b"no header")).is_ok() && stream.read(&mut [0]).is_ok_and(|count| count > 0)
    };
    basalt_test_support::until("a place for another connection", has_place);
    let log = server.stop_and_log();
    assert!(log.contains("security.unauthenticated_per_address"), "{log}");
}

/// Goal: a handshake has a deadline, whatever its step. The silent ones have none: they take a place only.
#[test]
fn handshakes_end_in_time() {
    let (server, _dir) = secured(&["server.message_timeout_ms=500"]);
    let mut open: Vec<TcpStream> = Vec::new();
    for beginning in beginnings().iter().filter(|beginning| !beginning.is_empty()) {
        let mut stream = connect_from("127.0.0.1", server.thrift);
        stream.write_all(beginning).expect("sent");
        open.push(stream);
    }
    for (number, mut stream) in open.into_iter().enumerate() {
        // The server's last words before it closes the connection, which is reset if bytes are unread.
        let ended = stream.read_to_end(&mut Vec::new());
        let is_timeout = ended.as_ref().is_err_and(|error| {
            matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            )
        });
        assert!(!is_timeout, "beginning {number} is still open");
    }
    server.stop();
}

/// Goal: a ClientHello that is cut anywhere ends its connection and nothing else.
#[test]
fn a_client_hello_is_cut_anywhere() {
    let (server, _dir) = secured(&[]);
    let hello = client_hello();
    for length in 1..=hello.len() {
        let mut stream = connect_from("127.0.0.1", server.thrift);
        stream.write_all(&hello[..length]).expect("sent");
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("the connection is open");
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        let is_timeout = ended
            .as_ref()
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!is_timeout, "{length} bytes: still open");
        // Its own first message, once it has all of the client's.
        assert_eq!(
            answer.starts_with(&[22, 3, 3]),
            length == hello.len(),
            "{length} bytes: {answer:02x?}"
        );
    }
    metrics(&server);
    server.stop();
}
