//! Basalt's own service: the calls that HBase's two lack.

use std::sync::Arc;

use basalt_engine::engine::{RegionStats, Work};
use basalt_engine::jobs::{JobKind, RunningJob};
use basalt_idl::admin::{self, Method, args};
use basalt_idl::wire::WireError;
use basalt_idl::{Call, Decode};
use bytes::Bytes;

use super::codec::{Codec, Reply};
use super::{faults, from_thrift, quotas, snapshots};
use crate::cluster::regions::{self, Target};
use crate::server::Server;
use crate::service::{Failure, places, testing};

/// Answers one call. All of these may take long or walk over all regions, so they run on the pool.
pub(super) async fn call<P: Codec>(
    server: &Arc<Server>,
    method: Method,
    mut reader: P::Reader,
    reply: &mut Reply<'_, P>,
) -> Result<(), WireError> {
    macro_rules! on_pool {
        ($args:ident, |$server:ident, $bound:ident| $handler:expr) => {{
            let $bound = args::$args::decode(&mut reader)?;
            let result: Result<<args::$args as Call>::Success, Failure> =
                server.on_pool(move |$server| $handler).await;
            reply.result::<args::$args>(result);
        }};
    }
    match method {
        Method::BasaltFlush => on_pool!(BasaltFlush, |server, args| {
            Ok(regions::target(server.engine(), &args.table)?.flush(server.engine())?)
        }),
        Method::BasaltCompact => on_pool!(BasaltCompact, |server, args| {
            let target = regions::target(server.engine(), &args.table)?;
            Ok(target.compact(server.engine(), args.family.as_deref(), args.major, args.wait)?)
        }),
        Method::BasaltPause => on_pool!(BasaltPause, |server, args| pause(server, args.work, args.paused)),
        Method::BasaltBackgroundState => {
            on_pool!(BasaltBackgroundState, |server, _args| Ok(background_state(
                server
            )));
        }
        Method::BasaltClearBlockCache => on_pool!(BasaltClearBlockCache, |server, args| {
            clear_block_cache(server, args.table.as_ref())
        }),
        Method::BasaltSplit => on_pool!(BasaltSplit, |server, args| {
            split(server, &args.table_or_region, args.split_key.as_deref())
        }),
        Method::BasaltMerge => on_pool!(BasaltMerge, |server, args| merge(server, &args.region_names)),
        Method::BasaltRegionMetrics => on_pool!(BasaltRegionMetrics, |server, args| {
            region_metrics(server, args.table.as_ref())
        }),
        Method::BasaltMemstoreState => {
            on_pool!(BasaltMemstoreState, |server, _args| Ok(memstore_state(server)));
        }
        Method::BasaltCacheState => on_pool!(BasaltCacheState, |server, _args| Ok(cache_state(server))),
        Method::BasaltServerStatus => on_pool!(BasaltServerStatus, |server, _args| Ok(server_status(server))),
        Method::BasaltMove => on_pool!(BasaltMove, |server, args| {
            places::move_region(server, &args.region_name, args.server_name.as_deref())
        }),
        Method::BasaltAssign => on_pool!(BasaltAssign, |server, args| {
            places::assign(server, &args.region_name)
        }),
        Method::BasaltUnassign => on_pool!(BasaltUnassign, |server, args| {
            places::unassign(server, &args.region_name)
        }),
        Method::BasaltBalance => on_pool!(BasaltBalance, |server, _args| places::balance(server)),
        Method::BasaltSetQuota => on_pool!(BasaltSetQuota, |server, args| quotas::set(server, &args.quota)),
        Method::BasaltListQuotas => on_pool!(BasaltListQuotas, |server, args| quotas::list(server, &args)),
        Method::BasaltSnapshot => on_pool!(BasaltSnapshot, |server, args| snapshots::take(server, &args)),
        Method::BasaltListSnapshots => {
            on_pool!(BasaltListSnapshots, |server, args| snapshots::list(server, &args));
        }
        Method::BasaltDeleteSnapshot => on_pool!(BasaltDeleteSnapshot, |server, args| {
            Ok(server.engine().delete_snapshot(&args.name)?)
        }),
        Method::BasaltCloneSnapshot => on_pool!(BasaltCloneSnapshot, |server, args| {
            let table = from_thrift::table(Some(&args.table))?;
            Ok(server.engine().clone_snapshot(&args.name, &table)?)
        }),
        Method::BasaltRestoreSnapshot => on_pool!(BasaltRestoreSnapshot, |server, args| {
            Ok(server.engine().restore_snapshot(&args.name)?)
        }),
        Method::BasaltReset => on_pool!(BasaltReset, |server, _args| testing::reset(server).map(drop)),
        Method::BasaltAdvanceClock => on_pool!(BasaltAdvanceClock, |server, args| {
            testing::advance_clock(server, args.ms)
        }),
        Method::BasaltSetFaults => on_pool!(BasaltSetFaults, |server, args| {
            faults::set_faults(server, args.faults)
        }),
        Method::BasaltFaults => on_pool!(BasaltFaults, |server, _args| faults::list_faults(server)),
    }
    Ok(())
}

