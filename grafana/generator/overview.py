"""The first look: the five questions of an incident, and a glance: is it up, is it quick, is anything running out?"""

from panels import bars, graph, stat
from queries import SERVERS, hottest, mean, quantile, rate, share, summed, total, value, worst

UID = "basalt"
TITLE = "Basalt"
DESCRIPTION = "One or several Basalt servers at a glance: calls, latency, failures, resources."
ALERTS = ["Basalt.*"]

REGION_ROWS = " + ".join(
    rate(f"basalt_region_{kind}_total", SERVERS + ',region!="other"') for kind in ("writes", "reads")
)
FIRING = 'ALERTS{alertstate="firing",alertname=~"Basalt.*",instance=~"$instance"}'

# The questions of docs/observing.md, in its words and order.
INCIDENT = [
    bars(
        "Who is hot?", "rowsps", hottest(5, REGION_ROWS), "{{table}} {{region}}",
        "The regions that most rows are written to and read from now. One far above the others is hot. The table's page, and hot_rows in "
        "the shell, name the row.",
        width=8,
    ),
    graph(
        "Since when?", "percentunit",
        (f"max by (table, kind) ({value('basalt_hottest_row_share')})", "{{table}} {{kind}}"),
        description="Share of a table's reads or writes that go to its hottest row. The rise of a line is the beginning; it follows within five "
        "minutes. Red marks are alerts that fire. The page /heat of the server shows when the keys became bright.",
        width=16, max_=1, limit=0.25, see="basalt-regions",
    ),
    bars(
        "What is slow?", "s",
        f"topk(5, {quantile(0.99, 'basalt_request_duration_seconds', 'api', 'method')} > 0)", "{{api}} {{method}}",
        "The methods with the slowest hundredth of calls (p99). The page /slow of the server has the shapes of requests by the time that they "
        "took, with their arguments.",
        width=8,
    ),
    graph(
        "Is the disk the limit?", "s",
        (quantile(0.99, "basalt_wal_sync_duration_seconds"), "sync of the log, p99"),
        (worst("basalt_wal_stalled_seconds"), "log waits {{instance}}"),
        description="Time of one sync of the log, and how long the disk has kept the log waiting. Above the dashed line: the disk. Below it, and "
        "reads are slow: blocks from disk are on the dashboard of cache and reads, and /slow says which calls waited.",
        limit=0.1, see="basalt-engine",
    ),
    bars(
        "What to do?", "short",
        f'count by (alertname) ({FIRING}) or on () label_replace(vector(0), "alertname", "no alert", "", "")', "{{alertname}}",
        "Alerts that fire, with the number of servers or tables. docs/observing.md has the remedy of each. The page / of the server has a verdict "
        "with remedies, and /findings has the cures of its tables.",
        width=8,
    ),
]

GLANCE = [
    stat("Version", "short", value("basalt_build_info"), "The build that runs.", legend="{{version}}", show="name"),
    stat("Up for", "s", f"min(time() - {value('process_start_time_seconds')})",
         "Time since the process started, of the server that started last."),
    stat("Alerts", "short", f"count({FIRING}) or vector(0)",
         "Alert rules that fire now. docs/observing.md says what to do about each.", red_above=1),
    stat("Calls", "reqps", total("basalt_requests_total"), "Thrift calls answered per second, failed ones too."),
    stat("Failed calls", "percentunit",
         share(total("basalt_failed_requests_total"), total("basalt_requests_total")),
         "Share of calls answered with an exception. Empty while nobody calls.", red_above=0.05, see="basalt-clients"),
    stat("Latency, p99", "s", quantile(0.99, "basalt_request_duration_seconds"),
         "The slowest hundredth of all calls. A scan that fetches many rows counts, too.", see="basalt-clients"),
    stat("Tables", "short", summed("basalt_tables"), "Tables of all namespaces."),
    stat("Regions", "short", summed("basalt_regions"), "Regions of all tables.", see="basalt-regions"),
    stat("Writes", "short", summed("basalt_writes_suspended"),
         "Servers that refuse all writes because the disk has too little space.", red_above=1, see="basalt-engine"),
    stat("Memstores", "percentunit",
         share(summed("basalt_memstore_bytes"), summed("basalt_memstore_limit_bytes")),
         "Share of memstore.total_bytes in use. Writes are slowed from 90 % on, and refused above.", red_above=0.9,
         see="basalt-engine"),
    stat("Disk available", "percentunit",
         share(summed("basalt_disk_available_bytes"), summed("basalt_disk_capacity_bytes")),
         "Share of the data directory's file system that the server may still use.", red_below=0.05, see="basalt-engine"),
    stat("Open connections", "short", summed("basalt_connections"), "Open connections of the main port.",
         see="basalt-clients"),
]

