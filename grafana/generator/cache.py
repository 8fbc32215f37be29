"""Where reads are answered from: block cache, bloom filters, disk."""

from panels import graph, stat
from queries import SERVERS, quantile, share, summed, total

UID = "basalt-cache"
TITLE = "Basalt: cache and reads"
DESCRIPTION = "The block cache, bloom filters, and how long reads take."
ALERTS = ["BasaltCacheThrash"]

HITS = total("basalt_block_cache_hits_total")
MISSES = total("basalt_block_cache_misses_total")
ASKED = f"({HITS} + {MISSES})"
FALSE_POSITIVES = share(total("basalt_bloom_false_positives_total"), total("basalt_bloom_checks_total"))
# Methods of both services: gets, and fetches of scanners.
READ_METHODS = SERVERS + ',method=~"get|getMultiple|exists|existsAll|getScannerR.*|getRow.*|getVer.*|scannerGet.*"'

GLANCE = [
    stat("Hit ratio", "percentunit", share(HITS, ASKED), "Share of the blocks asked for that were in the cache.",
         width=6, red_below=0.7),
    stat("Misses", "ops", MISSES, "Blocks read from disk, or from the page cache of the system, per second.", width=6),
    stat("False positives", "percentunit", FALSE_POSITIVES,
         "Share of the bloom filters asked that sent a read into a file in vain.", width=6, red_above=0.02),
    stat("Latency of reads, p99", "s",
         quantile(0.99, "basalt_request_duration_seconds", selector=READ_METHODS),
         "The slowest hundredth of gets and of fetches of scanners.", width=6),
]

CACHE = [
    graph(
        "Hit ratio by priority", "percentunit",
        (
            f"{total('basalt_block_cache_hits_total', 'priority')} / ignoring (priority) group_left () {ASKED}",
            "{{priority}}",
        ),
        description="Share of the blocks asked for that were found, by the priority of the block. The top of the stack is "
        "the hit ratio. A miss has no priority, since nothing was found.",
        stacked=True, max_=1,
    ),
    graph(
        "Blocks asked for", "ops",
        (total("basalt_block_cache_hits_total", "priority"), "hit {{priority}}"),
        (MISSES, "miss"),
        (total("basalt_blocks_read_ahead_total"), "read together for batches of gets"),
        description="A miss is a read from disk, or from the page cache of the system. Blocks read together for batches "
        "are misses, too.",
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
        width=12,
    ),
    graph(
        "Cached blocks", "short",
        (summed("basalt_block_cache_blocks", "priority"), "{{priority}}"),
        description="Blocks in the cache.",
        width=12, stacked=True,
    ),
]

BLOOM = [
    graph(
        "Bloom filters", "ops",
        (total("basalt_bloom_checks_total"), "asked"),
        (total("basalt_bloom_skips_total"), "files skipped"),
        (total("basalt_bloom_false_positives_total"), "false positives"),
        description="Bloom filters asked, files left out of a read because of them, and files read in vain.",
        width=12,
    ),
    graph(
        "False positives", "percentunit", (FALSE_POSITIVES, "of the filters asked"),
        description="More than 2 %: the filter does not fit the reads (ROW where ROWCOL is needed).",
        width=12, limit=0.02,
    ),
]

READS = [
    graph(
        "Read calls", "reqps",
        (total("basalt_requests_total", "api", "method", selector=READ_METHODS) + " > 0", "{{api}} {{method}}"),
        description="Gets, and fetches of scanners.", stacked=True,
    ),
    graph(
        "Latency of read calls, p99", "s",
        (quantile(0.99, "basalt_request_duration_seconds", "api", "method", selector=READ_METHODS), "{{api}} {{method}}"),
        description="A fetch of many rows is rightly slower than a get. Rises with the misses: the disk is the limit.",
    ),
    graph(
        "Rows read", "rowsps", (total("basalt_region_reads_total"), "rows"),
        description="Rows read by gets and scans.",
    ),
    graph(
        "Store files opened for reads", "ops",
        (total("basalt_store_file_opens_total"), "opened"), (total("basalt_store_file_evictions_total"), "closed for others"),
        description="Closed for others: more files are read than may be open (basalt_store_files_open_limit).",
    ),
    graph(
        "Store files open", "short",
        (summed("basalt_store_files_open"), "open"), (summed("basalt_store_files_open_limit"), "limit"),
        description="Descriptors of store files, and their share of the limit of open files.",
    ),
    graph(
        "Memory held by scans", "bytes", (summed("basalt_memstore_pinned_bytes"), "memstores"),
        description="Memstores that were flushed and that open scans still hold.",
        width=24,
    ),
]

ROWS = [("At a glance", GLANCE), ("Block cache", CACHE), ("Bloom filters", BLOOM), ("Reads", READS)]
