//! Shared by the black-box tests: a running server, and tools of other languages.
//!
//! The tests start the real binary in an empty directory, on ports the system chooses, and speak to
//! it as any client does.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub mod differ;
pub mod dynamic;
pub mod imports;
pub mod java;
mod made;
pub mod oracle;
mod python;
pub mod sim;
pub mod small_disk;
pub mod toolchain;
pub mod torture;

pub use java::JavaProgram;
pub use oracle::Oracle;
pub use python::{Python, happybase};

/// The folder of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests' folder lies in the workspace")
}

/// The variable that names a directory with programs to test, instead of those that belong to the test's own
/// build: `BASALT_PROGRAMS=target/release cargo test --workspace --test api` tests the release build.
const PROGRAMS: &str = "BASALT_PROGRAMS";

/// Names of the programs that this process has had built.
static BUILT: OnceLock<std::sync::Mutex<std::collections::BTreeSet<String>>> = OnceLock::new();

/// The program of that name in the directory that `BASALT_PROGRAMS` names; without the variable it is built
/// if need be, in the profile of the running test.
pub fn binary(name: &str) -> PathBuf {
    if let Some(programs) = std::env::var_os(PROGRAMS) {
        // A test's working directory is its package's; the variable is written for the workspace's.
        let program = workspace().join(programs).join(name);
        assert!(program.is_file(), "{PROGRAMS}: no file {}", program.display());
        return program;
    }
    built("--bin", name, &profile_dir().join(name))
}

/// The client's example of that name, built if need be, in the profile of the running test.
pub fn example(name: &str) -> PathBuf {
    built("--example", name, &profile_dir().join("examples").join(name))
}

/// Where cargo puts the programs of the running test's profile.
fn profile_dir() -> PathBuf {
    // A test runs from target/<profile>/deps, a program of this crate from target/<profile>.
    let mut profile_dir = std::env::current_exe().expect("a program knows its own path");
    profile_dir.pop();
    if profile_dir.ends_with("deps") {
        profile_dir.pop();
    }
    profile_dir
}

/// Has a program built once in this process and returns its path.
fn built(kind: &str, name: &str, program: &Path) -> PathBuf {
    let mut built = BUILT
        .get_or_init(Default::default)
        .lock()
        .expect("no test panics while it builds");
    if built.insert(name.to_owned()) {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // The whole workspace and a test are named so that dependencies get the features that `cargo test
        // --workspace` gave them: with others they would all be built once more.
        cargo.current_dir(workspace()).args([
            "build",
            "--quiet",
            "--workspace",
            "--test",
            "dependencies",
            kind,
            name,
        ]);
        if profile_dir().ends_with("release") {
            cargo.arg("--release");
        }
        if cfg!(feature = "seeded-bugs") {
            cargo.args(["--features", "basalt-tests/seeded-bugs"]);
        }
        let status = cargo.status().expect("cargo runs: it started this test");
        assert!(status.success(), "building {name} failed");
    }
    program.to_owned()
}

