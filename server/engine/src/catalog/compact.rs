//! Compaction of one store: choose, run, install.
//!
//! One compaction of a region at a time (`Region::compacting`). Flushes of the region go on meanwhile: they only add files
//! behind the ones chosen.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Catalog;
use crate::error::Result;
use crate::jobs::{JobInfo, JobKind, JobProgress};
use crate::manifest::ManifestEdit;
use crate::metrics::CompactionEvent;
use crate::region::Region;
use crate::schema::escape;
use crate::store::compact::{
    Choice, Compacted, CompactionJob, CompactionState, FileView, choose, major_due_ms, needs_compaction, run,
};
use crate::store::{NewFile, StoreFile, StoreVersion, store_dir};

/// How a compaction ended.
#[derive(Clone, Debug)]
pub enum CompactionOutcome {
    /// There was nothing to do.
    Nothing,
    /// Somebody asked it to give up, or the store is gone.
    Cancelled,
    /// Done.
    Done(CompactionEvent),
}

impl Catalog {
    /// Compacts one store of a region: what the policy chooses, or with `major` all files.
    pub fn compact_store(&self, region: &Region, family: &[u8], major: bool) -> Result<CompactionOutcome> {
        let _compacting = region.compacting.lock();
        // Whoever asked compactions to give up takes that back: a split when it has the lock, a stop never.
        self.compact_locked(region, family, major)
    }

    /// The same.
    /// REQUIRES: `Region::compacting` is held.
    pub(super) fn compact_locked(
        &self,
        region: &Region,
        family: &[u8],
        major: bool,
    ) -> Result<CompactionOutcome> {
        let version = region.load_version();
        let Some((index, _)) = version.table.family(family) else {
            return Ok(CompactionOutcome::Nothing);
        };
        let store = &version.stores[index];
        let views = file_views(region, store);
        let state = CompactionState {
            major_requested: major,
            ttl_ms: store.family.ttl_ms(),
        };
        let inputs = match choose(&views, &self.shared.options, self.shared.clock.wall_ms(), &state) {
            Choice::Nothing => return Ok(CompactionOutcome::Nothing),
            Choice::Minor(range) => &store.files[range],
            Choice::Major => &store.files[..],
        };
        let all_files = inputs.len() == store.files.len();
        let job = self.shared.jobs.begin(JobInfo {
            kind: if all_files {
                JobKind::MajorCompaction
            } else {
                JobKind::MinorCompaction
            },
            table: region.info().table.clone(),
            region: region.id(),
            family: Some(escape(family)),
            inputs: inputs.len(),
            input_bytes: inputs.iter().map(|file| file.meta().bytes).sum(),
            input_cells: inputs.iter().map(|file| file.meta().cells).sum(),
        });
        let result = self.compact_files(region, store, inputs, job.progress());
        job.end(&result, |event| event.written_bytes);
        Ok(match result? {
            Some(event) => CompactionOutcome::Done(event),
            None => CompactionOutcome::Cancelled,
        })
    }

