package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"basalt/tour/gen/thrift2/hbase"

	"github.com/apache/thrift/lib/go/thrift"
)

// two is a tour of HBase's Thrift 2 service.
type two struct {
	*hbase.THBaseServiceClient
	ctx   context.Context
	table []byte
	name  *hbase.TTableName
}

// cells2 are the values of a row by family:qualifier.
type cells2 map[string]string

var splitKeys2 = [][]byte{[]byte("g"), []byte("n"), []byte("t")}

// rows2 are five rows under each letter but `r`, which has the row of the single-row steps: every region gets some.
func rows2() []string {
	var rows []string
	for _, letter := range "abcdefghijklmnopqstuvwxyz" {
		for number := range 5 {
			rows = append(rows, fmt.Sprintf("%c-%d", letter, number))
		}
	}
	return rows
}

func tour2(client thrift.TClient, table []byte) {
	name := &hbase.TTableName{Qualifier: table}
	tour := two{hbase.NewTHBaseServiceClient(client), context.Background(), table, name}
	tour.create()
	tour.writeAndRead()
	tour.versions()
	tour.scan()
	tour.checkAndMutate()
	tour.countAndAppend()
	tour.delete()
	tour.errors()
	tour.drop()
}

func (t two) create() {
	equal(must(t.TableExists(t.ctx, t.name)), false)
	families := []*hbase.TColumnFamilyDescriptor{
		{
			Name: []byte("cf"), MaxVersions: thrift.Int32Ptr(5),
			BloomnFilterType:  hbase.TBloomFilterTypePtr(hbase.TBloomFilterType_ROWCOL),
			CompressionType:   hbase.TCompressionAlgorithmPtr(hbase.TCompressionAlgorithm_ZSTD),
			DataBlockEncoding: hbase.TDataBlockEncodingPtr(hbase.TDataBlockEncoding_FAST_DIFF),
		},
		{Name: []byte("other")},
	}
	descriptor := &hbase.TTableDescriptor{TableName: t.name, Columns: families}
	check(t.CreateTable(t.ctx, descriptor, splitKeys2))
	equal(must(t.TableExists(t.ctx, t.name)), true)
	equal(must(t.IsTableEnabled(t.ctx, t.name)), true)
	equal(must(t.IsTableAvailable(t.ctx, t.name)), true)
	refused2(t.CreateTable(t.ctx, descriptor, nil), string(t.table))
	described := must(t.GetTableDescriptor(t.ctx, t.name))
	equal(string(described.TableName.Ns)+":"+string(described.TableName.Qualifier), "default:"+string(t.table))
	equal(len(described.Columns), 2)
	family, other := described.Columns[0], described.Columns[1]
	equal(string(family.Name)+" "+string(other.Name), "cf other")
	equal([]int32{*family.MaxVersions, *other.MaxVersions}, []int32{5, 1})
	equal(*family.BloomnFilterType, hbase.TBloomFilterType_ROWCOL)
	equal(*family.CompressionType, hbase.TCompressionAlgorithm_ZSTD)
	equal(*other.TimeToLive, int32(2147483647))
	equal(t.regions(), []string{"..g", "g..n", "n..t", "t.."})
	equal(string(must(t.GetRegionLocation(t.ctx, t.table, []byte("ha"), false)).RegionInfo.StartKey), "g")
	equal(slices.Contains(must(t.ListNamespaces(t.ctx)), "default"), true)
	equal(must(t.GetThriftServerType(t.ctx)), hbase.TThriftServerType_TWO)
	equal(must(t.GetClusterId(t.ctx)) != "", true)
}

// regions are the regions of the table as start..end.
func (t two) regions() []string {
	var regions []string
	for _, location := range must(t.GetAllRegionLocations(t.ctx, t.table)) {
		regions = append(regions, string(location.RegionInfo.StartKey)+".."+string(location.RegionInfo.EndKey))
	}
	return regions
}

