//! Assigned times of a row: a put is later than its row's tombstones, a tombstone covers its row's
//! puts.
//!
//! HBase's tombstones hide by timestamp alone. A put in the same millisecond as an earlier
//! tombstone would be hidden by it (HBASE-2256), and a tombstone would not hide a put of the same
//! millisecond whose time was advanced because of an earlier tombstone. An increment or append adds a
//! version to its column, which is a millisecond later than the cell that it read, so that a put in
//! the same millisecond would be behind it. So each stripe of row locks records the greatest
//! timestamps assigned to tombstones, and to puts and updates that went ahead of assigned time
//! (`clock::Timestamps`):
//!
//! - a put gets assigned time, the stripe's greatest update, or one more than its greatest tombstone,
//!   whichever is latest;
//! - an update gets the time of a put, or one more than the cell that it read if that is later;
//! - a tombstone gets assigned time, or the stripe's greatest put or update if that is later.
//!
//! Rows of one stripe share these records: some get a later time than necessary, which is harmless.
//! Timestamps that clients chose are not recorded and keep HBase's rule.
//!
//! Shared locks are enough: a put that begins after a tombstone was acknowledged sees its time
//! here, because the tombstone was recorded under the stripe's lock before it was logged; the same
//! holds for a tombstone after a put. A put and a tombstone that overlap may or may not see each
//! other's times. Either way their timestamps fix the order for good, and both orders are right.
//!
//! Times run ahead by a millisecond for each tombstone that is followed by a put of its stripe in
//! the same millisecond. When they are far ahead, the replies to such writes are delayed
//! ([`super::pause_of_row`]), and beyond [`AHEAD_MAX_MS`] a write is refused before it changes
//! anything. Updates of one cell, of which a busy counter has many in a millisecond, are neither
//! delayed nor refused: [`UPDATES_AHEAD_MAX_MS`] ahead, they replace the version.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::cell::LATEST;
use crate::error::{Error, Result};
use crate::schema::Cut;
use crate::seeded;

/// Maximum by which tombstones and puts in turns may move a row ahead of assigned time and of its
/// updates.
pub(crate) const AHEAD_MAX_MS: i64 = 1_000;
/// Maximum by which updates may move a row ahead of assigned time.
pub(crate) const UPDATES_AHEAD_MAX_MS: i64 = 1_000;

/// The times recorded by a stripe of row locks. Changed under its lock, shared or exclusive.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct RowTimes {
    /// The greatest timestamp assigned to a tombstone.
    tombstone_ms: AtomicI64,
    /// The greatest timestamp assigned to a put that went ahead of assigned time.
    put_ms: AtomicI64,
    /// The greatest timestamp assigned to an update that went ahead of assigned time. Changed under
    /// the exclusive lock only.
    update_ms: AtomicI64,
}

impl RowTimes {
    /// The timestamp of a put of `row` at the assigned time `now`.
    #[inline]
    pub(crate) fn put(&self, row: &[u8], now: i64) -> Result<i64> {
        let (tombstone, least) = (self.tombstone_ms.load(Ordering::Acquire), self.least(now));
        if tombstone < least {
            return Ok(least);
        }
        self.put_after(tombstone, row, least)
    }

    /// The least timestamp of a put at the assigned time `now`: not before an update of its row.
    #[inline]
    fn least(&self, now: i64) -> i64 {
        now.max(self.update_ms.load(Ordering::Acquire))
    }

    /// The part of a put's time that is ahead because of tombstones: the replies to such writes are
    /// delayed.
    #[inline]
    pub(crate) fn ahead_of_tombstones(&self, put: i64, now: i64) -> i64 {
        (put - self.least(now)).max(0)
    }

    #[cold]
    fn put_after(&self, tombstone: i64, row: &[u8], least: i64) -> Result<i64> {
        let time = tombstone.saturating_add(1);
        if time > least.saturating_add(AHEAD_MAX_MS) {
            return Err(Error::RowAhead(format!(
                "row {} was deleted and written again more than {AHEAD_MAX_MS} times within a moment, each time at a later timestamp. Try \
                 again after a second; a call that does so alone must be cut into smaller ones",
                Cut(row)
            )));
        }
        if !seeded::is_on("puts-ahead-not-remembered") {
            self.put_ms.fetch_max(time, Ordering::AcqRel);
        }
        Ok(time)
    }

