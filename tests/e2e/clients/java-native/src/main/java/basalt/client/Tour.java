package basalt.client;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/**
 * Makes every kind of request that an application and its operator make, and prints the replies.
 *
 * <p>Arguments: how to find the cluster ({@code zookeeper}, {@code rpc}, or {@code masters},
 * which is what HBase 2.3 and 2.4 have instead of {@code rpc}), host and port.
 */
public final class Tour {
  private Tour() {}

  /** The client's configuration for the cluster that the arguments lead to. */
  static Configuration configuration(String[] arguments) {
    Configuration conf = HBaseConfiguration.create();
    if (arguments[0].equals("rpc")) {
      conf.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.RpcConnectionRegistry");
      conf.set("hbase.client.bootstrap.servers", arguments[1] + ":" + arguments[2]);
    } else if (arguments[0].equals("masters")) {
      conf.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.MasterRegistry");
      conf.set("hbase.masters", arguments[1] + ":" + arguments[2]);
    } else {
      // The default before HBase 3.0.
      conf.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.ZKConnectionRegistry");
      conf.set("hbase.zookeeper.quorum", arguments[1]);
      conf.set("hbase.zookeeper.property.clientPort", arguments[2]);
    }
    return conf;
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = configuration(arguments);
    TableName name = TableName.valueOf("jt");
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      Tables tables = new Tables(connection, name);
      tables.create();
      new Data(connection, name).run(conf);
      tables.run();
    }
    System.out.println("tour done");
  }
}
