//! Calls on the rows of one table, over either of HBase's Thrift interfaces or its native protocol.
//!
//! A session has one connection of its own (a scan has another while it is open), like a thread of
//! HBase's load generators has; or it takes those of a target that several tasks share
//! ([`Session::on`]). Operations that an interface lacks are refused before the run: see
//! [`Session::check`].
//!
//! | call | Thrift 1 | Thrift 2 | native |
//! | --- | --- | --- | --- |
//! | [`Session::put`] | `mutateRow`, `mutateRows` | `put`, `putMultiple` | `Mutate`, `Multi` |
//! | [`Session::get`] | `getRow`, `getRowWithColumns`, `getRows`, `getRowsWithColumns` | `get`, `getMultiple` | `Get`, `Multi` |
//! | [`Session::scan`] | `scannerOpenWithScan`, `scannerGetList` | `openScanner`, `getScannerRows` | `Scan` |
//! | [`Session::increment`] | `atomicIncrement` | `increment` | `Mutate` |
//! | [`Session::append`] | `append` | `append` | `Mutate` |
//! | [`Session::check_and_put`] | `checkAndPut` | `checkAndPut` | `Mutate` |
//! | [`Session::check_and_delete`], [`Session::check_and_mutate`] | - | `checkAndDelete`, `checkAndMutate` | `Mutate`, `Multi` |
//! | [`Session::delete`] | `deleteAllRow` | `deleteSingle` | `Mutate` |

mod thrift1;

use std::pin::Pin;
use std::task::{Context, Poll};

use basalt_client::native::{self, Cluster};
use basalt_client::{
    Append, Check, Client, Delete, Durability, Get, Increment, Put, Row, RowMutations, RowStream, Scan, Table,
};
use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc;

use crate::error::{During, Error, Result};
use crate::target::{Api, Target, TargetOptions, client, cluster};
pub use thrift1::{Thrift1Scanner, Thrift1Table};

/// The client's result: the workload counts or retries failures.
pub type Answer<T> = basalt_client::Result<T>;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the family.
    pub family: Bytes,
    /// Name within the family.
    pub qualifier: Bytes,
}

/// Cells to write to one row.
#[derive(Clone, Debug)]
pub struct RowCells {
    /// Key of the row.
    pub key: Bytes,
    /// Columns and values.
    pub cells: Vec<(Column, Bytes)>,
}

impl RowCells {
    /// Bytes of key and cells, counted as in [`row_bytes`].
    pub fn bytes(&self) -> u64 {
        let cells = self.cells.iter();
        let cells = cells.map(|(column, value)| cell_bytes(&column.family, &column.qualifier, value));
        self.key.len() as u64 + cells.sum::<u64>()
    }
}

/// Bytes of a row's key and of its cells: names, value and timestamp.
pub fn row_bytes(row: &Row) -> u64 {
    let cells = row.cells.iter();
    let cells = cells.map(|cell| cell_bytes(&cell.family, &cell.qualifier, &cell.value));
    row.key.len() as u64 + cells.sum::<u64>()
}

fn cell_bytes(family: &[u8], qualifier: &[u8], value: &[u8]) -> u64 {
    (family.len() + qualifier.len() + value.len() + size_of::<i64>()) as u64
}

impl Column {
    /// A column by its names.
    pub fn new(family: &'static str, qualifier: impl Into<Bytes>) -> Column {
        Column {
            family: Bytes::from_static(family.as_bytes()),
            qualifier: qualifier.into(),
        }
    }
}

/// Rows to read in the order of keys.
#[derive(Clone, Debug, Default)]
pub struct RowScan {
    /// Key of the first row. Empty: the beginning of the table.
    pub start: Bytes,
    /// Empty: the end of the table.
    pub stop: Bytes,
    /// Most rows; `None`: all.
    pub limit: Option<u32>,
    /// Rows fetched by one call.
    pub rows_per_fetch: i32,
    /// Empty: all.
    pub columns: Vec<Column>,
    /// In HBase's filter language.
    pub filter: Option<String>,
    /// From high keys to low ones. `start` is the high end then.
    pub reversed: bool,
}

