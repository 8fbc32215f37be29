#!/usr/bin/env python3
"""Writes dashboards/basalt.json, the Grafana dashboard, from the list of panels below.

    python3 dashboard.py             write the file
    python3 dashboard.py --print     print it instead

Needs Python 3 and nothing else. The JSON is committed, so nobody who only uses the dashboard runs this. A test
(tests/tests/dashboard/) fails when the committed file is not what this script writes, when a query names a metric or a
label that the server does not have, and when a metric of the server is in no panel.
"""

import json
import pathlib
import sys

FILE = pathlib.Path(__file__).parent / "dashboards" / "basalt.json"

# Every query is limited to the servers that are chosen at the top of the dashboard; those of regions to the tables, too.
SERVERS = 'job=~"$job",instance=~"$instance"'
REGIONS = SERVERS + ',table=~"$table"'
# The sum of the regions beyond metrics.max_regions is no region: it would look like the hottest of all.
REAL_REGIONS = REGIONS + ',region!="other"'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
HEIGHT = 8


# Queries.

def value(metric, selector=SERVERS):
    return f"{metric}{{{selector}}}"


def rate(metric, selector=SERVERS):
    return f"rate({metric}{{{selector}}}[$__rate_interval])"


def total(metric, *by):
    """The rate of a counter, summed over everything but the labels `by`."""
    return f"sum {grouping(by)}({rate(metric)})"


def summed(metric, *by):
    """A gauge, summed over everything but the labels `by`."""
    return f"sum {grouping(by)}({value(metric)})"


def grouping(by):
    return f"by ({', '.join(by)}) " if by else ""


def quantile(q, histogram, *by):
    return f"histogram_quantile({q}, {total(histogram + '_bucket', 'le', *by)})"


def mean(histogram):
    return f"{total(histogram + '_sum')} / {total(histogram + '_count')}"


def hottest(count, query):
    return f"topk({count}, sum by (table, region) ({query}))"


def peak_to_mean(metric):
    """How many times the mean region's rate the busiest region of a table has. Tables without any are left out."""
    each = rate(metric, REAL_REGIONS)
    return f"max by (instance, table) ({each}) / (avg by (instance, table) ({each}) > 0)"


# Panels. `queries` are pairs of a query and its legend.

def panel(kind, title, unit, queries, description, width, options, defaults):
    targets = [
        {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query,
            "instant": kind in ("stat", "bargauge"),
            "legendFormat": legend,
            "range": kind not in ("stat", "bargauge"),
            "refId": chr(ord("A") + index),
        }
        for index, (query, legend) in enumerate(queries)
    ]
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": unit, **defaults}, "overrides": []},
        "gridPos": {"w": width, "h": 4 if kind == "stat" else HEIGHT},
        "options": options,
        "targets": targets,
    }


def graph(title, unit, *queries, description, width=8, stacked=False, max_=None):
    custom = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 25 if stacked else 8,
        "showPoints": "never",
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
    }
    defaults = {"color": {"mode": "palette-classic"}, "custom": custom, "min": 0}
    if max_ is not None:
        defaults["max"] = max_
    options = {
        "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return panel("timeseries", title, unit, queries, description, width, options, defaults)


def stat(title, unit, query, description, width=4, legend="", show="value", red_above=None):
    steps = [{"color": "text", "value": None}]
    if red_above is not None:
        steps.append({"color": "red", "value": red_above})
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": show,
    }
    defaults = {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}}
    return panel("stat", title, unit, [(query, legend)], description, width, options, defaults)


def bars(title, unit, query, legend, description, width=12):
    options = {
        "displayMode": "gradient",
        "orientation": "horizontal",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showUnfilled": True,
        "valueMode": "color",
    }
    defaults = {"color": {"mode": "continuous-BlYlRd"}, "min": 0}
    return panel("bargauge", title, unit, [(query, legend)], description, width, options, defaults)


