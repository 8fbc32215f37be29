//! The report's JSON is an interface, so it is compared byte for byte with a file; its HTML is checked for what must
//! be true of any report.

use std::time::Duration;

use super::*;
use crate::latency::Latencies;

fn sample() -> Report {
    let mut latencies = Latencies::new();
    for ms in 1..=100 {
        latencies.record(Duration::from_millis(ms));
    }
    Report {
        format: crate::report::REPORT_FORMAT,
        workload: "hotspot",
        tool: "basalt-bench 0.0.0",
        server: "Basalt 0.0.0".to_owned(),
        target: "127.0.0.1:9090".to_owned(),
        started_ms: 1_767_225_600_000,
        settings: Settings {
            rows: RowsReport::File {
                path: "</script><b>.parquet".to_owned(),
                rows: 10_000,
            },
            regions: 2,
            connections: 8,
            batch_rows: 100,
            rate_rows_per_s: Some(20_000),
            duration_s: None,
            buckets: 16,
            hash_bytes: 1,
            hour_from: "2001-01-01T00:00".to_owned(),
            hour_to: "2001-01-01T01:00".to_owned(),
        },
        designs: vec![design(&latencies)],
    }
}

fn design(latencies: &Latencies) -> DesignReport {
    let region = |start_key: &str, writes| RegionLoad {
        start_key: start_key.to_owned(),
        writes,
    };
    DesignReport {
        design: "sequential",
        table: "bench_sequential".to_owned(),
        row_key: "yyyyMMddHHmm + sequence(10)".to_owned(),
        rows: 10_000,
        seconds: 0.5,
        rows_per_s: 20_000.0,
        batch_latency: latencies.report(),
        errors: 1,
        rows_lost: 0,
        first_error: Some("region too busy".to_owned()),
        timeline: TimelineReport {
            slot_ms: 250,
            rows_per_s: vec![18_000.0, 22_000.0],
        },
        region_writes: RegionWrites {
            source: "server",
            unevenness: Unevenness::of(&[0, 10_000]),
            busiest_share: 1.0,
            regions: vec![region("", 0), region("2001", 10_000)],
        },
        server_work: Some(ServerWork {
            flushes: 1,
            compactions: 0,
        }),
        range_read: RangeReadReport {
            rows: 690,
            scans: 1,
            median_ms: 3.2,
            runs_ms: vec![3.1, 3.2, 4.0],
            equal: true,
            difference: None,
        },
    }
}

/// A difference is either a mistake or a reason to raise `REPORT_FORMAT` and write the file anew.
#[test]
fn the_json_is_what_it_was() {
    let json = crate::report::to_json(&sample()).unwrap();
    assert_eq!(json, include_str!("snapshot.json"), "{json}");
}

#[test]
fn the_html_loads_nothing_and_escapes_what_it_shows() {
    let html = html(&sample()).unwrap();
    for outside in [
        " src=",
        "<link",
        "@import",
        "url(http",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("</script><b>"));
    assert!(html.contains("bench_sequential"));
    assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
}

#[test]
fn the_terminal_shows_a_line_for_each_design() {
    let table = table(&sample());
    let line = table.lines().find(|line| line.contains("sequential")).unwrap();
    for cell in ["20000", "50.02", "2.00", "0.500", "100 %", "690", "yes"] {
        assert!(line.contains(cell), "{cell}: {line}");
    }
}

#[test]
fn digits_are_grouped() {
    let numbers = [1.0, 999.0, 1_000.0, 1_234_567.4].map(grouped);
    assert_eq!(numbers, ["1", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567"]);
}
