//! The regions of a table that is made of a snapshot, before they are in the manifest: their files are linked
//! and open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::links::Links;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::id::{FileId, RegionId, SeqId};
use crate::manifest::{FileMeta, RegionMeta, RegionState, SnapshotMeta, SnapshotRegion};
use crate::memstore::{ChunkPool, Memstore};
use crate::region::{Region, RegionVersion, Shared};
use crate::schema::{TableDescriptor, TableName};
use crate::store::{Clip, StoreFile, StoreVersion, file_path, snapshot_store_dir, store_dir};

/// Regions without an id.
pub(super) struct Filled<'a> {
    shared: &'a Shared,
    links: Links<'a>,
    /// The new files by the ids that they have in the snapshot.
    open: BTreeMap<FileId, Arc<StoreFile>>,
    /// In key order.
    regions: Vec<FilledRegion>,
}

struct FilledRegion {
    start: Vec<u8>,
    end: Vec<u8>,
    flushed: SeqId,
    files: BTreeMap<Vec<u8>, Vec<Arc<StoreFile>>>,
    clipped: BTreeSet<FileId>,
}

impl<'a> Filled<'a> {
    /// Links the files of a snapshot into the directories of a table, which exist durably, under
    /// new ids, and opens them: a missing or replaced file is detected before anything has changed.
    pub(super) fn open(
        catalog: &'a Catalog,
        snapshot: &SnapshotMeta,
        table: &TableDescriptor,
    ) -> Result<Self> {
        let shared: &Shared = &catalog.shared;
        let mut filled = Self {
            shared,
            links: Links::new(shared),
            open: BTreeMap::new(),
            regions: Vec::new(),
        };
        match filled.link_and_open(snapshot, &table.name) {
            Ok(()) => Ok(filled),
            Err(error) => {
                filled.abandon();
                Err(error)
            }
        }
    }

    fn link_and_open(&mut self, snapshot: &SnapshotMeta, table: &TableName) -> Result<()> {
        let root = &self.shared.dir;
        let mut new = BTreeMap::new();
        // In the order of the old ids, because a merge orders files of the same age by id.
        for (old, (family, meta)) in snapshot.files() {
            let from = snapshot_store_dir(root, &snapshot.name, &meta.dir_table, family);
            let dir = store_dir(root, table, family);
            let meta = FileMeta {
                id: self.shared.next_file(),
                dir_table: table.clone(),
                ..meta.clone()
            };
            let to = file_path(&dir, meta.id);
            self.links.add(&file_path(&from, old), dir.clone(), to)?;
            new.insert(old, (dir, meta));
        }
        self.links.sync()?;
        for (old, (dir, meta)) in new {
            let file = StoreFile::open(&self.shared.store, &dir, meta, Clip::default())?;
            self.open.insert(old, file);
        }
        for region in &snapshot.regions {
            self.regions.push(fill(region, &self.open));
        }
        Ok(())
    }

    /// Removes the links again.
    pub(super) fn abandon(self) {
        for file in self.open.values() {
            self.shared.store.reader.cache.remove_file(file.id());
        }
        self.links.remove();
    }

    /// The regions as the manifest will record them.
    pub(super) fn states(&self, first_id: u64, table: &TableName, created_ms: u64) -> Vec<RegionState> {
        let state = |(id, region): (u64, &FilledRegion)| RegionState {
            meta: RegionMeta {
                id: RegionId(id),
                table: table.clone(),
                start: region.start.clone(),
                end: region.end.clone(),
                created_ms,
            },
            flushed: region.flushed,
            files: region
                .files
                .iter()
                .map(|(family, files)| {
                    let metas = files.iter().map(|file| file.meta().clone());
                    (family.clone(), metas.collect())
                })
                .collect(),
            clipped: region.clipped.clone(),
        };
        (first_id..).zip(&self.regions).map(state).collect()
    }

    /// The regions, now that the manifest has them.
    pub(super) fn regions(
        self,
        states: &[RegionState],
        table: &Arc<TableDescriptor>,
        chunks: &Arc<ChunkPool>,
    ) -> Vec<Arc<Region>> {
        // Each region has its own share; the one that opened the file is not needed any more.
        for file in self.open.values() {
            file.mark_obsolete();
        }
        let region = |(state, mut region): (&RegionState, FilledRegion)| {
            let stores = table
                .families
                .iter()
                .map(|family| {
                    let files = region.files.remove(&family.name).unwrap_or_default();
                    let memstore = Memstore::new(Arc::clone(chunks));
                    Arc::new(StoreVersion::new(Arc::new(family.clone()), files, memstore))
                })
                .collect();
            let version = RegionVersion {
                table: Arc::clone(table),
                stores,
            };
            Region::new(&state.meta, version, region.clipped)
        };
        states.iter().zip(self.regions).map(region).collect()
    }
}

/// A region with its shares in the new files.
fn fill(region: &SnapshotRegion, open: &BTreeMap<FileId, Arc<StoreFile>>) -> FilledRegion {
    let new = |old: &FileId| open.get(old).expect("all files of the snapshot were opened");
    let clip = Clip {
        start: region.start.clone(),
        end: region.end.clone(),
    };
    let shares = |(family, metas): (&Vec<u8>, &Vec<FileMeta>)| {
        let shares = metas.iter().map(|meta| new(&meta.id).reclip(clip.clone()));
        (family.clone(), shares.collect())
    };
    FilledRegion {
        start: region.start.clone(),
        end: region.end.clone(),
        flushed: region.flushed,
        files: region.files.iter().map(shares).collect(),
        clipped: region.clipped.iter().map(|old| new(old).id()).collect(),
    }
}
