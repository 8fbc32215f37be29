//! Snapshots of tables, and tables made of them.
//!
//! A snapshot is a table's descriptor, its regions, and hard links to the store files that it had. Taking
//! one:
//!
//! 1. With `schema` held, no region of the table comes or goes. Its regions are flushed, unless the
//!    caller declines that.
//! 2. Under the manifest's lock the files of all regions are noted, and the regions' versions kept:
//!    while they are held, compactions remove none of the files. Writers and readers are not
//!    blocked.
//! 3. The files are linked into the snapshot's directory, and the directories synced.
//! 4. One manifest edit makes the snapshot exist.
//!
//! From there on table and snapshot are independent; the file system counts the links of a file.
//! Removing has the reverse order: the edit first, then the links.
//!
//! A table is made of a snapshot by links back, under new file ids: the block cache knows blocks by
//! file id, and a file's life ends with the last share of its id (`store::StoreFile`). The uuid in
//! a file's info stays, since the bytes do. Regions get new ids, so the log has no edits for them.
//! A file that several regions share since a split is linked once and shared again. One manifest
//! edit names all regions with their files; a restore drops the table's regions with the same edit.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use parking_lot::MutexGuard;

use self::filled::Filled;
use self::links::{Links, remove_empty_dirs, remove_files};
use super::{Catalog, Table};
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::manifest::{ManifestEdit, RegionState, SnapshotMeta, SnapshotRegion};
use crate::region::{Region, RegionVersion};
use crate::schema::limits::SNAPSHOTS;
use crate::schema::{Switch, TableDescriptor, TableName, TableState, check_snapshot_name};
use crate::store::{file_path, snapshot_dir, snapshot_store_dir, store_dir};

mod filled;
mod import;
mod links;

pub use import::{ImportedFile, ImportedRegion, ImportedSnapshot};

impl Catalog {
    /// Takes a snapshot of a table; `ttl_seconds` 0: for ever.
    pub(crate) fn snapshot(
        &self,
        table: &TableName,
        name: &str,
        flush: bool,
        ttl_seconds: u64,
    ) -> Result<()> {
        check_snapshot_name(name)?;
        if table.is_system() {
            return Err(Error::InvalidArgument(
                "System table snapshots are not allowed".into(),
            ));
        }
        let _schema = self.schema.lock();
        let tables = self.tables();
        if tables.snapshots.contains_key(name) {
            return Err(Error::SnapshotExists(name.into()));
        }
        let of = tables
            .table(table)
            .map_err(|_| Error::NoTableForSnapshot(table.clone()))?;
        of.regions
            .iter()
            .try_for_each(|region| region.check_undamaged())?;
        SNAPSHOTS.check_total(
            tables.snapshots.len() + 1,
            self.shared.options.totals.snapshots,
            "delete snapshots",
        )?;
        if flush {
            self.flush_all(&of.regions)?;
        }
        let (regions, _held) = self.present_files(of);
        let snapshot = SnapshotMeta {
            name: name.into(),
            descriptor: (*of.descriptor).clone(),
            created_ms: self.shared.clock.wall_ms(),
            ttl_seconds,
            regions,
        };
        let snapshot = Arc::new(snapshot);
        let edit = ManifestEdit::CreateSnapshot(Arc::clone(&snapshot));
        self.check_edit(&edit)?;
        let links = self.link_snapshot(&snapshot)?;
        let mut manifest = self.manifest.lock();
        if let Err(error) = self.append(&mut manifest, &edit) {
            // Where the edit may be on disk, the links stay.
            if !manifest.is_poisoned() {
                drop(manifest);
                links.remove();
            }
            return Err(error);
        }
        self.publish(&manifest, |tables| {
            tables.snapshots.insert(name.into(), snapshot);
        });
        Ok(())
    }

    /// The files of a table's regions as the manifest has them, and the versions that keep them on
    /// the disk.
    fn present_files(&self, table: &Table) -> (Vec<SnapshotRegion>, Vec<Arc<RegionVersion>>) {
        // A flush or compaction publishes under this lock after it has written its edit to the
        // manifest.
        let manifest = self.manifest.lock();
        let regions = manifest.state().regions_of(table.name());
        let regions = regions.into_iter().map(RegionState::to_snapshot).collect();
        let held = table.regions.iter().map(|region| region.load_version()).collect();
        (regions, held)
    }

