//! The operations of a command.
//!
//! Operation `index` belongs to client `index % nclients` and is the `index / nclients`th of it, so the
//! clients' sequences advance side by side, whichever task carries an operation out. Only `scan` binds a task
//! to a client: the scanner is the task's.

use std::time::Instant;

use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::Arguments;
use super::commands::Command;
use crate::data::Data;
use crate::error::Result;
use crate::load::retry::{Failures, retried};
use crate::load::task::Task;
use crate::load::{Operations, Outcome};
use crate::session::{Column, RowCells, RowScan, Scanner, Session};
use crate::target::TargetOptions;
use crate::values::Values;

/// Digits of a row key.
const ROW_DIGITS: usize = 26;
/// Most rows of a scan of `randomSeekScan`.
const SEEK_SCAN_ROWS: u32 = 120;
/// The end of a scan of `randomSeekScan`: the filter of PerformanceEvaluation.
const SEEK_SCAN_FILTER: &str = "WHILE (PageFilter(120))";
/// Rows for each operation of `randomSeekScan`.
const ROWS_PER_SEEK_SCAN: u64 = 100;

/// The row key of a number.
pub(super) fn row_key(number: u64) -> Bytes {
    Bytes::from(format!("{number:0ROW_DIGITS$}"))
}

/// The name of a family by its place.
pub(super) fn family_name(place: u32) -> String {
    format!("info{place}")
}

/// A command with its options.
#[derive(Debug)]
pub(super) struct Evaluation {
    command: Command,
    target: TargetOptions,
    table: String,
    skip_wal: bool,
    clients: u64,
    client_rows: u64,
    sample_rate: f64,
    /// Columns to write, and to read if columns are named.
    columns: Vec<Column>,
    named: Vec<Column>,
    /// Rows of a get or put.
    group: u64,
    caching: i32,
    value_random: bool,
    value_size: usize,
    values: Values,
    seed: u64,
}

/// One task.
#[derive(Debug)]
pub(super) struct Worker {
    task: Task,
    client: u64,
    scan: ScanState,
}

/// The scan of one client.
#[derive(Debug)]
enum ScanState {
    NotBegun,
    Open(Scanner),
    Ended,
}

impl Evaluation {
    pub(super) fn new(command: Command, arguments: &Arguments, data: &Data) -> Evaluation {
        let columns = (0..arguments.families).flat_map(|family| {
            (0..arguments.columns).map(move |column| Column {
                family: Bytes::from(family_name(family)),
                qualifier: Bytes::from(column.to_string()),
            })
        });
        let columns: Vec<Column> = columns.collect();
        let group = match command {
            Command::SequentialWrite | Command::RandomWrite => arguments.multi_put,
            Command::SequentialRead | Command::RandomRead => arguments.multi_get,
            _ => 1,
        };
        let value_size = arguments.value_size as usize;
        Evaluation {
            command,
            target: arguments.load.target.clone(),
            table: arguments.table.clone(),
            skip_wal: !arguments.write_to_wal,
            clients: arguments.load.threads,
            client_rows: arguments.client_rows(),
            sample_rate: arguments.sample_rate,
            named: if arguments.add_columns {
                columns.clone()
            } else {
                Vec::new()
            },
            columns,
            group: u64::from(group).max(1),
            caching: arguments.caching,
            value_random: arguments.value_random,
            value_size,
            values: data.values(arguments.load.seed, value_size),
            seed: arguments.load.seed,
        }
    }

    pub(super) fn rows_per_operation(&self) -> u64 {
        match self.command {
            Command::RandomSeekScan => u64::from(SEEK_SCAN_ROWS),
            command => command.range_rows().unwrap_or(self.group),
        }
    }

    /// Operations of all clients; `None` if each task knows its own end.
    pub(super) fn operations(&self) -> Option<u64> {
        let rows = self.sampled_rows();
        let of_client = match self.command {
            Command::Scan => return None,
            Command::RandomSeekScan => rows.div_ceil(ROWS_PER_SEEK_SCAN),
            _ => rows.div_ceil(self.group),
        };
        Some(of_client * self.clients)
    }

    /// Rows of each client to operate on.
    fn sampled_rows(&self) -> u64 {
        (self.client_rows as f64 * self.sample_rate).ceil() as u64
    }

    fn total_rows(&self) -> u64 {
        self.client_rows * self.clients
    }

