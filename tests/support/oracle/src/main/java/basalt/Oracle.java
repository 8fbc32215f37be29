package basalt;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;

/**
 * A real HBase with both Thrift servers in one JVM, steered over standard input and output.
 *
 * <p>Arguments: the data directory, then settings of HBase as {@code key=value}. Steps:
 *
 * <ol>
 *   <li>A thread reads standard input from the first moment on. Its end ends the process at any time, also in the middle of
 *       a start, so a parent that was killed leaves no JVM behind.
 *   <li>ZooKeeper, master, region server and gateways start; {@code ready <thrift1 port> <thrift2 port>} is printed.
 *   <li>Each line is a command ({@link Control}) and is answered with one line: {@code ok[ text]} or {@code error text}.
 *   <li>{@code stop}, or the end of input: the data directory is deleted and the process halts. Nothing is worth an orderly
 *       shutdown, which would take seconds.
 * </ol>
 *
 * <p>Invariant: only the lines named above go to standard output; what HBase prints goes to standard error.
 */
public final class Oracle {
  private static final PrintStream ANSWERS = System.out;
  private static final BlockingQueue<String> COMMANDS = new LinkedBlockingQueue<>();
  private static Path directory;

  private Oracle() {}

  public static void main(String[] arguments) {
    System.setOut(System.err);
    directory = Paths.get(arguments[0]).toAbsolutePath();
    Thread reader = new Thread(Oracle::read, "control");
    reader.setDaemon(true);
    reader.start();
    try {
      Configuration conf = Settings.of(directory, List.of(arguments).subList(1, arguments.length));
      Cluster cluster = Cluster.start(conf, new File(directory.toFile(), "zookeeper"));
      ANSWERS.println("ready " + cluster.thrift1Port() + " " + cluster.thrift2Port());
      serve(new Control(cluster));
    } catch (Throwable error) {
      error.printStackTrace();
      ANSWERS.println("error " + oneLine(error));
      Runtime.getRuntime().halt(1);
    }
  }

  /** Hands lines to the main thread until there are no more, and then ends the process. */
  private static void read() {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        COMMANDS.add(line);
      }
    } catch (IOException error) {
      error.printStackTrace();
    }
    end();
  }

  private static void serve(Control control) throws InterruptedException {
    while (true) {
      String command = COMMANDS.take().trim();
      if (command.equals("stop")) {
        end();
      }
      String answer;
      try {
        String text = control.run(command);
        answer = text.isEmpty() ? "ok" : "ok " + text;
      } catch (Exception error) {
        error.printStackTrace();
        answer = "error " + oneLine(error);
      }
      ANSWERS.println(answer);
    }
  }

  /** Deletes the data directory and halts. HBase may still write into it, so deleting is tried a few times. */
  private static synchronized void end() {
    for (int attempt = 0; attempt < 20 && Files.exists(directory); attempt++) {
      try (Stream<Path> paths = Files.walk(directory)) {
        paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
      } catch (IOException | RuntimeException error) {
        // A file that went away while it was listed: the next attempt lists again.
        continue;
      }
    }
    if (Files.exists(directory)) {
      System.err.println("not deleted: " + directory);
    }
    Runtime.getRuntime().halt(0);
  }

  private static String oneLine(Throwable error) {
    return error.toString().replaceAll("\\s*\\R\\s*", " | ");
  }
}
