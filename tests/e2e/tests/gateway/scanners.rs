//! Scanners that the gateway opens at the cluster: renewed for slow clients, and closed on every exit.

use std::time::Duration;

use basalt_client::ConnectionOptions;
use basalt_idl::thrift2::{self, TScan, args};
use basalt_test_support::until;
use bytes::Bytes;

use super::{Pair, client, halt, put, wait};

/// Rows of the table.
const ROWS: usize = 40;

fn fill(pair: &Pair) {
    wait(async {
        let table = client(pair.cluster.thrift).table("t").unwrap();
        let puts = (0..ROWS).map(|number| put(&format!("row-{number:03}"), "v"));
        table.put_multiple(puts).await.expect("puts");
    });
}

/// A connection with an open scanner that has returned two rows: the connection and the scanner's id.
async fn scanning(pair: &Pair) -> (basalt_client::Connection, i32) {
    let target = pair.gateway.thrift.to_string();
    let connecting = basalt_client::Connection::open(&target, ConnectionOptions::default());
    let mut connection = connecting.await.expect("a connection");
    let open = args::OpenScanner {
        table: Bytes::from_static(b"t"),
        tscan: TScan {
            caching: Some(2),
            ..TScan::default()
        },
    };
    let id = connection.call(&open).await.expect("a scanner");
    let rows = fetch(&mut connection, id, 2).await;
    assert_eq!(rows.len(), 2);
    (connection, id)
}

async fn fetch(connection: &mut basalt_client::Connection, id: i32, rows: i32) -> Vec<thrift2::TResult> {
    let next = args::GetScannerRows {
        scanner_id: id,
        num_rows: rows,
    };
    connection.call(&next).await.expect("rows")
}

const OPEN: &str = "basalt_scanner_sessions ";

/// Check 32: a scanner whose client is slow lives on: its lease at the cluster is renewed, so that no other
/// scanner is opened.
#[test]
fn check_32_a_slow_client_keeps_its_scanner() {
    let pair = Pair::start(&["scanner.lease_ms=1000"], &["scanner.lease_ms=3000"]);
    fill(&pair);
    wait(async {
        let (mut connection, id) = scanning(&pair).await;
        let opened = pair.of_cluster("basalt_scanner_sessions_opened_total");
        // A renewal comes after a third of the lease: these take longer than one.
        let renewed = || pair.gateway.metric("basalt_cluster_lease_renewals_total") >= 5;
        until("the lease was renewed often", renewed);
        let mut rows = 2;
        loop {
            let next = fetch(&mut connection, id, 5).await;
            if next.is_empty() {
                break;
            }
            rows += next.len();
        }
        assert_eq!(rows, ROWS);
        assert_eq!(pair.of_cluster("basalt_scanner_sessions_opened_total"), opened);
        assert_eq!(pair.of_cluster("basalt_scanner_sessions_expired_total"), 0);
    });
}

/// Goal: no scanner is left at the cluster when its client closes it, goes, or the gateway stops.
#[test]
fn scanners_are_closed_on_every_exit() {
    let pair = Pair::start(&[], &[]);
    fill(&pair);
    let none_is_left = |pair: &Pair| until("no scanner is left", || pair.of_cluster(OPEN) == 0);
    wait(async {
        let (mut connection, id) = scanning(&pair).await;
        assert_eq!(pair.of_cluster(OPEN), 1);
        let close = args::CloseScanner { scanner_id: id };
        connection.call(&close).await.expect("it is closed");
        none_is_left(&pair);

        let (connection, _) = scanning(&pair).await;
        assert_eq!(pair.of_cluster(OPEN), 1);
        drop(connection);
        none_is_left(&pair);

        let (connection, _) = scanning(&pair).await;
        assert_eq!(pair.of_cluster(OPEN), 1);
        let Pair {
            gateway,
            cluster,
            dir,
        } = pair;
        // The connection lives until the gateway ends it.
        gateway.stop();
        until("no scanner is left", || cluster.metric(OPEN) == 0);
        drop((connection, cluster, dir));
    });
}

/// Goal: a scan that finds nothing for long ends with its client. Method: a filter that matches no row, and
/// the cluster stopped while it works, so that the client leaves during the fetch.
#[test]
fn a_fetch_ends_with_its_client() {
    use basalt_test_support::signal;
    let pair = Pair::start(&[], &[]);
    fill(&pair);
    wait(async {
        let (mut connection, id) = scanning(&pair).await;
        halt(&pair.cluster);
        let next = fetch(&mut connection, id, 20);
        assert!(
            tokio::time::timeout(Duration::from_millis(300), next)
                .await
                .is_err()
        );
        drop(connection);
        until("the gateway has seen that it has gone", || {
            pair.gateway.metric("basalt_connections ") == 0
        });
        signal(pair.cluster.pid(), "CONT");
    });
    until("no scanner is left", || pair.of_cluster(OPEN) == 0);
}
