//! Goal: `memory.total_bytes` bounds a server that is given more work than fits. Method: writers and scanners at once, three times as
//! much data as there is memory, and a look at the most memory that the process ever had.

use std::time::{Duration, Instant};

use basalt_client::{Client, Error, ErrorKind, FamilySchema, Get, Put, Scan, Table, TableSchema};
use basalt_tests::Server;

const BUDGET_BYTES: u64 = 128 << 20;
/// For the program with its threads, what the allocator keeps, and calls that were begun when the limits were reached.
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

/// Writes, and tries again what is refused.
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
    let dir = tempfile::tempdir().expect("a temporary folder");
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
            // Of its own connection: a scanner belongs to the one that opened it.
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
    // Connections give back what they hold when they end.
    drop(runtime);
    let deadline = Instant::now() + Duration::from_mins(1);
    while server.metric("basalt_request_memory_bytes") > 0 {
        assert!(Instant::now() < deadline, "calls that are over still hold memory");
        std::thread::yield_now();
    }
    server.stop();
}
