//! Walks a store file.
//!
//! The cursor holds the path from the root index to its data block. Inside a block it moves from
//! cell to cell; at a block's end the path moves by one entry. A failed move leaves the cursor
//! unchanged.
//!
//! A reversed step first uses the list of rows that an earlier step has made (`row_starts`). When
//! the list is used up, it is made again, of the same block or of the one before, which the path
//! reaches without a search. Only a step from somewhere else, or over a row that is larger than a
//! stretch or a block, searches from the root. A cursor that goes backward holds its last two data
//! blocks, because a row that begins in one block and ends in the next is read in both directions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::blocks::{Block, Want};
use super::cell_layout::CurrentCell;
use super::data_block::Stepped;
use super::index::{Handle, IndexBlock};
use super::plain_rows::PlainRows;
use super::read_ahead::{ReadAhead, Toward};
use super::reader::{Reader, row_start};
use super::row_starts::{RowStarts, RowsBefore, SteppedBack};
use super::{Access, ReadOptions};
use crate::cell::{Account, Cell, CellBatch, CellCursor, CellType, Key, KeyBuf, compare_keys};
use crate::error::Result;

/// Cells that `seek_forward` steps over before it searches.
const STEPS_MAX: usize = 8;

/// A block of the index below the root, and the cursor's entry in it.
#[derive(Clone, Debug)]
struct Level {
    block: Arc<Block>,
    entry: usize,
}

/// The entry to take on the way down.
#[derive(Clone, Copy)]
enum Choose<'a> {
    First,
    Last,
    /// The last one at or before the key, else the first.
    Key(Key<'a>),
}

impl Choose<'_> {
    fn entry(self, index: &IndexBlock) -> usize {
        match self {
            Self::First => 0,
            Self::Last => index.len() - 1,
            Self::Key(key) => index.find(key).unwrap_or(0),
        }
    }
}

/// The state of a cursor that goes backward.
#[derive(Debug, Default)]
struct Backward {
    /// Rows of the current data block; empty if the path does not lead to it.
    rows: RowStarts,
    /// The data blocks used last, by offset, the most recent first.
    recent: SmallVec<[(u64, Arc<Block>); RECENT_BLOCKS]>,
}

/// Data blocks that a cursor holds when it goes backward.
const RECENT_BLOCKS: usize = 2;

/// Size on disk up to which a data block is held: reading a larger one again costs little compared
/// with reading its cells.
const RECENT_BLOCK_BYTES_MAX: u32 = 1 << 20;

impl Backward {
    fn recent(&self, offset: u64) -> Option<Arc<Block>> {
        let found = self.recent.iter().find(|(at, _)| *at == offset);
        found.map(|(_, block)| Arc::clone(block))
    }

    fn hold(&mut self, handle: Handle, block: &Arc<Block>) {
        self.recent.retain(|(at, _)| *at != handle.offset);
        if handle.bytes <= RECENT_BLOCK_BYTES_MAX {
            self.recent.truncate(RECENT_BLOCKS - 1);
            self.recent.insert(0, (handle.offset, Arc::clone(block)));
        }
    }
}

/// Walks a file.
#[derive(Debug)]
pub struct FileCursor {
    reader: Arc<Reader>,
    options: ReadOptions,
    root_entry: usize,
    /// Intermediate levels, then the leaf. Empty when the root leads to data blocks.
    path: SmallVec<[Level; 2]>,
    /// The data block; `None` before the first seek and past the end.
    block: Option<Arc<Block>>,
    /// The cell in it.
    current: CurrentCell,
    /// Past the end, in contrast to "before the first seek".
    ended: bool,
    ahead: ReadAhead,
    /// `None` until the first reversed step.
    backward: Option<Box<Backward>>,
    /// The reservation for the current block, if it is a large one.
    account: Account,
}

impl Reader {
    /// A cursor over all cells; it keeps the file open.
    pub fn cursor(self: &Arc<Self>, options: ReadOptions) -> FileCursor {
        FileCursor::new(Arc::clone(self), options)
    }
}

impl FileCursor {
    pub(super) fn new(reader: Arc<Reader>, options: ReadOptions) -> Self {
        Self {
            reader,
            options,
            root_entry: 0,
            path: SmallVec::new(),
            block: None,
            current: CurrentCell::default(),
            ended: false,
            ahead: ReadAhead::default(),
            backward: None,
            account: Account::default(),
        }
    }

