//! Hot rows by name: the rows of each table that most reads and most writes go to.
//!
//! Space-Saving counters (Metwally, Agrawal, El Abbadi 2005) for each table and kind. A row with a counter is
//! counted. A row without one replaces the row with the smallest count and begins with that count, which is
//! noted as its error: the true count is between `count - error` and `count`, and a row with more than one in
//! [`COUNTERS`] of a window's requests always has a counter.
//!
//! 1. [`HotRows::add`] counts a table's samples when the key visualizer closes a column, so no call waits for
//!    it.
//! 2. Counters cover a window of [`WINDOW_MS`]. When it ends they are kept as those of the window before, and
//!    new ones begin: figures are of the present window and the one before.
//! 3. [`HotRows::of_table`] adds up both windows and the samples of the open column.
//!
//! Invariants: memory is at most `bytes_max`; the tables with the fewest requests lose their counters first.
//! Nothing is on disk. Keys reach pages and `BasaltAdmin` only, never metrics or logs.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use basalt_engine::schema::TableName;

use super::slice::{Point, SampledKey};
use super::{KEY_BYTES_MAX, Kind};

/// Counters of a table for each kind and window.
pub(crate) const COUNTERS: usize = 64;

/// Length of a window.
pub(super) const WINDOW_MS: u64 = 300_000;

/// Kinds that have counters, in the order of [`HotTable::kinds`].
const KINDS: [Kind; 2] = [Kind::Reads, Kind::Writes];

/// Approximate memory of a table besides its counters.
const TABLE_BYTES: usize = 512;

/// A row of a table and the requests to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HotRow {
    /// At most [`KEY_BYTES_MAX`] bytes of it.
    pub(crate) key: Vec<u8>,
    /// At least the true number of requests, apart from sampling.
    pub(crate) count: f64,
    /// By how much `count` may be too high.
    pub(crate) error: f64,
    /// When the row got the counter that it has, in milliseconds since 1970.
    pub(crate) since_ms: u64,
}

impl HotRow {
    /// Requests that the row has had for sure.
    pub(crate) fn least(&self) -> f64 {
        self.count - self.error
    }

    /// Whether the key is only the begin of longer ones, counted together.
    pub(crate) fn is_cut(&self) -> bool {
        self.key.len() >= KEY_BYTES_MAX
    }
}

/// The hot rows of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HotKind {
    /// Requests of all rows.
    pub(crate) total: f64,
    /// Number of samples that the figures are made of.
    pub(crate) samples: f64,
    /// The hottest first, by the requests that each has had for sure.
    pub(crate) rows: Vec<HotRow>,
}

/// The hot rows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HotTable {
    /// Begin of the time that the figures are of, in milliseconds since 1970.
    pub(crate) from_ms: u64,
    /// Its end.
    pub(crate) to_ms: u64,
    /// Reads, then writes.
    pub(crate) kinds: [HotKind; 2],
}

impl HotTable {
    /// Length of the time in seconds, at least 1.
    pub(crate) fn seconds(&self) -> f64 {
        (self.to_ms.saturating_sub(self.from_ms) as f64 / 1_000.0).max(1.0)
    }

    /// Requests a second to a row, for sure: over the time, or since the row has its counter.
    pub(crate) fn rate(&self, row: &HotRow) -> f64 {
        let from_ms = self.from_ms.max(row.since_ms);
        row.least() / (self.to_ms.saturating_sub(from_ms) as f64 / 1_000.0).max(1.0)
    }

    /// The hot rows of one kind; `None` for bytes, which are not counted by row.
    pub(crate) fn of_kind(&self, kind: Kind) -> Option<&HotKind> {
        let index = KINDS.iter().position(|own| *own == kind)?;
        Some(&self.kinds[index])
    }
}

#[derive(Clone, Debug)]
struct Counter {
    key: SampledKey,
    count: f64,
    error: f64,
    since_ms: u64,
}

