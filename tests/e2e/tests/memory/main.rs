//! Goal: `memory.total_bytes` bounds a server under more load than its memory can hold, and no
//! client locks the others out. Method: writers and scanners at once, with three times as much data
//! as memory; many large replies at once; messages that stop half-way. The first two check the peak
//! resident memory of the process. `bench/hostile_memory.py` does the same for longer, and all at
//! once. `answers`, `writes`, `slow_senders` and `threads` have a kind of load each.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use basalt_client::admin::Admin;
use basalt_client::{Client, Error, ErrorKind, FamilySchema, Get, Put, Scan, Table, TableSchema};
use basalt_test_support::Server;

mod answers;
mod files;
mod raw;
mod slow_senders;
mod threads;
mod writes;

/// One test at a time: beside the load of another one, an honest client may pause for longer than its
/// credit, and its message counts as a slow one, too.
static ALONE: Mutex<()> = Mutex::new(());

const BUDGET_BYTES: u64 = 128 << 20;
/// For the program with its threads, memory that the allocator retains, and calls that were begun
/// when the limits were reached.
const ALLOWANCE_BYTES: u64 = 64 << 20;

const WRITERS: u64 = 6;
const BATCHES: u64 = 160;
const ROWS: u64 = 100;
const VALUE_BYTES: usize = 4 << 10;
const SCANNERS: usize = 4;

fn key(writer: u64, row: u64) -> String {
    format!("{writer}-{row:08}")
}

/// Each row has a value of its own, all of whose bytes differ from the next row's.
fn value(writer: u64, row: u64) -> Vec<u8> {
    vec![(writer * 31 + row) as u8; VALUE_BYTES]
}

