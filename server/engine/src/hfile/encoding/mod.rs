//! Data block encodings that leave out what a key has in common with the one before: PREFIX, DIFF and FAST_DIFF.
//!
//! ```text
//! +----------------+---------------------------+==================+
//! | encoding u16 BE| plain size of the cells   | cells, each as   |
//! |                | u32 BE                    | its encoding says|
//! +----------------+---------------------------+==================+
//! ```
//!
//! In all three a cell is followed by its tags (`compressed int` length, then the bytes or dictionary references) and its
//! sequence id (vlong), when the file has them. A *compressed int* is a LEB128 varint of at most five bytes.
//!
//! Encoding and decoding both go through the plain layout of `data_block`: decoding produces it, encoding compares with the
//! cell before. Ids are on disk: never renumber.

mod diff;
mod fast_diff;
mod prefix;
mod tags;

use super::block::{Check, PLAIN_BYTES_MAX};
use super::data_block::{self, DataLayout};
use crate::cell::{Cell, Key};
use crate::codec::{Cursor, put_varint, put_vlong};
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
fn common_bytes(left: &[u8], right: &[u8]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

/// Bytes that two flat keys have in common at their start, counted as HBase does: its readers skip comparisons by this
/// number, so it never reaches from one key part into the next unless the parts are equal.
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

/// The cell that was decoded last.
#[derive(Clone, Copy, Debug, Default)]
struct Previous {
    /// Where its key starts in the plain bytes.
    key_at: usize,
    key_bytes: usize,
    value_bytes: usize,
}

/// Plain cells as they come out of an encoded block.
#[derive(Debug, Default)]
struct Plain {
    bytes: Vec<u8>,
    /// The cell before; `None` for the first.
    previous: Option<Previous>,
}

impl Plain {
    /// The key of the cell before.
    fn previous_key(&self) -> Option<Key<'_>> {
        let previous = self.previous?;
        Key::parse(
            self.bytes
                .get(previous.key_at..previous.key_at + previous.key_bytes)?,
        )
    }

    fn begin(&mut self, key_bytes: usize, value_bytes: usize) -> Previous {
        self.bytes.extend_from_slice(&(key_bytes as u32).to_be_bytes());
        self.bytes.extend_from_slice(&(value_bytes as u32).to_be_bytes());
        Previous {
            key_at: self.bytes.len(),
            key_bytes,
            value_bytes,
        }
    }

    /// Appends bytes that are there already. `None` if they are not.
    fn repeat(&mut self, from: usize, count: usize) -> Option<()> {
        let to = from.checked_add(count)?;
        if to > self.bytes.len() {
            return None;
        }
        self.bytes.extend_from_within(from..to);
        Some(())
    }

    fn copy(&mut self, input: &mut Cursor<'_>, count: usize) -> Option<()> {
        self.bytes.extend_from_slice(input.bytes(count)?);
        Some(())
    }
}

/// Decodes the cells of a block into the plain layout. `encoded` starts after the encoding's id.
pub(super) fn decode(encoded: &[u8], layout: DataLayout) -> Check<Vec<u8>> {
    let mut input = Cursor::new(encoded);
    let plain_bytes = input.u32_be().ok_or("encoded block is cut short")? as usize;
    if plain_bytes > PLAIN_BYTES_MAX {
        return Err(format!(
            "encoded block of {plain_bytes} bytes; the limit is {PLAIN_BYTES_MAX}"
        ));
    }
    let mut plain = Plain::default();
    // The declared size is a hint until that much has been decoded; a small block cannot make us reserve a large buffer.
    plain
        .bytes
        .reserve(plain_bytes.min(encoded.len().saturating_mul(16)));
    let mut dictionary = tags::Dictionary::default();
    let mut diff = diff::Decoder::default();
    let mut count = 0;
    while !input.is_empty() {
        let cell = match layout.encoding {
            DataBlockEncoding::Prefix => prefix::decode(&mut input, &mut plain),
            DataBlockEncoding::Diff => diff.decode(&mut input, &mut plain),
            _ => fast_diff::decode(&mut input, &mut plain),
        };
        let after = cell.and_then(|()| after_cell(&mut input, &mut plain.bytes, layout, &mut dictionary));
        if after.is_none() || plain.bytes.len() > plain_bytes {
            return Err(format!(
                "cell {count} of a block in {} is malformed",
                layout.encoding
            ));
        }
        count += 1;
    }
    if plain.bytes.len() != plain_bytes {
        return Err(format!(
            "block in {} decodes to {} bytes where it says {plain_bytes}",
            layout.encoding,
            plain.bytes.len()
        ));
    }
    Ok(plain.bytes)
}

fn after_cell(
    input: &mut Cursor<'_>,
    plain: &mut Vec<u8>,
    layout: DataLayout,
    dictionary: &mut tags::Dictionary,
) -> Option<()> {
    if layout.cell.tags {
        let tags_bytes = u16::try_from(size(input)?).ok()?;
        plain.extend_from_slice(&tags_bytes.to_be_bytes());
        if layout.tags_compressed {
            dictionary.uncompress(input, usize::from(tags_bytes), plain)?;
        } else {
            plain.extend_from_slice(input.bytes(usize::from(tags_bytes))?);
        }
    }
    if layout.cell.seq {
        put_vlong(plain, input.vlong()?);
    }
    Some(())
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

    /// Size of the block so far by which it is decided to end it: the larger of plain and encoded, as in HBase.
    pub(super) fn block_bytes(&self) -> usize {
        self.plain_bytes.max(self.payload.len())
    }

    /// Adds a cell. `new_row` says whether it is the first of its row.
    /// REQUIRES: cells come in order and are of one family.
    pub(super) fn add(&mut self, cell: Cell<'_>, new_row: bool) {
        self.plain_bytes += data_block::cell_bytes(cell, self.tags);
        let first = self.cells == 0;
        self.cells += 1;
        if !self.is_differential() {
            if (new_row || first) && self.encoding == DataBlockEncoding::RowIndexV1 {
                self.rows.push(self.payload.len() as u32 - 2);
            }
            data_block::put_cell(&mut self.payload, cell, self.tags);
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
            let cells_bytes = self.payload.len() as u32 - 2;
            self.payload
                .extend_from_slice(&(self.rows.len() as u32).to_be_bytes());
            for offset in &self.rows {
                self.payload.extend_from_slice(&offset.to_be_bytes());
            }
            self.payload.extend_from_slice(&cells_bytes.to_be_bytes());
        }
        &self.payload
    }
}