/// The counters of one kind in one window.
#[derive(Clone, Debug, Default)]
struct Summary {
    counters: Vec<Counter>,
    total: f64,
    samples: f64,
}

impl Summary {
    /// Counts requests to rows. `requests` has each sample with its weight.
    fn add<'p>(&mut self, requests: impl Iterator<Item = (&'p SampledKey, f64)>, since_ms: u64) {
        let mut batch: HashMap<&SampledKey, f64> = HashMap::new();
        for (key, amount) in requests.filter(|(_, amount)| *amount > 0.0) {
            *batch.entry(key).or_default() += amount;
            self.total += amount;
            self.samples += 1.0;
        }
        // A fixed order, the largest first: rows that share the last counters then push out each other only.
        let mut batch: Vec<_> = batch.into_iter().collect();
        batch.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then_with(|| left.0.cmp(right.0)));
        let mut places: HashMap<SampledKey, usize> = self
            .counters
            .iter()
            .map(|counter| counter.key.clone())
            .zip(0..)
            .collect();
        for (key, amount) in batch {
            if let Some(place) = places.get(key) {
                self.counters[*place].count += amount;
                continue;
            }
            let mut new = Counter {
                key: key.clone(),
                count: amount,
                error: 0.0,
                since_ms,
            };
            if self.counters.len() < COUNTERS {
                places.insert(key.clone(), self.counters.len());
                self.counters.push(new);
                continue;
            }
            let Some(place) = self.smallest() else { continue };
            let old = &self.counters[place];
            (new.count, new.error) = (old.count + amount, old.count);
            places.remove(&old.key);
            places.insert(key.clone(), place);
            self.counters[place] = new;
        }
    }

    /// Place of the counter with the smallest count.
    fn smallest(&self) -> Option<usize> {
        let counts = self.counters.iter().enumerate();
        counts
            .min_by(|left, right| left.1.count.total_cmp(&right.1.count))
            .map(|(place, _)| place)
    }

    /// Most requests that a row without a counter can have had.
    fn rest(&self) -> f64 {
        if self.counters.len() < COUNTERS {
            return 0.0;
        }
        self.smallest().map_or(0.0, |place| self.counters[place].count)
    }

    fn find(&self, key: &SampledKey) -> Option<&Counter> {
        self.counters.iter().find(|counter| counter.key == *key)
    }

    /// The counters of both windows added up.
    fn and(&self, other: &Self) -> HotKind {
        let (rest, other_rest) = (self.rest(), other.rest());
        let mut rows: Vec<HotRow> = Vec::with_capacity(self.counters.len() + other.counters.len());
        for counter in &self.counters {
            let before = other.find(&counter.key);
            rows.push(HotRow {
                key: counter.key.to_vec(),
                count: counter.count + before.map_or(other_rest, |before| before.count),
                error: counter.error + before.map_or(other_rest, |before| before.error),
                since_ms: before.map_or(counter.since_ms, |before| before.since_ms),
            });
        }
        for counter in other
            .counters
            .iter()
            .filter(|counter| self.find(&counter.key).is_none())
        {
            rows.push(HotRow {
                key: counter.key.to_vec(),
                count: counter.count + rest,
                error: counter.error + rest,
                since_ms: counter.since_ms,
            });
        }
        // A row that is mostly error says nothing. One with more than its share in COUNTERS is not: its
        // error is at most that share.
        rows.retain(|row| row.error <= row.least());
        rows.sort_by(hottest_first);
        rows.truncate(COUNTERS);
        HotKind {
            total: self.total + other.total,
            samples: self.samples + other.samples,
            rows,
        }
    }

    /// Takes the begin of counters from those of the window before.
    fn continue_from(&mut self, before: &Self) {
        for counter in &mut self.counters {
            if let Some(before) = before.find(&counter.key) {
                counter.since_ms = before.since_ms;
            }
        }
    }

    fn used_bytes(&self) -> usize {
        let heap = |counter: &Counter| {
            if counter.key.spilled() {
                counter.key.capacity()
            } else {
                0
            }
        };
        self.counters.capacity() * size_of::<Counter>() + self.counters.iter().map(heap).sum::<usize>()
    }
}

