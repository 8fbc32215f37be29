//! Thrift 1's calls about tables and regions.

use std::collections::BTreeMap;

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::{TableDescriptor, TableName, TableState};
use basalt_idl::thrift1;
use bytes::Bytes;

use crate::cluster::regions;
use crate::server::Server;
use crate::service::{Failure, places, schema as described};
use crate::thrift::{from_thrift, schema};

pub(super) fn user_tables(server: &Server) -> impl Iterator<Item = (TableName, TableState)> {
    server
        .engine()
        .tables()
        .into_iter()
        .filter(|(table, _)| !table.name.is_system())
        .map(|(table, state)| (table.name.clone(), state))
}

pub(super) fn is_enabled(server: &Server, table: Option<&Bytes>) -> Result<bool, Failure> {
    Ok(server.engine().describe_table(&from_thrift::table(table)?)?.1 == TableState::Enabled)
}

/// The argument is a table's name or a region's, full or encoded. HBase's gateway runs a minor
/// compaction for `majorCompact`; here it is a major one, as the name says. Returns when the
/// compaction is requested.
pub(super) fn compact(server: &Server, table_or_region: Option<&Bytes>, major: bool) -> Result<(), Failure> {
    let name =
        table_or_region.ok_or_else(|| Failure::illegal_argument("the table or region name is missing"))?;
    Ok(regions::target(server.engine(), name)?.compact(server.engine(), None, major, false)?)
}

pub(super) fn column_descriptors(
    server: &Server,
    table: Option<&Bytes>,
) -> Result<BTreeMap<Bytes, thrift1::ColumnDescriptor>, Failure> {
    let (table, _) = server.engine().describe_table(&from_thrift::table(table)?)?;
    Ok(table
        .families
        .iter()
        .map(|family| (schema::family_key(family), schema::to_family1(family)))
        .collect())
}

/// A missing table has no regions; that is no error.
pub(super) fn table_regions(
    server: &Server,
    table: Option<&Bytes>,
) -> Result<Vec<thrift1::TRegionInfo>, Failure> {
    match server.engine().regions(&from_thrift::table(table)?) {
        Ok(regions) => Ok(regions.iter().map(|region| region_info(server, region)).collect()),
        Err(basalt_engine::Error::NoSuchTable(_)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn region_info(server: &Server, region: &RegionInfo) -> thrift1::TRegionInfo {
    let on = places::server_of(server, region);
    thrift1::TRegionInfo {
        start_key: Some(Bytes::from(region.start.clone())),
        end_key: Some(Bytes::from(region.end.clone())),
        id: Some(region.created_ms as i64),
        name: Some(Bytes::from(region.name())),
        version: Some(1),
        server_name: Some(Bytes::from(on.host)),
        port: Some(i32::from(on.port)),
    }
}

/// The argument is a key into hbase:meta, `table,startrow,id`: the region at or before it, of whatever table.
pub(super) fn region_of_meta_key(
    server: &Server,
    key: Option<&Bytes>,
) -> Result<thrift1::TRegionInfo, Failure> {
    let key = key.map(|key| &key[..]).unwrap_or_default();
    let region = server.engine().region_before(key)?.ok_or_else(|| {
        Failure::plain_io(format!(
            "Cannot find row in hbase:meta, row={}",
            basalt_engine::schema::Cut(key)
        ))
    })?;
    Ok(region_info(server, &region))
}

pub(super) fn create_table(
    server: &Server,
    table: Option<&Bytes>,
    families: &[thrift1::ColumnDescriptor],
) -> Result<(), Failure> {
    let name = from_thrift::table(table)?;
    // HBase's gateway looks for the table before it looks at the families.
    if server.engine().describe_table(&name).is_ok() {
        return Err(Failure::from(basalt_engine::Error::TableExists(name)).into_already_exists());
    }
    let families = families
        .iter()
        .map(schema::family1)
        .collect::<Result<Vec<_>, _>>()?;
    match server.engine().create_table(
        described::for_creation(TableDescriptor::new(name, families)),
        Vec::new(),
    ) {
        Err(error @ basalt_engine::Error::TableExists(_)) => Err(Failure::from(error).into_already_exists()),
        other => Ok(other?),
    }
}
