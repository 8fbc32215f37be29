// The tour of HBase's Thrift 1 service.
'use strict';

const assert = require('node:assert').strict;

const {
  AlreadyExists, BatchMutation, ColumnDescriptor, IllegalArgument, IOError, Mutation, TAppend, TIncrement, TScan,
  TThriftServerType,
} = require('./gen/thrift1/Hbase_types');
const {BIG, bytes, failure, inContainer, long, numbers} = require('./values');

const ROWS = 300;

module.exports = async function tour(client, table) {
  const t = new Tour(client, table);
  await t.create();
  await t.writeAndRead();
  await t.versions();
  await t.scan();
  await t.checkAndPut();
  await t.countAndAppend();
  await t.delete();
  await t.errors();
  await t.drop();
};

const key = (number) => `scan-${String(number).padStart(3, '0')}`;

const putOf = (column, value) => new Mutation({column: bytes(column), value: bytes(value)});

const deleteOf = (column) => new Mutation({isDelete: true, column: bytes(column)});

/** Results as [row, {column: value as latin1}]. */
function rowsOf(results) {
  return results.map(({row, columns}) => {
    const cells = Object.entries(columns).map(([name, cell]) => [name, cell.value.toString('latin1')]);
    return [row.toString(), Object.fromEntries(cells)];
  });
}

class Tour {
  constructor(client, table) {
    this.client = client;
    this.table = table;
  }

  async isListed() {
    const names = await this.client.getTableNames();
    return names.some((name) => name.equals(this.table));
  }

  async create() {
    const {client, table} = this;
    assert.equal(await this.isListed(), false);
    const families = [
      new ColumnDescriptor({name: bytes('cf:'), maxVersions: 5, compression: 'SNAPPY', bloomFilterType: 'ROWCOL'}),
      new ColumnDescriptor({name: bytes('other')}),
    ];
    await client.createTable(table, families);
    assert.equal(await this.isListed(), true);
    await failure(AlreadyExists, client.createTable(table, families));
    const described = await client.getColumnDescriptors(table);
    assert.deepEqual(Object.keys(described).sort(), ['cf:', 'other:']);
    const {maxVersions, compression, bloomFilterType} = described['cf:'];
    assert.deepEqual([maxVersions, compression, bloomFilterType], [5, 'SNAPPY', 'ROWCOL']);
    assert.equal(described['other:'].maxVersions, 3);
    assert.equal((await client.getTableNamesWithIsTableEnabled())[table], inContainer(client, true));
    const regions = await client.getTableRegions(table);
    assert.deepEqual(regions.map(({startKey, endKey}) => [startKey.length, endKey.length]), [[0, 0]]);
    assert.equal(await client.getThriftServerType(), TThriftServerType.ONE);
    assert.notEqual(await client.getClusterId(), '');
  }

  put(row, cells) {
    const mutations = Object.entries(cells).map(([column, value]) => putOf(column, value));
    return this.client.mutateRow(this.table, bytes(row), mutations);
  }

  async row(row) {
    return rowsOf(await this.client.getRow(this.table, bytes(row)));
  }

  async value(row, column) {
    const cells = await this.client.get(this.table, bytes(row), bytes(column));
    assert.equal(cells.length, 1);
    return cells[0].value;
  }

  async writeAndRead() {
    const {client, table} = this;
    const cells = {'cf:a': '1', 'cf:': 'empty qualifier', 'other:x': '\x00\xff', 'cf:big': BIG};
    await this.put('row-1', cells);
    const [[row, found]] = await this.row('row-1');
    assert.deepEqual([row, Object.keys(found).sort()], ['row-1', Object.keys(cells).sort()]);
    assert.ok(Object.entries(cells).every(([column, value]) => found[column] === value));
    const some = await client.getRowWithColumns(table, bytes('row-1'), [bytes('other'), bytes('cf:a')]);
    assert.deepEqual(rowsOf(some), [['row-1', {'cf:a': '1', 'other:x': '\x00\xff'}]]);
    assert.deepEqual(await this.row('absent'), []);
    const batches = numbers(ROWS).map((number) =>
      new BatchMutation({row: bytes(key(number)), mutations: [putOf('cf:n', String(number))]}));
    await client.mutateRows(table, batches);
    // Calls that are sent before the answer to the first: each answer goes to its own call.
    const answers = await Promise.all(numbers(ROWS).map((number) => this.row(key(number))));
    answers.forEach((rows, number) => assert.deepEqual(rows, [[key(number), {'cf:n': String(number)}]]));
    const several = await client.getRows(table, ['scan-003', 'absent', 'scan-001'].map(bytes));
    assert.deepEqual(rowsOf(several), [['scan-003', {'cf:n': '3'}], ['scan-001', {'cf:n': '1'}]]);
  }

  async versions() {
    const {client, table} = this;
    const [row, column] = [bytes('versions'), bytes('cf:v')];
    for (const version of [1, 2, 3, 4]) {
      await client.mutateRowTs(table, row, [putOf('cf:v', String(version))], version * 10);
    }
    const timestamps = (cells) => cells.map((cell) => cell.timestamp.toNumber());
    assert.deepEqual(timestamps(await client.getVer(table, row, column, 2)), [40, 30]);
    assert.deepEqual(timestamps(await client.getVerTs(table, row, column, 30, 9)), [20, 10]);
    await client.deleteAllTs(table, row, column, 20);
    const left = await client.getVer(table, row, column, 9);
    assert.deepEqual(left.map((cell) => cell.value.toString()), ['4', '3']);
  }

