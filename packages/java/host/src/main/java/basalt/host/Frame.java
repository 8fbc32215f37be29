package basalt.host;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;

/**
 * A frame of the protocol between Basalt and this host: the length of the rest in four bytes, a byte for the kind,
 * the body. {@code server/host/src/frame.rs} has the same numbers and says what they mean.
 */
public record Frame(int kind, byte[] body) {
  public static final int VERSION = 1;
  public static final int BYTES_MAX = 64 << 20;

  public static final int HELLO = 1;
  public static final int FILTER = 2;
  public static final int DUMP = 3;
  public static final int OK = 128;
  public static final int THROWN = 129;

  /** Memory is taken in steps of this size, as bytes arrive: a length is only a claim. */
  private static final int STEP = 1 << 20;

  /** The next frame; null where the channel ends before one. */
  public static Frame read(ReadableByteChannel channel) throws IOException {
    ByteBuffer head = ByteBuffer.allocate(5);
    while (head.hasRemaining()) {
      if (channel.read(head) < 0) {
        if (head.position() == 0) {
          return null;
        }
        throw new EOFException("the channel ends within the head of a frame");
      }
    }
    int length = head.getInt(0);
    if (length < 1 || length > BYTES_MAX) {
      throw new BadFrame("a frame claims " + length + " bytes");
    }
    byte[] body = new byte[Math.min(length - 1, STEP)];
    int filled = 0;
    while (true) {
      ByteBuffer rest = ByteBuffer.wrap(body, filled, body.length - filled);
      while (rest.hasRemaining()) {
        if (channel.read(rest) < 0) {
          throw new EOFException("the channel ends within a frame");
        }
      }
      filled = body.length;
      if (filled == length - 1) {
        return new Frame(head.get(4) & 0xff, body);
      }
      body = java.util.Arrays.copyOf(body, Math.min(length - 1, 2 * filled));
    }
  }

  /** Writes a frame with this body. */
  public static void write(WritableByteChannel channel, int kind, Output body) throws IOException {
    ByteBuffer head = ByteBuffer.allocate(5).putInt(body.length() + 1).put((byte) kind).flip();
    while (head.hasRemaining()) {
      channel.write(head);
    }
    ByteBuffer rest = ByteBuffer.wrap(body.array(), 0, body.length());
    while (rest.hasRemaining()) {
      channel.write(rest);
    }
  }
}
