// Package sample is a small application on HBase's Thrift 2 interface: guest books with the newest entries first, and
// a counter of visits.
//
// The package hbase beside it is what the Thrift compiler makes of HBase's interface:
//
//	thrift --gen go:skip_remote,package_prefix=basalt/sample/ -out . ../../../idl/thrift2/hbase.thrift
package sample

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/thrift/lib/go/thrift"

	"basalt/sample/hbase"
)

var (
	table  = []byte("guestbook")
	entry  = []byte("entry")
	count  = []byte("count")
	name   = []byte("name")
	visits = []byte("visits")
)

// GuestBook is a connection to the table of guest books.
type GuestBook struct {
	client    *hbase.THBaseServiceClient
	transport thrift.TTransport
}

// Connect connects to the server at the address.
func Connect(address string) (*GuestBook, error) {
	transport := thrift.NewTBufferedTransport(thrift.NewTSocketConf(address, nil), 8192)
	if err := transport.Open(); err != nil {
		return nil, err
	}
	client := hbase.NewTHBaseServiceClientFactory(transport, thrift.NewTBinaryProtocolFactoryConf(nil))
	return &GuestBook{client, transport}, nil
}

// Close closes the connection.
func (b *GuestBook) Close() error {
	return b.transport.Close()
}

// Create creates the table.
func (b *GuestBook) Create(ctx context.Context) error {
	families := []*hbase.TColumnFamilyDescriptor{{Name: entry}, {Name: count}}
	descriptor := &hbase.TTableDescriptor{TableName: &hbase.TTableName{Qualifier: table}, Columns: families}
	return b.client.CreateTable(ctx, descriptor, nil)
}

// Sign adds an entry. It returns false if the book has one of that time already.
func (b *GuestBook) Sign(ctx context.Context, book string, millis int64, who string) (bool, error) {
	row := []byte(fmt.Sprintf("%s/%019d", book, math.MaxInt64-millis))
	put := &hbase.TPut{Row: row, ColumnValues: []*hbase.TColumnValue{{Family: entry, Qualifier: name, Value: []byte(who)}}}
	return b.client.CheckAndPut(ctx, table, row, entry, name, nil, put)
}

// Latest returns the names of the latest signers, the newest first.
func (b *GuestBook) Latest(ctx context.Context, book string, limit int32) ([]string, error) {
	rows, err := b.rows(ctx, book, limit)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, row := range rows {
		names = append(names, string(row.ColumnValues[0].Value))
	}
	return names, nil
}

// Visit counts a visit and returns the number of visits.
func (b *GuestBook) Visit(ctx context.Context, book string) (int64, error) {
	one := []*hbase.TColumnIncrement{{Family: count, Qualifier: visits, Amount: 1}}
	result, err := b.client.Increment(ctx, table, &hbase.TIncrement{Row: []byte(book + "!"), Columns: one})
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(result.ColumnValues[0].Value)), nil
}

// Erase removes a book's entries and returns their number.
func (b *GuestBook) Erase(ctx context.Context, book string) (int, error) {
	rows, err := b.rows(ctx, book, math.MaxInt32)
	if err != nil {
		return 0, err
	}
	deletes := []*hbase.TDelete{}
	for _, row := range rows {
		deletes = append(deletes, &hbase.TDelete{Row: row.Row})
	}
	_, err = b.client.DeleteMultiple(ctx, table, deletes)
	return len(rows), err
}

func (b *GuestBook) rows(ctx context.Context, book string, limit int32) ([]*hbase.TResult_, error) {
	// '0' follows '/'.
	scan := &hbase.TScan{
		StartRow: []byte(book + "/"),
		StopRow:  []byte(book + "0"),
		Columns:  []*hbase.TColumn{{Family: entry, Qualifier: name}},
	}
	return b.client.GetScannerResults(ctx, table, scan, limit)
}
