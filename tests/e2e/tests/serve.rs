//! The server as a process, and input that no well-behaved client sends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_idl::wire::{BinaryReader, BinaryWriter, MessageKind, Reader};
use basalt_idl::{Call, CallError, Decode, TApplicationException, call, thrift1, thrift2};
use basalt_test_support::Server;
use bytes::Bytes;

/// A client that sends given messages, framed binary, and reads one answer for each.
struct Wire(TcpStream);

impl Wire {
    fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the main port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        Self(socket)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server reads");
    }

    /// The body of the next frame; `None` when the server has closed the connection.
    fn frame(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).expect("a frame is whole");
        Some(body.into())
    }

    fn call<C: Call>(&mut self, args: &C) -> Result<C::Success, CallError<C::Exception>> {
        let mut message = Vec::new();
        call::write_call(&mut BinaryWriter::new(&mut message), 7, args);
        self.send(&framed(&message));
        let answer = self.frame().expect("the server answers");
        call::read_reply::<C, _>(&mut BinaryReader::new(answer), 7).expect("the answer is well-formed")
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = (message.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    frame
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn name(table: &str) -> thrift2::TTableName {
    thrift2::TTableName {
        ns: None,
        qualifier: bytes(table),
    }
}

fn create(wire: &mut Wire, table: &str) -> Result<(), CallError<thrift2::THBaseException>> {
    let family = thrift2::TColumnFamilyDescriptor {
        name: bytes("f"),
        ..Default::default()
    };
    let desc = thrift2::TTableDescriptor {
        table_name: name(table),
        columns: Some(vec![family]),
        ..Default::default()
    };
    wire.call(&thrift2::args::CreateTable {
        desc,
        split_keys: None,
    })
}

fn put(
    wire: &mut Wire,
    row: &[u8],
    family: &str,
    value: Vec<u8>,
    timestamp: Option<i64>,
) -> Result<(), String> {
    let value = thrift2::TColumnValue {
        family: bytes(family),
        qualifier: bytes("q"),
        value: value.into(),
        timestamp,
        ..Default::default()
    };
    let tput = thrift2::TPut {
        row: Bytes::copy_from_slice(row),
        column_values: vec![value],
        ..Default::default()
    };
    wire.call(&thrift2::args::Put {
        table: bytes("t"),
        tput,
    })
    .map_err(|error| match error {
        CallError::Declared(thrift2::THBaseException::Io(io)) => {
            assert_eq!(io.can_retry, Some(false), "{io:?}");
            io.message.unwrap_or_default()
        }
        other => panic!("not the declared exception: {other}"),
    })
}

fn rows(wire: &mut Wire) -> usize {
    let tscan = thrift2::TScan::default();
    let scan = thrift2::args::GetScannerResults {
        table: bytes("t"),
        tscan,
        num_rows: 100,
    };
    wire.call(&scan).expect("the table can be read").len()
}

/// Bad requests get an error that names the thing and the limit; stored data is unchanged and the
/// connection goes on.
#[test]
fn bad_requests_are_refused_by_name() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut wire = Wire::connect(server.thrift);
    create(&mut wire, "t").expect("a good table");
    put(&mut wire, b"good", "f", b"v".to_vec(), None).expect("a good put");

    let refused = |result: Result<(), String>, words: &[&str]| {
        let text = result.expect_err("this must be refused");
        for word in words {
            assert!(text.contains(word), "{text:?} does not say {word:?}");
        }
    };
    let error = create(&mut wire, "a/b").expect_err("a slash is no part of a name");
    assert!(error.to_string().contains('/'), "{error}");
    refused(
        put(&mut wire, &vec![b'r'; 40_000], "f", b"v".to_vec(), None),
        &["40000", "32767"],
    );
    refused(put(&mut wire, b"", "f", b"v".to_vec(), None), &["empty"]);
    refused(
        put(&mut wire, b"big", "f", vec![0; 20_000_000], None),
        &["20000", "10485760"],
    );
    refused(
        put(&mut wire, b"r", "nofamily", b"v".to_vec(), None),
        &["nofamily", "t"],
    );
    refused(
        put(&mut wire, b"r", "f", b"v".to_vec(), Some(-5)),
        &["negative", "-5"],
    );

    let tget = thrift2::TGet {
        row: bytes("good"),
        filter_string: Some(bytes("Nonsense(")),
        ..Default::default()
    };
    let error = wire
        .call(&thrift2::args::Get {
            table: bytes("t"),
            tget,
        })
        .expect_err("a bad filter string");
    assert!(error.to_string().to_lowercase().contains("position"), "{error}");

    assert_eq!(rows(&mut wire), 1, "only the good row is there");
    server.stop();
}

/// A scanner belongs to the connection that opened it.
#[test]
fn somebody_elses_scanner_cannot_be_read_or_closed() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let (mut owner, mut other) = (Wire::connect(server.thrift), Wire::connect(server.thrift));
    create(&mut owner, "t").expect("a good table");
    put(&mut owner, b"r", "f", b"v".to_vec(), None).expect("a good put");
    let tscan = thrift2::TScan::default();
    let scanner_id = owner
        .call(&thrift2::args::OpenScanner {
            table: bytes("t"),
            tscan,
        })
        .expect("a scanner");
    let fetch = thrift2::args::GetScannerRows {
        scanner_id,
        num_rows: 5,
    };

    let error = other.call(&fetch).expect_err("not the owner");
    assert!(
        matches!(
            error,
            CallError::Declared(thrift2::THBaseException::IllegalArgument(_))
        ),
        "{error}"
    );
    other
        .call(&thrift2::args::CloseScanner { scanner_id })
        .expect("closing an unknown id is no error in Thrift 2");
    other
        .call(&thrift1::args::ScannerClose { id: Some(scanner_id) })
        .expect_err("but it is in Thrift 1");
    assert_eq!(
        owner
            .call(&fetch)
            .expect("the owner's scanner is untouched")
            .len(),
        1
    );
    assert!(owner.call(&fetch).expect("the end is an empty list").is_empty());
    owner
        .call(&thrift2::args::CloseScanner { scanner_id })
        .expect("closed");
    owner.call(&fetch).expect_err("closed");
}

