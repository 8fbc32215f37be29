"""Does the disk keep up: memstores, log, flushes, compactions."""

from panels import graph
from queries import mean, quantile, share, summed, total, worst

UID = "basalt-engine"
TITLE = "Basalt: engine"
DESCRIPTION = "The way of a write: log, memstore, flush, compaction; and what slows or refuses writes."
ALERTS = [
    "BasaltWritesSuspended", "BasaltDiskSpaceLow", "BasaltLogStalled", "BasaltClockBehind", "BasaltSyncSlow",
    "BasaltWriteStall", "BasaltWritesSlowed", "BasaltRegionsDamaged", "BasaltDamagedReads", "BasaltFlushFails", "BasaltCompactionFails",
    "BasaltPaused", "BasaltBackupLags", "BasaltStandbyLags", "BasaltStandbyAlone", "BasaltReplicationLags", "BasaltReplicationPeerDropped", "BasaltChangeReaderDropped",
]

REFUSED = [
    graph(
        "Slowed and refused writes", "wps",
        (total("basalt_delayed_writes_total"), "slowed"),
        (total("basalt_blocked_writes_total"), "refused"),
        description="Writes slowed because memstores were close to a limit, of a region or of the server, and writes refused "
        "because it was reached.",
    ),
    graph(
        "Writes refused for want of disk space", "wps",
        (total("basalt_disk_refused_writes_total"), "refused"),
        (summed("basalt_writes_suspended"), "servers that refuse writes"),
        description="Writes answered with RegionTooBusyException because the disk had too little space. Reads go on.",
    ),
    graph(
        "Writes refused because the disk hangs", "wps",
        (total("basalt_wal_refused_writes_total"), "refused"),
        (worst("basalt_wal_stalled_seconds"), "seconds that the log has waited {{instance}}"),
        description="Writes answered with RegionTooBusyException because the disk kept the WAL waiting for longer than wal.stall_ms.",
    ),
    graph(
        "Damaged store files", "short",
        (summed("basalt_regions_damaged"), "regions refused"),
        (total("basalt_damaged_reads_total"), "damaged blocks found a second"),
        description="Regions that are refused because a store file is missing or damaged, and damaged blocks that reads and compactions found.",
    ),
]

MEMSTORE = [
    graph(
        "Memstores", "bytes",
        (summed("basalt_memstore_bytes"), "used"),
        (summed("basalt_memstore_limit_bytes"), "limit"),
        (summed("basalt_memstore_pinned_bytes"), "pinned by scans"),
        (summed("basalt_memstore_kept_bytes"), "kept for the next"),
        (summed("basalt_nonce_bytes"), "nonces"),
        description="Memory of all memstores, and memstore.total_bytes, where writes are refused. What scans hold of flushed "
        "memstores, what is kept of them for the next ones, and nonces of increments come on top.",
    ),
    graph(
        "Oldest edit in a memstore", "s",
        (worst("basalt_oldest_unflushed_seconds"), "{{instance}}"),
        description="How long an edit has been in the log only. Regions are flushed after an hour; much more: flushes do not "
        "come to an end.", limit=7200,
    ),
    graph(
        "Read-point lag", "short",
        (worst("basalt_mvcc_read_point_lag"), "{{instance}}"),
        description="Edits that have a sequence id and are not visible to readers yet. Goes back to 0 between writes; "
        "a lag that stays is a commit that does not end.",
    ),
]

WAL = [
    graph(
        "WAL appends", "ops",
        (total("basalt_wal_appends_total"), "edits"),
        (total("basalt_wal_groups_total"), "groups"),
        (total("basalt_wal_syncs_total"), "syncs"),
        description="Edits, the groups they were written in, and fdatasync calls. Many edits for each sync is group commit "
        "at work.",
    ),
    graph(
        "WAL bytes", "Bps",
        (total("basalt_wal_written_bytes_total"), "written"),
        description="Bytes written to the WAL, framing included.",
    ),
    graph(
        "WAL sync latency", "s",
        (quantile(0.5, "basalt_wal_sync_duration_seconds"), "p50"),
        (quantile(0.99, "basalt_wal_sync_duration_seconds"), "p99"),
        description="Time of one fdatasync: the least a durable write takes. It is the disk's own figure.", limit=0.1,
    ),
    graph(
        "WAL group size", "short",
        (mean("basalt_wal_group_edits"), "mean"),
        (quantile(0.99, "basalt_wal_group_edits"), "p99"),
        description="Edits that shared one write of the WAL. 1 means that writers come one at a time.", width=12,
    ),
    graph(
        "WAL segments", "short",
        (worst("basalt_wal_segments"), "{{instance}}"),
        description="Segments that the next start would read. One that holds an edit which is not flushed yet is kept, and all "
        "after it.", width=12,
    ),
]

