//! Thrift 2's gets and scans, and its questions about tables, namespaces and regions.

use std::pin::pin;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::engine::RegionInfo;
use basalt_engine::op::{ReadSpec, Scan};
use basalt_engine::schema::TableState;
use basalt_idl::thrift2::{
    ReadHandlers, TGet, THRegionInfo, THRegionLocation, TNamespaceDescriptor, TOnlineLogRecord, TScan,
    TServerName, TTableDescriptor, TTableName, TThriftServerType, args,
};
use bytes::Bytes;

use crate::limits::admission::Class;
use crate::server::Server;
use crate::service::admin::{cluster, namespaces, regions, tables};
use crate::service::listing::{self, Listing};
use crate::service::reads::{self, Found};
use crate::service::scans::{self, Results, Shortest};
use crate::service::{AdminCall, Failure};
use crate::thrift::handlers::{Context, Result};
use crate::thrift::{from_thrift, schema, slow_log};

#[expect(refining_impl_trait, reason = "handlers name the type of their answer")]
impl ReadHandlers for Context<'_> {
    async fn get(&mut self, args: args::Get) -> Result<Found> {
        pin!(self.get_multiple(&args.table, slice::from_ref(&args.tget))).await
    }

    async fn getMultiple(&mut self, args: args::GetMultiple) -> Result<Found> {
        pin!(self.get_multiple(&args.table, &args.tgets)).await
    }

    async fn exists(&mut self, args: args::Exists) -> Result<bool> {
        let there = self.exist(&args.table, &[args.tget]).await?;
        Ok(there.first().copied().unwrap_or(false))
    }

    async fn existsAll(&mut self, args: args::ExistsAll) -> Result<Vec<bool>> {
        self.exist(&args.table, &args.tgets).await
    }

    async fn openScanner(&mut self, args: args::OpenScanner) -> Result<i32> {
        let table = from_thrift::table(Some(&args.table))?;
        let scan = scan_of(self.server, &args.tscan).await?;
        let lease = Duration::from_millis(self.server.config().scanner.lease_ms);
        scans::open(self.server, &mut self.call, table, scan, false, lease)
    }

    async fn getScannerRows(&mut self, args: args::GetScannerRows) -> Result<Results> {
        let (id, count) = (args.scanner_id, args.num_rows);
        pin!(scans::fetch(
            self.server,
            &mut self.call,
            id,
            count,
            Shortest::Page
        ))
        .await
    }

    /// An unknown id is no error here, unlike in Thrift 1.
    async fn closeScanner(&mut self, args: args::CloseScanner) -> Result<()> {
        scans::close(self.server.sessions(), self.call.caller(), args.scanner_id);
        Ok(())
    }

    async fn getScannerResults(&mut self, args: args::GetScannerResults) -> Result<Results> {
        let table = from_thrift::table(Some(&args.table))?;
        let scan = scan_of(self.server, &args.tscan).await?;
        scans::fetch_once(self.server, &mut self.call, table, scan, args.num_rows).await
    }

    async fn getRegionLocation(&mut self, args: args::GetRegionLocation) -> Result<THRegionLocation> {
        let table = from_thrift::table(Some(&args.table))?;
        let region = self.ask(|call| regions::of_row(call, &table, &args.row))?;
        self.ask(|call| location(call, &region))
    }

    async fn getAllRegionLocations(
        &mut self,
        args: args::GetAllRegionLocations,
    ) -> Result<Vec<THRegionLocation>> {
        let table = from_thrift::table(Some(&args.table))?;
        self.reserve_listing(Listing::RegionsOf(&table)).await?;
        self.ask(|call| {
            let regions = tables::regions_if_any(call, &table)?;
            regions.iter().map(|region| location(call, region)).collect()
        })
    }

    async fn getTableDescriptor(&mut self, args: args::GetTableDescriptor) -> Result<TTableDescriptor> {
        let table = schema::table_name(&args.table)?;
        self.reserve_listing(Listing::Table(&table)).await?;
        let found = self.ask(|call| tables::descriptor(call, &table))?;
        Ok(schema::to_table(&found))
    }

    /// The descriptors of those tables that are there.
    async fn getTableDescriptors(
        &mut self,
        args: args::GetTableDescriptors,
    ) -> Result<Vec<TTableDescriptor>> {
        let mut bytes = 0;
        for name in &args.tables {
            bytes += listing::bytes(self.server, Listing::Table(&schema::table_name(name)?));
        }
        listing::reserve_bytes(self.server, bytes, self.call.reply()).await?;
        let mut found = Vec::with_capacity(args.tables.len());
        for name in &args.tables {
            let name = schema::table_name(name)?;
            if let Some(table) = self.ask(|call| tables::find_descriptor(call, &name))? {
                found.push(schema::to_table(&table));
            }
        }
        Ok(found)
    }

    async fn getTableDescriptorsByPattern(
        &mut self,
        args: args::GetTableDescriptorsByPattern,
    ) -> Result<Vec<TTableDescriptor>> {
        self.reserve_listing(Listing::Tables).await?;
        let (regex, with_system) = (args.regex.as_deref(), args.include_sys_tables);
        let found = self.ask(|call| {
            Ok(tables::shown(
                call,
                tables::list_matching(call, regex, with_system)?,
            ))
        })?;
        Ok(found.iter().map(|table| schema::to_table(table)).collect())
    }

    async fn getTableNamesByPattern(
        &mut self,
        args: args::GetTableNamesByPattern,
    ) -> Result<Vec<TTableName>> {
        self.reserve_listing(Listing::Names).await?;
        let (regex, with_system) = (args.regex.as_deref(), args.include_sys_tables);
        let found = self.ask(|call| tables::list_matching(call, regex, with_system))?;
        let names = found.iter().map(|table| &table.name);
        Ok(names.map(schema::to_table_name).collect())
    }

    async fn getTableDescriptorsByNamespace(
        &mut self,
        args: args::GetTableDescriptorsByNamespace,
    ) -> Result<Vec<TTableDescriptor>> {
        self.reserve_listing(Listing::Tables).await?;
        let tables = self.ask(|call| {
            let found = tables::list_of_namespace(call, &args.name)?;
            Ok(tables::shown(call, found))
        })?;
        Ok(tables.iter().map(|table| schema::to_table(table)).collect())
    }

    async fn getTableNamesByNamespace(
        &mut self,
        args: args::GetTableNamesByNamespace,
    ) -> Result<Vec<TTableName>> {
        self.reserve_listing(Listing::Names).await?;
        let tables = self.ask(|call| tables::list_of_namespace(call, &args.name))?;
        let names = tables.iter().map(|table| &table.name);
        Ok(names.map(schema::to_table_name).collect())
    }

    async fn tableExists(&mut self, args: args::TableExists) -> Result<bool> {
        let name = args.table_name;
        let name = name.ok_or_else(|| Failure::illegal_argument("the table name is missing"))?;
        let name = schema::table_name(&name)?;
        Ok(self.ask(|call| tables::find(call, &name))?.is_some())
    }

    async fn isTableEnabled(&mut self, args: args::IsTableEnabled) -> Result<bool> {
        Ok(self.state(&args.table_name)? == TableState::Enabled)
    }

    async fn isTableDisabled(&mut self, args: args::IsTableDisabled) -> Result<bool> {
        Ok(self.state(&args.table_name)? == TableState::Disabled)
    }

    async fn isTableAvailable(&mut self, args: args::IsTableAvailable) -> Result<bool> {
        let table = schema::table_name(&args.table_name)?;
        self.ask(|call| tables::is_available(call, &table))
    }

    /// Whether the table exists with a region beginning at each of these keys. It may have other
    /// regions, too (HBase: `RawAsyncHBaseAdmin` counts the regions that begin at one of the keys,
    /// and the first one).
    async fn isTableAvailableWithSplit(&mut self, args: args::IsTableAvailableWithSplit) -> Result<bool> {
        let table = schema::table_name(&args.table_name)?;
        self.reserve_listing(Listing::RegionsOf(&table)).await?;
        if !self.ask(|call| tables::is_available(call, &table))? {
            return Ok(false);
        }
        let splits = args.split_keys.unwrap_or_default();
        let regions = self.ask(|call| tables::regions(call, &table))?;
        let found = regions
            .iter()
            .filter(|region| region.start.is_empty() || splits.iter().any(|key| key[..] == region.start[..]));
        Ok(found.count() == splits.len() + 1)
    }

    async fn getNamespaceDescriptor(
        &mut self,
        args: args::GetNamespaceDescriptor,
    ) -> Result<TNamespaceDescriptor> {
        self.reserve_listing(Listing::Namespaces).await?;
        let found = self.ask(|call| namespaces::describe(call, &args.name))?;
        Ok(schema::to_namespace(&found))
    }

    async fn listNamespaceDescriptors(
        &mut self,
        _: args::ListNamespaceDescriptors,
    ) -> Result<Vec<TNamespaceDescriptor>> {
        self.reserve_listing(Listing::Namespaces).await?;
        let namespaces = self.ask(|call| Ok(namespaces::shown(call, namespaces::list(call)?)))?;
        Ok(namespaces.iter().map(schema::to_namespace).collect())
    }

    async fn listNamespaces(&mut self, _: args::ListNamespaces) -> Result<Vec<String>> {
        self.reserve_listing(Listing::Namespaces).await?;
        let namespaces = self.ask(namespaces::list)?;
        Ok(namespaces.into_iter().map(|namespace| namespace.name).collect())
    }

    async fn getThriftServerType(&mut self, _: args::GetThriftServerType) -> Result<TThriftServerType> {
        self.ask(|call| cluster::ask(call, |_| TThriftServerType::TWO))
    }

    async fn getClusterId(&mut self, _: args::GetClusterId) -> Result<String> {
        self.ask(cluster::cluster_id)
    }

    async fn getSlowLogResponses(
        &mut self,
        args: args::GetSlowLogResponses,
    ) -> Result<Vec<TOnlineLogRecord>> {
        self.reserve_listing(Listing::SlowLog).await?;
        let filter = args.log_query_filter.unwrap_or_default();
        self.ask(|call| slow_log::responses(call, args.server_names.as_ref(), &filter))
    }
}

