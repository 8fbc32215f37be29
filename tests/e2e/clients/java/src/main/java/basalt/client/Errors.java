package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.FilterBase;

/** What the client makes of each refusal; leaves nothing behind. */
final class Errors {
  private static final TableName TABLE = TableName.valueOf("java-errors");
  private static final TableName ABSENT = TableName.valueOf("java-absent");
  private static final byte[] F = toBytes("f");
  private static final byte[] X = toBytes("x");
  private static final byte[] Q = toBytes("q");
  private static final byte[] ROW = toBytes("r");

  private final Connection connection;
  private final Transcript transcript;

  Errors(Connection connection, Transcript transcript) {
    this.connection = connection;
    this.transcript = transcript;
  }

  void run() throws IOException {
    try (Admin admin = connection.getAdmin();
        Table table = connection.getTable(TABLE);
        Table absent = connection.getTable(ABSENT)) {
      admin.createTable(descriptor(TABLE));
      table.put(new Put(ROW).addColumn(F, Q, 1, toBytes("no number")));
      data("a table that is not there", absent, F);
      data("a family that is not there", table, X);
      values(table);
      tables(admin);
      families(admin);
      namespaces(admin);
      transcript.chapter("a disabled table");
      transcript.act("disable", () -> admin.disableTable(TABLE));
      data("a disabled table", table, F);
      transcript.act("disable again", () -> admin.disableTable(TABLE));
      admin.deleteTable(TABLE);
    }
  }

