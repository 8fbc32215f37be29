// The tour of HBase's Thrift 2 service.
'use strict';

const assert = require('node:assert').strict;

const {
  TAppend, TBloomFilterType, TColumn, TColumnFamilyDescriptor, TColumnIncrement, TColumnValue, TCompareOperator,
  TCompressionAlgorithm, TDataBlockEncoding, TDelete, TDeleteType, TDurability, TGet, TIllegalArgument, TIncrement,
  TIOError, TMutation, TPut, TRowMutations, TScan, TTableDescriptor, TTableName, TThriftServerType, TTimeRange,
} = require('./gen/thrift2/hbase_types');
const {BIG, bytes, failure, inContainer, long, numbers} = require('./values');

// Five rows under each letter but `r`, which has the row of the single-row steps: every region gets some.
const ROWS = [...'abcdefghijklmnopqstuvwxyz'].flatMap((letter) => numbers(5).map((number) => `${letter}-${number}`));
const SPLIT_KEYS = ['g', 'n', 't'];

module.exports = async function tour(client, table) {
  const t = new Tour(client, table);
  await t.create();
  await t.writeAndRead();
  await t.versions();
  await t.scan();
  await t.checkAndMutate();
  await t.countAndAppend();
  await t.delete();
  await t.errors();
  await t.drop();
};

/** A column by family:qualifier, or a family. */
function columnOf(name, options) {
  const [family, qualifier] = name.split(':');
  const column = qualifier === undefined ? {} : {qualifier: bytes(qualifier)};
  return new TColumn({family: bytes(family), ...column, ...options});
}

function valueOf(name, value, options) {
  const {family, qualifier} = columnOf(name);
  return new TColumnValue({family, qualifier, value: bytes(value), ...options});
}

const getOf = (row, options) => new TGet({row: bytes(row), ...options});

const putOf = (row, cells) =>
  new TPut({row: bytes(row), columnValues: Object.entries(cells).map(([name, value]) => valueOf(name, value))});

const deleteOf = (row, ...columns) =>
  new TDelete({row: bytes(row), columns: columns.length === 0 ? null : columns.map((name) => columnOf(name))});

/** A result as {family:qualifier: value as latin1}. */
function cellsOf(result) {
  const cells = result.columnValues.map(({family, qualifier, value}) =>
    [`${family}:${qualifier}`, value.toString('latin1')]);
  return Object.fromEntries(cells);
}

const keysOf = (results) => results.map(({row}) => row && row.toString());

class Tour {
  constructor(client, table) {
    this.client = client;
    this.table = table;
    this.name = new TTableName({qualifier: table});
  }

  async create() {
    const {client, table, name} = this;
    assert.equal(await client.tableExists(name), false);
    const family = new TColumnFamilyDescriptor({
      name: bytes('cf'),
      maxVersions: 5,
      bloomnFilterType: TBloomFilterType.ROWCOL,
      compressionType: TCompressionAlgorithm.ZSTD,
      dataBlockEncoding: TDataBlockEncoding.FAST_DIFF,
    });
    const columns = [family, new TColumnFamilyDescriptor({name: bytes('other')})];
    const descriptor = new TTableDescriptor({tableName: name, columns});
    await client.createTable(descriptor, SPLIT_KEYS.map(bytes));
    assert.equal(await client.tableExists(name), true);
    assert.equal(await client.isTableEnabled(name), true);
    assert.equal(await client.isTableAvailable(name), true);
    await this.refused(table.toString(), client.createTable(descriptor, null));
    const described = await client.getTableDescriptor(name);
    assert.equal(`${described.tableName.ns}:${described.tableName.qualifier}`, `default:${table}`);
    const [cf, other] = described.columns;
    assert.deepEqual([`${cf.name}`, cf.maxVersions, cf.bloomnFilterType, cf.compressionType],
      ['cf', 5, TBloomFilterType.ROWCOL, TCompressionAlgorithm.ZSTD]);
    assert.deepEqual([`${other.name}`, other.maxVersions, other.timeToLive], ['other', 1, 2147483647]);
    assert.deepEqual(await this.regions(), ['..g', 'g..n', 'n..t', 't..']);
    const location = await client.getRegionLocation(table, bytes('ha'), false);
    assert.equal(location.regionInfo.startKey.toString(), 'g');
    assert.ok((await client.listNamespaces()).includes('default'));
    assert.equal(await client.getThriftServerType(), TThriftServerType.TWO);
    assert.notEqual(await client.getClusterId(), '');
  }

