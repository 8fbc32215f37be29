#!/usr/bin/env python3
"""A long ingest at full speed: the longest pause of a write and its 99.9th percentile, the slowest stretch, and what it costs in bytes, beside RocksDB and fjall.

    cargo build --release -p basalt-bench
    (cd bench/rivals && cargo build --release)
    bench/ingest.py --seconds 1800 --fast-diff-seconds 300 --rocksdb-seconds 300 --fjall-seconds 300

One thread writes rows at random from a fixed number of keys, with the log but without a sync, while flushes and compactions run behind
it. Write amplification is all bytes written (log, flushes, compactions) by the bytes of keys and values, as the engine counts them, and, of
an engine that does not, as the system counts those of its process; space amplification is all bytes on disk at the end by the bytes of
the different keys that were written. RocksDB's blocks leave out what keys have in common, as Basalt's do with FAST_DIFF.
An engine with 0 seconds is left out.
"""

import argparse
import json
import math
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


def distinct(writes, keys):
    """Expected number of different keys after `writes` draws."""
    return keys * (1 - math.exp(-writes / keys))


def words(options, seconds, db):
    return ["--benchmarks=fillrandom", f"--db={db}", f"--num={options.keys}", f"--value_size={options.value_size}", f"--duration={seconds}",
            "--compression_type=none", "--bloom_bits=10", "--write_buffer_size=67108864", "--histogram=true"]


def ingest(options, name, program, seconds, db):
    """Runs an engine and prints its row."""
    out = f"{db}-out"
    run([*program, *words(options, seconds, db), f"--out={out}"])
    report = json.loads(Path(out, "engine.json").read_text())["benchmarks"][0]
    slots = report["timeline"]["rows_per_second"]
    width = int(WINDOW_S / report["timeline"]["slot_seconds"])
    windows = [statistics.mean(slots[at:at + width]) for at in range(0, len(slots) - width + 1)]
    if not windows:
        sys.exit(f"the seconds must be more than {WINDOW_S}")
    standing, writes, latency = report["database"], report["operations"], report["latency_seconds"]
    counted = [standing[what] for what in ("wal_bytes", "flush_bytes", "compaction_bytes")]
    written = standing["written_bytes"] if None in counted else sum(counted)
    pair = KEY_BYTES + options.value_size
    slowest, median = min(windows), statistics.median(windows)
    print(f"| {name} | {report['seconds']:.0f} | {writes / 1e6:.1f} M | {writes / report['seconds'] / 1e3:.0f} k "
          f"| {latency['p999'] * 1e6:.0f} | {latency['max'] * 1e3:.0f} | {slowest / 1e3:.0f} k, {slowest / median:.2f} of the median "
          f"| {written / (writes * pair):.2f} | {standing['disk_bytes'] / (distinct(writes, options.keys) * pair):.2f} |", flush=True)


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--fast-diff-seconds", type=int, default=0, help="of Basalt with the encoding FAST_DIFF")
    parser.add_argument("--rocksdb-seconds", type=int, default=0)
    parser.add_argument("--fjall-seconds", type=int, default=0)
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument("--dir", help="where the databases go (default: a new directory of the system)")
    parser.add_argument("--rivals", default=str(root / "bench" / "rivals" / "target" / "release" / "basalt-rivals"))
    parser.add_argument("--basalt-bench", default=str(root / "target" / "release" / "basalt-bench"))
    options = parser.parse_args()
    rivals = [("RocksDB", "rocksdb", options.rocksdb_seconds), ("fjall", "fjall", options.fjall_seconds)]
    basalt = [options.basalt_bench, "engine"]
    sides = [("Basalt", basalt, options.seconds), ("Basalt, FAST_DIFF", [*basalt, "--encoding=fast-diff"], options.fast_diff_seconds)]
    sides += [(name, [options.rivals, f"--engine={engine}"], seconds) for name, engine, seconds in rivals]
    sides = [side for side in sides if side[2]]
    needed = [program[0] for _, program, _ in sides]
    for program in needed:
        if shutil.which(program) is None:
            sys.exit(f"{program} is not there; see --help")
    print(f"{options.keys} keys of {KEY_BYTES} bytes, values of {options.value_size} bytes.\n")
    print(f"| | seconds | writes | writes/s | p99.9 µs | longest write, ms | slowest {WINDOW_S} s, writes/s | write amplification | space amplification |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="ingest-", dir=options.dir) as scratch:
        for name, program, seconds in sides:
            db = Path(scratch) / name
            ingest(options, name, program, seconds, str(db))
            shutil.rmtree(db)


if __name__ == "__main__":
    main()
