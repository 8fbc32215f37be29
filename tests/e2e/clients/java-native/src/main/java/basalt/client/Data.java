package basalt.client;

import static basalt.client.Transcript.act;
import static basalt.client.Transcript.ask;
import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;

/** Rows: gets, mutations, conditions, batches and scans of a table with three regions. */
final class Data {
  private static final byte[] F = toBytes("f");
  private static final byte[] Q = toBytes("q");

  private final Connection connection;
  private final Table table;

  Data(Connection connection, TableName table) throws Exception {
    this.connection = connection;
    this.table = connection.getTable(table);
  }

  private static Put put(String row, String qualifier, String value) {
    return new Put(toBytes(row)).addColumn(F, toBytes(qualifier), value.getBytes());
  }

  private static Get get(String row) {
    return new Get(toBytes(row));
  }

  void run(Configuration conf) throws Exception {
    rows();
    conditions();
    batches();
    scans();
    many(conf);
  }

  private void rows() {
    act("put", () -> table.put(put("a", "q", "v1")));
    act("put with a time", () -> table.put(new Put(toBytes("a")).addColumn(F, Q, 5, toBytes("old"))));
    act("put rows of all regions", () -> {
      List<Put> puts = new ArrayList<>();
      for (String row : "b c h i o p".split(" ")) {
        puts.add(put(row, "q", "v-" + row).addColumn(F, toBytes("q2"), toBytes("w")));
      }
      table.put(puts);
    });
    ask("get", () -> table.get(get("a")));
    ask("get all versions", () -> table.get(get("a").readAllVersions()));
    ask("get a time", () -> table.get(get("a").setTimestamp(5)));
    ask("get a column", () -> table.get(get("b").addColumn(F, toBytes("q2"))));
    ask("get nothing", () -> table.get(get("nope")));
    ask("exists", () -> table.exists(get("b")) + " " + table.exists(get("zz")));
    ask("get of several rows", () -> table.get(List.of(get("b"), get("p"), get("nope"))));
    ask("get with a filter", () -> table.get(get("b").setFilter(new ColumnPrefixFilter(toBytes("q2")))));
    ask("get of a family that is not there", () -> table.get(get("a").addFamily(toBytes("nof"))));
    act("put into a family that is not there", () -> table.put(new Put(toBytes("a")).addColumn(toBytes("nof"), Q, Q)));
    ask("get of a table that is not there", () -> connection.getTable(TableName.valueOf("nope")).get(get("a")));
    act("delete a column", () -> table.delete(new Delete(toBytes("b")).addColumns(F, toBytes("q2"))));
    ask("what it left", () -> table.get(get("b")));
    act("delete a row", () -> table.delete(new Delete(toBytes("b"))));
    ask("what that left", () -> table.get(get("b")));
    ask("increment", () -> table.increment(new Increment(toBytes("n")).addColumn(F, Q, 5)));
    ask("increment one value", () -> table.incrementColumnValue(toBytes("n"), F, Q, 2));
    ask("increment what is no number", () -> table.incrementColumnValue(toBytes("a"), F, Q, 2));
    ask("increment without results", () -> table.increment(new Increment(toBytes("n")).addColumn(F, Q, 1).setReturnResults(false)));
    ask("append", () -> table.append(new Append(toBytes("a")).addColumn(F, Q, toBytes("+x"))));
    ask("append without results", () -> table.append(new Append(toBytes("a")).addColumn(F, Q, toBytes("y")).setReturnResults(false)));
  }

  private void conditions() {
    byte[] row = toBytes("a");
    ask("put if equal", () -> table.checkAndMutate(CheckAndMutate.newBuilder(row).ifEquals(F, Q, toBytes("v1+xy")).build(put("a", "q", "v2"))).isSuccess());
    ask("put if absent", () -> table.checkAndMutate(CheckAndMutate.newBuilder(row).ifNotExists(F, Q).build(put("a", "q", "v3"))).isSuccess());
    ask("put if absent, and it is", () -> table.checkAndMutate(CheckAndMutate.newBuilder(row).ifNotExists(F, toBytes("new")).build(put("a", "new", "1"))).isSuccess());
    ask("delete if greater", () -> table.checkAndMutate(CheckAndMutate.newBuilder(row).ifMatches(F, Q, CompareOperator.GREATER, toBytes("v1")).build(new Delete(row).addColumns(F, toBytes("new")))).isSuccess());
    ask("mutations if equal", () -> table.checkAndMutate(CheckAndMutate.newBuilder(row).ifEquals(F, Q, toBytes("v2")).build(RowMutations.of(List.of(put("a", "q", "v4"), new Delete(row).addColumns(F, toBytes("new")))))).isSuccess());
    ask("mutations if not equal", () -> table.checkAndMutate(CheckAndMutate.newBuilder(row).ifEquals(F, Q, toBytes("v2")).build(RowMutations.of(List.of(put("a", "q", "v5"))))).isSuccess());
    act("mutations of a row", () -> table.mutateRow(RowMutations.of(List.of(put("a", "x", "1"), put("a", "y", "2"), new Delete(row).addColumns(F, toBytes("z"))))));
    ask("after all", () -> table.get(get("a")));
  }

