//! Parameters of a scan.

use std::collections::BTreeMap;
use std::ops::Range;

use basalt_idl::thrift2::{TAuthorization, TScan};
use bytes::Bytes;

use super::{IntoBytes, check_time_range, check_versions, column, family, time_range};
use crate::error::{Error, Result};
use crate::options::{Consistency, ReadType};

/// The attribute by which HBase marks a raw scan.
const RAW_ATTRIBUTE: &[u8] = b"_raw_";

/// Rows fetched in one call unless the scan says otherwise.
const ROWS_PER_FETCH: i32 = 100;

/// A scan: by default of the newest version of every column of every row, in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    inner: TScan,
    /// Rows must start with it.
    prefix: Option<Bytes>,
    rows_per_fetch: i32,
}

impl Default for Scan {
    fn default() -> Self {
        Scan::new()
    }
}

impl Scan {
    /// A scan of the whole table.
    pub fn new() -> Scan {
        Scan {
            inner: TScan::default(),
            prefix: None,
            rows_per_fetch: ROWS_PER_FETCH,
        }
    }

    /// Begins with this row, or the next one in scan order if it is absent.
    #[must_use]
    pub fn start_row(mut self, row: impl IntoBytes) -> Scan {
        self.inner.start_row = Some(row.into_bytes());
        self
    }

    /// Ends before this row.
    #[must_use]
    pub fn stop_row(mut self, row: impl IntoBytes) -> Scan {
        self.inner.stop_row = Some(row.into_bytes());
        self
    }

    /// Only rows that start with these bytes. Replaces start and stop row.
    #[must_use]
    pub fn prefix(mut self, prefix: impl IntoBytes) -> Scan {
        self.prefix = Some(prefix.into_bytes());
        self
    }

    /// For ranges that come from somewhere else.
    pub(crate) fn without_prefix(mut self) -> Scan {
        self.prefix = None;
        self
    }

    /// From high keys to low ones: the start row is then the high end.
    #[must_use]
    pub fn reversed(mut self, reversed: bool) -> Scan {
        self.inner.reversed = Some(reversed);
        self
    }

    /// Ends after this many rows.
    #[must_use]
    pub fn limit(mut self, rows: i32) -> Scan {
        self.inner.limit = Some(rows);
        self
    }

    /// Also this family.
    #[must_use]
    pub fn family(mut self, name: impl IntoBytes) -> Scan {
        self.inner.columns.get_or_insert_default().push(family(name));
        self
    }

    /// Also this column.
    #[must_use]
    pub fn column(mut self, family: impl IntoBytes, qualifier: impl IntoBytes) -> Scan {
        let asked = column(family, qualifier);
        self.inner.columns.get_or_insert_default().push(asked);
        self
    }

    /// Up to this many versions of each column.
    #[must_use]
    pub fn versions(mut self, versions: i32) -> Scan {
        self.inner.max_versions = versions;
        self
    }

    /// Only these timestamps.
    #[must_use]
    pub fn time_range(mut self, range_ms: Range<i64>) -> Scan {
        self.inner.time_range = Some(time_range(&range_ms));
        self
    }

    /// Only these timestamps in one family, instead of those of [`Scan::time_range`].
    #[must_use]
    pub fn family_time_range(mut self, family: impl IntoBytes, range_ms: Range<i64>) -> Scan {
        let ranges: &mut BTreeMap<_, _> = self.inner.col_fam_time_range_map.get_or_insert_default();
        ranges.insert(family.into_bytes(), time_range(&range_ms));
        self
    }

    /// A filter in HBase's filter language, for example `PrefixFilter('x') AND KeyOnlyFilter()`.
    #[must_use]
    pub fn filter(mut self, filter: impl IntoBytes) -> Scan {
        self.inner.filter_string = Some(filter.into_bytes());
        self
    }

    /// A filter as HBase's protobuf message `Filter` with a class and its own message.
    #[must_use]
    pub fn filter_bytes(mut self, filter: impl IntoBytes) -> Scan {
        self.inner.filter_bytes = Some(filter.into_bytes());
        self
    }

    /// Cuts rows into pieces of at most this many cells. Each piece comes as a [`Row`](crate::Row).
    #[must_use]
    pub fn cells_per_piece(mut self, cells: i32) -> Scan {
        self.inner.batch_size = Some(cells);
        self
    }

    /// Whether blocks that are read may enter the block cache: a hint. False suits scans of whole tables.
    #[must_use]
    pub fn cache_blocks(mut self, cache: bool) -> Scan {
        self.inner.cache_blocks = Some(cache);
        self
    }

    /// Sets an attribute of the request. HBase keeps some of its own options in attributes.
    #[must_use]
    pub fn attribute(mut self, name: impl IntoBytes, value: impl IntoBytes) -> Scan {
        let attributes = self.inner.attributes.get_or_insert_default();
        attributes.insert(name.into_bytes(), value.into_bytes());
        self
    }

    /// Sets which replicas may answer: a hint, without effect on one node.
    #[must_use]
    pub fn consistency(mut self, consistency: Consistency) -> Scan {
        self.inner.consistency = Some(consistency);
        self
    }

