//! Tables, namespaces and regions of another cluster. Each function waits for the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_client::Row;
use basalt_client::native::Cluster;
use basalt_engine::RegionId;
use basalt_engine::engine::{RegionInfo, ServerName};
use basalt_engine::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState};
use basalt_idl::native::messages::{
    self, AddColumnRequest, CreateNamespaceRequest, CreateTableRequest, DeleteColumnRequest,
    DeleteNamespaceRequest, DeleteTableRequest, DisableTableRequest, EnableTableRequest, FlushTableRequest,
    GetTableDescriptorsRequest, GetTableDescriptorsResponse, ListNamespaceDescriptorsRequest,
    ListNamespaceDescriptorsResponse, MasterServiceMethod as Method, ModifyColumnRequest,
    ModifyNamespaceRequest, ModifyTableRequest, TruncateTableRequest,
};
use bytes::Bytes;
use prost::Message;

use super::messages as convert;
use super::{failure, table, wait};
use crate::server::gateway::region_info;
use crate::service::Failure;

/// The table of regions and tables.
const META: &str = "hbase:meta";

/// Before a message in a cell of `hbase:meta`.
const MAGIC: &[u8] = b"PBUF";

/// A table's descriptor and state.
type Described = (Arc<TableDescriptor>, TableState);

/// A change of a table, or of a namespace: the request gets a nonce.
fn change<M: Message>(
    cluster: &Cluster,
    name: Option<&TableName>,
    method: Method,
    request: impl FnOnce(Option<u64>, Option<u64>) -> M,
) -> Result<(), Failure> {
    let (group, nonce) = cluster.next_nonce();
    let request = request(Some(group), Some(nonce));
    let name = name.map(|name| name.to_string().parse()).transpose();
    let name = name.map_err(|error| failure(&error))?;
    wait(cluster.change_by_message(name.as_ref(), method, &request))
}

pub(in crate::service) fn create_table(
    cluster: &Cluster,
    descriptor: &TableDescriptor,
    splits: Vec<Vec<u8>>,
) -> Result<(), Failure> {
    change(
        cluster,
        Some(&descriptor.name),
        Method::CreateTable,
        |nonce_group, nonce| CreateTableRequest {
            table_schema: convert::to_table(descriptor),
            split_keys: splits.into_iter().map(Bytes::from).collect(),
            nonce_group,
            nonce,
        },
    )
}

