package basalt.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import basalt.server.BasaltServer;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

@BasaltTest
class BasaltExtensionTest {
  private static final TableName NAME = TableName.valueOf("same");
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static Connection first;

  @AfterAll
  static void forget() {
    first = null;
  }

  /** Runs three times: a later test finds nothing of an earlier one, over the same connection. */
  @RepeatedTest(3)
  void eachTestGetsAnEmptyServer(Connection connection) throws IOException {
    first = first == null ? connection : first;
    assertSame(first, connection);
    try (Admin admin = connection.getAdmin()) {
      assertEquals(0, admin.listTableNames().length);
      admin.createTable(
          TableDescriptorBuilder.newBuilder(NAME).setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build());
    }
    try (Table table = connection.getTable(NAME)) {
      Get get = new Get(Bytes.toBytes("row"));
      assertNull(table.get(get).getValue(FAMILY, Bytes.toBytes("q")));
      table.put(new Put(get.getRow()).addColumn(FAMILY, Bytes.toBytes("q"), Bytes.toBytes("v")));
      assertEquals("v", Bytes.toString(table.get(get).getValue(FAMILY, Bytes.toBytes("q"))));
    }
  }

  @Test
  void aConfigurationLeadsToTheSameServer(Configuration configuration, Connection shared) throws IOException {
    assertNotSame(configuration, shared.getConfiguration());
    try (Connection own = ConnectionFactory.createConnection(configuration);
        Admin admin = own.getAdmin();
        Admin other = shared.getAdmin()) {
      admin.createTable(
          TableDescriptorBuilder.newBuilder(NAME).setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build());
      assertTrue(other.tableExists(NAME));
    }
  }

  @Test
  void theServerItselfIsAParameter(BasaltServer server, Configuration configuration) {
    assertEquals(server.host() + ":" + server.port(), configuration.get("hbase.client.bootstrap.servers"));
  }
}
