//! Writes the rows of one design and measures it.
//!
//! An operation is a batch of consecutive rows in one call, so the server sees the order of time as close as
//! concurrency allows. A batch that is given up is lost and counted.

use std::sync::Arc;
use std::time::Instant;

use basalt_load::error::Result;
use basalt_load::load::retry::{Failures, retried};
use basalt_load::load::{self, Measured, Operations, Outcome};
use basalt_load::session::{Column, RowCells, Session};
use bytes::Bytes;

use super::FAMILY;
use super::numbering::{Counter, Numbering, Numbers};
use crate::designs::Design;
use crate::region_load::RegionMap;
use crate::rows::Rows;

/// Rows to write, and their table.
#[derive(Clone, Debug)]
pub(super) struct Ingest {
    pub(super) session: Session,
    pub(super) design: Arc<Design>,
    pub(super) rows: Arc<Rows>,
    pub(super) row_count: u64,
    pub(super) regions: Arc<RegionMap>,
    pub(super) batch: u64,
    /// `None`: each row has its place as number.
    pub(super) counter: Option<Counter>,
}

/// Result of an ingest.
#[derive(Debug)]
pub(super) struct Ingested {
    pub(super) measured: Measured,
    /// All rows with a smaller index are acknowledged.
    pub(super) rows_in_order: u64,
    pub(super) rows_lost: u64,
    /// Acknowledged rows by region, by the boundaries at the start.
    pub(super) region_rows: Vec<u64>,
    pub(super) numbering: Numbering,
    /// Blocks of sequence numbers taken.
    pub(super) increments: u64,
}

/// One task.
#[derive(Debug)]
pub(super) struct Worker {
    numbers: Numbers,
    region_rows: Vec<u64>,
    /// Indices of batches that were given up.
    lost_batches: Vec<u64>,
    rows_lost: u64,
}

/// Writes the rows.
pub(super) async fn run(plan: load::Plan, ingest: &Arc<Ingest>) -> Result<Ingested> {
    let (measured, workers) = load::run(plan, ingest).await?;
    let mut region_rows = vec![0; ingest.regions.starts().len()];
    let (mut lost_batches, mut numbers) = (Vec::new(), Vec::new());
    let (mut rows_lost, mut increments) = (0, 0);
    for worker in workers {
        for (sum, rows) in region_rows.iter_mut().zip(worker.region_rows) {
            *sum += rows;
        }
        lost_batches.extend(worker.lost_batches);
        rows_lost += worker.rows_lost;
        increments += worker.numbers.increments;
        numbers.push(worker.numbers);
    }
    let first_lost = lost_batches.iter().min().map(|index| index * ingest.batch);
    Ok(Ingested {
        rows_in_order: first_lost.unwrap_or_else(|| measured.rows()),
        rows_lost,
        region_rows,
        increments,
        numbering: match ingest.counter {
            Some(_) => Numbering::of(numbers),
            None => Numbering::Place,
        },
        measured,
    })
}

impl Operations for Ingest {
    type Worker = Worker;

    fn kinds(&self) -> Vec<String> {
        vec!["batch".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<Worker> {
        Ok(Worker {
            numbers: Numbers::default(),
            region_rows: vec![0; self.regions.starts().len()],
            lost_batches: Vec::new(),
            rows_lost: 0,
        })
    }

    async fn operate(&self, worker: &mut Worker, index: u64) -> Result<Option<Outcome>> {
        let first = index.checked_mul(self.batch);
        let Some(first) = first.filter(|first| *first < self.row_count) else {
            return Ok(None);
        };
        let end = first.saturating_add(self.batch).min(self.row_count);
        let mut failures = Failures::default();
        let (mut regions, mut rows) = (Vec::new(), Vec::new());
        let mut numbered = true;
        for row in first..end {
            let mut key = self.rows.key(row);
            if let Some(counter) = &self.counter {
                let Some(number) = worker.numbers.take(counter, row, &mut failures).await? else {
                    numbered = false;
                    break;
                };
                key.sequence = number;
            }
            let key = self.design.encode(key)?;
            regions.push(self.regions.index_of(&key));
            let cells = self.rows.cells(row).into_iter();
            rows.push(RowCells {
                key: Bytes::from(key),
                cells: cells
                    .map(|(qualifier, value)| {
                        let qualifier = Bytes::from_static(qualifier.as_bytes());
                        (Column::new(FAMILY, qualifier), value)
                    })
                    .collect(),
            });
        }
        // Writing the same cells twice is the same as once.
        let write = || self.session.put(&rows);
        let done = numbered && retried(&mut failures, write).await.is_some();
        if done {
            for region in regions {
                worker.region_rows[region] += 1;
            }
        } else {
            worker.lost_batches.push(index);
            worker.rows_lost += end - first;
        }
        Ok(Some(Outcome {
            kind: 0,
            rows: end - first,
            done,
            failures,
        }))
    }
}