impl Context<'_> {
    fn state(&mut self, name: &TTableName) -> Result<TableState> {
        let table = schema::table_name(name)?;
        Ok(self.ask(|call| tables::describe(call, &table))?.1)
    }

    /// Rows in the gets' order. A get with `existence_only` is answered like one that found nothing:
    /// TResult has no field for the answer (`exists` has). HBase's region server leaves the cells
    /// out, and its gateway then fails on the missing list.
    async fn get_multiple(&mut self, table: &Bytes, gets: &[TGet]) -> Result<Found> {
        let table = from_thrift::table(Some(table))?;
        let (wanted, _filters) = compiled(self.server, gets, wants_cells).await?;
        let mut found = pin!(reads::get(self.server, &mut self.call, table, wanted)).await?;
        for (get, row) in gets.iter().zip(&mut found.rows) {
            *row = row.filter(|_| wants_cells(get));
        }
        Ok(found)
    }

    /// Whether each get would find something.
    async fn exist(&mut self, table: &Bytes, gets: &[TGet]) -> Result<Vec<bool>> {
        let table = from_thrift::table(Some(table))?;
        let (gets, _filters) = compiled(self.server, gets, |_| false).await?;
        let found = reads::get(self.server, &mut self.call, table, gets).await?;
        let there = found.rows.iter().map(Option::is_some).collect();
        self.call.put_batch(found.batch);
        Ok(there)
    }
}

