#!/usr/bin/env python3
"""Checks that a server keeps its memory limit and serves others under 200 hostile connections.

Starts `basalt serve` with `memory.total_bytes` in a memory cgroup of twice that size, runs the hostile
mix beside well-behaved clients, and prints a verdict. Without a cgroup for memory or for threads
(version 1 or 2) the report says `not run`, and without the first only resident memory is measured.
PASS requires all of these:

- the server survives;
- the p99 of well-behaved calls is below 100 ms, and at most 1 % of them are refused;
- resident memory stays within 1.25 times `memory.total_bytes`.

The hostile connections are divided among these roles:

- gets of a row that fits and of one that exceeds `row.max_bytes`, and multi-gets;
- scans of the same rows, with and without the block cache, and of blocks that expand when unpacked;
- half-sent messages, and clients that do not read their replies;
- small arguments and filters that expand, and small puts whose cells repeat a long row key;
- large puts, and appends to a large cell;
- unread answers about tables and regions: of MasterService, AdminService, Thrift, ZooKeeper and HTTP;
- packets and heads that come a byte at a time.

The server may have a few threads more than when it is idle (a pids cgroup).

The well-behaved clients run in processes of their own, so that they measure the server and not the
load.

usage: hostile_memory.py BASALT_BINARY [--seconds 600] [--total-bytes 268435456] [--connections 200] [--threads 8]
       [--work-dir DIR]
Needs Python 3.8 and nothing else. Exit code 0: all of it holds."""
import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

TABLE = b"hostile"
PACKED = b"packed"
CALM = b"calm"
REFUSED = b"RegionTooBusyException"
# Tables with a long attribute, which only answers about tables have.
TABLES = 100


# The part of Thrift's binary protocol that the calls below need.
def text(value):
    return struct.pack(">I", len(value)) + value


def field(kind, number, value):
    return struct.pack(">BH", kind, number) + value


def binary(number, value):
    return field(11, number, text(value))


def i32(number, value):
    return field(8, number, struct.pack(">i", value))


def boolean(number, value):
    return field(2, number, b"\1" if value else b"\0")


def record(*fields):
    return b"".join(fields) + b"\0"


def inner(number, *fields):
    return field(12, number, record(*fields))


def array(number, elements):
    return field(15, number, struct.pack(">BI", 12, len(elements)) + b"".join(elements))


def message(method, *fields):
    body = struct.pack(">I", 0x80010001) + text(method) + struct.pack(">I", 1) + record(*fields)
    return text(body)


def cell(qualifier, value):
    return record(binary(1, b"f"), binary(2, qualifier), binary(3, value))


def get(table, row):
    return message(b"get", binary(1, table), inner(2, binary(1, row)))


def put(table, row, qualifier, value):
    return message(b"put", binary(1, table), inner(2, binary(1, row), array(2, [cell(qualifier, value)])))


def scan(table, row, rows, cached, *more):
    return message(b"getScannerResults", binary(1, table), inner(2, binary(1, row), boolean(12, cached), *more), i32(3, rows))


class Closed(Exception):
    """The server has ended the connection."""


class Connection:
    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, count):
        """Reads `count` bytes; returns at least the first 512, or all if there are fewer."""
        head, left = b"", count
        while left:
            piece = self.socket.recv(min(left, 1 << 18))
            if not piece:
                raise Closed
            if len(head) < 512:
                head += piece[:512]
            left -= len(piece)
        return head

    def call(self, request):
        """Sends a request; returns the head of the reply and its length."""
        self.socket.sendall(request)
        length = struct.unpack(">I", self.read(4))[0]
        return self.read(length), length

    def close(self):
        self.socket.close()


class Sizes:
    """The size limits of this server, from the settings in its log."""

    def __init__(self, settings):
        number = lambda key: int(settings[key])
        self.message = number("server.max_message_bytes")
        self.row = number("row.max_bytes")
        self.cell = min(number("row.cell_max_bytes"), self.message) - 4096


