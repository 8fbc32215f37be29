//! `basalt check`: verifies a database that is not open. It writes nothing, so it can run on a
//! read-only copy. Each finding ends with its remedy ([`Remedy`]).
//!
//! Checked, in this order: the manifest, every log segment, every store file (whole-file checksum,
//! every block, order and counts, identity, share of the region that names it; a finding names the
//! regions that need the file), every file of every snapshot in the same way, the regions'
//! boundaries, and unreferenced files. Store files are verified side by side, since one thread
//! unpacks blocks more slowly than disks read them; findings are reported in their order. A problem
//! with one thing does not stop the check of the others, except that without a manifest there is
//! nothing to compare with.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::remedy::Remedy;
use super::{directory, orphans, require_log, wal_dir};
use crate::cache::BlockCache;
use crate::cell::CallMemory;
use crate::clock::SystemClock;
use crate::error::{COPIED_REMEDY, Error, Result};
use crate::fs::{HandleCache, Vfs};
use crate::hfile::ReaderContext;
use crate::id::{FileId, RegionId, SeqId};
use crate::manifest::{self, FileMeta, ManifestState};
use crate::metrics::{Counters, NoListener};
use crate::region::{RegionInfo, describe};
use crate::schema::escape;
use crate::store::{Clip, DamagedFile, StoreContext, StoreFile, file_path, snapshot_store_dir, store_dir};
use crate::sync::helpers;
use crate::wal;

/// Cache of a check. Every row is looked up in its bloom filter, chunk by chunk: without a cache
/// the same chunk would be read from disk once for each of its rows.
const CACHE_BYTES: u64 = 64 << 20;

/// Files with fewer bytes together are verified by one thread: starting others would take longer.
const SIDE_BY_SIDE_BYTES: u64 = 1 << 20;

/// Counts of the things that were checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckSummary {
    /// Tables in the manifest.
    pub tables: u64,
    /// Regions in the manifest.
    pub regions: u64,
    /// Store files verified.
    pub store_files: u64,
    /// Bytes of the store files.
    pub store_file_bytes: u64,
    /// Snapshots in the manifest.
    pub snapshots: u64,
    /// Store files of snapshots verified.
    pub snapshot_files: u64,
    /// Log segments verified.
    pub wal_segments: u64,
    /// Rows in them.
    pub wal_rows: u64,
    /// Files below `tables/` and `snapshots/` that nothing refers to: harmless, the next open moves
    /// them aside.
    pub orphans: u64,
    /// Things that are wrong. Zero means that the database is sound.
    pub problems: u64,
}

impl CheckSummary {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems == 0
    }
}

impl std::fmt::Display for CheckSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} tables, {} regions, {} store files of {} bytes, {} snapshots with {} files, {} log segments with {} rows, {} orphans, {} problems",
            if self.is_sound() { "sound" } else { "damaged" },
            self.tables,
            self.regions,
            self.store_files,
            self.store_file_bytes,
            self.snapshots,
            self.snapshot_files,
            self.wal_segments,
            self.wal_rows,
            self.orphans,
            self.problems
        )
    }
}

/// Verifies the database in `dir`. Each problem and each note goes to `report` as a line of text.
/// Fails when nothing can be checked: no database, or another process has it open.
pub fn check(vfs: &Arc<dyn Vfs>, dir: &Path, report: &mut dyn FnMut(String)) -> Result<CheckSummary> {
    let there = vfs
        .exists(dir)
        .map_err(|source| Error::io("looking for", dir, source))?;
    if !there {
        return Err(Error::io("looking for", dir, std::io::ErrorKind::NotFound.into()));
    }
    directory::require_ours(&**vfs, dir)?;
    let _lock = directory::lock_to_read(&**vfs, dir)?;
    let mut checker = Checker {
        vfs,
        dir,
        report,
        summary: CheckSummary::default(),
        may_be_copied: false,
    };
    match manifest::verify(&**vfs, dir) {
        Ok(verified) => {
            for warning in &verified.warnings {
                checker.note(&warning, Remedy::ManifestLeftover);
            }
            checker.check_log(&verified.state);
            checker.check_boundaries(&verified.state);
            checker.check_files(&verified.state);
            checker.check_snapshots(&verified.state);
            checker.check_orphans(&verified.state);
        }
        Err(error @ Error::Corrupt { .. }) => checker.problem(&error, Remedy::Manifest),
        Err(error) => return Err(error),
    }
    if checker.may_be_copied {
        (checker.report)(format!("note: {COPIED_REMEDY}."));
    }
    Ok(checker.summary)
}

struct Checker<'a> {
    vfs: &'a Arc<dyn Vfs>,
    dir: &'a Path,
    report: &'a mut dyn FnMut(String),
    summary: CheckSummary,
    /// Whether a problem was found that a copy of a running server's directory has.
    may_be_copied: bool,
}

