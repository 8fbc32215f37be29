package basalt;

import java.io.IOException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** All cells of a table: every version and tombstone, with its tags. */
final class Cells {
  private Cells() {}

  /** Takes each cell as text. */
  interface Take {
    void cell(String text);
  }

  static void each(Connection connection, String table, boolean raw, Take take) throws IOException {
    Scan scan = new Scan().readAllVersions().setRaw(raw).setCaching(1000);
    try (Table open = connection.getTable(TableName.valueOf(table));
        ResultScanner scanner = open.getScanner(scan)) {
      for (Result row : scanner) {
        for (Cell cell : row.rawCells()) {
          take.cell(text(cell));
        }
      }
    }
  }

  private static String text(Cell cell) {
    byte[] tags = PrivateCellUtil.cloneTags(cell);
    byte[] value = CellUtil.cloneValue(cell);
    String shown = value.length <= 40 ? Bytes.toStringBinary(value) : value.length + " bytes, hash " + Bytes.hashCode(value);
    return Bytes.toStringBinary(CellUtil.cloneRow(cell))
        + "/" + Bytes.toStringBinary(CellUtil.cloneFamily(cell))
        + ":" + Bytes.toStringBinary(CellUtil.cloneQualifier(cell))
        + "/" + cell.getTimestamp()
        + "/" + cell.getType()
        + "=" + shown
        + "#" + Bytes.toStringBinary(tags);
  }

  /** Number of cells and a digest of all of them. */
  static String digest(Connection connection, String table, boolean raw) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    long[] count = {0};
    each(connection, table, raw, text -> {
      digest.update(Bytes.toBytes(text + "\n"));
      count[0]++;
    });
    return count[0] + " cells " + Bytes.toHex(digest.digest()).substring(0, 16);
  }

  /** The first cells, for people. */
  static List<String> first(Connection connection, String table, int most) throws IOException {
    List<String> found = new ArrayList<>();
    each(connection, table, true, text -> {
      if (found.size() < most) {
        found.add(text);
      }
    });
    return found;
  }
}
