//! `basalt-shell` and `basalt-bench` as programs, against the real server.

mod lab;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use basalt_tests::{Python, Server, binary, happybase};
use serde_json::Value;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The shell with this text on its standard input.
fn piped(server: &Server, input: &str) -> Output {
    let mut shell = Command::new(binary("basalt-shell"))
        .args(["--target", &server.thrift.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let mut stdin = shell.stdin.take().expect("standard input is piped");
    stdin
        .write_all(input.as_bytes())
        .expect("the shell reads its input");
    drop(stdin);
    shell.wait_with_output().expect("the shell ends")
}

/// Runs these commands and returns what they print; panics when one fails.
fn shell(server: &Server, input: &str) -> String {
    let output = piped(server, input);
    assert!(output.status.success(), "{input}\n{output:?}");
    text(&output.stdout)
}

/// Moving regions of a rehearsal, and quotas, with the words of HBase's shell.
#[test]
fn the_shell_rehearses_and_sets_quotas() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["rehearsal.servers=2"]);
    let regions = shell(&server, "create 't', 'f', SPLITS => ['m']\nlist_regions 't'");
    // The encoded name of the second region: what stands between the last two dots of its name.
    let second = regions
        .lines()
        .find(|line| line.contains(" t,m,"))
        .and_then(|line| line.split(" | ").nth(1)?.trim().split('.').nth(1))
        .unwrap_or_else(|| panic!("{regions}"));
    let on = |server: u16| format!("HOST                       REGION\n rehearsal-{server}:");
    let located = "locate_region 't', 'z'";
    for (commands, expected) in [
        ("status".to_owned(), "2 servers, 0 dead, 1.0000 average load"),
        ("status".to_owned(), "a rehearsal: this one server presents itself as 2 virtual servers"),
        (located.to_owned(), &on(2)),
        (format!("move '{second}', 'rehearsal-1'\n{located}"), &on(1)),
        ("balancer".to_owned(), "moved 1 regions"),
        ("balance".to_owned(), "moved 0 regions"),
        (format!("move '{second}'\n{located}"), "rehearsal-"),
        (format!("unassign '{second}'"), "Took"),
        (format!("assign '{second}'\nput 't', 'z', 'f:q', 'v'\ncount 't'"), "1 row(s)"),
        (
            "set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, USER => 'u1', TABLE => 't', LIMIT => '10req/sec'\n\
             set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => '10M/min'\nlist_quotas"
                .to_owned(),
            " USER => u1, TABLE => t    TYPE => THROTTLE, THROTTLE_TYPE => WRITE_NUMBER, LIMIT => 10req/sec, SCOPE => MACHINE\n2 row(s)",
        ),
        ("list_quotas TABLE => '.*'".to_owned(), "THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 10M/min, SCOPE => MACHINE\n1 row(s)"),
        (
            "set_quota TYPE => THROTTLE, USER => 'u1', TABLE => 't', LIMIT => NONE\n\
             set_quota TYPE => THROTTLE, THROTTLE_TYPE => REQUEST, TABLE => 't', LIMIT => NONE\nlist_quotas"
                .to_owned(),
            "0 row(s)",
        ),
    ] {
        let output = shell(&server, &commands);
        assert!(output.contains(expected), "{commands}\n{output}");
    }
    let refused = piped(&server, &format!("unassign '{second}'\nget 't', 'z'"));
    assert!(!refused.status.success());
    let why = text(&refused.stderr);
    assert!(why.contains("is not online on rehearsal-"), "{why}");
}

