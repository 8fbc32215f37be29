//! Ids of master operations, which clients poll until the operation is finished.
//!
//! Every operation is finished when its call returns, so every id that was handed out is finished. Few
//! operations fail after the call has returned, as far as clients see ([`Failed`]): clients get an id
//! and then, with the operation's result, its exception.
//! Ids count up from the server's start time, so that none is reused after a restart. A call that
//! repeats the nonce of an earlier one returns the earlier id and is not executed again; nonces are
//! kept for 15 minutes, as in HBase.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time for which a nonce is kept.
const KEEP: Duration = Duration::from_mins(15);
/// Most nonces that are kept; the oldest is dropped for a new one.
const NONCES_MAX: usize = 10_000;

/// Most failures that are kept; the oldest is dropped for a new one, and its operation then counts as
/// successful. Clients ask at once.
const FAILURES_MAX: usize = 100;

/// The exception of an operation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Java's class.
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

/// Finished operations.
#[derive(Debug)]
pub(crate) struct Procedures {
    first: u64,
    next: AtomicU64,
    nonces: Mutex<VecDeque<(Nonce, u64, Instant)>>,
    failures: Mutex<VecDeque<(u64, Failed)>>,
}

/// A client's identifier of one operation: nonce group and nonce.
pub(super) type Nonce = (u64, u64);

impl Procedures {
    /// No operations yet. Ids begin with `first`.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            first,
            next: AtomicU64::new(first),
            nonces: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// The id of the finished operation with this nonce, if the nonce is still kept.
    pub(super) fn repeated(&self, nonce: Nonce) -> Option<u64> {
        let nonces = self.nonces.lock();
        let found = nonces
            .iter()
            .find(|(known, _, at)| *known == nonce && at.elapsed() < KEEP)?;
        Some(found.1)
    }

    /// A new id for an operation that has finished. Its nonce and failure, if any, are kept with the id.
    pub(super) fn finished(&self, nonce: Option<Nonce>, failed: Option<Failed>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(failed) = failed {
            let mut failures = self.failures.lock();
            if failures.len() >= FAILURES_MAX {
                failures.pop_front();
            }
            failures.push_back((id, failed));
        }
        if let Some(nonce) = nonce {
            let mut nonces = self.nonces.lock();
            while nonces.len() >= NONCES_MAX || nonces.front().is_some_and(|(_, _, at)| at.elapsed() >= KEEP)
            {
                nonces.pop_front();
            }
            nonces.push_back((nonce, id, Instant::now()));
        }
        id
    }

    /// The failure of the operation with this id; `None` if it did not fail.
    pub(crate) fn failure(&self, id: u64) -> Option<Failed> {
        let failures = self.failures.lock();
        let found = failures.iter().find(|(failed, _)| *failed == id)?;
        Some(found.1.clone())
    }

    /// Whether an operation with this id has finished.
    pub(crate) fn is_finished(&self, id: u64) -> bool {
        (self.first..self.next.load(Ordering::Relaxed)).contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_gets_the_id_of_its_first_call() {
        let procedures = Procedures::new(100);
        assert_eq!(procedures.repeated((1, 2)), None);
        let id = procedures.finished(Some((1, 2)), None);
        assert_eq!(
            (id, procedures.repeated((1, 2)), procedures.repeated((1, 3))),
            (100, Some(100), None)
        );
        assert!(procedures.is_finished(100) && !procedures.is_finished(101) && !procedures.is_finished(99));
    }

    #[test]
    fn nonces_are_bounded() {
        let procedures = Procedures::new(1);
        for number in 0..=NONCES_MAX as u64 {
            procedures.finished(Some((0, number)), None);
        }
        assert_eq!(procedures.repeated((0, 0)), None);
        assert!(procedures.repeated((0, 1)).is_some());
    }

    #[test]
    fn failures_are_kept_and_bounded() {
        let procedures = Procedures::new(1);
        let failed = |number: usize| Failed {
            class: "java.io.IOException",
            text: number.to_string(),
        };
        let first = procedures.finished(Some((1, 1)), Some(failed(0)));
        let done = procedures.finished(None, None);
        assert_eq!(procedures.repeated((1, 1)), Some(first));
        assert_eq!(procedures.failure(first), Some(failed(0)));
        assert_eq!(procedures.failure(done), None);
        let ids = (1..=FAILURES_MAX).map(|number| procedures.finished(None, Some(failed(number))));
        let last = ids.last().unwrap();
        assert_eq!(procedures.failure(first), None);
        assert_eq!(procedures.failure(last), Some(failed(FAILURES_MAX)));
        assert!(procedures.is_finished(first));
    }
}
