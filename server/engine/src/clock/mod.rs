//! Time as the engine sees it: a seam, so that tests and the simulator own it.
//!
//! Cell timestamps (through [`Timestamps`]) and TTLs use the wall clock; leases, waits and rates
//! use the monotonic clock.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

mod timestamps;

pub use timestamps::{Ahead, BEHIND_MS, Timestamps, behind_text};

/// The end of the year 9999. A wall clock that is set to a later time reads as this, so that dates
/// can be printed and sums of times do not overflow.
pub const WALL_MAX_MS: u64 = 253_402_300_799_999;

/// Source of time.
pub trait Clock: Send + Sync + Debug + 'static {
    /// Milliseconds since 1970-01-01 UTC, 0 before that, [`WALL_MAX_MS`] at most. May step in both
    /// directions; [`Timestamps`] hides backward steps from cells.
    fn wall_ms(&self) -> u64;
    /// The wall clock, up to a tick of the system (10 ms) late, but cheaper to read. For gets,
    /// which only compare it with TTLs.
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
        // A clock set before 1970 reads as 0: assigned time then continues from its high-water
        // mark.
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| milliseconds(since.as_secs(), since.subsec_nanos()))
    }

    #[cfg(target_os = "linux")]
    fn coarse_wall_ms(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        // A clock set before 1970 reads as 0; the nanoseconds are never negative.
        u64::try_from(now.tv_sec).map_or(0, |seconds| milliseconds(seconds, now.tv_nsec as u32))
    }

    fn mono(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The machine's clocks with a wall clock that tests move forward, and back to the machine's: cells
/// expire, and age, without waiting. The monotonic clock is the machine's.
#[derive(Debug)]
pub struct MovableClock {
    machine: SystemClock,
    ahead_ms: AtomicU64,
}

impl MovableClock {
    /// The machine's clocks, not moved yet.
    #[expect(clippy::new_without_default, reason = "the moment of creation matters")]
    pub fn new() -> Self {
        Self {
            machine: SystemClock::new(),
            ahead_ms: AtomicU64::new(0),
        }
    }

    /// Moves the wall clock forward, to [`WALL_MAX_MS`] at most. Returns the new time.
    pub fn advance_ms(&self, ms: u64) -> u64 {
        let moved = |ahead: u64| Some(ahead.saturating_add(ms).min(WALL_MAX_MS));
        // It always moves.
        let _ = self
            .ahead_ms
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
        self.wall_ms()
    }

    /// Sets the wall clock back to the machine's. Returns whether it was another.
    pub fn restore(&self) -> bool {
        self.ahead_ms.swap(0, Ordering::SeqCst) != 0
    }

    fn moved(&self, machine_ms: u64) -> u64 {
        let ahead_ms = self.ahead_ms.load(Ordering::SeqCst);
        machine_ms.saturating_add(ahead_ms).min(WALL_MAX_MS)
    }
}

impl Clock for MovableClock {
    fn wall_ms(&self) -> u64 {
        self.moved(self.machine.wall_ms())
    }

    fn coarse_wall_ms(&self) -> u64 {
        self.moved(self.machine.coarse_wall_ms())
    }

    fn mono(&self) -> Duration {
        self.machine.mono()
    }
}

/// The wall clock time for these seconds and nanoseconds since 1970, [`WALL_MAX_MS`] at most.
fn milliseconds(seconds: u64, nanoseconds: u32) -> u64 {
    seconds
        .saturating_mul(1_000)
        .saturating_add(u64::from(nanoseconds / 1_000_000))
        .min(WALL_MAX_MS)
}

/// A clock that moves only on request.
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
        self.wall_ms.store(
            self.wall_ms.load(Ordering::SeqCst).saturating_add(ms),
            Ordering::SeqCst,
        );
        self.mono_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Advances only the monotonic clock.
    pub fn advance_mono_ms(&self, ms: u64) {
        self.mono_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the wall clock, also backwards.
    pub fn set_wall_ms(&self, ms: u64) {
        self.wall_ms.store(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst).min(WALL_MAX_MS)
    }

    fn mono(&self) -> Duration {
        Duration::from_millis(self.mono_ms.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_clock_shows_a_time_beyond_the_year_9999() {
        for ms in [0, WALL_MAX_MS, WALL_MAX_MS + 1, i64::MAX as u64, u64::MAX] {
            let clock = ManualClock::at(ms);
            assert_eq!(clock.wall_ms(), ms.min(WALL_MAX_MS));
            assert_eq!(clock.coarse_wall_ms(), ms.min(WALL_MAX_MS));
        }
        assert_eq!(milliseconds(i64::MAX as u64, 999_999_999), WALL_MAX_MS);
        assert_eq!(milliseconds(1, 999_999_999), 1_999);
    }

    #[test]
    fn a_movable_clock_goes_forward_and_back_to_the_machines() {
        let clock = MovableClock::new();
        let before = clock.machine.wall_ms();
        let moved = clock.advance_ms(5_000);
        assert!(
            (before + 5_000..before + 65_000).contains(&moved),
            "{before} {moved}"
        );
        assert!(clock.coarse_wall_ms() >= before + 4_000);
        assert_eq!(clock.advance_ms(u64::MAX), WALL_MAX_MS);
        assert_eq!(clock.advance_ms(u64::MAX), WALL_MAX_MS);
        assert!(clock.restore());
        assert!(clock.wall_ms() < before + 60_000);
        assert!(!clock.restore());
    }
}
