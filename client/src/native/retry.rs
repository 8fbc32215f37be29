//! Attempts of one operation: pauses between them, and when they end.
//!
//! The pause after the nth failure is the nth of HBase's factors times [`ClusterOptions::pause`], plus up to
//! 1 % so that clients that failed together do not return together. An exception can ask for a longer or
//! shorter one. A pause that would reach the deadline is not begun: the operation fails at once.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::advice::advice;
use super::options::ClusterOptions;
use crate::error::{Error, Result};
use crate::remote::Advice;

/// HBase's factors of the pause.
const FACTORS: [u32; 13] = [1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200];

/// Attempts of one operation.
#[derive(Debug)]
pub(super) struct Attempts {
    options: Arc<ClusterOptions>,
    began: Instant,
    failed: u32,
}

impl Attempts {
    pub(super) fn begin(options: &Arc<ClusterOptions>) -> Attempts {
        Attempts {
            options: Arc::clone(options),
            began: Instant::now(),
            failed: 0,
        }
    }

    /// When the operation ends.
    pub(super) fn deadline(&self) -> Instant {
        self.began + self.options.operation_timeout
    }

    /// When a call that begins now ends.
    pub(super) fn call_deadline(&self) -> Instant {
        self.deadline().min(Instant::now() + self.options.call_timeout)
    }

    /// Counts a failure. Returns after the pause before the next attempt, or with the operation's error if
    /// there is none. `what` names the operation.
    pub(super) async fn pause(&mut self, error: Error, what: impl FnOnce() -> String) -> Result<()> {
        let advice = advice(&error);
        self.pause_as(&advice, error, what).await
    }

    /// Counts a failure as [`Self::pause`] does, with other advice than the error's own.
    pub(super) async fn pause_as(
        &mut self,
        advice: &Advice,
        error: Error,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        if *advice == Advice::Final {
            return Err(error);
        }
        match self.next(Instant::now(), advice) {
            Some(pause) => {
                if !pause.is_zero() {
                    sleep(pause).await;
                }
                Ok(())
            }
            None => Err(self.exhausted(error, what())),
        }
    }

    /// Counts a failure at `now`. The pause before the next attempt; `None` if there is none.
    pub(super) fn next(&mut self, now: Instant, advice: &Advice) -> Option<Duration> {
        let pause = self.pause_for(advice);
        self.failed += 1;
        let goes_on = self.failed <= self.options.retries && now + pause < self.deadline();
        if let (true, Some(observer)) = (goes_on, &self.options.observer) {
            observer.repeated();
        }
        goes_on.then_some(pause)
    }

    /// The operation's error after its last failure.
    pub(super) fn exhausted(&self, last: Error, what: String) -> Error {
        Error::Exhausted {
            what,
            attempts: self.failed,
            waited: self.began.elapsed(),
            last: Box::new(last),
        }
    }

    fn pause_for(&self, advice: &Advice) -> Duration {
        let base = match advice {
            Advice::WaitFor(pause) => return *pause,
            Advice::Now | Advice::Moved(_) if self.failed == 0 => return Duration::ZERO,
            Advice::WaitOverloaded => self.options.overload_pause.max(self.options.pause),
            _ => self.options.pause,
        };
        let pause = base * FACTORS[(self.failed as usize).min(FACTORS.len() - 1)];
        let pause = pause.min(self.options.pause_max);
        pause + pause.mul_f64((random() % 1_000) as f64 / 100_000.0)
    }
}

/// A number for an operation that must not be applied twice. Never 0, which means none.
pub(super) fn nonce() -> u64 {
    random().max(1)
}

/// A random number: the keys of a hasher are random.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Registry;

    fn attempts(change: impl FnOnce(&mut ClusterOptions)) -> Attempts {
        let mut options = ClusterOptions::new(Registry::bootstrap("h:1").unwrap());
        change(&mut options);
        Attempts::begin(&Arc::new(options))
    }

    #[test]
    fn pauses_grow_as_in_hbase() {
        let mut attempts = attempts(|_| {});
        let began = attempts.began;
        for factor in [1, 2, 3, 5, 10, 20, 40, 100] {
            let pause = attempts.next(began, &Advice::Wait).unwrap();
            let range = factor * 100_000..=factor * 101_000;
            assert!(range.contains(&pause.as_micros()), "{pause:?}");
        }
    }

    #[test]
    fn pauses_grow_to_their_limit() {
        let limit = Duration::from_millis(250);
        let mut attempts = attempts(|options| options.pause_max = limit);
        let began = attempts.began;
        let pauses: Vec<_> = (0..4)
            .map(|_| attempts.next(began, &Advice::Wait).unwrap())
            .collect();
        assert!(pauses[0] < limit && pauses[3] >= limit, "{pauses:?}");
        assert!(
            pauses.iter().all(|pause| *pause <= limit.mul_f64(1.01)),
            "{pauses:?}"
        );
    }

    #[test]
    fn advice_changes_the_pause() {
        let mut attempts = attempts(|_| {});
        let began = attempts.began;
        assert_eq!(attempts.next(began, &Advice::Now), Some(Duration::ZERO));
        assert!(
            attempts.next(began, &Advice::Now).unwrap() > Duration::ZERO,
            "only once"
        );
        let asked = Duration::from_secs(7);
        assert_eq!(attempts.next(began, &Advice::WaitFor(asked)), Some(asked));
        let overloaded = attempts.next(began, &Advice::WaitOverloaded).unwrap();
        assert!(overloaded >= Duration::from_millis(2_500), "{overloaded:?}");
    }

    #[test]
    fn attempts_end_with_their_number_and_with_the_deadline() {
        let mut few = attempts(|options| options.retries = 2);
        let began = few.began;
        assert!(few.next(began, &Advice::Wait).is_some());
        assert!(few.next(began, &Advice::Wait).is_some());
        assert_eq!(few.next(began, &Advice::Wait), None);
        let error = few.exhausted(Error::InvalidRequest("w".to_owned()), "get".to_owned());
        assert!(error.to_string().starts_with("get failed 3 times in "), "{error}");

        let mut short = attempts(|options| options.operation_timeout = Duration::from_millis(250));
        let began = short.began;
        assert!(short.next(began, &Advice::Wait).is_some());
        assert_eq!(
            short.next(began + Duration::from_millis(100), &Advice::Wait),
            None
        );
    }

    #[tokio::test]
    async fn a_final_error_stays_as_it_is() {
        let error = Error::InvalidRequest("w".to_owned());
        let ended = attempts(|_| {}).pause(error, String::new).await.unwrap_err();
        assert!(matches!(ended, Error::InvalidRequest(_)));
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random(), random());
    }
}
