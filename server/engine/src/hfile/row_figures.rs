//! Figures of a file about its rows: the largest one, its tombstones, and the longest run of tombstones,
//! which scans read in vain.
//!
//! They are collected while a file is written, so flushes and compactions notice such rows without a pass of
//! their own. In the file info, `basalt.ROW_FIGURES`, numbers big-endian: number of tombstones, u64; then the
//! largest row and the longest run, each a number (u64: bytes of its cells; tombstones in a row) and two keys
//! (the first and the last row), each a length (u16) and at most [`ROW_BYTES_MAX`] bytes.

use crate::cell::{Cell, CellType};
use crate::codec::Cursor;

/// Most bytes of a key that are kept.
const ROW_BYTES_MAX: usize = 256;

/// Shortest run of tombstones that is kept.
const RUN_MIN: u64 = 16;

/// A number and the rows that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFigure {
    /// Bytes of the row's cells, or number of tombstones.
    pub count: u64,
    /// The first row, cut to 256 bytes.
    pub first: Vec<u8>,
    /// The last row; of a single row the same.
    pub last: Vec<u8>,
}

/// Figures of a complete file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFigures {
    /// Tombstones of all kinds.
    pub tombstones: u64,
    /// The row whose cells have most bytes of keys and values.
    pub largest: RowFigure,
    /// The longest run of cells that are tombstones; count 0 if there is none worth mentioning.
    pub run: RowFigure,
}

impl RowFigures {
    /// Reads a value of the file info; `None` if it is malformed.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(value);
        let tombstones = cursor.u64_be()?;
        let mut figure = || {
            let count = cursor.u64_be()?;
            let mut row = || {
                let length = cursor
                    .u16_be()
                    .filter(|length| usize::from(*length) <= ROW_BYTES_MAX)?;
                Some(cursor.bytes(usize::from(length))?.to_vec())
            };
            Some(RowFigure {
                count,
                first: row()?,
                last: row()?,
            })
        };
        let (largest, run) = (figure()?, figure()?);
        Some(Self {
            tombstones,
            largest,
            run,
        })
    }

    /// The value of the file info.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.tombstones.to_be_bytes().to_vec();
        for figure in [&self.largest, &self.run] {
            out.extend_from_slice(&figure.count.to_be_bytes());
            for row in [&figure.first, &figure.last] {
                // At most ROW_BYTES_MAX.
                out.extend_from_slice(&(row.len() as u16).to_be_bytes());
                out.extend_from_slice(row);
            }
        }
        out
    }
}

fn cut(row: &[u8]) -> Vec<u8> {
    row[..row.len().min(ROW_BYTES_MAX)].to_vec()
}

/// Collects the figures while a file is written.
#[derive(Debug, Default)]
pub(super) struct RowCounter {
    figures: RowFigures,
    /// Bytes of the current row.
    row_bytes: u64,
    /// The tombstones since the last other cell, and the row of the first.
    run: u64,
    run_first: Vec<u8>,
}

impl RowCounter {
    /// A cell follows. `before` is the row of the one before, if the cell begins a new one.
    pub(super) fn add(&mut self, cell: Cell<'_>, before: Option<&[u8]>) {
        if let Some(before) = before {
            self.end_row(before);
        }
        self.row_bytes += (cell.key.bytes().len() + cell.value.len()) as u64;
        if cell.key.cell_type() == CellType::Put {
            if self.run > 0 {
                self.end_run(before.unwrap_or(cell.key.row()));
            }
            return;
        }
        self.figures.tombstones += 1;
        self.run += 1;
        if self.run == 1 {
            let row = cell.key.row();
            self.run_first.clear();
            self.run_first
                .extend_from_slice(&row[..row.len().min(ROW_BYTES_MAX)]);
        }
    }

