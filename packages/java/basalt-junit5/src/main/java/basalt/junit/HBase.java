package basalt.junit;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/** HBase's client for one server, found without ZooKeeper. */
public final class HBase {
  private HBase() {}

  /** Settings of HBase's client for the server at this address. Retries come quickly and end within seconds. */
  public static Configuration configuration(String host, int port) {
    Configuration configuration = HBaseConfiguration.create();
    configuration.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.RpcConnectionRegistry");
    configuration.set("hbase.client.bootstrap.servers", host + ":" + port);
    configuration.setInt("hbase.client.pause", 10);
    configuration.setInt("hbase.client.operation.timeout", 20_000);
    return configuration;
  }

  /** A connection to the server at this address; the caller closes it. */
  public static Connection connect(String host, int port) throws IOException {
    return ConnectionFactory.createConnection(configuration(host, port));
  }
}
