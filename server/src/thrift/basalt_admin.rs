//! The handlers of Basalt's own service: the calls that HBase's two lack. All of these may take long or
//! walk over all regions, so they are for administration.

use std::sync::Arc;

use basalt_engine::SnapshotMeta;
use basalt_engine::engine::{RegionStats, ServerName, Work};
use basalt_engine::filter::JavaRegex;
use basalt_engine::jobs::{JobKind, RunningJob};
use basalt_engine::schema::TableName;
use basalt_idl::admin::{self, AdminHandlers, ReadHandlers, WriteHandlers, args};
use bytes::Bytes;

use super::handlers::{Context, Result};
use super::{faults, from_thrift};
use crate::limits::capacity::{Owner, UserScope};
use crate::observe::heat::{HotKind, HotRow};
use crate::service::admin::{cluster, regions, snapshots, tables};
use crate::service::quotas::{Change, Listed, Wanted};
use crate::service::{AdminCall, Failure};

impl ReadHandlers for Context<'_> {}

impl WriteHandlers for Context<'_> {}

impl AdminHandlers<Failure> for AdminCall {
    fn basaltFlush(&self, args: args::BasaltFlush) -> Result<()> {
        regions::flush(self, &args.table)
    }

    fn basaltCompact(&self, args: args::BasaltCompact) -> Result<()> {
        regions::compact(self, &args.table, args.family.as_deref(), args.major, args.wait)
    }

    fn basaltPause(&self, args: args::BasaltPause) -> Result<bool> {
        let work = match args.work {
            admin::TBackgroundWork::FLUSHES => Work::Flushes,
            admin::TBackgroundWork::COMPACTIONS => Work::Compactions,
            other => {
                return Err(Failure::illegal_argument(format!(
                    "work is {}, and must be 1 (flushes) or 2 (compactions)",
                    other.0
                )));
            }
        };
        cluster::pause(self, work, args.paused)
    }

    fn basaltBackgroundState(&self, _: args::BasaltBackgroundState) -> Result<admin::TBackgroundState> {
        let state = cluster::background(self)?;
        let running = state.running.iter();
        Ok(admin::TBackgroundState {
            running: running
                .map(|(job, region)| to_running_job(job, region.as_deref()))
                .collect(),
            flushes: state.queues.flushes as i32,
            compactions: state.queues.compactions as i32,
            splits: state.queues.splits as i32,
            flushes_paused: state.flushes_paused,
            compactions_paused: state.compactions_paused,
        })
    }

    fn basaltClearBlockCache(&self, args: args::BasaltClearBlockCache) -> Result<i64> {
        let table = optional_table(args.table.as_ref())?;
        Ok(cluster::clear_block_cache(self, table.as_ref())? as i64)
    }

    /// Splits a region, or of a table the region that holds the key, or every region of it.
    fn basaltSplit(&self, args: args::BasaltSplit) -> Result<()> {
        regions::split(self, &args.table_or_region, args.split_key.as_deref())
    }

