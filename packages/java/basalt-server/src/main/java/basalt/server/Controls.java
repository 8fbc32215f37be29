package basalt.server;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.function.Supplier;

/**
 * The calls that only servers of tests answer, by HTTP: reset, faults and clock of {@code basalt serve --ephemeral}.
 *
 * <p>All methods may be called from any thread, and throw {@link BasaltException} with the server's words if it refuses.
 */
public final class Controls {
  private static final Duration LIMIT = Duration.ofMinutes(1);

  private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final URI http;
  private final Supplier<String> log;
  private final String authorization;

  /** Controls of the server at this address of its HTTP port. Errors of the connection show the log. */
  public Controls(URI http, Supplier<String> log) {
    this(http, log, null);
  }

  /** Controls of a server whose users must log in, by the header {@code Authorization}. */
  Controls(URI http, Supplier<String> log, String authorization) {
    this.http = http;
    this.log = log;
    this.authorization = authorization;
  }

  /**
   * Drops all user tables and namespaces, clears faults, and sets a moved clock back, which {@code
   * {"keep_clock": true}} posted to {@code /test/reset} keeps.
   */
  public void reset() {
    post("/test/reset", "{}");
  }

  /** Keeps all user tables and namespaces as they are, in place of an earlier template. */
  public void keepTemplate() {
    post("/test/template", "{}");
  }

  /** Returns to the template: tables, namespaces and snapshots are as they were when it was kept. Takes milliseconds. */
  public void resetToTemplate() {
    post("/test/reset", "{\"template\": true}");
  }

  /** Moves the server's wall clock forward: cells expire, and data gets older, without waiting. */
  public void advanceClock(Duration time) {
    post("/test/clock", "{\"advance_ms\": " + time.toMillis() + "}");
  }

  /**
   * Lets the next calls of data methods meet these faults instead of the present ones; without arguments, clears them.
   * Each is a JSON object such as {@code {"method": "Get", "fault": "region_too_busy", "calls": 3}}; the server's
   * documentation has the methods and faults. Returns what is armed, as JSON.
   */
  public String faults(String... faults) {
    return post("/test/faults", "{\"faults\": [" + String.join(", ", faults) + "]}");
  }

  /** The faults that are still armed, each with the calls that are left, as JSON: {@code {"faults":[]}} at the end. */
  public String faultsLeft() {
    return send(HttpRequest.newBuilder(http.resolve("/test/faults")).GET()).strip();
  }

  /** Posts JSON to the HTTP port and returns the answer's body. */
  public String post(String path, String json) {
    return send(
        HttpRequest.newBuilder(http.resolve(path))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(json)));
  }

  private String send(HttpRequest.Builder builder) {
    if (authorization != null) {
      builder.header("Authorization", authorization);
    }
    HttpRequest request = builder.timeout(LIMIT).build();
    URI uri = request.uri();
    try {
      HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
      if (response.statusCode() / 100 != 2) {
        throw new BasaltException(uri + ": " + response.statusCode() + ": " + response.body());
      }
      return response.body();
    } catch (IOException error) {
      throw new BasaltException(uri + ": " + error + "\n" + log.get(), error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new BasaltException("interrupted while waiting for " + uri, error);
    }
  }
}
