//! The key visualiser's memory: where in the key space requests went, and when.
//!
//! 1. The API says which rows a call has read or written ([`Heat::record`]). Most rows are only counted
//!    down; some are samples: table, row key, size, and how many rows the sample stands for. Samples wait in
//!    shards, one for a few threads.
//! 2. Every [`COLUMN_MS`] [`Heat::tick`] empties the shards and makes a column: for each table a
//!    short list of keys, each with the traffic from it up to the next key ([`slice`]). The
//!    boundaries are those of regions, and quantiles of the samples in between, so that a hot
//!    region can be looked into.
//! 3. Columns are kept in rings ([`history`]): fine ones for the last hour, coarser ones for days.
//!    Columns that leave a ring are added up in the next.
//! 4. [`Heat::picture`] makes a grid of times and key ranges of them ([`picture`]).
//! 5. The samples of a column are also counted by row, for the last minutes ([`hot_rows`]).
//!
//! Invariants:
//! - A request takes no global lock: at most that of its shard, while a key is copied, and only for
//!   a sample.
//! - Memory is at most `key_visualizer.bytes`, whatever the number of tables, regions and keys;
//!   while a column is made, its samples may exist twice. A full shard drops about every other
//!   sample and counts the others double, so sums stay right on average.
//! - Closed columns are on disk every few minutes and at a clean stop ([`store`]); a crash loses those since
//!   then. Hot rows are in memory only.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use basalt_engine::clock::Clock;
use basalt_engine::schema::TableName;
use parking_lot::Mutex;

use crate::config;

mod bytes;
mod history;
mod hot_rows;
mod motion;
mod picture;
mod shard;
mod slice;
mod store;
#[cfg(test)]
mod tests;

use history::{Column, History};
use hot_rows::HotRows;
pub(crate) use hot_rows::{COUNTERS, HotKind, HotRow, HotTable};
pub(crate) use motion::{Motion, motion};
pub(crate) use picture::{Axis, Picture, Query};
use shard::{Sample, Shard};
use slice::Point;

/// Length of the finest columns.
pub(crate) const COLUMN_MS: u64 = 10_000;

/// Time after which the history is written again.
const SAVE_PERIOD: Duration = Duration::from_mins(5);

/// Longer keys are cut off: keys that differ only behind this length are counted together.
pub(crate) const KEY_BYTES_MAX: usize = 128;

/// Threads share these.
const SHARDS: usize = 16;

/// Divisor of the memory: this part is for samples that wait,
const PENDING_SHARE: usize = 4;
/// and this one for the counters of hot rows; the rest is for columns.
const HOT_ROWS_SHARE: usize = 8;

/// Kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rows that were asked for, and rows that scans returned.
    Reads,
    /// Row mutations.
    Writes,
    /// Bytes of keys and values, of both.
    Bytes,
}

impl Kind {
    /// All of them, in the order of amounts.
    pub(crate) const ALL: [Self; 3] = [Self::Reads, Self::Writes, Self::Bytes];

    /// As it is called in addresses.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Bytes => "bytes",
        }
    }

    /// The kind of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Traffic, in the order of [`Kind::ALL`].
type Amounts = [f32; 3];

/// Kind of access of a call to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Read,
    Write,
}

/// State of a thread between two samples.
#[derive(Debug)]
struct Sampler {
    random: Random,
    /// Shard of its samples.
    shard: usize,
    /// The column for which `gap` was drawn.
    column: u64,
    /// Rows to pass over before the next sample.
    gap: usize,
    /// Number of rows that the next sample stands for.
    weight: u32,
}

impl Sampler {
    fn new(number: usize) -> Self {
        Self {
            random: Random(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1)),
            shard: number,
            column: u64::MAX,
            gap: 0,
            weight: 1,
        }
    }

    /// The next sample is one of `weight` rows on the average. Gaps are random: with fixed gaps,
    /// rows that alternate between salts could give samples of one salt only.
    fn draw(&mut self, weight: u32) {
        let span = u64::from(weight) * 2 - 1;
        self.gap = usize::try_from(self.random.next() % span).unwrap_or(0);
        self.weight = weight;
    }
}

/// Random numbers that cost nothing (Marsaglia's xorshift). Not for secrets.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

