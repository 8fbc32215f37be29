//! Both clusters, and the process that does the steps.

use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use basalt_test_support::java::SMALL;
use basalt_test_support::{JavaProgram, Oracle, Server};

/// HBase, Basalt and the Java process.
pub(crate) struct Rig {
    pub(crate) steps: Steps,
    pub(crate) hbase: Oracle,
    server: Option<Server>,
    /// Where Basalt is, also while it is stopped.
    pub(crate) address: SocketAddr,
    settings: Vec<String>,
    /// Basalt's directory and files of the test.
    pub(crate) dir: tempfile::TempDir,
}

impl Rig {
    /// Starts everything; HBase with these settings. `None` where HBase is not to be had.
    pub(crate) fn start(of_hbase: &[&str], of_basalt: &[&str]) -> Option<Self> {
        let program = JavaProgram::find("conformance/growing-out")?;
        let hbase_settings = [
            // A source waits this long after a failure, times the number of failures up to the second.
            "replication.source.sleepforretries=200",
            "replication.source.maxretriesmultiplier=5",
        ];
        let settings: Vec<&str> = hbase_settings.iter().chain(of_hbase).copied().collect();
        let mut hbase = Oracle::start_with(&settings)?;
        let dir = tempfile::tempdir().expect("a temporary folder");
        let server = Server::start(&dir.path().join("data"), of_basalt);
        let address = server.thrift;
        let zookeeper = hbase.zookeeper_port().expect("it has started");
        Some(Self {
            steps: Steps::start(&program, zookeeper, address.port()),
            hbase,
            server: Some(server),
            address,
            settings: of_basalt.iter().map(ToString::to_string).collect(),
            dir,
        })
    }

    /// Basalt's data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A folder of the test.
    pub(crate) fn folder(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Adds a setting of Basalt, for its next start.
    pub(crate) fn set(&mut self, setting: String) {
        self.settings.push(setting);
    }

    /// Kills Basalt.
    pub(crate) fn kill(&mut self) {
        self.server.take().expect("it runs").kill();
    }

    /// Stops Basalt in good order.
    pub(crate) fn stop(&mut self) {
        self.server.take().expect("it runs").stop();
    }

    /// Starts Basalt again at its address.
    pub(crate) fn restart(&mut self) {
        let listen = format!("server.listen=\"{}\"", self.address);
        let mut settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        settings.push(&listen);
        self.server = Some(Server::start_as_set(&self.data(), &settings));
    }

    /// Runs a command of `basalt`; its standard output. Panics when it fails.
    pub(crate) fn basalt(arguments: &[&str]) -> String {
        let output = Self::try_basalt(arguments);
        output.unwrap_or_else(|output| panic!("basalt {arguments:?}:\n{output}"))
    }

    /// Runs a command of `basalt`; its standard output, or all output when it fails.
    pub(crate) fn try_basalt(arguments: &[&str]) -> Result<String, String> {
        let output = std::process::Command::new(basalt_test_support::binary("basalt"))
            .args(arguments)
            .output()
            .expect("the binary was built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout);
        if output.status.success() {
            Ok(printed)
        } else {
            Err(printed + &text(&output.stderr))
        }
    }

    /// Files below a folder, relative to it.
    pub(crate) fn files(below: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![below.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path.strip_prefix(below).expect("below it").to_owned());
                }
            }
        }
        found.sort();
        found
    }
}

/// The Java process.
pub(crate) struct Steps {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Steps {
    fn start(program: &JavaProgram, hbase: u16, basalt: u16) -> Self {
        let mut child = program
            .java()
            .args(SMALL)
            .arg("basalt.Steps")
            .args([hbase.to_string(), basalt.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("java was found a moment ago");
        Self {
            commands: child.stdin.take().expect("it is piped"),
            answers: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
        }
    }

    /// Sends a command whose answer is read later ([`Self::answer`]).
    pub(crate) fn send(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("the process runs");
    }

    pub(crate) fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let count = self.answers.read_line(&mut line).expect("a line of text");
        assert!(count > 0, "the process of the steps has ended");
        match line.trim_end().strip_prefix("ok") {
            Some(text) => Ok(text.trim_start().to_owned()),
            None => Err(line.trim_end().to_owned()),
        }
    }

    /// Does a step; its answer. Panics when it fails.
    pub(crate) fn run(&mut self, command: &str) -> String {
        let answer = self.attempt(command);
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Does a step that may fail.
    pub(crate) fn attempt(&mut self, command: &str) -> Result<String, String> {
        self.send(command);
        self.answer()
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // The end of its input ends it, too; a step may still run.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
