//! The tables of the example application ([`basalt_twibase`]) over HBase's first interface.
//!
//! The client library has them over Thrift 2. Differences: a user's full name and address are
//! written right after his name, which alone can be checked in the same step; copies of twits wait
//! for the disk, because there is only a switch for no log at all; and the beginning of a feed
//! takes calls to open and close its scanner.

use basalt_client::{Client, Row};
use basalt_load::session::{Answer, Column, RowCells, RowScan, Thrift1Scanner, Thrift1Table};
use basalt_twibase::store::{NewRow, Rows, Store};
use basalt_twibase::{BATCH, FAMILY};
use bytes::Bytes;

fn cells_of(row: NewRow) -> RowCells {
    let cells = row.cells.into_iter();
    RowCells {
        key: row.key,
        cells: cells
            .map(|(qualifier, value)| (Column::new(FAMILY, qualifier), value))
            .collect(),
    }
}

fn scan_of(prefix: &[u8], limit: usize) -> RowScan {
    let rows_per_fetch = i32::try_from(limit.clamp(1, BATCH)).unwrap_or(1);
    RowScan {
        limit: u32::try_from(limit).ok(),
        ..RowScan::prefix(Bytes::copy_from_slice(prefix), rows_per_fetch)
    }
}

/// A table of the application.
#[derive(Clone, Debug)]
pub(super) struct Thrift1Store(Thrift1Table);

/// Rows of a scan.
#[derive(Debug)]
pub(super) struct Thrift1Rows(Thrift1Scanner);

impl Thrift1Store {
    /// The table of this name.
    pub(super) fn of(client: &Client, name: &str) -> Answer<Thrift1Store> {
        let name = client.table(name)?.name().to_string();
        Ok(Thrift1Store(Thrift1Table::new(client.clone(), name)))
    }
}

impl Store for Thrift1Store {
    type Rows = Thrift1Rows;

    async fn put(&self, rows: Vec<NewRow>) -> Answer<()> {
        let rows: Vec<RowCells> = rows.into_iter().map(cells_of).collect();
        self.0.put(&rows, false).await
    }

    async fn put_unless_there(&self, row: NewRow) -> Answer<bool> {
        let mut row = cells_of(row);
        if row.cells.is_empty() {
            return Ok(false);
        }
        let (column, value) = row.cells.remove(0);
        // A value without bytes stands for a column that is not there.
        let absent = Bytes::new();
        let is_new = self.0.check_and_put(&row.key, &column, &absent, &value).await?;
        if is_new && !row.cells.is_empty() {
            self.0.put(&[row], false).await?;
        }
        Ok(is_new)
    }

    async fn get(&self, key: Bytes) -> Answer<Option<Row>> {
        let rows = self.0.get(&[key], &[]).await?;
        Ok(rows.into_iter().next())
    }

    async fn have(&self, keys: Vec<Bytes>, qualifier: &'static str) -> Answer<Vec<bool>> {
        let column = Column::new(FAMILY, qualifier);
        // Rows that are missing are left out of the answer.
        let rows = self.0.get(&keys, &[column]).await?;
        let has = |key: &Bytes| rows.iter().any(|row| row.key == key);
        Ok(keys.iter().map(has).collect())
    }

    async fn delete(&self, key: Bytes) -> Answer<()> {
        self.0.delete(&key).await
    }

    async fn count_up(&self, key: Bytes, qualifier: &'static str) -> Answer<i64> {
        self.0.increment(&key, &Column::new(FAMILY, qualifier), 1).await
    }

    fn scan(&self, prefix: &[u8], limit: usize) -> Answer<Thrift1Rows> {
        Ok(Thrift1Rows(self.0.scan(scan_of(prefix, limit))))
    }

    async fn first(&self, prefix: &[u8], limit: usize) -> Answer<Vec<Row>> {
        self.0.first(scan_of(prefix, limit)).await
    }
}

impl Rows for Thrift1Rows {
    async fn next(&mut self) -> Answer<Option<Row>> {
        self.0.next().await
    }
}
