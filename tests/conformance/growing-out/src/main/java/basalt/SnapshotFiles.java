package basalt;

import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableMapReduceUtil;
import org.apache.hadoop.hbase.mapreduce.TableSnapshotInputFormat;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;

/** Snapshots read without a server, as MapReduce and Spark do it. */
final class SnapshotFiles {
  private SnapshotFiles() {}

  /** {@code read_snapshot ROOT NAME RESTORE_DIRECTORY}: number of rows, and the first and last one. */
  static String read(List<String> words) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    CommonFSUtils.setRootDir(conf, new Path("file:" + words.get(0)));
    conf.set("fs.defaultFS", "file:///");
    Job job = Job.getInstance(conf);
    TableSnapshotInputFormat.setInput(job, words.get(1), new Path("file:" + words.get(2)));
    job.getConfiguration().set(TableInputFormat.SCAN, TableMapReduceUtil.convertScanToString(new Scan()));
    TableSnapshotInputFormat format = new TableSnapshotInputFormat();
    TreeSet<String> rows = new TreeSet<>();
    for (InputSplit split : format.getSplits(job)) {
      TaskAttemptContextImpl context = new TaskAttemptContextImpl(job.getConfiguration(), new TaskAttemptID());
      try (RecordReader<ImmutableBytesWritable, Result> reader = format.createRecordReader(split, context)) {
        reader.initialize(split, context);
        while (reader.nextKeyValue()) {
          rows.add(Bytes.toStringBinary(reader.getCurrentKey().copyBytes()));
        }
      }
    }
    return rows.size() + " rows " + (rows.isEmpty() ? "" : rows.first() + " " + rows.last());
  }
}
