//! The catalog: namespaces, tables and regions, and every change to them.
//!
//! Readers and writers look tables up in an immutable [`Tables`] without a lock. Every change is one manifest
//! edit, durable before it is published here:
//!
//! ```text
//! tables, namespaces   schema changes, one at a time (`schema`)
//! split                split and merge: regions replaced by others; schema changes, too
//! truncate             a region replaced by an empty one; a schema change, too
//! flush                frozen memstores become store files
//! compact              store files become fewer
//! load                 files from elsewhere become store files
//! directory            reports of changes to the directory that locates regions
//! snapshots            snapshots of tables, and tables made of them; schema changes, too
//! pin                  one read point over everything, for a backup
//! turns                changes that the log does not show, for copies that follow it
//! reset                everything removed at once
//! quota, switches      limits of namespaces, and background work that operators turn off
//! normalize            splits and merges to similar sizes
//! size                 how much there is to list
//! view                 the snapshot that a reader captures
//! system               hbase:meta and hbase:namespace, made of all this when they are read
//! ```
//!
//! A writer takes its regions' `updates` locks and *then* makes sure that its table is still the published
//! one ([`Catalog::is_current`]). A change that must not be overtaken by writers publishes while it holds
//! those locks for writing (split, merge, truncation of a region, alter), or takes each of them once after
//! publishing (disable): afterwards no writer is left that acts on the old table.
//!
//! Lock order: `schema` -> regions' locks (see `region`) -> `manifest`. The manifest's lock is held
//! for the append and sync of one edit, or of a batch of flushes, and the publication that follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::clock::Timestamps;
use crate::error::{Error, Result};
use crate::id::{RegionId, SeqId};
use crate::manifest::{Manifest, ManifestEdit, ManifestState, RegionMeta, SnapshotMeta};
use crate::memstore::Memstore;
use crate::nonces::Kept;
use crate::record::{EditBuilder, Mark, NO_REGION};
use crate::region::{Region, RegionInfo, RegionVersion, Shared};
use crate::schema::limits::STORES;
use crate::schema::{Cut, NamespaceDescriptor, TableDescriptor, TableName, TableState};
use crate::seeded;
use crate::store::StoreVersion;
use crate::store::compact::RateLimiter;
use crate::sync::{Loaded, Published};
use crate::wal::Logging;

mod compact;
mod directory;
mod flush;
mod load;
mod log_readers;
mod namespaces;
mod normalize;
mod pin;
mod quota;
mod reset;
mod size;
mod snapshots;
mod split;
mod switches;
mod system;
mod tables;
mod truncate;
mod turns;
mod view;
mod write_options;

use pin::PinnedLinks;

pub(crate) use compact::{CompactionMode, CompactionOutcome};
pub use load::LoadFile;
pub(crate) use load::LoadMode;
pub use log_readers::{LogTail, TailedEdit};
pub(crate) use pin::files_of;
pub use pin::{Pin, PinnedFile, PinnedSegment};
pub use reset::Removed;
pub use size::CatalogSize;
pub use snapshots::{ImportedFile, ImportedRegion, ImportedSnapshot};
pub(crate) use system::{SystemTable, SystemTables};
pub use turns::Turn;
use turns::Turns;
pub(crate) use write_options::WriteOptions;

/// A table: its descriptor and its regions. Immutable.
#[derive(Debug)]
pub(crate) struct Table {
    /// Families and options.
    pub descriptor: Arc<TableDescriptor>,
    /// Whether it takes data calls.
    pub state: TableState,
    /// Regions by start row: the first starts at the empty row, each ends where the next one starts.
    pub regions: Vec<Arc<Region>>,
    /// The descriptor's options that each write asks for.
    pub write_options: WriteOptions,
}

impl Table {
    pub(crate) fn new(
        descriptor: Arc<TableDescriptor>,
        state: TableState,
        regions: Vec<Arc<Region>>,
    ) -> Self {
        Self {
            write_options: WriteOptions::of(&descriptor),
            descriptor,
            state,
            regions,
        }
    }

