//! Figures of a standby, and the channel for a promotion.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use basalt_engine::engine::Place;
use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::observe::metrics::names;

/// Asks for the change to the primary. The answer may be why not.
pub(crate) type Promotion = oneshot::Sender<Result<Became, String>>;

/// A standby that has become the primary.
#[derive(Clone, Debug)]
pub(crate) struct Became {
    pub(crate) term: u64,
    /// Where its copy of the log ended.
    pub(crate) position: u64,
    /// The previous primary has confirmed that it takes no more writes.
    pub(crate) fenced: bool,
    /// Time since the last point that a standby of backups had; `None` for others.
    pub(crate) lag: Option<Duration>,
    /// Why the end of the shipped log was not read; empty if it was.
    pub(crate) problem: String,
}

/// State of a standby that follows.
#[derive(Debug)]
pub(crate) struct Following {
    figures: Mutex<Figures>,
    promotions: mpsc::Sender<Promotion>,
    /// Taken by the task that follows.
    asked: Mutex<Option<mpsc::Receiver<Promotion>>>,
    lag: OnceLock<Gauge>,
    rows: Counter,
}

#[derive(Debug)]
struct Figures {
    place: Place,
    /// When it last had everything.
    current: Instant,
    problem: String,
}

impl Following {
    pub(super) fn new(place: Place) -> Self {
        let (promotions, asked) = mpsc::channel(1);
        Self {
            figures: Mutex::new(Figures {
                place,
                current: Instant::now(),
                problem: String::new(),
            }),
            promotions,
            asked: Mutex::new(Some(asked)),
            lag: OnceLock::new(),
            rows: counter!(names::STANDBY_EDITS_TOTAL),
        }
    }

    pub(crate) fn place(&self) -> Place {
        self.figures.lock().place
    }

    /// Time since it last had everything.
    pub(crate) fn lag(&self) -> Duration {
        self.figures.lock().current.elapsed()
    }

    /// Why it does not follow; empty while it does.
    pub(crate) fn problem(&self) -> String {
        self.figures.lock().problem.clone()
    }

    /// Notes an answer that was applied. `current`: the standby has everything of then. The problem is that
    /// of a source that answers, and has no more for now.
    pub(crate) fn note(&self, place: Place, rows: u64, current: Option<Instant>, problem: &str) {
        self.rows.increment(rows);
        let mut figures = self.figures.lock();
        figures.place = place;
        problem.clone_into(&mut figures.problem);
        if let Some(current) = current {
            figures.current = current.max(figures.current);
        }
    }

    pub(crate) fn note_problem(&self, problem: &str) {
        problem.clone_into(&mut self.figures.lock().problem);
    }

    /// Channel to the task that promotes.
    pub(crate) fn promotions(&self) -> &mpsc::Sender<Promotion> {
        &self.promotions
    }

    /// The other end of the channel, once.
    pub(crate) fn take_asked(&self) -> Option<mpsc::Receiver<Promotion>> {
        self.asked.lock().take()
    }

    /// Writes the lag for the scrape; only standbys have one.
    pub(super) fn publish(&self, is_standby: bool) {
        if is_standby || self.lag.get().is_some() {
            let gauge = self.lag.get_or_init(|| gauge!(names::STANDBY_LAG_SECONDS));
            gauge.set(if is_standby { self.lag().as_secs_f64() } else { 0.0 });
        }
    }
}
