//! The oracle: a real HBase with both of its Thrift servers and its REST server, to compare Basalt's answers
//! with.
//!
//! `tests/support/oracle` is the Java program around it, [`Oracle`] the process. Operations that HBase's
//! Thrift services lack (flush, compaction, split, a clean slate) go over the process's standard
//! input and output, one line for a command and one for its answer.
//!
//! The process owns its data directory and ends when its input does, so a test that is killed leaves nothing
//! behind.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::java::JavaProgram;

/// The longest wait for a line of the process. It has shorter deadlines itself and names the late
/// step.
const ANSWER_MAX: Duration = Duration::from_mins(5);

/// The longest wait for its end after `stop`.
const STOP_MAX: Duration = Duration::from_secs(20);

/// Calls that wait in a region server under load: more than a load generator has in flight.
const CALLS_WAITING_MAX: u32 = 100_000;

/// Purpose of the Java process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Answers: a start as quick as can be, few threads, little memory.
    Answers,
    /// Speed: HBase's own defaults, the optimizing compiler, a heap of 4 GiB.
    Load,
}

/// A running HBase. Stopped and deleted when dropped.
#[derive(Debug)]
pub struct Oracle {
    /// Address of HBase's Thrift 1 server: service `Hbase`, binary protocol, no framing.
    pub thrift1: SocketAddr,
    /// Address of HBase's Thrift 2 server: service `THBaseService`, binary protocol, no framing.
    pub thrift2: SocketAddr,
    process: Process,
}

impl Oracle {
    /// Starts HBase with default settings on empty storage; returns when both Thrift servers answer. `None`,
    /// after one line that says why, on a machine without Java, Maven or the jars: the test is then not run.
    /// Panics when HBase is there and does not start.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts HBase with settings as `key=value`.
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        Self::start_for(Purpose::Answers, settings)
    }

    /// Starts HBase with default settings and the classes of this folder on its class path.
    pub fn start_beside(classes: &Path) -> Option<Self> {
        Self::start_process(|program| Process::spawn(program.java_with(classes), Purpose::Answers, &[]))
    }

    /// Starts HBase with region servers whose speed is to be compared, each with a limit of
    /// requests per second, if given: HBase's own quota.
    pub fn start_for_load(
        region_servers: u16,
        requests_per_second: Option<u64>,
    ) -> Result<Option<Self>, String> {
        let mut settings = vec![
            format!("hbase.regionservers={region_servers}"),
            format!("hbase.master.wait.on.regionservers.mintostart={region_servers}"),
            format!("hbase.master.wait.on.regionservers.maxtostart={region_servers}"),
            // By default a region server refuses calls when 300 are waiting, ten for each handler.
            format!("hbase.ipc.server.max.callqueue.length={CALLS_WAITING_MAX}"),
        ];
        if requests_per_second.is_some() {
            settings.push("hbase.quota.enabled=true".to_owned());
            settings.push("hbase.quota.refresh.period=1000".to_owned());
        }
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let Some(mut oracle) = Self::start_for(Purpose::Load, &settings) else {
            return Ok(None);
        };
        if let Some(limit) = requests_per_second {
            oracle.process.command(&format!("limit {limit}"))?;
        }
        Ok(Some(oracle))
    }

    fn start_for(purpose: Purpose, settings: &[&str]) -> Option<Self> {
        Self::start_process(|program| Process::spawn(program.java(), purpose, settings))
    }

    fn start_process(spawn: impl FnOnce(&JavaProgram) -> Process) -> Option<Self> {
        let mut process = spawn(&JavaProgram::find("support/oracle")?);
        let line = process.answer().unwrap_or_else(|error| error);
        let Some((thrift1, thrift2)) = ports(&line) else {
            panic!("HBase did not start: {line}\n{}", process.log());
        };
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Some(Self {
            thrift1: address(thrift1),
            thrift2: address(thrift2),
            process,
        })
    }

    /// The directory of its data: `hbase` below it is HBase's root directory.
    pub fn dir(&self) -> &std::path::Path {
        self.process.dir.path()
    }

    /// Flushes all regions of the table. No compaction follows by itself.
    pub fn flush(&mut self, table: &str) -> Result<(), String> {
        self.process.command(&format!("flush {table}")).map(drop)
    }

    /// Runs a minor compaction of all regions of the table, if HBase's policy chooses files for one.
    pub fn compact(&mut self, table: &str) -> Result<(), String> {
        self.process.command(&format!("compact {table}")).map(drop)
    }

    /// Runs a major compaction of all regions of the table. Without a flush before, memstores are left alone.
    pub fn major_compact(&mut self, table: &str) -> Result<(), String> {
        self.process.command(&format!("major_compact {table}")).map(drop)
    }

    /// Splits the region that has the row, at the row. Returns when both daughters serve and have files of
    /// their own.
    pub fn split(&mut self, table: &str, row: &[u8]) -> Result<(), String> {
        self.process
            .command(&format!("split {table} {}", escaped(row)))
            .map(drop)
    }

    /// Deletes all tables of users and all their namespaces.
    pub fn drop_all(&mut self) -> Result<(), String> {
        self.process.command("drop_all").map(drop)
    }

    /// The port of its ZooKeeper, which native clients connect to first.
    pub fn zookeeper_port(&mut self) -> Result<u16, String> {
        let answer = self.process.command("zookeeper")?;
        answer.trim().parse().map_err(|_| format!("not a port: {answer}"))
    }

    /// The address of its region server, or of the first one, for native calls about data.
    pub fn region_server(&mut self) -> Result<SocketAddr, String> {
        let answer = self.process.command("region_server")?;
        let wrong = || format!("not an address: {answer}");
        let mut addresses = answer.trim().to_socket_addrs().map_err(|_| wrong())?;
        addresses.next().ok_or_else(wrong)
    }

    /// The address of its REST server, which starts at the first call.
    pub fn rest(&mut self) -> Result<SocketAddr, String> {
        let answer = self.process.command("rest")?;
        let port = answer
            .trim()
            .parse()
            .map_err(|_| format!("not a port: {answer}"))?;
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Stops HBase's master and region servers in good order. ZooKeeper and the Thrift servers go on.
    pub fn stop_hbase(&mut self) -> Result<(), String> {
        self.process.command("stop_hbase").map(drop)
    }

    /// Starts master and region servers again, on other ports.
    pub fn start_hbase(&mut self) -> Result<(), String> {
        self.process.command("start_hbase").map(drop)
    }

    /// Scanners that are open at its region servers.
    pub fn scanners(&mut self) -> Result<u64, String> {
        let answer = self.process.command("scanners")?;
        answer
            .trim()
            .parse()
            .map_err(|_| format!("not a number: {answer}"))
    }

    /// The version of HBase.
    pub fn version(&mut self) -> Result<String, String> {
        self.process.command("version")
    }

    /// Resident memory of the process in bytes.
    pub fn resident_bytes(&self) -> u64 {
        crate::process::memory(&self.process.child, "VmRSS:")
    }
}

