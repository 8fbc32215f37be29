//! Reads one hour of a design's table and compares it with what was written.
//!
//! As an application would with the client's toolkit: the scans that the design needs, many at once, merged back into
//! the order of time.

use std::ops::Range;
use std::time::{Duration, Instant};

use basalt_client::keys::MinuteKey;
use basalt_client::keys::merge::merge_streams;
use basalt_client::{Row, Table};

use super::FAMILY;
use crate::designs::Design;
use crate::error::{During, Result};
use crate::report::hotspot::RangeReadReport;
use crate::rows::Rows;

/// Rows fetched by one call: fewer would be paid in round trips by designs with few scans.
const ROWS_PER_FETCH: i32 = 1_000;

/// Scans that are open at once.
const SCANS_MAX: usize = 256;

/// Reads the minutes `times` times; every read is compared. `rows_in_order` is how many rows, from the first, are known
/// to be in the table.
pub(super) async fn run(
    tables: &[Table],
    design: &Design,
    rows: &Rows,
    rows_in_order: u64,
    hour: Range<u32>,
    times: u64,
) -> Result<RangeReadReport> {
    let expected =
        rows.index_of_minute(hour.start, rows_in_order)..rows.index_of_minute(hour.end, rows_in_order);
    let scans = design.scan_ranges(hour.clone())?.len();
    let mut difference = None;
    let whole = rows.len() == Some(rows_in_order)
        || (rows_in_order > 0 && rows.key(rows_in_order - 1).minute >= hour.end);
    let mut runs_ms = Vec::new();
    let mut found_rows = 0;
    for _ in 0..times {
        let (found, took) = read(tables, design, hour.clone()).await?;
        runs_ms.push((took.as_secs_f64() * 1e6).round() / 1e3);
        found_rows = found.len() as u64;
        if difference.is_none() {
            difference = differs(&found, rows, expected.clone(), whole);
        }
    }
    runs_ms.sort_by(f64::total_cmp);
    Ok(RangeReadReport {
        rows: found_rows,
        scans: scans as u64,
        median_ms: runs_ms.get(runs_ms.len() / 2).copied().unwrap_or_default(),
        runs_ms,
        equal: difference.is_none(),
        difference,
    })
}

/// One read. `tables` are handles of the same table, each over a connection of its own; there is at least one.
async fn read(
    tables: &[Table],
    design: &Design,
    hour: Range<u32>,
) -> Result<(Vec<(MinuteKey, Row)>, Duration)> {
    let during = || {
        format!(
            "range read with {} scans",
            design.scan_ranges(hour.clone()).map_or(0, |scans| scans.len())
        )
    };
    let started = Instant::now();
    let ranges = design.scan_ranges(hour.clone())?;
    let mut found = Vec::new();
    for ranges in ranges.chunks(SCANS_MAX) {
        let scans = ranges.iter().zip(tables.iter().cycle());
        let streams = scans
            .map(|(range, table)| table.scan(range.scan().rows_per_fetch(ROWS_PER_FETCH)))
            .collect::<basalt_client::Result<Vec<_>>>()
            .during(during)?;
        let mut merged = merge_streams(streams, |row: &Row| -> basalt_client::Result<MinuteKey> {
            Ok(design.decode(&row.key)?)
        });
        while let Some(row) = merged.next().await.during(during)? {
            found.push(row);
        }
    }
    if ranges.len() > SCANS_MAX {
        found.sort_by_key(|(key, _)| *key);
    }
    Ok((found, started.elapsed()))
}

/// How what was found differs from what was written. A table that may hold more than is known to be in it, because the
/// ingest ended early within the hour, may return more.
fn differs(found: &[(MinuteKey, Row)], rows: &Rows, expected: Range<u64>, whole: bool) -> Option<String> {
    let count = expected.end - expected.start;
    if found.len() as u64 != count && (whole || (found.len() as u64) < count) {
        return Some(format!("{} rows were found instead of {count}", found.len()));
    }
    for (index, (key, row)) in expected.zip(found) {
        if *key != rows.key(index) {
            return Some(format!(
                "row {key:?} was found where {:?} was written",
                rows.key(index)
            ));
        }
        if let Some(difference) = cells_differ(row, &rows.cells(index)) {
            return Some(difference);
        }
    }
    None
}

/// How a row differs from the cells that were written: each once, and nothing else.
pub(crate) fn cells_differ(row: &Row, expected: &[(&'static str, bytes::Bytes)]) -> Option<String> {
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
    use basalt_client::Cell;
    use bytes::Bytes;

    use super::*;
    use crate::rows::Synthetic;

    fn written(rows: &Rows, index: u64) -> (MinuteKey, Row) {
        let cells = rows.cells(index).into_iter().map(|(qualifier, value)| Cell {
            family: Bytes::from(FAMILY),
            qualifier: Bytes::from(qualifier),
            value,
            timestamp: 0,
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
        let right: Vec<_> = (20..30).map(|index| written(&rows, index)).collect();
        assert_eq!(differs(&right, &rows, 20..30, true), None);
        let missing = &right[..9];
        assert!(differs(missing, &rows, 20..30, true).unwrap().contains("9 rows"));
        assert!(differs(&right, &rows, 20..29, true).is_some());
        assert_eq!(differs(&right, &rows, 20..29, false), None);
        let mut swapped = right.clone();
        swapped.swap(3, 4);
        assert!(differs(&swapped, &rows, 20..30, true).is_some());
        let mut changed = right.clone();
        changed[5].1.cells[0].value = Bytes::from("other");
        assert!(
            differs(&changed, &rows, 20..30, true)
                .unwrap()
                .contains("instead of")
        );
        let mut more = right;
        let extra = more[4].1.cells[0].clone();
        more[5].1.cells.push(extra);
        assert!(differs(&more, &rows, 20..30, true).unwrap().contains("2 cells"));
    }
}
