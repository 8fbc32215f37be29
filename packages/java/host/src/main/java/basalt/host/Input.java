package basalt.host;

import java.nio.charset.StandardCharsets;

/**
 * Reads the body of a frame: big-endian numbers, and bytes and texts behind a length of four bytes.
 * Every method fails with {@link BadFrame} where the body is too short. Not for several threads.
 */
public final class Input {
  private final byte[] bytes;
  private int position;

  public Input(byte[] bytes) {
    this.bytes = bytes;
  }

  /** The whole body. {@link #position} is the place of the next byte in it. */
  public byte[] array() {
    return bytes;
  }

  public int position() {
    return position;
  }

  /** Passes over {@code count} bytes, and returns where they begin. */
  public int skip(int count) throws BadFrame {
    if (count < 0 || count > bytes.length - position) {
      throw new BadFrame("a frame ends within a field of " + count + " bytes");
    }
    int begin = position;
    position += count;
    return begin;
  }

  public int u8() throws BadFrame {
    return bytes[skip(1)] & 0xff;
  }

  public boolean flag() throws BadFrame {
    int value = u8();
    if (value > 1) {
      throw new BadFrame("a flag is " + value);
    }
    return value == 1;
  }

  public int i32() throws BadFrame {
    int at = skip(4);
    return (bytes[at] & 0xff) << 24 | (bytes[at + 1] & 0xff) << 16 | (bytes[at + 2] & 0xff) << 8
        | bytes[at + 3] & 0xff;
  }

  public long i64() throws BadFrame {
    return (long) i32() << 32 | i32() & 0xffffffffL;
  }

  /** A number of things that take at least {@code least} bytes each. */
  public int count(int least) throws BadFrame {
    int count = i32();
    if (count < 0 || count > (bytes.length - position) / least) {
      throw new BadFrame("a frame claims " + count + " things and is too short for them");
    }
    return count;
  }

  public byte[] bytes() throws BadFrame {
    int length = count(1);
    int begin = skip(length);
    return java.util.Arrays.copyOfRange(bytes, begin, begin + length);
  }

  public String text() throws BadFrame {
    return new String(bytes(), StandardCharsets.UTF_8);
  }

  /** Fails unless everything was read. */
  public void end() throws BadFrame {
    if (position != bytes.length) {
      throw new BadFrame(bytes.length - position + " bytes follow the end of a body");
    }
  }
}
