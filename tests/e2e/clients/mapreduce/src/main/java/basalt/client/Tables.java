package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.security.MessageDigest;
import java.util.stream.Stream;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** The tables of the tour: made, filled and compared. */
final class Tables {
  /** Rows of the source, spread over its three regions. */
  static final int ROWS = 1_000;

  /** The versions of a cell that its family keeps. */
  private static final int VERSIONS = 3;

  private final Connection connection;

  Tables(Connection connection) {
    this.connection = connection;
  }

  /** Makes a table with the families {@code f} and {@code g} and three regions. */
  void create(String name) throws Exception {
    create(name, "r300", "r600");
  }

  /** Makes a table with the families {@code f} and {@code g} and these borders of regions. */
  void create(String name, String... borders) throws Exception {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(TableName.valueOf(name));
    for (String family : new String[] {"f", "g"}) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(toBytes(family)).setMaxVersions(VERSIONS).build());
    }
    byte[][] splits = Stream.of(borders).map(Bytes::toBytes).toArray(byte[][]::new);
    connection.getAdmin().createTable(table.build(), splits.length == 0 ? null : splits);
  }

  /** Writes {@link #ROWS} rows, of which each second has an older version and each tenth a cell in the other family. */
  void fill(String name) throws Exception {
    try (BufferedMutator mutator = connection.getBufferedMutator(TableName.valueOf(name))) {
      for (int number = 0; number < ROWS; number++) {
        Put put = new Put(toBytes(String.format("r%03d", number)));
        put.addColumn(toBytes("f"), toBytes("q"), 2_000 + number, toBytes("value-" + number));
        if (number % 2 == 0) {
          put.addColumn(toBytes("f"), toBytes("q"), 1_000 + number, toBytes("older"));
        }
        if (number % 10 == 0) {
          put.addColumn(toBytes("g"), toBytes("n"), 5, Bytes.toBytes((long) number));
        }
        mutator.mutate(put);
      }
    }
  }

  /** The number of cells of a table, and a digest of them with all their parts. */
  String digest(String name) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    int cells = 0;
    try (Table table = connection.getTable(TableName.valueOf(name));
        ResultScanner scanner = table.getScanner(new Scan().readAllVersions())) {
      for (Result result : scanner) {
        for (Cell cell : result.rawCells()) {
          cells++;
          add(digest, CellUtil.cloneRow(cell));
          add(digest, CellUtil.cloneFamily(cell));
          add(digest, CellUtil.cloneQualifier(cell));
          add(digest, Bytes.toBytes(cell.getTimestamp()));
          add(digest, CellUtil.cloneValue(cell));
        }
      }
    }
    return cells + " cells " + Bytes.toHex(digest.digest());
  }

  private static void add(MessageDigest digest, byte[] part) {
    digest.update(Bytes.toBytes(part.length));
    digest.update(part);
  }
}
