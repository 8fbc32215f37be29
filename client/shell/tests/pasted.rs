//! Lines that people paste from HBase's documentation: each runs, or is refused with its reason.

use std::path::Path;

use basalt_client::native::{BASE_ZNODE, Cluster, ClusterOptions, Registry, ZOOKEEPER_PORT};
use basalt_client::{Client, PoolOptions};
use basalt_shell::backend::{Api, Backend};
use basalt_shell::output::{Output, Style};
use basalt_shell::{Session, ShellResult, parse};
use basalt_test_support::Server;

mod printed;

use printed::Printed;

/// The lines, and how each ends.
const PASTED: &str = include_str!("pasted.txt");

/// The reasons of the lines that are refused, and the lines.
fn lines() -> impl Iterator<Item = (Option<&'static str>, &'static str)> {
    let lines = PASTED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| match line.split_at(2) {
        ("+ ", line) => (None, line),
        ("- ", line) => {
            let (reason, line) = line.split_once(" | ").expect("a reason stands before the line");
            (Some(reason), line)
        }
        _ => panic!("{line}: neither + nor -"),
    })
}

/// A session with a server, and its output.
fn session(server: &Server, api: Api, style: Style) -> ShellResult<(Session, Printed)> {
    let target = server.thrift.to_string();
    let registry = Registry::zookeeper(&target, ZOOKEEPER_PORT, BASE_ZNODE)?;
    let backend = Backend {
        api,
        client: Client::new(target, PoolOptions::default())?,
        cluster: Cluster::new(ClusterOptions::new(registry)),
        http: Some(server.http.to_string()),
    };
    let printed = Printed::default();
    let output = Output::new(Box::new(printed.clone())).with_style(style, false);
    Ok((Session::new(backend, output, false), printed))
}

fn start(dir: &Path) -> Server {
    Server::start(&dir.join("data"), &[])
}

/// The 32 hex digits in the full name of a region.
fn encoded(region: &str) -> String {
    let encoded = region.trim_end_matches('.').rsplit('.').next();
    encoded.expect("the name of a region has a point").to_owned()
}

/// The names of the regions of a table.
async fn regions(session: &mut Session, printed: &Printed, table: &str) -> Vec<String> {
    let command = format!("list_regions '{table}', '', ['REGION_NAME']");
    session.execute(&command).await.expect("the table exists");
    let lines = printed.take();
    let names = lines.lines().filter_map(|line| line.trim().strip_suffix(" |"));
    names
        .filter(|name| name.ends_with('.'))
        .map(str::to_owned)
        .collect()
}

/// A line with the names of regions and of the server that it asks for.
async fn filled_in(session: &mut Session, printed: &Printed, line: &str) -> String {
    let mut line = line.to_owned();
    for (table, places) in [
        ("t1", &["{REGION}", "{ENCODED}", "{OTHER}"][..]),
        ("t4", &["{T4}"]),
    ] {
        if places.iter().any(|place| line.contains(place)) {
            let names = regions(session, printed, table).await;
            let last = names.last().expect("a table has regions");
            line = line
                .replace("{REGION}", &names[0])
                .replace("{ENCODED}", &encoded(&names[0]));
            line = line
                .replace("{OTHER}", &encoded(last))
                .replace("{T4}", &encoded(&names[0]));
        }
    }
    if line.contains("{SERVER}") {
        session
            .execute("list_liveservers")
            .await
            .expect("the server lives");
        let servers = printed.take();
        let server = servers.lines().find(|line| line.contains(','));
        line = line.replace("{SERVER}", server.expect("one server lives"));
    }
    line
}

