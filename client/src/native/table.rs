//! Rows of one table.

use std::sync::Arc;

use basalt_idl::native::messages::{self, Condition, GetRequest, MutateRequest, MutateResponse};
use tokio::sync::mpsc;

use super::atomic::inline;
use super::batch::{self, Action};
use super::cluster::{Cluster, Inner, Repeat};
use super::connection::Reply;
use super::decode::Block;
use super::encode::{self, Mutation};
use super::regions::Region;
use super::retry::nonce;
use super::scanner::{self, Scanner};
use crate::error::Result;
use crate::name::TableName;
use crate::request::{Append, Check, Delete, Get, Increment, IntoBytes, Put, RowMutations, Scan, check_row};
use crate::row::{Row, counter_from_value};
use crate::scan::RowStream;
use crate::table::RegionLocation;

/// A handle for the rows of one table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) inner: Arc<Inner>,
    name: TableName,
}

impl Cluster {
    /// A handle for the rows of a table, `name` or `namespace:name`. Sends nothing to a server: a missing
    /// table shows at the first call.
    pub fn table(&self, name: &str) -> Result<Table> {
        Ok(Table::new(Arc::clone(&self.inner), name.parse::<TableName>()?))
    }
}

impl Table {
    pub(super) fn new(inner: Arc<Inner>, name: TableName) -> Table {
        Table { inner, name }
    }

    /// The table's name.
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// A row, `None` if nothing of it was found.
    pub async fn get(&self, get: Get) -> Result<Option<Row>> {
        self.get_by_message(encode::get(get.into_thrift()?, false)?).await
    }

    /// Whether the get would find anything.
    pub async fn exists(&self, get: Get) -> Result<bool> {
        let reply = self.get_reply(encode::get(get.into_thrift()?, true)?).await?;
        Ok(reply.message.result.and_then(|result| result.exists) == Some(true))
    }

    pub(super) async fn get_reply(&self, get: messages::Get) -> Result<Reply<messages::GetResponse>> {
        let row = get.row.clone();
        let request = GetRequest {
            get,
            ..GetRequest::default()
        };
        self.inner
            .on_region(&self.name, &row, request, Repeat::Always)
            .await
    }

    /// Rows, in the order of the gets. The gets go to their servers together.
    pub async fn get_multiple(&self, gets: impl IntoIterator<Item = Get>) -> Result<Vec<Option<Row>>> {
        let outcomes = self.batch(gets.into_iter().map(Action::Get).collect()).await?;
        batch::all(outcomes)
    }

    /// Whether each get would find anything, in order.
    pub async fn exists_multiple(&self, gets: impl IntoIterator<Item = Get>) -> Result<Vec<bool>> {
        let outcomes = self.batch(gets.into_iter().map(Action::Exists).collect()).await?;
        let rows = batch::all(outcomes)?;
        Ok(rows.iter().map(Option::is_some).collect())
    }

    /// Writes cells of one row, atomically.
    pub async fn put(&self, put: Put) -> Result<()> {
        let mutation = Mutation::put(put.into_thrift()?)?;
        self.mutate(mutation, None, Repeat::Always).await.map(drop)
    }

    /// Writes rows, those of a region together. Each is atomic, all together are not: after an error the
    /// others are written ([`Error::Batch`](crate::Error::Batch)).
    pub async fn put_multiple(&self, puts: impl IntoIterator<Item = Put>) -> Result<()> {
        let outcomes = self.batch(puts.into_iter().map(Action::Put).collect()).await?;
        batch::all(outcomes).map(drop)
    }

    /// Deletes from one row, atomically. Deleting missing cells is no error.
    pub async fn delete(&self, delete: Delete) -> Result<()> {
        let mutation = Mutation::delete(delete.into_thrift()?)?;
        self.mutate(mutation, None, Repeat::Always).await.map(drop)
    }

    /// Deletes from rows. Each is atomic, all together are not.
    pub async fn delete_multiple(&self, deletes: impl IntoIterator<Item = Delete>) -> Result<()> {
        let outcomes = self
            .batch(deletes.into_iter().map(Action::Delete).collect())
            .await?;
        batch::all(outcomes).map(drop)
    }

    /// Adds to counters of one row, atomically, and returns the sums: see [`counter_from_value`]. A retry is
    /// not applied twice.
    pub async fn increment(&self, increment: Increment) -> Result<Row> {
        let mutation = Mutation::increment(increment.into_thrift()?)?;
        self.mutate_to_row(mutation).await
    }

    /// Adds to one counter and returns the sum.
    pub async fn increment_column(
        &self,
        row: impl IntoBytes,
        family: impl IntoBytes,
        qualifier: impl IntoBytes,
        amount: i64,
    ) -> Result<i64> {
        let increment = Increment::new(row).column(family, qualifier, amount);
        let sums = self.increment(increment).await?;
        let sum = sums.cells.first().map(|cell| &cell.value[..]);
        counter_from_value(sum.unwrap_or_default())
    }

    /// Appends to values of one row, atomically, and returns the new values. A retry is not applied twice.
    pub async fn append(&self, append: Append) -> Result<Row> {
        let mutation = Mutation::append(append.into_thrift()?)?;
        self.mutate_to_row(mutation).await
    }

