//! When a process may be started, and which classes are given up. Pure: the time is an argument.
//!
//! A process that ends, or is ended because a call was late, is a *failure*. After a failure the next start
//! waits [`FIRST_DELAY`], and twice as long for each further failure within [`WINDOW`]. From [`FAILURES_MAX`]
//! failures on calls are refused for good until the window has passed.
//!
//! Every class that was in a call when its process failed gets a *strike*; a call that is answered takes its
//! strikes away. A class with [`STRIKES_MAX`] strikes within the window is refused, so that the others are
//! served.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_mins(1);
const FAILURES_MAX: usize = 5;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(30);
pub(crate) const STRIKES_MAX: usize = 3;
/// Most classes whose strikes are remembered.
const CLASSES_MAX: usize = 1_000;

/// Failures of processes and of classes.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    ends: VecDeque<Instant>,
    strikes: HashMap<String, VecDeque<Instant>>,
}

fn forget_old(ends: &mut VecDeque<Instant>, now: Instant) {
    while ends
        .front()
        .is_some_and(|end| now.saturating_duration_since(*end) >= WINDOW)
    {
        ends.pop_front();
    }
}

/// Why no process is started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoStart {
    /// The next start is allowed after this time.
    Later(Duration),
    /// Number of processes that have failed within the window.
    GivenUp(usize),
}

impl Failures {
    /// Notes that a process has failed, or could not be started.
    pub(crate) fn failed(&mut self, now: Instant) {
        forget_old(&mut self.ends, now);
        if self.ends.len() == FAILURES_MAX {
            self.ends.pop_front();
        }
        self.ends.push_back(now);
    }

    /// Whether a process may be started.
    pub(crate) fn may_start(&mut self, now: Instant) -> Result<(), NoStart> {
        forget_old(&mut self.ends, now);
        let Some(last) = self.ends.back() else {
            return Ok(());
        };
        if self.ends.len() >= FAILURES_MAX {
            return Err(NoStart::GivenUp(self.ends.len()));
        }
        let doublings = u32::try_from(self.ends.len() - 1).unwrap_or(u32::MAX).min(16);
        let delay = (FIRST_DELAY * 2_u32.pow(doublings)).min(DELAY_MAX);
        let since = now.saturating_duration_since(*last);
        match delay.checked_sub(since).filter(|left| !left.is_zero()) {
            Some(left) => Err(NoStart::Later(left)),
            None => Ok(()),
        }
    }

    /// Notes that the process failed during a call of this class.
    pub(crate) fn strike(&mut self, class: &str, now: Instant) {
        if self.strikes.len() == CLASSES_MAX && !self.strikes.contains_key(class) {
            self.strikes.clear();
        }
        let strikes = self.strikes.entry(class.to_owned()).or_default();
        forget_old(strikes, now);
        if strikes.len() == STRIKES_MAX {
            strikes.pop_front();
        }
        strikes.push_back(now);
    }

    /// Notes that a call of this class was answered.
    pub(crate) fn answered(&mut self, class: &str) {
        if !self.strikes.is_empty() {
            self.strikes.remove(class);
        }
    }

    /// Whether the class is refused.
    pub(crate) fn is_given_up(&mut self, class: &str, now: Instant) -> bool {
        let Some(strikes) = self.strikes.get_mut(class) else {
            return false;
        };
        forget_old(strikes, now);
        if strikes.is_empty() {
            self.strikes.remove(class);
            return false;
        }
        strikes.len() >= STRIKES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_wait_longer_and_longer_and_end() {
        let mut failures = Failures::default();
        let begin = Instant::now();
        assert_eq!(failures.may_start(begin), Ok(()));
        let mut now = begin;
        for delay in [100, 200, 400, 800] {
            failures.failed(now);
            let delay = Duration::from_millis(delay);
            assert_eq!(failures.may_start(now), Err(NoStart::Later(delay)));
            now += delay;
            assert_eq!(failures.may_start(now), Ok(()));
        }
        failures.failed(now);
        assert_eq!(failures.may_start(now), Err(NoStart::GivenUp(FAILURES_MAX)));
        assert_eq!(
            failures.may_start(begin + WINDOW),
            Ok(()),
            "the first is forgotten"
        );
        assert_eq!(failures.may_start(now + WINDOW), Ok(()));
    }

    #[test]
    fn a_class_is_given_up_and_the_others_are_not() {
        let mut failures = Failures::default();
        let now = Instant::now();
        for _ in 0..STRIKES_MAX {
            failures.strike("Loops", now);
            failures.strike("Bystander", now);
            failures.answered("Bystander");
        }
        assert!(failures.is_given_up("Loops", now));
        assert!(!failures.is_given_up("Bystander", now));
        assert!(!failures.is_given_up("Unknown", now));
        assert!(!failures.is_given_up("Loops", now + WINDOW));
    }

    #[test]
    fn names_of_classes_cost_bounded_memory() {
        let mut failures = Failures::default();
        let now = Instant::now();
        for number in 0..10 * CLASSES_MAX {
            failures.strike(&number.to_string(), now);
        }
        assert!(failures.strikes.len() <= CLASSES_MAX);
    }
}