/// Snapshots, with the words of HBase's shell.
#[test]
fn the_shell_takes_snapshots() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for (commands, expected) in [
        (
            "create 't', 'f'\nput 't', 'a', 'f:q', 'first'\nsnapshot 't', 's1'\nlist_snapshots",
            "SNAPSHOT                   TABLE + CREATION TIME + TTL(Sec)\n s1                        t (2",
        ),
        (
            "snapshot 't', 's2', {SKIP_FLUSH => true, TTL => 86400}\nlist_snapshots 's2'",
            ") 86400\n1 row(s)",
        ),
        ("list_snapshots 's1'", ") FOREVER\n1 row(s)"),
        ("list_snapshots 's'", "0 row(s)"),
        (
            "list_table_snapshots 't', '.*2'",
            " s2                        t (2",
        ),
        (
            "put 't', 'b', 'f:q', 'later'\nclone_snapshot 's1', 'c'\ncount 'c'",
            "1 row(s)",
        ),
        (
            "disable 't'\nrestore_snapshot 's1'\nis_disabled 't'\nenable 't'\ncount 't'",
            "1 row(s)",
        ),
        ("delete_snapshot 's1'\nlist_snapshots", "1 row(s)"),
        (
            "snapshot 'c', 'of-c'\ndelete_table_snapshots 'c'\nlist_snapshots",
            "1 snapshots successfully deleted.",
        ),
        ("delete_all_snapshot 'x.*'", "No snapshots matched the regex x.*"),
        (
            "delete_table_snapshots 'x'",
            "No snapshots matched the table name regular expression x and the snapshot name regular expression .*",
        ),
        (
            "snapshot 't', 's3'\ndelete_all_snapshot 's.*'\nlist_snapshots",
            "2 snapshots successfully deleted.",
        ),
        ("list_snapshots", "0 row(s)"),
    ] {
        let output = shell(&server, commands);
        assert!(output.contains(expected), "{commands}\n{output}");
    }
    for (commands, why) in [
        (
            "restore_snapshot 'x'",
            "ERROR: Snapshot 'x' doesn't exist on the filesystem",
        ),
        (
            "snapshot 'x', 's'",
            "ERROR: Table 'x' doesn't exist, can't take snapshot.",
        ),
        (
            "snapshot 't', 's'\nclone_snapshot 's', 'c'",
            "ERROR: Table already exists: c!",
        ),
        ("clone_snapshot 's', 'n:c'", "ERROR: Unknown namespace n!"),
        ("snapshot 't', 'a/b'", "ERROR: Illegal character code:47"),
        (
            "snapshot 't', 'b', {TLL => 1}",
            "unknown option TLL; known are SKIP_FLUSH, TTL",
        ),
    ] {
        let refused = piped(&server, commands);
        assert!(!refused.status.success(), "{commands}");
        let said = text(&refused.stderr);
        assert!(said.contains(why), "{commands}: {said}");
    }
    server.stop();
}

/// Commands on all tables that match, with the words of HBase's shell: whole names count, and one that fails keeps none of the others.
#[test]
fn the_shell_changes_all_tables_that_match() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let states = "is_disabled 'a1'\nis_disabled 'a2'\nis_disabled 'n:a3'\nis_disabled 'ba'";
    let told = |commands: &str| -> Vec<String> {
        let printed = shell(&server, commands);
        let lines = printed.lines().filter(|line| !line.starts_with("Took"));
        lines.map(str::to_owned).collect()
    };
    shell(
        &server,
        "create_namespace 'n'\ncreate 'a1', 'f'\ncreate 'a2', 'f'\ncreate 'n:a3', 'f'\ncreate 'ba', 'f'",
    );
    for (commands, expected) in [
        ("disable_all 'a'", &["No tables matched the regex a"][..]),
        (
            "disable_all 'a.*'",
            &["a1", "a2", "2 tables successfully disabled"],
        ),
        (states, &["true", "true", "false", "false"]),
        ("disable_all 'n:.*'", &["n:a3", "1 tables successfully disabled"]),
        // What is enabled already counts, as with enable.
        (
            "enable_all '.*a[23]|ba'",
            &["a2", "ba", "n:a3", "3 tables successfully enabled"],
        ),
        (states, &["true", "false", "false", "false"]),
        ("drop_all 'x'", &["No tables matched the regex x"]),
    ] {
        assert_eq!(told(commands), expected, "{commands}");
    }
    let refused = piped(&server, "drop_all 'a.'\n");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        text(&refused.stdout).contains("1 tables successfully dropped"),
        "{refused:?}"
    );
    assert_eq!(
        text(&refused.stderr),
        "ERROR: 1 tables not dropped due to an exception: a2: Table a2 is enabled. Disable it first.\n"
    );
    assert_eq!(told("list"), ["TABLE", "a2", "ba", "n:a3", "3 row(s)"]);
    let wrong = piped(&server, "drop_all '('");
    assert!(!wrong.status.success() && !wrong.stderr.is_empty(), "{wrong:?}");
    server.stop();
}

