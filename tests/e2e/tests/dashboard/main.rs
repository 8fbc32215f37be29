//! The dashboards, the alert rules and docs/metrics.md against the metrics of a running server.
//!
//! An outdated dashboard fails silently: a renamed metric leaves an empty panel that looks like an
//! idle server. So the queries are parsed and compared, name by name and label by label, with the
//! metrics of a server under some load; and, where Prometheus is installed, every query is run in
//! it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use basalt_test_support::{Server, binary, workspace};

mod alerts;
mod boards;
mod load;
mod prometheus;
mod queries;
mod scrape;

use boards::boards;
use load::Client;
use prometheus::Prometheus;
use queries::{Query, check, legend_labels, queries};
use scrape::Scrape;

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Why the metrics of users' classes are on no dashboard.
const OF_USER_CODE: &str = "most servers run no classes of users; docs/metrics.md says what to look for";

/// Metrics that no dashboard and no rule needs, and why.
const NOWHERE: [(&str, &str); 8] = [
    ("basalt_user_code_duration_seconds", OF_USER_CODE),
    ("basalt_user_code_errors_total", OF_USER_CODE),
    ("basalt_user_code_starts_total", OF_USER_CODE),
    ("basalt_user_code_failures_total", OF_USER_CODE),
    (
        "basalt_replication_sink_written_timestamp_seconds",
        "a time of the day; the age of the edit is on a dashboard",
    ),
    (
        "basalt_test_faults_injected_total",
        "only servers of tests have it",
    ),
    (
        "process_virtual_memory_bytes",
        "address space says nothing about memory in use",
    ),
    (
        "process_virtual_memory_max_bytes",
        "the same; and it has no limit as a rule",
    ),
];

/// The queries of all dashboards and rules.
fn all_queries() -> Vec<Query> {
    let mut all: Vec<Query> = boards().iter().flat_map(queries).collect();
    assert!(all.len() > 100, "the dashboards have only {} queries", all.len());
    all.extend(alerts::rule_queries());
    all
}

fn scrape_under_load() -> Scrape {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    make_certificate(&data);
    let store = format!("backup.url=\"file:{}/backups\"", dir.path().display());
    let server = Server::start(&data, &["rehearsal.servers=2", &store]);
    Client::connect(server.thrift).burst();
    let others = others(dir.path(), &server);
    let mut text = server.http_get("/metrics");
    server.stop();
    others.into_iter().for_each(Server::stop);
    text.push_str(&metrics_of_tests());
    text.push_str(&metrics_of_user_code(dir.path()));
    Scrape::parse(&text)
}

/// A replication peer and a standby of a server: it has series of each.
fn others(dir: &Path, server: &Server) -> [Server; 2] {
    let peer = Server::start(&dir.join("peer"), &[]);
    add_peer(server, &peer);
    let follow = format!("standby.follow=\"http://{}\"", server.http);
    [peer, Server::start(&dir.join("standby"), &[&follow])]
}

