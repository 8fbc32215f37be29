//! Visibility: which cells of a row a reader gets, and which cells a flush or compaction keeps.
//!
//! Pure logic over cells in store order; no I/O. The rules are HBase's (`ScanQueryMatcher` and its relatives) and their order
//! matters:
//!
//! ```text
//! read    filter says all done -> columns finished -> family TTL -> cell TTL -> tombstone: remember it
//!         -> masked by a tombstone -> time range -> column asked for -> versions -> filter -> versions after the filter
//! retain  family TTL -> cell TTL -> tombstone: remember it; keep it, or judge it when all files take part
//!         -> masked by a tombstone -> versions
//! ```
//!
//! One oddity of the order of cells shapes the code: tombstones of the whole family have an empty qualifier and lie between
//! the puts of the empty qualifier, sorted by time. So a reader that is done with that column may not jump over the rest of it.

mod columns;
mod deletes;
mod read;
mod retain;

pub(super) use read::{Decision, ReadMatcher, effective_range};
pub(super) use retain::{Purge, RetainMatcher};

use crate::cell::{Cell, ttl_ms};
use crate::schema::FamilyDescriptor;

/// What has outlived its time at a given moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    now_ms: i64,
    /// Timestamps below are older than the family's TTL.
    oldest_ms: i64,
    min_versions: u64,
}

impl Expiry {
    pub(super) fn new(family: &FamilyDescriptor, now_ms: i64) -> Self {
        let oldest_ms = match family.ttl_ms() {
            i64::MAX => i64::MIN,
            ttl_ms => now_ms.saturating_sub(ttl_ms),
        };
        Self {
            now_ms,
            oldest_ms,
            min_versions: u64::try_from(family.min_versions).unwrap_or(0),
        }
    }

    /// Whether a cell of that time is older than the family's TTL.
    #[inline]
    pub(super) fn is_old(&self, timestamp: i64) -> bool {
        timestamp < self.oldest_ms
    }

    /// Whether it and everything older is gone, whatever its version.
    #[inline]
    pub(super) fn is_gone(&self, timestamp: i64) -> bool {
        self.min_versions == 0 && self.is_old(timestamp)
    }

    /// Whether the cell's own time to live is over.
    #[inline]
    pub(super) fn is_cell_gone(&self, cell: Cell<'_>) -> bool {
        ttl_ms(cell.tags).is_some_and(|ttl_ms| cell.key.timestamp().saturating_add(ttl_ms) < self.now_ms)
    }
}

#[cfg(test)]
mod tests;
