//! Every metric of ours: name, labels, meaning. docs/metrics.md is this list in prose.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Declares names as constants, and a list of all with kind, unit and help text.
macro_rules! metric_names {
    ($($kind:ident $const:ident = $name:literal, $unit:expr, $help:literal;)+) => {
        $(#[doc = $help] pub(crate) const $const: &str = $name;)+

        const ALL: &[(&str, &str, Unit, &str)] = &[$((stringify!($kind), $name, $unit, $help)),+];
    };
}

pub(super) use metric_names;

/// Registers help texts and units with the installed recorder.
pub(crate) fn describe_all() {
    describe(ALL);
}

/// Registers these metrics, each given by kind, name, unit and help text.
pub(super) fn describe(metrics: &[(&str, &'static str, Unit, &'static str)]) {
    for &(kind, name, unit, help) in metrics {
        match kind {
            "counter" => describe_counter!(name, unit, help),
            "gauge" => describe_gauge!(name, unit, help),
            "histogram" => describe_histogram!(name, unit, help),
            other => unreachable!("{name} is a {other}, which is no kind of metric"),
        }
    }
}

metric_names! {
    gauge BUILD_INFO = "basalt_build_info", Unit::Count, "Always 1; the labels say which build runs.";
    counter LOG_LINES_LOST = "basalt_log_lines_lost_total", Unit::Count,
        "Log lines that standard error did not take: its reader is gone, or takes them too slowly.";

    counter REQUESTS = "basalt_requests_total", Unit::Count, "Calls answered, failed ones too: Thrift and native RPC.";
    counter FAILED_REQUESTS = "basalt_failed_requests_total", Unit::Count,
        "Calls answered with an exception. Every method has a series from the start.";
    counter ERRORS = "basalt_errors_total", Unit::Count,
        "Calls answered with an exception, by its class. A series begins with its first error.";
    histogram REQUEST_SECONDS = "basalt_request_duration_seconds", Unit::Seconds,
        "From the last byte of a call to the last byte of its answer handed to the socket.";
    gauge CONNECTIONS = "basalt_connections", Unit::Count, "Open connections of the main port: Thrift, native RPC and ZooKeeper.";
    counter CONNECTIONS_ACCEPTED = "basalt_connections_accepted_total", Unit::Count,
        "Connections accepted by the main port, also those that were closed at once.";
    counter CONNECTIONS_REJECTED = "basalt_connections_rejected_total", Unit::Count,
        "Connections of the main port closed at once because server.max_connections was reached, or the port's share of the limit of open files, or security.unauthenticated_per_address.";
    counter PROTOCOL_ERRORS = "basalt_protocol_errors_total", Unit::Count,
        "Connections closed, and HTTP requests refused, because of bytes that are no acceptable message.";
    counter RECEIVED_BYTES = "basalt_received_bytes_total", Unit::Bytes,
        "Bytes read from connections of the main port, and of Thrift messages over HTTP.";
    counter SENT_BYTES = "basalt_sent_bytes_total", Unit::Bytes,
        "Bytes written to connections of the main port, and of Thrift messages over HTTP.";
    counter LOGINS = "basalt_logins_total", Unit::Count,
        "Logins of certificates, tokens and passwords over all protocols, by outcome: `ok` or `failed`.";
    counter STRANGERS_REJECTED = "basalt_unauthenticated_rejected_total", Unit::Count,
        "Connections of all ports closed at once because their address had security.unauthenticated_per_address that had not logged in.";
    gauge CERTIFICATE_EXPIRES = "basalt_certificate_expires_timestamp_seconds", Unit::Seconds,
        "End of the server certificate's validity, in seconds since 1970. Only with TLS.";
    counter AUDIT_EVENTS_LOST = "basalt_audit_events_lost_total", Unit::Count,
        "Events that the audit log could not keep up with, or not write.";
    gauge HTTP_CONNECTIONS = "basalt_http_connections", Unit::Count, "Open connections of the HTTP port.";
    counter HTTP_CONNECTIONS_ACCEPTED = "basalt_http_connections_accepted_total", Unit::Count,
        "Connections accepted by the HTTP port, also those that were closed at once.";
    counter HTTP_CONNECTIONS_REJECTED = "basalt_http_connections_rejected_total", Unit::Count,
        "Connections of the HTTP port closed at once because http.max_connections was reached, or the HTTP port's share of the limit of open files, or security.unauthenticated_per_address.";

    counter REFUSED_CALLS = "basalt_refused_calls_total", Unit::Count,
        "Data calls refused with RegionTooBusyException before any work was done, by the limit that was reached.";
    gauge REQUEST_MEMORY_BYTES = "basalt_request_memory_bytes", Unit::Bytes, "Messages and results of calls in hand.";
    gauge REQUEST_MEMORY_LIMIT_BYTES = "basalt_request_memory_limit_bytes", Unit::Bytes, "requests.memory_bytes.";
    gauge WAITING_CALLS = "basalt_waiting_calls", Unit::Count, "Calls that wait for a thread of the blocking pool.";
    gauge NETWORK_DELAY_SECONDS = "basalt_network_delay_seconds", Unit::Seconds,
        "How late the network threads were at least, all through the last window of 200 milliseconds.";

    histogram HELD_BACK_SECONDS = "basalt_held_back_seconds", Unit::Seconds,
        "For how long calls were held back because a limit was reached, by whose limit it was.";
    counter THROTTLED_CALLS = "basalt_throttled_calls_total", Unit::Count,
        "Calls refused with RpcThrottlingException because they would have been held back for too long, by whose limit it was.";
    counter REHEARSAL_REQUESTS = "basalt_rehearsal_requests_total", Unit::Count,
        "Rows that a virtual server of a rehearsal was charged with, by kind.";
    counter REHEARSAL_BYTES = "basalt_rehearsal_bytes_total", Unit::Bytes,
        "Bytes that a virtual server of a rehearsal was charged with, by kind.";

    histogram USER_CODE_SECONDS = "basalt_user_code_duration_seconds", Unit::Seconds,
        "Calls of users' classes in the Java host, with the wait for it, by class. Only classes that were loaded have a series.";
    counter USER_CODE_ERRORS = "basalt_user_code_errors_total", Unit::Count,
        "Calls of users' classes without a result, by class and reason.";
    counter USER_CODE_STARTS = "basalt_user_code_starts_total", Unit::Count, "Starts of the Java host.";
    counter USER_CODE_FAILURES = "basalt_user_code_failures_total", Unit::Count,
        "Java hosts that have ended, were late with an answer, or did not start.";

    counter SINK_BATCHES = "basalt_replication_sink_batches_total", Unit::Count,
        "Batches of replication sources that were applied.";
    counter SINK_FAILED_BATCHES = "basalt_replication_sink_failed_batches_total", Unit::Count,
        "Batches of replication sources that were refused. The source sends them again.";
    counter SINK_EDITS = "basalt_replication_sink_edits_total", Unit::Count,
        "Edits of the logs of other clusters that were applied.";
    counter SINK_FILES = "basalt_replication_sink_loaded_files_total", Unit::Count,
        "Files of bulk loads of other clusters that were loaded.";
    counter SINK_DROPPED = "basalt_replication_sink_dropped_total", Unit::Count,
        "Cells of replication sources that were dropped, by kind: notes of the source's log, and rows of system tables.";
    gauge SINK_AGE_SECONDS = "basalt_replication_sink_age_seconds", Unit::Seconds,
        "Time from the write of the last replicated edit at its source until it was durable here.";
    gauge SINK_WRITTEN_SECONDS = "basalt_replication_sink_written_timestamp_seconds", Unit::Seconds,
        "When the last replicated edit was written at its source, in seconds since 1970; 0 if there was none.";

    gauge SOURCE_LAG_SECONDS = "basalt_replication_lag_seconds", Unit::Seconds,
        "Age of the first edit that waits for a replication peer; 0 when none waits.";
    gauge SOURCE_KEPT_BYTES = "basalt_replication_kept_log_bytes", Unit::Bytes,
        "Bytes of the log, in whole segments, that are kept for a replication peer.";
    counter SOURCE_BATCHES = "basalt_replication_shipped_batches_total", Unit::Count,
        "Batches that a replication peer has made durable.";
    counter SOURCE_EDITS = "basalt_replication_shipped_edits_total", Unit::Count,
        "Edits of the log that a replication peer has made durable, those that were sent again included.";
    counter SOURCE_CELLS = "basalt_replication_shipped_cells_total", Unit::Count,
        "Cells of these edits.";
    counter SOURCE_BYTES = "basalt_replication_shipped_bytes_total", Unit::Bytes,
        "Bytes of these cells.";
    counter SOURCE_UNSENT = "basalt_replication_unsent_edits_total", Unit::Count,
        "Edits that were not sent to a replication peer, by reason: `filtered`, `dropped_table`, `given_up`.";
    counter SOURCE_FAILURES = "basalt_replication_failures_total", Unit::Count,
        "Attempts to send edits to a replication peer that failed. They are repeated.";
    counter PEERS_DROPPED = "basalt_replication_dropped_peers_total", Unit::Count,
        "Replication peers that were removed because the log that was kept for them had reached its limit.";

    gauge CHANGE_STREAMS = "basalt_change_streams", Unit::Count, "Open streams of changes.";
    counter CHANGE_RECORDS = "basalt_change_records_total", Unit::Count, "Records of all streams of changes.";
    gauge CHANGE_KEPT_BYTES = "basalt_change_kept_log_bytes", Unit::Bytes,
        "Bytes of the log, in whole segments, that are kept for the reader of changes that is furthest behind.";
    counter CHANGE_READERS_DROPPED = "basalt_change_dropped_readers_total", Unit::Count,
        "Readers of changes that were removed because the log that was kept for them had reached replication.max_log_bytes.";

    counter SLOW_CALLS = "basalt_slow_calls_total", Unit::Count,
        "Calls put into the slow log: slow ones and ones with large answers, by kind; a call may be both.";

    counter FAULTS_INJECTED = "basalt_test_faults_injected_total", Unit::Count,
        "Calls that met a fault that a test asked for, by the fault's kind. Only ephemeral servers have this.";

    gauge SCANNERS = "basalt_scanner_sessions", Unit::Count, "Open scanner sessions.";
    counter SCANNERS_OPENED = "basalt_scanner_sessions_opened_total", Unit::Count, "Scanner sessions opened.";
    counter SCANNERS_EXPIRED = "basalt_scanner_sessions_expired_total", Unit::Count,
        "Scanner sessions closed after scanner.lease_ms without a fetch, or at an age of scanner.max_age_ms.";

    counter REGION_READS = "basalt_region_reads_total", Unit::Count, "Rows read from the region by gets and scans.";
    counter REGION_WRITES = "basalt_region_writes_total", Unit::Count, "Row mutations applied to the region.";
    counter REGION_BLOCKED_WRITES = "basalt_region_blocked_writes_total", Unit::Count,
        "Writes the region refused because its memstore was full.";
    gauge REGION_MEMSTORE_BYTES = "basalt_region_memstore_bytes", Unit::Bytes, "Memory of the region's memstores.";
    gauge REGION_STORE_FILES = "basalt_region_store_files", Unit::Count, "Store files of the region.";
    gauge REGION_STORE_FILE_BYTES = "basalt_region_store_file_bytes", Unit::Bytes, "Size of the region's store files.";
    gauge HOTTEST_ROW_SHARE = "basalt_hottest_row_share", Unit::Count,
        "Part of a table's reads or writes of the last minutes that go to its hottest row, from 0 to 1. The row itself is on the table's page.";
    gauge HOTTEST_ROW_REQUESTS = "basalt_hottest_row_requests_per_second", Unit::Count,
        "Reads or writes of the table's hottest row, per second, in the last minutes.";
    gauge REGIONS = "basalt_regions", Unit::Count, "Regions of all tables.";
    gauge REGIONS_DAMAGED = "basalt_regions_damaged", Unit::Count,
        "Regions that are refused because a store file is missing or damaged.";
    counter DAMAGED_READS = "basalt_damaged_reads_total", Unit::Count,
        "Times that a read or a compaction found a damaged block in a store file.";
    gauge TABLES = "basalt_tables", Unit::Count, "Tables.";
    gauge SNAPSHOTS = "basalt_snapshots", Unit::Count, "Snapshots of tables.";
    gauge SNAPSHOT_BYTES = "basalt_snapshot_bytes", Unit::Bytes,
        "Size of the files of all snapshots; tables and other snapshots may have the same ones.";

    counter WAL_APPENDS = "basalt_wal_appends_total", Unit::Count, "Edits appended to the WAL.";
    counter WAL_BYTES = "basalt_wal_written_bytes_total", Unit::Bytes, "Bytes written to the WAL.";
    counter WAL_GROUPS = "basalt_wal_groups_total", Unit::Count, "Groups of edits written to the WAL.";
    counter WAL_SYNCS = "basalt_wal_syncs_total", Unit::Count, "fdatasync calls on the WAL.";
    histogram WAL_SYNC_SECONDS = "basalt_wal_sync_duration_seconds", Unit::Seconds, "Time of one fdatasync of the WAL.";
    histogram WAL_GROUP_EDITS = "basalt_wal_group_edits", Unit::Count, "Edits that shared one write of the WAL.";

    gauge MEMSTORE_BYTES = "basalt_memstore_bytes", Unit::Bytes, "Memory of all memstores.";
    gauge MEMSTORE_LIMIT_BYTES = "basalt_memstore_limit_bytes", Unit::Bytes, "memstore.total_bytes.";
    gauge MEMSTORE_PINNED_BYTES = "basalt_memstore_pinned_bytes", Unit::Bytes,
        "Memory of memstores that were flushed and that open scans still hold.";
    gauge MEMSTORE_KEPT_BYTES = "basalt_memstore_kept_bytes", Unit::Bytes, "Memory of memstores that are gone, kept for the next ones.";
    counter DELAYED_WRITES = "basalt_delayed_writes_total", Unit::Count, "Writes slowed because memstores were close to a limit.";
    gauge NONCE_BYTES = "basalt_nonce_bytes", Unit::Bytes,
        "Memory of the nonces of increments, appends and atomic groups, which must not be applied twice.";
    counter BLOCKED_WRITES = "basalt_blocked_writes_total", Unit::Count, "Writes refused because a memstore limit was reached.";
    gauge WAL_STALLED_SECONDS = "basalt_wal_stalled_seconds", Unit::Seconds,
        "How long the disk has kept the WAL waiting beyond wal.stall_ms; writes are refused. 0: it does not.";
    gauge DISK_TOTAL_BYTES = "basalt_disk_capacity_bytes", Unit::Bytes, "Size of the data directory's file system.";
    gauge DISK_AVAILABLE_BYTES = "basalt_disk_available_bytes", Unit::Bytes,
        "Bytes of the data directory's file system that the server may still use.";
    gauge DISK_LOW_WATER_BYTES = "basalt_disk_low_water_bytes", Unit::Bytes,
        "Writes are suspended when less is available: disk.reserve_bytes and what the memstores hold.";
    gauge CLOCK_BEHIND_SECONDS = "basalt_clock_behind_seconds", Unit::Seconds,
        "By how much the machine's clock is behind the timestamps that the server assigns.";
    gauge WRITES_SUSPENDED = "basalt_writes_suspended", Unit::Count,
        "1 while all writes are refused because the disk has too little space, else 0.";
    counter SUSPENDED_WRITES = "basalt_disk_refused_writes_total", Unit::Count,
        "Writes refused because the disk had too little space.";
    counter STALLED_WRITES = "basalt_wal_refused_writes_total", Unit::Count,
        "Writes refused because the disk kept the WAL waiting for longer than wal.stall_ms.";
    gauge WAL_SEGMENTS = "basalt_wal_segments", Unit::Count, "Segments of the WAL that the next start would read.";
    gauge OLDEST_UNFLUSHED_SECONDS = "basalt_oldest_unflushed_seconds", Unit::Seconds,
        "How long the oldest edit that is in no store file has been waiting.";
    gauge READ_POINT_LAG = "basalt_mvcc_read_point_lag", Unit::Count,
        "Edits that have a sequence id and are not visible to readers yet.";

    counter FLUSHES = "basalt_flushes_total", Unit::Count, "Flushes that wrote store files.";
    counter FLUSH_FAILURES = "basalt_flush_failures_total", Unit::Count, "Flushes that failed and are tried again.";
    counter FLUSH_BYTES = "basalt_flush_written_bytes_total", Unit::Bytes, "Bytes of store files written by flushes.";
    histogram FLUSH_SECONDS = "basalt_flush_duration_seconds", Unit::Seconds, "Time of one flush of a region.";
    counter COMPACTIONS = "basalt_compactions_total", Unit::Count, "Compactions done, by kind.";
    counter COMPACTION_FAILURES = "basalt_compaction_failures_total", Unit::Count, "Compactions that failed and are tried again.";
    counter COMPACTION_READ_BYTES = "basalt_compaction_read_bytes_total", Unit::Bytes, "Bytes of the input files of compactions.";
    counter COMPACTION_WRITTEN_BYTES = "basalt_compaction_written_bytes_total", Unit::Bytes,
        "Bytes of the output files of compactions.";
    histogram COMPACTION_SECONDS = "basalt_compaction_duration_seconds", Unit::Seconds, "Time of one compaction of a store.";
    gauge QUEUE = "basalt_background_queue_length", Unit::Count, "Background jobs waiting or running, by kind.";
    gauge PAUSED = "basalt_background_paused", Unit::Count, "1 while the jobs of this kind are paused, else 0, by kind.";
    gauge LEFT_BYTES = "basalt_background_left_bytes", Unit::Bytes,
        "Bytes that the flushes and compactions that run still have to read, by kind.";
    counter SPLITS = "basalt_region_splits_total", Unit::Count, "Regions split.";
    counter MERGES = "basalt_region_merges_total", Unit::Count, "Merges of regions.";

    counter BACKUPS = "basalt_backups_total", Unit::Count, "Backups that ended, by result: `made` or `failed`.";
    counter BACKUP_BYTES = "basalt_backup_written_bytes_total", Unit::Bytes, "Bytes written to the stores of backups.";
    gauge BACKUP_LAST_SUCCESS = "basalt_backup_last_success_timestamp_seconds", Unit::Seconds,
        "End of the last backup that was made, in seconds since 1970; 0 before the first one since the start.";
    gauge BACKUP_LAG = "basalt_backup_lag_seconds", Unit::Seconds,
        "Age of the last state that can be restored from backup.url: what would be lost with the machine. Only if backup.url is set.";
    counter BACKUP_LOG_FAILURES = "basalt_backup_log_failures_total", Unit::Count,
        "Attempts to ship the log to backup.url that failed and are repeated.";

    gauge STANDBY_LAG_SECONDS = "basalt_standby_lag_seconds", Unit::Seconds,
        "Time since a standby last had everything, by its name. On a standby: its own, without a label.";
    gauge STANDBY_BEHIND_EDITS = "basalt_standby_behind_edits", Unit::Count,
        "Positions of the log that a standby did not have when it last asked, by its name.";
    gauge STANDBY_ALONE = "basalt_standby_alone", Unit::Count,
        "1 while writes wait for no standby although standby.sync asks for it, else 0.";
    counter STANDBY_UNCONFIRMED_WRITES_TOTAL = "basalt_standby_unconfirmed_writes_total", Unit::Count,
        "Writes that were acknowledged without a standby although standby.sync asks for one.";
    counter STANDBY_EDITS_TOTAL = "basalt_standby_applied_rows_total", Unit::Count, "Rows of the primary that this standby has applied.";
    counter STANDBY_COPIES_TOTAL = "basalt_standby_copies_total", Unit::Count,
        "Copies of all data that standbys have begun to fetch here.";
    gauge STANDBY_ROLE = "basalt_standby_role", Unit::Count, "1 for what this server is, by role: primary, standby, fenced, copying.";
    gauge STANDBY_TERM = "basalt_standby_term", Unit::Count, "Term of this server: the number of changes of the primary.";

    counter CACHE_HITS = "basalt_block_cache_hits_total", Unit::Count, "Blocks found in the cache, by the block's priority.";
    counter CACHE_MISSES = "basalt_block_cache_misses_total", Unit::Count,
        "Blocks not found in the cache, and so read from disk.";
    counter CACHE_EVICTIONS = "basalt_block_cache_evictions_total", Unit::Count, "Blocks pushed out of the cache, by priority.";
    gauge CACHE_BYTES = "basalt_block_cache_bytes", Unit::Bytes, "Memory of cached blocks, by priority.";
    gauge CACHE_BLOCKS = "basalt_block_cache_blocks", Unit::Count, "Cached blocks, by priority.";
    gauge CACHE_PINNED_BYTES = "basalt_block_cache_pinned_bytes", Unit::Bytes, "Memory of blocks that open store files keep, within the cache's capacity.";
    gauge CACHE_CAPACITY_BYTES = "basalt_block_cache_capacity_bytes", Unit::Bytes, "block_cache.bytes.";
    gauge OPEN_FILES = "basalt_store_files_open", Unit::Count, "Descriptors that store files take, those being written included.";
    gauge OPEN_FILES_LIMIT = "basalt_store_files_open_limit", Unit::Count,
        "Most descriptors of store files: their share of the limit of open files, or store.max_open_files.";
    counter FILE_OPENS = "basalt_store_file_opens_total", Unit::Count, "Store files opened for reading.";
    counter FILE_EVICTIONS = "basalt_store_file_evictions_total", Unit::Count,
        "Store files closed because another one needed the descriptor.";
    counter BLOCKS_READ_AHEAD = "basalt_blocks_read_ahead_total", Unit::Count,
        "Blocks read together for the gets of a batch.";
    counter BLOOM_CHECKS = "basalt_bloom_checks_total", Unit::Count, "Bloom filters asked.";
    counter BLOOM_SKIPS = "basalt_bloom_skips_total", Unit::Count, "Store files left out of a read by their bloom filter.";
    counter BLOOM_FALSE_POSITIVES = "basalt_bloom_false_positives_total", Unit::Count,
        "Store files read in vain although their bloom filter said yes.";
}

/// 50 us to 10 s, about three a decade step, for calls and syncs.
pub(super) const LATENCY_BUCKETS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0,
];
/// 10 ms to 10 min, for flushes and compactions.
const JOB_BUCKETS: &[f64] = &[
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];
/// Group sizes.
const GROUP_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// The histograms and their buckets.
pub(super) const HISTOGRAMS: &[(&str, &[f64])] = &[
    (REQUEST_SECONDS, LATENCY_BUCKETS),
    (HELD_BACK_SECONDS, LATENCY_BUCKETS),
    (USER_CODE_SECONDS, LATENCY_BUCKETS),
    (WAL_SYNC_SECONDS, LATENCY_BUCKETS),
    (WAL_GROUP_EDITS, GROUP_BUCKETS),
    (FLUSH_SECONDS, JOB_BUCKETS),
    (COMPACTION_SECONDS, JOB_BUCKETS),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Prometheus' conventions: counters, and only they, end in `_total`; units are base units and last; a
    /// gauge and a counter do not share a name but for `_total`, since `OpenMetrics` takes that for one
    /// metric of two types; help is a sentence.
    #[test]
    fn names_follow_the_conventions() {
        for (index, &(kind, name, _, help)) in ALL.iter().enumerate() {
            assert!(name.starts_with("basalt_"), "{name}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            for part in name.split('_') {
                assert!(
                    !["ms", "us", "mb", "kb", "millis", "percent"].contains(&part),
                    "{name}: {part} is no base unit"
                );
            }
            let base = name.strip_suffix("_total").unwrap_or(name);
            for &(_, other, ..) in &ALL[index + 1..] {
                assert_ne!(base, other.strip_suffix("_total").unwrap_or(other));
            }
            assert!(help.ends_with('.'), "{name}: {help}");
        }
    }

    /// A histogram without buckets would come out as a summary, which cannot be aggregated.
    #[test]
    fn every_histogram_has_buckets() {
        let with_buckets: Vec<&str> = HISTOGRAMS.iter().map(|(name, _)| *name).collect();
        let all: Vec<&str> = ALL
            .iter()
            .filter(|(kind, ..)| *kind == "histogram")
            .map(|(_, name, ..)| *name)
            .collect();
        assert_eq!(with_buckets, all);
    }
}
