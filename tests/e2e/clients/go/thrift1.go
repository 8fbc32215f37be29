package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"basalt/tour/gen/thrift1/hbase"

	"github.com/apache/thrift/lib/go/thrift"
)

const rows1 = 300

// one is a tour of HBase's Thrift 1 service.
type one struct {
	*hbase.HbaseClient
	ctx   context.Context
	table []byte
}

// cells1 are the values of a row by family:qualifier.
type cells1 map[string]string

type row1 struct {
	key   string
	cells cells1
}

func tour1(client thrift.TClient, table []byte) {
	tour := one{hbase.NewHbaseClient(client), context.Background(), table}
	tour.create()
	tour.writeAndRead()
	tour.versions()
	tour.scan()
	tour.checkAndPut()
	tour.countAndAppend()
	tour.delete()
	tour.errors()
	tour.drop()
}

// listed says whether the table is among the names.
func (t one) listed() bool {
	names := must(t.GetTableNames(t.ctx))
	return slices.ContainsFunc(names, func(name []byte) bool { return string(name) == string(t.table) })
}

func (t one) create() {
	equal(t.listed(), false)
	family, other := hbase.NewColumnDescriptor(), hbase.NewColumnDescriptor()
	family.Name, family.MaxVersions, family.Compression, family.BloomFilterType = []byte("cf:"), 5, "SNAPPY", "ROWCOL"
	other.Name = []byte("other")
	families := []*hbase.ColumnDescriptor{family, other}
	check(t.CreateTable(t.ctx, t.table, families))
	equal(t.listed(), true)
	failure[*hbase.AlreadyExists](t.CreateTable(t.ctx, t.table, families))
	described := must(t.GetColumnDescriptors(t.ctx, t.table))
	equal(len(described), 2)
	equal(described["cf:"].MaxVersions, int32(5))
	equal(described["cf:"].Compression, "SNAPPY")
	equal(described["cf:"].BloomFilterType, "ROWCOL")
	equal(described["other:"].MaxVersions, int32(3))
	equal(must(t.GetTableNamesWithIsTableEnabled(t.ctx))[string(t.table)], true)
	regions := must(t.GetTableRegions(t.ctx, t.table))
	equal(len(regions), 1)
	equal(string(regions[0].StartKey)+string(regions[0].EndKey), "")
	equal(must(t.GetThriftServerType(t.ctx)), hbase.TThriftServerType_ONE)
	equal(must(t.GetClusterId(t.ctx)) != "", true)
}

func putOf1(column, value string) *hbase.Mutation {
	mutation := hbase.NewMutation()
	mutation.Column, mutation.Value = []byte(column), []byte(value)
	return mutation
}

func deleteOf1(column string) *hbase.Mutation {
	mutation := hbase.NewMutation()
	mutation.IsDelete, mutation.Column = true, []byte(column)
	return mutation
}

func (t one) put(row string, cells cells1) error {
	var mutations []*hbase.Mutation
	for column, value := range cells {
		mutations = append(mutations, putOf1(column, value))
	}
	return t.MutateRow(t.ctx, t.table, []byte(row), mutations, nil)
}

func rowsOf1(results []*hbase.TRowResult_) []row1 {
	rows := []row1{}
	for _, result := range results {
		cells := cells1{}
		for column, cell := range result.Columns {
			cells[column] = string(cell.Value)
		}
		rows = append(rows, row1{string(result.Row), cells})
	}
	return rows
}

func (t one) row(key string) []row1 {
	return rowsOf1(must(t.GetRow(t.ctx, t.table, []byte(key), nil)))
}

func (t one) value(row, column string) string {
	cells := must(t.Get(t.ctx, t.table, []byte(row), []byte(column), nil))
	equal(len(cells), 1)
	return string(cells[0].Value)
}

