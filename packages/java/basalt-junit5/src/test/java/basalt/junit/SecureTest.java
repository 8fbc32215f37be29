package basalt.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import basalt.server.BasaltServer;
import java.io.IOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.junit.jupiter.api.Test;

@BasaltTest(secure = true)
class SecureTest {
  @Test
  void theConnectionIsTheSuperusers(Connection connection, BasaltServer server) throws IOException {
    TableName name = TableName.valueOf("t");
    try (Admin admin = connection.getAdmin()) {
      admin.createTable(
          TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
      assertEquals(1, admin.listTableNames().length);
    }
    assertEquals("admin", server.security().user());
  }

  @Test
  void othersAreRefused(BasaltServer server) throws IOException {
    try (Connection other =
            ConnectionFactory.createConnection(HBase.configuration(server.host(), server.port()));
        Admin admin = other.getAdmin()) {
      assertThrows(IOException.class, admin::listTableNames);
    }
  }
}
