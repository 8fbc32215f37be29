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
//! NONE is such cells and nothing else. ROW_INDEX_V1 puts `u16 7` before them and after them `row count i32, offset of each
//! row's first cell i32, bytes of cells i32`, for HBase's readers. The other encodings are turned into plain cells when the
//! block is read (`encoding`), so there is one layout in memory: more bytes in the cache than HBase keeps for PREFIX and DIFF,
//! but a cursor that only adds lengths.
//!
//! Every cell is checked when the block enters memory, once; after that lengths are trusted. The same pass marks where cells
//! start (`marks`). A search is binary over the marks, and where not every cell has one steps over a few cells: in any encoding, and as
//! well in a row of thousands of cells, where the row offsets of ROW_INDEX_V1 would not help.

use std::cmp::Ordering;

use super::block::Check;
use super::encoding;
use super::marks::Marks;
use crate::cell::{Cell, Key, compare_keys};
use crate::codec::Cursor;
use crate::id::SeqId;
use crate::schema::DataBlockEncoding;

/// Bytes of the two lengths that a cell begins with.
pub(super) const LENGTHS_BYTES: usize = 8;

/// Which parts a file's cells have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellLayout {
    /// Tags length and tags.
    pub(super) tags: bool,
    /// Sequence id.
    pub(super) seq: bool,
}

/// How a file's data blocks are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataLayout {
    /// The encoding.
    pub(super) encoding: DataBlockEncoding,
    /// Parts of a cell.
    pub(super) cell: CellLayout,
    /// Whether encoded blocks hold their tags compressed with a dictionary.
    pub(super) tags_compressed: bool,
}

/// Where the parts of one cell are in a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    start: u32,
    key_bytes: u32,
    value_bytes: u32,
    tags_at: u32,
    tags_bytes: u32,
    next: u32,
    seq: SeqId,
}

/// Cells in memory.
#[derive(Debug)]
pub(super) struct DataBlock {
    bytes: Vec<u8>,
    /// Where cells begin and end in `bytes`.
    from: u32,
    to: u32,
    layout: CellLayout,
    marks: Marks,
}

impl DataBlock {
    /// Checks and takes an unpacked data block.
    /// REQUIRES: at most `PLAIN_BYTES_MAX` bytes.
    pub(super) fn parse(payload: Vec<u8>, encoded: bool, layout: DataLayout) -> Check<Self> {
        if !encoded {
            let to = payload.len();
            return Self::plain(payload, 0, to, layout.cell, None);
        }
        let mut cursor = Cursor::new(&payload);
        let id = cursor.u16_be().ok_or("encoded block is cut short")?;
        if id != encoding::id(layout.encoding) {
            return Err(format!(
                "block with encoding id {id} in a file of {}",
                layout.encoding
            ));
        }
        if layout.encoding == DataBlockEncoding::RowIndexV1 {
            let rows = RowOffsets::parse(&payload)?;
            return Self::plain(payload, 2, rows.cells_to, layout.cell, Some(rows));
        }
        let plain = encoding::decode(cursor.rest(), layout)?;
        let to = plain.len();
        Self::plain(plain, 0, to, layout.cell, None)
    }

    fn plain(
        bytes: Vec<u8>,
        from: usize,
        to: usize,
        layout: CellLayout,
        rows: Option<RowOffsets>,
    ) -> Check<Self> {
        let starts = Self::check_cells(&bytes, from, to, layout, rows)?;
        let marks = Marks::new(starts, to - from);
        Ok(Self {
            from: from as u32,
            to: to as u32,
            layout,
            marks,
            bytes,
        })
    }