func (t one) writeAndRead() {
	cells := cells1{"cf:a": "1", "cf:": "empty qualifier", "other:x": "\x00\xff", "cf:big": big()}
	check(t.put("row-1", cells))
	equal(t.row("row-1"), []row1{{"row-1", cells}})
	columns := [][]byte{[]byte("other"), []byte("cf:a")}
	found := must(t.GetRowWithColumns(t.ctx, t.table, []byte("row-1"), columns, nil))
	equal(rowsOf1(found), []row1{{"row-1", cells1{"other:x": "\x00\xff", "cf:a": "1"}}})
	equal(t.value("row-1", "cf:big"), big())
	equal(t.row("absent"), []row1{})
	var batches []*hbase.BatchMutation
	for number := range rows1 {
		mutations := []*hbase.Mutation{putOf1("cf:n", fmt.Sprint(number))}
		batches = append(batches, &hbase.BatchMutation{Row: fmt.Appendf(nil, "scan-%03d", number), Mutations: mutations})
	}
	check(t.MutateRows(t.ctx, t.table, batches, nil))
	keys := [][]byte{[]byte("scan-003"), []byte("absent"), []byte("scan-001")}
	found = must(t.GetRows(t.ctx, t.table, keys, nil))
	equal(rowsOf1(found), []row1{{"scan-003", cells1{"cf:n": "3"}}, {"scan-001", cells1{"cf:n": "1"}}})
}

func (t one) versions() {
	row, column := []byte("versions"), []byte("cf:v")
	for version := int64(1); version < 5; version++ {
		mutations := []*hbase.Mutation{putOf1("cf:v", fmt.Sprint(version))}
		check(t.MutateRowTs(t.ctx, t.table, row, mutations, version*10, nil))
	}
	timestamps := func(cells []*hbase.TCell) []int64 {
		var found []int64
		for _, cell := range cells {
			equal(string(cell.Value), fmt.Sprint(cell.Timestamp/10))
			found = append(found, cell.Timestamp)
		}
		return found
	}
	equal(timestamps(must(t.GetVer(t.ctx, t.table, row, column, 2, nil))), []int64{40, 30})
	equal(timestamps(must(t.GetVerTs(t.ctx, t.table, row, column, 30, 9, nil))), []int64{20, 10})
	check(t.DeleteAllTs(t.ctx, t.table, row, column, 20, nil))
	equal(timestamps(must(t.GetVer(t.ctx, t.table, row, column, 9, nil))), []int64{40, 30})
}

// scanned reads a scan in small pieces to its end, closes it, and meets the error of a closed scanner.
func (t one) scanned(scan *hbase.TScan) []*hbase.TRowResult_ {
	scanner := must(t.ScannerOpenWithScan(t.ctx, t.table, scan, nil))
	var rows []*hbase.TRowResult_
	for {
		results := must(t.ScannerGetList(t.ctx, scanner, 64))
		if len(results) == 0 {
			break
		}
		rows = append(rows, results...)
	}
	check(t.ScannerClose(t.ctx, scanner))
	_, err := t.ScannerGet(t.ctx, scanner)
	equal(failure[*hbase.IllegalArgument](err).Message, "scanner ID is invalid")
	return rows
}

func (t one) scan() {
	var expected, keys []row1
	for number := range rows1 {
		key := fmt.Sprintf("scan-%03d", number)
		expected = append(expected, row1{key, cells1{"cf:n": fmt.Sprint(number)}})
		keys = append(keys, row1{key, cells1{"cf:n": ""}})
	}
	rows := t.scanned(&hbase.TScan{StartRow: []byte("scan-"), StopRow: []byte("scan."), Caching: thrift.Int32Ptr(100)})
	equal(rowsOf1(rows), expected)
	filter := []byte("SingleColumnValueFilter('cf','n',=,'binary:42',true,true)")
	equal(rowsOf1(t.scanned(&hbase.TScan{FilterString: filter})), expected[42:43])
	filter = []byte("PrefixFilter('scan-00') AND KeyOnlyFilter()")
	equal(rowsOf1(t.scanned(&hbase.TScan{FilterString: filter})), keys[:10])
	rows = t.scanned(&hbase.TScan{
		StartRow: []byte("scan-009"), StopRow: []byte("scan-006"),
		Reversed: thrift.BoolPtr(true), SortColumns: thrift.BoolPtr(true),
	})
	equal(len(rows), 3)
	for at, row := range rows {
		equal(string(row.Row), expected[9-at].key)
		equal(len(row.SortedColumns), 1)
		equal(string(row.SortedColumns[0].ColumnName), "cf:n")
	}
	scanner := must(t.ScannerOpenWithPrefix(t.ctx, t.table, []byte("scan-1"), [][]byte{[]byte("cf:n")}, nil))
	equal(rowsOf1(must(t.ScannerGetList(t.ctx, scanner, 1000))), expected[100:200])
	check(t.ScannerClose(t.ctx, scanner))
}

