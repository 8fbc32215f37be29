package basalt.host;

import java.io.IOException;

/** Bytes that are not a frame of this protocol. The socket on which they came is closed. */
public final class BadFrame extends IOException {
  private static final long serialVersionUID = 1;

  public BadFrame(String message) {
    super(message);
  }
}
