//! `basalt-shell` as a program: its options for scripts, and what goes to which output.

use std::process::{Command, Output, Stdio};

use basalt_test_support::Server;

fn shell(server: &Server, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_basalt-shell"))
        .args(["--target", &server.thrift.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built")
}

/// Standard output and standard error, without the times.
fn printed(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.split_inclusive('\n');
        lines.filter(|line| !line.starts_with("Took ")).collect()
    })
}

/// Goal: standard output has results only; times and echoed commands are on standard error, and not
/// with -q.
#[test]
fn standard_output_has_results_only() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let text = "t = create 't', 'f'; 2.times { |i| t.put \"r#{i}\", 'f:q', i, 1 }; count 't'";
    let output = shell(&server, &["--echo", "-e", text]);
    assert!(output.status.success(), "{output:?}");
    let times = String::from_utf8_lossy(&output.stderr).matches("Took ").count();
    assert_eq!(times, 3, "a loop has one time: {output:?}");
    let echoed = "create \"t\", \"f\"\nput \"t\", \"r0\", \"f:q\", 0, 1\nput \"t\", \"r1\", \"f:q\", 1, 1\ncount \"t\"\n";
    assert_eq!(
        printed(&output),
        ["Created table t\n2 row(s)\n".to_owned(), echoed.to_owned()]
    );
    let output = shell(&server, &["-q", "-e", "scan 't'", "-e", "exists 't'"]);
    let width = 25;
    let row = |row: u8| {
        format!(
            " {:width$} column=f:q, timestamp=1970-01-01T00:00:00.001, value={row}\n",
            format!("r{row}")
        )
    };
    assert_eq!(
        printed(&output)[0],
        format!("{}{}Table t does exist\n", row(0), row(1))
    );
    assert!(output.stderr.is_empty(), "{output:?}");
    let output = shell(&server, &["--format", "csv", "-q", "-e", "scan 't', LIMIT => 1"]);
    assert_eq!(printed(&output)[0], "r0,f:q,1,Put,0\n");
    server.stop();
}

/// Goal: errors have HBase's form and a remedy; -n stops at the first one.
#[test]
fn errors_are_hbases() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let script = dir.path().join("script");
    std::fs::write(&script, "get 'x', 'r'\ngrant 'u', 'RW'\nlist\n").expect("the folder is ours");
    let script = script.to_str().expect("a path in UTF-8");
    for (arguments, errors, has_list) in [(&[script][..], 2, true), (&["-n", script], 1, false)] {
        let output = shell(&server, arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let [stdout, stderr] = printed(&output);
        assert_eq!(
            stderr.lines().filter(|line| line.starts_with("ERROR: ")).count(),
            errors,
            "{stderr}"
        );
        assert_eq!(stdout.contains("TABLE"), has_list, "{stdout}");
        assert!(stderr.contains("Unknown table x!"), "{stderr}");
    }
    server.stop();
}

/// Goal: without a terminal, `top` is one picture of the rates between two samples.
#[test]
fn top_prints_one_picture_without_a_terminal() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let output = shell(
        &server,
        &[
            "-e",
            "create 'busy', 'f'; top INTERVAL => 0.1; top 'regions', INTERVAL => 0.1",
        ],
    );
    assert!(output.status.success(), "{output:?}");
    let [stdout, _] = printed(&output);
    assert!(
        stdout.contains("NAME") && stdout.contains("REQUESTS/S"),
        "{stdout}"
    );
    assert_eq!(stdout.matches("busy").count(), 3, "{stdout}");
    let http = server.http.to_string();
    let methods = [
        "--format",
        "json",
        "--http",
        &http,
        "-e",
        "top 'methods', INTERVAL => 0.1, LIMIT => 1000",
    ];
    let output = shell(&server, &methods);
    let [stdout, stderr] = printed(&output);
    assert!(
        stdout.contains("{\"name\":\"thrift2 createTable\",\"calls\":0.0,"),
        "{stdout}{stderr}"
    );
    server.stop();
}

/// Goal: the shell names hot rows, as a table and as JSON, and refuses a number that makes no sense.
#[test]
fn hot_rows_are_listed() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let fill = "create 't', 'f'; 20.times { |i| put 't', \"row#{i}\", 'f:q', 'v'; put 't', \"hot\\x01\", 'f:q', 'v' }; get 't', 'row3'";
    let output = shell(&server, &["-e", &format!("{fill}; hot_rows 't', 2")]);
    assert!(output.status.success(), "{output:?}");
    let [stdout, _] = printed(&output);
    assert!(
        stdout.contains("write | hot\\x01 |       20 |  50.0 % |         0 |"),
        "{stdout}"
    );
    assert!(
        stdout.contains(" read |    row3 |        1 | 100.0 % |"),
        "{stdout}"
    );
    assert!(stdout.contains("40 writes of the table from "), "{stdout}");
    let output = shell(&server, &["--format", "json", "-e", "hot_rows 't', 1"]);
    let [stdout, _] = printed(&output);
    assert!(stdout.contains("\"row\":\"hot\\\\x01\""), "{stdout}");
    let output = shell(&server, &["-e", "hot_rows 't', 0"]);
    let [_, stderr] = printed(&output);
    assert!(
        stderr.contains("limit is 0, and must be from 1 to 64"),
        "{stderr}"
    );
    server.stop();
}
