//! The cluster's status: the load of each server and of each region.
//!
//! Sizes are rounded as HBase rounds them ([`rounded`]): Spark and other readers of tables leave out
//! regions of size 0.
//!
//! | figure | here |
//! | --- | --- |
//! | requests of a server | calls of all protocols, and their rate in the last seconds; of the servers of a rehearsal: reads and writes of their regions |
//! | `store_uncompressed_size_mb` | blocks of the store files before compression |
//! | `root_index_size_kb`, `storefile_index_size_kb` | root indexes in memory |
//! | `total_static_index_size_kb`, `total_static_bloom_size_kb` | index blocks before compression, bloom filters |
//! | `data_locality`, `blocks_*_weight` | all bytes are local; 0 without store files, as in HBase |
//! | `data_locality_for_ssd`, `blocks_local_with_ssd_weight`, `current_region_cached_ratio`, `store_ref_count`, progress of compactions | 0: not known |

use basalt_engine::engine::{Compacting, RegionInfo, RegionStats, ServerName};
use basalt_engine::id::SeqId;
use basalt_engine::schema::{Switch, TableName, TableState};
use basalt_idl::native::messages::{self as pb, region_load::CompactionState};
use bytes::Bytes;

use super::{coprocessor, peers, schema, server_name};
use crate::cluster::HBASE_VERSION;
use crate::observe::load::Load;
use crate::server::Server;
use crate::service::admin::{cluster, regions, tables};
use crate::service::{AdminCall, Failure};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The status with all of its parts; the client's selection of parts is ignored.
pub(super) fn cluster(call: &AdminCall) -> Result<pb::ClusterStatus, Failure> {
    let server = call.server();
    let live_servers = live_servers(call)?;
    Ok(pb::ClusterStatus {
        hbase_version: Some(pb::HBaseVersionFileContent {
            version: HBASE_VERSION.to_owned(),
        }),
        servers_name: live_servers.iter().map(|live| live.server.clone()).collect(),
        live_servers,
        cluster_id: Some(pb::ClusterId {
            cluster_id: cluster::cluster_id(call)?,
        }),
        master: Some(server_name(server.instance())),
        balancer_on: Some(cluster::is_on(call, Switch::Balancer)?),
        master_info_port: Some(i32::from(server.config().http.listen.port())),
        table_region_states_count: tables(call)?,
        ..pb::ClusterStatus::default()
    })
}

