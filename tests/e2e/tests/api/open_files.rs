//! Store files, connections and the limit of open files.

use std::sync::Arc;

use basalt_idl::admin::args as own;
use basalt_idl::thrift2::args as two;
use basalt_test_support::Server;

use crate::client::{Wire, bytes, put, restarted_with_open_files, start_with_open_files};

/// The smallest limit of open files: the shares are 80 for store files, 16 for each port.
const LIMIT: u32 = 176;
const TABLES: usize = 4;
/// One store file each.
const REGIONS: usize = 50;

fn fill(wire: &mut Wire, table: &str) {
    let splits: Vec<String> = (1..REGIONS).map(|number| format!("{number:02}")).collect();
    let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
    wire.create(table, &splits);
    let tputs = (0..REGIONS).map(|number| put(&format!("{number:02}x"), "f:q", "v", None));
    wire.ok(&two::PutMultiple {
        table: bytes(table),
        tputs: tputs.collect(),
    });
    wire.ok(&own::BasaltFlush { table: bytes(table) });
}

/// Goal: store files never use the last descriptors. Method: more store files than the process may
/// have open files, then connections, pages and reads, before and after a restart with the same
/// limit.
#[test]
fn store_files_leave_descriptors_for_everything_else() {
    let mut shared = start_with_open_files(LIMIT);
    let mut wire = Wire::to(Arc::clone(&shared));
    let tables: Vec<String> = (0..TABLES).map(|number| format!("t{number}")).collect();
    for table in &tables {
        fill(&mut wire, table);
    }
    drop(wire);
    for restart in [false, true] {
        if restart {
            shared = restarted_with_open_files(shared, LIMIT);
        }
        let server = &shared.server;
        assert_eq!(server.http_get("/healthz"), "ok\n");
        for table in &tables {
            let mut client = Wire::to(Arc::clone(&shared));
            assert_eq!(client.rows(table).len(), REGIONS);
            assert_eq!(client.row(table, "07x").len(), 1);
        }
        assert!(server.metric("basalt_store_file_evictions_total") > 0);
        let limit = server.metric("basalt_store_files_open_limit");
        assert_eq!(limit, 80);
        assert!(server.metric("basalt_store_files_open ") <= limit);
        assert!(server.metric("process_open_fds") < u64::from(LIMIT) - 64);
        assert_eq!(server.metric("basalt_flush_failures_total"), 0);
    }
    let log = crate::client::shut_down(shared);
    assert!(!log.contains("Too many open files"), "{log}");
    assert!(log.contains("80 for store files, 16 for the main port"), "{log}");
}

/// Goal: a limit of open files that is too small fails the start before anything is written. The
/// error has the numbers and the remedy.
#[test]
fn a_limit_that_is_too_small_is_refused_before_anything_is_written() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let refusal = Server::try_start_with_open_files(&data, &[], 175).expect_err("too few");
    for word in [
        "open files is 175, and 176 are needed",
        "80 for store files",
        "LimitNOFILE",
    ] {
        assert!(refusal.contains(word), "{refusal}");
    }
    assert!(!data.exists(), "nothing is written");
    Server::start_with_open_files(&data, &[], 176).stop();
}
