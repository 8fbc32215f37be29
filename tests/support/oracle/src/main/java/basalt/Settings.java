package basalt;

import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/**
 * The settings of the oracle, each with why.
 *
 * <p>Invariant: a setting here changes where HBase lives, how long it takes or how much it needs, never what it answers.
 * Everything about versions, time to live, filters, scanners, leases, retries, compaction policy, splits and limits keeps the
 * default of {@code hbase-default.xml}.
 */
final class Settings {
  private Settings() {}

  static Configuration of(Path directory, List<String> overrides) {
    // A transaction log that is synced to disk is of no use to data that is thrown away.
    System.setProperty("zookeeper.forceSync", "no");
    System.setProperty("zookeeper.admin.enableServer", "false");
    Configuration conf = HBaseConfiguration.create();
    place(conf, directory);
    if (!Boolean.getBoolean("basalt.load")) {
      small(conf);
    }
    quick(conf);
    for (String override : overrides) {
      String[] parts = override.split("=", 2);
      if (parts.length != 2) {
        throw new IllegalArgumentException("a setting is key=value, not " + override);
      }
      conf.set(parts[0], parts[1]);
    }
    return conf;
  }

  /** Where it lives: one directory, the loopback interface, ports that the system chooses. */
  private static void place(Configuration conf, Path directory) {
    conf.set("hbase.rootdir", directory.resolve("hbase").toUri().toString());
    conf.set("hbase.tmp.dir", directory.resolve("tmp").toString());
    conf.set("hadoop.tmp.dir", directory.resolve("hadoop").toString());
    // Master and region server are threads of this process.
    conf.setBoolean("hbase.cluster.distributed", false);
    // The local file system has no hflush; HBase would refuse to write its log on it.
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    for (String server : new String[] {"master", "regionserver"}) {
      conf.set("hbase." + server + ".ipc.address", "127.0.0.1");
      conf.setInt("hbase." + server + ".port", 0);
      // No web pages.
      conf.setInt("hbase." + server + ".info.port", -1);
    }
    conf.setInt("hbase.thrift.info.port", -1);
    conf.set("hbase.rest.host", "127.0.0.1");
    conf.setInt("hbase.rest.port", 0);
    conf.setInt("hbase.rest.info.port", -1);
    // Without these names, HBase asks DNS for the name of the machine, which may not answer.
    conf.set("hbase.master.hostname", "localhost");
    conf.set("hbase.unsafe.regionserver.hostname", "localhost");
    conf.set("hbase.regionserver.thrift.ipaddress", "127.0.0.1");
  }

  /** How much it needs: a few threads and small buffers, for one tester on a small machine. Not for one that is to show its speed. */
  private static void small(Configuration conf) {
    conf.setInt("hbase.regionserver.handler.count", 8);
    conf.setInt("hbase.regionserver.metahandler.count", 4);
    conf.setInt("hbase.master.handler.count", 8);
    conf.setInt("hbase.master.procedure.threads", 4);
    conf.setInt("hbase.netty.worker.count", 2);
    conf.setInt("hbase.netty.eventloop.rpcserver.thread.count", 2);
    // Each memstore allocates chunks of this size (2 MiB by default), and random tables have many.
    conf.setInt("hbase.hregion.memstore.mslab.chunksize", 256 * 1024);
    conf.setInt("hbase.hregion.memstore.mslab.max.allocation", 64 * 1024);
    // The ring buffers of the logs.
    conf.setInt("hbase.regionserver.wal.disruptor.event.count", 1024);
  }

  /** How long it takes: no waiting where only one region server will ever come, and nothing synced to disk. */
  private static void quick(Configuration conf) {
    conf.setInt("hbase.master.wait.on.regionservers.mintostart", 1);
    conf.setInt("hbase.master.wait.on.regionservers.maxtostart", 1);
    conf.setInt("hbase.master.wait.on.regionservers.interval", 20);
    conf.setInt("hbase.regionserver.msginterval", 100);
    // This one is longer than the default of 30 s: a machine that compiles at the same time needs most of that.
    conf.setInt("hbase.master.start.timeout.localHBaseCluster", 180_000);
    // The master collects remote calls and assignments for this long before it sends them.
    conf.setInt("hbase.procedure.remote.dispatcher.delay.msec", 0);
    conf.setInt("hbase.assignment.dispatch.wait.msec", 1);
    // First pause between two attempts of a client, also between two questions whether a procedure is done. The number of
    // attempts stays.
    conf.setInt("hbase.client.pause", 1);
    conf.setBoolean("hbase.master.store.region.wal.hsync", false);
    // One region server has nothing to balance.
    conf.setInt("hbase.balancer.period", Integer.MAX_VALUE);
    // A gateway serves one connection per thread and by default starts more than 16 only when its queue is full.
    conf.setInt("hbase.thrift.minWorkerThreads", 128);
    // It closes a connection that was silent for a minute; a tester that compares slowly would meet that.
    conf.setInt("hbase.thrift.server.socket.read.timeout", 0);
  }
}
