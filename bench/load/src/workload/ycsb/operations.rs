//! The operations of both phases.

use std::time::Instant;

use basalt_client::Row;
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::integrity;
use super::keys::{Inserted, row_key};
use super::properties::Properties;
use crate::data::Data;
use crate::error::Result;
use crate::load::choose::Chooser;
use crate::load::options::LoadOptions;
use crate::load::retry::{Failures, retried};
use crate::load::task::Task;
use crate::load::{Operations, Outcome};
use crate::session::{Column, RowCells, RowScan, Session};
use crate::target::TargetOptions;
use crate::values::Values;

/// Most rows fetched by one call of a scan.
const ROWS_PER_FETCH: u32 = 100;

/// Shared by both phases: records and how to write them.
#[derive(Debug)]
struct Records {
    properties: Properties,
    target: TargetOptions,
    columns: Vec<Column>,
    values: Values,
    seed: u64,
}

/// One task.
#[derive(Debug)]
pub(super) struct Worker {
    task: Task,
    chooser: Chooser,
}

impl Records {
    fn new(properties: &Properties, load: &LoadOptions, data: &Data) -> Records {
        let column = |field: u32| Column {
            family: Bytes::from(properties.column_family.clone()),
            qualifier: Bytes::from(format!("field{field}")),
        };
        Records {
            columns: (0..properties.field_count).map(column).collect(),
            target: load.target.clone(),
            properties: properties.clone(),
            values: data.values(load.seed, properties.field_length as usize),
            seed: load.seed,
        }
    }

    fn worker(&self, number: u64) -> Result<Worker> {
        let properties = &self.properties;
        Ok(Worker {
            task: Task::new(&self.target, &properties.table, false, self.seed, number)?,
            chooser: Chooser::new(properties.distribution, properties.record_count, properties.shape),
        })
    }

    /// Writes all fields of a record, or one of them.
    async fn write(
        &self,
        session: &Session,
        random: &mut SmallRng,
        record: u64,
        all: bool,
        failures: &mut Failures,
    ) -> Option<u64> {
        let one = random.random_range(0..self.columns.len());
        let columns = if all {
            &self.columns[..]
        } else {
            &self.columns[one..=one]
        };
        let length = self.properties.field_length as usize;
        let key = row_key(&self.properties, record);
        let cells = columns.iter().map(|column| {
            let value = if self.properties.data_integrity {
                integrity::value(&key, &column.qualifier, length)
            } else {
                self.values.next(random, length)
            };
            (column.clone(), value)
        });
        let row = [RowCells {
            cells: cells.collect(),
            key,
        }];
        retried(failures, || session.put(&row)).await?;
        Some(1)
    }
}

/// The load phase: operation `index` inserts record `insertstart + index`.
#[derive(Debug)]
pub(super) struct Load {
    records: Records,
}

impl Load {
    pub(super) fn new(properties: &Properties, load: &LoadOptions, data: &Data) -> Load {
        Load {
            records: Records::new(properties, load, data),
        }
    }
}

impl Operations for Load {
    type Worker = Worker;

    fn kinds(&self) -> Vec<String> {
        vec!["insert".to_owned()]
    }

    fn worker(&self, number: u64, _started: Instant) -> Result<Worker> {
        self.records.worker(number)
    }

    async fn operate(&self, worker: &mut Worker, index: u64) -> Result<Option<Outcome>> {
        let mut failures = Failures::default();
        let record = self.records.properties.insert_start + index;
        let random = &mut worker.task.random;
        let rows = self
            .records
            .write(&worker.task.session, random, record, true, &mut failures)
            .await;
        Ok(Some(Outcome::of(0, rows, failures)))
    }
}

/// The run phase.
#[derive(Debug)]
pub(super) struct Mix {
    records: Records,
    /// Counted from `insertstart`.
    inserted: Inserted,
}

/// The kinds of operations, in the order of the properties' proportions.
const KINDS: [&str; 5] = ["read", "update", "insert", "scan", "read-modify-write"];
const READ: usize = 0;
const UPDATE: usize = 1;
const INSERT: usize = 2;
const SCAN: usize = 3;

