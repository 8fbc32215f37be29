package basalt.junit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Each test finds the tables of the template, whatever the one before has changed, and they are filled once. */
@BasaltTest(template = TemplateTest.Library.class)
class TemplateTest {
  private static final TableName BOOKS = TableName.valueOf("books");
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] TITLE = Bytes.toBytes("title");
  private static final byte[] ROW = Bytes.toBytes("1");

  /** A table with one book. */
  static final class Library implements BasaltTemplate {
    static int fills;

    @Override
    public void fill(Connection connection) throws IOException {
      fills += 1;
      try (Admin admin = connection.getAdmin()) {
        admin.createTable(
            TableDescriptorBuilder.newBuilder(BOOKS).setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build());
      }
      write(connection, "Emma");
    }
  }

  private static void write(Connection connection, String title) throws IOException {
    try (Table books = connection.getTable(BOOKS)) {
      books.put(new Put(ROW).addColumn(FAMILY, TITLE, Bytes.toBytes(title)));
    }
  }

  private static void expect(Connection connection, String title) throws IOException {
    try (Table books = connection.getTable(BOOKS)) {
      assertEquals(title, Bytes.toString(books.get(new Get(ROW)).getValue(FAMILY, TITLE)));
    }
  }

  @RepeatedTest(3)
  void aChangedRowIsBack(Connection connection) throws IOException {
    expect(connection, "Emma");
    write(connection, "Persuasion");
    expect(connection, "Persuasion");
    assertEquals(1, Library.fills);
  }

  @Test
  void aDroppedTableIsBackAndANewOneIsGone(Connection connection) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      assertArrayEquals(new TableName[] {BOOKS}, admin.listTableNames());
      admin.disableTable(BOOKS);
      admin.deleteTable(BOOKS);
      admin.createTable(
          TableDescriptorBuilder.newBuilder(TableName.valueOf("other"))
              .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY))
              .build());
    }
  }
}