/// The servers with the loads of their regions: one, or the virtual ones of a rehearsal. System tables
/// are on the first.
fn live_servers(call: &AdminCall) -> Result<Vec<pb::LiveServerInfo>, Failure> {
    let (server, status) = (call.server(), cluster::status(call)?);
    let placement = server.placement();
    let mut regions_of: Vec<Vec<RegionStats>> = vec![Vec::new(); placement.servers().len()];
    for region in regions::stats(call, None)? {
        let place = placement.place(region.region.id);
        if let Some(regions) = regions_of.get_mut(usize::from(place.server))
            && !place.is_unassigned
        {
            regions.push(region);
        }
    }
    let mut system = system_loads(call)?;
    let live = placement
        .servers()
        .iter()
        .zip(&regions_of)
        .map(|(name, regions)| {
            let system = std::mem::take(&mut system);
            Ok(pb::LiveServerInfo {
                server: to_name(name),
                server_load: load(call, &status, system, regions)?,
            })
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
fn load(
    call: &AdminCall,
    status: &cluster::Status,
    system: Vec<pb::RegionLoad>,
    regions: &[RegionStats],
) -> Result<pb::ServerLoad, Failure> {
    let server = call.server();
    let config = server.config();
    let servers = server.placement().servers().len() as u64;
    let used = status.memstore_bytes + status.cache_bytes;
    let max = config.memstore.total_bytes + config.block_cache.bytes;
    let requests = if servers == 1 {
        Requests::of_calls(server.load())
    } else {
        Requests::of_regions(server.load(), regions)
    };
    Ok(pb::ServerLoad {
        number_of_requests: Some(requests.per_second as u64),
        total_number_of_requests: Some(requests.total),
        used_heap_mb: Some(rounded(used / servers, MIB)),
        // At least 1, since clients divide by it.
        max_heap_mb: Some(rounded(max / servers, MIB).max(1)),
        region_loads: system.into_iter().chain(region_loads(call, regions)?).collect(),
        repl_load_sink: Some(replication_sink(server)),
        repl_load_source: peers::loads(call),
        coprocessors: coprocessor::loaded(server.security()).map(loaded).collect(),
        report_start_time: Some(server.instance().start_code().unsigned_abs()),
        report_end_time: Some(status.wall_ms),
        info_server_port: Some(u32::from(config.http.listen.port())),
        ..pb::ServerLoad::default()
    })
}

/// The figures of the replication sink. As in HBase, the time of the last edit is the start until there is
/// one.
fn replication_sink(server: &Server) -> pb::ReplicationLoadSink {
    let load = server.copies().sink.load();
    pb::ReplicationLoadSink {
        age_of_last_applied_op: load.age_ms,
        time_stamps_of_last_applied_op: load.written_ms,
        timestamp_started: Some(server.instance().start_code().unsigned_abs()),
        total_ops_processed: Some(load.operations),
    }
}

/// Requests that a server has answered.
struct Requests {
    total: u64,
    /// Average of the last ten to fifteen seconds.
    per_second: f64,
}

impl Requests {
    /// The calls of all protocols.
    fn of_calls(load: &Load) -> Self {
        let calls = load.rates.since().calls(load.call_counts());
        Self {
            total: calls.iter().map(|call| call.calls).sum(),
            per_second: calls.iter().map(|call| call.calls_per_second).sum(),
        }
    }

    /// Reads and writes of the regions of a virtual server, which has no calls of its own.
    fn of_regions(load: &Load, regions: &[RegionStats]) -> Self {
        let since = load.rates.since();
        let rates = regions
            .iter()
            .flat_map(|stats| since.region(stats.region.id, stats.reads, stats.writes));
        Self {
            total: regions.iter().map(|stats| stats.reads + stats.writes).sum(),
            per_second: rates.sum(),
        }
    }
}

fn loaded(name: &str) -> pb::Coprocessor {
    pb::Coprocessor {
        name: name.to_owned(),
    }
}

/// The regions of system tables that the caller may know, each with its number of families.
pub(super) fn system_regions(call: &AdminCall) -> Result<Vec<(RegionInfo, u32)>, Failure> {
    let mut found = Vec::new();
    for (table, _) in tables::list(call)? {
        if table.name.is_system() {
            let stores = table.families.len() as u32;
            let regions = tables::regions_if_any(call, &table.name)?;
            found.extend(regions.into_iter().map(|region| (region, stores)));
        }
    }
    Ok(found)
}

/// The loads of the regions of system tables, which are computed and have no figures.
fn system_loads(call: &AdminCall) -> Result<Vec<pb::RegionLoad>, Failure> {
    let load = |(region, stores): (RegionInfo, u32)| idle_load(Bytes::from(region.name()), stores);
    Ok(system_regions(call)?.into_iter().map(load).collect())
}

/// The loads of a table's regions, or of all regions: with those of system tables, in the order of
/// GetOnlineRegion.
pub(super) fn loads(call: &AdminCall, table: Option<&TableName>) -> Result<Vec<pb::RegionLoad>, Failure> {
    let mut loads = Vec::new();
    if table.is_none_or(TableName::is_system) {
        for (region, stores) in system_regions(call)? {
            if table.is_none_or(|table| *table == region.table) {
                loads.push(idle_load(Bytes::from(region.name()), stores));
            }
        }
    }
    if !table.is_some_and(TableName::is_system) {
        loads.extend(region_loads(call, &regions::stats(call, table)?)?);
    }
    Ok(loads)
}

/// The loads of regions.
fn region_loads(call: &AdminCall, regions: &[RegionStats]) -> Result<Vec<pb::RegionLoad>, Failure> {
    let compactions = regions::all_compactions(call)?;
    let load = |stats: &RegionStats| {
        let compacting = compactions.get(&stats.region.id).copied().unwrap_or_default();
        pb::RegionLoad {
            compaction_state: Some(compaction_state(compacting).into()),
            ..region_load(stats)
        }
    };
    Ok(regions.iter().map(load).collect())
}

fn compaction_state(compacting: Compacting) -> CompactionState {
    match (compacting.minor, compacting.major) {
        (false, false) => CompactionState::None,
        (true, false) => CompactionState::Minor,
        (false, true) => CompactionState::Major,
        (true, true) => CompactionState::MajorAndMinor,
    }
}

/// The load of a region, without its compactions.
fn region_load(region: &RegionStats) -> pb::RegionLoad {
    let (bytes, sizes) = (region.store_file_bytes, region.file_sizes);
    let flushed = region.flushed.iter().map(|(_, seq)| seq.0).max();
    pb::RegionLoad {
        storefiles: Some(region.store_files as u32),
        store_uncompressed_size_mb: Some(rounded(sizes.plain_bytes, MIB)),
        storefile_size_mb: Some(rounded(bytes, MIB)),
        region_size_mb: Some(rounded(bytes, MIB)),
        mem_store_size_mb: Some(rounded(region.memstore_bytes, MIB)),
        storefile_index_size_kb: Some(rounded(sizes.root_index_bytes, KIB).into()),
        root_index_size_kb: Some(rounded(sizes.root_index_bytes, KIB)),
        total_static_index_size_kb: Some(rounded(sizes.index_bytes, KIB)),
        total_static_bloom_size_kb: Some(rounded(sizes.bloom_bytes, KIB)),
        read_requests_count: Some(region.reads),
        filtered_read_requests_count: Some(region.filtered_reads),
        write_requests_count: Some(region.writes),
        last_major_compaction_ts: Some(region.last_major_compaction_ms),
        complete_sequence_id: Some(sequence_id(flushed.unwrap_or(0))),
        store_complete_sequence_id: region.flushed.iter().map(of_store).collect(),
        data_locality: Some(if bytes > 0 { 1.0 } else { 0.0 }),
        blocks_total_weight: Some(bytes),
        blocks_local_weight: Some(bytes),
        ..idle_load(Bytes::from(region.region.name()), region.flushed.len() as u32)
    }
}

fn of_store((family, flushed): &(Vec<u8>, SeqId)) -> pb::StoreSequenceId {
    pb::StoreSequenceId {
        family_name: Bytes::copy_from_slice(family),
        sequence_id: sequence_id(flushed.0),
    }
}

/// The greatest sequence id that was flushed; -1 before the first flush, as in HBase.
fn sequence_id(flushed: u64) -> u64 {
    if flushed == 0 { u64::MAX } else { flushed }
}

/// The load of a region without data or requests.
fn idle_load(name: Bytes, stores: u32) -> pb::RegionLoad {
    pb::RegionLoad {
        region_specifier: pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
            value: name,
        },
        stores: Some(stores),
        storefiles: Some(0),
        complete_sequence_id: Some(sequence_id(0)),
        data_locality: Some(0.0),
        compaction_state: Some(CompactionState::None.into()),
        ..pb::RegionLoad::default()
    }
}

fn tables(call: &AdminCall) -> Result<Vec<pb::TableRegionStatesCount>, Failure> {
    tables::list(call)?
        .into_iter()
        .map(|(table, state)| {
            let regions = tables::regions_if_any(call, &table.name)?.len() as u32;
            let is_open = state == TableState::Enabled;
            Ok(pb::TableRegionStatesCount {
                table_name: schema::to_table_name(&table.name),
                region_states_count: pb::RegionStatesCount {
                    open_regions: if is_open { regions } else { 0 },
                    split_regions: 0,
                    closed_regions: if is_open { 0 } else { regions },
                    regions_in_transition: 0,
                    total_regions: regions,
                },
            })
        })
        .collect()
}

/// Bytes in units, as HBase's region servers report them: whole units, but a part of the first one is
/// one.
fn rounded(bytes: u64, unit: u64) -> u32 {
    let units = (bytes / unit).max(u64::from(bytes > 0));
    // Java's int.
    units.min(i32::MAX as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_hbase_does() {
        let of_mib = |bytes| rounded(bytes, MIB);
        assert_eq!(
            [0, 1, MIB - 1, MIB, 2 * MIB - 1, 2 * MIB].map(of_mib),
            [0, 1, 1, 1, 1, 2]
        );
        assert_eq!(rounded(u64::MAX, KIB), i32::MAX as u32);
    }
}