impl Mix {
    pub(super) fn new(properties: &Properties, load: &LoadOptions, data: &Data) -> Mix {
        Mix {
            inserted: Inserted::new(properties.record_count),
            records: Records::new(properties, load, data),
        }
    }

    /// The kind for a random number from 0 to 1.
    pub(super) fn kind(&self, random: f64) -> usize {
        let shares = self.records.properties.proportions();
        let mut left = random * shares.iter().sum::<f64>();
        for (kind, share) in shares.iter().enumerate() {
            if left < *share {
                return kind;
            }
            left -= share;
        }
        // Rounding has left nothing over: the last kind that has a share.
        shares.iter().rposition(|share| *share > 0.0).unwrap_or(READ)
    }

    fn columns_to_read(&self, random: &mut SmallRng) -> Vec<Column> {
        if self.records.properties.read_all_fields {
            return Vec::new();
        }
        let field = random.random_range(0..self.records.columns.len());
        vec![self.records.columns[field].clone()]
    }

    async fn read(&self, worker: &mut Worker, record: u64, failures: &mut Failures) -> Option<u64> {
        let key = [row_key(&self.records.properties, record)];
        let columns = self.columns_to_read(&mut worker.task.random);
        let found = retried(failures, || worker.task.session.get(&key, &columns)).await?;
        self.verified(&key[0], &found, failures)
    }

    /// The number of rows that a get found; `None` if they must equal the written ones and do not.
    pub(super) fn verified(&self, key: &[u8], found: &[Row], failures: &mut Failures) -> Option<u64> {
        let properties = &self.records.properties;
        if properties.data_integrity {
            let difference = integrity::difference(key, found, properties.field_length as usize);
            if let Some(difference) = difference {
                failures.add(Failures {
                    calls: 1,
                    first: Some(difference),
                });
                return None;
            }
        }
        Some(found.len() as u64)
    }

    async fn scan(&self, worker: &mut Worker, record: u64, failures: &mut Failures) -> Option<u64> {
        let properties = &self.records.properties;
        let length = worker
            .task
            .random
            .random_range(properties.min_scan_length..=properties.max_scan_length);
        let scan = RowScan {
            start: row_key(properties, record),
            stop: Bytes::new(),
            limit: Some(length),
            rows_per_fetch: i32::try_from(length.min(ROWS_PER_FETCH)).unwrap_or(1),
            columns: self.columns_to_read(&mut worker.task.random),
            filter: None,
            reversed: false,
        };
        let session = &worker.task.session;
        retried(failures, || async { session.scan(&scan)?.count().await }).await
    }
}

impl Operations for Mix {
    type Worker = Worker;

    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn worker(&self, number: u64, _started: Instant) -> Result<Worker> {
        self.records.worker(number)
    }

    async fn operate(&self, worker: &mut Worker, index: u64) -> Result<Option<Outcome>> {
        let mut failures = Failures::default();
        let kind = self.kind(worker.task.random.random());
        let records = &self.records;
        let properties = &records.properties;
        let all = properties.write_all_fields;
        let rows = if kind == INSERT {
            let record = self.inserted.take();
            let number = properties.insert_start + record;
            let written = records
                .write(
                    &worker.task.session,
                    &mut worker.task.random,
                    number,
                    true,
                    &mut failures,
                )
                .await;
            self.inserted.settle(record);
            written
        } else {
            let keys = self.inserted.end();
            let record = properties.insert_start + worker.chooser.next(index, keys, &mut worker.task.random);
            match kind {
                READ => self.read(worker, record, &mut failures).await,
                SCAN => self.scan(worker, record, &mut failures).await,
                UPDATE => {
                    records
                        .write(
                            &worker.task.session,
                            &mut worker.task.random,
                            record,
                            all,
                            &mut failures,
                        )
                        .await
                }
                _ => match self.read(worker, record, &mut failures).await {
                    Some(found) => records
                        .write(
                            &worker.task.session,
                            &mut worker.task.random,
                            record,
                            all,
                            &mut failures,
                        )
                        .await
                        .map(|written| found + written),
                    None => None,
                },
            }
        };
        Ok(Some(Outcome::of(kind, rows, failures)))
    }
}
