//! Matcher of flushes and compactions: decides which cells are kept (HBase:
//! `MinorCompactionScanQueryMatcher`, `MajorCompactionScanQueryMatcher`).
//!
//! Dropping a masked put is always safe because its tombstone stays. Dropping a tombstone is safe only when
//! every file that may hold a put it masks takes part.
//!
//! Cells newer than the horizon are not visible to all readers. Such a tombstone masks nothing yet,
//! such a put pushes no older version out, and neither is pushed out itself (HBase:
//! `maxReadPointToTrackVersions`).

use crate::cell::Cell;
use crate::id::SeqId;
use crate::schema::{FamilyDescriptor, KeepDeletedCells};

use crate::store::ReadView;

use super::Expiry;
use super::columns::{AllColumns, Versions};
use super::deletes::{DeleteTracker, Masked};

/// Whether tombstones may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Purge {
    /// They stay: a flush, or a compaction of some files.
    KeepTombstones,
    /// All files of the store take part.
    DropTombstones {
        /// No put in them is older.
        earliest_put: i64,
    },
}

/// Decides cell by cell, in store order.
#[derive(Debug)]
pub(in crate::store) struct RetainMatcher {
    purge: Purge,
    horizon: SeqId,
    keep_deleted: KeepDeletedCells,
    expiry: Expiry,
    deletes: DeleteTracker,
    columns: AllColumns,
    row: Vec<u8>,
    in_row: bool,
}

impl RetainMatcher {
    pub(in crate::store) fn new(family: &FamilyDescriptor, purge: Purge, horizon: ReadView) -> Self {
        let expiry = Expiry::new(family, horizon.now_ms);
        Self {
            purge,
            horizon: horizon.read_point,
            keep_deleted: family.keep_deleted_cells,
            expiry,
            deletes: DeleteTracker::default(),
            columns: AllColumns::new(u64::try_from(family.max_versions).unwrap_or(0), expiry),
            row: Vec::new(),
            in_row: false,
        }
    }

    /// Whether the next cell stays.
    pub(in crate::store) fn keeps(&mut self, cell: Cell<'_>) -> bool {
        if !self.in_row || self.row != cell.key.row() {
            self.in_row = true;
            self.row.clear();
            self.row.extend_from_slice(cell.key.row());
            self.deletes.clear();
            self.columns.clear();
        }
        let timestamp = cell.key.timestamp();
        if self.expiry.is_gone(timestamp) || (!cell.tags.is_empty() && self.expiry.is_cell_gone(cell)) {
            return false;
        }
        let cell_type = cell.key.cell_type();
        let is_new = cell.seq > self.horizon;
        if !cell_type.is_delete() {
            return self.deletes.judge(cell.key) == Masked::No
                && (is_new || self.is_wanted_version(cell, false));
        }
        if is_new {
            return true;
        }
        let keeps_deleted = match self.keep_deleted {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => !self.expiry.is_old(timestamp),
        };
        if !keeps_deleted {
            self.deletes.add(cell.key, cell_type);
        }
        match self.purge {
            Purge::KeepTombstones => true,
            Purge::DropTombstones { earliest_put } => {
                keeps_deleted && timestamp >= earliest_put && self.is_wanted_version(cell, true)
            }
        }
    }

    fn is_wanted_version(&mut self, cell: Cell<'_>, is_delete: bool) -> bool {
        self.columns.check_versions(cell.key, is_delete) == Versions::Include
    }
}