    /// Fails if the table takes no data calls.
    fn check_enabled(&self) -> Result<()> {
        match self.state {
            TableState::Enabled => Ok(()),
            state @ TableState::Disabled => Err(Error::TableNotEnabled {
                table: self.name().clone(),
                state: state.as_str(),
            }),
        }
    }

    /// The position of the region that holds `row`.
    pub(crate) fn region_index(&self, row: &[u8]) -> usize {
        // The first one starts at the empty row. There is always one.
        self.regions[1..].partition_point(|region| region.info().start.as_slice() <= row)
    }

    /// The region that holds `row`.
    pub(crate) fn region_of(&self, row: &[u8]) -> &Arc<Region> {
        &self.regions[self.region_index(row)]
    }

    pub(crate) fn name(&self) -> &TableName {
        &self.descriptor.name
    }

    /// Number of stores: one for each family of each region.
    fn stores(&self) -> usize {
        self.regions.len() * self.descriptor.families.len()
    }
}

/// A snapshot of the whole catalog. Immutable; cheap to copy, since all of it is shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// Namespaces by name.
    pub namespaces: BTreeMap<String, NamespaceDescriptor>,
    /// Snapshots of tables by name.
    pub snapshots: BTreeMap<String, Arc<SnapshotMeta>>,
    by_name: HashMap<TableName, Arc<Table>>,
    /// In the order of their ids, so that a simulation visits them in the same order every time.
    regions: BTreeMap<RegionId, Arc<Region>>,
    /// The size of `by_name`.
    size: CatalogSize,
}

impl Tables {
    /// All tables but the system tables, by name.
    pub(crate) fn sorted(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<_> = self.by_name.values().cloned().collect();
        tables.sort_by(|left, right| left.name().cmp_as_text(right.name()));
        tables
    }

    /// The table of that name.
    pub(crate) fn table(&self, name: &TableName) -> Result<&Arc<Table>> {
        self.by_name
            .get(name)
            .ok_or_else(|| Error::NoSuchTable(name.clone()))
    }

    /// The table of that name, if it takes data calls.
    pub(crate) fn enabled_table(&self, name: &TableName) -> Result<&Arc<Table>> {
        let table = self.table(name)?;
        table.check_enabled()?;
        Ok(table)
    }

    /// The error for a namespace that does not exist.
    pub(crate) fn no_such_namespace(&self, name: &str) -> Error {
        Error::no_such_namespace(name, self.namespaces.keys())
    }

    /// Number of stores in all tables but `except`: one for each family of each region.
    fn stores_without(&self, except: &TableName) -> usize {
        let tables = self.by_name.values().filter(|table| table.name() != except);
        tables.map(|table| table.stores()).sum()
    }

    /// All regions, by id.
    pub(crate) fn regions(&self) -> impl Iterator<Item = &Arc<Region>> {
        self.regions.values()
    }

    /// How much there is to list; system tables are not counted.
    pub(crate) fn size(&self) -> CatalogSize {
        self.size
    }

    /// Number of regions.
    pub(crate) fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// The region of that identity.
    pub(crate) fn region(&self, id: RegionId) -> Option<&Arc<Region>> {
        self.regions.get(&id)
    }

    /// Inserts a table, replacing the one of the same name.
    pub(crate) fn put(&mut self, table: Table) {
        self.remove(&table.descriptor.name);
        for region in &table.regions {
            self.regions.insert(region.id(), Arc::clone(region));
        }
        self.size += CatalogSize::of_table(&table);
        self.by_name
            .insert(table.descriptor.name.clone(), Arc::new(table));
    }

    fn remove(&mut self, name: &TableName) {
        let Some(table) = self.by_name.remove(name) else {
            return;
        };
        for region in &table.regions {
            self.regions.remove(&region.id());
        }
        self.size -= CatalogSize::of_table(&table);
    }
}

