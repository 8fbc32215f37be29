//! `basalt-bench`: the workloads that load a server, and those that compare it with an echo.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use basalt_test_support::{Server, binary, signal, until};
use serde_json::Value;

use super::shell::shell;
use super::{bench, report, text};

/// The JSON report of a workload.
fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).expect("it was written")).expect("it is JSON")
}

/// The hotspot workload ends well only if it reads back the rows that it wrote; the report shows
/// the differences of the designs.
#[test]
fn hotspot_shows_which_design_is_hot() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let out = dir.path().join("report");
    let small = ["hotspot", "--rows", "6000", "--regions", "4", "--threads", "2"];
    let reads = ["--batch", "50", "--range-reads", "1", "--point-reads", "200"];
    bench(
        &server,
        &[&small[..], &reads, &["--sequence-block", "70"]].concat(),
        &out,
    );
    let (json, _) = report(&out);
    let mut designs = BTreeMap::new();
    for design in json["designs"].as_array().expect("a list") {
        let name = design["name"].as_str().expect("a name");
        assert_eq!(design["range_equal"], true, "{name}");
        assert_eq!(design["range_rows"], 3600, "{name}");
        assert_eq!(design["point_reads"], 200, "{name}");
        assert_eq!(design["point_read_difference"], Value::Null, "{name}");
        assert_eq!(design["region_writes_counted_by"], "server", "{name}");
        for figure in ["ingest_ops_per_second", "range_seconds"] {
            assert!(
                design[figure].as_f64().is_some_and(|figure| figure > 0.0),
                "{name} {figure}"
            );
        }
        for percentile in ["p50", "p99", "p999"] {
            assert!(
                design["latency_seconds"][percentile].is_f64(),
                "{name} {percentile}"
            );
        }
        let regions = design["region_writes"].as_array().expect("a list").iter();
        let writes: u64 = regions.filter_map(|region| region["writes"].as_u64()).sum();
        assert_eq!(writes, 6000, "{name}");
        designs.insert(name.to_owned(), design.clone());
    }
    let markdown = std::fs::read_to_string(out.join("report.md")).expect("Markdown was written");
    for (name, scans, peaks) in [
        ("sequential", 1, 4.0..=4.0),
        ("salted", 16, 1.0..=1.2),
        ("hashed", 256, 1.0..=1.2),
        ("reversed", 1, 1.0..=1.2),
        ("reversed-timestamp", 1, 4.0..=4.0),
        ("random", 1, 1.0..=1.2),
        ("partitioned-id", 64, 1.0..=1.2),
        ("minute", 60, 1.0..=1.3),
    ] {
        let design = &designs[name];
        assert_eq!(design["range_scans"], scans, "{name}");
        let peak = design["region_peak_to_mean"].as_f64().expect("a number");
        assert!(peaks.contains(&peak), "{name}: {peak}");
        assert!(markdown.contains(&format!("| {name} |")), "{markdown}");
    }
    let increments = designs["minute"]["sequence_increments"]
        .as_u64()
        .expect("a number");
    assert!(
        (86..=87).contains(&increments),
        "6000 numbers in blocks of 70 by two tasks: {increments}"
    );
    assert_eq!(designs["salted"]["sequence_increments"], 0);
    let wasted = designs["random"]["range_bytes_read_per_byte_returned"].as_f64();
    assert!(
        wasted.is_some_and(|wasted| wasted > 1.6),
        "the whole table is read: {wasted:?}"
    );
    server.stop();
}

