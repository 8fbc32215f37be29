//! Data block encodings that omit the part of a key that it shares with the one before: PREFIX,
//! DIFF and FAST_DIFF.
//!
//! ```text
//! +----------------+---------------------------+==================+
//! | encoding u16 BE| plain size of the cells   | cells, each as   |
//! |                | u32 BE                    | its encoding says|
//! +----------------+---------------------------+==================+
//! ```
//!
//! In all three a cell is followed by its tags (`compressed int` length, then the bytes or dictionary
//! references) and its sequence id (vlong), when the file has them. A *compressed int* is a LEB128 varint of
//! at most five bytes.
//!
//! A cell is decoded from the one before it: [`step`] overwrites the key of the one before,
//! and its value stays in the block. Every cell is decoded once when the block is read ([`check`]);
//! from then on steps cannot fail. Ids are on disk: never renumber.

mod diff;
mod fast_diff;
mod prefix;
pub(super) mod row_index;
mod tags;

use super::block::{Check, PLAIN_BYTES_MAX};
use super::cell_layout::{self, CellLayout, CellOffsets, CurrentCell, DataLayout, offset};
use crate::cell::{Cell, Key};
use crate::codec::{Cursor, put_varint, put_vlong, vlong_len};
use crate::id::SeqId;
use crate::schema::DataBlockEncoding;

/// The id that an encoded block begins with.
pub(super) fn id(encoding: DataBlockEncoding) -> u16 {
    match encoding {
        DataBlockEncoding::None => 0,
        DataBlockEncoding::Prefix => 2,
        DataBlockEncoding::Diff => 3,
        DataBlockEncoding::FastDiff => 4,
        DataBlockEncoding::RowIndexV1 => 7,
    }
}

/// Reads a compressed int.
fn size(input: &mut Cursor<'_>) -> Option<usize> {
    input
        .varint()
        .and_then(|value| i32::try_from(value).ok())
        .map(|value| value as usize)
}

