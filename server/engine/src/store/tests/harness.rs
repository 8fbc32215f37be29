//! A store on a simulated disk, with the region's part done by hand: sequence ids, flush,
//! compaction, publication.

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::TextCell;
use crate::cache::BlockCache;
use crate::cell::{CallMemory, CellBatch};
use crate::clock::{Ahead, ManualClock};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::fs::HandleCache;
use crate::fs::sim::{SimFs, SimOptions};
use crate::hfile::{ReaderContext, RunLimits};
use crate::id::{FileId, SeqId};
use crate::jobs::JobProgress;
use crate::memstore::Memstore;
use crate::metrics::{Counters, EventListener};
use crate::op::{FamilySelection, ReadSpec};
use crate::schema::{FamilyDescriptor, TableName};
use crate::store::compact::{CompactionJob, RateLimiter, run};
use crate::store::stripes::{RowRange, StripeLimits};
use crate::store::{
    Clip, FlushTarget, NewFile, Reach, ReadRows, ReadView, RowLimit, RowProgress, Sources, StoreContext,
    StoreFile, StoreScanner, StoreVersion, Stripes, WrittenFile, create_store_dir, flush, sync_names,
};

pub(super) const NOW_MS: i64 = 10_000;

/// The horizon without readers.
pub(super) const NOBODY: ReadView = ReadView {
    read_point: SeqId::MAX,
    now_ms: NOW_MS,
    ahead: Ahead::NONE,
};

/// A family with these options, as `VERSIONS=3 TTL=5`.
pub(super) fn family(options: &str) -> FamilyDescriptor {
    options
        .split_whitespace()
        .map(|option| option.split_once('=').unwrap())
        .fold(FamilyDescriptor::new(b"f"), |family, (name, value)| {
            family.with(name, value).unwrap()
        })
}

pub(super) struct TestStore {
    pub(super) context: StoreContext,
    pub(super) disk: SimFs,
    pub(super) errors: Arc<Errors>,
    pub(super) version: StoreVersion,
    pub(super) dir: PathBuf,
    pub(super) seq: u64,
    /// The earliest read point that flushes and compactions preserve.
    pub(super) horizon: ReadView,
    next_file: u64,
    /// Sizes of its stripes; none by default.
    pub(super) limits: StripeLimits,
}

/// Names of new files.
struct Names {
    dir: PathBuf,
    last: Cell<u64>,
}

impl Names {
    fn next(&self) -> NewFile {
        self.last.set(self.last() + 1);
        NewFile {
            id: FileId(self.last()),
            dir: self.dir.clone(),
            table: TableName::parse(b"t").unwrap(),
        }
    }

    fn last(&self) -> u64 {
        self.last.get()
    }
}

/// Collects the errors of background work.
#[derive(Debug, Default)]
pub(super) struct Errors(pub(super) Mutex<Vec<String>>);

impl EventListener for Errors {
    fn background_error(&self, during: &'static str, error: &Error) {
        self.0.lock().push(format!("{during}: {error}"));
    }
}

impl TestStore {
    pub(super) fn new(options: &str) -> Self {
        let disk = SimFs::new(1, SimOptions::default());
        let errors = Arc::new(Errors::default());
        let clock = Arc::new(ManualClock::at(NOW_MS as u64));
        let context = StoreContext {
            vfs: Arc::new(disk.clone()),
            reader: ReaderContext {
                // Fewer than most tests have files, so that files are closed and opened again.
                handles: HandleCache::new(Arc::new(disk.clone()), 2),
                cache: Arc::new(BlockCache::new(16 << 20)),
                counters: Arc::new(Counters::default()),
                direct_reads: false,
                calls: CallMemory::default(),
            },
            chunks: Arc::default(),
            removals: Arc::default(),
            clock,
            listener: Arc::clone(&errors) as Arc<dyn EventListener>,
        };
        let table = TableName::parse(b"t").unwrap();
        let dir = create_store_dir(&*context.vfs, Path::new("db"), &table, b"f").unwrap();
        Self {
            context,
            disk,
            errors,
            version: StoreVersion::new(Arc::new(family(options)), Vec::new(), Memstore::default()),
            dir,
            seq: 0,
            horizon: NOBODY,
            next_file: 1,
            limits: StripeLimits {
                bytes_min: 0,
                count_max: 32,
            },
        }
    }

    /// One side of a split: a store with shares in the same files, clipped. `side` keeps the names of new
    /// files apart.
    pub(super) fn half(&self, clip: &Clip, side: u64) -> Self {
        let files = self
            .version
            .files
            .iter()
            .map(|file| file.reclip(clip.clone()))
            .collect();
        Self {
            context: self.context.clone(),
            disk: self.disk.clone(),
            errors: Arc::clone(&self.errors),
            version: StoreVersion::new(Arc::clone(&self.version.family), files, Memstore::default()),
            dir: self.dir.clone(),
            seq: self.seq,
            horizon: self.horizon,
            next_file: self.next_file + 1000 * side,
            limits: self.limits,
        }
    }

