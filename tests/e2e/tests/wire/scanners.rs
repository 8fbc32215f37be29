//! Goal: no path leaks a scanner, and a scan that finds nothing delays no other call. Method: each
//! way a call can end badly, against the metrics of the server.

use std::io::ErrorKind;

use basalt_idl::Call;
use basalt_idl::thrift1::args::{ScannerClose, ScannerGet, ScannerOpen};
use basalt_idl::thrift2::args::{CloseScanner, GetScannerResults, GetScannerRows, Increment, OpenScanner};
use basalt_idl::thrift2::{TColumnIncrement, TIncrement, TScan};
use basalt_idl::wire::Protocol;
use basalt_test_support::{Server, until};

use super::bad_messages::written;
use super::rows::{bytes, create, put_rows};
use super::speech::{Client, Transport};

/// More than the server has threads for work that blocks (256).
const SCANS: usize = 300;
/// Number of rows with which looking for [`nothing`] takes far longer than everything else in a
/// test.
const ROWS: usize = 50_000;

fn start(settings: &[&str]) -> (tempfile::TempDir, Server) {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), settings);
    (dir, server)
}

fn connect(server: &Server, transport: Transport) -> Client {
    Client::connect(server, Protocol::BinaryStrict, transport)
}

fn open(table: &str, tscan: TScan) -> OpenScanner {
    OpenScanner {
        table: bytes(table),
        tscan,
    }
}

/// A scan that lets nothing through, and takes some time for it.
fn nothing() -> TScan {
    let filters: Vec<String> = (0..500)
        .map(|number| format!("RowFilter(=, 'substring:nothing {number}')"))
        .collect();
    TScan {
        filter_string: Some(bytes(&filters.join(" OR "))),
        ..TScan::default()
    }
}

fn open_scanners(server: &Server) -> u64 {
    server.metric("basalt_scanner_sessions ")
}

/// A call that must fail with these words in its exception.
fn refused<C: Call>(client: &mut Client, args: &C, words: &str)
where
    C::Success: std::fmt::Debug,
{
    let error = client.call(args).expect_err("must be refused").to_string();
    assert!(error.contains(words), "{error}");
}

fn fill(server: &Server, table: &str) {
    let mut client = connect(server, Transport::Framed);
    client.call(&create(table)).expect("a good table");
    for first in (0..ROWS).step_by(25_000) {
        client
            .call(&put_rows(table, first..first + 25_000))
            .expect("good puts");
    }
}

/// An open that fails takes no session; a fetch that fails leaves its session as it was.
#[test]
fn calls_that_fail_leak_no_scanner() {
    let (_dir, server) = start(&[]);
    for transport in [Transport::Framed, Transport::Http] {
        let table = format!("{transport:?}");
        let mut client = connect(&server, transport);
        let bad_filter = TScan {
            filter_string: Some(bytes("NoSuchFilter()")),
            ..TScan::default()
        };
        refused(&mut client, &open(&table, bad_filter), "NoSuchFilter");
        let long_row = TScan {
            start_row: Some(bytes(&"x".repeat(40_000))),
            ..TScan::default()
        };
        refused(&mut client, &open(&table, long_row), "32767");
        assert_eq!(open_scanners(&server), 0);

        // The table is looked for by the fetch, as in HBase.
        let scanner_id = client.call(&open(&table, TScan::default())).expect("a scanner");
        let fetch = |num_rows| GetScannerRows { scanner_id, num_rows };
        refused(&mut client, &fetch(5), &table);
        refused(&mut client, &fetch(-1), "negative");
        assert_eq!(open_scanners(&server), 1, "the id remains valid");
        client.call(&create(&table)).expect("a good table");
        client.call(&put_rows(&table, 0..3)).expect("good puts");
        assert_eq!(client.call(&fetch(5)).expect("now there is a table").len(), 3);
        client.call(&CloseScanner { scanner_id }).expect("closed");
        assert_eq!(open_scanners(&server), 0);

        // Close a missing scanner.
        client
            .call(&CloseScanner { scanner_id })
            .expect("no error in Thrift 2");
        refused(&mut client, &fetch(5), "Invalid scanner Id");
        assert_eq!(open_scanners(&server), 0);
    }
    let mut client = connect(&server, Transport::Framed);
    refused(
        &mut client,
        &ScannerClose { id: Some(77) },
        "scanner ID is invalid",
    );
    refused(&mut client, &ScannerClose { id: None }, "scanner ID is invalid");
    server.stop();
}

