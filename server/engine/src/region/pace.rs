//! How writers are slowed before they are refused.
//!
//! Memstores fill faster than they are flushed when the disk cannot keep up, or when a store has so
//! many files that flushes wait for compactions. Writes beyond the limit are refused, since memory
//! is bounded. Without pacing, fast writers would alternate between no refusals and nothing but
//! refusals until a flush ends. So close to the limit each write is followed by a pause, which
//! grows with the bytes in memory, until writes arrive at the rate of flushes.
//!
//! The engine does not pause: it has no thread to spare. It returns the pause with the
//! [`crate::wal::Commit`], and the caller waits that long before it answers the writer.

use std::time::Duration;

/// Writes pause from this share of a limit on, in percent. Flushes for want of memory are asked for well
/// before.
const FROM_PERCENT: u64 = 90;

/// The pause right below the limit.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The pause after a write when memstores hold `used` bytes of at most `limit`: nothing up to
/// [`FROM_PERCENT`], from there on it grows with the square of the excess.
pub(crate) fn pause(used: u64, limit: u64) -> Duration {
    let from = limit / 100 * FROM_PERCENT;
    if used <= from {
        return Duration::ZERO;
    }
    let share = ((used - from) as f64 / (limit - from).max(1) as f64).min(1.0);
    PAUSE_MAX.mul_f64(share * share)
}

/// A row's time may be this far ahead without a pause.
const ROW_FREE_MS: i64 = 100;

/// The pause after a write whose row was given a time `ahead_ms` ahead of assigned time: the excess
/// over [`ROW_FREE_MS`]. A client that deletes and rewrites a row over and over is thereby slowed
/// to the rate of the clock instead of being refused.
pub(crate) fn pause_of_row(ahead_ms: i64) -> Duration {
    let over = u64::try_from(ahead_ms - ROW_FREE_MS).unwrap_or_default();
    Duration::from_millis(over).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_far_ahead_is_waited_for() {
        let pauses = [0, 100, 101, 200, 1_000].map(|ahead| pause_of_row(ahead).as_millis());
        assert_eq!(pauses, [0, 0, 1, 100, 250]);
    }

    #[test]
    fn the_pause_grows_with_what_is_held() {
        let at = |used| pause(used, 1000).as_micros();
        assert_eq!([at(0), at(900), at(901)], [0, 0, 25]);
        assert_eq!([at(950), at(1000), at(u64::MAX)], [62_500, 250_000, 250_000]);
        assert_eq!(pause(1, 0), PAUSE_MAX);
        assert_eq!(pause(0, 0), Duration::ZERO);
    }
}
