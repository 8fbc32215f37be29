//! The files of a snapshot, for programs that copy them elsewhere.
//!
//! A snapshot's files are links of its own that never change and stay until it is deleted. So they can be
//! read beside a running server: only the manifest has to be read while the server may append to it, and an
//! edit that is being written is for a reader a torn tail. A snapshot that is deleted meanwhile is an error
//! for the next of its files.
//!
//! Nothing in the database is changed, except the mode of files by callers that link them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::BlockCache;
use crate::cell::CallMemory;
use crate::checksum::crc32c_append;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::fs::{HandleCache, Open, Vfs};
use crate::hfile::ReaderContext;
use crate::id::{FileId, Uuid};
use crate::manifest::{self, FileMeta, SnapshotMeta, SnapshotRegion};
use crate::metrics::{Counters, NoListener};
use crate::region::RegionInfo;
use crate::schema::FamilyDescriptor;
use crate::store::{Clip, NewFile, StoreContext, StoreFile, extract, file_path, snapshot_store_dir};

use super::directory;

/// Cache of index and bloom blocks while files are verified.
const CACHE_BYTES: u64 = 64 << 20;

/// Bytes of a copy that are read at a time.
const COPY_BYTES: usize = 1 << 20;

/// Times that the manifest is read: a running server may replace its file while it is read.
const ATTEMPTS: usize = 5;

/// A snapshot of a database whose server may run.
#[derive(Debug)]
pub struct SnapshotFiles {
    dir: PathBuf,
    context: StoreContext,
    snapshot: Arc<SnapshotMeta>,
}

/// A file that was made of a part of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// Where it is.
    pub path: PathBuf,
    /// Its uuid.
    pub uuid: Uuid,
    /// Its size.
    pub bytes: u64,
}

impl SnapshotFiles {
    /// The snapshot of that name of the database in `dir`.
    pub fn open(vfs: &Arc<dyn Vfs>, dir: &Path, name: &str) -> Result<Self> {
        let snapshots = list(&**vfs, dir)?;
        let Some(snapshot) = snapshots.into_iter().find(|snapshot| snapshot.name == name) else {
            return Err(Error::NoSuchSnapshot(name.to_owned()));
        };
        Ok(Self {
            dir: dir.to_owned(),
            context: context(vfs),
            snapshot,
        })
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &SnapshotMeta {
        &self.snapshot
    }

    /// A region of the snapshot. Its names are made of the time of the snapshot.
    pub fn region_info(&self, region: &SnapshotRegion) -> RegionInfo {
        let table = self.snapshot.descriptor.name.clone();
        RegionInfo::named(table, &region.start, &region.end, self.snapshot.created_ms)
    }

    /// Where a file of the snapshot is.
    pub fn path(&self, family: &[u8], file: &FileMeta) -> PathBuf {
        file_path(&self.store_dir(family, file), file.id)
    }

    /// Verifies a file: size, identity, every block and cell, and the checksum of the whole file.
    pub fn verify(&self, family: &[u8], file: &FileMeta) -> Result<()> {
        let opened = self.store_file(family, file, Clip::default())?;
        let verified = opened.reader().verify(Some(file.checksum));
        self.context.reader.cache.remove_file(file.id);
        verified
    }

    /// Verifies a copy of a file by its size and the checksum of the whole file.
    pub fn verify_copy(&self, file: &FileMeta, copy: &Path) -> Result<()> {
        let reading = |source| Error::io("reading", copy, source);
        let opened = self.context.vfs.open(copy, Open::Read).map_err(reading)?;
        let bytes = opened.len().map_err(reading)?;
        if bytes != file.bytes {
            let what = format!("{bytes} bytes, the file that it is a copy of has {}", file.bytes);
            return Err(Error::corrupt(copy, 0, what));
        }
        let (mut sum, mut at) = (0, 0);
        let mut piece = vec![0; COPY_BYTES];
        while at < bytes {
            let count = (bytes - at).min(COPY_BYTES as u64) as usize;
            opened.read_exact_at(&mut piece[..count], at).map_err(reading)?;
            sum = crc32c_append(sum, &piece[..count]);
            at += count as u64;
        }
        if sum == file.checksum {
            return Ok(());
        }
        let what = format!(
            "its checksum is {sum:08x}, that of the file that it is a copy of {:08x}",
            file.checksum
        );
        Err(Error::corrupt(copy, 0, what))
    }

    /// Writes those rows of a file that are in this region into `to`, a directory that exists, and verifies
    /// them. `None` if there are none.
    pub fn extract(
        &self,
        region: &SnapshotRegion,
        family: &FamilyDescriptor,
        file: &FileMeta,
        to: &Path,
    ) -> Result<Option<Extracted>> {
        let clip = Clip {
            start: region.start.clone(),
            end: region.end.clone(),
        };
        let opened = self.store_file(&family.name, file, clip)?;
        let target = NewFile {
            // Only its name before it gets that of its uuid.
            id: FileId(u64::MAX),
            dir: to.to_owned(),
            table: self.snapshot.descriptor.name.clone(),
        };
        let written = extract(&self.context, &opened, family, &target)?;
        for id in [file.id, target.id] {
            self.context.reader.cache.remove_file(id);
        }
        Ok(written.map(|written| Extracted {
            path: file_path(to, target.id),
            uuid: written.meta.uuid,
            bytes: written.meta.bytes,
        }))
    }

    fn store_dir(&self, family: &[u8], file: &FileMeta) -> PathBuf {
        snapshot_store_dir(&self.dir, &self.snapshot.name, &file.dir_table, family)
    }

    fn store_file(&self, family: &[u8], file: &FileMeta, clip: Clip) -> Result<Arc<StoreFile>> {
        StoreFile::open(&self.context, &self.store_dir(family, file), file.clone(), clip)
    }
}

/// All snapshots of a database whose server may run.
pub(super) fn list(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<Arc<SnapshotMeta>>> {
    directory::require_ours(vfs, dir)?;
    let mut attempt = 1;
    loop {
        match manifest::verify(vfs, dir) {
            Ok(verified) => return Ok(verified.state.snapshots.into_values().collect()),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => attempt += 1,
        }
    }
}

fn context(vfs: &Arc<dyn Vfs>) -> StoreContext {
    StoreContext {
        vfs: Arc::clone(vfs),
        clock: Arc::new(SystemClock::new()),
        reader: ReaderContext {
            handles: HandleCache::new(Arc::clone(vfs), usize::MAX),
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
