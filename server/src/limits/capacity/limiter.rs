//! One limit: a number of requests or bytes in a unit of time.
//!
//! A bucket of tokens, refilled continuously, that holds one unit's worth (HBase:
//! `AverageIntervalRateLimiter`). It is kept as one number: the moment at which it will be full
//! again. Taking tokens moves that moment on by the time they need to come back, so taking needs no
//! lock and no task refills anything (the generic cell rate algorithm of ATM Forum TM 4.0).
//!
//! Tokens are taken at once, also when they are not there yet; the call returns how long the taker
//! has to wait for them, and later takers wait behind. So takers are served in the order of their
//! arrival. A request for more than the bucket's size waits until it is full and leaves a debt.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Points in time and durations in 64ths of a nanosecond, since some beginning: fine enough for
/// gigabytes per second, and enough for 9 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticks(u64);

const TICKS_PER_NANOSECOND: u64 = 64;

/// The largest debt, so that moments do not overflow: 3 years.
const DEBT_MAX: u64 = 3 * 365 * 86_400 * 1_000_000_000 * TICKS_PER_NANOSECOND;

impl Ticks {
    /// The time as ticks, rounded down.
    pub(crate) fn of(time: Duration) -> Self {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self(nanoseconds.saturating_mul(TICKS_PER_NANOSECOND))
    }

    /// The time, rounded up.
    pub(crate) fn duration(self) -> Duration {
        Duration::from_nanos(self.0.div_ceil(TICKS_PER_NANOSECOND))
    }
}

/// A limit and how far it is used.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: NonZeroU64,
    unit: Ticks,
    /// When the bucket is full again; in the past when it is.
    full_at: AtomicU64,
}

impl Limiter {
    /// A limit of `limit` requests or bytes in each `unit`. The bucket is full.
    pub(crate) fn new(limit: NonZeroU64, unit: Duration) -> Self {
        Self {
            limit,
            unit: Ticks::of(unit),
            full_at: AtomicU64::new(0),
        }
    }

    /// The wait of a request for `amount` that came now.
    pub(crate) fn wait(&self, amount: u64, now: Ticks) -> Ticks {
        self.wait_at(self.full_at.load(Ordering::Relaxed), self.cost(amount), now)
    }

    /// Takes `amount`; returns the wait for it.
    pub(crate) fn take(&self, amount: u64, now: Ticks) -> Ticks {
        let cost = self.cost(amount);
        let full_at = self
            .full_at
            .update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
                (full_at.max(now.0) + cost).min(now.0.saturating_add(DEBT_MAX))
            });
        self.wait_at(full_at, cost, now)
    }

    /// The time in which `amount` tokens come.
    fn cost(&self, amount: u64) -> u64 {
        let ticks = u128::from(amount) * u128::from(self.unit.0);
        let cost = ticks.div_ceil(u128::from(self.limit.get()));
        u64::try_from(cost).unwrap_or(DEBT_MAX).min(DEBT_MAX)
    }

    /// The wait until a bucket that is full at `full_at` has had the tokens that come in the time
    /// `cost`.
    fn wait_at(&self, full_at: u64, cost: u64, now: Ticks) -> Ticks {
        let enough_at = full_at.max(now.0) + cost.min(self.unit.0);
        Ticks(enough_at.saturating_sub(now.0 + self.unit.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limiter(limit: u64, unit: Duration) -> Limiter {
        Limiter::new(NonZeroU64::new(limit).unwrap(), unit)
    }

    fn at(milliseconds: u64) -> Ticks {
        Ticks::of(Duration::from_millis(milliseconds))
    }

    fn take(limiter: &Limiter, amount: u64, milliseconds: u64) -> Duration {
        let now = at(milliseconds);
        let expected = limiter.wait(amount, now);
        let wait = limiter.take(amount, now);
        assert_eq!(wait, expected, "asking and taking agree");
        wait.duration()
    }

    #[test]
    fn one_unit_is_there_at_once_and_the_rest_comes_evenly() {
        let limiter = limiter(10, SECOND);
        for _ in 0..10 {
            assert_eq!(take(&limiter, 1, 5_000), Duration::ZERO);
        }
        // Later takers wait, each 100 ms longer than the one before.
        for turn in 1..=30 {
            assert_eq!(take(&limiter, 1, 5_000), Duration::from_millis(100 * turn));
        }
        // After the debt is paid, the bucket fills up to one second's worth and no further.
        assert_eq!(take(&limiter, 10, 60_000), Duration::ZERO);
        assert_eq!(take(&limiter, 1, 60_000), Duration::from_millis(100));
    }

    #[test]
    fn over_a_long_time_it_admits_its_limit() {
        // Neither divides a second: rounding losses must not add up.
        for limit in [3, 7, 4_999, 1_000_003] {
            let limiter = limiter(limit, SECOND);
            let (mut now, mut taken, step) = (0u64, 0u64, limit / 3 + 1);
            while now < 1_000_000 {
                taken += step;
                now += limiter.take(step, at(now)).duration().as_millis() as u64 + 1;
            }
            let expected = limit * (now / 1000);
            assert!(
                taken <= expected + 2 * limit && taken >= expected - expected / 50 - 2 * limit,
                "{limit}: {taken} taken, {expected} expected"
            );
        }
    }

    #[test]
    fn a_request_larger_than_the_bucket_passes_once_and_leaves_a_debt() {
        let limiter = limiter(100, SECOND);
        assert_eq!(take(&limiter, 1_000, 0), Duration::ZERO, "the bucket is full");
        assert_eq!(take(&limiter, 1, 0), Duration::from_millis(9_010));
        assert_eq!(
            limiter.wait(1_000, at(0)).duration(),
            Duration::from_millis(10_010),
            "full again then"
        );
    }

    /// Goal: a small request that comes later does not overtake a large one that waits.
    #[test]
    fn later_callers_go_on_later() {
        let limiter = limiter(100, SECOND);
        let waits = [90, 500, 1, 20, 100, 1].map(|amount| take(&limiter, amount, 0));
        assert!(waits.is_sorted(), "{waits:?}");
        assert_eq!(waits[1], Duration::from_millis(900), "until it is full");
    }

    /// Goal: a request for nothing waits only while there is a debt, as of reads, which are charged
    /// later.
    #[test]
    fn nothing_waits_for_a_debt_only() {
        let limiter = limiter(100, SECOND);
        assert_eq!(take(&limiter, 100, 0), Duration::ZERO);
        assert_eq!(take(&limiter, 0, 0), Duration::ZERO);
        limiter.take(50, at(0));
        assert_eq!(take(&limiter, 0, 0), Duration::from_millis(500));
        assert_eq!(take(&limiter, 0, 500), Duration::ZERO);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let day = Duration::from_hours(24);
        let slow = limiter(1, day);
        assert_eq!(take(&slow, u64::MAX, 0), Duration::ZERO);
        assert!(take(&slow, u64::MAX, 0) > day);
        assert!(take(&slow, 1, 1) > day);
        let fast = limiter(u64::MAX, SECOND);
        assert_eq!(take(&fast, u64::MAX / 2, 10), Duration::ZERO);
        assert!(take(&fast, u64::MAX, 10) <= SECOND);
    }

    /// Goal: threads that take at the same time together take exactly the limit.
    #[test]
    fn threads_share_one_bucket() {
        let limiter = limiter(1_000, SECOND);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        limiter.take(1, at(0));
                    }
                });
            }
        });
        assert_eq!(take(&limiter, 0, 0), Duration::from_secs(3));
    }
}
