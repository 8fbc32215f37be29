//! Writing store files, for flush and compaction: create, append, finish, reopen; or remove the
//! partial file.
//!
//! [`FileOutput`] is one file; [`Outputs`] begins another one at the rows that [`Cut`] says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Clip, StoreContext, StoreFile, file_path};
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

/// Properties of a file to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    /// Greatest sequence id.
    pub(super) max_seq: SeqId,
    /// Whether no other file of the store has cells of its rows.
    pub(super) major: bool,
    /// Maximum number of cells.
    pub(super) expected_cells: u64,
    /// Whether cells may have tags.
    pub(super) tags: bool,
}

/// Where a run of cells is cut into files. Always between two rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut<'a> {
    /// Before the first row at or behind each of these, which ascend.
    Rows(&'a [Vec<u8>]),
    /// When a file has this many bytes, and half as many will follow.
    Bytes(Option<u64>),
}

/// Files being written from one run of cells. One file at a time is open.
pub(super) struct Outputs<'a> {
    context: &'a StoreContext,
    family: &'a FamilyDescriptor,
    /// Names the next file.
    targets: &'a dyn Fn() -> NewFile,
    content: Content,
    cut: Cut<'a>,
    /// Whether every block is read back.
    verify: bool,
    name: NameSync,
    file: FileOutput<'a>,
    /// The last row before the cut, once `Cut::Bytes` has found that a file is full.
    last_row: Option<Vec<u8>>,
    /// Complete files.
    done: Vec<WrittenFile>,
    /// Bytes and cells in them.
    done_bytes: u64,
    done_cells: u64,
}

impl<'a> Outputs<'a> {
    pub(super) fn new(
        context: &'a StoreContext,
        family: &'a FamilyDescriptor,
        targets: &'a dyn Fn() -> NewFile,
        content: Content,
        cut: Cut<'a>,
        (verify, name): (bool, NameSync),
    ) -> Result<Self> {
        Ok(Self {
            context,
            family,
            targets,
            content,
            cut,
            verify,
            name,
            file: FileOutput::new(context, targets(), family, content)?,
            last_row: None,
            done: Vec::new(),
            done_bytes: 0,
            done_cells: 0,
        })
    }

    /// Adds a cell, behind all others. `read_cells`: how many cells have been read for these files
    /// until now, of `Content::expected_cells`.
    pub(super) fn append(&mut self, cell: Cell<'_>, read_cells: u64) -> Result<()> {
        if self.begins_file(cell.key.row(), read_cells) {
            self.next_file()?;
        }
        self.file.append(cell)
    }

    /// Whether the cell of this row is the first one behind a cut.
    #[inline]
    fn begins_file(&mut self, row: &[u8], read_cells: u64) -> bool {
        match &mut self.cut {
            Cut::Rows([]) | Cut::Bytes(None) => false,
            Cut::Rows(rows) => {
                let passed = rows.iter().take_while(|boundary| row >= &boundary[..]).count();
                *rows = &rows[passed..];
                passed > 0 && self.file.cells() > 0
            }
            Cut::Bytes(Some(bytes)) => {
                // Once a file is full, it is: a block that is compressed has fewer bytes than it had while it
                // was open.
                if let Some(last) = &self.last_row {
                    return row != &last[..];
                }
                let (bytes, written) = (*bytes, self.file.written_bytes());
                if written >= bytes {
                    // As many bytes for each cell that is to be read as for those that were.
                    let left = self.content.expected_cells.saturating_sub(read_cells) as f64;
                    let follow = left * (self.done_bytes + written) as f64 / read_cells.max(1) as f64;
                    if follow >= bytes as f64 / 2.0 {
                        self.last_row = Some(row.to_vec());
                    }
                }
                false
            }
        }
    }

    fn next_file(&mut self) -> Result<()> {
        let next = FileOutput::new(self.context, (self.targets)(), self.family, self.content)?;
        self.last_row = None;
        self.done_bytes += self.file.written_bytes();
        self.done_cells += self.file.cells();
        let file = std::mem::replace(&mut self.file, next);
        self.done.extend(file.finish(self.verify, self.name)?);
        Ok(())
    }

    /// Bytes so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.done_bytes + self.file.written_bytes()
    }

    /// Cells so far.
    pub(super) fn cells(&self) -> u64 {
        self.done_cells + self.file.cells()
    }

    /// Completes the last file and returns all, in the order of rows: none if there was no cell.
    /// After an error none is left.
    pub(super) fn finish(mut self) -> Result<Vec<WrittenFile>> {
        match self.file.finish(self.verify, self.name) {
            Ok(file) => {
                self.done.extend(file);
                Ok(self.done)
            }
            Err(error) => {
                remove_files(self.context, self.done);
                Err(error)
            }
        }
    }

    /// Aborts: removes all files.
    pub(super) fn abandon(self) {
        self.file.abandon();
        remove_files(self.context, self.done);
    }
}

/// Removes complete files that no manifest edit will name.
fn remove_files(context: &StoreContext, files: Vec<WrittenFile>) {
    for file in files {
        StoreFile::adopt(context, file.meta, file.reader, Clip::default()).mark_obsolete();
    }
}

/// A file being written. Names are unique and the manifest alone decides which files exist, so it
/// is written under its final name; remains of a crash are removed as unknown at the next start.
pub(super) struct FileOutput<'a> {
    context: &'a StoreContext,
    target: NewFile,
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
        target: NewFile,
        family: &FamilyDescriptor,
        content: Content,
    ) -> Result<Self> {
        let uuid = context
            .vfs
            .draw_uuid()
            .map_err(|source| Error::io("drawing a uuid for a file in", &target.dir, source))?;
        let mut options =
            WriterOptions::of_family(family, Uuid(uuid), context.clock.wall_ms(), content.max_seq);
        options.major = content.major;
        options.expected_cells = content.expected_cells;
        options.tags = content.tags;
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
