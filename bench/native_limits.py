#!/usr/bin/env python3
"""Shows the limits of native RPC connections on a running program, with raw sockets.

    bench/native_limits.py idle target/release/basalt --connections 4000
    bench/native_limits.py slow target/release/basalt
    bench/native_limits.py bad target/release/basalt

- idle: resident memory of the server, and the kernel's memory for sockets, with and without idle
  connections, each of which has made one Get.
- slow: p50 and p99 of the Gets of a client, and the server's memory, before, during and after a slow
  reader, a slow writer, half-sent frames, 1,000 calls in flight, and all of them at once.
- bad: the exception for each kind of bad input, and a Get afterwards.

Each starts a server on a new directory, with the settings of --set besides its own. Needs Linux, Python
3.8 and nothing else."""
import argparse
import atexit
import multiprocessing
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CODEC = "org.apache.hadoop.hbase.codec.KeyValueCodec"
PREAMBLE = b"HBas\0\x50"
MIB = 1 << 20


# The part of Protocol Buffers that the calls below need.
def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def message(*fields):
    """A message of (number, value) pairs; a value is a number, or text or bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def fields(data):
    """The last value of each field."""
    out, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            out[tag >> 3], at = read_varint(data, at)
        elif tag & 7 == 2:
            length, at = read_varint(data, at)
            out[tag >> 3] = data[at:at + length]
            at += length
        else:
            raise ValueError(f"wire type {tag & 7}")
    return out


# Requests.
def connection_header(service, **others):
    version = message(*((number, "-") for number in range(1, 7)), (7, 2), (8, 6))
    codec = others.get("codec", CODEC)
    header = message((2, service), (3, codec), (5, version))
    return struct.pack(">I", len(header)) + header


def frame(call_id, method, parameter, cells=b""):
    header = [(1, call_id), (3, method), (4, 1)] + ([(5, message((1, len(cells))))] if cells else [])
    header = message(*header)
    body = varint(len(header)) + header + varint(len(parameter)) + parameter + cells
    return struct.pack(">I", len(body)) + body


def region_of(name):
    return message((1, 1), (2, name))


def get(region, row):
    return message((1, region_of(region)), (2, message((1, row))))


def put(region, row, value, family="f"):
    column = message((1, family), (2, message((1, "q"), (2, value))))
    return message((1, region_of(region)), (2, message((1, row), (2, 2), (3, column))))


def scan(region, start, stop, rows, bytes_max=256 * MIB):
    what = message((3, start), (4, stop), (10, bytes_max))
    return message((1, region_of(region)), (2, what), (4, rows), (5, 0), (7, 1))


class Response:
    def __init__(self, body):
        length, at = read_varint(body, 0)
        header = fields(body[at:at + length])
        self.call_id = header.get(1)
        self.error = fields(header[2]) if 2 in header else None
        at += length
        self.result, self.cells = {}, b""
        if self.error is None and at < len(body):
            length, at = read_varint(body, at)
            self.result, self.cells = fields(body[at:at + length]), body[at + length:]

    def exception(self):
        """Class and text of the exception."""
        return self.error[1].decode(), self.error[2].decode()


class Client:
    """One connection."""

    def __init__(self, port, service=None, receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(120)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if service:
            self.send(PREAMBLE + connection_header(service))

    def send(self, data):
        self.socket.sendall(data)

    def exactly(self, count):
        out = bytearray()
        while len(out) < count:
            piece = self.socket.recv(min(count - len(out), MIB))
            if not piece:
                raise EOFError
            out += piece
        return bytes(out)

    def response(self):
        """The next response; `None` at the end of the connection."""
        try:
            (length,) = struct.unpack(">I", self.exactly(4))
            return Response(self.exactly(length))
        except (EOFError, ConnectionError):
            return None

    def ask(self, method, parameter, cells=b"", call_id=1):
        self.send(frame(call_id, method, parameter, cells))
        return self.response()

    def must(self, method, parameter):
        response = self.ask(method, parameter)
        if response is None or response.error is not None:
            sys.exit(f"{method} failed: {response and response.error}")
        return response

    def close(self):
        self.socket.close()


class Server:
    """A server on a new data directory, with the table `t` of the family `f`."""

    def __init__(self, arguments, root, settings):
        self.port = arguments.port
        settings = [part for setting in settings + arguments.set for part in ("--set", setting)]
        self.log = open(root / "log", "wb")
        self.process = subprocess.Popen(
            [arguments.binary, "serve", "--data-dir", root / "data", "--thrift-listen", f"127.0.0.1:{self.port}",
             "--http-listen", f"127.0.0.1:{self.port + 1}", *settings], stdout=self.log, stderr=self.log)
        atexit.register(self.process.kill)
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit((root / "log").read_text(errors="replace"))
                time.sleep(0.05)
        name = message((1, "default"), (2, "t"))
        whole = message((1, "SPLIT_ENABLED"), (2, "false"))
        table = message((1, name), (2, whole), (3, message((1, "f"))))
        Client(self.port, "MasterService").must("CreateTable", message((1, table)))
        meta = Client(self.port, "ClientService").must("Scan", scan("hbase:meta,,1", "t,,", "t ,,", 1))
        key_bytes = 4 + 4 + 4
        (row_bytes,) = struct.unpack(">H", meta.cells[key_bytes:key_bytes + 2])
        self.region = meta.cells[key_bytes + 2:key_bytes + 2 + row_bytes]

    def memory(self, key="VmRSS"):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith(key + ":"))

    def metric(self, name):
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.port + 1}/metrics", timeout=20).read().decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            sys.exit("the stop failed")


def kernel_memory():
    """Bytes of buffers of TCP sockets, and of the kernel's slabs."""
    tcp = next(line.split() for line in Path("/proc/net/sockstat").read_text().splitlines() if line.startswith("TCP:"))
    slab = next(line.split() for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Slab:"))
    return int(tcp[tcp.index("mem") + 1]) * resource.getpagesize(), int(slab[1]) << 10


def idle(arguments, root):
    """Memory with and without idle connections."""
    count = arguments.connections
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(arguments, root, [])

    def served():
        client = Client(server.port, "ClientService")
        client.must("Get", get(server.region, "none"))
        return client

    served().close()
    figures = []
    for connections in (0, count):
        clients = [served() for _ in range(connections)]
        time.sleep(5)
        figures.append((server.memory(), *kernel_memory(), server.metric("basalt_connections ")))
        print(f"{connections} connections: {figures[-1][3]:.0f} open, resident {figures[-1][0] / MIB:.2f} MiB, "
              f"TCP buffers {figures[-1][1] / MIB:.2f} MiB, slabs {figures[-1][2] / MIB:.2f} MiB")
    each = [(after - before) / count for before, after in zip(*figures)]
    print(f"each connection: resident {each[0]:,.0f} bytes, TCP buffers {each[1]:,.0f} bytes, slabs {each[2]:,.0f} "
          "bytes (both of the kernel, for both ends of the connection)")
    for client in clients:
        client.must("Get", get(server.region, "none"))
    print(f"all {count} made one more Get: resident {server.memory() / MIB:.2f} MiB")
    for client in clients:
        client.close()
    server.stop()


# Slow clients. Each opens its connections and returns what to do every second, and what to say at the end.
ROW_BYTES = 100_000
ROWS = 2_100


class SlowReader:
    """Asks for 200 MB of scan results in 20 calls and reads 1 KiB a second."""

    def __init__(self, server):
        self.client = Client(server.port, "ClientService", receive_bytes=64 << 10)
        for number in range(20):
            start, stop = b"large-%06d" % (number * 100), b"large-%06d" % (number * 100 + 100)
            self.client.send(frame(number, "Scan", scan(server.region, start, stop, 100)))
        self.read = 0
        self.end = None

    def second(self, passed):
        if self.end is None and select.select([self.client.socket], [], [], 0)[0]:
            try:
                piece = self.client.socket.recv(1024)
            except ConnectionError as error:
                self.end = f"{error.strerror} after {passed:.0f} s"
                return
            self.read += len(piece)
            if not piece:
                self.end = f"closed by the server after {passed:.0f} s"

    def report(self):
        return f"read {self.read} bytes, {self.end or 'still connected'}"

    def close(self):
        self.client.close()


class SlowWriter:
    """Sends one byte of a Put of 1 MB each second."""

    def __init__(self, server):
        self.client = Client(server.port, "ClientService")
        self.bytes = frame(1, "Mutate", put(server.region, "slow", b"v" * 1_000_000))
        self.sent = 0
        self.end = None

    def second(self, passed):
        if self.end is not None:
            return
        if select.select([self.client.socket], [], [], 0)[0]:
            response = self.client.response()
            self.end = f"{'closed by the server' if response is None else response.exception()} after {passed:.0f} s"
            return
        try:
            self.client.send(self.bytes[self.sent:self.sent + 1])
            self.sent += 1
        except ConnectionError as error:
            self.end = f"{error.strerror} after {passed:.0f} s"

    def report(self):
        return f"sent {self.sent} bytes, {self.end or 'still connected'}"

    def close(self):
        self.client.close()


class HalfFrames:
    """Eight connections, each with the half of a frame of 4 MiB."""

    def __init__(self, server):
        whole = frame(1, "Mutate", put(server.region, "half", b"v" * (4 * MIB)))
        self.clients = [Client(server.port, "ClientService") for _ in range(8)]
        for client in self.clients:
            client.send(whole[:len(whole) // 2])
        self.ends = []

    def second(self, passed):
        for client in list(self.clients):
            if select.select([client.socket], [], [], 0)[0]:
                response = client.response()
                self.ends.append(f"{'closed' if response is None else response.exception()} after {passed:.0f} s")
                self.clients.remove(client)

    def report(self):
        return f"{len(self.clients)} still connected, {len(self.ends)} ended: {sorted(set(self.ends))}"

    def close(self):
        for client in self.clients:
            client.close()


class InFlight:
    """1,000 Gets of 100 kB in flight on one connection, whose answers are read at the end."""

    def __init__(self, server):
        self.client = Client(server.port, "ClientService", receive_bytes=64 << 10)
        self.sent = b"".join(frame(number, "Get", get(server.region, b"large-%06d" % number)) for number in range(1000))
        self.client.send(self.sent)

    def second(self, passed):
        pass

    def report(self):
        answered = refused = 0
        texts = set()
        while answered + refused < 1000:
            response = self.client.response()
            if response is None:
                return f"{answered} answered, {refused} refused {texts}, then closed by the server"
            if response.error is None:
                answered += 1
            else:
                refused += 1
                texts.add(re.sub(r"[0-9]+", "N", response.exception()[1]))
        return f"{answered} answered, {refused} refused {texts or ''}"

    def close(self):
        self.client.close()


def attack(kinds, port, region, seconds, ready, done, said):
    """Runs slow clients in a process of its own."""
    server = argparse.Namespace(port=port, region=region)
    clients = [kind(server) for kind in kinds]
    began = time.monotonic()
    ready.set()
    while not done.wait(1) and time.monotonic() < began + seconds + 30:
        for client in clients:
            client.second(time.monotonic() - began)
    for client in clients:
        said.put(f"  {type(client).__name__}: {client.report()}")
        client.close()


def gets(client, server, seconds, pause):
    """Latencies of Gets, in seconds; and the most memory of the server and of its calls meanwhile."""
    took, resident, held = [], 0, 0
    look = 0
    end = time.monotonic() + seconds
    request = frame(1, "Get", get(server.region, "small"))
    while time.monotonic() < end:
        began = time.monotonic()
        client.send(request)
        response = client.response()
        took.append(time.monotonic() - began)
        if response is None or response.error is not None:
            sys.exit(f"a Get failed: {response and response.error}")
        if began > look:
            look = began + 0.5
            resident, held = max(resident, server.memory()), max(held, server.metric("basalt_request_memory_bytes"))
        time.sleep(pause)
    took.sort()
    return took, resident, held


def slow(arguments, root):
    """Gets beside slow clients."""
    total = arguments.total_bytes
    server = Server(arguments, root, [f"memory.total_bytes={total}"])
    client = Client(server.port, "ClientService")
    client.must("Mutate", put(server.region, "small", b"v" * 100))
    for number in range(ROWS):
        client.must("Mutate", put(server.region, b"large-%06d" % number, b"%06d" % number * (ROW_BYTES // 6)))
    print(f"{ROWS} rows of {ROW_BYTES} bytes; memory.total_bytes {total / MIB:.0f} MiB, of which calls have "
          f"{server.metric('basalt_request_memory_limit_bytes') / MIB:.0f} MiB")

    def line(name, figures):
        took, resident, held = figures
        at = lambda share: 1e6 * took[min(int(len(took) * share), len(took) - 1)]
        print(f"{name}: {len(took)} gets, p50 {at(0.5):.0f} us, p99 {at(0.99):.0f} us, longest {took[-1] * 1e3:.1f} ms; "
              f"resident at most {resident / MIB:.0f} MiB, memory of calls at most {held / MIB:.1f} MiB", flush=True)

    seconds, pause = arguments.seconds, 0.001
    everything = [SlowReader, SlowWriter, HalfFrames, InFlight]
    line("before", gets(client, server, seconds, pause))
    for name, kinds, length in [(kind.__name__, [kind], seconds) for kind in everything] + [
            ("all of them", everything, arguments.together_seconds)]:
        ready, done, said = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
        process = multiprocessing.Process(target=attack,
                                          args=(kinds, server.port, server.region, length, ready, done, said))
        process.start()
        ready.wait()
        line(name, gets(client, server, length, pause))
        done.set()
        for _ in kinds:
            print(said.get())
        process.join()
        line("after", gets(client, server, seconds / 2, pause))
    peak = server.memory("VmHWM")
    print(f"peak resident {peak / MIB:.0f} MiB, {peak / total:.2f} of memory.total_bytes")
    server.stop()


def bad(arguments, root):
    """The exception for each kind of bad input, and a Get afterwards."""
    (root / "text").write_text("no HFile\n" * 1000)
    server = Server(arguments, root, [f'bulkload.directories=["{root}"]'])
    region = server.region
    client = Client(server.port, "ClientService")
    client.must("Mutate", put(region, "row", "value"))
    for number in range(3):
        client.must("Mutate", put(region, b"scan-%d" % number, "value"))

    def serves(connection, where):
        response = connection.ask("Get", get(region, "row"))
        good = response is not None and response.error is None and response.cells.endswith(b"value")
        print(f"  a Get on {where}: {'its cell' if good else response and response.error}")
        if not good:
            sys.exit("the Get failed")

    def show(name, response, connection=None):
        if response is None:
            print(f"{name}: closed without a response")
        elif response.error is None:
            print(f"{name}: NO ERROR, {response.result}")
        else:
            again = "do not retry" if response.error.get(5) else "may be retried"
            print(f"{name}: {response.exception()[0]} (call {response.call_id}, {again})\n  {response.exception()[1]}")
        if connection and response is not None and connection.socket.fileno() >= 0:
            serves(connection, "the same connection")

    def closing(name, data, service=None):
        broken = Client(server.port, service)
        broken.send(data)
        response = broken.response()
        show(name, response)
        if response is not None:
            print("  the connection is", "closed" if broken.response() is None else "OPEN")
        serves(Client(server.port, "ClientService"), "a new connection")

    closing("a wrong magic (HBaz)", b"HBaz\0\x50")
    closing("a wrong magic (Regina)", b"Regina")
    closing("a wrong version", b"HBas\x01\x50")
    closing("an unknown authentication", b"HBas\0\x30")
    closing("an unknown service", PREAMBLE + connection_header("NoSuchService"))
    show("a Put to a missing family", client.ask("Mutate", put(region, "r", "v", family="none")), client)
    scanner = client.must("Scan", scan(region, "scan-", "scan.", 1)).result[2]
    client.must("Scan", message((3, scanner), (4, 0), (5, 1)))
    # HBase ignores such a call, too, unless its number shows that it is a repeated one.
    ignored = client.must("Scan", message((3, scanner), (4, 1)))
    print(f"a scan with a closed scanner id, without a number: no exception, no results ({ignored.result})")
    show("a scan with a closed scanner id, a repeated call", client.ask("Scan", message((3, scanner), (4, 1), (6, 0))),
         client)
    show("a scan with an unknown scanner id", client.ask("Scan", message((3, 77), (4, 1))), client)
    # Its length, its call's header, and the first 64 KiB of its parameter.
    header = message((1, 9), (3, "Mutate"), (4, 1))
    begin = struct.pack(">I", 300 * MIB) + varint(len(header)) + header + varint(300 * MIB - 40)
    closing("a frame of 300 MiB", begin + b"\0" * (64 << 10), "ClientService")
    mutation = message((1, "r"), (2, 2), (8, 2))
    cut = message((1, region_of(region)), (2, mutation))
    show("a cell block that is cut", client.ask("Mutate", cut, struct.pack(">I", 50) + b"\1\2\3"), client)
    load = message((1, region_of(region)), (2, message((1, "f"), (2, f"file:{root / 'text'}"))), (3, 1))
    show("a bulk load of a text file", client.ask("BulkLoadHFile", load), client)
    print(f"  the text file is {'where it was' if (root / 'text').read_text().startswith('no HFile') else 'GONE'}")
    gone = "t,,1.0123456789abcdef0123456789abcdef."
    show("a region name that does not exist", client.ask("Get", get(gone, "row")), client)
    server.stop()
    print("the server stopped with status 0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["idle", "slow", "bad"])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--port", type=int, default=19500, help="and the next one, for HTTP")
    parser.add_argument("--connections", type=int, default=4000)
    parser.add_argument("--total-bytes", type=int, default=256 * MIB)
    parser.add_argument("--seconds", type=float, default=10, help="of Gets beside one kind of slow client")
    parser.add_argument("--together-seconds", type=float, default=40, help="of Gets beside all of them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="native-limits-") as root:
        {"idle": idle, "slow": slow, "bad": bad}[arguments.what](arguments, Path(root))


if __name__ == "__main__":
    main()