/// Pauses, or ends a pause. Logs it, since no other record of the caller exists.
fn pause(server: &Server, work: admin::TBackgroundWork, paused: bool) -> Result<bool, Failure> {
    let (work, what) = match work {
        admin::TBackgroundWork::FLUSHES => (Work::Flushes, "flushes"),
        admin::TBackgroundWork::COMPACTIONS => (Work::Compactions, "compactions"),
        other => {
            return Err(Failure::illegal_argument(format!(
                "work is {}, and must be 1 (flushes) or 2 (compactions)",
                other.0
            )));
        }
    };
    let before = server.engine().pause(work, paused);
    if before != paused {
        let now = if paused { "paused" } else { "no longer paused" };
        tracing::info!("{what} are {now}");
    }
    Ok(before)
}

fn background_state(server: &Server) -> admin::TBackgroundState {
    let engine = server.engine();
    let queues = engine.queues();
    let running = engine.jobs().running();
    admin::TBackgroundState {
        running: running.iter().map(|job| to_running_job(server, job)).collect(),
        flushes: queues.flushes as i32,
        compactions: queues.compactions as i32,
        splits: queues.splits as i32,
        flushes_paused: engine.is_paused(Work::Flushes),
        compactions_paused: engine.is_paused(Work::Compactions),
    }
}

fn to_running_job(server: &Server, job: &RunningJob) -> admin::TRunningJob {
    let info = &job.info;
    admin::TRunningJob {
        kind: match info.kind {
            JobKind::Flush => admin::TJobKind::FLUSH,
            JobKind::MinorCompaction => admin::TJobKind::MINOR_COMPACTION,
            JobKind::MajorCompaction => admin::TJobKind::MAJOR_COMPACTION,
        },
        table_name: Bytes::from(info.table.to_string()),
        encoded_name: server.engine().encoded_name(info.region),
        family: info.family.clone(),
        input_bytes: info.input_bytes as i64,
        left_bytes: job.bytes_left() as i64,
        took_ms: job.took.as_millis() as i64,
    }
}

fn clear_block_cache(server: &Server, table: Option<&Bytes>) -> Result<i64, Failure> {
    let table = table.map(|table| from_thrift::table(Some(table))).transpose()?;
    Ok(server.engine().clear_block_cache(table.as_ref())? as i64)
}

/// Splits a region, or of a table the region that holds the key, or every region of it.
fn split(server: &Server, table_or_region: &[u8], key: Option<&[u8]>) -> Result<(), Failure> {
    let regions = match (regions::target(server.engine(), table_or_region)?, key) {
        (Target::Region(region), _) => vec![region],
        (Target::Table(table), Some(key)) => vec![server.engine().region_of(&table, key)?],
        (Target::Table(table), None) => server.engine().regions(&table)?,
    };
    for region in regions {
        server.engine().split_region(region.id, key)?;
    }
    Ok(())
}

fn merge(server: &Server, names: &[Bytes]) -> Result<Bytes, Failure> {
    let regions = names
        .iter()
        .map(|name| Ok(regions::region(server.engine(), name)?.id))
        .collect::<Result<Vec<_>, Failure>>()?;
    Ok(Bytes::from(server.engine().merge_regions(&regions)?.name()))
}

