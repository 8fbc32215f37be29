//! Calls and scans while regions split, servers restart and replies are lost.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use basalt_client::native::{Cluster, Table};
use basalt_client::{Get, Put, Scan};
use basalt_test_support::Server;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Rig, create, data, fill, keys, options};

const ROWS: usize = 400;

fn row(number: usize) -> String {
    format!("row-{number:03}")
}

/// Reads `rows` rows of a scan whose fetches are small.
async fn read_some(scanner: &mut basalt_client::native::Scanner, rows: usize, found: &mut Vec<String>) {
    while found.len() < rows {
        let batch = scanner.next_batch().await.expect("read").expect("rows");
        found.extend(keys(&batch));
    }
}

async fn read_rest(scanner: &mut basalt_client::native::Scanner, found: &mut Vec<String>) {
    while let Some(batch) = scanner.next_batch().await.expect("read") {
        found.extend(keys(&batch));
    }
}

fn numbers(reversed: bool) -> Vec<String> {
    let mut rows: Vec<String> = (0..ROWS).map(row).collect();
    if reversed {
        rows.reverse();
    }
    rows
}

/// Goal: a split loses and doubles no row of a running scan. Method: during the scan the region being read,
/// one already read and one still to come are split, so that the scanner and the cached regions are all
/// stale.
#[test]
fn a_scan_survives_splits() {
    for reversed in [false, true] {
        let rig = Rig::start();
        let table = rig.table(&["row-100", "row-300"]);
        rig.runtime.block_on(async {
            fill(&table, (0..ROWS).map(row)).await;
            let scan = Scan::new().rows_per_fetch(7).reversed(reversed);
            let mut scanner = table.scanner(scan).expect("a scan");
            let mut found = Vec::new();
            read_some(&mut scanner, 150, &mut found).await;
            for at in ["row-050", "row-200", "row-350"] {
                rig.cluster.split_region("t", at).await.expect("split");
            }
            read_some(&mut scanner, 220, &mut found).await;
            rig.cluster.split_region("t", "row-150").await.expect("split");
            read_rest(&mut scanner, &mut found).await;
            assert_eq!(found, numbers(reversed));
            assert_eq!(table.regions().await.expect("regions").len(), 7);
            let read = table
                .get_multiple((0..ROWS).map(|number| Get::new(row(number))))
                .await
                .expect("read");
            assert!(read.iter().all(Option::is_some));
        });
        rig.server.stop();
    }
}

/// Starts a killed server again on its port. A client sees a move to a server with another start
/// code.
fn start_again(dir: &TempDir, address: SocketAddr) -> Server {
    let listen = format!("server.listen=\"{address}\"");
    Server::start_as_set(&data(dir), &[&listen])
}

#[test]
fn a_scan_and_calls_survive_a_restart() {
    let mut rig = Rig::start();
    let table = rig.table(&["row-100"]);
    let mut found = Vec::new();
    let mut scanner = table.scanner(Scan::new().rows_per_fetch(7)).expect("a scan");
    rig.runtime.block_on(async {
        fill(&table, (0..ROWS).map(row)).await;
        read_some(&mut scanner, 50, &mut found).await;
    });
    let address = rig.server.thrift;
    rig.server.kill();
    rig.server = start_again(&rig.dir, address);
    rig.runtime.block_on(async {
        let table = rig.cluster.table("t").expect("a name");
        table
            .put(Put::new("zzz").cell("f", "q", "v"))
            .await
            .expect("written");
        assert!(table.exists(Get::new("zzz")).await.expect("read"));
        read_rest(&mut scanner, &mut found).await;
        let mut expected = numbers(false);
        expected.push("zzz".to_owned());
        assert_eq!(found, expected);
    });
    drop(scanner);
    rig.server.stop();
}

/// The gets of a batch that are not in memory read their blocks together, and the results are those
/// of single gets. Method: a batch after a restart, in several regions, with rows that are not there.
#[test]
fn a_batch_reads_its_blocks_together() {
    let mut rig = Rig::start();
    let table = rig.table(&["row-300"]);
    rig.runtime.block_on(async {
        let put = |number: usize| Put::new(row(number)).cell("f", "q", vec![number as u8; 3_000]);
        table.put_multiple((0..900).map(put)).await.expect("written");
    });
    let address = rig.server.thrift;
    rig.server.stop();
    rig.server = start_again(&rig.dir, address);
    let numbers: Vec<usize> = (0..100).map(|index| index * 97 % 1_000).collect();
    let read = rig
        .runtime
        .block_on(table.get_multiple(numbers.iter().map(|number| Get::new(row(*number)))))
        .expect("read");
    for (number, found) in numbers.iter().zip(&read) {
        let value = found
            .as_ref()
            .map(|found| found.value("f", "q").expect("a value"));
        let expected = (*number < 900).then(|| vec![*number as u8; 3_000]);
        assert_eq!(value.map(|value| value.to_vec()), expected, "{number}");
    }
    let ahead = rig.server.metric("basalt_blocks_read_ahead_total");
    let misses = rig.server.metric("basalt_block_cache_misses_total");
    assert!(ahead > 20 && misses < ahead + 10, "{ahead} of {misses}");
    rig.server.stop();
}

