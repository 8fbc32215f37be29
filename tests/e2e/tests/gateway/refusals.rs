//! Settings, calls and clients that a gateway refuses.

use std::io::{Read, Write};
use std::net::TcpStream;

use basalt_client::native::{Cluster, ClusterOptions, Registry};
use basalt_client::{Check, Delete, Get, Increment};
use basalt_test_support::Server;

use super::{Pair, client, create_table, exception, put, wait};

/// Goal: a start that cannot be right ends with a sentence that names the setting and the remedy.
#[test]
fn wrong_starts_say_why() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let refused = |key: &str, settings: &[&str]| {
        let started = Server::try_start_gateway(&dir.path().join("gateway"), key, settings);
        started.map(drop).unwrap_err()
    };
    for (key, settings, texts) in [
        ("", &[][..], ["gateway.cluster", "names no cluster"]),
        ("zk:2181", &[], ["gateway.cluster", "zk:2181"]),
        ("hbase+rpc://a", &[], ["gateway.cluster", "host:port"]),
        (
            "a:1:/hbase",
            &["standby.follow=\"b:1\""],
            ["standby.follow", "no effect on a gateway"],
        ),
        (
            "a:1:/hbase",
            &["memstore.total_bytes=1GiB"],
            ["memstore.total_bytes", "no effect on a gateway"],
        ),
        (
            "a:1:/hbase",
            &["rehearsal.servers=2"],
            ["rehearsal.servers", "no effect on a gateway"],
        ),
        (
            "a:1:/hbase",
            &["gateway.deadline_ms=1"],
            ["gateway.deadline_ms", "at least"],
        ),
    ] {
        let output = refused(key, settings);
        for text in texts {
            assert!(
                output.contains(text),
                "{key} {settings:?}: no {text:?} in\n{output}"
            );
        }
    }
    let output = Server::try_start(&dir.path().join("data"), &["gateway.read_only=true"])
        .map(drop)
        .unwrap_err();
    assert!(
        output.contains("gateway.read_only is a setting of `basalt gateway`"),
        "{output}"
    );
}

/// Goal: tables of a data directory are not hidden by a gateway that is started on it.
#[test]
fn a_directory_with_tables_is_refused() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    create_table(server.thrift);
    server.stop();
    let refused = Server::try_start_gateway(&data, "hbase+rpc://127.0.0.1:1", &[])
        .map(drop)
        .unwrap_err();
    assert!(refused.contains("has tables of its own, t for one"), "{refused}");
    let server = Server::start(&data, &[]);
    server.stop();
}

/// Goal: native clients learn that they go to the cluster themselves. Method: the Rust client and raw bytes;
/// a ZooKeeper client has no text in its protocol, so its connection only ends.
#[test]
fn native_clients_are_refused_with_the_reason() {
    let pair = Pair::start(&[], &[]);
    let registry = Registry::bootstrap(&pair.gateway.thrift.to_string()).expect("an address");
    let error = wait(async {
        let mut options = ClusterOptions::new(registry);
        options.retries = 0;
        Cluster::connect(options).await.map(drop).unwrap_err()
    });
    assert!(
        error.to_string().contains("connect to that cluster themselves"),
        "{error}"
    );
    let mut zookeeper = TcpStream::connect(pair.gateway.thrift).expect("the port is open");
    let connect = b"\0\0\0\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x75\x30\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    zookeeper.write_all(connect).expect("the gateway reads");
    let mut answer = Vec::new();
    zookeeper.read_to_end(&mut answer).expect("an end in order");
    assert!(answer.is_empty(), "{answer:?}");
    let log = pair.gateway.stop_and_log();
    assert!(
        log.contains("has no ZooKeeper: native clients set hbase.zookeeper.quorum"),
        "{log}"
    );
}

/// Goal: a gateway that only reads refuses changes over every protocol, and reads.
#[test]
fn a_gateway_that_only_reads_refuses_changes() {
    let pair = Pair::start(&["gateway.read_only=true"], &[]);
    wait(async {
        let there = client(pair.cluster.thrift).table("t").unwrap();
        there.put(put("r", "v")).await.expect("the cluster takes writes");
        let client = client(pair.gateway.thrift);
        let table = client.table("t").unwrap();
        assert!(table.get(Get::new("r")).await.unwrap().is_some());
        let check = Check::absent("f", "q");
        for (what, outcome) in [
            ("put", table.put(put("r", "w")).await),
            ("delete", table.delete(Delete::row("r")).await),
            (
                "increment",
                table
                    .increment(Increment::new("c").column("f", "c", 1))
                    .await
                    .map(drop),
            ),
            ("check", table.check_and_put(check, put("s", "w")).await.map(drop)),
            ("drop", client.drop_table("t").await),
            ("disable", client.disable_table("t").await),
        ] {
            let (text, can_retry) = exception(outcome.expect_err(what));
            assert!(text.contains("gateway.read_only") && !can_retry, "{what}: {text}");
        }
        assert!(
            there
                .get(Get::new("r"))
                .await
                .unwrap()
                .is_some_and(|row| row.value("f", "q").unwrap() == "v")
        );
    });
    let rest = |head: &str, body: &str| {
        let mut socket = TcpStream::connect(pair.gateway.http).expect("the port is open");
        let length = body.len();
        write!(
            socket,
            "{head} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("the gateway reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let refused = rest("PUT /rest/t/r/f:q", "w");
    assert!(
        refused.contains("gateway.read_only") && !refused.starts_with("HTTP/1.0 200"),
        "{refused}"
    );
    let read = rest("GET /rest/t/r/f:q", "");
    assert!(read.starts_with("HTTP/1.0 200"), "{read}");
    pair.gateway.stop();
}

/// Goal: calls that need tables in this process say that they are elsewhere, and do not answer for an empty
/// server.
#[test]
fn calls_on_tables_of_this_process_are_refused() {
    use basalt_idl::admin::args;
    let pair = Pair::start(&[], &[]);
    let error = wait(client(pair.gateway.thrift).call(&args::BasaltRegionMetrics::default()));
    let text = error.map(drop).unwrap_err().to_string();
    assert!(
        text.contains("the tables of this server are in another cluster"),
        "{text}"
    );
}
