//! The engine's figures for a scrape.

use basalt_engine::Engine;
use basalt_engine::engine::{RegionStats, Work};
use basalt_engine::jobs::{JobKind, RunningJob};
use basalt_engine::schema::TableName;
use metrics::{counter, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::{names, process};
use crate::observe::heat::{Heat, Hottest};

const PRIORITIES: [&str; 3] = ["single", "multi", "in_memory"];

/// The figures of a server without tables, in Prometheus' text format.
pub(crate) fn render_without_engine(handle: &PrometheusHandle) -> String {
    counter!(names::LOG_LINES_LOST).absolute(crate::observe::log_queue::dropped());
    process::publish();
    handle.render()
}

/// Everything, in Prometheus' text format.
pub(crate) fn render(
    handle: &PrometheusHandle,
    engine: &Engine,
    memstore_limit_bytes: u64,
    max_regions: usize,
    heat: &Heat,
) -> String {
    publish_engine(engine, memstore_limit_bytes);
    counter!(names::LOG_LINES_LOST).absolute(crate::observe::log_queue::dropped());
    process::publish();
    let mut text = handle.render();
    text.push_str(&render_regions(
        &engine.region_stats(),
        max_regions,
        &heat.hottest(),
    ));
    text
}

/// Engine-wide figures, into the installed recorder.
fn publish_engine(engine: &Engine, memstore_limit_bytes: u64) {
    let counters = engine.counters();
    for (name, value) in [
        (names::WAL_APPENDS, counters.wal_appends.get()),
        (names::WAL_BYTES, counters.wal_bytes.get()),
        (names::WAL_GROUPS, counters.wal_groups.get()),
        (names::WAL_SYNCS, counters.wal_syncs.get()),
        (names::DELAYED_WRITES, counters.delayed_writes.get()),
        (names::BLOCKED_WRITES, counters.blocked_writes.get()),
        (names::SUSPENDED_WRITES, counters.suspended_writes.get()),
        (names::STALLED_WRITES, counters.stalled_writes.get()),
        (names::DAMAGED_READS, counters.damaged_reads.get()),
        (names::FLUSHES, counters.flushes.get()),
        (names::FLUSH_FAILURES, counters.flush_failures.get()),
        (names::FLUSH_BYTES, counters.flush_bytes.get()),
        (names::COMPACTION_FAILURES, counters.compaction_failures.get()),
        (names::COMPACTION_READ_BYTES, counters.compaction_read_bytes.get()),
        (
            names::COMPACTION_WRITTEN_BYTES,
            counters.compaction_written_bytes.get(),
        ),
        (names::SPLITS, counters.splits.get()),
        (names::MERGES, counters.merges.get()),
        (names::BLOCKS_READ_AHEAD, counters.blocks_read_ahead.get()),
        (names::BLOOM_CHECKS, counters.bloom_checks.get()),
        (names::BLOOM_SKIPS, counters.bloom_skips.get()),
        (names::BLOOM_FALSE_POSITIVES, counters.bloom_false_positives.get()),
    ] {
        counter!(name).absolute(value);
    }
    counter!(names::COMPACTIONS, "kind" => "minor").absolute(counters.minor_compactions.get());
    counter!(names::COMPACTIONS, "kind" => "major").absolute(counters.major_compactions.get());

    publish_background(engine);
    gauge!(names::MEMSTORE_BYTES).set(engine.memstore_bytes() as f64);
    gauge!(names::MEMSTORE_LIMIT_BYTES).set(memstore_limit_bytes as f64);
    gauge!(names::MEMSTORE_PINNED_BYTES).set(engine.pinned_memstore_bytes() as f64);
    gauge!(names::MEMSTORE_KEPT_BYTES).set(engine.kept_memstore_bytes() as f64);
    gauge!(names::NONCE_BYTES).set(engine.nonce_bytes().0 as f64);
    let stalled = engine.stalled().unwrap_or_default();
    gauge!(names::WAL_STALLED_SECONDS).set(stalled.as_secs_f64());
    let disk = engine.disk();
    gauge!(names::DISK_TOTAL_BYTES).set(disk.total_bytes as f64);
    gauge!(names::DISK_AVAILABLE_BYTES).set(disk.available_bytes as f64);
    gauge!(names::DISK_LOW_WATER_BYTES).set(disk.low_water_bytes as f64);
    gauge!(names::CLOCK_BEHIND_SECONDS).set(engine.ahead_of_clock().as_secs_f64());
    gauge!(names::WRITES_SUSPENDED).set(f64::from(disk.suspended.is_some()));
    let (read_point, last_assigned) = engine.read_point();
    gauge!(names::READ_POINT_LAG).set(last_assigned.0.saturating_sub(read_point.0) as f64);
    let (first_segment, last_segment) = engine.wal_segments();
    gauge!(names::WAL_SEGMENTS).set((last_segment + 1).saturating_sub(first_segment) as f64);
    let oldest = engine.oldest_unflushed().unwrap_or_default();
    gauge!(names::OLDEST_UNFLUSHED_SECONDS).set(oldest.as_secs_f64());
    let user_tables = engine
        .tables()
        .iter()
        .filter(|(table, _)| !table.name.is_system())
        .count();
    gauge!(names::TABLES).set(user_tables as f64);
    let snapshots = engine.snapshots();
    gauge!(names::SNAPSHOTS).set(snapshots.len() as f64);
    let bytes = snapshots.iter().map(|snapshot| snapshot.bytes());
    gauge!(names::SNAPSHOT_BYTES).set(bytes.sum::<u64>() as f64);

    let handles = engine.handle_usage();
    gauge!(names::OPEN_FILES).set(handles.open as f64);
    gauge!(names::OPEN_FILES_LIMIT).set(handles.limit as f64);
    counter!(names::FILE_OPENS).absolute(handles.opens);
    counter!(names::FILE_EVICTIONS).absolute(handles.evictions);

    let cache = engine.cache_usage();
    counter!(names::CACHE_MISSES).absolute(cache.misses);
    gauge!(names::CACHE_PINNED_BYTES).set(cache.pinned_bytes as f64);
    gauge!(names::CACHE_CAPACITY_BYTES).set(cache.capacity_bytes as f64);
    for (index, priority) in PRIORITIES.into_iter().enumerate() {
        counter!(names::CACHE_HITS, "priority" => priority).absolute(cache.hits[index]);
        counter!(names::CACHE_EVICTIONS, "priority" => priority).absolute(cache.evictions[index]);
        gauge!(names::CACHE_BYTES, "priority" => priority).set(cache.bytes[index] as f64);
        gauge!(names::CACHE_BLOCKS, "priority" => priority).set(cache.blocks[index] as f64);
    }
}

/// Queued and running background work.
fn publish_background(engine: &Engine) {
    let queues = engine.queues();
    for (kind, length) in [
        ("flush", queues.flushes),
        ("compaction", queues.compactions - queues.long_compactions),
        ("long_compaction", queues.long_compactions),
        ("split", queues.splits),
    ] {
        gauge!(names::QUEUE, "kind" => kind).set(length as f64);
    }
    for (kind, work) in [("flush", Work::Flushes), ("compaction", Work::Compactions)] {
        gauge!(names::PAUSED, "kind" => kind).set(f64::from(engine.is_paused(work)));
    }
    let running = engine.jobs().running();
    for (kind, flushes) in [("flush", true), ("compaction", false)] {
        let of_kind = running
            .iter()
            .filter(|running| (running.info.kind == JobKind::Flush) == flushes);
        let left: u64 = of_kind.map(RunningJob::bytes_left).sum();
        gauge!(names::LEFT_BYTES, "kind" => kind).set(left as f64);
    }
}

/// The hottest row of each busy table: its part of the table's reads, and of its writes.
type HottestRows = [(TableName, [Option<Hottest>; 2])];

/// Figures with a region's or table's label, through a recorder that ends with this scrape: what is gone
/// leaves no series behind.
fn render_regions(stats: &[RegionStats], max_regions: usize, hottest: &HottestRows) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        names::describe_all();
        gauge!(names::REGIONS).set(stats.len() as f64);
        let damaged = stats.iter().filter(|region| region.damaged_files > 0).count();
        gauge!(names::REGIONS_DAMAGED).set(damaged as f64);
        for region in stats.iter().take(max_regions) {
            publish_region(
                &region.region.table.to_string(),
                &region.region.encoded_name,
                std::slice::from_ref(region),
            );
        }
        if let Some(others) = stats.get(max_regions..).filter(|others| !others.is_empty()) {
            publish_region("other", "other", others);
        }
        for (table, kinds) in hottest {
            publish_hottest(table, kinds);
        }
    });
    recorder.handle().render()
}