    /// The timestamp of the new cell of an update that read a cell with the timestamp `stored`. `put`
    /// is the time of a put ([`Self::put`]) at the assigned time `now`.
    ///
    /// A cell later than any time that was assigned has a client's time, and so has the new one: as in
    /// HBase it is a millisecond later, however far that is from now.
    pub(crate) fn update(&self, stored: i64, put: i64, now: i64) -> i64 {
        if stored < put {
            return put;
        }
        // HBase's "latest", which is no time of a cell.
        let next = stored.saturating_add(1).min(LATEST - 1);
        if stored > self.greatest(now) {
            return next;
        }
        if next > now.saturating_add(UPDATES_AHEAD_MAX_MS) {
            return stored;
        }
        if !seeded::is_on("updates-ahead-not-remembered") {
            self.update_ms.fetch_max(next, Ordering::AcqRel);
        }
        next
    }

    /// How far updates are ahead of the assigned time `now`.
    pub(crate) fn updates_ahead(&self, now: i64) -> i64 {
        self.least(now) - now
    }

    /// The greatest timestamp that was assigned to a put or update, or `now`.
    fn greatest(&self, now: i64) -> i64 {
        self.least(now).max(self.put_ms.load(Ordering::Acquire))
    }

    /// Forgets all times, because no row has them any more.
    pub(crate) fn forget(&self) {
        self.tombstone_ms.store(0, Ordering::Release);
        self.put_ms.store(0, Ordering::Release);
        self.update_ms.store(0, Ordering::Release);
    }

    /// The timestamp of a tombstone at the assigned time `now`.
    pub(crate) fn tombstone(&self, now: i64) -> i64 {
        let time = self.greatest(now);
        if !seeded::is_on("tombstones-not-remembered") {
            self.tombstone_ms.fetch_max(time, Ordering::AcqRel);
        }
        time
    }

