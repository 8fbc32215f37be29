//! The dashboard and docs/metrics.md against the metrics of a running server.
//!
//! A dashboard rots in silence: a renamed metric leaves an empty panel that looks like a quiet server. So the queries are
//! parsed and compared, name by name and label by label, with what a server under some load exposes; and, where Prometheus is
//! installed, every query is run in it.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use basalt_tests::{Server, workspace};

mod alerts;
mod load;
mod prometheus;
mod queries;
mod scrape;

use load::Client;
use prometheus::Prometheus;
use queries::{check, legend_labels, queries};
use scrape::Scrape;

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn scrape_under_load() -> Scrape {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["rehearsal.servers=2"]);
    Client::connect(server.thrift).burst();
    let scrape = Scrape::parse(&server.http_get("/metrics"));
    server.stop();
    scrape
}

/// Type and name of every metric in names.rs.
fn declared() -> Vec<(String, String)> {
    let mut declared = Vec::new();
    for line in read("server/src/metrics/names.rs").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [kind @ ("counter" | "gauge" | "histogram"), _, "=", name, ..] = words[..] {
            declared.push((
                kind.to_owned(),
                name.trim_matches(|c| c == '"' || c == ',').to_owned(),
            ));
        }
    }
    assert!(
        declared.len() > 40,
        "names.rs is not written as this test reads it: {declared:?}"
    );
    declared
}