func columnOf2(name string) *hbase.TColumn {
	family, qualifier, found := strings.Cut(name, ":")
	column := &hbase.TColumn{Family: []byte(family)}
	if found {
		column.Qualifier = []byte(qualifier)
	}
	return column
}

func columnsOf2(names ...string) []*hbase.TColumn {
	var columns []*hbase.TColumn
	for _, name := range names {
		columns = append(columns, columnOf2(name))
	}
	return columns
}

func valueOf2(name, value string) *hbase.TColumnValue {
	column := columnOf2(name)
	return &hbase.TColumnValue{Family: column.Family, Qualifier: column.Qualifier, Value: []byte(value)}
}

func putOf2(row string, cells cells2) *hbase.TPut {
	put := &hbase.TPut{Row: []byte(row)}
	for name, value := range cells {
		put.ColumnValues = append(put.ColumnValues, valueOf2(name, value))
	}
	return put
}

func deleteOf2(row string, columns ...string) *hbase.TDelete {
	tdelete := hbase.NewTDelete()
	tdelete.Row, tdelete.Columns = []byte(row), columnsOf2(columns...)
	return tdelete
}

func cellsOf2(result *hbase.TResult_) cells2 {
	cells := cells2{}
	for _, cell := range result.ColumnValues {
		cells[string(cell.Family)+":"+string(cell.Qualifier)] = string(cell.Value)
	}
	return cells
}

func keysOf2(results []*hbase.TResult_) []string {
	var keys []string
	for _, result := range results {
		keys = append(keys, string(result.Row))
	}
	return keys
}

func (t two) cells(row string, columns ...string) cells2 {
	return cellsOf2(must(t.Get(t.ctx, t.table, &hbase.TGet{Row: []byte(row), Columns: columnsOf2(columns...)})))
}

func (t two) writeAndRead() {
	cells := cells2{"cf:": "empty qualifier", "cf:a": "1", "cf:big": big(), "other:x": "\x00\xff"}
	check(t.Put(t.ctx, t.table, putOf2("r", cells)))
	equal(t.cells("r"), cells)
	equal(t.cells("r", "other", "cf:a"), cells2{"other:x": "\x00\xff", "cf:a": "1"})
	absent := must(t.Get(t.ctx, t.table, &hbase.TGet{Row: []byte("absent")}))
	equal(absent.Row == nil && len(absent.ColumnValues) == 0, true)
	gets := []*hbase.TGet{{Row: []byte("r")}, {Row: []byte("absent")}}
	equal(must(t.ExistsAll(t.ctx, t.table, gets)), []bool{true, false})
	var puts []*hbase.TPut
	for _, row := range rows2() {
		puts = append(puts, putOf2(row, cells2{"cf:n": row}))
	}
	puts[0].Durability = hbase.TDurabilityPtr(hbase.TDurability_SYNC_WAL)
	check(t.PutMultiple(t.ctx, t.table, puts))
	gets = []*hbase.TGet{{Row: []byte("z-0")}, {Row: []byte("absent")}, {Row: []byte("a-0")}}
	equal(keysOf2(must(t.GetMultiple(t.ctx, t.table, gets))), []string{"z-0", "", "a-0"})
}

func (t two) versions() {
	row := []byte("versions")
	for version := int64(1); version < 5; version++ {
		put := putOf2("versions", cells2{"cf:v": fmt.Sprint(version)})
		put.ColumnValues[0].Timestamp = thrift.Int64Ptr(version * 10)
		check(t.Put(t.ctx, t.table, put))
	}
	timestamps := func(get *hbase.TGet) []int64 {
		get.Row = row
		var found []int64
		for _, cell := range must(t.Get(t.ctx, t.table, get)).ColumnValues {
			found = append(found, *cell.Timestamp)
		}
		return found
	}
	equal(timestamps(&hbase.TGet{MaxVersions: thrift.Int32Ptr(2)}), []int64{40, 30})
	timeRange := &hbase.TTimeRange{MinStamp: 10, MaxStamp: 30}
	equal(timestamps(&hbase.TGet{MaxVersions: thrift.Int32Ptr(9), TimeRange: timeRange}), []int64{20, 10})
	equal(timestamps(&hbase.TGet{Timestamp: thrift.Int64Ptr(30)}), []int64{30})
	exact := deleteOf2("versions", "cf:v")
	exact.DeleteType, exact.Columns[0].Timestamp = hbase.TDeleteType_DELETE_COLUMN, thrift.Int64Ptr(20)
	check(t.DeleteSingle(t.ctx, t.table, exact))
	equal(timestamps(&hbase.TGet{MaxVersions: thrift.Int32Ptr(9)}), []int64{40, 30, 10})
	check(t.DeleteSingle(t.ctx, t.table, deleteOf2("versions")))
	equal(must(t.Exists(t.ctx, t.table, &hbase.TGet{Row: row})), false)
}