CALLS = [
    graph(
        "Calls by method", "reqps",
        (total("basalt_requests_total", "api", "method") + " > 0", "{{api}} {{method}}"),
        description="Thrift calls answered per second, failed ones too. Methods nobody calls are left out.",
        width=12, stacked=True,
    ),
    graph(
        "Failed calls by API", "reqps",
        (total("basalt_failed_requests_total", "api"), "{{api}}"),
        description="Calls answered with an exception, per second. The dashboard of clients says which exception.",
        width=12, see="basalt-clients",
    ),
    graph(
        "Latency", "s",
        (quantile(0.5, "basalt_request_duration_seconds"), "p50"),
        (quantile(0.99, "basalt_request_duration_seconds"), "p99"),
        (mean("basalt_request_duration_seconds"), "mean"),
        description="From the last byte of a call to the last byte of its answer handed to the socket, over all methods.",
        width=12,
    ),
    bars(
        "Methods called most", "reqps", f"topk(10, {total('basalt_requests_total', 'api', 'method')} > 0)",
        "{{api}} {{method}}", "The ten methods that are called most now.",
    ),
]

DATA = [
    graph(
        "Rows written and read", "rowsps",
        (total("basalt_region_writes_total"), "written"),
        (total("basalt_region_reads_total"), "read"),
        description="Row mutations, and rows read by gets and scans, per second.", see="basalt-regions",
    ),
    graph(
        "Store files", "bytes",
        (summed("basalt_region_store_file_bytes"), "size"),
        description="Size of all store files. Snapshots and files that only open scans still hold are not counted.",
        see="basalt-regions",
    ),
    graph(
        "Background work", "short",
        (summed("basalt_background_queue_length", "kind"), "{{kind}}"),
        description="Jobs waiting or running.", see="basalt-engine",
    ),
]

PROCESS = [
    graph("CPU", "none", (rate("process_cpu_seconds_total"), "{{instance}}"), description="Cores in use.", width=6),
    graph(
        "Memory", "bytes",
        (value("process_resident_memory_bytes"), "{{instance}}"),
        description="Resident memory. Memstores and block cache are most of it.", width=6,
    ),
    graph(
        "File descriptors", "short",
        (value("process_open_fds"), "open {{instance}}"),
        (value("process_max_fds"), "limit {{instance}}"),
        (value("basalt_store_files_open"), "store files {{instance}}"),
        description="Each connection and each open store file takes one.",
        width=6,
    ),
    graph(
        "Threads", "short", (value("process_threads"), "{{instance}}"),
        description="Threads of the process. Hundreds: many calls wait for the disk or for row locks.", width=6,
    ),
    graph(
        "Delay of network threads", "s",
        (worst("basalt_network_delay_seconds"), "{{instance}}"),
        description="How late they were at least, all through the last window of 200 milliseconds. High: the processors are the "
        "limit.", width=12, limit=0.1,
    ),
    graph(
        "Traffic", "Bps",
        (total("basalt_received_bytes_total"), "received"),
        (total("basalt_sent_bytes_total"), "sent"),
        description="Bytes of Thrift messages, over both ports.", width=12,
    ),
]

ROWS = [("Five questions of an incident", INCIDENT), ("At a glance", GLANCE), ("Calls", CALLS), ("Data", DATA), ("Process", PROCESS)]