/// Rows that were written and read over either interface make the same figures.
#[test]
fn hotspot_is_the_same_over_both_interfaces() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let small = ["hotspot", "--rows", "6000", "--regions", "4", "--threads", "2"];
    let how = ["--designs", "salted,hashed,random,minute", "--range-reads", "1"];
    let reads = [
        "--batch",
        "50",
        "--point-reads",
        "200",
        "--sequence-block",
        "6000",
    ];
    let mut figures = Vec::new();
    for (api, name) in [
        ("thrift1", "Thrift 1"),
        ("thrift2", "Thrift 2"),
        ("native", "native RPC"),
    ] {
        let out = dir.path().join(api);
        bench(
            &server,
            &[&small[..], &how, &reads, &["--api", api]].concat(),
            &out,
        );
        let (json, html) = report(&out);
        assert_eq!(json["settings"]["api"], name);
        assert!(html.contains(&format!("<dd>{name}</dd>")), "{api}");
        for design in json["designs"].as_array().expect("a list") {
            assert_eq!(design["range_equal"], true, "{api} {design}");
            assert_eq!(design["point_read_difference"], Value::Null, "{api} {design}");
            assert_eq!(design["errors"], 0, "{api} {design}");
            let (figure, increments) = (&design["range_bytes_received"], &design["sequence_increments"]);
            assert!(figure.as_u64() > Some(0), "{api} {design}");
            // Each of two tasks takes a block that is enough for all rows.
            let counted = design["name"] == "minute";
            let expected = if counted { 1..=2 } else { 0..=0 };
            assert!(
                increments.as_u64().is_some_and(|count| expected.contains(&count)),
                "{api} {design}"
            );
        }
        let same = [
            "name",
            "rows",
            "region_writes",
            "range_rows",
            "range_scans",
            "range_bytes_returned",
        ];
        let designs = json["designs"].as_array().expect("a list").iter();
        let of = |design: &Value| same.map(|figure| design[figure].clone());
        figures.push(designs.map(of).collect::<Vec<_>>());
    }
    assert_eq!(figures[0], figures[1], "Thrift 1 and Thrift 2");
    assert_eq!(figures[1], figures[2], "Thrift 2 and native RPC");
    server.stop();
}

/// Flights of a file, written over one interface, are found over both; another design's keys are not. The
/// file has 120 flights, one for each minute from 2001-01-01 00:00 on.
#[test]
fn flights_of_a_file_are_verified() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let flights = basalt_test_support::workspace().join("tests/e2e/tests/tools/flights.parquet");
    let flights = flights.to_str().expect("a path of letters");
    let out = dir.path().join("report");
    let written = [
        "hotspot",
        "--api",
        "thrift1",
        "--input",
        flights,
        "--designs",
        "salted",
    ];
    let few = [
        "--batch",
        "7",
        "--regions",
        "2",
        "--threads",
        "2",
        "--point-reads",
        "50",
    ];
    let kept = ["--keep-tables", "--range-reads", "1"];
    bench(&server, &[&written[..], &few, &kept].concat(), &out);
    let (json, _) = report(&out);
    let file = &json["settings"]["rows"]["file"];
    assert_eq!((&file["flights"], &file["rows"]), (&120.into(), &120.into()));
    let design = &json["designs"][0];
    assert_eq!(
        (&design["range_rows"], &design["range_equal"]),
        (&60.into(), &true.into())
    );
    let verify = |api: &str, design: &str| {
        Command::new(binary("basalt-bench"))
            .args([
                "verify",
                "--api",
                api,
                "--input",
                flights,
                "--table",
                "bench_salted",
            ])
            .args(["--design", design, "--samples", "250"])
            .args(["--target", &server.thrift.to_string()])
            .output()
            .expect("the binary was built")
    };
    for api in ["thrift1", "thrift2", "native"] {
        let found = verify(api, "salted");
        assert_eq!(text(&found.stdout), "250 of 250 flights are equal\n", "{found:?}");
        let missing = verify(api, "sequential");
        assert_eq!(missing.status.code(), Some(1), "{missing:?}");
        let said = text(&missing.stderr);
        assert!(
            said.contains("is missing") && said.contains("0 of 250 flights are equal"),
            "{said}"
        );
    }
    server.stop();
}