/// Metrics name no row: keys are data, and each would be a series.
fn publish_hottest(table: &TableName, kinds: &[Option<Hottest>; 2]) {
    for (kind, hottest) in ["reads", "writes"].into_iter().zip(kinds) {
        let labels = [("table", table.to_string()), ("kind", kind.to_owned())];
        if let Some(hottest) = hottest {
            gauge!(names::HOTTEST_ROW_SHARE, &labels).set(hottest.share);
            gauge!(names::HOTTEST_ROW_REQUESTS, &labels).set(hottest.per_second);
        }
    }
}

/// The sums over `regions`, under one pair of labels.
fn publish_region(table: &str, region: &str, regions: &[RegionStats]) {
    let labels = [("table", table.to_owned()), ("region", region.to_owned())];
    let sum = |figure: fn(&RegionStats) -> u64| regions.iter().map(figure).sum::<u64>();
    counter!(names::REGION_READS, &labels).absolute(sum(|region| region.reads));
    counter!(names::REGION_WRITES, &labels).absolute(sum(|region| region.writes));
    counter!(names::REGION_BLOCKED_WRITES, &labels).absolute(sum(|region| region.blocked_writes));
    gauge!(names::REGION_MEMSTORE_BYTES, &labels).set(sum(|region| region.memstore_bytes) as f64);
    gauge!(names::REGION_STORE_FILES, &labels).set(sum(|region| region.store_files) as f64);
    gauge!(names::REGION_STORE_FILE_BYTES, &labels).set(sum(|region| region.store_file_bytes) as f64);
}

