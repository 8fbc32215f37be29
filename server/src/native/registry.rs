//! ClientMetaService: the locations of the master and of `hbase:meta`, for clients without
//! ZooKeeper.

use basalt_engine::schema::{META_TABLE, SYSTEM_NAMESPACE};
use basalt_idl::native::messages::{
    ClientMetaServiceMethod, GetActiveMasterResponse, GetAllBootstrapNodesResponse,
    GetBootstrapNodesResponse, GetClusterIdResponse, GetMastersResponse, GetMastersResponseEntry,
    GetMetaRegionLocationsResponse, RegionInfo, RegionLocation, TableName,
};
use bytes::Bytes;

use super::reply::Reply;
use super::server_name;
use crate::server::Server;

/// Answers a call of ClientMetaService.
pub(super) fn call(server: &Server, method: ClientMetaServiceMethod, reply: &mut Reply) {
    match method {
        ClientMetaServiceMethod::GetClusterId => reply.message(&GetClusterIdResponse {
            cluster_id: Some(server.engine().cluster_id().to_string()),
        }),
        ClientMetaServiceMethod::GetActiveMaster => reply.message(&GetActiveMasterResponse {
            server_name: Some(server_name(server)),
        }),
        ClientMetaServiceMethod::GetMasters => reply.message(&GetMastersResponse {
            master_servers: vec![GetMastersResponseEntry {
                server_name: server_name(server),
                is_active: true,
            }],
        }),
        ClientMetaServiceMethod::GetMetaRegionLocations => reply.message(&GetMetaRegionLocationsResponse {
            meta_locations: vec![RegionLocation {
                region_info: meta_region(),
                server_name: Some(server_name(server)),
                seq_num: -1,
            }],
        }),
        ClientMetaServiceMethod::GetBootstrapNodes => reply.message(&GetBootstrapNodesResponse {
            server_name: vec![server_name(server)],
        }),
    }
}

/// Answers the only call of BootstrapNodeService.
pub(super) fn bootstrap(server: &Server, reply: &mut Reply) {
    reply.message(&GetAllBootstrapNodesResponse {
        node: vec![server_name(server)],
    });
}

/// The only region of `hbase:meta`.
pub(super) fn meta_region() -> RegionInfo {
    RegionInfo {
        region_id: 1,
        table_name: TableName {
            namespace: Bytes::from_static(SYSTEM_NAMESPACE.as_bytes()),
            qualifier: Bytes::from_static(META_TABLE.as_bytes()),
        },
        start_key: Some(Bytes::new()),
        end_key: Some(Bytes::new()),
        offline: Some(false),
        split: Some(false),
        replica_id: Some(0),
    }
}