fn region_metrics(server: &Server, table: Option<&Bytes>) -> Result<Vec<admin::TRegionMetrics>, Failure> {
    let mut stats = server.engine().region_stats();
    if let Some(table) = table {
        let table = from_thrift::table(Some(table))?;
        server.engine().describe_table(&table)?;
        stats.retain(|stats| stats.region.table == table);
    }
    Ok(stats.iter().map(to_region_metrics).collect())
}

fn to_region_metrics(stats: &RegionStats) -> admin::TRegionMetrics {
    let region = &stats.region;
    admin::TRegionMetrics {
        table_name: Bytes::from(region.table.to_string()),
        region_name: Bytes::from(region.name()),
        encoded_name: region.encoded_name.clone(),
        start_key: Bytes::from(region.start.clone()),
        end_key: Bytes::from(region.end.clone()),
        read_requests: stats.reads as i64,
        write_requests: stats.writes as i64,
        memstore_bytes: stats.memstore_bytes as i64,
        store_files: stats.store_files as i32,
        store_file_bytes: stats.store_file_bytes as i64,
        flushes: stats.flushes as i64,
        compactions: stats.compactions as i64,
        blocked_writes: stats.blocked_writes as i64,
    }
}

fn memstore_state(server: &Server) -> admin::TMemstoreState {
    let config = &server.config().memstore;
    let mut regions: Vec<admin::TRegionMemstore> = server
        .engine()
        .region_stats()
        .iter()
        .filter(|stats| stats.memstore_bytes > 0)
        .map(|stats| admin::TRegionMemstore {
            table_name: Bytes::from(stats.region.table.to_string()),
            region_name: Bytes::from(stats.region.name()),
            bytes: stats.memstore_bytes as i64,
        })
        .collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.bytes));
    admin::TMemstoreState {
        used_bytes: server.engine().memstore_bytes() as i64,
        limit_bytes: config.total_bytes as i64,
        flush_bytes: config.flush_bytes as i64,
        flush_queue: server.engine().queues().flushes as i32,
        blocked_writes: server.engine().counters().blocked_writes.get() as i64,
        regions,
    }
}

fn cache_state(server: &Server) -> admin::TCacheState {
    let usage = server.engine().cache_usage();
    let [single, multi, in_memory] = usage.bytes.map(|bytes| bytes as i64);
    admin::TCacheState {
        capacity_bytes: usage.capacity_bytes as i64,
        used_bytes: single + multi + in_memory + usage.pinned_bytes as i64,
        blocks: usage.blocks.iter().sum::<u64>() as i64,
        single_access_bytes: single,
        multi_access_bytes: multi,
        in_memory_bytes: in_memory,
        hits: usage.hits.iter().sum::<u64>() as i64,
        misses: usage.misses as i64,
        evictions: usage.evictions.iter().sum::<u64>() as i64,
    }
}

fn server_status(server: &Server) -> admin::TServerStatus {
    let engine = server.engine();
    let stats = engine.region_stats();
    let sum = |figure: fn(&RegionStats) -> u64| stats.iter().map(figure).sum::<u64>() as i64;
    let queues = engine.queues();
    admin::TServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cluster_id: engine.cluster_id().to_string(),
        started_ms: server.start_code(),
        uptime_ms: server.uptime().as_millis() as i64,
        data_dir: server.config().data.dir.display().to_string(),
        thrift_address: Some(server.thrift_address().to_string()),
        namespaces: engine.namespaces().len() as i32,
        tables: engine
            .tables()
            .iter()
            .filter(|(table, _)| !table.name.is_system())
            .count() as i32,
        regions: stats.len() as i32,
        store_files: sum(|stats| stats.store_files),
        store_file_bytes: sum(|stats| stats.store_file_bytes),
        memstore_bytes: engine.memstore_bytes() as i64,
        open_scanners: server.sessions().len() as i32,
        flushes: engine.counters().flushes.get() as i64,
        compactions: (engine.counters().minor_compactions.get() + engine.counters().major_compactions.get())
            as i64,
        background_jobs: (queues.flushes + queues.compactions + queues.splits) as i32,
        rehearsal_servers: server.admission().capacity().rehearsal().map(|_| {
            let names = engine.servers().iter();
            names.map(ToString::to_string).collect()
        }),
    }
}
