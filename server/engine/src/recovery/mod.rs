//! Opening a database.
//!
//! 1. Lock the directory; a second process is refused.
//! 2. Read the manifest: what there should be.
//! 3. Open every store file it names. A file that is missing, has another identity or another size: refuse, and name all
//!    such files. Files that nobody refers to are moved to `orphans/`, not deleted. Files of snapshots are not opened: one that is
//!    missing is found when the snapshot is used, or by a check.
//! 4. Replay the log, if all segments that the manifest knows of are there: rows newer than what their region has flushed go to its
//!    memstores. Rows of a region that is gone were dropped, or flushed before a split or merge. The log's last segment is
//!    written anew and sealed before this ends (see `wal`), so nothing is served that only the page cache holds.
//! 5. Begin the next log segment, behind every sequence id that was ever seen, and state in the manifest which segments there are.
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
use crate::cell::CallMemory;
use crate::clock::{Clock, Timestamps};
use crate::error::{Error, Result};
use crate::fs::{DirLock, Vfs};
use crate::hfile::ReaderContext;
use crate::id::{FileId, RegionId, SeqId, Uuid};
use crate::manifest::{FileMeta, Manifest, ManifestState, RegionState};
use crate::memstore::{ChunkPool, Memstore};
use crate::metrics::{Counters, EventListener};
use crate::options::{Background, Options};
use crate::region::{Region, RegionVersion, Shared, insert_cells};
use crate::schema::TableDescriptor;
use crate::store::{Clip, StoreContext, StoreFile, StoreVersion, store_dir};
use crate::wal::{LogSummary, Wal, WalOptions, recover, require_segments};

mod check;
mod dump;
mod orphans;

pub use check::{CheckSummary, check};
pub use dump::dump;

/// Name of the lock file.
const LOCK_FILE: &str = "LOCK";

/// Cells in the log are taken to have their time from the server, not from a client, up to this much after the high-water
/// mark in the manifest: twice what the mark may lag behind.
const STAMP_SLACK_MS: u64 = 120_000;

/// The part of the memstores' limit that memory of flushed ones, kept for the next, may take besides. A region under load has one memstore in use and one in
/// a flush, so the larger part of what it gives back is in use again soon.
const KEPT_SHARE: u64 = 4;

/// A database that has been opened.
#[derive(Debug)]
pub struct Opened {
    /// Tables and data.
    pub catalog: Catalog,
    /// Keeps other processes out.
    pub lock: Box<dyn DirLock>,
    /// The database's identity.
    pub cluster_id: Uuid,
}

/// Opens the database in `dir`, or creates one.
pub fn open(
    dir: &Path,
    options: Options,
    vfs: &Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    listener: Arc<dyn EventListener>,
) -> Result<Opened> {
    let began = clock.mono();
    create_dir(&**vfs, dir)?;
    let lock = lock_dir(&**vfs, dir)?;
    let (manifest, state) = Manifest::open(Arc::clone(vfs), dir, options.manifest_roll_bytes)?;
    let counters = Arc::new(Counters::default());
    let store = StoreContext {
        vfs: Arc::clone(vfs),
        clock: Arc::clone(&clock),
        reader: ReaderContext {
            cache: Arc::new(BlockCache::new(options.block_cache_bytes)),
            counters: Arc::clone(&counters),
            direct_reads: options.direct_reads,
            calls: CallMemory::default(),
        },
        chunks: Arc::new(ChunkPool::new(options.memstore_total_bytes / KEPT_SHARE)),
        removals: Arc::default(),
        listener: Arc::clone(&listener),
    };
    let regions = open_regions(dir, &state, &store)?;
    let orphans = orphans::move_away(&**vfs, dir, &state)?;
    let (log, stamped) = replay(&**vfs, dir, &state, &regions, &*listener)?;
    let wal = Wal::create(
        Arc::clone(vfs),
        WalOptions {
            dir: wal_dir(dir),
            segment_bytes: options.wal_segment_bytes,
            sync: options.wal_sync,
            commit_thread: options.background == Background::Threads,
        },
        log.last_segment,
        last_seq(&state, &log),
        Arc::clone(&counters),
        Arc::clone(&listener),
    )?;
    let timestamps = Timestamps::default();
    timestamps.raise_to(state.timestamp_ms.max(stamped));
    listener.notice(&format!(
        "opened {} in {} ms: {} tables, {} regions, {} rows in {} log segments, {orphans} orphaned files",
        dir.display(),
        clock.mono().saturating_sub(began).as_millis(),
        state.tables.len(),
        state.regions.len(),
        log.rows,
        log.segments,
    ));
    let cluster_id = state.cluster_id;
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
        state.next_file,
    );
    let catalog = Catalog::new(Arc::new(shared), manifest, tables);
    catalog.note_new_segments()?;
    Ok(Opened {
        catalog,
        lock,
        cluster_id,
    })
}

