package basalt.client;

import static basalt.client.Transcript.act;
import static basalt.client.Transcript.ask;
import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** Tables, namespaces, snapshots, regions and the cluster queries of Admin. */
final class Tables {
  private static final byte[] F = toBytes("f");

  private final Connection connection;
  private final Admin admin;
  private final TableName name;

  Tables(Connection connection, TableName name) throws Exception {
    this.connection = connection;
    this.admin = connection.getAdmin();
    this.name = name;
  }

  static ColumnFamilyDescriptor family(String family, int versions) {
    return ColumnFamilyDescriptorBuilder.newBuilder(toBytes(family)).setMaxVersions(versions).build();
  }

  static TableDescriptor table(TableName name) {
    return TableDescriptorBuilder.newBuilder(name).setColumnFamily(family("f", 3)).build();
  }

  void create() {
    ask("is it there", () -> admin.tableExists(name));
    act("create", () -> admin.createTable(table(name), new byte[][] {toBytes("g"), toBytes("n")}));
    act("create again", () -> admin.createTable(table(name)));
    act("create in a namespace that is not there", () -> admin.createTable(table(TableName.valueOf("no:t"))));
    ask("is it there now", () -> admin.tableExists(name));
  }

  void run() {
    schema();
    regions();
    snapshots();
    namespaces();
    cluster();
    states();
  }