thread_local! {
    static SAMPLER: RefCell<Sampler> = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        RefCell::new(Sampler::new(THREADS.fetch_add(1, Ordering::Relaxed)))
    };
}

/// Keeps neighbours apart in memory, so that threads do not take each other's cache lines.
#[repr(align(128))]
#[derive(Debug)]
struct Apart<T>(T);

/// Where requests went. Shared by all threads.
#[derive(Debug)]
pub(crate) struct Heat {
    clock: Arc<dyn Clock>,
    /// One of this many rows is a sample, while there is room.
    sample_every: u32,
    /// Number of the open column, in [`COLUMN_MS`] since 1970. Read by every request, changed by
    /// [`Self::tick`].
    column: Apart<AtomicU64>,
    /// None when the visualiser is off.
    shards: Box<[Apart<Mutex<Shard>>]>,
    history: Mutex<History>,
    hot_rows: Mutex<HotRows>,
    /// Where the history is kept; unset where it is not.
    kept: OnceLock<Kept>,
}

/// The file of the history.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// When it was written last. Held while it is written.
    written: Mutex<Instant>,
}

/// The hottest row of a table, without its key: figures for metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hottest {
    /// Its part of the table's requests of this kind.
    pub(crate) share: f64,
    pub(crate) per_second: f64,
}

impl Heat {
    /// Nothing has happened yet.
    pub(crate) fn new(config: &config::KeyVisualizer, clock: Arc<dyn Clock>) -> Self {
        let pending = config.bytes / PENDING_SHARE;
        let hot_rows = config.bytes / HOT_ROWS_SHARE;
        let shards = if config.bytes == 0 { 0 } else { SHARDS };
        let shard = |number| Apart(Mutex::new(Shard::new(pending / SHARDS, number as u64)));
        Self {
            column: Apart(AtomicU64::new(clock.wall_ms() / COLUMN_MS)),
            clock,
            sample_every: config.sample_every.max(1),
            shards: (0..shards).map(shard).collect(),
            history: Mutex::new(History::new(config.bytes - pending - hot_rows)),
            hot_rows: Mutex::new(HotRows::new(hot_rows)),
            kept: OnceLock::new(),
        }
    }

    /// Reads the history of this file, and keeps it there from now on. Tables that are not there any more are
    /// left out.
    pub(crate) fn keep_in(&self, path: PathBuf, is_there: impl Fn(&TableName) -> bool) {
        if !self.is_on() {
            return;
        }
        if let Some(bytes) = store::read(&path) {
            let mut history = self.history.lock();
            if store::decode(&bytes, &mut history).is_none() {
                tracing::warn!(
                    "{} is damaged or of another version: the key visualizer begins without a past",
                    path.display()
                );
            }
            history.retain(is_there);
            // The clock may have been set back meanwhile.
            history.drop_from(self.clock.wall_ms() + 1);
        }
        let written = Mutex::new(Instant::now());
        // Set once, at the start.
        let _ = self.kept.set(Kept { path, written });
    }

    /// Writes the history to its file, if it has one: all closed columns.
    pub(crate) fn save(&self) {
        let Some(kept) = self.kept.get() else { return };
        let mut written = kept.written.lock();
        let bytes = store::encode(&self.history.lock());
        if let Err(error) = store::write(&kept.path, &bytes) {
            tracing::warn!("{} cannot be written: {error}", kept.path.display());
        }
        *written = Instant::now();
    }

    /// Writes the history if that was not done for a while.
    fn save_if_due(&self) {
        let is_due = |kept: &Kept| kept.written.lock().elapsed() >= SAVE_PERIOD;
        if self.kept.get().is_some_and(is_due) {
            self.save();
        }
    }

    /// Whether anything is recorded.
    pub(crate) fn is_on(&self) -> bool {
        !self.shards.is_empty()
    }

    /// A call has read or written `count` rows of the table. `row` has the key and the bytes of
    /// each by its number; it is called for few of them.
    pub(crate) fn record<'a>(
        &self,
        table: &TableName,
        request: Request,
        count: usize,
        row: impl Fn(usize) -> (&'a [u8], usize),
    ) {
        if self.is_on() {
            SAMPLER.with_borrow_mut(|sampler| self.sample(sampler, table, request, count, row));
        }
    }

