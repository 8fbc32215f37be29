//! Opening a database.
//!
//! 1. Claim the directory ([`directory`]): one that holds something else is refused before anything
//!    is written, and so is a second process.
//! 2. Read the manifest: the expected state. A directory that a newer release has written to is
//!    refused before anything is written: by the log's version, or by the manifest's.
//! 3. Open every store file it names, through the handle cache, so that a start has no more of them
//!    open at a time than a running server. A file that is missing, damaged, or has another
//!    identity or size costs only the regions that need it: they are refused until the file is back
//!    (`region::damage`). An error that is no evidence of damage, such as a shortage of
//!    descriptors, refuses the start, and so does a missing `tables/`: a file system that is not
//!    mounted is not damage. Unreferenced files are moved to `orphans/`, not deleted. Files of
//!    snapshots are not opened: one that is missing is found when the snapshot is used, or by a
//!    check.
//! 4. Replay the log with its nonces, if all segments that the manifest lists exist: rows newer
//!    than their region's last flush go to its memstores. Rows of a region that is gone were
//!    dropped, or flushed before a split or merge. The log's last segment is rewritten and sealed
//!    before this ends (see `wal`), so every served edit is on disk, not only in the page cache.
//! 5. Begin the next log segment, after every known sequence id, and record the existing segments
//!    in the manifest.
//!
//! ```text
//! LOCK  CURRENT  MANIFEST-<number>  wal/<number>.wal  tables/<namespace>/<table>/<family>/<file>  orphans/
//! snapshots/<snapshot>/<namespace>/<table>/<family>/<file>
//! ```
//!
//! A crash at any point of this leaves a directory that can be opened again the same way.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::BlockCache;
use crate::catalog::{Catalog, Table, Tables};
use crate::cell::{CallMemory, Cell};
use crate::clock::{Clock, Timestamps};
use crate::error::{COPIED_REMEDY, Error, Result};
use crate::fs::{DirLock, HandleCache, Vfs};
use crate::hfile::ReaderContext;
use crate::id::{FileId, RegionId, SeqId, Uuid};
use crate::manifest::{FileMeta, Manifest, ManifestState, RegionState};
use crate::memstore::{ChunkPool, Memstore};
use crate::metrics::{Counters, EventListener};
use crate::nonces;
use crate::options::{Background, Options};
use crate::region::{Region, RegionVersion, Shared};
use crate::schema::TableDescriptor;
use crate::seeded;
use crate::store::{Clip, DamagedFile, StoreContext, StoreFile, StoreVersion, file_path, store_dir};
use crate::wal::{LogSummary, Wal, WalOptions, recover, refuse_newer, require_segments};

mod check;
mod directory;
mod dump;
mod export;
mod moved;
mod orphans;
mod remedy;
mod restore;

pub use check::{CheckSummary, check};
pub use dump::dump;
pub use export::{Extracted, SnapshotFiles};
pub(crate) use moved::Moved;
use moved::Targets;
pub use restore::Restore;

/// Name of the lock file.
const LOCK_FILE: &str = "LOCK";

/// Margin after the high-water mark in the manifest, twice the time that the mark may lag behind.
/// Cells in the log with a time up to this are taken to be stamped by the server, not by a client.
pub(crate) const STAMP_SLACK_MS: u64 = 120_000;

/// Divisor of the memstores' limit: the memory of flushed memstores that may be kept for the next
/// ones besides. A region under load has one memstore in use and one in a flush, so most of the
/// released memory is soon in use again.
const KEPT_SHARE: u64 = 4;

/// A database that has been opened.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Tables and data.
    pub catalog: Catalog,
    /// Keeps other processes out.
    pub lock: Box<dyn DirLock>,
    /// The database's identity.
    pub cluster_id: Uuid,
}

