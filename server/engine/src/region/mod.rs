//! The region: a range of a table's rows, and everything about them that must be consistent.
//!
//! # How writes and reads stay consistent
//!
//! There is one sequence counter and one read point for the whole server, both in
//! [`crate::wal::Wal`]; commits are published strictly in order. The steps of a batch of mutations
//! (`engine` drives them):
//!
//! 1. Look up the table and check everything: families, row lengths, cell sizes, timestamps, memstore limits.
//!    Nothing has been changed yet, so an error means that nothing was applied.
//! 2. Take the row locks of all rows ([`RowLocks`]): shared for plain writes, exclusive for those that read
//!    first.
//! 3. Assign the time, so that a later writer of a row never gets a smaller one; read the cells
//!    that the writes depend on; plan the cells ([`RowPlan`]).
//! 4. Take the `updates` lock of all regions for reading, in the order of their ids, and make sure
//!    that the table is still the one looked up; otherwise release the locks and start again. No
//!    file is read under these locks.
//! 5. Encode one [`crate::record::Edit`], append it to the log, and insert its cells into the memstores with
//!    the sequence ids the log gave, one for each row ([`write_rows`]).
//! 6. Release all locks. The caller waits for the commit or awaits it.
//!
//! Row locks are *not* held during the sync. The next read-modify-write holds the row's lock
//! exclusively, reads with [`crate::id::SeqId::MAX`] and sees cells that are applied and not yet
//! published. That is sound because its own commit is published after the cells that it read. Where
//! such a read leads to an answer without a commit (a failed check), the answer waits until
//! everything assigned so far is published.
//!
//! A reader takes the regions' versions, then the read point, then makes sure that the versions are
//! still current ([`capture`]). So all cells up to the read point are in the versions taken, and
//! all cells of their files are at or below it. From there on it holds no lock. A long scan moves
//! to later versions at its original read point; [`ReadPoints`] says which cells these must have
//! kept.
//!
//! # Lock order
//!
//! schema change (`catalog`) -> `compacting` -> `flushing` -> row locks -> `updates` -> manifest.
//! Locks of several regions are taken in the order of region ids. Files are written under
//! `flushing` or `compacting`, except when a region is closed for a split, a merge or the loss of a
//! family: then the small rest is flushed under `updates`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::cell::RowOrder;
use crate::id::{FileId, RegionId, SeqId};
use crate::manifest::RegionMeta;
use crate::memstore::Memstore;
use crate::metrics::{BusyCounter, Counter};
use crate::schema::TableDescriptor;
use crate::store::{Clip, StoreVersion};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Loaded, Published, RwLock, RwLockWriteGuard};
use crate::wal::Wal;

mod batch;
mod busy;
mod check;
mod claims;
mod damage;
mod gate;
mod info;
mod locks;
mod made;
#[cfg(all(test, loom))]
mod model;
mod pace;
mod plan;
mod range;
mod read_points;
mod row;
mod row_times;
mod scan;
mod shared;
mod update;

pub(crate) use batch::{check_edit, insert_cells, write_rows};
pub(crate) use busy::BusyRate;
pub(crate) use check::holds;
pub(crate) use claims::Claim;
pub(crate) use damage::describe;
pub use damage::refusal;
pub use gate::{Grant, GrantSource, RegionDirectory, RegionGate, RegionLocation, ServerName};
pub use info::{RegionInfo, RegionStats};
pub(crate) use locks::{LockMode, RowGuards, RowLocks};
pub(crate) use made::Made;
pub(crate) use pace::{pause, pause_of_row};
pub(crate) use plan::{
    PlannedCell, PlannedTags, RowPlan, Times, check, check_row, check_writes, family_index,
    negative_timestamp,
};
pub(crate) use range::ScanRange;
pub(crate) use read_points::{OpenReadView, ReadPoints, capture, capture_one};
pub(crate) use row::{missing_blocks, newest_cell, newest_timestamps, read_row, unpublished};
pub(crate) use row_times::RowTimes;
pub(crate) use scan::{LongRow, RegionScanner, Step, check_read};
pub(crate) use shared::{Shared, logging_of, stronger};
pub(crate) use update::{Stored, check_update, plan_update};

/// A snapshot of a region: all its stores. Immutable; one pointer swap publishes a change of all
/// stores at once.
#[derive(Clone, Debug)]
pub struct RegionVersion {
    /// The table's descriptor of that version; `stores` has one store for each of its families, in
    /// the same order.
    pub table: Arc<TableDescriptor>,
    /// The stores.
    pub stores: Vec<Arc<StoreVersion>>,
}