/// While the server is away, calls wait for it.
#[test]
fn calls_wait_for_a_server_that_is_away() {
    let mut rig = Rig::start_with(|options| options.retries = 60);
    let table = rig.table(&[]);
    let address = rig.server.thrift;
    rig.server.kill();
    let waiting = rig
        .runtime
        .spawn(async move { table.put(Put::new("r").cell("f", "q", "v")).await });
    rig.server = start_again(&rig.dir, address);
    rig.runtime.block_on(async {
        waiting.await.expect("no panic").expect("written");
        let table = rig.cluster.table("t").expect("a name");
        assert!(table.exists(Get::new("r")).await.expect("read"));
    });
    rig.server.stop();
}

/// A proxy that can lose replies: the request passes, then the connection ends.
struct Proxy {
    address: SocketAddr,
    target: Arc<Mutex<Option<SocketAddr>>>,
    loses_next: Arc<AtomicBool>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = Self {
            address: listener.local_addr().expect("it is bound"),
            target: Arc::default(),
            loses_next: Arc::default(),
        };
        let (target, loses_next) = (Arc::clone(&proxy.target), Arc::clone(&proxy.loses_next));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Some(target) = *target.lock().expect("no panics") else {
                    continue;
                };
                let client = client.expect("a connection");
                let server = TcpStream::connect(target).expect("the server listens");
                forward(&client, &server, None);
                forward(&server, &client, Some(Arc::clone(&loses_next)));
            }
        });
        proxy
    }
}

/// Copies bytes in a thread. When `loses` is set, the next bytes end both connections instead.
fn forward(from: &TcpStream, to: &TcpStream, loses: Option<Arc<AtomicBool>>) {
    let (mut from, mut to) = (
        from.try_clone().expect("a socket"),
        to.try_clone().expect("a socket"),
    );
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        loop {
            let read = from.read(&mut buffer).unwrap_or_default();
            let lost = loses
                .as_ref()
                .is_some_and(|loses| loses.swap(false, Ordering::SeqCst));
            if read == 0 || lost || to.write_all(&buffer[..read]).is_err() {
                // Sockets that the other side has closed already cannot be shut down.
                let _ = from.shutdown(std::net::Shutdown::Both);
                let _ = to.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    });
}

/// Goal: an operation whose reply is lost is applied exactly once. Method: the proxy drops the reply after
/// the server has applied it; the client repeats the call with its nonce.
#[test]
fn an_increment_whose_reply_is_lost_counts_once() {
    let proxy = Proxy::start();
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let advertise = format!("server.advertise=\"{}\"", proxy.address);
    let server = Server::start(&data(&dir), &[&advertise]);
    *proxy.target.lock().expect("no panics") = Some(server.thrift);
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let cluster = Cluster::connect(options(&server)).await.expect("a cluster");
        create(&cluster, "t", &[]).await;
        let table: Table = cluster.table("t").expect("a name");
        assert_eq!(
            table.region_of("r").await.expect("a region").port,
            i32::from(proxy.address.port())
        );
        let lose_next = || proxy.loses_next.store(true, Ordering::SeqCst);
        assert_eq!(
            table.increment_column("r", "f", "n", 1).await.expect("counted"),
            1
        );
        for sum in 2..6 {
            lose_next();
            assert_eq!(
                table.increment_column("r", "f", "n", 1).await.expect("counted"),
                sum
            );
        }
        lose_next();
        let append = basalt_client::Append::new("r").column("f", "text", "a");
        table.append(append).await.expect("appended");
        let row = table
            .get(Get::new("r").column("f", "text"))
            .await
            .expect("read")
            .expect("a row");
        assert_eq!(row.value("f", "text").expect("a value"), "a");

        lose_next();
        let check = basalt_client::Check::absent("f", "c");
        let outcome = table
            .check_and_put(check, Put::new("r").cell("f", "c", "v"))
            .await;
        let error = outcome.expect_err("the client cannot know");
        assert_eq!(error.kind(), basalt_client::ErrorKind::Unknown, "{error}");
        assert!(
            table.exists(Get::new("r").column("f", "c")).await.expect("read"),
            "the server applied it"
        );
    });
    server.stop();
}
