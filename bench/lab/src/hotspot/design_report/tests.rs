//! The report's JSON is an interface, so it is compared byte for byte with a file; its HTML is
//! checked for properties of any report.

use std::time::Duration;

use basalt_load::load::latency::Latencies;
use basalt_load::load::timeline::Timeline;

use super::*;

pub(super) fn sample() -> Report {
    let mut latencies = Latencies::new();
    for ms in 1..=100 {
        latencies.record(Duration::from_millis(ms));
    }
    let (hot, cold) = (design("sequential", &latencies), design("salted", &latencies));
    let mut designs = vec![hot, cold];
    tell(&mut designs, "hour");
    Report {
        head: Head {
            format: basalt_load::report::REPORT_FORMAT,
            workload: "hotspot",
            tool: "basalt-bench 0.0.0",
            server: "Basalt 0.0.0".to_owned(),
            target: "127.0.0.1:9090".to_owned(),
            started_ms: 1_767_225_600_000,
        },
        result: String::new(),
        advice: String::new(),
        rehearse: String::new(),
        important: vec![Important::Writes, Important::Range],
        settings: Settings {
            api: "Thrift 1",
            rows: RowsReport::File {
                path: "</script><b>.parquet".to_owned(),
                flights: 3_000_000,
                rows: 10_000,
            },
            regions: 2,
            connections: 8,
            batch_rows: 100,
            rate_rows_per_second: Some(20_000),
            duration_seconds: None,
            buckets: 16,
            hash_bytes: 1,
            sequence_block: 1_000,
            range: "hour",
            range_from: "2001-01-01T00:00".to_owned(),
            range_to: "2001-01-01T01:00".to_owned(),
        },
        designs,
    }
}

fn design(name: &'static str, latencies: &Latencies) -> DesignReport {
    let hot = name == "sequential";
    let region = |start_key: &str, writes| RegionLoad {
        start_key: start_key.to_owned(),
        server: "host,9090,1".to_owned(),
        writes,
    };
    let mut timeline = Timeline::default();
    for (ms, rows) in [(0, 4_500), (250, 5_500), (500, 1)] {
        timeline.add(Duration::from_millis(ms), rows);
    }
    DesignReport {
        name,
        table: format!("bench_{name}"),
        row_key: "yyyyMMddHHmm + sequence(10)".to_owned(),
        bought: String::new(),
        cost: String::new(),
        rows: 10_000,
        ingest_seconds: 0.5,
        ingest_ops_per_second: 20_000.0,
        measured: MeasuredReport {
            latency_seconds: latencies.report(),
            errors: 1,
            first_error: Some("region too busy".to_owned()),
            timeline: timeline.report(),
        },
        rows_lost: 0,
        sequence_increments: 0,
        spread: Spread {
            region_writes_counted_by: "server",
            region_peak_to_mean: if hot { 2.0 } else { 1.0 },
            region_gini: if hot { 0.5 } else { 0.0 },
            region_busiest_share: if hot { 1.0 } else { 0.5 },
            splits: 0,
            region_writes: vec![region("", if hot { 0 } else { 5_000 }), region("2001", 5_000)],
            server_peak_to_mean: 1.0,
            server_gini: 0.0,
            server_writes: vec![ServerLoad {
                server: "host,9090,1".to_owned(),
                writes: 10_000,
            }],
        },
        work: Some(ServerWork {
            flushes: 1,
            compactions: 0,
        }),
        point_reads: 100,
        point_reads_per_second: 1_000.0,
        point_read_latency_seconds: Some(latencies.report()),
        point_read_difference: None,
        range_read: RangeRead {
            range_rows: 690,
            range_scans: if hot { 1 } else { 16 },
            range_seconds: if hot { 0.0032 } else { 0.008 },
            range_runs_seconds: vec![0.0031, 0.0032, 0.004],
            range_bytes_received: 69_000,
            range_bytes_returned: 69_000,
            range_bytes_read_per_byte_returned: 1.0,
            range_blocks_read: Some(3),
            range_equal: true,
            range_difference: None,
        },
    }
}

/// Goal: where there are several servers, Markdown shows the writes of each; where there is one, it
/// does not mention servers.
#[test]
fn writes_of_several_servers_are_told() {
    let mut report = sample();
    assert!(!markdown(&report).contains("servers, peak/mean"));
    let spread = &mut report.designs[0].spread;
    let load = |server: &str, writes| ServerLoad {
        server: server.to_owned(),
        writes,
    };
    spread.server_writes = vec![
        load("rehearsal-1,9090,1", 9_000),
        load("rehearsal-2,9090,1", 1_000),
    ];
    (spread.server_peak_to_mean, spread.server_gini) = (1.8, 0.4);
    let text = markdown(&report);
    assert!(
        text.contains("| sequential | 1.80 | 0.400 | 9000, 1000 |"),
        "{text}"
    );
}

/// A difference is either a mistake or a reason to raise `REPORT_FORMAT` and write the file anew.
#[test]
fn the_json_is_what_it_was() {
    let json = basalt_load::report::to_json(&sample()).unwrap();
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
    assert!(html.contains("<dt>Interface</dt><dd>Thrift 1</dd>"));
    assert!(
        html.contains("2.5 times the sequential design"),
        "the sentences are filled in"
    );
    assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
}

#[test]
fn the_terminal_and_markdown_show_a_line_for_each_design() {
    assert!(markdown(&sample()).contains("in the order of time over Thrift 1; 8 connections"));
    for text in [table(&sample()), markdown(&sample())] {
        let line = text.lines().find(|line| line.contains("sequential")).unwrap();
        for cell in ["20000", "50.01", "2.00", "0.500", "100 %", "3.2", "yes"] {
            assert!(line.contains(cell), "{cell}: {line}");
        }
    }
}

/// The figures of a design are in its sentences.
#[test]
fn the_story_has_the_figures() {
    let report = sample();
    let [hot, cold] = &report.designs[..] else {
        panic!()
    };
    assert!(
        hot.bought.contains("one hour takes one scan and 3.2 ms"),
        "{}",
        hot.bought
    );
    assert!(hot.cost.contains("One region takes 100 %"), "{}", hot.cost);
    assert!(
        cold.bought.contains("2 regions alike (peak to mean 1.00)"),
        "{}",
        cold.bought
    );
    assert!(
        cold.cost.contains("16 scans and 8.0 ms, 2.5 times"),
        "{}",
        cold.cost
    );
}

#[test]
fn a_design_that_differs_says_how() {
    let mut design = sample().designs.remove(0);
    assert_eq!(design.difference(), None);
    design.point_read_difference = Some("row x is missing".to_owned());
    assert_eq!(
        design.difference().as_deref(),
        Some("sequential: row x is missing")
    );
}
