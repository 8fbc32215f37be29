#!/usr/bin/env python3
"""How the engine's costs grow with the size of the database: the same workloads at 1, 4, 16 and 64 million cells.

    cargo build --release -p basalt-bench
    bench/growth.py --millions 1,4,16,64

For each size: every key is written once, in an order drawn at random, with the background at work; the database is closed and opened
again, before its memstores were flushed; everything is merged into one file; rows are read at random with a cache of the given size.
All in one process for each step, on a directory that is removed at the end. Rates are of one thread.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def run(options, db, benchmarks, num, *words):
    """Runs one command. Returns its benchmarks as engine.json describes them, by name; of a repeated one, the last run."""
    command = [options.basalt_bench, "engine", f"--benchmarks={benchmarks}", f"--db={db}", f"--num={num}", "--histogram",
               f"--value-size={options.value_size}", f"--cache-size={options.cache_size}", f"--out={db}-out", *words]
    print("running", " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"basalt-bench ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    report = json.loads(Path(f"{db}-out", "engine.json").read_text())
    return report["benchmarks"]


def measure(options, millions):
    num = millions * 1_000_000
    with tempfile.TemporaryDirectory(prefix="growth-", dir=options.dir) as scratch:
        db = str(Path(scratch) / "db")
        fill, = run(options, db, "fillrandom", num)
        log_open, compact = run(options, db, "readrandom,compact", num, "--use-existing-db", "--reads=1")
        warm, read, missing = run(options, db, "readrandom,readrandom,readmissing", num, "--use-existing-db", f"--reads={options.reads}")
    user_bytes = fill["operations"] * (16 + options.value_size)
    written = fill["database"]
    blocks = read["database"]["cache_misses"] - warm["database"]["cache_misses"]
    return {
        "cells": num,
        "write_micros": fill["seconds"] * 1e6 / fill["operations"],
        "write_p999_s": fill["latency_seconds"]["p999"],
        "write_max_s": fill["latency_seconds"]["max"],
        "write_amplification": sum(written[what] for what in ("wal_bytes", "flush_bytes", "compaction_bytes")) / user_bytes,
        "open_after_fill_s": log_open["database"]["open_seconds"],
        "compact_s": compact["seconds"],
        "open_s": warm["database"]["open_seconds"],
        "read_micros": read["seconds"] * 1e6 / read["operations"],
        "missing_micros": missing["seconds"] * 1e6 / missing["operations"],
        "blocks_per_read": blocks / read["operations"],
        "index_bytes_per_million": read["database"]["index_bytes"] / (different_keys(read, num) / 1e6),
        "store_bytes": compact["database"]["store_bytes"],
    }


def different_keys(read, num):
    """Different keys in the database: numbers are drawn with repetition, so about 63 of a hundred are there."""
    return max(1, read["found"] / read["operations"] * num)


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", default="1,4,16,64", help="sizes, in millions of writes")
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument("--cache-size", type=int, default=1 << 30, help="bytes")
    parser.add_argument("--reads", type=int, default=500_000, help="of each kind")
    parser.add_argument("--dir", help="where the databases go (default: a new directory of the system)")
    parser.add_argument("--basalt-bench", default=str(root / "target" / "release" / "basalt-bench"))
    options = parser.parse_args()
    if shutil.which(options.basalt_bench) is None:
        sys.exit(f"{options.basalt_bench} is not there; see --help")
    print("| writes | µs a write | p99.9, µs | longest write, ms | write amplification | open with its log, s | open, s | µs a get | blocks read a get "
          "| µs a get of nothing | index and bloom, MiB a million cells | store files, MB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for millions in (int(size) for size in options.millions.split(",")):
        at = measure(options, millions)
        print(f"| {millions} M | {at['write_micros']:.2f} | {at['write_p999_s'] * 1e6:.0f} | {at['write_max_s'] * 1e3:.0f} | {at['write_amplification']:.2f} "
              f"| {at['open_after_fill_s']:.2f} | {at['open_s']:.3f} | {at['read_micros']:.2f} | {at['blocks_per_read']:.2f} "
              f"| {at['missing_micros']:.2f} | {at['index_bytes_per_million'] / (1 << 20):.2f} | {at['store_bytes'] / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