/// Makes a server a replication peer of another.
fn add_peer(server: &Server, peer: &Server) {
    use basalt_client::native::{Cluster, ClusterOptions, Registry};
    use basalt_idl::native::messages as pb;
    let request = pb::AddReplicationPeerRequest {
        peer_id: "p".to_owned(),
        peer_config: pb::ReplicationPeer {
            clusterkey: Some(format!("127.0.0.1:{}:/hbase", peer.thrift.port())),
            ..pb::ReplicationPeer::default()
        },
        peer_state: pb::ReplicationState {
            state: pb::replication_state::State::Enabled.into(),
        },
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let added = runtime.block_on(async {
        let registry = Registry::bootstrap(&server.thrift.to_string())?;
        let cluster = Cluster::new(ClusterOptions::new(registry));
        let method = pb::MasterServiceMethod::AddReplicationPeer;
        let answer: basalt_client::Result<pb::AddReplicationPeerResponse> =
            cluster.ask_by_message(method, &request).await;
        answer
    });
    added.expect("a peer");
}

/// Gives a data directory a certificate: a server with one has metrics of it.
fn make_certificate(data: &Path) {
    let made = Command::new(binary("basalt"))
        .args(["certificate", "create", "--name", "localhost", "--data-dir"])
        .arg(data)
        .status();
    assert!(made.is_ok_and(|made| made.success()), "no certificate");
}

/// The metrics that only an ephemeral server has.
fn metrics_of_tests() -> String {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(dir.path(), &[]);
    let text = server.http_get("/metrics");
    server.stop();
    let is_of_tests = |line: &&str| line.contains("basalt_test_");
    text.split_inclusive('\n').filter(is_of_tests).collect()
}

/// The metrics that only a server with users' classes has. Its Java host ends at once: the call that needs it
/// fails, and is counted.
fn metrics_of_user_code(dir: &Path) -> String {
    use basalt_client::Get;
    use basalt_client::native::{Cluster, ClusterOptions, Registry};
    let folder = dir.display().to_string();
    let settings = [
        format!("user_code.directories=[{folder:?}]"),
        format!("user_code.java_host={folder:?}"),
        "user_code.java_command=\"false\"".to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let server = Server::start(&dir.join("user-code"), &settings);
    Client::connect(server.thrift);
    let class = b"org.example.Filter";
    let filter = [&[0x0a, class.len() as u8], &class[..]].concat();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let got = runtime.block_on(async {
        let registry = Registry::bootstrap(&server.thrift.to_string())?;
        let cluster = Cluster::new(ClusterOptions {
            retries: 0,
            ..ClusterOptions::new(registry)
        });
        let get = Get::new("a").filter_bytes(filter);
        cluster.table("t")?.get(get).await
    });
    let refused = got.expect_err("there is no host").to_string();
    assert!(refused.contains("org.example.Filter"), "{refused}");
    let text = server.http_get("/metrics");
    server.stop();
    let is_of_user_code = |line: &&str| line.contains("basalt_user_code_");
    text.split_inclusive('\n').filter(is_of_user_code).collect()
}

/// Type and name of every metric in names.rs.
fn declared() -> Vec<(String, String)> {
    let mut declared = Vec::new();
    for line in read("server/src/observe/metrics/names.rs").lines() {
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

/// Goal: no panel is empty and no rule is silent because of a name. Every query parses, every metric and
/// label in it is exposed by a server under load, and every metric of the server is on a dashboard or in a
/// rule, or there is a reason why not.
#[test]
fn every_query_names_what_a_server_exposes() {
    let scrape = scrape_under_load();
    let mut problems = Vec::new();
    let mut used = BTreeSet::new();
    for query in all_queries() {
        let (found, metrics) = check(&scrape, &query);
        problems.extend(
            found
                .into_iter()
                .map(|problem| format!("{}: {problem} in {}", query.place, query.expr)),
        );
        used.extend(metrics);
    }
    for (name, _) in NOWHERE {
        if !scrape.types.contains_key(name) {
            problems.push(format!("{name} is in NOWHERE and does not exist"));
        }
    }
    for (kind, name) in declared() {
        if scrape.types.get(&name) != Some(&kind) {
            problems.push(format!(
                "{name} is declared as a {kind}, exposed as {:?}",
                scrape.types.get(&name)
            ));
        }
    }
    for (sample, labels) in &scrape.labels {
        // Prometheus puts its own in their place, and sums by them would be sums of everything.
        for label in scrape::TARGET_LABELS
            .iter()
            .filter(|label| labels.contains(**label))
        {
            problems.push(format!("{sample} has a label {label}, which is Prometheus' own"));
        }
    }
    for metric in scrape.types.keys() {
        let nowhere = NOWHERE.iter().any(|(name, _)| name == metric);
        if used.contains(metric) == nowhere {
            problems.push(format!(
                "{metric} must be on a dashboard, in a rule, or in NOWHERE"
            ));
        }
        if !scrape.help.contains(metric) {
            problems.push(format!("{metric} has no help text"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The check above finds each kind of mistake.
#[test]
fn wrong_queries_are_found() {
    let scrape = Scrape::parse(
        "# TYPE a_total counter\na_total{table=\"t, {u}\"} 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
    );
    let of = |expr: &str, legend: &str| {
        let query = Query {
            place: String::new(),
            expr: expr.to_owned(),
            legend: legend.to_owned(),
            chosen: true,
        };
        check(&scrape, &query).0.join("; ")
    };
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

/// The committed dashboards equal the generator's output, so neither was edited without the other.
#[test]
fn the_dashboards_are_what_the_generator_writes() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let run = Command::new("python3")
        .arg(workspace().join("grafana/generator"))
        .arg("--out")
        .arg(dir.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => {
            return println!("not run: the dashboards' generator, since python3 does not start: {error}");
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = |folder: &std::path::Path| -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).expect("a folder can be listed");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry
                .expect("a folder can be listed")
                .file_name()
                .to_string_lossy()
                .into_owned()
        };
        entries.map(name).collect()
    };
    let committed = workspace().join("grafana/dashboards");
    assert_eq!(names(dir.path()), names(&committed));
    for name in names(&committed) {
        let written = std::fs::read_to_string(dir.path().join(&name)).expect("the generator wrote it");
        assert!(
            written == read(&format!("grafana/dashboards/{name}")),
            "grafana/dashboards/{name} is not what grafana/generator writes; run python3 grafana/generator"
        );
    }
}

/// Goal: every panel shows something when a server is used. Keeps a server busy with a little of
/// everything and runs all queries, and both sides of the alert rules' comparisons, in Prometheus
/// until each has given a number; an error, or a query that stays empty, fails. The alerts that it
/// runs fire at once, so that the dashboards' marks have something to show.
#[test]
fn every_query_has_a_result_in_prometheus() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    // Few, so that calls are held back.
    let store = format!("backup.url=\"file:{}/backups\"", dir.path().display());
    let settings = [
        "rehearsal.servers=2",
        "rehearsal.write_requests_per_second=20",
        &store,
    ];
    let data = dir.path().join("data");
    make_certificate(&data);
    let server = Server::start(&data, &settings);
    let Some(prometheus) = Prometheus::start(dir.path(), server.http, &alerts::rules_that_fire()) else {
        return println!(
            "not run: the dashboard's queries in Prometheus, since it is not installed (Debian: prometheus)"
        );
    };
    let others = others(dir.path(), &server);
    let mut client = Client::connect(server.thrift);
    let mut pending = all_queries();
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
    others.into_iter().for_each(Server::stop);
}
