"""The tour of HBase's Thrift 1 service."""
import struct

from errors import error_of
from hbase import Hbase
from hbase.ttypes import (AlreadyExists, BatchMutation, ColumnDescriptor, IllegalArgument, IOError, Mutation, TAppend,
                          TIncrement, TScan, TThriftServerType)

ROWS = 300
BIG = bytes(range(256)) * 4096


def tour(protocol, table):
    client = Hbase.Client(protocol)
    create(client, table)
    write_and_read(client, table)
    versions(client, table)
    scan(client, table)
    check_and_put(client, table)
    count_and_append(client, table)
    delete(client, table)
    errors(client, table)
    drop(client, table)


def create(client, table):
    assert table not in client.getTableNames()
    families = [
        ColumnDescriptor(name=b"cf:", maxVersions=5, compression="SNAPPY", bloomFilterType="ROWCOL"),
        ColumnDescriptor(name=b"other"),
    ]
    client.createTable(table, families)
    assert table in client.getTableNames()
    error_of(AlreadyExists, client.createTable, table, families)
    described = client.getColumnDescriptors(table)
    assert sorted(described) == [b"cf:", b"other:"], described
    family = described[b"cf:"]
    assert (family.name, family.maxVersions, family.compression, family.bloomFilterType) == (
        b"cf:", 5, "SNAPPY", "ROWCOL"), family
    assert described[b"other:"].maxVersions == 3, described
    assert client.getTableNamesWithIsTableEnabled()[table] is True
    regions = client.getTableRegions(table)
    assert [(region.startKey, region.endKey) for region in regions] == [(b"", b"")], regions
    assert client.getThriftServerType() == TThriftServerType.ONE
    assert client.getClusterId()


def put(client, table, row, cells):
    client.mutateRow(table, row, [Mutation(column=column, value=value) for column, value in cells.items()], {})


def values(results):
    return [(result.row, {name: cell.value for name, cell in result.columns.items()}) for result in results]


def write_and_read(client, table):
    cells = {b"cf:a": b"1", b"cf:": b"empty qualifier", b"other:x": b"\x00\xff", b"cf:big": BIG}
    put(client, table, b"row-1", cells)
    assert values(client.getRow(table, b"row-1", {})) == [(b"row-1", cells)]
    assert values(client.getRowWithColumns(table, b"row-1", [b"other", b"cf:a"], {})) == [
        (b"row-1", {b"other:x": b"\x00\xff", b"cf:a": b"1"})]
    assert [cell.value for cell in client.get(table, b"row-1", b"cf:big", {})] == [BIG]
    assert client.getRow(table, b"absent", {}) == []
    batches = [
        BatchMutation(row=b"scan-%03d" % number, mutations=[Mutation(column=b"cf:n", value=b"%d" % number)])
        for number in range(ROWS)
    ]
    client.mutateRows(table, batches, {})
    found = client.getRows(table, [b"scan-003", b"absent", b"scan-001"], {})
    assert values(found) == [(b"scan-003", {b"cf:n": b"3"}), (b"scan-001", {b"cf:n": b"1"})], found


def versions(client, table):
    for version in range(1, 5):
        mutation = Mutation(column=b"cf:v", value=b"%d" % version)
        client.mutateRowTs(table, b"versions", [mutation], version * 10, {})
    cells = client.getVer(table, b"versions", b"cf:v", 2, {})
    assert [(cell.value, cell.timestamp) for cell in cells] == [(b"4", 40), (b"3", 30)], cells
    cells = client.getVerTs(table, b"versions", b"cf:v", 30, 9, {})
    assert [cell.timestamp for cell in cells] == [20, 10], cells
    client.deleteAllTs(table, b"versions", b"cf:v", 20, {})
    cells = client.getVer(table, b"versions", b"cf:v", 9, {})
    assert [cell.timestamp for cell in cells] == [40, 30], cells


def scanned(client, table, batch=64, **options):
    scanner = client.scannerOpenWithScan(table, TScan(**options), {})
    rows = []
    while results := client.scannerGetList(scanner, batch):
        rows.extend(results)
    client.scannerClose(scanner)
    error = error_of(IllegalArgument, client.scannerGet, scanner)
    assert error.message == "scanner ID is invalid", error
    return rows