fn hottest_first(left: &HotRow, right: &HotRow) -> Ordering {
    right
        .least()
        .total_cmp(&left.least())
        .then(right.count.total_cmp(&left.count))
        .then_with(|| left.key.cmp(&right.key))
}

/// The counters of a table: reads and writes, in this window and the one before.
#[derive(Clone, Debug, Default)]
struct Windows {
    now: [Summary; 2],
    before: [Summary; 2],
}

impl Windows {
    fn add(&mut self, points: &[Point], since_ms: u64) {
        for (kind, summary) in KINDS.into_iter().zip(&mut self.now) {
            let amounts = points.iter();
            summary.add(
                amounts.map(|point| (&point.key, f64::from(point.amounts[kind as usize]))),
                since_ms,
            );
        }
    }

    fn roll(&mut self) {
        let mut ended = std::mem::take(&mut self.now);
        for (ended, before) in ended.iter_mut().zip(&self.before) {
            ended.continue_from(before);
        }
        self.before = ended;
    }

    fn total(&self) -> f64 {
        self.now
            .iter()
            .chain(&self.before)
            .map(|summary| summary.total)
            .sum()
    }

    fn kinds(&self) -> [HotKind; 2] {
        let [reads, writes] = &self.now;
        [reads.and(&self.before[0]), writes.and(&self.before[1])]
    }

    fn used_bytes(&self) -> usize {
        let summaries = self.now.iter().chain(&self.before);
        TABLE_BYTES + summaries.map(Summary::used_bytes).sum::<usize>()
    }
}

/// The counters of all tables.
#[derive(Debug)]
pub(super) struct HotRows {
    tables: BTreeMap<TableName, Windows>,
    /// Number of the present window, in [`WINDOW_MS`] since 1970.
    window: u64,
    /// Start of the first column that was counted since the start or a gap: a rate is not of the time before.
    began_ms: Option<u64>,
    bytes_max: usize,
}

