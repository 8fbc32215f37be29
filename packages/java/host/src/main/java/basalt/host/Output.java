package basalt.host;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes the body of a frame in the form that {@link Input} reads. Not for several threads. */
public final class Output {
  private byte[] bytes = new byte[1024];
  private int length;

  /** Fails where the frame would be larger than the protocol allows. */
  private int take(int count) {
    if (count > Frame.BYTES_MAX - length) {
      throw new TooLarge();
    }
    if (count > bytes.length - length) {
      bytes = Arrays.copyOf(bytes, Math.max(length + count, Math.min(2 * bytes.length, Frame.BYTES_MAX)));
    }
    int at = length;
    length += count;
    return at;
  }

  public Output u8(int value) {
    int at = take(1);
    bytes[at] = (byte) value;
    return this;
  }

  public Output flag(boolean value) {
    return u8(value ? 1 : 0);
  }

  public Output i32(int value) {
    set(take(4), value);
    return this;
  }

  public Output bytes(byte[] value, int offset, int count) {
    i32(count);
    int at = take(count);
    System.arraycopy(value, offset, bytes, at, count);
    return this;
  }

  public Output text(String value) {
    byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
    return bytes(encoded, 0, encoded.length);
  }

  /** Bytes so far. A number of four bytes there can be {@link #set} later. */
  public int length() {
    return length;
  }

  public void set(int at, int value) {
    bytes[at] = (byte) (value >>> 24);
    bytes[at + 1] = (byte) (value >>> 16);
    bytes[at + 2] = (byte) (value >>> 8);
    bytes[at + 3] = (byte) value;
  }

  byte[] array() {
    return bytes;
  }

  /** An answer that does not fit into a frame. */
  public static final class TooLarge extends RuntimeException {
    private static final long serialVersionUID = 1;

    TooLarge() {
      super("the answer is larger than the " + Frame.BYTES_MAX + " bytes of a frame");
    }
  }
}
