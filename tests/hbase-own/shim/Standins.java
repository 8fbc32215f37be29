package org.apache.hadoop.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableState;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.hadoop.hbase.master.MasterFileSystem;
import org.apache.hadoop.hbase.master.RegionState;
import org.apache.hadoop.hbase.master.ServerManager;
import org.apache.hadoop.hbase.master.TableStateManager;
import org.apache.hadoop.hbase.master.assignment.AssignmentManager;
import org.apache.hadoop.hbase.master.assignment.RegionStateNode;
import org.apache.hadoop.hbase.master.assignment.RegionStates;
import org.apache.hadoop.hbase.master.cleaner.HFileCleaner;
import org.apache.hadoop.hbase.master.janitor.CatalogJanitor;
import org.apache.hadoop.hbase.procedure2.ProcedureExecutor;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.JVMClusterUtil.RegionServerThread;
import org.junit.AssumptionViolatedException;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;

/**
 * Objects in place of the mini cluster's master, region server and regions. Each method answers
 * with what a client can see, or ends the test as not applicable.
 */
final class Standins {
  private interface Answer {
    Object of(Object[] arguments) throws Throwable;
  }

  private final HBaseTestingUtility util;

  Standins(HBaseTestingUtility util) {
    this.util = util;
  }

  /** An object of the class that answers these methods; all others throw. */
  private static <T> T standin(Class<T> type, Map<String, Answer> answers) {
    return Mockito.mock(type, call -> answer(type, answers, call));
  }

  private static Object answer(Class<?> type, Map<String, Answer> answers, InvocationOnMock call) throws Throwable {
    String name = call.getMethod().getName();
    Answer answer = answers.get(name);
    if (answer != null) {
      return answer.of(call.getArguments());
    }
    if (name.equals("toString")) {
      return "Basalt as " + type.getSimpleName();
    }
    throw new AssumptionViolatedException("needs a server in this JVM: " + type.getSimpleName() + "." + name);
  }

  MiniHBaseCluster cluster() {
    HMaster master = master();
    HRegionServer server = server();
    RegionServerThread thread = standin(RegionServerThread.class, Map.of("getRegionServer", a -> server));
    Map<String, Answer> answers = new HashMap<>();
    answers.put("getConfiguration", a -> util.getConfiguration());
    answers.put("getConf", a -> util.getConfiguration());
    answers.put("getMaster", a -> master);
    answers.put("waitForActiveAndReadyMaster", a -> true);
    answers.put("getRegionServer", a -> server);
    answers.put("getRegionServerThreads", a -> Collections.singletonList(thread));
    answers.put("getLiveRegionServerThreads", a -> Collections.singletonList(thread));
    answers.put("getNumLiveRegionServers", a -> 1);
    answers.put("getServerWith", a -> 0);
    answers.put("getServerWithMeta", a -> 0);
    answers.put("getServerHoldingRegion", a -> serverName());
    answers.put("getServerHoldingMeta", a -> serverName());
    answers.put("getRegions", a -> regions(table(a[0])));
    answers.put("findRegionsForTable", a -> regions(table(a[0])));
    answers.put("flushcache", a -> {
      BasaltShim.flush(util, a);
      return null;
    });
    answers.put("compact", a -> {
      BasaltShim.compact(util, a);
      return null;
    });
    answers.put("isKilledRS", a -> false);
    answers.put("isDistributedCluster", a -> true);
    answers.put("getClusterMetrics", a -> admin().getClusterMetrics());
    return standin(MiniHBaseCluster.class, answers);
  }

