//! Progress of a scan whose rows go to a file or another program: a line on standard error every
//! few seconds.

use std::io::{Result, Write};
use std::time::{Duration, Instant};

use super::escape::printable;

/// The first line comes after this, and each further one after the same time again.
const EVERY: Duration = Duration::from_secs(5);

/// Where the lines go, and when the next one is due.
pub struct Progress {
    to: Box<dyn Write + Send>,
    every: Duration,
    next: Instant,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

impl Progress {
    /// A line to `to` every five seconds of a command.
    pub fn new(to: Box<dyn Write + Send>) -> Progress {
        Progress {
            to,
            every: EVERY,
            next: Instant::now() + EVERY,
        }
    }

    /// A command begins.
    pub(super) fn begin(&mut self) {
        self.next = Instant::now() + self.every;
    }

    /// Counts rows, with the key of the last one. Prints a line if one is due.
    pub(super) fn rows(&mut self, rows: usize, last: &[u8]) -> Result<()> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + self.every;
        writeln!(self.to, "{rows} rows so far, row: {}", printable(last))?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_comes_only_when_it_is_due() {
        let to = Shared::default();
        let mut progress = Progress::new(Box::new(to.clone()));
        progress.begin();
        progress.rows(1, b"early").unwrap();
        progress.every = Duration::ZERO;
        progress.begin();
        progress.rows(7, b"a\x00").unwrap();
        progress.rows(8, b"b").unwrap();
        let printed = String::from_utf8(to.0.lock().unwrap().clone()).unwrap();
        assert_eq!(printed, "7 rows so far, row: a\\x00\n8 rows so far, row: b\n");
    }
}