    /// Sets the replica that should answer: a hint, without effect on one node.
    #[must_use]
    pub fn replica_id(mut self, replica_id: i32) -> Scan {
        self.inner.target_replica_id = Some(replica_id);
        self
    }

    /// Sets the reader's visibility labels, without effect on a server without labels.
    #[must_use]
    pub fn authorizations(mut self, labels: Vec<String>) -> Scan {
        self.inner.authorizations = Some(TAuthorization { labels: Some(labels) });
        self
    }

    /// Sets how blocks are read: a hint, without effect on Basalt.
    #[must_use]
    pub fn read_type(mut self, read_type: ReadType) -> Scan {
        self.inner.read_type = Some(read_type);
        self
    }

    /// Also returns tombstones and the cells that they hide (see [`CellKind`](crate::CellKind)).
    #[must_use]
    pub fn raw(self, raw: bool) -> Scan {
        self.attribute(RAW_ATTRIBUTE, [u8::from(raw)])
    }

    /// Rows fetched in one call. Default 100. One fetch more is kept ready while rows are consumed.
    #[must_use]
    pub fn rows_per_fetch(mut self, rows: i32) -> Scan {
        self.rows_per_fetch = rows;
        self
    }

    fn check(&self) -> Result<()> {
        check_versions(Some(self.inner.max_versions))?;
        check_time_range(self.inner.time_range.as_ref())?;
        for range in self
            .inner
            .col_fam_time_range_map
            .iter()
            .flat_map(BTreeMap::values)
        {
            check_time_range(Some(range))?;
        }
        if self.rows_per_fetch <= 0 {
            let text = format!(
                "{} rows per fetch were asked for, at least one is needed",
                self.rows_per_fetch
            );
            return Err(Error::InvalidRequest(text));
        }
        Ok(())
    }

    /// The scan for a protocol with inclusive or exclusive flags for both ends of a range.
    pub(crate) fn into_range(self) -> Result<ScanRange> {
        self.check()?;
        let mut scan = self.inner;
        let reversed = scan.reversed == Some(true);
        let (mut start, mut stop) = (
            scan.start_row.take().unwrap_or_default(),
            scan.stop_row.take().unwrap_or_default(),
        );
        let prefix = self.prefix.filter(|prefix| !prefix.is_empty());
        let reversed_prefix = reversed && prefix.is_some();
        if let Some(prefix) = prefix {
            (start, stop) = (prefix.clone(), after_prefix(&prefix).into());
        }
        if reversed_prefix {
            (start, stop) = (stop, start);
        }
        Ok(ScanRange {
            include_start: !reversed_prefix,
            include_stop: reversed_prefix,
            scan,
            start,
            stop,
            rows_per_fetch: self.rows_per_fetch,
        })
    }

    /// The scan for the server, and the part that is left to the client.
    pub(crate) fn into_plan(self) -> Result<ScanPlan> {
        self.check()?;
        let mut scan = self.inner;
        let reversed = scan.reversed == Some(true);
        let mut keep = None;
        if let Some(prefix) = self.prefix.filter(|prefix| !prefix.is_empty()) {
            let end = Bytes::from(after_prefix(&prefix));
            if reversed {
                // The high end is inclusive and the low end exclusive, the wrong way round for a prefix. So
                // the row just behind the prefix is dropped here, and the scan ends here at the first row
                // below it.
                scan.start_row = (!end.is_empty()).then_some(end);
                scan.stop_row = None;
                scan.limit = scan
                    .limit
                    .filter(|limit| *limit > 0)
                    .map(|limit| limit.saturating_add(1));
                keep = Some(prefix);
            } else {
                scan.start_row = Some(prefix);
                scan.stop_row = (!end.is_empty()).then_some(end);
            }
        }
        let rows_left = match scan.limit {
            Some(limit) if keep.is_some() && limit > 0 => Some(limit.saturating_sub(1)),
            _ => None,
        };
        Ok(ScanPlan {
            scan,
            keep,
            rows_left,
            rows_per_fetch: self.rows_per_fetch,
        })
    }
}

/// A scan ready to run.
#[derive(Clone, Debug)]
pub(crate) struct ScanPlan {
    /// For the server.
    pub(crate) scan: TScan,
    /// Prefix of the rows of a reversed scan: rows above are dropped, the first below ends the
    /// scan.
    pub(crate) keep: Option<Bytes>,
    /// With `keep`: rows still wanted.
    pub(crate) rows_left: Option<i32>,
    /// For each fetch.
    pub(crate) rows_per_fetch: i32,
}

/// A scan and its range.
#[derive(Clone, Debug)]
pub(crate) struct ScanRange {
    /// Everything but the range.
    pub(crate) scan: TScan,
    /// The start in scan order; empty: at the end of the table from which it comes.
    pub(crate) start: Bytes,
    pub(crate) include_start: bool,
    /// The end in scan order; empty: at the other end of the table.
    pub(crate) stop: Bytes,
    pub(crate) include_stop: bool,
    pub(crate) rows_per_fetch: i32,
}

/// The first row key behind all that start with `prefix`; empty, which is the end of the table, if there is
/// none.
pub fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}
