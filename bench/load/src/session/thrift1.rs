//! The calls over HBase's first interface, as rows and cells of the client library.
//!
//! A column is `family:qualifier` there. A row that is missing is left out of an answer.

use basalt_client::{Cell, CellKind, Client, Pooled, Row};
use basalt_idl::thrift1::{BatchMutation, Mutation, TAppend, TCell, TRowResult, TScan, args};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::mpsc;

use super::{Answer, Column, RowCells, RowScan};

/// A handle of one table.
#[derive(Clone, Debug)]
pub struct Thrift1Table {
    client: Client,
    name: Bytes,
}

impl Thrift1Table {
    /// A handle over this client.
    pub fn new(client: Client, name: String) -> Thrift1Table {
        let name = Bytes::from(name);
        Thrift1Table { client, name }
    }

    /// Writes rows, without the log if `skip_wal`.
    pub async fn put(&self, rows: &[RowCells], skip_wal: bool) -> Answer<()> {
        let mutations = |row: &RowCells| -> Vec<Mutation> {
            row.cells
                .iter()
                .map(|(column, value)| mutation(column, value, skip_wal))
                .collect()
        };
        if let [row] = rows {
            let call = args::MutateRow {
                table_name: Some(self.name.clone()),
                row: Some(row.key.clone()),
                mutations: Some(mutations(row)),
                attributes: None,
            };
            return self.client.call(&call).await;
        }
        let batch = |row: &RowCells| BatchMutation {
            row: Some(row.key.clone()),
            mutations: Some(mutations(row)),
        };
        let call = args::MutateRows {
            table_name: Some(self.name.clone()),
            row_batches: Some(rows.iter().map(batch).collect()),
            attributes: None,
        };
        self.client.call(&call).await
    }