  private HMaster master() {
    Map<String, Answer> answers = new HashMap<>();
    MasterFileSystem files = fileSystem();
    AssignmentManager assignment = assignment();
    HFileCleaner cleaner = cleaner();
    TableStateManager states = tableStates();
    // Basalt removes the parents of splits and merges itself, in the calls.
    CatalogJanitor janitor = standin(CatalogJanitor.class, Map.of("choreForTesting", a -> null, "scan", a -> 1));
    ProcedureExecutor<?> procedures = standin(ProcedureExecutor.class,
        Map.of("getActiveProcIds", a -> Collections.emptySet(), "isFinished", a -> true));
    ServerManager servers = standin(ServerManager.class, Map.of("isServerOnline", a -> serverName().equals(a[0])));
    answers.put("getMasterFileSystem", a -> files);
    answers.put("getAssignmentManager", a -> assignment);
    answers.put("getHFileCleaner", a -> cleaner);
    answers.put("getCatalogJanitor", a -> janitor);
    answers.put("getTableStateManager", a -> states);
    answers.put("getMasterProcedureExecutor", a -> procedures);
    answers.put("getServerManager", a -> servers);
    answers.put("getConfiguration", a -> util.getConfiguration());
    answers.put("getConnection", a -> util.getConnection());
    answers.put("getServerName", a -> admin().getClusterMetrics().getMasterName());
    answers.put("getClusterId", a -> admin().getClusterMetrics().getClusterId());
    answers.put("getClusterMetrics", a -> admin().getClusterMetrics());
    answers.put("isInitialized", a -> true);
    answers.put("isActiveMaster", a -> true);
    answers.put("balanceSwitch", a -> admin().balancerSwitch((Boolean) a[0], true));
    return standin(HMaster.class, answers);
  }

  /** The master's file system: an empty root directory. Basalt keeps its files elsewhere. */
  private MasterFileSystem fileSystem() {
    Configuration conf = util.getConfiguration();
    Map<String, Answer> answers = new HashMap<>();
    answers.put("getFileSystem", a -> root().getFileSystem(conf));
    answers.put("getWALFileSystem", a -> root().getFileSystem(conf));
    answers.put("getRootDir", a -> root());
    answers.put("getWALRootDir", a -> root());
    answers.put("logFileSystemState", a -> null);
    answers.put("getConfiguration", a -> conf);
    return standin(MasterFileSystem.class, answers);
  }

  private Path root() {
    return new Path(util.getConfiguration().get("hbase.rootdir"));
  }

  /** Basalt removes files that nothing uses without being asked. */
  private static HFileCleaner cleaner() {
    Map<String, Answer> answers = new HashMap<>();
    answers.put("choreForTesting", a -> null);
    answers.put("triggerCleanerNow", a -> CompletableFuture.completedFuture(true));
    answers.put("getEnabled", a -> true);
    return standin(HFileCleaner.class, answers);
  }

  private AssignmentManager assignment() {
    Map<String, Answer> states = new HashMap<>();
    states.put("getRegionsOfTable", a -> admin().getRegions((TableName) a[0]));
    states.put("hasRegionsInTransition", a -> false);
    states.put("isRegionInTransition", a -> false);
    states.put("getRegionServerOfRegion", a -> serverName());
    states.put("getRegionState", a -> RegionState.createForTesting((RegionInfo) a[0], state((RegionInfo) a[0])));
    states.put("getRegionStateNode", a -> standin(RegionStateNode.class, Map.of("isInTransition", b -> false)));
    states.put("getRegionByStateOfTable", a -> byState((TableName) a[0]));
    RegionStates standin = standin(RegionStates.class, states);
    Map<String, Answer> answers = new HashMap<>();
    answers.put("getRegionStates", a -> standin);
    answers.put("hasRegionsInTransition", a -> false);
    return standin(AssignmentManager.class, answers);
  }

  /** All states, each with the table's regions in it. */
  private Map<RegionState.State, List<RegionInfo>> byState(TableName table) throws IOException {
    Map<RegionState.State, List<RegionInfo>> regions = new EnumMap<>(RegionState.State.class);
    for (RegionState.State state : RegionState.State.values()) {
      regions.put(state, new ArrayList<>());
    }
    for (RegionInfo info : admin().tableExists(table) ? admin().getRegions(table) : new ArrayList<RegionInfo>()) {
      regions.get(state(info)).add(info);
    }
    return regions;
  }

  private TableStateManager tableStates() {
    Map<String, Answer> answers = new HashMap<>();
    answers.put("getTableState", a -> tableState((TableName) a[0]));
    answers.put("isTableState", a -> {
      Object states = a[1];
      TableState.State[] wanted = states instanceof TableState.State[] ? (TableState.State[]) states
          : Arrays.copyOfRange(a, 1, a.length, TableState.State[].class);
      return tableState((TableName) a[0]).inStates(wanted);
    });
    return standin(TableStateManager.class, answers);
  }

  private TableState tableState(TableName table) throws IOException {
    boolean enabled = admin().isTableEnabled(table);
    return new TableState(table, enabled ? TableState.State.ENABLED : TableState.State.DISABLED);
  }