OVERVIEW = [
    stat("Version", "short", value("basalt_build_info"), "The build that runs.", legend="{{version}}", show="name"),
    stat("Up for", "s", f"time() - {value('process_start_time_seconds')}", "Time since the process started."),
    stat("Tables", "short", summed("basalt_tables"), "Tables of all namespaces."),
    stat("Regions", "short", summed("basalt_regions"), "Regions of all tables."),
    stat("Open connections", "short", summed("basalt_thrift_connections"), "Open Thrift connections."),
    stat(
        "Failed calls", "percentunit",
        f"{total('basalt_thrift_failed_requests_total')} / {total('basalt_thrift_requests_total')}",
        "Share of calls answered with an exception. Empty while nobody calls.", red_above=0.01,
    ),
    graph(
        "Calls", "reqps",
        (total("basalt_thrift_requests_total", "api", "method") + " > 0", "{{api}} {{method}}"),
        description="Thrift calls answered per second, failed ones too. Methods nobody calls are left out.",
        width=12, stacked=True,
    ),
    graph(
        "Failed calls by API", "reqps",
        (total("basalt_thrift_failed_requests_total", "api"), "{{api}}"),
        description="Calls answered with an exception, per second. The row Clients and errors says which exception.",
        width=12,
    ),
    graph(
        "Latency", "s",
        (quantile(0.5, "basalt_thrift_request_duration_seconds"), "p50"),
        (quantile(0.99, "basalt_thrift_request_duration_seconds"), "p99"),
        (mean("basalt_thrift_request_duration_seconds"), "mean"),
        description="From the last byte of a call to the last byte of its answer handed to the socket, over all methods.",
    ),
    graph(
        "Latency by method, p99", "s",
        (quantile(0.99, "basalt_thrift_request_duration_seconds", "api", "method"), "{{api}} {{method}}"),
        description="The slowest hundredth of the calls of each method. A scan that fetches many rows is rightly slower "
        "than a get.",
    ),
    graph(
        "Connections", "short",
        (summed("basalt_thrift_connections", "instance"), "open {{instance}}"),
        description="Open Thrift connections. Beyond thrift.max_connections new ones are closed at once.",
    ),
]

HOT_SPOTS = [
    graph(
        "Writes per region, busiest 20", "wps",
        (hottest(20, rate("basalt_region_writes_total", REGIONS)), "{{table}} {{region}}"),
        description="Row mutations per second. One line far above the others is a hot region: its row keys begin alike. "
        "Salt or reverse the key, or split the table in advance. The status page of the server shows the keys of a region.",
        width=12,
    ),
    graph(
        "Reads per region, busiest 20", "rps",
        (hottest(20, rate("basalt_region_reads_total", REGIONS)), "{{table}} {{region}}"),
        description="Rows read per second by gets and scans.",
        width=12,
    ),
    bars(
        "Top regions by writes", "wps", hottest(10, rate("basalt_region_writes_total", REGIONS)), "{{table}} {{region}}",
        "The ten regions that take most writes now.",
    ),
    bars(
        "Top regions by reads", "rps", hottest(10, rate("basalt_region_reads_total", REGIONS)), "{{table}} {{region}}",
        "The ten regions that serve most rows now.",
    ),
    graph(
        "Writes: busiest region to mean region", "none",
        (peak_to_mean("basalt_region_writes_total"), "{{table}} {{instance}}"),
        description="1 is a perfect spread over a table's regions; the number of regions is the worst: one takes all. "
        "A table with one region is always at 1.",
        width=12,
    ),
    graph(
        "Reads: busiest region to mean region", "none",
        (peak_to_mean("basalt_region_reads_total"), "{{table}} {{instance}}"),
        description="The same for rows read.",
        width=12,
    ),
    graph(
        "Memstore per region, largest 20", "bytes",
        (hottest(20, value("basalt_region_memstore_bytes", REGIONS)), "{{table}} {{region}}"),
        description="A region is flushed at memstore.flush_bytes.",
    ),
    graph(
        "Store files per region, most 20", "short",
        (hottest(20, value("basalt_region_store_files", REGIONS)), "{{table}} {{region}}"),
        description="Each get and scan may have to look into every one. Rises when compactions do not keep up.",
    ),
    graph(
        "Size of store files per region, largest 20", "bytes",
        (hottest(20, value("basalt_region_store_file_bytes", REGIONS)), "{{table}} {{region}}"),
        description="A region splits at region.max_bytes.",
    ),
    graph(
        "Refused writes per region", "wps",
        (hottest(20, rate("basalt_region_blocked_writes_total", REGIONS)), "{{table}} {{region}}"),
        description="Writes answered with RegionTooBusyException because the region's memstore was full.",
        width=24,
    ),
]