    /// Writes a cell with the next sequence id.
    pub(super) fn write(&mut self, mut cell: TextCell) -> TextCell {
        self.seq += 1;
        cell.seq = SeqId(self.seq);
        self.version.active.insert(cell.as_cell());
        cell
    }

    /// Writes cells given as text.
    pub(super) fn write_all(&mut self, cells: &str) {
        for cell in cells.split_whitespace() {
            self.write(TextCell::parse(cell));
        }
    }

    pub(super) fn freeze(&mut self) {
        self.version = self.version.with_frozen(Arc::new(Memstore::default()));
    }

    fn names(&self) -> Names {
        Names {
            dir: self.dir.clone(),
            last: Cell::new(self.next_file),
        }
    }

    /// Freezes and flushes everything.
    pub(super) fn flush(&mut self) {
        self.try_flush().unwrap();
    }

    pub(super) fn try_flush(&mut self) -> Result<()> {
        self.freeze();
        let names = self.names();
        let frozen = self.version.frozen.clone();
        let flushed = flush(
            &self.context,
            &self.version.family,
            &frozen,
            FlushTarget {
                files: &|| names.next(),
                boundaries: &self.stripes().boundaries(),
            },
            self.horizon,
            &JobProgress::default(),
        )?;
        self.next_file = names.last();
        let cells: u64 = flushed.files.iter().map(|file| file.meta.cells).sum();
        assert_eq!(flushed.cells_out, cells);
        let adopt =
            |file: WrittenFile| StoreFile::adopt(&self.context, file.meta, file.reader, Clip::default());
        let files: Vec<_> = flushed.files.into_iter().map(adopt).collect();
        if !files.is_empty() {
            // As `catalog` does for all files of a batch.
            sync_names(&*self.context.vfs, &self.dir)
                .inspect_err(|_| files.iter().for_each(|file| file.mark_obsolete()))?;
        }
        self.version = self.version.with_flushed(&frozen, &files);
        Ok(())
    }

    /// Compacts these files; clipped ones only where this store sees them.
    pub(super) fn compact(&mut self, files: Range<usize>) {
        let done = self.try_compact(files, &AtomicBool::new(false)).unwrap();
        assert!(done, "it is never cancelled");
    }

    /// Whether it ran to its end.
    pub(super) fn try_compact(&mut self, files: Range<usize>, cancel: &AtomicBool) -> Result<bool> {
        let all_files = files.len() == self.version.files.len();
        self.try_compact_files(&files.collect::<Vec<_>>(), all_files, None, cancel)
    }

    /// The stripes of the store.
    pub(super) fn stripes(&self) -> Stripes {
        let files: Vec<_> = self.version.files.iter().map(|file| RowRange::of(file)).collect();
        Stripes::of(&files, self.limits)
    }

    /// Compacts all files of a stripe.
    pub(super) fn compact_stripe(&mut self, stripe: usize) {
        let stripes = self.stripes();
        let stripe = &stripes.stripes[stripe];
        let bytes = stripes.piece_bytes(stripe);
        let cancel = AtomicBool::new(false);
        let done = self
            .try_compact_files(&stripe.files, true, bytes, &cancel)
            .unwrap();
        assert!(done, "it is never cancelled");
    }

    fn try_compact_files(
        &mut self,
        files: &[usize],
        all_files: bool,
        piece_bytes: Option<u64>,
        cancel: &AtomicBool,
    ) -> Result<bool> {
        let inputs: Vec<_> = files
            .iter()
            .map(|index| Arc::clone(&self.version.files[*index]))
            .collect();
        let names = self.names();
        let compacted = run(&CompactionJob {
            context: &self.context,
            family: &self.version.family,
            inputs: &inputs,
            all_files,
            targets: &|| names.next(),
            piece_bytes,
            horizon: self.horizon,
            limiter: &RateLimiter::new(Arc::clone(&self.context.clock), 0),
            cancel,
            progress: &JobProgress::default(),
        })?;
        self.next_file = names.last();
        let Some(compacted) = compacted else {
            return Ok(false);
        };
        let removed: Vec<FileId> = inputs.iter().map(|file| file.id()).collect();
        let clip = inputs[0].clip().clone();
        let adopt = |file: WrittenFile| StoreFile::adopt(&self.context, file.meta, file.reader, clip.clone());
        let added: Vec<_> = compacted.files.into_iter().map(adopt).collect();
        self.version = self.version.with_compacted(&removed, &added);
        for input in inputs {
            input.mark_obsolete();
        }
        Ok(true)
    }

