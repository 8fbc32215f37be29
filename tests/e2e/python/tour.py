"""Everything HappyBase can do, against the server at argv[1]:argv[2]: argv[3] transport, argv[4] protocol."""
import sys

import happybase

host, port, transport, protocol = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
table_name = f"tour_{transport}_{protocol}"

connection = happybase.Connection(host, port, transport=transport, protocol=protocol, timeout=30_000)
assert table_name.encode() not in connection.tables()
connection.create_table(table_name, {"cf": dict(max_versions=5, bloom_filter_type="ROW"), "other": dict()})
assert table_name.encode() in connection.tables()
families = connection.table(table_name).families()
assert families[b"cf"]["max_versions"] == 5, families
assert connection.is_table_enabled(table_name)

table = connection.table(table_name)
table.put(b"row-1", {b"cf:a": b"1", b"cf:": b"empty qualifier", b"other:x": b"\x00\xff"})
assert table.row(b"row-1") == {b"cf:a": b"1", b"cf:": b"empty qualifier", b"other:x": b"\x00\xff"}
assert table.row(b"row-1", columns=[b"cf:a"]) == {b"cf:a": b"1"}
assert table.row(b"row-1", columns=[b"other"]) == {b"other:x": b"\x00\xff"}
assert table.row(b"absent") == {}

for version in range(1, 8):
    table.put(b"versions", {b"cf:v": b"%d" % version}, timestamp=version * 10)
assert table.cells(b"versions", b"cf:v", versions=9) == [b"7", b"6", b"5", b"4", b"3"]
assert table.cells(b"versions", b"cf:v", versions=2, timestamp=60, include_timestamp=True) == [(b"5", 50), (b"4", 40)]
assert table.row(b"versions", timestamp=70) == {b"cf:v": b"6"}

with table.batch(batch_size=100) as batch:
    for number in range(1000):
        batch.put(b"batch-%04d" % number, {b"cf:n": b"%d" % number})
rows = table.rows([b"batch-0003", b"nobody", b"batch-0999"])
assert rows == [(b"batch-0003", {b"cf:n": b"3"}), (b"batch-0999", {b"cf:n": b"999"})]

scanned = list(table.scan(row_prefix=b"batch-", batch_size=64))
assert [key for key, _ in scanned] == [b"batch-%04d" % number for number in range(1000)]
assert [key for key, _ in table.scan(row_start=b"batch-0500", row_stop=b"batch-0503")] == [
    b"batch-0500", b"batch-0501", b"batch-0502"]
assert [key for key, _ in table.scan(row_start=b"batch-0502", row_stop=b"batch-0499", reverse=True)] == [
    b"batch-0502", b"batch-0501", b"batch-0500"]
assert len(list(table.scan(row_prefix=b"batch-", limit=7))) == 7
found = list(table.scan(row_prefix=b"batch-", filter=b"SingleColumnValueFilter('cf','n',=,'binary:42')"))
assert found == [(b"batch-0042", {b"cf:n": b"42"})], found
assert len(list(table.scan(filter=b"PrefixFilter('batch-00') AND KeyOnlyFilter()"))) == 100

table.delete(b"row-1", columns=[b"cf:a"])
assert table.row(b"row-1") == {b"cf:": b"empty qualifier", b"other:x": b"\x00\xff"}
table.delete(b"row-1")
assert table.row(b"row-1") == {}

assert table.counter_get(b"counter", b"cf:c") == 0
assert table.counter_inc(b"counter", b"cf:c") == 1
assert table.counter_inc(b"counter", b"cf:c", 41) == 42
assert table.counter_dec(b"counter", b"cf:c", 2) == 40
assert table.counter_get(b"counter", b"cf:c") == 40

assert [region["start_key"] for region in table.regions()] == [b""]
connection.compact_table(table_name)
connection.compact_table(table_name, major=True)

try:
    connection.create_table(table_name, {"cf": dict()})
    raise SystemExit("creating a table twice must fail")
except Exception as error:
    assert type(error).__name__ == "AlreadyExists", error
try:
    connection.table("no_such_table").row(b"r")
    raise SystemExit("reading a missing table must fail")
except Exception as error:
    assert "TableNotFoundException" in str(error), error
try:
    table.put(b"r", {b"nofamily:q": b"v"})
    raise SystemExit("writing an unknown family must fail")
except Exception as error:
    assert "NoSuchColumnFamilyException" in str(error), error

connection.disable_table(table_name)
assert not connection.is_table_enabled(table_name)
connection.enable_table(table_name)
assert len(list(table.scan(row_prefix=b"batch-"))) == 1000
connection.delete_table(table_name, disable=True)
assert table_name.encode() not in connection.tables()
connection.close()
print("tour done")
