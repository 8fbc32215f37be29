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
//! same pass builds the search index: starts of cells in a plain block (`marks`), the first cell of
//! each section of an encoded one (`sections`). A search is binary over these and then steps over a
//! few cells. This also works in a row of thousands of cells, where the row offsets of ROW_INDEX_V1
//! would not help. Where each row is one cell, those offsets are the marks.
//!
//! A [`Place`] is a cell of a block. A move that finds no cell leaves it unchanged.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::block::Check;
use super::cell_layout::{CellLayout, DataLayout, LENGTHS_BYTES};
use super::encoding;
use super::marks::{self, Marks};
use super::place::{Place, Position};
use super::row_offsets::RowOffsets;
use super::sections::{self, Sections};
use crate::cell::{Cell, Key, compare_keys};
use crate::codec::Cursor;
use crate::id::SeqId;
use crate::schema::DataBlockEncoding;

/// Error text for row offsets that do not match the cells.
const OTHER_ROWS: &str = "row offsets of a data block do not fit its rows";

/// Cells in memory.
#[derive(Debug)]
pub(super) struct DataBlock {
    bytes: Vec<u8>,
    layout: DataLayout,
    cells: Cells,
}

/// How they lie there.
#[derive(Debug)]
enum Cells {
    /// One whole cell behind the other, from here to there.
    Plain { from: u32, to: u32, marks: Marks },
    /// In PREFIX, DIFF or FAST_DIFF.
    Encoded(Sections),
}

/// Result of a few steps forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// The place is the first cell at or after the target.
    Found,
    /// All cells passed are before the target, and the block may have more. The place is unchanged.
    NotYet,
    /// All cells up to the end of the block are before the target. The place is unchanged.
    Ended,
}

impl DataBlock {
    /// Checks and takes an unpacked data block.
    /// REQUIRES: at most `PLAIN_BYTES_MAX` bytes.
    pub(super) fn parse(payload: Vec<u8>, encoded: bool, layout: DataLayout) -> Check<Self> {
        if !encoded {
            let to = payload.len() as u32;
            return Self::plain(payload, (0, to), layout, None);
        }
        let id = Cursor::new(&payload)
            .u16_be()
            .ok_or("encoded block is cut short")?;
        if id != encoding::id(layout.encoding) {
            return Err(format!(
                "block with encoding id {id} in a file of {}",
                layout.encoding
            ));
        }
        if layout.encoding == DataBlockEncoding::RowIndexV1 {
            let rows = RowOffsets::parse(&payload)?;
            return Self::plain(payload, rows.cells(), layout, Some(rows));
        }
        if layout.tags_compressed {
            let plain = encoding::decode(&payload, layout)?;
            let to = plain.len() as u32;
            return Self::plain(plain, (0, to), layout, None);
        }
        let mut sections = sections::Builder::default();
        encoding::check(&payload, layout, |place, after_value| {
            sections.add(place, after_value);
        })?;
        Ok(Self {
            bytes: payload,
            layout,
            cells: Cells::Encoded(sections.finish()),
        })
    }

    /// Checks every cell between the two places, and the row offsets if there are some, and builds
    /// the marks.
    fn plain(
        bytes: Vec<u8>,
        (from, to): (u32, u32),
        layout: DataLayout,
        rows: Option<RowOffsets>,
    ) -> Check<Self> {
        let cells = bytes.get(..to as usize).ok_or("data block is cut short")?;
        let mut marks = marks::Builder::new(rows, (to - from.min(to)) as usize);
        let mut rows_seen = 0;
        let mut at = from;
        let mut previous: Option<Key<'_>> = None;
        while at < to {
            let position = check_cell(cells, at as usize, layout.cell).ok_or_else(|| {
                format!(
                    "cell {} of a data block, {at} bytes into it, is malformed",
                    marks.cells()
                )
            })?;
            let mut is_first = false;
            if let Some(rows) = rows {
                let key = plain_key(cells, &position);
                is_first = previous.is_none_or(|previous| previous.row() != key.row());
                if is_first {
                    if rows_seen == rows.len() || rows.start(&bytes, rows_seen) != at {
                        return Err(OTHER_ROWS.into());
                    }
                    rows_seen += 1;
                }
                previous = Some(key);
            }
            marks.add(at, is_first, &bytes);
            at = position.next;
        }
        if rows.is_some_and(|rows| rows_seen < rows.len()) {
            return Err(OTHER_ROWS.into());
        }
        let marks = marks.finish().ok_or("data block without cells")?;
        Ok(Self {
            bytes,
            layout,
            cells: Cells::Plain { from, to, marks },
        })
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        self.bytes.capacity()
            + match &self.cells {
                Cells::Plain { marks, .. } => marks.weight(),
                Cells::Encoded(sections) => sections.weight(),
            }
    }