    /// Checks every cell of `bytes[from..to]`, and the row offsets if there are some; where the cells start.
    fn check_cells(
        bytes: &[u8],
        from: usize,
        to: usize,
        layout: CellLayout,
        rows: Option<RowOffsets>,
    ) -> Check<Vec<u32>> {
        let cells = bytes.get(..to).ok_or("data block is cut short")?;
        let mut starts = Vec::with_capacity((to - from.min(to)) / 128 + 1);
        let mut at = from;
        let mut row_offsets = rows.into_iter().flat_map(|rows| rows.offsets(bytes));
        let with_rows = rows.is_some();
        let mut previous: Option<Key<'_>> = None;
        while at < to {
            let position = check_cell(cells, at, layout).ok_or_else(|| {
                format!(
                    "cell {} of a data block, {at} bytes into it, is malformed",
                    starts.len()
                )
            })?;
            starts.push(at as u32);
            if with_rows {
                let key = position.key(cells);
                if previous.is_none_or(|previous| previous.row() != key.row())
                    && row_offsets.next() != Some((at - from) as u32)
                {
                    return Err("row offsets of a data block do not fit its rows".into());
                }
                previous = Some(key);
            }
            at = position.next as usize;
        }
        if row_offsets.next().is_some() {
            return Err("row offsets of a data block do not fit its rows".into());
        }
        if starts.is_empty() {
            return Err("data block without cells".into());
        }
        Ok(starts)
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        self.bytes.capacity() + self.marks.weight()
    }

    /// The first cell.
    #[inline]
    pub(super) fn first(&self) -> Position {
        self.at(self.from)
    }

    /// The cell after this one; `None` at the end of the block.
    #[inline]
    pub(super) fn next(&self, position: &Position) -> Option<Position> {
        (position.next < self.to).then(|| self.at(position.next))
    }

    /// The key under a position of this block.
    #[inline]
    pub(super) fn key(&self, position: &Position) -> Key<'_> {
        position.key(&self.bytes)
    }

    /// The cell under a position of this block.
    #[inline]
    pub(super) fn cell(&self, position: &Position) -> Cell<'_> {
        let key_at = position.start as usize + LENGTHS_BYTES;
        let value_at = key_at + position.key_bytes as usize;
        let tags_at = position.tags_at as usize;
        Cell {
            key: Key::trusted(&self.bytes[key_at..value_at]),
            value: &self.bytes[value_at..value_at + position.value_bytes as usize],
            tags: &self.bytes[tags_at..tags_at + position.tags_bytes as usize],
            seq: position.seq,
        }
    }

    /// The last cell.
    pub(super) fn last(&self) -> Position {
        self.at(self.marks.last())
    }

    /// The first cell at or after `target`; `None` when all are before it.
    pub(super) fn seek(&self, target: Key<'_>) -> Option<Position> {
        let before = self.count_before(target);
        if self.marks.is_complete() {
            return self.marks.start(before).map(|start| self.at(start));
        }
        let mut position = self.at(self.marks.start(before.saturating_sub(1))?);
        while compare_keys(self.key(&position), target) == Ordering::Less {
            position = self.next(&position)?;
        }
        Some(position)
    }

    /// The last cell before `target`; `None` when there is none.
    pub(super) fn seek_before(&self, target: Key<'_>) -> Option<Position> {
        let mark = self.count_before(target).checked_sub(1)?;
        let mut found = self.at(self.marks.start(mark)?);
        while let Some(next) = self.next(&found) {
            if compare_keys(self.key(&next), target) != Ordering::Less {
                break;
            }
            found = next;
        }
        Some(found)
    }

    /// How many marked cells are before `target`.
    fn count_before(&self, target: Key<'_>) -> usize {
        self.marks
            .count_before(target, |start| key_at(&self.bytes, start))
    }

    /// Reads the lengths of the cell that starts at `start`.
    /// REQUIRES: a cell starts there; the check in `plain` has been there before.
    #[inline]
    fn at(&self, start: u32) -> Position {
        let at = start as usize;
        let lengths = u64::from_be_bytes(
            self.bytes[at..at + LENGTHS_BYTES]
                .try_into()
                .expect("the slice has eight bytes"),
        );
        let (key_bytes, value_bytes) = ((lengths >> 32) as u32, lengths as u32);
        let mut end = at + LENGTHS_BYTES + key_bytes as usize + value_bytes as usize;
        let (mut tags_at, mut tags_bytes) = (0, 0);
        if self.layout.tags {
            tags_bytes = u32::from(u16::from_be_bytes([self.bytes[end], self.bytes[end + 1]]));
            tags_at = (end + 2) as u32;
            end += 2 + tags_bytes as usize;
        }
        let mut seq = SeqId::ZERO;
        if self.layout.seq {
            let first = self.bytes[end];
            if first < 0x80 {
                // Cells of compacted files mostly have the sequence id zero: one byte.
                seq = SeqId(u64::from(first));
                end += 1;
            } else {
                let mut cursor = Cursor::new(&self.bytes[end..]);
                seq = SeqId(cursor.vlong().unwrap_or(0) as u64);
                end += cursor.position();
            }
        }
        Position {
            start,
            key_bytes,
            value_bytes,
            tags_at,
            tags_bytes,
            next: end as u32,
            seq,
        }
    }
}

