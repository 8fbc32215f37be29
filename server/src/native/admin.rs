//! AdminService: administration of regions and of the region server.
//!
//! The handlers convert; `service::admin` has the calls. `basalt_idl` generates the dispatch.

use basalt_engine::engine::{Compacting, Work};
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::AdminServiceMethod as Method;
use basalt_idl::native::messages::get_region_info_response::CompactionState;
use bytes::Bytes;

use super::reply::Reply;
use super::{region, schema, server_name, slow_log, status, upkeep};
use crate::observe::slow_log::Kind;
use crate::service::admin::{cluster, regions};
use crate::service::{AdminCall, Failure};

type Result<T> = std::result::Result<T, Failure>;

/// Answers a call of AdminService.
pub(super) async fn call(
    admin: &AdminCall,
    method: Method,
    parameter: Bytes,
    reply: &mut Reply,
) -> Result<()> {
    let call = admin.clone();
    reply
        .fill_on_pool(admin.server(), move |reply| {
            method.answer(&call, parameter, reply)
        })
        .await
}

/// The state of a region for HBase's `getCompactionState`: requested compactions that are not done.
fn compaction_state(compacting: Compacting) -> CompactionState {
    match (compacting.minor, compacting.major) {
        (false, false) => CompactionState::None,
        (true, false) => CompactionState::Minor,
        (false, true) => CompactionState::Major,
        (true, true) => CompactionState::MajorAndMinor,
    }
}

impl pb::AdminServiceHandlers for AdminCall {
    type Failure = Failure;

    fn unsupported(&self, method: &'static str) -> Failure {
        super::unsupported(self, method)
    }

    fn undecodable(error: prost::DecodeError) -> Failure {
        super::request::undecodable(error).into()
    }

    fn get_region_info(&self, request: pb::GetRegionInfoRequest) -> Result<pb::GetRegionInfoResponse> {
        if let Some(table) = upkeep::mob_table(&request.region) {
            return upkeep::mob_info(self, &table);
        }
        let region = regions::named(self, region::name(&request.region))?;
        Ok(pb::GetRegionInfoResponse {
            region_info: schema::to_region(&region),
            compaction_state: Some(compaction_state(regions::compactions(self, &region)?).into()),
            splittable: Some(true),
            mergeable: Some(true),
            best_split_row: None,
        })
    }

    fn get_region_load(&self, request: pb::GetRegionLoadRequest) -> Result<pb::GetRegionLoadResponse> {
        let table = request.table_name.as_ref().map(schema::table_name).transpose()?;
        Ok(pb::GetRegionLoadResponse {
            region_loads: status::loads(self, table.as_ref())?,
        })
    }

    fn get_online_region(&self, _: pb::GetOnlineRegionRequest) -> Result<pb::GetOnlineRegionResponse> {
        let of_system = status::system_regions(self)?
            .into_iter()
            .map(|(region, _)| region);
        let of_users = regions::stats(self, None)?.into_iter().map(|stats| stats.region);
        Ok(pb::GetOnlineRegionResponse {
            region_info: of_system
                .chain(of_users)
                .map(|region| schema::to_region(&region))
                .collect(),
        })
    }

    fn get_server_info(&self, _: pb::GetServerInfoRequest) -> Result<pb::GetServerInfoResponse> {
        cluster::ask(self, |server| pb::GetServerInfoResponse {
            server_info: pb::ServerInfo {
                server_name: server_name(server.instance()),
                webui_port: Some(u32::from(server.config().http.listen.port())),
            },
        })
    }

    fn flush_region(&self, request: pb::FlushRegionRequest) -> Result<pb::FlushRegionResponse> {
        regions::flush_named(self, region::name(&request.region), request.family.as_ref())?;
        Ok(pb::FlushRegionResponse {
            last_flush_time: cluster::wall_ms(self),
            flushed: Some(true),
            wrote_flush_wal_marker: Some(false),
        })
    }

    fn compact_region(&self, request: pb::CompactRegionRequest) -> Result<pb::CompactRegionResponse> {
        if let Some(table) = upkeep::mob_table(&request.region) {
            upkeep::compact_mob(self, &table, &request)?;
            return Ok(pb::CompactRegionResponse {});
        }
        let family = request.family.as_deref().filter(|family| !family.is_empty());
        let name = region::name(&request.region);
        regions::compact_named(self, name, family, request.major == Some(true))?;
        Ok(pb::CompactRegionResponse {})
    }

    fn get_store_file(&self, request: pb::GetStoreFileRequest) -> Result<pb::GetStoreFileResponse> {
        upkeep::store_files(self, &request)
    }

    fn compaction_switch(
        &self,
        request: pb::CompactionSwitchRequest,
    ) -> Result<pb::CompactionSwitchResponse> {
        let was_paused = cluster::pause(self, Work::Compactions, !request.enabled)?;
        Ok(pb::CompactionSwitchResponse {
            prev_state: !was_paused,
        })
    }

    fn clear_region_block_cache(
        &self,
        request: pb::ClearRegionBlockCacheRequest,
    ) -> Result<pb::ClearRegionBlockCacheResponse> {
        let mut evicted = 0;
        for name in &request.region {
            let region = regions::named(self, region::name(name))?;
            evicted += cluster::clear_block_cache(self, Some(&region.table))?;
        }
        cluster::operate(self, |server| {
            Ok(pb::ClearRegionBlockCacheResponse {
                stats: pb::CacheEvictionStats {
                    evicted_blocks: Some(evicted as i64),
                    max_cache_size: Some(server.config().block_cache.bytes as i64),
                    ..pb::CacheEvictionStats::default()
                },
            })
        })
    }

    fn clear_compaction_queues(
        &self,
        _: pb::ClearCompactionQueuesRequest,
    ) -> Result<pb::ClearCompactionQueuesResponse> {
        cluster::operate(self, |_| Ok(pb::ClearCompactionQueuesResponse {}))
    }

    fn roll_wal_writer(&self, _: pb::RollWalWriterRequest) -> Result<pb::RollWalWriterResponse> {
        cluster::operate(self, |_| Ok(pb::RollWalWriterResponse::default()))
    }

    fn update_configuration(
        &self,
        _: pb::UpdateConfigurationRequest,
    ) -> Result<pb::UpdateConfigurationResponse> {
        cluster::operate(self, |_| Ok(pb::UpdateConfigurationResponse {}))
    }

    fn get_log_entries(&self, request: pb::LogRequest) -> Result<pb::LogEntry> {
        slow_log::entries(self, request)
    }

    fn get_slow_log_responses(&self, request: pb::SlowLogResponseRequest) -> Result<pb::SlowLogResponses> {
        slow_log::responses(self, &request, Some(Kind::Slow))
    }

    fn get_large_log_responses(&self, request: pb::SlowLogResponseRequest) -> Result<pb::SlowLogResponses> {
        slow_log::responses(self, &request, Some(Kind::Large))
    }

    fn clear_slow_logs_responses(
        &self,
        _: pb::ClearSlowLogResponseRequest,
    ) -> Result<pb::ClearSlowLogResponses> {
        Ok(pb::ClearSlowLogResponses {
            is_cleaned: cluster::clear_slow_log(self)?,
        })
    }
}
