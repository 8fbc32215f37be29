//! Goal: a client whose protocol the server does not allow gets an error that it can read. Method:
//! each setting, each wire format, real bytes.

use std::io::{Read, Write};

use basalt_idl::TApplicationExceptionType;
use basalt_idl::thrift1::args::GetTableNames;
use basalt_idl::wire::{MessageKind, Protocol};
use basalt_test_support::Server;

use super::bad_messages::written;
use super::speech::{Answer, Client, PROTOCOLS, SOCKETS, Transport};

/// Every speech that the setting does not name gets an exception in its own form, for its own call, and the
/// end; it is counted.
#[test]
fn a_pinned_setting_is_explained_to_those_it_refuses() {
    for (setting, kind) in [
        (
            "thrift.protocol=binary",
            TApplicationExceptionType::INVALID_PROTOCOL,
        ),
        (
            "thrift.protocol=compact",
            TApplicationExceptionType::INVALID_PROTOCOL,
        ),
        (
            "thrift.transport=framed",
            TApplicationExceptionType::UNSUPPORTED_CLIENT_TYPE,
        ),
        (
            "thrift.transport=unframed",
            TApplicationExceptionType::UNSUPPORTED_CLIENT_TYPE,
        ),
    ] {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let server = Server::start(&dir.path().join("data"), &[setting]);
        let mut refused = 0;
        for protocol in PROTOCOLS {
            for transport in SOCKETS {
                let is_allowed = match setting {
                    "thrift.protocol=binary" => protocol != Protocol::Compact,
                    "thrift.protocol=compact" => protocol == Protocol::Compact,
                    "thrift.transport=framed" => transport == Transport::Framed,
                    _ => transport == Transport::Unframed,
                };
                let mut client = Client::connect(&server, protocol, transport);
                if is_allowed {
                    client.call(&GetTableNames {}).expect("served");
                    continue;
                }
                // A large message: the refusal must arrive although the client goes on sending.
                let mut message = written(protocol, 77, &GetTableNames {});
                message.resize(1 << 20, 0);
                client.send(&message);
                let (header, exception) = client.exception();
                assert_eq!((header.name(), header.seqid), ("getTableNames", 77));
                assert_eq!(
                    (header.kind, exception.kind),
                    (MessageKind::Exception, Some(kind))
                );
                let text = exception.message.unwrap_or_default();
                let (name, value) = setting.split_once('=').expect("a setting");
                assert!(text.contains(&format!("{name} is \"{value}\"")), "{text}");
                assert_eq!(client.answer(), Answer::End);
                refused += 1;
            }
        }
        assert_eq!(server.metric("basalt_protocol_errors_total"), refused);
        // HTTP is not the main port's.
        for protocol in PROTOCOLS {
            let mut client = Client::connect(&server, protocol, Transport::Http);
            client
                .call(&basalt_idl::thrift2::args::GetClusterId {})
                .expect("served");
        }
        server.stop();
    }
}

/// Clients that do not speak Thrift get an answer in their own protocol, if it has one.
#[test]
fn foreign_protocols_are_answered_in_their_own_words() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["rest.enabled=false"]);
    let told = |bytes: &[u8]| {
        let mut socket = std::net::TcpStream::connect(server.thrift).expect("the port is open");
        socket.write_all(bytes).expect("the server reads");
        let mut answer = Vec::new();
        socket
            .read_to_end(&mut answer)
            .expect("the server closes in order");
        answer
    };
    let http = String::from_utf8(told(
        b"POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\n\r\nhello",
    ))
    .expect("text");
    assert!(
        http.starts_with("HTTP/1.1 400") && http.contains("/thrift2"),
        "{http}"
    );
    let hello = b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03";
    assert_eq!(
        told(hello),
        [21, 3, 1, 0, 2, 2, 40],
        "a TLS alert: handshake failure"
    );
    let sasl = told(b"\x01\x00\x00\x00\x05PLAIN\x05\x00\x00\x00\x03\x00a\x00");
    let text = String::from_utf8_lossy(&sasl[5..]);
    assert_eq!(
        (sasl[0], u32::from_be_bytes([sasl[1], sasl[2], sasl[3], sasl[4]])),
        (4, text.len() as u32)
    );
    assert!(text.contains("SASL is not configured"), "{text}");
    assert_eq!(server.metric("basalt_protocol_errors_total"), 3);
    server.stop();
}

/// The log names the protocol of clients of other protocols in one line with the remedy, also
/// for typed text. If the protocol has a form for an error, the client receives the same message.
#[test]
fn foreign_protocols_are_named_in_the_log() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["rest.enabled=false"]);
    let told = |address: std::net::SocketAddr, bytes: &[u8]| {
        let mut socket = std::net::TcpStream::connect(address).expect("the port is open");
        socket.write_all(bytes).expect("the server reads");
        let mut answer = Vec::new();
        socket
            .read_to_end(&mut answer)
            .expect("the server closes in order");
        String::from_utf8_lossy(&answer).into_owned()
    };
    let foreign: [(&[u8], &str, &str); 7] = [
        (
            b"*1\r\n$4\r\nPING\r\n",
            "-ERR the first bytes are a Redis client's",
            "a Redis client's",
        ),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", "MESSAGE", "a PostgreSQL client's"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "an SSH client's", "an SSH client's"),
        (b"hello\r\n", "basalt-shell", "the first bytes are text"),
        (b"\r\n", "basalt-shell", "the first bytes are text"),
        (
            b"GET / HTTP/1.1\r\nHost: b\r\n\r\n",
            "HTTP/1.1 400",
            "HBase's REST interface is switched off",
        ),
        (
            b"\xff\xff\xff\xff",
            "",
            "are of no protocol of HBase's clients: check",
        ),
    ];
    for (first, reply, _) in foreign {
        let answer = told(server.thrift, first);
        let reply = if reply == "MESSAGE" {
            "SFATAL\0C08P01\0Mthe first bytes"
        } else {
            reply
        };
        assert!(
            answer.contains(reply) && reply.is_empty() == answer.is_empty(),
            "{answer:?}"
        );
    }
    // The HTTP port refuses a Thrift message with a Thrift exception, so that the client's error
    // has the reason. HTTP still works.
    let mut message = Vec::new();
    basalt_idl::call::write_call(
        &mut basalt_idl::wire::BinaryWriter::new(&mut message),
        7,
        &basalt_idl::thrift1::args::GetTableNames {},
    );
    let framed = [&(message.len() as u32).to_be_bytes()[..], &message].concat();
    for sent in [&framed, &message] {
        let answer = told(server.http, sent);
        assert!(
            answer.contains("getTableNames") && answer.contains("this is the HTTP port"),
            "{answer:?}"
        );
    }
    told(server.http, b"HBas\x00\x50");
    assert!(told(server.http, b"no HTTP\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(told(server.http, b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n").ends_with("ok\n"));
    let log = server.stop_and_log();
    for (first, _, named) in foreign {
        let lines = log
            .lines()
            .filter(|line| line.contains("to the main port closed") && line.contains(named));
        assert_eq!(lines.count(), 1, "{}\n{log}", first.escape_ascii());
    }
    for named in ["this is the HTTP port", "HBase's own RPC"] {
        let lines = log
            .lines()
            .filter(|line| line.contains("to the HTTP port closed") && line.contains(named));
        assert_eq!(lines.count(), 1, "{named}\n{log}");
    }
}
