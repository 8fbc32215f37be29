package basalt.client;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.mapreduce.CellCounter;
import org.apache.hadoop.hbase.mapreduce.CopyTable;
import org.apache.hadoop.hbase.mapreduce.Export;
import org.apache.hadoop.hbase.mapreduce.Import;
import org.apache.hadoop.hbase.mapreduce.ImportTsv;
import org.apache.hadoop.hbase.mapreduce.RowCounter;
import org.apache.hadoop.hbase.tool.BulkLoadHFilesTool;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Runs HBase's MapReduce tools on small tables, and prints the outcome of each on one line.
 *
 * <p>Arguments: {@code zookeeper}, host, port and an empty folder for files. Then nothing for all tools, or
 * {@code export TABLE FOLDER} to fill and export a table, or {@code import TABLE FOLDER} to import such an export. Or
 * {@code create TABLE SERVER} for an empty table, which {@code copy TABLE SERVER} at another server fills with a copy of
 * its own, and {@code cells TABLE SERVER} to look at the copy; SERVER is the address of the other one's ZooKeeper.
 * Or {@code count TABLE NUMBER} to fill a table and count its rows, or {@code token - FILE} to ask who the user is, and
 * for a token, which is written to a file.
 */
public final class Tour {
  /** Standard output, which belongs to the transcript: tools print to standard error. */
  private static final PrintStream TRANSCRIPT = System.out;

  private final Configuration conf;
  private final Tables tables;
  private final Path folder;

  private Tour(Configuration conf, Connection connection, Path folder) {
    this.conf = conf;
    this.tables = new Tables(connection);
    this.folder = folder;
  }

