//! Thrift 1's gets and scans, and its questions about tables and regions.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::RegionInfo;
use basalt_engine::op::{Columns, FamilySelection, ReadSpec, Scan};
use basalt_engine::schema::TableState;
use basalt_idl::thrift1::{ColumnDescriptor, ReadHandlers, TRegionInfo, TThriftServerType, args};
use bytes::Bytes;

use super::scans::{prefix, range, t_scan};
use super::{before, columns, given};
use crate::server::sessions::SessionError;
use crate::service::admin::{cluster, regions, tables};
use crate::service::listing::Listing;
use crate::service::reads::{self, Found};
use crate::service::scans::{self, Results, Shortest};
use crate::service::{AdminCall, Failure};
use crate::thrift::from_thrift::{self, Attributes, raw, select, split_column};
use crate::thrift::handlers::{Context, Result};
use crate::thrift::schema;

#[expect(refining_impl_trait, reason = "handlers name the type of their answer")]
impl ReadHandlers for Context<'_> {
    async fn get(&mut self, args: args::Get) -> Result<CellBatch> {
        let spec = cells(args.column, 1, None, &args.attributes);
        self.get_cells(args.table_name, args.row, spec).await
    }

    async fn getVer(&mut self, args: args::GetVer) -> Result<CellBatch> {
        let versions = args.num_versions.unwrap_or(0);
        let spec = cells(args.column, versions, None, &args.attributes);
        self.get_cells(args.table_name, args.row, spec).await
    }

    async fn getVerTs(&mut self, args: args::GetVerTs) -> Result<CellBatch> {
        let (versions, before) = (args.num_versions.unwrap_or(0), given(args.timestamp));
        let spec = cells(args.column, versions, before, &args.attributes);
        self.get_cells(args.table_name, args.row, spec).await
    }

    async fn getRow(&mut self, args: args::GetRow) -> Result<Found> {
        let spec = rows(None, None, &args.attributes);
        pin!(self.get_rows(args.table_name, vec![args.row], spec)).await
    }

    async fn getRowWithColumns(&mut self, args: args::GetRowWithColumns) -> Result<Found> {
        let spec = rows(args.columns, None, &args.attributes);
        pin!(self.get_rows(args.table_name, vec![args.row], spec)).await
    }

    async fn getRowTs(&mut self, args: args::GetRowTs) -> Result<Found> {
        let spec = rows(None, given(args.timestamp), &args.attributes);
        pin!(self.get_rows(args.table_name, vec![args.row], spec)).await
    }

    async fn getRowWithColumnsTs(&mut self, args: args::GetRowWithColumnsTs) -> Result<Found> {
        let spec = rows(args.columns, given(args.timestamp), &args.attributes);
        pin!(self.get_rows(args.table_name, vec![args.row], spec)).await
    }

    async fn getRows(&mut self, args: args::GetRows) -> Result<Found> {
        let spec = rows(None, None, &args.attributes);
        pin!(self.get_rows(args.table_name, some(args.rows), spec)).await
    }

    async fn getRowsWithColumns(&mut self, args: args::GetRowsWithColumns) -> Result<Found> {
        let spec = rows(args.columns, None, &args.attributes);
        pin!(self.get_rows(args.table_name, some(args.rows), spec)).await
    }

    async fn getRowsTs(&mut self, args: args::GetRowsTs) -> Result<Found> {
        let spec = rows(None, given(args.timestamp), &args.attributes);
        pin!(self.get_rows(args.table_name, some(args.rows), spec)).await
    }

    async fn getRowsWithColumnsTs(&mut self, args: args::GetRowsWithColumnsTs) -> Result<Found> {
        let spec = rows(args.columns, given(args.timestamp), &args.attributes);
        pin!(self.get_rows(args.table_name, some(args.rows), spec)).await
    }

    /// The cells of a family in that row, or in the last row before it that has some. HBase 1 scanned
    /// backwards for it, and failed if there was none; here the list is then empty.
    async fn getRowOrBefore(&mut self, args: args::GetRowOrBefore) -> Result<CellBatch> {
        let table = from_thrift::table(args.table_name.as_ref())?;
        let missing = |what: &str| Failure::illegal_argument(format!("the {what} is missing"));
        let family = args.family.ok_or_else(|| missing("family"))?;
        let scan = Scan {
            // An empty row is the end of the table, as for every scan backwards.
            start_row: args.row.ok_or_else(|| missing("row"))?.to_vec(),
            reversed: true,
            limit: Some(1),
            spec: ReadSpec {
                families: vec![FamilySelection {
                    family: family.to_vec(),
                    columns: Columns::All,
                }],
                ..ReadSpec::default()
            },
            ..Scan::default()
        };
        let results = scans::fetch_once(self.server, &mut self.call, table, scan, 1).await?;
        Ok(results.batch)
    }

    async fn scannerOpen(&mut self, args: args::ScannerOpen) -> Result<i32> {
        let scan = range(args.start_row, None, args.columns, None);
        self.open(args.table_name.as_ref(), scan, &args.attributes)
    }

    async fn scannerOpenTs(&mut self, args: args::ScannerOpenTs) -> Result<i32> {
        let scan = range(args.start_row, None, args.columns, given(args.timestamp));
        self.open(args.table_name.as_ref(), scan, &args.attributes)
    }

    async fn scannerOpenWithStop(&mut self, args: args::ScannerOpenWithStop) -> Result<i32> {
        let scan = range(args.start_row, args.stop_row, args.columns, None);
        self.open(args.table_name.as_ref(), scan, &args.attributes)
    }

    async fn scannerOpenWithStopTs(&mut self, args: args::ScannerOpenWithStopTs) -> Result<i32> {
        let scan = range(args.start_row, args.stop_row, args.columns, given(args.timestamp));
        self.open(args.table_name.as_ref(), scan, &args.attributes)
    }

    async fn scannerOpenWithPrefix(&mut self, args: args::ScannerOpenWithPrefix) -> Result<i32> {
        let scan = prefix(args.start_and_prefix, args.columns);
        self.open(args.table_name.as_ref(), scan, &args.attributes)
    }

    async fn scannerOpenWithScan(&mut self, args: args::ScannerOpenWithScan) -> Result<i32> {
        let scan = t_scan(self.server, args.scan.unwrap_or_default()).await;
        self.open(args.table_name.as_ref(), scan, &args.attributes)
    }

    async fn scannerGet(&mut self, args: args::ScannerGet) -> Result<Results> {
        let id = args.id.ok_or(SessionError::Unknown)?;
        scans::fetch(self.server, &mut self.call, id, 1, Shortest::Response).await
    }

    async fn scannerGetList(&mut self, args: args::ScannerGetList) -> Result<Results> {
        let (id, count) = (args.id.ok_or(SessionError::Unknown)?, args.nb_rows.unwrap_or(0));
        let fetch = pin!(scans::fetch(
            self.server,
            &mut self.call,
            id,
            count,
            Shortest::Response
        ));
        fetch.await
    }

    /// An unknown id is an error here, unlike in Thrift 2.
    async fn scannerClose(&mut self, args: args::ScannerClose) -> Result<()> {
        match args.id {
            Some(id) if scans::close(self.server.sessions(), self.call.caller(), id) => Ok(()),
            _ => Err(SessionError::Unknown.into()),
        }
    }

    async fn isTableEnabled(&mut self, args: args::IsTableEnabled) -> Result<bool> {
        let table = from_thrift::table(args.table_name.as_ref())?;
        self.ask(|call| Ok(tables::describe(call, &table)?.1 == TableState::Enabled))
    }

    async fn getTableNames(&mut self, _: args::GetTableNames) -> Result<Vec<Bytes>> {
        self.reserve_listing(Listing::Names).await?;
        let tables = self.ask(user_tables)?;
        Ok(tables.into_iter().map(|(name, _)| name).collect())
    }

    async fn getTableNamesWithIsTableEnabled(
        &mut self,
        _: args::GetTableNamesWithIsTableEnabled,
    ) -> Result<BTreeMap<Bytes, bool>> {
        self.reserve_listing(Listing::Names).await?;
        let tables = self.ask(user_tables)?.into_iter();
        Ok(tables
            .map(|(name, state)| (name, state == TableState::Enabled))
            .collect())
    }

    async fn getColumnDescriptors(
        &mut self,
        args: args::GetColumnDescriptors,
    ) -> Result<BTreeMap<Bytes, ColumnDescriptor>> {
        let table = from_thrift::table(args.table_name.as_ref())?;
        self.reserve_listing(Listing::Table(&table)).await?;
        let table = self.ask(|call| tables::descriptor(call, &table))?;
        let families = table.families.iter();
        Ok(families
            .map(|family| (schema::family_key(family), schema::to_family1(family)))
            .collect())
    }

    async fn getTableRegions(&mut self, args: args::GetTableRegions) -> Result<Vec<TRegionInfo>> {
        let table = from_thrift::table(args.table_name.as_ref())?;
        self.reserve_listing(Listing::RegionsOf(&table)).await?;
        self.ask(|call| {
            let regions = tables::regions_if_any(call, &table)?;
            regions.iter().map(|region| region_info(call, region)).collect()
        })
    }

    /// The argument is a key into hbase:meta, `table,startrow,id`: the region at or before it, of
    /// whatever table.
    async fn getRegionInfo(&mut self, args: args::GetRegionInfo) -> Result<TRegionInfo> {
        let key = args.row.unwrap_or_default();
        let region = self.ask(|call| regions::before(call, &key))?.ok_or_else(|| {
            let key = basalt_engine::schema::Cut(&key);
            Failure::plain_io(format!("Cannot find row in hbase:meta, row={key}"))
        })?;
        self.ask(|call| region_info(call, &region))
    }

    async fn getThriftServerType(&mut self, _: args::GetThriftServerType) -> Result<TThriftServerType> {
        self.ask(|call| cluster::ask(call, |_| TThriftServerType::ONE))
    }

    async fn getClusterId(&mut self, _: args::GetClusterId) -> Result<String> {
        self.ask(cluster::cluster_id)
    }
}