/// Every command of PerformanceEvaluation that both interfaces have, over each of them: all rows are written,
/// found and scanned, and the report says so.
#[test]
fn performance_evaluation_finds_what_it_wrote() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let commands = [
        "sequentialWrite",
        "randomRead",
        "sequentialRead",
        "scan",
        "scanRange10",
        "randomSeekScan",
        "filterScan",
        "increment",
        "append",
        "checkAndPut",
    ];
    for api in ["thrift1", "thrift2", "native"] {
        let out = dir.path().join(api);
        let more: &[&str] = match api {
            "thrift1" => &[],
            _ => &["checkAndDelete", "checkAndMutate"],
        };
        let table = format!("--table=pe_{api}");
        let rest = [
            "--nclients=2",
            "--rows=300",
            "--valueSize=20",
            "--presplit=3",
            "--multiPut=7",
            "--multiGet=5",
        ];
        let last = ["sequentialDelete", "--api", api, &table];
        bench(
            &server,
            &[&["pe"][..], &commands, more, &last, &rest].concat(),
            &out,
        );
        let (json, html) = report(&out);
        assert!(html.contains("scanRange10"));
        let (mut rows, mut operations) = (BTreeMap::new(), BTreeMap::new());
        for phase in json["phases"].as_array().expect("a list") {
            assert_eq!(phase["given_up"], 0, "{phase}");
            let name = phase["name"].as_str().expect("a name");
            let number = |figure: &str| phase[figure].as_u64().expect("a number");
            rows.insert(name, number("rows"));
            operations.insert(name, number("operations"));
        }
        for command in commands.iter().filter(|command| !command.contains("can")) {
            assert_eq!(rows[command], 600, "{api} {command}");
        }
        assert_eq!(rows["scan"], 600, "{api}");
        // From a random row on: all rows that are asked for, but for the starts near the end.
        assert!((5_700..=6_000).contains(&rows["scanRange10"]), "{api}: {rows:?}");
        // 6 scans of up to 120 rows.
        assert!((1..=720).contains(&rows["randomSeekScan"]), "{api}: {rows:?}");
        // A scan for each row, and no row has the random value.
        assert_eq!((operations["filterScan"], rows["filterScan"]), (600, 0), "{api}");
        assert_eq!(rows["sequentialDelete"], 600, "{api}");
    }
    server.stop();
}

/// Each core workload of YCSB runs its mix; the loaded records are found; two reports can be
/// compared.
#[test]
fn ycsb_workloads_find_what_was_loaded() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let small = [
        "--records",
        "300",
        "--operations",
        "400",
        "--threads",
        "2",
        "-p",
        "fieldlength=10",
    ];
    let mut previous: Option<PathBuf> = None;
    for (workload, api, kinds) in [
        ("a", "thrift1", ["read", "update"]),
        ("b", "thrift2", ["read", "update"]),
        ("d", "native", ["read", "insert"]),
        ("e", "thrift1", ["insert", "scan"]),
        ("f", "native", ["read", "read-modify-write"]),
    ] {
        let out = dir.path().join(workload);
        let how = [
            "ycsb",
            workload,
            "--api",
            api,
            "--replace-tables",
            "--presplit",
            "3",
        ];
        bench(&server, &[&how[..], &small].concat(), &out);
        let (json, _) = report(&out);
        assert_eq!(json["phases"][0]["rows"], 300, "{workload}");
        let run = &json["phases"][1];
        assert_eq!(
            (&run["operations"], &run["given_up"]),
            (&400.into(), &0.into()),
            "{workload}"
        );
        let found: Vec<&Value> = run["kinds"].as_array().expect("a list").iter().collect();
        assert_eq!(
            found.iter().map(|kind| &kind["name"]).collect::<Vec<_>>(),
            kinds,
            "{workload}"
        );
        for kind in found {
            let per_operation = if kind["name"] == "read-modify-write" { 2 } else { 1 };
            let operations = kind["operations"].as_u64().expect("a number");
            let rows = kind["rows"].as_u64().expect("a number");
            if kind["name"] == "scan" {
                assert!(rows > operations, "scans of up to 100 rows: {kind}");
            } else {
                assert_eq!(
                    rows,
                    operations * per_operation,
                    "{workload}: a row was not found"
                );
            }
        }
        previous = match previous {
            None => Some(out),
            Some(before) => {
                let compare = Command::new(binary("basalt-bench"))
                    .args(["compare", "--markdown", "--only", "ops_per_second"])
                    .args([&before, &out])
                    .output()
                    .expect("the binary was built");
                assert!(compare.status.success(), "{compare:?}");
                let printed = text(&compare.stdout);
                assert!(printed.contains("| load ops_per_second |"), "{printed}");
                Some(out)
            }
        };
    }
    server.stop();
}

