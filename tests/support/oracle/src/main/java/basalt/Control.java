package basalt;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionContext;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionLifeCycleTracker;
import org.apache.hadoop.hbase.regionserver.throttle.NoLimitThroughputController;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.VersionInfo;

/**
 * What HBase's Thrift services cannot do: flush, compaction, split, limits of servers, and a clean slate.
 *
 * <p>Flush and compaction call the regions themselves instead of asking through the client: such a call returns when the work
 * is done, and a flush then starts no compaction by itself, so a sequence of commands leaves the same store files each time.
 * The compaction is HBase's own, with its own choice of files.
 *
 * <p>Used by one thread.
 */
final class Control {
  private static final long DEADLINE_SECONDS = 60;

  private final Cluster cluster;
  private final Admin admin;

  Control(Cluster cluster) throws IOException {
    this.cluster = cluster;
    this.admin = cluster.connection().getAdmin();
  }

  /** Carries out a command; the text of its answer, which may be empty. */
  String run(String command) throws Exception {
    String[] words = command.split(" +");
    switch (words[0]) {
      case "flush":
        for (HRegion region : regions(words, 2)) {
          region.flush(true);
        }
        return "";
      case "compact":
        for (HRegion region : regions(words, 2)) {
          region.compact(false);
        }
        return "";
      case "major_compact":
        for (HRegion region : regions(words, 2)) {
          await("the major compaction of " + words[1], () -> majorCompact(region));
        }
        return "";
      case "split":
        split(regions(words, 3), TableName.valueOf(words[1]), Bytes.toBytesBinary(words[2]));
        return "";
      case "drop_all":
        dropAll();
        return "";
      case "limit":
        limit(Long.parseLong(words[1]));
        return "";
      case "zookeeper":
        return admin.getConfiguration().get("hbase.zookeeper.property.clientPort");
      case "region_server":
        return cluster.regionServer().getServerName().getAddress().toString();
      case "rest":
        return String.valueOf(cluster.restPort());
      case "stop_hbase":
        cluster.stopHBase();
        return "";
      case "start_hbase":
        cluster.startHBase();
        return "";
      case "scanners":
        return String.valueOf(cluster.scanners());
      case "version":
        return VersionInfo.getVersion();
      default:
        throw new IllegalArgumentException("no such command: " + command);
    }
  }

  /**
   * Lets each region server take so many requests in a second, by HBase's own quota. Each row of a batch is a request. Returns when all
   * region servers know: they read quotas again every {@code hbase.quota.refresh.period}.
   */
  private void limit(long requestsPerSecond) throws Exception {
    admin.setQuota(
        QuotaSettingsFactory.throttleRegionServer(
            "all", ThrottleType.REQUEST_NUMBER, requestsPerSecond, TimeUnit.SECONDS));
    TimeUnit.MILLISECONDS.sleep(2 * admin.getConfiguration().getLong("hbase.quota.refresh.period", 0));
  }

  /** The regions of the table that the second word names. */
  private List<HRegion> regions(String[] words, int count) throws IOException {
    if (words.length != count) {
      throw new IllegalArgumentException(words[0] + " takes " + (count - 1) + " words");
    }
    TableName table = TableName.valueOf(words[1]);
    List<HRegion> regions = cluster.regionServer().getRegions(table);
    if (regions.isEmpty() && !admin.tableExists(table)) {
      throw new TableNotFoundException(table);
    }
    return regions;
  }

  /** Runs a major compaction; whether each store is now what one leaves behind. */
  private static boolean majorCompact(HRegion region) throws IOException {
    for (HStore store : region.getStores()) {
      // A store without files would remember the wish, and its next minor compaction would be a major one.
      if (store.getStorefilesCount() > 0) {
        store.triggerMajorCompaction();
        // With a user's priority: only then HBase takes more files than `hbase.hstore.compaction.max` at once.
        Optional<CompactionContext> compaction =
            store.requestCompaction(Store.PRIORITY_USER, CompactionLifeCycleTracker.DUMMY, null);
        if (compaction.isPresent()) {
          region.compact(compaction.get(), store, NoLimitThroughputController.INSTANCE);
        }
      }
    }
    for (HStore store : region.getStores()) {
      if (store.getStorefilesCount() > 1) {
        return false;
      }
      for (HStoreFile file : store.getStorefiles()) {
        if (!file.isMajorCompactionResult()) {
          return false;
        }
      }
    }
    return true;
  }

  /**
   * Splits the region that has the row. Returns when both daughters serve and own their files. HBase gives them files of their own in a
   * compaction some time later, or never where compactions are off; here it is done at once.
   */
  private void split(List<HRegion> regions, TableName table, byte[] row) throws Exception {
    RegionInfo parent = null;
    for (HRegion region : regions) {
      if (region.getRegionInfo().containsRow(row)) {
        parent = region.getRegionInfo();
      }
    }
    if (parent == null) {
      throw new IOException("no region of " + table + " serves row " + Bytes.toStringBinary(row));
    }
    await(admin.splitRegionAsync(parent.getRegionName(), row));
    int expected = regions.size() + 1;
    await(
        "the split of " + table,
        () -> {
          List<HRegion> now = cluster.regionServer().getRegions(table);
          for (HRegion region : now) {
            if (hasReferences(region)) {
              region.compact(false);
            }
          }
          return now.size() == expected && now.stream().noneMatch(Control::hasReferences);
        });
    // The parent's files count as referred to until what was compacted is put away, and until then a daughter refuses to be
    // split. A chore does it every two minutes.
    for (HRegion region : cluster.regionServer().getRegions(table)) {
      for (HStore store : region.getStores()) {
        store.closeAndArchiveCompactedFiles();
      }
    }
  }

  /** Whether the region still reads files of the region that it was split from. */
  private static boolean hasReferences(HRegion region) {
    return region.getStores().stream()
        .flatMap(store -> store.getStorefiles().stream())
        .anyMatch(HStoreFile::isReference);
  }

  /** Disables and deletes every table, those of a phase at the same time, then every namespace. */
  private void dropAll() throws Exception {
    TableName[] tables = admin.listTableNames();
    List<Future<Void>> pending = new ArrayList<>();
    for (TableName table : tables) {
      if (admin.isTableEnabled(table)) {
        pending.add(admin.disableTableAsync(table));
      }
    }
    awaitAll(pending);
    for (TableName table : tables) {
      pending.add(admin.deleteTableAsync(table));
    }
    awaitAll(pending);
    for (NamespaceDescriptor namespace : admin.listNamespaceDescriptors()) {
      if (!NamespaceDescriptor.RESERVED_NAMESPACES.contains(namespace.getName())) {
        pending.add(admin.deleteNamespaceAsync(namespace.getName()));
      }
    }
    awaitAll(pending);
  }

  private static void awaitAll(List<Future<Void>> pending) throws Exception {
    for (Future<Void> future : pending) {
      await(future);
    }
    pending.clear();
  }

  private static void await(Future<Void> future) throws Exception {
    future.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
  }

  private static void await(String what, Callable<Boolean> done) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
    while (!done.call()) {
      if (System.nanoTime() > deadline) {
        throw new IOException(what + " took longer than " + DEADLINE_SECONDS + " s");
      }
      Thread.sleep(2);
    }
  }
}
