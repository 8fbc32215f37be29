//! Reads one hour or day of a design's table and compares it with the written rows.
//!
//! It does so as an application would with the client's toolkit: it runs the design's scans, many
//! at once, and merges them into the order of time. Where the design has no order to scan, the
//! whole table is read and filtered here.

use std::ops::Range;
use std::time::{Duration, Instant};

use basalt_client::Row;
use basalt_client::keys::merge::merge_streams;
use basalt_client::keys::{MinuteKey, RowRange};
use basalt_load::error::{During, Result};
use basalt_load::session::{Answer, RowScan, ScanStream, Session, row_bytes};
use basalt_load::target::Target;
use bytes::Bytes;

use super::FAMILY;
use super::numbering::Numbering;
use crate::designs::Design;
use crate::hotspot::design_report::RangeRead;
use crate::rows::Rows;

/// Rows fetched by one call: fewer would be paid in round trips by designs with few scans.
const ROWS_PER_FETCH: i32 = 1_000;

/// Scans that are open at once, each with a connection of its own.
pub(crate) const SCANS_MAX: usize = 256;

/// Parameters of the read.
pub(super) struct Reading<'a> {
    pub(super) target: &'a Target,
    /// Over a pool that keeps as many connections as scans may be open at once.
    pub(super) session: &'a Session,
    pub(super) design: &'a Design,
    pub(super) rows: &'a Rows,
    pub(super) numbering: &'a Numbering,
    /// Number of first rows that are known to be in the table.
    pub(super) rows_in_order: u64,
    pub(super) minutes: Range<u32>,
}

/// One read.
struct Found {
    /// In the order of time.
    rows: Vec<(MinuteKey, Row)>,
    /// Bytes of all received rows, wanted or not.
    bytes_received: u64,
    took: Duration,
}

impl Reading<'_> {
    /// Reads the minutes `times` times; every read is compared.
    pub(super) async fn run(&self, times: u64) -> Result<RangeRead> {
        let (expected, whole) = self.expected();
        let mut report = RangeRead {
            range_scans: self.design.scan_ranges(self.minutes.clone())?.len() as u64,
            ..RangeRead::default()
        };
        let mut seconds = Vec::new();
        for time in 0..times {
            let looked_up = self.blocks_looked_up().await?;
            let found = self.read().await?;
            seconds.push((found.took.as_secs_f64() * 1e6).round() / 1e6);
            if time == 0 {
                let looked_up_now = self.blocks_looked_up().await?;
                report.range_blocks_read = looked_up_now.zip(looked_up).map(|(now, before)| now - before);
                report.range_rows = found.rows.len() as u64;
                report.range_bytes_received = found.bytes_received;
                report.range_bytes_returned = found.rows.iter().map(|(_, row)| row_bytes(row)).sum();
            }
            if report.range_difference.is_none() {
                report.range_difference = differs(&found.rows, self.rows, &expected, whole);
            }
        }
        seconds.sort_by(f64::total_cmp);
        report.range_seconds = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
        report.range_runs_seconds = seconds;
        report.range_equal = report.range_difference.is_none();
        report.range_bytes_read_per_byte_returned =
            report.range_bytes_received as f64 / (report.range_bytes_returned.max(1)) as f64;
        Ok(report)
    }

    /// The rows that must be found, by key, and whether there can be no others.
    fn expected(&self) -> (Vec<(MinuteKey, u64)>, bool) {
        let index = |minute| self.rows.index_of_minute(minute, self.rows_in_order);
        let indices = index(self.minutes.start)..index(self.minutes.end);
        let mut expected: Vec<(MinuteKey, u64)> = indices
            .filter_map(|row| Some((self.numbering.key(self.rows, row)?, row)))
            .collect();
        expected.sort_unstable();
        let behind =
            self.rows_in_order > 0 && self.rows.key(self.rows_in_order - 1).minute >= self.minutes.end;
        (expected, behind || self.rows.len() == Some(self.rows_in_order))
    }

    async fn read(&self) -> Result<Found> {
        let ranges = self.design.scan_ranges(self.minutes.clone())?;
        let during = || format!("range read with {} scans", ranges.len());
        let started = Instant::now();
        let (mut rows, mut bytes_received) = (Vec::new(), 0);
        for ranges in ranges.chunks(SCANS_MAX) {
            let streams = ranges.iter().map(|range| self.stream(range));
            let streams = streams.collect::<Answer<Vec<_>>>().during(during)?;
            let mut merged = merge_streams(streams, |row: &Row| -> Answer<MinuteKey> {
                Ok(self.design.decode(&row.key)?)
            });
            while let Some((key, row)) = merged.next().await.during(during)? {
                bytes_received += row_bytes(&row);
                if self.minutes.contains(&key.minute) {
                    rows.push((key, row));
                }
            }
        }
        if ranges.len() > SCANS_MAX || !self.design.scans_in_order() {
            rows.sort_by_key(|(key, _)| *key);
        }
        Ok(Found {
            rows,
            bytes_received,
            took: started.elapsed(),
        })
    }

    fn stream(&self, range: &RowRange) -> Answer<ScanStream> {
        let scan = RowScan {
            start: Bytes::copy_from_slice(&range.start),
            stop: Bytes::copy_from_slice(&range.stop),
            rows_per_fetch: ROWS_PER_FETCH,
            ..RowScan::default()
        };
        Ok(self.session.scan(&scan)?.stream())
    }

    /// Blocks that the server has looked for in its cache since it started; `None` where it does not say.
    async fn blocks_looked_up(&self) -> Result<Option<i64>> {
        if !self.target.is_basalt {
            return Ok(None);
        }
        let cache = self.target.admin.block_cache().await;
        let cache = cache.during(|| "state of the block cache".to_owned())?;
        Ok(Some(cache.hits + cache.misses))
    }
}

