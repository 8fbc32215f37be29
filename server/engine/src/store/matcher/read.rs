//! Matcher of reads: decides which cells a reader gets (HBase: `NormalUserScanQueryMatcher`,
//! `RawScanQueryMatcher`).

use crate::Result;
use crate::cell::{Cell, Key, KeyBuf};
use crate::filter::{Filter, ReturnCode};
use crate::hfile::{PlainRows, RunLimits};
use crate::op::{Columns, FamilySelection, ReadSpec, TimeRange};
use crate::schema::{FamilyDescriptor, KeepDeletedCells};
use crate::store::ReadView;

use super::Expiry;
use super::columns::{AllColumns, NamedColumns, Versions, Wanted};
use super::deletes::{DeleteTracker, Masked};

/// Decision about the cell under the cursor: whether to return it, and where to go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Decision {
    /// Deliver it, go to the next cell.
    Include,
    /// Deliver it, go to the next column.
    IncludeAndNextColumn,
    /// Deliver it, done with the row.
    IncludeAndNextRow,
    /// Go to the next cell.
    Skip,
    /// Go to the next column ([`ReadMatcher::next_column`]).
    NextColumn,
    /// Done with the row.
    NextRow,
    /// Ask the filter where to go.
    Hint,
    /// The filter wants nothing more.
    ScanDone,
}

#[derive(Debug)]
enum Tracker {
    All(AllColumns),
    Named(NamedColumns),
}

/// Decides cell by cell, in store order, within one row at a time.
#[derive(Debug)]
pub(in crate::store) struct ReadMatcher {
    raw: bool,
    /// `None`: every timestamp.
    range: Option<TimeRange>,
    expiry: Expiry,
    /// With KEEP_DELETED_CELLS, tombstones outside the time range do not mask: the read sees the past.
    sees_past_tombstones: bool,
    deletes: DeleteTracker,
    columns: Tracker,
    /// Whether the row's column with an empty qualifier has a put that expired by assigned time.
    /// Older puts of it are then hidden one by one, because nothing is skipped in that column.
    nameless_is_over: bool,
    after_filter: AfterFilter,
}

/// The client's limit on versions, applied to cells that passed the filter.
#[derive(Debug)]
struct AfterFilter {
    max_versions: u64,
    qualifier: Vec<u8>,
    count: u64,
}

impl ReadMatcher {
    pub(in crate::store) fn new(
        family: &FamilyDescriptor,
        selection: Option<&FamilySelection>,
        spec: &ReadSpec,
        read_view: ReadView,
    ) -> Self {
        let expiry = Expiry::of_read(family, spec, read_view.now_ms).with(read_view.ahead);
        let of_family = u64::try_from(family.max_versions).unwrap_or(0);
        let of_client = u64::try_from(spec.max_versions).unwrap_or(0);
        let result = if spec.raw {
            of_client
        } else {
            of_client.min(of_family)
        };
        let before_filter = match (&spec.filter, spec.raw) {
            (None, _) => result,
            (Some(_), false) => of_family,
            (Some(_), true) => u64::MAX,
        };
        let columns = match selection.map(|selection| &selection.columns) {
            Some(Columns::Only(wanted)) if !wanted.is_empty() => {
                Tracker::Named(NamedColumns::new(wanted.clone(), before_filter, expiry))
            }
            _ => Tracker::All(AllColumns::new(before_filter, expiry)),
        };
        Self {
            raw: spec.raw,
            range: effective_range(family, spec),
            expiry,
            sees_past_tombstones: family.keep_deleted_cells != KeepDeletedCells::False,
            deletes: DeleteTracker::default(),
            columns,
            nameless_is_over: false,
            after_filter: AfterFilter {
                max_versions: result,
                qualifier: Vec::new(),
                count: 0,
            },
        }
    }

