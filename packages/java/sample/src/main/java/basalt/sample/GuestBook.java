package basalt.sample;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** Entries of many guest books in one table, the newest first, and a counter of visits for each book. */
public final class GuestBook {
  private static final TableName TABLE = TableName.valueOf("guestbook");
  private static final byte[] ENTRY = Bytes.toBytes("entry");
  private static final byte[] COUNT = Bytes.toBytes("count");
  private static final byte[] NAME = Bytes.toBytes("name");
  private static final byte[] TEXT = Bytes.toBytes("text");
  private static final byte[] VISITS = Bytes.toBytes("visits");

  private final Connection connection;

  /** Guest books in a table that exists. */
  public GuestBook(Connection connection) {
    this.connection = connection;
  }

  /** Creates the table. */
  public static GuestBook create(Connection connection) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      admin.createTable(
          TableDescriptorBuilder.newBuilder(TABLE)
              .setColumnFamily(ColumnFamilyDescriptorBuilder.of(ENTRY))
              .setColumnFamily(ColumnFamilyDescriptorBuilder.of(COUNT))
              .build());
    }
    return new GuestBook(connection);
  }

  /** Adds an entry. False if the book has one of that time already. */
  public boolean sign(String book, long millis, String name, String text) throws IOException {
    byte[] row = Bytes.toBytes(String.format("%s/%019d", book, Long.MAX_VALUE - millis));
    Put put = new Put(row).addColumn(ENTRY, NAME, Bytes.toBytes(name)).addColumn(ENTRY, TEXT, Bytes.toBytes(text));
    try (Table table = connection.getTable(TABLE)) {
      return table.checkAndMutate(CheckAndMutate.newBuilder(row).ifNotExists(ENTRY, NAME).build(put)).isSuccess();
    }
  }

  /** Names of the latest signers, the newest first. */
  public List<String> latest(String book, int limit) throws IOException {
    List<String> names = new ArrayList<>();
    Scan scan = new Scan().setStartStopRowForPrefixScan(Bytes.toBytes(book + "/")).addFamily(ENTRY).setLimit(limit);
    try (Table table = connection.getTable(TABLE);
        ResultScanner results = table.getScanner(scan)) {
      for (Result result : results) {
        names.add(Bytes.toString(result.getValue(ENTRY, NAME)));
      }
    }
    return names;
  }

  /** Counts a visit and returns the number of visits. */
  public long visit(String book) throws IOException {
    try (Table table = connection.getTable(TABLE)) {
      return table.incrementColumnValue(Bytes.toBytes(book + "!"), COUNT, VISITS, 1);
    }
  }

  /** Removes a book's entries and returns their number. */
  public int erase(String book) throws IOException {
    List<Delete> deletes = new ArrayList<>();
    Scan scan = new Scan().setStartStopRowForPrefixScan(Bytes.toBytes(book + "/"));
    try (Table table = connection.getTable(TABLE);
        ResultScanner results = table.getScanner(scan)) {
      results.forEach(result -> deletes.add(new Delete(result.getRow())));
      int number = deletes.size();
      table.delete(deletes);
      return number;
    }
  }
}