impl Checker<'_> {
    fn problem(&mut self, what: &impl std::fmt::Display, remedy: Remedy) {
        self.summary.problems += 1;
        self.may_be_copied |= remedy.is_of_a_copy();
        (self.report)(format!("{what}. What to do: {remedy}."));
    }

    /// Reports something remarkable that is not a problem.
    fn note(&mut self, what: &impl std::fmt::Display, remedy: Remedy) {
        (self.report)(format!("note: {what}. What to do: {remedy}."));
    }

    fn check_log(&mut self, state: &ManifestState) {
        if let Err(error) = require_log(&**self.vfs, &wal_dir(self.dir), state) {
            self.problem(&error, Remedy::Log);
        }
        let mut unknown_regions = Vec::new();
        let read = wal::read_segments(
            &**self.vfs,
            &wal_dir(self.dir),
            SeqId::ZERO,
            &NoListener,
            &mut |edit| {
                if edit.region().0 >= state.next_region {
                    unknown_regions.push((edit.first_seq(), edit.region()));
                }
                Ok(())
            },
        );
        for (seq, region) in unknown_regions {
            let what =
                format!("the log's edit with sequence id {seq} is of region {region}, which never was");
            self.problem(&what, Remedy::StrangeEdit);
        }
        match read {
            Ok(log) => {
                if let Some(cut) = &log.torn {
                    let what = format!(
                        "{}: what was being written when the process ended is cut at offset {}: {}",
                        cut.file.display(),
                        cut.offset,
                        cut.what
                    );
                    self.note(&what, Remedy::TornLog);
                }
                self.summary.wal_segments = log.segments;
                self.summary.wal_rows = log.rows;
            }
            Err(error) => self.problem(&error, Remedy::Log),
        }
    }

    /// The regions of each table follow each other without gap or overlap.
    fn check_boundaries(&mut self, state: &ManifestState) {
        self.summary.tables = state.tables.len() as u64;
        self.summary.regions = state.regions.len() as u64;
        for name in state.tables.keys() {
            let mut next: Option<Vec<u8>> = Some(Vec::new());
            for region in state.regions_of(name) {
                if next.as_ref() != Some(&region.meta.start) {
                    let info = RegionInfo::of_meta(&region.meta);
                    let what = format!(
                        "region {} of table {name} starts at {}, which is not where the one before ends",
                        info.encoded_name,
                        escape(&region.meta.start)
                    );
                    self.problem(&what, Remedy::Boundaries);
                }
                next = (!region.meta.end.is_empty()).then(|| region.meta.end.clone());
            }
            if next.is_some() {
                let what = format!("the last region of table {name} does not reach the end of the table");
                self.problem(&what, Remedy::Boundaries);
            }
        }
    }

    fn check_files(&mut self, state: &ManifestState) {
        let mut owners: HashMap<FileId, Vec<RegionId>> = HashMap::new();
        let mut wanted = Vec::new();
        for (id, region) in &state.regions {
            let clip = Clip {
                start: region.meta.start.clone(),
                end: region.meta.end.clone(),
            };
            for (family, files) in &region.files {
                for meta in files {
                    let of_file = owners.entry(meta.id).or_default();
                    of_file.push(*id);
                    if of_file.len() > 1 {
                        continue;
                    }
                    wanted.push(Wanted {
                        dir: store_dir(self.dir, &meta.dir_table, family),
                        meta,
                        clip: clip.clone(),
                        shared: region.clipped.contains(&meta.id),
                    });
                    self.summary.store_files += 1;
                    self.summary.store_file_bytes += meta.bytes;
                }
            }
        }
        for (number, finding) in check_all(&self.context(), &wanted) {
            let regions = owners.get(&wanted[number].meta.id).into_iter().flatten();
            let described: Vec<_> = regions
                .filter_map(|id| state.regions.get(id))
                .map(|region| describe(&RegionInfo::of_meta(&region.meta)))
                .collect();
            let described = described.join(", and ");
            let error = finding.error;
            let what = match finding.harm {
                Harm::Unopened => {
                    format!("{error}; a server refuses {described}, and serves everything else")
                }
                Harm::Damaged => {
                    format!("{error}; a server refuses reads of {described} that need what is damaged")
                }
                Harm::Unknown => error.to_string(),
            };
            self.problem(&what, Remedy::StoreFile);
        }
    }

    /// Each snapshot has a cache of its own, since ids of its files may also be those of a table's
    /// or another snapshot's files.
    fn check_snapshots(&mut self, state: &ManifestState) {
        for snapshot in state.snapshots.values() {
            self.summary.snapshots += 1;
            let mut seen = HashSet::new();
            let mut wanted = Vec::new();
            for region in &snapshot.regions {
                let clip = Clip {
                    start: region.start.clone(),
                    end: region.end.clone(),
                };
                for (family, files) in &region.files {
                    for meta in files.iter().filter(|meta| seen.insert(meta.id)) {
                        wanted.push(Wanted {
                            dir: snapshot_store_dir(self.dir, &snapshot.name, &meta.dir_table, family),
                            meta,
                            clip: clip.clone(),
                            shared: region.clipped.contains(&meta.id),
                        });
                        self.summary.snapshot_files += 1;
                    }
                }
            }
            for (_, Finding { error, .. }) in check_all(&self.context(), &wanted) {
                self.problem(
                    &format!("snapshot {}: {error}", snapshot.name),
                    Remedy::SnapshotFile,
                );
            }
        }
    }

    /// With an empty cache: every block is to be read from the disk.
    fn context(&self) -> StoreContext {
        StoreContext {
            vfs: Arc::clone(self.vfs),
            clock: Arc::new(SystemClock::new()),
            reader: ReaderContext {
                // Each thread has only the file open that it verifies.
                handles: HandleCache::new(Arc::clone(self.vfs), usize::MAX),
                cache: Arc::new(BlockCache::new(CACHE_BYTES)),
                counters: Arc::new(Counters::default()),
                direct_reads: false,
                calls: CallMemory::default(),
            },
            chunks: Arc::default(),
            removals: Arc::default(),
            listener: Arc::new(NoListener),
        }
    }

    fn check_orphans(&mut self, state: &ManifestState) {
        match orphans::find(&**self.vfs, self.dir, state) {
            Ok(found) => {
                self.summary.orphans = found.len() as u64;
                for path in found {
                    self.note(
                        &format!("no table or snapshot refers to {}", path.display()),
                        Remedy::Orphan,
                    );
                }
            }
            Err(error) => self.problem(&error, Remedy::Unreadable),
        }
    }
}

