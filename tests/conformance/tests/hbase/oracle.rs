//! The oracle itself: that HBase starts, serves both APIs, obeys the control channel, and never
//! outlives its parent process. Not run without Java, Maven or the jars.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use basalt_client::{Client, Delete, FamilySchema, Get, Namespace, Put, Scan, TableSchema};
use basalt_idl::call::{Call, read_reply, write_call};
use basalt_idl::thrift1;
use basalt_idl::wire::{BinaryReader, BinaryWriter, MessageScanner, Protocol, Scan as Progress};
use basalt_test_support::Oracle;

#[test]
fn hbase_serves_both_apis_and_obeys() {
    let Some(mut oracle) = Oracle::start() else { return };
    let version = oracle.version().expect("an answer");
    assert!(version.starts_with("2.6."), "{version}");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = runtime
        .block_on(Client::connect(&oracle.thrift2.to_string()))
        .expect("a connection");
    runtime.block_on(fill(&client));
    let mut names = call(oracle.thrift1, &thrift1::args::GetTableNames {});
    names.sort();
    assert_eq!(names, ["n:u", "t"]);

    // A value that is older than a tombstone stays hidden until a major compaction has dropped the tombstone:
    // that the value shows proves both the flush and the compaction.
    let old = || Put::new("row-5").cell_at("f", "q", 5, "older");
    let get = || Get::new("row-5").column("f", "q");
    let table = client.table("t").expect("a name");
    let written = runtime.block_on(async {
        table.delete(Delete::columns("row-5").column("f", "q")).await?;
        table.put(old()).await?;
        table.get(get()).await
    });
    assert_eq!(written.expect("written"), None);
    oracle.flush("t").expect("flushed");
    oracle.compact("t").expect("compacted");
    oracle.major_compact("t").expect("compacted");
    let read = runtime.block_on(async {
        table.put(old()).await?;
        table.get(get()).await
    });
    let row = read.expect("read").expect("shown again");
    assert_eq!(row.value("f", "q").expect("shown again"), "older");

    oracle.split("t", b"row-5").expect("split");
    oracle.split("t", b"row-7").expect("a daughter splits, too");
    let (regions, rows) = runtime.block_on(async {
        let mut rows = 0;
        let mut scan = table.scan(Scan::new()).expect("a scan");
        while scan.next().await.expect("no error").is_some() {
            rows += 1;
        }
        (table.regions().await.expect("regions").len(), rows)
    });
    assert_eq!((regions, rows), (3, 10));

    let error = oracle.flush("absent").expect_err("no such table");
    assert!(error.contains("TableNotFoundException"), "{error}");
    oracle.drop_all().expect("dropped");
    assert!(call(oracle.thrift1, &thrift1::args::GetTableNames {}).is_empty());
    let namespaces = runtime.block_on(client.list_namespaces()).expect("listed");
    assert_eq!(namespaces, ["default", "hbase"]);
}

/// A table of ten rows, and one in a namespace that is disabled.
async fn fill(client: &Client) {
    let schema = |name: &str| {
        let schema = TableSchema::new(name).expect("a name");
        schema.family(FamilySchema::new("f"))
    };
    client.create_table(schema("t")).await.expect("a table");
    let namespace = Namespace {
        name: "n".into(),
        configuration: [].into(),
    };
    client.create_namespace(namespace).await.expect("a namespace");
    client.create_table(schema("n:u")).await.expect("a table");
    client.disable_table("n:u").await.expect("disabled");
    let table = client.table("t").expect("a name");
    let put = |row: usize| Put::new(format!("row-{row}")).cell("f", "q", "value");
    table.put_multiple((0..10).map(put)).await.expect("written");
    let row = table
        .get(Get::new("row-3"))
        .await
        .expect("read")
        .expect("written");
    assert_eq!(row.value("f", "q").expect("written"), "value");
}

/// One call of Thrift 1 on a connection of its own: binary, not framed.
fn call<C: Call>(address: SocketAddr, args: &C) -> C::Success
where
    C::Exception: std::fmt::Debug,
{
    let mut socket = TcpStream::connect(address).expect("the port is open");
    let mut message = Vec::new();
    write_call(&mut BinaryWriter::new(&mut message), 1, args);
    socket.write_all(&message).expect("sent");
    let mut scanner = MessageScanner::new(Protocol::BinaryStrict, 1 << 20);
    let mut received = Vec::new();
    let mut some = [0; 4096];
    loop {
        let count = socket.read(&mut some).expect("an answer");
        assert!(count > 0, "closed before the answer was whole");
        received.extend_from_slice(&some[..count]);
        if let Progress::Complete { .. } = scanner.feed(&received).expect("well-formed") {
            let reply = read_reply::<C, _>(&mut BinaryReader::new(received.into()), 1);
            return reply.expect("well-formed").expect("no exception");
        }
    }
}

/// When the process that started it is killed, HBase ends and its data is deleted.
#[test]
fn hbase_ends_with_its_parent() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let mut parent = Command::new(env!("CARGO_BIN_EXE_hbase-oracle"))
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let output = BufReader::new(parent.stdout.take().expect("standard output is piped"));
    let mut address = None;
    for line in output.lines().map_while(Result::ok) {
        if let Some(why) = line.strip_prefix("not run: ") {
            println!("not run: {why}");
            parent.wait().expect("started here");
            return;
        }
        if let Some((_, text)) = line.split_once("(THBaseService) on ") {
            address = Some(text.to_owned());
            break;
        }
    }
    let mut socket = TcpStream::connect(address.expect("an address")).expect("it serves");
    assert_eq!(folders(temporary.path()), 1);
    parent.kill().expect("it runs");
    parent.wait().expect("started here");
    socket
        .set_read_timeout(Some(Duration::from_mins(1)))
        .expect("a socket has timeouts");
    // The data is deleted before the process ends, and its end closes the socket.
    match socket.read(&mut [0; 1]) {
        Ok(count) => assert_eq!(count, 0, "nothing was asked"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    assert_eq!(folders(temporary.path()), 0, "the data is left");
}

fn folders(path: &std::path::Path) -> usize {
    std::fs::read_dir(path).expect("a folder").count()
}
