//! Visibility: which cells of a row a reader gets, and which cells a flush or compaction keeps.
//!
//! Pure logic over cells in store order; no I/O. The rules are HBase's (`ScanQueryMatcher` and its relatives)
//! and their order matters:
//!
//! ```text
//! read    filter says all done -> columns finished -> family TTL -> cell TTL -> tombstone: remember it
//!         -> masked by a tombstone -> time range -> column asked for -> versions -> filter -> versions after the filter
//! retain  family TTL -> cell TTL -> tombstone: remember it; keep it, or judge it when all files take part
//!         -> masked by a tombstone -> versions
//! ```
//!
//! One property of the order of cells shapes the code: tombstones of the whole family have an empty
//! qualifier and lie between the puts of the empty qualifier, sorted by time. So a reader that is
//! done with that column may not jump over the rest of it.

mod columns;
mod deletes;
mod read;
mod retain;

pub(super) use read::{Decision, ReadMatcher, effective_range};
pub(super) use retain::{Purge, RetainMatcher};

use std::ops::RangeInclusive;

use crate::cell::{Cell, ttl_ms};
use crate::clock::Ahead;
use crate::op::ReadSpec;
use crate::schema::FamilyDescriptor;

/// Decides which cells have expired at a given time.
///
/// Ages count by the wall clock. While the clock is behind assigned time, a put with a timestamp in
/// the clock's future also expires by assigned time: otherwise it would live longer by the whole
/// lag. Only reads hide such puts. Flushes and compactions keep them, because an older cell, even a
/// tombstone, may not have expired yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    now_ms: i64,
    /// Timestamps below are older than the family's TTL.
    oldest_ms: i64,
    ahead: Ahead,
    /// As `oldest_ms`, by assigned time.
    oldest_ahead_ms: i64,
    ttl_ms: i64,
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
            ahead: Ahead::NONE,
            oldest_ahead_ms: i64::MIN,
            ttl_ms: family.ttl_ms(),
            min_versions: u64::try_from(family.min_versions).unwrap_or(0),
        }
    }

    /// Expiry for a read. A raw read shows cells that are older than the family's TTL, as in HBase;
    /// a cell's own time to live still counts.
    pub(super) fn of_read(family: &FamilyDescriptor, spec: &ReadSpec, now_ms: i64) -> Self {
        let mut expiry = Self::new(family, now_ms);
        if spec.raw {
            expiry.oldest_ms = i64::MIN;
            expiry.ttl_ms = i64::MAX;
        }
        expiry
    }

    /// Adds assigned time, for a read, which also checks [`Expiry::is_over`].
    pub(super) fn with(mut self, ahead: Ahead) -> Self {
        self.ahead = ahead;
        if self.ttl_ms != i64::MAX {
            self.oldest_ahead_ms = ahead.now_ms.saturating_sub(self.ttl_ms);
        }
        self
    }

    /// The timestamps of puts that have not expired by the family's TTL, whatever the assigned time.
    pub(super) fn alive(&self) -> RangeInclusive<i64> {
        let newest = if self.ttl_ms == i64::MAX {
            i64::MAX
        } else {
            self.ahead.from_ms
        };
        self.oldest_ms..=newest
    }

    /// Whether a put that has not expired by the wall clock has outlived the family's TTL by
    /// assigned time.
    #[inline]
    pub(super) fn is_over(&self, timestamp: i64) -> bool {
        timestamp > self.ahead.from_ms && timestamp < self.oldest_ahead_ms && self.min_versions == 0
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
        let timestamp = cell.key.timestamp();
        let is_ahead = timestamp > self.ahead.from_ms && !cell.key.cell_type().is_delete();
        let now_ms = if is_ahead { self.ahead.now_ms } else { self.now_ms };
        ttl_ms(cell.tags).is_some_and(|ttl_ms| timestamp.saturating_add(ttl_ms) < now_ms)
    }
}

#[cfg(test)]
mod tests;
