package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.util.Bytes;

/** Calls about one row or a list of rows; leaves nothing behind. */
final class Rows {
  private static final TableName TABLE = TableName.valueOf("java-rows");
  private static final byte[] F = toBytes("f");
  private static final byte[] G = toBytes("g");
  private static final byte[] Q = toBytes("q");

  private final Connection connection;
  private final Transcript transcript;
  private Table table;

  Rows(Connection connection, Transcript transcript) {
    this.connection = connection;
    this.transcript = transcript;
  }

  void run() throws IOException {
    try (var admin = connection.getAdmin()) {
      admin.createTable(
          TableDescriptorBuilder.newBuilder(TABLE)
              .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).setMaxVersions(4).build())
              .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(G).build())
              .build());
      table = connection.getTable(TABLE);
      putAndGet();
      batches();
      deletes();
      counters();
      checks();
      table.close();
      admin.disableTable(TABLE);
      admin.deleteTable(TABLE);
    }
  }

  private static Put put(String row, byte[] family, String qualifier, long time, String value) {
    return new Put(toBytes(row)).addColumn(family, toBytes(qualifier), time, toBytes(value));
  }

  private static Get all(String row) throws IOException {
    return new Get(toBytes(row)).readAllVersions();
  }

  private void putAndGet() {
    transcript.chapter("put and get");
    transcript.act("put", () -> table.put(put("r", F, "q", 10, "ten")));
    transcript.act("put older", () -> table.put(put("r", F, "q", 5, "five")));
    transcript.act("put newer", () -> table.put(put("r", F, "q", 20, "twenty")));
    transcript.act(
        "put several cells",
        () ->
            table.put(
                new Put(toBytes("r"), 15)
                    .addColumn(G, Q, toBytes("g"))
                    .addColumn(F, toBytes("other"), new byte[0])
                    .addColumn(F, new byte[] {0, (byte) 0xff}, new byte[] {(byte) 0x80, 10})
                    .setDurability(Durability.FSYNC_WAL)
                    .setAttribute("note", toBytes("kept by nobody"))));
    transcript.act("put now", () -> table.put(new Put(toBytes("s")).addColumn(F, Q, toBytes("v"))));
    transcript.ask("get", () -> table.get(new Get(toBytes("r"))));
    transcript.ask("get all versions", () -> table.get(all("r")));
    transcript.ask("get two versions", () -> table.get(new Get(toBytes("r")).readVersions(2)));
    transcript.ask("get a family", () -> table.get(new Get(toBytes("r")).addFamily(G)));
    transcript.ask("get a column", () -> table.get(all("r").addColumn(F, Q)));
    transcript.ask("get two columns", () -> table.get(all("r").addColumn(F, Q).addFamily(G)));
    transcript.ask("get a time range", () -> table.get(all("r").setTimeRange(5, 20)));
    transcript.ask("get a timestamp", () -> table.get(all("r").setTimestamp(10)));
    transcript.ask(
        "get with offset and limit",
        () -> table.get(new Get(toBytes("r")).setRowOffsetPerColumnFamily(1).setMaxResultsPerColumnFamily(1)));
    transcript.ask("get with a filter", () -> table.get(all("r").setFilter(new ColumnPrefixFilter(toBytes("ot")))));
    transcript.ask("get of a time of the server", () -> table.get(new Get(toBytes("s"))));
    transcript.ask("get of nothing", () -> table.get(new Get(toBytes("absent"))));
    transcript.ask("exists", () -> table.exists(new Get(toBytes("r"))));
    transcript.ask("exists not", () -> table.exists(new Get(toBytes("r")).addColumn(G, toBytes("absent"))));
  }

  private void batches() {
    transcript.chapter("batches");
    List<Put> puts = new ArrayList<>();
    List<Get> gets = new ArrayList<>();
    for (int number = 0; number < 5; number++) {
      puts.add(put("b" + number, F, "q", number, "value " + number));
      gets.add(new Get(toBytes("b" + 2 * number)));
    }
    transcript.act("put", () -> table.put(puts));
    transcript.ask("get", () -> table.get(gets));
    transcript.ask("exist", () -> table.exists(gets));
    List<Delete> deletes = new ArrayList<>(Arrays.asList(new Delete(toBytes("b0")), new Delete(toBytes("absent"))));
    transcript.act("delete", () -> table.delete(deletes));
    transcript.ask("get", () -> table.get(gets));
    transcript.act("batch", () -> table.batch(puts, new Object[5]));
    transcript.ask("get none", () -> table.get(List.of()));
  }

  private void deletes() {
    transcript.chapter("deletes");
    for (long time = 1; time <= 4; time++) {
      long at = time;
      transcript.act("put", () -> table.put(put("d", F, "q", at, "v" + at).addColumn(G, Q, at, toBytes("g" + at))));
    }
    transcript.act("a version", () -> table.delete(new Delete(toBytes("d")).addColumn(F, Q, 3)));
    transcript.ask("get", () -> table.get(all("d")));
    transcript.act("the newest version", () -> table.delete(new Delete(toBytes("d")).addColumn(F, Q)));
    transcript.ask("get", () -> table.get(all("d")));
    transcript.act("versions up to", () -> table.delete(new Delete(toBytes("d")).addColumns(F, Q, 1)));
    transcript.ask("get", () -> table.get(all("d")));
    transcript.act("a column", () -> table.delete(new Delete(toBytes("d")).addColumns(F, Q)));
    transcript.ask("get", () -> table.get(all("d")));
    transcript.act("a family's version", () -> table.delete(new Delete(toBytes("d")).addFamilyVersion(G, 4)));
    transcript.ask("get", () -> table.get(all("d")));
    transcript.act("put", () -> table.put(put("d", G, "p", 9, "p")));
    transcript.act("a family up to", () -> table.delete(new Delete(toBytes("d")).addFamily(G, 8)));
    transcript.ask("get", () -> table.get(all("d")));
    transcript.act("a row up to", () -> table.delete(new Delete(toBytes("r"), 15)));
    transcript.ask("get", () -> table.get(all("r")));
    transcript.act("a row", () -> table.delete(new Delete(toBytes("d"))));
    transcript.ask("get", () -> table.get(all("d")));
  }

  private void counters() {
    transcript.chapter("increment and append");
    transcript.ask("increment", () -> table.increment(new Increment(toBytes("c")).addColumn(F, Q, 5)));
    transcript.ask(
        "increment two", () -> table.increment(new Increment(toBytes("c")).addColumn(F, Q, -7).addColumn(G, Q, 1)));
    transcript.ask("increment by nothing", () -> table.increment(new Increment(toBytes("c")).addColumn(F, Q, 0)));
    transcript.ask(
        "without a result",
        () -> table.increment(new Increment(toBytes("c")).addColumn(F, Q, 1).setReturnResults(false)));
    transcript.ask("one column", () -> table.incrementColumnValue(toBytes("c"), F, Q, 100));
    transcript.ask(
        "one column, durable", () -> table.incrementColumnValue(toBytes("c"), F, Q, 1, Durability.SYNC_WAL));
    transcript.ask("get", () -> table.get(new Get(toBytes("c"))));
    transcript.ask("append", () -> table.append(new Append(toBytes("a")).addColumn(F, Q, toBytes("one"))));
    transcript.ask(
        "append two",
        () ->
            table.append(
                new Append(toBytes("a")).addColumn(F, Q, toBytes(" two")).addColumn(G, Q, toBytes("new"))));
    transcript.ask(
        "without a result",
        () -> table.append(new Append(toBytes("a")).addColumn(F, Q, toBytes("!")).setReturnResults(false)));
    transcript.ask("get", () -> table.get(new Get(toBytes("a"))));
  }

  private void checks() {
    transcript.chapter("check and mutate");
    byte[] row = toBytes("k");
    transcript.act("put", () -> table.put(put("k", F, "q", 1, "m")));
    for (CompareOperator operator : CompareOperator.values()) {
      // Asked once: no server compares so, and HBase's gateway takes its time to find out.
      String[] values = operator == CompareOperator.NO_OP ? new String[] {"m"} : new String[] {"l", "m", "n"};
      for (String value : values) {
        transcript.ask(
            "put if " + value + " " + operator + " the value",
            () ->
                table
                    .checkAndMutate(row, F)
                    .qualifier(Q)
                    .ifMatches(operator, toBytes(value))
                    .thenPut(put("k", G, operator + value, 1, "written")));
      }
    }
    transcript.ask("get", () -> table.get(new Get(row)));
    transcript.ask(
        "delete if",
        () ->
            table
                .checkAndMutate(row, F)
                .qualifier(Q)
                .ifEquals(toBytes("m"))
                .thenDelete(new Delete(row).addFamily(G)));
    RowMutations mutations = new RowMutations(row);
    transcript.ask(
        "mutate if",
        () -> {
          mutations.add(put("k", F, "p", 7, "both"));
          mutations.add(new Delete(row).addColumns(F, Q));
          return table.checkAndMutate(row, F).qualifier(Q).ifEquals(toBytes("m")).thenMutate(mutations);
        });
    transcript.ask("get", () -> table.get(new Get(row)));
    transcript.ask(
        "put if absent",
        () ->
            table
                .checkAndMutate(toBytes("i"), F)
                .qualifier(Q)
                .ifNotExists()
                .thenPut(put("i", F, "q", 9, "there")));
    transcript.ask(
        "mutate a row",
        () -> {
          RowMutations both = new RowMutations(row);
          both.add(put("k", F, "z", 8, "z"));
          both.add(new Delete(row).addColumns(F, Bytes.toBytes("p")));
          table.mutateRow(both);
          return table.get(new Get(row));
        });
  }
}