impl RegionVersion {
    /// Bytes that the memstores hold.
    pub fn memstore_bytes(&self) -> u64 {
        self.stores.iter().map(|store| store.memstore_bytes()).sum()
    }

    /// Bytes that the memstores hold which are still written to.
    pub(crate) fn active_bytes(&self) -> u64 {
        self.stores.iter().map(|store| store.active.bytes()).sum()
    }

    /// Cells in the memstores.
    pub(crate) fn memstore_cells(&self) -> u64 {
        self.memstores().map(|memstore| memstore.cell_count()).sum()
    }

    /// When the oldest of those files was made that compactions of all files have written; 0 without
    /// such a file.
    fn last_major_compaction_ms(&self) -> u64 {
        let files = self.stores.iter().flat_map(|store| &store.files);
        let major = files.filter(|file| file.meta().major);
        major.map(|file| file.meta().created_ms).min().unwrap_or_default()
    }

    /// The oldest edit that is in a memstore.
    pub fn oldest_unflushed(&self) -> Option<SeqId> {
        self.memstores().filter_map(|memstore| memstore.min_seq()).min()
    }

    /// Notes the time at which memstores began to hold edits, where that is now; `now_ms` is
    /// monotonic.
    pub(crate) fn note_dirty(&self, now_ms: impl Fn() -> u64) {
        for store in &self.stores {
            store.active.note_dirty(&now_ms);
        }
    }

    /// The order of its rows.
    pub(crate) fn row_order(&self) -> RowOrder {
        self.stores
            .first()
            .map_or(RowOrder::Bytes, |store| store.row_order())
    }

    fn memstores(&self) -> impl Iterator<Item = &Arc<Memstore>> {
        self.stores.iter().flat_map(|store| store.memstores())
    }
}

/// A region. Shared by all threads; its boundaries never change: a split or merge makes new regions.
#[derive(Debug)]
pub(crate) struct Region {
    /// Name and boundaries.
    info: Arc<RegionInfo>,
    /// Files shared with its sibling since its parent was split (HBase: references). As long as the
    /// current version has one of them, the region is neither split automatically nor merged.
    inherited: BTreeSet<FileId>,
    /// The greatest sequence id of its files when it was opened.
    opened_at: SeqId,
    /// Whether it lacked a store file when it was opened; see [`Self::check_undamaged`].
    opened_damaged: bool,
    /// Writers hold it for reading from before they append to the log until their cells are in the
    /// memstores. While it is held for writing, the memstores do not change and hold every edit of
    /// the region that has a sequence id.
    pub updates: CachePadded<RwLock<()>>,
    /// Serialises flushes of this region. Comes before `updates`.
    pub flushing: Mutex<()>,
    /// Held for reading by running compactions of this region, and for writing by a split, merge or
    /// drop. Comes before `flushing`.
    pub compacting: parking_lot::RwLock<()>,
    /// The files that running compactions read. Its lock is held briefly, and no other lock is
    /// taken under it.
    pub claims: claims::Claims,
    /// The version that readers see. Replaced as a whole, never edited.
    version: Published<RegionVersion>,
    /// Set under the manifest's lock when the manifest no longer has the region: results of running
    /// flushes and compactions are discarded.
    retired: AtomicBool,
    /// Cancels running compactions, because a writer waits for `compacting`.
    pub cancel_compaction: std::sync::atomic::AtomicBool,
    /// Rows read by gets and scans.
    pub reads: BusyCounter,
    /// Rows that scans passed over.
    pub filtered_reads: Counter,
    /// Row mutations.
    pub writes: BusyCounter,
    /// Writes refused because of a memstore limit.
    pub blocked_writes: Counter,
    /// The share of those, for the split policy that asks.
    pub busy: BusyRate,
    /// Flushes done.
    pub flushes: Counter,
    /// Compactions done.
    pub compactions: Counter,
}

impl Region {
    /// A region of these stores. `inherited`: those of its files that it shares with its sibling since a
    /// split.
    pub(crate) fn new(meta: &RegionMeta, version: RegionVersion, inherited: BTreeSet<FileId>) -> Arc<Self> {
        let opened_damaged = version.damaged_files().next().is_some();
        Arc::new(Self {
            info: Arc::new(RegionInfo::of_meta(meta)),
            inherited,
            opened_at: version
                .stores
                .iter()
                .map(|store| store.files_max_seq())
                .max()
                .unwrap_or(SeqId::ZERO),
            opened_damaged,
            updates: CachePadded::new(RwLock::new(())),
            flushing: Mutex::new(()),
            compacting: parking_lot::RwLock::new(()),
            claims: claims::Claims::default(),
            version: Published::new(version),
            retired: AtomicBool::new(false),
            cancel_compaction: std::sync::atomic::AtomicBool::new(false),
            reads: BusyCounter::default(),
            filtered_reads: Counter::default(),
            writes: BusyCounter::default(),
            blocked_writes: Counter::default(),
            busy: BusyRate::default(),
            flushes: Counter::default(),
            compactions: Counter::default(),
        })
    }

