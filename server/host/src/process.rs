//! One process of the host.
//!
//! 1. The folder of its socket is made, for this user only.
//! 2. The JVM starts in a process group of its own, with limits of memory, and with a pipe as standard input
//!    whose end tells it that the server is gone.
//! 3. A thread reads what it prints, and logs a bounded part of it. One line says that the socket accepts
//!    connections.
//! 4. It is killed with its group, at the latest when the [`Process`] is dropped, and the folder is removed.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::settings::Settings;

/// The line by which the host says that it accepts connections.
const READY: &[u8] = b"basalt host ready";
/// Main class of the host.
const MAIN: &str = "basalt.host.Main";
/// Options of HBase's own start script for a current Java: HBase reaches into these packages.
const OPEN_PACKAGES: [&str; 3] = [
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
];
/// Memory of the JVM besides its heap.
const METASPACE_BYTES: u64 = 256 << 20;
const DIRECT_BYTES: u64 = 64 << 20;
/// Longest line that is logged; the rest of it is dropped.
const LINE_BYTES: usize = 1 << 10;
/// Most lines that are logged in a second.
const LINES_A_SECOND: u32 = 50;
/// Lines that the error of a failed start has.
const LAST_LINES: usize = 4;
/// Time that a process has to be gone once its socket has closed.
const END_GRACE: Duration = Duration::from_millis(500);

/// Numbers the folders of the sockets of this process.
static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// A running host.
#[derive(Debug)]
pub(crate) struct Process {
    child: Mutex<Child>,
    /// Removed after the process was killed.
    folder: Folder,
    output: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    /// Starts a host, and waits until it accepts connections. The error is for users.
    pub(crate) fn start(settings: &Settings) -> Result<Self, String> {
        let folder =
            Folder::new().map_err(|error| format!("the folder of its socket cannot be made: {error}"))?;
        let (reader, writer) = io::pipe().map_err(|error| format!("no pipe for its output: {error}"))?;
        let mut command = command(settings, &folder.0);
        let errors = writer
            .try_clone()
            .map_err(|error| format!("no pipe for its output: {error}"))?;
        command.stdin(Stdio::piped()).stdout(writer).stderr(errors);
        let child = command.spawn().map_err(|error| {
            format!(
                "{} (user_code.java_command) cannot be run: {error}",
                settings.command
            )
        })?;
        // The pipe's writing ends in this process are in the command.
        drop(command);
        let _ = fs::write(format!("/proc/{}/oom_score_adj", child.id()), "1000");
        let (ready, is_ready) = sync_channel(1);
        let output = Arc::new(Mutex::new(VecDeque::new()));
        let process = Self {
            child: Mutex::new(child),
            folder,
            output: Arc::clone(&output),
        };
        std::thread::Builder::new()
            .name("basalt-host".into())
            .spawn(move || log_output(reader, &ready, &output))
            .map_err(|error| format!("no thread for its output: {error}"))?;
        process.wait_until_ready(&is_ready, settings.start_max)?;
        Ok(process)
    }

    fn wait_until_ready(&self, is_ready: &Receiver<()>, start_max: Duration) -> Result<(), String> {
        match is_ready.recv_timeout(start_max) {
            Ok(()) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(format!(
                "it is not ready after {} s{}",
                start_max.as_secs(),
                self.last_words()
            )),
            Err(RecvTimeoutError::Disconnected) => Err(format!("it ends at once{}", self.last_words())),
        }
    }

    fn last_words(&self) -> String {
        let lines = self.output.lock();
        let text: Vec<&str> = lines.iter().map(String::as_str).collect();
        if text.is_empty() {
            return String::new();
        }
        format!("; its last lines: {}", text.join(" | "))
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(socket(&self.folder.0))
    }

