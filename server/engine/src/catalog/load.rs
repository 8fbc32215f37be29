//! Bulk load: HFiles written elsewhere become store files of a region, all or none.
//!
//! 1. Each file is checked and copied ([`copy_file`]), and the copies' names are made durable.
//!    Reads and writes of the region continue; no manifest edit names the copies yet.
//! 2. The region is flushed, so that little is left in its memstores.
//! 3. Its writers are blocked and the rest is flushed: from here on every edit of the region is in
//!    store files.
//! 4. The load takes the next sequence id of the log. All cells of all its files get it, so that
//!    they are newer than every cell of the region, as in HBase with `assign_seq_num`.
//! 5. One manifest edit names all files, and one version of the region has them.
//! 6. The sequence id is published, in order with those of all writes: readers see the files.
//!
//! The manifest edit is that of a flush, because it states the same: every edit of the region up to
//! this sequence id is in store files, and these files are new.
//!
//! Commits are published in order, so no commit of the server is published between steps 4 and 6: a
//! delay of one manifest edit.
//!
//! Invariant: a reader whose read point is before the load sees nothing of it, whichever version of
//! the region it reads (`store/opening.rs`).
//!
//! Lock order: `flushing` -> `updates` -> `manifest`, as for a flush.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::MutexGuard;

use super::{Catalog, Table};
use crate::error::{Error, Result};
use crate::fs::Open;
use crate::id::{RegionId, SeqId};
use crate::manifest::{Manifest, ManifestEdit};
use crate::region::{Region, family_index};
use crate::schema::{TableDescriptor, TableName};
use crate::seeded;
use crate::store::{CopyJob, NewFile, WrittenFile, copy_file, create_store_dir, sync_names};
use crate::wal::{Commit, Logging};

/// A file that is offered for a bulk load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFile {
    /// The family that its cells are of.
    pub family: Vec<u8>,
    /// Where it is. It is only read.
    pub path: PathBuf,
}

/// Caller of a load, and the parts of the files that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadMode {
    /// A client: a file with rows outside the region is refused, and so is a table that is read only.
    Whole,
    /// A replication source, whose regions are others: rows outside the region are left out.
    Replicated,
}

/// A copy that no manifest edit names yet.
struct Copied {
    family: Vec<u8>,
    file: WrittenFile,
}

impl Catalog {
    /// Loads these files into a region; returns the number of cells. `cancel` stops the copying.
    pub(crate) fn bulk_load(
        &self,
        id: RegionId,
        files: &[LoadFile],
        mode: LoadMode,
        cancel: &AtomicBool,
    ) -> Result<u64> {
        let (table, region) = self.region(id)?;
        table.check_enabled()?;
        if mode == LoadMode::Whole && table.descriptor.read_only() {
            return Err(Error::DoNotRetry(format!("table {} is read only", table.name())));
        }
        region.check_undamaged()?;
        for file in files {
            family_index(&table.descriptor, &file.family)?;
        }
        let bytes = self.offered_bytes(files)?;
        let memstores = self.shared.memstore_bytes();
        let _space = self.shared.disk.for_load(bytes, memstores)?;
        let mut copies = Vec::new();
        let installed = self
            .copy_all(&table.descriptor, &region, files, (mode, cancel), &mut copies)
            .and_then(|()| {
                if copies.is_empty() {
                    return Ok(None);
                }
                self.flush_region(&region)?;
                self.install_load(&region, &copies)
            });
        match installed {
            Ok(commit) => {
                commit.map_or(Ok(()), Commit::wait)?;
                if seeded::is_on("load-removes-its-source") {
                    for file in files {
                        drop(self.shared.store.vfs.remove_file(&file.path));
                    }
                }
                Ok(copies.iter().map(|copy| copy.file.meta.cells).sum())
            }
            Err(error) => {
                // An edit that may be on disk needs its files.
                if !self.manifest.lock().is_poisoned() {
                    for copy in copies {
                        self.remove_file(copy.file);
                    }
                }
                Err(error)
            }
        }
    }

    fn offered_bytes(&self, files: &[LoadFile]) -> Result<u64> {
        let handles = &self.shared.store.reader.handles;
        files.iter().try_fold(0_u64, |sum, file| {
            let bytes = handles
                .open(&file.path, Open::Read)
                .and_then(|opened| opened.len())
                .map_err(|source| Error::io("opening", &file.path, source))?;
            Ok(sum.saturating_add(bytes))
        })
    }