    fn sample<'a>(
        &self,
        sampler: &mut Sampler,
        table: &TableName,
        request: Request,
        count: usize,
        row: impl Fn(usize) -> (&'a [u8], usize),
    ) {
        let column = self.column.0.load(Ordering::Relaxed);
        if sampler.column != column {
            // After a busy time the gap may be long.
            sampler.column = column;
            sampler.draw(self.sample_every);
        }
        let mut passed = 0_usize;
        let mut shard = None;
        while let Some(at) = passed.checked_add(sampler.gap).filter(|at| *at < count) {
            let shard = shard.get_or_insert_with(|| self.shards[sampler.shard % self.shards.len()].0.lock());
            let (key, bytes) = row(at);
            let sample = Sample::new(key, bytes, request, sampler.weight);
            let scale = shard.push(table, sample);
            sampler.draw(self.sample_every.saturating_mul(scale));
            passed = at + 1;
        }
        sampler.gap -= count - passed;
    }

    /// Closes the open column when its time is over. To be called every second or so. `boundaries`
    /// are the start keys of a table's regions, in order. A table without regions was dropped, and
    /// its history is removed.
    pub(crate) fn tick(&self, boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>) {
        let now = self.clock.wall_ms() / COLUMN_MS;
        if self.is_on() && now != self.column.0.load(Ordering::Relaxed) {
            self.close_column(now, boundaries);
            self.save_if_due();
        }
    }

    /// Closes the open column although its time is not over, and writes the history to its file: the server
    /// stops.
    pub(crate) fn close(&self, boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>) {
        if self.is_on() {
            self.close_column(self.clock.wall_ms() / COLUMN_MS, boundaries);
            self.save();
        }
    }

    /// Closes the open column; the next one has this number.
    fn close_column(&self, now: u64, boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>) {
        let open = self.column.0.load(Ordering::Relaxed);
        let mut samples: BTreeMap<TableName, Vec<Point>> = BTreeMap::new();
        for shard in &self.shards {
            for (table, points) in shard.0.lock().drain() {
                samples.entry(table).or_default().extend(points);
            }
        }
        self.column.0.store(now, Ordering::Relaxed);
        self.hot_rows.lock().add(open * COLUMN_MS, &samples);
        let bytes = self.history.lock().column_bytes();
        let column = Column::of_samples(open * COLUMN_MS, samples, bytes, &boundaries);
        let mut history = self.history.lock();
        if now < open {
            history.drop_from(now * COLUMN_MS);
        } else {
            history.push(column, now * COLUMN_MS, &boundaries);
        }
        let tables = history.requests();
        drop(history);
        let is_gone = |table: &TableName| boundaries(table).is_empty();
        let gone: BTreeSet<TableName> = tables.into_keys().filter(is_gone).collect();
        if !gone.is_empty() {
            self.history.lock().retain(|table| !gone.contains(table));
        }
        self.hot_rows.lock().retain(|table| !is_gone(table));
    }

    /// Forgets a table that was dropped: a new one of that name has none of its load.
    pub(crate) fn forget(&self, table: &TableName) {
        for shard in &self.shards {
            shard.0.lock().remove(table);
        }
        self.history.lock().retain(|other| other != table);
        self.hot_rows.lock().retain(|other| other != table);
        self.save();
    }

    /// The rows of a table that most requests go to.
    pub(crate) fn hot_rows(&self, table: &TableName) -> HotTable {
        let open_ms = self.open_ms();
        let open = |shard: &Apart<Mutex<Shard>>| shard.0.lock().peek(table);
        let open: Vec<Point> = self.shards.iter().flat_map(open).collect();
        let now_ms = self.clock.wall_ms().max(open_ms);
        self.hot_rows.lock().of_table(table, &open, open_ms, now_ms)
    }