    /// Whether it has ended. Waits a moment for a process that is about to.
    pub(crate) fn has_ended(&self) -> bool {
        let until = Instant::now() + END_GRACE;
        loop {
            match self.child.lock().try_wait() {
                Ok(None) if Instant::now() < until => {}
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Has it print the stacks of its threads.
    pub(crate) fn print_threads(&self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::QUIT);
        }
    }

    /// Ends it and everything that it has started.
    pub(crate) fn kill(&self) {
        if let Some(pid) = self.pid() {
            // It may have ended already.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let mut child = self.child.lock();
        let _ = child.kill();
        let _ = child.wait();
    }

    /// `None` once it was waited for: its number may belong to another process then.
    fn pid(&self) -> Option<Pid> {
        let mut child = self.child.lock();
        match child.try_wait() {
            Ok(None) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            _ => None,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder that only this user can enter, removed when it is dropped.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.subsec_nanos());
        // Short: the path of a socket has at most 107 bytes.
        let name = format!("basalt-host-{}-{number}-{nanos:x}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder of temporary files that stays is no fault of a call.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("s")
}

fn command(settings: &Settings, folder: &Path) -> Command {
    let mut command = Command::new(&settings.command);
    command
        .arg(format!("-Xmx{}", settings.heap_bytes))
        .arg(format!("-XX:MaxMetaspaceSize={METASPACE_BYTES}"))
        .arg(format!("-XX:MaxDirectMemorySize={DIRECT_BYTES}"))
        .args([
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:+UseSerialGC",
            "-Djava.awt.headless=true",
        ])
        .arg(format!("-Djava.io.tmpdir={}", folder.display()))
        .args(OPEN_PACKAGES)
        .arg("-cp")
        .arg(&settings.program)
        .arg(MAIN)
        .arg(socket(folder))
        .arg(&settings.class_path)
        .args(&settings.directories)
        // A group of its own: a signal of the terminal is for the server, which ends the host.
        .process_group(0);
    command
}

/// Logs what the host prints until it closes its output.
fn log_output(mut from: PipeReader, ready: &SyncSender<()>, last: &Mutex<VecDeque<String>>) {
    let mut limit = LineLimit::new();
    let (mut line, mut cut) = (Vec::new(), false);
    let mut bytes = [0; 8 << 10];
    loop {
        let count = match from.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        for &byte in &bytes[..count] {
            if byte != b'\n' {
                if line.len() < LINE_BYTES {
                    line.push(byte);
                } else {
                    cut = true;
                }
                continue;
            }
            if line == READY {
                // Only the first one is waited for.
                let _ = ready.try_send(());
            } else {
                log_line(&line, cut, &mut limit, last);
            }
            line.clear();
            cut = false;
        }
    }
    if !line.is_empty() {
        log_line(&line, cut, &mut limit, last);
    }
}

fn log_line(line: &[u8], cut: bool, limit: &mut LineLimit, last: &Mutex<VecDeque<String>>) {
    let mut text = String::from_utf8_lossy(line).into_owned();
    if cut {
        text.push_str("...");
    }
    if let Some(lost) = limit.admit(Instant::now()) {
        if lost > 0 {
            tracing::warn!(lost, "lines of the Java host were not logged");
        }
        tracing::info!("Java host: {}", text.escape_debug());
    }
    let mut last = last.lock();
    if last.len() == LAST_LINES {
        last.pop_front();
    }
    last.push_back(text);
}

/// Bounds the lines that are logged.
#[derive(Debug)]
struct LineLimit {
    second: Instant,
    logged: u32,
    lost: u64,
}

impl LineLimit {
    fn new() -> Self {
        Self {
            second: Instant::now(),
            logged: 0,
            lost: 0,
        }
    }

    /// Whether a line is logged: the number of lines that were not before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            (self.second, self.logged) = (now, 0);
        }
        if self.logged == LINES_A_SECOND {
            self.lost += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gigabytes_of_output_are_few_lines() {
        let mut limit = LineLimit::new();
        let begin = limit.second;
        let logged = (0..10_000).filter(|_| limit.admit(begin).is_some()).count();
        assert_eq!(logged, LINES_A_SECOND as usize);
        assert_eq!(limit.admit(begin + Duration::from_secs(1)), Some(9_950));
    }

    /// A line without end costs no memory.
    #[test]
    fn a_line_is_cut() {
        let (from, mut to) = io::pipe().unwrap();
        let writer = std::thread::spawn(move || {
            use std::io::Write as _;
            to.write_all(&vec![b'x'; 1 << 20]).unwrap();
            to.write_all(b"\nbasalt host ready\nend").unwrap();
        });
        let (ready, is_ready) = sync_channel(1);
        let last = Mutex::new(VecDeque::new());
        log_output(from, &ready, &last);
        writer.join().unwrap();
        assert_eq!(is_ready.try_recv(), Ok(()));
        let last = last.into_inner();
        assert_eq!((last[0].len(), &last[1][..]), (LINE_BYTES + 3, "end"));
    }
}
