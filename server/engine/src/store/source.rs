//! The sources of a store's reads: memstores up to the read point, store files within the region's
//! rows.

use crate::Result;
use crate::cell::{Cell, CellBatch, CellCursor, Key, KeyBuf, is_from};
use crate::hfile::{FileCursor, PlainRows};
use crate::id::SeqId;
use crate::memstore::MemstoreCursor;

use super::Clip;
use super::sorted_cells::SortedCellsCursor;

/// A cursor over one memstore, one file, or the cells of a system table. An enum, so that the merge
/// calls it without indirection.
#[derive(Debug)]
pub(super) enum Source {
    /// A memstore.
    Memstore(VisibleCursor<MemstoreCursor>),
    /// A file all of whose rows are the region's.
    File(FileCursor),
    /// A file that was written before a split.
    Clipped(ClippedCursor<FileCursor>),
    /// A file with cells that were written after the read point.
    Newer(VisibleCursor<ClippedCursor<FileCursor>>),
    /// A file of a bulk load.
    Loaded(LoadedCursor<ClippedCursor<FileCursor>>),
    /// The cells of a system table.
    System(SortedCellsCursor),
}

macro_rules! each {
    ($self:ident, $cursor:ident => $call:expr) => {
        match $self {
            Source::Memstore($cursor) => $call,
            Source::File($cursor) => $call,
            Source::Clipped($cursor) => $call,
            Source::Newer($cursor) => $call,
            Source::Loaded($cursor) => $call,
            Source::System($cursor) => $call,
        }
    };
}

impl Source {
    /// Appends plain rows from the current cell on, and moves behind them, in the direction in which it goes
    /// ([`FileCursor::append_plain_rows`]).
    /// Only files that are read whole have such runs.
    #[inline]
    pub(super) fn append_plain_rows(&mut self, wanted: &PlainRows<'_>, out: &mut CellBatch) -> usize {
        match self {
            Self::File(cursor) => cursor.append_plain_rows(wanted, out),
            _ => 0,
        }
    }
}

impl CellCursor for Source {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        each!(self, cursor => cursor.cell())
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        each!(self, cursor => cursor.advance())
    }
    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        each!(self, cursor => cursor.seek(target))
    }
    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        each!(self, cursor => cursor.seek_forward(target))
    }
    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.seek_row_before(row))
    }
    fn seek_last_row(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_last_row())
    }
    fn bounds(&self) -> Option<(Key<'_>, Key<'_>)> {
        each!(self, cursor => cursor.bounds())
    }
}

/// Leaves out cells that were written after the read point.
#[derive(Debug)]
pub(super) struct VisibleCursor<C> {
    inner: C,
    read_point: SeqId,
}

impl<C: CellCursor> VisibleCursor<C> {
    pub(super) fn new(inner: C, read_point: SeqId) -> Self {
        Self { inner, read_point }
    }

    /// Moves on to the first visible cell from here.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        while self.inner.cell().is_some_and(|cell| cell.seq > self.read_point) {
            self.inner.advance()?;
        }
        Ok(())
    }

    /// After a reversed step: the row may have no visible cell, then the one before it counts, and so on.
    fn settle_back(&mut self) -> Result<()> {
        loop {
            let Some(cell) = self.inner.cell() else {
                return Ok(());
            };
            if cell.seq <= self.read_point {
                return Ok(());
            }
            let row = cell.key.row().to_vec();
            self.settle()?;
            if self.inner.cell().is_some_and(|cell| cell.key.row() == row) {
                return Ok(());
            }
            self.inner.seek_row_before(&row)?;
        }
    }
}

impl<C: CellCursor> CellCursor for VisibleCursor<C> {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        self.inner.cell()
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.inner.advance()?;
        self.settle()
    }
    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        self.inner.seek(target)?;
        self.settle()
    }
    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        self.inner.seek_forward(target)?;
        self.settle()
    }
    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        self.inner.seek_row_before(row)?;
        self.settle_back()
    }
    fn seek_last_row(&mut self) -> Result<()> {
        self.inner.seek_last_row()?;
        self.settle_back()
    }
    fn bounds(&self) -> Option<(Key<'_>, Key<'_>)> {
        self.inner.bounds()
    }
}

/// Gives the cells of a bulk load their sequence id, which they do not have in the file.
#[derive(Debug)]
pub(super) struct LoadedCursor<C> {
    inner: C,
    seq: SeqId,
}

impl<C: CellCursor> LoadedCursor<C> {
    pub(super) fn new(inner: C, seq: SeqId) -> Self {
        Self { inner, seq }
    }
}

impl<C: CellCursor> CellCursor for LoadedCursor<C> {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        let seq = self.seq;
        self.inner.cell().map(|cell| Cell { seq, ..cell })
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.inner.advance()
    }
    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        self.inner.seek(target)
    }
    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        self.inner.seek_forward(target)
    }
    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        self.inner.seek_row_before(row)
    }
    fn seek_last_row(&mut self) -> Result<()> {
        self.inner.seek_last_row()
    }
    fn bounds(&self) -> Option<(Key<'_>, Key<'_>)> {
        self.inner.bounds()
    }
}

/// Leaves out rows outside a clip.
#[derive(Debug)]
pub(super) struct ClippedCursor<C> {
    inner: C,
    clip: Clip,
    family: Vec<u8>,
    /// Whether the inner cursor stands inside the clip.
    inside: bool,
}

impl<C: CellCursor> ClippedCursor<C> {
    pub(super) fn new(inner: C, clip: Clip, family: &[u8]) -> Self {
        Self {
            inner,
            clip,
            family: family.to_vec(),
            inside: false,
        }
    }

    #[inline]
    fn settle(&mut self) {
        self.inside = self
            .inner
            .cell()
            .is_some_and(|cell| self.clip.contains(cell.key.row()));
    }
}

impl<C: CellCursor> CellCursor for ClippedCursor<C> {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        if self.inside { self.inner.cell() } else { None }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        // Nothing lies past the clip: reading on there would fetch blocks in vain.
        if self.inside {
            self.inner.advance()?;
            self.inside = self
                .inner
                .cell()
                .is_some_and(|cell| self.clip.is_before_end(cell.key.row()));
        }
        Ok(())
    }

    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        if is_from(target.row(), &self.clip.start) {
            self.inner.seek(target)?;
        } else {
            let start = KeyBuf::first_on_row(&self.clip.start, &self.family);
            self.inner.seek(start.as_key())?;
        }
        self.settle();
        Ok(())
    }

    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        if self.inside {
            self.inner.seek_forward(target)?;
            self.settle();
        }
        Ok(())
    }

    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        if self.clip.is_before_end(row) {
            self.inner.seek_row_before(row)?;
        } else {
            self.inner.seek_row_before(&self.clip.end)?;
        }
        self.settle();
        Ok(())
    }

    fn seek_last_row(&mut self) -> Result<()> {
        if self.clip.end.is_empty() {
            self.inner.seek_last_row()?;
        } else {
            self.inner.seek_row_before(&self.clip.end)?;
        }
        self.settle();
        Ok(())
    }

    /// Those of the whole file.
    fn bounds(&self) -> Option<(Key<'_>, Key<'_>)> {
        self.inner.bounds()
    }
}
