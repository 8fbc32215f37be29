//! Pages and metrics of a gateway, and HappyBase through it.

use std::collections::BTreeSet;

use basalt_client::{Get, Scan};
use basalt_test_support::{happybase, until, workspace};

use super::{Pair, client, put, wait};

const TOUR: &str = include_str!("../../python/tour.py");

/// Goal: HappyBase does through a gateway all that it does with the cluster itself.
#[test]
fn happybase_makes_its_tour_through_a_gateway() {
    let Some(python) = happybase() else { return };
    let pair = Pair::start(&[], &[]);
    let (host, port) = (
        pair.gateway.thrift.ip().to_string(),
        pair.gateway.thrift.port().to_string(),
    );
    for (transport, protocol) in [("buffered", "binary"), ("framed", "compact")] {
        let output = python.run(TOUR, &[&host, &port, transport, protocol]);
        assert!(
            output.as_ref().is_ok_and(|text| text.trim() == "tour done"),
            "{transport} {protocol}: {}",
            output.unwrap_or_else(|error| error)
        );
    }
    assert_eq!(pair.of_cluster("basalt_scanner_sessions "), 0);
}

/// Goal: pages show the cluster and the load of the gateway, and no tables of an empty engine.
#[test]
fn pages_show_the_cluster() {
    let pair = Pair::start(&["slow_log.threshold_ms=0"], &[]);
    wait(async {
        let table = client(pair.gateway.thrift).table("t").unwrap();
        for number in 0..500 {
            table
                .put(put(&format!("row-{number:03}"), "v"))
                .await
                .expect("a put");
        }
        table.get(Get::new("row-001")).await.expect("a get");
        assert_eq!(
            table.scan(Scan::new()).unwrap().collect().await.unwrap().len(),
            500
        );
    });
    until("the load shows", || {
        pair.gateway.http_get("/").contains("thrift2")
    });
    let overview = pair.gateway.http_get("/");
    let key = format!("hbase+rpc://{}", pair.cluster.thrift);
    for text in [
        "The cluster answers.",
        &key,
        "Region servers",
        "gateway.deadline_ms",
    ] {
        assert!(overview.contains(text), "no {text} in\n{overview}");
    }
    assert!(
        !overview.contains("/tables") && !overview.contains("/jobs"),
        "{overview}"
    );
    let slow = pair.gateway.http_get("/slow");
    assert!(slow.contains("row-001") && !slow.contains("/tables/t"), "{slow}");
    let map = pair.gateway.http_get("/heat?table=t");
    assert!(
        map.contains("one row in 64 is counted") && !map.contains("/tables/t"),
        "{map}"
    );
    until("samples show", || {
        let data = pair.gateway.http_get("/api/heat?table=t");
        let data: serde_json::Value = serde_json::from_str(&data).expect("JSON");
        let rows = data["rows"].as_array().expect("rows").iter();
        rows.filter_map(|row| row["total"].as_f64()).sum::<f64>() > 0.0
    });
    for path in [
        "/tables",
        "/jobs",
        "/cache",
        "/findings",
        "/changes",
        "/test/faults",
    ] {
        let body = pair.gateway.http_get(path);
        assert!(body.starts_with("not found"), "{path}: {body}");
    }
}

/// docs/gateway.md lists the metrics that only a gateway has, and a gateway has none of an engine.
#[test]
fn the_page_lists_the_metrics() {
    let pair = Pair::start(&[], &[]);
    let failed = wait(async {
        let client = client(pair.gateway.thrift);
        let table = client.table("t").unwrap();
        table.put(put("r", "v")).await.expect("a put");
        client.table("missing").unwrap().get(Get::new("r")).await
    });
    failed.map(drop).expect_err("there is no such table");
    let mut scrape = String::new();
    until("the gateway has looked at its cluster", || {
        scrape = pair.gateway.http_get("/metrics");
        scrape.contains("\nbasalt_cluster_servers{")
    });
    let names = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: BTreeSet<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    let own = |name: &&str| name.starts_with("basalt_cluster_");
    let page = std::fs::read_to_string(workspace().join("docs/gateway.md")).expect("the page");
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<&str> = listed
        .filter_map(|line| line.split('`').next())
        .filter(own)
        .collect();
    let mut exposed: BTreeSet<&str> = names.iter().copied().filter(own).collect();
    // It begins with the first call that fails at a server.
    exposed.insert("basalt_cluster_failed_calls_total");
    assert_eq!(listed, exposed);
    for name in [
        "basalt_wal_syncs_total",
        "basalt_memstore_bytes",
        "basalt_regions",
        "basalt_tables",
    ] {
        assert!(!names.contains(name), "{name}");
    }
    assert!(names.contains("basalt_requests_total") && names.contains("process_threads"));
    assert!(
        pair.gateway
            .metric("basalt_cluster_calls_total{method=\"Mutate\"}")
            >= 1
    );
}
