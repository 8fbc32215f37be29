//! Flush: a region's frozen memstores become store files, one for each family.
//!
//! 1. With writers kept out for a moment, all memstores of the region are frozen, and the last sequence id given out so far
//!    is noted: every edit of the region up to it is in frozen memstores or files.
//! 2. Wait until that sequence id is published. A store file never holds what is not durable yet.
//! 3. Write the files. Readers and writers go on.
//! 4. One manifest edit names all files and the sequence id; then one version is published that has the files instead of
//!    the frozen memstores.
//! 5. WAL segments that no region needs any more are removed.
//!
//! When anything fails, the frozen memstores stay where they are and readers miss nothing; the next flush takes them along.
//! One flush of a region at a time (`Region::flushing`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::Catalog;
use crate::error::Result;
use crate::id::SeqId;
use crate::jobs::{JobInfo, JobKind, JobProgress};
use crate::manifest::{Manifest, ManifestEdit};
use crate::memstore::Memstore;
use crate::metrics::FlushEvent;
use crate::region::{Region, RegionVersion};
use crate::store::{Flushed, NewFile, StoreFile, WrittenFile, flush, store_dir};
use crate::sync::RwLockWriteGuard;

/// One family's share of a flush.
struct FamilyFlush {
    family: Vec<u8>,
    /// What was flushed.
    memstores: Vec<Arc<Memstore>>,
    result: Flushed,
}

impl Catalog {
    /// Flushes a region. When it returns without error, every write that was applied before the call is in store files.
    /// `None`: nothing was in memory.
    pub fn flush_region(&self, region: &Region) -> Result<Option<FlushEvent>> {
        let flushing = region.flushing.lock();
        let blocked = region.updates.write();
        let flushed = region.freeze(&self.shared.wal, &blocked);
        drop(blocked);
        self.flush_frozen(region, flushed, &flushing)
    }

    /// Flushes a region while writers are kept out, so that afterwards nothing is left in its memory.
    pub(super) fn flush_blocked(
        &self,
        region: &Region,
        blocked: &RwLockWriteGuard<'_, ()>,
        flushing: &MutexGuard<'_, ()>,
    ) -> Result<()> {
        let flushed = region.freeze(&self.shared.wal, blocked);
        self.flush_frozen(region, flushed, flushing)?;
        Ok(())
    }

    fn flush_frozen(
        &self,
        region: &Region,
        flushed: SeqId,
        _flushing: &MutexGuard<'_, ()>,
    ) -> Result<Option<FlushEvent>> {
        let version = region.load_version();
        if region.is_retired() || version.stores.iter().all(|store| store.frozen.is_empty()) {
            return Ok(None);
        }
        let frozen = || version.stores.iter().flat_map(|store| &store.frozen);
        let job = self.shared.jobs.begin(JobInfo {
            kind: JobKind::Flush,
            table: region.info().table.clone(),
            region: region.id(),
            family: None,
            inputs: frozen().count(),
            input_bytes: frozen().map(|memstore| memstore.bytes()).sum(),
            input_cells: frozen().map(|memstore| memstore.cell_count()).sum(),
        });
        let result = self.write_and_install(region, &version, flushed, job.progress());
        job.end(&result, |event| event.written_bytes);
        if result.is_err() {
            self.shared.counters.flush_failures.increment();
        }
        result
    }

