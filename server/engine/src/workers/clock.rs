//! Looks at the clock: lets assigned time go on without it while it is behind or stands still, and tells the listener.

use std::time::Duration;

use super::Workers;
use crate::clock::{BEHIND_MS, behind_text};

/// The listener is told of a clock that is behind at most this often.
const TELL_PERIOD: Duration = Duration::from_mins(10);

/// What the listener knows of the clock.
#[derive(Debug, Default)]
pub(super) struct ClockTold {
    /// When it was told last that the clock is behind (monotonic).
    at: Option<Duration>,
    /// It was told so, and not yet that the clock has caught up.
    behind: bool,
}

impl Workers {
    pub(super) fn look_at_clock(&self) {
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
