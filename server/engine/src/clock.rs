//! Time as the engine sees it: a seam, so that tests and the simulator own it.
//!
//! Cell timestamps and TTL use the wall clock; leases, waits and rates use the monotonic one.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Source of time.
pub trait Clock: Send + Sync + Debug + 'static {
    /// Milliseconds since 1970-01-01 UTC. May step backwards; [`Timestamps`] hides that from cells.
    fn wall_ms(&self) -> u64;
    /// The same, up to a tick of the system (10 ms) late and cheaper to ask. For gets, which only compare it with TTLs.
    fn coarse_wall_ms(&self) -> u64 {
        self.wall_ms()
    }
    /// Time since an arbitrary fixed moment. Never steps backwards.
    fn mono(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    #[expect(clippy::new_without_default, reason = "the moment of creation matters")]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn wall_ms(&self) -> u64 {
        // A clock set before 1970 reads as 0: cell timestamps are then held up by their high-water mark.
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64)
    }

    #[cfg(target_os = "linux")]
    fn coarse_wall_ms(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        // As above; the nanoseconds are never negative.
        u64::try_from(now.tv_sec).map_or(0, |seconds| seconds * 1_000 + now.tv_nsec as u64 / 1_000_000)
    }

    fn mono(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that moves only when told to.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_ms: AtomicU64,
    mono_ms: AtomicU64,
}

impl ManualClock {
    /// A clock standing at `wall_ms`.
    pub fn at(wall_ms: u64) -> Self {
        Self {
            wall_ms: AtomicU64::new(wall_ms),
            mono_ms: AtomicU64::new(0),
        }
    }

    /// Moves both clocks forward.
    pub fn advance_ms(&self, ms: u64) {
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.mono_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the wall clock, also backwards.
    pub fn set_wall_ms(&self, ms: u64) {
        self.wall_ms.store(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn mono(&self) -> Duration {
        Duration::from_millis(self.mono_ms.load(Ordering::SeqCst))
    }
}

/// Issues cell timestamps that never go back, whatever the wall clock does.
///
/// The high-water mark is restored at start from the newest server-assigned timestamp found (manifest and WAL).
#[derive(Debug, Default)]
pub struct Timestamps {
    last_ms: AtomicU64,
}

impl Timestamps {
    /// The time to stamp an edit with: the wall clock, or the last issued time when the clock stepped back.
    /// REQUIRES: the caller holds the row's lock, so that a later writer of the row never gets a smaller time.
    pub fn issue(&self, clock: &dyn Clock) -> i64 {
        let now = clock.wall_ms();
        let last = self.last_ms.fetch_max(now, Ordering::AcqRel);
        i64::try_from(now.max(last)).unwrap_or(i64::MAX - 1)
    }

    /// Makes sure that nothing below `ms` is issued any more.
    pub fn raise_to(&self, ms: u64) {
        self.last_ms.fetch_max(ms, Ordering::AcqRel);
    }

    /// The newest time issued.
    pub fn last(&self) -> u64 {
        self.last_ms.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_never_go_back() {
        let clock = ManualClock::at(1_000);
        let stamps = Timestamps::default();
        assert_eq!(stamps.issue(&clock), 1_000);
        clock.set_wall_ms(10);
        assert_eq!(stamps.issue(&clock), 1_000);
        clock.set_wall_ms(1_001);
        assert_eq!(stamps.issue(&clock), 1_001);
        stamps.raise_to(5_000);
        assert_eq!(stamps.issue(&clock), 5_000);
    }
}