pub(in crate::service) fn drop_table(cluster: &Cluster, name: &TableName) -> Result<(), Failure> {
    change(cluster, Some(name), Method::DeleteTable, |nonce_group, nonce| {
        DeleteTableRequest {
            table_name: convert::to_table_name(name),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn truncate_table(
    cluster: &Cluster,
    name: &TableName,
    keep_splits: bool,
) -> Result<(), Failure> {
    change(
        cluster,
        Some(name),
        Method::TruncateTable,
        |nonce_group, nonce| TruncateTableRequest {
            table_name: convert::to_table_name(name),
            preserve_splits: Some(keep_splits),
            nonce_group,
            nonce,
        },
    )
}

pub(in crate::service) fn enable_table(cluster: &Cluster, name: &TableName) -> Result<(), Failure> {
    change(cluster, Some(name), Method::EnableTable, |nonce_group, nonce| {
        EnableTableRequest {
            table_name: convert::to_table_name(name),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn disable_table(cluster: &Cluster, name: &TableName) -> Result<(), Failure> {
    change(cluster, Some(name), Method::DisableTable, |nonce_group, nonce| {
        DisableTableRequest {
            table_name: convert::to_table_name(name),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn alter_table(
    cluster: &Cluster,
    descriptor: &TableDescriptor,
) -> Result<(), Failure> {
    let name = &descriptor.name;
    change(cluster, Some(name), Method::ModifyTable, |nonce_group, nonce| {
        ModifyTableRequest {
            table_name: convert::to_table_name(name),
            table_schema: convert::to_table(descriptor),
            nonce_group,
            nonce,
            ..ModifyTableRequest::default()
        }
    })
}

pub(in crate::service) fn add_family(
    cluster: &Cluster,
    name: &TableName,
    family: &FamilyDescriptor,
) -> Result<(), Failure> {
    change(cluster, Some(name), Method::AddColumn, |nonce_group, nonce| {
        AddColumnRequest {
            table_name: convert::to_table_name(name),
            column_families: convert::to_family(family),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn alter_family(
    cluster: &Cluster,
    name: &TableName,
    family: &FamilyDescriptor,
) -> Result<(), Failure> {
    change(cluster, Some(name), Method::ModifyColumn, |nonce_group, nonce| {
        ModifyColumnRequest {
            table_name: convert::to_table_name(name),
            column_families: convert::to_family(family),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn drop_family(
    cluster: &Cluster,
    name: &TableName,
    family: &[u8],
) -> Result<(), Failure> {
    change(cluster, Some(name), Method::DeleteColumn, |nonce_group, nonce| {
        DeleteColumnRequest {
            table_name: convert::to_table_name(name),
            column_name: Bytes::copy_from_slice(family),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn flush_table(
    cluster: &Cluster,
    name: &TableName,
    families: &[impl AsRef<[u8]>],
) -> Result<(), Failure> {
    let families = families
        .iter()
        .map(|family| Bytes::copy_from_slice(family.as_ref()));
    let families: Vec<Bytes> = families.collect();
    change(cluster, Some(name), Method::FlushTable, |nonce_group, nonce| {
        FlushTableRequest {
            table_name: convert::to_table_name(name),
            column_family: families,
            nonce_group,
            nonce,
        }
    })
}

/// Asks for a compaction of all regions of a table.
pub(in crate::service) fn compact_table(
    cluster: &Cluster,
    name: &TableName,
    family: Option<&[u8]>,
    major: bool,
) -> Result<(), Failure> {
    let family = family.map(Bytes::copy_from_slice);
    wait(cluster.compact_table(&name.to_string(), family, major))
}

/// A table's descriptor and state; `None` if it does not exist.
pub(in crate::service) fn find(cluster: &Cluster, name: &TableName) -> Result<Option<Described>, Failure> {
    let request = GetTableDescriptorsRequest {
        table_names: vec![convert::to_table_name(name)],
        include_sys_tables: Some(true),
        ..GetTableDescriptorsRequest::default()
    };
    let Some(descriptor) = descriptors(cluster, &request)?.pop() else {
        return Ok(None);
    };
    let known = name.to_string().parse().map_err(|error| failure(&error))?;
    let state = wait(cluster.find_table(&known))?;
    Ok(state.map(|is_enabled| (Arc::new(descriptor), state_of(is_enabled))))
}

/// All tables by name, those of the system included.
pub(in crate::service) fn tables(cluster: &Cluster) -> Result<Vec<Described>, Failure> {
    let request = GetTableDescriptorsRequest {
        include_sys_tables: Some(true),
        ..GetTableDescriptorsRequest::default()
    };
    let disabled = disabled_tables(cluster)?;
    let mut tables: Vec<Described> = descriptors(cluster, &request)?
        .into_iter()
        .map(|table| {
            let is_enabled = !disabled.contains_key(table.name.to_string().as_bytes());
            (Arc::new(table), state_of(is_enabled))
        })
        .collect();
    tables.sort_by(|(left, _), (right, _)| left.name.cmp(&right.name));
    Ok(tables)
}

fn state_of(is_enabled: bool) -> TableState {
    if is_enabled {
        TableState::Enabled
    } else {
        TableState::Disabled
    }
}

fn descriptors(
    cluster: &Cluster,
    request: &GetTableDescriptorsRequest,
) -> Result<Vec<TableDescriptor>, Failure> {
    let answer: GetTableDescriptorsResponse =
        wait(cluster.ask_by_message(Method::GetTableDescriptors, request))?;
    answer.table_schema.iter().map(convert::table).collect()
}

/// The tables whose state in `hbase:meta` is another one than ENABLED.
fn disabled_tables(cluster: &Cluster) -> Result<BTreeMap<Bytes, messages::TableState>, Failure> {
    let scan = messages::Scan {
        column: vec![messages::Column {
            family: Bytes::from_static(b"table"),
            qualifier: Vec::new(),
        }],
        ..messages::Scan::default()
    };
    let mut disabled = BTreeMap::new();
    for row in meta_rows(cluster, scan, None)? {
        let Some(value) = row.value("table", "state") else {
            continue;
        };
        let state = messages::TableState::decode(&value[..]);
        let state = state.map_err(|error| malformed(&row, &error))?;
        if state.state() != messages::table_state::State::Enabled {
            disabled.insert(row.key, state);
        }
    }
    Ok(disabled)
}

fn malformed(row: &Row, error: &prost::DecodeError) -> Failure {
    let key = basalt_engine::schema::Cut(&row.key);
    Failure::plain_io(format!("row {key} of hbase:meta cannot be read: {error}"))
}

/// Rows of `hbase:meta`.
fn meta_rows(cluster: &Cluster, scan: messages::Scan, limit: Option<u32>) -> Result<Vec<Row>, Failure> {
    let meta = cluster.table(META).map_err(|error| failure(&error))?;
    let mut scanner = meta.scanner_by_message(scan, limit);
    wait(async {
        let mut rows = Vec::new();
        while let Some(batch) = scanner.next_batch().await? {
            rows.extend(batch);
        }
        Ok(rows)
    })
}

/// The last region whose row in `hbase:meta` is at or before this one, of whatever table.
pub(in crate::service) fn region_before(
    cluster: &Cluster,
    meta_row: &[u8],
) -> Result<Option<RegionInfo>, Failure> {
    let scan = messages::Scan {
        start_row: Some(Bytes::copy_from_slice(meta_row)),
        reversed: Some(true),
        column: vec![messages::Column {
            family: Bytes::from_static(b"info"),
            qualifier: vec![Bytes::from_static(b"regioninfo")],
        }],
        ..messages::Scan::default()
    };
    let Some(row) = meta_rows(cluster, scan, Some(1))?.pop() else {
        return Ok(None);
    };
    let Some(message) = row
        .value("info", "regioninfo")
        .and_then(|value| value.strip_prefix(MAGIC))
    else {
        return Ok(None);
    };
    let region = messages::RegionInfo::decode(message).map_err(|error| malformed(&row, &error))?;
    Ok(Some(RegionInfo {
        id: RegionId(region.region_id),
        table: convert::table_name(&region.table_name)?,
        start: region.start_key.unwrap_or_default().into(),
        end: region.end_key.unwrap_or_default().into(),
        created_ms: region.region_id,
        encoded_name: encoded_name(&row.key),
    }))
}

/// The encoded name in a full one: between its last two dots.
fn encoded_name(name: &[u8]) -> String {
    let name = name.strip_suffix(b".").unwrap_or(name);
    let encoded = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name);
    String::from_utf8_lossy(encoded).into_owned()
}

/// The regions of a table by start key; none if it does not exist.
pub(in crate::service) fn regions(cluster: &Cluster, name: &TableName) -> Result<Vec<RegionInfo>, Failure> {
    let table = table(cluster, name)?;
    let regions = wait(table.region_list())?;
    Ok(regions.iter().map(|region| region_info(name, region)).collect())
}

/// The region that has a row.
pub(in crate::service) fn region_of(
    cluster: &Cluster,
    name: &TableName,
    row: &[u8],
) -> Result<RegionInfo, Failure> {
    let table = table(cluster, name)?;
    Ok(region_info(name, &*wait(table.region_with(row))?))
}

/// The region that has a row, if its location is known without a call.
pub(in crate::service) fn region_at_hand(
    cluster: &Cluster,
    name: &TableName,
    row: &[u8],
) -> Option<RegionInfo> {
    let region = table(cluster, name).ok()?.region_at_hand(row)?;
    Some(region_info(name, &region))
}

/// The server that has a region.
pub(in crate::service) fn server_of(cluster: &Cluster, region: &RegionInfo) -> Result<ServerName, Failure> {
    let table = table(cluster, &region.table)?;
    let found = wait(table.region_with(&region.start))?;
    Ok(ServerName {
        host: found.server.host.clone(),
        port: found.server.port,
        start_code: found.server.start_code,
    })
}

pub(in crate::service) fn create_namespace(
    cluster: &Cluster,
    namespace: &NamespaceDescriptor,
) -> Result<(), Failure> {
    change(cluster, None, Method::CreateNamespace, |nonce_group, nonce| {
        CreateNamespaceRequest {
            namespace_descriptor: convert::to_namespace(namespace),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn alter_namespace(
    cluster: &Cluster,
    namespace: &NamespaceDescriptor,
) -> Result<(), Failure> {
    change(cluster, None, Method::ModifyNamespace, |nonce_group, nonce| {
        ModifyNamespaceRequest {
            namespace_descriptor: convert::to_namespace(namespace),
            nonce_group,
            nonce,
        }
    })
}

pub(in crate::service) fn drop_namespace(cluster: &Cluster, name: &str) -> Result<(), Failure> {
    change(cluster, None, Method::DeleteNamespace, |nonce_group, nonce| {
        DeleteNamespaceRequest {
            namespace_name: name.to_owned(),
            nonce_group,
            nonce,
        }
    })
}

/// All namespaces, by name.
pub(in crate::service) fn namespaces(cluster: &Cluster) -> Result<Vec<NamespaceDescriptor>, Failure> {
    let request = ListNamespaceDescriptorsRequest::default();
    let answer: ListNamespaceDescriptorsResponse =
        wait(cluster.ask_by_message(Method::ListNamespaceDescriptors, &request))?;
    let namespaces = answer.namespace_descriptor.iter().map(convert::namespace);
    let mut namespaces = namespaces.collect::<Result<Vec<_>, _>>()?;
    namespaces.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(namespaces)
}

/// The id of the cluster.
pub(in crate::service) fn cluster_id(cluster: &Cluster) -> Result<String, Failure> {
    wait(cluster.cluster_id())
}
