//! Walks a store file.
//!
//! The cursor holds the path from the root index to its data block. Inside a block it moves from cell to cell; a block border
//! moves the path by one entry. A failed move leaves the cursor where it was.

use std::sync::Arc;

use smallvec::SmallVec;

use super::data_block::Stepped;
use super::index::IndexBlock;
use super::place::Place;
use super::reader::{Block, ReadAhead, Reader, Want, row_start};
use super::{Access, ReadOptions};
use crate::cell::{Account, Cell, CellCursor, CellType, Key, KeyBuf, compare_keys};
use crate::error::Result;

/// Cells that `seek_forward` steps over before it searches.
const STEPS_MAX: usize = 8;

/// A block of the index below the root, and which entry of it the cursor is under.
#[derive(Clone, Debug)]
struct Level {
    block: Arc<Block>,
    entry: usize,
}

/// Which entry to take on the way down.
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
    place: Place,
    /// Past the end, in contrast to "before the first seek".
    ended: bool,
    ahead: ReadAhead,
    /// What a call has reserved for the block, if it is a large one.
    account: Account,
}

impl FileCursor {
    pub(super) fn new(reader: Arc<Reader>, options: ReadOptions) -> Self {
        Self {
            reader,
            options,
            root_entry: 0,
            path: SmallVec::new(),
            block: None,
            place: Place::default(),
            ended: false,
            ahead: ReadAhead::default(),
            account: Account::default(),
        }
    }

    /// Reserves the memory of a large block, beside that of the one that the cursor stands in. [`Self::stand`] releases the latter.
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

    /// Where the data block is that the cursor stands in.
    /// REQUIRES: it stands at a cell.
    #[cfg(test)]
    pub(super) fn block_offset(&self) -> u64 {
        let (index, entry) = self.level(self.path.len());
        index.handle(entry).offset
    }

    fn end(&mut self) {
        self.block = None;
        self.account.lower_to(0);
        self.ended = true;
    }

    /// The place is one of that block now.
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

    /// Goes down from entry `entry` at `depth` of the present path to a data block and returns it.
    /// REQUIRES: the path is that deep and the index block there has the entry.
    fn descend(&mut self, depth: usize, entry: usize, choose: Choose<'_>) -> Result<Arc<Block>> {
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
        let block = reader.data_block(index, entry, is_first, self.options, &mut self.ahead)?;
        self.charge(&block)?;
        self.path = path;
        self.root_entry = root_entry;
        Ok(block)
    }

    /// The data block in which `target` is, if it is in the file at all. `None` for a file without cells.
    fn find_block(&mut self, choose: Choose<'_>) -> Result<Option<Arc<Block>>> {
        if self.reader.root.len() == 0 {
            return Ok(None);
        }
        let entry = choose.entry(&self.reader.root);
        self.descend(0, entry, choose).map(Some)
    }

    /// The data block after the present one.
    fn next_block(&mut self) -> Result<Option<Arc<Block>>> {
        for depth in (0..=self.path.len()).rev() {
            let (index, entry) = self.level(depth);
            if entry + 1 < index.len() {
                return self.descend(depth, entry + 1, Choose::First).map(Some);
            }
        }
        Ok(None)
    }

    /// The data block before the present one.
    fn previous_block(&mut self) -> Result<Option<Arc<Block>>> {
        for depth in (0..=self.path.len()).rev() {
            let (_, entry) = self.level(depth);
            if let Some(entry) = entry.checked_sub(1) {
                return self.descend(depth, entry, Choose::Last).map(Some);
            }
        }
        Ok(None)
    }

    /// The index key of the data block after the present one: every cell before it is in this block or earlier.
    fn next_index_key(&self) -> Option<Key<'_>> {
        (0..=self.path.len()).rev().find_map(|depth| {
            let (index, entry) = self.level(depth);
            (entry + 1 < index.len()).then(|| index.key(entry + 1))
        })
    }

    /// Whether only that row is wanted and the rest of the file has nothing of it, as far as the index tells.
    fn row_is_over(&self, row: &[u8]) -> bool {
        self.options.access == Access::SingleRow && self.next_index_key().is_none_or(|next| next.row() > row)
    }

    /// Goes on behind the block that the path leads to. `row_is_over`: or does not need to.
    fn enter_next_block(&mut self, row_is_over: bool) -> Result<()> {
        if row_is_over {
            self.end();
            return Ok(());
        }
        match self.next_block()? {
            Some(block) => {
                block.data().first(&mut self.place);
                self.stand(block);
            }
            None => self.end(),
        }
        Ok(())
    }

    /// Moves to the last cell before `target`. Returns whether there is one.
    fn seek_before(&mut self, target: Key<'_>) -> Result<bool> {
        let Some(block) = self.find_block(Choose::Key(target))? else {
            self.end();
            return Ok(false);
        };
        if block.data().seek_before(target, &mut self.place) {
            self.stand(block);
            return Ok(true);
        }
        // An index key may be smaller than the first cell of its block. Then the cell before is in the block before.
        let Some(block) = self.previous_block()? else {
            self.end();
            return Ok(false);
        };
        block.data().last(&mut self.place);
        self.stand(block);
        Ok(true)
    }
}

impl CellCursor for FileCursor {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        Some(self.block.as_ref()?.data().cell(&self.place))
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let Some(block) = &self.block else {
            return Ok(());
        };
        if block.data().next(&mut self.place) {
            return Ok(());
        }
        let row_is_over = self.row_is_over(block.data().key(&self.place).row());
        self.enter_next_block(row_is_over)
    }

    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        let Some(block) = self.find_block(Choose::Key(target))? else {
            self.end();
            return Ok(());
        };
        if block.data().seek(target, &mut self.place) {
            self.stand(block);
            return Ok(());
        }
        self.enter_next_block(self.row_is_over(target.row()))
    }

    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        let Some(block) = &self.block else {
            return self.seek(target);
        };
        let data = block.data();
        let stepped = data.step_to(target, &mut self.place, STEPS_MAX);
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
        if data.seek(target, &mut self.place) {
            return Ok(());
        }
        self.enter_next_block(self.row_is_over(target.row()))
    }

    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        // With an empty family and the greatest time and type this is before every cell of the row.
        let start = KeyBuf::new(row, b"", b"", i64::MAX, CellType::Maximum);
        if !self.seek_before(start.as_key())? {
            return Ok(());
        }
        let found = self.cell().map(|cell| row_start(cell.key));
        found.map_or(Ok(()), |start| self.seek(start.as_key()))
    }

    fn seek_last_row(&mut self) -> Result<()> {
        let Some(block) = self.find_block(Choose::Last)? else {
            self.end();
            return Ok(());
        };
        let data = block.data();
        let mut last = Place::default();
        data.last(&mut last);
        let start = row_start(data.key(&last));
        self.seek(start.as_key())
    }
}
