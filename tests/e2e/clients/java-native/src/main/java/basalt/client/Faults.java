package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
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
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Arms faults of an ephemeral server and makes requests that meet them: HBase's client must hide
 * each fault from its user, with the right results.
 *
 * <p>Arguments: those of {@link Tour}, and the address of the HTTP port.
 */
public final class Faults {
  private static final TableName NAME = TableName.valueOf("faults");
  private static final byte[] F = toBytes("f");
  private static final byte[] Q = toBytes("q");
  private static final int ROWS = 10;

  private final HttpClient client = HttpClient.newHttpClient();
  private final URI faults;
  private final Connection connection;
  private final Table table;

  private Faults(Connection connection, String http) throws Exception {
    this.connection = connection;
    this.table = connection.getTable(NAME);
    this.faults = URI.create("http://" + http + "/test/faults");
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = Tour.configuration(arguments);
    conf.setInt("hbase.client.pause", 10);
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      Faults faults = new Faults(connection, arguments[3]);
      faults.create();
      faults.single();
      faults.batches();
      faults.counters();
      faults.delays();
      faults.scans();
      try (AsyncConnection async = ConnectionFactory.createAsyncConnection(conf).get()) {
        faults.async(async.getTable(NAME));
      }
    }
    System.out.println("faults survived");
  }

  private void create() throws Exception {
    try (Admin admin = connection.getAdmin()) {
      admin.createTable(
          TableDescriptorBuilder.newBuilder(NAME)
              .setColumnFamily(ColumnFamilyDescriptorBuilder.of(F))
              .build());
    }
    for (int number = 0; number < ROWS; number++) {
      table.put(put("row-" + number, "v" + number));
    }
  }

  private static Put put(String row, String value) {
    return new Put(toBytes(row)).addColumn(F, Q, toBytes(value));
  }

  private String value(String row) throws Exception {
    return Bytes.toString(table.get(new Get(toBytes(row))).getValue(F, Q));
  }

  /** Gets, puts and deletes: a busy region three times, one that is elsewhere, lost connections. */
  private void single() throws Exception {
    String[] each = {
      "\"region_too_busy\", \"calls\": 3",
      "\"not_serving_region\", \"calls\": 1",
      "\"drop_connection\", \"calls\": 1",
      "\"drop_reply\", \"calls\": 1",
    };
    for (String fault : each) {
      expect("v3", meet("\"Get\", \"fault\": " + fault, () -> value("row-3")));
      meet("\"Mutate\", \"fault\": " + fault, () -> write(put("new", fault)));
      expect(fault, value("new"));
      meet("\"*\", \"fault\": " + fault, () -> write(new Delete(toBytes("new"))));
      expect(null, value("new"));
    }
  }

  private Object write(Put put) throws Exception {
    table.put(put);
    return null;
  }

  private Object write(Delete delete) throws Exception {
    table.delete(delete);
    return null;
  }

  /** Batches, which are calls of Multi. */
  private void batches() throws Exception {
    String[] each = {
      "\"region_too_busy\", \"calls\": 3",
      "\"not_serving_region\", \"calls\": 1",
      "\"drop_connection\", \"calls\": 1",
    };
    for (String fault : each) {
      Result[] found =
          meet(
              "\"Multi\", \"fault\": " + fault,
              () -> table.get(List.of(new Get(toBytes("row-1")), new Get(toBytes("row-8")))));
      expect("v1 v8", Bytes.toString(found[0].getValue(F, Q)) + " " + Bytes.toString(found[1].getValue(F, Q)));
      meet(
          "\"Multi\", \"fault\": " + fault,
          () -> {
            table.put(List.of(put("b1", fault), put("b2", fault)));
            return null;
          });
      expect(fault + fault, value("b1") + value("b2"));
      table.delete(new ArrayList<>(List.of(new Delete(toBytes("b1")), new Delete(toBytes("b2")))));
    }
  }

  /** An increment whose reply is lost is repeated by the client and applied once. */
  private void counters() throws Exception {
    byte[] row = toBytes("counter");
    long one = meet("\"Mutate\", \"fault\": \"drop_reply\", \"calls\": 1", () -> table.incrementColumnValue(row, F, Q, 1));
    expect(1L, one);
    long two =
        meet("\"Mutate\", \"fault\": \"region_too_busy\", \"calls\": 3", () -> table.incrementColumnValue(row, F, Q, 1));
    expect(2L, two);
    table.delete(new Delete(row));
  }

  /** A call that takes longer than its timeout is repeated. */
  private void delays() throws Exception {
    try (Table impatient = connection.getTableBuilder(NAME, null).setReadRpcTimeout(500).setRpcTimeout(500).build()) {
      Result found =
          meet(
              "\"Get\", \"fault\": \"delay\", \"calls\": 1, \"delay_ms\": 5000",
              () -> impatient.get(new Get(toBytes("row-5"))));
      expect("v5", Bytes.toString(found.getValue(F, Q)));
    }
  }

  /** Scans whose region is busy, moves, and is split twice, and that lose their connection. */
  private void scans() throws Exception {
    String[] each = {
      "\"region_too_busy\", \"calls\": 3",
      "\"not_serving_region\", \"calls\": 1",
      "\"drop_connection\", \"calls\": 1",
      "\"move\", \"calls\": 1",
      "\"split\", \"calls\": 1",
      "\"split\", \"calls\": 1, \"split_row\": \"row-7\"",
    };
    for (String fault : each) {
      expect(all(), meet("\"Scan\", \"fault\": " + fault, () -> scan(new Scan().setCaching(2))));
    }
    try (Admin admin = connection.getAdmin()) {
      expect(3, admin.getRegions(NAME).size());
    }
    List<String> reversed = all();
    java.util.Collections.reverse(reversed);
    expect(
        reversed,
        meet("\"Scan\", \"fault\": \"move\", \"calls\": 1", () -> scan(new Scan().setCaching(2).setReversed(true))));
  }

  private static List<String> all() {
    List<String> rows = new ArrayList<>();
    for (int number = 0; number < ROWS; number++) {
      rows.add("row-" + number + "=v" + number);
    }
    return rows;
  }

  private List<String> scan(Scan scan) throws Exception {
    List<String> rows = new ArrayList<>();
    try (ResultScanner scanner = table.getScanner(scan)) {
      scanner.forEach(result -> rows.add(shown(result)));
    }
    return rows;
  }

  private static String shown(Result result) {
    return Bytes.toString(result.getRow()) + "=" + Bytes.toString(result.getValue(F, Q));
  }

  /** Faults with the asynchronous client, whose retries have code of their own. */
  private void async(AsyncTable<?> table) throws Exception {
    String[] each = {
      "\"region_too_busy\", \"calls\": 3",
      "\"not_serving_region\", \"calls\": 1",
      "\"drop_connection\", \"calls\": 1",
    };
    for (String fault : each) {
      Result found = meet("\"Get\", \"fault\": " + fault, () -> table.get(new Get(toBytes("row-4"))).get());
      expect("v4", Bytes.toString(found.getValue(F, Q)));
      meet("\"Multi\", \"fault\": " + fault, () -> table.putAll(List.of(put("row-0", "v0"), put("row-9", "v9"))).get());
    }
    for (String fault : List.of("\"drop_connection\"", "\"move\"", "\"split\", \"split_row\": \"row-5\"")) {
      List<String> rows = new ArrayList<>();
      meet(
          "\"Scan\", \"calls\": 1, \"fault\": " + fault,
          () -> {
            try (ResultScanner scanner = table.getScanner(new Scan().setCaching(2))) {
              scanner.forEach(result -> rows.add(shown(result)));
            }
            return null;
          });
      expect(all(), rows);
    }
  }

  /** Arms a fault, makes a request, and checks that the fault has happened. */
  private <T> T meet(String fault, Callable<T> request) throws Exception {
    send(HttpRequest.BodyPublishers.ofString("{\"faults\": [{\"method\": " + fault + "}]}"));
    T result;
    try {
      result = request.call();
    } catch (Exception error) {
      throw new AssertionError(fault + " was not survived", error);
    }
    String left = send(null);
    if (!left.contains("\"faults\":[]")) {
      throw new AssertionError(fault + " did not happen: " + left);
    }
    return result;
  }

  /** Posts the body, or else gets the armed faults. */
  private String send(HttpRequest.BodyPublisher body) throws Exception {
    HttpRequest.Builder request = HttpRequest.newBuilder(faults);
    HttpResponse<String> response =
        client.send(
            (body == null ? request.GET() : request.POST(body)).build(), HttpResponse.BodyHandlers.ofString());
    expect("200 " + response.body(), response.statusCode() + " " + response.body());
    return response.body();
  }

  private static void expect(Object expected, Object found) {
    if (!java.util.Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }
}
