//! Compares the tables of both sides.
//!
//! 1. Raw scans of both sides run side by side, region by region, and their rows are compared by hashes of
//!    all cells: keys, timestamps, kinds, values and tags.
//! 2. A row that differs is read on both sides as clients see it, in all versions: compactions and flushes
//!    drop tombstones and surplus versions at their own times, so raw rows may differ and be the same to
//!    every reader.
//! 3. While clients write ([`Mode::Live`]), a row is read here, then the peer is waited for, then it is read
//!    there and once more here. A row that did not change meanwhile must be equal there. One that changes
//!    each time is noted, and compared during the switch.

use std::cell::{Cell as Shared, RefCell};
use std::collections::BTreeMap;

use basalt_client::{Get, Row};
use bytes::Bytes;
use futures_util::stream::{StreamExt as _, TryStreamExt as _, iter};

use super::Failure;
use super::ranges::Range;
use super::rows::{HashedRow, Rows};
use super::side::Side;

/// Rows that are read at a time.
const GROUP: usize = 100;

/// Attempts to find a row unchanged.
const ATTEMPTS: u32 = 20;

/// Differences that are described.
const SHOWN: usize = 20;

/// Rows that are noted because they change all the time, at most.
const UNSETTLED_MAX: usize = 10_000;

/// Whether clients write meanwhile.
pub(super) enum Mode<'a, W> {
    /// The function waits until the other side has everything that was written before.
    Live(&'a W),
    /// Nothing is written on either side.
    Quiet,
}

/// The outcome.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) rows: u64,
    pub(super) cells: u64,
    /// Rows whose tombstones or old versions differ, and that are equal to readers.
    pub(super) purged: u64,
    /// Number of rows that differ.
    pub(super) different: u64,
    /// Descriptions of the first of them, by row.
    pub(super) shown: BTreeMap<Bytes, String>,
    /// Rows that changed all the time.
    pub(super) unsettled: Vec<Bytes>,
}

/// A comparison.
pub(super) struct Comparison<'a, W> {
    pub(super) here: &'a Side,
    pub(super) there: &'a Side,
    /// Cells with earlier timestamps are not looked at.
    pub(super) from_ms: i64,
    pub(super) mode: Mode<'a, W>,
    pub(super) parallel: usize,
}

impl<W: AsyncFn() -> Result<(), Failure>> Comparison<'_, W> {
    /// Compares all ranges, and these rows.
    pub(super) async fn run(&self, rows: Vec<Bytes>) -> Result<Compared, Failure> {
        let outcome = RefCell::new(Compared::default());
        for group in rows.chunks(GROUP) {
            self.settle(group.to_vec(), &outcome).await?;
        }
        let regions = self.here.table.region_list().await?;
        let ranges: Vec<Range> = regions
            .iter()
            .map(|region| (region.start_key.clone(), region.end_key.clone()))
            .collect();
        iter(ranges)
            .map(|range| self.range(range, &outcome))
            .buffer_unordered(self.parallel)
            .try_collect::<()>()
            .await?;
        Ok(outcome.into_inner())
    }

    async fn range(&self, range: Range, outcome: &RefCell<Compared>) -> Result<(), Failure> {
        let mut here = Rows::scan(self.here, range.clone(), self.from_ms)?;
        let mut there = Rows::scan(self.there, range, self.from_ms)?;
        let mut suspects = Vec::new();
        let (mut left, mut right) = tokio::try_join!(here.next(), there.next())?;
        loop {
            let (is_left, is_right) = match (&left, &right) {
                (None, None) => break,
                (Some(one), Some(other)) => (one.key <= other.key, one.key >= other.key),
                (one, other) => (one.is_some(), other.is_some()),
            };
            if !(is_left && is_right && left == right) {
                let row = if is_left { &left } else { &right };
                suspects.extend(row.iter().map(|row| row.key.clone()));
            }
            note_row(outcome, if is_left { left.as_ref() } else { None });
            if suspects.len() >= GROUP {
                self.settle(std::mem::take(&mut suspects), outcome).await?;
            }
            let next_left = async { if is_left { here.next().await } else { Ok(left) } };
            let next_right = async { if is_right { there.next().await } else { Ok(right) } };
            (left, right) = tokio::try_join!(next_left, next_right)?;
        }
        self.settle(suspects, outcome).await
    }

    /// Compares rows as clients see them.
    async fn settle(&self, mut rows: Vec<Bytes>, outcome: &RefCell<Compared>) -> Result<(), Failure> {
        let attempts = Shared::new(0);
        while !rows.is_empty() {
            let before = read(self.here, &rows).await?;
            if let Mode::Live(wait) = &self.mode {
                wait().await?;
            }
            let there = read(self.there, &rows).await?;
            let after = match self.mode {
                Mode::Live(_) => read(self.here, &rows).await?,
                Mode::Quiet => before.clone(),
            };
            let mut changing = Vec::new();
            for (index, row) in rows.into_iter().enumerate() {
                let mut outcome = outcome.borrow_mut();
                if there[index] == before[index] || there[index] == after[index] {
                    outcome.purged += 1;
                } else if before[index] == after[index] {
                    outcome.note_difference(row, after[index].as_ref(), there[index].as_ref());
                } else {
                    changing.push(row);
                }
            }
            attempts.set(attempts.get() + 1);
            if attempts.get() == ATTEMPTS {
                outcome.borrow_mut().note_unsettled(changing)?;
                return Ok(());
            }
            rows = changing;
        }
        Ok(())
    }
}

