//! The starts of the rows in a stretch of a data block, by which a cursor walks backward.
//!
//! A block can be decoded forward only. The step to the row before a given one therefore decodes a
//! stretch of the block before that row once ([`DataBlock::rows_before`]) and records where each
//! row of it starts. The following steps go down this list: each compares two rows, and searches
//! and decodes nothing.
//!
//! 1. `rows_before` fills the list with the rows that start in the stretch and are before the
//!    target. The last of them is the result.
//! 2. [`DataBlock::step_back`] takes rows off the end of the list until the last one is before its
//!    target.
//! 3. In an encoded block, the step forward from a row of one cell goes to the row that was taken
//!    off last, which is already decoded ([`DataBlock::next_listed`]). A reversed scan makes this
//!    step to see that the row is over.
//! 4. When the list is used up, the cursor refills it from the stretch before, or from the block
//!    before.
//!
//! Stretches begin at entries of the search index (`search_index`) and grow while the walk
//! continues, so that a single step costs little. The list has at most [`BYTES_MAX`] bytes and a
//! row: of a larger stretch it keeps only the last rows.
//!
//! Invariants:
//! - The rows of the list are consecutive: no other row starts between two of them.
//! - A list belongs to one block. The cursor clears it before it moves to another.

use super::cell_layout::{CellOffsets, CurrentCell};
use super::data_block::DataBlock;
use crate::cell::{Key, compare_keys};

/// Maximum memory of a list, not counting its last row.
const BYTES_MAX: usize = 64 << 10;

/// A stretch has at most `1 << GROWTH_MAX` times the search entries of the first one.
const GROWTH_MAX: u32 = 3;

/// The first cell of a row.
#[derive(Clone, Copy, Debug)]
struct Start {
    offsets: CellOffsets,
    /// The end of its key in `RowStarts::keys`; the key starts where that of the row before ends.
    /// Plain blocks hold their keys themselves.
    key_end: u32,
    /// Whether the row has no other cell, so that the next entry is the next cell.
    is_single: bool,
}

/// The list of row starts.
#[derive(Debug, Default)]
pub(super) struct RowStarts {
    starts: Vec<Start>,
    /// Number of starts in the list; those behind were taken off.
    listed: usize,
    keys: Vec<u8>,
    /// Whether the first entry is a cell inside a row that starts before the stretch.
    first_is_inside: bool,
    growth: u32,
    /// Walks over the stretch.
    walker: CurrentCell,
}

/// The result of [`DataBlock::rows_before`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowsBefore {
    /// No cell of the block is before the target.
    None,
    /// The last row before the target is the last one of the list.
    Listed,
    /// The last row before the target starts before the stretch, perhaps in an earlier block; the
    /// list has a cell of it.
    StartsEarlier,
}

/// The result of [`DataBlock::step_back`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SteppedBack {
    /// The current cell is the first one of the row.
    Found,
    /// The row before the target starts before all rows of the list, which is empty now.
    UsedUp,
    /// The list does not reach up to the target.
    Elsewhere,
}

impl RowStarts {
    pub(super) fn clear(&mut self) {
        self.starts.clear();
        self.listed = 0;
        self.keys.clear();
        self.first_is_inside = false;
    }

    /// The key of the last entry.
    /// REQUIRES: the list has an entry and belongs to `block`.
    pub(super) fn last_key<'a>(&'a self, block: &'a DataBlock) -> Key<'a> {
        self.key(self.listed - 1, block)
    }

    fn key<'a>(&'a self, at: usize, block: &'a DataBlock) -> Key<'a> {
        let start = &self.starts[at];
        if block.is_plain() {
            return block.plain_key(&start.offsets);
        }
        Key::trusted(&self.keys[self.key_start(at)..start.key_end as usize])
    }

    fn key_start(&self, at: usize) -> usize {
        at.checked_sub(1)
            .map_or(0, |before| self.starts[before].key_end as usize)
    }

    /// Bytes of the list.
    pub(super) fn bytes(&self) -> usize {
        self.starts.len() * size_of::<Start>() + self.keys.len()
    }

    /// Adds the cell at the walker.
    fn push(&mut self, block: &DataBlock) {
        if self.bytes() > BYTES_MAX {
            self.clear();
            self.growth = 0;
        }
        if !block.is_plain() {
            self.keys.extend_from_slice(&self.walker.key);
        }
        self.starts.push(Start {
            offsets: self.walker.offsets,
            key_end: self.keys.len() as u32,
            is_single: false,
        });
        self.listed = self.starts.len();
    }

    /// Moves `current` to the last row.
    /// REQUIRES: the list has a row.
    pub(super) fn move_to_last(&self, block: &DataBlock, current: &mut CurrentCell) {
        self.move_to(self.listed - 1, block, current);
    }

    fn move_to(&self, at: usize, block: &DataBlock, current: &mut CurrentCell) {
        current.offsets = self.starts[at].offsets;
        if !block.is_plain() {
            current.key.clear();
            current.key.extend_from_slice(self.key(at, block).bytes());
        }
    }