def load(port, sizes):
    """Writes the rows `fits` (two cells), `large` (more than `row.max_bytes`) and `append`.

    Table `packed` has the same rows, compressed.
    """
    connection = Connection(port)
    described = [(b"described%d" % number, 2) for number in range(TABLES)]
    for table, compression in [(TABLE, 2), (PACKED, 1), (CALM, 2)] + described:
        family = record(binary(1, b"f"), i32(6, compression))
        # A map of one attribute, of both keys and values as bytes.
        option = field(13, 3, struct.pack(">BBI", 11, 11, 1) + text(b"k") + text(b"v" * 10000))
        name = inner(1, binary(1, b"default"), binary(2, table))
        more = [option] if table.startswith(b"described") else []
        head, _ = connection.call(message(b"createTable", inner(1, name, array(2, [family]), *more)))
        if b"createTable" not in head:
            sys.exit(f"table {table}: {head}")
    half = min(sizes.cell, sizes.row // 4 - 4096)
    rows = [(b"fits", 2, half), (b"large", 6, half), (b"append", 1, half // 2)]
    for table in (TABLE, PACKED):
        for row, cells, size in rows:
            for number in range(cells):
                request = put(table, row, b"%d" % number, b"x" * size)
                while REFUSED in connection.call(request)[0]:
                    time.sleep(0.1)
    for table in (TABLE, PACKED):
        head, _ = connection.call(message(b"basaltFlush", binary(1, table)))
    connection.close()


def hostile_calls(role, sizes):
    """Returns a function that makes the next request of a role."""
    rng = random.Random(role)
    expanding = message(b"getMultiple", binary(1, TABLE), array(2, [record(binary(1, b"s"))] * 4000))
    pattern = b"RowFilter(=, 'regexstring:[\\p{L}]{%d}')"
    large = b"y" * (sizes.cell // 4)
    return [
        lambda: get(TABLE, b"fits"),
        lambda: get(TABLE, b"large"),
        lambda: message(b"getMultiple", binary(1, TABLE), array(2, [record(binary(1, b"fits"))] * 8)),
        lambda: scan(TABLE, b"", 10, True),
        lambda: scan(TABLE, b"", 10, False),
        lambda: scan(PACKED, b"", 10, False),
        lambda: scan(TABLE, b"", 10, False, i32(8, 1)),
        lambda: expanding,
        lambda: message(
            b"openScanner", binary(1, TABLE), inner(2, binary(7, pattern % rng.randrange(5, 25)), i32(4, rng.randrange(9)))
        ),
        lambda: put(TABLE, b"put%d" % rng.randrange(4), b"q", large),
        lambda: message(b"append", binary(1, TABLE), inner(2, binary(1, b"append"), array(2, [cell(b"0", b"z" * 10)]))),
        lambda: get(PACKED, b"fits"),
    ][role]


ROLES = 12
HALF_SENT, SILENT, LONG_KEYS = ROLES, ROLES + 1, ROLES + 2
UNREAD = ROLES + 3


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def pb(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def native_calls(service, method, count=1000):
    """A native connection for a service, and calls of a method with an empty message."""
    header = pb(1, pb(1, b"x")) + pb(2, service)
    out = b"HBas\0\x50" + struct.pack(">I", len(header)) + header
    for number in range(1, count + 1):
        header = b"\x08" + varint(number) + pb(3, method) + b"\x20\1"
        frame = varint(len(header)) + header + b"\0"
        out += struct.pack(">I", len(frame)) + frame
    return out


def zookeeper(request):
    """A ZooKeeper session, and a request."""
    session = struct.pack(">iqiqi", 0, 0, 90000, 0, 16) + bytes(16)
    return text(session) + request


def page(path):
    return b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


# Bytes to send at once, bytes to send one by one, and whether they are for the HTTP port.
UNREAD_CALLS = [
    (native_calls(b"MasterService", b"GetTableDescriptors"), b"", False),
    (native_calls(b"MasterService", b"GetClusterStatus"), b"", False),
    (native_calls(b"AdminService", b"GetRegionLoad"), b"", False),
    (message(b"getTableDescriptorsByPattern", boolean(2, False)) * 20, b"", False),
    (zookeeper(text(struct.pack(">ii", 1, 8) + text(b"/hbase/table") + b"\0") * 20), b"", False),
    (page(b"/metrics") * 20, b"", True),
    (page(b"/tables") * 20, b"", True),
    (zookeeper(struct.pack(">I", 60000)), bytes(100), False),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 50000, b"x" * 100, True),
]
ALL_ROLES = UNREAD + len(UNREAD_CALLS)


def long_keys(rng):
    """A put of empty cells, each of which has the key of its row: 1,000 times its own size."""
    row = b"%d" % rng.randrange(4) + b"k" * 32700
    cells = [cell(b"%d" % number, b"") for number in range(7000)]
    return message(b"put", binary(1, TABLE), inner(2, binary(1, row), array(2, cells)))


def hostile(role, ports, sizes, stop, tally):
    """Runs one hostile connection after another until `stop` is set."""
    make = hostile_calls(role if role < ROLES else 0, sizes)
    if role == LONG_KEYS:
        request = long_keys(random.Random(role))
        make = lambda: request
    while not stop.is_set():
        try:
            at_once, one_by_one, is_http = UNREAD_CALLS[role - UNREAD] if role >= UNREAD else (b"", b"", False)
            connection = Connection(ports[1] if is_http else ports[0])
            if role == HALF_SENT:
                claimed = sizes.message
                head = struct.pack(">II", claimed, 0x80010001) + text(b"put") + struct.pack(">I", 1)
                connection.socket.sendall(head + struct.pack(">BHI", 11, 1, claimed - 1000) + b"x" * (claimed - 100000))
                connection.read(100)
            elif role >= UNREAD:
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.socket.sendall(at_once)
                for number in range(20):
                    if stop.is_set():
                        break
                    connection.socket.sendall(one_by_one[number : number + 1])
                    time.sleep(1)
            elif role == SILENT:
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.socket.sendall(make())
                for _ in range(20):
                    if not connection.socket.recv(1):
                        break
                    time.sleep(1)
            else:
                for _ in range(100):
                    head, length = connection.call(make())
                    tally[b"busy" if REFUSED in head else b"large" if b"max_bytes" in head or b"max_response" in head else b"served"] += 1
                    if stop.is_set():
                        break
            connection.close()
        except (OSError, Closed, struct.error):
            tally[b"ended"] += 1
            time.sleep(0.01)


def hostile_process(roles, ports, sizes, seconds, results):
    os.nice(5)
    stop = threading.Event()
    tally = {b"busy": 0, b"large": 0, b"served": 0, b"ended": 0}
    for role in roles:
        threading.Thread(target=hostile, args=(role, ports, sizes, stop, tally), daemon=True).start()
    time.sleep(seconds)
    stop.set()
    results.put({key.decode(): count for key, count in tally.items()})
    results.close()
    results.join_thread()
    os._exit(0)


def calm_process(number, port, seconds, results):
    """Runs a well-behaved client: 100 small puts and gets per second."""
    times, refused, why = {"get": [], "put": []}, 0, ""
    connection = Connection(port)
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        row = b"%d-%d" % (number, turn % 100)
        kind = "put" if turn % 4 == 0 else "get"
        request = put(CALM, row, b"q", b"v" * 100) if kind == "put" else get(CALM, row)
        began = time.monotonic()
        try:
            head, _ = connection.call(request)
            if REFUSED in head:
                refused, why = refused + 1, repr(head[-400:])
        except (OSError, Closed) as error:
            refused, why = refused + 1, repr(error)
            try:
                connection = Connection(port)
            except OSError:
                time.sleep(0.1)
        times[kind].append(time.monotonic() - began)
        turn += 1
        time.sleep(max(0, began + 0.01 - time.monotonic()))
    results.put({"times": times, "refused": refused, "why": why})


class Cgroup:
    """A cgroup of version 1 or 2 for `memory` or `pids`, if one can be made."""

    def __init__(self, kind, one, two, limit):
        self.path = None
        name = f"basalt-hostile-{kind}-{os.getpid()}"
        first, second = f"/sys/fs/cgroup/{kind}", "/sys/fs/cgroup"
        if os.path.isdir(first):
            self.path, self.setting = os.path.join(first, name), one
        elif os.path.exists(os.path.join(second, "cgroup.controllers")):
            self.path, self.setting = os.path.join(second, name), two
        else:
            return
        try:
            os.mkdir(self.path)
            self.limit(limit)
        except OSError as error:
            print(f"no cgroup for {kind}: {error}", file=sys.stderr)
            self.remove()

    def limit(self, limit):
        if self.path:
            with open(os.path.join(self.path, self.setting), "w") as file:
                file.write(str(limit))

    def enter(self):
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))

    def remove(self):
        if self.path and os.path.isdir(self.path):
            os.rmdir(self.path)
        self.path = None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(arguments, directory, cgroups):
    """Starts the server in these cgroups; returns its process, its ports and its settings."""
    ports = free_port(), free_port()
    log = os.path.join(directory, "log")
    command = [
        arguments.binary,
        "serve",
        *("--data-dir", os.path.join(directory, "data")),
        *("--thrift-listen", f"127.0.0.1:{ports[0]}"),
        *("--http-listen", f"127.0.0.1:{ports[1]}"),
        *("--set", f"memory.total_bytes={arguments.total_bytes}"),
    ]
    for setting in arguments.set:
        command += ["--set", setting]
    with open(log, "wb") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file, preexec_fn=lambda: [cgroup.enter() for cgroup in cgroups])
    while True:
        try:
            socket.create_connection(("127.0.0.1", ports[0]), 1).close()
            break
        except OSError:
            if server.poll() is not None:
                sys.exit(f"the server has not started: {open(log).read()}")
            time.sleep(0.05)
    settings = {}
    for line in open(log, errors="replace"):
        words = line.split()
        if "=" in words and "." in words[words.index("=") - 1]:
            at = words.index("=")
            settings[words[at - 1]] = words[at + 1].strip('"')
    return server, ports, settings


def status(pid, of):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(of))