ENGINE = [
    graph(
        "Memstores", "bytes",
        (summed("basalt_memstore_bytes"), "used"),
        (summed("basalt_memstore_limit_bytes"), "limit"),
        (summed("basalt_memstore_pinned_bytes"), "pinned by scans"),
        description="Memory of all memstores, and memstore.total_bytes, where writes are refused. What scans hold of flushed "
        "memstores comes on top.",
    ),
    graph(
        "Slowed and refused writes", "wps",
        (total("basalt_delayed_writes_total"), "slowed"),
        (total("basalt_blocked_writes_total"), "refused"),
        description="Writes slowed because memstores were close to a limit, of a region or of the server, and writes refused "
        "because it was reached.",
    ),
    graph(
        "Disk", "bytes",
        (summed("basalt_disk_available_bytes"), "available"),
        (summed("basalt_disk_low_water_bytes"), "writes stop below"),
        (summed("basalt_disk_capacity_bytes"), "size"),
        description="The data directory's file system, and how much must be available for writes: disk.reserve_bytes and what "
        "the memstores hold.",
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
        (summed("basalt_wal_stalled_seconds"), "seconds that the log has waited"),
        description="Writes answered with RegionTooBusyException because the disk kept the WAL waiting for longer than wal.stall_ms.",
    ),
    graph(
        "Background jobs", "short",
        (summed("basalt_background_queue_length", "job"), "{{job}}"),
        description="Jobs waiting or running. A queue that only grows means that the disk is too slow for the writes.",
    ),
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
        description="Time of one fdatasync: the least a durable write takes. It is the disk's own figure.",
    ),
    graph(
        "WAL group size", "short",
        (mean("basalt_wal_group_edits"), "mean"),
        (quantile(0.99, "basalt_wal_group_edits"), "p99"),
        description="Edits that shared one write of the WAL. 1 means that writers come one at a time.",
    ),
    graph(
        "Read-point lag", "short",
        (value("basalt_mvcc_read_point_lag"), "{{instance}}"),
        description="Edits that have a sequence id and are not visible to readers yet. Goes back to 0 between writes; "
        "a lag that stays is a commit that does not end.",
    ),
    graph(
        "Splits and merges", "ops",
        (total("basalt_region_splits_total"), "splits"),
        (total("basalt_region_merges_total"), "merges"),
        description="Regions split, by size or on demand, and merges.",
    ),
    graph(
        "Write amplification", "none",
        (
            f"({total('basalt_flush_written_bytes_total')} + {total('basalt_compaction_written_bytes_total')})"
            f" / ({total('basalt_flush_written_bytes_total')} > 0)",
            "store files",
        ),
        description="Bytes written to store files for each byte that a flush wrote. The WAL is not counted.",
        width=24,
    ),
]

HITS = total("basalt_block_cache_hits_total")
MISSES = total("basalt_block_cache_misses_total")
CACHE = [
    graph(
        "Hit ratio by priority", "percentunit",
        (
            f"{total('basalt_block_cache_hits_total', 'priority')} / ignoring (priority) group_left () ({HITS} + {MISSES})",
            "{{priority}}",
        ),
        description="Share of the blocks asked for that were found, by the priority of the block. The top of the stack is "
        "the hit ratio. A miss has no priority, since nothing was found.",
        stacked=True, max_=1,
    ),
    graph(
        "Blocks asked for", "ops",
        (total("basalt_block_cache_hits_total", "priority"), "hit {{priority}}"),
        (total("basalt_block_cache_misses_total"), "miss"),
        description="A miss is a read from disk, or from the page cache of the system.",
    ),
    graph(
        "Evictions", "ops",
        (total("basalt_block_cache_evictions_total", "priority"), "{{priority}}"),
        description="Blocks pushed out by others. Many, with a low hit ratio: the working set is larger than the cache.",
    ),
    graph(
        "Cache memory", "bytes",
        (summed("basalt_block_cache_bytes", "priority"), "{{priority}}"),
        (summed("basalt_block_cache_pinned_bytes"), "pinned"),
        (summed("basalt_block_cache_capacity_bytes"), "capacity"),
        description="Memory of cached blocks, and block_cache.bytes.",
    ),
    graph(
        "Cached blocks", "short",
        (summed("basalt_block_cache_blocks", "priority"), "{{priority}}"),
        description="Blocks in the cache.",
        stacked=True,
    ),
    graph(
        "Bloom filters", "ops",
        (total("basalt_bloom_checks_total"), "asked"),
        (total("basalt_bloom_skips_total"), "files skipped"),
        (total("basalt_bloom_false_positives_total"), "false positives"),
        description="Bloom filters asked, files left out of a read because of them, and files read in vain.",
    ),
]