/// Makes sure that the data directory is there for good: a name is durable once the directory that holds it is synced.
fn create_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let exists = |path: &Path| {
        vfs.exists(path)
            .map_err(|source| Error::io("looking for", path, source))
    };
    let mut levels = vec![dir];
    for level in dir.ancestors().skip(1) {
        if level.as_os_str().is_empty() || exists(level)? {
            break;
        }
        levels.push(level);
    }
    vfs.create_dir_all(dir)
        .map_err(|source| Error::io("creating", dir, source))?;
    for level in levels {
        let parent = level
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        match vfs.sync_dir(parent) {
            // A directory that was made for us beforehand may lie in one that we may not read; whoever made it saw to it.
            Err(source) if source.kind() != std::io::ErrorKind::PermissionDenied => {
                return Err(Error::io("syncing", parent, source));
            }
            _ => {}
        }
    }
    Ok(())
}

fn lock_dir(vfs: &dyn Vfs, dir: &Path) -> Result<Box<dyn DirLock>> {
    let path = dir.join(LOCK_FILE);
    vfs.lock(&path)
        .map_err(|source| Error::io("locking", &path, source))?
        .ok_or_else(|| Error::Locked(dir.to_path_buf()))
}

fn wal_dir(dir: &Path) -> PathBuf {
    dir.join("wal")
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
        open: HashMap::new(),
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
        regions.insert(
            *id,
            Region::new(region.meta.clone(), version, region.clipped.clone()),
        );
    }
    opener.finish()?;
    Ok(regions)
}

/// Opens files, each once however many regions share it, and collects what is wrong with them.
struct FileOpener<'a> {
    dir: &'a Path,
    store: &'a StoreContext,
    open: HashMap<FileId, Arc<StoreFile>>,
    failures: Vec<Error>,
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
            let files = metas
                .iter()
                .filter_map(|meta| self.open_file(meta, &family.name, clip.clone()))
                .collect();
            let memstore = Memstore::new(Arc::clone(&self.store.chunks));
            stores.push(Arc::new(StoreVersion::new(
                Arc::new(family.clone()),
                files,
                memstore,
            )));
        }
        RegionVersion {
            table: Arc::clone(descriptor),
            stores,
        }
    }

    fn open_file(&mut self, meta: &FileMeta, family: &[u8], clip: Clip) -> Option<Arc<StoreFile>> {
        if let Some(shared) = self.open.get(&meta.id) {
            return Some(shared.reclip(clip));
        }
        let dir = store_dir(self.dir, &meta.dir_table, family);
        match StoreFile::open(self.store, &dir, meta.clone(), clip) {
            Ok(file) => {
                self.open.insert(meta.id, Arc::clone(&file));
                Some(file)
            }
            Err(error) => {
                self.failures.push(error);
                None
            }
        }
    }

    /// Refuses when a file could not be opened, naming all of them.
    fn finish(mut self) -> Result<()> {
        match self.failures.len() {
            0 => Ok(()),
            1 => Err(self.failures.remove(0)),
            count => {
                let list: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
                let what = format!("{count} store files cannot be used: {}", list.join("; "));
                Err(Error::corrupt(self.dir.join("tables"), 0, what))
            }
        }
    }
}

/// Brings the rows of the log that are in no store file back into the memstores. Returns what the log holds, and the newest
/// time in it that the server is taken to have assigned.
fn replay(
    vfs: &dyn Vfs,
    dir: &Path,
    state: &ManifestState,
    regions: &HashMap<RegionId, Arc<Region>>,
    listener: &dyn EventListener,
) -> Result<(LogSummary, u64)> {
    let wal_dir = wal_dir(dir);
    require_log(vfs, &wal_dir, state)?;
    let stamps_end = i64::try_from(state.timestamp_ms.saturating_add(STAMP_SLACK_MS)).unwrap_or(i64::MAX);
    let mut stamped = 0;
    let summary = recover(vfs, &wal_dir, SeqId::ZERO, listener, &mut |edit| {
        let id = edit.region();
        let Some(region) = regions.get(&id) else {
            if id.0 >= state.next_region {
                let seq = edit.first_seq();
                let what = format!("the edit with sequence id {seq} is of region {id}, which never was");
                return Err(Error::corrupt(&wal_dir, 0, what));
            }
            return Ok(());
        };
        let flushed = state
            .regions
            .get(&id)
            .map_or(SeqId::ZERO, |region| region.flushed);
        let cells = edit
            .cells()
            .map(|(_, cell)| cell)
            .filter(|cell| cell.seq > flushed);
        if let Some(newest) = insert_cells(&region.version(), cells) {
            region.note_dirty(|| 0);
            if newest <= stamps_end {
                stamped = stamped.max(newest);
            }
        }
        Ok(())
    })?;
    Ok((summary, u64::try_from(stamped).unwrap_or_default()))
}

/// Refuses a log without segments that the manifest says to be there.
fn require_log(vfs: &dyn Vfs, wal_dir: &Path, state: &ManifestState) -> Result<()> {
    match state.log {
        (0, _) => Ok(()),
        (first, last) => require_segments(vfs, wal_dir, first, last),
    }
}

/// The greatest sequence id that was ever given out, as far as anything on disk tells.
fn last_seq(state: &ManifestState, log: &LogSummary) -> SeqId {
    let mut last = state.seq.max(log.last_seq);
    for region in state.regions.values() {
        last = last.max(region.flushed);
        for file in region.files.values().flatten() {
            last = last.max(file.max_seq);
        }
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
        tables.put(Table {
            descriptor,
            state: meta.state,
            regions,
        });
    }
    tables
}
