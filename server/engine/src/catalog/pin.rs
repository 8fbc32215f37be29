//! A pin: one read point over everything that the database holds, and the files that make it, which stay on
//! the disk until the pin is dropped. For backups.
//!
//! Under the manifest's lock:
//! 1. the manifest's state is copied;
//! 2. the log is synced, and its end noted ([`Wal::synced_end`]);
//! 3. the store files of all regions are held, links of snapshots are kept from removal, and so are the
//!    segments of the log.
//!
//! A pin names the files that a power cut at that moment would leave: a start on a copy of it replays the log
//! and has every row up to [`Pin::position`], and no other. Regions are created and files installed under
//! the manifest's lock, so the log has no edit of a region that the state does not have, and the state has
//! no file with rows behind the log's end.
//!
//! Writers wait for one sync, as they do for the sync of a group; readers for nothing. Rows without a place
//! in the log (SKIP_WAL) are in a pin when they are in a store file.
//!
//! [`Wal::synced_end`]: crate::wal::Wal::synced_end

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::Catalog;
use super::turns::Turn;
use crate::error::{Error, Result};
use crate::id::{FileId, SeqId, Uuid};
use crate::manifest::{FileMeta, ManifestState, SnapshotMeta, encode_snapshot};
use crate::store::{StoreFile, file_path, snapshot_store_dir, store_dir};
use crate::wal::{LogEnd, LogHold};

/// A store file of a pin. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// Path below the data directory.
    pub path: PathBuf,
    /// The uuid in its file info. Two files with the same uuid and checksum have the same bytes.
    pub uuid: Uuid,
    /// Size of the file.
    pub bytes: u64,
    /// CRC-32C of the whole file.
    pub checksum: u32,
}

/// A segment of the log in a pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedSegment {
    /// Path below the data directory.
    pub path: PathBuf,
    /// Number of the segment.
    pub number: u64,
    /// Bytes that belong to the pin: for the open segment those that were durable.
    pub bytes: u64,
    /// The length that a copy of the file must have at least, with zeros behind the bytes: an open segment
    /// that is shorter than it was preallocated counts as damaged.
    pub length: u64,
}

/// One read point over everything, with its files.
#[derive(Debug)]
pub struct Pin {
    catalog: Arc<Catalog>,
    state: ManifestState,
    end: LogEnd,
    turns: u64,
    wall_ms: u64,
    /// Keep the files of regions on the disk.
    held: Vec<Arc<StoreFile>>,
    /// Keeps the segments.
    hold: LogHold,
}

impl Pin {
    /// The sequence id of the last edit in it.
    pub fn position(&self) -> SeqId {
        self.end.last_seq
    }

    /// The end of the log.
    pub fn log_end(&self) -> LogEnd {
        self.end
    }

    /// How many changes of the schema and the like there were before it. The log between two
    /// points with the same number goes with the state of the earlier one.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The wall clock's milliseconds when it was made.
    pub fn wall_ms(&self) -> u64 {
        self.wall_ms
    }

    /// The database's identity.
    pub fn cluster_id(&self) -> Uuid {
        self.state.cluster_id
    }

    /// State of the manifest, for [`Restore::decode`](crate::engine::Restore::decode).
    pub fn manifest(&self) -> Vec<u8> {
        encode_snapshot(&self.state)
    }

    /// All store files, those of snapshots among them, by path.
    pub fn files(&self) -> Vec<PinnedFile> {
        files_of(&self.state)
    }

    /// The segments of the log, oldest first.
    pub fn segments(&self) -> Result<Vec<PinnedSegment>> {
        let wal = &self.catalog.shared.wal;
        (self.hold.segment()..=self.end.segment)
            .map(|number| {
                let (path, length, bytes) = wal.segment_file(number)?;
                let is_open = number == self.end.segment;
                Ok(PinnedSegment {
                    path,
                    number,
                    bytes: if is_open { self.end.bytes } else { bytes },
                    length: if is_open {
                        length.max(self.end.bytes)
                    } else {
                        bytes
                    },
                })
            })
            .collect()
    }

    /// Number of store files that are kept for it.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.catalog.release_links();
    }
}

/// All store files that a state names.
pub(crate) fn files_of(state: &ManifestState) -> Vec<PinnedFile> {
    let mut files = BTreeMap::new();
    let mut add = |dir: &Path, meta: &FileMeta| {
        let path = file_path(dir, meta.id);
        let file = PinnedFile {
            path: path.clone(),
            uuid: meta.uuid,
            bytes: meta.bytes,
            checksum: meta.checksum,
        };
        files.insert(path, file);
    };
    let root = Path::new("");
    for region in state.regions.values() {
        for (family, metas) in &region.files {
            for meta in metas {
                add(&store_dir(root, &meta.dir_table, family), meta);
            }
        }
    }
    for snapshot in state.snapshots.values() {
        for (_, (family, meta)) in snapshot.files() {
            let dir = snapshot_store_dir(root, &snapshot.name, &meta.dir_table, family);
            add(&dir, meta);
        }
    }
    files.into_values().collect()
}