CLIENTS = [
    graph(
        "Exceptions by class", "ops",
        (total("basalt_thrift_errors_total", "exception"), "{{exception}}"),
        description="Calls answered with an exception. A series begins with its first error, so that one shows in the panel "
        "beside this.",
        width=12,
    ),
    bars(
        "Exceptions since the start", "short",
        f"topk(10, {summed('basalt_thrift_errors_total', 'api', 'method', 'exception')})", "{{api}} {{method}} {{exception}}",
        "Which call failed how, counted since the server started.",
    ),
    graph(
        "Share of calls that failed, by method", "percentunit",
        (
            f"{total('basalt_thrift_failed_requests_total', 'api', 'method')}"
            f" / ({total('basalt_thrift_requests_total', 'api', 'method')} > 0)",
            "{{api}} {{method}}",
        ),
        description="Only methods that are called.", max_=1,
    ),
    graph(
        "Connections opened and refused", "cps",
        (total("basalt_thrift_connections_accepted_total"), "accepted"),
        (total("basalt_thrift_connections_rejected_total"), "rejected: too many"),
        (total("basalt_thrift_protocol_errors_total"), "ended by bytes that are no message"),
        description="A high rate of new connections means clients without a pool.",
    ),
    graph(
        "HTTP connections", "short",
        (summed("basalt_http_connections"), "open"),
        (total("basalt_http_connections_accepted_total"), "accepted a second"),
        (total("basalt_http_connections_rejected_total"), "rejected a second: too many"),
        description="Connections of the HTTP port: Thrift calls, scrapes, status pages.",
    ),
    graph(
        "Refused calls", "ops",
        (total("basalt_refused_calls_total", "reason"), "{{reason}}"),
        description="Data calls refused before any work was done: no memory for calls in hand, the line for threads too long, "
        "network threads late.",
    ),
    graph(
        "Memory of calls in hand", "bytes",
        (summed("basalt_request_memory_bytes"), "used"),
        (summed("basalt_request_memory_limit_bytes"), "limit"),
        description="Messages and results, and requests.memory_bytes, where calls are refused.",
    ),
    graph(
        "Calls that wait for a thread", "short",
        (summed("basalt_waiting_calls"), "waiting"),
        description="They wait behind others that read from disk or wait for row locks.",
    ),
    graph(
        "Delay of network threads", "s",
        (f"max by (instance) ({value('basalt_network_delay_seconds')})", "{{instance}}"),
        description="How late they were at least, all through the last window of 200 milliseconds. High: the processors are the "
        "limit.",
    ),
    graph(
        "Traffic", "Bps",
        (total("basalt_thrift_received_bytes_total"), "received"),
        (total("basalt_thrift_sent_bytes_total"), "sent"),
        description="Bytes read from and written to Thrift connections.",
    ),
    graph(
        "Open scanners", "short",
        (summed("basalt_scanner_sessions", "instance"), "{{instance}}"),
        description="Scanner sessions that clients have open. scanner.max_sessions limits them.",
    ),
    graph(
        "Scanners", "ops",
        (total("basalt_scanner_sessions_opened_total"), "opened"),
        (total("basalt_scanner_sessions_expired_total"), "expired"),
        description="An expired scanner was not closed by its client: nobody fetched for scanner.lease_ms.",
    ),
    graph(
        "Calls in the slow log", "ops",
        (total("basalt_slow_calls_total", "kind"), "{{kind}}"),
        description="Calls that took longer than slow_log.threshold_ms or had answers larger than slow_log.large_bytes. "
        "getSlowLogResponses says which calls.",
    ),
]

