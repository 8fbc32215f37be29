//! Thrift calls over the HTTP port, and its other answers.

use basalt_idl::wire::{BinaryReader, BinaryWriter, MessageKind, Reader, Writer};
use basalt_idl::{
    CallError, TApplicationException, TApplicationExceptionType, admin, call, thrift1, thrift2,
};
use basalt_test_support::Server;

mod client;
mod guard;
mod heat;
mod operator;
mod pages;
mod profile;
mod rows;
mod truth;

use client::{Http, request};
use rows::{bytes, create, put_rows};

fn is_unknown_method<E: std::error::Error>(error: &CallError<E>) -> bool {
    let unknown = Some(TApplicationExceptionType::UNKNOWN_METHOD);
    matches!(error, CallError::Application(exception) if exception.kind == unknown)
}

/// The path says which service is meant, also where names are shared; ours answers at both. At `/` each
/// call says it.
#[test]
fn each_path_is_one_service() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut http = Http::connect(server.http);
    for path in ["/thrift2", "/"] {
        let kind = http.call(path, &thrift2::args::GetThriftServerType {});
        assert_eq!(kind.expect("served"), thrift2::TThriftServerType::TWO);
    }
    let kind = http.call("/thrift1", &thrift1::args::GetThriftServerType {});
    assert_eq!(kind.expect("served"), thrift1::TThriftServerType::ONE);

    http.call("/thrift2", &create("t")).expect("a good table");
    let names = http
        .call("/thrift1", &thrift1::args::GetTableNames {})
        .expect("served");
    assert_eq!(names, [bytes("t")]);
    let disabled = http.call(
        "/thrift1",
        &thrift1::args::IsTableEnabled {
            table_name: Some(bytes("t")),
        },
    );
    assert!(disabled.expect("a shared name, with Thrift 1's argument"));

    let error = http
        .call("/thrift2", &thrift1::args::GetTableNames {})
        .expect_err("of the other");
    assert!(is_unknown_method(&error), "{error}");
    let stranger = thrift2::args::GetTableDescriptors { tables: Vec::new() };
    let error = http.call("/thrift1", &stranger).expect_err("of the other");
    assert!(is_unknown_method(&error), "{error}");
    // Hue speaks Thrift 1 to the URL of HBase's gateway, Java's client Thrift 2.
    let names = http
        .call("/", &thrift1::args::GetTableNames {})
        .expect("Thrift 1");
    assert_eq!(names, [bytes("t")]);
    let stranger = thrift2::args::GetTableDescriptors { tables: Vec::new() };
    http.call("/", &stranger).expect("Thrift 2");
    let shared = http.call(
        "/",
        &thrift1::args::IsTableEnabled {
            table_name: Some(bytes("t")),
        },
    );
    assert!(shared.expect("a shared name, with Thrift 1's argument"));
    let shared = thrift2::args::IsTableEnabled {
        table_name: thrift2::TTableName {
            qualifier: bytes("t"),
            ..thrift2::TTableName::default()
        },
    };
    assert!(http.call("/", &shared).expect("with Thrift 2's argument"));
    for path in ["/thrift1", "/thrift2", "/"] {
        let status = http
            .call(path, &admin::args::BasaltServerStatus {})
            .expect("served");
        assert_eq!(status.tables, 1);
    }
    server.stop();
}

/// The protocol is found from the bytes; an answer in binary is always strict.
#[test]
fn both_protocols_are_found() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut http = Http::connect(server.http);
    http.call_compact("/thrift2", &create("t")).expect("compact");
    http.call("/thrift2", &put_rows("t", 0..3))
        .expect("binary, strict");
    let mut old = Vec::new();
    call::write_call(
        &mut BinaryWriter::new(&mut old),
        7,
        &thrift1::args::GetTableNames {},
    );
    // The old header has no version, and the kind behind the name.
    let name = old.split_off(4);
    let (name, rest) = name.split_at(4 + "getTableNames".len());
    let old = [name, &[MessageKind::Call as u8], rest].concat();
    let answer = http.thrift("/thrift1", &old);
    let names = call::read_reply::<thrift1::args::GetTableNames, _>(&mut BinaryReader::new(answer), 7);
    assert_eq!(names.expect("well-formed").expect("served"), [bytes("t")]);
    assert!(server.metric("basalt_requests_total{api=\"thrift1\",method=\"getTableNames\"}") == 1);
    assert!(server.metric("basalt_received_bytes_total") > 100);
    assert!(server.metric("basalt_sent_bytes_total") > 50);
    server.stop();
}

