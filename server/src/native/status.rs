//! The cluster's status: the load of each server and of each region.

use basalt_engine::engine::{RegionStats, ServerName};
use basalt_engine::schema::TableState;
use basalt_idl::native::messages as pb;
use bytes::Bytes;

use super::{HBASE_VERSION, coprocessor, schema, server_name};
use crate::server::Server;

const MIB: u64 = 1 << 20;

/// The status with all of its parts; the client's selection of parts is ignored.
pub(super) fn cluster(server: &Server) -> pb::ClusterStatus {
    let live_servers = live_servers(server);
    pb::ClusterStatus {
        hbase_version: Some(pb::HBaseVersionFileContent {
            version: HBASE_VERSION.to_owned(),
        }),
        servers_name: live_servers.iter().map(|live| live.server.clone()).collect(),
        live_servers,
        cluster_id: Some(pb::ClusterId {
            cluster_id: server.engine().cluster_id().to_string(),
        }),
        master: Some(server_name(server)),
        balancer_on: Some(server.master().is_balancer_on()),
        master_info_port: Some(0),
        table_region_states_count: tables(server),
        ..pb::ClusterStatus::default()
    }
}

/// The servers with the loads of their regions: one, or the virtual ones of a rehearsal. System tables
/// are on the first.
fn live_servers(server: &Server) -> Vec<pb::LiveServerInfo> {
    let placement = server.placement();
    let mut regions_of: Vec<Vec<RegionStats>> = vec![Vec::new(); placement.servers().len()];
    for region in server.engine().region_stats() {
        let place = placement.place(region.region.id);
        if let Some(regions) = regions_of.get_mut(usize::from(place.server))
            && !place.is_unassigned
        {
            regions.push(region);
        }
    }
    let mut system: Vec<_> = system_loads(server).collect();
    let live = placement
        .servers()
        .iter()
        .zip(&regions_of)
        .map(|(name, regions)| {
            let system = std::mem::take(&mut system);
            pb::LiveServerInfo {
                server: to_name(name),
                server_load: load(server, system, regions),
            }
        });
    live.collect()
}

fn to_name(name: &ServerName) -> pb::ServerName {
    pb::ServerName {
        host_name: name.host.clone(),
        port: Some(u32::from(name.port)),
        start_code: Some(name.start_code),
    }
}

/// The load of a server with these regions. Virtual servers share the memory equally.
fn load(server: &Server, system: Vec<pb::RegionLoad>, regions: &[RegionStats]) -> pb::ServerLoad {
    let (engine, config) = (server.engine(), server.config());
    let servers = server.placement().servers().len() as u64;
    let used = engine.memstore_bytes() + engine.cache_usage().bytes.iter().sum::<u64>();
    let max = config.memstore.total_bytes + config.block_cache.bytes;
    pb::ServerLoad {
        number_of_requests: Some(0),
        total_number_of_requests: Some(regions.iter().map(|region| region.reads + region.writes).sum()),
        used_heap_mb: Some(mib(used / servers)),
        // At least 1, since clients divide by it.
        max_heap_mb: Some(mib(max / servers).max(1)),
        region_loads: system
            .into_iter()
            .chain(regions.iter().map(region_load))
            .collect(),
        // As HBase reports it without replication: equal times mean that no edit has come yet.
        repl_load_sink: Some(pb::ReplicationLoadSink {
            age_of_last_applied_op: 0,
            time_stamps_of_last_applied_op: server.start_code().unsigned_abs(),
            timestamp_started: Some(server.start_code().unsigned_abs()),
            total_ops_processed: Some(0),
        }),
        coprocessors: coprocessor::LOADED.map(loaded).into(),
        report_start_time: Some(server.start_code().unsigned_abs()),
        report_end_time: Some(engine.clock().wall_ms()),
        info_server_port: Some(u32::from(config.http.listen.port())),
        ..pb::ServerLoad::default()
    }
}

fn loaded(name: &str) -> pb::Coprocessor {
    pb::Coprocessor {
        name: name.to_owned(),
    }
}

/// The loads of the regions of system tables, which are computed and have no figures.
fn system_loads(server: &Server) -> impl Iterator<Item = pb::RegionLoad> {
    let tables = server.engine().tables().into_iter();
    let system = tables.filter(|(table, _)| table.name.is_system());
    let regions = system.flat_map(move |(table, _)| server.engine().regions(&table.name).unwrap_or_default());
    regions.map(|region| idle_load(Bytes::from(region.name())))
}

/// The load of a region.
pub(super) fn region_load(region: &RegionStats) -> pb::RegionLoad {
    pb::RegionLoad {
        storefiles: Some(region.store_files as u32),
        store_uncompressed_size_mb: Some(mib(region.store_file_bytes)),
        storefile_size_mb: Some(mib(region.store_file_bytes)),
        mem_store_size_mb: Some(mib(region.memstore_bytes)),
        read_requests_count: Some(region.reads),
        write_requests_count: Some(region.writes),
        ..idle_load(Bytes::from(region.region.name()))
    }
}

/// The load of a region without data or requests.
fn idle_load(name: Bytes) -> pb::RegionLoad {
    pb::RegionLoad {
        region_specifier: pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
            value: name,
        },
        stores: Some(1),
        // As HBase reports a region that was never flushed.
        complete_sequence_id: Some(u64::MAX),
        data_locality: Some(1.0),
        ..pb::RegionLoad::default()
    }
}

fn tables(server: &Server) -> Vec<pb::TableRegionStatesCount> {
    let tables = server.engine().tables().into_iter();
    tables
        .map(|(table, state)| {
            let regions = server
                .engine()
                .regions(&table.name)
                .map_or(0, |regions| regions.len()) as u32;
            let is_open = state == TableState::Enabled;
            pb::TableRegionStatesCount {
                table_name: schema::to_table_name(&table.name),
                region_states_count: pb::RegionStatesCount {
                    open_regions: if is_open { regions } else { 0 },
                    split_regions: 0,
                    closed_regions: if is_open { 0 } else { regions },
                    regions_in_transition: 0,
                    total_regions: regions,
                },
            }
        })
        .collect()
}

fn mib(bytes: u64) -> u32 {
    u32::try_from(bytes / MIB).unwrap_or(u32::MAX)
}
