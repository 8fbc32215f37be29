//! The slowest calls of a method: a threshold by percentile, beside the fixed one of the slow log.
//!
//! 1. A call that takes longer than [`FLOOR`] adds one to a bucket of its latency ([`Tail::took`]). Others
//!    cost a comparison.
//! 2. Every ten seconds [`Tail::tick`] halves the older counts, adds the new ones, and moves the threshold:
//!    the latency that the given percentile of the method's calls did not exceed, [`FLOOR`] at least. Calls
//!    of half a minute ago count an eighth.
//! 3. Each second one call beyond the threshold may be recorded ([`Tail::is_beyond`]): one in a thousand of a
//!    busy method would fill the log.
//!
//! Invariant: without [`CALLS_MIN`] recent calls there is no threshold. Any thread may call; only `tick`
//! locks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::recent::{BUCKETS, bucket, upper_end};

/// Calls that are faster are never slow by percentile.
pub(crate) const FLOOR: Duration = Duration::from_millis(10);
/// Recent calls of a method from which its percentile says something.
pub(crate) const CALLS_MIN: u64 = 1_000;
/// Seconds of a step.
const STEP: u32 = 10;
/// No threshold.
const NONE: u64 = u64::MAX;

/// The slowest calls of one method.
#[derive(Debug)]
pub(crate) struct Tail {
    /// Calls longer than [`FLOOR`], by bucket; made by the first one.
    long: OnceLock<Box<[AtomicU64; BUCKETS]>>,
    /// Nanoseconds.
    threshold: AtomicU64,
    may_record: AtomicBool,
    state: Mutex<State>,
}

/// Counts of the last half a minute or so.
#[derive(Debug, Default)]
struct State {
    seconds: u32,
    calls_before: u64,
    calls: u64,
    long_before: Vec<u64>,
    long: Vec<u64>,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            long: OnceLock::new(),
            threshold: AtomicU64::new(NONE),
            may_record: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }
}

impl Tail {
    /// A call was answered.
    pub(super) fn took(&self, took: Duration) {
        if took > FLOOR {
            let empty = || Box::new(std::array::from_fn(|_| AtomicU64::new(0)));
            self.long.get_or_init(empty)[bucket(took)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The threshold; `None` while there are too few calls, or without a percentile.
    pub(crate) fn threshold(&self) -> Option<Duration> {
        let nanos = self.threshold.load(Ordering::Relaxed);
        (nanos != NONE).then(|| Duration::from_nanos(nanos))
    }

    /// Whether a call is beyond the threshold and the first such one of this second.
    pub(crate) fn is_beyond(&self, took: Duration) -> bool {
        took > FLOOR
            && self.threshold().is_some_and(|threshold| took > threshold)
            && self.may_record.swap(false, Ordering::Relaxed)
    }

    /// Called once a second with the number of the method's calls since the start. A percentile of 0 switches
    /// the threshold off.
    pub(super) fn tick(&self, calls: u64, percentile: f64) {
        self.may_record.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.seconds += 1;
        if state.seconds >= STEP {
            let long = self
                .long
                .get()
                .map(|long| long.each_ref().map(|count| count.load(Ordering::Relaxed)));
            state.step(calls, long.as_ref());
        }
        let threshold = state.threshold(percentile);
        let nanos = threshold.and_then(|threshold| u64::try_from(threshold.as_nanos()).ok());
        self.threshold.store(nanos.unwrap_or(NONE), Ordering::Relaxed);
    }
}

impl State {
    fn step(&mut self, calls: u64, long: Option<&[u64; BUCKETS]>) {
        self.seconds = 0;
        self.calls = self.calls / 2 + calls.saturating_sub(self.calls_before);
        self.calls_before = calls;
        let Some(long) = long else { return };
        self.long.resize(BUCKETS, 0);
        self.long_before.resize(BUCKETS, 0);
        for ((recent, before), now) in self.long.iter_mut().zip(&mut self.long_before).zip(long) {
            *recent = *recent / 2 + now.saturating_sub(*before);
            *before = *now;
        }
    }

    fn threshold(&self, percentile: f64) -> Option<Duration> {
        if percentile <= 0.0 || self.calls < CALLS_MIN {
            return None;
        }
        let beyond = (self.calls as f64 * (100.0 - percentile) / 100.0) as u64;
        let mut above = 0;
        let at = self.long.iter().rposition(|count| {
            above += count;
            above > beyond
        });
        Some(at.map_or(FLOOR, |at| upper_end(at).max(FLOOR)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(tail: &Tail, calls: u64, percentile: f64) {
        for _ in 0..STEP {
            tail.tick(calls, percentile);
        }
    }

    /// Goal: the threshold is the percentile, of recent calls only, and needs enough of them.
    #[test]
    fn the_threshold_follows_the_percentile() {
        let ms = Duration::from_millis;
        let tail = Tail::default();
        let took = |count: u64, ms: u64| (0..count).for_each(|_| tail.took(Duration::from_millis(ms)));
        took(999, 1);
        ticks(&tail, 999, 99.0);
        assert_eq!(tail.threshold(), None, "too few calls");
        assert!(!tail.is_beyond(Duration::MAX));
        took(9_001, 1);
        ticks(&tail, 10_000, 99.0);
        assert_eq!(tail.threshold(), Some(FLOOR), "all are fast");
        // 300 of 9,550 take 100 ms: 3 %, and 50 take a second: 0.5 %.
        took(300, 100);
        took(50, 1_000);
        ticks(&tail, 14_800, 99.0);
        let threshold = tail.threshold().unwrap();
        assert!((ms(100)..ms(125)).contains(&threshold), "{threshold:?}");
        ticks(&tail, 14_800, 0.0);
        assert_eq!(tail.threshold(), None, "switched off");
        for _ in 0..12 {
            ticks(&tail, 14_800, 99.0);
        }
        assert_eq!(tail.threshold(), None, "a method that is not called any more");
    }

    /// Goal: one call a second is recorded, however many are beyond.
    #[test]
    fn one_call_a_second_is_recorded() {
        let tail = Tail::default();
        ticks(&tail, 5_000, 99.9);
        let beyond = |took: u64| tail.is_beyond(Duration::from_millis(took));
        assert!(!beyond(10), "the floor");
        assert_eq!([beyond(11), beyond(500), beyond(11)], [true, false, false]);
        tail.tick(5_000, 99.9);
        assert_eq!([beyond(9), beyond(11), beyond(11)], [false, true, false]);
    }
}
