package basalt.client;

import com.stumbleupon.async.Deferred;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import org.hbase.async.AppendRequest;
import org.hbase.async.AtomicIncrementRequest;
import org.hbase.async.BinaryComparator;
import org.hbase.async.CompareFilter.CompareOp;
import org.hbase.async.Config;
import org.hbase.async.DeleteRequest;
import org.hbase.async.GetRequest;
import org.hbase.async.GetResultOrException;
import org.hbase.async.HBaseClient;
import org.hbase.async.KeyValue;
import org.hbase.async.PutRequest;
import org.hbase.async.RegionLocation;
import org.hbase.async.Scanner;
import org.hbase.async.ValueFilter;

/**
 * Makes the requests that asynchbase has, and prints each with its reply on one line.
 *
 * <p>Arguments: {@code zookeeper}, host, port, and a file of properties if there is one. The table {@code at} with the family {@code f} and the split keys
 * {@code g} and {@code n} exists and is empty: asynchbase has no calls for tables.
 */
public final class Tour {
  private static final String TABLE = "at";
  private static final String F = "f";
  private static final String Q = "q";

  /** Longest wait for a reply. */
  private static final long REPLY_MS = 30_000;

  private final HBaseClient client;

  private Tour(HBaseClient client) {
    this.client = client;
  }

  public static void main(String[] arguments) throws Exception {
    Config config = arguments.length > 3 ? new Config(arguments[3]) : new Config();
    config.overrideConfig("hbase.zookeeper.quorum", arguments[1] + ":" + arguments[2]);
    HBaseClient client = new HBaseClient(config);
    // Writes are sent at once.
    client.setFlushInterval((short) 0);
    Tour tour = new Tour(client);
    tour.look();
    tour.rows();
    tour.batches();
    tour.scans();
    wait(client.shutdown());
    System.out.println("tour done");
  }

  private void look() {
    act("is it there", () -> client.ensureTableFamilyExists(TABLE, F));
    act("is its family there", () -> client.ensureTableFamilyExists(TABLE, "nof"));
    act("is another there", () -> client.ensureTableExists("nope"));
    ask("regions", () -> {
      List<String> keys = new ArrayList<>();
      for (RegionLocation region : wait(client.locateRegions(TABLE))) {
        keys.add(text(region.startKey()) + ".." + text(region.stopKey()));
      }
      return keys;
    });
  }

  private void rows() {
    act("put", () -> client.put(put("a", Q, "v1")));
    act("put with a time", () -> client.put(new PutRequest(bytes(TABLE), bytes("a"), bytes(F), bytes(Q), bytes("old"), 5)));
    act("put of two columns", () -> client.put(new PutRequest(bytes(TABLE), bytes("h"), bytes(F), new byte[][] {bytes("x"), bytes("y")}, new byte[][] {bytes("1"), bytes("2")})));
    ask("get", () -> wait(client.get(new GetRequest(TABLE, "a"))));
    ask("get all versions", () -> wait(client.get(new GetRequest(TABLE, "a").maxVersions(9))));
    ask("get a time", () -> wait(client.get(new GetRequest(TABLE, "a").maxVersions(9).setTimeRange(0, 10))));
    ask("get a column", () -> wait(client.get(new GetRequest(TABLE, "h", F, "y"))));
    ask("get nothing", () -> wait(client.get(new GetRequest(TABLE, "nope"))));
    ask("get of a family that is not there", () -> wait(client.get(new GetRequest(TABLE, "a", "nof"))));
    act("put into a family that is not there", () -> client.put(new PutRequest(TABLE, "a", "nof", Q, "v")));
    ask("get of a table that is not there", () -> wait(client.get(new GetRequest("nope", "a"))));
    ask("increment", () -> wait(client.atomicIncrement(new AtomicIncrementRequest(TABLE, "n", F, Q, 5))));
    ask("increment again", () -> wait(client.atomicIncrement(new AtomicIncrementRequest(TABLE, "n", F, Q, 2))));
    ask("append", () -> {
      AppendRequest append = new AppendRequest(TABLE, "a", F, Q, "+x");
      append.returnResult(true);
      return ((KeyValue) wait(client.append(append)));
    });
    act("append without results", () -> client.append(new AppendRequest(TABLE, "a", F, Q, "y")));
    ask("put if equal", () -> wait(client.compareAndSet(put("a", Q, "v2"), "v1+xy")));
    ask("put if equal, and it is not", () -> wait(client.compareAndSet(put("a", Q, "v3"), "v1")));
    ask("put if absent", () -> wait(client.atomicCreate(put("a", "new", "1"))));
    ask("put if absent, and it is not", () -> wait(client.atomicCreate(put("a", "new", "2"))));
    act("delete a column", () -> client.delete(new DeleteRequest(TABLE, "a", F, "new")));
    ask("what it left", () -> wait(client.get(new GetRequest(TABLE, "a"))));
    act("delete a row", () -> client.delete(new DeleteRequest(TABLE, "h")));
    ask("what that left", () -> wait(client.get(new GetRequest(TABLE, "h"))));
  }

