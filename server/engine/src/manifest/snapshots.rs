//! Snapshots of tables in the state: the rules of their edits, and the edits' effects.
//!
//! A snapshot has files of its own, under the ids that its table gave them; files of regions and of
//! snapshots are independent. A clone or a restored table has ids that were never used before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::state::{chain, check_families, check_file_id, refuse};
use super::{
    DroppedFile, FileMeta, ManifestState, RegionMeta, RegionState, SnapshotMeta, SnapshotRegion, TableMeta,
};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::schema::{Escaped, TableDescriptor, TableState, check_snapshot_name};

/// Files by family.
type Files = BTreeMap<Vec<u8>, Vec<FileMeta>>;

impl SnapshotMeta {
    /// Files of the snapshot, each once however many regions share it, with their family.
    pub fn files(&self) -> BTreeMap<FileId, (&[u8], &FileMeta)> {
        self.regions
            .iter()
            .flat_map(|region| &region.files)
            .flat_map(|(family, files)| files.iter().map(move |file| (file.id, (family.as_slice(), file))))
            .collect()
    }

    /// Size of its files: bytes that it would keep on the disk if nothing else referred to them.
    pub fn bytes(&self) -> u64 {
        self.files().values().map(|(_, file)| file.bytes).sum()
    }

    /// Whether its time to live is over.
    pub(crate) fn is_expired(&self, now_ms: u64) -> bool {
        self.ttl_seconds > 0
            && self
                .created_ms
                .saturating_add(self.ttl_seconds.saturating_mul(1000))
                < now_ms
    }
}

impl RegionState {
    /// The region as a snapshot has it.
    pub fn to_snapshot(&self) -> SnapshotRegion {
        SnapshotRegion {
            start: self.meta.start.clone(),
            end: self.meta.end.clone(),
            flushed: self.flushed,
            files: self.files.clone(),
            clipped: self.clipped.clone(),
        }
    }
}

impl ManifestState {
    pub(super) fn check_create_snapshot(&self, snapshot: &SnapshotMeta) -> Result<()> {
        check_snapshot_name(&snapshot.name)?;
        if self.snapshots.contains_key(&snapshot.name) {
            return Err(Error::SnapshotExists(snapshot.name.clone()));
        }
        check_families(&snapshot.descriptor)?;
        let bounds = snapshot
            .regions
            .iter()
            .map(|region| (&*region.start, &*region.end))
            .collect();
        if chain(bounds)? != (&[], &[]) {
            return refuse(format!(
                "the regions of snapshot {} do not cover all rows",
                snapshot.name
            ));
        }
        let mut seen = BTreeMap::new();
        for region in &snapshot.regions {
            check_files(&snapshot.descriptor, &region.files, &region.clipped, &mut seen)?;
        }
        Ok(())
    }

    pub(super) fn check_drop_snapshot(&self, name: &str) -> Result<()> {
        if self.snapshots.contains_key(name) {
            return Ok(());
        }
        Err(Error::NoSuchSnapshot(name.to_owned()))
    }

    /// Checks the regions of a cloned or restored table.
    pub(super) fn check_filled_regions(
        &self,
        descriptor: &TableDescriptor,
        regions: &[RegionState],
    ) -> Result<()> {
        check_families(descriptor)?;
        let metas: Vec<RegionMeta> = regions.iter().map(|region| region.meta.clone()).collect();
        self.check_new_regions(&descriptor.name, &metas, &[], &[])?;
        let mut seen = BTreeMap::new();
        for region in regions {
            check_files(descriptor, &region.files, &region.clipped, &mut seen)?;
        }
        let live = self.live_files();
        seen.values()
            .try_for_each(|(_, file)| check_file_id(file, live.contains_key(&file.id)))
    }

    // Changes. REQUIRES: the edit was checked.

    pub(super) fn create_snapshot(&mut self, snapshot: &Arc<SnapshotMeta>) {
        self.snapshots.insert(snapshot.name.clone(), Arc::clone(snapshot));
    }

    pub(super) fn clone_table(&mut self, descriptor: &TableDescriptor, regions: &[RegionState]) {
        let table = TableMeta {
            descriptor: descriptor.clone(),
            state: TableState::Enabled,
        };
        self.tables.insert(descriptor.name.clone(), table);
        self.add_filled_regions(regions);
    }

    pub(super) fn restore_table(
        &mut self,
        descriptor: &TableDescriptor,
        regions: &[RegionState],
        removed: &mut Vec<DroppedFile>,
    ) {
        self.remove_regions_of(&descriptor.name, removed);
        if let Some(table) = self.tables.get_mut(&descriptor.name) {
            table.descriptor = descriptor.clone();
        }
        self.add_filled_regions(regions);
    }

    fn add_filled_regions(&mut self, regions: &[RegionState]) {
        for region in regions {
            self.next_region = self.next_region.max(region.meta.id.0 + 1);
            for file in region.files.values().flatten() {
                self.next_file = self.next_file.max(file.id.0 + 1);
                self.seq = self.seq.max(file.max_seq);
            }
            self.regions.insert(region.meta.id, region.clone());
        }
    }
}

/// Checks that files are of the table's families, no store has one twice, a shared file is equal in
/// all regions and clipped in each, and only existing files are clipped. `seen`: the files of the
/// regions before.
fn check_files<'a>(
    descriptor: &TableDescriptor,
    files: &'a Files,
    clipped: &BTreeSet<FileId>,
    seen: &mut BTreeMap<FileId, (&'a [u8], &'a FileMeta)>,
) -> Result<()> {
    let mut here = BTreeSet::new();
    for (family, store) in files {
        if descriptor.family(family).is_none() {
            return Err(Error::NoSuchFamily {
                table: descriptor.name.clone(),
                family: Escaped(family).to_string(),
            });
        }
        for file in store {
            let twice = !here.insert(file.id);
            let other = seen.insert(file.id, (family, file));
            if twice || other.is_some_and(|other| other != (family, file) || !clipped.contains(&file.id)) {
                return refuse(format!("file {} is in two stores", file.id));
            }
        }
    }
    match clipped.iter().find(|id| !here.contains(*id)) {
        Some(stranger) => refuse(format!("file {stranger} is clipped and not in the region")),
        None => Ok(()),
    }
}
