//! Bulk load: copies an HFile written elsewhere into a store file of a family.
//!
//! The copy is made cell by cell, so that it has the family's options and the source is checked: the
//! checksums of all blocks that are read, the order of the cells, their family, their rows, and their
//! number. The copy is verified as a compaction's output is.
//!
//! A hard link would be faster and is not safe: Hadoop's local file system overwrites a file in
//! place, and a store file never changes.
//!
//! Cells of the copy have no sequence ids. The load gives all of them one, which the manifest keeps
//! ([`FileMeta::loaded`](crate::manifest::FileMeta::loaded)) and reads apply.
//! Runs on the caller's thread, takes no lock, reads past the block cache.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::output::{Content, FileOutput, NameSync};
use super::{Clip, NewFile, StoreContext, WrittenFile};
use crate::cell::{Cell, CellCursor, KeyBuf, ROW_MAX_BYTES};
use crate::error::{Error, Result};
use crate::hfile::{ReadOptions, Reader};
use crate::id::{FileId, SeqId};
use crate::schema::{Escaped, FamilyDescriptor};

/// Number of cells between two checks for cancellation.
const STEP_CELLS: u64 = 4096;

/// A copy of one file.
#[derive(Debug)]
pub struct CopyJob<'a> {
    /// The state that all stores share.
    pub context: &'a StoreContext,
    /// The family that the file is offered for.
    pub family: &'a FamilyDescriptor,
    /// The rows of the region.
    pub clip: &'a Clip,
    /// Leaves out rows outside the region, instead of refusing the file.
    pub leaves_out_others: bool,
    /// The file. It is only read.
    pub source: &'a Path,
    /// Identity under which the source is read; no other file has it.
    pub source_id: FileId,
    /// Where the copy goes.
    pub target: &'a NewFile,
    /// Age in the copy's file info. The sequence id of the load is not known yet.
    pub written_at: SeqId,
    /// Set from outside to stop it.
    pub cancel: &'a AtomicBool,
}

/// Copies the file. `None` for a file without cells. Nothing is left behind when it fails. The
/// copy's name is durable after [`super::sync_names`] of its directory.
pub fn copy_file(job: &CopyJob<'_>) -> Result<Option<WrittenFile>> {
    let context = job.context.reader.clone();
    let reader = Reader::open(job.source.to_owned(), job.source_id, context)?;
    let copied = copy_cells(job, &reader);
    // The index and bloom blocks of the source.
    job.context.reader.cache.remove_file(job.source_id);
    copied
}

fn copy_cells(job: &CopyJob<'_>, reader: &Arc<Reader>) -> Result<Option<WrittenFile>> {
    let properties = reader.properties();
    let content = Content {
        max_seq: job.written_at,
        major: false,
        expected_cells: properties.cells,
        tags: properties.tags,
    };
    let mut output = FileOutput::new(job.context, job.target.clone(), job.family, content)?;
    let copied = append_all(job, reader, &mut output).and_then(|()| {
        if job.leaves_out_others || output.cells() == properties.cells {
            return Ok(());
        }
        let what = format!(
            "{} cells were found, the trailer says {}",
            output.cells(),
            properties.cells
        );
        Err(Error::corrupt(job.source, 0, what))
    });
    match copied {
        Ok(()) => {
            let file = output.finish(true, NameSync::ByCaller)?;
            Ok(file.map(|mut file| {
                file.meta.loaded = true;
                file
            }))
        }
        Err(error) => {
            output.abandon();
            Err(error)
        }
    }
}

fn append_all(job: &CopyJob<'_>, reader: &Arc<Reader>, output: &mut FileOutput<'_>) -> Result<()> {
    let mut cursor = reader.cursor(ReadOptions::WHOLE_FILE);
    let first: &[u8] = if job.leaves_out_others {
        &job.clip.start
    } else {
        b""
    };
    cursor.seek(KeyBuf::first_on_row(first, &job.family.name).as_key())?;
    while let Some(cell) = cursor.cell() {
        if job.leaves_out_others && !job.clip.contains(cell.key.row()) {
            break;
        }
        if output.cells().is_multiple_of(STEP_CELLS) && job.cancel.load(Ordering::Relaxed) {
            return Err(Error::InvalidArgument("the bulk load was cancelled".into()));
        }
        check_cell(job, cell)?;
        let cell = Cell {
            seq: SeqId::ZERO,
            ..cell
        };
        output.append(cell).map_err(|error| match error {
            // The writer refuses cells out of order: the source is corrupt.
            Error::InvalidArgument(what) => Error::corrupt(job.source, 0, what),
            error => error,
        })?;
        cursor.advance()?;
    }
    Ok(())
}

fn check_cell(job: &CopyJob<'_>, cell: Cell<'_>) -> Result<()> {
    let (row, family) = (cell.key.row(), cell.key.family());
    if row.is_empty() || row.len() > ROW_MAX_BYTES {
        let what = format!("a row of {} bytes; rows have 1 to {ROW_MAX_BYTES}", row.len());
        return Err(Error::corrupt(job.source, 0, what));
    }
    if family != job.family.name {
        return Err(Error::DoNotRetry(format!(
            "Bulk load file {} is offered for family {} and has cells of family {}",
            job.source.display(),
            Escaped(&job.family.name),
            Escaped(family)
        )));
    }
    if !job.clip.contains(row) {
        return Err(Error::WrongRegion(format!(
            "Bulk load file {} does not fit inside region: it has row {}, the region's rows are {} to {}",
            job.source.display(),
            Escaped(row),
            Escaped(&job.clip.start),
            Escaped(&job.clip.end)
        )));
    }
    Ok(())
}
