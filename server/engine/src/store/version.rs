//! An immutable snapshot of a store.
//!
//! A [`StoreVersion`] never changes; each `with_…` derives the next one. The region publishes it
//! (one pointer swap) and readers keep the one that they captured. A [`StoreFile`] is one region's
//! share in a file: after a split both daughters hold a share in the same file, each clipped to its
//! own rows. The file goes away when every share in it has been marked obsolete and the last reader
//! is done.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{SortedCells, StoreContext, file_path};
use crate::cell::{RowOrder, is_from};
use crate::error::{Error, Result};
use crate::hfile::{FileSizes, Properties, Reader};
use crate::id::{FileId, SeqId};
use crate::manifest::FileMeta;
use crate::memstore::Memstore;
use crate::schema::FamilyDescriptor;
use crate::seeded;

/// The rows of a region, which limit its view of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clip {
    /// First row; empty: from the beginning.
    pub start: Vec<u8>,
    /// One past the last row; empty: to the end.
    pub end: Vec<u8>,
}

impl Clip {
    /// Whether the row lies inside.
    pub fn contains(&self, row: &[u8]) -> bool {
        is_from(row, &self.start) && self.is_before_end(row)
    }

    /// Whether the row lies before the end.
    pub(crate) fn is_before_end(&self, row: &[u8]) -> bool {
        self.end.is_empty() || row < self.end.as_slice()
    }
}

/// A file on disk, shared by the regions that read it. The fields are dropped in this order.
#[derive(Debug)]
struct SharedFile {
    /// Reads it.
    reader: Arc<Reader>,
    /// Removes the file when it is dropped and no region needs it any more.
    life: FileLife,
}

/// Decides whether a file is removed at the end of its [`SharedFile`].
#[derive(Debug)]
struct FileLife {
    /// Handed over for removal. It is then the last reader, unless a cursor outlives its version.
    reader: Option<Arc<Reader>>,
    /// The context for removing the file.
    context: StoreContext,
    /// Shares that are not obsolete. The file is removed with the drop that finds 0.
    live_shares: AtomicUsize,
}

impl Drop for FileLife {
    fn drop(&mut self) {
        if self.live_shares.load(Ordering::Acquire) == 0
            && let Some(file) = self.reader.take()
        {
            self.context.removals.remove(&self.context, file);
        }
    }
}

/// A store file that the manifest names and that cannot be used: it is missing, or does not match
/// the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// Where it should be.
    pub path: PathBuf,
    /// Description of the damage.
    pub what: String,
}

impl DamagedFile {
    /// The file that could not be opened because of `error`; `None` if the error is not about the
    /// file itself (descriptors or memory are short, access is denied), so that a retry may help.
    pub(crate) fn of_error(path: &Path, error: &Error) -> Option<Self> {
        let what = match error {
            Error::Corrupt { offset, what, .. } => format!("offset {offset}: {what}"),
            Error::Io { during, source, .. } if is_damage(source) || seeded::is_on("shortage-is-damage") => {
                format!("{during}: {source}")
            }
            _ => return None,
        };
        Some(Self {
            path: path.to_owned(),
            what,
        })
    }
}

/// Whether a failure to open or read a file means that its content is gone. Linux reports lost
/// content with several error numbers.
fn is_damage(error: &std::io::Error) -> bool {
    const EIO: i32 = 5;
    const ENODATA: i32 = 61;
    const EBADMSG: i32 = 74;
    const EUCLEAN: i32 = 117;
    const EREMOTEIO: i32 = 121;
    let by_number = matches!(
        error.raw_os_error(),
        Some(EIO | ENODATA | EBADMSG | EUCLEAN | EREMOTEIO)
    );
    let by_kind = matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::UnexpectedEof | ErrorKind::IsADirectory | ErrorKind::NotADirectory
    );
    by_number || by_kind
}

/// One region's share in a store file.
#[derive(Debug)]
pub struct StoreFile {
    meta: FileMeta,
    file: Arc<SharedFile>,
    clip: Clip,
    /// Whether cells outside the clip are in the file.
    clipped: bool,
    obsolete: AtomicBool,
}

