import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.junit.TestCouldNotBeSkippedException;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * RunTests SECONDS_PER_TEST SECONDS_PER_CLASS TRACES CLASS...: runs the classes one after the other
 * and prints a line for each test: class, test, milliseconds, outcome, cause. Outcomes are PASS,
 * FAIL, NA (an assumption does not hold), IGNORED and TIMEOUT. Stack traces go to files in the
 * folder TRACES. Of a class with parameters the first set is run, all with the property all.
 */
public final class RunTests extends RunListener {
  /** The test of events that belong to a class: its setup failed. */
  private static final String CLASS = "(class)";
  private static final int CAUSE_CHARS_MAX = 400;

  private final PrintStream out;
  private final PrintWriter traces;
  private final String name;
  private final long perTestMs;
  private final long endMs;
  private final Set<Description> reported = new HashSet<>();
  private volatile Description running;
  private volatile long sinceMs;

  private RunTests(PrintStream out, Path traces, String name, long perTestMs, long perClassMs) throws Exception {
    this.out = out;
    this.traces = new PrintWriter(traces.resolve(simple(name) + ".trace").toFile());
    this.name = name;
    this.perTestMs = perTestMs;
    this.endMs = System.currentTimeMillis() + perClassMs;
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out;
    // Tests print, too.
    System.setOut(System.err);
    for (int index = 3; index < arguments.length; index++) {
      RunTests run = new RunTests(out, Paths.get(arguments[2]), arguments[index],
          1000 * Long.parseLong(arguments[0]), 1000 * Long.parseLong(arguments[1]));
      run.run();
    }
    out.flush();
    // Threads of tests do not keep the process.
    Runtime.getRuntime().halt(0);
  }

  private void run() throws Exception {
    Thread watchdog = new Thread(this::watch);
    watchdog.setDaemon(true);
    watchdog.start();
    // A class before this one may have left a clock that is ahead of the server's: puts with its times
    // would be later than deletes with the server's.
    EnvironmentEdgeManager.reset();
    Request request;
    try {
      request = Request.aClass(Class.forName(name));
    } catch (ClassNotFoundException error) {
      line(CLASS, 0, "ABSENT", "");
      watchdog.interrupt();
      return;
    } catch (LinkageError error) {
      error.printStackTrace();
      line(CLASS, 0, "FAIL", cause(error));
      watchdog.interrupt();
      return;
    }
    if (System.getProperty("all") == null) {
      request = request.filterWith(new FirstParameters());
    }
    JUnitCore core = new JUnitCore();
    core.addListener(this);
    core.run(request);
    watchdog.interrupt();
    traces.close();
  }

  private static String simple(String name) {
    return name.substring(name.lastIndexOf('.') + 1);
  }

  private void line(String test, long ms, String outcome, String cause) {
    out.println(String.join("\t", name, test, Long.toString(ms), outcome, cause));
    out.flush();
  }

  private void report(Description description, String outcome, String cause) {
    if (!reported.add(description)) {
      return;
    }
    boolean isTest = description.isTest() && description.getMethodName() != null;
    line(isTest ? description.getMethodName() : CLASS, isTest ? System.currentTimeMillis() - sinceMs : 0, outcome,
        cause);
  }

  @Override
  public void testStarted(Description description) {
    running = description;
    sinceMs = System.currentTimeMillis();
    System.err.println("##### " + description);
  }

  @Override
  public void testFailure(Failure failure) {
    Throwable error = failure.getException();
    traces.println("## " + failure.getDescription() + "\n" + failure.getTrace());
    traces.flush();
    // A rule failed after the assumption.
    boolean skipped = error instanceof TestCouldNotBeSkippedException;
    report(failure.getDescription(), skipped ? "NA" : "FAIL", cause(error));
  }

  @Override
  public void testAssumptionFailure(Failure failure) {
    report(failure.getDescription(), "NA", cause(failure.getException()));
  }

  @Override
  public void testIgnored(Description description) {
    report(description, "IGNORED", "");
  }

  @Override
  public void testFinished(Description description) {
    report(description, "PASS", "");
    running = null;
  }

  /** The error, its last cause and the line of the test, in one line. */
  private static String cause(Throwable error) {
    Throwable last = error;
    while (last.getCause() != null && last.getCause() != last) {
      last = last.getCause();
    }
    String text = error + (last == error ? "" : " <= " + last);
    text = text.replaceAll("\\s+", " ");
    text = text.length() > CAUSE_CHARS_MAX ? text.substring(0, CAUSE_CHARS_MAX) + "..." : text;
    for (StackTraceElement element : error.getStackTrace()) {
      if (element.getClassName().matches(".*(\\.Test|FromClientSide|AbstractTest|TestBase).*")) {
        return text + " @" + element.getFileName() + ":" + element.getLineNumber();
      }
    }
    return text;
  }

  /** Interrupts a test that takes too long, and ends the process for a class that does. */
  private void watch() {
    long interruptedMs = 0;
    while (true) {
      try {
        Thread.sleep(1000);
      } catch (InterruptedException end) {
        return;
      }
      long now = System.currentTimeMillis();
      Description test = running;
      if (test != null && now - sinceMs > perTestMs && now - interruptedMs > 20_000) {
        interruptedMs = now;
        interruptTest(test);
      }
      if (now > endMs) {
        line(test == null || test.getMethodName() == null ? CLASS : test.getMethodName(), 0, "TIMEOUT",
            "the class takes too long");
        Runtime.getRuntime().halt(3);
      }
    }
  }

  private void interruptTest(Description test) {
    traces.println("## too long: " + test);
    for (Map.Entry<Thread, StackTraceElement[]> thread : Thread.getAllStackTraces().entrySet()) {
      String threadName = thread.getKey().getName();
      if (threadName.startsWith("Time-limited") || threadName.equals("main")) {
        traces.println(threadName);
        for (StackTraceElement element : thread.getValue()) {
          traces.println("  " + element);
        }
      }
      if (threadName.startsWith("Time-limited")) {
        thread.getKey().interrupt();
      }
    }
    traces.flush();
  }

  /** Of suites that stand for sets of parameters, lets only the first run. */
  private static final class FirstParameters extends Filter {
    private String first;

    @Override
    public boolean shouldRun(Description description) {
      String shown = description.getDisplayName();
      if (!description.isSuite() || !shown.startsWith("[")) {
        return true;
      }
      first = first == null ? shown : first;
      return first.equals(shown);
    }

    @Override
    public String describe() {
      return "the first parameters";
    }
  }
}
