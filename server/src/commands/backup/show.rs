//! Progress on standard error, and numbers for people.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant, SystemTime};

use basalt_backup::{Figures, Progress};

/// Time between two lines on a terminal, where each replaces the one before.
const PERIOD: Duration = Duration::from_millis(500);

/// Time between two lines elsewhere.
const PERIOD_IN_LOG: Duration = Duration::from_secs(10);

/// Shows figures now and then.
pub(super) struct Line {
    what: &'static str,
    is_terminal: bool,
    last: Option<Instant>,
    began: Instant,
}

impl Line {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            is_terminal: std::io::stderr().is_terminal(),
            last: None,
            began: Instant::now(),
        }
    }

    /// Shows the figures, if it is time.
    pub(super) fn show(&mut self, figures: Figures) {
        let period = if self.is_terminal { PERIOD } else { PERIOD_IN_LOG };
        let since = self.last.map_or(self.began.elapsed(), |last| last.elapsed());
        if since < period || figures.bytes_total == 0 {
            return;
        }
        self.last = Some(Instant::now());
        let percent = figures.bytes_done.min(figures.bytes_total) * 100 / figures.bytes_total;
        let rate = figures.bytes_moved as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        let text = format!(
            "{} {percent} % of {}: {} moved, {}/s",
            self.what,
            bytes(figures.bytes_total),
            bytes(figures.bytes_moved),
            bytes(rate as u64)
        );
        let mut err = std::io::stderr().lock();
        // Progress has no reader when it cannot be written.
        let _ = if self.is_terminal {
            write!(err, "\r{text:<70}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{text}")
        };
    }

    /// Ends the line.
    pub(super) fn end(&mut self) {
        if self.is_terminal && self.last.take().is_some() {
            let _ = write!(std::io::stderr(), "\r{:<70}\r", "");
        }
    }

    /// Shows the progress of `work` until it ends.
    pub(super) async fn of<T>(mut self, progress: &Progress, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let mut ticks = tokio::time::interval(PERIOD);
        loop {
            tokio::select! {
                done = work.as_mut() => {
                    self.end();
                    return done;
                }
                _ = ticks.tick() => self.show(progress.figures()),
            }
        }
    }
}

/// `1.2 GB`.
pub(in crate::commands) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// `2026-11-29T12:58:03.123Z`.
pub(in crate::commands) fn time(time_ms: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(time_ms);
    humantime::format_rfc3339_millis(time).to_string()
}