    fn basaltMerge(&self, args: args::BasaltMerge) -> Result<Bytes> {
        let names = args.region_names.iter();
        let regions = names
            .map(|name| regions::printed(self, name).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        Ok(Bytes::from(regions::merge(self, &regions)?.name()))
    }

    fn basaltRegionMetrics(&self, args: args::BasaltRegionMetrics) -> Result<Vec<admin::TRegionMetrics>> {
        let table = optional_table(args.table.as_ref())?;
        let stats = regions::stats(self, table.as_ref())?;
        Ok(stats.iter().map(to_region_metrics).collect())
    }

    fn basaltHotRows(&self, args: args::BasaltHotRows) -> Result<admin::THotRowsOfTable> {
        let table = from_thrift::table(Some(&args.table))?;
        let hot = tables::hot_rows(self, &table, args.limit)?;
        let [reads, writes] = hot.kinds;
        Ok(admin::THotRowsOfTable {
            from_ms: hot.from_ms as i64,
            to_ms: hot.to_ms as i64,
            reads: to_hot_rows(reads),
            writes: to_hot_rows(writes),
        })
    }

    fn basaltMemstoreState(&self, _: args::BasaltMemstoreState) -> Result<admin::TMemstoreState> {
        let config = &self.server().config().memstore;
        let state = cluster::memstores(self)?;
        let regions = state
            .regions
            .iter()
            .map(|stats| admin::TRegionMemstore {
                table_name: Bytes::from(stats.region.table.to_string()),
                region_name: Bytes::from(stats.region.name()),
                bytes: stats.memstore_bytes as i64,
            })
            .collect();
        Ok(admin::TMemstoreState {
            used_bytes: state.used_bytes as i64,
            limit_bytes: config.total_bytes as i64,
            flush_bytes: config.flush_bytes as i64,
            flush_queue: state.flush_queue as i32,
            blocked_writes: state.blocked_writes as i64,
            regions,
        })
    }

    fn basaltCacheState(&self, _: args::BasaltCacheState) -> Result<admin::TCacheState> {
        let usage = cluster::cache(self)?;
        let [single, multi, in_memory, pinned] = usage.bytes.map(|bytes| bytes as i64);
        Ok(admin::TCacheState {
            capacity_bytes: usage.capacity_bytes as i64,
            used_bytes: single + multi + in_memory + pinned,
            blocks: usage.blocks as i64,
            single_access_bytes: single,
            multi_access_bytes: multi,
            in_memory_bytes: in_memory,
            hits: usage.hits as i64,
            misses: usage.misses as i64,
            evictions: usage.evictions as i64,
        })
    }

    fn basaltServerStatus(&self, _: args::BasaltServerStatus) -> Result<admin::TServerStatus> {
        let server = self.server();
        let (status, stats) = (cluster::status(self)?, regions::stats(self, None)?);
        let sum = |figure: fn(&RegionStats) -> u64| stats.iter().map(figure).sum::<u64>() as i64;
        let queues = &status.queues;
        Ok(admin::TServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster_id: cluster::cluster_id(self)?,
            started_ms: server.instance().start_code(),
            uptime_ms: server.instance().uptime().as_millis() as i64,
            data_dir: server.config().data.dir.display().to_string(),
            thrift_address: Some(server.instance().main_address().to_string()),
            namespaces: status.namespaces as i32,
            tables: status.user_tables as i32,
            regions: stats.len() as i32,
            store_files: sum(|stats| stats.store_files),
            store_file_bytes: sum(|stats| stats.store_file_bytes),
            memstore_bytes: status.memstore_bytes as i64,
            open_scanners: server.sessions().len() as i32,
            flushes: status.flushes as i64,
            compactions: status.compactions as i64,
            background_jobs: (queues.flushes + queues.compactions + queues.splits) as i32,
            rehearsal_servers: server.admission().capacity().rehearsal().map(|_| {
                let names = server.placement().servers().iter();
                names.map(ToString::to_string).collect()
            }),
        })
    }

    /// Moves a region to the server of that name, or to the least loaded one.
    fn basaltMove(&self, args: args::BasaltMove) -> Result<()> {
        let region = regions::printed(self, &args.region_name)?;
        check_rehearsal(self)?;
        let to = args.server_name.as_deref();
        let to = to.map(|name| position(self, name)).transpose()?;
        regions::move_to(self, &region, to)
    }

    fn basaltAssign(&self, args: args::BasaltAssign) -> Result<()> {
        check_rehearsal(self)?;
        regions::assign(self, &regions::printed(self, &args.region_name)?)
    }

    fn basaltUnassign(&self, args: args::BasaltUnassign) -> Result<()> {
        check_rehearsal(self)?;
        regions::unassign(self, &regions::printed(self, &args.region_name)?)
    }

    /// Evens out the regions; returns how many were moved.
    fn basaltBalance(&self, _: args::BasaltBalance) -> Result<i32> {
        check_rehearsal(self)?;
        let moved = regions::balance(self, false)?;
        Ok(i32::try_from(moved).unwrap_or(i32::MAX))
    }

