package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.*;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter.RowRange;
import org.apache.hadoop.hbase.util.Pair;

/** Scans over three regions, with every option the client has, and filters in HBase's own encoding; leaves nothing behind. */
final class Scans {
  private static final TableName TABLE = TableName.valueOf("java-scans");
  private static final byte[] F = toBytes("f");
  private static final byte[] G = toBytes("g");

  private final Connection connection;
  private final Transcript transcript;
  private Table table;

  Scans(Connection connection, Transcript transcript) {
    this.connection = connection;
    this.transcript = transcript;
  }

  void run() throws IOException {
    try (var admin = connection.getAdmin()) {
      admin.createTable(
          TableDescriptorBuilder.newBuilder(TABLE)
              .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).setMaxVersions(3).build())
              .setColumnFamily(ColumnFamilyDescriptorBuilder.of(G))
              .build(),
          new byte[][] {toBytes("row-03"), toBytes("row-07")});
      table = connection.getTable(TABLE);
      fill();
      options();
      filters();
      lists();
      table.close();
      admin.disableTable(TABLE);
      admin.deleteTable(TABLE);
    }
  }

  /** Ten rows: two versions of a number, a word in every second row, and a wide row. */
  private void fill() throws IOException {
    List<Put> puts = new ArrayList<>();
    for (int number = 0; number < 10; number++) {
      byte[] row = toBytes(String.format("row-%02d", number));
      Put put =
          new Put(row)
              .addColumn(F, toBytes("number"), 10, toBytes((long) number))
              .addColumn(F, toBytes("number"), 20, toBytes((long) number * number));
      if (number % 2 == 0) {
        put.addColumn(G, toBytes("word"), 15, toBytes("word " + number));
      }
      puts.add(put);
    }
    Put wide = new Put(toBytes("wide"));
    for (char qualifier = 'a'; qualifier <= 'e'; qualifier++) {
      wide.addColumn(F, toBytes(String.valueOf(qualifier)), 30, toBytes("of " + qualifier));
    }
    puts.add(wide);
    table.put(puts);
    table.delete(new Delete(toBytes("row-09"), 12));
  }

  /** The rows of a scan. The client asks for more until the server has no more. */
  private void scan(String what, Scan scan) {
    transcript.ask(
        what,
        () -> {
          List<Result> rows = new ArrayList<>();
          try (var scanner = table.getScanner(scan)) {
            for (Result row = scanner.next(); row != null; row = scanner.next()) {
              rows.add(row);
            }
          }
          return rows;
        });
  }

  private static Scan range(String start, String stop) {
    return new Scan().withStartRow(toBytes(start)).withStopRow(toBytes(stop));
  }

  private void options() throws IOException {
    transcript.chapter("scans");
    scan("all", new Scan());
    scan("two rows a fetch", new Scan().setCaching(2));
    scan("a range", range("row-02", "row-05"));
    scan("both ends", range("row-02", "row-05").withStartRow(toBytes("row-02"), false).withStopRow(toBytes("row-05"), true));
    scan("an empty range", range("row-021", "row-029"));
    scan("a prefix", new Scan().setRowPrefixFilter(toBytes("row-0")).addFamily(G));
    scan("reversed", new Scan().setReversed(true).setCaching(3));
    scan("reversed range", range("row-05", "row-02").setReversed(true));
    scan("a limit", new Scan().setLimit(4));
    scan("a limit, one row a fetch", new Scan().setLimit(4).setCaching(1));
    scan("one row a fetch", range("row-02", "row-05").setCaching(1));
    scan("a family", new Scan().addFamily(G));
    scan("a column", new Scan().addColumn(F, toBytes("number")).withStopRow(toBytes("row-03")));
    scan("all versions", range("row-02", "row-04").readAllVersions());
    scan("a time range", range("row-00", "row-03").readAllVersions().setTimeRange(10, 16));
    scan("a time range of a family", range("row-00", "row-03").readAllVersions().setColumnFamilyTimeRange(F, 0, 11));
    scan("a timestamp", range("row-00", "row-03").setTimestamp(10));
    scan("a read of each kind", range("row-00", "row-01").setReadType(Scan.ReadType.PREAD));
    scan("not cached", range("row-00", "row-01").setCacheBlocks(false));
    scan("cells of a store", new Scan().withStartRow(toBytes("wide")).setMaxResultsPerColumnFamily(3).setRowOffsetPerColumnFamily(2));
    scan("batch", new Scan().withStartRow(toBytes("wide")).setBatch(3));
    scan("an attribute", range("row-00", "row-01").setAttribute("a", toBytes("b")));
  }

  private void filter(String what, Filter filter) {
    scan(what, new Scan().setFilter(filter));
  }

  private void filters() {
    transcript.chapter("filters");
    filter("prefix", new PrefixFilter(toBytes("row-0")));
    filter("page", new PageFilter(2));
    filter("key only", new KeyOnlyFilter());
    filter("key only with length", new KeyOnlyFilter(true));
    filter("first key only", new FirstKeyOnlyFilter());
    filter("inclusive stop", new InclusiveStopFilter(toBytes("row-01")));
    filter("column count", new ColumnCountGetFilter(1));
    filter("column pagination", new ColumnPaginationFilter(2, 1));
    filter("column pagination from", new ColumnPaginationFilter(2, toBytes("c")));
    filter("column prefix", new ColumnPrefixFilter(toBytes("w")));
    filter("column prefixes", new MultipleColumnPrefixFilter(new byte[][] {toBytes("d"), toBytes("a")}));
    filter("column range", new ColumnRangeFilter(toBytes("b"), false, toBytes("d"), true));
    filter("timestamps", new TimestampsFilter(List.of(15L, 30L)));
    filter("family", new FamilyFilter(CompareOperator.EQUAL, new BinaryComparator(G)));
    filter("row", new RowFilter(CompareOperator.EQUAL, new RegexStringComparator("row-0[1-3]|w.*")));
    filter("qualifier", new QualifierFilter(CompareOperator.NOT_EQUAL, new SubstringComparator("NUM")));
    filter("value", new ValueFilter(CompareOperator.EQUAL, new BinaryPrefixComparator(toBytes("word"))));
    filter("value as a number", new ValueFilter(CompareOperator.GREATER, new LongComparator(30)));
    filter("value by bits", new ValueFilter(
        CompareOperator.EQUAL, new BitComparator(toBytes(1L), BitComparator.BitwiseOp.AND)));
    scan("value of part", new Scan().withStartRow(toBytes("wide")).setFilter(new ValueFilter(
        CompareOperator.EQUAL, new BinaryComponentComparator(toBytes("c"), 3))));
    filter("no value", new ValueFilter(CompareOperator.EQUAL, new NullComparator()));
    SingleColumnValueFilter single =
        new SingleColumnValueFilter(F, toBytes("number"), CompareOperator.GREATER_OR_EQUAL, toBytes(36L));
    filter("single column, missing passes", single);
    SingleColumnValueFilter strict =
        new SingleColumnValueFilter(F, toBytes("number"), CompareOperator.LESS, new LongComparator(9));
    strict.setFilterIfMissing(true);
    filter("single column, missing fails", strict);
    SingleColumnValueFilter versions =
        new SingleColumnValueFilter(F, toBytes("number"), CompareOperator.EQUAL, toBytes(5L));
    versions.setFilterIfMissing(true);
    versions.setLatestVersionOnly(false);
    scan("single column, any version", new Scan().readAllVersions().setFilter(versions));
    filter("single column, left out", new SingleColumnValueExcludeFilter(
        F, toBytes("number"), CompareOperator.EQUAL, toBytes(4L)));
    filter("column value", new ColumnValueFilter(
        G, toBytes("word"), CompareOperator.EQUAL, new SubstringComparator("6")));
    filter("dependent column", new DependentColumnFilter(G, toBytes("word")));
    filter("skip", new SkipFilter(new ValueFilter(CompareOperator.NOT_EQUAL, new LongComparator(16))));
    filter("while", new WhileMatchFilter(new RowFilter(
        CompareOperator.LESS, new BinaryComparator(toBytes("row-03")))));
    filter("random, always", new RandomRowFilter(1));
    filter("random, never", new RandomRowFilter(-1));
    filter("row ranges", new MultiRowRangeFilter(Arrays.asList(
        new RowRange("row-01", true, "row-02", true), new RowRange("row-06", false, "row-08", false))));
    filter("row prefixes", new MultiRowRangeFilter(new byte[][] {toBytes("row-05"), toBytes("w")}));
    filter("fuzzy rows", new FuzzyRowFilter(List.of(
        new Pair<>(toBytes("row-?2"), new byte[] {0, 0, 0, 0, 1, 0}),
        new Pair<>(toBytes("????"), new byte[] {0, 1, 1, 1}))));
    filter("fuzzy rows of any form", new FuzzyRowFilter(List.of(
        new Pair<>(toBytes("row-?8"), new byte[] {0, 0, 0, 0, 1, 0}))));
    scan("reversed and filtered", new Scan().setReversed(true).setFilter(new PrefixFilter(toBytes("row-0"))));
    scan("paged and reversed", new Scan().setReversed(true).setFilter(new PageFilter(3)).setCaching(2));
  }

  private void lists() {
    transcript.chapter("filter lists");
    Filter prefix = new PrefixFilter(toBytes("row-0"));
    Filter words = new FamilyFilter(CompareOperator.EQUAL, new BinaryComparator(G));
    Filter wide = new RowFilter(CompareOperator.EQUAL, new BinaryComparator(toBytes("wide")));
    filter("all of", new FilterList(FilterList.Operator.MUST_PASS_ALL, prefix, words));
    filter("one of", new FilterList(FilterList.Operator.MUST_PASS_ONE, wide, words));
    filter("none of nothing", new FilterList(FilterList.Operator.MUST_PASS_ALL));
    filter("nested", new FilterList(
        FilterList.Operator.MUST_PASS_ONE,
        new FilterList(FilterList.Operator.MUST_PASS_ALL, wide, new ColumnRangeFilter(toBytes("d"), true, null, false)),
        new FilterList(FilterList.Operator.MUST_PASS_ALL, prefix, words, new PageFilter(2))));
  }
}