/// A scanner opened over HTTP goes on over any HTTP connection, and over none of the main port's.
#[test]
fn a_scanner_outlives_the_connection_that_opened_it() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["scanner.max_http_sessions=2"]);
    let fresh = || Http::connect(server.http);
    fresh().call("/thrift2", &create("t")).expect("a good table");
    fresh()
        .call("/thrift2", &put_rows("t", 0..10))
        .expect("good puts");
    let open = thrift2::args::OpenScanner {
        table: bytes("t"),
        tscan: thrift2::TScan::default(),
    };
    let scanner_id = fresh().call("/thrift2", &open).expect("a scanner");
    let fetch = |num_rows| thrift2::args::GetScannerRows { scanner_id, num_rows };
    for _ in 0..2 {
        assert_eq!(fresh().call("/thrift2", &fetch(4)).expect("its rows").len(), 4);
    }

    // The main port: another owner.
    let mut socket = std::net::TcpStream::connect(server.thrift).expect("the main port is open");
    let mut message = Vec::new();
    call::write_call(&mut BinaryWriter::new(&mut message), 7, &fetch(4));
    std::io::Write::write_all(&mut socket, &message).expect("the server reads");
    socket
        .shutdown(std::net::Shutdown::Write)
        .expect("no more to say");
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut socket, &mut answer).expect("the server answers");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("Invalid scanner Id"), "{answer}");

    // The limit of all HTTP callers together, and the place that a close gives back.
    let second = fresh().call("/thrift2", &open).expect("a second");
    let error = fresh().call("/thrift2", &open).expect_err("a third").to_string();
    assert!(error.contains("scanner.max_http_sessions is 2"), "{error}");
    assert_eq!(server.metric("basalt_scanner_sessions "), 2);
    for scanner_id in [second, scanner_id] {
        fresh()
            .call("/thrift2", &thrift2::args::CloseScanner { scanner_id })
            .expect("closed");
    }
    assert_eq!(server.metric("basalt_scanner_sessions "), 0);
    fresh().call("/thrift2", &fetch(4)).expect_err("closed");
    server.stop();
}

/// A request that is no call gets an HTTP status and a text; the server goes on.
#[test]
fn errors_of_http_say_what_is_wrong() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let settings = ["server.max_message_bytes=4096", "server.message_timeout_ms=1000"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let fresh = || Http::connect(server.http);
    let mut message = Vec::new();
    call::write_call(
        &mut BinaryWriter::new(&mut message),
        7,
        &thrift1::args::GetTableNames {},
    );

    for (method, path, allow) in [
        ("GET", "/thrift1", "POST"),
        ("PUT", "/thrift2", "POST"),
        ("OPTIONS", "/thrift2", "POST"),
        ("DELETE", "/", "GET,HEAD,POST"),
        ("POST", "/metrics", "GET,HEAD"),
    ] {
        let answer = fresh().ask(method, path, "", b"");
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some(allow)),
            "{method} {path}"
        );
        assert!(answer.text().contains(path), "{}", answer.text());
    }
    assert_eq!(fresh().ask("POST", "/thrift3", "", &message).status, 404);

    let frame = [&(message.len() as u32).to_be_bytes()[..], &message].concat();
    for (body, word) in [
        (&b""[..], "0 bytes"),
        (b"hello, is anybody there?", "68, 65, 6c, 6c, 6f"),
        (b"{\"method\": \"get\"}", "no Thrift message"),
        (&frame, "not framed"),
    ] {
        let answer = fresh().ask("POST", "/thrift1", "", body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(word), "{}", answer.text());
    }

    let answer = fresh().ask("POST", "/thrift1", "Origin: http://example.org\r\n", &message);
    assert_eq!(answer.status, 403, "{}", answer.text());
    let answer = fresh().ask("POST", "/thrift1", "doAs: somebody\r\n", &message);
    assert_eq!(answer.status, 403, "{}", answer.text());

    // Too large: said before it is sent, sent at once, and without a length.
    let mut http = fresh();
    http.send(b"POST /thrift1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 67108864\r\n\r\n");
    let answer = http.answer().expect("an answer before the body");
    assert_eq!(answer.status, 413);
    assert!(
        answer.text().contains("server.max_message_bytes, 4096"),
        "{}",
        answer.text()
    );
    message.resize(5000, 0);
    assert_eq!(fresh().ask("POST", "/thrift1", "", &message).status, 413);
    let mut http = fresh();
    http.send(b"POST /thrift1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    http.send(&[&b"1388\r\n"[..], &message, b"\r\n0\r\n\r\n"].concat());
    assert_eq!(http.answer().expect("an answer").status, 413);
    let answer = fresh().ask(
        "GET",
        "/healthz",
        &format!("Cookie: {}\r\n", "x".repeat(70_000)),
        b"",
    );
    assert_eq!(answer.status, 431);

    // A body that stops, and a head that stops.
    let mut http = fresh();
    http.send(b"POST /thrift1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n\x80\x01");
    let answer = http.answer().expect("an answer");
    assert_eq!(answer.status, 408);
    assert!(
        answer.text().contains("server.message_timeout_ms"),
        "{}",
        answer.text()
    );
    let mut http = fresh();
    http.send(b"POST /thrift1 HTTP/1.1\r\nHo");
    assert!(http.answer().is_none(), "closed");

    // Four bad bodies, one `doAs`, three bodies that are too large, and the body that stops. The
    // request from another origin is refused before it counts.
    assert_eq!(server.metric("basalt_protocol_errors_total"), 9);
    server.stop();
}

