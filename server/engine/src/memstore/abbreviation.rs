//! Abbreviated keys: four bytes that stand for a key among keys between two known ones.

use crate::cell::{Key, leading4};
use crate::id::SeqId;

/// Which four bytes of a key stand for it, among keys between two that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abbreviation {
    pub(super) part: Part,
    /// Bytes of the part that all have in common.
    pub(super) skip: u32,
}

/// What of a key the two are first different in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Row,
    Qualifier,
    /// Timestamp, type and sequence id as bytes that sort as cells do, see [`version`].
    Version,
}

/// Timestamp, type and sequence id, each descending, as bytes that compare like them.
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

    /// For keys between those of two cells, or between one and nowhere.
    pub(super) fn between(first: Option<(Key<'_>, SeqId)>, next: Option<(Key<'_>, SeqId)>) -> Self {
        let (Some((left, left_seq)), Some((right, right_seq))) = (first, next) else {
            return Self::ANY;
        };
        if left.row() != right.row() {
            let skip = common_bytes(left.row(), right.row());
            Self {
                part: Part::Row,
                skip,
            }
        } else if left.qualifier() != right.qualifier() {
            let skip = common_bytes(left.qualifier(), right.qualifier());
            Self {
                part: Part::Qualifier,
                skip,
            }
        } else {
            let skip = common_bytes(&version(left, left_seq), &version(right, right_seq));
            Self {
                part: Part::Version,
                skip,
            }
        }
    }

    #[inline]
    fn take(self, part: &[u8]) -> u32 {
        leading4(part.get(self.skip as usize..).unwrap_or_default())
    }

    /// That of a cell.
    #[inline]
    pub(super) fn of(self, key: Key<'_>, seq: SeqId) -> u32 {
        match self.part {
            Part::Row => self.take(key.row()),
            Part::Qualifier => self.take(key.qualifier()),
            Part::Version => self.take(&version(key, seq)),
        }
    }

    /// That of the place in front of a row. Such a place is never between cells of one row.
    #[inline]
    pub(super) fn of_row(self, row: &[u8]) -> u32 {
        if self.part == Part::Row { self.take(row) } else { 0 }
    }

    /// As a number.
    pub(super) fn to_bits(self) -> u64 {
        (self.part as u64) << 32 | u64::from(self.skip)
    }

    /// From its number.
    #[inline]
    pub(super) fn from_bits(bits: u64) -> Self {
        let part = match bits >> 32 {
            0 => Part::Row,
            1 => Part::Qualifier,
            _ => Part::Version,
        };
        Self {
            part,
            skip: bits as u32,
        }
    }
}