/// Without fetches the scanner is closed, its place is free, and the id is as unknown as any, in
/// HBase's words.
#[test]
fn expired_scanners_are_closed() {
    let (_dir, server) = start(&["scanner.lease_ms=50"]);
    let mut client = connect(&server, Transport::Framed);
    client.call(&create("t")).expect("a good table");
    let two = client.call(&open("t", TScan::default())).expect("a scanner");
    let one = ScannerOpen {
        table_name: Some(bytes("t")),
        ..ScannerOpen::default()
    };
    let one = client.call(&one).expect("a scanner");
    until("both have expired", || {
        server.metric("basalt_scanner_sessions_expired_total") == 2
    });
    assert_eq!(open_scanners(&server), 0);
    let fetch = GetScannerRows {
        scanner_id: two,
        num_rows: 1,
    };
    refused(&mut client, &fetch, "Invalid scanner Id");
    refused(
        &mut client,
        &ScannerGet { id: Some(one) },
        "scanner ID is invalid",
    );
    server.stop();
}

/// A connection that dies in the middle of a fetch takes its scanner with it.
#[test]
fn a_fetch_whose_connection_dies_leaks_no_scanner() {
    let (_dir, server) = start(&[]);
    fill(&server, "t");
    let mut client = connect(&server, Transport::Framed);
    let scanner_id = client.call(&open("t", nothing())).expect("a scanner");
    let fetch = GetScannerRows {
        scanner_id,
        num_rows: 1,
    };
    let rows_read = || server.metric("basalt_region_reads_total{table=\"t\"");
    let before = rows_read();
    client.send(&written(Protocol::BinaryStrict, 8, &fetch));
    until("the fetch runs", || rows_read() > before);
    drop(client);
    until("the scanner is closed", || open_scanners(&server) == 0);

    // Over HTTP a scanner outlives its connections: the fetch ends, and the scanner can be used again.
    let mut client = connect(&server, Transport::Http);
    let scanner_id = client.call(&open("t", nothing())).expect("a scanner");
    let fetch = GetScannerRows {
        scanner_id,
        num_rows: 1,
    };
    let failed = "basalt_failed_requests_total{api=\"thrift2\",method=\"getScannerRows\"}";
    let (before, failed_before) = (rows_read(), server.calls(failed));
    client.send(&written(Protocol::BinaryStrict, 8, &fetch));
    until("the fetch runs", || rows_read() > before);
    drop(client);
    until("the fetch has been given up", || {
        server.calls(failed) > failed_before
    });
    assert_eq!(open_scanners(&server), 1);
    let mut other = connect(&server, Transport::Http);
    assert!(other.call(&fetch).expect("it goes on from there").is_empty());
    other.call(&CloseScanner { scanner_id }).expect("closed");
    assert_eq!(open_scanners(&server), 0);
    server.stop();
}

/// Scans that let nothing through, more of them than there are threads for them, with other work for the same
/// threads. If a scan held its thread to its end, the other work would wait for at least [`SCANS`] - 256 of
/// them.
#[test]
fn scans_that_match_nothing_hold_no_worker() {
    let (_dir, server) = start(&[]);
    fill(&server, "t");
    let mut working = connect(&server, Transport::Framed);
    let scan = GetScannerResults {
        table: bytes("t"),
        tscan: nothing(),
        num_rows: 1,
    };
    let scan = written(Protocol::BinaryStrict, 1, &scan);
    let scanning: Vec<Client> = (0..SCANS)
        .map(|_| {
            let mut client = connect(&server, Transport::Framed);
            client.send(&scan);
            client
        })
        .collect();
    // Every scan has begun when each has read a row; one row is read 300 times at most.
    let reads = "basalt_region_reads_total{table=\"t\"";
    let before = server.metric(reads);
    until("the scans run", || server.metric(reads) > before + SCANS as u64);
    for amount in 1..=3 {
        let increment = TIncrement {
            row: bytes("counter"),
            columns: vec![TColumnIncrement {
                family: bytes("f"),
                qualifier: bytes("count"),
                amount,
            }],
            ..TIncrement::default()
        };
        let table = bytes("t");
        working
            .call(&Increment {
                table,
                tincrement: increment,
            })
            .expect("served");
    }
    let answered = scanning.iter().filter(|client| {
        client.socket.set_nonblocking(true).expect("a socket has modes");
        let peeked = client.socket.peek(&mut [0]);
        !matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    });
    let answered = answered.count();
    assert!(
        answered < SCANS - 256,
        "{answered} scans were done before the increments"
    );

    // No task waits for them any more: they end long before they have read everything.
    drop(scanning);
    let failed = "basalt_failed_requests_total{api=\"thrift2\",method=\"getScannerResults\"}";
    until("the scans are given up", || {
        server.calls(failed) as usize + answered >= SCANS
    });
    server.stop();
}
