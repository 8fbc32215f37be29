//! When requests are due.
//!
//! In a closed loop a worker sends its next request when the last one was answered: the load adapts
//! to the server. In an open loop request `k` is due at `start + k / rate`, whatever the server
//! does, and its latency counts from that time, not from when a worker sent it. So time that
//! requests spend waiting behind a slow one is in the figures (no "coordinated omission").
//!
//! Due requests are permits of a semaphore, handed out by a thread of its own: tokio's timer counts
//! in whole milliseconds, which would be most of a fast server's latency. Only their number is
//! kept, so a server that falls behind costs no memory. The thread also ends the run in time: at a low
//! rate the next request may be due long after the end.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// One after the other, on each connection.
    Closed,
    /// At a rate.
    Open {
        /// Requests per second, over all connections.
        requests_per_s: f64,
    },
}

impl Pace {
    /// When request `index` is due, counted from the start; `None` when nothing but the worker decides.
    pub(crate) fn due(self, index: u64) -> Option<Duration> {
        match self {
            Pace::Closed => None,
            Pace::Open { requests_per_s } => {
                let seconds = index as f64 / requests_per_s;
                Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
            }
        }
    }
}

/// Hands out the requests of a run. Shared by its workers.
#[derive(Debug)]
pub(crate) struct Schedule {
    pace: Pace,
    start: Instant,
    /// Length of the run; `None` if something else ends it. Only the open loop needs it, since its tasks
    /// wait.
    length: Option<Duration>,
    /// Requests that are due and not taken. Closed when the run is over.
    due: Semaphore,
}

impl Schedule {
    /// Starts now. The thread that makes requests due ends when the schedule is closed, and closes it after
    /// `length`.
    pub(crate) fn start(pace: Pace, length: Option<Duration>) -> (Arc<Schedule>, Option<JoinHandle<()>>) {
        let schedule = Arc::new(Schedule {
            pace,
            start: Instant::now(),
            length,
            due: Semaphore::new(0),
        });
        let pacer = (pace != Pace::Closed).then(|| {
            let schedule = Arc::clone(&schedule);
            std::thread::spawn(move || schedule.release())
        });
        (schedule, pacer)
    }

    pub(crate) fn started(&self) -> Instant {
        self.start
    }

    /// Waits until a request is due; false when the run is over.
    pub(crate) async fn wait(&self) -> bool {
        if self.pace == Pace::Closed {
            return !self.due.is_closed();
        }
        match self.due.acquire().await {
            Ok(permit) => {
                permit.forget();
                true
            }
            Err(_closed) => false,
        }
    }

    /// From when on the latency of request `index` counts: when it was due, or now.
    pub(crate) fn intended(&self, index: u64) -> Instant {
        self.pace
            .due(index)
            .map_or_else(Instant::now, |due| self.start + due)
    }

    /// Whether the run has had its length, and was not ended before by something else.
    pub(crate) fn is_over(&self) -> bool {
        self.left(self.start.elapsed()).is_zero()
    }

    /// Ends the run: waiting tasks return.
    pub(crate) fn close(&self) {
        self.due.close();
    }

    /// The time of the run that is left; `Duration::MAX` if it has no length.
    fn left(&self, now: Duration) -> Duration {
        self.length
            .map_or(Duration::MAX, |length| length.saturating_sub(now))
    }

    fn release(&self) {
        /// Longest sleep, so that the end of a slow run is noticed.
        const SLEEP_MAX: Duration = Duration::from_millis(20);
        let mut released = 0u64;
        while !self.due.is_closed() {
            let now = self.start.elapsed();
            let left = self.left(now);
            if left.is_zero() {
                self.close();
                return;
            }
            let mut permits = 0;
            // Bounded, so that the loop goes on at a rate that no machine can reach.
            while permits < 4096 && self.pace.due(released).is_some_and(|due| due <= now) {
                released += 1;
                permits += 1;
            }
            if permits > 0 {
                self.due.add_permits(permits);
                continue;
            }
            let next = self.pace.due(released).unwrap_or(now);
            std::thread::sleep(next.saturating_sub(now).min(left).min(SLEEP_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_even_times_whatever_happens() {
        let pace = Pace::Open {
            requests_per_s: 250.0,
        };
        let due: Vec<_> = (0..4).map(|index| pace.due(index).unwrap().as_micros()).collect();
        assert_eq!(due, [0, 4_000, 8_000, 12_000]);
        assert_eq!(pace.due(900_000), Some(Duration::from_hours(1)));
        assert_eq!(Pace::Closed.due(7), None);
        let rare = Pace::Open {
            requests_per_s: 1e-300,
        };
        assert_eq!(rare.due(1), Some(Duration::MAX), "longer than a duration can be");
    }

    /// Requests are taken late on purpose: the third is still counted from when it was due, not from when it
    /// was taken.
    #[tokio::test]
    async fn latency_counts_from_the_due_time() {
        let (schedule, pacer) = Schedule::start(
            Pace::Open {
                requests_per_s: 1_000.0,
            },
            None,
        );
        for index in 0..20u64 {
            assert!(schedule.wait().await);
            let due = schedule.started() + Duration::from_millis(index);
            assert!(Instant::now() >= due, "a request was due too early");
            assert_eq!(schedule.intended(index), due);
        }
        schedule.close();
        assert!(!schedule.wait().await);
        pacer.unwrap().join().unwrap();
    }

    /// The second request is due after half a minute, and the run is over long before it.
    #[tokio::test]
    async fn waiting_ends_with_the_run() {
        let pace = Pace::Open {
            requests_per_s: 1.0 / 30.0,
        };
        let (schedule, pacer) = Schedule::start(pace, Some(Duration::from_millis(20)));
        assert!(schedule.wait().await);
        assert!(!schedule.wait().await);
        let took = schedule.started().elapsed();
        assert!(took >= Duration::from_millis(20), "it ended early: {took:?}");
        assert!(took < Duration::from_secs(15), "it waited: {took:?}");
        pacer.unwrap().join().unwrap();
    }

    #[tokio::test]
    async fn a_closed_loop_never_waits_and_counts_from_now() {
        let (schedule, pacer) = Schedule::start(Pace::Closed, None);
        assert!(pacer.is_none());
        assert!(schedule.wait().await);
        let before = Instant::now();
        assert!(schedule.intended(1_000) >= before);
        schedule.close();
        assert!(!schedule.wait().await);
    }
}
