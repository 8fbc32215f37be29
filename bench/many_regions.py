#!/usr/bin/env python3
"""Times a flush and a stop when many regions each have a little data in memory.

    cargo build --release -p basalt
    bench/many_regions.py target/release/basalt --regions 2000 --dir /var/tmp

1. Starts a server on a new directory and creates a pre-split table.
2. Writes one row into each region and times `flush` of the table.
3. Writes again and times the stop, from SIGTERM to the end of the process.
4. Starts the server again, counts the rows, and prints the log line of that start. After a clean stop
   the line says `0 rows replayed`.

With --probe it first times syncs of the same disk for comparison. Needs thriftpy2.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import thriftpy2
from thriftpy2.rpc import make_client
from thriftpy2.transport import TFramedTransportFactory

IDL = Path(__file__).resolve().parent.parent / "idl"
START_S = 60
CALL_MS = 300_000
ROWS_A_CALL = 500
PROBE_SYNCS = 50


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server on a data directory."""

    def __init__(self, binary: Path, data: Path):
        self.port = free_port()
        self.log_path = data.parent / f"log-{self.port}"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [binary, "serve", "--data-dir", data, "--thrift-listen", f"127.0.0.1:{self.port}",
                 "--http-listen", f"127.0.0.1:{free_port()}"],
                stdout=log, stderr=log)
        end = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"the server did not start: {self.log()}")
                time.sleep(0.05)

    def client(self, service):
        return make_client(service, "127.0.0.1", self.port, trans_factory=TFramedTransportFactory(), timeout=CALL_MS)

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def stop(self) -> float:
        """Stops the server; returns the seconds from SIGTERM to the end of the process."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            sys.exit(f"the stop failed: {self.log()}")
        return time.monotonic() - began


def probe(root: Path) -> float:
    """Returns the seconds to write one small file and to sync it and its directory."""
    began = time.monotonic()
    folder = os.open(root, os.O_RDONLY)
    for number in range(PROBE_SYNCS):
        with open(root / f"probe-{number}", "wb") as file:
            file.write(b"x" * 1000)
            file.flush()
            os.fdatasync(file.fileno())
        os.fsync(folder)
    os.close(folder)
    return (time.monotonic() - began) / PROBE_SYNCS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--regions", type=int, default=2000)
    parser.add_argument("--dir", type=Path, help="where the data directory is made")
    parser.add_argument("--probe", action="store_true", help="time syncs of the disk first")
    arguments = parser.parse_args()
    t2 = thriftpy2.load(str(IDL / "thrift2/hbase.thrift"), module_name="t2_thrift")
    admin = thriftpy2.load(str(IDL / "basalt.thrift"), module_name="basalt_thrift")
    keys = [b"%06d" % number for number in range(arguments.regions)]

    def write_all(client) -> None:
        value = t2.TColumnValue(family=b"f", qualifier=b"q", value=b"v" * 100)
        for at in range(0, len(keys), ROWS_A_CALL):
            rows = keys[at:at + ROWS_A_CALL]
            client.putMultiple(b"t", [t2.TPut(row=row + b"x", columnValues=[value]) for row in rows])

    with tempfile.TemporaryDirectory(prefix="many-regions-", dir=arguments.dir) as root:
        if arguments.probe:
            print(f"one file with its syncs: {1000 * probe(Path(root)):.1f} ms")
        data = Path(root) / "data"
        server = Server(arguments.binary, data)
        client = server.client(t2.THBaseService)
        table = t2.TTableDescriptor(tableName=t2.TTableName(ns=b"default", qualifier=b"t"),
                                    columns=[t2.TColumnFamilyDescriptor(name=b"f")])
        client.createTable(table, keys[1:])
        write_all(client)
        began = time.monotonic()
        server.client(admin.BasaltAdmin).basaltFlush(b"t")
        print(f"flush of {len(keys)} regions: {time.monotonic() - began:.2f} s")
        write_all(client)
        client.close()
        print(f"stop with {len(keys)} regions to flush: {server.stop():.2f} s")
        again = Server(arguments.binary, data)
        rows = again.client(t2.THBaseService).getScannerResults(b"t", t2.TScan(), len(keys) + 1)
        print(f"start: {[line for line in again.log().splitlines() if 'opened' in line][0]}")
        again.stop()
        if len(rows) != len(keys):
            sys.exit(f"{len(rows)} rows of {len(keys)} are left")


if __name__ == "__main__":
    main()