FLUSH = [
    graph(
        "Flushes", "ops",
        (total("basalt_flushes_total"), "flushes"),
        (total("basalt_flush_failures_total"), "failures"),
        description="Flushes that wrote store files, and those that failed and are tried again.",
    ),
    graph(
        "Flushed bytes", "Bps",
        (total("basalt_flush_written_bytes_total"), "written"),
        description="Bytes of store files written by flushes.",
    ),
    graph(
        "Flush duration", "s",
        (quantile(0.5, "basalt_flush_duration_seconds"), "p50"),
        (quantile(0.99, "basalt_flush_duration_seconds"), "p99"),
        description="Time of one flush of a region.",
    ),
]

COMPACTION = [
    graph(
        "Compactions", "ops",
        (total("basalt_compactions_total", "kind"), "{{kind}}"),
        (total("basalt_compaction_failures_total"), "failures"),
        description="Compactions done, by kind, and those that failed and are tried again.",
    ),
    graph(
        "Compacted bytes", "Bps",
        (total("basalt_compaction_read_bytes_total"), "in"),
        (total("basalt_compaction_written_bytes_total"), "out"),
        description="Bytes read and written by compactions. compaction.max_bytes_per_second limits them.",
    ),
    graph(
        "Compaction duration", "s",
        (quantile(0.5, "basalt_compaction_duration_seconds"), "p50"),
        (quantile(0.99, "basalt_compaction_duration_seconds"), "p99"),
        description="Time of one compaction of a store.",
    ),
    graph(
        "Write amplification", "none",
        (
            share(
                f"({total('basalt_flush_written_bytes_total')} + {total('basalt_compaction_written_bytes_total')})",
                total("basalt_flush_written_bytes_total"),
            ),
            "store files",
        ),
        description="Bytes written to store files for each byte that a flush wrote. The WAL is not counted.",
        width=24,
    ),
]

BACKGROUND = [
    graph(
        "Background jobs", "short",
        (summed("basalt_background_queue_length", "kind"), "{{kind}}"),
        (worst("basalt_background_paused", "kind"), "{{kind}} paused {{instance}}"),
        description="Jobs waiting or running. A queue that only grows means that the disk is too slow for the writes, or that "
        "somebody has paused it: then the last lines are at 1.",
    ),
    graph(
        "Left of running jobs", "bytes",
        (summed("basalt_background_left_bytes", "kind"), "{{kind}}"),
        description="Bytes that the jobs which run now still have to read. The page /jobs of the server shows each.",
    ),
    graph(
        "Disk", "bytes",
        (summed("basalt_disk_available_bytes"), "available"),
        (summed("basalt_disk_low_water_bytes"), "writes stop below"),
        (summed("basalt_disk_capacity_bytes"), "size"),
        (summed("basalt_snapshot_bytes"), "files of snapshots"),
        description="The data directory's file system, and how much must be available for writes: disk.reserve_bytes and what "
        "the memstores hold. Files of snapshots take space once for all tables and snapshots that have them.",
    ),
    graph(
        "Snapshots", "short",
        (summed("basalt_snapshots"), "snapshots"),
        description="Snapshots of tables. Each keeps the files that its table had.",
    ),
]

BACKUP = [
    graph(
        "Lag of the backup", "s",
        (worst("basalt_backup_lag_seconds"), "{{instance}}"),
        description="Age of the last state that can be restored from backup.url: what would be lost with the machine. It grows "
        "while the store is away or slow, and while a backup is made after a change of the schema.",
    ),
    graph(
        "Time of the last backup", "s",
        (worst("basalt_backup_last_success_timestamp_seconds"), "{{instance}}"),
        description="End of the last backup in seconds since 1970, on request or by itself; 0 before the first one since the start.",
    ),
    graph(
        "Backups", "short",
        (total("basalt_backups_total", "result"), "{{result}}"),
        description="Backups that ended, a second, by result. The log has the reason of each that failed.",
    ),
    graph(
        "Bytes written to the store", "Bps",
        (total("basalt_backup_written_bytes_total"), "written"),
        description="Bytes of backups and of the log. Compactions make new files, which are copied.",
    ),
    graph(
        "Attempts to ship the log that failed", "short",
        (total("basalt_backup_log_failures_total"), "failed"),
        description="Attempts to ship the log to backup.url that failed and are repeated. The log has the reason.",
    ),
]

