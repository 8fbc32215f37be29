package basalt.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ColumnCountGetFilter;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.DependentColumnFilter;
import org.apache.hadoop.hbase.filter.FamilyFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.InclusiveStopFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultipleColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SkipFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.filter.WhileMatchFilter;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.UserPermission;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.example.filters.Bad;
import org.example.filters.Foreign;
import org.example.filters.Masked;
import org.example.filters.PasswordStrength;
import org.example.filters.SkipScan;
import org.example.filters.Suffix;

/**
 * Uses filters of its own, and prints one line for each question.
 *
 * <p>Arguments: {@code zookeeper} or {@code rpc}, host, port, and what to do: {@code tour}, which ends with "tour
 * done"; {@code make}, the tour's table alone; {@code bad WHAT...}, one scan for each with the filter {@link Bad};
 * {@code weak} and {@code skip}, one scan; {@code race}, writers that compete by a condition; {@code grant}, the right
 * to read for bob.
 */
public final class UserCode {
  private static final TableName NAME = TableName.valueOf("uc");
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] B = Bytes.toBytes("b");
  private static final byte[] PASSWORD = Bytes.toBytes("password");

  private UserCode() {}

  public static void main(String[] arguments) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    if (arguments[0].equals("rpc")) {
      conf.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.RpcConnectionRegistry");
      conf.set("hbase.client.bootstrap.servers", arguments[1] + ":" + arguments[2]);
    } else {
      conf.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.ZKConnectionRegistry");
      conf.set("hbase.zookeeper.quorum", arguments[1]);
      conf.set("hbase.zookeeper.property.clientPort", arguments[2]);
    }
    if (!arguments[3].equals("tour")) {
      conf.setInt("hbase.client.retries.number", arguments[3].equals("race") ? 15 : 1);
    }
    try (Connection connection = ConnectionFactory.createConnection(conf); Table table = connection.getTable(NAME)) {
      switch (arguments[3]) {
        case "tour" -> {
          create(connection);
          fill(table);
          scans(table);
          rows(table);
          checks(table);
          System.out.println("tour done");
        }
        case "make" -> {
          create(connection);
          fill(table);
        }
        case "bad" -> {
          for (String what : Arrays.copyOfRange(arguments, 4, arguments.length)) {
            say(what, () -> digest(table, new Scan().withStopRow(Bytes.toBytes("r002")).setFilter(new Bad(what))));
          }
        }
        case "grant" -> {
          try (Admin admin = connection.getAdmin()) {
            admin.grant(new UserPermission("bob",
                Permission.newBuilder(NAME).withActions(Permission.Action.READ).build()), false);
          }
        }
        case "skip" -> say("skip", () -> digest(table, new Scan().setFilter(new SkipScan(3))));
        case "weak" -> say("weak", () -> digest(table, new Scan().setFilter(new PasswordStrength(4))));
        case "race" -> race(table);
        default -> throw new IllegalArgumentException(arguments[3]);
      }
    }
  }

  private interface Question {
    String answer() throws Exception;
  }

  private static void say(String question, Question asked) {
    String answer;
    try {
      answer = asked.answer();
    } catch (Exception error) {
      Throwable cause = error;
      while (cause.getCause() != null && cause.getCause() != cause) {
        cause = cause.getCause();
      }
      String message = String.valueOf(cause.getMessage()).lines().findFirst().orElse("");
      answer = "throws " + cause.getClass().getSimpleName() + ": " + message;
    }
    System.out.println(question + " -> " + answer);
  }

  private static void create(Connection connection) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(NAME)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(A).setMaxVersions(3).build())
          .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(B).build()).build(),
          new byte[][] {Bytes.toBytes("r060")});
    }
  }

  private static void fill(Table table) throws IOException {
    List<Put> puts = new ArrayList<>();
    for (int row = 0; row < 120; row++) {
      byte[] key = Bytes.toBytes(String.format("r%03d", row));
      for (int version = 1; version <= 1 + row % 4; version++) {
        Put put = new Put(key, version);
        put.addColumn(A, PASSWORD, Bytes.toBytes("secret".substring(0, (row + version) % 7)));
        if (row % 3 == 0) {
          put.addColumn(A, Bytes.toBytes("name"), Bytes.toBytes("n" + row + "v" + version));
        }
        if (row % 5 == 0) {
          put.addColumn(B, Bytes.toBytes("x" + version), Bytes.toBytes("b" + row));
        }
        puts.add(put);
      }
      if (row % 11 == 0) {
        puts.add(new Put(key, 9).addColumn(B, Bytes.toBytes("only"), Bytes.toBytes("y")));
      }
    }
    table.put(puts);
    table.delete(new Delete(Bytes.toBytes("r015")));
    table.delete(new Delete(Bytes.toBytes("r018")).addColumn(A, PASSWORD, 2));
    table.delete(new Delete(Bytes.toBytes("r021")).addFamily(A));
  }

  private static Map<String, Filter> filters() throws IOException {
    Map<String, Filter> filters = new LinkedHashMap<>();
    filters.put("weak passwords", new PasswordStrength(4));
    filters.put("skip scan 3", new SkipScan(3));
    filters.put("skip scan 2", new SkipScan(2));
    filters.put("masked 9", new Masked(9));
    filters.put("suffix", new ValueFilter(CompareOperator.EQUAL, new Suffix(Bytes.toBytes("re"))));
    filters.put("not suffix", new SingleColumnValueFilter(A, PASSWORD, CompareOperator.NOT_EQUAL, new Suffix(Bytes.toBytes("s"))));
    filters.put("list of both", new FilterList(FilterList.Operator.MUST_PASS_ALL, new PrefixFilter(Bytes.toBytes("r0")),
        new PasswordStrength(3)));
    filters.put("either of both", new FilterList(FilterList.Operator.MUST_PASS_ONE, new SkipScan(3),
        new PasswordStrength(2)));
    filters.put("skip of own", new SkipFilter(new ValueFilter(CompareOperator.NOT_EQUAL, new Suffix(Bytes.toBytes("t")))));
    Map<String, Filter> known = new LinkedHashMap<>();
    known.put("prefix", new PrefixFilter(Bytes.toBytes("r01")));
    known.put("column prefix", new ColumnPrefixFilter(Bytes.toBytes("pa")));
    known.put("column prefixes", new MultipleColumnPrefixFilter(new byte[][] {Bytes.toBytes("na"), Bytes.toBytes("x")}));
    known.put("column range", new ColumnRangeFilter(Bytes.toBytes("o"), true, Bytes.toBytes("x2"), false));
    known.put("page", new PageFilter(5));
    known.put("columns", new ColumnPaginationFilter(2, 1));
    known.put("column count", new ColumnCountGetFilter(2));
    known.put("stop", new InclusiveStopFilter(Bytes.toBytes("r030")));
    known.put("timestamps", new TimestampsFilter(Arrays.asList(1L, 3L)));
    known.put("timestamps with hints", new TimestampsFilter(Arrays.asList(1L, 4L), true));
    known.put("row", new RowFilter(CompareOperator.GREATER, new SubstringComparator("5")));
    known.put("family", new FamilyFilter(CompareOperator.EQUAL, new BinaryComparator(B)));
    known.put("qualifier", new QualifierFilter(CompareOperator.LESS, new BinaryComparator(PASSWORD)));
    known.put("value", new ValueFilter(CompareOperator.EQUAL, new SubstringComparator("sec")));
    known.put("column value", new SingleColumnValueFilter(A, PASSWORD, CompareOperator.GREATER, Bytes.toBytes("sec")));
    SingleColumnValueFilter strict = new SingleColumnValueFilter(B, Bytes.toBytes("x1"), CompareOperator.EQUAL, Bytes.toBytes("b30"));
    strict.setFilterIfMissing(true);
    known.put("strict column value", strict);
    known.put("dependent", new DependentColumnFilter(A, PASSWORD));
    known.put("fuzzy", new FuzzyRowFilter(Arrays.asList(new Pair<>(Bytes.toBytes("r0?5"), new byte[] {0, 0, 1, 0}))));
    known.put("fuzzy beyond", new FuzzyRowFilter(Arrays.asList(new Pair<>(Bytes.toBytes("r?07"), new byte[] {0, 1, 0, 0}))));
    known.put("ranges", new MultiRowRangeFilter(Arrays.asList(
        new MultiRowRangeFilter.RowRange(Bytes.toBytes("r003"), true, Bytes.toBytes("r006"), false),
        new MultiRowRangeFilter.RowRange(Bytes.toBytes("r058"), false, Bytes.toBytes("r063"), true))));
    known.put("first key", new FirstKeyOnlyFilter());
    known.put("keys", new KeyOnlyFilter(true));
    known.put("while", new WhileMatchFilter(new RowFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(Bytes.toBytes("r025")))));
    known.put("skip", new SkipFilter(new ValueFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(Bytes.toBytes("sec")))));
    for (Map.Entry<String, Filter> filter : known.entrySet()) {
      filters.put(filter.getKey(), new Foreign(filter.getValue()));
    }
    return filters;
  }

  private static void scans(Table table) throws IOException {
    for (String name : filters().keySet()) {
      for (boolean reversed : new boolean[] {false, true}) {
        for (int variant = 0; variant < 6; variant++) {
          Scan scan = new Scan().setReversed(reversed).readVersions(variant % 2 == 0 ? 1 : 5);
          String form = name + (reversed ? ", reversed" : "");
          Filter filter = filters().get(name);
          switch (variant) {
            case 1 -> scan.setCaching(3);
            case 2 -> scan.setLimit(7);
            case 3 -> {
              if (filter.hasFilterRow()) {
                continue;
              }
              scan.setBatch(2);
            }
            case 4 -> scan.addColumn(A, PASSWORD).addFamily(B).setCaching(10);
            case 5 -> scan.setMaxResultsPerColumnFamily(2).setRowOffsetPerColumnFamily(1).setMaxResultSize(100);
            default -> { }
          }
          scan.setFilter(filter);
          say(form + ", variant " + variant, () -> digest(table, scan));
        }
      }
    }
    say("a batch with a filter of rows", () -> digest(table, new Scan().setBatch(2).setFilter(new PasswordStrength(4))));
    say("a time range", () -> digest(table, new Scan().setTimeRange(2, 4).setFilter(new SkipScan(3))));
    say("raw", () -> digest(table, new Scan().withStopRow(Bytes.toBytes("r030")).setRaw(true).readAllVersions()
        .setFilter(new Foreign(new PrefixFilter(Bytes.toBytes("r01"))))));
    say("from and to", () -> digest(table, new Scan().withStartRow(Bytes.toBytes("r050"), false)
        .withStopRow(Bytes.toBytes("r075"), true).setFilter(new PasswordStrength(4))));
  }

  /** The number of results and a hash of all of them, and the first ones. */
  private static String digest(Table table, Scan scan) throws IOException {
    StringBuilder all = new StringBuilder();
    int results = 0;
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result result : scanner) {
        all.append(text(result)).append(";");
        results++;
      }
    }
    String head = all.length() <= 90 ? all.toString() : all.substring(0, 90) + "...";
    return results + " results, " + Integer.toHexString(all.toString().hashCode()) + " " + head;
  }

  private static String text(Result result) {
    if (result.isEmpty()) {
      return "nothing";
    }
    StringBuilder text = new StringBuilder(Bytes.toString(result.getRow()));
    for (Cell cell : result.rawCells()) {
      text.append(' ').append(Bytes.toString(CellUtil.cloneFamily(cell))).append(':')
          .append(Bytes.toString(CellUtil.cloneQualifier(cell))).append('@')
          .append(cell.getTimestamp() > 1000 ? "now" : cell.getTimestamp()).append('=')
          .append(Bytes.toStringBinary(CellUtil.cloneValue(cell)));
    }
    return text.toString();
  }

  private static void rows(Table table) throws IOException {
    for (String name : filters().keySet()) {
      for (int row : new int[] {0, 15, 18, 30, 55}) {
        Get get = new Get(Bytes.toBytes(String.format("r%03d", row))).readVersions(2).setFilter(filters().get(name));
        say("get " + name + " " + row, () -> text(table.get(get)) + " " + table.exists(get));
      }
    }
    List<Get> gets = new ArrayList<>();
    for (int row = 0; row < 10; row++) {
      gets.add(new Get(Bytes.toBytes(String.format("r%03d", row))).setFilter(new PasswordStrength(3)));
    }
    say("gets", () -> Arrays.stream(table.get(gets)).map(UserCode::text).toList().toString());
    say("no such class", () -> text(table.get(new Get(A).setFilter(new Bad("unparsable")))).isEmpty() + "");
  }

  private static void checks(Table table) {
    byte[] row = Bytes.toBytes("r002");
    Put put = new Put(row).addColumn(B, Bytes.toBytes("checked"), Bytes.toBytes("yes"));
    for (int least : new int[] {1, 9}) {
      say("put if weak " + least, () -> {
        CheckAndMutate check = CheckAndMutate.newBuilder(row).ifMatches(new PasswordStrength(least)).build(put);
        return table.checkAndMutate(check).isSuccess() + " " + text(table.get(new Get(row)));
      });
    }
    for (String suffix : new String[] {"q", "r"}) {
      say("delete if suffix " + suffix, () -> {
        Filter filter = new SingleColumnValueFilter(A, PASSWORD, CompareOperator.EQUAL, new Suffix(Bytes.toBytes(suffix)));
        CheckAndMutate check = CheckAndMutate.newBuilder(row).ifMatches(filter)
            .build(new Delete(row).addColumns(B, Bytes.toBytes("checked")));
        return table.checkAndMutate(check).isSuccess() + " " + text(table.get(new Get(row)));
      });
    }
    say("put if weak, no such row", () -> {
      byte[] none = Bytes.toBytes("s");
      CheckAndMutate check = CheckAndMutate.newBuilder(none).ifMatches(new PasswordStrength(9))
          .build(new Put(none).addColumn(A, A, A));
      return table.checkAndMutate(check).isSuccess() + " " + text(table.get(new Get(none)));
    });
  }

  /**
   * Threads add one to a number, each by a condition that only a filter of its own judges: none is lost. The family has
   * one version: a filter is shown all that the family keeps.
   */
  private static void race(Table table) throws Exception {
    byte[] row = Bytes.toBytes("counter");
    table.put(new Put(row).addColumn(B, PASSWORD, Bytes.toBytes("0")));
    List<Thread> threads = new ArrayList<>();
    int each = 12;
    int writers = 8;
    for (int number = 0; number < writers; number++) {
      Thread thread = new Thread(() -> {
        try {
          for (int done = 0; done < each;) {
            String now = Bytes.toString(table.get(new Get(row)).getValue(B, PASSWORD));
            Filter same = new ValueFilter(CompareOperator.EQUAL, new Suffix(Bytes.toBytes(now)));
            FilterList exact = new FilterList(same,
                new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(Bytes.toBytes(now))));
            Put next = new Put(row).addColumn(B, PASSWORD, Bytes.toBytes(String.valueOf(Integer.parseInt(now) + 1)));
            if (table.checkAndMutate(CheckAndMutate.newBuilder(row).ifMatches(exact).build(next)).isSuccess()) {
              done++;
            }
          }
        } catch (IOException error) {
          System.out.println("race: " + error);
        }
      });
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println("race -> " + Bytes.toString(table.get(new Get(row)).getValue(B, PASSWORD)));
  }
}
