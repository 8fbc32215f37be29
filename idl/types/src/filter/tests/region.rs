//! A region that reads from a list of cells and calls a filter in HBase's order.
//!
//! For each row: reset, filter_all_remaining, filter_row_key; for each family, cell by cell:
//! filter_all_remaining, filter_cell, then the jump; filter_row_cells and filter_row at the end. A hint moves
//! one family's store only.

use std::collections::{BTreeMap, BTreeSet};

use crate::Result;
use crate::cell::{Cell, CellBatch, CellType, KeyBuf, compare_keys};
use crate::filter::{Filter, FilterSpec, ReturnCode};
use crate::schema::Escaped;

/// Rows that are read, and options of the read.
pub(super) struct Read<'t> {
    pub(super) cells: &'t str,
    pub(super) reversed: bool,
    /// The client's max versions, counted behind the filter.
    pub(super) max_versions: usize,
}

impl<'t> Read<'t> {
    pub(super) fn new(cells: &'t str) -> Self {
        Self {
            cells,
            reversed: false,
            max_versions: usize::MAX,
        }
    }

    pub(super) fn reversed(cells: &'t str) -> Self {
        Self {
            reversed: true,
            ..Self::new(cells)
        }
    }
}

struct Stored {
    key: KeyBuf,
    value: Vec<u8>,
}

impl Stored {
    /// From `row family:qualifier@timestamp=value`.
    fn parse(row: &str, rest: &str) -> Self {
        let (column, rest) = rest.split_once('@').expect("a timestamp");
        let (family, qualifier) = column.split_once(':').expect("a family");
        let (timestamp, value) = rest.split_once('=').expect("a value");
        let timestamp = timestamp.parse().expect("a number");
        let key = KeyBuf::new(
            row.as_bytes(),
            family.as_bytes(),
            qualifier.as_bytes(),
            timestamp,
            CellType::Put,
        );
        Self {
            key,
            value: value.into(),
        }
    }

    fn cell(&self) -> Cell<'_> {
        Cell {
            key: self.key.as_key(),
            value: &self.value,
            tags: &[],
            seq: crate::id::SeqId::default(),
        }
    }
}

/// Cells of one family, and up to where a hint has moved it.
#[derive(Default)]
struct Store {
    cells: Vec<Stored>,
    hint: Option<KeyBuf>,
}

impl Store {
    /// Whether the hint has jumped over the cell.
    fn is_behind(&self, cell: Cell<'_>, reversed: bool) -> bool {
        self.hint.as_ref().is_some_and(|hint| {
            let hint = hint.as_key();
            let rows = cell.key.row().cmp(hint.row());
            if reversed && rows.is_ne() {
                rows.is_gt()
            } else {
                compare_keys(cell.key, hint).is_lt()
            }
        })
    }

    /// Offers its cells of the row to the filter.
    fn read_row(
        &mut self,
        row: &[u8],
        filter: &mut dyn Filter,
        read: &Read<'_>,
        out: &mut CellBatch,
    ) -> Result<()> {
        let mut skipped_column: Option<Vec<u8>> = None;
        let mut counted: (Vec<u8>, usize) = Default::default();
        for index in 0..self.cells.len() {
            let cell = self.cells[index].cell();
            let column = cell.key.column_bytes().to_vec();
            if cell.key.row() != row
                || skipped_column.as_ref() == Some(&column)
                || self.is_behind(cell, read.reversed)
            {
                continue;
            }
            if filter.filter_all_remaining() {
                return Ok(());
            }
            let code = filter.filter_cell(cell)?;
            if code.includes() {
                if counted.0 != column {
                    counted = (column.clone(), 0);
                }
                counted.1 += 1;
                if counted.1 <= read.max_versions {
                    let mut scratch = Vec::new();
                    let value = filter.transform_value(cell, &mut scratch);
                    out.push_with_value(cell, if filter.transforms() { value } else { cell.value });
                }
            }
            match code {
                ReturnCode::Include | ReturnCode::Skip => {}
                ReturnCode::IncludeAndNextCol | ReturnCode::NextCol => skipped_column = Some(column),
                ReturnCode::IncludeAndSeekNextRow | ReturnCode::NextRow => return Ok(()),
                ReturnCode::SeekNextUsingHint => {
                    let hint = filter.next_cell_hint(cell);
                    // A reversed scan follows no hint inside the row.
                    let followed = hint.filter(|hint| !read.reversed || hint.as_key().row() != row);
                    self.hint = followed.or(self.hint.take());
                }
            }
        }
        Ok(())
    }
}

