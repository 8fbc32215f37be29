//! Operations that were applied and must not be applied again: increments, appends and atomic groups
//! with a client's [`Nonce`].
//!
//! A client without an answer sends the operation again with the same nonce. The nonce is looked up
//! under the locks of the operation's rows, so a retry that arrives while the first attempt runs
//! waits for these locks. An operation whose nonce is known is answered without being applied.
//!
//! A nonce is kept for [`KEPT`] after the operation, also over a restart:
//!
//! 1. It stands in the log, in the edit of its operation, with the time. After a crash the log has both
//!    or none.
//! 2. When a flush has made log segments obsolete, the nonces in them that are still kept are first
//!    logged again, in an edit of their own, and synced ([`Nonces::logged_up_to`],
//!    [`Nonces::logged_again`]). So all nonces are in the log, and neither store files nor the manifest
//!    have any. If the log has no space for such an edit, the segments stay, at most until their nonces
//!    expire.
//! 3. A start collects the nonces of all segments ([`Replay`]).
//!
//! An operation that did not ask for a sync (ASYNC_WAL, or `wal.sync = "os"`) can be in a store file
//! before its log frame is on the disk; after a power cut, not after a kill, its nonce may be lost.
//!
//! Bounds: beyond a maximum number, the oldest nonces are dropped before they expire. Each takes at
//! most 100 bytes.
//!
//! A database that follows another one notes its place beside the rows, in the form of a nonce ([`Mark`]):
//! the last one is kept as nonces are, for ever.
//!
//! The times in the log are the server's *lived time*: it begins at the wall-clock time of the first
//! start, advances with the monotonic clock while the server runs, and continues after a restart at the
//! latest time in the log. So a wall clock that is set, before, during or after a restart, changes no
//! age, and neither does the time for which the server was down or wrote no nonce before it went down:
//! a nonce is never kept for less than [`KEPT`].

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;

use crate::id::{Nonce, SeqId};
use crate::record::Mark;

/// How long a nonce is kept. HBase's clients give up sooner with every default.
pub(crate) const KEPT: Duration = Duration::from_mins(20);

/// Upper bound on the memory of a nonce: in the set, in the queue, and the room of both.
pub const NONCE_BYTES: usize = 100;

/// Shards with a lock each, so that writers rarely contend, and wait only briefly while one grows.
const SHARDS: usize = 16;

/// The nonces of a database.
#[derive(Debug)]
pub(crate) struct Nonces {
    shards: [Mutex<Shard>; SHARDS],
    /// Maximum number in one shard.
    shard_max: usize,
    /// Lived time, in milliseconds, and monotonic time at the start.
    began: (u64, Duration),
    /// The last mark, and the edit of the log that has it.
    mark: Mutex<Option<(Mark, SeqId)>>,
}

#[derive(Debug, Default)]
struct Shard {
    known: HashSet<Nonce>,
    /// The nonces in `known`, approximately in the order in which they expire.
    by_age: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    nonce: Nonce,
    /// Monotonic milliseconds.
    expires_ms: u64,
    /// The edit of the log that has it.
    logged: SeqId,
}

/// A nonce to be logged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The nonce.
    pub nonce: Nonce,
    /// How long ago its operation was applied.
    pub age_ms: u64,
}

