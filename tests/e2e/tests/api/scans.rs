//! Scans through both services: ranges, scanners, pages, failures, clients that leave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_idl::admin::args as admin;
use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, key, put, shown, some, start, text};

#[test]
fn scans_over_regions() {
    let mut wire = Wire::connect();
    wire.create("s", &["c", "e"]);
    for row in ["a", "b", "c", "d", "e", "f"] {
        wire.put("s", row, "f:q", row, Some(5));
        wire.put("s", row, "g:q", row, Some(7));
    }
    let scan = |start: &str, stop: &str, reversed| thrift2::TScan {
        start_row: some(start),
        stop_row: some(stop),
        reversed: Some(reversed),
        // Java's client sends these for "not set".
        batch_size: Some(-1),
        limit: Some(-1),
        target_replica_id: Some(-1),
        ..Default::default()
    };
    for (tscan, rows) in [
        (scan("", "", false), "abcdef"),
        (scan("", "", true), "fedcba"),
        (scan("b", "e", false), "bcd"),
        (scan("e", "b", true), "edc"),
        (scan("dd", "", true), "dcba"),
        (scan("c", "c", false), "c"),
        (scan("x", "y", false), ""),
        (
            thrift2::TScan {
                limit: Some(4),
                ..scan("b", "", false)
            },
            "bcde",
        ),
        (
            thrift2::TScan {
                filter_string: some("PrefixFilter('d')"),
                ..scan("", "", false)
            },
            "d",
        ),
    ] {
        assert_eq!(wire.scan("s", tscan.clone()).concat(), rows, "{tscan:?}");
    }
    let range = |min_stamp, max_stamp| thrift2::TTimeRange { min_stamp, max_stamp };
    let own = thrift2::TScan {
        col_fam_time_range_map: Some([(bytes("f"), range(0, 5)), (bytes("g"), range(7, 8))].into()),
        ..scan("a", "b", false)
    };
    let found = wire.ok(&two::GetScannerResults {
        table: bytes("s"),
        tscan: own,
        num_rows: 9,
    });
    assert_eq!(
        shown(&found[0]),
        ["g:q@7=a"],
        "ranges are half open, each family has its own"
    );

    // Thrift 1: start equal to stop is that row; rows come with sorted columns where asked.
    let open = |scan| one::ScannerOpenWithScan {
        table_name: some("s"),
        scan: Some(scan),
        ..Default::default()
    };
    let row = thrift1::TScan {
        start_row: some("c"),
        stop_row: some("c"),
        ..Default::default()
    };
    let id = Some(wire.ok(&open(row)));
    assert_eq!(wire.ok(&one::ScannerGetList { id, nb_rows: Some(9) }).len(), 1);
    let sorted = thrift1::TScan {
        sort_columns: Some(true),
        timestamp: Some(7),
        ..Default::default()
    };
    let id = Some(wire.ok(&open(sorted)));
    let rows = wire.ok(&one::ScannerGet { id });
    let columns = rows[0].sorted_columns.as_ref().expect("a list");
    assert!(
        rows[0].columns.is_none() && columns.len() == 1,
        "only what is older than 7"
    );
    assert!(
        wire.ok(&one::ScannerGetList { id, nb_rows: Some(0) }).is_empty(),
        "none were asked for"
    );
    assert_eq!(
        wire.ok(&one::ScannerGetList { id, nb_rows: Some(9) }).len(),
        5,
        "and that was not the end"
    );
    wire.refused(
        &one::ScannerGetList {
            id,
            nb_rows: Some(-1),
        },
        &["IllegalArgument(", "-1"],
    );
    wire.ok(&one::ScannerClose { id });
    wire.refused(
        &one::ScannerGet { id },
        &["IllegalArgument(", "scanner ID is invalid"],
    );
    let locations = wire.ok(&two::GetAllRegionLocations { table: bytes("s") });
    let starts: Vec<_> = locations
        .iter()
        .map(|at| text(at.region_info.start_key.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(starts, ["", "c", "e"]);
    let info = wire.ok(&one::GetRegionInfo {
        row: some("s,d,99999999999999"),
    });
    assert_eq!(info.start_key, some("c"));
}

/// Where scanners fail, and that a failure is not taken for the end.
#[test]
fn scanners_that_fail() {
    let mut wire = Wire::connect();
    let open = |table: &str, tscan| two::OpenScanner {
        table: bytes(table),
        tscan,
    };
    let scanner_id = wire.ok(&open("later", thrift2::TScan::default()));
    let fetch = two::GetScannerRows {
        scanner_id,
        num_rows: 9,
    };
    wire.refused(&fetch, &["Io(", "later", "can_retry: Some(false)"]);
    wire.refused(&fetch, &["Io(", "later"]);
    wire.create("later", &[]);
    assert!(wire.ok(&fetch).is_empty(), "the id remained valid");
    wire.ok(&two::CloseScanner { scanner_id });
    wire.ok(&two::CloseScanner { scanner_id });
    wire.refused(&fetch, &["IllegalArgument(", "Invalid scanner Id"]);

    let batched = |filter: &str| thrift2::TScan {
        batch_size: Some(2),
        filter_string: some(filter),
        ..Default::default()
    };
    wire.refused(
        &open("later", batched("SingleColumnValueFilter('f','q',=,'binary:x')")),
        &["Cannot set batch"],
    );
    wire.refused(&open("later", batched("Nonsense(")), &["Io("]);
    let scan = thrift1::TScan {
        batch_size: Some(2),
        filter_string: some("SingleColumnValueFilter('f','q',=,'binary:x')"),
        ..Default::default()
    };
    wire.refused(
        &one::ScannerOpenWithScan {
            table_name: some("later"),
            scan: Some(scan),
            ..Default::default()
        },
        &["filter.IncompatibleFilterException"],
    );

    for qualifier in 0..5 {
        wire.put("later", "r", &format!("f:{qualifier}"), "v", None);
    }
    let pieces = thrift2::TScan {
        batch_size: Some(2),
        ..Default::default()
    };
    let found = wire.ok(&two::GetScannerResults {
        table: bytes("later"),
        tscan: pieces,
        num_rows: 9,
    });
    let pieces: Vec<_> = found
        .iter()
        .map(|piece| (key(piece), piece.column_values.len(), piece.partial))
        .collect();
    assert_eq!(
        pieces,
        [
            ("r".into(), 2, true),
            ("r".into(), 2, true),
            ("r".into(), 1, false)
        ]
    );
}

/// Java's client pages through a reversed scan: it asks for the last row again, and takes a page without
/// anything else for the end. Rows are larger than the server's bound on an answer here.
#[test]
fn a_page_has_two_rows_however_large_they_are() {
    let mut wire = Wire::to(start(&["server.max_response_bytes=8192"]));
    wire.create("large", &[]);
    for row in ["a", "b", "c"] {
        wire.put("large", row, "f:q", &"v".repeat(10_000), None);
    }
    let (mut seen, mut start) = (vec![], String::new());
    loop {
        let tscan = thrift2::TScan {
            start_row: some(&start),
            reversed: Some(true),
            ..Default::default()
        };
        let page = wire.ok(&two::GetScannerResults {
            table: bytes("large"),
            tscan,
            num_rows: 50,
        });
        assert!(page.len() <= 2, "{} rows of 10,000 bytes each", page.len());
        let rows: Vec<String> = page.iter().map(key).filter(|row| *row != start).collect();
        let Some(last) = rows.last() else { break };
        start.clone_from(last);
        seen.extend(rows);
    }
    assert_eq!(seen, ["c", "b", "a"]);
}

/// In HBase a short list ends a scan, and clients of calls without a scanner and of Thrift 1's
/// lists rely on that. So the bounds of a page do not shorten these lists, forwards, backwards and
/// with a filter. Pages of a Thrift 2 scanner keep the bounds.
#[test]
fn a_short_list_is_the_end_of_a_scan() {
    const ROWS: usize = 300;
    let mut wire = Wire::to(start(&["scanner.fetch_max_bytes=4096", "scanner.fetch_max_ms=1"]));
    wire.create("short", &["0100", "0200"]);
    let value = "v".repeat(1_000);
    let tputs = (0..ROWS)
        .map(|row| put(&format!("{row:04}"), "f:q", &value, None))
        .collect();
    wire.ok(&two::PutMultiple {
        table: bytes("short"),
        tputs,
    });
    for (reversed, filter) in [(false, ""), (true, ""), (false, "QualifierFilter(=,'binary:q')")] {
        let tscan = thrift2::TScan {
            reversed: Some(reversed),
            filter_string: some(filter).filter(|filter| !filter.is_empty()),
            ..Default::default()
        };
        let results = wire.ok(&two::GetScannerResults {
            table: bytes("short"),
            tscan: tscan.clone(),
            num_rows: ROWS as i32,
        });
        assert_eq!(
            results.len(),
            ROWS,
            "getScannerResults, reversed {reversed}, {filter}"
        );
        let id = wire.ok(&one::ScannerOpenWithScan {
            table_name: some("short"),
            scan: Some(thrift1::TScan {
                reversed: Some(reversed),
                filter_string: tscan.filter_string.clone(),
                ..Default::default()
            }),
            attributes: None,
        });
        let list = one::ScannerGetList {
            id: Some(id),
            nb_rows: Some(ROWS as i32 - 1),
        };
        assert_eq!(
            wire.ok(&list).len(),
            ROWS - 1,
            "scannerGetList, reversed {reversed}, {filter}"
        );
        assert_eq!(wire.ok(&list).len(), 1, "the end");
        let scanner_id = wire.ok(&two::OpenScanner {
            table: bytes("short"),
            tscan,
        });
        let page = wire.ok(&two::GetScannerRows {
            scanner_id,
            num_rows: ROWS as i32,
        });
        assert!(page.len() < ROWS, "a page of {} rows", page.len());
    }
}

/// A connection that is closed while its scans run: they stop, and its other requests are not
/// begun.
#[test]
fn scans_end_with_their_client() {
    const ROWS: usize = 50_000;
    const SCANS: usize = 50;
    // A server of its own, so that no other connections are counted.
    let mut wire = Wire::to(start(&[]));
    wire.create("gone", &[]);
    for from in (0..ROWS).step_by(5_000) {
        let tputs = (from..from + 5_000)
            .map(|row| put(&format!("{row:06}"), "f:q", "v", None))
            .collect();
        wire.ok(&two::PutMultiple {
            table: bytes("gone"),
            tputs,
        });
    }
    let read = |wire: &Wire| metric(wire, "basalt_region_reads_total{table=\"gone\"");
    let open = |wire: &Wire| metric(wire, "basalt_connections ");
    let mut client = Wire::to(Arc::clone(&wire.shared));
    let nothing = thrift2::TScan {
        filter_string: some("ValueFilter(=,'binary:none')"),
        ..Default::default()
    };
    let scan = two::GetScannerResults {
        table: bytes("gone"),
        tscan: nothing,
        num_rows: 1,
    };
    assert!(client.ok(&scan).is_empty());
    let one_scan = read(&wire);
    assert!(one_scan >= ROWS as f64, "{one_scan} rows were read");
    for _ in 0..SCANS {
        client.send(&scan);
    }
    drop(client);
    let calls = |wire: &Wire| {
        metric(
            wire,
            "basalt_requests_total{api=\"thrift2\",method=\"getScannerResults\"}",
        )
    };
    let began = Instant::now();
    while open(&wire) > 1.0 {
        assert!(
            began.elapsed() < Duration::from_mins(1),
            "{} calls were answered",
            calls(&wire)
        );
    }
    let after = read(&wire) - one_scan;
    assert!(
        after < (SCANS * ROWS / 2) as f64,
        "{after} rows were read in vain"
    );
}

/// The sum of the metric's lines that begin like this.
fn metric(wire: &Wire, start: &str) -> f64 {
    let page = wire.shared.server.http_get("/metrics");
    let values = page
        .lines()
        .filter(|line| line.starts_with(start))
        .filter_map(|line| line.rsplit(' ').next());
    values.map(|value| value.parse::<f64>().expect("a number")).sum()
}

/// After a flush between two fetches, only the scanner pins the old memstore. The server releases
/// it without waiting for the client, and the scan returns the same rows.
#[test]
fn a_scanner_that_waits_holds_no_memory() {
    let mut wire = Wire::to(start(&[]));
    wire.create("w", &["m"]);
    for row in ["a", "b", "n", "o"] {
        wire.put("w", row, "f:q", "before", None);
    }
    let scanner_id = wire.ok(&two::OpenScanner {
        table: bytes("w"),
        tscan: thrift2::TScan::default(),
    });
    let fetch = |wire: &mut Wire, num_rows| {
        let rows = wire.ok(&two::GetScannerRows { scanner_id, num_rows });
        rows.iter()
            .map(|row| (key(row), text(&row.column_values[0].value)))
            .collect::<Vec<_>>()
    };
    let mut seen = fetch(&mut wire, 1);
    for row in ["a", "b", "n", "o"] {
        wire.put("w", row, "f:q", "after", None);
    }
    wire.ok(&admin::BasaltFlush { table: bytes("w") });
    let deadline = Instant::now() + Duration::from_mins(1);
    let pinned = |metrics: String| {
        let line = metrics
            .lines()
            .find(|line| line.starts_with("basalt_memstore_pinned_bytes "))
            .map(str::to_owned);
        line.expect("the metric is served")
    };
    while pinned(wire.shared.server.http_get("/metrics")) != "basalt_memstore_pinned_bytes 0" {
        assert!(
            Instant::now() < deadline,
            "the scanner still holds what was flushed"
        );
    }
    seen.extend(fetch(&mut wire, 10));
    let expected = ["a", "b", "n", "o"].map(|row| (row.to_owned(), "before".to_owned()));
    assert_eq!(seen, expected);
}