    /// Id of the region.
    pub(crate) fn id(&self) -> RegionId {
        self.info.id
    }

    /// Names and boundaries of the region.
    pub(crate) fn info(&self) -> &RegionInfo {
        &self.info
    }

    /// Names and boundaries of the region, to be kept.
    pub(crate) fn shared_info(&self) -> Arc<RegionInfo> {
        Arc::clone(&self.info)
    }

    /// The greatest sequence id of its files when it was opened.
    pub(crate) fn opened_at(&self) -> SeqId {
        self.opened_at
    }

    /// The region's boundaries as a clip for files.
    pub(crate) fn clip(&self) -> Clip {
        Clip {
            start: self.info.start.clone(),
            end: self.info.end.clone(),
        }
    }

    /// The current version, for a short look.
    pub(crate) fn version(&self) -> Loaded<RegionVersion> {
        self.version.load()
    }

    /// The current version, to keep.
    pub(crate) fn load_version(&self) -> Arc<RegionVersion> {
        self.version.load_full()
    }

    /// Whether a file of the region is shared with its sibling since a split.
    pub(crate) fn is_inherited(&self, file: FileId) -> bool {
        self.inherited.contains(&file)
    }

    /// Whether the region still has files from before the split that made it.
    pub(crate) fn has_inherited_files(&self) -> bool {
        !self.inherited.is_empty() && {
            let version = self.version();
            version
                .stores
                .iter()
                .flat_map(|store| &store.files)
                .any(|file| self.is_inherited(file.id()))
        }
    }

    /// Publishes the version that `derive` makes of the current one. `derive` may run more than once: it must
    /// be pure.
    pub(crate) fn publish(&self, derive: impl Fn(&RegionVersion) -> RegionVersion) {
        self.version.publish(derive);
    }

    /// Whether `version` is still the current one.
    pub(crate) fn is_current(&self, version: &Arc<RegionVersion>) -> bool {
        self.version.is(version)
    }

    /// Whether the borrowed version is still the current one.
    pub(crate) fn is_still_current(&self, version: &Loaded<RegionVersion>) -> bool {
        self.version.is_current(version)
    }

    /// Freezes all memstores that hold cells and publishes the version with empty ones in their
    /// place. Every edit of the region up to the returned sequence id is then in frozen memstores
    /// or files, and every later one in neither. `_blocked` proves that no writer is between the
    /// log and the memstores.
    pub(crate) fn freeze(&self, wal: &Wal, _blocked: &RwLockWriteGuard<'_, ()>) -> SeqId {
        self.publish(|current| {
            let mut next = current.clone();
            for store in &mut next.stores {
                if store.active.cell_count() > 0 {
                    *store = Arc::new(store.with_frozen(Arc::new(store.active.successor())));
                }
            }
            next
        });
        wal.last_assigned()
    }

    /// Marks the region as removed from the manifest.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Whether the manifest no longer has this region.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// The region is gone for good: its files are, too, as soon as the last reader drops them.
    /// REQUIRES: the manifest edit that drops the region is durable.
    pub(crate) fn mark_files_obsolete(&self) {
        for file in self.version().stores.iter().flat_map(|store| &store.files) {
            file.mark_obsolete();
        }
    }

    /// The region is gone for good: the memory of its memstores counts as pinned until the last reader
    /// drops them.
    pub(crate) fn pin_memstores(&self) {
        self.version().memstores().for_each(|memstore| memstore.pin());
    }

    /// Approximate time (monotonic milliseconds) of the oldest edit that is in no store file.
    pub(crate) fn dirty_since_ms(&self) -> Option<u64> {
        let version = self.version();
        version
            .memstores()
            .filter_map(|memstore| memstore.dirty_since_ms())
            .min()
    }

    /// Bytes that the memstores hold.
    pub(crate) fn memstore_bytes(&self) -> u64 {
        self.version().memstore_bytes()
    }