/// Bytes that are no message, messages that stop in the middle, lengths that lie: the server closes that
/// connection, says why where it can, and serves on.
#[test]
fn strange_bytes_end_only_their_own_connection() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let settings = [
        "server.message_timeout_ms=500",
        "server.max_message_bytes=1048576",
    ];
    let server = Server::start(&dir.path().join("data"), &settings);
    let mut healthy = Wire::connect(server.thrift);
    create(&mut healthy, "t").expect("a good table");

    let ends = |bytes: &[u8]| {
        let mut wire = Wire::connect(server.thrift);
        wire.send(bytes);
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = wire.0.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    };
    ends(b"\xde\xad\xbe\xef random bytes that are no message at all");
    ends(b"SSH-2.0-OpenSSH_9.2\r\n");
    ends(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    let page = ends(b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 421"), "{page}");

    // A frame that claims 16 MiB, with a header that can be answered.
    let mut claim = (16_u32 << 20).to_be_bytes().to_vec();
    let mut header = Vec::new();
    basalt_idl::wire::Writer::message_begin(&mut BinaryWriter::new(&mut header), "get", MessageKind::Call, 3);
    claim.extend_from_slice(&header);
    let answer = ends(&claim);
    assert!(
        answer.contains("max_message_bytes") && answer.contains("1048576"),
        "{answer:?}"
    );

    // Half a message, and then nothing.
    ends(&framed(&header)[..10]);

    // An unknown method: an error answer, and the connection goes on.
    let mut unknown = Vec::new();
    let mut writer = BinaryWriter::new(&mut unknown);
    basalt_idl::wire::Writer::message_begin(&mut writer, "noSuchMethod", MessageKind::Call, 9);
    basalt_idl::wire::Writer::struct_begin(&mut writer);
    basalt_idl::wire::Writer::struct_end(&mut writer);
    healthy.send(&framed(&unknown));
    let mut reader = BinaryReader::new(healthy.frame().expect("an answer"));
    let header = reader.message_begin().expect("a header");
    assert_eq!((header.kind, header.seqid), (MessageKind::Exception, 9));
    let exception = TApplicationException::decode(&mut reader).expect("an exception");
    assert_eq!(
        exception.message.as_deref(),
        Some("Invalid method name: 'noSuchMethod'")
    );

    assert_eq!(
        rows(&mut healthy),
        0,
        "the healthy connection is served all the while"
    );
    server.stop();
}

/// Both services answer on one connection; the shared call `getThriftServerType` follows the last
/// call of the connection.
#[test]
fn both_services_share_the_port() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut wire = Wire::connect(server.thrift);
    let kind = wire.call(&thrift2::args::GetThriftServerType {}).expect("served");
    assert_eq!(kind, thrift2::TThriftServerType::TWO, "the default");
    assert!(
        wire.call(&thrift1::args::GetTableNames {})
            .expect("served")
            .is_empty()
    );
    let kind = wire.call(&thrift1::args::GetThriftServerType {}).expect("served");
    assert_eq!(kind, thrift1::TThriftServerType::ONE);
    server.stop();
}

