#!/usr/bin/env python3
"""What copies cost: backups beside a load, restores, writers with a standby, and PostgreSQL's pg_basebackup beside them.

    cargo build --release -p basalt -p basalt-bench
    bench/copies.py backup --gib 5           # puts beside a backup, the second backup, a restore
    bench/copies.py postgres --gib 5         # pg_basebackup and a start of its copy; needs PostgreSQL
    bench/copies.py writers --rounds 7       # puts with nothing, continuous backup, a standby, and a standby that confirms

- backup: a table is filled, 64 connections put rows at random without a pause, and `basalt backup --max-rate 50MB` runs
  beside them; puts of as many seconds before it are what they are compared with. Then 1 % of the rows are written once more,
  a second backup is made, and the last one is restored. The disk's rates are
  those of `dd` with `conv=fsync`, of as many bytes, and of `cp` with a sync, of the store.
- postgres: a table with rows of the same size, made by the server itself; `pg_basebackup -X fetch` without a limit, and the
  copy back with `cp`, which is how such a copy is restored.
- writers: in each round every kind of server runs for --seconds, in turns; the ratio is by the plain server of the same
  round. Processor time is that of the servers, by /proc.

Everything runs on this machine, in a directory that is removed at the end. Prints one table."""
import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from machine import machine

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
VALUE_BYTES = 1_000
CONNECTIONS = 64