  private static TableDescriptor descriptor(TableName name) {
    return TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).build())
        .build();
  }

  /** A filter whose class no server has. */
  private static final class UnknownFilter extends FilterBase {
    @Override
    public byte[] toByteArray() {
      return new byte[] {1, 2, 3};
    }
  }

  /** Each call about rows. */
  private void data(String chapter, Table table, byte[] family) {
    transcript.chapter(chapter);
    Put put = new Put(ROW).addColumn(family, Q, 1, toBytes("v"));
    Delete delete = new Delete(ROW).addColumns(family, Q);
    Get get = new Get(ROW).addColumn(family, Q);
    transcript.ask("get", () -> table.get(get));
    transcript.ask("get a list", () -> table.get(List.of(get)));
    transcript.ask("exists", () -> table.exists(get));
    transcript.ask("exist", () -> table.exists(List.of(get)));
    transcript.act("put", () -> table.put(put));
    transcript.act("put a list", () -> table.put(List.of(put)));
    transcript.act("delete", () -> table.delete(delete));
    transcript.act("delete a list", () -> table.delete(new ArrayList<>(List.of(delete))));
    transcript.ask("increment", () -> table.increment(new Increment(ROW).addColumn(family, Q, 1)));
    transcript.ask("append", () -> table.append(new Append(ROW).addColumn(family, Q, Q)));
    transcript.ask(
        "check and put", () -> table.checkAndMutate(ROW, family).qualifier(Q).ifEquals(Q).thenPut(put));
    transcript.act("mutate a row", () -> table.mutateRow(RowMutations.of(List.of(put))));
    transcript.ask("scan", () -> table.getScanner(new Scan().addFamily(family)).next());
  }

  private void values(Table table) {
    transcript.chapter("values");
    transcript.ask(
        "increment what is no number", () -> table.increment(new Increment(ROW).addColumn(F, Q, 1)));
    transcript.ask(
        "check a row and put another",
        () ->
            table
                .checkAndMutate(ROW, F)
                .qualifier(Q)
                .ifEquals(Q)
                .thenPut(new Put(X).addColumn(F, Q, toBytes("v"))));
    transcript.act(
        "put more than a cell holds",
        () -> table.put(new Put(ROW).addColumn(F, Q, new byte[11 << 20])));
    transcript.act("put at the end of time", () -> table.put(new Put(X, Long.MAX_VALUE - 1).addColumn(F, Q, Q)));
    transcript.ask("a filter that nobody knows", () -> table.getScanner(new Scan().setFilter(new UnknownFilter())).next());
  }

  private void tables(Admin admin) {
    transcript.chapter("tables");
    transcript.act("create what exists", () -> admin.createTable(descriptor(TABLE)));
    transcript.act("create in no namespace", () -> admin.createTable(descriptor(TableName.valueOf("no", "t"))));
    transcript.act(
        "create without a family",
        () -> admin.createTable(TableDescriptorBuilder.newBuilder(ABSENT).build()));
    transcript.act(
        "create with splits that repeat",
        () -> admin.createTable(descriptor(ABSENT), new byte[][] {Q, Q}));
    transcript.act(
        "create with an empty split",
        () -> admin.createTable(descriptor(ABSENT), new byte[][] {new byte[0]}));
    transcript.act(
        "create with a wrong limit",
        () ->
            admin.createTable(
                TableDescriptorBuilder.newBuilder(descriptor(ABSENT)).setMaxFileSize(1).build()));
    transcript.act(
        "create with fewer versions than the least",
        () ->
            admin.createTable(
                TableDescriptorBuilder.newBuilder(ABSENT)
                    .setColumnFamily(
                        ColumnFamilyDescriptorBuilder.newBuilder(F)
                            .setMaxVersions(2)
                            .setMinVersions(3)
                            .setTimeToLive(10)
                            .build())
                    .build()));
    transcript.ask("nothing was created", () -> admin.tableExists(ABSENT));
    transcript.ask("descriptor", () -> admin.getDescriptor(ABSENT));
    transcript.ask("enabled", () -> admin.isTableEnabled(ABSENT));
    transcript.ask("disabled", () -> admin.isTableDisabled(ABSENT));
    transcript.ask("available", () -> admin.isTableAvailable(ABSENT));
    transcript.act("disable", () -> admin.disableTable(ABSENT));
    transcript.act("enable", () -> admin.enableTable(ABSENT));
    transcript.act("delete", () -> admin.deleteTable(ABSENT));
    transcript.act("truncate", () -> admin.truncateTable(ABSENT, true));
    transcript.act("modify", () -> admin.modifyTable(descriptor(ABSENT)));
    transcript.act("enable what is enabled", () -> admin.enableTable(TABLE));
    transcript.act("delete what is enabled", () -> admin.deleteTable(TABLE));
    transcript.act("truncate what is enabled", () -> admin.truncateTable(TABLE, true));
    transcript.ask("of no namespace", () -> admin.listTableNamesByNamespace("no"));
    transcript.ask("descriptors of no namespace", () -> admin.listTableDescriptorsByNamespace(toBytes("no")));
  }

  private void families(Admin admin) {
    transcript.chapter("families");
    transcript.act("add what exists", () -> admin.addColumnFamily(TABLE, ColumnFamilyDescriptorBuilder.of(F)));
    transcript.act("modify none", () -> admin.modifyColumnFamily(TABLE, ColumnFamilyDescriptorBuilder.of(X)));
    transcript.act("delete none", () -> admin.deleteColumnFamily(TABLE, X));
    transcript.act("delete the last", () -> admin.deleteColumnFamily(TABLE, F));
    transcript.act("add to none", () -> admin.addColumnFamily(ABSENT, ColumnFamilyDescriptorBuilder.of(F)));
    transcript.act("modify of none", () -> admin.modifyColumnFamily(ABSENT, ColumnFamilyDescriptorBuilder.of(F)));
    transcript.act("delete of none", () -> admin.deleteColumnFamily(ABSENT, F));
  }

  private void namespaces(Admin admin) {
    transcript.chapter("namespaces");
    NamespaceDescriptor used = NamespaceDescriptor.create("java_used").build();
    transcript.act("create", () -> admin.createNamespace(used));
    transcript.act("create what exists", () -> admin.createNamespace(used));
    transcript.act(
        "create with a name that is none",
        () -> admin.createNamespace(NamespaceDescriptor.create("no.name").build()));
    TableName inside = TableName.valueOf("java_used", "t");
    transcript.act("create a table inside", () -> admin.createTable(descriptor(inside)));
    transcript.act("delete what is used", () -> admin.deleteNamespace("java_used"));
    transcript.act("disable the table", () -> admin.disableTable(inside));
    transcript.act("delete the table", () -> admin.deleteTable(inside));
    transcript.act("delete", () -> admin.deleteNamespace("java_used"));
    transcript.act("delete what is gone", () -> admin.deleteNamespace("java_used"));
    transcript.act("modify what is gone", () -> admin.modifyNamespace(used));
    transcript.ask("describe what is gone", () -> admin.getNamespaceDescriptor("java_used"));
    transcript.act("delete the default", () -> admin.deleteNamespace("default"));
    transcript.act("delete the system's", () -> admin.deleteNamespace("hbase"));
  }
}