impl RowScan {
    /// All rows whose keys have this prefix, `rows_per_fetch` in a fetch.
    pub fn prefix(prefix: impl Into<Bytes>, rows_per_fetch: i32) -> RowScan {
        let start = prefix.into();
        RowScan {
            stop: Bytes::from(basalt_client::after_prefix(&start)),
            start,
            rows_per_fetch,
            ..RowScan::default()
        }
    }
}

/// Features of workloads that Thrift 1 does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thrift2Only {
    CheckAndDelete,
    CheckAndMutate,
}

/// A handle of one table.
#[derive(Clone, Debug)]
pub struct Session {
    table: Handle,
    /// Whether writes may be lost in a crash: HBase's `--writeToWAL=false`.
    skip_wal: bool,
}

#[derive(Clone, Debug)]
enum Handle {
    Thrift1(Thrift1Table),
    Thrift2(Table),
    Native(native::Table),
}

impl Session {
    /// A session that connects when it is first used.
    pub fn new(options: &TargetOptions, table: &str, skip_wal: bool) -> Result<Session> {
        match options.api {
            Api::Native => Session::of_native(&cluster(options)?, table, skip_wal),
            api => Session::of(&client(options, 1)?, api, table, skip_wal),
        }
    }

    /// A session over the target's connections. Tasks that share it have at most as many running
    /// calls as there are connections.
    pub fn on(target: &Target, table: &str) -> Result<Session> {
        match &target.cluster {
            Some(cluster) => Session::of_native(cluster, table, false),
            None => Session::of(&target.client, target.api, table, false),
        }
    }

    fn of_native(cluster: &Cluster, table: &str, skip_wal: bool) -> Result<Session> {
        let handle = cluster.table(table).during(|| format!("name of table {table}"))?;
        Ok(Session {
            table: Handle::Native(handle),
            skip_wal,
        })
    }

    fn of(client: &Client, api: Api, table: &str, skip_wal: bool) -> Result<Session> {
        let handle = client.table(table).during(|| format!("name of table {table}"))?;
        Ok(Session {
            table: match api {
                Api::Thrift1 => Handle::Thrift1(Thrift1Table::new(client.clone(), handle.name().to_string())),
                Api::Thrift2 | Api::Native => Handle::Thrift2(handle),
            },
            skip_wal,
        })
    }

    /// Fails if the interface does not have this.
    pub(crate) fn check(api: Api, needs: Thrift2Only) -> Result<()> {
        match api {
            Api::Thrift2 | Api::Native => Ok(()),
            Api::Thrift1 => Err(Error::Usage(format!(
                "Thrift 1 does not have {}: use --api thrift2 or native",
                match needs {
                    Thrift2Only::CheckAndDelete => "checkAndDelete",
                    Thrift2Only::CheckAndMutate => "checkAndMutate",
                }
            ))),
        }
    }

    /// The durability of increments and appends, except over Thrift 1.
    fn durability(&self) -> Durability {
        if self.skip_wal {
            Durability::SKIP_WAL
        } else {
            Durability::USE_DEFAULT
        }
    }

    fn put_of(&self, row: &RowCells) -> Put {
        let put = Put::new(&row.key);
        let put = if self.skip_wal {
            put.durability(Durability::SKIP_WAL)
        } else {
            put
        };
        row.cells.iter().fold(put, |put, (column, value)| {
            put.cell(&column.family, &column.qualifier, value)
        })
    }

    /// Writes rows.
    pub async fn put(&self, rows: &[RowCells]) -> Answer<()> {
        match (&self.table, rows) {
            (Handle::Thrift1(table), rows) => table.put(rows, self.skip_wal).await,
            (Handle::Thrift2(table), [row]) => table.put(self.put_of(row)).await,
            (Handle::Thrift2(table), rows) => {
                table.put_multiple(rows.iter().map(|row| self.put_of(row))).await
            }
            (Handle::Native(table), [row]) => table.put(self.put_of(row)).await,
            (Handle::Native(table), rows) => {
                table.put_multiple(rows.iter().map(|row| self.put_of(row))).await
            }
        }
    }

