//! Thrift 2's calls about tables, namespaces and regions.

use std::sync::Arc;

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::TableState;
use basalt_idl::thrift2::{self, args};
use bytes::Bytes;

use crate::server::Server;
use crate::service::{Failure, places};
use crate::thrift::{from_thrift, schema};

fn location(server: &Server, region: &RegionInfo) -> thrift2::THRegionLocation {
    let on = places::server_of(server, region);
    thrift2::THRegionLocation {
        server_name: thrift2::TServerName {
            host_name: on.host,
            port: Some(i32::from(on.port)),
            start_code: Some(on.start_code.cast_signed()),
        },
        region_info: thrift2::THRegionInfo {
            region_id: region.created_ms as i64,
            table_name: Bytes::from(region.table.to_string()),
            start_key: Some(Bytes::from(region.start.clone())),
            end_key: Some(Bytes::from(region.end.clone())),
            offline: Some(false),
            split: Some(false),
            replica_id: Some(0),
        },
    }
}

pub(super) fn region_location(
    server: &Server,
    args: &args::GetRegionLocation,
) -> Result<thrift2::THRegionLocation, Failure> {
    let table = from_thrift::table(Some(&args.table))?;
    Ok(location(server, &server.engine().region_of(&table, &args.row)?))
}

pub(super) fn all_locations(
    server: &Server,
    table: &Bytes,
) -> Result<Vec<thrift2::THRegionLocation>, Failure> {
    let regions = match server.engine().regions(&from_thrift::table(Some(table))?) {
        // HBase looks for the table's rows in hbase:meta and finds none.
        Err(basalt_engine::Error::NoSuchTable(_)) => Vec::new(),
        regions => regions?,
    };
    Ok(regions.iter().map(|region| location(server, region)).collect())
}

pub(super) fn descriptor(
    server: &Server,
    name: &thrift2::TTableName,
) -> Result<thrift2::TTableDescriptor, Failure> {
    let (table, _) = server.engine().describe_table(&schema::table_name(name)?)?;
    Ok(schema::to_table(&table))
}

/// The descriptors of those tables that are there.
pub(super) fn descriptors(
    server: &Server,
    names: &[thrift2::TTableName],
) -> Result<Vec<thrift2::TTableDescriptor>, Failure> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        match server.engine().describe_table(&schema::table_name(name)?) {
            Ok((table, _)) => found.push(schema::to_table(&table)),
            Err(basalt_engine::Error::NoSuchTable(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

pub(super) fn table_exists(server: &Server, name: Option<&thrift2::TTableName>) -> Result<bool, Failure> {
    let name = name.ok_or_else(|| Failure::illegal_argument("the table name is missing"))?;
    let name = schema::table_name(name)?;
    Ok(server.engine().describe_table(&name).is_ok())
}

pub(super) fn state(server: &Server, name: &thrift2::TTableName) -> Result<TableState, Failure> {
    Ok(server.engine().describe_table(&schema::table_name(name)?)?.1)
}

/// Missing or disabled tables are not available; that is no error.
pub(super) fn is_available(server: &Server, name: &thrift2::TTableName) -> Result<bool, Failure> {
    let name = schema::table_name(name)?;
    Ok(server
        .engine()
        .describe_table(&name)
        .is_ok_and(|(_, state)| state == TableState::Enabled))
}

/// Whether the table exists with a region beginning at each of these keys. It may have other
/// regions, too (HBase: `RawAsyncHBaseAdmin` counts the regions that begin at one of the keys, and
/// the first one).
pub(super) fn is_available_with(
    server: &Server,
    name: &thrift2::TTableName,
    splits: &[Bytes],
) -> Result<bool, Failure> {
    if !is_available(server, name)? {
        return Ok(false);
    }
    let regions = server.engine().regions(&schema::table_name(name)?)?;
    let found = regions
        .iter()
        .filter(|region| region.start.is_empty() || splits.iter().any(|key| key[..] == region.start[..]));
    Ok(found.count() == splits.len() + 1)
}

pub(super) type Tables = Vec<(Arc<basalt_engine::schema::TableDescriptor>, TableState)>;

pub(super) fn of_namespace(server: &Server, namespace: &str) -> Result<Tables, Failure> {
    self::namespace(server, namespace)?;
    let mut tables = server.engine().tables();
    tables.retain(|(table, _)| table.name.namespace() == namespace);
    Ok(tables)
}

pub(super) fn namespace(server: &Server, name: &str) -> Result<thrift2::TNamespaceDescriptor, Failure> {
    let namespaces = server.engine().namespaces();
    let found = namespaces.iter().find(|namespace| namespace.name == name);
    found.map(schema::to_namespace).ok_or_else(|| {
        let known: Vec<&String> = namespaces.iter().map(|namespace| &namespace.name).collect();
        basalt_engine::Error::no_such_namespace(name, known).into()
    })
}
