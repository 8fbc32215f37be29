//! The cluster is away, comes, goes, comes back, and is silent.

use std::time::{Duration, Instant};

use basalt_client::{Get, Scan};
use basalt_test_support::{Server, free_address, signal, until};

use super::{Pair, client, create_table, exception, gateway, halt, put, wait};

/// Check 32, beside another Basalt: a gateway starts while the cluster is away, serves when it has come, says
/// so at once when it is killed, and goes on when it is back. It is never restarted.
#[test]
fn check_32_the_cluster_comes_and_goes() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let address = free_address();
    let listen = format!("server.listen=\"{address}\"");
    let start = || {
        let ports = [listen.as_str(), "http.listen=\"127.0.0.1:0\""];
        Server::start_as_set(&dir.path().join("cluster"), &ports)
    };
    let gateway = gateway(dir.path(), address, &[]);
    let fails_at_once = |when: &str| {
        let began = Instant::now();
        let outcome = wait(client(gateway.thrift).table("t").unwrap().get(Get::new("r")));
        let (text, can_retry) = exception(outcome.map(drop).expect_err("nobody can answer"));
        assert!(
            text.contains("the cluster does not answer") && can_retry,
            "{when}: {text}"
        );
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{when}: {:?}",
            began.elapsed()
        );
        let listed = wait(client(gateway.thrift).list_tables(None));
        let (text, can_retry) = exception(listed.map(drop).expect_err("nobody can answer"));
        assert!(
            text.contains("the cluster does not answer") && can_retry,
            "{when}: {text}"
        );
        until("the gateway is not ready", || {
            let text = gateway.http_get("/readyz");
            text.starts_with("not ready: hbase:meta does not answer") && text.contains(&address.to_string())
        });
    };
    fails_at_once("at the start");
    let mut cluster = start();
    create_table(address);
    for round in 0..2 {
        until("the gateway is ready", || {
            gateway.http_get("/readyz") == "ready\n"
        });
        wait(async {
            let table = client(gateway.thrift).table("t").unwrap();
            let row = format!("row-{round}");
            table.put(put(&row, "v")).await.expect("a put");
            assert_eq!(
                table.scan(Scan::new()).unwrap().collect().await.unwrap().len(),
                round + 1
            );
        });
        cluster.kill();
        fails_at_once("after the kill");
        cluster = start();
    }
    until("the gateway is ready", || {
        gateway.http_get("/readyz") == "ready\n"
    });
    gateway.stop();
    cluster.stop();
}

/// Goal: calls to a cluster that is silent end with the deadline, take no threads while they wait, and leave
/// room for others. Method: SIGSTOP, and several hundred calls at a time.
#[test]
fn a_silent_cluster_costs_time_and_no_threads() {
    const CALLS: usize = 300;
    let pair = Pair::start(&["gateway.deadline_ms=4000"], &[]);
    let warm = wait(client(pair.gateway.thrift).table("t").unwrap().put(put("r", "v")));
    warm.expect("a put");
    let before = pair.gateway.threads();
    halt(&pair.cluster);
    let began = Instant::now();
    let threads = wait(async {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..CALLS {
            // A connection each.
            let client = client(pair.gateway.thrift);
            calls.spawn(async move {
                let outcome = client.table("t").unwrap().get(Get::new("r")).await;
                exception(outcome.map(drop).expect_err("nobody answers"))
            });
        }
        let mut threads = 0;
        while let Some(ended) = calls.join_next().await {
            threads = threads.max(pair.gateway.threads());
            let (text, can_retry) = ended.expect("no panics");
            let is_of_time = text.contains("took longer") || text.contains("nothing was received");
            assert!(is_of_time && can_retry, "{text}");
        }
        threads
    });
    let took = began.elapsed();
    signal(pair.cluster.pid(), "CONT");
    assert!(took < Duration::from_secs(25), "{took:?}");
    assert!(threads < before + 40, "{threads} threads, {before} before");
    until("the gateway is ready", || {
        pair.gateway.http_get("/readyz") == "ready\n"
    });
    wait(client(pair.gateway.thrift).table("t").unwrap().get(Get::new("r")))
        .expect("an answer")
        .expect("the row");
}
