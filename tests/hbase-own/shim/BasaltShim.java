package org.apache.hadoop.hbase;

import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.junit.AssumptionViolatedException;
import org.mockito.Mockito;

/**
 * The calls that the rewritten HBaseTestingUtility (Patch) makes instead of starting, using and
 * stopping a mini cluster. The cluster is the Basalt at the port in the property basalt.port. A
 * test that needs more than clients can see ends with an AssumptionViolatedException.
 */
public final class BasaltShim {
  /** Time for compactions that a test requested. A mini cluster's call returns when they are done. */
  private static final long COMPACTION_WAIT_MS = 20_000;
  private static final Map<HBaseTestingUtility, MiniHBaseCluster> CLUSTERS = new WeakHashMap<>();

  /** The configuration of the cluster that was started last. */
  private static Configuration current;

  private BasaltShim() {}

  /** Points the utility's configuration at Basalt and removes what earlier tests left there. */
  public static void start(HBaseTestingUtility util) throws IOException {
    // A clock that a test made for itself and a server in its JVM, such as one that never shows a time
    // twice and therefore goes ahead. Basalt has the machine's clock.
    EnvironmentEdgeManager.reset();
    Configuration conf = util.getConfiguration();
    String port = System.getProperty("basalt.port");
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", port);
    conf.set("hbase.masters", "127.0.0.1:" + port);
    conf.set("hbase.client.bootstrap.servers", "127.0.0.1:" + port);
    File root = new File(util.getDataTestDir("hbase-root").toString());
    if (!root.isDirectory() && !root.mkdirs()) {
      throw new IOException("cannot create " + root);
    }
    conf.set("fs.defaultFS", "file:///");
    conf.set("hbase.rootdir", "file://" + root);
    conf.set("hbase.fs.tmp.dir", util.getDataTestDir("staging").toString());
    // How often a test looks for the end of a split, which is done when the call returns.
    conf.set("hbase.test.retries", "3");
    wipe(conf);
    current = conf;
    startObservers(conf);
    HBaseCluster given = Mockito.mock(HBaseCluster.class);
    Mockito.when(given.isDistributedCluster()).thenReturn(true);
    Mockito.when(given.getConf()).thenReturn(conf);
    Mockito.when(given.getClusterMetrics()).then(call -> util.getAdmin().getClusterMetrics());
    util.setHBaseCluster(given);
  }

  /**
   * Starts the master's coprocessors: tests assert that theirs has started. Basalt calls none of
   * their other methods, so one that needs more ends the test as not applicable.
   */
  private static void startObservers(Configuration conf) {
    for (String name : conf.getTrimmedStrings(CoprocessorHost.MASTER_COPROCESSOR_CONF_KEY)) {
      try {
        ((Coprocessor) Class.forName(name.split("\\|")[0]).getDeclaredConstructor().newInstance()).start(null);
      } catch (Exception error) {
        throw new AssumptionViolatedException("needs a server in this JVM: coprocessor " + name, error);
      }
    }
  }

  public static void stop(HBaseTestingUtility util) throws IOException {
    util.closeConnection();
    wipe(util.getConfiguration());
    util.setHBaseCluster(null);
  }

  public static synchronized MiniHBaseCluster cluster(HBaseTestingUtility util) {
    return CLUSTERS.computeIfAbsent(util, key -> new Standins(key).cluster());
  }

  /** The descriptor of the table that would have this directory (data/NAMESPACE/TABLE). */
  public static TableDescriptor descriptor(Path directory) throws IOException {
    TableName table = TableName.valueOf(directory.getParent().getName(), directory.getName());
    try (Connection connection = ConnectionFactory.createConnection(current); Admin admin = connection.getAdmin()) {
      return admin.getDescriptor(table);
    }
  }

  public static void flush(HBaseTestingUtility util, Object[] arguments) throws IOException {
    for (TableName table : tables(util, arguments)) {
      util.getAdmin().flush(table);
    }
  }

  public static void compact(HBaseTestingUtility util, Object[] arguments) throws IOException {
    boolean major = (Boolean) arguments[arguments.length - 1];
    for (TableName table : tables(util, arguments)) {
      Admin admin = util.getAdmin();
      if (major) {
        admin.majorCompact(table);
      } else {
        admin.compact(table);
      }
      awaitCompaction(admin, table);
    }
  }

  private static void awaitCompaction(Admin admin, TableName table) throws IOException {
    long end = System.currentTimeMillis() + COMPACTION_WAIT_MS;
    while (!admin.getCompactionState(table).name().equals("NONE")) {
      if (System.currentTimeMillis() > end) {
        throw new IOException(table + " is still being compacted after " + COMPACTION_WAIT_MS + " ms");
      }
      sleep();
    }
  }

  private static void sleep() throws IOException {
    try {
      Thread.sleep(100);
    } catch (InterruptedException error) {
      throw new IOException(error);
    }
  }

  private static TableName[] tables(HBaseTestingUtility util, Object[] arguments) throws IOException {
    boolean one = arguments.length > 0 && arguments[0] instanceof TableName;
    return one ? new TableName[] {(TableName) arguments[0]} : util.getAdmin().listTableNames();
  }

  /** Removes tables, snapshots and namespaces: a mini cluster is always a new one. */
  private static void wipe(Configuration from) throws IOException {
    // Tests set these to classes of their own that count or fail calls.
    Configuration conf = new Configuration(from);
    conf.unset("hbase.client.registry.impl");
    conf.unset("hbase.client.connection.impl");
    conf.unset("hbase.client.async.connection.impl");
    conf.unset("hbase.client.rpc.codec");
    conf.unset("hbase.rpc.client.impl");
    conf.unset("hbase.rpc.controllerfactory.class");
    conf.unset("hbase.client.retries.number");
    try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
      for (TableName table : admin.listTableNames()) {
        if (table.isSystemTable()) {
          continue;
        }
        if (admin.isTableEnabled(table)) {
          admin.disableTable(table);
        }
        admin.deleteTable(table);
      }
      for (SnapshotDescription snapshot : admin.listSnapshots()) {
        admin.deleteSnapshot(snapshot.getName());
      }
      for (NamespaceDescriptor namespace : admin.listNamespaceDescriptors()) {
        String name = namespace.getName();
        if (!name.equals("default") && !name.equals("hbase")) {
          admin.deleteNamespace(name);
        }
      }
      admin.balancerSwitch(true, true);
      admin.splitSwitch(true, true);
      admin.mergeSwitch(true, true);
    }
  }
}
