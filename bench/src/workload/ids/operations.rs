//! Writing the rows of one kind of id: operation `index` is the batch of that number.

use std::time::Instant;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::generators::{Clock, IdKind};
use super::{Arguments, FAMILY};
use crate::error::Result;
use crate::load::retry::{Failures, retried};
use crate::load::{Operations, Outcome};
use crate::region_load::RegionMap;
use crate::session::{Column, RowCells, Session};
use crate::target::TargetOptions;

/// What to write where.
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
    column: Column,
    /// The value of every row, in which nothing repeats: only keys differ between ids.
    value: Bytes,
}

/// One task.
#[derive(Debug)]
pub(super) struct Worker {
    session: Session,
    /// Rows that were written, by region.
    pub(super) region_rows: Vec<u64>,
}

impl Writes {
    pub(super) fn new(kind: IdKind, arguments: &Arguments, table: &str, regions: RegionMap) -> Writes {
        let mut value = vec![0; arguments.value_bytes as usize];
        SmallRng::seed_from_u64(arguments.load.seed).fill_bytes(&mut value);
        Writes {
            kind,
            clock: arguments.clock,
            seed: arguments.load.seed,
            rows: arguments.rows,
            batch: arguments.batch,
            target: arguments.load.target.clone(),
            table: table.to_owned(),
            regions,
            column: Column {
                family: Bytes::from_static(FAMILY.as_bytes()),
                qualifier: Bytes::from_static(b"v"),
            },
            value: value.into(),
        }
    }

    /// The row key of a row.
    pub(super) fn key(&self, row: u64) -> Result<Vec<u8>> {
        self.kind.row_key(self.clock, self.seed, row)
    }

    /// The share of rows whose key is higher than that of the row made before: 1 if a scan returns the order of making.
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
                    cells: vec![(self.column.clone(), self.value.clone())],
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
