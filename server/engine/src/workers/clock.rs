//! Checks the clock: advances assigned time while the clock is behind or stands still, and notifies
//! the listener.

use std::time::Duration;

use super::Workers;
use crate::clock::{BEHIND_MS, behind_text};

/// Minimum time between two notifications that the clock is behind.
const TELL_PERIOD: Duration = Duration::from_mins(10);

/// The notifications of the listener about the clock.
#[derive(Debug, Default)]
pub(super) struct ClockTold {
    /// Monotonic time of the last notification that the clock is behind.
    at: Option<Duration>,
    /// Whether the listener was notified that the clock is behind, and not yet that it has caught
    /// up.
    behind: bool,
}

impl Workers {
    pub(super) fn poll_clock(&self) {
        let shared = self.catalog.shared();
        let ahead = shared.timestamps.look(&*shared.clock);
        let is_behind = ahead > Duration::from_millis(BEHIND_MS);
        let now = shared.clock.mono();
        let mut told = self.clock_told.lock();
        let may_tell = told.at.is_none_or(|at| now.saturating_sub(at) >= TELL_PERIOD);
        if is_behind && may_tell {
            *told = ClockTold {
                at: Some(now),
                behind: true,
            };
            shared.listener.clock_behind(&behind_text(ahead));
        } else if !is_behind && told.behind {
            told.behind = false;
            shared.listener.clock_caught_up();
        }
    }
}
