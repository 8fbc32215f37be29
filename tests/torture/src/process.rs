//! The server as a process that is meant to be killed.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::Problem;

/// Longest wait for a start, a stop, or a check of the directory.
const PATIENCE: Duration = Duration::from_mins(2);

/// The server's program and its data directory.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) binary: PathBuf,
    pub(super) data_dir: PathBuf,
    /// Standard error of all servers.
    pub(super) log: PathBuf,
}

/// A server that was started. Killed when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    started: Instant,
    /// The line on standard output, or its end.
    lines: Receiver<String>,
}

impl Program {
    pub(super) fn start(&self, settings: &[String]) -> Result<Process, Problem> {
        let failed =
            |error: std::io::Error| Problem::new("server", format!("{}: {error}", self.binary.display()));
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(failed)?;
        let started = Instant::now();
        let mut child = basalt_test_support::serve(&self.binary, &self.data_dir, settings)
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take().expect("standard output is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // A process that ends without a line gives an empty one. The receiver may be gone.
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
        Ok(Process {
            child,
            started,
            lines,
        })
    }

    /// `basalt check` of the directory: the problem it finds.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let output = Command::new(&self.binary)
            .args(["check", "--data-dir"])
            .arg(&self.data_dir)
            .output()
            .map_err(|error| Problem::new("check", error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Err(Problem::new(
            "check",
            format!("{}: {}", output.status, text.trim()),
        ))
    }

    /// The last lines that servers wrote to standard error.
    pub(super) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Whether a server has panicked so far.
    pub(super) fn has_panicked(&self) -> bool {
        std::fs::read_to_string(&self.log).is_ok_and(|text| text.contains("panicked at"))
    }
}

/// Outcome of waiting for a server.
pub(super) enum Started {
    /// It serves on this address; this is how long that took from the start of the process.
    Serves(SocketAddr, Duration),
    /// Not yet.
    NotYet,
    /// It has ended instead.
    Ended,
}

impl Process {
    /// Waits for the line that says that it serves.
    pub(super) fn wait(&self, limit: Option<Duration>) -> Started {
        match self.lines.recv_timeout(limit.unwrap_or(PATIENCE)) {
            Ok(line) => match basalt_test_support::addresses(&line) {
                Some((thrift, _)) => Started::Serves(thrift, self.started.elapsed()),
                None => Started::Ended,
            },
            Err(RecvTimeoutError::Timeout) if limit.is_some() => Started::NotYet,
            Err(_) => Started::Ended,
        }
    }

    /// SIGKILL. Says if the process had ended by itself.
    pub(super) fn kill(mut self) -> Result<(), Problem> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(Problem::new("server", format!("ended by itself: {status}")));
        }
        let gone = |error: std::io::Error| Problem::new("server", format!("cannot be killed: {error}"));
        self.child.kill().map_err(gone)?;
        self.child.wait().map_err(gone)?;
        Ok(())
    }

    /// SIGTERM, and waits for a clean end.
    pub(super) fn stop(mut self) -> Result<(), Problem> {
        let wrong = |what: String| Problem::new("server", what);
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| wrong(format!("cannot be stopped: {error}")))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(wrong(format!("a clean stop ended with {status}"))),
                Ok(None) if Instant::now() < deadline => std::thread::park_timeout(Duration::from_millis(5)),
                Ok(None) => return Err(wrong(format!("did not stop within {PATIENCE:?}"))),
                Err(error) => return Err(wrong(error.to_string())),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone after `kill` and `stop`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The size of all files below a directory, in bytes.
pub(super) fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
