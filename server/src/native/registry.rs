//! ClientMetaService: the locations of the master and of `hbase:meta`, for clients without
//! ZooKeeper.

use basalt_engine::schema::{META_TABLE, SYSTEM_NAMESPACE};
use basalt_idl::native::messages::{self as pb, RegionInfo, TableName};
use bytes::Bytes;

use super::{meta_name, primary_name};
use crate::service::admin::cluster;
use crate::service::{AdminCall, Failure};

type Result<T> = std::result::Result<T, Failure>;

impl pb::ClientMetaServiceHandlers for AdminCall {
    type Failure = Failure;

    fn unsupported(&self, method: &'static str) -> Failure {
        super::unsupported(self, method)
    }

    fn undecodable(error: prost::DecodeError) -> Failure {
        super::request::undecodable(error).into()
    }

    fn get_cluster_id(&self, _: pb::GetClusterIdRequest) -> Result<pb::GetClusterIdResponse> {
        Ok(pb::GetClusterIdResponse {
            cluster_id: Some(cluster::cluster_id(self)?),
        })
    }

    fn get_active_master(&self, _: pb::GetActiveMasterRequest) -> Result<pb::GetActiveMasterResponse> {
        cluster::ask(self, |server| pb::GetActiveMasterResponse {
            server_name: Some(primary_name(server)),
        })
    }

    fn get_masters(&self, _: pb::GetMastersRequest) -> Result<pb::GetMastersResponse> {
        cluster::ask(self, |server| pb::GetMastersResponse {
            master_servers: vec![pb::GetMastersResponseEntry {
                server_name: primary_name(server),
                is_active: true,
            }],
        })
    }

    fn get_meta_region_locations(
        &self,
        _: pb::GetMetaRegionLocationsRequest,
    ) -> Result<pb::GetMetaRegionLocationsResponse> {
        cluster::ask(self, |server| pb::GetMetaRegionLocationsResponse {
            meta_locations: vec![pb::RegionLocation {
                region_info: meta_region(),
                server_name: Some(meta_name(server)),
                seq_num: -1,
            }],
        })
    }

    fn get_bootstrap_nodes(&self, _: pb::GetBootstrapNodesRequest) -> Result<pb::GetBootstrapNodesResponse> {
        cluster::ask(self, |server| pb::GetBootstrapNodesResponse {
            server_name: vec![primary_name(server)],
        })
    }
}

impl pb::BootstrapNodeServiceHandlers for AdminCall {
    type Failure = Failure;

    fn unsupported(&self, method: &'static str) -> Failure {
        super::unsupported(self, method)
    }

    fn undecodable(error: prost::DecodeError) -> Failure {
        super::request::undecodable(error).into()
    }

    fn get_all_bootstrap_nodes(
        &self,
        _: pb::GetAllBootstrapNodesRequest,
    ) -> Result<pb::GetAllBootstrapNodesResponse> {
        cluster::ask(self, |server| pb::GetAllBootstrapNodesResponse {
            node: vec![primary_name(server)],
        })
    }
}

/// The only region of `hbase:meta`.
fn meta_region() -> RegionInfo {
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
