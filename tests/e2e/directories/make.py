"""Makes a kept data directory: make.py PROGRAM NAME [native].

Starts PROGRAM, a `basalt` of any release, on an empty directory, fills it by Thrift 2, kills it (so that rows stand in
the log that no store file has), and packs the directory as NAME.tar.gz beside this script. With `native`, which needs
a release that has bulk load, it also loads a file and makes an increment with a nonce. Needs thriftpy2.
tests/e2e/tests/upgrade.rs opens the directories and has what is in them.
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import thriftpy2
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TApplicationException

import native

HERE = Path(__file__).resolve().parent
IDL = HERE.parents[2] / "idl"
H = thriftpy2.load(str(IDL / "thrift2" / "hbase.thrift"), module_name="hbase_thrift")
OWN = thriftpy2.load(str(IDL / "basalt.thrift"), module_name="basalt_thrift")
CELLS = b"kept:cells"


def put(client, row, value, timestamp, family=b"f", ttl_ms=None):
    attributes = {b"_ttl": struct.pack(">q", ttl_ms)} if ttl_ms else None
    column = H.TColumnValue(family=family, qualifier=b"q", value=value, timestamp=timestamp)
    client.put(CELLS, H.TPut(row=row, columnValues=[column], attributes=attributes))


def create(client, namespace, name, families, splits=None):
    table = H.TTableName(ns=namespace, qualifier=name)
    client.createTable(H.TTableDescriptor(tableName=table, columns=families), splits)
    return table


def fill(client, own):
    client.createNamespace(H.TNamespaceDescriptor(name="kept", configuration={"owner": "tests"}))
    families = [
        H.TColumnFamilyDescriptor(name=b"f", maxVersions=3),
        H.TColumnFamilyDescriptor(name=b"t", timeToLive=1_000_000_000),
    ]
    create(client, b"kept", b"cells", families, [b"m"])
    client.disableTable(create(client, b"default", b"closed", [H.TColumnFamilyDescriptor(name=b"f")]))

    for timestamp in range(1, 5):
        put(client, b"a", b"v%d" % timestamp, timestamp)
    put(client, b"b", b"gone", 10)
    client.deleteSingle(CELLS, H.TDelete(row=b"b"))
    put(client, b"n\x00\xff", bytes(range(256)), 10)
    put(client, b"o", b"kept for 200 years", 10**12, ttl_ms=200 * 365 * 86_400_000)
    put(client, b"p", b"gone at once", 10**12, ttl_ms=1)
    one = [H.TColumnIncrement(family=b"t", qualifier=b"count", amount=3)]
    client.increment(CELLS, H.TIncrement(row=b"q", columns=one))
    own.basaltFlush(CELLS)
    try:
        own.basaltSnapshot("taken", CELLS, True, 0)
    except TApplicationException as error:
        print("no snapshot:", error)

    # These stand in the log alone.
    for number in range(10):
        put(client, b"late-%02d" % number, b"%d" % number, 20)
    put(client, b"a", b"v5", 5)
    client.deleteSingle(CELLS, H.TDelete(row=b"n\x00\xff"))
    client.increment(CELLS, H.TIncrement(row=b"q", columns=one))


def fill_natively(client, own, address, data, source):
    """Loads a store file of kept:cells into kept:loaded, and increments a cell with a nonce."""
    create(client, b"kept", b"loaded", [H.TColumnFamilyDescriptor(name=b"f")])
    region = own.basaltRegionMetrics(b"kept:loaded")[0].regionName
    newest = max((data / "tables/kept/cells/f").iterdir())
    shutil.copy(newest, source / "file")
    rpc = native.Client(*address)
    rpc.call("BulkLoadHFile", native.bulk_load(region, b"f", source / "file"))
    rpc.call("Mutate", native.increment(region, b"counted", b"f", b"q", 7, nonce_group=11, nonce=12))


def main(program, name, is_native=None):
    with tempfile.TemporaryDirectory() as below:
        data, source = Path(below) / name, Path(below) / "source"
        source.mkdir()
        settings = ['thrift.listen="127.0.0.1:0"', 'http.listen="127.0.0.1:0"', "wal.segment_bytes=1048576"]
        if is_native:
            settings.append(f'bulkload.directories=["{source}"]')
        command = [program, "serve", "--data-dir", str(data)]
        command += [word for setting in settings for word in ("--set", setting)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = server.stdout.readline()
        host, port = re.search(r"on (\S+):(\d+) and", line).groups()
        address = (host, int(port))
        client, own = make_client(H.THBaseService, *address), make_client(OWN.BasaltAdmin, *address)
        fill(client, own)
        if is_native:
            fill_natively(client, own, address, data, source)
        server.kill()
        server.wait()
        with tarfile.open(HERE / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(data, name)
    print(f"{name}.tar.gz: {os.path.getsize(HERE / f'{name}.tar.gz')} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