impl HotRows {
    /// Counters of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            tables: BTreeMap::new(),
            window: 0,
            began_ms: None,
            bytes_max,
        }
    }

    /// Counts the samples of a column that began then.
    pub(super) fn add(&mut self, column_ms: u64, samples: &BTreeMap<TableName, Vec<Point>>) {
        self.roll_to(column_ms / WINDOW_MS);
        self.began_ms.get_or_insert(column_ms);
        for (table, points) in samples {
            self.tables
                .entry(table.clone())
                .or_default()
                .add(points, column_ms);
        }
        self.make_room();
    }

    /// Begins the window of that number, if it is another one.
    fn roll_to(&mut self, window: u64) {
        if window == self.window {
            return;
        }
        if window == self.window + 1 {
            self.tables.values_mut().for_each(Windows::roll);
            self.tables.retain(|_, windows| windows.total() > 0.0);
        } else {
            // Nothing was counted for long, or the clock was set back.
            self.tables.clear();
            self.began_ms = None;
        }
        self.window = window;
    }

    /// Drops the counters of the tables with the fewest requests until the others fit.
    fn make_room(&mut self) {
        let mut used = self.used_bytes();
        while used > self.bytes_max {
            let totals = self
                .tables
                .iter()
                .map(|(table, windows)| (windows.total(), table));
            let Some((_, quietest)) = totals.min_by(|left, right| left.0.total_cmp(&right.0)) else {
                return;
            };
            let quietest = quietest.clone();
            let dropped = self.tables.remove(&quietest);
            used -= dropped.map_or(0, |windows| windows.used_bytes());
        }
    }

    /// The hot rows of a table, with the samples of the open column, which began at `open_ms`.
    pub(super) fn of_table(&self, table: &TableName, open: &[Point], open_ms: u64, now_ms: u64) -> HotTable {
        let mut windows = self.tables.get(table).cloned().unwrap_or_default();
        let mut window = self.window;
        let open_window = open_ms / WINDOW_MS;
        if open_window == window + 1 {
            windows.roll();
        } else if open_window != window {
            windows = Windows::default();
        }
        window = open_window;
        windows.add(open, open_ms);
        let has_before = windows.before.iter().any(|summary| summary.total > 0.0);
        HotTable {
            from_ms: ((window - u64::from(has_before && window > 0)) * WINDOW_MS)
                .max(self.began_ms.unwrap_or(open_ms))
                .min(open_ms),
            to_ms: now_ms,
            kinds: windows.kinds(),
        }
    }

    /// Tables that have counters.
    pub(super) fn tables(&self) -> impl Iterator<Item = &TableName> {
        self.tables.keys()
    }

    /// Forgets all tables except those that `is_kept` accepts.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&TableName) -> bool) {
        self.tables.retain(|table, _| is_kept(table));
    }

    /// Bytes in use.
    pub(super) fn used_bytes(&self) -> usize {
        self.tables.values().map(Windows::used_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TableName {
        TableName::parse(text.as_bytes()).expect("a name")
    }

    fn point(key: &str, reads: f32, writes: f32) -> Point {
        Point {
            key: SampledKey::from_slice(key.as_bytes()),
            amounts: [reads, writes, 0.0],
        }
    }

    fn counted(hot: &mut HotRows, at_ms: u64, points: Vec<Point>) {
        hot.add(at_ms, &BTreeMap::from([(name("t"), points)]));
    }

    /// Goal: the published bounds hold. Method: a skewed stream of far more rows than counters, counted
    /// exactly beside; every count is between its bounds, and every row with more than one in `COUNTERS` of
    /// all is there.
    #[test]
    fn counts_are_between_their_bounds_and_hot_rows_are_never_lost() {
        let mut hot = HotRows::new(1 << 20);
        let mut exact: HashMap<String, f64> = HashMap::new();
        let mut random = super::super::Random(7);
        for column in 0..20 {
            let mut points = Vec::new();
            for _ in 0..2_000 {
                // About a power law: row n has a share of 1/n.
                let row = 5_000.0_f64.powf((random.next() % 10_000) as f64 / 10_000.0) as u64;
                // A row that becomes hot late has replaced another.
                let is_late = column >= 10 && random.next().is_multiple_of(5);
                let key = if is_late {
                    "late".to_owned()
                } else {
                    format!("row-{row}")
                };
                *exact.entry(key.clone()).or_default() += 1.0;
                points.push(point(&key, 1.0, 0.0));
            }
            counted(&mut hot, column * 10_000, points);
        }
        let table = hot.of_table(&name("t"), &[], 190_000, 200_000);
        let [reads, writes] = &table.kinds;
        assert!(writes.rows.is_empty());
        assert!((reads.total - 40_000.0).abs() < 0.5);
        assert!((2..=COUNTERS).contains(&reads.rows.len()), "{}", reads.rows.len());
        assert!(
            reads.rows.iter().any(|row| row.key == b"late" && row.error > 0.0),
            "it has the error of the row that it replaced"
        );
        let key = |row: &HotRow| String::from_utf8(row.key.clone()).expect("text");
        for row in &reads.rows {
            let truth = exact[&key(row)];
            assert!(
                row.least() <= truth && truth <= row.count,
                "{} was counted {truth} times, and the bounds are {} and {}",
                key(row),
                row.least(),
                row.count
            );
            assert!(row.error <= reads.total / COUNTERS as f64);
        }
        for (row, count) in exact
            .iter()
            .filter(|(_, count)| **count > reads.total / COUNTERS as f64)
        {
            assert!(
                reads.rows.iter().any(|found| key(found) == *row),
                "{row} with {count} is missing"
            );
        }
        assert_eq!([0, 1].map(|place| key(&reads.rows[place])), ["late", "row-1"]);
    }

    /// Goal: figures are of two windows at most, and say since when a row is hot.
    #[test]
    fn a_row_is_forgotten_after_two_windows_and_keeps_its_begin_while_it_is_hot() {
        let mut hot = HotRows::new(1 << 20);
        counted(
            &mut hot,
            WINDOW_MS,
            vec![point("old", 5.0, 0.0), point("hot", 9.0, 0.0)],
        );
        counted(&mut hot, 2 * WINDOW_MS, vec![point("hot", 9.0, 2.0)]);
        let both = hot.of_table(&name("t"), &[], 2 * WINDOW_MS + 10_000, 2 * WINDOW_MS + 15_000);
        assert_eq!((both.from_ms, both.to_ms), (WINDOW_MS, 2 * WINDOW_MS + 15_000));
        let rows = |table: &HotTable, kind: usize| {
            let rows = table.kinds[kind].rows.iter();
            rows.map(|row| {
                (
                    String::from_utf8_lossy(&row.key).into_owned(),
                    row.count as u64,
                    row.since_ms,
                )
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(
            rows(&both, 0),
            [("hot".into(), 18, WINDOW_MS), ("old".into(), 5, WINDOW_MS)]
        );
        assert_eq!(rows(&both, 1), [("hot".into(), 2, 2 * WINDOW_MS)]);
        // Rates are over the time, or since the row has its counter.
        let rate = |kind: usize| both.rate(&both.kinds[kind].rows[0]);
        assert!((rate(0) - 18.0 / 315.0).abs() < 1e-9, "{}", rate(0));
        assert!((rate(1) - 2.0 / 15.0).abs() < 1e-9, "{}", rate(1));
        // The next window has begun with the open column, which is counted, too.
        let open = [point("hot", 1.0, 0.0)];
        let next = hot.of_table(&name("t"), &open, 3 * WINDOW_MS, 3 * WINDOW_MS + 1_000);
        assert_eq!(rows(&next, 0), [("hot".into(), 10, WINDOW_MS)]);
        counted(&mut hot, 3 * WINDOW_MS, Vec::new());
        let third = hot.of_table(&name("t"), &[], 3 * WINDOW_MS, 3 * WINDOW_MS + 1_000);
        assert_eq!(rows(&third, 0), [("hot".into(), 9, WINDOW_MS)]);
        // Much later nothing is known, and neither after the clock was set back.
        for ms in [9 * WINDOW_MS, WINDOW_MS] {
            let later = hot.of_table(&name("t"), &[], ms, ms + 1_000);
            assert_eq!(rows(&later, 0), []);
            assert_eq!(later.from_ms, ms);
        }
    }

    /// Goal: memory is bounded by the quietest tables' counters.
    #[test]
    fn quiet_tables_make_room() {
        let mut hot = HotRows::new(100_000);
        let long = "k".repeat(KEY_BYTES_MAX - 4);
        for table in 0..40_u16 {
            let points = (0..200).map(|row| point(&format!("{long}{row:04}"), f32::from(table + 1), 1.0));
            hot.add(
                0,
                &BTreeMap::from([(name(&format!("t{table:02}")), points.collect())]),
            );
            assert!(hot.used_bytes() <= 100_000, "{}", hot.used_bytes());
        }
        let kept: Vec<String> = hot.tables().map(ToString::to_string).collect();
        assert!(!kept.is_empty() && kept.len() < 10, "{kept:?}");
        assert_eq!(kept.last().map(String::as_str), Some("t39"));
        hot.retain(|table| *table != name("t39"));
        assert!(hot.tables().all(|table| *table != name("t39")));
    }
}