/// The command that serves `data_dir` with default settings and these `--set` arguments, on ports that the
/// system chooses. It prints one line when it accepts calls, for [`addresses`].
pub fn serve(binary: &Path, data_dir: &Path, settings: &[impl AsRef<str>]) -> Command {
    let mut command = Command::new(binary);
    command.args([
        "serve",
        "--thrift-listen",
        "127.0.0.1:0",
        "--http-listen",
        "127.0.0.1:0",
        "--data-dir",
    ]);
    command.arg(data_dir);
    for setting in settings {
        command.args(["--set", setting.as_ref()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs `basalt check` on a data directory.
pub fn check(data_dir: &Path) -> Output {
    Command::new(binary("basalt"))
        .args(["check", "--data-dir"])
        .arg(data_dir)
        .output()
        .expect("the binary was built")
}

/// A running `basalt serve`. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Reads the process's standard error.
    log: Option<std::thread::JoinHandle<String>>,
    /// Address of the Thrift port.
    pub thrift: SocketAddr,
    /// Address of the HTTP port.
    pub http: SocketAddr,
}

impl Server {
    /// Starts on `data_dir` with default settings and these `--set` arguments; returns when it accepts calls.
    pub fn start(data_dir: &Path, settings: &[&str]) -> Self {
        Self::try_start(data_dir, settings).unwrap_or_else(|output| panic!("basalt did not start:\n{output}"))
    }

    /// Starts on `data_dir` with these `--set` arguments. If the process ends instead, the error is
    /// its standard error output.
    pub fn try_start(data_dir: &Path, settings: &[&str]) -> Result<Self, String> {
        Self::run(serve(&binary("basalt"), data_dir, settings))
    }

    /// Starts on `data_dir` with these `--set` arguments, which may also set the addresses. A port
    /// without a setting is on loopback.
    pub fn start_as_set(data_dir: &Path, settings: &[&str]) -> Self {
        let mut command = Command::new(binary("basalt"));
        command.arg("serve").arg("--data-dir").arg(data_dir);
        let ports = ["server.listen=\"127.0.0.1:0\"", "http.listen=\"127.0.0.1:0\""];
        for setting in ports.iter().chain(settings) {
            command.args(["--set", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::run(command).unwrap_or_else(|output| panic!("basalt did not start:\n{output}"))
    }

    /// Starts with `--ephemeral`, these `--set` arguments and `TMPDIR`. Also returns the line on
    /// standard output as it was printed.
    pub fn start_ephemeral(below: &Path, settings: &[&str]) -> (Self, serde_json::Value) {
        let mut command = Command::new(binary("basalt"));
        command.args(["serve", "--ephemeral"]).env("TMPDIR", below);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let (server, line) = Self::run_to_line(command, |line| {
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            let address = |key: &str| line[key].as_str()?.parse().ok();
            Some((address("listen")?, address("http")?))
        })
        .unwrap_or_else(|output| panic!("basalt did not start:\n{output}"));
        let line = serde_json::from_str(&line).expect("its addresses were found");
        (server, line)
    }

    /// [`Self::start`], as a process with a limit of open files.
    pub fn start_with_open_files(data_dir: &Path, settings: &[&str], open_files: u32) -> Self {
        Self::try_start_with_open_files(data_dir, settings, open_files)
            .unwrap_or_else(|output| panic!("basalt did not start:\n{output}"))
    }

    /// Starts on `data_dir` as a process that may have `open_files` open files. If the process ends
    /// instead, the error has its status and its standard error output.
    pub fn try_start_with_open_files(
        data_dir: &Path,
        settings: &[&str],
        open_files: u32,
    ) -> Result<Self, String> {
        let serve = serve(&binary("basalt"), data_dir, settings);
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n \"$0\" && exec \"$@\""]);
        limited.arg(open_files.to_string());
        limited.arg(serve.get_program()).args(serve.get_args());
        limited.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::run(limited)
    }

    /// Starts on `data_dir` with a wall clock that follows the file `clock` while the process runs.
    /// The file has an offset in the syntax of libfaketime: `+0`, `-5`, `-60y`. Without that
    /// library it prints a line and returns `None`.
    pub fn start_with_clock(data_dir: &Path, settings: &[&str], clock: &Path) -> Option<Self> {
        const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
        let dirs = [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib",
        ];
        let library = dirs
            .iter()
            .map(|dir| Path::new(dir).join(LIBRARY))
            .find(|path| path.exists());
        let Some(library) = library else {
            println!(
                "not run: a clock that is set, since there is no {LIBRARY} in {dirs:?} (Debian: libfaketime)"
            );
            return None;
        };
        let mut command = serve(&binary("basalt"), data_dir, settings);
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", clock);
        command
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        Some(Self::run(command).unwrap_or_else(|output| panic!("basalt did not start:\n{output}")))
    }

    fn run(command: Command) -> Result<Self, String> {
        Self::run_to_line(command, addresses).map(|(server, _)| server)
    }

    /// Starts the command and waits for its line on standard output, in which `addresses` finds
    /// those of the binary port and of the HTTP port.
    fn run_to_line(
        mut command: Command,
        addresses: impl Fn(&str) -> Option<(SocketAddr, SocketAddr)>,
    ) -> Result<(Self, String), String> {
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        let mut stderr = child.stderr.take().expect("standard error is piped");
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            // An error means that the process is gone.
            let _ = std::io::Read::read_to_string(&mut stderr, &mut text);
            text
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("standard output is piped"))
            .read_line(&mut line)
            .expect("the server prints text");
        if let Some((thrift, http)) = addresses(&line) {
            let server = Self {
                child,
                log: Some(log),
                thrift,
                http,
            };
            return Ok((server, line));
        }
        let status = child.wait().expect("the process was started here");
        let log = log.join().expect("reading does not panic");
        Err(format!("{status}\n{log}"))
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the process exits by itself. Returns the exit code and everything it printed to
    /// standard error.
    pub fn wait(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("the process was started here");
        let log = self.log.take().expect("taken once");
        (status.code(), log.join().expect("reading does not panic"))
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process was started here");
    }

    /// SIGTERM, and waits for the end; panics when it does not come within a minute or is not clean.
    pub fn stop(mut self) {
        self.end();
    }

    /// Stops the server as [`Self::stop`] does, and returns its standard error output since its
    /// start.
    pub fn stop_and_log(mut self) -> String {
        self.end();
        let log = self.log.take().expect("taken once");
        log.join().expect("reading does not panic")
    }

    fn end(&mut self) {
        signal(self.child.id(), "TERM");
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            if let Some(status) = self.child.try_wait().expect("the process was started here") {
                assert!(status.success(), "a clean stop ended with {status}");
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the server did not stop within a minute"
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        memory(&self.child, "VmRSS:")
    }

    /// The most resident memory there ever was, in bytes.
    pub fn peak_resident_bytes(&self) -> u64 {
        memory(&self.child, "VmHWM:")
    }

    /// The value of the first series in the metrics that begins so, rounded down.
    pub fn metric(&self, series: &str) -> u64 {
        let page = self.http_get("/metrics");
        let line = page.lines().find(|line| line.starts_with(series));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("{series} is not in\n{page}")) as u64
    }

    /// Status and body of a POST of JSON to the HTTP port.
    pub fn http_post(&self, path: &str, json: &str) -> (u16, String) {
        use std::io::{Read, Write};
        let mut socket = std::net::TcpStream::connect(self.http).expect("the HTTP port is open");
        let length = json.len();
        write!(
            socket,
            "POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
        )
        .expect("the server reads");
        let mut answer = String::new();
        socket
            .read_to_string(&mut answer)
            .expect("the server answers with text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    /// The body of a page of the HTTP port.
    pub fn http_get(&self, path: &str) -> String {
        use std::io::{Read, Write};
        let mut socket = std::net::TcpStream::connect(self.http).expect("the HTTP port is open");
        write!(socket, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").expect("the server reads");
        let mut answer = String::new();
        socket
            .read_to_string(&mut answer)
            .expect("the server answers with text");
        answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned())
            .unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone after `kill` and `stop`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A figure of memory that Linux has of a process, in bytes; `of` is its name with the colon.
fn memory(process: &Child, of: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("the process runs");
    let line = status
        .lines()
        .find(|line| line.starts_with(of))
        .expect("Linux states it");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .expect("a number of kB");
    kib * 1024
}

/// The two addresses in the line the server prints when it accepts calls.
pub fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (thrift, http) = line
        .trim()
        .strip_prefix("basalt serves Thrift on ")?
        .split_once(" and HTTP on http://")?;
    Some((thrift.parse().ok()?, http.trim_end_matches('/').parse().ok()?))
}

/// Sends a process the signal of this name, such as `TERM`.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(sent.expect("kill is everywhere").success(), "no process {pid}");
}

/// Polls until the condition holds. Panics if it does not within a minute.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