#[cfg(test)]
mod tests {
    use basalt_engine::engine::{FileSizes, RegionInfo};
    use basalt_engine::id::RegionId;
    use basalt_engine::schema::TableName;

    use super::*;

    fn stats(id: u64) -> RegionStats {
        RegionStats {
            region: RegionInfo {
                id: RegionId(id),
                table: TableName::parse(b"t").unwrap(),
                start: Vec::new(),
                end: Vec::new(),
                created_ms: 1,
                encoded_name: format!("region-{id}"),
            },
            reads: 0,
            filtered_reads: 0,
            writes: id,
            blocked_writes: 0,
            memstore_bytes: 0,
            store_files: 0,
            store_file_bytes: 0,
            file_sizes: FileSizes::default(),
            flushed: Vec::new(),
            damaged_files: 0,
            flushes: 0,
            last_major_compaction_ms: 0,
            compactions: 0,
        }
    }

    /// Regions beyond the cap share one series, which carries their sum: a table of ten thousand
    /// regions does not overload Prometheus, and every write is counted.
    #[test]
    fn regions_beyond_the_cap_are_one_series() {
        let regions: Vec<_> = (1..=5).map(stats).collect();
        let writes = |max_regions| {
            let text = render_regions(&regions, max_regions, &[]);
            let mut samples: Vec<_> = text
                .lines()
                .filter_map(|line| line.strip_prefix(names::REGION_WRITES))
                .filter(|line| line.starts_with('{'))
                .map(str::to_owned)
                .collect();
            samples.sort();
            samples
        };
        assert_eq!(
            writes(2),
            [
                r#"{table="other",region="other"} 12"#,
                r#"{table="t",region="region-1"} 1"#,
                r#"{table="t",region="region-2"} 2"#,
            ]
        );
        assert_eq!(writes(0), [r#"{table="other",region="other"} 15"#]);
        assert_eq!(writes(5).len(), 5);
        assert!(!writes(5).concat().contains("other"));
        assert!(render_regions(&regions, 2, &[]).contains(&format!("{} 5", names::REGIONS)));
    }
}
