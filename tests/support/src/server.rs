//! A running `basalt serve`, as a process of the test.

use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use crate::process::{memory, signal};
use crate::programs::binary;

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

/// Runs a command of `basalt` about users or certificates on a data directory, with these lines on its
/// standard input; returns its standard output. Panics when it fails.
pub fn administer(data_dir: &Path, arguments: &[&str], input: &str) -> Vec<u8> {
    let mut child = Command::new(binary("basalt"))
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output.stdout
}

/// A running `basalt serve`. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Reads the process's standard error.
    log: Option<std::thread::JoinHandle<String>>,
    /// Address of the main port.
    pub thrift: SocketAddr,
    /// Address of the HTTP port.
    pub http: SocketAddr,
    /// The server that has its tables, if it has none of its own.
    behind: Option<Box<Self>>,
}

impl Server {
    /// Starts two servers with these `--set` arguments: one on `data_dir`, and a gateway to it. Returns the
    /// gateway.
    pub fn start_before_another(data_dir: &Path, settings: &[&str]) -> Self {
        let behind = Self::start(data_dir, settings);
        let key = format!("hbase+rpc://{}", behind.thrift);
        // Others are about tables, and refused by a gateway.
        let of_gateway = |setting: &&&str| {
            let sections = [
                "http.",
                "log.",
                "requests.",
                "rest.",
                "scanner.",
                "security.",
                "server.",
                "slow_log.",
                "thrift.",
            ];
            sections.iter().any(|section| setting.starts_with(section))
        };
        let settings: Vec<&str> = settings.iter().filter(of_gateway).copied().collect();
        let mut gateway = Self::start_gateway(&data_dir.with_file_name("gateway"), &key, &settings);
        gateway.behind = Some(Box::new(behind));
        gateway
    }

    /// Starts a gateway to the cluster of this key, on ports that the system chooses.
    pub fn start_gateway(data_dir: &Path, cluster: &str, settings: &[&str]) -> Self {
        let started = Self::try_start_gateway(data_dir, cluster, settings);
        started.unwrap_or_else(|output| panic!("the gateway did not start:\n{output}"))
    }

    /// [`Self::start_gateway`]. If the process ends instead, the error is its status and its standard error
    /// output.
    pub fn try_start_gateway(data_dir: &Path, cluster: &str, settings: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(binary("basalt"));
        command
            .args(["gateway", "--cluster", cluster, "--data-dir"])
            .arg(data_dir);
        command.args(["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::run(command)
    }

    /// The port of the server that has its tables.
    pub fn tables(&self) -> SocketAddr {
        self.behind.as_ref().map_or(self.thrift, |behind| behind.thrift)
    }

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
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n \"$0\" && exec \"$@\""]);
        limited.arg(open_files.to_string());
        Self::try_start_by(limited, &binary("basalt"), data_dir, settings)
    }

    /// Starts `program` on `data_dir` by a command that replaces itself with the program behind its
    /// arguments. If the process ends instead, the error has its status and its standard error output.
    pub fn try_start_by(
        mut command: Command,
        program: &Path,
        data_dir: &Path,
        settings: &[&str],
    ) -> Result<Self, String> {
        let serve = serve(program, data_dir, settings);
        command.arg(serve.get_program()).args(serve.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::run(command)
    }

    /// Number of its threads.
    pub fn threads(&self) -> u64 {
        crate::process::figure(&self.child, "Threads:")
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

    /// Starts a command made by [`serve`], to which the caller may have added something.
    pub fn run_command(command: Command) -> Result<Self, String> {
        Self::run(command)
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
                behind: None,
            };
            return Ok((server, line));
        }
        if !line.is_empty() {
            // It serves, and prints another line than this version: it would run for ever.
            child.kill().expect("the process is ours");
        }
        let status = child.wait().expect("the process was started here");
        let log = log.join().expect("reading does not panic");
        Err(format!("{status}\n{line}{log}"))
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
        self.find_metric(series)
            .unwrap_or_else(|page| panic!("{series} is not in\n{page}"))
    }

    /// A count of calls of a method, by its series. Methods that were never called have none.
    pub fn calls(&self, series: &str) -> u64 {
        self.find_metric(series).unwrap_or_default()
    }

    /// The value of a series, or the page that lacks it.
    fn find_metric(&self, series: &str) -> Result<u64, String> {
        let page = self.http_get("/metrics");
        let line = page.lines().find(|line| line.starts_with(series));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        value.map(|value| value as u64).ok_or(page)
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

/// An address of this machine that is free, for a server that is started again at it. Its port is below those
/// that the system gives to other sockets meanwhile.
pub fn free_address() -> SocketAddr {
    use std::net::{Ipv4Addr, TcpListener};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests of other processes begin elsewhere.
    let begin = std::process::id() % 20_000;
    for _ in 0..20_000 {
        let number = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (begin + number) % 20_000;
        let port = u16::try_from(port).expect("below 30,000");
        if let Ok(bound) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return bound.local_addr().expect("it is bound");
        }
    }
    panic!("no port from 10000 to 29999 is free");
}

/// The two addresses in the line the server prints when it accepts calls.
pub fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (thrift, http) = line
        .trim()
        .strip_prefix("basalt serves HBase clients on ")?
        .split_once(" and HTTP on http://")?;
    Some((thrift.parse().ok()?, http.trim_end_matches('/').parse().ok()?))
}
