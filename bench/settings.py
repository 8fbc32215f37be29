#!/usr/bin/env python3
"""What the settings that matter trade: each one's default beside its neighbours, measured on this machine.

    cargo build --release -p basalt -p basalt-bench -p basalt-shell
    bench/settings.py --out settings.json > settings.md
    bench/settings.py --only wal.sync,compaction.min_files --rounds 5

For each value: a server on a new directory and ports of its own, a fixed workload of basalt-bench, counters of /metrics, SIGTERM. The
values take turns, and each round begins with another one. A cell is the median over the rounds, with the least and the most behind
it where they differ; "none" means that there was nothing to divide by, as no sync or no flush. The defaults are those that the server
prints: a default that is not in the lists below is measured too, and a setting that the server does not know is left out with a line
that says so. All of it takes about ten minutes on a machine that does nothing else.

Ingest is `pe randomWrite`: batches of 100 rows with values of 1000 bytes over 8 connections, in a table split in advance, so that no
split mixes into it. "Written by flushed" is all bytes of store files that flushes and compactions wrote, until the background was idle, by
the bytes that flushes wrote: what is still in memstores is in neither.

Left out, and why:

- Limits that protect and trade nothing below them: thrift.max_*, requests.memory_bytes, memstore.block_multiplier, disk.reserve_bytes,
  wal.stall_ms, row.*, scanner.max_*, quota.*, timeouts. Their tests reach them.
- requests.max_delay_ms: the crowd of `basalt-bench overload` does not make the network threads late enough to reach it.
- scanner.fetch_max_bytes, scanner.fetch_max_ms: a fetch of rows ends at the client's count long before.
- compaction.ratio, compaction.max_files, compaction.min_bytes, compaction.blocking_files, region.max_bytes: HBase's, and a few seconds
  of ingest do not get there. bench/ingest.py and bench/growth.py run for long enough.
- compaction.max_bytes_per_second: its default is no limit. memory.total_bytes only sets others.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from machine import machine

MIB = 1 << 20
# Memory of a row in a memstore besides its value: key, overhead, and some to spare.
ROW_OVERHEAD = 150
# Sizes of the workloads, before --scale.
INGEST_ROWS = 800_000
COMPACTION_ROWS = 400_000
CACHE_RECORDS = 300_000
BLOCK_ROWS = 200_000
LONG_ROWS = 600_000
SHORT_ROWS = 60_000
# Rows a second.
LONG_RATE = 5_000
# Few, so that hardly any block is read twice.
DISK_READS = 300
READY_S = 120
IDLE_S = 120
STOP_S = 60
SERIES = re.compile(r"^(\w+)(\{.*\})? ([-+.\deE]+)$")
SETTING = re.compile(r"setting ([\w.]+) = (.*)$", re.M)
OPENED = re.compile(r"opened .* in (\d+) ms: .*?(\d+) rows replayed from (\d+) log segments")


class Failed(Exception):
    """Message to the user about a step that failed."""


class Server:
    """A server on ports that the system chooses. It ends with the `with`, whatever happens in it."""

    def __init__(self, options, data_dir, settings):
        self.log_path = Path(f"{data_dir}.log")
        self.command = [options.basalt, "serve", "--data-dir", str(data_dir), "--thrift-listen", "127.0.0.1:0",
                        "--http-listen", "127.0.0.1:0"]
        for name, value in settings.items():
            self.command += ["--set", f"{name}={value}"]
        self.process = None

    def __enter__(self):
        print("running", " ".join(self.command), file=sys.stderr, flush=True)
        try:
            with self.log_path.open("wb") as log:
                # A session of its own: Ctrl-C is for this script, which stops the server then.
                self.process = subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True)
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def wait_until_ready(self):
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            if ready := re.search(r"serves HBase clients on (\S+) and HTTP on (\S+?)/?\s", self.log()):
                self.thrift, self.http = ready.groups()
                return
            if self.process.poll() is not None:
                raise Failed(f"{' '.join(self.command)} ended with {self.process.returncode}:\n{self.log()}")
            time.sleep(0.01)
        raise Failed(f"{' '.join(self.command)} was not ready after {READY_S} s:\n{self.log()}")

    def __exit__(self, kind, *_):
        if kind is not None:
            self.kill()
        elif self.process.poll() is None:
            self.process.terminate()
            try:
                code = self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise Failed(f"the server did not stop within {STOP_S} s:\n{self.log()}") from None
            except BaseException:
                self.kill()
                raise
            if code != 0:
                raise Failed(f"the server ended with {code}:\n{self.log()}")

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def metrics(self, label=""):
        """Values by name; those of different labels added up, or of this label only."""
        with urllib.request.urlopen(f"{self.http}/metrics", timeout=30) as reply:
            text = reply.read().decode()
        sums = defaultdict(float)
        for line in text.splitlines():
            if (match := SERIES.match(line)) and label in (match.group(2) or ""):
                sums[match.group(1)] += float(match.group(3))
        return sums

    def cpu_seconds(self):
        """CPU time of the process. The metric of this name is in whole seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_idle(self):
        """Until flushes and compactions have nothing to do; seconds that it took, and the counters then."""
        began = time.monotonic()
        idle_looks = 0
        while time.monotonic() < began + IDLE_S:
            now = self.metrics()
            idle_looks = idle_looks + 1 if now["basalt_background_queue_length"] == 0 else 0
            if idle_looks == 3:
                return now
            time.sleep(0.1)
        raise Failed(f"flushes and compactions had not ended after {IDLE_S} s")