    /// The number of the entry behind the last row, if `current` is the first cell of that row and the
    /// entry is the next cell.
    #[inline]
    fn next_of(&self, current: &CurrentCell) -> Option<usize> {
        let last = self.starts.get(self.listed.checked_sub(1)?)?;
        let is_next = last.is_single && last.offsets.next == current.offsets.next;
        is_next.then_some(self.listed)
    }

    /// The start of the row before the last one, if the list has it and the last one begins at `last`.
    #[inline]
    pub(super) fn before_last(&self, last: &CellOffsets) -> Option<CellOffsets> {
        let before = self.listed.checked_sub(2)?;
        let is_known = before >= usize::from(self.first_is_inside);
        (is_known && self.starts[before + 1].offsets == *last).then(|| self.starts[before].offsets)
    }

    /// Takes the last row off.
    /// REQUIRES: the list has a row.
    #[inline]
    pub(super) fn remove_last(&mut self) {
        self.listed -= 1;
    }

    /// Whether the list has no row with a known start.
    fn is_used_up(&self) -> bool {
        self.listed <= usize::from(self.first_is_inside)
    }
}

impl DataBlock {
    /// Lists rows that start before `target` (`None`: the end), in a stretch that ends there.
    /// REQUIRES: `target` is before all cells of its row, and `begins_row` is set only if the
    /// block's first cell is the first of its row.
    pub(super) fn rows_before(
        &self,
        target: Option<Key<'_>>,
        begins_row: bool,
        rows: &mut RowStarts,
    ) -> RowsBefore {
        rows.clear();
        let before = self.search_entries_before(target);
        if before == 0 {
            return RowsBefore::None;
        }
        let first_stretch = if self.is_plain() { 8 } else { 2 };
        let from = before.saturating_sub(first_stretch << rows.growth);
        rows.growth = (rows.growth + 1).min(GROWTH_MAX);
        self.move_to_search_entry(from, &mut rows.walker);
        rows.first_is_inside = from > 0 || !begins_row;
        // The last entry before the target, and so every cell up to it, need not be compared.
        let passed = self.passed(before - 1);
        // Number of cells of the last row so far.
        let mut cells = 0_usize;
        loop {
            let row = self.key(&rows.walker).row();
            let may_be_behind = rows.walker.offsets.next > passed;
            if may_be_behind && target.is_some_and(|target| row >= target.row()) {
                break;
            }
            if rows.starts.is_empty() || !rows.last_key(self).is_of_row(row) {
                if let Some(last) = rows.starts.last_mut() {
                    last.is_single = cells == 1;
                }
                cells = 0;
                rows.push(self);
            }
            cells += 1;
            if !self.next(&mut rows.walker) {
                break;
            }
        }
        match rows.starts.len() {
            0 => RowsBefore::None,
            _ if rows.is_used_up() => {
                // A list saves nothing with rows this large.
                rows.growth = 0;
                RowsBefore::StartsEarlier
            }
            _ => RowsBefore::Listed,
        }
    }

    /// Moves `current` to the start of the greatest row before `row`, if the list has it.
    /// REQUIRES: `rows` is a list of this block; its last row, if any, is the one that was found
    /// last.
    #[inline]
    pub(super) fn step_back(
        &self,
        row: &[u8],
        rows: &mut RowStarts,
        current: &mut CurrentCell,
    ) -> SteppedBack {
        if rows.is_used_up() || rows.last_key(self).row() < row {
            return SteppedBack::Elsewhere;
        }
        loop {
            rows.listed -= 1;
            if rows.is_used_up() {
                rows.clear();
                return SteppedBack::UsedUp;
            }
            if rows.last_key(self).row() < row {
                rows.move_to_last(self, current);
                return SteppedBack::Found;
            }
        }
    }

    /// Moves `current`, a cell of this block, to the next cell, if the list has that cell decoded.
    #[inline]
    pub(super) fn next_listed(&self, rows: &RowStarts, current: &mut CurrentCell) -> bool {
        if self.is_plain() {
            return false;
        }
        let next = rows.next_of(current);
        if let Some(next) = next {
            rows.move_to(next, self, current);
        }
        next.is_some()
    }

    /// Moves `current`, a cell of this block, forward to the first cell at or after `target`, if that
    /// is the current or the next cell and the list has the next one decoded.
    pub(super) fn step_to_listed(
        &self,
        target: Key<'_>,
        rows: &RowStarts,
        current: &mut CurrentCell,
    ) -> bool {
        if self.is_plain() {
            return false;
        }
        let Some(next) = rows.next_of(current) else {
            return false;
        };
        if compare_keys(self.key(current), target).is_lt() {
            if compare_keys(rows.key(next, self), target).is_lt() {
                return false;
            }
            rows.move_to(next, self, current);
        }
        true
    }
}
