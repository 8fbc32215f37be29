//! Conditions of writes that a filter of a user's class judges.
//!
//! 1. The row is read, without a lock, and the host judges it ([`judge_row`]).
//! 2. If it passed, the group is applied with the condition that the row still has the cells that were judged
//!    ([`Judged`]), which the engine verifies under the row's lock.
//! 3. If it has not, another write was faster: from the beginning.
//!
//! A row that did not pass when it was read is an outcome: no lock is needed for it.

use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use basalt_engine::filter::UserFilter;
use basalt_engine::op::{Judged, ReadSpec, ReadTier, RowCondition, Test, TimeRange};
use basalt_engine::schema::TableName;
use bytes::Bytes;

use super::{Failure, candidates, judge};
use crate::limits::admission::Class;
use crate::server::Server;
use crate::service::Backend;

/// Rounds that a write makes while other writes change its row.
const ROUNDS_MAX: usize = 64;

/// A row that was judged.
#[derive(Debug)]
pub(crate) struct Tried {
    spec: ReadSpec,
    cells: CellBatch,
    /// The timestamp of the first cell that passed.
    passed: Option<i64>,
}

impl Tried {
    pub(crate) fn passed(&self) -> bool {
        self.passed.is_some()
    }

    /// The condition that stands for the filter under the row's lock.
    pub(crate) fn condition<'a>(&'a self, row: &'a [u8]) -> RowCondition<'a> {
        RowCondition {
            row,
            test: Test::Judged(match self.passed {
                None => Judged::Refused,
                Some(timestamp) => Judged::Passed {
                    spec: &self.spec,
                    cells: &self.cells,
                    timestamp,
                },
            }),
            time_range: self.spec.time_range,
        }
    }
}

/// Fails a write whose row was changed in each of its rounds.
pub(crate) fn check_round(round: usize, table: &TableName) -> Result<(), Failure> {
    if round < ROUNDS_MAX {
        return Ok(());
    }
    Err(Failure::busy(format!(
        "other writes have changed the row in each of {ROUNDS_MAX} rounds in which user code judged it; table {table}"
    )))
}

/// Reads a row and has it judged. REQUIRES: the caller has checked the rights.
pub(crate) async fn judge_row(
    server: &Arc<Server>,
    table: TableName,
    row: Bytes,
    time_range: TimeRange,
    filter: UserFilter,
) -> Result<Tried, Failure> {
    server.admission().admit_to_queue_of(Class::User)?;
    server
        .run_queued(Class::User, move |server| {
            judge_on_pool(server, &table, &row, time_range, &filter)
        })
        .await
}

fn judge_on_pool(
    server: &Server,
    table: &TableName,
    row: &[u8],
    time_range: TimeRange,
    filter: &UserFilter,
) -> Result<Tried, Failure> {
    let engine = Backend::of(server).engine()?;
    let asked = ReadSpec {
        time_range,
        ..ReadSpec::default()
    };
    let spec = candidates(&asked);
    let mut cells = judge::scratch(server);
    engine.get_within(table, row, &spec, ReadTier::All, &mut cells)?;
    let opening = judge::opening(engine, table, &asked, filter, false)?;
    let rows = judge::Asked {
        table,
        filter,
        rows: &cells,
    };
    let mut kept = judge::scratch(server);
    judge::once(server, &rows, &opening, &mut kept)?;
    let passed = (!kept.is_empty()).then(|| kept.cell(0).key.timestamp());
    Ok(Tried { spec, cells, passed })
}
