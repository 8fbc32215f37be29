//! Flush: writes frozen memstores of regions to store files, one for each stripe of each family of each
//! region.
//!
//! A flush takes a batch: one region, or several that are flushed together because syncs take most
//! of the time. A batch has at most [`BATCH_REGIONS`] regions.
//!
//! 1. While the writers of a region are blocked, all its memstores are frozen, and the last
//!    assigned sequence id is noted: every edit of the region up to it is in frozen memstores or
//!    files.
//! 2. Wait until those sequence ids are published. A store file never holds edits that are not
//!    durable yet.
//! 3. Write and sync the files, side by side. Readers and writers go on.
//! 4. Sync each directory that has new files, once.
//! 5. One manifest edit for each region names all its files and its sequence id; all edits of the
//!    batch share one sync. Then one version of each region is published that has the files instead
//!    of the frozen memstores.
//! 6. WAL segments that no region needs any more are removed.
//!
//! If anything fails for a region, its frozen memstores stay where they are and readers miss
//! nothing; the next flush includes them. The other regions of the batch continue. A region has one
//! flush at a time (`Region::flushing`); a batch locks its regions in the order of their ids.
//!
//! Without background threads the caller's thread does everything, in the order of region ids, so
//! that a simulation is repeatable.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::Catalog;
use crate::error::{Error, Kind, Result};
use crate::id::SeqId;
use crate::jobs::{JobGuard, JobInfo, JobKind};
use crate::manifest::{Manifest, ManifestEdit};
use crate::memstore::Memstore;
use crate::metrics::FlushEvent;
use crate::options::Background;
use crate::region::{Region, RegionVersion};
use crate::seeded;
use crate::store::{FlushTarget, Flushed, NewFile, StoreFile, WrittenFile, flush, store_dir, sync_names};
use crate::sync::{RwLockWriteGuard, helpers};

/// Maximum number of regions in a batch.
const BATCH_REGIONS: usize = 64;

/// Maximum memstore bytes in a batch of several regions. Larger files keep the disk and the
/// processors busy, so writing several at a time would only slow down other work.
const BATCH_BYTES: u64 = 64 << 20;

/// Maximum number of threads that write the files of a batch. They wait for syncs most of the time.
const BATCH_THREADS: usize = 32;

/// How often the lock of a region's writers is tried for before it is waited for. None in the model
/// checker, which would try every number of them.
const LOCK_TRIES: u32 = if cfg!(loom) { 0 } else { 1_000 };

/// One family's share of a flush.
struct FamilyFlush {
    family: Vec<u8>,
    /// The memstores that were flushed.
    memstores: Vec<Arc<Memstore>>,
    result: Flushed,
}

/// A region in a batch.
struct Share<'a> {
    region: &'a Region,
    /// The version that has the frozen memstores.
    version: Arc<RegionVersion>,
    flushed: SeqId,
    /// `None`: nothing is frozen, or the region is retired.
    job: Option<JobGuard<'a>>,
    state: State,
}

enum State {
    /// The flush continues; these families are written so far.
    Open(Vec<FamilyFlush>),
    /// The flush is over. `Ok(None)`: nothing was in memory, or the region is retired.
    Ended(Result<Option<FlushEvent>>),
}

impl Share<'_> {
    fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// The families written so far; none after the end.
    fn done(&self) -> &[FamilyFlush] {
        match &self.state {
            State::Open(done) => done,
            State::Ended(_) => &[],
        }
    }

    fn files(&self) -> impl Iterator<Item = &WrittenFile> {
        self.done().iter().flat_map(|family| &family.result.files)
    }

    /// The directories of the new files.
    fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.files().filter_map(|file| file.reader.path().parent())
    }

    /// Ends the share and returns its files. The caller removes those that no manifest edit can
    /// name.
    fn end(&mut self, result: Result<Option<FlushEvent>>) -> Vec<WrittenFile> {
        match std::mem::replace(&mut self.state, State::Ended(result)) {
            State::Open(done) => done.into_iter().flat_map(|family| family.result.files).collect(),
            State::Ended(_) => Vec::new(),
        }
    }

    fn edit(&self) -> ManifestEdit {
        let named = if seeded::is_on("flush-names-its-first-file") {
            1
        } else {
            usize::MAX
        };
        let files = self.done().iter().flat_map(|family| {
            let files = family.result.files.iter().take(named);
            files.map(|file| (family.family.clone(), file.meta.clone()))
        });
        ManifestEdit::Flush {
            region: self.region.id(),
            flushed: if seeded::is_on("flush-claims-later-edits") {
                SeqId(self.flushed.0 + 3)
            } else {
                self.flushed
            },
            files: files.collect(),
        }
    }

    fn event(&self, took: Duration) -> FlushEvent {
        FlushEvent {
            table: self.region.info().table.clone(),
            region: self.region.id(),
            cells: self.done().iter().map(|family| family.result.cells_out).sum(),
            written_bytes: self.files().map(|file| file.meta.bytes).sum(),
            flushed: self.flushed,
            took,
        }
    }
}

