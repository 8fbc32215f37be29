#!/usr/bin/env python3
"""Are the flights in a table those of the file? Asked through HappyBase, with keys computed here.

    basalt-bench hotspot --input flights-3m.parquet --keep-tables --sequence-block 0
    pip install happybase pyarrow
    tests/e2e/python/flights_verify.py --input flights-3m.parquet --table bench_salted

Picks random rows of the file, computes the row key of each for the table's design, reads it, and compares all columns.
Prints `N of N flights are equal`, and ends with 1 if any is not.

    key          yyyyMMddHHmm of the date (UTC) + place in the file from 0, 10 digits
    sequential   key
    salted       1 byte: the first 4 bytes of MD5(key), big-endian, modulo the buckets; then key
    hashed       the first bytes of MD5(key); then key
    reversed     minutes since 1970, 9 digits, and place in the file, 10 digits; the last digit first
    minute       mmHHddMMyyyy of the date + place in the file, 10 digits

Tables of other designs are read by `basalt-bench verify`.

Every column is a cell of family f, as text; the date as isoformat() writes it; a null is no cell.
"""

import argparse
import datetime
import hashlib
import random
import sys

import happybase
import pyarrow.parquet

COLUMNS = ["date", "delay", "distance", "origin", "destination"]
DESIGNS = ["sequential", "salted", "hashed", "reversed", "minute"]


def row_key(design, date, place, buckets, hash_bytes):
    key = f"{date:%Y%m%d%H%M}{place:010d}".encode()
    digest = hashlib.md5(key).digest()
    if design == "sequential":
        return key
    if design == "salted":
        return bytes([int.from_bytes(digest[:4], "big") % buckets]) + key
    if design == "hashed":
        return digest[:hash_bytes] + key
    if design == "reversed":
        minutes = (date - datetime.datetime(1970, 1, 1)) // datetime.timedelta(minutes=1)
        return f"{minutes:09d}{place:010d}"[::-1].encode()
    return f"{date:%M%H%d%m%Y}{place:010d}".encode()


def cells(flight):
    def text(value):
        return value.isoformat() if hasattr(value, "isoformat") else str(value)

    return {f"f:{name}".encode(): text(flight[name]).encode() for name in COLUMNS if flight[name] is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="the parquet file that was written")
    parser.add_argument("--target", default="127.0.0.1:9090", help="host:port of the Thrift server")
    parser.add_argument("--table", required=True)
    parser.add_argument("--design", choices=DESIGNS, help="default: the one that the table's name ends with")
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--hash-bytes", type=int, default=1)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--rows", type=int, help="only this many rows from the start of the file")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    design = options.design or next((name for name in DESIGNS if options.table.endswith(name)), None)
    if design is None:
        parser.error(f"table name {options.table} does not end with a design: give --design")

    flights = pyarrow.parquet.read_table(options.input, columns=COLUMNS)
    count = min(flights.num_rows, options.rows or flights.num_rows)
    chooser = random.Random(options.seed)
    places = [chooser.randrange(count) for _ in range(options.samples)]

    host, _, port = options.target.rpartition(":")
    connection = happybase.Connection(host, int(port))
    table = connection.table(options.table)
    equal = 0
    for place, flight in zip(places, flights.take(places).to_pylist()):
        key = row_key(design, flight["date"], place, options.buckets, options.hash_bytes)
        found, expected = table.row(key), cells(flight)
        if found == expected:
            equal += 1
        else:
            print(f"row {key!r}: found {found}, expected {expected}", file=sys.stderr)
    connection.close()
    print(f"{equal} of {options.samples} flights are equal")
    sys.exit(0 if equal == options.samples else 1)


if __name__ == "__main__":
    main()