    /// Figures for metrics and pages.
    pub(crate) fn stats(&self) -> RegionStats {
        let version = self.version();
        RegionStats {
            region: RegionInfo::clone(&self.info),
            reads: self.reads.get(),
            filtered_reads: self.filtered_reads.get(),
            writes: self.writes.get(),
            blocked_writes: self.blocked_writes.get(),
            memstore_bytes: version.memstore_bytes(),
            store_files: version.stores.iter().map(|store| store.files.len() as u64).sum(),
            store_file_bytes: version.stores.iter().map(|store| store.file_bytes()).sum(),
            file_sizes: version.stores.iter().map(|store| store.file_sizes()).sum(),
            flushed: version
                .stores
                .iter()
                .map(|store| (store.family.name.clone(), store.files_max_seq()))
                .collect(),
            damaged_files: version.damaged_files().count() as u64,
            flushes: self.flushes.get(),
            compactions: self.compactions.get(),
            last_major_compaction_ms: version.last_major_compaction_ms(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, CellType, KeyBuf};
    use crate::memstore::ChunkPool;
    use crate::schema::{FamilyDescriptor, TableName};

    /// A region of one family with one cell in memory, of sequence id 1.
    pub(super) fn region(chunks: &Arc<ChunkPool>) -> Arc<Region> {
        let family = FamilyDescriptor::new(b"f");
        let name = TableName::parse(b"t").unwrap();
        let store = StoreVersion::new(
            Arc::new(family.clone()),
            Vec::new(),
            Memstore::new(Arc::clone(chunks)),
        );
        store.active.insert(Cell {
            key: KeyBuf::new(b"r", b"f", b"q", 1, CellType::Put).as_key(),
            value: b"v",
            tags: b"",
            seq: SeqId(1),
        });
        let meta = RegionMeta {
            id: RegionId(1),
            table: name.clone(),
            start: Vec::new(),
            end: Vec::new(),
            created_ms: 1,
        };
        let version = RegionVersion {
            table: Arc::new(TableDescriptor::new(name, vec![family])),
            stores: vec![Arc::new(store)],
        };
        Region::new(&meta, version, BTreeSet::new())
    }

    /// A reader keeps the version from before a flush: its memory is in the sum of pinned bytes, and
    /// no longer in that of the regions.
    #[test]
    fn flushed_memory_is_pinned_while_it_is_read() {
        let chunks = Arc::default();
        let region = region(&chunks);
        let (before, bytes) = (region.load_version(), region.memstore_bytes());
        assert_eq!((chunks.used_bytes(), chunks.pinned_bytes()), (bytes, 0));
        region.publish(|current| {
            let mut next = current.clone();
            let store = current.stores[0].with_frozen(Arc::new(current.stores[0].active.successor()));
            next.stores[0] = Arc::new(store.with_flushed(&store.frozen, &[]));
            next
        });
        before.stores[0].active.pin();
        assert_eq!((chunks.used_bytes(), chunks.pinned_bytes()), (0, bytes));
        assert_eq!(region.memstore_bytes(), 0);
        drop(before);
        assert_eq!((chunks.used_bytes(), chunks.pinned_bytes()), (0, 0));
    }

    /// A region that was split or dropped is in no sum, whatever is written to it afterwards.
    #[test]
    fn a_region_that_is_gone_leaves_nothing_in_the_sum() {
        let chunks = Arc::default();
        let region = region(&chunks);
        assert!(chunks.used_bytes() > 0);
        region.pin_memstores();
        assert_eq!(chunks.used_bytes(), 0);
        region.version().stores[0].active.insert(Cell {
            key: KeyBuf::new(b"s", b"f", b"q", 1, CellType::Put).as_key(),
            value: &vec![0; 100_000],
            tags: b"",
            seq: SeqId(2),
        });
        let pinned = (0, region.memstore_bytes());
        assert_eq!((chunks.used_bytes(), chunks.pinned_bytes()), pinned);
        drop(region);
        assert_eq!((chunks.used_bytes(), chunks.pinned_bytes()), (0, 0));
    }

    /// The age of edits follows the memstores: a flush ends that of the frozen ones only.
    #[test]
    fn the_oldest_edit_is_in_the_oldest_memstore() {
        let region = region(&Arc::default());
        assert_eq!(region.dirty_since_ms(), None);
        region.version().note_dirty(|| 5);
        region.version().note_dirty(|| 7);
        assert_eq!(region.dirty_since_ms(), Some(5));
        region.publish(|current| {
            let mut next = current.clone();
            let active = Arc::new(current.stores[0].active.successor());
            next.stores[0] = Arc::new(current.stores[0].with_frozen(active));
            next
        });
        region.version().note_dirty(|| 8);
        assert_eq!(region.dirty_since_ms(), Some(5), "the new memstore is empty");
        let frozen = region.version().stores[0].frozen.clone();
        region.publish(|current| {
            let mut next = current.clone();
            next.stores[0] = Arc::new(current.stores[0].with_flushed(&frozen, &[]));
            next
        });
        assert_eq!(region.dirty_since_ms(), None);
    }
}
