//! Records the rows that calls have read and written, for the key visualiser: its only interface to
//! the API.

use basalt_engine::cell::{CellBatch, RowView};
use basalt_engine::op::RowMutation;
use basalt_engine::schema::TableName;

use super::group::{Group, Step};
use super::sizes::{mutation_bytes, update_bytes};
use crate::observe::heat::Request;
use crate::server::Server;

impl Server {
    /// These rows were written.
    pub(crate) fn wrote(&self, table: &TableName, mutations: &[RowMutation<'_>]) {
        self.heat()
            .record(table, Request::Write, mutations.len(), |index| {
                let mutation = &mutations[index];
                (mutation.row, mutation_bytes(mutation))
            });
    }

    /// Records a group: the rows of its conditions were read, and its rows were written if `wrote`;
    /// `cells` are the new cells of its updates.
    pub(crate) fn applied(&self, group: &Group<'_>, wrote: bool, cells: &CellBatch) {
        let (table, conditions) = (&group.table, &group.conditions);
        self.heat()
            .record(table, Request::Read, conditions.len(), |index| {
                (conditions[index].row, 0)
            });
        if !wrote {
            return;
        }
        for step in &group.steps {
            match step {
                Step::Write(mutation) => self.wrote(table, std::slice::from_ref(mutation)),
                Step::Update { row, .. } if group.steps.len() == 1 => self.updated(table, row, cells),
                Step::Update { row, change, .. } => {
                    let bytes = || update_bytes(row, change);
                    self.heat().record(table, Request::Write, 1, |_| (*row, bytes()));
                }
            }
        }
    }

    /// A row was incremented or appended to; these are its new cells.
    fn updated(&self, table: &TableName, row: &[u8], cells: &CellBatch) {
        let bytes = || cells.rows().map(|row| row_bytes(&row)).sum();
        self.heat().record(table, Request::Write, 1, |_| (row, bytes()));
    }

    /// Records a read of one row. The result is row number `index` of the batch, which is missing
    /// when nothing was found.
    pub(crate) fn got(&self, table: &TableName, row: &[u8], found: &CellBatch, index: usize) {
        self.heat().record(table, Request::Read, 1, |_| {
            let is_there = index < found.row_count();
            (row, if is_there { row_bytes(&found.row(index)) } else { 0 })
        });
    }

    /// A scan has returned the rows of the batch from number `first` on.
    pub(crate) fn scanned(&self, table: &TableName, batch: &CellBatch, first: usize) {
        let count = batch.row_count().saturating_sub(first);
        self.heat().record(table, Request::Read, count, |index| {
            let row = batch.row(first + index);
            (row.key(), row_bytes(&row))
        });
    }
}

fn row_bytes(row: &RowView<'_>) -> usize {
    row.cells()
        .map(|cell| cell.key.bytes().len() + cell.value.len())
        .sum()
}