def run(command, **more):
    print("running", " ".join(map(str, command)), file=sys.stderr, flush=True)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Server:
    """A running `basalt serve`."""

    def __init__(self, options, directory, *words):
        self.log = open(f"{directory}.log", "w", encoding="utf-8")
        listen_file = Path(f"{directory}.listen")
        listen_file.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [options.basalt, "serve", "--data-dir", str(directory), "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0",
             "--listen-file", str(listen_file), *words], stdout=self.log, stderr=subprocess.STDOUT)
        until = time.monotonic() + 60
        while not listen_file.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"the server has not started: {directory}.log")
            time.sleep(0.02)
        places = json.loads(listen_file.read_text())
        self.listen, self.http = places["listen"], places["http"]

    def cpu_seconds(self):
        """Processor time of its threads that live."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        total = 0
        for task in tasks.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def resident_mib(self, what):
        """Its resident memory (`VmRSS`), or the most since the last look at it (`VmHWM`)."""
        process = Path(f"/proc/{self.process.pid}")
        kib = int(re.search(rf"^{what}:\s*(\d+) kB$", (process / "status").read_text(), re.M).group(1))
        (process / "clear_refs").write_text("5")
        return kib / 1024

    def rest(self):
        """Waits until no flush and no compaction has run for five seconds."""
        since = time.monotonic()
        while time.monotonic() - since < 5:
            with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=10) as answer:
                text = answer.read().decode()
            busy = re.findall(r'^basalt_background_queue_length{kind="(?:flush|compaction|long_compaction)"} [1-9]', text, re.M)
            if busy:
                since = time.monotonic()
            time.sleep(0.2)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def puts(options, server, out, command="randomWrite", **flags):
    """Runs one phase of puts. Returns its report."""
    words = [options.basalt_bench, "pe", command, "--target", server.listen, "--api", "native", "--valueSize", VALUE_BYTES,
             "--out", out]
    for name, value in flags.items():
        words += [f"--{name}", value]
    run(words)
    phase, = json.loads(Path(out, "report.json").read_text())["phases"]
    if phase["errors"]:
        sys.exit(f"{phase['errors']} puts failed, the first with {phase['first_error']}")
    return phase


def disk_rate(scratch, size):
    """Bytes a second that one file takes, synced at the end."""
    target = scratch / "dd"
    begin = time.monotonic()
    run(["dd", "if=/dev/zero", f"of={target}", "bs=8M", f"count={max(1, size // (8 * MIB))}", "conv=fsync"])
    took = time.monotonic() - begin
    target.unlink()
    return size / took


def tree_bytes(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def backup_once(options, server, store, *words):
    """Makes a backup. Returns its seconds and the bytes that it has written."""
    begin = time.monotonic()
    said = run([options.basalt, "backup", "--to", f"file:{store}", "--from", server.http, *words])
    took = time.monotonic() - begin
    amount, unit = re.search(r"of which ([\d.]+) (B|kB|MB|GB) were written", said).groups()
    return took, float(amount) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def backup(options, scratch):
    rows = int(options.gib * (1 << 30) / VALUE_BYTES)
    load = {"threads": CONNECTIONS, "rows": rows // CONNECTIONS, "duration": options.seconds}
    server = Server(options, scratch / "data")
    puts(options, server, scratch / "fill", "sequentialWrite", threads=8, rows=rows // 8, multiPut=100)
    puts(options, server, scratch / "warm", **load)
    alone = puts(options, server, scratch / "alone", **load)
    store = scratch / "store"
    job = subprocess.Popen([options.basalt, "backup", "--to", f"file:{store}", "--from", server.http, "--max-rate", "50MB"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begin = time.monotonic()
    beside = puts(options, server, scratch / "beside", **load)
    if job.poll() is not None:
        sys.exit("the backup ended before the puts: give more --gib or fewer --seconds")
    if job.wait() != 0:
        sys.exit(f"the backup ended with {job.returncode}")
    limited = time.monotonic() - begin
    server.rest()
    before = server.resident_mib("VmRSS")
    backup_once(options, server, scratch / "quiet")
    memory = server.resident_mib("VmHWM") - before
    shutil.rmtree(scratch / "quiet")
    backup_once(options, server, store)
    whole = tree_bytes(scratch / "data")
    puts(options, server, scratch / "more", threads=CONNECTIONS, rows=rows // 100 // CONNECTIONS)
    took, written = backup_once(options, server, store)
    fresh_took, fresh = backup_once(options, server, scratch / "fresh")
    server.stop()
    shutil.rmtree(scratch / "fresh")
    rate = disk_rate(scratch, int(fresh))
    begin = time.monotonic()
    run(["cp", "-r", "--reflink=never", store, scratch / "copied"])
    run(["sync", "-f", scratch / "copied"])
    copied = tree_bytes(scratch / "copied") / (time.monotonic() - begin)
    shutil.rmtree(scratch / "copied")
    begin = time.monotonic()
    run([options.basalt, "restore", "--from", f"file:{store}", "--data-dir", scratch / "restored"])
    restore = time.monotonic() - begin
    restored = tree_bytes(scratch / "restored")
    run([options.basalt, "check", "--data-dir", scratch / "restored"])
    return [
        ("puts beside a backup with --max-rate 50MB, by puts alone", ratio(beside, alone)),
        ("their p99", f"{latency(beside):.1f} ms by {latency(alone):.1f} ms: {latency(beside) / latency(alone):.2f}"),
        ("the longest put", f"{longest(beside):.0f} ms by {longest(alone):.0f} ms"),
        ("that backup", f"{limited:.0f} s"),
        ("resident memory during a whole backup without a limit and without puts", f"{memory:.0f} MiB more than before"),
        ("a whole backup without a limit", f"{fresh / 1e9:.2f} GB in {fresh_took:.1f} s, {fresh / fresh_took / 1e6:.0f} MB/s"),
        ("the next one after 1 % of the rows", f"{written / 1e6:.0f} MB of {whole / 1e9:.2f} GB ({written / whole:.1%}) in {took:.1f} s"),
        ("restore", f"{restored / 1e9:.2f} GB in {restore:.1f} s, {restored / restore / 1e6:.0f} MB/s"),
        ("dd with conv=fsync", f"{rate / 1e6:.0f} MB/s"),
        ("cp and sync of the store, which also reads it", f"{copied / 1e6:.0f} MB/s; the restore is {restored / restore / copied:.2f} of it"),
    ]


def ratio(phase, base):
    rates = phase["ops_per_second"], base["ops_per_second"]
    return f"{rates[0]:,.0f} by {rates[1]:,.0f} puts/s: {rates[0] / rates[1]:.2f}"


def latency(phase):
    return phase["latency_seconds"]["p99"] * 1e3


def longest(phase):
    return phase["latency_seconds"]["max"] * 1e3


def postgres(options, scratch):
    """PostgreSQL does not run as root."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        sys.exit("no PostgreSQL below /usr/lib/postgresql")
    own, data, copy = programs[-1], scratch / "postgres", scratch / "copy"
    user = []
    if os.geteuid() == 0:
        scratch.chmod(0o777)
        user = ["runuser", "-u", "postgres", "--"]
    run([*user, own / "initdb", "-D", data, "-U", "bench", "--auth=trust"], cwd="/")
    start = [*user, own / "pg_ctl", "-w", "-l", f"{data}.log", "-o", f"-k {scratch} -p 54329 -c listen_addresses="]
    run([*start, "-D", data, "start"], cwd="/")
    psql = [own / "psql", "-h", scratch, "-p", "54329", "-U", "bench", "-d", "postgres", "-c"]
    rows = int(options.gib * (1 << 30) / VALUE_BYTES)
    # Random text, so that the server does not compress it.
    fill = ("create table t as select i, (select string_agg(md5(i::text || j::text), '') from generate_series(1, 31) j) as v "
            f"from generate_series(1, {rows}) i")
    run([*psql, fill])
    run([*psql, "checkpoint"])
    begin = time.monotonic()
    run([*user, own / "pg_basebackup", "-h", scratch, "-p", "54329", "-U", "bench", "-D", copy, "-X", "fetch", "-c", "fast"], cwd="/")
    took = time.monotonic() - begin
    size = tree_bytes(copy)
    run([*start, "-D", data, "stop"], cwd="/")
    shutil.rmtree(data)
    begin = time.monotonic()
    run(["cp", "-a", copy, scratch / "back"])
    run(["sync", "-f", scratch / "back"])
    back = time.monotonic() - begin
    return [
        ("pg_basebackup", f"{size / 1e9:.2f} GB in {took:.1f} s, {size / took / 1e6:.0f} MB/s"),
        ("its copy back, with cp and sync", f"{size / 1e9:.2f} GB in {back:.1f} s, {size / back / 1e6:.0f} MB/s"),
    ]