    fn end_row(&mut self, row: &[u8]) {
        let bytes = std::mem::take(&mut self.row_bytes);
        if bytes > self.figures.largest.count {
            self.figures.largest = RowFigure {
                count: bytes,
                first: cut(row),
                last: cut(row),
            };
        }
    }

    /// The run ends with this row.
    fn end_run(&mut self, last: &[u8]) {
        let run = std::mem::take(&mut self.run);
        if run >= RUN_MIN && run > self.figures.run.count {
            self.figures.run = RowFigure {
                count: run,
                first: self.run_first.clone(),
                last: cut(last),
            };
        }
    }

    /// The figures of the file, which ends with this row.
    pub(super) fn finish(mut self, last: &[u8]) -> RowFigures {
        self.end_row(last);
        self.end_run(last);
        self.figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::KeyBuf;
    use crate::id::SeqId;

    /// Adds cells given as row, whether it is a put, and bytes of the value.
    fn figures(cells: &[(&str, bool, usize)]) -> RowFigures {
        let mut counter = RowCounter::default();
        let mut before: Option<&str> = None;
        let value = vec![b'v'; 1 << 20];
        for (row, is_put, bytes) in cells {
            let cell_type = if *is_put { CellType::Put } else { CellType::Delete };
            let key = KeyBuf::new(row.as_bytes(), b"f", b"q", 1, cell_type);
            let cell = Cell {
                key: key.as_key(),
                value: &value[..*bytes],
                tags: b"",
                seq: SeqId(1),
            };
            let new = before.filter(|before| before != row);
            counter.add(cell, new.map(str::as_bytes));
            before = Some(row);
        }
        counter.finish(before.unwrap_or_default().as_bytes())
    }

    /// Goal: the largest row is found wherever it is, and the longest run of tombstones over several rows,
    /// with the rows at its ends.
    #[test]
    fn the_largest_row_and_the_longest_run_are_found() {
        let large = figures(&[
            ("a", true, 10),
            ("b", true, 500),
            ("b", true, 600),
            ("c", true, 700),
        ]);
        assert_eq!(
            (&large.largest.first[..], &large.largest.last[..]),
            (&b"b"[..], &b"b"[..])
        );
        assert!((1_100..1_200).contains(&large.largest.count), "{large:?}");
        assert_eq!((large.tombstones, large.run.count), (0, 0));
        let last = figures(&[("a", true, 10), ("z", true, 999)]);
        assert_eq!(last.largest.first, b"z");

        let rows: Vec<String> = (10..60).map(|row| format!("r{row}")).collect();
        let cells: Vec<(&str, bool, usize)> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| (&row[..], index == 0 || index == 3 || index == 40, 5))
            .collect();
        let found = figures(&cells);
        assert_eq!(found.tombstones, 47);
        assert_eq!(
            (found.run.count, &found.run.first[..], &found.run.last[..]),
            (36, &b"r14"[..], &b"r49"[..])
        );
        // A run at the end of the file, in one row.
        let cells = [[("a", true, 1)].to_vec(), vec![("b", false, 0); 20]].concat();
        let found = figures(&cells);
        assert_eq!((found.run.count, &found.run.last[..]), (20, &b"b"[..]));
        assert_eq!(
            figures(&[("a", false, 0)]).run.count,
            0,
            "one tombstone is no range"
        );
    }

    #[test]
    fn figures_are_read_as_they_are_written() {
        let long = "k".repeat(1_000);
        let figures = figures(&[("a", false, 0), (&long, true, 99)]);
        assert_eq!(figures.largest.first.len(), ROW_BYTES_MAX);
        let bytes = figures.encode();
        assert_eq!(RowFigures::parse(&bytes), Some(figures));
        for end in 0..bytes.len() {
            assert_eq!(RowFigures::parse(&bytes[..end]), None);
        }
        let mut longer = bytes.clone();
        longer[16] = 0xff;
        assert_eq!(
            RowFigures::parse(&longer),
            None,
            "a key that is longer than allowed"
        );
    }
}