    /// Reserves the memory of a large block, in addition to that of the current one.
    /// [`Self::stand`] releases the latter.
    fn charge(&mut self, block: &Block) -> Result<()> {
        let bytes = block.large_bytes();
        let Some(on_shortage) = self.options.charge.filter(|_| bytes > 0) else {
            return Ok(());
        };
        if !self.account.has_budget() {
            self.account = self.reader.calls().account(0, on_shortage);
        }
        self.account.add(bytes)
    }

    /// Position of the cursor's data block.
    /// REQUIRES: the cursor is at a cell.
    #[cfg(test)]
    pub(super) fn block_offset(&self) -> u64 {
        let (index, entry) = self.level(self.path.len());
        index.handle(entry).offset
    }

    /// Appends plain rows of the current block, from the current cell on, and moves behind them; backward, if
    /// the cursor has gone backward. Returns the number of rows.
    /// REQUIRES: the current cell is the first one of its row; after a reversed step the last move was one.
    pub(crate) fn append_plain_rows(&mut self, wanted: &PlainRows<'_>, out: &mut CellBatch) -> usize {
        let current = &mut self.current;
        match (&self.block, &mut self.backward) {
            (None, _) => 0,
            (Some(block), None) => block.data().append_plain_rows(wanted, current, out),
            (Some(block), Some(backward)) => {
                let starts = &mut backward.rows;
                block.data().append_plain_rows_back(wanted, starts, current, out)
            }
        }
    }

    fn end(&mut self) {
        self.block = None;
        self.account.lower_to(0);
        self.ended = true;
    }

    /// Makes `block` the block of the current cell.
    fn stand(&mut self, block: Arc<Block>) {
        let large_bytes = block.large_bytes();
        self.block = Some(block);
        self.account.lower_to(large_bytes);
        self.ended = false;
    }

    /// The index block at a depth of the path, and the entry taken there. Depth 0 is the root.
    fn level(&self, depth: usize) -> (&IndexBlock, usize) {
        match depth.checked_sub(1) {
            None => (&self.reader.root, self.root_entry),
            Some(below) => (self.path[below].block.index(), self.path[below].entry),
        }
    }

    /// Descends from entry `entry` at `depth` of the present path to a data block and returns it.
    /// `toward` is the direction of the cursor's next move.
    /// REQUIRES: the path is that deep and the index block there has the entry.
    fn descend(
        &mut self,
        depth: usize,
        entry: usize,
        choose: Choose<'_>,
        toward: Toward,
    ) -> Result<Arc<Block>> {
        if let Some(backward) = &mut self.backward {
            backward.rows.clear();
        }
        let reader = &*self.reader;
        let mut path: SmallVec<[Level; 2]> = self.path[..depth].iter().cloned().collect();
        let mut root_entry = self.root_entry;
        match path.last_mut() {
            None => root_entry = entry,
            Some(level) => level.entry = entry,
        }
        let levels = reader.trailer.levels as usize;
        for level in depth + 1..levels {
            let want = if level + 1 == levels {
                Want::Leaf
            } else {
                Want::Intermediate
            };
            let block = match path.last() {
                None => reader.under_root(want, root_entry, self.options)?,
                Some(level) => {
                    let handle = level.block.index().handle(level.entry);
                    reader.block(want, handle, self.options)?
                }
            };
            let entry = choose.entry(block.index());
            path.push(Level { block, entry });
        }
        let is_first = root_entry == 0 && path.iter().all(|level| level.entry == 0);
        let (index, entry) = match path.last() {
            None => (&reader.root, root_entry),
            Some(level) => (level.block.index(), level.entry),
        };
        let handle = index.handle(entry);
        let recent = self
            .backward
            .as_ref()
            .and_then(|backward| backward.recent(handle.offset));
        let block = match recent {
            Some(block) => block,
            None => reader.data_block(index, entry, is_first, self.options, &mut self.ahead, toward)?,
        };
        if let Some(backward) = &mut self.backward
            // A large block is reserved only while the cursor stands in it, so it is not held
            // longer.
            && block.large_bytes() == 0
        {
            backward.hold(handle, &block);
        }
        self.charge(&block)?;
        self.path = path;
        self.root_entry = root_entry;
        Ok(block)
    }