    fn write_and_install(
        &self,
        region: &Region,
        version: &RegionVersion,
        flushed: SeqId,
        progress: &JobProgress,
    ) -> Result<Option<FlushEvent>> {
        let began = self.shared.clock.mono();
        self.shared.wal.wait_published(flushed)?;
        let mut done = Vec::new();
        for store in version.stores.iter().filter(|store| !store.frozen.is_empty()) {
            let target = NewFile {
                id: self.shared.next_file(),
                dir: store_dir(&self.shared.dir, &region.info().table, &store.family.name),
                table: region.info().table.clone(),
            };
            match flush(
                &self.shared.store,
                &store.family,
                &store.frozen,
                &target,
                self.shared.horizon(&region.info().table),
                progress,
            ) {
                Ok(result) => done.push(FamilyFlush {
                    family: store.family.name.clone(),
                    memstores: store.frozen.clone(),
                    result,
                }),
                Err(error) => {
                    self.remove_files(done);
                    return Err(error);
                }
            }
        }
        let cells = done.iter().map(|family| family.result.cells_out).sum();
        let files = done.iter().filter_map(|family| family.result.file.as_ref());
        let written_bytes = files.map(|file| file.meta.bytes).sum();
        if !self.install_flush(region, flushed, done)? {
            return Ok(None);
        }
        region.note_flushed();
        region.account(&self.shared.memstore_total_bytes);
        region.flushes.increment();
        self.shared.counters.flushes.increment();
        self.shared.counters.flush_bytes.add(written_bytes);
        let event = FlushEvent {
            table: region.info().table.clone(),
            region: region.id(),
            cells,
            written_bytes,
            flushed,
            took: self.shared.clock.mono().saturating_sub(began),
        };
        self.shared.listener.flushed(&event);
        self.remove_obsolete_wal()?;
        Ok(Some(event))
    }

    /// False when the region is gone meanwhile.
    fn install_flush(&self, region: &Region, flushed: SeqId, done: Vec<FamilyFlush>) -> Result<bool> {
        let mut manifest = self.manifest.lock();
        if region.is_retired() {
            drop(manifest);
            self.remove_files(done);
            return Ok(false);
        }
        let files = done
            .iter()
            .filter_map(|family| Some((family.family.clone(), family.result.file.as_ref()?.meta.clone())))
            .collect();
        let edit = ManifestEdit::Flush {
            region: region.id(),
            flushed,
            files,
        };
        if let Err(error) = self.append_flush(&mut manifest, &edit) {
            // On a full disk the files of every try would make it fuller. Where the edit may be on disk, the files stay.
            if !manifest.is_poisoned() {
                drop(manifest);
                self.remove_files(done);
            }
            return Err(error);
        }
        let opened: Vec<_> = done
            .iter()
            .map(|family| {
                let file = family.result.file.as_ref();
                file.map(|file| self.adopt(file, region))
            })
            .collect();
        region.publish(|current| {
            let mut next = current.clone();
            for (family, file) in done.iter().zip(&opened) {
                let (index, _) = current
                    .table
                    .family(&family.family)
                    .expect("families go only while no flush of the region runs");
                next.stores[index] =
                    Arc::new(next.stores[index].with_flushed(&family.memstores, file.clone()));
            }
            next
        });
        for memstore in done.iter().flat_map(|family| &family.memstores) {
            self.shared.flushed_memstores.note(memstore);
        }
        self.shared.let_go.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    fn append_flush(&self, manifest: &mut MutexGuard<'_, Manifest>, edit: &ManifestEdit) -> Result<()> {
        // Once the cells are in files the log no longer tells recovery which times the server has given out.
        if manifest.state().timestamp_ms < self.shared.timestamps.greatest() {
            self.append_high_water(manifest)?;
        }
        self.append(manifest, edit)
    }

    /// The region's share in a file that has just been written for it.
    pub(super) fn adopt(&self, file: &WrittenFile, region: &Region) -> Arc<StoreFile> {
        StoreFile::adopt(
            &self.shared.store,
            file.meta.clone(),
            Arc::clone(&file.reader),
            region.clip(),
        )
    }

    /// Removes files that no manifest edit names.
    fn remove_files(&self, done: Vec<FamilyFlush>) {
        for file in done.into_iter().filter_map(|family| family.result.file) {
            self.remove_file(file);
        }
    }

    /// Removes a file that no manifest edit names.
    pub(super) fn remove_file(&self, file: WrittenFile) {
        StoreFile::adopt(
            &self.shared.store,
            file.meta,
            file.reader,
            crate::store::Clip::default(),
        )
        .mark_obsolete();
    }
}