/// Bytes that two slices have in common at their start.
pub(super) fn common_bytes(left: &[u8], right: &[u8]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

/// Length of the common prefix of two flat keys, counted as HBase does: its readers skip
/// comparisons by this number, so it never reaches from one key part into the next unless the parts
/// are equal.
/// REQUIRES: both keys are of one family.
fn common_key_bytes(left: Key<'_>, right: Key<'_>, with_time_and_type: bool) -> usize {
    let (left_row, right_row) = (left.row(), right.row());
    if left_row.len() != right_row.len() {
        return common_bytes(&left.bytes()[..2], &right.bytes()[..2]);
    }
    let rows = common_bytes(left_row, right_row);
    if rows != left_row.len() {
        return 2 + rows;
    }
    let (left_qualifier, right_qualifier) = (left.qualifier(), right.qualifier());
    let qualifiers = common_bytes(left_qualifier, right_qualifier);
    let common = 2 + rows + 1 + left.family().len() + qualifiers;
    if !with_time_and_type || left_qualifier.len().max(right_qualifier.len()) != qualifiers {
        return common;
    }
    common + common_bytes(&left.bytes()[common..], &right.bytes()[common..])
}

/// Position of the first cell of a block: behind the encoding's id and the plain size.
pub(super) const CELLS_AT: usize = 6;

/// Decodes key and value of the cell behind `current`, which becomes that cell's. Returns the end of
/// the value part: [`after_value`], or the dictionary of compressed tags, decodes the rest. For the
/// first cell, `current` is [`before_first`].
#[inline]
fn key_and_value(payload: &[u8], encoding: DataBlockEncoding, current: &mut CurrentCell) -> Option<usize> {
    let mut input = Cursor::new(payload);
    input.bytes(current.offsets.next as usize)?;
    let CurrentCell { offsets, key } = current;
    match encoding {
        DataBlockEncoding::Prefix => prefix::decode(&mut input, key, offsets),
        DataBlockEncoding::Diff => diff::decode(&mut input, payload, key, offsets),
        _ => fast_diff::decode(&mut input, key, offsets),
    }?;
    offsets.key_bytes = key.len() as u32;
    Some(input.position())
}

/// Reads tags and sequence id of a cell whose value part ends at `at`, and finds the start of the
/// next cell.
/// REQUIRES: tags are not compressed.
#[inline]
pub(super) fn after_value(
    payload: &[u8],
    cell: CellLayout,
    at: usize,
    offsets: &mut CellOffsets,
) -> Option<()> {
    let mut input = Cursor::new(payload);
    input.bytes(at)?;
    if cell.tags {
        let tags_bytes = u16::try_from(size(&mut input)?).ok()?;
        offsets.tags_at = offset(input.position()).ok()?;
        offsets.tags_bytes = u32::from(tags_bytes);
        input.bytes(usize::from(tags_bytes))?;
    }
    if cell.seq {
        offsets.seq = SeqId(u64::try_from(input.vlong()?).ok()?);
    }
    offsets.next = offset(input.position()).ok()?;
    Some(())
}

/// In front of the first cell of a block.
fn before_first(current: &mut CurrentCell) {
    current.key.clear();
    current.offsets = CellOffsets {
        next: CELLS_AT as u32,
        ..CellOffsets::default()
    };
}

/// Moves `current` to the next cell of a block.
/// REQUIRES: [`check`] has been through the block, and `current` is a cell of it, but not the last.
#[inline]
pub(super) fn step(payload: &[u8], layout: DataLayout, current: &mut CurrentCell) {
    key_and_value(payload, layout.encoding, current)
        .and_then(|at| after_value(payload, layout.cell, at, &mut current.offsets))
        .expect("a block's cells were decoded once before when it was read");
}

/// Walks the cells of a block whose tags are not compressed and checks each. Calls `visit` with
/// each cell and the end of its value part.
pub(super) fn check(
    payload: &[u8],
    layout: DataLayout,
    mut visit: impl FnMut(&CurrentCell, usize),
) -> Check<()> {
    check_with(payload, layout, |current, at| {
        after_value(payload, layout.cell, at, &mut current.offsets)?;
        visit(current, at);
        Some(())
    })
}

/// Turns a block whose tags are compressed into plain cells: the tags of a number depend on all
/// cells before.
pub(super) fn decode(payload: &[u8], layout: DataLayout) -> Check<Vec<u8>> {
    let mut plain = Vec::new();
    let mut dictionary = tags::Dictionary::default();
    let mut tags = Vec::new();
    check_with(payload, layout, |current, at| {
        let mut input = Cursor::new(payload);
        input.bytes(at)?;
        tags.clear();
        if layout.cell.tags {
            let tags_bytes = u16::try_from(size(&mut input)?).ok()?;
            dictionary.uncompress(&mut input, usize::from(tags_bytes), &mut tags)?;
        }
        let offsets = &mut current.offsets;
        offsets.tags_bytes = tags.len() as u32;
        if layout.cell.seq {
            offsets.seq = SeqId(u64::try_from(input.vlong()?).ok()?);
        }
        offsets.next = offset(input.position()).ok()?;
        let value_at = offsets.value_at as usize;
        let parts = cell_layout::CellParts {
            key: &current.key,
            value: &payload[value_at..value_at + offsets.value_bytes as usize],
            tags: layout.cell.tags.then_some(&*tags),
            seq: layout.cell.seq.then_some(offsets.seq),
        };
        parts.put(&mut plain);
        Some(())
    })?;
    Ok(plain)
}

/// Walks the cells of a block. `after` reads the part after a cell's value; `None` if it is
/// malformed.
fn check_with(
    payload: &[u8],
    layout: DataLayout,
    mut after: impl FnMut(&mut CurrentCell, usize) -> Option<()>,
) -> Check<()> {
    let mut input = Cursor::new(payload);
    let declared = input.u16_be().and_then(|_| input.u32_be());
    let plain_bytes = declared.ok_or("encoded block is cut short")? as usize;
    if plain_bytes > PLAIN_BYTES_MAX {
        return Err(format!(
            "encoded block of {plain_bytes} bytes; the limit is {PLAIN_BYTES_MAX}"
        ));
    }
    let (mut decoded, mut count) = (0, 0);
    let mut current = CurrentCell::default();
    before_first(&mut current);
    while (current.offsets.next as usize) < payload.len() {
        let cell = key_and_value(payload, layout.encoding, &mut current).and_then(|at| {
            Key::parse(&current.key)?;
            after(&mut current, at)
        });
        if cell.is_some() {
            decoded += plain_bytes_of(&current, layout.cell);
        }
        if cell.is_none() || decoded > plain_bytes {
            return Err(format!(
                "cell {count} of a block in {} is malformed",
                layout.encoding
            ));
        }
        count += 1;
    }
    if decoded != plain_bytes {
        return Err(format!(
            "block in {} decodes to {decoded} bytes where it says {plain_bytes}",
            layout.encoding
        ));
    }
    if count == 0 {
        return Err("data block without cells".into());
    }
    Ok(())
}

/// Bytes that a cell takes in the plain layout.
fn plain_bytes_of(current: &CurrentCell, cell: CellLayout) -> usize {
    let offsets = &current.offsets;
    let tags = if cell.tags {
        2 + offsets.tags_bytes as usize
    } else {
        0
    };
    let seq = if cell.seq {
        vlong_len(offsets.seq.0 as i64)
    } else {
        0
    };
    cell_layout::LENGTHS_BYTES + current.key.len() + offsets.value_bytes as usize + tags + seq
}

/// Builds the payload of one data block after the other.
#[derive(Debug)]
pub(super) struct BlockEncoder {
    encoding: DataBlockEncoding,
    /// Whether the file's cells have tags.
    tags: bool,
    payload: Vec<u8>,
    /// The cell before in this block, in the plain layout without tags: key and value.
    previous: Option<(Vec<u8>, Vec<u8>)>,
    /// Offsets of the first cells of rows, for ROW_INDEX_V1.
    rows: Vec<u32>,
    /// Size that the cells have in the plain layout.
    plain_bytes: usize,
    cells: usize,
}

impl BlockEncoder {
    /// An encoder at the start of a block.
    pub(super) fn new(encoding: DataBlockEncoding, tags: bool) -> Self {
        let mut encoder = Self {
            encoding,
            tags,
            payload: Vec::new(),
            previous: None,
            rows: Vec::new(),
            plain_bytes: 0,
            cells: 0,
        };
        encoder.clear();
        encoder
    }

    /// Back to the start of a block, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.payload.clear();
        self.previous = None;
        self.rows.clear();
        self.plain_bytes = 0;
        self.cells = 0;
        if self.encoding != DataBlockEncoding::None {
            self.payload.extend_from_slice(&id(self.encoding).to_be_bytes());
        }
        if self.is_differential() {
            self.payload.extend_from_slice(&[0; 4]);
        }
    }

    fn is_differential(&self) -> bool {
        matches!(
            self.encoding,
            DataBlockEncoding::Prefix | DataBlockEncoding::Diff | DataBlockEncoding::FastDiff
        )
    }

    /// Whether no cell has been added.
    pub(super) fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Size of the block so far, by which its end is decided: the larger of plain and encoded, as
    /// in HBase.
    pub(super) fn block_bytes(&self) -> usize {
        self.plain_bytes.max(self.payload.len())
    }

    /// Size of the payload if the block ended with this cell; an upper bound, where cells omit
    /// shared parts.
    pub(super) fn payload_bytes_with(&self, cell: Cell<'_>, new_row: bool) -> usize {
        let cells = self.payload.len() + cell_layout::cell_bytes(cell, self.tags);
        if self.encoding == DataBlockEncoding::RowIndexV1 {
            cells + row_index::tail_bytes(self.rows.len() + usize::from(new_row))
        } else {
            cells
        }
    }

    /// Adds a cell. `new_row` says whether it is the first of its row.
    /// REQUIRES: cells come in order and are of one family.
    pub(super) fn add(&mut self, cell: Cell<'_>, new_row: bool) {
        self.plain_bytes += cell_layout::cell_bytes(cell, self.tags);
        let first = self.cells == 0;
        self.cells += 1;
        if !self.is_differential() {
            if (new_row || first) && self.encoding == DataBlockEncoding::RowIndexV1 {
                self.rows.push(self.payload.len() as u32 - 2);
            }
            cell_layout::put_cell(&mut self.payload, cell, self.tags);
            return;
        }
        let before = self
            .previous
            .as_ref()
            .map(|(key, value)| (Key::trusted(key.as_slice()), value.as_slice()));
        match self.encoding {
            DataBlockEncoding::Prefix => prefix::encode(&mut self.payload, cell, before),
            DataBlockEncoding::Diff => diff::encode(&mut self.payload, cell, before),
            _ => fast_diff::encode(&mut self.payload, cell, before),
        }
        if self.tags {
            put_varint(&mut self.payload, cell.tags.len() as u64);
            self.payload.extend_from_slice(cell.tags);
        }
        put_vlong(&mut self.payload, cell.seq.0 as i64);
        let (key, value) = self.previous.get_or_insert_default();
        key.clear();
        key.extend_from_slice(cell.key.bytes());
        value.clear();
        value.extend_from_slice(cell.value);
    }

    /// Ends the block and gives its payload, to be used before [`Self::clear`].
    pub(super) fn finish(&mut self) -> &[u8] {
        if self.is_differential() {
            self.payload[2..6].copy_from_slice(&(self.plain_bytes as u32).to_be_bytes());
        }
        if self.encoding == DataBlockEncoding::RowIndexV1 {
            row_index::put_tail(&mut self.payload, &self.rows);
        }
        &self.payload
    }
}
