//! Connections to the cluster that are cut while calls run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use basalt_client::{Check, Get, counter_from_value};
use basalt_test_support::{Server, until};

use super::proxy::Proxy;
use super::*;

/// A cluster that is reached through a proxy alone, and a gateway to it.
fn behind_proxy(settings: &[&str]) -> (Server, Server, Proxy, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let proxy = Proxy::start();
    let advertise = format!("server.advertise=\"{}\"", proxy.address);
    let cluster = Server::start(&dir.path().join("cluster"), &[&advertise]);
    proxy.set_target(cluster.thrift);
    create_table(proxy.address);
    let gateway = gateway(dir.path(), proxy.address, settings);
    (gateway, cluster, proxy, dir)
}

/// Check 33: counters stay exact while connections to the cluster are cut: a repetition of the gateway carries the nonce
/// of the first attempt.
#[test]
fn check_33_increments_are_applied_once_though_connections_are_cut() {
    const CLIENTS: usize = 4;
    const INCREMENTS: i64 = 200;
    let (gateway, cluster, proxy, _dir) = behind_proxy(&[]);
    let is_done = Arc::new(AtomicBool::new(false));
    let (cuts, cutting) = std::sync::mpsc::channel();
    let cutter = std::thread::spawn({
        let is_done = Arc::clone(&is_done);
        move || {
            // Answers are lost in every other round, requests or connections that wait in the others.
            let mut round = 0;
            while !is_done.load(Ordering::Relaxed) {
                round += 1;
                if round % 2 == 0 {
                    proxy.cut();
                } else {
                    proxy.swallow_next();
                }
                cuts.send(()).expect("the test waits");
                std::thread::park_timeout(Duration::from_millis(60));
            }
        }
    });
    wait(async {
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..CLIENTS {
            let table = client(gateway.thrift).table("t").unwrap();
            clients.spawn(async move {
                for _ in 0..INCREMENTS {
                    table
                        .increment_column("counter", "f", "c", 1)
                        .await
                        .expect("an increment");
                }
            });
        }
        clients.join_all().await;
    });
    is_done.store(true, Ordering::Relaxed);
    cutter.join().expect("no panics");
    assert!(cutting.try_iter().count() > 10, "hardly anything was cut");
    assert!(gateway.metric("basalt_cluster_connections_lost_total") > 5);
    let sum = wait(async {
        let row = client(cluster.thrift)
            .table("t")
            .unwrap()
            .get(Get::new("counter"))
            .await
            .unwrap()
            .unwrap();
        counter_from_value(row.value("f", "c").unwrap()).unwrap()
    });
    assert_eq!(sum, CLIENTS as i64 * INCREMENTS);
}

/// Goal: a conditional write whose answer is lost is sent once, and its exception says that the outcome is unknown.
/// Method: the next bytes of the cluster are lost. They may be the answer to another call: then the next row is tried.
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