// scanned reads the keys of a scan in small pieces to its end, closes it, and meets the error of a closed scanner.
func (t two) scanned(scan *hbase.TScan) []string {
	scan.MaxVersions = 1
	scanner := must(t.OpenScanner(t.ctx, t.table, scan))
	var keys []string
	for {
		results := must(t.GetScannerRows(t.ctx, scanner, 32))
		if len(results) == 0 {
			break
		}
		keys = append(keys, keysOf2(results)...)
	}
	check(t.CloseScanner(t.ctx, scanner))
	_, err := t.GetScannerRows(t.ctx, scanner, 1)
	equal(failure[*hbase.TIllegalArgument](err).GetMessage(), "Invalid scanner Id")
	return keys
}

func (t two) scan() {
	columns, expected := columnsOf2("cf:n"), rows2()
	equal(t.scanned(&hbase.TScan{Columns: columns}), expected)
	backwards := slices.Clone(expected)
	slices.Reverse(backwards)
	reversed := &hbase.TScan{Columns: columns, Reversed: thrift.BoolPtr(true), Limit: thrift.Int32Ptr(70)}
	equal(t.scanned(reversed), backwards[:70])
	equal(t.scanned(&hbase.TScan{StartRow: []byte("f-4"), StopRow: []byte("g-2")}), []string{"f-4", "g-0", "g-1"})
	filter := []byte("PrefixFilter('s-') AND ValueFilter(>,'binary:s-2')")
	equal(t.scanned(&hbase.TScan{FilterString: filter}), []string{"s-3", "s-4"})
	scan := hbase.NewTScan()
	scan.FilterString = []byte("SingleColumnValueFilter('cf','n',=,'binary:q-4',true,true)")
	results := must(t.GetScannerResults(t.ctx, t.table, scan, 10))
	equal(keysOf2(results), []string{"q-4"})
	equal(cellsOf2(results[0]), cells2{"cf:n": "q-4"})
}

func (t two) checkAndMutate() {
	row, family, qualifier := []byte("checked"), []byte("cf"), []byte("lock")
	attempt := func(expected []byte, value string) bool {
		put := putOf2("checked", cells2{"cf:lock": value})
		return must(t.CheckAndPut(t.ctx, t.table, row, family, qualifier, expected, put))
	}
	equal(attempt(nil, "5"), true)
	equal(attempt(nil, "6"), false)
	equal(attempt([]byte("5"), "7"), true)
	mutations := &hbase.TRowMutations{Row: row, Mutations: []*hbase.TMutation{
		{Put: putOf2("checked", cells2{"cf:lock": "8", "other:seen": "yes"})},
		{DeleteSingle: deleteOf2("checked", "other:gone")},
	}}
	mutate := func(operator hbase.TCompareOperator) bool {
		return must(t.CheckAndMutate(t.ctx, t.table, row, family, qualifier, operator, []byte("6"), mutations))
	}
	equal(mutate(hbase.TCompareOperator_GREATER), false)
	equal(mutate(hbase.TCompareOperator_LESS), true)
	equal(t.cells("checked"), cells2{"cf:lock": "8", "other:seen": "yes"})
	whole := deleteOf2("checked")
	equal(must(t.CheckAndDelete(t.ctx, t.table, row, family, qualifier, []byte("7"), whole)), false)
	equal(must(t.CheckAndDelete(t.ctx, t.table, row, family, qualifier, []byte("8"), whole)), true)
	equal(t.cells("checked"), cells2{})
}

