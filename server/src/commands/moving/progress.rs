//! Progress on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::commands::backup::show;

/// Time between two lines on a terminal, where each replaces the one before.
const PERIOD: Duration = Duration::from_millis(500);

/// Time between two lines elsewhere.
const PERIOD_IN_LOG: Duration = Duration::from_secs(10);

/// A count of bytes that is shown now and then.
#[derive(Debug)]
pub(super) struct Line {
    what: &'static str,
    is_terminal: bool,
    began: Instant,
    last: Instant,
    bytes: u64,
    is_shown: bool,
}

impl Line {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            is_terminal: std::io::stderr().is_terminal(),
            began: Instant::now(),
            last: Instant::now(),
            bytes: 0,
            is_shown: false,
        }
    }

    /// Adds bytes, and shows the sum if it is time.
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        let period = if self.is_terminal { PERIOD } else { PERIOD_IN_LOG };
        if self.last.elapsed() < period {
            return;
        }
        (self.last, self.is_shown) = (Instant::now(), true);
        let rate = self.bytes as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        let text = format!(
            "{} {}, {}/s",
            self.what,
            show::bytes(self.bytes),
            show::bytes(rate as u64)
        );
        let mut err = std::io::stderr().lock();
        // Progress has no reader when it cannot be written.
        let _ = if self.is_terminal {
            write!(err, "\r{text:<60}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{text}")
        };
    }

    /// Ends the line.
    pub(super) fn end(&mut self) {
        if self.is_terminal && std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r{:<60}\r", "");
        }
    }
}
