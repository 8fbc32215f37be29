//! Rows with even numbers as keys, and the questions about them.

use basalt_client::Row;
use basalt_load::session::{Answer, Column, RowCells, RowScan};
use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{FAMILY, QUALIFIER, Run};
use crate::{Caller, Question};

/// Rows fetched by one call of a scan.
const ROWS_PER_FETCH: i32 = 1_000;

/// The key of row `number`: twice the number, as twelve digits. The odd keys are of no row.
pub(super) fn key(number: u64) -> Bytes {
    Bytes::from(format!("{:012}", number * 2))
}

fn missing_key(number: u64) -> Bytes {
    Bytes::from(format!("{:012}", number * 2 + 1))
}

/// A question to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// A row that is there, all columns or those named.
    Row,
    /// A row that is not there.
    MissingRow,
    /// A range of this many rows in the order of keys.
    Range(u32),
    /// The whole table.
    All,
}

/// Questions about a table's rows, chosen at random: the same for every table of that many rows.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    ask: Ask,
    rows: u64,
    columns: Vec<Column>,
    seed: u64,
}

impl Reads {
    /// Names the columns to read.
    pub(super) fn columns(mut self, columns: Vec<Column>) -> Reads {
        self.columns = columns;
        self
    }
}

impl Question for Reads {
    async fn ask(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        let mut random = SmallRng::seed_from_u64(self.seed ^ index.rotate_left(32));
        let number = random.random_range(0..self.rows);
        let found = match self.ask {
            Ask::Row => caller.get(0, &[key(number)], &self.columns).await?,
            Ask::MissingRow => caller.get(0, &[missing_key(number)], &self.columns).await?,
            Ask::Range(rows) => {
                let first = number.min(self.rows.saturating_sub(u64::from(rows)));
                let scan = RowScan {
                    start: key(first),
                    stop: key(first + u64::from(rows)),
                    rows_per_fetch: ROWS_PER_FETCH,
                    columns: self.columns.clone(),
                    ..RowScan::default()
                };
                caller.scan(0, &scan).await?
            }
            Ask::All => {
                let scan = RowScan {
                    rows_per_fetch: ROWS_PER_FETCH,
                    columns: self.columns.clone(),
                    ..RowScan::default()
                };
                caller.scan(0, &scan).await?
            }
        };
        Ok(found.into_iter().flat_map(key_and_values).collect())
    }
}

fn key_and_values(row: Row) -> impl Iterator<Item = Bytes> {
    std::iter::once(row.key).chain(row.cells.into_iter().map(|cell| cell.value))
}

impl Run {
    /// Questions about the first `rows` rows.
    pub(super) fn reads(&self, ask: Ask, rows: u64) -> Reads {
        Reads {
            ask,
            rows,
            columns: Vec::new(),
            seed: self.arguments.lab.load.seed,
        }
    }

    /// A row with one column of random bytes or of flights, by its number: the same for every table.
    pub(super) fn plain_row(&self) -> impl Fn(u64) -> RowCells + Clone + Send + Sync + 'static {
        let bytes = self.arguments.value_bytes as usize;
        let seed = self.arguments.lab.load.seed;
        let values = self.lab.data.values(seed, bytes);
        move |number| {
            let mut random = SmallRng::seed_from_u64(seed ^ number);
            RowCells {
                key: key(number),
                cells: vec![(
                    Column::new(FAMILY, Bytes::from_static(QUALIFIER.as_bytes())),
                    values.next(&mut random, bytes),
                )],
            }
        }
    }
}
