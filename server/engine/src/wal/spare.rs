//! The spare: a preallocated file that will become the next segment.
//!
//! It lies beside the segments under a name of its own, holds zeros and is not durable: a start
//! removes it. A roll gives it a header, then syncs and renames it, perhaps after groups were
//! written to it (`roll`); a start completes a roll that was cut short. So a roll needs no new space
//! from the disk, and the next spare is allocated when no write depends on it: a disk that refuses
//! leaves the log without a spare, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::{File, Open, Vfs};
use crate::{Error, Result};

use super::layout;
use super::layout::{HEADER_BLOCK_BYTES, room_of};

/// Name of the file. Not the form of a segment's name.
pub(super) const NAME: &str = "spare.wal.new";

/// A file that will become a segment.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) file: Arc<dyn File>,
    pub(super) path: PathBuf,
    /// Bytes that are preallocated.
    pub(super) bytes: u64,
}

impl Spare {
    /// Preallocates a file of `bytes`, at least a header's. Leaves none behind when that fails.
    pub(super) fn create(vfs: &dyn Vfs, dir: &Path, bytes: u64) -> Result<Self> {
        let path = dir.join(NAME);
        let bytes = bytes.max(HEADER_BLOCK_BYTES as u64);
        let preallocating = |e| Error::io("preallocating", &path, e);
        // A file system may reserve all its free space before it reports that there is not enough,
        // and a concurrent flush would find none.
        let space = vfs
            .space(dir)
            .map_err(|e| Error::io("asking for the free space of", dir, e))?;
        if space.available_bytes < bytes {
            return Err(preallocating(std::io::ErrorKind::StorageFull.into()));
        }
        layout::remove_if_there(vfs, &path)?;
        let file = vfs
            .open(&path, Open::CreateNew)
            .map_err(|e| Error::io("creating", &path, e))?;
        if let Err(error) = file.allocate(bytes) {
            drop(file);
            // A file that cannot be removed now is removed by the next attempt, or by the next
            // start.
            let _ = vfs.remove_file(&path);
            return Err(preallocating(error));
        }
        Ok(Self { file, path, bytes })
    }

    /// Preallocates more. Without effect when that fails.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<()> {
        self.file
            .allocate(bytes)
            .map_err(|e| Error::io("preallocating", &self.path, e))?;
        self.bytes = bytes;
        Ok(())
    }

    /// Bytes of frames that it can take.
    pub(super) fn room(&self) -> u64 {
        room_of(self.bytes)
    }
}