/// With `dataintegrity=true` values that are not of their keys are found, over either interface.
#[test]
fn ycsb_checks_values_that_are_of_their_keys() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let small = ["--records", "50", "--operations", "100", "--threads", "2"];
    for api in ["thrift1", "thrift2"] {
        for (loaded, given_up) in [("true", 0), ("false", 100)] {
            let run = |phase: &[&str], integrity: &str| {
                let out = dir.path().join(api);
                let property = format!("dataintegrity={integrity}");
                let how = ["ycsb", "c", "--api", api, "-p", &property];
                bench(&server, &[&how[..], &small, phase].concat(), &out);
                report(&out).0
            };
            run(&["--phase", "load", "--replace-tables"], loaded);
            let phase = &run(&["--phase", "run"], "true")["phases"][0];
            assert_eq!(phase["given_up"], given_up, "{api} {loaded} {phase}");
            let differs = phase.to_string().contains("has another value in field");
            assert_eq!(differs, given_up > 0, "{api} {loaded} {phase}");
        }
    }
    server.stop();
}

/// Ids that follow time make a hot region and a table in order; those that are spread do neither. All rows
/// are found again.
#[test]
fn ids_show_order_against_spread() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let out = dir.path().join("report");
    let small = [
        "ids",
        "--rows",
        "6000",
        "--regions",
        "4",
        "--threads",
        "2",
        "--batch",
        "50",
    ];
    bench(&server, &small, &out);
    let (json, html) = report(&out);
    assert!(html.contains("disk bytes per row"));
    let mut ids = BTreeMap::new();
    for phase in json["phases"].as_array().expect("a list") {
        assert_eq!(
            (&phase["rows"], &phase["given_up"]),
            (&6000.into(), &0.into()),
            "{phase}"
        );
        ids.insert(phase["name"].as_str().expect("a name"), &phase["figures"]);
    }
    for (name, key_bytes, peaks, ascending) in [
        ("uuid4", 16.0, 1.0..=1.2, 0.45..=0.55),
        ("uuid7", 16.0, 4.0..=4.0, 0.5..=0.6),
        ("snowflake", 8.0, 4.0..=4.0, 0.7..=1.0),
        ("objectid", 12.0, 4.0..=4.0, 0.2..=0.8),
        ("partitioned-id", 8.0, 1.0..=1.2, 0.45..=0.55),
        ("minute", 22.0, 4.0..=4.0, 1.0..=1.0),
    ] {
        let figure = |figure: &str| ids[name][figure].as_f64().expect("a number");
        assert_eq!(figure("key_bytes").to_bits(), f64::to_bits(key_bytes), "{name}");
        assert!(
            peaks.contains(&figure("region_peak_to_mean")),
            "{name}: {}",
            ids[name]
        );
        assert!(
            ascending.contains(&figure("ascending_share")),
            "{name}: {}",
            ids[name]
        );
        let disk = figure("disk_bytes_per_row");
        assert!((key_bytes + 20.0..200.0).contains(&disk), "{name}: {disk}");
    }
    server.stop();
}