  /** The regions of the table as start..end. */
  async regions() {
    const locations = await this.client.getAllRegionLocations(this.table);
    return locations.map(({regionInfo: {startKey, endKey}}) => `${startKey}..${endKey}`);
  }

  async cells(row, ...columns) {
    const options = columns.length === 0 ? {} : {columns: columns.map((name) => columnOf(name))};
    return cellsOf(await this.client.get(this.table, getOf(row, options)));
  }

  async writeAndRead() {
    const {client, table} = this;
    const cells = {'cf:': 'empty qualifier', 'cf:a': '1', 'cf:big': BIG, 'other:x': '\x00\xff'};
    await client.put(table, putOf('r', cells));
    const found = await this.cells('r');
    assert.deepEqual(Object.keys(found), Object.keys(cells));
    assert.ok(Object.entries(cells).every(([name, value]) => found[name] === value));
    assert.deepEqual(await this.cells('r', 'other', 'cf:a'), {'cf:a': '1', 'other:x': '\x00\xff'});
    const absent = await client.get(table, getOf('absent'));
    assert.deepEqual([absent.row, absent.columnValues], [null, []]);
    const exist = [inContainer(client, true), false];
    assert.deepEqual(await client.existsAll(table, [getOf('r'), getOf('absent')]), exist);
    const puts = ROWS.map((row) => putOf(row, {'cf:n': row}));
    puts[0].durability = TDurability.SYNC_WAL;
    await client.putMultiple(table, puts);
    // Calls that are sent before the answer to the first: each answer goes to its own call.
    const answers = await Promise.all(ROWS.map((row) => this.cells(row)));
    answers.forEach((answer, at) => assert.deepEqual(answer, {'cf:n': ROWS[at]}));
    const several = await client.getMultiple(table, [getOf('z-0'), getOf('absent'), getOf('a-0')]);
    assert.deepEqual(keysOf(several), ['z-0', null, 'a-0']);
  }

  async versions() {
    const {client, table} = this;
    for (const version of [1, 2, 3, 4]) {
      const cell = valueOf('cf:v', String(version), {timestamp: version * 10});
      await client.put(table, new TPut({row: bytes('versions'), columnValues: [cell]}));
    }
    const timestamps = async (options) => {
      const {columnValues} = await client.get(table, getOf('versions', options));
      return columnValues.map((cell) => cell.timestamp.toNumber());
    };
    assert.deepEqual(await timestamps({maxVersions: 2}), [40, 30]);
    const timeRange = new TTimeRange({minStamp: 10, maxStamp: 30});
    assert.deepEqual(await timestamps({maxVersions: 9, timeRange}), [20, 10]);
    assert.deepEqual(await timestamps({timestamp: 30}), [30]);
    const exact = deleteOf('versions');
    exact.columns = [columnOf('cf:v', {timestamp: 20})];
    exact.deleteType = TDeleteType.DELETE_COLUMN;
    await client.deleteSingle(table, exact);
    assert.deepEqual(await timestamps({maxVersions: 9}), [40, 30, 10]);
    await client.deleteSingle(table, deleteOf('versions'));
    assert.equal(await client.exists(table, getOf('versions')), false);
  }

  /** Reads the keys of a scan in small pieces to its end, closes it, and meets the error of a closed scanner. */
  async scanned(scan) {
    const {client, table} = this;
    const scanner = await client.openScanner(table, new TScan(scan));
    const keys = [];
    for (;;) {
      const results = await client.getScannerRows(scanner, 32);
      if (results.length === 0) {
        break;
      }
      keys.push(...keysOf(results));
    }
    await client.closeScanner(scanner);
    const error = await failure(TIllegalArgument, client.getScannerRows(scanner, 1));
    assert.equal(error.message, 'Invalid scanner Id');
    return keys;
  }

  async scan() {
    const columns = [columnOf('cf:n')];
    assert.deepEqual(await this.scanned({columns}), ROWS);
    assert.deepEqual(await this.scanned({columns, reversed: true, limit: 70}), [...ROWS].reverse().slice(0, 70));
    const range = {startRow: bytes('f-4'), stopRow: bytes('g-2')};
    assert.deepEqual(await this.scanned(range), ['f-4', 'g-0', 'g-1']);
    const both = bytes("PrefixFilter('s-') AND ValueFilter(>,'binary:s-2')");
    assert.deepEqual(await this.scanned({filterString: both}), ['s-3', 's-4']);
    const one = bytes("SingleColumnValueFilter('cf','n',=,'binary:q-4',true,true)");
    const results = await this.client.getScannerResults(this.table, new TScan({filterString: one}), 10);
    assert.deepEqual(results.map((result) => [`${result.row}`, cellsOf(result)]), [['q-4', {'cf:n': 'q-4'}]]);
  }