impl StoreFile {
    /// Opens a file that the manifest names, and checks that it matches the manifest. `dir` is the
    /// directory of the table that wrote it (`meta.dir_table`) and the family.
    pub fn open(context: &StoreContext, dir: &Path, meta: FileMeta, clip: Clip) -> Result<Arc<Self>> {
        let path = file_path(dir, meta.id);
        let reader = Reader::open(path, meta.id, context.reader.clone())?;
        let properties = reader.properties();
        let wrong = |what: String| Err(Error::corrupt(reader.path(), 0, what));
        if properties.uuid != Some(meta.uuid) {
            let found = properties
                .uuid
                .map_or_else(|| "none".to_owned(), |uuid| uuid.to_string());
            return wrong(format!(
                "another file lies under this name: uuid {found}, the manifest says {}",
                meta.uuid
            ));
        }
        if properties.file_bytes != meta.bytes || properties.cells != meta.cells {
            return wrong(format!(
                "{} bytes and {} cells, the manifest says {} and {}",
                properties.file_bytes, properties.cells, meta.bytes, meta.cells
            ));
        }
        Ok(Self::adopt(context, meta, reader, clip))
    }

    /// The first share in a file that has just been written.
    pub(crate) fn adopt(
        context: &StoreContext,
        meta: FileMeta,
        reader: Arc<Reader>,
        clip: Clip,
    ) -> Arc<Self> {
        let file = Arc::new(SharedFile {
            life: FileLife {
                reader: Some(Arc::clone(&reader)),
                context: context.clone(),
                live_shares: AtomicUsize::new(0),
            },
            reader,
        });
        Self::share(meta, file, clip)
    }

    /// Another share in the same file, for a region that takes over rows of this one.
    pub(crate) fn reclip(&self, clip: Clip) -> Arc<Self> {
        Self::share(self.meta.clone(), Arc::clone(&self.file), clip)
    }

    fn share(meta: FileMeta, file: Arc<SharedFile>, clip: Clip) -> Arc<Self> {
        file.life.live_shares.fetch_add(1, Ordering::AcqRel);
        let properties = file.reader.properties();
        let inside = |key: &Option<crate::cell::KeyBuf>| {
            key.as_ref().is_none_or(|key| clip.contains(key.as_key().row()))
        };
        let clipped = !(inside(&properties.first_key) && inside(&properties.last_key));
        Arc::new(Self {
            meta,
            file,
            clip,
            clipped,
            obsolete: AtomicBool::new(false),
        })
    }

