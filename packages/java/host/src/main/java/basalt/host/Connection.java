package basalt.host;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Serves the calls of one socket, one after the other. A call has one answer, {@link Frame#OK} or
 * {@link Frame#THROWN}. Bytes that are no call close the socket.
 */
final class Connection implements Runnable {
  private static final int OPENS = 1;
  private static final int CLOSES = 2;
  private static final int GUARDED = 4;
  private static final int TEXT_MAX = 2000;

  private final SocketChannel channel;
  private final Classes classes;
  private final OpenFilters open;
  /** Classes of users that the call in hand has had loaded, whatever its outcome. */
  private final List<Loaded> loads = new ArrayList<>();

  Connection(SocketChannel channel, Classes classes, OpenFilters open) {
    this.channel = channel;
    this.classes = classes;
    this.open = open;
  }

  @Override
  public void run() {
    try (channel) {
      for (Frame frame = Frame.read(channel); frame != null; frame = Frame.read(channel)) {
        answer(frame);
      }
    } catch (IOException error) {
      System.err.println("basalt host: a connection ends: " + error);
    }
  }

  private void answer(Frame frame) throws IOException {
    Output output = new Output();
    Input input = new Input(frame.body());
    int kind = Frame.OK;
    loads.clear();
    try {
      switch (frame.kind()) {
        case Frame.HELLO -> hello(input, output);
        case Frame.FILTER -> filter(input, output);
        case Frame.DUMP -> output.text(threads());
        default -> throw new BadFrame("there is no call of kind " + frame.kind());
      }
    } catch (BadFrame error) {
      throw error;
    } catch (Throwable thrown) {
      // User code may throw anything. OutOfMemoryError ends the process before it is caught.
      kind = Frame.THROWN;
      output = thrown(thrown);
    }
    Frame.write(channel, kind, output);
  }

  private static void hello(Input input, Output output) throws BadFrame {
    input.i32();
    input.end();
    output.i32(Frame.VERSION);
  }

  private void filter(Input input, Output output) throws IOException {
    for (int left = input.count(8); left > 0; left--) {
      open.close(input.i64());
    }
    long handle = input.i64();
    int flags = input.u8();
    Filters.Run run;
    if ((flags & OPENS) != 0) {
      run = open(classes.current(), flags, input);
      open.put(handle, run);
    } else {
      run = open.get(handle);
    }
    writeLoads(output);
    output.flag(run.hasFilterRow());
    boolean goesOn = false;
    try {
      run.rows(input, output);
      goesOn = (flags & CLOSES) == 0;
    } finally {
      // Nothing is known of the state of a filter that has thrown.
      if (!goesOn) {
        open.close(handle);
      }
    }
  }

  private Filters.Run open(Generation generation, int flags, Input input) throws IOException {
    guard(flags, input);
    Thread.currentThread().setContextClassLoader(generation);
    try {
      return generation.filters().open(input);
    } finally {
      Generation.GUARDED.set(false);
      for (Loaded load = generation.nextLoad(); load != null; load = generation.nextLoad()) {
        loads.add(load);
      }
    }
  }

  private static void guard(int flags, Input input) throws BadFrame {
    boolean isGuarded = (flags & GUARDED) != 0;
    Set<String> allowed = new HashSet<>();
    for (int left = input.count(4); left > 0; left--) {
      allowed.add(input.text());
    }
    Generation.ALLOWED.set(allowed);
    Generation.GUARDED.set(isGuarded);
  }

  private void writeLoads(Output output) {
    output.i32(loads.size());
    for (Loaded load : loads) {
      output.text(load.name()).text(load.jar()).text(load.digest());
    }
  }

  /** What was thrown, without the wrappers of reflection. */
  private Output thrown(Throwable thrown) {
    Throwable cause = thrown;
    while (cause.getCause() != null && (cause instanceof InvocationTargetException
        || cause.getClass().getName().equals("org.apache.hadoop.hbase.DoNotRetryIOException")
            && String.valueOf(cause.getMessage()).equals(String.valueOf(cause.getCause())))) {
      cause = cause.getCause();
    }
    boolean isFinal = true;
    boolean isIo = false;
    try {
      isIo = cause instanceof IOException;
      isFinal = !isIo || cause != thrown || classes.current().filters().isFinal(cause);
    } catch (IOException error) {
      System.err.println("basalt host: " + error);
    }
    System.err.println("basalt host: user code has thrown " + text(cause));
    StackTraceElement[] trace = cause.getStackTrace();
    for (int i = 0; i < Math.min(trace.length, 12); i++) {
      System.err.println("    at " + trace[i]);
    }
    Output output = new Output();
    writeLoads(output);
    return output.flag(isIo).flag(isFinal).text(cause.getClass().getName()).text(message(cause));
  }

  private static String text(Throwable thrown) {
    return thrown.getClass().getName() + ": " + message(thrown);
  }

  /** The message, bounded. Getting it is code of the user, too. */
  private static String message(Throwable thrown) {
    String message;
    try {
      message = String.valueOf(thrown.getMessage());
    } catch (RuntimeException | StackOverflowError error) {
      message = "(no message: " + error.getClass().getName() + ")";
    }
    return message.length() <= TEXT_MAX ? message : message.substring(0, TEXT_MAX) + "...";
  }

  private static String threads() {
    StringBuilder text = new StringBuilder();
    for (Map.Entry<Thread, StackTraceElement[]> thread : Thread.getAllStackTraces().entrySet()) {
      if (thread.getValue().length == 0) {
        continue;
      }
      text.append(thread.getKey().getName()).append(' ').append(thread.getKey().getState()).append('\n');
      for (StackTraceElement element : thread.getValue()) {
        text.append("    at ").append(element).append('\n');
      }
    }
    return text.toString();
  }
}
