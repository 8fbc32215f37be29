package basalt.client;

import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.thrift2.client.ThriftConnection;

/**
 * A tour through a Thrift 2 server with HBase's own client for it, as an application uses it: a {@link Connection} whose class
 * is a setting.
 *
 * <p>Arguments: host (with {@code http://} for the HTTP transport), port, then any of {@code framed}, {@code compact},
 * {@code http}. Prints a transcript of every answer. Two servers that a client cannot tell apart leave the same transcript:
 * what may differ from run to run (the server's clock, addresses, region ids, the words of a message) is not in it.
 */
public final class Tour {
  private Tour() {}

  public static void main(String[] arguments) throws Exception {
    List<String> words = List.of(arguments).subList(2, arguments.length);
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.client.connection.impl", ThriftConnection.class.getName());
    conf.set("hbase.thrift.server.name", arguments[0]);
    conf.set("hbase.thrift.server.port", arguments[1]);
    conf.setBoolean("hbase.regionserver.thrift.framed", words.contains("framed"));
    conf.setBoolean("hbase.regionserver.thrift.compact", words.contains("compact"));
    // By default the client waits twenty minutes for an answer.
    conf.setInt("hbase.client.operation.timeout", 60_000);
    if (words.contains("http")) {
      conf.set(
          "hbase.thrift.client.builder.class",
          ThriftConnection.HTTPThriftClientBuilder.class.getName());
    }
    Transcript transcript = new Transcript();
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      new Tables(connection, transcript).run();
      new Rows(connection, transcript).run();
      new Scans(connection, transcript).run();
      new Errors(connection, transcript).run();
    }
    System.out.println("tour done");
  }
}