  /** Reads a scan in small pieces to its end, closes it, and meets the error of a closed scanner. */
  async scanned(scan) {
    const {client, table} = this;
    const scanner = await client.scannerOpenWithScan(table, new TScan(scan));
    const rows = [];
    for (;;) {
      const results = await client.scannerGetList(scanner, 64);
      if (results.length === 0) {
        break;
      }
      rows.push(...results);
    }
    await client.scannerClose(scanner);
    const error = await failure(IllegalArgument, client.scannerGet(scanner));
    assert.equal(error.message, 'scanner ID is invalid');
    return rows;
  }

  async scan() {
    const {client, table} = this;
    const expected = numbers(ROWS).map((number) => [key(number), {'cf:n': String(number)}]);
    const all = await this.scanned({startRow: bytes('scan-'), stopRow: bytes('scan.'), caching: 100});
    assert.deepEqual(rowsOf(all), expected);
    const one = bytes("SingleColumnValueFilter('cf','n',=,'binary:42',true,true)");
    assert.deepEqual(rowsOf(await this.scanned({filterString: one})), expected.slice(42, 43));
    const keys = bytes("PrefixFilter('scan-00') AND KeyOnlyFilter()");
    const empty = expected.slice(0, 10).map(([row]) => [row, {'cf:n': ''}]);
    assert.deepEqual(rowsOf(await this.scanned({filterString: keys})), empty);
    const sorted = await this.scanned({
      startRow: bytes('scan-009'), stopRow: bytes('scan-006'), reversed: true, sortColumns: true,
    });
    const columns = sorted.map((result) => [String(result.row), String(result.sortedColumns[0].columnName)]);
    assert.deepEqual(columns, [9, 8, 7].map((number) => [key(number), 'cf:n']));
    const scanner = await client.scannerOpenWithPrefix(table, bytes('scan-1'), [bytes('cf:n')]);
    assert.deepEqual(rowsOf(await client.scannerGetList(scanner, 1000)), expected.slice(100, 200));
    await client.scannerClose(scanner);
  }

  async checkAndPut() {
    const {client, table} = this;
    const attempt = (expected, value) =>
      client.checkAndPut(table, bytes('checked'), bytes('cf:lock'), expected, putOf('cf:lock', value));
    assert.equal(await attempt(null, 'mine'), true);
    assert.equal(await attempt(null, 'yours'), false);
    assert.equal(await attempt(bytes('yours'), 'theirs'), false);
    assert.equal(await attempt(bytes('mine'), 'free'), true);
    assert.deepEqual(await this.value('checked', 'cf:lock'), bytes('free'));
  }

  async countAndAppend() {
    const {client, table} = this;
    const [row, column] = [bytes('counter'), bytes('cf:c')];
    assert.equal((await client.atomicIncrement(table, row, column, 40)).toNumber(), 40);
    assert.equal((await client.atomicIncrement(table, row, column, -1)).toNumber(), 39);
    const increment = new TIncrement({table, row, column, ammount: 1});
    await client.increment(increment);
    await client.incrementRows([increment, increment]);
    assert.deepEqual(await this.value('counter', 'cf:c'), long(42));
    for (const expected of ['ab', 'abab']) {
      const append = new TAppend({table, row, columns: [bytes('cf:text')], values: [bytes('ab')]});
      assert.deepEqual((await client.append(append)).map((cell) => cell.value), [bytes(expected)]);
    }
  }

  async delete() {
    const {client, table} = this;
    await client.deleteAll(table, bytes('row-1'), bytes('cf:a'));
    await client.mutateRow(table, bytes('row-1'), [deleteOf('other'), deleteOf('cf:big')]);
    assert.deepEqual(await this.row('row-1'), [['row-1', {'cf:': 'empty qualifier'}]]);
    await client.deleteAllRow(table, bytes('row-1'));
    assert.deepEqual(await this.row('row-1'), []);
  }

  /** The call fails with an IOError of that kind which is not to be retried. */
  async refused(kind, call) {
    const error = await failure(IOError, call);
    assert.ok(error.message.includes(kind), error.message);
    assert.equal(error.canRetry, false);
  }

  async errors() {
    const {client, table} = this;
    await this.refused('TableNotFoundException', client.getRow(bytes('no_such_table'), bytes('r')));
    await this.refused('NoSuchColumnFamilyException', this.put('r', {'nofamily:q': 'v'}));
    await this.refused('not a long', client.atomicIncrement(table, bytes('checked'), bytes('cf:lock'), 1));
    // The connection goes on after an error.
    assert.equal(await client.isTableEnabled(table), true);
  }

  async drop() {
    const {client, table} = this;
    await this.refused('TableNotDisabledException', client.deleteTable(table));
    await client.disableTable(table);
    assert.equal(await client.isTableEnabled(table), false);
    await this.refused('TableNotEnabledException', this.put('r', {'cf:q': 'v'}));
    await client.enableTable(table);
    assert.equal((await this.row('scan-000')).length, 1);
    await client.disableTable(table);
    await client.deleteTable(table);
    assert.equal(await this.isListed(), false);
  }
}
