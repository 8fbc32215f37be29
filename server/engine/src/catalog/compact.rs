//! Compaction of one store: choose, run, install.
//!
//! Compactions of a region, and of a store, run at the same time, each over files that it has
//! claimed (`region::claims`). Each takes files of one stripe (`store::stripes`), and in one stripe a
//! later one takes only files that are newer than those of the earlier ones. So the inputs of each
//! have no other file with cells of their rows between them, whichever ends first. That holds although
//! files change the stripes meanwhile: files that share a row share a stripe whatever the other files
//! are. Flushes and bulk loads of the region go on: they only add files behind the ones chosen.
//!
//! A request for all files claims them at once and takes the stripes one after the other, in the order of
//! rows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Catalog;
use crate::error::Result;
use crate::id::FileId;
use crate::jobs::{JobInfo, JobKind, JobProgress};
use crate::manifest::ManifestEdit;
use crate::metrics::CompactionEvent;
use crate::own_options::options_of;
use crate::region::{Claim, Region, RegionVersion};
use crate::schema::{FamilyDescriptor, escape};
use crate::seeded;
use crate::store::compact::{
    Compacted, CompactionJob, CompactionState, FileView, Pick, choose, is_major_due, needs_compaction,
    precedence, run,
};
use crate::store::{NewFile, StoreFile, StoreVersion, Stripe, Stripes, overwritten, store_dir};

/// How a compaction ended.
#[derive(Clone, Debug)]
pub(crate) enum CompactionOutcome {
    /// There was nothing to do, or all the work has to wait for a requested compaction of all
    /// files of a stripe.
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

/// The files that a request compacts. Holds no version, since that would keep the version's memstores
/// alive.
struct Chosen<'a> {
    family: Arc<FamilyDescriptor>,
    /// Compacted one after the other: one, or a part for each stripe if all files were requested.
    parts: Vec<Part>,
    /// The claim on the files of all parts, held until the last one is done.
    _claim: Claim<'a>,
}

/// The inputs of a compaction.
struct Part {
    /// Neighbours in a stripe.
    inputs: Vec<Arc<StoreFile>>,
    /// Whether the stripe has no others.
    all_files: bool,
    /// Bytes from which on another output begins.
    piece_bytes: Option<u64>,
}

