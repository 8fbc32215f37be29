package basalt.client;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Makes calls that a server refuses, and prints of each the class of the exception that the user gets, and the first
 * line of its text.
 *
 * <p>Arguments: as of {@link Tour}.
 */
public final class Refusals {
  private static final byte[] FAMILY = Bytes.toBytes("f");

  /** A call of the client. */
  private interface Call {
    void run() throws IOException;
  }

  private Refusals() {}

  private static void refused(String what, Call call) {
    try {
      call.run();
      System.out.println(what + " -> accepted");
    } catch (IOException e) {
      String text = String.valueOf(e.getMessage()).split("\n")[0];
      System.out.println(what + " -> " + e.getClass().getSimpleName() + ": " + text);
    }
  }

  private static TableDescriptorBuilder table(String name) {
    return TableDescriptorBuilder.newBuilder(TableName.valueOf(name))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY));
  }

  public static void main(String[] arguments) throws IOException {
    Configuration conf = Tour.configuration(arguments);
    try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
      TableDescriptor observed = table("observed").setCoprocessor("org.example.Observer").build();
      refused("a coprocessor", () -> admin.createTable(observed));
      refused("a quota", () -> admin.createNamespace(
          NamespaceDescriptor.create("words").addConfiguration("hbase.namespace.quota.maxtables", "many").build()));
      admin.createNamespace(
          NamespaceDescriptor.create("full").addConfiguration("hbase.namespace.quota.maxtables", "1").build());
      admin.createTable(table("full:one").build());
      refused("a table beyond the quota", () -> admin.createTable(table("full:two").build()));
      refused("a namespace with tables", () -> admin.deleteNamespace("full"));
      byte[][] long_key = {new byte[32300]};
      refused("a split key", () -> admin.createTable(table("long").build(), long_key));
      byte[][] keys = {Bytes.toBytes("b"), Bytes.toBytes("c")};
      TableDescriptor small =
          table("small").setValue("hbase.server.keyvalue.maxsize", "1024").build();
      admin.createTable(small, keys);
      List<RegionInfo> regions = admin.getRegions(small.getTableName());
      byte[][] apart = {regions.get(0).getEncodedNameAsBytes(), regions.get(2).getEncodedNameAsBytes()};
      refused("a merge", () -> {
        try {
          admin.mergeRegionsAsync(apart, false).get();
        } catch (java.util.concurrent.ExecutionException e) {
          throw new IOException(e.getCause());
        } catch (InterruptedException e) {
          throw new IOException(e);
        }
      });
      try (Table cells = connection.getTable(small.getTableName())) {
        refused("a cell", () -> cells.put(new Put(FAMILY).addColumn(FAMILY, FAMILY, new byte[1024])));
      }
      refused("a snapshot", () -> admin.restoreSnapshot("none"));
    }
  }
}
