//! Connections to the cluster that are cut while calls run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use basalt_client::{Check, Get, counter_from_value};
use basalt_test_support::{Server, until};

use super::proxy::Proxy;
use super::{client, create_table, exception, gateway, put, wait};

/// A cluster that is reached through a proxy alone, and a gateway to it.
fn behind_proxy(settings: &[&str]) -> (Server, Server, Proxy, tempfile::TempDir) {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let proxy = Proxy::start();
    let advertise = format!("server.advertise=\"{}\"", proxy.address);
    let cluster = Server::start(&dir.path().join("cluster"), &[&advertise]);
    proxy.set_target(cluster.thrift);
    create_table(proxy.address);
    let gateway = gateway(dir.path(), proxy.address, settings);
    (gateway, cluster, proxy, dir)
}

/// Check 33: counters stay exact while connections to the cluster are cut: a repetition of the gateway
/// carries the nonce of the first attempt. Method: after every few increments either all connections are cut,
/// or the cluster's next bytes are lost with their connection.
#[test]
fn check_33_increments_are_applied_once_though_connections_are_cut() {
    const CLIENTS: u64 = 4;
    const INCREMENTS: u64 = 100;
    const BETWEEN_CUTS: u64 = 8;
    let (gateway, cluster, proxy, _dir) = behind_proxy(&[]);
    let made = Arc::new(AtomicU64::new(0));
    wait(async {
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..CLIENTS {
            let table = client(gateway.thrift).table("t").unwrap();
            let made = Arc::clone(&made);
            clients.spawn(async move {
                for _ in 0..INCREMENTS {
                    table
                        .increment_column("counter", "f", "c", 1)
                        .await
                        .expect("an increment");
                    made.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut cut_at = 0;
        while !clients.is_empty() {
            let now = made.load(Ordering::SeqCst);
            if now >= cut_at + BETWEEN_CUTS {
                cut_at = now;
                if (now / BETWEEN_CUTS).is_multiple_of(2) {
                    proxy.cut();
                } else {
                    proxy.swallow_next();
                }
            }
            let poll = tokio::time::timeout(Duration::from_millis(1), clients.join_next());
            if let Ok(Some(ended)) = poll.await {
                ended.expect("no panics");
            }
        }
    });
    assert!(gateway.metric("basalt_cluster_connections_lost_total") > 10);
    assert!(gateway.metric("basalt_cluster_repetitions_total") > 10);
    let sum = wait(async {
        let table = client(cluster.thrift).table("t").unwrap();
        let row = table.get(Get::new("counter")).await.unwrap().unwrap();
        counter_from_value(row.value("f", "c").unwrap()).unwrap()
    });
    assert_eq!(sum.unsigned_abs(), CLIENTS * INCREMENTS);
}

/// Goal: a conditional write whose answer is lost is sent once, and its exception says that the outcome is
/// unknown. Method: the next bytes of the cluster are lost. They may be the answer to another call: then the
/// next row is tried.
#[test]
fn a_conditional_write_is_sent_once() {
    let (gateway, cluster, proxy, _dir) = behind_proxy(&[]);
    wait(async {
        let table = client(gateway.thrift).table("t").unwrap();
        for attempt in 0..50 {
            let row = format!("r{attempt}");
            // The locations and the connection are there.
            assert!(table.get(Get::new(row.clone())).await.unwrap().is_none());
            proxy.swallow_next();
            let absent = || Check::absent("f", "q");
            let Err(error) = table.check_and_put(absent(), put(&row, "first")).await else {
                continue;
            };
            let (text, can_retry) = exception(error);
            assert!(text.contains("the outcome is unknown") && !can_retry, "{text}");
            assert!(proxy.has_swallowed());
            let there = client(cluster.thrift).table("t").unwrap();
            if there.get(Get::new(row.clone())).await.unwrap().is_none() {
                // The connection was cut for another answer, before the write had arrived.
                continue;
            }
            assert!(!table.check_and_put(absent(), put(&row, "second")).await.unwrap());
            return;
        }
        panic!("no answer to a conditional write was lost");
    });
}

/// Goal: reads and plain writes go on over cut connections without an error.
#[test]
fn reads_and_writes_go_on() {
    let (gateway, _cluster, proxy, _dir) = behind_proxy(&[]);
    wait(async {
        let table = client(gateway.thrift).table("t").unwrap();
        for number in 0..30 {
            proxy.cut();
            let row = format!("row-{number}");
            table.put(put(&row, "v")).await.expect("a put");
            proxy.swallow_next();
            assert!(table.get(Get::new(row)).await.expect("a get").is_some());
        }
    });
    until("the gateway is ready", || {
        gateway.http_get("/readyz") == "ready\n"
    });
}