/// A store file to verify.
struct Wanted<'a> {
    dir: PathBuf,
    meta: &'a FileMeta,
    clip: Clip,
    shared: bool,
}

/// A problem with a store file.
struct Finding {
    error: Error,
    harm: Harm,
}

/// The effect of a bad store file on a server.
#[derive(Clone, Copy)]
enum Harm {
    /// The server refuses the regions that need it.
    Unopened,
    /// The server fails reads that need the damaged part.
    Damaged,
    /// The check could not determine it, for example because access was denied.
    Unknown,
}

/// Verifies the files. Returns the problems, in the order of the files, with their positions.
fn check_all(context: &StoreContext, wanted: &[Wanted<'_>]) -> Vec<(usize, Finding)> {
    let check = |wanted: &Wanted<'_>| {
        let Wanted {
            dir,
            meta,
            clip,
            shared,
        } = wanted;
        check_file(context, dir, meta, clip.clone(), *shared).err()
    };
    let bytes: u64 = wanted.iter().map(|wanted| wanted.meta.bytes).sum();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(wanted.len());
    if threads < 2 || bytes < SIDE_BY_SIDE_BYTES {
        let found = wanted.iter().map(check).enumerate();
        return found
            .filter_map(|(number, finding)| Some((number, finding?)))
            .collect();
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    helpers::together(thread::Builder::new, threads - 1, || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = wanted.get(number) else { return };
            found.lock().extend(check(file).map(|finding| (number, finding)));
        }
    });
    let mut found = found.into_inner();
    found.sort_by_key(|(number, _)| *number);
    found
}

fn check_file(
    context: &StoreContext,
    dir: &Path,
    meta: &FileMeta,
    clip: Clip,
    shared: bool,
) -> std::result::Result<(), Finding> {
    let file = StoreFile::open(context, dir, meta.clone(), clip).map_err(|error| {
        let damaged = DamagedFile::of_error(&file_path(dir, meta.id), &error).is_some();
        let harm = if damaged { Harm::Unopened } else { Harm::Unknown };
        Finding { error, harm }
    })?;
    check_content(&file, meta, shared).map_err(|error| Finding {
        error,
        harm: Harm::Damaged,
    })
}

/// Checks everything that a start does not look at.
fn check_content(file: &StoreFile, meta: &FileMeta, shared: bool) -> Result<()> {
    file.reader().verify(Some(meta.checksum))?;
    if file.is_clipped() && !shared {
        return Err(Error::corrupt(
            file.path(),
            0,
            "the file has rows outside the region that names it",
        ));
    }
    // The sequence id of a load is not known when its files are written.
    if file.properties().max_seq != meta.max_seq && !meta.loaded {
        return Err(Error::corrupt(
            file.path(),
            0,
            format!(
                "highest sequence id {}, the manifest says {}",
                file.properties().max_seq,
                meta.max_seq
            ),
        ));
    }
    Ok(())
}