    /// Links the files of a snapshot into its directory, durably; after an error there are no
    /// links.
    fn link_snapshot(&self, snapshot: &SnapshotMeta) -> Result<Links<'_>> {
        let mut links = Links::new(&self.shared);
        let link_all = |links: &mut Links<'_>| {
            for (id, (family, file)) in snapshot.files() {
                let from = store_dir(&self.shared.dir, &file.dir_table, family);
                let dir = snapshot_store_dir(&self.shared.dir, &snapshot.name, &file.dir_table, family);
                let to = file_path(&dir, id);
                links.add(&file_path(&from, id), dir, to)?;
            }
            links.sync()
        };
        match link_all(&mut links) {
            Ok(()) => Ok(links),
            Err(error) => {
                links.remove();
                Err(error)
            }
        }
    }

    /// Removes a snapshot.
    pub(crate) fn delete_snapshot(&self, name: &str) -> Result<()> {
        check_snapshot_name(name)?;
        let schema = self.schema.lock();
        self.delete_known_snapshot(&*self.known_snapshot(name)?, &schema)
    }

    fn known_snapshot(&self, name: &str) -> Result<Arc<SnapshotMeta>> {
        self.tables()
            .snapshots
            .get(name)
            .cloned()
            .ok_or_else(|| Error::NoSuchSnapshot(name.into()))
    }

    /// `_schema` proves that no table is made of the snapshot meanwhile.
    pub(super) fn delete_known_snapshot(
        &self,
        snapshot: &SnapshotMeta,
        _schema: &MutexGuard<'_, ()>,
    ) -> Result<()> {
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &ManifestEdit::DropSnapshot(snapshot.name.clone()))?;
        self.publish(&manifest, |tables| {
            tables.snapshots.remove(&snapshot.name);
        });
        drop(manifest);
        if !self.pinned_links.defer(snapshot) {
            self.remove_links(snapshot, |_| true);
        }
        Ok(())
    }

    /// Removes the links of a snapshot that is gone, those that `is_removed` chooses by their path.
    pub(super) fn remove_links(&self, snapshot: &SnapshotMeta, is_removed: impl Fn(&Path) -> bool) {
        let mut dirs = BTreeSet::new();
        let mut paths = Vec::new();
        for (id, (family, file)) in snapshot.files() {
            let dir = snapshot_store_dir(&self.shared.dir, &snapshot.name, &file.dir_table, family);
            paths.push(file_path(&dir, id));
            dirs.insert(dir);
        }
        paths.retain(|path| is_removed(path));
        let vfs = &*self.shared.store.vfs;
        remove_files(vfs, &*self.shared.listener, &paths);
        remove_empty_dirs(vfs, &snapshot_dir(&self.shared.dir, &snapshot.name), &dirs);
    }

    /// Removes the snapshots whose time to live is over, unless operators have turned that off, or the
    /// database follows another one. During a schema change it does nothing;
    /// the next call does the work.
    pub(crate) fn remove_expired_snapshots(&self) -> Result<()> {
        if !self.is_on(Switch::SnapshotCleanup) || self.follows().is_some() {
            return Ok(());
        }
        let now_ms = self.shared.clock.wall_ms();
        let is_expired = |snapshot: &&Arc<SnapshotMeta>| snapshot.is_expired(now_ms);
        if !self.tables().snapshots.values().any(|it| is_expired(&it)) {
            return Ok(());
        }
        let Some(schema) = self.schema.try_lock() else {
            return Ok(());
        };
        let tables = self.tables();
        for snapshot in tables.snapshots.values().filter(is_expired) {
            self.delete_known_snapshot(snapshot, &schema)?;
            self.shared.listener.notice(&format!(
                "snapshot {} of table {} has expired and was removed",
                snapshot.name, snapshot.descriptor.name
            ));
        }
        Ok(())
    }

    /// Creates a table of a snapshot, enabled, with the snapshot's descriptor after `change`. Returns
    /// its regions.
    pub(crate) fn clone_snapshot(
        &self,
        name: &str,
        table: &TableName,
        change: impl FnOnce(&mut TableDescriptor),
    ) -> Result<Vec<RegionId>> {
        let _schema = self.schema.lock();
        let snapshot = self.usable_snapshot(name)?;
        let mut descriptor = snapshot.descriptor.clone();
        change(&mut descriptor);
        self.clone_locked(&snapshot, descriptor, table)
    }

    /// Restores a table to the state of a snapshot. A disabled table stays disabled; a dropped one
    /// is created, enabled. Returns its regions.
    pub(crate) fn restore_snapshot(&self, name: &str) -> Result<Vec<RegionId>> {
        let _schema = self.schema.lock();
        let snapshot = self.usable_snapshot(name)?;
        let table_name = &snapshot.descriptor.name;
        let tables = self.tables();
        let Ok(table) = tables.table(table_name) else {
            return self.clone_locked(&snapshot, snapshot.descriptor.clone(), table_name);
        };
        if table.state != TableState::Disabled {
            return Err(Error::TableNotDisabled(format!(
                "table {table_name} must be disabled before it is restored from snapshot {name}"
            )));
        }
        let newest = table.regions.iter().map(|region| region.info().created_ms).max();
        let created_ms = self
            .shared
            .clock
            .wall_ms()
            .max(newest.unwrap_or_default().saturating_add(1));
        let descriptor = snapshot.descriptor.clone();
        self.install(&snapshot, descriptor, table_name, created_ms, Some(table))
    }

    fn usable_snapshot(&self, name: &str) -> Result<Arc<SnapshotMeta>> {
        check_snapshot_name(name)?;
        let snapshot = self.known_snapshot(name)?;
        if snapshot.is_expired(self.shared.clock.wall_ms()) {
            return Err(Error::SnapshotExpired(name.into()));
        }
        Ok(snapshot)
    }

    /// REQUIRES: `schema` is held.
    fn clone_locked(
        &self,
        snapshot: &SnapshotMeta,
        descriptor: TableDescriptor,
        table: &TableName,
    ) -> Result<Vec<RegionId>> {
        self.check_new_name(table)?;
        self.install(snapshot, descriptor, table, self.shared.clock.wall_ms(), None)
    }

    /// Makes a table with this descriptor of a snapshot, replacing `old` or as a new one.
    /// REQUIRES: `schema` is held.
    fn install(
        &self,
        snapshot: &SnapshotMeta,
        mut descriptor: TableDescriptor,
        name: &TableName,
        created_ms: u64,
        old: Option<&Arc<Table>>,
    ) -> Result<Vec<RegionId>> {
        descriptor.name = name.clone();
        let regions = snapshot.regions.len();
        match old {
            None => self.check_quota_of_new_table(name, regions)?,
            Some(table) => self.check_quota_of_restored(name, table.regions.len(), regions)?,
        }
        self.check_stores(name, regions * descriptor.families.len())?;
        self.manifest.lock().check_copy(snapshot, name)?;
        self.create_dirs(&descriptor)?;
        let descriptor = Arc::new(descriptor);
        let filled = Filled::open(self, snapshot, &descriptor)?;
        let mut manifest = self.manifest.lock();
        let states = filled.states(manifest.state().next_region, name, created_ms);
        let edit = match old {
            None => ManifestEdit::CloneTable {
                descriptor: (*descriptor).clone(),
                regions: states.clone(),
            },
            Some(_) => ManifestEdit::RestoreTable {
                descriptor: (*descriptor).clone(),
                regions: states.clone(),
            },
        };
        if let Err(error) = self.append(&mut manifest, &edit) {
            if !manifest.is_poisoned() {
                drop(manifest);
                filled.abandon();
            }
            return Err(error);
        }
        let regions: Vec<Arc<Region>> = filled.regions(&states, &descriptor, &self.shared.store.chunks);
        self.report_added(&regions, None);
        // The rows get other row locks, which have not recorded the times of their tombstones.
        self.shared.timestamps.pass_rows();
        let ids = regions.iter().map(|region| region.id()).collect();
        self.publish(&manifest, |tables| {
            tables.put(Table::new(
                descriptor,
                old.map_or(TableState::Enabled, |table| table.state),
                regions,
            ));
        });
        if let Some(old) = old {
            self.discard_regions(&manifest, &old.regions);
        }
        Ok(ids)
    }
}
