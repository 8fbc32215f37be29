//! `basalt dump`: prints a store file, log segment or manifest for people.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use crate::cache::BlockCache;
use crate::cell::CallMemory;
use crate::error::{Error, Result};
use crate::fs::{HandleCache, Open, Vfs};
use crate::hfile::{self, Reader, ReaderContext};
use crate::id::FileId;
use crate::metrics::Counters;
use crate::{manifest, wal};

/// Room for the few blocks that printing one file needs at a time.
const CACHE_BYTES: u64 = 16 << 20;

/// Kind of a file, by its first bytes: names can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Manifest,
    Wal,
    /// HFiles have their magic at the end; a file with an unknown beginning is read as one, and the
    /// reader refuses it if it is none.
    StoreFile,
}

/// Prints `file` to `out`. `cells` prints the cells of a store file or log segment too. Stops with
/// an error at the first damage, after printing the part before it.
pub fn dump(vfs: &Arc<dyn Vfs>, file: &Path, cells: bool, out: &mut dyn Write) -> Result<()> {
    match kind(&**vfs, file)? {
        FileKind::Manifest => {
            let mut text = String::new();
            let dumped = manifest::dump(&**vfs, file, &mut text);
            out.write_all(text.as_bytes())
                .map_err(|source| Error::io("printing", file, source))?;
            dumped
        }
        FileKind::Wal => wal::dump(&**vfs, file, cells, out),
        FileKind::StoreFile => {
            let context = ReaderContext {
                handles: HandleCache::new(Arc::clone(vfs), usize::MAX),
                cache: Arc::new(BlockCache::new(CACHE_BYTES)),
                counters: Arc::new(Counters::default()),
                direct_reads: false,
                calls: CallMemory::default(),
            };
            let reader = Reader::open(file.to_path_buf(), FileId::default(), context)?;
            hfile::dump(&reader, cells, out)
        }
    }
}

fn kind(vfs: &dyn Vfs, file: &Path) -> Result<FileKind> {
    let failed = |source| Error::io("reading", file, source);
    let mut magic = [0; 8];
    let opened = vfs.open(file, Open::Read).map_err(failed)?;
    let read = opened.read_at(&mut magic, 0).map_err(failed)?;
    Ok(match &magic[..read] {
        magic if magic == manifest::MAGIC => FileKind::Manifest,
        magic if magic == wal::MAGIC => FileKind::Wal,
        _ => FileKind::StoreFile,
    })
}
