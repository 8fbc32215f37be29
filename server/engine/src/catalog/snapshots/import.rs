//! Snapshots that another database has taken: their files are copied and verified, and one manifest edit
//! makes the snapshot exist here. Tables are made of it as of any other.
//!
//! 1. Each file is opened and verified. The order of the files of a store is that of their greatest sequence
//!    ids, which decide between cells with equal keys.
//! 2. Its rows within the region are copied, with their sequence ids: a file that a split has left to two
//!    regions becomes one for each.
//! 3. The sequence counter passes all of these sequence ids, or later writes would lose against cells with
//!    their timestamps.
//! 4. The manifest edit names the copies.
//!
//! Reads, writes and schema changes go on meanwhile. Copies that no manifest edit names are orphans after a
//! crash.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::links::{remove_empty_dirs, remove_files};
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::id::SeqId;
use crate::manifest::{FileMeta, ManifestEdit, SnapshotMeta, SnapshotRegion};
use crate::schema::limits::SNAPSHOTS;
use crate::schema::{TableDescriptor, check_snapshot_name};
use crate::store::{Clip, ForeignFile, NewFile, create_dir, file_path, snapshot_dir, snapshot_store_dir};
use crate::wal::Logging;

/// Greatest sequence id that is taken over. A greater one is damage: HBase counts the edits of a region.
const SEQ_MAX: SeqId = SeqId(1 << 48);

/// A snapshot of another database.
#[derive(Clone, Debug)]
pub struct ImportedSnapshot {
    /// Its name here.
    pub name: String,
    /// The table.
    pub descriptor: TableDescriptor,
    /// When it was taken, in milliseconds since 1970.
    pub created_ms: u64,
    /// Time to live; 0: for ever.
    pub ttl_seconds: u64,
    /// The regions, in key order, from the first row of the table to its last.
    pub regions: Vec<ImportedRegion>,
}

/// A region of such a snapshot.
#[derive(Clone, Debug, Default)]
pub struct ImportedRegion {
    /// First row; empty: from the beginning.
    pub start: Vec<u8>,
    /// One past the last row; empty: to the end.
    pub end: Vec<u8>,
    /// Files by family.
    pub files: BTreeMap<Vec<u8>, Vec<ImportedFile>>,
}

/// A store file of another database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    /// Where it is. It is only read.
    pub path: PathBuf,
    /// The sequence id of all of its cells, if a bulk load has given it.
    pub loaded_seq: Option<SeqId>,
}

/// Prepared snapshot that the manifest does not name yet.
struct Copies<'a> {
    catalog: &'a Catalog,
    name: &'a str,
    paths: Vec<PathBuf>,
    dirs: BTreeSet<PathBuf>,
}

impl Catalog {
    /// Imports a snapshot. `copied` is called with each file of the source once it is copied.
    pub(crate) fn import_snapshot(
        &self,
        snapshot: &ImportedSnapshot,
        copied: &mut dyn FnMut(&Path),
    ) -> Result<()> {
        self.check_importable(snapshot)?;
        let mut copies = Copies {
            catalog: self,
            name: &snapshot.name,
            paths: Vec::new(),
            dirs: BTreeSet::new(),
        };
        let imported = copies
            .copy_all(snapshot, copied)
            .and_then(|regions| self.install_import(snapshot, regions));
        if imported.is_err() && !self.manifest.lock().is_poisoned() {
            copies.remove();
        }
        imported
    }

    fn check_importable(&self, snapshot: &ImportedSnapshot) -> Result<()> {
        check_snapshot_name(&snapshot.name)?;
        if snapshot.descriptor.name.is_system() {
            return Err(Error::InvalidArgument(
                "System table snapshots are not allowed".into(),
            ));
        }
        let tables = self.tables();
        if tables.snapshots.contains_key(&snapshot.name) {
            return Err(Error::SnapshotExists(snapshot.name.clone()));
        }
        SNAPSHOTS.check_total(
            tables.snapshots.len() + 1,
            self.shared.options.totals.snapshots,
            "delete snapshots",
        )
    }

