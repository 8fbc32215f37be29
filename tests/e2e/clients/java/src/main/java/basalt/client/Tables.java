package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.LogQueryFilter;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/** Namespaces, tables and families; leaves nothing behind. */
final class Tables {
  private static final TableName TABLE = TableName.valueOf("java", "tables");

  private final Connection connection;
  private final Admin admin;
  private final Transcript transcript;

  Tables(Connection connection, Transcript transcript) throws IOException {
    this.connection = connection;
    this.admin = connection.getAdmin();
    this.transcript = transcript;
  }

  void run() throws IOException {
    namespaces();
    create();
    families();
    states();
    remove();
    admin.close();
  }

  private void namespaces() {
    transcript.chapter("namespaces");
    transcript.ask("namespaces at first", admin::listNamespaces);
    NamespaceDescriptor.Builder builder = NamespaceDescriptor.create("java");
    transcript.act("create", () -> admin.createNamespace(builder.addConfiguration("a", "1").build()));
    transcript.ask("namespaces", admin::listNamespaces);
    transcript.ask("descriptors", () -> Arrays.toString(admin.listNamespaceDescriptors()));
    transcript.ask("configuration", this::namespaceConfiguration);
    NamespaceDescriptor changed = builder.removeConfiguration("a").addConfiguration("b", "2").build();
    transcript.act("modify", () -> admin.modifyNamespace(changed));
    transcript.ask("configuration", this::namespaceConfiguration);
    transcript.ask("no tables", () -> admin.listTableNamesByNamespace("java"));
  }

  private Object namespaceConfiguration() throws IOException {
    return new TreeMap<>(admin.getNamespaceDescriptor("java").getConfiguration());
  }

  private void create() {
    transcript.chapter("create");
    ColumnFamilyDescriptor plain = ColumnFamilyDescriptorBuilder.of("plain");
    ColumnFamilyDescriptor rich =
        ColumnFamilyDescriptorBuilder.newBuilder(toBytes("rich"))
            .setMaxVersions(7)
            .setMinVersions(2)
            .setTimeToLive(86_400)
            .setKeepDeletedCells(KeepDeletedCells.TTL)
            .setDataBlockEncoding(DataBlockEncoding.FAST_DIFF)
            .setBloomFilterType(BloomType.ROWCOL)
            .setBlocksize(32 * 1024)
            .setInMemory(true)
            .setScope(1)
            .setBlockCacheEnabled(false)
            .setCacheBloomsOnWrite(true)
            .setValue("application", "kept")
            .build();
    TableDescriptor table =
        TableDescriptorBuilder.newBuilder(TABLE)
            .setColumnFamily(plain)
            .setColumnFamily(rich)
            .setDurability(Durability.SYNC_WAL)
            .setValue("owner", "tour")
            .build();
    byte[][] splits = {toBytes("d"), toBytes("h"), {(byte) 0x80, 0}};
    transcript.ask("exists before", () -> admin.tableExists(TABLE));
    transcript.act("create", () -> admin.createTable(table, splits));
    transcript.ask("exists", () -> admin.tableExists(TABLE));
    transcript.ask("enabled", () -> admin.isTableEnabled(TABLE));
    transcript.ask("disabled", () -> admin.isTableDisabled(TABLE));
    transcript.ask("available", () -> admin.isTableAvailable(TABLE));
    transcript.ask("available with its splits", () -> admin.isTableAvailable(TABLE, splits));
    transcript.ask(
        "available with others", () -> admin.isTableAvailable(TABLE, new byte[][] {toBytes("x")}));
    transcript.ask("names", () -> admin.listTableNamesByNamespace("java"));
    transcript.ask("names by pattern", () -> admin.listTableNames(Pattern.compile("java:t.*"), false));
    transcript.ask("no names by pattern", () -> admin.listTableNames(Pattern.compile("t.*"), false));
    transcript.ask("system tables", () -> admin.listTableNames(Pattern.compile("hbase:.*"), true));
    descriptor("descriptor", () -> admin.getDescriptor(TABLE));
    descriptor("descriptor by table", () -> connection.getTable(TABLE).getDescriptor());
    attributes("attributes", () -> admin.getDescriptor(TABLE));
    transcript.ask(
        "descriptors by pattern",
        () -> names(admin.listTableDescriptors(Pattern.compile("java:.*"), false)));
    transcript.ask(
        "descriptors by namespace",
        () -> names(admin.listTableDescriptorsByNamespace(toBytes("java"))));
    transcript.ask("cluster id is there", () -> !connection.getClusterId().isEmpty());
    transcript.ask(
        "slow log", () -> admin.getSlowLogResponses(Set.of(), new LogQueryFilter()));
  }

  /** Something that reads a descriptor. */
  private interface Reader {
    TableDescriptor read() throws IOException;
  }