def scan(client, table):
    rows = scanned(client, table, startRow=b"scan-", stopRow=b"scan.", caching=100)
    assert values(rows) == [(b"scan-%03d" % number, {b"cf:n": b"%d" % number}) for number in range(ROWS)]
    rows = scanned(client, table, filterString=b"SingleColumnValueFilter('cf','n',=,'binary:42',true,true)")
    assert values(rows) == [(b"scan-042", {b"cf:n": b"42"})], rows
    rows = scanned(client, table, filterString=b"PrefixFilter('scan-00') AND KeyOnlyFilter()")
    assert values(rows) == [(b"scan-%03d" % number, {b"cf:n": b""}) for number in range(10)], rows
    rows = scanned(client, table, startRow=b"scan-009", stopRow=b"scan-006", reversed=True, sortColumns=True)
    found = [(row.row, [(column.columnName, column.cell.value) for column in row.sortedColumns]) for row in rows]
    assert found == [(b"scan-%03d" % number, [(b"cf:n", b"%d" % number)]) for number in (9, 8, 7)], found
    scanner = client.scannerOpenWithPrefix(table, b"scan-1", [b"cf:n"], {})
    assert len(client.scannerGetList(scanner, 1000)) == 100
    client.scannerClose(scanner)


def check_and_put(client, table):
    def attempt(expected, value):
        mutation = Mutation(column=b"cf:lock", value=value)
        return client.checkAndPut(table, b"checked", b"cf:lock", expected, mutation, {})
    assert attempt(None, b"mine")
    assert not attempt(None, b"yours")
    assert not attempt(b"yours", b"theirs")
    assert attempt(b"mine", b"free")
    assert [cell.value for cell in client.get(table, b"checked", b"cf:lock", {})] == [b"free"]


def count_and_append(client, table):
    assert client.atomicIncrement(table, b"counter", b"cf:c", 40) == 40
    assert client.atomicIncrement(table, b"counter", b"cf:c", -1) == 39
    increment = TIncrement(table=table, row=b"counter", column=b"cf:c", ammount=1)
    client.increment(increment)
    client.incrementRows([increment, increment])
    assert client.get(table, b"counter", b"cf:c", {})[0].value == struct.pack(">q", 42)
    for expected in [b"ab", b"abab"]:
        append = TAppend(table=table, row=b"counter", columns=[b"cf:text"], values=[b"ab"])
        assert [cell.value for cell in client.append(append)] == [expected]


def delete(client, table):
    client.deleteAll(table, b"row-1", b"cf:a", {})
    client.mutateRow(table, b"row-1", [
        Mutation(isDelete=True, column=b"other"),
        Mutation(isDelete=True, column=b"cf:big"),
    ], {})
    assert values(client.getRow(table, b"row-1", {})) == [(b"row-1", {b"cf:": b"empty qualifier"})]
    client.deleteAllRow(table, b"row-1", {})
    assert client.getRow(table, b"row-1", {}) == []


def errors(client, table):
    error = error_of(IOError, client.getRow, b"no_such_table", b"r", {})
    assert "TableNotFoundException" in error.message and error.canRetry is False, error
    error = error_of(IOError, put, client, table, b"r", {b"nofamily:q": b"v"})
    assert "NoSuchColumnFamilyException" in error.message and error.canRetry is False, error
    error = error_of(IOError, client.atomicIncrement, table, b"checked", b"cf:lock", 1)
    assert "not a long" in error.message and error.canRetry is False, error
    # The connection goes on after an error.
    assert client.isTableEnabled(table)


def drop(client, table):
    error = error_of(IOError, client.deleteTable, table)
    assert "TableNotDisabledException" in error.message and error.canRetry is False, error
    client.disableTable(table)
    assert not client.isTableEnabled(table)
    error = error_of(IOError, put, client, table, b"r", {b"cf:q": b"v"})
    assert "TableNotEnabledException" in error.message and error.canRetry is False, error
    client.enableTable(table)
    assert len(client.getRow(table, b"scan-000", {})) == 1
    client.disableTable(table)
    client.deleteTable(table)
    assert table not in client.getTableNames()
