//! The command line apart from `serve`: settings from all places, health, completions, man pages,
//! the version; and SIGHUP.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use basalt_test_support::{Server, binary, signal, until, workspace};

/// Runs the program with these variables, in a directory.
fn run(dir: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(binary("basalt"))
        .current_dir(dir)
        .envs(variables.iter().copied())
        .args(arguments)
        .output()
        .expect("the binary was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Goal: the printed file can be the configuration file, and says where each value comes from.
#[test]
fn the_printed_settings_are_a_configuration_file() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    fs::write(
        dir.path().join("first.toml"),
        "[memstore]\nflush_bytes = \"64MiB\"\n",
    )
    .expect("written");
    let variables = [("BASALT_WAL_STALL_MS", "7s"), ("BASALT_LOG_JSON", "true")];
    let arguments = [
        "config",
        "print",
        "--config",
        "first.toml",
        "--set",
        "log.json=false",
    ];
    let printed = run(dir.path(), &variables, &arguments);
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let file = text(&printed.stdout);
    for part in [
        "flush_bytes = \"64MiB\"",
        "from first.toml",
        "stall_ms = \"7s\"",
        "from BASALT_WAL_STALL_MS",
        "\njson = false",
        "from --set",
        "\n#sync = \"fsync\"",
    ] {
        assert!(file.contains(part), "{part:?} is not in\n{file}");
    }
    fs::write(dir.path().join("second.toml"), &file).expect("written");
    let again = run(dir.path(), &[], &["config", "print", "--config", "second.toml"]);
    let values = |file: &str| -> Vec<String> {
        let lines = file.lines().filter(|line| !line.starts_with("# "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(values(&text(&again.stdout)), values(&file));
    let checked = run(dir.path(), &[], &["config", "check", "--config", "second.toml"]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(
        text(&checked.stdout).contains("the settings are valid: 3 of "),
        "{}",
        text(&checked.stdout)
    );
}

/// Goal: everything that is wrong is named, and the exit code is 1; `serve` refuses the same.
#[test]
fn wrong_settings_are_named() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    for (variables, set, words) in [
        (
            &[("BASALT_TYPO", "1")][..],
            "wal.sync=os",
            &["BASALT_TYPO=1", "there is no setting"][..],
        ),
        (
            &[("BASALT_WAL_SINK", "os")],
            "wal.sync=os",
            &["the nearest name is BASALT_WAL_SYNC"],
        ),
        (
            &[],
            "wal.sink=os",
            &["--set wal.sink=os", "the nearest name is wal.sync"],
        ),
        (
            &[],
            "memstore.flush_bytes=1KiB",
            &["memstore.flush_bytes", "1024", "at least 1MiB"],
        ),
        (
            &[],
            "server.listen=nothing",
            &["server.listen=nothing", "localhost:9090"],
        ),
        (&[], "log.filter=[[[", &["log.filter"]),
    ] {
        for command in [&["config", "check"][..], &["serve", "--data-dir", "d"]] {
            let arguments = [command, &["--set", set]].concat();
            let output = run(dir.path(), variables, &arguments);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
            for word in words {
                assert!(error.contains(word), "{arguments:?}: {word:?} is not in {error}");
            }
        }
    }
    let three = [
        "config",
        "check",
        "--set",
        "wal.stall_ms=0",
        "--set",
        "compaction.ratio=0",
        "--set",
        "compaction.overwritten=1.5",
    ];
    let error = text(&run(dir.path(), &[], &three).stderr);
    assert!(
        ["wal.stall_ms", "compaction.ratio", "compaction.overwritten"]
            .iter()
            .all(|setting| error.contains(setting)),
        "{error}"
    );
    assert!(!dir.path().join("d").exists());
}

#[test]
fn health_says_whether_the_server_is_ready() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let http = server.http.to_string();
    let ready = run(dir.path(), &[], &["health", "--http", &http]);
    assert_eq!((ready.status.code(), &*text(&ready.stdout)), (Some(0), "ready\n"));
    let variable = format!("0.0.0.0:{}", server.http.port());
    let ready = run(dir.path(), &[("BASALT_HTTP_LISTEN", &variable)], &["health"]);
    assert_eq!(ready.status.code(), Some(0), "{}", text(&ready.stderr));
    let other_port = server.thrift.to_string();
    let wrong = run(dir.path(), &[], &["health", "--http", &other_port]);
    assert_eq!(wrong.status.code(), Some(1));
    server.stop();
    let gone = run(dir.path(), &[], &["health", "--http", &http]);
    let error = text(&gone.stderr);
    assert!(gone.status.code() == Some(1) && error.contains(&http), "{error}");
}

#[test]
fn host_names_are_resolved() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let settings = ["server.listen=localhost:0", "http.listen=localhost:0"];
    let server = Server::start_as_set(&dir.path().join("data"), &settings);
    assert!(server.thrift.ip().is_loopback() && server.http.ip().is_loopback());
    server.stop();
    let nowhere = ["server.insecure=true", "server.listen=nowhere.invalid:1"];
    let error = Server::try_start(&dir.path().join("data"), &nowhere[..1]);
    error.expect("accepted").stop();
    let output = run(
        dir.path(),
        &[],
        &[
            "serve",
            "--data-dir",
            "d",
            "--set",
            nowhere[0],
            "--set",
            nowhere[1],
            "--http-listen",
            "127.0.0.1:0",
        ],
    );
    let error = text(&output.stderr);
    assert!(
        error.contains("server.listen = nowhere.invalid:1: the port cannot be bound"),
        "{error}"
    );
}

/// Programs, the arguments with which each prints help files, and a word of its own command line.
const HELP_FILES: [(&str, &str, &str); 4] = [
    ("basalt", "", "http-listen"),
    ("basalt-shell", "--", "noninteractive"),
    ("basalt-bench", "", "roundtrip"),
    ("basalt-twibase", "", "unfollow"),
];

/// Goal: packages get completions and man pages of all programs, and a folder that is missing is named.
#[test]
fn completions_and_man_pages_are_written() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    for (program, prefix, word) in HELP_FILES {
        let run = |what: &str, argument: &str| {
            let mut command = Command::new(binary(program));
            command
                .current_dir(dir.path())
                .args([&format!("{prefix}{what}"), argument]);
            command.output().expect("it was built")
        };
        for shell in ["bash", "zsh", "fish"] {
            let output = run("completions", shell);
            let printed = text(&output.stdout);
            assert!(
                output.status.success() && printed.contains(program) && printed.contains(word),
                "{program} {shell}: {printed}{}",
                text(&output.stderr)
            );
        }
        let output = run("man", ".");
        assert!(output.status.success(), "{program}: {}", text(&output.stderr));
        let output = run("man", "missing");
        assert!(
            !output.status.success() && text(&output.stderr).contains("missing"),
            "{program}: {}",
            text(&output.stderr)
        );
    }
    let pages = ["basalt", "basalt-shell", "basalt-bench", "basalt-twibase"];
    for page in ["basalt", "basalt-shell", "basalt-bench"] {
        let text = fs::read_to_string(dir.path().join(page).with_extension("1")).expect("the page is there");
        for section in ["ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES"] {
            assert!(
                text.contains(&format!("\n.SH {section}\n")),
                "{page} has no {section}"
            );
        }
    }
    let of_commands = [
        "basalt-serve",
        "basalt-config-print",
        "basalt-bench-hotspot",
        "basalt-twibase-feed",
    ];
    for page in pages.into_iter().chain(of_commands) {
        let path = dir.path().join(page).with_extension("1");
        let text = fs::read_to_string(path).expect("the page is there");
        assert!(
            text.contains(".TH") && text.contains(&page.replace('-', "\\-")),
            "{text}"
        );
    }
}

/// Goal: all programs say version and commit.
#[test]
fn programs_say_which_build_they_are() {
    let git = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(workspace())
        .output()
        .map(|output| text(&output.stdout))
        .unwrap_or_default();
    for program in ["basalt", "basalt-shell", "basalt-bench", "basalt-twibase"] {
        let output = Command::new(binary(program))
            .arg("--version")
            .output()
            .expect("it was built");
        let line = text(&output.stdout);
        let commit = line
            .trim()
            .strip_prefix(&format!("{program} {} (", env!("CARGO_PKG_VERSION")));
        let commit = commit
            .and_then(|rest| rest.strip_suffix(')'))
            .unwrap_or_else(|| panic!("{line:?}"));
        let is_given =
            option_env!("BASALT_COMMIT").is_some() || std::env::var_os("BASALT_PROGRAMS").is_some();
        assert!(
            is_given || git.is_empty() || git.starts_with(commit),
            "{line:?} is not of {git:?}"
        );
    }
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let metrics = server.http_get("/metrics");
    let line = metrics
        .lines()
        .find(|line| line.starts_with("basalt_build_info{"));
    let line = line.expect("the metric is there");
    let commit = line
        .split("commit=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let commit = commit.unwrap_or_else(|| panic!("{line}"));
    assert!(
        !commit.is_empty() && server.http_get("/").contains(commit),
        "{line}"
    );
    server.stop();
}

/// An ephemeral server whose log is a file. Killed when dropped.
struct Logged {
    child: Child,
    http: SocketAddr,
    log: PathBuf,
}

impl Logged {
    fn start(dir: &Path, config: &Path) -> Self {
        let log = dir.join("log");
        let mut child = Command::new(binary("basalt"))
            .args(["serve", "--ephemeral", "--config"])
            .arg(config)
            .env("TMPDIR", dir)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("a file"))
            .spawn()
            .expect("the binary was built");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("text");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let http = line["http"].as_str().expect("text").parse().expect("an address");
        Self { child, http, log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is text")
    }

    /// Sends SIGHUP, and waits until the log has one more line with these words.
    fn hang_up(&self, words: &str) {
        let before = self.log().matches(words).count();
        signal(self.child.id(), "HUP");
        until(words, || self.log().matches(words).count() > before);
    }

    /// Status and text of a page, asked for under a host name.
    fn get(&self, host: &str, path: &str) -> (String, String) {
        let mut socket = TcpStream::connect(self.http).expect("the HTTP port is open");
        write!(socket, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").expect("the server reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        (status, answer)
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Goal: SIGHUP applies the settings that can change at run time, reports those that need a
/// restart, and changes nothing when the file is wrong.
#[test]
fn sighup_takes_settings_over() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let file = dir.path().join("basalt.toml");
    let set = |text: &str| fs::write(&file, text).expect("written");
    set("[http]\nallowed_hosts = [\"one\"]\n");
    let server = Logged::start(dir.path(), &file);
    let is_accepted = |host: &str| server.get(host, "/healthz").0 == "200";
    assert!(is_accepted("one") && !is_accepted("two"));
    server.hang_up("SIGHUP: no setting has changed");
    set("[http]\nallowed_hosts = [\"two\"]\n[slow_log]\nthreshold_ms = \"2s\"\n[wal]\nstall_ms = \"9s\"\n");
    server.hang_up(
        "SIGHUP: http.allowed_hosts, slow_log.threshold_ms taken over; wal.stall_ms waiting for a restart",
    );
    assert!(is_accepted("two") && !is_accepted("one"));
    let page = server.get("two", "/settings").1;
    assert!(
        page.contains("<code>2000</code>") && !page.contains("<code>9000</code>"),
        "{page}"
    );
    set("[http]\nallowed_hosts = [\"three\"]\n[wal]\nsink = \"os\"\n");
    server.hang_up("SIGHUP: the settings stay as they are");
    assert!(
        server
            .log()
            .contains("line 4: there is no setting wal.sink; the nearest name is wal.sync")
    );
    assert!(is_accepted("two") && !is_accepted("three"));
    set("[http]\nallowed_hosts = [\"two\"]\n[log]\nfilter = \"error\"\n");
    let lines = server.log().lines().count();
    signal(server.child.id(), "HUP");
    until("the filter is taken over", || {
        server
            .get("two", "/settings")
            .1
            .contains("<code>&quot;error&quot;</code>")
    });
    assert_eq!(server.log().lines().count(), lines, "{}", server.log());
}