    /// The first key.
    pub(super) fn first_key(&self) -> Key<'_> {
        match &self.cells {
            Cells::Plain { from, .. } => key_at(&self.bytes, *from),
            Cells::Encoded(sections) => sections.key(0),
        }
    }

    /// Moves a place, of this block or of another, to the first cell.
    #[inline]
    pub(super) fn first(&self, place: &mut Place) {
        match &self.cells {
            Cells::Plain { from, .. } => place.position = self.at(*from),
            Cells::Encoded(sections) => self.begin_section(sections, 0, place),
        }
    }

    fn begin_section(&self, sections: &Sections, section: usize, place: &mut Place) {
        sections.begin(section, &self.bytes, self.layout.cell, place);
    }

    /// Moves a place of this block to the next cell; `false` at the end of the block.
    #[inline]
    pub(super) fn next(&self, place: &mut Place) -> bool {
        match &self.cells {
            Cells::Plain { to, .. } => {
                let is_there = place.position.next < *to;
                if is_there {
                    place.position = self.at(place.position.next);
                }
                is_there
            }
            Cells::Encoded(_) => encoding::step(&self.bytes, self.layout, place),
        }
    }

    /// The key of a place of this block.
    #[inline]
    pub(super) fn key<'a>(&'a self, place: &'a Place) -> Key<'a> {
        match &self.cells {
            Cells::Plain { .. } => plain_key(&self.bytes, &place.position),
            Cells::Encoded(_) => place.decoded_key(),
        }
    }

    /// The cell of a place of this block.
    #[inline]
    pub(super) fn cell<'a>(&'a self, place: &'a Place) -> Cell<'a> {
        let position = &place.position;
        let (value_at, tags_at) = (position.value_at as usize, position.tags_at as usize);
        Cell {
            key: self.key(place),
            value: &self.bytes[value_at..value_at + position.value_bytes as usize],
            tags: &self.bytes[tags_at..tags_at + position.tags_bytes as usize],
            seq: position.seq,
        }
    }

    /// Moves a place, of this block or of another, to the first cell at or after `target`; `false` when all
    /// are before it.
    pub(super) fn seek(&self, target: Key<'_>, place: &mut Place) -> bool {
        match &self.cells {
            Cells::Plain { marks, .. } => {
                let before = marks.count_before(target, &self.bytes, |start| key_at(&self.bytes, start));
                let found = if marks.is_complete() {
                    marks.start(before, &self.bytes).map(|start| self.at(start))
                } else {
                    let near = marks.start(before.saturating_sub(1), &self.bytes);
                    near.and_then(|start| self.plain_not_before(target, self.at(start)))
                };
                found.is_some_and(|found| {
                    place.position = found;
                    true
                })
            }
            Cells::Encoded(sections) => {
                let before = sections.count_before(target);
                if before == sections.len() {
                    return false;
                }
                self.begin_section(sections, before.saturating_sub(1), place);
                // The last cell is a section of its own that is not before the target, so this ends in front
                // of the block's end.
                while compare_keys(place.decoded_key(), target) == Ordering::Less {
                    if !encoding::step(&self.bytes, self.layout, place) {
                        break;
                    }
                }
                true
            }
        }
    }

    /// The first plain cell from `position` on that is not before `target`.
    fn plain_not_before(&self, target: Key<'_>, mut position: Position) -> Option<Position> {
        while compare_keys(plain_key(&self.bytes, &position), target) == Ordering::Less {
            position = self.plain_next(&position)?;
        }
        Some(position)
    }

    /// The plain cell after this one; `None` at the end of the block.
    #[inline]
    fn plain_next(&self, position: &Position) -> Option<Position> {
        let Cells::Plain { to, .. } = &self.cells else {
            return None;
        };
        (position.next < *to).then(|| self.at(position.next))
    }

    /// Whether the block is not encoded: its cells lie whole in it.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.cells, Cells::Plain { .. })
    }

    /// The key of a cell of a plain block.
    #[inline]
    pub(super) fn plain_key(&self, position: &Position) -> Key<'_> {
        plain_key(&self.bytes, position)
    }

    /// Number of search entries (cells at which a search can begin) before `target` (`None`: all).
    pub(super) fn search_entries_before(&self, target: Option<Key<'_>>) -> usize {
        match (&self.cells, target) {
            (Cells::Plain { marks, .. }, Some(target)) => {
                marks.count_before(target, &self.bytes, |start| key_at(&self.bytes, start))
            }
            (Cells::Plain { marks, .. }, None) => marks.len(),
            (Cells::Encoded(sections), Some(target)) => sections.count_before(target),
            (Cells::Encoded(sections), None) => sections.len(),
        }
    }

    /// Number of search entries in the shortest stretch that a reversed walk decodes at once
    /// (`row_starts`).
    pub(super) fn search_entries_of_a_stretch(&self) -> usize {
        match &self.cells {
            Cells::Plain { .. } => 8,
            Cells::Encoded(_) => 2,
        }
    }

    /// Moves a place, of this block or of another, to a search entry.
    /// REQUIRES: the entry exists.
    pub(super) fn begin_at_search_entry(&self, entry: usize, place: &mut Place) {
        match &self.cells {
            Cells::Plain { marks, .. } => {
                let start = marks.start(entry, &self.bytes);
                place.position = self.at(start.expect("the entry was counted"));
            }
            Cells::Encoded(sections) => self.begin_section(sections, entry, place),
        }
    }

    /// Moves a place of this block forward to the first cell at or after `target`, if it is fewer
    /// than `steps` cells away.
    #[inline]
    pub(super) fn step_to(&self, target: Key<'_>, place: &mut Place, steps: usize) -> Stepped {
        match &self.cells {
            Cells::Plain { .. } => {
                let mut position = place.position;
                for _ in 0..steps {
                    if compare_keys(plain_key(&self.bytes, &position), target).is_ge() {
                        place.position = position;
                        return Stepped::Found;
                    }
                    let Some(next) = self.plain_next(&position) else {
                        return Stepped::Ended;
                    };
                    position = next;
                }
                Stepped::NotYet
            }
            Cells::Encoded(_) => {
                if compare_keys(place.decoded_key(), target).is_ge() {
                    return Stepped::Found;
                }
                let before: (Position, SmallVec<[u8; 64]>) =
                    (place.position, SmallVec::from_slice(&place.key));
                let mut stepped = Stepped::NotYet;
                for _ in 1..steps {
                    if !encoding::step(&self.bytes, self.layout, place) {
                        stepped = Stepped::Ended;
                        break;
                    }
                    if compare_keys(place.decoded_key(), target).is_ge() {
                        return Stepped::Found;
                    }
                }
                place.position = before.0;
                place.key.clear();
                place.key.extend_from_slice(&before.1);
                stepped
            }
        }
    }

    /// Reads the lengths of the cell that starts at `start`.
    /// REQUIRES: plain cells, of which one starts there; the check in `plain` has passed it.
    #[inline]
    fn at(&self, start: u32) -> Position {
        let at = start as usize;
        let lengths = u64::from_be_bytes(
            self.bytes[at..at + LENGTHS_BYTES]
                .try_into()
                .expect("the slice has eight bytes"),
        );
        let (key_bytes, value_bytes) = ((lengths >> 32) as u32, lengths as u32);
        let value_at = at + LENGTHS_BYTES + key_bytes as usize;
        let mut end = value_at + value_bytes as usize;
        let (mut tags_at, mut tags_bytes) = (0, 0);
        if self.layout.cell.tags {
            tags_bytes = u32::from(u16::from_be_bytes([self.bytes[end], self.bytes[end + 1]]));
            tags_at = (end + 2) as u32;
            end += 2 + tags_bytes as usize;
        }
        let mut seq = SeqId::ZERO;
        if self.layout.cell.seq {
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
            key_bytes,
            value_at: value_at as u32,
            value_bytes,
            tags_at,
            tags_bytes,
            next: end as u32,
            seq,
        }
    }
}

/// The key of a plain cell.
#[inline]
fn plain_key<'a>(bytes: &'a [u8], position: &Position) -> Key<'a> {
    let value_at = position.value_at as usize;
    Key::trusted(&bytes[value_at - position.key_bytes as usize..value_at])
}

/// The key of the cell that starts at `start`, without reading the tail behind its value: in a
/// search nearly every cell is a cache miss, and the tail would be a second one.
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
    let value_at = start + cursor.position();
    cursor.bytes(value_bytes)?;
    let (mut tags_at, mut tags_bytes) = (0, 0);
    if layout.tags {
        tags_bytes = cursor.u16_be()?;
        tags_at = start + cursor.position();
        cursor.bytes(usize::from(tags_bytes))?;
    }
    let seq = if layout.seq { cursor.vlong()? } else { 0 };
    Some(Position {
        key_bytes: key_bytes as u32,
        value_at: value_at as u32,
        value_bytes: value_bytes as u32,
        tags_at: tags_at as u32,
        tags_bytes: u32::from(tags_bytes),
        next: (start + cursor.position()) as u32,
        seq: SeqId(u64::try_from(seq).ok()?),
    })
}