/// Opens the database in `dir`, or creates one. Rows of regions in `moved` go to those that have them now.
pub(crate) fn open(
    dir: &Path,
    options: Options,
    vfs: &Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    listener: Arc<dyn EventListener>,
    moved: &Moved,
) -> Result<Opened> {
    let began = clock.mono();
    let claim = directory::claim(&**vfs, dir)?;
    let opened = refuse_newer(&**vfs, &wal_dir(dir))
        .and_then(|()| Manifest::open(Arc::clone(vfs), dir, options.manifest_roll_bytes));
    let (mut manifest, state) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            claim.undo(&**vfs);
            return Err(error);
        }
    };
    manifest.set_schema_bytes_max(options.totals.manifest_bytes);
    let counters = Arc::new(Counters::default());
    let store = StoreContext {
        vfs: Arc::clone(vfs),
        clock: Arc::clone(&clock),
        reader: ReaderContext {
            handles: HandleCache::new(Arc::clone(vfs), options.max_open_files),
            cache: Arc::new(BlockCache::new(options.block_cache_bytes)),
            counters: Arc::clone(&counters),
            direct_reads: options.direct_reads,
            calls: CallMemory::default(),
        },
        chunks: Arc::new(ChunkPool::new(options.memstore_total_bytes / KEPT_SHARE)),
        removals: Arc::default(),
        listener: Arc::clone(&listener),
    };
    require_tables(&**vfs, dir, &state)?;
    let regions = open_regions(dir, &state, &store)?;
    let damaged = report_damaged(&regions, &*listener);
    let orphans = orphans::move_away(&**vfs, dir, &state)?;
    let mut nonces = nonces::Replay::new(options.nonces_max);
    let Replayed { log, rows, stamped } =
        replay(&**vfs, dir, &state, &regions, moved, &mut nonces, &*listener)?;
    let wal = Wal::create(
        Arc::clone(vfs),
        WalOptions {
            dir: wal_dir(dir),
            segment_bytes: options.wal_segment_bytes,
            sync: options.wal_sync,
            clock: Arc::clone(&clock),
            commit_thread: options.background == Background::Threads,
        },
        log.last_segment,
        last_seq(&state, &log),
        Arc::clone(&counters),
        Arc::clone(&listener),
    )?;
    let greatest_ms = if seeded::is_on("times-go-back") {
        state.timestamp_ms.min(stamped)
    } else {
        state.timestamp_ms.max(stamped)
    };
    let timestamps = Timestamps::after(greatest_ms);
    timestamps.set_marked(state.timestamp_ms);
    listener.notice(&format!(
        "opened {} in {} ms: {} tables, {} regions, {} of them damaged, {} rows replayed from {} log segments, {orphans} orphaned files",
        dir.display(),
        clock.mono().saturating_sub(began).as_millis(),
        state.tables.len(),
        state.regions.len(),
        damaged,
        rows,
        log.segments,
    ));
    let cluster_id = state.cluster_id;
    let nonces = nonces.finish(clock.mono(), clock.wall_ms());
    let tables = tables_of(&state, regions);
    let shared = Shared::new(
        dir.to_path_buf(),
        options,
        clock,
        timestamps,
        wal,
        store,
        counters,
        listener,
        nonces,
        state.next_file,
    );
    let catalog = Catalog::new(Arc::new(shared), manifest, tables);
    catalog.note_new_segments()?;
    Ok(Opened {
        catalog,
        lock: claim.lock,
        cluster_id,
    })
}

fn wal_dir(dir: &Path) -> PathBuf {
    dir.join("wal")
}

