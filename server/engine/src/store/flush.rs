//! Flush: turns frozen memstores into store files, one in each stripe (`stripes`).
//!
//! 1. The memstores are merged; cells that can never become visible again (masked, expired, excess
//!    versions) are left out. Tombstones stay, and so do cells that an open scan may see.
//! 2. The files are written, synced, and opened again.
//! 3. The region syncs the files' names, writes the manifest edit and publishes the version with the
//!    files and without the memstores.
//!
//! Invariant: every cell of the memstores was written or deliberately dropped, which a count
//! verifies. Runs on a worker thread and takes no lock.

use std::sync::Arc;

use super::matcher::{Purge, RetainMatcher};
use super::merge::MergeCursor;
use super::output::{Content, Cut, NameSync, Outputs};
use super::{NewFile, ReadView, StoreContext, WrittenFile};
use crate::cell::{CellCursor, KeyBuf};
use crate::error::Result;
use crate::id::SeqId;
use crate::jobs::JobProgress;
use crate::memstore::Memstore;
use crate::schema::FamilyDescriptor;

/// Cells between two updates of the progress.
const STEP_CELLS: u64 = 4096;

/// Figures and output of a flush.
#[derive(Clone, Debug)]
pub(crate) struct Flushed {
    /// The files, in the order of rows; none when no cell survived (or there was none).
    pub files: Vec<WrittenFile>,
    /// Cells in the files.
    pub cells_out: u64,
}

/// Where the files of a flush go.
#[derive(Clone, Copy)]
pub(crate) struct FlushTarget<'a> {
    /// Names the next file.
    pub files: &'a dyn Fn() -> NewFile,
    /// Rows at which another file begins, ascending.
    pub boundaries: &'a [Vec<u8>],
}

/// Writes all cells of `memstores` (newest first) that must be kept into store files. Their bytes
/// are durable when this returns; their names are durable after [`super::sync_names`] of its directory.
/// No read point earlier than `horizon` is in use. `progress` counts the cells that have been read.
/// REQUIRES: everything in the memstores is published and nothing is inserted any more.
pub(crate) fn flush(
    context: &StoreContext,
    family: &FamilyDescriptor,
    memstores: &[Arc<Memstore>],
    target: FlushTarget<'_>,
    horizon: ReadView,
    progress: &JobProgress,
) -> Result<Flushed> {
    let expected: u64 = memstores.iter().map(|memstore| memstore.cell_count()).sum();
    let max_seq = memstores
        .iter()
        .filter_map(|memstore| memstore.max_seq())
        .max()
        .unwrap_or(SeqId::ZERO);
    let content = Content {
        max_seq,
        major: false,
        expected_cells: expected,
        tags: true,
    };
    let cut = Cut::Rows(target.boundaries);
    let mut output = Outputs::new(
        context,
        family,
        target.files,
        content,
        cut,
        (false, NameSync::ByCaller),
    )?;
    let mut matcher = RetainMatcher::new(family, Purge::KeepTombstones, horizon);
    let mut cursor = MergeCursor::new(memstores.iter().map(Memstore::cursor).collect());
    let cells_in = match write_kept(&mut cursor, &mut matcher, &mut output, family, progress) {
        Ok(cells_in) => cells_in,
        Err(error) => {
            output.abandon();
            return Err(error);
        }
    };
    assert_eq!(
        cells_in, expected,
        "a flush reads every cell of memstores that are no longer written to"
    );
    let cells_out = output.cells();
    let files = output.finish()?;
    Ok(Flushed { files, cells_out })
}

fn write_kept(
    cursor: &mut impl CellCursor,
    matcher: &mut RetainMatcher,
    output: &mut Outputs<'_>,
    family: &FamilyDescriptor,
    progress: &JobProgress,
) -> Result<u64> {
    let mut cells_in = 0;
    cursor.seek(KeyBuf::first_on_row(b"", &family.name).as_key())?;
    while let Some(cell) = cursor.cell() {
        cells_in += 1;
        if matcher.keeps(cell) {
            output.append(cell, cells_in)?;
        }
        if cells_in % STEP_CELLS == 0 {
            progress.add(STEP_CELLS);
        }
        cursor.advance()?;
    }
    Ok(cells_in)
}
