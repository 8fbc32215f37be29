//! Compaction of one store: choose, run, install.
//!
//! Compactions of a region, and of a store, run at the same time, each over files that it has
//! claimed (`region::claims`). In one store a later one takes only files that are newer than those
//! of the earlier ones, so the inputs of each stay adjacent, whichever ends first. Flushes of the
//! region go on meanwhile: they only add files behind the ones chosen.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Catalog;
use crate::error::Result;
use crate::id::FileId;
use crate::jobs::{JobInfo, JobKind, JobProgress};
use crate::manifest::ManifestEdit;
use crate::metrics::CompactionEvent;
use crate::region::{Claim, Region};
use crate::schema::{FamilyDescriptor, escape};
use crate::seeded;
use crate::store::compact::{
    Compacted, CompactionJob, CompactionState, FileView, Pick, choose, is_major_due, needs_compaction, run,
};
use crate::store::{NewFile, StoreFile, StoreVersion, store_dir};

/// How a compaction ended.
#[derive(Clone, Debug)]
pub(crate) enum CompactionOutcome {
    /// There was nothing to do, or all the work has to wait for a requested compaction of all
    /// files.
    Nothing,
    /// All files were to be compacted, and some of them are being compacted.
    Busy,
    /// It would take long, and this was not the place for that.
    Long,
    /// The compaction was cancelled, or the store is gone.
    Cancelled,
    /// Done.
    Done,
}

/// Compaction mode: which compactions may begin, and whether running ones are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionMode {
    /// Any, and a wait for those that are in the way.
    Any,
    /// Any for which nothing has to be waited for.
    Idle,
    /// As `Idle`, without long compactions (`Options::compaction_long_bytes`).
    Short,
}

/// The inputs of a compaction. Holds no version, since that would keep the version's memstores
/// alive.
struct Chosen<'a> {
    family: Arc<FamilyDescriptor>,
    /// Neighbours in the store.
    inputs: Vec<Arc<StoreFile>>,
    /// Whether the store has no others.
    all_files: bool,
    /// For as long as it takes.
    _claim: Claim<'a>,
}

impl Chosen<'_> {
    fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(|file| file.meta().bytes).sum()
    }
}

impl Catalog {
    /// Compacts one store of a region: the files that the policy chooses, or with `major` all
    /// files.
    pub(crate) fn compact_store(
        &self,
        region: &Region,
        family: &[u8],
        major: bool,
        mode: CompactionMode,
    ) -> Result<CompactionOutcome> {
        let _compacting = region.compacting.read();
        // A request to cancel compactions is withdrawn by its maker: a split withdraws it once it
        // has the lock, a stop never.
        self.compact_locked(region, family, major, mode)
    }

    /// As `compact_store`, for a caller that has locked compactions of the region.
    /// REQUIRES: `Region::compacting` is held.
    pub(super) fn compact_locked(
        &self,
        region: &Region,
        family: &[u8],
        major: bool,
        mode: CompactionMode,
    ) -> Result<CompactionOutcome> {
        region.check_undamaged()?;
        let chosen = match self.claim(region, family, major, mode) {
            Ok(chosen) => chosen,
            Err(instead) => return Ok(instead),
        };
        let job = self.shared.jobs.begin(JobInfo {
            kind: if chosen.all_files {
                JobKind::MajorCompaction
            } else {
                JobKind::MinorCompaction
            },
            table: region.info().table.clone(),
            region: region.id(),
            family: Some(escape(family)),
            inputs: chosen.inputs.len(),
            input_bytes: chosen.input_bytes(),
            input_cells: chosen.inputs.iter().map(|file| file.meta().cells).sum(),
        });
        let result = self.compact_files(region, &chosen, job.progress());
        job.end(&result, |event| event.written_bytes);
        Ok(match result? {
            Some(_) => CompactionOutcome::Done,
            None => CompactionOutcome::Cancelled,
        })
    }

