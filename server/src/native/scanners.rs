//! The scanners of a native connection: their state between two calls.
//!
//! A scanner is open until a client closes it, its region or limit ends it, or a fetch fails. The
//! scanners that ended last without a failure are remembered for [`Scanners::check_ended`], because
//! HBase answers a call about one of them otherwise than one about an unknown scanner.

use std::collections::{HashMap, VecDeque};

use crate::service::Failure;

/// Ended scanners that are remembered. HBase remembers each for the time of a lease.
const ENDED_MAX: usize = 16;

/// State of a scanner between its calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanState {
    /// Sequence number that the next fetch must have.
    pub(super) next_call: u64,
    /// Most bytes of one response.
    pub(super) bytes: u64,
    /// Whether the client wants to know where a fetch is that has no results yet.
    pub(super) needs_cursor: bool,
}

/// Scanners by their ids.
#[derive(Debug, Default)]
pub(super) struct Scanners {
    open: HashMap<u64, ScanState>,
    /// Ids of ended scanners with the sequence number that they expected, oldest first.
    ended: VecDeque<(u64, u64)>,
}

impl Scanners {
    /// Adds a scanner. When there are `max`, those that are no longer `alive` are dropped first:
    /// scanners expire without a call.
    pub(super) fn insert(&mut self, id: u64, state: ScanState, max: usize, alive: impl Fn(u64) -> bool) {
        if self.open.len() >= max {
            self.open.retain(|id, _| alive(*id));
        }
        self.open.insert(id, state);
    }

    /// The state of an open scanner.
    pub(super) fn get(&self, id: u64) -> Option<ScanState> {
        self.open.get(&id).copied()
    }

    /// Ends a scanner as its client expects.
    pub(super) fn end(&mut self, id: u64) {
        let Some(state) = self.open.remove(&id) else {
            return;
        };
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((id, state.next_call));
    }

    /// Forgets a scanner that has failed.
    pub(super) fn discard(&mut self, id: u64) {
        self.open.remove(&id);
    }

    /// Whether a call is about a scanner that has ended; it then has an empty answer. As in HBase, it
    /// fails unless its sequence number is behind the expected one: a client that repeats a call,
    /// because it has missed the answer, must not take the empty one for it.
    pub(super) fn check_ended(&self, id: u64, number: Option<u64>) -> Result<bool, Failure> {
        let Some((_, next_call)) = self.ended.iter().find(|(ended, _)| *ended == id) else {
            return Ok(false);
        };
        let expected = next_call + 1;
        match number {
            Some(number) if number != expected => Err(Failure::out_of_order(expected, number)),
            _ => Ok(true),
        }
    }

    /// Rejects a call whose sequence number is not the next one: the client has missed a response.
    pub(super) fn check_next(&mut self, id: u64, number: Option<u64>) -> Result<(), Failure> {
        let state = self
            .open
            .get_mut(&id)
            .ok_or_else(|| Failure::unknown_scanner(id))?;
        let Some(number) = number else {
            return Ok(());
        };
        if number != state.next_call {
            return Err(Failure::out_of_order(state.next_call, number));
        }
        state.next_call += 1;
        Ok(())
    }

    /// Allows the client to repeat the call that [`Self::check_next`] has accepted last.
    pub(super) fn repeat_call(&mut self, id: u64) {
        if let Some(state) = self.open.get_mut(&id) {
            state.next_call -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: ScanState = ScanState {
        next_call: 0,
        bytes: 1,
        needs_cursor: false,
    };

    fn with_scanners(ids: std::ops::Range<u64>) -> Scanners {
        let mut scanners = Scanners::default();
        for id in ids {
            scanners.insert(id, STATE, usize::MAX, |_| true);
        }
        scanners
    }

    #[test]
    fn calls_come_in_order() {
        let mut scanners = with_scanners(1..2);
        assert!(scanners.check_next(1, Some(1)).is_err());
        assert!(scanners.check_next(1, Some(0)).is_ok());
        assert!(scanners.check_next(1, Some(0)).is_err());
        scanners.repeat_call(1);
        assert!(scanners.check_next(1, Some(0)).is_ok());
        assert!(scanners.check_next(1, None).is_ok());
        assert!(scanners.check_next(1, Some(1)).is_ok());
        assert!(scanners.check_next(2, None).unwrap_err().is_unknown_scanner());
    }

    #[test]
    fn ended_scanners_are_not_unknown_but_failed_ones_are() {
        let mut scanners = with_scanners(1..3);
        scanners.check_next(1, Some(0)).unwrap();
        assert!(!scanners.check_ended(1, Some(1)).unwrap());
        scanners.end(1);
        scanners.discard(2);
        assert!(scanners.check_ended(1, Some(1)).is_err());
        assert!(scanners.check_ended(1, Some(2)).unwrap());
        assert!(scanners.check_ended(1, None).unwrap());
        assert!(!scanners.check_ended(2, Some(0)).unwrap());
        assert!(scanners.check_next(1, None).unwrap_err().is_unknown_scanner());
    }

    #[test]
    fn only_the_last_ended_scanners_are_remembered() {
        let last = ENDED_MAX as u64 + 1;
        let mut scanners = with_scanners(0..last + 1);
        (0..=last).for_each(|id| scanners.end(id));
        let known = |id| scanners.check_ended(id, None).unwrap();
        assert!(!known(0) && !known(1) && known(2) && known(last));
        assert_eq!(scanners.ended.len(), ENDED_MAX);
    }

    #[test]
    fn expired_scanners_make_room() {
        let mut scanners = with_scanners(0..4);
        scanners.insert(4, STATE, 4, |id| id == 3);
        let open = |id| scanners.get(id).is_some();
        assert!(!open(0) && !open(2) && open(3) && open(4));
    }
}