func (t one) checkAndPut() {
	row, column := []byte("checked"), []byte("cf:lock")
	attempt := func(expected []byte, value string) bool {
		return must(t.CheckAndPut(t.ctx, t.table, row, column, expected, putOf1("cf:lock", value), nil))
	}
	equal(attempt(nil, "mine"), true)
	equal(attempt(nil, "yours"), false)
	equal(attempt([]byte("yours"), "theirs"), false)
	equal(attempt([]byte("mine"), "free"), true)
	equal(t.value("checked", "cf:lock"), "free")
}

func (t one) countAndAppend() {
	row, column := []byte("counter"), []byte("cf:c")
	equal(must(t.AtomicIncrement(t.ctx, t.table, row, column, 40)), int64(40))
	equal(must(t.AtomicIncrement(t.ctx, t.table, row, column, -1)), int64(39))
	increment := &hbase.TIncrement{Table: t.table, Row: row, Column: column, Ammount: 1}
	check(t.Increment(t.ctx, increment))
	check(t.IncrementRows(t.ctx, []*hbase.TIncrement{increment, increment}))
	equal(t.value("counter", "cf:c"), string(binary.BigEndian.AppendUint64(nil, 42)))
	text := &hbase.TAppend{Table: t.table, Row: row, Columns: [][]byte{[]byte("cf:text")}, Values: [][]byte{[]byte("ab")}}
	for _, expected := range []string{"ab", "abab"} {
		cells := must(t.Append(t.ctx, text))
		equal(len(cells), 1)
		equal(string(cells[0].Value), expected)
	}
}

func (t one) delete() {
	row := []byte("row-1")
	check(t.DeleteAll(t.ctx, t.table, row, []byte("cf:a"), nil))
	check(t.MutateRow(t.ctx, t.table, row, []*hbase.Mutation{deleteOf1("other"), deleteOf1("cf:big")}, nil))
	equal(t.row("row-1"), []row1{{"row-1", cells1{"cf:": "empty qualifier"}}})
	check(t.DeleteAllRow(t.ctx, t.table, row, nil))
	equal(t.row("row-1"), []row1{})
}

// refused checks that a call failed with an IOError of this kind that is not to be retried.
func refused1(err error, kind string) {
	found := failure[*hbase.IOError](err)
	if !strings.Contains(found.Message, kind) || found.CanRetry {
		panic(fmt.Sprintf("%s expected, not %v", kind, found))
	}
}

func (t one) errors() {
	_, err := t.GetRow(t.ctx, []byte("no_such_table"), []byte("r"), nil)
	refused1(err, "TableNotFoundException")
	refused1(t.put("r", cells1{"nofamily:q": "v"}), "NoSuchColumnFamilyException")
	_, err = t.AtomicIncrement(t.ctx, t.table, []byte("checked"), []byte("cf:lock"), 1)
	refused1(err, "not a long")
	// The connection goes on after an error.
	equal(must(t.IsTableEnabled(t.ctx, t.table)), true)
}

func (t one) drop() {
	refused1(t.DeleteTable(t.ctx, t.table), "TableNotDisabledException")
	check(t.DisableTable(t.ctx, t.table))
	equal(must(t.IsTableEnabled(t.ctx, t.table)), false)
	refused1(t.put("r", cells1{"cf:q": "v"}), "TableNotEnabledException")
	check(t.EnableTable(t.ctx, t.table))
	equal(len(t.row("scan-000")), 1)
	check(t.DisableTable(t.ctx, t.table))
	check(t.DeleteTable(t.ctx, t.table))
	equal(t.listed(), false)
}
