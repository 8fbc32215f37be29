package basalt.client;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.thrift2.generated.TIOError;
import org.apache.hadoop.hbase.thrift2.generated.TIllegalArgument;
import org.apache.hadoop.hbase.util.Bytes;

/** Prints what was asked and what came back, one line each. */
final class Transcript {
  /** Timestamps from here on were given by the server's clock. */
  private static final long SERVER_TIME_MIN = 1_000_000_000_000L;

  /** Something that is asked of the server. */
  interface Question {
    Object ask() throws Exception;
  }

  void chapter(String name) {
    System.out.println("\n# " + name);
  }

  /** Asks, and prints the answer or the exception. */
  void ask(String what, Question question) {
    String answer;
    try {
      answer = show(question.ask());
    } catch (Exception error) {
      answer = "throws " + show(error);
    }
    System.out.println(what + " -> " + answer);
  }

  /** Asks what has no answer. */
  void act(String what, Action action) {
    ask(
        what,
        () -> {
          action.run();
          return "done";
        });
  }

  /** Something that the server is told to do. */
  interface Action {
    void run() throws Exception;
  }

  private static String show(Object answer) {
    if (answer instanceof Result) {
      return show((Result) answer);
    }
    if (answer instanceof byte[]) {
      return Bytes.toStringBinary((byte[]) answer);
    }
    if (answer instanceof boolean[]) {
      return Arrays.toString((boolean[]) answer);
    }
    if (answer instanceof Object[]) {
      return show(Arrays.asList((Object[]) answer));
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

  /** A row and its cells in the order in which they came. */
  private static String show(Result result) {
    if (result.isEmpty()) {
      return "nothing";
    }
    StringBuilder text = new StringBuilder(Bytes.toStringBinary(result.getRow())).append(" {");
    for (Cell cell : result.rawCells()) {
      text.append(text.charAt(text.length() - 1) == '{' ? "" : ", ")
          .append(Bytes.toStringBinary(CellUtil.cloneFamily(cell)))
          .append(':')
          .append(Bytes.toStringBinary(CellUtil.cloneQualifier(cell)))
          .append('@')
          .append(cell.getTimestamp() < SERVER_TIME_MIN ? cell.getTimestamp() : "now")
          .append(cell.getType() == Cell.Type.Put ? "=" : " " + cell.getType() + " ")
          .append(Bytes.toStringBinary(CellUtil.cloneValue(cell)));
    }
    return text.append('}').toString();
  }

  /** An exception as an application handles it: by its class, its causes, and whether another attempt makes sense. */
  private static String show(Throwable error) {
    StringBuilder text = new StringBuilder(error.getClass().getSimpleName());
    if (error instanceof TIOError) {
      text.append(" canRetry=").append(((TIOError) error).isCanRetry());
    } else if (error instanceof TIllegalArgument) {
      text.append(" from the server");
    }
    if (error.getCause() != null && error.getCause() != error) {
      text.append(" by ").append(show(error.getCause()));
    }
    return text.toString();
  }
}
