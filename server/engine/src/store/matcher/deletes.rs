//! The tombstones of a row seen so far (HBase: `ScanDeleteTracker`).

use crate::cell::{CellType, Key};

/// The kind of tombstone that masks a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Masked {
    /// Nothing.
    No,
    /// A tombstone for one version; older versions may be visible.
    Version,
    /// A tombstone for everything up to its time; older versions of the column are masked too.
    Older,
}

/// Collects tombstones and judges puts, both in store order, within one row. Only timestamps count,
/// not the order of writing.
#[derive(Debug, Default)]
pub(super) struct DeleteTracker {
    /// The greatest `DeleteFamily`.
    family: Option<i64>,
    /// `DeleteFamilyVersion`s, descending as they come.
    family_versions: Vec<i64>,
    /// The last `Delete` or `DeleteColumn` of `qualifier`.
    column: Option<(CellType, i64)>,
    qualifier: Vec<u8>,
}

impl DeleteTracker {
    /// A new row begins.
    pub(super) fn clear(&mut self) {
        self.family = None;
        self.family_versions.clear();
        self.column = None;
    }

    /// Remembers a tombstone.
    pub(super) fn add(&mut self, key: Key<'_>, cell_type: CellType) {
        let timestamp = key.timestamp();
        if self.family.is_some_and(|family| timestamp <= family) {
            return;
        }
        match cell_type {
            CellType::DeleteFamily => self.family = Some(timestamp),
            CellType::DeleteFamilyVersion => self.family_versions.push(timestamp),
            _ => {
                let qualifier = key.qualifier();
                let covered = matches!(self.column, Some((CellType::DeleteColumn, _)))
                    && cell_type == CellType::Delete
                    && self.qualifier == qualifier;
                if !covered {
                    self.column = Some((cell_type, timestamp));
                    self.qualifier.clear();
                    self.qualifier.extend_from_slice(qualifier);
                }
            }
        }
    }

    /// Whether a put is masked.
    #[inline]
    pub(super) fn judge(&mut self, key: Key<'_>) -> Masked {
        if self.family.is_none() && self.column.is_none() && self.family_versions.is_empty() {
            return Masked::No;
        }
        let timestamp = key.timestamp();
        if self.family.is_some_and(|family| timestamp <= family) {
            return Masked::Older;
        }
        if self
            .family_versions
            .binary_search_by(|stamp| timestamp.cmp(stamp))
            .is_ok()
        {
            return Masked::Version;
        }
        match self.column {
            Some(_) if self.qualifier != key.qualifier() => self.column = None,
            Some((CellType::DeleteColumn, _)) => return Masked::Older,
            Some((_, stamp)) if stamp == timestamp => return Masked::Version,
            Some(_) => self.column = None,
            None => {}
        }
        Masked::No
    }
}
