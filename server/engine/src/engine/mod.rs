//! The engine's front door: everything the server may call.
//!
//! All calls are synchronous and may come from any thread. Writes return a [`Commit`], which the caller waits
//! for or awaits; reads with [`crate::op::ReadTier::Memory`] never touch the disk and fail with
//! `Error::NotInMemory` where they would have to.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::CacheUsage;
use crate::catalog::Catalog;
use crate::cell::{Budget, CellBatch};
use crate::error::{Error, Result};
use crate::fs::{DirLock, HandleUsage};
use crate::id::{Origin, RegionId, SeqId, Uuid};
use crate::metrics::Counters;
use crate::op::{
    AtomicGroup, Check, Get, GroupStep, GroupUpdate, GroupWrite, ReadSpec, ReadTier, ReplicatedRow,
    RowMutation, RowUpdate, Scan,
};
use crate::options::Background;
use crate::recovery;
use crate::region::check_row;
use crate::schema::{
    Durability, FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState,
};
use crate::wal::Commit;
use crate::workers::{Job, Workers};

mod atomic_group;
mod builder;
#[cfg(feature = "server")]
mod follow;
mod inspect;
mod load;
mod log_readers;
mod pin;
mod read;
mod read_ahead;
mod replicate;
mod rows;
#[cfg(feature = "server")]
mod shipped;
mod snapshots;
mod table;
mod upkeep;
mod write;

pub use crate::catalog::{
    CatalogSize, ImportedFile, ImportedRegion, ImportedSnapshot, LoadFile, LogTail, Pin, PinnedFile,
    PinnedSegment, Removed, TailedEdit, Turn,
};
pub use crate::disk::DiskStats;
pub use crate::hfile::{FileSizes, index_entries, summary};
pub use crate::manifest::{FileMeta, SnapshotRegion};
pub use crate::nonces::NONCE_BYTES;
pub use crate::recovery::{CheckSummary, Extracted, Restore, SnapshotFiles, check, dump};
pub use crate::region::{
    Grant, GrantSource, RegionDirectory, RegionGate, RegionInfo, RegionLocation, RegionStats, RegionVersion,
    ServerName, refusal,
};
pub use crate::store::StoreFile;
pub use crate::wal::{LogEnd, LogHold, LogReader, LoggedEdit};
pub use crate::workers::{Compacting, QueueStats, Work};
pub use atomic_group::GroupOutcome;
pub use builder::Builder;
use builder::Parts;
#[cfg(feature = "server")]
#[doc(hidden)]
pub use follow::{Applied, Fed, Feed, Place, Unfollowed};
pub use inspect::{DamagedRegion, RegionRequests};
pub use pin::LogPoint;
pub use read::{RowsSeen, Scanner};
#[cfg(feature = "server")]
use replicate::Source;
pub use rows::{Row, Rows};
#[cfg(feature = "server")]
#[doc(hidden)]
pub use shipped::ShippedFeed;
pub use table::Table;

/// How a fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A limit was reached; there may be more.
    More,
    /// The scan is over.
    End,
}

/// The engine, open. Shared by all threads behind an `Arc`. Dropping it without [`Engine::close`]
/// stops its threads and leaves recovery to the next open, as a crash does.
#[derive(Debug)]
pub struct Engine {
    /// Tables and data.
    catalog: Arc<Catalog>,
    /// Background work.
    workers: Arc<Workers>,
    /// Threads of `workers`; empty with `Background::Manual` and after the stop.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Lock of the directory against other processes; released by `close`.
    lock: Mutex<Option<Box<dyn DirLock>>>,
    cluster_id: Uuid,
    /// No calls are accepted any more.
    closed: AtomicBool,
}

impl Engine {
    /// Opens the database in `dir`, or creates one, with default settings. [`Self::builder`] takes
    /// others.
    pub fn open(dir: impl AsRef<Path>) -> Result<Arc<Self>> {
        Self::builder().open(dir)
    }

    /// Default settings, to be changed before the engine is opened.
    pub fn builder() -> Builder {
        Builder::new()
    }