/// Goal: every line of the list runs against a server, or is refused with the stated reason, in one
/// sentence. Method: one session runs all of them in order.
#[tokio::test]
async fn pasted_lines_run_or_say_why_not() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["rehearsal.servers=2"]);
    let (mut session, printed) = session(&server, Api::Thrift, Style::Table).expect("the address is valid");
    let mut wrong = Vec::new();
    let (mut ran, mut refused) = (0, 0);
    for (reason, pasted) in lines() {
        let line = filled_in(&mut session, &printed, pasted).await;
        let outcome = session.execute(&line).await.map_err(|error| error.to_string());
        printed.take();
        match (reason, outcome) {
            (None, Ok(_)) => ran += 1,
            (Some(reason), Err(error)) if error.contains(reason) && !error.contains('\n') => refused += 1,
            (_, outcome) => wrong.push(format!("{pasted}\n    {outcome:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ran + refused >= 140, "{ran} run, {refused} are refused");
    println!("{ran} lines run, {refused} are refused with a reason");
    server.stop();
}

/// Goal: a line that is refused by its form is refused before anything is sent, and all others can
/// be read.
#[test]
fn pasted_lines_can_be_read() {
    for (reason, line) in lines() {
        match parse(line) {
            Ok(statements) => assert!(!statements.is_empty(), "{line}"),
            Err(error) => {
                let reason = reason.unwrap_or_else(|| panic!("{line}: {error}"));
                assert!(error.to_string().contains(reason), "{line}: {error}");
                assert!(!error.incomplete, "{line}");
            }
        }
    }
}

/// Goal: the same rows and values as tables, JSON and CSV, over both interfaces.
#[tokio::test]
async fn rows_and_values_have_three_forms() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = start(dir.path());
    let setup = "create 't', 'f'; put 't', \"a\\x01\", 'f:q', 'x,\"y\"', 5; put 't', 'b', 'f:n', \"\\x00\\x00\\x00\\x07\", 6";
    for (api, style, commands, expected) in [
        (Api::Thrift, Style::Table, setup, "Created table t\n"),
        (
            Api::Thrift,
            Style::Json,
            "scan 't', {COLUMNS => ['f:q', 'f:n:toInt']}; count 't'; exists 'x'; list",
            "{\"row\":\"a\\\\x01\",\"column\":\"f:q\",\"timestamp\":5,\"type\":\"Put\",\"value\":\"x,\\\"y\\\"\"}\n\
             {\"row\":\"b\",\"column\":\"f:n\",\"timestamp\":6,\"type\":\"Put\",\"value\":\"7\"}\n\
             {\"value\":2}\n{\"value\":false}\n{\"table\":\"t\"}\n",
        ),
        (
            Api::Native,
            Style::Csv,
            "get 't', \"a\\x01\"; is_enabled 't'; list_namespace",
            "row,column,timestamp,type,value\na\\x01,f:q,5,Put,\"x,\"\"y\"\"\"\ntrue\nnamespace\ndefault\nhbase\n",
        ),
        (
            Api::Native,
            Style::Json,
            "create 'u', 'f'; put 'u', 'r', 'f:q', 'v'; incr 'u', 'r', 'f:c', 3; puts \"a\\nb\"",
            "{\"value\":3}\n{\"text\":\"a\"}\n{\"text\":\"b\"}\n",
        ),
    ] {
        let (mut session, printed) = session(&server, api, style).expect("the address is valid");
        session
            .execute(commands)
            .await
            .unwrap_or_else(|error| panic!("{commands}: {error}"));
        assert_eq!(printed.take(), expected, "{commands}");
    }
    server.stop();
}

/// Goal: a loop writes what it says, and stops at its first error.
#[tokio::test]
async fn loops_write_rows() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = start(dir.path());
    let (mut session, printed) = session(&server, Api::Thrift, Style::Table).expect("the address is valid");
    let text = "t = create 't', 'f'\nfor i in 1..3 do\n  t.put \"row%02d\" % i, 'f:q', \"v#{i * i}\"\nend\nt.scan FORMATTER => 'toString'";
    session.execute(text).await.expect("the text is valid");
    let lines = printed.take();
    for expected in ["row01", "row03", "value=v9", "3 row(s)"] {
        assert!(lines.contains(expected), "{lines}");
    }
    let error = session
        .execute("5.times { |i| put 't', \"x#{i}\", \"#{'fg'}:q\", i }")
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("Column family fg does not exist"),
        "{error}"
    );
    session.execute("count 't'").await.expect("the table exists");
    assert_eq!(printed.take(), "3 row(s)\n");
    server.stop();
}

/// Goal: the rows of `hbase:meta` are words, and regions have the names that other commands take.
#[tokio::test]
async fn meta_is_readable() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = start(dir.path());
    for api in [Api::Thrift, Api::Native] {
        let (mut session, printed) = session(&server, api, Style::Table).expect("the address is valid");
        session
            .execute("create 't', 'f' if false")
            .await
            .expect_err("that is Ruby");
        if api == Api::Thrift {
            session
                .execute("create 't', 'f', SPLITS => ['m']")
                .await
                .expect("the table is new");
        }
        let names = regions(&mut session, &printed, "t").await;
        let region = names.last().expect("the table has regions");
        for command in [
            "scan 'hbase:meta'".to_owned(),
            format!("get 'hbase:meta', '{region}'"),
        ] {
            session.execute(&command).await.expect("the table exists");
            let lines = printed.take();
            let info = format!(
                "{{ENCODED => {}, NAME => '{region}', STARTKEY => 'm', ENDKEY => ''}}",
                encoded(region)
            );
            assert!(lines.contains(&info) && !lines.contains("PBUF"), "{lines}");
        }
    }
    server.stop();
}