/// A message with a header is answered in Thrift, whatever is wrong with the rest.
#[test]
fn errors_of_thrift_are_answered_in_thrift() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut http = Http::connect(server.http);
    let mut message = Vec::new();
    call::write_call(&mut BinaryWriter::new(&mut message), 9, &create("t"));
    let mut reply = Vec::new();
    let mut writer = BinaryWriter::new(&mut reply);
    writer.message_begin("get", MessageKind::Reply, 9);
    writer.struct_begin();
    writer.struct_end();
    for (body, kind) in [
        (
            &message[..message.len() - 5],
            TApplicationExceptionType::PROTOCOL_ERROR,
        ),
        (&reply[..], TApplicationExceptionType::INVALID_MESSAGE_TYPE),
    ] {
        let mut reader = BinaryReader::new(http.thrift("/thrift2", body));
        let header = reader.message_begin().expect("a header");
        assert_eq!((header.kind, header.seqid), (MessageKind::Exception, 9));
        let exception = basalt_idl::Decode::decode(&mut reader);
        let exception: TApplicationException = exception.expect("an exception");
        assert_eq!(exception.kind, Some(kind), "{exception:?}");
    }
    server.stop();
}

/// Requests sent together are answered in order, and the connection goes on.
#[test]
fn requests_may_be_pipelined() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut http = Http::connect(server.http);
    let mut together = Vec::new();
    for seqid in 0..50 {
        let mut message = Vec::new();
        call::write_call(
            &mut BinaryWriter::new(&mut message),
            seqid,
            &thrift1::args::GetTableNames {},
        );
        together.extend_from_slice(&request("POST", "/thrift1", "", &message));
    }
    http.send(&together);
    for seqid in 0..50 {
        let answer = http.answer().expect("an answer to each");
        let header = BinaryReader::new(answer.body.into())
            .message_begin()
            .expect("a header");
        assert_eq!(header.seqid, seqid);
    }
    http.call("/thrift1", &thrift1::args::GetTableNames {})
        .expect("served");
    server.stop();
}

/// Beyond the limit a connection is closed at once; an end of another makes room.
#[test]
fn connections_are_limited() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["http.max_connections=2"]);
    let mut first = Http::connect(server.http);
    assert_eq!(first.ask("GET", "/healthz", "", b"").status, 200);
    let mut second = Http::connect(server.http);
    assert_eq!(second.ask("GET", "/healthz", "", b"").status, 200);
    assert!(Http::connect(server.http).answer().is_none(), "closed at once");
    drop(second);
    // The server sees the end at its own time.
    let page = loop {
        let mut third = Http::connect(server.http);
        third.send(&request("GET", "/metrics", "", b""));
        if let Some(answer) = third.answer() {
            break answer.text();
        }
    };
    assert!(page.contains("basalt_http_connections 2"), "{page}");
    assert!(
        !page.contains("basalt_http_connections_rejected_total 0"),
        "{page}"
    );
    server.stop();
}

/// A connection that waits for its next request is closed after `server.idle_timeout_ms` only, which has no
/// bound by default.
#[test]
fn idle_connections_live_as_long_as_configured() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["server.idle_timeout_ms=300"]);
    let mut fresh = Http::connect(server.http);
    assert!(fresh.answer().is_none(), "closed without a word");
    let mut used = Http::connect(server.http);
    assert_eq!(used.ask("GET", "/healthz", "", b"").status, 200);
    assert!(used.answer().is_none(), "closed without a word");
    server.stop();
}