def writers(options, scratch):
    """Servers of four kinds, each with puts in turns."""
    kinds = {"plain": [Server(options, scratch / "plain")]}
    kinds["continuous backup"] = [
        Server(options, scratch / "shipped", "--set", f'backup.url="file:{scratch / "shipped-store"}"')]
    for kind, words in (("standby", []), ("standby that confirms", ["--sync", "standby"])):
        name = kind.replace(" ", "-")
        primary = Server(options, scratch / name, *words)
        kinds[kind] = [primary, Server(options, scratch / f"{name}-2", "--follow", primary.http)]
    load = {"threads": CONNECTIONS, "rows": 10_000_000, "duration": options.seconds}
    seen = {kind: [] for kind in kinds}
    for number in range(options.rounds + 1):
        for kind, servers in kinds.items():
            before = [server.cpu_seconds() for server in servers]
            phase = puts(options, servers[0], scratch / "report", **load)
            each = [(server.cpu_seconds() - old) * 1e6 / phase["operations"] for server, old in zip(servers, before)]
            if number > 0:
                seen[kind].append((phase["ops_per_second"], latency(phase), each[0], sum(each[1:])))
    for server in (server for servers in kinds.values() for server in reversed(servers)):
        server.stop()
    lines = []
    for kind, figures in seen.items():
        by_plain = [own[0] / plain[0] for own, plain in zip(figures, seen["plain"])]
        rate, p99, cpu, others = (statistics.median(column) for column in zip(*figures))
        lines.append((kind, f"{rate:,.0f} puts/s, {statistics.median(by_plain):.2f} of plain "
                            f"({min(by_plain):.2f}-{max(by_plain):.2f}), p99 {p99:.1f} ms, {cpu:.1f} us of processor a put, "
                            f"{others:.1f} us at the standby"))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["backup", "postgres", "writers"])
    parser.add_argument("--gib", type=float, default=5)
    parser.add_argument("--seconds", type=int, default=20, help="of each phase of puts")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", help="where the data goes (default: a new directory of the system)")
    parser.add_argument("--basalt", default=str(ROOT / "target" / "release" / "basalt"))
    parser.add_argument("--basalt-bench", default=str(ROOT / "target" / "release" / "basalt-bench"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="copies-", dir=options.dir) as scratch:
        lines = {"backup": backup, "postgres": postgres, "writers": writers}[options.what](options, Path(scratch))
    print(f"{options.what} on {machine()}\n\n| | |\n|---|---|")
    for name, figure in lines:
        print(f"| {name} | {figure} |")


if __name__ == "__main__":
    main()