/// The names that the shell shows are those that the server knows.
#[test]
fn the_shell_shows_filters_that_the_server_knows() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let printed = shell(&server, "create 't', 'f'\nshow_filters");
    let names = printed.lines().filter(|line| line.ends_with("Filter"));
    let scan = |name: &str| piped(&server, &format!("scan 't', {{FILTER => \"{name}()\"}}"));
    let is_unknown =
        |name: &str| text(&scan(name).stderr).contains(&format!("Filter Name {name} not supported"));
    assert!(is_unknown("NoSuchFilter"), "{:?}", scan("NoSuchFilter"));
    let mut shown = 0;
    for name in names {
        assert!(!is_unknown(name), "{name}");
        shown += 1;
    }
    assert_eq!(shown, 19);
    server.stop();
}

/// Flushes and compactions of one region, by either of its names.
#[test]
fn the_shell_flushes_and_compacts_one_region() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let regions = shell(
        &server,
        "create 't', 'f', SPLITS => ['m']\nput 't', 'a', 'f:q', 'v'\nput 't', 'z', 'f:q', 'v'\nlist_regions 't'",
    );
    let name = regions.lines().find(|line| line.contains(" t,m,"));
    let name = name.and_then(|line| line.split(" | ").nth(1));
    let name = name.unwrap_or_else(|| panic!("{regions}")).trim();
    let encoded = name
        .split('.')
        .nth(1)
        .expect("a region's name ends in its hex digits");
    let files = || {
        let printed = shell(&server, "status");
        let count = printed.split(" store files").next();
        let count = count.and_then(|before| before.rsplit(' ').next()?.parse::<u32>().ok());
        count.unwrap_or_else(|| panic!("{printed}"))
    };
    for (region, expected) in [(name, 1), (encoded, 2)] {
        shell(&server, &format!("put 't', 'z', 'f:q', 'w'\nflush '{region}'"));
        assert_eq!(files(), expected, "{region}");
    }
    shell(&server, "flush 't'");
    assert_eq!(files(), 3, "the other region was not flushed before");
    shell(
        &server,
        &format!("compact '{name}'\nmajor_compact '{encoded}', 'f'"),
    );
    let refused = piped(&server, &format!("compact '{name}', 'g'"));
    assert!(text(&refused.stderr).contains('g'), "{refused:?}");
    server.stop();
}