/// The Java process and its control channel.
#[derive(Debug)]
struct Process {
    child: Child,
    commands: ChildStdin,
    /// Lines of its standard output, read by a thread so that waiting for one has a limit.
    answers: Receiver<String>,
    /// Data directory of the process, which deletes it at its end; kept here in case that failed.
    dir: tempfile::TempDir,
}

impl Process {
    fn spawn(mut java: Command, purpose: Purpose, settings: &[&str]) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("hbase-oracle-")
            .tempdir()
            .expect("a temporary folder");
        let errors = std::fs::File::create(dir.path().join("stderr.log")).expect("the folder is ours");
        let machine: &[&str] = match purpose {
            // The optimizing compiler costs more than it gains in the minutes that a test runs.
            Purpose::Answers => &["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            Purpose::Load => &["-Xmx4g", "-Dbasalt.load=true"],
        };
        let mut child = java
            .args(machine)
            .arg(format!("-Dbasalt.log={}", dir.path().join("hbase.log").display()))
            .arg("basalt.Oracle")
            .arg(dir.path())
            .args(settings)
            // A group of its own: Ctrl-C on the terminal ends us, and our end ends it in the way that deletes
            // its data.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("java was found a moment ago");
        let commands = child.stdin.take().expect("standard input is piped");
        let output = child.stdout.take().expect("standard output is piped");
        let (send, answers) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for line in lines {
                // The receiver is gone once the oracle is dropped.
                let _ = send.send(line);
            }
        });
        Self {
            child,
            commands,
            answers,
            dir,
        }
    }

    /// The next line.
    fn answer(&mut self) -> Result<String, String> {
        let line = self.answers.recv_timeout(ANSWER_MAX);
        line.map_err(|error| format!("the process is gone or stuck: {error}"))
    }

    /// Sends a command; the text of its answer.
    fn command(&mut self, command: &str) -> Result<String, String> {
        writeln!(self.commands, "{command}").map_err(|error| format!("{command}: {error}"))?;
        let line = self.answer().map_err(|error| format!("{command}: {error}"))?;
        match line.strip_prefix("ok") {
            Some(text) => Ok(text.trim_start().to_owned()),
            None => Err(format!("{command}: {line}")),
        }
    }

    /// The output and log of the process.
    fn log(&self) -> String {
        ["stderr.log", "hbase.log"]
            .iter()
            .filter_map(|file| std::fs::read_to_string(self.dir.path().join(file)).ok())
            .collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already; one that does not end within the time of a clean stop is killed.
        let asked = writeln!(self.commands, "stop").is_ok();
        if !asked || self.answers.recv_timeout(STOP_MAX) != Err(RecvTimeoutError::Disconnected) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// The two ports in the line that the process prints when it accepts calls.
fn ports(line: &str) -> Option<(u16, u16)> {
    let (thrift1, thrift2) = line.strip_prefix("ready ")?.split_once(' ')?;
    Some((thrift1.parse().ok()?, thrift2.parse().ok()?))
}

/// A row in HBase's form for binary strings, without blanks.
fn escaped(row: &[u8]) -> String {
    row.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\x{byte:02X}");
        text
    })
}