def resident(pid):
    return status(pid, "VmRSS:") << 10


def metrics(port, prefix):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(prefix)}


def percentile(times, percent):
    times = sorted(times)
    return times[min(len(times) - 1, len(times) * percent // 100)] * 1000 if times else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--total-bytes", type=int, default=256 << 20)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--threads", type=int, default=8, help="threads above those of the server after its load")
    parser.add_argument("--work-dir")
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="hostile-", dir=arguments.work_dir)
    cgroup = Cgroup("memory", "memory.limit_in_bytes", "memory.max", 2 * arguments.total_bytes)
    threads = Cgroup("pids", "pids.max", "pids.max", 1000)
    has_cgroup, has_threads = cgroup.path is not None, threads.path is not None
    server, (port, http), settings = start(arguments, directory, [cgroup, threads])
    sizes = Sizes(settings)
    load(port, sizes)
    most_threads = status(server.pid, "Threads:") + arguments.threads
    threads.limit(most_threads)
    results, calm = multiprocessing.Queue(), multiprocessing.Queue()
    roles = [number % ALL_ROLES for number in range(arguments.connections)]
    workers = [
        multiprocessing.Process(target=hostile_process, args=(roles[part::4], (port, http), sizes, arguments.seconds, results))
        for part in range(4)
    ]
    workers += [multiprocessing.Process(target=calm_process, args=(n, port, arguments.seconds, calm)) for n in range(2)]
    for worker in workers:
        worker.start()
    peak, end = 0, time.monotonic() + arguments.seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            peak = max(peak, resident(server.pid))
        except (OSError, StopIteration):
            break
        time.sleep(0.02)
    survived = server.poll() is None
    calm_results = [calm.get(timeout=60) for _ in range(2)]
    tallies = [results.get(timeout=60) for _ in range(4)]
    for worker in workers:
        worker.join(timeout=60)
    refused_by = metrics(http, "basalt_refused_calls_total") if survived else {}
    if survived:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    cgroup.remove()
    threads.remove()
    gets = [one for result in calm_results for one in result["times"]["get"]]
    puts = [one for result in calm_results for one in result["times"]["put"]]
    refused, calls = sum(result["refused"] for result in calm_results), len(gets) + len(puts)
    report = {
        "seconds": arguments.seconds,
        "total_bytes": arguments.total_bytes,
        "connections": arguments.connections,
        "cgroup": f"limit {2 * arguments.total_bytes}" if has_cgroup else "not run: no memory cgroup can be made",
        "threads": f"limit {most_threads}" if has_threads else "not run: no pids cgroup can be made",
        "survived": survived,
        "exit_code": server.returncode,
        "peak_resident_mib": peak >> 20,
        "peak_of_total": round(peak / arguments.total_bytes, 3),
        "calm_calls": calls,
        "calm_refused": refused,
        "calm_get_ms": {"p50": percentile(gets, 50), "p99": percentile(gets, 99), "max": percentile(gets, 100)},
        "calm_put_ms": {"p50": percentile(puts, 50), "p99": percentile(puts, 99), "max": percentile(puts, 100)},
        "hostile": {key: sum(tally[key] for tally in tallies) for key in tallies[0]},
        "refused_by": refused_by,
    }
    print(json.dumps(report, indent=2))
    for result in calm_results:
        if result["why"]:
            print("a well-behaved call was refused:", result["why"])
    holds = survived and peak <= 1.25 * arguments.total_bytes and percentile(gets + puts, 99) < 100 and refused <= calls / 100
    print("PASS" if holds else "FAIL")
    if holds:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        print("log and data:", directory)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
