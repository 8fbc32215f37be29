package basalt.server;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A server that a test owns: started empty on free ports, removed with its data by {@link #close()}.
 *
 * <p>It runs {@code basalt serve --ephemeral}. {@link #start} returns once the server accepts calls. The JVM's exit stops
 * a server that was not closed. All methods may be called from any thread.
 */
public final class BasaltServer implements AutoCloseable {
  private static final Duration START_LIMIT = Duration.ofMinutes(1);
  private static final Duration STOP_LIMIT = Duration.ofMinutes(1);

  private final Process process;
  private final Path log;
  private final Thread stopAtExit = new Thread(this::kill, "basalt-stop");
  private final String listen;
  private final String http;
  private final Security security;
  private final Controls controls;

  private BasaltServer(Process process, Path log, String line) {
    this.process = process;
    this.log = log;
    this.listen = field(line, "listen");
    this.http = field(line, "http");
    this.security = line.contains("\"security\"") ? Security.of(part -> field(line, part)) : null;
    this.controls = new Controls(http(), this::log, security == null ? null : security.bearer());
    Runtime.getRuntime().addShutdownHook(stopAtExit);
  }

  /** Starts an empty server with default settings. */
  public static BasaltServer start() {
    return start(Map.of());
  }

  /** Starts an empty server with these settings, whose names and values are those of {@code basalt serve --set}. */
  public static BasaltServer start(Map<String, String> settings) {
    return start(List.of("serve", "--ephemeral"), settings);
  }

  /** Starts an empty server with a certificate, whose users must log in: {@link #security} says how. */
  public static BasaltServer startSecure(Map<String, String> settings) {
    return start(List.of("serve", "--ephemeral", "--secure"), settings);
  }

  private static BasaltServer start(List<String> arguments, Map<String, String> settings) {
    List<String> command = new ArrayList<>(List.of(Program.find().toString()));
    command.addAll(arguments);
    settings.forEach((name, value) -> command.addAll(List.of("--set", name + "=" + value)));
    Path log = null;
    Process process = null;
    try {
      log = Files.createTempFile("basalt-", ".log");
      // An unread pipe would block the server.
      process = new ProcessBuilder(command).redirectError(log.toFile()).start();
      process.getOutputStream().close();
      String line = firstLine(process);
      if (line != null && line.startsWith("{")) {
        return new BasaltServer(process, log, line);
      }
      process.destroyForcibly().waitFor();
      throw new BasaltException("the server did not start: " + (line == null ? "" : line + "\n") + read(log));
    } catch (IOException error) {
      throw new BasaltException(command.get(0) + " does not run here: " + error.getMessage(), error);
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new BasaltException("interrupted while the server started", error);
    }
  }

  /** The host at which clients reach the server. */
  public String host() {
    return listen.substring(0, listen.lastIndexOf(':')).replaceAll("[\\[\\]]", "");
  }

  /** The port of HBase's native protocol and of Thrift. */
  public int port() {
    return Integer.parseInt(listen.substring(listen.lastIndexOf(':') + 1));
  }

  /** The address of the HTTP port, for example {@code http://127.0.0.1:9095}. */
  public URI http() {
    return URI.create(http.contains("://") ? http : "http://" + http);
  }

  /** How clients log in; null for a server that {@link #startSecure} has not started. */
  public Security security() {
    return security;
  }

  /** The calls that only servers of tests answer. */
  public Controls controls() {
    return controls;
  }

  /** As {@link Controls#reset}. */
  public void reset() {
    controls.reset();
  }

  /** As {@link Controls#advanceClock}. */
  public void advanceClock(Duration time) {
    controls.advanceClock(time);
  }

  /** As {@link Controls#faults}. */
  public String faults(String... faults) {
    return controls.faults(faults);
  }

  /** As {@link Controls#faultsLeft}. */
  public String faultsLeft() {
    return controls.faultsLeft();
  }

  /** As {@link Controls#keepTemplate}. */
  public void keepTemplate() {
    controls.keepTemplate();
  }

  /** As {@link Controls#resetToTemplate}. */
  public void resetToTemplate() {
    controls.resetToTemplate();
  }

  /** As {@link Controls#post}. */
  public String post(String path, String json) {
    return controls.post(path, json);
  }

  /** What the server has logged so far. */
  public String log() {
    return read(log);
  }

  /** Stops the server and waits until it is gone. Does nothing when called again. */
  @Override
  public void close() {
    if (!Files.exists(log)) {
      return;
    }
    process.destroy();
    try {
      if (!process.waitFor(STOP_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
        process.destroyForcibly().waitFor();
      }
      String text = log();
      Files.delete(log);
      Runtime.getRuntime().removeShutdownHook(stopAtExit);
      if (process.exitValue() != 0) {
        throw new BasaltException("the server ended with status " + process.exitValue() + ":\n" + text);
      }
    } catch (IOException error) {
      throw new BasaltException(log + " cannot be removed", error);
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }

  /** Ends the server of a JVM that exits. It has no time to wait. */
  private void kill() {
    process.destroy();
    log.toFile().delete();
  }

  /** The first line of standard output; null if the process ended or the limit passed without one. */
  private static String firstLine(Process process) throws IOException, InterruptedException {
    BufferedReader output =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    CompletableFuture<String> line =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return output.readLine();
              } catch (IOException error) {
                return error.toString();
              }
            });
    try {
      return line.get(START_LIMIT.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      return null;
    } catch (ExecutionException error) {
      throw new IOException(error.getCause());
    }
  }

  /** The text of a field in the server's line of JSON, which holds addresses: nothing in them is escaped. */
  private static String field(String line, String name) {
    Matcher matcher = Pattern.compile("\"" + name + "\"\\s*:\\s*\"([^\"]*)\"").matcher(line);
    if (!matcher.find()) {
      throw new BasaltException("the server's line has no field " + name + ": " + line);
    }
    return matcher.group(1);
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException error) {
      return file + " cannot be read: " + error;
    }
  }
}