    /// The data block in which `target` is, if it is in the file at all. `None` for a file without cells.
    fn find_block(&mut self, choose: Choose<'_>, toward: Toward) -> Result<Option<Arc<Block>>> {
        if self.reader.root.len() == 0 {
            return Ok(None);
        }
        let entry = choose.entry(&self.reader.root);
        self.descend(0, entry, choose, toward).map(Some)
    }

    /// The data block after the present one.
    fn next_block(&mut self) -> Result<Option<Arc<Block>>> {
        for depth in (0..=self.path.len()).rev() {
            let (index, entry) = self.level(depth);
            if entry + 1 < index.len() {
                return self
                    .descend(depth, entry + 1, Choose::First, Toward::End)
                    .map(Some);
            }
        }
        Ok(None)
    }

    /// The data block before the present one.
    fn previous_block(&mut self) -> Result<Option<Arc<Block>>> {
        for depth in (0..=self.path.len()).rev() {
            let (_, entry) = self.level(depth);
            if let Some(entry) = entry.checked_sub(1) {
                return self.descend(depth, entry, Choose::Last, Toward::Start).map(Some);
            }
        }
        Ok(None)
    }

    /// The index key of the data block after the present one: every cell before it is in this block or
    /// earlier.
    fn next_index_key(&self) -> Option<Key<'_>> {
        (0..=self.path.len()).rev().find_map(|depth| {
            let (index, entry) = self.level(depth);
            (entry + 1 < index.len()).then(|| index.key(entry + 1))
        })
    }

    /// Whether only that row is wanted and, as far as the index shows, the rest of the file has
    /// none of its cells.
    fn row_is_over(&self, row: &[u8]) -> bool {
        self.options.access == Access::SingleRow && self.next_index_key().is_none_or(|next| next.row() > row)
    }

    /// Moves to the first cell at or after `target` by a search from the root.
    fn search(&mut self, target: Key<'_>, toward: Toward) -> Result<()> {
        let Some(block) = self.find_block(Choose::Key(target), toward)? else {
            self.end();
            return Ok(());
        };
        if block.data().seek(target, &mut self.current) {
            self.stand(block);
            return Ok(());
        }
        self.enter_next_block(self.row_is_over(target.row()))
    }

    /// Moves to the block after the one that the path leads to; to the end if `row_is_over`.
    fn enter_next_block(&mut self, row_is_over: bool) -> Result<()> {
        if row_is_over {
            self.end();
            return Ok(());
        }
        match self.next_block()? {
            Some(block) => {
                block.data().first(&mut self.current);
                self.stand(block);
            }
            None => self.end(),
        }
        Ok(())
    }

    /// The index key of the data block before the present one or, across a border of index blocks,
    /// that of an earlier one.
    fn previous_index_key(&self) -> Option<Key<'_>> {
        (0..=self.path.len()).rev().find_map(|depth| {
            let (index, entry) = self.level(depth);
            entry.checked_sub(1).map(|entry| index.key(entry))
        })
    }

    /// Whether the index shows that the first cell of the block is the first one of its row. The
    /// path leads to `block`.
    fn begins_row(&self, block: &Block) -> bool {
        let (index, entry) = self.level(self.path.len());
        let first = block.data().first_key();
        let is_first_block = self.root_entry == 0 && self.path.iter().all(|level| level.entry == 0);
        is_first_block || index.key(entry).row() < first.row()
    }

    /// Steps back by the list of rows.
    fn step_back(&mut self, row: &[u8]) -> SteppedBack {
        match (&self.block, &mut self.backward) {
            (Some(block), Some(backward)) => {
                block.data().step_back(row, &mut backward.rows, &mut self.current)
            }
            _ => SteppedBack::Elsewhere,
        }
    }

    /// Stands at the start of the greatest row before `target` (`None`: the end). Returns false,
    /// and does not move, if the block has no cell before `target`.
    /// REQUIRES: the path leads to the block, `target` is before all cells of its row, and no later
    /// block has a cell before it.
    fn stand_before(&mut self, target: Option<Key<'_>>, block: Arc<Block>) -> Result<bool> {
        let begins_row = self.begins_row(&block);
        let rows = &mut self.backward.get_or_insert_default().rows;
        let data = block.data();
        match data.rows_before(target, begins_row, rows) {
            RowsBefore::None => return Ok(false),
            RowsBefore::Listed => rows.move_to_last(data, &mut self.current),
            RowsBefore::StartsEarlier => {
                let start = row_start(rows.last_key(data));
                rows.clear();
                let is_here = begins_row || data.first_key().row() != start.as_key().row();
                if !(is_here && data.seek(start.as_key(), &mut self.current)) {
                    return self.search(start.as_key(), Toward::Start).map(|()| true);
                }
            }
        }
        self.stand(block);
        Ok(true)
    }

    /// Steps back to the row before `target`, in the block whose list of rows is used up or in the
    /// one before it. Returns false, and does not move, if it is in neither.
    fn step_on_back(&mut self, target: Key<'_>) -> Result<bool> {
        let Some(block) = &self.block else {
            return Ok(false);
        };
        if block.data().first_key().row() < target.row() {
            return self.stand_before(Some(target), Arc::clone(block));
        }
        let is_in_previous = self
            .previous_index_key()
            .is_some_and(|key| compare_keys(key, target).is_lt());
        if !is_in_previous {
            return Ok(false);
        }
        match self.previous_block()? {
            Some(block) => self.stand_before(Some(target), block),
            None => Ok(false),
        }
    }

    /// Searches for the greatest row before `target`.
    fn search_back(&mut self, target: Key<'_>) -> Result<()> {
        self.backward.get_or_insert_default();
        let Some(block) = self.find_block(Choose::Key(target), Toward::Start)? else {
            self.end();
            return Ok(());
        };
        if self.stand_before(Some(target), block)? {
            return Ok(());
        }
        // An index key may be smaller than the first cell of its block. Then the cell before is in
        // the block before.
        let found = match self.previous_block()? {
            Some(block) => self.stand_before(Some(target), block)?,
            None => false,
        };
        if !found {
            self.end();
        }
        Ok(())
    }
}