    /// The rows of a sequential operation.
    pub(super) fn sequential(&self, index: u64) -> impl Iterator<Item = u64> + use<> {
        let (client, place) = (index % self.clients, index / self.clients);
        let first = place * self.group;
        let end = (first + self.group).min(self.client_rows);
        let base = client * self.client_rows;
        (first..end).map(move |row| base + row)
    }

    /// The rows of a random operation.
    fn random(&self, random: &mut SmallRng) -> Vec<u64> {
        (0..self.group)
            .map(|_| random.random_range(0..self.total_rows()))
            .collect()
    }

    fn value_bytes(&self, random: &mut SmallRng) -> usize {
        if self.value_random {
            random.random_range(0..=self.value_size)
        } else {
            self.value_size
        }
    }

    pub(super) fn value(&self, random: &mut SmallRng) -> Bytes {
        let bytes = self.value_bytes(random);
        self.values.next(random, bytes)
    }

    async fn write(&self, worker: &mut Worker, rows: Vec<u64>, failures: &mut Failures) -> Option<u64> {
        let random = &mut worker.task.random;
        let puts: Vec<RowCells> = rows
            .into_iter()
            .map(|row| RowCells {
                key: row_key(row),
                cells: self
                    .columns
                    .iter()
                    .map(|column| (column.clone(), self.value(random)))
                    .collect(),
            })
            .collect();
        retried(failures, || worker.task.session.put(&puts)).await?;
        Some(puts.len() as u64)
    }

    async fn read(&self, worker: &Worker, rows: Vec<u64>, failures: &mut Failures) -> Option<u64> {
        let keys: Vec<Bytes> = rows.into_iter().map(row_key).collect();
        let found = retried(failures, || worker.task.session.get(&keys, &self.named)).await?;
        Some(found.len() as u64)
    }

    /// The filter of `filterScan`: the first column of the first family has a value of random letters. No row
    /// has it, but by chance if values are short.
    fn value_filter(&self, random: &mut SmallRng) -> String {
        let value: String = (0..self.value_bytes(random))
            .map(|_| char::from(random.random_range(b'A'..=b'Z')))
            .collect();
        format!(
            "SingleColumnValueFilter('{}', '0', =, 'binary:{value}')",
            family_name(0)
        )
    }

    /// The scan of `filterScan`: over the whole table, of the columns of the first family, or all
    /// if columns are not named.
    pub(super) fn filter_scan(&self, random: &mut SmallRng) -> RowScan {
        let first = family_name(0);
        let columns = self.named.iter();
        let columns = columns.filter(|column| column.family == first.as_bytes());
        RowScan {
            rows_per_fetch: self.caching,
            columns: columns.cloned().collect(),
            filter: Some(self.value_filter(random)),
            ..RowScan::default()
        }
    }

    /// Rows of a new scan.
    async fn scan_rows(&self, session: &Session, scan: &RowScan, failures: &mut Failures) -> Option<u64> {
        retried(failures, || async { session.scan(scan)?.count().await }).await
    }

    /// The next row of the client's scan: `None` behind its end or an error.
    async fn scan_on(&self, worker: &mut Worker, failures: &mut Failures) -> Option<Outcome> {
        let mut scanner = match std::mem::replace(&mut worker.scan, ScanState::Ended) {
            ScanState::Open(scanner) => Ok(scanner),
            ScanState::NotBegun => {
                let start = worker.client * self.client_rows;
                worker.task.session.scan(&RowScan {
                    start: row_key(start),
                    stop: row_key(start + self.sampled_rows()),
                    rows_per_fetch: self.caching,
                    columns: self.named.clone(),
                    limit: None,
                    filter: None,
                    reversed: false,
                })
            }
            ScanState::Ended => return None,
        };
        let row = match &mut scanner {
            Ok(scanner) => scanner.next().await,
            Err(_) => Ok(None),
        };
        match (scanner, row) {
            (Ok(scanner), Ok(Some(_))) => {
                worker.scan = ScanState::Open(scanner);
                Some(Outcome {
                    rows: 1,
                    done: true,
                    ..Outcome::default()
                })
            }
            (Ok(_), Ok(None)) => None,
            (Err(error), _) | (_, Err(error)) => {
                failures.count(&error);
                Some(Outcome::default())
            }
        }
    }