    /// The hottest row of each busy table: its share of reads, and of writes.
    pub(crate) fn hottest(&self) -> Vec<(TableName, [Option<Hottest>; 2])> {
        let open_ms = self.open_ms();
        let mut open: BTreeMap<TableName, Vec<Point>> = BTreeMap::new();
        for shard in &self.shards {
            for (table, points) in shard.0.lock().peek_all() {
                open.entry(table).or_default().extend(points);
            }
        }
        let now_ms = self.clock.wall_ms().max(open_ms);
        let hot_rows = self.hot_rows.lock();
        for table in hot_rows.tables() {
            open.entry(table.clone()).or_default();
        }
        let of = |(table, points): (TableName, Vec<Point>)| {
            let hot = hot_rows.of_table(&table, &points, open_ms, now_ms);
            let kinds = hot.kinds.each_ref().map(|kind| {
                let row = kind.rows.first()?;
                Some(Hottest {
                    share: row.least() / kind.total,
                    per_second: hot.rate(row),
                })
            });
            (table, kinds)
        };
        open.into_iter().map(of).collect()
    }

    /// Traffic of a table as a grid. `boundaries` are the start keys of its regions, in order.
    pub(crate) fn picture(&self, query: &Query, boundaries: &[Vec<u8>]) -> Picture {
        let spans = self.spans(query);
        picture::draw(query, boundaries, &spans, picture::longest(query, &spans))
    }

    /// Pictures of several tables for the same time, with the same columns. `boundaries` are the start keys
    /// of a table's regions.
    pub(crate) fn pictures(
        &self,
        queries: &[Query],
        boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>,
    ) -> Vec<Picture> {
        let spans: Vec<_> = queries.iter().map(|query| self.spans(query)).collect();
        let longest = queries
            .iter()
            .zip(&spans)
            .map(|(query, spans)| picture::longest(query, spans));
        let column_ms = longest.max().unwrap_or(COLUMN_MS);
        let each = queries.iter().zip(&spans);
        each.map(|(query, spans)| picture::draw(query, &boundaries(&query.table), spans, column_ms))
            .collect()
    }

    /// Traffic of a table in the columns of the requested time and in the open one.
    fn spans(&self, query: &Query) -> Vec<history::Span> {
        let now_ms = self.clock.wall_ms();
        let open_ms = self.open_ms();
        let open = |shard: &Apart<Mutex<Shard>>| shard.0.lock().peek(&query.table);
        let mut spans = self.history.lock().spans(&query.table, query.from_ms);
        spans.push(history::Span {
            from_ms: open_ms,
            to_ms: now_ms.clamp(open_ms + 1_000, open_ms + COLUMN_MS),
            points: self.shards.iter().flat_map(open).collect(),
        });
        spans
    }

    /// Tables with load, in closed columns or the open one, with the number of their reads and
    /// writes, busiest first. A dropped table stays in the list until the next column.
    pub(crate) fn tables(&self) -> Vec<(TableName, f64)> {
        let mut requests = self.history.lock().requests();
        for shard in &self.shards {
            for (table, count) in shard.0.lock().requests() {
                *requests.entry(table).or_default() += count;
            }
        }
        let mut tables: Vec<_> = requests.into_iter().filter(|(_, count)| *count > 0.0).collect();
        tables.sort_by(|left, right| right.1.total_cmp(&left.1));
        tables
    }

    /// Start of the first column with load of the table, in milliseconds since 1970; for a quiet
    /// table, start of the oldest column.
    pub(crate) fn first_ms(&self, table: &TableName) -> u64 {
        let open_ms = self.open_ms();
        let is_open = || self.shards.iter().any(|shard| shard.0.lock().has(table));
        let closed = self.history.lock().first_ms(table);
        closed
            .or_else(|| is_open().then_some(open_ms))
            .unwrap_or_else(|| self.oldest_ms())
    }

    /// The time from which on there are columns, in milliseconds since 1970.
    pub(crate) fn oldest_ms(&self) -> u64 {
        let open_ms = self.open_ms();
        self.history.lock().oldest_ms().unwrap_or(open_ms)
    }

    /// Start of the open column, in milliseconds since 1970.
    pub(crate) fn open_ms(&self) -> u64 {
        self.column.0.load(Ordering::Relaxed) * COLUMN_MS
    }

    /// The time now, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    /// Bytes that are in use.
    pub(crate) fn used_bytes(&self) -> usize {
        let pending: usize = self.shards.iter().map(|shard| shard.0.lock().used_bytes()).sum();
        pending + self.history.lock().used_bytes() + self.hot_rows.lock().used_bytes()
    }
}
