"""The tour of HBase's Thrift 2 service."""
import struct

from errors import error_of
from hbase import THBaseService
from hbase.ttypes import (TAppend, TBloomFilterType, TColumn, TColumnFamilyDescriptor, TColumnIncrement, TColumnValue,
                          TCompareOperator, TCompressionAlgorithm, TDataBlockEncoding, TDelete, TDeleteType,
                          TDurability, TGet, TIllegalArgument, TIncrement, TIOError, TMutation, TPut, TRowMutations,
                          TScan, TTableDescriptor, TTableName, TThriftServerType, TTimeRange)

BIG = bytes(range(256)) * 4096
# Five rows under each letter but `r`, which has the row of the single-row steps: every region gets some.
SCAN_ROWS = [b"%c-%d" % (letter, number) for letter in b"abcdefghijklmnopqstuvwxyz" for number in range(5)]
SPLIT_KEYS = [b"g", b"n", b"t"]


def tour(protocol, table):
    client = THBaseService.Client(protocol)
    name = TTableName(qualifier=table)
    create(client, table, name)
    write_and_read(client, table)
    versions(client, table)
    scan(client, table)
    check_and_mutate(client, table)
    count_and_append(client, table)
    delete(client, table)
    errors(client, table)
    drop(client, table, name)


def create(client, table, name):
    assert not client.tableExists(name)
    families = [
        TColumnFamilyDescriptor(
            name=b"cf", maxVersions=5, bloomnFilterType=TBloomFilterType.ROWCOL,
            compressionType=TCompressionAlgorithm.ZSTD, dataBlockEncoding=TDataBlockEncoding.FAST_DIFF),
        TColumnFamilyDescriptor(name=b"other"),
    ]
    descriptor = TTableDescriptor(tableName=name, columns=families)
    client.createTable(descriptor, SPLIT_KEYS)
    assert client.tableExists(name) and client.isTableEnabled(name) and client.isTableAvailable(name)
    error = error_of(TIOError, client.createTable, descriptor, [])
    assert table.decode() in error.message and error.canRetry is False, error
    described = client.getTableDescriptor(name)
    assert (described.tableName.ns, described.tableName.qualifier) == (b"default", table), described
    family, other = described.columns
    assert (family.name, family.maxVersions, family.bloomnFilterType, family.compressionType) == (
        b"cf", 5, TBloomFilterType.ROWCOL, TCompressionAlgorithm.ZSTD), family
    assert (other.name, other.maxVersions, other.timeToLive) == (b"other", 1, 2147483647), other
    regions = [location.regionInfo for location in client.getAllRegionLocations(table)]
    assert [region.startKey for region in regions] == [b"", *SPLIT_KEYS], regions
    assert [region.endKey for region in regions] == [*SPLIT_KEYS, b""], regions
    assert client.getRegionLocation(table, b"ha", False).regionInfo.startKey == b"g"
    assert b"default" in [namespace.encode() for namespace in client.listNamespaces()]
    assert client.getThriftServerType() == TThriftServerType.TWO
    assert client.getClusterId()


def put_of(row, cells):
    values = [
        TColumnValue(family=family, qualifier=qualifier, value=value) for (family, qualifier), value in cells.items()
    ]
    return TPut(row=row, columnValues=values)


def cells_of(result):
    return {(cell.family, cell.qualifier): cell.value for cell in result.columnValues}


def write_and_read(client, table):
    cells = {(b"cf", b""): b"empty qualifier", (b"cf", b"a"): b"1", (b"cf", b"big"): BIG, (b"other", b"x"): b"\x00\xff"}
    client.put(table, put_of(b"r", cells))
    result = client.get(table, TGet(row=b"r"))
    assert result.row == b"r" and cells_of(result) == cells
    columns = [TColumn(family=b"other"), TColumn(family=b"cf", qualifier=b"a")]
    result = client.get(table, TGet(row=b"r", columns=columns))
    assert cells_of(result) == {(b"other", b"x"): b"\x00\xff", (b"cf", b"a"): b"1"}, result
    absent = client.get(table, TGet(row=b"absent"))
    assert absent.row is None and absent.columnValues == [], absent
    assert client.existsAll(table, [TGet(row=b"r"), TGet(row=b"absent")]) == [True, False]
    rows = [put_of(row, {(b"cf", b"n"): row}) for row in SCAN_ROWS]
    rows[0].durability = TDurability.SYNC_WAL
    client.putMultiple(table, rows)
    results = client.getMultiple(table, [TGet(row=b"z-0"), TGet(row=b"absent"), TGet(row=b"a-0")])
    assert [result.row for result in results] == [b"z-0", None, b"a-0"], results


def versions(client, table):
    for version in range(1, 5):
        cell = TColumnValue(family=b"cf", qualifier=b"v", value=b"%d" % version, timestamp=version * 10)
        client.put(table, TPut(row=b"versions", columnValues=[cell]))
    def timestamps(**options):
        return [cell.timestamp for cell in client.get(table, TGet(row=b"versions", **options)).columnValues]
    assert timestamps(maxVersions=2) == [40, 30]
    assert timestamps(maxVersions=9, timeRange=TTimeRange(minStamp=10, maxStamp=30)) == [20, 10]
    assert timestamps(timestamp=30) == [30]
    column = TColumn(family=b"cf", qualifier=b"v", timestamp=20)
    client.deleteSingle(table, TDelete(row=b"versions", columns=[column], deleteType=TDeleteType.DELETE_COLUMN))
    assert timestamps(maxVersions=9) == [40, 30, 10]
    client.deleteSingle(table, TDelete(row=b"versions"))
    assert timestamps() == []