    /// Runs step 1.
    fn copy_all(
        &self,
        table: &TableDescriptor,
        region: &Region,
        files: &[LoadFile],
        (mode, cancel): (LoadMode, &AtomicBool),
        copies: &mut Vec<Copied>,
    ) -> Result<()> {
        let vfs = &*self.shared.store.vfs;
        let mut dirs = BTreeSet::new();
        for file in files {
            let family = &table.families[family_index(table, &file.family)?];
            let dir = create_store_dir(vfs, &self.shared.dir, &table.name, &family.name)?;
            let target = NewFile {
                id: self.shared.next_file(),
                dir: dir.clone(),
                table: table.name.clone(),
            };
            let copied = copy_file(&CopyJob {
                context: &self.shared.store,
                family,
                clip: &region.clip(),
                leaves_out_others: mode == LoadMode::Replicated,
                source: &file.path,
                source_id: self.shared.next_file(),
                target: &target,
                written_at: self.shared.wal.last_assigned(),
                cancel,
            })?;
            dirs.insert(dir);
            copies.extend(copied.map(|copy| Copied {
                family: file.family.clone(),
                file: copy,
            }));
        }
        if seeded::is_on("load-names-not-synced") {
            return Ok(());
        }
        dirs.iter().try_for_each(|dir| sync_names(vfs, dir))
    }

    /// Runs steps 3 to 5.
    fn install_load(&self, region: &Arc<Region>, copies: &[Copied]) -> Result<Option<Commit>> {
        let flushing = [region.flushing.lock()];
        let blocked = [region.updates.write()];
        if !seeded::is_on("load-claims-later-edits") {
            self.flush_blocked(&[region], &blocked, &flushing)?;
        }
        let (installed, commit) = self.install_blocked(region, copies)?;
        installed.map(|()| Some(commit))
    }

    /// Runs steps 4 and 5. The sequence id is applied in any case: until then nothing is published.
    /// REQUIRES: the region's memstores are empty, and its writers are blocked.
    fn install_blocked(&self, region: &Region, copies: &[Copied]) -> Result<(Result<()>, Commit)> {
        let mut manifest = self.manifest.lock();
        let mut reserved = self.shared.wal.reserve(0, 0)?;
        let appended = self
            .shared
            .wal
            .append(&mut reserved, &[], 1, &[], Logging::Skip)?;
        let seq = appended.first_seq();
        let installed = self.check_still_there(region, copies).and_then(|()| {
            let at_once = if seeded::is_on("load-in-several-edits") {
                1
            } else {
                copies.len()
            };
            let mut parts = copies.chunks(at_once);
            parts.try_for_each(|files| self.append(&mut manifest, &edit(region.id(), seq, files)))
        });
        if installed.is_ok() {
            self.publish_load(region, seq, copies);
            self.restart_writers(&manifest, &region.info().table);
            // Rows may have got tombstones whose times their locks have not recorded.
            self.shared.timestamps.pass_rows();
        }
        Ok((installed, appended.applied()))
    }

    fn check_still_there(&self, region: &Region, copies: &[Copied]) -> Result<()> {
        if region.is_retired() {
            let name = &region.info().encoded_name;
            return Err(Error::NotServingRegion(format!(
                "region {name} was split, merged or dropped during the bulk load"
            )));
        }
        self.enabled_table(&region.info().table)?;
        let version = region.load_version();
        copies
            .iter()
            .try_for_each(|copy| family_index(&version.table, &copy.family).map(drop))
    }

    fn publish_load(&self, region: &Region, seq: SeqId, copies: &[Copied]) {
        let files: Vec<_> = copies
            .iter()
            .map(|copy| (&copy.family, self.adopt(&with_seq(&copy.file, seq), region)))
            .collect();
        region.publish(|current| {
            let mut next = current.clone();
            for (family, file) in &files {
                let (index, _) = current
                    .table
                    .family(family)
                    .expect("families go only while no flush of the region runs");
                next.stores[index] = Arc::new(next.stores[index].with_loaded(Arc::clone(file)));
            }
            next
        });
    }

    /// Publishes an unchanged copy of the table. A read-modify-write that read before the load and
    /// waits for the region's lock then finds that its table is no longer the published one, and starts
    /// again. Otherwise it would overwrite a loaded value with one computed from an older value.
    fn restart_writers(&self, manifest: &MutexGuard<'_, Manifest>, name: &TableName) {
        self.publish(manifest, |tables| {
            if let Ok(table) = tables.table(name) {
                let again = Table::new(Arc::clone(&table.descriptor), table.state, table.regions.clone());
                tables.put(again);
            }
        });
    }
}

fn with_seq(file: &WrittenFile, seq: SeqId) -> WrittenFile {
    let mut file = file.clone();
    file.meta.max_seq = seq;
    file
}

fn edit(region: RegionId, seq: SeqId, copies: &[Copied]) -> ManifestEdit {
    ManifestEdit::Flush {
        region,
        flushed: seq,
        files: copies
            .iter()
            .map(|copy| (copy.family.clone(), with_seq(&copy.file, seq).meta))
            .collect(),
    }
}
