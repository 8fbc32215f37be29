//! Goal: a limit of open files that falls below what is in use refuses calls, and ends nothing. Method:
//! the soft limit of a running server leaves it 0 to 12 more descriptors while rows are written over many
//! rolls of the log, flushed and compacted; then the limit is lifted.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use basalt_client::admin::{Admin, Compaction};
use basalt_client::{Client, FamilySchema, Get, Put, Table, TableSchema};
use basalt_test_support::{Server, until};

use crate::ALONE;

/// Descriptors that the server may open besides those that it has.
const FREE: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 12];
const BATCHES: usize = 24;
const ROWS: usize = 100;
const VALUE_BYTES: usize = 1_000;
/// A call that needs a new connection is not answered while none is accepted.
const PATIENCE: Duration = Duration::from_secs(3);

/// Descriptors that suffice for all work of the test.
const ENOUGH: u64 = 1_000;

fn limit_files(server: &Server, soft: u64) {
    let set = Command::new("prlimit")
        .args([&format!("--pid={}", server.pid()), &format!("--nofile={soft}:")])
        .status()
        .expect("prlimit is there");
    assert!(set.success(), "{set}");
}

/// The limit that leaves the server this many descriptors that it does not have yet.
fn limit_with(server: &Server, free: usize) -> u64 {
    let used: BTreeSet<u64> = std::fs::read_dir(format!("/proc/{}/fd", server.pid()))
        .expect("the server runs")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let mut unused = (0..).filter(|number| !used.contains(number));
    unused.nth(free).expect("numbers do not end")
}

fn puts(batch: usize) -> impl Iterator<Item = Put> {
    (0..ROWS).map(move |row| {
        Put::new(format!("{batch:03}-{row:05}")).cell("f", "q", vec![(batch * 7 + row) as u8; VALUE_BYTES])
    })
}

/// Writes, flushes and compacts; the batches that were acknowledged.
async fn work(table: &Table, admin: &Admin, first: usize) -> Vec<usize> {
    let mut acknowledged = Vec::new();
    for batch in first..first + BATCHES {
        let written = tokio::time::timeout(PATIENCE, table.put_multiple(puts(batch))).await;
        if matches!(written, Ok(Ok(()))) {
            acknowledged.push(batch);
        }
        // Refused or not: the rows below tell what was lost.
        if batch % 8 == 7 {
            drop(tokio::time::timeout(PATIENCE, admin.flush("t")).await);
            let whole = Compaction {
                major: true,
                ..Compaction::default()
            };
            drop(tokio::time::timeout(PATIENCE, admin.compact("t", whole)).await);
        }
    }
    acknowledged
}

#[test]
fn a_server_outlives_a_lower_limit_of_open_files() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    runtime.block_on(outlive());
}

async fn outlive() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let settings = ["memstore.flush_bytes=1MiB", "wal.segment_bytes=1MiB"];
    let server = Server::start(dir.path(), &settings);
    let address = server.thrift.to_string();
    let client = Client::connect(&address).await.expect("the server is there");
    let schema = TableSchema::new("t")
        .expect("a name")
        .family(FamilySchema::new("f"));
    client.create_table(schema).await.expect("created");
    let (table, admin) = (client.table("t").expect("a name"), Admin::new(&client));
    let mut refused = 0;
    let mut acknowledged = Vec::new();
    for (number, free) in FREE.into_iter().enumerate() {
        limit_files(&server, limit_with(&server, free));
        let written = work(&table, &admin, number * BATCHES).await;
        refused += BATCHES - written.len();
        acknowledged.extend(written);
        limit_files(&server, ENOUGH);
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Err(error) = table.put_multiple(puts(number * BATCHES)).await {
            assert!(Instant::now() < deadline, "{free} free: {error}");
        }
    }
    assert!(refused > 0, "no limit was reached");
    for batch in acknowledged {
        let gets = (0..ROWS).map(|row| Get::new(format!("{batch:03}-{row:05}")));
        let found = table.get_multiple(gets).await.expect("read");
        assert!(
            found.iter().all(Option::is_some),
            "batch {batch} was acknowledged"
        );
    }
    server.stop();
}

#[test]
fn a_connection_waits_until_there_are_descriptors() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(dir.path(), &[] as &[&str]);
    limit_files(&server, 1);
    // The kernel connects; the answer waits for the server.
    let (address, pid) = (server.thrift.to_string(), server.pid());
    let before = processor_ticks(pid);
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    let refused = runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(1), async {
            let client = Client::connect(&address).await?;
            client.table("t")?.get(Get::new("r")).await
        })
        .await
    });
    assert!(!matches!(refused, Ok(Ok(_))), "{refused:?} without descriptors");
    let spent = processor_ticks(pid) - before;
    assert!(
        spent < 50,
        "{spent} hundredths of a second while a connection waited"
    );
    limit_files(&server, ENOUGH);
    until("a connection is served", || {
        server.http_get("/metrics").contains("basalt_")
    });
    let log = server.stop_and_log();
    assert!(log.contains("accepting a connection failed"), "{log}");
}

/// Processor time of a process, in hundredths of a second.
fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server runs");
    let (_, behind_name) = stat.rsplit_once(')').expect("a name in brackets");
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum()
}