    /// Reads rows, all columns or those named. Those that are missing are left out.
    pub async fn get(&self, keys: &[Bytes], columns: &[Column]) -> Answer<Vec<Row>> {
        let get = |key: &Bytes| {
            columns.iter().fold(Get::new(key), |get, column| {
                get.column(&column.family, &column.qualifier)
            })
        };
        match (&self.table, keys) {
            (Handle::Thrift1(table), keys) => table.get(keys, columns).await,
            (Handle::Thrift2(table), [key]) => Ok(table.get(get(key)).await?.into_iter().collect()),
            (Handle::Thrift2(table), keys) => {
                let rows = table.get_multiple(keys.iter().map(get)).await?;
                Ok(rows.into_iter().flatten().collect())
            }
            (Handle::Native(table), [key]) => Ok(table.get(get(key)).await?.into_iter().collect()),
            (Handle::Native(table), keys) => {
                let rows = table.get_multiple(keys.iter().map(get)).await?;
                Ok(rows.into_iter().flatten().collect())
            }
        }
    }

    /// Begins a scan.
    pub fn scan(&self, scan: &RowScan) -> Answer<Scanner> {
        match &self.table {
            Handle::Thrift1(table) => Ok(Scanner::Thrift1(Box::new(table.scan(scan.clone())))),
            Handle::Thrift2(table) => Ok(Scanner::Stream(table.scan(scan_of(scan))?)),
            Handle::Native(table) => Ok(Scanner::Stream(table.scan(scan_of(scan))?)),
        }
    }

    /// Adds to a counter and returns the sum.
    pub async fn increment(&self, key: &Bytes, column: &Column, amount: i64) -> Answer<i64> {
        match &self.table {
            Handle::Thrift1(table) => table.increment(key, column, amount).await,
            Handle::Thrift2(table) => sum_of(&table.increment(self.increment_of(key, column, amount)).await?),
            Handle::Native(table) => sum_of(&table.increment(self.increment_of(key, column, amount)).await?),
        }
    }

    fn increment_of(&self, key: &Bytes, column: &Column, amount: i64) -> Increment {
        Increment::new(key)
            .column(&column.family, &column.qualifier, amount)
            .durability(self.durability())
    }

    fn append_of(&self, key: &Bytes, column: &Column, value: &Bytes) -> Append {
        Append::new(key)
            .column(&column.family, &column.qualifier, value)
            .durability(self.durability())
    }

    /// Appends to a value.
    pub(crate) async fn append(&self, key: &Bytes, column: &Column, value: &Bytes) -> Answer<()> {
        match &self.table {
            Handle::Thrift1(table) => table.append(key, column, value).await,
            Handle::Thrift2(table) => table.append(self.append_of(key, column, value)).await.map(drop),
            Handle::Native(table) => table.append(self.append_of(key, column, value)).await.map(drop),
        }
    }

    /// Puts a value if the column has the expected one, and returns whether it did.
    pub(crate) async fn check_and_put(
        &self,
        key: &Bytes,
        column: &Column,
        expected: &Bytes,
        value: &Bytes,
    ) -> Answer<bool> {
        let check = || Check::equal(&column.family, &column.qualifier, expected);
        let put = || Put::new(key).cell(&column.family, &column.qualifier, value);
        match &self.table {
            Handle::Thrift1(table) => table.check_and_put(key, column, expected, value).await,
            Handle::Thrift2(table) => table.check_and_put(check(), put()).await,
            Handle::Native(table) => table.check_and_put(check(), put()).await,
        }
    }

    /// Deletes a column if it has this value, and says whether it did. Not over Thrift 1.
    pub(crate) async fn check_and_delete(
        &self,
        key: &Bytes,
        column: &Column,
        expected: &Bytes,
    ) -> Answer<bool> {
        let check = Check::equal(&column.family, &column.qualifier, expected);
        let delete = Delete::columns(key).column(&column.family, &column.qualifier);
        match &self.table {
            Handle::Thrift1(_) => Err(not_in_thrift1(Thrift2Only::CheckAndDelete)),
            Handle::Thrift2(table) => table.check_and_delete(check, delete).await,
            Handle::Native(table) => table.check_and_delete(check, delete).await,
        }
    }