    fn open_with(dir: &Path, builder: Builder) -> Result<Arc<Self>> {
        let Parts {
            options,
            vfs,
            clock,
            listener,
            moved,
        } = builder.into_parts();
        let background = options.background;
        let opened = recovery::open(dir, options, &vfs, clock, listener, &moved)?;
        let catalog = Arc::new(opened.catalog);
        let workers = Workers::new(Arc::clone(&catalog));
        workers.poll_disk(None);
        for region in catalog.tables().regions() {
            workers.after_change(region);
        }
        let threads = match background {
            Background::Threads => workers.start()?,
            Background::Manual => Vec::new(),
        };
        Ok(Arc::new(Self {
            catalog,
            workers,
            threads: Mutex::new(threads),
            lock: Mutex::new(Some(opened.lock)),
            cluster_id: opened.cluster_id,
            closed: AtomicBool::new(false),
        }))
    }

    /// Stops background work, flushes all regions, seals the WAL. Calls in progress end with `ShuttingDown`
    /// or their result. Without a close the next open replays more.
    pub fn close(&self) -> Result<()> {
        if !self.begin_close() {
            return Ok(());
        }
        // A memstore that cannot be flushed stays in the log, so a failure here only makes the next
        // open slower.
        let regions: Vec<_> = self.catalog.tables().regions().cloned().collect();
        for error in self.catalog.flush_regions(&regions) {
            self.catalog
                .shared()
                .listener
                .background_error("flush at close", &error);
        }
        let marked = self.catalog.write_high_water();
        let closed = self.catalog.shared().wal.close();
        self.lock.lock().take();
        marked.and(closed)
    }

    /// Closes a database that will not be opened again: as [`Engine::close`], without the flush.
    #[cfg(feature = "server")]
    pub fn close_unflushed(&self) -> Result<()> {
        if !self.begin_close() {
            return Ok(());
        }
        let closed = self.catalog.shared().wal.close();
        self.lock.lock().take();
        closed
    }

    /// Refuses calls from now on and stops background work; `false` when that was done before.
    fn begin_close(&self) -> bool {
        let is_first = !self.closed.swap(true, Ordering::AcqRel);
        if is_first {
            self.stop_workers();
        }
        is_first
    }