/// The catalog. Shared by all threads.
#[derive(Debug)]
pub(crate) struct Catalog {
    shared: Arc<Shared>,
    /// The state that readers see. Replaced as a whole under `manifest`.
    current: Published<Tables>,
    /// Serialises schema changes, splits and merges.
    schema: Mutex<()>,
    /// The durable state. The innermost lock.
    manifest: Mutex<Manifest>,
    /// Bytes per second of all compactions.
    limiter: RateLimiter,
    /// The system tables, which are not in `current`.
    system: SystemTables,
    /// The last segment of the log that the manifest is known to name.
    noted_segment: AtomicU64,
    /// Links of snapshots that are needed by pins.
    pinned_links: PinnedLinks,
    /// Changes that the log does not show. Noted under `manifest`.
    turns: Turns,
    /// Number of the copy plus 1 if the database follows another one: it splits, merges and forgets nothing
    /// by itself. Else 0.
    follows: AtomicU32,
}

/// The greatest timestamp and sequence id assigned so far.
#[derive(Clone, Copy, Debug)]
struct HighWater {
    timestamp_ms: u64,
    seq: SeqId,
}

impl From<HighWater> for ManifestEdit {
    fn from(mark: HighWater) -> Self {
        Self::HighWater {
            timestamp_ms: mark.timestamp_ms,
            seq: mark.seq,
        }
    }
}

impl Catalog {
    /// A catalog of these tables, which match `manifest`.
    pub(crate) fn new(shared: Arc<Shared>, manifest: Manifest, tables: Tables) -> Self {
        let limiter = RateLimiter::new(
            Arc::clone(&shared.clock),
            shared.options.compaction_max_bytes_per_second,
        );
        Self {
            shared,
            current: Published::new(tables),
            schema: Mutex::new(()),
            limiter,
            system: SystemTables::default(),
            noted_segment: AtomicU64::new(0),
            pinned_links: PinnedLinks::default(),
            turns: Turns::new(manifest.state().turns),
            follows: AtomicU32::new(0),
            manifest: Mutex::new(manifest),
        }
    }

    /// State shared by all regions.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Everything there is now.
    pub(crate) fn tables(&self) -> Loaded<Tables> {
        self.current.load()
    }

    /// The system tables.
    pub(crate) fn system(&self) -> &SystemTables {
        &self.system
    }