fn kept_ms() -> u64 {
    KEPT.as_millis() as u64
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

impl Nonces {
    /// No nonces, and at most about `max` of them at a time. `lived_ms` is the lived time at the
    /// monotonic time `now`.
    pub(crate) fn new(max: usize, lived_ms: u64, now: Duration) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            shard_max: max.div_ceil(SHARDS),
            began: (lived_ms, now),
            mark: Mutex::default(),
        }
    }

    /// The lived time, which stands in the log with a nonce.
    pub(crate) fn lived_ms(&self, now: Duration) -> u64 {
        let (lived_ms, began) = self.began;
        lived_ms.saturating_add(millis(now.saturating_sub(began)))
    }

    /// Whether the operation was applied. `now` is monotonic time, as in all methods.
    pub(crate) fn is_known(&self, nonce: Nonce, now: Duration) -> bool {
        let mut shard = self.shard(nonce).lock();
        shard.expire(millis(now));
        shard.known.contains(&nonce)
    }

    /// The last mark.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.mark.lock().map(|(mark, _)| mark)
    }

    /// Keeps no mark any more: the database follows none.
    pub(crate) fn forget_mark(&self) {
        *self.mark.lock() = None;
    }

    /// Records that the operation is applied, and that the edit `logged` has its nonce; or the next mark.
    pub(crate) fn note(&self, nonce: Nonce, logged: SeqId, now: Duration) {
        if let Some(mark) = Mark::of(nonce) {
            *self.mark.lock() = Some((mark, logged));
            return;
        }
        let expires_ms = millis(now) + kept_ms();
        let mut shard = self.shard(nonce).lock();
        shard.expire(millis(now));
        shard.add(nonce, expires_ms, logged, self.shard_max);
    }

    /// The nonces that are kept and stand in edits up to `last`, and the mark if it does.
    pub(crate) fn logged_up_to(&self, last: SeqId, now: Duration) -> Vec<Kept> {
        let mark = self.mark.lock().filter(|(_, logged)| *logged <= last);
        let mut found: Vec<Kept> = mark
            .map(|(mark, _)| Kept {
                nonce: mark.to_nonce(),
                age_ms: 0,
            })
            .into_iter()
            .collect();
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.expire(millis(now));
            let old = shard.by_age.iter().filter(|entry| entry.logged <= last);
            found.extend(old.map(|entry| Kept {
                nonce: entry.nonce,
                age_ms: (millis(now) + kept_ms()).saturating_sub(entry.expires_ms),
            }));
        }
        found
    }

    /// Records that all nonces in edits up to `last` stand in the edit `again` too.
    pub(crate) fn logged_again(&self, last: SeqId, again: SeqId) {
        if let Some((_, logged)) = &mut *self.mark.lock()
            && *logged <= last
        {
            *logged = again;
        }
        for shard in &self.shards {
            let mut shard = shard.lock();
            for entry in shard.by_age.iter_mut().filter(|entry| entry.logged <= last) {
                entry.logged = again;
            }
        }
    }

    /// Memory of the nonces, expired ones included that were not looked at since.
    pub(crate) fn bytes(&self) -> u64 {
        (self.len() * NONCE_BYTES) as u64
    }

    /// Number of nonces, expired ones included that were not looked at since.
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().known.len()).sum()
    }

    /// Whether there are none.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, nonce: Nonce) -> &Mutex<Shard> {
        // Clients draw both numbers at random.
        &self.shards[(nonce.group ^ nonce.number) as usize % SHARDS]
    }
}

impl Shard {
    fn add(&mut self, nonce: Nonce, expires_ms: u64, logged: SeqId, max: usize) {
        if !self.known.insert(nonce) {
            return;
        }
        self.by_age.push_back(Entry {
            nonce,
            expires_ms,
            logged,
        });
        if self.by_age.len() > max.max(1) {
            self.drop_oldest();
        }
    }

    fn expire(&mut self, now_ms: u64) {
        while self
            .by_age
            .front()
            .is_some_and(|entry| entry.expires_ms <= now_ms)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(entry) = self.by_age.pop_front() {
            self.known.remove(&entry.nonce);
        }
    }
}

/// Collects the nonces of a log that is read back.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Lived time when the operation was applied, and the last edit that has the nonce.
    found: HashMap<Nonce, (u64, SeqId)>,
    max: usize,
    /// The latest time in the log.
    latest_ms: Option<u64>,
    /// The last mark, and the last edit that has it.
    mark: Option<(Mark, SeqId)>,
}

