//! The data block: a run of cells in order, and how to find one in it.
//!
//! A cell in a block, as in HBase's KeyValue (big-endian; the last three parts as the file info says):
//!
//! ```text
//! +-----------+-------------+----------+-------+-------------+------+----------------+
//! | key length| value length| flat key | value | tags length | tags | sequence id    |
//! | i32       | i32         |          |       | u16         |      | Hadoop's vlong |
//! +-----------+-------------+----------+-------+-------------+------+----------------+
//! ```
//!
//! NONE is a sequence of such cells. ROW_INDEX_V1 puts `u16 7` before them and after them `row
//! count i32, offset of each row's first cell i32, bytes of cells i32`, for HBase's readers.
//! PREFIX, DIFF and FAST_DIFF omit the part that a cell shares with the one before (`encoding`).
//!
//! A block stays in memory as it is on disk, unpacked, so that an encoding saves memory as well: as in HBase.
//! Only blocks whose tags are compressed, which HBase can write and we do not, are turned into plain cells.
//!
//! Every cell is checked once, when the block enters memory; after that lengths are trusted. The
//! same pass builds the search index (`search_index`). This also works in a row of thousands of
//! cells, where the row offsets of ROW_INDEX_V1 would not help.
//!
//! A [`CurrentCell`] is a cell of a block. A move that finds no cell leaves it unchanged.

#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use super::block::Check;
use super::cell_layout::{CellLayout, CellOffsets, CurrentCell, DataLayout, LENGTHS_BYTES};
use super::encoding::{self, row_index};
use super::search_index::{EncodedBuilder, PlainBuilder, SearchIndex};
use crate::cell::{Cell, Key, compare_keys};
use crate::codec::Cursor;
use crate::schema::DataBlockEncoding;

/// Error text for row offsets that do not match the cells.
const OTHER_ROWS: &str = "row offsets of a data block do not fit its rows";

/// Cells in memory.
#[derive(Debug)]
pub(super) struct DataBlock {
    bytes: Vec<u8>,
    layout: DataLayout,
    /// Where the last cell ends.
    cells_to: u32,
    index: SearchIndex,
}

/// Result of a few steps forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// The current cell is the first one at or after the target.
    Found,
    /// All cells passed are before the target, and the block may have more. The current cell is
    /// unchanged.
    NotYet,
    /// All cells up to the end of the block are before the target. The current cell is unchanged.
    Ended,
}

impl DataBlock {
    /// Checks and takes an unpacked data block.
    /// REQUIRES: at most `PLAIN_BYTES_MAX` bytes.
    pub(super) fn parse(mut bytes: Vec<u8>, encoded: bool, layout: DataLayout) -> Check<Self> {
        if encoded {
            let id = Cursor::new(&bytes).u16_be().ok_or("encoded block is cut short")?;
            if id != encoding::id(layout.encoding) {
                return Err(format!(
                    "block with encoding id {id} in a file of {}",
                    layout.encoding
                ));
            }
        }
        let (cells_to, index) = match layout.encoding {
            _ if !encoded => plain_index(&bytes, layout.cell, false)?,
            DataBlockEncoding::RowIndexV1 => plain_index(&bytes, layout.cell, true)?,
            _ if layout.tags_compressed => {
                bytes = encoding::decode(&bytes, layout)?;
                plain_index(&bytes, layout.cell, false)?
            }
            _ => {
                let mut index = EncodedBuilder::default();
                encoding::check(&bytes, layout, |cell, after_value| index.add(cell, after_value))?;
                (bytes.len(), index.finish())
            }
        };
        Ok(Self {
            bytes,
            layout,
            cells_to: cells_to as u32,
            index,
        })
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        self.bytes.capacity() + self.index.weight()
    }

