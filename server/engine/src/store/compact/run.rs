//! Runs a compaction. All decisions have been made by `choose`.
//!
//! 1. The inputs are merged, each clipped to the region's rows, past the block cache.
//! 2. Cells that can never become visible again are left out; tombstones and old sequence ids too,
//!    when all files of the stripe take part.
//! 3. The outputs are written at the allowed rate, synced, opened again and verified block by block:
//!    they will be the only copy once the inputs are removed.
//!
//! Sequence ids order writes of the same version and decide whether an open scan sees a cell. An output of
//! all files of a stripe has zero for those up to the horizon, as in HBase: such a cell is visible to every
//! scan, it is the only one of its version up to the horizon, and newer cells have a greater id. If older
//! files do not take part, the ids are kept: a cell of the same version in one of those would win. Runs on a
//! worker thread, takes no lock, can be cancelled from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::RateLimiter;
use crate::cell::{CellCursor, KeyBuf};
use crate::error::{Error, Result};
use crate::hfile::ReadOptions;
use crate::id::SeqId;
use crate::jobs::JobProgress;
use crate::schema::FamilyDescriptor;
use crate::seeded;
use crate::store::matcher::{Purge, RetainMatcher};
use crate::store::output::{Content, Cut, NameSync, Outputs};
use crate::store::source::{ClippedCursor, LoadedCursor, Source};
use crate::store::{MergeCursor, NewFile, ReadView, StoreContext, StoreFile, WrittenFile};

/// Bytes between two checks of cancellation and rate limit: about a block's worth.
const STEP_BYTES: u64 = 64 << 10;

/// Cells between two such checks, for inputs of which hardly anything survives.
const STEP_CELLS: u64 = 4096;

/// One compaction.
pub(crate) struct CompactionJob<'a> {
    /// State shared by all stores.
    pub context: &'a StoreContext,
    /// The family.
    pub family: &'a FamilyDescriptor,
    /// Neighbours in the order of a stripe, oldest first.
    pub inputs: &'a [Arc<StoreFile>],
    /// Whether these are all files of the stripe: only then tombstones may go.
    pub all_files: bool,
    /// Names the next output.
    pub targets: &'a dyn Fn() -> NewFile,
    /// Bytes from which on another output begins; `None`: there is one.
    pub piece_bytes: Option<u64>,
    /// The earliest read point in use.
    pub horizon: ReadView,
    /// Bytes per second.
    pub limiter: &'a RateLimiter,
    /// Set from outside to stop it.
    pub cancel: &'a AtomicBool,
    /// Told how many cells have been read.
    pub progress: &'a JobProgress,
}

/// Figures and output of a compaction.
#[derive(Clone, Debug)]
pub(crate) struct Compacted {
    /// The outputs, in the order of rows; none when no cell survived.
    pub files: Vec<WrittenFile>,
    /// Bytes of the input files.
    pub read_bytes: u64,
    /// Bytes of the output files.
    pub written_bytes: u64,
}

/// Runs the compaction. `None` when it was cancelled, without remains. The caller installs the
/// result: manifest edit, then `StoreVersion::with_compacted`, then marks the inputs obsolete.
pub(crate) fn run(job: &CompactionJob<'_>) -> Result<Option<Compacted>> {
    let meta_sum = |of: fn(&StoreFile) -> u64| job.inputs.iter().map(|file| of(file)).sum::<u64>();
    let max_seq = job
        .inputs
        .iter()
        .map(|file| file.meta().max_seq)
        .max()
        .unwrap_or(SeqId::ZERO);
    let expected = meta_sum(|file| file.meta().cells);
    let content = Content {
        max_seq,
        major: job.all_files,
        expected_cells: expected,
        tags: job.inputs.iter().any(|file| file.properties().tags),
    };
    let cut = Cut::Bytes(job.piece_bytes);
    let written = (true, NameSync::Now);
    let mut output = Outputs::new(job.context, job.family, job.targets, content, cut, written)?;
    let cells_in = match copy_kept(job, &mut output) {
        Ok(Some(cells_in)) => cells_in,
        stopped => {
            output.abandon();
            return stopped.map(|_| None);
        }
    };
    if cells_in != expected && !job.inputs.iter().any(|file| file.is_clipped()) {
        output.abandon();
        let path = job.inputs.first().map(|file| file.path()).unwrap_or_default();
        return Err(Error::corrupt(
            path,
            0,
            format!("this file and its neighbours gave {cells_in} cells, the manifest says {expected}"),
        ));
    }
    let files = output.finish()?;
    Ok(Some(Compacted {
        written_bytes: files.iter().map(|file| file.meta.bytes).sum(),
        read_bytes: meta_sum(|file| file.meta().bytes),
        files,
    }))
}

/// Reads all inputs and appends the kept cells. Returns the number of cells read; `None` when
/// cancelled.
fn copy_kept(job: &CompactionJob<'_>, output: &mut Outputs<'_>) -> Result<Option<u64>> {
    let mut matcher = RetainMatcher::new(job.family, purge(job), job.horizon);
    // Newest first, as the merge wants them.
    let sources = job
        .inputs
        .iter()
        .rev()
        .map(|file| source(file, job.family))
        .collect();
    let mut cursor = MergeCursor::new(sources);
    cursor.seek(KeyBuf::first_on_row(b"", &job.family.name).as_key())?;
    let old_enough = if seeded::is_on("sequence-ids-dropped-early") {
        SeqId::MAX
    } else if job.all_files {
        job.horizon.read_point
    } else {
        SeqId::ZERO
    };
    let mut cells_in = 0;
    let mut paid_bytes = 0;
    while let Some(mut cell) = cursor.cell() {
        cells_in += 1;
        if matcher.keeps(cell) {
            if cell.seq <= old_enough {
                cell.seq = SeqId::ZERO;
            }
            output.append(cell, cells_in)?;
        }
        if cells_in % STEP_CELLS == 0 {
            job.progress.add(STEP_CELLS);
        }
        // A block that is compressed takes less once it is written than while it was buffered, so the sum may
        // go back.
        let unpaid_bytes = output.written_bytes().saturating_sub(paid_bytes);
        if unpaid_bytes >= STEP_BYTES {
            paid_bytes += unpaid_bytes;
            if !job.limiter.take(unpaid_bytes, job.cancel) {
                return Ok(None);
            }
        } else if cells_in % STEP_CELLS == 0 && job.cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        cursor.advance()?;
    }
    Ok(Some(cells_in))
}

fn purge(job: &CompactionJob<'_>) -> Purge {
    if !job.all_files && !seeded::is_on("tombstones-dropped-early") {
        return Purge::KeepTombstones;
    }
    let earliest_put = job
        .inputs
        .iter()
        .map(|file| {
            let properties = file.properties();
            // A file of ours without that entry has no put; one of HBase's may simply lack it.
            let unknown = if properties.uuid.is_some() {
                i64::MAX
            } else {
                i64::MIN
            };
            properties.earliest_put.unwrap_or(unknown)
        })
        .min()
        .unwrap_or(i64::MAX);
    Purge::DropTombstones { earliest_put }
}

fn source(file: &StoreFile, family: &FamilyDescriptor) -> Source {
    let cursor = file.reader().cursor(ReadOptions::WHOLE_FILE);
    let clipped = |cursor| ClippedCursor::new(cursor, file.clip().clone(), &family.name);
    if file.meta().loaded {
        Source::Loaded(LoadedCursor::new(clipped(cursor), file.meta().max_seq))
    } else if file.is_clipped() {
        Source::Clipped(clipped(cursor))
    } else {
        Source::File(cursor)
    }
}