/// Arguments of a `roundtrip` of one round of a second, over two connections.
const SHORT_ROUNDTRIP: &[&str] = &[
    "roundtrip",
    "--connections",
    "2",
    "--seconds",
    "1",
    "--rounds",
    "1",
    "--value-bytes",
    "10",
];

/// Runs a [`SHORT_ROUNDTRIP`] with more arguments and returns its comparisons. Panics unless they are
/// of `calls`, in that order, and every side answered calls.
fn comparisons(server: &Server, arguments: &[&str], out: &Path, calls: &[&str]) -> Vec<Value> {
    bench(server, &[SHORT_ROUNDTRIP, arguments].concat(), out);
    let json = json(&out.join("roundtrip.json"));
    let comparisons = json["comparisons"].as_array().expect("a list");
    let compared = comparisons
        .iter()
        .map(|one| one["call"].as_str().expect("a name"));
    assert_eq!(compared.collect::<Vec<_>>(), calls);
    for comparison in comparisons {
        let sides = comparison["sides"].as_array().expect("a list");
        assert!(
            sides
                .iter()
                .all(|side| side["calls_per_second"][0].as_f64().expect("a number") > 0.0),
            "{comparison}"
        );
    }
    comparisons.clone()
}

/// Ready-made calls end well only if every reply is the one that is known; the echo is a process of its own.
#[test]
fn single_calls_are_compared_with_an_echo() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let calls = ["put-batch", "increment", "filtered-scan"];
    let arguments = ["--calls", "put-batch,increment,filtered-scan"];
    for comparison in comparisons(&server, &arguments, dir.path(), &calls) {
        assert_eq!(comparison["sides"][1]["name"], "TCP echo");
    }
    // The table is gone again.
    assert!(!shell(&server, "list").contains("bench_roundtrip"));
    server.stop();
}

/// Calls over native RPC, with one and with several in flight on a connection. An option for Thrift is
/// refused with the one to use.
#[test]
fn single_calls_are_compared_over_native_rpc() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let calls = ["get", "put", "put-batch", "increment", "scan"];
    for inflight in ["1", "16"] {
        let arguments = ["--api", "native", "--inflight", inflight];
        comparisons(&server, &arguments, dir.path(), &calls);
    }
    let refused = Command::new(binary("basalt-bench"))
        .args(SHORT_ROUNDTRIP)
        .args(["--api", "native", "--pipeline", "4"])
        .args(["--target", &server.thrift.to_string()])
        .output()
        .expect("the binary was built");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("use --inflight"), "{refused:?}");
    assert!(!shell(&server, "list").contains("bench_roundtrip"));
    server.stop();
}

/// Goal: sides that have one load answer all of it, and the load is within the capacity of the
/// slowest. Method: the server and the echo, at a twentieth of the slower one's calls a second.
#[test]
fn sides_are_compared_under_one_load() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let arguments = [
        "roundtrip",
        "--calls",
        "get,scan",
        "--connections",
        "4",
        "--seconds",
        "1",
        "--rounds",
        "2",
        "--share-of-slowest",
        "0.05",
    ];
    bench(&server, &arguments, dir.path());
    let json = json(&dir.path().join("roundtrip.json"));
    assert!(json["comparisons"].as_array().unwrap().is_empty());
    let comparisons = json["same_load"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2, "{json}");
    for comparison in comparisons {
        let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
        let offered = number(comparison, "offered_per_second");
        let sides = comparison["sides"].as_array().unwrap();
        let peaks = sides.iter().map(|side| number(side, "peak_per_second"));
        let slowest = peaks.fold(f64::INFINITY, f64::min);
        assert!((offered - slowest * 0.05).abs() < 1e-6 * offered, "{comparison}");
        for side in sides {
            let latency = &side["latency_seconds"];
            let answered = number(latency, "count") + number(side, "unsent");
            assert!(
                (answered - 2.0 * offered).abs() <= 8.0,
                "{answered} of {offered} in each round"
            );
            assert!(number(latency, "p50") >= number(&side["from_sent_seconds"], "p50"));
        }
    }
    assert!(!shell(&server, "list").contains("bench_roundtrip"));
    server.stop();
}