PROCESS = [
    graph("CPU", "none", (rate("process_cpu_seconds_total"), "{{instance}}"), description="Cores in use."),
    graph(
        "Memory", "bytes",
        (value("process_resident_memory_bytes"), "resident {{instance}}"),
        description="Memstores and block cache are most of it.",
    ),
    graph(
        "Address space", "bytes",
        (value("process_virtual_memory_bytes"), "used {{instance}}"),
        (value("process_virtual_memory_max_bytes"), "limit {{instance}}"),
        description="Address space of the process and its limit; it says little about memory.",
    ),
    graph(
        "File descriptors", "short",
        (value("process_open_fds"), "open {{instance}}"),
        (value("process_max_fds"), "limit {{instance}}"),
        description="Each connection and each open store file takes one.",
        width=12,
    ),
    graph("Threads", "short", (value("process_threads"), "{{instance}}"), description="Threads of the process.", width=12),
]

CAPACITY = [
    graph(
        "Calls held back, p99", "s",
        (quantile(0.99, "basalt_held_back_seconds", "by"), "{{by}}"),
        description="For how long calls wait because a quota or a virtual server of a rehearsal is used up.",
        width=12,
    ),
    graph(
        "Calls throttled", "reqps",
        (total("basalt_throttled_calls_total", "by"), "{{by}}"),
        description="Calls refused with RpcThrottlingException because they would have waited longer than quota.max_wait_ms.",
        width=12,
    ),
    graph(
        "Rehearsal: rows by virtual server", "reqps",
        (total("basalt_rehearsal_requests_total", "server", "kind"), "{{server}} {{kind}}"),
        description="Rows that each virtual server is charged with. One line alone is a hot region. Empty without a rehearsal.",
        width=12,
    ),
    graph(
        "Rehearsal: bytes by virtual server", "Bps",
        (total("basalt_rehearsal_bytes_total", "server", "kind"), "{{server}} {{kind}}"),
        description="Bytes of the cells that each virtual server is charged with. Empty without a rehearsal.",
        width=12,
    ),
]

ROWS = [
    ("Overview", OVERVIEW),
    ("Regions and hot spots", HOT_SPOTS),
    ("Engine", ENGINE),
    ("Cache and reads", CACHE),
    ("Clients and errors", CLIENTS),
    ("Quotas and rehearsal", CAPACITY),
    ("Process", PROCESS),
]


def variable(name, label, metric):
    query = f"label_values({metric}, {name})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": "variable"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def layout():
    """All panels with their ids and places: left to right, a new line where one does not fit."""
    placed = []
    y = 0
    for title, panels in ROWS:
        placed.append({"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"w": WIDTH, "h": 1}})
        placed[-1]["gridPos"].update(x=0, y=y)
        x, y, line = 0, y + 1, 0
        for each in panels:
            place = each["gridPos"]
            if x + place["w"] > WIDTH:
                x, y, line = 0, y + line, 0
            place.update(x=x, y=y)
            x += place["w"]
            line = max(line, place["h"])
            placed.append(each)
        y += line
    for number, each in enumerate(placed, start=1):
        each["id"] = number
    return placed


def dashboard():
    return {
        "title": "Basalt",
        "uid": "basalt",
        "description": "One or several Basalt servers: calls, hot regions, the engine, the cache, clients, the process.",
        "tags": ["basalt"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-30m", "to": "now"},
        "refresh": "10s",
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {
            "list": [
                {
                    "type": "datasource",
                    "name": "datasource",
                    "label": "Data source",
                    "query": "prometheus",
                    "refresh": 1,
                    "current": {},
                },
                variable("job", "Job", "basalt_build_info"),
                variable("instance", "Server", 'basalt_build_info{job=~"$job"}'),
                variable("table", "Table", f"basalt_region_writes_total{{{SERVERS}}}"),
            ]
        },
        "panels": layout(),
    }


if __name__ == "__main__":
    text = json.dumps(dashboard(), indent=2) + "\n"
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text)
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        FILE.write_text(text)
