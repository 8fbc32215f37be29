"""Which region burns, and how even is the load of each table?"""

from panels import bars, graph
from queries import REAL_REGIONS, REGIONS, SERVERS, hottest, peak_to_mean, rate, total, value

UID = "basalt-regions"
TITLE = "Basalt: regions and hot spots"
DESCRIPTION = "Load and size of regions, how evenly row keys spread, and virtual servers of a rehearsal."
ALERTS = ["BasaltHotRegion", "BasaltHotRow", "BasaltWriteStall"]
TABLES = True

TABLES_ROW = [
    graph(
        "Rows written by table", "wps",
        (total("basalt_region_writes_total", "table", selector=REGIONS), "{{table}}"),
        description="Row mutations per second. `other` is the sum of the regions beyond metrics.max_regions.",
        stacked=True,
    ),
    graph(
        "Rows read by table", "rps",
        (total("basalt_region_reads_total", "table", selector=REGIONS), "{{table}}"),
        description="Rows read per second by gets and scans.",
        stacked=True,
    ),
    graph(
        "Regions by table", "short",
        (f"count by (table) ({value('basalt_region_writes_total', REAL_REGIONS)})", "{{table}}"),
        description="Rises when regions split.",
    ),
]

EVENNESS = [
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
]

HOT = [
    graph(
        "Writes per region, busiest 20", "wps",
        (hottest(20, rate("basalt_region_writes_total", REGIONS)), "{{table}} {{region}}"),
        description="Row mutations per second. One line far above the others is a hot region: its row keys begin alike. "
        "Salt or reverse the key, or split the table in advance. The page /heat of the server shows where in the key space.",
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
        "Hottest row of each table", "percentunit",
        (value("basalt_hottest_row_share", REGIONS), "{{table}} {{kind}}"),
        description="Part of a table's reads or writes of the last minutes that go to one row. The table's page names the row.",
        width=24,
    ),
    graph(
        "Refused writes per region", "wps",
        (hottest(20, rate("basalt_region_blocked_writes_total", REGIONS)), "{{table}} {{region}}"),
        description="Writes answered with RegionTooBusyException because the region's memstore was full. One region: a hot spot. "
        "All: the disk does not keep up with flushes.",
        width=24,
    ),
]

SIZE = [
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
        "Splits and merges", "ops",
        (total("basalt_region_splits_total"), "splits"),
        (total("basalt_region_merges_total"), "merges"),
        description="Regions split, by size or on demand, and merges, of all tables. Many splits while a table fills: create it "
        "with split keys.",
        width=24,
    ),
]

REHEARSAL = [
    graph(
        "Rows by virtual server", "reqps",
        (total("basalt_rehearsal_requests_total", "server", "kind", selector=SERVERS), "{{server}} {{kind}}"),
        description="Rows that each virtual server is charged with. One line alone is a hot region. Empty without a rehearsal.",
        width=12,
    ),
    graph(
        "Bytes by virtual server", "Bps",
        (total("basalt_rehearsal_bytes_total", "server", "kind", selector=SERVERS), "{{server}} {{kind}}"),
        description="Bytes of the cells that each virtual server is charged with. Empty without a rehearsal.",
        width=12,
    ),
]

ROWS = [
    ("Tables", TABLES_ROW),
    ("How even", EVENNESS),
    ("Hot regions", HOT),
    ("Size", SIZE),
    ("Rehearsal of a cluster", REHEARSAL),
]
