//! The cell: HBase's unit of data, and the order of cells.
//!
//! A cell's *flat key* is HBase's KeyValue key, the same bytes in the memstore, in the WAL and in store
//! files:
//!
//! ```text
//! +-----------+-----+-------+--------+-----------+------------+------+
//! | row length| row | family| family | qualifier | timestamp  | type |
//! |  u16 BE   |     | len u8|        |           |  i64 BE    |  u8  |
//! +-----------+-----+-------+--------+-----------+------------+------+
//! ```
//!
//! Order (HBase's `CellComparatorImpl`): row, family, qualifier as unsigned bytes, shorter prefix first; then
//! timestamp descending, type descending, sequence id descending. So a delete marker stands before the puts
//! of the same time, and a later write before an earlier one of the same coordinates. Rows of `hbase:meta`
//! are ordered by their parts ([`RowOrder`]).

mod batch;
pub mod budget;
mod key;
mod order;

pub use batch::{BATCH_FREE_BYTES, CellBatch, RowView};
pub use budget::{Account, Budget, CallMemory, OnShortage};
pub use key::{Key, KeyBuf, compare_keys};
pub use key::{is_equal, leading4, leading16};
pub use order::RowOrder;
pub use order::is_from;

use crate::Result;
use crate::id::SeqId;

/// "Server, assign the time": HBase's `HConstants.LATEST_TIMESTAMP`.
pub const LATEST: i64 = i64::MAX;

/// Longest row key (Java's `Short.MAX_VALUE`).
pub const ROW_MAX_BYTES: usize = 32_767;

/// Longest family name.
pub const FAMILY_MAX_BYTES: usize = 127;

/// Type of a cell: a put or one kind of delete. The codes are on disk and on the wire: never
/// renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CellType {
    /// Sorts after everything at its place; only for seeking.
    Minimum = 0,
    /// A value.
    Put = 4,
    /// Tombstone of exactly one version of a column.
    Delete = 8,
    /// Tombstone of all cells of the family with exactly this timestamp.
    DeleteFamilyVersion = 10,
    /// Tombstone of all versions of a column up to this timestamp.
    DeleteColumn = 12,
    /// Tombstone of all cells of the family up to this timestamp.
    DeleteFamily = 14,
    /// Sorts before everything at its place; only for seeking.
    Maximum = 255,
}

impl CellType {
    /// The type with that code.
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Minimum,
            4 => Self::Put,
            8 => Self::Delete,
            10 => Self::DeleteFamilyVersion,
            12 => Self::DeleteColumn,
            14 => Self::DeleteFamily,
            255 => Self::Maximum,
            _ => return None,
        })
    }

    /// Whether it is one of the four tombstones.
    #[inline]
    pub fn is_delete(self) -> bool {
        matches!(
            self,
            Self::Delete | Self::DeleteFamilyVersion | Self::DeleteColumn | Self::DeleteFamily
        )
    }
}

/// A cell, borrowed from wherever it lies: memstore, block, WAL record, result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// Flat key of the cell.
    pub key: Key<'a>,
    /// Value of the cell.
    pub value: &'a [u8],
    /// Tags, encoded as in HFiles: { length u16 BE (type + value), type u8, value }*. Usually empty.
    pub tags: &'a [u8],
    /// The edit that wrote it. Zero when a compaction has dropped it.
    pub seq: SeqId,
}

impl Cell<'_> {
    /// Bytes of user data: key and value.
    #[inline]
    pub fn data_bytes(&self) -> usize {
        self.key.bytes().len() + self.value.len()
    }
}

/// A position in a sorted run of cells of one family in one region: the one way to walk over memstore, store
/// file, and merges of them.
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

/// Tag type of a per-cell time to live, value an i64 BE of milliseconds (HBase: `TagType.TTL_TAG_TYPE`).
pub const TAG_TTL: u8 = 8;

/// Bytes of a list of tags that holds nothing but a time to live.
pub const TTL_TAG_BYTES: usize = 11;

/// The encoded list of tags that holds nothing but a time to live.
#[inline]
pub fn ttl_tag(ttl_ms: i64) -> [u8; TTL_TAG_BYTES] {
    let mut tag = [0; TTL_TAG_BYTES];
    tag[1] = (TTL_TAG_BYTES - 2) as u8;
    tag[2] = TAG_TTL;
    tag[3..].copy_from_slice(&ttl_ms.to_be_bytes());
    tag
}

/// Appends one encoded tag.
#[inline]
pub fn put_tag(out: &mut Vec<u8>, tag_type: u8, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u16 + 1).to_be_bytes());
    out.push(tag_type);
    out.extend_from_slice(value);
}

/// The tags of an encoded list, first to last. Stops at the first malformed one.
pub fn tags(mut encoded: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (len, rest) = encoded.split_first_chunk::<2>()?;
        let (tag, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let (tag_type, value) = tag.split_first()?;
        encoded = rest;
        Some((*tag_type, value))
    })
}

/// The cell's own time to live in milliseconds, if it has one.
pub fn ttl_ms(encoded_tags: &[u8]) -> Option<i64> {
    if encoded_tags.is_empty() {
        return None;
    }
    tags(encoded_tags)
        .find(|(tag_type, _)| *tag_type == TAG_TTL)
        .and_then(|(_, value)| value.try_into().ok())
        .map(i64::from_be_bytes)
}

#[cfg(test)]
mod tests;
