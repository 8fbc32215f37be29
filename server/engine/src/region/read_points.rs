//! The read points of readers: that of a capture, and those of open scans.
//!
//! A reader captures the versions of its regions and the read point that belongs to them ([`capture`]).
//!
//! A scan outlives flushes and compactions: between two fetches it moves to the current versions of
//! its regions, and reads on at its original read point. So that it finds the same rows there,
//! flushes and compactions ask for the earliest read point in use on their table
//! ([`ReadPoints::horizon`]), and keep the cells that are visible from there on. A scan of one
//! table keeps nothing of another.
//!
//! Invariant: the horizon of a flush or compaction is never later than the read point of a scan of
//! its table that may move to its result. A flush that asked before the scan was entered got the
//! read point of that time or an earlier one, and the scan's own read point is taken later, or
//! under the same lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Region, RegionVersion};
use crate::id::SeqId;
use crate::schema::TableName;
use crate::store::ReadView;
use crate::sync::{Loaded, Mutex};
use crate::wal::Wal;

/// The read views of all open scans of the server. Shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct ReadPoints {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    read_views: BTreeMap<u64, (TableName, ReadView)>,
}

/// An open scan's entry. It ends with its drop.
#[derive(Debug)]
pub(crate) struct OpenReadView {
    points: Arc<ReadPoints>,
    key: u64,
    read_view: ReadView,
}

impl ReadPoints {
    /// Enters a scan of the table that reads at the read point `now()`, or later
    /// ([`OpenReadView::advance`]).
    pub(crate) fn enter(self: &Arc<Self>, table: &TableName, now: impl FnOnce() -> ReadView) -> OpenReadView {
        let mut open = self.open.lock();
        let (key, read_view) = (open.next, now());
        open.next += 1;
        open.read_views.insert(key, (table.clone(), read_view));
        OpenReadView {
            points: Arc::clone(self),
            key,
            read_view,
        }
    }

    /// The earliest read point that is in use on the table, or may come into use: `now()`, if no
    /// open scan has an earlier one.
    pub(crate) fn horizon(&self, table: &TableName, now: impl FnOnce() -> ReadView) -> ReadView {
        let open = self.open.lock();
        let of_table = open.read_views.values().filter(|(scanned, _)| scanned == table);
        of_table.fold(now(), |earliest, (_, read_view)| ReadView {
            read_point: earliest.read_point.min(read_view.read_point),
            now_ms: earliest.now_ms.min(read_view.now_ms),
            ahead: earliest.ahead,
        })
    }
}

impl OpenReadView {
    /// The read view.
    pub(crate) fn read_view(&self) -> ReadView {
        self.read_view
    }

    /// Moves on to a later read point.
    pub(crate) fn advance(&mut self, read_point: SeqId) {
        assert!(
            read_point >= self.read_view.read_point,
            "read points do not go back"
        );
        self.read_view.read_point = read_point;
        if let Some((_, read_view)) = self.points.open.lock().read_views.get_mut(&self.key) {
            *read_view = self.read_view;
        }
    }
}

impl Drop for OpenReadView {
    fn drop(&mut self) {
        self.points.open.lock().read_views.remove(&self.key);
    }
}

/// A consistent view of some regions.
#[derive(Debug)]
pub(crate) struct Captured {
    /// One for each region, in the same order.
    pub versions: SmallVec<[Arc<RegionVersion>; 1]>,
    /// Every edit of the regions up to here is in the versions.
    pub read_point: SeqId,
}

/// Captures the view; `None` when a version was replaced meanwhile, and the caller begins again.
pub(crate) fn capture(regions: &[Arc<Region>], wal: &Wal) -> Option<Captured> {
    let versions: SmallVec<[_; 1]> = regions.iter().map(|region| region.load_version()).collect();
    let read_point = wal.read_point();
    // Had a memstore been frozen, or a region been split, before the read point was taken, then newer edits
    // below it might be in a memstore that was not captured.
    let mut taken = regions.iter().zip(&versions);
    taken
        .all(|(region, version)| region.is_current(version))
        .then_some(Captured { versions, read_point })
}

/// Captures one region, for a short read.
pub(crate) fn capture_one(region: &Region, wal: &Wal) -> Option<(Loaded<RegionVersion>, SeqId)> {
    let version = region.version();
    let read_point = wal.read_point();
    region.is_still_current(&version).then_some((version, read_point))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Ahead;

    fn at(read_point: u64, now_ms: i64) -> ReadView {
        ReadView {
            read_point: SeqId(read_point),
            now_ms,
            ahead: Ahead::NONE,
        }
    }

    #[test]
    fn the_horizon_is_the_earliest_of_all() {
        let points = Arc::new(ReadPoints::default());
        let table = TableName::parse(b"t").expect("a name");
        let other = TableName::parse(b"u").expect("a name");
        let horizon = |read_point, now_ms| points.horizon(&table, || at(read_point, now_ms));
        assert_eq!(horizon(9, 90), at(9, 90));
        let mut first = points.enter(&table, || at(5, 50));
        let second = points.enter(&table, || at(7, 40));
        let elsewhere = points.enter(&other, || at(1, 10));
        assert_eq!(horizon(9, 90), at(5, 40), "each part is the earliest");
        first.advance(SeqId(8));
        assert_eq!((horizon(9, 90), first.read_view()), (at(7, 40), at(8, 50)));
        drop(second);
        assert_eq!(horizon(9, 90), at(8, 50));
        drop(first);
        assert_eq!(
            horizon(9, 90),
            at(9, 90),
            "a scan of another table does not count"
        );
        drop(elsewhere);
    }
}
