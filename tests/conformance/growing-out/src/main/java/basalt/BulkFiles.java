package basalt;

import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/** Bulk loads. */
final class BulkFiles {
  private BulkFiles() {}

  /** {@code load CLUSTER TABLE DIRECTORY FROM COUNT VALUE TIMESTAMP}: makes a file of rows in the directory, and loads it. */
  static String load(Configuration conf, Connection connection, List<String> words) throws Exception {
    FileSystem files = FileSystem.getLocal(conf);
    Path directory = new Path("file:" + words.get(2));
    Path file = new Path(new Path(directory, "f"), "loaded");
    long from = Long.parseLong(words.get(3));
    byte[] family = Bytes.toBytes("f");
    try (HFile.Writer writer =
        HFile.getWriterFactory(conf, new CacheConfig(conf))
            .withPath(files, file)
            .withFileContext(new HFileContextBuilder().build())
            .create()) {
      for (long number = from; number < from + Long.parseLong(words.get(4)); number++) {
        byte[] row = Bytes.toBytes(String.format("row-%08d", number));
        writer.append(
            new KeyValue(row, family, Bytes.toBytes("q"), Long.parseLong(words.get(6)), Bytes.toBytes(words.get(5))));
      }
    }
    BulkLoadHFiles.create(conf).bulkLoad(TableName.valueOf(words.get(1)), directory);
    return "";
  }
}