impl Context<'_> {
    async fn get_rows(
        &mut self,
        table: Option<Bytes>,
        rows: Vec<Option<Bytes>>,
        spec: Result<ReadSpec>,
    ) -> Result<Found> {
        let (table, spec) = (from_thrift::table(table.as_ref())?, spec?);
        let gets = from_thrift::all(&rows, |row| {
            Ok((from_thrift::row(row.as_ref())?.clone(), spec.clone()))
        })?;
        pin!(reads::get(self.server, &mut self.call, table, gets)).await
    }

    async fn get_cells(
        &mut self,
        table: Option<Bytes>,
        row: Option<Bytes>,
        spec: Result<ReadSpec>,
    ) -> Result<CellBatch> {
        let table = from_thrift::table(table.as_ref())?;
        let row = from_thrift::row(row.as_ref())?.clone();
        let found = reads::get(self.server, &mut self.call, table, vec![(row, spec?)]).await?;
        Ok(found.batch)
    }

    /// Opens a scanner. The scan comes with whether its columns are sorted.
    fn open(
        &mut self,
        table: Option<&Bytes>,
        scan: Result<(Scan, bool)>,
        attributes: &Attributes,
    ) -> Result<i32> {
        let table = from_thrift::table(table)?;
        let (mut scan, sort_columns) = scan?;
        scan.spec.raw = raw(attributes)?;
        // HBase's Thrift 1 server keeps scanners for two scanner timeouts.
        let lease = Duration::from_millis(self.server.config().scanner.lease_ms.saturating_mul(2));
        scans::open(self.server, &mut self.call, table, scan, sort_columns, lease)
    }
}