/// Refuses a directory that should have store files but has no `tables/`.
fn require_tables(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<()> {
    let files: usize = state
        .regions
        .values()
        .flat_map(|region| region.files.values())
        .map(Vec::len)
        .sum();
    let tables = dir.join("tables");
    let there = || {
        vfs.exists(&tables)
            .map_err(|source| Error::io("looking for", &tables, source))
    };
    if files == 0 || there()? {
        return Ok(());
    }
    let what =
        format!("missing, with all {files} store files that the manifest names: is its file system mounted?");
    Err(Error::corrupt(&tables, 0, what))
}

/// Reports every region that lacks a store file; returns how many there are.
fn report_damaged(regions: &HashMap<RegionId, Arc<Region>>, listener: &dyn EventListener) -> usize {
    let refused = |region: &Arc<Region>| Some((region.id(), region.check_undamaged().err()?));
    let mut damaged: Vec<_> = regions.values().filter_map(refused).collect();
    damaged.sort_by_key(|(id, _)| *id);
    for (_, error) in &damaged {
        listener.background_error("opening store files", error);
    }
    if !damaged.is_empty() {
        listener.notice(COPIED_REMEDY);
    }
    damaged.len()
}

/// Every region of the state, with its files open and its memstores empty.
fn open_regions(
    dir: &Path,
    state: &ManifestState,
    store: &StoreContext,
) -> Result<HashMap<RegionId, Arc<Region>>> {
    let descriptors: BTreeMap<_, _> = state
        .tables
        .iter()
        .map(|(name, table)| (name, Arc::new(table.descriptor.clone())))
        .collect();
    let mut opener = FileOpener {
        dir,
        store,
        found: HashMap::new(),
        failures: Vec::new(),
    };
    let mut regions = HashMap::new();
    for (id, region) in &state.regions {
        let Some(descriptor) = descriptors.get(&region.meta.table) else {
            return Err(Error::corrupt(
                dir,
                0,
                format!(
                    "the manifest has region {id} of the unknown table {}",
                    region.meta.table
                ),
            ));
        };
        let version = opener.open_version(region, descriptor);
        regions.insert(*id, Region::new(&region.meta, version, region.clipped.clone()));
    }
    opener.finish()?;
    Ok(regions)
}

/// Opens files, each once however many regions share it.
struct FileOpener<'a> {
    dir: &'a Path,
    store: &'a StoreContext,
    found: HashMap<FileId, Found>,
    /// Errors that refuse the start.
    failures: Vec<Error>,
}

/// The result of opening a file.
#[derive(Clone)]
enum Found {
    Open(Arc<StoreFile>),
    Damaged(Arc<DamagedFile>),
}

impl FileOpener<'_> {
    fn open_version(&mut self, region: &RegionState, descriptor: &Arc<TableDescriptor>) -> RegionVersion {
        let clip = Clip {
            start: region.meta.start.clone(),
            end: region.meta.end.clone(),
        };
        let mut stores = Vec::with_capacity(descriptor.families.len());
        for family in &descriptor.families {
            let metas = region.files.get(&family.name).map_or(&[][..], Vec::as_slice);
            let (mut files, mut damaged) = (Vec::with_capacity(metas.len()), Vec::new());
            for meta in metas {
                match self.open_file(meta, &family.name, clip.clone()) {
                    Some(Found::Open(file)) => files.push(file),
                    Some(Found::Damaged(file)) => damaged.push(file),
                    None => {}
                }
            }
            let memstore = Memstore::new(Arc::clone(&self.store.chunks));
            let store = StoreVersion::new(Arc::new(family.clone()), files, memstore);
            stores.push(Arc::new(store.with_damaged(damaged)));
        }
        RegionVersion {
            table: Arc::clone(descriptor),
            stores,
        }
    }

    /// Opens a file, or shares it if it is open. `None`: the start is refused.
    fn open_file(&mut self, meta: &FileMeta, family: &[u8], clip: Clip) -> Option<Found> {
        match self.found.get(&meta.id) {
            Some(Found::Open(shared)) => return Some(Found::Open(shared.reclip(clip))),
            Some(damaged) => return Some(damaged.clone()),
            None => {}
        }
        let dir = store_dir(self.dir, &meta.dir_table, family);
        let open = || StoreFile::open(self.store, &dir, meta.clone(), clip.clone());
        // An I/O error is retried once: a passing failure does not mean that the file is lost.
        let opened = open().or_else(|error| match error {
            Error::Io { .. } => open(),
            error => Err(error),
        });
        let found = match opened {
            Ok(file) => Found::Open(file),
            Err(error) => {
                let Some(damaged) = DamagedFile::of_error(&file_path(&dir, meta.id), &error) else {
                    self.failures.push(error);
                    return None;
                };
                Found::Damaged(Arc::new(damaged))
            }
        };
        self.found.insert(meta.id, found.clone());
        Some(found)
    }

    /// Fails if the state of a file could not be determined, and names all such files.
    fn finish(mut self) -> Result<()> {
        match self.failures.len() {
            0 => Ok(()),
            1 => Err(self.failures.remove(0)),
            count => {
                let list: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
                let what = format!("{count} store files cannot be opened: {}", list.join("; "));
                Err(Error::corrupt(self.dir.join("tables"), 0, what))
            }
        }
    }
}