  public static void main(String[] arguments) throws Exception {
    System.setOut(System.err);
    Path folder = Path.of(arguments[3]);
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", arguments[1]);
    conf.set("hbase.zookeeper.property.clientPort", arguments[2]);
    conf.set("hadoop.tmp.dir", folder.resolve("hadoop").toString());
    conf.set("hbase.fs.tmp.dir", folder.resolve("staging").toString());
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      Tour tour = new Tour(conf, connection, folder);
      if (arguments.length == 4) {
        tour.count();
        tour.copies();
        tour.text();
        tour.bulkLoads();
      } else {
        tour.step(arguments[4], arguments[5], arguments[6]);
      }
    }
    TRANSCRIPT.println("tour done");
  }

  private void count() throws Exception {
    tables.create("source");
    tables.fill("source");
    ask("row counter", () -> run(new RowCounter(), "source", "--expectedCount=" + Tables.ROWS));
    ask("row counter of a wrong number", () -> run(new RowCounter(), "source", "--expectedCount=7"));
    ask("row counter of a range", () -> run(new RowCounter(), "source", "--range=r250,r350", "--expectedCount=100"));
    ask("row counter of a column", () -> run(new RowCounter(), "source", "g:n", "--expectedCount=" + Tables.ROWS / 10));
    ask("cell counter", () -> run(new CellCounter(), "source", file("cells"), "/"));
    ask("what it counted", () -> lines("cells"));
  }

  private void copies() throws Exception {
    String source = tables.digest("source");
    print("source", source);
    ask("export", () -> run(new Export(), "source", file("export"), "3"));
    tables.create("imported");
    ask("import", () -> run(new Import(), "imported", file("export")));
    print("all cells imported", tables.digest("imported").equals(source));
    tables.create("copied");
    ask("copy", () -> run(new CopyTable(), "--versions=3", "--new.name=copied", "source"));
    print("all cells copied", tables.digest("copied").equals(source));
    tables.create("filed", "r300", "r600");
    // The tool makes its files below the working directory, from which the server reads them.
    FileSystem.get(conf).setWorkingDirectory(new org.apache.hadoop.fs.Path(folder.toUri()));
    ask("copy as files", () -> run(new CopyTable(), "--bulkload", "--versions=3", "--new.name=filed", "source"));
    print("all cells copied as files", tables.digest("filed").equals(source));
    tables.create("part");
    ask("copy of a family", () -> run(new CopyTable(), "--families=g", "--new.name=part", "source"));
    print("cells of a family copied", tables.digest("part"));
    tables.create("young");
    ask("copy of a time", () -> run(new CopyTable(), "--starttime=2000", "--endtime=2100", "--new.name=young", "source"));
    print("cells of a time copied", tables.digest("young"));
  }

  private void text() throws Exception {
    StringBuilder lines = new StringBuilder();
    for (int number = 0; number < 300; number++) {
      lines.append(String.format("r%03d\t%d\tname-%d\t%d%n", number * 3, 9_000 + number, number, number * number));
    }
    Files.writeString(folder.resolve("rows.tsv"), lines + "a line without columns\n");
    tables.create("text");
    String columns = "-Dimporttsv.columns=HBASE_ROW_KEY,HBASE_TS_KEY,f:name,g:square";
    ask("import of text", () -> run(new ImportTsv(), columns, "text", file("rows.tsv")));
    print("cells imported from text", tables.digest("text"));
    ask("import of text into a family that is not there", () -> run(new ImportTsv(), "-Dimporttsv.columns=HBASE_ROW_KEY,nof:q", "text", file("rows.tsv")));
  }

  private void step(String step, String table, String place) throws Exception {
    switch (step) {
      case "export" -> give(table, place);
      case "import" -> take(table, place);
      case "create" -> tables.create(table);
      case "copy" -> copy(table, place);
      case "cells" -> print("cells", tables.digest(table));
      case "count" -> count(table, place);
      case "token" -> token(place);
      default -> throw new IllegalArgumentException(step);
    }
  }

  /** HFiles made of the text, for tables whose regions have the borders of the files or others. */
  private void bulkLoads() throws Exception {
    String columns = "-Dimporttsv.columns=HBASE_ROW_KEY,HBASE_TS_KEY,f:name,g:square";
    String text = tables.digest("text");
    for (String[] borders : new String[][] {{"r300", "r600"}, {}, {"r100", "r450", "r899"}}) {
      String table = "bulk" + borders.length;
      tables.create(table, borders);
      String output = "-Dimporttsv.bulk.output=" + file(table);
      ask("files of text", () -> run(new ImportTsv(), columns, output, "bulk2", file("rows.tsv")));
      print("cells before the load", tables.digest(table));
      ask("bulk load", () -> load(table, table));
      print("all cells loaded", tables.digest(table).equals(text));
    }
    Files.createDirectories(folder.resolve("empty"));
    ask("bulk load of nothing", () -> load("empty", "text"));
  }

  private int load(String files, String table) throws Exception {
    return run(new BulkLoadHFilesTool(new Configuration(conf)), file(files), table);
  }

  private void give(String table, String to) throws Exception {
    tables.create(table);
    tables.fill(table);
    ask("export", () -> run(new Export(), table, to, "3"));
    print("cells", tables.digest(table));
  }

  private void take(String table, String from) throws Exception {
    tables.create(table);
    ask("import", () -> run(new Import(), table, from));
    print("cells", tables.digest(table));
  }

  private void copy(String table, String server) throws Exception {
    tables.create(table);
    tables.fill(table);
    ask("copy", () -> run(new CopyTable(), "--versions=3", "--peer.adr=" + server + ":/hbase", table));
    print("cells", tables.digest(table));
  }

  private void count(String table, String number) throws Exception {
    tables.create(table);
    tables.fill(table);
    ask("row counter", () -> run(new RowCounter(), table, "--expectedCount=" + number));
  }

  private void token(String file) throws Exception {
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      ask("who am I", () -> Tokens.whoAmI(connection));
      ask("token", () -> Tokens.write(connection, file));
    }
  }

  private String file(String name) {
    return folder.resolve(name).toUri().toString();
  }

  /** The status with which a tool ends. */
  private int run(Tool tool, String... arguments) throws Exception {
    return ToolRunner.run(new Configuration(conf), tool, arguments);
  }

  /** The lines of all output files of a job. */
  private List<String> lines(String output) throws IOException {
    List<String> lines = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder.resolve(output))) {
      for (Path file : (Iterable<Path>) files.filter(file -> file.getFileName().toString().startsWith("part-")).sorted()::iterator) {
        lines.addAll(Files.readAllLines(file));
      }
    }
    // Lines of single cells repeat what the sums say.
    lines.removeIf(line -> line.matches("r\\d+.*|.*;r\\d+.*"));
    return lines;
  }

  private static void ask(String what, Callable<Object> question) {
    Object answer;
    try {
      answer = question.call();
    } catch (Exception error) {
      answer = "throws " + error.getClass().getSimpleName();
    }
    print(what, answer);
  }

  private static void print(String what, Object answer) {
    TRANSCRIPT.println(what + " -> " + answer);
  }
}