    /// Makes one file of these files of the store; `None` when it was cancelled.
    fn compact_files(
        &self,
        region: &Region,
        store: &StoreVersion,
        inputs: &[Arc<StoreFile>],
        progress: &JobProgress,
    ) -> Result<Option<CompactionEvent>> {
        let began = self.shared.clock.mono();
        let family = &store.family.name;
        let all_files = inputs.len() == store.files.len();
        let input_bytes = inputs.iter().map(|file| file.meta().bytes).sum();
        let result = self
            .shared
            .disk
            .for_compaction(
                input_bytes,
                self.shared.memstore_total_bytes.load(Ordering::Acquire),
            )
            .and_then(|_space| self.run_compaction(region, store, inputs, all_files, progress));
        let compacted = match result {
            Ok(Some(compacted)) => compacted,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.shared.counters.compaction_failures.increment();
                return Err(error);
            }
        };
        let event = CompactionEvent {
            table: region.info().table.clone(),
            region: region.id(),
            family: escape(family),
            major: all_files,
            files: inputs.len(),
            read_bytes: compacted.read_bytes,
            written_bytes: compacted.written_bytes,
            took: self.shared.clock.mono().saturating_sub(began),
        };
        if !self.install_compaction(region, family, inputs, compacted)? {
            return Ok(None);
        }
        region.compactions.increment();
        let counters = &self.shared.counters;
        let done = if all_files {
            &counters.major_compactions
        } else {
            &counters.minor_compactions
        };
        done.increment();
        counters.compaction_read_bytes.add(event.read_bytes);
        counters.compaction_written_bytes.add(event.written_bytes);
        self.shared.listener.compacted(&event);
        Ok(Some(event))
    }

    fn run_compaction(
        &self,
        region: &Region,
        store: &StoreVersion,
        inputs: &[Arc<StoreFile>],
        all_files: bool,
        progress: &JobProgress,
    ) -> Result<Option<Compacted>> {
        let target = NewFile {
            id: self.shared.next_file(),
            dir: store_dir(&self.shared.dir, &region.info().table, &store.family.name),
            table: region.info().table.clone(),
        };
        run(&CompactionJob {
            context: &self.shared.store,
            family: &store.family,
            inputs,
            all_files,
            target: &target,
            horizon: self.shared.horizon(&region.info().table),
            limiter: &self.limiter,
            cancel: &region.cancel_compaction,
            progress,
        })
    }

    /// False when the store is gone meanwhile; the output is removed then.
    fn install_compaction(
        &self,
        region: &Region,
        family: &[u8],
        inputs: &[Arc<StoreFile>],
        compacted: Compacted,
    ) -> Result<bool> {
        let removed: Vec<_> = inputs.iter().map(|file| file.id()).collect();
        let mut manifest = self.manifest.lock();
        let current = region.load_version();
        // A family that was dropped and created again has none of the inputs.
        let inputs_there = current.table.family(family).is_some_and(|(index, _)| {
            let files = &current.stores[index].files;
            inputs
                .iter()
                .all(|input| files.iter().any(|file| Arc::ptr_eq(file, input)))
        });
        if region.is_retired() || !inputs_there {
            drop(manifest);
            if let Some(file) = compacted.file {
                self.remove_file(file);
            }
            return Ok(false);
        }
        let edit = ManifestEdit::Compact {
            region: region.id(),
            family: family.to_vec(),
            removed: removed.clone(),
            added: compacted.file.as_ref().map(|file| file.meta.clone()),
        };
        if let Err(error) = self.append(&mut manifest, &edit) {
            // As with a flush: what had no effect leaves nothing behind.
            let had_effect = manifest.is_poisoned();
            drop(manifest);
            if let Some(file) = compacted.file.filter(|_| !had_effect) {
                self.remove_file(file);
            }
            return Err(error);
        }
        let added = compacted.file.as_ref().map(|file| self.adopt(file, region));
        region.publish(|current| {
            let mut next = current.clone();
            if let Some((index, _)) = current.table.family(family) {
                next.stores[index] = Arc::new(current.stores[index].with_compacted(&removed, added.clone()));
            }
            next
        });
        drop(manifest);
        for file in inputs {
            file.mark_obsolete();
        }
        self.shared.let_go.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// The families of a region that should be compacted soon, with whether that means all of their files.
    pub fn wanted_compactions(&self, region: &Region) -> Vec<(Vec<u8>, bool)> {
        let version = region.version();
        let options = &self.shared.options;
        if !options.compaction_enabled || !version.table.compaction_enabled() {
            return Vec::new();
        }
        let now = self.shared.clock.wall_ms();
        let wanted = |store: &Arc<StoreVersion>| {
            let views = file_views(region, store);
            let due = major_due_ms(&views, options).is_some_and(|due| due <= now);
            let clipped = views.iter().any(|view| view.clipped);
            (due || clipped || needs_compaction(&views, options)).then(|| (store.family.name.clone(), due))
        };
        version.stores.iter().filter_map(wanted).collect()
    }
}

/// What choosing needs to know of a store's files. None is busy: compactions of a region run one at a time.
fn file_views(region: &Region, store: &StoreVersion) -> Vec<FileView> {
    let view = |file: &Arc<StoreFile>| {
        let (meta, properties) = (file.meta(), file.properties());
        FileView {
            id: meta.id,
            bytes: meta.bytes,
            max_seq: meta.max_seq,
            major: meta.major,
            created_ms: meta.created_ms,
            oldest_ms: properties.time_range.map(|(oldest, _)| oldest),
            clipped: file.is_clipped() || region.is_inherited(meta.id),
            busy: false,
        }
    };
    store.files.iter().map(view).collect()
}