STANDBY = [
    graph(
        "Lag of standbys", "s",
        (worst("basalt_standby_lag_seconds", "standby"), "{{instance}} {{standby}}"),
        description="Time since a standby last had everything. Without a name: the standby's own.",
    ),
    graph(
        "Positions that standbys lack", "short",
        (worst("basalt_standby_behind_edits", "standby"), "{{instance}} {{standby}}"),
        description="Positions of the log that a standby did not have when it last asked.",
    ),
    graph(
        "Writes without the standby", "short",
        (worst("basalt_standby_alone"), "{{instance}} alone"),
        (total("basalt_standby_unconfirmed_writes_total"), "unconfirmed writes"),
        description="1 while writes wait for no standby although standby.sync asks for one, and writes a second that were "
        "acknowledged meanwhile.",
    ),
    graph(
        "Rows applied by standbys", "short",
        (total("basalt_standby_applied_rows_total"), "rows"),
        (total("basalt_standby_copies_total"), "copies"),
        description="Rows a second of the primary's log, and copies of all data that standbys have begun to fetch.",
    ),
    graph(
        "Roles", "short",
        (worst("basalt_standby_role", "role"), "{{instance}} {{role}}"),
        (worst("basalt_standby_term"), "{{instance}} term"),
        description="1 for what each server is. Two primaries of one cluster are one too many.",
    ),
]

PEERS = [
    graph(
        "Lag of replication peers", "s",
        (worst("basalt_replication_lag_seconds", "peer"), "{{instance}} {{peer}}"),
        description="Age of the first edit that waits for a peer; 0 when none waits.",
    ),
    graph(
        "Log kept for peers", "bytes",
        (worst("basalt_replication_kept_log_bytes", "peer"), "{{instance}} {{peer}}"),
        description="Bytes of the log in whole segments. At replication.max_log_bytes writes are refused, or the peer is dropped.",
    ),
    graph(
        "Edits for peers", "short",
        (total("basalt_replication_shipped_edits_total", "peer"), "{{peer}}: shipped"),
        (total("basalt_replication_shipped_cells_total", "peer"), "{{peer}}: cells shipped"),
        (total("basalt_replication_unsent_edits_total", "peer", "reason"), "{{peer}}: not sent, {{reason}}"),
        description="Edits that peers have made durable, their cells, and edits that were not sent, a second.",
    ),
    graph(
        "Bytes for peers", "Bps",
        (total("basalt_replication_shipped_bytes_total", "peer"), "{{peer}}"),
        description="Bytes of the cells that peers have made durable.",
    ),
    graph(
        "Batches for peers", "short",
        (total("basalt_replication_shipped_batches_total", "peer"), "{{peer}}: shipped"),
        (total("basalt_replication_failures_total", "peer"), "{{peer}}: failed"),
        (total("basalt_replication_dropped_peers_total"), "peers dropped"),
        description="Batches that peers have made durable, attempts that failed and are repeated, and peers that were removed.",
    ),
    graph(
        "Changes", "short",
        (total("basalt_change_records_total"), "records"),
        (summed("basalt_change_streams"), "streams"),
        (total("basalt_change_dropped_readers_total"), "readers dropped"),
        description="Records of streams of changes a second, open streams, and readers that were removed at the limit of the log.",
    ),
    graph(
        "Log kept for changes", "bytes",
        (summed("basalt_change_kept_log_bytes"), "kept"),
        description="Log that is kept for the reader of changes that is furthest behind.",
    ),
]

ROWS = [
    ("Writes that are slowed or refused", REFUSED),
    ("Memstores", MEMSTORE),
    ("Write-ahead log", WAL),
    ("Flushes", FLUSH),
    ("Compactions", COMPACTION),
    ("Background work and disk", BACKGROUND),
    ("Backup", BACKUP),
    ("Standby", STANDBY),
    ("Replication peers", PEERS),
]
