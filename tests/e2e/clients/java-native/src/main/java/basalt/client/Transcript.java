package basalt.client;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.util.Bytes;

/** Prints each request with its reply on one line. */
final class Transcript {
  /** A request with a reply. */
  interface Question {
    Object ask() throws Exception;
  }

  /** A request without a reply. */
  interface Action {
    void run() throws Exception;
  }

  private Transcript() {}

  /** Makes a request and prints the reply or the class of the exception. */
  static void ask(String what, Question question) {
    String answer;
    try {
      answer = show(question.ask());
    } catch (Exception error) {
      answer = "throws " + name(error);
    }
    System.out.println(what + " -> " + answer);
  }

  /** Makes a request and prints {@code done} or the class of the exception. */
  static void act(String what, Action action) {
    ask(
        what,
        () -> {
          action.run();
          return "done";
        });
  }

  /** The class of an exception, or the class of each failure that a batch reports. */
  private static String name(Throwable error) {
    if (error instanceof RetriesExhaustedWithDetailsException) {
      RetriesExhaustedWithDetailsException details = (RetriesExhaustedWithDetailsException) error;
      List<String> causes = new ArrayList<>();
      for (Throwable cause : details.getCauses()) {
        causes.add(cause.getClass().getSimpleName());
      }
      return causes.toString();
    }
    boolean isWrapper =
        error instanceof java.util.concurrent.ExecutionException && error.getCause() != null;
    return isWrapper ? name(error.getCause()) : error.getClass().getSimpleName();
  }

  static String show(Object answer) throws Exception {
    if (answer instanceof Result) {
      return show((Result) answer);
    }
    if (answer instanceof ResultScanner) {
      List<String> rows = new ArrayList<>();
      try (ResultScanner scanner = (ResultScanner) answer) {
        for (Result result : scanner) {
          rows.add(show(result));
        }
      }
      return rows.toString();
    }
    if (answer instanceof byte[]) {
      return Bytes.toStringBinary((byte[]) answer);
    }
    if (answer instanceof Object[]) {
      return show(java.util.Arrays.asList((Object[]) answer));
    }
    if (answer instanceof Collection) {
      List<String> shown = new ArrayList<>();
      for (Object one : (Collection<?>) answer) {
        shown.add(show(one));
      }
      return shown.toString();
    }
    return String.valueOf(answer);
  }

  /** A row and its cells in the order of the reply, without timestamps that the server assigned. */
  private static String show(Result result) {
    if (result.isEmpty()) {
      return result.getExists() == null ? "nothing" : "exists " + result.getExists();
    }
    StringBuilder shown = new StringBuilder(Bytes.toStringBinary(result.getRow()));
    for (Cell cell : result.rawCells()) {
      shown
          .append(' ')
          .append(Bytes.toStringBinary(CellUtil.cloneFamily(cell)))
          .append(':')
          .append(Bytes.toStringBinary(CellUtil.cloneQualifier(cell)))
          .append(cell.getTimestamp() < 1_000_000 ? "@" + cell.getTimestamp() : "")
          .append(cell.getType() == Cell.Type.Put ? "" : "(" + cell.getType() + ")")
          .append('=')
          .append(Bytes.toStringBinary(CellUtil.cloneValue(cell)));
    }
    return shown.toString();
  }
}
