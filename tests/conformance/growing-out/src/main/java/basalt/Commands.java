package basalt;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerMetrics;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.replication.ReplicationLoadSink;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfigBuilder;
import org.apache.hadoop.hbase.replication.ReplicationPeerDescription;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** The commands. The first word of most is the cluster: {@code h} or {@code b}. */
final class Commands {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] OTHER = Bytes.toBytes("g");

  private final Clusters clusters;

  Commands(Clusters clusters) {
    this.clusters = clusters;
  }

  String run(String command, List<String> words) throws Exception {
    switch (command) {
      case "move":
        clusters.move(words.get(0), words.get(1));
        return "";
      case "create":
        return create(words);
      case "create_namespace":
        admin(words).createNamespace(NamespaceDescriptor.create(words.get(1)).build());
        return "";
      case "drop":
        admin(words).disableTable(name(words));
        admin(words).deleteTable(name(words));
        return "";
      case "disable":
        admin(words).disableTable(name(words));
        return "";
      case "enable":
        admin(words).enableTable(name(words));
        return "";
      case "read_only":
        return readOnly(words);
      case "add_peer":
        return addPeer(words);
      case "remove_peer":
        admin(words).removeReplicationPeer(words.get(1));
        return "";
      case "enable_peer":
        admin(words).enableReplicationPeer(words.get(1));
        return "";
      case "disable_peer":
        admin(words).disableReplicationPeer(words.get(1));
        return "";
      case "bandwidth":
        admin(words)
            .updateReplicationPeerConfig(
                words.get(1),
                ReplicationPeerConfig.newBuilder(admin(words).getReplicationPeerConfig(words.get(1)))
                    .setBandwidth(Long.parseLong(words.get(2)))
                    .build());
        return "";
      case "peer_config":
        return admin(words).getReplicationPeerConfig(words.get(1)).toString();
      case "peer_modification":
        return String.valueOf(admin(words).replicationPeerModificationSwitch(words.get(1).equals("on")));
      case "sources":
        return sources(words);
      case "peers":
        return peers(words);
      case "enable_table_replication":
        admin(words).enableTableReplication(name(words));
        return "";
      case "fill":
        return fill(words);
      case "large":
        return large(words);
      case "variety":
        return variety(words);
      case "count_up":
        return countUp(words);
      case "put":
        return put(words);
      case "put_at":
        return putAt(words);
      case "get":
        return get(words);
      case "compactions":
        admin(words).compactionSwitch(words.get(1).equals("on"), new ArrayList<>());
        return "";
      case "digest":
        return Cells.digest(connection(words), words.get(1), words.contains("raw"));
      case "cells":
        return String.join(" ; ", Cells.first(connection(words), words.get(1), 5000));
      case "differences":
        return differences(words);
      case "await_equal":
        return awaitEqual(words.get(0), Integer.parseInt(words.get(1)));
      case "await_cells":
        return awaitCells(words);
      case "descriptor":
        return TableDescriptorBuilder.newBuilder(admin(words).getDescriptor(name(words))).build().toString();
      case "equal_descriptors":
        return equalDescriptors(words.get(0));
      case "regions":
        return regions(words);
      case "split":
        return split(words);
      case "flush":
        admin(words).flush(name(words));
        return "";
      case "major_compact":
        return majorCompact(words);
      case "sink":
        return sink(words);
      case "snapshot":
        admin(words).snapshot(words.get(2), name(words));
        return "";
      case "clone_snapshot":
        admin(words).cloneSnapshot(words.get(2), name(words));
        return "";
      case "restore_snapshot":
        admin(words).disableTable(name(words));
        admin(words).restoreSnapshot(words.get(2));
        admin(words).enableTable(name(words));
        return "";
      case "snapshots":
        List<String> names = new ArrayList<>();
        admin(words).listSnapshots().forEach(one -> names.add(one.getName()));
        Collections.sort(names);
        return String.join(" ", names);
      case "cluster_id":
        return admin(words).getClusterMetrics().getClusterId();
      case "tool":
        return tool(words);
      case "load":
        return BulkFiles.load(clusters.configuration(words.get(0)), connection(words), words);
      case "read_snapshot":
        return SnapshotFiles.read(words);
      default:
        throw new IllegalArgumentException("no such command: " + command);
    }
  }

  private Connection connection(List<String> words) throws Exception {
    return clusters.connection(words.get(0));
  }

  private Admin admin(List<String> words) throws Exception {
    return connection(words).getAdmin();
  }

  private static TableName name(List<String> words) {
    return TableName.valueOf(words.get(1));
  }

  /** {@code create CLUSTER TABLE [local] [split=KEY]}: families f and g with five versions, and a scope unless it is local. */
  private String create(List<String> words) throws Exception {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name(words));
    for (byte[] family : new byte[][] {FAMILY, OTHER}) {
      table.setColumnFamily(
          ColumnFamilyDescriptorBuilder.newBuilder(family)
              .setMaxVersions(5)
              .setScope(words.contains("local") ? 0 : 1)
              .build());
    }
    List<byte[]> splits = new ArrayList<>();
    for (String word : words) {
      if (word.startsWith("split=")) {
        splits.add(Bytes.toBytes(word.substring("split=".length())));
      }
    }
    admin(words).createTable(table.build(), splits.isEmpty() ? null : splits.toArray(new byte[0][]));
    return "";
  }

  private String readOnly(List<String> words) throws Exception {
    TableDescriptor old = admin(words).getDescriptor(name(words));
    admin(words)
        .modifyTable(TableDescriptorBuilder.newBuilder(old).setReadOnly(Boolean.parseBoolean(words.get(2))).build());
    return "";
  }

  /** What the region server says of its sources: peer, lag, edits shipped. */
  private String sources(List<String> words) throws Exception {
    List<String> shown = new ArrayList<>();
    for (ServerMetrics server : admin(words).getClusterMetrics().getLiveServerMetrics().values()) {
      server
          .getReplicationLoadSourceList()
          .forEach(
              load ->
                  shown.add(
                      load.getPeerID() + " lag=" + load.getReplicationLag() + " shipped=" + load.getOPsShipped()
                          + " running=" + load.isRunning()));
    }
    return String.join(" ; ", shown);
  }

  /** {@code add_peer CLUSTER ID TARGET [tables=a,b] [key=value ...]}. */
  private String addPeer(List<String> words) throws Exception {
    String target = words.get(2);
    ReplicationPeerConfigBuilder peer =
        ReplicationPeerConfig.newBuilder()
            .setClusterKey(target.contains(":") ? target : clusters.key(target));
    for (String word : words.subList(3, words.size())) {
      String[] pair = word.split("=", 2);
      if (pair[0].equals("tables")) {
        Map<TableName, List<String>> tables = new HashMap<>();
        for (String table : pair[1].split(",")) {
          tables.put(TableName.valueOf(table), null);
        }
        peer.setReplicateAllUserTables(false).setTableCFsMap(tables);
      } else {
        peer.putConfiguration(pair[0], pair[1]);
      }
    }
    admin(words).addReplicationPeer(words.get(1), peer.build());
    return "";
  }

  private String peers(List<String> words) throws Exception {
    List<String> shown = new ArrayList<>();
    for (ReplicationPeerDescription peer : admin(words).listReplicationPeers()) {
      shown.add(peer.getPeerId() + (peer.isEnabled() ? " ENABLED" : " DISABLED"));
    }
    return String.join(", ", shown);
  }

  private static byte[] row(long number) {
    return Bytes.toBytes(String.format("row-%08d", number));
  }

  /** {@code fill CLUSTER TABLE FROM COUNT BYTES}: rows of one cell, a thousand in a batch. */
  private String fill(List<String> words) throws Exception {
    long from = Long.parseLong(words.get(2));
    long count = Long.parseLong(words.get(3));
    byte[] value = new byte[Integer.parseInt(words.get(4))];
    Random random = new Random(from);
    try (Table table = connection(words).getTable(name(words))) {
      List<Put> puts = new ArrayList<>();
      for (long number = from; number < from + count; number++) {
        random.nextBytes(value);
        puts.add(new Put(row(number)).addColumn(FAMILY, Bytes.toBytes("q"), value.clone()));
        if (puts.size() == 1000 || number + 1 == from + count) {
          table.put(puts);
          puts.clear();
        }
      }
    }
    return "";
  }

  /** {@code large CLUSTER TABLE COUNT BYTES}: as many values of that size in one batch. */
  private String large(List<String> words) throws Exception {
    List<Put> puts = new ArrayList<>();
    Random random = new Random(1);
    for (int number = 0; number < Integer.parseInt(words.get(2)); number++) {
      byte[] value = new byte[Integer.parseInt(words.get(3))];
      random.nextBytes(value);
      puts.add(new Put(row(number)).addColumn(FAMILY, Bytes.toBytes("q"), value));
    }
    try (Table table = connection(words).getTable(name(words))) {
      table.put(puts);
    }
    return "";
  }

  private String put(List<String> words) throws Exception {
    try (Table table = connection(words).getTable(name(words))) {
      table.put(
          new Put(Bytes.toBytes(words.get(2))).addColumn(FAMILY, Bytes.toBytes("q"), Bytes.toBytes(words.get(3))));
    }
    return "";
  }

  /** {@code put_at CLUSTER TABLE ROW TIMESTAMP VALUE}. */
  private String putAt(List<String> words) throws Exception {
    try (Table table = connection(words).getTable(name(words))) {
      table.put(
          new Put(Bytes.toBytes(words.get(2)), Long.parseLong(words.get(3)))
              .addColumn(FAMILY, Bytes.toBytes("q"), Bytes.toBytes(words.get(4))));
    }
    return "";
  }

  /** {@code get CLUSTER TABLE ROW}: the newest value. */
  private String get(List<String> words) throws Exception {
    try (Table table = connection(words).getTable(name(words))) {
      byte[] value = table.get(new Get(Bytes.toBytes(words.get(2)))).getValue(FAMILY, Bytes.toBytes("q"));
      return value == null ? "nothing" : Bytes.toStringBinary(value);
    }
  }

  /** Versions, times to live (which are tags), several columns of a row, all kinds of tombstones, increments, appends. */
  private String variety(List<String> words) throws Exception {
    try (Table table = connection(words).getTable(name(words))) {
      for (int version = 1; version <= 4; version++) {
        table.put(new Put(Bytes.toBytes("versions"), version).addColumn(FAMILY, FAMILY, Bytes.toBytes(version)));
      }
      Put expires = new Put(Bytes.toBytes("ttl"));
      expires.setTTL(86_400_000L * 365);
      table.put(expires.addColumn(FAMILY, FAMILY, Bytes.toBytes("a year")));
      Put wide = new Put(Bytes.toBytes("wide"));
      for (int column = 0; column < 300; column++) {
        wide.addColumn(column % 2 == 0 ? FAMILY : OTHER, Bytes.toBytes(column), new byte[column]);
      }
      table.put(wide);
      for (String row : new String[] {"one-version", "all-versions", "family", "family-version", "row"}) {
        byte[] key = Bytes.toBytes(row);
        for (int version = 1; version <= 3; version++) {
          table.put(
              new Put(key, version)
                  .addColumn(FAMILY, FAMILY, Bytes.toBytes(version))
                  .addColumn(OTHER, OTHER, Bytes.toBytes(version)));
        }
      }
      table.delete(new Delete(Bytes.toBytes("one-version")).addColumn(FAMILY, FAMILY, 2));
      table.delete(new Delete(Bytes.toBytes("one-version")).addColumn(OTHER, OTHER));
      table.delete(new Delete(Bytes.toBytes("all-versions")).addColumns(FAMILY, FAMILY, 2));
      table.delete(new Delete(Bytes.toBytes("family")).addFamily(FAMILY));
      table.delete(new Delete(Bytes.toBytes("family-version")).addFamilyVersion(OTHER, 3));
      table.delete(new Delete(Bytes.toBytes("row")));
      table.put(new Put(Bytes.toBytes("empty")).addColumn(FAMILY, new byte[0], new byte[0]));
    }
    return countUp(words);
  }

  private String countUp(List<String> words) throws Exception {
    try (Table table = connection(words).getTable(name(words))) {
      for (int times = 0; times < 10; times++) {
        table.increment(new Increment(Bytes.toBytes("counter")).addColumn(FAMILY, FAMILY, 7));
        table.append(new Append(Bytes.toBytes("text")).addColumn(OTHER, OTHER, Bytes.toBytes("+" + times)));
      }
    }
    return "";
  }

  /** {@code differences TABLE_OF_H TABLE_OF_B}: cells that one has and the other lacks, for people. */
  private String differences(List<String> words) throws Exception {
    List<String> given = new ArrayList<>();
    List<String> taken = new ArrayList<>();
    Cells.each(clusters.connection("h"), words.get(0), true, given::add);
    Cells.each(clusters.connection("b"), words.get(1), true, taken::add);
    List<String> both = new ArrayList<>(given);
    taken.forEach(given::remove);
    both.forEach(taken::remove);
    return "only in HBase: " + given + "; only in Basalt: " + taken;
  }

  /** Waits until both clusters have the same cells of the table. */
  private String awaitEqual(String table, int seconds) throws Exception {
    long until = System.nanoTime() + seconds * 1_000_000_000L;
    while (true) {
      String given = Cells.digest(clusters.connection("h"), table, true);
      String taken;
      try {
        taken = Cells.digest(clusters.connection("b"), table, true);
      } catch (java.io.IOException missing) {
        taken = missing.toString();
      }
      if (given.equals(taken)) {
        return given;
      }
      if (System.nanoTime() > until) {
        throw new AssertionError(
            "HBase has " + given + ", Basalt " + taken + ": "
                + Cells.first(clusters.connection("h"), table, 3) + " and "
                + Cells.first(clusters.connection("b"), table, 3));
      }
      Thread.sleep(200);
    }
  }

  /** {@code await_cells CLUSTER TABLE COUNT SECONDS}: waits until the table has at least as many cells. */
  private String awaitCells(List<String> words) throws Exception {
    long until = System.nanoTime() + Integer.parseInt(words.get(3)) * 1_000_000_000L;
    while (true) {
      String digest = Cells.digest(connection(words), words.get(1), true);
      if (Long.parseLong(digest.split(" ")[0]) >= Long.parseLong(words.get(2))) {
        return digest;
      }
      if (System.nanoTime() > until) {
        throw new AssertionError("there are " + digest);
      }
      Thread.sleep(100);
    }
  }

  /** Fails unless both clusters have the same descriptor, as HBase compares them for replication. */
  private String equalDescriptors(String table) throws Exception {
    TableDescriptor given = clusters.connection("h").getAdmin().getDescriptor(TableName.valueOf(table));
    TableDescriptor taken = clusters.connection("b").getAdmin().getDescriptor(TableName.valueOf(table));
    if (TableDescriptor.COMPARATOR_IGNORE_REPLICATION.compare(given, taken) != 0) {
      throw new AssertionError(given + " and " + taken);
    }
    return "";
  }

  private String regions(List<String> words) throws Exception {
    List<String> starts = new ArrayList<>();
    for (RegionInfo region : admin(words).getRegions(name(words))) {
      starts.add("[" + Bytes.toStringBinary(region.getStartKey()));
    }
    return String.join(" ", starts);
  }

  private String split(List<String> words) throws Exception {
    int before = admin(words).getRegions(name(words)).size();
    admin(words).split(name(words), Bytes.toBytes(words.get(2)));
    long until = System.nanoTime() + 60_000_000_000L;
    while (admin(words).getRegions(name(words)).size() <= before) {
      if (System.nanoTime() > until) {
        throw new AssertionError("not split");
      }
      Thread.sleep(50);
    }
    return "";
  }

  private String majorCompact(List<String> words) throws Exception {
    long before = admin(words).getLastMajorCompactionTimestamp(name(words));
    admin(words).majorCompact(name(words));
    long until = System.nanoTime() + 60_000_000_000L;
    while (admin(words).getLastMajorCompactionTimestamp(name(words)) <= before) {
      if (System.nanoTime() > until) {
        throw new AssertionError("not compacted");
      }
      Thread.sleep(50);
    }
    return "";
  }

  /** The figures that the shell's {@code status 'replication'} prints. */
  private String sink(List<String> words) throws Exception {
    ClusterMetrics metrics = admin(words).getClusterMetrics();
    ServerMetrics server = metrics.getLiveServerMetrics().values().iterator().next();
    ReplicationLoadSink sink = server.getReplicationLoadSink();
    return "age=" + sink.getAgeOfLastAppliedOp()
        + " waiting=" + (sink.getTimestampsOfLastAppliedOp() == sink.getTimestampStarted())
        + " applied=" + sink.getTimestampsOfLastAppliedOp()
        + " total=" + sink.getTotalOpsProcessed();
  }

  /** {@code tool CLUSTER CLASS ARGUMENTS}: a tool of HBase with the cluster's configuration. {@code {b}} stands for Basalt's key. */
  private String tool(List<String> words) throws Exception {
    Configuration conf = clusters.configuration(words.get(0));
    Tool tool = (Tool) Class.forName(words.get(1)).getDeclaredConstructor().newInstance();
    List<String> arguments = new ArrayList<>();
    for (String word : words.subList(2, words.size())) {
      if (word.startsWith("-Dset:")) {
        String[] pair = word.substring("-Dset:".length()).split("=", 2);
        conf.set(pair[0], pair[1]);
      } else {
        arguments.add(word.replace("{b}", clusters.key("b")).replace("{h}", clusters.key("h")));
      }
    }
    int code = ToolRunner.run(conf, tool, arguments.toArray(new String[0]));
    if (code != 0) {
      throw new AssertionError(words.get(1) + Arrays.toString(arguments.toArray()) + " ended with " + code);
    }
    return "";
  }
}