    /// Reads rows, all columns or those named.
    pub async fn get(&self, keys: &[Bytes], columns: &[Column]) -> Answer<Vec<Row>> {
        let columns = (!columns.is_empty()).then(|| columns.iter().map(name).collect());
        let table_name = Some(self.name.clone());
        let rows = if let [key] = keys {
            let call = args::GetRowWithColumns {
                table_name,
                row: Some(key.clone()),
                columns,
                attributes: None,
            };
            self.client.call(&call).await?
        } else {
            let call = args::GetRowsWithColumns {
                table_name,
                rows: Some(keys.to_vec()),
                columns,
                attributes: None,
            };
            self.client.call(&call).await?
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// Begins a scan.
    pub fn scan(&self, scan: RowScan) -> Thrift1Scanner {
        Thrift1Scanner {
            table: self.clone(),
            scan,
            open: None,
            rows: Vec::new().into_iter(),
            taken: 0,
            ended: false,
        }
    }

    /// The rows of a short scan, over a connection that counts against the pool's limit, as that of
    /// any other call does: it waits for nothing else before it releases the connection.
    pub async fn first(&self, scan: RowScan) -> Answer<Vec<Row>> {
        let mut scanner = self.scan(scan);
        scanner.open(self.client.pool().acquire().await?).await?;
        let mut rows = Vec::new();
        while let Some(row) = scanner.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// Adds to a counter and returns the sum.
    pub async fn increment(&self, key: &Bytes, column: &Column, amount: i64) -> Answer<i64> {
        let call = args::AtomicIncrement {
            table_name: Some(self.name.clone()),
            row: Some(key.clone()),
            column: Some(name(column)),
            value: Some(amount),
        };
        self.client.call(&call).await
    }

    pub(crate) async fn append(&self, key: &Bytes, column: &Column, value: &Bytes) -> Answer<()> {
        let append = TAppend {
            table: Some(self.name.clone()),
            row: Some(key.clone()),
            columns: Some(vec![name(column)]),
            values: Some(vec![value.clone()]),
        };
        let call = args::Append { append: Some(append) };
        self.client.call(&call).await.map(|_| ())
    }

    /// Puts a value if the column has the expected one, and returns whether it did. An empty expected value
    /// stands for a column that is not there.
    pub async fn check_and_put(
        &self,
        key: &Bytes,
        column: &Column,
        expected: &Bytes,
        value: &Bytes,
    ) -> Answer<bool> {
        let call = args::CheckAndPut {
            table_name: Some(self.name.clone()),
            row: Some(key.clone()),
            column: Some(name(column)),
            value: Some(expected.clone()),
            mput: Some(mutation(column, value, false)),
            attributes: None,
        };
        self.client.call(&call).await
    }

    /// Deletes a row.
    pub async fn delete(&self, key: &Bytes) -> Answer<()> {
        let call = args::DeleteAllRow {
            table_name: Some(self.name.clone()),
            row: Some(key.clone()),
            attributes: None,
        };
        self.client.call(&call).await
    }
}

/// A scan. Its scanner is opened by the first [`Thrift1Scanner::next`] and closed at the end; one that is
/// dropped before is left to its lease.
#[derive(Debug)]
pub struct Thrift1Scanner {
    table: Thrift1Table,
    scan: RowScan,
    /// The connection that opened the scanner, and the scanner: a server may let no other connection use it.
    open: Option<(Pooled, i32)>,
    rows: std::vec::IntoIter<TRowResult>,
    taken: u32,
    ended: bool,
}

impl Thrift1Scanner {
    /// The next row, `None` at the end.
    pub async fn next(&mut self) -> Answer<Option<Row>> {
        if self.scan.limit.is_some_and(|limit| self.taken >= limit) {
            self.close().await?;
        }
        if self.ended {
            return Ok(None);
        }
        if let Some(found) = self.rows.next() {
            self.taken += 1;
            return Ok(Some(row(found)));
        }
        self.rows = self.fetch().await?.into_iter();
        let Some(found) = self.rows.next() else {
            self.close().await?;
            return Ok(None);
        };
        self.taken += 1;
        Ok(Some(row(found)))
    }

    /// The rows, fetched by a task of its own: while those of one fetch are taken, the next is
    /// being fetched. The scanner is closed at the end, after an error, and when the receiver is
    /// dropped.
    pub(crate) fn read_ahead(mut self) -> mpsc::Receiver<Answer<Row>> {
        let rows_ahead = usize::try_from(self.scan.rows_per_fetch).unwrap_or_default();
        let (sender, rows) = mpsc::channel(rows_ahead.max(1));
        tokio::spawn(async move {
            while let Some(row) = self.next().await.transpose() {
                let failed = row.is_err();
                if sender.send(row).await.is_err() || failed {
                    break;
                }
            }
            // No caller is left for an error of the close, and the lease ends such a scanner
            // anyway.
            drop(self.close().await);
        });
        rows
    }

    async fn fetch(&mut self) -> Answer<Vec<TRowResult>> {
        if self.open.is_none() {
            let connection = self.table.client.pool().acquire_for_scan().await?;
            self.open(connection).await?;
        }
        let nb_rows = self.rows_of_fetch();
        let Some((connection, id)) = &mut self.open else {
            return Ok(Vec::new());
        };
        let call = args::ScannerGetList {
            id: Some(*id),
            nb_rows: Some(nb_rows),
        };
        connection.call(&call).await
    }

    fn rows_of_fetch(&self) -> i32 {
        let left = self.scan.limit.map_or(u32::MAX, |limit| limit - self.taken);
        self.scan
            .rows_per_fetch
            .min(i32::try_from(left).unwrap_or(i32::MAX))
    }

    /// Opens the scanner on this connection.
    async fn open(&mut self, mut connection: Pooled) -> Answer<()> {
        let scan = &self.scan;
        let columns: Vec<Bytes> = scan.columns.iter().map(name).collect();
        let call = args::ScannerOpenWithScan {
            table_name: Some(self.table.name.clone()),
            scan: Some(TScan {
                start_row: Some(scan.start.clone()),
                stop_row: (!scan.stop.is_empty()).then(|| scan.stop.clone()),
                columns: (!columns.is_empty()).then_some(columns),
                caching: Some(self.rows_of_fetch()),
                filter_string: scan.filter.clone().map(Bytes::from),
                reversed: scan.reversed.then_some(true),
                ..TScan::default()
            }),
            attributes: None,
        };
        let id = connection.call(&call).await?;
        self.open = Some((connection, id));
        Ok(())
    }

    async fn close(&mut self) -> Answer<()> {
        self.ended = true;
        match self.open.take() {
            Some((mut connection, id)) => connection.call(&args::ScannerClose { id: Some(id) }).await,
            None => Ok(()),
        }
    }
}

fn name(column: &Column) -> Bytes {
    let mut name = BytesMut::with_capacity(column.family.len() + 1 + column.qualifier.len());
    name.put_slice(&column.family);
    name.put_u8(b':');
    name.put_slice(&column.qualifier);
    name.freeze()
}

fn mutation(column: &Column, value: &Bytes, skip_wal: bool) -> Mutation {
    Mutation {
        column: Some(name(column)),
        value: Some(value.clone()),
        write_to_wal: !skip_wal,
        ..Mutation::default()
    }
}

fn row(result: TRowResult) -> Row {
    let cells = result.columns.unwrap_or_default().into_iter();
    Row {
        key: result.row.unwrap_or_default(),
        cells: cells.map(|(name, cell)| cell_of(&name, cell)).collect(),
        partial: false,
    }
}

fn cell_of(name: &Bytes, cell: TCell) -> Cell {
    let colon = name.iter().position(|byte| *byte == b':').unwrap_or(name.len());
    Cell {
        family: name.slice(..colon),
        qualifier: name.slice((colon + 1).min(name.len())..),
        value: cell.value.unwrap_or_default(),
        timestamp: cell.timestamp.unwrap_or_default(),
        kind: CellKind::Put,
        tags: Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_split_at_its_first_colon() {
        let column = Column {
            family: Bytes::from("f"),
            qualifier: Bytes::from("a:b"),
        };
        assert_eq!(name(&column), "f:a:b");
        for (text, family, qualifier) in [("f:a:b", "f", "a:b"), ("f:", "f", ""), ("f", "f", "")] {
            let cell = cell_of(&Bytes::from(text), TCell::default());
            assert_eq!(
                (&cell.family[..], &cell.qualifier[..]),
                (family.as_bytes(), qualifier.as_bytes())
            );
        }
    }
}