/// Every command that the shell promises, piped in as a script does, each with the part of its output that tells its effect.
#[test]
fn the_shell_runs_every_command() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["slow_log.threshold_ms=0"]);
    for (commands, expected) in [
        (
            "create 't', {NAME => 'f', VERSIONS => 3}, SPLITS => ['m']",
            "Created table t",
        ),
        ("list", "t"),
        ("exists 't'", "Table t does exist"),
        ("compaction_switch false", " true\n"),
        ("compaction_switch true", " false\n"),
        ("flush_switch false\nprocesslist", "Flushes are paused."),
        ("flush_switch true\nprocesslist", " 0 jobs run;"),
        ("compaction_state 't'", "NONE"),
        ("describe 't'", "VERSIONS => '3'"),
        (
            // Two puts of one millisecond would be one version.
            "put 't', 'a', 'f:q', 'one', 1\nput 't', 'a', 'f:q', 'two', 2\nput 't', 'z', 'f:q', 'last'\n\
             get 't', 'a', {COLUMN => 'f:q', VERSIONS => 2}",
            "value=one",
        ),
        ("scan 't', {STARTROW => 'b'}", "value=last"),
        ("count 't'", "2 row(s)"),
        (
            "incr 't', 'n', 'f:c', 5\nget_counter 't', 'n', 'f:c'",
            "COUNTER VALUE = 5",
        ),
        ("append 't', 'a', 'f:q', '!'\nget 't', 'a'", "value=two!"),
        // As in HBase's shell, one version goes, and the one below it shows.
        ("delete 't', 'a', 'f:q'\nget 't', 'a'", "value=two\n"),
        ("deleteall 't', 'z'\ncount 't'", "2 row(s)"),
        (
            "alter 't', {NAME => 'g', BLOOMFILTER => 'ROWCOL'}\ndescribe 't'",
            "NAME => 'g'",
        ),
        ("flush 't'", "Took"),
        ("compact 't'\nmajor_compact 't'", "Took"),
        ("list_quota_table_sizes", "TABLE                      SIZE\n t  "),
        ("split 't', 'f'\nlist_regions 't'", "3 rows"),
        (
            "get 't', 'a'\nclear_block_cache 't'\nclear_block_cache",
            "evictedBlocks=",
        ),
        ("get_slowlog_responses '*', {'LIMIT' => 5}", "5 call(s)"),
        (
            "get_slowlog_responses '*', {TABLE_NAME => 't', LIMIT => 1000}",
            "createTable took",
        ),
        ("get_largelog_responses", "0 call(s)"),
        (
            "clear_slowlog_responses",
            "Cleared Slowlog responses from 1/1 RegionServers",
        ),
        ("alter_status 't'", "3/3 regions updated.\nDone."),
        (
            "clone_table_schema 't', 'copy'\nlist_regions 'copy'\ndescribe 'copy'",
            "VERSIONS => '3'",
        ),
        ("list_regions 'copy'", "3 rows"),
        (
            "clone_table_schema 't', 'one', false\nlist_regions 'one'",
            "1 rows",
        ),
        (
            "create_namespace 'n'\nalter_namespace 'n', {METHOD => 'set', 'k' => 'v'}\ndescribe_namespace 'n'",
            "k => 'v'",
        ),
        (
            "alter_namespace 'n', {METHOD => 'unset', NAME => 'k'}\ndescribe_namespace 'n'",
            "{NAME => 'n'}",
        ),
        (
            "count 't', INTERVAL => 1, CACHE => 1",
            "Current count: 1, row: a\n",
        ),
        ("status", "1 servers, 0 dead"),
        ("disable 't'\nis_disabled 't'", "true"),
        ("enable 't'\nis_enabled 't'", "true"),
        ("truncate 't'\ncount 't'", "0 row(s)"),
        (
            "snapshot 'copy', 's'\nlist_snapshot_sizes",
            "SNAPSHOT                   SIZE\n s                         0\n1 row(s)",
        ),
        ("show_filters", "\nSingleColumnValueFilter\n"),
        ("disable 't'\ndrop 't'\nexists 't'", "Table t does not exist"),
    ] {
        let printed = shell(&server, commands);
        assert!(printed.contains(expected), "{commands}\nprinted\n{printed}");
    }
    server.stop();
}

/// A script stops at its first error, says what is wrong in one line, and ends with 1; `-e` runs one command after the other.
#[test]
fn the_shell_stops_a_script_at_the_first_error() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let output = piped(
        &server,
        "create 't', 'f'\nput 't', 'r', 'g:q', 'v'\nlist_namespace\n",
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("Column family g does not exist in table t"),
        "{output:?}"
    );
    assert!(!text(&output.stdout).contains("NAMESPACE"), "{output:?}");

    let output = Command::new(binary("basalt-shell"))
        .args(["--target", &server.thrift.to_string()])
        .args(["-e", "put 't', 'r', 'f:q', 'v'", "-e", "get 't', 'r'"])
        .output()
        .expect("the binary was built");
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("value=v"), "{output:?}");
    server.stop();
}

