//! Columns that are closed, in rings: the last hour in columns of ten seconds, twelve hours in columns of two
//! minutes, a week in columns of half an hour.
//!
//! A column that is too old for its ring is added to the column of the next ring that covers its
//! time. Every column has the same room, divided equally among its tables. If there are too many
//! tables for useful parts, the busiest ones get one.
//!
//! Invariant: a ring has at most one column more than its span has, and a column at most
//! [`History::column_bytes`].

use std::collections::{BTreeMap, VecDeque};

use basalt_engine::schema::TableName;

use super::COLUMN_MS;
use super::bytes::{Bytes, put_u32};
use super::slice::{Point, SLICE_BYTES, Slice};

/// Length of a column, and how far back the ring goes, both in milliseconds. Each length divides the next.
const RINGS: [(u64, u64); 3] = [
    (COLUMN_MS, 3_600_000),
    (120_000, 12 * 3_600_000),
    (1_800_000, 7 * 24 * 3_600_000),
];

/// Minimum part of a table in a column: less has no room for a few keys.
const PART_BYTES_MIN: usize = SLICE_BYTES + 256;

/// Memory of a column besides its slices.
const COLUMN_BYTES: usize = 64;

/// Traffic in a period.
#[derive(Debug)]
pub(super) struct Column {
    start_ms: u64,
    slices: BTreeMap<TableName, Slice>,
}

/// A period and the traffic of one table in it.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) from_ms: u64,
    /// One past the end.
    pub(super) to_ms: u64,
    pub(super) points: Vec<Point>,
}

#[derive(Debug)]
struct Ring {
    step_ms: u64,
    span_ms: u64,
    /// Oldest first; times in which nothing happened have none.
    columns: VecDeque<Column>,
}

#[derive(Debug)]
pub(super) struct History {
    rings: [Ring; 3],
    column_bytes: usize,
}

impl Column {
    /// The column of these points, in at most `bytes`. `boundaries` are a table's regions' start keys.
    pub(super) fn of_samples(
        start_ms: u64,
        points: BTreeMap<TableName, Vec<Point>>,
        bytes: usize,
        boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>,
    ) -> Self {
        let mut tables: Vec<_> = points.into_iter().collect();
        let room = bytes.saturating_sub(COLUMN_BYTES);
        let parts_max = room / PART_BYTES_MIN;
        if tables.len() > parts_max {
            tables.sort_by_cached_key(|(_, points)| {
                let total = super::slice::sum(points.iter().map(|point| point.amounts));
                std::cmp::Reverse((total[0] + total[1]) as u64)
            });
            tables.truncate(parts_max);
        }
        let part = room / tables.len().max(1);
        let slices = tables
            .into_iter()
            .filter_map(|(table, points)| {
                let slice = Slice::of(points, &boundaries(&table), part)?;
                Some((table, slice))
            })
            .collect();
        Self { start_ms, slices }
    }

    /// Sum of both columns, for the time of the first.
    fn and(&self, other: &Self, bytes: usize, boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>) -> Self {
        let mut points: BTreeMap<TableName, Vec<Point>> = BTreeMap::new();
        for (table, slice) in self.slices.iter().chain(&other.slices) {
            points.entry(table.clone()).or_default().extend(slice.points());
        }
        Self::of_samples(self.start_ms, points, bytes, boundaries)
    }

    fn used_bytes(&self) -> usize {
        COLUMN_BYTES + self.slices.values().map(Slice::used_bytes).sum::<usize>()
    }
}

