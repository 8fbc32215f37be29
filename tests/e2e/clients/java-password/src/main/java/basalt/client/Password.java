package basalt.client;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;

/**
 * Logs in with a password through Apache's example provider, and gets a row.
 *
 * <p>Arguments: port, user, password, the cluster's id.
 */
public final class Password {
  private static final String PROVIDERS = "org.apache.hadoop.hbase.security.provider.example.";

  private Password() {}

  public static void main(String[] arguments) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", arguments[0]);
    conf.set("hbase.security.authentication", "kerberos");
    conf.set("hbase.client.sasl.provider.extras", PROVIDERS + "ShadeSaslClientAuthenticationProvider");
    conf.set("hbase.client.sasl.provider.class", PROVIDERS + "ShadeProviderSelector");
    UserGroupInformation user = UserGroupInformation.createRemoteUser(arguments[1]);
    UserGroupInformation.setLoginUser(user);
    ByteArrayOutputStream identifier = new ByteArrayOutputStream();
    new DataOutputStream(identifier).writeUTF(arguments[1]);
    user.addToken(
        new Token<>(
            identifier.toByteArray(),
            arguments[2].getBytes(StandardCharsets.UTF_8),
            new Text("HBASE_EXAMPLE_SHADE_TOKEN"),
            new Text(arguments[3])));
    try (Connection connection = ConnectionFactory.createConnection(conf);
        Table table = connection.getTable(TableName.valueOf("t"))) {
      System.out.println("get -> " + table.get(new Get(Bytes.toBytes("r"))).size() + " cells");
    } catch (Exception error) {
      System.out.println("get -> throws " + error.getClass().getSimpleName());
    }
    System.exit(0);
  }
}
