//! Handles of tables, for programs that embed the engine.
//!
//! A handle adds nothing to the calls of [`Engine`] but the table's name, rows that own their cells,
//! and the wait for a write's commit. The server calls the engine itself: it reuses its batches, and
//! awaits commits on its network threads.

use std::sync::Arc;

use super::{Engine, Row, Rows, Scanner, read, write};
use crate::cell::CellBatch;
use crate::error::Result;
use crate::op::{
    Check, ColumnAppend, ColumnIncrement, Delete, Get, GroupUpdate, Put, ReadTier, RowMutation, RowUpdate,
    Scan,
};
use crate::schema::{Durability, TableName};
use crate::wal::Commit;

/// A table of an open engine. Cheap to clone, and usable from any thread. It holds only the name:
/// after the table was dropped, calls fail with [`Error::NoSuchTable`](crate::Error::NoSuchTable).
///
/// A write is durable (as [`Options::wal_sync`](crate::options::Options::wal_sync) and the table say) and
/// visible when its call returns. It takes longer while memory fills faster than it is flushed.
#[derive(Clone, Debug)]
pub struct Table {
    engine: Arc<Engine>,
    name: TableName,
}

impl Engine {
    /// A handle of the table with this name, `qualifier` or `namespace:qualifier`.
    pub fn table(self: &Arc<Self>, name: &str) -> Result<Table> {
        let name: TableName = name.parse()?;
        self.describe_table(&name)?;
        Ok(Table {
            engine: Arc::clone(self),
            name,
        })
    }
}

impl Table {
    /// The table's name.
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// Reads one row; `None` if it has no cell that the request selects.
    pub fn get(&self, get: &Get<'_>) -> Result<Option<Row>> {
        let mut batch = CellBatch::new();
        let catalog = self.engine.open_catalog()?;
        read::get(catalog, &self.name, get.row, &get.spec, ReadTier::All, &mut batch)?;
        Ok(Row::last_of(batch))
    }

    /// Reads a range of rows as they are now: later writes do not change the result. An error, also
    /// one that prevents the scan, is the iterator's last item.
    pub fn scan(&self, scan: Scan) -> Rows {
        let catalog = self.engine.open_catalog();
        Rows::new(catalog.and_then(|catalog| Scanner::open(catalog, &self.name, scan)))
    }

    /// Writes cells to one row.
    pub fn put(&self, put: Put<'_>) -> Result<()> {
        wait(self.mutate(&[put.into()])?)
    }

    /// Deletes in one row.
    pub fn delete(&self, delete: Delete<'_>) -> Result<()> {
        wait(self.mutate(&[delete.into()])?)
    }

    /// Applies mutations, each row atomically, in order; at least one. Checks all of them first: an
    /// error means that none was applied. The writes are durable and visible once the commit is.
    pub fn mutate(&self, mutations: &[RowMutation<'_>]) -> Result<Commit> {
        self.engine.check_open()?;
        self.engine
            .write(|catalog| write::mutate(catalog, &self.name, mutations, &[]))
    }

    /// Applies a put or a deletion if `check` holds for its row. Returns whether it did.
    pub fn check_and_mutate<'a>(
        &self,
        check: &Check<'_>,
        mutation: impl Into<RowMutation<'a>>,
    ) -> Result<bool> {
        let commit = self
            .engine
            .check_row_and_mutate(&self.name, check, &mutation.into())?;
        commit.map_or(Ok(false), |commit| wait(commit).map(|()| true))
    }

    /// Adds to a counter, 8 bytes big-endian, and returns the sum. A column without a value counts from 0.
    pub fn increment(
        &self,
        row: impl AsRef<[u8]>,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
        amount: i64,
    ) -> Result<i64> {
        let increment = ColumnIncrement {
            family: family.as_ref(),
            qualifier: qualifier.as_ref(),
            amount,
            timestamp: None,
        };
        let value = self.update(row.as_ref(), &RowUpdate::Increment(vec![increment]))?;
        let sum = value
            .try_into()
            .expect("the engine stores the sum of an increment in 8 bytes");
        Ok(i64::from_be_bytes(sum))
    }

    /// Appends to a value and returns the result.
    pub fn append(
        &self,
        row: impl AsRef<[u8]>,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Vec<u8>> {
        let append = ColumnAppend {
            family: family.as_ref(),
            qualifier: qualifier.as_ref(),
            value: value.as_ref(),
            timestamp: None,
        };
        self.update(row.as_ref(), &RowUpdate::Append(vec![append]))
    }

    /// Updates one column and returns its new value.
    fn update(&self, row: &[u8], change: &RowUpdate<'_>) -> Result<Vec<u8>> {
        let mut batch = CellBatch::new();
        let update = GroupUpdate::new(row, change, None, Durability::UseDefault);
        let commit = self.engine.update_row(&self.name, update, &mut batch)?;
        wait(commit)?;
        Ok(batch.cell(0).value.to_vec())
    }
}

/// Waits until a write is durable and visible, and for its pause while memory fills up.
fn wait(commit: Commit) -> Result<()> {
    let pause = commit.pause();
    commit.wait()?;
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
    Ok(())
}