    /// The rows that are results as they are stored (`hfile::plain_rows`): no tombstone is in them, and every
    /// wanted column has one version. `None` if more than that decides.
    /// REQUIRES: the read has no filter.
    pub(in crate::store) fn plain_rows<'a>(&'a self, limits: RunLimits<'a>) -> Option<PlainRows<'a>> {
        let (max_versions, columns) = match &self.columns {
            Tracker::All(all) => (all.max_versions(), None),
            Tracker::Named(named) => (named.max_versions(), Some(named.wanted())),
        };
        if self.raw || max_versions == 0 {
            return None;
        }
        let alive = self.expiry.alive();
        let timestamps = match self.range {
            None => alive,
            Some(range) => range.min.max(*alive.start())..=range.max.saturating_sub(1).min(*alive.end()),
        };
        Some(PlainRows {
            limits,
            timestamps,
            columns,
        })
    }

    /// A new row begins.
    pub(in crate::store) fn begin_row(&mut self) {
        self.deletes.clear();
        self.nameless_is_over = false;
        match &mut self.columns {
            Tracker::All(all) => all.clear(),
            Tracker::Named(named) => named.clear(),
        }
        self.after_filter.count = 0;
    }

    /// Whether a filter's jump over the rest of the column could miss tombstones of the whole family.
    pub(in crate::store) fn must_step(&self, key: Key<'_>) -> bool {
        !self.raw && key.qualifier().is_empty()
    }

    /// Judges the next cell of the row. In the column with an empty qualifier the next version is judged like
    /// any other cell: a filter that is done with that column sees all its versions, and in a raw read its
    /// tombstones, as in HBase (`ScanQueryMatcher.getKeyForNextColumn`).
    #[inline]
    pub(in crate::store) fn decide(
        &mut self,
        cell: Cell<'_>,
        filter: Option<&mut (dyn Filter + '_)>,
    ) -> Result<Decision> {
        let decision = self.judge(cell, filter)?;
        if !cell.key.qualifier().is_empty() {
            return Ok(decision);
        }
        Ok(match decision {
            Decision::NextColumn => Decision::Skip,
            Decision::IncludeAndNextColumn => Decision::Include,
            other => other,
        })
    }

    fn judge(&mut self, cell: Cell<'_>, filter: Option<&mut (dyn Filter + '_)>) -> Result<Decision> {
        if filter
            .as_ref()
            .is_some_and(|filter| filter.filter_all_remaining())
        {
            return Ok(Decision::ScanDone);
        }
        if matches!(&self.columns, Tracker::Named(named) if named.next().is_none()) {
            return Ok(Decision::NextRow);
        }
        let timestamp = cell.key.timestamp();
        if self.expiry.is_gone(timestamp) {
            return Ok(self.done_with_column(cell.key));
        }
        if !cell.tags.is_empty() && self.expiry.is_cell_gone(cell) {
            return Ok(Decision::Skip);
        }
        let cell_type = cell.key.cell_type();
        if !cell_type.is_delete() && self.is_over(cell.key) {
            return Ok(self.done_with_column(cell.key));
        }
        if !self.raw {
            if cell_type.is_delete() {
                let counts = self.range.is_none_or(|range| {
                    timestamp >= range.min && (timestamp < range.max || !self.sees_past_tombstones)
                });
                if counts {
                    self.deletes.add(cell.key, cell_type);
                }
                return Ok(Decision::Skip);
            }
            match self.deletes.judge(cell.key) {
                Masked::No => {}
                Masked::Version => return Ok(Decision::Skip),
                Masked::Older => return Ok(self.done_with_column(cell.key)),
            }
        }
        if let Some(range) = self.range {
            if timestamp >= range.max {
                return Ok(Decision::Skip);
            }
            if timestamp < range.min {
                return Ok(self.done_with_column(cell.key));
            }
        }
        let decision = match self.check_columns(cell.key, cell_type.is_delete()) {
            Ok(included) => included,
            Err(left_out) => return Ok(left_out),
        };
        let Some(filter) = filter else {
            return Ok(decision);
        };
        let code = filter.filter_cell(cell)?;
        Ok(self.merge_filter(cell.key, decision, code))
    }

    /// Whether a put is over by assigned time, or hidden by one that is.
    fn is_over(&mut self, key: Key<'_>) -> bool {
        if self.expiry.is_over(key.timestamp()) {
            self.nameless_is_over = key.qualifier().is_empty();
            return true;
        }
        self.nameless_is_over && key.qualifier().is_empty()
    }