func (t two) countAndAppend() {
	c, d := hbase.NewTColumnIncrement(), hbase.NewTColumnIncrement()
	c.Family, c.Qualifier, c.Amount = []byte("cf"), []byte("c"), 40
	d.Family, d.Qualifier = []byte("cf"), []byte("d")
	long := func(value uint64) string { return string(binary.BigEndian.AppendUint64(nil, value)) }
	increment := &hbase.TIncrement{Row: []byte("counter"), Columns: []*hbase.TColumnIncrement{c, d}}
	for round := uint64(1); round < 3; round++ {
		result := must(t.Increment(t.ctx, t.table, increment))
		equal(cellsOf2(result), cells2{"cf:c": long(40 * round), "cf:d": long(round)})
	}
	text := &hbase.TAppend{Row: []byte("counter"), Columns: []*hbase.TColumnValue{valueOf2("cf:text", "ab")}}
	for _, expected := range []string{"ab", "abab"} {
		equal(cellsOf2(must(t.Append(t.ctx, t.table, text))), cells2{"cf:text": expected})
	}
}

func (t two) delete() {
	check(t.DeleteSingle(t.ctx, t.table, deleteOf2("r", "cf:a", "cf:big")))
	family := deleteOf2("r", "other")
	family.DeleteType = hbase.TDeleteType_DELETE_FAMILY
	equal(len(must(t.DeleteMultiple(t.ctx, t.table, []*hbase.TDelete{family, deleteOf2("counter")}))), 0)
	equal(t.cells("r"), cells2{"cf:": "empty qualifier"})
	mutations := []*hbase.TMutation{{DeleteSingle: deleteOf2("r", "cf:")}, {Put: putOf2("r", cells2{"cf:new": "2"})}}
	check(t.MutateRow(t.ctx, t.table, &hbase.TRowMutations{Row: []byte("r"), Mutations: mutations}))
	equal(t.cells("r"), cells2{"cf:new": "2"})
}

// refused2 checks that a call failed with a TIOError which names this and is not to be retried.
func refused2(err error, name string) {
	found := failure[*hbase.TIOError](err)
	if !strings.Contains(found.GetMessage(), name) || !found.IsSetCanRetry() || found.GetCanRetry() {
		panic(fmt.Sprintf("an error about %s expected, not %v", name, found))
	}
}

func (t two) errors() {
	_, err := t.Get(t.ctx, []byte("no_such_table"), &hbase.TGet{Row: []byte("r")})
	refused2(err, "no_such_table")
	refused2(t.Put(t.ctx, t.table, putOf2("r", cells2{"nofamily:q": "v"})), "nofamily")
	column := hbase.NewTColumnIncrement()
	column.Family, column.Qualifier = []byte("cf"), []byte("new")
	_, err = t.Increment(t.ctx, t.table, &hbase.TIncrement{Row: []byte("r"), Columns: []*hbase.TColumnIncrement{column}})
	refused2(err, "not a long")
	// The connection goes on after an error.
	equal(must(t.Exists(t.ctx, t.table, &hbase.TGet{Row: []byte("r")})), true)
}

func (t two) drop() {
	refused2(t.DeleteTable(t.ctx, t.name), string(t.table))
	check(t.DisableTable(t.ctx, t.name))
	equal(must(t.IsTableDisabled(t.ctx, t.name)), true)
	check(t.TruncateTable(t.ctx, t.name, true))
	equal(must(t.IsTableEnabled(t.ctx, t.name)), true)
	equal(must(t.Exists(t.ctx, t.table, &hbase.TGet{Row: []byte("r")})), false)
	equal(len(t.regions()), 4)
	check(t.DisableTable(t.ctx, t.name))
	check(t.DeleteTable(t.ctx, t.name))
	equal(must(t.TableExists(t.ctx, t.name)), false)
}