    /// A row with the new values, empty if the request asked for none.
    async fn mutate_to_row(&self, mutation: Mutation) -> Result<Row> {
        let key = mutation.row().clone();
        let mutation = mutation.with_nonce(nonce());
        let reply = self.mutate(mutation, None, Repeat::Always).await?;
        let result = reply.message.result.clone().unwrap_or_default();
        let row = Block::new(&reply.cells).row(result);
        let row = row.map_err(|what| reply.malformed("Mutate", what))?;
        Ok(row.unwrap_or(Row {
            key,
            cells: Vec::new(),
            partial: false,
        }))
    }

    async fn mutate(
        &self,
        mutation: Mutation,
        condition: Option<Condition>,
        repeat: Repeat,
    ) -> Result<Reply<MutateResponse>> {
        let row = mutation.row().clone();
        let request = MutateRequest {
            mutation: mutation.inline(),
            condition,
            nonce_group: Some(self.inner.nonce_group),
            ..MutateRequest::default()
        };
        self.inner.on_region(&self.name, &row, request, repeat).await
    }

    /// Puts if the check passes, in one atomic step, and returns whether it did.
    pub async fn check_and_put(&self, check: Check, put: Put) -> Result<bool> {
        self.check_and(check, Mutation::put(put.into_thrift()?)?).await
    }

    /// Deletes if the check passes, in one atomic step, and says whether it did.
    pub async fn check_and_delete(&self, check: Check, delete: Delete) -> Result<bool> {
        self.check_and(check, Mutation::delete(delete.into_thrift()?)?)
            .await
    }

    async fn check_and(&self, check: Check, mutation: Mutation) -> Result<bool> {
        let condition = encode::condition(mutation.row().clone(), check);
        let reply = self.mutate(mutation, Some(condition), Repeat::Never).await?;
        Ok(reply.message.processed == Some(true))
    }

    /// Applies changes of one row if the check passes, in one atomic step, and says whether it did.
    pub async fn check_and_mutate(&self, check: Check, mutations: RowMutations) -> Result<bool> {
        let mutations = mutations.into_thrift()?;
        let row = mutations.row.clone();
        let condition = encode::condition(row.clone(), check);
        self.mutate_row_by_message(&row, inline(mutations)?, Some(condition))
            .await
    }

    /// Applies changes of one row in one atomic step.
    pub async fn mutate_row(&self, mutations: RowMutations) -> Result<()> {
        let mutations = mutations.into_thrift()?;
        let row = mutations.row.clone();
        self.mutate_row_by_message(&row, inline(mutations)?, None)
            .await
            .map(drop)
    }

    /// Gets, writes and atomic groups together: those of one region in one group, those of one server in one
    /// call, the calls side by side. The outcomes are in the order of the actions: the row of a get,
    /// increment or append; `None` for other writes and for gets that find nothing. Only failed actions are
    /// repeated. Fails as a whole only if an action is invalid or the table does not exist; nothing was done
    /// then.
    pub async fn batch(&self, actions: Vec<Action>) -> Result<Vec<Result<Option<Row>>>> {
        batch::run(&self.inner, &self.name, actions).await
    }

    /// The rows of a scan. Begins to fetch at once; must be called within a tokio runtime. While the rows are
    /// not consumed, the scanner's lease is renewed.
    pub fn scan(&self, scan: Scan) -> Result<RowStream> {
        let scanner = self.scanner(scan)?;
        let (sender, batches) = mpsc::channel(1);
        tokio::spawn(scanner::run(scanner, sender));
        Ok(RowStream::of_batches(batches))
    }

    /// A scan that the caller drives. Sends nothing to a server yet.
    pub fn scanner(&self, scan: Scan) -> Result<Scanner> {
        Scanner::start(&self.inner, self.name.clone(), scan)
    }

    /// The first rows of a scan, at most `rows`. If they are in one region and one fetch, this is one call,
    /// which leaves no scanner open.
    pub async fn first_rows(&self, scan: Scan, rows: usize) -> Result<Vec<Row>> {
        let limit = i32::try_from(rows).unwrap_or(i32::MAX);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut scanner = self.scanner(scan.limit(limit).rows_per_fetch(limit))?;
        let mut found = Vec::new();
        while let Some(batch) = scanner.next_batch().await? {
            found.extend(batch);
        }
        Ok(found)
    }

    /// The region that holds a row.
    pub async fn region_of(&self, row: impl IntoBytes) -> Result<RegionLocation> {
        let row = row.into_bytes();
        if !row.is_empty() {
            check_row(&row)?;
        }
        let region = self.region_with(&row).await?;
        Ok(location(&region))
    }

    /// The region that holds a row, with its name and server.
    pub async fn region_with(&self, row: &[u8]) -> Result<Arc<Region>> {
        self.inner.region_with_retries(&self.name, row).await
    }

    /// All regions, in key order.
    pub async fn regions(&self) -> Result<Vec<RegionLocation>> {
        let regions = self.region_list().await?;
        Ok(regions.iter().map(|region| location(region)).collect())
    }

    /// All regions, in key order, with their names and servers. Asks meta.
    pub async fn region_list(&self) -> Result<Vec<Arc<Region>>> {
        self.inner.all_regions(&self.name).await
    }
}

fn location(region: &Region) -> RegionLocation {
    RegionLocation {
        start_key: region.start_key.clone(),
        end_key: region.end_key.clone(),
        host: region.server.host.clone(),
        port: region.server.port.into(),
        start_code: region.server.start_code as i64,
    }
}