    fn basaltSetQuota(&self, args: args::BasaltSetQuota) -> Result<()> {
        let quota = args.quota;
        let change = Change {
            user: quota.user_name,
            table: optional_table(quota.table_name.as_ref())?,
            namespace: quota.ns_name,
            kind: quota.throttle_type.map(|kind| kind.0),
            limit: quota.soft_limit,
            unit: quota.time_unit.map(|unit| unit.0),
            scope: quota.scope.map(|scope| scope.0),
        };
        cluster::set_quota(self, change)
    }

    fn basaltListQuotas(&self, args: args::BasaltListQuotas) -> Result<Vec<admin::TThrottle>> {
        let wanted = Wanted {
            user: args.user_name.as_deref(),
            table: args.table_name.as_deref(),
            namespace: args.ns_name.as_deref(),
        };
        let listed = cluster::list_quotas(self, wanted)?;
        Ok(listed.iter().map(to_throttle).collect())
    }

    fn basaltSnapshot(&self, args: args::BasaltSnapshot) -> Result<()> {
        let ttl_seconds = u64::try_from(args.ttl_seconds).map_err(|_| {
            Failure::illegal_argument(format!(
                "the time to live is {} s and must be at least 0, which means for ever",
                args.ttl_seconds
            ))
        })?;
        let table = from_thrift::table(Some(&args.table))?;
        snapshots::take(self, &table, &args.name, args.flush, ttl_seconds)
    }

    /// Snapshots whose whole name and table's name match the patterns, as HBase matches them
    /// (`Admin.listTableSnapshots`).
    fn basaltListSnapshots(&self, args: args::BasaltListSnapshots) -> Result<Vec<admin::TSnapshot>> {
        let pattern = |text: Option<String>| text.as_deref().map(JavaRegex::whole).transpose();
        let (name, table) = (pattern(args.name)?, pattern(args.table_name)?);
        let matches = |pattern: &Option<JavaRegex>, text: &str| {
            let pattern = pattern.as_ref();
            pattern.is_none_or(|pattern| pattern.is_found_in(text.as_bytes()))
        };
        let mut listed = Vec::new();
        for snapshot in snapshots::list(self)? {
            let of = snapshot.descriptor.name.to_string();
            if matches(&name, &snapshot.name) && matches(&table, &of) {
                listed.push(to_snapshot(&snapshot, of));
            }
        }
        Ok(listed)
    }

    fn basaltDeleteSnapshot(&self, args: args::BasaltDeleteSnapshot) -> Result<()> {
        snapshots::delete(self, &args.name)
    }

    fn basaltCloneSnapshot(&self, args: args::BasaltCloneSnapshot) -> Result<()> {
        let table = from_thrift::table(Some(&args.table))?;
        snapshots::clone(self, &args.name, &table)
    }

    fn basaltRestoreSnapshot(&self, args: args::BasaltRestoreSnapshot) -> Result<()> {
        snapshots::restore(self, &args.name)
    }

    fn basaltReset(&self, args: args::BasaltReset) -> Result<()> {
        cluster::reset(self, args.keep_clock).map(drop)
    }

    fn basaltAdvanceClock(&self, args: args::BasaltAdvanceClock) -> Result<i64> {
        cluster::advance_clock(self, args.ms)
    }

    fn basaltSetFaults(&self, args: args::BasaltSetFaults) -> Result<Vec<admin::TFault>> {
        let armed = cluster::set_faults(self, args.faults.into_iter().map(faults::from_thrift))?;
        Ok(armed.iter().map(faults::to_thrift).collect())
    }

    fn basaltFaults(&self, _: args::BasaltFaults) -> Result<Vec<admin::TFault>> {
        Ok(cluster::list_faults(self)?
            .iter()
            .map(faults::to_thrift)
            .collect())
    }
}

