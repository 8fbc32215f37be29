//! `basalt-shell` and `basalt-bench` as programs, against the real server.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use basalt_tests::{Python, Server, binary, happybase};

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

/// Every command that the shell promises, piped in as a script does, each with the part of its output that tells its effect.
#[test]
fn the_shell_runs_every_command() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for (commands, expected) in [
        (
            "create 't', {NAME => 'f', VERSIONS => 3}, SPLITS => ['m']",
            "Created table t",
        ),
        ("list", "t"),
        ("exists 't'", "Table t does exist"),
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
        ("split 't', 'f'\nlist_regions 't'", "3 rows"),
        ("status", "1 servers, 0 dead"),
        ("disable 't'\nis_disabled 't'", "true"),
        ("enable 't'\nis_enabled 't'", "true"),
        ("truncate 't'\ncount 't'", "0 row(s)"),
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
    os.write(terminal, line.encode().replace(b"UP", b"\x1b[A") + b"\r")
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

/// The hotspot workload ends well only if what it reads back is what it wrote; the report tells the designs apart.
#[test]
fn hotspot_shows_which_design_is_hot() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let out = dir.path().join("report");
    let output = Command::new(binary("basalt-bench"))
        .args(["hotspot", "--target", &server.thrift.to_string()])
        .args(["--rows", "6000", "--regions", "4", "--threads", "2"])
        .args(["--batch", "50", "--range-reads", "1", "--out"])
        .arg(&out)
        .output()
        .expect("the binary was built");
    assert!(output.status.success(), "{output:?}");
    let html = std::fs::read_to_string(out.join("hotspot.html")).expect("a report was written");
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(outside), "the report needs a network: {outside}");
    }
    assert!(html.contains("new uPlot("), "the report draws nothing");
    let json = std::fs::read(out.join("hotspot.json")).expect("figures were written");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let mut peaks = std::collections::BTreeMap::new();
    for design in json["designs"].as_array().expect("a list") {
        let name = design["design"]
            .as_str()
            .or_else(|| design["name"].as_str())
            .expect("a name");
        assert_eq!(design["range_read"]["equal"], true, "{name}");
        assert_eq!(design["region_writes"]["source"], "server", "{name}");
        let writes: Vec<u64> = design["region_writes"]["regions"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|region| region["writes"].as_u64())
            .collect();
        assert_eq!(writes.iter().sum::<u64>(), 6000, "{name}: {writes:?}");
        peaks.insert(name.to_owned(), writes.into_iter().max().unwrap_or_default());
    }
    assert_eq!(
        peaks["sequential"], 6000,
        "one region takes every sequential write: {peaks:?}"
    );
    for spread in ["salted", "hashed"] {
        assert!(
            (1500..2000).contains(&peaks[spread]),
            "four regions share the {spread} rows: {peaks:?}"
        );
    }
    server.stop();
}
