package basalt;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.rest.RESTServer;
import org.apache.hadoop.hbase.thrift.ThriftServer;
import org.apache.hadoop.hbase.zookeeper.MiniZooKeeperCluster;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/** The running servers. They live as long as the process; only {@link #stopHBase} stops those of HBase. */
final class Cluster {
  /** Somebody else may take a port between our look and the server's bind; then we look again. */
  private static final int PORT_ATTEMPTS = 10;

  private final Configuration conf;
  private LocalHBaseCluster hbase;
  private final Connection connection;
  private final int thrift1Port;
  private final int thrift2Port;
  private RESTServer rest;

  private Cluster(
      Configuration conf, LocalHBaseCluster hbase, Connection connection, int thrift1Port, int thrift2Port) {
    this.conf = conf;
    this.hbase = hbase;
    this.connection = connection;
    this.thrift1Port = thrift1Port;
    this.thrift2Port = thrift2Port;
  }

  /** Starts everything, in order; returns when both gateways accept connections. */
  static Cluster start(Configuration conf, File zookeeperDirectory) throws Exception {
    MiniZooKeeperCluster zookeeper = new MiniZooKeeperCluster(conf);
    int port = zookeeper.startup(zookeeperDirectory);
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.setInt("hbase.zookeeper.property.clientPort", port);
    // Each region server registers metrics under the same names.
    DefaultMetricsSystem.setMiniClusterMode(true);
    LocalHBaseCluster hbase = startHBase(conf);
    Connection connection = ConnectionFactory.createConnection(conf);
    int thrift1Port = gateway(conf, ThriftServer::new);
    int thrift2Port = gateway(conf, org.apache.hadoop.hbase.thrift2.ThriftServer::new);
    return new Cluster(conf, hbase, connection, thrift1Port, thrift2Port);
  }

  private static LocalHBaseCluster startHBase(Configuration conf) throws Exception {
    LocalHBaseCluster hbase = new LocalHBaseCluster(conf, 1, conf.getInt("hbase.regionservers", 1));
    hbase.startup();
    return hbase;
  }

  /** Stops master and region servers in good order; ZooKeeper goes on. */
  void stopHBase() {
    hbase.shutdown();
    hbase.join();
  }

  /** Starts master and region servers again, on the same data and on other ports. */
  void startHBase() throws Exception {
    hbase = startHBase(conf);
  }

  /** Scanners that are open at the region servers. */
  int scanners() {
    int open = 0;
    for (var thread : hbase.getRegionServers()) {
      open += thread.getRegionServer().getRSRpcServices().getScannersCount();
    }
    return open;
  }

  /** Starts a Thrift server on a free port. */
  private static int gateway(Configuration conf, Function<Configuration, ThriftServer> constructor)
      throws Exception {
    for (int attempt = 1; ; attempt++) {
      int port = freePort();
      ThriftServer server = constructor.apply(new Configuration(conf));
      AtomicReference<Throwable> failure = new AtomicReference<>();
      String[] arguments = {"--port", String.valueOf(port), "--infoport", "-1", "-threadpool", "start"};
      Thread thread =
          new Thread(
              () -> {
                try {
                  server.run(arguments);
                } catch (Throwable error) {
                  failure.set(error);
                }
              },
              "gateway-" + port);
      thread.setDaemon(true);
      thread.start();
      // The server object appears when its socket is bound.
      while (server.getTserver() == null && thread.isAlive()) {
        Thread.sleep(2);
      }
      if (server.getTserver() != null) {
        return port;
      }
      if (attempt == PORT_ATTEMPTS) {
        throw new IOException("a Thrift server did not start", failure.get());
      }
    }
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      return socket.getLocalPort();
    }
  }

  /** The port of the REST server, which starts when somebody asks for it first. */
  int restPort() throws Exception {
    if (rest == null) {
      rest = new RESTServer(new Configuration(conf));
      rest.run();
    }
    return rest.getPort();
  }

  int thrift1Port() {
    return thrift1Port;
  }

  int thrift2Port() {
    return thrift2Port;
  }

  /** The only one, or the first: commands about regions are for an oracle with one. */
  HRegionServer regionServer() {
    return hbase.getRegionServer(0);
  }

  Connection connection() {
    return connection;
  }
}