/// Writes, and retries refused calls.
async fn write(table: Table, writer: u64) -> Result<(), Error> {
    for batch in 0..BATCHES {
        let rows = batch * ROWS..(batch + 1) * ROWS;
        loop {
            let puts = rows
                .clone()
                .map(|row| Put::new(key(writer, row)).cell("f", "q", value(writer, row)));
            match table.put_multiple(puts).await {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::Retry => tokio::task::yield_now().await,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Reads the whole table in large fetches; begins anew when one is refused.
async fn scan(table: Table) -> Result<u64, Error> {
    let scan = || Scan::new().rows_per_fetch(10_000);
    let mut rows = table.scan(scan())?;
    let mut count = 0;
    loop {
        match rows.next().await {
            Ok(Some(_)) => count += 1,
            Ok(None) => return Ok(count),
            Err(error) if error.kind() == ErrorKind::Retry => {
                rows = table.scan(scan())?;
                count = 0;
            }
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn memory_stays_within_its_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let budget = format!("memory.total_bytes={BUDGET_BYTES}");
    let server = Server::start(&dir.path().join("data"), &[&budget, "wal.sync=os"]);
    let address = server.thrift.to_string();
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    runtime.block_on(async {
        let client = Client::connect(&address).await.expect("the server is there");
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new("f"));
        client.create_table(schema).await.expect("created");
        let table = client.table("t").expect("a name");
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(table.clone(), writer)))
            .collect();
        let mut scanners = Vec::new();
        for _ in 0..SCANNERS {
            // On its own connection: a scanner belongs to the one that opened it.
            let client = Client::connect(&address).await.expect("the server is there");
            scanners.push(tokio::spawn(scan(client.table("t").expect("a name"))));
        }
        for writer in writers {
            writer.await.expect("no panic").expect("written");
        }
        for scanner in scanners {
            scanner.await.expect("no panic").expect("read");
        }
        assert_eq!(scan(table.clone()).await.expect("read"), WRITERS * BATCHES * ROWS);
        for writer in 0..WRITERS {
            let row = BATCHES * ROWS - 1;
            let found = table.get(Get::new(key(writer, row))).await.expect("read");
            let found = found.expect("the last row is there");
            assert_eq!(found.value("f", "q").expect("written")[..], value(writer, row));
        }
    });
    let peak = server.peak_resident_bytes();
    println!(
        "peak {} MiB of a budget of {} MiB",
        peak >> 20,
        BUDGET_BYTES >> 20
    );
    assert!(
        peak <= BUDGET_BYTES + ALLOWANCE_BYTES,
        "{peak} bytes of a budget of {BUDGET_BYTES} and {ALLOWANCE_BYTES}"
    );
    // Connections release their memory when they end.
    drop(runtime);
    let deadline = Instant::now() + Duration::from_mins(1);
    while server.metric("basalt_request_memory_bytes") > 0 {
        assert!(Instant::now() < deadline, "calls that are over still hold memory");
        std::thread::yield_now();
    }
    server.stop();
}

/// Starts a server with a budget of [`BUDGET_BYTES`], and creates table `t`.
async fn start(dir: &std::path::Path) -> (Server, Client) {
    let budget = format!("memory.total_bytes={BUDGET_BYTES}");
    let server = Server::start(&dir.join("data"), &[&budget, "wal.sync=os"]);
    let client = Client::connect(&server.thrift.to_string())
        .await
        .expect("the server is there");
    let schema = TableSchema::new("t")
        .expect("a name")
        .family(FamilySchema::new("f"));
    client.create_table(schema).await.expect("created");
    (server, client)
}

const CELL_BYTES: usize = 2 << 20;
/// Cells of the large row, which exceeds `row.max_bytes`. A row of two cells does not.
const CELLS: usize = 10;
const READERS: usize = 16;

/// Writes a row of large cells, one put each, and retries refused puts.
async fn put_row(table: &Table, row: &str, cells: usize) {
    for cell in 0..cells {
        let put = || Put::new(row).cell("f", format!("q{cell}"), vec![b'v'; CELL_BYTES]);
        while let Err(error) = table.put(put()).await {
            assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
        }
    }
}

/// Counts of calls by their outcome. A refused call is retried, so it also counts as served or too
/// large.
#[derive(Debug, Default)]
struct Ends {
    served: usize,
    too_large: usize,
    refused: usize,
}

impl Ends {
    fn count(&mut self, (end, refused): (Result<usize, Error>, usize)) {
        self.refused += refused;
        match end {
            Ok(bytes) => {
                assert_eq!(bytes, 2 * CELL_BYTES);
                self.served += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("row.max_bytes"), "{error}");
                self.too_large += 1;
            }
        }
    }
}

/// Retries [`read_row`] until it is not refused. Returns its result and the number of refusals.
async fn read_until_answered(
    address: String,
    row: &'static str,
    scans: bool,
) -> (Result<usize, Error>, usize) {
    let mut refused = 0;
    loop {
        match read_row(address.clone(), row, scans).await {
            Err(error) if error.to_string().contains("RegionTooBusyException") => {
                assert!(error.to_string().contains("requests.memory_bytes"), "{error}");
                refused += 1;
                // As long as HBase's clients pause before a retry (`hbase.client.pause`).
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            end => return (end, refused),
        }
    }
}

/// Reads a row with a get or a scan over its own connection. Returns the bytes of its first two
/// values.
async fn read_row(address: String, row: &'static str, scans: bool) -> Result<usize, Error> {
    let client = Client::connect(&address).await?;
    let table = client.table("t").expect("a name");
    let found = if scans {
        let scan = Scan::new().start_row(row).limit(1);
        table.scan(scan)?.next().await?
    } else {
        table.get(Get::new(row)).await?
    };
    let found = found.expect("the row is there");
    Ok((0..2)
        .filter_map(|cell| found.value("f", format!("q{cell}")))
        .map(bytes::Bytes::len)
        .sum())
}

/// Many clients at once read a row of 4 MiB and a row that is too large, with gets and with scans,
/// from memory and from disk.
#[test]
fn large_rows_asked_for_at_once_stay_within_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    let server = runtime.block_on(async {
        let (server, client) = start(dir.path()).await;
        let table = client.table("t").expect("a name");
        put_row(&table, "fits", 2).await;
        put_row(&table, "large", CELLS).await;
        for flushed in [false, true] {
            if flushed {
                Admin::new(&client).flush("t").await.expect("flushed");
            }
            for scans in [false, true] {
                let readers: Vec<_> = (0..READERS)
                    .map(|number| {
                        let row = if number % 2 == 0 { "fits" } else { "large" };
                        tokio::spawn(read_until_answered(server.thrift.to_string(), row, scans))
                    })
                    .collect();
                let mut ends = Ends::default();
                for reader in readers {
                    ends.count(reader.await.expect("no panic"));
                }
                println!("flushed {flushed}, scans {scans}: {ends:?}");
                assert_eq!(
                    (ends.served, ends.too_large),
                    (READERS / 2, READERS / 2),
                    "{ends:?}"
                );
            }
        }
        assert_eq!(
            read_row(server.thrift.to_string(), "fits", true)
                .await
                .expect("read"),
            2 * CELL_BYTES
        );
        server
    });
    let peak = server.peak_resident_bytes();
    assert!(
        peak <= BUDGET_BYTES + ALLOWANCE_BYTES,
        "{peak} bytes of a budget of {BUDGET_BYTES}"
    );
    server.stop();
}

/// Sends nearly all of a large put, waits until the server closes the connection, pauses, and begins
/// again.
///
/// Pauses of different lengths keep senders apart.
fn send_halves(address: SocketAddr, pause: Duration, stop: &AtomicBool) {
    const CLAIMED: u32 = 6 << 20;
    let mut head = CLAIMED.to_be_bytes().to_vec();
    head.extend_from_slice(&[0x80, 1, 0, 1, 0, 0, 0, 3]);
    head.extend_from_slice(b"put\0\0\0\x01\x0b\0\x01");
    head.extend_from_slice(&(CLAIMED - 1000).to_be_bytes());
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut socket) = TcpStream::connect(address) else {
            continue;
        };
        let wait = Some(Duration::from_millis(100));
        socket.set_read_timeout(wait).expect("a socket");
        let sent = socket
            .write_all(&head)
            .and_then(|()| socket.write_all(&vec![b'x'; CLAIMED as usize - 100_000]));
        // Waits for a reply, for the end of the connection, or for the end of the test.
        while sent.is_ok() && !stop.load(Ordering::Relaxed) {
            match socket.read(&mut [0; 512]) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                _ => break,
            }
        }
        // A client that reconnects at once competes for the memory that its connection has just
        // released, so it pauses first.
        std::thread::park_timeout(pause);
    }
}

