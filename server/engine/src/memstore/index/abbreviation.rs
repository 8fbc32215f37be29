//! Abbreviated keys: four bytes that sort like the keys between two known ones.

use crate::cell::{Key, leading4};
use crate::id::SeqId;

/// Position of the four bytes that stand for a key, among keys between two known ones. B-trees call
/// this prefix truncation with poor man's normalized keys (Graefe, Modern B-Tree Techniques, 2011).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abbreviation {
    pub(super) part: Part,
    /// Bytes of the part that all keys have in common.
    pub(super) skip: u32,
}

/// First part of a key in which the two known keys differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Row,
    Qualifier,
    /// Timestamp, type and sequence id, see [`version`].
    Version,
}

/// Timestamp, type and sequence id, each descending, as bytes in the order of cells.
fn version(key: Key<'_>, seq: SeqId) -> [u8; 17] {
    let mut bytes = [0; 17];
    let timestamp = key.timestamp().cast_unsigned() ^ (1 << 63);
    bytes[..8].copy_from_slice(&(!timestamp).to_be_bytes());
    bytes[8] = !key.type_code();
    bytes[9..].copy_from_slice(&(!seq.0).to_be_bytes());
    bytes
}

fn common_bytes(left: &[u8], right: &[u8]) -> u32 {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count() as u32
}

impl Abbreviation {
    /// For any keys.
    pub(super) const ANY: Self = Self {
        part: Part::Row,
        skip: 0,
    };

    /// For keys between those of two cells. `None` is the start or the end of the list.
    pub(super) fn between(first: Option<(Key<'_>, SeqId)>, next: Option<(Key<'_>, SeqId)>) -> Self {
        let (Some((left, left_seq)), Some((right, right_seq))) = (first, next) else {
            return Self::ANY;
        };
        let (part, skip) = if left.row() != right.row() {
            (Part::Row, common_bytes(left.row(), right.row()))
        } else if left.qualifier() != right.qualifier() {
            let skip = common_bytes(left.qualifier(), right.qualifier());
            (Part::Qualifier, skip)
        } else {
            let (left, right) = (version(left, left_seq), version(right, right_seq));
            (Part::Version, common_bytes(&left, &right))
        };
        Self { part, skip }
    }

    #[inline]
    fn take(self, part: &[u8]) -> u32 {
        leading4(part.get(self.skip as usize..).unwrap_or_default())
    }

    /// Abbreviated key of a cell.
    #[inline]
    pub(super) fn of(self, key: Key<'_>, seq: SeqId) -> u32 {
        match self.part {
            Part::Row => self.take(key.row()),
            Part::Qualifier => self.take(key.qualifier()),
            Part::Version => self.take(&version(key, seq)),
        }
    }

    /// Abbreviated key of the bound before a row, which is never between cells of one row.
    #[inline]
    pub(super) fn of_row(self, row: &[u8]) -> u32 {
        if self.part == Part::Row { self.take(row) } else { 0 }
    }

    /// Packs it for an atomic.
    pub(super) fn to_bits(self) -> u64 {
        (self.part as u64) << 32 | u64::from(self.skip)
    }

    /// Reverses [`Self::to_bits`].
    #[inline]
    pub(super) fn from_bits(bits: u64) -> Self {
        let part = match bits >> 32 {
            0 => Part::Row,
            1 => Part::Qualifier,
            _ => Part::Version,
        };
        let skip = bits as u32;
        Self { part, skip }
    }
}
