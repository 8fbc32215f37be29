//! The grid that the page shows: times from left to right, key ranges from top to bottom.
//!
//! Rows are either regions, each as high as any other, or ranges with about the same traffic over
//! the whole time, so that a hot region is shown with many rows. Columns are as long as the
//! coarsest one in the requested time, or a multiple of it.

use basalt_engine::schema::TableName;

use super::history::Span;
use super::slice::{Point, added_up, group};
use super::{COLUMN_MS, Kind};

/// Meaning of the rows of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Regions, or runs of regions where there are too many.
    Regions,
    /// Ranges of about equal shares, which end at the boundaries of regions.
    Keys,
}

impl Axis {
    /// As it is called in addresses.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Regions => "regions",
            Self::Keys => "keys",
        }
    }

    /// The axis of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Regions, Self::Keys]
            .into_iter()
            .find(|axis| axis.as_str() == name)
    }
}

/// Parameters of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) table: TableName,
    pub(crate) kind: Kind,
    pub(crate) axis: Axis,
    /// First key.
    pub(crate) start: Vec<u8>,
    /// One past the last; empty: to the end.
    pub(crate) end: Vec<u8>,
    /// Milliseconds since 1970.
    pub(crate) from_ms: u64,
    /// One past the end.
    pub(crate) to_ms: u64,
    /// Most rows, at least 1.
    pub(crate) rows_max: usize,
    /// Most columns, at least 1.
    pub(crate) columns_max: usize,
}

impl Query {
    fn wants(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && (self.end.is_empty() || key < self.end.as_slice())
    }
}

/// A grid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    /// Beginning of the first column, in milliseconds since 1970.
    pub(crate) from_ms: u64,
    /// Length of a column.
    pub(crate) step_ms: u64,
    /// Number of columns.
    pub(crate) columns: usize,
    /// Start of each row; it ends where the next one starts, and the last one with the query.
    pub(crate) starts: Vec<Vec<u8>>,
    /// Rate of each row in each column, per second: all rows of the first column, then those of the
    /// second, and so on.
    pub(crate) rates: Vec<f32>,
    /// Total of each row.
    pub(crate) totals: Vec<f64>,
    /// Length of all columns with load in this picture, in seconds. A total divided by it is the
    /// rate while there was load.
    pub(crate) load_seconds: f64,
}

impl Picture {
    /// Keys of the row: start, inclusive, and end, exclusive. The last row's end is the query's.
    pub(crate) fn range<'a>(&'a self, row: usize, query: &'a Query) -> (&'a [u8], &'a [u8]) {
        let end = self.starts.get(row + 1).unwrap_or(&query.end);
        (&self.starts[row], end)
    }
}

/// The longest of the spans in the requested time, which a column must not be shorter than.
pub(super) fn longest(query: &Query, spans: &[Span]) -> u64 {
    let asked = spans
        .iter()
        .filter(|span| span.from_ms >= query.from_ms && span.from_ms < query.to_ms);
    asked
        .map(|span| span.to_ms - span.from_ms)
        .fold(COLUMN_MS, u64::max)
}

/// The picture of these spans, in columns of at least `column_ms`. `boundaries`: start keys of the table's
/// regions, in order.
pub(super) fn draw(query: &Query, boundaries: &[Vec<u8>], spans: &[Span], column_ms: u64) -> Picture {
    let (from_ms, step_ms, columns) = columns(query, column_ms);
    let spans: Vec<&Span> = spans
        .iter()
        .filter(|span| span.from_ms >= from_ms && span.from_ms < query.to_ms)
        .collect();
    let starts = match query.axis {
        Axis::Regions => region_starts(query, boundaries),
        Axis::Keys => key_starts(query, boundaries, &spans),
    };
    let mut amounts = vec![0.0_f64; columns * starts.len()];
    let mut seconds = vec![step_ms as f64 / 1_000.0; columns];
    let mut load_ms = 0;
    for span in spans {
        let column = usize::try_from((span.from_ms - from_ms) / step_ms).unwrap_or(usize::MAX);
        if column >= columns {
            continue;
        }
        if span.to_ms - span.from_ms < COLUMN_MS {
            // The open column: its time is not over.
            let column_ms = span.to_ms - (from_ms + column as u64 * step_ms);
            seconds[column] = column_ms as f64 / 1_000.0;
        }
        let mut has_load = false;
        for point in span.points.iter().filter(|point| query.wants(&point.key)) {
            let row = starts.partition_point(|start| start.as_slice() <= &point.key[..]) - 1;
            let amount = f64::from(point.amounts[query.kind as usize]);
            amounts[column * starts.len() + row] += amount;
            has_load |= amount > 0.0;
        }
        load_ms += if has_load { span.to_ms - span.from_ms } else { 0 };
    }
    let mut totals = vec![0.0; starts.len()];
    for (at, amount) in amounts.iter().enumerate() {
        totals[at % starts.len()] += amount;
    }
    let rates = amounts
        .iter()
        .enumerate()
        .map(|(at, amount)| (amount / seconds[at / starts.len()]) as f32)
        .collect();
    Picture {
        from_ms,
        step_ms,
        columns,
        starts,
        rates,
        totals,
        load_seconds: load_ms as f64 / 1_000.0,
    }
}

/// Beginning of the first column, length and number of all.
fn columns(query: &Query, finest: u64) -> (u64, u64, usize) {
    let count = |step_ms: u64| query.to_ms.div_ceil(step_ms) - query.from_ms / step_ms;
    let columns_max = query.columns_max as u64;
    let mut step_ms = finest * count(finest).div_ceil(columns_max).max(1);
    while count(step_ms) > columns_max && step_ms < query.to_ms {
        step_ms += finest;
    }
    let columns = usize::try_from(count(step_ms))
        .unwrap_or(1)
        .clamp(1, query.columns_max);
    (query.from_ms / step_ms * step_ms, step_ms, columns)
}

fn region_starts(query: &Query, boundaries: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let inside = boundaries
        .iter()
        .filter(|start| **start > query.start && query.wants(start));
    let starts: Vec<Vec<u8>> = std::iter::once(&query.start).chain(inside).cloned().collect();
    let run = starts.len().div_ceil(query.rows_max);
    starts.into_iter().step_by(run).collect()
}

fn key_starts(query: &Query, boundaries: &[Vec<u8>], spans: &[&Span]) -> Vec<Vec<u8>> {
    let is_wanted = |point: &&Point| point.amounts[query.kind as usize] > 0.0 && query.wants(&point.key);
    let points = spans.iter().flat_map(|span| span.points.iter().filter(is_wanted));
    let points = added_up(points.cloned().collect());
    let groups = group(&points, query.rows_max, boundaries, &[query.kind]);
    let region_of = |key: &[u8]| boundaries.partition_point(|start| start.as_slice() <= key);
    let mut starts = vec![query.start.clone()];
    for first in groups.into_iter().skip(1) {
        let (before, key) = (&points[first - 1].key, &points[first].key);
        let region = region_of(key);
        let start = if region != region_of(before) && region > 0 {
            boundaries[region - 1].clone()
        } else {
            key.to_vec()
        };
        starts.push(start);
    }
    starts.truncate(query.rows_max);
    starts
}