/// The kept cells as `row/family:qualifier@timestamp=value`, bytes escaped.
pub(super) fn run(spec: &FilterSpec, read: &Read<'_>) -> Result<String> {
    let words: Vec<_> = read.cells.split_whitespace().collect();
    let mut stores: BTreeMap<Vec<u8>, Store> = BTreeMap::new();
    for pair in words.chunks_exact(2) {
        let stored = Stored::parse(pair[0], pair[1]);
        let family = stored.key.as_key().family().to_vec();
        stores.entry(family).or_default().cells.push(stored);
    }
    let mut filter = spec.create();
    filter.set_reversed(read.reversed);
    let mut out = CellBatch::new();
    let rows: BTreeSet<Vec<u8>> = words.chunks_exact(2).map(|pair| pair[0].into()).collect();
    let mut rows: Vec<_> = rows.into_iter().collect();
    if read.reversed {
        rows.reverse();
    }
    for row in rows {
        let offers = |store: &Store| {
            store.cells.iter().any(|stored| {
                stored.key.as_key().row() == row && !store.is_behind(stored.cell(), read.reversed)
            })
        };
        if !stores.values().any(offers) {
            continue;
        }
        filter.reset();
        if filter.filter_all_remaining() {
            break;
        }
        if filter.filter_row_key(&row)? {
            // It sees the cells of the row that is passed over.
            for store in stores.values_mut() {
                store.read_row(&row, &mut *filter, read, &mut out)?;
            }
            out.abandon_row();
            continue;
        }
        for store in stores.values_mut() {
            store.read_row(&row, &mut *filter, read, &mut out)?;
        }
        let whole = filter.has_filter_row();
        if whole {
            filter.filter_row_cells(&mut out);
        }
        if (!whole || !out.open_cells().is_empty()) && filter.filter_row() {
            out.abandon_row();
        }
        out.end_row(false);
    }
    Ok(print(&out))
}

fn print(batch: &CellBatch) -> String {
    let cell = |cell: Cell<'_>| {
        let key = cell.key;
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let (row, family, qualifier) = (text(key.row()), text(key.family()), text(key.qualifier()));
        format!(
            "{row}/{family}:{qualifier}@{}={}",
            key.timestamp(),
            text(cell.value)
        )
    };
    let cells = batch
        .rows()
        .flat_map(|row| row.cells().map(cell).collect::<Vec<_>>());
    cells.collect::<Vec<_>>().join(" ")
}

/// The hint with which a filter answers the only cell, as `row family:qualifier`.
pub(super) fn hint(spec: &FilterSpec, read: &Read<'_>) -> Result<Option<String>> {
    let (row, rest) = read.cells.split_once(' ').expect("one cell");
    let stored = Stored::parse(row, rest);
    let cell = stored.cell();
    let mut filter = spec.create();
    filter.set_reversed(read.reversed);
    filter.reset();
    filter.filter_row_key(cell.key.row())?;
    if filter.filter_cell(cell)? != ReturnCode::SeekNextUsingHint {
        return Ok(None);
    }
    Ok(filter.next_cell_hint(cell).map(|hint| {
        let key = hint.as_key();
        let [row, family, qualifier] = [key.row(), key.family(), key.qualifier()].map(Escaped);
        format!("{row} {family}:{qualifier}")
    }))
}