    /// Marks the file as obsolete for this region. When all shares have been marked, the file is
    /// removed with the drop of the last of them.
    /// REQUIRES: the manifest edit that drops the file from the region is durable.
    pub(crate) fn mark_obsolete(&self) {
        if !self.obsolete.swap(true, Ordering::AcqRel) {
            self.file.life.live_shares.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The file as the manifest knows it.
    pub fn meta(&self) -> &FileMeta {
        &self.meta
    }

    /// Id of the file.
    pub fn id(&self) -> FileId {
        self.meta.id
    }

    /// The open file. Direct users must respect the clip.
    pub fn reader(&self) -> &Arc<Reader> {
        &self.file.reader
    }

    /// Properties of the file, cells outside the clip included.
    pub fn properties(&self) -> &Properties {
        self.file.reader.properties()
    }

    /// The rows this share may see.
    pub(crate) fn clip(&self) -> &Clip {
        &self.clip
    }

    /// Whether the file holds cells outside the clip: it was written before a split (HBase: a reference
    /// file).
    pub fn is_clipped(&self) -> bool {
        self.clipped
    }

    /// The shared state that the file was opened with.
    pub fn context(&self) -> &StoreContext {
        &self.file.life.context
    }

    /// Path of the file.
    pub fn path(&self) -> PathBuf {
        self.file.reader.path().to_owned()
    }
}

/// A snapshot of a store. Immutable.
#[derive(Clone, Debug)]
pub struct StoreVersion {
    /// The family with its options.
    pub family: Arc<FamilyDescriptor>,
    /// Takes the writes.
    pub active: Arc<Memstore>,
    /// Waiting to be flushed, newest first.
    pub frozen: Vec<Arc<Memstore>>,
    /// Store files, oldest first: in the manifest's order, which decides the neighbours that compactions of a
    /// stripe take. Two files can have the same greatest sequence id: after a merge of regions, recovery can
    /// replay rows that are in a file already.
    pub files: Vec<Arc<StoreFile>>,
    /// Store files that belong here and cannot be used. While there is one, the store is not read
    /// and its files are not compacted; flushes still add files.
    pub damaged: Vec<Arc<DamagedFile>>,
    /// The cells of a system table, whose store has no memstores and files.
    pub system_cells: Option<Arc<SortedCells>>,
}

impl StoreVersion {
    /// A store of these files, with an empty memstore.
    /// REQUIRES: the files are in the manifest's order.
    pub fn new(family: Arc<FamilyDescriptor>, files: Vec<Arc<StoreFile>>, active: Memstore) -> Self {
        Self {
            family,
            active: Arc::new(active),
            frozen: Vec::new(),
            files,
            damaged: Vec::new(),
            system_cells: None,
        }
    }

    /// Sets the files that cannot be used.
    #[must_use]
    pub(crate) fn with_damaged(self, damaged: Vec<Arc<DamagedFile>>) -> Self {
        Self { damaged, ..self }
    }

    /// A store of a system table.
    pub(crate) fn of_cells(family: Arc<FamilyDescriptor>, cells: SortedCells) -> Self {
        Self {
            system_cells: Some(Arc::new(cells)),
            ..Self::new(family, Vec::new(), Memstore::default())
        }
    }

    /// The order of its rows.
    pub(crate) fn row_order(&self) -> RowOrder {
        self.system_cells
            .as_ref()
            .map_or(RowOrder::Bytes, |cells| cells.order())
    }

    /// The active memstore becomes the newest frozen one; `active` takes the writes from now on.
    #[must_use]
    pub(crate) fn with_frozen(&self, active: Arc<Memstore>) -> Self {
        let mut frozen = Vec::with_capacity(self.frozen.len() + 1);
        frozen.push(Arc::clone(&self.active));
        frozen.extend(self.frozen.iter().cloned());
        Self {
            active,
            frozen,
            ..self.clone()
        }
    }

    /// Replaces `flushed` (frozen memstores of this version) by `files`; none when none of their
    /// cells survived.
    #[must_use]
    pub(crate) fn with_flushed(&self, flushed: &[Arc<Memstore>], files: &[Arc<StoreFile>]) -> Self {
        let mut next = self.clone();
        next.frozen
            .retain(|memstore| !flushed.iter().any(|gone| Arc::ptr_eq(gone, memstore)));
        assert_eq!(
            next.frozen.len() + flushed.len(),
            self.frozen.len(),
            "a flush replaces frozen memstores of the version"
        );
        for file in files {
            let index = file.meta.index_among(next.files.iter().map(|other| &other.meta));
            next.files.insert(index, Arc::clone(file));
        }
        next
    }

    /// This version with one more file, which is newer than all others.
    #[must_use]
    pub(crate) fn with_loaded(&self, file: Arc<StoreFile>) -> Self {
        let mut next = self.clone();
        next.files.push(file);
        next
    }

    /// Replaces `removed`, files of one stripe that have no other file of it between them, by `added`
    /// at the place of the newest; none when nothing survived.
    #[must_use]
    pub(crate) fn with_compacted(&self, removed: &[FileId], added: &[Arc<StoreFile>]) -> Self {
        let mut files = Vec::with_capacity(self.files.len() + added.len());
        let mut left = removed.len();
        for file in &self.files {
            if !removed.contains(&file.id()) {
                files.push(Arc::clone(file));
                continue;
            }
            left -= 1;
            if left == 0 {
                files.extend(added.iter().cloned());
            }
        }
        assert!(
            left == 0 && !removed.is_empty(),
            "a compaction has inputs, and they are in the version"
        );
        Self {
            files,
            ..self.clone()
        }
    }

    /// A copy of this version with changed family options.
    #[must_use]
    pub(crate) fn with_family(&self, family: Arc<FamilyDescriptor>) -> Self {
        Self {
            family,
            ..self.clone()
        }
    }

    /// The memstores, newest first.
    pub fn memstores(&self) -> impl Iterator<Item = &Arc<Memstore>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// Bytes that all memstores hold.
    pub fn memstore_bytes(&self) -> u64 {
        self.memstores().map(|memstore| memstore.bytes()).sum()
    }

    /// Bytes of the store files, those of clipped ones in full.
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.meta.bytes).sum()
    }

    /// Sizes of the parts of the store files, those of clipped ones in full.
    pub(crate) fn file_sizes(&self) -> FileSizes {
        self.files.iter().map(|file| file.reader().sizes()).sum()
    }

    /// The greatest sequence id in the files.
    pub(crate) fn files_max_seq(&self) -> SeqId {
        self.files.last().map_or(SeqId::ZERO, |file| file.meta.max_seq)
    }
}
