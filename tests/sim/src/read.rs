//! The actual content of the database, in the model's terms.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::{Cell, CellBatch};
use basalt_engine::engine::{Fetched, Scanner};
use basalt_engine::internals::crc32c_append;
use basalt_engine::op::{FetchLimits, Get, ReadSpec, ReadTier, Scan};
use basalt_engine::schema::{TableName, TableState};
use basalt_engine::{Engine, Error, Result};

use super::Stop;
use super::model::{MANY, Row, Rows, Tables};

/// One cell of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    row: String,
    column: (String, String),
    timestamp: i64,
    value: Vec<u8>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Seen {
    fn of(cell: Cell<'_>) -> Self {
        Self {
            row: text(cell.key.row()),
            column: (text(cell.key.family()), text(cell.key.qualifier())),
            timestamp: cell.key.timestamp(),
            value: cell.value.to_vec(),
        }
    }
}

/// A table's name.
pub(crate) fn name(table: &str) -> TableName {
    TableName::new("default", table).expect("the workload's names are sound")
}

/// All versions.
pub(crate) fn all_versions() -> ReadSpec {
    ReadSpec {
        max_versions: MANY,
        ..ReadSpec::default()
    }
}

/// The cells that a scan of these rows returns.
pub(crate) fn cells_of(rows: &Rows, reversed: bool) -> VecDeque<Seen> {
    let cells = |(key, row): (&String, &Arc<Row>)| {
        let columns = row.0.iter().flat_map(|(column, versions)| {
            versions
                .iter()
                .map(move |(timestamp, value)| (column, *timestamp, value))
        });
        columns
            .map(|(column, timestamp, value)| Seen {
                row: key.clone(),
                column: column.clone(),
                timestamp,
                value: value.clone(),
            })
            .collect::<Vec<_>>()
    };
    if reversed {
        rows.iter().rev().flat_map(cells).collect()
    } else {
        rows.iter().flat_map(cells).collect()
    }
}

fn limits(results: usize) -> FetchLimits {
    FetchLimits {
        results,
        bytes: 1 << 20,
        time: Duration::from_hours(1),
    }
}

/// A row, as a get returns it.
pub(crate) fn row(engine: &Engine, table: &str, key: &str) -> Result<Row> {
    let mut out = CellBatch::new();
    let get = Get {
        row: key.as_bytes(),
        spec: all_versions(),
    };
    engine.get(&name(table), &get, &mut out)?;
    let mut row = Row::default();
    for cell in out.rows().flat_map(|row| row.cells()) {
        add(&mut row, &Seen::of(cell));
    }
    Ok(row)
}

fn add(row: &mut Row, seen: &Seen) {
    let versions = row.0.entry(seen.column.clone()).or_default();
    versions.push((seen.timestamp, seen.value.clone()));
}

/// All rows of a table, as a scan returns them.
pub(crate) fn rows(engine: &Engine, table: &str) -> Result<Rows> {
    let scan = Scan {
        spec: all_versions(),
        ..Scan::default()
    };
    let mut scanner = engine.scan(&name(table), scan)?;
    let mut rows = Rows::new();
    let mut out = CellBatch::new();
    loop {
        out.clear();
        let fetched = scanner.fetch(&limits(5), &mut out)?;
        for cell in out.rows().flat_map(|row| row.cells()) {
            let seen = Seen::of(cell);
            add(Arc::make_mut(rows.entry(seen.row.clone()).or_default()), &seen);
        }
        if fetched == Fetched::End {
            return Ok(rows);
        }
    }
}

/// Number of cells of a raw scan, and a checksum of all of them.
pub(crate) fn raw(engine: &Engine, table: &str) -> Result<(usize, u32)> {
    let mut spec = all_versions();
    spec.raw = true;
    let scan = Scan {
        spec,
        ..Scan::default()
    };
    let mut scanner = engine.scan(&name(table), scan)?;
    let (mut count, mut checksum) = (0, 0);
    let mut out = CellBatch::new();
    loop {
        out.clear();
        let fetched = scanner.fetch(&limits(50), &mut out)?;
        for cell in out.rows().flat_map(|row| row.cells()) {
            count += 1;
            for bytes in [cell.key.bytes(), cell.value, cell.tags] {
                checksum = crc32c_append(checksum, bytes);
            }
        }
        if fetched == Fetched::End {
            return Ok((count, checksum));
        }
    }
}

/// All tables, without their rows.
pub(crate) fn schema(engine: &Engine) -> Tables {
    let mut tables = Tables::new();
    for (descriptor, state) in engine.tables() {
        if descriptor.name.is_system() {
            continue;
        }
        let table = super::model::Table {
            descriptor: (*descriptor).clone(),
            enabled: state == TableState::Enabled,
            rows: Rows::new(),
        };
        tables.insert(descriptor.name.qualifier().to_owned(), table);
    }
    tables
}

/// An open scan and its remaining expected results.
#[derive(Debug)]
pub(crate) struct Held {
    what: String,
    scanner: Scanner,
    expected: VecDeque<Seen>,
}

impl Held {
    /// Opens a scan over `rows`, which are those of the table now. It reads from memory for as long as it
    /// can.
    pub(crate) fn open(
        engine: &Engine,
        table: &str,
        rows: &Rows,
        reversed: bool,
        batch: Option<usize>,
    ) -> Result<Self> {
        let mut scan = Scan {
            reversed,
            batch,
            spec: all_versions(),
            ..Scan::default()
        };
        if scan.may_read_memory_only() {
            scan.tier = ReadTier::Memory;
        }
        Ok(Self {
            what: format!("the scan of {table} (reversed: {reversed}, batch: {batch:?})"),
            scanner: engine.scan(&name(table), scan)?,
            expected: cells_of(rows, reversed),
        })
    }

    /// Fetches results and compares them with the snapshot; true when the scan is over.
    pub(crate) fn fetch(&mut self, results: usize) -> std::result::Result<bool, Stop> {
        let mut out = CellBatch::new();
        let mut fetched = self.scanner.fetch(&limits(results), &mut out);
        if let Err(Error::NotInMemory) = fetched {
            self.scanner.read_from_disk();
            fetched = self.scanner.fetch(&limits(results - out.row_count()), &mut out);
        }
        let fetched = fetched?;
        for cell in out.rows().flat_map(|row| row.cells()) {
            let seen = Seen::of(cell);
            let expected = self.expected.pop_front();
            if expected.as_ref() != Some(&seen) {
                return Err(Stop::Wrong(format!(
                    "{} returns {seen:?}, its snapshot has {expected:?}",
                    self.what
                )));
            }
        }
        if fetched == Fetched::End && !self.expected.is_empty() {
            return Err(Stop::Wrong(format!(
                "{} ends, and its snapshot has {:?} next",
                self.what,
                self.expected.front()
            )));
        }
        Ok(fetched == Fetched::End)
    }
}