  /** Every setting of a table and its families that HBase has a name for. */
  private void descriptor(String what, Reader reader) {
    transcript.ask(
        what,
        () -> {
          TableDescriptor table = reader.read();
          List<String> lines = new ArrayList<>();
          lines.add(table.getTableName() + " " + values(table.getValues(), true));
          for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
            lines.add("  " + family.getNameAsString() + " " + values(family.getValues(), true));
          }
          return String.join("\n", lines);
        });
  }

  /**
   * What an application has added to the settings. A question of its own, because over framed transports the client takes
   * the whole frame for each name and value, whatever the server.
   */
  private void attributes(String what, Reader reader) {
    transcript.ask(
        what,
        () -> {
          TableDescriptor table = reader.read();
          List<Map<String, String>> all = new ArrayList<>(List.of(values(table.getValues(), false)));
          for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
            all.add(values(family.getValues(), false));
          }
          return all;
        });
  }

  /** The values, sorted: those of HBase or those of applications. */
  private static Map<String, String> values(Map<Bytes, Bytes> values, boolean hbase) {
    Map<String, String> sorted = new TreeMap<>();
    values.forEach(
        (key, value) -> sorted.put(Bytes.toStringBinary(key.get()), Bytes.toStringBinary(value.get())));
    sorted.keySet().removeIf(name -> name.matches("[A-Z_]+") != hbase);
    // Only says how HBase keeps track of its own files.
    sorted.remove("hbase.store.file-tracker.impl");
    return sorted;
  }

  private static List<TableName> names(List<TableDescriptor> tables) {
    List<TableName> names = new ArrayList<>();
    tables.forEach(table -> names.add(table.getTableName()));
    return names;
  }

  private void families() {
    transcript.chapter("families");
    ColumnFamilyDescriptor added = ColumnFamilyDescriptorBuilder.of("added");
    transcript.act("add", () -> admin.addColumnFamily(TABLE, added));
    ColumnFamilyDescriptor changed =
        ColumnFamilyDescriptorBuilder.newBuilder(added).setMaxVersions(3).setTimeToLive(60).build();
    transcript.act("modify", () -> admin.modifyColumnFamily(TABLE, changed));
    descriptor("three families", () -> admin.getDescriptor(TABLE));
    transcript.act("delete", () -> admin.deleteColumnFamily(TABLE, toBytes("rich")));
    TableDescriptor readOnly =
        TableDescriptorBuilder.newBuilder(TABLE)
            .setColumnFamily(
                ColumnFamilyDescriptorBuilder.newBuilder(toBytes("plain")).setMaxVersions(2).build())
            .setColumnFamily(changed)
            .setReadOnly(true)
            .setValue("owner", "another")
            .build();
    transcript.act("modify the table", () -> admin.modifyTable(readOnly));
    descriptor("after all", () -> admin.getDescriptor(TABLE));
    attributes("attributes after all", () -> admin.getDescriptor(TABLE));
    transcript.act(
        "write to a table that is read-only",
        () -> {
          try (Table table = connection.getTable(TABLE)) {
            table.put(new Put(toBytes("r")).addColumn(toBytes("plain"), toBytes("q"), 1, toBytes("v")));
          }
        });
    transcript.act(
        "modify back",
        () ->
            admin.modifyTable(
                TableDescriptorBuilder.newBuilder(readOnly).setReadOnly(false).build()));
  }

  private void states() {
    transcript.chapter("states");
    transcript.act("write", () -> write("a", "e", "z"));
    transcript.ask("rows", this::count);
    transcript.act("disable", () -> admin.disableTable(TABLE));
    transcript.ask("enabled", () -> admin.isTableEnabled(TABLE));
    transcript.ask("disabled", () -> admin.isTableDisabled(TABLE));
    transcript.act("enable", () -> admin.enableTable(TABLE));
    transcript.ask("rows", this::count);
    transcript.act("disable", () -> admin.disableTable(TABLE));
    transcript.act("truncate, splits kept", () -> admin.truncateTable(TABLE, true));
    transcript.ask("enabled", () -> admin.isTableEnabled(TABLE));
    transcript.ask("rows", this::count);
    transcript.ask(
        "available with its splits",
        () -> admin.isTableAvailable(TABLE, new byte[][] {toBytes("d"), toBytes("h"), {(byte) 0x80, 0}}));
    transcript.act("write", () -> write("a"));
    transcript.act("disable", () -> admin.disableTable(TABLE));
    transcript.act("truncate", () -> admin.truncateTable(TABLE, false));
    transcript.ask("rows", this::count);
  }

  private void write(String... rows) throws IOException {
    try (Table table = connection.getTable(TABLE)) {
      for (String row : rows) {
        table.put(new Put(toBytes(row)).addColumn(toBytes("plain"), toBytes("q"), 1, toBytes("v")));
      }
    }
  }

  private int count() throws IOException {
    try (Table table = connection.getTable(TABLE);
        var scanner = table.getScanner(new Scan())) {
      int rows = 0;
      while (scanner.next() != null) {
        rows++;
      }
      return rows;
    }
  }

  private void remove() {
    transcript.chapter("remove");
    transcript.act("disable", () -> admin.disableTable(TABLE));
    transcript.act("delete", () -> admin.deleteTable(TABLE));
    transcript.ask("exists", () -> admin.tableExists(TABLE));
    transcript.act("delete the namespace", () -> admin.deleteNamespace("java"));
    transcript.ask("namespaces", admin::listNamespaces);
  }
}