impl Catalog {
    /// Flushes a region. When it returns without error, every write that was applied before the call is in
    /// store files. `None`: nothing was in memory.
    pub(crate) fn flush_region(&self, region: &Region) -> Result<Option<FlushEvent>> {
        let result = self.flush_batch(&[region]).pop();
        result.expect("a flush has a result for each of its regions")
    }

    /// Flushes regions, small ones together. Returns an error for each region that could not be
    /// flushed; after a fatal error the remaining batches are not tried.
    pub(crate) fn flush_regions(&self, regions: &[Arc<Region>]) -> Vec<Error> {
        let mut regions: Vec<&Region> = regions.iter().map(AsRef::as_ref).collect();
        regions.sort_by_key(|region| region.id());
        let mut errors: Vec<Error> = Vec::new();
        let mut rest = &regions[..];
        while !rest.is_empty() && errors.last().is_none_or(|error| error.kind() != Kind::Fatal) {
            let (batch, behind) = rest.split_at(batch_len(rest));
            errors.extend(self.flush_batch(batch).into_iter().filter_map(Result::err));
            rest = behind;
        }
        errors
    }

    /// Flushes regions ([`Self::flush_regions`]) and returns the first error.
    pub(super) fn flush_all(&self, regions: &[Arc<Region>]) -> Result<()> {
        self.flush_regions(regions).into_iter().next().map_or(Ok(()), Err)
    }

    /// Flushes regions, given in the order of their ids, and returns a result for each.
    fn flush_batch(&self, regions: &[&Region]) -> Vec<Result<Option<FlushEvent>>> {
        let flushing: Vec<_> = regions.iter().map(|region| region.flushing.lock()).collect();
        let frozen: Vec<_> = regions
            .iter()
            .map(|region| {
                let blocked = block_writers(region);
                (*region, region.freeze(&self.shared.wal, &blocked))
            })
            .collect();
        self.flush_frozen(&frozen, &flushing)
    }