fn wants_cells(get: &TGet) -> bool {
    get.existence_only != Some(true)
}

/// Gets as the engine takes them, and the memory of their filters.
type Reads = (Vec<(Bytes, ReadSpec)>, reads::FilterMemory);

/// Converts gets. Those without cells in the answer read just enough to know whether their row
/// exists.
fn reads_of(server: &Server, gets: &[TGet], wants_cells: fn(&TGet) -> bool) -> Result<Reads> {
    let mut filters = reads::FilterMemory::default();
    let reads = from_thrift::all(gets, |get| {
        let mut spec = from_thrift::get(get)?;
        filters.add_of(server, &spec)?;
        // One cell proves that a row exists, so a large row is no reason to fail. A filter may need
        // to see all of them.
        if !wants_cells(get) && spec.filter.is_none() && spec.family_limit.is_none() {
            spec.family_limit = Some(1);
        }
        Ok((get.row.clone(), spec))
    })?;
    Ok((reads, filters))
}

/// Converts gets as [`reads_of`] does. Filters with a regular expression are compiled on the pool.
async fn compiled(server: &Arc<Server>, gets: &[TGet], wants_cells: fn(&TGet) -> bool) -> Result<Reads> {
    let compiles = |get: &TGet| from_thrift::has_regex(get.filter_string.as_ref(), get.filter_bytes.as_ref());
    if !gets.iter().any(compiles) {
        return reads_of(server, gets, wants_cells);
    }
    let gets = gets.to_vec();
    let convert = move |server: &Server| reads_of(server, &gets, wants_cells);
    // Boxed: few gets have a regular expression.
    Box::pin(server.compiled(Class::User, convert)).await
}

/// Builds a scan of its arguments. A filter with a regular expression is compiled on the pool.
async fn scan_of(server: &Arc<Server>, scan: &TScan) -> Result<Scan> {
    if !from_thrift::has_regex(scan.filter_string.as_ref(), scan.filter_bytes.as_ref()) {
        return from_thrift::scan(scan);
    }
    let scan = scan.clone();
    // Boxed: few scans need it.
    let convert = move |_: &Server| from_thrift::scan(&scan);
    Box::pin(server.compiled(Class::User, convert)).await
}

fn location(call: &AdminCall, region: &RegionInfo) -> Result<THRegionLocation> {
    let on = tables::server_of(call, region)?;
    Ok(THRegionLocation {
        server_name: TServerName {
            host_name: on.host,
            port: Some(i32::from(on.port)),
            start_code: Some(on.start_code.cast_signed()),
        },
        region_info: THRegionInfo {
            region_id: region.created_ms as i64,
            table_name: Bytes::from(region.table.to_string()),
            start_key: Some(Bytes::from(region.start.clone())),
            end_key: Some(Bytes::from(region.end.clone())),
            offline: Some(false),
            split: Some(false),
            replica_id: Some(0),
        },
    })
}
