package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Makes the requests of an application of HBase 1.x, and prints each with its reply on one line.
 *
 * <p>Arguments: {@code zookeeper}, host and port.
 */
public final class Tour {
  private static final TableName NAME = TableName.valueOf("old");
  private static final byte[] F = toBytes("f");
  private static final byte[] Q = toBytes("q");

  private final Connection connection;
  private final Admin admin;
  private final Table table;

  private Tour(Connection connection) throws Exception {
    this.connection = connection;
    admin = connection.getAdmin();
    table = connection.getTable(NAME);
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", arguments[1]);
    conf.set("hbase.zookeeper.property.clientPort", arguments[2]);
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      Tour tour = new Tour(connection);
      tour.create();
      tour.rows();
      tour.batches();
      tour.scans();
      tour.tables();
      tour.drop();
    }
    System.out.println("tour done");
  }

  private void create() {
    ask("is it there", () -> admin.tableExists(NAME));
    ask("create", () -> {
      HTableDescriptor descriptor = new HTableDescriptor(NAME);
      descriptor.addFamily(new HColumnDescriptor(F).setMaxVersions(3));
      admin.createTable(descriptor, new byte[][] {toBytes("g"), toBytes("n")});
      return "done";
    });
    ask("create again", () -> {
      admin.createTable(new HTableDescriptor(NAME).addFamily(new HColumnDescriptor(F)));
      return "done";
    });
    ask("is it there now", () -> admin.tableExists(NAME));
    ask("is it available", () -> admin.isTableAvailable(NAME));
  }

  private void rows() {
    act("put", () -> table.put(put("a", "q", "v1")));
    act("put with a time", () -> table.put(new Put(toBytes("a")).addColumn(F, Q, 5, toBytes("old"))));
    act("puts", () -> table.put(Arrays.asList(put("b", "q", "v-b"), put("h", "q", "v-h"), put("o", "q", "v-o"))));
    ask("get", () -> table.get(get("a")));
    ask("get all versions", () -> table.get(get("a").setMaxVersions()));
    ask("get nothing", () -> table.get(get("nope")));
    ask("gets", () -> table.get(Arrays.asList(get("b"), get("o"), get("nope"))));
    ask("exists", () -> table.exists(get("b")) + " " + table.exists(get("zz")));
    ask("get of a family that is not there", () -> table.get(get("a").addFamily(toBytes("nof"))));
    act("put into a family that is not there", () -> table.put(new Put(toBytes("a")).addColumn(toBytes("nof"), Q, Q)));
    ask("get of a table that is not there", () -> connection.getTable(TableName.valueOf("nope")).get(get("a")));
    ask("increment", () -> table.increment(new Increment(toBytes("c")).addColumn(F, Q, 5)));
    ask("increment one value", () -> table.incrementColumnValue(toBytes("c"), F, Q, 2));
    ask("append", () -> table.append(new Append(toBytes("a")).add(F, Q, toBytes("+x"))));
    ask("put if equal", () -> table.checkAndPut(toBytes("a"), F, Q, toBytes("v1+x"), put("a", "q", "v2")));
    ask("put if equal, and it is not", () -> table.checkAndPut(toBytes("a"), F, Q, toBytes("v1"), put("a", "q", "v3")));
    ask("put if absent", () -> table.checkAndPut(toBytes("a"), F, toBytes("new"), null, put("a", "new", "1")));
    ask("delete if equal", () -> table.checkAndDelete(toBytes("a"), F, toBytes("new"), toBytes("1"), new Delete(toBytes("a")).addColumns(F, toBytes("new"))));
    act("mutations of a row", () -> {
      RowMutations mutations = new RowMutations(toBytes("b"));
      mutations.add(put("b", "q2", "w"));
      mutations.add(new Delete(toBytes("b")).addColumns(F, Q));
      table.mutateRow(mutations);
    });
    ask("after all", () -> table.get(Arrays.asList(get("a"), get("b"))));
    act("delete", () -> table.delete(new Delete(toBytes("b"))));
    ask("what it left", () -> table.get(get("b")));
  }

  private void batches() {
    ask("batch", () -> batch(put("d", "q", "1"), get("a"), new Delete(toBytes("o")), new Increment(toBytes("c")).addColumn(F, Q, 1)));
    ask("batch with a failure", () -> batch(put("e", "q", "1"), new Put(toBytes("e")).addColumn(toBytes("nof"), Q, Q)));
    ask("what that left", () -> table.get(get("e")));
    act("buffered puts", () -> {
      try (BufferedMutator mutator = connection.getBufferedMutator(NAME)) {
        for (int number = 0; number < 2_000; number++) {
          mutator.mutate(put(String.format("m%05d", number), "q", "v"));
        }
      }
    });
  }

  private Object batch(Row... actions) throws Exception {
    Object[] results = new Object[actions.length];
    table.batch(Arrays.asList(actions), results);
    return Arrays.asList(results);
  }

  private void scans() {
    Scan range = new Scan(toBytes("a"), toBytes("i"));
    ask("scan", () -> table.getScanner(new Scan(range)));
    ask("two at a time", () -> table.getScanner(new Scan(range).setCaching(2)));
    ask("small", () -> table.getScanner(new Scan(range).setSmall(true)));
    ask("reversed", () -> table.getScanner(new Scan(toBytes("i"), toBytes("a")).setReversed(true)));
    ask("small and reversed", () -> table.getScanner(new Scan(toBytes("i"), toBytes("a")).setReversed(true).setSmall(true)));
    ask("batch of one cell", () -> table.getScanner(new Scan(range).setBatch(1)));
    ask("prefix", () -> table.getScanner(new Scan().setFilter(new PrefixFilter(toBytes("h")))));
    ask("all versions", () -> table.getScanner(new Scan(toBytes("a"), toBytes("b")).setMaxVersions()));
    ask("rows", () -> count(new Scan()));
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

  private void tables() {
    ask("tables", () -> Arrays.asList(admin.listTableNames()));
    ask("versions", () -> admin.getTableDescriptor(NAME).getFamily(F).getMaxVersions());
    ask("servers", () -> admin.getClusterStatus().getServersSize());
    ask("regions", () -> admin.getTableRegions(NAME).size());
    act("flush", () -> admin.flush(NAME));
    act("compact", () -> admin.compact(NAME));
    // The call that splits does not exist in HBase 2.
    act("split", () -> admin.split(NAME, toBytes("d")));
    ask("is it enabled", () -> admin.isTableEnabled(NAME));
  }

  private void drop() {
    act("drop what is enabled", () -> admin.deleteTable(NAME));
    act("disable", () -> admin.disableTable(NAME));
    ask("is it disabled", () -> admin.isTableDisabled(NAME));
    act("enable", () -> admin.enableTable(NAME));
    ask("rows after it", () -> count(new Scan()));
    act("disable again", () -> admin.disableTable(NAME));
    act("drop", () -> admin.deleteTable(NAME));
    ask("is it gone", () -> !admin.tableExists(NAME));
  }

  private static Put put(String row, String qualifier, String value) {
    return new Put(toBytes(row)).addColumn(F, toBytes(qualifier), toBytes(value));
  }

  private static Get get(String row) {
    return new Get(toBytes(row));
  }

  /** A request without a reply. */
  private interface Action {
    void run() throws Exception;
  }

  private static void act(String what, Action action) {
    ask(what, () -> {
      action.run();
      return "done";
    });
  }

  private static void ask(String what, Callable<Object> question) {
    String answer;
    try {
      answer = show(question.call());
    } catch (Exception error) {
      answer = "throws " + name(error);
    }
    System.out.println(what + " -> " + answer);
  }

  /** The class of an exception, or the class of each failure that a batch reports. */
  private static String name(Throwable error) {
    if (!(error instanceof RetriesExhaustedWithDetailsException)) {
      return error.getClass().getSimpleName();
    }
    List<String> causes = new ArrayList<>();
    for (Throwable cause : ((RetriesExhaustedWithDetailsException) error).getCauses()) {
      causes.add(cause.getClass().getSimpleName());
    }
    return causes.toString();
  }

  private static String show(Object answer) throws Exception {
    if (answer instanceof Result) {
      return show((Result) answer);
    }
    if (answer instanceof Object[]) {
      return show(Arrays.asList((Object[]) answer));
    }
    if (answer instanceof ResultScanner) {
      try (ResultScanner scanner = (ResultScanner) answer) {
        return showAll(scanner);
      }
    }
    return answer instanceof List ? showAll((List<?>) answer) : String.valueOf(answer);
  }

  private static String showAll(Iterable<?> answers) throws Exception {
    List<String> shown = new ArrayList<>();
    for (Object answer : answers) {
      shown.add(show(answer));
    }
    return shown.toString();
  }

  /** A row and its cells in the order of the reply, without timestamps that the server assigned. */
  private static String show(Result result) {
    if (result.isEmpty()) {
      return "nothing";
    }
    StringBuilder shown = new StringBuilder(Bytes.toStringBinary(result.getRow()));
    for (Cell cell : result.rawCells()) {
      shown
          .append(' ')
          .append(Bytes.toStringBinary(CellUtil.cloneFamily(cell)))
          .append(':')
          .append(Bytes.toStringBinary(CellUtil.cloneQualifier(cell)))
          .append(cell.getTimestamp() < 1_000_000 ? "@" + cell.getTimestamp() : "")
          .append('=')
          .append(Bytes.toStringBinary(CellUtil.cloneValue(cell)));
    }
    return shown.toString();
  }
}