/// Difference between the rows found and those written. If the ingest ended early within the time,
/// the table may hold, and return, more rows than are known.
fn differs(
    found: &[(MinuteKey, Row)],
    rows: &Rows,
    expected: &[(MinuteKey, u64)],
    whole: bool,
) -> Option<String> {
    let count = expected.len();
    if found.len() != count && (whole || found.len() < count) {
        return Some(format!("{} rows were found instead of {count}", found.len()));
    }
    for ((written, index), (key, row)) in expected.iter().zip(found) {
        if key != written {
            return Some(format!("row {key:?} was found where {written:?} was written"));
        }
        if let Some(difference) = cells_differ(row, &rows.cells(*index)) {
            return Some(difference);
        }
    }
    None
}

/// How a row differs from the cells that were written: each once, and nothing else.
pub(crate) fn cells_differ(row: &Row, expected: &[(&'static str, Bytes)]) -> Option<String> {
    let key = row.key.escape_ascii();
    if row.cells.len() != expected.len() {
        return Some(format!(
            "row {key} has {} cells instead of {}",
            row.cells.len(),
            expected.len()
        ));
    }
    expected
        .iter()
        .find_map(|(qualifier, value)| match row.value(FAMILY, qualifier) {
            Some(found) if found == value => None,
            Some(found) => Some(format!(
                "row {key} has {FAMILY}:{qualifier} {} instead of {}",
                found.escape_ascii(),
                value.escape_ascii()
            )),
            None => Some(format!("row {key} lacks {FAMILY}:{qualifier}")),
        })
}

#[cfg(test)]
mod tests {
    use basalt_client::{Cell, CellKind};

    use super::*;
    use crate::rows::Synthetic;

    fn written(rows: &Rows, index: u64) -> (MinuteKey, Row) {
        let cells = rows.cells(index).into_iter().map(|(qualifier, value)| Cell {
            family: Bytes::from(FAMILY),
            qualifier: Bytes::from(qualifier),
            value,
            timestamp: 0,
            kind: CellKind::Put,
            tags: Bytes::new(),
        });
        let row = Row {
            key: Bytes::from("row"),
            cells: cells.collect(),
            partial: false,
        };
        (rows.key(index), row)
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        let rows = Rows::Synthetic(Synthetic::new(Some(100), 10, 8, 1));
        let expected = |indices: Range<u64>| indices.map(|row| (rows.key(row), row)).collect::<Vec<_>>();
        let difference = |found: &[_], indices, whole| {
            differs(found, &rows, &expected(indices), whole).unwrap_or_default()
        };
        let right: Vec<_> = (20..30).map(|index| written(&rows, index)).collect();
        assert_eq!(difference(&right, 20..30, true), "");
        assert!(difference(&right[..9], 20..30, true).contains("9 rows"));
        assert!(difference(&right, 20..29, true).contains("10 rows"));
        assert_eq!(difference(&right, 20..29, false), "");
        let mut swapped = right.clone();
        swapped.swap(3, 4);
        assert!(difference(&swapped, 20..30, true).contains("was found where"));
        let mut changed = right.clone();
        changed[5].1.cells[0].value = Bytes::from("other");
        assert!(difference(&changed, 20..30, true).contains("instead of"));
        let mut more = right;
        let extra = more[4].1.cells[0].clone();
        more[5].1.cells.push(extra);
        assert!(difference(&more, 20..30, true).contains("2 cells"));
    }
}
