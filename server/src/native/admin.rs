//! AdminService: administration of regions and of the region server.

use std::sync::Arc;

use basalt_engine::engine::{Compacting, Work};
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::AdminServiceMethod as Method;
use basalt_idl::native::messages::get_region_info_response::CompactionState;
use bytes::Bytes;

use super::reply::Reply;
use super::request::decode;
use super::{region, registry, schema, server_name, slow_log, status};
use crate::observe::slow_log::Kind;
use crate::server::Server;
use crate::service::Failure;

/// Answers a call of AdminService.
pub(super) async fn call(
    server: &Arc<Server>,
    method: Method,
    parameter: Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    reply
        .fill_on_pool(server, move |server, reply| {
            answer(server, method, parameter, reply)
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

fn answer(server: &Server, method: Method, parameter: Bytes, reply: &mut Reply) -> Result<(), Failure> {
    let engine = server.engine();
    match method {
        Method::GetRegionInfo => {
            let call: pb::GetRegionInfoRequest = decode(parameter)?;
            let region = region::by_name(server, &call.region)?;
            reply.message(&pb::GetRegionInfoResponse {
                region_info: schema::to_region(&region),
                compaction_state: Some(compaction_state(engine.compactions_of(region.id)).into()),
                splittable: Some(true),
                mergeable: Some(true),
                best_split_row: None,
            });
        }
        Method::GetRegionLoad => {
            let call: pb::GetRegionLoadRequest = decode(parameter)?;
            let table = call.table_name.as_ref().map(schema::table_name).transpose()?;
            let regions = match &table {
                Some(table) => engine.table_region_stats(table)?,
                None => engine.region_stats(),
            };
            reply.message(&pb::GetRegionLoadResponse {
                region_loads: regions.iter().map(status::region_load).collect(),
            });
        }
        Method::GetOnlineRegion => {
            let regions = engine.region_stats();
            let of_users = regions.iter().map(|region| schema::to_region(&region.region));
            reply.message(&pb::GetOnlineRegionResponse {
                region_info: std::iter::once(registry::meta_region()).chain(of_users).collect(),
            });
        }
        Method::GetServerInfo => reply.message(&pb::GetServerInfoResponse {
            server_info: pb::ServerInfo {
                server_name: server_name(server),
                webui_port: Some(u32::from(server.config().http.listen.port())),
            },
        }),
        Method::FlushRegion => {
            let call: pb::FlushRegionRequest = decode(parameter)?;
            let region = region::by_name(server, &call.region)?;
            engine
                .flush_region(region.id)
                .map_err(|error| region::gone(error, &call.region))?;
            reply.message(&pb::FlushRegionResponse {
                last_flush_time: engine.clock().wall_ms(),
                flushed: Some(true),
                wrote_flush_wal_marker: Some(false),
            });
        }
        Method::CompactRegion => {
            let call: pb::CompactRegionRequest = decode(parameter)?;
            let region = region::by_name(server, &call.region)?;
            let family = call.family.as_deref().filter(|family| !family.is_empty());
            engine
                .compact_region(region.id, family, call.major == Some(true), false)
                .map_err(|error| region::gone(error, &call.region))?;
            reply.message(&pb::CompactRegionResponse {});
        }
        Method::CompactionSwitch => {
            let call: pb::CompactionSwitchRequest = decode(parameter)?;
            let was_paused = engine.pause(Work::Compactions, !call.enabled);
            reply.message(&pb::CompactionSwitchResponse {
                prev_state: !was_paused,
            });
        }
        Method::ClearRegionBlockCache => {
            let call: pb::ClearRegionBlockCacheRequest = decode(parameter)?;
            let mut evicted = 0;
            for name in &call.region {
                evicted += engine.clear_block_cache(Some(&region::by_name(server, name)?.table))?;
            }
            reply.message(&pb::ClearRegionBlockCacheResponse {
                stats: pb::CacheEvictionStats {
                    evicted_blocks: Some(evicted as i64),
                    max_cache_size: Some(server.config().block_cache.bytes as i64),
                    ..pb::CacheEvictionStats::default()
                },
            });
        }
        Method::ClearCompactionQueues => reply.message(&pb::ClearCompactionQueuesResponse {}),
        Method::RollWALWriter => reply.message(&pb::RollWalWriterResponse::default()),
        Method::UpdateConfiguration => reply.message(&pb::UpdateConfigurationResponse {}),
        Method::GetLogEntries => reply.message(&slow_log::entries(server, parameter)?),
        Method::GetSlowLogResponses => {
            reply.message(&slow_log::responses(server, parameter, Some(Kind::Slow))?);
        }
        Method::GetLargeLogResponses => {
            reply.message(&slow_log::responses(server, parameter, Some(Kind::Large))?);
        }
        Method::ClearSlowLogsResponses => reply.message(&slow_log::clear(server)),
        other => return Err(Failure::unsupported(other.name())),
    }
    Ok(())
}