    /// Puts a value through a row mutation if the column has the expected one, and returns whether
    /// it did. Not over Thrift 1.
    pub(crate) async fn check_and_mutate(
        &self,
        key: &Bytes,
        column: &Column,
        expected: &Bytes,
        value: &Bytes,
    ) -> Answer<bool> {
        let check = Check::equal(&column.family, &column.qualifier, expected);
        let put = Put::new(key).cell(&column.family, &column.qualifier, value);
        let mutations = RowMutations::new(key).put(put);
        match &self.table {
            Handle::Thrift1(_) => Err(not_in_thrift1(Thrift2Only::CheckAndMutate)),
            Handle::Thrift2(table) => table.check_and_mutate(check, mutations).await,
            Handle::Native(table) => table.check_and_mutate(check, mutations).await,
        }
    }

    /// Deletes a row.
    pub(crate) async fn delete(&self, key: &Bytes) -> Answer<()> {
        match &self.table {
            Handle::Thrift1(table) => table.delete(key).await,
            Handle::Thrift2(table) => table.delete(Delete::row(key)).await,
            Handle::Native(table) => table.delete(Delete::row(key)).await,
        }
    }
}

fn not_in_thrift1(needs: Thrift2Only) -> basalt_client::Error {
    basalt_client::Error::InvalidRequest(format!("Thrift 1 does not have {needs:?}"))
}

/// Converts a scan to a request of the client library.
fn scan_of(scan: &RowScan) -> Scan {
    let mut request = Scan::new()
        .start_row(&scan.start)
        .stop_row(&scan.stop)
        .rows_per_fetch(scan.rows_per_fetch);
    if scan.reversed {
        request = request.reversed(true);
    }
    if let Some(limit) = scan.limit {
        request = request.limit(i32::try_from(limit).unwrap_or(i32::MAX));
    }
    if let Some(filter) = &scan.filter {
        request = request.filter(filter);
    }
    for column in &scan.columns {
        request = request.column(&column.family, &column.qualifier);
    }
    request
}

/// The sum that an increment of one column returns.
fn sum_of(row: &Row) -> Answer<i64> {
    match row.cells.first() {
        Some(cell) => basalt_client::counter_from_value(&cell.value),
        None => Err(basalt_client::Error::Server {
            method: "increment",
            message: format!("increment of row {:?} returned no value", row.key),
            can_retry: false,
        }),
    }
}

/// An open scan.
#[derive(Debug)]
pub enum Scanner {
    /// A scanner of Thrift 1.
    Thrift1(Box<Thrift1Scanner>),
    /// A stream of the client library.
    Stream(RowStream),
}

impl Scanner {
    /// The next row, `None` at the end.
    pub async fn next(&mut self) -> Answer<Option<Row>> {
        match self {
            Scanner::Thrift1(scanner) => scanner.next().await,
            Scanner::Stream(stream) => stream.next().await,
        }
    }

    /// Reads to the end and counts the rows.
    pub async fn count(mut self) -> Answer<u64> {
        let mut rows = 0;
        while self.next().await?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    /// The rows as a stream, which reads ahead whichever interface it is.
    pub fn stream(self) -> ScanStream {
        match self {
            Scanner::Thrift1(scanner) => ScanStream::Thrift1(scanner.read_ahead()),
            Scanner::Stream(stream) => ScanStream::Stream(stream),
        }
    }
}

/// The rows of a scan, to be merged with those of others. Ends after the first error.
#[derive(Debug)]
pub enum ScanStream {
    /// Rows that a task of its own fetches over Thrift 1.
    Thrift1(mpsc::Receiver<Answer<Row>>),
    /// A stream of the client library.
    Stream(RowStream),
}

impl Stream for ScanStream {
    type Item = Answer<Row>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Answer<Row>>> {
        match &mut *self {
            ScanStream::Thrift1(rows) => rows.poll_recv(context),
            ScanStream::Stream(stream) => Pin::new(stream).poll_next(context),
        }
    }
}
