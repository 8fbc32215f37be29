//! Results for programs that embed the engine: rows that own their cells, and a scan as an iterator.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::Duration;

use super::{Fetched, Scanner};
use crate::cell::{Cell, CellBatch, RowView};
use crate::error::{Error, Result};
use crate::op::FetchLimits;
use crate::schema::Escaped;

/// Bounds of one fetch of [`Rows`]. The time lets a scan whose filter matches nothing release
/// memstores and files that its regions have replaced.
const FETCH: FetchLimits = FetchLimits {
    results: 128,
    bytes: 256 << 10,
    time: Duration::from_secs(1),
};

/// A row that was read; it has at least one cell. Cheap to clone. Rows of one scan share memory with up to
/// 127 of their neighbours, so a row that is kept for long is better copied.
#[derive(Clone)]
pub struct Row {
    batch: Arc<CellBatch>,
    index: usize,
}

impl Row {
    /// The last row of the batch; `None` if it has none.
    pub(super) fn last_of(batch: CellBatch) -> Option<Self> {
        let index = batch.row_count().checked_sub(1)?;
        Some(Self {
            batch: Arc::new(batch),
            index,
        })
    }

    fn view(&self) -> RowView<'_> {
        self.batch.row(self.index)
    }

    /// The row key.
    pub fn key(&self) -> &[u8] {
        self.view().key()
    }

    /// The cells, ordered by family, qualifier and, newest first, timestamp.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell<'_>> {
        self.view().cells()
    }

    /// The value of the newest cell of a column; `None` if the column was not read.
    pub fn value(&self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>) -> Option<&[u8]> {
        let (family, qualifier) = (family.as_ref(), qualifier.as_ref());
        self.cells()
            .find(|cell| cell.key.family() == family && cell.key.qualifier() == qualifier)
            .map(|cell| cell.value)
    }

    /// Whether more cells of the row follow in the next result; only with
    /// [`Scan::batch`](crate::op::Scan::batch).
    pub fn is_partial(&self) -> bool {
        self.view().partial
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Row({} with {} cells)", Escaped(self.key()), self.view().len())
    }
}

/// A running scan: an iterator over rows, all as of the time of [`Table::scan`](super::Table::scan).
///
/// It reads up to 128 rows ahead. The first error is its last item.
#[derive(Debug)]
pub struct Rows {
    /// `None` when there is nothing more to fetch.
    scanner: Option<Box<Scanner>>,
    /// The last fetch.
    batch: Arc<CellBatch>,
    /// Position of the next row in `batch`.
    next: usize,
    /// The error that ended the scan, until it was returned.
    failed: Option<Error>,
}

impl Rows {
    /// A scan that was opened, or failed to.
    pub(super) fn new(opened: Result<Scanner>) -> Self {
        let (scanner, failed) = match opened {
            Ok(scanner) => (Some(Box::new(scanner)), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            scanner,
            batch: Arc::default(),
            next: 0,
            failed,
        }
    }

    /// Replaces the batch by the next one. Its memory is reused if no row of it is left.
    fn fetch(&mut self, mut scanner: Box<Scanner>) {
        self.next = 0;
        if Arc::get_mut(&mut self.batch).is_none() {
            self.batch = Arc::default();
        }
        let batch = Arc::get_mut(&mut self.batch).expect("no row has the batch");
        batch.clear();
        match scanner.fetch(&FETCH, batch) {
            Ok(Fetched::More) => self.scanner = Some(scanner),
            Ok(Fetched::End) => {}
            Err(error) => self.failed = Some(error),
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        loop {
            if self.next < self.batch.row_count() {
                let index = self.next;
                self.next += 1;
                return Some(Ok(Row {
                    batch: Arc::clone(&self.batch),
                    index,
                }));
            }
            match self.scanner.take() {
                Some(scanner) => self.fetch(scanner),
                None => return self.failed.take().map(Err),
            }
        }
    }
}

impl FusedIterator for Rows {}