/// Calls that are due are sent and answered, at half of the server's capacity, and none is left.
#[test]
fn calls_are_sent_when_they_are_due() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let arguments = [
        "overload",
        "--calls",
        "scan",
        "--connections",
        "2",
        "--crowd",
        "8",
        "--shares",
        "0.1",
        "--seconds",
        "1",
        "--value-bytes",
        "10",
    ];
    bench(&server, &arguments, dir.path());
    let json = json(&dir.path().join("overload.json"));
    let [peak, tenth] = json["phases"].as_array().unwrap().as_slice() else {
        panic!("not two phases: {json}");
    };
    assert!(peak["share_of_peak"].is_null());
    let number = |phase: &Value, name: &str| phase[name].as_f64().unwrap();
    let offered = number(tenth, "offered_per_second");
    assert!((offered - number(peak, "accepted_per_second") / 10.0).abs() < 1e-6 * offered);
    // Every call that was due in that second was sent and accepted, but for those whose connection came too
    // late.
    let answered = number(&tenth["accepted_seconds"], "count") + number(tenth, "unsent");
    assert!((answered - offered).abs() <= 8.0, "{answered} of {offered}");
    assert!(number(tenth, "refused_per_second") == 0.0);
    assert!(!shell(&server, "list").contains("bench_roundtrip"));
    server.stop();
}

/// `basalt-bench ycsb` with more operations than it can finish during the test.
fn long_run(server: &Server, out: &Path) -> Command {
    let mut bench = Command::new(binary("basalt-bench"));
    bench
        .args([
            "ycsb",
            "a",
            "--api",
            "thrift2",
            "--records",
            "500",
            "--operations",
            "100000000",
            "--threads",
            "2",
        ])
        .args(["--target", &server.thrift.to_string(), "--out"])
        .arg(out)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    bench
}

/// Ctrl-C ends a run. The program prints the figures of the finished load and of the interrupted
/// run.
#[test]
fn ctrl_c_ends_a_run_with_its_figures() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut running = long_run(&server, &dir.path().join("report"))
        .spawn()
        .expect("the binary was built");
    // The first get shows that the load is finished.
    until("a get", || {
        assert!(
            running.try_wait().expect("ours").is_none(),
            "it runs until Ctrl-C"
        );
        server.calls("basalt_requests_total{api=\"thrift2\",method=\"get\"}") > 0
    });
    signal(running.id(), "INT");
    let output = running.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert!(printed.contains("load: 500 operations"), "{printed}");
    assert!(printed.contains("run (broken off): "), "{printed}");
    assert!(
        said.contains("basalt-bench: interrupted; the figures above are all"),
        "{said}"
    );
    server.stop();
}

/// With standard output closed, and standard error too, the program writes its report and exits
/// with 1, without a panic.
#[test]
fn closed_pipes_end_a_run_without_a_panic() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for close_errors in [false, true] {
        let out = dir.path().join("report");
        let mut running = Command::new(binary("basalt-bench"))
            .args([
                "ycsb",
                "c",
                "--replace-tables",
                "--records",
                "100",
                "--operations",
                "100",
                "--threads",
                "1",
            ])
            .args(["--target", &server.thrift.to_string(), "--out"])
            .arg(&out)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the binary was built");
        drop(running.stdout.take());
        if close_errors {
            drop(running.stderr.take());
        }
        let output = running.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(text(&output.stderr), "", "a closed reader causes no error text");
        assert!(
            out.join("report.json").exists(),
            "the report is written before it is printed"
        );
        std::fs::remove_dir_all(&out).expect("it is ours");
    }
    server.stop();
}