#[test]
fn a_second_server_on_one_directory_is_refused() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let first = Server::start(&data, &[]);
    let output = Server::try_start(&data, &[]).expect_err("the directory is in use");
    assert!(output.contains("in use"), "{output}");
    first.stop();
    Server::start(&data, &[]).stop();
}

#[test]
fn bad_settings_are_refused_by_name() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    for (setting, word) in [
        ("wal.sink=fsync", "sink"),
        ("wal.sync=maybe", "maybe"),
        ("memstore.flush_bytes=1", "memstore.flush_bytes"),
    ] {
        let output = Server::try_start(&dir.path().join("data"), &[setting]).expect_err("a bad setting");
        assert!(output.contains(word), "{setting}: {output}");
    }
    let output = std::process::Command::new(basalt_test_support::binary("basalt"))
        .args(["--thrift-listen", "0.0.0.0:0", "--data-dir"])
        .arg(dir.path().join("data"))
        .output()
        .expect("the binary was built");
    assert!(
        !output.status.success(),
        "another address than loopback needs the explicit setting"
    );
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("server.insecure"), "{text}");
}

/// The effective configuration is printed, and the HTTP port answers.
#[test]
fn metrics_and_health_are_served() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut wire = Wire::connect(server.thrift);
    create(&mut wire, "t").expect("a good table");
    put(&mut wire, b"r", "f", b"v".to_vec(), None).expect("a good put");
    assert_eq!(server.http_get("/healthz"), "ok\n");
    assert_eq!(server.http_get("/readyz"), "ready\n");
    assert!(server.http_get("/").contains("<h1>Basalt</h1>"));
    let metrics = server.http_get("/metrics");
    for line in [
        "basalt_requests_total{api=\"thrift2\",method=\"put\"} 1",
        "basalt_region_writes_total{table=\"t\"",
        "basalt_wal_appends_total",
        "basalt_wal_sync_duration_seconds_bucket",
        "basalt_block_cache_capacity_bytes",
        "process_resident_memory_bytes",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    server.stop();
}

/// Goal: a client that opens connections and leaves them open stops neither writes nor metrics,
/// although it takes every file descriptor that it can get. Method: a process that may have 512,
/// 600 idle connections, and then writes that need new files.
#[test]
fn idle_connections_leave_descriptors_for_files() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let settings = ["memstore.flush_bytes=1048576", "wal.segment_bytes=1048576"];
    let server = Server::start_with_open_files(&dir.path().join("data"), &settings, 512);
    assert_eq!(server.metric("process_max_fds"), 512);
    let mut wire = Wire::connect(server.thrift);
    create(&mut wire, "t").expect("a good table");

    let mut idle: Vec<TcpStream> = (0..600).map(|_| Wire::connect(server.thrift).0).collect();
    // A connection that was closed at once ends; one that is served says nothing. The last one was too many.
    assert_eq!(idle.pop().expect("one of 600").read(&mut [0]).expect("an end"), 0);
    let refused = server.metric("basalt_connections_rejected_total");
    assert!((152..400).contains(&refused), "{refused}");

    let mebibyte = vec![b'v'; 1 << 20];
    for row in 0..8_u8 {
        put(&mut wire, &[b'0' + row], "f", mebibyte.clone(), None)
            .expect("a write with many idle connections");
    }
    while server.metric("basalt_flushes_total") < 3 {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert_eq!(server.metric("basalt_flush_failures_total"), 0);

    drop(idle);
    // Places come back when the server has seen the ends.
    while server.metric("basalt_connections ") > 1 {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert_eq!(rows(&mut Wire::connect(server.thrift)), 8);
    let log = server.stop_and_log();
    for word in [
        "server.max_connections",
        "share of the limit of open files is reached",
    ] {
        assert!(log.contains(word), "{word} is not in\n{log}");
    }
    let complaints = log.matches("share of the limit of open files is reached").count();
    assert!(complaints < 20, "{complaints} lines for {refused} connections");
}
