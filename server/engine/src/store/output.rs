//! Writing one store file, for flush and compaction: create, append, finish, reopen; or remove the
//! partial file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{StoreContext, file_path};
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::hfile::{Reader, Writer, WriterOptions};
use crate::id::{FileId, SeqId, Uuid};
use crate::manifest::FileMeta;
use crate::schema::{FamilyDescriptor, TableName};

/// Where a new file goes.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Id of the file, never used before: the name on disk is made of it.
    pub id: FileId,
    /// Directory of the file, which exists.
    pub dir: PathBuf,
    /// The table whose directory that is.
    pub table: TableName,
}

/// A complete file whose bytes are durable, and that no manifest names yet.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// The file's entry for the manifest.
    pub meta: FileMeta,
    /// Open for reading.
    pub reader: Arc<Reader>,
}

/// Selects the code that makes a new file's name durable, before the manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameSync {
    /// [`FileOutput::finish`].
    Now,
    /// The caller, with one sync of the directory for several files.
    ByCaller,
}

/// A file being written. Names are unique and the manifest alone decides which files exist, so it
/// is written under its final name; remains of a crash are removed as unknown at the next start.
pub(super) struct FileOutput<'a> {
    context: &'a StoreContext,
    target: &'a NewFile,
    options: WriterOptions,
    /// Made with the first cell: an output without cells leaves no file.
    writer: Option<Writer>,
    /// Whether the name is on disk.
    created: bool,
    cells: u64,
}

impl<'a> FileOutput<'a> {
    pub(super) fn new(
        context: &'a StoreContext,
        target: &'a NewFile,
        family: &FamilyDescriptor,
        max_seq: SeqId,
        major: bool,
        expected_cells: u64,
        tags: bool,
    ) -> Result<Self> {
        let uuid = context
            .vfs
            .draw_uuid()
            .map_err(|source| Error::io("drawing a uuid for a file in", &target.dir, source))?;
        let mut options = WriterOptions::of_family(family, Uuid(uuid), context.clock.wall_ms(), max_seq);
        options.major = major;
        options.expected_cells = expected_cells;
        options.tags = tags;
        Ok(Self {
            context,
            target,
            options,
            writer: None,
            created: false,
            cells: 0,
        })
    }

    fn path(&self) -> PathBuf {
        file_path(&self.target.dir, self.target.id)
    }

    pub(super) fn append(&mut self, cell: Cell<'_>) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let path = file_path(&self.target.dir, self.target.id);
                let handles = &self.context.reader.handles;
                let file = handles
                    .create(&path)
                    .map_err(|source| Error::io("creating", &path, source))?;
                self.created = true;
                none.insert(Writer::create(file, &path, self.options.clone())?)
            }
        };
        writer.append(cell)?;
        self.cells += 1;
        Ok(())
    }

    /// Bytes so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::written_bytes)
    }

    pub(super) fn cells(&self) -> u64 {
        self.cells
    }

    /// Completes the file, makes it durable (and its name, unless the caller does that), and opens
    /// it. `None` if it got no cell. With `verify`, every block is read back and checked against
    /// the cells that were added.
    pub(super) fn finish(mut self, verify: bool, name: NameSync) -> Result<Option<WrittenFile>> {
        let Some(writer) = self.writer.take() else {
            return Ok(None);
        };
        let result = self.complete(writer, verify, name);
        if result.is_err() {
            self.remove();
        }
        result.map(Some)
    }

    fn complete(&self, writer: Writer, verify: bool, name: NameSync) -> Result<WrittenFile> {
        let path = self.path();
        let written = writer.finish()?;
        if name == NameSync::Now {
            sync_names(&*self.context.vfs, &self.target.dir)?;
        }
        let reader = Reader::open(path.clone(), self.target.id, self.context.reader.clone())?;
        let properties = reader.properties();
        if written.cells != self.cells
            || properties.cells != self.cells
            || properties.uuid != Some(self.options.uuid)
            || properties.file_bytes != written.bytes
        {
            return Err(Error::corrupt(
                path,
                0,
                format!(
                    "read back {} cells in {} bytes, wrote {} in {}",
                    properties.cells, properties.file_bytes, self.cells, written.bytes
                ),
            ));
        }
        if verify {
            reader.verify(Some(written.checksum))?;
        }
        let meta = FileMeta {
            id: self.target.id,
            uuid: self.options.uuid,
            bytes: written.bytes,
            checksum: written.checksum,
            cells: written.cells,
            max_seq: self.options.max_seq,
            major: self.options.major,
            created_ms: self.options.created_ms,
            dir_table: self.target.table.clone(),
            loaded: false,
        };
        Ok(WrittenFile { meta, reader })
    }

    /// Aborts: removes the partial file.
    pub(super) fn abandon(mut self) {
        self.writer = None;
        if self.created {
            self.remove();
        }
    }

    fn remove(&self) {
        let path = self.path();
        self.context.reader.cache.remove_file(self.target.id);
        if let Err(source) = self.context.vfs.remove_file(&path) {
            let error = Error::io("removing unfinished", &path, source);
            self.context
                .listener
                .background_error("removing an unfinished store file", &error);
        }
    }
}

/// Makes the names of all files created in a directory durable.
pub(crate) fn sync_names(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.sync_dir(dir)
        .map_err(|source| Error::io("syncing", dir, source))
}