impl CellCursor for FileCursor {
    fn bounds(&self) -> Option<(Key<'_>, Key<'_>)> {
        let properties = self.reader.properties();
        let (first, last) = (properties.first_key.as_ref()?, properties.last_key.as_ref()?);
        Some((first.as_key(), last.as_key()))
    }

    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        Some(self.block.as_ref()?.data().cell(&self.current))
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let Some(block) = &self.block else {
            return Ok(());
        };
        if let Some(backward) = &self.backward
            && block.data().next_listed(&backward.rows, &mut self.current)
        {
            return Ok(());
        }
        if block.data().next(&mut self.current) {
            return Ok(());
        }
        let row_is_over = self.row_is_over(block.data().key(&self.current).row());
        self.enter_next_block(row_is_over)
    }

    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        self.search(target, Toward::End)
    }

    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        let Some(block) = &self.block else {
            return self.seek(target);
        };
        let data = block.data();
        if let Some(backward) = &self.backward
            && data.step_to_listed(target, &backward.rows, &mut self.current)
        {
            return Ok(());
        }
        let stepped = data.step_to(target, &mut self.current, STEPS_MAX);
        if stepped == Stepped::Found {
            return Ok(());
        }
        let in_this_block = stepped == Stepped::NotYet
            && self
                .next_index_key()
                .is_none_or(|next| compare_keys(target, next).is_lt());
        if !in_this_block {
            return self.seek(target);
        }
        if data.seek(target, &mut self.current) {
            return Ok(());
        }
        self.enter_next_block(self.row_is_over(target.row()))
    }

    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        let stepped = self.step_back(row);
        if stepped == SteppedBack::Found {
            return Ok(());
        }
        // With an empty family and the greatest time and type this is before every cell of the row.
        let target = KeyBuf::new(row, b"", b"", i64::MAX, CellType::Maximum);
        if stepped == SteppedBack::UsedUp && self.step_on_back(target.as_key())? {
            return Ok(());
        }
        self.search_back(target.as_key())
    }

    fn seek_last_row(&mut self) -> Result<()> {
        self.backward.get_or_insert_default();
        let Some(block) = self.find_block(Choose::Last, Toward::Start)? else {
            self.end();
            return Ok(());
        };
        if !self.stand_before(None, block)? {
            self.end();
        }
        Ok(())
    }
}
