//! Rows of one table.

use basalt_idl::thrift2::{THRegionLocation, TMutation, TRowMutations, args};
use bytes::Bytes;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::name::TableName;
use crate::options::CompareOperator;
use crate::request::{Append, Check, Delete, Get, Increment, IntoBytes, Put, RowMutations, Scan, check_row};
use crate::row::{Row, counter_from_value};
use crate::scan::RowStream;

/// A handle for the rows of one table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Table {
    client: Client,
    name: TableName,
    /// The full name as calls want it.
    name_bytes: Bytes,
}

/// A region and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLocation {
    /// The first row key; empty at the start of the table.
    pub start_key: Bytes,
    /// The first row key behind it; empty at the end of the table.
    pub end_key: Bytes,
    /// Host of the server.
    pub host: String,
    /// Port of the server.
    pub port: i32,
    /// When the server started, in milliseconds since 1970.
    pub start_code: i64,
}

impl Client {
    /// A handle for the rows of a table, `name` or `namespace:name`. Sends nothing to the server:
    /// the first call reports a missing table, as in HBase.
    pub fn table(&self, name: &str) -> Result<Table> {
        Ok(Table::new(self.clone(), name.parse::<TableName>()?))
    }
}

impl Table {
    fn new(client: Client, name: TableName) -> Table {
        let name_bytes = name.to_bytes();
        Table {
            client,
            name,
            name_bytes,
        }
    }

    /// The table's name.
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// The client that the handle calls through.
    pub fn client(&self) -> &Client {
        &self.client
    }

    fn table(&self) -> Bytes {
        self.name_bytes.clone()
    }

    /// A row, `None` if nothing of it was found.
    pub async fn get(&self, get: Get) -> Result<Option<Row>> {
        let table = self.table();
        let tget = get.into_thrift()?;
        let result = self.client.call(&args::Get { table, tget }).await?;
        Ok(Row::from_thrift(result))
    }

    /// Rows, in the order of the gets.
    pub async fn get_multiple(&self, gets: impl IntoIterator<Item = Get>) -> Result<Vec<Option<Row>>> {
        let table = self.table();
        let tgets = gets
            .into_iter()
            .map(Get::into_thrift)
            .collect::<Result<Vec<_>>>()?;
        let asked = tgets.len();
        let results = self.client.call(&args::GetMultiple { table, tgets }).await?;
        same_count("getMultiple", asked, results.len())?;
        Ok(results.into_iter().map(Row::from_thrift).collect())
    }

    /// Whether the get would find anything.
    pub async fn exists(&self, get: Get) -> Result<bool> {
        let table = self.table();
        let tget = get.into_thrift()?;
        self.client.call(&args::Exists { table, tget }).await
    }

    /// Whether each get would find anything, in order.
    pub async fn exists_multiple(&self, gets: impl IntoIterator<Item = Get>) -> Result<Vec<bool>> {
        let table = self.table();
        let tgets = gets
            .into_iter()
            .map(Get::into_thrift)
            .collect::<Result<Vec<_>>>()?;
        let asked = tgets.len();
        let found = self.client.call(&args::ExistsAll { table, tgets }).await?;
        same_count("existsAll", asked, found.len())?;
        Ok(found)
    }

    /// Writes cells of one row, atomically.
    pub async fn put(&self, put: Put) -> Result<()> {
        let table = self.table();
        let tput = put.into_thrift()?;
        self.client.call(&args::Put { table, tput }).await
    }

    /// Writes rows. Each is atomic, all together are not: after an error some may be written.
    pub async fn put_multiple(&self, puts: impl IntoIterator<Item = Put>) -> Result<()> {
        let table = self.table();
        let tputs = puts
            .into_iter()
            .map(Put::into_thrift)
            .collect::<Result<Vec<_>>>()?;
        self.client.call(&args::PutMultiple { table, tputs }).await
    }

    /// Deletes from one row, atomically. Deleting missing cells is no error.
    pub async fn delete(&self, delete: Delete) -> Result<()> {
        let table = self.table();
        let tdelete = delete.into_thrift()?;
        self.client.call(&args::DeleteSingle { table, tdelete }).await
    }

    /// Deletes from rows. Each is atomic, all together are not.
    pub async fn delete_multiple(&self, deletes: impl IntoIterator<Item = Delete>) -> Result<()> {
        let table = self.table();
        let tdeletes = deletes
            .into_iter()
            .map(Delete::into_thrift)
            .collect::<Result<Vec<_>>>()?;
        let undone = self
            .client
            .call(&args::DeleteMultiple { table, tdeletes })
            .await?;
        // The IDL promises the deletes that failed; no version of HBase returns any.
        same_count("deleteMultiple", 0, undone.len())
    }

    /// Adds to counters of one row, atomically, and returns the sums: see [`counter_from_value`].
    pub async fn increment(&self, increment: Increment) -> Result<Row> {
        let table = self.table();
        let tincrement = increment.into_thrift()?;
        let key = tincrement.row.clone();
        let result = self.client.call(&args::Increment { table, tincrement }).await?;
        Row::from_thrift(result).ok_or_else(|| nothing_returned("increment", &key))
    }

    /// Adds to one counter and returns the sum.
    pub async fn increment_column(
        &self,
        row: impl IntoBytes,
        family: impl IntoBytes,
        qualifier: impl IntoBytes,
        amount: i64,
    ) -> Result<i64> {
        let key = row.into_bytes();
        let sums = self
            .increment(Increment::new(key.clone()).column(family, qualifier, amount))
            .await?;
        match sums.cells.first() {
            Some(cell) => counter_from_value(&cell.value),
            None => Err(nothing_returned("increment", &key)),
        }
    }