/// Goal: no panel is empty because of a name. Every query parses, every metric and label in it is exposed by a server under
/// load, and every metric of the server is in some panel.
#[test]
fn every_query_names_what_a_server_exposes() {
    let scrape = scrape_under_load();
    let mut problems = Vec::new();
    let mut used = BTreeSet::new();
    for query in queries() {
        let (found, metrics) = check(&scrape, &query.expr, &query.legend);
        problems.extend(
            found
                .into_iter()
                .map(|problem| format!("{}: {problem} in {}", query.place, query.expr)),
        );
        used.extend(metrics);
    }
    for (kind, name) in declared() {
        if scrape.types.get(&name) != Some(&kind) {
            problems.push(format!(
                "{name} is declared as a {kind}, exposed as {:?}",
                scrape.types.get(&name)
            ));
        }
    }
    for metric in scrape.types.keys() {
        if !used.contains(metric) {
            problems.push(format!("{metric} is in no panel"));
        }
        if !scrape.help.contains(metric) {
            problems.push(format!("{metric} has no help text"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The check above finds what it is for.
#[test]
fn wrong_queries_are_found() {
    let scrape = Scrape::parse(
        "# TYPE a_total counter\na_total{table=\"t, {u}\"} 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
    );
    let of = |expr: &str, legend: &str| check(&scrape, expr, legend).0.join("; ");
    let s = r#"job="j",instance="i""#;
    assert_eq!(
        of(
            &format!("sum by (table) (rate(a_total{{{s}}}[1m]))"),
            "{{table}} {{job}}"
        ),
        ""
    );
    assert_eq!(
        of(
            &format!("histogram_quantile(0.9, sum by (le) (rate(h_bucket{{{s}}}[1m])))"),
            "p90"
        ),
        ""
    );
    assert_eq!(of("sum(rate(", "x"), "unclosed left parenthesis");
    assert_eq!(of(&format!("b_total{{{s}}}"), "x"), "no sample b_total");
    assert_eq!(of(&format!("h{{{s}}}"), "x"), "no sample h");
    assert_eq!(
        of(&format!("sum by (region) (a_total{{{s}}})"), "x"),
        "a_total has no label region"
    );
    assert_eq!(
        of(&format!("a_total{{{s},region=\"r\"}}"), "x"),
        "a_total has no label region"
    );
    assert_eq!(
        of(&format!("a_total{{{s}}}"), "{{region}}"),
        "the legend shows region, which no metric has"
    );
    assert_eq!(
        of(r#"a_total{job="j"}"#, "x"),
        "a_total is not limited to the chosen instance"
    );
}

/// docs/metrics.md has a line for every metric, with its type and its labels, and names nothing else.
#[test]
fn the_page_on_metrics_is_complete_and_true() {
    let scrape = scrape_under_load();
    let page = read("docs/metrics.md");
    let mut problems = Vec::new();
    let mut rows = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, meaning, advice] = cells[..] else {
            panic!("not five columns: {line}")
        };
        let name = name.trim_matches('`');
        let labels: BTreeSet<&str> = labels
            .split([',', ' '])
            .map(|label| label.trim_matches('`'))
            .collect();
        let labels: BTreeSet<&str> = labels.into_iter().filter(|label| !label.is_empty()).collect();
        if scrape.types.get(name).map(String::as_str) != Some(kind) {
            problems.push(format!(
                "{name}: {kind} on the page, {:?} in the server",
                scrape.types.get(name)
            ));
        } else if labels != scrape.labels_of(name) {
            problems.push(format!(
                "{name}: {labels:?} on the page, {:?} in the server",
                scrape.labels_of(name)
            ));
        }
        if meaning.is_empty() || advice.is_empty() || !rows.insert(name.to_owned()) {
            problems.push(format!("{name}: twice, or without a meaning or an advice"));
        }
    }
    problems.extend(
        scrape
            .types
            .keys()
            .filter(|name| !rows.contains(*name))
            .map(|name| format!("{name} has no line")),
    );
    let declared = declared();
    problems.extend(
        declared
            .iter()
            .filter(|(_, name)| !rows.contains(name))
            .map(|(_, name)| format!("{name} has no line")),
    );
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    for word in page
        .split(|c| !is_name(c))
        .filter(|word| word.starts_with("basalt_") || word.starts_with("process_"))
    {
        if scrape.metric(word).is_none() {
            problems.push(format!("the page names {word}, which does not exist"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The committed dashboard is what its script writes: nobody has edited the one without the other.
#[test]
fn the_dashboard_is_what_the_script_writes() {
    let script = workspace().join("grafana/dashboard.py");
    let output = match Command::new("python3").arg(script).arg("--print").output() {
        Ok(output) => output,
        Err(error) => {
            return println!("not run: the dashboard's script, since python3 does not start: {error}");
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        String::from_utf8_lossy(&output.stdout) == read("grafana/dashboards/basalt.json"),
        "grafana/dashboards/basalt.json is not what grafana/dashboard.py writes; run the script"
    );
}

/// Goal: every panel shows something when a server is used. Keeps a server busy with a little of everything and runs all
/// queries in Prometheus until each has given a number; an error, or a query that stays empty, fails.
#[test]
fn every_query_has_a_result_in_prometheus() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    // So few that calls are held back.
    let settings = ["rehearsal.servers=2", "rehearsal.write_requests_per_second=20"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let Some(prometheus) = Prometheus::start(dir.path(), server.http) else {
        return println!(
            "not run: the dashboard's queries in Prometheus, since it is not installed (Debian: prometheus)"
        );
    };
    let mut client = Client::connect(server.thrift);
    let mut pending = queries();
    let deadline = Instant::now() + Duration::from_secs(90);
    while !pending.is_empty() {
        assert!(
            Instant::now() < deadline,
            "no data under load:\n{}",
            pending
                .iter()
                .map(|query| format!("{}: {}", query.place, query.expr))
                .collect::<Vec<_>>()
                .join("\n")
        );
        client.burst();
        pending.retain(|query| {
            let result = prometheus.query(&query.expr);
            let series = result.unwrap_or_else(|error| panic!("{}: {error} in {}", query.place, query.expr));
            for label in legend_labels(&query.legend) {
                for one in &series {
                    assert!(
                        one["metric"][label].is_string(),
                        "{}: the legend's {label} is not in {one}",
                        query.place
                    );
                }
            }
            !series
                .iter()
                .any(|one| one["value"][1].as_str().is_some_and(|value| value != "NaN"))
        });
    }
    server.stop();
}
