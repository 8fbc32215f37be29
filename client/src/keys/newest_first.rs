//! A design for the history of entities: the newest event of an entity comes first in a scan.
//!
//! ```text
//! entity, fixed number of bytes | i64::MAX - milliseconds, 8 bytes big-endian
//! ```
//!
//! Entities have a fixed length, because otherwise the time behind a short one could look like the rest of
//! a longer one, and the scan of one entity would meet rows of another.

use std::cmp::{Ordering, Reverse};
use std::ops::{Bound, Range, RangeBounds};

use super::presplit::even_points;
use super::{
    KeyDesign, KeyError, RowRange, check_regions, is_crossed, not_of_design, sorted_range, split_prefix,
};

/// An event of an entity. The order is by entity, and newest first within one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntityTime {
    /// The entity, with the length that the design sets.
    pub entity: Vec<u8>,
    /// Milliseconds since 1970, not negative.
    pub timestamp_ms: i64,
}

impl Ord for EntityTime {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |key: &EntityTime| Reverse(key.timestamp_ms);
        self.entity
            .cmp(&other.entity)
            .then(order(self).cmp(&order(other)))
    }
}

impl PartialOrd for EntityTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Entity, then time from new to old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestFirst {
    entity_bytes: usize,
}

impl NewestFirst {
    /// A design for entities of `entity_bytes` bytes. With 0 it is a plain log, newest first, whose
    /// writes all go to the first region.
    pub fn new(entity_bytes: usize) -> NewestFirst {
        NewestFirst { entity_bytes }
    }

    /// The scan of the events of one entity within a range of time, newest first.
    pub fn between(&self, entity: &[u8], range_ms: Range<i64>) -> Result<Vec<RowRange>, KeyError> {
        if range_ms.is_empty() {
            return Ok(Vec::new());
        }
        let at = |timestamp_ms| EntityTime {
            entity: entity.to_vec(),
            timestamp_ms,
        };
        // The end of the time is the start of the scan. It is exclusive, as is the row at the start then.
        self.scan_ranges((
            Bound::Excluded(at(range_ms.end)),
            Bound::Included(at(range_ms.start)),
        ))
    }
}

impl KeyDesign for NewestFirst {
    type Key = EntityTime;

    fn encode(&self, key: &EntityTime) -> Result<Vec<u8>, KeyError> {
        if key.entity.len() != self.entity_bytes {
            return Err(KeyError::OutOfRange {
                part: "length of the entity",
                value: key.entity.len() as i128,
                range: format!("{0}..={0}", self.entity_bytes),
            });
        }
        if key.timestamp_ms < 0 {
            return Err(KeyError::OutOfRange {
                part: "timestamp",
                value: key.timestamp_ms.into(),
                range: format!("0..={}", i64::MAX),
            });
        }
        let reversed = i64::MAX - key.timestamp_ms;
        Ok([key.entity.as_slice(), &reversed.to_be_bytes()].concat())
    }

    fn decode(&self, row: &[u8]) -> Result<EntityTime, KeyError> {
        let (entity, time) = split_prefix(row, self.entity_bytes)?;
        let time: [u8; 8] = time
            .try_into()
            .map_err(|_| not_of_design(row, "the entity is not followed by 8 bytes"))?;
        let reversed = i64::from_be_bytes(time);
        if reversed < 0 {
            return Err(not_of_design(row, "its time is negative"));
        }
        Ok(EntityTime {
            entity: entity.to_vec(),
            timestamp_ms: i64::MAX - reversed,
        })
    }

    /// Even points of the entities, as if they were random bytes.
    fn split_points(&self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
        if self.entity_bytes == 0 {
            // No point in time stays in the middle of a log that grows.
            check_regions(regions, 1)?;
            return Ok(Vec::new());
        }
        even_points(regions, self.entity_bytes.min(8))
    }

    fn scan_ranges(&self, keys: impl RangeBounds<EntityTime>) -> Result<Vec<RowRange>, KeyError> {
        if is_crossed(&keys) {
            return Ok(Vec::new());
        }
        Ok(vec![sorted_range(&[], &keys, |key| self.encode(key))?])
    }
}