fn optional_table(name: Option<&Bytes>) -> Result<Option<TableName>> {
    name.map(|name| from_thrift::table(Some(name))).transpose()
}

fn check_rehearsal(call: &AdminCall) -> Result<()> {
    cluster::operate(call, |server| match server.admission().capacity().rehearsal() {
        Some(_) => Ok(()),
        None => Err(Failure::do_not_retry(
            "there is one server, which has all regions; a rehearsal (rehearsal.servers) makes it look like several",
        )),
    })
}

/// The position of the server called so. The start code may be left out, and the port.
fn position(call: &AdminCall, name: &str) -> Result<u16> {
    let is_called = |known: &ServerName| {
        let full = known.to_string();
        full == name || full.strip_prefix(name).is_some_and(|rest| rest.starts_with(','))
    };
    regions::server_position(call, is_called).ok_or_else(|| {
        Failure::illegal_argument(format!(
            "no server is called {name:?}; they are called like {}",
            call.server().placement().servers()[0]
        ))
    })
}

fn to_throttle(listed: &Listed) -> admin::TThrottle {
    let Listed { owner, kind, setting } = listed;
    let (user_name, table_name, ns_name) = match owner {
        Owner::Namespace(namespace) => (None, None, Some(namespace)),
        Owner::Table(table) => (None, Some(table), None),
        Owner::User { name, scope } => match scope {
            UserScope::All => (Some(name), None, None),
            UserScope::Namespace(namespace) => (Some(name), None, Some(namespace)),
            UserScope::Table(table) => (Some(name), Some(table), None),
        },
    };
    admin::TThrottle {
        user_name: user_name.cloned(),
        table_name: table_name.map(|table| Bytes::from(table.to_string())),
        ns_name: ns_name.cloned(),
        throttle_type: Some(admin::TThrottleType(*kind as i32)),
        soft_limit: Some(i64::try_from(setting.limit.amount.get()).unwrap_or(i64::MAX)),
        time_unit: Some(admin::TTimeUnit(setting.limit.unit as i32)),
        scope: Some(if setting.is_cluster {
            admin::TQuotaScope::CLUSTER
        } else {
            admin::TQuotaScope::MACHINE
        }),
    }
}

fn to_snapshot(snapshot: &SnapshotMeta, table: String) -> admin::TSnapshot {
    let files = snapshot.files();
    admin::TSnapshot {
        name: snapshot.name.clone(),
        table_name: Bytes::from(table),
        created_ms: snapshot.created_ms as i64,
        ttl_seconds: i64::try_from(snapshot.ttl_seconds).unwrap_or(i64::MAX),
        regions: snapshot.regions.len() as i32,
        files: files.len() as i32,
        bytes: files.values().map(|(_, file)| file.bytes).sum::<u64>() as i64,
    }
}

fn to_running_job(job: &RunningJob, region: Option<&str>) -> admin::TRunningJob {
    let info = &job.info;
    admin::TRunningJob {
        kind: match info.kind {
            JobKind::Flush => admin::TJobKind::FLUSH,
            JobKind::MinorCompaction => admin::TJobKind::MINOR_COMPACTION,
            JobKind::MajorCompaction => admin::TJobKind::MAJOR_COMPACTION,
        },
        table_name: Bytes::from(info.table.to_string()),
        encoded_name: region.map(str::to_owned),
        family: info.family.clone(),
        input_bytes: info.input_bytes as i64,
        left_bytes: job.bytes_left() as i64,
        took_ms: job.took.as_millis() as i64,
    }
}

fn to_hot_rows(kind: HotKind) -> admin::THotRows {
    let row = |row: HotRow| admin::THotRow {
        requests: row.count.round() as i64,
        max_error: row.error.round() as i64,
        since_ms: row.since_ms as i64,
        row: Bytes::from(row.key),
    };
    admin::THotRows {
        requests: kind.total.round() as i64,
        samples: kind.samples as i64,
        rows: kind.rows.into_iter().map(row).collect(),
    }
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
