//! The application's interface to a table. [`Table`] implements it over Thrift 2; a program that
//! has another way to rows can bring its own.

use bytes::Bytes;

use super::{BATCH, FAMILY};
use basalt_client::{Check, Delete, Durability, Get, Put, Result, Row, RowStream, Scan, Table};

/// Cells to write to one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// The row key.
    pub key: Bytes,
    /// Qualifiers and values, all of [`FAMILY`].
    pub cells: Vec<(&'static str, Bytes)>,
    /// The row is a copy and can be rebuilt from its original, so it need not wait for the disk.
    pub is_copy: bool,
}

/// The rows of one table with the one family [`FAMILY`]. Clones are the same table.
pub trait Store: Clone + Send + Sync + 'static {
    /// The rows of a scan.
    type Rows: Rows;

    /// Writes rows. Each is atomic, all together are not.
    fn put(&self, rows: Vec<NewRow>) -> impl Future<Output = Result<()>> + Send;

    /// Writes a row unless it has the column of the first of its cells, and says whether it did. The look and
    /// the first cell are one atomic step; where an interface can check no more than one cell, the others may
    /// follow in a second one.
    fn put_unless_there(&self, row: NewRow) -> impl Future<Output = Result<bool>> + Send;

    /// A row, `None` if there is none.
    fn get(&self, key: Bytes) -> impl Future<Output = Result<Option<Row>>> + Send;

    /// Whether each row has this column, in the order of the keys.
    fn have(
        &self,
        keys: Vec<Bytes>,
        qualifier: &'static str,
    ) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Deletes a row.
    fn delete(&self, key: Bytes) -> impl Future<Output = Result<()>> + Send;

    /// Adds 1 to a counter and returns the sum.
    fn count_up(&self, key: Bytes, qualifier: &'static str) -> impl Future<Output = Result<i64>> + Send;

    /// The rows whose keys begin so, at most `limit`, [`BATCH`] fetched in a call.
    fn scan(&self, prefix: &[u8], limit: usize) -> Result<Self::Rows>;

    /// The first rows of a scan in one call: for few rows.
    fn first(&self, prefix: &[u8], limit: usize) -> impl Future<Output = Result<Vec<Row>>> + Send;
}

/// The rows of a scan.
pub trait Rows: Send {
    /// The next row, `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Row>>> + Send;
}

fn put_of(row: NewRow) -> Put {
    let put = Put::new(row.key);
    let put = row
        .cells
        .into_iter()
        .fold(put, |put, (qualifier, value)| put.cell(FAMILY, qualifier, value));
    if row.is_copy {
        put.durability(Durability::ASYNC_WAL)
    } else {
        put
    }
}

fn scan_of(prefix: &[u8], limit: usize) -> Scan {
    Scan::new()
        .prefix(prefix)
        .limit(i32::try_from(limit).unwrap_or(i32::MAX))
        .rows_per_fetch(i32::try_from(limit.clamp(1, BATCH)).unwrap_or(1))
}

impl Store for Table {
    type Rows = RowStream;

    async fn put(&self, mut rows: Vec<NewRow>) -> Result<()> {
        match rows.pop() {
            Some(row) if rows.is_empty() => Table::put(self, put_of(row)).await,
            last => {
                rows.extend(last);
                self.put_multiple(rows.into_iter().map(put_of)).await
            }
        }
    }

    async fn put_unless_there(&self, row: NewRow) -> Result<bool> {
        let Some((first, _)) = row.cells.first() else {
            return Ok(false);
        };
        self.check_and_put(Check::absent(FAMILY, *first), put_of(row))
            .await
    }

    async fn get(&self, key: Bytes) -> Result<Option<Row>> {
        Table::get(self, Get::new(key)).await
    }

    async fn have(&self, keys: Vec<Bytes>, qualifier: &'static str) -> Result<Vec<bool>> {
        let mut gets = keys.iter().map(|key| Get::new(key).column(FAMILY, qualifier));
        match (gets.next(), gets.len()) {
            (Some(get), 0) => Ok(vec![self.exists(get).await?]),
            (first, _) => self.exists_multiple(first.into_iter().chain(gets)).await,
        }
    }

    async fn delete(&self, key: Bytes) -> Result<()> {
        Table::delete(self, Delete::row(key)).await
    }

    async fn count_up(&self, key: Bytes, qualifier: &'static str) -> Result<i64> {
        self.increment_column(key, FAMILY, qualifier, 1).await
    }

    fn scan(&self, prefix: &[u8], limit: usize) -> Result<RowStream> {
        Table::scan(self, scan_of(prefix, limit))
    }

    async fn first(&self, prefix: &[u8], limit: usize) -> Result<Vec<Row>> {
        self.first_rows(scan_of(prefix, limit), limit).await
    }
}

impl Rows for RowStream {
    async fn next(&mut self) -> Result<Option<Row>> {
        RowStream::next(self).await
    }
}
