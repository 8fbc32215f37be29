#!/usr/bin/env python3
"""A long ingest at full speed: the longest pause of a write and its 99.9th percentile, the slowest stretch, and what it costs in bytes, beside RocksDB.

    cargo build --release -p basalt-bench
    bench/ingest.py --seconds 1800 --rocksdb-seconds 300

One thread writes rows at random from a fixed number of keys, with the log but without a sync, while flushes and compactions run behind
it. Write amplification is all bytes written (log, flushes, compactions) by the bytes of keys and values; space amplification is all
bytes on disk at the end by the bytes of the different keys that were written. RocksDB needs db_bench; with 0 seconds it is left out.
"""

import argparse
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WINDOW_S = 10
KEY_BYTES = 16


def run(command):
    print("running", " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def bytes_below(directory):
    return sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())


def distinct(writes, keys):
    """Expected number of different keys after `writes` draws."""
    return keys * (1 - math.exp(-writes / keys))


def words(options, seconds, db):
    return ["--benchmarks=fillrandom", f"--db={db}", f"--num={options.keys}", f"--value_size={options.value_size}", f"--duration={seconds}",
            "--compression_type=none", "--bloom_bits=10", "--write_buffer_size=67108864", "--histogram=true"]


def print_row(name, writes, seconds, p999, longest, slowest, median, amplification, space):
    windows = "" if median is None else f"{slowest / 1e3:.0f} k, {slowest / median:.2f} of the median"
    print(f"| {name} | {seconds:.0f} | {writes / 1e6:.1f} M | {writes / seconds / 1e3:.0f} k | {p999 * 1e6:.0f} | {longest * 1e3:.0f} | {windows} "
          f"| {amplification:.2f} | {space:.2f} |", flush=True)


def basalt(options, db):
    out = f"{db}-out"
    run([options.basalt_bench, "engine", *words(options, options.seconds, db), f"--out={out}"])
    report = json.loads(Path(out, "engine.json").read_text())["benchmarks"][0]
    slots = report["timeline"]["rows_per_second"]
    width = int(WINDOW_S / report["timeline"]["slot_seconds"])
    windows = [statistics.mean(slots[at:at + width]) for at in range(0, len(slots) - width + 1)]
    if not windows:
        sys.exit(f"--seconds must be more than {WINDOW_S}")
    standing = report["database"]
    written = sum(standing[what] for what in ("wal_bytes", "flush_bytes", "compaction_bytes"))
    pair = KEY_BYTES + options.value_size
    print_row("Basalt", report["operations"], report["seconds"], report["latency_seconds"]["p999"],
              report["latency_seconds"]["max"], min(windows), statistics.median(windows),
              written / (report["operations"] * pair), standing["disk_bytes"] / (distinct(report["operations"], options.keys) * pair))


def rocksdb(options, db):
    text = run([options.db_bench, *words(options, options.rocksdb_seconds, db), "--statistics=1"])
    found = re.search(r"^fillrandom\s*:.*?(\d+) ops/sec ([\d.]+) seconds (\d+) operations", text, re.M)
    if not found:
        sys.exit(f"db_bench printed no line for fillrandom:\n{text}")
    seconds, writes = float(found.group(2)), int(found.group(3))
    ticker = {name: int(count) for name, count in re.findall(r"^(rocksdb\.[\w.]+) COUNT : (\d+)$", text, re.M)}
    written = sum(ticker[f"rocksdb.{what}"] for what in ("wal.bytes", "flush.write.bytes", "compact.write.bytes"))
    longest = float(re.search(r"Max: ([\d.]+)", text).group(1)) / 1e6
    p999 = float(re.search(r"P99\.9: ([\d.]+)", text).group(1)) / 1e6
    pair = KEY_BYTES + options.value_size
    print_row("RocksDB", writes, seconds, p999, longest, None, None, written / (writes * pair),
              bytes_below(db) / (distinct(writes, options.keys) * pair))


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--rocksdb-seconds", type=int, default=0)
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument("--dir", help="where the databases go (default: a new directory of the system)")
    parser.add_argument("--db-bench", default="db_bench")
    parser.add_argument("--basalt-bench", default=str(root / "target" / "release" / "basalt-bench"))
    options = parser.parse_args()
    needed = [options.basalt_bench] + ([options.db_bench] if options.rocksdb_seconds else [])
    for program in needed:
        if shutil.which(program) is None:
            sys.exit(f"{program} is not there; see --help")
    print(f"{options.keys} keys of {KEY_BYTES} bytes, values of {options.value_size} bytes.\n")
    print(f"| | seconds | writes | writes/s | p99.9, µs | longest write, ms | slowest {WINDOW_S} s, writes/s | write amplification | space amplification |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="ingest-", dir=options.dir) as scratch:
        if options.seconds:
            basalt(options, str(Path(scratch) / "basalt"))
            shutil.rmtree(Path(scratch) / "basalt")
        if options.rocksdb_seconds:
            rocksdb(options, str(Path(scratch) / "rocksdb"))


if __name__ == "__main__":
    main()