/// The result of the replay.
struct Replayed {
    log: LogSummary,
    /// Rows of the log that were in no store file: none after a clean stop.
    rows: u64,
    /// The greatest timestamp in them that counts as assigned by the server.
    stamped: u64,
}

/// Replays the rows of the log that are in no store file into the memstores.
fn replay(
    vfs: &dyn Vfs,
    dir: &Path,
    state: &ManifestState,
    regions: &HashMap<RegionId, Arc<Region>>,
    moved: &Moved,
    nonces: &mut nonces::Replay,
    listener: &dyn EventListener,
) -> Result<Replayed> {
    let wal_dir = wal_dir(dir);
    require_log(vfs, &wal_dir, state)?;
    let stamps_end = i64::try_from(state.timestamp_ms.saturating_add(STAMP_SLACK_MS)).unwrap_or(i64::MAX);
    let targets = Targets::new(state, regions, moved);
    let (mut stamped, mut rows) = (0, 0);
    let log = recover(vfs, &wal_dir, SeqId::ZERO, listener, &mut |edit| {
        let id = edit.region();
        // Also of regions that are flushed or gone.
        for (nonce, applied_ms) in edit.nonces() {
            nonces.note(nonce, applied_ms, edit.first_seq());
        }
        let Some(target) = targets.of(id) else {
            if id.0 >= state.next_region {
                let seq = edit.first_seq();
                let what = format!("the edit with sequence id {seq} is of region {id}, which never was");
                return Err(Error::corrupt(&wal_dir, 0, what));
            }
            return Ok(());
        };
        // Checked by cell: an edit may have timestamps of clients beside assigned ones.
        let assigned = |cell: &Cell<'_>| Some(cell.key.timestamp()).filter(|time| *time <= stamps_end);
        let mut row = SeqId::ZERO;
        let cells = edit
            .cells()
            .map(|(_, cell)| cell)
            .filter(|cell| !target.has_in_file(cell))
            .inspect(|cell| {
                // Each row has a sequence id of its own, and its cells follow each other.
                if cell.seq > row {
                    (row, rows) = (cell.seq, rows + 1);
                }
                stamped = assigned(cell).map_or(stamped, |time| stamped.max(time));
            });
        target.insert(cells);
        Ok(())
    })?;
    Ok(Replayed {
        log,
        rows,
        stamped: u64::try_from(stamped).unwrap_or_default(),
    })
}

/// Refuses a log without segments that the manifest says to be there.
fn require_log(vfs: &dyn Vfs, wal_dir: &Path, state: &ManifestState) -> Result<()> {
    match state.log {
        (0, _) => Ok(()),
        _ if seeded::is_on("missing-ends-of-log-believed") => Ok(()),
        (first, last) => require_segments(vfs, wal_dir, first, last),
    }
}

/// The greatest assigned sequence id, as far as the disk shows.
fn last_seq(state: &ManifestState, log: &LogSummary) -> SeqId {
    let mut last = if seeded::is_on("sequence-ids-again") {
        state.seq
    } else {
        state.seq.max(log.last_seq)
    };
    for region in state.regions.values() {
        last = last.max(region.flushed);
        for file in region.files.values().flatten() {
            last = last.max(file.max_seq);
        }
    }
    // Those of an imported snapshot may be in no region and not in the log.
    for region in state.snapshots.values().flat_map(|snapshot| &snapshot.regions) {
        last = last.max(region.flushed);
    }
    last
}

fn tables_of(state: &ManifestState, regions: HashMap<RegionId, Arc<Region>>) -> Tables {
    let mut by_table: BTreeMap<_, Vec<Arc<Region>>> = BTreeMap::new();
    for region in regions.into_values() {
        by_table
            .entry(region.info().table.clone())
            .or_default()
            .push(region);
    }
    let mut tables = Tables::default();
    tables.namespaces.clone_from(&state.namespaces);
    tables.snapshots.clone_from(&state.snapshots);
    for (name, meta) in &state.tables {
        let mut regions = by_table.remove(name).unwrap_or_default();
        regions.sort_by(|left, right| left.info().start.cmp(&right.info().start));
        let descriptor = match regions.first() {
            Some(region) => Arc::clone(&region.version().table),
            None => Arc::new(meta.descriptor.clone()),
        };
        tables.put(Table::new(descriptor, meta.state, regions));
    }
    tables
}
