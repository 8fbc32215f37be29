//! Records the rows that calls have read and written, for the key visualiser: its only interface to
//! the API.

use basalt_engine::cell::{CellBatch, RowView};
use basalt_engine::op::{ReplicatedRow, RowMutation};
use basalt_engine::schema::TableName;

use super::group::{Group, Step};
use super::sizes::{mutation_bytes, replicated_bytes, update_bytes};
use crate::observe::heat::{Heat, Request};

impl Heat {
    /// Records rows that were written.
    pub(crate) fn record_writes(&self, table: &TableName, mutations: &[RowMutation<'_>]) {
        self.record(table, Request::Write, mutations.len(), |index| {
            let mutation = &mutations[index];
            (mutation.row, mutation_bytes(mutation))
        });
    }

    /// Records rows of a replication source that were written.
    pub(crate) fn record_replicated(&self, table: &TableName, rows: &[ReplicatedRow<'_>]) {
        self.record(table, Request::Write, rows.len(), |index| {
            let row = &rows[index];
            (row.row, replicated_bytes(row))
        });
    }

    /// Records a group: the rows of its conditions were read, and its rows were written if `is_written`;
    /// `cells` are the new cells of its updates.
    pub(crate) fn record_group(&self, group: &Group<'_>, is_written: bool, cells: &CellBatch) {
        let (table, conditions) = (&group.table, &group.conditions);
        self.record(table, Request::Read, conditions.len(), |index| {
            (conditions[index].row, 0)
        });
        if !is_written {
            return;
        }
        for step in &group.steps {
            match step {
                Step::Write(mutation) => self.record_writes(table, std::slice::from_ref(mutation)),
                Step::Update { row, change, .. } => {
                    let bytes = || match group.steps.len() {
                        1 => cells.rows().map(|row| row_bytes(&row)).sum(),
                        _ => update_bytes(row, change),
                    };
                    self.record(table, Request::Write, 1, |_| (*row, bytes()));
                }
            }
        }
    }

    /// Records a read of one row. The result is row number `index` of the batch, which is missing
    /// when nothing was found.
    pub(crate) fn record_read(&self, table: &TableName, row: &[u8], found: &CellBatch, index: usize) {
        self.record(table, Request::Read, 1, |_| {
            let is_there = index < found.row_count();
            (row, if is_there { row_bytes(&found.row(index)) } else { 0 })
        });
    }

    /// Records rows that a scan has returned: those of the batch from number `first` on.
    pub(crate) fn record_scan(&self, table: &TableName, batch: &CellBatch, first: usize) {
        let count = batch.row_count().saturating_sub(first);
        self.record(table, Request::Read, count, |index| {
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