impl Replay {
    /// Begins to read; keeps about the `max` latest.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            found: HashMap::new(),
            max: max.max(1),
            latest_ms: None,
            mark: None,
        }
    }

    /// Records the nonce of an operation applied at `applied_ms`, which the edit `logged` has.
    /// REQUIRES: sequence ids grow from call to call.
    pub(crate) fn note(&mut self, nonce: Nonce, applied_ms: u64, logged: SeqId) {
        if let Some(mark) = Mark::of(nonce) {
            self.mark = Some((mark, logged));
            return;
        }
        self.latest_ms = self.latest_ms.max(Some(applied_ms));
        if self.age_ms(applied_ms) >= kept_ms() {
            return;
        }
        self.found.insert(nonce, (applied_ms, logged));
        if self.found.len() >= self.max.saturating_mul(2) {
            let latest = self.latest();
            self.found = latest.into_iter().collect();
        }
    }

    /// The nonces, at the monotonic time `now`. The lived time of a log without nonces begins at the
    /// wall-clock time `wall_ms`.
    pub(crate) fn finish(self, now: Duration, wall_ms: u64) -> Nonces {
        let nonces = Nonces::new(self.max, self.latest_ms.unwrap_or(wall_ms), now);
        *nonces.mark.lock() = self.mark;
        for (nonce, (applied_ms, logged)) in self.latest() {
            let left_ms = kept_ms().saturating_sub(self.age_ms(applied_ms));
            if left_ms == 0 {
                continue;
            }
            let expires_ms = millis(now) + left_ms;
            let mut shard = nonces.shard(nonce).lock();
            shard.add(nonce, expires_ms, logged, nonces.shard_max);
        }
        nonces
    }

    /// The latest ones, oldest first.
    fn latest(&self) -> Vec<(Nonce, (u64, SeqId))> {
        let mut all: Vec<_> = self.found.iter().map(|(nonce, at)| (*nonce, *at)).collect();
        all.sort_unstable_by_key(|(nonce, at)| (*at, *nonce));
        all.split_off(all.len().saturating_sub(self.max))
    }

    fn age_ms(&self, applied_ms: u64) -> u64 {
        self.latest_ms
            .map_or(0, |latest_ms| latest_ms.saturating_sub(applied_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(number: u64) -> Nonce {
        Nonce { group: 7, number }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_nonce_is_known_for_its_time_and_only_with_its_group() {
        let nonces = Nonces::new(100, 0, seconds(0));
        nonces.note(nonce(1), SeqId(5), seconds(10));
        let stranger = Nonce { group: 8, number: 1 };
        assert!(!nonces.is_known(stranger, seconds(10)));
        assert!(!nonces.is_known(nonce(2), seconds(10)));
        assert!(nonces.is_known(nonce(1), seconds(10 + 20 * 60 - 1)));
        assert!(!nonces.is_known(nonce(1), seconds(10 + 20 * 60)));
        assert!(nonces.is_empty(), "what has expired takes no memory");
    }

    #[test]
    fn beyond_the_maximum_the_oldest_go() {
        let nonces = Nonces::new(SHARDS * 4, 0, seconds(0));
        let all = SHARDS as u64 * 8;
        for number in 0..all {
            nonces.note(nonce(number), SeqId(number), seconds(1));
        }
        assert_eq!(nonces.len(), SHARDS * 4);
        let known = |number| nonces.is_known(nonce(number), seconds(1));
        assert!((0..all / 2).all(|number| !known(number)));
        assert!((all / 2..all).all(known));
    }

    #[test]
    fn nonces_of_old_edits_are_logged_again_once() {
        let nonces = Nonces::new(100, 0, seconds(0));
        nonces.note(nonce(1), SeqId(5), seconds(0));
        nonces.note(nonce(2), SeqId(9), seconds(60));
        let kept = nonces.logged_up_to(SeqId(5), seconds(90));
        let first = Kept {
            nonce: nonce(1),
            age_ms: 90_000,
        };
        assert_eq!(kept, [first]);
        nonces.logged_again(SeqId(5), SeqId(12));
        assert_eq!(nonces.logged_up_to(SeqId(8), seconds(90)), []);
        assert_eq!(nonces.logged_up_to(SeqId(12), seconds(90)).len(), 2);
        assert_eq!(nonces.logged_up_to(SeqId(12), seconds(20 * 60)).len(), 1);
    }

    #[test]
    fn the_last_mark_is_kept_until_it_is_forgotten() {
        let mark = |next| Mark {
            copy: 3,
            next: SeqId(next),
        };
        assert_eq!(Mark::of(mark(9).to_nonce()), Some(mark(9)));
        assert_eq!(Mark::of(nonce(1)), None);
        let nonces = Nonces::new(100, 0, seconds(0));
        for next in [7, 9] {
            nonces.note(mark(next).to_nonce(), SeqId(next), seconds(1));
        }
        assert!(nonces.is_empty(), "a mark is no operation");
        let kept = nonces.logged_up_to(SeqId(9), seconds(90));
        assert_eq!(
            kept.iter().map(|kept| Mark::of(kept.nonce)).collect::<Vec<_>>(),
            [Some(mark(9))]
        );
        nonces.logged_again(SeqId(9), SeqId(20));
        assert_eq!(nonces.logged_up_to(SeqId(19), seconds(90)), []);

        let mut replay = Replay::new(100);
        for next in [7, 9] {
            replay.note(mark(next).to_nonce(), 5, SeqId(next));
        }
        let nonces = replay.finish(seconds(1), 0);
        assert_eq!(nonces.mark(), Some(mark(9)));
        nonces.forget_mark();
        assert_eq!(nonces.logged_up_to(SeqId(9), seconds(1)), []);
    }

    #[test]
    fn a_replay_goes_on_with_the_age_that_a_nonce_had() {
        let start_ms = 1_000_000_000;
        let mut replay = Replay::new(100);
        replay.note(nonce(1), start_ms - 60_000, SeqId(1));
        replay.note(nonce(2), start_ms - kept_ms(), SeqId(2));
        replay.note(nonce(3), start_ms, SeqId(3));
        replay.note(nonce(1), start_ms - 60_000, SeqId(4));
        let nonces = replay.finish(seconds(100), 0);
        assert_eq!(nonces.len(), 2, "one is too old, one was logged twice");
        assert!(nonces.is_known(nonce(1), seconds(100 + 19 * 60 - 1)));
        assert!(!nonces.is_known(nonce(1), seconds(100 + 19 * 60)));
        assert!(nonces.is_known(nonce(3), seconds(100 + 20 * 60 - 1)));
        assert!(
            nonces.logged_up_to(SeqId(3), seconds(100)).len() == 1,
            "the later edit counts"
        );
    }

    #[test]
    fn lived_time_continues_where_the_log_ends_whatever_the_wall_clock_says() {
        for wall_ms in [0, 2_000_000_000] {
            let nonces = Replay::new(100).finish(seconds(7), wall_ms);
            assert_eq!(nonces.lived_ms(seconds(9)), wall_ms + 2_000);
            let mut replay = Replay::new(100);
            replay.note(nonce(1), 1_000_000_000, SeqId(1));
            let nonces = replay.finish(seconds(7), wall_ms);
            assert_eq!(nonces.lived_ms(seconds(9)), 1_000_002_000);
        }
    }

    #[test]
    fn a_replay_is_bounded_and_keeps_the_latest() {
        let mut replay = Replay::new(SHARDS * 10);
        for number in 0..10_000 {
            replay.note(nonce(number), 900_000 + number, SeqId(number));
            assert!(replay.found.len() < SHARDS * 20);
        }
        let nonces = replay.finish(seconds(1), 0);
        assert!(nonces.len() <= SHARDS * 10);
        assert!(nonces.is_known(nonce(9_999), seconds(1)));
        assert!(!nonces.is_known(nonce(0), seconds(1)));
    }
}