/// Opens a terminal, types into a shell there and prints what the screen showed.
const TYPE: &str = r#"
import os, pty, sys
program, target, keys = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.execv(program, [program, "--target", target])
screen = b""
for line in keys.split("|"):
    while not screen.endswith((b"> ", b"* ")) and b"> " not in screen[-40:]:
        screen += os.read(terminal, 4096)
    print(screen.decode(errors="replace"))
    screen = b""
    os.write(terminal, line.encode().replace(b"UP", b"\x1b[A").replace(b"TAB", b"\t") + b"\r")
try:
    while chunk := os.read(terminal, 4096):
        screen += chunk
except OSError:
    pass  # Linux's way to say that the other side is closed.
print(screen.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

fn typed(python: &Python, server: &Server, keys: &str) -> String {
    let shell = binary("basalt-shell");
    let shell = shell.to_str().expect("a path in UTF-8");
    python
        .run(TYPE, &[shell, &server.thrift.to_string(), keys])
        .unwrap_or_else(|error| panic!("{keys}\n{error}"))
}

/// A person at a terminal: a wrong line does not end the shell, and the last session's lines come back with the up key.
#[test]
fn the_shell_remembers_what_was_typed() {
    let Some(python) = happybase() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let python = python.with_home(dir.path());
    let screen = typed(&python, &server, "nonsense 1|create 'remembered', 'f'|exit");
    assert!(screen.contains("nonsense"), "{screen}");
    assert!(screen.contains("Created table remembered"), "{screen}");
    let screen = typed(&python, &server, "UPUP|exit");
    assert!(
        screen.contains("remembered already exists") || screen.contains("Table already exists"),
        "the create of the first session was not run again:\n{screen}"
    );
    server.stop();
}

/// The tab key completes a command, a table that the server has, and an option.
#[test]
fn the_shell_completes_what_is_typed() {
    let Some(python) = happybase() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let python = python.with_home(dir.path());
    shell(
        &server,
        "create 'completed', 'f'\nput 'completed', 'a', 'f:q', 'one'\nput 'completed', 'b', 'f:q', 'two'",
    );
    let screen = typed(&python, &server, "scaTAB'compTAB, {LIMTAB1}|exit");
    assert!(
        screen.contains("scan 'completed', {LIMIT => ") && screen.contains("1 row(s)"),
        "{screen}"
    );
    assert!(
        screen.contains("value=one") && !screen.contains("value=two"),
        "{screen}"
    );
    server.stop();
}

/// Runs a workload of the load generator; panics when it fails.
fn bench(server: &Server, arguments: &[&str], out: &Path) -> String {
    let output = Command::new(binary("basalt-bench"))
        .args(arguments)
        .args(["--target", &server.thrift.to_string(), "--out"])
        .arg(out)
        .output()
        .expect("the binary was built");
    assert!(output.status.success(), "{arguments:?}\n{output:?}");
    text(&output.stdout)
}

/// The JSON of a report, and its HTML, which must not need a network.
fn report(out: &Path) -> (Value, String) {
    let html = std::fs::read_to_string(out.join("report.html")).expect("a page was written");
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(outside), "the report needs a network: {outside}");
    }
    assert!(html.contains("new uPlot("), "the report draws nothing");
    let json = std::fs::read(out.join("report.json")).expect("figures were written");
    (serde_json::from_slice(&json).expect("JSON"), html)
}