/// Links of snapshots that pins need. A snapshot that is removed meanwhile leaves its links to the drop of
/// the last pin; after a crash they go to `orphans/`.
#[derive(Debug, Default)]
pub(super) struct PinnedLinks(Mutex<Links>);

#[derive(Debug, Default)]
struct Links {
    pins: usize,
    /// Removed snapshots whose links are still there.
    removed: Vec<SnapshotMeta>,
}

impl PinnedLinks {
    fn keep(&self) {
        self.0.lock().pins += 1;
    }

    /// Takes over the removal of a snapshot's links; `false` without pins.
    pub(super) fn defer(&self, snapshot: &SnapshotMeta) -> bool {
        let mut links = self.0.lock();
        if links.pins > 0 {
            links.removed.push(snapshot.clone());
        }
        links.pins > 0
    }

    /// Ends a pin. Returns the snapshots whose links may go.
    fn release(&self) -> Vec<SnapshotMeta> {
        let mut links = self.0.lock();
        links.pins -= 1;
        if links.pins > 0 {
            return Vec::new();
        }
        std::mem::take(&mut links.removed)
    }
}

impl Catalog {
    /// Pins everything. Refused while a region is damaged: the pin would lack its files.
    pub(crate) fn pin(self: &Arc<Self>) -> Result<Pin> {
        let manifest = self.manifest.lock();
        let state = manifest.state().clone();
        let mut held = BTreeMap::<FileId, Arc<StoreFile>>::new();
        for region in self.tables().regions() {
            region.check_undamaged()?;
            for store in &region.version().stores {
                held.extend(store.files.iter().map(|file| (file.id(), Arc::clone(file))));
            }
        }
        let named = state.regions.values().flat_map(|region| region.files.values());
        for meta in named.flatten() {
            if !held.contains_key(&meta.id) {
                let dir = Path::new("tables").join(meta.dir_table.to_string());
                let what = "the manifest names the file, and no region has it open";
                return Err(Error::corrupt(file_path(&dir, meta.id), 0, what));
            }
        }
        let end = self.shared.wal.synced_end()?;
        let first = match state.log.0 {
            0 => self.shared.wal.segments().0,
            first => first,
        };
        let hold = self.shared.wal.hold(first);
        self.pinned_links.keep();
        Ok(Pin {
            turns: self.turns.count(),
            wall_ms: self.shared.clock.wall_ms(),
            catalog: Arc::clone(self),
            state,
            end,
            held: held.into_values().collect(),
            hold,
        })
    }

    /// The durable end of the log, with the number of turns before it.
    pub(crate) fn log_end(&self) -> Result<(LogEnd, u64)> {
        let _manifest = self.manifest.lock();
        let end = self.shared.wal.synced_end()?;
        Ok((end, self.turns.count()))
    }

    /// Keeps the log from the first segment on that the manifest names, and turns from now on.
    pub(crate) fn hold_log(&self) -> LogHold {
        let manifest = self.manifest.lock();
        self.turns.keep();
        let first = match manifest.state().log.0 {
            0 => self.shared.wal.segments().0,
            first => first,
        };
        self.shared.wal.hold(first)
    }

    /// The turns behind that one, oldest first; `None` if they are not kept.
    pub(crate) fn turns_after(&self, number: u64) -> Option<Vec<Turn>> {
        let _manifest = self.manifest.lock();
        self.turns.after(number)
    }

    /// Number of turns.
    pub(crate) fn turn_count(&self) -> u64 {
        let _manifest = self.manifest.lock();
        self.turns.count()
    }

    /// Number of turns that are noted; one may be durable and not noted yet.
    pub(crate) fn noted_turns(&self) -> u64 {
        self.turns.count()
    }

    /// Keeps turns from now on.
    pub(crate) fn keep_turns(&self) {
        self.turns.keep();
    }

    /// Makes the database follow another one, or no more: meanwhile it splits, merges and forgets nothing by
    /// itself.
    pub(crate) fn set_follows(&self, copy: Option<u16>) {
        let follows = copy.map_or(0, |copy| 1 + u32::from(copy));
        self.follows.store(follows, Ordering::Release);
    }

    /// Number of the copy that follows another database; `None` for one that follows none.
    pub(crate) fn follows(&self) -> Option<u16> {
        let follows = self.follows.load(Ordering::Acquire).checked_sub(1)?;
        u16::try_from(follows).ok()
    }

    /// Ends a pin's need for links.
    fn release_links(&self) {
        let removed = self.pinned_links.release();
        if removed.is_empty() {
            return;
        }
        // No snapshot is taken meanwhile. One of the same name as a removed one may have been taken since,
        // with links under the same names, which lead to the same files.
        let _schema = self.schema.lock();
        let root = &self.shared.dir;
        let mut named = BTreeSet::new();
        for snapshot in self.tables().snapshots.values() {
            for (id, (family, file)) in snapshot.files() {
                let dir = snapshot_store_dir(root, &snapshot.name, &file.dir_table, family);
                named.insert(file_path(&dir, id));
            }
        }
        for snapshot in &removed {
            self.remove_links(snapshot, |path| !named.contains(path));
        }
    }
}