    /// A table, whatever its state. A system table shows the state of now.
    pub(crate) fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        match self.system.named(name) {
            None => self.current.load().table(name).cloned(),
            Some(system) => self.system_table(system),
        }
    }

    /// Builds a system table of the current state. Fails if a name is too long for a row.
    fn system_table(&self, table: SystemTable) -> Result<Arc<Table>> {
        let directory = self.shared.directory.get();
        self.system
            .table(table, &self.current.load_full(), directory.map(AsRef::as_ref))
    }

    /// A table's descriptor and state.
    pub(crate) fn describe(&self, name: &TableName) -> Result<(Arc<TableDescriptor>, TableState)> {
        match self.system.named(name) {
            None => {
                let tables = self.current.load();
                let table = tables.table(name)?;
                Ok((Arc::clone(&table.descriptor), table.state))
            }
            Some(system) => Ok((Arc::clone(self.system.descriptor(system)), TableState::Enabled)),
        }
    }

    /// The region that holds `row`, and the state of its table.
    pub(crate) fn locate(&self, name: &TableName, row: &[u8]) -> Result<(Arc<RegionInfo>, TableState)> {
        match self.system.named(name) {
            None => {
                let tables = self.current.load();
                let table = tables.table(name)?;
                Ok((table.region_of(row).shared_info(), table.state))
            }
            Some(system) => {
                let region = self.system_table(system)?.region_of(row).shared_info();
                Ok((region, TableState::Enabled))
            }
        }
    }

    /// Descriptors and states of all tables, the system tables among them, by name.
    pub(crate) fn describe_all(&self) -> Vec<(Arc<TableDescriptor>, TableState)> {
        let user = self.tables().sorted();
        let user = user
            .iter()
            .map(|table| (Arc::clone(&table.descriptor), table.state));
        let system = self
            .system
            .all()
            .map(|table| (Arc::clone(self.system.descriptor(table)), TableState::Enabled));
        let mut all: Vec<_> = user.chain(system).collect();
        all.sort_by(|(left, _), (right, _)| left.name.cmp_as_text(&right.name));
        all
    }

    /// A table that takes data calls.
    pub(crate) fn enabled_table(&self, name: &TableName) -> Result<Arc<Table>> {
        let table = self.table(name)?;
        table.check_enabled()?;
        Ok(table)
    }

    /// Whether the catalog still has this very table under its name. A system table is a snapshot
    /// and always current.
    pub(crate) fn is_current(&self, table: &Arc<Table>) -> bool {
        if self.system.named(table.name()).is_some() {
            return true;
        }
        self.current
            .load()
            .table(table.name())
            .is_ok_and(|current| Arc::ptr_eq(current, table))
    }

    /// Whether the catalog still has this very table. Quick if nothing has changed since `tables`
    /// was loaded.
    pub(crate) fn is_still_current(&self, tables: &Loaded<Tables>, table: &Arc<Table>) -> bool {
        self.current.is_current(tables) || self.is_current(table)
    }

    /// The region of that identity and its table; of a table that can be changed.
    pub(crate) fn region(&self, id: RegionId) -> Result<(Arc<Table>, Arc<Region>)> {
        if let Some(system) = SystemTable::of_region(id) {
            return Err(Error::DoNotRetry(format!(
                "the region of {} is NOT splittable, nor can it be merged",
                self.system.descriptor(system).name
            )));
        }
        let tables = self.current.load();
        let region = tables
            .region(id)
            .ok_or_else(|| Error::NoSuchRegion(format!("no region has the id {id}")))?;
        Ok((
            Arc::clone(tables.table(&region.info().table)?),
            Arc::clone(region),
        ))
    }

    /// The region of that identity and its table, for a flush or compaction. Those of a system table have
    /// no effect, as for the table as a whole.
    pub(crate) fn region_for_upkeep(&self, id: RegionId) -> Result<(Arc<Table>, Arc<Region>)> {
        let Some(system) = SystemTable::of_region(id) else {
            return self.region(id);
        };
        let table = self.table(&self.system.descriptor(system).name)?;
        let region = table.regions.first().cloned();
        let region = region.ok_or_else(|| Error::NoSuchRegion(format!("no region has the id {id}")))?;
        Ok((table, region))
    }

    /// The region of that name, `table,start,id.encoded.`.
    pub(crate) fn region_named(&self, name: &[u8]) -> Result<RegionInfo> {
        let no_such_region = || Error::NoSuchRegion(format!("no region is called {}", Cut(name)));
        // The table's name has no comma, nor has the part behind the last one.
        let mut parts = name.splitn(2, |byte| *byte == b',');
        let (Some(table), Some(rest)) = (parts.next(), parts.next()) else {
            return Err(no_such_region());
        };
        let last = rest.iter().rposition(|byte| *byte == b',');
        let start = &rest[..last.ok_or_else(no_such_region)?];
        let table = self.table(&TableName::parse(table)?)?;
        let region = table.region_of(start).info();
        if region.name() == name {
            Ok(region.clone())
        } else {
            Err(no_such_region())
        }
    }

    /// Reads the manifest's state under its lock.
    pub(crate) fn with_state<T>(&self, read: impl FnOnce(&ManifestState) -> T) -> T {
        read(self.manifest.lock().state())
    }

    /// States on disk how far timestamps and sequence ids have come.
    pub(crate) fn write_high_water(&self) -> Result<()> {
        self.append_high_water(&mut self.manifest.lock())
    }

    /// The greatest timestamp and sequence id assigned so far.
    fn high_water(&self) -> HighWater {
        HighWater {
            timestamp_ms: self.shared.timestamps.greatest(),
            seq: self.shared.wal.last_assigned(),
        }
    }

    /// Appends the high-water mark to the manifest if timestamps are too far beyond the last one
    /// (`too_far`). After a restart timestamps then do not go back, even if the clock does.
    pub(crate) fn keep_high_water(&self, too_far: impl Fn(&Timestamps) -> bool) -> Result<()> {
        let timestamps = &self.shared.timestamps;
        if !too_far(timestamps) {
            return Ok(());
        }
        let mut manifest = self.manifest.lock();
        if too_far(timestamps) {
            self.append_high_water(&mut manifest)?;
        }
        Ok(())
    }

    fn append_high_water(&self, manifest: &mut MutexGuard<'_, Manifest>) -> Result<()> {
        let mark = self.high_water();
        self.append(manifest, &mark.into())?;
        self.shared.timestamps.set_marked(mark.timestamp_ms);
        Ok(())
    }

    /// Pauses running compactions, or resumes them. They can be cancelled meanwhile.
    pub(crate) fn pause_compactions(&self, paused: bool) {
        self.limiter.pause(paused);
    }

    /// Cancels every running compaction, without waiting.
    pub(crate) fn cancel_compactions(&self) {
        for region in self.tables().regions() {
            region
                .cancel_compaction
                .store(true, std::sync::atomic::Ordering::Release);
        }
        self.limiter.wake();
    }

    /// Refuses a change after which `table` has `stores` stores if all tables together would have
    /// too many. A change that does not make the table larger is never refused.
    fn check_stores(&self, table: &TableName, stores: usize) -> Result<()> {
        let tables = self.current.load();
        if tables.table(table).is_ok_and(|table| stores <= table.stores()) {
            return Ok(());
        }
        STORES.check_total(
            tables.stores_without(table) + stores,
            self.shared.options.totals.stores,
            "drop tables or families, or merge regions",
        )
    }

    /// Refuses an edit that [`Self::append`] would refuse, before any of its files are on disk.
    fn check_edit(&self, edit: &ManifestEdit) -> Result<()> {
        self.manifest.lock().check(edit).map(drop)
    }

    fn append(&self, manifest: &mut MutexGuard<'_, Manifest>, edit: &ManifestEdit) -> Result<()> {
        self.append_all(manifest, std::slice::from_ref(edit))
    }

    /// Appends edits with one sync ([`Manifest::append_all`]).
    fn append_all(&self, manifest: &mut MutexGuard<'_, Manifest>, edits: &[ManifestEdit]) -> Result<()> {
        let followed: SmallVec<[bool; 1]> = edits
            .iter()
            .map(|edit| turns::files_follow(manifest.state(), edit))
            .collect();
        self.note_gone_regions(manifest.state(), edits)?;
        manifest.append_all(edits)?;
        let position = self.shared.wal.last_assigned();
        for (edit, files_follow) in edits.iter().zip(followed) {
            self.turns
                .note(edit, files_follow, position, self.shared.clock.wall_ms());
        }
        self.shared.counters.manifest_appends.add(edits.len() as u64);
        Ok(())
    }

    /// Publishes a change. `_manifest` proves that the edit behind it is durable and that no other
    /// thread publishes.
    fn publish(&self, _manifest: &MutexGuard<'_, Manifest>, change: impl FnOnce(&mut Tables)) {
        let mut next = Tables::clone(&self.current.load());
        change(&mut next);
        self.current.replace(next);
    }

    /// A region without data.
    #[expect(clippy::needless_pass_by_value, reason = "callers make it for this call")]
    fn empty_region(&self, meta: RegionMeta, table: &Arc<TableDescriptor>) -> Arc<Region> {
        let stores = table
            .families
            .iter()
            .map(|family| {
                let memstore = Memstore::new(Arc::clone(&self.shared.store.chunks));
                Arc::new(StoreVersion::new(Arc::new(family.clone()), Vec::new(), memstore))
            })
            .collect();
        let version = RegionVersion {
            table: Arc::clone(table),
            stores,
        };
        Region::new(&meta, version, BTreeSet::new())
    }

    /// Removes WAL segments that no memstore needs any more.
    pub(crate) fn remove_obsolete_wal(&self) -> Result<()> {
        // Edits up to the read point are in memstores or files. Read it first: ids assigned later
        // are above the bound.
        let mut bound = self.shared.wal.read_point();
        for region in self.tables().regions() {
            if let Some(oldest) = region.version().oldest_unflushed() {
                bound.0 = bound.0.min(oldest.0.saturating_sub(1));
            }
        }
        if let Some(first) = self.shared.wal.first_kept(bound)
            && (seeded::is_on("nonces-removed-with-the-log") || self.keep_nonces(first)?)
        {
            self.note_log(first)?;
            self.shared.wal.remove_before(first)?;
        }
        Ok(())
    }

    /// Logs the nonces of segments before `first` that are still kept again (`nonces` has the
    /// reasons). Returns whether the segments may be removed: not if the log has no space for the
    /// nonces.
    fn keep_nonces(&self, first: u64) -> Result<bool> {
        let shared = &self.shared;
        let Some(last) = shared.wal.last_seq_before(first) else {
            return Ok(true);
        };
        let kept = shared.nonces.logged_up_to(last, shared.clock.mono());
        if kept.is_empty() {
            return Ok(true);
        }
        match self.log_nonces(kept) {
            Ok(again) => shared.nonces.logged_again(last, again),
            Err(Error::DiskSpace(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Logs nonces in an edit of their own, durably; returns its sequence id.
    fn log_nonces(&self, nonces: Vec<Kept>) -> Result<SeqId> {
        let shared = &self.shared;
        let lived_ms = shared.nonces.lived_ms(shared.clock.mono());
        let mut edit = EditBuilder::new();
        edit.begin(NO_REGION);
        edit.begin_row();
        for Kept { nonce, age_ms } in nonces {
            edit.nonce(nonce, lived_ms.saturating_sub(age_ms));
        }
        let payload = edit.finish();
        let mut reserved = shared.wal.reserve(1, payload.len() as u64)?;
        let appended = shared
            .wal
            .append(&mut reserved, payload, 1, &[], Logging::Fsync)?;
        let logged = appended.first_seq();
        appended.applied().wait()?;
        Ok(logged)
    }

    /// Logs the first mark of a copy, durably.
    pub(crate) fn log_mark(&self, mark: Mark) -> Result<()> {
        let nonce = mark.to_nonce();
        let logged = self.log_nonces(vec![Kept { nonce, age_ms: 0 }])?;
        let shared = &self.shared;
        shared.nonces.note(nonce, logged, shared.clock.mono());
        Ok(())
    }

    /// Records the log's segments in the manifest, if it does not have all of them.
    pub(crate) fn note_new_segments(&self) -> Result<()> {
        let (first, last) = self.shared.wal.segments();
        if last > self.noted_segment.load(Ordering::Acquire) {
            self.note_log(first)?;
        }
        Ok(())
    }

    /// Records in the manifest that the log begins with this segment, and ends with the open one.
    fn note_log(&self, first: u64) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let noted = manifest.state().log;
        let (first, last) = (first.max(noted.0), self.shared.wal.segments().1.max(noted.1));
        if (first, last) != noted {
            self.append(&mut manifest, &ManifestEdit::Log { first, last })?;
        }
        self.noted_segment.store(last, Ordering::Release);
        Ok(())
    }
}
