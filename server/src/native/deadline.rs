//! How long a client waits for the answer to a call.
//!
//! The request header has the time in milliseconds, counted from the arrival of the call. As HBase
//! does, a call that has not begun by then is dropped without an answer: its client has timed out,
//! and some clients close the connection on an unexpected answer.

use std::time::{Duration, Instant};

/// Least time that is honoured, as in HBase (`hbase.ipc.min.client.request.timeout`).
const LEAST: Duration = Duration::from_millis(20);

/// The time at which a client times out; none if it waits for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    /// The deadline of a call that arrived at `arrived`, from the `timeout` in its header.
    pub(super) fn new(arrived: Instant, timeout_ms: Option<u32>) -> Self {
        let timeout = timeout_ms.filter(|ms| *ms > 0).map(u64::from);
        let time = timeout.map(|ms| Duration::from_millis(ms).max(LEAST));
        Self(time.and_then(|time| arrived.checked_add(time)))
    }

    /// Whether the client has given up by `now`.
    pub(super) fn has_passed(self, now: Instant) -> bool {
        self.0.is_some_and(|deadline| deadline < now)
    }

    /// How long the client still waits; `None`: for ever.
    pub(super) fn left(self, now: Instant) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_counts_from_the_arrival_of_the_call() {
        let (arrived, ms) = (Instant::now(), Duration::from_millis);
        let deadline = Deadline::new(arrived, Some(50));
        assert!(!deadline.has_passed(arrived + ms(50)));
        assert!(deadline.has_passed(arrived + ms(51)));
        assert_eq!(deadline.left(arrived + ms(20)), Some(ms(30)));
        assert_eq!(deadline.left(arrived + ms(60)), Some(ms(0)));
    }

    #[test]
    fn a_deadline_is_at_least_that_of_hbase_and_may_be_absent() {
        let arrived = Instant::now();
        assert_eq!(Deadline::new(arrived, Some(1)), Deadline::new(arrived, Some(20)));
        for none in [None, Some(0)] {
            let deadline = Deadline::new(arrived, none);
            assert!(!deadline.has_passed(arrived + Duration::from_hours(1)));
            assert_eq!(deadline.left(arrived), None);
        }
    }
}
