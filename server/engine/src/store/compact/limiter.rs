//! The rate limit that all compactions share: a token bucket over the engine's clock.
//!
//! While it is paused, no request is granted.
//!
//! The bucket holds a tenth of a second's bytes, so that one compaction after a pause does not
//! flood the disk. A caller that takes more than the balance waits until the balance is positive
//! again: large takes need no slicing and small ones cost one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::clock::Clock;

/// Longest wait between two looks at the clock and at `cancel`; a wake-up comes sooner.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes per second over all compactions.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    clock: Arc<dyn Clock>,
    bucket: Mutex<Bucket>,
    changed: Condvar,
}

#[derive(Debug)]
struct Bucket {
    /// 0 is unlimited.
    bytes_per_second: u64,
    /// No request is granted.
    paused: bool,
    /// Bytes that may be taken; negative: bytes that were taken ahead of time.
    balance: f64,
    /// When `balance` was right.
    at: Duration,
}

impl Bucket {
    fn refill(&mut self, now: Duration) {
        let rate = self.bytes_per_second as f64;
        let earned = now.saturating_sub(self.at).as_secs_f64() * rate;
        self.balance = (self.balance + earned).min(rate / 10.0);
        self.at = now;
    }
}

impl RateLimiter {
    /// A limiter of `bytes_per_second`; 0 is unlimited.
    pub(crate) fn new(clock: Arc<dyn Clock>, bytes_per_second: u64) -> Self {
        let at = clock.mono();
        Self {
            clock,
            bucket: Mutex::new(Bucket {
                bytes_per_second,
                paused: false,
                balance: 0.0,
                at,
            }),
            changed: Condvar::new(),
        }
    }

    /// Changes the rate; waiting compactions notice.
    #[cfg(test)]
    fn set_rate(&self, bytes_per_second: u64) {
        let mut bucket = self.bucket.lock();
        bucket.refill(self.clock.mono());
        bucket.bytes_per_second = bytes_per_second;
        drop(bucket);
        self.changed.notify_all();
    }

    /// Blocks all callers, or resumes them.
    pub(crate) fn pause(&self, paused: bool) {
        self.bucket.lock().paused = paused;
        self.changed.notify_all();
    }

    /// Takes `bytes` and waits until they are due; `false` when `cancel` was set before that.
    pub(crate) fn take(&self, bytes: u64, cancel: &AtomicBool) -> bool {
        if cancel.load(Ordering::Acquire) {
            return false;
        }
        let mut bucket = self.bucket.lock();
        while bucket.paused {
            self.changed.wait_for(&mut bucket, LOOK);
            if cancel.load(Ordering::Acquire) {
                return false;
            }
        }
        if bucket.bytes_per_second == 0 {
            return true;
        }
        bucket.refill(self.clock.mono());
        bucket.balance -= bytes as f64;
        while bucket.bytes_per_second > 0 && bucket.balance < 0.0 {
            let missing = Duration::from_secs_f64(-bucket.balance / bucket.bytes_per_second as f64);
            self.changed.wait_for(&mut bucket, missing.min(LOOK));
            if cancel.load(Ordering::Acquire) {
                return false;
            }
            bucket.refill(self.clock.mono());
        }
        true
    }

    /// Wakes waiting callers, so that they check their `cancel`.
    pub(crate) fn wake(&self) {
        // The lock orders this after a waiter's last check.
        drop(self.bucket.lock());
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn unlimited_never_waits() {
        let limiter = RateLimiter::new(Arc::new(ManualClock::at(0)), 0);
        assert!(limiter.take(u64::MAX, &AtomicBool::new(false)));
    }

    /// A pause holds a take without a rate; its end releases it, and so does `cancel`.
    #[test]
    fn a_pause_holds_everybody() {
        let limiter = Arc::new(RateLimiter::new(Arc::new(ManualClock::at(0)), 0));
        for cancelled in [false, true] {
            let cancel = Arc::new(AtomicBool::new(false));
            limiter.pause(true);
            let (taken, done) = std::sync::mpsc::channel();
            let waiting = std::thread::spawn({
                let (limiter, cancel) = (limiter.clone(), cancel.clone());
                move || taken.send(limiter.take(1, &cancel))
            });
            let early = done.recv_timeout(LOOK);
            assert!(early.is_err(), "no request is granted: {early:?}");
            cancel.store(cancelled, Ordering::Release);
            limiter.pause(cancelled);
            assert_eq!(done.recv(), Ok(!cancelled));
            waiting.join().unwrap().unwrap();
        }
    }

    /// The manual clock stands still, so a take that returned has not waited.
    #[test]
    fn the_bucket_holds_a_tenth_of_a_second() {
        let clock = Arc::new(ManualClock::at(0));
        let limiter = RateLimiter::new(clock.clone(), 1_000);
        clock.advance_ms(60_000);
        assert!(limiter.take(100, &AtomicBool::new(false)));
        assert!(
            limiter.bucket.lock().balance.abs() < 0.001,
            "the bucket is empty now"
        );
        clock.advance_ms(50);
        assert!(limiter.take(50, &AtomicBool::new(false)));
    }

    /// One thread waits for 10 seconds' worth of a clock that the test moves.
    #[test]
    fn a_take_waits_until_its_bytes_are_due() {
        let clock = Arc::new(ManualClock::at(0));
        let limiter = Arc::new(RateLimiter::new(clock.clone(), 1_000));
        let waiting = std::thread::spawn({
            let limiter = limiter.clone();
            move || limiter.take(10_000, &AtomicBool::new(false))
        });
        while limiter.bucket.lock().balance > -10_000.0 {
            std::thread::yield_now();
        }
        clock.advance_ms(9_000);
        limiter.wake();
        assert!(!waiting.is_finished(), "1000 bytes are still missing");
        clock.advance_ms(1_000);
        limiter.wake();
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn a_waiting_take_is_cancelled_and_freed_by_a_new_rate() {
        let limiter = Arc::new(RateLimiter::new(Arc::new(ManualClock::at(0)), 1));
        let cancel = Arc::new(AtomicBool::new(false));
        let waiting = std::thread::spawn({
            let (limiter, cancel) = (limiter.clone(), cancel.clone());
            move || limiter.take(1_000_000, &cancel)
        });
        cancel.store(true, Ordering::Release);
        limiter.wake();
        assert!(!waiting.join().unwrap());
        let waiting = std::thread::spawn({
            let limiter = limiter.clone();
            move || limiter.take(1_000_000, &AtomicBool::new(false))
        });
        limiter.set_rate(0);
        assert!(waiting.join().unwrap());
    }
}