  async checkAndMutate() {
    const {client, table} = this;
    const column = ['checked', 'cf', 'lock'].map(bytes);
    const attempt = (expected, value) =>
      client.checkAndPut(table, ...column, expected, putOf('checked', {'cf:lock': value}));
    assert.equal(await attempt(null, '5'), true);
    assert.equal(await attempt(null, '6'), false);
    assert.equal(await attempt(bytes('5'), '7'), true);
    const mutations = new TRowMutations({
      row: bytes('checked'),
      mutations: [
        new TMutation({put: putOf('checked', {'cf:lock': '8', 'other:seen': 'yes'})}),
        new TMutation({deleteSingle: deleteOf('checked', 'other:gone')}),
      ],
    });
    const mutate = (operator) => client.checkAndMutate(table, ...column, operator, bytes('6'), mutations);
    assert.equal(await mutate(TCompareOperator.GREATER), false);
    assert.equal(await mutate(TCompareOperator.LESS), true);
    assert.deepEqual(await this.cells('checked'), {'cf:lock': '8', 'other:seen': 'yes'});
    assert.equal(await client.checkAndDelete(table, ...column, bytes('7'), deleteOf('checked')), false);
    assert.equal(await client.checkAndDelete(table, ...column, bytes('8'), deleteOf('checked')), true);
    assert.deepEqual(await this.cells('checked'), {});
  }

  async countAndAppend() {
    const {client, table} = this;
    const counted = (qualifier, options) =>
      new TColumnIncrement({family: bytes('cf'), qualifier: bytes(qualifier), ...options});
    const columns = [counted('c', {amount: 40}), counted('d')];
    for (const [c, d] of [[40, 1], [80, 2]]) {
      const result = await client.increment(table, new TIncrement({row: bytes('counter'), columns}));
      assert.deepEqual(result.columnValues.map((cell) => cell.value), [long(c), long(d)]);
    }
    for (const expected of ['ab', 'abab']) {
      const append = new TAppend({row: bytes('counter'), columns: [valueOf('cf:text', 'ab')]});
      assert.deepEqual(cellsOf(await client.append(table, append)), {'cf:text': expected});
    }
  }

  async delete() {
    const {client, table} = this;
    await client.deleteSingle(table, deleteOf('r', 'cf:a', 'cf:big'));
    const family = deleteOf('r', 'other');
    family.deleteType = TDeleteType.DELETE_FAMILY;
    assert.deepEqual(await client.deleteMultiple(table, [family, deleteOf('counter')]), []);
    assert.deepEqual(await this.cells('r'), {'cf:': 'empty qualifier'});
    const mutations = [
      new TMutation({deleteSingle: deleteOf('r', 'cf:')}),
      new TMutation({put: putOf('r', {'cf:new': '2'})}),
    ];
    await client.mutateRow(table, new TRowMutations({row: bytes('r'), mutations}));
    assert.deepEqual(await this.cells('r'), {'cf:new': '2'});
  }

  /** The call fails with a TIOError which names this and is not to be retried. */
  async refused(name, call) {
    const error = await failure(TIOError, call);
    assert.ok(error.message.includes(name), error.message);
    assert.equal(error.canRetry, false);
  }

  async errors() {
    const {client, table} = this;
    await this.refused('no_such_table', client.get(bytes('no_such_table'), getOf('r')));
    await this.refused('nofamily', client.put(table, putOf('r', {'nofamily:q': 'v'})));
    const columns = [new TColumnIncrement({family: bytes('cf'), qualifier: bytes('new')})];
    await this.refused('not a long', client.increment(table, new TIncrement({row: bytes('r'), columns})));
    // The connection goes on after an error.
    assert.equal(await client.exists(table, getOf('r')), true);
  }

  async drop() {
    const {client, table, name} = this;
    await this.refused(table.toString(), client.deleteTable(name));
    await client.disableTable(name);
    assert.equal(await client.isTableDisabled(name), true);
    await client.truncateTable(name, true);
    assert.equal(await client.isTableEnabled(name), true);
    assert.equal(await client.exists(table, getOf('r')), false);
    assert.equal((await this.regions()).length, 4);
    await client.disableTable(name);
    await client.deleteTable(name);
    assert.equal(await client.tableExists(name), false);
  }
}
