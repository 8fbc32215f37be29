package basalt;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Steps of the tests that move data between HBase and Basalt, with HBase's own client and tools.
 *
 * <p>Arguments: the ZooKeeper port of HBase and the port of Basalt. Each line of standard input is a command ({@link Commands}) and
 * is answered with one line: {@code ok[ text]} or {@code error text}. The end of the input ends the process.
 */
public final class Steps {
  private Steps() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    // What HBase's tools print is no answer.
    System.setOut(System.err);
    Clusters clusters = new Clusters(arguments[0], arguments[1]);
    Commands commands = new Commands(clusters);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.trim().split(" +");
      String answer;
      try {
        String text = commands.run(words[0], Arrays.asList(words).subList(1, words.length));
        answer = text.isEmpty() ? "ok" : "ok " + text;
      } catch (Exception | AssertionError error) {
        error.printStackTrace();
        answer = "error " + error.toString().replaceAll("\\s*\\R\\s*", " | ");
      }
      answers.println(answer);
    }
    Runtime.getRuntime().halt(0);
  }
}