  private HRegionServer server() {
    Map<String, Answer> answers = new HashMap<>();
    answers.put("getServerName", a -> serverName());
    answers.put("getConfiguration", a -> util.getConfiguration());
    answers.put("getRegions", a -> a.length == 0 ? allRegions() : regions((TableName) a[0]));
    answers.put("getNumberOfOnlineRegions", a -> allRegions().size());
    answers.put("getRegion", a -> region(a[0]));
    answers.put("getRegionByEncodedName", a -> region(a[0]));
    answers.put("getOnlineRegion", a -> region(a[0]));
    answers.put("isAborted", a -> false);
    answers.put("isStopped", a -> false);
    answers.put("isAlive", a -> true);
    answers.put("isOnline", a -> true);
    return standin(HRegionServer.class, answers);
  }

  private List<HRegion> regions(TableName... tables) throws IOException {
    List<HRegion> regions = new ArrayList<>();
    for (TableName table : tables) {
      for (RegionInfo info : admin().getRegions(table)) {
        regions.add(region(info));
      }
    }
    return regions;
  }

  private List<HRegion> allRegions() throws IOException {
    List<HRegion> regions = new ArrayList<>();
    for (RegionInfo info : admin().getRegions(serverName())) {
      regions.add(region(info));
    }
    return regions;
  }

  /** The open region with this name or encoded name, null without one. */
  private HRegion region(Object name) throws IOException {
    for (TableName table : admin().listTableNames()) {
      for (RegionInfo info : admin().getRegions(table)) {
        boolean named = name instanceof byte[] && Arrays.equals((byte[]) name, info.getRegionName());
        if (named || info.getEncodedName().equals(name)) {
          return isOpen(info) ? region(info) : null;
        }
      }
    }
    return null;
  }

  private boolean isOpen(RegionInfo info) throws IOException {
    return info.isMetaRegion() || state(info) == RegionState.State.OPEN;
  }

  /** The state in hbase:meta. */
  private RegionState.State state(RegionInfo info) throws IOException {
    try (Table meta = util.getConnection().getTable(TableName.META_TABLE_NAME)) {
      Result row = meta.get(new Get(info.getRegionName()));
      byte[] state = row.getValue(HConstants.CATALOG_FAMILY, HConstants.STATE_QUALIFIER);
      return state == null ? RegionState.State.OFFLINE : RegionState.State.valueOf(Bytes.toString(state));
    }
  }

  private HRegion region(RegionInfo info) throws IOException {
    TableDescriptor descriptor = admin().getDescriptor(info.getTable());
    Map<String, Answer> answers = new HashMap<>();
    answers.put("getRegionInfo", a -> info);
    answers.put("getTableDescriptor", a -> descriptor);
    answers.put("isClosed", a -> false);
    answers.put("isClosing", a -> false);
    answers.put("isAvailable", a -> true);
    answers.put("isReadOnly", a -> descriptor.isReadOnly());
    answers.put("getReadRequestsCount", a -> metrics(info).getReadRequestCount());
    answers.put("getWriteRequestsCount", a -> metrics(info).getWriteRequestCount());
    // In MiB, rounded up: tests ask whether there is something.
    answers.put("getMemStoreDataSize", a -> (long) metrics(info).getMemStoreSize().get(Size.Unit.BYTE));
    answers.put("flush", a -> {
      admin().flushRegion(info.getRegionName());
      return null;
    });
    answers.put("compact", a -> {
      BasaltShim.compact(util, new Object[] {info.getTable(), a[0]});
      return null;
    });
    return standin(HRegion.class, answers);
  }

  private RegionMetrics metrics(RegionInfo info) throws IOException {
    for (RegionMetrics metrics : admin().getRegionMetrics(serverName(), info.getTable())) {
      if (Bytes.equals(metrics.getRegionName(), info.getRegionName())) {
        return metrics;
      }
    }
    throw new IOException("no metrics of " + info);
  }

  private Admin admin() throws IOException {
    return util.getAdmin();
  }

  private ServerName serverName() throws IOException {
    return admin().getRegionServers().iterator().next();
  }

  private static TableName table(Object name) {
    return name instanceof TableName ? (TableName) name : TableName.valueOf((byte[]) name);
  }
}
