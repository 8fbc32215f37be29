package basalt;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.codec.KeyValueCodecWithTags;

/** The two clusters: {@code h} is HBase, {@code b} is Basalt. A connection is opened when it is needed first. */
final class Clusters {
  private final Map<String, String> ports = new HashMap<>();
  private final Map<String, Connection> connections = new HashMap<>();

  Clusters(String hbase, String basalt) {
    ports.put("h", hbase);
    ports.put("b", basalt);
  }

  /** Basalt has another port after a restart. */
  void move(String cluster, String port) throws IOException {
    ports.put(cluster, port);
    Connection old = connections.remove(cluster);
    if (old != null) {
      old.close();
    }
  }

  /** The key under which a peer names the cluster. */
  String key(String cluster) {
    return "127.0.0.1:" + ports.get(cluster) + ":/hbase";
  }

  Configuration configuration(String cluster) {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", ports.get(cluster));
    // Cells are compared with their tags, which clients get with this codec only.
    conf.set("hbase.client.rpc.codec", KeyValueCodecWithTags.class.getName());
    conf.setInt("hbase.client.retries.number", 4);
    conf.setInt("hbase.client.pause", 50);
    return conf;
  }

  Connection connection(String cluster) throws IOException {
    Connection open = connections.get(cluster);
    if (open == null) {
      open = ConnectionFactory.createConnection(configuration(cluster));
      connections.put(cluster, open);
    }
    return open;
  }
}
