//! Assigned time: the timestamps of writes that carry none.
//!
//! Assigned time follows the wall clock and never goes back. If the wall clock shows an earlier
//! time than was already assigned (it stepped back, or the process restarted with a wrong clock),
//! assigned time advances with the monotonic clock at three quarters of its speed, until the wall
//! clock has caught up. So two writes some milliseconds apart have different timestamps whatever
//! the wall clock does, and assigned time is never further ahead of the wall clock than the last
//! step was long.
//!
//! ```text
//! assigned |            ____----/        wall clock
//!          |      _----'      /
//!          |     /|         /
//!          |   /  |       /
//!          | /    |     /     <- the wall clock stepped back
//!          +-------------------------- monotonic clock
//! ```
//!
//! A row with tombstones and puts in the same millisecond gets later times still: see
//! `region::RowTimes`. These are not part of assigned time, so other rows do not follow them;
//! [`Timestamps::greatest`] includes them, and so does the high-water mark on disk.
//!
//! Invariants:
//! - A call of [`Timestamps::issue`] never returns less than one that ended before it began.
//! - After a start it returns more than every timestamp assigned before (`recovery`).
//!
//! Reasons and costs: docs/decisions/0016-timestamps.md.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::Clock;
use crate::seeded;

/// The log, `/readyz` and an alert report assigned time that is ahead of the wall clock by more
/// than this.
pub const BEHIND_MS: u64 = 1_000;

/// Maximum of assigned time. Rows may add to it and stay below HBase's "latest", `i64::MAX`.
const LAST_MS: u64 = i64::MAX as u64 - 1_000_000;

/// Lag behind assigned time from which the mark on disk is updated in the background. At 1.5 times
/// this lag a write updates the mark first, so the lag stays within recovery's margin
/// (`STAMP_SLACK_MS`).
const MARK_LAG_MS: u64 = 60_000;

/// A wall clock that has shown the same time for this long stands still.
const STANDS: Duration = Duration::from_millis(50);

/// Issues cell timestamps that never go back, whatever the wall clock does. Shared by all threads.
#[derive(Debug)]
pub struct Timestamps {
    /// Assigned time as of the last [`Self::issue`] or [`Self::look`].
    last_ms: AtomicU64,
    /// The greatest timestamp of a row that went ahead of assigned time.
    rows_ms: AtomicU64,
    /// Assigned time when it began to be ahead of the wall clock, while it is. Else [`u64::MAX`].
    ahead_from_ms: AtomicU64,
    /// The greatest assigned timestamp that the manifest states.
    marked_ms: AtomicU64,
    course: Mutex<Course>,
}

/// How assigned time advances without the wall clock.
#[derive(Debug, Default)]
struct Course {
    line: Option<Line>,
    /// The wall clock's time when it was last read, and the monotonic time since which it shows
    /// that.
    seen: Option<(u64, Duration)>,
}

/// Assigned time by the monotonic clock, from `base_ms` on, at three quarters of its speed.
#[derive(Clone, Copy, Debug)]
struct Line {
    base_ms: u64,
    since: Duration,
}

impl Line {
    fn at(self, mono: Duration) -> u64 {
        let passed_ms = u64::try_from(mono.saturating_sub(self.since).as_millis()).unwrap_or(u64::MAX);
        self.base_ms
            .saturating_add(passed_ms / 4 * 3 + passed_ms % 4 * 3 / 4)
            .min(LAST_MS)
    }
}

/// The part of assigned time in the wall clock's future. TTLs of cells with such timestamps follow
/// assigned time: by the wall clock, the cells would live longer by the whole lag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Timestamps above this may have been assigned since the wall clock fell behind.
    pub from_ms: i64,
    /// Assigned time.
    pub now_ms: i64,
}

impl Ahead {
    /// The wall clock is not behind.
    pub const NONE: Self = Self {
        from_ms: i64::MAX,
        now_ms: i64::MIN,
    };
}

