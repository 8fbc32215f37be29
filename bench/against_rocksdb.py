#!/usr/bin/env python3
"""Basalt's engine against RocksDB: the same benchmarks, sizes and settings, in turns, on this machine.

    cargo build --release -p basalt-bench
    bench/against_rocksdb.py > comparison.md

Needs RocksDB's db_bench (Debian: rocksdb-tools). Each round runs db_bench and `basalt-bench engine` one after the
other, and the one that begins changes with every round, so that what else the machine does meets both. The table shows
medians over the rounds. A benchmark that is named twice in --benchmarks warms the cache with its first run; the last run
counts.

Both write to the WAL without a sync, have a bloom filter of 10 bits a key and no compression. What differs on purpose:
a block has its own default on each side (RocksDB 4 KiB, Basalt HBase's 64 KiB) unless --block-size is given.
"""

import argparse
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BENCHMARKS = "fillseq,fillrandom,overwrite,compact,readrandom,readrandom,readmissing,seekrandom,readseq,readwhilewriting"
LINE = re.compile(r"^(\w+)\s+:\s+([\d.]+) micros/op (\d+) ops/sec;?.*?(?:([\d.]+) MB/s)?(?: \(.*)?$")


def parse_lines(text):
    """Operations a second and MB/s by benchmark; of one that ran twice, the last."""
    found = {}
    for line in text.splitlines():
        match = LINE.match(line.strip())
        if match:
            name, micros, operations, megabytes = match.groups()
            found[name] = (float(operations), float(micros), float(megabytes or 0))
    return found


def common_options(options, db):
    words = [
        f"--benchmarks={options.benchmarks}",
        f"--db={db}",
        f"--num={options.num}",
        f"--value_size={options.value_size}",
        f"--threads={options.threads}",
        f"--cache_size={options.cache_size}",
        f"--write_buffer_size={options.write_buffer_size}",
        f"--seek_nexts={options.seek_nexts}",
        "--compression_type=none",
        "--bloom_bits=10",
        f"--seed={options.seed}",
    ]
    if options.reads:
        words.append(f"--reads={options.reads}")
    if options.block_size:
        words.append(f"--block_size={options.block_size}")
    return words


def run(command, expected):
    """Runs one side and returns its figures; stops the script if it failed or left a benchmark out."""
    print("running", " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    figures = parse_lines(done.stdout)
    missing = [name for name in expected if name not in figures]
    if missing:
        sys.exit(f"{command[0]} printed no line for {', '.join(missing)}:\n{done.stdout}")
    return figures


def human(number):
    if number >= 1e6:
        return f"{number / 1e6:.2f} M"
    if number >= 1e4:
        return f"{number / 1e3:.0f} k"
    if number >= 1e3:
        return f"{number / 1e3:.1f} k"
    return f"{number:.1f}"


def machine():
    model = platform.processor() or platform.machine()
    try:
        cpus = Path("/proc/cpuinfo").read_text()
        model = re.search(r"model name\s*:\s*(.*)", cpus).group(1)
        count = len(re.findall(r"^processor\s*:", cpus, re.M))
        return f"{count} x {model}"
    except (OSError, AttributeError):
        return model


def write_table(options, names, rounds, out):
    version = subprocess.run([options.db_bench, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    print(f"{options.num} keys of 16 bytes, values of {options.value_size} bytes, {options.threads} thread(s), "
          f"cache {options.cache_size >> 20} MiB, {options.rounds} round(s). "
          f"{version or options.db_bench}. {machine()}.\n", file=out)
    print("| benchmark | RocksDB ops/s | Basalt ops/s | Basalt / RocksDB | range of the ratio |", file=out)
    print("| --- | ---: | ---: | ---: | ---: |", file=out)
    for name in names:
        rocks = [pair["rocksdb"][name] for pair in rounds]
        basalt = [pair["basalt"][name] for pair in rounds]
        if name == "compact":
            # One operation: the time says more than a rate, and the ratio is that of speed all the same.
            shown = [f"{statistics.median(side[1] for side in sides) / 1e6:.2f} s" for sides in (rocks, basalt)]
            ratios = [ours[1] and theirs[1] / ours[1] for theirs, ours in zip(rocks, basalt)]
        else:
            shown = [human(statistics.median(side[0] for side in sides)) for sides in (rocks, basalt)]
            ratios = [theirs[0] and ours[0] / theirs[0] for theirs, ours in zip(rocks, basalt)]
        print(f"| {name} | {shown[0]} | {shown[1]} | {statistics.median(ratios):.2f} "
              f"| {min(ratios):.2f}-{max(ratios):.2f} |", file=out)


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", default=BENCHMARKS)
    parser.add_argument("--num", type=int, default=1_000_000)
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--reads", type=int, help="reads of each thread (default: --num)")
    parser.add_argument("--cache-size", type=int, default=1 << 30, help="bytes")
    parser.add_argument("--write-buffer-size", type=int, default=64 << 20, help="bytes")
    parser.add_argument("--block-size", type=int, help="bytes, for both (default: each side's own)")
    parser.add_argument("--seek-nexts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", help="where both databases go (default: a new directory of the system)")
    parser.add_argument("--db-bench", default="db_bench")
    parser.add_argument("--basalt-bench", default=str(root / "target" / "release" / "basalt-bench"))
    options = parser.parse_args()
    for program in (options.db_bench, options.basalt_bench):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not there; see --help")
    names = list(dict.fromkeys(options.benchmarks.split(",")))
    rounds = []
    for index in range(options.rounds):
        pair = {}
        for side in ("rocksdb", "basalt") if index % 2 == 0 else ("basalt", "rocksdb"):
            with tempfile.TemporaryDirectory(prefix=f"against-{side}-", dir=options.dir) as scratch:
                words = common_options(options, str(Path(scratch) / "db"))
                command = [options.db_bench] if side == "rocksdb" else [options.basalt_bench, "engine"]
                pair[side] = run(command + words, names)
        rounds.append(pair)
    write_table(options, names, rounds, sys.stdout)


if __name__ == "__main__":
    main()
