import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * HBase's client as a database of YCSB, on the server at the property basalt.port. YCSB checks the
 * values of reads; this class checks that the rows of a scan are in order and whole.
 *
 * <p>HBaseDb FIELDS as a program makes the empty table usertable.
 */
public final class HBaseDb extends DB {
  private static final TableName TABLE = TableName.valueOf("usertable");
  private static final byte[] FAMILY = Bytes.toBytes("family");
  private static final String FIELDS = "fieldcount";
  private static Connection shared;

  private Table table;

  private static synchronized Connection connection() throws IOException {
    if (shared == null) {
      Configuration conf = HBaseConfiguration.create();
      conf.set("hbase.zookeeper.quorum", "127.0.0.1");
      conf.set("hbase.zookeeper.property.clientPort", System.getProperty("basalt.port"));
      shared = ConnectionFactory.createConnection(conf);
    }
    return shared;
  }

  public static void main(String[] arguments) throws IOException {
    byte[][] splits = {Bytes.toBytes("user3"), Bytes.toBytes("user5"), Bytes.toBytes("user7")};
    try (Connection connection = connection(); Admin admin = connection.getAdmin()) {
      if (admin.tableExists(TABLE)) {
        admin.disableTable(TABLE);
        admin.deleteTable(TABLE);
      }
      admin.createTable(TableDescriptorBuilder.newBuilder(TABLE)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build(), splits);
    }
  }

  @Override
  public void init() throws DBException {
    try {
      table = connection().getTable(TABLE);
    } catch (IOException error) {
      throw new DBException(error);
    }
  }

  private interface Call {
    Status run() throws IOException;
  }

  private static Status attempt(Call call) {
    try {
      return call.run();
    } catch (IOException error) {
      error.printStackTrace();
      return Status.ERROR;
    }
  }

  private static void values(Result row, Map<String, ByteIterator> result) {
    for (Cell cell : row.rawCells()) {
      result.put(Bytes.toString(CellUtil.cloneQualifier(cell)), new ByteArrayByteIterator(CellUtil.cloneValue(cell)));
    }
  }

  @Override
  public Status read(String name, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return attempt(() -> {
      Get get = new Get(Bytes.toBytes(key));
      if (fields == null) {
        get.addFamily(FAMILY);
      } else {
        fields.forEach(field -> get.addColumn(FAMILY, Bytes.toBytes(field)));
      }
      Result row = table.get(get);
      values(row, result);
      return row.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  @Override
  public Status scan(String name, String start, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    int width = fields == null ? Integer.parseInt(getProperties().getProperty(FIELDS, "10")) : fields.size();
    return attempt(() -> {
      Scan scan = new Scan().withStartRow(Bytes.toBytes(start)).setLimit(count).setCaching(count).addFamily(FAMILY);
      if (fields != null) {
        fields.forEach(field -> scan.addColumn(FAMILY, Bytes.toBytes(field)));
      }
      byte[] last = null;
      try (ResultScanner scanner = table.getScanner(scan)) {
        for (Result row : scanner) {
          boolean inOrder = last == null ? Bytes.toString(row.getRow()).compareTo(start) >= 0
              : Arrays.compareUnsigned(last, row.getRow()) < 0;
          if (!inOrder || row.size() != width) {
            return Status.UNEXPECTED_STATE;
          }
          last = row.getRow();
          HashMap<String, ByteIterator> values = new HashMap<>();
          values(row, values);
          result.add(values);
        }
      }
      return result.isEmpty() || result.size() > count ? Status.UNEXPECTED_STATE : Status.OK;
    });
  }

  @Override
  public Status update(String name, String key, Map<String, ByteIterator> values) {
    return attempt(() -> {
      Put put = new Put(Bytes.toBytes(key));
      values.forEach((field, value) -> put.addColumn(FAMILY, Bytes.toBytes(field), value.toArray()));
      table.put(put);
      return Status.OK;
    });
  }

  @Override
  public Status insert(String name, String key, Map<String, ByteIterator> values) {
    return update(name, key, values);
  }

  @Override
  public Status delete(String name, String key) {
    return attempt(() -> {
      table.delete(new Delete(Bytes.toBytes(key)));
      return Status.OK;
    });
  }
}