impl Position {
    #[inline]
    fn key(self, bytes: &[u8]) -> Key<'_> {
        let at = self.start as usize + LENGTHS_BYTES;
        Key::trusted(&bytes[at..at + self.key_bytes as usize])
    }
}

/// The key of the cell that starts at `start`, without looking at what is behind its value: in a search nearly every cell is a
/// miss in the processor's caches, and the tail would be a second one.
/// REQUIRES: a cell starts there that has been checked.
#[inline]
fn key_at(bytes: &[u8], start: u32) -> Key<'_> {
    let at = start as usize;
    let length = &bytes[at..at + 4];
    let key_bytes = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    Key::trusted(&bytes[at + LENGTHS_BYTES..at + LENGTHS_BYTES + key_bytes])
}

/// Takes one cell apart with every length checked.
fn check_cell(bytes: &[u8], start: usize, layout: CellLayout) -> Option<Position> {
    let mut cursor = Cursor::new(bytes.get(start..)?);
    let key_bytes = usize::try_from(cursor.i32_be()?).ok()?;
    let value_bytes = usize::try_from(cursor.i32_be()?).ok()?;
    Key::parse(cursor.bytes(key_bytes)?)?;
    cursor.bytes(value_bytes)?;
    let (mut tags_at, mut tags_bytes) = (0, 0);
    if layout.tags {
        tags_bytes = cursor.u16_be()?;
        tags_at = start + cursor.position();
        cursor.bytes(usize::from(tags_bytes))?;
    }
    let seq = if layout.seq { cursor.vlong()? } else { 0 };
    Some(Position {
        start: start as u32,
        key_bytes: key_bytes as u32,
        value_bytes: value_bytes as u32,
        tags_at: tags_at as u32,
        tags_bytes: u32::from(tags_bytes),
        next: (start + cursor.position()) as u32,
        seq: SeqId(u64::try_from(seq).ok()?),
    })
}

/// The tail of a ROW_INDEX_V1 block.
#[derive(Clone, Copy, Debug)]
struct RowOffsets {
    /// Where the cells end in the payload.
    cells_to: usize,
    /// Where the offsets start and end.
    offsets_from: usize,
    offsets_to: usize,
}

impl RowOffsets {
    fn parse(payload: &[u8]) -> Check<Self> {
        let tail = || {
            let end = payload.len().checked_sub(4)?;
            let cells_bytes = Cursor::new(payload.get(end..)?).u32_be()? as usize;
            let cells_to = cells_bytes.checked_add(2)?;
            let rows = Cursor::new(payload.get(cells_to..end)?).u32_be()? as usize;
            let offsets_from = cells_to + 4;
            (rows.checked_mul(4)? == end - offsets_from).then_some(Self {
                cells_to,
                offsets_from,
                offsets_to: end,
            })
        };
        tail().ok_or_else(|| "row offsets of a data block are malformed".into())
    }

    fn offsets(self, payload: &[u8]) -> impl Iterator<Item = u32> {
        payload[self.offsets_from..self.offsets_to]
            .chunks_exact(4)
            .map(|offset| u32::from_be_bytes([offset[0], offset[1], offset[2], offset[3]]))
    }
}