    /// Chooses files of the store and claims them; otherwise how it ends instead.
    fn claim<'a>(
        &self,
        region: &'a Region,
        family: &[u8],
        major: bool,
        mode: CompactionMode,
    ) -> std::result::Result<Chosen<'a>, CompactionOutcome> {
        let mut claims = region.claims.lock();
        loop {
            // Loaded under the lock: the version has the results of every compaction whose claim
            // has ended.
            let version = region.version();
            if major {
                claims.set_awaited(family, false);
            }
            let Some((index, _)) = version.table.family(family) else {
                return Err(CompactionOutcome::Nothing);
            };
            let store = &version.stores[index];
            let views = file_views(region, store, |file| claims.is_claimed(file));
            if major && views.iter().any(|view| view.busy) {
                claims.set_awaited(family, true);
                if mode != CompactionMode::Any {
                    return Err(CompactionOutcome::Busy);
                }
                // Not kept meanwhile: its memstores could not go.
                drop(version);
                region.claims.wait(&mut claims);
                continue;
            }
            if !major && claims.is_awaited(family) {
                return Err(CompactionOutcome::Nothing);
            }
            let state = CompactionState {
                major_requested: major,
                ttl_ms: store.family.ttl_ms(),
            };
            let options = &self.shared.options;
            let inputs = match choose(&views, options, self.shared.clock.wall_ms(), &state) {
                Pick::Nothing => return Err(CompactionOutcome::Nothing),
                Pick::Minor(range) => store.files[range].to_vec(),
                Pick::Major => store.files.clone(),
            };
            let bytes: u64 = inputs.iter().map(|file| file.meta().bytes).sum();
            if mode == CompactionMode::Short && bytes >= options.compaction_long_bytes {
                return Err(CompactionOutcome::Long);
            }
            let files = inputs.iter().map(|file| file.id()).collect();
            return Ok(Chosen {
                family: Arc::clone(&store.family),
                all_files: inputs.len() == store.files.len()
                    || seeded::is_on("compaction-beside-another-is-major"),
                inputs,
                _claim: region.claims.claim(claims, files),
            });
        }
    }

    /// Makes one file of these files of the store; `None` when it was cancelled.
    fn compact_files(
        &self,
        region: &Region,
        chosen: &Chosen<'_>,
        progress: &JobProgress,
    ) -> Result<Option<CompactionEvent>> {
        let began = self.shared.clock.mono();
        let family = &chosen.family.name;
        let result = self
            .shared
            .disk
            .for_compaction(chosen.input_bytes(), self.shared.memstore_bytes())
            .and_then(|_space| self.run_compaction(region, chosen, progress));
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
            major: chosen.all_files,
            files: chosen.inputs.len(),
            read_bytes: compacted.read_bytes,
            written_bytes: compacted.written_bytes,
            took: self.shared.clock.mono().saturating_sub(began),
        };
        if !self.install_compaction(region, family, &chosen.inputs, compacted)? {
            return Ok(None);
        }
        region.compactions.increment();
        let counters = &self.shared.counters;
        let done = if chosen.all_files {
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
        chosen: &Chosen<'_>,
        progress: &JobProgress,
    ) -> Result<Option<Compacted>> {
        let family = &chosen.family;
        let target = NewFile {
            id: self.shared.next_file(),
            dir: store_dir(&self.shared.dir, &region.info().table, &family.name),
            table: region.info().table.clone(),
        };
        run(&CompactionJob {
            context: &self.shared.store,
            family,
            inputs: &chosen.inputs,
            all_files: chosen.all_files,
            target: &target,
            horizon: if seeded::is_on("compaction-forgets-open-scans") {
                self.shared.read_view()
            } else {
                self.shared.horizon(&region.info().table)
            },
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
            // As with a flush: a compaction without effect leaves no files behind.
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
        self.shared.releases.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// The families of a region that should be compacted soon, with whether that means all of their files.
    pub(crate) fn wanted_compactions(&self, region: &Region) -> Vec<(Vec<u8>, bool)> {
        // As in `claim`: a file that is not claimed in a version loaded now is free.
        let claims = region.claims.lock();
        let version = region.version();
        let options = &self.shared.options;
        let enabled = options.compaction_enabled && version.table.compaction_enabled();
        if !enabled || region.check_undamaged().is_err() {
            return Vec::new();
        }
        let now = self.shared.clock.wall_ms();
        let wanted = |store: &Arc<StoreVersion>| {
            let views = file_views(region, store, |file| claims.is_claimed(file));
            let state = CompactionState {
                major_requested: false,
                ttl_ms: store.family.ttl_ms(),
            };
            // The running compaction may be the due one; if not, the next check finds it.
            let idle = !views.iter().any(|view| view.busy);
            let due = idle && is_major_due(&views, options, now, &state);
            (due || needs_compaction(&views, options)).then(|| (store.family.name.clone(), due))
        };
        version.stores.iter().filter_map(wanted).collect()
    }
}

/// The properties of a store's files that the pick depends on.
fn file_views(region: &Region, store: &StoreVersion, is_claimed: impl Fn(FileId) -> bool) -> Vec<FileView> {
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
            busy: is_claimed(meta.id),
        }
    };
    store.files.iter().map(view).collect()
}