fn note_row(outcome: &RefCell<Compared>, row: Option<&HashedRow>) {
    if let Some(row) = row {
        let mut outcome = outcome.borrow_mut();
        outcome.rows += 1;
        outcome.cells += row.cells;
    }
}

impl Compared {
    /// Prints the outcome. Fails if rows differ.
    pub(super) fn report(&self) -> Result<(), Failure> {
        if self.different == 0 {
            println!(
                "    equal: {} rows, {} cells; {} rows were looked at again, {} change all the time and are compared by the switch",
                self.rows,
                self.cells,
                self.purged,
                self.unsettled.len()
            );
            return Ok(());
        }
        for (row, text) in &self.shown {
            println!("    differs: row {}: {text}", row.escape_ascii());
        }
        let first = self.shown.keys().next();
        Err(format!(
            "{} rows differ, the first is {}",
            self.different,
            first
                .map(|row| row.escape_ascii().to_string())
                .unwrap_or_default()
        )
        .into())
    }

    fn note_difference(&mut self, row: Bytes, here: Option<&Row>, there: Option<&Row>) {
        self.different += 1;
        let text = difference(here, there);
        self.shown.insert(row, text);
        if self.shown.len() > SHOWN {
            self.shown.pop_last();
        }
    }

    fn note_unsettled(&mut self, rows: Vec<Bytes>) -> Result<(), Failure> {
        self.unsettled.extend(rows);
        if self.unsettled.len() > UNSETTLED_MAX {
            return Err(format!(
                "more than {UNSETTLED_MAX} rows change faster than they can be compared: run again when there are fewer writes"
            )
            .into());
        }
        Ok(())
    }
}

/// Rows as clients see them, in all versions.
async fn read(side: &Side, rows: &[Bytes]) -> Result<Vec<Option<Row>>, Failure> {
    let gets = rows.iter().map(|row| Get::new(row.clone()).versions(i32::MAX));
    Ok(side.table.get_multiple(gets).await?)
}

/// Describes the first difference of two rows.
fn difference(here: Option<&Row>, there: Option<&Row>) -> String {
    let (here, there) = match (here, there) {
        (Some(row), None) => return format!("{} cells here, none there", row.cells.len()),
        (None, Some(row)) => return format!("no cells here, {} there", row.cells.len()),
        (None, None) => return "no cells on either side".to_owned(),
        (Some(here), Some(there)) => (&here.cells, &there.cells),
    };
    let at = here.iter().zip(there).position(|(one, other)| one != other);
    let at = at.unwrap_or(here.len().min(there.len()));
    let shown = |cells: &[basalt_client::Cell]| match cells.get(at) {
        None => "ends".to_owned(),
        Some(cell) => format!(
            "{}:{} at {}, {} bytes",
            cell.family.escape_ascii(),
            cell.qualifier.escape_ascii(),
            cell.timestamp,
            cell.value.len()
        ),
    };
    format!(
        "cell {} of {} here ({}) and of {} there ({})",
        at + 1,
        here.len(),
        shown(here),
        there.len(),
        shown(there)
    )
}

#[cfg(test)]
mod tests {
    use basalt_client::{Cell, CellKind};

    use super::*;

    fn row(values: &[&'static str]) -> Row {
        let cells = values.iter().map(|value| Cell {
            family: "f".into(),
            qualifier: "q".into(),
            value: Bytes::from(*value),
            timestamp: 7,
            kind: CellKind::Put,
            tags: Bytes::new(),
        });
        Row {
            key: "r".into(),
            cells: cells.collect(),
            partial: false,
        }
    }

    #[test]
    fn the_first_differing_cell_is_named() {
        let (one, two) = (row(&["a", "b"]), row(&["a", "cc"]));
        for (here, there, text) in [
            (Some(&one), None, "2 cells here, none there"),
            (None, Some(&one), "no cells here, 2 there"),
            (
                Some(&one),
                Some(&two),
                "cell 2 of 2 here (f:q at 7, 1 bytes) and of 2 there (f:q at 7, 2 bytes)",
            ),
            (
                Some(&row(&["a"])),
                Some(&one),
                "cell 2 of 1 here (ends) and of 2 there (f:q at 7, 1 bytes)",
            ),
        ] {
            assert_eq!(difference(here, there), text);
        }
    }

    #[test]
    fn the_first_rows_that_differ_are_shown() {
        let mut outcome = Compared::default();
        for number in (0..50).rev() {
            outcome.note_difference(Bytes::from(format!("{number:02}")), None, Some(&row(&["a"])));
        }
        assert_eq!((outcome.different, outcome.shown.len()), (50, SHOWN));
        assert_eq!(outcome.shown.first_key_value().unwrap().0, "00");
    }

    #[test]
    fn a_comparison_with_differences_fails_with_the_first_row() {
        let mut compared = Compared::default();
        compared.report().unwrap();
        compared.note_difference(Bytes::from_static(b"r\xff"), None, Some(&row(&["a"])));
        let error = compared.report().unwrap_err().to_string();
        assert_eq!(error, "1 rows differ, the first is r\\xff");
    }
}