/// The hotspot workload ends well only if what it reads back is what it wrote; the report tells the designs apart.
#[test]
fn hotspot_shows_which_design_is_hot() {
    let dir = tempfile::tempdir().expect("a temporary folder");
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
    let dir = tempfile::tempdir().expect("a temporary folder");
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
    for (api, name) in [("thrift1", "Thrift 1"), ("thrift2", "Thrift 2")] {
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
    server.stop();
}

/// Flights of a file, written over one interface, are found over both; another design's keys are not. The file has 120
/// flights, one for each minute from 2001-01-01 00:00 on.
#[test]
fn flights_of_a_file_are_verified() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let flights = basalt_tests::workspace().join("tests/tests/tools/flights.parquet");
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
    for api in ["thrift1", "thrift2"] {
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

/// Every command of PerformanceEvaluation that both interfaces have, over each of them: all rows are written, found and
/// scanned, and the report says so.
#[test]
fn performance_evaluation_finds_what_it_wrote() {
    let dir = tempfile::tempdir().expect("a temporary folder");
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
    for api in ["thrift1", "thrift2"] {
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

/// Each core workload of YCSB runs its mix; what was loaded is found; two reports can be compared.
#[test]
fn ycsb_workloads_find_what_was_loaded() {
    let dir = tempfile::tempdir().expect("a temporary folder");
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
        ("d", "thrift2", ["read", "insert"]),
        ("e", "thrift1", ["insert", "scan"]),
        ("f", "thrift2", ["read", "read-modify-write"]),
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
    let dir = tempfile::tempdir().expect("a temporary folder");
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

/// Ids that follow time make a hot region and a table in order; those that are spread do neither. All rows are found again.
#[test]
fn ids_show_order_against_spread() {
    let dir = tempfile::tempdir().expect("a temporary folder");
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

/// Ready-made calls end well only if every reply is the one that is known; the echo is a process of its own.
#[test]
fn single_calls_are_compared_with_an_echo() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let arguments = [
        "roundtrip",
        "--calls",
        "put-batch,increment",
        "--connections",
        "2",
        "--seconds",
        "1",
        "--rounds",
        "1",
        "--value-bytes",
        "10",
    ];
    bench(&server, &arguments, dir.path());
    let json: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("roundtrip.json")).unwrap()).unwrap();
    let comparisons = json["comparisons"].as_array().unwrap();
    let calls: Vec<&str> = comparisons
        .iter()
        .map(|one| one["call"].as_str().unwrap())
        .collect();
    assert_eq!(calls, ["put-batch", "increment"]);
    for comparison in comparisons {
        let sides = comparison["sides"].as_array().unwrap();
        assert_eq!(sides[1]["name"], "TCP echo");
        assert!(
            sides
                .iter()
                .all(|side| side["calls_per_second"][0].as_f64().unwrap() > 0.0),
            "{comparison}"
        );
    }
    // The table is gone again.
    assert!(!shell(&server, "list").contains("bench_roundtrip"));
    server.stop();
}

/// Calls that are due are sent and answered, at half of what the server can do, and none is left.
#[test]
fn calls_are_sent_when_they_are_due() {
    let dir = tempfile::tempdir().unwrap();
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
    let json: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("overload.json")).unwrap()).unwrap();
    let [peak, tenth] = json["phases"].as_array().unwrap().as_slice() else {
        panic!("not two phases: {json}");
    };
    assert!(peak["share_of_peak"].is_null());
    let number = |phase: &Value, name: &str| phase[name].as_f64().unwrap();
    let offered = number(tenth, "offered_per_second");
    assert!((offered - number(peak, "accepted_per_second") / 10.0).abs() < 1e-6 * offered);
    // Every call that was due in that second was sent and accepted, but for those whose connection came too late.
    let answered = number(&tenth["accepted_seconds"], "count") + number(tenth, "unsent");
    assert!((answered - offered).abs() <= 8.0, "{answered} of {offered}");
    assert!(number(tenth, "refused_per_second") == 0.0);
    assert!(!shell(&server, "list").contains("bench_roundtrip"));
    server.stop();
}