def scanned(client, table, **options):
    scanner = client.openScanner(table, TScan(**options))
    rows = []
    while results := client.getScannerRows(scanner, 32):
        rows.extend(result.row for result in results)
    client.closeScanner(scanner)
    error = error_of(TIllegalArgument, client.getScannerRows, scanner, 1)
    assert error.message == "Invalid scanner Id", error
    return rows


def scan(client, table):
    columns = [TColumn(family=b"cf", qualifier=b"n")]
    assert scanned(client, table, columns=columns) == SCAN_ROWS
    assert scanned(client, table, columns=columns, reversed=True, limit=70) == SCAN_ROWS[:-71:-1]
    assert scanned(client, table, startRow=b"f-4", stopRow=b"g-2") == [b"f-4", b"g-0", b"g-1"]
    filter_string = b"PrefixFilter('s-') AND ValueFilter(>,'binary:s-2')"
    assert scanned(client, table, filterString=filter_string) == [b"s-3", b"s-4"]
    filter_string = b"SingleColumnValueFilter('cf','n',=,'binary:q-4',true,true)"
    results = client.getScannerResults(table, TScan(filterString=filter_string), 10)
    assert [(result.row, cells_of(result)) for result in results] == [(b"q-4", {(b"cf", b"n"): b"q-4"})], results


def check_and_mutate(client, table):
    column = (b"checked", b"cf", b"lock")
    def attempt(expected, value):
        return client.checkAndPut(table, *column, expected, put_of(b"checked", {(b"cf", b"lock"): value}))
    assert attempt(None, b"5")
    assert not attempt(None, b"6")
    assert attempt(b"5", b"7")
    mutations = TRowMutations(row=b"checked", mutations=[
        TMutation(put=put_of(b"checked", {(b"cf", b"lock"): b"8", (b"other", b"seen"): b"yes"})),
        TMutation(deleteSingle=TDelete(row=b"checked", columns=[TColumn(family=b"other", qualifier=b"gone")])),
    ])
    assert not client.checkAndMutate(table, *column, TCompareOperator.GREATER, b"6", mutations)
    assert client.checkAndMutate(table, *column, TCompareOperator.LESS, b"6", mutations)
    assert cells_of(client.get(table, TGet(row=b"checked"))) == {(b"cf", b"lock"): b"8", (b"other", b"seen"): b"yes"}
    assert not client.checkAndDelete(table, *column, b"7", TDelete(row=b"checked"))
    assert client.checkAndDelete(table, *column, b"8", TDelete(row=b"checked"))
    assert not client.exists(table, TGet(row=b"checked"))


def count_and_append(client, table):
    columns = [
        TColumnIncrement(family=b"cf", qualifier=b"c", amount=40), TColumnIncrement(family=b"cf", qualifier=b"d")
    ]
    for c, d in [(40, 1), (80, 2)]:
        result = client.increment(table, TIncrement(row=b"counter", columns=columns))
        assert cells_of(result) == {(b"cf", b"c"): struct.pack(">q", c), (b"cf", b"d"): struct.pack(">q", d)}, result
    column = TColumnValue(family=b"cf", qualifier=b"text", value=b"ab")
    for expected in [b"ab", b"abab"]:
        result = client.append(table, TAppend(row=b"counter", columns=[column]))
        assert cells_of(result) == {(b"cf", b"text"): expected}, result


def delete(client, table):
    columns = [TColumn(family=b"cf", qualifier=b"a"), TColumn(family=b"cf", qualifier=b"big")]
    client.deleteSingle(table, TDelete(row=b"r", columns=columns))
    family = TDelete(row=b"r", columns=[TColumn(family=b"other")], deleteType=TDeleteType.DELETE_FAMILY)
    assert client.deleteMultiple(table, [family, TDelete(row=b"counter")]) == []
    assert cells_of(client.get(table, TGet(row=b"r"))) == {(b"cf", b""): b"empty qualifier"}
    mutations = [TMutation(deleteSingle=TDelete(row=b"r", columns=[TColumn(family=b"cf", qualifier=b"")])),
                 TMutation(put=put_of(b"r", {(b"cf", b"new"): b"2"}))]
    client.mutateRow(table, TRowMutations(row=b"r", mutations=mutations))
    assert cells_of(client.get(table, TGet(row=b"r"))) == {(b"cf", b"new"): b"2"}


def errors(client, table):
    error = error_of(TIOError, client.get, b"no_such_table", TGet(row=b"r"))
    assert "no_such_table" in error.message and error.canRetry is False, error
    error = error_of(TIOError, client.put, table, put_of(b"r", {(b"nofamily", b"q"): b"v"}))
    assert "nofamily" in error.message and error.canRetry is False, error
    column = TColumnIncrement(family=b"cf", qualifier=b"new")
    error = error_of(TIOError, client.increment, table, TIncrement(row=b"r", columns=[column]))
    assert "not a long" in error.message and error.canRetry is False, error
    # The connection goes on after an error.
    assert client.exists(table, TGet(row=b"r"))


def drop(client, table, name):
    error = error_of(TIOError, client.deleteTable, name)
    assert table.decode() in error.message and error.canRetry is False, error
    client.disableTable(name)
    assert client.isTableDisabled(name)
    client.truncateTable(name, True)
    assert client.isTableEnabled(name) and not client.exists(table, TGet(row=b"r"))
    assert len(client.getAllRegionLocations(table)) == 4
    client.disableTable(name)
    client.deleteTable(name)
    assert not client.tableExists(name)