    /// The first key.
    pub(super) fn first_key(&self) -> Key<'_> {
        self.index.key(0, &self.bytes)
    }

    /// Moves `current`, a cell of this block or of another, to the first cell.
    #[inline]
    pub(super) fn first(&self, current: &mut CurrentCell) {
        self.move_to_search_entry(0, current);
    }

    /// Moves `current`, a cell of this block, to the next cell; `false` at the end of the block.
    #[inline]
    pub(super) fn next(&self, current: &mut CurrentCell) -> bool {
        if !self.is_plain() {
            let is_there = current.offsets.next < self.cells_to;
            if is_there {
                encoding::step(&self.bytes, self.layout, current);
            }
            return is_there;
        }
        let Some(next) = self.plain_after(&current.offsets) else {
            return false;
        };
        current.offsets = next;
        true
    }

    /// The key of a cell of this block.
    #[inline]
    pub(super) fn key<'a>(&'a self, current: &'a CurrentCell) -> Key<'a> {
        if self.is_plain() {
            self.plain_key(&current.offsets)
        } else {
            Key::trusted(&current.key)
        }
    }

    /// The cell of this block that `current` is.
    #[inline]
    pub(super) fn cell<'a>(&'a self, current: &'a CurrentCell) -> Cell<'a> {
        let offsets = &current.offsets;
        let (value_at, tags_at) = (offsets.value_at as usize, offsets.tags_at as usize);
        Cell {
            key: self.key(current),
            value: &self.bytes[value_at..value_at + offsets.value_bytes as usize],
            tags: &self.bytes[tags_at..tags_at + offsets.tags_bytes as usize],
            seq: offsets.seq,
        }
    }

    /// Moves `current`, a cell of this block or of another, to the first cell at or after `target`;
    /// `false` when all are before it.
    pub(super) fn seek(&self, target: Key<'_>, current: &mut CurrentCell) -> bool {
        let before = self.search_entries_before(Some(target));
        if before == self.index.len() {
            return false;
        }
        if self.index.is_complete() {
            self.move_to_search_entry(before, current);
            return true;
        }
        self.move_to_search_entry(before.saturating_sub(1), current);
        while compare_keys(self.key(current), target).is_lt() && self.next(current) {}
        true
    }

    /// Whether the block holds whole cells.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.index.is_plain()
    }

    /// The key of a cell of a plain block.
    #[inline]
    pub(super) fn plain_key(&self, offsets: &CellOffsets) -> Key<'_> {
        let value_at = offsets.value_at as usize;
        Key::trusted(&self.bytes[value_at - offsets.key_bytes as usize..value_at])
    }

    /// The cell behind that one in a plain block; `None` at the end of the block.
    #[inline]
    pub(super) fn plain_after(&self, offsets: &CellOffsets) -> Option<CellOffsets> {
        let start = offsets.next;
        (start < self.cells_to).then(|| CellOffsets::plain(&self.bytes, start, self.layout.cell))
    }

    /// The lengths, key and value of a cell of a plain block, as they are stored.
    #[inline]
    pub(super) fn stored(&self, offsets: &CellOffsets) -> &[u8] {
        let value_at = offsets.value_at as usize;
        let start = value_at - offsets.key_bytes as usize - LENGTHS_BYTES;
        &self.bytes[start..value_at + offsets.value_bytes as usize]
    }

    /// Number of search entries (cells at which a search can begin) before `target` (`None`: all).
    pub(super) fn search_entries_before(&self, target: Option<Key<'_>>) -> usize {
        target.map_or(self.index.len(), |target| {
            self.index.count_before(target, &self.bytes)
        })
    }

    /// An offset in the block: every cell that ends at or before it is before the search entry, or is its
    /// cell. REQUIRES: the entry exists.
    pub(super) fn passed(&self, entry: usize) -> u32 {
        self.index.passed(entry)
    }

    /// Moves `current`, a cell of this block or of another, to a search entry.
    /// REQUIRES: the entry exists.
    #[inline]
    pub(super) fn move_to_search_entry(&self, entry: usize, current: &mut CurrentCell) {
        self.index.move_to(entry, &self.bytes, self.layout.cell, current);
    }

    /// Moves `current`, a cell of this block, forward to the first cell at or after `target`, if it
    /// is fewer than `steps` cells away.
    #[inline]
    pub(super) fn step_to(&self, target: Key<'_>, current: &mut CurrentCell, steps: usize) -> Stepped {
        if compare_keys(self.key(current), target).is_ge() {
            return Stepped::Found;
        }
        let before = (current.offsets, SmallVec::<[u8; 64]>::from_slice(&current.key));
        let mut stepped = Stepped::NotYet;
        for _ in 1..steps {
            if !self.next(current) {
                stepped = Stepped::Ended;
                break;
            }
            if compare_keys(self.key(current), target).is_ge() {
                return Stepped::Found;
            }
        }
        current.offsets = before.0;
        current.key.clear();
        current.key.extend_from_slice(&before.1);
        stepped
    }
}

/// Checks every cell of a block of plain cells, and the row offsets of a ROW_INDEX_V1 block. Returns
/// the end of the cells, and the search index.
fn plain_index(bytes: &[u8], layout: CellLayout, has_row_index: bool) -> Check<(usize, SearchIndex)> {
    let (mut from, mut to, mut row_starts) = (0, bytes.len(), None);
    if has_row_index {
        let (cells_to, starts) = row_index::parse(bytes)?;
        (from, to, row_starts) = (row_index::ID_BYTES, cells_to, Some(starts));
    }
    let cells = &bytes[..to];
    let mut index = PlainBuilder::new(to);
    let mut row = None;
    let mut at = from;
    while (at as usize) < to {
        let (key, next) = check_cell(cells, at as usize, layout).ok_or_else(|| {
            format!(
                "cell {} of a data block, {at} bytes into it, is malformed",
                index.cells()
            )
        })?;
        if let Some(starts) = &mut row_starts
            && row != Some(key.row())
        {
            row = Some(key.row());
            if starts.next() != Some(at) {
                return Err(OTHER_ROWS.into());
            }
        }
        index.add(at);
        at = next;
    }
    if row_starts.is_some_and(|mut starts| starts.next().is_some()) {
        return Err(OTHER_ROWS.into());
    }
    let index = index.finish().ok_or("data block without cells")?;
    Ok((to, index))
}

/// Checks every length of a plain cell. Returns its key and its end.
fn check_cell(bytes: &[u8], start: usize, layout: CellLayout) -> Option<(Key<'_>, u32)> {
    let mut cursor = Cursor::new(bytes.get(start..)?);
    let key_bytes = usize::try_from(cursor.i32_be()?).ok()?;
    let value_bytes = usize::try_from(cursor.i32_be()?).ok()?;
    let key = Key::parse(cursor.bytes(key_bytes)?)?;
    cursor.bytes(value_bytes)?;
    if layout.tags {
        let tags_bytes = cursor.u16_be()?;
        cursor.bytes(usize::from(tags_bytes))?;
    }
    if layout.seq {
        u64::try_from(cursor.vlong()?).ok()?;
    }
    Some((key, (start + cursor.position()) as u32))
}
