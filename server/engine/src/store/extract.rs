//! Copies of store files for another database: the rows of one region out of a file that several share, and a
//! file of another program.
//!
//! A copy has the cells of its source with their sequence ids, tombstones and tags, and the options of its
//! family. It is verified as a compaction's output is. Runs on the caller's thread, takes no lock, reads past
//! the block cache.

use std::path::Path;
use std::sync::Arc;

use super::output::{Content, FileOutput, NameSync};
use super::source::{ClippedCursor, LoadedCursor};
use super::{Clip, NewFile, StoreContext, StoreFile, WrittenFile};
use crate::cell::{Cell, CellCursor, KeyBuf};
use crate::error::{Error, Result};
use crate::hfile::{ReadOptions, Reader};
use crate::id::{FileId, SeqId};
use crate::schema::{Escaped, FamilyDescriptor};

/// Copies those rows of a file that its clip has. `None` if there are none.
pub(crate) fn extract(
    context: &StoreContext,
    file: &StoreFile,
    family: &FamilyDescriptor,
    target: &NewFile,
) -> Result<Option<WrittenFile>> {
    let content = Content {
        max_seq: file.meta().max_seq,
        major: file.meta().major,
        expected_cells: file.meta().cells,
        tags: file.properties().tags,
    };
    let cursor = file.reader().cursor(ReadOptions::WHOLE_FILE);
    let clipped = ClippedCursor::new(cursor, file.clip().clone(), &family.name);
    let output = FileOutput::new(context, target.clone(), family, content)?;
    if file.meta().loaded {
        copy(LoadedCursor::new(clipped, file.meta().max_seq), family, output)
    } else {
        copy(clipped, family, output)
    }
}

/// A file of another program, for a store of this one.
#[derive(Debug)]
pub(crate) struct ForeignFile<'a> {
    /// Where it is. It is only read.
    pub(crate) path: &'a Path,
    /// The sequence id of all of its cells, if they have none of their own.
    pub(crate) loaded_seq: Option<SeqId>,
    /// The rows that are wanted.
    pub(crate) clip: &'a Clip,
}

impl ForeignFile<'_> {
    /// Opens the file and verifies all of it. `id` is the identity under which it is read; no other file has
    /// it. Returns it with the greatest sequence id of its cells.
    pub(crate) fn open(&self, context: &StoreContext, id: FileId) -> Result<(Arc<Reader>, SeqId)> {
        let reader = Reader::open(self.path.to_owned(), id, context.reader.clone())?;
        reader.verify(None)?;
        let own = reader.properties().max_seq;
        Ok((reader, self.loaded_seq.unwrap_or(own)))
    }

    /// Copies its wanted rows. `None` if there are none.
    pub(crate) fn copy(
        &self,
        context: &StoreContext,
        (reader, max_seq): &(Arc<Reader>, SeqId),
        family: &FamilyDescriptor,
        target: &NewFile,
    ) -> Result<Option<WrittenFile>> {
        let properties = reader.properties();
        let content = Content {
            max_seq: *max_seq,
            major: properties.major && self.loaded_seq.is_none(),
            expected_cells: properties.cells,
            tags: properties.tags,
        };
        let cursor = reader.cursor(ReadOptions::WHOLE_FILE);
        let clipped = ClippedCursor::new(cursor, self.clip.clone(), &family.name);
        let output = FileOutput::new(context, target.clone(), family, content)?;
        match self.loaded_seq {
            Some(seq) => copy(LoadedCursor::new(clipped, seq), family, output),
            None => copy(clipped, family, output),
        }
    }
}

fn copy(
    mut cursor: impl CellCursor,
    family: &FamilyDescriptor,
    mut output: FileOutput<'_>,
) -> Result<Option<WrittenFile>> {
    match append_all(&mut cursor, family, &mut output) {
        Ok(()) => output.finish(true, NameSync::Now),
        Err(error) => {
            output.abandon();
            Err(error)
        }
    }
}

fn append_all(
    cursor: &mut impl CellCursor,
    family: &FamilyDescriptor,
    output: &mut FileOutput<'_>,
) -> Result<()> {
    cursor.seek(KeyBuf::first_on_row(b"", &family.name).as_key())?;
    while let Some(cell) = cursor.cell() {
        check_family(cell, family)?;
        output.append(cell)?;
        cursor.advance()?;
    }
    Ok(())
}

fn check_family(cell: Cell<'_>, family: &FamilyDescriptor) -> Result<()> {
    if cell.key.family() == family.name {
        return Ok(());
    }
    Err(Error::DoNotRetry(format!(
        "a file of family {} has cells of family {}",
        Escaped(&family.name),
        Escaped(cell.key.family())
    )))
}