  private void schema() {
    ask("tables", () -> names(admin.listTableNames()));
    ask("tables by pattern", () -> names(admin.listTableNames(java.util.regex.Pattern.compile("jt.*"))));
    ask("versions", () -> admin.getDescriptor(name).getColumnFamily(F).getMaxVersions());
    ask("families", () -> admin.getDescriptor(name).getColumnFamilyCount());
    ask("descriptor of no table", () -> admin.getDescriptor(TableName.valueOf("nope")));
    act("add a family", () -> admin.addColumnFamily(name, family("g", 1)));
    act("add it again", () -> admin.addColumnFamily(name, family("g", 1)));
    act("change it", () -> admin.modifyColumnFamily(name, family("g", 7)));
    ask("its versions", () -> admin.getDescriptor(name).getColumnFamily(toBytes("g")).getMaxVersions());
    act("remove it", () -> admin.deleteColumnFamily(name, toBytes("g")));
    act("change the table", () -> admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(name)).setValue("OWNER", "ada").build()));
    ask("its value", () -> admin.getDescriptor(name).getValue("OWNER"));
    act("copy the schema", () -> admin.cloneTableSchema(name, TableName.valueOf("jt_copy"), true));
    ask("regions of the copy", () -> admin.getRegions(TableName.valueOf("jt_copy")).size());
  }

  private void regions() {
    ask("regions", () -> keys());
    act("flush", () -> admin.flush(name));
    act("flush a region", () -> admin.flushRegion(admin.getRegions(name).get(0).getRegionName()));
    act("compact", () -> admin.compact(name));
    act("compact a region", () -> admin.majorCompactRegion(admin.getRegions(name).get(0).getRegionName()));
    act("split", () -> {
      admin.split(name, toBytes("d"));
      await(() -> admin.getRegions(name).size() == 4);
    });
    ask("regions after the split", () -> keys());
    ask("a row of each half", () -> List.of(row("c"), row("e")));
    ask("all rows", () -> count());
    act("merge", () -> {
      List<RegionInfo> regions = admin.getRegions(name);
      // Daughters of a split cannot be merged before a compaction, so merge the other two regions.
      byte[][] two = {regions.get(2).getEncodedNameAsBytes(), regions.get(3).getEncodedNameAsBytes()};
      admin.mergeRegionsAsync(two, false).get(60, TimeUnit.SECONDS);
    });
    ask("regions after the merge", () -> keys());
    ask("all rows again", () -> count());
    act("move", () -> admin.move(admin.getRegions(name).get(0).getEncodedNameAsBytes()));
    act("move what is not there", () -> admin.move(toBytes("0123456789abcdef0123456789abcdef")));
  }

  private void snapshots() {
    act("snapshot", () -> admin.snapshot("s1", name));
    act("the same again", () -> admin.snapshot("s1", name));
    act("snapshot of no table", () -> admin.snapshot("s2", TableName.valueOf("nope")));
    ask("snapshots", () -> admin.listSnapshots().size());
    act("clone", () -> admin.cloneSnapshot("s1", TableName.valueOf("jt_clone")));
    ask("regions of the clone", () -> admin.getRegions(TableName.valueOf("jt_clone")).size());
    act("restore what is enabled", () -> admin.restoreSnapshot("s1"));
    act("restore", () -> {
      connection.getTable(name).put(new Put(toBytes("late")).addColumn(F, F, F));
      admin.disableTable(name);
      admin.restoreSnapshot("s1");
      admin.enableTable(name);
    });
    ask("what came later", () -> row("late"));
    act("delete", () -> admin.deleteSnapshot("s1"));
    act("delete again", () -> admin.deleteSnapshot("s1"));
  }

  private void namespaces() {
    act("create a namespace", () -> admin.createNamespace(NamespaceDescriptor.create("ns").addConfiguration("k", "v").build()));
    act("create it again", () -> admin.createNamespace(NamespaceDescriptor.create("ns").build()));
    ask("namespaces", () -> new TreeSet<>(Arrays.asList(admin.listNamespaces())));
    ask("its configuration", () -> admin.getNamespaceDescriptor("ns").getConfigurationValue("k"));
    ask("one that is not there", () -> admin.getNamespaceDescriptor("no"));
    act("a table in it", () -> admin.createTable(table(TableName.valueOf("ns:t"))));
    ask("its tables", () -> names(admin.listTableNamesByNamespace("ns")));
    act("remove it with the table", () -> admin.deleteNamespace("ns"));
    act("remove both", () -> {
      drop(TableName.valueOf("ns:t"));
      admin.deleteNamespace("ns");
    });
  }

  private void cluster() {
    ask("servers", () -> admin.getRegionServers().size());
    ask("regions of the table", () -> admin.getRegionMetrics(admin.getRegionServers().iterator().next(), name).size());
    ask("balancer", () -> admin.isBalancerEnabled());
    ask("switch it off", () -> admin.balancerSwitch(false, true));
    ask("and on", () -> admin.balancerSwitch(true, true));
    ask("normalizer", () -> admin.isNormalizerEnabled());
    ask("janitor", () -> admin.isCatalogJanitorEnabled());
    ask("cleaner", () -> admin.isCleanerChoreEnabled());
    ask("splits", () -> admin.isSplitEnabled());
    ask("maintenance", () -> admin.isMasterInMaintenanceMode());
    ask("procedures", () -> admin.getLocks());
    ask("peers", () -> admin.listReplicationPeers());
    ask("decommissioned", () -> admin.listDecommissionedRegionServers());
    ask("security", () -> admin.getSecurityCapabilities());
    ask("dead servers", () -> admin.listDeadServers());
    act("caches", () -> admin.clearBlockCache(name));
  }

  private void states() {
    act("disable", () -> admin.disableTable(name));
    act("disable again", () -> admin.disableTable(name));
    ask("is it disabled", () -> admin.isTableDisabled(name));
    ask("get of a disabled table", () -> row("a"));
    act("enable", () -> admin.enableTable(name));
    act("enable again", () -> admin.enableTable(name));
    act("drop what is enabled", () -> admin.deleteTable(name));
    act("truncate what is enabled", () -> admin.truncateTable(name, true));
    act("truncate", () -> {
      admin.disableTable(name);
      admin.truncateTable(name, true);
    });
    ask("regions after it", () -> keys());
    ask("rows after it", () -> count());
    act("drop", () -> {
      for (TableName table : admin.listTableNames()) {
        drop(table);
      }
    });
    ask("tables that are left", () -> names(admin.listTableNames()));
    act("drop what is not there", () -> admin.deleteTable(name));
  }

  private void drop(TableName table) throws Exception {
    if (admin.isTableEnabled(table)) {
      admin.disableTable(table);
    }
    admin.deleteTable(table);
  }

  private static List<String> names(TableName[] tables) {
    TreeSet<String> names = new TreeSet<>();
    for (TableName table : tables) {
      names.add(table.getNameAsString());
    }
    return new ArrayList<>(names);
  }

  private List<String> keys() throws Exception {
    List<String> keys = new ArrayList<>();
    for (RegionInfo region : admin.getRegions(name)) {
      keys.add(Bytes.toStringBinary(region.getStartKey()) + ".." + Bytes.toStringBinary(region.getEndKey()));
    }
    return keys;
  }

  private Result row(String row) throws Exception {
    return connection.getTable(name).get(new Get(toBytes(row)));
  }

  private int count() throws Exception {
    int rows = 0;
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(new Scan())) {
      for (Result ignored : scanner) {
        rows++;
      }
    }
    return rows;
  }

  /** A condition to wait for. */
  private interface Condition {
    boolean holds() throws Exception;
  }

  private static void await(Condition condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!condition.holds()) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException("not within a minute");
      }
      TimeUnit.MILLISECONDS.sleep(50);
    }
  }
}
