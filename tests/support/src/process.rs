//! Signals to processes, their memory, and waiting.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A figure of memory that Linux has of a process, in bytes; `of` is its name with the colon.
pub(crate) fn memory(process: &Child, of: &str) -> u64 {
    figure(process, of) * 1024
}

/// A figure that Linux has of a process; `of` is its name with the colon.
pub(crate) fn figure(process: &Child, of: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("the process runs");
    let line = status
        .lines()
        .find(|line| line.starts_with(of))
        .expect("Linux states it");
    let number = line.split_whitespace().nth(1);
    number.and_then(|text| text.parse().ok()).expect("a number")
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
