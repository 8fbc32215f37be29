//! A rate-limited log line: at most one in a period, with the number of lines left out before it.

use std::time::{Duration, Instant};

/// The limit of one line.
#[derive(Debug)]
pub(crate) struct LogLimit {
    /// Least time between two lines.
    period: Duration,
    last: Option<Instant>,
    /// Lines left out since `last`.
    left_out: u64,
}

impl LogLimit {
    pub(crate) fn every(period: Duration) -> Self {
        Self {
            period,
            last: None,
            left_out: 0,
        }
    }

    /// The number of lines left out before this one, or `None` if this line is left out, too.
    pub(crate) fn next(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now < last + self.period) {
            self.left_out += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}