    pub(super) fn open(
        &self,
        selection: Option<&FamilySelection>,
        spec: &ReadSpec,
        read_point: SeqId,
        rows: ReadRows<'_>,
    ) -> StoreScanner {
        let read_view = ReadView {
            read_point,
            now_ms: NOW_MS,
            ahead: Ahead::NONE,
        };
        self.open_at(selection, spec, read_view, rows)
    }

    /// Opens a scanner at any read point.
    pub(super) fn open_at(
        &self,
        selection: Option<&FamilySelection>,
        spec: &ReadSpec,
        read_view: ReadView,
        rows: ReadRows<'_>,
    ) -> StoreScanner {
        self.try_open_at(selection, spec, (Reach::Disk, read_view), rows)
            .unwrap()
    }

    /// Opens a scanner at any read point, or returns the error.
    pub(super) fn try_open_at(
        &self,
        selection: Option<&FamilySelection>,
        spec: &ReadSpec,
        (reach, read_view): (Reach, ReadView),
        rows: ReadRows<'_>,
    ) -> Result<StoreScanner> {
        let sources = Sources::of(&self.version, selection, spec, (reach, read_view), rows)?;
        let mut scanner = StoreScanner::over(sources, &self.version, selection, spec, read_view, rows);
        scanner.go_to_begin(rows)?;
        Ok(scanner)
    }

    /// Reads one row with default settings but these versions; cells as text without sequence ids.
    pub(super) fn get(&self, row: &str, max_versions: i32) -> String {
        let spec = ReadSpec {
            max_versions,
            ..ReadSpec::default()
        };
        let mut scanner = self.open(None, &spec, SeqId::MAX, ReadRows::One(row.as_bytes()));
        show(&read_all(&mut scanner, None, usize::MAX))
    }

    /// Scans everything; cells as text without sequence ids.
    pub(super) fn scan(&self, spec: &ReadSpec) -> String {
        let rows = ReadRows::Range {
            low: b"",
            high: b"",
            reversed: false,
        };
        let mut scanner = self.open(None, spec, SeqId::MAX, rows);
        show(&read_all(&mut scanner, None, usize::MAX))
    }

    pub(super) fn names_on_disk(&self) -> Vec<String> {
        let names = self.context.vfs.list(&self.dir).unwrap();
        names
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }
}

pub(super) fn show(cells: &[TextCell]) -> String {
    let texts = cells.iter().map(|cell| {
        let mut cell = cell.clone();
        cell.seq = SeqId::ZERO;
        cell.to_string()
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Reads plain rows as long as the next ones are, at most `rows`.
pub(super) fn plain_rows(scanner: &mut StoreScanner, rows: usize) -> Vec<TextCell> {
    let limits = RunLimits { rows, ..UNLIMITED };
    let mut out = CellBatch::new();
    let taken = scanner.append_plain_rows(limits, &mut out);
    assert!(taken <= rows && taken == out.row_count());
    assert!(out.open_cells().is_empty(), "a row is open");
    out.rows()
        .flat_map(|row| row.cells().map(TextCell::of).collect::<Vec<_>>())
        .collect()
}

/// A run of any length.
pub(super) const UNLIMITED: RunLimits<'static> = RunLimits {
    rows: usize::MAX,
    bytes: usize::MAX,
    cut_at: usize::MAX,
    row_bytes: usize::MAX,
    end: b"",
};

/// Reads to the end, in pieces of at most `batch` cells.
pub(super) fn read_all(
    scanner: &mut StoreScanner,
    mut filter: Option<&mut dyn Filter>,
    batch: usize,
) -> Vec<TextCell> {
    let mut results = Vec::new();
    while let Some(row) = scanner.row().map(<[u8]>::to_vec) {
        loop {
            let mut out = CellBatch::new();
            let mut limit = RowLimit {
                cells: batch,
                ..RowLimit::NONE
            };
            let progress = scanner
                .read_row(&row, filter.as_deref_mut(), &mut limit, &mut out)
                .unwrap();
            out.end_row(false);
            let cells: Vec<TextCell> = out
                .rows()
                .flat_map(|row| row.cells().map(TextCell::of).collect::<Vec<_>>())
                .collect();
            assert!(cells.len() <= batch);
            results.extend(cells.iter().cloned());
            match progress {
                RowProgress::Done => break,
                RowProgress::LimitReached => assert_eq!(cells.len(), batch, "the limit was not reached"),
                RowProgress::ScanDone => return results,
            }
        }
        assert_ne!(
            scanner.row(),
            Some(row.as_slice()),
            "the scanner stays at a row that is done"
        );
    }
    results
}