impl Part {
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
        for part in &chosen.parts {
            if !self.compact_part(region, &chosen.family, part)? {
                return Ok(CompactionOutcome::Cancelled);
            }
        }
        Ok(CompactionOutcome::Done)
    }

    /// Compacts the files of a part. Returns false if that was cancelled.
    fn compact_part(&self, region: &Region, family: &FamilyDescriptor, part: &Part) -> Result<bool> {
        let job = self.shared.jobs.begin(JobInfo {
            kind: if part.all_files {
                JobKind::MajorCompaction
            } else {
                JobKind::MinorCompaction
            },
            table: region.info().table.clone(),
            region: region.id(),
            family: Some(escape(&family.name)),
            inputs: part.inputs.len(),
            input_bytes: part.input_bytes(),
            input_cells: part.inputs.iter().map(|file| file.meta().cells).sum(),
        });
        let result = self.compact_files(region, family, part, job.progress());
        job.end(&result, |event| event.written_bytes);
        Ok(result?.is_some())
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
            let parts = self.pick(&version, store, &views, major);
            if parts.is_empty() {
                return Err(CompactionOutcome::Nothing);
            }
            let bytes: u64 = parts.iter().map(Part::input_bytes).sum();
            if mode == CompactionMode::Short && bytes >= self.shared.options.compaction_long_bytes {
                return Err(CompactionOutcome::Long);
            }
            let files = parts.iter().flat_map(|part| &part.inputs).map(|file| file.id());
            let claim = region.claims.claim(claims, files.collect());
            return Ok(Chosen {
                family: Arc::clone(&store.family),
                parts,
                _claim: claim,
            });
        }
    }

    /// Chooses files of the store: all of each stripe if they are requested, or else some of the first stripe
    /// in which anything should be compacted: of those with most overwritten versions, and then of those with
    /// most files.
    fn pick(
        &self,
        version: &RegionVersion,
        store: &StoreVersion,
        views: &[FileView],
        major_requested: bool,
    ) -> Vec<Part> {
        let stripes = self.stripes(version, store);
        let options = &*options_of(&version.table, &store.family, &self.shared.options);
        let count = stripes.stripes.len();
        let mut ordered: Vec<_> = stripes
            .stripes
            .iter()
            .map(|stripe| {
                let state = self.compaction_state(version, store, stripe, count);
                (
                    stripe,
                    CompactionState {
                        major_requested,
                        ..state
                    },
                )
            })
            .collect();
        if !major_requested {
            ordered.sort_by(|(one, of_one), (other, of_other)| {
                precedence(options, (of_one, one.files.len()), (of_other, other.files.len()))
            });
        }
        let now_ms = self.shared.clock.wall_ms();
        let part = |(stripe, state): &(&Stripe, CompactionState)| {
            let views: Vec<_> = stripe.files.iter().map(|index| views[*index].clone()).collect();
            let picked = match choose(&views, options, now_ms, state) {
                Pick::Nothing => return None,
                Pick::Minor(range) => &stripe.files[range],
                Pick::Major => &stripe.files[..],
            };
            let all_files = picked.len() == stripe.files.len();
            let inputs = picked.iter().map(|index| Arc::clone(&store.files[*index]));
            Some(Part {
                inputs: inputs.collect(),
                all_files: all_files || seeded::is_on("compaction-beside-another-is-major"),
                piece_bytes: stripes.piece_bytes(stripe).filter(|_| all_files),
            })
        };
        let parts = ordered.iter().filter_map(part);
        parts.take(if major_requested { usize::MAX } else { 1 }).collect()
    }

    /// The stripes of a store of this version.
    pub(super) fn stripes(&self, version: &RegionVersion, store: &StoreVersion) -> Stripes {
        Stripes::of_store(store, &version.table, &self.shared.options)
    }

    /// The properties that the pick depends on, in one of `stripes` stripes, without a request.
    fn compaction_state(
        &self,
        version: &RegionVersion,
        store: &StoreVersion,
        stripe: &Stripe,
        stripes: usize,
    ) -> CompactionState {
        let options = options_of(&version.table, &store.family, &self.shared.options);
        let estimates = options.compaction_overwritten > 0.0
            && stripe.files.len() >= options.compaction_min_files
            && version.table.merges_overwritten(&store.family);
        let files = stripe.files.iter().map(|index| &*store.files[*index]);
        CompactionState {
            major_requested: false,
            ttl_ms: store.family.ttl_ms(),
            overwritten: if estimates {
                overwritten(files, &store.family)
            } else {
                0.0
            },
            stripes,
        }
    }

    /// Whether flushes should wait, because too many files of a store have the same rows.
    pub(crate) fn is_crowded(&self, version: &RegionVersion, store: &StoreVersion) -> bool {
        let options = options_of(&version.table, &store.family, &self.shared.options);
        let limit = options.compaction_blocking_files;
        store.files.len() >= limit && self.stripes(version, store).depth() >= limit
    }

    /// Merges these files of the store; `None` when it was cancelled.
    fn compact_files(
        &self,
        region: &Region,
        family: &FamilyDescriptor,
        part: &Part,
        progress: &JobProgress,
    ) -> Result<Option<CompactionEvent>> {
        let began = self.shared.clock.mono();
        let result = self
            .shared
            .disk
            .for_compaction(part.input_bytes(), self.shared.memstore_bytes())
            .and_then(|_space| self.run_compaction(region, family, part, progress));
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
            family: escape(&family.name),
            major: part.all_files,
            files: part.inputs.len(),
            read_bytes: compacted.read_bytes,
            written_bytes: compacted.written_bytes,
            took: self.shared.clock.mono().saturating_sub(began),
        };
        if !self.install_compaction(region, &family.name, &part.inputs, compacted)? {
            return Ok(None);
        }
        region.compactions.increment();
        let counters = &self.shared.counters;
        let done = if part.all_files {
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
        family: &FamilyDescriptor,
        part: &Part,
        progress: &JobProgress,
    ) -> Result<Option<Compacted>> {
        let targets = || NewFile {
            id: self.shared.next_file(),
            dir: store_dir(&self.shared.dir, &region.info().table, &family.name),
            table: region.info().table.clone(),
        };
        run(&CompactionJob {
            context: &self.shared.store,
            family,
            inputs: &part.inputs,
            all_files: part.all_files,
            targets: &targets,
            piece_bytes: part.piece_bytes,
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
            for file in compacted.files {
                self.remove_file(file);
            }
            return Ok(false);
        }
        let named = if seeded::is_on("compaction-names-its-first-file") {
            1
        } else {
            usize::MAX
        };
        let edit = ManifestEdit::Compact {
            region: region.id(),
            family: family.to_vec(),
            removed: removed.clone(),
            added: compacted
                .files
                .iter()
                .take(named)
                .map(|file| file.meta.clone())
                .collect(),
        };
        if let Err(error) = self.append(&mut manifest, &edit) {
            // As with a flush: a compaction without effect leaves no files behind.
            let had_effect = manifest.is_poisoned();
            drop(manifest);
            for file in compacted.files.into_iter().filter(|_| !had_effect) {
                self.remove_file(file);
            }
            return Err(error);
        }
        let added: Vec<_> = compacted
            .files
            .iter()
            .map(|file| self.adopt(file, region))
            .collect();
        region.publish(|current| {
            let mut next = current.clone();
            if let Some((index, _)) = current.table.family(family) {
                next.stores[index] = Arc::new(current.stores[index].with_compacted(&removed, &added));
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
        let enabled = self.shared.options.compaction_enabled && version.table.compaction_enabled();
        if !enabled || region.check_undamaged().is_err() {
            return Vec::new();
        }
        let now = self.shared.clock.wall_ms();
        let wanted = |store: &Arc<StoreVersion>| {
            let options = &*options_of(&version.table, &store.family, &self.shared.options);
            let views = file_views(region, store, |file| claims.is_claimed(file));
            let stripes = self.stripes(&version, store).stripes;
            let (mut wanted, mut due) = (false, false);
            for stripe in &stripes {
                let views: Vec<_> = stripe.files.iter().map(|index| views[*index].clone()).collect();
                let state = self.compaction_state(&version, store, stripe, stripes.len());
                // The running compaction may be the due one; if not, the next check finds it.
                let idle = !views.iter().any(|view| view.busy);
                let is_due = idle && is_major_due(&views, options, now, &state);
                due |= is_due;
                wanted |= is_due || needs_compaction(&views, options, &state);
            }
            // A request for all files would take all stripes; without one, the pick finds those that are due.
            wanted.then(|| (store.family.name.clone(), due && stripes.len() == 1))
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