impl History {
    /// Rings of at most `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let columns: u64 = RINGS.iter().map(|(step, span)| span / step + 2).sum();
        Self {
            rings: RINGS.map(|(step_ms, span_ms)| Ring {
                step_ms,
                span_ms,
                columns: VecDeque::new(),
            }),
            column_bytes: bytes / usize::try_from(columns).unwrap_or(usize::MAX),
        }
    }

    /// Most bytes of a column.
    pub(super) fn column_bytes(&self) -> usize {
        self.column_bytes
    }

    /// Adds the newest column to the first ring, and moves columns that are too old at `now_ms` to
    /// the next ring.
    pub(super) fn push(
        &mut self,
        column: Column,
        now_ms: u64,
        boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>,
    ) {
        let [fine, middle, coarse] = &mut self.rings;
        if !column.slices.is_empty() {
            fine.columns.push_back(column);
        }
        for old in fine.expired(now_ms) {
            middle.add(&old, self.column_bytes, &boundaries);
        }
        for old in middle.expired(now_ms) {
            coarse.add(&old, self.column_bytes, &boundaries);
        }
        coarse.expired(now_ms);
    }

    /// The clock was set back: drops columns in the future.
    pub(super) fn drop_from(&mut self, now_ms: u64) {
        for ring in &mut self.rings {
            ring.columns.retain(|column| column.start_ms < now_ms);
        }
    }

    /// Traffic of a table in columns that end after `from_ms`, oldest first.
    pub(super) fn spans(&self, table: &TableName, from_ms: u64) -> Vec<Span> {
        let mut spans = Vec::new();
        for ring in self.rings.iter().rev() {
            for column in &ring.columns {
                let to_ms = column.start_ms + ring.step_ms;
                if let Some(slice) = column.slices.get(table).filter(|_| to_ms > from_ms) {
                    spans.push(Span {
                        from_ms: column.start_ms,
                        to_ms,
                        points: slice.points().collect(),
                    });
                }
            }
        }
        spans
    }

    /// Reads and writes of each table.
    pub(super) fn requests(&self) -> BTreeMap<TableName, f64> {
        let mut requests = BTreeMap::new();
        let columns = self.rings.iter().flat_map(|ring| &ring.columns);
        for (table, slice) in columns.flat_map(|column| &column.slices) {
            *requests.entry(table.clone()).or_default() += slice.requests();
        }
        requests
    }

    /// All columns as bytes ([`super::store`]).
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for ring in &self.rings {
            put_u32(out, ring.columns.len());
            for column in &ring.columns {
                out.extend_from_slice(&column.start_ms.to_le_bytes());
                put_u32(out, column.slices.len());
                for (table, slice) in &column.slices {
                    let name = table.to_string();
                    put_u32(out, name.len());
                    out.extend_from_slice(name.as_bytes());
                    slice.encode(out);
                }
            }
        }
    }

    /// Replaces all columns by those of [`Self::encode`]; `None` if the bytes are malformed. If not
    /// all fit, the oldest columns are left out.
    pub(super) fn decode(&mut self, from: &mut Bytes<'_>) -> Option<()> {
        let bytes_max = self.column_bytes * self.rings.iter().map(Ring::columns_max).sum::<usize>();
        let mut rings = RINGS.map(|(step_ms, span_ms)| Ring {
            step_ms,
            span_ms,
            columns: VecDeque::new(),
        });
        for ring in &mut rings {
            let mut before = None;
            for _ in 0..from.u32()? {
                let start_ms = u64::from_le_bytes(from.array()?);
                if !start_ms.is_multiple_of(ring.step_ms) || before > Some(start_ms) {
                    return None;
                }
                before = Some(start_ms);
                let mut slices = BTreeMap::new();
                for _ in 0..from.u32()? {
                    let name = from.u32()?;
                    let table = TableName::parse(from.take(name)?).ok()?;
                    slices.insert(table, Slice::decode(from)?);
                }
                ring.columns.push_back(Column { start_ms, slices });
                if ring.columns.len() > ring.columns_max() {
                    ring.columns.pop_front();
                }
            }
        }
        self.rings = rings;
        while self.used_bytes() > bytes_max {
            let oldest = self.rings.iter_mut().filter(|ring| !ring.columns.is_empty());
            let oldest = oldest.min_by_key(|ring| ring.columns.front().map(|column| column.start_ms));
            oldest?.columns.pop_front();
        }
        from.is_empty().then_some(())
    }

    /// Removes all tables except those that `is_kept` accepts.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&TableName) -> bool) {
        for ring in &mut self.rings {
            for column in &mut ring.columns {
                column.slices.retain(|table, _| is_kept(table));
            }
            ring.columns.retain(|column| !column.slices.is_empty());
        }
    }

    /// Start of the first column that has load of the table.
    pub(super) fn first_ms(&self, table: &TableName) -> Option<u64> {
        let columns = self.rings.iter().flat_map(|ring| &ring.columns);
        let own = columns.filter(|column| column.slices.contains_key(table));
        own.map(|column| column.start_ms).min()
    }

    /// The beginning of the oldest column.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        let columns = self.rings.iter().filter_map(|ring| ring.columns.front());
        columns.map(|column| column.start_ms).min()
    }

    /// Bytes in use.
    pub(super) fn used_bytes(&self) -> usize {
        let columns = self.rings.iter().flat_map(|ring| &ring.columns);
        columns.map(Column::used_bytes).sum()
    }

    /// Everything that is known to have gone to a table.
    #[cfg(test)]
    pub(super) fn total(&self, table: &TableName) -> super::Amounts {
        let columns = self.rings.iter().flat_map(|ring| &ring.columns);
        super::slice::sum(columns.filter_map(|column| Some(column.slices.get(table)?.total())))
    }
}

impl Ring {
    /// Most columns that it has.
    fn columns_max(&self) -> usize {
        usize::try_from(self.span_ms / self.step_ms + 2).unwrap_or(usize::MAX)
    }

    /// Removes and returns columns that are too old.
    fn expired(&mut self, now_ms: u64) -> Vec<Column> {
        let oldest_ms = now_ms.saturating_sub(self.span_ms) / self.step_ms * self.step_ms;
        let mut expired = Vec::new();
        while let Some(column) = self.columns.pop_front_if(|column| column.start_ms < oldest_ms) {
            expired.push(column);
        }
        expired
    }

    /// Adds a finer column to the one that has its time. Columns come oldest first.
    fn add(&mut self, finer: &Column, bytes: usize, boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>) {
        let start_ms = finer.start_ms / self.step_ms * self.step_ms;
        let here = match self.columns.pop_back_if(|last| last.start_ms == start_ms) {
            Some(last) => last,
            None => Column {
                start_ms,
                slices: BTreeMap::new(),
            },
        };
        self.columns.push_back(here.and(finer, bytes, boundaries));
    }
}
