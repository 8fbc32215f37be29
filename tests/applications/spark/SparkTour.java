import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.HFileOutputFormat2;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableOutputFormat;
import org.apache.hadoop.hbase.mapreduce.TableSnapshotInputFormat;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * SparkTour PORT FOLDER: Spark in local mode writes, reads, copies and bulk-loads tables and reads
 * a snapshot. Prints a line for each step: its name, a tab, and what it found or the last cause of
 * its failure.
 */
public final class SparkTour {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] QUALIFIER = Bytes.toBytes("q");
  private static final int ROWS = 20_000;
  private static final int PARTITIONS = 4;

  private static Configuration conf;
  private static JavaSparkContext spark;
  private static Admin admin;

  private interface Step {
    Object run() throws Exception;
  }

  private SparkTour() {}

  private static void step(String name, Step step) {
    try {
      System.out.println(name + "\t" + step.run());
    } catch (Exception error) {
      error.printStackTrace();
      Throwable last = error;
      while (last.getCause() != null) {
        last = last.getCause();
      }
      System.out.println(name + "\tFAILED " + last.toString().split("\n")[0]);
    }
  }

  private static Configuration configuration(String port) {
    Configuration made = HBaseConfiguration.create();
    made.set("hbase.zookeeper.quorum", "127.0.0.1");
    made.set("hbase.zookeeper.property.clientPort", port);
    return made;
  }

  private static String row(int number) {
    return String.format("%02d-%06d", number % 10, number);
  }

  private static List<Integer> numbers() {
    List<Integer> numbers = new ArrayList<>();
    for (int number = 0; number < ROWS; number++) {
      numbers.add(number);
    }
    return numbers;
  }

  private static void create(String... tables) throws IOException {
    byte[][] splits = {Bytes.toBytes("03"), Bytes.toBytes("06")};
    for (String table : tables) {
      admin.createTable(TableDescriptorBuilder.newBuilder(TableName.valueOf(table))
          .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build(), splits);
    }
  }

  /** The rows of a table, with more settings of TableInputFormat, as name, value, name, value. */
  private static JavaPairRDD<ImmutableBytesWritable, Result> rows(String table, String... settings) {
    Configuration input = new Configuration(conf);
    input.set(TableInputFormat.INPUT_TABLE, table);
    for (int index = 0; index < settings.length; index += 2) {
      input.set(settings[index], settings[index + 1]);
    }
    return spark.newAPIHadoopRDD(input, TableInputFormat.class, ImmutableBytesWritable.class, Result.class);
  }

  /** Spark omits splits of size 0, which a region of HBase has, too, before its first flush. */
  private static void flush(String table) throws IOException {
    admin.flush(TableName.valueOf(table));
  }

  public static void main(String[] arguments) throws Exception {
    String port = arguments[0];
    String folder = arguments[1];
    conf = configuration(port);
    conf.set("hbase.fs.tmp.dir", folder + "/staging");
    spark = new JavaSparkContext(new SparkConf().setMaster("local[2]").setAppName("tour")
        .set("spark.ui.enabled", "false").set("spark.driver.bindAddress", "127.0.0.1")
        .set("spark.driver.host", "127.0.0.1").set("spark.local.dir", folder)
        .set("spark.serializer", "org.apache.spark.serializer.KryoSerializer"));
    Connection connection = ConnectionFactory.createConnection(conf);
    admin = connection.getAdmin();
    create("written", "copied", "loaded");
    step("write", SparkTour::write);
    step("read", SparkTour::read);
    step("read a range", () -> rows("written", TableInputFormat.SCAN_ROW_START, "02", TableInputFormat.SCAN_ROW_STOP,
        "04-000500", TableInputFormat.SCAN_COLUMNS, "f:q", TableInputFormat.SCAN_CACHEDROWS, "500").count());
    step("read in balanced splits", () -> rows("written", "hbase.mapreduce.tif.input.autobalance", "true",
        "hbase.mapreduce.tableinput.mappers.per.region", "2").count());
    step("copy", () -> copy(port));
    step("bulk load", () -> load(folder));
    step("read a snapshot", () -> snapshot(folder));
    System.out.flush();
    // Threads of Spark do not keep the process.
    Runtime.getRuntime().halt(0);
  }

  private static Object write() throws Exception {
    Job job = Job.getInstance(conf);
    job.setOutputFormatClass(TableOutputFormat.class);
    job.getConfiguration().set(TableOutputFormat.OUTPUT_TABLE, "written");
    spark.parallelize(numbers(), PARTITIONS).mapToPair(number -> {
      Mutation put = new Put(Bytes.toBytes(row(number))).addColumn(FAMILY, QUALIFIER, Bytes.toBytes("v" + number));
      return new Tuple2<>(new ImmutableBytesWritable(), put);
    }).saveAsNewAPIHadoopDataset(job.getConfiguration());
    flush("written");
    return "done";
  }

  private static Object read() {
    JavaPairRDD<ImmutableBytesWritable, Result> rows = rows("written");
    long sum = rows.map(row -> Long.parseLong(Bytes.toString(row._2.getValue(FAMILY, QUALIFIER)).substring(1)))
        .fold(0L, Long::sum);
    return rows.count() + " rows, sum " + sum + ", " + rows.getNumPartitions() + " partitions";
  }

  private static Object copy(String port) throws IOException {
    rows("written").map(row -> Bytes.toString(row._2.getRow())).foreachPartition(rows -> {
      try (Connection connection = ConnectionFactory.createConnection(configuration(port));
          BufferedMutator mutator = connection.getBufferedMutator(TableName.valueOf("copied"))) {
        while (rows.hasNext()) {
          byte[] row = Bytes.toBytes(rows.next());
          mutator.mutate(new Put(row).addColumn(FAMILY, QUALIFIER, row));
        }
      }
    });
    flush("copied");
    return rows("copied").count();
  }

  private static Object load(String folder) throws Exception {
    Job job = Job.getInstance(conf);
    TableName table = TableName.valueOf("loaded");
    HFileOutputFormat2.configureIncrementalLoadMap(job, admin.getDescriptor(table));
    Path output = new Path("file://" + folder + "/hfiles");
    spark.parallelize(numbers(), PARTITIONS).mapToPair(number -> new Tuple2<>(row(number), number))
        .repartitionAndSortWithinPartitions(new HashPartitioner(3)).mapToPair(row -> {
          byte[] key = Bytes.toBytes(row._1);
          Cell cell = new KeyValue(key, FAMILY, QUALIFIER, Bytes.toBytes("v" + row._2));
          return new Tuple2<>(new ImmutableBytesWritable(key), cell);
        }).saveAsNewAPIHadoopFile(output.toString(), ImmutableBytesWritable.class, KeyValue.class,
            HFileOutputFormat2.class, job.getConfiguration());
    BulkLoadHFiles.create(conf).bulkLoad(table, output);
    return rows("loaded").count();
  }

  private static Object snapshot(String folder) throws Exception {
    admin.snapshot("written-snapshot", TableName.valueOf("written"));
    Configuration input = new Configuration(conf);
    input.set("hbase.rootdir", "file://" + folder + "/root");
    Job job = Job.getInstance(input);
    TableSnapshotInputFormat.setInput(job, "written-snapshot", new Path("file://" + folder + "/restore"));
    return spark.newAPIHadoopRDD(job.getConfiguration(), TableSnapshotInputFormat.class, ImmutableBytesWritable.class,
        Result.class).count();
  }
}