    /// Records a tombstone of one version, which has the version's timestamp. A timestamp later
    /// than any that was assigned is a client's, and is not recorded.
    pub(crate) fn note_version(&self, timestamp: i64, now: i64) {
        if timestamp <= self.greatest(now) {
            self.tombstone_ms.fetch_max(timestamp, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &[u8] = b"r";

    #[test]
    fn puts_follow_tombstones_and_tombstones_cover_puts() {
        let times = RowTimes::default();
        assert_eq!(times.put(ROW, 10).unwrap(), 10);
        assert_eq!(times.tombstone(10), 10);
        assert_eq!(times.put(ROW, 10).unwrap(), 11);
        assert_eq!(times.put(ROW, 10).unwrap(), 11, "puts do not run away");
        assert_eq!(times.tombstone(10), 11);
        assert_eq!(times.tombstone(10), 11, "nor do tombstones");
        assert_eq!(times.put(ROW, 11).unwrap(), 12);
        assert_eq!(times.put(ROW, 13).unwrap(), 13, "time has caught up");
        assert_eq!(times.tombstone(13), 13);
    }

    #[test]
    fn a_tombstone_of_a_version_counts_when_its_time_was_assigned() {
        let times = RowTimes::default();
        times.note_version(500, 10);
        assert_eq!(times.put(ROW, 10).unwrap(), 10, "a client's time");
        times.note_version(10, 10);
        assert_eq!(times.put(ROW, 10).unwrap(), 11);
        times.note_version(11, 10);
        assert_eq!(times.put(ROW, 10).unwrap(), 12, "the put before went ahead");
    }

    #[test]
    fn updates_add_versions_that_puts_follow_and_tombstones_cover() {
        let times = RowTimes::default();
        assert_eq!(times.update(9, 10, 10), 10, "an old cell");
        assert_eq!(times.update(10, 10, 10), 11);
        assert_eq!(times.update(11, 11, 10), 12);
        assert_eq!(times.updates_ahead(10), 2);
        let put = times.put(ROW, 10).unwrap();
        assert_eq!((put, times.ahead_of_tombstones(put, 10)), (12, 0));
        assert_eq!(times.tombstone(10), 12);
        let put = times.put(ROW, 10).unwrap();
        assert_eq!((put, times.ahead_of_tombstones(put, 10)), (13, 1));
        assert_eq!(times.update(13, 13, 10), 14, "of the put before");
        assert_eq!(times.tombstone(10), 14);
        assert_eq!(times.put(ROW, 20).unwrap(), 20, "time has caught up");
        assert_eq!(times.updates_ahead(20), 0);
    }

    /// The time of a client's cell moves no other writes.
    #[test]
    fn an_update_of_a_cell_from_the_future_is_later_than_the_cell() {
        let times = RowTimes::default();
        assert_eq!(times.update(500, 10, 10), 501);
        assert_eq!(times.update(501, 10, 10), 502);
        assert_eq!((times.put(ROW, 10).unwrap(), times.tombstone(10)), (10, 10));
        assert_eq!(times.update(LATEST - 2, 11, 10), LATEST - 1);
        assert_eq!(
            times.update(LATEST - 1, 11, 10),
            LATEST - 1,
            "the last time there is"
        );
    }

    #[test]
    fn updates_go_ahead_by_so_much_and_then_replace_the_version() {
        let times = RowTimes::default();
        let mut stored = 10;
        for ahead in 1..=UPDATES_AHEAD_MAX_MS {
            stored = times.update(stored, times.put(ROW, 10).unwrap(), 10);
            assert_eq!(stored, 10 + ahead);
        }
        assert_eq!(times.update(stored, stored, 10), stored, "replaced");
        assert_eq!(times.update(stored, stored, 11), stored + 1, "a moment later");
        times.tombstone(11);
        assert_eq!(
            times.put(ROW, 11).unwrap(),
            stored + 2,
            "never refused for updates"
        );
    }

    #[test]
    fn a_row_goes_ahead_by_so_much_and_no_more() {
        let times = RowTimes::default();
        for ahead in 1..=AHEAD_MAX_MS {
            times.tombstone(10);
            assert_eq!(times.put(ROW, 10).unwrap(), 10 + ahead);
        }
        assert_eq!(times.tombstone(10), 10 + AHEAD_MAX_MS);
        let refused = times.put(ROW, 10).unwrap_err();
        assert_eq!(refused.kind(), crate::Kind::Retry, "{refused}");
        assert!(refused.to_string().contains("row r was deleted"), "{refused}");
        assert_eq!(
            times.put(ROW, 11).unwrap(),
            11 + AHEAD_MAX_MS,
            "a moment later it is taken"
        );
    }

    /// Calls of several threads overlap: a put that begins after a tombstone ended is later, and a
    /// tombstone that begins after a put ended is not earlier.
    #[test]
    fn ended_writes_are_followed_and_covered_on_all_threads() {
        let (times, greatest_tombstone, greatest_put) =
            (RowTimes::default(), AtomicI64::new(0), AtomicI64::new(0));
        let work = |thread: i64| {
            for turn in 0..2_000 {
                let now = 100 + turn / 8;
                if (turn + thread) % 3 == 0 {
                    let put = greatest_put.load(Ordering::SeqCst);
                    let time = times.tombstone(now);
                    assert!(time >= put.min(now + AHEAD_MAX_MS), "{time} {put}");
                    greatest_tombstone.fetch_max(time, Ordering::SeqCst);
                } else {
                    let tombstone = greatest_tombstone.load(Ordering::SeqCst);
                    let Ok(time) = times.put(ROW, now) else { continue };
                    assert!(time > tombstone, "{time} {tombstone}");
                    greatest_put.fetch_max(time, Ordering::SeqCst);
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let work = &work;
                scope.spawn(move || work(thread));
            }
        });
    }
}