/// Reads rows, or the named columns of them.
fn rows(wanted: Option<Vec<Bytes>>, timestamp: Option<i64>, attributes: &Attributes) -> Result<ReadSpec> {
    Ok(ReadSpec {
        families: columns(wanted),
        time_range: before(timestamp)?,
        raw: raw(attributes)?,
        ..ReadSpec::default()
    })
}

/// Reads versions of one column, or of a family.
fn cells(
    column: Option<Bytes>,
    versions: i32,
    timestamp: Option<i64>,
    attributes: &Attributes,
) -> Result<ReadSpec> {
    let column = column.ok_or_else(|| Failure::illegal_argument("the column is missing"))?;
    Ok(ReadSpec {
        families: select([split_column(&column)]),
        time_range: before(timestamp)?,
        max_versions: from_thrift::versions(versions)?,
        raw: raw(attributes)?,
        ..ReadSpec::default()
    })
}

/// Row arguments as options, as single-row calls have them.
fn some(rows: Option<Vec<Bytes>>) -> Vec<Option<Bytes>> {
    rows.into_iter().flatten().map(Some).collect()
}

fn user_tables(call: &AdminCall) -> Result<Vec<(Bytes, TableState)>> {
    let tables = tables::list(call)?.into_iter();
    Ok(tables
        .filter(|(table, _)| !table.name.is_system())
        .map(|(table, state)| (Bytes::from(table.name.to_string()), state))
        .collect())
}

fn region_info(call: &AdminCall, region: &RegionInfo) -> Result<TRegionInfo> {
    let on = tables::server_of(call, region)?;
    Ok(TRegionInfo {
        start_key: Some(Bytes::from(region.start.clone())),
        end_key: Some(Bytes::from(region.end.clone())),
        id: Some(region.created_ms as i64),
        name: Some(Bytes::from(region.name())),
        version: Some(1),
        server_name: Some(Bytes::from(on.host)),
        port: Some(i32::from(on.port)),
    })
}
