package basalt.server;

/** The server is missing, did not start, or refused a request. The message has the reason. */
public final class BasaltException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  BasaltException(String message) {
    super(message);
  }

  BasaltException(String message, Throwable cause) {
    super(message, cause);
  }
}
