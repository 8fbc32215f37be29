//! Filling a table: operation `index` is the batch of rows of that number.

use std::time::Instant;

use basalt_load::error::Result;
use basalt_load::load::retry::{Failures, retried};
use basalt_load::load::{Operations, Outcome};
use basalt_load::session::{RowCells, Session};
use basalt_load::target::TargetOptions;

/// Rows to write and their tables.
pub(super) struct Filling<F> {
    pub(super) target: TargetOptions,
    pub(super) table: String,
    pub(super) skip_wal: bool,
    pub(super) rows: u64,
    pub(super) batch: u64,
    /// A row by its number.
    pub(super) row: F,
}

/// One task.
#[derive(Debug)]
pub(super) struct Worker {
    session: Session,
    /// Bytes of written keys and cells.
    pub(super) bytes: u64,
}

/// The cost of filling a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    pub(crate) calls: f64,
    pub(crate) bytes: f64,
    pub(crate) seconds: f64,
}

impl Filled {
    /// One after the other.
    pub(crate) fn and(self, other: Filled) -> Filled {
        Filled {
            calls: self.calls + other.calls,
            bytes: self.bytes + other.bytes,
            seconds: self.seconds + other.seconds,
        }
    }
}

impl<F> Operations for Filling<F>
where
    F: Fn(u64) -> RowCells + Send + Sync + 'static,
{
    type Worker = Worker;

    fn kinds(&self) -> Vec<String> {
        vec!["put".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<Worker> {
        Ok(Worker {
            session: Session::new(&self.target, &self.table, self.skip_wal)?,
            bytes: 0,
        })
    }

    async fn operate(&self, worker: &mut Worker, index: u64) -> Result<Option<Outcome>> {
        let first = index * self.batch;
        let rows: Vec<RowCells> = (first..(first + self.batch).min(self.rows))
            .map(&self.row)
            .collect();
        let mut failures = Failures::default();
        let done = retried(&mut failures, || worker.session.put(&rows)).await;
        worker.bytes += rows.iter().map(RowCells::bytes).sum::<u64>();
        let written = done.map(|()| rows.len() as u64);
        Ok(Some(Outcome::of(0, written, failures)))
    }
}