    /// Appends to values of one row, atomically, and returns the new values.
    pub async fn append(&self, append: Append) -> Result<Row> {
        let table = self.table();
        let tappend = append.into_thrift()?;
        let key = tappend.row.clone();
        let result = self.client.call(&args::Append { table, tappend }).await?;
        Row::from_thrift(result).ok_or_else(|| nothing_returned("append", &key))
    }

    /// Puts if the check passes, in one atomic step, and returns whether it did.
    pub async fn check_and_put(&self, check: Check, put: Put) -> Result<bool> {
        let tput = put.into_thrift()?;
        if !is_equality(&check) {
            let row = tput.row.clone();
            return self.check_one(check, row, TMutation::Put(tput)).await;
        }
        let call = args::CheckAndPut {
            table: self.table(),
            row: tput.row.clone(),
            family: check.family,
            qualifier: check.qualifier,
            value: check.value,
            tput,
        };
        self.client.call(&call).await
    }

    /// Deletes if the check passes, in one atomic step, and says whether it did.
    pub async fn check_and_delete(&self, check: Check, delete: Delete) -> Result<bool> {
        let tdelete = delete.into_thrift()?;
        if !is_equality(&check) {
            let row = tdelete.row.clone();
            return self.check_one(check, row, TMutation::DeleteSingle(tdelete)).await;
        }
        let call = args::CheckAndDelete {
            table: self.table(),
            row: tdelete.row.clone(),
            family: check.family,
            qualifier: check.qualifier,
            value: check.value,
            tdelete,
        };
        self.client.call(&call).await
    }

    /// Applies changes of one row if the check passes, in one atomic step, and returns whether it
    /// did. HBase 2 fails here for [`Check::absent`], which it understands in
    /// [`Table::check_and_put`] and [`Table::check_and_delete`] only.
    pub async fn check_and_mutate(&self, check: Check, mutations: RowMutations) -> Result<bool> {
        self.check_and_apply(check, mutations.into_thrift()?).await
    }

    async fn check_one(&self, check: Check, row: Bytes, mutation: TMutation) -> Result<bool> {
        let mutations = vec![mutation];
        self.check_and_apply(check, TRowMutations { row, mutations })
            .await
    }

    async fn check_and_apply(&self, check: Check, row_mutations: TRowMutations) -> Result<bool> {
        let call = args::CheckAndMutate {
            table: self.table(),
            row: row_mutations.row.clone(),
            family: check.family,
            qualifier: check.qualifier,
            compare_operator: check.operator,
            value: check.value,
            row_mutations,
        };
        self.client.call(&call).await
    }

    /// Applies changes of one row in one atomic step.
    pub async fn mutate_row(&self, mutations: RowMutations) -> Result<()> {
        let table = self.table();
        let trow_mutations = mutations.into_thrift()?;
        self.client
            .call(&args::MutateRow {
                table,
                trow_mutations,
            })
            .await
    }

    /// The rows of a scan. Begins to fetch at once; must be called within a tokio runtime.
    pub fn scan(&self, scan: Scan) -> Result<RowStream> {
        RowStream::start(self.client.clone(), self.table(), scan)
    }

    /// The first rows of a scan, at most `rows`, in one call that leaves no scanner open: for scans
    /// that are known to be short. Fails for a reversed scan of a prefix, which needs more than one
    /// call.
    pub async fn first_rows(&self, scan: Scan, rows: usize) -> Result<Vec<Row>> {
        let plan = scan.into_plan()?;
        if plan.keep.is_some() {
            return Err(Error::InvalidRequest(
                "first_rows cannot read a prefix in reverse: use scan".to_owned(),
            ));
        }
        let call = args::GetScannerResults {
            table: self.table(),
            tscan: plan.scan,
            num_rows: i32::try_from(rows).unwrap_or(i32::MAX),
        };
        let results = self.client.call(&call).await?;
        Ok(results.into_iter().filter_map(Row::from_thrift).collect())
    }

    /// The region that holds a row.
    pub async fn region_of(&self, row: impl IntoBytes) -> Result<RegionLocation> {
        let row = row.into_bytes();
        if !row.is_empty() {
            check_row(&row)?;
        }
        let call = args::GetRegionLocation {
            table: self.table(),
            row,
            reload: Some(true),
        };
        Ok(self.client.call(&call).await?.into())
    }

    /// All regions, in key order.
    pub async fn regions(&self) -> Result<Vec<RegionLocation>> {
        let call = args::GetAllRegionLocations { table: self.table() };
        let locations = self.client.call(&call).await?;
        Ok(locations.into_iter().map(RegionLocation::from).collect())
    }
}

impl From<THRegionLocation> for RegionLocation {
    fn from(location: THRegionLocation) -> Self {
        let (server, region) = (location.server_name, location.region_info);
        RegionLocation {
            start_key: region.start_key.unwrap_or_default(),
            end_key: region.end_key.unwrap_or_default(),
            host: server.host_name,
            port: server.port.unwrap_or_default(),
            start_code: server.start_code.unwrap_or_default(),
        }
    }
}

/// Whether checkAndPut and checkAndDelete can express the check: every version of HBase has those, and they
/// know absence.
fn is_equality(check: &Check) -> bool {
    check.operator == CompareOperator::EQUAL
}

fn same_count(method: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Server {
        method,
        message: format!("{method} returned {got} results instead of {expected}"),
        can_retry: false,
    })
}

fn nothing_returned(method: &'static str, row: &Bytes) -> Error {
    Error::Server {
        method,
        message: format!("{method} of row {row:?} returned no value"),
        can_retry: false,
    }
}
