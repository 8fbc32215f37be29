#!/usr/bin/env python3
"""Basalt's engine against RocksDB and fjall: the same benchmarks, sizes and settings, in turns, on this machine.

    cargo build --release -p basalt-bench
    (cd bench/rivals && cargo build --release)
    bench/against_rocksdb.py > comparison.md
    bench/against_rocksdb.py --suite threads,sync,disk,mixed,compaction --against rocksdb > more.md

`bench/rivals` has both engines behind the keys, options and output of `basalt-bench engine`; building it takes a C++ compiler, libclang
and about 20 minutes. A suite is a list of groups, a group is one command line for each side. Each round runs the sides one after the
other, each on a new database, and the one that begins changes with every round, so that what else the machine does meets all. The
table shows medians over the rounds. A benchmark that is named twice warms the cache with its first run; the last run counts.

Suites that read from disk (`disk`, `direct`) make one database for each side and read it in every round, with another seed than
it was made with: else the first thread would read the keys in the order in which they were written and find all of them. All
sides have the same memory there: RocksDB keeps indexes and filters beside its cache, Basalt in it, so what RocksDB says that
they take is added to Basalt's cache.

All write to the WAL without a sync unless the suite is `sync`, have a bloom filter of 10 bits a key and no compression.
The sides differ on purpose in this: a block has its own default on each side (RocksDB and fjall 4 KiB, Basalt HBase's 64 KiB) unless
--block-size is given or the suite says otherwise. fjall has neither reads past the page cache nor a way to leave out compactions, and
is left out of the suites that need them.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from machine import machine

LINE = re.compile(r"^(\w+)\s+:\s+([\d.]+) micros/op (\d+) ops/sec")
PERCENTILES = re.compile(r"^Percentiles:.*\bP99: ([\d.]+)")
# Compactions only when they are asked for.
NO_COMPACTIONS = ["--disable_auto_compactions=true"]
# Far from the seed that a database was made with: each thread adds its number.
READ_SEED = 1_000
INDEXES_IN_CACHE = ["--cache-index-and-filter-blocks"]
DIRECT_READS = ["--use_direct_reads=true"]
NAMES = {"basalt": "Basalt", "rocksdb": "RocksDB", "fjall": "fjall"}


@dataclass
class Group:
    """Benchmarks of one command line, and what is special about it."""

    title: str
    benchmarks: str
    words: list = field(default_factory=list)
    rocksdb_words: list = field(default_factory=list)
    threads: int = 1
    # Keys, as a share of --num.
    num: float = 1
    basalt_words: list = field(default_factory=list)
    # A first command that makes the database; the measured ones then read from the disk what they need.
    prepare: str | None = None
    # Whether Basalt's cache has room for as much as RocksDB's indexes and filters take beside RocksDB's.
    same_memory: bool = True
    cache_size: int | None = None
    block_size: int | None = None
    latencies: bool = False


def suites(options):
    reads = 40_000

    def from_disk(title, words, **others):
        """One thread and sixteen; all keys alike, in Basalt's blocks as its tables have them by default and in an encoding that
        leaves out what keys have in common, as RocksDB's blocks do; and few keys often, as YCSB chooses them."""
        return [
            Group(
                f"{title}, {'1 thread' if threads == 1 else f'{threads} threads'}{', FAST_DIFF' if encoding else ''}, {distribution}",
                "readrandom",
                words=[f"--reads={reads * share // threads}", f"--distribution={distribution}", *words],
                basalt_words=encoding,
                threads=threads,
                prepare="fillrandom,compact",
                cache_size=64 << 20,
                block_size=4096,
                num=options.disk_factor,
                **others,
            )
            for encoding, distribution in (([], "uniform"), (["--encoding=fast-diff"], "uniform"), ([], "zipfian"))
            for threads, share in ((1, 1), (16, 2))
        ]

    return {
        "cached": [
            Group(
                "one thread",
                "fillseq,fillrandom,overwrite,compact,readrandom,readrandom,readmissing,seekrandom,readseq,"
                "readreverse,readwhilewriting",
            )
        ],
        "threads": [
            Group("two threads: writes", "fillrandom", threads=2),
            Group(
                "two threads: reads",
                "fillrandom,compact,readrandom,readrandom,readmissing,seekrandom",
                threads=2,
                words=["--writes={num}"],
            ),
        ],
        "sync": [
            Group("a sync for each write, 1 thread", "fillrandom", words=["--sync=true"], num=0.01),
            Group("a sync for each write, 16 threads", "fillrandom", words=["--sync=true"], num=0.01, threads=16),
        ],
        "disk": from_disk("from disk", []),
        # As `disk`, but RocksDB's indexes and filters are read when they are needed and are part of the cache, as Basalt's are.
        "memory": from_disk("from disk, indexes in the cache", [], rocksdb_words=INDEXES_IN_CACHE, same_memory=False),
        "direct": from_disk("past the page cache", DIRECT_READS),
        "mixed": [
            Group(
                "reads while one thread writes 10 MB a second",
                "fillrandom,compact,readrandom,readwhilewriting",
                words=["--benchmark_write_rate_limit=10485760"],
                latencies=True,
            ),
            Group(
                "reads while one thread writes as fast as it can",
                "fillrandom,compact,readrandom,readwhilewriting",
                latencies=True,
            ),
        ],
        "compaction": [
            Group(
                "every file that the writes left, into one",
                "fillrandom,compact",
                words=NO_COMPACTIONS,
            )
        ],
    }


