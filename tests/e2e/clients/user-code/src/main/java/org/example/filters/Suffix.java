package org.example.filters;

import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.ByteArrayComparable;
import org.apache.hadoop.hbase.util.Bytes;

/** Equal to what ends with these bytes. */
public final class Suffix extends ByteArrayComparable {
  public Suffix(byte[] suffix) {
    super(suffix);
  }

  public static Suffix parseFrom(byte[] bytes) throws DeserializationException {
    return new Suffix(bytes);
  }

  @Override
  public byte[] toByteArray() {
    return getValue();
  }

  @Override
  public int compareTo(byte[] value, int offset, int length) {
    byte[] suffix = getValue();
    boolean ends = length >= suffix.length
        && Bytes.equals(value, offset + length - suffix.length, suffix.length, suffix, 0, suffix.length);
    return ends ? 0 : 1;
  }
}