    /// Column and version checks: `Ok` with an including decision, `Err` with one that leaves the cell out.
    fn check_columns(&mut self, key: Key<'_>, is_delete: bool) -> std::result::Result<Decision, Decision> {
        let versions = match &mut self.columns {
            Tracker::All(all) => all.check_versions(key, is_delete),
            Tracker::Named(named) => match named.check_column(key.qualifier()) {
                Wanted::Yes => named.check_versions(key, is_delete),
                Wanted::Later => return Err(Decision::NextColumn),
                Wanted::NoMore => return Err(Decision::NextRow),
            },
        };
        match versions {
            Versions::Include => Ok(Decision::Include),
            Versions::IncludeLast => Ok(Decision::IncludeAndNextColumn),
            Versions::IncludeLastOfRow => Ok(Decision::IncludeAndNextRow),
            Versions::Duplicate => Err(Decision::Skip),
            Versions::Enough => Err(Decision::NextColumn),
        }
    }

    /// Combines the decision of the columns (an including one) with that of the filter: the larger
    /// jump is made.
    fn merge_filter(&mut self, key: Key<'_>, columns: Decision, filter: ReturnCode) -> Decision {
        use Decision::{Hint, Include, IncludeAndNextColumn, IncludeAndNextRow, NextColumn, NextRow, Skip};
        let included = match (filter, columns) {
            (ReturnCode::Skip, Include) => return Skip,
            (ReturnCode::Skip | ReturnCode::NextCol, IncludeAndNextColumn) => return NextColumn,
            (ReturnCode::NextCol, Include) => return self.done_with_column(key),
            (ReturnCode::Skip | ReturnCode::NextCol | ReturnCode::SeekNextUsingHint, IncludeAndNextRow)
            | (ReturnCode::NextRow, _) => return NextRow,
            (ReturnCode::SeekNextUsingHint, _) => return Hint,
            (ReturnCode::IncludeAndNextCol, Include) => IncludeAndNextColumn,
            (ReturnCode::IncludeAndSeekNextRow, _) => IncludeAndNextRow,
            (_, decided) => decided,
        };
        let after = &mut self.after_filter;
        if after.count == 0 || after.qualifier != key.qualifier() {
            after.qualifier.clear();
            after.qualifier.extend_from_slice(key.qualifier());
            after.count = 0;
        }
        after.count += 1;
        let too_many = after.count > after.max_versions;
        match (included, too_many) {
            (IncludeAndNextRow, true) => NextRow,
            (IncludeAndNextRow, false) => IncludeAndNextRow,
            (_, true) => self.done_with_column(key),
            (IncludeAndNextColumn, false) => {
                // The row's last column: nothing is left to go to.
                match self.done_with_column(key) {
                    NextRow => IncludeAndNextRow,
                    _ => IncludeAndNextColumn,
                }
            }
            (decided, false) => decided,
        }
    }

    fn done_with_column(&mut self, key: Key<'_>) -> Decision {
        match &mut self.columns {
            Tracker::All(_) => Decision::NextColumn,
            Tracker::Named(named) => {
                named.done_with(key.qualifier());
                if named.next().is_some() {
                    Decision::NextColumn
                } else {
                    Decision::NextRow
                }
            }
        }
    }

    /// After `NextColumn`: writes the key of the place to go to into `target`.
    pub(in crate::store) fn next_column(&self, key: Key<'_>, target: &mut Vec<u8>) {
        target.clear();
        let (qualifier, timestamp, cell_type) = match &self.columns {
            Tracker::Named(named) if named.next().is_some_and(|next| next > key.qualifier()) => (
                named.next().unwrap_or_default(),
                i64::MAX,
                crate::cell::CellType::Maximum,
            ),
            _ => (key.qualifier(), i64::MIN, crate::cell::CellType::Minimum),
        };
        KeyBuf::append(target, key.row(), key.family(), qualifier, timestamp, cell_type);
    }
}

/// The time range of the read for this family; `None`: every timestamp.
pub(in crate::store) fn effective_range(family: &FamilyDescriptor, spec: &ReadSpec) -> Option<TimeRange> {
    let range = spec
        .family_time_ranges
        .get(&family.name)
        .copied()
        .unwrap_or(spec.time_range);
    (range != TimeRange::ALL).then_some(range)
}