/// Appends a cell in the plain layout, with its sequence id, and with its tags if the file's cells have them.
pub(super) fn put_cell(out: &mut Vec<u8>, cell: Cell<'_>, tags: bool) {
    out.extend_from_slice(&(cell.key.bytes().len() as u32).to_be_bytes());
    out.extend_from_slice(&(cell.value.len() as u32).to_be_bytes());
    out.extend_from_slice(cell.key.bytes());
    out.extend_from_slice(cell.value);
    if tags {
        out.extend_from_slice(&(cell.tags.len() as u16).to_be_bytes());
        out.extend_from_slice(cell.tags);
    }
    crate::codec::put_vlong(out, cell.seq.0 as i64);
}

/// Bytes that [`put_cell`] appends.
pub(super) fn cell_bytes(cell: Cell<'_>, tags: bool) -> usize {
    let tags_bytes = if tags { 2 + cell.tags.len() } else { 0 };
    LENGTHS_BYTES + cell.data_bytes() + tags_bytes + crate::codec::vlong_len(cell.seq.0 as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CellType, KeyBuf};
    use proptest::prelude::*;

    const LAYOUT: DataLayout = DataLayout {
        encoding: DataBlockEncoding::None,
        cell: CellLayout {
            tags: true,
            seq: true,
        },
        tags_compressed: false,
    };

    fn block(rows: usize, columns: usize) -> DataBlock {
        let mut payload = Vec::new();
        for row in 0..rows {
            for column in 0..columns {
                let key = key(row, column);
                let cell = Cell {
                    key: key.as_key(),
                    value: b"value",
                    tags: b"",
                    seq: SeqId(1000 + row as u64),
                };
                put_cell(&mut payload, cell, true);
                assert_eq!(
                    cell_bytes(cell, true) * (row * columns + column + 1),
                    payload.len()
                );
            }
        }
        DataBlock::parse(payload, false, LAYOUT).unwrap()
    }

    fn key(row: usize, column: usize) -> KeyBuf {
        KeyBuf::new(
            format!("{:03}", row * 2).as_bytes(),
            b"f",
            format!("{column:03}").as_bytes(),
            1,
            CellType::Put,
        )
    }

    /// Seeks in blocks of narrow and wide rows find what counting finds.
    #[test]
    fn seeks_find_the_neighbours() {
        for (rows, columns) in [(1, 1), (40, 1), (1, 40), (5, 17)] {
            let block = block(rows, columns);
            for row in 0..rows {
                for column in 0..columns {
                    let target = key(row, column);
                    let found = block.seek(target.as_key()).unwrap();
                    assert_eq!(block.key(&found), target.as_key());
                    assert_eq!(block.cell(&found).seq, SeqId(1000 + row as u64));
                    let before = block
                        .seek_before(target.as_key())
                        .map(|found| KeyBuf::copy_of(block.key(&found)));
                    let expected = match (row, column) {
                        (0, 0) => None,
                        (row, 0) => Some(key(row - 1, columns - 1)),
                        (row, column) => Some(key(row, column - 1)),
                    };
                    assert_eq!(before, expected);
                }
            }
            let beyond = KeyBuf::first_on_row(b"999", b"f");
            assert!(block.seek(beyond.as_key()).is_none());
            assert_eq!(block.key(&block.last()), key(rows - 1, columns - 1).as_key());
            let first = KeyBuf::first_on_row(b"", b"f");
            assert_eq!(
                block.key(&block.seek(first.as_key()).unwrap()),
                key(0, 0).as_key()
            );
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, encoded: bool, which in 0_usize..5, flags in 0_u8..8) {
            let layout = DataLayout {
                encoding: DataBlockEncoding::ALL[which],
                cell: CellLayout { tags: flags & 1 == 0, seq: flags & 2 == 0 },
                tags_compressed: flags & 4 == 0,
            };
            let mut payload = encoding::id(layout.encoding).to_be_bytes().to_vec();
            payload.extend_from_slice(&bytes);
            let _ = DataBlock::parse(payload, encoded, layout);
        }
    }
}