impl Default for Timestamps {
    fn default() -> Self {
        Self::after(0)
    }
}

impl Timestamps {
    /// Assigned time of a process that starts when timestamps up to `greatest_ms` are already
    /// assigned; 0 for none.
    pub fn after(greatest_ms: u64) -> Self {
        let first = if greatest_ms == 0 {
            0
        } else {
            greatest_ms.saturating_add(u64::from(!seeded::is_on("times-start-where-they-ended")))
        };
        Self {
            last_ms: AtomicU64::new(first.min(LAST_MS)),
            rows_ms: AtomicU64::new(0),
            ahead_from_ms: AtomicU64::new(u64::MAX),
            marked_ms: AtomicU64::new(0),
            course: Mutex::default(),
        }
    }

    /// Assigned time now.
    /// REQUIRES: for a write, that the caller holds the row's lock, so that a later writer of the
    /// row never gets a smaller time.
    pub fn issue(&self, clock: &dyn Clock) -> i64 {
        // Loaded before the clock is read: a clock that then shows less is certainly behind, not
        // only behind another thread.
        let last = self.last_ms.load(Ordering::Acquire);
        let wall = clock.wall_ms();
        let now = match wall.cmp(&last) {
            std::cmp::Ordering::Less if seeded::is_on("times-stand-still") => last,
            std::cmp::Ordering::Less => self.go_on(&mut self.course.lock(), clock),
            _ if self.ahead_from_ms.load(Ordering::Acquire) != u64::MAX => self.catch_up(wall, clock),
            std::cmp::Ordering::Equal => last,
            std::cmp::Ordering::Greater => self.last_ms.fetch_max(wall, Ordering::AcqRel).max(wall),
        };
        now as i64
    }

    /// Assigned time when the wall clock was behind and has reached the time assigned last. Time
    /// has advanced since that was assigned, so the wall clock may still be behind.
    #[cold]
    fn catch_up(&self, wall: u64, clock: &dyn Clock) -> u64 {
        let line = self.course.lock().line;
        let time = line.map_or(wall, |line| line.at(clock.mono()).max(wall));
        self.last_ms.fetch_max(time, Ordering::AcqRel).max(time)
    }

    /// Advances assigned time without the wall clock.
    #[cold]
    fn go_on(&self, course: &mut Course, clock: &dyn Clock) -> u64 {
        let last = self.last_ms.load(Ordering::Acquire);
        let mono = clock.mono();
        let on_line = course.line.map(|line| line.at(mono)).filter(|time| *time >= last);
        let time = on_line.unwrap_or_else(|| {
            // There is no line, or the wall clock has passed it. A new line begins here, one step
            // further, so that a write before the clock stepped back and one after it have
            // different timestamps.
            let base_ms = last.saturating_add(1).min(LAST_MS);
            if self.ahead_from_ms.load(Ordering::Acquire) == u64::MAX {
                self.ahead_from_ms.store(last, Ordering::Release);
            }
            course.line = Some(Line { base_ms, since: mono });
            base_ms
        });
        self.last_ms.fetch_max(time, Ordering::AcqRel).max(time)
    }

    /// Compares the clocks; must be called several times a second. Detects a wall clock that stands
    /// still and one that has caught up, which [`Self::issue`] does not. Returns how far assigned
    /// time is ahead of the wall clock.
    pub fn look(&self, clock: &dyn Clock) -> Duration {
        let mut course = self.course.lock();
        let last = self.last_ms.load(Ordering::Acquire);
        let (wall, mono) = (clock.wall_ms(), clock.mono());
        let seen = course.seen.filter(|(shown, _)| *shown == wall);
        let (_, since) = seen.unwrap_or((wall, mono));
        course.seen = Some((wall, since));
        let stands = mono.saturating_sub(since) >= STANDS;
        if stands {
            // `go_on` then moves past the wall clock; `issue` alone would only detect that the
            // clock is not behind.
            self.last_ms.fetch_max(wall, Ordering::AcqRel);
        }
        if wall < last || stands {
            self.go_on(&mut course, clock);
        } else {
            course.line = None;
            self.ahead_from_ms.store(u64::MAX, Ordering::Release);
        }
        Duration::from_millis(self.last_ms.load(Ordering::Acquire).saturating_sub(wall))
    }