    /// Runs steps 3 and 4.
    fn install_import(&self, snapshot: &ImportedSnapshot, regions: Vec<SnapshotRegion>) -> Result<()> {
        let greatest = regions.iter().map(|region| region.flushed).max();
        self.pass_sequence_ids(greatest.unwrap_or_default())?;
        let made = Arc::new(SnapshotMeta {
            name: snapshot.name.clone(),
            descriptor: snapshot.descriptor.clone(),
            created_ms: snapshot.created_ms,
            ttl_seconds: snapshot.ttl_seconds,
            regions,
        });
        let _schema = self.schema.lock();
        self.check_importable(snapshot)?;
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &ManifestEdit::CreateSnapshot(Arc::clone(&made)))?;
        self.publish(&manifest, |tables| {
            tables.snapshots.insert(made.name.clone(), made);
        });
        Ok(())
    }

    /// Makes every later edit have a greater sequence id than this one.
    fn pass_sequence_ids(&self, seq: SeqId) -> Result<()> {
        loop {
            let missing = seq.0.saturating_sub(self.shared.wal.last_assigned().0);
            if missing == 0 {
                return Ok(());
            }
            let rows = u32::try_from(missing).unwrap_or(u32::MAX);
            let mut reserved = self.shared.wal.reserve(0, 0)?;
            let passed = self
                .shared
                .wal
                .append(&mut reserved, &[], rows, &[], Logging::Skip)?;
            passed.applied().wait()?;
        }
    }
}

impl Copies<'_> {
    /// Runs steps 1 and 2.
    fn copy_all(
        &mut self,
        snapshot: &ImportedSnapshot,
        copied: &mut dyn FnMut(&Path),
    ) -> Result<Vec<SnapshotRegion>> {
        snapshot
            .regions
            .iter()
            .map(|region| self.copy_region(&snapshot.descriptor, region, copied))
            .collect()
    }

    fn copy_region(
        &mut self,
        table: &TableDescriptor,
        region: &ImportedRegion,
        copied: &mut dyn FnMut(&Path),
    ) -> Result<SnapshotRegion> {
        let mut files = BTreeMap::new();
        for (family, offered) in &region.files {
            files.insert(
                family.clone(),
                self.copy_store(table, family, region, offered, copied)?,
            );
        }
        let greatest = files.values().flatten().map(|file: &FileMeta| file.max_seq).max();
        Ok(SnapshotRegion {
            start: region.start.clone(),
            end: region.end.clone(),
            flushed: greatest.unwrap_or_default(),
            files,
            clipped: BTreeSet::new(),
        })
    }

    fn copy_store(
        &mut self,
        table: &TableDescriptor,
        family: &[u8],
        region: &ImportedRegion,
        offered: &[ImportedFile],
        copied: &mut dyn FnMut(&Path),
    ) -> Result<Vec<FileMeta>> {
        let shared = &self.catalog.shared;
        let context = &shared.store;
        let (_, descriptor) = table.family(family).ok_or_else(|| Error::NoSuchFamily {
            table: table.name.clone(),
            family: crate::schema::Cut(family).to_string(),
        })?;
        let clip = Clip {
            start: region.start.clone(),
            end: region.end.clone(),
        };
        let mut opened = Vec::new();
        for file in offered {
            let foreign = ForeignFile {
                path: &file.path,
                loaded_seq: file.loaded_seq,
                clip: &clip,
            };
            let id = shared.next_file();
            let source = foreign.open(context, id)?;
            if source.1 > SEQ_MAX {
                let what = format!("its greatest sequence id is {}, the limit {SEQ_MAX}", source.1);
                return Err(Error::corrupt(&file.path, 0, what));
            }
            opened.push((source.1, foreign, source, id));
        }
        opened.sort_by_key(|(seq, ..)| *seq);
        let dir = snapshot_store_dir(&shared.dir, self.name, &table.name, family);
        if !opened.is_empty() && !self.dirs.contains(&dir) {
            self.dirs
                .insert(create_dir(&*context.vfs, &shared.dir, dir.clone())?);
        }
        let mut metas = Vec::new();
        for (_, foreign, source, id) in &opened {
            let target = NewFile {
                id: shared.next_file(),
                dir: dir.clone(),
                table: table.name.clone(),
            };
            let written = foreign.copy(context, source, descriptor, &target);
            for id in [*id, target.id] {
                context.reader.cache.remove_file(id);
            }
            if let Some(written) = written? {
                self.paths.push(file_path(&dir, target.id));
                metas.push(written.meta);
            }
            copied(foreign.path);
        }
        Ok(metas)
    }

    fn remove(self) {
        let shared = &self.catalog.shared;
        remove_files(&*shared.store.vfs, &*shared.listener, &self.paths);
        remove_empty_dirs(
            &*shared.store.vfs,
            &snapshot_dir(&shared.dir, self.name),
            &self.dirs,
        );
    }
}
