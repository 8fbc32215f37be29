//! A process that stands still while others are measured.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};

/// What a process gets for what has become due while it stood still, before it is measured again.
const SETTLE: Duration = Duration::from_millis(500);

/// The process stands still (SIGSTOP) for as long as this lives.
#[derive(Debug)]
pub(super) struct Still(Pid);

impl Still {
    /// Stops a process.
    pub(super) fn new(process: u32) -> Result<Still> {
        let failed = |why: &dyn std::fmt::Display| Error::Usage(format!("process {process}: {why}"));
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| failed(&"no process has this number"))?;
        kill_process(pid, Signal::STOP).map_err(|error| failed(&error))?;
        Ok(Still(pid))
    }

    /// Lets it go on, and gives it a moment.
    pub(super) async fn end(self) {
        drop(self);
        tokio::time::sleep(SETTLE).await;
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        // A process that is gone needs nothing.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// The state of a process, as in /proc: T is stopped.
    fn state_of(child: &Child) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    }

    /// It stands still at once, goes on when the guard is gone, and is there as before.
    #[test]
    fn a_process_stands_still_for_as_long_as_the_guard_lives() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let still = Still::new(child.id()).unwrap();
        // The signal is on its way for a moment.
        while state_of(&child) != 'T' {
            std::thread::yield_now();
        }
        drop(still);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"awake\n").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "awake\n");
        drop(stdin);
        child.wait().unwrap();
    }

    #[test]
    fn what_is_no_process_is_refused() {
        for process in [0, u32::MAX] {
            let error = Still::new(process).unwrap_err().to_string();
            assert!(error.contains(&format!("process {process}")), "{error}");
        }
    }
}