  private void batches() {
    ask("batch", () -> batch(put("d", "q", "1"), get("a"), new Delete(toBytes("p")), new Increment(toBytes("n")).addColumn(F, Q, 1)));
    ask("batch with a failure", () -> batch(put("e", "q", "1"), new Put(toBytes("e")).addColumn(toBytes("nof"), Q, Q)));
    ask("what it left", () -> table.get(get("e")));
    ask("several checks", () -> {
      List<Object> outcomes = new ArrayList<>();
      table.checkAndMutate(List.of(
          CheckAndMutate.newBuilder(toBytes("d")).ifEquals(F, Q, toBytes("1")).build(put("d", "q", "2")),
          CheckAndMutate.newBuilder(toBytes("i")).ifEquals(F, Q, toBytes("no")).build(put("i", "q", "2"))))
          .forEach(result -> outcomes.add(result.isSuccess()));
      return outcomes;
    });
  }

  private Object batch(Row... actions) throws Exception {
    Object[] results = new Object[actions.length];
    table.batch(List.of(actions), results);
    return results;
  }

  private void scans() {
    ask("scan", () -> table.getScanner(new Scan()));
    ask("two at a time", () -> table.getScanner(new Scan().setCaching(2)));
    ask("limit", () -> table.getScanner(new Scan().setLimit(3)));
    ask("reversed", () -> table.getScanner(new Scan().setReversed(true)));
    ask("reversed from a row", () -> table.getScanner(new Scan().withStartRow(toBytes("i")).setReversed(true)));
    ask("range", () -> table.getScanner(new Scan().withStartRow(toBytes("b")).withStopRow(toBytes("i"))));
    ask("range with its end", () -> table.getScanner(new Scan().withStartRow(toBytes("c"), false).withStopRow(toBytes("i"), true)));
    ask("batch of one cell", () -> table.getScanner(new Scan().setBatch(1).withStopRow(toBytes("i"))));
    ask("prefix", () -> table.getScanner(new Scan().setFilter(new PrefixFilter(toBytes("h")))));
    ask("a page of each region", () -> table.getScanner(new Scan().setFilter(new PageFilter(1))));
    ask("first keys", () -> table.getScanner(new Scan().setFilter(new FirstKeyOnlyFilter())));
    ask("by value", () -> table.getScanner(new Scan().setFilter(new SingleColumnValueFilter(F, Q, CompareOperator.EQUAL, toBytes("v-o")))));
    ask("raw", () -> count(new Scan().setRaw(true).readAllVersions()));
    ask("all versions", () -> table.getScanner(new Scan().readAllVersions().withStopRow(toBytes("b"))));
    ask("a time", () -> table.getScanner(new Scan().setTimeRange(0, 10)));
    ask("renewed", () -> {
      try (ResultScanner scanner = table.getScanner(new Scan().setCaching(1))) {
        Result first = scanner.next();
        return first.isEmpty() + " " + scanner.renewLease() + " " + scanner.next().isEmpty();
      }
    });
    ask("with metrics", () -> {
      try (ResultScanner scanner = table.getScanner(new Scan().setScanMetricsEnabled(true))) {
        int rows = 0;
        for (Result ignored : scanner) {
          rows++;
        }
        return rows + " rows, at least as many scanned: " + (scanner.getScanMetrics().countOfRowsScanned.get() >= rows);
      }
    });
    ask("a family that is not there", () -> table.getScanner(new Scan().addFamily(toBytes("nof"))));
  }

  private int count(Scan scan) throws Exception {
    int rows = 0;
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result ignored : scanner) {
        rows++;
      }
    }
    return rows;
  }

  private void many(Configuration conf) {
    act("buffered puts", () -> {
      try (BufferedMutator mutator = connection.getBufferedMutator(table.getName())) {
        for (int number = 0; number < 5_000; number++) {
          mutator.mutate(new Put(toBytes(String.format("m%05d", number))).addColumn(F, Q, new byte[100]));
        }
      }
    });
    ask("rows", () -> count(new Scan()));
    ask("rows with a filter", () -> count(new Scan().setFilter(new FirstKeyOnlyFilter())));
    ask("large value", () -> {
      table.put(new Put(toBytes("z")).addColumn(F, Q, new byte[5_000_000]));
      return table.get(get("z")).getValue(F, Q).length;
    });
    ask("asynchronously", () -> {
      try (AsyncConnection async = ConnectionFactory.createAsyncConnection(conf).get()) {
        AsyncTable<?> other = async.getTable(table.getName());
        other.put(put("y", "q", "1")).get();
        other.putAll(List.of(put("y1", "q", "1"), put("c1", "q", "2"))).get();
        return List.of(other.get(get("y")).get(), other.scanAll(new Scan().setLimit(2)).get());
      }
    });
  }
}