/// Twelve connections each send nearly all of a message, together more than the memory for requests. Other
/// clients are served.
#[test]
fn messages_that_stop_half_way_lock_nobody_out() {
    serve_beside_halves(12, false);
}

/// Goal: a client whose message stops half-way loses its connection when others need the memory. Three of four
/// messages have room. More senders that begin together have a share of the memory each, wait for more
/// together, and may be refused together before one of them is slow.
#[test]
fn a_slow_client_is_dropped_when_others_need_its_memory() {
    serve_beside_halves(4, true);
}

/// Makes ten rounds of calls beside this many senders of halves, and with `until_dropped` as many as it takes
/// until the server has dropped one of them.
fn serve_beside_halves(senders: u32, until_dropped: bool) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    let (server, client) = runtime.block_on(start(dir.path()));
    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (1..=senders)
        .map(|sender| {
            let (address, stop) = (server.thrift, Arc::clone(&stop));
            let pause = Duration::from_millis(100) * sender;
            std::thread::spawn(move || send_halves(address, pause, &stop))
        })
        .collect();
    // Wait until the unfinished messages hold half of the memory for requests.
    let limit = server.metric("basalt_request_memory_limit_bytes");
    let deadline = Instant::now() + Duration::from_mins(1);
    while server.metric("basalt_request_memory_bytes") < limit / 2 {
        assert!(Instant::now() < deadline, "the senders have not begun");
    }
    runtime.block_on(async {
        let table = client.table("t").expect("a name");
        let (mut calls, mut refused) = (0, 0);
        let has_dropped = || server.metric("basalt_refused_calls_total{reason=\"slow\"}") > 0;
        while calls < 10 || (until_dropped && !has_dropped()) {
            assert!(
                Instant::now() < deadline,
                "{calls} rounds in a minute, {refused} puts refused"
            );
            // A small call needs no memory that the senders hold. A large call may be refused until
            // the server closes a slow connection, so it is retried.
            table.get(Get::new("small")).await.expect("not refused");
            let put = || Put::new("r").cell("f", "q", vec![b'v'; 1 << 20]);
            while let Err(error) = table.put(put()).await {
                assert!(error.to_string().contains("requests.memory_bytes"), "{error}");
                assert!(
                    Instant::now() < deadline,
                    "{calls} rounds in a minute, {refused} puts refused"
                );
                refused += 1;
            }
            let found = loop {
                match table.get(Get::new("r")).await {
                    Err(error) if error.to_string().contains("requests.memory_bytes") => refused += 1,
                    found => break found.expect("read"),
                }
                assert!(
                    Instant::now() < deadline,
                    "{calls} rounds in a minute, {refused} calls refused"
                );
            };
            assert_eq!(
                found.expect("written").value("f", "q").expect("written").len(),
                1 << 20
            );
            calls += 1;
        }
        println!("{calls} rounds, {refused} calls refused and made again");
    });
    stop.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.join().expect("no panic");
    }
    server.stop();
}