@dataclass
class Run:
    """What a measurement needs: the options, a directory of its own, one for all values of the experiment, and the settings."""

    options: argparse.Namespace
    dir: Path
    shared: Path
    settings: dict

    @contextmanager
    def server(self, data_dir=None, settings=None):
        merged = self.settings if settings is None else settings
        with Server(self.options, data_dir or self.dir / "data", merged) as server:
            yield server

    def scaled(self, number):
        return max(1, int(number * self.options.scale))

    def bench(self, workload, server, words, report="report.json"):
        """One command of basalt-bench; its report."""
        out = self.dir / "report"
        shutil.rmtree(out, ignore_errors=True)
        target = ["--target", server.thrift] if server else []
        command = [self.options.basalt_bench, workload, *target, f"--out={out}", *(str(word) for word in words)]
        print("running", " ".join(command), file=sys.stderr, flush=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return json.loads((out / report).read_text())

    def shell(self, server, *lines):
        """Lines for the shell, each of which must succeed."""
        command = [self.options.basalt_shell, "--target", server.thrift, "--noninteractive"]
        command += [word for line in lines for word in ("--execute", line)]
        print("running", " ".join(command), file=sys.stderr, flush=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")

    def phase(self, workload, server, words):
        """The only phase of a load; every call of it must have been answered."""
        phase, = self.bench(workload, server, words)["phases"]
        if phase["errors"] or not phase["operations"]:
            raise Failed(f"{phase['name']}: {phase['errors']} of {phase['operations']} calls failed: {phase['first_error']}")
        return phase

    def pe(self, server, command, *words):
        return self.phase("pe", server, [*words, command])

    def engine(self, db, benchmarks, *words):
        """Benchmarks of the engine, without a server."""
        return self.bench("engine", None, [f"--benchmarks={benchmarks}", f"--db={db}", *words], "engine.json")["benchmarks"]


def ratio(part, whole):
    """None, which no table prints as a figure, if there is nothing to divide by."""
    return part / whole if whole else None


def grown(before, after, name):
    return after[f"basalt_{name}"] - before[f"basalt_{name}"]


def single_puts(run):
    """Puts of one row of 100 bytes, over one connection and over 64."""
    figures = {}
    with run.server() as server:
        for connections in (1, 64):
            before = server.metrics()
            phase = run.pe(server, "randomWrite", f"--threads={connections}", f"--rows={10_000_000 // connections}",
                           f"--duration={run.options.seconds}", "--valueSize=100", f"--table=t{connections}")
            after = server.metrics()
            figures[f"puts_{connections}"] = phase["rows_per_second"]
            figures[f"p99_{connections}"] = phase["latency_seconds"]["p99"]
            figures[f"puts_per_sync_{connections}"] = ratio(grown(before, after, "wal_appends_total"),
                                                           grown(before, after, "wal_syncs_total"))
    return figures


def ingest(run, rows, regions, reads):
    """Batches over 8 connections, all that flushes and compactions make of them, and gets of what is there then."""
    with run.server() as server:
        rows = run.scaled(rows)
        write = run.pe(server, "randomWrite", "--threads=8", f"--rows={rows // 8}", "--multiPut=100", "--valueSize=1000",
                       f"--presplit={regions}")
        at_end = server.metrics()
        idle = server.wait_until_idle()
        cpu = server.cpu_seconds()
        flushed, compacted = idle["basalt_flush_written_bytes_total"], idle["basalt_compaction_written_bytes_total"]
        figures = {
            "rows": write["rows_per_second"],
            "p99": write["latency_seconds"]["p99"],
            "longest": write["latency_seconds"]["max"],
            "flushes": idle["basalt_flushes_total"],
            "mib_per_flush": ratio(flushed / MIB, idle["basalt_flushes_total"]),
            "amplification": ratio(flushed + compacted, flushed),
            "cpu": cpu / write["rows"],
            "files_at_end": at_end["basalt_region_store_files"],
            "files": idle["basalt_region_store_files"],
            "held_back": idle["basalt_delayed_writes_total"] + idle["basalt_blocked_writes_total"],
        }
        if reads:
            words = ["--threads=8", f"--rows={rows // 8}", f"--duration={run.options.seconds}"]
            before = server.metrics()
            read = run.pe(server, "randomRead", *words)
            after = server.metrics()
            figures |= {
                "gets": read["rows_per_second"],
                "filters_per_get": ratio(grown(before, after, "bloom_checks_total"), read["operations"]),
            }
    return figures


def flush_size(run):
    figures = ingest(run, INGEST_ROWS, 2, reads=False)
    shutil.rmtree(run.dir / "data")
    return figures | replay(run)


def replay(run):
    """Kills the server when one region's memstore is nearly full, and starts it again."""
    flush_bytes = run.settings.get("memstore.flush_bytes") or run.options.defaults["memstore.flush_bytes"]
    rows = int(0.85 * int(flush_bytes) / (1000 + ROW_OVERHEAD))
    with run.server() as server:
        run.pe(server, "sequentialWrite", "--threads=8", f"--rows={rows // 8}", "--multiPut=100", "--valueSize=1000")
        before = server.metrics()
        if before["basalt_flushes_total"]:
            raise Failed("a region was flushed that should have been nearly full")
        server.kill()
    with run.server() as server:
        opened = OPENED.search(server.log())
        if not opened or int(opened.group(2)) < rows // 8 * 8:
            raise Failed(f"the log was not replayed as expected:\n{server.log()}")
    return {"memstore_mib": before["basalt_memstore_bytes"] / MIB, "replay": int(opened.group(1)) / 1e3}


def total_memstores(run):
    return ingest(run, INGEST_ROWS, 16, reads=False)


def compactions(run):
    return ingest(run, COMPACTION_ROWS, 2, reads=True)


def long_compaction(run):
    """Writes to one table, and gets of it, while all files of another one are compacted at a limited rate."""
    data = run.dir / "data"
    rows = run.scaled(LONG_ROWS)
    with run.server(data, {"wal.sync": "os", "compaction.enabled": "false"}) as server:
        run.pe(server, "sequentialWrite", "--threads=8", f"--rows={rows // 8}", "--multiPut=100", "--valueSize=1000", "--table=long")
    with run.server(data) as server:
        run.shell(server, "flush 'long'", "major_compact 'long'")
        words = ["--threads=8", "--table=short"]
        run.pe(server, "randomWrite", *words, f"--rows={run.scaled(SHORT_ROWS) // 8}", "--valueSize=1000", f"--rate={LONG_RATE}")
        before = server.metrics()
        read = run.pe(server, "randomRead", *words, f"--rows={run.scaled(SHORT_ROWS) // 8}", f"--duration={run.options.seconds}")
        after = server.metrics()
        if not after["basalt_background_left_bytes"] or after["basalt_background_queue_length"] < 1:
            raise Failed("the long compaction was over too soon")
        return {
            "files": server.metrics('table="short"')["basalt_region_store_files"],
            "filters_per_get": ratio(grown(before, after, "bloom_checks_total"), read["operations"]),
            "gets": read["rows_per_second"],
            "p99": read["latency_seconds"]["p99"],
        }


def cache(run):
    """Reads of a table that is loaded once, with YCSB's zipfian distribution."""
    data = run.shared / "data"
    records = run.scaled(CACHE_RECORDS)
    if not data.exists():
        with run.server(data, {"wal.sync": "os"}) as server:
            run.phase("ycsb", server, ["c", f"--records={records}", "--phase=load", "--threads=64"])
    with run.server(data) as server:
        words = ["c", f"--records={records}", "--phase=run", "--threads=8", f"--duration={run.options.seconds}"]
        run.phase("ycsb", server, words)
        before = server.metrics()
        read = run.phase("ycsb", server, words)
        after = server.metrics()
        hits, misses = (grown(before, after, f"block_cache_{what}_total") for what in ("hits", "misses"))
        return {
            "table_mib": after["basalt_region_store_file_bytes"] / MIB,
            "hit_ratio": ratio(hits, hits + misses),
            "gets": read["rows_per_second"],
            "p50": read["latency_seconds"]["p50"],
            "p99": read["latency_seconds"]["p99"],
            "memory_mib": after["process_resident_memory_bytes"] / MIB,
        }


def forget(directory):
    """Takes the files of a directory out of the page cache."""
    for path in Path(directory).rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def block_size(run):
    """The engine alone: one file; few gets from the disk, then many with a cache that is too small, and with one that has all."""
    size = run.settings["BLOCKSIZE"]
    rows = run.scaled(BLOCK_ROWS)
    db = run.shared / f"db-{size}"
    # A region of twice the memstore is split, which would go on beside the reads: a memstore so large that it is not.
    words = [f"--num={rows}", "--value-size=1000", f"--block-size={size}", f"--write-buffer-size={1 << 30}"]
    if not db.exists():
        run.engine(db, "fillseq,compact", *words)
    words.append("--use-existing-db")
    forget(db)
    disk, = run.engine(db, "readrandom", *words, f"--cache-size={16 * MIB}", f"--reads={DISK_READS}")
    _, small = run.engine(db, "readrandom,readrandom", *words, f"--cache-size={64 * MIB}", f"--reads={rows // 5}")
    fill, get, seek, seq = run.engine(db, "readseq,readrandom,seekrandom,readseq", *words, f"--cache-size={1 << 30}", "--seek-nexts=10")
    first, all_misses = (of["database"]["cache_misses"] for of in (fill, seq))
    # Chunks of the bloom filter are read by the first get.
    if all_misses > first * 1.01 + 5 or seq["database"]["store_files"] != 1:
        raise Failed(f"the block cache was to have all of one file: {first} misses became {all_misses}, {seq['database']['store_files']} files")
    return {
        "disk_get": disk["seconds"] / disk["operations"],
        "small_get": small["seconds"] / small["operations"],
        "cached_get": get["seconds"] / get["operations"],
        "seek": seek["seconds"] / seek["operations"],
        "readseq": seq["operations"] / seq["seconds"],
        "index_mib": seq["database"]["index_bytes"] / MIB,
    }


def segments(run):
    """Batches over 8 connections, three times as long as other phases: the first seconds of a new log say little about the others."""
    with run.server() as server:
        phase = run.pe(server, "randomWrite", "--threads=8", "--rows=1000000", f"--duration={3 * run.options.seconds}", "--multiPut=100",
                       "--valueSize=1000", "--presplit=2")
        after = server.metrics()
        return {
            "cpu": server.cpu_seconds() / phase["rows"],
            "rows": phase["rows_per_second"],
            "p99": phase["latency_seconds"]["p99"],
            "longest": phase["latency_seconds"]["max"],
            "segments": after["basalt_wal_written_bytes_total"] / int(run.settings.get("wal.segment_bytes")
                                                                     or run.options.defaults["wal.segment_bytes"]),
        }


def overload(run):
    """Scans of 100 rows when they are due, over 1,024 connections, at four times the peak."""
    with run.server() as server:
        report = run.bench("overload", server, ["--calls=scan", "--shares=4", f"--seconds={run.options.seconds}"], "overload.json")
    peak, crowd = report["phases"]
    return {
        "peak": peak["accepted_per_second"],
        "accepted": crowd["accepted_per_second"],
        "share": ratio(crowd["accepted_per_second"], peak["accepted_per_second"]),
        "refused": crowd["refused_per_second"],
        "p50": crowd["accepted_seconds"]["p50"],
        "p99": crowd["accepted_seconds"]["p99"],
        "longest": crowd["accepted_seconds"]["max"],
    }


def observed(run):
    """Gets of cached rows and puts, over 64 connections: calls so short that what watches them would show."""
    rows = 1000
    with run.server() as server:
        run.pe(server, "sequentialWrite", "--threads=64", f"--rows={rows}", "--multiPut=100", "--valueSize=100")
        words = ["--threads=64", f"--rows={rows}", f"--duration={run.options.seconds}", "--valueSize=100"]
        figures = {}
        for what, command in (("get", "randomRead"), ("put", "randomWrite")):
            before = server.cpu_seconds()
            phase = run.pe(server, command, *words)
            figures |= {
                f"{what}s": phase["rows_per_second"],
                f"{what}_p99": phase["latency_seconds"]["p99"],
                f"{what}_cpu": (server.cpu_seconds() - before) / phase["operations"],
            }
        return figures | {"memory_mib": server.metrics()["process_resident_memory_bytes"] / MIB}


def count(number):
    if number >= 1e6:
        return f"{number / 1e6:.2f} M"
    if number >= 1e5:
        return f"{number / 1e3:.0f} k"
    if number >= 1e3:
        return f"{number / 1e3:.1f} k"
    return f"{number:.0f}"


def places(digits, scale=1.0, unit=""):
    return lambda number: f"{number * scale:.{digits}f}{unit}"


def ms(seconds):
    number = seconds * 1e3
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f}"


US = places(1, 1e6)


@dataclass
class Experiment:
    """Settings that one workload measures. Their defaults together are one case, measured once a round."""

    settings: dict
    measure: Callable
    columns: list
    # Description of the workload, as a sentence above its tables; names in braces are numbers of
    # rows.
    text: str
    # Settings shared by all cases.
    base: dict = field(default_factory=dict)


INGEST_COLUMNS = [("rows/s", "rows", count), ("p99, ms", "p99", ms), ("longest call, ms", "longest", ms), ("server's CPU, µs a row", "cpu", US)]
COMPACTION_COLUMNS = [*INGEST_COLUMNS, ("written by flushed", "amplification", places(2)), ("files at the end", "files_at_end", count),
                      ("files when idle", "files", count), ("filters asked a get", "filters_per_get", places(2)), ("gets/s", "gets", count)]
OVERLOAD_COLUMNS = [("peak, calls/s", "peak", count), ("accepted/s", "accepted", count), ("of the peak", "share", places(2)),
                    ("refused/s", "refused", count), ("accepted: p50, ms", "p50", ms), ("p99, ms", "p99", ms),
                    ("longest, ms", "longest", ms)]

EXPERIMENTS = [
    Experiment({"wal.sync": ["fsync", "os"]}, single_puts,
               [("puts/s, 1 connection", "puts_1", count), ("p99, ms", "p99_1", ms), ("puts a sync", "puts_per_sync_1", places(1)),
                ("puts/s, 64 connections", "puts_64", count), ("p99, ms", "p99_64", ms), ("puts a sync", "puts_per_sync_64", places(1))],
               "Puts of one row of 100 bytes."),
    Experiment({"memstore.flush_bytes": [32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB]}, flush_size,
               [*INGEST_COLUMNS, ("flushes", "flushes", count), ("written by flushed", "amplification", places(2)),
                ("files when idle", "files", count), ("memstore at kill -9, MiB", "memstore_mib", count), ("next start, s", "replay", places(2))],
               "Ingest of {ingest} rows into 2 regions; then, on a new directory, one region is filled to nearly a flush, the server "
               "is killed with kill -9, and started again."),
    Experiment({"memstore.total_bytes": [256 * MIB, 512 * MIB, 1024 * MIB]}, total_memstores,
               [*INGEST_COLUMNS, ("writes held back or refused", "held_back", count),
                ("flushes", "flushes", count), ("MiB a flush", "mib_per_flush", places(0)), ("written by flushed", "amplification", places(2))],
               "Ingest of {ingest} rows into 16 regions, none of which gets to its own flush size.",
               {"memstore.flush_bytes": 128 * MIB}),
    Experiment({"compaction.min_files": [2, 3, 5], "compaction.threads": [1, 2], "flush.threads": [1, 2]}, compactions, COMPACTION_COLUMNS,
               "Ingest of {compaction} rows into 2 regions with flushes of 16 MiB, so that there is much to compact; gets of random rows when "
               "the background is idle.", {"memstore.flush_bytes": 16 * MIB}),
    Experiment({"compaction.long_bytes": [100 * MIB, 2560 * MIB]}, long_compaction,
               [("files of the other table", "files", count), ("filters asked a get", "filters_per_get", places(2)), ("gets/s", "gets", count),
                ("p99, ms", "p99", ms)],
               "All files of a table of {long_rows} rows are compacted, with at most 20 MB/s; meanwhile another table gets {short_rows} rows, 5,000 a "
               "second, with flushes of 4 MiB, and then gets of random rows.",
               {"wal.sync": "os", "memstore.flush_bytes": 4 * MIB, "compaction.min_bytes": 4 * MIB, "compaction.max_bytes_per_second": 20_000_000}),
    Experiment({"block_cache.bytes": [64 * MIB, 256 * MIB, 1024 * MIB]}, cache,
               [("table, MiB", "table_mib", count), ("hits of block look-ups", "hit_ratio", places(1, 100, " %")), ("gets/s", "gets", count),
                ("p50, ms", "p50", ms), ("p99, ms", "p99", ms), ("server's memory, MiB", "memory_mib", count)],
               "YCSB's workload C (gets, zipfian) of {cache} records over 8 connections, after as long a warm-up. The page cache has the files."),
    Experiment({"BLOCKSIZE": [4096, 16384, 65536, 262144]}, block_size,
               [("get from the disk, µs", "disk_get", US), ("get, cache of 64 MiB, µs", "small_get", US),
                ("get, all cached, µs", "cached_get", US), ("seek and 10 rows, µs", "seek", US), ("rows/s in order", "readseq", count),
                ("index and filters, MiB", "index_mib", places(2))],
               "A family's attribute, of the engine alone: {block} rows of 1000 bytes in one file. From the disk: {disk} gets after the "
               "file was taken out of the page cache. The other columns read the page cache where the block cache has nothing."),
    Experiment({"wal.segment_bytes": [16 * MIB, 64 * MIB, 256 * MIB]}, segments,
               [*INGEST_COLUMNS, ("segments filled", "segments", places(1))],
               "Ingest for {long} seconds into 2 regions."),
    Experiment({"requests.max_waiting": [64, 512, 2000], "requests.max_wait_ms": [0, 500]}, overload, OVERLOAD_COLUMNS,
               "Scans of 100 rows over 1,024 connections, at four times the peak."),
    Experiment({"key_visualizer.bytes": [0, 16 * MIB], "slow_log.enabled": ["false", "true"]}, observed,
               [("gets/s", "gets", count), ("p99, ms", "get_p99", ms), ("server's CPU, µs a get", "get_cpu", US), ("puts/s", "puts", count),
                ("p99, ms", "put_p99", ms), ("server's CPU, µs a put", "put_cpu", US), ("server's memory, MiB", "memory_mib", count)],
               "Gets of one cached row and puts of one row of 100 bytes, over 64 connections.", {"wal.sync": "os"}),
]
# An attribute of a family is no setting of the server, so the server does not print its default: HBase's.
ATTRIBUTES = {"BLOCKSIZE": 65536}


def defaults_of(options, scratch):
    """The settings of a server that was told none."""
    with Server(options, scratch / "defaults", {}) as server:
        found = {name: value.strip().strip('"') for name, value in SETTING.findall(server.log())}
    if not found:
        raise Failed(f"the server did not print its settings:\n{server.log()}")
    return found | {name: str(value) for name, value in ATTRIBUTES.items()}


def shown(name, value):
    if not (name.endswith("bytes") or name == "BLOCKSIZE") or value == "0":
        return value
    number = int(value)
    return f"{number // MIB} MiB" if number % MIB == 0 else f"{number // 1024} KiB" if number % 1024 == 0 else value


def cell(figures, format_one):
    if any(figure is None for figure in figures):
        return "none"
    middle, least, most = (format_one(of(figures)) for of in (statistics.median, min, max))
    return middle if least == most else f"{middle} ({least} to {most})"


def values_of(name, listed, defaults):
    """The listed values and the default, as the server prints them, in order."""
    values = {str(value) for value in listed} | {defaults[name]}
    return sorted(values, key=lambda value: (0, int(value), "") if value.isdigit() else (1, 0, value))


def print_table(options, name, experiment, defaults, values, rounds):
    sizes = {"ingest": INGEST_ROWS, "compaction": COMPACTION_ROWS, "cache": CACHE_RECORDS, "block": BLOCK_ROWS,
             "long_rows": LONG_ROWS, "short_rows": SHORT_ROWS}
    fixed = {"disk": DISK_READS, "long": 3 * options.seconds}
    text = experiment.text.format(**{what: f"{int(rows * options.scale):,}" for what, rows in sizes.items()}, **fixed)
    print(f"\n**`{name}`.** {text}\n")
    print(f"| value | {' | '.join(title for title, _, _ in experiment.columns)} |")
    print(f"| --- |{' ---: |' * len(experiment.columns)}")
    for value in values:
        cells = [cell([figures[key] for figures in rounds[value]], format_one) for _, key, format_one in experiment.columns]
        print(f"| {shown(name, value)}{' (default)' if value == defaults[name] else ''} | {' | '.join(cells)} |", flush=True)


def play(options, experiment, names, scratch, defaults):
    """All rounds of an experiment; figures of each round by setting and value."""
    values = {name: values_of(name, experiment.settings[name], defaults) for name in names}
    all_default = ("", "")
    cases = [all_default] + [(name, value) for name in names for value in values[name] if value != defaults[name]]
    measured = {case: [] for case in cases}
    with tempfile.TemporaryDirectory(prefix="shared-", dir=scratch) as shared:
        for index in range(options.rounds):
            for name, value in cases[index % len(cases):] + cases[:index % len(cases)]:
                settings = experiment.base | ({name: value} if name else {})
                if "BLOCKSIZE" in names:
                    settings.setdefault("BLOCKSIZE", defaults["BLOCKSIZE"])
                with tempfile.TemporaryDirectory(prefix="case-", dir=scratch) as directory:
                    measured[name, value].append(experiment.measure(Run(options, Path(directory), Path(shared), settings)))
    return {name: {value: measured[all_default if value == defaults[name] else (name, value)] for value in values[name]} for name in names}


def measure_all(options, asked, scratch):
    options.defaults = defaults = defaults_of(options, scratch)
    report = {"machine": machine(), "rounds": options.rounds, "seconds": options.seconds, "scale": options.scale, "settings": {}}
    print(f"Medians of {options.rounds} round(s), in brackets the least and the most; timed phases of {options.seconds} s. {machine()}.")
    for experiment in EXPERIMENTS:
        names = [name for name in experiment.settings if name in asked]
        for name in [name for name in names if name not in defaults]:
            print(f"\n**`{name}`.** Left out: this server has no such setting.", flush=True)
            names.remove(name)
        if not names:
            continue
        measured = play(options, experiment, names, scratch, defaults)
        for name in names:
            print_table(options, name, experiment, defaults, list(measured[name]), measured[name])
            report["settings"][name] = {"default": defaults[name], "base": experiment.base, "values": measured[name]}
        if options.out:
            Path(options.out).write_text(json.dumps(report, indent=1) + "\n")


def stop(number, _):
    sys.exit(128 + number)


def main():
    root = Path(__file__).resolve().parent.parent
    known = [name for experiment in EXPERIMENTS for name in experiment.settings]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(known), help=f"of: {', '.join(known)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2, help="of each timed phase")
    parser.add_argument("--scale", type=float, default=1, help="rows and records, times this")
    parser.add_argument("--out", help="a file for all figures of all rounds, as JSON")
    parser.add_argument("--dir", help="where the databases go (default: a new directory of the system)")
    parser.add_argument("--basalt", default=str(root / "target" / "release" / "basalt"))
    parser.add_argument("--basalt-bench", default=str(root / "target" / "release" / "basalt-bench"))
    parser.add_argument("--basalt-shell", default=str(root / "target" / "release" / "basalt-shell"))
    options = parser.parse_args()
    asked = options.only.split(",")
    if unknown := [name for name in asked if name not in known]:
        sys.exit(f"there is no measurement of {', '.join(unknown)}; there are {', '.join(known)}")
    if options.rounds < 1 or options.seconds < 1 or options.scale <= 0:
        sys.exit("--rounds and --seconds must be at least 1, --scale more than 0")
    for program in (options.basalt, options.basalt_bench, options.basalt_shell):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not there: cargo build --release -p basalt -p basalt-bench -p basalt-shell")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        with tempfile.TemporaryDirectory(prefix="settings-", dir=options.dir) as scratch:
            measure_all(options, asked, Path(scratch))
    except Failed as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("interrupted; servers and directories are gone")


if __name__ == "__main__":
    main()