  private void batches() {
    act("puts", () -> {
      // Writes wait for others, and go out together.
      client.setFlushInterval((short) 20);
      List<Deferred<Object>> puts = new ArrayList<>();
      for (int number = 0; number < 500; number++) {
        puts.add(client.put(put(String.format("%c%03d", "bhp".charAt(number % 3), number), Q, "v" + number)));
      }
      return Deferred.group(puts);
    });
    ask("gets", () -> {
      List<Object> rows = new ArrayList<>();
      List<GetRequest> gets = Arrays.asList(new GetRequest(TABLE, "a"), new GetRequest(TABLE, "p500"), new GetRequest(TABLE, "h001"));
      for (GetResultOrException row : wait(client.get(gets))) {
        rows.add(row.getCells());
      }
      return rows;
    });
  }

  private void scans() {
    ask("scan", () -> count(client.newScanner(TABLE)));
    ask("three rows at a time", () -> {
      Scanner scanner = client.newScanner(TABLE);
      scanner.setMaxNumRows(3);
      return count(scanner);
    });
    ask("range", () -> {
      Scanner scanner = client.newScanner(TABLE);
      scanner.setStartKey("h001");
      scanner.setStopKey("h011");
      return rows(scanner);
    });
    ask("reversed", () -> {
      Scanner scanner = client.newScanner(TABLE);
      scanner.setReversed(true);
      scanner.setStartKey("h011");
      scanner.setStopKey("h001");
      return rows(scanner);
    });
    ask("rows that match", () -> {
      Scanner scanner = client.newScanner(TABLE);
      scanner.setFamily(F);
      scanner.setKeyRegexp("^.1.0$", StandardCharsets.ISO_8859_1);
      return rows(scanner);
    });
    ask("values that match", () -> {
      Scanner scanner = client.newScanner(TABLE);
      scanner.setFilter(new ValueFilter(CompareOp.EQUAL, new BinaryComparator(bytes("v42"))));
      return rows(scanner);
    });
    ask("all versions", () -> {
      Scanner scanner = client.newScanner(TABLE);
      scanner.setStopKey("b");
      scanner.setMaxVersions(9);
      return rows(scanner);
    });
    ask("closed early", () -> {
      Scanner scanner = client.newScanner(TABLE);
      int rows = wait(scanner.nextRows(5)).size();
      wait(scanner.close());
      return rows;
    });
    ask("a family that is not there", () -> {
      Scanner scanner = client.newScanner(TABLE);
      scanner.setFamily("nof");
      return rows(scanner);
    });
  }

  private static PutRequest put(String row, String qualifier, String value) {
    return new PutRequest(TABLE, row, F, qualifier, value);
  }

  private static int count(Scanner scanner) throws Exception {
    return rows(scanner).size();
  }

  private static List<Object> rows(Scanner scanner) throws Exception {
    List<Object> rows = new ArrayList<>();
    ArrayList<ArrayList<KeyValue>> some;
    while ((some = wait(scanner.nextRows())) != null) {
      rows.addAll(some);
    }
    return rows;
  }

  private static <T> T wait(Deferred<T> reply) throws Exception {
    return reply.joinUninterruptibly(REPLY_MS);
  }

  private static void act(String what, Callable<Deferred<?>> request) {
    ask(what, () -> {
      wait(request.call());
      return "done";
    });
  }

  private static void ask(String what, Callable<Object> question) {
    String answer;
    try {
      answer = show(question.call());
    } catch (Exception error) {
      answer = "throws " + error.getClass().getSimpleName();
    }
    System.out.println(what + " -> " + answer);
  }

  private static String show(Object answer) {
    if (answer instanceof List) {
      List<String> shown = new ArrayList<>();
      for (Object one : (List<?>) answer) {
        shown.add(show(one));
      }
      return shown.toString();
    }
    return answer instanceof KeyValue ? show((KeyValue) answer) : String.valueOf(answer);
  }

  /** A cell, without a timestamp that the server assigned. */
  private static String show(KeyValue cell) {
    String time = cell.timestamp() < 1_000_000 ? "@" + cell.timestamp() : "";
    return text(cell.key()) + " " + text(cell.family()) + ":" + text(cell.qualifier()) + time + "=" + text(cell.value());
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.ISO_8859_1);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }
}