    /// Lead of assigned time over the wall clock, as of the last write or check.
    pub fn ahead_of_clock(&self, clock: &dyn Clock) -> Duration {
        // Loaded first, as in `issue`.
        let last = self.last_ms.load(Ordering::Acquire);
        Duration::from_millis(last.saturating_sub(clock.wall_ms()))
    }

    /// The timestamps whose TTLs follow assigned time instead of the wall clock.
    #[inline]
    pub fn ahead(&self) -> Ahead {
        let from = self.ahead_from_ms.load(Ordering::Acquire);
        if from == u64::MAX {
            return Ahead::NONE;
        }
        Ahead {
            from_ms: from as i64,
            now_ms: self.last_ms.load(Ordering::Acquire) as i64,
        }
    }

    /// Records that a row has gone ahead to this timestamp.
    pub(crate) fn note_row(&self, timestamp: i64) {
        self.rows_ms
            .fetch_max(u64::try_from(timestamp).unwrap_or_default(), Ordering::AcqRel);
    }

    /// The greatest timestamp assigned, including rows that went ahead.
    pub fn greatest(&self) -> u64 {
        let rows = self.rows_ms.load(Ordering::Acquire);
        self.last_ms.load(Ordering::Acquire).max(rows)
    }

    /// Moves assigned time beyond every assigned timestamp. Must be called when rows change their
    /// row locks, since the new ones have not recorded the rows' times.
    pub(crate) fn pass_rows(&self) {
        let passed = self.greatest().saturating_add(1).min(LAST_MS);
        self.last_ms.fetch_max(passed, Ordering::AcqRel);
    }

    /// Forgets all timestamps assigned so far, because nothing has them any more: assigned time
    /// follows the wall clock again, also to an earlier time.
    pub(crate) fn restart(&self) {
        let mut course = self.course.lock();
        *course = Course::default();
        self.rows_ms.store(0, Ordering::Release);
        self.ahead_from_ms.store(u64::MAX, Ordering::Release);
        self.last_ms.store(0, Ordering::Release);
    }

    /// Records that the manifest states this as the greatest assigned timestamp.
    pub(crate) fn set_marked(&self, ms: u64) {
        self.marked_ms.fetch_max(ms, Ordering::AcqRel);
    }

    /// Whether the mark on disk should be updated in the background.
    pub(crate) fn lags_mark(&self) -> bool {
        self.greatest() >= self.marked_ms.load(Ordering::Acquire).saturating_add(MARK_LAG_MS)
    }

    /// Whether the mark on disk must be updated before a write with this timestamp is logged.
    /// Otherwise recovery would treat the timestamp as a client's, and assign smaller ones after
    /// it. Happens after a pause and after a forward jump of the clock.
    #[inline]
    pub(crate) fn is_beyond_mark(&self, now: i64) -> bool {
        let limit = self
            .marked_ms
            .load(Ordering::Acquire)
            .saturating_add(MARK_LAG_MS + MARK_LAG_MS / 2);
        now as u64 >= limit
    }
}

/// The text of the log and `/readyz` about a clock that is behind.
pub fn behind_text(ahead: Duration) -> String {
    format!(
        "clock: new timestamps are {} s ahead of this machine's clock, which was set back or was wrong before. They go on at three quarters of \
         its speed until it has caught up. If the clock is wrong, set it; see \"The clock\" in docs/operations/failures.md",
        ahead.as_secs()
    )
}

#[cfg(test)]
mod tests;