    /// Flushes regions while their writers are blocked, so that nothing is left in their memstores.
    pub(super) fn flush_blocked(
        &self,
        regions: &[impl AsRef<Region>],
        blocked: &[RwLockWriteGuard<'_, ()>],
        flushing: &[MutexGuard<'_, ()>],
    ) -> Result<()> {
        let frozen: Vec<(&Region, SeqId)> = regions
            .iter()
            .zip(blocked)
            .map(|(region, blocked)| {
                let region = region.as_ref();
                (region, region.freeze(&self.shared.wal, blocked))
            })
            .collect();
        for (batch, flushing) in frozen.chunks(BATCH_REGIONS).zip(flushing.chunks(BATCH_REGIONS)) {
            for result in self.flush_frozen(batch, flushing) {
                result?;
            }
        }
        Ok(())
    }

    /// Runs steps 2 to 6. `_flushing` are the flush locks of the regions.
    fn flush_frozen(
        &self,
        frozen: &[(&Region, SeqId)],
        _flushing: &[MutexGuard<'_, ()>],
    ) -> Vec<Result<Option<FlushEvent>>> {
        let began = self.shared.clock.mono();
        let mut shares: Vec<_> = frozen
            .iter()
            .map(|(region, flushed)| self.share(region, *flushed))
            .collect();
        if shares.iter().any(Share::is_open) {
            self.write_all(&mut shares);
            if !seeded::is_on("no-dir-sync-after-create") {
                self.sync_all_names(&mut shares);
            }
            self.install_all(&mut shares, began);
        }
        shares.into_iter().map(|share| self.conclude(share)).collect()
    }

    fn share<'a>(&'a self, region: &'a Region, flushed: SeqId) -> Share<'a> {
        let version = region.load_version();
        let frozen = || version.stores.iter().flat_map(|store| &store.frozen);
        let is_open = !region.is_retired() && frozen().next().is_some();
        let job = is_open.then(|| {
            self.shared.jobs.begin(JobInfo {
                kind: JobKind::Flush,
                table: region.info().table.clone(),
                region: region.id(),
                family: None,
                inputs: frozen().count(),
                input_bytes: frozen().map(|memstore| memstore.bytes()).sum(),
                input_cells: frozen().map(|memstore| memstore.cell_count()).sum(),
            })
        });
        Share {
            region,
            flushed,
            job,
            state: if is_open {
                State::Open(Vec::new())
            } else {
                State::Ended(Ok(None))
            },
            version,
        }
    }

    fn conclude(&self, share: Share<'_>) -> Result<Option<FlushEvent>> {
        let State::Ended(result) = share.state else {
            unreachable!("installing ends every share")
        };
        if let Some(job) = share.job {
            job.end(&result, |event| event.written_bytes);
        }
        if result.is_err() {
            self.shared.counters.flush_failures.increment();
        }
        result
    }

    /// Ends a share that failed before the manifest edit, and removes its files.
    fn fail(&self, share: &mut Share<'_>, error: Error) {
        for file in share.end(Err(error)) {
            self.remove_file(file);
        }
    }

    /// Runs steps 2 and 3.
    fn write_all(&self, shares: &mut [Share<'_>]) {
        let open: Vec<_> = shares.iter_mut().filter(|share| share.is_open()).collect();
        let newest = open.iter().map(|share| share.flushed).max();
        if let Err(error) = self.shared.wal.wait_published(newest.unwrap_or(SeqId::ZERO)) {
            for share in open {
                self.fail(share, error.clone());
            }
            return;
        }
        let threads = match self.shared.options.background {
            Background::Threads => open.len().min(BATCH_THREADS),
            Background::Manual => 1,
        };
        let waiting = Mutex::new(open.into_iter());
        let work = || {
            loop {
                let next = waiting.lock().next();
                let Some(share) = next else { return };
                self.write_files(share);
            }
        };
        let new_thread = || thread::Builder::new().name("basalt-flush".into());
        helpers::together(new_thread, threads.saturating_sub(1), work);
    }

    /// Writes the files of a region.
    fn write_files(&self, share: &mut Share<'_>) {
        let version = Arc::clone(&share.version);
        let table = &share.region.info().table;
        for store in version.stores.iter().filter(|store| !store.frozen.is_empty()) {
            let files = || NewFile {
                id: self.shared.next_file(),
                dir: store_dir(&self.shared.dir, table, &store.family.name),
                table: table.clone(),
            };
            let boundaries = self.stripes(&version, store).boundaries();
            let (State::Open(done), Some(job)) = (&mut share.state, &share.job) else {
                return;
            };
            let written = flush(
                &self.shared.store,
                &store.family,
                &store.frozen,
                FlushTarget {
                    files: &files,
                    boundaries: &boundaries,
                },
                if seeded::is_on("flush-forgets-open-scans") {
                    self.shared.read_view()
                } else {
                    self.shared.horizon(table)
                },
                job.progress(),
            );
            match written {
                Ok(result) => done.push(FamilyFlush {
                    family: store.family.name.clone(),
                    memstores: store.frozen.clone(),
                    result,
                }),
                Err(error) => return self.fail(share, error),
            }
        }
    }

    /// Runs step 4.
    fn sync_all_names(&self, shares: &mut [Share<'_>]) {
        let dirs: BTreeSet<PathBuf> = shares
            .iter()
            .flat_map(Share::dirs)
            .map(Path::to_path_buf)
            .collect();
        for dir in dirs {
            let Err(error) = sync_names(&*self.shared.store.vfs, &dir) else {
                continue;
            };
            for share in shares.iter_mut() {
                if share.dirs().any(|written| written == dir) {
                    self.fail(share, error.clone());
                }
            }
        }
    }

    /// Runs steps 5 and 6. No share is open afterwards.
    fn install_all(&self, shares: &mut [Share<'_>], began: Duration) {
        let mut useless = Vec::new();
        let mut installed = Vec::new();
        let mut manifest = self.manifest.lock();
        let mut open = Vec::new();
        for share in shares.iter_mut().filter(|share| share.is_open()) {
            if share.region.is_retired() {
                useless.extend(share.end(Ok(None)));
            } else {
                open.push(share);
            }
        }
        let edits: Vec<_> = open.iter().map(|share| share.edit()).collect();
        if seeded::is_on("log-removed-before-manifest") {
            let flushed = open.iter().map(|share| share.flushed).min();
            if let Some(first) = flushed.and_then(|seq| self.shared.wal.first_kept(seq)) {
                drop(self.shared.wal.remove_before(first));
            }
        }
        let appended = self.append_flushes(&mut manifest, &edits);
        for (share, appended) in open.into_iter().zip(appended) {
            match appended {
                Ok(()) => {
                    self.publish_flush(share.region, share.done());
                    installed.push(share);
                }
                Err(error) => {
                    let files = share.end(Err(error));
                    // On a full disk the files of every attempt would make it fuller. If the edit
                    // may be on disk, its files stay.
                    if !manifest.is_poisoned() {
                        useless.extend(files);
                    }
                }
            }
        }
        drop(manifest);
        for file in useless {
            self.remove_file(file);
        }
        if installed.is_empty() {
            return;
        }
        let took = self.shared.clock.mono().saturating_sub(began);
        let events: Vec<_> = installed
            .iter()
            .map(|share| self.note_flush(share, took))
            .collect();
        let log = self.remove_obsolete_wal();
        for (share, event) in installed.into_iter().zip(events) {
            share.end(log.clone().map(|()| Some(event)));
        }
    }

    /// Appends the edits of a batch with one sync. If they are refused together and without effect,
    /// each is retried by itself, so that one edit does not block the others.
    fn append_flushes(
        &self,
        manifest: &mut MutexGuard<'_, Manifest>,
        flushes: &[ManifestEdit],
    ) -> Vec<Result<()>> {
        if flushes.is_empty() {
            return Vec::new();
        }
        let mut edits = Vec::with_capacity(flushes.len() + 1);
        // Once cells are in files, recovery no longer learns from the log which times were
        // assigned.
        let mark = self.high_water();
        if manifest.state().timestamp_ms < mark.timestamp_ms && !seeded::is_on("times-not-noted-at-flush") {
            edits.push(mark.into());
        }
        edits.extend_from_slice(flushes);
        match self.append_all(manifest, &edits) {
            Err(_) if flushes.len() > 1 && !manifest.is_poisoned() => flushes
                .chunks(1)
                .flat_map(|one| self.append_flushes(manifest, one))
                .collect(),
            result => {
                if result.is_ok() {
                    self.shared.timestamps.set_marked(manifest.state().timestamp_ms);
                }
                vec![result; flushes.len()]
            }
        }
    }

    /// Publishes the version of a region that has the new files. Called under the manifest's lock,
    /// after the edit.
    fn publish_flush(&self, region: &Region, done: &[FamilyFlush]) {
        let opened: Vec<_> = done
            .iter()
            .map(|family| {
                let files = family.result.files.iter();
                files.map(|file| self.adopt(file, region)).collect::<Vec<_>>()
            })
            .collect();
        region.publish(|current| {
            let mut next = current.clone();
            for (family, files) in done.iter().zip(&opened) {
                let (index, _) = current
                    .table
                    .family(&family.family)
                    .expect("families go only while no flush of the region runs");
                next.stores[index] = Arc::new(next.stores[index].with_flushed(&family.memstores, files));
            }
            next
        });
        for memstore in done.iter().flat_map(|family| &family.memstores) {
            memstore.pin();
        }
        self.shared.releases.fetch_add(1, Ordering::Release);
    }

    /// Counts a published flush and notifies the listener.
    fn note_flush(&self, share: &Share<'_>, took: Duration) -> FlushEvent {
        let (region, counters) = (share.region, &self.shared.counters);
        let event = share.event(took);
        region.flushes.increment();
        counters.flushes.increment();
        counters.flush_bytes.add(event.written_bytes);
        self.shared.listener.flushed(&event);
        event
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

/// Locks out the writers of a region. A thread that sleeps until it gets the lock keeps new writers
/// out until a processor is free for it, which takes tens of milliseconds when all are busy. So the
/// lock is tried for while writers have it, and waited for only if that never succeeds.
fn block_writers(region: &Region) -> RwLockWriteGuard<'_, ()> {
    for _ in 0..LOCK_TRIES {
        if let Some(blocked) = region.updates.try_write() {
            return blocked;
        }
        thread::yield_now();
    }
    region.updates.write()
}

/// Number of leading regions that make a batch: at least one.
fn batch_len(regions: &[&Region]) -> usize {
    let mut bytes = 0_u64;
    let fits = |region: &&&Region| {
        bytes = bytes.saturating_add(region.version().memstore_bytes());
        bytes <= BATCH_BYTES
    };
    regions.iter().take(BATCH_REGIONS).take_while(fits).count().max(1)
}
