//! The one way to walk over sorted cells: memstore, store file, and merges of them.

use super::{Cell, Key};
use crate::Result;

/// A position in a sorted run of cells of one family in one region.
///
/// A new cursor has no position: seek first. The cell under the cursor stays valid until the next
/// call on it. Cursors keep the memstore or file that they read alive, and hold no lock between
/// calls.
pub trait CellCursor: Send {
    /// The cell under the cursor; `None` past the end, and before the first seek.
    fn cell(&self) -> Option<Cell<'_>>;

    /// Moves to the next cell in order.
    fn advance(&mut self) -> Result<()>;

    /// Moves to the first cell at or after `target`, forward or backward.
    fn seek(&mut self, target: Key<'_>) -> Result<()>;

    /// Moves forward to the first cell at or after `target`; stays if it is there already. A close
    /// target is reached by stepping inside the block, which is cheaper than a search from the
    /// root.
    fn seek_forward(&mut self, target: Key<'_>) -> Result<()>;

    /// Moves to the first cell of the greatest row that sorts before `row`; past the end when there
    /// is none. Reversed scans step this way: rows backward, cells of a row forward.
    fn seek_row_before(&mut self, row: &[u8]) -> Result<()>;

    /// Moves to the first cell of the last row; past the end when there is none.
    fn seek_last_row(&mut self) -> Result<()>;

    /// Two keys between which all cells are, bounds included; `None`: not known. Reads nothing, and
    /// never changes. A merge leaves a cursor alone until it gets there.
    fn bounds(&self) -> Option<(Key<'_>, Key<'_>)> {
        None
    }
}