    fn stop_workers(&self) {
        self.workers.stop();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                self.catalog
                    .shared()
                    .listener
                    .notice("a background thread had panicked");
            }
        }
    }

    /// The database's identity.
    #[cfg(feature = "server")]
    pub fn cluster_id(&self) -> Uuid {
        self.cluster_id
    }

    /// Fails if the data directory's path no longer leads to the locked directory: new files would
    /// be created elsewhere. Failures of the check itself are ignored.
    #[cfg(feature = "server")]
    pub fn check_directory(&self) -> Result<()> {
        let lock = self.lock.lock();
        match lock.as_ref().map(|lock| lock.is_in_place()) {
            Some(Ok(false)) => Err(Error::DirectoryMoved(self.catalog.shared().dir.clone())),
            _ => Ok(()),
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::ShuttingDown);
        }
        Ok(())
    }

    fn open_catalog(&self) -> Result<&Catalog> {
        self.check_open()?;
        Ok(&self.catalog)
    }

    // Namespaces.

    /// Creates a namespace.
    pub fn create_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        self.open_catalog()?.create_namespace(namespace)
    }
    /// Replaces a namespace's configuration.
    pub fn alter_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        self.open_catalog()?.alter_namespace(namespace)
    }
    /// Removes an empty namespace that is not reserved.
    pub fn drop_namespace(&self, name: &str) -> Result<()> {
        self.open_catalog()?.drop_namespace(name)
    }
    /// All namespaces, `default` and `hbase` among them, by name.
    pub fn namespaces(&self) -> Vec<NamespaceDescriptor> {
        self.catalog.tables().namespaces.values().cloned().collect()
    }

    // Tables.

    /// Creates a table, enabled. `splits`: the start rows of its regions but the first; sorted here; empty or
    /// equal ones are refused.
    pub fn create_table(&self, descriptor: TableDescriptor, splits: Vec<Vec<u8>>) -> Result<()> {
        self.open_catalog()?.create_table(descriptor, splits)
    }
    /// Removes a disabled table.
    pub fn drop_table(&self, table: &TableName) -> Result<()> {
        self.open_catalog()?.drop_table(table)
    }
    /// Empties a disabled table and enables it.
    pub fn truncate_table(&self, table: &TableName, keep_splits: bool) -> Result<()> {
        self.open_catalog()?.truncate_table(table, keep_splits)
    }
    /// Removes all data of a region of an enabled table. The region that takes its place has the same
    /// rows and the same name.
    #[cfg(feature = "server")]
    #[doc(hidden)]
    pub fn truncate_region(&self, region: RegionId) -> Result<RegionInfo> {
        self.open_catalog()?.truncate_region(region)
    }
    /// Enables a disabled table.
    pub fn enable_table(&self, table: &TableName) -> Result<()> {
        self.open_catalog()?.enable_table(table)
    }
    /// Disables an enabled table, after flushing it.
    pub fn disable_table(&self, table: &TableName) -> Result<()> {
        self.open_catalog()?.disable_table(table)
    }
    /// Replaces a table's descriptor; families left out lose their data.
    pub fn alter_table(&self, descriptor: TableDescriptor) -> Result<()> {
        self.open_catalog()?.alter_table(descriptor)
    }
    /// Sets options of a table, or entries in the configuration of a family; those without a value are
    /// removed.
    #[cfg(feature = "server")]
    #[doc(hidden)]
    pub fn set_options(
        &self,
        table: &TableName,
        family: Option<&[u8]>,
        changes: &[(&[u8], Option<&[u8]>)],
    ) -> Result<()> {
        self.open_catalog()?.set_options(table, family, changes)
    }
    /// Adds a family.
    pub fn add_family(&self, table: &TableName, family: FamilyDescriptor) -> Result<()> {
        self.open_catalog()?.add_family(table, family)
    }
    /// Replaces a family's options.
    pub fn alter_family(&self, table: &TableName, family: FamilyDescriptor) -> Result<()> {
        self.open_catalog()?.alter_family(table, family)
    }
    /// Removes a family and its data.
    pub fn drop_family(&self, table: &TableName, family: &[u8]) -> Result<()> {
        self.open_catalog()?.drop_family(table, family)
    }
    /// Removes all user tables, enabled or not, with their data, all snapshots, and all namespaces
    /// that are not reserved. For servers that tests own.
    #[cfg(feature = "server")]
    pub fn reset(&self) -> Result<Removed> {
        self.open_catalog()?.reset()
    }
    /// Begins assigned time again at the wall clock, which was set back. Without that, timestamps stay
    /// ahead of the clock until it has caught up.
    /// REQUIRES: there are no user tables. A write that runs meanwhile may keep assigned time ahead.
    #[cfg(feature = "server")]
    #[doc(hidden)]
    pub fn restart_assigned_time(&self) {
        let shared = self.catalog.shared();
        shared.timestamps.restart();
        shared.row_locks.forget_times();
    }
    /// A table's descriptor and state.
    pub fn describe_table(&self, table: &TableName) -> Result<(Arc<TableDescriptor>, TableState)> {
        self.catalog.describe(table)
    }
    /// All tables, the system tables among them, by name.
    pub fn tables(&self) -> Vec<(Arc<TableDescriptor>, TableState)> {
        self.catalog.describe_all()
    }
    /// Sets the directory that locates regions for `hbase:meta`, and reports all regions to it. Only
    /// the first call has an effect.
    #[cfg(feature = "server")]
    pub fn set_directory(&self, directory: Arc<dyn RegionDirectory>) {
        self.catalog.set_directory(directory);
    }
    /// Makes the system table `hbase:acl` list these grants; without a source there is no such table. Only
    /// the first call has an effect.
    #[cfg(feature = "server")]
    pub fn set_grants(&self, grants: Arc<dyn GrantSource>) {
        self.catalog.set_grants(grants);
    }
    /// Runs `change`, which changes locations in the directory, while regions are neither added nor
    /// removed. `hbase:meta` shows the change from then on.
    #[cfg(feature = "server")]
    pub fn change_locations<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        self.open_catalog()?.change_locations(change)
    }
    /// Makes all data calls pass this gate. Only the first call has an effect.
    #[cfg(feature = "server")]
    pub fn set_gate(&self, gate: Arc<dyn RegionGate>) {
        self.catalog.shared().gate.get_or_init(|| gate);
    }

    // Regions.

    /// A table's regions in key order.
    pub fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        let table = self.catalog.table(table)?;
        Ok(table.regions.iter().map(|region| region.info().clone()).collect())
    }
    /// The region that holds `row`.
    pub fn region_of(&self, table: &TableName, row: &[u8]) -> Result<RegionInfo> {
        Ok(RegionInfo::clone(&*self.locate(table, row)?.0))
    }
    /// The region that holds `row`, and the state of its table.
    pub fn locate(&self, table: &TableName, row: &[u8]) -> Result<(Arc<RegionInfo>, TableState)> {
        self.catalog.locate(table, row)
    }
    /// The region whose row in `hbase:meta` is `key`, or else the last one before it.
    #[cfg(feature = "server")]
    pub fn region_before(&self, key: &[u8]) -> Result<Option<RegionInfo>> {
        read::region_before(self.open_catalog()?, key)
    }
    /// Figures of every region but those of the system tables, by table and key order.
    #[cfg(feature = "server")]
    pub fn region_stats(&self) -> Vec<RegionStats> {
        let tables = self.catalog.tables().sorted();
        tables
            .iter()
            .flat_map(|table| &table.regions)
            .map(|region| region.stats())
            .collect()
    }
    /// The row at which a split of a region at `row` happens, as the table's options want it; `None` if
    /// the region is gone or cannot be split there.
    #[cfg(feature = "server")]
    pub fn split_row(&self, region: RegionId, row: &[u8]) -> Option<Vec<u8>> {
        check_row(row).ok()?;
        self.catalog.split_row(region, row)
    }
    /// Splits a region at `row`, or near its middle. Returns the two halves.
    pub fn split_region(&self, region: RegionId, row: Option<&[u8]>) -> Result<(RegionInfo, RegionInfo)> {
        if let Some(row) = row {
            check_row(row)?;
        }
        let (left, right) = self.open_catalog()?.split_region(region, row)?;
        self.workers.after_replacement(&[left.id, right.id]);
        Ok((left, right))
    }
    /// Merges adjacent regions of one table into one.
    pub fn merge_regions(&self, regions: &[RegionId]) -> Result<RegionInfo> {
        let merged = self.open_catalog()?.merge_regions(regions)?;
        self.workers.after_replacement(&[merged.id]);
        Ok(merged)
    }

    // Data.

    /// Sets the budget from which calls reserve the engine's memory besides their batches. Only the
    /// first call has an effect.
    #[cfg(feature = "server")]
    pub fn charge_calls_to(&self, budget: Arc<dyn Budget>) {
        self.catalog.shared().store.reader.calls.set(budget);
    }
    /// Reads one row; appends at most one row to `out`.
    #[cfg(feature = "server")]
    pub fn get(&self, table: &TableName, get: &Get<'_>, out: &mut CellBatch) -> Result<()> {
        self.get_within(table, get.row, &get.spec, ReadTier::All, out)
    }
    /// As [`Self::get`], of `row`. With [`ReadTier::Memory`], for a network thread, it fails with
    /// [`Error::NotInMemory`] where it would read from disk or wait for memory; an open row of `out` is then
    /// to be abandoned.
    #[cfg(feature = "server")]
    pub fn get_within(
        &self,
        table: &TableName,
        row: &[u8],
        spec: &ReadSpec,
        tier: ReadTier,
        out: &mut CellBatch,
    ) -> Result<()> {
        read::get(self.open_catalog()?, table, row, spec, tier, out)
    }
    /// Reads the blocks that these gets need and that are not in memory into the cache, several at a
    /// time. Returns the number of gets, counted from the first, for which this was done; at least 1
    /// if there is a get. Blocks that are not to be cached, and large ones, are left to the gets, and
    /// so are all errors.
    #[cfg(feature = "server")]
    pub fn read_ahead<R: AsRef<[u8]>>(&self, table: &TableName, gets: &[(R, ReadSpec)]) -> usize {
        match self.open_catalog() {
            Ok(catalog) => read_ahead::read_ahead(catalog, &self.workers, table, gets),
            Err(_) => gets.len(),
        }
    }
    /// Opens a scan over one snapshot.
    #[cfg(feature = "server")]
    pub fn scan(&self, table: &TableName, scan: Scan) -> Result<Scanner> {
        Scanner::open(self.open_catalog()?, table, scan)
    }
    /// Applies mutations, each row atomically, in order; at least one. Checks all of them first: an error
    /// means that none was applied. The writes are visible and durable once the commit is. Rows of one region
    /// share one log record, written with the strongest durability that one of them asks for.
    #[cfg(feature = "server")]
    pub fn mutate(&self, table: &TableName, mutations: &[RowMutation<'_>]) -> Result<Commit> {
        self.mutate_from(table, mutations, &Origin::default())
    }
    /// Applies mutations as [`Self::mutate`] does, and logs the clusters that they have passed.
    #[cfg(feature = "server")]
    pub fn mutate_from(
        &self,
        table: &TableName,
        mutations: &[RowMutation<'_>],
        origin: &Origin,
    ) -> Result<Commit> {
        self.check_open()?;
        self.write(|catalog| write::mutate(catalog, table, mutations, origin.clusters()))
    }
    /// Applies the rows of a replication source as they are: timestamps, types and tags stay. Each row is
    /// applied atomically, in the order given. Writes of one region share one log record, with the clusters
    /// that they have passed. A table that is read only takes them, too. An error means that none was
    /// applied; the rows are visible and durable once the commit is.
    #[cfg(feature = "server")]
    pub fn apply_replicated(
        &self,
        table: &TableName,
        rows: &[ReplicatedRow<'_>],
        origin: &Origin,
    ) -> Result<Commit> {
        self.check_open()?;
        self.write(|catalog| replicate::replicate(catalog, table, rows, origin.clusters(), Source::Peer))
    }
    /// Applies an atomic group; appends one row to `out` for each of its updates whose cells are wanted,
    /// in the order of the steps. After an error nothing has happened, and `out` is as before. With
    /// [`ReadTier::Memory`], for a network thread: fails with [`Error::NotInMemory`] where it would read
    /// from disk, wait for a row's lock, or wait until the cells that it read are durable.
    #[cfg(feature = "server")]
    pub fn apply_group(
        &self,
        table: &TableName,
        group: &AtomicGroup<'_>,
        tier: ReadTier,
        out: &mut CellBatch,
    ) -> Result<GroupOutcome> {
        self.apply(table, group, tier, out)
    }

    fn apply(
        &self,
        table: &TableName,
        group: &AtomicGroup<'_>,
        tier: ReadTier,
        out: &mut CellBatch,
    ) -> Result<GroupOutcome> {
        self.check_open()?;
        self.write(|catalog| atomic_group::apply(catalog, table, group, tier, out))
    }

    /// Applies `mutation` if the check on its row passes; `None` if not (its reason is then
    /// durable).
    #[cfg(feature = "server")]
    pub fn check_and_mutate(
        &self,
        table: &TableName,
        check: &Check<'_>,
        mutation: &RowMutation<'_>,
    ) -> Result<Option<Commit>> {
        self.check_row_and_mutate(table, check, mutation)
    }

    fn check_row_and_mutate(
        &self,
        table: &TableName,
        check: &Check<'_>,
        mutation: &RowMutation<'_>,
    ) -> Result<Option<Commit>> {
        let group = AtomicGroup {
            conditions: &[check.on(mutation.row)],
            steps: &[GroupStep::Write(GroupWrite::of(mutation))],
            ..AtomicGroup::default()
        };
        let outcome = self.apply(table, &group, ReadTier::All, &mut CellBatch::new())?;
        Ok(outcome.commit)
    }

    /// Increments or appends; puts the new cells into `out` as one row.
    #[cfg(feature = "server")]
    pub fn update(
        &self,
        table: &TableName,
        row: &[u8],
        change: &RowUpdate<'_>,
        ttl_ms: Option<i64>,
        durability: Durability,
        out: &mut CellBatch,
    ) -> Result<Commit> {
        self.update_row(table, GroupUpdate::new(row, change, ttl_ms, durability), out)
    }

    fn update_row(&self, table: &TableName, update: GroupUpdate<'_>, out: &mut CellBatch) -> Result<Commit> {
        let group = AtomicGroup {
            steps: &[GroupStep::Update(update)],
            ..AtomicGroup::default()
        };
        let outcome = self.apply(table, &group, ReadTier::All, out)?;
        Ok(outcome
            .commit
            .expect("an update without a condition and a nonce writes"))
    }

    /// Makes a write and asks for the flushes it makes necessary.
    fn write<T>(&self, write: impl FnOnce(&Catalog) -> Result<write::WriteOutcome<T>>) -> Result<T> {
        match write(&self.catalog) {
            Ok(written) => {
                for region in written.flush {
                    self.workers.request(Job::Flush(region));
                }
                if self.workers.memory_is_short() {
                    self.workers.relieve_memory();
                }
                Ok(written.result)
            }
            Err(error) => {
                match error {
                    Error::RegionTooBusy(_) => self.workers.relieve_memory(),
                    Error::DiskSpace(_) => self.catalog.shared().counters.suspended_writes.increment(),
                    _ => {}
                }
                Err(error)
            }
        }
    }

    // State.

    /// Engine-wide counters.
    #[cfg(feature = "server")]
    pub fn counters(&self) -> &Counters {
        &self.catalog.shared().counters
    }
    /// Usage of the block cache.
    #[cfg(feature = "server")]
    pub fn cache_usage(&self) -> CacheUsage {
        self.catalog.shared().store.reader.cache.usage()
    }
    /// File descriptors in use by store files.
    #[cfg(feature = "server")]
    pub fn handle_usage(&self) -> HandleUsage {
        self.catalog.shared().store.reader.handles.usage()
    }
    /// Space on the disk as of the last poll, and whether writes are suspended for want of it.
    #[cfg(feature = "server")]
    pub fn disk(&self) -> DiskStats {
        self.catalog.shared().disk.stats()
    }
    /// How long the disk has kept the log waiting, if that is longer than the limit from which
    /// writes are refused.
    #[cfg(feature = "server")]
    pub fn stalled(&self) -> Option<Duration> {
        let shared = self.catalog.shared();
        let waited = shared.wal.waiting()?;
        (waited > shared.options.wal_stall).then_some(waited)
    }
    /// The timestamp that a write without one gets now, unless its row is ahead.
    #[cfg(feature = "server")]
    pub fn assigned_ms(&self) -> i64 {
        let shared = self.catalog.shared();
        shared.timestamps.issue(&*shared.clock)
    }
    /// Lead of assigned timestamps over the wall clock.
    #[cfg(feature = "server")]
    pub fn ahead_of_clock(&self) -> Duration {
        let shared = self.catalog.shared();
        shared.timestamps.ahead_of_clock(&*shared.clock)
    }
    /// Lengths of the background queues.
    #[cfg(feature = "server")]
    pub fn queues(&self) -> QueueStats {
        self.workers.stats()
    }
    /// Bytes of all memstores.
    pub fn memstore_bytes(&self) -> u64 {
        self.catalog.shared().memstore_bytes()
    }
    /// Bytes of memstores that have left their region and that open scans still hold: no limit counts
    /// them. A scan holds them until its next fetch.
    #[cfg(feature = "server")]
    pub fn pinned_memstore_bytes(&self) -> u64 {
        self.catalog.shared().store.chunks.pinned_bytes()
    }
    /// Memory of flushed memstores that is kept for the next ones: at most a quarter of the limit
    /// of all memstores.
    #[cfg(feature = "server")]
    pub fn kept_memstore_bytes(&self) -> u64 {
        self.catalog.shared().store.chunks.bytes()
    }
    /// The newest edit readers see, and the newest that has a sequence id.
    #[cfg(feature = "server")]
    pub fn read_point(&self) -> (SeqId, SeqId) {
        let wal = &self.catalog.shared().wal;
        (wal.read_point(), wal.last_assigned())
    }
    /// How long the oldest edit that is not in a store file has been waiting.
    #[cfg(feature = "server")]
    pub fn oldest_unflushed(&self) -> Option<Duration> {
        let tables = self.catalog.tables();
        let since = tables
            .regions()
            .filter_map(|region| region.dirty_since_ms())
            .min()?;
        Some(
            self.catalog
                .shared()
                .clock
                .mono()
                .saturating_sub(Duration::from_millis(since)),
        )
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_workers();
    }
}