    /// PerformanceEvaluation's operation on the rows that all clients share; 1 if it had an effect.
    async fn compare(&self, session: &Session, row: u64, failures: &mut Failures) -> Option<u64> {
        let key = row_key(row);
        let column = Column {
            family: Bytes::from(family_name(0)),
            qualifier: Bytes::from_static(self.command.name().as_bytes()),
        };
        let one = || vec![(column.clone(), key.clone())];
        let put = [RowCells {
            key: key.clone(),
            cells: one(),
        }];
        match self.command {
            Command::Increment => {
                retried(failures, || session.increment(&key, &column, 1)).await?;
                return Some(1);
            }
            Command::Append => {
                retried(failures, || session.append(&key, &column, &key)).await?;
                return Some(1);
            }
            _ => {}
        }
        retried(failures, || session.put(&put)).await?;
        let passed = match self.command {
            Command::CheckAndDelete => {
                retried(failures, || session.check_and_delete(&key, &column, &key)).await?
            }
            Command::CheckAndMutate => {
                retried(failures, || session.check_and_mutate(&key, &column, &key, &key)).await?
            }
            _ => retried(failures, || session.check_and_put(&key, &column, &key, &key)).await?,
        };
        Some(u64::from(passed))
    }
}

impl Operations for Evaluation {
    type Worker = Worker;

    fn kinds(&self) -> Vec<String> {
        vec![self.command.name().to_owned()]
    }

    fn worker(&self, number: u64, _started: Instant) -> Result<Worker> {
        Ok(Worker {
            task: Task::new(&self.target, &self.table, self.skip_wal, self.seed, number)?,
            client: number,
            scan: ScanState::NotBegun,
        })
    }

    async fn operate(&self, worker: &mut Worker, index: u64) -> Result<Option<Outcome>> {
        let mut failures = Failures::default();
        let rows = match self.command {
            Command::SequentialWrite => {
                let rows = self.sequential(index).collect();
                self.write(worker, rows, &mut failures).await
            }
            Command::RandomWrite => {
                let rows = self.random(&mut worker.task.random);
                self.write(worker, rows, &mut failures).await
            }
            Command::SequentialRead => {
                let rows = self.sequential(index).collect();
                self.read(worker, rows, &mut failures).await
            }
            Command::RandomRead => {
                let rows = self.random(&mut worker.task.random);
                self.read(worker, rows, &mut failures).await
            }
            Command::Scan => {
                let outcome = self.scan_on(worker, &mut failures).await;
                return Ok(outcome.map(|outcome| Outcome { failures, ..outcome }));
            }
            Command::ScanRange10
            | Command::ScanRange100
            | Command::ScanRange1000
            | Command::ScanRange10000 => {
                let start = worker.task.random.random_range(0..self.total_rows());
                let scan = RowScan {
                    start: row_key(start),
                    stop: row_key(start + self.command.range_rows().unwrap_or(1)),
                    rows_per_fetch: self.caching,
                    columns: self.named.clone(),
                    ..RowScan::default()
                };
                self.scan_rows(&worker.task.session, &scan, &mut failures).await
            }
            Command::RandomSeekScan => {
                let scan = RowScan {
                    start: row_key(worker.task.random.random_range(0..self.total_rows())),
                    limit: Some(SEEK_SCAN_ROWS),
                    rows_per_fetch: self.caching,
                    columns: self.named.clone(),
                    filter: Some(SEEK_SCAN_FILTER.to_owned()),
                    ..RowScan::default()
                };
                self.scan_rows(&worker.task.session, &scan, &mut failures).await
            }
            Command::FilterScan => {
                let scan = self.filter_scan(&mut worker.task.random);
                self.scan_rows(&worker.task.session, &scan, &mut failures).await
            }
            Command::SequentialDelete | Command::RandomDelete => {
                let row = match self.command {
                    Command::RandomDelete => Some(worker.task.random.random_range(0..self.total_rows())),
                    _ => self.sequential(index).next(),
                };
                match row.map(row_key) {
                    Some(key) => retried(&mut failures, || worker.task.session.delete(&key))
                        .await
                        .map(|()| 1),
                    None => Some(0),
                }
            }
            Command::Increment
            | Command::Append
            | Command::CheckAndPut
            | Command::CheckAndDelete
            | Command::CheckAndMutate => {
                let row = index / self.clients;
                self.compare(&worker.task.session, row, &mut failures).await
            }
        };
        Ok(Some(Outcome::of(0, rows, failures)))
    }
}