def parse_lines(text):
    """Operations a second, microseconds an operation and the 99th percentile by benchmark; of one that ran twice, the last."""
    found, name = {}, None
    for line in text.splitlines():
        if match := LINE.match(line.strip()):
            name = match.group(1)
            found[name] = {"ops": float(match.group(3)), "micros": float(match.group(2)), "p99": None}
        elif (match := PERCENTILES.match(line.strip())) and name:
            found[name]["p99"] = float(match.group(1))
    return found


def words_of(options, group, db, benchmarks, existing, more_cache=0):
    num = max(1, int(options.num * group.num))
    words = [
        f"--benchmarks={benchmarks}",
        f"--db={db}",
        f"--num={num}",
        f"--value_size={options.value_size}",
        f"--threads={1 if group.prepare and not existing else group.threads}",
        f"--cache_size={(group.cache_size or options.cache_size) + more_cache}",
        f"--write_buffer_size={options.write_buffer_size}",
        f"--seek_nexts={options.seek_nexts}",
        "--compression_type=none",
        "--bloom_bits=10",
        f"--seed={options.seed + (READ_SEED if existing else 0)}",
    ]
    if options.reads and not any(word.startswith("--reads=") for word in group.words):
        words.append(f"--reads={options.reads}")
    if block_size := options.block_size or group.block_size:
        words.append(f"--block_size={block_size}")
    if existing:
        words.append("--use_existing_db=true")
    if group.latencies:
        words.append("--histogram=true")
    return words + [word.format(num=num // group.threads) for word in group.words]


def forget(directory):
    """Takes the files of a directory out of the page cache."""
    for path in Path(directory).rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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


def program_of(options, side):
    return [options.basalt_bench, "engine"] if side == "basalt" else [options.rivals, f"--engine={side}"]


def own_words(group, side):
    return {"rocksdb": group.rocksdb_words, "basalt": group.basalt_words}.get(side, [])


def sides_of(options, group):
    """The engines that can run a group, Basalt last."""
    cannot = {"fjall"} if any(word in NO_COMPACTIONS + DIRECT_READS for word in group.words) else set()
    return [side for side in (*options.against.split(","), "basalt") if side not in cannot]


class Databases:
    """What groups read in every round: made when it is first needed, gone at the end."""

    def __init__(self, options):
        self.options = options
        self.made = {}
        self.scratch = tempfile.TemporaryDirectory(prefix="against-rocksdb-", dir=options.dir)

    def of(self, group, side):
        """The directory of a side's database."""
        key = (side, group.prepare, group.num, group.block_size, tuple(own_words(group, side)))
        if key not in self.made:
            db = str(Path(self.scratch.name) / str(len(self.made)))
            words = words_of(self.options, group, db, group.prepare, False) + own_words(group, side)
            run(program_of(self.options, side) + words, group.prepare.split(","))
            self.made[key] = db
        return self.made[key]

    def memory_beside_cache(self, group):
        """Bytes of RocksDB's indexes and filters."""
        db = self.of(group, "rocksdb")
        out = f"{db}-figures"
        words = words_of(self.options, group, db, "readrandom", True) + own_words(group, "rocksdb")
        words = [word for word in words if not word.startswith("--reads=")]
        run(program_of(self.options, "rocksdb") + words + ["--reads=1", f"--out={out}"], ["readrandom"])
        return json.loads(Path(out, "engine.json").read_text())["benchmarks"][0]["database"]["index_bytes"]


def play(options, group, side, databases):
    """One side's run of a group: on a new database, or on the one that the group reads."""
    program, own = program_of(options, side), own_words(group, side)
    if group.prepare:
        db = databases.of(group, side)
        with_more = side == "basalt" and group.same_memory and "rocksdb" in sides_of(options, group)
        more = databases.memory_beside_cache(group) if with_more else 0
        forget(db)
        return run(program + words_of(options, group, db, group.benchmarks, True, more) + own, group.benchmarks.split(","))
    with tempfile.TemporaryDirectory(prefix=f"against-{side}-", dir=options.dir) as scratch:
        db = str(Path(scratch) / "db")
        return run(program + words_of(options, group, db, group.benchmarks, False) + own, group.benchmarks.split(","))


def human(number):
    if number >= 1e6:
        return f"{number / 1e6:.2f} M"
    if number >= 1e4:
        return f"{number / 1e3:.0f} k"
    if number >= 1e3:
        return f"{number / 1e3:.1f} k"
    return f"{number:.1f}"


def row(name, sides, shown, better):
    """A line of the table, of the figures of each side. `better` gives Basalt's advantage from a pair of figures."""
    cells = [shown(statistics.median(figures)) for figures in sides.values()]
    for side in [side for side in sides if side != "basalt"]:
        ratios = [better(theirs, ours) for theirs, ours in zip(sides[side], sides["basalt"])]
        cells += [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}-{max(ratios):.2f}"]
    return f"| {name} | {' | '.join(cells)} |"


def write_table(options, group, rounds, out):
    num = int(options.num * group.num)
    block = options.block_size or group.block_size
    print(f"\n**{group.title[0].upper()}{group.title[1:]}.** {num} keys of 16 bytes, values of {options.value_size} bytes, "
          f"cache {(group.cache_size or options.cache_size) >> 20} MiB, "
          f"blocks of {f'{block} bytes' if block else 'the default size'}.\n", file=out)
    sides = sides_of(options, group)
    head = [f"{NAMES[side]} ops/s" for side in sides]
    for side in sides[:-1]:
        head += [f"Basalt / {NAMES[side]}", "range"]
    print(f"| benchmark | {' | '.join(head)} |", file=out)
    print(f"| --- |{' ---: |' * len(head)}", file=out)
    for name in dict.fromkeys(group.benchmarks.split(",")):
        def figures(what, name=name):
            return {side: [of_round[side][name][what] for of_round in rounds] for side in sides}

        def less(theirs, ours):
            return ours and theirs / ours

        def more(theirs, ours):
            return theirs and ours / theirs

        if name == "compact":
            # One operation: the time says more than a rate, and the ratio is that of speed all the same.
            print(row(name, figures("micros"), lambda micros: f"{micros / 1e6:.2f} s", less), file=out)
        else:
            print(row(name, figures("ops"), human, more), file=out)
        if group.latencies and name == "readwhilewriting":
            print(row(f"{name}, p99 of the reads", figures("p99"), lambda micros: f"{micros:.0f} µs", less), file=out)
    out.flush()


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="cached", help="of: cached, threads, sync, disk, memory, direct, mixed, compaction; or all")
    parser.add_argument("--benchmarks", help="these, with one thread, instead of a suite")
    parser.add_argument("--num", type=int, default=1_000_000)
    parser.add_argument("--disk-factor", type=float, default=10, help="keys of the suite `disk`, times --num")
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1, help="for --benchmarks")
    parser.add_argument("--reads", type=int, help="reads of each thread (default: --num)")
    parser.add_argument("--cache-size", type=int, default=1 << 30, help="bytes")
    parser.add_argument("--write-buffer-size", type=int, default=64 << 20, help="bytes")
    parser.add_argument("--block-size", type=int, help="bytes, for all (default: each side's own)")
    parser.add_argument("--seek-nexts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", default="rocksdb,fjall", help="rocksdb, fjall or both")
    parser.add_argument("--dir", help="where the databases go (default: a new directory of the system)")
    parser.add_argument("--rivals", default=str(root / "bench" / "rivals" / "target" / "release" / "basalt-rivals"))
    parser.add_argument("--basalt-bench", default=str(root / "target" / "release" / "basalt-bench"))
    options = parser.parse_args()
    if unknown := [side for side in options.against.split(",") if side not in ("rocksdb", "fjall")]:
        sys.exit(f"there is no engine {', '.join(unknown)}; there are rocksdb and fjall")
    for program in (options.rivals, options.basalt_bench):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not there; see --help")
    known = suites(options)
    if options.benchmarks:
        groups = [Group("as asked for", options.benchmarks, threads=options.threads)]
    else:
        names = list(known) if options.suite == "all" else options.suite.split(",")
        if unknown := [name for name in names if name not in known]:
            sys.exit(f"there is no suite {', '.join(unknown)}; there are {', '.join(known)}")
        groups = [group for name in names for group in known[name]]
    lock = (root / "bench" / "rivals" / "Cargo.lock").read_text()
    packages = {"rocksdb": "librocksdb-sys", "fjall": "fjall"}
    found = {side: re.search(f'name = "{package}"\nversion = "([^"]+)"', lock) for side, package in packages.items()}
    versions = ", ".join(f"{NAMES[side]} {found[side].group(1).split('+')[-1]}" for side in options.against.split(","))
    print(f"Medians of {options.rounds} round(s). {versions}. {machine()}.")
    databases = Databases(options)
    for group in groups:
        rounds = []
        for index in range(options.rounds):
            sides = sides_of(options, group)
            first = index % len(sides)
            order = sides[first:] + sides[:first]
            rounds.append({side: play(options, group, side, databases) for side in order})
        write_table(options, group, rounds, sys.stdout)


if __name__ == "__main__":
    main()
