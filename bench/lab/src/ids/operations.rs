//! Writing the rows of one kind of id: operation `index` is the batch of that number.

use std::sync::Arc;
use std::time::Instant;

use basalt_load::error::Result;
use basalt_load::flights::Flights;
use basalt_load::load::retry::{Failures, retried};
use basalt_load::load::{Operations, Outcome};
use basalt_load::session::{Column, RowCells, Session};
use basalt_load::target::TargetOptions;
use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::generators::{Clock, IdKind};
use super::{Arguments, FAMILY};
use crate::region_load::RegionMap;

/// Rows to write, and their table.
#[derive(Debug)]
pub(super) struct Writes {
    kind: IdKind,
    clock: Clock,
    seed: u64,
    rows: u64,
    batch: u64,
    target: TargetOptions,
    table: String,
    pub(super) regions: RegionMap,
    contents: Contents,
}

/// The cells of the rows, the same for each kind of id. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum Contents {
    /// One value, in which nothing repeats: only keys differ between rows.
    Same(Bytes),
    /// Row `n` is flight `n`.
    Flights(Arc<Flights>),
}

impl Contents {
    pub(super) fn new(arguments: &Arguments, flights: Option<Flights>) -> Contents {
        if let Some(flights) = flights {
            return Contents::Flights(Arc::new(flights));
        }
        let mut value = vec![0; arguments.value_bytes as usize];
        SmallRng::seed_from_u64(arguments.load.seed).fill_bytes(&mut value);
        Contents::Same(value.into())
    }

    fn cells(&self, row: u64) -> Vec<(Column, Bytes)> {
        let cell = |(qualifier, value): (&'static str, Bytes)| {
            let qualifier = Bytes::from_static(qualifier.as_bytes());
            (Column::new(FAMILY, qualifier), value)
        };
        match self {
            Contents::Same(value) => vec![cell(("v", value.clone()))],
            Contents::Flights(flights) => flights.cells(row).into_iter().map(cell).collect(),
        }
    }
}

/// One task.
#[derive(Debug)]
pub(super) struct Worker {
    session: Session,
    /// Rows that were written, by region.
    pub(super) region_rows: Vec<u64>,
}

impl Writes {
    pub(super) fn new(
        kind: IdKind,
        arguments: &Arguments,
        table: &str,
        regions: RegionMap,
        contents: Contents,
    ) -> Writes {
        Writes {
            kind,
            clock: arguments.clock,
            seed: arguments.load.seed,
            rows: arguments.rows,
            batch: arguments.batch,
            target: arguments.load.target.clone(),
            table: table.to_owned(),
            regions,
            contents,
        }
    }

    /// The row key of a row.
    pub(super) fn key(&self, row: u64) -> Result<Vec<u8>> {
        self.kind.row_key(self.clock, self.seed, row)
    }

    /// The share of rows whose key is higher than that of the row made before: 1 if a scan returns the order
    /// of making.
    pub(super) fn ascending_share(&self, rows: u64) -> Result<f64> {
        let mut ascending = 0u64;
        let mut before = self.key(0)?;
        for row in 1..rows {
            let key = self.key(row)?;
            ascending += u64::from(key > before);
            before = key;
        }
        Ok(if rows < 2 {
            1.0
        } else {
            ascending as f64 / (rows - 1) as f64
        })
    }
}

impl Operations for Writes {
    type Worker = Worker;

    fn kinds(&self) -> Vec<String> {
        vec!["batch".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<Worker> {
        Ok(Worker {
            session: Session::new(&self.target, &self.table, false)?,
            region_rows: vec![0; self.regions.starts().len()],
        })
    }

    async fn operate(&self, worker: &mut Worker, index: u64) -> Result<Option<Outcome>> {
        let first = index * self.batch;
        let end = (first + self.batch).min(self.rows);
        let puts = (first..end)
            .map(|row| {
                Ok(RowCells {
                    key: Bytes::from(self.key(row)?),
                    cells: self.contents.cells(row),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let mut failures = Failures::default();
        let done = retried(&mut failures, || worker.session.put(&puts))
            .await
            .is_some();
        if done {
            for put in &puts {
                worker.region_rows[self.regions.index_of(&put.key)] += 1;
            }
        }
        Ok(Some(Outcome {
            kind: 0,
            rows: end - first,
            done,
            failures,
        }))
    }
}

#[cfg(test)]
mod tests {
    use basalt_load::fixtures::small_file;
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn a_row_has_one_value_or_the_columns_of_its_flight() {
        let arguments = CommandLine::try_parse_from(["ids", "--value-bytes", "7"]);
        let arguments = arguments.unwrap().arguments;
        let generated = Contents::new(&arguments, None);
        assert_eq!(generated.cells(0), generated.cells(1));
        assert_eq!((generated.cells(0).len(), generated.cells(0)[0].1.len()), (1, 7));
        let flights = Flights::read(small_file().path()).unwrap();
        let flights = Contents::new(&arguments, Some(flights));
        let names = |row| {
            let cells = flights.cells(row).into_iter();
            cells
                .map(|(column, _)| String::from_utf8_lossy(&column.qualifier).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["date", "delay", "distance", "origin", "destination"]);
        assert_eq!(
            names(1),
            ["date", "distance", "origin", "destination"],
            "no delay is known"
        );
        assert_eq!(flights.cells(2)[3], (Column::new(FAMILY, "origin"), "LAS".into()));
    }

    #[test]
    fn the_size_of_a_value_is_not_for_flights() {
        let words = ["ids", "--input", "f.parquet", "--value-bytes", "7"];
        assert!(CommandLine::try_parse_from(words).is_err());
    }
}
